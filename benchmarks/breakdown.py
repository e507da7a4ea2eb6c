"""How often `breakdown` names a column of a list without any effect, finds a bad source, and covers a share; its speed.

The lists are those of ``tests/doubles/simulated_origins.py``. The values of the first figures are
one: a percentage of lists, or of intervals. They do not depend on the machine. Run it as ``python
-m benchmarks breakdown``.
"""

import time
from typing import Any

import numpy as np
import pandas as pd
from tests.doubles.simulated_origins import simulated_list, verified_people

import mailverdict as mv
from mailverdict.reports.differences import wilson_intervals

from .figures import OURS, read_options, record

COLUMNS = 30
INTERVALS = 200_000


def main() -> None:
    given = read_options(__doc__, lists=(2_000, 20), rows=(1_000_000, 20_000), rounds=(3, 1))
    verified_people()
    named = found = 0
    for seed in range(given.lists):
        named += (mv.breakdown(simulated_list(seed))["says"] == "differs").any()
        out = simulated_list(seed, has_effect=True)
        found += mv.breakdown(out)["says"]["source"] == "differs"
    record(
        "lists without an effect that name a column",
        OURS,
        [100 * named / given.lists],
        "%",
        given.lists,
    )
    record(
        "lists with a bad source that name it", OURS, [100 * found / given.lists], "%", given.lists
    )
    record("intervals that hold the share", OURS, [100 * covered()], "%", INTERVALS)
    out = wide_list(given.rows)
    seconds = []
    processor = []
    for _ in range(given.rounds):
        began = time.perf_counter()
        began_processor = time.process_time()
        mv.breakdown(out)
        seconds.append(time.perf_counter() - began)
        processor.append(time.process_time() - began_processor)
    record(f"all of {COLUMNS} columns ranked", OURS, seconds, "s", given.rows)
    record(f"all of {COLUMNS} columns ranked, processor time", OURS, processor, "s", given.rows)


def covered() -> float:
    """The share of plain intervals that hold the true share: groups of 30 to 600, shares of 2 to 50 %."""
    rng = np.random.default_rng(1)
    share = rng.uniform(0.02, 0.5, INTERVALS)
    people = rng.integers(30, 600, INTERVALS)
    low, high = wilson_intervals(rng.binomial(people, share), people)
    return float(np.mean((low <= share) & (share <= high)))


def wide_list(rows: int) -> pd.DataFrame:
    """A verified list with columns of words, numbers, dates, free text and an id."""
    rng = np.random.default_rng(2)
    ends = np.where(rng.random(rows) < 0.1, "@firm", "@firm.example")
    numbers = np.arange(rows).astype(str)
    columns: dict[str, Any] = {"email": np.char.add(np.char.add("p", numbers), ends)}
    days = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 4_000, rows), "D")
    makers = (
        lambda at: rng.choice([f"value {number}" for number in range(5 + 10 * at)], rows),
        lambda at: rng.gamma(2, 1_000, rows),
        lambda at: days,
        lambda at: days.strftime("%Y-%m-%d"),
        lambda at: np.char.add("called on ", numbers),
    )
    for at in range(COLUMNS - 1):
        columns[f"column_{at}"] = makers[at % len(makers)](at)
    columns["id"] = np.arange(rows)
    return mv.verify(pd.DataFrame(columns), "email", validation_type="regex")


if __name__ == "__main__":
    main()
