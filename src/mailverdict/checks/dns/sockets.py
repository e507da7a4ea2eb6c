"""Sockets to DNS servers: many questions over few UDP sockets, TCP if an answer is truncated."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import itertools
import math
import random
import socket
from dataclasses import dataclass

from .wire import Question, is_truncated

__all__ = ["Server", "SocketPool"]

# The default receive buffer of Linux holds about 277 small answers. With fewer in flight on each socket, none is
# lost while the loop is busy; and several source ports make answers harder to forge (RFC 5452 section 9.2).
QUESTIONS_PER_SOCKET = 250
INITIAL_SLOTS = 100  # questions at once at the start; each answer adds one, up to the configured concurrency
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


@dataclass(slots=True, eq=False)
class Pending:
    """A question without an answer yet."""

    question: Question
    answer: asyncio.Future[bytes]
    deadline: float


class UdpChannel:
    """One UDP socket to one server, for many questions at once.

    An answer is accepted only from the server's address (the socket is connected), with the random id of a pending
    question and with that question in it; anything else is dropped.
    """

    def __init__(self, server: Server, timeout: float, randomness: random.Random) -> None:
        self._loop = asyncio.get_running_loop()
        self._timeout = timeout
        self._randomness = randomness
        self._pending: dict[int, Pending] = {}  # in the order of the deadlines, since the time-out is the same for all
        self._timer: asyncio.TimerHandle | None = None
        self._socket = server.connect()
        self._reader = self._loop.create_task(self._read())

    async def ask(self, question: Question, *, edns: bool) -> bytes:
        """Send the question and return the answer; TimeoutError without one, OSError if the server is unreachable."""
        identifier = self._free_identifier()
        pending = Pending(question, self._loop.create_future(), self._loop.time() + self._timeout)
        self._pending[identifier] = pending
        try:
            await self._send(question.packet(identifier, edns=edns))
            self._start_timer()
            return await pending.answer
        finally:
            if self._pending.get(identifier) is pending:
                del self._pending[identifier]

    def _free_identifier(self) -> int:
        while (identifier := self._randomness.getrandbits(16)) in self._pending:
            pass
        return identifier

    async def _send(self, packet: bytes) -> None:
        while True:
            try:
                self._socket.send(packet)
            except BlockingIOError:
                await asyncio.sleep(SEND_PAUSE)
            else:
                return

    async def _read(self) -> None:
        """Deliver answers until the channel is closed."""
        with self._socket:
            while True:
                for _ in range(READS_IN_A_ROW):
                    await self._read_one()
                await asyncio.sleep(0)

    async def _read_one(self) -> None:
        try:
            self._deliver(await self._loop.sock_recv(self._socket, LARGEST_DATAGRAM))
        except OSError as exc:  # an ICMP error: port or host unreachable
            self._fail_all(exc)

    def _deliver(self, packet: bytes) -> None:
        identifier = int.from_bytes(packet[:2], "big")
        pending = self._pending.get(identifier)
        if pending is not None and pending.question.is_answered_by(packet):
            del self._pending[identifier]
            if not pending.answer.done():
                pending.answer.set_result(packet)

    def _fail_all(self, error: OSError) -> None:
        """Fail all pending questions, each with its own error, since a raised error collects tracebacks."""
        for pending in self._pending.values():
            if not pending.answer.done():
                pending.answer.set_exception(OSError(error.errno, error.strerror))
        self._pending.clear()

    def _start_timer(self) -> None:
        """Keep one timer, for the oldest question."""
        if self._timer is None and self._pending:
            oldest = next(iter(self._pending.values()))
            self._timer = self._loop.call_at(oldest.deadline, self._expire)

    def _expire(self) -> None:
        """Fail the questions whose deadline has passed."""
        self._timer = None
        now = self._loop.time()
        while self._pending and (oldest := next(iter(self._pending.values()))).deadline <= now:
            del self._pending[next(iter(self._pending))]
            if not oldest.answer.done():
                oldest.answer.set_exception(TimeoutError())
        self._start_timer()

    def close(self) -> None:
        """Close the socket once its reader has stopped; pending questions fail."""
        if self._timer is not None:
            self._timer.cancel()
        self._reader.add_done_callback(lambda _: self._socket.close())
        self._reader.cancel()
        self._fail_all(closed_error())

    async def aclose(self) -> None:
        """Do as `close`, and wait until the socket is closed."""
        self.close()
        await asyncio.gather(self._reader, return_exceptions=True)


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
    """The sockets of one event loop, opened when needed; `slots` limits the questions in flight."""

    def __init__(self, *, timeout: float, concurrency: int, randomness: random.Random) -> None:
        self.loop = asyncio.get_running_loop()
        # A thousand questions at once at the start would overflow the buffers of a resolver.
        self.slots = asyncio.Semaphore(min(INITIAL_SLOTS, concurrency))
        self._slots_left = max(0, concurrency - INITIAL_SLOTS)
        self._tcp_slots = asyncio.Semaphore(TCP_CONNECTIONS)
        self._timeout = timeout
        self._randomness = randomness
        self._sockets_each = math.ceil(concurrency / QUESTIONS_PER_SOCKET)
        self._channels: dict[Server, list[UdpChannel]] = {}
        self._next_channel = itertools.count()
        self._is_closed = False

    def add_slot(self) -> None:
        """Allow one more question, since one was answered (as in TCP's slow start, RFC 5681)."""
        if self._slots_left:
            self._slots_left -= 1
            self.slots.release()

    async def ask(self, server: Server, question: Question, *, edns: bool = True) -> bytes:
        """Ask over UDP, and again over TCP if the answer was truncated; TimeoutError or OSError without an answer."""
        packet = await self._udp_channel(server).ask(question, edns=edns)
        if not is_truncated(packet):
            return packet
        async with self._tcp_slots, asyncio.timeout(self._timeout):
            return await ask_tcp(server, question, self._randomness.getrandbits(16), edns=edns)

    def _udp_channel(self, server: Server) -> UdpChannel:
        """Use the channels to the server in turn."""
        if self._is_closed:
            raise closed_error()
        channels = self._channels.setdefault(server, [])
        if len(channels) < self._sockets_each:
            channels.append(UdpChannel(server, self._timeout, self._randomness))
        return channels[next(self._next_channel) % len(channels)]

    def close(self) -> None:
        """Close every socket; for the thread of the event loop."""
        self._is_closed = True
        for channel in itertools.chain.from_iterable(self._channels.values()):
            channel.close()

    async def aclose(self) -> None:
        """Do as `close`, and wait until every socket is closed."""
        self._is_closed = True
        for channel in itertools.chain.from_iterable(self._channels.values()):
            await channel.aclose()
