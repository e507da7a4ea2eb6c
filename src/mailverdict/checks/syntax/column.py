"""Syntax of a whole column, with Arrow and numpy: the same answers as `observe_syntax`, row by row.

In this order: slice the column into pieces; split each text at its first @, check the local parts of each piece
(both in kernels.py); check each distinct domain of all pieces once; combine both sides, piece by piece. Normal forms
are joined when they are first used. What the patterns cannot decide (non-ASCII texts, A-labels) is checked one by one
in address.py. `fault_messages` then describes the refused rows. The kernels are measured; there is no Python loop over
all rows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from email_validator import SPECIAL_USE_DOMAIN_NAMES

from ...model.table import one_array
from .address import DomainName, describe_refusal, normalize_domain
from .faults import MAX_OCTETS, SYNTAX_FAULTS, TOO_LONG, SyntaxFault, describe_character
from .kernels import (
    DOMAINS,
    LOCAL_PARTS,
    Bools,
    Codes,
    Octets,
    Offsets,
    Rows,
    SplitTexts,
    build_strings,
    check_local_parts,
    concat_texts,
    match_locals,
    match_names,
    select_half,
    split_at,
    to_bools,
    with_short_offsets,
)

PIECE_ROWS = 131_072  # large enough to hide the cost of a call, small enough to stay in the processor's cache
REFUSED = np.int32(-1)

# --- the column -----------------------------------------------------------------------------------------------------


class RowForms(Protocol):
    """The normal forms of the rows of a column."""

    def local(self) -> pa.StringArray:
        """Local parts; null if refused."""
        ...

    def normalized(self) -> pa.StringArray:
        """Addresses; null if refused."""
        ...

    def match_locals(self, names: Iterable[str]) -> pa.BooleanArray:
        """As `kernels.match_locals`."""
        ...

    def take(self, rows: Rows) -> RowForms:
        """The normal forms of some rows, which ascend."""
        ...


@dataclass(frozen=True)
class SyntaxColumn:
    """The syntax check of a column, row by row. The normal forms are made when they are first used."""

    ok: pa.BooleanArray  # whether the row is accepted; no nulls
    domain_codes: pa.Int32Array  # position of the row's domain in `domains`; null if not ok
    domains: pa.StringArray  # distinct domains of the accepted rows in order of appearance, lower case, in A-labels
    forms: RowForms

    @cached_property
    def local(self) -> pa.StringArray:
        """Local part of the normal form; null if not ok."""
        return self.forms.local()

    @cached_property
    def normalized(self) -> pa.StringArray:
        """Normal form of the address; null if not ok."""
        return self.forms.normalized()

    def match_locals(self, names: Iterable[str]) -> pa.BooleanArray:
        """Whether each local part, in lower case and without a ``+tag``, is one of `names`; null if not ok."""
        return self.forms.match_locals(names)

    def changed_rows(self) -> Rows:
        """The accepted rows whose normal form may differ from the text, ascending."""
        forms = self.forms
        return forms.changed_rows() if isinstance(forms, SplitForms) else np.flatnonzero(to_bools(self.ok))

    def unusual_rows(self) -> Rows:
        """The accepted rows that may have other characters than ASCII letters, digits and ``-./_+@``, ascending."""
        forms = self.forms
        rows = forms.unusual_rows() if isinstance(forms, SplitForms) else np.arange(len(self.ok))
        return rows[to_bools(self.ok)[rows]]

    def take(self, rows: Rows) -> SyntaxColumn:
        """The check of some rows, which ascend; all domains stay."""
        wanted = pa.array(rows)
        return SyntaxColumn(
            self.ok.take(wanted), self.domain_codes.take(wanted), self.domains, forms=self.forms.take(rows)
        )

    def slice(self, start: int, size: int) -> SyntaxColumn:
        """The check of some rows; all domains stay."""
        if size == len(self.ok):
            return self
        ok, codes, local, normalized = (
            each.slice(start, size) for each in (self.ok, self.domain_codes, self.local, self.normalized)
        )
        return SyntaxColumn(ok, codes, self.domains, MadeForms(local, normalized))

    def replace_rows(self, mask: pa.BooleanArray, other: SyntaxColumn) -> SyntaxColumn:
        """Replace the rows of `mask` by those of another check."""
        is_new = pc.invert(pc.is_in(other.domains, value_set=self.domains))
        domains = pa.concat_arrays([self.domains, other.domains.filter(is_new)])
        codes = pc.index_in(other.domains, value_set=domains).take(other.domain_codes)
        return SyntaxColumn(
            ok=pc.replace_with_mask(self.ok, mask, other.ok),
            domain_codes=pc.replace_with_mask(self.domain_codes, mask, codes),
            domains=domains,
            forms=ReplacedForms(self.forms, mask, other.forms),
        )


@dataclass(frozen=True, slots=True)
class MadeForms:
    """Normal forms that exist already."""

    local_parts: pa.StringArray
    addresses: pa.StringArray

    def local(self) -> pa.StringArray:
        return self.local_parts

    def normalized(self) -> pa.StringArray:
        return self.addresses

    def match_locals(self, names: Iterable[str]) -> pa.BooleanArray:
        return match_locals(self.local_parts, names)

    def take(self, rows: Rows) -> MadeForms:
        return MadeForms(self.local_parts.take(pa.array(rows)), self.addresses.take(pa.array(rows)))


@dataclass(frozen=True, slots=True)
class ReplacedForms:
    """Normal forms of which those of some rows are replaced by others."""

    forms: RowForms
    mask: pa.BooleanArray
    others: RowForms

    def local(self) -> pa.StringArray:
        return pc.replace_with_mask(self.forms.local(), self.mask, self.others.local())

    def normalized(self) -> pa.StringArray:
        return pc.replace_with_mask(self.forms.normalized(), self.mask, self.others.normalized())

    def match_locals(self, names: Iterable[str]) -> pa.BooleanArray:
        names = frozenset(names)
        return pc.replace_with_mask(self.forms.match_locals(names), self.mask, self.others.match_locals(names))

    def take(self, rows: Rows) -> ReplacedForms:
        is_new = to_bools(self.mask)
        others = self.others.take((np.cumsum(is_new) - 1)[rows[is_new[rows]]])
        return ReplacedForms(self.forms.take(rows), pa.array(is_new[rows]), others)


@dataclass(frozen=True, slots=True)
class CheckedPiece:
    """The check of some rows."""

    split: SplitTexts
    ok: Bools
    codes: Codes  # position of the domain in `CheckedDomains.names`; -1 if not ok
    local_changes: dict[int, str]  # by row: normal forms of local parts that differ from the text
    unusual: Rows  # that may have other octets than the common ones
    domain_at: Codes  # position of the domain in `CheckedDomains`


@dataclass(frozen=True, slots=True)
class SplitForms:
    """Normal forms that are made from the texts split at their @."""

    pieces: list[CheckedPiece]
    domains: CheckedDomains
    ok: pa.BooleanArray

    def local(self) -> pa.StringArray:
        halves = [select_half(each.split, LOCAL_PARTS) for each in self.pieces]
        return build_strings(*concat_texts(halves, [each.local_changes for each in self.pieces]), self.ok.buffers()[1])

    def normalized(self) -> pa.StringArray:
        changes = [normalize_rows(each, self.domains) for each in self.pieces]
        octets, offsets = concat_texts([each.split.texts for each in self.pieces], changes)
        start = 0
        for piece in self.pieces:
            rows = np.flatnonzero(self.domains.has_capitals[piece.domain_at])
            lengths = piece.split.starts[1:][rows] - piece.split.ats[rows]
            lower_tails(octets, offsets[start + 1 + rows], lengths)
            start += len(piece.ok)
        return build_strings(octets, offsets, self.ok.buffers()[1])

    def match_locals(self, names: Iterable[str]) -> pa.BooleanArray:
        known = tuple(sorted(names))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = list(pool.map(lambda piece: match_piece(piece, known), self.pieces))
        return pa.array(np.concatenate(found), mask=~to_bools(self.ok))

    def take(self, rows: Rows) -> SplitForms:
        starts = self.starts()
        parts = np.split(rows, np.searchsorted(rows, starts[1:]))
        taken = [take_piece(*each) for each in zip(self.pieces, map(np.subtract, parts, starts), strict=True)]
        return SplitForms(taken, self.domains, self.ok.take(pa.array(rows)))

    def changed_rows(self) -> Rows:
        concerned, idna = self.domains.has_capitals.copy(), self.domains.idna
        written = self.domains.written.take(pa.array(idna, pa.int32())).to_pylist()
        concerned[[at for at, text in zip(idna, written, strict=True) if text != f"@{idna[at].display}"]] = True
        return self.joined([changed_rows(each, concerned) for each in self.pieces])

    def unusual_rows(self) -> Rows:
        return self.joined([each.unusual for each in self.pieces])

    def starts(self) -> Rows:
        """The row of the column with which each piece begins."""
        return np.cumsum([0, *(len(each.ok) for each in self.pieces[:-1])])

    def joined(self, rows: Iterable[Rows]) -> Rows:
        """Rows of each piece as rows of the column."""
        return np.concatenate(list(map(np.add, rows, self.starts())))


@dataclass(frozen=True, slots=True)
class SplitPiece:
    """Some rows, split at the @."""

    split: SplitTexts
    domain: pa.DictionaryArray  # as written, with its @


def observe_column(texts: pa.StringArray | pa.ChunkedArray, *, threads: int | None = None) -> SyntaxColumn:
    """Check a column of addresses, without nulls and surrounding blanks, on all processors or `threads`.

    The accepted texts together must be shorter than 2 GiB; slice a longer column.

    >>> column = observe_column(pa.array(["Ada@Web.DE", "ada@web", "ben@web.de"]))
    >>> column.normalized.to_pylist(), column.domains.to_pylist(), column.domain_codes.to_pylist()
    (['Ada@web.de', None, 'ben@web.de'], ['web.de'], [0, None, 0])
    """
    return observe_pieces(slice_rows(texts), threads=threads)


def observe_pieces(texts: Iterable[pa.Array], *, threads: int | None = None) -> SyntaxColumn:
    """Check a column as `observe_column` does that comes in pieces, at least one.

    A piece is split while the next one is made, if `texts` is a generator.
    """
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        pieces = list(pool.map(split_piece, texts))
        checking_domains = pool.submit(join_domains, pieces)
        local_results = pool.map(check_local_parts, [each.split for each in pieces])
        domains, positions = checking_domains.result()
        checked = list(pool.map(partial(check_piece, domains), pieces, positions, local_results))
    ok = pa.array(np.concatenate([each.ok for each in checked]))
    codes, names = drop_unused_domains(np.concatenate([each.codes for each in checked]), domains.names)
    valid = ok.buffers()[1]
    return SyntaxColumn(
        ok=ok,
        domain_codes=pa.Array.from_buffers(pa.int32(), len(codes), [valid, pa.py_buffer(codes)]),
        domains=names,
        forms=SplitForms(checked, domains, ok),
    )


def slice_rows(texts: pa.StringArray | pa.ChunkedArray) -> Iterator[pa.Array]:
    """Slice into pieces, at least one, without copying."""
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    for chunk in chunks:
        for start in range(0, len(chunk), PIECE_ROWS):
            yield chunk.slice(start, PIECE_ROWS)
    if not len(texts):
        yield pa.array([], pa.string())


def split_piece(texts: pa.Array) -> SplitPiece:
    """Split some rows, and find their distinct domains."""
    split = split_at(blank_long_texts(texts))
    return SplitPiece(split, select_half(split, DOMAINS).dictionary_encode())


def blank_long_texts(texts: pa.Array) -> pa.StringArray:
    """Replace texts that are too long for any address by empty ones, so that huge cells cost nothing later."""
    lengths = pc.binary_length(texts)
    if (pc.max(lengths).as_py() or 0) > MAX_OCTETS:
        texts = pc.if_else(pc.less_equal(lengths, MAX_OCTETS), texts, pa.scalar("", texts.type))
    return with_short_offsets(texts)


def check_piece(
    domains: CheckedDomains, piece: SplitPiece, positions: Codes, local_result: tuple[Bools, dict[int, str], Rows]
) -> CheckedPiece:
    """Combine the checks of both sides; `positions` are those of the piece's distinct domains in `domains`."""
    ok, local_changes, unusual = local_result
    domain_at = positions[piece.domain.indices.to_numpy()]
    codes = domains.codes[domain_at]
    ok &= codes >= 0
    checked = CheckedPiece(piece.split, ok, codes, local_changes, unusual, domain_at)
    rows = rows_with_other_forms(checked, domains)
    local_lengths = (piece.split.ats - piece.split.starts[:-1])[rows]
    changed = [row in local_changes for row in rows.tolist()]
    local_lengths[changed] = [len(local_changes[row].encode()) for row in rows[changed].tolist()]
    ok[rows[local_lengths + 1 + domains.longest[domain_at[rows]] > MAX_OCTETS]] = False
    codes[~ok] = REFUSED
    return checked


def rows_with_other_forms(piece: CheckedPiece, domains: CheckedDomains) -> Rows:
    """Return the accepted rows whose normal form may differ in more than the domain's capitals."""
    concerned = np.zeros(len(domains.codes), np.bool_)
    concerned[list(domains.idna)] = True
    return changed_rows(piece, concerned)


def changed_rows(piece: CheckedPiece, concerned: Bools) -> Rows:
    """Return the accepted rows whose domain is `concerned`, or whose local part has another normal form."""
    is_changed = concerned[piece.domain_at]
    is_changed[list(piece.local_changes)] = True
    return np.flatnonzero(is_changed & piece.ok)


def take_piece(piece: CheckedPiece, rows: Rows) -> CheckedPiece:
    """Return the check of some rows of a piece."""
    changes, is_unusual = piece.local_changes, np.isin(rows, piece.unusual)
    return CheckedPiece(
        split=split_at(piece.split.texts.take(pa.array(rows))),
        ok=piece.ok[rows],
        codes=piece.codes[rows],
        local_changes={at: changes[row] for at, row in enumerate(rows.tolist()) if row in changes},
        unusual=np.flatnonzero(is_unusual),
        domain_at=piece.domain_at[rows],
    )


def normalize_rows(piece: CheckedPiece, domains: CheckedDomains) -> dict[int, str]:
    """Return the normal forms that differ in more than the domain's capitals, by row."""
    rows = rows_with_other_forms(piece, domains)
    texts = piece.split.texts.take(pa.array(rows)).to_pylist()
    normal_forms = {}
    for row, position, text in zip(rows.tolist(), piece.domain_at[rows].tolist(), texts, strict=True):
        domain = domains.idna[position].display if position in domains.idna else domains.plain_name(position)
        normal = f"{piece.local_changes.get(row) or text.partition('@')[0]}@{domain}"
        if normal != text:
            normal_forms[row] = normal
    return normal_forms


def match_piece(piece: CheckedPiece, names: tuple[str, ...]) -> Bools:
    """Whether the local part of each row is one of `names`, as `kernels.match_locals` decides it."""
    found = match_names(piece.split, names)
    if piece.local_changes:
        changed = pa.array(piece.local_changes.values(), pa.string())
        found[list(piece.local_changes)] = match_names(split_at(changed), names)
    return found


def lower_tails(octets: Octets, ends: Offsets, lengths: Offsets) -> None:
    """Put the last `lengths` octets before each of `ends` in lower case, in place."""
    inside = np.repeat(ends - np.cumsum(lengths), lengths) + np.arange(lengths.sum())
    letters = octets[inside]
    octets[inside] = np.where(letters - np.uint8(ord("A")) < 26, letters | 0x20, letters)


def drop_unused_domains(codes: Codes, names: pa.StringArray) -> tuple[Codes, pa.StringArray]:
    """Drop the domains that only refused rows have, so that they are not looked up."""
    used = np.zeros(len(names) + 1, np.bool_)
    used[codes] = True  # -1, refused, is the additional last one
    if used[:-1].all():
        return codes, names
    renamed = np.cumsum(used, dtype=np.int32) - np.int32(1)
    renamed[-1] = REFUSED
    return renamed[codes], names.filter(pa.array(used[:-1]))


# --- its domains ----------------------------------------------------------------------------------------------------

LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\-]*[A-Za-z0-9])?"
HOST_NAME = rf"\A@(?:{LABEL}\.)+(?:[A-Za-z0-9][A-Za-z0-9\-]*)?[A-Za-z]\z"  # the top-level label ends with a letter
SPECIAL_USE = rf"[@.](?:{'|'.join(map(re.escape, SPECIAL_USE_DOMAIN_NAMES))})\z"
LONG_LABEL = r"[^@.]{64}"  # RFC 1035 section 2.3.4


@dataclass(frozen=True, slots=True)
class CheckedDomains:
    """The distinct domains as written, checked."""

    written: pa.StringArray  # with their @
    codes: Codes  # position in `names`; -1 if refused
    has_capitals: Bools  # a plain host name with capitals
    idna: dict[int, DomainName]  # accepted by email-validator itself, by position
    longest: npt.NDArray[np.int32]  # octets of the longer one of both forms
    names: pa.StringArray  # the distinct accepted ones, lower case, in A-labels

    def plain_name(self, position: int) -> str:
        """Return a plain host name in lower case."""
        name: str = self.names[self.codes[position].item()].as_py()
        return name


def join_domains(pieces: list[SplitPiece]) -> tuple[CheckedDomains, list[Codes]]:
    """Check the distinct domains of all pieces; return them and the positions of each piece's domains among them."""
    joined = pa.concat_arrays([piece.domain.dictionary for piece in pieces]).dictionary_encode()
    ends = np.cumsum([len(piece.domain.dictionary) for piece in pieces])
    return check_domains(joined.dictionary), np.split(joined.indices.to_numpy(), ends[:-1])


def check_domains(written: pa.StringArray) -> CheckedDomains:
    """Check distinct domains, as written and with their @."""
    lowered = pc.ascii_lower(written)
    idna = check_idna(written, may_be_idna(lowered))
    plain = is_host_name(lowered)
    accepted = plain.copy()
    accepted[list(idna)] = True
    replaced = {position: name.ascii for position, name in idna.items()}
    names = build_strings(*concat_texts([pc.utf8_slice_codeunits(lowered, 1)], [replaced]))
    encoded = pc.if_else(pa.array(accepted), names, None).dictionary_encode()
    has_capitals = plain & to_bools(pc.not_equal(lowered, written))
    longest = pc.binary_length(written).to_numpy() - np.int32(len("@"))
    longest[list(idna)] = [max(len(name.ascii), len(name.display.encode())) for name in idna.values()]
    codes = encoded.indices.fill_null(-1).to_numpy()
    return CheckedDomains(written, codes, has_capitals, idna, longest, encoded.dictionary)


def may_be_idna(lowered: pa.StringArray) -> Bools:
    """Whether a domain is non-ASCII or may have an A-label, the only kind with two hyphens (RFC 5891 4.2.3.1)."""
    return ~to_bools(pc.string_is_ascii(lowered)) | to_bools(pc.match_substring(lowered, "--"))


def is_host_name(lowered: pa.StringArray) -> Bools:
    """Whether a domain is a plain host name that may be on the Internet."""
    plain = to_bools(pc.match_substring_regex(lowered, HOST_NAME)) & ~to_bools(pc.match_substring(lowered, "--"))
    plain &= ~to_bools(pc.match_substring_regex(lowered, SPECIAL_USE))
    long = np.flatnonzero(to_bools(pc.greater(pc.binary_length(lowered), 64)) & plain)
    plain[long] = ~to_bools(pc.match_substring_regex(lowered.take(pa.array(long)), LONG_LABEL))
    return plain


def check_idna(written: pa.StringArray, concerned: Bools) -> dict[int, DomainName]:
    """Check some domains with email-validator; return the accepted ones by position."""
    accepted = {}
    texts = written.filter(pa.array(concerned)).to_pylist()
    for position, domain in zip(np.flatnonzero(concerned).tolist(), texts, strict=True):
        name = normalize_domain(domain[1:])
        if name is not None:
            accepted[position] = name
    return accepted


# --- messages about refused rows ------------------------------------------------------------------------------------

FEW = 300  # texts that are described one by one as fast as the patterns of a column are compiled
ASCII_FAULTS = tuple(fault for fault in SYNTAX_FAULTS if not fault.non_ascii)


class MessageCodes:
    """Messages and their codes, in order of appearance."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}

    def code(self, message: str) -> int:
        """Return the code of a message, a new one for a new message."""
        return self.codes.setdefault(message, len(self.codes))


def fault_messages(texts: pa.StringArray | pa.ChunkedArray, ok: pa.BooleanArray) -> pa.DictionaryArray:
    """Describe why each refused row is refused, in the words of `observe_syntax`; null if ok.

    >>> texts = pa.array(["ada@web.de", "ada@web"])
    >>> fault_messages(texts, observe_column(texts).ok).to_pylist()
    [None, 'There is no dot in the domain.']
    """
    if not ok.false_count:
        return pa.DictionaryArray.from_arrays(pa.nulls(len(texts), pa.int32()), pa.array([], pa.string()))
    messages = MessageCodes()
    codes = np.full(len(texts), messages.code(TOO_LONG), np.int32)
    short = pc.and_not(pc.less_equal(pc.binary_length(texts), MAX_OCTETS), ok)
    refused = one_array(texts.filter(short))
    if len(refused) <= FEW:
        codes[to_bools(short)] = [messages.code(describe_refusal(text)) for text in refused.to_pylist()]
    else:
        codes[to_bools(short)] = describe_refusals(refused.cast(pa.string()), messages)
    sentences = pa.array(list(messages.codes), pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=to_bools(ok)), sentences)


def describe_refusals(texts: pa.StringArray, messages: MessageCodes) -> Codes:
    """Return the message codes of refused texts that are not too long."""
    codes = np.empty(len(texts), np.int32)
    ascii_only = pc.string_is_ascii(texts)
    rows, left = np.flatnonzero(to_bools(ascii_only)), texts.filter(ascii_only)
    for fault in ASCII_FAULTS:
        found = pc.match_substring_regex(left, as_re2(fault))
        codes[rows[to_bools(found)]] = fault_codes(fault, left.filter(found), messages)
        rows, left = rows[~to_bools(found)], left.filter(pc.invert(found))
    rest = np.concatenate([rows, np.flatnonzero(~to_bools(ascii_only))])
    codes[rest] = [messages.code(describe_refusal(text)) for text in texts.take(pa.array(rest)).to_pylist()]
    return codes


def as_re2(fault: SyntaxFault) -> str:
    """Write the pattern as RE2 reads it."""
    return "(?s)" + fault.pattern.replace(r"\Z", r"\z")


def fault_codes(fault: SyntaxFault, texts: pa.StringArray, messages: MessageCodes) -> Codes | int:
    """Return one code for all `texts`, or one for each if the message names a character."""
    if "{" not in fault.sentence:
        return messages.code(fault.sentence)
    chars = pc.struct_field(pc.extract_regex(texts, as_re2(fault)), "char").dictionary_encode()
    named = (fault.sentence.format(char=describe_character(char)) for char in chars.dictionary.to_pylist())
    codes: Codes = np.array([messages.code(message) for message in named], np.int32)[chars.indices.to_numpy()]
    return codes
