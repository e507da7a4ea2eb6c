"""Drives a session over asyncio: connect, bytes, deadlines, TLS. Every failure of the transport is a value.

The protocol steps the session's generator from `data_received`, without a task switch per reply: one
process asks tens of thousands of recipients a second.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

from ....model.settings import Network
from ..classify.classification import Failure, FailureKind, classify_failure
from ..protocol.session import Session
from ..protocol.steps import LimitObserved, Read, RecipientAnswer, Send, Sent, SessionEnd, StartTls, Step, TimedReply
from ..replies import Reply, ReplyParser
from .dial import Target, dial

__all__ = ["SessionTimeouts", "Transcript", "drive_session"]

Transcript = list[tuple[float, str, str]]
"""Lines of a dialogue: seconds since the beginning, ``C``, ``S`` or ``*`` (us, the server, what happened), text."""

Handler = Callable[[RecipientAnswer | LimitObserved], None]
SHUT = 421


@dataclass(frozen=True, slots=True)
class SessionTimeouts:
    """How long to wait, in seconds.

    Attributes
    ----------
    connect : float
        For TCP over all addresses of the exchange, and again for the greeting.
    command : float
        For each reply, from when it could first be expected.
    session : float
        From connection to QUIT.
    quit : float
        For the reply to QUIT, which changes nothing.
    """

    connect: float = 15.0
    command: float = 30.0
    session: float = 300.0
    quit: float = 5.0


async def drive_session(
    session: Session,
    addresses: Sequence[str],
    *,
    port: int = 25,
    limits: SessionTimeouts | None = None,
    handle: Handler | None = None,
    allow_networks: Sequence[Network] = (),
    source: str | None = None,
    transcript: Transcript | None = None,
    tls: ssl.SSLContext | None = None,
) -> SessionEnd:
    """Hold `session` with the first of `addresses` that can be connected to.

    Parameters
    ----------
    session : Session
        Not yet begun.
    addresses : sequence of str
        IP addresses of one exchange, in the order to try.
    port : int
        TCP port.
    limits : SessionTimeouts, optional
        Deadlines.
    handle : callable, optional
        Gets every `RecipientAnswer` and `LimitObserved` as it happens.
    allow_networks : sequence of network
        Non-global networks that may be contacted all the same.
    source : str, optional
        Local IP address to connect from.
    transcript : list, optional
        Gets every line.
    tls : ssl.SSLContext, optional
        For STARTTLS; the default verifies nothing, as opportunistic TLS (RFC 7435) does not.

    Returns
    -------
    SessionEnd
        Also when no connection was made; nothing is raised for what a server does.

    Raises
    ------
    asyncio.CancelledError
        If cancelled; QUIT is sent and the connection closed first.
    """
    limits = limits or SessionTimeouts()
    protocol = SessionProtocol(session, limits, handle or ignore, transcript, tls or default_tls())
    protocol.note("*", f"connecting to {', '.join(addresses) or 'nothing'}, port {port}")
    target = Target(tuple(addresses), port, source, tuple(allow_networks))
    where = await dial(target, lambda: protocol, limits.connect)
    if isinstance(where, Failure):
        protocol.note("*", where.detail)
        return SessionEnd(classify_failure(where), "connect", where.detail)
    try:
        return replace(await protocol.run(), host=where)
    finally:
        protocol.close()


def ignore(event: RecipientAnswer | LimitObserved) -> None:
    """Nobody listens."""


@lru_cache(maxsize=1)
def default_tls() -> ssl.SSLContext:
    """TLS without verification: against listeners, not against impostors; mail exchanges have odd certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class SessionProtocol(asyncio.Protocol):
    """One connection: bytes to replies, deadlines to failures, and the session's steps in between."""

    def __init__(
        self,
        session: Session,
        limits: SessionTimeouts,
        handle: Handler,
        transcript: Transcript | None,
        tls: ssl.SSLContext,
    ) -> None:
        self.session = session
        self.limits = limits
        self.handle = handle
        self.transcript = transcript
        self.tls = tls
        self.loop = asyncio.get_running_loop()
        self.steps = session.dialogue()
        self.parser = ReplyParser()
        self.replies: deque[Reply] = deque()
        self.failure: Failure | None = None
        self.waiting = ""  # the phase of the Read under way
        self.began = self.since = self.loop.time()
        self.end = self.deadline = float("inf")
        self.timer: asyncio.TimerHandle | None = None
        self.upgrading: asyncio.Task[None] | None = None
        self.transport: asyncio.Transport | None = None
        self.done: asyncio.Future[SessionEnd] = self.loop.create_future()
        self.has_bytes = self.is_lost = False

    # --- the two ends ----------------------------------------------------------------------------

    async def run(self) -> SessionEnd:
        """Run the session to its end."""
        self.end = self.loop.time() + self.limits.session
        self.since = self.loop.time()
        self.advance(None)
        try:
            return await self.done
        except asyncio.CancelledError:
            self.send_quit()
            raise

    def send_quit(self) -> None:
        """QUIT, unheard: whoever cancelled does not want to wait."""
        self.steps.close()
        if self.transport and not self.transport.is_closing() and not self.upgrading:
            self.write(b"QUIT\r\n")

    def close(self) -> None:
        """Close the connection; what the server does not read within a moment is lost."""
        if self.timer:
            self.timer.cancel()
        if self.upgrading:
            self.upgrading.cancel()
        if not self.transport:
            return
        if self.session.is_secure and not self.transport.get_write_buffer_size():
            self.transport.abort()  # everything is said; a TLS shutdown would wait for the server's
            return
        self.transport.close()
        if not self.is_lost:
            self.timer = self.loop.call_later(self.limits.quit, self.transport.abort)

    # --- from asyncio ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note the transport; `run` begins."""
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but its bases

    def data_received(self, data: bytes) -> None:
        """Parse, and go on if the session was waiting for this."""
        self.has_bytes = True
        self.replies.extend(self.parser.feed(data))
        if self.parser.fault and not self.failure:
            kind = FailureKind.NO_REPLY if self.parser.heard_smtp else FailureKind.NOT_SMTP
            self.failure = Failure(kind, self.parser.fault)
        self.wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """The server, or the way to it, ended the connection."""
        self.is_lost = True
        if self.timer:
            self.timer.cancel()
        self.fail(self.kind_of_end(), f"the connection ended: {exc or 'closed by the server'}")

    def kind_of_end(self) -> FailureKind:
        """What an end of the connection means now."""
        if self.parser.heard_smtp:
            return FailureKind.DROPPED
        return FailureKind.NOT_SMTP if self.has_bytes else FailureKind.NO_DATA

    # --- stepping the session ------------------------------------------------------------------------

    def wake(self) -> None:
        """Give the session what it waits for, if it has come."""
        if self.waiting and (self.replies or self.failure):
            self.waiting = ""
            self.advance(self.hear())

    def hear(self) -> TimedReply | Failure:
        """The next reply, or why there is none."""
        if not self.replies:
            assert self.failure
            return self.failure
        reply, now = self.replies.popleft(), self.loop.time()
        heard = TimedReply(reply, now - self.since)
        self.since = now
        if self.transcript is not None:
            self.note_reply(reply)
        return heard

    def advance(self, value: Sent) -> None:
        """Take steps until one has to be waited for; a fault of our own goes to whoever awaits the session."""
        if self.done.done():
            return
        try:
            self.take_steps(value)
        except StopIteration as stop:
            self.done.set_result(stop.value)
        except Exception as exc:  # noqa: BLE001 - raised again in `run`
            self.done.set_exception(exc)

    def take_steps(self, value: Sent) -> None:
        """Step the session."""
        while True:
            step = self.steps.send(value)
            if isinstance(step, Read) and not (self.replies or self.failure):
                self.wait_for(step.phase)
                return
            if isinstance(step, StartTls):
                self.upgrading = self.loop.create_task(self.upgrade())
                return
            value = self.take(step)

    def take(self, step: Step) -> Sent:
        """Do what needs no waiting."""
        if isinstance(step, Read):
            return self.hear()
        if isinstance(step, Send):
            self.send(step.data)
        elif isinstance(step, RecipientAnswer | LimitObserved):
            self.handle(step)
        return None

    def send(self, data: bytes) -> None:
        """Write commands; a reply that is there before its command belongs to nothing."""
        unasked = self.parser.is_inside or any(reply.code != SHUT for reply in self.replies)
        if unasked and not self.failure:
            self.replies.clear()
            self.failure = Failure(FailureKind.NO_REPLY, "a reply came before its command")
        self.since = self.loop.time()
        self.write(data)

    def write(self, data: bytes) -> None:
        """Write, if there is still someone to write to."""
        if self.transport and not self.transport.is_closing():
            self.transport.write(data)
        if self.transcript is not None:
            for line in data.decode("utf-8", "replace").splitlines():
                self.note("C", line)

    def fail(self, kind: FailureKind, detail: str) -> None:
        """End the wait with a failure; the first one counts."""
        self.failure = self.failure or Failure(kind, detail)
        self.wake()

    # --- deadlines -------------------------------------------------------------------------------------

    def wait_for(self, phase: str) -> None:
        """Wait for a reply; a trickle of bytes does not move the deadline, a complete reply does."""
        self.waiting = phase
        patience = {"banner": self.limits.connect, "quit": self.limits.quit}.get(phase, self.limits.command)
        self.deadline = min(self.since + patience, self.end)
        if self.timer is None or self.timer.cancelled() or self.timer.when() > self.deadline:
            self.arm()

    def arm(self) -> None:
        """One timer serves all waits: it looks at the deadline of the moment when it fires."""
        if self.timer:
            self.timer.cancel()
        self.timer = self.loop.call_at(self.deadline, self.look)

    def look(self) -> None:
        """See whether the deadline of the moment is over."""
        self.timer = None
        if self.done.done() or not self.waiting:
            return
        if self.loop.time() < self.deadline:
            self.arm()
        elif self.deadline >= self.end:
            self.fail(FailureKind.SESSION_TIMEOUT, f"the session took more than {self.limits.session:g} s")
        else:
            kind = FailureKind.BANNER_TIMEOUT if self.waiting == "banner" else FailureKind.REPLY_TIMEOUT
            self.fail(kind, f"no reply within {self.deadline - self.since:g} s")

    # --- TLS -------------------------------------------------------------------------------------------

    async def upgrade(self) -> None:
        """Handshake; bytes that came in the clear after the 220 are thrown away with the connection."""
        failure = await self.shake_hands()
        self.upgrading = None
        self.parser = ReplyParser()
        self.parser.heard_smtp = True
        self.note("*", failure.detail if failure else "TLS established, certificate not verified")
        self.advance(failure)

    async def shake_hands(self) -> Failure | None:
        """Upgrade the transport."""
        if self.parser.is_inside or self.replies:
            return Failure(FailureKind.TLS, "bytes in the clear after the server was ready for TLS")
        assert self.transport
        patience = max(0.001, min(self.limits.command, self.end - self.loop.time()))
        try:
            transport = await self.loop.start_tls(self.transport, self, self.tls, ssl_handshake_timeout=patience)
        except (OSError, ssl.SSLError, TimeoutError) as exc:
            return Failure(FailureKind.TLS, f"TLS failed: {str(exc) or type(exc).__name__}")
        if transport is None:  # the connection was lost meanwhile
            return Failure(FailureKind.TLS, "TLS failed: the connection ended")
        self.transport = transport
        return None

    # --- transcript --------------------------------------------------------------------------------------

    def note(self, direction: str, line: str) -> None:
        """Add a line to the transcript, if one is kept."""
        if self.transcript is not None:
            self.transcript.append((self.loop.time() - self.began, direction, line))

    def note_reply(self, reply: Reply) -> None:
        """Add the lines of a reply."""
        *first, last = reply.lines or ("",)
        for line in first:
            self.note("S", f"{reply.code}-{line}")
        self.note("S", f"{reply.code} {last}")
