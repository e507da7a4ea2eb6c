"""An opened table file: what was found out about it, and its rows in pieces of bounded size.

The readers of each kind of file are subclasses of `TableFile`, which override `read`:

    with open_table("people.csv") as file:
        file.columns                  ("id", "email")
        file.remarks                  ["encoding: cp1252, guessed by its letters ..."]
        for piece in file.pieces():   Arrow tables of at most 250,000 rows

A text file can give its rows as they stand, too, as the column `LINE` behind its own: a writer of
the same kind copies them. `CELL_MARK` is on the columns that are as they were read.
"""

from __future__ import annotations

import re
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, ClassVar, Self, TypeVar

import pyarrow as pa

from ..errors import ColumnError, InputError
from ..table.columns import check_column
from .header import numbered

Opened = TypeVar("Opened", bound="TableFile")
PIECE_ROWS = 250_000  # rows in one piece: bounds memory
LINE = "\0line\0"  # a column with the rows as they are in a text file, after the file's own columns
CELL_MARK = {b"mailverdict": b"cell"}  # metadata of a column that is still as it was read
JSON_MARK = {b"mailverdict": b"json"}  # of such a column whose text is JSON
LINE_FIELD = pa.field(LINE, pa.large_binary(), metadata=CELL_MARK)

# What a table file may have at most, in any kind of file, and in octets in text files. A file
# beyond that is damaged, read with a wrong delimiter, or made to use up time and memory.
MAX_COLUMNS = 16_384  # as many as a sheet of a spreadsheet
LONGEST_LINE = 8 << 20
LONGEST_CELL = 4 << 20
LONGEST_HEADER = 2 << 20  # 128 for each column
# Empty cells that are added to rows with too few, for each octet of the file. A few octets cannot
# become gigabytes.
MAX_ADDED = 16
ALWAYS_ADDED = 16 << 20  # added cells for which that does not count
# Advice about options of the command line in a remark.
OPTION_ADVICE = re.compile(
    r"; give another with --([a-z]+)|\s*\((?:as )?--[a-z-]+:? [^()]*\)|, as --[a-z-]+"
)


@dataclass(frozen=True)
class ReadOptions:
    """What the caller says about a file; what is None is found out."""

    encoding: str | None = None  # CSV
    delimiter: str | None = None  # CSV
    sheet: str | None = None  # of a workbook; None: the first with addresses
    has_header: bool | None = None
    likely_delimiter: str = ""  # CSV: by the ending of the name
    # Refuse a CSV with rows of a wrong length or bytes that are not in its encoding.
    is_strict: bool = False


UNSPECIFIED = ReadOptions()


@dataclass(frozen=True)
class FileFormat:
    """What a writer needs to know about a file to write one like it."""

    encoding: str | None = None  # CSV
    # CSV: of the octets that are read, which may be a copy in UTF-8.
    text_encoding: str | None = None
    delimiter: str = ","  # CSV
    # CSV: what is before the first row in the text encoding: byte order mark, title, header.
    head: bytes = b""
    sheet: str | None = None  # XLSX
    title: Sequence[Sequence[Any]] = ()  # XLSX: the rows before the header


UNKNOWN = FileFormat()


def without_options(remark: str, instead: Mapping[str, str] | None = None) -> str:
    """A remark without options of the command line.

    `instead` has other advice by the option's name.

    >>> without_options("only sheet 'A' is read; give another with --sheet", {"sheet": "save it"})
    "only sheet 'A' is read; save it"
    """

    def advice(match: re.Match[str]) -> str:
        other = (instead or {}).get(match[1])
        return f"; {other}" if other else ""

    return OPTION_ADVICE.sub(advice, remark)


class TableFile(ABC):
    """A table file whose header has been read. Subclasses override `read`.

    Use it in a ``with`` statement, so that a temporary copy that it is read from is deleted.
    """

    # The kind of file to which its rows are copied as they are, with the column `LINE`.
    copied_to: ClassVar[str] = ""

    def __init__(
        self, path: Path, name: str, schema: pa.Schema, file_format: FileFormat = UNKNOWN
    ) -> None:
        check_columns(name, len(schema))
        self.path = path
        self.name = name  # in messages; the path of standard input is that of a temporary copy
        self.schema = schema
        self.columns = tuple(schema.names)  # as in the header, including duplicates
        self.format = file_format
        self.has_header = True
        self.sheets: Sequence[str] = ()  # XLSX: the names of all sheets
        self.formulas = 0  # XLSX: formulas of all sheets whose values are not in the file
        self.is_temporary = False
        self.address_at: int | None = None  # the column that rows of a wrong length are aligned to
        self.remarks: list[str] = []  # what was guessed or found odd, for the user

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.is_temporary:
            self.path.unlink(missing_ok=True)

    def check_column(self, column: str) -> None:
        """Raise `ColumnError` unless the column exists exactly once.

        One of several columns with the same name can be given by its position, as ``column_3``.
        That is its name then.
        """
        if column not in self.columns:
            for position, name in enumerate(self.columns):
                if numbered(position) == column and self.columns.count(name) > 1:
                    field = self.schema.field(position).with_name(column)
                    self.schema = self.schema.set(position, field)
                    self.columns = tuple(self.schema.names)
        try:
            check_column(column, self.columns)
        except ColumnError as exc:
            raise ColumnError(f"{self.name}: {exc}") from None

    def pieces(
        self, only: Collection[str] | None = None, *, with_lines: bool = False
    ) -> Iterator[pa.Table]:
        """Yield the rows in pieces, at least one.

        Cells of columns that are not in `only` may be null. CSV and JSON lines can add the column
        `LINE`. Raises `InputError` where the file is truncated or malformed.
        """
        has_rows = False
        try:
            for piece in self.read(only, with_lines=with_lines):
                if len(piece):
                    has_rows = True
                    yield piece
        except (pa.ArrowException, OSError, UnicodeError) as exc:
            raise InputError(f"{self.name}: {first_line(exc)}") from exc
        if not has_rows:
            schema = self.schema
            if with_lines:
                schema = schema.append(LINE_FIELD)
            yield schema.empty_table()

    def final_remarks(self) -> list[str]:
        """Remarks for the user after all rows were read."""
        return []

    @abstractmethod
    def read(
        self, only: Collection[str] | None = None, *, with_lines: bool = False
    ) -> Iterator[pa.Table]:
        """Yield the rows in pieces, which may be empty."""

    def positions(self, only: Collection[str] | None) -> list[int]:
        """The columns to read."""
        if only is None:
            return list(range(len(self.columns)))
        return [position for position, name in enumerate(self.columns) if name in only]

    def piece(
        self, cells: Mapping[int, pa.Array], rows: int, lines: pa.Array | None = None
    ) -> pa.Table:
        """A piece with all columns of the file, by the cells of those that were read.

        The others are null, which costs nothing.
        """
        unread = pa.nulls(rows)
        arrays = []
        fields = []
        for position, field in enumerate(self.schema):
            if position in cells:
                arrays.append(cells[position])
                fields.append(field)
            else:
                arrays.append(unread)
                fields.append(field.with_type(pa.null()))
        if lines is not None:
            arrays.append(lines)
            fields.append(LINE_FIELD)
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields, self.schema.metadata))


def check_columns(where: str, count: int, advice: str = "leave out some") -> None:
    """Raise `InputError` for a table or row with too many columns.

    There may be more than were counted.
    """
    if count > MAX_COLUMNS:
        raise InputError(
            f"{where}: {count:,} columns or more; {MAX_COLUMNS:,} are read at most: {advice}"
        )


def check_added(where: str, count: int, size: int) -> None:
    """Raise `InputError` for more empty cells to add than a file of this many octets can need."""
    if count > max(ALWAYS_ADDED, MAX_ADDED * size):
        raise InputError(
            f"{where}: rows have far fewer cells than the table has columns, so that {count:,} "
            f"empty cells would be added to {size:,} bytes; leave out columns, or write the empty "
            "cells"
        )


@contextmanager
def temporary_copy() -> Iterator[IO[bytes]]:
    """Yield a new temporary file, which stays unless there is an error."""
    copy = tempfile.NamedTemporaryFile(prefix="mailverdict-", delete=False)  # noqa: SIM115
    try:
        with copy:
            yield copy
    except BaseException:
        Path(copy.name).unlink()  # closed: Windows removes no open file
        raise


def open_temporary(path: Path, opener: Callable[[Path], Opened]) -> Opened:
    """Open a temporary copy, which is deleted with the opened file or after an error."""
    try:
        opened = opener(path)
    except BaseException:
        path.unlink()
        raise
    if opened.is_temporary:  # it is read from another copy
        path.unlink()
    opened.is_temporary = True
    return opened


def first_line(exc: BaseException) -> str:
    """What a library says of an error, in one line; its type if it says nothing."""
    message = str(exc)
    if isinstance(exc, OSError) and exc.filename is not None:
        message = exc.strerror or ""
    lines = message.strip().splitlines()
    if not lines:
        return type(exc).__name__
    return lines[0][:300]
