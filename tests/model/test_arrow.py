"""Columns with values in few rows only."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.model.arrow import spread_texts

TEXTS = st.lists(st.none() | st.sampled_from(["", "ada", "bücher"]), max_size=12)


@given(TEXTS, st.integers(0, 3), st.booleans())
def test_texts_come_into_their_rows_and_nothing_into_the_others(cells, cut, empty):
    cells = [None, *cells][:-1] if cut else cells
    texts = pa.array(["cut off"] * cut + cells, pa.string()).slice(cut)
    rows = np.arange(1, 2 * len(cells), 2)
    size = 2 * len(cells) + 1
    spread = spread_texts(texts, rows, size, empty=empty)
    spread.validate(full=True)
    nothing = "" if empty else None
    expected = [nothing] * size
    for row, cell in zip(rows.tolist(), cells, strict=True):
        expected[row] = nothing if cell is None else cell
    assert spread.to_pylist() == expected
