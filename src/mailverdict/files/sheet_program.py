"""The program that reads a workbook in a process of its own; `sheets` starts it and reads what it writes.

calamine sets aside the rectangle of cells that a file asks for, and a copy of a text for each cell that has it. Where
there is no memory for that, it ends the process, which no `except` sees. Nothing of mailverdict is imported here, so
that a small workbook is read in a tenth of a second.

``MEMORY OCTETS PATH`` gives the names of all sheets, and the mark of the program that wrote the workbook. ``MEMORY
OCTETS PATH CELLS [SHEET]`` gives the names; a sheet's name, rows, columns and formulas without a value; and the rows in
pieces, unless they have more cells than CELLS. Values are pickled to standard output; None is an empty row. OCTETS is
the most to which the parts of the workbook may unpack, and the most that is written.
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
PROPERTIES, MARK = "docProps/custom.xml", "mailverdict"  # the part with the property that is the mark
PIECE_ROWS = 1_000
BLOCK = 1 << 20  # octets that are read at a time
LONGEST_XML_CELL = 1 << 20  # octets
# A cell with a formula and no value; an empty text that was saved has the type "str".
FORMULA_WITHOUT_VALUE = re.compile(
    rb"<(?:\w+:)?c\b(?![^<>]*\bt=[\"']str)[^<>]*>\s*<(?:\w+:)?f\b(?:[^<>]*/>|[^<>]*>[^<]*</(?:\w+:)?f>)\s*"
    rb"(?:<(?:\w+:)?v\s*/>\s*|<(?:\w+:)?v>\s*</(?:\w+:)?v>\s*)?</(?:\w+:)?c>"
)


def main(memory: str, octets: str, path: str, *sheet: str) -> None:
    limit_memory(int(memory))
    try:
        formulas = scan_parts(path, int(octets))
        for value in read_sheet(path, formulas, int(sheet[0]), *sheet[1:]) if sheet else read_names(path):
            pickle.dump(value, sys.stdout.buffer, pickle.HIGHEST_PROTOCOL)
            check_size(sys.stdout.buffer.tell(), int(octets))
    except MemoryError:
        raise
    except BaseException as exc:  # noqa: BLE001 - a panic of calamine is no Exception
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


def scan_parts(path: str, most: int) -> int:
    """Unpack all parts, and count the formulas whose value is not in the file, so that their cells are read as empty.

    A spreadsheet program saves the value beside the formula; openpyxl, and pandas with it, do not.
    """
    formulas = size = 0
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
                        if b"<f" in cells or b":f" in cells:
                            formulas += len(FORMULA_WITHOUT_VALUE.findall(cells + end))
    return formulas


def read_names(path: str) -> Iterator[Any]:
    from python_calamine import CalamineWorkbook  # noqa: PLC0415 - after the limit is set

    yield CalamineWorkbook.from_path(path).sheet_names
    with zipfile.ZipFile(path) as book:
        part = book.read(PROPERTIES) if PROPERTIES in book.namelist() else b"<Properties/>"
    properties = ElementTree.fromstring(part)  # noqa: S314 - this process may end
    yield next(("".join(each.itertext()) for each in properties if each.get("name") == MARK), None)


def read_sheet(path: str, formulas: int, most_cells: int, sheet: str | None = None) -> Iterator[Any]:
    """By default the first sheet that is not empty, of those that are not hidden if there are any."""
    from python_calamine import CalamineWorkbook, SheetVisibleEnum  # noqa: PLC0415 - after the limit is set

    book = CalamineWorkbook.from_path(path)
    names = book.sheet_names
    hidden = {each.name for each in book.sheets_metadata if each.visible != SheetVisibleEnum.Visible}
    found, height, width = sheet, 0, 0
    for found in sorted(names, key=hidden.__contains__) if sheet is None else {sheet} & {*names}:
        cells = book.get_sheet_by_name(found)
        height, width = cells.height, cells.width
        if cells.start is not None:  # it is not empty
            break
    yield names, found, height, width, formulas
    if height and cells.start is not None and height * width <= most_cells:
        empty = [""] * width
        rows = islice(cells.iter_rows(), cells.start[0], None)  # it begins with empty rows
        while piece := list(islice(rows, PIECE_ROWS)):
            yield [None if row == empty else row for row in piece]


if __name__ == "__main__":
    main(*sys.argv[1:])
