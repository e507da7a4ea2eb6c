"""Table files in Arrow's types: Parquet, folders of Parquet files, Feather and other Arrow IPC files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.ipc
import pyarrow.parquet

from ..errors import InputError
from ..model.words import count_of, first_of
from .table_file import CELL_MARK, JSON_MARK, PIECE_ROWS, TableFile, first_line

Scan = Callable[[Sequence[str] | None], Iterator[pa.RecordBatch]]
PARQUET_ENDINGS = (".parquet", ".pq")
SHOWN = 3  # names in a message
# What is in the folder of a table whose log decides which of its files count: the others have old or deleted rows.
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
    """A table in Arrow's types. `scan` gives its batches, at least with the columns of some names; None: with all."""

    def __init__(self, path: Path, name: str, schema: pa.Schema, scan: Scan) -> None:
        super().__init__(path, name, schema)
        self.scan, self.is_unique = scan, len(set(schema.names)) == len(schema)

    def read(
        self, only: Collection[str] | None = None, *, with_lines: bool = False
    ) -> Iterator[pa.Table]:
        used = self.positions(only)
        # Names that are not unique choose nothing: all columns are read then.
        for batch in self.scan([self.columns[at] for at in used] if self.is_unique else None):
            for start in range(0, len(batch), PIECE_ROWS):
                part = batch.slice(start, PIECE_ROWS)
                cells = {at: part.column(self.columns[at] if self.is_unique else at) for at in used}
                yield self.piece(cells, len(part))


def open_parquet(path: Path, name: str) -> TypedFile:
    def scan(columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        with pyarrow.parquet.ParquetFile(path) as reader:
            yield from reader.iter_batches(batch_size=PIECE_ROWS, columns=columns)

    return TypedFile(path, name, pyarrow.parquet.read_schema(path), scan)


def open_parquet_folder(path: Path, name: str) -> TypedFile:
    """The Parquet files in a folder and below it, in the order of their names, as one table.

    Names of folders as ``country=de`` are a column, as Hive and Spark write them. Files and folders whose names begin
    with a dot or an underscore are not part of the table.
    """
    check_no_log(path, name)
    found = [
        each
        for each in sorted(path.rglob("*"))
        if each.is_file() and not is_hidden(each.relative_to(path))
    ]
    files = [each for each in found if each.suffix.lower() in PARQUET_ENDINGS]
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
    schemas = [read_schema(each, name) for each in files]
    try:
        schema = pa.unify_schemas([*schemas, open_files().schema], promote_options="permissive")
    except pa.ArrowException as exc:
        raise InputError(
            f"{name}: its files have different types for a column: {first_line(exc)}"
        ) from exc
    dataset = open_files(schema)

    def scan(columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        options = {"batch_size": PIECE_ROWS, "batch_readahead": 1, "fragment_readahead": 1}
        return iter(dataset.scanner(columns=columns, **options).to_batches())

    opened = TypedFile(path, name, schema.remove_metadata(), scan)
    others = [str(each.relative_to(path)) for each in found if each not in files]
    opened.remarks += folder_remarks(schema.names, schemas, others)
    return opened


def open_arrow(path: Path, name: str) -> TypedFile:
    """An Arrow IPC file (Feather, version 2) or stream."""

    def open_ipc(source: Any) -> Any:
        start = source.read(6)
        source.seek(0)
        if start.startswith(b"FEA1"):
            raise InputError(
                f"{name} is Feather version 1, which is not supported; write it again as version 2"
            )
        return pa.ipc.open_file(source) if start == b"ARROW1" else pa.ipc.open_stream(source)

    def scan(columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        with pa.OSFile(str(path)) as source:
            reader = open_ipc(source)
            is_file = isinstance(reader, pa.ipc.RecordBatchFileReader)
            yield from (
                map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
            )

    with pa.OSFile(str(path)) as source:
        return TypedFile(path, name, open_ipc(source).schema, scan)


def check_no_log(path: Path, name: str) -> None:
    """Raise `InputError` for the folder of a table of which only some files count."""
    for log, kind, way in TABLE_LOGS:
        if any(path.glob(log)):
            raise InputError(
                f"{name} is {kind}, whose folder also has the files of deleted rows: read it with {way}, and "
                "give mailverdict that frame or a Parquet file of it"
            )


def folder_remarks(
    columns: Sequence[str], schemas: Sequence[pa.Schema], others: Sequence[str]
) -> Iterator[str]:
    """What a user should know about a folder: how many files, columns that some do not have, other files."""
    yield count_of(len(schemas), "Parquet file")
    counts = Counter(column for each in schemas for column in each.names)
    if partial := [column for column in columns if 0 < counts[column] < len(schemas)]:
        shown = first_of(list(map(repr, partial)), SHOWN)
        yield f"not every file has {shown}: in the rows of the others it is empty"
    if others:
        count = count_of(
            len(others), "other file in the folder is", "other files in the folder are"
        )
        yield f"{count} not read: {first_of(list(map(repr, others)), SHOWN)}"


def read_schema(path: Path, name: str) -> pa.Schema:
    try:
        return pyarrow.parquet.read_schema(path).remove_metadata()
    except (pa.ArrowException, OSError) as exc:
        raise InputError(f"{name}: {path.name}: {first_line(exc)}") from exc


def is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


class TypedWriter:
    """A Parquet file, or an Arrow IPC file as Feather version 2; the first piece decides the schema.

    In an Arrow file dictionary-encoded columns are text: each piece has another dictionary.
    """

    remarks: Sequence[str] = ()

    def __init__(self, path: Path, kind: str) -> None:
        self.path, self.is_parquet = path, kind == "parquet"
        self.writer: Any = None

    def write(self, piece: pa.Table) -> None:
        if self.writer is None:
            self.schema = pa.schema(
                [self.written_field(field) for field in piece.schema], piece.schema.metadata
            )
            if self.is_parquet:
                self.writer = pyarrow.parquet.ParquetWriter(self.path, self.schema)
            else:
                options = pa.ipc.IpcWriteOptions(compression="lz4")
                self.writer = pa.ipc.new_file(str(self.path), self.schema, options=options)
        self.writer.write_table(piece.cast(self.schema))

    def written_field(self, field: pa.Field) -> pa.Field:
        if not self.is_parquet and pa.types.is_dictionary(field.type):
            field = field.with_type(field.type.value_type)
        return field.remove_metadata() if field.metadata in (CELL_MARK, JSON_MARK) else field

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
