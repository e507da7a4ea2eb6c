"""Sockets to DNS servers.

UDP is for many queries at once, TCP for one question whose answer was truncated.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import random
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from .congestion import Transmission
from .wire import Question

RECEIVE_BUFFER = 1 << 20  # octets requested; the system may give fewer
LARGEST_DATAGRAM = 4096  # octets; 1232 are offered, a longer datagram is cut and then unreadable
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

    An answer is accepted only from the server's address (the socket is connected), with the random
    id of a query that was sent and with its question; anything else is dropped. Each query has an
    id of its own, also when a question is repeated, so that a late answer is matched to the query
    it belongs to.
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
        self._on_answer = on_answer
        self._on_error = on_error
        self._on_pause = on_pause
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
                except OSError as exc:
                    self._fail_all(exc)
                self.read_ready()
                self._on_pause()
                await asyncio.sleep(0)

    def read_ready(self) -> None:
        """Deliver the answers that have arrived.

        There is a limit, so that other tasks of the loop run.
        """
        receive = self._socket.recv
        deliver = self._deliver
        try:
            for _ in range(READS_IN_A_ROW):
                deliver(receive(LARGEST_DATAGRAM))
        except BlockingIOError:
            return
        except OSError as exc:  # an ICMP error: port or host unreachable
            self._fail_all(exc)

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
