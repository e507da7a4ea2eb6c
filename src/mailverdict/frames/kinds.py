"""The kinds of data a column can come in, and how the result columns are added beside it.

Each kind is one class with the methods of `DataKind`; `kind_of_data` picks it without importing a library that the
caller has not imported. Whatever has the Arrow PyCapsule interface is read as an Arrow table.
"""

from __future__ import annotations

import contextlib
import copy
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ColumnError, SettingsError
from ..model.table import one_array
from .cells import problem_of, to_cells
from .columns import (
    Column,
    check_column,
    listed,
    map_columns,
    to_arrow,
    to_pandas,
)
from .text_column import decode, is_list, is_octets, is_text

Positions = npt.NDArray[np.int64]
Frame = TypeVar("Frame")  # a pandas, Polars or Arrow frame, which comes back as the kind it came in
ATTRS_KEY = "mailverdict"  # key in `DataFrame.attrs` under which the result columns are noted
NOTES_KEY, PANDAS_ATTRS = b"mailverdict", b"PANDAS_ATTRS"  # keys in the metadata of an Arrow schema


class DataKind(Protocol):
    """What the rest of `frames` and `reports` needs to know about the caller's data."""

    frame: Any  # the caller's own object; an Arrow stream as the table that was read from it
    column: Any  # the label of the column

    def values(self) -> Any:
        """The cells of the column."""
        ...

    def labels(self) -> Sequence[Any]:
        """The labels of all columns."""
        ...

    def cells(self, label: Any) -> Any:
        """The cells of any column."""
        ...

    def notes(self) -> dict[str, Any]:
        """What earlier calls noted about the column."""
        ...

    def attach(self, table: pa.Table, names: Sequence[Any], columns: Sequence[Column], note: dict[str, Any]) -> Any:
        """The caller's kind of data with the result columns; the caller's own object is not changed."""
        ...

    def take(self, rows: Positions) -> Any:
        """The given rows of the caller's frame."""
        ...

    def repeat(self, rows: Positions, replaced: Positions, texts: Sequence[str]) -> DataKind:
        """The given rows of the data; at the positions `replaced` the cell of the column is one of `texts`."""
        ...

    def drop(self, labels: Sequence[Any]) -> DataKind:
        """The data without some columns."""
        ...

    def convert(self, table: pd.DataFrame) -> Any:
        """A table of counts as the caller's kind of frame; without an index, its labels are the first column."""
        ...


class FrameKind(ABC):
    """A frame and one of its columns: what does not depend on the library of the frame."""

    def __init__(self, frame: Any, column: Hashable) -> None:
        self.frame, self.column = frame, column
        check_column(column, self.labels())

    @abstractmethod
    def labels(self) -> Sequence[Any]:
        """The labels of all columns."""

    @abstractmethod
    def cells(self, label: Any) -> Any:
        """The cells of any column."""

    def all_notes(self) -> dict[str, Any]:
        """What earlier calls noted, by column; a Polars frame has no place for notes."""
        return {}

    def values(self) -> Any:
        """The cells of the column."""
        return self.cells(self.column)

    def notes(self) -> dict[str, Any]:
        """What earlier calls noted about the column."""
        notes: dict[str, Any] = self.all_notes().get(str(self.column), {})
        return notes


class PandasFrame(FrameKind):
    """A DataFrame and one of its columns."""

    frame: pd.DataFrame

    def labels(self) -> Sequence[Any]:
        """The labels of all columns."""
        return list(self.frame.columns)

    def cells(self, label: Any) -> Any:
        """A Series; found by position, since `frame[label]` may mean something else."""
        return self.frame.take([self.labels().index(label)], axis=1).squeeze(axis=1)

    def all_notes(self) -> dict[str, Any]:
        """What is in `attrs`."""
        return read_notes(self.frame.attrs)

    def attach(self, table: pa.Table, names: Sequence[Any], columns: Sequence[Column], note: dict[str, Any]) -> Any:
        """The rows keep their index, whatever is in it: results are added by position."""
        made = pandas_results(table, names, columns, self.frame.index)
        out = add_columns(self.frame, made)
        out.attrs = with_note(out.attrs, self.column, names, note)
        return out

    def take(self, rows: Positions) -> pd.DataFrame:
        """The rows with their index."""
        out = self.frame.take(rows)
        out.attrs = copy.deepcopy(self.frame.attrs)
        return out

    def repeat(self, rows: Positions, replaced: Positions, texts: Sequence[str]) -> DataKind:
        """The rows with their index; the column keeps its dtype if that can hold any text."""
        at = self.labels().index(self.column)
        out = self.take(rows)
        if len(replaced):
            cells = out.iloc[:, at]
            is_open = isinstance(cells.dtype, pd.StringDtype) or cells.dtype == object
            cells = cells.copy() if is_open else cells.astype(object)
            cells.iloc[replaced] = list(texts)
            out.isetitem(at, cells.array)
        return PandasFrame(out, self.column)

    def drop(self, labels: Sequence[Any]) -> DataKind:
        """The others keep their dtypes."""
        return PandasFrame(self.frame.drop(columns=list(labels)), self.column)

    def convert(self, table: pd.DataFrame) -> Any:
        """The table itself."""
        return table


def pandas_results(
    table: pa.Table, names: Sequence[Any], columns: Sequence[Column], index: pd.Index[Any]
) -> dict[Any, Any]:
    """The result columns as pandas arrays by label."""
    arrays = map_columns(lambda column: to_pandas(table, column, index), columns, len(table))
    return dict(zip(names, arrays, strict=True))


class ColumnAlone:
    """A Series or any list-like: the result is a pandas frame of the result columns alone."""

    maker = "pandas.DataFrame"  # what makes a frame of it
    column = ""

    def __init__(self, cells: Any) -> None:
        self.frame = cells
        self.index = cells.index if isinstance(cells, pd.Series) else pd.RangeIndex(len(cells))

    def values(self) -> Any:
        """The cells themselves."""
        return self.frame

    def labels(self) -> Sequence[Any]:
        """There are none."""
        return ()

    def cells(self, label: Any) -> Any:
        """A column alone has no others."""
        raise ColumnError(f"no column {label!r}: {self.advice()}")

    def notes(self) -> dict[str, Any]:
        """There are none."""
        return {}

    def attach(self, table: pa.Table, names: Sequence[Any], columns: Sequence[Column], note: dict[str, Any]) -> Any:
        """A frame of result columns with the Series' index."""
        made = pandas_results(table, names, columns, self.index)
        out = pd.DataFrame(made, index=self.index)
        out.attrs[ATTRS_KEY] = {"": {**note, "columns": [str(n) for n in names]}}
        return out

    def take(self, rows: Positions) -> Any:
        """A column alone has no rows to take."""
        raise SettingsError(self.advice())

    def repeat(self, rows: Positions, replaced: Positions, texts: Sequence[str]) -> DataKind:
        """A column alone cannot be exploded."""
        raise SettingsError(self.advice())

    def drop(self, labels: Sequence[Any]) -> DataKind:
        """A column alone has no others."""
        raise SettingsError(self.advice())

    def convert(self, table: pd.DataFrame) -> Any:
        """The table itself."""
        return table

    def advice(self) -> str:
        """How to make a frame of it."""
        return f"data is a column; give a frame and a column name, as {self.maker}({{'email': data}})"


class ArrowColumn(ColumnAlone):
    """An Arrow array: the result is an Arrow table of the result columns alone."""

    maker = "pyarrow.table"

    def attach(self, table: pa.Table, names: Sequence[Any], columns: Sequence[Column], note: dict[str, Any]) -> Any:
        """A table of result columns."""
        return annotate(arrow_results(table, names, columns), "", names, note)


class PolarsColumn(ColumnAlone):
    """A Polars Series: the result is a Polars frame of the result columns alone."""

    maker = "polars.DataFrame"

    def __init__(self, series: Any) -> None:
        super().__init__(polars_to_arrow(series))

    def attach(self, table: pa.Table, names: Sequence[Any], columns: Sequence[Column], note: dict[str, Any]) -> Any:
        """A frame of result columns."""
        return polars_results(table, names, columns)


class ArrowFrame(FrameKind):
    """A `pyarrow.Table` and one of its columns."""

    column: str

    def labels(self) -> Sequence[Any]:
        """The names of all columns."""
        names: list[str] = self.frame.column_names
        return names

    def cells(self, label: Any) -> Any:
        """A chunked array."""
        return self.frame[label]

    def all_notes(self) -> dict[str, Any]:
        """What is in the metadata of the schema."""
        return notes_of(self.frame.schema)

    def attach(self, table: pa.Table, names: Sequence[Any], columns: Sequence[Column], note: dict[str, Any]) -> Any:
        """A table with the result columns appended; verdict and status are dictionary-encoded."""
        out = self.frame
        for name, values in zip(names, arrow_results(table, names, columns).columns, strict=True):
            out = put_column(out, name, values)
        return annotate(out, self.column, names, note)

    def take(self, rows: Positions) -> pa.Table:
        """The rows."""
        wanted = pa.array(rows, pa.int64())
        try:
            return self.frame.take(wanted)
        except pa.ArrowNotImplementedError:
            columns = [take_cells(column, wanted) for column in self.frame.columns]
            return pa.Table.from_arrays(columns, schema=self.frame.schema)

    def repeat(self, rows: Positions, replaced: Positions, texts: Sequence[str]) -> DataKind:
        """The rows; a column with replaced cells is plain text."""
        out = self.take(rows)
        if len(replaced) or holds_lists(self.frame.schema.field(self.column).type):
            at = out.schema.get_field_index(self.column)
            out = out.set_column(at, self.column, with_texts_at(out.column(at), replaced, texts))
        return ArrowFrame(out, self.column)

    def drop(self, labels: Sequence[Any]) -> DataKind:
        """The others keep their types."""
        return ArrowFrame(self.frame.drop_columns(list(labels)), self.column)

    def convert(self, table: pd.DataFrame) -> Any:
        """An Arrow table."""
        return counts_to_arrow(table)


class PolarsFrame(FrameKind):
    """A `polars.DataFrame` and one of its columns."""

    column: str

    def labels(self) -> Sequence[Any]:
        """The names of all columns."""
        names: list[str] = self.frame.columns
        return names

    def cells(self, label: Any) -> Any:
        """An Arrow array or a list of Python objects."""
        return polars_to_arrow(self.frame[label])

    def attach(self, table: pa.Table, names: Sequence[Any], columns: Sequence[Column], note: dict[str, Any]) -> Any:
        """A frame with the result columns appended; verdict and status are categorical."""
        return self.frame.with_columns(polars_results(table, names, columns).get_columns())

    def take(self, rows: Positions) -> Any:
        """The rows; cells of Python objects one by one, since Polars 1.0 never returns from a selection of them."""
        objects = [cells for cells in self.frame if str(cells.dtype) == "Object"]
        if not objects:
            return self.frame[rows]
        others = self.frame.drop([cells.name for cells in objects])[rows]
        made = [type(cells)(cells.name, [cells[row] for row in rows.tolist()], cells.dtype) for cells in objects]
        return others.with_columns(made).select(self.frame.columns)

    def repeat(self, rows: Positions, replaced: Positions, texts: Sequence[str]) -> DataKind:
        """The rows; a column with replaced cells is plain text."""
        import polars  # noqa: PLC0415 - only for callers who brought a Polars frame

        out = self.take(rows)
        cells = out[self.column]
        are_lists = isinstance(cells.dtype, polars.List | polars.Array) and cells.dtype.inner == polars.String
        if len(replaced) or are_lists:
            if cells.dtype == polars.Object:
                changed = dict(zip(replaced.tolist(), texts, strict=True))
                items = [changed.get(row, cell) for row, cell in enumerate(cells.to_list())]
                made = polars.Series(self.column, items, dtype=polars.Object)
            else:
                cells = cells if are_lists or cells.dtype == polars.Binary else cells.cast(polars.String)
                made = polars.Series(self.column, with_texts_at(pa.chunked_array([cells.to_arrow()]), replaced, texts))
            out = out.with_columns(made)
        return PolarsFrame(out, self.column)

    def drop(self, labels: Sequence[Any]) -> DataKind:
        """The others keep their types."""
        return PolarsFrame(self.frame.drop(list(labels)), self.column)

    def convert(self, table: pd.DataFrame) -> Any:
        """A Polars frame."""
        import polars  # noqa: PLC0415 - only for callers who brought a Polars frame

        return polars.from_arrow(counts_to_arrow(table))


def take_cells(column: pa.ChunkedArray, rows: pa.Int64Array) -> pa.ChunkedArray:
    """Rows of a column of any type; for some types Arrow has no `take` (text views, which Polars gives)."""
    kind = column.type
    if pa.types.is_run_end_encoded(kind):
        return pc.run_end_encode(take_cells(pc.run_end_decode(column), rows), run_end_type=kind.run_end_type)
    try:
        return column.take(rows)
    except pa.ArrowNotImplementedError:
        if is_text(kind) or is_octets(kind):
            with contextlib.suppress(pa.ArrowNotImplementedError):  # in old pyarrow
                plain = pa.large_string() if is_text(kind) else pa.large_binary()
                return column.cast(plain).take(rows).cast(kind)
        cells = column.to_pylist()  # also a nested type with such a type in it
        return pa.chunked_array([pa.array([cells[row] for row in rows.to_pylist()], kind)])


def arrow_results(table: pa.Table, names: Sequence[Any], columns: Sequence[Column]) -> pa.Table:
    """The result columns as an Arrow table."""
    return pa.table([to_arrow(table, column) for column in columns], names=list(names))


def polars_results(table: pa.Table, names: Sequence[Any], columns: Sequence[Column]) -> Any:
    """The result columns as a Polars frame."""
    import polars  # noqa: PLC0415 - only for callers who brought Polars data

    return polars.from_arrow(arrow_results(table, names, columns).unify_dictionaries())


def counts_to_arrow(table: pd.DataFrame) -> pa.Table:
    """A table of counts, its index as the first column; texts have the type of text even where all are missing."""
    columns = dict(table.reset_index().items())
    return pa.table(
        {
            str(name): pa.array(values, pa.string() if values.dtype in (object, "str") else None, from_pandas=True)
            for name, values in columns.items()
        }
    )


def with_texts_at(values: pa.ChunkedArray, replaced: Positions, texts: Sequence[str]) -> pa.ChunkedArray:
    """A column of text with other texts at some positions; lists become text where they are replaced, else missing."""
    values = pa.nulls(len(values), pa.string()) if is_list(values.type) else decode(values)
    is_plain = pa.types.is_string(values.type) or pa.types.is_binary(values.type)
    kind = values.type if is_plain else pa.large_string() if is_text(values.type) else pa.large_binary()
    mask = np.zeros(len(values), np.bool_)
    mask[replaced] = True
    flat = one_array(values).cast(kind)
    return pa.chunked_array([pc.replace_with_mask(flat, pa.array(mask), pa.array(texts, pa.string()).cast(kind))])


def holds_lists(kind: pa.DataType) -> bool:
    """Whether the cells of a column are lists of texts."""
    if not is_list(kind):
        return False
    inner = kind.value_type
    return is_text(inner.value_type if pa.types.is_dictionary(inner) else inner)


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
    if series.dtype.is_nested() or str(series.dtype) == "Object":
        nulls = series.is_null().to_list()  # Polars 1.0 converts a null of type Struct to a mapping
        return [None if is_null else cell for cell, is_null in zip(series.to_list(), nulls, strict=True)]
    return series.to_arrow()


def read_notes(attrs: Mapping[Any, Any]) -> dict[str, Any]:
    """What earlier calls noted in a frame's `attrs`, by column."""
    notes = attrs.get(ATTRS_KEY)
    return {k: v for k, v in notes.items() if isinstance(v, dict)} if isinstance(notes, dict) else {}


def notes_of(schema: pa.Schema) -> dict[str, Any]:
    """What earlier calls noted in the metadata of an Arrow schema, or in `attrs` that pandas wrote to Parquet."""
    metadata = schema.metadata or {}
    return read_notes({ATTRS_KEY: read_json(metadata.get(NOTES_KEY))} | read_json(metadata.get(PANDAS_ATTRS)))


def annotate(table: pa.Table, column: str, names: Sequence[Any], note: dict[str, Any]) -> pa.Table:
    """The table with a note of the result columns in its metadata, which a Parquet or Feather file keeps."""
    metadata = dict(table.schema.metadata or {})
    attrs = with_note({ATTRS_KEY: notes_of(table.schema)}, column, names, note)
    metadata[NOTES_KEY] = json.dumps(attrs[ATTRS_KEY]).encode()
    if PANDAS_ATTRS in metadata:  # pandas restores `attrs` from here
        metadata[PANDAS_ATTRS] = json.dumps({**read_json(metadata[PANDAS_ATTRS]), **attrs}).encode()
    return table.replace_schema_metadata(metadata)


def read_json(text: bytes | None) -> dict[str, Any]:
    """A JSON object in the metadata of a schema; empty if it is not one."""
    try:
        found = json.loads(text or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def with_note(attrs: Mapping[Any, Any], column: Hashable, names: Sequence[Any], note: dict[str, Any]) -> dict[Any, Any]:
    """A copy of `attrs` that notes the result columns; JSON-ready."""
    notes = read_notes(attrs)
    earlier = notes.get(str(column), {})
    columns = dict.fromkeys([*earlier.get("columns", ()), *map(str, names)])
    return {**attrs, ATTRS_KEY: {**notes, str(column): {**earlier, **note, "columns": list(columns)}}}


def kind_of_data(data: Any, column: Hashable | None, *, is_verified: bool = False) -> DataKind:
    """Pick the kind; raise an error before any work if data and column do not fit together.

    With `is_verified` the error advises to give the result of `verify`.
    """
    data = read_stream(data)
    if isinstance(data, pd.DataFrame):
        return PandasFrame(data, require_column(column, list(data.columns)))
    if isinstance(data, pa.Table):
        return ArrowFrame(data, str(require_column(column, data.column_names)))
    if isinstance(data, pa.RecordBatchReader):
        name = str(require_column(column, data.schema.names))
        check_column(name, data.schema.names)  # before its rows are read, which works once
        return ArrowFrame(data.read_all(), name)
    if is_polars(data, "DataFrame"):
        return PolarsFrame(data, str(require_column(column, data.columns)))
    alone = column_alone(data, is_read=column is None)
    if column is not None:
        name = type(data).__name__
        is_column = isinstance(data, Sequence) or hasattr(data, "dtype") or hasattr(data, "type")
        maker = f"{alone.maker}({{{column!r}: data}})" if is_column else "one DataFrame, of several pandas.concat(data)"
        way = f"{maker}, or leave the column out"
        raise SettingsError(
            f"column={column!r} goes with a frame, but data is {'an' if name[0] in 'AEIOU' else 'a'} {name}: "
            f"give {'the frame that verify returned' if is_verified else way}"
        )
    return alone


def is_polars(data: Any, name: str) -> bool:
    """Whether data is of a class of Polars, which the caller may not have imported, or another thread imports now."""
    kind = getattr(sys.modules.get("polars"), name, None)
    return kind is not None and isinstance(data, kind)


def read_stream(data: Any) -> Any:
    """Data with the Arrow PyCapsule interface as a reader, table or array of pyarrow; any other data as it is.

    Raises an error for the frames of `OTHER_FRAMES`, which says what to call instead.
    """
    refuse_other_frames(data)
    kind = type(data)
    known: tuple[type, ...] = (pd.DataFrame, pd.Series, pd.Index, pa.Table, pa.Array, pa.ChunkedArray)
    if isinstance(data, known) or is_polars(data, "DataFrame") or is_polars(data, "Series"):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    is_stream = hasattr(kind, "__arrow_c_stream__")
    if not is_stream and not hasattr(kind, "__arrow_c_array__"):
        return data
    try:
        return pa.RecordBatchReader.from_stream(data) if is_stream else pa.table(data)
    except pa.ArrowInvalid:  # its type is not a struct: one column
        return pa.chunked_array(data) if is_stream else pa.array(data)


def refuse_other_frames(data: Any) -> None:
    """Raise an error that says what to call for frames that are on other machines, not computed, or cannot be read."""
    modules = {each.__module__.partition(".")[0] for each in type(data).__mro__}
    has_stream = hasattr(type(data), "__arrow_c_stream__") or hasattr(type(data), "__arrow_c_array__")
    for module, is_remote, what, way in OTHER_FRAMES:
        if module in modules and not isinstance(data, pd.DataFrame | pd.Series) and (is_remote or not has_stream):
            raise SettingsError(f"data is {what} of type {type(data).__name__}: {way}")
    if is_polars(data, "LazyFrame"):
        raise SettingsError("data is a lazy Polars frame: call .collect() first")


# The package of a class; whether its rows are on other machines or not computed, so that they are never read here;
# what it is; and what to call instead. Where the second is False, only old releases are refused: newer ones have the
# Arrow PyCapsule interface and are read.
OTHER_FRAMES = (
    ("dask", True, "a Dask collection", "call mailverdict.dask.verify or .plan, or give data.compute()"),
    ("dask_expr", True, "a Dask collection", "call mailverdict.dask.verify or .plan, or give data.compute()"),
    (
        "pyspark",
        True,
        "a Spark frame",
        "call mailverdict.spark.verify or .plan (pandas on Spark: with data.to_spark()), or give data.toPandas()",
    ),
    ("ray", True, "a Ray dataset", "give data.to_pandas()"),
    ("vaex", True, "a Vaex frame", "give data.to_pandas_df()"),
    ("modin", False, "a Modin frame", "give data.modin.to_pandas()"),
    ("duckdb", False, "a DuckDB relation", "give data.df()"),
    ("_duckdb", False, "a DuckDB relation", "give data.df()"),
)


def column_alone(data: Any, *, is_read: bool) -> ColumnAlone:
    """The kind of a column without a frame; without `is_read` an iterator is not read, and the column is empty."""
    if is_polars(data, "Series"):
        return PolarsColumn(data)
    if isinstance(data, pa.Array | pa.ChunkedArray):
        return ArrowColumn(data)
    if problem := problem_of(data):
        raise SettingsError(f"data is {problem}")
    if not is_read and not isinstance(data, Sequence):
        return ColumnAlone([])
    return ColumnAlone(to_cells(data))


def require_column(column: Hashable | None, names: Sequence[Any]) -> Hashable:
    if column is None:
        raise ColumnError(f"give a column: one of {listed(names)}")
    try:
        hash(column)
    except TypeError:  # an Index, an array, or a list where only one column is possible
        raise ColumnError(f"column is of type {type(column).__name__}: give one name of {listed(names)}") from None
    return column


def put_column(table: pa.Table, field: pa.Field | str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    """The table with a column added at its end, or in the place of the one with that name."""
    at = table.schema.get_field_index(field if isinstance(field, str) else field.name)
    return table.append_column(field, values) if at < 0 else table.set_column(at, field, values)
