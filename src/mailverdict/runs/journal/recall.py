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
from ...model.arrow import one_array
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
BLOCK_SIZE = 1 << 24  # octets that pyarrow reads at once; a line must fit
LARGEST_BLOCK = 2**31 - 1
MAX_CODE = 2**62
MOMENT = pa.timestamp("us", tz="UTC")
EXPORT = pa.schema([pa.field("key", pa.string()), *SCHEMA, pa.field("settled_at", MOMENT)])


def plain_types() -> dict[str, pa.DataType]:
    """The types that the fields of an outcome have in JSON."""
    types = {}
    for field in SHARED:
        types[field.name] = pa.string()
        if pa.types.is_boolean(field.type):
            types[field.name] = field.type
    return types


PLAIN = pa.schema(plain_types())
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
        rows = connection.execute(sql.SELECT_KNOWN, {**parameters, "asked": asked}).fetchall()
        if not rows:
            continue
        places, *fields = zip(*rows, strict=True)
        positions = some.take(pa.array(places))
        columns = [positions]
        try:
            for values, field in zip(fields, list(FOUND)[1:], strict=True):
                columns.append(pa.array(values).cast(field.type))
        except (pa.ArrowException, OverflowError):
            raise damaged_row(emails.take(positions), rows) from None
        pieces.append(pa.table(columns, schema=FOUND))
    found = pa.concat_tables(pieces).sort_by("position").combine_chunks()
    known = {name: one_array(found[name]) for name in FOUND.names}
    answers = read_outcomes(connection, found["outcome"])
    answers["email"] = emails.take(known["position"])
    answers["normalized"] = known["normalized"]
    answers["checked_at"] = known["checked_at"]
    answers["source"] = pa.repeat(pa.scalar(SOURCE_JOURNAL), len(found)).dictionary_encode()
    table = complete_table(answers, len(found))
    return KnownRows(table, known["settled_at"], known["is_new"])


def read_outcomes(connection: sqlite3.Connection, ids: pa.ChunkedArray) -> dict[str, pa.Array]:
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
    shared = unpack_rows(numbers, [body for _, _, body in rows])
    rows_of_ids = shared.take(pc.index_in(ids.combine_chunks(), value_set=distinct))
    return {name: one_array(rows_of_ids[name]) for name in rows_of_ids.column_names}


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
    bodies = []
    labels = []
    for row in shared.take(pa.array(first)).to_pylist():
        filled = {name: value for name, value in row.items() if value is not None}
        bodies.append(dump_json(filled))
        labels.append(row["result"] or row["status"])
    return PackedRows(bodies, labels, codes)


def refine_codes(codes: Codes, column: pa.ChunkedArray) -> Codes:
    """Codes that also differ where `column` differs; renumbered before their product overflows."""
    encoded = column.combine_chunks()
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    size = len(encoded.dictionary) + 1
    if codes.max(initial=0) >= MAX_CODE // size:
        codes = np.unique(codes, return_inverse=True)[1]
    values = encoded.indices.cast(pa.int64()).fill_null(size - 1)
    finer: Codes = codes * size + values.to_numpy(zero_copy_only=False)
    return finer


def unpack(bodies: Sequence[str]) -> pa.Table:
    """The shared columns of outcomes, one row each; `ValueError` if a text is not an outcome."""
    if not bodies:
        return pa.schema(SHARED).empty_table()
    lines = "\n".join(bodies).encode()
    longest = 4 * max(map(len, bodies))  # octets
    block = min(max(BLOCK_SIZE, 2 * longest), LARGEST_BLOCK)
    table = pa_json.read_json(
        io.BytesIO(lines),
        read_options=pa_json.ReadOptions(block_size=block),
        parse_options=pa_json.ParseOptions(
            explicit_schema=PLAIN, unexpected_field_behavior="ignore"
        ),
    )
    if len(table) != len(bodies):
        raise ValueError(f"{len(bodies)} outcomes read as {len(table)}")
    return table.select(PLAIN.names).cast(pa.schema(SHARED)).combine_chunks()


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run, and the addresses that it settled and no later run has settled again."""

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
    validation_type = head.partition("#")[0]
    if validation_type not in tuple(ValidationType):
        validation_type = ""
    if key.startswith("local:"):
        service = ""
    return validation_type, service


def summarize(connection: sqlite3.Connection) -> Iterator[JournalSummary]:
    """One summary per key, sorted by key."""
    for key, name in connection.execute(sql.SELECT_KEYS).fetchall():
        verdicts = dict(connection.execute(sql.COUNT_BY_LABEL, (key,)))
        first, last = connection.execute(sql.SELECT_SETTLED_RANGE, (key,)).fetchone()
        counts = Counter(dict(connection.execute(sql.COUNT_BY_STATE, {"key": key})))
        yield JournalSummary(
            key=name,
            settled=sum(verdicts.values()),
            verdicts=verdicts,
            in_flight=counts["in_flight"],
            uncertain=counts["sending"] + counts["held"],
            first=first,
            last=last,
        )


def export_settled(connection: sqlite3.Connection, path: Path) -> None:
    """Write all settled rows to a Parquet file, a piece at a time."""
    with atomic_write(path) as temporary, pq.ParquetWriter(temporary, EXPORT) as writer:
        for key, name in connection.execute(sql.SELECT_KEYS).fetchall():
            cursor = connection.execute(sql.SELECT_SETTLED, (key,))
            rows = cursor.fetchmany(PIECE)
            while rows:
                writer.write_table(export_table(connection, name, rows))
                rows = cursor.fetchmany(PIECE)


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
    addresses, normal_forms, check_times, settle_times, outcomes = zip(*rows, strict=True)
    answers = read_outcomes(connection, pa.chunked_array([outcomes], pa.int64()))
    answers["email"] = pa.array(addresses, pa.string())
    answers["normalized"] = pa.array(normal_forms, pa.string())
    answers["checked_at"] = pa.array(check_times, MOMENT)
    answers["source"] = pa.repeat(pa.scalar(SOURCE_JOURNAL), len(rows))
    table = complete_table(answers, len(rows))
    table = table.add_column(0, EXPORT.field("key"), pa.repeat(pa.scalar(key), len(rows)))
    microseconds = [round(seconds * 1e6) for seconds in settle_times]
    return table.append_column(EXPORT.field("settled_at"), pa.array(microseconds, MOMENT))
