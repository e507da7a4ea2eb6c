"""The caller's data as a `Table`: its columns, and how the result columns are added beside them.

`table_of` makes one without importing a library that the caller has not imported. Whatever has the
Arrow PyCapsule interface is read as an Arrow table.

    data                           library  cells of a column          results come back in
    pandas.DataFrame and "email"   pandas   a Series                   the DataFrame
    polars.DataFrame and "email"   polars   an Arrow array or a list   the DataFrame
    pyarrow.Table and "email"      arrow    a ChunkedArray             the Table
    ["ada@firm.com", ...]          pandas   the list                   a DataFrame of their own

What a call did is noted beside the results: in `DataFrame.attrs`, or in the metadata of an Arrow
schema.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
import os
import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ColumnError, InputError, SettingsError
from ..model.arrow import map_columns, one_array
from .cells import as_text, decode, is_list, is_missing, is_octets, is_text, to_array, where_filled
from .columns import (
    Column,
    check_column,
    listed,
    to_arrow,
    to_boolean,
    to_pandas,
    to_string,
)

Positions = npt.NDArray[np.int64]
Frame = TypeVar("Frame")  # a pandas, Polars or Arrow frame, which comes back as the kind it came in
ATTRS_KEY = "mailverdict"  # key in `DataFrame.attrs` under which the result columns are noted
# Keys in the metadata of an Arrow schema.
NOTES_KEY = b"mailverdict"
PANDAS_ATTRS = b"PANDAS_ATTRS"
# What is not read by the PyCapsule interface, though it may have it.
OWN_READING = (pd.DataFrame, pd.Series, pd.Index, pa.Table, pa.Array, pa.ChunkedArray)


class Table:
    """The caller's pandas, Polars or Arrow frame and one of its columns, or a column alone.

    A column alone has no other columns.

    The caller's own object is never changed. What differs between the libraries is in these methods
    only.
    """

    def __init__(self, frame: Any, column: Hashable = None, *, is_alone: bool = False) -> None:
        # The caller's own object; an Arrow stream as the table that was read from it.
        self.frame: Any = frame
        self.column: Any = "" if is_alone else column
        self.is_alone = is_alone
        self.library = library_of(frame)
        if not is_alone:
            check_column(column, self.labels())

    def labels(self) -> Sequence[Any]:
        """The labels of all columns."""
        if self.is_alone:
            return ()
        return labels_of(self.frame)

    def values(self) -> Any:
        """The cells of the column."""
        if not self.is_alone:
            return self.cells(self.column)
        if self.library == "polars":
            return polars_to_arrow(self.frame)
        return self.frame

    def cells(self, label: Any) -> Any:
        """The cells of any column: a Series, an Arrow array or a list of Python objects."""
        if self.is_alone:
            raise ColumnError(f"no column {label!r}: {self.advice()}")
        # By position: `frame[label]` may mean something else, or the label may occur twice.
        if self.library == "pandas":
            return self.frame.iloc[:, self.labels().index(label)]
        if self.library == "polars":
            return polars_to_arrow(self.frame[label])
        return self.frame.column(self.labels().index(label))

    def notes(self) -> dict[str, Any]:
        """What earlier calls noted about the column; a Polars frame has no place for notes."""
        if self.is_alone:
            return {}
        by_column = notes_of(self.frame)
        notes: dict[str, Any] = by_column.get(str(self.column), {})
        return notes

    def attach(
        self, table: pa.Table, names: Sequence[Any], columns: Sequence[Column], note: dict[str, Any]
    ) -> Any:
        """The frame with the result columns, or a frame of them beside a column alone.

        Rows match by position.
        """
        if self.library == "pandas":
            return self.attach_pandas(table, names, columns, note)
        arrays = [to_arrow(table, column) for column in columns]
        results = pa.table(arrays, names=list(names))
        if self.library == "polars":
            frame = polars_of(results.unify_dictionaries())
            if self.is_alone:
                return frame
            return self.frame.with_columns(frame.get_columns())
        whole = self.frame
        if self.is_alone:
            whole = results
        for name, values in zip(names, results.columns, strict=True):
            whole = put_column(whole, name, values)
        return annotate(whole, self.column, names, note)

    def attach_pandas(
        self, table: pa.Table, names: Sequence[Any], columns: Sequence[Column], note: dict[str, Any]
    ) -> pd.DataFrame:
        index: pd.Index[Any] = pd.RangeIndex(len(self.frame))
        if isinstance(self.frame, pd.DataFrame | pd.Series):
            index = self.frame.index

        def make(column: Column) -> Any:
            return to_pandas(table, column, index)

        arrays = map_columns(make, columns, len(table))
        results = dict(zip(names, arrays, strict=True))
        if self.is_alone:
            out = pd.DataFrame(results, index=index)
        else:
            out = add_columns(self.frame, results)
        out.attrs = with_note(out.attrs, self.column, names, note)
        return out

    def take(self, rows: Positions) -> Any:
        """The given rows of the caller's frame, with their index."""
        if self.is_alone:
            raise SettingsError(self.advice())
        if self.library == "polars":
            return self.frame[rows]
        if self.library == "arrow":
            taken = pa.array(rows, pa.int64())
            columns = [take_cells(column, taken) for column in self.frame.columns]
            return pa.Table.from_arrays(columns, schema=self.frame.schema)
        out = self.frame.take(rows)
        out.attrs = copy.deepcopy(self.frame.attrs)
        return out

    def repeat(self, rows: Positions, replaced: Positions, texts: Sequence[str]) -> Table:
        """The given rows; at the positions `replaced` the cell of the column is one of `texts`.

        In pandas the column keeps its dtype if that can hold any text; elsewhere it is plain text
        then, also lists are.
        """
        out = self.take(rows)
        if self.library == "pandas" and len(replaced):
            position = self.labels().index(self.column)
            cells = out.iloc[:, position]
            if isinstance(cells.dtype, pd.StringDtype) or cells.dtype == object:
                cells = cells.copy()
            else:
                cells = cells.astype(object)
            cells.iloc[replaced] = list(texts)
            out.isetitem(position, cells.array)
        elif self.library == "arrow":
            column = out[self.column]
            if len(replaced) or is_list(decode(column).type):
                cells = with_texts_at(column, replaced, texts)
                out = put_column(out, self.column, cells)
        elif self.library == "polars":
            cells = replace_polars(out[self.column], replaced, texts)
            out = out.with_columns(cells)
        return Table(out, self.column)

    def drop(self, labels: Sequence[Any]) -> Table:
        """The data without some columns."""
        if self.library == "pandas":
            frame = self.frame.drop(columns=list(labels))
        else:
            frame = self.frame.drop(list(labels))
        return Table(frame, self.column)

    def convert(self, table: pd.DataFrame) -> Any:
        """A table of counts as the caller's kind of frame.

        Without an index, its labels are the first column.
        """
        if self.library == "pandas":
            return table
        counts = counts_to_arrow(table)
        if self.library == "polars":
            return polars_of(counts)
        return counts

    def advice(self) -> str:
        """How to make a frame of a column alone."""
        maker = f"{MAKERS[self.library]}({{'email': data}})"
        return f"data is a column; give a frame and a column name, as {maker}"


MAKERS = {"pandas": "pandas.DataFrame", "arrow": "pyarrow.table", "polars": "polars.DataFrame"}


def library_of(data: Any) -> str:
    """The library whose frame the results are in: that of the data, pandas for lists."""
    if isinstance(data, pa.Table | pa.Array | pa.ChunkedArray):
        return "arrow"
    if is_polars(data, "DataFrame") or is_polars(data, "Series"):
        return "polars"
    return "pandas"


def replace_polars(cells: Any, replaced: Positions, texts: Sequence[str]) -> Any:
    """A Polars column with other texts at some positions."""
    import polars  # noqa: PLC0415 - only for callers who brought a Polars frame

    if not len(replaced) and not isinstance(cells.dtype, polars.List | polars.Array):
        return cells
    values = pa.chunked_array([to_array(polars_to_arrow(cells))])
    return polars.Series(cells.name, with_texts_at(values, replaced, texts))


def take_cells(column: pa.ChunkedArray, rows: pa.Int64Array) -> pa.ChunkedArray:
    """Rows of a column of any type.

    For some types Arrow has no `take` (text views, which Polars gives).
    """
    kind = column.type
    if pa.types.is_run_end_encoded(kind):
        taken = take_cells(pc.run_end_decode(column), rows)
        return pc.run_end_encode(taken, run_end_type=kind.run_end_type)
    try:
        return column.take(rows)
    except pa.ArrowNotImplementedError:
        if is_text(kind):
            return column.cast(pa.large_string()).take(rows).cast(kind)
        if is_octets(kind):
            return column.cast(pa.large_binary()).take(rows).cast(kind)
        cells = column.to_pylist()  # also a nested type with such a type in it
        taken = pa.array([cells[row] for row in rows.to_pylist()], kind)
        return pa.chunked_array([taken])


def polars_of(table: pa.Table) -> Any:
    """An Arrow table as a Polars frame."""
    import polars  # noqa: PLC0415 - only for callers who brought Polars data

    return polars.from_arrow(table)


def counts_to_arrow(table: pd.DataFrame) -> pa.Table:
    """A table of counts, its index as the first column.

    Texts have the type of text even where all are missing.
    """
    columns = {}
    for name, values in table.reset_index().items():
        kind = None
        if values.dtype in (object, "str"):
            kind = pa.string()
        columns[str(name)] = pa.array(values, kind, from_pandas=True)
    return pa.table(columns)


def with_texts_at(
    values: pa.ChunkedArray, replaced: Positions, texts: Sequence[str]
) -> pa.ChunkedArray:
    """A column with other texts at some positions.

    One that is not text becomes it, as its cells are read.
    """
    values = decode(values)
    if not is_text(values.type) and not is_octets(values.type):
        written = as_text(values)
        values = where_filled(written, written)
    kind = values.type
    is_plain = pa.types.is_string(kind) or pa.types.is_binary(kind)
    if is_octets(kind) and not is_plain:
        kind = pa.large_binary()
    elif not is_plain:
        kind = pa.large_string()
    mask = np.zeros(len(values), np.bool_)
    mask[replaced] = True
    cells = one_array(values).cast(kind)
    others = pa.array(texts, pa.string()).cast(kind)
    cells = pc.replace_with_mask(cells, pa.array(mask), others)
    return pa.chunked_array([cells])


def add_columns(frame: pd.DataFrame, columns: Mapping[Any, Any]) -> pd.DataFrame:
    """A copy of the frame with columns added or replaced; changes to it do not change `frame`.

    Rows are matched by position. New columns come all at once, since one by one would fragment it.
    """
    new = dict(columns)
    replaced = {}
    for name in set(frame.columns).intersection(columns):
        replaced[name] = new.pop(name)
    if new:
        added = with_index_of(frame, new)
        out = pd.concat([frame, added], axis=1)
    else:
        out = frame.copy()
    out.attrs = copy.deepcopy(frame.attrs)
    for name, values in replaced.items():
        out[name] = values
    return out


def with_index_of(frame: pd.DataFrame, new: Mapping[Any, Any]) -> pd.DataFrame:
    """Columns with the index of `frame`, and labels with as many levels as its own."""
    labels = frame.columns
    by_position = dict(enumerate(new.values()))
    added = pd.DataFrame(by_position, index=frame.index)
    added.columns = pd.Index(list(new), tupleize_cols=labels.nlevels > 1)
    added.columns.names = labels.names
    return added


def polars_to_arrow(series: Any) -> Any:
    """A Polars Series as an Arrow array.

    It is a list of Python objects for types that Arrow does not have.
    """
    if series.dtype.is_nested() or str(series.dtype) == "Object":
        return series.to_list()
    return series.to_arrow()


def read_notes(attrs: Mapping[Any, Any]) -> dict[str, Any]:
    """What earlier calls noted in a frame's `attrs`, by column."""
    notes = attrs.get(ATTRS_KEY)
    if not isinstance(notes, dict):
        return {}
    return {column: note for column, note in notes.items() if isinstance(note, dict)}


def labels_of(frame: Any) -> list[Any]:
    """The labels of all columns of a frame."""
    if isinstance(frame, pa.Table):
        return list(frame.column_names)
    return list(frame.columns)


def notes_of(frame: Any) -> dict[str, Any]:
    """What earlier calls noted in a frame, by column.

    Of Arrow also in `attrs` that pandas wrote to Parquet.
    """
    if not isinstance(frame, pa.Table):
        return read_notes(getattr(frame, "attrs", {}))
    metadata = frame.schema.metadata or {}
    ours = read_json(metadata.get(NOTES_KEY))
    of_pandas = read_json(metadata.get(PANDAS_ATTRS))
    return read_notes({ATTRS_KEY: ours} | of_pandas)


def annotate(table: pa.Table, column: str, names: Sequence[Any], note: dict[str, Any]) -> pa.Table:
    """The table with a note of the result columns in its metadata.

    A Parquet or Feather file keeps it.
    """
    metadata = dict(table.schema.metadata or {})
    earlier = {ATTRS_KEY: notes_of(table)}
    attrs = with_note(earlier, column, names, note)
    metadata[NOTES_KEY] = json.dumps(attrs[ATTRS_KEY]).encode()
    if PANDAS_ATTRS in metadata:  # pandas restores `attrs` from here
        restored = read_json(metadata[PANDAS_ATTRS]) | attrs
        metadata[PANDAS_ATTRS] = json.dumps(restored).encode()
    return table.replace_schema_metadata(metadata)


def read_json(text: bytes | None) -> dict[str, Any]:
    """A JSON object in the metadata of a schema; empty if it is not one."""
    try:
        value = json.loads(text or b"{}")
    except ValueError:
        return {}
    if not isinstance(value, dict):
        return {}
    return value


def with_note(
    attrs: Mapping[Any, Any], column: Hashable, names: Sequence[Any], note: dict[str, Any]
) -> dict[Any, Any]:
    """A copy of `attrs` that notes the result columns; JSON-ready."""
    notes = read_notes(attrs)
    earlier = notes.get(str(column), {})
    columns = list(earlier.get("columns", ()))
    columns += map(str, names)
    distinct = list(dict.fromkeys(columns))
    notes[str(column)] = {**earlier, **note, "columns": distinct}
    return {**attrs, ATTRS_KEY: notes}


def frame_of(data: Any, advice: str = "give the frame that verify returned") -> Any:
    """A frame of any kind without a column of its own; an error for anything else."""
    data = read_stream(data)
    if isinstance(data, pa.RecordBatchReader):
        data = data.read_all()
    if isinstance(data, pd.DataFrame | pa.Table) or is_polars(data, "DataFrame"):
        return data
    raise SettingsError(f"data is of type {type(data).__name__}: {advice}")


def table_of(data: Any, column: Hashable | None, *, is_verified: bool = False) -> Table:
    """The data and its column; raises an error before any work if they do not fit together.

    With `is_verified` the error advises to give the result of `verify`.
    """
    data = read_stream(data)
    if isinstance(data, pa.RecordBatchReader):
        names = data.schema.names  # checked before the rows are read, which come once
        label = require_column(column, names)
        check_column(str(label), names)
        data = data.read_all()
    if isinstance(data, pd.DataFrame | pa.Table) or is_polars(data, "DataFrame"):
        label = require_column(column, labels_of(data))
        if not isinstance(data, pd.DataFrame):
            label = str(label)
        return Table(data, label)
    alone = column_alone(data, is_read=column is None)
    if column is None:
        return alone
    name = type(data).__name__
    article = "an" if name[0] in "AEIOU" else "a"
    if is_verified:
        way = "the frame that verify returned"
    elif isinstance(data, Sequence) or hasattr(data, "dtype") or hasattr(data, "type"):
        way = f"{MAKERS[alone.library]}({{{column!r}: data}}), or leave the column out"
    else:
        way = "one DataFrame, of several pandas.concat(data), or leave the column out"
    raise SettingsError(
        f"column={column!r} goes with a frame, but data is {article} {name}: give {way}"
    )


def is_polars(data: Any, name: str) -> bool:
    """Whether data is of a class of Polars.

    The caller may not have imported it, or another thread imports it now.
    """
    kind = getattr(sys.modules.get("polars"), name, None)
    return kind is not None and isinstance(data, kind)


def read_stream(data: Any) -> Any:
    """Data with the Arrow PyCapsule interface as a reader, table or array of pyarrow.

    Any other data stays as it is.

    Raises an error for the frames of `OTHER_FRAMES`, which says what to call instead.
    """
    refuse_other_frames(data)
    if isinstance(data, OWN_READING) or is_polars(data, "DataFrame") or is_polars(data, "Series"):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if hasattr(type(data), "__arrow_c_stream__"):
        try:
            return pa.RecordBatchReader.from_stream(data)
        except pa.ArrowInvalid:  # its type is not a struct: one column
            return pa.chunked_array(data)
    if hasattr(type(data), "__arrow_c_array__"):
        try:
            return pa.table(data)
        except pa.ArrowInvalid:
            return pa.array(data)
    return data


def refuse_other_frames(data: Any) -> None:
    """Raise an error for frames that are on other machines or not computed.

    It says what to call.
    """
    modules = {base.__module__.partition(".")[0] for base in type(data).__mro__}
    for module, what, way in OTHER_FRAMES:
        if module in modules and not isinstance(data, pd.DataFrame | pd.Series):
            raise SettingsError(f"data is {what} of type {type(data).__name__}: {way}")
    if is_polars(data, "LazyFrame"):
        raise SettingsError("data is a lazy Polars frame: call .collect() first")


FILE_ENDINGS = (".csv", ".tsv", ".txt", ".gz", ".parquet", ".json", ".xlsx", ".xls", ".ods")
# The package of a class, what it is, and what to call instead.
OTHER_FRAMES = (
    ("dask", "a Dask collection", "call mailverdict.dask.verify or .plan, or give data.compute()"),
    (
        "pyspark",
        "a Spark frame",
        "call mailverdict.spark.verify or .plan (pandas on Spark: with data.to_spark()), or give "
        "data.toPandas()",
    ),
)


def column_alone(data: Any, *, is_read: bool) -> Table:
    """A column without a frame.

    Without `is_read` an iterator is not read, and the column is empty.
    """
    if library_of(data) != "pandas":
        return Table(data, is_alone=True)
    problem = problem_of(data)
    if problem is not None:
        raise SettingsError(f"data is {problem}")
    cells = []
    if is_read or isinstance(data, Sequence):
        cells = to_cells(data)
    return Table(cells, is_alone=True)


def to_cells(data: Any) -> Any:
    """A Series as it is, or the items of any other iterable."""
    if isinstance(data, pd.Series):
        return data
    if isinstance(data, pd.api.extensions.ExtensionArray | np.ndarray | pd.Index):
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
    """Raise an error if the items are not cells, but rows or frames.

    A few among others are cells.
    """
    example = None
    for cell in cells:
        if is_missing(cell):
            continue
        if not is_row(cell):
            return
        if example is None:
            example = cell
    if example is not None:
        raise InputError(
            f"data consists of rows or frames (of type {type(example).__name__}), not of cells: "
            "give one DataFrame and a column name, or the cells, as [row[0] for row in data]"
        )


def is_row(item: Any) -> bool:
    if isinstance(item, str | bytes):
        return False
    has_parts = hasattr(item, "__iter__") or hasattr(item, "columns")
    return has_parts or dataclasses.is_dataclass(item) or isinstance(item, np.void)


def problem_of(data: Any) -> str | None:
    """What is wrong with data that is not a column of cells, or None."""
    what = f"of type {type(data).__name__}"
    if is_file_name(data):
        name = str(data)[:200]
        return (
            f"the name of a file, {name!r}: read it first, as with pandas.read_csv, "
            f"or use the command line: mailverdict verify {name}"
        )
    if isinstance(data, str):
        return f"{what}; give a list of addresses, or call mailverdict.check for one address"
    if isinstance(data, set | frozenset):
        return f"{what}, which has no order; give sorted(data)"
    is_octets_or_mapping = isinstance(data, bytes | bytearray | memoryview | Mapping)
    is_iterable = hasattr(data, "__iter__") and not is_octets_or_mapping
    dtype = getattr(data, "dtype", None)
    has_fields = getattr(dtype, "names", None) is not None
    is_wide = has_fields or getattr(data, "ndim", 1) != 1 or getattr(data, "nlevels", 1) > 1
    is_table = hasattr(data, "columns") or hasattr(data, "to_table")
    if is_iterable and not is_wide and not is_table:
        return None
    return (
        f"{what}; give a DataFrame (pandas, Polars or Arrow) and a column name, "
        "a Series or a list of addresses"
    )


def is_file_name(data: Any) -> bool:
    """Whether data is a path, or text with the ending of a table file."""
    if isinstance(data, os.PathLike):
        return True
    return isinstance(data, str) and "@" not in data and data.lower().endswith(FILE_ENDINGS)


def require_column(column: Hashable | None, names: Sequence[Any]) -> Hashable:
    if column is None:
        raise ColumnError(f"give a column: one of {listed(names)}")
    try:
        hash(column)
    except TypeError:  # an Index, an array, or a list where only one column is possible
        raise ColumnError(
            f"column is of type {type(column).__name__}: give one name of {listed(names)}"
        ) from None
    return column


def put_column(
    table: pa.Table, field: pa.Field | str, values: pa.Array | pa.ChunkedArray
) -> pa.Table:
    """The table with a column added at its end, or in the place of the one with that name."""
    name = field if isinstance(field, str) else field.name
    position = table.schema.get_field_index(name)
    if position < 0:
        return table.append_column(field, values)
    return table.set_column(position, field, values)


def to_series(values: Any) -> pd.Series[Any]:
    """The cells of a column as a pandas Series with rows numbered from 0."""
    if isinstance(values, pd.Series):
        return values.reset_index(drop=True)
    if isinstance(values, list):
        return pd.Series(values, dtype=object)
    column = values
    if not isinstance(values, pa.ChunkedArray):
        column = pa.chunked_array([values])
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_boolean(column.type):
        return pd.Series(to_boolean(column))
    if is_text(column.type):
        return pd.Series(to_string(column))
    return pd.Series(column.to_pandas())
