"""`mailverdict.verify` of a column, compared with a loop over email-validator; then its growth with the rows.

The first table: the same unique addresses in the same process, round by round in turn; `verify` returns
the finished frame with verdict, flags and suggestions, the loop only yes or no. Acceptance must be
identical, row by row. The second table: 10,000 to 5,000,000 rows, each in a process of its own, with the
highest resident memory above what was resident with the input loaded. Run it as
``python -m benchmarks.column``; ``--rows`` and ``--rounds`` may be given.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

import pandas as pd
from email_validator import EmailNotValidError, validate_email

import mailverdict as mv

from .addresses import make_addresses
from .resident import PeakMemory

ROWS, ROUNDS = 1_000_000, 3
REPEATS = 5  # of verify in each round
SIZES = (10_000, 100_000, 1_000_000, 5_000_000)
GOAL, GOAL_MB = 60, 350
KINDS = {
    "text": lambda texts: pd.Series(texts, dtype="str"),
    "text, 2 % missing": lambda texts: pd.Series(texts, dtype="str").mask(pd.RangeIndex(len(texts)) % 50 == 0),
    "objects": lambda texts: pd.Series(texts, dtype=object),
}


def accept_all(texts: Sequence[str]) -> list[bool]:
    """Loop over email-validator as its documentation shows."""
    return [accepts(text) for text in texts]


def accepts(text: str) -> bool:
    try:
        validate_email(text, check_deliverability=False)
    except EmailNotValidError:
        return False
    return True


def verify(column: pd.Series) -> pd.DataFrame:
    return mv.verify(column, validation_type="regex")


def compare(rows: int, rounds: int) -> None:
    """Print `verify` and the loop."""
    texts = make_addresses(rows)
    columns = {name: make(texts) for name, make in KINDS.items()}
    times: dict[str, list[float]] = {name: [] for name in columns}
    loop = []
    for _ in range(rounds):
        for name, column in columns.items():
            for _ in range(REPEATS):
                begin = time.perf_counter()
                out = verify(column)
                times[name].append(time.perf_counter() - begin)
        begin = time.perf_counter()
        expected = accept_all(texts)
        loop.append(time.perf_counter() - begin)
        if (out["verdict"] == "valid").tolist() != expected:
            raise SystemExit("acceptance differs from email-validator's")
    base = statistics.median(loop)
    print(f"{rows:,} unique addresses, {os.cpu_count()} processors; seconds: median (fastest to slowest)")
    print(f"{'email-validator loop':28} {base:8.3f} ({min(loop):.3f} to {max(loop):.3f})")
    for name, taken in times.items():
        middle = statistics.median(taken)
        print(f"{'verify, ' + name:28} {middle:8.3f} ({min(taken):.3f} to {max(taken):.3f})  {base / middle:6.0f}x")
    factor = base / statistics.median(times["text"])
    print(f"goal: at least {GOAL}x: {'reached' if factor >= GOAL else 'MISSED'}")


def grow(sizes: Sequence[int]) -> None:
    """Print time and memory by rows."""
    print(f"{'rows':>12} {'seconds':>9} {'us/row':>8} {'MB above input':>15}")
    for size in sizes:
        subprocess.run([sys.executable, "-m", "benchmarks.column", "--one", str(size)], check=True)
    print(f"goal: at most {GOAL_MB} MB above the input for 1,000,000 rows, and time in proportion to rows")


def measure(rows: int) -> None:
    """One line of the second table; the first call is not timed, since it loads the lists."""
    column = pd.Series(make_addresses(rows), dtype="str")
    verify(column[:1_000])
    with PeakMemory() as memory:
        verify(column)
    taken = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        verify(column)
        taken.append(time.perf_counter() - begin)
    seconds = statistics.median(taken)
    print(f"{rows:12,} {seconds:9.3f} {seconds / rows * 1e6:8.3f} {memory.above / 1e6:15.0f}", flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--one", type=int, help="one line of the second table")
    given = parser.parse_args(argv)
    if given.one:
        measure(given.one)
        return
    compare(given.rows, given.rounds)
    grow([size for size in SIZES if size <= 5 * given.rows])


if __name__ == "__main__":
    main()
