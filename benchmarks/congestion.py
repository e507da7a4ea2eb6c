"""DNS look-ups through slow and lossy resolvers in virtual time: unknown domains, queries, and time against the ideal.

The scheduler is the real one; the resolvers are simulated. The ideal is the time of a client that knows the resolver.
The values of a figure are those of nine resolvers with queues of 20, 50 and 500 queries and round trips of 1, 50 and
200 ms. They do not depend on the machine. Run it as ``python -m benchmarks congestion``.

``python -m benchmarks.congestion --against FOLDER`` (the ``src`` of another version) only lets both versions look up
20,000 domains in turn, through a resolver on loopback that answers each query after 20 ms.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.doubles.simulated_resolvers import SimulatedResolver, simulate

from .figures import read_options, record
from .lookups import responder

RATES = (50, 200, 1000, 5000)  # answers a second
QUEUES = (20, 50, 500)  # queries
LOSSES = (0.0, 0.05, 0.2)
DELAYS = (0.001, 0.05, 0.2)  # seconds there and back
QUESTIONS = 4000, 4  # at least, and seconds of the rate
FAST_DOMAINS, FAST_ROUNDS = 20_000, 7
FAST = """
import asyncio, sys, time
from mailverdict.checks.dns.resolver import Resolver
from mailverdict.model.settings import LocalSettings

async def main():
    resolver = Resolver(LocalSettings(resolver=f"127.0.0.1:{sys.argv[1]}"))
    names = [f"company-{number}.example.com" for number in range(int(sys.argv[2]))]
    found = [seen.outcome.value async for _, seen in resolver.observe_domains(names)]
    assert found == ["mx"] * len(names)
    await resolver.aclose()

wall, cpu = time.perf_counter(), time.process_time()
asyncio.run(main())
print(time.perf_counter() - wall, time.process_time() - cpu)
"""


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


def compare_fast(other: str) -> None:
    """Look up domains with this version and another one in turn, each in a process of its own."""
    ours = str(Path(__file__).parents[1] / "src")
    measured: dict[str, list[tuple[float, ...]]] = {ours: [], other: []}
    with responder() as port:
        for _ in range(FAST_ROUNDS):
            for folder, times in measured.items():
                command = [sys.executable, "-c", FAST, str(port), str(FAST_DOMAINS)]
                environment = {**os.environ, "PYTHONPATH": folder}
                done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
                times.append(tuple(float(word) for word in done.stdout.split()))
    for folder, times in measured.items():
        wall, cpu = (statistics.median(column) for column in zip(*times, strict=True))
        name = "this version" if folder == ours else "the other version"
        print(f"{name}: {FAST_DOMAINS:,} domains in {wall:.2f} s, CPU {cpu:.2f} s (medians of {FAST_ROUNDS})")
    ratios = [[a[i] / b[i] for a, b in zip(measured[ours], measured[other], strict=True)] for i in (0, 1)]
    print("this version / the other: time {:.3f}, CPU {:.3f}".format(*map(statistics.median, ratios)))


def main() -> None:
    if sys.argv[1:2] == ["--against"]:
        compare_fast(str(Path(sys.argv[2]).resolve()))
        return
    given = read_options(__doc__, rates=(len(RATES), 1))
    cases = [Case(*values) for values in itertools.product(RATES[: given.rates], QUEUES, LOSSES, DELAYS)]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        results = pool.map(measure, cases, chunksize=1)
    groups: dict[str, list[Result]] = {}
    for rate, loss in itertools.product(RATES[: given.rates], LOSSES):
        name = f"{rate:,} answers a second, {loss * 100:.0f} % lost"
        groups[name] = [each for each in results if (each.case.rate, each.case.loss) == (rate, loss)]
    for name, group in groups.items():
        record("simulated resolvers, domains without an answer", name, (each.unknown * 100 for each in group), "%")
    for name, group in groups.items():
        record("simulated resolvers, queries a domain", name, (each.queries for each in group), "queries")
    for name, group in groups.items():
        record("simulated resolvers, time compared with the ideal", name, (each.slowdown for each in group), "times")


if __name__ == "__main__":
    main()
