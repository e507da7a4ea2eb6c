"""Lists whose columns say nothing about bad addresses, or one of which does, for the tests and the benchmark."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import mailverdict as mv

BAD, BAD_IN_GROUP = 0.06, 0.31  # shares
GROUP = 100  # people
CATEGORIES = (2, 3, 5, 8, 12, 30, 80)  # values of the columns that say nothing
MOST = 20_000  # people


@cache
def verified_people() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Valid and invalid addresses that were verified, of which lists are made."""
    frames = []
    for domain in ("firm.example", "firm"):
        addresses = [f"p{number}@{domain}" for number in range(MOST)]
        frame = pd.DataFrame({"email": addresses})
        frames.append(mv.verify(frame, "email", validation_type="regex", clean=False))
    return frames[0], frames[1]


def simulated_list(
    seed: int, people: int = 1_500, *, has_effect: bool = False, bad: float = BAD
) -> pd.DataFrame:
    """A verified list with columns of words, numbers and dates; with an effect `source` has a bad group."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    for size in CATEGORIES:
        shares = rng.dirichlet(np.full(size, 1.5))
        words = [f"value {number}" for number in range(size)]
        columns[f"words_{size}"] = rng.choice(words, people, p=shares)
    columns["amount"] = rng.gamma(2, 1_000, people).round(2)
    days = pd.to_timedelta(rng.integers(0, 1_400, people), "D")
    columns["since"] = pd.Timestamp("2021-01-01") + days
    source = rng.choice(["Website", "Referral", "Partner"], people)
    in_group = rng.permutation(people)[:GROUP]
    source[in_group] = "Fair"
    columns["source"] = source
    is_bad = rng.random(people) < bad
    if has_effect:
        is_bad[in_group] = rng.random(GROUP) < BAD_IN_GROUP
    valid, invalid = verified_people()
    rows = pd.concat([valid.head(int((~is_bad).sum())), invalid.head(int(is_bad.sum()))])
    order = np.empty(people, np.int64)
    order[np.flatnonzero(~is_bad)] = np.arange((~is_bad).sum())
    order[np.flatnonzero(is_bad)] = np.arange((~is_bad).sum(), people)
    rows = rows.iloc[order].reset_index(drop=True)
    return pd.concat([rows, pd.DataFrame(columns)], axis=1)
