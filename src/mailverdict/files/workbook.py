"""Workbooks (XLSX) for people: a header that stays, filters, widths that fit.

    verify --output people.xlsx        one sheet with the table
    with an action for each row        Everything | Summary | Send | Review | Retry | Drop
    a report                           Summary and others, with its sections below each other

Rows are written as they come and are not held in memory (`constant_memory` of xlsxwriter). Text is
written as text, so that no cell is a formula.
"""

from __future__ import annotations

import datetime
import decimal
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError, MissingExtraError
from ..model.section import Section, what_to_do
from ..model.words import ACTIONS, count_of, first_of, show_directions
from ..theme import COLOURS, LABELS, colour
from .plain import to_plain
from .sheet_rows import row_sheet_class
from .sheets import is_ours, mark_of
from .table_file import UNKNOWN, FileFormat

XLSX_ROWS = 1_048_576
XLSX_COLUMNS = 16_384
XLSX_CELL = 32_767  # characters in one cell
SHOWN_ROWS = 5  # in a message
XLSX_OPTIONS = {
    "constant_memory": True,
    "strings_to_formulas": False,
    "strings_to_urls": False,
    "strings_to_numbers": False,
    "nan_inf_to_errors": True,
    "remove_timezone": True,  # a workbook has no time zones; our times are UTC
    "default_date_format": "yyyy-mm-dd hh:mm:ss",
}
# In characters, the width of a column: at least, at most, and of times.
NARROW = 8
WIDE = 48
MOMENT = 19
ROWS_AT_ONCE = 8_192  # made at once: bounds memory
ARROW = 3  # characters that the button of a filter covers
SHEET_NAME = 31  # characters; a workbook allows no more
A4 = 9  # in the numbers of paper sizes
EXACT_DIGITS = 15  # of a decimal that a double gives back
UNNAMED = "verified"
EVERYTHING = "Everything"  # the sheet of all rows and columns, beside those for people
SUMMARY = "Summary"  # the name of a sheet with figures, the first of a report
SUMMARY_WIDTHS = (44, 26, *[15] * 9)  # characters, of the columns of a summary
ROW_HEIGHT = 20  # pixels
CHART_ROWS = 14  # of a chart with the blank ones around it


def import_xlsxwriter(doing: str) -> Any:
    try:
        import xlsxwriter  # noqa: PLC0415 - an extra
    except ImportError as exc:
        raise MissingExtraError(doing, "excel") from exc
    return xlsxwriter


def check_room(rows: int = 0, columns: int = 0) -> None:
    """Raise `InputError` for a table that a sheet has no room for.

    xlsxwriter would leave the rest out.
    """
    most_rows = XLSX_ROWS - 1
    problem = ""
    if rows > most_rows:
        problem = f"more than {most_rows:,} rows"
    elif columns > XLSX_COLUMNS:
        problem = f"more than {XLSX_COLUMNS:,} columns"
    if problem:
        raise InputError(f"{problem} do not fit a workbook; write CSV or Parquet")


def check_replaced(path: Path) -> None:
    """Raise `InputError` if a file has a sheet that mailverdict did not write."""
    if not path.is_file() or not path.stat().st_size:
        return
    try:
        if is_ours(path):
            return
    except InputError as exc:
        raise InputError(f"{exc}; it is not replaced: give another name, or remove it") from exc
    raise InputError(
        f"{path} has sheets that this version of mailverdict did not write, and is not replaced: "
        "give another name, or remove it"
    )


class FormattedBook:
    """A new workbook with its formats, and worksheets with names that do not occur twice."""

    def __init__(self, path: Path, doing: str = "writing XLSX") -> None:
        self.path = path
        self.book = import_xlsxwriter(doing).Workbook(str(path), XLSX_OPTIONS)
        head = {
            "bold": True,
            "bg_color": COLOURS["sunken"].light,
            "bottom": 1,
            "bottom_color": COLOURS["line-strong"].light,
        }
        self.head = self.book.add_format(head)
        self.title = self.book.add_format({"bold": True, "font_size": 16})
        self.section = self.book.add_format({"bold": True, "font_size": 12})
        self.share = self.book.add_format({"num_format": "0.0%"})
        self.count = self.book.add_format({"num_format": "#,##0"})
        self.names: set[str] = set()

    def add_sheet(self, name: str) -> Any:
        """A worksheet; the name gets a number if there is a sheet of this name, in any case."""
        unique = name[:SHEET_NAME]
        number = 1
        while unique.lower() in self.names:
            number += 1
            end = f" {number}"
            unique = name[: SHEET_NAME - len(end)] + end
        self.names.add(unique.lower())
        sheet = self.book.add_worksheet(unique, row_sheet_class())
        sheet.set_landscape()
        sheet.set_paper(A4)
        sheet.fit_to_pages(1, 0)  # all columns on one page when printed
        return sheet

    def close(self) -> None:
        from xlsxwriter.exceptions import FileCreateError  # noqa: PLC0415 - an extra

        names = [sheet.get_name() for sheet in self.book.worksheets()]
        self.book.set_custom_property("mailverdict", mark_of(names))
        try:
            self.book.close()
        except FileCreateError as exc:
            # The zip file is still open, and closes itself later: that needs some room on a full
            # disk.
            with suppress(OSError):
                os.truncate(self.path, 0)
            raise exc.args[0] from exc  # the OSError


class TableSheet:
    """A worksheet with one table.

    It has a header that stays in view, filters, and columns as wide as their longest text.
    """

    def __init__(self, book: FormattedBook, name: str, title: Iterable[Sequence[Any]] = ()) -> None:
        self.book = book
        self.sheet = book.add_sheet(name)
        self.row = 0
        self.header_row: int | None = None
        self.widths: list[int] = []
        # Rows of the sheet, for each cell that is longer than a workbook allows.
        self.cut: list[int] = []
        for cells in title:
            put_row(self.sheet, self.row, cells)
            self.row += 1

    def begin(self, names: Sequence[str]) -> None:
        """Write the header."""
        for column, name in enumerate(names):
            put_text(self.sheet, self.row, column, str(name), self.book.head)
        self.header_row = self.row
        self.row += 1
        self.sheet.freeze_panes(self.row, 0)
        self.widths = [len(str(name)) + ARROW for name in names]

    def write(self, piece: pa.Table) -> None:
        """Append rows; the first piece gives the header."""
        if self.header_row is None:
            self.begin(piece.column_names)
        check_room(self.row - 1 + len(piece), piece.num_columns)
        columns = list(map(to_plain, piece.columns))
        self.widths = list(map(max, self.widths, map(width_of, columns)))
        for column in columns:
            for row in long_rows(column):
                self.cut.append(self.row + 1 + row)
        for start in range(0, len(piece), ROWS_AT_ONCE):
            rows = [column.slice(start, ROWS_AT_ONCE) for column in columns]
            self.write_rows(rows)

    def write_rows(self, columns: Sequence[Any]) -> None:
        """Append some rows, by their plain columns."""
        if self.sheet.append_rows(self.row, columns):
            self.row += len(columns[0])
            return
        cells_by_column = [column.to_pylist() for column in columns]
        for cells in zip(*cells_by_column, strict=True):
            put_row(self.sheet, self.row, cells)
            self.row += 1

    def remarks(self) -> list[str]:
        """What the sheet cannot hold."""
        if not self.cut:
            return []
        cells = count_of(len(self.cut), "cell")
        rows = sorted(set(self.cut))
        shown = first_of([f"{row:,}" for row in rows], SHOWN_ROWS)
        where = "row" if len(rows) == 1 else "rows"
        return [
            f"{cells} cut to {XLSX_CELL:,} characters, the most that a workbook allows, in {where} "
            f"{shown}"
        ]

    def finish(self) -> None:
        """Set what depends on all rows."""
        if self.header_row is None:
            return
        for column, width in enumerate(self.widths):
            bounded = min(max(width, NARROW), WIDE)
            self.sheet.set_column(column, column, bounded + 1)
        if self.widths:
            last_row = max(self.row - 1, self.header_row)
            self.sheet.autofilter(self.header_row, 0, last_row, len(self.widths) - 1)


def width_of(column: Any) -> int:
    """Characters of the longest value; those of a time as a workbook shows it."""
    if pa.types.is_temporal(column.type):
        return MOMENT
    lengths = pc.utf8_length(column.cast(pa.string()))
    return int(pc.max(lengths).as_py() or 0)


def long_rows(column: Any) -> list[int]:
    """The rows of the cells that are longer than a workbook allows."""
    # pyarrow 18 crashes at an array without chunks.
    if not pa.types.is_string(column.type) or not len(column):
        return []
    is_long = pc.greater(pc.utf8_length(column), XLSX_CELL)
    rows: list[int] = pc.indices_nonzero(is_long.fill_null(False)).to_pylist()
    return rows


@dataclass(frozen=True)
class ActionSheets:
    """A sheet for each action, beside that of the whole table."""

    column: str  # of the table, with what to do with each row
    view: Callable[[pa.Table], pa.Table]  # a piece as it is on these sheets


class XlsxTableWriter:
    """A workbook whose first sheet is the table.

    It is named as that of the workbook `like`, and has the rows before its header. With `by_action`
    each action gets a sheet of its own, and there is a summary.
    """

    def __init__(
        self, path: Path, like: FileFormat = UNKNOWN, by_action: ActionSheets | None = None
    ) -> None:
        self.book = FormattedBook(path)
        self.by_action = by_action
        name = UNNAMED
        if by_action is not None:
            name = EVERYTHING
        self.table = TableSheet(self.book, like.sheet or name, like.title)
        self.parts: dict[str, TableSheet] = {}
        self.counts: Counter[str] = Counter()
        self.summary = None
        if by_action is not None:
            self.summary = self.book.add_sheet(SUMMARY)
            for action in ACTIONS:
                self.parts[action] = TableSheet(self.book, LABELS[action])

    @property
    def remarks(self) -> Sequence[str]:
        return self.table.remarks()

    def write(self, piece: pa.Table) -> None:
        """Append rows, each also to the sheet of its action."""
        self.table.write(piece)
        if self.by_action is None:
            return
        rows = self.by_action.view(piece)
        actions = to_plain(piece[self.by_action.column])
        for action, sheet in self.parts.items():
            is_of_action = pc.equal(actions, action)
            rows_of_action = rows.filter(is_of_action)
            sheet.write(rows_of_action)
            self.counts[action] += len(rows_of_action)

    def close(self) -> None:
        if self.summary is not None:
            put_sections(self.book, self.summary, [what_to_do(self.counts)])
        for sheet in (self.table, *self.parts.values()):
            sheet.finish()
        self.book.close()


# --- sections of a report ----------------------------------------------------------------


def put_sections(book: FormattedBook, sheet: Any, sections: Iterable[Section]) -> None:
    """Write the sections of a report one below the other; empty ones are left out."""
    row = 0
    for section in sections:
        if not section.is_empty:
            row = put_section(book, sheet, row, section) + 1
    for column, width in enumerate(SUMMARY_WIDTHS):
        sheet.set_column(column, column, width)


def put_section(book: FormattedBook, sheet: Any, row: int, section: Section) -> int:
    """Write a section from a row on; returns the row after it."""
    style = book.title
    if row:
        style = book.section
    put_text(sheet, row, 0, show_directions(section.title), style)
    row += 1
    if section.said:
        put_cell(sheet, row, 0, section.said)
        row += 1
    labels: list[str] = []
    columns: list[Sequence[Any]] = []
    if section.rows:
        for label, cells in sheet_columns(section):
            labels.append(label)
            columns.append(cells)
    if any(labels):
        for column, label in enumerate(labels):
            put_text(sheet, row, column, label, book.head)
        row += 1
    first = row
    # Row by row: a row is written for good when the next one begins.
    for figures in zip(*columns, strict=True):
        for column, figure in enumerate(figures):
            put_figure(book, sheet, row, column, figure)
        row += 1
    if section.has_chart:
        row += put_chart(book, sheet, first, row, section)
    for note in section.notes:
        cells = [note]
        if section.command:
            cells = [section.command, note]
        put_row(sheet, row, cells)
        row += 1
    return row


def put_figure(book: FormattedBook, sheet: Any, row: int, column: int, cell: Any) -> None:
    """Write a text, a share or a count of a section; a figure that is not known is left out."""
    if isinstance(cell, str):
        put_cell(sheet, row, column, show_directions(cell))
        return
    style = book.count
    if isinstance(cell, float):
        style = book.share
    is_known = cell == cell  # not a number otherwise
    if is_known:
        sheet.write_number(row, column, cell, style)


def sheet_columns(section: Section) -> Iterator[tuple[str, Sequence[Any]]]:
    """Labels and cells.

    Bars of several counts are a column for each, and one that repeats a figure is left out.
    """
    for position, (label, kind) in enumerate(section.columns):
        cells = [row[position] for row in section.rows]
        if kind == "bars":
            for name in cells[0]:
                yield LABELS[name], [counts[name] for counts in cells]
        elif kind == "badge":
            yield label, [LABELS[name] for name in cells]
        elif kind not in ("bar", "interval"):
            yield label, cells


def put_chart(book: FormattedBook, sheet: Any, first: int, end: int, section: Section) -> int:
    """Draw the numbers in the rows from `first` to before `end` below these.

    Returns how many rows it covers.
    """
    where = sheet.get_name()
    last = end - 1
    points = [{"fill": {"color": colour(cells[0])}} for cells in section.rows]
    series = {
        "categories": [where, first, 0, last, 0],
        "values": [where, first, 1, last, 1],
        "points": points,
        "data_labels": {"value": True},
        "gap": 40,
    }
    chart = book.book.add_chart({"type": "bar"})
    chart.add_series(series)
    title = "Rows by action"
    chart.set_title({"name": title, "name_font": {"size": 12}})
    chart.set_legend({"none": True})
    chart.set_y_axis({"reverse": True})
    chart.set_x_axis({"visible": False, "major_gridlines": {"visible": False}})
    chart.set_size({"width": 560, "height": ROW_HEIGHT * (CHART_ROWS - 2)})
    sheet.insert_chart(end + 1, 0, chart, {"description": title})
    return CHART_ROWS


# --- cells ------------------------------------------------------------------------------


def put_row(sheet: Any, row: int, cells: Sequence[Any]) -> None:
    """Write one row without its empty cells."""
    for column, cell in enumerate(cells):
        if cell is not None and cell != "":
            put_cell(sheet, row, column, cell)


def put_cell(sheet: Any, row: int, column: int, cell: Any) -> None:
    """Write a cell as text unless a workbook holds its value exactly."""
    if isinstance(cell, str) or not is_exact(cell):
        put_text(sheet, row, column, str(cell))
    elif isinstance(cell, bool):
        sheet.write_boolean(row, column, cell)
    elif isinstance(cell, datetime.date):
        sheet.write_datetime(row, column, cell)
    else:
        sheet.write_number(row, column, cell)


def put_text(sheet: Any, row: int, column: int, text: str, style: Any = None) -> None:
    """Write a text that the reader sees as it is.

    With `constant_memory`, xlsxwriter takes a text between ``<r>`` and ``</r>`` for the XML of a
    rich string, and writes it as it stands: a cell of the user's could hold a formula, or break the
    workbook. As two parts it is escaped.
    """
    text = text[:XLSX_CELL]
    if text.startswith("<r>") and text.endswith("</r>"):
        from xlsxwriter.format import Format  # noqa: PLC0415 - an extra

        parts = [text[0], Format(), text[1:]]
        if style is not None:
            parts.append(style)
        sheet.write_rich_string(row, column, *parts)
    else:
        sheet.write_string(row, column, text, style)


def is_exact(cell: Any) -> bool:
    """Whether a value is the same in a workbook.

    Its numbers are doubles, and its first date is of 1900.
    """
    if isinstance(cell, float):
        return True
    if isinstance(cell, int):
        return abs(cell) < 2**53
    if isinstance(cell, decimal.Decimal):
        return cell.is_finite() and len(cell.as_tuple().digits) <= EXACT_DIGITS
    return isinstance(cell, datetime.date) and cell.year >= 1900
