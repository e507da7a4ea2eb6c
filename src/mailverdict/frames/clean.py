"""Cleaning a column: `clean` adds the repaired address, a suggestion and what was changed; the column itself stays.

`repair_column` checks the syntax of all texts at once. Well-formed addresses are only put into their canonical form;
only the distinct texts that the syntax check refuses go through `repair.py`, one by one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.lists.suggestions import suggest_domain, suggest_domains
from ..checks.syntax.column import SyntaxColumn, observe_column
from ..checks.syntax.kernels import to_bools
from ..model.address import identities, lower_domain
from .columns import CLEAN_COLUMNS, to_string
from .kinds import ArrowData, kind_of_data
from .repair import MAX_CELL, RepairedCell, canonical_form, repair_cell, suggest_plain
from .text_column import LONGEST_TEXT, TextColumn, read_values, strip_texts

if TYPE_CHECKING:
    import polars as pl

MAX_COUNTED = 10_000  # malformed texts that are looked at for a warning ...
MAX_READ = 500  # ... and of these one by one, which takes about 10 ms

# The most frequent forms of messy cells, as patterns for a whole column: what `repair_cell` would find in them, many
# times as fast. Nothing in them is decoded, and nothing but the address could be a part of it.
ADDRESS = (
    r"(?P<address>[0-9A-Za-z_](?:[0-9A-Za-z_.+\-]*[0-9A-Za-z_+\-])?"
    r"@[0-9A-Za-z][0-9A-Za-z.\-]*\.(?:[A-Za-z]+|xn--[0-9a-z\-]+))"
)
PLAIN_FORMS = (
    (
        "unwrapped",
        rf"^(?:[A-Z][a-zA-Z]{{1,40}}(?: [A-Z][a-zA-Z]{{1,40}}){{1,3}} |\"[A-Za-z ,]{{1,80}}\" )?<{ADDRESS}>[;,.]?$",
    ),
    ("link", rf"^(?:mailto|MAILTO):{ADDRESS}(?:\?[A-Za-z]+=[\w +.,!-]*)?$"),
    ("label", rf"^(?:E-?[Mm]ail|EMAIL|E-MAIL|e-?mail|[Mm]ail|[Ww]ork|[Hh]ome|[Pp]rivat|Kontakt|Contact): ?{ADDRESS}$"),
    ("punctuation", rf"^(?:[*-] )?{ADDRESS}[;,.]{{0,2}}$"),
    ("unwrapped", rf"^(?:'{ADDRESS}'|$^)$"),
    ("unwrapped", rf"^(?:\"{ADDRESS}\"|$^)$"),
    ("unwrapped", rf"^{ADDRESS} \((?:work|home|private|privat|old|new|office|main|business)\)$"),
)
ANY_PLAIN_FORM = "|".join(pattern for _, pattern in PLAIN_FORMS).replace("(?P<address>", "(?:")
# Without any of these no address is found in an ASCII text, and none is suggested.
SIGNS = (
    r'[@&%#=\\\[({<"]|[^ -~]|(?i:(?:^|[\s_*|-])(?:at|arroba|arobase|chiocciola|malpa)(?:[\s_*|-]|$)|2[a-z-]+\.[a-z]+$)'
)
INVISIBLE = ("Zs", "Zl", "Zp", "Cf", "Cc")  # Unicode categories: blanks, characters without a width, controls

__all__ = [
    "AFTER_CLEANING",
    "USE_EXPLODE",
    "RepairedColumn",
    "advise",
    "clean",
    "count_repairable",
    "repair_column",
    "row_index",
    "show_blanks",
    "split_address",
]


@overload
def clean(data: pd.DataFrame, column: Hashable, *, prefix: str | None = None) -> pd.DataFrame: ...
@overload
def clean(data: pl.DataFrame, column: str, *, prefix: str | None = None) -> pl.DataFrame: ...
@overload
def clean(data: pl.Series, column: None = None, *, prefix: str | None = None) -> pl.DataFrame: ...
@overload
def clean(data: Iterable[object], column: None = None, *, prefix: str | None = None) -> pd.DataFrame: ...
@overload
def clean(data: pa.Table | ArrowData, column: str, *, prefix: str | None = None) -> pa.Table: ...
def clean(data: Any, column: Hashable | None = None, *, prefix: str | None = None) -> Any:
    """Find the address that a person would read in each cell.

    Applies the safe repairs of `REPAIRS`: the text around an address is removed (labels, display names,
    links, HTML, punctuation, phone numbers), and characters are written in their standard form. What
    may only be a guess is a suggestion. A well-formed address is never changed but for blanks, Unicode
    form and the case of its domain. Uses no network.

    Parameters
    ----------
    data : DataFrame, Series or list-like
        A pandas, Polars or Arrow frame with `column`, or a Series, array or list of cells; as in `verify`.
    column : hashable, optional
        Which column of a frame.
    prefix : str, optional
        Before each new column's name; ``f"{column}_"`` by default, nothing for a Series or list.

    Returns
    -------
    DataFrame
        One row out per row in, the caller's columns untouched, and three new ones of dtype
        ``string``: `clean` (the address; NA where the cell is missing, or holds no address or several
        of them, for which there is `explode`), `suggestion` (the address that was probably meant)
        and `change` (names of the repairs that were applied, joined by ``;``; empty for none).

    Raises
    ------
    ColumnError
        No such column, or the name occurs twice.
    SettingsError
        A new column would overwrite one that mailverdict did not write.
    InputError
        `data` consists of rows or of frames, not of cells.

    Warns
    -----
    UserWarning
        If no cell of the column is text.

    Examples
    --------
    >>> import mailverdict as mv
    >>> mv.clean(["Ada Lovelace <Ada@Example.ORG>", "mailto:bob@gmial.com", "ada@gmail,com", "nobody"])
                 clean     suggestion          change
    0  Ada@example.org           <NA>  unwrapped;case
    1    bob@gmial.com  bob@gmail.com            link
    2             <NA>  ada@gmail.com
    3             <NA>           <NA>
    """
    kind = kind_of_data(data, column)
    names = kind.names(prefix, CLEAN_COLUMNS)
    cells = read_values(kind.values(), keep_blanks=True, longest=MAX_CELL)
    cells.warn(column, stacklevel=2)
    repaired = repair_column(cells.texts, cells.stripped)
    made = {"clean": repaired.address, "suggestion": repaired.suggestion, "change": repaired.change}
    if cells.rows is not None:
        index = row_index(pa.array(np.arange(len(cells.texts), dtype=np.int32)), cells)
        made = {name: values.take(index) for name, values in made.items()}
    return kind.attach(pa.table(made), names, CLEAN_COLUMNS, {})


@dataclass(frozen=True, slots=True)
class RepairedColumn:
    """What `repair_column` found in each text of a column."""

    address: pa.StringArray  # in its canonical form; null where the text holds no address or several
    suggestion: pa.StringArray  # the address that was probably meant; null for none
    change: pa.StringArray  # names of the repairs that were applied, joined by ";"; no nulls
    count: pa.Int32Array  # distinct addresses in the text; no nulls
    is_unclear: pa.BooleanArray  # an address can be read in it, but not with certainty; no nulls


def repair_column(
    texts: pa.StringArray,
    stripped: pa.StringArray | None = None,
    seen: SyntaxColumn | None = None,
    *,
    suggests_domains: bool = True,
) -> RepairedColumn:
    """Repair each text of a column without nulls; `stripped` and `seen`, their syntax check, are given if known.

    Without `suggests_domains` mistyped domains of well-formed texts are not looked for.

    Texts are given with the blanks around them, for `change` to name these. The time is that of the syntax check and
    of `repair_cell` for each distinct refused text.

    >>> found = repair_column(pa.array(["Ada@FIRM.com", "<ada@firm.com>", "ada@firm.com; bob@firm.com", "nobody"]))
    >>> found.address.to_pylist(), found.change.to_pylist(), found.count.to_pylist()
    (['Ada@firm.com', 'ada@firm.com', None, None], ['case', 'unwrapped', '', ''], [1, 1, 2, 0])
    """
    stripped = strip_texts(texts) if stripped is None else stripped
    seen = observe_column(stripped) if seen is None else seen
    address, is_new = canonical_column(stripped, seen)
    suggestion = suggest_column(seen) if suggests_domains else pa.nulls(len(texts), pa.string())
    formed = RepairedColumn(
        address,
        suggest_without_prefix(stripped, seen, suggestion),
        change_column(texts, stripped, address, is_new),
        seen.ok.cast(pa.int32()),
        pa.array(np.zeros(len(texts), np.bool_)),
    )
    if seen.ok.true_count == len(texts):
        return formed
    refused = pc.invert(seen.ok)
    distinct = texts.filter(refused).dictionary_encode()
    found = repair_distinct(distinct.dictionary)
    names = RepairedColumn.__dataclass_fields__
    return RepairedColumn(
        **{
            name: pc.replace_with_mask(getattr(formed, name), refused, getattr(found, name).take(distinct.indices))
            for name in names
        }
    )


def advise(texts: pa.StringArray) -> pa.StringArray:
    """What to do with each malformed text that holds or suggests an address; null for all other texts."""
    stripped = pc.utf8_trim_whitespace(texts)
    refused = pc.invert(observe_column(stripped).ok)
    advice = [advise_cell(repair_text(text)) for text in texts.filter(refused).to_pylist()]
    return pc.replace_with_mask(pa.nulls(len(texts), pa.string()), refused, pa.array(advice, pa.string()))


AFTER_CLEANING, USE_EXPLODE = "after cleaning", "addresses: use explode"  # the ends of two kinds of advice


def advise_cell(found: RepairedCell) -> str | None:
    if len(found.addresses) > 1:
        return f"holds {len(found.addresses)} {USE_EXPLODE}"
    if found.addresses:
        return f"would be {found.addresses[0]} {AFTER_CLEANING}"
    if found.suggestion is not None:
        return f"probably mistyped: did you mean {found.suggestion}?"
    return "may hold an address, but not with certainty: correct it by hand" if found.is_unclear else None


def count_repairable(texts: pa.StringArray, *, are_refused: bool = False) -> tuple[int, bool]:
    """How many texts are malformed and hold one address or several for certain, and whether all were looked at.

    With `are_refused` the syntax check has refused all of them.
    """
    refused = texts if are_refused else texts.filter(pc.invert(observe_column(strip_texts(texts)).ok))
    distinct = refused.slice(0, MAX_COUNTED).dictionary_encode()
    head = distinct.dictionary
    if len(head) <= MAX_READ:  # the patterns of a column take as long to compile as hundreds of texts to read
        is_read, unread = np.zeros(len(head), np.bool_), np.arange(len(head))
    else:
        plain, unread = read_plain(head)
        is_read = to_bools(plain.address.is_valid())
    others = unread[:MAX_READ]
    texts_left = head.take(pa.array(others)).to_pylist()
    is_read[others] = [bool(repair_text(text, suggests=False).addresses) for text in texts_left]
    is_repairable = pa.array(is_read)
    is_exact = len(refused) <= MAX_COUNTED and len(others) == len(unread)
    return pc.sum(is_repairable.take(distinct.indices)).as_py() or 0, is_exact


def canonical_column(stripped: pa.StringArray, seen: SyntaxColumn) -> tuple[pa.StringArray, pa.BooleanArray]:
    """The canonical form of the accepted texts, null for the others; and in which rows it is not the text itself.

    Most columns are in their canonical form, so nothing is copied before a row is found that is not.
    """
    differs = pc.not_equal(seen.normalized, stripped).fill_null(False)
    if not differs.true_count:
        return seen.normalized, differs
    written, normalized = stripped.filter(differs), seen.normalized.filter(differs)
    local = pc.replace_substring_regex(written, "@.*$", "")
    forms = pc.binary_join_element_wise(local, seen.domains.take(seen.domain_codes.filter(differs)), "@")
    is_ascii = pc.string_is_ascii(written)
    if is_ascii.false_count:
        rows = (each.filter(pc.invert(is_ascii)).to_pylist() for each in (written, normalized))
        others = list(map(canonical_form, *rows))
        forms = pc.replace_with_mask(forms, pc.invert(is_ascii), pa.array(others, pa.string()))
    is_new = pc.not_equal(forms, written)
    if not is_new.true_count and not seen.normalized.null_count:
        return stripped, pa.array(np.zeros(len(stripped), np.bool_))
    address = seen.normalized if forms.equals(normalized) else pc.replace_with_mask(seen.normalized, differs, forms)
    return address, pc.replace_with_mask(differs, differs, is_new)


def suggest_column(seen: SyntaxColumn) -> pa.StringArray:
    """The accepted addresses with the domain that was probably meant; null for most rows."""
    meant = pa.array(suggest_domains(seen.domains.to_pylist()), pa.string())
    if meant.null_count == len(meant):
        return pa.nulls(len(seen.ok), pa.string())
    return pc.binary_join_element_wise(seen.local, meant.take(seen.domain_codes), "@")


def suggest_without_prefix(stripped: pa.StringArray, seen: SyntaxColumn, suggestion: pa.StringArray) -> pa.StringArray:
    """Add suggestions for accepted texts that begin with a probable quote or label."""
    rows = rows_with_prefix(stripped)
    rows = rows[seen.ok.take(pa.array(rows)).to_numpy(zero_copy_only=False)] if len(rows) else rows
    found = [suggest_plain(text) for text in stripped.take(pa.array(rows)).to_pylist()]
    if not any(found):
        return suggestion
    mask = np.zeros(len(stripped), np.bool_)
    mask[rows] = [each is not None for each in found]
    mask &= suggestion.is_null().to_numpy(zero_copy_only=False)
    meant = [each for row, each in zip(rows.tolist(), found, strict=True) if mask[row]]
    return pc.replace_with_mask(suggestion, pa.array(mask), pa.array(meant, pa.string()))


FIRST_OF_PREFIX = np.frombuffer(
    b"'%\xc2\xc3\xe2\xe3", np.uint8
)  # of quotes, encoded blanks, a byte order mark, brackets


def rows_with_prefix(texts: pa.StringArray) -> npt.NDArray[np.int64]:
    """Rows of the texts that may begin with a prefix that `suggest_plain` knows; looks at octets, not text by text."""
    _, offsets, octets = texts.buffers()
    if octets is None or not len(texts):
        return np.empty(0, np.int64)
    starts = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    content = np.frombuffer(octets, np.uint8)[: starts[-1]]
    if not len(content):
        return np.empty(0, np.int64)
    first = content[np.minimum(starts[:-1], len(content) - 1)]
    found = [np.flatnonzero(np.isin(first, FIRST_OF_PREFIX))]
    whole = content.tobytes()
    for sign in (b"=", b"%", b"\xef"):  # email=, mailto%3A and the first octet of a full-width colon
        if sign in whole:  # much faster than a comparison of each octet
            places = np.flatnonzero(content == sign[0])
            found.append(np.searchsorted(starts[1:], places[places >= starts[0]], side="right"))
    return np.unique(np.concatenate(found))


def change_column(
    texts: pa.StringArray, stripped: pa.StringArray, address: pa.StringArray, is_new: pa.BooleanArray
) -> pa.StringArray:
    """The names of what changed in accepted texts; `is_new`: in which rows the address is not the stripped text."""
    change = pa.StringArray.from_buffers(
        len(texts), pa.py_buffer(np.zeros(len(texts) + 1, np.int32)), pa.py_buffer(b"")
    )
    differs = is_new
    if texts is not stripped:
        differs = pc.or_(is_new, pc.and_(address.is_valid(), pc.not_equal(texts, stripped)))
    if not differs.true_count:
        return change
    texts, stripped, address = (each.filter(differs) for each in (texts, stripped, address))
    has_blanks, is_same = pc.not_equal(texts, stripped), pc.equal(address, stripped)
    names = pc.if_else(is_same, pc.if_else(has_blanks, "blanks", ""), pc.if_else(has_blanks, "blanks;case", "case"))
    others = pc.invert(pc.or_(is_same, pc.and_(pc.string_is_ascii(stripped), pc.string_is_ascii(address))))
    if others.true_count:
        rows = zip(*(each.filter(others).to_pylist() for each in (texts, stripped, address)), strict=True)
        names = pc.replace_with_mask(names, others, pa.array([name_changes(*row) for row in rows], pa.string()))
    return pc.replace_with_mask(change, differs, names)


def name_changes(text: str, stripped: str, address: str) -> str:
    """The repairs that made the canonical form of a well-formed address."""
    names = ["blanks"] if text != stripped else []
    if address != stripped:
        local, _, domain = stripped.rpartition("@")
        lowered = lower_domain(domain)
        if f"{local}@{lowered}" != address:
            names.append("unicode")
        if unicodedata.normalize("NFC", lowered) != unicodedata.normalize("NFC", domain):
            names.append("case")
    return ";".join(names)


def repair_distinct(texts: pa.StringArray) -> RepairedColumn:
    """Repair refused texts: the frequent forms by column, the others one by one."""
    plain, others = read_plain(texts)
    if not len(others):
        return plain
    mask = np.zeros(len(texts), np.bool_)
    mask[others] = True
    rest = to_columns([repair_text(text) for text in texts.filter(pa.array(mask)).to_pylist()])
    names = RepairedColumn.__dataclass_fields__
    return RepairedColumn(
        **{name: pc.replace_with_mask(getattr(plain, name), pa.array(mask), getattr(rest, name)) for name in names}
    )


def read_plain(texts: pa.StringArray) -> tuple[RepairedColumn, npt.NDArray[np.int64]]:
    """What is found in texts of the frequent forms, and the positions of the texts that have another form."""
    left = np.flatnonzero(to_bools(pc.match_substring_regex(texts, SIGNS)))
    is_escaped = to_bools(pc.match_substring(texts.take(pa.array(left)), "_x00"))  # `repair_cell` removes some escapes
    is_plain = to_bools(pc.match_substring_regex(texts.take(pa.array(left)), ANY_PLAIN_FORM)) & ~is_escaped
    rows, unread = left[is_plain], left[~is_plain]
    candidates, form_of, is_read = read_forms(texts.take(pa.array(rows)))
    unread = np.sort(np.concatenate([unread, rows[~is_read]]))
    written, rows = candidates.filter(pa.array(is_read)), rows[is_read]
    lowered = identities(written)
    address = np.full(len(texts), None, object)
    address[rows] = lowered.to_numpy(zero_copy_only=False)
    change = np.full(len(texts), "", object)
    names = np.array([[name, f"{name};case"] for name, _ in PLAIN_FORMS], object)
    change[rows] = names[form_of[is_read], to_bools(pc.not_equal(written, lowered)).astype(np.intp)]
    addresses = pa.array(address, pa.string())
    count = addresses.is_valid().cast(pa.int32())
    unclear = pa.array(np.zeros(len(texts), np.bool_))
    found = RepairedColumn(addresses, suggest_many(addresses), pa.array(change, pa.string()), count, unclear)
    return found, unread


def read_forms(texts: pa.StringArray) -> tuple[pa.StringArray, npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """For each text the address in the form that it has, the form, and whether the address is well-formed."""
    found = [pc.struct_field(pc.extract_regex(texts, pattern), "address") for _, pattern in PLAIN_FORMS]
    form_of = np.argmax([to_bools(each.is_valid()) for each in found], axis=0)
    candidates = pc.coalesce(*found, "")
    return candidates, form_of, to_bools(observe_column(candidates).ok)


def suggest_many(addresses: pa.StringArray) -> pa.StringArray:
    """For each address the one with the domain that was probably meant."""
    domains = pc.struct_field(pc.extract_regex(addresses, r"@(?P<domain>.*)$"), "domain").dictionary_encode()
    meant = pa.array(suggest_domains(domains.dictionary.to_pylist()), pa.string()).take(domains.indices)
    return pc.binary_join_element_wise(pc.replace_substring_regex(addresses, r"@.*$", ""), meant, "@")


def repair_text(text: str, *, suggests: bool = True) -> RepairedCell:
    """Repair a text, unless `read_values` may have cut it, which could leave a part of an address."""
    if len(text) in (LONGEST_TEXT, MAX_CELL):
        return RepairedCell(is_unclear="@" in text)
    return repair_cell(text, suggests=suggests)


def to_columns(cells: list[RepairedCell]) -> RepairedColumn:
    """The columns for repaired cells."""
    addresses = [cell.addresses[0] if len(cell.addresses) == 1 else None for cell in cells]
    suggestions = [
        suggest_repaired(each) or suggest_plain(each) if each else cell.suggestion
        for each, cell in zip(addresses, cells, strict=True)
    ]
    return RepairedColumn(
        pa.array(addresses, pa.string()),
        pa.array(suggestions, pa.string()),
        pa.array([";".join(cell.changes) for cell in cells], pa.string()),
        pa.array([len(cell.addresses) for cell in cells], pa.int32()),
        pa.array([cell.is_unclear for cell in cells], pa.bool_()),
    )


def suggest_repaired(address: str) -> str | None:
    """The address with the domain that was probably meant."""
    local, _, domain = address.rpartition("@")
    meant = suggest_domain(domain)
    return f"{local}@{meant}" if meant else None


def row_index(codes: pa.Int32Array, cells: TextColumn) -> pa.Int64Array:
    """For each row of the caller the index of its distinct text; null where it has none."""
    rows = np.full(cells.size, -1, np.int64)
    rows[slice(None) if cells.rows is None else cells.rows] = codes.to_numpy(zero_copy_only=False)
    return pa.array(rows, mask=rows < 0)


def split_address(series: pd.Series[Any]) -> pd.DataFrame:
    """Local part and lower-case domain of each cell, NA where there is no ``@``."""
    cells = read_values(series)
    distinct = cells.texts.dictionary_encode()
    parts = [text.rpartition("@") for text in distinct.dictionary.to_pylist()]
    columns = {
        "local": [local if at else None for local, at, _ in parts],
        "domain": [lower_domain(domain) if at else None for _, at, domain in parts],
    }
    index = row_index(distinct.indices, cells)
    taken = {name: to_string(pa.chunked_array([pa.array(v, pa.string()).take(index)])) for name, v in columns.items()}
    return pd.DataFrame(taken, index=series.index)


def show_blanks(text: str) -> str:
    r"""A text whose blanks at the ends, and whose other blanks than a space, can be seen.

    >>> show_blanks(" Ada <ada@firm.com> "), show_blanks("a\u00a0b\u200b")
    ('␣Ada <ada@firm.com>␣', 'a␣b␣')
    """
    inner = text.strip()
    at = text.find(inner)
    marked = ["␣" if c != " " and unicodedata.category(c) in INVISIBLE else c for c in inner]
    return "".join(["␣" * at, *marked, "␣" * (len(text) - at - len(inner))])
