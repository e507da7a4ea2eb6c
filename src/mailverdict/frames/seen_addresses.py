"""Distinct addresses of a table that comes in pieces: which of a piece no earlier piece had.

Of all but the first piece only a hash of 64 bits is kept. Among five million addresses, two have
the same hash with a probability of one in a million; the texts would need ten times the memory.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa


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
        place = np.searchsorted(self.hashes, ordered)
        is_new = np.ones(len(hashes), np.bool_)
        if len(self.hashes):
            last = len(self.hashes) - 1
            is_new[order] = self.hashes[np.minimum(place, last)] != ordered
        added = is_new[order]
        self.hashes = np.insert(self.hashes, place[added], ordered[added])
        return unique.filter(pa.array(is_new))


def hash_texts(texts: pa.StringArray) -> npt.NDArray[np.uint64]:
    return pd.util.hash_array(texts.to_numpy(zero_copy_only=False), categorize=False)
