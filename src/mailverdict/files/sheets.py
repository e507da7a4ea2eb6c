"""Read a sheet of a workbook (XLSX, XLSB, ODS, or XLS of Excel 97 to 2003) as a table.

If none is given, it is the first sheet in which a column of addresses is found. Most often that is
the first shown sheet that is not empty, which is read at once; else the first rows of all sheets
are looked at.

A file may come from anybody, and what it holds may end the process that reads it. So
`sheet_program` reads it in another one, whose memory and time are limited by the size of the file.
What it sends are Python values, which become columns here:

    [["name", "joined"], ["Ada", datetime.date(2026, 1, 2)]]  ->  name (text), joined (date)
"""

from __future__ import annotations

import datetime
import hashlib
import os
import pickle
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from ..errors import ColumnError, InputError, MissingExtraError
from ..model.words import count_of, first_of
from ..table.columns import did_you_mean, listed
from .compression import unpacked_limit
from .delimited import MARKUP
from .header import HEAD_ROWS, column_names, find_start
from .sheet_program import UNREADABLE, Links
from .table_file import PIECE_ROWS, FileFormat, TableFile

Cells = list[list[Any]]  # of rows, as Python values
PROGRAM = str(Path(__file__).with_name("sheet_program.py"))
MOST_CELLS = 1 << 25  # of the rectangle that is used: a full sheet (1,048,576 rows) of 32 columns
# What the program may take. Measured: 1.1 GiB for MOST_CELLS of which few are filled; at most 30
# octets of memory for each octet of a file, and 0.2 seconds for each MiB.
BASE_MEMORY = 3 << 29
MEMORY_PER_OCTET = 64
BASE_SECONDS = 30
SECONDS_PER_MIB = 30
SAMPLE_ROWS = 2_000  # of a sheet, to see whether it has addresses
MOST_HEAD_CELLS = 1 << 21  # of the first rows of all sheets; those after that are not looked at
MOST_NAMED = 5  # sheets in a message
WORKBOOK_PARTS = {"xl/workbook.xml", "xl/workbook.bin", "content.xml"}
ODS_MANIFEST = "META-INF/manifest.xml"
EXACT_INTEGERS = 2**53  # below this, a workbook's numbers, which are doubles, are exact


class WorkbookSheet(TableFile):
    """A sheet of a workbook, read whole: it has about a million rows at most."""

    def __init__(self, path: Path, name: str, table: pa.Table, file_format: FileFormat) -> None:
        super().__init__(path, name, table.schema, file_format)
        self.table = table

    def check_column(self, column: str) -> None:
        try:
            super().check_column(column)
        except ColumnError as exc:
            others = [repr(sheet) for sheet in self.sheets if sheet != self.format.sheet]
            if not others:
                raise
            raise ColumnError(
                f"{exc}; this is sheet {self.format.sheet!r}, and there are also "
                f"{first_of(others, MOST_NAMED)}: give another with --sheet"
            ) from None

    def read(
        self, only: Collection[str] | None = None, *, with_lines: bool = False
    ) -> Iterator[pa.Table]:
        for start in range(0, len(self.table), PIECE_ROWS):
            part = self.table.slice(start, PIECE_ROWS)
            yield self.piece(dict(enumerate(part.columns)), len(part))


@dataclass(frozen=True)
class SheetTable:
    """The table of a sheet, and the rows before its header."""

    title: Cells
    table: pa.Table
    has_header: bool


def open_sheet(
    path: Path,
    name: str,
    sheet: str | None,
    *,
    has_header: bool | None,
    has_addresses: Callable[[pa.Table], bool],
) -> WorkbookSheet:
    """Read a sheet; its first row is the header unless an address is in it.

    By default it is the first sheet for whose table `has_addresses` is true; if there is none, the
    first that is not empty.
    """
    rows = read_sheet(path, name, sheet)
    table = make_table(rows.rows, has_header=has_header)
    is_likely = False
    if sheet is None and len(rows.sheets) > 1:
        is_likely = table is not None and has_addresses(table.table)
        if not is_likely:
            for other, head in read_heads(path, name):
                start = make_table(head, has_header=has_header)
                if other == rows.sheet or start is None:
                    continue
                if has_addresses(start.table):
                    is_likely = True
                    rows = read_sheet(path, name, other)
                    table = make_table(rows.rows, has_header=has_header)
                    break
    if table is None:
        where = ""
        if len(rows.sheets) > 1:
            where = f" in sheet {rows.sheet!r}"
        raise InputError(f"{name} has no header line{where}")
    file_format = FileFormat(sheet=rows.sheet, title=table.title)
    opened = WorkbookSheet(path, name, table.table, file_format)
    opened.has_header = table.has_header
    opened.sheets = rows.sheets
    opened.formulas = rows.formulas
    if rows.linked:
        cells = count_of(rows.linked, "cell")
        opened.remarks.append(f"{cells} with an address in the link only: read as 'text <address>'")
    opened.remarks += sheet_remarks(opened)
    others = [repr(other) for other in rows.sheets if other != rows.sheet]
    if sheet is None and others:
        why = ""
        if is_likely:
            why = " (the first with a column of addresses)"
        opened.remarks.append(
            f"only sheet {rows.sheet!r}{why} is read, and not {first_of(others, MOST_NAMED)}; give "
            "another with --sheet"
        )
    if not table.has_header:
        opened.remarks.append(
            f"no header line: the columns are column_1 to column_{len(opened.columns)}"
        )
    return opened


def make_table(rows: Cells, *, has_header: bool | None) -> SheetTable | None:
    """The rows of a sheet as a table; None if the row of the header is empty."""
    head = []
    for row in rows[:HEAD_ROWS]:
        head.append([cell_text(cell) or "" for cell in row])
    start = 0
    if has_header is None:
        start, has_header = find_start(head)
    if not head or not any(head[start]):
        return None
    names = column_names(head[start], has_header=has_header)
    columns = [()] * len(names)
    body = rows[start + has_header :]
    if body:
        columns = list(zip(*body, strict=True))
    table = pa.table(list(map(typed_column, columns)), names=names)
    return SheetTable(rows[:start], table, has_header)


def sheet_remarks(sheet: WorkbookSheet) -> Iterator[str]:
    """What a user should know about a sheet that was read."""
    if sheet.formulas:
        yield (
            f"{count_of(sheet.formulas, 'formula')} without a saved value in its sheets, as "
            "programs write them: read as empty cells; open the workbook in a spreadsheet program "
            "and save it, so that it has the values"
        )
    if sheet.format.title:
        yield (
            f"the header is row {len(sheet.format.title) + 1}; the rows before it are a title, "
            "which is not part of the table (--header: row 1 is the header)"
        )


@dataclass(frozen=True)
class SheetRows:
    """The rows of a sheet as Python values; all of one length."""

    sheet: str
    sheets: list[str]  # the names of all
    formulas: int  # without a value, in all sheets
    linked: int  # cells whose address is in their link only
    rows: Cells


def read_sheet(
    path: Path, name: str, sheet: str | None, *, most_cells: int = MOST_CELLS, **limits: int
) -> SheetRows:
    """The rows of a sheet.

    By default it is the first one that is not empty, of those that are not hidden if there are any.
    """
    given = () if sheet is None else (sheet,)
    about, links, *pieces = run_program(path, name, "rows", most_cells, *given, **limits)
    names, wanted, height, width, formulas = about
    if sheet is not None and sheet not in names:
        raise InputError(
            f"{name} has no sheet {sheet!r}{did_you_mean(sheet, names)}; there are {listed(names)}"
        )
    if not names:
        raise InputError(f"{name} has no sheet")
    if height * width > most_cells:
        raise InputError(
            f"{name} has cells in {height:,} rows and {width:,} columns of sheet {wanted!r}, which "
            f"are more than the {most_cells:,} cells that are read: delete what is outside the "
            "table, or save it as CSV"
        )
    empty = [""] * width
    rows = []
    for piece in pieces:
        rows += [row or empty for row in piece]
    linked = write_links(rows, links)
    return SheetRows(wanted, names, formulas, linked, rows)


def read_heads(path: Path, name: str) -> Iterator[tuple[str, Cells]]:
    """The first rows of each sheet that is not empty; hidden ones are last."""
    for sheet, rows, links in run_program(path, name, "heads", MOST_HEAD_CELLS, SAMPLE_ROWS):
        width = max((len(row) for row in rows if row), default=0)
        empty = [""] * width
        head = [row or empty for row in rows]
        write_links(head, links)
        yield sheet, head


def write_links(rows: Cells, links: Links) -> int:
    """Write the address of a link behind the text of its cell where that has none.

    Returns of how many cells.
    """
    count = 0
    for (at, column), address in links.items():
        if at >= len(rows) or column >= len(rows[at]):
            continue
        text = rows[at][column]
        if "@" in str(text):
            continue
        row = list(rows[at])  # empty rows are one list
        row[column] = address
        if text != "":
            row[column] = f"{text} <{address}>".strip()
        rows[at] = row
        count += 1
    return count


def run_program(
    path: Path,
    name: str,
    *arguments: object,
    memory: int | None = None,
    seconds: float | None = None,
) -> list[Any]:
    """What `sheet_program` says of a workbook.

    The limits are octets and seconds, by default those for its size. Raises `InputError` for what
    is not a workbook, and for one that takes more than any table in a file of its size.
    """
    if find_spec("python_calamine") is None:
        raise MissingExtraError("reading a workbook", "excel")
    size = path.stat().st_size
    memory = memory or BASE_MEMORY + MEMORY_PER_OCTET * size
    seconds = seconds or BASE_SECONDS + SECONDS_PER_MIB * (size >> 20)
    # Packages are found where this process finds them; -P: not beside the program, whose neighbours
    # have common names.
    paths = os.pathsep.join(filter(None, sys.path))
    given = (memory, unpacked_limit(path), path, *arguments)
    command = [sys.executable, "-P", PROGRAM, *map(str, given)]
    with tempfile.TemporaryFile(prefix="mailverdict-") as output:
        try:
            done = subprocess.run(  # noqa: S603 - Python itself
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": paths, "PYTHONIOENCODING": "utf-8"},
                timeout=seconds,
                check=False,
                # Ctrl-C in a terminal is for this process, which then ends the other one.
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            status = None
            problem = "it was stopped"
        else:
            status = done.returncode
            messages = done.stderr.decode(errors="replace").strip()
            problem = messages.rpartition("\n")[2][:300]
            if status < 0:
                problem = f"ended by signal {-status}"
        if status == UNREADABLE:
            raise InputError(f"{name} cannot be read as a workbook: {reason_of(path, problem)}")
        if status != 0:
            raise InputError(
                f"{name} cannot be read with {memory >> 20:,} MiB of memory in {seconds:,} seconds "
                f"({problem}), which a table in a file of its size needs at most: delete what is "
                "outside the table, or save it as CSV"
            )
        output.seek(0)
        return list(unpickle(output))


def unpickle(file: IO[bytes]) -> Iterator[Any]:
    while True:
        try:
            yield pickle.load(file)  # noqa: S301 - our own program wrote it
        except EOFError:
            return


def is_ours(path: Path) -> bool:
    """Whether mailverdict wrote all sheets of a workbook: it has the mark of their names."""
    names, properties = run_program(path, str(path), "names")
    return mark_of(names).encode() in properties


def mark_of(names: Sequence[str]) -> str:
    """What a workbook that mailverdict writes has as a property: other names have another mark."""
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def reason_of(path: Path, problem: str) -> str:
    """Why a file is not a workbook; by default what its reader says."""
    with suppress(OSError, ValueError, zipfile.BadZipFile), path.open("rb") as file:
        start = file.read(1 << 10)
        if start.startswith(b"\xd0\xcf\x11\xe0"):
            return "it has a password, or is not a workbook: save it as .xlsx without a password"
        if MARKUP.match(start):
            return "it is a web page; open it in a spreadsheet program and save it as .xlsx"
        if start and b"\0" not in start:
            return "it is text; if it is a table, rename it to .csv"
        with zipfile.ZipFile(file) as archive:
            parts = set(archive.namelist())
            if ODS_MANIFEST in parts and b"encryption-data" in archive.read(ODS_MANIFEST):
                return "it has a password: save it without one"
            if parts.isdisjoint(WORKBOOK_PARTS):
                return (
                    "it is a zip file without a workbook in it; give the table itself, or a file "
                    "that ends in .zip"
                )
    return problem


def typed_column(cells: Sequence[Any]) -> pa.Array:
    """A typed column if all cells are of one kind; otherwise text.

    So they can be written back unchanged.
    """
    values = [None if cell == "" else cell for cell in cells]
    filled = [cell for cell in values if cell is not None]
    kinds = set(map(type, filled))
    for types, arrow_type in COLUMN_TYPES:
        if not kinds <= types:
            continue
        if types == NUMBERS and all(map(is_integer, filled)):
            numbers = [None if cell is None else int(cell) for cell in values]
            return pa.array(numbers, pa.int64())
        with suppress(pa.ArrowException, OverflowError, ValueError):  # a date out of Arrow's range
            return pa.array(values, arrow_type)
        break
    return pa.array(map(cell_text, values), pa.string())


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
        sign = "-" if cell.days < 0 else ""
        minutes, seconds = divmod(round(abs(cell.total_seconds())), 60)
        return f"{sign}{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    return str(cell)


NUMBERS: set[type] = {int, float}
COLUMN_TYPES: tuple[tuple[set[type], pa.DataType], ...] = (
    ({str}, pa.string()),
    ({bool}, pa.bool_()),
    (NUMBERS, pa.float64()),
    ({datetime.date}, pa.date32()),
    ({datetime.datetime}, pa.timestamp("us")),
)
