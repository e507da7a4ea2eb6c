"""A column by ``regex``, beside what people use instead: loops, plug-ins and patterns, from 10,000 to 5,000,000 rows.

`verify` is called as in the README first: a frame, its column, and cells that are repaired; then
with ``clean=False``. It returns the finished frame with verdict, reasons, flags and suggestions.
The peers give only yes or no: email-validator and emval in a loop, emval as a plug-in of Polars,
and one regular expression in pandas and in Polars, which is not the syntax of addresses (RFC 5321)
but what many use. All get the same unique addresses; acceptance must be that of email-validator for
`verify`, row by row. Rounds in turn in one process; email-validator, which would need two minutes
for each round of 5,000,000 rows, stops at a million. The highest resident memory above the input is
measured in a process of its own for each size.

Run it as ``python -m benchmarks column``.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import psutil
import pyarrow as pa
from email_validator import EmailNotValidError, validate_email
from emval import EmailValidator
from emval.polars import validate_email as emval_expression

import mailverdict as mv

from .addresses import make_addresses
from .figures import OURS, read_options, record

SIZES = (10_000, 100_000, 1_000_000, 5_000_000)
ROUNDS = 3
QUICK_REPEATS = 5  # in each round, of everything but the loops
LARGEST_LOOP = 1_000_000
PATTERN = (
    r"^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}$"  # the first that a search engine finds
)
AS_IT_STANDS = "mailverdict, clean=False"
LOOP, EMVAL_LOOP, PLUGIN = "email-validator, loop", "emval, loop", "emval, Polars plug-in"
EMVAL = EmailValidator(deliverable_address=False)
PLUGIN_OPTIONS: dict[str, Any] = {
    "allow_smtputf8": True,
    "allow_empty_local": False,
    "allow_quoted_local": False,
    "allow_domain_literal": False,
    "deliverable_address": False,
    "allowed_special_domains": [],
}


def accepts(text: str) -> bool:
    try:
        validate_email(text, check_deliverability=False)
    except EmailNotValidError:
        return False
    return True


def emval_accepts(text: str) -> bool:
    try:
        EMVAL.validate_email(text)
    except Exception:  # noqa: BLE001 - it has no exception of its own
        return False
    return True


def as_column(texts: list[str]) -> pd.Series:
    return pd.Series(texts, dtype="str")


def as_frame(texts: list[str]) -> pd.DataFrame:
    return pd.DataFrame({"email": as_column(texts)})


def verify(frame: pd.DataFrame) -> pd.DataFrame:
    return mv.verify(frame, "email", validation_type="regex")


def verify_as_it_stands(frame: pd.DataFrame) -> pd.DataFrame:
    return mv.verify(frame, "email", validation_type="regex", clean=False)


def contestants(texts: list[str]) -> dict[str, Callable[[], Any]]:
    """What is measured for these addresses, by name."""
    column = as_column(texts)
    contacts = as_frame(texts)
    frame = pl.DataFrame({"email": texts})
    made: dict[str, Callable[[], Any]] = {
        OURS: lambda: verify(contacts),
        AS_IT_STANDS: lambda: verify_as_it_stands(contacts),
        PLUGIN: lambda: frame.with_columns(checked=emval_expression("email", **PLUGIN_OPTIONS)),
        "pattern, pandas": lambda: column.str.fullmatch(PATTERN),
        "pattern, Polars": lambda: frame.select(pl.col("email").str.contains(PATTERN)),
        EMVAL_LOOP: lambda: [emval_accepts(text) for text in texts],
    }
    if len(texts) <= LARGEST_LOOP:
        made[LOOP] = lambda: [accepts(text) for text in texts]
    return made


def compare(size: int, rounds: int) -> None:
    """Measure all contestants with so many rows."""
    texts = make_addresses(size)
    made = contestants(texts)
    times: dict[str, list[float]] = {name: [] for name in made}
    answers = {}
    verify(as_frame(texts[:1_000]))  # loads the lists
    for _ in range(rounds):
        for name, call in made.items():
            for _ in range(1 if "loop" in name else QUICK_REPEATS):
                begin = time.perf_counter()
                answers[name] = call()
                times[name].append(time.perf_counter() - begin)
    if LOOP in answers:
        is_valid = answers[AS_IT_STANDS]["email_verdict"] == "valid"
        if is_valid.tolist() != answers[LOOP]:
            raise SystemExit("acceptance differs from email-validator's")
    for name, taken in times.items():
        record("a column by regex", name, taken, size=size)


def print_memory(size: int) -> None:
    """Print the highest resident memory above the input, in MB; the first call is not measured."""
    warnings.simplefilter("ignore", UserWarning)
    frame = as_frame(make_addresses(size))
    verify_as_it_stands(frame[:1_000])
    print(memory_above(lambda: verify_as_it_stands(frame)) / 1e6)


def memory_above(call: Callable[[], Any]) -> int:
    """Octets that are resident at most during a call, above those before it; looked at every millisecond."""
    process, is_over = psutil.Process(), threading.Event()
    gc.collect()
    pa.default_memory_pool().release_unused()
    before = peak = process.memory_info().rss

    def watch() -> None:
        nonlocal peak
        while not is_over.wait(0.001):
            peak = max(peak, process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        call()
    finally:
        is_over.set()
        watcher.join()
    return peak - before


def main() -> None:
    given = read_options(__doc__, rows=(SIZES[-1], 100_000), rounds=(ROUNDS, 1))
    # Some addresses are malformed, which is said for each call.
    warnings.simplefilter("ignore", UserWarning)
    sizes = [size for size in SIZES if size <= given.rows] or [given.rows]
    for size in sizes:
        compare(size, given.rounds)
    for size in sizes:
        command = [
            sys.executable,
            "-c",
            f"from benchmarks.column import print_memory; print_memory({size})",
        ]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        taken = [float(done.stdout)]
        record("memory above the input, a column by regex", AS_IT_STANDS, taken, "MB", size)


if __name__ == "__main__":
    main()
