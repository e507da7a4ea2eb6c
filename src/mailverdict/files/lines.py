r"""Split the octets of a CSV into rows and cells, and keep the octets of each row for writing.

    b'1,"a, b"\r\n2,c\r\n3'  ->  rows [b"1", b"a, b"], [b"2", b"c"]; the rest b"3" may go on

`split_rows` reads any rows with Python's csv module, each octet as a character of Latin-1, which
loses nothing whatever the encoding is; `read_regular` reads those of most files with Arrow. Cells
are decoded later, where their text is needed. `align` gives a row with too many or too few cells
the right number.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from .header import is_plain_address
from .table_file import LONGEST_CELL

QUOTE = ord('"')
LF = ord("\n")
CR = ord("\r")
Octets = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Rows:
    """The complete rows at the beginning of some octets.

    Blank lines belong to the row before them.
    """

    data: bytes
    cells: list[list[str]]  # without their quotes, a character for each octet
    lines: list[int]  # how many lines are before each row, and before what follows the last one
    starts: list[int]  # where each row begins in `data`, and what follows the last one

    def octets(self, row: int) -> bytes:
        """A row as it is in the file, with its line end and the blank lines after it."""
        return self.data[self.starts[row] : self.starts[row + 1]]

    @property
    def rest(self) -> bytes:
        """What follows the last row."""
        return self.data[self.starts[-1] :]


def split_rows(data: bytes, delimiter: bytes, *, is_last: bool, keeps_blank: bool = False) -> Rows:
    """Split octets that begin with a row.

    Unless they are the last ones, the last row may go on, and is left out. A row with a quote that
    is not closed is left out, too. With `keeps_blank` a blank line is a row with an empty cell.
    """
    # The limit of the csv module holds for the whole process; ours is checked row by row.
    csv.field_size_limit(max(csv.field_size_limit(), len(data)))
    octets = np.frombuffer(data, np.uint8)
    is_lf = octets == LF
    is_lone_cr = (octets == CR) & ~np.roll(is_lf, -1)
    line_ends = np.flatnonzero(is_lf | is_lone_cr)
    offsets = np.append(0, line_ends + 1)
    if offsets[-1] < len(data):
        offsets = np.append(offsets, len(data))
    lines = io.TextIOWrapper(io.BytesIO(data), "latin-1", newline="")
    sign = delimiter.decode("latin-1")
    reader = csv.reader(chain(lines, ["\n"]), delimiter=sign)
    cells: list[list[str]] = []
    ends = [0]
    for row in reader:
        # The line that was added: blank, unless a quote is open before it.
        if reader.line_num == len(offsets):
            if cells and not row and not is_last:
                del cells[-1]
                del ends[-1]
            break
        if row or keeps_blank:
            cells.append(row or [""])
            ends.append(reader.line_num)
        else:
            ends[-1] = reader.line_num
    return Rows(data, cells, ends, offsets[ends].tolist())


def read_regular(
    data: bytes, delimiter: bytes, columns: int, used: Sequence[int]
) -> tuple[list[pa.Array], int] | None:
    """The cells of some columns, and last the rows, if all rows have a cell for each column.

    Arrow reads cells as the csv module does, at ten times its speed, but does not say where a row
    begins. That is known where each line is a row, and where each quote opens or closes a whole
    cell or is doubled; else the result is None. The last row is left out: it may go on after
    `data`. The second value is how many octets the others have.
    """
    octets = np.frombuffer(data, np.uint8, data.rfind(b"\n") + 1)
    ends = np.flatnonzero(octets == LF) + 1
    size = len(octets)
    if len(ends) < 2:
        return None
    if b"\r" in data and data.count(b"\r") > data.count(b"\r\n"):
        return None
    has_quotes = data.find(b'"', 0, size) >= 0
    delimiters = (columns - 1) * len(ends)
    if not has_quotes and data.count(delimiter, 0, size) != delimiters:
        return None  # a row of another length, of which Arrow would make an error
    table = read_cells(octets, delimiter, columns, used)
    if table is None:
        return None
    if len(table) != len(ends):  # line breaks within quotes, or blank lines
        row_ends = ends_outside_quotes(octets, ends, delimiter, len(table))
        if row_ends is None:
            return None
        ends = row_ends
    count = len(table) - 1
    starts = np.append(0, ends[:count])
    if not count or np.diff(starts).max() > LONGEST_CELL:
        return None
    part = []
    for column in used:
        cells = table[str(column)].combine_chunks()
        part.append(cells[:count])
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(data)]
    rows = pa.LargeBinaryArray.from_buffers(pa.large_binary(), count, buffers)
    part.append(rows)
    return part, int(starts[-1])


def read_cells(
    octets: Octets, delimiter: bytes, columns: int, used: Sequence[int]
) -> pa.Table | None:
    """The cells of some columns as octets, by Arrow; None for a row of another length.

    Each column is named by its position. Without a used one it is the first, which counts rows.
    """
    names = [str(column) for column in range(columns)]
    reading = pyarrow.csv.ReadOptions(use_threads=False, block_size=len(octets), column_names=names)
    parsing = pyarrow.csv.ParseOptions(
        delimiter=delimiter.decode("latin-1"),
        newlines_in_values=True,
        ignore_empty_lines=columns > 1,
    )
    conversion = pyarrow.csv.ConvertOptions(
        check_utf8=False,
        column_types=dict.fromkeys(names, pa.binary()),
        include_columns=[names[column] for column in used] or names[:1],
    )
    try:
        return pyarrow.csv.read_csv(pa.BufferReader(octets), reading, parsing, conversion)
    except pa.ArrowInvalid:
        return None


def ends_outside_quotes(octets: Octets, ends: Any, delimiter: bytes, rows: int) -> Any:
    """Those of the line ends that end a row; None where quotes do not tell."""
    quotes = np.flatnonzero(octets == QUOTE)
    before_opening = quotes[0::2] - 1
    after_closing = quotes[1::2] + 1
    neighbours = octets[np.append(before_opening, after_closing)]
    quotes_before = np.searchsorted(quotes, ends)
    row_ends = ends[quotes_before % 2 == 0]
    is_open = len(quotes) % 2
    if len(row_ends) + is_open != rows:
        return None
    if not np.isin(neighbours, [delimiter[0], QUOTE, CR, LF]).all():
        return None
    return row_ends


def split_cells(row: bytes, delimiter: bytes) -> list[bytes]:
    """The cells of one row as they are in the file; the row is without its line end.

    >>> split_cells(b'1,"a, b" c,', b",")
    [b'1', b'"a, b" c', b'']
    """
    sign = re.escape(delimiter)
    return re.findall(rb'(?:\A|%b)((?:"(?:[^"]++|"")*+")?+[^%b]*+)' % (sign, sign), row)


def split_end(line: bytes) -> tuple[bytes, bytes]:
    """A row without its line end, and that with the blank lines after it."""
    row = line.rstrip(b"\r\n")
    return row, line[len(row) :]


def first_line_end(data: bytes) -> bytes:
    """The line end with which some bytes begin; empty if they begin otherwise."""
    for line_end in (b"\r\n", b"\n", b"\r"):
        if data.startswith(line_end):
            return line_end
    return b""


def unquote(cell: bytes) -> bytes:
    """The text of a cell, as Python's csv module reads it."""
    if not cell.startswith(b'"'):
        return cell
    match = re.match(rb'"((?:[^"]+|"")*+)"', cell)
    if match is None:
        return cell[1:]
    return match[1].replace(b'""', b'"') + cell[match.end() :]


def align(
    cells: Sequence[bytes], columns: int, delimiter: bytes, address_at: int | None
) -> list[bytes]:
    """Give a row the number of cells that the header has; no text is lost.

    Empty cells are added or removed at the end, and what is too much is joined into the last
    column. But where exactly one cell that may belong to the column of addresses looks like an
    address, the row is aligned to it.

    >>> align([b"1", b"ada@x.org"], 3, b",", None)
    [b'1', b'ada@x.org', b'']
    >>> align([b"Lovelace", b" Ada", b"ada@x.org", b"hi"], 3, b",", 1)
    [b'"Lovelace, Ada"', b'ada@x.org', b'hi']
    >>> align([b"1", b"ada@x.org", b""], 2, b",", 1)
    [b'1', b'ada@x.org']
    """
    row = list(cells)
    excess = len(row) - columns
    if address_at is not None:
        shift = shift_of(row, address_at, excess)
        if shift < 0:
            place = address_at + shift
            row[place:place] = [b""] * -shift
        if shift > 0:
            place = place_of_parts(row[: address_at + shift], shift)
            end = place + shift + 1
            row[place:end] = [join_cells(row[place:end], delimiter)]
    if excess < 0:
        missing = columns - len(row)
        return row + [b""] * missing
    # A delimiter at the end of each row is common.
    while len(row) > columns and not unquote(row[-1]):
        row.pop()
    if len(row) > columns:
        row[columns - 1 :] = [join_cells(row[columns - 1 :], delimiter)]
    return row


def shift_of(row: Sequence[bytes], address_at: int, excess: int) -> int:
    """How far the address of a row is to the right of its column; to the left: below 0.

    0 if not exactly one of the cells that it can have been moved to, by so many cells too many or
    too few, looks like an address.
    """
    low = min(address_at, address_at + excess)
    high = max(address_at, address_at + excess)
    places = []
    for place in range(max(low, 0), min(high + 1, len(row))):
        text = unquote(row[place]).decode("latin-1")
        if is_plain_address(text):
            places.append(place)
    if len(places) != 1:
        return 0
    return places[0] - address_at


def place_of_parts(before: Sequence[bytes], shift: int) -> int:
    """Where the cells begin, of those before the address, that are parts of one text.

    A blank follows the delimiter where it is part of a name, as in "Lovelace, Ada". If not exactly
    one place has so many neighbours with a blank, it is the cells right before the address.
    """
    starts_blank = bytes(cell.startswith(b" ") for cell in before)
    parts = b"\1" * shift
    first = starts_blank.find(parts, 1)
    is_only = first > 0 and starts_blank.find(parts, first + 1) < 0
    if is_only:
        return first - 1
    return max(0, len(before) - shift - 1)


def join_cells(cells: Sequence[bytes], delimiter: bytes) -> bytes:
    """One quoted cell with the text of several."""
    text = delimiter.join(map(unquote, cells))
    return b'"' + text.replace(b'"', b'""') + b'"'
