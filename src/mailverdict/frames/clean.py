"""Cleaning a column: `clean` adds the cleaned address, a suggestion and what was changed; the column itself stays.

The steps are in `STEPS`, in order. They run once per distinct text, and only for texts that a step could change.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, overload
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.lists.suggestions import suggest_domains
from ..checks.syntax.column import observe_column
from ..model.address import identity, lower_domain
from .columns import CLEAN_COLUMNS, to_string
from .kinds import kind_of_data
from .text_column import TextColumn, read_values

if TYPE_CHECKING:
    import polars as pl

__all__ = ["clean", "split_address", "tidy_text"]

INVISIBLE = dict.fromkeys(
    map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f\u202a\u202b\u202c\u202d\u202e"), None
)
SCHEME = re.compile(r"^mailto:\s*", re.IGNORECASE)
ANGLE = re.compile(r"^[^<>]*<\s*([^<>\s]+@[^<>\s]+)\s*>[;,.]?$")
TRAILING = " \t\r\n;,."
QUOTES = (("'", "'"), ('"', '"'), ("<", ">"), ("(", ")"), ("[", "]"), ("“", "”"), ("‘", "’"), ("«", "»"))
# Texts that no step changes: most rows of most columns.
PLAIN = r"\A[A-Za-z0-9_][A-Za-z0-9._+\-]*@[a-z0-9.\-]*[a-z0-9]\z"


@overload
def clean(data: pd.DataFrame, column: Hashable, *, prefix: str | None = None) -> pd.DataFrame: ...
@overload
def clean(data: pl.DataFrame, column: str, *, prefix: str | None = None) -> pl.DataFrame: ...
@overload
def clean(data: Iterable[object], column: None = None, *, prefix: str | None = None) -> pd.DataFrame: ...
@overload
def clean(data: pa.Table, column: str, *, prefix: str | None = None) -> pa.Table: ...
def clean(data: Any, column: Hashable | None = None, *, prefix: str | None = None) -> Any:
    """Clean a column of addresses: remove what people and exports put around an address.

    Unwraps ``"Ada <a@b.org>"`` and ``mailto:``, strips blanks, quotes, trailing punctuation and
    invisible characters, normalises to NFC and lower-cases the domain. The local part's case is
    kept and a domain is never rewritten; a probable typing error is only suggested. Uses no network.

    Parameters
    ----------
    data : DataFrame, Series or list-like
        A pandas, Polars or Arrow frame with `column`, or a Series or list of cells.
    column : hashable, optional
        Which column of a frame.
    prefix : str, optional
        Before each new column's name; ``f"{column}_"`` by default, nothing for a Series or list.

    Returns
    -------
    DataFrame
        One row out per row in, the caller's columns untouched, and three new ones of dtype
        ``string``: `clean` (the cleaned address; NA where the cell is missing or has no
        well-formed address after cleaning), `suggestion` (the address with the domain that was
        probably meant) and `change` (the changes made, joined by ``;``; empty for none).

    Raises
    ------
    ColumnError
        No such column, or the name occurs twice.
    SettingsError
        A new column would overwrite one that mailverdict did not write.

    Examples
    --------
    >>> import mailverdict as mv
    >>> mv.clean(["Ada Lovelace <Ada@Example.ORG>", "mailto:bob@gmial.com", "nobody"])
                 clean     suggestion          change
    0  Ada@example.org           <NA>  unwrapped;case
    1    bob@gmial.com  bob@gmail.com       unwrapped
    2             <NA>           <NA>
    """
    kind = kind_of_data(data, column)
    names = kind.names(prefix, CLEAN_COLUMNS)
    cells = read_values(kind.values(), keep_blanks=True)
    distinct = cells.texts.dictionary_encode()
    index = row_index(distinct.indices, cells)
    tidied = {name: values.take(index) for name, values in tidy_column(distinct.dictionary).items()}
    return kind.attach(pa.table(tidied), names, CLEAN_COLUMNS, {})


def row_index(codes: pa.Int32Array, cells: TextColumn) -> pa.Int64Array:
    """For each row of the caller the index of its distinct text; null where it has none."""
    rows = np.full(cells.size, -1, np.int64)
    rows[slice(None) if cells.rows is None else cells.rows] = codes.to_numpy(zero_copy_only=False)
    return pa.array(rows, mask=rows < 0)


def tidy_column(texts: pa.StringArray) -> dict[str, pa.StringArray]:
    """The three columns for distinct texts; only texts that a step could change go through the steps."""
    changeable = pc.invert(pc.match_substring_regex(texts, PLAIN))
    tidied = [tidy_text(text) for text in texts.filter(changeable).to_pylist()]
    addresses = pc.replace_with_mask(texts, changeable, pa.array([address for address, _ in tidied], pa.string()))
    changes = pc.replace_with_mask(
        pa.repeat(pa.scalar(""), len(texts)), changeable, pa.array([change for _, change in tidied], pa.string())
    )
    seen = observe_column(addresses)
    meant = pa.array(suggest_domains(seen.domains.to_pylist()), pa.string()).take(seen.domain_codes)
    return {
        "clean": pc.if_else(seen.ok, addresses, None),
        "suggestion": pc.binary_join_element_wise(seen.local, meant, "@"),
        "change": pc.if_else(seen.ok, changes, ""),
    }


def tidy_text(text: str) -> tuple[str, str]:
    """The text after all steps, an address or not, and the names of the steps that changed it.

    >>> tidy_text("<Ada@Example.ORG>;")
    ('Ada@example.org', 'unwrapped;case')
    """
    changes = []
    for name, step in STEPS:
        changed = step(text)
        if changed != text:
            changes.append(name)
        text = changed
    return text, ";".join(changes)


def drop_invisible(text: str) -> str:
    return text.translate(INVISIBLE).strip()


def unwrap(text: str) -> str:
    """Remove a display name, ``mailto:``, quotes, brackets and trailing punctuation."""
    link = SCHEME.sub("", text)
    if link != text:
        link = decode_link(link)
    match = ANGLE.match(link)
    bare = match[1] if match else link
    bare = SCHEME.sub("", bare).strip(TRAILING)
    for opening, closing in QUOTES:
        if len(bare) > 2 and bare.startswith(opening) and bare.endswith(closing):
            bare = bare[1:-1].strip(TRAILING)
    return bare


def decode_link(link: str) -> str:
    """The address of a ``mailto:`` link (RFC 6068), or an empty text if its octets are not UTF-8."""
    try:
        return unquote(link.partition("?")[0], errors="strict")
    except UnicodeDecodeError:
        return ""


def normalize(text: str) -> str:
    return unicodedata.normalize("NFC", text)


# In order; the names are those in `change`.
STEPS = (
    ("blanks", drop_invisible),
    ("unwrapped", unwrap),
    ("unicode", normalize),
    ("case", identity),
)


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
