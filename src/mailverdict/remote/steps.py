"""What a decision can ask for, and what it is told: the vocabulary between deciding and doing.

The generators of `quota` and `bulk` yield steps. A `Request` is answered with an `Answer`; a
`Pause` and an `Event` are answered with None.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ..backend import Event
from ..contract.envelope import Failure, Success
from ..errors import BackendError, QuotaExceeded, RateLimited, ServiceError

__all__ = ["Answer", "Lost", "Pause", "Request", "Step", "Steps", "error_of", "is_quota_refusal", "success_of"]

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
