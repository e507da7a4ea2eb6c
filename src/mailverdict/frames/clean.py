"""Cleaning a column: `clean` adds the repaired address, a suggestion and what was changed; the column itself stays.

`repair_column` checks the syntax of all texts at once. Well-formed addresses are only put into their canonical form;
only the distinct texts that the syntax check refuses go through `repair.py`, one by one.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, overload

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.lists.suggestions import suggest_domain, suggest_domains
from ..checks.syntax.address import canonical_form
from ..checks.syntax.column import SyntaxColumn, observe_column
from ..checks.syntax.kernels import Rows, octets_of, offsets_of, to_bools
from ..model.address import lower_domain
from ..model.table import texts_where
from ..repair.guess import MAY_BE_GUESSED, MAY_LOOK_ODD, USUAL_BEGINS, guess_plain
from ..repair.repair import MAX_CELL, RepairedCell, repair_cell
from ..repair.words import NONE_DOMAIN, names_nobody
from ..table.columns import CLEAN_COLUMNS, to_string
from ..table.notices import warn_user
from ..table.overwrite import name_columns
from ..table.table import Frame, table_of
from ..table.text_column import (
    LONGEST_TEXT,
    describe_no_address,
    read_values,
    replace_texts,
    show_where,
    strip_texts,
    where_filled,
)

# Without any of these no address is found in an ASCII text, and none is suggested.
SIGNS = rf'[@&%#=\\\[({{<"]|[^ -~]|(?i:{MAY_BE_GUESSED})'
USUAL = string.ascii_letters + string.digits + "._-"
FOUND = pa.schema(
    {
        "address": pa.string(),
        "suggestion": pa.string(),
        "change": pa.string(),
        "count": pa.int32(),
        "is_unclear": pa.bool_(),
    }
)
INVISIBLE = (
    "Zs",
    "Zl",
    "Zp",
    "Cf",
    "Cc",
)  # Unicode categories: blanks, characters without a width, controls


@overload
def clean(data: Frame, column: Hashable, *, prefix: str | None = None) -> Frame: ...
@overload
def clean(
    data: Iterable[object], column: None = None, *, prefix: str | None = None
) -> pd.DataFrame: ...
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
        If no cell of the column holds an ``@``.

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
    table = table_of(data, column)
    names = name_columns(table, prefix, CLEAN_COLUMNS)
    cells = read_values(table.values(), for_repair=True, longest=MAX_CELL)
    repaired = repair_column(cells.texts, cells.stripped)
    warn_user(describe_no_address(repaired.texts, column))
    change = where_filled(cells.stripped, repaired.change)
    made = {"clean": repaired.address, "suggestion": repaired.suggestion, "change": change}
    return table.attach(pa.table(made), names, CLEAN_COLUMNS, {})


@dataclass(frozen=True, slots=True)
class RepairedColumn:
    """What `repair_column` found in each text of a column."""

    # The address; where it is null, the text without the blanks around it; empty where an address
    # says itself that there is none.
    texts: pa.StringArray
    address: (
        pa.StringArray
    )  # in its canonical form; null where the text holds no address or several
    suggestion: pa.StringArray  # the address that was probably meant; null for none
    change: pa.StringArray  # names of the repairs that were applied, joined by ";"; no nulls
    count: pa.Int32Array  # distinct addresses in the text; no nulls
    is_unclear: pa.BooleanArray  # an address can be read in it, but not with certainty; no nulls

    def without(self, off: Collection[str], stripped: pa.StringArray) -> RepairedColumn:
        """The same with some repairs switched off: a text that needs one of them stays as it is, but for blanks.

        >>> texts = pa.array(["mailto:ada@firm.com", "<bob@firm.com>"])
        >>> repair_column(texts).without({"link"}, texts).address.to_pylist()
        [None, 'bob@firm.com']
        """
        if not off or not len(self.change):
            return self
        changes = self.change.dictionary_encode()
        needs_off = np.array(
            [not set(off).isdisjoint(each.split(";")) for each in changes.dictionary.to_pylist()]
        )
        rows = np.flatnonzero(needs_off[changes.indices.to_numpy()])
        kept = stripped.take(pa.array(rows))
        return replace(
            self,
            texts=replace_texts(self.texts, rows, kept),
            address=replace_texts(self.address, rows, texts_where(observe_column(kept).ok, kept)),
            change=replace_texts(self.change, rows, pa.array([""] * len(rows), pa.string())),
        )


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
    canonical, forms, changes = canonical_rows(stripped, seen)
    has_blanks = ok & (texts is not stripped and to_bools(pc.not_equal(texts, stripped)))
    blanks = pa.repeat(pa.scalar("blanks"), np.count_nonzero(has_blanks))
    with_blanks = pc.binary_join_element_wise("blanks", changes, ";")
    changes = pc.if_else(pa.array(has_blanks[canonical]), with_blanks, changes)
    suggested = suggest_rows(stripped, seen, suggests_domains=suggests_domains)
    refused, found = repair_refused(texts, seen)
    is_found = found["address"].is_valid()
    replaced = np.concatenate([canonical, refused[to_bools(is_found)]])
    whole = replace_texts(
        stripped, replaced, pa.concat_arrays([forms, found["address"].filter(is_found)])
    )
    count, is_unclear = ok.astype(np.int32), np.zeros(size, np.bool_)
    count[refused] = found["count"]
    is_unclear[refused] = to_bools(found["is_unclear"])
    nobody = nobody_rows(stripped, seen)
    change = fill_rows(
        size,
        "",
        (np.flatnonzero(has_blanks), blanks),
        (canonical, changes),
        (refused, found["change"]),
    )
    if len(nobody):
        nothing = pa.array([""] * len(nobody), pa.string())
        whole = replace_texts(whole, nobody, nothing)
        change = replace_texts(change, nobody, nothing)
        count[nobody] = 0
    return RepairedColumn(
        texts=whole,
        address=show_where(whole, pa.array(count == 1)),
        suggestion=fill_rows(size, None, *suggested, (refused, found["suggestion"])),
        change=change,
        count=pa.array(count),
        is_unclear=pa.array(is_unclear),
    )


def repair_refused(texts: pa.StringArray, seen: SyntaxColumn) -> tuple[Rows, pa.RecordBatch]:
    """The refused rows that may hold or suggest an address, and what was found in each."""
    rows = np.flatnonzero(~to_bools(seen.ok))
    cells = texts.take(pa.array(rows))
    may_hold = pc.match_substring_regex(cells, SIGNS)
    rows = rows[to_bools(may_hold)]
    cells = cells.filter(may_hold)
    # Cells of one form take the same way through the code: one after another, they need three
    # quarters of the time.
    order = pc.sort_indices(pc.ascii_ltrim(cells, USUAL))
    rows = rows[order.to_numpy()]
    distinct = cells.take(order).dictionary_encode()
    answers = []
    for text in distinct.dictionary.to_pylist():
        cell = repair_text(text)
        address = None
        if len(cell.addresses) == 1:
            address = cell.addresses[0]
        suggestion = suggest_repaired(cell)
        change = ";".join(cell.changes)
        answers.append((address, suggestion, change, len(cell.addresses), cell.is_unclear))
    columns = zip(*answers, strict=True) if answers else [()] * len(FOUND)
    found = pa.record_batch(list(map(pa.array, columns, FOUND.types)), schema=FOUND)
    return rows, found.take(distinct.indices)


def repair_text(text: str) -> RepairedCell:
    """Repair a text, unless `read_values` may have cut it, which could leave a part of an address."""
    if len(text) in (LONGEST_TEXT, MAX_CELL):
        return RepairedCell(is_unclear="@" in text)
    return repair_cell(text)


def suggest_repaired(cell: RepairedCell) -> str | None:
    """The address that was probably meant, also by the one that was found."""
    if len(cell.addresses) != 1:
        return cell.suggestion
    local, _, domain = cell.addresses[0].rpartition("@")
    meant = suggest_domain(domain)
    return f"{local}@{meant}" if meant else guess_plain(cell.addresses[0])


def fill_rows(
    size: int, base: Literal[""] | None, *parts: tuple[Rows, pa.StringArray]
) -> pa.StringArray:
    """A column of nulls or of empty texts, with other texts in the rows of each part."""
    rows = np.concatenate([rows for rows, _ in parts])
    pool = pa.concat_arrays([pa.array([base], pa.string()), *(texts for _, texts in parts)])
    if not len(rows) or pool.null_count == len(pool):
        # Empty texts of no octets are made in a tenth of the time of `pa.repeat`.
        nothing = [None, pa.py_buffer(np.zeros(size + 1, np.int32)), pa.py_buffer(b"")]
        return (
            pa.nulls(size, pa.string())
            if base is None
            else pa.Array.from_buffers(pa.string(), size, nothing)
        )
    at = np.zeros(size, np.int32)
    at[rows] = np.arange(1, len(pool))
    return pool.take(pa.array(at))


DID_YOU_MEAN = "probably mistyped: did you mean "


def advise(text: str) -> tuple[str | None, str | None]:
    """What to do with a malformed text that holds or suggests an address, in a word and in words; None for any other.

    >>> advise("<ada@firm.com>")
    ('clean', 'would be ada@firm.com after cleaning')
    """
    found = repair_text(text)
    if len(found.addresses) > 1:
        return "explode", f"holds {len(found.addresses)} addresses: give each a row of its own"
    if found.addresses:
        return "clean", f"would be {found.addresses[0]} after cleaning"
    if found.suggestion is not None:
        return "typo", f"{DID_YOU_MEAN}{found.suggestion}?"
    if found.is_unclear:
        return "unclear", "may hold an address, but not with certainty: correct it by hand"
    return None, None


def canonical_rows(
    stripped: pa.StringArray, seen: SyntaxColumn
) -> tuple[Rows, pa.StringArray, pa.StringArray]:
    """The accepted rows whose text is not in its canonical form, these forms, and the names of what they change."""
    rows = seen.changed
    written = stripped.take(pa.array(rows))
    local = pc.replace_substring_regex(written, "@.*$", "")
    forms = pc.binary_join_element_wise(
        local, seen.domains.take(seen.domain_codes.take(pa.array(rows))), "@"
    )
    changes = pa.repeat(pa.scalar("case"), len(rows))
    others = pc.invert(pc.string_is_ascii(written))
    if others.true_count:
        texts = written.filter(others).to_pylist()
        canonical = list(
            map(canonical_form, texts, seen.normalized(pa.array(rows).filter(others)).to_pylist())
        )
        forms = pc.replace_with_mask(forms, others, pa.array(canonical, pa.string()))
        changes = pc.replace_with_mask(
            changes, others, pa.array(map(name_changes, texts, canonical), pa.string())
        )
    is_new = pc.not_equal(forms, written)
    return rows[to_bools(is_new)], forms.filter(is_new), changes.filter(is_new)


def name_changes(written: str, address: str) -> str:
    """The repairs that made the canonical form of a well-formed address."""
    local, _, domain = written.rpartition("@")
    lowered = lower_domain(domain)
    names = ["unicode"] if f"{local}@{lowered}" != address else []
    if unicodedata.normalize("NFC", lowered) != unicodedata.normalize("NFC", domain):
        names.append("case")
    return ";".join(names)


def suggest_rows(
    stripped: pa.StringArray, seen: SyntaxColumn, *, suggests_domains: bool
) -> list[tuple[Rows, pa.StringArray]]:
    """The accepted rows for which another address is suggested, and this: for a domain, and for a prefix."""
    rows, suggested = np.empty(0, np.intp), []
    if suggests_domains:
        meant = pa.array(suggest_domains(seen.domains.to_pylist()), pa.string())
        is_mistyped = np.append(
            to_bools(meant.is_valid()), False
        )  # the last one is for refused rows
        rows = np.flatnonzero(is_mistyped[seen.domain_codes.fill_null(-1).to_numpy()])
        domains = meant.take(seen.domain_codes.take(pa.array(rows)))
        suggested = [(rows, pc.binary_join_element_wise(seen.local(pa.array(rows)), domains, "@"))]
    unusual = seen.unusual
    unusual = unusual[
        to_bools(pc.match_substring_regex(stripped.take(pa.array(unusual)), MAY_LOOK_ODD))
    ]
    unusual = np.setdiff1d(
        np.union1d(unusual, odd_begins(stripped, seen)), rows, assume_unique=True
    )
    found = pa.array(map(guess_plain, stripped.take(pa.array(unusual)).to_pylist()), pa.string())
    return [*suggested, (unusual, found)]


def nobody_rows(stripped: pa.StringArray, seen: SyntaxColumn) -> Rows:
    """The accepted rows whose address says that there is none."""
    is_none = to_bools(pc.match_substring_regex(seen.domains, NONE_DOMAIN))
    is_none = np.append(is_none, False)  # the last one is for refused rows
    rows = np.flatnonzero(is_none[seen.domain_codes.fill_null(-1).to_numpy()])
    names_none = [names_nobody(text) for text in stripped.take(pa.array(rows)).to_pylist()]
    return rows[np.array(names_none, np.bool_)]


def odd_begins(stripped: pa.StringArray, seen: SyntaxColumn) -> Rows:
    """The accepted rows of usual characters whose text begins as hardly an address does."""
    if not seen.ok.true_count:
        return np.empty(0, np.intp)
    starts = offsets_of(stripped)[:-1]
    octets = octets_of(stripped)
    first = octets.take(starts, mode="clip") | 0x20
    second = octets.take(starts + 1, mode="clip") | 0x20
    may_begin = np.zeros(len(stripped), np.bool_)
    for pair in ("ww", "xn", "im"):
        may_begin |= (first == ord(pair[0])) & (second == ord(pair[1]))
    rows = np.flatnonzero(may_begin & to_bools(seen.ok))
    return rows[to_bools(pc.match_substring_regex(stripped.take(pa.array(rows)), USUAL_BEGINS))]


def split_address(series: pd.Series[Any]) -> pd.DataFrame:
    """Local part and lower-case domain of each cell, NA where there is no ``@``."""
    cells = read_values(series)
    distinct = cells.texts.dictionary_encode()
    parts = [text.rpartition("@") for text in distinct.dictionary.to_pylist()]
    columns = {
        "local": [local if at else None for local, at, _ in parts],
        "domain": [lower_domain(domain) if at else None for _, at, domain in parts],
    }
    taken = {
        name: to_string(pa.chunked_array([pa.array(values, pa.string()).take(distinct.indices)]))
        for name, values in columns.items()
    }
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
