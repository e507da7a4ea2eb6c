"""Give a verified table that was read back from a file the dtypes that `verify` gave it."""

from __future__ import annotations

import math
import numbers
from collections.abc import Hashable
from typing import Any

import pandas as pd
import pyarrow as pa

from ..errors import InputError
from ..table.columns import COLUMNS, STATUS_DTYPE, SUPPRESS_COLUMNS, VERDICT_DTYPE, Column, result_labels

TRUTH = {"true": True, "false": False, "1": True, "0": False, "": None}


def restore_frame(table: pa.Table, column: Hashable, prefix: str | None = None) -> pd.DataFrame:
    """Give the result columns of a verified table that was read from a file their dtypes.

    Raises `ColumnError` if the table has no such column or has rows that were not verified, and `InputError` if a
    result column contains something that `verify` never writes.
    """
    frame: pd.DataFrame = table.to_pandas()
    result_labels(frame, column, prefix, ("verdict", "status"), must_exist=len(table) > 0)
    for each in (*COLUMNS, *SUPPRESS_COLUMNS):
        label = result_labels(frame, column, prefix, (each.name,), must_exist=False)[each.name]
        if label in frame.columns:
            frame[label] = restore(frame[label], each, label)
        elif each.in_core and (each.name not in ("why", "details") or not len(table)):  # one says what the other would
            frame[label] = restore(pd.Series([None] * len(frame), index=frame.index, dtype=object), each, label)
    return frame


def restore(values: pd.Series[Any], column: Column, label: Any) -> Any:
    """Convert one column to the dtype of its kind, by its distinct values."""
    codes, distinct = pd.factorize(values)
    try:
        restored = RESTORE[column.kind](pd.Series(distinct, dtype=object))
    except (KeyError, ValueError) as exc:
        raise InputError(f"column {label!r} holds {exc.args[0]!r}, which verify never writes") from exc
    return pd.Series(restored.array.take(codes, allow_fill=True), values.index)


def as_category(texts: pd.Series[Any], dtype: pd.CategoricalDtype) -> pd.Series[Any]:
    """A category of the fixed words; any other word is an error."""
    filled = texts.where(texts != "")
    if unknown := set(filled.dropna()) - set(dtype.categories):
        raise ValueError(sorted(map(str, unknown))[0])
    return filled.astype(dtype)


def as_boolean(texts: pd.Series[Any]) -> pd.Series[Any]:
    """``true``, ``false`` (in upper or lower case) or missing."""
    return pd.Series([TRUTH[str(text).lower()] for text in texts], dtype="boolean")


def as_text(texts: pd.Series[Any]) -> pd.Series[Any]:
    """Text; a CSV cannot distinguish empty from missing, so both are missing."""
    return texts.where(texts != "").astype(pd.StringDtype("pyarrow"))


def as_moment(texts: pd.Series[Any]) -> pd.Series[Any]:
    """Times in UTC; a number, as pandas writes it to JSON, counts seconds or a smaller unit by its size."""
    return pd.to_datetime(texts.map(read_moment), utc=True, format="mixed")


def read_moment(value: Any) -> Any:
    if not isinstance(value, numbers.Real):
        return value or None
    number: Any = value
    return pd.Timestamp(number, unit=next(unit for least, unit in EPOCH_UNITS if number >= least), tz="UTC")


EPOCH_UNITS: tuple[tuple[float, Any], ...] = ((1e17, "ns"), (1e14, "us"), (1e11, "ms"), (-math.inf, "s"))
RESTORE: dict[str, Any] = {
    "verdict": lambda texts: as_category(texts, VERDICT_DTYPE),
    "status": lambda texts: as_category(texts, STATUS_DTYPE),
    "bool": as_boolean,
    "text": as_text,
    "moment": as_moment,
}
