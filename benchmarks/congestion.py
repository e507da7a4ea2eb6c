"""DNS look-ups through slow and lossy resolvers in virtual time: unknown domains, queries, and time against the ideal.

The scheduler is the real one; the resolvers are simulated. The ideal is the time of a client that
knows the resolver. The values of a figure are those of nine resolvers with queues of 20, 50 and 500
queries and round trips of 1, 50 and 200 ms. They do not depend on the machine. Run it as ``python
-m benchmarks congestion``.
"""

from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Callable
from dataclasses import dataclass

from tests.doubles.simulated_resolvers import SimulatedResolver, simulate

from .figures import read_options, record

RATES = (50, 200, 1000, 5000)  # answers a second
QUEUES = (20, 50, 500)  # queries
LOSSES = (0.0, 0.05, 0.2)
DELAYS = (0.001, 0.05, 0.2)  # seconds there and back
QUESTIONS = 4000, 4  # at least, and seconds of the rate


@dataclass(frozen=True)
class Case:
    """A simulated resolver."""

    rate: float
    queue: int
    loss: float
    delay: float


@dataclass(frozen=True)
class Result:
    """What came of one simulated run."""

    case: Case
    unknown: float  # part of the domains
    queries: float  # a domain
    slowdown: float  # the time divided by the ideal


def measure(case: Case) -> Result:
    resolver = SimulatedResolver(case.rate, case.queue, case.loss, case.delay)
    least, seconds = QUESTIONS
    questions = max(least, int(seconds * case.rate))
    run = simulate([resolver], questions)
    slowdown = run.seconds / resolver.ideal_seconds(questions)
    return Result(case, run.unknown / questions, run.queries / questions, slowdown)


def main() -> None:
    given = read_options(__doc__, rates=(len(RATES), 1))
    rates = RATES[: given.rates]
    cases = [Case(*values) for values in itertools.product(rates, QUEUES, LOSSES, DELAYS)]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        results = pool.map(measure, cases, chunksize=1)
    groups = {
        f"{rate:,} answers a second, {loss * 100:.0f} % lost": [
            each for each in results if (each.case.rate, each.case.loss) == (rate, loss)
        ]
        for rate, loss in itertools.product(rates, LOSSES)
    }
    values: dict[str, tuple[str, Callable[[Result], float]]] = {
        "domains without an answer": ("%", lambda result: result.unknown * 100),
        "queries a domain": ("queries", lambda result: result.queries),
        "time compared with the ideal": ("times", lambda result: result.slowdown),
    }
    for name, (unit, value) in values.items():
        for words, group in groups.items():
            record(f"simulated resolvers, {name}", words, map(value, group), unit)


if __name__ == "__main__":
    main()
