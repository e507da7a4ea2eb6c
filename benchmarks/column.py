"""A column by ``regex``, beside what people use instead: loops, plug-ins and patterns, from 10,000 to 5,000,000 rows.

`verify` returns the finished frame with verdict, reasons, flags and suggestions. The peers give only yes or no:
email-validator and emval in a loop, emval as a plug-in of Polars, and one regular expression in pandas and in Polars,
which is not the syntax of addresses (RFC 5321) but what many use. All get the same unique addresses; acceptance must
be that of email-validator for `verify`, row by row. Rounds in turn in one process; loops are left out where they would
take minutes. Objects and missing cells are compared with texts in the same rounds, and the highest resident memory
above the input is measured in a process of its own for each size.

Run it as ``python -m benchmarks.column``; ``--rows`` (of the largest size) and ``--rounds`` may be given.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import polars as pl
from email_validator import EmailNotValidError, validate_email

import mailverdict as mv

from .addresses import make_addresses
from .figures import OURS, record
from .resident import PeakMemory

SIZES = (10_000, 100_000, 1_000_000, 5_000_000)
ROUNDS = 3
QUICK_REPEATS = 5  # in each round, of everything but the loops
LARGEST_LOOP = 1_000_000
GOAL_LOOP, GOAL_PLUGIN, GOAL_MB, GOAL_KINDS = 80, 5, 200, 1.1
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


def compare(size: int, rounds: int) -> bool:
    """Measure all contestants with so many rows; whether the goals that apply are met."""
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
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    print(f"{size:,} unique addresses")
    for name, taken in times.items():
        record("a column by regex", name, taken, size=size)
        factor = "" if name == OURS else f"  {medians[name] / medians[OURS]:8.1f} times as long as {OURS}"
        print(f"  {name:24} {medians[name]:8.3f} s ({min(taken):.3f} to {max(taken):.3f}){factor}")
    if size != 1_000_000:
        return True
    return all(medians[name] / medians[OURS] >= goal for name, goal in GOALS.items() if name in medians)


GOALS = {LOOP: GOAL_LOOP, PLUGIN: GOAL_PLUGIN}


def compare_kinds(size: int, rounds: int) -> bool:
    """Texts, missing cells and objects; whether none is much slower than texts."""
    texts = make_addresses(size)
    columns = {name: make(texts) for name, make in KINDS.items()}
    times: dict[str, list[float]] = {name: [] for name in columns}
    for _ in range(rounds * QUICK_REPEATS):
        for name, column in columns.items():
            begin = time.perf_counter()
            verify(column)
            times[name].append(time.perf_counter() - begin)
    base = statistics.median(times["texts"])
    for name, taken in times.items():
        record(f"verify by regex, {size:,} rows", name, taken, size=size)
        print(f"  {name:24} {statistics.median(taken):8.3f} s  {statistics.median(taken) / base:5.2f} times as long")
    return all(statistics.median(taken) <= GOAL_KINDS * base for taken in times.values())


def measure_memory(size: int) -> None:
    """Print the highest resident memory above the input, in MB; the first call is not measured."""
    column = KINDS["texts"](make_addresses(size))
    verify(column[:1_000])
    with PeakMemory() as memory:
        verify(column)
    print(memory.above / 1e6)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=SIZES[-1], help="of the largest size")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--memory", type=int, metavar="ROWS", help="only the memory for so many rows")
    given = parser.parse_args(argv)
    warnings.simplefilter("ignore", UserWarning)  # some addresses are malformed, which is said for each call
    if given.memory:
        measure_memory(given.memory)
        return 0
    sizes = [size for size in SIZES if size <= given.rows] or [given.rows]
    met = [compare(size, given.rounds) for size in sizes]
    met.append(compare_kinds(min(1_000_000, sizes[-1]), given.rounds))
    for size in sizes:
        command = [sys.executable, "-m", "benchmarks.column", "--memory", str(size)]
        above = float(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)
        record("memory above the input, verify by regex", OURS, [above], "MB", size)
        print(f"  {size:,} rows: {above:,.0f} MB above the input")
        met.append(size > 1_000_000 or above <= GOAL_MB)
    goals = f"{GOAL_LOOP} times {LOOP}, {GOAL_PLUGIN} times {PLUGIN}, at most {GOAL_MB} MB, kinds within 10 %"
    print(f"goals for 1,000,000 rows: {goals}: {'reached' if all(met) else 'MISSED'}")
    return int(not all(met))


if __name__ == "__main__":
    sys.exit(main())
