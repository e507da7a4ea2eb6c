"""What a session and its driver say to each other."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..classify.classification import Classification, Failure
from ..replies import Reply

__all__ = [
    "Dialogue",
    "LimitObserved",
    "Read",
    "Recipient",
    "RecipientAnswer",
    "Send",
    "SessionEnd",
    "SessionPlan",
    "StartTls",
    "Step",
    "Supply",
    "TimedReply",
]


class Recipient(NamedTuple):
    """Whom to ask about.

    Attributes
    ----------
    address : str
        As it goes into RCPT, the domain in A-labels.
    is_probe : bool
        A random local part: it gets a transaction of its own.
    """

    address: str
    is_probe: bool = False

    @property
    def domain(self) -> str:
        """Everything after the last at sign, in lower case."""
        return self.address.rpartition("@")[2].lower()


Supply = Callable[[int], Sequence[Recipient]]
"""Gives at most so many recipients to ask next, each at most once; nothing when there is no more."""


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """How to hold one session.

    Attributes
    ----------
    helo_name : str
        Our name in EHLO.
    mail_from : str
        Sender; empty is the null reverse-path.
    starttls : str
        ``offered`` (whenever offered), ``demanded`` (only then) or ``never``.
    pipelining : bool
        Whether to pipeline where the server offers it.
    one_domain : bool
        Whether a transaction holds recipients of one domain only.
    rcpt_per_transaction, rcpt_per_session : int
        Most recipients in each.
    refusal_budget : int
        Refused recipients after which the session ends.
    slow_by : float
        Seconds that a reply to RCPT must take longer than the one to EHLO to count as a punishment.
    """

    helo_name: str
    mail_from: str = ""
    starttls: str = "offered"
    pipelining: bool = True
    one_domain: bool = False
    rcpt_per_transaction: int = 50
    rcpt_per_session: int = 500
    refusal_budget: int = 9
    slow_by: float = 0.5


class Send(NamedTuple):
    """Write these bytes."""

    data: bytes


class Read(NamedTuple):
    """Wait for one reply; `phase` is what it answers: ``banner``, ``ehlo``, ``mail``, ``rcpt`` or ``quit``."""

    phase: str


class StartTls(NamedTuple):
    """Upgrade the connection now."""


class TimedReply(NamedTuple):
    """One reply, and the seconds it took since it could first be expected."""

    reply: Reply
    seconds: float


class RecipientAnswer(NamedTuple):
    """A recipient is done; `reply` is None where it could not be asked."""

    recipient: Recipient
    reply: Reply | None
    classification: Classification


@dataclass(frozen=True, slots=True)
class LimitObserved:
    """A limit that the exchange showed; None and False where it did not.

    Attributes
    ----------
    rcpt_per_transaction, rcpt_per_session : int or None
        It takes no more than these.
    one_domain : bool
        It takes one domain a transaction.
    loses_replies : bool
        It offers pipelining and cannot do it.
    slowed_after, cut_after : int or None
        Refused recipients after which it took its time, or ended the session.
    """

    rcpt_per_transaction: int | None = None
    rcpt_per_session: int | None = None
    one_domain: bool = False
    loses_replies: bool = False
    slowed_after: int | None = None
    cut_after: int | None = None


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """How a session ended.

    Attributes
    ----------
    classification : Classification or None
        What ended it; None: nothing left to ask, or its limits were reached.
    phase : str
        What was being waited for: ``connect``, ``banner``, ``ehlo``, ``mail`` or ``rcpt``; empty if nothing ended it.
    detail : str
        The reply or failure that ended it, in one line.
    recipient : Recipient or None
        Whose RCPT was being answered; it is among the unasked.
    unasked : tuple of Recipient
        Drawn from the supply and not answered, in order.
    reached : str
        Furthest phase that went well: empty (no connection), ``connect``, ``banner``, ``ehlo`` or ``mail``.
    asked, refused : int
        Recipients whose RCPT got a reply, and those refused among them.
    is_secure : bool
        Whether TLS was used.
    host : str
        The IP address that was connected to.
    """

    classification: Classification | None = None
    phase: str = ""
    detail: str = ""
    recipient: Recipient | None = None
    unasked: tuple[Recipient, ...] = ()
    reached: str = ""
    asked: int = 0
    refused: int = 0
    is_secure: bool = False
    host: str = ""


Step = Send | Read | StartTls | RecipientAnswer | LimitObserved
Sent = TimedReply | Failure | None
Dialogue = Generator[Step, Sent, None]
