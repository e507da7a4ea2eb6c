r"""Values of Arrow's types as text files have them.

`to_plain` is for columns and `json_value` for single values:

    times                   ISO 8601                      2026-01-02, P1DT0H0M5S
    objects and lists       JSON                          {"city": "Köln"}
    octets                  text, else in hexadecimal     ada, \xff00
    numbers JSON has not    null (only in JSON)           NaN -> null
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

WITHOUT_TEXT = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
    pa.types.is_duration,  # Arrow writes a number without its unit
)


def to_plain(column: Any) -> Any:
    """Every text type as string, what a text file cannot contain as text; the rest unchanged.

    >>> to_plain(pa.array([{"city": "Köln"}, None])).to_pylist()
    ['{"city": "Köln"}', None]
    """
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == "arrow.uuid":
            return as_texts(column, str)
        return to_plain(column.cast(kind.storage_type))
    if pa.types.is_dictionary(kind):
        return to_plain(column.cast(kind.value_type))
    if pa.types.is_run_end_encoded(kind):
        return to_plain(pc.run_end_decode(column))
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.string())
    if pa.types.is_nested(kind) or pa.types.is_interval(kind):
        return as_texts(column, lambda value: dump(json_value(value)))
    if any(is_kind(kind) for is_kind in WITHOUT_TEXT):
        return as_texts(column, text_of)
    return column


def as_texts(column: Any, convert: Callable[[Any], str]) -> Any:
    texts: list[str | None] = []
    for value in column.to_pylist():
        text = None
        if value is not None:
            text = convert(value)
        texts.append(text)
    array = pa.array(texts, pa.string())
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([array])
    return array


def dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def json_value(value: Any) -> Any:
    """A value of Arrow as JSON has it.

    >>> json_value({"at": datetime.date(2026, 1, 2), "shares": [0.5, math.nan]})
    {'at': '2026-01-02', 'shares': [0.5, None]}
    >>> json_value({"took": datetime.timedelta(seconds=90)})
    {'took': 'P0DT0H1M30S'}
    """
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(name): json_value(member) for name, member in value.items()}
    if isinstance(value, list | tuple):  # a pair of a map is a tuple
        return [json_value(item) for item in value]
    return text_of(value)


def text_of(value: Any) -> str:
    """A value that neither JSON nor a text file has.

    >>> text_of(datetime.timedelta(days=1, seconds=5)), text_of(b"ada")
    ('P1DT0H0M5S', 'ada')
    """
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return f"\\x{value.hex()}"  # as PostgreSQL
    if isinstance(value, datetime.timedelta):
        return str(pd.Timedelta(value).isoformat())
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    return str(value)
