"""Whatever arrives gets a JSON error in the right envelope: never a traceback, never a 500."""

import gzip
import json
from collections.abc import Iterator

import pytest

from mailverdict.service import create_app
from tests.doubles.answering_backend import AnsweringBackend
from tests.doubles.listening import Address, listening, read_answer
from tests.doubles.service import settings_for

CHECK, BULK = "/api/check-email", "/api/bulk-check-email"
GOOD = b'{"email":"ada@example.org","validation_type":"regex"}'


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """One service for all of this; its patience is short."""
    settings = settings_for(
        tmp_path_factory.mktemp("service"),
        daily_limit=10**6,
        body_timeout=0.3,
        header_timeout=0.3,
        access_log=False,
    )
    with listening(create_app(settings, AnsweringBackend()), settings) as address:
        yield address


def request(body: bytes, *, path: str = CHECK, method: str = "POST", **headers: str) -> bytes:
    """A request as octets."""
    usual = {
        "host": "service.example",
        "content_type": "application/json",
        "content_length": str(len(body)),
    }
    given = {**usual, **headers}
    lines = [
        f"{method} {path} HTTP/1.1",
        *(f"{name.replace('_', '-')}: {value}" for name, value in given.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def assert_still_well(service: Address) -> None:
    """Whatever was sent before, the next request is answered."""
    assert service.send(request(GOOD)).status == 200


BROKEN = [
    (b"", "nothing at all"),
    (b"{", "cut off"),
    (b"{'email': 'a'}", "no JSON"),
    (b'{"email": "ada@example.org",}', "a trailing comma"),
    (b'\xef\xbb\xbf{"email":"ada@example.org"}', "a byte order mark"),
    (b'{"email": "\xff\xfe@example.org"}', "no UTF-8"),
    ('{"email": "ada@example.org"}'.encode("utf-16"), "UTF-16"),
    (b"[" * 100_000, "nesting without end"),
    (b'{"a":' * 40_000 + b"1" + b"}" * 40_000, "deep objects"),
    (b"1" * 10_000, "a number of ten thousand digits"),
    (b"\x00" * 64, "NULs"),
    (b"[]", "a list"),
    (b'"ada@example.org"', "a text"),
    (b"null", "null"),
    (b"NaN", "not even a number"),
]


@pytest.mark.parametrize("path", [CHECK, BULK])
def test_body_that_is_not_a_json_object_is_refused_in_the_short_envelope(
    service: Address, path: str
) -> None:
    for body, why in BROKEN:
        answer = service.send(request(body, path=path))
        assert answer.status == 400, why
        assert set(answer.json()) == {"error"}, why
        assert answer.code == "E1002", why


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=utf-16",
        "json",
    ],
)
def test_other_content_type_is_refused(service: Address, content_type: str) -> None:
    answer = service.send(request(GOOD, content_type=content_type))
    assert (answer.status, answer.code) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert set(answer.json()) == {"error"}


@pytest.mark.parametrize(
    ("encoding", "status"), [("gzip", 415), ("br, gzip", 415), ("identity", 200), ("", 200)]
)
def test_a_compressed_body_is_refused_as_such(service: Address, encoding: str, status: int) -> None:
    body = gzip.compress(GOOD) if status == 415 else GOOD
    answer = service.send(request(body, content_encoding=encoding))
    assert answer.status == status
    assert status == 200 or (answer.code, answer.headers["accept-encoding"]) == (
        "UNSUPPORTED_MEDIA_TYPE",
        "identity",
    )


@pytest.mark.parametrize(
    "content_type", ["application/json; charset=utf-8", 'Application/JSON;charset="UTF-8"']
)
def test_json_with_a_charset_is_json(service: Address, content_type: str) -> None:
    assert service.send(request(GOOD, content_type=content_type)).status == 200


VALUES = [
    None,
    True,
    0,
    -1,
    1.5,
    1e300,
    "",
    " ",
    "\x00",
    "\ud800",
    [],
    {},
    [[]],
    [None],
    {"a": {"b": []}},
    "x" * 10_000,
]


@pytest.mark.parametrize(
    ("path", "field"),
    [(CHECK, "email"), (CHECK, "validation_type"), (BULK, "emails"), (BULK, "validation_type")],
)
def test_wrong_type_at_any_field_is_a_refusal(service: Address, path: str, field: str) -> None:
    good = {"email": "ada@example.org", "emails": ["ada@example.org"], "validation_type": "regex"}
    for value in VALUES:
        answer = service.send(request(json.dumps({**good, field: value}).encode(), path=path))
        assert answer.status == 400, value
        assert answer.code in ("EMAIL_REQUIRED", "INVALID_VALIDATION_TYPE", "E1002"), value
        assert ("meta" in answer.json()) is (not answer.code.startswith("E1")), value


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
def test_wrong_type_within_emails_is_a_refusal_or_a_malformed_entry(
    service: Address, value: object
) -> None:
    body = json.dumps({"emails": ["ada@example.org", value], "validation_type": "regex"}).encode()
    answer = service.send(request(body, path=BULK))
    if isinstance(value, str):
        assert answer.status == 202
        assert answer.json()["data"]["results"][1]["status"] == "error"
    else:
        assert (answer.status, answer.code) == (400, "E1002")


def test_thirty_megabytes_are_refused_before_they_are_sent(service: Address) -> None:
    with service.connect() as connection:
        connection.sendall(request(b"", content_length=str(30_000_000)))
        answer = read_answer(connection)  # nothing of the body was sent yet
    assert (answer.status, answer.code) == (413, "PAYLOAD_TOO_LARGE")
    assert answer.headers["connection"] == "close"
    assert_still_well(service)


@pytest.mark.slow
def test_client_that_sends_thirty_megabytes_first_can_read_the_refusal(service: Address) -> None:
    body = b'{"emails":["' + b"x" * 30_000_000 + b'"]}'
    answer = service.send(request(body, path=BULK))
    assert (answer.status, answer.code) == (413, "PAYLOAD_TOO_LARGE")
    assert_still_well(service)


def test_chunked_body_is_cut_at_the_limit(service: Address) -> None:
    head = request(b"").replace(b"content-length: 0", b"transfer-encoding: chunked")
    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    with service.connect() as connection:
        connection.sendall(head)
        for _ in range(5):
            connection.sendall(chunk)
        answer = read_answer(connection)
    assert (answer.status, answer.code) == (413, "PAYLOAD_TOO_LARGE")
    assert_still_well(service)


def test_body_that_arrives_in_pieces_is_read(service: Address) -> None:
    whole = request(GOOD)
    assert service.send(whole[:-20], whole[-20:-5], whole[-5:]).status == 200


def test_body_that_does_not_arrive_is_refused_in_time(service: Address) -> None:
    answer = service.send(request(GOOD)[:-1])
    assert (answer.status, answer.code) == (408, "REQUEST_TIMEOUT")
    assert_still_well(service)


def test_connection_that_ends_within_the_body_leaves_no_trace(service: Address) -> None:
    with service.connect() as connection:
        connection.sendall(request(GOOD)[:-10])
    assert_still_well(service)


def test_head_that_does_not_arrive_is_refused_in_time(service: Address) -> None:
    answer = service.send(b"POST /api/check-email HTTP/1.1\r\nhost: x\r\n")
    assert (answer.status, answer.code) == (408, "REQUEST_TIMEOUT")
    assert_still_well(service)


def test_connection_without_a_request_is_closed(service: Address) -> None:
    with service.connect() as connection:
        assert connection.recv(100) == b""


@pytest.mark.parametrize(
    "head",
    [
        {"x_long": "y" * 100_000},
        {f"x_{n}": "y" * 100 for n in range(1000)},
        {"cookie": "a=b; " * 20_000},
    ],
    ids=["one header", "a thousand headers", "a cookie"],
)
def test_hundred_thousand_header_octets_are_refused(service: Address, head: dict[str, str]) -> None:
    answer = service.send(request(GOOD, **head))
    assert (answer.status, answer.code) == (431, "HEADERS_TOO_LARGE")
    assert set(answer.json()) == {"error"}
    assert_still_well(service)


def test_long_path_is_refused(service: Address) -> None:
    answer = service.send(request(b"", method="GET", path="/" + "a" * 60_000))
    assert (answer.status, answer.code) == (431, "HEADERS_TOO_LARGE")


@pytest.mark.parametrize(
    "octets",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        b"GET / HTTP/9.9\r\n\r\n",
    ],
)
def test_non_http_gets_json_too(service: Address, octets: bytes) -> None:
    answer = service.send(octets)
    assert (answer.status, answer.code) == (400, "BAD_REQUEST")
    assert_still_well(service)


@pytest.mark.parametrize(
    "path",
    [
        "/api",
        "/api/",
        "/api/check-email/",
        "/API/quota",
        "/api/quota/",
        "/..%2f..%2fetc/passwd",
        "/%00",
        "/ada@example.org",
        "//",
    ],
)
def test_unknown_path_is_not_found(service: Address, path: str) -> None:
    answer = service.send(request(b"", method="GET", path=path))
    assert (answer.status, answer.code) == (404, "NOT_FOUND")
    assert set(answer.json()) == {"error"}


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", CHECK, "POST"),
        ("PUT", CHECK, "POST"),
        ("DELETE", BULK, "POST"),
        ("POST", "/api/quota", "GET"),
        ("PATCH", "/api/verification-result/x", "GET"),
        ("OPTIONS", CHECK, "POST"),
        ("TRACE", "/", "GET"),
    ],
)
def test_other_method_is_not_allowed(
    service: Address, method: str, path: str, allowed: str
) -> None:
    answer = service.send(request(b"", method=method, path=path))
    assert (answer.status, answer.code) == (405, "METHOD_NOT_ALLOWED")
    assert allowed in answer.headers["allow"]


def test_requests_one_after_the_other_on_one_connection(service: Address) -> None:
    with service.connect() as connection:
        for _ in range(3):
            connection.sendall(request(GOOD))
            assert read_answer(connection).status == 200
        connection.sendall(request(b"{"))
        assert read_answer(connection).status == 400
        connection.sendall(request(GOOD))
        assert read_answer(connection).status == 200


def test_expectation_is_met_only_for_a_body_that_will_be_read(service: Address) -> None:
    with service.connect() as connection:
        connection.sendall(request(b"", content_length=str(len(GOOD)), expect="100-continue"))
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
        connection.sendall(GOOD)
        assert read_answer(connection).status == 200
    with service.connect() as connection:
        connection.sendall(request(b"", content_length="30000000", expect="100-continue"))
        assert read_answer(connection).status == 413


def test_websocket_is_not_spoken(service: Address) -> None:
    answer = service.send(
        request(b"", method="GET", path="/api/quota", connection="upgrade", upgrade="websocket")
    )
    assert answer.status == 200


def test_nothing_tells_what_the_service_is_made_of(service: Address) -> None:
    assert "server" not in service.send(request(GOOD)).headers
