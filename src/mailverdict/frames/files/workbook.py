"""XLSX in: a sheet is read whole, since a workbook holds about a million rows at most."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...errors import InputError, MissingExtraError
from .table_file import PIECE_ROWS, TableFile, first_line

__all__ = ["Workbook"]


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
