"""Audits that are kept, and come back as they were left."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest

import mailverdict as mv
from mailverdict.errors import SettingsError
from mailverdict.widgets.server import open_port
from mailverdict.widgets.session import (
    ABOUT,
    DOOR,
    FORMER_TOKENS,
    KEPT_FOR,
    LIST,
    LOCK,
    OPEN_ELSEWHERE,
    OWNER,
    RESULT,
    STATE,
    TEMPORARY,
    AuditSession,
    Sessions,
    id_of,
    process_mark,
    temporary_folder,
)
from mailverdict.widgets.state import AuditState
from mailverdict.widgets.view import take_snapshots
from tests.doubles.answering_backend import AnsweringBackend
from tests.doubles.tables import crossed
from tests.doubles.waiting import wait_until
from tests.widgets.conftest import QUICK
from tests.widgets.paced import paced_service, paid

SETTINGS = {"backend": None, "journal": "auto", "screen": None, "limit": None}
LIST_CSV = "name,mail\nAda,ada@gmail.com\nBob,bob@gmial.com\nCy,Cy <cy@example.org>\nDi,nobody\nAda,ADA@gmail.com\n"
Open = Callable[..., AuditState]


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    return Sessions(tmp_path / "audits")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "list.csv"
    path.write_text(LIST_CSV)
    return path


@pytest.fixture
def opened(sessions: Sessions, tmp_path: Path) -> Iterator[Open]:
    """Opens an audit as the command does, in what counts as a new process each time."""

    def open_(file: Path | None = None, **settings: Any) -> AuditState:
        state = AuditState({**SETTINGS, **settings}, "regex", folder=tmp_path, sessions=sessions)
        if file is not None:
            state.load_file(file)
        state.work.wait(30)
        states.append(state)
        return state

    states: list[AuditState] = []
    yield open_
    for state in states:
        state.release_session()


def do(state: AuditState, action: str, /, **arguments: Any) -> AuditState:
    state.act(action, **arguments)
    state.work.wait(30)
    return state


def as_shown(state: AuditState) -> dict[str, Any]:
    """What a page shows, without what was said last and what can be undone."""
    found = take_snapshots(state)
    del found["page"]["said"], found["page"]["undo"], found["page"]["kept"]
    for each in found.values():
        each.pop("message", None), each.pop("kind", None)
    found["check"].pop("progress"), found["check"].pop("summary")
    return found


def test_an_audit_comes_back_as_it_was_left(opened, file):
    state = opened(file)
    do(state, "suppress_pasted", text="cy@example.org\n")
    do(state, "set_repair", name="merge", is_on=True)
    do(state, "verify")
    do(state, "set_policy", name="strict")
    do(state, "decide", rows=[3], what="remove")
    do(state, "set_facet", facet="verdict", value="valid")
    do(state, "search", text="a")
    do(state, "sort", key="verdict")
    do(state, "sort", key="verdict")
    do(state, "save_as", service="hubspot", format="xlsx")
    before, result = as_shown(state), state.result.listing.rows.to_frame()
    assert before["decide"]["decided"]["total"] == 1
    assert before["decide"]["save_as"] == {"service": "hubspot", "format": "xlsx"}
    again = opened(file)  # the process was killed: nothing closed the first one
    assert as_shown(again) == before
    pd.testing.assert_frame_equal(again.result.listing.rows.to_frame(), result)
    assert again.work.messages["list"][0].startswith("list.csv is as you left it on ")
    assert again.suppression.name == "pasted suppression list"
    do(again, "verify")
    assert again.result.listing.counts.actions == state.result.listing.counts.actions


def test_an_audit_of_a_release_that_did_not_keep_the_format_of_files_comes_back(opened, file):
    state = do(opened(file), "verify")
    do(state, "search", text="a")
    path = state.session.folder / STATE
    kept = json.loads(path.read_text())
    del kept["view"]["service"], kept["view"]["format"]
    path.write_text(json.dumps(kept))
    again = opened(file)
    assert as_shown(again)["decide"]["save_as"] == {"service": "", "format": "csv"}
    assert again.result.listing.words == "a"


def test_an_audit_that_was_kept_with_undivided_cells_keeps_them(opened, tmp_path):
    file = tmp_path / "several.csv"
    file.write_text("name,mail\nAda,ada@example.org\nBob and Cy,bob@example.org; cy@example.org\n")
    state = opened(file)
    assert state.plan.rows == 3
    do(state, "set_repair", name="split", is_on=False)
    do(state, "verify")
    assert json.loads((state.session.folder / STATE).read_text())["choices"]["split"] is False
    again = opened(file)
    assert (again.choices.split, again.plan.rows) == (False, 2)
    assert again.result.listing.rows.to_frame()["mail_why"].tolist()[1] == "several_addresses"


@pytest.mark.slow
def test_who_was_mailed_in_a_wave_comes_back(opened, tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("mail\n" + "".join(f"user{n}@firm{n % 9}.example\n" for n in range(3_000)))
    backend = AnsweringBackend()
    state = opened(file, backend=backend, journal=None)
    do(state, "set_depth", depth="smtp")
    do(state, "verify")
    do(state, "make_wave", kind="csv")
    assert set(state.choices.waved.to_dict().values()) == {1}
    again = opened(file, backend=backend, journal=None)
    assert again.choices.waved == state.choices.waved
    assert set(again.choices.waved.times) == {1}
    assert take_snapshots(again)["decide"]["wave"]["next"] == 2


@pytest.mark.slow
def test_the_same_list_under_another_name_is_the_same_audit_and_another_list_is_not(
    opened, file, tmp_path, sessions
):
    do(opened(file), "decide", rows=[], what="send")
    do(opened(file), "verify")
    copy = tmp_path / "copy.csv"
    copy.write_text(LIST_CSV)
    assert opened(copy).result is not None
    other = tmp_path / "other.csv"
    other.write_text(LIST_CSV + "Eve,eve@example.org\n")
    assert opened(other).result is None
    assert {each.name for each in sessions.all()} == {"list.csv", "other.csv"}


@pytest.mark.slow
def test_kept_audits_are_offered_opened_and_deleted(opened, file, sessions):
    do(opened(file), "verify")
    state = opened()
    (kept,) = take_snapshots(state)["page"]["kept"]
    assert (kept["name"], kept["rows"]) == ("list.csv", "5 rows")
    assert "UTC" in kept["when"]
    do(state, "open_kept", id=kept["id"])
    assert take_snapshots(state)["decide"]["headline"] == "2"
    assert take_snapshots(state)["page"]["kept"] == [], "it is open"
    do(state, "delete_kept", id=kept["id"])
    assert (state.source, state.result, sessions.all()) == (None, None, [])
    assert take_snapshots(state)["page"]["primary"] == "choose"
    do(state, "open_kept", id=kept["id"])
    assert "cannot be opened any more" in state.work.messages["list"][0]


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"form": 0, "name": "x", "rows": 1}'])
def test_what_cannot_be_listed_is_opened_with_its_list(opened, file, sessions, content):
    state = do(opened(file), "verify")
    (state.session.folder / ABOUT).write_text(content)
    assert sessions.all() == []
    assert opened(file).result is not None
    assert len(sessions.all()) == 1


@pytest.mark.parametrize("identity", ["", "..", "../../etc", "a/b", ".", "x\x00"])
def test_an_id_is_never_a_path(opened, file, tmp_path, identity):
    state = opened(file)
    for action in ("open_kept", "delete_kept"):
        do(state, action, id=identity)
        assert state.work.messages["list"][1] == "failed"
    assert file.exists()
    assert state.source is not None


def test_files_are_for_their_user_alone(opened, file, sessions, tmp_path):
    state = do(opened(file), "verify")
    do(state, "suppress_pasted", text="cy@example.org")
    sessions.open_door(0, open_port)[0].close()
    found = [path for path in sessions.folder.rglob("*") if path.is_file()]
    assert {path.name for path in found} > {ABOUT, STATE, LIST, RESULT, "page.json"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in found} == {0o600}
    folders = {path.parent for path in found}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}


def test_what_a_person_uploads_can_be_read_again_after_a_restart(opened, sessions, tmp_path):
    state = opened()
    upload = Path(state.folder, "x", "list.csv")
    upload.parent.mkdir()
    upload.write_text("ada@example.org;Ada\nbob@example.org;Bob\n")
    state.use_file(upload, "list.csv", "list")
    state.work.wait(30)
    state.close()
    again = opened()
    do(again, "open_kept", id=sessions.all()[0].id)
    do(again, "read_again", encoding="", has_header="yes", sheet="")
    assert len(again.source.frame) == 1
    third = opened()
    do(third, "open_kept", id=sessions.all()[0].id)
    assert (len(third.source.frame), third.given.has_header) == (1, "yes")


def test_a_pasted_list_is_kept(opened, sessions):
    do(opened(), "load_pasted", text="ada@example.org\nnobody\n")
    state = opened()
    do(state, "open_kept", id=sessions.all()[0].id)
    assert state.source.frame["email"].tolist() == ["ada@example.org", "nobody"]


def test_all_kinds_of_cells_come_back(opened, tmp_path):
    frame = pd.DataFrame(
        {
            "mail": ["ada@example.org", "bob@example.org", None],
            "number": pd.array([1, None, 3], "Int64"),
            "share": [0.5, float("nan"), 2.0],
            "is_on": pd.array([True, None, False], "boolean"),
            "day": pd.to_datetime(["2026-01-01", None, "2026-03-01"]),
            "tags": [["a", "b"], None, []],
        }
    )
    file = tmp_path / "list.parquet"
    frame.to_parquet(file)
    before = opened(file).source
    after = opened(file).source
    pd.testing.assert_frame_equal(after.frame, before.frame)
    assert (after.name, after.remarks, after.sheets) == (before.name, before.remarks, before.sheets)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "content"), crossed([STATE, LIST, RESULT], [b"", b"{}", b"nonsense" * 100])
)
def test_an_audit_that_cannot_be_read_starts_anew(opened, file, sessions, broken, content):
    state = do(opened(file), "verify")
    (state.session.folder / broken).write_bytes(content)
    again = opened(file)
    assert len(again.source.frame) == 5
    assert again.result is None
    do(again, "verify")
    assert opened(file).result is not None


def test_an_audit_is_removed_after_thirty_days(opened, file, sessions):
    state = opened(file)
    sessions.remove_old()
    assert len(sessions.all()) == 1
    long_ago = time.time() - KEPT_FOR - 60
    os.utime(state.session.folder / STATE, (long_ago, long_ago))
    sessions.remove_old()
    assert not state.session.folder.exists()


def test_an_audit_that_another_process_has_open_is_not_opened(opened, file, sessions):
    state = opened(file)
    kept = json.loads((state.session.folder / ABOUT).read_text())
    kept["owner"] = [os.getppid(), psutil.Process(os.getppid()).create_time()]
    (state.session.folder / ABOUT).write_text(json.dumps(kept))
    other = opened(file)
    assert "open in another `mailverdict audit`" in other.work.messages["list"][0]
    assert other.source is None
    with pytest.raises(SettingsError, match="open in another"):
        sessions.remove(state.session.id)
    kept["owner"] = [os.getppid(), 1.0]  # the number was given to another program since
    (state.session.folder / ABOUT).write_text(json.dumps(kept))
    assert opened(file).source is not None


CLAIM = """
import sys
from pathlib import Path
from mailverdict.errors import SettingsError
from mailverdict.widgets.session import AuditSession
session = AuditSession(Path(sys.argv[1]))
try:
    session.claim()
except SettingsError as exc:
    print(exc, flush=True)
else:
    print("claimed", flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow  # three processes
def test_of_audits_of_one_list_that_are_started_together_one_gets_it(tmp_path):
    folder = tmp_path / "audits" / "a"
    command = [sys.executable, "-c", CLAIM, str(folder)]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = [process.stdout.readline().strip() for process in processes]
    assert sorted(said) == ["claimed", OPEN_ELSEWHERE, OPEN_ELSEWHERE]
    processes[said.index("claimed")].kill()
    for process in processes:
        process.communicate()
    session = AuditSession(folder)
    session.claim()
    session.release()
    assert stat.S_IMODE((folder / LOCK).stat().st_mode) == 0o600


def test_files_of_a_process_that_was_killed_are_removed_at_the_next_start(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, running, other = (tmp_path / f"{TEMPORARY}{name}" for name in ("a", "b", "c"))
    for folder in (left, running, other):
        folder.mkdir()
        (folder / "upload.csv").write_text("ada@example.org")
    (left / OWNER).write_text(json.dumps([os.getppid(), 1.0]))
    (running / OWNER).write_text(json.dumps(process_mark()))
    with temporary_folder() as mine:
        assert {path.name for path in tmp_path.iterdir()} == {running.name, other.name, mine.name}
        assert stat.S_IMODE(mine.stat().st_mode) == 0o700
    assert not mine.exists()


def test_a_run_that_was_interrupted_goes_on(opened, file, sessions, tmp_path):
    with paced_service(0.05) as service:
        backend = mv.RemoteBackend(service.url, poll=QUICK)
        state = opened(file, backend=backend, journal=tmp_path / "j.db")
        state.act("set_depth", depth="smtp")
        state.work.wait(30)
        state.act("verify")
        wait_until(lambda: "running" in (state.session.folder / STATE).read_text())
        state.check.run._interrupt()  # as if the process had been killed: what is kept says that it runs
        again = opened(file, backend=backend, journal=tmp_path / "j.db")
        check = take_snapshots(again)["check"]
        assert (
            check["message"]
            == "The check was interrupted. What was checked is kept. Press Resume to go on."
        )
        assert check["button"] == {"label": "Resume", "enabled": True, "why": ""}
        do(again, "verify")
        assert again.check.run.progress.state == "done"
        assert paid(service) == 3  # a mailbox is in two rows
        state.work.wait(30)


@pytest.mark.slow
def test_a_result_of_another_backend_is_an_earlier_one(opened, file):
    do(opened(file), "verify")
    backend = AnsweringBackend()
    backend.label = "another service"
    other = opened(file, backend=backend)
    assert take_snapshots(other)["decide"]["outdated"] != ""


def test_a_frame_of_a_notebook_is_not_kept(tmp_path):
    state = AuditState(SETTINGS, "regex", folder=tmp_path)
    state.load(pd.DataFrame({"mail": ["ada@example.org"]}))
    state.work.wait(30)
    assert (state.session, state.kept) == (None, [])


def test_the_port_stays_the_same_while_it_is_free_and_each_start_has_its_own_token(sessions):
    first = sessions.open_door(0, open_port)
    with first.listener:
        port = first.listener.getsockname()[1]
        other = sessions.open_door(0, open_port)
        with other.listener:
            other_port = other.listener.getsockname()[1]
            assert other_port != port
    last = sessions.open_door(0, open_port)
    with last.listener:
        assert last.listener.getsockname()[1] == other_port
    assert last.former == (other.token, first.token)
    assert len({first.token, other.token, last.token}) == 3
    asked_for = sessions.open_door(port, open_port)
    with asked_for.listener:
        assert asked_for.listener.getsockname()[1] == port


def test_few_tokens_of_earlier_starts_are_kept_and_only_their_user_can_read_them(sessions):
    doors = [sessions.open_door(0, open_port) for _ in range(FORMER_TOKENS + 3)]
    for door in doors:
        door.listener.close()
    assert doors[-1].former == tuple(door.token for door in doors[-2 : -2 - FORMER_TOKENS : -1])
    assert stat.S_IMODE((sessions.folder / DOOR).stat().st_mode) == 0o600


def test_ids_are_by_content(file):
    assert id_of(file) == id_of(LIST_CSV.encode())
    assert id_of(file).isalnum()
