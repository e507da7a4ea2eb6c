"""Calls from several threads at once: each gives what it gives alone."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.sandbox import World

THREADS = 8
CELLS = [
    "ada@gmail.com",
    "bob@gmial.com",
    "info@one.example",
    "nobody@one.example",
    "Cy <cy@one.example>",
    "x",
    None,
]
MAKERS = (pd.DataFrame, pl.DataFrame, pa.table)


def audit(number, backend, kind):
    """What a program does with a list; every thread has other rows, and a few of them the same kind of frame."""
    cells = [*CELLS, f"ada{number}@gmail.com", *CELLS[:number]]
    frame = MAKERS[number % len(MAKERS)]({"email": cells})
    out = mv.verify(frame, "email", validation_type=kind, backend=backend, journal=None)
    found = [out]
    if kind == "regex":
        found += [
            mv.clean(frame, "email"),
            mv.explode(frame, "email"),
            mv.duplicates(frame, "email"),
            mv.suppress(frame, "email", ["one.example"]),
            mv.split(out, "email").send,
            mv.summary(out, "email"),
            mv.breakdown(out, "domain"),
            mv.diff(out, out, "email"),
        ]
    return [each.to_pydict() if isinstance(each, pa.Table) else each for each in found]


def at_once(task):
    """The results of the numbers 0 to 7, by as many threads that begin together."""
    barrier = threading.Barrier(THREADS)

    def begin(number):
        barrier.wait()
        return task(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS)))


@pytest.fixture(scope="module")
def world():
    with World() as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["regex", "mx", "smtp"])
def test_eight_threads_with_one_backend_give_what_one_gives(world, kind):
    found = at_once(lambda number: audit(number, world.backend, kind))
    for number, results in enumerate(found):
        for result, alone in zip(results, audit(number, world.backend, kind), strict=True):
            if isinstance(alone, pd.DataFrame):
                pd.testing.assert_frame_equal(result, alone)
            else:
                assert result.equals(alone) if isinstance(alone, pl.DataFrame) else result == alone


FIRST_CALLS = f"""
import sys, threading
import pandas as pd
import mailverdict as mv
barrier = threading.Barrier({THREADS})
found = [None] * {THREADS}
def call(number):
    barrier.wait()
    if number % 2:
        import polars
        frame = polars.DataFrame({{"email": ["ada@example.org", "nobody"]}})
    else:
        frame = pd.DataFrame({{"email": ["ada@example.org", "nobody"]}})
    out = mv.verify(frame, "email", validation_type="regex")
    found[number] = [len(out), *(str(each) for each in out["email_verdict"]), len(mv.decide(out, "email"))]
threads = [threading.Thread(target=call, args=(number,)) for number in range({THREADS})]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert found == [[2, "valid", "invalid", 2]] * {THREADS}, found
"""


@pytest.mark.slow  # a process; the test before it has threads that use it together
def test_eight_threads_may_be_the_first_to_use_the_package():
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CALLS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
