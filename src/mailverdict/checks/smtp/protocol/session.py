"""The SMTP dialogue as a generator: it yields what to do next and is sent the result.

No I/O, no clock.

A driver runs `Session.dialogue()` and answers each step:

==================  ==================================================================
step                what the driver does
==================  ==================================================================
`Send`              writes the bytes and sends None
`Read`              sends the next replies as `TimedReplies`, or a `ConnectionFailure` if none comes
`StartTls`          upgrades the connection and sends None, or a `ConnectionFailure`
`WindowRequest`     sends a `WindowPlan` with the recipients to ask next
`RecipientAnswers`  passes it on (recipients are done) and sends None
`LimitObserved`     passes it on (the server showed a limit) and sends None
==================  ==================================================================

In order: greeting, EHLO, STARTTLS where offered, then window after window, QUIT. The generator
returns a `SessionEnd`. Recipients are requested only when they can be asked, so that several
sessions can share one queue; those that were not answered are returned in `SessionEnd.unasked`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ....model.evidence import Action, Classification
from ....model.words import Reason
from ..classify.classification import OUT_OF_STEP, ConnectionFailure, FailureKind, classify_failure
from ..classify.classifier import classify_reply
from ..replies import CLOSED, CLOSING, Reply
from . import commands as command
from .commands import (
    OpenTransaction,
    Recipient,
    WindowCommand,
    is_misplaced,
    plan_window,
    transaction_after,
)


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """Names and limits of one session."""

    helo_name: str
    mail_from: str = ""  # empty: the null reverse-path
    # "offered": whenever offered; "demanded": only when the server demands it; "never"
    starttls: str = "offered"
    pipelining: bool = True  # where the server offers it
    one_domain: bool = False  # one domain per transaction
    rcpt_per_transaction: int = 50
    rcpt_per_session: int = 500
    refusal_budget: int = 9  # refused recipients after which the session ends
    # Seconds by which a reply to RCPT must exceed the one to EHLO to count as delayed.
    slow_by: float = 0.5


# --- what the session asks the driver to do -------------------------------------------------------


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


# --- what the driver sends back -------------------------------------------------------------------


class TimedReplies(NamedTuple):
    """Replies that came together, and the seconds since the first of them could be expected."""

    replies: Sequence[Reply]  # at least one
    seconds: float


class WindowPlan(NamedTuple):
    """The recipients to ask next; no recipients: the session is over."""

    recipients: Sequence[Recipient]
    refusal_budget: int  # refused recipients after which the session ends
    is_last: bool = False  # no window follows: QUIT can be sent together with this one


# --- how it ends ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """How a session ended."""

    # None: nothing left to ask, or its limits were reached.
    classification: Classification | None = None
    # "connect", or that of the reply which was expected; empty without a classification.
    phase: str = ""
    detail: str = ""  # the reply or failure that ended it, on one line
    # The one whose RCPT was being answered; it is among `unasked`.
    recipient: Recipient | None = None
    unasked: tuple[Recipient, ...] = ()  # given to the session and not answered, in order
    # Last phase that succeeded: "" (no connection), "connect", "banner", "ehlo" or "mail"
    reached: str = ""
    asked: int = 0  # recipients whose RCPT got a reply
    refused: int = 0  # and refused among them
    is_secure: bool = False  # TLS was used
    # There were more replies than commands, so the answers may be of other recipients.
    is_out_of_step: bool = False
    host: str = ""  # the IP address of the server


Step = Send | Read | StartTls | WindowRequest | RecipientAnswers | LimitObserved
StepResult = TimedReplies | WindowPlan | ConnectionFailure | None
Dialogue = Generator[Step, StepResult, None]


# --- the dialogue ---------------------------------------------------------------------------------

# Delays before this many refusals are not caused by them: some servers call out for each recipient.
UNDELAYED = 2
UNLIMITED = 1 << 31
READ = {phase: Read(phase) for phase in ("banner", "ehlo", "mail", "rcpt", "quit")}

MALFORMED = Classification(Reason.SYNTAX_ERROR, "not_sendable", error_code="REGEX")
NO_SMTPUTF8 = Classification(
    Reason.INCONCLUSIVE, "smtputf8_not_offered", error_code="SMTPUTF8_REQUIRED"
)
MISPLACED = Classification(Reason.INCONCLUSIVE, "misplaced_reply", action=Action.IN_STEP)
UNASSIGNED = "no_reply"  # rule: octets that are not a reply, or that came before their command
SILENCE = frozenset({"reply_timeout", "session_timeout", UNASSIGNED})  # rules
# Failures after which the connection is open, so that QUIT can be sent.
STILL_OPEN = frozenset(
    {
        FailureKind.BANNER_TIMEOUT,
        FailureKind.REPLY_TIMEOUT,
        FailureKind.SESSION_TIMEOUT,
        FailureKind.NOT_SMTP,
        FailureKind.NO_REPLY,
    }
)

ReplyTo = Generator[Step, StepResult, Reply]


class SessionAborted(Exception):
    """The session cannot continue; never leaves the generator."""

    def __init__(
        self,
        classification: Classification,
        phase: str,
        detail: str,
        recipient: Recipient | None = None,
        *,
        sends_quit: bool = True,
        awaits_quit: bool = False,  # the server replies to QUIT
        is_cut: bool = False,  # the server ended the session
    ) -> None:
        super().__init__(detail)
        self.classification = classification
        self.phase = phase
        self.detail = detail
        self.recipient = recipient
        self.sends_quit = sends_quit
        self.awaits_quit = awaits_quit
        self.is_cut = is_cut


def aborted_by_reply(reply: Reply, phase: str) -> SessionAborted:
    """The server refuses to continue."""
    classification = classify_reply(reply, phase=phase)
    if classification.reason is None:  # as 250 for a greeting
        classification = OUT_OF_STEP
    return SessionAborted(classification, phase, str(reply), awaits_quit=True)


def aborted_by_failure(
    failure: ConnectionFailure, phase: str, recipient: Recipient | None = None
) -> SessionAborted:
    """The connection failed."""
    return SessionAborted(
        classify_failure(failure),
        phase,
        failure.detail or failure.kind.value,
        recipient,
        sends_quit=failure.kind in STILL_OPEN,
        is_cut=failure.kind is FailureKind.DROPPED,
    )


def aborted_out_of_order(lost: SessionAborted | None) -> SessionAborted:
    """The replies of a window may not belong to its commands: none of them counts."""
    if lost is None:
        return SessionAborted(
            MISPLACED, "rcpt", "a reply names another recipient than the one that was asked"
        )
    classification = Classification(
        lost.classification.reason, lost.classification.rule, action=Action.IN_STEP
    )
    return SessionAborted(classification, lost.phase, lost.detail, sends_quit=lost.sends_quit)


class Session:
    """One session with one mail server.

    >>> next(Session(SessionPlan("client.example")).dialogue())
    Read(phase='banner', most=1)
    """

    def __init__(self, plan: SessionPlan) -> None:
        self.plan = plan
        self.extensions: dict[str, str] = {}
        self.open: dict[Recipient, None] = {}  # given and not answered, in order
        self.needs_utf8: set[Recipient] = set()
        self.reached = "connect"
        self.asked = self.refused = 0
        self.refusal_budget = plan.refusal_budget
        self.first_delay: int | None = None  # refusals before the first delayed reply
        self.slowed_after = UNLIMITED
        self.rcpt_per_session = plan.rcpt_per_session
        self.rcpt_per_transaction = plan.rcpt_per_transaction
        self.one_domain = plan.one_domain
        self.usual_seconds = 0.0  # for a reply that is not delayed on purpose
        self.is_secure = False
        self.has_transaction = False
        self.transaction: OpenTransaction | None = None
        # Recipients with an answer, also a refusal, but not with "too many recipients":
        self.answered_in_session = self.answered_in_transaction = 0
        self.wants_tls = False
        self.is_last_window = False
        self.has_quit = False
        self.is_out_of_step = False
        self.stop: SessionAborted | None = None  # ends the session after the window

    # --- the whole ---------------------------------------------------------------------------

    def dialogue(self) -> Generator[Step, StepResult, SessionEnd]:
        """Run the session; the module docstring lists what each step asks of the driver."""
        try:
            yield from self.greet()
            if self.plan.starttls == "offered" and self.can_secure():
                yield from self.upgrade()
            yield from self.ask()
        except SessionAborted as aborted:
            yield from self.quit_after(aborted)
            return self.ended(aborted)
        if not self.has_quit:
            yield Send(command.QUIT)
        yield from self.read_quit()
        return self.ended()

    def ended(self, aborted: SessionAborted | None = None) -> SessionEnd:
        """Summarise the session."""
        end = SessionEnd(
            unasked=tuple(self.open),
            reached=self.reached,
            asked=self.asked,
            refused=self.refused,
            is_secure=self.is_secure,
            is_out_of_step=self.is_out_of_step,
        )
        if aborted is None:
            return end
        return replace(
            end,
            is_out_of_step=self.is_out_of_step or aborted.classification.rule == UNASSIGNED,
            classification=aborted.classification,
            phase=aborted.phase,
            detail=aborted.detail,
            recipient=aborted.recipient,
        )

    def quit_after(self, aborted: SessionAborted) -> Dialogue:
        """Send QUIT where the connection may be open, and wait where the server replies to it."""
        if aborted.is_cut and self.refused:
            yield LimitObserved(cut_after=self.refused)
        if aborted.sends_quit and not self.has_quit:
            yield Send(command.QUIT)
        if aborted.awaits_quit:
            yield from self.read_quit()

    def read_quit(self) -> Dialogue:
        """Wait for the reply to QUIT.

        One of another kind, or one that came before, is that to an earlier command.
        """
        timed = yield READ["quit"]
        if isinstance(timed, ConnectionFailure):
            self.is_out_of_step = timed.kind is FailureKind.NO_REPLY
        elif isinstance(timed, TimedReplies):
            self.is_out_of_step = timed.replies[0].code not in (CLOSED, CLOSING)

    def read(self, phase: str, recipient: Recipient | None = None) -> ReplyTo:
        """Wait for a reply; a failure or 421 ends the session."""
        timed = yield READ[phase]
        if isinstance(timed, ConnectionFailure):
            raise aborted_by_failure(timed, phase, recipient)
        assert isinstance(timed, TimedReplies)
        reply = timed.replies[0]
        if (limit := self.count_reply(reply, timed.seconds, phase, recipient)) is not None:
            yield limit
        return reply

    def count_reply(
        self, reply: Reply, seconds: float, phase: str, recipient: Recipient | None
    ) -> LimitObserved | None:
        """Count a refusal and notice a delay; 421 ends the session."""
        if reply.code == CLOSING:
            raise SessionAborted(
                classify_reply(reply, phase=phase), phase, str(reply), recipient, is_cut=True
            )
        limit = None
        if phase == "ehlo" or phase == "rcpt":
            if self.is_delayed(phase, seconds):
                limit = LimitObserved(slowed_after=self.slowed_after)
            if phase == "rcpt" and not reply.is_positive:
                self.refused += 1
        return limit

    def is_delayed(self, phase: str, seconds: float) -> bool:
        """Check the latency: whether the server now delays replies because of refusals.

        True at most once.

        It takes two delayed replies: one alone may be a pause of this process.
        """
        if phase == "ehlo" or self.refused < UNDELAYED:
            self.usual_seconds = max(self.usual_seconds, seconds)
        elif self.slowed_after == UNLIMITED and seconds > self.usual_seconds + self.plan.slow_by:
            if self.first_delay is not None:
                self.slowed_after = self.first_delay
                return True
            self.first_delay = self.refused
        return False

    def budget(self) -> int:
        """Refused recipients after which the session ends."""
        return min(self.refusal_budget, self.slowed_after)

    # --- until recipients can be asked -------------------------------------------------------

    def greet(self) -> Dialogue:
        """Wait for the greeting, then send EHLO."""
        banner = yield from self.read("banner")
        if banner.code != 220:
            raise aborted_by_reply(banner, "banner")
        self.reached = "banner"
        yield from self.hello()

    def hello(self) -> Dialogue:
        """EHLO, or HELO where that is refused (RFC 5321 section 3.2)."""
        yield Send(command.ehlo(self.plan.helo_name))
        reply = yield from self.read("ehlo")
        if reply.code == 250:  # nothing else: a second 220 would shift every later reply by one
            self.extensions = command.parse_extensions(reply)
        elif reply.code >= 500:
            self.extensions = {}
            yield from self.old_hello(reply)
        else:
            raise aborted_by_reply(reply, "ehlo")
        self.reached = "ehlo"
        limits = command.parse_limits(self.extensions.get("LIMITS", ""))  # RFC 9422
        self.rcpt_per_transaction = min(
            self.rcpt_per_transaction, limits.get("RCPTMAX", self.rcpt_per_transaction)
        )
        self.one_domain = self.one_domain or limits.get("RCPTDOMAINMAX") == 1

    def old_hello(self, refused: Reply) -> Dialogue:
        """HELO; if that fails as well, the reply to EHLO is what ends the session."""
        yield Send(command.helo(self.plan.helo_name))
        try:
            reply = yield from self.read("ehlo")
        except SessionAborted as aborted:
            classification = classify_reply(refused, phase="ehlo")
            raise SessionAborted(
                classification, "ehlo", str(refused), sends_quit=aborted.sends_quit
            ) from aborted
        if reply.code != 250:
            raise aborted_by_reply(refused, "ehlo")

    def can_secure(self) -> bool:
        """Whether STARTTLS can be tried."""
        return (
            not self.is_secure and self.plan.starttls != "never" and "STARTTLS" in self.extensions
        )

    def upgrade(self) -> Dialogue:
        """STARTTLS and EHLO once more (RFC 3207).

        If the server declines, the session continues without TLS.
        """
        if self.has_transaction:
            yield Send(command.RSET)
            yield from self.read("mail")
            self.has_transaction = False
        yield Send(command.STARTTLS)
        reply = yield from self.read("ehlo")
        if reply.code != 220:
            del self.extensions["STARTTLS"]
            return
        failure = yield StartTls()
        if isinstance(failure, ConnectionFailure):
            raise aborted_by_failure(failure, "ehlo")
        self.is_secure = True
        yield from self.hello()

    # --- asking ------------------------------------------------------------------------------

    def ask(self) -> Dialogue:
        """Ask window after window until no recipients are left.

        The session's size or budget may end it before.
        """
        while recipients := (yield from self.next_window()):
            commands = plan_window(
                recipients,
                mail_from=self.plan.mail_from,
                per_transaction=self.rcpt_per_transaction,
                one_domain=self.one_domain,
                utf8=self.needs_utf8,
                begins_with_rset=self.has_transaction,
                transaction=self.transaction if self.has_transaction else None,
            )
            yield from self.pipeline(commands) if self.can_pipeline else self.in_step(commands)
            self.transaction = transaction_after(commands, self.transaction)
            if self.stop:
                raise self.stop
            if self.has_quit:
                return
            if self.wants_tls:
                self.wants_tls = False
                yield from self.upgrade()

    @property
    def can_pipeline(self) -> bool:
        """Whether many recipients can be asked at once (RFC 2920)."""
        return self.plan.pipelining and "PIPELINING" in self.extensions

    def next_window(self) -> Generator[Step, StepResult, list[Recipient]]:
        """The recipients of the next window, left-over ones first.

        Even if all are refused, less than two budgets are used.
        """
        self.is_last_window = False
        budget = self.budget()
        room = self.rcpt_per_session - self.asked
        size = max(0, min(budget - self.refused, room))
        most = min(2 * budget - 1 - self.refused, room) if size else 0
        while (given := len(self.open)) < size:
            window = yield WindowRequest(
                size - given, self.asked, self.refused, self.can_pipeline, most - given
            )
            assert isinstance(window, WindowPlan)
            self.refusal_budget = window.refusal_budget
            if not window.recipients:
                break
            self.is_last_window = window.is_last
            for recipient in window.recipients:
                if classification := self.classify_unsendable(recipient):
                    yield RecipientAnswers([recipient], None, classification)
                else:
                    self.open[recipient] = None
        return list(self.open)[:most]

    def classify_unsendable(self, recipient: Recipient) -> Classification | None:
        """Why this recipient cannot be asked in this session; None if it can."""
        if not command.is_sendable(recipient.address):
            return MALFORMED
        if recipient.address.isascii() or "SMTPUTF8" in self.extensions:
            return None
        return NO_SMTPUTF8

    def in_step(self, commands: list[WindowCommand]) -> Dialogue:
        """Command by command; each answer is passed on at once."""
        for each in commands:
            yield Send(each.data)
            reply = yield from self.read(each.phase, each.recipient)
            yield from self.answer([each], [reply])
            if self.stop or self.wants_tls:
                return

    def pipeline(self, commands: list[WindowCommand]) -> Dialogue:
        """All commands at once (RFC 2920).

        Replies count only if each one belongs to its command.
        """
        self.has_quit = self.is_last_window
        yield Send(
            b"".join([each.data for each in commands]) + (command.QUIT if self.has_quit else b"")
        )
        replies: list[Reply] = []
        lost: SessionAborted | None = None
        try:
            while len(replies) < len(commands):
                yield from self.read_window(commands, replies)
        except SessionAborted as aborted:
            lost = aborted
        # Where replies stop, one may be missing in the middle.
        if (lost and lost.classification.rule in SILENCE) or is_misplaced(commands, replies):
            yield LimitObserved(loses_replies=True)
            raise aborted_out_of_order(lost)
        yield from self.answer(commands, replies)
        if lost:
            raise lost

    def read_window(self, commands: Sequence[WindowCommand], replies: list[Reply]) -> Dialogue:
        """Wait for more of the replies to a window, and append them."""
        each = commands[len(replies)]
        timed = yield Read(each.phase, len(commands) - len(replies))
        if isinstance(timed, ConnectionFailure):
            raise aborted_by_failure(timed, each.phase, each.recipient)
        assert isinstance(timed, TimedReplies)
        seconds = timed.seconds
        for reply in timed.replies:
            each = commands[len(replies)]
            if (limit := self.count_reply(reply, seconds, each.phase, each.recipient)) is not None:
                yield limit
            replies.append(reply)
            seconds = 0.0  # the others came with the first

    def answer(self, commands: Sequence[WindowCommand], replies: Sequence[Reply]) -> Dialogue:
        """Take in the replies to commands; the same reply to recipients in a row is one answer."""
        answers: RecipientAnswers | None = None
        for each, reply in zip(commands, replies, strict=False):
            if answers is not None and (each.recipient is None or reply is not answers.reply):
                yield answers
                answers = None
            found = self.on_reply(each, reply)
            if isinstance(found, Classification):
                assert each.recipient is not None
                answers = answers or RecipientAnswers([], reply, found)
                answers.recipients.append(each.recipient)
            elif found is not None:
                if answers is not None:
                    yield answers
                    answers = None
                yield found
        if answers is not None:
            yield answers

    def on_reply(self, sent: WindowCommand, reply: Reply) -> Classification | LimitObserved | None:
        """Take in the reply to one command of a window.

        Returns its classification if it answers a recipient.
        """
        if sent.recipient is not None:
            return self.on_rcpt_reply(sent, sent.recipient, reply)
        if sent.verb == "MAIL":
            self.on_mail_reply(reply)
        elif not reply.is_positive:
            raise aborted_by_reply(reply, "mail")
        return None

    def on_mail_reply(self, reply: Reply) -> None:
        """A transaction begins; if MAIL is refused the session ends, unless TLS can help."""
        self.has_transaction = reply.is_positive
        self.answered_in_transaction = 0
        if reply.is_positive:
            self.reached = "mail"
            return
        aborted = aborted_by_reply(reply, "mail")
        if aborted.classification.action is not Action.USE_TLS or not self.can_secure():
            raise aborted
        self.wants_tls = True

    def on_rcpt_reply(
        self, sent: WindowCommand, recipient: Recipient, reply: Reply
    ) -> Classification | LimitObserved | None:
        """Return what the reply means, or a limit, or None.

        Without a classification the recipient is asked again.
        """
        if not self.has_transaction:
            return None  # its MAIL was refused: this reply is about that
        self.asked += 1
        classification = classify_reply(
            reply, phase="rcpt", recipient=recipient.address, sender=self.plan.mail_from
        )
        if classification.action is not Action.NONE:
            limit, is_asked_again = self.ask_again(sent, recipient, reply, classification)
            if is_asked_again:
                return limit
        self.answered_in_transaction += 1
        self.answered_in_session += 1
        del self.open[recipient]
        return classification

    def ask_again(
        self,
        sent: WindowCommand,
        recipient: Recipient,
        reply: Reply,
        classification: Classification,
    ) -> tuple[LimitObserved | None, bool]:
        """Ask the same recipient again, here or in another session.

        Returns the limit that was observed.
        """
        match classification.action:
            case Action.FEWER_RECIPIENTS:
                limit = self.fewer_recipients(sent)
                return limit, limit is not None
            case Action.ONE_DOMAIN if sent.domains > 1:
                self.one_domain = True
                return LimitObserved(one_domain=True), True
            case Action.USE_TLS:
                self.wants_tls = self.wants_tls or self.can_secure()
                return None, self.wants_tls
            case Action.USE_SMTPUTF8:
                helps = "SMTPUTF8" in self.extensions and recipient not in self.needs_utf8
                self.needs_utf8.add(recipient)
                return None, helps
            # Capacity: the session ends; the caller decides when another begins.
            case Action.BACK_OFF:
                self.stop = self.stop or SessionAborted(
                    classification, "rcpt", str(reply), recipient, awaits_quit=True
                )
                return None, True
        return None, False

    def fewer_recipients(self, sent: WindowCommand) -> LimitObserved | None:
        """Too many recipients: in this transaction, or in this session.

        It is the session if this transaction has accepted none.
        """
        if self.answered_in_transaction or (sent.companions > 1 and not self.answered_in_session):
            self.rcpt_per_transaction = max(1, self.answered_in_transaction)
            return LimitObserved(rcpt_per_transaction=self.rcpt_per_transaction)
        if self.answered_in_session:
            self.rcpt_per_session = min(self.rcpt_per_session, self.answered_in_session)
            return LimitObserved(rcpt_per_session=self.rcpt_per_session)
        return None
