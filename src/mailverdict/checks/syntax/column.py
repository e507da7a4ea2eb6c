"""The domains of a column: each distinct one is checked once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from email_validator import SPECIAL_USE_DOMAIN_NAMES

from .address import DomainName, explain_refusal, normalize_domain
from .arrays import DOMAINS, LOCAL_PARTS, Bools, Cut, Octets, Positions, bools, cut_at, half, join_texts, narrow, pack
from .faults import MAX_OCTETS, SYNTAX_FAULTS, TOO_LONG, SyntaxFault, describe_character
from .local_parts import check_locals

__all__ = ["Domains", "SyntaxColumn", "check_domains", "fault_messages", "observe_column"]

LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\-]*[A-Za-z0-9])?"
HOST_NAME = rf"\A@(?:{LABEL}\.)+(?:[A-Za-z0-9][A-Za-z0-9\-]*)?[A-Za-z]\z"  # the top-level label ends with a letter
LONG_LABEL = r"[^@.]{64}"  # RFC 1035 section 2.3.4


@dataclass(frozen=True, slots=True)
class Domains:
    """What is known of the domains as written."""

    codes: Positions  # which of `names`; -1 where refused
    lowerable: Bools  # a plain host name with capitals
    foreign: dict[int, DomainName]  # accepted by email-validator itself, by position
    names: pa.StringArray  # the distinct accepted ones, lower case, in A-labels


def check_domains(written: pa.StringArray) -> Domains:
    """Check distinct domains that come with their @ in front."""
    lowered = pc.ascii_lower(written)
    foreign = check_foreign(written, is_foreign(lowered))
    plain = is_host_name(lowered)
    accepted = plain.copy()
    accepted[list(foreign)] = True
    names = pack(*join_texts([pc.utf8_slice_codeunits(lowered, 1)], [{code: f.ascii for code, f in foreign.items()}]))
    encoded = pc.if_else(pa.array(accepted), names, None).dictionary_encode()
    lowerable = plain & bools(pc.not_equal(lowered, written))
    return Domains(encoded.indices.fill_null(-1).to_numpy(), lowerable, foreign, encoded.dictionary)


def is_foreign(lowered: pa.StringArray) -> Bools:
    """Whether IDNA may have to do with a domain; two hyphens can only be right in an A-label (RFC 5891 4.2.3.1)."""
    return ~bools(pc.string_is_ascii(lowered)) | bools(pc.match_substring(lowered, "--"))


def is_host_name(lowered: pa.StringArray) -> Bools:
    """Whether a domain is a plain host name that may be on the Internet."""
    plain = bools(pc.match_substring_regex(lowered, HOST_NAME)) & ~bools(pc.match_substring(lowered, "--"))
    for name in SPECIAL_USE_DOMAIN_NAMES:
        plain &= ~bools(pc.ends_with(lowered, f".{name}")) & ~bools(pc.equal(lowered, f"@{name}"))
    long = np.flatnonzero(bools(pc.greater(pc.binary_length(lowered), 64)) & plain)
    plain[long] = ~bools(pc.match_substring_regex(lowered.take(pa.array(long)), LONG_LABEL))
    return plain


def check_foreign(written: pa.StringArray, concerned: Bools) -> dict[int, DomainName]:
    """Ask email-validator about some domains; give the accepted ones by position."""
    accepted = {}
    texts = written.filter(pa.array(concerned)).to_pylist()
    for code, domain in zip(np.flatnonzero(concerned).tolist(), texts, strict=True):
        name = normalize_domain(domain[1:])
        if name is not None:
            accepted[code] = name
    return accepted


PIECE_ROWS = 131_072  # large enough to hide the cost of a call, small enough to stay in cache
REFUSED = np.int32(-1)


@dataclass(frozen=True, slots=True)
class SyntaxColumn:
    """What the syntax check saw in a column of `n` rows.

    Attributes
    ----------
    ok : pyarrow.BooleanArray
        Whether the row is accepted; no nulls.
    local : pyarrow.StringArray
        Local part of the normal form; null where not ok.
    domain_codes : pyarrow.Int32Array
        Position of the row's domain in `domains`; null where not ok.
    domains : pyarrow.StringArray
        The distinct domains of the accepted rows in order of appearance, lower case, in A-labels.
    normalized : pyarrow.StringArray
        The normal form of the address; null where not ok.
    """

    ok: pa.BooleanArray
    local: pa.StringArray
    domain_codes: pa.Int32Array
    domains: pa.StringArray
    normalized: pa.StringArray


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows, cut."""

    cut: Cut
    local: pa.StringArray
    domain: pa.DictionaryArray  # as written, with its @


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers for some rows."""

    ok: Bools
    codes: Positions  # of the names; -1 where not ok
    local_changes: dict[int, str]  # by row: the normal form of a local part that has another one
    changes: dict[int, str]  # by row: the normal form of an address that differs in more than the domain's case
    lowerable: Bools  # whether the domain is to be put in lower case


def observe_column(texts: pa.StringArray | pa.ChunkedArray, *, threads: int | None = None) -> SyntaxColumn:
    """Check the syntax of a column of addresses; every row comes out as from `observe_syntax`.

    Parameters
    ----------
    texts : pyarrow.StringArray or pyarrow.ChunkedArray
        The addresses, ``string`` or ``large_string``, without nulls and surrounding blanks. The accepted
        ones together must be shorter than 2 GiB; slice a longer column.
    threads : int, optional
        How many threads to use; as many as there are processors by default.

    Returns
    -------
    SyntaxColumn
        The answers, row by row.

    Examples
    --------
    >>> seen = observe_column(pa.array(["Ada@Web.DE", "ada@web", "ben@web.de"]))
    >>> seen.normalized.to_pylist(), seen.domains.to_pylist(), seen.domain_codes.to_pylist()
    (['Ada@web.de', None, 'ben@web.de'], ['web.de'], [0, None, 0])
    """
    slices = list(slice_rows(texts))
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        pieces = list(pool.map(cut_piece, slices))
        written = pool.submit(join_domains, pieces)
        locals_seen = pool.map(check_locals, [piece.cut for piece in pieces], [piece.local for piece in pieces])
        domains, places = written.result()
        answers = list(pool.map(partial(answer_piece, domains), pieces, places, locals_seen))
        return join_answers(pieces, answers, domains.names, pool)


def slice_rows(texts: pa.StringArray | pa.ChunkedArray) -> Iterator[pa.Array]:
    """Slice into pieces, at least one, without copying."""
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    for chunk in chunks:
        for start in range(0, len(chunk), PIECE_ROWS):
            yield chunk.slice(start, PIECE_ROWS)
    if not len(texts):
        yield pa.array([], pa.string())


def cut_piece(texts: pa.Array) -> Piece:
    """Cut some rows, and find their distinct domains."""
    cut = cut_at(empty_long(texts))
    return Piece(cut, half(cut, LOCAL_PARTS), half(cut, DOMAINS).dictionary_encode())


def join_domains(pieces: list[Piece]) -> tuple[Domains, list[Positions]]:
    """Check the distinct domains of all pieces, and tell where each piece's own ones are among them."""
    joined = pa.concat_arrays([piece.domain.dictionary for piece in pieces]).dictionary_encode()
    ends = np.cumsum([len(piece.domain.dictionary) for piece in pieces])
    return check_domains(joined.dictionary), np.split(joined.indices.to_numpy(), ends[:-1])


def answer_piece(domains: Domains, piece: Piece, places: Positions, seen: tuple[Bools, dict[int, str]]) -> Answers:
    """Put together what is known of both sides of each row."""
    local_ok, changed = seen
    written = places[piece.domain.indices.to_numpy()]
    codes = domains.codes[written]
    ok = local_ok & (codes >= 0)
    lines = rewrite_rows(piece, domains, written, changed, ok)
    ok[[row for row, line in lines.items() if line is None]] = False
    changes = {row: line for row, line in lines.items() if line is not None}
    return Answers(ok, np.where(ok, codes, REFUSED), changed, changes, domains.lowerable[written])


def empty_long(texts: pa.Array) -> pa.StringArray:
    """Empty the rows that are too long for any address, so that huge cells cost nothing from here on."""
    lengths = pc.binary_length(texts)
    if (pc.max(lengths).as_py() or 0) > MAX_OCTETS:
        texts = pc.if_else(pc.less_equal(lengths, MAX_OCTETS), texts, pa.scalar("", texts.type))
    return narrow(texts)


def rewrite_rows(
    piece: Piece, domains: Domains, written: Positions, changed: dict[int, str], ok: Bools
) -> dict[int, str | None]:
    """Give the normal forms that differ in more than the domain's capitals; None where one is too long."""
    concerned = np.zeros(len(domains.codes), np.bool_)
    concerned[list(domains.foreign)] = True
    concerned = concerned[written]
    concerned[list(changed)] = True
    rows = np.flatnonzero(concerned & ok)
    lines = {}
    for row, code, text, local in zip(
        rows.tolist(),
        written[rows].tolist(),
        piece.cut.texts.take(pa.array(rows)).to_pylist(),
        piece.local.take(pa.array(rows)).to_pylist(),
        strict=True,
    ):
        domain = domains.foreign.get(code)
        line = normal_line(changed.get(row, local), domain or plain_domain(domains, code))
        if line != text:
            lines[row] = line
    return lines


def plain_domain(domains: Domains, code: int) -> DomainName:
    """Give both forms of a plain host name: they are one."""
    name = domains.names[domains.codes[code].item()].as_py()
    return DomainName(name, name)


def normal_line(local: str, domain: DomainName) -> str | None:
    """Join both sides of an address, or give None if it is too long with the domain in U-labels or in A-labels."""
    line = f"{local}@{domain.display}"
    longest = max(len(line.encode()), len(local.encode()) + 1 + len(domain.ascii))
    return line if longest <= MAX_OCTETS else None


def join_answers(pieces: list[Piece], answers: list[Answers], names: pa.StringArray, pool: Executor) -> SyntaxColumn:
    """Put the answers of all pieces together."""
    ok = pa.array(np.concatenate([each.ok for each in answers]))
    valid = ok.buffers()[1]
    normalized = pool.submit(join_normalized, pieces, answers)
    local = pool.submit(join_texts, [each.local for each in pieces], [each.local_changes for each in answers])
    codes, domains = drop_unused(np.concatenate([each.codes for each in answers]), names)
    return SyntaxColumn(
        ok=ok,
        local=pack(*local.result(), valid),
        domain_codes=pa.Array.from_buffers(pa.int32(), len(codes), [valid, pa.py_buffer(codes)]),
        domains=domains,
        normalized=pack(*normalized.result(), valid),
    )


def join_normalized(pieces: list[Piece], answers: list[Answers]) -> tuple[Octets, Positions]:
    """Give the octets and offsets of the normal forms."""
    octets, offsets = join_texts([each.cut.texts for each in pieces], [each.changes for each in answers])
    start = 0
    for piece, answer in zip(pieces, answers, strict=True):
        rows = np.flatnonzero(answer.lowerable)
        lengths = piece.cut.starts[1:][rows] - piece.cut.ats[rows]
        lower_endings(octets, offsets[start + 1 + rows], lengths)
        start += len(answer.ok)
    return octets, offsets


def lower_endings(octets: Octets, ends: Positions, lengths: Positions) -> None:
    """Put the last octets of some elements in lower case, so many of each, where they are."""
    inside = np.repeat(ends - np.cumsum(lengths), lengths) + np.arange(lengths.sum())
    letters = octets[inside]
    octets[inside] = np.where(letters - np.uint8(ord("A")) < 26, letters | 0x20, letters)


def drop_unused(codes: Positions, names: pa.StringArray) -> tuple[Positions, pa.StringArray]:
    """Leave out the names that only refused rows have, so that nobody looks them up."""
    used = np.zeros(len(names) + 1, np.bool_)
    used[codes] = True  # -1, refused, is the one appended
    if used[:-1].all():
        return codes, names
    renamed = np.cumsum(used, dtype=np.int32) - np.int32(1)
    renamed[-1] = REFUSED
    return renamed[codes], names.filter(pa.array(used[:-1]))


ASCII_FAULTS = tuple(fault for fault in SYNTAX_FAULTS if not fault.foreign)


class Book:
    """Sentences and their codes, in order of appearance."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}

    def code(self, sentence: str) -> int:
        """Give the code of a sentence, a new one for a new one."""
        return self.codes.setdefault(sentence, len(self.codes))


def fault_messages(texts: pa.StringArray | pa.ChunkedArray, ok: pa.BooleanArray) -> pa.DictionaryArray:
    """Say of every refused row why it is refused, in the words of `observe_syntax`.

    Parameters
    ----------
    texts : pyarrow.StringArray or pyarrow.ChunkedArray
        The addresses, as given to `observe_column`.
    ok : pyarrow.BooleanArray
        What `observe_column` found.

    Returns
    -------
    pyarrow.DictionaryArray
        ``dictionary<int32, string>``; null where ok.

    Examples
    --------
    >>> from mailverdict.checks.column import observe_column
    >>> texts = pa.array(["ada@web.de", "ada@web"])
    >>> fault_messages(texts, observe_column(texts).ok).to_pylist()
    [None, 'There is no dot in the domain.']
    """
    book = Book()
    codes = np.full(len(texts), book.code(TOO_LONG), np.int32)
    short = pc.and_not(pc.less_equal(pc.binary_length(texts), MAX_OCTETS), ok)
    held = texts.filter(short)
    held = held.combine_chunks() if isinstance(held, pa.ChunkedArray) else held
    codes[bools(short)] = explain_short(held.cast(pa.string()), book)
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=bools(ok)), pa.array(list(book.codes), pa.string()))


def explain_short(texts: pa.StringArray, book: Book) -> Positions:
    """Give the codes of the sentences for refused texts that are not too long."""
    codes = np.empty(len(texts), np.int32)
    ascii_only = pc.string_is_ascii(texts)
    left, held = np.flatnonzero(bools(ascii_only)), texts.filter(ascii_only)
    for fault in ASCII_FAULTS:
        found = pc.match_substring_regex(held, as_re2(fault))
        codes[left[bools(found)]] = code_fault(fault, held.filter(found), book)
        left, held = left[~bools(found)], held.filter(pc.invert(found))
    rest = np.concatenate([left, np.flatnonzero(~bools(ascii_only))])
    codes[rest] = [book.code(explain_refusal(text)) for text in texts.take(pa.array(rest)).to_pylist()]
    return codes


def as_re2(fault: SyntaxFault) -> str:
    """Write the pattern as RE2 reads it."""
    return "(?s)" + fault.pattern.replace(r"\Z", r"\z")


def code_fault(fault: SyntaxFault, texts: pa.StringArray, book: Book) -> Positions | int:
    """Give one code for all `texts`, or one for each where the sentence names a character."""
    if "{" not in fault.sentence:
        return book.code(fault.sentence)
    chars = pc.struct_field(pc.extract_regex(texts, as_re2(fault)), "char").dictionary_encode()
    named = [book.code(fault.sentence.format(char=describe_character(char))) for char in chars.dictionary.to_pylist()]
    codes: Positions = np.array(named, np.int32)[chars.indices.to_numpy()]
    return codes
