"""Envelopes and records around the payload: success, both error shapes, quota, entries, jobs.

    {"success": true, "data": {...}, "meta": {"request_id": "...", "timestamp": "..."}}
    {"success": false, "error": {"code": "QUOTA_EXCEEDED", "message": "...", "details": {...}}}
    {"error": {"code": "E1005", "message": "..."}}                      the short form
    {"daily_limit": 100, "used": 40, "remaining": 60}                   the quota, bare

`dump_` functions are those of a service, `parse_` functions those of a client, which accepts both
revisions of the contract and bounds every text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from ..backend import Quota
from ..errors import ContractError
from ..model.json_fields import require_field, shorten
from ..model.verification import Verification, parse_earlier_payload, parse_payload

VERSION = "v1"
BULK_LIMIT = 100  # addresses in one bulk request
LARGEST = 2**53  # beyond it JSON numbers lose digits (RFC 8259 section 6), and no quota is so large
EARLIER_FINAL = ("valid", "invalid")  # poll statuses of the earlier revision that are verdicts
LONGEST_ID = 200  # characters; a UUID has 36, and an identifier becomes a part of a URL

# The standard table of errors: code and HTTP status.
ERROR_STATUS = {
    "EMAIL_REQUIRED": 400,
    "INVALID_VALIDATION_TYPE": 400,
    "BULK_LIMIT_EXCEEDED": 422,
    "QUOTA_EXCEEDED": 429,
    "JOB_NOT_FOUND": 404,
    "UPSTREAM_ERROR": 502,
    "UPSTREAM_SCHEMA_MISMATCH": 502,
    "INTERNAL_ERROR": 500,
}
# The short envelope's codes; their statuses are ours to choose, the contract does not show them.
SHORT_STATUS = {"E1001": 500, "E1002": 400, "E1003": 400, "E1004": 502, "E1005": 503, "E1006": 400}


class JobStatus(StrEnum):
    """Where the processing of a job stands; only `done` and `error` are final."""

    QUEUED = "queued"
    PROCESSING = "processing"
    DONE = "done"
    ERROR = "error"

    @property
    def is_final(self) -> bool:
        """Whether the job will not change any more."""
        return self in (JobStatus.DONE, JobStatus.ERROR)


@dataclass(frozen=True, slots=True)
class SuccessEnvelope:
    """A success envelope's parts."""

    data: Any
    meta: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ErrorEnvelope:
    """An error envelope's parts, of either shape; `code` may be one that no table knows.

    `retry_after` is the header of that name in seconds, where there was one. `is_page`: the body
    was not JSON, so a proxy may have answered and not the service.
    """

    code: str
    message: str
    status: int
    details: Mapping[str, Any]
    retry_after: float | None = None
    is_page: bool = False

    def whole_number(self, key: str) -> int | None:
        """A number out of `details`, or None."""
        value = self.details.get(key)
        if isinstance(value, bool) or not isinstance(value, int):
            return None
        return value


@dataclass(frozen=True, slots=True)
class BulkEntry:
    """One entry of a bulk submission's answer."""

    email: str
    status: str
    message: str
    job_id: str

    @property
    def is_queued(self) -> bool:
        """Whether a job was created and counted against the quota."""
        return self.status != JobStatus.ERROR


@dataclass(frozen=True, slots=True)
class JobRecord:
    """The answer to a poll; `verification` is present exactly when `status` is `done`."""

    email: str
    status: str
    verification: Verification | None = None
    message: str = ""

    @property
    def is_final(self) -> bool:
        """Whether the job will not change; an unknown status is not final."""
        return self.status in (JobStatus.DONE, JobStatus.ERROR)


def meta(request_id: str, timestamp: str) -> dict[str, str]:
    return {"request_id": request_id, "timestamp": timestamp, "version": VERSION}


def dump_success(data: Any, *, request_id: str, timestamp: str) -> dict[str, Any]:
    """A success envelope; `timestamp` is ISO 8601 with an offset."""
    return {"success": True, "data": data, "meta": meta(request_id, timestamp)}


def dump_failure(
    code: str,
    message: str,
    *,
    request_id: str,
    timestamp: str,
    details: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A standard error envelope; `details` is there only when there is something to add."""
    error: dict[str, Any] = {"code": code, "message": message}
    if details:
        error["details"] = dict(details)
    return {"success": False, "error": error, "meta": meta(request_id, timestamp)}


def dump_short_failure(code: str, message: str) -> dict[str, Any]:
    """A short error envelope: neither `success` nor `meta`."""
    return {"error": {"code": code, "message": message}}


def dump_quota(quota: Quota) -> dict[str, int]:
    """The quota record, which has no envelope."""
    return {"daily_limit": quota.daily_limit, "used": quota.used, "remaining": quota.remaining}


def dump_entry(email: str, status: str, message: str, job_id: str) -> dict[str, str]:
    """An element of a bulk submission's `data.results`; a rejected address has a `job_id` too."""
    return {"email": email, "status": status, "message": message, "job_id": job_id}


def dump_job(email: str, status: str, verification: Mapping[str, Any] | None) -> dict[str, Any]:
    """A job record: exactly three keys, and a payload only when it is `done`."""
    if status != JobStatus.DONE:
        verification = None
    return {"email": email, "status": status, "verification": verification}


def parse_envelope(body: object, status: int) -> SuccessEnvelope | ErrorEnvelope:
    """Read a success or error envelope; `ContractError` if `body` is neither."""
    if not isinstance(body, Mapping):
        raise ContractError(f"the answer is {shorten(body)}, not an object", path="")
    if "error" in body and body.get("success") is not True:
        return parse_failure(body, status)
    if body.get("success") is True and "data" in body:
        return SuccessEnvelope(body["data"], object_in(body, "meta"))
    keys = ", ".join(sorted(map(str, body))[:8])
    raise ContractError(
        f"the answer has neither 'success' with 'data' nor 'error'; its keys: {shorten(keys)}",
        path="",
    )


def parse_failure(body: Mapping[str, Any], status: int) -> ErrorEnvelope:
    """Read either form of error envelope; `error.code` is kept unchanged."""
    error = require_field(body, "error", dict, "")
    return ErrorEnvelope(
        code=shorten(str(error.get("code") or ""), 80),
        message=shorten(str(error.get("message") or ""), 500),
        status=status,
        details=object_in(error, "details"),
    )


def object_in(record: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object under a key; an empty one where there is none."""
    value = record.get(key)
    if not isinstance(value, Mapping):
        return {}
    return value


def parse_quota(body: object) -> Quota:
    """Read a quota record: three whole numbers without an envelope."""
    limit = require_field(body, "daily_limit", int, "")
    used = require_field(body, "used", int, "")
    remaining = require_field(body, "remaining", int, "")
    if min(limit, used, remaining) < 0 or max(limit, used, remaining) > LARGEST:
        raise ContractError(
            f"a quota of daily_limit={limit}, used={used}, remaining={remaining} makes no sense",
            path="",
        )
    return Quota(limit, used, remaining)


def parse_entry(entry: object, path: str) -> BulkEntry:
    """Read one entry of a bulk submission's answer; a job must have an identifier."""
    email = require_field(entry, "email", str, path)
    status = require_field(entry, "status", str, path)
    assert isinstance(entry, Mapping)
    if status == JobStatus.ERROR:
        job_id = str(entry.get("job_id") or "")
    else:
        job_id = check_id(require_field(entry, "job_id", str, path), path)
    return BulkEntry(email, status, shorten(str(entry.get("message") or "")), job_id)


def check_id(job_id: str, path: str) -> str:
    """Return `job_id` if it can be a segment of a URL path; ``..`` would refer to another path."""
    if job_id in ("", ".", "..") or len(job_id) > LONGEST_ID or not job_id.isprintable():
        raise ContractError(
            f"{path}.job_id is {shorten(job_id)!r}, which cannot be polled", path=f"{path}.job_id"
        )
    return job_id


def parse_job(data: object, validation_type: str = "") -> JobRecord:
    """Read `data` of a poll's answer, of either revision, or raise a `ContractError`.

    The earlier revision's record has no type, so `validation_type` is the one that was submitted.
    """
    path = "data.result"
    record = require_field(data, "result", dict, "data")
    email = require_field(record, "email", str, path)
    status = require_field(record, "status", str, path)
    if status in EARLIER_FINAL:
        record = {"validation_type": validation_type or None, **record}
        return parse_earlier_job(record, email, status, path)
    verification = None
    if status == JobStatus.DONE:
        verification = parse_payload(record.get("verification"), f"{path}.verification")
    return JobRecord(email, status, verification, shorten(str(record.get("message") or "")))


def parse_earlier_job(record: Mapping[str, Any], email: str, status: str, path: str) -> JobRecord:
    """The earlier record of a job with a verdict; `details` has the rest of the payload."""
    payload = {
        "validation_type": record["validation_type"],
        **object_in(record, "details"),
        "email": email,
        "valid": status == "valid",
    }
    payload.pop("result", None)
    verification = replace(parse_earlier_payload(payload, path), result=status)
    return JobRecord(email, JobStatus.DONE, verification, shorten(str(record.get("message") or "")))
