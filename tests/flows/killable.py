"""Runs over one journal, each in a process of its own that is killed at a random instant.

``python -m tests.flows.killable URL JOURNAL KILLS SEED PER_ROUND LONGEST``: every round adds addresses to the
column and forks a child that verifies it, until so many were killed before their end, each after at most LONGEST
seconds; the last run is left to finish. Prints, as JSON, what that one knew. All clocks and the event loop run fast, so
that graces and the pace's waits are short.
"""

import asyncio
import json
import math
import os
import random
import selectors
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa

from mailverdict.model.words import ValidationType
from mailverdict.remote.backend import RemoteBackend
from mailverdict.remote.events import PollSchedule
from mailverdict.runs.execution import Execution, RunSettings
from mailverdict.runs.journal.journal import Journal
from tests.doubles.remote import addresses

SPEED = 50.0
NOON = 43_200.0
BEGUN = time.time()


def fast_clock() -> float:
    """Seconds that pass quickly, from noon of a day: no test goes past its midnight."""
    return NOON + (time.time() - BEGUN) * SPEED


class FastSelector(selectors.DefaultSelector):
    """Waits for a fraction of the time."""

    def select(self, timeout: float | None = None) -> list[Any]:
        return super().select(timeout if timeout is None else timeout / SPEED)


class FastLoop(asyncio.SelectorEventLoop):
    """An event loop whose seconds are short."""

    def __init__(self) -> None:
        super().__init__(FastSelector())

    def time(self) -> float:
        return fast_clock()


def verify(url: str, journal: Path, count: int) -> Execution:
    """One run over the first `count` addresses."""
    execution = Execution(
        pa.array(addresses(count)),
        RemoteBackend(url, PollSchedule(steps=((math.inf, 1.5),)), timeout=500, clock=fast_clock),
        RunSettings(ValidationType.SMTP),
        journal=Journal(journal, clock=fast_clock),
        clock=fast_clock,
    )
    with asyncio.Runner(loop_factory=FastLoop) as runner:
        runner.run(execution.run())
    return execution


def kill_one(url: str, journal: Path, count: int, delay: float) -> bool:
    """Whether the kill, so many seconds after the start, came before the end."""
    child = os.fork()
    if child == 0:
        code = 3
        # Which ends a process as suddenly as SIGKILL does.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, delay)
        try:
            verify(url, journal, count)
            code = 0
        finally:
            if code:
                traceback.print_exc()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise SystemExit(f"a child failed before it was killed, after {delay} seconds")
    return os.WIFSIGNALED(status)


def main(url: str, journal: str, wanted: str, seed: str, per_round: str, longest: str) -> None:
    """Kill and resume, then finish."""
    chance, kills, count = random.Random(int(seed)), 0, 0
    while kills < int(wanted):
        count += int(per_round)
        kills += kill_one(url, Path(journal), count, chance.uniform(0, float(longest)))
    last = verify(url, Path(journal), count)
    print(json.dumps(last.results.table("smtp", ["email", "status", "result"]).to_pylist()))


if __name__ == "__main__":
    main(*sys.argv[1:])
