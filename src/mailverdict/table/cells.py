"""Cells that come without a frame: reading them from any iterable, and errors for data that are not cells."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ..errors import InputError


def to_cells(data: Any) -> Any:
    """A Series as it is, or the items of any other iterable."""
    if isinstance(data, pd.Series):
        return data
    is_array = isinstance(data, pd.api.extensions.ExtensionArray | np.ndarray) and data.dtype.names is None
    if is_array or (isinstance(data, pd.Index) and data.nlevels == 1):
        cells = pd.Series(data).reset_index(drop=True)
        if cells.dtype == object:
            refuse_rows(cells)
        return cells
    if not isinstance(data, list):
        items = iter(data)
        first = list(itertools.islice(items, 1))
        refuse_rows(first)  # before all of them are read
        data = [*first, *items]
    refuse_rows(data)
    return data


def refuse_rows(cells: Iterable[Any]) -> None:
    """Raise an error if the items are not cells, but rows or frames; some among others are cells that are not text."""
    example = None  # of a row
    for item in cells:
        if item is None or item is pd.NA or item is pd.NaT or isinstance(item, float):
            continue
        if isinstance(item, str | bytes) or not is_row(item):
            return
        example = item if example is None else example
    if example is None:
        return
    if is_frame(example):
        raise InputError(
            f"data consists of frames (of type {type(example).__name__}): give one frame and a column name, as "
            f"{joiner_of(example)}(data), or verify one after another"
        )
    cell = "row['email']" if isinstance(example, Mapping) else "row[0]"
    raise InputError(
        f"data consists of rows (of type {type(example).__name__}), not of cells: give pandas.DataFrame(data) and "
        f"a column name, or the cells, as [{cell} for row in data]"
    )


def is_row(item: Any) -> bool:
    return hasattr(item, "__iter__") or dataclasses.is_dataclass(item) or isinstance(item, np.void) or is_frame(item)


def is_frame(item: Any) -> bool:
    return hasattr(item, "columns") and not isinstance(item, Mapping)


def joiner_of(frame: Any) -> str:
    """The function that makes one frame of several such."""
    if isinstance(frame, pa.RecordBatch | pa.Table):
        return "pyarrow.concat_tables" if isinstance(frame, pa.Table) else "pyarrow.Table.from_batches"
    return "polars.concat" if type(frame).__module__.startswith("polars.") else "pandas.concat"


def problem_of(data: Any) -> str | None:
    """What is wrong with data that is not a column of cells, or None."""
    what = f"of type {type(data).__name__}"
    if isinstance(data, str):
        return f"{what}; give a list of addresses, or call mailverdict.check for one address"
    if isinstance(data, np.ndarray) and data.ndim != 1:
        return f"an array of {data.ndim} dimensions; give one column of it"
    if isinstance(data, np.ndarray) and data.dtype.names is not None:
        return "a structured array; give pandas.DataFrame(data) and a column name"
    if isinstance(data, pd.Index) and data.nlevels > 1:
        return f"an index of {data.nlevels} levels; give one of them, as data.get_level_values(0)"
    if isinstance(data, set | frozenset):
        return f"{what}, which has no order; give sorted(data)"
    if isinstance(data, Mapping):
        return f"{what}; give a DataFrame, as pandas.DataFrame(data), and a column name, or a list of addresses"
    if hasattr(data, "to_table"):  # a dataset of pyarrow
        return f"{what}; give data.to_table() and a column name"
    is_cells = hasattr(data, "__iter__") and not isinstance(data, bytes | bytearray | memoryview)
    if not is_cells or hasattr(data, "columns"):
        return f"{what}; give a DataFrame (pandas, Polars or Arrow) and a column name, a Series or a list of addresses"
    return None
