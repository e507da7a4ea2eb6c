"""`SmtpExchange`: one mail server. What waits for it, its sessions, its limits, and whether it is believed.

It opens nothing itself; the clock and the jitter are parameters. A session draws its windows from the queue, a few
addresses of each client in turn, and passes on the answers to the runs that the addresses belong to.

A mailbox that is refused as missing waits for the end of its session. Where the last three answers or more are all
"missing", the server may refuse everybody by now, as after too many unknown recipients. The session then asks one
*witness* last: the last address that the server accepted, else `postmaster`, which every domain must accept (RFC 5321
section 4.5.1). Unless that is accepted, none of these refusals counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ...checks.operators import Operator
from ...checks.smtp.classify.classification import (
    OUT_OF_STEP,
    ConnectionFailure,
    FailureKind,
    classify_failure,
)
from ...checks.smtp.protocol.steps import (
    LimitObserved,
    Recipient,
    RecipientAnswers,
    SessionEnd,
    SessionPlan,
    WindowPlan,
    WindowRequest,
)
from ...checks.smtp.protocol.windows import domain_of
from ...checks.smtp.replies import Reply
from ...checks.smtp.transport.driver import SessionTimeouts
from ...model.evidence import Action, Classification, MailboxEvidence
from ...model.settings import LocalSettings
from ...model.words import Reason
from .evidence import (
    NONE_ACCEPTED,
    NOT_CONFIRMED,
    REFUSES_ACCEPTED,
    end_evidence,
    reply_evidence,
    without_result,
)
from .queues import Asked, Block, Client, Probe, Question, TurnQueue

if TYPE_CHECKING:
    from .recipients import Recipients

CLIENT_REFUSED = frozenset({Reason.PROTECTED, Reason.SENDER_BLOCKED})
# Replies of a server that does not refuse everybody.
DEFERRED = frozenset({Reason.GREYLISTED, Reason.MAILBOX_FULL})
DOUBTED_AFTER = (
    3  # missing mailboxes in a row: some servers refuse everybody after so many unknown recipients
)
SUSPICIOUS = (
    10  # missing mailboxes in a row at a mail server that accepted no address, not even postmaster
)
MAX_FAILED_SESSIONS = (
    2  # sessions in a row that failed without an answer: the next one would fail too
)
DROPS = 2  # sessions that broke on one address before this counts as its answer
DEAD_ADDRESSES = 3  # IP addresses of one exchange that may fail before the next exchange is tried
WORTH_ANOTHER = 3  # budgets of addresses; a further session is opened only if more wait
LONGEST_QUIT = 5.0  # seconds for the reply to QUIT, which changes nothing
SHORTEST_SESSION = 1.0  # seconds, however little is left of a deadline
# Standard deviations by which the refusals of a window may exceed the expected number within the budget; a reply beyond
# the budget may be delayed by a second.
SURE = 3.5


@dataclass(slots=True, eq=False)
class OpenSession:
    """One session under way."""

    exchange: SmtpExchange
    address: str  # IP address
    client: Client  # for whom it was opened
    began: float  # clock reading
    task: Any = None
    asked: dict[Recipient, list[Question]] = field(default_factory=dict)  # not answered yet
    # Mailboxes that do not exist.
    missing: list[tuple[Asked, MailboxEvidence]] = field(default_factory=list)
    proved: int = (
        0  # of these, how many were refused before the server last accepted or deferred an address
    )
    accepted: str = ""  # the last address that was accepted
    has_choice: bool = (
        False  # whether it accepted or deferred an address: then it does not refuse everybody
    )
    witness: Recipient | None = None
    is_known_witness: bool = (
        False  # it was accepted before, and is not postmaster for want of such an address
    )
    refused_witness: Classification | None = None
    has_asked: bool = False
    has_answer: bool = False

    def unsettled(self) -> list[Question]:
        """What was asked in it and is not settled: missing mailboxes are when it is over."""
        return [
            *(asked for asked, _ in self.missing),
            *(each for items in self.asked.values() for each in items),
        ]

    def is_needed(self) -> bool:
        """Whether a run that has not ended has asked in it, or waits for its exchange."""
        return self.exchange.size > 0 or any(not each.run.is_closed for each in self.unsettled())


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
        self.name, self.settings, self.first_plan, self.operator, self.clock = (
            name,
            settings,
            plan,
            operator,
            clock,
        )
        self.sessions: set[OpenSession] = set()
        self.runs: set[Recipients] = set()  # under way that use it
        self.is_resolving = False
        self.not_before = 0.0  # clock reading before which no session is opened
        # Missing mailboxes that count once the server accepts or defers an address; it has accepted none, not even
        # postmaster:
        self.held: list[tuple[Asked, MailboxEvidence]] = []
        self.begin()

    def begin(self) -> None:
        """Begin to observe it: with the configured limits, and with what is known of the operator."""
        self.began = self.clock()
        self.plan = self.first_plan  # of the next session; adapted to the limits that were observed
        # Of sessions at once; halved by capacity replies.
        self.limit = self.settings.max_sessions_per_exchange
        self.capacity_replies = 0  # since the last answer
        self.refusals = 0  # of this client, since the last other answer
        self.answers = self.refused = 0  # to RCPT, and refusals among them
        self.accepted = ""  # the last address that it accepted, not a random one
        self.missing_in_a_row = 0  # mailboxes since it last accepted or deferred one
        self.closed: SessionEnd | None = None  # why it is not asked any more
        self.is_inferred = False  # that applies to addresses that were not asked, too
        self.forget_failures()
        if self.operator is not None:
            most, one_domain = self.operator.rcpt_per_transaction, self.operator.one_domain
            self.observe_limit(LimitObserved(rcpt_per_transaction=most, one_domain=one_domain))

    def forget_failures(self) -> None:
        """Before the next run: the addresses may have changed, and may be reachable again; refusals are kept."""
        self.addresses: tuple[str, ...] | None = (
            None  # IP addresses that may be contacted; None: not looked up yet
        )
        self.dead_addresses: set[str] = set()
        self.has_no_address = False  # closed because there was no address to contact
        self.failed_sessions = 0  # in a row, without an answer
        self.silent_for = 0.0  # seconds of sessions since the last answer
        self.is_answering = (
            False  # the last session that got an answer, or ended without one, got one
        )
        why = None if self.closed is None else self.closed.classification
        if (
            why is not None
            and why.action is not Action.BACK_OFF
            and why.reason not in CLIENT_REFUSED
        ):
            self.closed = None

    def open_addresses(self) -> list[str]:
        """IP addresses that have not failed."""
        return [each for each in self.addresses or () if each not in self.dead_addresses]

    def close(self, end: SessionEnd, *, inferred: bool = False) -> None:
        """Stop asking this exchange because of what ended a session; the first reason stays."""
        if self.closed is None:
            self.closed, self.is_inferred = end, inferred

    def close_without_address(
        self, detail: str, classification: Classification | None = None
    ) -> None:
        """Close because the exchange has no address that may be contacted."""
        self.has_no_address = True
        not_dialled = classify_failure(ConnectionFailure(FailureKind.NOT_DIALLED))
        self.close(SessionEnd(classification or not_dialled, "connect", detail))

    # --- what a session is allowed ------------------------------------------------------------

    def wants_session(self) -> bool:
        """Whether another session pays: the first one for anything, a further one for several windows."""
        if (
            self.closed
            or not self.addresses
            or self.not_before > self.clock()
            or len(self.sessions) >= self.limit
        ):
            return False
        starting = sum(not each.has_answer for each in self.sessions)
        if starting and not self.is_answering:  # nothing is known of it, or the last session failed
            return False
        enough = (
            WORTH_ANOTHER * self.settings.refusal_budget * (1 + starting) if self.sessions else 0
        )
        return self.size > enough

    def session_plan(self) -> SessionPlan:
        """The plan of the next session: `next_window` keeps to the budget, beyond which only the witness is asked."""
        return replace(self.plan, refusal_budget=2 * self.plan.refusal_budget)

    def timeouts(self) -> SessionTimeouts:
        """How long a session may take: at most what is left of the deadline of the address that waited longest."""
        settings, now = self.settings, self.clock()
        heads = [queue.first[0] for queue in self.by_client.values() if queue.first]
        ages = [
            now - each.began for each in heads if isinstance(each, Asked) and each.began is not None
        ]
        left = settings.deadline - max([*ages, self.silent_for])
        return SessionTimeouts(
            connect=settings.connect_timeout,
            command=settings.command_timeout,
            session=max(SHORTEST_SESSION, min(settings.session_deadline, left)),
            quit=min(LONGEST_QUIT, settings.command_timeout),
        )

    def next_window(self, session: OpenSession, request: WindowRequest) -> WindowPlan:
        """What a session asks next: questions of its queue, the clients in turn; at the end a witness if it needs one.

        No recipients: it ends.
        """
        # One is left for the witness.
        budget, most = (
            self.plan.refusal_budget,
            max(1, request.size - 1),
        )
        size = max(0, min(budget - request.refused, most))
        count = self.window_size(request, size, most)
        if self.closed or session.asked:  # what was drawn is asked first
            return WindowPlan((), 2 * budget)
        window = (
            []
            if self.is_too_small(session, request, size, count)
            else self.draw_window(session, count)
        )
        session.has_asked = True
        if not window and self.needs_witness(session):
            return WindowPlan([self.choose_witness(session)], 2 * budget, is_last=True)
        left = size - len(window) * request.refused / max(1, request.asked)
        is_too_small = self.is_too_small(session, request, left, count)
        return WindowPlan(window, 2 * budget, self.is_last(session, request, ends=is_too_small))

    def draw_window(self, session: OpenSession, count: int) -> list[Recipient]:
        """Take questions from the queue; their time begins now. The same address of two runs is one recipient."""
        now, window = self.clock(), []
        for each in self.draw(count):
            if each.run.is_closed:  # a probe that nothing waits for
                continue
            if isinstance(each, Asked) and each.began is None:
                each.began = now
            if each.recipient not in session.asked:
                session.asked[each.recipient] = []
                window.append(each.recipient)
            session.asked[each.recipient].append(each)
        return window

    def window_size(self, request: WindowRequest, size: int, most: int) -> int:
        """Return how many recipients to ask at once, such that their refusals almost never exceed the budget.

        `size` may all be refused. Refusals are assumed to be as frequent as they were at this exchange or in this
        session, whichever is more, and to vary as the Poisson distribution does. Without PIPELINING, a larger window is
        not faster. Even if all are refused, a session has less than two budgets of refusals.
        """
        if not request.can_pipeline or not size:
            return size
        share = max(
            (self.refused + 1) / (self.answers + 1), request.refused / max(1, request.asked)
        )
        root = (math.sqrt(SURE**2 + 4 * size) - SURE) / 2  # expected + SURE * sqrt(expected) = size
        return max(size, min(most, int(root**2 / share)))

    def is_too_small(
        self, session: OpenSession, request: WindowRequest, size: float, count: int
    ) -> bool:
        """Whether windows of `size` are so small that a new session is faster for the rest, more than `count`."""
        if not request.can_pipeline or not session.has_asked:
            return False
        return 3 * size < self.plan.refusal_budget and self.size > count

    def is_last(self, session: OpenSession, request: WindowRequest, *, ends: bool) -> bool:
        """Whether QUIT can go with a window: the session ends, or nothing waits and no answer can make a probe due.

        Not as long as the server has accepted no address in it, since a witness will probably be needed, nor where
        addresses are asked again for want of one. So it is never the first window: what a server demands there, as
        TLS, needs another one in the same session.
        """
        questions = [each for items in session.asked.values() for each in items]
        addresses = [each for each in questions if isinstance(each, Asked)]
        if not session.has_choice or any(each.drops for each in addresses):
            return False
        return ends or (
            request.can_pipeline
            and not self.size
            and all(e.run.is_probed(e, self) for e in addresses)
        )

    # --- answers ---------------------------------------------------------------------------------------

    def on_answers(self, session: OpenSession, answers: RecipientAnswers) -> None:
        """Pass on the same answer about one or more recipients."""
        recipients, reply, classification = answers
        reason = classification.reason
        if reply is not None:
            session.has_answer, self.silent_for = True, 0.0
            self.count_reply(classification, reply, len(recipients))
        evidence = reply_evidence(self.name, classification, reply)
        is_witness, is_choice = (
            recipients[0] == session.witness,
            reason is None or reason in DEFERRED,
        )
        if is_choice and (is_witness or not recipients[0].is_probe):
            session.has_choice, session.proved = True, len(session.missing)
            session.accepted = recipients[0].address if reason is None else session.accepted
        if is_witness:
            session.refused_witness = None if is_choice else classification
            return
        for recipient in recipients:
            for each in session.asked.pop(recipient):
                if isinstance(each, Probe):
                    each.run.on_probe_answer(each, classification, reply)
                elif reason is Reason.MAILBOX_NOT_FOUND:
                    session.missing.append((each, evidence))
                else:
                    each.run.on_answer(each, self, evidence, reply)

    def count_reply(
        self, classification: Classification, reply: Reply, recipients: int = 1
    ) -> None:
        """Count the same reply about recipients: several refusals of this client in a row close the exchange."""
        self.capacity_replies = self.failed_sessions = 0
        self.answers += recipients
        if not reply.is_positive:
            self.refused += recipients
        if classification.reason is not Reason.PROTECTED:
            self.refusals = 0
            return
        self.refusals += recipients
        if self.refusals >= self.settings.protected_after:
            self.close(
                SessionEnd(classification, "rcpt", str(reply), reached="mail"), inferred=True
            )

    def observe_limit(self, seen: LimitObserved) -> None:
        """Lower the limits to what the server showed."""
        plan = self.plan
        self.plan = replace(
            plan,
            rcpt_per_transaction=lower(plan.rcpt_per_transaction, seen.rcpt_per_transaction),
            rcpt_per_session=lower(plan.rcpt_per_session, seen.rcpt_per_session),
            one_domain=plan.one_domain or seen.one_domain,
            pipelining=plan.pipelining and not seen.loses_replies,
        )
        for count in (seen.slowed_after, seen.cut_after):
            if count is not None:
                self.plan = replace(
                    self.plan, refusal_budget=lower(self.plan.refusal_budget, count - 1)
                )

    # --- the end of a session ----------------------------------------------------------------------------

    def on_session_end(self, session: OpenSession, end: SessionEnd, jitter: float) -> None:
        """Learn from how a session ended; settle what was refused, and queue what was not answered."""
        self.learn(end, session.address, jitter)
        self.settle_missing(session, end)
        left = [each for items in session.asked.values() for each in items]
        session.asked.clear()
        answered = self.answered_by_end(end, left) if end.classification is not None else None
        again: list[Question] = []
        for each in left:
            if each is answered:
                continue
            if isinstance(each, Asked):
                each.began = None  # it was not its turn
            elif each.recipient == end.recipient:
                each.losses += 1
                if each.losses >= DROPS:
                    each.run.give_up_probe(each)
                    continue
            again.append(each)
        self.put_back(again)
        if answered is not None:
            self.on_broken_session(session, end, answered)
        if not session.has_answer and end.classification is not None:
            self.silent_for += self.clock() - session.began
            if self.silent_for >= self.settings.deadline:
                self.close(end)

    def answered_by_end(self, end: SessionEnd, left: Sequence[Question]) -> Asked | None:
        """The address that the end of a session answers: the one being asked, or the first if the client is refused."""
        assert end.classification is not None
        if end.recipient is not None and end.classification.action is Action.NONE:
            return next(
                (
                    each
                    for each in left
                    if isinstance(each, Asked) and each.recipient == end.recipient
                ),
                None,
            )
        if end.classification.reason not in CLIENT_REFUSED:
            return None
        drawn = [] if left else self.draw(1)
        found = next((each for each in (*left, *drawn) if isinstance(each, Asked)), None)
        self.put_back([each for each in drawn if each is not found])
        return found

    def on_broken_session(self, session: OpenSession, end: SessionEnd, asked: Asked) -> None:
        """A refusal of the client is an answer; a broken session is one if it breaks again on the same address."""
        assert end.classification is not None
        asked.began = session.began if asked.began is None else asked.began
        asked.drops += 1
        is_refused = end.classification.reason in CLIENT_REFUSED
        evidence = end_evidence(self.name, end)
        if not (is_refused or asked.drops >= DROPS or asked.run.is_late(asked)):
            self.put_back([asked])
        elif not asked.run.pass_on(asked, self, evidence):
            asked.run.settle(asked, evidence)

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
        """Halve the sessions and double the wait, with jitter (0 to 1); close after too many capacity replies."""
        self.capacity_replies += 1
        self.limit = max(1, self.limit // 2)
        if self.capacity_replies > self.settings.capacity_attempts:
            self.close(end)
        wait = min(
            self.settings.backoff_min * 2 ** (self.capacity_replies - 1), self.settings.backoff_max
        )
        self.not_before = max(self.not_before, self.clock() + wait * (0.5 + jitter))

    def record_failure(self, end: SessionEnd, address: str) -> None:
        """Close the exchange if three or all of its addresses are dead, or after repeated refusals or failures.

        These are `protected_after` refusals of this client, or two sessions in a row that failed without an answer.
        If the exchange has answered before, a single failed connection to its only address left closes nothing.
        """
        assert end.classification is not None
        self.failed_sessions = 0 if end.asked else self.failed_sessions + 1
        if end.phase == "connect":
            if (
                self.answers
                and self.failed_sessions < MAX_FAILED_SESSIONS
                and self.open_addresses() == [address]
            ):
                return
            self.dead_addresses.add(address)
            if len(self.dead_addresses) >= DEAD_ADDRESSES or not self.open_addresses():
                self.close(end)
        elif end.classification.reason in CLIENT_REFUSED and not end.asked:
            self.refusals += 1
            if self.refusals >= self.settings.protected_after:
                self.close(end, inferred=True)
        elif self.failed_sessions >= MAX_FAILED_SESSIONS:
            self.close(end)

    # --- whether it refuses everybody ----------------------------------------------------------------------

    def needs_witness(self, session: OpenSession) -> bool:
        """Whether the last answers of a session may be those of a server that refuses everybody."""
        tail = len(session.missing) - session.proved
        before = 0 if session.has_choice else self.missing_in_a_row
        return (
            session.witness is None
            and not self.held
            and tail > 0
            and before + tail >= DOUBTED_AFTER
        )

    def choose_witness(self, session: OpenSession) -> Recipient:
        """An address that should be accepted."""
        known = session.accepted or self.accepted
        session.is_known_witness = bool(known)
        address = known or f"postmaster@{domain_of(session.missing[-1][0].recipient)}"
        session.witness = Recipient(address, is_probe=True)
        return session.witness

    def settle_missing(self, session: OpenSession, end: SessionEnd) -> None:
        """Settle the missing mailboxes of a session; those that are in doubt are asked again, or held."""
        missing, session.missing = session.missing, []
        if end.is_out_of_step:
            settle_all(missing, OUT_OF_STEP)
            return
        if session.has_choice:
            self.accepted, self.missing_in_a_row = session.accepted or self.accepted, 0
            self.release()
        settle_all(missing[: session.proved])
        tail, witness = missing[session.proved :], session.refused_witness
        self.missing_in_a_row += len(tail)
        if not self.held and self.missing_in_a_row < DOUBTED_AFTER:
            settle_all(tail)
        elif self.held or (
            witness is not None and not session.is_known_witness and not self.accepted
        ):
            self.hold(tail)
        elif witness is None or not session.is_known_witness:
            self.ask_again(tail)
        elif witness.reason is not Reason.MAILBOX_NOT_FOUND:
            settle_all(tail, NOT_CONFIRMED)
        else:
            settle_all(tail, REFUSES_ACCEPTED)
            detail = "it refuses an address that it accepted before"
            self.close(SessionEnd(REFUSES_ACCEPTED, "rcpt", detail, reached="mail"))

    def ask_again(self, tail: Sequence[tuple[Asked, MailboxEvidence]]) -> None:
        """Queue missing mailboxes whose session ended without its witness; the second time they are in doubt."""
        for asked, evidence in tail:
            asked.drops += 1
            if asked.drops >= DROPS:
                asked.run.settle(asked, without_result(evidence, NOT_CONFIRMED))
        self.put_back([asked for asked, _ in tail if asked.drops < DROPS])

    def hold(self, tail: Sequence[tuple[Asked, MailboxEvidence]]) -> None:
        """Keep missing mailboxes until the server accepts or defers an address."""
        for asked, evidence in tail:
            if not asked.run.is_closed:
                self.held.append((asked, evidence))
                asked.run.on_held()

    def release(self, run: Recipients | None = None, doubt: Classification | None = None) -> int:
        """Settle what is held, of one run or all; return how many these are."""
        given = [each for each in self.held if run is None or each[0].run is run]
        self.held = [each for each in self.held if run is not None and each[0].run is not run]
        for asked, _ in given:
            asked.run.held -= 1
        settle_all(given, doubt)
        return len(given)

    def end_hold(self, run: Recipients) -> int:
        """Settle what is held of a run that has nothing else left; return how many are unknown.

        They are missing, unless so many were refused that the server may refuse everybody.
        """
        is_suspicious = self.missing_in_a_row >= SUSPICIOUS
        count = self.release(run, NONE_ACCEPTED if is_suspicious else None)
        return count if is_suspicious else 0

    # --- runs that end ---------------------------------------------------------------------------------------

    def leave(self, run: Recipients) -> None:
        """Forget a run that has ended."""
        if run.unsettled:
            self.remove(run)
        self.held = [each for each in self.held if each[0].run is not run]
        self.runs.discard(run)

    def pass_on_all(self) -> None:
        """Pass everything that waits on to the next exchanges, since this one is closed."""
        for each in list(self.drain()):
            if isinstance(each, Probe):
                each.run.pass_on_probe(each, self)
            elif isinstance(each, Block):
                each.run.pass_on_block(each, self)
            else:
                each.run.place(each, each.route.after(self))


def settle_all(
    missing: Sequence[tuple[Asked, MailboxEvidence]], doubt: Classification | None = None
) -> None:
    """Settle refused mailboxes: as missing, or as unknown where there is a doubt."""
    for asked, evidence in missing:
        asked.run.settle(asked, evidence if doubt is None else without_result(evidence, doubt))


def lower(value: int, seen: int | None) -> int:
    """The smaller of a limit and an observed one; at least 1."""
    return value if seen is None else max(1, min(value, seen))
