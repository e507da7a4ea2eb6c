"""The HTTP server of the service and of the page: uvicorn, with bounds for each connection.

What a client may do, and what bounds it:

====================================  ============================================================
a head, or a trailer, without an end  `Bounds.header_limit` octets and `FIELD_LIMIT` fields: 431
a head that arrives slowly, or never  `Bounds.header_timeout`: 408, or the connection is closed
thousands of requests at once         a piece of `PIECE` octets is read and parsed, and no more is
                                      read while a request of it waits (`SmallReads`,
                                      `PipelineFlow`)
always more, on many connections      the event loop has `TURNS` between two pieces of one
many connections without a request    `idle_limit`: the one that has waited longest is closed
no reading of the replies             no request is read or answered meanwhile;
                                      `Bounds.send_timeout`
====================================  ============================================================

uvicorn alone has none of these. Bodies are bounded by the applications.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable, Sized
from dataclasses import dataclass, field
from typing import Any

if sys.platform != "win32":
    import resource

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

# Header fields of a request; as objects, short ones take forty times their octets.
FIELD_LIMIT = 100
# Octets that are read and parsed at once; most requests have fewer. uvicorn alone would get 256
# KiB, which may be thousands of requests. After a piece at most 57 wait for their turn, since the
# shortest request has 18 octets.
PIECE = 1024
BODY_PIECE = 65_536  # the same within a body whose length is known, which ends no earlier
# Turns of the event loop between two pieces of a connection, and before a reply behind which
# another request waits. uvloop accepts one connection in a turn, so that others waited for seconds
# while two hundred always had more.
TURNS = 5
MOST_IDLE = 50_000  # connections without a request, wherever more files may be open
LONGEST_LENGTH = 18  # digits of Content-Length
# What is read is copied at once, so that all connections of a thread read into the same place.
BUFFER = memoryview(bytearray(BODY_PIECE))

# ASGI extensions. The whole body has arrived, so that reading it needs no timer.
BODY_COMPLETE = "mailverdict.body_complete"
# Head and body of a response are one message: it takes a fifth less time for a short reply.
WHOLE_REPLY = "mailverdict.whole_reply"
EXTENSIONS: dict[str, dict[object, object]] = {WHOLE_REPLY: {}}
EXTENSIONS_WITH_BODY = {**EXTENSIONS, BODY_COMPLETE: {}}


def half_of_files() -> int:
    """Half of the files that this process may have open; connections are files."""
    if sys.platform != "win32":
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        is_unlimited = limit == resource.RLIM_INFINITY
        return MOST_IDLE if is_unlimited else min(limit // 2, MOST_IDLE)
    return 512


@dataclass(frozen=True)
class Bounds:
    """The limits of a server, in octets and seconds."""

    header_limit: int = 32_768
    header_timeout: float = 10.0  # until a head is complete
    send_timeout: float = 10.0  # for which replies wait for a client that does not read
    linger: float = 2.0  # until a connection whose request was refused is closed
    idle_limit: int = field(default_factory=half_of_files)  # connections without a request


class PipelineFlow(FlowControl):
    """Reads no further while a request waits; uvicorn would read on after each reply."""

    def __init__(self, transport: asyncio.Transport, pipeline: Sized) -> None:
        super().__init__(transport)
        self.pipeline = pipeline
        self.is_held = False  # until it is this connection's turn again

    def resume_reading(self) -> None:
        """Read on, unless a request waits, others have their turn, or the connection is closed."""
        if not self.read_paused or self.pipeline or self.is_held:
            return
        if not self._transport.is_closing():
            super().resume_reading()


class BoundedProtocol(HttpToolsProtocol):
    """HTTP with limits on what a connection may hold, and on the time that it may take.

    The parser alone would collect an endless head or trailer, and wait for it without a limit.
    uvicorn alone would make objects of all requests that arrive, and wait without a limit for a
    client that does not read the replies.
    """

    flow: PipelineFlow

    def __init__(
        self, bounds: Bounds, idle: dict[BoundedProtocol, None] | None = None, **given: Any
    ) -> None:
        super().__init__(**given)
        self.bounds = bounds
        self.idle = {} if idle is None else idle  # connections without a request, longest first
        self.in_head = False
        self.is_refused = False
        # Since the head or the last part of the body began, so that a trailer is counted too.
        self.head_octets = 0
        self.body_octets = 0  # that have arrived
        self.head_timer: asyncio.TimerHandle | None = None
        self.send_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for the first head."""
        super().connection_made(transport)
        self.flow = PipelineFlow(transport, self.pipeline)
        self.start_timer()
        self.wait_idle()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers, and drop the requests, which refer to the connection."""
        self.stop_timer()
        self.idle.pop(self, None)
        super().connection_lost(exc)
        self.resume_writing()
        self.pipeline.clear()
        self.cycle = None  # type: ignore[assignment]

    def wait_idle(self) -> None:
        """Wait for a request; if too many do, the one that has waited longest is closed."""
        self.idle[self] = None
        if len(self.idle) > self.bounds.idle_limit:
            longest = next(iter(self.idle))
            del self.idle[longest]
            longest.transport.close()

    def on_response_complete(self) -> None:
        """Wait for the next request, unless it is there."""
        super().on_response_complete()
        if not self.pipeline and not self.transport.is_closing():
            self.wait_idle()

    def pause_writing(self) -> None:
        """Give the client some time to read."""
        super().pause_writing()
        self.send_timer = self.loop.call_later(self.bounds.send_timeout, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the timer: the client reads, or is gone."""
        super().resume_writing()
        if self.send_timer is not None:
            self.send_timer.cancel()
            self.send_timer = None

    def start_timer(self) -> None:
        """Start the timer unless it runs."""
        if self.head_timer is None:
            self.head_timer = self.loop.call_later(self.bounds.header_timeout, self.on_timeout)

    def stop_timer(self) -> None:
        if self.head_timer is not None:
            self.head_timer.cancel()
            self.head_timer = None

    def on_timeout(self) -> None:
        """Send 408 if part of a header arrived; otherwise close."""
        if self.in_head:
            self.refuse(408)
        else:
            self.transport.close()

    def is_busy(self) -> bool:
        """Whether a response is being sent; a pipelined request waits for its end."""
        return self.cycle is not None and not self.cycle.response_complete

    def on_message_begin(self) -> None:
        """Count the octets of a new head."""
        self.in_head = True
        self.head_octets = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Stop the timer; the application checks the size of a complete head."""
        self.in_head = False
        self.stop_timer()
        self.idle.pop(self, None)
        self.scope["extensions"] = EXTENSIONS
        super().on_headers_complete()
        self.cycle.__class__ = ReplyCycle  # uvicorn has no name for the class that it makes
        self.body_octets = 0
        self.headers = []  # of a trailer, which is not part of the head

    def on_body(self, body: bytes) -> None:
        """Count anew what follows."""
        self.head_octets = 0
        self.body_octets += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note in the scope that the application can read the body without a timer."""
        super().on_message_complete()
        self.scope["extensions"] = EXTENSIONS_WITH_BODY

    def piece(self) -> int:
        """How many octets to read at once: more within a body whose end is known."""
        if self.cycle is None or not self.cycle.more_body:
            return PIECE
        body_left = body_length(self.scope["headers"]) - self.body_octets
        return min(max(body_left, PIECE), BODY_PIECE)

    def data_received(self, data: bytes) -> None:
        """Refuse an incomplete head, or a trailer, that exceeds a limit.

        Its first piece is not counted.
        """
        if self.is_refused:
            return
        self.head_octets += len(data)
        super().data_received(data)
        if self.is_refused or self.transport.is_closing():
            return
        if not self.is_busy():
            self.start_timer()
        if self.head_octets > self.bounds.header_limit or len(self.headers or ()) > FIELD_LIMIT:
            self.refuse(431)

    def send_400_response(self, msg: str) -> None:
        """Refuse invalid HTTP with the short envelope instead of uvicorn's plain text."""
        self.refuse(400)

    def refuse(self, status: int) -> None:
        """Send an error response and close, at once if another response is being sent.

        Else what still arrives is discarded for a moment. To close at once would reset the
        connection while the client is sending, and the reset can overtake the response (RFC 9112
        section 9.6).
        """
        self.stop_timer()
        if self.is_busy():
            self.transport.close()
        elif not self.transport.is_closing():
            self.is_refused = True
            self.transport.write(ERROR_RESPONSES[status])
            self.head_timer = self.loop.call_later(self.bounds.linger, self.transport.close)


class SmallReads(asyncio.BufferedProtocol):
    """Reads in pieces for a protocol, and lets the event loop turn in between."""

    def __init__(self, protocol: BoundedProtocol) -> None:
        self.protocol = protocol
        self.size = PIECE  # of the piece that is read

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Pass it on."""
        self.protocol.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass it on."""
        self.protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        """Pass it on."""
        self.protocol.pause_writing()

    def resume_writing(self) -> None:
        """Pass it on."""
        self.protocol.resume_writing()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the transport writes what it reads."""
        self.size = self.protocol.piece()
        return BUFFER[: self.size]

    def buffer_updated(self, nbytes: int) -> None:
        """Pass on what was read; after a whole piece there may be more."""
        protocol = self.protocol
        protocol.data_received(bytes(BUFFER[:nbytes]))
        if (
            nbytes == self.size
            and not protocol.flow.read_paused
            and not protocol.transport.is_closing()
        ):
            protocol.flow.pause_reading()
            self.read_on(TURNS)

    def read_on(self, turns: int) -> None:
        """Read the next piece after so many turns of the event loop."""
        flow = self.protocol.flow
        flow.is_held = turns > 0
        if flow.is_held:
            self.protocol.loop.call_soon(self.read_on, turns - 1)
        else:
            flow.resume_reading()


class ReplyCycle(RequestResponseCycle):
    """uvicorn's response, which also accepts a whole reply as one message.

    Its header fields are our own and need no check, and its head and body are one system call.
    """

    flow: PipelineFlow

    async def send(self, message: Any) -> None:
        """Send a whole reply, or do as uvicorn."""
        if not self.response_started and self.flow.pipeline:
            # A client that waits for this reply before it sends more comes first.
            for _ in range(TURNS):
                await asyncio.sleep(0)
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.transport.is_closing():
            self.disconnected = True  # uvicorn tells it only to the last request of a pipeline
        if self.disconnected:
            return
        if message["type"] != WHOLE_REPLY:
            await super().send(message)
            return
        self.response_started = self.response_complete = True
        fields = self.default_headers + message["headers"]
        # Newer releases of uvicorn set `keep_alive` by the parser; 0.30 looks for the request's
        # field when it replies.
        if CLOSE in message["headers"]:
            self.keep_alive = False
        elif not self.keep_alive or CLOSE in self.scope["headers"]:
            self.keep_alive = False
            fields.append(CLOSE)
        head = b"\r\n".join(map(b": ".join, fields))
        body = b"" if self.scope["method"] == "HEAD" else message["body"]
        self.transport.write(b"%b%b\r\n\r\n%b" % (STATUS_LINE[message["status"]], head, body))
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


CLOSE = (b"connection", b"close")


def body_length(fields: Iterable[tuple[bytes, bytes]]) -> int:
    """The length of a request's body by its head; 0 if it is not known, as of one in chunks."""
    length = 0
    for name, value in fields:
        if name == b"transfer-encoding":
            return 0
        if name == b"content-length" and value.isdigit() and len(value) <= LONGEST_LENGTH:
            length = int(value)
    return length


def raw_response(status: int, phrase: str, code: str, message: str) -> bytes:
    """A complete HTTP response."""
    body = json.dumps({"error": {"code": code, "message": message}}).encode()
    lines = (
        f"HTTP/1.1 {status} {phrase}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        "connection: close",
    )
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body


TOO_LARGE = "the head of the request is too large"
ERROR_RESPONSES = {
    400: raw_response(400, "Bad Request", "BAD_REQUEST", "this is not a valid HTTP request"),
    408: raw_response(
        408, "Request Timeout", "REQUEST_TIMEOUT", "the head of the request did not arrive in time"
    ),
    431: raw_response(431, "Request Header Fields Too Large", "HEADERS_TOO_LARGE", TOO_LARGE),
}


def bounded_http(bounds: Bounds) -> Any:
    """What uvicorn's configuration takes as `http`: a protocol for each connection."""
    idle: dict[BoundedProtocol, None] = {}

    def make(**given: Any) -> SmallReads:
        return SmallReads(BoundedProtocol(bounds, idle, **given))

    return make
