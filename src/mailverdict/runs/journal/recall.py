"""Looking up a whole column in the journal at once."""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from ...atomic_write import atomic_write
from ...model.address import identities
from ...model.table import SCHEMA, SOURCE_JOURNAL, complete_table, dump_json

__all__ = [
    "PER_ROW",
    "Entry",
    "Known",
    "Packed",
    "ask",
    "export_settled",
    "find_known",
    "list_entries",
    "pack",
    "unpack",
]

KNOWN = """
SELECT asked.position, s.outcome, s.normalized, s.checked_at, s.settled_at
FROM asked JOIN settled s ON s.key = ? AND s.address = asked.address WHERE s.settled_at >= ?
"""
FOUND = pa.schema(
    [
        pa.field("position", pa.int64()),
        pa.field("outcome", pa.int64()),
        pa.field("normalized", pa.string()),
        pa.field("checked_at", pa.timestamp("us", tz="UTC")),
        pa.field("settled_at", pa.float64()),
    ]
)
PIECE = 50_000  # rows
BODIES = "SELECT body FROM wanted JOIN outcomes ON id = outcome ORDER BY id"


@dataclass(frozen=True, slots=True)
class Known:
    """What was found.

    Attributes
    ----------
    rows : pyarrow.Table
        In the schema of the one table, n rows in the order asked.
    settled_at : pyarrow.DoubleArray
        When each was settled, in seconds since the epoch; n.
    """

    rows: pa.Table
    settled_at: pa.DoubleArray


def find_known(connection: sqlite3.Connection, key: int, emails: pa.StringArray, newer_than: float) -> Known:
    """Find the answers to addresses that are new enough, within a transaction of the caller's."""
    ask(connection, emails)
    found = read(connection, KNOWN, FOUND, key, newer_than)
    connection.execute("DELETE FROM asked")
    found = found.sort_by("position").combine_chunks()
    shared = read_outcomes(connection, found["outcome"])
    columns = {
        "email": emails.take(found["position"].combine_chunks()),
        "normalized": found["normalized"].combine_chunks(),
        "checked_at": found["checked_at"].combine_chunks(),
        "source": pa.repeat(pa.scalar(SOURCE_JOURNAL), len(found)).dictionary_encode(),
        **{name: shared[name].combine_chunks() for name in shared.column_names},
    }
    return Known(complete_table(columns, len(found)), found["settled_at"].combine_chunks())


def ask(connection: sqlite3.Connection, emails: pa.StringArray) -> None:
    """Put addresses where SQL can join them, sorted: the join then walks the table in its order."""
    addresses = identities(emails)
    order = pc.sort_indices(addresses)
    rows = zip(order.to_pylist(), addresses.take(order).to_pylist(), strict=True)
    connection.execute("DELETE FROM asked")
    connection.executemany("INSERT INTO asked VALUES (?, ?)", rows)


def read(connection: sqlite3.Connection, query: str, schema: pa.Schema, *values: object) -> pa.Table:
    """The rows of a query as a table, made piece by piece: a million Python tuples at once are slow."""
    cursor = connection.execute(query, values)
    pieces = []
    while rows := cursor.fetchmany(PIECE):
        columns = zip(*rows, strict=True)
        arrays = [pa.array(column, type_) for column, type_ in zip(columns, schema.types, strict=True)]
        pieces.append(pa.table(arrays, schema=schema))
    return pa.concat_tables(pieces) if pieces else schema.empty_table()


def read_outcomes(connection: sqlite3.Connection, ids: pa.ChunkedArray) -> pa.Table:
    """The shared columns of outcomes, one row per id."""
    distinct = ids.unique().sort()
    connection.executemany("INSERT INTO wanted VALUES (?)", ((each,) for each in distinct.to_pylist()))
    bodies = [body for (body,) in connection.execute(BODIES)]
    connection.execute("DELETE FROM wanted")
    if len(bodies) != len(distinct):
        raise sqlite3.DatabaseError("settled rows without their outcome")
    return unpack(bodies).take(pc.index_in(ids.combine_chunks(), value_set=distinct))


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


PAGE = 50_000  # rows of an export in memory at once
EXPORT = pa.schema([pa.field("key", pa.string()), *SCHEMA, pa.field("settled_at", pa.timestamp("us", tz="UTC"))])
ROWS = """
SELECT s.address, s.normalized, s.checked_at, s.settled_at, o.body
FROM settled s JOIN outcomes o ON o.id = s.outcome WHERE s.key = ? ORDER BY s.address
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a journal holds under one key.

    Attributes
    ----------
    key : str
        Validation type and service.
    settled : int
        Addresses with an answer.
    verdicts : dict of str to int
        Those by verdict; technical failures under ``error``.
    in_flight, uncertain : int
        Addresses paid for and not over; addresses whose submission was lost.
    first, last : float or None
        When the oldest and the newest answer was settled, in seconds since the epoch.
    """

    key: str
    settled: int
    verdicts: dict[str, int]
    in_flight: int
    uncertain: int
    first: float | None
    last: float | None


def list_entries(connection: sqlite3.Connection) -> list[Entry]:
    """One entry per key."""
    keys = connection.execute("SELECT id, name FROM keys ORDER BY name").fetchall()
    return [entry_of(connection, number, name) for number, name in keys]


def entry_of(connection: sqlite3.Connection, key: int, name: str) -> Entry:
    """Count what is under one key."""
    by_label = "SELECT label, count(*) FROM settled JOIN outcomes ON id = outcome WHERE key = ? GROUP BY label"
    verdicts = dict(connection.execute(by_label, (key,)))
    first, last = connection.execute(
        "SELECT min(settled_at), max(settled_at) FROM settled WHERE key = ?", (key,)
    ).fetchone()
    in_flight = connection.execute("SELECT count(*) FROM jobs WHERE key = ?", (key,)).fetchone()[0]
    uncertain = connection.execute("SELECT count(*) FROM attempts WHERE key = ?", (key,)).fetchone()[0]
    return Entry(name, sum(verdicts.values()), verdicts, in_flight, uncertain, first, last)


def export_settled(connection: sqlite3.Connection, path: Path) -> None:
    """Write all settled rows to a Parquet file, page by page."""
    with atomic_write(path) as temporary, pq.ParquetWriter(temporary, EXPORT) as writer:
        for table in pages(connection):
            writer.write_table(table)


def pages(connection: sqlite3.Connection) -> Iterator[pa.Table]:
    """Settled rows as tables of bounded size."""
    for number, name in connection.execute("SELECT id, name FROM keys ORDER BY name").fetchall():
        cursor = connection.execute(ROWS, (number,))
        while rows := cursor.fetchmany(PAGE):
            yield page_table(name, rows)


def page_table(key: str, rows: list[tuple[str, str | None, int | None, float, str]]) -> pa.Table:
    """One page of an export."""
    address, normalized, checked_at, settled_at, bodies = zip(*rows, strict=True)
    shared = unpack(bodies)
    columns = {
        "email": pa.array(address, pa.string()),
        "normalized": pa.array(normalized, pa.string()),
        "checked_at": pa.array(checked_at, pa.timestamp("us", tz="UTC")),
        "source": pa.repeat(pa.scalar(SOURCE_JOURNAL), len(rows)),
        **{name: shared[name].combine_chunks() for name in shared.column_names},
    }
    table = complete_table(columns, len(rows))
    moments = pa.array([round(each * 1e6) for each in settled_at], pa.timestamp("us", tz="UTC"))
    named = table.add_column(0, EXPORT.field("key"), pa.repeat(pa.scalar(key), len(rows)))
    return named.append_column(EXPORT.field("settled_at"), moments)
