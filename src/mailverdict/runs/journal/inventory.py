"""What a journal holds: by validation type and service, and all of it as one Parquet file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ...atomic_write import atomic_write
from ...model.table import SCHEMA, SOURCE_JOURNAL, complete_table
from .outcomes import unpack

__all__ = ["Entry", "export_settled", "list_entries"]

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
