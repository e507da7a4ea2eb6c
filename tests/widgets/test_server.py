"""The page of `mailverdict audit` over HTTP: who may use it, what it sends, and what it does with what it gets."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from uvicorn.server import ServerState

from mailverdict.http_server import SmallReads
from mailverdict.widgets import server as module
from mailverdict.widgets.actions import PAGE_ACTIONS
from mailverdict.widgets.server import (
    AWAY,
    LONGEST_BODY,
    PageServer,
    make_config,
    sign,
    static_files,
)
from mailverdict.widgets.state import AuditState
from mailverdict.widgets.transfer import SPARE
from tests.doubles.tables import first_ones
from tests.doubles.waiting import wait_until
from tests.widgets.served import TAB, TOKEN, Served, served, whole

SETTINGS = {"backend": None, "journal": None, "screen": None, "limit": None}
LIST = b"name,mail\nAda,ada@example.org\nBob,nobody\n"


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Served]:
    """A page without a list."""
    with served(AuditState(SETTINGS, "regex", folder=tmp_path)) as running:
        yield running


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The same for tests that change nothing."""
    with served(AuditState(SETTINGS, "regex", folder=tmp_path_factory.mktemp("empty"))) as running:
        yield running


@pytest.fixture
def loaded(page: Served) -> Served:
    """The same with a list."""
    put(page, LIST)
    return page


def put(
    page: Served, content: bytes, name: str = "list.csv", purpose: str = "list"
) -> httpx.Response:
    reply = page.client.put("/file", params={"name": name, "purpose": purpose}, content=content)
    page.state.work.wait(30)
    return reply


def act(page: Served, name: str, /, **arguments: object) -> None:
    """An action, and what it starts."""
    assert page.act(name, **arguments).status_code == 204
    page.state.work.wait(30)


# --- who may ask -----------------------------------------------------------------------------------------------------

ASKED = [("GET", f"/events?tab={TAB}"), ("POST", "/act"), ("PUT", "/file?name=a.csv&purpose=list")]


@pytest.mark.parametrize(("method", "path"), ASKED)
@pytest.mark.parametrize(
    "given", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer \u00e4"]
)
def test_nothing_is_told_or_done_without_the_token(empty, method, path, given):
    headers = {"Authorization": given.encode("latin-1")}
    reply = empty.client.request(method, path, headers=headers, content=b'{"act":"verify"}')
    assert reply.status_code == 401
    assert "token" in reply.text


def test_the_token_is_not_taken_from_the_address(empty):
    with httpx.Client(base_url=empty.base) as stranger:
        assert stranger.get("/events", params={"tab": TAB, "token": TOKEN}).status_code == 401
        stranger.cookies.set("token", TOKEN)
        assert stranger.post("/act", content=b"{}").status_code == 401


@pytest.mark.parametrize(
    ("method", "path"), [*ASKED, ("GET", "/"), ("GET", "/static/page.js"), ("GET", "/file/x")]
)
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "attacker.test"},
        {"Host": "127.0.0.1:1"},
        {"Host": "127.0.0.1"},
        {"Origin": "http://attacker.test"},
        {"Origin": "null"},
        {"Origin": "https://{host}"},
    ],
)
def test_other_sites_are_refused_also_with_the_token(empty, method, path, headers):
    host = empty.base.removeprefix("http://")
    given = {name: value.format(host=host) for name, value in headers.items()}
    assert empty.client.request(method, path, headers=given, content=b"{}").status_code == 403


def test_the_page_is_open_under_both_names_and_loads_nothing_from_elsewhere(empty):
    for name in ("127.0.0.1", "localhost"):
        host = f"{name}:{empty.base.rpartition(':')[2]}"
        with httpx.Client() as stranger:
            shown = stranger.get(empty.base, headers={"Host": host, "Origin": f"http://{host}"})
        assert shown.status_code == 200
        assert TOKEN not in shown.text
        policy = shown.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert shown.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "name",
    [
        "../server.py",
        "..%2fserver.py",
        "%2e%2e/server.py",
        "/etc/passwd",
        "",
        "page.py",
        "vendor/",
        ".",
    ],
)
def test_only_the_files_of_the_front_end_are_served(empty, name):
    assert empty.client.get(f"/static/{name}").status_code == 404
    for known in static_files():
        assert empty.client.get(f"/static/{known}").status_code == 200


# --- the stream ------------------------------------------------------------------------------------------------------


def test_the_first_line_is_everything_and_later_ones_are_what_changed(page):
    with page.stream() as lines:
        first = whole(lines)
        assert set(first) == {"list", "tidy", "check", "decide", "page", "marks", "words"}
        put(page, LIST)
        told = {}
        while told.get("list", {}).get("name") != "list.csv":
            line = next(lines)
            assert "marks" not in line
            told.update(line)


@pytest.mark.slow
def test_a_page_that_is_loaded_again_gets_everything_again(loaded):
    act(loaded, "verify")
    with loaded.stream() as lines:
        assert whole(lines)["decide"]["headline"] == "1"
    with loaded.stream() as lines, loaded.stream("another-tab") as others:
        assert whole(lines) == whole(others)


def test_a_line_comes_each_second(page, monkeypatch):
    monkeypatch.setattr(module, "BEAT", 0.01)
    with page.stream() as lines:
        whole(lines)
        assert [next(lines) for _ in range(3)] == [{}, {}, {}]


def test_lines_come_also_while_the_audit_is_busy(page, monkeypatch):
    monkeypatch.setattr(module, "BEAT", 0.01)
    with page.state.lock, page.stream() as lines:
        assert [next(lines) for _ in range(3)] == [{}, {}, {}]
    with page.stream() as lines:
        assert any("page" in next(lines) for _ in range(1_000))


def test_an_action_is_answered_after_the_sections_that_it_changed(loaded):
    with loaded.stream() as lines, loaded.stream("another-tab") as others:
        whole(lines), whole(others)
        loaded.act("set_refresh", is_on=True, answer="view 1")
        told = []
        while told[-1:] != [{"answered": "view 1"}]:
            told.append(next(lines))
        assert any(line.get("check", {}).get("is_refreshing") for line in told)
        loaded.act("search", text="ada", answer="view 2")
        loaded.act("set_depth", depth="regex", answer="view 3")
        seen = [whole(others)]
        loaded.state.work.wait(30)
        loaded.act("load_pasted", text="cy@example.org")
        while seen[-1].get("list", {}).get("name") != "pasted list":
            seen.append(next(others))
        assert not any("answered" in line for line in seen), "the other page did not ask"


@pytest.mark.parametrize("tab", ["", "short", "x" * 41, "../../../etc", "tab 00000001", None])
def test_a_tab_needs_an_id(empty, tab):
    params = {} if tab is None else {"tab": tab}
    assert empty.client.get("/events", params=params).status_code == 400


# --- actions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"3",
        b'"verify"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"act": 3}',
        b'{"act": ["verify"]}',
        b'{"act": null}',
        b'{"act": "__init__"}',
        b'{"act": "close"}',
        b'{"act": "folder"}',
    ],
)
def test_what_is_not_an_action_is_refused(empty, body):
    assert empty.client.post("/act", content=body).status_code == 400
    assert empty.state.source is None


@pytest.mark.parametrize(
    "arguments",
    first_ones(
        [
            {"act": "choose_column", "at": "0"},
            {"act": "choose_column", "at": True},
            {"act": "choose_column", "at": 1e400},
            {"act": "choose_column", "at": 10**400},
            {"act": "choose_column"},
            {"act": "set_repair", "name": "__class__", "is_on": True},
            {"act": "search", "text": None, "self": 1, "action": "x", "section": "list"},
            {"act": "download", "which": "../x", "kind": "csv"},
            {"act": "download", "which": "send", "kind": "../../x"},
            {"act": "load_path", "path": "/nowhere/\x00"},
        ],
        4,
    ),
)
def test_wrong_arguments_are_a_message_on_the_page(loaded, arguments):
    body = json.dumps({**arguments, "tab": TAB})
    assert loaded.client.post("/act", content=body).status_code == 204
    loaded.state.work.wait(30)
    section = PAGE_ACTIONS[arguments["act"]][0]
    assert loaded.state.work.messages[section][0] != ""


@pytest.mark.parametrize(
    ("head", "status"),
    [(b"GET / HTTP/1.1\r\nx: " + b"y" * 40_000, 431), (b"nonsense\r\n\r\n", 400)],
)
def test_a_connection_has_the_bounds_of_the_service(empty, head, status):
    with socket.create_connection(("127.0.0.1", empty.port), timeout=30) as connection:
        connection.sendall(head)
        assert connection.recv(100).startswith(b"HTTP/1.1 %d " % status)


def test_heads_and_readers_have_a_time_limit(empty):
    config = make_config(empty.page)
    config.load()

    async def make_reader():  # it belongs to a loop
        return config.http_protocol_class(config=config, server_state=ServerState(), app_state={})

    reader = asyncio.run(make_reader())
    assert isinstance(reader, SmallReads)
    assert reader.protocol.bounds.header_timeout == 10.0
    assert reader.protocol.bounds.send_timeout == 60.0


def test_an_action_that_is_too_large_is_refused(page, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_BODY", 1_000)
    reply = page.act("load_pasted", text="ada@example.org\n" * 100)
    assert (reply.status_code, page.state.source) == (413, None)
    assert LONGEST_BODY > 50_000_000


def test_a_list_is_pasted_and_verified(page):
    act(page, "load_pasted", text="ada@example.org\nnobody\n")
    act(page, "verify")
    assert page.state.result.listing.rows.to_frame()["email_verdict"].tolist() == [
        "valid",
        "invalid",
    ]


# --- files -----------------------------------------------------------------------------------------------------------


def test_a_file_is_kept_where_only_its_owner_can_read_it(page, tmp_path):
    assert put(page, LIST).status_code == 204
    found = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [stat.S_IMODE(path.stat().st_mode) for path in found] == [0o600]
    assert all(stat.S_IMODE(path.parent.stat().st_mode) == 0o700 for path in found)


@pytest.mark.parametrize(
    "name", ["../../escape.csv", "..\\..\\escape.csv", "/etc/escape.csv", "a/b\x00/escape.csv"]
)
def test_the_name_of_a_file_is_never_a_path(page, tmp_path, name):
    assert put(page, LIST, name).status_code == 204
    assert [path.name for path in tmp_path.rglob("*escape*")] == ["escape.csv"]
    assert page.state.source.name == "escape.csv"


@pytest.mark.parametrize("purpose", ["", "nonsense", "__class__"])
def test_a_file_without_a_known_purpose_does_not_replace_the_list(loaded, purpose):
    put(loaded, b"mail\ncy@example.org\n", "other.csv", purpose)
    assert "came without a known purpose" in loaded.state.work.messages["list"][0]
    assert loaded.state.source.name == "list.csv"


def test_a_file_that_does_not_fit_on_the_disk_is_refused(page):
    host, port = page.base.removeprefix("http://").split(":")
    head = f"PUT /file?name=a.csv&purpose=list HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
    with socket.create_connection((host, int(port)), 30) as connection:
        connection.sendall(f"{head}Content-Length: {2**60}\r\n\r\n".encode())
        answer = connection.recv(10_000).decode()
    assert answer.startswith("HTTP/1.1 413 ")


def test_an_upload_in_chunks_keeps_the_reserve_of_the_disk(page, tmp_path, monkeypatch):
    used = shutil.disk_usage(tmp_path)
    free = iter([SPARE + 10_000, SPARE + 5_000])

    def disk_usage(folder):
        return used._replace(free=next(free, SPARE - 1))

    monkeypatch.setattr(module.shutil, "disk_usage", disk_usage)
    pieces = iter([b"mail\n"] + [b"ada@example.org\n"] * 1000)
    reply = page.client.put("/file", params={"name": "a.csv", "purpose": "list"}, content=pieces)
    assert (reply.status_code, "No space left" in reply.text) == (400, True)
    assert page.state.source is None
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def has_file(folder: Path) -> bool:
    """Whether there is a file below a folder, in which others may create and remove folders."""
    return any(names for _, _, names in os.walk(folder))


def test_an_upload_that_stops_leaves_nothing(page, tmp_path):
    host, port = page.base.removeprefix("http://").split(":")
    head = f"PUT /file?name=a.csv&purpose=list HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
    with socket.create_connection((host, int(port)), 30) as connection:
        connection.sendall(f"{head}Content-Length: 1000\r\n\r\nmail\nada@exa".encode())
        wait_until(lambda: has_file(tmp_path))
    wait_until(lambda: not has_file(tmp_path))
    assert page.state.source is None


@pytest.mark.slow
def test_a_download_is_a_link_for_one_use(loaded):
    act(loaded, "verify")
    offer = loaded.save("send", "csv")
    assert offer["name"] == "list-send-list.csv"
    with httpx.Client(base_url=loaded.base) as browser:
        reply = browser.get(f"/file/{offer['ticket']}")
        assert reply.headers["content-disposition"] == 'attachment; filename="list-send-list.csv"'
        assert b"ada@example.org" in reply.content
        assert len(reply.content) == offer["size"]
        for ticket in (offer["ticket"], "wrong", "..%2fact", "x" * 10_000):
            assert browser.get(f"/file/{ticket}").status_code == 404
    assert loaded.page.offers == {}


@pytest.mark.slow
def test_a_name_in_other_letters_is_kept_in_a_download(page):
    put(page, LIST, "Adreßliste ☃.csv")
    act(page, "verify")
    offer = page.save("send", "csv")
    reply = page.client.get(f"/file/{offer['ticket']}")
    assert "filename*=utf-8''Adre%C3%9Fliste" in reply.headers["content-disposition"]


# --- a page that is closed -------------------------------------------------------------------------------------------


def test_a_run_is_paused_when_no_page_was_open_for_ten_minutes(tmp_path):
    now, paused = [0.0], []
    state = AuditState(SETTINGS, "regex", folder=tmp_path)
    state.check.pause_unseen = lambda: paused.append(now[0])
    page = PageServer(state, TOKEN, 1, clock=lambda: now[0])
    page.open_pages = 1
    for now[0] in (0.0, AWAY, 2 * AWAY):
        page.look()
    page.open_pages = 0
    for now[0] in (2 * AWAY + 1, 3 * AWAY - 1):
        page.look()
    assert paused == []
    now[0] = 3 * AWAY
    page.look()
    assert paused == [3 * AWAY]


# --- a page that was open before ---------------------------------------------------------------------------------

NONCE = "0123456789abcdef" * 2


def open_answers(page: Served, token: str, port: int, nonce: str = NONCE) -> list[str]:
    """What the owner of a token reads in the answers of a server: tokens, of those that are proved."""
    with httpx.Client(base_url=page.base) as stranger:
        reply = stranger.post("/proof", content=nonce)
    assert TOKEN not in reply.text
    tokens = []
    for answer in reply.json()["answers"]:
        about = f"{port} {nonce} {answer['salt']}"
        if sign(token, f"proof {about}").hex() != answer["proof"]:
            continue
        mask = sign(token, f"token {about}")
        masked = bytes.fromhex(answer["masked"])
        tokens.append(bytes(a ^ b for a, b in zip(masked, mask, strict=False)).decode("latin-1"))
    return tokens


def test_server_proves_that_it_knows_the_token_of_a_page_and_gives_the_present_one(tmp_path):
    with served(AuditState(SETTINGS, "regex", folder=tmp_path), former=("old" * 10,)) as page:
        assert open_answers(page, "old" * 10, page.port) == [TOKEN]
        assert open_answers(page, TOKEN, page.port) == [TOKEN]
        with httpx.Client(base_url=page.base) as stranger:
            headers = {"Authorization": f"Bearer {'old' * 10}"}
            reply = stranger.get("/events", params={"tab": TAB}, headers=headers)
        assert reply.status_code == 401, "the token of a start before opens nothing"


def test_nothing_is_proved_to_who_has_another_token_or_another_port(empty):
    assert open_answers(empty, "other", empty.port) == []
    assert open_answers(empty, TOKEN, empty.port + 1) == [], "an answer cannot be passed on"
    assert open_answers(empty, TOKEN, empty.port, "f" * 64) == [TOKEN]


@pytest.mark.parametrize("nonce", ["", "00", "0" * 65, "x" * 32, "0" * 1000])
def test_only_a_nonce_is_answered(empty, nonce):
    with httpx.Client(base_url=empty.base) as stranger:
        assert stranger.post("/proof", content=nonce).status_code == 400


@pytest.mark.parametrize("facet", ["verdict", "action", "reason", "domain", "repaired"])
def test_an_unknown_value_of_a_facet_is_a_message_and_the_stream_goes_on(loaded, facet):
    act(loaded, "verify")
    with loaded.stream() as lines:
        whole(lines)
        act(loaded, "set_facet", facet=facet, value="nonsense" * 50)
        shown = next(line for line in lines if "decide" in line)
        assert "choose a value that is shown" in shown["decide"]["message"]
        act(loaded, "search", text="ada")
        assert any("1 row found" in str(line.get("page")) for line in lines)


def test_a_section_that_cannot_be_shown_does_not_end_the_stream(page, monkeypatch):
    taken = module.take_snapshots

    def fail(state, names):
        if "list" in names and state.source is not None:
            raise KeyError("list")
        return taken(state, names)

    monkeypatch.setattr(module, "take_snapshots", fail)
    with page.stream() as lines:
        whole(lines)
        put(page, LIST)
        page.page.changed(["check"])
        assert next(line for line in lines if "check" in line)
