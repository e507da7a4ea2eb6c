"""Writing rows of an audit to a file: CSV, XLSX or Parquet."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from ..errors import InputError
from ..frames.columns import ADDRESS_NAMES, COLUMNS, label_of
from ..frames.files.writers import create_table
from ..frames.kinds import read_notes
from .source import encodable

__all__ = ["KINDS", "as_written", "save_table", "to_send_list"]

KINDS = ("csv", "xlsx", "parquet")
DROPPED = tuple(c.name for c in COLUMNS if not c.in_core)  # of the result columns; the frame in the notebook has them


def as_written(out: pd.DataFrame, column: Hashable) -> pd.DataFrame:
    """The rows as they are saved: the user's columns and the result columns for people."""
    dropped = {label_of(column, None, name) for name in DROPPED}
    return out.iloc[:, [at for at, name in enumerate(out.columns) if name not in dropped]]


def to_send_list(out: pd.DataFrame, column: Hashable) -> pd.DataFrame:
    """The same rows with the repaired address in the column itself; what was written there goes to another column."""
    clean = out[label_of(column, None, "clean")]
    cells = out[column]
    differs = (clean.notna() & (clean != cells.astype("string").fillna(""))).to_numpy(bool)
    if not differs.any():
        return out
    out = out.copy(deep=False)
    written, number = label_of(column, None, "as_written"), 1
    while written in out.columns:
        number += 1
        written = label_of(column, None, f"as_written_{number}")
    out[written] = cells.where(differs)
    out[column] = clean.astype(object).where(differs, cells.astype(object)).astype(clean.dtype)
    return out


def save_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a frame to a file; messages that a spreadsheet would execute as a formula are escaped in a CSV."""
    noted = {name for note in read_notes(frame.attrs).values() for name in note.get("columns", ())}
    try:
        with create_table(path, is_escaped=lambda name: name in noted and not name.endswith(ADDRESS_NAMES)) as table:
            table.write(to_arrow(frame))
    except OSError as exc:
        raise InputError(f"{path.name} cannot be written: {exc.strerror}") from exc


def to_arrow(frame: pd.DataFrame) -> pa.Table:
    """A frame of any dtypes as a table that all file formats can store; names may occur twice."""
    arrays = [column_to_arrow(frame.iloc[:, at]) for at in range(frame.shape[1])]
    return pa.table(arrays, names=[name_of(name) for name in frame.columns])


def column_to_arrow(cells: pd.Series[Any]) -> pa.Array:
    """The column in its Arrow type where file formats support it, otherwise as text."""
    try:
        array = pa.array(cells, from_pandas=True)
    except (pa.ArrowException, UnicodeEncodeError, TypeError, ValueError, OverflowError):
        return as_texts(cells)
    whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return whole if is_plain(whole.type) else as_texts(cells)


def is_plain(kind: pa.DataType) -> bool:
    """Whether all file formats support a type."""
    if pa.types.is_dictionary(kind):
        return bool(pa.types.is_string(kind.value_type) or pa.types.is_large_string(kind.value_type))
    return any(is_kind(kind) for is_kind in PLAIN_KINDS)


PLAIN_KINDS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_null,
)


def as_texts(cells: pd.Series[Any]) -> pa.Array:
    """Cells of any type as text that can be encoded."""
    texts = [None if pd.api.types.is_scalar(cell) and pd.isna(cell) else encodable(str(cell)) for cell in cells]
    return pa.array(texts, pa.large_string())


def name_of(name: Any) -> str:
    """A column's name as text, with all levels of a multi-level label."""
    return encodable("_".join(map(str, name)) if isinstance(name, tuple) else str(name))
