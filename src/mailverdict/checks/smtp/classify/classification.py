"""The classification of a reply or of a failed connection, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ....model.evidence import Action, Classification
from ....model.words import Reason

ABOUT_MAILBOX = frozenset({None, Reason.MAILBOX_NOT_FOUND, Reason.MAILBOX_FULL})
"""Reasons about the mailbox itself, which every exchange of the domain would give."""
OUT_OF_STEP = Classification(Reason.INCONCLUSIVE, "out_of_step")
"""The replies of a session may not belong to its commands."""


class FailureKind(StrEnum):
    """How a connection failed."""

    NOT_DIALLED = "not_dialled"  # no address, or none that may be contacted
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    CONNECT_TIMEOUT = "connect_timeout"
    BANNER_TIMEOUT = "banner_timeout"
    REPLY_TIMEOUT = "reply_timeout"
    SESSION_TIMEOUT = "session_timeout"
    NO_DATA = "no_data"  # closed before the first byte
    NOT_SMTP = "not_smtp"  # bytes, but no reply among them
    NO_REPLY = "no_reply"  # bytes that are not a reply, after replies
    DROPPED = "dropped"  # closed or reset after the greeting
    TLS = "tls"  # the handshake failed


@dataclass(frozen=True, slots=True)
class ConnectionFailure:
    """A failure of the connection."""

    kind: FailureKind
    detail: str = ""  # what was seen, as text


CLASSIFICATIONS = {
    FailureKind.NOT_DIALLED: Classification(Reason.PORT_CLOSED, "not_dialled"),
    FailureKind.REFUSED: Classification(Reason.PORT_CLOSED, "connection_refused"),
    FailureKind.UNREACHABLE: Classification(Reason.PORT_CLOSED, "unreachable"),
    FailureKind.CONNECT_TIMEOUT: Classification(Reason.TIMEOUT, "connect_timeout"),
    FailureKind.BANNER_TIMEOUT: Classification(Reason.TIMEOUT, "banner_timeout"),
    FailureKind.REPLY_TIMEOUT: Classification(Reason.TIMEOUT, "reply_timeout"),
    FailureKind.SESSION_TIMEOUT: Classification(Reason.TIMEOUT, "session_timeout"),
    FailureKind.NO_DATA: Classification(Reason.NO_SMTP_DATA, "no_data"),
    FailureKind.NOT_SMTP: Classification(Reason.NO_SMTP_DATA, "not_smtp"),
    FailureKind.NO_REPLY: Classification(Reason.INCONCLUSIVE, "no_reply"),
    FailureKind.DROPPED: Classification(Reason.CONNECTION_DROPPED, "dropped"),
    FailureKind.TLS: Classification(Reason.INCONCLUSIVE, "tls_failed", action=Action.WITHOUT_TLS),
}

assert set(CLASSIFICATIONS) == set(FailureKind)


def classify_failure(failure: ConnectionFailure) -> Classification:
    """Classify a failure.

    >>> classify_failure(ConnectionFailure(FailureKind.DROPPED)).reason.value
    'connection_dropped'
    """
    return CLASSIFICATIONS[failure.kind]
