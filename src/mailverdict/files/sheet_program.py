"""The program that reads a workbook in a process of its own; `sheets` starts it and reads what it writes.

calamine sets aside the rectangle of cells that a file asks for, and a copy of a text for each cell that has it. Where
there is no memory for that, it ends the process, which no `except` sees. Nothing of mailverdict is imported here, so
that a small workbook is read in a tenth of a second.

``MEMORY OCTETS PATH`` gives the names of all sheets, and the properties that a program gave the workbook. ``MEMORY
OCTETS PATH CELLS [SHEET]`` gives the names; a sheet's name, rows, columns and formulas without a value; the addresses
of links by row and column; and the rows in pieces, unless they have more cells than CELLS. Values are pickled to
standard output; None is an empty row. OCTETS is the most to which the parts of the workbook may unpack, and the most
that is written.
"""

from __future__ import annotations

import pickle
import re
import sys
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any
from xml.etree import ElementTree

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
    rb"<(?:\w+:)?c\b(?![^<>]*\bt=[\"']str)[^<>]*>\s*<(?:\w+:)?f\b(?:[^<>]*/>|[^<>]*>[^<]*</(?:\w+:)?f>)\s*"
    rb"(?:<(?:\w+:)?v\s*/>\s*|<(?:\w+:)?v>\s*</(?:\w+:)?v>\s*)?</(?:\w+:)?c>"
)


def main(memory: str, octets: str, path: str, *sheet: str) -> None:
    limit_memory(int(memory))
    try:
        formulas, has_links = scan_parts(path, int(octets))
        values = (
            read_sheet(path, formulas, int(sheet[0]), *sheet[1:], has_links=has_links)
            if sheet
            else read_names(path)
        )
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
            f"it unpacks to more than {most >> 20:,} MiB, much more than a table in a file of its size; save it as CSV "
            "if you trust it"
        )


def limit_memory(octets: int) -> None:
    """Limit the memory of this process where the system can, and write no core file when it ends by that."""
    try:
        import resource  # noqa: PLC0415 - not on Windows, which promises no memory that it does not have
    except ImportError:
        return
    for kind, limit in ((resource.RLIMIT_AS, octets), (resource.RLIMIT_CORE, 0)):
        with suppress(ValueError, OSError):  # a lower limit holds already
            resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))


def scan_parts(path: str, most: int) -> tuple[int, bool]:
    """Unpack all parts, count the formulas whose value is not in the file, and see whether there are links.

    A spreadsheet program saves the value beside the formula; openpyxl, and pandas with it, do not.
    """
    formulas, size, has_links = 0, 0, False
    if not zipfile.is_zipfile(path):  # an old workbook, which is not packed
        return 0, False
    with zipfile.ZipFile(path) as book:
        for part in book.infolist():
            rest = b""  # the beginning of a cell
            with book.open(part) as octets:
                while block := octets.read(BLOCK):
                    size += len(block)
                    check_size(size, most)
                    if "/worksheets/" in part.filename:
                        cells, end, rest = (rest + block).rpartition(b"c>")
                        rest = rest[-LONGEST_XML_CELL:]
                        has_links = has_links or b"hyperlink" in (cells + rest).lower()
                        if b"<f" in cells or b":f" in cells:
                            formulas += len(FORMULA_WITHOUT_VALUE.findall(cells + end))
    return formulas, has_links


def read_names(path: str) -> Iterator[Any]:
    from python_calamine import CalamineWorkbook  # noqa: PLC0415 - after the limit is set

    yield CalamineWorkbook.from_path(path).sheet_names
    with zipfile.ZipFile(path) as book:
        yield book.read(PROPERTIES) if PROPERTIES in book.namelist() else b""


def read_sheet(
    path: str, formulas: int, most_cells: int, sheet: str | None = None, *, has_links: bool
) -> Iterator[Any]:
    """By default the first sheet that is not empty, of those that are not hidden if there are any."""
    from python_calamine import CalamineWorkbook, SheetVisibleEnum  # noqa: PLC0415 - after the limit is set

    book = CalamineWorkbook.from_path(path)
    names = book.sheet_names
    hidden = {
        each.name for each in book.sheets_metadata if each.visible != SheetVisibleEnum.Visible
    }
    found, height, width = sheet, 0, 0
    for found in sorted(names, key=hidden.__contains__) if sheet is None else {sheet} & {*names}:
        cells = book.get_sheet_by_name(found)
        height, width = cells.height, cells.width
        if cells.start is not None:  # it is not empty
            break
    yield names, found, height, width, formulas
    yield (
        read_links(path, found, cells.start) if has_links and found in names and cells.start else {}
    )
    if height and cells.start is not None and height * width <= most_cells:
        empty = [""] * width
        rows = islice(cells.iter_rows(), cells.start[0], None)  # it begins with empty rows
        while piece := list(islice(rows, PIECE_ROWS)):
            yield [None if row == empty else row for row in piece]


def read_links(path: str, sheet: str, start: tuple[int, int]) -> dict[tuple[int, int], str]:
    """The address of each link to one, by the row and the column of its cell, counted from those of `start`."""
    found = {}
    with zipfile.ZipFile(path) as book:
        part = find_part(book, sheet)
        if part is None:
            return {}
        folder, _, file = part.rpartition("/")
        targets = {
            name: link[1]
            for name, target in relations(book, f"{folder}/_rels/{file}.rels")
            if (link := MAILTO.match(target))
        }
        cell = None
        with book.open(part) as octets:
            for event, element in ElementTree.iterparse(octets, ("start", "end")):  # noqa: S314 - this process may end
                name = element.tag.rpartition("}")[2]
                if event == "start":
                    cell = element.get("r") if name == "c" else cell
                elif name == "f" and (link := LINK_FORMULA.match(element.text or "")):
                    found[cell] = link[1]
                elif name == "hyperlink" and (address := targets.get(element.get(RELATIONS, ""))):
                    found[element.get("ref")] = address
                elif name == "row":
                    element.clear()  # a sheet of a million rows would take a gigabyte
    places = {
        place: address
        for ref, address in found.items()
        if (place := place_of(ref or "")) is not None
    }
    return {
        (row - start[0], column - start[1]): address for (row, column), address in places.items()
    }


def find_part(book: zipfile.ZipFile, sheet: str) -> str | None:
    """The part of a workbook that holds a sheet."""
    if "xl/workbook.xml" not in book.namelist():
        return None
    tree = ElementTree.fromstring(book.read("xl/workbook.xml"))  # noqa: S314 - this process may end
    wanted = next(
        (
            each.get(RELATIONS)
            for each in tree.iter()
            if each.get("name") == sheet and each.get(RELATIONS)
        ),
        None,
    )
    target = dict(relations(book, "xl/_rels/workbook.xml.rels")).get(wanted or "")
    part = target.removeprefix("/") if target and target.startswith("/") else f"xl/{target}"
    return part if target and part in book.namelist() else None


def relations(book: zipfile.ZipFile, part: str) -> Iterator[tuple[str, str]]:
    if part in book.namelist():
        for each in ElementTree.fromstring(book.read(part)):  # noqa: S314 - this process may end
            yield each.get("Id", ""), each.get("Target", "")


def place_of(reference: str) -> tuple[int, int] | None:
    """Row and column of a reference such as B3; None for one to several cells."""
    found = REFERENCE.fullmatch(reference)
    if found is None:
        return None
    column = 0
    for letter in found[1]:
        column = column * 26 + ord(letter) - ord("A") + 1
    return int(found[2]) - 1, column - 1


if __name__ == "__main__":
    main(*sys.argv[1:])
