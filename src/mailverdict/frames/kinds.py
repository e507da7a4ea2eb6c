"""The kinds of data a column can come in, and how the result columns are added beside it.

Each kind is one class with the methods of `DataKind`; `kind_of_data` picks it without importing a library that the
caller has not imported.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ColumnError, SettingsError
from .columns import (
    CLEAN_COLUMNS,
    COLUMNS,
    CONTRADICTION_COLUMNS,
    DUPLICATE_COLUMNS,
    Column,
    check_column,
    label_of,
    listed,
    to_arrow,
    to_pandas,
)

__all__ = ["DataKind", "SeriesOrList", "add_columns", "kind_of_data", "read_notes"]

Positions = npt.NDArray[np.int64]
ATTRS_KEY = "mailverdict"  # key in `DataFrame.attrs` under which the result columns are noted
CORE_NAMES = tuple(c.name for c in COLUMNS if c.in_core)
# Columns that are written together; a frame with all of a set has them from an earlier call.
NAME_SETS = (
    tuple(c.name for c in CLEAN_COLUMNS),
    tuple(c.name for c in DUPLICATE_COLUMNS),
    tuple(c.name for c in CONTRADICTION_COLUMNS),
    CORE_NAMES,
    tuple(name for name in CORE_NAMES if name != "error_message"),  # the core of older files
    tuple(c.name for c in COLUMNS),
)


class DataKind(Protocol):
    """What the rest of `frames` needs to know about the caller's data."""

    def values(self) -> Any:
        """The cells of the column."""
        ...

    def names(self, prefix: str | None, columns: Sequence[Column]) -> list[Any]:
        """Labels of the result columns; a `SettingsError` if one would overwrite a column of the caller."""
        ...

    def attach(self, table: pa.Table, names: Sequence[Any], columns: Sequence[Column], note: dict[str, Any]) -> Any:
        """The caller's kind of data with the result columns; the caller's own object is not changed."""
        ...

    def repeat(self, rows: Positions, replaced: Positions, texts: Sequence[str]) -> DataKind:
        """The given rows of the data; at the positions `replaced` the cell of the column is one of `texts`."""
        ...


class PandasFrame:
    """A DataFrame and one of its columns."""

    def __init__(self, frame: pd.DataFrame, column: Hashable) -> None:
        self.frame, self.column = frame, column
        check_column(column, list(frame.columns))

    def values(self) -> Any:
        """The column as a Series; found by position, since `frame[column]` may mean something else."""
        labels: list[Any] = list(self.frame.columns)
        return self.frame.take([labels.index(self.column)], axis=1).squeeze(axis=1)

    def names(self, prefix: str | None, columns: Sequence[Column]) -> list[Any]:
        """Result columns of an earlier call may be overwritten: noted in attrs, or a complete set."""
        names = [label_of(self.column, prefix, c.name) for c in columns]
        noted_names = {name for note in read_notes(self.frame.attrs).values() for name in note.get("columns", ())}
        existing = list(self.frame.columns)
        mine = result_columns(existing, self.column, prefix)
        check_names([n for n in names if n not in mine and str(n) not in noted_names], existing)
        return names

    def attach(self, table: pa.Table, names: Sequence[Any], columns: Sequence[Column], note: dict[str, Any]) -> Any:
        """The rows keep their index, whatever is in it: results are added by position."""
        made = {n: to_pandas(table, c, self.frame.index) for n, c in zip(names, columns, strict=True)}
        out = add_columns(self.frame, made)
        out.attrs = with_note(out.attrs, self.column, names, note)
        return out

    def repeat(self, rows: Positions, replaced: Positions, texts: Sequence[str]) -> DataKind:
        """The rows with their index; the column keeps its dtype if that can hold any text."""
        labels: list[Any] = list(self.frame.columns)
        at = labels.index(self.column)
        out = self.frame.take(rows)
        if len(replaced):
            cells = out.iloc[:, at]
            is_open = isinstance(cells.dtype, pd.StringDtype) or cells.dtype == object
            cells = cells.copy() if is_open else cells.astype(object)
            cells.iloc[replaced] = list(texts)
            out.isetitem(at, cells.array)
        out.attrs = copy.deepcopy(self.frame.attrs)
        return PandasFrame(out, self.column)


class SeriesOrList:
    """A Series or any list-like: the result has the result columns alone."""

    def __init__(self, cells: Any) -> None:
        self.cells = cells
        self.index = cells.index if isinstance(cells, pd.Series) else pd.RangeIndex(len(cells))

    def values(self) -> Any:
        """The cells themselves."""
        return self.cells

    def names(self, prefix: str | None, columns: Sequence[Column]) -> list[Any]:
        """Prefix and name; the caller has no columns that could be overwritten."""
        return [(prefix or "") + c.name for c in columns]

    def attach(self, table: pa.Table, names: Sequence[Any], columns: Sequence[Column], note: dict[str, Any]) -> Any:
        """A frame of result columns with the Series' index."""
        made = {n: to_pandas(table, c, self.index) for n, c in zip(names, columns, strict=True)}
        out = pd.DataFrame(made, index=self.index)
        out.attrs[ATTRS_KEY] = {"": {**note, "columns": [str(n) for n in names]}}
        return out

    def repeat(self, rows: Positions, replaced: Positions, texts: Sequence[str]) -> DataKind:
        """A column alone cannot be exploded."""
        raise SettingsError("data is a column; give a frame and a column name, as Series.to_frame() makes")


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
        return names_by_labels(self.frame.column_names, self.column, prefix, columns)

    def attach(self, table: pa.Table, names: Sequence[Any], columns: Sequence[Column], note: dict[str, Any]) -> Any:
        """A table with the result columns appended; verdict and status are dictionary-encoded."""
        out = self.frame
        for name, column in zip(names, columns, strict=True):
            values = to_arrow(table, column)
            at = out.schema.get_field_index(name)
            out = out.append_column(name, values) if at < 0 else out.set_column(at, name, values)
        return out

    def repeat(self, rows: Positions, replaced: Positions, texts: Sequence[str]) -> DataKind:
        """The rows; a column with replaced cells is plain text."""
        out = self.frame.take(pa.array(rows))
        if len(replaced):
            at = out.schema.get_field_index(self.column)
            out = out.set_column(at, self.column, replace_texts(out.column(at), replaced, texts))
        return ArrowFrame(out, self.column)


class PolarsFrame:
    """A `polars.DataFrame` and one of its columns."""

    def __init__(self, frame: Any, column: str) -> None:
        self.frame, self.column = frame, column
        check_column(column, frame.columns)

    def values(self) -> Any:
        """The column as Arrow or Python values."""
        return polars_to_arrow(self.frame[self.column])

    def names(self, prefix: str | None, columns: Sequence[Column]) -> list[Any]:
        """Prefix and name."""
        return names_by_labels(self.frame.columns, self.column, prefix, columns)

    def attach(self, table: pa.Table, names: Sequence[Any], columns: Sequence[Column], note: dict[str, Any]) -> Any:
        """A frame with the result columns appended; verdict and status are categorical."""
        import polars  # noqa: PLC0415 - only for callers who brought a Polars frame

        arrays = [to_arrow(table, column).unify_dictionaries() for column in columns]
        made: Any = polars.from_arrow(pa.table(dict(zip(names, arrays, strict=True))))
        return self.frame.with_columns(made.get_columns())

    def repeat(self, rows: Positions, replaced: Positions, texts: Sequence[str]) -> DataKind:
        """The rows; a column with replaced cells is plain text."""
        import polars  # noqa: PLC0415 - only for callers who brought a Polars frame

        out = self.frame[rows.tolist()]
        if len(replaced):
            values = pa.chunked_array([out[self.column].cast(polars.String).to_arrow()])
            made: Any = polars.from_arrow(pa.table({self.column: replace_texts(values, replaced, texts)}))
            out = out.with_columns(made.get_columns())
        return PolarsFrame(out, self.column)


def replace_texts(values: pa.ChunkedArray, replaced: Positions, texts: Sequence[str]) -> pa.ChunkedArray:
    """A column of text with other texts at some positions."""
    kind = pa.string() if pa.types.is_dictionary(values.type) else values.type
    mask = np.zeros(len(values), np.bool_)
    mask[replaced] = True
    flat = values.cast(kind).combine_chunks()
    return pa.chunked_array([pc.replace_with_mask(flat, pa.array(mask), pa.array(texts, pa.string()).cast(kind))])


def add_columns(frame: pd.DataFrame, columns: Mapping[Any, Any]) -> pd.DataFrame:
    """A copy of the frame with columns added or replaced; changes to it do not change `frame`.

    Rows are matched by position. New columns come all at once, since one by one would fragment it.
    """
    existing = set(frame.columns)
    new = {name: values for name, values in columns.items() if name not in existing}
    out = pd.concat([frame, with_index_of(frame, new)], axis=1) if new else frame.copy()
    out.attrs = copy.deepcopy(frame.attrs)
    for name in existing.intersection(columns):
        out[name] = columns[name]
    return out


def with_index_of(frame: pd.DataFrame, new: Mapping[Any, Any]) -> pd.DataFrame:
    """Columns with the index of `frame`, and labels with as many levels as its own."""
    added = pd.DataFrame(dict(enumerate(new.values())), index=frame.index)
    added.columns = pd.Index(list(new), tupleize_cols=frame.columns.nlevels > 1)
    added.columns.names = frame.columns.names
    return added


def polars_to_arrow(series: Any) -> Any:
    """A Polars Series as an Arrow array, or as a list of Python objects for types that Arrow does not have."""
    return series.to_list() if series.dtype.is_nested() or str(series.dtype) == "Object" else series.to_arrow()


def names_by_labels(existing: Sequence[str], column: str, prefix: str | None, columns: Sequence[Column]) -> list[Any]:
    """Labels for kinds of frames without attrs."""
    names = [label_of(column, prefix, c.name) for c in columns]
    mine = result_columns(existing, column, prefix)
    check_names([name for name in names if name not in mine], existing)
    return names


def result_columns(existing: Sequence[Any], column: Hashable, prefix: str | None) -> set[Any]:
    """Labels of complete sets of result columns, which an earlier call wrote even if attrs were lost."""
    there = set(existing)
    sets = ({label_of(column, prefix, name) for name in each} for each in NAME_SETS)
    return set().union(*(each for each in sets if each <= there))


def read_notes(attrs: Mapping[Any, Any]) -> dict[str, Any]:
    """What earlier calls noted in a frame's `attrs`, by column."""
    notes = attrs.get(ATTRS_KEY)
    return {k: v for k, v in notes.items() if isinstance(v, dict)} if isinstance(notes, dict) else {}


def with_note(attrs: Mapping[Any, Any], column: Hashable, names: Sequence[Any], note: dict[str, Any]) -> dict[Any, Any]:
    """A copy of `attrs` that notes the result columns; JSON-ready."""
    notes = read_notes(attrs)
    earlier = notes.get(str(column), {})
    columns = dict.fromkeys([*earlier.get("columns", ()), *map(str, names)])
    return {**attrs, ATTRS_KEY: {**notes, str(column): {**earlier, **note, "columns": list(columns)}}}


def kind_of_data(data: Any, column: Hashable | None) -> DataKind:
    """Pick the kind; raise an error before any work if data and column do not fit together."""
    module = type(data).__module__.partition(".")[0]
    if isinstance(data, pd.DataFrame):
        return PandasFrame(data, require_column(column, list(data.columns)))
    if isinstance(data, pa.Table):
        return ArrowFrame(data, str(require_column(column, data.column_names)))
    if module == "polars" and type(data).__name__ == "LazyFrame":
        raise SettingsError("data is a lazy Polars frame: call .collect() first")
    if module == "polars" and type(data).__name__ == "DataFrame":
        return PolarsFrame(data, str(require_column(column, data.columns)))
    if column is not None:
        raise SettingsError(f"column={column!r} goes with a frame, but data is a {type(data).__name__}")
    return SeriesOrList(to_cells(data, module))


def to_cells(data: Any, module: str) -> Any:
    """A Series, an Arrow array, or a list of the items of any other iterable; a single text is an error."""
    if problem := problem_of(data):
        raise SettingsError(f"data is {problem}")
    if isinstance(data, pd.Series | pa.Array | pa.ChunkedArray | list):
        return data
    if module == "polars":
        return polars_to_arrow(data)
    is_typed = isinstance(data, pd.api.extensions.ExtensionArray | np.ndarray) and data.dtype.names is None
    is_plain_index = isinstance(data, pd.Index) and data.nlevels == 1
    return pd.Series(data).reset_index(drop=True) if is_typed or is_plain_index else list(data)


def problem_of(data: Any) -> str | None:
    """What is wrong with data that is not a column of cells, or None."""
    what = f"of type {type(data).__name__}"
    if isinstance(data, str):
        return f"{what}; give a list of addresses, or call mailverdict.check for one address"
    if isinstance(data, np.ndarray) and data.ndim != 1:
        return f"an array of {data.ndim} dimensions; give one column of it"
    if isinstance(data, set | frozenset):
        return f"{what}, which has no order; give sorted(data)"
    if isinstance(data, bytes | Mapping) or not hasattr(data, "__iter__") or hasattr(data, "columns"):
        return f"{what}; give a DataFrame (pandas, Polars or Arrow) and a column name, a Series or a list of addresses"
    return None


def require_column(column: Hashable | None, names: Sequence[Any]) -> Hashable:
    if column is None:
        raise ColumnError(f"give a column: one of {listed(names)}")
    return column


def check_names(names: Sequence[Any], existing: Sequence[Any]) -> None:
    """Raise an error if a column of the caller would be overwritten."""
    if taken := [name for name in names if name in existing]:
        raise SettingsError(
            f"the frame already has a column {taken[0]!r} that mailverdict did not write; "
            "give another prefix, or drop it"
        )
