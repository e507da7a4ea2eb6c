"""Table files in Arrow's types: Parquet, folders of Parquet files, Feather and other Arrow files.

A file of a few kilobytes may hold gigabytes of text, since it can have a text once for many rows:

    dictionary ["a long text", "b"], indices [0, 0, 0, 1, 0 ...]

So batches are read as they are kept, and cut where they would become more than `PIECE_OCTETS`
(`parts_of`), before they become texts. `TypedFile` gives them as pieces; `TypedWriter` writes such
files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.ipc
import pyarrow.parquet

from ..errors import InputError
from ..model.words import count_of, first_of
from .arrow_messages import check_batches
from .table_file import CELL_MARK, JSON_MARK, PIECE_ROWS, TableFile, first_line

# The batches of a file, at least with the columns of some names; None: with all.
Scan = Callable[[Sequence[str] | None], Iterator[pa.RecordBatch]]
PIECE_OCTETS = 64 * 2**20  # of a piece of a Parquet file, about
SHORT_PIECE = 256  # rows that are read at least, if their texts may be long and commonly are short
VALUE_OCTETS = 8  # of a number, or of the place of a text
PARQUET_ENDINGS = (".parquet", ".pq")
SHOWN = 3  # names in a message
# Values that may be long, and of which Parquet may keep each one once.
TEXT_TYPES = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
)
# What is in the folder of a table whose log decides which of its files count: the others have old
# or deleted rows.
TABLE_LOGS = (
    ("_delta_log", "a Delta table", "deltalake.DeltaTable(path).to_pyarrow_table()"),
    (".hoodie", "a Hudi table", "spark.read.format('hudi').load(path)"),
    (
        "metadata/*.metadata.json",
        "an Iceberg table",
        "pyiceberg's StaticTable.from_metadata(file).scan().to_arrow()",
    ),
)


class TypedFile(TableFile):
    """A table in Arrow's types."""

    def __init__(self, path: Path, name: str, schema: pa.Schema, scan: Scan) -> None:
        super().__init__(path, name, schema)
        self.scan = scan
        self.is_unique = len(set(schema.names)) == len(schema)

    def read(
        self, only: Collection[str] | None = None, *, with_lines: bool = False
    ) -> Iterator[pa.Table]:
        used = self.positions(only)
        names = None
        keys: list[Any] = used  # of the columns of a batch
        if self.is_unique:  # else they choose nothing: all columns are read
            names = [self.columns[position] for position in used]
            keys = names
        for batch in self.scan(names):
            for start in range(0, len(batch), PIECE_ROWS):
                part = batch.slice(start, PIECE_ROWS)
                columns = map(part.column, keys)
                cells = dict(zip(used, columns, strict=True))
                yield self.piece(cells, len(part))


def open_parquet(path: Path, name: str) -> TypedFile:
    return TypedFile(path, name, pyarrow.parquet.read_schema(path), partial(parquet_batches, path))


def parquet_batches(path: Path, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    """Batches of at most `PIECE_ROWS` rows and about `PIECE_OCTETS` octets."""
    with pyarrow.parquet.ParquetFile(path) as file:
        metadata = file.metadata
        schema = file.schema_arrow
    texts = {field.name for field in schema if is_text(field.type)}
    texts -= delta_columns(metadata)
    with pyarrow.parquet.ParquetFile(path, read_dictionary=sorted(texts)) as reader:
        for group in range(metadata.num_row_groups):
            rows = rows_at_once(metadata.row_group(group), columns, texts)
            batches = reader.iter_batches(batch_size=rows, row_groups=[group], columns=columns)
            for batch in batches:
                if not batch.num_columns:
                    yield batch
                    continue
                kinds = pa.schema([schema.field(name) for name in batch.schema.names])
                for part in parts_of(batch):
                    yield part.cast(kinds)


def delta_columns(metadata: Any) -> set[str]:
    """The columns whose texts are kept without the beginning of the one before.

    Arrow reads them only as texts.
    """
    names = set()
    for group in range(metadata.num_row_groups):
        for position in range(metadata.num_columns):
            column = metadata.row_group(group).column(position)
            if any("DELTA" in encoding for encoding in column.encodings):
                names.add(column.path_in_schema)
    return names


def is_text(kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in TEXT_TYPES)


def rows_at_once(group: Any, columns: Sequence[str] | None, texts: Collection[str]) -> int:
    """How many rows of a row group have about `PIECE_OCTETS` octets, by its metadata."""
    octets = 1
    longest = 1  # a text has at most as many octets as the pages of its column
    for position in range(group.num_columns):
        column = group.column(position)
        root = column.path_in_schema.partition(".")[0]
        if columns is not None and root not in columns:
            continue
        octets += column.num_values * VALUE_OCTETS
        if not column.physical_type.endswith("BYTE_ARRAY"):
            continue
        octets += column.total_uncompressed_size
        if column.path_in_schema not in texts:  # read as what they become
            longest += column.total_uncompressed_size
    rows: int = min(PIECE_OCTETS * group.num_rows // octets, PIECE_ROWS)
    if longest > 1:
        rows = min(rows, max(PIECE_OCTETS // longest, SHORT_PIECE))
    return max(rows, 1)


def parts_of(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch in parts of about `PIECE_OCTETS` octets of text that is kept once for many rows."""
    octets = np.zeros(len(batch), np.int64)
    for column in batch.columns:
        octets += shared_octets(column)
    parts = np.cumsum(octets) // PIECE_OCTETS
    _, starts = np.unique(parts, return_index=True)
    borders = [*starts.tolist(), len(batch)]
    for start, end in pairwise(borders):
        yield batch.slice(start, end - start)


def shared_octets(column: pa.Array) -> Any:
    """The octets of each row's text, if one text is kept for many rows; else 0."""
    kind = column.type
    size = len(column)
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        # Each view has four numbers; the first is the length.
        numbers = np.frombuffer(column.buffers()[1], np.int32)
        lengths = numbers[0::4]
        return lengths[column.offset : column.offset + size]
    is_dictionary = pa.types.is_dictionary(kind)
    is_runs = pa.types.is_run_end_encoded(kind)
    if not (is_dictionary or is_runs) or not is_text(kind.value_type):
        return 0
    if is_dictionary:
        lengths = pc.binary_length(column.dictionary).take(column.indices)
    else:
        runs = pc.binary_length(column.values)
        encoded = pa.RunEndEncodedArray.from_arrays(column.run_ends, runs)
        lengths = pc.run_end_decode(encoded).slice(column.offset, size)
    return lengths.cast(pa.int64()).fill_null(0).to_numpy()


def open_parquet_folder(path: Path, name: str) -> TypedFile:
    """The Parquet files in a folder and below it, in the order of their names, as one table.

    Names of folders as ``country=de`` are a column, as Hive and Spark write them. Files and folders
    whose names begin with a dot or an underscore are not part of the table.
    """
    check_no_log(path, name)
    files: list[Path] = []
    others = []
    for file in sorted(path.rglob("*")):
        relative = file.relative_to(path)
        if not file.is_file() or is_hidden(relative):
            continue
        if file.suffix.lower() in PARQUET_ENDINGS:
            files.append(file)
        else:
            others.append(str(relative))
    if not files:
        raise InputError(f"{name} is a directory without Parquet files; give a file")
    open_files = partial(
        pyarrow.dataset.dataset,
        list(map(str, files)),
        format="parquet",
        partitioning="hive",
        partition_base_dir=str(path),
    )
    # The schema of the first file alone would leave out the columns that only others have.
    schemas = [read_schema(file, name) for file in files]
    try:
        schema = pa.unify_schemas([*schemas, open_files().schema], promote_options="permissive")
    except pa.ArrowException as exc:
        raise InputError(
            f"{name}: its files have different types for a column: {first_line(exc)}"
        ) from exc
    dataset = open_files(schema)

    def scan(columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        wanted = pa.schema([schema.field(name) for name in columns or schema.names])
        for fragment in dataset.get_fragments():
            keys = pyarrow.dataset.get_partition_keys(fragment.partition_expression)
            in_file = set(fragment.physical_schema.names).difference(keys)
            names = [name for name in wanted.names if name in in_file]
            for batch in parquet_batches(Path(fragment.path), names):
                yield complete_batch(batch, wanted, keys)

    opened = TypedFile(path, name, schema.remove_metadata(), scan)
    opened.remarks += folder_remarks(schema.names, schemas, others)
    return opened


def complete_batch(
    batch: pa.RecordBatch, schema: pa.Schema, keys: Mapping[str, Any]
) -> pa.RecordBatch:
    """A batch of a file with all columns of the table.

    The name of a folder has the others, by `keys`, or only other files: then they are null.
    """
    arrays = []
    for field in schema:
        if field.name in batch.schema.names:
            values = batch.column(field.name).cast(field.type)
        else:
            value = pa.scalar(keys.get(field.name)).cast(field.type)
            values = pa.repeat(value, len(batch))
        arrays.append(values)
    return pa.record_batch(arrays, schema=schema)


def open_arrow(path: Path, name: str) -> TypedFile:
    """An Arrow IPC file (Feather, version 2) or stream."""

    def open_ipc(source: Any) -> Any:
        start = source.read(6)
        source.seek(0)
        if start.startswith(b"FEA1"):
            raise InputError(
                f"{name} is Feather version 1, which is not supported; write it again as version 2"
            )
        if start == b"ARROW1":
            return pa.ipc.open_file(source)
        return pa.ipc.open_stream(source)

    with pa.OSFile(str(path)) as source:
        written = open_ipc(source).schema
    check_batches(path, name)
    schema = pa.schema([without_runs(field) for field in written], written.metadata)

    def scan(columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        with pa.OSFile(str(path)) as source:
            reader = open_ipc(source)
            batches = reader
            if isinstance(reader, pa.ipc.RecordBatchFileReader):
                numbers = range(reader.num_record_batches)
                batches = map(reader.get_batch, numbers)
            for batch in batches:
                # A damaged batch has places outside of its texts, which Arrow would read, too.
                batch.validate(full=True)
                if columns is not None:
                    batch = batch.select(columns)  # noqa: PLW2901
                for part in parts_of(batch):
                    yield decode_runs(part, schema)

    return TypedFile(path, name, schema, scan)


def without_runs(field: pa.Field) -> pa.Field:
    """A field of run-end encoded values as one of the values, which every writer knows."""
    if pa.types.is_run_end_encoded(field.type):
        return field.with_type(field.type.value_type)
    return field


def decode_runs(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    fields = [without_runs(field) for field in batch.schema]
    arrays = []
    for column in batch.columns:
        if pa.types.is_run_end_encoded(column.type):
            column = pc.run_end_decode(column)  # noqa: PLW2901
        arrays.append(column)
    return pa.record_batch(arrays, schema=pa.schema(fields, schema.metadata))


def check_no_log(path: Path, name: str) -> None:
    """Raise `InputError` for the folder of a table of which only some files count."""
    for log, kind, way in TABLE_LOGS:
        if any(path.glob(log)):
            raise InputError(
                f"{name} is {kind}, whose folder also has the files of deleted rows: read it with "
                f"{way}, and give mailverdict that frame or a Parquet file of it"
            )


def folder_remarks(
    columns: Sequence[str], schemas: Sequence[pa.Schema], others: Sequence[str]
) -> Iterator[str]:
    """What a user should know: how many files, columns that some do not have, other files."""
    yield count_of(len(schemas), "Parquet file")
    files: Counter[str] = Counter()  # that have a column
    for schema in schemas:
        files.update(schema.names)
    incomplete = [repr(column) for column in columns if 0 < files[column] < len(schemas)]
    if incomplete:
        shown = first_of(incomplete, SHOWN)
        yield f"not every file has {shown}: in the rows of the others it is empty"
    if others:
        count = count_of(
            len(others), "other file in the folder is", "other files in the folder are"
        )
        shown = first_of(list(map(repr, others)), SHOWN)
        yield f"{count} not read: {shown}"


def read_schema(path: Path, name: str) -> pa.Schema:
    try:
        return pyarrow.parquet.read_schema(path).remove_metadata()
    except (pa.ArrowException, OSError) as exc:
        raise InputError(f"{name}: {path.name}: {first_line(exc)}") from exc


def is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


class TypedWriter:
    """A Parquet file, or an Arrow IPC file as Feather version 2.

    The first piece decides the schema. In an Arrow file dictionary-encoded columns are text: each
    piece has another dictionary. A name that occurs twice gets a number, since few readers can tell
    such columns apart.
    """

    def __init__(self, path: Path, kind: str) -> None:
        self.path = path
        self.is_parquet = kind == "parquet"
        self.remarks: list[str] = []
        self.writer: Any = None
        self.file: Any = None  # below a writer of Arrow, which leaves it open

    def write(self, piece: pa.Table) -> None:
        names = unique_names(piece.column_names)
        if self.writer is None:
            self.open(piece, names)
        self.writer.write_table(piece.rename_columns(names).cast(self.schema))

    def open(self, piece: pa.Table, names: Sequence[str]) -> None:
        """Begin the file with the columns of the first piece."""
        fields = []
        for field, name in zip(piece.schema, names, strict=True):
            written = self.written_field(field)
            fields.append(written.with_name(name))
            if name != field.name:
                self.remarks.append(f"another column {field.name} is called {name} in the file")
        self.schema = pa.schema(fields, piece.schema.metadata)
        if self.is_parquet:
            self.writer = pyarrow.parquet.ParquetWriter(self.path, self.schema)
        else:
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self.file = pa.OSFile(str(self.path), "wb")
            self.writer = pa.ipc.new_file(self.file, self.schema, options=options)

    def written_field(self, field: pa.Field) -> pa.Field:
        if not self.is_parquet and pa.types.is_dictionary(field.type):
            field = field.with_type(field.type.value_type)
        if field.metadata in (CELL_MARK, JSON_MARK):
            return field.remove_metadata()
        return field

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
        if self.file is not None:
            self.file.close()


def unique_names(names: Sequence[str]) -> list[str]:
    """The names with a number behind those that occur again.

    >>> unique_names(["x", "y", "x", "x_2"])
    ['x', 'y', 'x_3', 'x_2']
    """
    taken = set(names)
    unique: list[str] = []
    seen: set[str] = set()
    for name in names:
        new = name
        number = 1
        while new in seen or (number > 1 and new in taken):
            number += 1
            new = f"{name}_{number}"
        seen.add(new)
        unique.append(new)
    return unique
