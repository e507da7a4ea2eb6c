"""The SMTP part of the local backend: a stage that yields rows, and the engine that runs its sessions.

`MailboxStage.settle` looks up domains, passes them to an `SmtpEngine` and yields rows as they settle. The engine opens
sessions within the limits (`scheduler`). A session draws recipients from the queues of its exchange set and
reports each answer (`tracker`); when one ends, the next is opened. Everything happens on one event loop.
"""

from __future__ import annotations

import asyncio
import random
import re
import socket
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np

from ...backend import Event, Noticed, Settled, Waiting
from ...checks.dns.answers import AddressAnswer, AnswerOutcome
from ...checks.dns.resolver import Resolver
from ...checks.smtp.protocol.session import Session
from ...checks.smtp.protocol.steps import SessionEnd, SessionPlan
from ...checks.smtp.providers import Provider, find_provider, load_providers
from ...checks.smtp.transport.dial import may_dial
from ...checks.smtp.transport.driver import SessionHandler, SessionTimeouts, Transcript, drive_session
from ...model.evidence import Action, Classification, DomainEvidence, MailboxEvidence
from ...model.settings import LocalSettings
from ...model.words import Reason, ValidationType
from ..batch import ObservedBatch, Positions
from ..domains import FLUSH_SECONDS, DomainRows, DomainStage, gather_groups
from .politeness import ExchangeState
from .queues import ExchangeSet
from .results import ResultBuffer, find_aliases
from .scheduler import Assignment, Scheduler
from .tracker import ActiveSession, RecipientTracker

__all__ = ["MailboxStage", "SmtpEngine", "find_helo_name", "no_address_message"]

FLUSH_ROWS = 5000  # rows that are yielded at once, before the time is up
NOT_ASKED = -1
LONGEST_QUIT = 5.0  # seconds for the reply to QUIT, which changes nothing
SHORTEST_SESSION = 1.0  # seconds, however little is left of a deadline
UNRESOLVED = Classification(Reason.INCONCLUSIVE, "exchange_not_resolved", error_code="DNS")
FULL_NAME = re.compile(r"(?=.{4,253}\Z)(?:(?!-)[A-Za-z0-9-]{1,63}(?<!-)\.)+[A-Za-z][A-Za-z0-9-]*")


class MailboxStage:
    """Asks the mail servers about mailboxes; `is_part`: a batch is only a part of what its caller waits for."""

    def __init__(
        self, settings: LocalSettings, domains: DomainStage, rng: random.Random | None = None, *, is_part: bool = False
    ) -> None:
        self.settings = settings
        self.domains = domains
        self.is_part = is_part
        self.rng = rng or random.Random()
        self.providers = load_providers()
        self.helo_name: str | None = None

    async def settle(self, batch: ObservedBatch, clock: Callable[[], datetime]) -> AsyncGenerator[Event, None]:
        """Yield rows as they settle: domains without exchanges first, then the others."""
        results = ResultBuffer(batch)
        engine = await self.engine(batch, results)
        look_ups = asyncio.create_task(self.look_up_domains(engine, batch, results))
        look_ups.add_done_callback(lambda _: engine.change.set())
        try:
            async for _ in self.run_engine(engine, look_ups):
                for event in self.collect_events(engine, results, clock):
                    yield event
            for notice in self.domains.take_notices():
                yield Noticed(notice)
        finally:
            look_ups.cancel()
            await engine.aclose()

    async def ask_one(
        self, batch: ObservedBatch, seen: DomainEvidence, transcript: Transcript | None
    ) -> MailboxEvidence | None:
        """Ask about the only address of a batch; `transcript` receives the lines of the dialogue."""
        results = ResultBuffer(batch)
        engine = await self.engine(batch, results, transcript)
        try:
            engine.add_domain(0, seen, np.zeros(1, np.int64))
            while not engine.is_done():
                await engine.run_until_change(FLUSH_SECONDS)
        finally:
            await engine.aclose()
        return results.items[0][1]

    async def engine(
        self, batch: ObservedBatch, results: ResultBuffer, transcript: Transcript | None = None
    ) -> SmtpEngine:
        """An engine for one batch; a single address is not retried when greylisted, since its caller waits."""
        is_column = self.is_part or len(batch.texts) > 1
        settings = self.settings if is_column else replace(self.settings, retry_greylisted=0)
        if self.helo_name is None:
            self.helo_name = await find_helo_name(self.settings)
        resolver, name = self.domains.resolver, self.helo_name
        return SmtpEngine(
            settings, resolver, results, helo_name=name, providers=self.providers, rng=self.rng, transcript=transcript
        )

    async def look_up_domains(self, engine: SmtpEngine, batch: ObservedBatch, results: ResultBuffer) -> None:
        """Look up every domain once; those with exchanges are queued, the others are settled."""
        positions, results.aliases = find_aliases(batch, batch.accepted())
        asked = np.full(len(batch.texts), NOT_ASKED, np.int32)
        asked[positions] = results.codes[positions]
        rows = DomainRows(asked, len(batch.syntax.domains))
        async for group in gather_groups(self.domains.observe(batch.syntax.domains.to_pylist(), ValidationType.MX)):
            for code, seen, _ in group:
                engine.add_domain(code, seen, rows.of([code])[0])
            engine.change.set()

    async def run_engine(self, engine: SmtpEngine, look_ups: asyncio.Task[None]) -> AsyncIterator[None]:
        """Run the engine; yield when rows should be made, and once more when it is done."""
        due = engine.clock() + FLUSH_SECONDS
        while not (look_ups.done() and engine.is_done()):
            await engine.run_until_change(max(0.0, due - engine.clock()))
            if look_ups.done():
                look_ups.result()
            if engine.clock() >= due or len(engine.results) >= FLUSH_ROWS:
                yield
                due = engine.clock() + FLUSH_SECONDS
        yield

    def collect_events(self, engine: SmtpEngine, results: ResultBuffer, clock: Callable[[], datetime]) -> list[Event]:
        """The rows that have settled since the last time, and what is being waited for."""
        events: list[Event] = []
        if len(results):
            positions, table = results.take(clock())
            events.append(Settled(table, positions=positions))
        if (waiting := engine.waiting_for()) is not None:
            events.append(Waiting(*waiting))
        return events


class SmtpEngine:
    """The sessions of one run; made on the event loop that they run on."""

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
        self.rng = rng or random.Random()  # jitter, names of probes, order of equal preferences
        self.transcript = transcript
        self.tracker = RecipientTracker(settings, results, self.clock, self.rng)
        self.scheduler = Scheduler(settings)
        self.sets: dict[tuple[str, ...], ExchangeSet] = {}
        self.hosts: dict[str, ExchangeState] = {}
        self.sets_of: defaultdict[str, list[ExchangeSet]] = defaultdict(list)
        self.tasks: set[asyncio.Task[None]] = set()
        self.error: BaseException | None = None
        self.change = asyncio.Event()
        self.plan = SessionPlan(
            helo_name=helo_name,
            mail_from=settings.mail_from,
            rcpt_per_transaction=settings.rcpt_per_transaction,
            rcpt_per_session=settings.rcpt_per_session,
            refusal_budget=settings.refusal_budget,
        )

    # --- adding domains -----------------------------------------------------------------------------

    def add_domain(self, code: int, seen: DomainEvidence, positions: Positions) -> None:
        """Queue the addresses of a domain, or settle them if it has no exchange."""
        self.results.domains[code] = seen
        if not seen.exchanges:
            for position in positions.tolist():
                self.results.add(position, None)
            return
        exchanges = self.exchange_set(seen)
        self.tracker.add(exchanges, positions)
        self.reschedule(exchanges)

    def exchange_set(self, seen: DomainEvidence) -> ExchangeSet:
        """The set of a domain's exchanges, the same for every domain that has them."""
        key = tuple(f"{e.preference} {e.host}" for e in seen.exchanges)
        if key not in self.sets:
            ordered = sorted(seen.exchanges, key=lambda e: (e.preference, self.rng.random()))
            hosts = [self.host(name) for name in dict.fromkeys(e.host for e in ordered)]
            self.sets[key] = made = ExchangeSet(hosts, self.settings.max_exchange_attempts)
            for host in hosts:
                self.sets_of[host.host].append(made)
        return self.sets[key]

    def host(self, name: str) -> ExchangeState:
        """The state of an exchange, shared by all sets that have it."""
        if name not in self.hosts:
            provider = find_provider(name, self.providers)
            self.hosts[name] = ExchangeState(name, self.settings, self.plan, provider)
        return self.hosts[name]

    def reschedule(self, exchanges: ExchangeSet) -> None:
        """Schedule a set whose queues or exchanges changed."""
        self.tracker.requeue_or_fail(exchanges)
        self.scheduler.offer(exchanges)

    # --- running --------------------------------------------------------------------------------------

    def is_done(self) -> bool:
        """Whether every address is settled and every session over."""
        return not (self.tasks or self.tracker.unsettled)

    async def run_until_change(self, seconds: float) -> None:
        """Open what can be opened, and wait until something happens, at most `seconds`."""
        self.start_sessions()
        if self.scheduler.has_more():
            seconds = 0.0
        times = [t for t in (self.scheduler.next_time(), self.tracker.retries.next_time()) if t is not None]
        try:
            async with asyncio.timeout(min([seconds, *(max(0.0, t - self.clock()) for t in times)])):
                await self.change.wait()
        except TimeoutError:
            pass
        self.change.clear()
        if self.error is not None:
            raise self.error

    def waiting_for(self) -> tuple[float, str] | None:
        """What an engine with no session under way waits for: seconds, and a message."""
        due = self.tracker.retries.next_time()
        if self.tasks or due is None:
            return None
        wait = max(0.0, due - self.clock())
        return wait, f"{len(self.tracker.retries):,} greylisted, asked again in {wait:.0f} s"

    async def aclose(self) -> None:
        """Cancel every session; each sends QUIT."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def start_sessions(self) -> None:
        """Start what can be started now: sessions, a few at a time, and look-ups of hosts."""
        now = self.clock()
        for exchanges in self.tracker.queue_retries(now):
            self.reschedule(exchanges)
        for assignment in self.scheduler.assignments(now):
            self.spawn(self.run_session(assignment))
        for host in self.scheduler.pop_unresolved():
            self.spawn(self.resolve(host))

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine as a task of this engine."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.on_task_done)

    def on_task_done(self, task: asyncio.Task[None]) -> None:
        """Forget a task; its exception is raised by `run_until_change`."""
        self.tasks.discard(task)
        self.change.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            self.error = error

    async def resolve(self, host: ExchangeState) -> None:
        """Look up the addresses of an exchange that may be contacted."""
        answer = await self.resolver.addresses(host.host)
        host.addresses = tuple(a for a in map(str, answer.addresses) if may_dial(a, self.settings.allow_networks))
        if not host.addresses:
            classification = UNRESOLVED if answer.outcome is AnswerOutcome.UNDETERMINED else None
            host.close_without_address(no_address_message(answer), classification)
            self.close_exchange(host)
        self.scheduler.resolved(host)

    def close_exchange(self, host: ExchangeState) -> None:
        """Reschedule the sets of an exchange that was closed."""
        for exchanges in self.sets_of.pop(host.host, ()):
            self.reschedule(exchanges)

    # --- one session ----------------------------------------------------------------------------------

    async def run_session(self, assignment: Assignment) -> None:
        """Run one session and take in its end."""
        active = ActiveSession(assignment, self.clock())
        handler = SessionHandler(
            next_window=partial(self.tracker.next_window, active),
            on_reply=partial(self.tracker.on_reply, active),
            on_limit=assignment.host.observe_limit,
            on_first_reply=partial(self.on_first_reply, assignment),
        )
        try:
            end = await drive_session(
                Session(assignment.host.plan),
                [assignment.address],
                handler,
                port=self.settings.smtp_port,
                timeouts=self.timeouts(assignment),
                allow_networks=self.settings.allow_networks,
                transcript=self.transcript,
            )
            self.on_session_end(active, end)
        finally:
            self.scheduler.end(assignment, is_answered=active.answered_at is not None)

    def timeouts(self, assignment: Assignment) -> SessionTimeouts:
        """How long a session may take: at most what is left of the deadline of the addresses that waited longest."""
        settings, exchanges = self.settings, assignment.exchanges
        first = next(iter(exchanges.queues[assignment.mx_index].returned), -1)
        age = self.clock() - self.tracker.began.get(first, self.clock())
        left = settings.deadline - max(age, exchanges.silent_for)
        return SessionTimeouts(
            connect=settings.connect_timeout,
            command=settings.command_timeout,
            session=max(SHORTEST_SESSION, min(settings.session_deadline, left)),
            quit=min(LONGEST_QUIT, settings.command_timeout),
        )

    def on_first_reply(self, assignment: Assignment) -> None:
        """After the first reply of a session, a further session on the same set can be opened."""
        self.scheduler.on_first_answer(assignment)
        self.change.set()

    def on_session_end(self, active: ActiveSession, end: SessionEnd) -> None:
        """Take in how a session ended."""
        host = active.assignment.host
        quit_seconds = 0.0 if active.answered_at is None else self.clock() - active.answered_at
        host.on_session_end(end, active.budget, active.assignment.address, quit_seconds)
        if end.classification is not None and end.classification.action is Action.BACK_OFF:
            host.back_off(end, self.clock(), self.rng.random())
        self.tracker.on_session_end(active, end)
        if host.closed:
            self.close_exchange(host)
        self.tracker.requeue_or_fail(active.assignment.exchanges)


def no_address_message(answer: AddressAnswer) -> str:
    """The message about an exchange without an address that may be contacted."""
    if answer.addresses:
        shown = ", ".join(str(address) for address in answer.addresses[:3])
        return f"{shown}: not a public address, and not in allow_networks"
    return answer.message or "the mail server has no address"


async def find_helo_name(settings: LocalSettings) -> str:
    """The name for EHLO: as set, else the host's full name.

    It is ``localhost`` if the host has none; many servers refuse that, and `audit_host` reports it.
    """
    return settings.helo_name if settings.helo_name is not None else await asyncio.to_thread(own_name)


def own_name() -> str:
    name = socket.getfqdn()
    return name if FULL_NAME.fullmatch(name) else "localhost"
