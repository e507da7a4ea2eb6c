"""Looking up a whole column in the journal at once."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ...model.address import identities
from ...model.table import SOURCE_JOURNAL, complete_table
from .outcomes import unpack

__all__ = ["Known", "ask", "find_known"]

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
