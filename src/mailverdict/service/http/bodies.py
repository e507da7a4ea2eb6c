"""Request bodies: read within limits, decoded strictly, parsed.

b'{"email": "ada@web.de", "validation_type": "mx"}' -> CheckRequest("ada@web.de", "mx")
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from starlette.requests import Request

from ...checks.syntax.address import is_well_formed
from ...contract.envelope import BULK_LIMIT
from ...http_server import BODY_COMPLETE
from ...model.words import ValidationType
from .json_octets import decode_json
from .replies import short_error, standard_error

# In the contract's order.
TYPES = [
    str(ValidationType.SMTP),
    str(ValidationType.MX),
    str(ValidationType.MX_BLACKLIST),
    str(ValidationType.REGEX),
]
NUMBER_DIGITS = 18  # in Content-Length; Python refuses to parse numbers of thousands of digits
CHARSETS = {"", "utf-8", "utf8", "us-ascii"}


class CheckRequest(NamedTuple):
    """A single check of a well-formed address."""

    email: str
    validation_type: str


@dataclass(frozen=True, slots=True)
class BulkRequest:
    """A bulk submission; `well_formed` has an entry for each of the `emails`."""

    emails: tuple[str, ...]
    well_formed: tuple[bool, ...]
    validation_type: str


async def read_object(request: Request, *, limit: int, seconds: float) -> Mapping[str, Any]:
    """Read a body that must be a JSON object; anything else is refused in the short envelope."""
    fields = dict(reversed(request.scope["headers"]))  # the first of several fields with one name
    check_content_type(fields.get(b"content-type", b""))
    if b"content-encoding" in fields:
        check_encoding(fields[b"content-encoding"])
    check_length(fields.get(b"content-length", b""), limit)
    if BODY_COMPLETE in request.scope.get("extensions", ()):
        return parse_object(await read_octets(request, limit))
    try:
        async with asyncio.timeout(seconds):
            octets = await read_octets(request, limit)
    except TimeoutError:
        raise short_error(
            "REQUEST_TIMEOUT", f"the body did not arrive within {seconds:g} seconds", headers=CLOSE
        ) from None
    return parse_object(octets)


CLOSE = {"connection": "close"}


def check_content_type(value: bytes) -> None:
    """Only JSON, which is UTF-8 (RFC 8259 section 8.1)."""
    if value == b"application/json":  # what nearly all clients send
        return
    kind, *parameters = value.decode("latin-1").lower().split(";")
    charsets = []
    for parameter in parameters:
        name, equals, charset = parameter.strip().partition("=")
        if name == "charset" and equals:
            charsets.append(charset.strip('" '))
    if kind.strip() != "application/json" or not CHARSETS.issuperset(charsets[:1]):
        headers = {"accept": "application/json"}
        raise short_error(
            "UNSUPPORTED_MEDIA_TYPE", "send the body as application/json", headers=headers
        )


def check_encoding(value: bytes) -> None:
    """No compression (RFC 9110 section 15.5.16)."""
    if value.strip().lower() not in (b"", b"identity"):
        headers = {"accept-encoding": "identity"}
        raise short_error(
            "UNSUPPORTED_MEDIA_TYPE", "send the body without Content-Encoding", headers=headers
        )


def check_length(value: bytes, limit: int) -> None:
    """Refuse by Content-Length, before the body is read."""
    if value.isdigit() and (len(value) > NUMBER_DIGITS or int(value) > limit):
        raise body_too_large(limit)


def body_too_large(limit: int) -> Exception:
    return short_error("PAYLOAD_TOO_LARGE", f"a body has at most {limit} octets", headers=CLOSE)


async def read_octets(request: Request, limit: int) -> bytearray:
    """The whole body, if it is within the limit."""
    octets = bytearray()
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise short_error("E1002", "the connection was closed before the body was complete")
        octets += message.get("body", b"")
        if len(octets) > limit:
            raise body_too_large(limit)
        if not message.get("more_body", False):
            return octets


def parse_object(octets: bytes | bytearray) -> Mapping[str, Any]:
    """Decode a JSON object; nesting too deep for the decoder is refused like invalid JSON."""
    try:
        body = decode_json(octets)
    except (ValueError, RecursionError):
        raise short_error("E1002", "the body is not valid JSON in UTF-8") from None
    if not isinstance(body, dict):
        raise short_error("E1002", "the body is not a JSON object")
    return body


def parse_check(body: Mapping[str, Any], default_type: str | None) -> CheckRequest:
    """Parse a single check; without `default_type` the validation type is required."""
    email = body.get("email")
    if not isinstance(email, str) or not is_well_formed(email.strip()):
        raise standard_error("EMAIL_REQUIRED", "email is missing, empty or malformed")
    return CheckRequest(email.strip(), parse_type(body, default_type))


def parse_bulk(body: Mapping[str, Any]) -> BulkRequest:
    """Parse a bulk submission.

    Malformed addresses are accepted, entries that are not text are not.
    """
    emails = body.get("emails")
    if not isinstance(emails, list) or not emails:
        raise short_error("E1002", "emails must be a list of addresses with at least one entry")
    if len(emails) > BULK_LIMIT:
        raise standard_error(
            "BULK_LIMIT_EXCEEDED",
            f"a bulk request has at most {BULK_LIMIT} addresses",
            limit=BULK_LIMIT,
            received=len(emails),
        )
    if not all(isinstance(email, str) for email in emails):
        raise short_error("E1002", "every entry of emails must be text")
    validation_type = parse_type(body, None)
    well_formed = [is_well_formed(email.strip()) for email in emails]
    return BulkRequest(tuple(emails), tuple(well_formed), validation_type)


def parse_type(body: Mapping[str, Any], default: str | None) -> str:
    """The validation type, which must be one of the four."""
    if "validation_type" not in body:
        if default is None:
            raise short_error("E1003", "validation_type is missing")
        return default
    value = body["validation_type"]
    if not isinstance(value, str) or value not in TYPES:
        raise standard_error(
            "INVALID_VALIDATION_TYPE",
            f"validation_type must be one of {', '.join(TYPES)}",
            allowed=TYPES,
        )
    return value
