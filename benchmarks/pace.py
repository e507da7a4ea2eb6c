"""The remote backend's pace against simulated services, in virtual time: loss, cost, and time against the ideal.

The code that submits and polls is the real one; services answer without HTTP. The ideal is the time
of a client that knows the limiter, polls as ours does, and sends as early as it can. The values of
a figure are those of the random services of one kind. They do not depend on the machine. Run it as
``python -m benchmarks pace``.
"""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Callable

from tests.doubles.simulated_services import KINDS, Case, Result, measure, random_case

from .figures import read_options, record


def measure_numbered(numbered: tuple[int, Case]) -> Result:
    """One case, for a pool of processes."""
    return measure(numbered[1], numbered[0])


def measure_random(services: int, seed: int) -> list[Result]:
    """So many random services, in two processes."""
    chance = random.Random(seed)
    cases = [(number, random_case(chance)) for number in range(services)]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        return pool.map(measure_numbered, cases, chunksize=1)


def main() -> None:
    given = read_options(__doc__, services=(200, 20), seed=(1, 1))
    results = measure_random(given.services, given.seed)
    groups = {
        words: [each for each in results if each.case.kind == kind] for kind, words in KINDS.items()
    }
    values: dict[str, tuple[str, Callable[[Result], float]]] = {
        "addresses": ("addresses", lambda result: result.allowed),
        "addresses lost": ("addresses", lambda result: result.lost + result.pending),
        "addresses without quota": ("addresses", lambda result: result.unpaid),
        "units an address": ("units", lambda result: result.cost),
        "time compared with the ideal": ("times", lambda result: result.ratio),
    }
    for name, (unit, value) in values.items():
        for words, group in groups.items():
            if group:
                record(f"simulated services, {name}", words, map(value, group), unit)


if __name__ == "__main__":
    main()
