"""Worlds and columns for the tests on real engines, and what their servers must have counted.

A busy machine answers late, and the DNS client sends a query again whose answer is overdue. So
these tests do not count the queries about a domain but the processes that sent them, each of which
has one socket. Two processes are two tasks.
"""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dns.message
import pandas as pd
import psutil
import pytest

from mailverdict import Progress
from mailverdict.checks.dns.retry import QUESTIONS_PER_SOCKET
from mailverdict.sandbox import World
from mailverdict.sandbox.dns import DnsServer
from mailverdict.sandbox.dns_table import DomainRecords, ZoneTable, plain_name
from mailverdict.sandbox.smtp_script import Exchange

pytestmark = pytest.mark.clusters
DELAY = 0.4  # seconds of a DNS answer while workers are killed
ROUND_TRIP = 0.1  # seconds of a reply of a mail server then
DOMAINS = 240
CONCURRENCY = 16  # DNS questions at once, in the whole cluster
OWNERS = 6  # mail servers that take a while for each reply
UNWRITTEN = 2.0  # seconds of work that a lost task may repeat
REPEATED_DOMAINS = int(UNWRITTEN * CONCURRENCY / 2 / DELAY)  # by one of two tasks
REPEATED_RCPTS = int(UNWRITTEN * 2 * OWNERS / ROUND_TRIP)  # two sessions with each mail server


def pytest_collection_modifyitems(items):
    for item in items:
        if "clusters" in item.path.parts:
            item.add_marker(pytest.mark.clusters)
            item.add_marker(pytest.mark.filterwarnings("default"))
            # A busy machine needs minutes to start an engine.
            item.add_marker(pytest.mark.timeout(900))


class WatchedServer(DnsServer):
    """A DNS server that notes from which sockets each domain was asked about."""

    def __init__(self, table: ZoneTable) -> None:
        super().__init__({})
        self._table = table
        self.sockets: dict[str, set[tuple[str, int]]] = defaultdict(set)

    def receive(self, packet: bytes, source: tuple[str, int]) -> None:
        query = dns.message.from_wire(packet)
        name = plain_name(query.question[0].name.to_text())
        self.sockets[name].add(source)
        super().receive(packet, source)


class WatchedWorld(World):
    """A world with that server, and so few queries under way that a process needs one socket."""

    def __init__(self, zones: dict[str, DomainRecords] | None = None, **options: Any) -> None:
        assert CONCURRENCY <= QUESTIONS_PER_SOCKET
        super().__init__(zones, dns_concurrency=CONCURRENCY, **options)
        self.dns: WatchedServer = WatchedServer(self.dns._table)


def check_counts(world: WatchedWorld, names: list[str], *, repeated: int = 0) -> None:
    """Each domain was asked about by one process; `repeated` times by another one, too.

    No mail server had more sessions than allowed.
    """
    processes = [len(world.dns.sockets[name]) for name in names]
    assert min(processes, default=1) >= 1
    assert sum(processes) - len(names) <= repeated
    limit = world.backend.settings.max_sessions_per_exchange
    assert {
        host: world.smtp.stats(host).most_open
        for host in world.smtp.exchanges
        if over(world, host, limit)
    } == {}


def over(world: World, host: str, limit: int) -> bool:
    return world.smtp.stats(host).most_open > limit


def rcpts_of(world: World) -> list[int]:
    """How often each recipient was asked about."""
    return [
        count for host in world.smtp.exchanges for count in world.smtp.stats(host).rcpts.values()
    ]


def is_asking(process: psutil.Process, world: World) -> bool:
    """Whether a process, or one of its children, has a session with a mail server."""
    port = world.backend.settings.smtp_port
    try:
        every = [process, *process.children(recursive=True)]
        return any(
            each.raddr and each.raddr.port == port
            for one in every
            for each in one.net_connections("tcp")
        )
    except psutil.NoSuchProcess:
        return False


class Killer:
    """A listener that kills a worker process once the stage has settled keys."""

    def __init__(self, stage: str, world: World, pids: Callable[[], list[int]]) -> None:
        self.stage, self.world, self.pids = stage, world, pids
        self.killed: list[int] = []

    def __call__(self, progress: Progress) -> None:
        if (
            self.killed
            or progress.message != f"stage {self.stage}"
            or not 100 <= progress.settled < progress.total
        ):
            return
        for pid in sorted(self.pids()):
            if self.stage == "domains" or is_asking(psutil.Process(pid), self.world):
                os.kill(pid, signal.SIGKILL)
                self.killed.append(pid)
                return


@contextmanager
def slow_world(
    *, dns_delay: float = 0.02, round_trip: float = 0.02
) -> Iterator[tuple[WatchedWorld, pd.DataFrame]]:
    """A world in which a column takes seconds: slow answers about domains, slow mail servers.

    Every second domain has a second exchange, of the owner of the next: so that all owners share
    domains in a ring.
    """
    names = [f"mx.owner{at}.example" for at in range(OWNERS)]
    exchanges = [
        Exchange(name, "slow", mailboxes=None, delay=round_trip, extensions=()) for name in names
    ]
    zones = {}
    for at in range(DOMAINS):
        second = (
            f"20 mx.owner{(at + 1) % OWNERS}.example"
            if at % 2
            else f"20 mx.owner{at % OWNERS}.example"
        )
        records = (f"10 mx.owner{at % OWNERS}.example", second)
        zones[f"d{at}.example"] = DomainRecords(
            {"MX": tuple(dict.fromkeys(records))}, delay=dns_delay
        )
    emails = [f"user{row}@d{row % DOMAINS}.example" for row in range(3 * DOMAINS)]
    # Without the resolver's test: after its fast answers the slow ones would be overdue.
    settings = {"resolver_check": False, "catch_all_probe": False}
    # And with time-outs that a busy machine keeps: after one a recipient would be asked again.
    settings |= {
        "deadline": 600.0,
        "session_deadline": 600.0,
        "connect_timeout": 30.0,
        "command_timeout": 60.0,
    }
    with WatchedWorld(zones, exchanges=exchanges, dns_timeout=5.0, **settings) as world:
        yield world, pd.DataFrame({"row": range(len(emails)), "email": emails})
