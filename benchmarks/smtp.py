"""Mailboxes a second: `verify(..., "smtp")` beside one session for every address.

10,000 addresses on 200 exchanges, 60 % of them at ten exchanges, one in five an unknown user; every
reply comes 25 ms after its command, and an exchange takes two sessions at once. The peers are
smtplib and py3-validate-email in 64 threads and aiosmtplib in 200 tasks; they know the exchanges'
addresses. Ours asks the DNS, and one random address for each domain beyond what the peers ask. All
must accept the same addresses.

Run it as ``python -m benchmarks smtp``. ``--quick`` has a tenth of the addresses, and each exchange
costs a greeting, however few its addresses.
"""

from __future__ import annotations

import random
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice

import pandas as pd

import mailverdict as mv

from .figures import OURS, read_options, record
from .smtp_peers import Codes, Queues, ask_aiosmtplib, ask_py3_validate_email, ask_smtplib
from .smtp_stub import SESSIONS_PER_EXCHANGE, Manners, Stub, domain_of, host_of, run_stub

EXCHANGES = 200
BIG, BIG_SHARE, UNKNOWN_SHARE = 10, 0.6, 0.2
DELAY = 0.025
SCENARIOS = {
    "refusals punished, PIPELINING everywhere": Manners(DELAY, punishes=True),
    "refusals punished, PIPELINING at 70 %": Manners(DELAY, punishes=True, pipelining=0.7),
    "no punishment, PIPELINING everywhere": Manners(DELAY),
    "no punishment, PIPELINING at 70 %": Manners(DELAY, pipelining=0.7),
}


@dataclass
class Measured:
    """What one contestant needed in one scenario."""

    seconds: list[float] = field(default_factory=list)
    sessions: list[int] = field(default_factory=list)


def make_queues(addresses: int) -> Queues:
    """Addresses by exchange, shuffled; the same every time."""
    large = round(addresses * BIG_SHARE)
    counts = Counter(n % BIG for n in range(large))
    counts.update(BIG + n % (EXCHANGES - BIG) for n in range(addresses - large))
    missing = set(random.Random(7).sample(range(addresses), round(addresses * UNKNOWN_SHARE)))
    numbers = iter(range(addresses))
    return {
        exchange: [
            f"{'no' if n in missing else 'user'}{n}@{domain_of(exchange)}"
            for n in islice(numbers, count)
        ]
        for exchange, count in sorted(counts.items())
    }


def flatten(queues: Queues) -> list[str]:
    """All addresses in one column, as it comes: not by exchange."""
    column = [address for queue in queues.values() for address in queue]
    random.Random(11).shuffle(column)
    return column


def make_backend(stub: Stub) -> mv.LocalBackend:
    """A fresh backend with default limits, pointed at the stub."""
    return mv.LocalBackend(
        resolver=stub.resolver,
        resolver_check=False,  # it knows only the domains of the measurement
        smtp_port=stub.port,
        helo_name="bench.example",
        allow_networks=["127.0.0.0/8"],
        max_sessions_per_exchange=SESSIONS_PER_EXCHANGE,
    )


def verify(stub: Stub, column: list[str]) -> pd.DataFrame:
    """Ours, as users call it."""
    return mv.verify(
        column, validation_type="smtp", backend=make_backend(stub), journal=None, progress=False
    )


def ask_ours(stub: Stub, column: list[str]) -> Codes:
    """Ours, in the terms of the peers; an address that was not settled has no code."""
    out = verify(stub, column)
    codes = {"valid": 250, "invalid": 550}
    return {
        address: codes.get(str(verdict), 0)
        for address, verdict in zip(column, out["verdict"], strict=True)
    }


Contestant = Callable[[], Codes]


def measure(stub: Stub, manners: Manners, contestant: Contestant, into: Measured) -> Codes:
    """Run a contestant once."""
    stub.set_manners(manners)
    start = time.perf_counter()
    codes = contestant()
    into.seconds.append(time.perf_counter() - start)
    counts = stub.read_counts()
    into.sessions.append(counts["sessions"])
    check_conduct(counts)
    return codes


def check_conduct(counts: Counter[str]) -> None:
    """Fail if a client opened too many sessions, sent a command too early or a message, or closed without QUIT."""
    ill = (
        "sessions beyond the limit",
        "commands sent too early",
        "messages",
        "sessions without QUIT",
    )
    broken = {name: counts[name] for name in ill if counts[name]}
    if broken:
        sys.exit(f"the exchanges complain: {broken}")


def check_answers(name: str, codes: Codes, column: list[str]) -> None:
    """Fail if a reply code is not the expected one."""
    expected = {address: 250 if address.startswith("user") else 550 for address in column}
    wrong = Counter(
        f"{code} as {codes.get(each, 0)}"
        for each, code in expected.items()
        if codes.get(each) != code
    )
    if wrong:
        sys.exit(f"{name} gives wrong answers: {dict(wrong)}")


def compare_speed(queues: Queues, rounds: int) -> None:
    """Run all scenarios."""
    column = flatten(queues)
    with run_stub(EXCHANGES) as stub:
        ceiling = measure_ceiling(stub, Manners(DELAY))
        record(
            "recipients on one session, each reply after 25 ms",
            "stub of mail servers",
            [ceiling],
            "recipients/s",
        )
        for name in SCENARIOS:
            compare_scenario(stub, name, queues, column, rounds)


def compare_scenario(
    stub: Stub, scenario: str, queues: Queues, column: list[str], rounds: int
) -> None:
    """Run the contestants in turn; the peers, which take long, only in the first round."""
    contestants: dict[str, Contestant] = {
        OURS: lambda: ask_ours(stub, column),
        "smtplib, 64 threads": lambda: ask_smtplib(stub.port, queues),
        "aiosmtplib, 200 tasks": lambda: ask_aiosmtplib(stub.port, queues),
        "py3-validate-email, 64 threads": lambda: ask_py3_validate_email(stub.port, queues),
    }
    measured = {name: Measured() for name in contestants}
    for number in range(rounds):
        for name, contestant in contestants.items():
            if name == OURS or number == 0:
                check_answers(
                    name, measure(stub, SCENARIOS[scenario], contestant, measured[name]), column
                )
    for name, each in measured.items():
        record(f"mailboxes by smtp: {scenario}", name, each.seconds, size=len(column))
    for name, each in measured.items():
        record(f"sessions by smtp: {scenario}", name, each.sessions, "sessions", len(column))


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


def main() -> None:
    given = read_options(__doc__, addresses=(10_000, 1_000), rounds=(3, 1))
    compare_speed(make_queues(given.addresses), given.rounds)


if __name__ == "__main__":
    main()
