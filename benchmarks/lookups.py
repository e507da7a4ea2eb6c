"""MX look-ups a second: `Resolver.observe_domains` compared with dnspython's `dns.asyncresolver`.

20,000 unique domains, of which one in ten does not exist, and a responder in another process that
answers each query after 20 ms. dnspython runs with 50, 200 and 1,000 in flight, and the best of these
counts; both must find the same exchanges.

Run it as ``python benchmarks/lookups.py``; a smaller number of domains may be given.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import select
import socket
import statistics
import struct
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import dns.asyncresolver
import dns.resolver

from mailverdict.checks.dns.resolver import Resolver
from mailverdict.model.evidence import DnsOutcome
from mailverdict.model.settings import LocalSettings

DOMAINS = 20_000
DELAY = 0.020
ROUNDS = 3
OUR_CONCURRENCY = 1000
PEER_CONCURRENCIES = (50, 200, 1000)
GOAL = 1.7

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
        return HEADER.pack(identifier, 0x8183, 1, 0, 1, additionals) + query[HEADER.size : end] + soa + opt
    records = b"".join(
        RECORD.pack(0xC00C, 15, 1, 300, 8, preference) + b"\x03" + host + b"\xc0\x0c"
        for preference, host in ((10, b"mx1"), (20, b"mx2"))
    )
    return HEADER.pack(identifier, 0x8180, 1, 2, 0, additionals) + query[HEADER.size : end] + records + opt


def respond(listener: socket.socket) -> None:
    """Answer every query `DELAY` after its arrival, until the process ends."""
    waiting: deque[tuple[float, bytes, tuple[str, int]]] = deque()
    listener.setblocking(False)
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    while True:
        left = max(0.0, waiting[0][0] - time.monotonic()) if waiting else 1.0
        if poll.poll(left * 1000):
            receive_queries(listener, waiting)
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, packet, source = waiting.popleft()
            listener.sendto(packet, source)


def receive_queries(listener: socket.socket, waiting: deque[tuple[float, bytes, tuple[str, int]]]) -> None:
    """Receive the queries that arrived, with a limit, so that answers are sent in time."""
    for _ in range(64):
        try:
            packet, source = listener.recvfrom(512)
        except BlockingIOError:
            return
        waiting.append((time.monotonic() + DELAY, answer_to(packet), source))


@contextmanager
def responder() -> Iterator[int]:
    """Run the responder in another process; return its port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        listener.bind(("127.0.0.1", 0))
        process = multiprocessing.get_context("fork").Process(target=respond, args=(listener,), daemon=True)
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


def peer_with(concurrency: int) -> Method:
    """Dnspython with this many look-ups in flight."""

    async def look_up(port: int, domains: list[str]) -> Found:
        resolver = dns.asyncresolver.Resolver(configure=False)
        resolver.nameservers, resolver.port, resolver.lifetime = ["127.0.0.1"], port, 30.0
        found: Found = {}
        todo = iter(domains)

        async def work() -> None:
            for domain in todo:
                try:
                    answer = await resolver.resolve(domain, "MX", search=False)
                except dns.resolver.NXDOMAIN:
                    found[domain] = ()
                    continue
                pairs = sorted((r.preference, r.exchange.to_text(omit_final_dot=True)) for r in answer)
                found[domain] = tuple(pairs)

        await asyncio.gather(*(work() for _ in range(concurrency)))
        return found

    return look_up


def timed(method: Method, port: int, domains: list[str]) -> tuple[float, Found]:
    start = time.perf_counter()
    found = asyncio.run(method(port, domains))
    return len(domains) / (time.perf_counter() - start), found


def main() -> None:
    count = int(sys.argv[1]) if sys.argv[1:] else DOMAINS
    domains = [f"{'company' if number % 10 else 'gone'}-{number}.example.com" for number in range(count)]
    methods = {f"dns.asyncresolver, {n:,} in flight": peer_with(n) for n in PEER_CONCURRENCIES}
    methods[ours := f"mailverdict, {OUR_CONCURRENCY:,} in flight"] = look_up_ours
    rates: dict[str, list[float]] = {name: [] for name in methods}
    with responder() as port:
        ceiling = measure_ceiling(port, len(domains))
        print(f"{len(domains):,} unique domains, every answer after {DELAY * 1000:.0f} ms, {ROUNDS} rounds in turn")
        print(f"the responder's ceiling, {OUR_CONCURRENCY:,} in flight: {ceiling:,.0f} answers a second")
        for _ in range(ROUNDS):
            seen: list[Found] = []
            for name, method in methods.items():
                rate, found = timed(method, port, domains)
                rates[name].append(rate)
                seen.append(found)
            assert all(found == seen[0] and len(found) == len(domains) for found in seen), "the answers differ"
    for name, measured in rates.items():
        print(f"{name:40} {statistics.median(measured):8,.0f} a second ({min(measured):,.0f}-{max(measured):,.0f})")
    best = max(statistics.median(measured) for name, measured in rates.items() if name != ours)
    ratio = statistics.median(rates[ours]) / best
    print(f"{ratio:.2f} times dnspython at its best; the goal is {GOAL}")
    sys.exit(ratio < GOAL)


if __name__ == "__main__":
    main()
