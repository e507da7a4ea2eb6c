"""Writing table files: to a temporary neighbour first, renamed when complete."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from ..errors import InputError, MissingExtraError
from .files import KINDS, STDIN

__all__ = ["AtomicTable", "neutralize"]

# A spreadsheet takes a cell that starts like this for a formula; plain numbers are none.
FORMULA = r"^[=+\-@\t\r]"
NUMBER = r"^[+\-]?[0-9]+([.,][0-9]+)?$"
XLSX_ROWS = 1_048_576


def neutralize(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Put an apostrophe before text that a spreadsheet would run as a formula.

    >>> neutralize(pa.chunked_array([["=1+1", "-5", "ada"]])).to_pylist()
    ["'=1+1", '-5', 'ada']
    """
    risky = pc.and_not(pc.match_substring_regex(values, FORMULA), pc.match_substring_regex(values, NUMBER))
    if not pc.any(risky).as_py():
        return values
    return pc.if_else(risky, pc.binary_join_element_wise("'", values, ""), values)


class Sink(Protocol):
    """Takes pieces of one table, all with the same columns."""

    def write(self, piece: pa.Table) -> None:
        """Append a piece."""
        ...

    def close(self) -> None:
        """Finish the file."""
        ...


class CsvSink:
    """UTF-8 text; the header once."""

    def __init__(self, path: Path, delimiter: str, *, is_for_people: bool) -> None:
        self.file = path.open("wb")
        self.delimiter, self.is_for_people = delimiter, is_for_people
        self.has_header = False

    def write(self, piece: pa.Table) -> None:
        """Append rows; quotes only where needed."""
        plain = pa.table([self.plain(column) for column in piece.columns], names=piece.column_names)
        options = pyarrow.csv.WriteOptions(
            include_header=not self.has_header,
            delimiter=self.delimiter,
            quoting_style="needed",
            quoting_header="needed",
        )
        pyarrow.csv.write_csv(plain, self.file, options)
        self.has_header = True

    def plain(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Types that CSV can hold; for people, nothing that a spreadsheet would run."""
        column = as_plain(column)
        return neutralize(column) if self.is_for_people and pa.types.is_string(column.type) else column

    def close(self) -> None:
        """Close the file."""
        self.file.close()


class ParquetSink:
    """Arrow's own types, verdict and status dictionary-encoded."""

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
    """A workbook; every text is written as text, so that no cell is a formula."""

    def __init__(self, path: Path) -> None:
        try:
            import xlsxwriter  # noqa: PLC0415 - an extra
        except ImportError as exc:
            raise MissingExtraError("writing XLSX", "excel") from exc
        options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
        self.book = xlsxwriter.Workbook(str(path), options)
        self.sheet = self.book.add_worksheet("verified")
        self.row = 0

    def write(self, piece: pa.Table) -> None:
        """Append rows; the first piece brings the header."""
        if self.row == 0:
            self.put(piece.column_names)
            self.sheet.freeze_panes(1, 0)
        if self.row + len(piece) > XLSX_ROWS:
            raise InputError(f"more than {XLSX_ROWS:,} rows do not fit a workbook; write CSV or Parquet")
        for row in zip(*(as_plain(column).to_pylist() for column in piece.columns), strict=True):
            self.put(row)

    def put(self, cells: Any) -> None:
        """Write one row."""
        for i, cell in enumerate(cells):
            if cell is not None and cell != "":
                WRITE.get(type(cell), write_text)(self.sheet, self.row, i, cell)
        self.row += 1

    def close(self) -> None:
        """Write the workbook."""
        self.book.close()


def write_text(sheet: Any, row: int, column: int, cell: Any) -> None:
    sheet.write_string(row, column, str(cell)[:32_767])  # what one cell can hold


WRITE: dict[type, Any] = {
    bool: lambda sheet, row, column, cell: sheet.write_boolean(row, column, cell),
    int: lambda sheet, row, column, cell: sheet.write_number(row, column, cell),
    float: lambda sheet, row, column, cell: sheet.write_number(row, column, cell),
}


def as_plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dictionaries and long texts as text, nested values as text, the rest as it is."""
    kind = column.type
    if pa.types.is_dictionary(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.string())
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.chunked_array([[None if v is None else str(v) for v in column.to_pylist()]], pa.string())
    return column


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
    """

    def __init__(self, path: Path | str, *, delimiter: str = ",", is_for_people: bool = True) -> None:
        self.path = Path(path)
        self.is_stdout = str(path) == STDIN
        self.kind = "csv" if self.is_stdout else KINDS.get(self.path.suffix.lower(), "")
        if not self.kind:
            raise InputError(f"{path}: cannot tell what kind of table to write; known endings: {', '.join(KINDS)}")
        if self.path.is_dir() or not self.path.parent.is_dir():
            raise InputError(f"{path} cannot be written: {'it is' if self.path.is_dir() else 'there is no'} directory")
        self.delimiter = "\t" if self.kind == "tsv" else delimiter
        self.is_for_people = is_for_people
        self.keep = False

    def __enter__(self) -> AtomicTable:
        """Open the temporary file beside the target, so that renaming is atomic."""
        where = tempfile.gettempdir() if self.is_stdout else self.path.parent
        handle, name = tempfile.mkstemp(prefix=f".{self.path.name}-", suffix=".part", dir=where)
        os.close(handle)
        self.part = Path(name)
        self.sink: Sink = self.open_sink()
        return self

    def open_sink(self) -> Sink:
        """The sink for the kind."""
        if self.kind == "parquet":
            return ParquetSink(self.part)
        if self.kind == "xlsx":
            return XlsxSink(self.part)
        return CsvSink(self.part, self.delimiter, is_for_people=self.is_for_people)

    def write(self, piece: pa.Table) -> None:
        """Append a piece."""
        self.sink.write(piece)

    def keep_partial(self) -> None:
        """Let the file appear although the work is interrupted."""
        self.keep = True

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Rename when all went well, remove otherwise."""
        try:
            self.sink.close()
            if kind is None or self.keep:
                self.publish()
        finally:
            self.part.unlink(missing_ok=True)

    def publish(self) -> None:
        """Give the file its name, with the permissions a new file would have."""
        if self.is_stdout:
            with self.part.open("rb") as part:
                shutil.copyfileobj(part, sys.stdout.buffer)
            sys.stdout.buffer.flush()
            return
        umask = os.umask(0)
        os.umask(umask)
        self.part.chmod(0o666 & ~umask)
        self.part.replace(self.path)
