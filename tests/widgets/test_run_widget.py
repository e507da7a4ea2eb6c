"""The live widget of a run without a browser: what it sends, and what its buttons do."""

from __future__ import annotations

import asyncio
import sys
import threading
from types import SimpleNamespace

import pandas as pd
import pytest

import mailverdict as mv
from mailverdict.backend import Quota
from mailverdict.frames.verify import prepare
from mailverdict.runs.progress import Progress
from mailverdict.table.options import check_options
from mailverdict.widgets import RunWidget
from tests.doubles.waiting import wait_until
from tests.widgets.paced import PacedBackend, paced_service, paid

MAILS = pd.DataFrame(
    {"email": [f"{kind}{at}@example.org" for at in range(6) for kind in ("ada", "gone", "info")]}
)


class Gated(PacedBackend):
    """Answers half of the addresses, and the others when the gate is open."""

    def __init__(self) -> None:
        super().__init__(0)
        self.gate = threading.Event()
        self.asked = 0

    async def verify(self, batch, in_flight=()):
        self.asked += 1
        at = 0
        async for event in super().verify(batch, in_flight):
            at += 1
            while at > 9 and not self.gate.is_set():
                await asyncio.sleep(0.001)
            yield event


@pytest.fixture
def backend():
    made = Gated()
    yield made
    made.gate.set()


@pytest.fixture
def run(backend):
    """A run of which half is settled."""
    started = mv.start(MAILS, "email", backend=backend, validation_type="smtp", journal=None)
    wait_until(lambda: started.progress.settled == 9)
    yield started
    started.cancel()


@pytest.fixture
def notebook(monkeypatch):
    """As in a kernel."""
    monkeypatch.setitem(
        sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1))
    )


def press(widget: RunWidget, act: object) -> None:
    widget.receive(widget, {"act": act}, [])


def labels(widget: RunWidget) -> list[str]:
    return [each["label"] for each in widget.shown["buttons"]]


def test_it_says_how_far_the_run_is(run):
    shown = RunWidget(run).shown
    assert (shown["title"], shown["checked"], shown["share"]) == (
        "Checking",
        "9 of 18 addresses checked (50.0%)",
        0.5,
    )
    assert [(each["label"], each["count"]) for each in shown["counts"]] == [
        ("Valid", "3"),
        ("Risky", "3"),
        ("Invalid", "3"),
        ("Not checked yet", "9"),
    ]
    assert [each["label"] for each in shown["buttons"]] == ["Pause", "Cancel"]
    assert shown["said"] == "40% checked."


def test_pause_resume_and_the_end(run, backend):
    widget = RunWidget(run)
    press(widget, "pause")
    wait_until(lambda: widget.shown["state"] == "paused")
    assert labels(widget) == ["Resume", "Cancel"]
    assert "What is checked is kept; resume goes on with the rest." in widget.shown["notes"]
    backend.gate.set()
    press(widget, "resume")
    wait_until(lambda: widget.shown["state"] == "done")
    assert labels(widget) == []
    assert widget.shown["said"] == "Done. 18 of 18 addresses checked."
    assert run.result()["email_verdict"].value_counts()["valid"] == 6


@pytest.mark.slow
def test_a_paused_run_of_a_service_pays_nothing_twice(tmp_path):
    with paced_service(0.005) as service:
        run = mv.start(
            MAILS, "email", backend=service.url, validation_type="smtp", journal=tmp_path / "j.db"
        )
        widget = RunWidget(run)
        wait_until(lambda: run.progress.submitted)
        press(widget, "pause")
        wait_until(lambda: widget.shown["state"] in ("paused", "done"))
        press(widget, "resume")
        assert run.result()["email_status"].eq("done").all()
        assert paid(service) == len(MAILS)


def test_cancelling_is_the_end_also_of_a_paused_run(run):
    widget = RunWidget(run)
    press(widget, "pause")
    wait_until(lambda: widget.shown["state"] == "paused")
    press(widget, "cancel")
    assert (widget.shown["title"], labels(widget)) == ("Cancelled", [])
    press(widget, "resume")
    assert run.progress.settled == 9


@pytest.mark.parametrize(
    "content", [None, [], {}, {"act": "resume"}, {"act": "_interrupt"}, {"act": ["pause"]}]
)
def test_a_message_that_no_button_sends_is_ignored(run, content):
    widget = RunWidget(run)
    widget.receive(widget, content, [])
    assert (run.progress.state, widget.shown["state"]) == ("running", "running")


def test_while_nothing_comes_it_still_shows_that_the_kernel_lives(run):
    widget = RunWidget(run)
    before = widget.shown["beat"]
    wait_until(lambda: widget.shown["beat"] > before + 1)
    assert widget.shown["share"] == 0.5


def test_a_run_that_is_not_started_is_not_started_by_its_widget(backend):
    options = {"backend": backend, "journal": None, "validation_type": "smtp", "progress": False}
    run = prepare(MAILS, "email", check_options("start", options))
    widget = RunWidget(run, has_buttons=False)
    wait_until(lambda: widget.shown["beat"] > 2)
    assert (backend.asked, labels(widget)) == (0, [])
    backend.gate.set()
    assert run._start().result()["email_verdict"].notna().all()
    assert backend.asked == 1


def test_an_error_of_resume_is_shown_and_the_button_stays(run):
    def fails() -> None:
        raise mv.JournalError("/tmp/j.db cannot be written: no space left")

    widget = RunWidget(run)
    press(widget, "pause")
    run.wait()
    wait_until(lambda: widget.shown["state"] == "paused")
    run._reopen = fails
    press(widget, "resume")
    assert widget.shown["notes"] == ["/tmp/j.db cannot be written: no space left."]
    assert labels(widget) == ["Resume", "Cancel"]


def test_without_a_journal_a_service_is_not_paused(run, backend):
    backend.source = "remote"
    widget = RunWidget(run)
    assert labels(widget) == ["Cancel"]
    said = "Without a journal there is no pause: what the service was asked would be paid again."
    assert said in widget.shown["notes"]


@pytest.mark.parametrize(
    ("progress", "said"),
    [
        (
            Progress(total=90, settled=5, quota=Quota(100, 10, 90)),
            "90 of 100 addresses left today.",
        ),
        (
            Progress(total=900, settled=5, submitted=10, quota=Quota(100, 10, 0)),
            "0 of 100 addresses left today; rows come in their order, and at this quota all are done on 20",
        ),
        (
            Progress(total=900, settled=5, quota=Quota(0, 0, 0)),
            "0 of 0 addresses left today; rows come in their order.",
        ),
        (
            Progress(state="stopped", total=900, quota=Quota(100, 100, 0)),
            "0 of 100 addresses left today.",
        ),
    ],
)
def test_the_quota_says_which_rows_come_first_and_the_day_of_the_end(run, progress, said):
    notes = RunWidget(run).describe(progress)["notes"]
    assert any(note.startswith(said) for note in notes), notes


def test_a_notebook_gets_the_widget_and_the_table(run, notebook):
    data, _ = run._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == run._live.model_id
    assert data["text/plain"] == repr(run)
    assert "9 of 18 addresses checked" in data["text/html"]
    assert run._live_widget() is run._live
    assert run._display_() is run._live  # marimo


def test_elsewhere_and_without_anywidget_it_is_the_table(run, monkeypatch, notebook):
    for name in [each for each in sys.modules if each.startswith("mailverdict.widgets")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(mv, "widgets")
    monkeypatch.setitem(sys.modules, "anywidget", None)
    shown = run._repr_mimebundle_()
    assert set(shown) == {"text/plain", "text/html"}
    assert run._display_()._repr_html_().startswith("<style>")
    monkeypatch.undo()
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert set(run._repr_mimebundle_()) == {"text/plain", "text/html"}


def test_at_the_end_it_counts_rows_as_the_summary_does(notebook):
    cells = ["full@plain.example", "full@plain.example", "a@plain.example; b@plain.example", None]
    with mv.sandbox.World() as world:
        run = mv.start(
            pd.DataFrame({"email": cells}), "email", validation_type="smtp", backend=world.backend
        )
        out = run.wait().partial()
        widget = RunWidget(run)
        wait_until(lambda: widget.shown["state"] == "done")
    shown = {entry["name"]: entry["count"] for entry in widget.shown["counts"]}
    assert shown == {"unknown": "2"}
    assert mv.summary(out).loc["unknown", "rows"] == 2
    assert "of 4 rows" in widget.shown["checked"]
