"""Work beside the kernel: one thread, what it does again, and how often it shows itself."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from mailverdict.runs.progress import Progress
from mailverdict.widgets.background import Background
from mailverdict.widgets.check import IDLE_AFTER, INTERVAL, NO_ANSWER, Check
from mailverdict.widgets.state import SECTIONS, AuditState
from tests.widgets.conftest import ready, result_of, shown

SETTINGS = {"backend": None, "journal": None, "screen": None, "limit": None}


class ScriptedRun:
    """A run whose progress moves on a hundred times while it is waited for, if it moves."""

    def __init__(self, *, moves: bool = True) -> None:
        self.moves, self.timeouts, self.progress = moves, [], Progress(total=1_000)

    def done(self) -> bool:
        return False

    def cancel(self) -> None:
        pass

    def wait(self, timeout: float) -> None:
        self.timeouts.append(timeout)
        for _ in range(100 * self.moves):
            self.progress = Progress(total=1_000, settled=self.progress.settled + 1)
        raise TimeoutError


class Followed:
    """A check that follows a run, and what it told the page."""

    def __init__(self, run: ScriptedRun) -> None:
        self.now = 0.0
        self.work = Background(SECTIONS, lambda: None)
        self.check = Check(SETTINGS, self.work, Path, clock=lambda: self.now)
        self.check.run, self.check.progress = run, run.progress
        self.told: list[tuple[str, ...]] = []
        self.work.on_change = self.told.append


def test_at_most_ten_updates_a_second_are_shown_however_many_there_are():
    followed = Followed(run := ScriptedRun())
    seen = []
    for _ in range(5):
        followed.check.follow()
        seen.append(followed.check.progress.settled)
    assert seen == [100, 200, 300, 400, 500]
    assert followed.told == [("check", "page")] * 5
    assert run.timeouts == [INTERVAL] * 5
    assert INTERVAL >= 0.1


def test_what_has_not_changed_is_not_shown_again_and_long_silence_is_reported_now_and_then():
    followed = Followed(ScriptedRun(moves=False))
    messages = []
    for followed.now in (0, 1, IDLE_AFTER - 1, IDLE_AFTER, IDLE_AFTER + 1, 2 * IDLE_AFTER):
        followed.check.follow()
        messages.append(followed.work.messages["check"][0].partition(".")[0])
    assert messages == [
        "",
        "",
        "",
        *["No progress for 10 seconds"] * 2,
        "No progress for 20 seconds",
    ]
    assert len(followed.told) == 2


def test_waiting_covers_what_was_started_meanwhile():
    state, done = AuditState(SETTINGS, "regex"), []
    state.work.add("list", lambda: state.work.add("list", lambda: done.append(1), ""), "")
    state.work.wait(10)
    assert done == [1]
    assert state.work.thread is None


def test_a_service_that_does_not_answer_is_named_within_three_seconds():
    followed = Followed(run := ScriptedRun(moves=False))
    backend = SimpleNamespace(_silent_since=lambda: silent)
    run._execution = SimpleNamespace(backend=backend)
    silent = 100.0
    for followed.now, said in ((100.5, ""), (103.0, NO_ANSWER), (190.0, NO_ANSWER)):
        followed.check.moved_at = 100.0
        followed.check.follow()
        assert followed.work.messages["check"][0] == said
    silent = None
    followed.check.moved_at = followed.now
    followed.check.follow()
    assert followed.work.messages["check"][0] == ""


def test_waiting_ends_when_it_was_told_to():
    state, gate = AuditState(SETTINGS, "regex"), threading.Event()
    state.work.add("list", gate.wait, "")
    with pytest.raises(TimeoutError):
        state.work.wait(0)
    gate.set()
    state.work.wait(10)


def test_a_choice_that_comes_while_the_list_is_prepared_wins():
    audit = ready(
        pd.DataFrame({"mail": ["ada@example.org", "ADA@example.org"]}), validation_type="regex"
    )
    gate = threading.Event()
    begun = threading.Event()
    step = audit.steps["tidy"]
    make = step.make

    def late(*inputs: object) -> object:
        begun.set()
        gate.wait()
        return make(*inputs)

    step.make = late
    audit.set_repair("merge", is_on=False)
    begun.wait()
    audit.set_repair("merge", is_on=True)
    gate.set()
    audit.work.wait(30)
    assert shown(audit, "tidy")["summary"] == "1 repeat"
    assert audit.plan is not None


def test_a_page_that_cannot_be_told_does_not_stop_the_work(caplog):
    audit = ready(pd.DataFrame({"mail": ["ada@example.org"]}), validation_type="regex")
    audit.work.on_change = lambda names: 1 / 0
    audit.verify()
    audit.work.wait(30)
    assert result_of(audit)["mail_verdict"].tolist() == ["valid"]
    assert "the page cannot be told" in caplog.text


def test_a_step_that_failed_is_not_tried_again_until_its_inputs_change():
    audit = ready(
        pd.DataFrame(
            [["a@example.org", "b@example.org", "c@example.org"]], columns=["mail", "mail", "other"]
        )
    )
    state, tried = audit, []
    assert "occurs 2 times" in shown(audit, "list")["message"]
    state.work.say_error = lambda section, exc: tried.append(section)
    state.work.wake()
    audit.work.wait(30)
    assert tried == []
    state.set_depth("regex")
    state.choose_column(2)
    audit.work.wait(30)
    assert audit.plan is not None
