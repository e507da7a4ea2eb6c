"""Replies on their way out: in order, each when it is due."""

from __future__ import annotations

import asyncio
import math
import socket
import ssl
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from .smtp_script import GREYLISTED, Exchange, SmtpFault

__all__ = ["DelayedWriter", "SmtpConnection", "SmtpStats"]


class DelayedWriter:
    """Writes to one connection.

    Parameters
    ----------
    delay : float
        Seconds from a command to its reply: a round trip.

    Attributes
    ----------
    due : float
        When the last reply goes out, by the loop's clock.
    """

    def __init__(self, delay: float) -> None:
        self.delay = delay
        self.loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport | None = None
        self.pending: list[bytes] = []
        self.due = 0.0

    def put(self, data: bytes, *, penalty: float = 0.0) -> None:
        """Put bytes behind all others, with so many seconds between them and the ones before."""
        now = self.loop.time()
        if not self.delay and not penalty and self.due <= now:
            self.pending.append(data)
            return
        self.due = max(self.due, now + self.delay) + penalty
        self.loop.call_at(self.due, self.write, data)

    def flush(self) -> None:
        """Write what is due at once, in one piece."""
        if self.pending:
            data, self.pending = b"".join(self.pending), []
            self.write(data)

    def write(self, data: bytes) -> None:
        """Write, if anybody is there."""
        if self.is_open():
            assert self.transport
            self.transport.write(data)

    def is_open(self) -> bool:
        """Whether anybody is there."""
        return self.transport is not None and not self.transport.is_closing()

    def repeat(self, data: bytes, every: float) -> None:
        """Write the same again and again, for as long as anybody is there."""
        if self.is_open():
            self.write(data)
            self.loop.call_later(every, self.repeat, data, every)

    def close(self) -> None:
        """End the connection once everything is sent."""
        self.flush()
        if self.transport:
            self.loop.call_at(max(self.due, self.loop.time()), self.transport.close)

    def abort(self) -> None:
        """Drop the connection."""
        if self.transport:
            self.transport.abort()


FLOOD = b"a" * 65536
FLOOD_PIECES = 160  # 10 MB
TRICKLE = 0.02  # seconds from one byte to the next
MAX_COMMAND = 4096


@dataclass(slots=True)
class SmtpStats:
    """What one exchange counted.

    Attributes
    ----------
    sessions, open_now, most_open : int
        Connections: all of them, now, and at most at any instant.
    rcpts : Counter of str
        RCPT commands by address in lower case.
    quits, datas, secured : int
        QUIT and DATA commands, and sessions under TLS.
    commands : Counter of str
        Commands by verb.
    """

    sessions: int = 0
    open_now: int = 0
    most_open: int = 0
    rcpts: Counter[str] = field(default_factory=Counter)
    quits: int = 0
    datas: int = 0
    secured: int = 0
    commands: Counter[str] = field(default_factory=Counter)

    def opened(self) -> None:
        """Count a connection."""
        self.sessions += 1
        self.open_now += 1
        self.most_open = max(self.most_open, self.open_now)


class SmtpConnection(asyncio.Protocol):
    """Plays one session of an exchange.

    Parameters
    ----------
    exchange : Exchange
        What to play.
    stats : SmtpStats
        Where to count.
    connections : set of SmtpConnection
        The open ones; this one is in it while it lasts.
    first_asked : dict of str to float
        When each recipient was first asked about, for greylisting.
    make_tls : callable
        Gives the TLS context.
    """

    def __init__(
        self,
        exchange: Exchange,
        stats: SmtpStats,
        connections: set[SmtpConnection],
        first_asked: dict[str, float],
        make_tls: Callable[[], ssl.SSLContext],
    ) -> None:
        self.exchange = exchange
        self.stats = stats
        self.connections = connections
        self.first_asked = first_asked
        self.make_tls = make_tls
        self.loop = asyncio.get_running_loop()
        self.outbox = DelayedWriter(exchange.delay)
        self.buffer = b""
        self.seen: Counter[str] = Counter()
        self.refused = 0
        self.accepted_in_session = 0
        self.accepted: list[str] = []  # addresses of the transaction under way
        self.has_transaction = False
        self.is_secure = False
        self.is_over = False
        self.upgrading: asyncio.Task[None] | None = None

    # --- from asyncio ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count, and greet."""
        self.outbox.transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but its bases
        self.connections.add(self)
        self.stats.opened()
        if not self.go_wrong("connect"):
            self.reply(self.exchange.greeting)
            if self.exchange.greeting.startswith("421"):
                self.end()
        self.outbox.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count."""
        if self in self.connections:
            self.connections.discard(self)
            self.stats.open_now -= 1
        self.is_over = True

    def data_received(self, data: bytes) -> None:
        """Take commands."""
        self.buffer += data
        if self.upgrading is None:  # what comes during the handshake is answered under TLS
            self.handle_buffer()

    def handle_buffer(self) -> None:
        """Handle every complete command."""
        *lines, self.buffer = self.buffer.split(b"\n")
        for line in lines:
            if not self.is_over:
                self.handle(line.removesuffix(b"\r").decode("utf-8", "replace")[:MAX_COMMAND])
        self.outbox.flush()

    # --- commands ------------------------------------------------------------------------------------

    def handle(self, line: str) -> None:
        """Answer one command, or do what goes wrong at it."""
        verb = line[:4].upper() if not line.upper().startswith("STARTTLS") else "STARTTLS"
        self.stats.commands[verb] += 1
        if verb == "RCPT":
            self.stats.rcpts[path_of(line).lower()] += 1
        if self.go_wrong(verb):
            return
        answer = COMMANDS.get(verb, SmtpConnection.on_unknown)
        answer(self, line)
        if self.exchange.cut_after and self.refused >= self.exchange.cut_after:
            self.shut("421 4.7.0 {host} Error: too many errors")

    def on_unknown(self, line: str) -> None:
        """Any other command."""
        self.reply("500 5.5.2 Error: bad syntax")

    def on_ehlo(self, line: str) -> None:
        """EHLO."""
        self.has_transaction = False
        if self.exchange.ehlo:
            self.reply(self.exchange.ehlo)
            return
        lines = ["{host}", *self.exchange.extensions]
        if self.exchange.starttls != "no" and not self.is_secure:
            lines.append("STARTTLS")
        if self.exchange.smtputf8:
            lines.append("SMTPUTF8")
        self.reply("\r\n".join([*(f"250-{text}" for text in lines[:-1]), f"250 {lines[-1]}"]))

    def on_helo(self, line: str) -> None:
        """HELO."""
        self.has_transaction = False
        self.reply("250 {host}")

    def on_mail(self, line: str) -> None:
        """MAIL."""
        if self.exchange.starttls == "demanded" and not self.is_secure:
            self.refuse("530 5.7.0 Must issue a STARTTLS command first")
        elif self.has_transaction:
            self.refuse("503 5.5.1 Error: nested MAIL command")
        elif self.exchange.mail:
            self.refuse(self.exchange.mail)
        else:
            self.has_transaction, self.accepted = True, []
            self.reply("250 2.1.0 Ok")

    def on_rcpt(self, line: str) -> None:
        """RCPT."""
        address = path_of(line)
        if not self.has_transaction:
            self.refuse("503 5.5.1 Error: need MAIL command")
        elif reply := self.refusal(address):
            self.refuse(reply.replace("{address}", address))
        else:
            self.accepted.append(address)
            self.accepted_in_session += 1
            self.reply("250 2.1.5 Ok")

    def refusal(self, address: str) -> str:
        """The reply that refuses a recipient; empty if it is accepted."""
        local, _, _ = address.rpartition("@")
        exchange = self.exchange
        if exchange.rcpt:
            return exchange.rcpt
        if limit := self.over_limit(address):
            return limit
        if local in exchange.special:
            return exchange.special[local]
        if exchange.mailboxes is not None and local not in exchange.mailboxes:
            return exchange.unknown
        return self.grey(address)

    def over_limit(self, address: str) -> str:
        """Too many recipients, or of too many domains."""
        exchange = self.exchange
        if exchange.one_domain and self.accepted and domain_of(self.accepted[0]) != domain_of(address):
            return "451 4.3.0 Multiple destination domains per transaction is unsupported. Please try again."
        if exchange.max_recipients and len(self.accepted) >= exchange.max_recipients:
            return "452 4.5.3 Error: too many recipients"
        if exchange.max_per_session and self.accepted_in_session >= exchange.max_per_session:
            return "452 4.5.3 Error: too many recipients"
        return ""

    def grey(self, address: str) -> str:
        """Later, if this recipient was not asked about long enough ago."""
        if not self.exchange.greylist:
            return ""
        first = self.first_asked.setdefault(address.lower(), self.loop.time())
        if self.loop.time() - first >= self.exchange.greylist:
            return ""
        return GREYLISTED.replace("{wait}", str(math.ceil(self.exchange.greylist)))

    def on_rset(self, line: str) -> None:
        """RSET."""
        self.has_transaction = False
        self.reply("250 2.0.0 Ok")

    def on_quit(self, line: str) -> None:
        """QUIT."""
        self.stats.quits += 1
        self.reply("221 2.0.0 Bye")
        self.end()

    def on_data(self, line: str) -> None:
        """DATA: nothing is ever taken here."""
        self.stats.datas += 1
        self.refuse("554 5.5.1 Error: no valid recipients")

    def on_starttls(self, line: str) -> None:
        """STARTTLS."""
        if self.exchange.starttls == "no" or self.is_secure:
            self.refuse("502 5.5.1 Error: command not implemented")
            return
        self.reply("220 2.0.0 Ready to start TLS")
        if self.exchange.starttls == "broken":
            self.outbox.put(b"this is not TLS\r\n" * 8)
            self.end()
            return
        if self.outbox.transport:
            self.outbox.transport.pause_reading()  # a quick client's hello must wait for the handshake's protocol
        self.outbox.flush()
        self.upgrading = self.loop.create_task(self.upgrade())

    async def upgrade(self) -> None:
        """Handshake as the server; a client that fails it is gone."""
        assert self.outbox.transport
        await asyncio.sleep(max(0.0, self.outbox.due - self.loop.time()))
        try:
            transport = await self.loop.start_tls(self.outbox.transport, self, self.make_tls(), server_side=True)
        except (OSError, ssl.SSLError):
            transport = None
        self.upgrading = None
        if transport is None:
            self.abort()
            return
        self.outbox.transport, self.is_secure, self.has_transaction = transport, True, False
        self.stats.secured += 1
        self.handle_buffer()

    # --- replies ---------------------------------------------------------------------------------------

    def reply(self, text: str) -> None:
        """Send a reply when it is due: later, if the client has been refused too often."""
        exchange = self.exchange
        peer = self.outbox.transport.get_extra_info("peername") if self.outbox.transport else None
        filled = text.replace("{host}", exchange.host).replace("{client}", peer[0] if peer else "")
        is_punished = exchange.slow_after and self.refused >= exchange.slow_after
        self.outbox.put(filled.encode() + b"\r\n", penalty=exchange.slow_by if is_punished else 0.0)

    def refuse(self, text: str) -> None:
        """Send a reply that counts as an error of the client's."""
        self.refused += 1
        self.reply(text)

    def shut(self, text: str) -> None:
        """421 and end."""
        self.reply(text)
        self.end()

    def end(self) -> None:
        """End the connection once everything is sent."""
        self.is_over = True
        self.outbox.close()

    def abort(self) -> None:
        """Drop the connection."""
        self.is_over = True
        if self.upgrading:
            self.upgrading.cancel()
        self.outbox.abort()

    # --- going wrong -------------------------------------------------------------------------------------

    def go_wrong(self, at: str) -> bool:
        """Do what goes wrong here, if anything does."""
        count = self.seen[at]
        self.seen[at] += 1
        fault = next((f for f in self.exchange.faults if f.at == at and count >= f.after), None)
        if fault is None or (fault.does == "lose" and count > fault.after):
            return False
        self.outbox.flush()  # what was answered before goes out before
        FAULTS[fault.does](self, fault)
        return True

    def be_silent(self, fault: SmtpFault) -> None:
        """Say nothing, for ever."""
        self.is_over = True

    def lose(self, fault: SmtpFault) -> None:
        """Skip one reply."""

    def drop(self, fault: SmtpFault) -> None:
        """End the connection."""
        self.end()

    def reset(self, fault: SmtpFault) -> None:
        """Have the kernel send RST."""
        assert self.outbox.transport
        self.outbox.transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        self.abort()

    def say(self, fault: SmtpFault) -> None:
        """Send bytes that are no reply."""
        self.outbox.put(fault.text.encode("latin-1"))

    def shut_down(self, fault: SmtpFault) -> None:
        """421 and end."""
        self.shut("421 4.3.2 {host} Service not available, closing transmission channel")

    def go_on(self, fault: SmtpFault) -> None:
        """Lines of a reply without a last one."""
        self.is_over = True
        self.outbox.repeat(
            b"250-and there is more\r\n" if fault.at != "connect" else b"220-and there is more\r\n", 0.001
        )

    def trickle(self, fault: SmtpFault) -> None:
        """A byte now and then."""
        self.is_over = True
        self.outbox.repeat(b"2", TRICKLE)

    def flood(self, fault: SmtpFault) -> None:
        """10 MB without a line end."""
        self.is_over = True
        for _ in range(FLOOD_PIECES):
            self.outbox.write(FLOOD)


COMMANDS: dict[str, Callable[[SmtpConnection, str], None]] = {
    "EHLO": SmtpConnection.on_ehlo,
    "HELO": SmtpConnection.on_helo,
    "MAIL": SmtpConnection.on_mail,
    "RCPT": SmtpConnection.on_rcpt,
    "RSET": SmtpConnection.on_rset,
    "QUIT": SmtpConnection.on_quit,
    "DATA": SmtpConnection.on_data,
    "STARTTLS": SmtpConnection.on_starttls,
}
FAULTS: dict[str, Callable[[SmtpConnection, SmtpFault], None]] = {
    "silence": SmtpConnection.be_silent,
    "lose": SmtpConnection.lose,
    "drop": SmtpConnection.drop,
    "reset": SmtpConnection.reset,
    "say": SmtpConnection.say,
    "shut": SmtpConnection.shut_down,
    "endless": SmtpConnection.go_on,
    "trickle": SmtpConnection.trickle,
    "flood": SmtpConnection.flood,
}


def path_of(line: str) -> str:
    """The address between the angle brackets of a command."""
    return line.partition("<")[2].rpartition(">")[0]


def domain_of(address: str) -> str:
    """Everything after the last at sign."""
    return address.rpartition("@")[2].lower()
