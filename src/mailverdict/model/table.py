"""The one columnar table: a row per unique address. Every bulk result has this schema.

Repeating texts are dictionary-encoded, so that a million `regex` rows are a few arrays and not a
million objects. `reasons` is one text, joined by ``;`` in order of precedence.

    email         status  result   reasons       role   errors                     ...
    ada@firm.com  done    valid                  false
    ada@firm      done    invalid  syntax_error         [{"code":"REGEX", ...}]

`row_of` makes a row of a `Verification`, and `verification_of` a `Verification` of a row;
`complete_table` makes a table of columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import pyarrow as pa

from .verification import Fault, Verification, dump_errors
from .words import Status

SOURCE_LOCAL = "local"
SOURCE_REMOTE = "remote"
SOURCE_JOURNAL = "journal"
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
    "errors": lambda judged: errors_text(judged.errors),
    "checks": lambda judged: dump_json(dict(judged.checks)),
}


def errors_text(errors: Sequence[Fault] | None) -> str | None:
    if errors is None:
        return None
    return dump_json(dump_errors(errors))


def empty_table() -> pa.Table:
    return SCHEMA.empty_table()


def complete_table(
    columns: dict[str, Any], rows: int, fields: Collection[str] | None = None
) -> pa.Table:
    """Make a table of some columns; the others of the schema, or of `fields`, are null."""
    schema = SCHEMA
    if fields is not None:
        schema = pa.schema([field for field in SCHEMA if field.name in fields])
    arrays = []
    for field in schema:
        values = columns.get(field.name)
        if values is None:
            values = pa.nulls(rows, field.type)
        elif values.type != field.type:
            values = values.cast(field.type)
        arrays.append(values)
    return pa.table(arrays, schema=schema)


def row_of(v: Verification, source: str) -> dict[str, Any]:
    """One row as a mapping of column to Python value."""
    metadata = dict(v.metadata)
    moment = parse_moment(metadata.get("validated_at"))
    if moment is not None and metadata["validated_at"] == moment.isoformat():
        del metadata["validated_at"]
    normalized = pop_text(metadata, "normalized")
    suggestion = pop_text(metadata, "suggestion")
    judged = {name: encode(v) for name, encode in JUDGED_COLUMNS.items()}
    return {
        "email": v.email,
        "status": Status.DONE,
        "validation_type": v.validation_type,
        **judged,
        "role": v.role,
        "spamtrap": v.spamtrap,
        "disposable": v.disposable,
        "free": v.free,
        "catch_all": v.catch_all,
        "protected": v.protected,
        "suggestion": suggestion,
        "metadata": object_text(metadata),
        "extra": object_text(v.extra),
        "normalized": normalized,
        "checked_at": moment,
        "source": source,
    }


def object_text(value: Mapping[str, Any]) -> str | None:
    """An object as JSON text; None for an empty one."""
    if not value:
        return None
    return dump_json(dict(value))


def pop_text(metadata: dict[str, Any], key: str) -> str | None:
    """Remove a text that has a column of its own; a value of another kind stays."""
    text = metadata.get(key)
    if not isinstance(text, str):
        return None
    del metadata[key]
    return text


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with dictionary-encoded text as text."""
    fields = []
    for field in schema:
        kind = pa.string() if pa.types.is_dictionary(field.type) else field.type
        fields.append(pa.field(field.name, kind))
    return pa.schema(fields)


def table_to_rows(table: pa.Table) -> list[Verification]:
    """The verifications of the rows whose status is `done`, in order."""
    plain = table.cast(plain_schema(table.schema))  # from codes it takes three times as long
    return [verification_of(row) for row in plain.to_pylist() if row["status"] == Status.DONE]


def verification_of(row: dict[str, Any]) -> Verification:
    metadata = read_object(row["metadata"])
    if row["checked_at"] is not None and "validated_at" not in metadata:
        metadata["validated_at"] = row["checked_at"].astimezone(UTC).isoformat()
    if row["normalized"] is not None and row["normalized"] != row["email"]:
        metadata["normalized"] = row["normalized"]
    if row["suggestion"] is not None:
        metadata["suggestion"] = row["suggestion"]
    reasons: tuple[str, ...] = ()
    if row["reasons"]:
        reasons = tuple(row["reasons"].split(";"))
    errors = None
    if row["errors"] is not None:
        entries = json.loads(row["errors"])
        errors = tuple([Fault(entry["code"], entry["message"]) for entry in entries])
    return Verification(
        email=row["email"],
        validation_type=row["validation_type"],
        result=row["result"],
        reasons=reasons,
        checks=read_object(row["checks"]),
        role=row["role"],
        spamtrap=row["spamtrap"],
        disposable=row["disposable"],
        free=row["free"],
        catch_all=row["catch_all"],
        protected=row["protected"],
        reason=row["error"],
        errors=errors,
        metadata=metadata,
        extra=read_object(row["extra"]),
    )


def read_object(text: str | None) -> dict[str, Any]:
    """The object of a JSON text; an empty one for no text."""
    if not text:
        return {}
    value: dict[str, Any] = json.loads(text)
    return value


def dump_json(value: Any) -> str:
    """Compact JSON text, keys in their order."""
    return COMPACT.encode(value)


# `json.dumps` would make one for each call.
COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def parse_moment(value: object) -> datetime | None:
    """Read an ISO 8601 moment with an offset as UTC; None where it is not one."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            return None
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):  # the year 1 with an offset has no UTC form
        return None
