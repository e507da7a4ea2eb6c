"""Open table files: CSV, TSV, Parquet, XLSX and standard input; and guess which column has the addresses.

`open_table` decides by the ending of the file's name and returns a `TableFile`. CSV and TSV are in `delimited`.
"""

from __future__ import annotations

import datetime
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from ...errors import ColumnError, InputError, MissingExtraError
from ..columns import listed
from ..text_column import read_values
from .delimited import open_delimited
from .table_file import PIECE_ROWS, FileFormat, TableFile, first_line

__all__ = ["KINDS", "STDIN", "ReadOptions", "address_shares", "guess_column", "open_kind", "open_table"]

STDIN = "-"
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
SAMPLE_ROWS = 2_000  # looked at to guess the column
MIN_ADDRESS_SHARE = 0.3  # of the filled cells; a notes column that mentions an address now and then has far less
ADDRESS_LIKE = r"^\S+@\S+\.\S+$|<\S+@\S+>"
EXACT_INTEGERS = 2**53  # below this, a workbook's numbers, which are doubles, are exact


@dataclass(frozen=True)
class ReadOptions:
    """What the caller says about a file; what is None is found out."""

    encoding: str | None = None  # CSV
    delimiter: str | None = None  # CSV
    sheet: str | None = None  # XLSX; None: the first


def open_table(
    path: str | Path, *, encoding: str | None = None, delimiter: str | None = None, sheet: str | None = None
) -> TableFile:
    """Open a table file, or standard input as CSV for ``"-"``; use the result in a ``with`` statement.

    Raises `InputError` if the file does not exist, is a directory, is empty, or is not of the kind that its name says.
    """
    options = ReadOptions(encoding, delimiter, sheet)
    if str(path) == STDIN:
        return open_stdin(options)
    found = Path(path)
    if found.is_dir():
        raise InputError(f"{found} is a directory; give a file")
    if not found.exists():
        raise InputError(f"{found}: no such file")
    kind = KINDS.get(found.suffix.lower())
    if kind is None:
        raise InputError(f"{found}: cannot tell what kind of table this is; known endings: {', '.join(KINDS)}")
    return open_kind(found, kind, options, str(found))


def open_kind(path: Path, kind: str, options: ReadOptions, name: str) -> TableFile:
    """Open a file of a known kind; raise `InputError` for everything that is wrong with it."""
    if not path.stat().st_size:
        raise InputError(f"{name} is empty")
    try:
        return OPENERS[kind](path, name, options)
    except (pa.ArrowException, OSError, UnicodeError) as exc:
        raise InputError(f"{name}: {first_line(exc)}") from exc


def open_stdin(options: ReadOptions) -> TableFile:
    """Copy standard input to a temporary file, because a CSV is read more than once."""
    with tempfile.NamedTemporaryFile(prefix="mailverdict-", suffix=".csv", delete=False) as copy:
        path = Path(copy.name)
        try:
            shutil.copyfileobj(sys.stdin.buffer, copy)
            copy.close()
            opened = open_kind(path, "csv", options, "standard input")
        except BaseException:
            path.unlink()
            raise
    opened.is_temporary = True
    return opened


# --- Parquet ---------------------------------------------------------------------------------------


class ParquetFile(TableFile):
    """A Parquet file."""

    def __init__(self, path: Path, name: str) -> None:
        self.schema = pyarrow.parquet.read_schema(path)
        super().__init__(path, name, self.schema.names, FileFormat())

    def read(self) -> Iterator[pa.Table]:
        with pyarrow.parquet.ParquetFile(self.path) as reader:
            for batch in reader.iter_batches(batch_size=PIECE_ROWS):
                yield pa.Table.from_batches([batch])

    def empty_piece(self) -> pa.Table:
        return self.schema.empty_table()


# --- XLSX ------------------------------------------------------------------------------------------


class WorkbookSheet(TableFile):
    """A sheet of an XLSX file, read whole: it has about a million rows at most."""

    def __init__(self, path: Path, name: str, table: pa.Table, sheet: str) -> None:
        super().__init__(path, name, table.column_names, FileFormat(sheet=sheet))
        self.table = table

    def read(self) -> Iterator[pa.Table]:
        for start in range(0, len(self.table), PIECE_ROWS):
            yield self.table.slice(start, PIECE_ROWS)


def open_sheet(path: Path, name: str, sheet: str | None = None) -> WorkbookSheet:
    """Read a sheet; its first row is the header."""
    sheet, rows = read_sheet(path, name, sheet)
    header = [cell_text(cell) or "" for cell in rows[0]] if rows else []
    if not any(header):
        raise InputError(f"{name} has no header line")
    width = len(header)
    padded = ([*row, *[None] * width][:width] for row in rows[1:])
    columns = zip(*padded, strict=True) if rows[1:] else [()] * width
    return WorkbookSheet(path, name, pa.table([typed_column(cells) for cells in columns], names=header), sheet)


def read_sheet(path: Path, name: str, sheet: str | None) -> tuple[str, list[list[Any]]]:
    """The name of the sheet and its cells as Python values."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook  # noqa: PLC0415 - an extra
    except ImportError as exc:
        raise MissingExtraError("reading XLSX", "excel") from exc
    try:
        book = CalamineWorkbook.from_path(str(path))
        names = book.sheet_names
        if sheet is not None and sheet not in names:
            raise InputError(f"{name} has no sheet {sheet!r}; there are {', '.join(map(repr, names))}")
        if not names:
            raise InputError(f"{name} has no sheet")
        found = sheet or names[0]
        return found, book.get_sheet_by_name(found).to_python()
    except CalamineError as exc:
        raise InputError(f"{name} cannot be read as XLSX: {first_line(exc)}") from exc


def typed_column(cells: Sequence[Any]) -> pa.Array:
    """A typed column if all cells are of one kind, so that they can be written back unchanged; otherwise text."""
    filled = [None if cell == "" else cell for cell in cells]
    kinds = {type(cell) for cell in filled} - {type(None)}
    arrow_type = next((each for python_types, each in COLUMN_TYPES if kinds and kinds <= python_types), None)
    if arrow_type is None:
        return pa.array([cell_text(cell) for cell in filled], pa.string())
    if pa.types.is_floating(arrow_type) and all(cell is None or is_integer(cell) for cell in filled):
        return pa.array([None if cell is None else int(cell) for cell in filled], pa.int64())
    try:
        return pa.array(filled, arrow_type)
    except (pa.ArrowException, OverflowError, ValueError):  # a date out of Arrow's range
        return pa.array([cell_text(cell) for cell in filled], pa.string())


def is_integer(cell: float) -> bool:
    return abs(cell) < EXACT_INTEGERS and cell == int(cell)


def cell_text(cell: Any) -> str | None:
    """The cell as a spreadsheet shows it: integers without a fraction."""
    if cell is None or cell == "":
        return None
    if isinstance(cell, float) and is_integer(cell):
        return str(int(cell))
    return str(cell)


COLUMN_TYPES: tuple[tuple[set[type], pa.DataType], ...] = (
    ({bool}, pa.bool_()),
    ({int, float}, pa.float64()),
    ({datetime.date}, pa.date32()),
    ({datetime.datetime}, pa.timestamp("us")),
)
OPENERS: dict[str, Callable[[Path, str, ReadOptions], TableFile]] = {
    "csv": lambda path, name, given: open_delimited(path, name, encoding=given.encoding, delimiter=given.delimiter),
    "tsv": lambda path, name, given: open_delimited(
        path, name, encoding=given.encoding, delimiter=given.delimiter or "\t"
    ),
    "parquet": lambda path, name, _: ParquetFile(path, name),
    "xlsx": lambda path, name, given: open_sheet(path, name, given.sheet),
}


# --- the column of addresses -----------------------------------------------------------------------


def address_shares(columns: Mapping[Any, Any]) -> dict[Any, float]:
    """Share of filled cells that look like an address, by column, from the first rows.

    >>> address_shares({"who": ["Ada"], "mail": ["ada@example.org"]})
    {'who': 0.0, 'mail': 1.0}
    """
    return {name: share_of(values[:SAMPLE_ROWS]) for name, values in columns.items()}


def share_of(values: Any) -> float:
    texts = read_values(values).texts
    if not len(texts):
        return 0.0
    matches: pa.BooleanArray = pc.match_substring_regex(texts, ADDRESS_LIKE)
    return float(pc.mean(matches).as_py())


def guess_column(columns: Mapping[Any, Any]) -> Any:
    """The column with the largest share of addresses, the first of equals; `ColumnError` if no share is large."""
    shares = address_shares(columns)
    best = max(shares, key=shares.__getitem__, default=None)
    if best is None or shares[best] < MIN_ADDRESS_SHARE:
        raise ColumnError(f"no column looks like e-mail addresses; name one of {listed(list(columns))}")
    return best
