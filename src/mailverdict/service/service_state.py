"""`ServiceState`: what the endpoints work with, opened before the first request and closed after the last."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, fields
from functools import partial
from typing import Any

from ..backend import Backend
from ..local.backend import LocalBackend
from ..model.settings import LocalSettings
from .engine import VerificationEngine
from .http.metrics import Metrics
from .jobs.group_committer import GroupCommitter
from .jobs.store import Operation, Store, StoreQuery, run_queries
from .jobs.submission import JobSubmitter
from .jobs.worker import Worker
from .limiter import RateLimiter
from .settings import Clock, ServiceSettings, WhenSaturated

__all__ = ["ServiceState"]


class ServiceState:
    """Store, engine, worker, rate limiter and metrics of one service.

    Without a `backend`, `open` makes a `LocalBackend` with ``settings.local``.
    """

    store: Store
    writes: GroupCommitter[Operation]
    reads: GroupCommitter[StoreQuery]
    engine: VerificationEngine
    worker: Worker
    submitter: JobSubmitter

    def __init__(self, settings: ServiceSettings, backend: Backend | None, clock: Clock) -> None:
        self.settings = settings
        self.backend = backend
        self.clock = clock
        self.metrics = Metrics()
        self.limiter = RateLimiter(settings.rate_limit, settings.rate_burst)  # refuses
        can_wait = settings.when_saturated is WhenSaturated.WAIT
        self.pace = RateLimiter(settings.rate_limit if can_wait else 0.0, settings.rate_burst)  # delays bulk jobs
        self.tasks: list[asyncio.Task[None]] = []
        self.is_open = False
        self.open_lock = asyncio.Lock()

    async def ensure_open(self) -> None:
        """Open unless it is open: some servers and test transports run no lifespan."""
        if not self.is_open:
            async with self.open_lock:
                if not self.is_open:
                    await self.open()

    async def open(self) -> None:
        """Open the store, queue the jobs that an earlier process was verifying, and start the worker."""
        backend = self.backend or LocalBackend(**settings_of(self.settings.local))
        self.store = Store(self.settings.store)
        try:
            self.store.recover(self.clock())
            await self.start(backend)
        except BaseException:
            self.store.close()
            raise

    async def start(self, backend: Backend) -> None:
        """Start everything that uses the store."""
        self.writes = GroupCommitter(self.commit, name="mailverdict-store-writer")
        self.reads = GroupCommitter(partial(run_queries, self.store.reader), name="mailverdict-store-reader")
        self.engine = VerificationEngine(backend, check_timeout=self.settings.seconds("check_timeout"))
        common: dict[str, Any] = {"clock": self.clock, "on_finished": self.metrics.count_finished_job}
        self.worker = Worker(self.writes, self.reads, self.engine, self.settings, self.pace, **common)
        self.submitter = JobSubmitter(self.writes, self.worker, self.settings, **common)
        await self.worker.load_depth()
        self.metrics.watch(
            lambda: asdict(self.worker.depth), lambda: self.worker.oldest_age, lambda: self.engine.checking
        )
        self.tasks = [asyncio.create_task(self.worker.run()), asyncio.create_task(self.worker.purge_periodically())]
        self.is_open = True

    async def close(self) -> None:
        """Stop the worker, write what is pending, and close backend and store."""
        if not self.is_open:
            return
        self.is_open = False
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.worker.aclose()
        await self.engine.aclose()
        for committer in (self.writes, self.reads):
            await committer.aclose()
        self.store.close()

    def is_working(self) -> bool:
        """Whether it is open and none of its tasks has stopped."""
        return self.is_open and not any(task.done() for task in self.tasks)

    def commit(self, operations: Sequence[Operation]) -> Sequence[Any]:
        """Write operations to the store in one transaction, and count it."""
        self.metrics.commits.inc()
        self.metrics.operations.inc(len(operations))
        return self.store.commit(operations)


def settings_of(settings: LocalSettings) -> dict[str, Any]:
    """The keyword arguments of `LocalBackend`."""
    return {each.name: getattr(settings, each.name) for each in fields(settings)}
