"""The service on a socket: uvicorn, with limits on what arrives before there is a request."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import sys

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ..backend import Backend
from ..checks.lists.flags import load_lists
from ..contract.envelope import dump_short_failure
from ..model.settings import Lists
from .app import create_app
from .http.access import AccessLog
from .jobs.store import Store
from .settings import ServiceSettings

__all__ = ["configure", "run"]

KEEP_ALIVE = 30  # seconds; clients poll every 2 to 15
FAREWELL = 15  # seconds that requests under way have when the service is stopped


def run(
    settings: ServiceSettings | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    backend: Backend | None = None,
) -> None:
    """Serve until a signal ends it; the jobs under way go on at the next start.

    The access log goes to standard output, everything else to standard error.

    Parameters
    ----------
    settings : ServiceSettings, optional
        What the service goes by.
    host : str
        Address to listen on.
    port : int
        TCP port; 0: any that is free.
    backend : Backend, optional
        What verifies; a `mailverdict.LocalBackend` with ``settings.local`` by default.

    Raises
    ------
    SettingsError
        If the store cannot be opened, or another service works on it.
    """
    settings = settings or ServiceSettings()
    Store(settings.store).close()  # a store that cannot work is one line here, and a traceback in the server
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    spare_collector()
    lines = AccessLog(sys.stdout)
    try:
        uvicorn.Server(configure(create_app(settings, backend, log=lines), settings, host, port)).run()
    finally:
        lines.flush()


def configure(app: ASGIApp, settings: ServiceSettings, host: str, port: int) -> uvicorn.Config:
    """The server's configuration; proxies are believed by our own rule and not by uvicorn's."""
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=bounded_protocol(settings),
        ws="none",
        lifespan="on",
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_config=None,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=FAREWELL,
    )


def spare_collector() -> None:
    """Let the cyclic collector look less often, and never at the lists.

    A request makes some hundred objects and no cycles, while the lists are a hundred thousand
    entries that a full collection would walk through: a tenth of the service's time.
    """
    load_lists(Lists())
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)


class BoundedProtocol(HttpToolsProtocol):
    """HTTP with a bound on the size of a request's head and on the time it takes.

    The parser itself would gather a header without end, and wait for it for ever.
    """

    header_limit = 32_768
    header_timeout = 10.0
    in_head = False
    head_octets = 0
    head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect a head."""
        super().connection_made(transport)
        self.expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing any more."""
        self.stop_timer()
        super().connection_lost(exc)

    def expect_head(self) -> None:
        """Start the clock, unless it runs."""
        if self.head_timer is None:
            self.head_timer = self.loop.call_later(self.header_timeout, self.give_up)

    def stop_timer(self) -> None:
        if self.head_timer is not None:
            self.head_timer.cancel()
            self.head_timer = None

    def give_up(self) -> None:
        """Part of a head came, then nothing: say so. Where nothing came, an answer would answer nothing."""
        if self.in_head:
            self.refuse(408)
        else:
            self.transport.close()

    def is_busy(self) -> bool:
        """Whether a request is being answered; the next one may wait behind it."""
        return self.cycle is not None and not self.cycle.response_complete

    def on_message_begin(self) -> None:
        """A head begins."""
        self.in_head, self.head_octets = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is whole; how large it was the application looks at."""
        self.in_head = False
        self.stop_timer()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Count what a head without an end has cost so far, beyond its first piece."""
        goes_on = self.in_head
        super().data_received(data)
        if self.transport.is_closing():
            return
        if not self.is_busy():
            self.expect_head()
        self.head_octets += len(data) if goes_on and self.in_head else 0
        if self.head_octets > self.header_limit:
            self.refuse(431)

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP gets the short envelope too."""
        self.refuse(400)

    def refuse(self, status: int) -> None:
        """Answer without the application, unless that would break into another answer; and close."""
        self.stop_timer()
        if not self.transport.is_closing():
            if not self.is_busy():
                self.transport.write(REFUSALS[status])
            self.transport.close()


def refusal(status: int, phrase: str, code: str, message: str) -> bytes:
    """A whole response."""
    body = json.dumps(dump_short_failure(code, message)).encode()
    head = f"HTTP/1.1 {status} {phrase}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return f"{head}connection: close\r\n\r\n".encode() + body


REFUSALS = {
    400: refusal(400, "Bad Request", "BAD_REQUEST", "this is not a valid HTTP request"),
    408: refusal(408, "Request Timeout", "REQUEST_TIMEOUT", "the head of the request did not arrive in time"),
    431: refusal(431, "Request Header Fields Too Large", "HEADERS_TOO_LARGE", "the head of the request is too large"),
}


def bounded_protocol(settings: ServiceSettings) -> type[BoundedProtocol]:
    """The protocol with the settings' limits; uvicorn builds it itself, so they are the class's."""
    limits = {"header_limit": settings.header_limit, "header_timeout": settings.header_timeout}
    return type("LimitedProtocol", (BoundedProtocol,), limits)
