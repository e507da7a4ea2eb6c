"""A run that dies at any instant loses nothing and pays nothing twice."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mailverdict.runs.journal.journal import Journal
from tests import ROOT
from tests.doubles.limiting import limit
from tests.doubles.scripted_service import ScriptedService
from tests.doubles.serving import serve
from tests.doubles.waiting import settled_in, wait_until

KILLS = 50
PER_ROUND = 12


def run_killable(
    url: str, journal: Path, seed: int, per_round: int, longest: float
) -> dict[str, dict[str, str]]:
    """Kill and resume in another process; give each address's row at the end."""
    numbers = map(str, (KILLS, seed, per_round, longest))
    command = [sys.executable, "-m", "tests.flows.killable", url, str(journal), *numbers]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return {row["email"]: row for row in json.loads(done.stdout)}


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills with signals and forks")
def test_50_kills_at_random_instants_lose_nothing_and_pay_nothing_twice(tmp_path: Path) -> None:
    service = ScriptedService(time.time, duration=lambda _: 0.1)
    journal = tmp_path / "journal.db"
    with serve(service) as url:
        rows = run_killable(url, journal, seed=5, per_round=PER_ROUND, longest=0.3)
    assert max(service.paid.values()) == 1
    assert [v for v in service.violations if "terminal" not in v] == [], (
        "only the dead may ask again what they heard"
    )
    settled = {email for email, row in rows.items() if row["status"] == "done"}
    held = set(rows) - settled
    assert len(rows) >= KILLS * PER_ROUND
    assert set(rows) == set(service.paid), (
        "all is paid for once, what is held too: it was lost on the way"
    )
    assert settled
    with Journal(journal) as left:
        (entry,) = left.summary()
        assert (entry.settled, entry.in_flight, entry.uncertain) == (len(settled), 0, len(held))


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills with signals and forks")
def test_50_kills_while_a_limiter_refuses_pay_again_only_for_what_was_refused(
    tmp_path: Path,
) -> None:
    service = ScriptedService(time.time, duration=lambda _: 0.02)
    granted = limit(service, rate=50.0, burst=20)
    journal = tmp_path / "journal.db"
    with serve(service) as url:
        rows = run_killable(url, journal, seed=6, per_round=30, longest=1.0)
    assert set(rows) == set(service.paid)
    assert max(granted.values()) == 1, "what was verified once is not paid for again"
    assert sum(service.paid.values()) > len(rows), "the limiter has refused some"
    settled = {email for email, row in rows.items() if row["result"] == "valid"}
    refused = {email for email, row in rows.items() if row["status"] == "done"} - settled
    held = set(rows) - settled - refused
    assert settled <= set(granted)
    assert all(service.paid[email] >= 3 for email in refused), (
        "refused three times, and so not asked again"
    )
    with Journal(journal) as left:
        (entry,) = left.summary()
        assert (entry.in_flight, entry.uncertain) == (0, len(held))


INTERRUPTED = """
import math, sys
import mailverdict as mv
from mailverdict.remote.events import PollSchedule
from mailverdict.remote.backend import RemoteBackend
backend = RemoteBackend(sys.argv[1], PollSchedule(steps=((math.inf, 0.02),)))
emails = [f"user{i}@example.org" for i in range(30)]
try:
    out = mv.verify(emails, validation_type="smtp", backend=backend, journal=sys.argv[2])
except KeyboardInterrupt as interrupt:
    out = interrupt.partial
print(out["status"].value_counts().to_dict())
"""


def start_verifying(url: str, journal: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", INTERRUPTED, url, str(journal)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow  # processes; tests/runs has Ctrl-C, tests/flows/test_remote.py the next call
@pytest.mark.skipif(os.name != "posix", reason="interrupts with SIGINT")
def test_ctrl_c_keeps_what_is_settled_and_the_next_call_goes_on(tmp_path: Path) -> None:
    slow = {"user3@example.org", "user4@example.org"}
    service = ScriptedService(time.time, duration=lambda email: 1e9 if email in slow else 0.0)
    with serve(service) as url:
        first = start_verifying(url, tmp_path / "journal.db")
        wait_until(lambda: first.poll() is not None or settled_in(tmp_path / "journal.db") == 28)
        first.send_signal(signal.SIGINT)
        out, err = first.communicate(timeout=60)
        assert "'done': 28, 'pending': 2" in out, err
        service.duration = lambda _: 0.0
        second = start_verifying(url, tmp_path / "journal.db")
        out, err = second.communicate(timeout=60)
        assert "'done': 30" in out, err
    assert service.violations_and_double_payments == []


@pytest.mark.slow  # processes; two runs of one process are in test_remote.py, two processes on a journal in test_journal.py
@pytest.mark.skipif(os.name != "posix", reason="looks up processes as POSIX does")
def test_two_processes_on_one_journal_pay_once_and_both_are_complete(tmp_path: Path) -> None:
    service = ScriptedService(time.time, duration=lambda _: 0.2)
    with serve(service) as url:
        both = [start_verifying(url, tmp_path / "journal.db") for _ in range(2)]
        ended = [each.communicate(timeout=60) for each in both]
        assert [each.returncode for each in both] == [0, 0], ended
        assert all(out.startswith("{'done': 30, 'pending': 0") for out, _ in ended), ended
    assert sorted(service.paid.values()) == [1] * 30
