"""What happens around every request.

request_id, client account, size of the head, endpoint, error reply, metrics, log line
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain
from typing import Any, TextIO

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...errors import SettingsError
from ...http_server import FIELD_LIMIT
from ...local.backend import iso_timestamp
from ...model.settings import Network
from ..jobs.group_committer import CommitterClosed
from ..jobs.store import STORE_UNAVAILABLE
from ..keys import KeyRing
from ..service_state import ServiceState
from ..settings import ServiceSettings
from .json_octets import encode_json
from .replies import (
    JsonReply,
    LingeringReply,
    RequestRefused,
    new_request_id,
    short_error,
    standard_error,
)

LOG = logging.getLogger(__name__)
UNEXPECTED = "an unexpected error occurred; the service's log has it under the request_id"
HTTP_ERRORS = {
    404: ("NOT_FOUND", "there is nothing at this path; /openapi.json lists the paths"),
    405: ("METHOD_NOT_ALLOWED", "this path does not support this method"),
}
UNAVAILABLE = (CommitterClosed, *STORE_UNAVAILABLE)
Endpoint = Callable[[Request], Awaitable[Response]]
UNKNOWN_ROUTE = "(unknown)"  # logged in place of a path without a route, which may hold an address


@dataclass(slots=True)
class RequestTrace:
    """What is recorded about a request.

    `notes` go into the access log and never hold a whole address.
    """

    request_id: str
    client: str
    started: float  # of time.perf_counter
    route: str = UNKNOWN_ROUTE
    status: int = 0
    code: str = ""
    notes: dict[str, Any] = field(default_factory=dict)


class AccessMiddleware:
    """ASGI middleware; the request's `RequestTrace` is in ``scope["trace"]``.

    `state` is opened by the first request unless it is open; `log` gets the lines of the access
    log; `endpoints` are those that a method and a path name, and `app` is the router for everything
    else.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: ServiceSettings,
        state: ServiceState,
        log: Callable[[str], object],
        endpoints: Mapping[tuple[str, str], Endpoint],
        keys: KeyRing | None = None,
    ) -> None:
        self.app = app
        self.settings = settings
        self.state = state
        self.log = log
        self.endpoints = endpoints
        self.keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Reply to one request and record it, also when it fails.

        The router, which takes five times as long, gets only what `endpoints` does not have.
        """
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        trace = scope["trace"] = self.new_trace(scope)
        try:
            self.check_head_size(scope)
            if self.keys is not None and scope["path"].startswith(KEY_PATHS):
                trace.client = require_key(self.keys, scope)
            if not self.state.is_open:
                await self.open()
            endpoint = None
            if not scope.get("root_path"):
                endpoint = self.endpoints.get((scope["method"], scope["path"]))
            if endpoint is None:
                await self.app(scope, receive, partial(send_and_note_status, send, trace))
            else:
                trace.route = scope["path"]
                reply = await endpoint(Request(scope, receive))
                trace.status = reply.status_code
                await reply(scope, receive, send)
        except Exception as exc:
            refused = self.refusal_of(exc, trace)
            if trace.status:
                raise  # the response has begun: the server closes the connection
            trace.status = refused.status
            await error_response(refused, trace)(scope, receive, send)
        finally:
            self.record(scope["method"], trace)

    async def open(self) -> None:
        """Open the service's state."""
        try:
            await self.state.ensure_open()
        except SettingsError as exc:
            LOG.error("the service cannot work with its settings: %s", exc)
            raise short_error("E1001", "the service is misconfigured") from None

    def refusal_of(self, exc: Exception, trace: RequestTrace) -> RequestRefused:
        """The error reply for an exception.

        An unexpected one goes to the log, since no traceback may reach a client.
        """
        if isinstance(exc, RequestRefused):
            return exc
        if isinstance(exc, HTTPException):  # of the router
            code, message = HTTP_ERRORS.get(exc.status_code, HTTP_ERRORS[404])
            return short_error(code, message, headers=exc.headers)
        if isinstance(exc, UNAVAILABLE):
            # The client can try again: nothing was accepted, as far as that could be found out.
            if not isinstance(exc, CommitterClosed):
                self.state.outages.failed(exc)
            message = "the service's store is not available; try again later"
            return short_error("E1005", message, headers={"retry-after": "5"})
        LOG.error("request %s failed", trace.request_id, exc_info=exc)
        return standard_error("INTERNAL_ERROR", UNEXPECTED)

    def new_trace(self, scope: Scope) -> RequestTrace:
        """The trace of a request that has just arrived."""
        forwarded = []
        for name, value in scope["headers"]:
            if name == b"x-forwarded-for":
                forwarded.append(value.decode("latin-1"))
        peer, *_ = scope.get("client") or (None,)
        client = client_account(peer, forwarded, self.settings.trusted_proxies)
        return RequestTrace(new_request_id(), client, time.perf_counter())

    def check_head_size(self, scope: Scope) -> None:
        """Refuse a request head above a limit.

        The server refuses only heads that are not complete.
        """
        fields = scope["headers"]
        octets = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        octets += sum(map(len, chain.from_iterable(fields))) + 4 * len(fields)
        limit = self.settings.header_limit
        if octets > limit or len(fields) > FIELD_LIMIT:
            message = f"the head of a request has at most {limit} octets and {FIELD_LIMIT} fields"
            raise short_error("HEADERS_TOO_LARGE", message, headers={"connection": "close"})

    def record(self, method: str, trace: RequestTrace) -> None:
        """Count the request and log it."""
        seconds = time.perf_counter() - trace.started
        self.state.metrics.count_request(trace.route, trace.status, trace.code, seconds)
        if self.settings.access_log:
            self.log(log_line(method, trace, seconds))


async def send_and_note_status(send: Send, trace: RequestTrace, message: Message) -> None:
    """Send a part of a reply whose status only the router knows."""
    if "status" in message:
        trace.status = message["status"]
    await send(message)


def error_response(refused: RequestRefused, trace: RequestTrace) -> JsonReply:
    """The error reply; its code is noted in the trace."""
    trace.code = refused.code
    reply = LingeringReply if refused.code == "PAYLOAD_TOO_LARGE" else JsonReply
    return reply(refused.body(trace.request_id), refused.status, refused.headers)


KEY_PATHS = "/api/"  # the paths below it need a key, if the service has keys


def require_key(keys: KeyRing, scope: Scope) -> str:
    """The account of the request's key.

    401 in the short envelope if it has none that is valid (RFC 6750 section 3).
    """
    given = []
    for name, value in scope["headers"]:
        if name == b"authorization":
            given.append(value.decode("latin-1"))
    account = None
    if len(given) == 1:
        account = keys.account(given[0])
    if account is None:
        what = "the client key is not valid" if given else "a client key is missing"
        message = f"{what}; send it as 'Authorization: Bearer KEY'"
        raise short_error("UNAUTHORIZED", message, headers={"www-authenticate": "Bearer"})
    return account


# Client accounts: the text that quota and rate limiter count by.

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
UNKNOWN_CLIENT = "unknown"  # a peer without an address, as on a Unix socket
IPV6_PREFIX = 64  # one customer's network (RFC 6177), in which a host changes its address


def client_account(peer: str | None, forwarded: Sequence[str], trusted: tuple[Network, ...]) -> str:
    """The client's account: an IPv4 address, the /64 network of an IPv6 address, or ``unknown``.

    `forwarded` are the values of ``X-Forwarded-For``. They are read from the end, where the nearest
    proxy wrote, for as long as the host that wrote them is in `trusted`; the rest may be forged.
    """
    if not (trusted and forwarded):
        return account_of_peer(peer)
    client = parse_address(peer or "")
    if client is None:
        return UNKNOWN_CLIENT
    hops = ",".join(forwarded).split(",")
    while hops and any(client in network for network in trusted):
        previous = parse_address(hops.pop())
        if previous is None:
            break
        client = previous
    return account_of(client)


@lru_cache(maxsize=4096)
def account_of_peer(peer: str | None) -> str:
    """The account of the other end of a connection; cached, since connections are reused."""
    address = parse_address(peer or "")
    return UNKNOWN_CLIENT if address is None else account_of(address)


def account_of(address: Address) -> str:
    """The network for IPv6, since one host can use 2**64 addresses.

    >>> account_of(ipaddress.ip_address("2001:db8::1:2:3:4"))
    '2001:db8::/64'
    """
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    network = ipaddress.IPv6Network((address, IPV6_PREFIX), strict=False)
    return str(network)


def parse_address(text: str) -> Address | None:
    """An address with or without a port; an IPv4-mapped IPv6 address becomes IPv4."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


# The access log.


def log_line(method: str, trace: RequestTrace, seconds: float) -> str:
    """A line of JSON."""
    fields = {
        "time": iso_timestamp(),
        "request_id": trace.request_id,
        "client": trace.client,
        "method": method,
        "route": trace.route,
        "status": trace.status,
        "ms": round(seconds * 1000, 2),
    }
    if trace.code:
        fields["code"] = trace.code
    return encode_json(fields | trace.notes).decode()


class AccessLog:
    """Writes lines to a stream a few times a second, which saves a write per request.

    >>> import sys
    >>> log = AccessLog(sys.stdout)
    >>> log("one")
    one
    """

    def __init__(self, stream: TextIO, *, delay: float = 0.2) -> None:
        self.stream = stream
        self.delay = delay  # seconds that a line waits at most
        self.waiting: list[str] = []

    def __call__(self, line: str) -> None:
        """Write a line after `delay`, or at once without a running event loop."""
        self.waiting.append(line)
        if len(self.waiting) == 1:
            try:
                asyncio.get_running_loop().call_later(self.delay, self.flush)
            except RuntimeError:
                self.flush()

    def flush(self) -> None:
        """Write the lines that wait."""
        if self.waiting:
            text = "\n".join(self.waiting)
            self.waiting.clear()
            self.stream.write(text + "\n")
            self.stream.flush()
