"""What a transport did instead of replying, as a value, and what it amounts to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ...model.words import Reason
from .finding import Action, Finding

__all__ = ["Failure", "FailureKind", "explain_failure"]


class FailureKind(StrEnum):
    """How a connection failed."""

    NOT_DIALLED = "not_dialled"  # no address, or none that may be contacted
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    CONNECT_TIMEOUT = "connect_timeout"
    BANNER_TIMEOUT = "banner_timeout"
    REPLY_TIMEOUT = "reply_timeout"
    SESSION_TIMEOUT = "session_timeout"
    NO_DATA = "no_data"  # ended before a byte
    NOT_SMTP = "not_smtp"  # bytes, and none of them a reply
    NO_REPLY = "no_reply"  # bytes that are no reply after some that were
    DROPPED = "dropped"  # ended or reset after the greeting
    TLS = "tls"  # the handshake failed


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure of the transport.

    Attributes
    ----------
    kind : FailureKind
        How it failed.
    detail : str
        What was seen, in words.
    """

    kind: FailureKind
    detail: str = ""


FINDINGS = {
    FailureKind.NOT_DIALLED: Finding(Reason.PORT_CLOSED, "not_dialled"),
    FailureKind.REFUSED: Finding(Reason.PORT_CLOSED, "connection_refused"),
    FailureKind.UNREACHABLE: Finding(Reason.PORT_CLOSED, "unreachable"),
    FailureKind.CONNECT_TIMEOUT: Finding(Reason.TIMEOUT, "connect_timeout"),
    FailureKind.BANNER_TIMEOUT: Finding(Reason.TIMEOUT, "banner_timeout"),
    FailureKind.REPLY_TIMEOUT: Finding(Reason.TIMEOUT, "reply_timeout"),
    FailureKind.SESSION_TIMEOUT: Finding(Reason.TIMEOUT, "session_timeout"),
    FailureKind.NO_DATA: Finding(Reason.NO_SMTP_DATA, "no_data"),
    FailureKind.NOT_SMTP: Finding(Reason.NO_SMTP_DATA, "not_smtp"),
    FailureKind.NO_REPLY: Finding(Reason.INCONCLUSIVE, "no_reply"),
    FailureKind.DROPPED: Finding(Reason.CONNECTION_DROPPED, "dropped"),
    FailureKind.TLS: Finding(Reason.INCONCLUSIVE, "tls_failed", action=Action.WITHOUT_TLS),
}

assert set(FINDINGS) == set(FailureKind)


def explain_failure(failure: Failure) -> Finding:
    """Say what a failure amounts to.

    Parameters
    ----------
    failure : Failure
        Of the transport.

    Returns
    -------
    Finding
        With a reason.

    Examples
    --------
    >>> explain_failure(Failure(FailureKind.DROPPED)).reason.value
    'connection_dropped'
    """
    return FINDINGS[failure.kind]
