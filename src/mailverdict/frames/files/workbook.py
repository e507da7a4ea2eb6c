"""Workbooks (XLSX) for people: a header that stays, filters, widths that fit, a sheet for each action and a summary.

Rows are written as they come and are not held in memory (`constant_memory` of xlsxwriter). Text is written as text, so
that no cell is a formula.
"""

from __future__ import annotations

import datetime
import decimal
import os
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InputError, MissingExtraError
from ...model.words import count_of
from ...theme import COLOURS, LABELS, colour
from ..columns import ACTIONS
from ..policy import ACTION_MEANING
from .plain import to_plain
from .table_file import FileFormat

XLSX_ROWS, XLSX_COLUMNS = 1_048_576, 16_384
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
NARROW, WIDE, MOMENT = 8, 48, 19  # characters: the least and the greatest width of a column, and that of a time
ARROW = 3  # characters that the button of a filter covers
SHEET_NAME = 31  # characters; a workbook allows no more
A4 = 9  # in the numbers of paper sizes
MARK = "mailverdict"  # a property of workbooks with sheets by action, which may be replaced as a whole
EXACT_DIGITS = 15  # of a decimal that a double gives back
UNNAMED = "verified"
# What a workbook may hold that openpyxl does not keep, by the folder or file in the archive.
NOT_KEPT = {
    "xl/charts/": "charts",
    "xl/media/": "pictures",
    "xl/pivot": "pivot tables",
    "xl/slicer": "slicers",
    "xl/ctrlProps/": "form controls",
    "xl/vbaProject": "macros",
    "xl/threadedComments/": "threaded comments",
}


def import_xlsxwriter(doing: str) -> Any:
    try:
        import xlsxwriter  # noqa: PLC0415 - an extra
    except ImportError as exc:
        raise MissingExtraError(doing, "excel") from exc
    return xlsxwriter


def check_room(rows: int = 0, columns: int = 0) -> None:
    """Raise `InputError` for a table that a sheet has no room for; xlsxwriter would leave the rest out."""
    for count, most, what in ((rows, XLSX_ROWS - 1, "rows"), (columns, XLSX_COLUMNS, "columns")):
        if count > most:
            raise InputError(f"more than {most:,} {what} do not fit a workbook; write CSV or Parquet")


class PersonBook:
    """A new workbook with its formats, and worksheets with names that do not occur twice."""

    def __init__(self, path: Path, doing: str = "writing XLSX") -> None:
        self.path = path
        self.book = import_xlsxwriter(doing).Workbook(str(path), XLSX_OPTIONS)
        ground, line = COLOURS["sunken"].light, COLOURS["line-strong"].light
        self.head = self.book.add_format({"bold": True, "bg_color": ground, "bottom": 1, "bottom_color": line})
        self.title = self.book.add_format({"bold": True, "font_size": 16})
        self.section = self.book.add_format({"bold": True, "font_size": 12})
        self.share = self.book.add_format({"num_format": "0.0%"})
        self.count = self.book.add_format({"num_format": "#,##0"})
        self.names: set[str] = set()

    def add_sheet(self, name: str) -> Any:
        """A worksheet; the name gets a number if there is a sheet of this name, in whatever case."""
        wanted, number = name[:SHEET_NAME], 1
        while wanted.lower() in self.names:
            number += 1
            end = f" {number}"
            wanted = name[: SHEET_NAME - len(end)] + end
        self.names.add(wanted.lower())
        sheet = self.book.add_worksheet(wanted)
        sheet.set_landscape()
        sheet.set_paper(A4)
        sheet.fit_to_pages(1, 0)  # all columns on one page when printed
        return sheet

    def close(self) -> None:
        from xlsxwriter.exceptions import FileCreateError  # noqa: PLC0415 - an extra

        try:
            self.book.close()
        except FileCreateError as exc:
            # The zip file is still open, and closes itself later: that needs some room on a full disk.
            with suppress(OSError):
                os.truncate(self.path, 0)
            raise exc.args[0] from exc  # the OSError


class TableSheet:
    """A worksheet with one table: a header that stays in view, filters, and columns as wide as their longest text."""

    def __init__(self, book: PersonBook, name: str, title: Iterable[Sequence[Any]] = ()) -> None:
        self.book, self.sheet = book, book.add_sheet(name)
        self.row = 0
        self.header_row: int | None = None
        self.widths: list[int] = []
        for cells in title:
            put_row(self.sheet, self.row, cells)
            self.row += 1

    def begin(self, names: Sequence[str]) -> None:
        """Write the header, once."""
        if self.header_row is not None:
            return
        for column, name in enumerate(names):
            self.sheet.write_string(self.row, column, str(name)[:XLSX_CELL], self.book.head)
        self.header_row, self.row = self.row, self.row + 1
        self.sheet.freeze_panes(self.row, 0)
        self.widths = [len(str(name)) + ARROW for name in names]

    def write(self, columns: Sequence[Any]) -> None:
        """Append the rows of columns of plain types."""
        self.widths = [max(width, width_of(column)) for width, column in zip(self.widths, columns, strict=True)]
        for cells in zip(*(column.to_pylist() for column in columns), strict=True):
            put_row(self.sheet, self.row, cells)
            self.row += 1

    def finish(self) -> None:
        """Set what depends on all rows."""
        if self.header_row is None:
            return
        for column, width in enumerate(self.widths):
            self.sheet.set_column(column, column, min(max(width, NARROW), WIDE) + 1)
        if self.widths:
            self.sheet.autofilter(self.header_row, 0, max(self.row - 1, self.header_row), len(self.widths) - 1)


def width_of(column: Any) -> int:
    """Characters of the longest value, roughly for what is not text."""
    kind = column.type
    if pa.types.is_string(kind):
        return int(pc.max(pc.utf8_length(column)).as_py() or 0)
    if pa.types.is_temporal(kind):
        return MOMENT
    if pa.types.is_integer(kind):
        ends = pc.min_max(column).as_py()
        return max(len(str(end)) for end in ends.values() if end is not None) if ends["max"] is not None else 0
    return NARROW


def count_long(column: Any) -> int:
    """Cells that are longer than a workbook allows."""
    if not pa.types.is_string(column.type):
        return 0
    return int(pc.sum(pc.greater(pc.utf8_length(column), XLSX_CELL)).as_py() or 0)


class XlsxTableWriter:
    """A workbook whose first sheet is the table, named as that of the workbook `like`, with the rows before its header.

    `others` is the workbook that is replaced, if it has several sheets: all but the one of this name stay. `by_action`
    is the column with what to do with each row: each action gets a sheet of its own, and there is a summary. A workbook
    with other sheets gets neither.
    """

    def __init__(
        self, path: Path, like: FileFormat | None = None, others: Any = None, by_action: str | None = None
    ) -> None:
        self.book, self.path, self.others = PersonBook(path), path, others
        self.by_action = None if others is not None else by_action
        title = like.title if like else ()
        self.table = TableSheet(self.book, (like and like.sheet) or UNNAMED, title)
        self.counts: Counter[str] = Counter()
        self.cut = 0  # cells
        if self.by_action is not None:
            self.book.book.set_custom_property(MARK, "sheets by action")
            self.summary = self.book.add_sheet("Summary")
            self.parts = {name: TableSheet(self.book, LABELS[name]) for name in ACTIONS}

    @property
    def remarks(self) -> Sequence[str]:
        cells = count_of(self.cut, "cell")
        return [f"{cells} cut to {XLSX_CELL:,} characters, the most that a workbook allows"] if self.cut else []

    def write(self, piece: pa.Table) -> None:
        """Append rows; the first piece gives the header."""
        self.table.begin(piece.column_names)
        check_room(self.table.row - 1 + len(piece), piece.num_columns)
        columns = [to_plain(column) for column in piece.columns]
        self.table.write(columns)
        self.cut += sum(map(count_long, columns))
        if self.by_action is not None:
            self.write_parts(piece.column_names, columns, to_plain(piece[self.by_action]))

    def write_parts(self, names: Sequence[str], columns: Sequence[Any], actions: Any) -> None:
        """Append each row to the sheet of its action."""
        for name, part in self.parts.items():
            part.begin(names)
            rows = np.flatnonzero(np.asarray(pc.equal(actions, name).fill_null(False)))
            if len(rows):
                part.write([column.take(pa.array(rows)) for column in columns])
            self.counts[name] += len(rows)

    def close(self) -> None:
        if self.by_action is not None:
            put_summary(self.book, self.summary, self.counts)
            for part in self.parts.values():
                part.finish()
        self.table.finish()
        self.book.close()
        if self.others is not None:
            replace_sheet(self.others, self.path)


def put_summary(book: PersonBook, sheet: Any, counts: Mapping[str, int]) -> None:
    """Rows by action, with a picture."""
    sheet.write_string(0, 0, "What to do", book.title)
    row = put_counts(book, sheet, 2, "Action", {name: counts[name] for name in ACTIONS}, ACTION_MEANING)
    put_chart(book, sheet, 3, row, [*ACTIONS], "Rows by action", f"A{row + 2}")
    for column, width in enumerate((20, 12, 12, 72)):
        sheet.set_column(column, column, width)


def put_counts(
    book: PersonBook, sheet: Any, row: int, head: str, counts: Mapping[str, int], meaning: Mapping[str, str]
) -> int:
    """A table of counts with their shares from a row on; returns the row after it."""
    for column, name in enumerate((head, "Rows", "Share of rows", "What it means" if meaning else "")):
        if name:
            sheet.write_string(row, column, name, book.head)
    whole = sum(counts.values())
    for at, (name, count) in enumerate(counts.items(), row + 1):
        sheet.write_string(at, 0, LABELS.get(name, name))
        sheet.write_number(at, 1, count, book.count)
        sheet.write_number(at, 2, count / whole if whole else 0, book.share)
        if meaning.get(name):
            sheet.write_string(at, 3, meaning[name])
    return row + 1 + len(counts)


def put_chart(book: PersonBook, sheet: Any, first: int, end: int, names: Sequence[str], title: str, cell: str) -> None:
    """A picture of the counts in the rows from `first` to before `end`, in the colours of the theme."""
    chart = book.book.add_chart({"type": "bar"})
    where = sheet.get_name()
    chart.add_series(
        {
            "categories": [where, first, 0, end - 1, 0],
            "values": [where, first, 1, end - 1, 1],
            "points": [{"fill": {"color": colour(name)}} for name in names],
            "data_labels": {"value": True},
            "gap": 40,
        }
    )
    chart.set_title({"name": title, "name_font": {"size": 12}})
    chart.set_legend({"none": True})
    chart.set_y_axis({"reverse": True})
    chart.set_x_axis({"visible": False, "major_gridlines": {"visible": False}})
    chart.set_size({"width": 560, "height": 80 + 32 * len(names)})
    sheet.insert_chart(cell, chart, {"description": title})


# --- the other sheets of a workbook that is replaced ----------------------------------------------------------------


def open_other_sheets(path: Path) -> Any:
    """The workbook at a path, if it has several sheets; raise `InputError` if a part of it would be lost.

    Loaded before anything is verified, so that a workbook that cannot be kept is refused before anything is spent. A
    workbook that an earlier call made, with no sheet but ours, is replaced as a whole.
    """
    if not path.is_file() or not zipfile.is_zipfile(path):
        return None
    try:
        import openpyxl  # noqa: PLC0415 - an extra
    except ImportError as exc:
        raise MissingExtraError("replacing a workbook", "excel") from exc
    try:
        with zipfile.ZipFile(path) as archive, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of extensions to the format; what would be lost is found by NOT_KEPT
            parts = archive.namelist()
            with closing(openpyxl.load_workbook(path, read_only=True)) as names:  # reads no cell
                if len(names.sheetnames) < 2 or is_ours(names):
                    return None
            book = openpyxl.load_workbook(path, rich_text=True)
    except Exception as exc:  # openpyxl raises whatever its parsers do
        raise InputError(f"{path} is not a workbook that can be kept; give another --output: {exc}") from exc
    lost = [what for start, what in NOT_KEPT.items() if any(part.startswith(start) for part in parts)]
    if lost:
        raise InputError(
            f"{path} has {len(book.sheetnames)} sheets, and writing one of them would lose its {' and '.join(lost)}: "
            "give another --output, and copy the sheet from it"
        )
    return book


def is_ours(book: Any) -> bool:
    """Whether an earlier call wrote the table, the summary and the sheets by action, and nobody added a sheet."""
    expected = ["Summary", *map(LABELS.__getitem__, ACTIONS)]
    return MARK in book.custom_doc_props.names and book.sheetnames[1:] == expected


def replace_sheet(others: Any, path: Path) -> None:
    """Put the only sheet of the workbook at `path` among the other sheets, and save all at `path`."""
    import openpyxl  # noqa: PLC0415 - was found when the others were loaded

    with path.open("rb") as file:  # by its name, openpyxl refuses a temporary file
        (made,) = openpyxl.load_workbook(file).worksheets
    at = len(others.sheetnames)
    if made.title in others.sheetnames:
        at = others.sheetnames.index(made.title)
        others.remove(others[made.title])
    sheet = others.create_sheet(made.title, at)
    for row in made.iter_rows():
        for cell in row:
            if cell.value is not None:
                new = sheet.cell(cell.row, cell.column)
                new.value, new.data_type = cell.value, cell.data_type  # text that begins with "=" stays text
                new.number_format = cell.number_format
                if cell.font.b:
                    new.font, new.fill, new.border = copy(cell.font), copy(cell.fill), copy(cell.border)
    for letter, dimension in made.column_dimensions.items():
        sheet.column_dimensions[letter].width = dimension.width
    sheet.freeze_panes, sheet.auto_filter.ref = made.freeze_panes, made.auto_filter.ref
    others.active = at
    others.save(path)


# --- cells ------------------------------------------------------------------------------------------------------------


def put_row(sheet: Any, row: int, cells: Sequence[Any], first: int = 0) -> None:
    """Write one row from a column on, without its empty cells."""
    for column, cell in enumerate(cells, first):
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


def write_decimal(sheet: Any, row: int, column: int, cell: Any) -> None:
    """Write a decimal that a workbook's doubles cannot hold as text."""
    if cell.is_finite() and len(cell.as_tuple().digits) <= EXACT_DIGITS:
        sheet.write_number(row, column, cell)
    else:
        write_text(sheet, row, column, cell)


def write_moment(sheet: Any, row: int, column: int, cell: Any) -> None:
    """Write a date before 1900 as text: a workbook has none."""
    write = sheet.write_datetime if cell.year >= 1900 else lambda *where: write_text(sheet, *where)
    write(row, column, cell)


WRITE: dict[type, Any] = {
    bool: lambda sheet, row, column, cell: sheet.write_boolean(row, column, cell),
    int: write_number,
    float: write_number,
    decimal.Decimal: write_decimal,
    datetime.date: write_moment,
    datetime.datetime: write_moment,
}
