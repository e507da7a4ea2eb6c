"""Answers in the contract's envelopes."""

from __future__ import annotations

import asyncio
import itertools
import json
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ...contract.envelope import (
    ERROR_STATUS,
    SHORT_STATUS,
    JobStatus,
    dump_failure,
    dump_job,
    dump_short_failure,
    dump_success,
)
from ...contract.revisions import EARLIER_STATUS, Revision, dump_earlier_job, dump_earlier_payload
from ...model.verification import Verification, dump_payload, parse_payload
from ...model.words import ValidationType, Verdict
from ..jobs.store import StoredJob

__all__ = [
    "ENCODE",
    "QUEUED",
    "REVISION_FORMATS",
    "JsonReply",
    "LingeringReply",
    "RequestRefused",
    "RevisionFormat",
    "iso_moment",
    "new_request_id",
    "short_error",
    "standard_error",
    "success_reply",
]

# ASCII on the wire: a lone surrogate, which JSON can escape and UTF-8 cannot encode, is echoed as it came.
ENCODE = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode
HEADERS = [
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
]
# What is refused before there is a request of the contract; the contract leaves these codes open.
PLAIN_STATUS = {
    "NOT_FOUND": 404,
    "METHOD_NOT_ALLOWED": 405,
    "REQUEST_TIMEOUT": 408,
    "PAYLOAD_TOO_LARGE": 413,
    "UNSUPPORTED_MEDIA_TYPE": 415,
    "HEADERS_TOO_LARGE": 431,
}


class RequestRefused(Exception):
    """A request is answered with an error envelope.

    Parameters
    ----------
    code : str
        `error.code`.
    message : str
        For people.
    status : int
        HTTP status.
    details : mapping, optional
        What is to be added; only the standard envelope has it.
    is_short : bool
        Which of the two envelopes.
    headers : mapping of str to str, optional
        Further HTTP headers.
    """

    def __init__(
        self,
        code: str,
        message: str,
        status: int,
        *,
        details: Mapping[str, Any] | None = None,
        is_short: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status
        self.details = details
        self.is_short = is_short
        self.headers = headers

    def body(self, request_id: str) -> dict[str, Any]:
        """The envelope."""
        if self.is_short:
            return dump_short_failure(self.code, self.message)
        return dump_failure(
            self.code, self.message, request_id=request_id, timestamp=iso_moment(), details=self.details
        )


def standard_error(code: str, message: str, **details: Any) -> RequestRefused:
    """A refusal in the standard envelope."""
    return RequestRefused(code, message, ERROR_STATUS[code], details=details or None)


def short_error(code: str, message: str, *, headers: Mapping[str, str] | None = None) -> RequestRefused:
    """A refusal in the short envelope: the request did not reach the verification service."""
    status = SHORT_STATUS.get(code) or PLAIN_STATUS[code]
    return RequestRefused(code, message, status, is_short=True, headers=headers)


class JsonReply(Response):
    """A JSON response; its headers are put together here, since they hardly ever differ."""

    def __init__(self, body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.status_code = status
        self.background = None
        self.body = ENCODE(body).encode("ascii")
        self.raw_headers = [*HEADERS, (b"content-length", b"%d" % len(self.body))]
        if headers:
            self.raw_headers += [(name.lower().encode("latin-1"), v.encode("latin-1")) for name, v in headers.items()]


class LingeringReply(JsonReply):
    """An early refusal: the answer goes out at once, and what is still arriving is thrown away.

    Closing at once would reset the connection of a client that is still sending, and the reset may
    overtake the answer (RFC 9112 section 9.6).
    """

    most = 64 * 1024 * 1024  # octets, and
    longest = 5.0  # seconds; a client that sends on after them is cut off

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer, then read on for a while."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        with suppress(TimeoutError):
            async with asyncio.timeout(self.longest):
                await discard(receive, self.most)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def discard(receive: Receive, most: int) -> None:
    """Read a body to its end, or to `most` octets of it."""
    while most > 0:
        message = await receive()
        most -= len(message.get("body", b""))
        if not message.get("more_body"):
            return


def success_reply(data: Any, request_id: str, status: int = 200) -> JsonReply:
    """A success envelope."""
    return JsonReply(dump_success(data, request_id=request_id, timestamp=iso_moment()), status)


PROCESS = secrets.token_hex(8)
COUNT = itertools.count(1)


def new_request_id() -> str:
    """Unique, and no secret: this process's name and a number."""
    return f"{PROCESS}-{next(COUNT):08x}"


def iso_moment(seconds: float | None = None) -> str:
    """A moment, now by default, as ISO 8601 with offset."""
    moment = datetime.now(UTC) if seconds is None else datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat()


QUEUED = "Queued for verification"
EARLIER_MESSAGE = {
    JobStatus.QUEUED: QUEUED,
    JobStatus.PROCESSING: "Verification in progress",
    "valid": "The address can receive mail",
    "invalid": "The address cannot receive mail",
    "error": "Nothing could be established about the address",
}


@dataclass(frozen=True, slots=True)
class RevisionFormat:
    """What the revisions do differently.

    Attributes
    ----------
    default_type : str or None
        Type of a single check that names none; None: it must name one.
    payload : callable
        A verification as JSON-ready `data`.
    record : callable
        A stored job as JSON-ready `data.result`.
    queues_malformed : bool
        Whether a malformed address of a bulk submission becomes a job (that ends in `error`) like
        any other, and is paid for like any other.
    """

    default_type: str | None
    payload: Callable[[Verification], dict[str, Any]]
    record: Callable[[StoredJob], dict[str, Any]]
    queues_malformed: bool


def current_record(stored: StoredJob) -> dict[str, Any]:
    payload: Mapping[str, Any] | None = json.loads(stored.verification) if stored.verification else None
    return dump_job(stored.email, stored.status, payload)


def earlier_record(stored: StoredJob) -> dict[str, Any]:
    """The verdict is the status there, so its message goes by the verdict too."""
    verification = parse_payload(json.loads(stored.verification)) if stored.verification else None
    status = EARLIER_STATUS[Verdict(verification.result)] if verification else stored.status
    return dump_earlier_job(
        stored.email,
        stored.status,
        verification,
        message=stored.message or EARLIER_MESSAGE[status],
        created_at=iso_moment(stored.created_at),
        updated_at=iso_moment(stored.updated_at),
    )


REVISION_FORMATS = {
    Revision.CURRENT: RevisionFormat(None, dump_payload, current_record, queues_malformed=False),
    Revision.EARLIER: RevisionFormat(ValidationType.SMTP, dump_earlier_payload, earlier_record, queues_malformed=True),
}
