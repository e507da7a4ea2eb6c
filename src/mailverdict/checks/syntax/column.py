"""Syntax of a whole column, with Arrow: the same answers as `observe_syntax`, row by row.

`observe_column` gives a table with a row for each text:

    text            well_formed  local  domain            display    as_written
    Ada@WEB.de      true         Ada    web.de            web.de     false
    ada@Bücher.de   true         ada    xn--bcher-kva.de  bücher.de  false
    INFO@web.de     true         info   web.de            web.de     false
    ada@web         false                                            false

Each text is split at its first @. A pattern decides about nearly all local parts, and others about
each distinct domain; what they cannot decide (texts that are not ASCII, A-labels) is checked one by
one in address.py. A long column is split and its local parts are checked in slices, on all
processors. `normal_forms` gives normal forms, and `fault_messages` says why texts are refused.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from email_validator import SPECIAL_USE_DOMAIN_NAMES
from email_validator.rfc_constants import CASE_INSENSITIVE_MAILBOX_NAMES

from ...model.arrow import (
    map_slices,
    one_array,
    one_batch,
    replace_where,
    take_rows,
    texts_where,
    to_bools,
)
from .address import describe_refusal, normalize_domain, normalize_local
from .faults import MAX_OCTETS, SYNTAX_FAULTS, TOO_LONG, describe_character
from .lenient import accept_leniently

ATEXT = r"[A-Za-z0-9_!#$%&'*+\-/=?^`{|}~]"  # RFC 5322 section 3.2.3
DOT_ATOM = rf"\A{ATEXT}+(?:\.{ATEXT}+)*\z"
LOWER_CASE_NAMES = pa.array(CASE_INSENSITIVE_MAILBOX_NAMES)  # of RFC 2142, as INFO

MAY_BE_ODD_FORM = r'\A"|@.*_'

LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\-]*[A-Za-z0-9])?"
# The top-level label ends with a letter.
HOST_NAME = rf"\A(?:{LABEL}\.)+(?:[A-Za-z0-9][A-Za-z0-9\-]*)?[A-Za-z]\z"
SPECIAL_USE = rf"(?:\A|\.)(?:{'|'.join(map(re.escape, SPECIAL_USE_DOMAIN_NAMES))})\z"
LONG_LABEL = r"[^.]{64}"  # RFC 1035 section 2.3.4


def observe_column(
    texts: pa.StringArray, *, threads: int | None = None, lenient: bool = False
) -> pa.RecordBatch:
    """Check a column of addresses, without nulls and surrounding blanks.

    It runs on all processors or `threads`.

    With `lenient` the two forms of `accept_leniently` are accepted, too.

    `domain` and `display` (its form in U-labels) are dictionaries with the same codes; they hold
    each domain of an accepted row once. `as_written`: the row is accepted, and its text is its
    normal form. In refused rows `local`, `domain` and `display` are null.

    >>> seen = observe_column(pa.array(["Ada@Web.DE", "ada@web", "ben@web.de"]))
    >>> seen["local"].to_pylist(), seen["domain"].to_pylist(), seen["domain"].dictionary.to_pylist()
    (['Ada', None, 'ben'], ['web.de', None, 'web.de'], ['web.de'])
    """
    slices = map_slices(split_texts, texts, threads)
    halves = pa.Table.from_batches(slices).unify_dictionaries()
    local = one_array(halves["local"])
    written = one_array(halves["written"])
    domains = check_domains(written.dictionary)
    row_of_domain = written.indices

    code = domains["code"].take(row_of_domain)
    longest = domains["longest"].take(row_of_domain)
    size = pc.add(pc.binary_length(local), longest)
    is_short = pc.less(size, MAX_OCTETS)  # there is the @, too; null where one side is refused
    is_short = is_short.fill_null(False)
    well_formed = pc.and_(code.is_valid(), is_short)

    domain_as_written = domains["as_written"].take(row_of_domain)
    local_as_written = one_array(halves["as_written"])
    as_written = pc.and_(domain_as_written, local_as_written)
    as_written = as_written.fill_null(False)
    as_written = pc.and_(well_formed, as_written)

    # Only the domains of accepted rows are kept: others are not looked up.
    refused = pa.nulls(len(texts), pa.int32())
    code = pc.if_else(well_formed, code, refused)
    used = pc.unique(code).drop_null()
    place = np.zeros(len(domains), np.int32)
    place[used] = np.arange(len(used))
    code = pa.array(place).take(code)
    names = domains["name"].take(used)
    displays = domains["display"].take(used)
    seen = pa.record_batch(
        {
            "text": texts,
            "well_formed": well_formed,
            "local": texts_where(well_formed, local),
            "domain": pa.DictionaryArray.from_arrays(code, names),
            "display": pa.DictionaryArray.from_arrays(code, displays),
            "as_written": as_written,
        }
    )
    return accept_odd_forms(seen) if lenient else seen


def normal_forms(seen: pa.RecordBatch) -> pa.StringArray:
    """The normal form of each row of `observe_column`; null if it is refused.

    >>> normal_forms(observe_column(pa.array(["INFO@xn--bcher-kva.DE", "ada@web"]))).to_pylist()
    ['info@bücher.de', None]
    """
    display = seen["display"]
    domains = display.dictionary.take(display.indices)
    return pc.binary_join_element_wise(seen["local"], domains, "@")


def accept_odd_forms(seen: pa.RecordBatch) -> pa.RecordBatch:
    """The check with the refused rows accepted that `accept_leniently` accepts.

    >>> texts = pa.array(['"hoge."@docomo.ne.jp', "ada@my_host.firm.com", "ada@my_firm.com"])
    >>> seen = observe_column(texts, lenient=True)
    >>> seen["well_formed"].to_pylist(), seen["domain"].to_pylist()
    ([True, True, False], ['docomo.ne.jp', 'my_host.firm.com', None])
    """
    refused = pc.invert(seen["well_formed"])
    looks_odd = pc.match_substring_regex(seen["text"], MAY_BE_ODD_FORM)
    candidates = pc.and_(refused, looks_odd)
    if not candidates.true_count:
        return seen
    is_accepted: list[bool] = []
    local_parts: list[str] = []
    domains: list[str] = []
    displays: list[str] = []
    for text in seen["text"].filter(candidates).to_pylist():
        form = accept_leniently(text)
        is_accepted.append(form is not None)
        if form is not None:
            local_parts.append(form.local)
            domains.append(form.ascii_domain)
            displays.append(form.text.rpartition("@")[2])
    size = len(domains)
    if not size:
        return seen
    mask = replace_where(candidates, candidates, pa.array(is_accepted))
    codes = pa.array(range(size), pa.int32())
    accepted = pa.record_batch(
        {
            "text": seen["text"].filter(mask),
            "well_formed": pa.repeat(True, size),
            "local": pa.array(local_parts, pa.string()),
            "domain": pa.DictionaryArray.from_arrays(codes, pa.array(domains, pa.string())),
            "display": pa.DictionaryArray.from_arrays(codes, pa.array(displays, pa.string())),
            "as_written": pa.repeat(False, size),
        }
    )
    return update_rows(seen, mask, accepted)


def update_rows(
    seen: pa.RecordBatch, mask: pa.BooleanArray, other: pa.RecordBatch
) -> pa.RecordBatch:
    """The check with the rows of `mask` taken from another one, which has these rows only."""
    both = pa.Table.from_batches([seen, other])
    positions = np.arange(len(seen), dtype=np.int32)
    positions[to_bools(mask)] = np.arange(len(seen), len(both))
    return one_batch(take_rows(both, positions))


# --- both sides -----------------------------------------------------------------------------------


def split_texts(texts: pa.StringArray) -> pa.RecordBatch:
    """The normal form of each local part, whether it is written so, and the domain as written.

    The normal form is null if the local part is refused.
    """
    lengths = pc.binary_length(texts)
    longest = pc.max(lengths).as_py() or 0
    if longest > MAX_OCTETS:  # so that huge texts cost nothing later
        is_short = pc.less_equal(lengths, MAX_OCTETS)
        texts = pc.if_else(is_short, texts, "")
    local, written = split_at_sign(texts)
    normal = normalize_locals(local)
    return pa.record_batch(
        {
            "local": normal,
            "as_written": pc.equal(normal, local),
            "written": written.dictionary_encode(),
        }
    )


def split_at_sign(texts: pa.StringArray) -> tuple[pa.StringArray, pa.StringArray]:
    """What is before and behind the first @ of each text; both are null where there is none.

    >>> local, domain = split_at_sign(pa.array(["ada@web.de", "ada", "ada@home@web.de"]))
    >>> local.to_pylist(), domain.to_pylist()
    (['ada', None, 'ada'], ['web.de', None, 'home@web.de'])
    """
    halves = pc.split_pattern(texts, "@", max_splits=1)
    has_at = pc.equal(pc.list_value_length(halves), 2)
    starts = halves.offsets.slice(0, len(texts))
    ends = halves.offsets.slice(1)
    first = halves.values.take(starts)
    last = halves.values.take(pc.subtract(ends, 1))
    return texts_where(has_at, first), texts_where(has_at, last)


def normalize_locals(local: pa.StringArray) -> pa.StringArray:
    """The normal form of each local part; null if it is refused.

    That of a dot-atom in ASCII is the text itself, but for the names of RFC 2142 in capitals.
    """
    is_dot_atom = pc.match_substring_regex(local, DOT_ATOM).fill_null(False)
    lowered = pc.ascii_lower(local)
    has_capital = pc.not_equal(lowered, local).fill_null(False)
    is_other = pc.or_(pc.invert(is_dot_atom), has_capital)
    if not is_other.true_count:
        return local
    others = local.filter(is_other)
    lowered = lowered.filter(is_other)
    is_name = pc.is_in(lowered, value_set=LOWER_CASE_NAMES)
    forms = pc.if_else(is_name, lowered, others)
    forms = texts_where(is_dot_atom.filter(is_other), forms)
    is_foreign = pc.invert(pc.string_is_ascii(others)).fill_null(False)
    if is_foreign.true_count:
        foreign = others.filter(is_foreign).to_pylist()
        normal = pa.array(map(normalize_local, foreign), pa.string())
        forms = replace_where(forms, is_foreign, normal)
    return replace_where(local, is_other, forms)


def check_domains(written: pa.StringArray) -> pa.RecordBatch:
    """Distinct domains as they are written, in the same order.

    `code` is the row of the first domain with the same `name`; it is null if the domain is refused.
    `longest` is the number of octets of the longer one of `name` and `display`.
    """
    lowered = pc.ascii_lower(written)
    # Each A-label has two hyphens (RFC 5891 section 4.2.3.1).
    has_a_label = pc.match_substring(lowered, "--")
    is_foreign = pc.invert(pc.string_is_ascii(lowered))
    is_idna = pc.or_(has_a_label, is_foreign)
    is_host_name = pc.match_substring_regex(lowered, HOST_NAME)
    is_special = pc.match_substring_regex(lowered, SPECIAL_USE)
    has_long_label = pc.match_substring_regex(lowered, LONG_LABEL)
    is_plain = pc.and_not(is_host_name, is_idna)
    is_plain = pc.and_not(is_plain, is_special)
    is_plain = pc.and_not(is_plain, has_long_label)
    name = texts_where(is_plain, lowered)
    display = name
    if is_idna.true_count:
        texts = written.filter(is_idna).to_pylist()
        names: list[str | None] = [None] * len(texts)
        displays: list[str | None] = [None] * len(texts)
        for position, text in enumerate(texts):
            domain = normalize_domain(text)
            if domain is not None:
                names[position] = domain.ascii
                displays[position] = domain.display
        name = replace_where(name, is_idna, pa.array(names, pa.string()))
        display = replace_where(display, is_idna, pa.array(displays, pa.string()))
    longest = pc.max_element_wise(pc.binary_length(name), pc.binary_length(display))
    return pa.record_batch(
        {
            "name": name,
            "display": display,
            "as_written": pc.equal(display, written),
            "code": pc.index_in(name, value_set=name, skip_nulls=True),
            "longest": longest,
        }
    )


# --- messages about refused rows ------------------------------------------------------------------

FEW = 300  # texts that are described one by one as fast as the patterns of a column are compiled
ASCII_FAULTS = tuple(fault for fault in SYNTAX_FAULTS if not fault.non_ascii)


def fault_messages(seen: pa.RecordBatch) -> pa.DictionaryArray:
    """Describe why each refused row is refused, in the words of `observe_syntax`.

    Null if the row is accepted.

    >>> fault_messages(observe_column(pa.array(["ada@web.de", "ada@web"]))).to_pylist()
    [None, 'There is no dot in the domain.']
    """
    refused = pc.invert(seen["well_formed"])
    messages: dict[str, int] = {}  # and their codes
    codes = describe_refusals(seen["text"].filter(refused), messages)
    nothing = pa.nulls(len(seen), pa.int32())
    codes = replace_where(nothing, refused, codes)
    sentences = pa.array(list(messages), pa.string())
    return pa.DictionaryArray.from_arrays(codes, sentences)


def describe_refusals(texts: pa.StringArray, messages: dict[str, int]) -> pa.Int32Array:
    """The codes of the messages about refused texts; new messages are added to `messages`."""

    def code_of(message: str) -> int:
        return messages.setdefault(message, len(messages))

    codes = np.empty(len(texts), np.int32)
    is_long = to_bools(pc.greater(pc.binary_length(texts), MAX_OCTETS))
    if is_long.any():
        codes[is_long] = code_of(TOO_LONG)
    rows = np.flatnonzero(~is_long)
    if len(rows) > FEW:
        is_ascii = to_bools(pc.string_is_ascii(texts))
        left = np.flatnonzero(~is_long & is_ascii)
        others = np.flatnonzero(~is_long & ~is_ascii)
        for fault in ASCII_FAULTS:
            candidates = texts.take(pa.array(left))
            pattern = "(?s)" + fault.pattern.replace(r"\Z", r"\z")  # as RE2 reads it
            has_fault = pc.match_substring_regex(candidates, pattern)
            is_concerned = to_bools(has_fault)
            concerned = left[is_concerned]
            left = left[~is_concerned]
            if "{" not in fault.sentence:
                codes[concerned] = code_of(fault.sentence)
                continue
            groups = pc.extract_regex(candidates.filter(has_fault), pattern)
            characters = pc.struct_field(groups, "char").to_pylist()
            codes[concerned] = [
                code_of(fault.sentence.format(char=describe_character(character)))
                for character in characters
            ]
        rows = np.concatenate([left, others])
    described = texts.take(pa.array(rows)).to_pylist()
    codes[rows] = [code_of(describe_refusal(text)) for text in described]
    return pa.array(codes)
