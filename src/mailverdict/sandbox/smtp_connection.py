"""One connection to a made-up exchange: commands in, scripted replies out, in order and in time."""

from __future__ import annotations

import asyncio
import math
import socket
import ssl
import struct
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from .smtp_script import GREYLISTED, Exchange, Fault

if TYPE_CHECKING:
    from .smtp import SmtpStats

__all__ = ["Connection"]

FLOOD = b"a" * 65536
FLOOD_PIECES = 160  # 10 MB
TRICKLE = 0.02  # seconds from one byte to the next
MAX_COMMAND = 4096


class Connection(asyncio.Protocol):
    """Plays one session of an exchange.

    Parameters
    ----------
    exchange : Exchange
        What to play.
    stats : SmtpStats
        Where to count.
    connections : set of Connection
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
        connections: set[Connection],
        first_asked: dict[str, float],
        make_tls: Callable[[], ssl.SSLContext],
    ) -> None:
        self.exchange = exchange
        self.stats = stats
        self.connections = connections
        self.first_asked = first_asked
        self.make_tls = make_tls
        self.loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport | None = None
        self.buffer = b""
        self.seen: Counter[str] = Counter()
        self.refused = 0
        self.accepted_in_session = 0
        self.accepted: list[str] = []  # addresses of the transaction under way
        self.has_transaction = False
        self.is_secure = False
        self.is_over = False
        self.due = 0.0  # when the last reply goes out
        self.pending: list[bytes] = []
        self.upgrading: asyncio.Task[None] | None = None

    # --- from asyncio ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count, and greet."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.connections.add(self)
        self.stats.opened()
        if not self.go_wrong("connect"):
            self.reply(self.exchange.greeting)
            if not self.exchange.greeting.startswith("220"):
                self.is_over = self.exchange.greeting.startswith("421")
        self.flush()

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
        self.flush()

    # --- commands ------------------------------------------------------------------------------------

    def handle(self, line: str) -> None:
        """Answer one command, or do what goes wrong at it."""
        verb = line[:4].upper() if not line.upper().startswith("STARTTLS") else "STARTTLS"
        self.stats.commands[verb] += 1
        if verb == "RCPT":
            self.stats.rcpts[path_of(line).lower()] += 1
        if self.go_wrong(verb):
            return
        answer = COMMANDS.get(verb, Connection.on_unknown)
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
            self.later(b"this is not TLS\r\n" * 8)
            self.end()
            return
        self.flush()
        self.upgrading = self.loop.create_task(self.upgrade())

    async def upgrade(self) -> None:
        """Handshake as the server; a client that fails it is gone."""
        assert self.transport
        await asyncio.sleep(max(0.0, self.due - self.loop.time()))
        try:
            transport = await self.loop.start_tls(self.transport, self, self.make_tls(), server_side=True)
        except (OSError, ssl.SSLError):
            transport = None
        self.upgrading = None
        if transport is None:
            self.abort()
            return
        self.transport, self.is_secure, self.has_transaction = transport, True, False
        self.stats.secured += 1
        self.handle_buffer()

    # --- replies ---------------------------------------------------------------------------------------

    def reply(self, text: str) -> None:
        """Send a reply when it is due."""
        peer = self.transport.get_extra_info("peername") if self.transport else None
        filled = text.replace("{host}", self.exchange.host).replace("{client}", peer[0] if peer else "")
        self.later(filled.encode() + b"\r\n")

    def refuse(self, text: str) -> None:
        """Send a reply that counts as an error of the client's."""
        self.refused += 1
        self.reply(text)

    def later(self, data: bytes) -> None:
        """Put bytes behind all others: at once, or when the exchange's delays are over."""
        exchange = self.exchange
        is_slow = exchange.slow_after and self.refused >= exchange.slow_after
        if not exchange.delay and not is_slow and self.due <= self.loop.time():
            self.pending.append(data)
            return
        self.due = max(self.due, self.loop.time() + exchange.delay) + (exchange.slow_by if is_slow else 0.0)
        self.loop.call_at(self.due, self.write, data)

    def flush(self) -> None:
        """Write what is due at once, in one piece."""
        if self.pending:
            data, self.pending = b"".join(self.pending), []
            self.write(data)

    def write(self, data: bytes) -> None:
        """Write, if anybody is there."""
        if self.transport and not self.transport.is_closing():
            self.transport.write(data)

    def shut(self, text: str) -> None:
        """421 and end."""
        self.reply(text)
        self.end()

    def end(self) -> None:
        """End the connection once everything is sent."""
        self.is_over = True
        self.flush()
        self.loop.call_at(max(self.due, self.loop.time()), self.close)

    def close(self) -> None:
        """Close."""
        if self.transport:
            self.transport.close()

    def abort(self) -> None:
        """Drop the connection."""
        self.is_over = True
        if self.upgrading:
            self.upgrading.cancel()
        if self.transport:
            self.transport.abort()

    # --- going wrong -------------------------------------------------------------------------------------

    def go_wrong(self, at: str) -> bool:
        """Do what goes wrong here, if anything does."""
        count = self.seen[at]
        self.seen[at] += 1
        fault = next((f for f in self.exchange.faults if f.at == at and count >= f.after), None)
        if fault is None or (fault.does == "lose" and count > fault.after):
            return False
        FAULTS[fault.does](self, fault)
        return True

    def be_silent(self, fault: Fault) -> None:
        """Say nothing, for ever."""
        self.is_over = True

    def lose(self, fault: Fault) -> None:
        """Skip one reply."""

    def drop(self, fault: Fault) -> None:
        """End the connection."""
        self.end()

    def reset(self, fault: Fault) -> None:
        """Have the kernel send RST."""
        assert self.transport
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.abort()

    def say(self, fault: Fault) -> None:
        """Send bytes that are no reply."""
        self.later(fault.text.encode("latin-1"))

    def shut_down(self, fault: Fault) -> None:
        """421 and end."""
        self.shut("421 4.3.2 {host} Service not available, closing transmission channel")

    def go_on(self, fault: Fault) -> None:
        """Lines of a reply without a last one."""
        self.is_over = True
        self.repeat(b"250-and there is more\r\n" if fault.at != "connect" else b"220-and there is more\r\n", 0.001)

    def trickle(self, fault: Fault) -> None:
        """A byte now and then."""
        self.is_over = True
        self.repeat(b"2", TRICKLE)

    def repeat(self, data: bytes, every: float) -> None:
        """Send the same again and again."""
        if self.transport and not self.transport.is_closing():
            self.transport.write(data)
            self.loop.call_later(every, self.repeat, data, every)

    def flood(self, fault: Fault) -> None:
        """10 MB without a line end."""
        self.is_over = True
        for _ in range(FLOOD_PIECES):
            self.write(FLOOD)


COMMANDS: dict[str, Callable[[Connection, str], None]] = {
    "EHLO": Connection.on_ehlo,
    "HELO": Connection.on_helo,
    "MAIL": Connection.on_mail,
    "RCPT": Connection.on_rcpt,
    "RSET": Connection.on_rset,
    "QUIT": Connection.on_quit,
    "DATA": Connection.on_data,
    "STARTTLS": Connection.on_starttls,
}
FAULTS: dict[str, Callable[[Connection, Fault], None]] = {
    "silence": Connection.be_silent,
    "lose": Connection.lose,
    "drop": Connection.drop,
    "reset": Connection.reset,
    "say": Connection.say,
    "shut": Connection.shut_down,
    "endless": Connection.go_on,
    "trickle": Connection.trickle,
    "flood": Connection.flood,
}


def path_of(line: str) -> str:
    """The address between the angle brackets of a command."""
    return line.partition("<")[2].rpartition(">")[0]


def domain_of(address: str) -> str:
    """Everything after the last at sign."""
    return address.rpartition("@")[2].lower()
