"""`mailverdict.clean` of a column, compared with `verify` for ``regex`` of the same column.

Without messy cells and with one in ten: display names, links, labels, punctuation, blanks and what
else exports hold. Every address is different, so that no cell is repaired twice. Rounds in turn in
one process; the median of the processor time counts. The last comparison is `verify` with and
without ``clean=True`` on data that needs no repair. Run it as ``python -m benchmarks clean``.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

import pandas as pd

import mailverdict as mv

from .addresses import make_addresses
from .figures import read_options, record

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
    return [
        forms[at // 10].format(each) if at % 10 == 0 else each for at, each in enumerate(addresses)
    ]


def measure(functions: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """The seconds of processor time of each round of each, in turn; the first round does not count."""
    taken: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds + 1):
        for name, function in functions.items():
            begin = time.process_time()
            function()
            taken[name].append(time.process_time() - begin)
    return {name: each[1:] for name, each in taken.items()}


def verify(column: pd.Series, *, clean: bool = False) -> pd.DataFrame:
    return mv.verify(column, validation_type="regex", clean=clean)


def main() -> None:
    given = read_options(__doc__, rows=(1_000_000, 20_000), rounds=(5, 1))
    for rows in (given.rows // 10, given.rows):
        compare(rows, given.rounds)


def compare(rows: int, rounds: int) -> None:
    """All three comparisons of so many rows."""
    made = pd.Series(make_addresses(rows + rows // 20), dtype="str")
    addresses = made[made.mailverdict.is_well_formed][:rows].tolist()
    tidy, messy = (pd.Series(texts, dtype="str") for texts in (addresses, make_messy(addresses)))
    # Domains in lower case: nothing to repair.
    lower = pd.Series(mv.clean(tidy)["clean"].tolist(), dtype="str")
    tasks: dict[str, dict[str, Callable[[], object]]] = {
        "no messy cell": {"verify": lambda: verify(tidy), "clean": lambda: mv.clean(tidy)},
        "one messy cell in ten": {
            "verify": lambda: verify(messy),
            "clean": lambda: mv.clean(messy),
        },
        "nothing to repair": {
            "verify": lambda: verify(lower),
            "verify, clean=True": lambda: verify(lower, clean=True),
        },
    }
    for task, functions in tasks.items():
        for name, seconds in measure(functions, rounds).items():
            record(f"{task}, processor time", name, seconds, size=rows)


if __name__ == "__main__":
    main()
