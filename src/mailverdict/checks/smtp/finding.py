"""What a reply amounts to, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ...model.words import Reason

__all__ = ["ABOUT_MAILBOX", "Action", "Finding"]


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
class Finding:
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
