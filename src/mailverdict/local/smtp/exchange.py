"""`SmtpExchange`: one mail server.

What waits for it, its sessions, its limits, and whether it is believed.

A run queues the addresses of a domain as a `Block` of positions. A session draws its windows from
the queue, a few questions of each client in turn: an address becomes an `Asked`, the random address
of a domain is a `Probe`.

    Block(positions 4, 7, 9) -> Asked(ada@x.example) -> RCPT TO:<ada@x.example>

        250 2.1.5 Ok           -> the run is told at once (`SmtpRun.on_answer`)
        550 5.1.1 User unknown -> a `Missing`, told at the end of the session (`SmtpRun.on_missing`)
        421, connection lost   -> queued again, or the run is told (`SmtpRun.on_broken_session`)

Why a missing mailbox waits: where the last three answers or more are all "missing", the server may
refuse everybody by now, as after too many unknown recipients. The session then asks one *witness*
last: the last address that the server accepted, else `postmaster`, which every domain must accept
(RFC 5321 section 4.5.1). Unless that is accepted, none of these refusals counts.

The exchange opens nothing itself; the clock and the jitter are parameters. It knows of a run what
`SmtpRun` names.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from ...checks.operators import Operator
from ...checks.smtp.classify.classification import (
    OUT_OF_STEP,
    ConnectionFailure,
    FailureKind,
    classify_failure,
)
from ...checks.smtp.protocol.commands import Recipient, domain_of
from ...checks.smtp.protocol.session import (
    LimitObserved,
    RecipientAnswers,
    SessionEnd,
    SessionPlan,
    WindowPlan,
    WindowRequest,
)
from ...checks.smtp.replies import Reply
from ...checks.smtp.transport.driver import SessionTimeouts
from ...model.evidence import Action, Classification, MailboxEvidence
from ...model.settings import LocalSettings
from ...model.words import Reason
from ..batch import Positions

CLIENT_REFUSED = frozenset({Reason.PROTECTED, Reason.SENDER_BLOCKED})
# Replies of a server that does not refuse everybody.
DEFERRED = frozenset({Reason.GREYLISTED, Reason.MAILBOX_FULL})
# Why a refusal as missing shows nothing about the mailbox.
REFUSES_ACCEPTED = Classification(Reason.INCONCLUSIVE, "refuses_accepted_address")
NOT_CONFIRMED = Classification(Reason.INCONCLUSIVE, "refusal_not_confirmed")
NONE_ACCEPTED = Classification(Reason.INCONCLUSIVE, "no_address_accepted")
# Missing mailboxes in a row: some servers refuse everybody after so many unknown recipients.
DOUBTED_AFTER = 3
# Missing mailboxes in a row at a mail server that accepted no address, not even postmaster.
SUSPICIOUS = 10
# Sessions in a row that failed without an answer: the next one would fail too.
MAX_FAILED_SESSIONS = 2
DROPS = 2  # sessions that broke on one address before this counts as its answer
DEAD_ADDRESSES = 3  # IP addresses of one exchange that may fail before the next exchange is tried
WORTH_ANOTHER = 3  # budgets of addresses; a further session is opened only if more wait
LONGEST_QUIT = 5.0  # seconds for the reply to QUIT, which changes nothing
SHORTEST_SESSION = 1.0  # seconds, however little is left of a deadline
# Standard deviations by which the refusals of a window may exceed the expected number within the
# budget; a reply beyond the budget may be delayed by a second.
SURE = 3.5

Client = Hashable  # for whom an address is asked: a client of a service, else the run itself


class SmtpRun(Protocol):
    """What an exchange knows of a run that asks it, and tells it; see `Recipients`."""

    is_closed: bool
    unsettled: int  # addresses

    def first_question(self, block: Block, position: int) -> Asked:
        """An address of a block as it is asked for the first time."""
        ...

    def is_probed(self, asked: Asked, exchange: SmtpExchange) -> bool:
        """Whether it is known if the domain is catch-all, or its probe is queued already."""
        ...

    def on_answer(
        self,
        asked: Asked,
        exchange: SmtpExchange,
        classification: Classification,
        reply: Reply | None,
    ) -> None:
        """Take an answer that says something else than that the mailbox is missing."""
        ...

    def on_missing(
        self, missing: Missing, exchange: SmtpExchange, doubt: Classification | None
    ) -> None:
        """Settle a mailbox that was refused as missing; with a doubt it is unknown."""
        ...

    def on_held(self, change: int) -> None:
        """Count missing mailboxes that the exchange holds, or does not hold any more."""
        ...

    def on_broken_session(self, asked: Asked, exchange: SmtpExchange, end: SessionEnd) -> None:
        """Take the end of a session as the answer about an address."""
        ...

    def on_probe_answer(
        self, probe: Probe, classification: Classification, reply: Reply | None
    ) -> None:
        """Take the answer about the random address of a domain."""
        ...

    def give_up_probe(self, probe: Probe) -> None:
        """Do without an answer about the random address of a domain."""
        ...

    def on_closed(self, waiting: Block | Question, exchange: SmtpExchange) -> None:
        """Take back what waited for an exchange that is closed."""
        ...

    def wake(self, error: BaseException | None = None) -> None:
        """Look at what has changed, or raise the error of a task."""
        ...


# --- what waits ------------------------------------------------------------------------------


class Route(NamedTuple):
    """The exchanges of a domain by preference.

    Equal ones in a random order, to spread the load (RFC 5321, 5.1).
    """

    exchanges: tuple[SmtpExchange, ...]
    # Exchanges to try for one address; those without an address to contact do not count.
    most_attempts: int

    def after(self, asked: SmtpExchange | None) -> SmtpExchange | None:
        """The first exchange after one that was asked, or of all, that is not closed.

        None if none is left.
        """
        start = 0
        if asked is not None:
            start = self.exchanges.index(asked) + 1
        tried = 0
        for index, exchange in enumerate(self.exchanges):
            if tried >= self.most_attempts:
                return None
            if index >= start and exchange.closed is None:
                return exchange
            if not exchange.has_no_address:
                tried += 1
        return None


class Block(NamedTuple):
    """Addresses of one domain that were not asked yet."""

    run: SmtpRun
    client: Client
    route: Route
    code: int  # of the domain
    positions: Positions
    # Clock reading since which they wait for an answer, if an exchange gave none.
    began: float | None = None


@dataclass(slots=True, eq=False)
class Asked:
    """An address from its first question on."""

    run: SmtpRun
    client: Client
    route: Route
    code: int  # of its domain
    position: int
    recipient: Recipient
    began: float | None = None  # clock reading when it was first asked
    drops: int = 0  # sessions that broke on it, or left its refusal in doubt
    last: MailboxEvidence | None = None  # from the exchange before this one
    was_greylisted: bool = False

    def is_late(self, now: float, deadline: float) -> bool:
        """Whether its deadline is over."""
        return self.began is not None and now - self.began >= deadline


@dataclass(slots=True, eq=False)
class Probe:
    """The random address of a domain, asked once and only when it matters.

    What it showed, and what waits for that.
    """

    run: SmtpRun
    client: Client  # of the first address that needs it
    exchange: SmtpExchange
    recipient: Recipient
    pending: list[tuple[Asked, MailboxEvidence, Reply | None]] = field(default_factory=list)
    is_known: bool = False
    catch_all: bool | None = None
    refusal: Reply | None = None  # the reply that refused it
    is_requested: bool = False
    losses: int = 0  # sessions that broke on it
    was_greylisted: bool = False


Question = Asked | Probe


class Missing(NamedTuple):
    """An address that was refused as missing, until it is known whether that counts."""

    asked: Asked
    classification: Classification
    reply: Reply | None


@dataclass(slots=True)
class ClientQueue:
    """What waits for one client."""

    # Probes, and addresses that were drawn before.
    first: deque[Question] = field(default_factory=deque)
    blocks: deque[Block] = field(default_factory=deque)
    size: int = 0

    def draw(self, count: int) -> list[Question]:
        """Remove and return up to `count` questions."""
        drawn: list[Question] = []
        while self.first and len(drawn) < count:
            drawn.append(self.first.popleft())
        while self.blocks and len(drawn) < count:
            block = self.blocks.popleft()
            room = count - len(drawn)
            for position in block.positions[:room].tolist():
                drawn.append(block.run.first_question(block, position))
            if len(block.positions) > room:
                self.blocks.appendleft(block._replace(positions=block.positions[room:]))
        self.size -= len(drawn)
        return drawn


class TurnQueue:
    """What waits at one exchange."""

    def __init__(self) -> None:
        # None is empty; the next turn first.
        self.by_client: OrderedDict[Client, ClientQueue] = OrderedDict()
        self.size = 0

    def of(self, client: Client, more: int) -> ClientQueue:
        """The queue of a client, which gets so many questions more."""
        queue = self.by_client.setdefault(client, ClientQueue())
        queue.size += more
        self.size += more
        return queue

    def add(self, item: Block | Question) -> None:
        """Queue a block, or an address of another exchange.

        A probe comes before all addresses of its client.
        """
        if isinstance(item, Block):
            self.of(item.client, len(item.positions)).blocks.append(item)
        elif isinstance(item, Probe):
            self.of(item.client, 1).first.appendleft(item)
        else:
            self.of(item.client, 1).first.append(item)

    def put_back(self, questions: Iterable[Question]) -> None:
        """Queue what was drawn before, in its order, but not for runs that have ended."""
        for question in reversed(list(questions)):
            if not question.run.is_closed:
                self.of(question.client, 1).first.appendleft(question)

    def draw(self, count: int) -> list[Question]:
        """Remove and return up to `count` questions, one of each client in turn."""
        drawn: list[Question] = []
        while self.by_client and len(drawn) < count:
            client, queue = self.by_client.popitem(last=False)
            turn = 1
            if not self.by_client:  # there is no other client
                turn = count - len(drawn)
            drawn += queue.draw(turn)
            if queue.size:
                self.by_client[client] = queue
        self.size -= len(drawn)
        return drawn

    def drain(self) -> Iterator[Block | Question]:
        """Remove and return everything."""
        queues = list(self.by_client.values())
        self.by_client = OrderedDict()
        self.size = 0
        for queue in queues:
            yield from queue.first
            yield from queue.blocks

    def remove(self, run: SmtpRun) -> None:
        """Remove what waits for a run."""
        for item in list(self.drain()):
            if item.run is not run:
                self.add(item)


# --- the exchange ----------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class OpenSession:
    """One session under way."""

    exchange: SmtpExchange
    address: str  # IP address
    client: Client  # for whom it was opened
    began: float  # clock reading
    task: Any = None
    asked: dict[Recipient, list[Question]] = field(default_factory=dict)  # not answered yet
    missing: list[Missing] = field(default_factory=list)
    # Of these, how many were refused before the server last accepted or deferred an address.
    proved: int = 0
    accepted: str = ""  # the last address that was accepted
    # Whether it accepted or deferred an address: then it does not refuse everybody.
    has_choice: bool = False
    witness: Recipient | None = None
    # The witness was accepted before, and is not postmaster for want of such an address.
    is_known_witness: bool = False
    refused_witness: Classification | None = None
    has_asked: bool = False
    has_answer: bool = False

    def unanswered(self) -> list[Question]:
        """What was asked in it and has no answer yet."""
        return [question for questions in self.asked.values() for question in questions]

    def unsettled(self) -> list[Question]:
        """What was asked in it and is not settled: missing mailboxes are when it is over."""
        missing = [refusal.asked for refusal in self.missing]
        return [*missing, *self.unanswered()]

    def is_needed(self) -> bool:
        """Whether a run that has not ended has asked in it, or waits for its exchange."""
        if self.exchange.size > 0:
            return True
        return any(not question.run.is_closed for question in self.unsettled())


class SmtpExchange(TurnQueue):
    """One mail server, of all runs of a backend on one event loop."""

    def __init__(
        self,
        name: str,
        settings: LocalSettings,
        plan: SessionPlan,
        operator: Operator | None = None,
        *,
        clock: Callable[[], float],
    ) -> None:
        super().__init__()
        self.name = name
        self.settings = settings
        self.first_plan = plan
        self.operator = operator
        self.clock = clock
        self.sessions: set[OpenSession] = set()
        self.runs: set[SmtpRun] = set()  # under way that use it
        self.is_resolving = False
        self.not_before = 0.0  # clock reading before which no session is opened
        # Missing mailboxes of a server that has accepted no address, not even postmaster. They
        # count once it accepts or defers one.
        self.held: list[Missing] = []
        self.begin()

    def begin(self) -> None:
        """Begin to observe it, with the configured limits and what is known of the operator."""
        self.began = self.clock()
        self.plan = self.first_plan  # of the next session; adapted to the limits that were observed
        # Of sessions at once; halved by capacity replies.
        self.limit = self.settings.max_sessions_per_exchange
        self.capacity_replies = 0  # since the last answer
        self.refusals = 0  # of this client, since the last other answer
        self.answers = 0  # to RCPT
        self.refused = 0  # refusals among them
        self.accepted = ""  # the last address that it accepted, not a random one
        self.missing_in_a_row = 0  # mailboxes since it last accepted or deferred one
        self.closed: SessionEnd | None = None  # why it is not asked any more
        self.is_inferred = False  # that applies to addresses that were not asked, too
        self.forget_failures()
        if self.operator is not None:
            known = LimitObserved(
                rcpt_per_transaction=self.operator.rcpt_per_transaction,
                one_domain=self.operator.one_domain,
            )
            self.observe_limit(known)

    def forget_failures(self) -> None:
        """Before the next run: the addresses may have changed, and may be reachable again.

        Refusals are kept.
        """
        # IP addresses that may be contacted; None: not looked up yet.
        self.addresses: tuple[str, ...] | None = None
        self.dead_addresses: set[str] = set()
        self.has_no_address = False  # closed because there was no address to contact
        self.failed_sessions = 0  # in a row, without an answer
        self.silent_for = 0.0  # seconds of sessions since the last answer
        # Whether the last session that has ended, or has got an answer, got one.
        self.is_answering = False
        if self.closed is None or self.closed.classification is None:
            return
        why = self.closed.classification
        if why.action is not Action.BACK_OFF and why.reason not in CLIENT_REFUSED:
            self.closed = None

    def open_addresses(self) -> list[str]:
        """IP addresses that have not failed."""
        if self.addresses is None:
            return []
        return [address for address in self.addresses if address not in self.dead_addresses]

    def close(self, end: SessionEnd, *, inferred: bool = False) -> None:
        """Stop asking this exchange because of what ended a session; the first reason stays."""
        if self.closed is None:
            self.closed = end
            self.is_inferred = inferred

    def close_without_address(
        self, detail: str, classification: Classification | None = None
    ) -> None:
        """Close because the exchange has no address that may be contacted."""
        self.has_no_address = True
        if classification is None:
            classification = classify_failure(ConnectionFailure(FailureKind.NOT_DIALLED))
        self.close(SessionEnd(classification, "connect", detail))

    # --- what a session is allowed -----------------------------------------------------------

    def wants_session(self) -> bool:
        """Whether another session pays: the first for anything, a further one for many more."""
        if self.closed or not self.addresses or len(self.sessions) >= self.limit:
            return False
        if self.not_before > self.clock():
            return False
        if not self.sessions:
            return self.size > 0
        starting = sum(not session.has_answer for session in self.sessions)
        if starting and not self.is_answering:  # nothing is known of it, or the last session failed
            return False
        return self.size > WORTH_ANOTHER * self.settings.refusal_budget * (1 + starting)

    def session_plan(self) -> SessionPlan:
        """The plan of the next session.

        Beyond the budget of `next_window` only a witness is asked.
        """
        return replace(self.plan, refusal_budget=2 * self.plan.refusal_budget)

    def timeouts(self) -> SessionTimeouts:
        """How long a session may take: what is left for the address that has waited longest."""
        settings = self.settings
        now = self.clock()
        longest = self.silent_for
        for queue in self.by_client.values():
            head = queue.first[0] if queue.first else None
            if isinstance(head, Asked) and head.began is not None:
                longest = max(longest, now - head.began)
        session = min(settings.session_deadline, settings.deadline - longest)
        return SessionTimeouts(
            connect=settings.connect_timeout,
            command=settings.command_timeout,
            session=max(SHORTEST_SESSION, session),
            quit=min(LONGEST_QUIT, settings.command_timeout),
        )

    def next_window(self, session: OpenSession, request: WindowRequest) -> WindowPlan:
        """What a session asks next: questions of its queue, the clients in turn.

        At the end a witness if it needs one.

        No recipients: it ends.
        """
        budget = self.plan.refusal_budget
        most_refusals = 2 * budget  # of the session
        most = max(1, request.size - 1)  # one is left for the witness
        size = max(0, min(budget - request.refused, most))
        count = self.window_size(request, size, most)
        if self.closed or session.asked:  # what was drawn is asked first
            return WindowPlan((), most_refusals)
        window: list[Recipient] = []
        if not self.is_too_small(session, request, size, count):
            window = self.draw_window(session, count)
        session.has_asked = True
        if not window and self.needs_witness(session):
            witness = self.choose_witness(session)
            return WindowPlan([witness], most_refusals, is_last=True)
        left = size - len(window) * request.refused / max(1, request.asked)
        is_too_small = self.is_too_small(session, request, left, count)
        is_last = self.is_last(session, request, ends=is_too_small)
        return WindowPlan(window, most_refusals, is_last)

    def draw_window(self, session: OpenSession, count: int) -> list[Recipient]:
        """Take questions from the queue; their time begins now.

        The same address of two runs is one recipient.
        """
        now = self.clock()
        window = []
        for question in self.draw(count):
            if question.run.is_closed:  # a probe that nothing waits for
                continue
            if isinstance(question, Asked) and question.began is None:
                question.began = now
            if question.recipient not in session.asked:
                session.asked[question.recipient] = []
                window.append(question.recipient)
            session.asked[question.recipient].append(question)
        return window

    def window_size(self, request: WindowRequest, size: int, most: int) -> int:
        """How many recipients to ask at once, so that refusals almost never exceed the budget.

        `size` may all be refused. Refusals are assumed to be as frequent as they were at this
        exchange or in this session, whichever is more, and to vary as the Poisson distribution
        does. Without PIPELINING, a larger window is not faster. Even if all are refused, a session
        has less than two budgets of refusals.
        """
        if not request.can_pipeline or not size:
            return size
        share_here = (self.refused + 1) / (self.answers + 1)
        share_in_session = request.refused / max(1, request.asked)
        share = max(share_here, share_in_session)
        root = (math.sqrt(SURE**2 + 4 * size) - SURE) / 2  # expected + SURE * sqrt(expected) = size
        return max(size, min(most, int(root**2 / share)))

    def is_too_small(
        self, session: OpenSession, request: WindowRequest, size: float, count: int
    ) -> bool:
        """Whether windows of `size` are so small that a new session is faster.

        That is so where more than `count` questions wait.
        """
        if not request.can_pipeline or not session.has_asked:
            return False
        return 3 * size < self.plan.refusal_budget and self.size > count

    def is_last(self, session: OpenSession, request: WindowRequest, *, ends: bool) -> bool:
        """Whether QUIT can go with a window.

        It can where the session ends, or nothing waits and no answer can make a probe due. Not as
        long as the server has accepted no address in it, since a witness will probably be needed,
        nor where addresses are asked again for want of one. So it is never the first window: what a
        server demands there, as TLS, needs another one in the same session.
        """
        if not session.has_choice:
            return False
        addresses = [asked for asked in session.unanswered() if isinstance(asked, Asked)]
        if any(asked.drops for asked in addresses):
            return False
        if ends:
            return True
        if self.size or not request.can_pipeline:
            return False
        return all(asked.run.is_probed(asked, self) for asked in addresses)

    # --- answers -----------------------------------------------------------------------------

    def on_answers(self, session: OpenSession, answers: RecipientAnswers) -> None:
        """Pass on the same answer about one or more recipients."""
        recipients, reply, classification = answers
        reason = classification.reason
        if reply is not None:
            session.has_answer = True
            self.silent_for = 0.0
            self.count_reply(classification, reply, len(recipients))
        is_witness = recipients[0] == session.witness
        is_choice = reason is None or reason in DEFERRED
        if is_choice and (is_witness or not recipients[0].is_probe):
            session.has_choice = True
            session.proved = len(session.missing)
            if reason is None:
                session.accepted = recipients[0].address
        if is_witness:
            session.refused_witness = None if is_choice else classification
            return
        for recipient in recipients:
            for question in session.asked.pop(recipient):
                if isinstance(question, Probe):
                    question.run.on_probe_answer(question, classification, reply)
                elif reason is Reason.MAILBOX_NOT_FOUND:
                    session.missing.append(Missing(question, classification, reply))
                else:
                    question.run.on_answer(question, self, classification, reply)

    def count_reply(
        self, classification: Classification, reply: Reply, recipients: int = 1
    ) -> None:
        """Count the same reply about recipients.

        Refusals of this client in a row close the exchange.
        """
        self.capacity_replies = 0
        self.failed_sessions = 0
        self.answers += recipients
        if not reply.is_positive:
            self.refused += recipients
        if classification.reason is not Reason.PROTECTED:
            self.refusals = 0
            return
        self.refusals += recipients
        if self.refusals >= self.settings.protected_after:
            end = SessionEnd(classification, "rcpt", str(reply), reached="mail")
            self.close(end, inferred=True)

    def observe_limit(self, seen: LimitObserved) -> None:
        """Lower the limits to what the server showed."""
        plan = self.plan
        budget = plan.refusal_budget
        for count in (seen.slowed_after, seen.cut_after):
            if count is not None:
                budget = lower(budget, count - 1)
        self.plan = replace(
            plan,
            rcpt_per_transaction=lower(plan.rcpt_per_transaction, seen.rcpt_per_transaction),
            rcpt_per_session=lower(plan.rcpt_per_session, seen.rcpt_per_session),
            one_domain=plan.one_domain or seen.one_domain,
            pipelining=plan.pipelining and not seen.loses_replies,
            refusal_budget=budget,
        )

    # --- the end of a session ----------------------------------------------------------------

    def on_session_end(self, session: OpenSession, end: SessionEnd, jitter: float) -> None:
        """Learn from how a session ended.

        Settle what was refused, and queue what was not answered.
        """
        self.learn(end, session.address, jitter)
        self.settle_missing(session, end)
        left = session.unanswered()
        session.asked.clear()
        answered = None
        if end.classification is not None:
            answered = self.answered_by_end(end, left)
        again: list[Question] = []
        for question in left:
            if question is answered:
                continue
            if isinstance(question, Asked):
                question.began = None  # it was not its turn
            elif question.recipient == end.recipient:
                question.losses += 1
                if question.losses >= DROPS:
                    question.run.give_up_probe(question)
                    continue
            again.append(question)
        self.put_back(again)
        if answered is not None:
            self.on_broken_session(session, end, answered)
        if not session.has_answer and end.classification is not None:
            self.silent_for += self.clock() - session.began
            if self.silent_for >= self.settings.deadline:
                self.close(end)

    def answered_by_end(self, end: SessionEnd, left: Sequence[Question]) -> Asked | None:
        """The address that the end of a session answers.

        It is the one being asked, or the first if the client is refused.
        """
        assert end.classification is not None
        addresses = [question for question in left if isinstance(question, Asked)]
        if end.recipient is not None and end.classification.action is Action.NONE:
            for asked in addresses:
                if asked.recipient == end.recipient:
                    return asked
            return None
        if end.classification.reason not in CLIENT_REFUSED:
            return None
        if addresses:
            return addresses[0]
        if left:
            return None
        for question in self.draw(1):
            if isinstance(question, Asked):
                return question
            self.put_back([question])
        return None

    def on_broken_session(self, session: OpenSession, end: SessionEnd, asked: Asked) -> None:
        """A refusal of the client is an answer.

        A broken session is one if it breaks again on the same address.
        """
        assert end.classification is not None
        if asked.began is None:
            asked.began = session.began
        asked.drops += 1
        is_refused = end.classification.reason in CLIENT_REFUSED
        is_late = asked.is_late(self.clock(), self.settings.deadline)
        if is_refused or is_late or asked.drops >= DROPS:
            asked.run.on_broken_session(asked, self, end)
        else:
            self.put_back([asked])

    def learn(self, end: SessionEnd, address: str, jitter: float) -> None:
        """Take in how a session at an IP address ended."""
        if end.classification is None:
            return
        if end.classification.action is Action.WITHOUT_TLS:
            self.plan = replace(self.plan, starttls="never")
        elif end.classification.action is Action.IN_STEP:
            self.plan = replace(self.plan, pipelining=False)
        elif end.classification.action is Action.BACK_OFF:
            self.back_off(end, jitter)
        else:
            self.record_failure(end, address)

    def back_off(self, end: SessionEnd, jitter: float) -> None:
        """Halve the sessions and double the wait, with jitter (0 to 1).

        Close after too many capacity replies.
        """
        settings = self.settings
        self.capacity_replies += 1
        self.limit = max(1, self.limit // 2)
        if self.capacity_replies > settings.capacity_attempts:
            self.close(end)
        doubled = settings.backoff_min * 2 ** (self.capacity_replies - 1)
        wait = min(doubled, settings.backoff_max)
        self.not_before = max(self.not_before, self.clock() + wait * (0.5 + jitter))

    def record_failure(self, end: SessionEnd, address: str) -> None:
        """Close the exchange if three or all addresses are dead, or after repeated failures.

        These are `protected_after` refusals of this client, or two sessions in a row that failed
        without an answer. If the exchange has answered before, a single failed connection to its
        only address left closes nothing.
        """
        assert end.classification is not None
        self.failed_sessions += 1
        if end.asked:
            self.failed_sessions = 0
        has_failed_often = self.failed_sessions >= MAX_FAILED_SESSIONS
        if end.phase == "connect":
            is_only_address = self.open_addresses() == [address]
            if self.answers and is_only_address and not has_failed_often:
                return
            self.dead_addresses.add(address)
            if len(self.dead_addresses) >= DEAD_ADDRESSES or not self.open_addresses():
                self.close(end)
        elif end.classification.reason in CLIENT_REFUSED and not end.asked:
            self.refusals += 1
            if self.refusals >= self.settings.protected_after:
                self.close(end, inferred=True)
        elif has_failed_often:
            self.close(end)

    # --- whether it refuses everybody --------------------------------------------------------

    def needs_witness(self, session: OpenSession) -> bool:
        """Whether the last answers of a session may be those of a server that refuses everybody."""
        if session.witness is not None or self.held:
            return False
        tail = len(session.missing) - session.proved
        if not tail:
            return False
        before = 0 if session.has_choice else self.missing_in_a_row
        return before + tail >= DOUBTED_AFTER

    def choose_witness(self, session: OpenSession) -> Recipient:
        """An address that should be accepted."""
        address = session.accepted or self.accepted
        session.is_known_witness = bool(address)
        if not address:
            address = f"postmaster@{domain_of(session.missing[-1].asked.recipient)}"
        session.witness = Recipient(address, is_probe=True)
        return session.witness

    def settle_missing(self, session: OpenSession, end: SessionEnd) -> None:
        """Settle the missing mailboxes of a session.

        Those that are in doubt are asked again, or held.
        """
        missing = session.missing
        session.missing = []
        if end.is_out_of_step:
            self.settle_all(missing, OUT_OF_STEP)
            return
        if session.has_choice:
            self.accepted = session.accepted or self.accepted
            self.missing_in_a_row = 0
            self.release()
        self.settle_all(missing[: session.proved])
        tail = missing[session.proved :]
        self.missing_in_a_row += len(tail)
        witness = session.refused_witness
        if self.held:
            self.hold(tail)
        elif self.missing_in_a_row < DOUBTED_AFTER:
            self.settle_all(tail)
        elif witness is None:
            self.ask_again(tail)
        elif not session.is_known_witness:  # it was postmaster
            if self.accepted:
                self.ask_again(tail)
            else:
                self.hold(tail)
        elif witness.reason is not Reason.MAILBOX_NOT_FOUND:
            self.settle_all(tail, NOT_CONFIRMED)
        else:
            self.settle_all(tail, REFUSES_ACCEPTED)
            detail = "it refuses an address that it accepted before"
            self.close(SessionEnd(REFUSES_ACCEPTED, "rcpt", detail, reached="mail"))

    def settle_all(self, missing: Iterable[Missing], doubt: Classification | None = None) -> None:
        """Settle refused mailboxes: as missing, or as unknown where there is a doubt."""
        for refusal in missing:
            refusal.asked.run.on_missing(refusal, self, doubt)

    def ask_again(self, tail: Iterable[Missing]) -> None:
        """Queue missing mailboxes whose session ended without its witness.

        The second time they are in doubt.
        """
        again = []
        for refusal in tail:
            refusal.asked.drops += 1
            if refusal.asked.drops >= DROPS:
                self.settle_all([refusal], NOT_CONFIRMED)
            else:
                again.append(refusal.asked)
        self.put_back(again)

    def hold(self, tail: Iterable[Missing]) -> None:
        """Keep missing mailboxes until the server accepts or defers an address."""
        for refusal in tail:
            if not refusal.asked.run.is_closed:
                self.held.append(refusal)
                refusal.asked.run.on_held(1)

    def release(self, run: SmtpRun | None = None, doubt: Classification | None = None) -> int:
        """Settle what is held, of one run or all; return how many these are."""
        released = []
        kept = []
        for refusal in self.held:
            if run is None or refusal.asked.run is run:
                released.append(refusal)
            else:
                kept.append(refusal)
        self.held = kept
        for refusal in released:
            refusal.asked.run.on_held(-1)
        self.settle_all(released, doubt)
        return len(released)

    def end_hold(self, run: SmtpRun) -> int:
        """Settle what is held of a run that has nothing else left; return how many are unknown.

        They are missing, unless so many were refused that the server may refuse everybody.
        """
        if self.missing_in_a_row >= SUSPICIOUS:
            return self.release(run, NONE_ACCEPTED)
        self.release(run)
        return 0

    # --- runs that end -----------------------------------------------------------------------

    def leave(self, run: SmtpRun) -> None:
        """Forget a run that has ended."""
        if run.unsettled:
            self.remove(run)
        self.held = [refusal for refusal in self.held if refusal.asked.run is not run]
        self.runs.discard(run)

    def pass_on_all(self) -> None:
        """Give everything that waits back to the runs, since this exchange is closed."""
        for waiting in list(self.drain()):
            waiting.run.on_closed(waiting, self)


def lower(value: int, seen: int | None) -> int:
    """The smaller of a limit and an observed one; at least 1."""
    if seen is None:
        return value
    return max(1, min(value, seen))
