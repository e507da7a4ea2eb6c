"""Around every request: its identifier, its line in the access log, its metrics, its last net."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...errors import SettingsError
from ..settings import ServiceSettings
from .clients import client_of
from .metrics import Metrics
from .replies import ENCODE, LingeringReply, Refusal, Reply, iso_moment, new_request_id, short, standard

__all__ = ["Access", "Trace", "answer_refusal"]

LOG = logging.getLogger(__name__)
UNEXPECTED = "something unexpected went wrong; the log has it under the request_id"
UNKNOWN_ROUTE = "(unknown)"  # a path of a client's own making may hold anything, an address too


@dataclass(slots=True)
class Trace:
    """What is known of a request while it is answered; `notes` go into the access log.

    A note is never an address: the domain, the type and the count are enough to run a service by.
    """

    request_id: str
    client: str
    started: float
    route: str = UNKNOWN_ROUTE
    status: int = 0
    code: str = ""
    notes: dict[str, Any] = field(default_factory=dict)


class Access:
    """ASGI middleware; the request's `Trace` is in ``scope["trace"]``.

    Parameters
    ----------
    app : ASGI application
        What answers.
    settings : ServiceSettings
        Header limit, trusted proxies, whether there is an access log.
    metrics : Metrics
        Where requests are counted.
    open_parts : callable
        Opens what the application works with, unless that is done.
    log : callable
        Takes a line of the access log.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: ServiceSettings,
        metrics: Metrics,
        open_parts: Callable[[], Awaitable[None]],
        log: Callable[[str], object],
    ) -> None:
        self.app = app
        self.settings = settings
        self.metrics = metrics
        self.open_parts = open_parts
        self.log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, whatever happens inside."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        trace = scope["trace"] = self.trace(scope)

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                trace.status = message["status"]
            await send(message)

        try:
            await self.respond(scope, receive, watched)
        finally:
            self.record(scope["method"], trace)

    async def respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application answer; what it did not foresee is an `INTERNAL_ERROR` and in the log."""
        trace: Trace = scope["trace"]
        try:
            self.check_head(scope)
            await self.open_parts()
            await self.app(scope, receive, send)
        except Refusal as refusal:
            await answer_refusal(refusal, trace)(scope, receive, send)
        except SettingsError as exc:  # the parts could not be opened
            LOG.error("the service cannot work as it is set up: %s", exc)
            await answer_refusal(short("E1001", "the service is misconfigured"), trace)(scope, receive, send)
        except Exception:  # the last net: no traceback leaves the house
            LOG.exception("request %s failed", trace.request_id)
            if trace.status:
                raise  # half an answer cannot be taken back; the server closes the connection
            await answer_refusal(standard("INTERNAL_ERROR", UNEXPECTED), trace)(scope, receive, send)

    def trace(self, scope: Scope) -> Trace:
        """Begin with who asks."""
        forwarded = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
        peer = (scope.get("client") or (None,))[0]
        client = client_of(peer, forwarded, self.settings.trusted_proxies)
        return Trace(new_request_id(), client, time.perf_counter())

    def check_head(self, scope: Scope) -> None:
        """Refuse a head that is too large; the server cuts off what grows without end before."""
        octets = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        octets += sum(len(name) + len(value) + 4 for name, value in scope["headers"])
        if octets > self.settings.header_limit:
            limit = self.settings.header_limit
            message = f"the head of a request has at most {limit} octets"
            raise short("HEADERS_TOO_LARGE", message, headers={"connection": "close"})

    def record(self, method: str, trace: Trace) -> None:
        """Count the request, and write its line."""
        seconds = time.perf_counter() - trace.started
        self.metrics.request(trace.route, trace.status, seconds)
        if trace.code:
            self.metrics.refusals[trace.code] += 1
        if self.settings.access_log:
            self.log(log_line(method, trace, seconds))


def log_line(method: str, trace: Trace, seconds: float) -> str:
    """One line of JSON."""
    fields = {
        "time": iso_moment(),
        "request_id": trace.request_id,
        "client": trace.client,
        "method": method,
        "route": trace.route,
        "status": trace.status,
        "ms": round(seconds * 1000, 2),
        **({"code": trace.code} if trace.code else {}),
        **trace.notes,
    }
    return ENCODE(fields)


def answer_refusal(refusal: Refusal, trace: Trace) -> Reply:
    """The envelope of a refusal, noted."""
    trace.code = refusal.code
    reply = LingeringReply if refusal.code == "PAYLOAD_TOO_LARGE" else Reply
    return reply(refusal.body(trace.request_id), refusal.status, refusal.headers)
