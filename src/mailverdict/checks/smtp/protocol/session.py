"""Ways for a session to be over before everybody was asked."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

from ....model.words import Reason
from ..classify.classification import Action, Classification, Failure, FailureKind, classify_failure
from ..classify.classifier import classify_reply
from ..replies import Reply
from . import commands as command
from .commands import parse_extensions, parse_limits
from .steps import (
    Dialogue,
    LimitObserved,
    Read,
    Recipient,
    RecipientAnswer,
    Send,
    Sent,
    SessionEnd,
    SessionPlan,
    StartTls,
    Step,
    Supply,
    TimedReply,
)
from .windows import OpenTransaction, WindowCommand, is_misplaced, plan_window, transaction_after

__all__ = ["Session", "SessionAborted", "is_silence", "lost_connection", "mistrust", "refusal", "shut"]

OUT_OF_STEP = Classification(Reason.INCONCLUSIVE, "out_of_step")
MISPLACED = Classification(Reason.INCONCLUSIVE, "misplaced_reply", action=Action.IN_STEP)
SILENCE = frozenset({"reply_timeout", "session_timeout", "no_reply"})
STILL_OPEN = frozenset(
    {
        FailureKind.BANNER_TIMEOUT,
        FailureKind.REPLY_TIMEOUT,
        FailureKind.SESSION_TIMEOUT,
        FailureKind.NOT_SMTP,
        FailureKind.NO_REPLY,
    }
)


class SessionAborted(Exception):
    """The session cannot go on; never leaves the generator.

    Attributes
    ----------
    classification, phase, detail, recipient
        As in `SessionEnd`.
    says_quit, waits : bool
        Whether QUIT makes sense, and waiting for the reply to it.
    is_cut : bool
        Whether the server ended the session.
    """

    def __init__(
        self, classification: Classification, phase: str, detail: str, *, says_quit: bool, waits: bool = False
    ) -> None:
        super().__init__(detail)
        self.classification = classification
        self.phase = phase
        self.detail = detail
        self.says_quit = says_quit
        self.waits = waits
        self.is_cut = False
        self.recipient: Recipient | None = None


def refusal(reply: Reply, phase: str) -> SessionAborted:
    """The end by a reply that is no way to go on."""
    classification = classify_reply(reply, phase=phase)
    if classification.reason is None:  # as 250 for a greeting
        classification = OUT_OF_STEP
    return SessionAborted(classification, phase, str(reply), says_quit=True, waits=True)


def is_silence(over: SessionAborted) -> bool:
    """Whether replies stopped coming, so that one may be missing in the middle."""
    return over.classification.rule in SILENCE


def lost_connection(failure: Failure, phase: str, recipient: Recipient | None) -> SessionAborted:
    """The end by a failure of the transport."""
    detail = failure.detail or failure.kind.value
    over = SessionAborted(classify_failure(failure), phase, detail, says_quit=failure.kind in STILL_OPEN)
    over.is_cut, over.recipient = failure.kind is FailureKind.DROPPED, recipient
    return over


def shut(reply: Reply, phase: str, recipient: Recipient | None) -> SessionAborted:
    """The end by 421: the server is closing the connection."""
    over = SessionAborted(classify_reply(reply, phase=phase), phase, str(reply), says_quit=True)
    over.is_cut, over.recipient = True, recipient
    return over


def mistrust(lost: SessionAborted | None) -> SessionAborted:
    """The end of a window whose replies may not be in order: nothing of it counts."""
    if lost is None:
        detail = "a reply names another recipient than the one that was asked"
        return SessionAborted(
            Classification(Reason.INCONCLUSIVE, "misplaced_reply", action=Action.IN_STEP),
            "rcpt",
            detail,
            says_quit=True,
        )
    classification = Classification(lost.classification.reason, lost.classification.rule, action=Action.IN_STEP)
    return SessionAborted(classification, lost.phase, lost.detail, says_quit=lost.says_quit)


SHUT = 421
UNPUNISHED = 2  # refusals before which a slow RCPT reply is the server's own pace, as with callouts
MALFORMED = Classification(Reason.SYNTAX_ERROR, "not_sendable", error_code="REGEX")
NO_SMTPUTF8 = Classification(Reason.INCONCLUSIVE, "smtputf8_not_offered", error_code="SMTPUTF8_REQUIRED")

ReplyTo = Generator[Step, Sent, Reply]


class Session:
    """One session with one exchange.

    Parameters
    ----------
    plan : SessionPlan
        Names and limits.
    supply : Supply
        Where recipients come from.

    Examples
    --------
    >>> session = Session(SessionPlan("client.example"), lambda limit: [])
    >>> next(session.dialogue())
    Read(phase='banner')
    """

    def __init__(self, plan: SessionPlan, supply: Supply) -> None:
        self.plan = plan
        self.supply = supply
        self.extensions: dict[str, str] = {}
        self.open: dict[Recipient, None] = {}  # drawn and not answered, in order
        self.needs_utf8: set[Recipient] = set()
        self.reached = "connect"
        self.asked = self.refused = 0
        self.budget = plan.refusal_budget
        self.per_session = plan.rcpt_per_session
        self.per_transaction = plan.rcpt_per_transaction
        self.one_domain = plan.one_domain
        self.pace = 0.0  # seconds of a reply that the server has no grudge about
        self.is_secure = False
        self.has_transaction = False
        self.transaction: OpenTransaction | None = None
        self.taken = self.taken_here = 0  # recipients that were not too many: of the session, of its last transaction
        self.wants_tls = False
        self.is_last_window = False  # set by whoever supplies: QUIT then goes along with the next window
        self.has_quit = False
        self.stop: SessionAborted | None = None

    # --- the whole ---------------------------------------------------------------------------

    def dialogue(self) -> Generator[Step, Sent, SessionEnd]:
        """Hold the session; the module says what each step asks of the driver."""
        try:
            yield from self.greet()
            yield from self.secure()
            yield from self.ask()
        except SessionAborted as over:
            yield from self.leave(over)
            return self.ended(over)
        if not self.has_quit:
            yield Send(command.QUIT)
        yield Read("quit")
        return self.ended()

    def ended(self, over: SessionAborted | None = None) -> SessionEnd:
        """Sum up, at the end or when the driver must stop early."""
        so_far = SessionEnd(
            None, "", "", None, tuple(self.open), self.reached, self.asked, self.refused, self.is_secure
        )
        if over is None:
            return so_far
        return replace(
            so_far, classification=over.classification, phase=over.phase, detail=over.detail, recipient=over.recipient
        )

    def leave(self, over: SessionAborted) -> Dialogue:
        """Say QUIT where someone may still be listening, and wait where someone surely is."""
        if over.is_cut and self.refused:
            yield LimitObserved(cut_after=self.refused)
        if over.says_quit and not self.has_quit:
            yield Send(command.QUIT)
        if over.waits:
            yield Read("quit")

    def read(self, phase: str, recipient: Recipient | None = None) -> ReplyTo:
        """Wait for a reply; a failure or 421 ends the session."""
        heard = yield Read(phase)
        assert heard is not None
        if isinstance(heard, Failure):
            raise lost_connection(heard, phase, recipient)
        if heard.reply.code == SHUT:
            raise shut(heard.reply, phase, recipient)
        yield from self.check_latency(phase, heard)
        return heard.reply

    def check_latency(self, phase: str, heard: TimedReply) -> Dialogue:
        """Notice a server that punishes refusals by taking its time, and take the hint."""
        if phase == "ehlo" or (phase == "rcpt" and self.refused < UNPUNISHED):
            self.pace = max(self.pace, heard.seconds)
        elif phase == "rcpt" and self.refused < self.budget and heard.seconds > self.pace + self.plan.slow_by:
            self.budget = self.refused
            yield LimitObserved(slowed_after=self.refused)
        self.refused += phase == "rcpt" and not heard.reply.is_positive

    # --- until recipients can be asked -------------------------------------------------------

    def greet(self) -> Dialogue:
        """Wait for the greeting, then say who we are."""
        banner = yield from self.read("banner")
        if banner.code != 220:
            raise refusal(banner, "banner")
        self.reached = "banner"
        yield from self.hello()

    def hello(self) -> Dialogue:
        """EHLO, or HELO where that is refused (RFC 5321 section 3.2)."""
        yield Send(command.ehlo(self.plan.helo_name))
        reply = yield from self.read("ehlo")
        if reply.code == 250:  # nothing else: a second 220 would shift every later reply by one
            self.extensions = parse_extensions(reply)
        elif reply.code >= 500:
            yield from self.old_hello(reply)
        else:
            raise refusal(reply, "ehlo")
        self.reached = "ehlo"
        self.keep_to_limits()

    def old_hello(self, refused: Reply) -> Dialogue:
        """HELO; if that fails as well, what the server said to EHLO is the answer."""
        self.extensions = {}
        yield Send(command.helo(self.plan.helo_name))
        try:
            reply = yield from self.read("ehlo")
        except SessionAborted as over:
            classification = classify_reply(refused, phase="ehlo")
            raise SessionAborted(classification, "ehlo", str(refused), says_quit=over.says_quit) from over
        if reply.code != 250:
            raise refusal(refused, "ehlo")

    def keep_to_limits(self) -> None:
        """Adopt what the server announces (RFC 9422)."""
        limits = parse_limits(self.extensions.get("LIMITS", ""))
        self.per_transaction = min(self.per_transaction, limits.get("RCPTMAX", self.per_transaction))
        self.one_domain = self.one_domain or limits.get("RCPTDOMAINMAX") == 1

    def secure(self) -> Dialogue:
        """Use TLS where it is offered, unless the plan says otherwise."""
        if self.plan.starttls == "offered" and self.can_secure():
            yield from self.upgrade()

    def can_secure(self) -> bool:
        """Whether STARTTLS may be tried."""
        return not self.is_secure and self.plan.starttls != "never" and "STARTTLS" in self.extensions

    def upgrade(self) -> Dialogue:
        """STARTTLS and EHLO once more (RFC 3207); a server that declines is asked in the clear."""
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
        if isinstance(failure, Failure):
            raise SessionAborted(
                classify_failure(failure), "ehlo", failure.detail or failure.kind.value, says_quit=False
            )
        self.is_secure = True
        yield from self.hello()

    # --- asking ------------------------------------------------------------------------------

    def ask(self) -> Dialogue:
        """Ask window after window until the supply, the session's size or its budget is used up."""
        while batch := (yield from self.draw()):
            entries = plan_window(
                batch,
                mail_from=self.plan.mail_from,
                per_transaction=self.per_transaction,
                one_domain=self.one_domain,
                utf8=self.needs_utf8,
                begins_with_rset=self.has_transaction,
                transaction=self.transaction if self.has_transaction else None,
            )
            yield from self.pipeline(entries) if self.can_pipeline else self.in_step(entries)
            self.transaction = transaction_after(entries, self.transaction)
            if self.stop:
                raise self.stop
            if self.has_quit:
                return
            if self.wants_tls:
                self.wants_tls = False
                yield from self.upgrade()

    @property
    def can_pipeline(self) -> bool:
        """Whether many recipients may be asked at once (RFC 2920)."""
        return self.plan.pipelining and "PIPELINING" in self.extensions

    def draw(self) -> Generator[Step, Sent, list[Recipient]]:
        """Take recipients for the next window, left-over ones first: all of them may be refused."""
        room = max(0, min(self.budget - self.refused, self.per_session - self.asked))
        while len(self.open) < room and (drawn := self.supply(room - len(self.open))):
            for recipient in drawn:
                if classification := self.objection(recipient):
                    yield RecipientAnswer(recipient, None, classification)
                else:
                    self.open[recipient] = None
        return list(self.open)[:room]

    def objection(self, recipient: Recipient) -> Classification | None:
        """Why this recipient cannot be asked in this session at all."""
        if not command.is_sendable(recipient.address):
            return MALFORMED
        if recipient.address.isascii() or "SMTPUTF8" in self.extensions:
            return None
        return NO_SMTPUTF8

    def in_step(self, entries: list[WindowCommand]) -> Dialogue:
        """Command by command; each answer is handed on at once."""
        for entry in entries:
            yield Send(entry.data)
            reply = yield from self.read(entry.phase, entry.recipient)
            yield from self.take(entry, reply)
            if self.stop or self.wants_tls:
                return

    def pipeline(self, entries: list[WindowCommand]) -> Dialogue:
        """All commands at once (RFC 2920); answers count only when each reply surely belongs to its command."""
        self.has_quit = self.is_last_window
        farewell = command.QUIT if self.has_quit else b""
        yield Send(b"".join([entry.data for entry in entries]) + farewell)
        replies: list[Reply] = []
        lost: SessionAborted | None = None
        try:
            for entry in entries:
                reply = yield from self.read(entry.phase, entry.recipient)
                replies.append(reply)
        except SessionAborted as over:
            lost = over
        if is_misplaced(entries, replies) or (lost and is_silence(lost)):
            yield LimitObserved(loses_replies=True)
            raise mistrust(lost)
        for entry, reply in zip(entries, replies, strict=False):
            yield from self.take(entry, reply)
        if lost:
            raise lost

    def take(self, entry: WindowCommand, reply: Reply) -> Dialogue:
        """Make of a reply what its command asked for."""
        if entry.recipient is not None:
            yield from self.take_rcpt(entry, entry.recipient, reply)
        elif entry.verb == "MAIL":
            self.take_mail(reply)
        elif not reply.is_positive:
            raise refusal(reply, "mail")

    def take_mail(self, reply: Reply) -> None:
        """A transaction begins; where it does not, nothing can be asked, except after an upgrade to TLS."""
        self.has_transaction = reply.is_positive
        self.taken_here = 0
        if reply.is_positive:
            self.reached = "mail"
            return
        over = refusal(reply, "mail")
        if over.classification.action is not Action.USE_TLS or not self.can_secure():
            raise over
        self.wants_tls = True

    def take_rcpt(self, entry: WindowCommand, recipient: Recipient, reply: Reply) -> Dialogue:
        """An answer, unless the same recipient can get a better one in this session."""
        if not self.has_transaction:
            return  # its MAIL was refused: this reply is about that
        self.asked += 1
        classification = classify_reply(reply, phase="rcpt")
        handle = AGAIN.get(classification.action)
        again = handle(self, entry, reply, classification) if handle else False
        if isinstance(again, LimitObserved):
            yield again
        if again:
            return
        self.taken_here += 1
        self.taken += 1
        del self.open[recipient]
        yield RecipientAnswer(recipient, reply, classification)

    # --- whether the same recipient is asked again, and what was learned --------------------------

    def again_with_fewer(
        self, entry: WindowCommand, reply: Reply, classification: Classification
    ) -> LimitObserved | bool:
        """Too many recipients: of this transaction, or, where it has taken none and others have, of this session."""
        if self.taken_here or (entry.companions > 1 and not self.taken):
            self.per_transaction = max(1, self.taken_here)
            return LimitObserved(rcpt_per_transaction=self.per_transaction)
        if self.taken:
            self.per_session = min(self.per_session, self.taken)
            return LimitObserved(rcpt_per_session=self.per_session)
        return False

    def again_by_domain(
        self, entry: WindowCommand, reply: Reply, classification: Classification
    ) -> LimitObserved | bool:
        """In a transaction of its own domain."""
        if entry.domains == 1:
            return False
        self.one_domain = True
        return LimitObserved(one_domain=True)

    def again_with_tls(self, entry: WindowCommand, reply: Reply, classification: Classification) -> bool:
        """After STARTTLS."""
        self.wants_tls = self.wants_tls or self.can_secure()
        return self.wants_tls

    def again_with_utf8(self, entry: WindowCommand, reply: Reply, classification: Classification) -> bool:
        """In a transaction with SMTPUTF8."""
        assert entry.recipient is not None
        can = "SMTPUTF8" in self.extensions and entry.recipient not in self.needs_utf8
        self.needs_utf8.add(entry.recipient)
        return can

    def again_later(self, entry: WindowCommand, reply: Reply, classification: Classification) -> bool:
        """Capacity: the session ends, and whoever planned it decides when there is another."""
        self.stop = self.stop or SessionAborted(classification, "rcpt", str(reply), says_quit=True, waits=True)
        self.stop.recipient = self.stop.recipient or entry.recipient
        return True


AGAIN = {
    Action.FEWER_RECIPIENTS: Session.again_with_fewer,
    Action.ONE_DOMAIN: Session.again_by_domain,
    Action.USE_TLS: Session.again_with_tls,
    Action.USE_SMTPUTF8: Session.again_with_utf8,
    Action.BACK_OFF: Session.again_later,
}
