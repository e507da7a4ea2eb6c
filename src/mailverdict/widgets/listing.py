"""The verified rows as a table with filters, search and pages, and as a file to download. All rows stay in Python."""

from __future__ import annotations

import base64
import shutil
import tempfile
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..atomic_write import atomic_write
from ..errors import InputError
from ..frames.columns import ACTIONS, ADDRESS_NAMES, COLUMNS, label_of
from ..frames.files.writers import create_table
from ..frames.kinds import read_notes
from ..frames.policy import Policy, decide
from ..frames.text_column import read_values
from ..frames.verified import VerifiedColumn
from ..reports.summary import BUCKETS, ERROR_MEANING, buckets

__all__ = ["LARGEST_LINK", "MIME", "PAGE_ROWS", "Listing", "Saved", "encodable", "is_missing", "save_table"]


def is_missing(cell: Any) -> bool:
    """Whether a cell is empty; a list is not, whatever it holds."""
    return bool(pd.api.types.is_scalar(cell) and pd.isna(cell))


def encodable(text: str) -> str:
    """Text with lone surrogates escaped: they cannot be encoded as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


PAGE_ROWS = 50
OTHER_COLUMNS = 8  # of the user's own columns shown beside the address; a file may have hundreds
LONGEST_CELL = 160
Rows = npt.NDArray[np.int64]
# The result columns of a file, as the command line writes them. The frame in the notebook has all columns.
KEPT = (*(c.name for c in COLUMNS if c.in_core), "clean", "change", "action", "action_why")


class Listing:
    """Verified rows with the action of a policy."""

    def __init__(self, out: pd.DataFrame, column: Hashable, policy: Policy | str) -> None:
        self.column = column
        self.decided = decide(out, column, policy=policy)
        self.bucket: pd.Series[Any] = buckets(VerifiedColumn(out, column, None, ("verdict", "status")))
        self.action: pd.Series[Any] = self.cells("action")
        self.reason: pd.Series[Any] = self.why().map(spoken, na_action="ignore")

    def __len__(self) -> int:
        return len(self.decided)

    def cells(self, name: str) -> pd.Series[Any]:
        """A result column by its name without prefix; rows are numbered from 0."""
        found: pd.Series[Any] = self.decided[self.label(name)]
        return found.reset_index(drop=True)

    def label(self, name: str) -> Any:
        """The label of a result column."""
        return label_of(self.column, None, name)

    def why(self) -> pd.Series[Any]:
        """The dominant reason, else the error code, else None."""
        details, error = (self.cells(name).astype(object) for name in ("details", "error"))
        why = details.where(details.notna(), error)
        return why.where(why.notna(), None).astype("category")

    def counts(self, name: str) -> dict[str, int]:
        """The number of rows by ``bucket``, ``reason`` or ``action``; reasons are sorted by frequency."""
        counted = getattr(self, name).value_counts()
        order = {"bucket": BUCKETS, "action": ACTIONS}.get(name, counted.index)
        return {str(value): int(counted.get(value, 0)) for value in order}

    def find(self, *, bucket: str = "", reason: str = "", action: str = "", search: str = "") -> Rows:
        """Positions of the rows that match all arguments; a blank matches any row."""
        wanted = {"bucket": bucket, "reason": reason, "action": action}
        mask = np.ones(len(self), bool)
        for name, value in wanted.items():
            if value:
                mask &= (getattr(self, name) == value).to_numpy(bool)
        for word in search.split():
            mask &= self.holding(word)
        return np.flatnonzero(mask)

    def holding(self, word: str) -> npt.NDArray[np.bool_]:
        """Which rows contain a word in a column that is shown, in any case."""
        found: npt.NDArray[np.bool_] = pc.match_substring(self.haystack, word.lower()).to_numpy(zero_copy_only=False)
        return found

    @cached_property
    def haystack(self) -> pa.Array:
        """All shown cells of each row as one text in lower case, computed at the first search."""
        parts = [shown_texts(cells).cast(pa.large_string()) for cells in self.shown.values()]
        joined = pc.binary_join_element_wise(*parts, pa.scalar("\n", pa.large_string()), null_handling="replace")
        return pc.utf8_lower(joined)

    @cached_property
    def shown(self) -> dict[str, pd.Series[Any]]:
        """The columns of the table by heading: the address, the results, then some of the user's columns."""
        own = [at for at in range(self.decided.shape[1]) if at not in self.ours]
        address = next(at for at in own if self.decided.columns[at] == self.column)
        others = [at for at in own if at != address][:OTHER_COLUMNS]
        found = {
            "verdict": self.bucket,
            "action": self.action,
            "why": self.reasoning(),
            "did you mean": self.cells("suggestion"),
        }
        if self.label("clean") in self.decided.columns and (is_cleaned := self.cells("change") != "").any():
            found = {"cleaned": self.cells("clean").where(is_cleaned), **found}
        first = self.titled([address], found)
        return {**first, **found, **self.titled(others, {**first, **found})}

    def titled(self, places: Sequence[int], taken: Any) -> dict[str, pd.Series[Any]]:
        """Columns of the user by name; names that occur twice are made unique."""
        titled: dict[str, pd.Series[Any]] = {}
        for at in places:
            title = str(self.decided.columns[at])[:LONGEST_CELL]
            while title in taken or title in titled:
                title += " "
            titled[title] = self.decided.iloc[:, at].reset_index(drop=True)
        return titled

    @cached_property
    def ours(self) -> set[int]:
        """Positions of the result columns."""
        names = (*(c.name for c in COLUMNS), "clean", "change", "action", "action_why")
        labels = {self.label(name) for name in names}
        return {at for at, name in enumerate(self.decided.columns) if name in labels}

    def reasoning(self) -> pd.Series[Any]:
        """The explanation of each verdict; for types without reasons, the error message."""
        plain, said = (self.cells(name).astype(object) for name in ("action_why", "error_message"))
        is_plain = self.cells("details").notna() | self.cells("suggestion").notna() | said.isna()
        return plain.where(is_plain, said)

    def columns_left_out(self) -> int:
        """The number of the user's columns that the table does not show."""
        return max(0, self.decided.shape[1] - len(self.ours) - 1 - OTHER_COLUMNS)

    def page(self, rows: Rows, number: int) -> pd.DataFrame:
        """One page of some rows, as texts; pages are numbered from 1."""
        part = rows[(number - 1) * PAGE_ROWS : number * PAGE_ROWS]
        cells = {title: shown_texts(values.iloc[part]).to_pylist() for title, values in self.shown.items()}
        return pd.DataFrame({"row": [f"{at + 1:,}" for at in part], **cells}, dtype=object).fillna("")

    def to_save(self, rows: Rows | None = None) -> pd.DataFrame:
        """Rows as they are written to a file: the user's columns, then the result columns."""
        kept = {label_of(self.column, None, name) for name in KEPT}
        places = [at for at, name in enumerate(self.decided.columns) if at not in self.ours or name in kept]
        frame = self.decided.iloc[:, places]
        return frame if rows is None else frame.iloc[rows]


def spoken(reason: str) -> str:
    """A reason or error code in words."""
    return ERROR_MEANING.get(reason, reason.replace("_", " "))


def shown_texts(cells: pd.Series[Any]) -> pa.Array:
    """Cells as texts of bounded length; a missing one is null."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(object)
    intake = read_values(cells, keep_blanks=True)
    if len(intake.nontext_rows):
        texts = pa.array(
            [None if is_missing(cell) else encodable(str(cell)[:LONGEST_CELL]) for cell in cells], pa.string()
        )
    else:
        texts = restore(intake.texts, intake.rows, intake.size)
    return pc.utf8_slice_codeunits(texts, 0, LONGEST_CELL)


def restore(texts: pa.StringArray, rows: Rows | None, size: int) -> pa.Array:
    """Texts at the positions of their rows, null elsewhere."""
    if rows is None:
        return texts
    order = np.full(size, -1)
    order[rows] = np.arange(len(rows))
    return texts.take(pa.array(order, mask=order < 0))


LARGEST_LINK = 1_500_000  # octets; as text in a link they are a third more, and browsers refuse links above 2 MB
MIME = {
    "csv": "text/csv;charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


@dataclass(frozen=True)
class Saved:
    """A file that was made: a small one with its content, a large one with its path."""

    name: str
    rows: int
    size: int
    url: str = ""
    path: Path | None = None


def save_table(frame: pd.DataFrame, stem: str, kind: str, folder: Path, largest_link: int = LARGEST_LINK) -> Saved:
    """Write a frame to a file; messages that a spreadsheet would execute are escaped."""
    name = f"{stem}.{kind}"
    with tempfile.TemporaryDirectory(prefix="mailverdict-") as scratch:
        made = Path(scratch) / f"table.{kind}"
        noted = {name for note in read_notes(frame.attrs).values() for name in note.get("columns", ())}
        with create_table(made, is_escaped=lambda name: name in noted and not name.endswith(ADDRESS_NAMES)) as table:
            table.write(to_arrow(frame))
        size = made.stat().st_size
        if size <= largest_link:
            return Saved(name, len(frame), size, url=data_url(made.read_bytes(), kind))
        target = put_beside(made, folder, stem, kind)
        return Saved(target.name, len(frame), size, path=target)


def data_url(content: bytes, kind: str) -> str:
    return f"data:{MIME[kind]};base64,{base64.b64encode(content).decode()}"


def put_beside(made: Path, folder: Path, stem: str, kind: str) -> Path:
    """Copy a file to a free name in a folder."""
    target = free_name(folder, stem, kind)
    try:
        with atomic_write(target) as temporary:
            shutil.copyfile(made, temporary)
    except OSError as exc:
        raise InputError(f"{target} cannot be written: {exc.strerror}") from exc
    return target


def free_name(folder: Path, stem: str, kind: str) -> Path:
    """The first file name that does not exist."""
    target, number = folder / f"{stem}.{kind}", 1
    while target.exists():
        number += 1
        target = folder / f"{stem}-{number}.{kind}"
    return target.absolute()


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
    texts = [None if is_missing(cell) else encodable(str(cell)) for cell in cells]
    return pa.array(texts, pa.large_string())


def name_of(name: Any) -> str:
    """A column's name as text, with all levels of a multi-level label."""
    return encodable("_".join(map(str, name)) if isinstance(name, tuple) else str(name))
