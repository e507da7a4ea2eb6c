"""Read a sheet of a workbook (XLSX) as a table."""

from __future__ import annotations

import datetime
import posixpath
import re
import zipfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa

from ...errors import InputError, MissingExtraError
from ...model.words import count_of
from ..columns import did_you_mean, listed
from .header import HEAD_ROWS, find_start
from .table_file import PIECE_ROWS, FileFormat, TableFile, first_line, stamp_of

__all__ = ["open_sheet"]

SHEET_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
BLOCK = 1 << 20  # octets that are read at a time
EXACT_INTEGERS = 2**53  # below this, a workbook's numbers, which are doubles, are exact
LONGEST_XML_CELL = 1 << 20  # octets
LONGEST_PART = 1 << 24  # octets of the list of sheets
# A cell with a formula and no value; an empty text that was saved has the type "str".
FORMULA_WITHOUT_VALUE = re.compile(
    rb"<(?:\w+:)?c\b(?![^<>]*\bt=[\"']str)[^<>]*>\s*<(?:\w+:)?f\b(?:[^<>]*/>|[^<>]*>[^<]*</(?:\w+:)?f>)\s*"
    rb"(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v>\s*</(?:\w+:)?v>)?\s*</(?:\w+:)?c>"
)


class WorkbookSheet(TableFile):
    """A sheet of an XLSX file, read whole: it has about a million rows at most."""

    def __init__(self, path: Path, name: str, table: pa.Table, file_format: FileFormat) -> None:
        super().__init__(path, name, table.column_names, file_format)
        self.table = table

    def read(self, only: Collection[str] | None = None, *, with_lines: bool = False) -> Iterator[pa.Table]:
        for start in range(0, len(self.table), PIECE_ROWS):
            yield self.table.slice(start, PIECE_ROWS)


def open_sheet(path: Path, name: str, sheet: str | None, *, has_header: bool | None) -> WorkbookSheet:
    """Read a sheet; its first row is the header unless an address is in it."""
    stamp = stamp_of(path)
    is_chosen = sheet is not None
    sheet, names, rows = read_sheet(path, name, sheet)
    head = [[cell_text(cell) or "" for cell in row] for row in rows[:HEAD_ROWS]]
    start, has_header = find_start(head) if has_header is None else (0, has_header)
    title, rows = rows[:start], rows[start:]
    if not head or not any(head[start]):
        raise InputError(f"{name} has no header line" + (f" in sheet {sheet!r}" if len(names) > 1 else ""))
    width = len(rows[0]) if has_header else max(map(len, rows))
    body = rows[1:] if has_header else rows
    padded = ([*row, *[None] * width][:width] for row in body)
    columns = zip(*padded, strict=True) if body else [()] * width
    labels = head[start] if has_header else [f"column_{i}" for i in range(1, width + 1)]
    found = FileFormat(sheet=sheet, sheets=names, title=title, formulas=count_formulas_without_value(path, sheet))
    opened = WorkbookSheet(path, name, pa.table([typed_column(cells) for cells in columns], names=labels), found)
    opened.watch(path, stamp)
    opened.remarks += sheet_remarks(found, start, is_chosen=is_chosen)
    if not has_header:
        opened.remarks.append(f"no header line: the columns are column_1 to column_{width}")
    return opened


def sheet_remarks(found: FileFormat, header_row: int, *, is_chosen: bool) -> Iterator[str]:
    """What a user should know about a sheet that was read; `header_row` counts from 0."""
    if found.formulas:
        yield (
            f"{count_of(found.formulas, 'formula')} without a saved value, as programs write them: read as empty "
            "cells; open the workbook in a spreadsheet program and save it, so that it has the values"
        )
    if found.title:
        yield (
            f"the header is row {header_row + 1}; the rows before it are a title, which is not part of the table "
            "(--header: row 1 is the header)"
        )
    if len(found.sheets) > 1 and not is_chosen:
        others = ", ".join(repr(each) for each in found.sheets if each != found.sheet)
        yield f"only sheet {found.sheet!r} is read, and not {others}; give another with --sheet"


def read_sheet(path: Path, name: str, sheet: str | None) -> tuple[str, list[str], list[list[Any]]]:
    """The name of the sheet, all names, and its cells as Python values.

    By default it is the first that is not empty, of those that are not hidden if there are any.
    """
    try:
        from python_calamine import CalamineError, CalamineWorkbook, SheetVisibleEnum  # noqa: PLC0415 - an extra
    except ImportError as exc:
        raise MissingExtraError("reading XLSX", "excel") from exc
    try:
        book = CalamineWorkbook.from_path(str(path))
        names = book.sheet_names
        if sheet is not None and sheet not in names:
            raise InputError(f"{name} has no sheet {sheet!r}{did_you_mean(sheet, names)}; there are {listed(names)}")
        if not names:
            raise InputError(f"{name} has no sheet")
        hidden = {each.name for each in book.sheets_metadata if each.visible != SheetVisibleEnum.Visible}
        for found in sorted(names, key=hidden.__contains__) if sheet is None else [sheet]:
            rows = book.get_sheet_by_name(found).to_python()
            if rows:
                break
        return found, names, rows
    except CalamineError as exc:
        raise InputError(f"{name} cannot be read as XLSX: {reason_of(path, exc)}") from exc


def reason_of(path: Path, exc: Exception) -> str:
    """Why a file is not a workbook."""
    with path.open("rb") as file:
        if file.read(4) == b"\xd0\xcf\x11\xe0":
            return "it has a password, or is an old workbook (.xls); save it as .xlsx without one"
    try:
        with zipfile.ZipFile(path) as archive:
            if "xl/workbook.xml" not in archive.namelist():
                return "it is a zip file without a workbook in it; give the table itself, or a file that ends in .zip"
    except (OSError, ValueError, zipfile.BadZipFile):
        pass
    return first_line(exc)


def count_formulas_without_value(path: Path, sheet: str) -> int:
    """Formulas of a sheet whose value is not in the file, so that their cells are read as empty.

    A spreadsheet program saves the value beside the formula; openpyxl, and pandas with it, do not.
    """
    try:
        with zipfile.ZipFile(path) as book, book.open(sheet_part(book, sheet)) as part:
            found, rest = 0, b""
            while block := part.read(BLOCK):
                cells = rest + block
                end = cells.rfind(b"c>") + 2  # of a cell
                rest = cells[end:][-LONGEST_XML_CELL:]
                if b"<f" in cells or b":f" in cells:
                    found += len(FORMULA_WITHOUT_VALUE.findall(cells, 0, end))
            return found
    except (LookupError, OSError, StopIteration, ValueError, ElementTree.ParseError, zipfile.BadZipFile):
        return 0  # not as ECMA-376 has it, although the cells were read


def sheet_part(book: zipfile.ZipFile, sheet: str) -> str:
    """The name in the archive of a sheet's XML (ECMA-376 part 1, section 18.2.19, and part 2, section 9.3)."""
    sheets = read_xml(book, "xl/workbook.xml").iter()
    key = next(each.attrib[SHEET_ID] for each in sheets if each.get("name") == sheet and SHEET_ID in each.attrib)
    links = read_xml(book, "xl/_rels/workbook.xml.rels")
    target = next(each.attrib["Target"] for each in links if each.get("Id") == key)
    return posixpath.normpath(posixpath.join("/xl", target)).lstrip("/")


def read_xml(book: zipfile.ZipFile, part: str) -> ElementTree.Element:
    with book.open(part) as octets:
        return ElementTree.fromstring(octets.read(LONGEST_PART))  # noqa: S314 - expat limits what entities expand to


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
    """The cell as a spreadsheet shows it: integers without a fraction, durations in hours.

    >>> cell_text(5.0), cell_text(datetime.timedelta(hours=30, seconds=5))
    ('5', '30:00:05')
    """
    if cell is None or cell == "":
        return None
    if isinstance(cell, float) and is_integer(cell):
        return str(int(cell))
    if isinstance(cell, datetime.timedelta):
        minutes, seconds = divmod(round(abs(cell.total_seconds())), 60)
        return f"{'-' if cell.days < 0 else ''}{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    return str(cell)


COLUMN_TYPES: tuple[tuple[set[type], pa.DataType], ...] = (
    ({bool}, pa.bool_()),
    ({int, float}, pa.float64()),
    ({datetime.date}, pa.date32()),
    ({datetime.datetime}, pa.timestamp("us")),
)
