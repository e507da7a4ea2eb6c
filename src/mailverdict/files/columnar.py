"""Table files in Arrow's types: Parquet, folders of Parquet files, Feather and other Arrow IPC files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.ipc
import pyarrow.parquet

from ..errors import InputError
from ..model.words import count_of, first_of
from .table_file import CELL_MARK, PIECE_ROWS, TableFile, first_line, stamp_of

PARQUET_ENDINGS = (".parquet", ".pq")
SHOWN = 3  # names in a message
# What is in the folder of a table whose log decides which of its files count: the others have old or deleted rows.
TABLE_LOGS = (
    ("_delta_log", "a Delta table", "deltalake.DeltaTable(path).to_pyarrow_table()"),
    (".hoodie", "a Hudi table", "spark.read.format('hudi').load(path)"),
    ("metadata/*.metadata.json", "an Iceberg table", "pyiceberg's StaticTable.from_metadata(file).scan().to_arrow()"),
)


class TypedFile(TableFile):
    """A file whose columns have types; cells of columns that are not needed are null."""

    def needed(self, only: Collection[str] | None) -> list[str] | None:
        """The columns to read; None: all of them."""
        if only is None or len(set(self.columns)) < len(self.columns):
            return None
        return [name for name in self.columns if name in only]

    def filled(self, batch: pa.RecordBatch, needed: list[str] | None) -> pa.Table:
        """A piece with all columns of the file."""
        if needed is None:
            return pa.Table.from_batches([batch])
        return self.piece({at: batch.column(self.columns[at]) for at in self.positions(needed)}, len(batch))


class ParquetFile(TypedFile):
    """A Parquet file."""

    def __init__(self, path: Path, name: str) -> None:
        super().__init__(path, name, pyarrow.parquet.read_schema(path))

    def read(self, only: Collection[str] | None = None, *, with_lines: bool = False) -> Iterator[pa.Table]:
        needed = self.needed(only)
        with pyarrow.parquet.ParquetFile(self.path) as reader:
            for batch in reader.iter_batches(batch_size=PIECE_ROWS, columns=needed):
                yield self.filled(batch, needed)


class ParquetFolder(TypedFile):
    """The Parquet files in a folder and below it, in the order of their names, as one table.

    Names of folders as ``country=de`` are a column, as Hive and Spark write them. Files and folders whose names begin
    with a dot or an underscore are not part of the table.
    """

    def __init__(self, path: Path, name: str) -> None:
        check_no_log(path, name)
        found = [each for each in sorted(path.rglob("*")) if each.is_file() and not is_hidden(each.relative_to(path))]
        files = [each for each in found if each.suffix.lower() in PARQUET_ENDINGS]
        if not files:
            raise InputError(f"{name} is a directory without Parquet files; give a file")
        options = pyarrow.dataset.FileSystemFactoryOptions(
            partition_base_dir=str(path), partitioning=pyarrow.dataset.HivePartitioning.discover()
        )
        factory = pyarrow.dataset.FileSystemDatasetFactory(
            pa.fs.LocalFileSystem(), [str(each) for each in files], pyarrow.dataset.ParquetFileFormat(), options
        )
        # The schema of the first file alone would leave out the columns that only others have.
        schemas = [read_schema(each, name) for each in files]
        try:
            schema = pa.unify_schemas([*schemas, factory.inspect()], promote_options="permissive")
        except pa.ArrowException as exc:
            raise InputError(f"{name}: its files have different types for a column: {first_line(exc)}") from exc
        self.dataset = factory.finish(schema)
        super().__init__(path, name, schema.remove_metadata())
        self.watch(path, stamp_of(path))
        others = [str(each.relative_to(path)) for each in found if each not in files]
        self.remarks += folder_remarks(schema.names, schemas, others)

    def read(self, only: Collection[str] | None = None, *, with_lines: bool = False) -> Iterator[pa.Table]:
        needed = self.needed(only)
        scanned = self.dataset.scanner(
            columns=needed, batch_size=PIECE_ROWS, batch_readahead=1, fragment_readahead=1
        ).to_batches()
        for batch in scanned:
            yield self.filled(batch, needed)


def check_no_log(path: Path, name: str) -> None:
    """Raise `InputError` for the folder of a table of which only some files count."""
    for log, kind, way in TABLE_LOGS:
        if any(path.glob(log)):
            raise InputError(
                f"{name} is {kind}, whose folder also has the files of deleted rows: read it with {way}, and "
                "give mailverdict that frame or a Parquet file of it"
            )


def folder_remarks(columns: Sequence[str], schemas: Sequence[pa.Schema], others: Sequence[str]) -> Iterator[str]:
    """What a user should know about a folder: how many files, columns that some do not have, other files."""
    yield count_of(len(schemas), "Parquet file")
    counts = Counter(column for each in schemas for column in each.names)
    if partial := [column for column in columns if 0 < counts[column] < len(schemas)]:
        shown = first_of(list(map(repr, partial)), SHOWN)
        yield f"not every file has {shown}: in the rows of the others it is empty"
    if others:
        count = count_of(len(others), "other file in the folder is", "other files in the folder are")
        yield f"{count} not read: {first_of(list(map(repr, others)), SHOWN)}"


def read_schema(path: Path, name: str) -> pa.Schema:
    try:
        return pyarrow.parquet.read_schema(path).remove_metadata()
    except (pa.ArrowException, OSError) as exc:
        raise InputError(f"{name}: {path.name}: {first_line(exc)}") from exc


def is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


class ArrowFile(TypedFile):
    """An Arrow IPC file (Feather, version 2) or stream."""

    def __init__(self, path: Path, name: str) -> None:
        with pa.OSFile(str(path)) as source:
            super().__init__(path, name, self.open(source, name).schema)

    @staticmethod
    def open(source: Any, name: str) -> Any:
        """A reader of the file's batches."""
        if source.read(4) == b"FEA1":
            raise InputError(f"{name} is Feather version 1, which is not supported; write it again as version 2")
        source.seek(0)
        try:
            return pa.ipc.open_file(source)
        except pa.ArrowInvalid:
            source.seek(0)
            return pa.ipc.open_stream(source)

    def read(self, only: Collection[str] | None = None, *, with_lines: bool = False) -> Iterator[pa.Table]:
        needed = self.needed(only)
        with pa.OSFile(str(self.path)) as source:
            reader = self.open(source, self.name)
            is_file = isinstance(reader, pa.ipc.RecordBatchFileReader)
            for batch in map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader:
                for start in range(0, len(batch), PIECE_ROWS):
                    yield self.filled(batch.slice(start, PIECE_ROWS), needed)


class ParquetTableWriter:
    """Arrow's own types; verdict and status are dictionary-encoded."""

    remarks: Sequence[str] = ()

    def __init__(self, path: Path) -> None:
        self.path = path
        self.writer: Any = None

    def write(self, piece: pa.Table) -> None:
        """Append a row group; the first piece decides the schema."""
        if self.writer is None:
            fields = [f.remove_metadata() if f.metadata == CELL_MARK else f for f in piece.schema]
            schema = pa.schema(fields, piece.schema.metadata)
            self.writer = pyarrow.parquet.ParquetWriter(self.path, schema)
        self.writer.write_table(piece.cast(self.writer.schema))

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


class ArrowTableWriter:
    """An Arrow IPC file, as Feather version 2.

    Dictionary-encoded columns are text: each piece has another dictionary.
    """

    remarks: Sequence[str] = ()

    def __init__(self, path: Path) -> None:
        self.path = path
        self.writer: Any = None

    def write(self, piece: pa.Table) -> None:
        """Append a batch; the first piece decides the schema."""
        if self.writer is None:
            fields = [plain_field(field) for field in piece.schema]
            self.schema = pa.schema(fields, piece.schema.metadata)
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self.writer = pa.ipc.new_file(str(self.path), self.schema, options=options)
        self.writer.write_table(piece.cast(self.schema))

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


def plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
