"""Cleaning a column: `clean` adds the repaired address, a suggestion and what was changed.

`repair_column` makes one table of a column of texts:

    cell             text            clean          suggestion     change     count
    Ada@FIRM.com     Ada@firm.com    Ada@firm.com                  case       1
    <ada@firm.com>   ada@firm.com    ada@firm.com                  unwrapped  1
    ada@gmail,com    ada@gmail,com                  ada@gmail.com             0
    a@b.de; c@d.de   a@b.de; c@d.de                                           2

It starts from the syntax check of all texts. A well-formed address is only put into its canonical
form, and another one is suggested where it looks odd. Only the distinct texts that the syntax check
refuses go through `repair_cell`, one by one, and of these only such that have a sign of an address.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Collection, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, overload

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.lists.suggestions import suggest_domains
from ..checks.syntax.address import canonical_form
from ..checks.syntax.column import normal_forms, observe_column
from ..model.address import lower_domain
from ..model.arrow import (
    empty_texts,
    map_slices,
    one_array,
    one_batch,
    replace_texts,
    replace_where,
    spread_texts,
    texts_where,
    to_bools,
)
from ..repair.guess import MAY_BE_GUESSED, MAY_LOOK_ODD, USUAL_BEGINS, guess_plain
from ..repair.repair import MAX_CELL, RepairedCell, is_unclear, repair_cell
from ..repair.words import NONE_DOMAIN, names_nobody
from ..table.cells import (
    LONGEST_TEXT,
    describe_no_address,
    read_cells,
    read_texts,
    strip_texts,
    where_filled,
)
from ..table.columns import CLEAN_COLUMNS, to_string
from ..table.notices import warn_user
from ..table.overwrite import name_columns
from ..table.table import Frame, table_of

# Without any of these no address is found in an ASCII text, and none is suggested.
SIGNS = rf'[@&%#=\\\[({{<"]|[^ -~]|(?i:{MAY_BE_GUESSED})'
# Most local parts have no other characters; `guess_plain` then has an answer for `ODD_BEGINS`
# alone.
USUAL = string.ascii_letters + string.digits + ".-_+"
ODD_BEGINS = ("www.", "imcea", "xn--")
MAY_BE_ODD = rf"{MAY_LOOK_ODD}|{USUAL_BEGINS}"
NOTHING = RepairedCell()
CUT_LENGTHS = (LONGEST_TEXT, MAX_CELL)  # at which `read_cells` cuts a text
# Unicode categories: blanks, characters without a width, controls.
INVISIBLE = ("Zs", "Zl", "Zp", "Cf", "Cc")


@overload
def clean(data: Frame, column: Hashable, *, prefix: str | None = None) -> Frame: ...
@overload
def clean(
    data: Iterable[object], column: None = None, *, prefix: str | None = None
) -> pd.DataFrame: ...
def clean(data: Any, column: Hashable | None = None, *, prefix: str | None = None) -> Any:
    """Find the address that a person would read in each cell.

    Applies the safe repairs of `REPAIRS`: the text around an address is removed (labels, display
    names, links, HTML, punctuation, phone numbers), and characters are written in their standard
    form. What may only be a guess is a suggestion. A well-formed address is never changed but for
    blanks, Unicode form and the case of its domain. Uses no network.

    Parameters
    ----------
    data : DataFrame, Series or list-like
        A pandas, Polars or Arrow frame with `column`, or a Series, array or list of cells; as in
        `verify`.
    column : hashable, optional
        Which column of a frame.
    prefix : str, optional
        Before each new column's name; ``f"{column}_"`` by default, nothing for a Series or list.

    Returns
    -------
    DataFrame
        One row out per row in, the caller's columns untouched, and three new ones of dtype
        ``string``: `clean` (the address; NA where the cell is missing, or holds no address or
        several of them, for which there is `explode`), `suggestion` (the address that was probably
        meant) and `change` (names of the repairs that were applied, joined by ``;``; empty for
        none).

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
    >>> cells = ["Ada Li <Ada@Example.ORG>", "mailto:bob@gmial.com", "ada@gmail,com", "nobody"]
    >>> mv.clean(cells)
                 clean     suggestion          change
    0  Ada@example.org           <NA>  unwrapped;case
    1    bob@gmial.com  bob@gmail.com            link
    2             <NA>  ada@gmail.com
    3             <NA>           <NA>
    """
    table = table_of(data, column)
    names = name_columns(table, prefix, CLEAN_COLUMNS)
    cells = read_cells(table.values(), longest=MAX_CELL)
    repaired = repair_column(cells["text"], cells["stripped"])
    warn_user(describe_no_address(repaired["text"], column))
    change = where_filled(cells["stripped"], repaired["change"])
    columns = {
        "clean": repaired["clean"],
        "suggestion": repaired["suggestion"],
        "change": change,
    }
    return table.attach(pa.table(columns), names, CLEAN_COLUMNS, {})


# --- a column of texts ----------------------------------------------------------------------------


def repair_column(
    texts: pa.StringArray,
    stripped: pa.StringArray | None = None,
    seen: pa.RecordBatch | None = None,
    *,
    suggests_domains: bool = True,
) -> pa.RecordBatch:
    """Repair each text of a column without nulls.

    `stripped` and what `observe_column` saw are given if they are known.

    Texts are given with the blanks around them, for `change` to name these. Without
    `suggests_domains` mistyped domains of well-formed texts are not looked for. The columns:

    - `text`: the address; where it is not known, the text without the blanks around it; empty where
      an address says itself that there is none.
    - `clean`: the address in its canonical form; null where the text holds no address or several.
    - `suggestion`: the address that was probably meant; null for none.
    - `change`: names of the repairs that were applied, joined by ";"; empty for none.
    - `count`: distinct addresses in the text.

    >>> texts = ["Ada@FIRM.com", "<ada@firm.com>", "ada@firm.com; bob@firm.com", "nobody"]
    >>> found = repair_column(pa.array(texts))
    >>> found["clean"].to_pylist(), found["change"].to_pylist(), found["count"].to_pylist()
    (['Ada@firm.com', 'ada@firm.com', None, None], ['case', 'unwrapped', '', ''], [1, 1, 2, 0])
    """
    if stripped is None:
        stripped = strip_texts(texts)
    if seen is None:
        seen = observe_column(stripped)

    # Nearly all rows are well-formed addresses in their canonical form, which stay as they are.
    # Arrow works without the interpreter's lock, beside the repair of the refused cells.
    with ThreadPoolExecutor(1) as beside:
        accepted = beside.submit(repair_accepted, texts, seen)
        refused = repair_refused(texts, seen)
    both = pa.Table.from_batches([accepted.result(), refused])
    touched = one_batch(both.sort_by("row"))
    rows = touched["row"].to_numpy()

    size = len(texts)
    is_new = pc.not_equal(touched["text"], stripped.take(touched["row"]))
    text = replace_texts(stripped, rows[to_bools(is_new)], touched["text"].filter(is_new))
    count = np.ones(size, np.int32)
    count[rows] = touched["count"]
    suggestion = spread_texts(touched["suggestion"], rows, size)
    if suggests_domains:
        suggestion = pc.coalesce(suggest_domains_of(seen), suggestion)
    change = spread_texts(touched["change"], rows, size, empty=True)
    columns = {
        "text": text,
        "clean": texts_where(pa.array(count == 1), text),
        "suggestion": suggestion,
        "change": change,
        "count": pa.array(count),
    }
    return pa.record_batch(columns)


def without_repairs(
    repaired: pa.RecordBatch, off: Collection[str], stripped: pa.StringArray
) -> pa.RecordBatch:
    """The same with some repairs switched off.

    A text that needs one of them stays as it is, but for blanks.

    >>> texts = pa.array(["mailto:ada@firm.com", "<bob@firm.com>"])
    >>> without_repairs(repair_column(texts), {"link"}, texts)["clean"].to_pylist()
    [None, 'bob@firm.com']
    """
    if not off:
        return repaired
    changes = repaired["change"].dictionary_encode()
    needs_off = []
    for names in changes.dictionary.to_pylist():
        needs_off.append(not set(off).isdisjoint(names.split(";")))
    stays = pa.array(needs_off, pa.bool_()).take(changes.indices)
    kept = stripped.filter(stays)
    well_formed = observe_column(kept, lenient=True)["well_formed"]
    clean = texts_where(well_formed, kept)
    columns = {name: repaired[name] for name in repaired.schema.names}
    columns["text"] = replace_where(columns["text"], stays, kept)
    columns["clean"] = replace_where(columns["clean"], stays, clean)
    columns["change"] = replace_where(columns["change"], stays, empty_texts(len(kept)))
    return pa.record_batch(columns)


# --- well-formed texts ----------------------------------------------------------------------------


def repair_accepted(texts: pa.StringArray, seen: pa.RecordBatch) -> pa.RecordBatch:
    """What is changed or suggested in accepted rows: the columns of `repair_column` but `clean`.

    `row` has the positions of the rows of which something is to be said.
    """
    row = pc.indices_nonzero(find_changeable(texts, seen))
    texts = texts.take(row)
    seen = seen.take(row)
    stripped = seen["text"]

    has_blanks = pc.not_equal(texts, stripped)
    change = pc.if_else(has_blanks, "blanks", empty_texts(len(row)))
    is_other = pc.not_equal(normal_forms(seen), stripped)
    forms, names = canonical_forms(seen.filter(is_other))
    names = join_names(change.filter(is_other), names)
    text = replace_where(stripped, is_other, forms)
    change = replace_where(change, is_other, names)

    is_nobody = find_nobody(seen)
    columns = {
        "row": row,
        "text": pc.if_else(is_nobody, "", text),
        "suggestion": suggest_plain(stripped),
        "change": pc.if_else(is_nobody, "", change),
        "count": pc.invert(is_nobody).cast(pa.int32()),
    }
    return pa.record_batch(columns)


def find_changeable(texts: pa.StringArray, seen: pa.RecordBatch) -> pa.BooleanArray:
    """The accepted rows that may be changed, get a suggestion, or say that there is no address."""
    may_change = pc.or_(find_odd(seen), pc.invert(seen["as_written"]))
    may_change = pc.or_(may_change, find_none_domains(seen))
    if texts is not seen["text"]:
        may_change = pc.or_(may_change, pc.not_equal(texts, seen["text"]))
    return pc.and_(seen["well_formed"], may_change)


def find_none_domains(seen: pa.RecordBatch) -> pa.BooleanArray:
    """The rows with a domain that may stand for no domain."""
    domain = seen["domain"]
    is_none = pc.match_substring_regex(domain.dictionary, NONE_DOMAIN)
    return is_none.take(domain.indices).fill_null(False)


def find_odd(seen: pa.RecordBatch) -> pa.BooleanArray:
    """The accepted rows that are not ASCII, or have an unusual sign or begin."""
    slices = map_slices(find_odd_locals, seen["local"])
    is_odd = one_array(pa.chunked_array(slices, pa.bool_()))
    display = seen["display"]
    is_foreign = pc.invert(pc.string_is_ascii(display.dictionary))
    return pc.or_(is_odd, is_foreign.take(display.indices)).fill_null(False)


def find_odd_locals(local: pa.StringArray) -> pa.BooleanArray:
    left = pc.ascii_trim(local, USUAL)  # a tenth of the time that a pattern takes
    is_odd = pc.greater(pc.binary_length(left), 0)
    lowered = pc.ascii_lower(local)
    for begin in ODD_BEGINS:
        is_odd = pc.or_(is_odd, pc.starts_with(lowered, begin))
    return is_odd


def find_nobody(seen: pa.RecordBatch) -> pa.BooleanArray:
    """The accepted rows whose address says itself that there is none, as none@none.com."""
    may_be = find_none_domains(seen)
    if not may_be.true_count:
        return may_be
    texts = seen["text"].filter(may_be).to_pylist()
    is_nobody = pa.array(map(names_nobody, texts), pa.bool_())
    return replace_where(may_be, may_be, is_nobody)


def canonical_forms(seen: pa.RecordBatch) -> tuple[pa.StringArray, pa.StringArray]:
    """The canonical forms of accepted texts, and the names of the repairs that made them."""
    written = seen["text"]
    domain = seen["domain"]
    local = pc.replace_substring_regex(written, "@.*$", "")
    forms = pc.binary_join_element_wise(local, domain.dictionary.take(domain.indices), "@")
    changes = pc.if_else(pc.not_equal(forms, written), "case", "")
    is_foreign = pc.invert(pc.string_is_ascii(written))
    if not is_foreign.true_count:
        return forms, changes
    texts = written.filter(is_foreign).to_pylist()
    normal = normal_forms(seen.filter(is_foreign)).to_pylist()
    canonical = list(map(canonical_form, texts, normal))
    names = list(map(name_changes, texts, canonical))
    forms = replace_where(forms, is_foreign, pa.array(canonical, pa.string()))
    changes = replace_where(changes, is_foreign, pa.array(names, pa.string()))
    return forms, changes


def name_changes(written: str, address: str) -> str:
    """The repairs that made the canonical form of a well-formed address."""
    local, _, domain = written.rpartition("@")
    lowered = lower_domain(domain)
    names = []
    if f"{local}@{lowered}" != address:
        names.append("unicode")
    if unicodedata.normalize("NFC", lowered) != unicodedata.normalize("NFC", domain):
        names.append("case")
    return ";".join(names)


def join_names(first: pa.StringArray, second: pa.StringArray) -> pa.StringArray:
    """The names of repairs in two columns, joined by ";" where both have some."""
    joined = pc.binary_join_element_wise(first, second, ";")
    return pc.utf8_trim(joined, ";")


def suggest_domains_of(seen: pa.RecordBatch) -> pa.StringArray:
    """The address with the domain that was probably meant; null where it is none."""
    domain = seen["domain"]
    suggested = suggest_domains(domain.dictionary.to_pylist())
    meant = pa.array(suggested, pa.string()).take(domain.indices)
    return pc.binary_join_element_wise(seen["local"], meant, "@")


def suggest_plain(texts: pa.StringArray) -> pa.StringArray:
    """The address that was meant by each well-formed text with signs that hardly belong to it."""
    nothing = pa.nulls(len(texts), pa.string())
    may_be_odd = pc.match_substring_regex(texts, MAY_BE_ODD)
    plain = map(guess_plain, texts.filter(may_be_odd).to_pylist())
    return replace_where(nothing, may_be_odd, pa.array(plain, pa.string()))


# --- refused texts --------------------------------------------------------------------------------


def repair_refused(texts: pa.StringArray, seen: pa.RecordBatch) -> pa.RecordBatch:
    """The same columns for the refused rows."""
    row = pc.indices_nonzero(pc.invert(seen["well_formed"]))
    cells = repair_cells(texts.take(row))
    columns = {
        "row": row,
        "text": pc.coalesce(cells["clean"], seen["text"].take(row)),
        "suggestion": cells["suggestion"],
        "change": cells["change"],
        "count": cells["count"],
    }
    return pa.record_batch(columns)


def repair_cells(texts: pa.StringArray) -> pa.RecordBatch:
    """What is found in each text that is not an address as it stands."""
    has_sign = pc.match_substring_regex(texts, SIGNS)
    distinct = texts_where(has_sign, texts).dictionary_encode()
    # Cells of one form take the same way through the code: one after another they need three
    # quarters of the time.
    forms = pc.ascii_ltrim(distinct.dictionary, USUAL)
    order = pc.sort_indices(forms)
    clean = []
    suggestions = []
    changes = []
    counts = []
    for text in distinct.dictionary.take(order).to_pylist():
        cell = repair_text(text)
        clean.append(cell.addresses[0] if len(cell.addresses) == 1 else None)
        suggestions.append(cell.suggestion)
        changes.append(";".join(cell.changes))
        counts.append(len(cell.addresses))

    found = pa.array(clean, pa.string())
    suggestion = pa.array(suggestions, pa.string())
    meant = suggest_for(found.drop_null())
    columns = {
        "clean": found,
        "suggestion": replace_where(suggestion, found.is_valid(), meant),
        "change": pa.array(changes, pa.string()),
        "count": pa.array(counts, pa.int32()),
    }
    place = np.empty(len(order), np.int32)
    place[order.to_numpy()] = np.arange(len(order))
    rows = pa.record_batch(columns).take(pa.array(place).take(distinct.indices))
    filled = {
        "clean": rows["clean"],
        "suggestion": rows["suggestion"],
        "change": rows["change"].fill_null(""),
        "count": rows["count"].fill_null(0),
    }
    return pa.record_batch(filled)


def repair_text(text: str) -> RepairedCell:
    """Repair a text, unless it may have been cut within an address."""
    if len(text) in CUT_LENGTHS:
        return NOTHING
    return repair_cell(text)


def find_cut(texts: pa.StringArray) -> pa.BooleanArray:
    """The texts that may have been cut within an address, and are not repaired."""
    return pc.is_in(pc.utf8_length(texts), value_set=pa.array(CUT_LENGTHS, pa.int32()))


def suggest_for(addresses: pa.StringArray) -> pa.StringArray:
    """The address that was probably meant by each one that was found; null where it is that one."""
    written = addresses.to_pylist()
    domains = [address.rpartition("@")[2] for address in written]
    meant = []
    for address, domain, provider in zip(written, domains, suggest_domains(domains), strict=True):
        local = address[: -len(domain)]
        meant.append(provider and f"{local}{provider}")
    return pc.coalesce(pa.array(meant, pa.string()), suggest_plain(addresses))


DID_YOU_MEAN = "probably mistyped: did you mean "


def advise(text: str) -> tuple[str | None, str | None]:
    """What to do with a malformed text, in a word and in words.

    None for a text that neither holds nor suggests an address.

    >>> advise("<ada@firm.com>")
    ('clean', 'would be ada@firm.com after cleaning')
    """
    cell = repair_text(text)
    if len(cell.addresses) > 1:
        return "explode", f"holds {len(cell.addresses)} addresses: give each a row of its own"
    if cell.addresses:
        return "clean", f"would be {cell.addresses[0]} after cleaning"
    if cell.suggestion is not None:
        return "typo", f"{DID_YOU_MEAN}{cell.suggestion}?"
    is_cut = len(text) in CUT_LENGTHS
    if is_unclear(text) or (is_cut and "@" in text):
        return "unclear", "may hold an address, but not with certainty: correct it by hand"
    return None, None


def split_address(series: pd.Series[Any]) -> pd.DataFrame:
    """Local part and lower-case domain of each cell, NA where there is no ``@``."""
    distinct = read_texts(series).dictionary_encode()
    columns: dict[str, list[str | None]] = {"local": [], "domain": []}
    for text in distinct.dictionary.to_pylist():
        local = domain = None
        if "@" in text:
            local, _, domain = text.rpartition("@")
            domain = lower_domain(domain)
        columns["local"].append(local)
        columns["domain"].append(domain)
    taken = {}
    for name, values in columns.items():
        rows = pa.array(values, pa.string()).take(distinct.indices)
        taken[name] = to_string(pa.chunked_array([rows]))
    return pd.DataFrame(taken, index=series.index)


def show_blanks(text: str) -> str:
    r"""A text whose blanks at the ends, and whose other blanks than a space, can be seen.

    >>> show_blanks(" Ada <ada@firm.com> "), show_blanks("a\u00a0b\u200b")
    ('␣Ada <ada@firm.com>␣', 'a␣b␣')
    """
    inner = text.strip()
    before = text.find(inner)
    after = len(text) - before - len(inner)
    characters = []
    for character in inner:
        is_invisible = character != " " and unicodedata.category(character) in INVISIBLE
        characters.append("␣" if is_invisible else character)
    return "␣" * before + "".join(characters) + "␣" * after
