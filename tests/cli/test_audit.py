"""The command `audit`: what it refuses before it starts, who may open its page, and what is left when it ends."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from packaging.requirements import Requirement

from mailverdict import widgets
from mailverdict.cli import main
from mailverdict.cli.audit import open_browser
from tests.doubles.waiting import wait_until
from tests.widgets.browser import CHROMIUM, audit_page, chromium
from tests.widgets.jupyter import own_places

LIMIT = 90.0  # seconds for one answer on a machine that is busy with other things
PROGRAM = "from mailverdict.cli import main; main()"
WIDGETS = Path(widgets.__file__).parent


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
        return self.url.partition("/#")[0]

    @property
    def token(self) -> str:
        return self.url.partition("#")[2]

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait()


@contextmanager
def running_audit(folder: Path, *arguments: object, code: str = PROGRAM) -> Iterator[RunningAudit]:
    """Start the command in a process; its temporary files are in `folder`."""
    places = folder / "tmp"
    places.mkdir(exist_ok=True)
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
    return {
        name: value for name, value in os.environ.items() if not name.startswith("MAILVERDICT_")
    }


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


def test_without_the_extra_the_message_names_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    monkeypatch.delitem(sys.modules, "mailverdict.widgets.server", raising=False)
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


@pytest.mark.slow
def test_only_who_has_the_token_can_use_the_page(contacts, tmp_path):
    with running_audit(tmp_path, contacts, "-t", "regex") as audit:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#[\w-]{43}", audit.url)
        assert httpx.get(audit.base, timeout=LIMIT).status_code == 200
        events = f"{audit.base}/events?tab=tab-00000001"
        assert httpx.get(events, timeout=LIMIT).status_code == 401
        with httpx.stream(
            "GET", events, headers={"Authorization": f"Bearer {audit.token}"}, timeout=LIMIT
        ) as reply:
            first = next(line for line in map(json.loads, reply.iter_lines()) if line)
            assert first["page"]["can"]["decide"] is False
            assert audit.token not in " ".join(psutil.Process(audit.process.pid).cmdline())
            kept = list(audit.places.rglob("*"))
            assert {each.stat().st_mode & 0o077 for each in kept} <= {0}
            assert audit.end() == 0
        assert list(audit.places.iterdir()) == []


@pytest.mark.slow
def test_the_extra_brings_all_that_the_page_imports():
    packages = importlib.metadata.packages_distributions()
    imported = {
        name.partition(".")[0] for file in WIDGETS.glob("*.py") for name in find_imports(file)
    }
    needed = {
        packages[name][0].lower() for name in imported - sys.stdlib_module_names - {"mailverdict"}
    }
    assert {"starlette", "uvicorn", "anywidget", "pandas"} <= needed
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
    project = tomllib.loads(
        (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    )["project"]
    extras = project["optional-dependencies"]
    waiting, found = [*project["dependencies"], *extras[extra]], set()
    while waiting:
        wanted = Requirement(waiting.pop())
        if wanted.name == "mailverdict":
            waiting += [each for name in wanted.extras for each in extras[name]]
        elif wanted.name.lower() not in found:
            found.add(wanted.name.lower())
            required = map(Requirement, importlib.metadata.requires(wanted.name) or [])
            waiting += [
                str(each)
                for each in required
                if each.marker is None or each.marker.evaluate({"extra": ""})
            ]
    return {name.replace("-", "_") for name in found} | found


def until(audit: RunningAudit, is_there: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The sections of the page once they are as expected."""
    shown: dict[str, Any] = {}
    headers = {"Authorization": f"Bearer {audit.token}"}
    with httpx.stream(
        "GET", f"{audit.base}/events?tab=tab-00000001", headers=headers, timeout=LIMIT
    ) as reply:
        for line in reply.iter_lines():
            shown |= json.loads(line)
            if shown and is_there(shown):
                return shown
    raise AssertionError("the stream has ended")


def act(audit: RunningAudit, name: str, /, **arguments: Any) -> None:
    headers = {"Authorization": f"Bearer {audit.token}"}
    reply = httpx.post(
        f"{audit.base}/act", json={"act": name, **arguments}, headers=headers, timeout=LIMIT
    )
    assert reply.status_code == 204


@pytest.mark.slow  # five processes; tests/widgets/test_session.py opens kept audits in this one
def test_a_command_that_is_killed_opens_the_audit_as_it_was(
    contacts, tmp_path, capsys, monkeypatch
):
    with running_audit(tmp_path, contacts, "-t", "regex") as audit:
        until(audit, lambda shown: shown["check"]["button"]["enabled"])
        act(audit, "verify")
        until(audit, lambda shown: shown["decide"]["is_ready"] and not shown["page"]["running"])
        act(audit, "decide", rows=[0], what="remove")
        until(audit, lambda shown: shown["decide"]["decided"]["remove"] == 1)
        wait_until(
            lambda: any(b"remove" in path.read_bytes() for path in tmp_path.rglob("decided.arrow"))
        )
        audit.end(signal.SIGKILL)
        url = audit.url
    with running_audit(tmp_path, contacts) as audit:
        assert audit.base == url.partition("/#")[0], "a page that is open goes on"
        assert audit.url != url, "each start has its own key"
        shown = until(audit, lambda shown: shown["list"].get("name") == "contacts.csv")
        assert (shown["decide"]["decided"]["remove"], shown["check"]["depth"]) == (1, "regex")
    with running_audit(tmp_path, contacts, "-t", "mx", "--policy", "strict", "--sandbox") as audit:
        shown = until(audit, lambda shown: shown["list"].get("name") == "contacts.csv")
        assert (shown["check"]["depth"], shown["decide"]["policy"]) == ("mx", "strict"), (
            "what the command names holds"
        )
    with running_audit(tmp_path) as audit:
        (kept,) = until(audit, lambda shown: True)["page"]["kept"]
        assert kept["name"] == "contacts.csv"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    status, said = run(capsys, "--forget")
    assert (status, said.startswith("1 audit deleted from ")) == (0, True)
    assert not list(tmp_path.rglob("audit.json"))


@pytest.mark.browser
@pytest.mark.timeout(120)
@pytest.mark.skipif(
    not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium"
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_person_opens_the_page_and_ends_the_command(contacts, tmp_path, number):
    with running_audit(tmp_path, contacts, "--sandbox") as audit, chromium() as browser:
        with audit_page(browser) as opened:
            opened.page.goto(audit.url)
            opened.shown("contacts.csv")
            opened.page.reload()
            opened.shown("contacts.csv")
            assert opened.strangers == []
            assert opened.errors == []
            assert audit.end(number) == 0
        assert list(audit.places.iterdir()) == []
        assert "Traceback" not in (tmp_path / "stderr.txt").read_text()
