"""MX look-ups a second: `Resolver.observe_domains` compared with dnspython's `dns.asyncresolver` and with aiodns.

1,000 to 100,000 unique domains, of which one in ten does not exist, and a responder in another
process that answers each query at once or after 20 ms. For each size the peers run with 50, 200 and
1,000 look-ups in flight first, and the number that is the best is compared; beyond 20,000 domains
it is that of 20,000. All must find the same exchanges. A peer that fails, as one whose queries time
out on a busy machine, is shown as failed, and the others are measured. Processor time is that of
this process. Our look-ups include what the others leave to their callers: a pace that a slow
resolver bears, repetition, and the difference between *no mail server* and *no answer*.

Run it as ``python -m benchmarks lookups``.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import select
import socket
import statistics
import struct
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import aiodns
import dns.asyncresolver
import dns.exception
import dns.resolver

from mailverdict.checks.dns.resolver import Resolver
from mailverdict.model.evidence import DnsOutcome
from mailverdict.model.settings import LocalSettings

from .figures import OURS, read_options, record

DOMAINS = 20_000  # at most, of the comparison with all numbers in flight
SIZES = (1_000, 10_000, DOMAINS, 100_000)
DELAYS = (0.0, 0.020)  # seconds
OUR_CONCURRENCY = 1000
PEER_CONCURRENCIES = (50, 200, 1000)

HEADER = struct.Struct("!HHHHHH")
OPT = bytes.fromhex("00 0029 04d0 00000000 0000")
RECORD = struct.Struct("!HHHIHH")
SOA_DATA = b"\x02ns\0\x04host\0" + struct.pack("!IIIII", 1, 3600, 600, 86_400, 300)
SOA = struct.pack("!HHIH", 6, 1, 300, len(SOA_DATA)) + SOA_DATA
Found = dict[str, tuple[tuple[int, str], ...]]
Method = Callable[[int, list[str]], Awaitable[Found]]


def answer_to(query: bytes) -> bytes:
    """Two exchanges below the domain itself, with the names compressed as servers do; or NXDOMAIN."""
    identifier, _, _, _, _, additionals = HEADER.unpack_from(query)
    end = query.index(0, HEADER.size) + 5
    opt = OPT if additionals else b""
    if query.startswith(b"gone", HEADER.size + 1):
        soa = b"\xc0" + bytes([HEADER.size + 1 + query[HEADER.size]]) + SOA
        return (
            HEADER.pack(identifier, 0x8183, 1, 0, 1, additionals)
            + query[HEADER.size : end]
            + soa
            + opt
        )
    records = b"".join(
        RECORD.pack(0xC00C, 15, 1, 300, 8, preference) + b"\x03" + host + b"\xc0\x0c"
        for preference, host in ((10, b"mx1"), (20, b"mx2"))
    )
    return (
        HEADER.pack(identifier, 0x8180, 1, 2, 0, additionals)
        + query[HEADER.size : end]
        + records
        + opt
    )


def respond(listener: socket.socket, delay: float) -> None:
    """Answer every query `delay` seconds after its arrival, until the process ends."""
    waiting: deque[tuple[float, bytes, tuple[str, int]]] = deque()
    listener.setblocking(False)
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    while True:
        left = max(0.0, waiting[0][0] - time.monotonic()) if waiting else 1.0
        if poll.poll(left * 1000):
            receive_queries(listener, waiting, delay)
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, packet, source = waiting.popleft()
            listener.sendto(packet, source)


def receive_queries(
    listener: socket.socket, waiting: deque[tuple[float, bytes, tuple[str, int]]], delay: float
) -> None:
    """Receive the queries that arrived, with a limit, so that answers are sent in time."""
    for _ in range(64):
        try:
            packet, source = listener.recvfrom(512)
        except BlockingIOError:
            return
        waiting.append((time.monotonic() + delay, answer_to(packet), source))


@contextmanager
def responder(delay: float = 0.020) -> Iterator[int]:
    """Run the responder in another process; return its port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        listener.bind(("127.0.0.1", 0))
        process = multiprocessing.get_context("fork").Process(
            target=respond, args=(listener, delay), daemon=True
        )
        process.start()
        try:
            yield listener.getsockname()[1]
        finally:
            process.terminate()
            process.join()


def measure_ceiling(port: int, count: int) -> float:
    """Answers a second that the responder gives to a client that does nothing but send and receive."""
    query = HEADER.pack(0, 0x0100, 1, 0, 0, 0) + b"\x07example\x04test\x00\x00\x0f\x00\x01"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        client.connect(("127.0.0.1", port))
        client.settimeout(2.0)
        start = time.perf_counter()
        for _ in range(OUR_CONCURRENCY):
            client.send(query)
        for received in range(count):
            client.recv(512)
            if received < count - OUR_CONCURRENCY:
                client.send(query)
        return count / (time.perf_counter() - start)


async def look_up_ours(port: int, domains: list[str]) -> Found:
    settings = LocalSettings(resolver=f"127.0.0.1:{port}", dns_concurrency=OUR_CONCURRENCY)
    resolver = Resolver(settings)
    found = {}
    async for _, seen in resolver.observe_domains(domains):
        assert seen.outcome in (DnsOutcome.MX, DnsOutcome.NXDOMAIN), seen
        found[seen.domain] = tuple((each.preference, each.host) for each in seen.exchanges)
    await resolver.aclose()
    return found


def dnspython_with(concurrency: int) -> Method:
    """Dnspython with this many look-ups in flight."""

    async def look_up(port: int, domains: list[str]) -> Found:
        resolver = dns.asyncresolver.Resolver(configure=False)
        resolver.nameservers, resolver.port, resolver.lifetime = ["127.0.0.1"], port, 30.0

        async def ask(domain: str) -> tuple[tuple[int, str], ...]:
            try:
                answer = await resolver.resolve(domain, "MX", search=False)
            except dns.resolver.NXDOMAIN:
                return ()
            return tuple(
                sorted((r.preference, r.exchange.to_text(omit_final_dot=True)) for r in answer)
            )

        return await ask_all(ask, domains, concurrency)

    return look_up


def aiodns_with(concurrency: int) -> Method:
    """Aiodns (c-ares) with this many look-ups in flight."""

    async def look_up(port: int, domains: list[str]) -> Found:
        async with aiodns.DNSResolver(
            nameservers=[f"127.0.0.1:{port}"], timeout=3.0, tries=3
        ) as resolver:

            async def ask(domain: str) -> tuple[tuple[int, str], ...]:
                try:
                    answer = await resolver.query_dns(domain, "MX")
                except aiodns.error.DNSError as error:
                    if error.args[0] != aiodns.error.ARES_ENOTFOUND:
                        raise
                    return ()
                return tuple(sorted((r.data.priority, r.data.exchange) for r in answer.answer))

            return await ask_all(ask, domains, concurrency)

    return look_up


async def ask_all(
    ask: Callable[[str], Awaitable[tuple[tuple[int, str], ...]]],
    domains: list[str],
    concurrency: int,
) -> Found:
    """Ask about all domains, so many at a time."""
    found: Found = {}
    todo = iter(domains)

    async def work() -> None:
        for domain in todo:
            found[domain] = await ask(domain)

    await asyncio.gather(*(work() for _ in range(concurrency)))
    return found


PEERS: dict[str, Callable[[int], Method]] = {"dnspython": dnspython_with, "aiodns": aiodns_with}
PEER_ERRORS = (dns.exception.DNSException, aiodns.error.DNSError)


@dataclass
class Measured:
    """Look-ups a second of wall-clock and of processor time, one for each round."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)


def compare(
    port: int, methods: dict[str, Method], domains: list[str], rounds: int
) -> dict[str, Measured]:
    """Run all methods in turn; exit if their answers differ. One that fails has no values, and no further round."""
    measured = {name: Measured() for name in methods}
    failed: set[str] = set()
    for _ in range(rounds):
        seen: list[Found] = []
        for name, method in methods.items():
            if name in failed:
                continue
            wall = time.perf_counter()
            processor = time.process_time()
            try:
                found = asyncio.run(method(port, domains))
            except PEER_ERRORS as error:
                print(f"{name} failed: {error}", flush=True)
                failed.add(name)
                measured[name] = Measured()
                continue
            measured[name].wall.append(len(domains) / (time.perf_counter() - wall))
            measured[name].processor.append(len(domains) / (time.process_time() - processor))
            seen.append(found)
        if any(found != seen[0] or len(found) != len(domains) for found in seen):
            raise SystemExit("the answers differ")
    return measured


def measure(delay: float, sizes: Sequence[int], rounds: int) -> None:
    """All sizes for one delay; the peers with the number in flight that is the best for each."""
    domains = [
        f"{'company' if number % 10 else 'gone'}-{number}.example.com"
        for number in range(sizes[-1])
    ]
    task = f"MX look-ups, answers after {delay * 1000:.0f} ms"
    best: dict[str, int] = {}
    with responder(delay) as port:
        try:
            ceiling = [measure_ceiling(port, min(DOMAINS, sizes[-1]))]
        except TimeoutError:  # the system lost a datagram, and nothing asks again
            ceiling = []
        record(f"{task}, a client that only sends and receives", "responder", ceiling, "look-ups/s")
        for size in sizes:
            if size <= DOMAINS:
                found = {name: find_best(port, name, domains[:size], rounds) for name in PEERS}
                best = {name: number for name, number in found.items() if number is not None}
            methods = {
                OURS: look_up_ours,
                **{name: PEERS[name](number) for name, number in best.items()},
            }
            measured = {name: Measured() for name in (OURS, *PEERS)}
            measured |= compare(port, methods, domains[:size], rounds)
            for name, each in measured.items():
                record(task, name, each.wall, "look-ups/s", size)
            for name, each in measured.items():
                record(f"{task}, processor time", name, each.processor, "look-ups/s", size)
            for name, number in best.items():
                record(f"{task}, number in flight", name, [number], "look-ups", size)


def find_best(port: int, name: str, domains: list[str], rounds: int) -> int | None:
    """The number in flight with which a peer is fastest and loses no answer; None if it fails with every number."""
    rates: dict[int, float] = {}
    for number in PEER_CONCURRENCIES:
        print(f"{name}, {number:,} in flight", flush=True)
        measured = compare(port, {name: PEERS[name](number)}, domains, rounds)[name]
        if measured.wall:
            rates[number] = statistics.median(measured.wall)
    return max(rates, key=rates.__getitem__, default=None)


def main() -> None:
    given = read_options(__doc__, domains=(SIZES[-1], 1_000), rounds=(3, 1))
    sizes = [size for size in SIZES if size <= given.domains] or [given.domains]
    for delay in DELAYS:
        measure(delay, sizes, given.rounds)


if __name__ == "__main__":
    main()
