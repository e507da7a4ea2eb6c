"""Sockets to DNS servers: many questions over few UDP sockets, TCP if an answer is truncated."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import itertools
import math
import random
import socket
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .congestion import Query, QueryScheduler, Repeat, Transmission
from .wire import REFUSALS, Question, rcode_of

__all__ = ["Answer", "Server", "SocketPool"]

# The default receive buffer of Linux holds about 277 small answers. With fewer in flight on each socket, none is
# lost while the loop is busy; and several source ports make answers harder to forge (RFC 5452 section 9.2).
QUESTIONS_PER_SOCKET = 250
SPARE_SOCKETS = 1
RECEIVE_BUFFER = 1 << 20  # octets requested; the system may give fewer
LARGEST_DATAGRAM = 4096  # octets; 1232 are offered, a longer datagram is cut and then unreadable
TCP_CONNECTIONS = 50  # at once: a thousand truncated answers must not use up the file descriptors
READS_IN_A_ROW = 64  # datagrams read before other tasks of the loop run
SEND_PAUSE = 0.001  # seconds, while the send buffer is full


@dataclass(frozen=True, slots=True)
class Server:
    """The address of a DNS server."""

    address: str  # IP address, with a scope if IPv6 needs one
    port: int = 53

    def connect(self) -> socket.socket:
        """Open a UDP socket that receives datagrams from this server only."""
        family, kind, protocol, _, target = socket.getaddrinfo(
            self.address, self.port, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST
        )[0]
        opened = socket.socket(family, kind, protocol)
        try:
            opened.setblocking(False)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
            opened.connect(target)
        except OSError:
            opened.close()
            raise
        return opened


class UdpChannel:
    """One UDP socket to one server, for many queries at once.

    An answer is accepted only from the server's address (the socket is connected), with the random id of a query that
    was sent and with its question; anything else is dropped. Each query has an id of its own, also when a question is
    repeated, so that a late answer is matched to the query it belongs to.
    """

    def __init__(
        self,
        server: Server,
        randomness: random.Random,
        on_answer: Callable[[Transmission, bytes], None],
        on_error: Callable[[Transmission, OSError], None],
        on_pause: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._randomness = randomness
        self._on_answer, self._on_error, self._on_pause = on_answer, on_error, on_pause
        self._sent: dict[int, Transmission] = {}
        self._unsent: deque[tuple[Transmission, bytes]] = deque()  # while the send buffer is full
        self._socket = server.connect()
        self._reader = self._loop.create_task(self._read())

    def send(self, sent: Transmission) -> None:
        """Send a query; `on_error` is called if that fails."""
        identifier = self._free_identifier()
        self._sent[identifier] = sent
        sent.identifier = identifier
        packet = sent.query.question.packet(identifier, edns=sent.query.edns)
        if self._unsent:
            self._unsent.append((sent, packet))
        else:
            self._send_packet(sent, packet)

    def _send_packet(self, sent: Transmission, packet: bytes) -> None:
        try:
            self._socket.send(packet)
        except BlockingIOError:
            if not self._unsent:
                self._loop.call_later(SEND_PAUSE, self._send_rest)
            self._unsent.append((sent, packet))
        except OSError as exc:
            self.forget(sent)
            self._on_error(sent, exc)

    def _send_rest(self) -> None:
        waiting = list(self._unsent)
        self._unsent.clear()
        for number, (sent, packet) in enumerate(waiting):
            self._send_packet(sent, packet)
            if self._unsent:
                self._unsent.extend(waiting[number + 1 :])
                return

    def _free_identifier(self) -> int:
        while (identifier := self._randomness.getrandbits(16)) in self._sent:
            pass
        return identifier

    def forget(self, sent: Transmission) -> None:
        """Accept no answer to a query any more."""
        if self._sent.get(sent.identifier) is sent:
            del self._sent[sent.identifier]

    async def _read(self) -> None:
        """Deliver answers until the channel is closed."""
        with self._socket:
            while True:
                try:
                    self._deliver(await self._loop.sock_recv(self._socket, LARGEST_DATAGRAM))
                    self.read_ready()
                except OSError as exc:  # an ICMP error: port or host unreachable
                    self._fail_all(exc)
                self._on_pause()
                await asyncio.sleep(0)

    def read_ready(self) -> None:
        """Deliver the answers that have arrived, with a limit, so that other tasks of the loop run."""
        receive, deliver = self._socket.recv, self._deliver
        with contextlib.suppress(BlockingIOError):
            for _ in range(READS_IN_A_ROW):
                deliver(receive(LARGEST_DATAGRAM))

    def _deliver(self, packet: bytes) -> None:
        sent = self._sent.get(int.from_bytes(packet[:2], "big"))
        if sent is not None and sent.query.question.is_answered_by(packet):
            del self._sent[sent.identifier]
            self._on_answer(sent, packet)

    def _fail_all(self, error: OSError) -> None:
        """Fail all queries, each with its own error, since a raised error collects tracebacks."""
        failed = list(self._sent.values())
        self._sent.clear()
        for sent in failed:
            self._on_error(sent, OSError(error.errno, error.strerror))

    def close(self) -> None:
        """Close the socket once its reader has stopped; queries without an answer fail."""
        self._reader.add_done_callback(lambda _: self._socket.close())
        self._reader.cancel()
        self._fail_all(closed_error())

    async def aclose(self) -> None:
        """Do as `close`, and wait until the socket is closed."""
        self.close()
        await asyncio.gather(self._reader, return_exceptions=True)


class Answer(NamedTuple):
    """The answer to a query, as it came."""

    sent: Transmission
    packet: bytes


def closed_error() -> OSError:
    """The error of a question to a closed resolver."""
    return OSError(errno.ECONNABORTED, "the resolver was closed")


async def ask_tcp(server: Server, question: Question, identifier: int, *, edns: bool) -> bytes:
    """Ask over a new TCP connection (RFC 7766 section 8: two octets of length before each message).

    Raises OSError if the connection fails, ends early, or carries something other than the answer.
    """
    reader, writer = await asyncio.open_connection(server.address, server.port)
    try:
        packet = question.packet(identifier, edns=edns)
        writer.write(len(packet).to_bytes(2, "big") + packet)
        answer = await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
    except EOFError as exc:
        raise OSError(errno.ECONNRESET, "the TCP connection ended early") from exc
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    if answer[:2] != packet[:2] or not question.is_answered_by(answer):
        raise OSError(errno.ECONNABORTED, "the answer over TCP is to another question")
    return answer


class SocketPool:
    """The sockets of one event loop, opened when needed, and the scheduler of its questions.

    A question is sent when the scheduler allows it, and again when its answer is overdue; the answer to any of these
    queries counts.
    """

    def __init__(
        self, servers: Sequence[Server], *, timeout: float, concurrency: int, randomness: random.Random
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.servers = servers
        self.scheduler = QueryScheduler(len(servers), limit=concurrency, timeout=timeout, randomness=randomness)
        self._tcp_slots = asyncio.Semaphore(TCP_CONNECTIONS)
        self._timeout = timeout
        self._randomness = randomness
        self._sockets_each = math.ceil(concurrency / QUESTIONS_PER_SOCKET)
        self._channels: list[list[UdpChannel]] = [[] for _ in servers]
        self._next_channel = itertools.count()
        self._timer: asyncio.Handle | None = None
        self._timer_due = math.inf  # kept here, since the handles of uvloop do not always have a time
        self._will_send = self._is_closed = False

    def add(self, query: Query) -> None:
        """Enqueue a question."""
        query.owner = self._loop.create_future()
        if self._is_closed:
            query.is_done = True
            query.owner.set_exception(closed_error())
        self.scheduler.add(query)
        self._send_soon()

    def repeat(self, query: Query, how: Repeat) -> bool:
        """Enqueue a question again, after an answer without a result; False if no attempt is left."""
        if self._is_closed or not self.scheduler.repeat(query, self._loop.time(), how):
            return False
        query.owner = self._loop.create_future()
        self._send_soon()
        return True

    async def wait(self, query: Query) -> Answer | None:
        """Return the answer to any query about an enqueued question; None: no answer. OSError if it cannot be asked."""
        try:
            answer: Answer | None = await query.owner
            return answer
        finally:
            if not query.is_done:  # the task was cancelled
                self.scheduler.close(query, self._loop.time())
                self._forget(query)
                self._send_soon()

    async def ask_tcp(self, server: Server, query: Query) -> bytes:
        """Ask over TCP, after a truncated answer; TimeoutError or OSError without an answer."""
        async with self._tcp_slots, asyncio.timeout(self._timeout):
            return await ask_tcp(server, query.question, self._randomness.getrandbits(16), edns=query.edns)

    # --- sending ------------------------------------------------------------------------------------

    def _send_soon(self) -> None:
        """Send in the next step of the event loop, together with what other tasks enqueue until then."""
        if not self._will_send:
            self._will_send = True
            self._loop.call_soon(self._send_due)

    def _send_due(self) -> None:
        """Send what may be sent now, and set the timer."""
        self._will_send = False
        if self._is_closed:
            return
        for sent in self.scheduler.sends(self._loop.time()):
            try:
                sent.channel = self._channel(sent.server)
            except OSError as exc:
                self._on_error(sent, exc)
            else:
                sent.channel.send(sent)
        self._set_timer()

    def _set_timer(self) -> None:
        """Keep one timer; one that rings too early costs less than setting it again for each answer."""
        due = self.scheduler.wake_at(self._loop.time())
        if self._timer is not None:
            if self._timer_due <= due:
                return
            self._timer.cancel()
            self._timer = None
        if due < math.inf:
            self._timer, self._timer_due = self._loop.call_at(due, self._on_timer), due

    def _on_timer(self) -> None:
        self._timer = None
        for channel in itertools.chain.from_iterable(self._channels):
            channel.read_ready()  # what has arrived while the loop was busy is not overdue
        for query in self.scheduler.expire(self._loop.time()):
            self._forget(query)
            if not query.owner.done():
                query.owner.set_result(None)
        self._send_due()

    def _channel(self, server: int) -> UdpChannel:
        """Use the channels to the server in turn."""
        channels = self._channels[server]
        if len(channels) < self._sockets_each and (not channels or len(channels) < self._channels_needed(server)):
            channels.append(
                UdpChannel(self.servers[server], self._randomness, self._on_answer, self._on_error, self._send_soon)
            )
        return channels[next(self._next_channel) % len(channels)]

    def _channels_needed(self, server: int) -> float:
        return self.scheduler.windows[server].size / QUESTIONS_PER_SOCKET + SPARE_SOCKETS

    # --- outcomes -----------------------------------------------------------------------------------

    def _on_answer(self, sent: Transmission, packet: bytes) -> None:
        query = sent.query
        if not query.is_done:
            self.scheduler.on_answer(sent, self._loop.time(), is_refusal=rcode_of(packet) in REFUSALS)
            if len(query.transmissions) > 1:
                self._forget(query)
            if not query.owner.done():
                query.owner.set_result(Answer(sent, packet))

    def _on_error(self, sent: Transmission, error: OSError) -> None:
        query = sent.query
        if not query.is_done:
            self.scheduler.on_error(sent, self._loop.time())
            self._forget(query)
            if not query.owner.done():
                query.owner.set_exception(error)

    @staticmethod
    def _forget(query: Query) -> None:
        for sent in query.transmissions:
            if sent.channel is not None:
                sent.channel.forget(sent)

    # --- closing ------------------------------------------------------------------------------------

    def _begin_closing(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for query in self.scheduler.unsent():
            query.is_done = True
            if not query.owner.done():
                query.owner.set_exception(closed_error())

    def close(self) -> None:
        """Close every socket; for the thread of the event loop."""
        self._begin_closing()
        for channel in itertools.chain.from_iterable(self._channels):
            channel.close()

    async def aclose(self) -> None:
        """Do as `close`, and wait until every socket is closed."""
        self._begin_closing()
        for channel in itertools.chain.from_iterable(self._channels):
            await channel.aclose()
