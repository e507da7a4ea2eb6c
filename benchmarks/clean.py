"""`mailverdict.clean` of a column, compared with `verify` for ``regex`` of the same column.

Without messy cells and with one in ten: display names, links, labels, punctuation, blanks and what else exports hold.
Every address is different, so that no cell is repaired twice. Rounds in turn in one process; the median of the
processor time counts. The last line is `verify` with and without ``clean=True`` on data that needs no repair. Run it as
``python -m benchmarks.clean``; ``--rows`` and ``--rounds`` may be given.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Sequence

import pandas as pd

import mailverdict as mv

from .addresses import make_addresses
from .figures import record

ROWS, ROUNDS = 1_000_000, 5
GOAL, GOAL_CLEAN = 2.0, 1.1
# How often each form stands in a hundred messy cells.
FORMS = {
    "Ada Lovelace <{}>": 18,
    '"Lovelace, Ada" <{}>': 8,
    "<{}>": 6,
    "mailto:{}": 10,
    "mailto:{}?subject=Hello": 2,
    "Email: {}": 10,
    " {} ": 12,
    "{};": 8,
    "{}.": 2,
    "'{}'": 3,
    "{} (work)": 4,
    "{}, +49 30 1234567": 3,
    "* {}": 2,
    "\u200b{}": 3,
    "<a href=\"mailto:{}\">Ada</a>": 2,
    "{}; bob@firm.com": 4,
    "n/a {}": 1,
    "ada@gmail,com {}": 1,
    "Ada Lovelace": 1,
}  # fmt: skip


def make_messy(addresses: Sequence[str]) -> list[str]:
    """Put every tenth address into one of the forms."""
    choose = random.Random(1)
    forms = choose.choices(list(FORMS), weights=list(FORMS.values()), k=len(addresses) // 10 + 1)
    return [forms[at // 10].format(each) if at % 10 == 0 else each for at, each in enumerate(addresses)]


def measure(functions: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """The seconds of processor time of each round of each, in turn; the first round does not count."""
    taken: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds + 1):
        for name, function in functions.items():
            begin = time.process_time()
            function()
            taken[name].append(time.process_time() - begin)
    return {name: each[1:] for name, each in taken.items()}


def compare(task: str, rounds: dict[str, list[float]], rows: int, goal: float) -> None:
    """Record both functions, and print how many times as long the second one takes."""
    for function, seconds in rounds.items():
        record(f"{task}, processor time", function, seconds, size=rows)
    medians = {function: statistics.median(seconds) for function, seconds in rounds.items()}
    first, second = medians.values()
    factor = second / first
    figures = "  ".join(f"{function} {seconds:.3f}" for function, seconds in medians.items())
    result = "reached" if factor <= goal else "MISSED"
    print(f"{task:14} {figures}  {factor:.2f} times as long; goal: at most {goal}, {result}")


def verify(column: pd.Series, *, clean: bool = False) -> pd.DataFrame:
    return mv.verify(column, validation_type="regex", clean=clean)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args(argv)
    made = pd.Series(make_addresses(given.rows + given.rows // 20), dtype="str")
    addresses = made[made.mailverdict.is_well_formed][: given.rows].tolist()
    columns = {
        "no messy cell": pd.Series(addresses, dtype="str"),
        "one in ten": pd.Series(make_messy(addresses), dtype="str"),
    }
    print(f"{given.rows:,} rows; seconds of processor time, median of {given.rounds} rounds")
    for name, column in columns.items():
        pair = measure({"verify": lambda c=column: verify(c), "clean": lambda c=column: mv.clean(c)}, given.rounds)
        compare(name, pair, given.rows, GOAL)
    tidy = mv.clean(columns["no messy cell"])["clean"]  # domains in lower case: nothing to repair
    column = pd.Series(tidy.tolist(), dtype="str")
    pair = measure(
        {"verify": lambda: verify(column), "verify, clean=True": lambda: verify(column, clean=True)}, given.rounds
    )
    compare("nothing to repair", pair, given.rows, GOAL_CLEAN)


if __name__ == "__main__":
    main()
