"""Table files in and out: CSV, TSV, Parquet, XLSX, standard input. Piece by piece, and atomic.

A file is read in pieces so that one larger than memory passes through, and written to a temporary
file that takes its name only when everything went well.
"""

from __future__ import annotations

import codecs
import csv
import io
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from ..errors import ColumnError, InputError, MissingExtraError
from .kinds import check_column

__all__ = ["STDIN", "TableFile", "open_table"]

STDIN = "-"
BLOCK = 16 << 20  # octets of CSV parsed at once: bounds memory
PIECE_ROWS = 250_000  # rows handed on at once
DELIMITERS = ",;\t|"
SAMPLE = 64 << 10
KINDS = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
}
BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True)
class TableFile:
    """A table file that can be read piece by piece.

    Attributes
    ----------
    path : Path
        Where it lies; for standard input a temporary copy.
    kind : str
        ``csv``, ``tsv``, ``parquet`` or ``xlsx``.
    columns : tuple of str
        As in the header, duplicates and all.
    encoding, delimiter : str
        Of a CSV; detected or given.
    shown_as : str
        How messages name it.
    sheet : str or None
        Of an XLSX; None: the first.
    """

    path: Path
    kind: str
    columns: tuple[str, ...]
    encoding: str = "utf-8"
    delimiter: str = ","
    shown_as: str = ""
    sheet: str | None = None
    cells: pa.Table | None = field(default=None, repr=False, compare=False)

    def check_column(self, column: str) -> None:
        """Raise `ColumnError` unless the column is there exactly once."""
        try:
            check_column(column, list(self.columns))
        except ColumnError as exc:
            raise ColumnError(f"{self.shown_as}: {exc}") from None

    def pieces(self) -> Iterator[pa.Table]:
        """The rows, a piece at a time; an `InputError` where the file breaks off or is malformed."""
        try:
            yield from READERS[self.kind](self)
        except UnicodeDecodeError as exc:
            raise InputError(encoding_message(self.shown_as, exc)) from exc
        except (pa.ArrowInvalid, pa.ArrowException, OSError) as exc:
            raise InputError(f"{self.shown_as}: {first_line(exc)}") from exc


def open_table(
    path: str | Path, *, encoding: str | None = None, delimiter: str | None = None, sheet: str | None = None
) -> TableFile:
    """Look at a file: its kind, encoding, delimiter and header. Nothing else is read yet.

    Raises
    ------
    InputError
        If it is not there, a directory, empty, of no known kind, or not what its name says.
    """
    if str(path) == STDIN:
        return open_csv(spool_stdin(), "csv", encoding, delimiter, "standard input")
    found = Path(path)
    if found.is_dir():
        raise InputError(f"{found} is a directory; give a file")
    if not found.exists():
        raise InputError(f"{found}: no such file")
    kind = KINDS.get(found.suffix.lower())
    if kind is None:
        raise InputError(f"{found}: cannot tell what kind of table this is; known endings: {', '.join(KINDS)}")
    if not found.stat().st_size:
        raise InputError(f"{found} is empty")
    try:
        return OPENERS[kind](found, kind, encoding, delimiter, str(found), sheet)
    except UnicodeDecodeError as exc:
        raise InputError(encoding_message(str(found), exc)) from exc
    except (pa.ArrowInvalid, pa.ArrowException, OSError) as exc:
        raise InputError(f"{found}: {first_line(exc)}") from exc


def spool_stdin() -> Path:
    """Standard input as a file, since its encoding is looked at before it is read."""
    with tempfile.NamedTemporaryFile(prefix="mailverdict-", suffix=".csv", delete=False) as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
    if not Path(copy.name).stat().st_size:
        raise InputError("standard input is empty")
    return Path(copy.name)


def open_csv(
    path: Path,
    kind: str,
    encoding: str | None,
    delimiter: str | None,
    shown_as: str,
    sheet: str | None = None,
) -> TableFile:
    """Detect what is not given, and read the header."""
    with path.open("rb") as file:
        head = file.read(SAMPLE)
    if encoding is not None:
        check_encoding(encoding)
    chosen = encoding or next((name for bom, name in BOMS if head.startswith(bom)), "utf-8")
    text = decode_head(head, chosen, path.stat().st_size > len(head))
    if "\0" in text:
        raise InputError(
            f"{shown_as} holds NUL characters: it is no text table, or its encoding is another; give --encoding"
        )
    separator = delimiter or ("\t" if kind == "tsv" else guess_delimiter(text))
    header = next(csv.reader(io.StringIO(text, newline=""), delimiter=separator), [])
    if not any(header):
        raise InputError(f"{shown_as} has no header line")
    return TableFile(path, kind, tuple(header), chosen, separator, shown_as, sheet)


def check_encoding(encoding: str) -> None:
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise InputError(f"encoding {encoding!r} is not known; try utf-8, utf-16, cp1252 or latin-1") from None


def decode_head(head: bytes, encoding: str, is_cut: bool) -> str:  # noqa: FBT001 - one private caller
    """The first characters; a character cut in two at the end of the sample is no error."""
    return codecs.getincrementaldecoder(encoding)("strict").decode(head, final=not is_cut)


def guess_delimiter(text: str) -> str:
    """The one that the header line has most of, outside quotes."""
    line = next(iter(text.splitlines()), "")
    outside = "".join(line.split('"')[::2])
    return max(DELIMITERS, key=outside.count)


def read_csv(file: TableFile) -> Iterator[pa.Table]:
    """All cells as text, the empty ones as empty text, so that nothing is reinterpreted."""
    labels = [f"c{i}" for i in range(len(file.columns))]
    options = {
        "read_options": pyarrow.csv.ReadOptions(
            block_size=BLOCK, column_names=labels, skip_rows_after_names=1, encoding=arrow_encoding(file.encoding)
        ),
        "parse_options": pyarrow.csv.ParseOptions(delimiter=file.delimiter, newlines_in_values=True),
        "convert_options": pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(labels, pa.string()), strings_can_be_null=False, quoted_strings_can_be_null=False
        ),
    }
    check_closed_quotes(file)
    with pyarrow.csv.open_csv(file.path, **options) as reader:
        for batch in reader:
            yield pa.table(batch.columns, names=list(file.columns))


def arrow_encoding(encoding: str) -> str:
    """Arrow skips a UTF-8 BOM by itself and reads plain UTF-8 without transcoding."""
    return "utf8" if codecs.lookup(encoding).name in ("utf-8", "utf-8-sig", "ascii") else encoding


def check_closed_quotes(file: TableFile) -> None:
    """A file that ends inside quotes was cut off: its last rows would silently be one cell."""
    if codecs.lookup(file.encoding).name not in ("utf-8", "utf-8-sig", "ascii", "cp1252", "iso8859-1"):
        return
    quotes = 0
    with file.path.open("rb") as handle:
        while block := handle.read(BLOCK):
            quotes += block.count(b'"')
    if quotes % 2:
        raise InputError(f"{file.shown_as} ends inside quotes: it is cut off, or a quote is not doubled")


def open_parquet(
    path: Path, kind: str, encoding: str | None, delimiter: str | None, shown_as: str, sheet: str | None
) -> TableFile:
    """Columns come from the file's own schema."""
    schema = pyarrow.parquet.read_schema(path)
    return TableFile(path, kind, tuple(schema.names), shown_as=shown_as)


def read_parquet(file: TableFile) -> Iterator[pa.Table]:
    with pyarrow.parquet.ParquetFile(file.path) as reader:
        for batch in reader.iter_batches(batch_size=PIECE_ROWS):
            yield pa.Table.from_batches([batch])


def open_xlsx(
    path: Path, kind: str, encoding: str | None, delimiter: str | None, shown_as: str, sheet: str | None
) -> TableFile:
    """Read a sheet whole; a workbook holds about a million rows at most."""
    rows = read_sheet(path, sheet)
    if not rows or not any(str(cell) for cell in rows[0]):
        raise InputError(f"{shown_as} has no header line")
    columns = tuple(cell_text(cell) or "" for cell in rows[0])
    width = len(columns)
    body = [[*row, *[""] * width][:width] for row in rows[1:]]
    arrays = [pa.array([cell_text(row[i]) for row in body], pa.string()) for i in range(width)]
    return TableFile(path, kind, columns, shown_as=shown_as, sheet=sheet, cells=pa.table(arrays, names=list(columns)))


def read_sheet(path: Path, sheet: str | None) -> list[list[Any]]:
    try:
        from python_calamine import CalamineError, CalamineWorkbook  # noqa: PLC0415 - an extra
    except ImportError as exc:
        raise MissingExtraError("reading XLSX", "excel") from exc
    try:
        book = CalamineWorkbook.from_path(str(path))
        names = book.sheet_names
        if sheet is not None and sheet not in names:
            raise InputError(f"{path} has no sheet {sheet!r}; there are {', '.join(map(repr, names))}")
        rows: list[list[Any]] = book.get_sheet_by_name(sheet or names[0]).to_python()
    except CalamineError as exc:
        raise InputError(f"{path} cannot be read as XLSX: {first_line(exc)}") from exc
    return rows


def cell_text(cell: Any) -> str | None:
    """What a person sees in the cell; whole numbers without a fraction."""
    if cell is None or cell == "":
        return None
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return cell if isinstance(cell, str) else str(cell)


def read_xlsx(file: TableFile) -> Iterator[pa.Table]:
    assert file.cells is not None
    yield file.cells


OPENERS: dict[str, Any] = {"csv": open_csv, "tsv": open_csv, "parquet": open_parquet, "xlsx": open_xlsx}
READERS: dict[str, Any] = {"csv": read_csv, "tsv": read_csv, "parquet": read_parquet, "xlsx": read_xlsx}


def first_line(exc: BaseException) -> str:
    return (str(exc).strip().splitlines() or [type(exc).__name__])[0][:300]


def encoding_message(shown_as: str, exc: UnicodeDecodeError) -> str:
    octet = exc.object[exc.start]
    return (
        f"{shown_as} is not {exc.encoding}: octet 0x{octet:02x} at position {exc.start} of a block; "
        "say which encoding it is, as --encoding cp1252"
    )
