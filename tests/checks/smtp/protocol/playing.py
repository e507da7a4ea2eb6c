"""A driver for sessions without sockets or clocks: commands go to a function, its replies come back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from mailverdict.checks.smtp.classify.classification import ConnectionFailure, FailureKind
from mailverdict.checks.smtp.protocol.commands import Recipient
from mailverdict.checks.smtp.protocol.session import (
    LimitObserved,
    Read,
    RecipientAnswers,
    Send,
    Session,
    SessionEnd,
    SessionPlan,
    StartTls,
    TimedReplies,
    WindowPlan,
    WindowRequest,
)
from mailverdict.checks.smtp.replies import Reply
from mailverdict.model.evidence import Classification
from tests.checks.smtp.parsing import parse_reply

Answer = Callable[[str], str | ConnectionFailure | None]
"""Gives the reply to a command, a failure, or None for silence; lines of a reply are parted by a bar."""

SILENCE = ConnectionFailure(FailureKind.REPLY_TIMEOUT)
GONE = ConnectionFailure(FailureKind.DROPPED)
EHLO = "250-mx.example|250-PIPELINING|250 8BITMIME"
IN_STEP = "250-mx.example|250 8BITMIME"
UNKNOWN = "550 5.1.1 User unknown"


class OneAnswer(NamedTuple):
    """The answer about one recipient."""

    recipient: Recipient
    reply: Reply | None
    classification: Classification


def one_by_one(answers: RecipientAnswers) -> list[OneAnswer]:
    """The same answer for each of its recipients."""
    return [
        OneAnswer(recipient, answers.reply, answers.classification)
        for recipient in answers.recipients
    ]


@dataclass
class Played:
    """What came of a session."""

    ended: SessionEnd
    commands: list[str] = field(default_factory=list)
    flights: list[int] = field(default_factory=list)
    answers: list[OneAnswer] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)  # of answers: their recipients
    lessons: list[LimitObserved] = field(default_factory=list)

    @property
    def reasons(self) -> dict[str, str]:
        """Reason by address; ``ok`` where accepted."""
        return {a.recipient.address: str(a.classification.reason or "ok") for a in self.answers}

    @property
    def verbs(self) -> str:
        """First letters of the commands."""
        return " ".join(command.split()[0] for command in self.commands)


def to(*addresses: str) -> list[Recipient]:
    """Recipients; one that begins with an asterisk is a probe."""
    return [Recipient(a.removeprefix("*"), is_probe=a.startswith("*")) for a in addresses]


def play(
    recipients: Iterable[Recipient],
    answer: Answer,
    *,
    plan: SessionPlan | None = None,
    banner: str | ConnectionFailure | None = "220 mx.example ESMTP",
    handshake: ConnectionFailure | None = None,
    seconds: Callable[[str], float] | None = None,
    expects_refusals: bool = True,
) -> Played:
    """Run a session against `answer`; its windows are as large as they may be if it expects no refusals."""
    waiting = deque(recipients)
    plan = plan or SessionPlan("client.example")
    session = Session(plan)
    played = Played(SessionEnd())
    replies: deque[str | ConnectionFailure] = deque([banner] if banner is not None else [])
    steps = session.dialogue()
    value: TimedReplies | WindowPlan | ConnectionFailure | None = None
    while True:
        try:
            step = steps.send(value)
        except StopIteration as stop:
            played.ended = stop.value
            return played
        value = None
        match step:
            case Send(data):
                lines = data.decode().splitlines()
                played.commands += lines
                played.flights.append(len(lines))
                replies.extend(reply for line in lines if (reply := answer(line)) is not None)
            case Read(_, most):
                value = heard(replies, seconds, most)
            case StartTls():
                value = handshake
            case WindowRequest(size):
                count = size if expects_refusals else step.most
                drawn = [waiting.popleft() for _ in range(min(count, len(waiting)))]
                value = WindowPlan(drawn, plan.refusal_budget)
            case RecipientAnswers(recipients):
                played.answers += one_by_one(step)
                played.sizes.append(len(recipients))
            case LimitObserved():
                played.lessons.append(step)


def heard(
    replies: deque[str | ConnectionFailure],
    seconds: Callable[[str], float] | None = None,
    most: int = 1,
) -> TimedReplies | ConnectionFailure:
    """The next reply, with `seconds` alone, else with those that came with it; silence where there is none."""
    first = replies.popleft() if replies else SILENCE
    if isinstance(first, ConnectionFailure):
        return first
    if seconds is not None:
        return TimedReplies([read(first)], seconds(first))
    together = [read(first)]
    while replies and len(together) < most and isinstance(replies[0], str):
        together.append(read(str(replies.popleft())))
    return TimedReplies(together, 0.0)


@cache
def read(reply: str) -> Reply:
    """The value of a reply; the same one for the same text, as the parser's."""
    return parse_reply(reply.split("|"))


def server(
    known: Iterable[str] = (),
    *,
    ehlo: str = EHLO,
    special: dict[str, str | ConnectionFailure | None] | None = None,
) -> Answer:
    """A plain server; `special` gives other replies by the beginning of a command."""
    mailboxes = {f"RCPT TO:<{address}>" for address in known}
    usual = {"EHLO": ehlo, "HELO": "250 mx.example", "QUIT": "221 Bye", "STARTTLS": "220 Go"}

    def answer(line: str) -> str | ConnectionFailure | None:
        for beginning, reply in (special or {}).items():
            if line.startswith(beginning):
                return reply
        if line.startswith("RCPT"):
            return "250 2.1.5 Ok" if line in mailboxes else UNKNOWN
        return usual.get(line.split(maxsplit=1)[0], "250 2.0.0 Ok")

    return answer
