"""The result columns of a verified frame of any kind, as pandas Series by their names without prefix."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..checks.syntax.address import describe_refusal
from ..errors import ColumnError, InputError
from ..model.words import Status
from ..repair.repair import MAX_CELL
from ..table.columns import BY_NAME, RESULT_NAMES, check_column, is_short, label_of, to_string, why
from ..table.kinds import frame_of, kind_of_data, to_series
from ..table.overwrite import find_verified
from ..table.text_column import read_values, where_filled
from .clean import repair_column
from .restore import restore


class VerifiedColumn:
    """A verified column of any kind of frame: its cells and its result columns by their names without prefix.

    Each comes as a pandas Series with rows numbered from 0, which is read once and must not be changed. Raises a
    `ColumnError` if one of `names` is not there, and an `InputError` for a column with what `verify` never writes. For
    `why` the columns of earlier releases will do. Without a column it is the only one that was verified.
    """

    def __init__(self, out: Any, column: Hashable | None, prefix: str | None, names: Iterable[str]) -> None:
        if column is None:
            out = frame_of(out)
            column, prefix = find_verified(out, prefix)
        self.data = kind_of_data(out, column, is_verified=True)
        self.column, self.prefix = column, prefix
        self.existing = frozenset(self.data.labels())
        self.read: dict[str, pd.Series[Any]] = {}  # by name
        self.require(name for name in names if not (name == "why" and "details" in self))
        self.is_short = is_short([name for name in RESULT_NAMES if name in self])
        self.is_cleaned = "clean" in self and ("change" in self or self.is_short)  # else another one's `clean`

    def require(self, names: Iterable[str]) -> None:
        """Raise a `ColumnError` if a result column is not there."""
        if absent := [name for name in names if name not in self]:
            label = label_of(self.column, self.prefix, absent[0])
            raise ColumnError(f"no column {label!r}: verify {self.column!r} first, or give the prefix that was used")

    def __contains__(self, name: str) -> bool:
        return label_of(self.column, self.prefix, name) in self.existing

    def __getitem__(self, name: str) -> pd.Series[Any]:
        if name not in self.read:
            label = label_of(self.column, self.prefix, name)
            check_column(label, self.data.labels())
            self.read[name] = restore_texts(to_series(self.data.cells(label)), name, label)
        return self.read[name]

    def get(self, name: str) -> pd.Series[Any] | None:
        """A result column that is not in every set, or None."""
        return self[name] if name in self else None  # noqa: SIM401 - this is `get`

    @cached_property
    def status(self) -> pd.Series[Any]:
        """The status as words; a row without one, as a join leaves it, is pending, or missing if its cell is empty."""
        status = self["status"]
        is_absent = status.isna()
        if not is_absent.any():
            return status
        words = np.where(self.texts.isna(), str(Status.MISSING), str(Status.PENDING))
        return status.astype(object).mask(is_absent, pd.Series(words, dtype=object))

    @cached_property
    def why(self) -> pd.Series[Any]:
        """Why each row has its verdict, in a word; earlier releases wrote the reason and the error code only."""
        if "why" in self:
            details = self.get("details")
            if details is None or details.isna().all():
                return self["why"]
            return details.where(details.notna(), self["why"])  # the reason counts, should somebody have changed it

        def coded(name: str) -> pa.ChunkedArray:
            words = self[name].astype(object) if name in self else [None] * len(self.status)
            return pa.chunked_array([pa.array(words, pa.string(), from_pandas=True).dictionary_encode()])

        return pd.Series(to_string(why(coded("details"), coded("error"), coded("verdict"))))

    @cached_property
    def change(self) -> pd.Series[Any] | None:
        """What was repaired; found again in the cells where the short set does not say it. None: nothing was."""
        if "change" in self or not self.is_cleaned:
            return self.get("change")
        at = np.flatnonzero((self["clean"].notna() & (self["clean"] != self.texts)).fillna(value=False).to_numpy(bool))
        found = repair_column(pa.array(self.texts.iloc[at].fillna("")).cast(pa.string()), suggests_domains=False)
        change = self.texts.where(self.texts.isna(), "")
        change.iloc[at] = to_string(pa.chunked_array([found.change]))
        return change

    @cached_property
    def texts(self) -> pd.Series[Any]:
        """The cells with the blanks around them; NA where a cell is missing."""
        texts = read_values(self.data.values(), for_repair=True, longest=MAX_CELL).texts
        return pd.Series(to_string(pa.chunked_array([where_filled(texts, texts)])))

    @cached_property
    def addresses(self) -> pd.Series[Any]:
        """The cells as text, and the cleaned addresses in place of cells that were cleaned and then verified."""
        if not self.is_cleaned:
            return self.texts
        cleaned = self["clean"].astype(self.texts.dtype)
        is_cleaned = cleaned.str.contains("@", regex=False).fillna(value=False).to_numpy(bool)
        return self.texts.where(~is_cleaned | self.is_refused_as_written, cleaned)

    @cached_property
    def is_refused_as_written(self) -> npt.NDArray[np.bool_]:
        """Whether the message says why the cell is malformed: the verdict is not about the address beside it.

        Looked for in rows with a cleaned address only. A frame may have been cleaned by `clean`, and verified as it
        was; and a cleaned address is never malformed.
        """
        refused = np.zeros(len(self.texts), np.bool_)
        if "clean" not in self or "error_message" not in self:
            return refused
        messages = self["error_message"]
        known = np.flatnonzero((self["clean"].notna() & messages.notna() & self.texts.notna()).to_numpy(bool))
        pairs = zip(self.texts.iloc[known], messages.iloc[known], strict=True)
        refused[known] = [describe_refusal(cell.strip()) in str(message) for cell, message in pairs]
        return refused


def restore_texts(values: pd.Series[Any], name: str, label: Any) -> pd.Series[Any]:
    """A result column of which a file made text or numbers: flags are true or false again, and empty is missing."""
    kind = BY_NAME[name].kind if name in BY_NAME else "text"
    if kind == "bool" and pd.api.types.is_numeric_dtype(values.dtype):  # databases without truth values, no flag set
        try:
            return values.astype("boolean")
        except TypeError as exc:
            raise InputError(f"column {label!r} holds numbers other than 0 and 1, which verify never writes") from exc
    if not (isinstance(values.dtype, pd.StringDtype) or values.dtype == object):
        return values
    if kind == "bool":
        restored: pd.Series[Any] = restore(values, BY_NAME[name], label)
        return restored
    if kind in ("verdict", "status"):
        restore(pd.Series(values.unique(), dtype=object), BY_NAME[name], label)  # an error for other words
    return values.where(values != "")
