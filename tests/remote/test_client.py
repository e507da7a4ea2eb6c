"""One request: every foreign failure becomes ours, and only what is safe is repeated."""

import asyncio
import gzip
import io
import json
import math
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.contract.envelope import ErrorEnvelope, SuccessEnvelope
from mailverdict.errors import ContractError, SettingsError, TransportError
from mailverdict.remote.api import ApiAnswer, ApiRequest, NoAnswer
from mailverdict.remote.client import (
    MAX_BODY,
    QUIET,
    UNPACKED,
    Client,
    Retries,
    check_headers,
    decode_json,
    parse_base_url,
    parse_retry_after,
    unpack,
)
from mailverdict.widgets.check import INTERVAL, SILENT_AFTER
from tests.doubles.clock import run_virtual
from tests.doubles.scripted_service import FAULTS, HTML, META, ScriptedService, Wire, envelope
from tests.doubles.tables import each_row

URL = "http://verify.test"
GET = ApiRequest("GET", "/api/thing")
BARE = ApiRequest("GET", "/api/quota", is_enveloped=False)
POST = ApiRequest("POST", "/api/bulk-check-email", {"emails": []}, is_repeatable=False)
OK = {"success": True, "data": {"n": 1}, "meta": META}

Handler = Callable[[httpx.Request], httpx.Response]


def ask(
    handler: Handler, request: ApiRequest = GET, **options: Any
) -> tuple[ApiAnswer, int, float]:
    """Ask once with `handler` as the service; give the answer, the requests it took and the seconds."""
    calls = []

    async def serve(incoming: httpx.Request) -> httpx.Response:
        calls.append(incoming)
        return handler(incoming)

    async def main(loop: Any) -> tuple[ApiAnswer, int, float]:
        async with Client(
            URL, transport=httpx.MockTransport(serve), jitter=lambda: 1.0, **options
        ) as client:
            answer = await client.send(request)
        return answer, len(calls), loop.time()

    return run_virtual(main)


def reply(status: int, body: Any = None, **headers: str) -> Handler:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda _: httpx.Response(status, content=content, headers=headers)


def one_by_one(*handlers: Handler) -> Handler:
    left = iter(handlers)

    def handler(request: httpx.Request) -> httpx.Response:
        return next(left)(request)

    return handler


def raising(kind: type[httpx.RequestError]) -> Handler:
    def handler(request: httpx.Request) -> httpx.Response:
        raise kind("seen", request=request)

    return handler


def test_a_success_is_its_data() -> None:
    answer, calls, _ = ask(reply(200, OK))
    assert answer == SuccessEnvelope({"n": 1}, META)
    assert calls == 1


def test_a_record_without_envelope_is_its_own_data() -> None:
    assert ask(reply(200, {"daily_limit": 1}), BARE)[0] == SuccessEnvelope({"daily_limit": 1}, {})


def test_both_envelopes_are_errors_with_their_code() -> None:
    standard, *_ = ask(reply(400, json.loads(envelope("EMAIL_REQUIRED", "say which", a=1))))
    assert isinstance(standard, ErrorEnvelope)
    assert (standard.code, standard.status, standard.details) == ("EMAIL_REQUIRED", 400, {"a": 1})
    assert standard.message == f"GET {URL}/api/thing: 400 EMAIL_REQUIRED say which"
    short, *_ = ask(reply(400, {"error": {"code": "E1003", "message": "no type"}}))
    assert isinstance(short, ErrorEnvelope)
    assert short.code == "E1003"


def test_an_error_envelope_is_an_error_whatever_the_status() -> None:
    assert isinstance(ask(reply(200, {"error": {"code": "E1004"}}), BARE)[0], ErrorEnvelope)


def test_a_success_envelope_with_an_error_status_is_none() -> None:
    answer, *_ = ask(reply(404, OK))
    assert isinstance(answer, ErrorEnvelope)
    assert answer.status == 404


# Whether a request may have reached the service, by how it failed.
MAY_HAVE_ARRIVED = {
    httpx.ConnectTimeout: False,
    httpx.PoolTimeout: False,
    httpx.ConnectError: False,
    httpx.ProxyError: False,
    httpx.UnsupportedProtocol: False,
    httpx.ReadTimeout: True,
    httpx.WriteTimeout: True,
    httpx.ReadError: True,
    httpx.WriteError: True,
    httpx.CloseError: True,
    httpx.RemoteProtocolError: True,
    httpx.LocalProtocolError: True,
    httpx.DecodingError: True,
    httpx.TooManyRedirects: True,
    httpx.RequestError: True,
}


@each_row(("kind", "was_sent"), MAY_HAVE_ARRIVED.items())
def test_every_failure_of_the_transport_is_ours_and_it_is_known_whether_the_request_may_have_arrived(
    kind: type[httpx.RequestError], was_sent: bool
) -> None:
    answer, *_ = ask(raising(kind), POST)
    assert isinstance(answer, NoAnswer)
    assert isinstance(answer.error, TransportError)
    assert f"POST {URL}/api/bulk-check-email" in str(answer.error)
    assert "seen" in str(answer.error)
    assert answer.was_sent is was_sent


def all_subclasses(kind: type) -> set[type]:
    return {kind}.union(*(all_subclasses(each) for each in kind.__subclasses__()))


def test_the_table_knows_every_concrete_failure_of_httpx() -> None:
    abstract = {
        httpx.TransportError,
        httpx.TimeoutException,
        httpx.NetworkError,
        httpx.ProtocolError,
    }
    assert all_subclasses(httpx.RequestError) - abstract == set(MAY_HAVE_ARRIVED)


def test_what_is_safe_is_repeated_with_growing_pauses() -> None:
    _, calls, seconds = ask(raising(httpx.ReadError), GET)
    assert calls == 4
    assert seconds == pytest.approx(0.5 + 1 + 2)


def test_a_submission_is_not_repeated_once_it_was_sent() -> None:
    assert ask(raising(httpx.ReadError), POST)[1] == 1
    assert ask(reply(500, json.loads(envelope("INTERNAL_ERROR"))), POST)[1] == 1
    assert ask(reply(502, HTML), POST)[1] == 1
    assert ask(reply(202, b'{"success": tr'), POST)[1] == 1


def test_a_submission_that_never_left_is_repeated() -> None:
    assert ask(raising(httpx.ConnectError), POST)[1] == 4


@each_row("status", [400, 401, 403, 404, 405, 422])
def test_a_refusal_is_not_repeated(status: int) -> None:
    assert ask(reply(status, json.loads(envelope("X"))))[1] == 1


@each_row("status", [500, 502, 503, 504])
def test_a_server_error_is_repeated_where_that_is_safe(status: int) -> None:
    assert ask(reply(status, HTML))[1] == 4


def test_it_stops_repeating_when_it_is_answered() -> None:
    answer, calls, _ = ask(one_by_one(reply(500, HTML), raising(httpx.ReadError), reply(200, OK)))
    assert isinstance(answer, SuccessEnvelope)
    assert calls == 3


def test_retry_after_is_respected_for_a_limiter_also_by_a_submission() -> None:
    slow = reply(429, json.loads(envelope("SLOW")), **{"Retry-After": "7"})
    answer, calls, seconds = ask(one_by_one(slow, reply(202, OK)), POST)
    assert isinstance(answer, SuccessEnvelope)
    assert (calls, seconds) == (2, 7.0)


def failures_of(*handlers: Handler, request: ApiRequest = GET) -> tuple[float, dict[str, int]]:
    """What is counted while requests are sent at once, one for each handler's first call."""

    async def main(loop: Any) -> tuple[float, dict[str, int]]:
        transport = httpx.MockTransport(one_by_one(*handlers))
        async with Client(URL, transport=transport, jitter=lambda: 1.0) as client:
            await asyncio.gather(*(client.send(request) for _ in range(2)))
        return client.waited, dict(client.failed)

    return run_virtual(main)


def test_failed_requests_are_counted_with_the_time_that_was_waited_for_them() -> None:
    limited, broken, fine = reply(429, **{"Retry-After": "2"}), reply(502, HTML), reply(200, OK)
    seconds, counts = failures_of(limited, limited, fine, fine)
    assert seconds == pytest.approx(2.0, abs=0.1), "waits overlap"
    assert counts == {"answered with status 429": 2}
    seconds, counts = failures_of(
        limited, broken, raising(httpx.ReadError), reply(200, HTML), fine, fine
    )
    assert seconds == pytest.approx(2.0, abs=0.1), "until one is answered"
    assert counts == {
        "answered with status 429": 1,
        "answered with status 502": 1,
        "without an answer": 1,
        "with an unusable answer": 1,
    }


@each_row("status", [302, 401, 403, 413])
def test_a_service_that_is_closed_to_the_client_has_failed(status: int) -> None:
    closed = reply(status, HTML)
    assert failures_of(closed, closed) == (0.0, {f"answered with status {status}": 2})


@each_row(("body", "is_page"), [(HTML, True), (b"", True), (b'{"detail": "Not Found"}', False)])
def test_it_is_known_whether_an_error_is_a_page(body: bytes, is_page: bool) -> None:
    answer, *_ = ask(reply(404, body))
    assert isinstance(answer, ErrorEnvelope)
    assert answer.is_page is is_page


@each_row("status", [200, 400, 404, 422])
def test_answers_about_the_request_are_not_failures_of_the_service(status: int) -> None:
    answer = reply(status, OK if status == 200 else json.loads(envelope("X")))
    assert failures_of(answer, answer) == (0.0, {})
    spent = reply(429, json.loads(envelope("QUOTA_EXCEEDED", remaining=0)))
    assert failures_of(spent, spent) == (0.0, {})


def test_a_rate_limit_that_asks_for_a_long_wait_is_returned_not_waited_for() -> None:
    answer, calls, seconds = ask(reply(429, b"", **{"Retry-After": "3600"}))
    assert isinstance(answer, ErrorEnvelope)
    assert (answer.retry_after, calls, seconds) == (3600.0, 1, 0.0)


def test_an_exhausted_quota_is_not_repeated() -> None:
    body = json.loads(envelope("QUOTA_EXCEEDED", remaining=0, limit=100, requested=5))
    assert ask(reply(429, body), POST)[1] == 1


@each_row("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed_and_says_where_to(status: int) -> None:
    answer, calls, _ = ask(reply(status, b"", Location="https://elsewhere.test/x"), POST)
    assert isinstance(answer, ErrorEnvelope)
    assert "https://elsewhere.test/x" in answer.message
    assert calls == 1


@each_row(
    "body",
    [
        b"",
        b"<html>hello",
        b'{"success": true, "da',
        b"null",
        b"[]",
        b'"text"',
        b"{}",
        b'{"success": true}',
        b"\xff\xfe",
        b"NaN",
    ],
)
def test_a_success_that_says_nothing_is_lost_and_shows_what_was_seen(body: bytes) -> None:
    answer, *_ = ask(reply(200, body))
    assert isinstance(answer, NoAnswer)
    assert isinstance(answer.error, ContractError)
    assert answer.was_sent
    assert (f"{len(body)} octets" if body else "an empty body") in str(answer.error)
    assert URL in str(answer.error)


def test_a_proxy_s_page_is_shown_shortened_on_one_line() -> None:
    page = b"<html>\x1b[2J\r\n" + b"x" * 10_000
    answer, *_ = ask(reply(502, page, **{"Content-Type": "text/html"}))
    assert isinstance(answer, ErrorEnvelope)
    assert (answer.code, answer.status) == ("", 502)
    assert "text/html" in answer.message
    assert len(answer.message) < 400
    assert answer.message.isprintable()


def test_an_answer_too_large_is_not_taken_in() -> None:
    answer, *_ = ask(reply(200, b'{"success": true, "data": "' + b"x" * MAX_BODY + b'"}'))
    assert isinstance(answer, NoAnswer)
    assert "larger than" in str(answer.error)


class Pieces(httpx.AsyncByteStream):
    """A body that arrives in pieces, each after some seconds; counts the octets that were taken."""

    def __init__(self, *pieces: bytes, seconds: float = 0.0) -> None:
        self.pieces, self.seconds, self.taken = pieces, seconds, 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            await asyncio.sleep(self.seconds)
            self.taken += len(piece)
            yield piece


def ask_pieces(body: Pieces, *codings: str, status: int = 200, **options: Any) -> ApiAnswer:
    """The answer to a request that is sent once, whose body is not in memory, with these content codings."""
    fields = [("Content-Encoding", each) for each in codings]
    options.setdefault("retries", Retries(attempts=1))
    return ask(lambda _: httpx.Response(status, headers=fields, stream=body), **options)[0]


BODY = json.dumps(OK).encode()
LATER = gzip.compress(BODY, mtime=0)


@each_row(
    "codings", [(), ("",), ("identity",), ("gzip",), ("X-GZip",), ("identity, gzip",), ("deflate",)]
)
def test_an_answer_of_one_coding_is_read_although_none_was_asked_for(
    codings: tuple[str, ...],
) -> None:
    packed = {
        "gzip": LATER,
        "x-gzip": LATER,
        "identity, gzip": LATER,
        "deflate": zlib.compress(BODY),
    }
    octets = packed.get("".join(codings).lower(), BODY)
    for pieces in ([octets], [octets[i : i + 1] for i in range(len(octets))]):
        assert ask_pieces(Pieces(*pieces), *codings) == SuccessEnvelope({"n": 1}, META)


@each_row(
    "codings",
    [("gzip, gzip, gzip",), ("gzip", "gzip"), ("br",), ("zstd",), ("gzip, br",), ("compress",)],
)
@each_row("status", [200, 502])
def test_an_answer_of_several_or_unknown_codings_is_not_even_taken(
    codings: tuple[str, ...], status: int
) -> None:
    body = Pieces(LATER)
    lost = ask_pieces(body, *codings, status=status)
    assert isinstance(lost, NoAnswer)
    assert isinstance(lost.error, TransportError)
    assert lost.was_sent
    assert f"status {status}, Content-Encoding '{codings[0][:3]}" in str(lost.error)
    assert body.taken == 0


@pytest.mark.slow
def test_a_small_answer_that_unpacks_to_a_large_one_is_unpacked_as_far_as_the_limit() -> None:
    bomb = gzip.compress(bytes(16 * MAX_BODY))
    body = Pieces(*(bomb[i : i + 1000] for i in range(0, len(bomb), 1000)))
    answer = ask_pieces(body, "gzip")
    assert isinstance(answer, NoAnswer)
    assert f"with {MAX_BODY + 1} octets" in str(answer.error)
    assert "larger than" in str(answer.error)
    assert body.taken < len(bomb) / 12


def test_no_more_is_unpacked_than_the_limit_and_an_octet() -> None:
    sizes: list[tuple[int, int]] = []

    class Counted:
        unconsumed_tail = b""

        def __init__(self) -> None:
            self.inner = zlib.decompressobj()

        def decompress(self, packed: bytes, most: int) -> bytes:
            part = self.inner.decompress(packed, most)
            self.unconsumed_tail = self.inner.unconsumed_tail
            sizes.append((most, len(part)))
            return part

    body, limit = io.BytesIO(), 3 * UNPACKED
    unpack(Counted(), zlib.compress(bytes(10 * limit)), body, limit, "")
    unpack(Counted(), zlib.compress(b"more"), body, limit, "")
    assert sizes == [(UNPACKED, UNPACKED)] * 3 + [(1, 1)]
    assert body.tell() == limit + 1


@each_row(
    "octets",
    [LATER[:-1], LATER + LATER, LATER + b"\0", b"xyz", BODY, LATER[:20] + b"????" + LATER[24:]],
    ids=["truncated", "two members", "more after its end", "not packed", "plain", "damaged"],
)
def test_packed_data_that_is_damaged_is_not_an_answer(octets: bytes) -> None:
    for pieces in ([octets], [octets[i : i + 1] for i in range(len(octets))]):
        lost = ask_pieces(Pieces(*pieces), "gzip")
        assert isinstance(lost, NoAnswer)
        assert "Content-Encoding 'gzip'" in str(lost.error)
        assert lost.was_sent
        assert not lost.is_permanent


@each_row("codings", [(), ("gzip",)])
def test_of_a_body_without_end_little_more_than_the_limit_is_taken(
    codings: tuple[str, ...],
) -> None:
    # Which unpacks to nothing.
    nothing = zlib.compressobj(0).flush(zlib.Z_SYNC_FLUSH) if codings else b" "
    rest = b"\0\0\0\xff\xff" * 10_000 if codings else b" " * 50_000
    body = Pieces(nothing, *[rest] * 1000)
    assert isinstance(ask_pieces(body, *codings), NoAnswer)
    assert MAX_BODY < body.taken <= MAX_BODY + len(rest) + len(nothing)


def test_a_body_octet_by_octet_is_left_in_time() -> None:
    body = Pieces(*[b" "] * 1000, seconds=1.0)
    lost = ask_pieces(body, timeout=20.5)
    assert isinstance(lost, NoAnswer)
    assert "no complete answer within 20.5 seconds" in str(lost.error)
    assert body.taken == 20


def test_no_coding_is_asked_for_unless_a_header_says_so() -> None:
    seen: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["Accept-Encoding"])
        return httpx.Response(200, json=OK)

    ask(handler)
    ask(handler, headers={"Accept-Encoding": "gzip"})
    assert seen == ["identity", "gzip"]


def test_cookies_are_not_kept() -> None:
    seen: list[str | None] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("Cookie"))
        return httpx.Response(
            503 if len(seen) < 3 else 200, json=OK, headers={"Set-Cookie": f"a{len(seen)}=b"}
        )

    ask(handler)
    assert seen == [None] * 3


def test_an_answer_nested_too_deeply_is_not_an_answer() -> None:
    assert isinstance(ask(reply(200, b"[" * 100_000))[0], NoAnswer)


def test_lone_surrogates_are_made_harmless() -> None:
    answer, *_ = ask(
        reply(200, b'{"success": true, "data": {"\\ud800": ["a\\udfffb", 1]}, "meta": {}}')
    )
    assert answer == SuccessEnvelope({"\ufffd": ["a\ufffdb", 1]}, {})


def test_proper_pairs_survive() -> None:
    assert decode_json(b'"\\ud83d\\ude00"') == "\N{GRINNING FACE}"


@given(st.binary(max_size=40) | st.text(max_size=20).map(lambda t: json.dumps(t).encode()))
def test_decoding_raises_nothing_but_a_contract_error(body: bytes) -> None:
    try:
        decoded = decode_json(body)
    except ContractError:
        return
    json.dumps(decoded, ensure_ascii=False).encode()


def test_a_service_that_never_answers_is_left_in_time() -> None:
    async def main(loop: Any) -> tuple[ApiAnswer, float]:
        service = ScriptedService(loop.wall_clock)
        service.always["quota"] = FAULTS["never answers"]
        async with Client(
            URL, transport=Wire(service, asyncio.sleep), timeout=20.0, jitter=lambda: 1.0
        ) as client:
            return await client.send(BARE), loop.time()

    answer, seconds = run_virtual(main)
    assert isinstance(answer, NoAnswer)
    assert "within 20 seconds" in str(answer.error)
    assert seconds < 90, "the budget of retries bounds the whole"


def test_the_client_sends_json_and_the_headers_it_was_given() -> None:
    seen = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(202, json=OK)

    ask(handler, POST, headers={"Authorization": "Bearer x"})
    assert seen[0].headers["authorization"] == "Bearer x"
    assert seen[0].headers["content-type"] == "application/json"
    assert "idempotency-key" not in seen[0].headers
    ask(handler, replace(POST, key="k1"))
    assert seen[1].headers["idempotency-key"] == "k1"
    assert str(seen[0].url) == f"{URL}/api/bulk-check-email"


@each_row(
    ("text", "url", "why"),
    [
        ("https://verify.example.org", "https://verify.example.org", "as it is"),
        (
            "HTTPS://Verify.Example.ORG:443/",
            "https://verify.example.org",
            "case, default port, slash",
        ),
        ("http://h:80/a/b//", "http://h/a/b", "a path is kept"),
        ("http://h:8000", "http://h:8000", "another port is kept"),
        ("http://[::1]:8000", "http://[::1]:8000", "IPv6"),
        ("http://müller.example", "http://xn--mller-kva.example", "an internationalised host"),
        (" http://h ", "http://h", "blanks around it"),
    ],
)
def test_base_urls_have_one_normal_form(text: str, url: str, why: str) -> None:
    assert parse_base_url(text) == url, why
    assert parse_base_url(url) == url


@each_row(
    "text",
    [
        "",
        "verify.example.org",
        "ftp://h",
        "file:///etc/passwd",
        "http://",
        "http://h:0",
        "http://h:70000",
        "http://h:x",
        "http://a b",
        "http://a..b",
        "http://-a-",
        "http://h?x=1",
        "http://h#x",
        "http://h\r\nX: y",
        "http://256.1.1.1",
        None,
        7,
        b"http://h",
    ],
)
def test_a_text_that_is_not_a_base_url_is_refused(text: Any) -> None:
    with pytest.raises(SettingsError, match="base_url"):
        parse_base_url(text)


@each_row(
    "text",
    ["http://user:secret@h", "http://user:secret@h:x", "http://user:secret@h h", "user:secret@h"],
)
def test_credentials_in_a_url_are_refused_and_never_shown(text: str) -> None:
    with pytest.raises(SettingsError) as raised:
        parse_base_url(text)
    assert "secret" not in str(raised.value)


@given(st.text(max_size=30))
def test_parsing_a_url_raises_nothing_but_settings_errors(text: str) -> None:
    try:
        url = parse_base_url(f"http://{text}")
    except SettingsError:
        return
    assert parse_base_url(url) == url
    assert url.isascii()


@each_row(
    "headers",
    [
        {"A\r\nB": "x"},
        {"A": "x\r\ny"},
        {"A": "x\0"},
        {"": "x"},
        {"A": 5},
        {5: "x"},
        {"A": "\u20ac"},
        "A: b",
    ],
)
def test_headers_that_cannot_be_sent_are_refused_without_their_value(headers: Any) -> None:
    with pytest.raises(SettingsError, match="headers"):
        check_headers(headers)


@each_row(
    ("text", "seconds"),
    [
        (None, None),
        ("0", 0.0),
        (" 12 ", 12.0),
        ("-1", None),
        ("soon", None),
        ("1e9", None),
        ("99999999999", None),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 60.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
    ],
)
def test_a_wait_is_read_as_seconds_or_as_a_date(text: str | None, seconds: float | None) -> None:
    assert parse_retry_after(text, now=40.0) == seconds


@given(st.text(max_size=40))
def test_retry_after_never_raises(text: str) -> None:
    assert (parse_retry_after(text, 0.0) or 0.0) >= 0.0


def test_retries_end_with_their_number() -> None:
    lost = NoAnswer(TransportError("x"), was_sent=True)
    assert Retries(attempts=2).wait_before(2, lost, GET, 0.0) == 0.25
    assert Retries(attempts=2).wait_before(3, lost, GET, 0.0) is None


@asynccontextmanager
async def raw_server(
    handle: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any],
) -> AsyncIterator[int]:
    """A loopback server that speaks whatever `handle` writes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handle(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def ask_raw(answer: bytes | None, scheme: str = "http", request: ApiRequest = BARE) -> ApiAnswer:
    """Ask a real socket that answers these octets and closes; None: nobody listens there."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(answer or b"")
        await writer.drain()

    async def main() -> ApiAnswer:
        async with raw_server(handle) as port:
            if answer is not None:
                return await send(port)
        return await send(port)

    async def send(port: int) -> ApiAnswer:
        transport = httpx.AsyncHTTPTransport()
        url = f"{scheme}://127.0.0.1:{port}"
        async with (
            transport,
            Client(url, transport=transport, retries=Retries(attempts=1), timeout=10) as client,
        ):
            return await client.send(request)

    return asyncio.run(main())


@pytest.mark.slow
@each_row(
    ("answer", "scheme", "was_sent", "words"),
    [
        (None, "http", False, "no connection"),
        (b"HTTP/1.1 400 no\r\n\r\n", "https", False, "TLS failed"),
        (b"", "http", True, "no usable answer"),
        (b"220 mail.example.org ESMTP\r\n", "http", True, "no usable answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "http", True, "no usable answer"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 100_000, "http", True, "no usable answer"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nxyz",
            "http",
            True,
            "Content-Encoding",
        ),
    ],
)
def test_real_sockets_that_misbehave(
    answer: bytes | None, scheme: str, was_sent: bool, words: str
) -> None:
    lost = ask_raw(answer, scheme)
    assert isinstance(lost, NoAnswer)
    assert words in str(lost.error)
    assert f"{scheme}://127.0.0.1" in str(lost.error)
    assert lost.was_sent is was_sent


def test_a_tls_failure_is_hopeless() -> None:
    lost = ask_raw(b"HTTP/1.1 400 no\r\n\r\n", "https")
    assert isinstance(lost, NoAnswer)
    assert lost.is_permanent


def test_a_real_socket_that_behaves() -> None:
    body = json.dumps({"daily_limit": 1, "used": 0, "remaining": 1}).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    assert isinstance(ask_raw(head + body), SuccessEnvelope)


def test_a_service_is_silent_from_the_first_request_without_an_answer_to_the_next_answer() -> None:
    seen: list[float | None] = []

    async def serve(incoming: httpx.Request) -> httpx.Response:
        await asyncio.sleep(1.0)
        seen.append(client.silent_since())
        if len(seen) < 3:
            raise httpx.ConnectError("refused", request=incoming)
        return httpx.Response(200, json=OK)

    client: Client

    async def main(loop: Any) -> float | None:
        nonlocal client
        transport = httpx.MockTransport(serve)
        async with Client(URL, transport=transport, jitter=lambda: 1.0) as client:
            assert client.silent_since() is None
            await client.send(GET)
        return client.silent_since()

    assert run_virtual(main) is None
    assert seen == [0.0, 0.0, 0.0]


def watch_between_polls(answers_until: float, status: int = 200) -> tuple[float | None, list[str]]:
    """Poll once in 15 seconds as a page looks at the run; when it says that the service is silent."""
    asked: list[str] = []

    async def serve(incoming: httpx.Request) -> httpx.Response:
        asked.append(incoming.url.path)
        if loop_of[0].time() >= answers_until:
            await asyncio.sleep(60)  # the service takes the request, and says nothing
        if incoming.url.path == BARE.path and status != 200:
            return httpx.Response(status, json={"error": {"code": "RATE_LIMITED"}})
        return httpx.Response(200, json=OK)

    async def main(loop: Any) -> float | None:
        loop_of.append(loop)
        said_at = None
        async with Client(URL, transport=httpx.MockTransport(serve)) as client:
            await client.send(GET)
            polling = asyncio.create_task(poll(client))
            while loop.time() < 15 and said_at is None:
                await asyncio.sleep(INTERVAL)
                client.ask_if_quiet()
                since = client.silent_since()
                if since is not None and loop.time() - since >= SILENT_AFTER:
                    said_at = loop.time()
            polling.cancel()
        return said_at

    async def poll(client: Client) -> None:
        await asyncio.sleep(15)
        await client.send(GET)

    loop_of: list[Any] = []
    return run_virtual(main), asked


def test_a_service_that_is_gone_between_rare_polls_is_noticed_within_three_seconds() -> None:
    for gone_at in (0.01, 0.3, 0.79, 0.81, 5.0, 7.77):
        said_at, asked = watch_between_polls(answers_until=gone_at)
        assert said_at is not None
        assert said_at - gone_at <= 3
        assert asked.count(GET.path) == 1
    assert QUIET + INTERVAL + SILENT_AFTER + INTERVAL <= 3 + 1e-9


def test_a_service_that_answers_is_not_asked_more_often_than_once_in_a_quiet_time() -> None:
    said_at, asked = watch_between_polls(answers_until=math.inf)
    assert said_at is None
    assert 10 <= asked.count(BARE.path) <= 15 / QUIET


def test_a_service_that_limits_requests_is_not_asked_whether_it_is_there() -> None:
    said_at, asked = watch_between_polls(answers_until=math.inf, status=429)
    assert (said_at, asked.count(BARE.path)) == (None, 1)
