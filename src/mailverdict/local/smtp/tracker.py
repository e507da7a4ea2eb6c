"""The state of every recipient: what is asked next, and what each answer leads to. No I/O.

`RecipientState` names the states, `MOVES` the legal moves between them. A recipient that was given to a session
ends in one of four ways: settled, after the end of its session if it does not exist; waiting for the probe of its
domain; greylisted and waiting for a second attempt; or in a queue again, of the next exchange or, since the session
ended before its turn, of the same one.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import lru_cache

import numpy as np

from ...checks.smtp.classify.classification import ABOUT_MAILBOX, OUT_OF_STEP
from ...checks.smtp.classify.classifier import catch_all_of
from ...checks.smtp.protocol.steps import Recipient, RecipientAnswers, SessionEnd, WindowPlan, WindowRequest
from ...checks.smtp.replies import Reply
from ...model.evidence import Action, Classification, MailboxEvidence
from ...model.settings import LocalSettings
from ...model.words import Reason
from ..batch import Positions
from .greylisting import RetrySchedule
from .politeness import CLIENT_REFUSED, UNCLEAR, ClosedExchange
from .probes import (
    NONE_ACCEPTED,
    NOT_CONFIRMED,
    REFUSES_ACCEPTED,
    HostProbes,
    PendingAnswer,
    Probe,
    SettledAnswers,
    with_catch_all,
    without_result,
)
from .queues import ExchangeSet, PreferenceQueue
from .results import ResultBuffer
from .scheduler import Assignment

DOUBTED_AFTER = 3  # missing mailboxes in a row: some servers refuse everybody after so many unknown recipients
DROPS = 2  # sessions that broke on one address before this counts as its answer
DEFERRED = (Reason.GREYLISTED, Reason.MAILBOX_FULL)  # replies of a server that does not refuse everybody
FINAL = ABOUT_MAILBOX | {Reason.SYNTAX_ERROR}  # every other exchange would reply the same
SUSPICIOUS = 10  # missing mailboxes of a mail server that accepted no address in the same run, not even postmaster
SHOWN_SERVERS = 5  # in a warning
SHOWN = 400  # characters of a reply that are kept


class RecipientState(IntEnum):
    """Where an address of the batch stands."""

    NEW = 0  # its domain has not been looked up
    QUEUED = 1  # in a queue of an exchange set
    ASKED = 2  # given to a session, and not answered yet
    AWAITING_PROBE = 3  # answered; what that means depends on the reply to a probe
    AWAITING_RETRY = 4  # greylisted
    AWAITING_END = 5  # refused; counts once the session's end shows that its replies belong to its commands
    ANSWERED = 6  # settled by a reply, or by how a session ended
    ABANDONED = 7  # settled without one: no exchange is left, or the deadline is over


S = RecipientState
MOVES: dict[int, frozenset[RecipientState]] = {
    S.NEW: frozenset({S.QUEUED}),
    S.QUEUED: frozenset({S.ASKED, S.ABANDONED}),
    S.ASKED: frozenset({S.QUEUED, S.AWAITING_PROBE, S.AWAITING_RETRY, S.AWAITING_END, S.ANSWERED}),
    S.AWAITING_PROBE: frozenset({S.ANSWERED}),
    S.AWAITING_RETRY: frozenset({S.QUEUED}),
    S.AWAITING_END: frozenset({S.AWAITING_PROBE, S.ANSWERED}),
    S.ANSWERED: frozenset(),
    S.ABANDONED: frozenset(),
}


@dataclass(slots=True, eq=False)
class ActiveSession:
    """One session under way."""

    assignment: Assignment
    began: float  # clock reading
    positions: dict[Recipient, int] = field(default_factory=dict)  # recipients not answered yet
    probes: dict[Recipient, Probe] = field(default_factory=dict)  # the same for probes
    missing: list[tuple[int, MailboxEvidence]] = field(default_factory=list)  # mailboxes that do not exist
    accepted: str = ""  # the last address that was accepted
    missing_before: int = 0  # of the missing ones, how many were refused before that address was accepted
    has_asked: bool = False
    has_answer: bool = False

    @property
    def queue(self) -> PreferenceQueue:
        """The queue that it serves."""
        return self.assignment.exchanges.queues[self.assignment.mx_index]


class RecipientTracker:
    """The recipients of one run."""

    def __init__(
        self,
        settings: LocalSettings,
        results: ResultBuffer,
        clock: Callable[[], float],
        rng: random.Random,
    ) -> None:
        self.settings, self.results, self.clock, self.rng = settings, results, clock, rng
        syntax = results.batch.syntax
        self.domains = syntax.domains.to_pylist()
        self.local_parts = syntax.local()
        self.codes = results.domain_codes
        self.probes: defaultdict[str, HostProbes] = defaultdict(HostProbes)  # by name of the exchange
        # Missing mailboxes of exchanges that have accepted no address, not even postmaster, by name of the exchange:
        self.held: defaultdict[str, SettledAnswers] = defaultdict(list)
        assert isinstance(settings.retry_greylisted, float)
        self.retries = RetrySchedule(settings.retry_greylisted)
        # One byte per address; the memoryview reads single ones faster than numpy.
        self.state_array = np.zeros(len(results.batch.texts), np.uint8)
        self.states = self.state_array.data
        self.unsettled = 0
        # About few addresses at a time:
        self.drops: Counter[int] = Counter()
        self.last_evidence: dict[int, MailboxEvidence] = {}  # of addresses that moved to another exchange
        self.began: dict[int, float] = {}  # when an address was first asked

    def move(self, position: int, state: RecipientState) -> None:
        """Change the state of one address."""
        before = self.states[position]
        if state not in MOVES[before]:
            raise ValueError(f"recipient {position}: no move from {S(before).name} to {state.name}")
        self.states[position] = state

    def add(self, exchanges: ExchangeSet, positions: Positions) -> None:
        """Queue the addresses of a domain."""
        if self.state_array[positions].any():
            raise ValueError("these addresses were queued before")
        self.state_array[positions] = S.QUEUED
        self.unsettled += len(positions)
        exchanges.add(positions)

    # --- what is asked next ----------------------------------------------------------------------------

    def next_window(self, active: ActiveSession, request: WindowRequest) -> WindowPlan:
        """What a session asks next: due probes, then addresses of its queue; nothing if it should end."""
        host = active.assignment.host
        budget = host.plan.refusal_budget  # other sessions may have lowered it
        if host.closed or self.is_too_small(active, request):
            return WindowPlan((), budget)
        size = host.window_size(request)
        expected = size * request.refused / max(1, request.asked)
        is_last = request.asked > 0 and self.is_too_small(active, request, expected)
        probes = self.draw_probes(active, size)
        addresses = self.draw(active.queue, size - len(probes))
        active.probes |= probes
        active.positions |= addresses
        active.has_asked = True
        is_last = is_last or self.is_nothing_left(active.assignment, request, addresses.values())
        return WindowPlan([*probes, *addresses], budget, is_last)

    def draw_probes(self, active: ActiveSession, count: int) -> dict[Recipient, Probe]:
        """Take probes that are due."""
        due = active.assignment.exchanges.probes_at(active.assignment.host)
        drawn, due[:count] = due[:count], []
        return {Recipient(self.probe_address(probe), is_probe=True): probe for probe in drawn}

    def probe_address(self, probe: Probe) -> str:
        """The address that a probe asks about."""
        probes, code = self.probes[probe.host], probe.domain
        if code is None:
            return probes.accepted or probes.postmaster
        return probes.address_of(code, self.domains[code], self.rng)

    def is_nothing_left(self, assignment: Assignment, request: WindowRequest, positions: Iterable[int]) -> bool:
        """Whether nothing waits beyond these addresses, and no answer about them can make a probe due.

        Not in the first window: what a server demands there, as TLS, needs another one in the same session.
        """
        if not request.asked or not request.can_pipeline or assignment.exchanges.waiting():
            return False
        probes, probing = self.probes[assignment.host.name], self.settings.catch_all_probe
        return all(not probing or probes.is_requested(self.codes[position]) for position in positions)

    def draw(self, queue: PreferenceQueue, count: int) -> dict[Recipient, int]:
        """Take addresses from a queue; their time begins now."""
        now, found = self.clock(), {}
        for position in queue.draw(count):
            self.move(position, S.ASKED)
            self.began.setdefault(position, now)
            local = self.local_parts[position].as_py()  # few at a time: faster than converting all of them
            found[Recipient(f"{local}@{self.domains[self.codes[position]]}")] = position
        return found

    def is_too_small(self, active: ActiveSession, request: WindowRequest, refusals: float = 0.0) -> bool:
        """Whether windows are so small, after `refusals` more, that a new session is faster for the rest."""
        exchanges, host = active.assignment.exchanges, active.assignment.host
        if not request.can_pipeline or not active.has_asked:
            return False
        is_small = 3 * (request.size - refusals) < host.plan.refusal_budget
        return is_small and active.queue.size + len(exchanges.probes_at(host)) > host.window_size(request)

    # --- answers ---------------------------------------------------------------------------------------

    def on_reply(self, active: ActiveSession, answers: RecipientAnswers) -> None:
        """Apply the same answer to its recipients."""
        assignment, (recipients, reply, classification) = active.assignment, answers
        if reply is not None:
            active.has_answer = True
            assignment.exchanges.silent_for = 0.0
            assignment.host.on_reply(classification, reply, len(recipients))
        evidence = reply_evidence(assignment.host.name, classification, reply)
        if classification.reason in DEFERRED:
            self.probes[assignment.host.name].is_selective = True
        if recipients[0].is_probe:
            self.on_probe_reply(assignment, active.probes.pop(recipients[0]), answers)
            return
        known: dict[int, bool | None] = {}
        if classification.reason is None:
            known = self.probes[assignment.host.name].known
            active.accepted, active.missing_before = recipients[0].address, len(active.missing)
        for recipient in recipients:
            position = active.positions.pop(recipient)
            code = self.codes[position]
            if code in known:  # as most are: accepted, and its domain was probed before
                self.settle(position, with_catch_all(evidence, catch_all=known[code]))
            else:
                self.on_address_reply(active, PendingAnswer(position, recipient.address, evidence, reply))

    def on_probe_reply(self, assignment: Assignment, probe: Probe, answer: RecipientAnswers) -> None:
        """Settle what waits for a probe, or ask once more when greylisting is over."""
        exchanges, classification, probes = assignment.exchanges, answer.classification, self.probes[probe.host]
        wait = classification.retry_after
        if classification.reason is Reason.GREYLISTED and self.retries.add_probe(exchanges, probe, wait, self.clock()):
            return
        if probe.domain is not None:
            self.settle_all(probes.on_reply(probe.domain, classification, answer.reply))
            return
        if answer.recipients[0].address == probes.postmaster:
            self.on_postmaster_reply(exchanges, probe, classification)
            return
        refuses = REFUSES_ACCEPTED if classification.reason is Reason.MAILBOX_NOT_FOUND else NOT_CONFIRMED
        self.settle_all(probes.release_doubted(None if classification.reason is None else refuses))
        if classification.reason is Reason.MAILBOX_NOT_FOUND:
            detail = f"also for an address that was accepted before: {answer.reply}"
            assignment.host.close(SessionEnd(REFUSES_ACCEPTED, "rcpt", detail, reached="mail"))

    def on_postmaster_reply(self, exchanges: ExchangeSet, probe: Probe, classification: Classification) -> None:
        """Settle what waits for postmaster, or hold it until an address is accepted."""
        probes = self.probes[probe.host]
        if classification.reason is None:
            probes.accepted, probes.postmaster = probes.postmaster, ""
            self.settle_all(probes.release_doubted(None))
        elif probes.accepted:  # by another session in the meantime: it is asked instead
            exchanges.add_probe(probe)
        else:
            self.held[probe.host] += probes.take_doubted()

    def on_address_reply(self, active: ActiveSession, answer: PendingAnswer) -> None:
        """Settle an address, or let it wait: for the session's end, the probe, a second attempt or another exchange."""
        assignment, position, evidence, reply = active.assignment, answer.position, answer.evidence, answer.reply
        reason = evidence.reason
        if reason is Reason.GREYLISTED and self.retry_later(assignment, position, evidence.classification):
            return
        is_ambiguous = reason is Reason.INCONCLUSIVE and reply is not None and reply.code >= 500
        if reason is None or is_ambiguous:
            self.await_probe(assignment, answer)
        elif reason is Reason.MAILBOX_NOT_FOUND:
            self.move(position, S.AWAITING_END)
            active.missing.append((position, evidence))
        elif reason in FINAL or not self.requeue_for_next(assignment, position, evidence):
            self.settle(position, evidence)

    def await_probe(self, assignment: Assignment, answer: PendingAnswer) -> None:
        """What this answer means depends on the reply to a random address of the domain."""
        code = self.codes[answer.position]
        host, probes = assignment.host, self.probes[assignment.host.name]
        if host.provider is not None and host.provider.catch_all is not None:
            probes.set_known(code, accepts_all=host.provider.catch_all)
        elif not self.settings.catch_all_probe:
            probes.set_known(code, accepts_all=None)
        evidence = probes.add(code, answer)
        if evidence is not None:
            self.settle(answer.position, evidence)
            return
        self.move(answer.position, S.AWAITING_PROBE)
        self.request_probe(assignment, code)

    def request_probe(self, assignment: Assignment, code: int) -> None:
        """Queue the probe of a domain, once."""
        if self.settings.catch_all_probe and self.probes[assignment.host.name].wants_probe(code):
            assignment.exchanges.add_probe(Probe(assignment.host.name, code))

    def retry_later(self, assignment: Assignment, position: int, classification: Classification) -> bool:
        """Schedule a second attempt in this run, and the probe of the domain; False where there is none."""
        if not self.retries.add(assignment.exchanges, position, classification.retry_after, self.clock()):
            return False
        self.move(position, S.AWAITING_RETRY)
        self.began.pop(position, None)
        self.request_probe(assignment, self.codes[position])
        return True

    def queue_retries(self, now: float) -> Iterable[ExchangeSet]:
        """Queue greylisted addresses whose time has come; the sets that have more to do."""
        for retry in self.retries.pop_due(now):
            for position in retry.positions:
                self.move(position, S.QUEUED)
            retry.exchanges.queues[0].put_back(retry.positions)
            for probe in retry.probes:
                retry.exchanges.add_probe(probe)
            yield retry.exchanges

    def requeue_for_next(self, assignment: Assignment, position: int, evidence: MailboxEvidence) -> bool:
        """Queue an address for the next exchange by preference, if there is one and time left."""
        mx_index = assignment.exchanges.mx_index_after(assignment.host)
        if mx_index is None or self.is_late(position):
            return False
        self.last_evidence[position] = evidence
        self.move(position, S.QUEUED)
        assignment.exchanges.queues[mx_index].append(position)
        return True

    def is_late(self, position: int) -> bool:
        """Whether the deadline of an address is over."""
        return self.clock() - self.began.get(position, self.clock()) >= self.settings.deadline

    # --- settling --------------------------------------------------------------------------------------

    def settle(self, position: int, evidence: MailboxEvidence, state: RecipientState = S.ANSWERED) -> None:
        """Settle one address."""
        self.move(position, state)
        self.unsettled -= 1
        self.began.pop(position, None)
        self.last_evidence.pop(position, None)
        self.results.add(position, evidence)

    def settle_all(self, settled: Iterable[tuple[int, MailboxEvidence]]) -> None:
        """Settle several addresses."""
        for position, evidence in settled:
            self.settle(position, evidence)

    def abandon(self, positions: Iterable[int], evidence: MailboxEvidence) -> None:
        """Settle queued addresses: with what an exchange replied to the address itself, else with `evidence`."""
        for position in positions:
            self.settle(position, self.last_evidence.get(position, evidence), S.ABANDONED)

    # --- the end of a session ----------------------------------------------------------------------------

    def on_session_end(self, active: ActiveSession, end: SessionEnd) -> None:
        """Settle what was refused; requeue unanswered recipients, except the one that the session's end answers."""
        exchanges = active.assignment.exchanges
        self.settle_missing(active, end)
        for probe in self.lost_probes(active, end):
            exchanges.add_probe(probe)
        unasked = [active.positions[recipient] for recipient in end.unasked if recipient in active.positions]
        answered = self.answered_by_end(active, end, unasked) if end.classification is not None else None
        unasked = [position for position in unasked if position != answered]
        for position in unasked:
            self.move(position, S.QUEUED)
            self.began.pop(position, None)  # it was not its turn
        active.queue.put_back(unasked)
        if answered is not None:
            self.on_broken_session(active, end, answered)
        if not active.has_answer and end.classification is not None:
            exchanges.silent_for += self.clock() - active.began
            if exchanges.silent_for >= self.settings.deadline:
                self.give_up(exchanges, end_evidence(active.assignment.host.name, end))

    def settle_missing(self, active: ActiveSession, end: SessionEnd) -> None:
        """Settle the missing mailboxes of a session; if its server may refuse everybody, ask one it should accept."""
        missing, since = active.missing, active.missing_before
        if end.is_out_of_step:
            self.settle_all((position, without_result(evidence, OUT_OF_STEP)) for position, evidence in missing)
            return
        host = active.assignment.host.name
        probes, doubted = self.probes[host], missing[since:]
        if active.accepted:
            probes.accepted, probes.missing_in_a_row = active.accepted, 0
        if active.accepted or probes.is_selective:
            self.settle_all(self.held.pop(host, []))
        probes.missing_in_a_row += len(doubted)
        if probes.missing_in_a_row < DOUBTED_AFTER or not (probes.accepted or self.may_refuse_everybody(active)):
            self.settle_all(missing)
            return
        self.settle_all(missing[:since])
        for position, _ in doubted:
            self.move(position, S.AWAITING_PROBE)
        if host in self.held:
            self.held[host] += doubted
        elif doubted and probes.doubt(doubted, self.domains[self.codes[doubted[-1][0]]]):
            active.assignment.exchanges.add_probe(Probe(host, None))

    def may_refuse_everybody(self, active: ActiveSession) -> bool:
        """Whether a server that accepted and deferred no address refused many, or may yet do so."""
        host = active.assignment.host.name
        if self.probes[host].is_selective:
            return False
        return active.queue.size > 0 or host in self.held or self.probes[host].missing_in_a_row >= SUSPICIOUS

    @staticmethod
    def is_suspicious(probes: HostProbes) -> bool:
        """Whether a server refused so many, and nobody else got another reply, that it may refuse everybody."""
        return not (probes.accepted or probes.is_selective) and probes.missing_in_a_row >= SUSPICIOUS

    def settle_held(self) -> None:
        """Settle what was held: missing mailboxes, unless so many were refused that the server may refuse everybody."""
        for host in list(self.held):
            is_suspicious = self.is_suspicious(self.probes[host])
            for position, evidence in self.held.pop(host):
                self.settle(position, without_result(evidence, NONE_ACCEPTED) if is_suspicious else evidence)

    def answered_by_end(self, active: ActiveSession, end: SessionEnd, unasked: list[int]) -> int | None:
        """The address that the end of a session answers: the one being asked, or the first if the client is refused."""
        assert end.classification is not None
        if end.recipient is not None and end.classification.action is Action.NONE:
            return active.positions.get(end.recipient)
        if end.classification.reason in CLIENT_REFUSED:
            if unasked:
                return unasked[0]
            for position in active.queue.draw(1):
                self.move(position, S.ASKED)
                return position
        return None

    def on_broken_session(self, active: ActiveSession, end: SessionEnd, position: int) -> None:
        """A refusal of the client is an answer; a broken session is one if it breaks again on the same address."""
        assert end.classification is not None
        self.began.setdefault(position, active.began)
        self.drops[position] += 1
        is_refused = end.classification.reason in CLIENT_REFUSED
        evidence = end_evidence(active.assignment.host.name, end)
        if not (is_refused or self.drops[position] >= DROPS or self.is_late(position)):
            self.move(position, S.QUEUED)
            active.queue.put_back([position])
        elif not self.requeue_for_next(active.assignment, position, evidence):
            self.settle(position, evidence)

    def lost_probes(self, active: ActiveSession, end: SessionEnd) -> list[Probe]:
        """Probes to send again; one that breaks sessions is given up."""
        again = []
        for recipient, probe in active.probes.items():
            if recipient == end.recipient and self.probes[probe.host].count_loss(probe):
                self.give_up_probe(probe)
            else:
                again.append(probe)
        return again

    def requeue_or_fail(self, exchanges: ExchangeSet) -> None:
        """Settle the addresses that have no exchange left; the others wait for the next exchange."""
        for positions in exchanges.drain_unservable():
            self.abandon(positions, closed_evidence(*pick_closed(exchanges)))
        for mx_index, queue in enumerate(exchanges.queues):
            if queue.probes and exchanges.hosts[mx_index].closed:
                self.move_probes(exchanges, mx_index)

    def give_up(self, exchanges: ExchangeSet, evidence: MailboxEvidence) -> None:
        """Settle all waiting addresses of a set without an answer for a whole deadline, with the last failure."""
        exchanges.silent_for = 0.0
        for queue in exchanges.queues:
            self.abandon(queue.drain(), evidence)
            probes, queue.probes = queue.probes, []
            for probe in probes:
                self.give_up_probe(probe)

    def move_probes(self, exchanges: ExchangeSet, mx_index: int) -> None:
        """Ask the next exchange about the domains of a closed one, or give the probes up."""
        probes, exchanges.queues[mx_index].probes = exchanges.queues[mx_index].probes, []
        next_host = exchanges.host_for(mx_index + 1)
        for probe in probes:
            if next_host is None or probe.domain is None:
                self.give_up_probe(probe)
            else:
                exchanges.probes_at(next_host).append(probe)

    def give_up_probe(self, probe: Probe) -> None:
        """What a probe asks stays undetermined: whether a domain accepts every address, and doubted refusals."""
        probes, code = self.probes[probe.host], probe.domain
        if code is not None:
            self.settle_all(probes.give_up(code))
        elif probes.accepted:
            self.settle_all(probes.release_doubted(NOT_CONFIRMED))
        else:
            self.held[probe.host] += probes.take_doubted()

    def notices(self) -> list[str]:
        """Warn of mail servers that accepted nobody: it cannot be told whether they refuse everybody."""
        refusing = {name: each.missing_in_a_row for name, each in self.probes.items() if self.is_suspicious(each)}
        found = Counter(refusing).most_common()
        shown = [f"{name} ({count:,})" for name, count in found[:SHOWN_SERVERS]]
        if len(found) > len(shown):
            shown.append(f"{len(found) - len(shown):,} more")
        if not shown:
            return []
        return [
            "mail servers that accepted no address, not even postmaster, and refused all as unknown: "
            f"{', '.join(shown)}; most of these addresses are unknown, since such a server may refuse this machine"
        ]


# --- evidence ------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def reply_evidence(host: str, classification: Classification, reply: Reply | None) -> MailboxEvidence:
    """What a reply to RCPT shows; there is none where the recipient could not be asked.

    Cached, since a server repeats its replies: making the value takes five times as long as finding it.
    """
    reason = classification.reason
    return MailboxEvidence(
        classification,
        host=host,
        port_open=True,
        connected=True,
        rcpt_accepted=None if reply is None else reason is None,
        # A mailbox that is refused as unknown shows by itself that not every address is accepted.
        catch_all=catch_all_of(classification) if reason is Reason.MAILBOX_NOT_FOUND else None,
        protected=reason is Reason.PROTECTED,
        reply=str(reply)[:SHOWN] if reply is not None else classification.rule.replace("_", " "),
    )


def end_evidence(host: str, end: SessionEnd) -> MailboxEvidence:
    """What the end of a session shows about the address being asked; never that the mailbox does not exist."""
    classification = end.classification
    assert classification is not None
    if classification.reason in ABOUT_MAILBOX:
        classification = UNCLEAR
    return MailboxEvidence(
        classification,
        host=host,
        port_open=end.phase != "connect",
        connected=end.reached in ("ehlo", "mail") if end.phase != "connect" else None,
        protected=True if classification.reason is Reason.PROTECTED else None,
        reply=end.detail[:SHOWN],
    )


def closed_evidence(host: str, closed: ClosedExchange) -> MailboxEvidence:
    """What a closed exchange shows about the addresses that wait for it."""
    end = SessionEnd(closed.classification, closed.phase, closed.detail, reached=closed.reached)
    return replace(end_evidence(host, end), inferred=closed.is_inferred)


def pick_closed(exchanges: ExchangeSet) -> tuple[str, ClosedExchange]:
    """The closed exchange to report for a set: the first one that was reached, else the first.

    That a domain takes no mail at all (RFC 7504) is established only if every exchange replies so.
    """
    pairs = [(host.name, host.closed) for host in exchanges.hosts if host.closed]
    return min(pairs, key=lambda pair: REPORT_ORDER.get(pair[1].classification.reason, 0))


REPORT_ORDER: dict[Reason | None, int] = {Reason.PORT_CLOSED: 1, Reason.NO_MX_RECORD: 2}
