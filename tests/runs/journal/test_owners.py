"""Whether the owner of a lease lives."""

import os
import subprocess
import sys
from dataclasses import replace

from mailverdict.runs.journal.owners import Owner, is_running, this_process


def test_this_process_lives() -> None:
    owner = this_process()
    assert owner.pid == os.getpid()
    assert not owner.has_ended()


def test_a_process_that_ended_has_ended() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert replace(this_process(), pid=process.pid).has_ended()


def test_a_later_process_with_the_same_id_is_another() -> None:
    assert replace(this_process(), born="1").has_ended()


def test_a_process_on_another_machine_is_not_judged() -> None:
    assert not Owner("elsewhere", 2**22 - 1, "1").has_ended()


def test_a_process_of_somebody_else_is_running() -> None:
    assert is_running(1)
