"""The engine behind `smtp`: queues, sessions and answers of one run.

Everything happens on one event loop. Sessions draw recipients from the lanes of their exchange set
and hand answers back one by one; each answer settles an address, moves it to the next exchange, or
parks it for a second try.
"""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections import Counter, defaultdict
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Any

from ..checks.dns import Resolver
from ..checks.smtp.dial import may_dial
from ..checks.smtp.finding import ABOUT_MAILBOX, Action, Finding
from ..checks.smtp.session import Session
from ..checks.smtp.steps import Answered, Ended, Learned, Recipient, SessionPlan
from ..checks.smtp.wire import Transcript, WireLimits, converse
from ..model.evidence import DomainEvidence, MailboxEvidence
from ..model.settings import LocalSettings
from ..model.words import Reason
from .answers import answer_evidence, closed_evidence, ended_evidence, pick_closed
from .catchall import CatchAllBook, Held, probe_address
from .dispatch import Assignment, Dispatcher
from .outbox import Outbox
from .parking import Parking
from .plan import ExchangeSet, Lane
from .politeness import Closed, ExchangeState
from .view import ColumnView, Positions

__all__ = ["Engine"]

DROPS = 2  # sessions that broke on one address before it is told so


@dataclass
class Job:
    """One session under way: which recipient is which position."""

    assignment: Assignment
    positions: dict[Recipient, int] = field(default_factory=dict)
    probes: dict[Recipient, int] = field(default_factory=dict)
    has_drawn: bool = False


class Engine:
    """One run's sessions.

    Parameters
    ----------
    settings : LocalSettings
        Limits and waits.
    resolver : Resolver
        Finds the addresses of exchanges.
    view : ColumnView
        The batch.
    outbox : Outbox
        Where settled addresses go.
    rng : random.Random, optional
        Jitter, probe names, order of equal preferences.
    transcript : list, optional
        Gets every line of every dialogue.
    """

    def __init__(
        self,
        settings: LocalSettings,
        resolver: Resolver,
        view: ColumnView,
        outbox: Outbox,
        *,
        rng: random.Random | None = None,
        transcript: Transcript | None = None,
    ) -> None:
        self.settings, self.resolver, self.view, self.outbox = settings, resolver, view, outbox
        self.rng = rng or random.Random()
        self.transcript = transcript
        self.domains = view.syntax.domains.to_pylist()
        self.sets: dict[tuple[str, ...], ExchangeSet] = {}
        self.hosts: dict[str, ExchangeState] = {}
        self.dispatcher = Dispatcher(settings)
        self.book = CatchAllBook()
        self.drops: Counter[int] = Counter()
        self.last_word: dict[int, MailboxEvidence] = {}  # of addresses that moved on to another exchange
        self.begun: dict[int, float] = {}  # when such an address was first asked
        self.parking = Parking(float(settings.retry_greylisted))  # type: ignore[arg-type]
        self.tasks: set[asyncio.Task[None]] = set()
        self.sets_of: defaultdict[str, list[ExchangeSet]] = defaultdict(list)
        self.fault: BaseException | None = None
        self.change = asyncio.Event()
        self.outcomes: Counter[str] = Counter()
        self.limits = WireLimits(settings.connect_timeout, settings.command_timeout, settings.session_deadline)
        self.plan = SessionPlan(
            helo_name=settings.helo_name or default_helo_name(),
            mail_from=settings.mail_from,
            rcpt_per_transaction=settings.rcpt_per_transaction,
            rcpt_per_session=settings.rcpt_per_session,
            refusal_budget=settings.refusal_budget,
        )

    # --- filling and looking ------------------------------------------------------------------------

    def add_domain(self, code: int, seen: DomainEvidence, positions: Positions) -> None:
        """Queue the addresses of a domain, or settle them where there is nobody to ask."""
        self.outbox.domains[code] = seen
        if not seen.exchanges:
            for position in positions.tolist():
                self.outbox.add(position, None)
            return
        exchanges = self.exchange_set(seen)
        exchanges.add(positions)
        self.dispatcher.offer(exchanges)

    def exchange_set(self, seen: DomainEvidence) -> ExchangeSet:
        """The set of a domain's exchanges, the same for every domain that has them."""
        most = self.settings.max_exchange_attempts
        key = tuple(f"{e.preference} {e.host}" for e in seen.exchanges)
        if key not in self.sets:
            ranked = sorted(seen.exchanges, key=lambda e: (e.preference, self.rng.random()))
            hosts = [self.host(e.host) for e in ranked]
            made = ExchangeSet(key, hosts, [e.preference for e in ranked], [Lane() for _ in hosts[:most]])
            self.sets[key] = made
            for host in hosts:
                self.sets_of[host.host].append(made)
        return self.sets[key]

    def host(self, name: str) -> ExchangeState:
        """The state of an exchange, shared by all sets it belongs to."""
        if name not in self.hosts:
            self.hosts[name] = ExchangeState(name, self.settings, self.plan)
        return self.hosts[name]

    def is_idle(self) -> bool:
        """Whether nothing is under way, waiting, parked or to be handed on."""
        waiting = any(s.waiting() for s in self.sets.values()) if not self.tasks else True
        return not (self.tasks or len(self.parking) or waiting or len(self.outbox))

    async def changed(self, patience: float) -> None:
        """Wait until something happens, or it is time to look again."""
        now = time.monotonic()
        moments = [m for m in (self.dispatcher.next_moment(), self.parking.next_moment()) if m is not None]
        patience = min([patience, *(max(0.0, m - now) for m in moments)])
        try:
            async with asyncio.timeout(patience):
                await self.change.wait()
        except TimeoutError:
            pass
        self.change.clear()
        if self.fault is not None:
            raise self.fault
        self.pump()

    def waiting_for(self) -> tuple[float, str] | None:
        """What an idle engine waits for, in seconds and words."""
        due = self.parking.next_moment()
        if self.tasks or due is None:
            return None
        wait = max(0.0, due - time.monotonic())
        return wait, f"{len(self.parking):,} greylisted, asked again in {wait:.0f} s"

    def has_only_closed_ports(self) -> bool:
        """Whether exchanges were tried and not one could be connected to."""
        return set(self.outcomes) == {str(Reason.PORT_CLOSED)}

    async def aclose(self) -> None:
        """End every session; each says QUIT."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    # --- opening sessions -----------------------------------------------------------------------------

    def pump(self) -> None:
        """Open whatever may be opened now."""
        now = time.monotonic()
        self.unpark(now)
        for exchanges in () if self.tasks else self.sets.values():
            self.strand(exchanges)
        for assignment in self.dispatcher.assignments(now):
            self.spawn(self.hold(assignment))
        for host in self.dispatcher.take_unresolved():
            self.spawn(self.resolve(host))

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine as a task of this engine."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.finished)

    def finished(self, task: asyncio.Task[None]) -> None:
        """Forget a task; a fault of our own is not hidden."""
        self.tasks.discard(task)
        self.change.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fault = error

    async def resolve(self, host: ExchangeState) -> None:
        """Find the addresses of an exchange that may be dialled."""
        if host.addresses is None:
            answer = await self.resolver.addresses(host.host)
            found = [str(address) for address in answer.addresses]
            host.addresses = tuple(a for a in found if may_dial(a, self.settings.allow_networks))
            if not host.addresses:
                seen = (
                    f"{', '.join(found)}: not a public address, and not in allow_networks" if found else answer.message
                )
                host.close_undialled(seen or "the exchange has no address")
        self.dispatcher.unblock(host.host)
        self.strand_all(host)
        self.change.set()

    def strand_all(self, host: ExchangeState) -> None:
        """An exchange was left alone: some sets may have no other."""
        for exchanges in self.sets_of[host.host] if host.closed else ():
            self.strand(exchanges)

    async def hold(self, assignment: Assignment) -> None:
        """Hold one session and take in what came of it."""
        job = Job(assignment)
        host = assignment.host
        try:
            end = await converse(
                Session(host.plan, lambda count: self.supply(job, count)),
                [assignment.address],
                port=self.settings.smtp_port,
                limits=self.limits,
                handle=lambda event: self.take(job, event),
                allow_networks=self.settings.allow_networks,
                transcript=self.transcript,
            )
            self.outcomes[str(end.finding.reason) if end.finding and end.phase == "connect" else "reached"] += 1
            host.ended(end, assignment.address, time.monotonic(), self.rng.random)
            self.take_back(job, end)
        finally:
            self.dispatcher.end(assignment, has_drawn=job.has_drawn)
            self.strand(assignment.exchanges)
            self.strand_all(host)
            self.change.set()

    # --- a session's questions and answers ----------------------------------------------------------

    def supply(self, job: Job, count: int) -> list[Recipient]:
        """Hand a session what to ask next: due probes first, then its lane."""
        exchanges = job.assignment.exchanges
        codes, exchanges.probes = exchanges.probes[:count], exchanges.probes[count:]
        probes = {Recipient(probe_address(self.domains[c], self.rng), is_probe=True): c for c in codes}
        job.probes |= probes
        found = {self.recipient(p): p for p in exchanges.lanes[job.assignment.rank].take(count - len(probes))}
        job.positions |= found
        if not job.has_drawn:
            job.has_drawn = True
            self.dispatcher.drew(job.assignment)
            self.change.set()
        return [*probes, *found]

    def recipient(self, position: int) -> Recipient:
        """An address as it goes into RCPT."""
        self.begun.setdefault(position, time.monotonic())
        local = self.view.syntax.local[position].as_py()
        return Recipient(f"{local}@{self.domains[self.outbox.codes[position]]}")

    def take(self, job: Job, event: Answered | Learned) -> None:
        """Take in one answer, or a limit that the exchange showed."""
        host = job.assignment.host
        if isinstance(event, Learned):
            host.learn(event)
            return
        if event.reply is not None:
            host.answered(event.finding)
        if event.recipient.is_probe:
            code = job.probes.pop(event.recipient)
            self.settle_all(self.book.answered(code, event.finding, event.reply, event.recipient.address))
        else:
            self.take_answer(job, job.positions.pop(event.recipient), event)
        self.change.set()

    def take_answer(self, job: Job, position: int, event: Answered) -> None:
        """Settle an address, hold it for its domain's probe, park it, or let another exchange say."""
        finding, host = event.finding, job.assignment.host
        evidence = answer_evidence(host.host, finding, event.reply)
        if finding.reason is Reason.GREYLISTED and self.park(job.assignment.exchanges, position, finding):
            return
        ambiguous = finding.reason is Reason.INCONCLUSIVE and event.reply is not None and event.reply.code >= 500
        if finding.reason is None or ambiguous:
            self.hold_for_probe(job.assignment.exchanges, position, event, evidence)
        elif finding.reason in ABOUT_MAILBOX or not self.move_on(job.assignment, position, evidence):
            self.settle_one(position, evidence)

    def hold_for_probe(self, exchanges: ExchangeSet, position: int, event: Answered, evidence: MailboxEvidence) -> None:
        """What this answer is worth depends on what a random address of the domain is told."""
        code = int(self.outbox.codes[position])
        if not self.settings.catch_all_probe:
            self.settle_one(position, evidence)
            return
        held = Held(position, event.recipient.address, evidence, event.reply)
        self.settle_all(self.book.hold(code, held))
        if self.book.wants_probe(code):
            exchanges.probes.append(code)

    def move_on(self, assignment: Assignment, position: int, evidence: MailboxEvidence) -> bool:
        """Queue an address for the next exchange by preference, if there is one and time left."""
        rank = assignment.exchanges.rank_after(assignment.host)
        late = time.monotonic() - self.begun.get(position, 0.0) > self.settings.deadline
        if rank is None or late or evidence.reason is Reason.SENDER_BLOCKED:
            return False
        self.last_word[position] = evidence
        assignment.exchanges.lanes[rank].put_back([position])
        return True

    def settle_one(self, position: int, evidence: MailboxEvidence) -> None:
        """An address is done."""
        self.begun.pop(position, None)
        self.last_word.pop(position, None)
        known = self.book.known.get(int(self.outbox.codes[position]))
        if evidence.catch_all is None and known is not None:
            evidence = replace(evidence, catch_all=known)
        self.outbox.add(position, evidence)

    def settle_all(self, settled: list[tuple[int, MailboxEvidence]]) -> None:
        """Addresses that waited for their domain are done."""
        for position, evidence in settled:
            self.settle_one(position, evidence)

    # --- what a session leaves behind -----------------------------------------------------------------

    def take_back(self, job: Job, end: Ended) -> None:
        """Queue again what was drawn and not answered; who was being asked when it broke is told after two."""
        exchanges = job.assignment.exchanges
        lane = exchanges.lanes[job.assignment.rank]
        exchanges.probes += self.lost_probes(job, end)
        left = [job.positions[recipient] for recipient in end.unasked if recipient in job.positions]
        suspect = end.finding is not None and end.phase in ("mail", "rcpt") and end.finding.action is Action.NONE
        if left and suspect and end.finding is not None:
            self.drops[left[0]] += 1
            if self.drops[left[0]] >= DROPS:
                evidence = ended_evidence(job.assignment.host.host, end)
                first = left.pop(0)
                if not self.move_on(job.assignment, first, evidence):
                    self.settle_one(first, evidence)
        lane.put_back(left)

    def lost_probes(self, job: Job, end: Ended) -> list[int]:
        """Probes to send again; a domain whose probe breaks sessions stays undetermined."""
        again = []
        for recipient, code in job.probes.items():
            broke = bool(end.finding) and bool(end.unasked) and end.unasked[0] == recipient
            if broke and self.book.is_lost(code):
                self.settle_all(self.book.give_up(code))
            else:
                again.append(code)
        return again

    def strand(self, exchanges: ExchangeSet) -> None:
        """Settle what has no exchange left to be asked."""
        for rank, positions in exchanges.stranded():
            closed = [host.closed for host in exchanges.hosts[rank:] if host.closed]
            self.settle_stranded(exchanges, positions, closed)
        if exchanges.probes and not any(exchanges.hosts_for(0)):
            codes, exchanges.probes = exchanges.probes, []
            for code in codes:
                self.settle_all(self.book.give_up(code))
        self.dispatcher.offer(exchanges)

    def settle_stranded(self, exchanges: ExchangeSet, positions: list[int], closed: list[Closed]) -> None:
        """What an exchange said of the address itself outranks why the others were left alone."""
        host, why = pick_closed(exchanges, closed)
        evidence = closed_evidence(host, why)
        for position in positions:
            self.settle_one(position, self.last_word.get(position, evidence))

    # --- greylisting ------------------------------------------------------------------------------------

    def park(self, exchanges: ExchangeSet, position: int, finding: Finding) -> bool:
        """Ask once more in this run, after the server's own wait or ours; the rest goes first."""
        if not self.parking.park(exchanges, position, finding.retry_after, time.monotonic()):
            return False
        self.begun.pop(position, None)
        return True

    def unpark(self, now: float) -> None:
        """Queue what has waited long enough."""
        for exchanges, positions in self.parking.due(now):
            exchanges.lanes[0].put_back(positions)
            self.strand(exchanges)


def default_helo_name() -> str:
    """Give the name of this host; a name that no PTR record confirms is a reason for refusals."""
    return socket.getfqdn() or "localhost"
