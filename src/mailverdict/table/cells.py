"""Cells that come without a frame: reading them from any iterable, and errors for data that are not cells."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError
from .list_cells import is_missing


def to_cells(data: Any) -> Any:
    """A Series as it is, or the items of any other iterable."""
    if isinstance(data, pd.Series):
        return data
    if isinstance(data, pd.api.extensions.ExtensionArray | np.ndarray | pd.Index):
        cells = pd.Series(data).reset_index(drop=True)
        refuse_rows(cells if cells.dtype == object else ())
        return cells
    if not isinstance(data, list):
        items = iter(data)
        first = list(itertools.islice(items, 1))
        refuse_rows(first)  # before all of them are read
        data = [*first, *items]
    refuse_rows(data)
    return data


def refuse_rows(cells: Iterable[Any]) -> None:
    """Raise an error if the items are not cells, but rows or frames; a few among others are cells."""
    filled = (each for each in cells if not is_missing(each))
    example = next(filled, None)
    if example is not None and all(map(is_row, itertools.chain([example], filled))):
        raise InputError(
            f"data consists of rows or frames (of type {type(example).__name__}), not of cells: give one DataFrame and "
            "a column name, or the cells, as [row[0] for row in data]"
        )


def is_row(item: Any) -> bool:
    if isinstance(item, str | bytes):
        return False
    has_parts = hasattr(item, "__iter__") or hasattr(item, "columns")
    return has_parts or dataclasses.is_dataclass(item) or isinstance(item, np.void)


def problem_of(data: Any) -> str | None:
    """What is wrong with data that is not a column of cells, or None."""
    what = f"of type {type(data).__name__}"
    if isinstance(data, str):
        return f"{what}; give a list of addresses, or call mailverdict.check for one address"
    if isinstance(data, set | frozenset):
        return f"{what}, which has no order; give sorted(data)"
    is_iterable = hasattr(data, "__iter__") and not isinstance(data, bytes | bytearray | memoryview | Mapping)
    has_fields = getattr(getattr(data, "dtype", None), "names", None) is not None
    is_wide = has_fields or getattr(data, "ndim", 1) != 1 or getattr(data, "nlevels", 1) > 1
    if is_iterable and not is_wide and not hasattr(data, "columns") and not hasattr(data, "to_table"):
        return None
    return f"{what}; give a DataFrame (pandas, Polars or Arrow) and a column name, a Series or a list of addresses"
