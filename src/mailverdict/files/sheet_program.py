"""The program that reads a workbook in a process of its own.

`sheets` starts it and reads its output. calamine reads XLSX, XLSB and XLS. calamine sets aside
the rectangle of cells that a file asks for, and a copy of a text for each cell that has it. Without
memory for that it ends the process, and no `except` can catch it. Nothing of mailverdict is
imported here, so that a small workbook is read in a tenth of a second.

ODS is read by `OdsBook`, since calamine (0.9) repeats rows and cells before their number can be
checked, and joins what a tab or a line break within a cell keeps apart: two addresses would become
one.

``MEMORY OCTETS PATH names`` gives the names of all sheets, and the properties that a program gave
the workbook. ``MEMORY OCTETS PATH rows CELLS [SHEET]`` gives the names; a sheet's name, rows,
columns and formulas without a value; the addresses of links by row and column; and the rows in
pieces, unless they have more cells than CELLS. ``MEMORY OCTETS PATH heads CELLS ROWS`` gives for
each sheet its name, its first rows in one piece, and their links; those that are not hidden are
first. Values are pickled to standard output; None is an empty row. OCTETS is the most to which the
parts of the workbook may unpack, and the most that is written.
"""

from __future__ import annotations

import datetime
import pickle
import re
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple
from xml.etree import ElementTree
from xml.parsers import expat

Place = tuple[int, int]  # the row and the column of a cell, from 0
Links = dict[Place, str]  # the address of each link to one
UNREADABLE = 3  # the exit status for a file that is not a workbook; the reason is on standard error
PROPERTIES = "docProps/custom.xml"  # the part with those that no standard names
PIECE_ROWS = 1_000
BLOCK = 1 << 20  # octets that are read at a time
LONGEST_XML_CELL = 1 << 20  # octets
RELATIONS = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
LINK_FORMULA = re.compile(r'HYPERLINK\(\s*"mailto:([^"]{3,320})"', re.IGNORECASE)
MAILTO = re.compile(r"mailto:([^?]{3,320})", re.IGNORECASE)
REFERENCE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")
# A cell with a formula and no value; an empty text that was saved has the type "str".
FORMULA_WITHOUT_VALUE = re.compile(
    rb"<(?:\w+:)?c\b(?![^<>]*\bt=[\"']str)[^<>]*>\s*"
    rb"<(?:\w+:)?f\b(?:[^<>]*/>|[^<>]*>[^<]*</(?:\w+:)?f>)\s*"
    rb"(?:<(?:\w+:)?v\s*/>\s*|<(?:\w+:)?v>\s*</(?:\w+:)?v>\s*)?</(?:\w+:)?c>"
)


def main(memory: str, octets: str, path: str, what: str, *arguments: str) -> None:
    limit_memory(int(memory))
    try:
        book = open_book(path, int(octets))
        if what == "names":
            values = read_names(path, book)
        elif what == "heads":
            cells, rows = map(int, arguments)
            values = read_heads(book, cells, rows)
        else:
            values = read_rows(book, int(arguments[0]), *arguments[1:])
        for value in values:
            pickle.dump(value, sys.stdout.buffer, pickle.HIGHEST_PROTOCOL)
            check_size(sys.stdout.buffer.tell(), int(octets))
    except MemoryError:
        raise
    except BaseException as exc:  # noqa: BLE001 - a panic of calamine is not an Exception
        print(exc, file=sys.stderr)
        sys.exit(UNREADABLE)


def check_size(octets: int, most: int) -> None:
    if octets > most:
        raise ValueError(
            f"it unpacks to more than {most >> 20:,} MiB, much more than a table in a file of its "
            "size; save it as CSV if you trust it"
        )


def limit_memory(octets: int) -> None:
    """Limit the memory of this process where the system can, and write no core file at its end."""
    if sys.platform != "win32":  # which promises no memory that it does not have
        import resource  # noqa: PLC0415

        limits = {resource.RLIMIT_AS: octets, resource.RLIMIT_CORE: 0}
        for kind, limit in limits.items():
            with suppress(ValueError, OSError):  # a lower limit holds already, or macOS knows none
                _, most = resource.getrlimit(kind)
                resource.setrlimit(kind, (limit, most))


def scan_parts(path: str, most: int) -> tuple[int, bool]:
    """How many formulas have no value in the file, and whether there are links.

    All parts are unpacked, so that their size is known. A spreadsheet program saves the value
    beside the formula; openpyxl, and pandas with it, do not.
    """
    formulas = 0
    size = 0
    has_links = False
    if not zipfile.is_zipfile(path):  # an old workbook, which is not packed
        return 0, False
    with zipfile.ZipFile(path) as book:
        for part in book.infolist():
            rest = b""  # the beginning of a cell
            with book.open(part) as octets:
                while block := octets.read(BLOCK):
                    size += len(block)
                    check_size(size, most)
                    if "/worksheets/" not in part.filename:
                        continue
                    cells, end, rest = (rest + block).rpartition(b"c>")
                    rest = rest[-LONGEST_XML_CELL:]
                    has_links = has_links or b"hyperlink" in (cells + rest).lower()
                    if b"<f" in cells or b":f" in cells:
                        formulas += len(FORMULA_WITHOUT_VALUE.findall(cells + end))
    return formulas, has_links


@dataclass
class Sheet:
    """A sheet that was read; its rows are counted from the first that is filled."""

    height: int
    width: int
    start: Place | None  # the row and column of the first cell; None: it is empty
    rows: Iterator[Sequence[Any]]  # all of one length
    links: Links


class CalamineBook:
    """A workbook that calamine reads; `names` are all sheets, hidden ones last in `order`."""

    def __init__(self, path: str, formulas: int, *, has_links: bool) -> None:
        # After the limit is set.
        from python_calamine import CalamineWorkbook, SheetVisibleEnum  # noqa: PLC0415

        self.path = path
        self.formulas = formulas
        self.has_links = has_links
        # By its octets: from_path trusts the ending of the name.
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib takes a while to import
            self.book = CalamineWorkbook.from_filelike(file)
        self.names = self.book.sheet_names
        hidden = set()
        for sheet in self.book.sheets_metadata:
            if sheet.visible != SheetVisibleEnum.Visible:
                hidden.add(sheet.name)
        self.order = sorted(self.names, key=hidden.__contains__)

    def sheet(self, name: str) -> Sheet:
        cells = self.book.get_sheet_by_name(name)
        start = cells.start
        if start is None:
            return Sheet(cells.height, cells.width, None, iter(()), {})
        rows = islice(cells.iter_rows(), start[0], None)  # it begins with empty rows
        links: Links = {}
        if self.has_links:
            links = read_links(self.path, name, start)
        return Sheet(cells.height, cells.width, start, rows, links)


def open_book(path: str, most: int) -> CalamineBook | OdsBook:
    formulas, has_links = scan_parts(path, most)
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as parts:
            if ODS_CONTENT in parts.namelist():
                return OdsBook(parts, most)
    return CalamineBook(path, formulas, has_links=has_links)


def read_names(path: str, book: CalamineBook | OdsBook) -> Iterator[Any]:
    yield book.names
    if not zipfile.is_zipfile(path):
        yield b""
        return
    with zipfile.ZipFile(path) as parts:
        yield parts.read(PROPERTIES) if PROPERTIES in parts.namelist() else b""


def read_rows(
    book: CalamineBook | OdsBook, most_cells: int, wanted: str | None = None
) -> Iterator[Any]:
    """By default the first sheet that is not empty, of those that are shown if there are any."""
    names = book.order
    if wanted is not None:
        names = [name for name in book.names if name == wanted]
    name = wanted
    sheet = EMPTY_SHEET
    for name in names:
        sheet = book.sheet(name)
        if sheet.start is not None:
            break
    yield book.names, name, sheet.height, sheet.width, book.formulas
    yield sheet.links
    if sheet.start is not None and sheet.height * sheet.width <= most_cells:
        while piece := take_rows(sheet, PIECE_ROWS):
            yield piece


def read_heads(book: CalamineBook | OdsBook, most_cells: int, rows: int) -> Iterator[Any]:
    """The first rows of each sheet that is not empty, until they have too many cells together."""
    cells = 0
    for name in book.order:
        sheet = book.sheet(name)
        cells += min(sheet.height, rows) * sheet.width
        if cells > most_cells:
            return
        if sheet.start is None:
            continue
        links = {place: link for place, link in sheet.links.items() if place[0] < rows}
        yield name, take_rows(sheet, rows), links


def take_rows(sheet: Sheet, count: int) -> list[Sequence[Any] | None]:
    """The next rows; an empty one is None."""
    empty = [""] * sheet.width
    return [None if row == empty else row for row in islice(sheet.rows, count)]


def read_links(path: str, sheet: str, start: Place) -> Links:
    """The address of each link to one, by the place of its cell, counted from `start`."""
    addresses = {}  # by the reference of the cell, as B3
    with zipfile.ZipFile(path) as book:
        part = find_part(book, sheet)
        if part is None:
            return {}
        folder, _, file = part.rpartition("/")
        targets = {}
        for name, target in relations(book, f"{folder}/_rels/{file}.rels"):
            mailto = MAILTO.match(target)
            if mailto:
                targets[name] = mailto[1]
        cell = ""
        with book.open(part) as octets:
            for event, element in ElementTree.iterparse(octets, ("start", "end")):  # noqa: S314
                name = element.tag.rpartition("}")[2]
                if event == "start":
                    if name == "c":
                        cell = element.get("r", "")
                elif name == "f":
                    formula = LINK_FORMULA.match(element.text or "")
                    if formula:
                        addresses[cell] = formula[1]
                elif name == "hyperlink":
                    address = targets.get(element.get(RELATIONS, ""))
                    if address:
                        addresses[element.get("ref", "")] = address
                elif name == "row":
                    element.clear()  # a sheet of a million rows would take a gigabyte
    links = {}
    for reference, address in addresses.items():
        place = place_of(reference)
        if place is not None:
            row, column = place
            links[row - start[0], column - start[1]] = address
    return links


def find_part(book: zipfile.ZipFile, sheet: str) -> str | None:
    """The part of a workbook that holds a sheet."""
    if "xl/workbook.xml" not in book.namelist():
        return None
    tree = ElementTree.fromstring(book.read("xl/workbook.xml"))  # noqa: S314
    wanted = None
    for element in tree.iter():
        if element.get("name") == sheet and element.get(RELATIONS):
            wanted = element.get(RELATIONS)
            break
    target = dict(relations(book, "xl/_rels/workbook.xml.rels")).get(wanted or "")
    if not target:
        return None
    part = f"xl/{target}"
    if target.startswith("/"):
        part = target.removeprefix("/")
    if part not in book.namelist():
        return None
    return part


def relations(book: zipfile.ZipFile, part: str) -> Iterator[tuple[str, str]]:
    if part in book.namelist():
        for element in ElementTree.fromstring(book.read(part)):  # noqa: S314
            yield element.get("Id", ""), element.get("Target", "")


def place_of(reference: str) -> Place | None:
    """Row and column of a reference such as B3; None for one to several cells."""
    match = REFERENCE.fullmatch(reference)
    if match is None:
        return None
    column = 0
    for letter in match[1]:
        column = column * 26 + ord(letter) - ord("A") + 1
    return int(match[2]) - 1, column - 1


# --- ODS --------------------------------------------------------------------------------

ODS_CONTENT = "content.xml"
# What a sheet of the usual spreadsheet programs has at most.
MOST_ROWS = 1 << 20
MOST_COLUMNS = 1 << 14
NAMESPACE = "urn:oasis:names:tc:opendocument:xmlns:"
OFFICE = NAMESPACE + "office:1.0 "
STYLE = NAMESPACE + "style:1.0 "
TABLE = NAMESPACE + "table:1.0 "
TEXT = NAMESPACE + "text:1.0 "
HREF = "http://www.w3.org/1999/xlink href"
ODS_CELLS = {TABLE + "table-cell", TABLE + "covered-table-cell"}
PARAGRAPHS = {TEXT + "p", TEXT + "h"}
# What is below a sheet or a cell and is not its rows or its text: comments, drawings, deleted rows,
# cells of other files, and how a word is read aloud.
NOT_SHOWN = {
    OFFICE + "annotation",
    TABLE + "dde-links",
    TABLE + "shapes",
    TABLE + "tracked-changes",
    TEXT + "note",
    TEXT + "ruby-text",
}
MOST_BLANKS = 100  # that one element stands for
BLANKS = re.compile(r"[ \t\r\n]+")
DURATION = re.compile(
    r"(-?)P(?:([0-9]{1,7})D)?T([0-9]{1,7})H([0-9]{1,9})M([0-9]{1,9})(?:[.,][0-9]*)?S"
)
DAY = datetime.timedelta(days=1)


class OdsCell(NamedTuple):
    """A cell of the file that is filled; it stands for as many cells as it says."""

    column: int
    repeats: int
    value: Any
    link: str


class OdsRow(NamedTuple):
    """A row of the file that is filled; it stands for as many rows as it says."""

    place: int
    repeats: int
    cells: list[Any]


@dataclass
class OdsSheet:
    """A sheet of an ODS, without what is empty at its end."""

    name: str
    height: int = 0  # up to the last row that is filled
    width: int = 0
    left: int = MOST_COLUMNS  # the first column that is filled
    filled: list[OdsRow] = field(default_factory=list)
    links: Links = field(default_factory=dict)

    def rows(self) -> Iterator[Sequence[Any]]:
        empty = [""] * (self.width - self.left)
        done = self.filled[0].place
        for filled in self.filled:
            for _ in range(done, filled.place):
                yield empty
            row = filled.cells[self.left :]
            row += empty[len(row) :]
            for _ in range(filled.repeats):
                yield row
            done = filled.place + filled.repeats


class OdsBook:
    """An ODS, read in one pass; `ValueError` for a sheet that is larger than any table."""

    def __init__(self, parts: zipfile.ZipFile, most: int) -> None:
        self.formulas = 0
        self.sheets: dict[str, OdsSheet] = {}
        self.hidden_styles: set[str | None] = set()
        self.hidden: set[str] = set()
        self.most = most
        self.octets = 0
        self.style: str | None = None
        self.table: OdsSheet | None = None
        self.row_at = 0
        self.row_repeats = 1
        self.column = 0
        self.cell_repeats = 1
        self.row: list[OdsCell] = []
        self.cell: dict[str, str] | None = None
        self.texts: list[str] = []  # of the cell, in pieces
        self.paragraphs = 0
        self.is_in_paragraph = False
        self.link = ""
        self.depth = 0
        self.skipped_at = 0  # the depth of the element that is not shown
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.characters
        with parts.open(ODS_CONTENT) as octets:
            parser.ParseFile(octets)
        self.names = list(self.sheets)
        self.order = sorted(self.names, key=self.hidden.__contains__)

    def sheet(self, name: str) -> Sheet:
        table = self.sheets[name]
        if not table.filled:
            return EMPTY_SHEET
        first = table.filled[0].place
        left = table.left
        links = {}
        for (row, column), link in table.links.items():
            links[row - first, column - left] = link
        return Sheet(
            height=table.height - first,
            width=table.width - left,
            start=(first, left),
            rows=table.rows(),
            links=links,
        )

    def start(self, tag: str, given: dict[str, str]) -> None:
        self.depth += 1
        if self.skipped_at:
            return
        if tag in NOT_SHOWN or (self.cell is not None and not tag.startswith(TEXT)):
            self.skipped_at = self.depth
        elif self.cell is not None:
            self.start_text(tag, given)
        elif tag in ODS_CELLS:
            self.cell = given
            self.texts = []
            self.paragraphs = 0
            self.link = ""
            self.cell_repeats = repeats_of(given, "number-columns-repeated")
        elif tag == TABLE + "table-row":
            self.row = []
            self.column = 0
            self.row_repeats = repeats_of(given, "number-rows-repeated")
        elif tag == TABLE + "table":
            self.table = OdsSheet(given.get(TABLE + "name", ""))
            self.row_at = 0
            if self.table.name in self.sheets:
                raise ValueError(f"two of its sheets are named {self.table.name!r}")
            self.sheets[self.table.name] = self.table
            if given.get(TABLE + "style-name") in self.hidden_styles:
                self.hidden.add(self.table.name)
        elif tag == STYLE + "style":
            self.style = given.get(STYLE + "name")
        elif tag == STYLE + "table-properties" and given.get(TABLE + "display") == "false":
            self.hidden_styles.add(self.style)

    def start_text(self, tag: str, given: dict[str, str]) -> None:
        """An element within a cell."""
        if tag in PARAGRAPHS:
            self.is_in_paragraph = True
            self.paragraphs += 1
            if self.paragraphs > 1:
                self.texts.append("\n")
        elif tag == TEXT + "a" and not self.link:
            target = MAILTO.match(given.get(HREF, ""))
            if target:
                self.link = target[1]
        elif tag == TEXT + "s":
            count = int(given.get(TEXT + "c", 1))
            self.texts.append(" " * min(count, MOST_BLANKS))
        elif tag == TEXT + "tab":
            self.texts.append("\t")
        elif tag == TEXT + "line-break":
            self.texts.append("\n")

    def characters(self, text: str) -> None:
        # Blanks between paragraphs are not text.
        if self.is_in_paragraph and not self.skipped_at:
            self.texts.append(BLANKS.sub(" ", text))

    def end(self, tag: str) -> None:
        if self.skipped_at == self.depth:
            self.skipped_at = 0
        elif self.skipped_at:
            pass
        elif tag in ODS_CELLS and self.cell is not None:
            self.end_cell(self.cell)
            self.cell = None
        elif tag in PARAGRAPHS:
            self.is_in_paragraph = False
        elif tag == TABLE + "table-row" and self.table is not None:
            self.end_row(self.table)
        self.depth -= 1

    def end_cell(self, given: dict[str, str]) -> None:
        value = ods_value(given, "".join(self.texts))
        formula = given.get(TABLE + "formula")
        if formula is not None:
            is_saved = OFFICE + "value-type" in given
            self.formulas += not is_saved
            target = LINK_FORMULA.search(formula)
            if target and not self.link:
                self.link = target[1]
        if value != "" or self.link:
            cell = OdsCell(self.column, self.cell_repeats, value, self.link)
            self.row.append(cell)
        self.column += self.cell_repeats

    def end_row(self, table: OdsSheet) -> None:
        place = self.row_at
        repeats = self.row_repeats
        self.row_at += repeats
        if not self.row:
            return
        first = self.row[0]
        last = self.row[-1]
        table.height = self.row_at
        table.width = max(table.width, last.column + last.repeats)
        table.left = min(table.left, first.column)
        if table.height > MOST_ROWS or table.width > MOST_COLUMNS:
            raise ValueError(
                f"sheet {table.name!r} says that it has {table.height:,} rows and {table.width:,} "
                f"columns, and {MOST_ROWS:,} rows and {MOST_COLUMNS:,} columns are read at most; "
                "delete what is outside the table, or save it as CSV"
            )
        cells: list[Any] = []
        for cell in self.row:
            cells += [""] * (cell.column - len(cells))
            cells += [cell.value] * cell.repeats
            # A text counts in each cell that has it, as in other workbooks.
            size = len(str(cell.value)) + len(cell.link)
            self.octets += size * cell.repeats * repeats
            check_size(self.octets, self.most)
            if not cell.link:
                continue
            for row in range(place, place + repeats):
                for column in range(cell.column, cell.column + cell.repeats):
                    table.links[row, column] = cell.link
        self.octets += 8 * (len(cells) - len(self.row))  # empty cells before filled ones
        check_size(self.octets, self.most)
        table.filled.append(OdsRow(place, repeats, cells))


def repeats_of(given: dict[str, str], name: str) -> int:
    """How often a row or cell occurs; a number below one would undo what was counted before."""
    return max(1, int(given.get(TABLE + name, 1)))


def ods_value(given: dict[str, str], text: str) -> Any:
    """The value of a cell; its text where that is not a value of its type."""
    kind = given.get(OFFICE + "value-type", "string")
    with suppress(ValueError, KeyError, OverflowError):
        if kind in ("float", "percentage", "currency"):
            return float(given[OFFICE + "value"])
        if kind == "boolean":
            return {"true": True, "false": False}[given[OFFICE + "boolean-value"]]
        if kind == "date":
            date = given[OFFICE + "date-value"]
            if "T" in date:
                return datetime.datetime.fromisoformat(date)
            return datetime.date.fromisoformat(date)
        if kind == "time":
            return ods_time(given[OFFICE + "time-value"])
    return text or given.get(OFFICE + "string-value", "")


def ods_time(text: str) -> datetime.time | datetime.timedelta:
    """A time of the day, or a duration of a day and more."""
    match = DURATION.fullmatch(text)
    if match is None:
        raise ValueError(text)
    sign, *numbers = match.groups()
    days, hours, minutes, seconds = (int(number or 0) for number in numbers)
    duration = datetime.timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    if sign:
        return -duration
    if duration >= DAY:
        return duration
    return datetime.time(hours, minutes, seconds)


EMPTY_SHEET = Sheet(0, 0, None, iter(()), {})

if __name__ == "__main__":
    main(*sys.argv[1:])
