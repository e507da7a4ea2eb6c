"""Open table files of every kind and standard input; and guess which column has the addresses.

`open_table` decides by the ending of the file's name and returns a `TableFile`. CSV and TSV are in `delimited`, Parquet
and Arrow files in `columnar`, JSON lines in `json_lines`; workbooks are read here.
"""

from __future__ import annotations

import datetime
import os
import posixpath
import re
import select
import stat
import sys
import tempfile
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.compute as pc

from ...atomic_write import is_device
from ...errors import ColumnError, InputError, MissingExtraError
from ...model.paths import user_path
from ...model.words import count_of
from ..columns import CLEAN_COLUMNS, COLUMNS, DUPLICATE_COLUMNS, did_you_mean, listed
from ..text_column import read_values
from .columnar import ArrowFile, ParquetFile, ParquetFolder
from .compression import COMPRESSIONS, describe_members, member_ending, unpack
from .delimited import Dialect, open_delimited
from .header import EMAIL_NAME, HEAD_ROWS, find_start
from .json_lines import JsonLinesFile, is_json
from .table_file import PIECE_ROWS, FileFormat, TableFile, first_line, stamp_of

STDIN = "-"
SPREADSHEETS = (".ods", ".fods", ".xls", ".xlsb", ".numbers")  # which people have, and no library here reads
KINDS = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "arrow",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
}
# Two columns that `verify`, `clean` or `duplicates` wrote, by which the others of the same prefix are recognized.
WRITTEN_TOGETHER = (("verdict", "status"), ("clean", "change"), ("identity", "duplicate_of"))
BLOCK = 1 << 20  # octets that are copied at a time
SAMPLE_ROWS = 2_000  # looked at to guess the column
MIN_ADDRESS_SHARE = 0.3  # of the filled cells; a notes column that mentions an address now and then has far less
ADDRESS_LIKE = (  # one address or several, in angle brackets, after a label, or with a written-out @
    r"(?i)^\s*\S+@\S+\.\S+(?:\s+(?:[/|&;,]\s*|and\s+|or\s+)?\S+@\S+\.\S+)*\s*$|<\S+@\S+>"
    r"|^\s*[\w\-]{1,12}\s*[:=]\s*\S+@\S+\.\S+\s*$|^\s*\S+\s*[\[({]\s*at\s*[\])}]\s*\S+\s*$"
)
AT_SIGN = r"(?i)@|[\[({]\s*at\s*[\])}]"  # or a word for it; each text that is ADDRESS_LIKE has one
LONGEST_SAMPLE = 1 << 16  # characters of a cell that is looked at for that; it may hold many addresses
PIPE_WAIT = 10  # seconds
EXACT_INTEGERS = 2**53  # below this, a workbook's numbers, which are doubles, are exact


@dataclass(frozen=True)
class ReadOptions:
    """What the caller says about a file; what is None is found out."""

    encoding: str | None = None  # CSV
    delimiter: str | None = None  # CSV
    sheet: str | None = None  # XLSX; None: the first that is not empty
    has_header: bool | None = None
    is_strict: bool = False  # refuse a CSV with rows of a wrong length or bytes that are not in its encoding

    def dialect(self, likely_delimiter: str | None = None) -> Dialect:
        return Dialect(self.encoding, self.delimiter, likely_delimiter, self.has_header, self.is_strict)


UNSPECIFIED = ReadOptions()


def open_table(path: str | Path, options: ReadOptions = UNSPECIFIED, *, name: str | None = None) -> TableFile:
    """Open a table file, or standard input for ``"-"``; use the result in a ``with`` statement.

    Standard input is Parquet, Arrow, a workbook or JSON lines if it begins like that, otherwise CSV. A directory is a
    table of Parquet files. Messages use `name`, by default the path.
    Raises `InputError` if the file does not exist, is empty, or is not of the kind that its name says.
    """
    if str(path) == STDIN:
        return open_stdin(options)
    if not str(path):  # which Path reads as the working directory
        raise InputError("the name of the file is empty")
    found = user_path(path)
    name = name or str(found)
    if found.is_dir():
        return open_folder(found, name, options)
    if not found.exists():
        raise InputError(f"{name}: no such file")
    if is_device(found):
        return open_pipe(found, options)
    is_packed = found.suffix.lower() in COMPRESSIONS
    ending = Path(found.stem).suffix.lower() or member_ending(found) if is_packed else found.suffix.lower()
    kind = KINDS.get(ending)
    if kind is None and is_packed and found.suffix.lower() == ".zip":
        raise InputError(f"{found}: {describe_members(found)}; give a zip file with one table in it")
    if kind is None:
        if ending in SPREADSHEETS:
            raise InputError(f"{name} is a spreadsheet of a kind that is not read: save it as .xlsx or .csv")
        raise InputError(
            f"{name}: cannot tell what kind of table this is; known endings: {', '.join(KINDS)}, "
            f"and {', '.join(COMPRESSIONS)} after them"
        )
    if is_packed:
        return open_copy(unpack(found, name, ending), kind, options, name)
    return open_kind(found, kind, options, name)


def open_copy(path: Path, kind: str, options: ReadOptions, name: str) -> TableFile:
    """Open a temporary copy, which is deleted with the opened file or after an error."""
    try:
        opened = open_kind(path, kind, options, name)
    except BaseException:
        path.unlink()
        raise
    if opened.is_temporary:  # it is read from another copy
        path.unlink()
    opened.is_temporary = True
    return opened


def open_kind(path: Path, kind: str, options: ReadOptions, name: str) -> TableFile:
    """Open a file of a known kind; raise `InputError` for everything that is wrong with it."""
    if not path.stat().st_size and kind != "jsonl":  # which is a table without rows then
        raise InputError(f"{name} is empty")
    unused = unused_options(kind, options, name)
    try:
        opened = OPENERS[kind](path, name, options)
    except (pa.ArrowException, OSError, UnicodeError) as exc:
        raise InputError(f"{name}: {first_line(exc)}") from exc
    opened.remarks += unused
    return opened


def unused_options(kind: str, options: ReadOptions, name: str) -> list[str]:
    """Remarks about options for another kind of file; an error for a sheet, since the wrong table would be read."""
    if options.sheet is not None and kind != "xlsx":
        raise InputError(f"{name} is not a workbook and has no sheet {options.sheet!r}: leave out the sheet")
    given = [each for each in ("encoding", "delimiter") if getattr(options, each) is not None]
    if not given or kind in ("csv", "tsv"):
        return []
    return [f"{' and '.join(given)}: only for CSV; {name} is read without"]


def open_folder(path: Path, name: str, options: ReadOptions) -> TableFile:
    unused = unused_options("parquet", options, name)
    try:
        opened = ParquetFolder(path, name)
    except (pa.ArrowException, OSError) as exc:
        raise InputError(f"{name}: {first_line(exc)}") from exc
    opened.remarks += unused
    return opened


def open_stdin(options: ReadOptions) -> TableFile:
    if sys.stdin is None:
        raise InputError("standard input is closed: give a file, or pipe a table to the command")
    copy = copy_of(sys.stdin.buffer)
    return open_copy(copy, kind_of_content(copy), options, "standard input")


def kind_of_content(path: Path) -> str:
    """The kind of a table without a name, by its first bytes."""
    with path.open("rb") as file:
        start = file.read(8)
    for magic, kind in MAGIC:
        if start.startswith(magic):
            return kind
    return "jsonl" if is_json(path) else "csv"


MAGIC = ((b"PAR1", "parquet"), (b"ARROW1", "arrow"), (b"\xff\xff\xff\xff", "arrow"), (b"PK\x03\x04", "xlsx"))


def open_pipe(path: Path, options: ReadOptions) -> TableFile:
    """Read a pipe, such as that of ``<(command)``, to its end; without a known ending it is CSV."""
    if path.suffix.lower() in COMPRESSIONS:
        raise InputError(f"{path} is a pipe: unpack what is written to it, as zcat does, or give a file")
    # Opening a named pipe to which nothing writes would wait for ever.
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(number, "rb", buffering=0) as pipe:
        if stat.S_ISFIFO(os.fstat(number).st_mode):
            wait_for_writer(number, str(path))
        os.set_blocking(number, True)
        copy = copy_of(pipe)
    return open_copy(copy, KINDS.get(path.suffix.lower()) or kind_of_content(copy), options, str(path))


def wait_for_writer(number: int, name: str) -> None:
    """Raise `InputError` if nothing opens a pipe for writing."""
    if select.select([number], [], [], PIPE_WAIT)[0]:
        return
    try:
        os.read(number, 1)
    except BlockingIOError:  # a writer that has not written yet
        return
    raise InputError(f"{name} is a pipe, and nothing was written to it within {PIPE_WAIT} seconds")


def copy_of(source: Any) -> Path:
    """Copy a stream to a temporary file, because a CSV is read more than once."""
    with tempfile.NamedTemporaryFile(prefix="mailverdict-", suffix=".csv", delete=False) as copy:
        path = Path(copy.name)
        try:
            copy.writelines(blocks_of(source))
        except BaseException:
            path.unlink()
            raise
    return path


def blocks_of(source: Any) -> Iterator[bytes]:
    """Read a stream to its end.

    Waits for input for a second at a time: a signal that arrives just before a blocking read is handled only after it.
    """
    try:
        number = source.fileno()
        select.select([number], [], [], 0)
    except (OSError, ValueError):  # not a file; or on Windows, where only sockets can be waited for
        number = None
    while True:
        if number is not None and not select.select([number], [], [], 1)[0]:
            continue
        block = source.read(BLOCK) if number is None else os.read(number, BLOCK)
        if not block:
            return
        yield block


# --- XLSX ------------------------------------------------------------------------------------------

SHEET_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
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


def open_sheet(path: Path, name: str, given: ReadOptions) -> WorkbookSheet:
    """Read a sheet; its first row is the header unless an address is in it."""
    stamp = stamp_of(path)
    sheet, names, rows = read_sheet(path, name, given.sheet)
    head = [[cell_text(cell) or "" for cell in row] for row in rows[:HEAD_ROWS]]
    start, has_header = find_start(head) if given.has_header is None else (0, given.has_header)
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
    opened.remarks += sheet_remarks(found, start, is_chosen=given.sheet is not None)
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
OPENERS: dict[str, Callable[[Path, str, ReadOptions], TableFile]] = {
    "csv": lambda path, name, given: open_delimited(path, name, given.dialect()),
    "tsv": lambda path, name, given: open_delimited(path, name, given.dialect("\t")),
    "parquet": lambda path, name, _: ParquetFile(path, name),
    "arrow": lambda path, name, _: ArrowFile(path, name),
    "jsonl": lambda path, name, _: JsonLinesFile(path, name),
    "xlsx": open_sheet,
}


# --- the column of addresses -----------------------------------------------------------------------


def address_shares(columns: Mapping[Any, Any]) -> dict[Any, float]:
    """Share of filled cells that look like an address, by column, from the first rows.

    >>> address_shares({"who": ["Ada"], "mail": ["ada@example.org"]})
    {'who': 0.0, 'mail': 1.0}
    """
    return {name: count_addresses(values[:SAMPLE_ROWS])[0] for name, values in columns.items()}


def count_addresses(values: Any) -> tuple[float, float]:
    """Shares of addresses: among the filled cells, and among all."""
    kind = values.type if isinstance(values, pa.Array | pa.ChunkedArray) else pa.null()
    if (pa.types.is_string(kind) or pa.types.is_large_string(kind)) and not has_at_sign(values):
        return 0.0, 0.0  # far quicker than to read the cells, which counts in a table with thousands of columns
    texts = read_values(values, for_repair=True, longest=LONGEST_SAMPLE).stripped
    if not len(texts):
        return 0.0, 0.0
    found = pc.sum(pc.match_substring_regex(texts, ADDRESS_LIKE)).as_py()
    return found / len(texts), found / len(values)


def has_at_sign(texts: pa.Array | pa.ChunkedArray) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, AT_SIGN)).as_py())


def guess_column(columns: Mapping[Any, Any]) -> Any:
    """The column with the most addresses, the first of equals; `ColumnError` if none has a large share."""
    return explain_guess(columns)[0]


def explain_guess(columns: Mapping[Any, Any]) -> tuple[Any, str]:
    """The guessed column, and why it was chosen.

    Empty cells count against a column, and a column that mailverdict wrote is never chosen.

    >>> explain_guess({"backup": ["a@x.org", ""], "mail": ["b@x.org", "c@x.org"], "mail_clean": ["b@x.org", "c@x.org"]})
    ('mail', "100% of the first 2 rows are addresses; 50% in 'backup'")
    """
    heads = {name: values[:SAMPLE_ROWS] for name, values in columns.items()}
    names = frozenset(name for name in heads if isinstance(name, str))
    shares = {name: count_addresses(values) for name, values in heads.items()}
    likely = [
        (of_all, name)
        for name, (of_filled, of_all) in shares.items()
        if of_filled >= MIN_ADDRESS_SHARE and not is_result(name, names)
    ]
    if not likely:
        return by_name(heads, names)
    (share, best), *others = sorted(likely, key=lambda each: -each[0])
    rows = len(heads[best])
    reason = f"{share:.0%} of the first {rows:,} rows are addresses" if rows > 1 else "the only row is an address"
    return best, "; ".join([reason, *(f"{each:.0%} in {name!r}" for each, name in others[:1])])


def by_name(heads: Mapping[Any, Any], names: frozenset[str]) -> tuple[Any, str]:
    """The only column whose name says that it has addresses, if its first cells are empty."""
    if not heads:
        raise ColumnError("the table has no columns to choose from: name the one with the addresses")
    found = [n for n, v in heads.items() if EMAIL_NAME.fullmatch(str(n)) and not is_result(n, names)]
    cells = [read_values(heads[name]) for name in found]
    if len(cells) == 1 and not len(cells[0].texts) and not len(cells[0].nontext_rows):
        return found[0], "by its name; the first rows have no filled cell in it"
    raise ColumnError(f"no column looks like e-mail addresses; name one of {listed(list(heads))}")


def is_result(name: Any, names: frozenset[str]) -> bool:
    """Whether a column is one that mailverdict writes beside another column of the table."""
    for result in (*COLUMNS, *CLEAN_COLUMNS, *DUPLICATE_COLUMNS) if isinstance(name, str) else ():
        prefix = name.removesuffix(result.name)
        if prefix == name:
            continue
        if any(names.issuperset({prefix + one, prefix + other}) for one, other in WRITTEN_TOGETHER):
            return True
        if prefix.endswith("_") and prefix[:-1] in names:
            return True
    return False
