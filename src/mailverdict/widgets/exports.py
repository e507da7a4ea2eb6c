"""Writing rows of an audit to a file (CSV, XLSX, Parquet) or to files for a service; its report."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..errors import InputError
from ..files.plain import to_plain
from ..files.writers import create_table
from ..frames.alike import DROPS_DUPLICATES
from ..frames.policy import read_decided
from ..frames.send_list import SendListMaker
from ..model.words import ACTIONS, capitalize
from ..reports.report import make_report
from ..table.cells import as_text, is_text, to_array, where_filled
from ..table.columns import ACTION_COLUMNS, ADDRESS_NAMES, COLUMNS, REPAIR_COLUMNS, Column, label_of
from ..table.importers import find_importer
from ..table.table import read_notes, with_note
from .listing import CORE, NOTES, Listing
from .mailing import count_origins
from .source import encodable
from .wording import sentence

KINDS = ("csv", "xlsx", "parquet")
PIECE_ROWS = 50_000  # made at once: bounds memory
NO_TYPES: Mapping[Any, pa.DataType] = {}
# Of the result columns; the frame in the notebook has all. A report on the whole file, or a
# comparison with it, needs the check and its time.
SAVED = CORE
SAVED_WITH_WHOLE = tuple(
    c for c in COLUMNS if c.in_core or c.name in ("validation_type", "checked_at")
)
RESULTS = tuple(column.name for column in (*COLUMNS, *REPAIR_COLUMNS, *ACTION_COLUMNS))


def save_report(
    listing: Listing,
    path: Path,
    name: str,
    earlier: pd.DataFrame | None = None,
    again: str = "",
    audience: str = "analyst",
    kept: str = "",
) -> list[str]:
    """Write the report, whose figures are those of the page; a workbook has all rows.

    `earlier` is an audit to compare with, `again` the command that verifies the list again, `kept`
    how long the page keeps clear answers. Returns what the user must know about the file, as
    sentences.
    """
    rows = listing.rows
    column = listing.column
    then = None
    if earlier is not None:
        if rows.note.get(DROPS_DUPLICATES):
            earlier.attrs = with_note(earlier.attrs, column, (), {DROPS_DUPLICATES: True})
        then = read_decided(earlier, column, None)
    whole = None
    if path.suffix == ".xlsx":
        whole = rows.decided(columns=COLUMNS)
    elif then is not None:
        whole = rows.decided()
    report = make_report(
        listing.counts,
        column,
        whole,
        earlier=then,
        name=name,
        again=again,
        audience=audience,
        origins=count_origins(listing, is_decided=True),
        kept=kept,
    )
    report.save(path)
    return [f"{remark}." for remark in report._remarks]


def save_for_service(listing: Listing, service: str, which: str, path: Path) -> list[str]:
    """Write the send list for the importer of a service, or what to take off there (``drop``).

    Returns what to know about both files, as sentences.
    """
    importer = find_importer(service)
    identifier = importer.find_identifier(listing.own_labels(), listing.column)
    maker = SendListMaker(importer, identifier, keeps_repeats=False)
    words = pa.array(list(map(str, ACTIONS)))
    sent = []
    for piece in pieces_of(np.arange(len(listing.rows)), PIECE_ROWS):
        actions = words.take(pa.array(listing.action[piece]))
        sent.append(maker.add(listing.rows.decided(piece), actions))
    removed = maker.removed()
    parts = sent if which == "send" else [removed]
    with create_table(path) as table:
        for part in parts:
            table.write(part)
    return [sentence(note) for note in maker.notes()]


def pieces_of(rows: npt.NDArray[Any], size: int) -> list[npt.NDArray[Any]]:
    """Rows in pieces; one without any where there are none."""
    starts = range(0, max(len(rows), 1), size)
    return [rows[start : start + size] for start in starts]


def as_saved(out: pd.DataFrame, column: Hashable, saved: Sequence[Column]) -> pd.DataFrame:
    """The user's columns and the result columns that are saved.

    Others may be left from an earlier verification.
    """
    dropped = set()
    for result in COLUMNS:
        if result not in saved:
            dropped.add(label_of(column, None, result.name))
    return without_columns(out, dropped)


def without_columns(out: pd.DataFrame, dropped: Collection[Any]) -> pd.DataFrame:
    """A frame without some columns, by their labels; others may have one name."""
    kept = [at for at, name in enumerate(out.columns) if name not in dropped]
    return out.iloc[:, kept]


def differs_from_clean(out: pd.DataFrame, column: Hashable) -> npt.NDArray[np.bool_]:
    """The rows whose cell is not the repaired address."""
    clean = out[label_of(column, None, "clean")]
    written = out[column].astype("string").fillna("")
    differs = clean.notna() & (clean != written)
    flags: npt.NDArray[np.bool_] = differs.to_numpy(bool)
    return flags


def to_send_list(
    out: pd.DataFrame, column: Hashable, *, is_repaired: bool, is_suggested: bool
) -> pd.DataFrame:
    """The user's columns with the verdict, why the row is sent, and suggestions if there are any.

    With `is_repaired` the repaired address is in the column itself; what was written there goes to
    another column.
    """
    kept = ["verdict", "action_why"]
    if is_suggested:
        kept.append("suggestion")
    dropped = {label_of(column, None, name) for name in RESULTS if name not in kept}
    notes = read_notes(out.attrs).get(str(column), {})
    noted = notes.get("columns", ())
    for name in NOTES:
        label = label_of(column, None, name)
        if str(label) in noted:
            dropped.add(label)
    clean = out[label_of(column, None, "clean")]
    cells = out[column]
    differs = differs_from_clean(out, column)
    out = without_columns(out, dropped).copy(deep=False)
    if not is_repaired:
        return out
    written = label_of(column, None, "as_written")
    number = 1
    while written in out.columns:
        number += 1
        written = label_of(column, None, f"as_written_{number}")
    out[written] = cells.where(differs)
    repaired = clean.astype(object).where(differs, cells.astype(object))
    out[column] = repaired.astype(clean.dtype)
    return out


def rows_to_save(
    listing: Listing, rows: npt.NDArray[Any], which: str, *, size: int = PIECE_ROWS
) -> Iterator[pd.DataFrame]:
    """The rows of a file in pieces.

    The list to ``send`` is for a mailing: see `to_send_list`. The file of ``everything`` has the
    check and its time.
    """
    column = listing.column
    pieces = pieces_of(rows, size)
    saved = SAVED_WITH_WHOLE if which == "everything" else SAVED
    is_suggested = bool(listing.has_suggestion[rows].any())
    is_repaired = False
    if which == "send":
        is_repaired = any(is_any_repaired(listing, piece) for piece in pieces)
    for piece in pieces:
        out = as_saved(listing.decide(piece, saved), column, saved)
        if which == "send":
            out = to_send_list(out, column, is_repaired=is_repaired, is_suggested=is_suggested)
        yield out


def is_any_repaired(listing: Listing, rows: npt.NDArray[Any]) -> bool:
    """Whether the cell of any of some rows is not the repaired address."""
    out = listing.rows.to_frame(rows, ())
    return bool(differs_from_clean(out, listing.column).any())


def save_table(
    pieces: Iterable[pd.DataFrame], path: Path, types: Mapping[Any, pa.DataType] = NO_TYPES
) -> list[str]:
    """Write frames one after another to a file.

    Text that a spreadsheet would run as a formula is escaped in a CSV.

    `types` are those of the columns whose pieces could have different ones. Returns what the user
    must know about the file, as sentences.
    """
    noted: set[str] = set()  # filled before the first row is written

    def is_escaped(name: str) -> bool:
        return name in noted and not name.endswith(ADDRESS_NAMES)

    try:
        with create_table(path, is_escaped=is_escaped) as table:
            for piece in pieces:
                for note in read_notes(piece.attrs).values():
                    noted.update(note.get("columns", ()))
                table.write(to_arrow(piece, types))
            remarks = [f"{capitalize(remark)}." for remark in table.remarks]
    except OSError as exc:
        raise InputError(f"{path.name} cannot be written: {exc.strerror}") from exc
    return remarks


def types_of_objects(frame: pd.DataFrame) -> dict[Any, pa.DataType]:
    """The Arrow types of the columns that hold Python objects or categories, by label."""
    types: dict[Any, pa.DataType] = {}
    for at, name in enumerate(frame.columns):
        cells = frame.iloc[:, at]
        if cells.dtype != object and not isinstance(cells.dtype, pd.CategoricalDtype):
            continue
        kind = column_to_arrow(cells).type
        if types.get(name, kind) != kind:  # of another column of this name
            kind = pa.string()
        types[name] = kind
    return types


def to_arrow(frame: pd.DataFrame, types: Mapping[Any, pa.DataType]) -> pa.Table:
    """A frame of any dtypes as a table that all file formats can store; names may occur twice."""
    arrays = []
    for at, name in enumerate(frame.columns):
        arrays.append(column_to_arrow(frame.iloc[:, at], types.get(name)))
    return pa.table(arrays, names=[name_of(name) for name in frame.columns])


def column_to_arrow(cells: pd.Series[Any], kind: pa.DataType | None = None) -> pa.Array:
    """The column in its Arrow type or the given one, where file formats have it, else as text."""
    if isinstance(cells.dtype, pd.PeriodDtype):  # numbers to Arrow
        cells = cells.astype("string")
    array = to_plain(to_array(cells))
    if kind is None or array.type == kind:
        return array
    if not is_text(kind):
        return array.cast(kind)
    texts = as_text(cells)
    return where_filled(texts, texts)


def name_of(name: Any) -> str:
    """A column's name as text, with all levels of a multi-level label."""
    if isinstance(name, tuple):
        name = "_".join(map(str, name))
    return encodable(str(name))
