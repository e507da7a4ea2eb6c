"""Writing rows of an audit to a file (CSV, XLSX or Parquet), or its report."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..errors import InputError
from ..files.writers import create_table
from ..frames.policy import DROPS_DUPLICATES, Policy, read_decided
from ..model.table import one_array
from ..reports.counts import Counts
from ..reports.report import make_report
from ..table.columns import ACTION_COLUMNS, ADDRESS_NAMES, COLUMNS, REPAIR_COLUMNS, Column, label_of
from ..table.table import read_notes, with_note
from ..table.text_column import is_text
from .listing import CORE, NOTES, Listing
from .source import encodable

__all__ = ["KINDS", "rows_to_save", "save_report", "save_table", "to_send_list", "types_of_objects"]

KINDS = ("csv", "xlsx", "parquet")
PIECE_ROWS = 50_000  # made at once: bounds memory
NO_TYPES: Mapping[Any, pa.DataType] = {}
# Of the result columns; the frame in the notebook has all. A report on the whole file, or a comparison with it, needs
# the check and its time.
SAVED = CORE
SAVED_WITH_WHOLE = tuple(c for c in COLUMNS if c.in_core or c.name in ("validation_type", "checked_at"))
RESULTS = tuple(column.name for column in (*COLUMNS, *REPAIR_COLUMNS, *ACTION_COLUMNS))


def save_report(
    listing: Listing,
    policy: Policy,
    path: Path,
    name: str,
    earlier: pd.DataFrame | None = None,
    again: str = "",
    *,
    size: int = PIECE_ROWS,
) -> None:
    """Write the report: a page is counted in pieces, a workbook has all rows.

    `earlier` is an audit to compare with, `again` the command that verifies the list again.
    """
    rows, column = listing.rows, listing.column
    if earlier is not None and rows.note.get(DROPS_DUPLICATES):
        earlier.attrs = with_note(earlier.attrs, column, (), {DROPS_DUPLICATES: True})
    counts = Counts(policy)
    for start in range(0, max(len(rows), 1), size):
        part = rows.to_frame(np.arange(start, min(start + size, len(rows))))
        counts.add(read_decided(part, column, None))
    whole, then = None, None if earlier is None else read_decided(earlier, column, None)
    if path.suffix == ".xlsx":
        whole = read_decided(rows.to_frame(), column, None)
    elif then is not None:
        whole = read_decided(rows.to_frame(columns=CORE), column, None)
    make_report(counts, column, whole, earlier=then, name=name, again=again).save(path)


def as_saved(out: pd.DataFrame, column: Hashable, saved: Sequence[Column]) -> pd.DataFrame:
    """The user's columns and the result columns that are saved; others may be left from an earlier verification."""
    dropped = {label_of(column, None, each.name) for each in COLUMNS if each not in saved}
    return out.iloc[:, [at for at, name in enumerate(out.columns) if name not in dropped]]


def differs_from_clean(out: pd.DataFrame, column: Hashable) -> npt.NDArray[np.bool_]:
    """The rows whose cell is not the repaired address."""
    clean = out[label_of(column, None, "clean")]
    differs: npt.NDArray[np.bool_] = (clean.notna() & (clean != out[column].astype("string").fillna(""))).to_numpy(bool)
    return differs


def to_send_list(out: pd.DataFrame, column: Hashable, *, is_repaired: bool, is_suggested: bool) -> pd.DataFrame:
    """The user's columns with the verdict, why the row is sent, and the suggestions if there are any.

    With `is_repaired` the repaired address is in the column itself; what was written there goes to another column.
    """
    kept = ("verdict", "action_why", *(("suggestion",) if is_suggested else ()))
    dropped = {label_of(column, None, name) for name in RESULTS if name not in kept}
    noted = read_notes(out.attrs).get(str(column), {}).get("columns", ())
    dropped |= {label for name in NOTES if str(label := label_of(column, None, name)) in noted}
    clean, cells = out[label_of(column, None, "clean")], out[column]
    differs = differs_from_clean(out, column)
    out = out.iloc[:, [at for at, name in enumerate(out.columns) if name not in dropped]].copy(deep=False)
    if not is_repaired:
        return out
    written, number = label_of(column, None, "as_written"), 1
    while written in out.columns:
        number += 1
        written = label_of(column, None, f"as_written_{number}")
    out[written] = cells.where(differs)
    out[column] = clean.astype(object).where(differs, cells.astype(object)).astype(clean.dtype)
    return out


def rows_to_save(
    listing: Listing, rows: npt.NDArray[Any], which: str, *, size: int = PIECE_ROWS
) -> Iterator[pd.DataFrame]:
    """The rows of a file in pieces.

    The list to ``send`` is for a mailing: see `to_send_list`. The file of ``everything`` has the check and its time.
    """
    parts = [rows[start : start + size] for start in range(0, max(len(rows), 1), size)]
    column = listing.column
    saved = SAVED_WITH_WHOLE if which == "everything" else SAVED
    is_repaired = which == "send" and any(
        differs_from_clean(listing.rows.to_frame(part, ()), column).any() for part in parts
    )
    is_suggested = bool(listing.has_suggestion[rows].any())
    for part in parts:
        out = as_saved(listing.decide(part, saved), column, saved)
        yield to_send_list(out, column, is_repaired=is_repaired, is_suggested=is_suggested) if which == "send" else out


def save_table(pieces: Iterable[pd.DataFrame], path: Path, types: Mapping[Any, pa.DataType] = NO_TYPES) -> None:
    """Write frames one after another to a file; text that a spreadsheet would run as a formula is escaped in a CSV.

    `types` are those of the columns whose pieces could have different ones.
    """
    noted: set[str] = set()  # filled before the first row is written
    try:
        with create_table(path, is_escaped=lambda name: name in noted and not name.endswith(ADDRESS_NAMES)) as table:
            for piece in pieces:
                noted.update(*(note.get("columns", ()) for note in read_notes(piece.attrs).values()))
                table.write(to_arrow(piece, types))
    except OSError as exc:
        raise InputError(f"{path.name} cannot be written: {exc.strerror}") from exc


def types_of_objects(frame: pd.DataFrame) -> dict[Any, pa.DataType]:
    """The Arrow types of the columns that hold Python objects or categories, by label."""
    found: dict[Any, pa.DataType] = {}
    for at, name in enumerate(frame.columns):
        cells = frame.iloc[:, at]
        if cells.dtype == object or isinstance(cells.dtype, pd.CategoricalDtype):
            kind = column_to_arrow(cells).type
            found[name] = kind if found.get(name, kind) == kind else pa.large_string()
    return found


def to_arrow(frame: pd.DataFrame, types: Mapping[Any, pa.DataType]) -> pa.Table:
    """A frame of any dtypes as a table that all file formats can store; names may occur twice."""
    arrays = [column_to_arrow(frame.iloc[:, at], types.get(name)) for at, name in enumerate(frame.columns)]
    return pa.table(arrays, names=[name_of(name) for name in frame.columns])


def column_to_arrow(cells: pd.Series[Any], kind: pa.DataType | None = None) -> pa.Array:
    """The column in its Arrow type, or in the one given, where file formats support it, otherwise as text."""
    try:
        array = one_array(pa.array(cells, from_pandas=True))
        if kind is not None and array.type != kind:
            array = as_texts(cells) if is_text(kind) and not is_text(array.type) else array.cast(kind)
    except (pa.ArrowException, UnicodeEncodeError, TypeError, ValueError, OverflowError):
        return as_texts(cells)
    return array if is_plain(array.type) else as_texts(cells)


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
