"""Whether the owner of a lease still runs."""

import os
import subprocess
import sys
from dataclasses import replace

import psutil
import pytest

from mailverdict.runs.journal.owners import CLOCK_TOLERANCE, Owner, this_process


def test_this_process_runs() -> None:
    owner = this_process()
    assert owner.pid == os.getpid()
    assert not owner.has_ended()


def test_a_process_that_ended() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert replace(this_process(), pid=process.pid).has_ended()


@pytest.mark.parametrize(("earlier", "has_ended"), [(CLOCK_TOLERANCE / 2, False), (CLOCK_TOLERANCE * 2, True)])
def test_a_later_process_with_the_same_id_is_another_and_a_corrected_clock_is_not(
    earlier: float, has_ended: bool
) -> None:
    owner = this_process()
    assert replace(owner, born=str(float(owner.born) - earlier)).has_ended() is has_ended


def test_a_process_on_another_machine_is_not_looked_up() -> None:
    assert not Owner("elsewhere", 2**22 - 1, "1").has_ended()


def test_a_process_that_may_not_be_looked_up_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: psutil.Process) -> float:
        raise psutil.AccessDenied(self.pid)

    owner = this_process()
    monkeypatch.setattr(psutil.Process, "create_time", refuse)
    assert not owner.has_ended()
