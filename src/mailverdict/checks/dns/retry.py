"""Asking each question until it has an answer or the attempts are used up.

The scheduler of congestion.py decides when and whom to ask.

Thousands of questions are in progress at a time. Each is two or three small objects and a function
that is called with its answer; a task for each would cost more than the question itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import random
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from ...errors import SettingsError
from ...model.settings import LocalSettings, parse_resolver
from .answers import AnswerOutcome, DnsAnswer
from .congestion import Query, QueryScheduler, Repeat, Transmission
from .sockets import Server, UdpChannel, ask_tcp, closed_error
from .wire import (
    EDNS_REFUSALS,
    REFUSALS,
    Question,
    is_refusal,
    is_truncated,
    parse_answer,
    rcode_of,
)

# The default receive buffer of Linux holds about 277 small answers. With fewer in flight on each
# socket, none is lost while the loop is busy; and several source ports make answers harder to forge
# (RFC 5452 section 9.2).
QUESTIONS_PER_SOCKET = 250
SPARE_SOCKETS = 1
TCP_CONNECTIONS = 50  # at once: a thousand truncated answers must not use up the file descriptors


def system_servers(path: str = "/etc/resolv.conf") -> tuple[Server, ...]:
    """Read the system's resolvers; Windows ignores `path` and reads its registry."""
    import dns.resolver  # noqa: PLC0415 - not needed where a resolver is given

    try:
        found = dns.resolver.Resolver(path)
    except dns.resolver.NoResolverConfiguration as exc:
        raise SettingsError(
            "this system has no DNS resolver set up: give one, as resolver='192.0.2.53'"
        ) from exc
    return tuple(Server(str(address), found.port) for address in found.nameservers)


class Effort(NamedTuple):
    """How long a question is asked."""

    queries: int  # at most
    seconds: float  # from the first query, in which a late answer is awaited
    is_new: bool = True  # the question was not asked before

    @classmethod
    def full(cls, settings: LocalSettings) -> Effort:
        """For a single question: wait for late answers, too."""
        return cls(settings.dns_attempts, settings.dns_attempts * settings.dns_timeout)

    @classmethod
    def brief(cls, settings: LocalSettings) -> Effort:
        """For many questions: wait for no late answer.

        The unanswered ones are asked again at the end.
        """
        return cls(settings.dns_attempts, 0.0)

    @classmethod
    def last(cls, settings: LocalSettings) -> Effort:
        """For the unanswered ones.

        With one query in five lost, six in a row are lost once in 15,000 times.
        """
        return cls(
            settings.dns_attempts + 3, settings.dns_attempts * settings.dns_timeout, is_new=False
        )


class DnsClient:
    """A `LoopClient` for each event loop that asks, opened when needed."""

    def __init__(
        self,
        settings: LocalSettings,
        randomness: random.Random,
        find_servers: Callable[[], tuple[Server, ...]],
    ) -> None:
        self._settings = settings
        self._randomness = randomness
        self._find_servers = find_servers
        self._servers: tuple[Server, ...] = ()
        # An event loop cannot use the sockets of another one.
        self._clients: dict[asyncio.AbstractEventLoop, LoopClient] = {}
        weakref.finalize(self, close_clients, self._clients).atexit = False

    def of_running_loop(self) -> LoopClient:
        """The client of the running event loop.

        SettingsError if no resolver is set and the system has none.
        """
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            self._servers = self._servers or self._configured_servers()
            for ended in [each for each in self._clients if each.is_closed()]:
                del self._clients[ended]  # its sockets were closed with it
            client = self._clients[loop] = LoopClient(
                self._servers, self._settings, self._randomness
            )
        return client

    async def aclose(self) -> None:
        """Close the sockets; asking again opens new ones."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        close_clients(self._clients)
        if client is not None:
            await client.aclose()

    def _configured_servers(self) -> tuple[Server, ...]:
        given = self._settings.resolver
        return self._find_servers() if given is None else (Server(*parse_resolver(given)),)


def close_clients(clients: dict[asyncio.AbstractEventLoop, LoopClient]) -> None:
    """Close sockets from outside their event loops.

    The backend was closed or garbage-collected before.
    """
    while clients:
        loop, client = clients.popitem()
        with contextlib.suppress(RuntimeError):  # the loop is closed, and its sockets with it
            loop.call_soon_threadsafe(client.close)


class LoopClient:
    """The questions of one event loop, and the sockets that they are asked from.

    A question is sent when the scheduler allows it, and again when its answer is overdue or has no
    result; the answer to any of these queries counts. `Query.owner` is the function that is called
    with the answer, None after that.
    """

    def __init__(
        self, servers: Sequence[Server], settings: LocalSettings, randomness: random.Random
    ) -> None:
        self.servers = servers
        self.in_progress: dict[Any, Any] = {}  # of the caller
        self.full_effort = Effort.full(settings)
        self._loop = asyncio.get_running_loop()
        self._timeout = settings.dns_timeout
        self._randomness = randomness
        self._scheduler = QueryScheduler(
            len(servers), limit=settings.dns_concurrency, timeout=self._timeout
        )
        self._failures: dict[Query, list[str]] = {}  # answers without a result
        self._over_tcp: dict[Query, asyncio.Task[None]] = {}
        self._tcp_slots = asyncio.Semaphore(TCP_CONNECTIONS)
        self._sockets_each = math.ceil(settings.dns_concurrency / QUESTIONS_PER_SOCKET)
        self._channels: list[list[UdpChannel]] = [[] for _ in servers]
        self._next_channel = itertools.count()
        self._timer: asyncio.Handle | None = None
        # Kept here, since the handles of uvloop do not always have a time.
        self._timer_due = math.inf
        self._will_send = self._is_closed = False

    def ask(
        self, question: Question, effort: Effort | None, on_answer: Callable[[DnsAnswer], None]
    ) -> Query:
        """Ask a question, by default with full effort.

        Without an answer, `on_answer` is called with an undetermined one whose message says what
        failed.
        """
        queries, seconds, is_new = effort or self.full_effort
        query = Query(question, on_answer, is_new=is_new, attempts=queries, lifetime=seconds)
        if self._is_closed:
            self._on_failure(query, closed_error())
        else:
            self._scheduler.add(query)
            self._send_soon()
        return query

    def cancel(self, query: Query) -> None:
        """End a question whose answer is not needed any more."""
        if query.owner is None:
            return
        query.owner = None
        self._failures.pop(query, None)
        if task := self._over_tcp.get(query):
            task.cancel()
        self._scheduler.close(query)
        self._forget(query)
        self._send_soon()

    async def answer(self, question: Question) -> DnsAnswer:
        """Ask a question, and wait for the answer."""
        answered: asyncio.Future[DnsAnswer] = self._loop.create_future()
        query = self.ask(question, None, partial(set_answer, answered))
        try:
            return await answered
        finally:
            self.cancel(query)  # if the task was cancelled

    # --- sending ----------------------------------------------------------------------------------

    def _send_soon(self) -> None:
        """Send in the next step of the event loop, with the questions added until then."""
        if not self._will_send:
            self._will_send = True
            self._loop.call_soon(self._send_due)

    def _send_due(self) -> None:
        """Send what may be sent now, and set the timer."""
        self._will_send = False
        if self._is_closed:
            return
        for sent in self._scheduler.sends(self._loop.time()):
            try:
                sent.channel = self._channel(sent.server)
            except OSError as exc:
                self._on_error(sent, exc)
            else:
                sent.channel.send(sent)
        self._set_timer()

    def _set_timer(self) -> None:
        """Keep one timer; one that is due too early costs less than a new one for each answer."""
        due = self._scheduler.wake_at(self._loop.time())
        if self._timer is not None:
            if self._timer_due <= due:
                return
            self._timer.cancel()
            self._timer = None
        if due < math.inf:
            self._timer = self._loop.call_at(due, self._on_timer)
            self._timer_due = due

    def _on_timer(self) -> None:
        self._timer = None
        for channel in itertools.chain.from_iterable(self._channels):
            channel.read_ready()  # what has arrived while the loop was busy is not overdue
        for query in self._scheduler.expire(self._loop.time()):
            self._forget(query)
            self._end_without_answer(query)
        self._send_due()

    def _channel(self, server: int) -> UdpChannel:
        """Use the channels to the server in turn."""
        channels = self._channels[server]
        if len(channels) < self._sockets_each and (
            not channels or len(channels) < self._channels_needed(server)
        ):
            channels.append(
                UdpChannel(
                    self.servers[server],
                    self._randomness,
                    self._on_packet,
                    self._on_error,
                    self._send_soon,
                )
            )
        return channels[next(self._next_channel) % len(channels)]

    def _channels_needed(self, server: int) -> float:
        return self._scheduler.windows[server].size / QUESTIONS_PER_SOCKET + SPARE_SOCKETS

    # --- outcomes ---------------------------------------------------------------------------------

    def _on_packet(self, sent: Transmission, packet: bytes) -> None:
        query = sent.query
        if query.is_done:
            return
        rcode = rcode_of(packet)
        if is_refusal(packet) and self._scheduler.is_refusal_for_load(sent):
            self._scheduler.on_overload(sent, self._loop.time())
            self._failures.setdefault(query, []).append(
                f"REFUSED from {self.servers[sent.server].address}"
            )
            self._send_soon()
            return
        self._scheduler.on_answer(sent, self._loop.time(), is_refusal=rcode in REFUSALS)
        if len(query.transmissions) > 1:
            self._forget(query)
        if rcode in EDNS_REFUSALS and query.edns:
            query.edns = False
            query.attempts += 1
            self._repeat(query, "", Repeat.AT_ONCE)
        elif is_truncated(packet):
            task = self._over_tcp[query] = self._loop.create_task(self._ask_tcp(sent))
            task.add_done_callback(lambda _: self._over_tcp.pop(query))
        else:
            self._read(sent, packet)

    def _read(self, sent: Transmission, packet: bytes) -> None:
        """End a question by its answer, or ask again if that has no result."""
        query = sent.query
        answer = parse_answer(packet, query.question)
        if answer.outcome is not AnswerOutcome.UNDETERMINED:
            self._scheduler.preferred = sent.server
            self._end(query, answer)
            return
        message = f"{answer.message} from {self.servers[sent.server].address}"
        self._repeat(query, message, Repeat.ELSEWHERE if rcode_of(packet) else Repeat.LATER)

    async def _ask_tcp(self, sent: Transmission) -> None:
        """Ask again over TCP, after a truncated answer."""
        query = sent.query
        server = self.servers[sent.server]
        try:
            async with self._tcp_slots, asyncio.timeout(self._timeout):
                packet = await ask_tcp(
                    server, query.question, self._randomness.getrandbits(16), edns=query.edns
                )
        except TimeoutError:
            self._repeat(query, f"no answer over TCP from {server.address}", Repeat.LATER)
        except OSError as exc:
            self._on_failure(query, exc)
        else:
            self._read(sent, packet)

    def _on_error(self, sent: Transmission, error: OSError) -> None:
        query = sent.query
        if not query.is_done:
            self._scheduler.on_error(sent)
            self._forget(query)
            self._on_failure(query, error)

    def _on_failure(self, query: Query, error: OSError) -> None:
        address = self.servers[query.last_server].address
        self._repeat(
            query, f"{address} cannot be asked ({error.strerror or error})", Repeat.ELSEWHERE
        )

    def _repeat(self, query: Query, failure: str, how: Repeat) -> None:
        """Ask again, if an attempt is left."""
        if failure:
            self._failures.setdefault(query, []).append(failure)
        if not self._is_closed and self._scheduler.repeat(query, how):
            self._send_soon()
        else:
            self._end_without_answer(query)

    def _end_without_answer(self, query: Query) -> None:
        failures = self._failures.pop(query, []) + self._describe_silence(query)
        message = "; ".join(dict.fromkeys(failures))
        self._end(query, DnsAnswer(AnswerOutcome.UNDETERMINED, message=message))

    def _describe_silence(self, query: Query) -> list[str]:
        """Which servers did not answer, in at most one line."""
        if not query.sent:
            addresses = " and ".join(server.address for server in self.servers)
            return [
                f"not asked, since {addresses} had not answered any query for "
                f"{self._scheduler.silence:.0f} s"
            ]
        silent = dict.fromkeys(
            self.servers[sent.server].address for sent in query.transmissions if sent.is_lost
        )
        return (
            [f"no answer in {query.lifetime:.3g} s from {' and '.join(silent)}"] if silent else []
        )

    def _end(self, query: Query, answer: DnsAnswer) -> None:
        on_answer = query.owner
        query.owner = None
        if self._failures:
            self._failures.pop(query, None)
        # They refer to the query: without the cycle its memory is freed at once.
        query.transmissions.clear()
        if on_answer is not None:
            on_answer(answer)

    @staticmethod
    def _forget(query: Query) -> None:
        for sent in query.transmissions:
            if sent.channel is not None:
                sent.channel.forget(sent)

    # --- closing ----------------------------------------------------------------------------------

    def _begin_closing(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for query in self._scheduler.in_progress():
            query.is_done = True
            self._on_failure(query, closed_error())
        for query, task in self._over_tcp.items():
            task.cancel()
            self._on_failure(query, closed_error())

    def close(self) -> None:
        """Close every socket; for the thread of the event loop."""
        self._begin_closing()
        for channel in itertools.chain.from_iterable(self._channels):
            channel.close()

    async def aclose(self) -> None:
        """Do as `close`, and wait until every socket is closed."""
        self._begin_closing()
        await asyncio.gather(*self._over_tcp.values(), return_exceptions=True)
        for channel in itertools.chain.from_iterable(self._channels):
            await channel.aclose()


def set_answer(answered: asyncio.Future[DnsAnswer], answer: DnsAnswer) -> None:
    """Give a waiting task its answer, unless the task was cancelled."""
    if not answered.done():
        answered.set_result(answer)
