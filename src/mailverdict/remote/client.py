"""One HTTP request to a verification service, and the download of a file.

Only this file knows httpx.

    ApiRequest -> send: as often as is safe -> send_in_turn: once the gate is open -> send_once
    -> 200 {"success": true, ...}    SuccessEnvelope
    -> 429 {"error": ...}, 502 page  ErrorEnvelope, the page quoted in its message
    -> connection lost, not JSON     NoAnswer

Every outcome is returned as an `ApiAnswer`: exceptions of httpx, HTML pages of proxies, incomplete
JSON and redirects are converted here and nowhere else. A request is repeated, after pauses of
seconds, only if it cannot be paid for twice.
"""

from __future__ import annotations

import asyncio
import io
import json
import math
import os
import random
import re
import ssl
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from functools import cache
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx

from ..contract.envelope import ErrorEnvelope, SuccessEnvelope, parse_envelope
from ..errors import ContractError, SettingsError, TransportError
from ..loop import run_sync
from ..model.json_fields import shorten
from ..model.words import count_of
from .api import QUOTA_REQUEST, ApiAnswer, ApiRequest, NoAnswer, is_quota_refusal
from .pace import Gate

MAX_BODY = 4 * 1024 * 1024  # octets; an answer about 100 jobs has some 30,000
UNPACKED = 1 << 20  # octets unpacked at a time
# Content codings that are unpacked: zlib reads both formats (RFC 9110 section 8.4.1).
CODINGS = {"gzip", "x-gzip", "deflate"}
NO_CODING = {"Accept-Encoding": "identity"}
MAX_REDIRECTS = 10  # of a download
MAX_PAGE = 120  # characters of an unexpected page in a message
TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110 section 5.6.2
FIELD_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")  # RFC 9110 section 5.5: no CR, LF or NUL
SURROGATE = re.compile("[\ud800-\udfff]")
# Name, IPv4; IPv6.
HOST = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?|[0-9a-f:.]*:[0-9a-f:.]*")
CREDENTIALS = re.compile(r"[^/]*@")  # never shown, not even of an invalid URL
DEFAULT_PORTS = {"http": 80, "https": 443}
# What nginx answers beyond its limit unless it is told otherwise.
UNAVAILABLE = HTTPStatus.SERVICE_UNAVAILABLE
GATE_INTERVAL = 0.05  # seconds between looks at the gate, which an answer can open earlier
LAST_ANSWER = 5.0  # seconds for which a stopped run waits for an answer that may be paid
CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")  # which httpx reads
# A wait of up to so many seconds is always spent here; a longer one slows submissions down.
SHORT_WAIT = 2.0
LONG_WAIT = 30.0  # seconds of waiting for the service that are told at the end of a run
QUIET = 0.8  # seconds without a request, after which a client that is watched asks for the quota

# Statuses of errors that the contract has about the address, the batch or the job.
ABOUT_THE_REQUEST = (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY)

# Failures before the request was sent. After any other failure the service may have received it.
NOT_SENT = (
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ConnectError,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)
# Failures that a second request would meet in the same way.
PERMANENT = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)


@dataclass(frozen=True, slots=True)
class Retries:
    """When the same request is sent again."""

    attempts: int = 4  # requests at most, including the first
    # The same if each was refused with 429 without a wait: the gate decides when.
    limited_attempts: int = 10
    first_wait: float = 0.5  # seconds before the second attempt; doubles each time, with jitter
    max_wait: float = 60.0  # seconds; if the service asks for a longer wait, its answer stands
    budget: float = 60.0  # seconds after which no further attempt begins

    def wait_before(
        self, attempt: int, answer: ApiAnswer, request: ApiRequest, jitter: float
    ) -> float | None:
        """Seconds before attempt number `attempt` (from 2), or None if `answer` is final."""
        if not may_repeat(request, answer):
            return None
        requested = answer.retry_after if isinstance(answer, ErrorEnvelope) else None
        if is_rate_limit(answer) and requested is None:
            if attempt > self.limited_attempts:
                return None
            return 0.0
        if attempt > self.attempts:
            return None
        wait: float = self.first_wait * 2 ** (attempt - 2) * (0.5 + jitter / 2)
        if requested is not None:
            wait = max(wait, requested)
        if wait > self.max_wait:
            return None
        return wait


def may_repeat(request: ApiRequest, answer: ApiAnswer) -> bool:
    """Whether a second request can help and cannot be paid for twice."""
    if isinstance(answer, SuccessEnvelope):
        return False
    if isinstance(answer, NoAnswer):
        return not answer.is_permanent and (request.is_repeatable or not answer.was_sent)
    # Refused before any work: nothing was paid for.
    if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
        is_short = answer.retry_after is None or answer.retry_after <= SHORT_WAIT
        return is_rate_limit(answer) and (request.repeats_limited or is_short)
    return request.is_repeatable and answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR


def is_rate_limit(answer: ApiAnswer) -> bool:
    """Whether a request was refused for the number of requests, and not for the quota."""
    if not isinstance(answer, ErrorEnvelope) or answer.status != HTTPStatus.TOO_MANY_REQUESTS:
        return False
    return not is_quota_refusal(answer)


def failure_of(answer: ApiAnswer) -> str:
    """How a request failed; empty for an answer that is usable or about the request itself."""
    if isinstance(answer, NoAnswer):
        if isinstance(answer.error, TransportError):
            return "without an answer"
        return "with an unusable answer"
    if isinstance(answer, SuccessEnvelope) or is_quota_refusal(answer):
        return ""
    if answer.status in ABOUT_THE_REQUEST and not answer.is_page:
        return ""
    return f"answered with status {answer.status}"


def parse_base_url(text: str, name: str = "base_url") -> str:
    """The base URL in normal form: lower-case host, no default port, no final slash.

    >>> parse_base_url("HTTPS://Verify.Example.ORG:443/v/")
    'https://verify.example.org/v'

    Credentials are refused with a `SettingsError`, since URLs are written to logs and journals.
    `name` is what the caller knows the URL by, for messages.
    """
    example = "give a URL such as 'https://verify.example.org'"
    if not isinstance(text, str):
        raise SettingsError(f"{name}={text!r}: {example}")
    shown = shorten(CREDENTIALS.sub("***@", text))
    try:
        url = httpx.URL(text.strip())
    except (httpx.InvalidURL, ValueError) as exc:
        raise SettingsError(f"{name}={shown!r} is not a URL: {exc}; {example}") from exc
    if url.userinfo:
        instead = "give them as headers of a RemoteBackend"
        if name.startswith("-"):  # an option of the command line
            instead = "set MAILVERDICT_KEY"
        raise SettingsError(f"{name} holds credentials; {instead} instead")
    scheme = url.scheme.lower()
    host = url.raw_host.decode("ascii")
    port = url.port
    is_port = port is None or 0 < port < 65536
    if scheme not in DEFAULT_PORTS or not HOST.fullmatch(host) or not is_port:
        raise SettingsError(f"{name}={shown!r}: {example}")
    if url.query or url.fragment:
        raise SettingsError(f"{name}={shown!r}: leave out what begins with '?' or '#'")
    if ":" in host:  # IPv6
        host = f"[{host}]"
    if port not in (None, DEFAULT_PORTS[scheme]):
        host = f"{host}:{port}"
    path = url.raw_path.decode("ascii").rstrip("/")
    return f"{scheme}://{host}{path}"


def check_headers(headers: Mapping[str, str] | None) -> dict[str, str]:
    """The headers as a dict.

    A `SettingsError` for one that cannot be sent does not show its value.
    """
    if headers is not None and not isinstance(headers, Mapping):
        raise SettingsError(
            f"headers is of type {type(headers).__name__}: give a mapping, "
            "as {'Authorization': 'Bearer ...'}"
        )
    checked = dict(headers or {})
    for name, value in checked.items():
        if not isinstance(name, str) or not TOKEN.fullmatch(name):
            raise SettingsError(f"headers: {shorten(name)!r} is not a header name")
        if not isinstance(value, str) or not FIELD_VALUE.fullmatch(value):
            message = f"headers: the value of {name!r} is not text that a header can hold"
            raise SettingsError(message)
    return checked


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """The HTTP response to one request, before its body is parsed."""

    where: str
    status: int
    body: bytes
    content_type: str
    location: str
    retry_after: float | None


class SharedTransport(httpx.AsyncBaseTransport):
    """A transport given by the caller, which is not closed: it serves several clients in turn."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self.transport = transport

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Pass the request on."""
        return await self.transport.handle_async_request(request)


@cache
def tls_context(*certificates: str | None) -> ssl.SSLContext:
    """The context of httpx, which takes 20 ms to read the certificates.

    The variables may name others.
    """
    return httpx.create_ssl_context()


class Client:
    """Sends requests to one service; an async context manager for one event loop.

    `timeout` is for one request, from connecting to the last octet. A `transport` replaces sockets
    and is not closed. `parallel` polls run beside one submission; an httpx pool gets slower with
    size.
    """

    def __init__(
        self,
        base_url: str,
        *,
        timeout: float = 30.0,
        headers: Mapping[str, str] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        parallel: int = 8,
        retries: Retries | None = None,
        jitter: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.base_url = base_url
        self.timeout = timeout
        self.jitter = jitter
        self.clock = clock
        self.retries = retries or Retries()
        self.failed: Counter[str] = Counter()  # requests, by how they failed
        self.failing: set[str] = set()  # methods whose last request failed
        self.failing_since = 0.0  # by the event loop's clock
        self.waited = 0.0  # seconds in which one was failing, before
        self.unanswered: dict[object, float] = {}  # when each request was sent, by the same clock
        self.asked_at = -math.inf  # when the last request was sent, by the same clock
        self.asking: asyncio.Task[None] | None = None  # whether the service is there
        self.is_closed = False
        self.gate = Gate()
        self.gate_queue = asyncio.Lock()
        self.was_refused = False  # once at least, for the number of requests
        # The run was cancelled; only the answer to its submission was waited for.
        self.is_stopped = False
        usual = {"User-Agent": "mailverdict", "Accept": "application/json", **NO_CODING}
        sockets = parallel + 1
        shared = None
        if transport is not None:
            shared = SharedTransport(transport)
        self.http = httpx.AsyncClient(
            headers={**usual, **(headers or {})},
            timeout=timeout,
            follow_redirects=False,
            # Kept, they would grow with each answer.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            limits=httpx.Limits(max_connections=sockets, max_keepalive_connections=sockets),
            transport=shared,
            verify=tls_context(*map(os.environ.get, CERTIFICATE_VARIABLES)),
        )

    async def __aenter__(self) -> Client:
        await self.http.__aenter__()
        self.loop = asyncio.get_running_loop()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.is_closed = True
        if self.asking is not None:
            self.asking.cancel()
            await asyncio.gather(self.asking, return_exceptions=True)
        await self.http.aclose()

    async def send(self, request: ApiRequest) -> ApiAnswer:
        """Send `request`, repeatedly if that is safe and may help.

        Failures of the network are returned, not raised.
        """
        loop = asyncio.get_running_loop()
        begun = loop.time()
        for attempt in range(2, self.retries.limited_attempts + 2):
            answer = await self.send_in_turn(request)
            wait = self.retries.wait_before(attempt, answer, request, self.jitter())
            if wait is None or self.is_stopped:
                break
            if loop.time() - begun + wait > self.retries.budget:
                break
            await asyncio.sleep(wait)
        return answer

    async def send_in_turn(self, request: ApiRequest) -> ApiAnswer:
        """Send one request once the gate is open, in the order of the calls.

        After a refusal the next request waits for the answer of the one before it.
        """
        loop = asyncio.get_running_loop()
        async with self.gate_queue:
            wait = self.gate.seconds_left(loop.time())
            while wait > 0:  # an answer may open it earlier
                await asyncio.sleep(min(wait, GATE_INTERVAL))
                wait = self.gate.seconds_left(loop.time())
            sent = loop.time()
            self.gate.on_sent(sent)
            if self.gate.refusals:
                return await self.send_and_report(request, sent)
        return await self.send_and_report(request, sent)

    async def send_and_report(self, request: ApiRequest, sent: float) -> ApiAnswer:
        """Send one request once, and report to the gate whether it was refused.

        A request without an answer tells the gate nothing.
        """
        mark = object()
        self.unanswered[mark] = self.asked_at = sent
        try:
            if request.is_repeatable:
                answer = await self.send_once(request)
            else:
                answer = await self.send_to_the_end(request)
        finally:
            del self.unanswered[mark]
        self.count_failure(request, answer, sent)
        if isinstance(answer, NoAnswer):
            return answer
        is_unavailable = isinstance(answer, ErrorEnvelope) and answer.status == UNAVAILABLE
        if is_unavailable or is_rate_limit(answer):
            self.was_refused = True
            self.gate.on_refused(sent, asyncio.get_running_loop().time(), self.jitter())
        else:
            self.gate.on_accepted(sent)
        return answer

    def count_failure(self, request: ApiRequest, answer: ApiAnswer, sent: float) -> None:
        """Count a failed request, and the time until one of its method has a usable answer."""
        failure = failure_of(answer)
        if failure:
            self.failed[failure] += 1
            if not self.failing:
                self.failing_since = sent
            self.failing.add(request.method)
        elif request.method in self.failing:
            self.failing.remove(request.method)
            if not self.failing:
                self.waited += asyncio.get_running_loop().time() - self.failing_since

    def silent_since(self) -> float | None:
        """Since when the service has not answered, by the event loop's clock; None if it does.

        Called on any thread.
        """
        times = list(self.unanswered.values())
        if self.failing:
            times.append(self.failing_since)
        return min(times, default=None)

    def ask_if_quiet(self) -> None:
        """Ask for the quota if nothing was asked for a while, since polls may be rare.

        So `silent_since` knows soon that the service is gone. Called on any thread, now and then.
        """
        with suppress(RuntimeError):  # the loop has ended
            self.loop.call_soon_threadsafe(self.start_asking)

    def start_asking(self) -> None:
        """Ask for the quota if nothing is under way.

        Not of a service that limits the number of requests: it would refuse polls instead.
        """
        now = self.loop.time()
        is_busy = self.unanswered or self.failing or now - self.asked_at < QUIET
        is_limited = self.was_refused or self.gate.seconds_left(now) > 0
        if is_busy or is_limited or self.is_closed:
            return
        self.asking = self.loop.create_task(self.ask_for_quota(now))

    async def ask_for_quota(self, now: float) -> None:
        """Ask for the quota; a service that refuses this for its limit is there."""
        answer = await self.send_and_report(QUOTA_REQUEST, now)
        if is_rate_limit(answer):
            self.failing.discard(QUOTA_REQUEST.method)

    def delay_notice(self) -> str:
        """How long the service was waited for, and why; empty if it was not long."""
        if self.waited < LONG_WAIT:
            return ""
        counts = [f"{count_of(count, 'request')} {how}" for how, count in self.failed.items()]
        return f"waited {self.waited:,.0f} s for the service: {', '.join(counts)}"

    async def send_to_the_end(self, request: ApiRequest) -> ApiAnswer:
        """Send one request once; if the run is cancelled, wait for the answer, and then stop."""
        sending = asyncio.create_task(self.send_once(request))
        try:
            return await asyncio.shield(sending)
        except asyncio.CancelledError:
            # Cancelled again, it waits no longer.
            await asyncio.wait([sending], timeout=LAST_ANSWER)
            if not sending.done():
                raise
            self.is_stopped = True
            return sending.result()
        finally:
            # Else an await here could lose the answer, if the run is cancelled just then.
            if not sending.done():
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)

    async def send_once(self, request: ApiRequest) -> ApiAnswer:
        """Send one request once, and read the answer.

        Of its body at most an octet over `MAX_BODY`.
        """
        url = self.base_url + request.path
        where = f"{request.method} {url}"
        headers = None if request.key is None else {"Idempotency-Key": request.key}
        sending = self.http.stream(request.method, url, json=request.body, headers=headers)
        try:
            async with asyncio.timeout(self.timeout), sending as response:
                body = await read_body(response, MAX_BODY)
        except httpx.RequestError as exc:
            return transport_failure(exc, where, self.timeout)
        except TimeoutError:
            error = TransportError(f"{where}: no complete answer within {self.timeout:g} seconds")
            return NoAnswer(error, was_sent=True)
        received = response.headers
        parts = HttpResponse(
            where=where,
            status=response.status_code,
            body=body,
            content_type=shorten(received.get("Content-Type", "no content type"), 60),
            location=shorten(received.get("Location", "nowhere")),
            retry_after=parse_retry_after(received.get("Retry-After"), self.clock()),
        )
        return parse_response(request, parts)


async def read_body(response: httpx.Response, limit: int) -> bytes:
    """The body of an answer, unpacked; of a larger one than `limit` octets, one more than that.

    httpx would unpack each piece whole, and through every coding that the answer names, before its
    octets can be counted: a few hundred become gigabytes. Here at most one coding is unpacked,
    which a proxy may add although none was asked for. Raises `httpx.DecodingError` for other
    codings, damaged data, and data that goes on after its end.
    """
    if response.is_stream_consumed:  # what httpx.MockTransport gives is in memory, and unpacked
        return response.content[: limit + 1]
    named = response.headers.get("Content-Encoding", "")
    seen = f"status {response.status_code}, Content-Encoding {shorten(named, 60)!r}"
    codings = [name for name in re.split(r"[,\s]+", named.lower()) if name not in ("", "identity")]
    if len(codings) > 1 or not CODINGS.issuperset(codings):
        message = f"{seen}; none was asked for, and only gzip or deflate alone is read"
        raise httpx.DecodingError(message)
    unpacker = None
    if codings:  # 32: of gzip or of zlib, as it begins
        unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)
    body = io.BytesIO()
    received = 0
    async for piece in response.aiter_raw():
        received += len(piece)
        if unpacker is None:
            body.write(piece[: limit + 1 - body.tell()])
        else:
            unpack(unpacker, piece, body, limit, seen)
        if max(received, body.tell()) > limit:
            break
        if unpacker is not None and unpacker.unused_data:
            break
    is_whole = unpacker is None or (unpacker.eof and not unpacker.unused_data)
    if received and body.tell() <= limit and not is_whole:
        raise httpx.DecodingError(f"{seen}: it is truncated, or goes on after its end")
    return body.getvalue()


def unpack(unpacker: Any, packed: bytes, body: io.BytesIO, limit: int, seen: str) -> None:
    """Append to the body what a piece unpacks to, as far as an octet more than `limit`."""
    while (room := min(limit + 1 - body.tell(), UNPACKED)) > 0:
        try:
            part = unpacker.decompress(packed, room)
        except zlib.error as exc:
            raise httpx.DecodingError(f"{seen}: {exc}") from exc
        body.write(part)
        packed = unpacker.unconsumed_tail
        if len(part) < room:
            return


def transport_failure(exc: httpx.RequestError, where: str, timeout: float) -> NoAnswer:
    """The answer for an exception of httpx."""
    was_sent = not isinstance(exc, NOT_SENT)
    is_tls = any(isinstance(cause, ssl.SSLError) for cause in causes(exc))
    words = "no connection"
    if is_tls:
        words = "TLS failed"
    elif was_sent:
        words = "no usable answer"
    if isinstance(exc, httpx.TimeoutException):
        words = f"{words} within {timeout:g} seconds"
    error = TransportError(f"{where}: {words}: {shorten(str(exc) or type(exc).__name__)}")
    return NoAnswer(error, was_sent, is_permanent=is_tls or isinstance(exc, PERMANENT))


def causes(exc: BaseException | None) -> Iterator[BaseException]:
    """The exception and its causes."""
    while exc is not None:
        yield exc
        exc = exc.__cause__ or exc.__context__


def parse_response(request: ApiRequest, response: HttpResponse) -> ApiAnswer:
    """Parse a response: a success, a failure with either envelope, or outside the contract."""
    if HTTPStatus.MULTIPLE_CHOICES <= response.status < HTTPStatus.BAD_REQUEST:
        message = (
            f"{response.where}: {response.status}, redirected to {response.location}; "
            "give the final URL as base URL"
        )
        return ErrorEnvelope("", message, response.status, {})
    try:
        decoded = decode_json(response.body)
        answer = open_envelope(decoded, response.status, is_enveloped=request.is_enveloped)
    except ContractError as exc:
        return parse_unexpected(response, exc)
    if isinstance(answer, SuccessEnvelope):
        return answer
    text = " ".join(filter(None, (answer.code, answer.message)))
    message = f"{response.where}: {response.status} {text}".rstrip()
    return replace(answer, message=message, retry_after=response.retry_after)


def parse_unexpected(response: HttpResponse, error: ContractError) -> ApiAnswer:
    """A response outside the contract: a failure by its status, or a success without content."""
    body = "an empty body"
    if response.body:
        text = response.body[: 4 * MAX_PAGE].decode("utf-8", "replace")
        start = shorten(" ".join(text.split()), MAX_PAGE)
        body = f"{len(response.body)} octets of {response.content_type}, beginning {start!r}"
    seen = f"{response.where}: {response.status} with {body}"
    if response.status >= HTTPStatus.BAD_REQUEST:
        is_page = not is_json(response.body)
        return ErrorEnvelope("", seen, response.status, {}, response.retry_after, is_page=is_page)
    message = f"{seen}; {error}. Is this the base URL of a verification service?"
    return NoAnswer(ContractError(message, path=error.path), was_sent=True)


def is_json(body: bytes) -> bool:
    try:
        decode_json(body)
    except ContractError:
        return False
    return True


def open_envelope(
    decoded: Any, status: int, *, is_enveloped: bool
) -> SuccessEnvelope | ErrorEnvelope:
    """The parts of the envelope; a record without an envelope is the data itself."""
    may_be_bare = not is_enveloped and isinstance(decoded, Mapping)
    is_bare = may_be_bare and "success" not in decoded and "error" not in decoded
    if is_bare and status < HTTPStatus.MULTIPLE_CHOICES:
        return SuccessEnvelope(decoded, {})
    answer = parse_envelope(decoded, status)
    if isinstance(answer, SuccessEnvelope) and status >= HTTPStatus.BAD_REQUEST:
        raise ContractError(f"a success envelope with status {status}")
    return answer


def decode_json(body: bytes) -> Any:
    """Decode JSON; `ContractError` if it is invalid, incomplete, too large or nested too deeply."""
    if len(body) > MAX_BODY:
        raise ContractError(f"the answer is larger than {MAX_BODY} octets")
    try:
        decoded = json.loads(body, parse_constant=refuse_constant)
        return scrub(decoded) if b"\\u" in body else decoded
    except (ValueError, RecursionError) as exc:
        raise ContractError(f"the answer is not JSON: {shorten(str(exc))}") from exc


def refuse_constant(name: str) -> Any:
    """Raise for NaN and Infinity, which are not JSON (RFC 8259 section 6)."""
    raise ValueError(f"{name} is not a JSON number")


def scrub(value: Any) -> Any:
    """Replace lone surrogates, which JSON can express and UTF-8 cannot."""
    if isinstance(value, str):
        return SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, list):
        return [scrub(item) for item in value]
    if isinstance(value, dict):
        return {scrub(key): scrub(item) for key, item in value.items()}
    return value


def parse_retry_after(text: str | None, now: float) -> float | None:
    """Seconds to wait by a ``Retry-After`` header, a number or a date (RFC 9110 section 10.2.3).

    >>> parse_retry_after("120", now=0.0)
    120.0
    """
    if text is None:
        return None
    if re.fullmatch(r"[0-9]{1,9}", text.strip()):
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


# --- downloading a file, which `mailverdict lists update` does ---


def download(url: str, *, limit: int = 16 * 1024 * 1024, timeout: float = 30.0) -> bytes:
    """Download a file.

    `TransportError` if that fails, takes longer, or it is larger than `limit`.
    """
    try:
        body = run_sync(asyncio.wait_for(fetch(url, limit), timeout))
    except (httpx.RequestError, httpx.InvalidURL) as exc:
        raise TransportError(f"GET {url}: {shorten(str(exc) or type(exc).__name__)}") from exc
    except TimeoutError:
        raise TransportError(f"GET {url}: not complete within {timeout:g} seconds") from None
    if len(body) > limit:
        raise TransportError(f"GET {url}: more than {limit:,} octets")
    return body


async def fetch(url: str, limit: int) -> bytes:
    """The body of a file; httpx itself would read the body of a redirection without a limit."""
    # The caller has a timeout for the whole download.
    async with httpx.AsyncClient(headers=NO_CODING, timeout=None) as http:  # noqa: S113
        request = http.build_request("GET", url)
        for _ in range(MAX_REDIRECTS + 1):
            async with aclosing(await http.send(request, stream=True)) as response:
                if response.next_request is not None:
                    request = response.next_request
                    continue
                if not response.is_success:
                    raise TransportError(f"GET {url}: HTTP {response.status_code}")
                return await read_body(response, limit)
    raise TransportError(f"GET {url}: redirected more than {MAX_REDIRECTS} times")
