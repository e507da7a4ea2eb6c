"""Tidying a column without losing anything: new columns beside it, never a rewritten domain."""

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
from .columns import CLEAN_COLUMNS, as_text
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
NO_CHANGE = ""
# What no step changes: most rows of most columns.
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
    """Tidy a column of addresses: what people and exports put around them goes, the address stays.

    Unwraps ``"Ada <a@b.org>"`` and ``mailto:``, strips blanks, quotes, trailing punctuation and
    invisible characters, normalises to NFC and lower-cases the domain. The local part's case is
    kept and a domain is never rewritten; a probable slip is only suggested. Asks no network.

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
        ``string``: `clean` (the tidied address; NA where the cell is missing or holds no
        well-formed address even then), `suggestion` (the address with the domain that was
        probably meant) and `change` (what was done, joined by ``;``; empty for nothing).

    Raises
    ------
    ColumnError
        No such column, or the name occurs twice.
    SettingsError
        A new column would overwrite one that is not ours.

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
    intake = read_values(kind.values(), keep_blanks=True)
    distinct = intake.texts.dictionary_encode()
    index = row_index(distinct.indices, intake)
    tidied = {name: values.take(index) for name, values in tidy_column(distinct.dictionary).items()}
    return kind.attach(pa.table(tidied), names, CLEAN_COLUMNS, {})


def row_index(codes: pa.Int32Array, intake: TextColumn) -> pa.Int64Array:
    """Per row of the caller's the index of its distinct text; null where it holds no text."""
    rows = np.full(intake.size, -1, np.int64)
    rows[slice(None) if intake.rows is None else intake.rows] = codes.to_numpy(zero_copy_only=False)
    return pa.array(rows, mask=rows < 0)


def tidy_column(texts: pa.StringArray) -> dict[str, pa.StringArray]:
    """The three columns for distinct texts; only those that a step could change are looked at one by one."""
    rough = pc.invert(pc.match_substring_regex(texts, PLAIN))
    tidied = [tidy_text(text) for text in texts.filter(rough).to_pylist()]
    addresses = pc.replace_with_mask(texts, rough, pa.array([address for address, _ in tidied], pa.string()))
    changes = pc.replace_with_mask(
        pa.repeat(pa.scalar(NO_CHANGE), len(texts)), rough, pa.array([change for _, change in tidied], pa.string())
    )
    seen = observe_column(addresses)
    meant = pa.array(suggest_domains(seen.domains.to_pylist()), pa.string()).take(seen.domain_codes)
    return {
        "clean": pc.if_else(seen.ok, addresses, None),
        "suggestion": pc.binary_join_element_wise(seen.local, meant, "@"),
        "change": pc.if_else(seen.ok, changes, NO_CHANGE),
    }


def tidy_text(text: str) -> tuple[str, str]:
    """Go through the steps; give what is left, an address or not, and what was done.

    >>> tidy_text("<Ada@Example.ORG>;")
    ('Ada@example.org', 'unwrapped;case')
    """
    done = {}
    for name, step in STEPS:
        changed = step(text)
        if changed != text:
            done[name] = text
        text = changed
    return text, ";".join(done)


def drop_invisible(text: str) -> str:
    return text.translate(INVISIBLE).strip()


def unwrap(text: str) -> str:
    """Take the address out of a display name, a link, quotes or a list's punctuation."""
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
    """The address of a ``mailto:`` link (RFC 6068), or nothing if its octets are no UTF-8."""
    try:
        return unquote(link.partition("?")[0], errors="strict")
    except UnicodeDecodeError:
        return ""


def normalize(text: str) -> str:
    return unicodedata.normalize("NFC", text)


# In order; each says in `change` that it did something.
STEPS = (
    ("blanks", drop_invisible),
    ("unwrapped", unwrap),
    ("unicode", normalize),
    ("case", identity),
)


def split_address(series: pd.Series[Any]) -> pd.DataFrame:
    """Local part and lower-case domain of each cell, NA where there is no ``@``."""
    intake = read_values(series)
    distinct = intake.texts.dictionary_encode()
    parts = [text.rpartition("@") for text in distinct.dictionary.to_pylist()]
    columns = {
        "local": [local if at else None for local, at, _ in parts],
        "domain": [lower_domain(domain) if at else None for _, at, domain in parts],
    }
    index = row_index(distinct.indices, intake)
    taken = {name: as_text(pa.chunked_array([pa.array(v, pa.string()).take(index)])) for name, v in columns.items()}
    return pd.DataFrame(taken, index=series.index)
