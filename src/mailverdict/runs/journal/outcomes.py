"""Rows of the one table as a few distinct outcomes, and back.

Most of a million answers are the same but for the address. What repeats is kept once, as JSON
text; a row is an address and the number of its outcome.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json as pa_json

from ...model.table import SCHEMA, dump_json

__all__ = ["PER_ROW", "Packed", "pack", "unpack"]

PER_ROW = ("email", "normalized", "checked_at", "source")  # what an outcome does not hold
SHARED = [field for field in SCHEMA if field.name not in PER_ROW]
PLAIN = pa.schema([pa.field(f.name, f.type if pa.types.is_boolean(f.type) else pa.string()) for f in SHARED])
BLOCK = 1 << 24  # octets pyarrow reads at once; a line must fit
MOST_CODES = 2**62

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Packed:
    """Rows by outcome.

    Attributes
    ----------
    bodies : list of str
        The distinct outcomes, as JSON text.
    labels : list of str
        Verdict of each, or its status where it has none.
    codes : numpy.ndarray of int64
        Per row the position of its outcome.
    """

    bodies: list[str]
    labels: list[str]
    codes: Codes


def pack(rows: pa.Table) -> Packed:
    """Find the distinct outcomes of rows; `unpack` gives their columns back unchanged."""
    shared = rows.select([field.name for field in SHARED]).unify_dictionaries().combine_chunks()
    codes = np.zeros(len(shared), np.int64)
    for column in shared.columns:
        codes = add_codes(codes, column)
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    distinct = shared.take(pa.array(first)).to_pylist()
    return Packed([body_of(row) for row in distinct], [row["result"] or row["status"] for row in distinct], codes)


def add_codes(codes: Codes, column: pa.ChunkedArray) -> Codes:
    """Tell rows apart by one more column."""
    whole = column.combine_chunks()
    encoded = whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()
    size = len(encoded.dictionary) + 1
    if codes.max(initial=0) >= MOST_CODES // size:
        codes = np.unique(codes, return_inverse=True)[1]
    finer: Codes = codes * size + encoded.indices.cast(pa.int64()).fill_null(size - 1).to_numpy(zero_copy_only=False)
    return finer


def body_of(row: dict[str, Any]) -> str:
    """One outcome as JSON text; nulls are left out."""
    return dump_json({name: value for name, value in row.items() if value is not None})


def unpack(bodies: Sequence[str]) -> pa.Table:
    """The shared columns of outcomes, one row each.

    Raises
    ------
    ValueError
        If a text is no outcome.
    """
    if not bodies:
        return pa.schema(SHARED).empty_table()
    lines = "\n".join(bodies).encode()
    block = max(BLOCK, 2 * max(map(len, bodies)) * 4)
    table = pa_json.read_json(
        io.BytesIO(lines),
        read_options=pa_json.ReadOptions(block_size=min(block, 2**31 - 1)),
        parse_options=pa_json.ParseOptions(explicit_schema=PLAIN, unexpected_field_behavior="ignore"),
    )
    if len(table) != len(bodies):
        raise ValueError(f"{len(bodies)} outcomes read as {len(table)}")
    return table.select(PLAIN.names).cast(pa.schema(SHARED)).combine_chunks()
