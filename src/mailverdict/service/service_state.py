"""What the endpoints work with, and its life: opened before the first request, closed after the last."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from typing import Any

from ..backend import Backend
from ..local.backend import LocalBackend
from ..local.instant import Instant
from ..model.settings import LocalSettings
from ..model.verification import Verification
from .engine import VerificationEngine
from .http.limiter import RateLimiter
from .http.metrics import Metric, Metrics
from .jobs.group_committer import GroupCommitter
from .jobs.store import Operation, Purge, Store, StoreQuery, run_queries
from .jobs.worker import STORE_UNAVAILABLE, Worker
from .settings import Clock, ServiceSettings

__all__ = ["ServiceState"]

LOG = logging.getLogger(__name__)
SWEEP = 600.0  # seconds between looks for what is past its retention
DAY = 86_400.0


class ServiceState:
    """Store, engine, worker, limiter and counters of one service.

    Parameters
    ----------
    settings : ServiceSettings
        What the service goes by.
    backend : Backend or None
        What verifies; None: a `LocalBackend` with ``settings.local``.
    clock : callable
        Seconds since the epoch.
    """

    store: Store
    writes: GroupCommitter[Operation]
    reads: GroupCommitter[StoreQuery]
    engine: VerificationEngine
    instant: Instant | None  # `regex` of the local engine is settled without a batch
    worker: Worker

    def __init__(self, settings: ServiceSettings, backend: Backend | None, clock: Clock) -> None:
        self.settings = settings
        self.backend = backend
        self.clock = clock
        self.metrics = Metrics()
        self.limiter = RateLimiter(settings.rate_limit, settings.rate_burst)
        self.tasks: list[asyncio.Task[None]] = []
        self.is_open = False
        self.opening = asyncio.Lock()

    async def ensure_open(self) -> None:
        """Open, unless that is done: some servers and test transports run no lifespan."""
        if not self.is_open:
            async with self.opening:
                if not self.is_open:
                    await self.open()

    async def open(self) -> None:
        """Take the store, see what an earlier process left to do, and begin to work."""
        backend = self.backend or LocalBackend(**settings_of(self.settings.local))
        self.store = Store(self.settings.store)
        try:
            await self.begin(backend)
        except BaseException:
            self.store.close()
            raise

    async def begin(self, backend: Backend) -> None:
        """Everything that works on the store."""
        self.store.recover(self.clock())
        self.writes = GroupCommitter(self.store.commit, name="mailverdict-store-writer")
        self.reads = GroupCommitter(partial(run_queries, self.store.reader), name="mailverdict-store-reader")
        self.engine = VerificationEngine(backend, check_timeout=self.settings.seconds("check_timeout"))
        self.instant = Instant(backend.settings.lists) if isinstance(backend, LocalBackend) else None
        self.worker = Worker(
            self.writes, self.reads, self.engine, self.settings, clock=self.clock, on_end=self.count_end
        )
        await self.worker.load()
        self.tasks = [asyncio.create_task(self.worker.run()), asyncio.create_task(self.sweep())]
        self.is_open = True

    async def close(self) -> None:
        """Stop working, write what is to be written, and let go of everything."""
        if not self.is_open:
            return
        self.is_open = False
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.worker.aclose()
        await self.engine.aclose()
        for thread in (self.writes, self.reads):
            await thread.aclose()
        self.store.close()

    def is_working(self) -> bool:
        """Whether nothing that should run has stopped."""
        return self.is_open and not any(task.done() for task in self.tasks)

    async def sweep(self) -> None:
        """Remove what is past its retention, again and again."""
        while True:
            try:
                await self.purge()
            except STORE_UNAVAILABLE:  # the next look may find the store again
                LOG.exception("old jobs could not be removed")
            await asyncio.sleep(SWEEP)

    async def purge(self) -> int:
        """Remove ended jobs and quota days that are over; give the number of jobs."""
        now = self.clock()
        ended_before = now - self.settings.seconds("result_retention")
        gone: int = await self.writes.ask(Purge(ended_before, self.settings.day_of(now - DAY)))
        return gone

    def count_end(self, status: str, verification: Verification | None) -> None:
        """A job has ended."""
        self.metrics.jobs[status] += 1
        if verification is not None:
            self.metrics.verdicts["bulk", verification.validation_type, verification.result] += 1

    def gauges(self) -> Iterator[Metric]:
        """What is not counted but looked at."""
        depth = self.worker.depth
        states = (("waiting", depth.waiting), ("verifying", depth.verifying), ("postponed", depth.postponed))
        jobs = [("", (("state", name),), count) for name, count in states]
        yield Metric("jobs", "gauge", "Jobs that have not ended.", jobs)
        yield Metric("checks", "gauge", "Single checks in the engine.", [("", (), self.engine.checking)])
        commits = [("", (), self.writes.calls)]
        yield Metric("commits_total", "counter", "Transactions written to the store.", commits)
        operations = [("", (), self.writes.asked)]
        yield Metric("operations_total", "counter", "Operations in these transactions.", operations)


def settings_of(settings: LocalSettings) -> dict[str, Any]:
    """The keyword arguments of `LocalBackend`."""
    return {each.name: getattr(settings, each.name) for each in fields(settings)}
