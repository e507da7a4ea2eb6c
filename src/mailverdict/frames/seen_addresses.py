"""Distinct addresses of a table that comes in pieces: which of a piece no earlier piece had.

Of all but the first piece only a hash of 64 bits is kept. Among five million addresses, two have
the same hash with a probability of one in a million; the texts would need ten times the memory.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..model.arrow import Bools, Rows

Hashes = npt.NDArray[np.uint64]


class SeenAddresses:
    """The addresses of earlier pieces, as hashes in order."""

    def __init__(self) -> None:
        self.hashes = np.empty(0, np.uint64)
        # The texts of the first piece, until there is another one.
        self.first: pa.StringArray | None = None

    def keep_new(self, unique: pa.StringArray) -> pa.StringArray:
        """Those of the distinct addresses that no earlier piece had."""
        if self.first is None:
            self.first = unique
            return unique
        if len(self.first):
            self.hashes = np.sort(hash_texts(self.first))
            self.first = pa.array([], pa.string())
        hashes = hash_texts(unique)
        order = np.argsort(hashes)  # a search is several times as fast in order
        ordered = hashes[order]
        places, is_known = find_hashes(self.hashes, ordered)
        self.hashes = np.insert(self.hashes, places[~is_known], ordered[~is_known])
        is_new = np.empty(len(hashes), np.bool_)
        is_new[order] = ~is_known
        return unique.filter(is_new)


def hash_texts(texts: pa.StringArray) -> Hashes:
    return pd.util.hash_array(texts.to_numpy(zero_copy_only=False), categorize=False)


def find_hashes(table: Hashes, hashes: Hashes) -> tuple[Rows, Bools]:
    """For each hash its place in a table, which ascends, and whether it is there."""
    places = np.searchsorted(table, hashes)
    if not len(table):
        return places, np.zeros(len(hashes), np.bool_)
    nearest = np.minimum(places, len(table) - 1)
    return places, table[nearest] == hashes
