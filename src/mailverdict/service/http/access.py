"""What happens around every request: request_id, client account, size check, error reply, metrics, access log."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TextIO

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...errors import SettingsError
from ...model.settings import Network
from ..keys import KeyRing
from ..settings import ServiceSettings
from .metrics import Metrics
from .replies import (
    JsonReply,
    LingeringReply,
    RequestRefused,
    encode_json,
    iso_timestamp,
    new_request_id,
    short_error,
    standard_error,
)

__all__ = ["AccessLog", "AccessMiddleware", "RequestTrace", "account_of", "client_account", "error_response"]

LOG = logging.getLogger(__name__)
UNEXPECTED = "an unexpected error occurred; the service's log has it under the request_id"
UNKNOWN_ROUTE = "(unknown)"  # logged in place of a path without a route, which may hold an address


@dataclass(slots=True)
class RequestTrace:
    """What is recorded about a request; `notes` go into the access log and never hold a whole address."""

    request_id: str
    client: str
    started: float  # of time.perf_counter
    route: str = UNKNOWN_ROUTE
    status: int = 0
    code: str = ""
    notes: dict[str, Any] = field(default_factory=dict)


class AccessMiddleware:
    """ASGI middleware; the request's `RequestTrace` is in ``scope["trace"]``.

    `open_state` opens the service's state unless it is open; `log` gets the lines of the access log.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: ServiceSettings,
        metrics: Metrics,
        open_state: Callable[[], Awaitable[None]],
        log: Callable[[str], object],
        keys: KeyRing | None = None,
    ) -> None:
        self.app = app
        self.settings = settings
        self.metrics = metrics
        self.open_state = open_state
        self.log = log
        self.keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request and record it, also when it fails."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        trace = scope["trace"] = self.new_trace(scope)

        async def send_and_note_status(message: Message) -> None:
            if message["type"] == "http.response.start":
                trace.status = message["status"]
            await send(message)

        try:
            await self.respond(scope, receive, send_and_note_status)
        finally:
            self.record(scope["method"], trace)

    async def respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application; an unexpected error becomes `INTERNAL_ERROR` and goes to the log."""
        trace: RequestTrace = scope["trace"]
        try:
            self.check_head_size(scope)
            if self.keys is not None and scope["path"].startswith(WITH_KEY):
                trace.client = require_key(self.keys, scope)
            await self.open_state()
            await self.app(scope, receive, send)
        except RequestRefused as refused:
            await error_response(refused, trace)(scope, receive, send)
        except SettingsError as exc:  # the state could not be opened
            LOG.error("the service cannot work with its settings: %s", exc)
            await error_response(short_error("E1001", "the service is misconfigured"), trace)(scope, receive, send)
        except Exception:  # no traceback may reach a client
            LOG.exception("request %s failed", trace.request_id)
            if trace.status:
                raise  # the response has begun: the server closes the connection
            await error_response(standard_error("INTERNAL_ERROR", UNEXPECTED), trace)(scope, receive, send)

    def new_trace(self, scope: Scope) -> RequestTrace:
        """The trace of a request that has just arrived."""
        forwarded = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
        peer = (scope.get("client") or (None,))[0]
        client = client_account(peer, forwarded, self.settings.trusted_proxies)
        return RequestTrace(new_request_id(), client, time.perf_counter())

    def check_head_size(self, scope: Scope) -> None:
        """Refuse a request head above the limit; the server limits only heads that arrive in pieces."""
        octets = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        octets += sum(len(name) + len(value) + 4 for name, value in scope["headers"])
        if octets > self.settings.header_limit:
            limit = self.settings.header_limit
            message = f"the head of a request has at most {limit} octets"
            raise short_error("HEADERS_TOO_LARGE", message, headers={"connection": "close"})

    def record(self, method: str, trace: RequestTrace) -> None:
        """Count the request and log it."""
        seconds = time.perf_counter() - trace.started
        self.metrics.count_request(trace.route, trace.status, trace.code, seconds)
        if self.settings.access_log:
            self.log(log_line(method, trace, seconds))


def error_response(refused: RequestRefused, trace: RequestTrace) -> JsonReply:
    """The error reply; its code is noted in the trace."""
    trace.code = refused.code
    reply = LingeringReply if refused.code == "PAYLOAD_TOO_LARGE" else JsonReply
    return reply(refused.body(trace.request_id), refused.status, refused.headers)


WITH_KEY = "/api/"


def require_key(keys: KeyRing, scope: Scope) -> str:
    """The account of the request's key; 401 in the short envelope if it has none that is valid (RFC 6750 section 3)."""
    given = [value.decode("latin-1") for name, value in scope["headers"] if name == b"authorization"]
    account = keys.account(given[0]) if len(given) == 1 else None
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
    hops = [hop for value in forwarded for hop in value.split(",")]
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
    network = int(address) >> (128 - IPV6_PREFIX) << (128 - IPV6_PREFIX)
    return f"{ipaddress.IPv6Address(network)}/{IPV6_PREFIX}"


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
    fields = {
        "time": iso_timestamp(),
        "request_id": trace.request_id,
        "client": trace.client,
        "method": method,
        "route": trace.route,
        "status": trace.status,
        "ms": round(seconds * 1000, 2),
        **({"code": trace.code} if trace.code else {}),
        **trace.notes,
    }
    return encode_json(fields)


class AccessLog:
    """Writes lines to a stream a few times a second instead of one by one, which saves a write per request.

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
