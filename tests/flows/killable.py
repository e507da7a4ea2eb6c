"""Runs over one journal, each in a process of its own that is killed at a random instant.

``python -m tests.flows.killable URL JOURNAL KILLS SEED``: every round adds addresses to the column
and forks a child that verifies it, until so many were killed before their end; the last run is left
to finish. Prints, as JSON, what that one knew. The journal's clock runs fast, so that graces are short.
"""

import asyncio
import json
import math
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

import pyarrow as pa

from mailverdict.model.words import ValidationType
from mailverdict.remote.backend import RemoteBackend
from mailverdict.remote.polling import PollSchedule
from mailverdict.runs.execution import Execution, RunSettings
from mailverdict.runs.journal.journal import Journal
from tests.doubles.remote import addresses

PER_ROUND = 12
SPEED = 50.0
NOON = 43_200.0
LONGEST = 0.3  # seconds before a kill; a round undisturbed takes about as long
BEGUN = time.time()


def fast_clock() -> float:
    """Seconds that pass quickly, from noon of a day: no test goes past its midnight."""
    return NOON + (time.time() - BEGUN) * SPEED


async def fast_sleep(seconds: float) -> None:
    await asyncio.sleep(seconds / SPEED)


def verify(url: str, journal: Path, count: int) -> Execution:
    """One run over the first `count` addresses."""
    execution = Execution(
        pa.array(addresses(count)),
        RemoteBackend(url, PollSchedule(steps=((math.inf, 0.03),)), timeout=10),
        RunSettings(ValidationType.SMTP),
        journal=Journal(journal, clock=fast_clock),
        clock=fast_clock,
        sleep=fast_sleep,
    )
    asyncio.run(execution.run())
    return execution


def kill_one(url: str, journal: Path, count: int, delay: float) -> bool:
    """Whether the kill, so many seconds after the start, came before the end."""
    child = os.fork()
    if child == 0:
        code = 3
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends a process as suddenly as SIGKILL does
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


def main(url: str, journal: str, wanted: str, seed: str) -> None:
    """Kill and resume, then finish."""
    chance, kills, count = random.Random(int(seed)), 0, 0
    while kills < int(wanted):
        count += PER_ROUND
        kills += kill_one(url, Path(journal), count, chance.uniform(0, LONGEST))
    last = verify(url, Path(journal), count)
    print(json.dumps(last.results.table("smtp", ["email", "status", "result"]).to_pylist()))


if __name__ == "__main__":
    main(*sys.argv[1:])
