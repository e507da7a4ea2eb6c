"""The values that a session and its driver exchange."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ....model.evidence import Classification
from ..classify.classification import ConnectionFailure
from ..replies import Reply


class Recipient(NamedTuple):
    """An address to ask about."""

    address: str  # as it goes into RCPT, the domain in A-labels
    is_probe: bool = False  # a random local part: it gets a transaction of its own


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """Names and limits of one session."""

    helo_name: str
    mail_from: str = ""  # empty: the null reverse-path
    starttls: str = "offered"  # "offered": whenever offered; "demanded": only when the server demands it; "never"
    pipelining: bool = True  # where the server offers it
    one_domain: bool = False  # one domain per transaction
    rcpt_per_transaction: int = 50
    rcpt_per_session: int = 500
    refusal_budget: int = 9  # refused recipients after which the session ends
    slow_by: float = (
        0.5  # seconds by which a reply to RCPT must exceed the one to EHLO to count as delayed
    )


# --- what the session asks the driver to do --------------------------------------------------------


class Send(NamedTuple):
    """Write these bytes."""

    data: bytes


class Read(NamedTuple):
    """Wait for a reply; others that came with it are sent back, too."""

    phase: str  # what it answers: "banner", "ehlo", "mail", "rcpt" or "quit"
    most: int = 1  # replies to send back


class StartTls(NamedTuple):
    """Upgrade the connection."""


class WindowRequest(NamedTuple):
    """Give the recipients to ask next."""

    size: int  # so many may all be refused within the budget
    asked: int  # recipients asked in this session so far
    refused: int  # and refused among them
    can_pipeline: bool
    most: int = 0  # where few refusals are expected, more than `size`, but at most so many


class RecipientAnswers(NamedTuple):
    """Pass on the same answer about one or more recipients of a transaction."""

    recipients: list[Recipient]
    reply: Reply | None  # None: these recipients cannot be asked in this session
    classification: Classification


@dataclass(frozen=True, slots=True)
class LimitObserved:
    """Pass on a limit that the server showed; None and False where it did not."""

    rcpt_per_transaction: int | None = None
    rcpt_per_session: int | None = None
    one_domain: bool = False  # it accepts one domain per transaction
    loses_replies: bool = False  # it offers PIPELINING and drops replies
    slowed_after: int | None = None  # refused recipients after which its replies were delayed
    cut_after: int | None = None  # refused recipients after which it ended the session


# --- what the driver sends back ----------------------------------------------------------------------


class TimedReplies(NamedTuple):
    """Replies that came together, and the seconds since the first of them could be expected."""

    replies: Sequence[Reply]  # at least one
    seconds: float


class WindowPlan(NamedTuple):
    """The recipients to ask next; no recipients: the session is over."""

    recipients: Sequence[Recipient]
    refusal_budget: int  # refused recipients after which the session ends
    is_last: bool = False  # no window follows: QUIT can be sent together with this one


# --- how it ends -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """How a session ended."""

    classification: Classification | None = (
        None  # None: nothing left to ask, or its limits were reached
    )
    phase: str = (
        ""  # "connect", or that of the reply which was expected; empty without a classification
    )
    detail: str = ""  # the reply or failure that ended it, on one line
    recipient: Recipient | None = (
        None  # the one whose RCPT was being answered; it is among `unasked`
    )
    unasked: tuple[Recipient, ...] = ()  # given to the session and not answered, in order
    reached: str = (
        ""  # last phase that succeeded: "" (no connection), "connect", "banner", "ehlo" or "mail"
    )
    asked: int = 0  # recipients whose RCPT got a reply
    refused: int = 0  # and refused among them
    is_secure: bool = False  # TLS was used
    is_out_of_step: bool = (
        False  # there were more replies than commands, so the answers may be of other recipients
    )
    host: str = ""  # the IP address of the server


Step = Send | Read | StartTls | WindowRequest | RecipientAnswers | LimitObserved
StepResult = TimedReplies | WindowPlan | ConnectionFailure | None
Dialogue = Generator[Step, StepResult, None]
