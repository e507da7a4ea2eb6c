"""CSV and TSV files: find out delimiter and header, then read the rows without changing their bytes.

`open_delimited` does the first part. `DelimitedFile` splits the file into rows (`lines`), aligns those that have too
many or too few cells, and decodes the cells that are needed as text. With `with_lines` each piece also carries its rows
as they are in the file, which the CSV writer copies. Files in UTF-16 and the like are read from a copy in UTF-8, which
`encodings` makes.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from ...errors import InputError
from ...model.words import count_of, first_of
from .encodings import (
    SAMPLE,
    ByteScan,
    Encoding,
    copy_as_utf8,
    decode_cell,
    decodes,
    find_encoding,
    guess_encoding,
    needs_copy,
    sample_lines,
    scan_bytes,
)
from .header import HEAD_ROWS, find_start, is_plain_address
from .json_lines import is_json
from .lines import LF, Rows, align, split_rows, unquote
from .table_file import (
    CELL_MARK,
    LINE,
    LONGEST_CELL,
    LONGEST_HEADER,
    LONGEST_LINE,
    MAX_COLUMNS,
    FileFormat,
    TableFile,
    check_added,
    check_columns,
    stamp_of,
)

BLOCK = LONGEST_LINE  # bytes split at once: bounds memory
PIECE_CELLS = 4 << 20  # cells of rows that are aligned at once
FEW_ROWS = 5  # too few to find a title by: more bytes are read
HEAD_CELLS = 60_000  # of the first rows, which are decoded several times; a wide table needs fewer rows
HEAD_CELL = 1_000  # bytes of a cell of theirs that are looked at
MAX_LISTED_LINES = 5
WIDE = "give another --delimiter, or leave out columns"
DELIMITERS = ",;\t|"
DELIMITER_NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
OTHER_KINDS = {
    b"PK\x03\x04": "a workbook or a zip file",
    b"PAR1": "a Parquet file",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"%PDF": "a PDF",
    b"\x1f\x8b": "compressed with gzip",
    b"BZh": "compressed with bzip2",
    b"\xfd7zX": "compressed with xz",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"\xd0\xcf\x11\xe0": "an old workbook (.xls)",
}
# Exports that programs name .xls or .csv although they are HTML.
MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html|head|meta|table|\?xml)[\s>]", re.IGNORECASE)


@dataclass(frozen=True)
class Dialect:
    """What the caller says about a CSV; what is None is found out."""

    encoding: str | None = None
    delimiter: str | None = None
    likely_delimiter: str | None = None  # by the file's ending
    has_header: bool | None = None
    is_strict: bool = False  # refuse rows of a wrong length and bytes that are not in the encoding

    @property
    def delimiter_sign(self) -> str:
        """The delimiter that is given, also by its name; empty if none is."""
        return DELIMITER_NAMES.get(self.delimiter or "", self.delimiter or "")


def open_delimited(path: Path, name: str, given: Dialect) -> DelimitedFile:
    """Open a CSV or TSV file; what is not given is found out."""
    stamp = stamp_of(path)
    check_is_text(path, name)
    encoding = find_encoding(path, given.encoding)
    if needs_copy(encoding.name, given.delimiter_sign):
        encoding, copy = copy_as_utf8(path, name, encoding)
    else:
        copy = None
    try:
        opened = open_lines(copy or path, name, encoding, given)
    except BaseException:
        if copy is not None:
            copy.unlink()
        raise
    opened.is_temporary = copy is not None
    if copy is None:
        opened.watch(path, stamp)
    elif stamp_of(path) != stamp:
        copy.unlink()
        raise InputError(f"{name} changed while it was read; run again when nothing writes to it")
    return opened


def open_lines(path: Path, name: str, encoding: Encoding, given: Dialect) -> DelimitedFile:
    """Open a file in which bytes below 128 are ASCII."""
    scan = scan_bytes(path)
    if given.encoding is None and encoding.original is None and encoding.name == "utf-8" and not scan.is_utf8:
        encoding = guess_damaged(path, name, encoding, given, scan)
    start = len(encoding.bom) if encoding.original is None else 0
    head = read_head(path, name, encoding.name, start, given)
    columns = column_names(head, name, encoding.name)
    opened = DelimitedFile(
        path,
        name,
        columns,
        format_of(encoding, head, columns),
        data_start=start + head.size,
        is_strict=given.is_strict,
    )
    opened.first_line = 1 + head.lines
    if scan.has_escaped_quotes:
        opened.check_escapes()
    if scan.quotes % 2 == 1:  # quick to count; a lone quote within a cell is not an error
        opened.check_quotes()
    if head.title_lines:
        opened.remarks.append(
            f"the header is line {1 + count_lines(head.lead)}; the lines before it are a title, which is not part of "
            "the table (--header: line 1 is the header)"
        )
    opened.remark_on(encoding, given, scan)
    return opened


def guess_damaged(path: Path, name: str, encoding: Encoding, given: Dialect, scan: ByteScan) -> Encoding:
    """The encoding of a file that is not UTF-8 throughout, although nothing else is known of it."""
    assert scan.first_damaged is not None
    guessed = guess_encoding(sample_lines(path, scan.first_damaged))
    if needs_copy(guessed, given.delimiter_sign):
        raise InputError(f"{name} seems to be {guessed}; give --encoding {guessed} and its --delimiter")
    return replace(encoding, name=guessed, is_guessed=guessed != "utf-8")


def column_names(head: Head, name: str, encoding: str) -> list[str]:
    """The names in the header, or numbered ones if there is none."""
    cells = [decode_cell(unquote(cell), encoding) for cell in head.rows.row(0)]
    if not head.has_header:
        return [f"column_{i}" for i in range(1, len(cells) + 1)]
    if any("\0" in each for each in cells):
        raise InputError(f"{name} contains NUL characters in its first line: it is not a text table")
    if not any(cells):
        raise InputError(f"{name} has no header line")
    return cells


def format_of(encoding: Encoding, head: Head, columns: Sequence[str]) -> FileFormat:
    """What a writer needs to know to write a file like this one."""
    is_copy = encoding.original is not None
    if head.has_header:
        header, header_end = head.line, head.line_end
    else:
        header = head.delimiter.join(each.encode() for each in columns)
        header_end = (re.match(rb"\r?\n|\r|", head.line_end) or [b""])[0] or b"\n"
    return FileFormat(
        encoding=encoding.original or encoding.name,
        has_bom=bool(encoding.bom),
        delimiter=head.delimiter.decode(),
        has_header=head.has_header,
        text_encoding=encoding.name,
        original_encoding=encoding.original,
        original_bom=encoding.bom if is_copy else b"",
        lead=head.lead if is_copy else encoding.bom + head.lead,
        header=header,
        header_end=header_end,
        tail=encoding.tail,
    )


def check_is_text(path: Path, name: str) -> None:
    """Raise `InputError` for a file of another kind that is named as a CSV."""
    with path.open("rb") as file:
        start = file.read(256)
    for magic, kind in OTHER_KINDS.items():
        if start.startswith(magic):
            hint = "give a table, with the ending of its kind"
            if kind.startswith("compressed"):
                hint = "unpack it first, or give a file whose name ends as contacts.csv.gz does"
            raise InputError(f"{name} is not a text table but {kind}; {hint}")
    if MARKUP.match(start):
        raise InputError(
            f"{name} is not a text table but a web page; open it in a spreadsheet program and save it as CSV"
        )
    if is_json(path):
        raise InputError(f"{name} is not a text table but JSON; name it with the ending .jsonl")


# --- the first row ---------------------------------------------------------------------------------


def parse_delimiter(text: str) -> str:
    """One character, or its name: a tab is hard to type."""
    found = DELIMITER_NAMES.get(text, text)
    if len(found) != 1 or not found.isascii() or found in '"\r\n\0':
        raise InputError(f"delimiter {text!r}: give one character, or one of {', '.join(DELIMITER_NAMES)}")
    return found


def guess_delimiter(data: bytes, *, is_last: bool) -> str:
    """The delimiter with which most of the first rows have an address, and as many cells as the header."""
    return max(
        DELIMITERS, key=lambda each: delimiter_score(head_texts(data, each.encode(), "latin-1", is_last=is_last))
    )


def delimiter_score(rows: Sequence[Sequence[str]]) -> tuple[float, float, int]:
    table = rows[find_start(rows)[0] :]
    width = len(table[0]) if table else 1
    if width == 1:
        return 0.0, 0.0, 0
    addresses = sum(any(map(is_plain_address, row)) for row in table)
    return addresses / len(table), sum(len(row) == width for row in table) / len(table), width


def head_texts(data: bytes, delimiter: bytes, encoding: str, *, is_last: bool) -> list[list[str]]:
    """The cells of the first rows."""
    rows = split_rows(data[:SAMPLE], delimiter, is_last=is_last and len(data) <= SAMPLE).without_blank_lines()
    if len(rows) <= FEW_ROWS and len(data) > SAMPLE:
        rows = split_rows(data, delimiter, is_last=is_last).without_blank_lines()
    before = np.append(0, rows.last_cells + 1)[: len(rows)]  # cells before each row
    few = np.flatnonzero(before <= HEAD_CELLS)[:HEAD_ROWS]
    return [[decode_cell(unquote(cell[:HEAD_CELL]), encoding) for cell in rows.row(i, MAX_COLUMNS)] for i in few]


@dataclass(frozen=True)
class Head:
    """The first row of a table, and what is before it."""

    lead: bytes  # lines before the first row
    title_lines: int  # how many of them are a title
    rows: Rows  # from the first row on; blank lines belong to the row before them
    delimiter: bytes
    has_header: bool

    @property
    def line(self) -> bytes:
        """The first row without its line end."""
        return self.rows.data[self.rows.line_starts[0] : self.rows.ends[self.rows.last_cells[0]]]

    @property
    def line_end(self) -> bytes:
        """The line end of the first row, and the blank lines after it."""
        return self.rows.line_end(0)

    @property
    def size(self) -> int:
        """The bytes before the first row of data."""
        return len(self.lead) + (int(self.rows.line_starts[1]) if self.has_header else 0)

    @property
    def lines(self) -> int:
        """The lines before the first row of data."""
        return count_lines(self.lead) + (count_lines(self.line + self.line_end) if self.has_header else 0)


def read_head(path: Path, name: str, encoding: str, start: int, given: Dialect) -> Head:
    """Find the first row: after blank lines, a line such as ``sep=;``, and a title."""
    delimiter = None if given.delimiter is None else parse_delimiter(given.delimiter).encode()
    with path.open("rb") as file:
        file.seek(start)
        data = b""
        while True:
            block = file.read(SAMPLE if len(data) < SAMPLE else BLOCK)
            data += block
            lead, named = read_lead(data)
            body = data[len(lead) :]
            used = delimiter or named or find_delimiter(body, given.likely_delimiter, is_last=not block)
            rows = split_rows(body, used, is_last=not block)
            if len(rows.without_blank_lines()) > (1 if len(data) > SAMPLE else FEW_ROWS) or not block:
                break
            if len(data) > 2 * BLOCK and len(rows):
                break
            if len(data) > 2 * BLOCK:
                raise InputError(f"{name}: the first line is longer than {BLOCK:,} bytes, or a quote is not closed")
    if not len(rows):
        problem = "ends inside quotes: it is truncated, or a quote is not doubled" if body else "has no header line"
        raise InputError(f"{name} {problem}")
    at, has_header = find_start(head_texts(body, used, encoding, is_last=not block))
    if given.has_header is not None:
        at, has_header = 0, given.has_header
    title = b""
    if at:
        title = body[: int(rows.without_blank_lines().line_starts[at])]
        rows = split_rows(body[len(title) :], used, is_last=not block)
    if rows.counts()[0] > 1:
        rows = rows.without_blank_lines()
    head = Head(lead + title, count_lines(title), rows, used, has_header)
    where = f"{name}, line {1 + count_lines(head.lead)}"
    check_columns(where, int(rows.counts()[0]), WIDE)
    if has_header and len(head.line) > LONGEST_HEADER:
        raise InputError(
            f"{where}: the header has {len(head.line):,} bytes, and {LONGEST_HEADER:,} are read at most; is a quote in "
            "it not closed?"
        )
    return head


def read_lead(data: bytes) -> tuple[bytes, bytes | None]:
    """Blank lines at the beginning, with the line by which Excel is given the delimiter, and that delimiter."""
    match = re.match(rb'[\r\n]*(?:"?sep=([^"\r\n])"?(?:[\r\n]+|\Z))?', data, re.IGNORECASE)
    return (b"", None) if match is None else (match[0], match[1])


def find_delimiter(data: bytes, likely: str | None, *, is_last: bool) -> bytes:
    """The likely one if it is in the first row, otherwise the one that fits best."""
    if likely is not None:
        rows = head_texts(data, likely.encode(), "latin-1", is_last=is_last)
        if delimiter_score(rows)[2]:
            return likely.encode()
    return guess_delimiter(data, is_last=is_last).encode()


def count_lines(data: bytes, end: int | None = None) -> int:
    """How many line ends are in the bytes before `end`."""
    octets = np.frombuffer(data, np.uint8)[:end]
    parts = (octets[at : at + SAMPLE] for at in range(0, len(octets), SAMPLE))  # in the processor's cache
    feeds = sum(int(np.count_nonzero(part == LF)) for part in parts)
    return feeds + (data.count(b"\r", 0, end) - data.count(b"\r\n", 0, end) if b"\r" in data else 0)


# --- all rows --------------------------------------------------------------------------------------


class DelimitedFile(TableFile):
    """The rows of a CSV or TSV file, every cell as text."""

    def __init__(
        self,
        path: Path,
        name: str,
        columns: Sequence[str],
        file_format: FileFormat,
        *,
        data_start: int,  # bytes before the first row
        is_strict: bool,
    ) -> None:
        super().__init__(path, name, columns, file_format)
        self.data_start, self.is_strict = data_start, is_strict
        self.delimiter = file_format.delimiter.encode()
        self.first_line = 1  # number of the line at `data_start`
        self.added_cells = 0  # to rows with too few
        self.ragged_lines: list[int] = []  # of rows with too many or too few cells
        fields = [pa.field(each, pa.string(), metadata=CELL_MARK) for each in self.columns]
        self.schema = pa.schema(fields)

    def read(self, only: Collection[str] | None = None, *, with_lines: bool = False) -> Iterator[pa.Table]:
        """Yield the rows; empty cells are empty text, so that nothing is reinterpreted."""
        self.ragged_lines = []
        for rows in self.blocks():
            yield self.to_table(rows, only, with_lines=with_lines)

    def check_rows(self) -> None:
        for _ in self.blocks():
            pass

    def blocks(self) -> Iterator[Rows]:
        """Yield the rows block by block, all with as many cells as there are columns."""
        self.added_cells = 0
        line, start, left = self.first_line, self.data_start, 0
        with self.path.open("rb") as file:
            is_last = False
            while not is_last:
                file.seek(start)  # what is left of the block before is read again
                data = file.read(left + BLOCK)
                is_last = len(data) < left + BLOCK
                rows = self.complete_rows(data, is_last=is_last)
                self.check_sizes(rows, line)
                used = int(rows.line_starts[-1])
                start, left = start + used, len(data) - used
                if is_last and left:
                    raise InputError(f"{self.name}{self.open_quote(line, data, used)}")
                if len(rows):
                    yield from self.aligned(rows, line)
                elif left > BLOCK:
                    self.refuse_length(line, "row", LONGEST_LINE)
                line += count_lines(data, used)

    def complete_rows(self, data: bytes, *, is_last: bool) -> Rows:
        """The complete rows at the beginning of a block, with the blank lines after them."""
        rows = split_rows(data, self.delimiter, is_last=is_last)
        if len(self.columns) == 1:  # a blank line is an empty cell
            return rows
        rows = rows.without_blank_lines()
        used = int(rows.line_starts[-1])
        may_go_on = not is_last and data[used : used + 1] in (b"", b"\n", b"\r")  # a blank line in the next block
        return rows.without_last() if may_go_on and len(data) <= 2 * BLOCK else rows

    def open_quote(self, line: int, data: bytes, used: int) -> str:
        return (
            f" ends inside quotes: it is truncated, or a quote is not doubled; "
            f"the row begins in line {line + count_lines(data, used)}"
        )

    def check_quotes(self) -> None:
        """Raise `InputError` if a quote is open at the end, before anything is spent."""
        rest = b""
        line = self.first_line
        with self.path.open("rb") as file:
            file.seek(self.data_start)
            while block := file.read(BLOCK):
                data = rest + block
                rows = split_rows(data, self.delimiter, is_last=False)
                self.check_sizes(rows, line)
                used = int(rows.line_starts[-1])
                if not used and len(data) > BLOCK:
                    return  # reading the rows raises the error
                rest = data[used:]
                line += count_lines(data, used)
        used = int(split_rows(rest, self.delimiter, is_last=True).line_starts[-1])
        if used < len(rest):
            raise InputError(f"{self.name}{self.open_quote(line, rest, used)}")

    def check_escapes(self) -> None:
        """Raise `InputError` where a backslash escapes a quote within a quoted cell, as some databases write them.

        Read as CSV, the quote would end its cell, and the cells after it would move to other columns.
        """
        sign = re.escape(self.delimiter)
        escaped = re.compile(rb"(?:\A|(?<=[\r\n" + sign + rb']))"(?:[^"\\]|\\[^"])*+\\"[^"\r\n' + sign + rb"]")
        with self.path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if match := escaped.search(data):
                line = 1 + count_lines(data[: match.end()])
                raise InputError(
                    f"{self.name}, line {line}: a quote within a cell is escaped with a backslash, which CSV does not "
                    'have: export the table with doubled quotes (""), or convert it, as with '
                    "pandas.read_csv(path, escapechar='\\', dtype=str, keep_default_na=False).to_csv(new, index=False)"
                )

    def check_sizes(self, rows: Rows, line: int) -> None:
        """Raise `InputError` for a row with too many cells or bytes, or a cell with too many; `line` is the first."""
        counts, sizes = rows.counts(), rows.ends[rows.last_cells] - rows.line_starts[:-1]
        for at in np.flatnonzero((counts > MAX_COLUMNS) | (sizes > LONGEST_CELL)):
            number = line + count_lines(rows.data, int(rows.line_starts[at]))
            check_columns(f"{self.name}, line {number}", int(counts[at]), WIDE)
            if sizes[at] > LONGEST_LINE:
                self.refuse_length(number, "row", LONGEST_LINE)
            if max(map(len, rows.row(int(at)))) > LONGEST_CELL:
                self.refuse_length(number, "cell", LONGEST_CELL)

    def refuse_length(self, line: int, what: str, longest: int) -> NoReturn:
        raise InputError(
            f"{self.name}, line {line}: a {what} is longer than {longest:,} bytes, or a quote is not closed; correct "
            "the quotes, or shorten the text"
        )

    def aligned(self, rows: Rows, line: int) -> Iterator[Rows]:
        """Give each row as many cells as there are columns; rows that become far larger come in several parts."""
        columns = len(self.columns)
        missing = columns - rows.counts()
        ragged = np.flatnonzero(missing)
        if not len(ragged):
            yield rows
            return
        self.added_cells += int(missing[missing > 0].sum())
        check_added(f"{self.name}, lines from {line} on", self.added_cells, self.path.stat().st_size)
        parts: list[bytes] = []
        at = counted = cells_of_part = 0
        for i in map(int, ragged):
            start, end = int(rows.line_starts[i]), int(rows.line_starts[i + 1])
            line += count_lines(rows.data[counted:start])
            counted = start
            cells = rows.row(i)
            self.note_ragged(line, len(cells))
            row = align(cells, columns, self.delimiter, self.address_at)
            parts += [rows.data[at:start], self.delimiter.join(row), rows.line_end(i)]
            at = end
            cells_of_part += columns
            if cells_of_part > PIECE_CELLS:
                yield self.split_aligned(parts)
                parts, cells_of_part = [], 0
        parts.append(rows.data[at : int(rows.line_starts[-1])])
        yield self.split_aligned(parts)

    def split_aligned(self, parts: Sequence[bytes]) -> Rows:
        rows = split_rows(b"".join(parts), self.delimiter, is_last=True)
        return rows if len(self.columns) == 1 else rows.without_blank_lines()

    def note_ragged(self, line: int, cells: int) -> None:
        if self.is_strict:
            found = count_of(cells, "cell")
            raise InputError(f"{self.name}, line {line}: {found} where the header has {len(self.columns)}")
        self.ragged_lines.append(line)

    def to_table(self, rows: Rows, only: Collection[str] | None, *, with_lines: bool) -> pa.Table:
        """The columns as text; those that are not needed are null, and cost nothing."""
        size, count = len(rows), len(self.columns)
        unused = pa.nulls(size)
        arrays: list[Any] = []
        fields: list[pa.Field] = []
        for at, field in enumerate(self.schema):
            is_used = only is None or field.name in only
            arrays.append(to_text(rows.values(at, count), self.format.text_encoding) if is_used else unused)
            fields.append(field if is_used else field.with_type(pa.null()))
        if with_lines:
            arrays.append(rows.lines())
            fields.append(pa.field(LINE, pa.large_binary(), metadata=CELL_MARK))
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))

    def empty_piece(self, only: Collection[str] | None = None, *, with_lines: bool = False) -> pa.Table:
        rows = split_rows(b"", self.delimiter, is_last=True)
        return self.to_table(rows, only, with_lines=with_lines)

    def remark_on(self, encoding: Encoding, given: Dialect, scan: ByteScan) -> None:
        """Note for the user what was guessed; with `is_strict`, refuse rows and bytes that do not fit."""
        if encoding.is_guessed:
            self.remarks.append(f"encoding: {self.format.encoding} (guessed; give another with --encoding)")
        if not self.format.has_header:
            self.remarks.append(
                f"no header line: the columns are column_1 to column_{len(self.columns)}"
                if len(self.columns) > 1
                else "no header line: the column is column_1"
            )
        is_clean = scan.is_ascii or (self.format.text_encoding == "utf-8" and scan.is_utf8)
        if encoding.original is None and not is_clean:
            self.remark_on_bytes(given)
        if encoding.tail:
            self.remarks.append(f"{count_of(len(encoding.tail), 'byte')} at the end: less than a character, kept")
        if self.is_strict:
            self.check_rows()

    def remark_on_bytes(self, given: Dialect) -> None:
        """Count the lines with bytes that are not in the encoding."""
        encoding = str(self.format.text_encoding)
        number, bad = 0, []
        with self.path.open("rb") as file:
            for line in file:
                number += 1
                if not line.isascii() and not decodes(line, encoding):
                    bad.append(number)
        if not bad:
            return
        if self.is_strict:
            hint = "give another --encoding" if given.encoding else "give its encoding, as in --encoding cp1252"
            raise InputError(f"{self.name}, line {bad[0]}: a byte is not {encoding}; {hint}")
        lines = count_of(len(bad), "line")
        self.remarks.append(f"{lines} with bytes that are not {encoding}, kept: {listed_lines(bad)}")

    def final_remarks(self) -> list[str]:
        """What is known only after all rows were read."""
        if not self.ragged_lines:
            return []
        rows = count_of(len(self.ragged_lines), "row")
        return [f"{rows} with too many or too few cells, kept and aligned: {listed_lines(self.ragged_lines)}"]


def listed_lines(numbers: Sequence[int]) -> str:
    return f"line{'s' if len(numbers) > 1 else ''} {first_of(list(map(str, numbers)), MAX_LISTED_LINES)}"


def to_text(cells: pa.BinaryArray, encoding: str | None) -> pa.StringArray:
    """Decode the cells of a column."""
    used = encoding or "utf-8"
    offsets = np.frombuffer(cells.buffers()[1], np.int32)
    data = memoryview(cells.buffers()[2] or b"")[offsets[cells.offset] : offsets[cells.offset + len(cells)]]
    if used == "utf-8" or bytes(data).isascii():
        try:
            return cells.cast(pa.string())
        except pa.ArrowInvalid:
            pass
    return pa.array([decode_cell(cell, used) for cell in cells.to_pylist()], pa.string())
