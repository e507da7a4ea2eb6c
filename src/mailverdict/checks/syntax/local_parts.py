"""The local parts of a piece: most are settled by their octets, few by a pattern, hardly any one by one."""

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
from .arrays import Bools, Cut, Octets, Rows, bools, octets_of, offsets_of

__all__ = ["check_locals", "find_mailbox_names", "match_locals"]

ATEXT = r"[A-Za-z0-9_!#$%&'*+\-/=?^`{|}~]"  # RFC 5322 section 3.2.3
DOT_ATOM = rf"\A{ATEXT}+(?:\.{ATEXT}+)*\z"
# Letters and digits of any script are never unsafe; it is left to ask for the normal form.
ANY_ATEXT = ATEXT.replace("A-Za-z0-9_", r"\w")
ANY_DOT_ATOM = re.compile(rf"{ANY_ATEXT}+(?:\.{ANY_ATEXT}+)*")
BLOCK_OCTETS = 1 << 18  # what a dozen passes find in the cache, and the allocator need not ask the system for


def check_locals(cut: Cut, local: pa.StringArray) -> tuple[Bools, dict[int, str]]:
    """Tell which local parts are accepted, and the normal form of those that have another one."""
    ok = cut.ats > cut.starts[:-1]
    rows = doubtful_rows(cut)
    held = local.take(pa.array(rows))
    ok[rows] = bools(pc.match_substring_regex(held, DOT_ATOM))
    changed = find_mailbox_names(local)
    foreign = np.flatnonzero(~bools(pc.string_is_ascii(held)))
    for row, text in zip(rows[foreign].tolist(), held.take(pa.array(foreign)).to_pylist(), strict=True):
        normal = normalize_foreign(text)
        ok[row] = normal is not None
        if normal is not None and normal != text:
            changed[row] = normal
    return ok, changed


def doubtful_rows(cut: Cut) -> Rows:
    """Give the rows whose octets do not by themselves prove the local part empty or a dot-atom."""
    octets, starts = cut.octets, cut.starts
    doubtful = np.zeros(len(cut.ats), np.bool_)
    filled = np.searchsorted(starts, len(octets))
    doubtful[:filled] = octets[starts[:filled]] == ord(".")
    for begin in range(0, len(octets), BLOCK_OCTETS):
        unusual = np.flatnonzero(is_unusual(octets[begin : begin + BLOCK_OCTETS + 1])) + begin
        doubtful[np.searchsorted(starts, unusual, side="right") - 1] = True
    return np.flatnonzero(doubtful)


def is_unusual(octets: Octets) -> Bools:
    """Whether an octet is none of the common ones, or a dot before a dot or an @."""
    buffer = np.empty_like(octets)
    at, dot = octets == ord("@"), octets == ord(".")
    unusual: Bools = np.subtract(octets | 0x20, ord("a"), out=buffer) >= 26
    unusual &= np.subtract(octets, ord("-"), out=buffer) >= 13  # - . / 0 1 2 3 4 5 6 7 8 9
    unusual &= octets != ord("_")
    unusual &= octets != ord("+")
    unusual ^= at
    unusual[:-1] |= dot[:-1] & (dot[1:] | at[1:])
    return unusual


def normalize_foreign(local: str) -> str | None:
    """Do as `normalize_local` for a non-ASCII local part, at once where it is letters in normal form."""
    if ANY_DOT_ATOM.fullmatch(local) and unicodedata.is_normalized("NFC", local):
        return local
    return normalize_local(local)


def find_mailbox_names(local: pa.StringArray) -> dict[int, str]:
    """Give the names of RFC 2142 with capitals in lower case; other ASCII local parts keep their case."""
    rows = shortlist(local, tuple(CASE_INSENSITIVE_MAILBOX_NAMES))
    offsets = offsets_of(local)
    rows = rows[offsets[rows + 1] - offsets[rows] <= max(map(len, CASE_INSENSITIVE_MAILBOX_NAMES))]
    held = local.take(pa.array(rows))
    lowered = pc.ascii_lower(held)
    found = pc.and_(pc.is_in(lowered, pa.array(CASE_INSENSITIVE_MAILBOX_NAMES)), pc.not_equal(lowered, held))
    return dict(zip(rows[bools(found)].tolist(), lowered.filter(found).to_pylist(), strict=True))


def match_locals(local: pa.StringArray, names: Iterable[str]) -> pa.BooleanArray:
    """Tell which local parts, in lower case and without a ``+tag``, are among `names`.

    Parameters
    ----------
    local : pyarrow.StringArray
        Local parts.
    names : iterable of str
        Names in lower case.

    Returns
    -------
    pyarrow.BooleanArray
        Null where `local` is.

    Examples
    --------
    >>> match_locals(pa.array(["Sales+eu", "salesman", None]), {"sales", "hr"}).to_pylist()
    [True, False, None]
    """
    known = tuple(sorted(names))
    rows = shortlist(local, known)
    held = pc.utf8_lower(local.take(pa.array(rows)))
    tagged = np.flatnonzero(bools(pc.match_substring(held, "+").fill_null(False)))
    untagged = pc.replace_substring_regex(held.take(pa.array(tagged)), r"(?s)\+.*", "")
    found = np.zeros(len(local), np.bool_)
    found[rows] = bools(pc.is_in(held, pa.array(known, pa.string())))
    found[rows[tagged]] = bools(pc.is_in(untagged, pa.array(known, pa.string())))
    return pc.if_else(local.is_valid(), pa.array(found), None)


def shortlist(local: pa.StringArray, names: tuple[str, ...]) -> Rows:
    """Give the rows whose first two octets, without regard to case, one of `names` may begin with."""
    octets, starts = octets_of(local), offsets_of(local)[:-1]
    if not len(octets):
        return np.flatnonzero(starts < 0)
    # Of a shorter row, octets of the next one are read: it may be listed without need, never left out.
    pairs = octets[np.minimum(starts, len(octets) - 1)].astype(np.uint16) << 8
    pairs |= octets[np.minimum(starts + 1, len(octets) - 1)]
    return np.flatnonzero(beginnings(names)[pairs])


@functools.lru_cache(maxsize=16)
def beginnings(names: tuple[str, ...]) -> Bools:
    """Tabulate the first two octets that may begin one of `names`; all non-ASCII ones are left to comparison."""
    table = np.zeros((256, 256), np.bool_)
    table[128:], table[:, 128:] = True, True
    for name in names:
        pairs = [{ord(char), ord(char.upper())} for char in name[:2] if char.isascii()]
        if len(pairs) == 2:
            table[np.ix_(list(pairs[0]), list(pairs[1]))] = True
        elif pairs:
            table[list(pairs[0])] = True
    return table.ravel()
