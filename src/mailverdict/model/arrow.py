"""Small helpers around Arrow arrays that many modules share.

Arrow arrays hold the columns, numpy arrays hold masks and positions of rows. `to_bools`,
`replace_texts` and `spread_texts` go from one to the other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]  # positions of rows
Codes = npt.NDArray[np.int32]  # per row the position of its value among distinct ones; -1 for none
TEXT = pa.string()


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column in one piece; one that is in one piece is not copied, as `combine_chunks` does."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return column.combine_chunks()


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """A table in one piece."""
    columns = list(map(one_array, table.columns))
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def to_bools(array: pa.BooleanArray | pa.ChunkedArray) -> Bools:
    """A boolean array in numpy, several times as fast as Arrow does it; null is False."""
    if not len(array):
        return np.zeros(0, np.bool_)
    array = one_array(array)
    if array.null_count:
        array = array.fill_null(False)
    octets = np.frombuffer(array.buffers()[1], np.uint8)
    first = array.offset // 8
    last = (array.offset + len(array) + 7) // 8
    bits = np.unpackbits(octets[first:last], bitorder="little")
    begin = array.offset % 8
    return bits[begin : begin + len(array)].view(np.bool_)


def texts_where(mask: pa.BooleanArray, texts: pa.StringArray) -> pa.StringArray:
    """The texts where `mask` is true, else null; a whole array shares its characters.

    >>> texts_where(pa.array([False, True]), pa.array(["ada", "ben"])).to_pylist()
    [None, 'ben']
    """
    if isinstance(texts, pa.ChunkedArray) or texts.offset:
        # Beside a null scalar Arrow 18 misreads texts whose octets do not begin at their first one.
        return pc.if_else(mask, texts, pa.nulls(len(texts), texts.type))
    mask = pc.and_(mask, texts.is_valid()).fill_null(False)
    _, offsets, characters = texts.buffers()
    buffers = [mask.buffers()[1], offsets, characters]
    return pa.Array.from_buffers(texts.type, len(texts), buffers, mask.false_count)


def replace_where(column: pa.Array, mask: pa.BooleanArray, others: pa.Array) -> pa.Array:
    """The column with other values where the mask is true; itself if none differs."""
    if not mask.true_count or others.equals(column.filter(mask)):
        return column
    return pc.replace_with_mask(column, mask, others)


def replace_texts(texts: pa.StringArray, rows: Rows, others: pa.StringArray) -> pa.StringArray:
    """The texts with other ones in some rows.

    >>> names = pa.array(["ada", "ben", None])
    >>> replace_texts(names, np.array([2, 0]), pa.array(["eve", "dan"])).to_pylist()
    ['dan', 'ben', 'eve']
    """
    if not len(rows):
        return texts
    at = np.arange(len(texts), dtype=np.int32)
    at[rows] = np.arange(len(texts), len(texts) + len(rows))
    both = pa.concat_arrays([texts, others])
    return pc.take(both, pa.array(at), boundscheck=False)  # half the time of `replace_with_mask`


def empty_texts(size: int) -> pa.StringArray:
    """Empty texts, made in a tenth of the time of `pa.repeat`."""
    offsets = pa.py_buffer(np.zeros(size + 1, np.int32))
    return pa.Array.from_buffers(pa.string(), size, [None, offsets, pa.py_buffer(b"")])


def spread_texts(
    texts: pa.StringArray, rows: Rows, size: int, *, empty: bool = False
) -> pa.StringArray:
    """A column of `size` texts: these in the given rows, which ascend.

    The others, and those for which there is no text, are null, or with `empty` empty.

    >>> spread_texts(pa.array(["ada", None, "ben"]), np.array([0, 2, 3]), 5).to_pylist()
    ['ada', None, None, 'ben', None]
    """
    rows = rows[to_bools(texts.is_valid())]
    texts = pa.concat_arrays([texts.drop_null()])
    if not len(texts):
        return empty_texts(size) if empty else pa.nulls(size, pa.string())
    ends = np.zeros(size + 1, np.int32)
    ends[rows + 1] = pc.binary_length(texts)
    np.cumsum(ends, out=ends)
    validity = None
    if not empty:
        is_text = np.zeros(size, np.bool_)
        is_text[rows] = True
        validity = pa.array(is_text).buffers()[1]
    buffers = [validity, pa.py_buffer(ends), texts.buffers()[2]]
    return pa.Array.from_buffers(pa.string(), size, buffers)


def map_distinct_texts(
    function: Callable[[str], Any], texts: pa.StringArray, kind: pa.DataType = TEXT
) -> pa.Array:
    """Apply a function to each distinct text of a column once; null stays null."""
    coded = texts.dictionary_encode()
    results = pa.array(map(function, coded.dictionary.to_pylist()), kind)
    return results.take(coded.indices)


SLICE_ROWS = 131_072  # large enough to hide the cost of a call, small enough to stay in the cache
LEAST_SLICE_ROWS = 25_000  # smaller slices of a short column are not worth a thread


def map_slices(
    function: Callable[[Any], Any], column: pa.Array, threads: int | None = None
) -> list[Any]:
    """Apply a function to slices of a column, at least one, on all processors or `threads`.

    Arrow works without the interpreter's lock, so that threads help.
    """
    threads = threads or os.cpu_count() or 1
    share = -(-len(column) // threads)
    rows = min(max(share, LEAST_SLICE_ROWS), SLICE_ROWS)
    starts = range(0, max(len(column), 1), rows)
    slices = [column.slice(start, rows) for start in starts]
    if len(slices) == 1:
        return [function(slices[0])]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, slices))


LARGE = 100_000  # rows from which several threads are faster than one


def map_columns(function: Callable[[Any], Any], columns: Iterable[Any], size: int) -> list[Any]:
    """Apply a function to each column of a table of `size` rows.

    For a large table this is done on all processors.
    """
    if size < LARGE:
        return [function(column) for column in columns]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, columns))


def take_rows(table: pa.Table, rows: npt.NDArray[np.int32]) -> pa.Table:
    """The given rows of a table, column by column on all processors."""
    table = table.unify_dictionaries()
    positions = pa.array(rows)

    def take(column: pa.ChunkedArray) -> pa.Array:
        return pc.take(one_array(column), positions, boundscheck=False)

    taken = map_columns(take, table.columns, len(rows))
    return pa.table(taken, schema=table.schema)
