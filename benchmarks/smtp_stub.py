"""Exchanges for benchmarks: hundreds of them in one process, quick, strict about sessions, and slow on demand.

Every reply comes a set time after its command, as over a network. A server may punish refusals as a
default Postfix does: after 10 in a session it waits a second before every reply, at 20 it closes
the connection. Each exchange takes two sessions at once and counts everything. The DNS of their
domains is served beside them.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

import dns.message
from tests.doubles.ports import free_port

from mailverdict.sandbox.dns_table import DomainRecords, ZoneTable

SESSIONS_PER_EXCHANGE = 2
# smtpd_soft_error_limit, smtpd_hard_error_limit, smtpd_error_sleep_time.
SOFT_LIMIT, HARD_LIMIT, PENALTY = (
    10,
    20,
    1.0,
)
KNOWN = b"RCPT TO:<USER"  # every local part that begins so has a mailbox
BACKLOG = 1024


@dataclass(frozen=True)
class Manners:
    """How all exchanges behave.

    Attributes
    ----------
    delay : float
        Seconds from a command to its reply.
    punishes : bool
        Whether refusals slow a session down and end it.
    pipelining : float
        Share of the exchanges that offer PIPELINING (RFC 2920).
    """

    delay: float = 0.0
    punishes: bool = False
    pipelining: float = 1.0


def host_of(exchange: int) -> str:
    """Loopback address of an exchange."""
    return f"127.1.{exchange // 200}.{exchange % 200 + 1}"


def domain_of(exchange: int) -> str:
    """The domain whose only exchange it is."""
    return f"firm-{exchange}.example"


@dataclass
class Hall:
    """What the sessions of all exchanges share."""

    manners: Manners = field(default_factory=Manners)
    open: Counter[int] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)

    def offers_pipelining(self, exchange: int) -> bool:
        """Whether an exchange does; in every ten, so many as the share says."""
        return exchange % 10 < round(10 * self.manners.pipelining)


class Session(asyncio.Protocol):
    """One session; a reply is written when it is due, and never before the reply before it."""

    def __init__(self, hall: Hall) -> None:
        self.hall = hall
        self.loop = asyncio.get_running_loop()
        self.rest = b""
        self.refused = 0
        self.due = 0.0
        self.unsaid = 0
        self.counted = False
        self.is_over = False  # closing: the last reply is queued

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        octets = transport.get_extra_info("sockname")[0].split(".")
        self.exchange = int(octets[2]) * 200 + int(octets[3]) - 1
        self.pipelining = self.hall.offers_pipelining(self.exchange)
        self.hall.counts["sessions"] += 1
        if self.hall.open[self.exchange] >= SESSIONS_PER_EXCHANGE:
            self.hall.counts["sessions beyond the limit"] += 1
            self.say([b"421 4.7.0 Error: too many connections"], last=True)
            return
        self.hall.open[self.exchange] += 1
        self.counted = True
        self.say([b"220 mx ESMTP"])

    def connection_lost(self, exc: Exception | None) -> None:
        if self.counted:
            self.hall.counts["sessions without QUIT"] += 1
        self.leave()

    def leave(self) -> None:
        """Make room for another session."""
        if self.counted:
            self.counted = False
            self.hall.open[self.exchange] -= 1

    def data_received(self, data: bytes) -> None:
        *lines, self.rest = (self.rest + data).split(b"\r\n")
        if not self.pipelining and len(lines) + self.unsaid > 1:
            self.hall.counts["commands sent too early"] += 1
        together: list[bytes] = []
        for line in lines:
            if self.is_punished():
                self.say(together)
                together = []
                self.answer_slowly(line)
            else:
                together.append(self.answer(line))
        self.say(together, last=is_quit(lines[-1:]))

    def is_punished(self) -> bool:
        """Whether the session has made too many errors for a quick reply."""
        return self.hall.manners.punishes and self.refused >= SOFT_LIMIT

    def answer_slowly(self, line: bytes) -> None:
        """Reply to one command after a second more; at the hard limit, close the connection."""
        if self.refused >= HARD_LIMIT:
            self.hall.counts["sessions cut"] += not self.is_over
            self.say([b"421 4.7.0 Error: too many errors"], penalty=PENALTY, last=True)
        else:
            self.say([self.answer(line)], penalty=PENALTY, last=is_quit([line]))

    def answer(self, line: bytes) -> bytes:
        """Give the reply to a command."""
        verb = line[:4].upper()
        if verb == b"RCPT":
            self.hall.counts["recipients"] += 1
            if line[:13].upper() == KNOWN:
                return b"250 2.1.5 Ok"
            self.refused += 1
            return (
                b"550 5.1.1 "
                + line[8:]
                + b": Recipient address rejected: User unknown in virtual mailbox table"
            )
        if verb == b"EHLO":
            return (
                b"250-mx\r\n250-PIPELINING\r\n250 ENHANCEDSTATUSCODES"
                if self.pipelining
                else b"250 mx"
            )
        if verb == b"DATA":
            self.hall.counts["messages"] += 1
        if verb == b"QUIT":
            self.leave()
            return b"221 2.0.0 Bye"
        return b"250 2.0.0 Ok"

    def say(self, replies: list[bytes], *, penalty: float = 0.0, last: bool = False) -> None:
        """Write replies when they are due; after the last ones close the connection."""
        if self.is_over or not replies:
            return
        self.is_over = last
        now = self.loop.time()
        self.due = max(self.due, now + self.hall.manners.delay) + penalty
        self.unsaid += len(replies)
        if self.due <= now:
            self.write(replies, last)
        else:
            self.loop.call_at(self.due, self.write, replies, last)

    def write(self, replies: list[bytes], last: bool) -> None:
        self.unsaid -= len(replies)
        self.transport.write(b"\r\n".join(replies) + b"\r\n")
        if last:
            self.leave()
            self.transport.close()


def is_quit(lines: list[bytes]) -> bool:
    """Whether the client is done; smtplib writes small letters."""
    return [line.upper() for line in lines] == [b"QUIT"]


class Stub:
    """Handle on the exchanges, which run in a process of their own.

    Attributes
    ----------
    port : int
        Where all of them listen.
    resolver : str
        The DNS that knows their domains, as the setting takes it.
    """

    def __init__(self, control: Connection) -> None:
        self.control = control
        self.port, self.resolver = control.recv()

    def set_manners(self, manners: Manners) -> None:
        """Have all exchanges behave so from now on, and count from zero."""
        self.control.send(manners)
        self.control.recv()

    def read_counts(self) -> Counter[str]:
        """Give what was counted."""
        self.control.send(None)
        counts: Counter[str] = self.control.recv()
        return counts


class Names(asyncio.DatagramProtocol):
    """The DNS of all domains, ready to be sent: what a resolver with a warm cache costs, and no more."""

    def __init__(self, exchanges: int) -> None:
        table = ZoneTable(zones(exchanges))
        self.answers: dict[bytes, tuple[bytes, bytes]] = {}
        for name in zones(exchanges):
            for rdtype in ("MX", "A", "AAAA"):
                query = dns.message.make_query(name, rdtype)
                answer = table.answer(query).to_wire()
                end = end_of_question(answer)
                self.answers[answer[12:end].lower()] = answer[2:12], answer[end:]

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self.transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        question = data[12 : end_of_question(data)]
        header, records = self.answers[question.lower()]
        self.transport.sendto(data[:2] + header + question + records, addr)


def end_of_question(message: bytes) -> int:
    """Where the only question of a DNS message ends (RFC 1035 section 4.1.2)."""
    return message.index(0, 12) + 5


def zones(exchanges: int) -> dict[str, DomainRecords]:
    """The domains and hosts of all exchanges."""
    domains = {
        domain_of(n): DomainRecords({"MX": (f"10 mx.{domain_of(n)}",)}) for n in range(exchanges)
    }
    hosts = {f"mx.{domain_of(n)}": DomainRecords({"A": (host_of(n),)}) for n in range(exchanges)}
    return {**domains, **hosts}


async def serve(exchanges: int, control: Connection) -> None:
    """Run the exchanges and their DNS until the control is closed."""
    hall, loop, over = Hall(), asyncio.get_running_loop(), asyncio.Event()

    def obey() -> None:
        try:
            wish = control.recv()
        except EOFError:
            loop.remove_reader(control.fileno())
            over.set()
            return
        if isinstance(wish, Manners):
            hall.manners = wish
            hall.counts.clear()
        control.send(Counter(hall.counts))

    port = free_port()
    hosts = [host_of(n) for n in range(exchanges)]
    server = await loop.create_server(lambda: Session(hall), hosts, port, backlog=BACKLOG)
    names, _ = await loop.create_datagram_endpoint(lambda: Names(exchanges), ("127.0.0.1", 0))
    async with server:
        loop.add_reader(control.fileno(), obey)
        control.send((port, "{}:{}".format(*names.get_extra_info("sockname"))))
        await over.wait()


def run_server(exchanges: int, control: Connection, other_end: Connection) -> None:
    """Be the process."""
    other_end.close()  # so that the control ends when the benchmark does
    asyncio.run(serve(exchanges, control))


@contextmanager
def run_stub(exchanges: int) -> Iterator[Stub]:
    """Run the exchanges in another process."""
    ours, theirs = multiprocessing.Pipe()
    child = (exchanges, theirs, ours)
    process = multiprocessing.get_context("fork").Process(
        target=run_server, args=child, daemon=True
    )
    process.start()
    theirs.close()
    try:
        yield Stub(ours)
    finally:
        ours.close()
        process.join()
