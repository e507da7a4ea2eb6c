"""Split the bytes of a CSV into rows and cells without decoding them, so that cells can be written back unchanged.

`split_rows` finds every cell in a block of bytes with NumPy; where quotes are not as RFC 4180 has them, `split_slowly`
reads them as Python's csv module does. `align` gives a row with too many or too few cells the right number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...checks.syntax.kernels import to_bools
from ..text_column import replace_texts
from .table_file import MAX_COLUMNS

Index = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]  # in a block, which is shorter than 2 GiB
Mask = npt.NDArray[np.bool_]
QUOTE, LF, CR = ord('"'), ord("\n"), ord("\r")
PART = 256 << 10  # bytes looked at once
SLOW_PART = 64 << 10  # bytes split at once where quotes are irregular: the rest of the block is split fast
ONE_ADDRESS = re.compile(rb"\s*[^\s@]+@[^\s@]+\.[^\s.@]+\s*|[^<]*<[^\s<>@]+@[^\s<>@]+>\s*")


@dataclass(frozen=True)
class Rows:
    """Rows of a block and where their cells are; all rows have the same number of cells once they are aligned."""

    data: bytes
    starts: Places  # of each cell
    ends: Places  # of each cell, before the delimiter or line end
    last_cells: Index  # for each row the position of its last cell
    line_starts: Index  # of each row, and the end of the last one
    has_regular_quotes: bool

    def __len__(self) -> int:
        return len(self.last_cells)

    @cached_property
    def has_quotes(self) -> bool:
        return b'"' in self.data

    def counts(self) -> Index:
        """The number of cells in each row."""
        return np.diff(self.last_cells, prepend=-1)

    def without_blank_lines(self) -> Rows:
        """The rows without blank lines, whose bytes then belong to the row before."""
        counts = self.counts()
        is_blank = (counts == 1) & (self.starts[self.last_cells] == self.ends[self.last_cells])
        if not is_blank.any():
            return self
        kept_cells = np.ones(len(self.starts), np.bool_)
        kept_cells[self.last_cells[is_blank]] = False
        kept = ~is_blank
        line_starts = np.append(self.line_starts[:-1][kept], self.line_starts[-1])
        return Rows(
            self.data,
            self.starts[kept_cells],
            self.ends[kept_cells],
            np.cumsum(counts[kept]) - 1,
            line_starts,
            self.has_regular_quotes,
        )

    def without_last(self) -> Rows:
        """All rows but the last one."""
        kept = slice(0, int(self.last_cells[-2]) + 1 if len(self) > 1 else 0)
        return Rows(
            self.data,
            self.starts[kept],
            self.ends[kept],
            self.last_cells[:-1],
            self.line_starts[:-1] if len(self) else self.line_starts,
            self.has_regular_quotes,
        )

    def row(self, at: int, most: int | None = None) -> list[bytes]:
        """The cells of one row as they are in the file, or so many of them at most."""
        first = 0 if at == 0 else int(self.last_cells[at - 1]) + 1
        spans = range(first, int(self.last_cells[at]) + 1)[:most]
        return [self.data[self.starts[i] : self.ends[i]] for i in spans]

    def line_end(self, at: int) -> bytes:
        """What follows the last cell of a row: its line end, and blank lines."""
        return self.data[self.ends[self.last_cells[at]] : self.line_starts[at + 1]]

    def lines(self) -> pa.LargeBinaryArray:
        """Each row with its line end, without a copy."""
        return binary_array(self.data, self.line_starts)

    def column(self, at: int, columns: int) -> pa.LargeBinaryArray:
        """The cells of a column as they are in the file, quotes included."""
        return take_spans(self.data, self.starts[at::columns], self.ends[at::columns]).cast(pa.large_binary())

    def values(self, at: int, columns: int) -> pa.BinaryArray:
        """The cells of a column without their quotes."""
        starts, ends = self.starts[at::columns], self.ends[at::columns]
        if not self.has_quotes:
            return take_spans(self.data, starts, ends)
        is_quoted = np.frombuffer(self.data, np.uint8).take(starts, mode="clip") == QUOTE
        is_quoted &= ends > starts
        quoted = np.flatnonzero(is_quoted)
        if not self.has_regular_quotes:
            fixed = [unquote(self.data[starts[i] : ends[i]]) for i in quoted]
            return replace_texts(take_spans(self.data, starts, ends), quoted, pa.array(fixed, pa.binary()))
        cells = take_spans(self.data, starts + is_quoted, ends - is_quoted)
        inner = cells.take(pa.array(quoted))
        has_doubled = pc.match_substring(inner, b'""')
        doubled = quoted[to_bools(has_doubled)]
        return replace_texts(cells, doubled, pc.replace_substring(inner.filter(has_doubled), b'""', b'"'))


def split_rows(data: bytes, delimiter: bytes, *, is_last: bool) -> Rows:
    """Split the complete rows at the beginning of `data`, which begins with a row; with `is_last` it is complete.

    What follows a row with more than `MAX_COLUMNS` cells, which is refused, may be left out, also of the row itself.
    """
    found = split_fast(data, delimiter, is_last=is_last)
    is_regular = found is not None
    if found is None:
        found = split_in_parts(data, delimiter, is_last=is_last)
    return make_rows(data, *found, has_regular_quotes=is_regular)


def make_rows(data: bytes, ends: Places, widths: Places, is_row_end: Mask, *, has_regular_quotes: bool) -> Rows:
    """`ends` are those of the cells, `widths` those of what follows them."""
    last_cells = np.flatnonzero(is_row_end)
    used = int(last_cells[-1]) + 1 if len(last_cells) else 0
    ends, nexts = ends[:used], (ends + widths)[:used]
    starts = np.concatenate([np.zeros(1, np.int32), nexts[:-1]]) if used else nexts
    line_starts = np.concatenate([np.zeros(1, np.int64), nexts[last_cells]])
    return Rows(data, starts, ends, last_cells, line_starts, has_regular_quotes)


Found = tuple[Places, Places, Mask]  # ends of cells, widths of what follows them, whether that is a line end


def split_fast(data: bytes, delimiter: bytes, *, is_last: bool) -> Found | None:
    """Find all cells at once with NumPy; None if quotes are irregular."""
    delimiter_octet, has_quotes, has_returns = delimiter[0], b'"' in data, b"\r" in data
    wanted = [delimiter_octet, LF, *([CR] if has_returns else ()), *([QUOTE] if has_quotes else ())]
    at = find_octets(data, wanted)
    kinds = np.frombuffer(data, np.uint8).take(at)
    is_open = False
    if has_quotes:
        quotes = np.flatnonzero(kinds == QUOTE)
        if not are_quotes_regular(at, quotes, len(data)):
            return None
        is_open = len(quotes) % 2 == 1
        outside = np.flatnonzero(is_outside(quotes, len(at)))
        at, kinds = at.take(outside), kinds.take(outside)
    widths = np.ones(len(at), np.int32)
    if has_returns:
        returns = np.flatnonzero(kinds[:-1] == CR)
        pairs = returns[(kinds.take(returns + 1) == LF) & (at.take(returns + 1) == at.take(returns) + 1)]
        widths[pairs] = 2
        kept = np.ones(len(at), np.bool_)
        kept[pairs + 1] = False
        at, kinds, widths = at[kept], kinds[kept], widths[kept]
        if not is_last and len(at) and at[-1] == len(data) - 1 and kinds[-1] == CR:
            at, kinds, widths = at[:-1], kinds[:-1], widths[:-1]  # its line feed may be in the next block
    is_row_end = kinds != delimiter_octet
    if is_last and len(data) and not is_open:
        end = int(at[-1] + widths[-1]) if len(at) else 0
        if end < len(data) or not is_row_end[-1]:
            at, widths = np.append(at, np.int32(len(data))), np.append(widths, np.int32(0))
            is_row_end = np.append(is_row_end, True)
    return at, widths, is_row_end


def find_octets(data: bytes, wanted: Sequence[int]) -> Places:
    """The positions of octets that are one of `wanted`; part by part, so that each is in the processor's cache."""
    is_wanted, is_other = np.empty(PART, np.bool_), np.empty(PART, np.bool_)
    found = [np.empty(0, np.int32)]
    for start in range(0, len(data), PART):
        part = np.frombuffer(data, np.uint8, min(PART, len(data) - start), start)
        mask = np.equal(part, wanted[0], out=is_wanted[: len(part)])
        for each in wanted[1:]:
            mask |= np.equal(part, each, out=is_other[: len(part)])
        found.append((np.flatnonzero(mask) + start).astype(np.int32))
    return np.concatenate(found)


def are_quotes_regular(at: Places, quotes: Index, size: int) -> bool:
    """Whether every quote opens or closes a whole cell, or is doubled within one.

    `at` are the positions of all quotes, delimiters and line ends in `size` octets, `quotes` those of the quotes in it.
    """
    opening, closing = quotes[0::2], quotes[1::2]
    first, last = at.take(opening), at.take(closing)
    opens = (first == 0) | (at.take(opening - 1, mode="wrap") == first - 1)
    closes = (last == size - 1) | (at.take(closing + 1, mode="clip") == last + 1)
    return bool(opens.all() and closes.all())


def is_outside(quotes: Index, size: int) -> Mask:
    """Which of `size` quotes, delimiters and line ends are neither quotes nor between an opening and a closing one."""
    outside = np.ones(size, np.bool_)
    outside[quotes] = False
    if len(quotes) % 2:
        outside[quotes[-1] :] = False
    opening, closing = quotes[: len(quotes) - 1 : 2], quotes[1::2]
    counts = closing - opening - 1
    filled = np.flatnonzero(counts)
    counts = counts[filled]
    firsts = opening[filled] + 1 - np.cumsum(counts) + counts
    outside[np.repeat(firsts, counts) + np.arange(counts.sum())] = False
    return outside


def split_in_parts(data: bytes, delimiter: bytes, *, is_last: bool) -> Found:
    """Split part by part: only a part with irregular quotes is split slowly."""
    found: list[Found] = []
    start, size = 0, SLOW_PART
    while start < len(data):
        part = data[start : start + size]
        is_end = start + size >= len(data)
        each = split_fast(part, delimiter, is_last=is_last and is_end)
        if each is None:
            each = split_slowly(part, delimiter, is_last=is_last and is_end)
        rows = np.flatnonzero(each[2])
        if not len(rows):
            if is_end:
                break
            size *= 2  # a row longer than the part
            continue
        used = int(rows[-1]) + 1
        found.append((each[0][:used] + np.int32(start), each[1][:used], each[2][:used]))
        if np.diff(rows, prepend=-1).max() > MAX_COLUMNS:
            break
        start, size = int(found[-1][0][-1] + found[-1][1][-1]), SLOW_PART
    if not found:
        return np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.bool_)
    ends, widths, is_row_end = zip(*found, strict=True)
    return np.concatenate(ends), np.concatenate(widths), np.concatenate(is_row_end)


def split_slowly(data: bytes, delimiter: bytes, *, is_last: bool) -> Found:
    """Cell by cell: a quote within an unquoted cell is text, and so is what follows a closing quote."""
    ends: list[int] = []
    widths: list[int] = []
    is_row_end: list[bool] = []
    row = 0  # position of the first cell of the row
    other = b"[^" + re.escape(delimiter) + rb"\r\n]"
    cell = re.compile(rb'"(?:[^"]+|"")*+"' + other + rb"*+|(?!\")" + other + b"*+")
    at = 0
    while at < len(data):
        match = cell.match(data, at)
        if match is None:  # a quote that is not closed in this block
            break
        end = match.end()
        if end == len(data):
            if not is_last:
                break
            width = 0
        else:
            width = 2 if data[end : end + 2] == b"\r\n" else 1
            if width == 1 and end + 1 == len(data) and data[end] == CR and not is_last:
                break
        ends.append(end)
        widths.append(width)
        is_row_end.append(data[end : end + 1] != delimiter)
        at = end + width
        if is_last and at == len(data) and not is_row_end[-1]:  # an empty cell after the last delimiter
            ends.append(at)
            widths.append(0)
            is_row_end.append(True)
        if is_row_end[-1]:
            row = len(ends)
        elif len(ends) - row > MAX_COLUMNS:
            is_row_end[-1] = True
            break
    return np.array(ends, np.int32), np.array(widths, np.int32), np.array(is_row_end, np.bool_)


def unquote(cell: bytes) -> bytes:
    """The text of a cell, as Python's csv module reads it."""
    if not cell.startswith(b'"'):
        return cell
    match = re.match(rb'"((?:[^"]+|"")*+)"', cell)
    return cell[1:] if match is None else match[1].replace(b'""', b'"') + cell[match.end() :]


def align(cells: Sequence[bytes], columns: int, delimiter: bytes, address_at: int | None) -> list[bytes]:
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
        first = blanks.find(b"\1" * shift, 1)  # so many neighbours begin with a blank; the cell before them is a part
        is_only = first > 0 and blanks.find(b"\1" * shift, first + 1) < 0
        place = first - 1 if is_only else max(0, address_at - 1)
        row[place : place + shift + 1] = [join_cells(row[place : place + shift + 1], delimiter)]
    while len(row) > columns and not unquote(row[-1]):  # a delimiter at the end of each row is common
        row.pop()
    if len(row) > columns:
        row[columns - 1 :] = [join_cells(row[columns - 1 :], delimiter)]
    return row


def shift_of(row: Sequence[bytes], address_at: int, excess: int) -> int:
    """How far to the right of its column the address of a row is, which cells too many or too few have moved.

    0 if not exactly one of the cells that it can have been moved to looks like an address.
    """
    low, high = sorted((address_at, address_at + excess))
    likely = [i for i in range(max(low, 0), min(high + 1, len(row))) if ONE_ADDRESS.fullmatch(unquote(row[i]))]
    return likely[0] - address_at if len(likely) == 1 else 0


def join_cells(cells: Sequence[bytes], delimiter: bytes) -> bytes:
    """One quoted cell with the text of several."""
    return b'"' + delimiter.join(map(unquote, cells)).replace(b'"', b'""') + b'"'


def find_line_ends(lines: pa.LargeBinaryArray) -> tuple[pa.Buffer, Index, Index]:
    """The bytes of consecutive lines, where each begins (and the last one ends), and where the line end of each is."""
    offsets = np.frombuffer(lines.buffers()[1], np.int64)[lines.offset : lines.offset + len(lines) + 1]
    data = lines.buffers()[2] or pa.py_buffer(b"")
    buffer = np.frombuffer(data, np.uint8)
    starts, ends, left = offsets[:-1], offsets[1:].copy(), np.arange(len(offsets) - 1)
    while len(left) and len(buffer):
        octets = buffer.take(ends.take(left) - 1, mode="clip")
        left = left[((octets == LF) | (octets == CR)) & (ends.take(left) > starts.take(left))]
        ends[left] -= 1
    return data, offsets, ends


def strip_line_ends(lines: pa.LargeBinaryArray) -> tuple[pa.LargeBinaryArray, pa.LargeBinaryArray]:
    """The lines without their line ends, and the line ends."""
    data, offsets, ends = find_line_ends(lines)
    spans = np.empty(2 * len(ends) + 1, np.int64)
    spans[0::2], spans[1::2] = offsets, ends
    both = binary_array(data, spans)
    return both.take(pa.array(np.arange(0, 2 * len(ends), 2))), both.take(pa.array(np.arange(1, 2 * len(ends), 2)))


def take_spans(data: bytes, starts: Places, ends: Places) -> pa.BinaryArray:
    """Parts of a block, in order, as an array."""
    spans = np.empty(2 * len(starts) + 1, np.int32)
    spans[0:-1:2], spans[1::2] = starts, ends
    spans[-1] = ends[-1] if len(ends) else 0
    parts = pa.BinaryArray.from_buffers(pa.binary(), len(spans) - 1, [None, pa.py_buffer(spans), pa.py_buffer(data)])
    return parts.take(pa.array(np.arange(0, 2 * len(starts), 2)))


def binary_array(data: Any, offsets: Index) -> pa.LargeBinaryArray:
    buffer = data if isinstance(data, pa.Buffer) else pa.py_buffer(data)
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(np.ascontiguousarray(offsets)), buffer]
    )
