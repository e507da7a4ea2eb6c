"""A connection to a scripted mail server: commands in, scripted replies out in time.

`SmtpConnection` handles the commands, `DelayedWriter` sends the replies, `SmtpStats` counts.
"""

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


FLOOD = b"a" * 65536
FLOOD_PIECES = 160  # 10 MB
TRICKLE = 0.02  # seconds from one byte to the next
MAX_COMMAND = 4096


@dataclass(slots=True)
class SmtpStats:
    """What one exchange counted."""

    sessions: int = 0  # all connections
    open_now: int = 0
    most_open: int = 0  # at any one time
    rcpts: Counter[str] = field(default_factory=Counter)  # RCPT commands by address in lower case
    refused: int = 0  # commands
    quits: int = 0
    datas: int = 0
    secured: int = 0  # sessions under TLS
    commands: Counter[str] = field(default_factory=Counter)  # by verb

    def count_connection(self) -> None:
        self.sessions += 1
        self.open_now += 1
        self.most_open = max(self.most_open, self.open_now)


ANOTHER_DOMAIN = (
    "451 4.3.0 Multiple destination domains per transaction is unsupported. Please try again."
)


class DelayedWriter:
    """Writes replies to one connection in order, each when it is due."""

    def __init__(self, delay: float) -> None:
        self.delay = delay  # seconds from a command to its reply, as in a round trip
        self.loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport | None = None
        self.pending: list[bytes] = []
        self.due = 0.0  # when the last reply is sent, by the loop's clock

    def put(self, data: bytes, *, penalty: float = 0.0) -> None:
        """Queue bytes, with so many seconds between them and the previous ones."""
        now = self.loop.time()
        if not self.delay and not penalty and self.due <= now:
            self.pending.append(data)
            return
        self.due = max(self.due, now + self.delay) + penalty
        self.loop.call_at(self.due, self.write, data)

    def flush(self) -> None:
        """Write what is due now, in one piece."""
        if self.pending:
            data = b"".join(self.pending)
            self.pending = []
            self.write(data)

    def write(self, data: bytes) -> None:
        """Write unless the connection is closed."""
        if self.is_open():
            assert self.transport
            self.transport.write(data)

    def is_open(self) -> bool:
        return self.transport is not None and not self.transport.is_closing()

    def repeat(self, data: bytes, interval: float) -> None:
        """Write the same bytes again and again until the connection is closed."""
        if self.is_open():
            self.write(data)
            self.loop.call_later(interval, self.repeat, data, interval)

    def close(self) -> None:
        """Close the connection once everything is sent."""
        self.flush()
        if self.transport:
            self.loop.call_at(max(self.due, self.loop.time()), self.transport.close)

    def abort(self) -> None:
        """Close the connection now."""
        if self.transport:
            self.transport.abort()


class SmtpConnection(asyncio.Protocol):
    """The server's side of one session with an exchange."""

    def __init__(
        self,
        exchange: Exchange,
        stats: SmtpStats,
        connections: set[SmtpConnection],  # the open ones, this one included
        first_asked: dict[str, float],  # when each recipient was first asked about, for greylisting
        make_tls: Callable[[], ssl.SSLContext],
    ) -> None:
        self.exchange = exchange
        self.stats = stats
        self.connections = connections
        self.first_asked = first_asked
        self.make_tls = make_tls
        self.loop = asyncio.get_running_loop()
        self.writer = DelayedWriter(exchange.delay)
        self.buffer = b""
        self.commands_so_far: Counter[str] = Counter()
        self.refused = 0
        self.accepted_in_session = 0
        self.accepted: list[str] = []  # addresses of the transaction under way
        self.has_transaction = False
        self.is_secure = False
        self.is_done = False  # handles no more commands
        self.upgrading: asyncio.Task[None] | None = None

    # --- called by asyncio ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast, because uvloop's transport has the methods but not the base class.
        self.writer.transport = cast("asyncio.Transport", transport)
        self.connections.add(self)
        self.stats.count_connection()
        if not self.inject_fault("connect"):
            self.reply(self.exchange.greeting)
            if self.exchange.greeting.startswith("421"):
                self.close()
        self.writer.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        if self in self.connections:
            self.connections.discard(self)
            self.stats.open_now -= 1
        self.is_done = True

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if self.upgrading is None:  # commands sent during the handshake are answered under TLS
            self.handle_buffer()

    def handle_buffer(self) -> None:
        """Handle every complete command."""
        *lines, self.buffer = self.buffer.split(b"\n")
        for line in lines:
            if not self.is_done:
                self.handle(line.removesuffix(b"\r").decode("utf-8", "replace")[:MAX_COMMAND])
        self.writer.flush()

    # --- commands ---------------------------------------------------------------------------------

    def handle(self, line: str) -> None:
        """Answer one command, or inject the fault at it."""
        verb = line[:4].upper()
        if line.upper().startswith("STARTTLS"):
            verb = "STARTTLS"
        self.stats.commands[verb] += 1
        if verb == "RCPT":
            self.stats.rcpts[path_of(line).lower()] += 1
        if self.inject_fault(verb):
            return
        answer = COMMANDS.get(verb, SmtpConnection.on_unknown)
        answer(self, line)
        if self.exchange.cut_after and self.refused >= self.exchange.cut_after:
            self.shut("421 4.7.0 {host} Error: too many errors")

    def on_unknown(self, line: str) -> None:
        self.reply("500 5.5.2 Error: bad syntax")

    def on_ehlo(self, line: str) -> None:
        self.has_transaction = False
        if self.exchange.ehlo:
            self.reply(self.exchange.ehlo)
            return
        lines = ["{host}", *self.exchange.extensions]
        if self.exchange.starttls != "no" and not self.is_secure:
            lines.append("STARTTLS")
        if self.exchange.smtputf8:
            lines.append("SMTPUTF8")
        last = lines.pop()
        reply = [f"250-{text}" for text in lines]
        reply.append(f"250 {last}")
        self.reply("\r\n".join(reply))

    def on_helo(self, line: str) -> None:
        self.has_transaction = False
        self.reply("250 {host}")

    def on_mail(self, line: str) -> None:
        if self.exchange.starttls == "demanded" and not self.is_secure:
            self.refuse("530 5.7.0 Must issue a STARTTLS command first")
        elif self.has_transaction:
            self.refuse("503 5.5.1 Error: nested MAIL command")
        elif self.exchange.mail:
            self.refuse(self.exchange.mail)
        else:
            self.has_transaction = True
            self.accepted = []
            self.reply("250 2.1.0 Ok")

    def on_rcpt(self, line: str) -> None:
        if not self.has_transaction:
            self.refuse("503 5.5.1 Error: need MAIL command")
            return
        address = path_of(line)
        refusal = self.refusal(address)
        if refusal:
            self.refuse(refusal.replace("{address}", address))
            return
        self.accepted.append(address)
        self.accepted_in_session += 1
        self.reply("250 2.1.5 Ok")

    def refusal(self, address: str) -> str:
        """The reply that refuses a recipient; empty if it is accepted."""
        local, _, _ = address.rpartition("@")
        exchange = self.exchange
        if exchange.rcpt:
            return exchange.rcpt
        if exchange.deny_after and self.stats.refused >= exchange.deny_after:
            return exchange.unknown
        limit = self.limit_reply(address)
        if limit:
            return limit
        if local in exchange.special:
            return exchange.special[local]
        if exchange.mailboxes is not None and local not in exchange.mailboxes:
            return exchange.unknown
        return self.greylisting_reply(address)

    def limit_reply(self, address: str) -> str:
        """The reply to one recipient or domain too many; empty below the limits."""
        exchange = self.exchange
        if exchange.one_domain and self.accepted:
            domain = domain_of(self.accepted[0])
            if domain_of(address) != domain:
                return ANOTHER_DOMAIN
        if exchange.max_recipients and len(self.accepted) >= exchange.max_recipients:
            return "452 4.5.3 Error: too many recipients"
        if exchange.max_per_session and self.accepted_in_session >= exchange.max_per_session:
            return "452 4.5.3 Error: too many recipients"
        return ""

    def greylisting_reply(self, address: str) -> str:
        """The greylisting reply until enough time has passed since the first RCPT; then empty."""
        if not self.exchange.greylist:
            return ""
        first = self.first_asked.setdefault(address.lower(), self.loop.time())
        if self.loop.time() - first >= self.exchange.greylist:
            return ""
        return GREYLISTED.replace("{wait}", str(math.ceil(self.exchange.greylist)))

    def on_rset(self, line: str) -> None:
        self.has_transaction = False
        self.reply("250 2.0.0 Ok")

    def on_quit(self, line: str) -> None:
        self.stats.quits += 1
        self.reply("221 2.0.0 Bye")
        self.close()

    def on_data(self, line: str) -> None:
        """Refuse: no message is ever accepted."""
        self.stats.datas += 1
        self.refuse("554 5.5.1 Error: no valid recipients")

    def on_starttls(self, line: str) -> None:
        if self.exchange.starttls == "no" or self.is_secure:
            self.refuse("502 5.5.1 Error: command not implemented")
            return
        self.reply("220 2.0.0 Ready to start TLS")
        if self.exchange.starttls == "broken":
            self.writer.put(b"this is not TLS\r\n" * 8)
            self.close()
            return
        if self.writer.transport:
            # An early ClientHello must wait for the protocol of the handshake.
            self.writer.transport.pause_reading()
        self.writer.flush()
        self.upgrading = self.loop.create_task(self.upgrade())

    async def upgrade(self) -> None:
        """Do the TLS handshake; drop the connection if it fails."""
        assert self.writer.transport
        await asyncio.sleep(max(0.0, self.writer.due - self.loop.time()))
        try:
            transport = await self.loop.start_tls(
                self.writer.transport, self, self.make_tls(), server_side=True
            )
        except (OSError, ssl.SSLError):
            transport = None
        self.upgrading = None
        if transport is None:
            self.abort()
            return
        self.writer.transport = transport
        self.is_secure = True
        self.has_transaction = False
        self.stats.secured += 1
        self.handle_buffer()

    # --- replies ----------------------------------------------------------------------------------

    def reply(self, text: str) -> None:
        """Send a reply; delay it if the client was refused too often."""
        exchange = self.exchange
        client = ""
        if self.writer.transport:
            peer = self.writer.transport.get_extra_info("peername")
            if peer:
                client = peer[0]
        text = text.replace("{host}", exchange.host).replace("{client}", client)
        penalty = 0.0
        if exchange.slow_after and self.refused >= exchange.slow_after:
            penalty = exchange.slow_by
        self.writer.put(text.encode() + b"\r\n", penalty=penalty)

    def refuse(self, text: str) -> None:
        """Send a reply that counts as a refusal."""
        self.refused += 1
        self.stats.refused += 1
        self.reply(text)

    def shut(self, text: str) -> None:
        """Send a last reply and close."""
        self.reply(text)
        self.close()

    def close(self) -> None:
        """Close the connection once everything is sent."""
        self.is_done = True
        self.writer.close()

    def abort(self) -> None:
        """Close the connection now."""
        self.is_done = True
        if self.upgrading:
            self.upgrading.cancel()
        self.writer.abort()

    # --- faults -----------------------------------------------------------------------------------

    def inject_fault(self, at: str) -> bool:
        """Do what a fault at this command says, if there is one; returns whether there was."""
        count = self.commands_so_far[at]
        self.commands_so_far[at] += 1
        for fault in self.exchange.faults:
            if fault.at == at and count >= fault.after:
                break
        else:
            return False
        if fault.does == "lose" and count > fault.after:
            return False
        self.writer.flush()  # earlier replies are sent first
        FAULTS[fault.does](self, fault)
        return True

    def be_silent(self, fault: SmtpFault) -> None:
        """Send nothing more."""
        self.is_done = True

    def lose(self, fault: SmtpFault) -> None:
        """Skip one reply."""

    def drop(self, fault: SmtpFault) -> None:
        self.close()

    def reset(self, fault: SmtpFault) -> None:
        """Make the kernel send RST."""
        assert self.writer.transport
        self.writer.transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        self.abort()

    def say(self, fault: SmtpFault) -> None:
        """Send the given bytes instead of a reply."""
        self.writer.put(fault.text.encode("latin-1"))

    def shut_down(self, fault: SmtpFault) -> None:
        self.shut("421 4.3.2 {host} Service not available, closing transmission channel")

    def send_endless_reply(self, fault: SmtpFault) -> None:
        """Send continuation lines without a last line."""
        self.is_done = True
        code = b"250"
        if fault.at == "connect":
            code = b"220"
        self.writer.repeat(code + b"-and there is more\r\n", 0.001)

    def trickle(self, fault: SmtpFault) -> None:
        """Send one byte at a time, slowly."""
        self.is_done = True
        self.writer.repeat(b"2", TRICKLE)

    def flood(self, fault: SmtpFault) -> None:
        """Send 10 MB without a line end."""
        self.is_done = True
        for _ in range(FLOOD_PIECES):
            self.writer.write(FLOOD)


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
    "endless": SmtpConnection.send_endless_reply,
    "trickle": SmtpConnection.trickle,
    "flood": SmtpConnection.flood,
}


def path_of(line: str) -> str:
    """The address between the angle brackets of a command."""
    return line.partition("<")[2].rpartition(">")[0]


def domain_of(address: str) -> str:
    """Everything after the last at sign."""
    return address.rpartition("@")[2].lower()
