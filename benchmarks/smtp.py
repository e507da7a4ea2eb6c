"""Mailboxes a second: `verify(..., "smtp")` beside one session for every address.

10,000 addresses on 200 exchanges, 60 % of them at ten exchanges, one in five an unknown user; every reply comes
25 ms after its command, and an exchange takes two sessions at once. The peers are smtplib and py3-validate-email in 64
threads and aiosmtplib in 200 tasks; they know the exchanges' addresses. Ours asks the DNS, and one random address for
each domain beyond what the peers ask. All must accept the same addresses.

Then, without any delay: recipients a second in one process. And the peak of memory when 200,000 addresses wait.

Run it as ``python -m benchmarks.smtp``; ``--quick`` takes a fifth of the addresses and one round, which shows
that everything works but not how fast it is: each exchange costs a greeting, however few its addresses.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import resource
import socket
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import NamedTuple

import pandas as pd

import mailverdict as mv

from .figures import OURS, record
from .smtp_peers import Codes, Queues, ask_aiosmtplib, ask_py3_validate_email, ask_smtplib, has_py3_validate_email
from .smtp_stub import SESSIONS_PER_EXCHANGE, Manners, Stub, domain_of, host_of, run_stub

ADDRESSES, EXCHANGES, ROUNDS = 10_000, 200, 3
BIG, BIG_SHARE, UNKNOWN_SHARE = 10, 0.6, 0.2
DELAY = 0.025
SESSIONS_GOAL = 15
RATE_ADDRESSES, RATE_EXCHANGES, RATE_GOAL = 100_000, 100, 15_000
MEMORY_ADDRESSES, MEMORY_GOAL = 200_000, 500
BEST_PEER = "aiosmtplib, 200 tasks"
MIB = 1 << 20


@dataclass(frozen=True)
class Scenario:
    """How the servers behave, and how many times faster than aiosmtplib is demanded."""

    name: str
    manners: Manners
    goal: float | None


class Place(NamedTuple):
    """Where a stub is, for a process that does not control it."""

    port: int
    resolver: str


SCENARIOS = (
    Scenario("refusals punished, PIPELINING everywhere", Manners(DELAY, punishes=True), 13),
    Scenario("refusals punished, PIPELINING at 70 %", Manners(DELAY, punishes=True, pipelining=0.7), 5),
    Scenario("no punishment, PIPELINING everywhere", Manners(DELAY), 60),
    Scenario("no punishment, PIPELINING at 70 %", Manners(DELAY, pipelining=0.7), None),
)


@dataclass
class Measured:
    """What one contestant needed in one scenario."""

    seconds: list[float] = field(default_factory=list)
    sessions: list[int] = field(default_factory=list)

    def describe(self) -> str:
        """Median, spread and sessions, for a line of the report."""
        spread = f"({min(self.seconds):.2f}-{max(self.seconds):.2f})" if len(self.seconds) > 1 else "(once)"
        return f"{statistics.median(self.seconds):8.2f} s {spread:14} {statistics.median(self.sessions):8,.0f} sessions"


def make_queues(addresses: int, exchanges: int, *, big: int = BIG, unknown: float = UNKNOWN_SHARE) -> Queues:
    """Addresses by exchange, shuffled; the same every time."""
    rng = random.Random(7)
    large = round(addresses * BIG_SHARE) if big else 0
    counts = Counter(n % big for n in range(large))
    counts.update(big + n % (exchanges - big) for n in range(addresses - large))
    missing = set(rng.sample(range(addresses), round(addresses * unknown)))
    numbers: Iterator[int] = iter(range(addresses))
    return {
        exchange: [f"{'no' if n in missing else 'user'}{n}@{domain_of(exchange)}" for n in next_of(numbers, count)]
        for exchange, count in sorted(counts.items())
    }


def next_of(numbers: Iterator[int], count: int) -> list[int]:
    """The next so many."""
    return [next(numbers) for _ in range(count)]


def flatten(queues: Queues) -> list[str]:
    """All addresses in one column, as it comes: not by exchange."""
    column = [address for queue in queues.values() for address in queue]
    random.Random(11).shuffle(column)
    return column


def make_backend(stub: Stub | Place) -> mv.LocalBackend:
    """A fresh backend with default limits, pointed at the stub."""
    return mv.LocalBackend(
        resolver=stub.resolver,
        resolver_check=False,  # it knows only the domains of the measurement
        smtp_port=stub.port,
        helo_name="bench.example",
        allow_networks=["127.0.0.0/8"],
        max_sessions_per_exchange=SESSIONS_PER_EXCHANGE,
    )


def verify(stub: Stub | Place, column: list[str]) -> pd.DataFrame:
    """Ours, as users call it."""
    return mv.verify(column, validation_type="smtp", backend=make_backend(stub), journal=None, progress=False)


def ask_ours(stub: Stub, column: list[str]) -> Codes:
    """Ours, in the terms of the peers; an address that was not settled has no code."""
    out = verify(stub, column)
    codes = {"valid": 250, "invalid": 550}
    return {address: codes.get(str(verdict), 0) for address, verdict in zip(column, out["verdict"], strict=True)}


Contestant = Callable[[], Codes]


def measure(stub: Stub, scenario: Scenario, contestant: Contestant, into: Measured) -> Codes:
    """Run a contestant once."""
    stub.set_manners(scenario.manners)
    start = time.perf_counter()
    codes = contestant()
    into.seconds.append(time.perf_counter() - start)
    counts = stub.read_counts()
    into.sessions.append(counts["sessions"])
    check_conduct(counts)
    return codes


def check_conduct(counts: Counter[str]) -> None:
    """Fail if a client opened too many sessions, sent a command too early or a message, or closed without QUIT."""
    ill = ("sessions beyond the limit", "commands sent too early", "messages", "sessions without QUIT")
    broken = {name: counts[name] for name in ill if counts[name]}
    if broken:
        sys.exit(f"the exchanges complain: {broken}")


def check_answers(name: str, codes: Codes, column: list[str]) -> None:
    """Fail if a reply code is not the expected one."""
    expected = {address: 250 if address.startswith("user") else 550 for address in column}
    wrong = Counter(f"{code} as {codes.get(each, 0)}" for each, code in expected.items() if codes.get(each) != code)
    if wrong:
        sys.exit(f"{name} gives wrong answers: {dict(wrong)}")


def compare_speed(queues: Queues, rounds: int) -> bool:
    """Run all scenarios; whether every goal is met."""
    column = flatten(queues)
    with run_stub(EXCHANGES) as stub:
        ceiling = measure_ceiling(stub, Manners(DELAY))
        print(f"the stub's ceiling, every reply after 25 ms: {ceiling:,.0f} recipients a second on one session")
        met = [compare_scenario(stub, scenario, queues, column, rounds) for scenario in SCENARIOS]
    return all(met)


def compare_scenario(stub: Stub, scenario: Scenario, queues: Queues, column: list[str], rounds: int) -> bool:
    """Run the contestants in turn; the peers, which take long, only in the first round."""
    contestants: dict[str, Contestant] = {
        OURS: lambda: ask_ours(stub, column),
        "smtplib, 64 threads": lambda: ask_smtplib(stub.port, queues),
        BEST_PEER: lambda: ask_aiosmtplib(stub.port, queues),
    }
    if has_py3_validate_email():
        contestants["py3-validate-email, 64 threads"] = lambda: ask_py3_validate_email(stub.port, queues)
    measured = {name: Measured() for name in contestants}
    print(f"\n{scenario.name}: {len(column):,} addresses, {len(queues)} exchanges")
    for number in range(rounds):
        for name, contestant in contestants.items():
            if name == OURS or number == 0:
                check_answers(name, measure(stub, scenario, contestant, measured[name]), column)
    return report_scenario(scenario, measured)


def report_scenario(scenario: Scenario, measured: dict[str, Measured]) -> bool:
    """Print times, sessions and ratios; whether the goals are met."""
    for name, each in measured.items():
        record(f"mailboxes by smtp: {scenario.name}", name, each.seconds, size=ADDRESSES)
        record(f"sessions by smtp: {scenario.name}", name, each.sessions, "sessions", ADDRESSES)
        print(f"  {name:30} {each.describe()}")
    ours, peer = measured[OURS], measured[BEST_PEER]
    faster = statistics.median(peer.seconds) / statistics.median(ours.seconds)
    fewer = statistics.median(peer.sessions) / statistics.median(ours.sessions)
    goal = f"the goal is {scenario.goal:g}" if scenario.goal else "no goal is set"
    print(f"  {faster:.1f} times as fast as {BEST_PEER}; {goal}")
    print(f"  {fewer:.1f} times fewer sessions; the goal is {SESSIONS_GOAL}")
    return faster >= (scenario.goal or 0) and fewer >= SESSIONS_GOAL


def measure_ceiling(stub: Stub, manners: Manners) -> float:
    """Recipients a second that one exchange answers to a client that sends and counts, nothing else."""
    count, probe = 50_000, b"RCPT TO:<user1@firm-0.example>\r\n"
    stub.set_manners(manners)
    start = time.perf_counter()
    with socket.create_connection((host_of(0), stub.port)) as client:
        client.settimeout(30)
        client.sendall(b"EHLO bench.example\r\nMAIL FROM:<>\r\n")
        lines, sent = 0, 0
        while lines < count:
            if sent < count and sent - lines < 2000:
                client.sendall(probe * 1000)
                sent += 1000
            lines += client.recv(1 << 18).count(b"\n")
        client.sendall(b"QUIT\r\n")
    return count / (time.perf_counter() - start)


def measure_rate(addresses: int, rounds: int) -> bool:
    """Recipients a second with no delay: all known, and one in five unknown."""
    print(f"\nno delay, no punishment: {addresses:,} addresses at {RATE_EXCHANGES} exchanges, one process")
    with run_stub(RATE_EXCHANGES) as stub:
        print(f"  the stub's ceiling        {measure_ceiling(stub, Manners()):10,.0f} recipients a second")
        rates = {share: measure_rates(stub, addresses, share, rounds) for share in (0.0, UNKNOWN_SHARE)}
    for share, each in rates.items():
        record(f"recipients without delay, {share:.0%} unknown users", OURS, each, "recipients/s", addresses)
        spread = f"({min(each):,.0f}-{max(each):,.0f})"
        print(f"  {share:4.0%} unknown users       {statistics.median(each):10,.0f} recipients a second {spread}")
    print(f"  the goal, for the first of these, is {RATE_GOAL:,}")
    return statistics.median(rates[0.0]) >= RATE_GOAL


def measure_rates(stub: Stub, addresses: int, unknown: float, rounds: int) -> list[float]:
    """One rate for each round."""
    column = flatten(make_queues(addresses, RATE_EXCHANGES, big=0, unknown=unknown))
    rates = []
    for _ in range(rounds):
        stub.set_manners(Manners())
        start = time.perf_counter()
        out = verify(stub, column)
        rates.append(stub.read_counts()["recipients"] / (time.perf_counter() - start))
        assert set(out["verdict"]) <= {"valid", "invalid"}, out["reasons"].value_counts()
        check_conduct(stub.read_counts())
    return rates


def measure_memory(addresses: int) -> bool:
    """Peak memory of a process that plans so many addresses and asks about them, in MiB."""
    with run_stub(EXCHANGES) as stub:
        ours, theirs = multiprocessing.Pipe()
        child = (stub.port, stub.resolver, addresses, theirs)
        process = multiprocessing.get_context("spawn").Process(target=plan_in_child, args=child)
        process.start()
        before, peak = ours.recv()
        process.join()
    record("peak memory of the process, by smtp", OURS, [peak], "MiB", addresses)
    print(f"\n{addresses:,} addresses at {EXCHANGES} exchanges: a peak of {peak:.0f} MiB; the goal is {MEMORY_GOAL}")
    print(f"  the libraries and the column alone take {before:.0f} MiB")
    return peak < MEMORY_GOAL


def plan_in_child(port: int, resolver: str, addresses: int, control: Connection) -> None:
    """Do it in a process that has done nothing else."""
    column = flatten(make_queues(addresses, EXCHANGES))
    before = peak_memory()
    out = verify(Place(port, resolver), column)
    assert set(out["verdict"]) <= {"valid", "invalid"}
    control.send((before, peak_memory()))


def peak_memory() -> float:
    """Most resident memory so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a fifth of the addresses, one round")
    parser.add_argument("--only", choices=("speed", "rate", "memory"), help="one of the three parts")
    chosen = parser.parse_args()
    rounds, part = (1, 5) if chosen.quick else (ROUNDS, 1)
    parts: dict[str, Callable[[], bool]] = {
        "speed": lambda: compare_speed(make_queues(ADDRESSES // part, EXCHANGES), rounds),
        "rate": lambda: measure_rate(RATE_ADDRESSES // part, rounds),
        "memory": lambda: measure_memory(MEMORY_ADDRESSES),
    }
    others = f"{os.getloadavg()[0]:.1f} processes of others" if hasattr(os, "getloadavg") else "load unknown"
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} processors, {others}; medians of {rounds} rounds in turn")
    met = [run() for name, run in parts.items() if chosen.only in (None, name)]
    if chosen.quick:
        print("\nall answers are right; goals are for a full run")
        return
    print("\nall goals are met" if all(met) else "\nNOT all goals are met")
    sys.exit(not all(met))


if __name__ == "__main__":
    main()
