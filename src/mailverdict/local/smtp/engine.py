"""The SMTP part of the local backend: a stage that yields rows, and the engine that runs its sessions.

`MailboxStage.settle` looks up domains, passes them to an `SmtpEngine` and yields rows as they settle. The engine opens
sessions within the limits (`scheduler`). A session draws recipients from the queues of its exchange set and
reports each answer (`tracker`); when one ends, the next is opened. Everything happens on one event loop.
The engines of one backend share the limits and what was observed of each exchange (`SharedExchanges`).
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
from weakref import WeakKeyDictionary

import numpy as np

from ...backend import Event, Noticed, Settled, Waiting
from ...checks.dns.answers import AddressAnswer, AnswerOutcome
from ...checks.dns.resolver import Resolver
from ...checks.smtp.classify.classifier import prepare_rules
from ...checks.smtp.protocol.session import Session
from ...checks.smtp.protocol.steps import SessionEnd, SessionPlan, WindowPlan, WindowRequest
from ...checks.smtp.providers import Provider, find_provider, load_providers
from ...checks.smtp.transport.driver import SessionHandler, SessionTimeouts, Transcript, drive_session
from ...checks.smtp.transport.networks import may_dial
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

FLUSH_ROWS = 5000  # rows that are yielded at once, before the time is up
NOT_ASKED = -1
LONGEST_QUIT = 5.0  # seconds for the reply to QUIT, which changes nothing
SHORTEST_SESSION = 1.0  # seconds, however little is left of a deadline
KEPT_FOR = 600.0  # seconds for which further runs use what was observed of an exchange
MAX_KEPT_STATES = 10_000  # exchanges
SHORTEST_WAIT = 0.001  # seconds; a loop may end a wait within its clock's resolution, before the time has come
UNRESOLVED = Classification(Reason.INCONCLUSIVE, "exchange_not_resolved", error_code="DNS")
FULL_NAME = re.compile(r"(?=.{4,253}\Z)(?:(?!-)[A-Za-z0-9-]{1,63}(?<!-)\.)+[A-Za-z][A-Za-z0-9-]*")


class MailboxStage:
    """Asks the mail servers about mailboxes; with `is_part` a batch, even of one address, is part of a column."""

    def __init__(self, settings: LocalSettings, domains: DomainStage, *, is_part: bool = False) -> None:
        self.settings = settings
        self.domains = domains
        self.is_part = is_part
        self.rng = random.Random()
        self.providers = load_providers()
        self.helo_name: str | None = None
        self.shared: WeakKeyDictionary[asyncio.AbstractEventLoop, SharedExchanges] = WeakKeyDictionary()

    async def settle(self, batch: ObservedBatch, clock: Callable[[], datetime]) -> AsyncGenerator[Event, None]:
        """Yield rows as they settle: domains without exchanges first, then the others."""
        results = ResultBuffer(batch)
        engine = await self.make_engine(batch, results)
        look_ups = asyncio.create_task(self.look_up_domains(engine, batch, results))
        look_ups.add_done_callback(lambda _: engine.change.set())
        try:
            async for _ in self.run_engine(engine, look_ups):
                for event in self.collect_events(engine, results, clock):
                    yield event
            for notice in [*self.domains.take_notices(), *engine.tracker.notices()]:
                yield Noticed(notice)
        finally:
            look_ups.cancel()
            await engine.aclose()

    async def ask_one(
        self, batch: ObservedBatch, seen: DomainEvidence, transcript: Transcript | None
    ) -> MailboxEvidence | None:
        """Ask about the only address of a batch; `transcript` receives the lines of the dialogue."""
        results = ResultBuffer(batch)
        engine = await self.make_engine(batch, results, transcript)
        try:
            engine.add_domain(0, seen, np.zeros(1, np.int64))
            while not engine.is_done():
                await engine.run_until_change(FLUSH_SECONDS)
        finally:
            await engine.aclose()
        return results.items[0][1]

    async def make_engine(
        self, batch: ObservedBatch, results: ResultBuffer, transcript: Transcript | None = None
    ) -> SmtpEngine:
        """An engine for one batch; a single address is not retried when greylisted, since its caller waits."""
        is_column = self.is_part or len(batch.texts) > 1
        settings = self.settings if is_column else replace(self.settings, retry_greylisted=0)
        if self.helo_name is None:
            self.helo_name = await find_helo_name(self.settings)
        prepare_rules()
        return SmtpEngine(
            settings,
            self.domains.resolver,
            results,
            helo_name=self.helo_name,
            providers=self.providers,
            rng=self.rng,
            transcript=transcript,
            shared=self.shared.setdefault(asyncio.get_running_loop(), SharedExchanges(self.settings)),
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
            await engine.run_until_change(max(SHORTEST_WAIT, due - engine.clock()))
            if look_ups.done():
                look_ups.result()
                engine.settle_held()
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


class SharedExchanges:
    """What the runs of a backend share on one event loop: who opens the next session, what was observed of exchanges.

    So no exchange gets more sessions than its limit, however many runs there are, and what one run has observed
    holds for those that begin within the next ten minutes. A run under way keeps what it began with.
    """

    def __init__(self, settings: LocalSettings) -> None:
        self.settings = settings
        self.scheduler = Scheduler(settings)
        self.engines: set[SmtpEngine] = set()
        self.states: dict[str, ExchangeState] = {}  # by name, the last used at the end

    def state(self, name: str, plan: SessionPlan, provider: Provider | None, now: float) -> ExchangeState:
        """The state of an exchange for a run that begins to use it."""
        state = self.states.pop(name, None)
        if state is None or now >= state.began + KEPT_FOR:
            back_off_ends = 0.0 if state is None else state.not_before
            state = ExchangeState(name, self.settings, plan, provider, began=now, not_before=back_off_ends)
        elif not state.runs:
            state.forget_failures()
        self.states[name] = state
        if len(self.states) > MAX_KEPT_STATES:
            del self.states[next(iter(self.states))]
        return state

    def start_sessions(self, now: float) -> None:
        """Start what can be started now: sessions, a few at a time, and look-ups of hosts."""
        for assignment in self.scheduler.assignments(now):
            assignment.exchanges.run.start_session(assignment)
        for host, engine in self.scheduler.pop_unresolved():
            engine.start_look_up(host)

    def close_exchange(self, host: ExchangeState) -> None:
        """Reschedule the sets of an exchange that was closed, in every run that uses its state."""
        for engine in list(self.engines):
            if engine.hosts.get(host.name) is host:
                engine.reschedule_sets_of(host)

    def leave(self, engine: SmtpEngine) -> None:
        """Forget a run that has ended; what it observed of exchanges is kept."""
        if engine not in self.engines:
            return
        self.engines.discard(engine)
        for host in engine.hosts.values():
            host.runs -= 1
        if not self.engines:
            self.scheduler = Scheduler(self.settings)


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
        shared: SharedExchanges | None = None,
    ) -> None:
        self.settings, self.resolver, self.results = settings, resolver, results
        self.providers = providers or {}
        self.clock = clock or asyncio.get_running_loop().time
        self.rng = rng or random.Random()  # jitter, names of probes, order of equal preferences
        self.transcript = transcript
        self.tracker = RecipientTracker(settings, results, self.clock, self.rng)
        self.shared = shared or SharedExchanges(settings)
        self.shared.engines.add(self)
        self.scheduler = self.shared.scheduler
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
            self.sets[key] = made = ExchangeSet(hosts, self.settings.max_exchange_attempts, run=self)
            for host in hosts:
                self.sets_of[host.name].append(made)
        return self.sets[key]

    def host(self, name: str) -> ExchangeState:
        """The state of an exchange, shared by all sets that have it; a run with a transcript has a new one."""
        if name not in self.hosts:
            provider = find_provider(name, self.providers)
            if self.transcript is None:
                self.hosts[name] = self.shared.state(name, self.plan, provider, self.clock())
            else:
                self.hosts[name] = ExchangeState(name, self.settings, self.plan, provider)
            self.hosts[name].runs += 1
        return self.hosts[name]

    def reschedule(self, exchanges: ExchangeSet) -> None:
        """Schedule a set whose queues or exchanges changed."""
        self.tracker.requeue_or_fail(exchanges)
        self.scheduler.offer(exchanges)

    # --- running --------------------------------------------------------------------------------------

    def is_done(self) -> bool:
        """Whether every address is settled and every session over."""
        return not (self.tasks or self.tracker.unsettled)

    def settle_held(self) -> None:
        """Settle missing mailboxes that wait for an address of their server to be accepted, if nothing else is left."""
        if not self.tasks and self.tracker.unsettled == sum(map(len, self.tracker.held.values())):
            self.tracker.settle_held()

    async def run_until_change(self, seconds: float) -> None:
        """Open what can be opened, and wait until something happens, at most `seconds`."""
        self.start_sessions()
        if self.scheduler.has_more():
            seconds = 0.0
        times = [t for t in (self.scheduler.next_time(), self.tracker.retries.next_time()) if t is not None]
        try:
            async with asyncio.timeout(min([seconds, *(max(SHORTEST_WAIT, t - self.clock()) for t in times)])):
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
        """Cancel every session; each sends QUIT, and its place is free for other runs."""
        for exchanges in self.sets.values():
            exchanges.is_closed = True
        for task in self.tasks:
            task.cancel()
        try:
            await asyncio.gather(*self.tasks, return_exceptions=True)
        finally:
            self.shared.leave(self)

    def start_sessions(self) -> None:
        """Start what can be started now, also for other runs."""
        now = self.clock()
        for exchanges in self.tracker.queue_retries(now):
            self.reschedule(exchanges)
        self.shared.start_sessions(now)

    def start_session(self, assignment: Assignment) -> None:
        """Run a session; its place is counted until its task is over, however that ends."""
        active = ActiveSession(assignment, self.clock())
        self.spawn(self.run_session(active), partial(self.release, active))

    def start_look_up(self, host: ExchangeState) -> None:
        """Look up the addresses of a host; another run that waits for them begins again if this one is cancelled."""
        self.spawn(self.resolve(host), partial(self.scheduler.resolved, host))

    def spawn(self, work: Coroutine[Any, Any, None], at_end: Callable[[], None]) -> None:
        """Run a coroutine as a task of this engine."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(partial(self.on_task_done, at_end))

    def on_task_done(self, at_end: Callable[[], None], task: asyncio.Task[None]) -> None:
        """Start what waited for this task, in any run; its exception is raised by `run_until_change`."""
        self.tasks.discard(task)
        at_end()
        self.change.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            self.error = error
        self.shared.start_sessions(self.clock())

    async def resolve(self, host: ExchangeState) -> None:
        """Look up the addresses of an exchange that may be contacted."""
        answer = await self.resolver.addresses(host.name)
        host.addresses = tuple(a for a in map(str, answer.addresses) if may_dial(a, self.settings.allow_networks))
        if not host.addresses:
            classification = UNRESOLVED if answer.outcome is AnswerOutcome.UNDETERMINED else None
            host.close_without_address(no_address_message(answer), classification)
            self.shared.close_exchange(host)

    def reschedule_sets_of(self, host: ExchangeState) -> None:
        """Reschedule the sets of an exchange that was closed."""
        for exchanges in self.sets_of.pop(host.name, ()):
            self.reschedule(exchanges)
        self.change.set()

    # --- one session ----------------------------------------------------------------------------------

    async def run_session(self, active: ActiveSession) -> None:
        """Run one session and take in its end."""
        assignment = active.assignment
        handler = SessionHandler(
            next_window=partial(self.next_window, active),
            on_reply=partial(self.tracker.on_reply, active),
            on_limit=assignment.host.observe_limit,
            on_first_reply=partial(self.on_first_reply, assignment),
        )
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

    def next_window(self, active: ActiveSession, request: WindowRequest) -> WindowPlan:
        """What a session asks next; nothing if it should end for another run."""
        if active.has_asked and self.scheduler.should_end(active.assignment, request.asked):
            return WindowPlan((), active.assignment.host.plan.refusal_budget)
        return self.tracker.next_window(active, request)

    def release(self, active: ActiveSession) -> None:
        """Free the place of a session that is over."""
        self.scheduler.end(active.assignment, is_answered=active.has_answer)

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
        host.on_session_end(end, active.assignment.address)
        if end.classification is not None and end.classification.action is Action.BACK_OFF:
            host.back_off(end, self.clock(), self.rng.random())
        self.tracker.on_session_end(active, end)
        if host.closed:
            self.shared.close_exchange(host)
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
