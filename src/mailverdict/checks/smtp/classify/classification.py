"""What a reply amounts to, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ....model.words import Reason

__all__ = ["ABOUT_MAILBOX", "Action", "Classification", "Failure", "FailureKind", "classify_failure"]


class Action(StrEnum):
    """What the asking side can do so that a recipient gets another answer."""

    NONE = "none"
    USE_TLS = "use_tls"  # STARTTLS, then the same again
    USE_SMTPUTF8 = "use_smtputf8"  # MAIL with the SMTPUTF8 parameter (RFC 6531)
    BACK_OFF = "back_off"  # capacity: fewer sessions, later
    FEWER_RECIPIENTS = "fewer_recipients"  # the same recipient in another transaction
    ONE_DOMAIN = "one_domain"  # the same recipient in a transaction of its own domain
    WITHOUT_TLS = "without_tls"  # a new session that leaves STARTTLS alone
    IN_STEP = "in_step"  # a new session that does not pipeline


@dataclass(frozen=True, slots=True)
class Classification:
    """What a reply, or the lack of one, amounts to.

    Attributes
    ----------
    reason : Reason or None
        None: the recipient was accepted.
    rule : str
        The rule that decided.
    error_code : str
        For the payload's `errors`; ``SMTP`` unless the rule knows better.
    action : Action
        What would give another answer.
    retry_after : float or None
        Seconds the server asked to wait, or that are known to help; None where neither is.
    """

    reason: Reason | None
    rule: str
    error_code: str = "SMTP"
    action: Action = Action.NONE
    retry_after: float | None = None


ABOUT_MAILBOX = frozenset({None, Reason.MAILBOX_NOT_FOUND, Reason.MAILBOX_FULL})
"""Reasons that only the mailbox itself can cause: another exchange would say the same."""


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


def classify_failure(failure: Failure) -> Classification:
    """Say what a failure amounts to.

    Parameters
    ----------
    failure : Failure
        Of the transport.

    Returns
    -------
    Classification
        With a reason.

    Examples
    --------
    >>> classify_failure(Failure(FailureKind.DROPPED)).reason.value
    'connection_dropped'
    """
    return CLASSIFICATIONS[failure.kind]
