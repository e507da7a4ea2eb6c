r"""CSV and TSV files: find out delimiter and header, then read the rows as they are.

    b"sep=;\nPeople of 2026\nid;email\n1;ada@x.org\n"

    lead      "sep=;" and the title           `read_lead`, `find_start`
    header    id, email                       `read_head`
    rows      from "1;ada@x.org" on           `DelimitedFile.parts`

`open_delimited` does the first part. `DelimitedFile` splits the file into rows (`lines`), aligns
those that have too many or too few cells, and decodes the cells of the columns that are needed.
With `with_lines` each piece also carries its rows as they are in the file, which the CSV writer
copies. Files in UTF-16 and the like, and those with a delimiter that is not ASCII, are read from a
copy in UTF-8, which `encodings` makes.
"""

from __future__ import annotations

import csv
import io
import mmap
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import ClassVar, NoReturn

import numpy as np
import pyarrow as pa

from ..errors import InputError
from ..model.words import count_of, first_of
from ..repair.repair import repair_cell
from .encodings import (
    SAMPLE,
    ByteScan,
    Encoding,
    copy_as_utf8,
    decode_cell,
    delimiter_octet,
    find_encoding,
    guess_encoding,
    needs_copy,
    sample_lines,
    scan_bytes,
    swap,
)
from .header import HEAD_ROWS, column_names, find_start, has_address, is_plain_address
from .json_lines import is_json
from .letters import decodes
from .lines import (
    Rows,
    align,
    first_line_end,
    read_regular,
    split_cells,
    split_end,
    split_rows,
    unquote,
)
from .table_file import (
    CELL_MARK,
    LONGEST_CELL,
    LONGEST_HEADER,
    LONGEST_LINE,
    MAX_COLUMNS,
    FileFormat,
    ReadOptions,
    TableFile,
    check_added,
    check_columns,
    open_temporary,
)

Part = list[pa.Array]  # the cells of some columns, and last the rows as they are in the file
BLOCK = 1 << 20  # bytes split at once
PIECE_SIZE = LONGEST_LINE  # bytes of the rows of a piece: bounds memory
ONE_COLUMN = (0.0, 0.0, 0)  # the score of a delimiter that is not in the first row
MOST = 0.5  # share of the first rows that are most of them
FEW_ROWS = 5  # too few to find a title by: more bytes are read
# Of the first rows, which are decoded several times; a wide table needs fewer rows.
HEAD_CELLS = 60_000
HEAD_CELL = 1_000  # bytes of a cell of theirs that are looked at
MAX_LISTED_LINES = 5
WIDE = "give another --delimiter, or leave out columns"
DELIMITERS = ",;\t|"
# Tried where a file is one column with each of the others.
RARE_DELIMITERS = "^~¬¦§¤\x01\x14\x1e\x1f"
IN_ADDRESSES = "^~"  # those of them that an address may have
DELIMITER_NAMES = {
    "tab": "\t",
    "\\t": "\t",
    "comma": ",",
    "semicolon": ";",
    "pipe": "|",
    "space": " ",
}
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
    b"\xd0\xcf\x11\xe0": "a workbook (.xls)",
}
# Exports that programs name .csv, or .xls and .xlsx, although they are HTML.
MARKUP = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html|head|meta|table|\?xml)[\s>]", re.IGNORECASE
)

LEAD = re.compile(rb'[\r\n]*(?:"?sep=([^"\r\n\x80-\xff])"?(?:[\r\n]+|\Z))?', re.IGNORECASE)


def open_delimited(path: Path, name: str, given: ReadOptions) -> DelimitedFile:
    """Open a CSV or TSV file; what is not given is found out."""
    check_is_text(path, name)
    if given.delimiter is not None:
        delimiter = parse_delimiter(given.delimiter)
        return open_with(path, name, replace(given, delimiter=delimiter))
    opened = open_with(path, name, given)
    rare = None
    if len(opened.columns) == 1:
        rare = find_rare_delimiter(opened)
    if rare is None:
        return opened
    with opened:  # which may be a copy
        return open_with(path, name, replace(given, delimiter=rare))


def open_with(path: Path, name: str, given: ReadOptions) -> DelimitedFile:
    """Open a file with the given delimiter, or the usual one that is found out."""
    delimiter = given.delimiter or ""
    stamp = stamp_of(path)
    encoding = find_encoding(path, name, given.encoding)
    scan = None
    if not needs_copy(encoding.name, ""):
        scan = scan_bytes(path)
        if given.encoding is None and scan.first_damaged is not None:
            sample = sample_lines(path, scan.first_damaged)
            encoding = guess_encoding(sample, delimiter)
    if scan is not None and not needs_copy(encoding.name, delimiter):
        opened = open_lines(path, name, encoding, given, scan)
        opened.stamp = stamp
        return opened
    encoding, copy = copy_as_utf8(path, name, encoding, delimiter)
    return open_temporary(
        copy, lambda copy: open_lines(copy, name, encoding, given, scan_bytes(copy))
    )


def open_lines(
    path: Path, name: str, encoding: Encoding, given: ReadOptions, scan: ByteScan
) -> DelimitedFile:
    """Open a file in which bytes below 128 are ASCII."""
    head = read_head(path, name, encoding, given)
    opened = DelimitedFile(path, name, encoding, head, given)
    if scan.has_escaped_quotes:
        opened.check_escapes()
    is_clean = scan.is_ascii or (encoding.name == "utf-8" and scan.is_utf8)
    opened.remark_on(encoding, head, is_clean=is_clean)
    if given.is_strict:
        opened.check_rows()
    return opened


def read_names(head: Head, name: str, encoding: str) -> list[str]:
    """The names of the columns; `InputError` for a line that cannot be a header."""
    decoded = decode_cells(head.cells, encoding)
    cells = [swap(cell, head.delimiter) for cell in decoded]
    if head.has_header and any("\0" in cell for cell in cells):
        raise InputError(
            f"{name} contains NUL characters in its first line: it is not a text table"
        )
    if head.has_header and not any(cells):
        raise InputError(f"{name} has no header line")
    return column_names(cells, has_header=head.has_header)


def format_of(encoding: Encoding, head: Head, columns: Sequence[str]) -> FileFormat:
    """What a writer needs to know to write a file like this one."""
    before = head.before_data
    if not head.has_header:
        before += delimiter_octet(head.delimiter).join(column.encode() for column in columns)
        before += first_line_end(head.line_end) or b"\n"
    return FileFormat(
        encoding=encoding.original or encoding.name,
        text_encoding=encoding.name,
        delimiter=head.delimiter,
        head=encoding.bom + before,
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
            f"{name} is not a text table but a web page; open it in a spreadsheet program and save "
            "it as CSV"
        )
    if is_json(path):
        raise InputError(f"{name} is not a text table but JSON; name it with the ending .jsonl")


# --- the first row ----------------------------------------------------------------------


def parse_delimiter(text: str) -> str:
    """One character, or its name: a tab is hard to type."""
    delimiter = DELIMITER_NAMES.get(text, text)
    if len(delimiter) != 1 or delimiter in '"\r\n\0':
        raise InputError(
            f"delimiter {text!r}: give one character, or one of {', '.join(DELIMITER_NAMES)}"
        )
    return delimiter


def guess_delimiter(data: bytes, likely: str = "", *, is_last: bool) -> str:
    """The delimiter by which most first rows have an address, and as many cells as the header.

    A likely one is taken if it is in the first row. A single line with several addresses, as the To
    field of a mail that was pasted, is one cell, and so is each line where the header is one cell
    and most rows have more.
    """
    line = data.strip()
    is_one = is_last and len(line) <= LONGEST_HEADER and len(line.splitlines()) == 1
    if is_one:
        repaired = repair_cell(line.decode("latin-1"))
        if len(repaired.addresses) > 1:
            return "\t"

    def texts(delimiter: str) -> list[list[str]]:
        return head_texts(data, delimiter.encode(), "latin-1", is_last=is_last)

    def score(delimiter: str) -> tuple[float, float, int]:
        return delimiter_score(texts(delimiter))

    delimiter = likely
    if not likely or score(likely) == ONE_COLUMN:
        delimiter = max(DELIMITERS, key=score)
    rows = texts(delimiter)
    longer = sum(len(row) > 1 for row in rows)
    if longer > MOST * len(rows) and delimiter_score(rows) == ONE_COLUMN:
        return "\t"
    return delimiter


def find_rare_delimiter(opened: DelimitedFile) -> str | None:
    """The rare delimiter by which most first rows have an address and the cells of the header."""
    encoding = "latin-1"
    if opened.format.text_encoding == "utf-8":
        encoding = "utf-8"
    with opened.path.open(encoding=encoding, errors="replace", newline="") as file:
        text = file.read(SAMPLE)
    for delimiter in RARE_DELIMITERS:
        if delimiter not in text:
            continue
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        rows = [row for row in islice(lines, HEAD_ROWS) if row]
        start, has_header = find_start(rows)
        width = len(rows[start])
        if width == 1 or len(rows) == 1:
            continue
        if not has_header:
            is_filled = all(row[0].strip() for row in rows)
            if delimiter in IN_ADDRESSES or not is_filled:
                continue
        body = rows[start + has_header :]
        fitting = sum(len(row) == width and has_address(row) for row in body)
        if fitting >= max(1, MOST * len(body)):
            return delimiter
    return None


def delimiter_score(rows: Sequence[Sequence[str]]) -> tuple[float, float, int]:
    """The share of rows with an address, that of rows as long as the first, and its length."""
    start, _ = find_start(rows)
    table = rows[start:]
    if not table or len(table[0]) == 1:
        return ONE_COLUMN
    width = len(table[0])
    with_address = sum(any(map(is_plain_address, row)) for row in table)
    fitting = sum(len(row) == width for row in table)
    return with_address / len(table), fitting / len(table), width


def head_texts(data: bytes, delimiter: bytes, encoding: str, *, is_last: bool) -> list[list[str]]:
    """The cells of the first rows."""
    is_whole = len(data) <= SAMPLE
    rows = split_rows(data[:SAMPLE], delimiter, is_last=is_last and is_whole).cells
    if len(rows) <= FEW_ROWS and not is_whole:
        rows = split_rows(data, delimiter, is_last=is_last).cells
    texts = []
    cells = 0
    for row in rows[:HEAD_ROWS]:
        if cells > HEAD_CELLS:
            break
        cells += len(row)
        starts = [cell[:HEAD_CELL] for cell in row[:MAX_COLUMNS]]
        texts.append(decode_cells(starts, encoding))
    return texts


@dataclass(frozen=True)
class Head:
    """The first row of a table, and what is before it."""

    lead: bytes  # lines before the first row
    title_lines: int  # how many of them are a title
    cells: list[str]  # of the first row, a character for each octet
    line: bytes  # the first row without its line end
    line_end: bytes  # its line end, and the blank lines after it
    delimiter: str
    has_header: bool

    @property
    def before_data(self) -> bytes:
        """What is before the first row of data."""
        if not self.has_header:
            return self.lead
        return self.lead + self.line + self.line_end


def read_head(path: Path, name: str, encoding: Encoding, given: ReadOptions) -> Head:
    """Find the first row: after blank lines, a line such as ``sep=;``, and a title."""
    # Octets that are read, and of how many rows more are enough.
    sizes = ((SAMPLE, FEW_ROWS), (BLOCK, 1), (2 * LONGEST_LINE, 0))
    with path.open("rb") as file:
        for size, enough in sizes:
            file.seek(len(encoding.bom))
            data = file.read(size)
            is_last = len(data) < size
            lead, named = read_lead(data)
            body = data[len(lead) :]
            delimiter = given.delimiter or named
            if not delimiter:
                delimiter = guess_delimiter(body, given.likely_delimiter, is_last=is_last)
            octet = delimiter_octet(delimiter)
            rows = split_rows(body, octet, is_last=is_last)
            if is_last or len(rows.cells) > enough:
                break
        else:
            raise InputError(
                f"{name}: the first line is longer than {LONGEST_LINE:,} bytes, or a quote is not "
                "closed"
            )
    if not rows.cells:
        problem = "has no header line"
        if body:
            problem = "ends inside quotes: it is truncated, or a quote is not doubled"
        raise InputError(f"{name} {problem}")
    first = 0
    has_header = given.has_header
    if has_header is None:
        first, has_header = find_start(head_texts(body, octet, encoding.name, is_last=is_last))
    title = body[: rows.starts[first]]
    cells = rows.cells[first]
    line, line_end = split_end(rows.octets(first))
    if len(cells) == 1:  # a blank line is a row then
        line_end = first_line_end(line_end)
    head = Head(
        lead=lead + title,
        title_lines=count_lines(title),
        cells=cells,
        line=line,
        line_end=line_end,
        delimiter=delimiter,
        has_header=has_header,
    )
    where = f"{name}, line {1 + count_lines(head.lead)}"
    check_columns(where, len(cells), WIDE)
    if has_header and len(line) > LONGEST_HEADER:
        raise InputError(
            f"{where}: the header has {len(line):,} bytes, and {LONGEST_HEADER:,} are read at "
            "most; is a quote in it not closed?"
        )
    return head


def read_lead(data: bytes) -> tuple[bytes, str]:
    """Blank lines at the beginning with the line that tells Excel the delimiter, and that."""
    match = LEAD.match(data)
    if match is None:
        return b"", ""
    delimiter = match[1] or b""
    return match[0], delimiter.decode()


def count_lines(data: bytes) -> int:
    """How many line ends are in some bytes."""
    return data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")


# --- all rows ---------------------------------------------------------------------------


class DelimitedFile(TableFile):
    """The rows of a CSV or TSV file, every cell as text."""

    copied_to: ClassVar = "csv"

    def __init__(
        self, path: Path, name: str, encoding: Encoding, head: Head, given: ReadOptions
    ) -> None:
        columns = read_names(head, name, encoding.name)
        fields = [pa.field(column, pa.string(), metadata=CELL_MARK) for column in columns]
        file_format = format_of(encoding, head, columns)
        super().__init__(path, name, pa.schema(fields), file_format)
        before = head.before_data
        self.has_header = head.has_header
        self.given = given
        self.delimiter = delimiter_octet(head.delimiter)
        self.data_start = len(encoding.bom) + len(before)  # bytes before the first row
        self.first_line = 1 + count_lines(before)  # number of the line there
        self.stamp: tuple[int, ...] | None = None  # of a file that may change while it is read
        self.added_cells = 0  # to rows with too few
        self.ragged_lines: list[int] = []  # of rows with too many or too few cells

    def read(
        self, only: Collection[str] | None = None, *, with_lines: bool = False
    ) -> Iterator[pa.Table]:
        """Yield the rows; empty cells are empty text, so that nothing is reinterpreted."""
        used = self.positions(only)
        parts: list[Part] = []
        size = 0
        for part in self.parts(used):
            if parts and size + part[-1].nbytes > PIECE_SIZE:
                yield self.to_table(parts, used, with_lines=with_lines)
                parts = []
                size = 0
            parts.append(part)
            size += part[-1].nbytes
        if parts:
            yield self.to_table(parts, used, with_lines=with_lines)
        self.check_unchanged()

    def check_unchanged(self) -> None:
        if self.stamp not in (None, stamp_of(self.path)):
            raise InputError(
                f"{self.name} changed while it was read; run again when nothing writes to it"
            )

    def check_rows(self) -> None:
        """Raise `InputError` now for rows that would end the reading later."""
        for _ in self.parts([]):
            pass

    def parts(self, used: Sequence[int]) -> Iterator[Part]:
        """Yield the cells of the used columns, and last the rows as they are in the file."""
        self.ragged_lines = []
        self.added_cells = 0
        columns = len(self.columns)
        line = self.first_line
        rest = b""
        is_last = False
        with self.path.open("rb") as file:
            file.seek(self.data_start)
            while not is_last:
                self.check_unchanged()
                wanted = max(BLOCK, len(rest))  # a long row is not split anew for each block
                block = file.read(wanted)
                data = rest + block
                regular = None
                if block:
                    regular = read_regular(data, self.delimiter, columns, used)
                if regular is not None:
                    part, size = regular
                    yield part
                    line += data.count(b"\n", 0, size)
                    rest = data[size:]
                else:
                    is_last = len(block) < wanted
                    rows = split_rows(
                        data, self.delimiter, is_last=is_last, keeps_blank=columns == 1
                    )
                    self.check_sizes(rows, line)
                    yield from self.aligned_parts(rows, line, used)
                    line += rows.lines[-1]
                    rest = rows.rest
                if is_last and rest:
                    raise InputError(
                        f"{self.name} ends inside quotes: it is truncated, or a quote is not "
                        f"doubled; the row begins in line {line}"
                    )
                if len(rest) > LONGEST_LINE:
                    self.refuse_length(line, "row", LONGEST_LINE)

    def check_sizes(self, rows: Rows, line: int) -> None:
        """Raise `InputError` for a row or a cell with too many bytes; `line` is the first."""
        is_long = np.diff(rows.starts) > LONGEST_CELL
        for row in np.flatnonzero(is_long).tolist():
            cells = rows.cells[row]
            number = line + rows.lines[row]
            check_columns(f"{self.name}, line {number}", len(cells), WIDE)
            octets, _ = split_end(rows.octets(row))
            if len(octets) > LONGEST_LINE:
                self.refuse_length(number, "row", LONGEST_LINE)
            longest = max(map(len, cells))
            if longest > LONGEST_CELL:
                self.refuse_length(number, "cell", LONGEST_CELL)

    def refuse_length(self, line: int, what: str, longest: int) -> NoReturn:
        raise InputError(
            f"{self.name}, line {line}: a {what} is longer than {longest:,} bytes, or a quote is "
            "not closed; correct the quotes, or shorten the text"
        )

    def aligned_parts(self, rows: Rows, line: int, used: Sequence[int]) -> Iterator[Part]:
        """Give each row as many cells as there are columns.

        Rows that become far larger come in several parts.
        """
        columns = len(self.columns)
        lacking = [columns - len(row) for row in rows.cells if len(row) < columns]
        self.added_cells += sum(lacking)
        where = f"{self.name}, lines from {line} on"
        check_added(where, self.added_cells, self.path.stat().st_size)
        most = max(1, PIECE_SIZE // columns)
        for start in range(0, len(rows.cells), most):
            cells = rows.cells[start : start + most]
            numbers = range(start, start + len(cells))
            lines = list(map(rows.octets, numbers))
            for position, row in enumerate(cells):
                if len(row) == columns:
                    continue
                number = numbers[position]
                self.note_ragged(line + rows.lines[number], len(row))
                cells[position], lines[position] = self.aligned(lines[position])
            arrays = []
            for column in used:
                octets = [row[column].encode("latin-1") for row in cells]
                arrays.append(pa.array(octets, pa.binary()))
            arrays.append(pa.array(lines, pa.large_binary()))
            yield arrays

    def aligned(self, line: bytes) -> tuple[list[str], bytes]:
        """The cells of a row that had too many or too few, and the row with its line end."""
        row, line_end = split_end(line)
        split = split_cells(row, self.delimiter)
        cells = align(split, len(self.columns), self.delimiter, self.address_at)
        texts = [unquote(cell).decode("latin-1") for cell in cells]
        return texts, self.delimiter.join(cells) + line_end

    def note_ragged(self, line: int, cells: int) -> None:
        check_columns(f"{self.name}, line {line}", cells, WIDE)
        if self.given.is_strict:
            raise InputError(
                f"{self.name}, line {line}: {count_of(cells, 'cell')} where the header has "
                f"{len(self.columns)}"
            )
        self.ragged_lines.append(line)

    def to_table(self, parts: Sequence[Part], used: Sequence[int], *, with_lines: bool) -> pa.Table:
        pieces = zip(*parts, strict=True)
        *columns, lines = map(pa.concat_arrays, pieces)
        encoding = str(self.format.text_encoding)
        texts = {}
        for position, octets in zip(used, columns, strict=True):
            texts[position] = to_text(octets, encoding, self.format.delimiter)
        rows = len(lines)
        if not with_lines:
            lines = None
        return self.piece(texts, rows, lines)

    def check_escapes(self) -> None:
        """Raise `InputError` where a backslash escapes a quote in a quoted cell.

        Some databases write that. Read as CSV, the quote would end its cell, and the cells after it
        would move to other columns.
        """
        sign = re.escape(self.delimiter)
        escaped = re.compile(
            rb"(?:\A|(?<=[\r\n" + sign + rb']))"(?:[^"\\]|\\[^"])*+\\"[^"\r\n' + sign + rb"]"
        )
        with (
            self.path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            match = escaped.search(data)
            if match is None:
                return
            line = 1 + count_lines(data[: match.end()])
        raise InputError(
            f"{self.name}, line {line}: a quote within a cell is escaped with a backslash, which "
            'CSV does not have: export the table with doubled quotes (""), or convert it, as with '
            "pandas.read_csv(path, escapechar='\\', dtype=str, keep_default_na=False)"
            ".to_csv(new, index=False)"
        )

    def remark_on(self, encoding: Encoding, head: Head, *, is_clean: bool) -> None:
        """Note for the user what was guessed."""
        if head.title_lines:
            self.remarks.append(
                f"the header is line {1 + count_lines(head.lead)}; the lines before it are a "
                "title, which is not part of the table (--header: line 1 is the header)"
            )
        if encoding.why:
            self.remarks.append(
                f"encoding: {self.format.encoding}, {encoding.why}; give another with --encoding"
            )
        if not self.has_header:
            columns = "column is column_1"
            if len(self.columns) > 1:
                columns = f"columns are column_1 to column_{len(self.columns)}"
            self.remarks.append(f"no header line: the {columns}")
        if encoding.original is None and not is_clean:
            self.remark_on_bytes(encoding.name)

    def remark_on_bytes(self, encoding: str) -> None:
        """Count the lines with bytes that are not in the encoding."""
        bad = []
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.isascii() and not decodes(line, encoding):
                    bad.append(number)
        if not bad:
            return
        if self.given.is_strict:
            hint = "give its encoding, as in --encoding cp1252"
            if self.given.encoding:
                hint = "give another --encoding"
            raise InputError(f"{self.name}, line {bad[0]}: a byte is not {encoding}; {hint}")
        lines = count_of(len(bad), "line")
        self.remarks.append(
            f"{lines} with bytes that are not {encoding}, kept: {listed_lines(bad)}"
        )

    def final_remarks(self) -> list[str]:
        """What is known only after all rows were read."""
        if not self.ragged_lines:
            return []
        rows = count_of(len(self.ragged_lines), "row")
        lines = listed_lines(self.ragged_lines)
        return [f"{rows} with too many or too few cells, kept and aligned: {lines}"]


def stamp_of(path: Path) -> tuple[int, ...]:
    """What changes when a file is written to."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def listed_lines(numbers: Sequence[int]) -> str:
    shown = first_of(list(map(str, numbers)), MAX_LISTED_LINES)
    noun = "line" if len(numbers) == 1 else "lines"
    return f"{noun} {shown}"


def to_text(cells: pa.BinaryArray, encoding: str, delimiter: str) -> pa.StringArray:
    """Decode the cells of a column."""
    if encoding == "utf-8" and delimiter.isascii():
        with suppress(pa.ArrowInvalid):
            return cells.cast(pa.string())
    texts = []
    for cell in cells.to_pylist():
        text = decode_cell(cell, encoding)
        texts.append(swap(text, delimiter))
    return pa.array(texts, pa.string())


def decode_cells(cells: Sequence[str], encoding: str) -> list[str]:
    """The texts of cells that have a character for each octet."""
    return [decode_cell(cell.encode("latin-1"), encoding) for cell in cells]
