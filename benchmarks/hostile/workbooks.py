"""Hostile workbooks: what they cost the command line, beside an honest one.

A small file asks for a rectangle of billions of cells, has a part that unpacks to gigabytes, says that gigabytes
follow, or has one long text in many cells. Each is cleaned by a command; its exit status must be 2, that of the honest
workbook 0. Measured are the seconds and the highest resident memory of its processes. Run it as
``python -m benchmarks.hostile.workbooks``.
"""

import os
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain, repeat
from pathlib import Path

import xlsxwriter

from benchmarks.figures import OURS, read_options, record

MIB = 1 << 20
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
ROWS, COLUMNS = 1_048_576, 16_384
LINK = f'<Relationships xmlns="{PACKAGE}"><Relationship Id="r" Type="{OFFICE}/%s" Target="%s"/></Relationships>'


def write_book(
    path: Path, sheet: Iterable[str], strings: Iterable[str] = (), sheets: int = 1
) -> None:
    """A workbook with this text in its sheet, and in its texts; all sheets are the same part."""
    names = "".join(
        f'<sheet name="{number}" sheetId="{number}" r:id="r"/>' for number in range(1, sheets + 1)
    )
    parts: dict[str, Iterable[str]] = {
        "_rels/.rels": [LINK % ("officeDocument", "xl/workbook.xml")],
        "xl/_rels/workbook.xml.rels": [LINK % ("worksheet", "worksheets/sheet1.xml")],
        "xl/workbook.xml": [
            f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{names}</sheets></workbook>'
        ],
        "xl/worksheets/sheet1.xml": chain(
            [f'<worksheet xmlns="{MAIN}"><sheetData>'], sheet, ["</sheetData></worksheet>"]
        ),
        "xl/sharedStrings.xml": strings or [f'<sst xmlns="{MAIN}"/>'],
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as book:
        for name, texts in parts.items():
            with book.open(name, "w", force_zip64=True) as part:
                for text in texts:
                    part.write(text.encode())


def cells(*places: str) -> list[str]:
    return [f'<row><c r="{place}" t="str"><v>ada@example.org</v></c></row>' for place in places]


def honest(path: Path, rows: int) -> None:
    """Numbers, times and texts in eight columns."""
    with xlsxwriter.Workbook(str(path), {"constant_memory": True}) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["email", "name", "n", "share", "when", "ok", "city", "note"])
        moment = book.add_format({"num_format": "yyyy-mm-dd hh:mm"})
        for at in range(1, rows + 1):
            sheet.write_row(
                at, 0, [f"person{at}@example{at % 997}.org", f"Person {at}", at, at / 7]
            )
            sheet.write_number(at, 4, 43_831 + at / 24, moment)
            sheet.write_row(at, 5, [at % 2 == 0, ("Rome", "Bern", "Ulm")[at % 3], "x" * (at % 30)])


def sparse(path: Path) -> None:
    """A table of one row, and a cell at the end of the last one of 32 columns."""
    head = '<row><c t="str"><v>email</v></c></row>'
    write_book(path, [head, *cells("A2"), *cells(f"AF{ROWS}")])


def blanks(size: int) -> Iterable[str]:
    return repeat(" " * MIB, size // MIB)


def attacks(size: int) -> dict[str, Callable[[Path], None]]:
    """By name; `size` are the octets to which a part unpacks."""
    text = f'<sst xmlns="{MAIN}"><si><t>{"x" * 32_767}</t></si></sst>'
    many = (f'<sst xmlns="{MAIN}" uniqueCount="100000000000">',)
    return {
        "cells in A1 and XFD1048576": lambda path: write_book(path, cells("A1", "XFD1048576")),
        "cells in A1 and A4000000000": lambda path: write_book(path, cells("A1", "A4000000000")),
        "as many rows, a wide row, no places": lambda path: write_book(
            path, ["<row/>" * ROWS, f"<row>{'<c><v>1</v></c>' * COLUMNS}</row>", cells("A1")[0]]
        ),
        "a sheet with one long text": lambda path: write_book(
            path, chain(['<row><c t="str"><v>'], blanks(size), ["</v></c></row>"])
        ),
        "a sheet with blanks between rows": lambda path: write_book(
            path, chain(cells("A1"), blanks(size))
        ),
        "one long text beside the sheet": lambda path: write_book(
            path,
            cells("A1"),
            chain([f'<sst xmlns="{MAIN}"><si><t>'], blanks(size), ["</t></si></sst>"]),
        ),
        "a number of texts that is not true": lambda path: write_book(path, cells("A1"), many),
        "one text in 200,000 cells": lambda path: write_book(
            path, ['<row><c t="s"><v>0</v></c></row>' * 200_000], [text]
        ),
        "a sheet of 100 MiB, 1,000 times": lambda path: write_book(
            path, blanks(min(size, 100 * MIB)), sheets=1_000
        ),
    }


def honest_ones(rows: int) -> dict[str, Callable[[Path], None]]:
    return {
        f"{rows:,} rows of 8 columns": partial(honest, rows=rows),
        "3 cells, the last one in AF1048576": sparse,
    }


def run(path: Path) -> tuple[int, float, float]:
    """Exit status, seconds and MiB of one command."""
    arguments = [
        "-m",
        "mailverdict",
        "clean",
        str(path),
        "--column",
        "email",
        "-o",
        str(path.with_suffix(".csv")),
    ]
    begin = time.perf_counter()
    silent = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
    child = os.posix_spawn(
        sys.executable, [sys.executable, *arguments], os.environ, file_actions=silent
    )
    _, status, usage = os.wait4(child, 0)
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / MIB
    return os.waitstatus_to_exitcode(status), time.perf_counter() - begin, peak


def main() -> None:
    given = read_options(
        __doc__, rows=(200_000, 2_000), rounds=(3, 1), unpacked=(2_500 * MIB, 200 * MIB)
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "in.xlsx")
        wrong = []
        for name, write in honest_ones(given.rows).items():
            write(path)
            runs = [run(path) for _ in range(given.rounds)]
            record(f"honest: {name}", OURS, [each[1] for each in runs])
            record(f"honest: {name}", OURS, [each[2] for each in runs], "MiB")
            wrong += [f"{name} ended with status {each[0]}" for each in runs if each[0] != 0]
        for name, write in attacks(given.unpacked).items():
            write(path)
            size = path.stat().st_size
            status, seconds, peak = run(path)
            record(f"{name} ({size:,} octets)", OURS, [seconds])
            record(f"{name} ({size:,} octets)", OURS, [peak], "MiB")
            wrong += [f"{name} ended with status {status}"] if status != 2 else []
    if wrong:
        raise SystemExit("; ".join(wrong))


if __name__ == "__main__":
    main()
