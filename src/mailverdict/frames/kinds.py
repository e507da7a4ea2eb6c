"""The kinds of data a column can come in, and how result columns go back beside it.

Each kind is one class with the same four methods; `kind_of_data` picks it without importing a
library that the caller has not imported.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa

from ..errors import ColumnError, SettingsError
from .columns import Column, to_arrow, to_pandas

__all__ = ["DataKind", "check_column", "kind_of_data", "shown"]

OURS = "mailverdict"  # key in `DataFrame.attrs` under which we note which columns are ours
SHOWN = 20  # column names shown in an error


class DataKind(Protocol):
    """What the rest of `frames` needs to know about the caller's data."""

    def values(self) -> Any:
        """The cells of the column."""
        ...

    def names(self, prefix: str | None, columns: Sequence[Column]) -> list[Any]:
        """Names of the result columns; a `SettingsError` where one would overwrite the caller's own."""
        ...

    def attach(self, table: pa.Table, names: Sequence[Any], columns: Sequence[Column], note: dict[str, Any]) -> Any:
        """The caller's kind of data with the result columns; the caller's own is left untouched."""
        ...


class PandasFrame:
    """A DataFrame and one of its columns."""

    def __init__(self, frame: pd.DataFrame, column: Hashable) -> None:
        self.frame, self.column = frame, column
        check_column(column, list(frame.columns))

    def values(self) -> Any:
        """The column as a Series; found by position, since `frame[column]` has meanings of its own."""
        labels: list[Any] = list(self.frame.columns)
        return self.frame.take([labels.index(self.column)], axis=1).squeeze(axis=1)

    def names(self, prefix: str | None, columns: Sequence[Column]) -> list[Any]:
        """Under a MultiIndex the results go beside the column, below the same upper labels."""
        *upper, last = self.column if isinstance(self.column, tuple) else (self.column,)
        lead = f"{last}_" if prefix is None else prefix
        names = [(*upper, lead + c.name) if upper else lead + c.name for c in columns]
        mine = {name for note in our_notes(self.frame.attrs).values() for name in note.get("columns", ())}
        check_names([n for n in names if str(n) not in mine], list(self.frame.columns))
        return names

    def attach(self, table: pa.Table, names: Sequence[Any], columns: Sequence[Column], note: dict[str, Any]) -> Any:
        """Columns are set by position of the row, so a duplicated index neither raises nor multiplies."""
        out = self.frame.copy(deep=False)
        for name, column in zip(names, columns, strict=True):
            out[name] = to_pandas(table, column)
        out.attrs = noted(self.frame.attrs, self.column, names, note)
        return out


class Cells:
    """A Series or any list-like: the result columns alone come back."""

    def __init__(self, cells: Any) -> None:
        self.cells = cells
        self.index = cells.index if isinstance(cells, pd.Series) else pd.RangeIndex(len(cells))

    def values(self) -> Any:
        """The cells themselves."""
        return self.cells

    def names(self, prefix: str | None, columns: Sequence[Column]) -> list[Any]:
        """No column of the caller's is there to be overwritten."""
        return [(prefix or "") + c.name for c in columns]

    def attach(self, table: pa.Table, names: Sequence[Any], columns: Sequence[Column], note: dict[str, Any]) -> Any:
        """A frame of result columns with the Series' index."""
        out = pd.DataFrame({n: to_pandas(table, c) for n, c in zip(names, columns, strict=True)}, index=self.index)
        out.attrs[OURS] = {"": {**note, "columns": [str(n) for n in names]}}
        return out


class ArrowFrame:
    """A `pyarrow.Table` and one of its columns."""

    def __init__(self, frame: pa.Table, column: str) -> None:
        self.frame, self.column = frame, column
        check_column(column, frame.column_names)

    def values(self) -> Any:
        """The column as a chunked array."""
        return self.frame[self.column]

    def names(self, prefix: str | None, columns: Sequence[Column]) -> list[Any]:
        """Prefix and name."""
        names = [(f"{self.column}_" if prefix is None else prefix) + c.name for c in columns]
        check_names(names, self.frame.column_names)
        return names

    def attach(self, table: pa.Table, names: Sequence[Any], columns: Sequence[Column], note: dict[str, Any]) -> Any:
        """A table with the result columns appended; verdict and status are dictionary-encoded."""
        out = self.frame
        for name, column in zip(names, columns, strict=True):
            out = out.append_column(name, to_arrow(table, column))
        return out


class PolarsFrame:
    """A `polars.DataFrame` and one of its columns."""

    def __init__(self, frame: Any, column: str) -> None:
        self.frame, self.column = frame, column
        check_column(column, frame.columns)

    def values(self) -> Any:
        """The column in Arrow's form, or as Python objects where it has none."""
        series = self.frame[self.column]
        return series.to_list() if series.dtype.is_nested() or str(series.dtype) == "Object" else series.to_arrow()

    def names(self, prefix: str | None, columns: Sequence[Column]) -> list[Any]:
        """Prefix and name."""
        names = [(f"{self.column}_" if prefix is None else prefix) + c.name for c in columns]
        check_names(names, self.frame.columns)
        return names

    def attach(self, table: pa.Table, names: Sequence[Any], columns: Sequence[Column], note: dict[str, Any]) -> Any:
        """A frame with the result columns appended; verdict and status are categorical."""
        import polars  # noqa: PLC0415 - only for callers who brought a Polars frame

        arrays = [to_arrow(table, column).unify_dictionaries() for column in columns]
        return self.frame.hstack(polars.from_arrow(pa.table(dict(zip(names, arrays, strict=True)))))


def our_notes(attrs: Mapping[Any, Any]) -> dict[str, Any]:
    """What earlier calls left in a frame's `attrs`, by column."""
    notes = attrs.get(OURS)
    return {k: v for k, v in notes.items() if isinstance(v, dict)} if isinstance(notes, dict) else {}


def noted(attrs: Mapping[Any, Any], column: Hashable, names: Sequence[Any], note: dict[str, Any]) -> dict[Any, Any]:
    """`attrs` with a note of which columns are ours: small, JSON-ready, and never shared with the caller's frame."""
    notes = our_notes(attrs)
    earlier = notes.get(str(column), {})
    columns = dict.fromkeys([*earlier.get("columns", ()), *map(str, names)])
    return {**attrs, OURS: {**notes, str(column): {**earlier, **note, "columns": list(columns)}}}


def kind_of_data(data: Any, column: Hashable | None) -> DataKind:
    """Pick the kind; raise before any work where data and column do not fit together."""
    module = type(data).__module__.partition(".")[0]
    if isinstance(data, pd.DataFrame):
        return PandasFrame(data, needed(column, list(data.columns)))
    if isinstance(data, pa.Table):
        return ArrowFrame(data, str(needed(column, data.column_names)))
    if module == "polars" and hasattr(data, "columns"):
        if not hasattr(data, "hstack"):
            raise SettingsError("data is a lazy Polars frame: call .collect() first")
        return PolarsFrame(data, str(needed(column, data.columns)))
    if column is not None:
        raise SettingsError(f"column={column!r} goes with a frame, but data is a {type(data).__name__}")
    return Cells(as_cells(data, module))


def as_cells(data: Any, module: str) -> Any:
    """A Series, an Arrow array, or a list of whatever can be iterated; text alone is no column."""
    if isinstance(data, str | bytes | dict) or not hasattr(data, "__iter__"):
        raise SettingsError(
            f"data is a {type(data).__name__}; give a DataFrame with a column name, a Series or a list of addresses"
            + (" (for one address there is mailverdict.check)" if isinstance(data, str) else "")
        )
    if isinstance(data, pd.Series | pa.Array | pa.ChunkedArray | list):
        return data
    if module == "polars":
        return data.to_arrow()
    if isinstance(data, pd.Index | np.ndarray):
        return pd.Series(data).reset_index(drop=True)
    return list(data)


def needed(column: Hashable | None, names: Sequence[Any]) -> Hashable:
    if column is None:
        raise ColumnError(f"which column? name one of {shown(names)}")
    return column


def check_column(column: Any, names: Sequence[Any]) -> None:
    """The column must be there exactly once."""
    found = sum(1 for name in names if name == column)
    if found == 0:
        raise ColumnError(f"no column {column!r}; there are {shown(names)}")
    if found > 1:
        raise ColumnError(f"the column name {column!r} occurs {found} times; rename the columns so that it is one")


def check_names(names: Sequence[Any], existing: Sequence[Any]) -> None:
    """Never overwrite a column that is not ours."""
    if taken := [name for name in names if name in existing]:
        raise SettingsError(
            f"the frame already has a column {taken[0]!r} that is not ours; give another prefix=, or drop it"
        )


def shown(names: Sequence[Any]) -> str:
    listed = ", ".join(repr(name)[:80] for name in names[:SHOWN])
    return f"{listed} and {len(names) - SHOWN} more" if len(names) > SHOWN else listed or "no columns at all"
