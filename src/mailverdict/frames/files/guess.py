"""Which column holds the addresses: the one whose cells look most like it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import ColumnError
from ..columns import listed
from ..text_column import read_values

__all__ = ["address_shares", "guess_column"]

SAMPLE_ROWS = 2_000
ENOUGH = 0.3  # of the filled cells; a notes column that mentions an address now and then has far less
SHAPE = r"^\S+@\S+\.\S+$|<\S+@\S+>"


def address_shares(columns: Mapping[Any, Any]) -> dict[Any, float]:
    """Share of filled cells that look like an address, by column, from the first rows.

    >>> address_shares({"who": ["Ada"], "mail": ["ada@example.org"]})
    {'who': 0.0, 'mail': 1.0}
    """
    return {name: share_of(values[:SAMPLE_ROWS]) for name, values in columns.items()}


def share_of(values: Any) -> float:
    texts = read_values(values).texts
    if not len(texts):
        return 0.0
    matches: pa.BooleanArray = pc.match_substring_regex(texts, SHAPE)
    return float(pc.mean(matches).as_py())


def guess_column(columns: Mapping[Any, Any]) -> Any:
    """The column with the largest share; the first of equals.

    Raises
    ------
    ColumnError
        If none looks like addresses.
    """
    shares = address_shares(columns)
    best = max(shares, key=shares.__getitem__, default=None)
    if best is None or shares[best] < ENOUGH:
        raise ColumnError(f"no column looks like e-mail addresses; name one of {listed(list(columns))}")
    return best
