"""Whole columns in and out of the journal: look-ups, distinct outcomes, the summary and the export.

Most of a million answers are the same but for the address. What repeats is stored once, as an
outcome in JSON text; a settled row is an address and the number of its outcome.
"""

from __future__ import annotations

import hashlib
import io
import json
import sqlite3
from collections import Counter
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
from ...model.address import address_key, address_keys
from ...model.table import SCHEMA, SOURCE_JOURNAL, complete_table, dump_json
from ...model.words import ValidationType
from . import sql
from .sql import DamagedRowError

FOUND = pa.schema(
    [
        pa.field("position", pa.int64()),
        pa.field("outcome", pa.int64()),
        pa.field("normalized", pa.string()),
        pa.field("checked_at", pa.timestamp("us", tz="UTC")),
        pa.field("settled_at", pa.float64()),
        pa.field("is_new", pa.bool_()),
    ]
)
PIECE = 50_000  # addresses asked for, and rows of an export in memory, at once
PER_ROW = ("email", "normalized", "checked_at", "source")  # fields that are not part of an outcome
SHARED = [field for field in SCHEMA if field.name not in PER_ROW]
PLAIN = pa.schema(
    [pa.field(f.name, f.type if pa.types.is_boolean(f.type) else pa.string()) for f in SHARED]
)
BLOCK_SIZE = 1 << 24  # octets that pyarrow reads at once; a line must fit
MAX_CODE = 2**62
EXPORT = pa.schema(
    [pa.field("key", pa.string()), *SCHEMA, pa.field("settled_at", pa.timestamp("us", tz="UTC"))]
)

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class KnownRows:
    """Settled rows in the order of the addresses asked for."""

    rows: pa.Table  # in the result schema
    settled_at: pa.DoubleArray  # seconds since the epoch, one per row
    is_new: pa.BooleanArray  # whether another run has settled it since this one began


def find_known(
    connection: sqlite3.Connection, emails: pa.StringArray, parameters: dict[str, float]
) -> KnownRows:
    """Look up addresses, within a transaction of the caller, by the parameters of `SELECT_KNOWN`.

    They are asked for in the order of the table, a piece at a time: a million Python tuples at once
    are slow.
    """
    addresses = address_keys(emails)
    order = pc.sort_indices(addresses).cast(pa.int64())
    pieces = [FOUND.empty_table()]
    for start in range(0, len(order), PIECE):
        some = order.slice(start, PIECE)
        asked = json.dumps(addresses.take(some).to_pylist())
        if rows := connection.execute(sql.SELECT_KNOWN, {**parameters, "asked": asked}).fetchall():
            place, *fields = zip(*rows, strict=True)
            positions = some.take(pa.array(place))
            try:
                values = [
                    pa.array(each).cast(field.type)
                    for each, field in zip(fields, list(FOUND)[1:], strict=True)
                ]
            except (pa.ArrowException, OverflowError):
                raise damaged_row(emails.take(positions), rows) from None
            pieces.append(pa.table([positions, *values], schema=FOUND))
    found = pa.concat_tables(pieces).sort_by("position").combine_chunks()
    shared = read_outcomes(connection, found["outcome"])
    columns = {
        "email": emails.take(found["position"].combine_chunks()),
        "normalized": found["normalized"].combine_chunks(),
        "checked_at": found["checked_at"].combine_chunks(),
        "source": pa.repeat(pa.scalar(SOURCE_JOURNAL), len(found)).dictionary_encode(),
        **{name: shared[name].combine_chunks() for name in shared.column_names},
    }
    settled_at, is_new = found["settled_at"].combine_chunks(), found["is_new"].combine_chunks()
    return KnownRows(complete_table(columns, len(found)), settled_at, is_new)


def read_outcomes(connection: sqlite3.Connection, ids: pa.ChunkedArray) -> pa.Table:
    """The shared columns of outcomes, one row per id."""
    distinct = ids.unique().sort()
    wanted = json.dumps(distinct.to_pylist())
    rows = connection.execute(sql.SELECT_OUTCOMES, (wanted,)).fetchall()
    numbers = [number for number, _, _ in rows]
    if len(rows) != len(distinct):
        missing = min(set(distinct.to_pylist()) - set(numbers))
        raise DamagedRowError("outcomes", f"id = {missing}", "is missing")
    for number, digest, body in rows:
        if not isinstance(body, str) or digest_of(body) != digest:
            raise DamagedRowError("outcomes", f"id = {number}", "does not fit its checksum")
    return unpack_rows(numbers, [body for _, _, body in rows]).take(
        pc.index_in(ids.combine_chunks(), value_set=distinct)
    )


def unpack_rows(numbers: Sequence[int], bodies: Sequence[str]) -> pa.Table:
    """The shared columns of outcomes that have these numbers, or a `DamagedRowError`."""
    try:
        shared = unpack(bodies)
    except (ValueError, pa.ArrowException):
        for number, body in zip(numbers, bodies, strict=True):
            try:
                unpack([body])
            except (ValueError, pa.ArrowException):
                raise DamagedRowError("outcomes", f"id = {number}", "is not an answer") from None
        raise
    has_answer = pc.is_valid(shared["status"]).to_pylist()
    if not all(has_answer):
        number = numbers[has_answer.index(False)]
        raise DamagedRowError("outcomes", f"id = {number}", "has no answer")
    return shared


def damaged_row(emails: pa.StringArray, rows: Sequence[tuple[Any, ...]]) -> DamagedRowError:
    """The error for the first of these rows that holds a value of another kind."""
    why = "holds a value of another kind"
    for email, (_, *fields) in zip(emails.to_pylist(), rows, strict=True):
        try:
            for value, field in zip(fields, list(FOUND)[1:], strict=True):
                pa.array([value]).cast(field.type)
        except (pa.ArrowException, OverflowError):
            return sql.damaged_address(address_key(email), why)
    return sql.damaged_address(address_key(emails[0].as_py()), why)


def digest_of(body: str) -> bytes:
    """The checksum of an outcome, by which equal ones are one row."""
    return hashlib.blake2b(body.encode(), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class PackedRows:
    """Rows as distinct outcomes."""

    bodies: list[str]  # the distinct outcomes as JSON text
    labels: list[str]  # the verdict of each outcome, or its status where it has no verdict
    codes: Codes  # per row the position of its outcome


def pack(rows: pa.Table) -> PackedRows:
    """Find the distinct outcomes of rows; `unpack` restores their columns unchanged."""
    shared = rows.select([field.name for field in SHARED]).unify_dictionaries().combine_chunks()
    codes = np.zeros(len(shared), np.int64)
    for column in shared.columns:
        codes = refine_codes(codes, column)
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    distinct = shared.take(pa.array(first)).to_pylist()
    bodies = [
        dump_json({name: value for name, value in row.items() if value is not None})
        for row in distinct
    ]
    return PackedRows(bodies, [row["result"] or row["status"] for row in distinct], codes)


def refine_codes(codes: Codes, column: pa.ChunkedArray) -> Codes:
    """Codes that also differ where `column` differs; renumbered before their product overflows."""
    whole = column.combine_chunks()
    encoded = whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()
    size = len(encoded.dictionary) + 1
    if codes.max(initial=0) >= MAX_CODE // size:
        codes = np.unique(codes, return_inverse=True)[1]
    finer: Codes = codes * size + encoded.indices.cast(pa.int64()).fill_null(size - 1).to_numpy(
        zero_copy_only=False
    )
    return finer


def unpack(bodies: Sequence[str]) -> pa.Table:
    """The shared columns of outcomes, one row each; `ValueError` if a text is not an outcome."""
    if not bodies:
        return pa.schema(SHARED).empty_table()
    lines = "\n".join(bodies).encode()
    block = max(BLOCK_SIZE, 2 * max(map(len, bodies)) * 4)
    table = pa_json.read_json(
        io.BytesIO(lines),
        read_options=pa_json.ReadOptions(block_size=min(block, 2**31 - 1)),
        parse_options=pa_json.ParseOptions(
            explicit_schema=PLAIN, unexpected_field_behavior="ignore"
        ),
    )
    if len(table) != len(bodies):
        raise ValueError(f"{len(bodies)} outcomes read as {len(table)}")
    return table.select(PLAIN.names).cast(pa.schema(SHARED)).combine_chunks()


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run that settled addresses, as far as no later run asked for them again."""

    key: str  # validation type and service
    number: int
    settled: int  # addresses
    first: float  # seconds since the epoch when its first answer was settled
    last: float  # the same of its last


@dataclass(frozen=True, slots=True)
class JournalSummary:
    """What a journal contains under one key."""

    key: str  # validation type and service
    settled: int  # addresses with an answer
    verdicts: dict[str, int]  # those by verdict; technical failures under "error"
    in_flight: int  # addresses that are paid for and not final
    uncertain: int  # addresses whose submission was lost
    first: float | None  # seconds since the epoch when the oldest answer was settled
    last: float | None  # the same of the newest


def parse_key(key: str) -> tuple[str, str]:
    """The validation type (empty if none) and the service (empty for this machine) of a key.

    >>> parse_key("local:mx#0123"), parse_key("smtp https://verify.example.org")
    (('mx', ''), ('smtp', 'https://verify.example.org'))
    """
    head, _, service = key.removeprefix("local:").partition(" ")
    word = head.partition("#")[0]
    return word if word in tuple(ValidationType) else "", "" if key.startswith(
        "local:"
    ) else service


def summarize(connection: sqlite3.Connection) -> Iterator[JournalSummary]:
    """One summary per key, sorted by key."""
    for key, name in connection.execute(sql.SELECT_KEYS).fetchall():
        verdicts = dict(connection.execute(sql.COUNT_BY_LABEL, (key,)))
        first, last = connection.execute(sql.SELECT_SETTLED_RANGE, (key,)).fetchone()
        counts = Counter(dict(connection.execute(sql.COUNT_BY_STATE, {"key": key})))
        uncertain = counts["sending"] + counts["held"]
        yield JournalSummary(
            name, sum(verdicts.values()), verdicts, counts["in_flight"], uncertain, first, last
        )


def export_settled(connection: sqlite3.Connection, path: Path) -> None:
    """Write all settled rows to a Parquet file, a piece at a time."""
    with atomic_write(path) as temporary, pq.ParquetWriter(temporary, EXPORT) as writer:
        for key, name in connection.execute(sql.SELECT_KEYS).fetchall():
            cursor = connection.execute(sql.SELECT_SETTLED, (key,))
            while rows := cursor.fetchmany(PIECE):
                writer.write_table(export_table(connection, name, rows))


def export_table(
    connection: sqlite3.Connection,
    key: str,
    rows: list[tuple[str, str | None, int | None, float, int]],
) -> pa.Table:
    """Rows of one key in the schema of an export."""
    for address, normalized, checked_at, settled_at, outcome in rows:
        if (
            not isinstance(address, str)
            or not isinstance(normalized, str | None)
            or not isinstance(checked_at, int | None)
            or not isinstance(settled_at, float)
            or not isinstance(outcome, int)
        ):
            raise sql.damaged_address(address, "holds a value of another kind")
    addresses, normal, checked, settled, outcomes = zip(*rows, strict=True)
    shared = read_outcomes(connection, pa.chunked_array([outcomes], pa.int64()))
    columns = {
        "email": pa.array(addresses, pa.string()),
        "normalized": pa.array(normal, pa.string()),
        "checked_at": pa.array(checked, pa.timestamp("us", tz="UTC")),
        "source": pa.repeat(pa.scalar(SOURCE_JOURNAL), len(rows)),
        **{name: shared[name].combine_chunks() for name in shared.column_names},
    }
    table = complete_table(columns, len(rows))
    moments = pa.array([round(each * 1e6) for each in settled], pa.timestamp("us", tz="UTC"))
    with_key = table.add_column(0, EXPORT.field("key"), pa.repeat(pa.scalar(key), len(rows)))
    return with_key.append_column(EXPORT.field("settled_at"), moments)
