"""Around every request: its identifier, its line in the access log, its metrics, its last net."""

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
from ..settings import ServiceSettings
from .metrics import Metrics
from .replies import (
    ENCODE,
    JsonReply,
    LingeringReply,
    RequestRefused,
    iso_moment,
    new_request_id,
    short_error,
    standard_error,
)

__all__ = ["AccessLog", "AccessMiddleware", "RequestTrace", "account_of", "client_account", "error_response"]

LOG = logging.getLogger(__name__)
UNEXPECTED = "something unexpected went wrong; the log has it under the request_id"
UNKNOWN_ROUTE = "(unknown)"  # a path of a client's own making may hold anything, an address too


@dataclass(slots=True)
class RequestTrace:
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


class AccessMiddleware:
    """ASGI middleware; the request's `RequestTrace` is in ``scope["trace"]``.

    Parameters
    ----------
    app : ASGI application
        What answers.
    settings : ServiceSettings
        Header limit, trusted proxies, whether there is an access log.
    metrics : Metrics
        Where requests are counted.
    open_state : callable
        Opens what the application works with, unless that is done.
    log : callable
        Takes a line of the access log.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: ServiceSettings,
        metrics: Metrics,
        open_state: Callable[[], Awaitable[None]],
        log: Callable[[str], object],
    ) -> None:
        self.app = app
        self.settings = settings
        self.metrics = metrics
        self.open_state = open_state
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
        trace: RequestTrace = scope["trace"]
        try:
            self.check_head(scope)
            await self.open_state()
            await self.app(scope, receive, send)
        except RequestRefused as refusal:
            await error_response(refusal, trace)(scope, receive, send)
        except SettingsError as exc:  # the state could not be opened
            LOG.error("the service cannot work as it is set up: %s", exc)
            await error_response(short_error("E1001", "the service is misconfigured"), trace)(scope, receive, send)
        except Exception:  # the last net: no traceback leaves the house
            LOG.exception("request %s failed", trace.request_id)
            if trace.status:
                raise  # half an answer cannot be taken back; the server closes the connection
            await error_response(standard_error("INTERNAL_ERROR", UNEXPECTED), trace)(scope, receive, send)

    def trace(self, scope: Scope) -> RequestTrace:
        """Begin with who asks."""
        forwarded = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
        peer = (scope.get("client") or (None,))[0]
        client = client_account(peer, forwarded, self.settings.trusted_proxies)
        return RequestTrace(new_request_id(), client, time.perf_counter())

    def check_head(self, scope: Scope) -> None:
        """Refuse a head that is too large; the server cuts off what grows without end before."""
        octets = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        octets += sum(len(name) + len(value) + 4 for name, value in scope["headers"])
        if octets > self.settings.header_limit:
            limit = self.settings.header_limit
            message = f"the head of a request has at most {limit} octets"
            raise short_error("HEADERS_TOO_LARGE", message, headers={"connection": "close"})

    def record(self, method: str, trace: RequestTrace) -> None:
        """Count the request, and write its line."""
        seconds = time.perf_counter() - trace.started
        self.metrics.request(trace.route, trace.status, seconds)
        if trace.code:
            self.metrics.refusals[trace.code] += 1
        if self.settings.access_log:
            self.log(log_line(method, trace, seconds))


def log_line(method: str, trace: RequestTrace, seconds: float) -> str:
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


def error_response(refusal: RequestRefused, trace: RequestTrace) -> JsonReply:
    """The envelope of a refusal, noted."""
    trace.code = refusal.code
    reply = LingeringReply if refusal.code == "PAYLOAD_TOO_LARGE" else JsonReply
    return reply(refusal.body(trace.request_id), refusal.status, refusal.headers)


Address = ipaddress.IPv4Address | ipaddress.IPv6Address
NOBODY = "unknown"  # a peer without an address, as on a Unix socket
SHARED_PREFIX = 64  # a network of this size is one customer's: RFC 6177, and what hosts change addresses within


def client_account(peer: str | None, forwarded: Sequence[str], trusted: tuple[Network, ...]) -> str:
    """Name the client's account.

    ``X-Forwarded-For`` is read from its end, where the nearest proxy wrote: as long as the one who
    tells is trusted, what it tells is believed. Anything before that may be forged.

    Parameters
    ----------
    peer : str or None
        Address of the connection's other end.
    forwarded : sequence of str
        The values of the ``X-Forwarded-For`` headers, in order.
    trusted : tuple of Network
        Proxies that are believed.

    Returns
    -------
    str
        An IPv4 address, the /64 network of an IPv6 address, or ``unknown``.
    """
    if not (trusted and forwarded):
        return account_of_peer(peer)
    teller = parse_address(peer or "")
    if teller is None:
        return NOBODY
    hops = [hop for value in forwarded for hop in value.split(",")]
    while hops and is_within(teller, trusted):
        told = parse_address(hops.pop())
        if told is None:
            break
        teller = told
    return account_of(teller)


@lru_cache(maxsize=4096)
def account_of_peer(peer: str | None) -> str:
    """The account of a connection's other end; most requests come over connections that are kept."""
    address = parse_address(peer or "")
    return NOBODY if address is None else account_of(address)


def account_of(address: Address) -> str:
    """IPv6 clients choose among 2**64 addresses, so their network is the account.

    >>> account_of(ipaddress.ip_address("2001:db8::1:2:3:4"))
    '2001:db8::/64'
    """
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    network = int(address) >> (128 - SHARED_PREFIX) << (128 - SHARED_PREFIX)
    return f"{ipaddress.IPv6Address(network)}/{SHARED_PREFIX}"


def is_within(address: Address, networks: tuple[Network, ...]) -> bool:
    return any(address in network for network in networks)


def parse_address(text: str) -> Address | None:
    """An address, with or without a port; IPv4 in IPv6 clothing is IPv4."""
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


class AccessLog:
    """Writes lines to a stream; a call costs next to nothing.

    Parameters
    ----------
    stream : text file
        Where they go.
    pause : float
        Seconds that a line waits for others at most.

    Examples
    --------
    >>> import io
    >>> out = io.StringIO()
    >>> lines = AccessLog(out)
    >>> lines("one")
    >>> out.getvalue().splitlines()
    ['one']
    """

    def __init__(self, stream: TextIO, *, pause: float = 0.2) -> None:
        self.stream = stream
        self.pause = pause
        self.waiting: list[str] = []

    def __call__(self, line: str) -> None:
        """Write a line soon; at once where no event loop runs that could do it later."""
        self.waiting.append(line)
        if len(self.waiting) == 1:
            try:
                asyncio.get_running_loop().call_later(self.pause, self.flush)
            except RuntimeError:
                self.flush()

    def flush(self) -> None:
        """Write what is waiting."""
        if self.waiting:
            text = "\n".join(self.waiting)
            self.waiting.clear()
            self.stream.write(text + "\n")
            self.stream.flush()
