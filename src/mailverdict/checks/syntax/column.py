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

from ...model.arrow import map_slices, one_array, replace_where, texts_where, to_bools
from .address import describe_refusal, normalize_domain, normalize_local
from .faults import MAX_OCTETS, SYNTAX_FAULTS, TOO_LONG, SyntaxFault, describe_character
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
    halves = pa.Table.from_batches(map_slices(split_texts, texts, threads))
    halves = halves.unify_dictionaries()
    local = one_array(halves["local"])
    written = one_array(halves["written"])

    domains = check_domains(written.dictionary)
    code = domains["code"].take(written.indices)
    size = pc.add(pc.binary_length(local), domains["longest"].take(written.indices))
    is_short = pc.less(size, MAX_OCTETS)  # there is the @, too; null where one side is refused
    well_formed = pc.and_(code.is_valid(), is_short.fill_null(False))

    as_written = domains["as_written"].take(written.indices)
    as_written = pc.and_(as_written, one_array(halves["as_written"]))
    as_written = pc.and_(well_formed, as_written.fill_null(False))
    code = pc.if_else(well_formed, code, pa.nulls(len(texts), pa.int32()))
    used = pc.unique(code).drop_null()
    place = np.zeros(len(domains), np.int32)
    place[used] = np.arange(len(used))
    # Among the domains of accepted rows alone: others are not looked up.
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
    may_be_odd = pc.and_(refused, pc.match_substring_regex(seen["text"], MAY_BE_ODD_FORM))
    if not may_be_odd.true_count:
        return seen
    found = [accept_leniently(text) for text in seen["text"].filter(may_be_odd).to_pylist()]
    is_odd = pa.array([form is not None for form in found])
    forms = [form for form in found if form is not None]
    mask = replace_where(may_be_odd, may_be_odd, is_odd)
    domain = pa.array([form.ascii_domain for form in forms], pa.string())
    display = pa.array([form.text.rpartition("@")[2] for form in forms], pa.string())
    codes = pa.array(range(len(forms)), pa.int32())
    accepted = pa.record_batch(
        {
            "text": seen["text"].filter(mask),
            "well_formed": pa.array([True] * len(forms), pa.bool_()),
            "local": pa.array([form.local for form in forms], pa.string()),
            "domain": pa.DictionaryArray.from_arrays(codes, domain),
            "display": pa.DictionaryArray.from_arrays(codes, display),
            "as_written": pa.array([False] * len(forms), pa.bool_()),
        }
    )
    return update_rows(seen, mask, accepted) if forms else seen


def update_rows(
    seen: pa.RecordBatch, mask: pa.BooleanArray, other: pa.RecordBatch
) -> pa.RecordBatch:
    """The check with the rows of `mask` taken from another one, which has these rows only."""
    both = pa.Table.from_batches([seen, other]).unify_dictionaries().combine_chunks()
    at = np.arange(len(seen), dtype=np.int32)
    at[to_bools(mask)] = np.arange(len(seen), len(both))
    (rows,) = pc.take(both, pa.array(at), boundscheck=False).combine_chunks().to_batches()
    return rows


# --- both sides -----------------------------------------------------------------------------------


def split_texts(texts: pa.StringArray) -> pa.RecordBatch:
    """The normal form of each local part, whether it is written so, and the domain as written.

    The normal form is null if the local part is refused.
    """
    lengths = pc.binary_length(texts)
    if (pc.max(lengths).as_py() or 0) > MAX_OCTETS:  # so that huge texts cost nothing later
        texts = pc.if_else(pc.less_equal(lengths, MAX_OCTETS), texts, "")
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
    first = halves.values.take(halves.offsets.slice(0, len(texts)))
    last = halves.values.take(pc.subtract(halves.offsets.slice(1), 1))
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
    forms = texts_where(is_dot_atom.filter(is_other), pc.if_else(is_name, lowered, others))
    is_foreign = pc.invert(pc.string_is_ascii(others)).fill_null(False)
    if is_foreign.true_count:
        normal = [normalize_local(text) for text in others.filter(is_foreign).to_pylist()]
        forms = replace_where(forms, is_foreign, pa.array(normal, pa.string()))
    return replace_where(local, is_other, forms)


def check_domains(written: pa.StringArray) -> pa.RecordBatch:
    """Distinct domains as they are written, in the same order.

    `code` is the row of the first domain with the same `name`; it is null if the domain is refused.
    `longest` is the number of octets of the longer one of `name` and `display`.
    """
    lowered = pc.ascii_lower(written)
    # Each A-label has two hyphens (RFC 5891 section 4.2.3.1).
    has_a_label = pc.match_substring(lowered, "--")
    is_idna = pc.or_(has_a_label, pc.invert(pc.string_is_ascii(lowered)))
    is_plain = pc.and_not(pc.match_substring_regex(lowered, HOST_NAME), is_idna)
    is_plain = pc.and_not(is_plain, pc.match_substring_regex(lowered, SPECIAL_USE))
    is_plain = pc.and_not(is_plain, pc.match_substring_regex(lowered, LONG_LABEL))
    name = display = texts_where(is_plain, lowered)
    if is_idna.true_count:
        found = [normalize_domain(domain) for domain in written.filter(is_idna).to_pylist()]
        names = pa.array([domain and domain.ascii for domain in found], pa.string())
        displays = pa.array([domain and domain.display for domain in found], pa.string())
        name = replace_where(name, is_idna, names)
        display = replace_where(display, is_idna, displays)
    return pa.record_batch(
        {
            "name": name,
            "display": display,
            "as_written": pc.equal(display, written),
            "code": pc.index_in(name, value_set=name, skip_nulls=True),
            "longest": pc.max_element_wise(pc.binary_length(name), pc.binary_length(display)),
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
    sentences = pa.array(list(messages), pa.string())
    nothing = pa.nulls(len(seen), pa.int32())
    return pa.DictionaryArray.from_arrays(replace_where(nothing, refused, codes), sentences)


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
            pattern = as_re2(fault)
            has_fault = pc.match_substring_regex(candidates, pattern)
            concerned = left[to_bools(has_fault)]
            left = left[~to_bools(has_fault)]
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


def as_re2(fault: SyntaxFault) -> str:
    """Write the pattern as RE2 reads it."""
    return "(?s)" + fault.pattern.replace(r"\Z", r"\z")
