"""What replies, broken sessions and closed exchanges show about a mailbox: evidence, never a verdict. Pure."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from ...checks.smtp.classify.classification import ABOUT_MAILBOX, Action, Classification
from ...checks.smtp.classify.classifier import catch_all_of
from ...checks.smtp.protocol.steps import Recipient, RecipientAnswer, SessionEnd
from ...checks.smtp.replies import Reply
from ...model.evidence import MailboxEvidence
from ...model.settings import LocalSettings
from ...model.words import Reason
from .catch_all import CatchAllProbes, PendingAnswer
from .greylisting import RetrySchedule
from .politeness import REFUSED_US, UNCLEAR, ClosedExchange
from .queues import ExchangeSet
from .results import ResultBuffer
from .scheduler import Assignment

__all__ = ["ActiveSession", "RecipientTracker", "answer_evidence", "closed_evidence", "ended_evidence", "pick_closed"]

SHOWN = 400  # characters of a reply that are kept


def answer_evidence(host: str, classification: Classification, reply: Reply | None) -> MailboxEvidence:
    """What a reply to RCPT shows; a recipient that could not be asked has no reply.

    A mailbox that is refused as unknown shows by itself that not every address is accepted.
    """
    reason = classification.reason
    return MailboxEvidence(
        classification,
        host=host,
        port_open=True,
        connected=True,
        rcpt_accepted=None if reply is None else reason is None,
        catch_all=catch_all_of(classification) if reason is Reason.MAILBOX_NOT_FOUND else None,
        protected=reason is Reason.PROTECTED,
        reply=str(reply)[:SHOWN] if reply is not None else classification.rule.replace("_", " "),
    )


def ended_evidence(host: str, end: SessionEnd) -> MailboxEvidence:
    """What a session that broke shows about the address whose turn it was; never that there is no mailbox."""
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
    """What is said of addresses whose exchange is left alone."""
    end = SessionEnd(closed.classification, closed.phase, closed.detail, reached=closed.reached)
    return replace(ended_evidence(host, end), inferred=closed.is_inferred)


def pick_closed(exchanges: ExchangeSet) -> tuple[str, ClosedExchange]:
    """Which of the exchanges that are left alone speaks for all: the first that tells most, and claims least.

    That one takes no mail at all (RFC 7504) is established only if every other one says so too.
    """
    pairs = [(host.host, host.closed) for host in exchanges.hosts if host.closed]
    return min(pairs, key=lambda pair: WEIGHT.get(pair[1].classification.reason, 0))


WEIGHT: dict[Reason | None, int] = {Reason.PORT_CLOSED: 1, Reason.NO_MX_RECORD: 2}


DROPS = 2  # sessions that broke on one address before it is told so
FINAL = ABOUT_MAILBOX | {Reason.SYNTAX_ERROR}  # no other exchange would say anything else


@dataclass(slots=True, eq=False)
class ActiveSession:
    """One session under way.

    Attributes
    ----------
    assignment : Assignment
        Where.
    began : float
        Clock reading.
    budget : int
        Refusals that it may meet; 0: it has asked nobody yet.
    is_pipelining : bool
        Whether it asks many at once.
    positions, probes : dict
        Which recipient is which address, and which domain's random address.
    has_asked : bool
        Whether it was given anybody to ask about; the first window is never too small.
    answered_at : float or None
        Clock reading of the last answer.
    """

    assignment: Assignment
    began: float
    budget: int = 0
    is_pipelining: bool = False
    positions: dict[Recipient, int] = field(default_factory=dict)
    probes: dict[Recipient, int] = field(default_factory=dict)
    has_asked: bool = False
    answered_at: float | None = None


class RecipientTracker:
    """Questions and answers of one run.

    Parameters
    ----------
    settings : LocalSettings
        Limits and waits.
    results : ResultBuffer
        Where settled addresses go.
    clock : callable
        Seconds of a monotonic clock.
    rng : random.Random
        Names of probes.

    Attributes
    ----------
    unsettled : int
        Addresses taken in and not settled yet.
    """

    def __init__(
        self, settings: LocalSettings, results: ResultBuffer, clock: Callable[[], float], rng: random.Random
    ) -> None:
        self.settings, self.results, self.clock, self.rng = settings, results, clock, rng
        self.domains = results.view.syntax.domains.to_pylist()
        self.local_parts = results.view.syntax.local
        self.codes = results.codes
        self.book = CatchAllProbes()
        assert isinstance(settings.retry_greylisted, float)
        self.retries = RetrySchedule(settings.retry_greylisted)
        self.drops: Counter[int] = Counter()
        self.last_word: dict[int, MailboxEvidence] = {}  # of addresses that moved on to another exchange
        self.begun: dict[int, float] = {}  # when an address was first asked about
        self.unsettled = 0

    # --- questions -----------------------------------------------------------------------------------

    def supply(self, active: ActiveSession, count: int) -> list[Recipient]:
        """Hand a session what to ask next: due probes first, then its queue; nothing where it had better end."""
        exchanges = active.assignment.exchanges
        queue = exchanges.queues[active.assignment.mx_index]
        if active.assignment.host.closed or self.is_tail(active, count):
            return []
        codes, exchanges.probes = exchanges.probes[:count], exchanges.probes[count:]
        probes = {Recipient(self.book.probe_of(c, self.domains[c], self.rng), is_probe=True): c for c in codes}
        active.probes |= probes
        addresses = self.addresses(queue.take(count - len(probes)))
        active.positions |= addresses
        active.has_asked = True
        return [*probes, *addresses]

    def addresses(self, positions: list[int]) -> dict[Recipient, int]:
        """Addresses as they go into RCPT; their time begins now."""
        now, found = self.clock(), {}
        for position in positions:
            self.begun.setdefault(position, now)
            local = self.local_parts[position].as_py()  # few at a time: quicker than a take of all of them
            found[Recipient(f"{local}@{self.domains[self.codes[position]]}")] = position
        return found

    def is_tail(self, active: ActiveSession, count: int, refusals: float = 0.0) -> bool:
        """Whether windows are so small, once `refusals` more have come, that a fresh session asks the rest sooner."""
        assignment = active.assignment
        waiting = assignment.exchanges.queues[assignment.mx_index].size + len(assignment.exchanges.probes)
        is_on_trial = active.budget > assignment.host.plan.refusal_budget
        is_small = 3 * (count - refusals) < active.budget
        return is_small and waiting > count and active.is_pipelining and active.has_asked and not is_on_trial

    def pause(self, active: ActiveSession) -> float:
        """Seconds since the last answer: how long the farewell took."""
        return 0.0 if active.answered_at is None else self.clock() - active.answered_at

    # --- answers --------------------------------------------------------------------------------------

    def take(self, active: ActiveSession, event: RecipientAnswer) -> None:
        """Take in one answer."""
        exchanges, reply = active.assignment.exchanges, event.reply
        if reply is not None:
            active.answered_at = self.clock()
            exchanges.silent_for = 0.0
            active.assignment.host.answered(event.classification, reply)
        if event.recipient.is_probe:
            self.take_probe(exchanges, active.probes.pop(event.recipient), event)
        else:
            self.take_answer(active.assignment, active.positions.pop(event.recipient), event)

    def take_probe(self, exchanges: ExchangeSet, code: int, event: RecipientAnswer) -> None:
        """A domain is known, or asked once more when greylisting is over."""
        classification = event.classification
        wait = classification.retry_after
        if classification.reason is Reason.GREYLISTED and self.retries.park_probe(exchanges, code, wait, self.clock()):
            return
        self.settle_all(self.book.answered(code, classification, event.reply))

    def take_answer(self, assignment: Assignment, position: int, event: RecipientAnswer) -> None:
        """Settle an address, hold it for its domain's probe, park it, or let another exchange say."""
        classification, reply = event.classification, event.reply
        if classification.reason is Reason.GREYLISTED and self.park(assignment.exchanges, position, classification):
            return
        evidence = answer_evidence(assignment.host.host, classification, reply)
        ambiguous = classification.reason is Reason.INCONCLUSIVE and reply is not None and reply.code >= 500
        if classification.reason is None or ambiguous:
            self.hold_for_probe(assignment, position, event, evidence)
        elif classification.reason in FINAL or not self.move_on(assignment, position, evidence):
            self.settle(position, evidence)

    def hold_for_probe(
        self, assignment: Assignment, position: int, event: RecipientAnswer, evidence: MailboxEvidence
    ) -> None:
        """What this answer is worth depends on what a random address of the domain is told."""
        code = int(self.codes[position])
        provider = assignment.host.provider
        if provider is not None and provider.catch_all is not None:
            self.book.note(code, accepts_all=provider.catch_all)
        elif not self.settings.catch_all_probe:
            self.book.note(code, accepts_all=None)
        self.settle_all(self.book.hold(code, PendingAnswer(position, event.recipient.address, evidence, event.reply)))
        self.want_probe(assignment.exchanges, code)

    def want_probe(self, exchanges: ExchangeSet, code: int) -> None:
        """Have a domain's random address asked, once."""
        if self.settings.catch_all_probe and self.book.wants_probe(code):
            exchanges.probes.append(code)

    def park(self, exchanges: ExchangeSet, position: int, classification: Classification) -> bool:
        """Ask once more in this run, after the server's own wait or ours; its domain's probe waits along."""
        if not self.retries.park(exchanges, position, classification.retry_after, self.clock()):
            return False
        self.begun.pop(position, None)
        self.want_probe(exchanges, int(self.codes[position]))
        return True

    def unpark(self, now: float) -> Iterable[ExchangeSet]:
        """Queue what has waited long enough; gives the sets that have more to do."""
        for parked in self.retries.due(now):
            parked.exchanges.queues[0].put_back(parked.positions)
            parked.exchanges.probes += parked.probes
            yield parked.exchanges

    def move_on(self, assignment: Assignment, position: int, evidence: MailboxEvidence) -> bool:
        """Queue an address for the next exchange by preference, if there is one and time left."""
        mx_index = assignment.exchanges.mx_index_after(assignment.host)
        if mx_index is None or self.is_late(position):
            return False
        self.last_word[position] = evidence
        assignment.exchanges.queues[mx_index].append(position)
        return True

    def is_late(self, position: int) -> bool:
        """Whether an address has had its time."""
        return self.clock() - self.begun.get(position, self.clock()) >= self.settings.deadline

    # --- settling ---------------------------------------------------------------------------------------

    def settle(self, position: int, evidence: MailboxEvidence) -> None:
        """An address is done."""
        self.unsettled -= 1
        self.begun.pop(position, None)
        self.last_word.pop(position, None)
        self.results.add(position, evidence)

    def settle_all(self, settled: Iterable[tuple[int, MailboxEvidence]]) -> None:
        """Addresses that waited for their domain are done."""
        for position, evidence in settled:
            self.settle(position, evidence)

    def settle_waiting(self, positions: Iterable[int], evidence: MailboxEvidence) -> None:
        """What an exchange said to the address itself outranks why it is asked no more."""
        for position in positions:
            self.settle(position, self.last_word.get(position, evidence))

    # --- what a session leaves behind -----------------------------------------------------------------

    def take_back(self, active: ActiveSession, end: SessionEnd) -> None:
        """Queue again what was drawn and not answered, but for whom the end of the session says something about."""
        exchanges = active.assignment.exchanges
        exchanges.probes += self.lost_probes(active, end)
        left = [active.positions[recipient] for recipient in end.unasked if recipient in active.positions]
        told = self.whom_it_tells(active, end, left) if end.classification is not None else None
        for position in left:
            if position != told:
                self.begun.pop(position, None)  # it was not its turn
        exchanges.queues[active.assignment.mx_index].put_back(position for position in left if position != told)
        if told is not None:
            self.tell(active, end, told)
        if active.answered_at is None and end.classification is not None:
            exchanges.silent_for += self.clock() - active.began
            if exchanges.silent_for >= self.settings.deadline:
                self.give_up(exchanges, ended_evidence(active.assignment.host.host, end))

    def whom_it_tells(self, active: ActiveSession, end: SessionEnd, left: list[int]) -> int | None:
        """The address that the end of a session is an answer to: whose turn it was, else whoever comes first."""
        assert end.classification is not None
        if end.recipient is not None and end.classification.action is Action.NONE:
            return active.positions.get(end.recipient)
        if end.classification.reason in REFUSED_US:
            queue = active.assignment.exchanges.queues[active.assignment.mx_index]
            return next(iter(left or queue.take(1)), None)
        return None

    def tell(self, active: ActiveSession, end: SessionEnd, position: int) -> None:
        """A refusal of us is an answer; a broken session is one only if it breaks again on the same address."""
        assert end.classification is not None
        assignment = active.assignment
        self.begun.setdefault(position, active.began)
        self.drops[position] += 1
        is_answer = end.classification.reason in REFUSED_US or self.drops[position] >= DROPS or self.is_late(position)
        evidence = ended_evidence(assignment.host.host, end)
        if not is_answer:
            assignment.exchanges.queues[assignment.mx_index].put_back([position])
        elif not self.move_on(assignment, position, evidence):
            self.settle(position, evidence)

    def lost_probes(self, active: ActiveSession, end: SessionEnd) -> list[int]:
        """Probes to send again; a domain whose probe breaks sessions stays undetermined."""
        again = []
        for recipient, code in active.probes.items():
            if recipient == end.recipient and self.book.is_lost(code):
                self.settle_all(self.book.give_up(code))
            else:
                again.append(code)
        return again

    def requeue_or_fail(self, exchanges: ExchangeSet) -> None:
        """Settle what has no exchange left to be asked."""
        for positions in exchanges.stranded():
            self.settle_waiting(positions, closed_evidence(*pick_closed(exchanges)))
        if exchanges.probes and exchanges.host_for(0) is None:
            self.give_up_probes(exchanges)

    def give_up(self, exchanges: ExchangeSet, evidence: MailboxEvidence) -> None:
        """No answer for the whole of the deadline: whoever waits is told how the last session ended."""
        exchanges.silent_for = 0.0
        for queue in exchanges.queues:
            self.settle_waiting(queue.drain(), evidence)
        self.give_up_probes(exchanges)

    def give_up_probes(self, exchanges: ExchangeSet) -> None:
        """Domains whose random address cannot be asked stay undetermined."""
        codes, exchanges.probes = exchanges.probes, []
        for code in codes:
            self.settle_all(self.book.give_up(code))
