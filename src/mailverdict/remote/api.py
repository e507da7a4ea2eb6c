"""What a decision can ask for, and what it is told: the vocabulary between deciding and doing.

The generators of `quota` and `bulk` yield steps. A `Request` is answered with an `Answer`; a
`Pause` and an `Event` are answered with None.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pyarrow as pa

from ..backend import Event, Job, Quota
from ..contract.envelope import Failure, Success, parse_quota
from ..errors import BackendError, QuotaExceeded, RateLimited, ServiceError
from ..model.evidence import Evidence, SyntaxEvidence
from ..model.json_fields import shorten
from ..model.table import SCHEMA, SOURCE_REMOTE, dump_json, row_of
from ..model.verification import Fault, Verification, dump_errors
from ..model.words import Status, ValidationType
from ..verdicts import settle

__all__ = [
    "QUOTA_REQUEST",
    "Answer",
    "Lost",
    "Pause",
    "Request",
    "Step",
    "Steps",
    "Trouble",
    "answer_row",
    "error_of",
    "is_quota_refusal",
    "job_row",
    "read_quota",
    "rejected_row",
    "rows_table",
    "success_of",
    "trouble_row",
]

TOO_MANY = 429


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request.

    Attributes
    ----------
    method, path : str
        As ``GET`` and ``/api/quota``; the path is below the base URL.
    body : mapping or None
        Sent as JSON.
    is_repeatable : bool
        Whether sending it twice does no harm; a submission is paid for.
    is_enveloped : bool
        Whether a success comes in an envelope.
    """

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    is_repeatable: bool = True
    is_enveloped: bool = True


@dataclass(frozen=True, slots=True)
class Lost:
    """No usable answer.

    Attributes
    ----------
    error : BackendError
        What was seen.
    was_sent : bool
        False only if the request certainly never reached the service.
    is_hopeless : bool
        Whether the same request would end the same way.
    """

    error: BackendError
    was_sent: bool
    is_hopeless: bool = False


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait before going on."""

    seconds: float
    why: str


Answer = Success | Failure | Lost
Step = Request | Pause | Event
T = TypeVar("T")
Steps = Generator[Step, Answer | None, T]


def is_quota_refusal(failure: Failure) -> bool:
    """Whether it is the daily quota that refused, and not a limiter of requests."""
    known = failure.whole_number("remaining") is not None
    return failure.code == "QUOTA_EXCEEDED" or (failure.status == TOO_MANY and known)


def error_of(answer: Failure | Lost) -> BackendError:
    """The exception that an answer amounts to; its message already names URL and status."""
    if isinstance(answer, Lost):
        return answer.error
    if is_quota_refusal(answer):
        limit, remaining, requested = (answer.whole_number(key) for key in ("limit", "remaining", "requested"))
        return QuotaExceeded(answer.message, limit=limit, remaining=remaining, requested=requested)
    if answer.status == TOO_MANY:
        return RateLimited(answer.message, retry_after=answer.retry_after)
    return ServiceError(answer.message, code=answer.code, status=answer.status)


def success_of(answer: Answer | None) -> Success:
    """The success, or the exception that the answer amounts to."""
    if isinstance(answer, Success):
        return answer
    assert answer is not None
    raise error_of(answer)


Row = dict[str, Any]
LONGEST_ADDRESS = 320  # characters: local part 64, "@", domain 255 (RFC 5321 section 4.5.3.1)
MALFORMED = "invalid email"  # "Invalid email format" is the contract's message for a malformed address


@dataclass(frozen=True, slots=True)
class Trouble:
    """A technical failure of one address: it has no verdict, and says nothing about the mailbox."""

    code: str
    message: str


def answer_row(verification: Verification, email: str) -> Row:
    """The service's verdict as it is, under the address that was asked.

    A verifier may give the address back in another form; that is kept as the normal form.
    """
    row = row_of(replace(verification, email=email), SOURCE_REMOTE)
    if verification.email != email and row["normalized"] is None:
        row["normalized"] = shorten(verification.email, LONGEST_ADDRESS)
    return row


def trouble_row(trouble: Trouble, email: str, validation_type: str) -> Row:
    """A row whose processing failed: status `error`, no verdict."""
    return {
        "email": email,
        "status": Status.ERROR,
        "validation_type": validation_type,
        "error": trouble.code,
        "errors": dump_json(dump_errors([Fault(trouble.code, trouble.message)])),
        "source": SOURCE_REMOTE,
    }


def rejected_row(email: str, validation_type: str, message: str) -> Row:
    """What the service refused to queue: malformed in its eyes, or refused for a reason of its own."""
    if MALFORMED not in message.lower():
        return trouble_row(Trouble("REJECTED", message or "the service refused the address"), email, validation_type)
    decision = settle(ValidationType(validation_type), Evidence(SyntaxEvidence(ok=False, message=message)))
    verification = Verification(
        email=email,
        validation_type=validation_type,
        result=decision.result,
        reasons=decision.reasons,
        checks=decision.checks,
        reason=decision.error,
        errors=decision.errors,
    )
    return row_of(verification, SOURCE_REMOTE)


def job_row(outcome: Verification | Trouble, job: Job) -> Row:
    """The row that ends a job."""
    if isinstance(outcome, Trouble):
        return trouble_row(outcome, job.email, job.validation_type)
    return answer_row(outcome, job.email)


def rows_table(rows: Sequence[Row]) -> pa.Table:
    """Rows as a table."""
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


QUOTA_REQUEST = Request("GET", "/api/quota", is_enveloped=False)


def read_quota(body: object) -> Quota:
    """The record bare, as the contract has it, or in an envelope, as some servers wrap everything."""
    inner = body.get("data") if isinstance(body, Mapping) and "daily_limit" not in body else None
    return parse_quota(inner if isinstance(inner, Mapping) else body)
