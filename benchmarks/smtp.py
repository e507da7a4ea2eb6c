"""Mailboxes a second: `verify(..., "smtp")` beside one session for every address.

10,000 addresses on 200 exchanges, 60 % of them at ten exchanges, one in five an unknown user; every reply comes 25 ms
after its command, and an exchange takes two sessions at once. The peers are smtplib and py3-validate-email in 64
threads and aiosmtplib in 200 tasks; they know the exchanges' addresses. Ours asks the DNS, and one random address for
each domain beyond what the peers ask. All must accept the same addresses.

Then, without any delay: recipients a second in one process, of 10,000 and 100,000 addresses. And the peak of memory
when 200,000 addresses wait.

Run it as ``python -m benchmarks smtp``. ``--quick`` has a tenth of the addresses, and each exchange costs a greeting,
however few its addresses.
"""

from __future__ import annotations

import multiprocessing
import random
import resource
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import NamedTuple

import pandas as pd

import mailverdict as mv

from .figures import OURS, read_options, record
from .smtp_peers import Codes, Queues, ask_aiosmtplib, ask_py3_validate_email, ask_smtplib, has_py3_validate_email
from .smtp_stub import SESSIONS_PER_EXCHANGE, Manners, Stub, domain_of, host_of, run_stub

EXCHANGES = 200
BIG, BIG_SHARE, UNKNOWN_SHARE = 10, 0.6, 0.2
DELAY = 0.025
RATE_EXCHANGES = 100
MIB = 1 << 20


@dataclass(frozen=True)
class Scenario:
    """How the servers behave."""

    name: str
    manners: Manners


class Place(NamedTuple):
    """Where a stub is, for a process that does not control it."""

    port: int
    resolver: str


SCENARIOS = (
    Scenario("refusals punished, PIPELINING everywhere", Manners(DELAY, punishes=True)),
    Scenario("refusals punished, PIPELINING at 70 %", Manners(DELAY, punishes=True, pipelining=0.7)),
    Scenario("no punishment, PIPELINING everywhere", Manners(DELAY)),
    Scenario("no punishment, PIPELINING at 70 %", Manners(DELAY, pipelining=0.7)),
)


@dataclass
class Measured:
    """What one contestant needed in one scenario."""

    seconds: list[float] = field(default_factory=list)
    sessions: list[int] = field(default_factory=list)


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


def compare_speed(queues: Queues, rounds: int) -> None:
    """Run all scenarios."""
    column = flatten(queues)
    with run_stub(EXCHANGES) as stub:
        ceiling = measure_ceiling(stub, Manners(DELAY))
        record("recipients on one session, each reply after 25 ms", "stub of mail servers", [ceiling], "recipients/s")
        for scenario in SCENARIOS:
            compare_scenario(stub, scenario, queues, column, rounds)


def compare_scenario(stub: Stub, scenario: Scenario, queues: Queues, column: list[str], rounds: int) -> None:
    """Run the contestants in turn; the peers, which take long, only in the first round."""
    contestants: dict[str, Contestant] = {
        OURS: lambda: ask_ours(stub, column),
        "smtplib, 64 threads": lambda: ask_smtplib(stub.port, queues),
        "aiosmtplib, 200 tasks": lambda: ask_aiosmtplib(stub.port, queues),
    }
    if has_py3_validate_email():
        contestants["py3-validate-email, 64 threads"] = lambda: ask_py3_validate_email(stub.port, queues)
    measured = {name: Measured() for name in contestants}
    for number in range(rounds):
        for name, contestant in contestants.items():
            if name == OURS or number == 0:
                check_answers(name, measure(stub, scenario, contestant, measured[name]), column)
    for name, each in measured.items():
        record(f"mailboxes by smtp: {scenario.name}", name, each.seconds, size=len(column))
    for name, each in measured.items():
        record(f"sessions by smtp: {scenario.name}", name, each.sessions, "sessions", len(column))


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


def measure_rate(addresses: int, rounds: int) -> None:
    """Recipients a second with no delay: all known, and one in five unknown."""
    with run_stub(RATE_EXCHANGES) as stub:
        ceiling = measure_ceiling(stub, Manners())
        record("recipients on one session, no delay", "stub of mail servers", [ceiling], "recipients/s")
        for share in (0.0, UNKNOWN_SHARE):
            for size in (addresses // 10, addresses):
                rates = measure_rates(stub, size, share, rounds)
                record(
                    f"recipients without delay, {share * 100:.0f} % unknown users", OURS, rates, "recipients/s", size
                )


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


def measure_memory(addresses: int) -> None:
    """Peak memory of a process that plans so many addresses and asks about them, in MiB."""
    with run_stub(EXCHANGES) as stub:
        ours, theirs = multiprocessing.Pipe()
        child = (stub.port, stub.resolver, addresses, theirs)
        process = multiprocessing.get_context("spawn").Process(target=plan_in_child, args=child)
        process.start()
        before, peak = ours.recv()
        process.join()
    record("peak memory of the process, by smtp", OURS, [peak], "MiB", addresses)
    record("peak memory of the process, by smtp", "libraries and column alone", [before], "MiB", addresses)


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
    given = read_options(__doc__, addresses=(10_000, 1_000), rounds=(3, 1))
    compare_speed(make_queues(given.addresses, EXCHANGES), given.rounds)
    measure_rate(10 * given.addresses, given.rounds)
    measure_memory(20 * given.addresses)


if __name__ == "__main__":
    main()
