"""Writing table files: to a temporary neighbour first, renamed when complete."""

from __future__ import annotations

import codecs
import datetime
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from ...atomic_write import atomic_write
from ...errors import InputError, MissingExtraError
from .readers import KINDS, STDIN

__all__ = ["XLSX_OPTIONS", "AtomicTable", "neutralize", "put_rows"]

# A spreadsheet takes a cell that starts like this for a formula; numbers, of telephones too, call nothing.
FORMULA = r"^[=+\-@\t\r]"
HARMLESS = r"^[+\-]?[0-9 ().,/\-]*[0-9][0-9 ().,/\-]*$"
WRITABLE = {ending: kind for ending, kind in KINDS.items() if ending != ".xlsm"}  # which would need a macro in it
FORMULA_OCTETS = np.isin(np.arange(256), np.frombuffer(b"=+-@\t\r", np.uint8))
CSV_ROWS = 65_536  # lines made at once: bounds memory
XLSX_ROWS = 1_048_576
XLSX_CELL = 32_767  # characters that one cell can hold


def neutralize(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """Put an apostrophe before text that a spreadsheet would run as a formula.

    >>> neutralize(pa.array(["=1+1", "-5", "+49 30 1234", "ada"], pa.large_string())).to_pylist()
    ["'=1+1", '-5', '+49 30 1234', 'ada']
    """
    if not begins_formula(texts).any():
        return texts
    risky = pc.and_not(pc.match_substring_regex(texts, FORMULA), pc.match_substring_regex(texts, HARMLESS))
    return pc.if_else(risky, join("'", texts), texts)


def quote(texts: pa.LargeStringArray, delimiter: str) -> pa.LargeStringArray:
    """Put quotes around text that would break its line (RFC 4180 section 2).

    >>> quote(pa.array(["ada", "a,b", '5" pipe'], pa.large_string()), ",").to_pylist()
    ['ada', '"a,b"', '"5"" pipe"']
    """
    octets = np.frombuffer(data_of(texts), np.uint8)
    if not any((octets == ord(special)).any() for special in (delimiter, '"', "\r", "\n")):
        return texts
    breaks = pc.match_substring_regex(texts, f'[{delimiter}"\r\n]')
    return pc.if_else(breaks, join('"', pc.replace_substring(texts, '"', '""'), '"'), texts)


def begins_formula(texts: pa.LargeStringArray) -> Any:
    """Where the first octet, or that of the next text where this one is empty, is one that begins a formula."""
    octets, offsets = np.frombuffer(data_of(texts), np.uint8), offsets_of(texts)
    starts = offsets[:-1] - offsets[0]
    return FORMULA_OCTETS[octets[starts[starts < len(octets)]]]


def offsets_of(texts: pa.LargeStringArray) -> Any:
    """Where each text begins in the buffer, and where the last one ends."""
    if not len(texts):
        return np.zeros(1, np.int64)
    return np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]


def data_of(texts: pa.LargeStringArray) -> memoryview:
    """The octets of all texts, one after the other, without copying."""
    offsets = offsets_of(texts)
    return memoryview(texts.buffers()[2] or b"")[offsets[0] : offsets[-1]]


def join(*parts: Any, between: str = "") -> Any:
    """Texts beside each other, row by row; a missing one is nothing."""
    kind = next(part.type for part in parts if not isinstance(part, str))
    whole = [pa.scalar(part, kind) if isinstance(part, str) else part for part in (*parts, between)]
    return pc.binary_join_element_wise(*whole, null_handling="replace")


class Sink(Protocol):
    """Takes pieces of one table, all with the same columns."""

    def write(self, piece: pa.Table) -> None:
        """Append a piece."""
        ...

    def close(self) -> None:
        """Finish the file."""
        ...


class CsvSink:
    """UTF-8 text; the header once, quotes only where needed.

    Parameters
    ----------
    path : Path
        The file.
    delimiter : str
        One character.
    is_for_people : bool
        Whether what a spreadsheet would run is neutralised.
    has_mark : bool
        Whether it begins with a byte order mark, as the file it is made from.
    """

    def __init__(self, path: Path, delimiter: str, *, is_for_people: bool, has_mark: bool = False) -> None:
        self.file = path.open("wb")
        self.file.write(codecs.BOM_UTF8 if has_mark else b"")
        self.delimiter, self.is_for_people = delimiter, is_for_people
        self.has_header = False

    def write(self, piece: pa.Table) -> None:
        """Append rows: cells are joined to lines by column, so that millions of rows are a few arrays."""
        if not self.has_header:
            self.file.write(self.header(piece.column_names))
            self.has_header = True
        for batch in piece.to_batches(max_chunksize=CSV_ROWS):
            *cells, last = (self.cell_texts(column) for column in batch.columns)
            self.file.write(data_of(join(*cells, join(last, "\n"), between=self.delimiter)))

    def header(self, names: Sequence[str]) -> bytes:
        """The first line."""
        plain = pa.array(names, pa.large_string())
        cells = quote(neutralize(plain) if self.is_for_people else plain, self.delimiter)
        return (self.delimiter.join(cells.to_pylist()) + "\n").encode()

    def cell_texts(self, column: pa.Array) -> pa.LargeStringArray:
        """Cells as they stand in the file; a missing one is nothing."""
        plain = as_plain(column)
        texts = plain.cast(pa.large_string())
        if not pa.types.is_string(plain.type):
            return texts
        return quote(neutralize(texts) if self.is_for_people else texts, self.delimiter)

    def close(self) -> None:
        """Close the file."""
        self.file.close()


class ParquetSink:
    """Arrow's own types, verdict and status dictionary-encoded.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.writer: Any = None

    def write(self, piece: pa.Table) -> None:
        """Append a row group; the first piece gives the schema."""
        if self.writer is None:
            self.writer = pyarrow.parquet.ParquetWriter(self.path, piece.schema)
        self.writer.write_table(piece.cast(self.writer.schema))

    def close(self) -> None:
        """Write the footer."""
        if self.writer is not None:
            self.writer.close()


class XlsxSink:
    """A workbook; every text is written as text, so that no cell is a formula.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        try:
            import xlsxwriter  # noqa: PLC0415 - an extra
        except ImportError as exc:
            raise MissingExtraError("writing XLSX", "excel") from exc
        self.book = xlsxwriter.Workbook(str(path), XLSX_OPTIONS)
        self.sheet = self.book.add_worksheet("verified")
        self.row = 0

    def write(self, piece: pa.Table) -> None:
        """Append rows; the first piece brings the header."""
        if self.row == 0:
            self.put(piece.column_names)
            self.sheet.freeze_panes(1, 0)
        if self.row + len(piece) > XLSX_ROWS:
            raise InputError(f"more than {XLSX_ROWS - 1:,} rows do not fit a workbook; write CSV or Parquet")
        for row in zip(*(as_plain(column).to_pylist() for column in piece.columns), strict=True):
            self.put(row)

    def put(self, cells: Any) -> None:
        """Write one row."""
        put_row(self.sheet, self.row, cells)
        self.row += 1

    def close(self) -> None:
        """Write the workbook."""
        self.book.close()


XLSX_OPTIONS = {
    "constant_memory": True,
    "strings_to_formulas": False,
    "strings_to_urls": False,
    "strings_to_numbers": False,
    "nan_inf_to_errors": True,
    "remove_timezone": True,  # which a workbook does not have; ours are UTC
    "default_date_format": "yyyy-mm-dd hh:mm:ss",
}


def put_rows(sheet: Any, rows: Iterable[Sequence[Any]]) -> None:
    """Fill a worksheet from its top; texts are written as text, so that no cell is a formula."""
    for row, cells in enumerate(rows):
        put_row(sheet, row, cells)


def put_row(sheet: Any, row: int, cells: Sequence[Any]) -> None:
    """Write one row; empty cells stay empty."""
    for column, cell in enumerate(cells):
        if cell is not None and cell != "":
            WRITE.get(type(cell), write_text)(sheet, row, column, cell)


def write_text(sheet: Any, row: int, column: int, cell: Any) -> None:
    sheet.write_string(row, column, str(cell)[:XLSX_CELL])


def write_number(sheet: Any, row: int, column: int, cell: Any) -> None:
    """A number, unless a workbook's doubles would change it, as they would a long identifier."""
    if isinstance(cell, int) and abs(cell) >= 2**53:
        write_text(sheet, row, column, cell)
    else:
        sheet.write_number(row, column, cell)


def write_moment(sheet: Any, row: int, column: int, cell: Any) -> None:
    """A date, unless it lies before those that a workbook knows."""
    write = sheet.write_datetime if cell.year >= 1900 else lambda *where: write_text(sheet, *where)
    write(row, column, cell)


WRITE: dict[type, Any] = {
    bool: lambda sheet, row, column, cell: sheet.write_boolean(row, column, cell),
    int: write_number,
    float: write_number,
    datetime.date: write_moment,
    datetime.datetime: write_moment,
}


def as_plain(column: Any) -> Any:
    """Any text as text, what a text file cannot hold as text, the rest as it is."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return as_plain(column.cast(kind.storage_type))
    if pa.types.is_dictionary(kind):
        return as_plain(column.cast(kind.value_type))
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.string())
    if pa.types.is_nested(kind) or any(is_binary(kind) for is_binary in BINARY):
        return pa.array([None if v is None else str(v) for v in column.to_pylist()], pa.string())
    return column


BINARY = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
)


class AtomicTable:
    """A table file that appears whole or not at all.

    Parameters
    ----------
    path : Path or str
        Where it goes; ``"-"`` is CSV on standard output. Its ending says the kind.
    delimiter : str
        For CSV.
    is_for_people : bool
        Whether formulas in CSV cells are neutralised.
    has_mark : bool
        Whether a CSV begins with a byte order mark.

    Raises
    ------
    InputError
        If the ending is not known, or there is no such directory.
    """

    def __init__(
        self, path: Path | str, *, delimiter: str = ",", is_for_people: bool = True, has_mark: bool = False
    ) -> None:
        self.path = Path(path)
        self.is_stdout = str(path) == STDIN
        self.kind = "csv" if self.is_stdout else WRITABLE.get(self.path.suffix.lower(), "")
        if self.path.is_dir():
            raise InputError(f"{path} is a directory; name a file to write")
        if not self.kind:
            raise InputError(f"{path}: cannot tell what kind of table to write; known endings: {', '.join(WRITABLE)}")
        if not self.path.parent.is_dir():
            raise InputError(f"{path} cannot be written: there is no directory {self.path.parent}")
        self.delimiter = "\t" if self.kind == "tsv" else delimiter
        self.is_for_people, self.has_mark = is_for_people, has_mark

    def __enter__(self) -> AtomicTable:
        with ExitStack() as stack:
            try:
                part = stack.enter_context(to_stdout() if self.is_stdout else atomic_write(self.path))
            except OSError as exc:
                raise InputError(f"{self.path} cannot be written: {exc.strerror}") from exc
            self.sink = stack.enter_context(closing(self.open_sink(part)))
            self.files = stack.pop_all()
        return self

    def open_sink(self, part: Path) -> Sink:
        """The sink for the kind."""
        if self.kind == "parquet":
            return ParquetSink(part)
        if self.kind == "xlsx":
            return XlsxSink(part)
        return CsvSink(part, self.delimiter, is_for_people=self.is_for_people, has_mark=self.has_mark)

    def write(self, piece: pa.Table) -> None:
        """Append a piece."""
        self.sink.write(piece)

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.files.__exit__(kind, exc, traceback)


@contextmanager
def to_stdout() -> Iterator[Path]:
    """Yield the path of a temporary file that is copied to standard output at the end."""
    with tempfile.TemporaryDirectory(prefix="mailverdict-") as folder:
        part = Path(folder, "table.csv")
        yield part
        with part.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()
