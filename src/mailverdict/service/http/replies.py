"""Replies: JSON in the envelopes of the contract, errors, formats of both revisions.

Verification -> {"success": true, "data": {...}, "meta": {"request_id": ...}} -> JsonReply
RequestRefused("E1003", ...) -> {"error": {"code": "E1003", "message": "..."}} -> JsonReply
"""

from __future__ import annotations

import asyncio
import itertools
import json
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
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
from ...http_server import WHOLE_REPLY
from ...local.backend import iso_timestamp
from ...model.verification import Verification, dump_payload, parse_payload
from ...model.words import ValidationType, Verdict
from ..jobs.store import StoredJob
from .json_octets import encode_json

HEADERS = [
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
]
# Errors that the contract does not name: requests that do not reach one of its endpoints.
HTTP_STATUS = {
    "UNAUTHORIZED": 401,
    "NOT_FOUND": 404,
    "METHOD_NOT_ALLOWED": 405,
    "BAD_IDEMPOTENCY_KEY": 400,
    "IDEMPOTENCY_KEY_REUSED": 422,
    "REQUEST_TIMEOUT": 408,
    "PAYLOAD_TOO_LARGE": 413,
    "UNSUPPORTED_MEDIA_TYPE": 415,
    "QUEUE_FULL": 429,
    "HEADERS_TOO_LARGE": 431,
}


class RequestRefused(Exception):
    """Raised to reply with an error envelope; `standard_error` and `short_error` make one."""

    def __init__(
        self,
        code: str,
        message: str,
        status: int,
        *,
        details: Mapping[str, Any] | None = None,  # only in the standard envelope
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
            self.code,
            self.message,
            request_id=request_id,
            timestamp=iso_timestamp(),
            details=self.details,
        )


def standard_error(
    code: str, message: str, *, headers: Mapping[str, str] | None = None, **details: Any
) -> RequestRefused:
    """An error in the standard envelope."""
    return RequestRefused(
        code, message, ERROR_STATUS[code], details=details or None, headers=headers
    )


def short_error(
    code: str, message: str, *, headers: Mapping[str, str] | None = None
) -> RequestRefused:
    """An error in the short envelope: the request did not reach the verification service."""
    status = SHORT_STATUS.get(code) or HTTP_STATUS[code]
    return RequestRefused(code, message, status, is_short=True, headers=headers)


class JsonReply(Response):
    """A JSON response; it builds its headers itself, which is faster than Starlette's way."""

    def __init__(
        self, body: Any, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        self.status_code = status
        self.background = None
        self.body = encode_json(body)
        self.raw_headers = [*HEADERS, (b"content-length", b"%d" % len(self.body))]
        if headers:
            for name, value in headers.items():
                field = (name.lower().encode("latin-1"), value.encode("latin-1"))
                self.raw_headers.append(field)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send head and body, as one message if the server accepts that."""
        if WHOLE_REPLY in scope.get("extensions", ()):
            await send(
                {
                    "type": WHOLE_REPLY,
                    "status": self.status_code,
                    "headers": self.raw_headers,
                    "body": self.body,
                }
            )
        else:
            await super().__call__(scope, receive, send)


class LingeringReply(JsonReply):
    """An error reply that is sent before the rest of the body is read and discarded.

    To close the connection at once would reset it while the client is still sending, and the reset
    can overtake the reply (RFC 9112 section 9.6).
    """

    octet_limit = 64 * 1024 * 1024
    time_limit = 5.0  # seconds; after either limit the connection is closed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the reply, discard what still arrives, then end the response."""
        await send(
            {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        )
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        with suppress(TimeoutError):
            async with asyncio.timeout(self.time_limit):
                await self.discard_body(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def discard_body(self, receive: Receive) -> None:
        """Read the body to its end or to `octet_limit`."""
        left = self.octet_limit
        while left > 0:
            message = await receive()
            left -= len(message.get("body", b""))
            if not message.get("more_body"):
                return


def success_reply(
    data: Any, request_id: str, status: int = 200, headers: Mapping[str, str] | None = None
) -> JsonReply:
    """A reply in the success envelope."""
    return JsonReply(
        dump_success(data, request_id=request_id, timestamp=iso_timestamp()), status, headers
    )


PROCESS_ID = secrets.token_hex(8)
REQUEST_NUMBERS = itertools.count(1)


def new_request_id() -> str:
    """A unique identifier: a random part of this process and a number."""
    return f"{PROCESS_ID}-{next(REQUEST_NUMBERS):08x}"


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
    """What differs between the revisions of the contract."""

    # Validation type of a single check that names none; None: it must name one.
    default_type: str | None
    payload: Callable[[Verification], dict[str, Any]]  # `data` of a single check
    record: Callable[[StoredJob], dict[str, Any]]  # `data.result` of a poll
    # Whether a malformed address of a bulk submission becomes a job that ends in `error`, and costs
    # quota.
    queues_malformed: bool


def current_record(stored: StoredJob) -> dict[str, Any]:
    payload: Mapping[str, Any] | None = None
    if stored.verification:
        payload = json.loads(stored.verification)
    return dump_job(stored.email, stored.status, payload)


def earlier_record(stored: StoredJob) -> dict[str, Any]:
    """The earlier revision's status is the verdict, which also chooses the message."""
    verification = None
    status = stored.status
    if stored.verification:
        verification = parse_payload(json.loads(stored.verification))
        status = EARLIER_STATUS[Verdict(verification.result)]
    return dump_earlier_job(
        stored.email,
        stored.status,
        verification,
        message=stored.message or EARLIER_MESSAGE[status],
        created_at=iso_timestamp(stored.created_at),
        updated_at=iso_timestamp(stored.updated_at),
    )


REVISION_FORMATS = {
    Revision.CURRENT: RevisionFormat(None, dump_payload, current_record, queues_malformed=False),
    Revision.EARLIER: RevisionFormat(
        ValidationType.SMTP, dump_earlier_payload, earlier_record, queues_malformed=True
    ),
}
