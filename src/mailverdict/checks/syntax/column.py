"""Syntax of a whole column, with Arrow and numpy: the same answers as `observe_syntax`, row by row.

In this order: slice the column into pieces; split each text at its first @, check the local parts of each piece
(both in kernels.py); check each distinct domain of all pieces once; combine both sides, piece by piece. Normal forms
are made for the rows that are asked for. What the patterns cannot decide (non-ASCII texts, A-labels) is checked one by
one in address.py. `fault_messages` then describes the refused rows. The kernels are measured; there is no Python loop
over all rows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from email_validator import SPECIAL_USE_DOMAIN_NAMES

from ...model.table import one_array, texts_where
from .address import describe_refusal, normalize_domain
from .faults import MAX_OCTETS, SYNTAX_FAULTS, TOO_LONG, SyntaxFault, describe_character
from .kernels import (
    DOMAINS,
    LOCAL_PARTS,
    Bools,
    Codes,
    LocalParts,
    Rows,
    SplitTexts,
    check_local_parts,
    match_names,
    offsets_of,
    select_half,
    split_at,
    to_bools,
    with_short_offsets,
)

PIECE_ROWS = 131_072  # large enough to hide the cost of a call, small enough to stay in the processor's cache
REFUSED = np.int32(-1)

# --- the column -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SyntaxColumn:
    """The syntax check of a column, row by row. Normal forms are made for the rows that are asked for."""

    texts: pa.StringArray | pa.ChunkedArray
    ok: pa.BooleanArray  # whether the row is accepted; no nulls
    local_sizes: Codes  # octets of the local part as it is written; any number if not ok
    domain_codes: pa.Int32Array  # position of the row's domain in `domains`; null if not ok
    domains: (
        pa.StringArray
    )  # distinct domains of the accepted rows in order of appearance, lower case, in A-labels
    displays: pa.StringArray  # the same ones in U-labels, as in the normal form of an address
    renamed: Rows  # rows whose local part has another normal form
    local_forms: pa.StringArray  # these
    changed: Rows  # the accepted rows whose normal form may differ from the text
    unusual: (
        Rows  # the accepted rows that may have others than ASCII letters, digits and ``-./_+@``
    )

    def local(self, rows: pa.Array | None = None) -> pa.StringArray:
        """Local parts of the normal forms of some rows, or of all; null if not ok."""
        texts, ok = (
            (self.texts, self.ok) if rows is None else (self.texts.take(rows), self.ok.take(rows))
        )
        local = pa.concat_arrays(
            [select_half(split_at(piece), LOCAL_PARTS) for piece in pieces_of(texts)]
        )
        if len(self.renamed):
            rows = pa.array(np.arange(len(ok))) if rows is None else rows
            local = pc.coalesce(
                self.local_forms.take(pc.index_in(rows, pa.array(self.renamed))), local
            )
        return texts_where(ok, local)

    def normalized(self, rows: pa.Array | None = None) -> pa.StringArray:
        """Normal forms of some rows, or of all; null if not ok."""
        if rows is not None:
            return pc.binary_join_element_wise(
                self.local(rows), self.displays.take(self.domain_codes.take(rows)), "@"
            )
        is_changed = np.zeros(len(self.ok), np.bool_)
        is_changed[self.changed] = True
        texts = pa.concat_arrays(
            list(pieces_of(self.texts))
        )  # of most rows the normal form is the text
        forms = pc.replace_with_mask(
            texts, pa.array(is_changed), self.normalized(pa.array(self.changed))
        )
        return texts_where(self.ok, forms)

    def match_locals(
        self, names: Iterable[str], words: Iterable[str] = (), excluded: Collection[str] = ()
    ) -> pa.BooleanArray:
        """Whether each local part is one of `names` or has one of `words`, as `match_names` says; null if not ok.

        Local parts that are one of `excluded` are false.
        """
        match = partial(match_names, names=tuple(sorted(names)), words=tuple(sorted(words)))
        pieces = list(pieces_of(self.texts))
        sizes = np.split(self.local_sizes, np.cumsum([len(piece) for piece in pieces[:-1]]))
        bounds = map(offsets_of, pieces)  # a refused text may be shorter than when it was checked
        ends = [
            np.minimum(each[:-1] + size, each[1:]) for each, size in zip(bounds, sizes, strict=True)
        ]
        with map_by(len(pieces)) as each:
            found = np.concatenate(
                list(each(lambda piece, end: match(piece, ends=end), pieces, ends))
            )
        found[self.renamed] = match(self.local_forms)
        if excluded:
            found &= ~to_bools(self.match_locals(excluded).fill_null(False))
        return pa.array(found, mask=~to_bools(self.ok))

    def slice(self, start: int, size: int) -> SyntaxColumn:
        """The check of some rows; all domains stay."""
        if size == len(self.ok):
            return self
        renamed, changed, unusual = (
            rows - start for rows in (self.renamed, self.changed, self.unusual)
        )
        is_in = (renamed >= 0) & (renamed < size)
        return SyntaxColumn(
            self.texts.slice(start, size),
            self.ok.slice(start, size),
            self.local_sizes[start : start + size],
            self.domain_codes.slice(start, size),
            self.domains,
            self.displays,
            renamed=renamed[is_in],
            local_forms=self.local_forms.filter(pa.array(is_in)),
            changed=changed[(changed >= 0) & (changed < size)],
            unusual=unusual[(unusual >= 0) & (unusual < size)],
        )

    def filter(self, texts: pa.StringArray, mask: pa.BooleanArray) -> SyntaxColumn:
        """The check of the rows of `mask`, whose texts are `texts`; all domains stay."""
        if not mask.false_count:
            return self
        is_kept = to_bools(mask)
        position = np.cumsum(is_kept) - 1
        renamed, changed, unusual = (
            position[r[is_kept[r]]] for r in (self.renamed, self.changed, self.unusual)
        )
        return SyntaxColumn(
            texts,
            self.ok.filter(mask),
            self.local_sizes[is_kept],
            self.domain_codes.filter(mask),
            self.domains,
            self.displays,
            renamed=renamed,
            local_forms=self.local_forms.filter(pa.array(is_kept[self.renamed])),
            changed=changed,
            unusual=unusual,
        )

    def replace_rows(
        self, texts: pa.StringArray, mask: pa.BooleanArray, other: SyntaxColumn
    ) -> SyntaxColumn:
        """The check of `texts`: that of `other` in the rows of `mask`; the other texts have the same normal form."""
        rows, is_kept = np.flatnonzero(to_bools(mask)), ~to_bools(mask)
        is_new = pc.invert(pc.is_in(other.domains, value_set=self.domains))
        domains = pa.concat_arrays([self.domains, other.domains.filter(is_new)])
        codes = pc.index_in(other.domains, value_set=domains).take(other.domain_codes)
        local_sizes = self.local_sizes.copy()
        local_sizes[rows] = other.local_sizes
        still_renamed = is_kept[self.renamed]
        return SyntaxColumn(
            texts,
            ok=pc.replace_with_mask(self.ok, mask, other.ok),
            local_sizes=local_sizes,
            domain_codes=pc.replace_with_mask(self.domain_codes, mask, codes),
            domains=domains,
            displays=pa.concat_arrays([self.displays, other.displays.filter(is_new)]),
            renamed=np.concatenate([self.renamed[still_renamed], rows[other.renamed]]),
            local_forms=pa.concat_arrays(
                [self.local_forms.filter(pa.array(still_renamed)), other.local_forms]
            ),
            changed=np.union1d(self.changed[is_kept[self.changed]], rows[other.changed]),
            unusual=np.union1d(self.unusual[is_kept[self.unusual]], rows[other.unusual]),
        )


def observe_column(
    texts: pa.StringArray | pa.ChunkedArray, *, threads: int | None = None
) -> SyntaxColumn:
    """Check a column of addresses, without nulls and surrounding blanks, on all processors or `threads`.

    >>> column = observe_column(pa.array(["Ada@Web.DE", "ada@web", "ben@web.de"]))
    >>> column.normalized().to_pylist(), column.domains.to_pylist(), column.domain_codes.to_pylist()
    (['Ada@web.de', None, 'ben@web.de'], ['web.de'], [0, None, 0])
    """
    parts = list(slice_rows(texts))
    with map_by(len(parts), threads) as each:
        pieces, written = zip(*each(split_piece, parts), strict=True)
        checked_domains = each(join_domains, [written])
        local_parts = list(each(check_local_parts, pieces))
        [(domains, positions)] = checked_domains
        combined = each(partial(combine_sides, domains), pieces, local_parts, written, positions)
        all_codes, changed = zip(*combined, strict=True)
    starts = np.cumsum([0, *(len(each.ats) for each in pieces[:-1])])
    renamed, unusual = (
        np.concatenate(list(map(np.add, rows, starts)))
        for rows in ([each.renamed for each in local_parts], [each.unusual for each in local_parts])
    )
    codes, used = drop_unused(np.concatenate(all_codes), len(domains.names))
    is_ok = codes >= 0
    ok = pa.array(is_ok)
    return SyntaxColumn(
        texts,
        ok=ok,
        local_sizes=np.concatenate([each.ats - each.starts[:-1] for each in pieces]),
        domain_codes=pa.Array.from_buffers(
            pa.int32(), len(codes), [ok.buffers()[1], pa.py_buffer(codes)]
        ),
        domains=domains.names.filter(used),
        displays=domains.displays.filter(used),
        renamed=renamed,
        local_forms=pa.concat_arrays([each.forms for each in local_parts]),
        changed=np.concatenate(list(map(np.add, changed, starts))),
        unusual=unusual[is_ok[unusual]],
    )


def pieces_of(texts: pa.Array | pa.ChunkedArray) -> Iterator[pa.StringArray]:
    """Slice into pieces, at least one, in which texts that are too long for any address are empty."""
    return map(blank_long_texts, slice_rows(texts))


@contextmanager
def map_by(pieces: int, threads: int | None = None) -> Iterator[Callable[..., Iterator[Any]]]:
    """Yield what maps a function on `threads`, or all processors; a single piece is not worth starting them."""
    if pieces == 1:
        yield map
        return
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        yield pool.map


def slice_rows(texts: pa.Array | pa.ChunkedArray) -> Iterator[pa.Array]:
    """Slice into pieces, at least one, without copying."""
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    for chunk in chunks:
        for start in range(0, len(chunk), PIECE_ROWS):
            yield chunk.slice(start, PIECE_ROWS)
    if not len(texts):
        yield pa.array([], pa.string())


def split_piece(texts: pa.Array) -> tuple[SplitTexts, pa.DictionaryArray]:
    """Split some rows; also return their domains, with the @."""
    split = split_at(blank_long_texts(texts))
    return split, select_half(split, DOMAINS).dictionary_encode()


def blank_long_texts(texts: pa.Array) -> pa.StringArray:
    """Replace texts that are too long for any address by empty ones, so that huge cells cost nothing later."""
    lengths = pc.binary_length(texts)
    if (pc.max(lengths).as_py() or 0) > MAX_OCTETS:
        texts = pc.if_else(pc.less_equal(lengths, MAX_OCTETS), texts, pa.scalar("", texts.type))
    return with_short_offsets(texts)


def combine_sides(
    domains: CheckedDomains,
    split: SplitTexts,
    local: LocalParts,
    written: pa.DictionaryArray,
    positions: Codes,
) -> tuple[Codes, Rows]:
    """Combine the checks of both sides of some rows; `positions` are those of their distinct domains in `domains`.

    Return the codes of the domains, and the accepted rows whose normal form may differ from the text.
    """
    domain_at = positions.take(
        written.indices.to_numpy()
    )  # `take` needs half the time of an index in brackets
    octets = np.diff(split.starts) + domains.growth.take(domain_at)
    octets[local.renamed] += (
        pc.binary_length(local.forms).to_numpy() - (split.ats - split.starts[:-1])[local.renamed]
    )
    codes = np.where(local.ok & (octets <= MAX_OCTETS), domains.codes.take(domain_at), REFUSED)
    is_changed = domains.is_changed.take(domain_at)
    is_changed[local.renamed] = True
    return codes, np.flatnonzero(is_changed & (codes >= 0))


def drop_unused(codes: Codes, count: int) -> tuple[Codes, pa.BooleanArray]:
    """Number the domains anew without those that only refused rows have; they are not looked up."""
    used = np.zeros(count + 1, np.bool_)
    used[codes] = True  # -1, refused, is the additional last one
    renamed = np.cumsum(used, dtype=np.int32) - np.int32(1)
    renamed[-1] = REFUSED
    return renamed.take(codes), pa.array(used[:-1])


# --- its domains ----------------------------------------------------------------------------------------------------

LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\-]*[A-Za-z0-9])?"
HOST_NAME = rf"\A(?:{LABEL}\.)+(?:[A-Za-z0-9][A-Za-z0-9\-]*)?[A-Za-z]\z"  # the top-level label ends with a letter
SPECIAL_USE = rf"(?:\A|\.)(?:{'|'.join(map(re.escape, SPECIAL_USE_DOMAIN_NAMES))})\z"
LONG_LABEL = r"[^.]{64}"  # RFC 1035 section 2.3.4


@dataclass(frozen=True, slots=True)
class CheckedDomains:
    """The distinct domains as written, checked."""

    codes: Codes  # position in `names`; -1 if refused
    is_changed: Bools  # accepted, and not written as in the normal form
    growth: npt.NDArray[np.int32]  # octets that the longer one of both forms has more than the text
    names: pa.StringArray  # the distinct accepted ones, lower case, in A-labels
    displays: pa.StringArray  # the same ones in U-labels


def join_domains(written: Iterable[pa.DictionaryArray]) -> tuple[CheckedDomains, list[Codes]]:
    """Check the distinct domains of all pieces; return them and the positions of each piece's domains among them."""
    joined = pa.concat_arrays([each.dictionary for each in written]).dictionary_encode()
    ends = np.cumsum([len(each.dictionary) for each in written])
    return check_domains(pc.utf8_slice_codeunits(joined.dictionary, 1)), np.split(
        joined.indices.to_numpy(), ends[:-1]
    )


def check_domains(written: pa.StringArray) -> CheckedDomains:
    """Check distinct domains, as written."""
    lowered = pc.ascii_lower(written)
    is_idna = pa.array(may_be_idna(lowered))
    found = [normalize_domain(domain) for domain in written.filter(is_idna).to_pylist()]
    names = texts_where(pa.array(is_host_name(lowered)), lowered)
    displays = pc.replace_with_mask(
        names, is_idna, pa.array([each and each.display for each in found], pa.string())
    )
    names = pc.replace_with_mask(
        names, is_idna, pa.array([each and each.ascii for each in found], pa.string())
    )
    encoded = names.dictionary_encode()
    codes = encoded.indices.fill_null(REFUSED).to_numpy()
    sizes = [pc.binary_length(each) for each in (names, displays, written)]
    growth = pc.subtract(pc.max_element_wise(*sizes[:2]), sizes[2]).fill_null(0)
    accepted = np.flatnonzero(codes >= 0)
    last_of_name = np.empty(len(encoded.dictionary), np.intp)
    last_of_name[codes[accepted]] = accepted
    return CheckedDomains(
        codes,
        is_changed=to_bools(pc.not_equal(displays, written).fill_null(False)),
        growth=growth.to_numpy(),
        names=encoded.dictionary,
        displays=displays.take(pa.array(last_of_name)),
    )


def may_be_idna(lowered: pa.StringArray) -> Bools:
    """Whether a domain is non-ASCII or may have an A-label, the only kind with two hyphens (RFC 5891 4.2.3.1)."""
    return ~to_bools(pc.string_is_ascii(lowered)) | to_bools(pc.match_substring(lowered, "--"))


def is_host_name(lowered: pa.StringArray) -> Bools:
    """Whether a domain is a plain host name that may be on the Internet."""
    plain = to_bools(pc.match_substring_regex(lowered, HOST_NAME)) & ~to_bools(
        pc.match_substring(lowered, "--")
    )
    plain &= ~to_bools(pc.match_substring_regex(lowered, SPECIAL_USE))
    long = np.flatnonzero(to_bools(pc.greater(pc.binary_length(lowered), 64)) & plain)
    plain[long] = ~to_bools(pc.match_substring_regex(lowered.take(pa.array(long)), LONG_LABEL))
    return plain


# --- messages about refused rows ------------------------------------------------------------------------------------

FEW = 300  # texts that are described one by one as fast as the patterns of a column are compiled
ASCII_FAULTS = tuple(fault for fault in SYNTAX_FAULTS if not fault.non_ascii)


def fault_messages(
    texts: pa.StringArray | pa.ChunkedArray, ok: pa.BooleanArray
) -> pa.DictionaryArray:
    """Describe why each refused row is refused, in the words of `observe_syntax`; null if ok.

    >>> texts = pa.array(["ada@web.de", "ada@web"])
    >>> fault_messages(texts, observe_column(texts).ok).to_pylist()
    [None, 'There is no dot in the domain.']
    """
    if not ok.false_count:
        return pa.DictionaryArray.from_arrays(
            pa.nulls(len(texts), pa.int32()), pa.array([], pa.string())
        )
    messages = {TOO_LONG: 0}  # and their codes, in order of appearance
    codes = np.zeros(len(texts), np.int32)
    short = pc.and_not(pc.less_equal(pc.binary_length(texts), MAX_OCTETS), ok)
    refused = one_array(texts.filter(short))
    if len(refused) <= FEW:
        codes[to_bools(short)] = [
            code_of(describe_refusal(text), messages) for text in refused.to_pylist()
        ]
    else:
        codes[to_bools(short)] = describe_refusals(refused.cast(pa.string()), messages)
    sentences = pa.array(list(messages), pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=to_bools(ok)), sentences)


def code_of(message: str, messages: dict[str, int]) -> int:
    """Return the code of a message, a new one for a new message."""
    return messages.setdefault(message, len(messages))


def describe_refusals(texts: pa.StringArray, messages: dict[str, int]) -> Codes:
    """Return the message codes of refused texts that are not too long."""
    codes = np.empty(len(texts), np.int32)
    ascii_only = pc.string_is_ascii(texts)
    rows, left = np.flatnonzero(to_bools(ascii_only)), texts.filter(ascii_only)
    for fault in ASCII_FAULTS:
        found = pc.match_substring_regex(left, as_re2(fault))
        codes[rows[to_bools(found)]] = fault_codes(fault, left.filter(found), messages)
        rows, left = rows[~to_bools(found)], left.filter(pc.invert(found))
    rest = np.concatenate([rows, np.flatnonzero(~to_bools(ascii_only))])
    codes[rest] = [
        code_of(describe_refusal(text), messages) for text in texts.take(pa.array(rest)).to_pylist()
    ]
    return codes


def as_re2(fault: SyntaxFault) -> str:
    """Write the pattern as RE2 reads it."""
    return "(?s)" + fault.pattern.replace(r"\Z", r"\z")


def fault_codes(fault: SyntaxFault, texts: pa.StringArray, messages: dict[str, int]) -> Codes | int:
    """Return one code for all `texts`, or one for each if the message names a character."""
    if "{" not in fault.sentence:
        return code_of(fault.sentence, messages)
    chars = pc.struct_field(pc.extract_regex(texts, as_re2(fault)), "char").dictionary_encode()
    named = (
        fault.sentence.format(char=describe_character(char))
        for char in chars.dictionary.to_pylist()
    )
    codes: Codes = np.array([code_of(message, messages) for message in named], np.int32)[
        chars.indices.to_numpy()
    ]
    return codes
