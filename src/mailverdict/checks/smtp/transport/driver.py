"""Drives a session over asyncio: connection, bytes, deadlines, TLS.

Every failure of the transport is a value.

The asyncio protocol steps the session's generator from `data_received`, without a task switch per
reply: one process asks tens of thousands of recipients per second.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple, cast

from ....model.settings import Network
from ..classify.classification import ConnectionFailure, FailureKind, classify_failure
from ..classify.encodings import find_encoding
from ..protocol.session import (
    LimitObserved,
    Read,
    RecipientAnswers,
    Send,
    Session,
    SessionEnd,
    StartTls,
    Step,
    StepResult,
    TimedReplies,
    WindowPlan,
    WindowRequest,
)
from ..replies import CLOSING, Reply, ReplyParser
from .dial import Target, dial

Transcript = list[tuple[float, str, str]]
"""Lines of a dialogue: seconds since the beginning, who, and the text.

Who is ``C`` (client), ``S`` (server) or ``*`` (event).
"""

SHORTEST_WAIT = 0.001  # seconds; less is left of a time limit only by rounding


@dataclass(frozen=True, slots=True)
class SessionTimeouts:
    """How long to wait, in seconds."""

    connect: float = 15.0  # for TCP over all addresses of the exchange, and again for the greeting
    command: float = 30.0  # for each reply, from when it could first be expected
    session: float = 300.0  # from connection to QUIT
    quit: float = 5.0  # for the reply to QUIT, which changes nothing


def no_recipients(request: WindowRequest) -> WindowPlan:
    """End the session after EHLO."""
    return WindowPlan((), 0)


def ignore_event(*event: RecipientAnswers | LimitObserved) -> None:
    """Do nothing."""


class SessionHandler(NamedTuple):
    """The functions that give a session its recipients and receive the answers."""

    next_window: Callable[[WindowRequest], WindowPlan] = no_recipients
    on_reply: Callable[[RecipientAnswers], None] = ignore_event
    on_limit: Callable[[LimitObserved], None] = ignore_event
    # After the `on_reply` of the session's first reply to RCPT.
    on_first_reply: Callable[[], None] = ignore_event


async def drive_session(
    session: Session,
    addresses: Sequence[str],
    handler: SessionHandler | None = None,
    *,
    port: int = 25,
    timeouts: SessionTimeouts | None = None,
    allow_networks: Sequence[Network] = (),
    source: str | None = None,
    transcript: Transcript | None = None,
) -> SessionEnd:
    """Run a new `session` with the first of `addresses` that accepts a connection.

    They are IP addresses, all of one exchange.

    `source` is the local IP address to connect from. Nothing is raised for what a server does, not
    even if there is no connection. When cancelled it sends QUIT and closes the connection first.
    """
    timeouts = timeouts or SessionTimeouts()
    protocol = SessionProtocol(session, handler or SessionHandler(), timeouts, transcript)
    protocol.note("*", f"connecting to {', '.join(addresses) or 'nothing'}, port {port}")
    target = Target(tuple(addresses), port, source, tuple(allow_networks))
    connected = await dial(target, lambda: protocol, timeouts.connect)
    if isinstance(connected, ConnectionFailure):
        protocol.note("*", connected.detail)
        return SessionEnd(classify_failure(connected), "connect", connected.detail)
    try:
        return replace(await protocol.run(), host=connected)
    finally:
        protocol.close()


@lru_cache(maxsize=1)
def default_tls() -> ssl.SSLContext:
    """TLS without verification, as opportunistic TLS is (RFC 7435).

    Mail servers often have invalid certificates.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class SessionProtocol(asyncio.Protocol):
    """One connection: bytes to replies, deadlines to failures, the session's steps between."""

    def __init__(
        self,
        session: Session,
        handler: SessionHandler,
        timeouts: SessionTimeouts,
        transcript: Transcript | None,
    ) -> None:
        self.session = session
        self.handler = handler
        self.timeouts = timeouts
        self.transcript = transcript
        self.loop = asyncio.get_running_loop()
        self.steps = session.dialogue()
        self.parser = ReplyParser(find_encoding)
        self.replies: deque[Reply] = deque()
        self.failure: ConnectionFailure | None = None
        self.waiting: Read | None = None
        self.began = self.since = self.loop.time()
        # Of the session, and of the present wait.
        self.session_deadline = self.deadline = float("inf")
        self.timer: asyncio.TimerHandle | None = None
        self.upgrading: asyncio.Task[None] | None = None
        self.transport: asyncio.Transport | None = None
        self.done: asyncio.Future[SessionEnd] = self.loop.create_future()
        self.has_bytes = self.is_lost = self.has_answer = False

    # --- begin and end ----------------------------------------------------------------------------

    async def run(self) -> SessionEnd:
        """Run the session to its end."""
        self.since = self.loop.time()
        self.session_deadline = self.since + self.timeouts.session
        self.advance(None)
        try:
            return await self.done
        except asyncio.CancelledError:
            self.steps.close()
            if self.transport and not self.transport.is_closing() and not self.upgrading:
                self.write(b"QUIT\r\n")  # without waiting for the reply
            raise

    def close(self) -> None:
        """Close the connection; data that the server does not read within a moment is lost."""
        if self.timer:
            self.timer.cancel()
        if self.upgrading:
            self.upgrading.cancel()
        if not self.transport:
            return
        if self.session.is_secure and not self.transport.get_write_buffer_size():
            self.transport.abort()  # everything is sent; a TLS shutdown would wait for the server's
            return
        self.transport.close()
        if not self.is_lost:
            self.timer = self.loop.call_later(self.timeouts.quit, self.transport.abort)

    # --- called by asyncio ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; `run` begins the session."""
        self.transport = cast("asyncio.Transport", transport)  # uvloop's has other base classes

    def data_received(self, data: bytes) -> None:
        """Parse, and continue if the session is waiting for a reply."""
        self.has_bytes = True
        self.replies.extend(self.parser.feed(data))
        if self.parser.fault and not self.failure:
            kind = FailureKind.NO_REPLY if self.parser.heard_smtp else FailureKind.NOT_SMTP
            self.failure = ConnectionFailure(kind, self.parser.fault)
        self.wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection ended."""
        self.is_lost = True
        if self.timer:
            self.timer.cancel()
        if self.parser.heard_smtp:
            kind = FailureKind.DROPPED
        else:
            kind = FailureKind.NOT_SMTP if self.has_bytes else FailureKind.NO_DATA
        self.fail(kind, f"the connection ended: {exc or 'closed by the server'}")

    # --- stepping the session ---------------------------------------------------------------------

    def wake(self) -> None:
        """Send the session what it waits for, if it has come."""
        if self.waiting and (self.replies or self.failure):
            read = self.waiting
            self.waiting = None
            self.advance(self.next_replies(read))

    def next_replies(self, read: Read) -> TimedReplies | ConnectionFailure:
        """The replies that have come, or why there is none."""
        if not self.replies:
            assert self.failure
            return self.failure
        replies = [self.replies.popleft() for _ in range(min(read.most, len(self.replies)))]
        now = self.loop.time()
        timed = TimedReplies(replies, now - self.since)
        self.since = now
        if self.transcript is not None:
            for reply in replies:
                self.note_reply(reply)
        return timed

    def advance(self, result: StepResult) -> None:
        """Step the session until it has to wait; an exception of our own is raised by `run`."""
        if self.done.done():
            return
        try:
            while True:
                step = self.steps.send(result)
                if type(step) is Read:
                    if not (self.replies or self.failure):
                        self.wait_for(step)
                        return
                    result = self.next_replies(step)
                elif type(step) is StartTls:
                    self.upgrading = self.loop.create_task(self.upgrade())
                    return
                else:
                    result = self.perform(step)
        except StopIteration as stop:
            self.done.set_result(stop.value)
        except Exception as exc:  # noqa: BLE001 - raised again in `run`
            self.done.set_exception(exc)

    def perform(self, step: Step) -> WindowPlan | None:
        """Do a step that needs no waiting."""
        if isinstance(step, RecipientAnswers):
            self.handler.on_reply(step)
            if not self.has_answer and step.reply is not None:
                self.has_answer = True
                self.handler.on_first_reply()
        elif isinstance(step, Send):
            self.send(step.data)
        elif isinstance(step, WindowRequest):
            return self.handler.next_window(step)
        elif isinstance(step, LimitObserved):
            self.handler.on_limit(step)
        return None

    def send(self, data: bytes) -> None:
        """Write commands.

        After a reply that arrived before its command, later replies cannot be assigned.
        """
        is_early = self.parser.is_inside or any(reply.code != CLOSING for reply in self.replies)
        if is_early and not self.failure:
            self.replies.clear()
            self.failure = ConnectionFailure(
                FailureKind.NO_REPLY, "a reply came before its command"
            )
        self.since = self.loop.time()
        self.write(data)

    def write(self, data: bytes) -> None:
        """Write, if the connection is open."""
        if self.transport and not self.transport.is_closing():
            self.transport.write(data)
        if self.transcript is not None:
            for line in data.decode("utf-8", "replace").splitlines():
                self.note("C", line)

    def fail(self, kind: FailureKind, detail: str) -> None:
        """End the wait with a failure; the first one counts."""
        self.failure = self.failure or ConnectionFailure(kind, detail)
        self.wake()

    # --- deadlines --------------------------------------------------------------------------------

    def timeout_of(self, read: Read) -> float:
        """How long to wait for a reply, in seconds."""
        return {"banner": self.timeouts.connect, "quit": self.timeouts.quit}.get(
            read.phase, self.timeouts.command
        )

    def wait_for(self, read: Read) -> None:
        """Wait for a reply.

        A trickle of bytes does not move the deadline, a complete reply does.
        """
        self.waiting = read
        self.deadline = min(self.since + self.timeout_of(read), self.session_deadline)
        if self.timer is None or self.timer.cancelled() or self.timer.when() > self.deadline:
            self.arm()

    def arm(self) -> None:
        """One timer serves all waits: it compares with the current deadline when it fires."""
        if self.timer:
            self.timer.cancel()
        self.timer = self.loop.call_at(self.deadline, self.check_deadline)

    def check_deadline(self) -> None:
        """Fail if the current deadline is over."""
        self.timer = None
        if self.done.done() or not self.waiting:
            return
        if self.deadline - self.loop.time() > SHORTEST_WAIT:
            self.arm()
        elif self.deadline >= self.session_deadline:
            self.fail(
                FailureKind.SESSION_TIMEOUT,
                f"the session took more than {self.timeouts.session:g} s",
            )
        else:
            kind = (
                FailureKind.BANNER_TIMEOUT
                if self.waiting.phase == "banner"
                else FailureKind.REPLY_TIMEOUT
            )
            self.fail(kind, f"no reply within {self.timeout_of(self.waiting):g} s")

    # --- TLS --------------------------------------------------------------------------------------

    async def upgrade(self) -> None:
        """Upgrade to TLS.

        Bytes that came in the clear after the 220 are discarded with the connection.
        """
        failure = await self.handshake()
        self.upgrading = None
        self.parser = ReplyParser(find_encoding)
        self.parser.heard_smtp = True
        self.note("*", failure.detail if failure else "TLS established, certificate not verified")
        self.advance(failure)

    async def handshake(self) -> ConnectionFailure | None:
        """Replace the transport by one over TLS."""
        if self.parser.is_inside or self.replies:
            return ConnectionFailure(
                FailureKind.TLS, "bytes in the clear after the server was ready for TLS"
            )
        assert self.transport
        timeout = max(0.001, min(self.timeouts.command, self.session_deadline - self.loop.time()))
        try:
            transport = await self.loop.start_tls(
                self.transport, self, default_tls(), ssl_handshake_timeout=timeout
            )
        except (OSError, ssl.SSLError, TimeoutError) as exc:
            return ConnectionFailure(
                FailureKind.TLS, f"TLS failed: {str(exc) or type(exc).__name__}"
            )
        if transport is None:  # the connection was lost in the meantime
            return ConnectionFailure(FailureKind.TLS, "TLS failed: the connection ended")
        self.transport = transport
        return None

    # --- transcript -------------------------------------------------------------------------------

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
