"""Cleaning a column: `clean` adds the repaired address, a suggestion and what was changed; the column itself stays.

`repair_column` checks the syntax of all texts at once. Well-formed addresses are only put into their canonical form;
only the distinct texts that the syntax check refuses go through `repair.py`, one by one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.lists.suggestions import suggest_domain, suggest_domains
from ..checks.syntax.address import canonical_form
from ..checks.syntax.column import SyntaxColumn, observe_column
from ..checks.syntax.kernels import Rows, octets_of, offsets_of, to_bools
from ..model.address import identities, lower_domain
from .columns import CLEAN_COLUMNS, to_string
from .guess import MAY_BE_GUESSED, MAY_LOOK_ODD, guess_plain
from .kinds import Frame, kind_of_data
from .overwrite import name_columns
from .repair import MAX_CELL, RepairedCell, repair_cell
from .text_column import LONGEST_TEXT, TextColumn, read_values, replace_texts, show_where, strip_texts

MAX_COUNTED = 10_000  # malformed texts that are looked at for a warning ...
MAX_READ = 500  # ... and of these one by one, which takes about 10 ms

# The most frequent forms of messy cells, as patterns for a whole column: what `repair_cell` would find in them, many
# times as fast. Nothing in them is decoded, and nothing but the address could be a part of it.
ADDRESS = (
    r"(?:[0-9A-Za-z_](?:[0-9A-Za-z_.+\-]*[0-9A-Za-z_+\-])?"
    r"@[0-9A-Za-z][0-9A-Za-z.\-]*\.(?:[A-Za-z]?(?:[A-Z]+|[a-z]+)|xn--[0-9a-z\-]+))"
)
NO_WIDTH = r"[\x{200b}\x{feff}]"  # of the characters without a width those that exports have most often
PLAIN_FORMS = (
    rf"^(?:[A-Z][a-zA-Z]{{1,40}}(?: [A-Z][a-zA-Z]{{1,40}}){{1,3}} |\"[A-Za-z ,]{{1,80}}\" )?<{ADDRESS}>[;,.]?$",
    rf"^(?:mailto|MAILTO):{ADDRESS}(?:\?[A-Za-z]+=[\w +.,!-]*)?$",
    rf"^(?:E-?[Mm]ail|EMAIL|E-MAIL|e-?mail|[Mm]ail|[Ww]ork|[Hh]ome|[Pp]rivat|Kontakt|Contact): ?{ADDRESS}$",
    rf"^(?:[*-] )?{ADDRESS}[;,.]{{0,2}}$",
    rf"^'{ADDRESS}'$",
    rf"^\"{ADDRESS}\"$",
    rf"^\[\"{ADDRESS}\"\]$",
    rf"^{ADDRESS} \((?:work|home|private|privat|new|office|main|business)\)$",
    rf"^{ADDRESS}[,;] \+?[0-9](?:[0-9 ]{{0,30}}[0-9])?$",  # a telephone number
    rf"^{NO_WIDTH}{{0,2}}{ADDRESS}{NO_WIDTH}{{0,2}}$",
)
ANY_PLAIN_FORM = "|".join(PLAIN_FORMS)
# In a text of one of these forms: its address, and the name of the repair, which is the first whose pattern is found.
ADDRESS_IN_FORM = r"(?P<address>[0-9A-Za-z_.+\-]+@[0-9A-Za-z.\-]*[0-9A-Za-z\-])"
NAMES_OF_FORMS = (
    ("blanks", NO_WIDTH),
    ("list", r"^\["),
    ("unwrapped", "[<(\"']"),
    ("link", "^(?:mailto|MAILTO):"),
    ("label", ":"),
    ("punctuation", ""),
)
# Without any of these no address is found in an ASCII text, and none is suggested.
SIGNS = rf'[@&%#=\\\[({{<"]|[^ -~]|(?i:{MAY_BE_GUESSED})'
INVISIBLE = ("Zs", "Zl", "Zp", "Cf", "Cc")  # Unicode categories: blanks, characters without a width, controls


@overload
def clean(data: Frame, column: Hashable, *, prefix: str | None = None) -> Frame: ...
@overload
def clean(data: Iterable[object], column: None = None, *, prefix: str | None = None) -> pd.DataFrame: ...
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
    names = name_columns(kind, prefix, CLEAN_COLUMNS)
    cells = read_values(kind.values(), for_repair=True, longest=MAX_CELL)
    cells.warn(column, stacklevel=2)
    repaired = repair_column(cells.texts, cells.stripped)
    made = {"clean": repaired.address, "suggestion": repaired.suggestion, "change": repaired.change}
    if cells.rows is not None:
        index = row_index(pa.array(np.arange(len(cells.texts), dtype=np.int32)), cells)
        made = {name: values.take(index) for name, values in made.items()}
    return kind.attach(pa.table(made), names, CLEAN_COLUMNS, {})


@dataclass(frozen=True, slots=True)
class RepairedTexts:
    """What was found in each of some texts."""

    address: pa.StringArray  # in its canonical form; null where the text holds no address or several
    suggestion: pa.StringArray  # the address that was probably meant; null for none
    change: pa.StringArray  # names of the repairs that were applied, joined by ";"; no nulls
    count: pa.Int32Array  # distinct addresses in the text; no nulls
    is_unclear: pa.BooleanArray  # an address can be read in it, but not with certainty; no nulls


@dataclass(frozen=True, slots=True)
class RepairedColumn(RepairedTexts):
    """What `repair_column` found in each text of a column."""

    texts: pa.StringArray  # the address; where it is null, the text without the blanks around it


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
    size, ok = len(texts), to_bools(seen.ok)
    changed, forms = canonical_rows(stripped, seen)
    named, names = name_rows(texts, stripped, seen, changed, forms)
    suggested = suggest_rows(stripped, seen, suggests_domains=suggests_domains)
    refused = np.flatnonzero(~ok)
    distinct = texts.take(pa.array(refused)).dictionary_encode()
    found, at = repair_distinct(distinct.dictionary), distinct.indices
    address = found.address.take(at)
    is_found = address.is_valid()
    replaced = np.concatenate([changed, refused[to_bools(is_found)]])
    whole = replace_texts(stripped, replaced, pa.concat_arrays([forms, address.filter(is_found)]))
    has_address, count, is_unclear = ok.copy(), ok.astype(np.int32), np.zeros(size, np.bool_)
    has_address[refused] = to_bools(is_found)
    count[refused] = found.count.take(at)
    is_unclear[refused] = to_bools(found.is_unclear.take(at))
    return RepairedColumn(
        address=show_where(whole, pa.array(has_address)),
        suggestion=fill_rows(size, None, *suggested, (refused, found.suggestion.take(at))),
        change=fill_rows(size, "", (named, names), (refused, found.change.take(at))),
        count=pa.array(count),
        is_unclear=pa.array(is_unclear),
        texts=whole,
    )


def fill_rows(size: int, base: Literal[""] | None, *parts: tuple[Rows, pa.StringArray]) -> pa.StringArray:
    """A column of nulls or of empty texts, with other texts in the rows of each part."""
    rows = np.concatenate([rows for rows, _ in parts])
    pool = pa.concat_arrays([pa.array([base], pa.string()), *(texts for _, texts in parts)])
    if not len(rows) or pool.null_count == len(pool):
        # Empty texts of no octets are made in a tenth of the time of `pa.repeat`.
        nothing = [None, pa.py_buffer(np.zeros(size + 1, np.int32)), pa.py_buffer(b"")]
        return pa.nulls(size, pa.string()) if base is None else pa.Array.from_buffers(pa.string(), size, nothing)
    at = np.zeros(size, np.int32)
    at[rows] = np.arange(1, len(pool))
    return pool.take(pa.array(at))


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


REPAIR_HINT = "verify with clean=True; if a cell holds several addresses, use mailverdict.explode first"


def repairable_rows(count: int, *, is_exact: bool, what: str = "an address that can be read") -> str:
    rows = f"{'' if is_exact else 'at least '}{count:,} malformed {'row holds' if count == 1 else 'rows hold'}"
    return f"{rows} {what}"


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
        plain = read_plain(head)
        is_read, unread = np.zeros(len(head), np.bool_), plain.unread
        is_read[plain.rows[plain.ok]] = True
    others = unread[:MAX_READ]
    texts_left = head.take(pa.array(others)).to_pylist()
    is_read[others] = [bool(repair_text(text, suggests=False).addresses) for text in texts_left]
    is_repairable = pa.array(is_read)
    is_exact = len(refused) <= MAX_COUNTED and len(others) == len(unread)
    return pc.sum(is_repairable.take(distinct.indices)).as_py() or 0, is_exact


def canonical_rows(stripped: pa.StringArray, seen: SyntaxColumn) -> tuple[Rows, pa.StringArray]:
    """The accepted rows whose text is not in its canonical form, and these forms."""
    rows = seen.changed_rows()
    written = stripped.take(pa.array(rows))
    local = pc.replace_substring_regex(written, "@.*$", "")
    forms = pc.binary_join_element_wise(local, seen.domains.take(seen.domain_codes.take(pa.array(rows))), "@")
    others = pc.invert(pc.string_is_ascii(written))
    if others.true_count:
        texts = (written.filter(others).to_pylist(), seen.take(rows[to_bools(others)]).normalized.to_pylist())
        forms = pc.replace_with_mask(forms, others, pa.array(map(canonical_form, *texts), pa.string()))
    is_new = pc.not_equal(forms, written)
    return rows[to_bools(is_new)], forms.filter(is_new)


def suggest_rows(
    stripped: pa.StringArray, seen: SyntaxColumn, *, suggests_domains: bool
) -> list[tuple[Rows, pa.StringArray]]:
    """The accepted rows for which another address is suggested, and this: for a domain, and for a prefix."""
    rows, suggested = np.empty(0, np.intp), []
    if suggests_domains:
        rows, meant = mistyped_rows(seen)
        suggested = [(rows, pc.binary_join_element_wise(seen.take(rows).local, meant, "@"))]
    unusual = seen.unusual_rows()
    unusual = unusual[to_bools(pc.match_substring_regex(stripped.take(pa.array(unusual)), MAY_LOOK_ODD))]
    unusual = np.setdiff1d(np.union1d(unusual, web_rows(stripped, seen)), rows, assume_unique=True)
    found = pa.array(map(guess_plain, stripped.take(pa.array(unusual)).to_pylist()), pa.string())
    return [*suggested, (unusual, found)]


def web_rows(stripped: pa.StringArray, seen: SyntaxColumn) -> Rows:
    """The accepted rows whose text begins as the name of a web server."""
    if not seen.ok.true_count:
        return np.empty(0, np.intp)
    first = octets_of(stripped).take(offsets_of(stripped)[:-1], mode="clip")
    rows = np.flatnonzero(((first | 0x20) == ord("w")) & to_bools(seen.ok))
    return rows[to_bools(pc.match_substring_regex(stripped.take(pa.array(rows)), r"^(?i:www\.)"))]


def mistyped_rows(seen: SyntaxColumn) -> tuple[Rows, pa.StringArray]:
    """The accepted rows whose domain is probably mistyped, and the domain that was probably meant."""
    meant = pa.array(suggest_domains(seen.domains.to_pylist()), pa.string())
    is_mistyped = np.append(to_bools(meant.is_valid()), False)  # the last one is for refused rows
    rows = np.flatnonzero(is_mistyped[seen.domain_codes.fill_null(-1).to_numpy()])
    return rows, meant.take(seen.domain_codes.take(pa.array(rows)))


def name_rows(
    texts: pa.StringArray, stripped: pa.StringArray, seen: SyntaxColumn, changed: Rows, forms: pa.StringArray
) -> tuple[Rows, pa.StringArray]:
    """The accepted rows whose text is not the address, and the names of what changed in them.

    `changed` are the rows that are not in their canonical form, and `forms` these forms.
    """
    has_blanks = np.zeros(len(texts), np.bool_)
    if texts is not stripped:
        has_blanks = to_bools(pc.and_(seen.ok, pc.not_equal(texts, stripped)))
    is_same = ~has_blanks
    is_same[changed] = False
    rows = np.flatnonzero(~is_same)
    written, plain = texts.take(pa.array(rows)), stripped.take(pa.array(rows))
    address = replace_texts(plain, np.searchsorted(rows, changed), forms)
    is_same, has_blanks = pc.equal(address, plain), pa.array(has_blanks[rows])
    names = pc.if_else(is_same, pc.if_else(has_blanks, "blanks", ""), pc.if_else(has_blanks, "blanks;case", "case"))
    others = pc.invert(pc.or_(is_same, pc.and_(pc.string_is_ascii(plain), pc.string_is_ascii(address))))
    if others.true_count:
        each_row = zip(*(each.filter(others).to_pylist() for each in (written, plain, address)), strict=True)
        names = pc.replace_with_mask(names, others, pa.array([name_changes(*row) for row in each_row], pa.string()))
    return rows, names


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


def repair_distinct(texts: pa.StringArray) -> RepairedTexts:
    """Repair refused texts: the frequent forms by column, the others one by one."""
    size, plain = len(texts), read_plain(texts)
    rest = to_columns([repair_text(text) for text in texts.take(pa.array(plain.unread)).to_pylist()])
    rows, written = plain.rows[plain.ok], plain.written.filter(pa.array(plain.ok))
    lowered = identities(written)
    changes = pa.array([f"{name}{case}" for name, _ in NAMES_OF_FORMS for case in ("", ";case")])
    change = changes.take(pa.array(2 * plain.form[plain.ok] + to_bools(pc.not_equal(written, lowered))))
    mistyped, meant = mistyped_rows(plain.seen)
    local = pc.replace_substring_regex(plain.written.take(pa.array(mistyped)), "@.*$", "")
    suggestion = pc.binary_join_element_wise(local, meant, "@")
    count, is_unclear = np.zeros(size, np.int32), np.zeros(size, np.bool_)
    count[rows] = 1
    count[plain.unread], is_unclear[plain.unread] = rest.count, to_bools(rest.is_unclear)
    return RepairedTexts(
        address=fill_rows(size, None, (rows, lowered), (plain.unread, rest.address)),
        suggestion=fill_rows(size, None, (plain.rows[mistyped], suggestion), (plain.unread, rest.suggestion)),
        change=fill_rows(size, "", (rows, change), (plain.unread, rest.change)),
        count=pa.array(count),
        is_unclear=pa.array(is_unclear),
    )


@dataclass(frozen=True, slots=True)
class PlainTexts:
    """What was read by column in texts that the syntax check refuses."""

    rows: Rows  # the texts of the frequent forms
    written: pa.StringArray  # their addresses as written
    seen: SyntaxColumn  # the check of these
    form: npt.NDArray[np.intp]  # of each, its position in `NAMES_OF_FORMS`
    unread: Rows  # the texts of other forms, and those whose address is malformed

    @property
    def ok(self) -> npt.NDArray[np.bool_]:
        """Which of the addresses are well-formed."""
        return to_bools(self.seen.ok)


def read_plain(texts: pa.StringArray) -> PlainTexts:
    """Read the texts of the frequent forms; texts without a sign of an address are neither read nor left over."""
    left = np.flatnonzero(to_bools(pc.match_substring_regex(texts, SIGNS)))
    candidates = texts.take(pa.array(left))
    is_escaped = to_bools(pc.match_substring(candidates, "_x00"))  # `repair_cell` removes some escapes
    is_plain = to_bools(pc.match_substring_regex(candidates, ANY_PLAIN_FORM)) & ~is_escaped
    plain = candidates.filter(pa.array(is_plain))
    form = np.zeros(len(plain), np.intp)
    for position, (_, pattern) in reversed(list(enumerate(NAMES_OF_FORMS))):
        form[to_bools(pc.match_substring_regex(plain, pattern))] = position
    written = pc.ascii_rtrim(pc.struct_field(pc.extract_regex(plain, ADDRESS_IN_FORM), "address"), ".")
    seen = observe_column(written)
    rows, unread = left[is_plain], left[~is_plain]
    return PlainTexts(rows, written, seen, form, np.sort(np.concatenate([unread, rows[~to_bools(seen.ok)]])))


def repair_text(text: str, *, suggests: bool = True) -> RepairedCell:
    """Repair a text, unless `read_values` may have cut it, which could leave a part of an address."""
    if len(text) in (LONGEST_TEXT, MAX_CELL):
        return RepairedCell(is_unclear="@" in text)
    return repair_cell(text, suggests=suggests)


def to_columns(cells: list[RepairedCell]) -> RepairedTexts:
    """The columns for repaired cells."""
    addresses = [cell.addresses[0] if len(cell.addresses) == 1 else None for cell in cells]
    suggestions = [
        suggest_repaired(each) or guess_plain(each) if each else cell.suggestion
        for each, cell in zip(addresses, cells, strict=True)
    ]
    return RepairedTexts(
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
