"""The vocabulary: enumerations whose members are the strings of the contract, and the types of text arguments."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

__all__ = [
    "REASON_MEANING",
    "ColumnSet",
    "OnQuota",
    "Reason",
    "RefreshWord",
    "ScreenWord",
    "Status",
    "ValidationType",
    "ValidationTypeWord",
    "Verdict",
    "VerdictWord",
]

# Texts that users give as arguments; a test holds them equal to the enumerations below.
ValidationTypeWord = Literal["regex", "mx", "mx_blacklist", "smtp"]
VerdictWord = Literal["valid", "risky", "invalid", "unknown"]
RefreshWord = Literal["valid", "risky", "invalid", "unknown", "error"]  # verdicts, and the status of technical failures
OnQuota = Literal["stop", "raise", "wait"]  # what a run does when the daily quota is used up
ScreenWord = Literal["mx"]  # which domains are checked locally before a service is asked
ColumnSet = Literal["core", "all"]  # named sets of result columns


class ValidationType(StrEnum):
    """How deep a verification goes.

    Each type includes the checks of the types before it, except that `smtp` does not check blacklists.

    Examples
    --------
    >>> from mailverdict import ValidationType
    >>> [str(kind) for kind in ValidationType]
    ['regex', 'mx', 'mx_blacklist', 'smtp']
    """

    REGEX = "regex"
    MX = "mx"
    MX_BLACKLIST = "mx_blacklist"
    SMTP = "smtp"


class Verdict(StrEnum):
    """The outcome of verifying an address.

    Examples
    --------
    >>> from mailverdict import Verdict
    >>> [str(verdict) for verdict in Verdict]
    ['valid', 'risky', 'invalid', 'unknown']
    """

    VALID = "valid"
    RISKY = "risky"
    INVALID = "invalid"
    UNKNOWN = "unknown"


class Status(StrEnum):
    """Processing state of a row; a verdict exists only for `done`.

    Examples
    --------
    >>> from mailverdict import Status
    >>> [str(status) for status in Status]
    ['done', 'pending', 'error', 'missing']
    """

    DONE = "done"
    PENDING = "pending"
    ERROR = "error"
    MISSING = "missing"


class Reason(StrEnum):
    """Why a verdict is not `valid`; the order of the members is the order of precedence.

    Examples
    --------
    >>> from mailverdict import Reason
    >>> str(next(iter(Reason)))
    'syntax_error'
    """

    SYNTAX_ERROR = "syntax_error"
    NO_MX_RECORD = "no_mx_record"
    MAILBOX_NOT_FOUND = "mailbox_not_found"
    SPAMTRAP = "spamtrap"
    DISPOSABLE = "disposable"
    GREYLISTED = "greylisted"
    SENDER_BLOCKED = "sender_blocked"
    TIMEOUT = "timeout"
    CONNECTION_DROPPED = "connection_dropped"
    PORT_CLOSED = "port_closed"
    MAILBOX_FULL = "mailbox_full"
    NO_SMTP_DATA = "no_smtp_data"
    INCONCLUSIVE = "inconclusive"
    PROTECTED = "protected"
    THROTTLED = "throttled"
    RATE_LIMITED = "rate_limited"
    CATCH_ALL = "catch_all"
    ROLE = "role"


REASON_MEANING: dict[Reason, str] = {
    Reason.SYNTAX_ERROR: "the address is not well formed",
    Reason.NO_MX_RECORD: "the domain does not exist or accepts no mail",
    Reason.MAILBOX_NOT_FOUND: "the server says that there is no such mailbox",
    Reason.SPAMTRAP: "the domain is on the spamtrap list that was given",
    Reason.DISPOSABLE: "the domain belongs to a throw-away provider",
    Reason.GREYLISTED: "the server asked to come back later",
    Reason.SENDER_BLOCKED: "the server refuses our sender or HELO name, not the mailbox",
    Reason.TIMEOUT: "the server did not answer in time",
    Reason.CONNECTION_DROPPED: "the server ended the session before answering",
    Reason.PORT_CLOSED: "no mail server of the domain could be connected to",
    Reason.MAILBOX_FULL: "the mailbox exists but is over its quota",
    Reason.NO_SMTP_DATA: "something answered that does not speak SMTP",
    Reason.INCONCLUSIVE: "the server's answer says nothing about the mailbox",
    Reason.PROTECTED: "the server refuses this machine's address or reputation",
    Reason.THROTTLED: "the verification queue was full; ask again later",
    Reason.RATE_LIMITED: "the verification service's limiter refused; ask again later",
    Reason.CATCH_ALL: "the server accepts every address of the domain",
    Reason.ROLE: "the local part names a function, not a person",
}
