"""DNS look-ups through slow and lossy resolvers in virtual time: unknown domains, queries, and time against the ideal.

The scheduler is the real one; the resolvers are simulated. The ideal is the time of a client that knows the resolver.
With ``--against FOLDER`` (the ``src`` of another version) both versions also look up 20,000 domains in turn, through
a resolver on loopback that answers each query after 20 ms.

Run it as ``python -m benchmarks.congestion``. With ``--write`` the table in ``docs/explanation/dns.md`` is replaced.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.doubles.simulated_resolvers import SimulatedResolver, simulate

from .lookups import responder

RATES = (50, 200, 1000, 5000)  # answers a second
QUEUES = (20, 50, 500)  # queries
LOSSES = (0.0, 0.05, 0.2)
DELAYS = (0.001, 0.05, 0.2)  # seconds there and back
QUESTIONS = 4000, 4  # at least, and seconds of the rate
UNKNOWN, SLOWDOWN, QUERIES = 0.01, 2.0, 1.3  # goals: at most
WORST_SLOWDOWN = 3.0  # the exit status is 1 beyond it
PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "dns.md"
MARKS = "<!-- simulated -->", "<!-- end of simulated -->"
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

    @property
    def reaches_goals(self) -> bool:
        return self.unknown <= UNKNOWN and self.queries <= QUERIES and self.slowdown <= SLOWDOWN


def measure(case: Case) -> Result:
    resolver = SimulatedResolver(case.rate, case.queue, case.loss, case.delay)
    least, seconds = QUESTIONS
    questions = max(least, int(seconds * case.rate))
    run = simulate([resolver], questions)
    slowdown = run.seconds / resolver.ideal_seconds(questions)
    return Result(case, run.unknown / questions, run.queries / questions, slowdown)


def table(results: Sequence[Result]) -> Iterator[str]:
    """The lines of a Markdown table, a row for each rate and loss."""
    yield "| answers a second | loss | most unknown | queries a domain: median, most | time: median, most | in bounds |"
    yield "|---|---|---|---|---|---|"
    for rate, loss in itertools.product(RATES, LOSSES):
        group = [each for each in results if (each.case.rate, each.case.loss) == (rate, loss)]
        unknown = max(each.unknown for each in group)
        pairs = [[each.queries for each in group], [each.slowdown for each in group]]
        figures = [f"{statistics.median(pair):.2f}, {max(pair):.2f}" for pair in pairs]
        reached = f"{sum(each.reaches_goals for each in group)} of {len(group)}"
        yield f"| {' | '.join([f'{rate:,}', f'{loss:.0%}', f'{unknown:.2%}', *figures, reached])} |"


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
    cases = [Case(*values) for values in itertools.product(RATES, QUEUES, LOSSES, DELAYS)]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        results = pool.map(measure, cases, chunksize=1)
    lines = list(table(results))
    print("\n".join(lines))
    reached = sum(each.reaches_goals for each in results)
    print(f"{reached} of {len(results)} reach the goals: unknown {UNKNOWN:.0%}, time {SLOWDOWN:g}, queries {QUERIES:g}")
    for each in results:
        if not each.reaches_goals:
            print(f"{each.case}: unknown {each.unknown:.2%}, time {each.slowdown:.2f}, queries {each.queries:.3f}")
    if "--write" in sys.argv:
        text = PAGE.read_text(encoding="utf-8")
        begin, end = (text.index(mark) for mark in MARKS)
        PAGE.write_text(text[:begin] + "\n".join([MARKS[0], "", *lines, "", ""]) + text[end:], encoding="utf-8")
    if "--against" in sys.argv:
        compare_fast(str(Path(sys.argv[sys.argv.index("--against") + 1]).resolve()))
    sys.exit(any(each.unknown > UNKNOWN or each.slowdown > WORST_SLOWDOWN for each in results))


if __name__ == "__main__":
    main()
