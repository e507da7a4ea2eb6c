"""The bounds on what arrives before there is a request."""

import asyncio
import gc
import json
import logging
import shutil
import socket
import sqlite3
import ssl
import subprocess
import threading
import weakref
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from starlette.requests import Request
from uvicorn.server import ServerState

import mailverdict as mv
from mailverdict.errors import SettingsError
from mailverdict.http_server import (
    BODY_COMPLETE,
    BODY_PIECE,
    PIECE,
    BoundedProtocol,
    Bounds,
    SmallReads,
)
from mailverdict.service import create_app, run
from mailverdict.service.http.bodies import read_object
from mailverdict.service.http.replies import RequestRefused
from mailverdict.service.jobs.store import Store
from mailverdict.service.server import check, configure
from tests.doubles.answering_backend import AnsweringBackend
from tests.doubles.listening import listening
from tests.doubles.service import asynchronous, settings_for, until

START = b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-long: "


SHORTEST = b"GET / HTTP/1.1\r\n\r\n"


class Wire(asyncio.Transport):
    """A transport that keeps what is written to it, and fails like uvloop's after its end."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[bytes] = []
        self.closed = self.lost = self.paused = False

    @property
    def written(self) -> bytes:
        return b"".join(self.pieces)

    def write(self, data: bytes) -> None:
        assert not self.lost, "the handle is closed"
        self.pieces.append(data)

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        assert not self.lost, "the handle is closed"
        self.paused = False


def connection(
    folder: Path, send_timeout: float = 10.0, **changed: object
) -> tuple[BoundedProtocol, Wire]:
    """A connection as the server makes it, on a wire of ours."""
    settings = settings_for(folder, **changed)
    config = configure(create_app(settings, AnsweringBackend()), settings, "127.0.0.1", 0)
    config.load()
    bounds = Bounds(
        settings.header_limit, settings.seconds("header_timeout"), send_timeout, linger=0.0
    )
    protocol = BoundedProtocol(bounds, config=config, server_state=ServerState(), app_state={})
    wire = Wire()
    protocol.connection_made(wire)
    return protocol, wire


async def closed(protocol: BoundedProtocol) -> None:
    """End a connection, and the service that it belongs to."""
    protocol.connection_lost(None)
    await asyncio.gather(*protocol.tasks)
    await protocol.app.state.service.close()


class Network:
    """Octets on their way to a connection, which takes them while it reads."""

    def __init__(self, protocol: BoundedProtocol, wire: Wire, octets: bytes) -> None:
        self.reader, self.wire, self.octets = SmallReads(protocol), wire, octets

    def deliver(self) -> bool:
        """Deliver what is read now; return whether all was."""
        while self.octets and not self.wire.paused and not self.wire.closed:
            buffer = self.reader.get_buffer(-1)
            piece, self.octets = self.octets[: len(buffer)], self.octets[len(buffer) :]
            buffer[: len(piece)] = piece
            self.reader.buffer_updated(len(piece))
        return not self.octets


@asynchronous
async def test_head_without_end_is_cut_off_at_the_limit(tmp_path: Path) -> None:
    protocol, wire = connection(tmp_path, header_limit=5000)
    protocol.data_received(START)
    for _ in range(5):
        assert not wire.closed
        protocol.data_received(b"y" * 1000)
    protocol.data_received(b"y")
    assert wire.written.startswith(b"HTTP/1.1 431 ")
    assert b"HEADERS_TOO_LARGE" in wire.written
    protocol.data_received(b"y: z\r\n\r\n" + SHORTEST)
    await until(lambda: wire.closed)
    assert len(wire.pieces) == 1


@asynchronous
async def test_head_of_too_many_fields_is_refused(tmp_path: Path) -> None:
    for end in (b"", b"\r\n"):  # before its end, and as a whole
        protocol, wire = connection(tmp_path)
        protocol.data_received(SHORTEST[:-2] + b"a:\r\n" * 102 + end)
        await until(lambda wire=wire: wire.closed)
        assert wire.written.startswith(b"HTTP/1.1 431 ")
        assert b"HEADERS_TOO_LARGE" in wire.written
        await closed(protocol)


CHUNKED = b"POST /api/check-email HTTP/1.1\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("fields", [b"a:\r\n", b"y: " + b"y" * 2000 + b"\r\n", b"y" * 2000])
@asynchronous
async def test_trailer_without_end_is_cut_off(tmp_path: Path, fields: bytes) -> None:
    protocol, wire = connection(tmp_path)
    network = Network(
        protocol, wire, CHUNKED + b"2\r\n{}\r\n0\r\n" + fields * (200_000 // len(fields))
    )
    await until(lambda: network.deliver() or wire.closed)
    assert len(network.octets) > 150_000
    await closed(protocol)


@asynchronous
async def test_trailer_is_not_part_of_the_head(tmp_path: Path) -> None:
    protocol, wire = connection(tmp_path)
    protocol.data_received(CHUNKED + b"2\r\n{}\r\n0\r\nx-forwarded-for: 192.0.2.9\r\n\r\n")
    scope = protocol.cycle.scope
    await until(lambda: wire.written)
    assert wire.written.startswith(b"HTTP/1.1 400 ")
    assert [name for name, _ in scope["headers"]] == [b"content-type", b"transfer-encoding"]
    await closed(protocol)


@asynchronous
async def test_body_in_chunks_may_have_more_of_them_than_a_head_has_octets(tmp_path: Path) -> None:
    protocol, wire = connection(tmp_path)
    network = Network(protocol, wire, CHUNKED + b"1\r\n \r\n" * 20_000 + b"2\r\n{}\r\n0\r\n\r\n")
    await until(lambda: network.deliver() and wire.written)
    assert b"EMAIL_REQUIRED" in wire.written
    await closed(protocol)


@pytest.mark.slow
@asynchronous
async def test_pipeline_is_read_no_further_while_requests_wait(tmp_path: Path) -> None:
    protocol, wire = connection(tmp_path)
    network = Network(protocol, wire, SHORTEST * 500)
    most = 0
    while not network.deliver() or protocol.is_busy():
        most = max(most, len(protocol.pipeline))
        assert wire.paused or not network.octets
        await asyncio.sleep(0)
    assert 1 < most <= PIECE // len(SHORTEST) + 1
    assert not wire.paused
    assert wire.written.count(b"HTTP/1.1 200 ") == 500
    await closed(protocol)


@pytest.mark.parametrize(
    "octets",
    [
        SHORTEST * 100,
        CHUNKED + (b"%x\r\n" % PIECE + b" " * PIECE + b"\r\n") * 100 + b"2\r\n{}\r\n0\r\n\r\n",
    ],
)
@asynchronous
async def test_connection_that_has_more_lets_the_event_loop_turn(
    tmp_path: Path, octets: bytes
) -> None:
    protocol, wire = connection(tmp_path)
    protocol.data_received(SHORTEST)  # the first request opens the store
    await until(lambda: not protocol.is_busy())
    network = Network(protocol, wire, octets)
    turns = 0
    while not network.deliver() or protocol.is_busy():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 450
    await closed(protocol)


@pytest.mark.slow
@asynchronous
async def test_client_that_does_not_read_is_not_read_from(tmp_path: Path) -> None:
    protocol, wire = connection(tmp_path)
    network = Network(protocol, wire, SHORTEST * 500)
    network.deliver()
    protocol.pause_writing()  # the transport's buffer is full
    left = len(network.octets)
    for _ in range(50):
        network.deliver()
        await asyncio.sleep(0)
    assert (wire.paused, wire.pieces, len(network.octets)) == (True, [], left)
    protocol.resume_writing()
    await until(network.deliver)
    assert protocol.send_timer is None
    await closed(protocol)


@asynchronous
async def test_client_that_does_not_read_for_long_is_cut_off(tmp_path: Path) -> None:
    protocol, wire = connection(tmp_path, send_timeout=0.0)
    protocol.pause_writing()
    await until(lambda: wire.closed)
    await closed(protocol)


@asynchronous
async def test_connection_that_has_waited_longest_is_closed_if_too_many_have_no_request(
    tmp_path: Path,
) -> None:
    settings = settings_for(tmp_path)
    config = configure(create_app(settings, AnsweringBackend()), settings, "127.0.0.1", 0)
    config.load()
    bounds, idle, state = Bounds(idle_limit=3), {}, ServerState()
    wires = [Wire() for _ in range(6)]
    protocols = []
    for wire in wires:
        protocols.append(
            BoundedProtocol(bounds, idle, config=config, server_state=state, app_state={})
        )
        protocols[-1].connection_made(wire)
        if wire is wires[0]:
            protocols[0].data_received(SHORTEST)  # has a request, which is not idle
        else:
            protocols[-1].data_received(START)  # half a head
    assert [wire.closed for wire in wires] == [False, True, True, False, False, False]
    await until(lambda: not protocols[0].is_busy())
    assert [wire.closed for wire in wires] == [False, True, True, True, False, False]
    for protocol in protocols:
        protocol.connection_lost(None)
    assert idle == {}
    await asyncio.gather(*state.tasks)
    await config.loaded_app.state.service.close()


@asynchronous
async def test_body_whose_length_is_known_is_read_in_large_pieces_and_never_beyond_its_end(
    tmp_path: Path,
) -> None:
    protocol, wire = connection(tmp_path)
    reader = SmallReads(protocol)
    head = b"POST /api/check-email HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    assert len(reader.get_buffer(-1)) == PIECE
    protocol.data_received(head % 100_000)
    sizes = []
    left = 100_000
    while left:
        sizes.append(min(len(reader.get_buffer(-1)), left))
        left -= sizes[-1]
        protocol.data_received(b" " * sizes[-1])
    assert sizes == [BODY_PIECE, 100_000 - BODY_PIECE]
    assert len(reader.get_buffer(-1)) == PIECE
    await until(lambda: wire.written)
    await closed(protocol)


@asynchronous
async def test_pipeline_that_ends_in_a_reset_leaves_no_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    body = b'{"email":"a@example.org","validation_type":"regex"}'
    check = (
        b"POST /api/check-email HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 51\r\n\r\n"
        + body
    )
    for reading in (True, False):
        protocol, wire = connection(tmp_path)
        protocol.data_received(check + SHORTEST + check)
        if reading:
            await asyncio.sleep(0)
        else:
            protocol.pause_writing()
            await until(lambda protocol=protocol: protocol.app.state.service.is_open)
        assert wire.pieces == []  # the first request waits for the store, or for the client
        wire.closed = wire.lost = True
        protocol.connection_lost(ConnectionResetError())
        await asyncio.gather(*protocol.tasks)
        assert wire.pieces == []
        await protocol.app.state.service.close()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@asynchronous
async def test_connection_with_waiting_requests_is_freed_without_the_garbage_collector(
    tmp_path: Path,
) -> None:
    protocol, _ = connection(tmp_path)
    service = protocol.app.state.service
    protocol.data_received(SHORTEST * 20)
    tasks = set(protocol.tasks)
    gc.disable()
    try:
        protocol.connection_lost(None)
        await asyncio.gather(*tasks)
        tasks.clear()
        found = weakref.ref(protocol)
        del protocol
        assert found() is None
    finally:
        gc.enable()
    await service.close()


@pytest.mark.slow
def test_pipeline_is_answered_in_order_whatever_its_sizes(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, daily_limit=1000)
    sizes = [0, 1, 500, PIECE, 3 * PIECE, 70_000, 200_000] * 5
    requests, expected = b"", []
    for number, size in enumerate(sizes):
        body = (
            json.dumps({"email": f"a{number}@example.org", "validation_type": "regex"}) + " " * size
        )
        head = f"POST /api/check-email HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
        requests += f"{head}\r\n\r\n{body}".encode() + SHORTEST * (number % 3)
        expected += [f"a{number}@example.org".encode()] + [b"text/html"] * (number % 3)
    requests += b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n"
    with (
        listening(create_app(settings, AnsweringBackend()), settings) as address,
        address.connect() as connected,
    ):
        sending = threading.Thread(target=connected.sendall, args=(requests,))
        sending.start()
        answers = connected.makefile("rb").read().split(b"HTTP/1.1 200 OK\r\n")[1:]
        sending.join()
    assert len(answers) == len(expected) + 1
    assert all(part in answer for part, answer in zip(expected, answers, strict=False))


@asynchronous
async def test_first_piece_of_a_head_is_not_counted_twice(tmp_path: Path) -> None:
    protocol, wire = connection(tmp_path, header_limit=2000)
    protocol.data_received(START + b"y" * 1900)
    protocol.data_received(b"y" * 100)
    assert not wire.closed


@asynchronous
async def test_timeout_sends_408_only_if_part_of_a_head_arrived(tmp_path: Path) -> None:
    silent, silence = connection(tmp_path)
    silent.on_timeout()
    assert (silence.closed, silence.written) == (True, b"")
    begun, wire = connection(tmp_path)
    begun.data_received(START)
    begun.on_timeout()
    assert wire.written.startswith(b"HTTP/1.1 408 ")
    await until(lambda: wire.closed)


@asynchronous
async def test_timer_runs_only_while_a_head_is_expected(tmp_path: Path) -> None:
    protocol, _ = connection(tmp_path)
    assert protocol.head_timer is not None
    protocol.data_received(START)
    assert protocol.head_timer is not None
    protocol.data_received(b"\r\n\r\n")
    assert protocol.head_timer is None
    protocol.cycle.response_complete = True
    # Blank lines between requests are allowed, and must not stop the clock for ever.
    protocol.data_received(b"\r\n")
    assert protocol.head_timer is not None
    protocol.connection_lost(None)
    assert protocol.head_timer is None
    await asyncio.gather(*protocol.tasks, return_exceptions=True)
    await protocol.app.state.service.close()


@asynchronous
async def test_scope_says_when_the_whole_body_has_arrived(tmp_path: Path) -> None:
    protocol, _ = connection(tmp_path)
    protocol.data_received(
        b"POST /api/check-email HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{"
    )
    assert BODY_COMPLETE not in protocol.cycle.scope.get("extensions", {})
    protocol.data_received(b"}")
    assert BODY_COMPLETE in protocol.cycle.scope["extensions"]
    protocol.connection_lost(None)
    await asyncio.gather(*protocol.tasks, return_exceptions=True)
    await protocol.app.state.service.close()


@pytest.mark.parametrize("is_complete", [True, False])
@asynchronous
async def test_body_is_read_with_a_timer_unless_it_has_arrived(is_complete: bool) -> None:
    async def receive() -> dict[str, object]:
        await asyncio.sleep(0)  # the timer of no seconds ends this wait
        return {"type": "http.request", "body": b"{}"}

    extensions = {BODY_COMPLETE: {}} if is_complete else {}
    # The first counts.
    headers = [
        (b"content-type", b"application/json"),
        (b"content-type", b"text/plain"),
    ]
    reading = Request({"type": "http", "headers": headers, "extensions": extensions}, receive)
    if is_complete:
        assert await read_object(reading, limit=100, seconds=0) == {}
    else:
        with pytest.raises(RequestRefused, match="REQUEST_TIMEOUT"):
            await read_object(reading, limit=100, seconds=0)


@asynchronous
async def test_refusal_does_not_break_into_another_answer(tmp_path: Path) -> None:
    protocol, wire = connection(tmp_path)
    protocol.data_received(START + b"\r\n\r\n")
    assert protocol.is_busy()
    protocol.data_received(b"\x00\x01 nonsense\r\n\r\n")
    assert (wire.closed, wire.written) == (True, b"")
    protocol.connection_lost(None)
    await asyncio.gather(*protocol.tasks, return_exceptions=True)
    await protocol.app.state.service.close()


@asynchronous
async def test_response_is_written_in_one_piece(tmp_path: Path) -> None:
    protocol, wire = connection(tmp_path)
    for count, method in enumerate((b"GET", b"HEAD", b"GET"), 1):
        protocol.data_received(method + b" /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n")
        await until(lambda: not protocol.is_busy())
        assert len(wire.pieces) == count
        assert wire.pieces[-1].startswith(b"HTTP/1.1 200 OK\r\n")
        assert wire.pieces[-1].endswith(b"\r\n\r\n" if method == b"HEAD" else b"}")
    protocol.connection_lost(None)
    await protocol.app.state.service.close()


@pytest.mark.parametrize(
    ("version", "fields", "is_closed"),
    [
        (b"1.1", b"", False),
        (b"1.1", b"connection: close\r\n", True),
        (b"1.0", b"", True),
        (b"1.1", b"x-long: " + b"a" * 40_000 + b"\r\n", True),  # the reply itself has the field
    ],
)
@asynchronous
async def test_connection_is_closed_after_a_reply_that_says_so(
    tmp_path: Path, version: bytes, fields: bytes, is_closed: bool
) -> None:
    protocol, wire = connection(tmp_path)
    protocol.data_received(
        b"GET /api/quota HTTP/" + version + b"\r\nhost: x\r\n" + fields + b"\r\n"
    )
    await until(lambda: not protocol.is_busy())
    assert (wire.closed, wire.written.count(b"\r\nconnection: close\r\n")) == (
        is_closed,
        int(is_closed),
    )
    protocol.connection_lost(None)
    await protocol.app.state.service.close()


@asynchronous
async def test_reply_to_a_client_that_is_gone_is_dropped(tmp_path: Path) -> None:
    protocol, wire = connection(tmp_path)
    protocol.data_received(b"GET /api/quota HTTP/1.1\r\nhost: x\r\n\r\n")
    protocol.connection_lost(None)
    await asyncio.gather(*protocol.tasks)
    assert wire.written == b""
    await protocol.app.state.service.close()


@asynchronous
async def test_interim_response_does_not_wait_for_the_body_of_a_response(tmp_path: Path) -> None:
    protocol, wire = connection(tmp_path)
    fields = b"host: x\r\ncontent-type: application/json\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n"
    protocol.data_received(b"POST /api/check-email HTTP/1.1\r\n" + fields)
    await until(lambda: wire.pieces)
    assert wire.pieces == [b"HTTP/1.1 100 Continue\r\n\r\n"]
    protocol.data_received(b"{}")
    await until(lambda: not protocol.is_busy())
    assert len(wire.pieces) == 2
    assert wire.pieces[1].startswith(b"HTTP/1.1 400 ")
    protocol.connection_lost(None)
    await protocol.app.state.service.close()


def test_proxies_are_not_believed_by_the_server_itself(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    config = configure(create_app(settings, AnsweringBackend()), settings, "127.0.0.1", 0)
    assert config.proxy_headers is False
    assert config.server_header is False


def test_run_refuses_a_store_that_another_service_has(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    store = Store(settings)
    try:
        with pytest.raises(SettingsError, match="another service"):
            run(settings, port=0)
    finally:
        store.close()


def test_run_refuses_an_address_where_it_cannot_listen(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=f"port {port}: .*in use"):
            run(settings, port=port, backend=AnsweringBackend())
    for port in (-1, 65_536):
        with pytest.raises(SettingsError, match=f"port={port}: give a number from 0 to 65535"):
            run(settings, port=port)
    with pytest.raises(SettingsError, match=r"cannot listen on host 'a\.\.b'"):
        run(settings, "a..b", 0)


@pytest.mark.parametrize(
    ("host", "lacks_keys", "warns"),
    [
        ("0.0.0.0", True, True),
        ("0.0.0.0", False, False),
        ("127.0.0.1", True, False),
        ("localhost", True, False),
    ],
)
def test_service_that_others_can_use_without_keys_gives_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, host: str, lacks_keys: bool, warns: bool
) -> None:
    check(settings_for(tmp_path), host, 0, lacks_keys=lacks_keys)
    assert [record.levelname for record in caplog.records] == ["WARNING"] * warns
    assert ("has no client keys" in caplog.text) is warns


def test_run_refuses_a_list_that_cannot_be_read(tmp_path: Path) -> None:
    lists = mv.Lists(spamtrap=tmp_path / "none.txt")
    with pytest.raises(SettingsError, match=r"Lists\.spamtrap: cannot read .*none\.txt"):
        run(settings_for(tmp_path, local=mv.LocalBackend(lists=lists).settings), port=0)


def test_run_adds_no_tables_to_the_sqlite_file_of_another_program(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    path = settings.store.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE keys (id INTEGER)")
        with pytest.raises(SettingsError, match="has other tables, as a journal has"):
            run(settings, port=0)
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("keys",)]


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for the loopback that signs itself."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    chain, key = folder / "chain.pem", folder / "key.pem"
    command = [
        openssl,
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    command += [
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-keyout",
        key,
        "-out",
        chain,
    ]
    subprocess.run(command, check=True, capture_output=True)
    return chain, key


def test_service_is_https_with_a_certificate(tmp_path: Path) -> None:
    chain, key = make_certificate(tmp_path)
    settings = settings_for(tmp_path, ssl_certfile=str(chain), ssl_keyfile=str(key))
    with listening(create_app(settings, AnsweringBackend()), settings) as address:
        trust = ssl.create_default_context(cafile=str(chain))
        assert (
            httpx.get(f"https://127.0.0.1:{address.port}/healthz", verify=trust).status_code == 200
        )


def test_certificate_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    missing = settings_for(tmp_path, ssl_certfile=str(tmp_path / "none.pem"))
    with pytest.raises(SettingsError, match=r"ssl_certfile: .*none\.pem cannot be used"):
        run(missing, port=0)
    chain, _ = make_certificate(tmp_path)
    with pytest.raises(SettingsError, match="ssl_certfile: "):
        run(settings_for(tmp_path, ssl_certfile=str(chain)), port=0)
    with pytest.raises(SettingsError, match="ssl_keyfile needs ssl_certfile"):
        settings_for(tmp_path, ssl_keyfile="key.pem")
