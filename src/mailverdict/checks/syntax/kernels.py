"""Kernels of the column check: numpy views of Arrow's string buffers, texts split at their @, and local parts.

Most local parts are accepted by their octets alone, a few by a pattern, hardly any one by one.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from email_validator.rfc_constants import CASE_INSENSITIVE_MAILBOX_NAMES

from ...model.table import one_array
from .address import normalize_local

Bools = npt.NDArray[np.bool_]
Octets = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int32]
Codes = npt.NDArray[np.int32]  # per row the position of its value among distinct ones; -1 for none
Rows = npt.NDArray[np.intp]

OFFSET_MAX = np.iinfo(np.int32).max  # octets that one Arrow text array can hold
LOCAL_PARTS, DOMAINS = (
    0x55,
    0xAA,
)  # validity of the even and of the odd elements, least significant bit first


@dataclass(frozen=True, slots=True)
class SplitTexts:
    """Some rows, and where each starts, has its first @, and ends."""

    texts: pa.StringArray
    octets: Octets  # of all rows; positions count from its first
    starts: Offsets  # of the rows, and the end of the last one
    ats: Offsets  # of the @; the end of the row if there is none


def split_at(texts: pa.StringArray) -> SplitTexts:
    """Find where each row starts and where its first @ is."""
    offsets, octets = offsets_of(texts), octets_of(texts)
    starts = offsets - offsets[0]
    found = pc.find_substring(texts, "@").fill_null(-1).to_numpy()
    ats = np.where(found < 0, starts[1:], starts[:-1] + found)
    return SplitTexts(texts, octets[offsets[0] : offsets[-1]], starts, ats)


def select_half(split: SplitTexts, which: int) -> pa.StringArray:
    """Return the `LOCAL_PARTS`, or the `DOMAINS` with their @: every other element of an array over the same octets."""
    size = 2 * len(split.ats)
    bounds = np.empty(size + 1, np.int32)
    bounds[0::2], bounds[1::2] = split.starts, split.ats
    valid = pa.py_buffer(bytes([which]) * (size // 8 + 1))
    return build_strings(split.octets, bounds, valid).drop_null()


def cut(octets: Octets, begins: Offsets, ends: Offsets) -> pa.StringArray:
    """Return the texts between positions, of which none is before an earlier one."""
    bounds = np.append(np.stack([begins, ends], axis=1), ends.max(initial=0)).astype(np.int32)
    valid = pa.py_buffer(bytes([LOCAL_PARTS]) * (len(bounds) // 8 + 1))
    return build_strings(octets, bounds, valid).drop_null()


def local_parts(texts: pa.StringArray, rows: Rows) -> pa.StringArray:
    """Return the local parts of some rows."""
    return select_half(split_at(texts.take(pa.array(rows))), LOCAL_PARTS)


def with_short_offsets(texts: pa.Array) -> pa.StringArray:
    """Convert to ``string``. Arrow's own cast refuses a slice of an array over 2 GiB, however short the slice is."""
    if texts.type != pa.large_string() or not len(texts):
        return texts.cast(pa.string())
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[
        texts.offset : texts.offset + len(texts) + 1
    ]
    return build_strings(
        octets_of(texts)[offsets[0] : offsets[-1]], (offsets - offsets[0]).astype(np.int32)
    )


def offsets_of(texts: pa.StringArray) -> Offsets:
    """View the offsets of a string array, one more than it has rows."""
    if not len(texts):
        return np.zeros(1, np.int32)
    return np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]


def octets_of(texts: pa.Array) -> Octets:
    """View the whole data buffer of a string array, of either offset width."""
    data = texts.buffers()[2]
    return np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8)


def to_bools(array: pa.BooleanArray | pa.ChunkedArray) -> Bools:
    """Convert a boolean array without nulls to numpy; several times as fast as Arrow does."""
    if not len(array):
        return np.zeros(0, np.bool_)
    array = one_array(array)
    first, last = array.offset // 8, (array.offset + len(array) + 7) // 8
    bits = np.unpackbits(np.frombuffer(array.buffers()[1], np.uint8)[first:last], bitorder="little")
    return bits[array.offset % 8 :][: len(array)].view(np.bool_)


def build_strings(
    octets: Octets, offsets: Offsets, valid: pa.Buffer | None = None
) -> pa.StringArray:
    """Build a string array from octets, offsets and a validity bitmap."""
    return pa.StringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(octets), valid
    )


ATEXT = r"[A-Za-z0-9_!#$%&'*+\-/=?^`{|}~]"  # RFC 5322 section 3.2.3
DOT_ATOM = rf"\A{ATEXT}+(?:\.{ATEXT}+)*\z"
BLOCK_OCTETS = (
    1 << 20
)  # few calls, for each of which the interpreter lock is released, and a dozen passes in the cache


@dataclass(frozen=True, slots=True)
class LocalParts:
    """The check of the local parts of some rows."""

    ok: Bools
    renamed: Rows  # whose local part has another normal form, in any order
    forms: pa.StringArray  # these
    unusual: Rows  # that may have other characters than letters, digits and ``-./_+@``


def check_local_parts(split: SplitTexts) -> LocalParts:
    """Check the local part of each row."""
    ok = split.ats > split.starts[:-1]
    unusual = doubtful_rows(split)
    doubtful = local_parts(split.texts, unusual)
    ok[unusual] = to_bools(pc.match_substring_regex(doubtful, DOT_ATOM))
    is_ascii = pc.string_is_ascii(doubtful)
    rows, texts = unusual[~to_bools(is_ascii)], doubtful.filter(pc.invert(is_ascii))
    forms = pa.array(map(normalize_local, texts.to_pylist()), pa.string())
    ok[rows] = to_bools(forms.is_valid())
    is_other = pc.not_equal(forms, texts).fill_null(False)
    names, lowered = find_rfc2142_names(split)
    return LocalParts(
        ok=ok,
        renamed=np.concatenate([names, rows[to_bools(is_other)]]),
        forms=pa.concat_arrays([lowered, forms.filter(is_other)]),
        unusual=unusual,
    )


def doubtful_rows(split: SplitTexts) -> Rows:
    """Return the rows whose octets alone do not show that the local part is empty or a dot-atom."""
    octets, starts = split.octets, split.starts
    doubtful = np.zeros(len(split.ats), np.bool_)
    filled = np.searchsorted(starts, len(octets))
    doubtful[:filled] = octets[starts[:filled]] == ord(".")
    for begin in range(0, len(octets), BLOCK_OCTETS):
        unusual = np.flatnonzero(is_unusual(octets[begin : begin + BLOCK_OCTETS + 1])) + begin
        doubtful[np.searchsorted(starts, unusual, side="right") - 1] = True
    return np.flatnonzero(doubtful)


def is_unusual(octets: Octets) -> Bools:
    """Whether an octet is not a common one, or is a dot before a dot or an @."""
    buffer = np.empty_like(octets)
    at, dot = octets == ord("@"), octets == ord(".")
    unusual: Bools = np.subtract(octets | 0x20, ord("a"), out=buffer) >= 26
    unusual &= np.subtract(octets, ord("-"), out=buffer) >= 13  # - . / 0 1 2 3 4 5 6 7 8 9
    unusual &= octets != ord("_")
    unusual &= octets != ord("+")
    unusual ^= at
    unusual[:-1] |= dot[:-1] & (dot[1:] | at[1:])
    return unusual


def find_rfc2142_names(split: SplitTexts) -> tuple[Rows, pa.StringArray]:
    """Return the rows with a name of RFC 2142 in capitals, and it in lower case; other ASCII names keep their case."""
    rows = candidate_rows(split.texts, tuple(CASE_INSENSITIVE_MAILBOX_NAMES))
    rows = rows[
        split.ats[rows] - split.starts[rows] <= max(map(len, CASE_INSENSITIVE_MAILBOX_NAMES))
    ]
    candidates = local_parts(split.texts, rows)
    lowered = pc.ascii_lower(candidates)
    found = pc.and_(
        pc.is_in(lowered, pa.array(CASE_INSENSITIVE_MAILBOX_NAMES)),
        pc.not_equal(lowered, candidates),
    )
    return rows[to_bools(found)], lowered.filter(found)


SEPARATORS = r"[._\-0-9]+"  # between the words of a local part


def match_names(
    texts: pa.StringArray,
    names: tuple[str, ...],
    words: tuple[str, ...] = (),
    ends: Offsets | None = None,
) -> Bools:
    """Whether the part of each text before its first @, in lower case and without a ``+tag``, is one of `names`.

    Or its first word is one of `words`, or its last one if there is no tag. `words` are some of the names, of 3 to 31
    ASCII letters; `ends` are the positions of the first @ in the octets, if they are known.

    >>> match_names(pa.array(["Sales+eu@firm.com", "salesman@firm.com", "HR"]), ("hr", "sales")).tolist()
    [True, False, True]
    >>> match_names(pa.array(["info2.rome", "rome-info", "my.info.it", "rome.info+it"]), ("info",), ("info",)).tolist()
    [True, True, False, False]
    """
    rows = candidate_rows(texts, names)
    candidates = pc.utf8_lower(local_parts(texts, rows))
    tagged = np.flatnonzero(to_bools(pc.match_substring(candidates, "+")))
    untagged = pc.replace_substring_regex(candidates.take(pa.array(tagged)), r"(?s)\+.*", "")
    found = np.zeros(len(texts), np.bool_)
    found[rows] = to_bools(pc.is_in(candidates, pa.array(names, pa.string())))
    found[rows[tagged]] = to_bools(pc.is_in(untagged, pa.array(names, pa.string())))
    if words:
        rows = rows[~found[rows]]
        found[rows] = have_first_words(texts, rows, words)
        ends = offsets_of(texts)[0] + split_at(texts).ats if ends is None else ends
        rows = np.flatnonzero(may_have_last_words(texts, ends, words) & ~found)
        found[rows] = have_last_words(texts, rows, ends[rows], words)
    return found


HEAD = 4  # octets of a row that are compared at once, as one number
FOLD, NON_ASCII = (
    np.uint32(0x1F1F1F1F),
    np.uint32(0x80808080),
)  # letters without their case; octets from 128
SPREAD, TABLE_BITS = (
    np.uint32(2_654_435_761),
    np.uint32(18),
)  # a multiplicative hash; a table of 256 KiB


def candidate_rows(texts: pa.StringArray, names: tuple[str, ...]) -> Rows:
    """Return the rows whose first four octets may begin one of `names`, without regard to case."""
    octets, starts = octets_of(texts), offsets_of(texts)[:-1]
    whole = int(
        np.searchsorted(starts, len(octets) - HEAD, side="right")
    )  # of the last rows, octets may be missing
    # For a shorter row, octets of the next one are read: it may be returned without need, never omitted.
    heads = heads_of(octets)[starts[:whole]]
    is_candidate = np.ones(len(starts), np.bool_)
    is_candidate[:whole] = head_table(names).take(hash_heads(heads)) | (heads & NON_ASCII != 0)
    return np.flatnonzero(is_candidate)


def heads_of(octets: Octets) -> npt.NDArray[np.uint32]:
    """View the four octets from each position on as one number."""
    return np.ndarray(max(len(octets) - HEAD + 1, 0), "<u4", octets, strides=(1,))


def hash_heads(heads: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Hash the first octets of rows, without regard to the case of letters."""
    hashed: npt.NDArray[np.uint32] = (heads & FOLD) * SPREAD >> np.uint32(32) - TABLE_BITS
    return hashed


@functools.lru_cache(maxsize=16)
def head_table(names: tuple[str, ...]) -> Bools:
    """A table of the hashes of first octets that may begin one of `names`; after a short name any octet may follow."""
    table = np.zeros(1 << TABLE_BITS, np.bool_)
    for head in {name.encode()[:HEAD] for name in names}:
        rest = np.arange(32 ** (HEAD - len(head)), dtype=np.uint32)
        number = np.full(len(rest), int.from_bytes(head, "little"), np.uint32)
        for place in range(len(head), HEAD):
            number |= (rest & np.uint32(31)) << np.uint32(8 * place)
            rest >>= np.uint32(5)
        table[hash_heads(number)] = True
    return table


MARKS = "._-0123456789"  # SEPARATORS one by one
IS_MARK = np.isin(np.arange(256), list(MARKS.encode()))
Sizes = npt.NDArray[np.uint32]  # sets of sizes of words, as bits


def have_first_words(texts: pa.StringArray, rows: Rows, words: tuple[str, ...]) -> Bools:
    """Whether each of the rows begins with one of `words` and a separator."""
    octets, starts, ends = octets_of(texts), offsets_of(texts)[rows], offsets_of(texts)[rows + 1]
    found = np.zeros(len(rows), np.bool_)
    whole = np.flatnonzero(ends - starts > HEAD - 1)
    begins = starts[whole]
    _, sizes = size_tables(words, at_end=False)
    sizes = sizes.take(hash_heads(heads_of(octets)[begins]))
    found[whole] = are_words(octets, begins, ends[whole], 1, sizes, words)
    return found


def may_have_last_words(texts: pa.StringArray, ends: Offsets, words: tuple[str, ...]) -> Bools:
    """Whether the four octets before `ends` may end one of `words`."""
    octets = octets_of(texts)
    if len(octets) < HEAD:
        return np.zeros(len(texts), np.bool_)
    tails = heads_of(octets)[np.clip(ends - HEAD, 0, len(octets) - HEAD)]
    return size_tables(words, at_end=True)[0].take(hash_heads(tails))


def have_last_words(
    texts: pa.StringArray, rows: Rows, ends: Offsets, words: tuple[str, ...]
) -> Bools:
    """Whether each of the rows has a separator and one of `words` before its end, and no ``+`` before them."""
    octets, starts = octets_of(texts), offsets_of(texts)[rows]
    tails = (
        heads_of(octets)[np.clip(ends - HEAD, 0, len(octets) - HEAD)]
        if len(rows)
        else np.zeros(0, np.uint32)
    )
    _, sizes = size_tables(words, at_end=True)
    found = are_words(octets, ends, starts, -1, sizes.take(hash_heads(tails)), words)
    found[found] = ~to_bools(pc.match_substring(local_parts(texts, rows[found]), "+"))
    return found


def are_words(
    octets: Octets,
    places: Offsets,
    limits: Offsets,
    step: int,
    sizes: Sizes,
    words: tuple[str, ...],
) -> Bools:
    """Whether one of `words` and a separator lie between each place and its limit, behind it (1) or before it (-1)."""
    known, found = pa.array(words, pa.string()), np.zeros(len(places), np.bool_)
    rows = np.flatnonzero(sizes)
    while len(rows):  # one size of each set after another, hardly ever more than two
        least = sizes[rows] & -sizes[rows]
        far = places[rows] + step * np.log2(least).astype(np.int32)
        marks = far if step > 0 else far - 1
        inside = marks < limits[rows] if step > 0 else marks >= limits[rows]
        inside[inside] = IS_MARK[octets[marks[inside]]]
        at, bounds = rows[inside], np.sort([places[rows][inside], far[inside]], axis=0)
        found[at] |= to_bools(pc.is_in(pc.ascii_lower(cut(octets, *bounds)), known))
        sizes[rows] ^= least
        rows = rows[sizes[rows] != 0]
    return found


@functools.lru_cache(maxsize=8)
def size_tables(words: tuple[str, ...], *, at_end: bool) -> tuple[Bools, Sizes]:
    """For each hash of four octets, whether words begin or end with them, and their sizes.

    With a short word, a separator is hashed too.
    """
    sizes = np.zeros(1 << TABLE_BITS, np.uint32)
    for word in words:
        for mark in MARKS:
            part = (mark + word)[-HEAD:] if at_end else (word + mark)[:HEAD]
            sizes[hash_heads(np.frombuffer(part.encode(), "<u4"))] |= np.uint32(1 << len(word))
    return sizes != 0, sizes
