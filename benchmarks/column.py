"""A column by ``regex``, beside what people use instead: loops, plug-ins and patterns, from 10,000 to 5,000,000 rows.

`verify` returns the finished frame with verdict, reasons, flags and suggestions. The peers give only yes or no:
email-validator and emval in a loop, emval as a plug-in of Polars, and one regular expression in pandas and in Polars,
which is not the syntax of addresses (RFC 5321) but what many use. All get the same unique addresses; acceptance must be
that of email-validator for `verify`, row by row. Rounds in turn in one process; email-validator, which would need two
minutes for each round of 5,000,000 rows, stops at a million. Objects and missing cells are compared with texts in the
same rounds, and the highest resident memory above the input is measured in a process of its own for each size.

Run it as ``python -m benchmarks column``.
"""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
from email_validator import EmailNotValidError, validate_email

import mailverdict as mv

from .addresses import make_addresses
from .figures import OURS, read_options, record
from .resident import PeakMemory

SIZES = (10_000, 100_000, 1_000_000, 5_000_000)
ROUNDS = 3
QUICK_REPEATS = 5  # in each round, of everything but the loops
LARGEST_LOOP = 1_000_000
PATTERN = r"^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}$"  # the first that a search engine finds
LOOP, EMVAL_LOOP, PLUGIN = "email-validator, loop", "emval, loop", "emval, Polars plug-in"
KINDS: dict[str, Callable[[list[str]], pd.Series]] = {
    "texts": lambda texts: pd.Series(texts, dtype="str"),
    "texts, 2 % missing": lambda texts: pd.Series(texts, dtype="str").mask(pd.RangeIndex(len(texts)) % 50 == 0),
    "objects": lambda texts: pd.Series(texts, dtype=object),
}


def accepts(text: str) -> bool:
    try:
        validate_email(text, check_deliverability=False)
    except EmailNotValidError:
        return False
    return True


def emval_loop() -> Callable[[list[str]], list[bool]] | None:
    """None: emval is not installed."""
    try:
        from emval import EmailValidator
    except ImportError:
        return None
    validator = EmailValidator(deliverable_address=False)

    def accept(text: str) -> bool:
        try:
            validator.validate_email(text)
        except Exception:  # noqa: BLE001 - it has no exception of its own
            return False
        return True

    return lambda texts: [accept(text) for text in texts]


def emval_plugin() -> Callable[[pl.DataFrame], pl.DataFrame] | None:
    try:
        from emval.polars import validate_email as expression
    except ImportError:
        return None
    options: dict[str, Any] = {
        "allow_smtputf8": True,
        "allow_empty_local": False,
        "allow_quoted_local": False,
        "allow_domain_literal": False,
        "deliverable_address": False,
        "allowed_special_domains": [],
    }
    return lambda frame: frame.with_columns(checked=expression("email", **options))


def verify(column: pd.Series) -> pd.DataFrame:
    return mv.verify(column, validation_type="regex")


def contestants(texts: list[str]) -> dict[str, Callable[[], Any]]:
    """What is measured for these addresses, by name."""
    column, frame = pd.Series(texts, dtype="str"), pl.DataFrame({"email": texts})
    plugin, loop = emval_plugin(), emval_loop()
    made: dict[str, Callable[[], Any]] = {OURS: lambda: verify(column)}
    if plugin is not None:
        made[PLUGIN] = lambda: plugin(frame)
    made["pattern, pandas"] = lambda: column.str.fullmatch(PATTERN)
    made["pattern, Polars"] = lambda: frame.select(pl.col("email").str.contains(PATTERN))
    if len(texts) <= LARGEST_LOOP:
        made[LOOP] = lambda: [accepts(text) for text in texts]
    if loop is not None:
        made[EMVAL_LOOP] = lambda: loop(texts)
    return made


def compare(size: int, rounds: int) -> None:
    """Measure all contestants with so many rows."""
    texts = make_addresses(size)
    made = contestants(texts)
    times: dict[str, list[float]] = {name: [] for name in made}
    answers = {}
    verify(pd.Series(texts[:1_000], dtype="str"))  # loads the lists
    for _ in range(rounds):
        for name, call in made.items():
            for _ in range(1 if "loop" in name else QUICK_REPEATS):
                begin = time.perf_counter()
                answers[name] = call()
                times[name].append(time.perf_counter() - begin)
    if LOOP in answers and (answers[OURS]["verdict"] == "valid").tolist() != answers[LOOP]:
        raise SystemExit("acceptance differs from email-validator's")
    for name, taken in times.items():
        record("a column by regex", name, taken, size=size)


def compare_kinds(size: int, rounds: int) -> None:
    """Texts, missing cells and objects in turn."""
    texts = make_addresses(size)
    columns = {name: make(texts) for name, make in KINDS.items()}
    times: dict[str, list[float]] = {name: [] for name in columns}
    for _ in range(rounds * QUICK_REPEATS):
        for name, column in columns.items():
            begin = time.perf_counter()
            verify(column)
            times[name].append(time.perf_counter() - begin)
    for name, taken in times.items():
        record("a column by regex, by its cells", name, taken, size=size)


def print_memory(size: int) -> None:
    """Print the highest resident memory above the input, in MB; the first call is not measured."""
    warnings.simplefilter("ignore", UserWarning)
    column = KINDS["texts"](make_addresses(size))
    verify(column[:1_000])
    with PeakMemory() as memory:
        verify(column)
    print(memory.above / 1e6)


def main() -> None:
    given = read_options(__doc__, rows=(SIZES[-1], 100_000), rounds=(ROUNDS, 1))
    warnings.simplefilter("ignore", UserWarning)  # some addresses are malformed, which is said for each call
    sizes = [size for size in SIZES if size <= given.rows] or [given.rows]
    for size in sizes:
        compare(size, given.rounds)
    compare_kinds(min(1_000_000, sizes[-1]), given.rounds)
    for size in sizes:
        command = [sys.executable, "-c", f"from benchmarks.column import print_memory; print_memory({size})"]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        record("memory above the input, a column by regex", OURS, [float(done.stdout)], "MB", size)


if __name__ == "__main__":
    main()
