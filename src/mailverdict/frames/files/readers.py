"""XLSX in: a sheet is read whole, since a workbook holds about a million rows at most."""

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
from .delimited import DelimitedFile
from .table_file import PIECE_ROWS, TableFile, first_line

__all__ = ["KINDS", "STDIN", "Workbook", "address_shares", "guess_column", "open_table"]


class Workbook(TableFile):
    """A sheet of an XLSX file; its first row is the header.

    Parameters
    ----------
    path : Path
        The file.
    shown_as : str
        How messages name it.
    sheet : str or None
        None: the first.
    """

    def __init__(self, path: Path, shown_as: str, *, sheet: str | None = None) -> None:
        rows = read_sheet(path, shown_as, sheet)
        header = [cell_text(cell) or "" for cell in rows[0]] if rows else []
        if not any(header):
            raise InputError(f"{shown_as} has no header line")
        super().__init__(path, header, shown_as)
        columns = zip(*(pad(row, len(header)) for row in rows[1:]), strict=True) if rows[1:] else [()] * len(header)
        self.cells = pa.table([column_of(cells) for cells in columns], names=header)

    def read(self) -> Iterator[pa.Table]:
        """The rows, a piece at a time."""
        for start in range(0, len(self.cells), PIECE_ROWS):
            yield self.cells.slice(start, PIECE_ROWS)


def read_sheet(path: Path, shown_as: str, sheet: str | None) -> list[list[Any]]:
    """All cells of a sheet, as Python values."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook  # noqa: PLC0415 - an extra
    except ImportError as exc:
        raise MissingExtraError("reading XLSX", "excel") from exc
    try:
        book = CalamineWorkbook.from_path(str(path))
        names = book.sheet_names
        if sheet is not None and sheet not in names:
            raise InputError(f"{shown_as} has no sheet {sheet!r}; there are {', '.join(map(repr, names))}")
        if not names:
            raise InputError(f"{shown_as} has no sheet at all")
        rows: list[list[Any]] = book.get_sheet_by_name(sheet or names[0]).to_python()
    except CalamineError as exc:
        raise InputError(f"{shown_as} cannot be read as XLSX: {first_line(exc)}") from exc
    return rows


def pad(row: Sequence[Any], width: int) -> list[Any]:
    """As many cells as the header has."""
    return [*row, *[None] * width][:width]


def column_of(cells: Sequence[Any]) -> pa.Array:
    """A typed column where all its cells are of one kind, so that it can be written back as it was; else text."""
    filled = [None if cell == "" else cell for cell in cells]
    kinds = {type(cell) for cell in filled} - {type(None)}
    kind = next((kind for among, kind in COLUMN_TYPES if kinds and kinds <= among), None)
    if kind is None:
        return pa.array([cell_text(cell) for cell in filled], pa.string())
    if pa.types.is_floating(kind) and all(cell is None or is_whole(cell) for cell in filled):
        return pa.array([None if cell is None else int(cell) for cell in filled], pa.int64())
    try:
        return pa.array(filled, kind)
    except (pa.ArrowException, OverflowError, ValueError):  # a date beyond Arrow's
        return pa.array([cell_text(cell) for cell in filled], pa.string())


def is_whole(cell: float) -> bool:
    """Whether a number of a workbook is a whole one that it can hold exactly."""
    return abs(cell) < EXACT and cell == int(cell)


def cell_text(cell: Any) -> str | None:
    """What a person sees in the cell; whole numbers without a fraction."""
    if cell is None or cell == "":
        return None
    if isinstance(cell, float) and is_whole(cell):
        return str(int(cell))
    return str(cell)


EXACT = 2**53  # a workbook's numbers are doubles
COLUMN_TYPES: tuple[tuple[set[type], pa.DataType], ...] = (
    ({bool}, pa.bool_()),
    ({int, float}, pa.float64()),
    ({datetime.date}, pa.date32()),
    ({datetime.datetime}, pa.timestamp("us")),
)


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


@dataclass(frozen=True)
class Hints:
    """What the caller knows of a file; None is found out."""

    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None


class ParquetFile(TableFile):
    """A Parquet file.

    Parameters
    ----------
    path : Path
        The file.
    shown_as : str
        How messages name it.
    """

    def __init__(self, path: Path, shown_as: str) -> None:
        self.schema = pyarrow.parquet.read_schema(path)
        super().__init__(path, self.schema.names, shown_as)

    def read(self) -> Iterator[pa.Table]:
        """The rows, a piece at a time."""
        with pyarrow.parquet.ParquetFile(self.path) as reader:
            for batch in reader.iter_batches(batch_size=PIECE_ROWS):
                yield pa.Table.from_batches([batch])

    def empty(self) -> pa.Table:
        """No rows, with the types of the columns."""
        return self.schema.empty_table()


def open_table(
    path: str | Path, *, encoding: str | None = None, delimiter: str | None = None, sheet: str | None = None
) -> TableFile:
    """Look at a file: its kind, encoding, delimiter and header. To be closed, or used in a ``with`` statement.

    Raises
    ------
    InputError
        If it is not there, a directory, empty, of no known kind, or not what its name says.
    """
    hints = Hints(encoding, delimiter, sheet)
    if str(path) == STDIN:
        return open_stdin(hints)
    found = Path(path)
    if found.is_dir():
        raise InputError(f"{found} is a directory; give a file")
    if not found.exists():
        raise InputError(f"{found}: no such file")
    kind = KINDS.get(found.suffix.lower())
    if kind is None:
        raise InputError(f"{found}: cannot tell what kind of table this is; known endings: {', '.join(KINDS)}")
    return open_kind(found, kind, hints, str(found))


def open_kind(path: Path, kind: str, hints: Hints, shown_as: str) -> TableFile:
    """Open a file of a known kind; whatever is wrong with it is an `InputError`."""
    if not path.stat().st_size:
        raise InputError(f"{shown_as} is empty")
    try:
        return OPENERS[kind](path, shown_as, hints)
    except (pa.ArrowException, OSError, UnicodeError) as exc:
        raise InputError(f"{shown_as}: {first_line(exc)}") from exc


def open_stdin(hints: Hints) -> TableFile:
    """Standard input as a file, since its encoding is looked at before it is read."""
    with tempfile.NamedTemporaryFile(prefix="mailverdict-", suffix=".csv", delete=False) as copy:
        spooled = Path(copy.name)
        try:
            shutil.copyfileobj(sys.stdin.buffer, copy)
            copy.close()
            opened = open_kind(spooled, "csv", hints, "standard input")
        except BaseException:
            spooled.unlink()
            raise
    opened.is_temporary = True
    return opened


def open_tsv(path: Path, shown_as: str, hints: Hints) -> TableFile:
    return DelimitedFile(path, shown_as, encoding=hints.encoding, delimiter=hints.delimiter or "\t")


OPENERS: dict[str, Callable[[Path, str, Hints], TableFile]] = {
    "csv": lambda path, shown, hints: DelimitedFile(path, shown, encoding=hints.encoding, delimiter=hints.delimiter),
    "tsv": open_tsv,
    "parquet": lambda path, shown, hints: ParquetFile(path, shown),
    "xlsx": lambda path, shown, hints: Workbook(path, shown, sheet=hints.sheet),
}


SAMPLE_ROWS = 2_000
ENOUGH = 0.3  # of the filled cells; a notes column that mentions an address now and then has far less
SHAPE = r"^\S+@\S+\.\S+$|<\S+@\S+>"


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
    matches: pa.BooleanArray = pc.match_substring_regex(texts, SHAPE)
    return float(pc.mean(matches).as_py())


def guess_column(columns: Mapping[Any, Any]) -> Any:
    """The column with the largest share; the first of equals.

    Raises
    ------
    ColumnError
        If none looks like addresses.
    """
    shares = address_shares(columns)
    best = max(shares, key=shares.__getitem__, default=None)
    if best is None or shares[best] < ENOUGH:
        raise ColumnError(f"no column looks like e-mail addresses; name one of {listed(list(columns))}")
    return best
