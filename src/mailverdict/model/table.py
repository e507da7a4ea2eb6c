"""The one columnar table: a row per unique address. Every bulk result has this schema.

Repeating texts are dictionary-encoded, so that a million `regex` rows are a few arrays and not a
million objects. `reasons` is one text, joined by ``;`` in order of precedence.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from .verification import Fault, Verification, dump_errors
from .words import Status

SOURCE_LOCAL, SOURCE_REMOTE, SOURCE_JOURNAL = "local", "remote", "journal"
TEXT_CODES = pa.dictionary(pa.int32(), pa.string())

SCHEMA = pa.schema(
    [
        pa.field("email", pa.string()),  # as given, stripped
        pa.field("status", TEXT_CODES),  # done, pending, error, missing
        pa.field("validation_type", TEXT_CODES),
        pa.field("result", TEXT_CODES),  # null unless status is done
        pa.field("reasons", TEXT_CODES),  # ";"-joined; "" when none; null without a verdict
        pa.field("role", pa.bool_()),
        pa.field("spamtrap", pa.bool_()),
        pa.field("disposable", pa.bool_()),
        pa.field("free", pa.bool_()),
        pa.field("catch_all", pa.bool_()),
        pa.field("protected", pa.bool_()),
        pa.field("suggestion", pa.string()),  # "did you mean", the whole domain-corrected address
        pa.field("error", TEXT_CODES),  # payload `reason`
        pa.field("errors", TEXT_CODES),  # payload `errors`, as JSON text
        pa.field("checks", TEXT_CODES),  # payload `checks`, as JSON text
        pa.field("metadata", TEXT_CODES),  # payload `metadata` less validated_at, as JSON text
        pa.field("extra", TEXT_CODES),  # payload keys unknown to the contract, as JSON text
        pa.field("normalized", pa.string()),
        pa.field("checked_at", pa.timestamp("us", tz="UTC")),
        pa.field("source", TEXT_CODES),  # local, remote, journal
    ]
)


class Judged(Protocol):
    """What `Verification` and `mailverdict.verdicts.Decision` have in common."""

    @property
    def result(self) -> str: ...
    @property
    def reasons(self) -> Sequence[str]: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def errors(self) -> Sequence[Fault] | None: ...
    @property
    def checks(self) -> Mapping[str, bool]: ...


# Columns that depend on the judgement alone: how a row of the table and a batch of rows store them.
JUDGED_COLUMNS: dict[str, Callable[[Judged], str | None]] = {
    "result": lambda judged: judged.result,
    "reasons": lambda judged: ";".join(judged.reasons),
    "error": lambda judged: judged.reason,
    "errors": lambda judged: (
        None if judged.errors is None else dump_json(dump_errors(judged.errors))
    ),
    "checks": lambda judged: dump_json(dict(judged.checks)),
}


def empty_table() -> pa.Table:
    """A table without rows."""
    return SCHEMA.empty_table()


def complete_table(
    columns: dict[str, Any], rows: int, fields: Collection[str] | None = None
) -> pa.Table:
    """Make a table of `rows` rows out of some columns; the others are null. Of the schema, it has only `fields`."""
    arrays = []
    schema = (
        SCHEMA if fields is None else pa.schema([each for each in SCHEMA if each.name in fields])
    )
    for each in schema:
        values = columns.get(each.name)
        if values is None:
            values = pa.nulls(rows, each.type)
        elif values.type != each.type:
            values = values.cast(each.type)
        arrays.append(values)
    return pa.table(arrays, schema=schema)


def texts_where(mask: pa.BooleanArray, texts: pa.StringArray) -> pa.StringArray:
    """The texts where `mask` is true, else null.

    By an array of nulls: beside a null scalar Arrow 18 misreads texts whose octets do not begin at their first one.
    """
    return pc.if_else(mask, texts, pa.nulls(len(texts), texts.type))


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column in one piece; a column that is in one piece is not copied, as `combine_chunks` does."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def row_of(v: Verification, source: str) -> dict[str, Any]:
    """One row as a mapping of column to Python value."""
    metadata = dict(v.metadata)
    moment = parse_moment(metadata.get("validated_at"))
    if moment is not None and metadata["validated_at"] == moment.isoformat():
        del metadata["validated_at"]
    normalized, suggestion = pop_text(metadata, "normalized"), pop_text(metadata, "suggestion")
    return {
        "email": v.email,
        "status": Status.DONE,
        "validation_type": v.validation_type,
        **{name: encode(v) for name, encode in JUDGED_COLUMNS.items()},
        "role": v.role,
        "spamtrap": v.spamtrap,
        "disposable": v.disposable,
        "free": v.free,
        "catch_all": v.catch_all,
        "protected": v.protected,
        "suggestion": suggestion,
        "metadata": dump_json(metadata) if metadata else None,
        "extra": dump_json(dict(v.extra)) if v.extra else None,
        "normalized": normalized,
        "checked_at": moment,
        "source": source,
    }


def pop_text(metadata: dict[str, Any], key: str) -> str | None:
    """Remove a text that has a column of its own; a service's value of another kind stays where it is."""
    return metadata.pop(key) if isinstance(metadata.get(key), str) else None


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with dictionary-encoded text as text."""
    return pa.schema(
        [
            pa.field(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type)
            for f in schema
        ]
    )


def table_to_rows(table: pa.Table) -> list[Verification]:
    """The verifications of the rows whose status is `done`, in order."""
    rows = table.cast(
        plain_schema(table.schema)
    ).to_pylist()  # from codes it takes three times as long
    return [verification_of(row) for row in rows if row["status"] == Status.DONE]


def verification_of(row: dict[str, Any]) -> Verification:
    """The verification of one row."""
    metadata = json.loads(row["metadata"]) if row["metadata"] else {}
    if row["checked_at"] is not None and "validated_at" not in metadata:
        metadata["validated_at"] = row["checked_at"].astimezone(UTC).isoformat()
    if row["normalized"] is not None and row["normalized"] != row["email"]:
        metadata["normalized"] = row["normalized"]
    if row["suggestion"] is not None:
        metadata["suggestion"] = row["suggestion"]
    errors = json.loads(row["errors"]) if row["errors"] is not None else None
    return Verification(
        email=row["email"],
        validation_type=row["validation_type"],
        result=row["result"],
        reasons=tuple(row["reasons"].split(";")) if row["reasons"] else (),
        checks=json.loads(row["checks"]) if row["checks"] else {},
        role=row["role"],
        spamtrap=row["spamtrap"],
        disposable=row["disposable"],
        free=row["free"],
        catch_all=row["catch_all"],
        protected=row["protected"],
        reason=row["error"],
        errors=None if errors is None else tuple(Fault(e["code"], e["message"]) for e in errors),
        metadata=metadata,
        extra=json.loads(row["extra"]) if row["extra"] else {},
    )


def dump_json(value: Any) -> str:
    """Compact JSON text, keys in their order."""
    return COMPACT.encode(value)


# `json.dumps` would make one for each call.
COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def parse_moment(value: object) -> datetime | None:
    """Read an ISO 8601 moment with an offset as UTC; None where it is not one."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        return moment.astimezone(UTC) if moment is not None and moment.tzinfo is not None else None
    except (ValueError, OverflowError):  # the year 1 with an offset has no UTC form
        return None
