"""Sockets to the resolvers: many questions over few UDP sockets, TCP where an answer is too long."""

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

__all__ = ["Links", "Server"]

# A socket of Linux's default size holds about 277 small answers. With no more than that in flight on
# each, none is lost while the loop is busy; and each has a source port of its own, which makes answers
# harder to forge (RFC 5452 section 9.2).
QUESTIONS_PER_SOCKET = 250
FIRST_FLIGHT = 100  # questions at once at the start; each answer makes room for one more, up to what is allowed
RECEIVE_BUFFER = 1 << 20  # asked for; the system gives what it allows
LARGEST_DATAGRAM = 4096  # we offer 1232; more than this is cut off, and then cannot be read
TCP_CONNECTIONS = 50  # at once: a thousand truncated answers must not use up a process's files
READS_IN_A_ROW = 64  # datagrams taken before other tasks of the loop get their turn
SEND_PAUSE = 0.001  # seconds, while the system's send buffer is full


@dataclass(frozen=True, slots=True)
class Server:
    """A resolver to ask.

    Attributes
    ----------
    address : str
        IP address, with a scope where IPv6 needs one.
    port : int
        UDP and TCP port.
    """

    address: str
    port: int = 53

    def connect(self) -> socket.socket:
        """Open a UDP socket that takes datagrams from this resolver only."""
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
    """A question that waits for its answer."""

    question: Question
    answer: asyncio.Future[bytes]
    deadline: float


class UdpLink:
    """One UDP socket to one resolver, carrying many questions at once.

    An answer is taken only from the resolver's address (the socket is connected), with the random id
    of a waiting question, and with that very question in it; anything else is dropped unseen.
    """

    def __init__(self, server: Server, timeout: float, randomness: random.Random) -> None:
        self._loop = asyncio.get_running_loop()
        self._timeout = timeout
        self._randomness = randomness
        self._pending: dict[int, Pending] = {}  # in the order of the deadlines, since all wait equally long
        self._timer: asyncio.TimerHandle | None = None
        self._socket = server.connect()
        self._reader = self._loop.create_task(self._read())

    async def ask(self, question: Question, *, edns: bool) -> bytes:
        """Send the question and give its answer.

        Raises
        ------
        TimeoutError
            If none came in time.
        OSError
            If the resolver cannot be reached.
        """
        identifier = self._free_identifier()
        waiting = Pending(question, self._loop.create_future(), self._loop.time() + self._timeout)
        self._pending[identifier] = waiting
        try:
            await self._send(question.packet(identifier, edns=edns))
            self._arm()
            return await waiting.answer
        finally:
            if self._pending.get(identifier) is waiting:
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
        """Hand out answers until the link is closed."""
        with self._socket:
            while True:
                for _ in range(READS_IN_A_ROW):
                    await self._read_one()
                await asyncio.sleep(0)

    async def _read_one(self) -> None:
        try:
            self._take(await self._loop.sock_recv(self._socket, LARGEST_DATAGRAM))
        except OSError as exc:  # an ICMP error: nobody listens there, or no way leads there
            self._fail(exc)

    def _take(self, packet: bytes) -> None:
        identifier = int.from_bytes(packet[:2], "big")
        waiting = self._pending.get(identifier)
        if waiting is not None and waiting.question.is_answered_by(packet):
            del self._pending[identifier]
            if not waiting.answer.done():
                waiting.answer.set_result(packet)

    def _fail(self, error: OSError) -> None:
        """End all that waits, each with an error of its own, since a raised one grows a traceback."""
        for waiting in self._pending.values():
            if not waiting.answer.done():
                waiting.answer.set_exception(OSError(error.errno, error.strerror))
        self._pending.clear()

    def _arm(self) -> None:
        """Keep one timer, for the oldest question."""
        if self._timer is None and self._pending:
            oldest = next(iter(self._pending.values()))
            self._timer = self._loop.call_at(oldest.deadline, self._expire)

    def _expire(self) -> None:
        """End what has waited for too long."""
        self._timer = None
        now = self._loop.time()
        while self._pending and (oldest := next(iter(self._pending.values()))).deadline <= now:
            del self._pending[next(iter(self._pending))]
            if not oldest.answer.done():
                oldest.answer.set_exception(TimeoutError())
        self._arm()

    async def aclose(self) -> None:
        """Close the socket; whoever still waits gets an error."""
        if self._timer is not None:
            self._timer.cancel()
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        self._socket.close()  # the reader does so too, unless it never began
        self._fail(closed_error())


def closed_error() -> OSError:
    """What a question gets that meets a closed resolver."""
    return OSError(errno.ECONNABORTED, "the resolver was closed")


async def ask_tcp(server: Server, question: Question, identifier: int, *, edns: bool) -> bytes:
    """Ask over a TCP connection of its own (RFC 7766 section 8: two octets of length before each message).

    Raises
    ------
    OSError
        If the connection fails, ends early, or carries something else than the answer.
    """
    reader, writer = await asyncio.open_connection(server.address, server.port)
    try:
        packet = question.packet(identifier, edns=edns)
        writer.write(len(packet).to_bytes(2, "big") + packet)
        answer = await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
    except EOFError as exc:
        raise OSError(errno.ECONNRESET, "it ended the TCP connection early") from exc
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    if answer[:2] != packet[:2] or not question.is_answered_by(answer):
        raise OSError(errno.ECONNABORTED, "over TCP it answers something else")
    return answer


class Links:
    """The sockets of one event loop, opened as they are needed.

    Parameters
    ----------
    timeout : float
        Seconds to wait for one answer.
    concurrency : int
        Questions in flight at most.
    randomness : random.Random
        Where the ids come from.
    """

    def __init__(self, *, timeout: float, concurrency: int, randomness: random.Random) -> None:
        self.loop = asyncio.get_running_loop()
        # A thousand questions at once would overflow the buffers of a resolver that is not yet up to speed.
        self.room = asyncio.Semaphore(min(FIRST_FLIGHT, concurrency))
        self._more_room = max(0, concurrency - FIRST_FLIGHT)
        self._tcp_room = asyncio.Semaphore(TCP_CONNECTIONS)
        self._timeout = timeout
        self._randomness = randomness
        self._sockets_each = math.ceil(concurrency / QUESTIONS_PER_SOCKET)
        self._udp: dict[Server, list[UdpLink]] = {}
        self._turn = itertools.count()
        self._is_closed = False

    def widen(self) -> None:
        """Make room for one more question, since one was answered (as in TCP's slow start, RFC 5681)."""
        if self._more_room:
            self._more_room -= 1
            self.room.release()

    async def ask(self, server: Server, question: Question, *, edns: bool = True) -> bytes:
        """Ask over UDP, and again over TCP where the answer was truncated.

        Raises
        ------
        TimeoutError
            If no answer came in time.
        OSError
            If the resolver cannot be reached, or the links are closed.
        """
        packet = await self._udp_link(server).ask(question, edns=edns)
        if not is_truncated(packet):
            return packet
        async with self._tcp_room, asyncio.timeout(self._timeout):
            return await ask_tcp(server, question, self._randomness.getrandbits(16), edns=edns)

    def _udp_link(self, server: Server) -> UdpLink:
        """Take the links to the resolver in turn."""
        if self._is_closed:
            raise closed_error()
        links = self._udp.setdefault(server, [])
        if len(links) < self._sockets_each:
            links.append(UdpLink(server, self._timeout, self._randomness))
        return links[next(self._turn) % len(links)]

    async def aclose(self) -> None:
        """Close every socket."""
        self._is_closed = True
        for link in itertools.chain.from_iterable(self._udp.values()):
            await link.aclose()
