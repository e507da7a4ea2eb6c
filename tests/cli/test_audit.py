"""The command `audit`: what it refuses before it starts, who may open its page, and what is left when it ends.

The page's server is imported where a test needs it: Voila takes seconds, in each process that collects the tests.
"""

from __future__ import annotations

import ast
import asyncio
import gc
import importlib.metadata
import os
import re
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from packaging.requirements import Requirement
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from mailverdict import widgets
from mailverdict.cli import main
from mailverdict.cli.audit import open_browser, show_page
from tests.doubles.waiting import wait_until
from tests.widgets.browser import CHROMIUM, audit_page, chromium
from tests.widgets.jupyter import own_places

LIMIT = 90.0  # seconds for one answer on a machine that is busy with other things
# jsonschema's check of URIs, which nothing here needs, takes two seconds to import.
PATIENT = "import sys; sys.modules['rfc3987_syntax'] = None; from mailverdict.cli import main; main()"
IMPATIENT = """
from mailverdict.cli import main
from mailverdict.widgets import page_server
page_server.LOOK_EVERY, page_server.ABANDONED_AFTER = 0.1, 1
main()
"""
WIDGETS = Path(widgets.__file__).parent
OWN_FRAME = re.compile(
    rf'^  File "{re.escape(str(WIDGETS.parent))}', re.MULTILINE
)  # of a traceback; Voila and Tornado log their own
OPTIONS: dict[str, Any] = {
    "column": None,
    "validation_type": "regex",
    "policy": "balanced",
    "backend": None,
    "is_sandbox": False,
    "resolver": None,
    "resolver_check": True,
}


@pytest.fixture
def contacts(tmp_path: Path) -> Path:
    path = tmp_path / "contacts.csv"
    path.write_text("name,E-Mail\nAda,ada@gmail.com\nBob,bob@gmial.com\n", encoding="utf-8")
    return path


@dataclass
class RunningAudit:
    """A process of the command."""

    process: subprocess.Popen[str]
    url: str
    places: Path  # its home, temporary files included

    @property
    def base(self) -> str:
        return self.url.partition("/?")[0]

    @property
    def token(self) -> str:
        return self.url.partition("?token=")[2]

    def kernels(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait()


@contextmanager
def running_audit(folder: Path, *arguments: object, code: str = PATIENT) -> Iterator[RunningAudit]:
    """Start the command in a process; its temporary files are in `folder`."""
    places = folder / "tmp"
    places.mkdir()
    with (folder / "stderr.txt").open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", code, "audit", *map(str, arguments), "--no-browser"],
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            env={**own_environment(), **own_places(folder), "TMPDIR": str(places)},
        )
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        assert url, (folder / "stderr.txt").read_text()
        yield RunningAudit(process, url, places)
    finally:
        process.stdout.close()
        if process.poll() is None:
            process.terminate()
            process.wait()


def own_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("MAILVERDICT_")}


def run(capsys, *arguments: object) -> tuple[int, str]:
    """The exit status and what was printed on standard error."""
    with pytest.raises(SystemExit) as left:
        main(["audit", *map(str, arguments)])
    return left.value.code or 0, capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file"),
        ("", "is empty"),
        ("a,b\n1,2\n", "o column looks like e-mail addresses"),
        ("\x89PNG\r\n\x1a\n\x00", "not a text table"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_as_verify_does(capsys, tmp_path, content, message):
    file = tmp_path / "list.csv"
    if content is not None:
        file.write_text(content, encoding="latin-1")
    status, said = run(capsys, file)
    assert status == 2
    with pytest.raises(SystemExit):
        main(["verify", str(file), "-t", "regex"])
    assert said == capsys.readouterr().err
    assert re.search(message, said)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-c", "phone", "FILE"], "no column 'phone'"),
        (["-c", "mail"], "--column needs a file"),
        (["-"], "give the path of a file on disk"),
        (["--sandbox", "--backend", "http://127.0.0.1:1"], "--sandbox has its own servers"),
        (["--backend", "nowhere"], "--backend='nowhere'"),
        (["--policy", "kind"], "kind"),
        (["--port", "70000"], "'--port'"),
        (["--type", "dns"], "'dns'"),
    ],
)
def test_wrong_options_are_refused(capsys, contacts, arguments, message):
    status, said = run(capsys, *(contacts if each == "FILE" else each for each in arguments))
    assert status == 2
    assert message in said


def test_a_port_in_use_is_named(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, said = run(capsys, "--port", port, "--no-browser")
    assert status == 2
    assert f"port {port} cannot be opened: Address already in use" in said


def test_without_voila_the_message_names_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "voila.app", None)
    monkeypatch.delitem(sys.modules, "mailverdict.widgets.page_server", raising=False)
    status, said = run(capsys)
    assert status == 2
    assert said.endswith(
        "mailverdict: mailverdict audit needs an optional dependency: pip install 'mailverdict[audit]'\n"
    )


def test_no_browser_for_terminals_is_started(monkeypatch, tmp_path):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert open_browser(tmp_path / "open.html") is False


def test_the_page_has_what_was_asked_for(contacts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", None)
    shown = show_page(file=str(contacts), **OPTIONS | {"column": "E-Mail"})
    shown.verify()
    shown.wait(LIMIT)
    assert shown.result["E-Mail_verdict"].tolist() == ["valid", "valid"]


def test_a_file_that_is_gone_when_the_page_opens_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", None)
    shown = show_page(file=str(tmp_path / "<b>.csv"), **OPTIONS)
    assert "&lt;b&gt;.csv" in shown.data


def test_only_who_has_the_token_can_use_the_page(contacts, tmp_path):
    with running_audit(tmp_path, contacts, "-t", "regex") as audit:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43}", audit.url)
        for address in ("/", "/?token=wrong", "/voila/api/contents", "/mailverdict.ipynb", "/api/kernels"):
            refused = get(audit.base + address)
            assert refused.status_code == 302
            assert refused.headers["location"].startswith("/login?")
        for address in ("/voila/files/mailverdict.ipynb", "/voila/files/open.html"):
            assert get(audit.url.replace("/?", f"{address}?")).status_code == 403
        assert audit.kernels() == [], "a stranger starts no kernel"

        shown = get(audit.url)
        assert "<title>contacts.csv - mailverdict</title>" in shown.text
        assert "default-src 'self'" in shown.headers["content-security-policy"]
        kernel = re.search(r'"kernelId": "([^"]+)"', shown.text)[1]
        for address in (f"/api/kernels/{kernel}", f"/api/kernels/{kernel}/channels"):
            assert get(audit.base + address).status_code == 403
        for method, address in (("DELETE", f"/api/kernels/{kernel}"), ("POST", f"/voila/api/shutdown/{kernel}")):
            assert httpx.request(method, audit.base + address, timeout=LIMIT).status_code == 403
        channels = f"ws{audit.base[4:]}/api/kernels/{kernel}/channels"
        assert can_connect(channels, Authorization=f"token {audit.token}")
        assert not can_connect(channels)
        assert not can_connect(channels, Authorization="token wrong")
        cookie = "; ".join(f"{name}={value}" for name, value in shown.cookies.items())
        assert can_connect(channels, Cookie=cookie, Origin=audit.base)
        assert not can_connect(channels, Cookie=cookie, Origin="http://elsewhere.test")

        (running,) = audit.kernels()
        assert audit.token not in " ".join([*running.cmdline(), *psutil.Process(audit.process.pid).cmdline()])
        (folder,) = audit.places.iterdir()
        assert folder.stat().st_mode & 0o077 == 0
        kept = [each for each in folder.rglob("*") if not each.is_dir()]
        assert {each.name for each in kept} > {"mailverdict.ipynb", "open.html"}
        assert {each.stat().st_mode & 0o077 for each in kept} == {0}
        assert audit.end() == 0
        wait_until(lambda: not running.is_running())
        assert list(audit.places.iterdir()) == []


def get(url: str) -> httpx.Response:
    return httpx.get(url, timeout=LIMIT)


def can_connect(url: str, **headers: str) -> bool:
    try:
        with connect(url, additional_headers=headers, proxy=None, open_timeout=LIMIT):
            return True
    except InvalidStatus as exc:
        return exc.response.status_code != 403


def test_the_extra_brings_all_that_the_page_imports():
    packages = importlib.metadata.packages_distributions()
    imported = {name.partition(".")[0] for file in WIDGETS.glob("*.py") for name in find_imports(file)}
    needed = {packages[name][0].lower() for name in imported - sys.stdlib_module_names - {"mailverdict"}}
    assert {"voila", "ipykernel", "anywidget", "pandas"} <= needed
    assert needed <= installed_by("audit")


def find_imports(file: Path) -> Iterator[str]:
    """The modules of other packages that a file imports."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module or ""


def installed_by(extra: str) -> set[str]:
    """The distributions that pip installs for an extra, with all that they require."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    waiting, found = [*project["dependencies"], *extras[extra]], set()
    while waiting:
        wanted = Requirement(waiting.pop())
        if wanted.name == "mailverdict":
            waiting += [each for name in wanted.extras for each in extras[name]]
        elif wanted.name.lower() not in found:
            found.add(wanted.name.lower())
            required = map(Requirement, importlib.metadata.requires(wanted.name) or [])
            waiting += [str(each) for each in required if each.marker is None or each.marker.evaluate({"extra": ""})]
    return {name.replace("-", "_") for name in found} | found


def test_kernels_whose_page_was_closed_are_found():
    from mailverdict.widgets.page_server import ABANDONED_AFTER, LOADING_AT_MOST, find_abandoned

    seen: dict[str, tuple[float, float]] = {}

    def look(now: float, **connections: int) -> list[str]:
        return find_abandoned([{"id": name, "connections": count} for name, count in connections.items()], seen, now)

    assert look(0, open=1, closed=1, loading=0) == []
    assert look(ABANDONED_AFTER, open=1, closed=0, loading=0) == []
    assert look(ABANDONED_AFTER + 1, open=1, closed=0, loading=0) == ["closed"]
    assert look(ABANDONED_AFTER + 2, open=0, loading=0) == []
    assert look(LOADING_AT_MOST, open=1, loading=0) == []
    assert look(LOADING_AT_MOST + 1, open=1, loading=0) == ["loading"]
    assert set(seen) == {"open", "loading"}


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_page_that_is_closed_while_it_is_written_to_is_not_reported(caplog, is_closed):
    from tornado.websocket import WebSocketClosedError

    from mailverdict.widgets.page_server import report_error

    async def write() -> None:
        raise WebSocketClosedError if is_closed else ValueError

    async def serve() -> None:
        asyncio.get_running_loop().set_exception_handler(report_error)
        writing = asyncio.ensure_future(write())
        await asyncio.sleep(0)
        assert writing.done()
        del writing
        gc.collect()

    asyncio.run(serve())
    assert ("never retrieved" in caplog.text) is not is_closed


@pytest.mark.slow
@pytest.mark.parametrize("has_process", [False, True])
def test_a_kernel_that_is_being_started_ends_too(contacts, tmp_path, has_process):
    with running_audit(tmp_path, contacts, "-t", "regex") as audit, ThreadPoolExecutor(1) as visitor:
        visit = visitor.submit(get, audit.url)
        assert not has_process or wait_until(audit.kernels)
        assert audit.end() == 0
        assert isinstance(visit.exception(), httpx.HTTPError)
        assert list(audit.places.iterdir()) == []
        started = [
            each for each in psutil.process_iter(["cmdline"]) if str(tmp_path) in " ".join(each.info["cmdline"] or [])
        ]
        wait_until(lambda: not any(each.is_running() for each in started))


@pytest.mark.browser
@pytest.mark.timeout(120)
@pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_person_opens_the_page_and_ends_the_command(contacts, tmp_path, number):
    with running_audit(tmp_path, contacts, "--sandbox", code=IMPATIENT) as audit, chromium() as browser:
        (redirect,) = audit.places.glob("*/open.html")
        with audit_page(browser) as opened:
            opened.page.goto(redirect.as_uri())
            opened.shown("contacts.csv")
            assert opened.strangers == []
            assert opened.errors == []
            assert len(audit.kernels()) == 1
            opened.page.goto("about:blank")
            wait_until(lambda: audit.kernels() == [])
            opened.page.goto(audit.base)
            opened.audit.wait_for()
            kernels = audit.kernels()
            assert kernels
        assert audit.end(number) == 0
        assert not any(each.is_running() for each in kernels)
        assert list(audit.places.iterdir()) == []
        told = (tmp_path / "stderr.txt").read_text()
        assert OWN_FRAME.search(told) is None, told
