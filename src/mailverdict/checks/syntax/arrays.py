"""Texts split at their first @, and numpy views of Arrow's string buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "DOMAINS",
    "LOCAL_PARTS",
    "Bools",
    "Octets",
    "Positions",
    "Rows",
    "SplitTexts",
    "build_strings",
    "concat_texts",
    "octets_of",
    "offsets_of",
    "select_half",
    "split_at",
    "to_bools",
    "to_string_array",
]

Bools = npt.NDArray[np.bool_]
Octets = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int32]
Rows = npt.NDArray[np.intp]

OFFSET_MAX = np.iinfo(np.int32).max
LOCAL_PARTS, DOMAINS = 0x55, 0xAA  # validity of the even and of the odd elements, least significant bit first


@dataclass(frozen=True, slots=True)
class SplitTexts:
    """Some rows, and where each starts, has its first @, and ends."""

    texts: pa.StringArray
    octets: Octets  # of all rows; positions count from its first
    starts: Positions  # of the rows, and the end of the last one
    ats: Positions  # of the @; the end of the row if there is none


def split_at(texts: pa.StringArray) -> SplitTexts:
    """Find where each row starts and where its first @ is."""
    offsets, octets = offsets_of(texts), octets_of(texts)
    starts = offsets - offsets[0]
    found = pc.find_substring(texts, "@").to_numpy()
    ats = np.where(found < 0, starts[1:], starts[:-1] + found)
    return SplitTexts(texts, octets[offsets[0] : offsets[-1]], starts, ats)


def select_half(split: SplitTexts, which: int) -> pa.StringArray:
    """Return the `LOCAL_PARTS`, or the `DOMAINS` with their @: every other element of an array over the same octets."""
    size = 2 * len(split.ats)
    bounds = np.empty(size + 1, np.int32)
    bounds[0::2], bounds[1::2] = split.starts, split.ats
    valid = pa.py_buffer(bytes([which]) * (size // 8 + 1))
    return build_strings(split.octets, bounds, valid).drop_null()


def to_string_array(texts: pa.Array) -> pa.StringArray:
    """Convert to ``string``. Arrow's own cast refuses a slice of an array over 2 GiB, however short the slice is."""
    if texts.type != pa.large_string() or not len(texts):
        return texts.cast(pa.string())
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return build_strings(octets_of(texts)[offsets[0] : offsets[-1]], (offsets - offsets[0]).astype(np.int32))


def offsets_of(texts: pa.StringArray) -> Positions:
    """View the offsets of a string array, one more than it has rows."""
    if not len(texts):
        return np.zeros(1, np.int32)
    return np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]


def octets_of(texts: pa.Array) -> Octets:
    """View the whole data buffer of a string array, of either offset width."""
    data = texts.buffers()[2]
    return np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8)


def to_bools(array: pa.BooleanArray) -> Bools:
    """Convert a boolean array without nulls to numpy."""
    values: Bools = array.to_numpy(zero_copy_only=False)
    return values


def concat_texts(pieces: Sequence[pa.StringArray], values: Sequence[Mapping[int, str]]) -> tuple[Octets, Positions]:
    """Concatenate string arrays, with a few elements of each replaced, by position; return octets and offsets."""
    parts: list[Octets] = []
    lengths = []
    for texts, changed in zip(pieces, values, strict=True):
        offsets, octets = offsets_of(texts), octets_of(texts)
        sizes = offsets[1:] - offsets[:-1]
        copied = offsets[0]
        for row in sorted(changed):
            value = np.frombuffer(changed[row].encode(), np.uint8)
            parts += octets[copied : offsets[row]], value
            sizes[row] = len(value)
            copied = offsets[row + 1]
        parts.append(octets[copied : offsets[-1]])
        lengths.append(sizes)
    return np.concatenate(parts), offsets_of_lengths(np.concatenate(lengths))


def offsets_of_lengths(lengths: Positions) -> Positions:
    """Return the offsets of elements with these lengths."""
    total = int(lengths.sum(dtype=np.int64))
    if total > OFFSET_MAX:
        raise ValueError(f"{total:,} octets of text do not fit into one string array of 2 GiB: slice the column")
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def build_strings(octets: Octets, offsets: Positions, valid: pa.Buffer | None = None) -> pa.StringArray:
    """Build a string array from octets, offsets and a validity bitmap."""
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(octets), valid)
