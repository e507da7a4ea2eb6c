"""`SmtpPool`: the mail servers that a backend asks, and which session is opened next.

Limits apply at once over all sessions, per exchange (`SmtpExchange.wants_session`) and per IP
address: many host names may lead to one machine, and the machine counts the sessions. What is free
goes to the clients in turn, of a client to the longest queue. An exchange that lacks something of
its own, as the end of its back-off, is offered again when it has it. One that lacks an IP address
waits in a line for it, and gets the next place there.

    offer(exchange) -> unresolved: its addresses are looked up (`resolve`), then it is offered again
                    -> ready: a session is opened (`open_session`), which asks (`run_session`)
                    -> lines[address]: until a session at that address is over (`release`)
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Coroutine, Mapping
from functools import partial
from typing import Any

from ...checks.dns.answers import AnswerOutcome, DnsAnswer
from ...checks.dns.resolver import Resolver
from ...checks.networks import may_dial
from ...checks.operators import Operator, find_operator
from ...checks.smtp.protocol.session import Session, SessionEnd, SessionPlan
from ...checks.smtp.transport.driver import SessionHandler, Transcript, drive_session
from ...model.evidence import Classification
from ...model.settings import LocalSettings
from ...model.words import Reason
from .exchange import Client, OpenSession, SmtpExchange, SmtpRun

KEPT_FOR = 600.0  # seconds for which further runs use what was observed of an exchange
MAX_KEPT = 10_000  # exchanges; beyond that, half of those that no run uses are forgotten
FEW = 2  # a client with fewer sessions may have one of those that are kept for such clients
KEPT = 8  # one session in so many is kept for them
UNRESOLVED = Classification(Reason.INCONCLUSIVE, "exchange_not_resolved", error_code="DNS")


class Turns:
    """Exchanges that wait for the same thing: the clients in turn, the longest queue first."""

    def __init__(self) -> None:
        # Heaps.
        self.by_client: OrderedDict[Client, list[tuple[int, int, SmtpExchange]]] = OrderedDict()
        self.members: set[tuple[Client, SmtpExchange]] = set()
        self.order = itertools.count()

    def add(self, exchange: SmtpExchange) -> None:
        """Add an exchange for each client that waits for it, once."""
        for client, queue in exchange.by_client.items():
            if (client, exchange) not in self.members:
                self.members.add((client, exchange))
                heap = self.by_client.setdefault(client, [])
                heapq.heappush(heap, (-queue.size, next(self.order), exchange))

    def pop(self, client: Client | None = None) -> tuple[Client, SmtpExchange]:
        """Remove and return the next exchange, of one client or the first."""
        if client is None:
            client = next(iter(self.by_client))
        heap = self.by_client.pop(client)
        _, _, exchange = heapq.heappop(heap)
        self.members.discard((client, exchange))
        if heap:
            self.by_client[client] = heap  # the others are first now
        return client, exchange


class SmtpPool:
    """The exchanges and sessions of a backend; made on the event loop that they run on."""

    def __init__(
        self,
        settings: LocalSettings,
        resolver: Resolver,
        *,
        helo_name: str,
        operators: Mapping[str, Operator] | None = None,
        rng: random.Random | None = None,
        transcript: Transcript | None = None,
        drive: Callable[..., Coroutine[Any, Any, SessionEnd]] = drive_session,
    ) -> None:
        self.settings = settings
        self.resolver = resolver
        self.drive = drive
        self.transcript = transcript
        self.operators = operators or {}
        self.rng = rng or random.Random()  # jitter, names of probes, order of equal preferences
        self.loop = asyncio.get_running_loop()
        self.clock = self.loop.time
        self.exchanges: dict[str, SmtpExchange] = {}  # by name, the last used at the end
        self.unresolved = Turns()
        self.ready = Turns()
        self.lines: dict[str, Turns] = {}  # by IP address, none of which has room
        self.resolving = 0
        self.active = 0
        self.by_address: Counter[str] = Counter()
        self.by_client: Counter[Client] = Counter()
        self.tasks: set[asyncio.Task[None]] = set()
        self.plan = SessionPlan(
            helo_name=helo_name,
            mail_from=settings.mail_from,
            rcpt_per_transaction=settings.rcpt_per_transaction,
            rcpt_per_session=settings.rcpt_per_session,
            refusal_budget=settings.refusal_budget,
        )

    # --- exchanges ---------------------------------------------------------------------------

    def exchange(self, name: str, run: SmtpRun) -> SmtpExchange:
        """An exchange for a run that begins to use it, with what was seen of it lately."""
        exchange = self.exchanges.pop(name, None)
        if exchange is None:
            operator = find_operator(name, self.operators)
            exchange = SmtpExchange(name, self.settings, self.plan, operator, clock=self.clock)
        elif not exchange.sessions and self.clock() >= exchange.began + KEPT_FOR:
            exchange.begin()
        elif not exchange.runs:
            exchange.forget_failures()
        exchange.runs.add(run)
        self.exchanges[name] = exchange
        return exchange

    def leave(self, run: SmtpRun, exchanges: Collection[SmtpExchange]) -> list[asyncio.Task[None]]:
        """Forget a run that has ended, but not what it observed.

        Return the sessions that are cancelled.
        """
        for exchange in exchanges:
            exchange.leave(run)
        cancelled: list[asyncio.Task[None]] = []
        for exchange in exchanges:
            for session in exchange.sessions:
                if not session.is_needed():
                    cancelled.append(session.task)
        for task in cancelled:
            task.cancel()
        if len(self.exchanges) > MAX_KEPT:
            self.forget_idle()
        return cancelled

    def forget_idle(self) -> None:
        """Forget half of the exchanges that no run uses, the longest unused first."""
        idle = []
        for name, exchange in self.exchanges.items():
            if not exchange.runs and not exchange.sessions:
                idle.append(name)
        for name in idle[: len(idle) // 2]:
            del self.exchanges[name]

    # --- what is opened ----------------------------------------------------------------------

    def offer(self, exchange: SmtpExchange) -> None:
        """Note what an exchange needs now, if anything waits for it: a look-up or a session.

        `start` begins it.
        """
        if exchange.closed is not None:
            exchange.pass_on_all()
        elif exchange.addresses is None:
            if not exchange.is_resolving:
                self.unresolved.add(exchange)
        elif exchange.wants_session():
            self.ready.add(exchange)

    def start(self) -> None:
        """Start what can be started now."""
        while self.resolving < self.settings.dns_concurrency and self.unresolved.by_client:
            _, exchange = self.unresolved.pop()
            if exchange.addresses is None and not exchange.is_resolving:
                self.resolving += 1
                exchange.is_resolving = True
                self.spawn(self.resolve(exchange), exchange, partial(self.on_resolved, exchange))
        while (client := self.next_client()) is not None:
            _, exchange = self.ready.pop(client)
            if exchange.wants_session():
                self.open_session(client, exchange)

    def next_client(self) -> Client | None:
        """The client whose turn it is, if anyone may have a session."""
        for client in self.ready.by_client:
            if self.may_open(client):
                return client
        return None

    def may_open(self, client: Client) -> bool:
        """Whether a client may have one more session; some are kept for clients that have few."""
        most = self.settings.max_sessions
        if self.by_client[client] >= FEW:
            most -= most // KEPT
        return self.active < most

    def open_session(self, client: Client, exchange: SmtpExchange) -> None:
        """Open a session with the least busy address of an exchange, or let it wait for one."""
        most = self.settings.max_sessions_per_exchange
        addresses = exchange.open_addresses()
        address = min(addresses, key=self.by_address.__getitem__)
        if self.by_address[address] >= most:
            for address in addresses:
                self.lines.setdefault(address, Turns()).add(exchange)
            return
        session = OpenSession(exchange, address, client, self.clock())
        self.active += 1
        self.by_address[address] += 1
        self.by_client[client] += 1
        exchange.sessions.add(session)
        at_end = partial(self.release, session)
        session.task = self.spawn(self.run_session(session), exchange, at_end)
        self.offer(exchange)

    def release(self, session: OpenSession) -> None:
        """Free the place of a session that is over, first for who waits for its address."""
        exchange = session.exchange
        address = session.address
        self.active -= 1
        count_down(self.by_address, address)
        count_down(self.by_client, session.client)
        exchange.sessions.discard(session)
        exchange.is_answering = session.has_answer
        exchange.put_back(session.unsettled())  # where it was cancelled
        self.serve_line(address)
        self.offer(exchange)
        for run in exchange.runs:
            if not run.unsettled:  # it waits for the end of sessions
                run.wake()

    def serve_line(self, address: str) -> None:
        """Give a free place at an IP address to the exchanges that wait for it."""
        line = self.lines.pop(address, Turns())
        while line.by_client and self.by_address[address] < self.settings.max_sessions_per_exchange:
            client, exchange = line.pop()
            if not exchange.wants_session():
                continue
            if self.may_open(client):
                self.open_session(client, exchange)
            else:
                self.ready.add(exchange)
        if line.by_client:
            self.lines[address] = line

    def spawn(
        self, work: Coroutine[Any, Any, None], exchange: SmtpExchange, at_end: Callable[[], None]
    ) -> asyncio.Task[None]:
        """Run a coroutine about an exchange.

        Its exception is raised in the runs that use the exchange.
        """
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(partial(self.on_task_done, exchange, at_end))
        return task

    def on_task_done(
        self, exchange: SmtpExchange, at_end: Callable[[], None], task: asyncio.Task[None]
    ) -> None:
        """Start what waited for a task."""
        self.tasks.discard(task)
        if not task.cancelled():
            error = task.exception()
            if error is not None:
                for run in exchange.runs:
                    run.wake(error)
        at_end()
        self.start()

    # --- look-ups ----------------------------------------------------------------------------

    async def resolve(self, exchange: SmtpExchange) -> None:
        """Look up the addresses of an exchange that may be contacted."""
        answer = await self.resolver.addresses(exchange.name)
        networks = self.settings.allow_networks
        exchange.addresses = tuple(text for text in answer.texts if may_dial(text, networks))
        if not exchange.addresses:
            classification = None
            if answer.outcome is AnswerOutcome.UNDETERMINED:
                classification = UNRESOLVED
            exchange.close_without_address(no_address_message(answer), classification)

    def on_resolved(self, exchange: SmtpExchange) -> None:
        """Offer an exchange whose look-up is over."""
        self.resolving -= 1
        exchange.is_resolving = False
        self.offer(exchange)

    # --- one session -------------------------------------------------------------------------

    async def run_session(self, session: OpenSession) -> None:
        """Run one session and take in its end."""
        exchange = session.exchange
        handler = SessionHandler(
            next_window=partial(exchange.next_window, session),
            on_reply=partial(exchange.on_answers, session),
            on_limit=exchange.observe_limit,
            on_first_reply=partial(self.on_first_reply, session),
        )
        end = await self.drive(
            Session(exchange.session_plan()),
            [session.address],
            handler,
            port=self.settings.smtp_port,
            timeouts=exchange.timeouts(),
            allow_networks=self.settings.allow_networks,
            transcript=self.transcript,
        )
        exchange.on_session_end(session, end, self.rng.random())
        if exchange.not_before > self.clock():
            self.loop.call_at(exchange.not_before, self.end_back_off, exchange, exchange.not_before)

    def on_first_reply(self, session: OpenSession) -> None:
        """Open a further session after the first reply of one, once its next window is drawn."""
        session.exchange.is_answering = True
        self.offer(session.exchange)
        self.loop.call_soon(self.start)

    def end_back_off(self, exchange: SmtpExchange, until: float) -> None:
        """Offer an exchange whose back-off is over, unless it is longer by now."""
        if exchange.not_before <= until:
            exchange.not_before = 0.0
            self.offer(exchange)
            self.start()


def count_down(counts: Counter[Any], key: object) -> None:
    """Subtract one; without an entry for 0, since a service runs for months."""
    counts[key] -= 1
    if counts[key] <= 0:
        del counts[key]


def no_address_message(answer: DnsAnswer) -> str:
    """The message about an exchange without an address that may be contacted."""
    if answer.texts:
        return f"{', '.join(answer.texts[:3])}: not a public address, and not in allow_networks"
    return answer.message or "the mail server has no address"
