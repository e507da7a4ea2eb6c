"""Write table files: CSV, TSV, Parquet and XLSX.

`create_table` yields a writer for the kind of file. The CSV writer joins whole columns with Arrow and NumPy instead of
formatting cells one by one: a file of millions of rows takes longer to write than to verify by `regex` otherwise.
"""

from __future__ import annotations

import codecs
import datetime
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from ...atomic_write import atomic_write
from ...errors import InputError, MissingExtraError
from .readers import KINDS, STDIN

__all__ = ["XLSX_OPTIONS", "TableWriter", "create_table", "neutralize", "put_rows"]

STDOUT = STDIN
WRITABLE = {ending: kind for ending, kind in KINDS.items() if ending != ".xlsm"}  # which needs a macro in it
# A spreadsheet reads a cell that starts like this as a formula; numbers, also of telephones, are harmless.
FORMULA = r"^[=+\-@\t\r]"
HARMLESS = r"^[+\-]?[0-9 ().,/\-]*[0-9][0-9 ().,/\-]*$"
FORMULA_BYTES = np.isin(np.arange(256), np.frombuffer(b"=+-@\t\r", np.uint8))
CSV_ROWS = 65_536  # lines made at once: bounds memory
XLSX_ROWS = 1_048_576
XLSX_CELL = 32_767  # characters in one cell
XLSX_OPTIONS = {
    "constant_memory": True,
    "strings_to_formulas": False,
    "strings_to_urls": False,
    "strings_to_numbers": False,
    "nan_inf_to_errors": True,
    "remove_timezone": True,  # a workbook has no time zones; our times are UTC
    "default_date_format": "yyyy-mm-dd hh:mm:ss",
}


class TableWriter(Protocol):
    """Writes the pieces of one table, all with the same columns."""

    def write(self, piece: pa.Table) -> None:
        """Append a piece."""
        ...

    def close(self) -> None:
        """Finish the file."""
        ...


@contextmanager
def create_table(
    path: Path | str, *, delimiter: str = ",", escape_formulas: bool = True, has_bom: bool = False
) -> Iterator[TableWriter]:
    """Yield a writer for a table file that appears complete at the end, or not at all after an exception.

    The ending of the name decides the kind; ``"-"`` is CSV on standard output. The options are for CSV: its delimiter,
    whether text that a spreadsheet would run gets an apostrophe before it, whether it begins with a byte order mark.
    Raises `InputError` if the file cannot be created.
    """
    target = Path(path)
    is_stdout = str(path) == STDOUT
    kind = "csv" if is_stdout else check_target(target)
    with ExitStack() as stack:
        try:
            temporary = stack.enter_context(to_stdout() if is_stdout else atomic_write(target))
        except OSError as exc:
            raise InputError(f"{target} cannot be written: {exc.strerror}") from exc
        writer: TableWriter
        if kind == "parquet":
            writer = ParquetTableWriter(temporary)
        elif kind == "xlsx":
            writer = XlsxTableWriter(temporary)
        else:
            used = "\t" if kind == "tsv" else delimiter
            writer = CsvTableWriter(temporary, used, escape_formulas=escape_formulas, has_bom=has_bom)
        yield stack.enter_context(closing(writer))


def check_target(path: Path) -> str:
    """The kind of table to write, by the ending of the name."""
    kind = WRITABLE.get(path.suffix.lower())
    if path.is_dir():
        raise InputError(f"{path} is a directory; name a file to write")
    if kind is None:
        raise InputError(f"{path}: cannot tell what kind of table to write; known endings: {', '.join(WRITABLE)}")
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no directory {path.parent}")
    return kind


@contextmanager
def to_stdout() -> Iterator[Path]:
    """Yield the path of a temporary file that is copied to standard output at the end."""
    with tempfile.TemporaryDirectory(prefix="mailverdict-") as folder:
        temporary = Path(folder, "table.csv")
        yield temporary
        with temporary.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


# --- CSV -------------------------------------------------------------------------------------------


class CsvTableWriter:
    """UTF-8 text: one header, quotes only where needed."""

    def __init__(self, path: Path, delimiter: str, *, escape_formulas: bool, has_bom: bool = False) -> None:
        self.delimiter, self.escape_formulas = delimiter, escape_formulas
        self.has_header = False
        self.file = path.open("wb")
        self.file.write(codecs.BOM_UTF8 if has_bom else b"")

    def write(self, piece: pa.Table) -> None:
        """Append rows; cells are joined to lines by column, so that millions of rows are a few arrays."""
        if not self.has_header:
            names = pa.array(piece.column_names, pa.large_string())
            self.file.write((self.delimiter.join(self.escape(names).to_pylist()) + "\n").encode())
            self.has_header = True
        for batch in piece.to_batches(max_chunksize=CSV_ROWS):
            *cells, last = (self.cell_texts(column) for column in batch.columns)
            self.file.write(bytes_of(join(*cells, join(last, "\n"), between=self.delimiter)))

    def cell_texts(self, column: pa.Array) -> pa.LargeStringArray:
        """Cells as they are in the file; a missing one is empty."""
        plain = to_plain(column)
        texts = plain.cast(pa.large_string())
        return self.escape(texts) if pa.types.is_string(plain.type) else texts

    def escape(self, texts: pa.LargeStringArray) -> pa.LargeStringArray:
        return quote(neutralize(texts) if self.escape_formulas else texts, self.delimiter)

    def close(self) -> None:
        self.file.close()


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
    """Put quotes around text that contains the delimiter, a quote or a line end (RFC 4180 section 2).

    >>> quote(pa.array(["ada", "a,b", '5" pipe'], pa.large_string()), ",").to_pylist()
    ['ada', '"a,b"', '"5"" pipe"']
    """
    data = np.frombuffer(bytes_of(texts), np.uint8)
    if not any((data == ord(special)).any() for special in (delimiter, '"', "\r", "\n")):
        return texts
    breaks = pc.match_substring_regex(texts, f'[{delimiter}"\r\n]')
    return pc.if_else(breaks, join('"', pc.replace_substring(texts, '"', '""'), '"'), texts)


def begins_formula(texts: pa.LargeStringArray) -> Any:
    """For each text, whether its first byte begins a formula; for an empty text, the first byte of the next one."""
    data, offsets = np.frombuffer(bytes_of(texts), np.uint8), offsets_of(texts)
    starts = offsets[:-1] - offsets[0]
    return FORMULA_BYTES[data[starts[starts < len(data)]]]


def offsets_of(texts: pa.LargeStringArray) -> Any:
    """The offset of each text in the buffer, and the end of the last one."""
    if not len(texts):
        return np.zeros(1, np.int64)
    return np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]


def bytes_of(texts: pa.LargeStringArray) -> memoryview:
    """The bytes of all texts, one after the other, without a copy."""
    offsets = offsets_of(texts)
    return memoryview(texts.buffers()[2] or b"")[offsets[0] : offsets[-1]]


def join(*parts: Any, between: str = "") -> Any:
    """Concatenate texts row by row; a missing one is empty."""
    kind = next(part.type for part in parts if not isinstance(part, str))
    whole = [pa.scalar(part, kind) if isinstance(part, str) else part for part in (*parts, between)]
    return pc.binary_join_element_wise(*whole, null_handling="replace")


# --- Parquet and XLSX ------------------------------------------------------------------------------


class ParquetTableWriter:
    """Arrow's own types; verdict and status are dictionary-encoded."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.writer: Any = None

    def write(self, piece: pa.Table) -> None:
        """Append a row group; the first piece decides the schema."""
        if self.writer is None:
            self.writer = pyarrow.parquet.ParquetWriter(self.path, piece.schema)
        self.writer.write_table(piece.cast(self.writer.schema))

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


class XlsxTableWriter:
    """A workbook with one sheet."""

    def __init__(self, path: Path) -> None:
        try:
            import xlsxwriter  # noqa: PLC0415 - an extra
        except ImportError as exc:
            raise MissingExtraError("writing XLSX", "excel") from exc
        self.book = xlsxwriter.Workbook(str(path), XLSX_OPTIONS)
        self.sheet = self.book.add_worksheet("verified")
        self.row = 0

    def write(self, piece: pa.Table) -> None:
        """Append rows; the first piece gives the header."""
        if self.row == 0:
            self.put(piece.column_names)
            self.sheet.freeze_panes(1, 0)
        if self.row + len(piece) > XLSX_ROWS:
            raise InputError(f"more than {XLSX_ROWS - 1:,} rows do not fit a workbook; write CSV or Parquet")
        for row in zip(*(to_plain(column).to_pylist() for column in piece.columns), strict=True):
            self.put(row)

    def put(self, cells: Any) -> None:
        put_row(self.sheet, self.row, cells)
        self.row += 1

    def close(self) -> None:
        self.book.close()


def put_rows(sheet: Any, rows: Iterable[Sequence[Any]]) -> None:
    """Fill a worksheet from the top; text is written as text, so that no cell is a formula."""
    for row, cells in enumerate(rows):
        put_row(sheet, row, cells)


def put_row(sheet: Any, row: int, cells: Sequence[Any]) -> None:
    """Write one row, without its empty cells."""
    for column, cell in enumerate(cells):
        if cell is not None and cell != "":
            WRITE.get(type(cell), write_text)(sheet, row, column, cell)


def write_text(sheet: Any, row: int, column: int, cell: Any) -> None:
    sheet.write_string(row, column, str(cell)[:XLSX_CELL])


def write_number(sheet: Any, row: int, column: int, cell: Any) -> None:
    """Write an integer that a workbook's doubles cannot hold exactly, such as a long identifier, as text."""
    if isinstance(cell, int) and abs(cell) >= 2**53:
        write_text(sheet, row, column, cell)
    else:
        sheet.write_number(row, column, cell)


def write_moment(sheet: Any, row: int, column: int, cell: Any) -> None:
    """Write a date before 1900 as text: a workbook has none."""
    write = sheet.write_datetime if cell.year >= 1900 else lambda *where: write_text(sheet, *where)
    write(row, column, cell)


WRITE: dict[type, Any] = {
    bool: lambda sheet, row, column, cell: sheet.write_boolean(row, column, cell),
    int: write_number,
    float: write_number,
    datetime.date: write_moment,
    datetime.datetime: write_moment,
}


def to_plain(column: Any) -> Any:
    """Every text type as string; lists and bytes, which a text file cannot contain, as text; the rest unchanged."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return to_plain(column.cast(kind.storage_type))
    if pa.types.is_dictionary(kind):
        return to_plain(column.cast(kind.value_type))
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
