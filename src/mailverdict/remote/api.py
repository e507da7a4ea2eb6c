"""A verification service's API as values: requests, answers, errors and rows. No I/O.

ApiRequest("GET", "/api/verification-result/j1")
-> SuccessEnvelope(data)        -> `job_row`: a row with the verdict, or why it is not used
-> ErrorEnvelope(code, status)  -> `error_of`: QuotaExceeded, RateLimited or ServiceError
-> NoAnswer(error, was_sent)    the network failed; `was_sent` decides whether to pay again
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

import pyarrow as pa

from ..backend import Job, Quota
from ..contract.envelope import ErrorEnvelope, SuccessEnvelope, parse_quota
from ..errors import BackendError, QuotaExceeded, RateLimited, ServiceError
from ..model.evidence import Evidence, SyntaxEvidence
from ..model.json_fields import shorten
from ..model.table import SCHEMA, SOURCE_REMOTE, dump_json, row_of
from ..model.verification import Fault, Verification, dump_errors
from ..model.words import Status, ValidationType, Verdict
from ..verdicts import contradiction_in, settle

MAX_ADDRESS = 320  # characters: local part 64, "@", domain 255 (RFC 5321 section 4.5.3.1)
# "Invalid email format" is the contract's message for a malformed address.
MALFORMED = "invalid email"

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One HTTP request."""

    method: str
    path: str  # below the base URL
    body: Mapping[str, Any] | None = None  # sent as JSON
    is_repeatable: bool = True  # False if a second request could be paid for
    is_enveloped: bool = True  # whether a success has an envelope
    # Whether the request is repeated after 429; a paced submission is not.
    repeats_limited: bool = True
    # Idempotency-Key: two requests with the same one are counted once, if the service knows it.
    key: str | None = None


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """A request without a usable answer."""

    error: BackendError
    was_sent: bool  # False only if the request certainly did not reach the service
    is_permanent: bool = False  # whether the same request would fail in the same way


ApiAnswer = SuccessEnvelope | ErrorEnvelope | NoAnswer


def is_quota_refusal(failure: ErrorEnvelope) -> bool:
    """Whether the daily quota refused the request, and not a limit on the request rate."""
    if failure.code == "QUOTA_EXCEEDED":
        return True
    has_quota = failure.whole_number("remaining") is not None
    return has_quota and failure.status == HTTPStatus.TOO_MANY_REQUESTS


def error_of(answer: ErrorEnvelope | NoAnswer) -> BackendError:
    """The exception for an answer; its message already names URL and status."""
    if isinstance(answer, NoAnswer):
        return answer.error
    if is_quota_refusal(answer):
        return QuotaExceeded(
            answer.message,
            limit=answer.whole_number("limit"),
            remaining=answer.whole_number("remaining"),
            requested=answer.whole_number("requested"),
        )
    if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
        return RateLimited(answer.message, retry_after=answer.retry_after)
    return ServiceError(answer.message, code=answer.code, status=answer.status)


def success_of(answer: ApiAnswer) -> SuccessEnvelope:
    """The success; anything else is raised as its exception."""
    if isinstance(answer, SuccessEnvelope):
        return answer
    raise error_of(answer)


QUOTA_REQUEST = ApiRequest("GET", "/api/quota", is_enveloped=False)


def read_quota(body: object) -> Quota:
    """The quota record, bare as in the contract or in an envelope as some services send it."""
    if isinstance(body, Mapping) and "daily_limit" not in body:
        inner = body.get("data")
        if isinstance(inner, Mapping):
            return parse_quota(inner)
    return parse_quota(body)


@dataclass(frozen=True, slots=True)
class JobFailure:
    """A technical failure of one address: no verdict, and nothing is known about the mailbox."""

    code: str
    message: str


def job_row(outcome: Verification | JobFailure, job: Job) -> Row:
    if isinstance(outcome, JobFailure):
        return failure_row(outcome, job.email, job.validation_type)
    defect = find_defect(outcome, job.email, job.validation_type)
    if defect is not None:
        return failure_row(defect, job.email, job.validation_type)
    return row_of(asked_as(outcome, job.email), SOURCE_REMOTE)


# Codes of answers that are well-formed but cannot be used, and the field that shows it.
OTHER_ADDRESS = "OTHER_ADDRESS"  # the answer is about another address
OTHER_TYPE = "OTHER_TYPE"  # it is by a check that does not answer what was asked
CONTRADICTION = "CONTRADICTION"  # its verdict cannot follow from its own reasons
DEFECT_PATHS = {
    OTHER_ADDRESS: "data.email",
    OTHER_TYPE: "data.validation_type",
    CONTRADICTION: "data.result",
}


def find_defect(answer: Verification, email: str, validation_type: str) -> JobFailure | None:
    """Why an answer is not used as the verdict on `email`; it is quoted, since it was paid for."""
    if not is_about(answer.email, email):
        answered = shorten(answer.email, MAX_ADDRESS)
        message = f"the service answered about {answered}, not about {email}"
        return JobFailure(OTHER_ADDRESS, message)
    if not is_answer_to(validation_type, answer):
        return JobFailure(OTHER_TYPE, describe_other_type(validation_type, answer))
    contradiction = contradiction_in(answer)
    if contradiction:
        return JobFailure(CONTRADICTION, f"the service contradicts itself: {contradiction}")
    return None


DEPTH = {"regex": 0, "mx": 1, "smtp": 2}  # each includes those before it


def is_answer_to(asked: str, answer: Verification) -> bool:
    """Whether a verdict by the type that the service used holds for the type that was asked for.

    A deeper check includes the shallower ones, and what a shallower one establishes as invalid
    stays so. But that a domain receives mail does not show that a mailbox exists, or that its mail
    servers are on no blacklist.

    >>> is_answer_to("smtp", Verification("ada@firm.com", "mx", "valid"))
    False
    >>> is_answer_to("smtp", Verification("ada@firm.com", "mx", "invalid"))
    True
    """
    used = answer.validation_type
    if used == asked:
        return True
    if used in DEPTH and answer.result == Verdict.UNKNOWN:
        return True
    if used in DEPTH and asked in DEPTH and DEPTH[used] > DEPTH[asked]:
        return True
    return used in ("regex", "mx") and answer.result == Verdict.INVALID


def describe_other_type(asked: str, answer: Verification) -> str:
    """Why a verdict is not an answer; it is quoted, since it was paid for."""
    used = shorten(answer.validation_type)
    return (
        f"the service checked by {used!r}, not by {asked!r} as asked; "
        f"by {used!r} the address is {answer.result}"
    )


def is_about(answered: str, asked: str) -> bool:
    """Whether an answer may be about the address that was asked for.

    A service may return it in another form. Tags, signs and case of the local part do not count,
    nor does the form of an internationalized domain.

    >>> is_about("adal@gmail.com", "Ada.L+x@GoogleMail.com")
    True
    >>> is_about("bob@firm.com", "ada@firm.com")
    False
    """
    if answered == asked:
        return True
    local, domain = comparable_parts(answered)
    asked_local, asked_domain = comparable_parts(asked)
    if local != asked_local:
        return False
    both = domain + asked_domain
    is_plain = both.isascii() and "xn--" not in both
    return domain == asked_domain or not is_plain


def comparable_parts(email: str) -> tuple[str, str]:
    """Letters and digits of the local part without its tag, and the domain."""
    text = unicodedata.normalize("NFKC", email.strip()).casefold()
    local, _, domain = text.rpartition("@")
    untagged, _, _ = local.partition("+")
    letters = "".join(filter(str.isalnum, untagged))
    return letters, domain.rstrip(".").replace("googlemail.", "gmail.")


def asked_as(verification: Verification, email: str) -> Verification:
    """The verdict under the address that was submitted.

    A service may return the address in another form, which is kept as the normalized form.
    """
    if verification.email == email:
        return verification
    metadata = {"normalized": shorten(verification.email, MAX_ADDRESS), **verification.metadata}
    return replace(verification, email=email, metadata=metadata)


def failure_row(failure: JobFailure, email: str, validation_type: str) -> Row:
    """A row with status `error` and no verdict."""
    return {
        "email": email,
        "status": Status.ERROR,
        "validation_type": validation_type,
        "error": failure.code,
        "errors": dump_json(dump_errors([Fault(failure.code, failure.message)])),
        "source": SOURCE_REMOTE,
    }


def rejected_row(email: str, validation_type: str, message: str) -> Row:
    """The row of an address that the service did not queue: malformed by its rules, or rejected."""
    if MALFORMED not in message.lower():
        failure = JobFailure("REJECTED", message or "the service refused the address")
        return failure_row(failure, email, validation_type)
    malformed = Evidence(SyntaxEvidence(ok=False, message=message))
    decision = settle(ValidationType(validation_type), malformed)
    return row_of(decision.to_verification(email, validation_type), SOURCE_REMOTE)


def rows_table(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)
