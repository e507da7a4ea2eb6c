"""The snapshot and the bar that shows it."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

from mailverdict.backend import Quota
from mailverdict.runs.progress import Progress, ProgressBar, is_notebook, wants_bar
from tests.doubles.tables import each_row


def test_a_snapshot_is_one_line():
    progress = Progress(
        total=2_000, settled=1_500, verdicts={"valid": 1_400, "invalid": 100}, message="polling"
    )
    assert (
        str(progress)
        == "running: 1,500 of 2,000 addresses checked; valid 1,400, invalid 100 (polling)"
    )
    assert (
        str(Progress())
        == "running: 0 of 0 addresses checked; valid 0, risky 0, invalid 0, unknown 0"
    )


@each_row(
    ("state", "is_over"),
    [("running", False), ("done", True), ("stopped", True), ("cancelled", True), ("failed", True)],
)
def test_every_state_but_running_is_an_end(state, is_over):
    assert Progress(state=state, quota=Quota(1, 1, 0)).is_over == is_over


@each_row("is_free", [True, False])
def test_a_bar_is_shown_as_requested(is_free):
    assert wants_bar(progress=True, is_free=is_free)
    assert not wants_bar(progress=False, is_free=is_free)


def test_by_itself_a_bar_is_shown_only_for_work_that_takes_a_while_and_is_watched():
    assert not wants_bar(progress="auto", is_free=True)
    assert wants_bar(progress="auto", is_free=False) == sys.stderr.isatty()


class Kernel:
    """A shell as that of Jupyter, or of Colab, whose class has another name."""

    kernel = object()


@pytest.mark.parametrize(
    ("name", "module", "expected"),
    [
        ("IPython", SimpleNamespace(get_ipython=Kernel), True),
        # A terminal.
        (
            "IPython",
            SimpleNamespace(get_ipython=lambda: SimpleNamespace(config={})),
            False,
        ),
        ("IPython", SimpleNamespace(get_ipython=lambda: None), False),  # it is only imported
        ("marimo", SimpleNamespace(running_in_notebook=lambda: True), True),
        ("marimo", SimpleNamespace(running_in_notebook=lambda: False), False),
    ],
)
def test_a_notebook_is_known_by_its_kernel(monkeypatch, name, module, expected):
    for each in ("IPython", "marimo"):
        monkeypatch.delitem(sys.modules, each, raising=False)
    assert not is_notebook()
    monkeypatch.setitem(sys.modules, name, module)
    assert is_notebook() is expected
    assert wants_bar(progress="auto", is_free=False) == (expected or sys.stderr.isatty())


def test_the_bar_follows_and_closes(capsys):
    bar = ProgressBar("verify email")
    bar(Progress(total=10))
    bar(
        Progress(
            total=10,
            settled=4,
            verdicts={"valid": 3, "invalid": 1},
            message="waiting for the quota",
        )
    )
    shown = str(bar.bar)
    assert "verify email:  40%" in shown
    assert "4/10" in shown
    assert "valid=3, invalid=1, waiting for the quota" in shown
    bar(Progress(total=10, settled=4, pace=2.0, seconds_left=3.0))
    assert "2 addresses a second, about 3 s left" in str(bar.bar)
    assert not bar.bar.disable
    bar(Progress(state="done", total=10, settled=10, verdicts={"valid": 10}))
    assert bar.bar.disable  # closed: a line of its own follows
    assert capsys.readouterr().err.endswith("\n")
    assert io.StringIO().write(capsys.readouterr().out) == 0
