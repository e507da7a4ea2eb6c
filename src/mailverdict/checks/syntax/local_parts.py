"""The local parts of a piece: most are decided by their octets, few by a pattern, hardly any one by one.

`check_local_parts` is the syntax check; `match_locals` finds role names.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from email_validator.rfc_constants import CASE_INSENSITIVE_MAILBOX_NAMES

from .address import normalize_local
from .arrays import Bools, Octets, Rows, SplitTexts, octets_of, offsets_of, to_bools

__all__ = ["check_local_parts", "find_rfc2142_names", "match_locals"]

ATEXT = r"[A-Za-z0-9_!#$%&'*+\-/=?^`{|}~]"  # RFC 5322 section 3.2.3
DOT_ATOM = rf"\A{ATEXT}+(?:\.{ATEXT}+)*\z"
# Letters and digits of any script are never unsafe; only the normal form is left to check.
ANY_ATEXT = ATEXT.replace("A-Za-z0-9_", r"\w")
ANY_DOT_ATOM = re.compile(rf"{ANY_ATEXT}+(?:\.{ANY_ATEXT}+)*")
BLOCK_OCTETS = 1 << 18  # fits the cache for a dozen passes, and is served by the allocator without the system


def check_local_parts(split: SplitTexts, local: pa.StringArray) -> tuple[Bools, dict[int, str]]:
    """Return which local parts are accepted, and by row the normal forms that differ from the text."""
    ok = split.ats > split.starts[:-1]
    rows = doubtful_rows(split)
    doubtful = local.take(pa.array(rows))
    ok[rows] = to_bools(pc.match_substring_regex(doubtful, DOT_ATOM))
    changed = find_rfc2142_names(local)
    non_ascii = np.flatnonzero(~to_bools(pc.string_is_ascii(doubtful)))
    for row, text in zip(rows[non_ascii].tolist(), doubtful.take(pa.array(non_ascii)).to_pylist(), strict=True):
        normal = normalize_non_ascii(text)
        ok[row] = normal is not None
        if normal is not None and normal != text:
            changed[row] = normal
    return ok, changed


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


def normalize_non_ascii(local: str) -> str | None:
    """As `normalize_local` for a non-ASCII local part, with a fast path for letters in normal form."""
    if ANY_DOT_ATOM.fullmatch(local) and unicodedata.is_normalized("NFC", local):
        return local
    return normalize_local(local)


def find_rfc2142_names(local: pa.StringArray) -> dict[int, str]:
    """Return, by row, names of RFC 2142 with capitals, in lower case; other ASCII local parts keep their case."""
    rows = candidate_rows(local, tuple(CASE_INSENSITIVE_MAILBOX_NAMES))
    offsets = offsets_of(local)
    rows = rows[offsets[rows + 1] - offsets[rows] <= max(map(len, CASE_INSENSITIVE_MAILBOX_NAMES))]
    candidates = local.take(pa.array(rows))
    lowered = pc.ascii_lower(candidates)
    found = pc.and_(pc.is_in(lowered, pa.array(CASE_INSENSITIVE_MAILBOX_NAMES)), pc.not_equal(lowered, candidates))
    return dict(zip(rows[to_bools(found)].tolist(), lowered.filter(found).to_pylist(), strict=True))


def match_locals(local: pa.StringArray, names: Iterable[str]) -> pa.BooleanArray:
    """Whether each local part, in lower case and without a ``+tag``, is one of `names`; null for null.

    >>> match_locals(pa.array(["Sales+eu", "salesman", None]), {"sales", "hr"}).to_pylist()
    [True, False, None]
    """
    known = tuple(sorted(names))
    rows = candidate_rows(local, known)
    candidates = pc.utf8_lower(local.take(pa.array(rows)))
    tagged = np.flatnonzero(to_bools(pc.match_substring(candidates, "+").fill_null(False)))
    untagged = pc.replace_substring_regex(candidates.take(pa.array(tagged)), r"(?s)\+.*", "")
    found = np.zeros(len(local), np.bool_)
    found[rows] = to_bools(pc.is_in(candidates, pa.array(known, pa.string())))
    found[rows[tagged]] = to_bools(pc.is_in(untagged, pa.array(known, pa.string())))
    return pc.if_else(local.is_valid(), pa.array(found), None)


def candidate_rows(local: pa.StringArray, names: tuple[str, ...]) -> Rows:
    """Return the rows whose first two octets may begin one of `names`, without regard to case."""
    octets, starts = octets_of(local), offsets_of(local)[:-1]
    if not len(octets):
        return np.flatnonzero(starts < 0)
    # For a shorter row, octets of the next one are read: it may be returned without need, never omitted.
    pairs = octets[np.minimum(starts, len(octets) - 1)].astype(np.uint16) << 8
    pairs |= octets[np.minimum(starts + 1, len(octets) - 1)]
    return np.flatnonzero(prefix_table(names)[pairs])


@functools.lru_cache(maxsize=16)
def prefix_table(names: tuple[str, ...]) -> Bools:
    """A table of the first two octets that may begin one of `names`; all non-ASCII pairs may."""
    table = np.zeros((256, 256), np.bool_)
    table[128:], table[:, 128:] = True, True
    for name in names:
        pairs = [{ord(char), ord(char.upper())} for char in name[:2] if char.isascii()]
        if len(pairs) == 2:
            table[np.ix_(list(pairs[0]), list(pairs[1]))] = True
        elif pairs:
            table[list(pairs[0])] = True
    return table.ravel()
