"""`run`: the service on uvicorn, with limits on what one connection may hold and on how long it may take."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import json
import logging
import ssl
import sys
from collections.abc import Sized
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from ..backend import Backend
from ..checks.lists.flags import load_lists
from ..contract.envelope import dump_short_failure
from ..errors import SettingsError
from ..model.settings import Lists
from .app import create_app
from .http.access import FIELD_LIMIT, AccessLog
from .http.bodies import BODY_COMPLETE
from .http.replies import WHOLE_REPLY
from .jobs.queue import Queue
from .jobs.store import Store
from .settings import ServiceSettings

LOG = logging.getLogger(__name__)
KEEP_ALIVE = 30  # seconds; clients poll every 2 to 15
MAX_PORT = 65_535
GRACEFUL_SHUTDOWN = 15  # seconds that running requests have when the service is stopped


def run(
    settings: ServiceSettings | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    backend: Backend | None = None,
) -> None:
    """Serve until a signal stops the process; unfinished jobs continue at the next start.

    The access log goes to standard output, everything else to standard error.

    Parameters
    ----------
    settings : ServiceSettings, optional
        The settings; the defaults if not given.
    host : str
        Address to listen on.
    port : int
        TCP port; 0: any free one.
    backend : Backend, optional
        What verifies addresses; a `mailverdict.LocalBackend` with ``settings.local`` by default.

    Raises
    ------
    SettingsError
        If the store cannot be opened or another service uses it, if a list cannot be read, or if the port is in use.
    """
    settings = settings or ServiceSettings()
    log = AccessLog(sys.stdout)
    try:
        serve(
            create_app(settings, backend, log=log),
            settings,
            host,
            port,
            lacks_keys=settings.key_file is None,
        )
    finally:
        log.flush()


def serve(
    app: ASGIApp, settings: ServiceSettings, host: str, port: int, *, lacks_keys: bool = False
) -> None:
    """Serve an application until a signal stops the process; `lacks_keys`: clients should need keys, and do not."""
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s"
    )
    check(settings, host, port, lacks_keys=lacks_keys)
    tune_garbage_collector()
    uvicorn.Server(configure(app, settings, host, port)).run()


def check(settings: ServiceSettings, host: str, port: int, *, lacks_keys: bool = False) -> None:
    """Raise `SettingsError` if the store, a list, the certificate or the address cannot be used.

    uvicorn would show a traceback, and bind after the application has started, when the worker may have begun with
    jobs. Without client keys, an address that other hosts can connect to gives a warning.
    """
    store = Store(settings)
    try:
        if not store.is_shared:
            Queue(store).recover()
    finally:
        store.close()
    load_lists(settings.local.lists)
    if settings.ssl_certfile is not None:
        password = (
            settings.ssl_keyfile_password or ""
        )  # with None, OpenSSL would ask for it on the terminal
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(settings.ssl_certfile, settings.ssl_keyfile, password)
        except OSError as exc:  # ssl.SSLError is one, too
            files = " and ".join(filter(None, (settings.ssl_certfile, settings.ssl_keyfile)))
            raise SettingsError(
                f"ssl_certfile: the certificate in {files} cannot be used: {exc}"
            ) from exc
    if not 0 <= port <= MAX_PORT:
        raise SettingsError(f"port={port}: give a number from 0 to {MAX_PORT}; 0 is any free one")
    try:
        addresses = asyncio.run(listen(host, port))
    except (OSError, UnicodeError) as exc:  # UnicodeError: a text that cannot be a host name
        raise SettingsError(
            f"cannot listen on host {host!r:.80}, port {port}: {exc}; give another one"
        ) from exc
    if lacks_keys and not all(
        ipaddress.ip_address(each.partition("%")[0]).is_loopback for each in addresses
    ):
        LOG.warning(
            "the service listens on %r and has no client keys: whoever can connect can use it. Give it keys "
            "(mailverdict keys add, serve --key-file), or let only networks that you trust connect",
            host,
        )


async def listen(host: str, port: int) -> list[str]:
    """Listen for a moment, as uvicorn will; return the addresses."""
    server = await asyncio.get_running_loop().create_server(asyncio.Protocol, host, port)
    addresses = [each.getsockname()[0] for each in server.sockets]
    server.close()
    return addresses


def configure(app: ASGIApp, settings: ServiceSettings, host: str, port: int) -> uvicorn.Config:
    """The server's configuration; `access.client_account` handles proxies instead of uvicorn."""
    protocol = bounded_protocol(settings)
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=lambda **given: SmallReads(protocol(**given)),  # type: ignore[arg-type]
        ws="none",
        lifespan="on",
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_config=None,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=GRACEFUL_SHUTDOWN,
        ssl_certfile=settings.ssl_certfile,
        ssl_keyfile=settings.ssl_keyfile,
        ssl_keyfile_password=settings.ssl_keyfile_password,
    )


def tune_garbage_collector() -> None:
    """Collect cycles less often, and never scan the domain lists.

    A request makes some hundred objects and no cycles, while a full collection scans the hundred
    thousand entries of the lists: a tenth of the service's time.
    """
    load_lists(Lists())
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)


EXTENSIONS: dict[str, dict[object, object]] = {WHOLE_REPLY: {}}
EXTENSIONS_WITH_BODY = {**EXTENSIONS, BODY_COMPLETE: {}}

# Octets that are read and parsed at once; most requests have fewer. uvicorn alone would get 256 KiB, which may be
# thousands of requests. After a piece at most 57 wait for their turn, since the shortest request has 18 octets.
PIECE = 1024
# Turns of the event loop between two pieces of a connection, and before a reply behind which another request waits.
# uvloop accepts one connection in a turn, so that others waited for seconds while two hundred always had more.
TURNS = 5


class PipelineFlow(FlowControl):
    """Reads no further while a request waits; uvicorn would read on after each reply."""

    def __init__(self, transport: asyncio.Transport, pipeline: Sized) -> None:
        super().__init__(transport)
        self.pipeline = pipeline
        self.is_held = False  # until it is this connection's turn again

    def resume_reading(self) -> None:
        """Read on, unless a request waits, others have their turn, or the connection is closed."""
        if not self.pipeline and not self.is_held and not self._transport.is_closing():
            super().resume_reading()


class BoundedProtocol(HttpToolsProtocol):
    """HTTP with limits on what a connection may hold, and on the time that it may take.

    The parser alone would collect an endless head or trailer, and wait for it without a limit. uvicorn alone would make
    objects of all requests that arrive, and wait without a limit for a client that does not read the replies.
    """

    flow: PipelineFlow
    header_limit = 32_768
    header_timeout = 10.0
    send_timeout = 10.0  # seconds that replies wait for a client that does not read; less than GRACEFUL_SHUTDOWN
    linger = 2.0  # seconds until a connection whose request was refused is closed
    in_head = False
    is_refused = False
    head_octets = (
        0  # since the head or the last part of the body began, so that a trailer is counted too
    )
    head_timer: asyncio.TimerHandle | None = None
    send_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for the first head."""
        super().connection_made(transport)
        self.flow = PipelineFlow(transport, self.pipeline)
        self.start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers, and drop the requests: they refer to the connection, and would keep it as it keeps them."""
        self.stop_timer()
        super().connection_lost(exc)
        self.resume_writing()
        self.pipeline.clear()
        self.cycle = None  # type: ignore[assignment]

    def pause_writing(self) -> None:
        """Give the client some time to read."""
        super().pause_writing()
        self.send_timer = self.loop.call_later(self.send_timeout, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the timer: the client reads, or is gone."""
        super().resume_writing()
        if self.send_timer is not None:
            self.send_timer.cancel()
            self.send_timer = None

    def start_timer(self) -> None:
        """Start the timer unless it runs."""
        if self.head_timer is None:
            self.head_timer = self.loop.call_later(self.header_timeout, self.on_timeout)

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
        self.in_head, self.head_octets = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Stop the timer; the application checks the size of a complete head."""
        self.in_head = False
        self.stop_timer()
        self.scope["extensions"] = EXTENSIONS
        super().on_headers_complete()
        self.cycle.__class__ = (
            ReplyCycle  # the parser's callback makes it, without a name for its class
        )
        self.headers = []  # of a trailer, which is not part of the head

    def on_body(self, body: bytes) -> None:
        """Count anew what follows."""
        self.head_octets = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note in the scope that the application can read the body without a timer."""
        self.head_octets = 0
        super().on_message_complete()
        self.scope["extensions"] = EXTENSIONS_WITH_BODY

    def data_received(self, data: bytes) -> None:
        """Refuse an incomplete head, or a trailer, that exceeds a limit; its first piece is not counted."""
        if self.is_refused:
            return
        self.head_octets += len(data)
        super().data_received(data)
        if self.is_refused or self.transport.is_closing():
            return
        if not self.is_busy():
            self.start_timer()
        if self.head_octets > self.header_limit or len(self.headers or ()) > FIELD_LIMIT:
            self.refuse(431)

    def send_400_response(self, msg: str) -> None:
        """Refuse invalid HTTP with the short envelope instead of uvicorn's plain text."""
        self.refuse(400)

    def refuse(self, status: int) -> None:
        """Send an error response and close, at once if another response is being sent.

        Else what still arrives is discarded for a moment. To close at once would reset the connection while the client
        is sending, and the reset can overtake the response (RFC 9112 section 9.6).
        """
        self.stop_timer()
        if self.is_busy():
            self.transport.close()
        elif not self.transport.is_closing():
            self.is_refused = True
            self.transport.write(ERROR_RESPONSES[status])
            self.head_timer = self.loop.call_later(self.linger, self.transport.close)


class SmallReads(asyncio.BufferedProtocol):
    """Reads in pieces for a protocol, and lets the event loop serve other connections in between."""

    def __init__(self, protocol: BoundedProtocol) -> None:
        self.protocol = protocol
        self.buffer = memoryview(bytearray(PIECE))

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
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Pass on what was read; after a whole piece there may be more."""
        protocol = self.protocol
        protocol.data_received(bytes(self.buffer[:nbytes]))
        if (
            nbytes == PIECE
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
            for _ in range(
                TURNS
            ):  # a client that waits for a reply before it sends more comes first
                await asyncio.sleep(0)
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.transport.is_closing():
            self.disconnected = True  # uvicorn tells it only to the last request of a pipeline
        if self.disconnected:
            return
        if message["type"] != WHOLE_REPLY or self.response_started:
            await super().send(message)
            return
        self.response_started = self.response_complete = True
        fields = self.default_headers + message["headers"]
        # Newer releases of uvicorn set `keep_alive` by the parser; 0.30 looks for the request's field when it replies.
        if CLOSE in message["headers"]:
            self.keep_alive = False
        elif not self.keep_alive or CLOSE in self.scope["headers"]:
            self.keep_alive = False
            fields.append(CLOSE)
        head = b"".join([b"%b: %b\r\n" % field for field in fields])
        body = b"" if self.scope["method"] == "HEAD" else message["body"]
        self.transport.write(b"%b%b\r\n%b" % (STATUS_LINE[message["status"]], head, body))
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


CLOSE = (b"connection", b"close")


def raw_response(status: int, phrase: str, code: str, message: str) -> bytes:
    """A complete HTTP response."""
    body = json.dumps(dump_short_failure(code, message)).encode()
    head = f"HTTP/1.1 {status} {phrase}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return f"{head}connection: close\r\n\r\n".encode() + body


TOO_LARGE = "the head of the request is too large"
ERROR_RESPONSES = {
    400: raw_response(400, "Bad Request", "BAD_REQUEST", "this is not a valid HTTP request"),
    408: raw_response(
        408, "Request Timeout", "REQUEST_TIMEOUT", "the head of the request did not arrive in time"
    ),
    431: raw_response(431, "Request Header Fields Too Large", "HEADERS_TOO_LARGE", TOO_LARGE),
}


def bounded_protocol(settings: ServiceSettings) -> type[BoundedProtocol]:
    """`BoundedProtocol` with the limits of the settings as class attributes, since uvicorn makes the instances."""
    limits = {"header_limit": settings.header_limit, "header_timeout": settings.header_timeout}
    return type("LimitedProtocol", (BoundedProtocol,), limits)
