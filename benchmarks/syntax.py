"""Syntax of a million addresses: `observe_column` compared with a loop over email-validator, and parts of it.

Both get the same unique addresses in the same process, round by round in turn. Acceptance and normal forms must be
identical, row by row. Run it as ``python -m benchmarks syntax``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
from email_validator import EmailNotValidError, validate_email

from mailverdict.checks.syntax.column import fault_messages, observe_column
from mailverdict.checks.syntax.kernels import match_locals

from .addresses import make_addresses
from .figures import OURS, read_options, record
from .resident import PeakMemory

SYNTAX = (OURS, "mailverdict, one thread", "email-validator, loop")
PARTS = ("messages of refused texts", "names of roles")
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
        result = measure(times, SYNTAX[0], partial(observe_column, column))
        measure(times, SYNTAX[1], partial(observe_column, column, threads=1))
        measure(times, PARTS[0], partial(fault_messages, column, result.ok))
        measure(times, PARTS[1], partial(match_locals, result.local, ROLES))
    expected = measure(times, SYNTAX[2], partial(validate_all, texts))
    if result.normalized.to_pylist() != expected:
        raise SystemExit("the answers differ from email-validator's")


def main() -> None:
    given = read_options(__doc__, rows=(1_000_000, 20_000), rounds=(3, 1))
    texts = make_addresses(given.rows)
    column = pa.array(texts)
    with PeakMemory() as memory:  # of the first call
        observe_column(column)
    times: Times = {}
    for _ in range(given.rounds):
        run_round(times, texts, column)
    for name in SYNTAX:
        record("syntax of a column, normal forms included", name, times[name], size=given.rows)
    for name in PARTS:
        record("parts of a column's syntax", name, times[name], size=given.rows)
    record("memory above the input, syntax of a column", OURS, [memory.above / 1e6], "MB", given.rows)


if __name__ == "__main__":
    main()
