"""Split the octets of a CSV into rows and cells, and keep the octets of each row, so that it can be written back.

`split_rows` reads any rows with Python's csv module, each octet as a character of Latin-1, which loses nothing whatever
the encoding is; `read_regular` reads those of most files with Arrow. Cells are decoded later, where their text is
needed. `align` gives a row with too many or too few cells the right number.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.csv

from .header import is_plain_address
from .table_file import LONGEST_CELL

QUOTE, LF, CR = ord('"'), ord("\n"), ord("\r")


@dataclass(frozen=True)
class Rows:
    """The complete rows at the beginning of some octets. Blank lines belong to the row before them."""

    data: bytes
    cells: list[list[str]]  # without their quotes, a character for each octet
    lines: list[int]  # how many lines are before each row, and before what follows the last one
    starts: list[int]  # where each row begins in `data`, and what follows the last one

    def octets(self, at: int) -> bytes:
        """A row as it is in the file, with its line end and the blank lines after it."""
        return self.data[self.starts[at] : self.starts[at + 1]]

    @property
    def rest(self) -> bytes:
        """What follows the last row."""
        return self.data[self.starts[-1] :]


def split_rows(data: bytes, delimiter: bytes, *, is_last: bool, keeps_blank: bool = False) -> Rows:
    """Split octets that begin with a row. Unless they are the last ones, the last row may go on, and is left out.

    A row with a quote that is not closed is left out, too. With `keeps_blank` a blank line is a row with an empty cell.
    """
    # That of the process; ours is checked row by row.
    csv.field_size_limit(max(csv.field_size_limit(), len(data)))
    octets = np.frombuffer(data, np.uint8)
    is_line_end = (octets == LF) | ((octets == CR) & (np.roll(octets, -1) != LF))
    offsets = np.append(0, np.flatnonzero(is_line_end) + 1)
    if offsets[-1] < len(data):
        offsets = np.append(offsets, len(data))
    lines = io.TextIOWrapper(io.BytesIO(data), "latin-1", newline="")
    cells: list[list[str]] = []
    ends = [0]
    reader = csv.reader(chain(lines, ["\n"]), delimiter=delimiter.decode("latin-1"))
    for row in reader:
        # The line that was added: blank, unless a quote is open before it.
        if reader.line_num == len(offsets):
            if cells and not row and not is_last:
                del cells[-1], ends[-1]
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
    """The cells of some columns, and last the rows, if all rows have as many cells as there are columns; else None.

    Arrow reads cells as the csv module does, at ten times its speed, but does not say where a row begins. That is known
    where each line is a row, and where each quote opens or closes a whole cell or is doubled. The last row is left out:
    it may go on after `data`. The second value is how many octets the others have.
    """
    octets = np.frombuffer(data, np.uint8, data.rfind(b"\n") + 1)
    ends = np.flatnonzero(octets == LF) + 1
    if len(ends) < 2 or (b"\r" in data and data.count(b"\r") > data.count(b"\r\n")):
        return None
    has_quotes = data.find(b'"', 0, len(octets)) >= 0
    if not has_quotes and data.count(delimiter, 0, len(octets)) != (columns - 1) * len(ends):
        return None  # a row of another length, of which Arrow would make an error
    names = list(map(str, range(columns)))
    wanted = [names[at] for at in used]
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(octets),
            pyarrow.csv.ReadOptions(use_threads=False, block_size=len(data), column_names=names),
            pyarrow.csv.ParseOptions(
                delimiter=delimiter.decode("latin-1"),
                newlines_in_values=True,
                ignore_empty_lines=columns > 1,
            ),
            pyarrow.csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(names, pa.binary()),
                include_columns=wanted or names[:1],
            ),
        )
    except pa.ArrowInvalid:  # a row of another length
        return None
    if len(table) != len(ends):  # line breaks within quotes, or blank lines
        quotes = np.flatnonzero(octets == QUOTE)
        # Before those that open, after those that close.
        beside = octets[np.append(quotes[0::2] - 1, quotes[1::2] + 1)]
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
        is_open = len(quotes) % 2
        if (
            len(ends) + is_open != len(table)
            or not np.isin(beside, [delimiter[0], QUOTE, CR, LF]).all()
        ):
            return None
    rows = len(table) - 1
    starts = np.append(0, ends[:rows])
    if not rows or np.diff(starts).max() > LONGEST_CELL:
        return None
    lines = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), rows, [None, pa.py_buffer(starts), pa.py_buffer(data)]
    )
    return [*(table[name].combine_chunks()[:rows] for name in wanted), lines], int(starts[-1])


def split_cells(line: bytes, delimiter: bytes) -> list[bytes]:
    """The cells of one row as they are in the file; the row is without its line end.

    >>> split_cells(b'1,"a, b" c,', b",")
    [b'1', b'"a, b" c', b'']
    """
    sign = re.escape(delimiter)
    return re.findall(rb'(?:\A|%b)((?:"(?:[^"]++|"")*+")?+[^%b]*+)' % (sign, sign), line)


def split_end(line: bytes) -> tuple[bytes, bytes]:
    """A row without its line end, and that with the blank lines after it."""
    row = line.rstrip(b"\r\n")
    return row, line[len(row) :]


def first_line_end(data: bytes) -> bytes:
    """The line end with which some bytes begin; empty if they begin otherwise."""
    return (re.match(rb"\r?\n|\r|", data) or [b""])[0]


def unquote(cell: bytes) -> bytes:
    """The text of a cell, as Python's csv module reads it."""
    if not cell.startswith(b'"'):
        return cell
    match = re.match(rb'"((?:[^"]+|"")*+)"', cell)
    return cell[1:] if match is None else match[1].replace(b'""', b'"') + cell[match.end() :]


def align(
    cells: Sequence[bytes], columns: int, delimiter: bytes, address_at: int | None
) -> list[bytes]:
    """Give a row the number of cells that the header has; no text is lost.

    Empty cells are added or removed at the end, and what is too much is joined into the last column. But where exactly
    one cell that may belong to the column of addresses looks like an address, the row is aligned to it.

    >>> align([b"1", b"ada@x.org"], 3, b",", None)
    [b'1', b'ada@x.org', b'']
    >>> align([b"Lovelace", b" Ada", b"ada@x.org", b"hi"], 3, b",", 1)
    [b'"Lovelace, Ada"', b'ada@x.org', b'hi']
    >>> align([b"1", b"ada@x.org", b""], 2, b",", 1)
    [b'1', b'ada@x.org']
    """
    row = list(cells)
    excess = len(row) - columns
    shift = 0 if address_at is None else shift_of(row, address_at, excess)
    if excess < 0:
        gap = max(0, -shift)
        if address_at is not None:
            row[address_at - gap : address_at - gap] = [b""] * gap
        return [*row, *[b""] * (columns - len(row))]
    if shift > 0 and address_at is not None:
        # Where the delimiter is part of a name, as in "Lovelace, Ada", a blank follows it.
        blanks = bytes(cell.startswith(b" ") for cell in row[: address_at + shift])
        # So many neighbours begin with a blank; the cell before them is a part.
        first = blanks.find(b"\1" * shift, 1)
        is_only = first > 0 and blanks.find(b"\1" * shift, first + 1) < 0
        place = first - 1 if is_only else max(0, address_at - 1)
        row[place : place + shift + 1] = [join_cells(row[place : place + shift + 1], delimiter)]
    # A delimiter at the end of each row is common.
    while len(row) > columns and not unquote(row[-1]):
        row.pop()
    if len(row) > columns:
        row[columns - 1 :] = [join_cells(row[columns - 1 :], delimiter)]
    return row


def shift_of(row: Sequence[bytes], address_at: int, excess: int) -> int:
    """How far to the right of its column the address of a row is, which cells too many or too few have moved.

    0 if not exactly one of the cells that it can have been moved to looks like an address.
    """
    low, high = sorted((address_at, address_at + excess))
    places = range(max(low, 0), min(high + 1, len(row)))
    likely = [at for at in places if is_plain_address(unquote(row[at]).decode("latin-1"))]
    return likely[0] - address_at if len(likely) == 1 else 0


def join_cells(cells: Sequence[bytes], delimiter: bytes) -> bytes:
    """One quoted cell with the text of several."""
    return b'"' + delimiter.join(map(unquote, cells)).replace(b'"', b'""') + b'"'
