"""Tidying a column without losing anything: new columns beside it, never a rewritten domain."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable
from typing import Any
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pyarrow as pa

from ..checks.suggest import suggest_domain
from ..checks.syntax import observe_syntax
from .columns import Column, as_text
from .intake import Intake, read_values
from .kinds import kind_of_data

__all__ = ["clean", "split_address", "tidy_address"]

INVISIBLE = dict.fromkeys(
    map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f\u202a\u202b\u202c\u202d\u202e"), None
)
SCHEME = re.compile(r"^mailto:\s*", re.IGNORECASE)
ANGLE = re.compile(r"^[^<>]*<\s*([^<>\s]+@[^<>\s]+)\s*>[;,.]?$")
TRAILING = " \t\r\n;,."
QUOTES = (("'", "'"), ('"', '"'), ("<", ">"), ("(", ")"), ("[", "]"), ("“", "”"), ("‘", "’"), ("«", "»"))
NO_CHANGE = ""
MADE = (
    Column("clean", "text", "clean", in_core=False, meaning="the tidied address; NA where there is none"),
    Column("suggestion", "text", "suggestion", in_core=False, meaning="did you mean; never applied by itself"),
    Column("change", "text", "change", in_core=False, meaning="what was done, joined by ';'"),
)


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
    names = kind.names(prefix, MADE)
    intake = read_values(kind.values())
    distinct = intake.texts.dictionary_encode()
    tidied = [tidy_address(text) for text in distinct.dictionary.to_pylist()]
    index = row_index(distinct.indices, intake)
    table = pa.table({c.field: pa.array([t[i] for t in tidied], pa.string()).take(index) for i, c in enumerate(MADE)})
    return kind.attach(table, names, MADE, {})


def row_index(codes: pa.Int32Array, intake: Intake) -> pa.Int64Array:
    """Per row of the caller's the index of its distinct text; null where it holds no text."""
    rows = np.full(intake.size, -1, np.int64)
    rows[slice(None) if intake.rows is None else intake.rows] = codes.to_numpy(zero_copy_only=False)
    return pa.array(rows, mask=rows < 0)


def tidy_address(text: str) -> tuple[str | None, str | None, str]:
    """Give the tidied address, a suggestion, and what was done.

    >>> tidy_address("<ada@example.org>;")
    ('ada@example.org', None, 'unwrapped')
    """
    done: list[str] = []
    address = text
    for name, step in STEPS:
        changed = step(address)
        if changed != address and name not in done:
            done.append(name)
        address = changed
    seen = observe_syntax(address)
    if not seen.ok:
        return None, None, NO_CHANGE
    meant = suggest_domain(seen.ascii_domain)
    return address, (f"{seen.local}@{meant}" if meant else None), ";".join(done)


def drop_invisible(text: str) -> str:
    return text.translate(INVISIBLE).strip()


def unwrap(text: str) -> str:
    """Take the address out of a display name, a link, quotes or a list's punctuation."""
    link = SCHEME.sub("", text)
    if link != text:
        link = unquote(link.partition("?")[0])
    match = ANGLE.match(link)
    bare = match[1] if match else link
    bare = SCHEME.sub("", bare).strip(TRAILING)
    for opening, closing in QUOTES:
        if len(bare) > 2 and bare.startswith(opening) and bare.endswith(closing):
            bare = bare[1:-1].strip(TRAILING)
    return bare


def normalize(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def lower_domain(text: str) -> str:
    local, at, domain = text.rpartition("@")
    return local + at + domain.lower()


# In order; each says in `change` that it did something.
STEPS = (
    ("blanks", drop_invisible),
    ("unwrapped", unwrap),
    ("unicode", normalize),
    ("case", lower_domain),
)


def split_address(series: pd.Series[Any]) -> pd.DataFrame:
    """Local part and lower-case domain of each cell, NA where there is no ``@``."""
    intake = read_values(series)
    distinct = intake.texts.dictionary_encode()
    parts = [text.rpartition("@") for text in distinct.dictionary.to_pylist()]
    columns = {
        "local": [local if at else None for local, at, _ in parts],
        "domain": [domain.lower() if at else None for _, at, domain in parts],
    }
    index = row_index(distinct.indices, intake)
    taken = {name: as_text(pa.chunked_array([pa.array(v, pa.string()).take(index)])) for name, v in columns.items()}
    return pd.DataFrame(taken, index=series.index)
