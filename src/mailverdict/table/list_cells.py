"""Cells that are lists of texts, as Parquet files, JSON and grouped frames hold them.

A list without any text is a missing cell; any other list of texts is written as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.syntax.kernels import to_bools

SEQUENCES = (
    list,
    tuple,
    set,
    frozenset,
    np.ndarray,
    pd.api.extensions.ExtensionArray,
    pd.Series,
    pd.Index,
)
NEEDS_ESCAPE = r'["\\\x00-\x1f]'


def texts_of(cell: Any) -> list[str] | None:
    """The texts of a list, without missing and blank ones; None if it holds anything else.

    >>> texts_of(["ada@firm.com", None, ""]), texts_of([1])
    (['ada@firm.com'], None)
    """
    if isinstance(cell, np.ndarray) and cell.ndim != 1:
        return None
    items = list(cell)
    texts = [item for item in items if isinstance(item, str)]
    others = [item for item in items if not isinstance(item, str) and not is_missing(item)]
    if others:
        return None
    filled = [text for text in texts if text.strip()]
    return sorted(filled) if isinstance(cell, set | frozenset) else filled


def is_missing(item: Any) -> bool:
    return item is None or (pd.api.types.is_scalar(item) and bool(pd.isna(item)))


def to_json(texts: Sequence[str]) -> str:
    return json.dumps(texts, ensure_ascii=False)


def read_list_column(lists: pa.LargeListArray, items: pa.Array) -> pa.StringArray:
    """The text of each list of an Arrow column, null for none; `items` are the texts, without encodings around them."""
    size, offsets = len(lists), lists.offsets.to_numpy()
    row = np.repeat(np.arange(size), np.diff(offsets))
    items = items.slice(offsets[0], offsets[-1] - offsets[0]).cast(pa.large_string())
    is_filled = to_bools(items.is_valid()) & to_bools(lists.is_valid())[row]
    is_filled &= to_bools(pc.not_equal(pc.utf8_trim_whitespace(items), "").fill_null(False))
    count = np.bincount(row[is_filled], minlength=size)
    return write_lists(items.filter(pa.array(is_filled)), row[is_filled], count)


def write_lists(items: pa.Array, row: Any, count: Any) -> pa.StringArray:
    """Lists as JSON; `items` are the texts of all of them, and `row` the list of each."""
    is_plain = (count[row] == 1) & ~to_bools(pc.match_substring_regex(items, NEEDS_ESCAPE))
    signs = [pa.scalar(sign, pa.large_string()) for sign in ('["', '"]', "")]
    plain = pc.binary_join_element_wise(signs[0], items.filter(pa.array(is_plain)), *signs[1:])
    at = np.full(len(count), -1)
    at[row[is_plain]] = np.arange(len(plain))
    others: dict[int, list[str]] = {}
    for text, list_row in zip(
        items.filter(pa.array(~is_plain)).to_pylist(), row[~is_plain].tolist(), strict=True
    ):
        others.setdefault(list_row, []).append(text)
    at[list(others)] = np.arange(len(plain), len(plain) + len(others))
    pool = pa.concat_arrays([plain, pa.array(map(to_json, others.values()), pa.large_string())])
    texts: pa.StringArray = pool.take(pa.array(at, mask=at < 0)).cast(pa.string())
    return texts
