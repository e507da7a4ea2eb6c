"""A column of any dtype as Arrow text: what is missing, what is no text, what is an address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Intake", "read_values"]

# Text beyond this many characters is cut before any work: no address is longer than 254 octets
# (RFC 5321 section 4.5.3.1.3), and a 10 MB cell must not travel through every later step.
LONGEST_TEXT = 1_000
SURROGATES = "text with lone surrogates, which are no characters"


@dataclass(frozen=True)
class Intake:
    """A column taken in.

    Attributes
    ----------
    texts : pyarrow.StringArray
        Stripped texts of the rows that hold one, in row order, without nulls.
    rows : numpy.ndarray of int64 or None
        Row of each text; None: every row is a text.
    foreign_rows : numpy.ndarray of int64
        Rows that hold something else.
    foreign_kinds : pyarrow.DictionaryArray
        What those hold, in words.
    size : int
        Rows in all; the ones not named are missing.
    """

    texts: pa.StringArray
    rows: npt.NDArray[np.int64] | None
    foreign_rows: npt.NDArray[np.int64]
    foreign_kinds: pa.DictionaryArray
    size: int


def read_values(values: Any) -> Intake:
    """Take in a Series, an Arrow array, or any list-like of cells."""
    array, foreign = arrow_text(values)
    stripped = strip(array)
    present = pc.and_(stripped.is_valid(), pc.greater(pc.binary_length(stripped), 0)).fill_null(False)
    rows = None if present.true_count == len(stripped) else np.flatnonzero(present.to_numpy(zero_copy_only=False))
    texts = stripped if rows is None else stripped.filter(present)
    kinds = pa.array(list(foreign.values()), pa.string()).dictionary_encode()
    return Intake(texts, rows, np.fromiter(foreign, np.int64, len(foreign)), kinds, len(stripped))


def strip(array: pa.StringArray) -> pa.StringArray:
    """Cut surrounding blanks, and what is far too long."""
    if len(array) and (pc.max(pc.binary_length(array)).as_py() or 0) > LONGEST_TEXT:
        array = pc.utf8_slice_codeunits(array, 0, LONGEST_TEXT)
    return pc.utf8_trim_whitespace(array)


def arrow_text(values: Any) -> tuple[pa.StringArray, dict[int, str]]:
    """Arrow text with nulls for whatever is not text, and what those cells hold by row."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return from_arrow(values)
    series = values if isinstance(values, pd.Series) else pd.Series(list(values), dtype=object)
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(series.dtype.categories.dtype)
    if series.dtype == object:
        return from_objects(series.to_numpy())
    return from_arrow(pa.array(series, from_pandas=True))


def from_arrow(array: Any) -> tuple[pa.StringArray, dict[int, str]]:
    """An Arrow column: text as it is, any other type is foreign where it is not null."""
    flat = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if pa.types.is_dictionary(flat.type):
        flat = flat.dictionary_decode()
    if pa.types.is_large_string(flat.type) or pa.types.is_string_view(flat.type):
        flat = narrow(flat)
    if pa.types.is_string(flat.type):
        return flat, {}
    valid = np.flatnonzero(flat.is_valid().to_numpy(zero_copy_only=False))
    values = flat.to_numpy(zero_copy_only=False)
    held = {int(row): kind for row in valid if (kind := kind_of(values[row])) is not None}
    return pa.nulls(len(flat), pa.string()), held


def narrow(array: pa.Array) -> pa.StringArray:
    """Text with 32-bit offsets; cells are cut first where the whole would not fit them."""
    if array.nbytes > np.iinfo(np.int32).max // 2 and pa.types.is_large_string(array.type):
        array = pc.utf8_slice_codeunits(array, 0, LONGEST_TEXT)
    return array.cast(pa.string())


def from_objects(values: npt.NDArray[np.object_]) -> tuple[pa.StringArray, dict[int, str]]:
    """Python objects: in one go when all are text or missing, cell by cell when not."""
    try:
        array = pa.array(values, pa.large_string(), from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, UnicodeEncodeError):
        return from_cells(values)
    return narrow(array), {}


def from_cells(values: npt.NDArray[np.object_]) -> tuple[pa.StringArray, dict[int, str]]:
    """Cell by cell, for columns that hold more than text."""
    texts: list[str | None] = [None] * len(values)
    foreign: dict[int, str] = {}
    for row, value in enumerate(values):
        if isinstance(value, str) and is_encodable(value):
            texts[row] = value[: LONGEST_TEXT + 1]
        elif (kind := kind_of(value)) is not None:
            foreign[row] = kind
    return pa.array(texts, pa.string()), foreign


def is_encodable(text: str) -> bool:
    try:
        text[: LONGEST_TEXT + 1].encode()
    except UnicodeEncodeError:
        return False
    return True


def kind_of(value: object) -> str | None:
    """What a cell holds, in words; None where it is missing."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, str):
        return SURROGATES
    if isinstance(value, float | np.floating) and np.isnan(value):
        return None
    if isinstance(value, np.datetime64 | np.timedelta64) and np.isnat(value):
        return None
    return KINDS.get(type(value), f"a value of type {type(value).__name__[:40]}")


KINDS: dict[type, str] = {
    int: "a number",
    float: "a number",
    complex: "a number",
    bool: "true or false",
    bytes: "bytes",
    bytearray: "bytes",
    list: "a list",
    tuple: "a tuple",
    dict: "a mapping",
    set: "a set",
    np.ndarray: "an array",
    np.int64: "a number",
    np.int32: "a number",
    np.float64: "a number",
    np.float32: "a number",
    np.bool_: "true or false",
    pd.Timestamp: "a date",
    pd.Timedelta: "a duration",
}
