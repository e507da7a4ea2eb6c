"""Syntax of a million addresses: `observe_column` compared with a loop over email-validator.

Both get the same unique addresses in the same process, round by round in turn; the ratio is that of the
medians. Acceptance and normal forms must be identical, row by row. Run it as
``python -m benchmarks.syntax``; ``--rows`` and ``--rounds`` may be given.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from email_validator import EmailNotValidError, validate_email

from mailverdict.checks.syntax.column import fault_messages, observe_column
from mailverdict.checks.syntax.kernels import match_locals

from .addresses import make_addresses

ROWS, ROUNDS = 1_000_000, 3
QUICK_REPEATS = 5  # of everything except the loop, in each round
ROLES = (
    "abuse",
    "admin",
    "billing",
    "contact",
    "hr",
    "info",
    "jobs",
    "noreply",
    "office",
    "sales",
    "support",
    "webmaster",
)
Times = dict[str, list[float]]


def validate_all(texts: list[str]) -> list[str | None]:
    """Loop over email-validator as its documentation shows; None if it refuses."""
    return [validate(text) for text in texts]


def validate(text: str) -> str | None:
    try:
        return validate_email(text, check_deliverability=False).normalized
    except EmailNotValidError:
        return None


def measure(times: Times, name: str, call: Callable[[], Any]) -> Any:
    """Call, record the seconds under `name`, and return the result."""
    begin = time.perf_counter()
    result = call()
    times.setdefault(name, []).append(time.perf_counter() - begin)
    return result


def run_round(times: Times, texts: list[str], column: pa.StringArray) -> None:
    """One round of everything; raise if the answers differ."""
    for _ in range(QUICK_REPEATS):
        result = measure(times, "observe_column", partial(observe_column, column))
        measure(times, "observe_column, one thread", partial(observe_column, column, threads=1))
        measure(times, "fault_messages", partial(fault_messages, column, result.ok))
        measure(times, "match_locals", partial(match_locals, result.local, ROLES))
    expected = measure(times, "email-validator loop", partial(validate_all, texts))
    if result.normalized.to_pylist() != expected:
        raise SystemExit("the answers differ from email-validator's")


def peak_above_input(column: pa.StringArray) -> str:
    """Format the peak of resident memory during one call, above the memory before it (Linux only)."""
    status, clear = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    if not status.exists():
        return "not measured on this system"
    clear.write_text("5")  # resets the peak to the current value
    before = read_status(status, "VmRSS")
    observe_column(column)
    return f"{(read_status(status, 'VmHWM') - before) / 1024:.0f} MB above the input of {column.nbytes / 1e6:.0f} MB"


def read_status(status: Path, name: str) -> int:
    """Read one line of ``/proc/self/status``, in kB."""
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith(f"{name}:"))


def print_table(times: Times, rows: int) -> None:
    base = statistics.median(times["email-validator loop"])
    print(f"{rows:,} unique addresses, {os.cpu_count()} processors; seconds: median (fastest to slowest)")
    for name, taken in times.items():
        middle = statistics.median(taken)
        spread = f"{min(taken):.3f} to {max(taken):.3f}"
        print(f"{name:28} {middle:8.3f} ({spread})  {middle / rows * 1e6:7.3f} us/row  {base / middle:6.0f}x")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args(argv)
    texts = make_addresses(given.rows)
    column = pa.array(texts)
    memory = peak_above_input(column)
    times: Times = {}
    for _ in range(given.rounds):
        run_round(times, texts, column)
    print_table(times, given.rows)
    print(f"memory of the first call: {memory}")


if __name__ == "__main__":
    main()
