"""Who we say we are to an exchange."""

from __future__ import annotations

import asyncio
import random
import re
import socket
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np

from ...backend import Event, Noticed, Settled, Waiting
from ...checks.dns.answers import AddressAnswer, AnswerOutcome
from ...checks.dns.resolver import Resolver
from ...checks.smtp.classify.classification import Action, Classification
from ...checks.smtp.protocol.session import Session
from ...checks.smtp.protocol.steps import LimitObserved, Recipient, RecipientAnswer, SessionEnd, SessionPlan
from ...checks.smtp.providers import Provider, find_provider, load_providers
from ...checks.smtp.transport.dial import may_dial
from ...checks.smtp.transport.driver import SessionTimeouts, Transcript, drive_session
from ...model.evidence import DomainEvidence, MailboxEvidence
from ...model.settings import LocalSettings
from ...model.words import Reason, ValidationType
from ..batch import ColumnView, Positions
from ..domains import FLUSH_SECONDS, DomainRows, DomainStage, gather_groups
from .politeness import ExchangeState
from .queues import ExchangeSet
from .results import ResultBuffer, find_aliases
from .scheduler import Assignment, Scheduler
from .tracker import ActiveSession, RecipientTracker

__all__ = ["MailboxStage", "SmtpEngine", "find_helo_name"]

FULL_NAME = re.compile(r"(?=.{4,253}\Z)(?:(?!-)[A-Za-z0-9-]{1,63}(?<!-)\.)+[A-Za-z][A-Za-z0-9-]*")


async def find_helo_name(settings: LocalSettings) -> str:
    """Give the name for EHLO: as set, else this host's own, which may have to be looked up.

    Parameters
    ----------
    settings : LocalSettings
        May name it.

    Returns
    -------
    str
        ``localhost`` where this host has no full name; many servers refuse that, and `audit_host` says so.
    """
    return settings.helo_name if settings.helo_name is not None else await asyncio.to_thread(own_name)


def own_name() -> str:
    """The full name of this host."""
    name = socket.getfqdn()
    return name if FULL_NAME.fullmatch(name) else "localhost"


LONGEST_QUIT = 5.0  # seconds for the reply to QUIT, which changes nothing
SHORTEST_SESSION = 1.0  # seconds, however little is left of a deadline
UNRESOLVED = Classification(Reason.INCONCLUSIVE, "exchange_not_resolved", error_code="DNS")


class SmtpEngine:
    """One run's sessions; made on the event loop that they run on.

    Parameters
    ----------
    settings : LocalSettings
        Limits and waits.
    resolver : Resolver
        Finds the addresses of exchanges.
    results : ResultBuffer
        Where settled addresses go.
    helo_name : str
        Our name.
    providers : mapping of str to Provider, optional
        What is known of large providers, by suffix of their exchanges.
    clock : callable, optional
        Seconds of a monotonic clock; the event loop's own by default.
    rng : random.Random, optional
        Jitter, names of probes, order of equal preferences.
    transcript : list, optional
        Gets every line of every dialogue.
    """

    def __init__(
        self,
        settings: LocalSettings,
        resolver: Resolver,
        results: ResultBuffer,
        *,
        helo_name: str,
        providers: Mapping[str, Provider] | None = None,
        clock: Callable[[], float] | None = None,
        rng: random.Random | None = None,
        transcript: Transcript | None = None,
    ) -> None:
        self.settings, self.resolver, self.results = settings, resolver, results
        self.providers = providers or {}
        self.clock = clock or asyncio.get_running_loop().time
        self.rng = rng or random.Random()
        self.transcript = transcript
        self.tracker = RecipientTracker(settings, results, self.clock, self.rng)
        self.scheduler = Scheduler(settings)
        self.sets: dict[tuple[str, ...], ExchangeSet] = {}
        self.hosts: dict[str, ExchangeState] = {}
        self.sets_of: defaultdict[str, list[ExchangeSet]] = defaultdict(list)
        self.tasks: set[asyncio.Task[None]] = set()
        self.fault: BaseException | None = None
        self.change = asyncio.Event()
        self.connections = self.failed_connections = 0
        self.plan = SessionPlan(
            helo_name=helo_name,
            mail_from=settings.mail_from,
            rcpt_per_transaction=settings.rcpt_per_transaction,
            rcpt_per_session=settings.rcpt_per_session,
            refusal_budget=settings.refusal_budget,
        )

    # --- filling and looking ------------------------------------------------------------------------

    def add_domain(self, code: int, seen: DomainEvidence, positions: Positions) -> None:
        """Queue the addresses of a domain, or settle them where there is nobody to ask."""
        self.results.domains[code] = seen
        if not seen.exchanges:
            for position in positions.tolist():
                self.results.add(position, None)
            return
        self.tracker.unsettled += len(positions)
        exchanges = self.exchange_set(seen)
        exchanges.add(positions)
        self.serve(exchanges)

    def exchange_set(self, seen: DomainEvidence) -> ExchangeSet:
        """The set of a domain's exchanges, the same for every domain that has them."""
        key = tuple(f"{e.preference} {e.host}" for e in seen.exchanges)
        if key not in self.sets:
            ranked = sorted(seen.exchanges, key=lambda e: (e.preference, self.rng.random()))
            hosts = [self.host(name) for name in dict.fromkeys(e.host for e in ranked)]
            self.sets[key] = made = ExchangeSet(hosts, self.settings.max_exchange_attempts)
            for host in hosts:
                self.sets_of[host.host].append(made)
        return self.sets[key]

    def host(self, name: str) -> ExchangeState:
        """The state of an exchange, shared by all sets it belongs to."""
        if name not in self.hosts:
            provider = find_provider(name, self.providers)
            self.hosts[name] = ExchangeState(name, self.settings, self.plan, provider)
        return self.hosts[name]

    def serve(self, exchanges: ExchangeSet) -> None:
        """A set has more to ask, or fewer to ask it of."""
        self.tracker.requeue_or_fail(exchanges)
        self.scheduler.offer(exchanges)

    def is_done(self) -> bool:
        """Whether every address taken in is settled and every session over."""
        return not (self.tasks or self.tracker.unsettled)

    def has_only_closed_ports(self) -> bool:
        """Whether connections were tried and not one was made."""
        return self.failed_connections > 0 and not self.connections

    async def work(self, patience: float) -> None:
        """Open what may be opened, and wait until something happens, or it is time to look again.

        Parameters
        ----------
        patience : float
            Seconds to wait at most.
        """
        self.pump()
        if self.scheduler.has_more():
            patience = 0.0
        moments = [m for m in (self.scheduler.next_moment(), self.tracker.retries.next_moment()) if m is not None]
        try:
            async with asyncio.timeout(min([patience, *(max(0.0, m - self.clock()) for m in moments)])):
                await self.change.wait()
        except TimeoutError:
            pass
        self.change.clear()
        if self.fault is not None:
            raise self.fault

    def waiting_for(self) -> tuple[float, str] | None:
        """What an engine with nothing under way waits for, in seconds and words."""
        due = self.tracker.retries.next_moment()
        if self.tasks or due is None:
            return None
        wait = max(0.0, due - self.clock())
        return wait, f"{len(self.tracker.retries):,} greylisted, asked again in {wait:.0f} s"

    async def aclose(self) -> None:
        """End every session; each says QUIT."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    # --- opening sessions -----------------------------------------------------------------------------

    def pump(self) -> None:
        """Open what may be opened now, a few at a time: the longest queues are not to be crowded out."""
        now = self.clock()
        for exchanges in self.tracker.unpark(now):
            self.serve(exchanges)
        for assignment in self.scheduler.assignments(now):
            self.spawn(self.run_session(assignment))
        for host in self.scheduler.take_unresolved():
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
        answer = await self.resolver.addresses(host.host)
        host.addresses = tuple(a for a in map(str, answer.addresses) if may_dial(a, self.settings.allow_networks))
        if not host.addresses:
            classification = UNRESOLVED if answer.outcome is AnswerOutcome.UNDETERMINED else None
            host.close_undialled(why_undialled(answer), classification)
            self.close_exchange(host)
        self.scheduler.resolved(host)

    def close_exchange(self, host: ExchangeState) -> None:
        """An exchange is asked no more: its sets go on to the next, or have no other."""
        for exchanges in self.sets_of.pop(host.host, ()):
            self.serve(exchanges)

    # --- one session ----------------------------------------------------------------------------------

    async def run_session(self, assignment: Assignment) -> None:
        """Hold one session and take in what came of it."""
        active = ActiveSession(assignment, self.clock())
        session = Session(assignment.host.plan, lambda count: self.supply(active, session, count))
        try:
            end = await drive_session(
                session,
                [assignment.address],
                port=self.settings.smtp_port,
                limits=self.limits(assignment),
                handle=lambda event: self.take(active, event),
                allow_networks=self.settings.allow_networks,
                transcript=self.transcript,
            )
            self.ended(active, end)
        finally:
            self.scheduler.end(assignment, is_proved=active.answered_at is not None)

    def limits(self, assignment: Assignment) -> SessionTimeouts:
        """How long a session may take: what is left of the deadline of those who waited through others."""
        settings, exchanges = self.settings, assignment.exchanges
        first = next(iter(exchanges.queues[assignment.mx_index].returned), -1)
        age = self.clock() - self.tracker.begun.get(first, self.clock())
        left = settings.deadline - max(age, exchanges.silent_for)
        return SessionTimeouts(
            connect=settings.connect_timeout,
            command=settings.command_timeout,
            session=max(SHORTEST_SESSION, min(settings.session_deadline, left)),
            quit=min(LONGEST_QUIT, settings.command_timeout),
        )

    def supply(self, active: ActiveSession, session: Session, count: int) -> list[Recipient]:
        """Hand a session what to ask next; at the first time, see how many refusals it may meet."""
        if not active.budget:
            host, waiting = active.assignment.host, active.assignment.exchanges.waiting()
            active.is_pipelining = session.can_pipeline
            active.budget = session.budget = host.grant_budget(waiting, is_pipelining=active.is_pipelining)
        expected = count * session.refused / max(1, session.asked)
        session.is_last_window = session.asked > 0 and self.tracker.is_tail(active, count, expected)
        return self.tracker.supply(active, count)

    def take(self, active: ActiveSession, event: RecipientAnswer | LimitObserved) -> None:
        """Take in one answer, or a limit that the exchange showed; one that answers may be worth another session."""
        if isinstance(event, LimitObserved):
            active.assignment.host.learn(event)
            return
        is_first = active.answered_at is None
        self.tracker.take(active, event)
        if is_first and active.answered_at is not None:
            self.scheduler.proved(active.assignment)
            self.change.set()

    def ended(self, active: ActiveSession, end: SessionEnd) -> None:
        """Take in how a session ended."""
        host = active.assignment.host
        if end.phase == "connect":
            self.failed_connections += 1
        else:
            self.connections += 1
        host.ended(end, active.budget, active.assignment.address, self.tracker.pause(active))
        if end.classification is not None and end.classification.action is Action.BACK_OFF:
            host.back_off(end, self.clock(), self.rng.random())
        self.tracker.take_back(active, end)
        if host.closed:
            self.close_exchange(host)
        self.tracker.requeue_or_fail(active.assignment.exchanges)


def why_undialled(answer: AddressAnswer) -> str:
    """Why an exchange has no address that may be dialled."""
    if answer.addresses:
        shown = ", ".join(str(address) for address in answer.addresses[:3])
        return f"{shown}: not a public address, and not in allow_networks"
    return answer.message or "the exchange has no address"


FLUSH_ROWS = 5000  # rows that are handed on at once, though time is not up
NOT_ASKED = -1
PORT_CLOSED_NOTICE = (
    "no exchange could be connected to: outgoing connections to port 25 seem to be closed on this network, "
    "so that nothing could be established about any mailbox; mailverdict.audit_host() tells more"
)


class MailboxStage:
    """Asks the exchanges about mailboxes.

    Parameters
    ----------
    settings : LocalSettings
        Every limit and wait.
    domains : DomainStage
        Whose resolver is used.
    rng : random.Random, optional
        Jitter, names of probes, order of equal preferences.
    """

    def __init__(self, settings: LocalSettings, domains: DomainStage, rng: random.Random | None = None) -> None:
        self.settings = settings
        self.domains = domains
        self.rng = rng or random.Random()
        self.providers = load_providers()
        self.helo_name: str | None = None

    async def settle(self, view: ColumnView, clock: Callable[[], datetime]) -> AsyncGenerator[Event, None]:
        """Yield rows as they settle: dead domains first, then whatever an exchange has answered."""
        results = ResultBuffer(view)
        engine = await self.engine(view, results)
        feeding = asyncio.create_task(self.feed(engine, view, results))
        feeding.add_done_callback(lambda _: engine.change.set())
        try:
            async for _ in self.pulse(engine, feeding):
                for event in self.drain(engine, results, clock):
                    yield event
            if engine.has_only_closed_ports() and len(view.texts) > 1:  # one closed port shows nothing of a network
                yield Noticed(PORT_CLOSED_NOTICE)
        finally:
            feeding.cancel()
            await engine.aclose()

    async def pulse(self, engine: SmtpEngine, feeding: asyncio.Task[None]) -> AsyncIterator[None]:
        """Keep an engine at work; beat when rows should be handed on, for the last time when it is done."""
        due = engine.clock() + FLUSH_SECONDS
        while not (feeding.done() and engine.is_done()):
            await engine.work(max(0.0, due - engine.clock()))
            if feeding.done():
                feeding.result()
            if engine.clock() >= due or len(engine.results) >= FLUSH_ROWS:
                yield
                due = engine.clock() + FLUSH_SECONDS
        yield

    async def engine(self, view: ColumnView, results: ResultBuffer, transcript: Transcript | None = None) -> SmtpEngine:
        """An engine for one view; a lone address is not held back for minutes: whoever asks about one asks again."""
        settings = self.settings if len(view.texts) > 1 else replace(self.settings, retry_greylisted=0)
        if self.helo_name is None:
            self.helo_name = await find_helo_name(self.settings)
        resolver, name = self.domains.resolver, self.helo_name
        return SmtpEngine(
            settings, resolver, results, helo_name=name, providers=self.providers, rng=self.rng, transcript=transcript
        )

    async def ask_one(self, view: ColumnView, seen: DomainEvidence, transcript: Transcript) -> MailboxEvidence | None:
        """Ask about the only address of a view and keep every line of the dialogue."""
        results = ResultBuffer(view)
        engine = await self.engine(view, results, transcript)
        try:
            engine.add_domain(0, seen, np.zeros(1, np.int64))
            while not engine.is_done():
                await engine.work(FLUSH_SECONDS)
        finally:
            await engine.aclose()
        return results.items[0][1]

    async def feed(self, engine: SmtpEngine, view: ColumnView, results: ResultBuffer) -> None:
        """Look up every domain once; those with exchanges are queued, the others are settled."""
        positions, results.aliases = find_aliases(view, view.accepted())
        asked = np.full(len(view.texts), NOT_ASKED, np.int32)
        asked[positions] = results.codes[positions]
        rows = DomainRows(asked, len(view.syntax.domains))
        async for group in gather_groups(self.domains.observe(view.syntax.domains.to_pylist(), ValidationType.MX)):
            for code, seen, _ in group:
                engine.add_domain(code, seen, rows.of([code])[0])
            engine.change.set()

    def drain(self, engine: SmtpEngine, results: ResultBuffer, clock: Callable[[], datetime]) -> list[Event]:
        """What has settled since the last look, and what is being waited for."""
        events: list[Event] = []
        if len(results):
            positions, table = results.take(clock())
            events.append(Settled(table, positions=positions))
        if (waiting := engine.waiting_for()) is not None:
            events.append(Waiting(*waiting))
        return events
