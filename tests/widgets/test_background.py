"""Work beside the kernel, and how often it shows itself."""

import threading

import pytest

from mailverdict.runs.progress import Progress
from mailverdict.widgets.checking import IDLE_INTERVALS, INTERVAL, Background, follow


class ScriptedRun:
    """A run whose progress moves on a hundred times while it is waited for."""

    def __init__(self, waits: int) -> None:
        self.left, self.moves = waits, 0
        self.timeouts = []

    def done(self):
        return self.left == 0

    @property
    def progress(self):
        return self.snapshot

    def wait(self, timeout):
        self.timeouts.append(timeout)
        self.left -= 1
        for _ in range(100):
            self.moves += 1
            self.snapshot = Progress(settled=self.moves)
        if self.left:
            raise TimeoutError

    snapshot = Progress()


def test_at_most_ten_updates_a_second_are_shown_however_many_there_are():
    run, shown = ScriptedRun(waits=5), []
    follow(run, shown.append, shown.append)
    assert [progress.settled for progress in shown] == [0, 100, 200, 300, 400]
    assert run.timeouts == [INTERVAL] * 5
    assert INTERVAL >= 0.1


def test_what_has_not_changed_is_not_shown_again():
    run, shown = ScriptedRun(waits=4), []
    run.wait = lambda timeout: setattr(run, "left", run.left - 1)
    follow(run, shown.append, shown.append)
    assert len(shown) == 1


def test_long_silence_is_reported_now_and_then():
    run, told = ScriptedRun(waits=2 * IDLE_INTERVALS + 2), []
    run.wait = lambda timeout: setattr(run, "left", run.left - 1)
    follow(run, lambda progress: None, told.append, interval=0.5)
    assert told == [IDLE_INTERVALS * 0.5, IDLE_INTERVALS]


def test_waiting_covers_what_was_started_meanwhile():
    background, done = Background(), []
    background.start(lambda: background.start(lambda: done.append(1)))
    background.wait(10)
    assert done == [1]


def test_waiting_ends_when_it_was_told_to():
    background, gate = Background(), threading.Event()
    background.start(gate.wait)
    with pytest.raises(TimeoutError):
        background.wait(0)
    gate.set()
    background.wait(10)
