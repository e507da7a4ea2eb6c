"""The settled rows of a run, collected in any order and returned in the order of the addresses."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import BackendError
from ..model.address import identities
from ..model.table import SCHEMA, complete_table
from ..model.words import Status

__all__ = ["SettledRows"]

UNSETTLED = -1
SMALL = 1_000  # rows up to which one dictionary look-up each is faster than hashing the whole column


class SettledRows:
    """The rows settled so far; written by the loop's thread and read by any other.

    Only `fields` of the result schema are kept: the others are most of the memory of a large run.
    """

    def __init__(self, addresses: pa.StringArray, fields: Sequence[str] = tuple(SCHEMA.names)) -> None:
        self.addresses = addresses
        self.fields = list(fields)
        self.counts: Counter[str] = Counter()
        self.tables: list[pa.Table] = []
        self.size = 0
        self.positions: dict[str, int] = {}
        self.row_of: npt.NDArray[np.int64] = np.full(len(addresses), UNSETTLED, np.int64)
        self.lock = threading.Lock()

    def settle(self, rows: pa.Table, positions: npt.NDArray[np.int64] | None = None) -> None:
        """Add rows; `positions` are those of their addresses, looked up by `email` if not given."""
        found = self.positions_of(rows["email"]) if positions is None else positions
        with self.lock:
            fresh = int((self.row_of[found] == UNSETTLED).sum())
            self.row_of[found] = self.size + np.arange(len(found))
            self.tables.append(rows.select(self.fields))
            self.size += len(rows)
        self.counts["settled"] += fresh
        for field in ("status", "result", "source"):
            for chunk in rows[field].chunks:
                self.counts.update(count_words(chunk))

    def positions_of(self, emails: pa.ChunkedArray) -> npt.NDArray[np.int64]:
        """The positions of addresses; an address that is not in the column is an error of the backend."""
        keys = identities(emails.combine_chunks() if isinstance(emails, pa.ChunkedArray) else emails)
        if len(keys) < SMALL <= len(self.addresses):
            index = self.index()
            found = pa.array([index.get(key) for key in keys.to_pylist()], pa.int64())
        else:
            found = pc.index_in(keys, value_set=self.addresses).cast(pa.int64())
        if found.null_count:
            unknown = keys.filter(found.is_null())[0].as_py()
            raise BackendError(f"the backend answered about {unknown!r:.100}, which it was not asked about")
        positions: npt.NDArray[np.int64] = found.to_numpy(zero_copy_only=False)
        return positions

    def index(self) -> dict[str, int]:
        """Position by address; built once, since hashing the column for every few rows is quadratic."""
        if not self.positions and len(self.addresses):
            self.positions = {email: i for i, email in enumerate(self.addresses.to_pylist())}
        return self.positions

    def unsettled(self) -> npt.NDArray[np.int64]:
        """Positions without a row."""
        with self.lock:
            return np.flatnonzero(self.row_of == UNSETTLED)

    def table(self, validation_type: str, columns: list[str] | None = None) -> pa.Table:
        """One row per address, in their order; those without a row are `pending`."""
        names = columns or self.fields
        with self.lock:
            tables, row_of, size = [t.select(names) for t in self.tables], self.row_of.copy(), self.size
        left = np.flatnonzero(row_of == UNSETTLED)
        if len(left):
            tables.append(self.pending(left, validation_type).select(names))
            row_of[left] = size + np.arange(len(left))
        whole = pa.concat_tables(tables) if tables else SCHEMA.empty_table().select(names)
        if np.array_equal(row_of, np.arange(len(whole))):
            return whole
        return whole.unify_dictionaries().combine_chunks().take(pa.array(row_of))

    def pending(self, positions: npt.NDArray[np.int64], validation_type: str) -> pa.Table:
        """Rows for addresses without a row."""
        emails = self.addresses.take(pa.array(positions))
        columns: dict[str, Any] = {
            "email": emails,
            "status": pa.repeat(pa.scalar(str(Status.PENDING)), len(emails)).dictionary_encode(),
            "validation_type": pa.repeat(pa.scalar(str(validation_type)), len(emails)).dictionary_encode(),
        }
        return complete_table(columns, len(emails))


def count_words(chunk: pa.DictionaryArray) -> dict[str, int]:
    """How often each word of a dictionary-encoded column occurs, counted by its codes."""
    codes = chunk.indices.drop_null().to_numpy(zero_copy_only=False)
    counts = np.bincount(codes, minlength=len(chunk.dictionary)).tolist()
    return {word: count for word, count in zip(chunk.dictionary.to_pylist(), counts, strict=True) if count and word}
