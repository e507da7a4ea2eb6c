"""`ServiceState`: what the endpoints work with, opened before the first request and closed after the last.

With an SQLite file the process has its own worker. With PostgreSQL it only writes jobs, and workers on any host
verify them; see `shared/`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from ..backend import Backend
from ..local.backend import LocalBackend
from ..local.smtp import stage as _  # noqa: F401 - now, and not in the event loop by the first check of a mailbox
from ..model.settings import options_of
from .engine import VerificationEngine
from .http.metrics import Metrics
from .jobs.group_committer import GroupCommitter
from .jobs.schema import is_shared
from .jobs.store import Operation, Ping, Store, StoreQuery, run_queries
from .jobs.submission import JobSubmitter
from .jobs.worker import Worker
from .limiter import RateLimiter
from .outages import OutageLog
from .settings import Clock, ServiceSettings, WhenSaturated
from .shared.checks import CheckQueue, SharedLimiter
from .shared.queue import SharedQueue
from .shared.store import SharedStore
from .shared.tasks import TaskQueue

REFUSED_FOR = 30.0  # seconds for which a write that the store refused counts, unless a later one succeeds


class ServiceState:
    """Store, engine, worker, rate limiter and metrics of one service.

    Without a `backend`, `open` makes a `LocalBackend` with ``settings.local``.
    """

    store: Store
    writes: GroupCommitter[Operation]
    reads: GroupCommitter[StoreQuery]
    engine: VerificationEngine
    worker: Worker | SharedQueue
    checks: VerificationEngine | CheckQueue  # answers single checks
    submitter: JobSubmitter

    def __init__(self, settings: ServiceSettings, backend: Backend | None, clock: Clock) -> None:
        self.settings = settings
        self.backend = backend
        self.shared = SharedStore(settings) if is_shared(settings.store) else None
        self.clock = self.shared.clock if self.shared and clock is time.time else clock
        self.outages = self.shared.outages if self.shared else OutageLog()
        self.queue = TaskQueue(settings, self.shared.clock, self.outages) if self.shared else None
        self.metrics = Metrics()
        self.limiter = (  # refuses
            SharedLimiter(self.shared, settings)
            if self.shared
            else RateLimiter(settings.rate_limit, settings.rate_burst)
        )
        can_wait = settings.when_saturated is WhenSaturated.WAIT
        self.pace = RateLimiter(settings.rate_limit if can_wait else 0.0, settings.rate_burst)  # delays bulk jobs
        self.tasks: list[asyncio.Task[None]] = []
        self.refused_at: float | None = None  # of time.monotonic: the last write, if the store refused it
        self.answer_seconds = 3.0  # that `/healthz` waits for the store
        self.is_open = False
        self.open_lock = asyncio.Lock()

    async def ensure_open(self) -> None:
        """Open unless it is open: some servers and test transports run no lifespan."""
        if not self.is_open:
            async with self.open_lock:
                if not self.is_open:
                    await self.open()

    async def open(self) -> None:
        """Open the store and start what works on it.

        The process's own worker queues the jobs that an earlier process was verifying.
        """
        engine = make_engine(self.settings, self.backend)
        self.store = Store(self.settings.store)
        try:
            await self.start(engine)
        except BaseException:
            self.store.close()
            raise

    async def start(self, engine: VerificationEngine) -> None:
        """Start everything that uses the store."""
        self.writes = GroupCommitter(self.commit, name="mailverdict-store-writer")
        self.reads = GroupCommitter(partial(run_queries, self.store.reader), name="mailverdict-store-reader")
        self.engine = self.checks = engine
        common: dict[str, Any] = {"clock": self.clock, "on_finished": self.metrics.count_finished_job}
        if self.shared is not None and self.queue is not None:
            await self.queue.open()
            self.worker = SharedQueue(
                self.shared,
                engine,
                self.settings,
                self.queue,
                pace=self.pace,
                clock=self.clock,
                on_counted=self.metrics.set_ended_jobs,
            )
            await self.worker.refresh()
            self.checks = CheckQueue(self.shared, self.queue, engine)
            self.tasks = [asyncio.create_task(self.worker.run()), asyncio.create_task(self.checks.run())]
            common["on_finished"] = self.metrics.ignore_finished_job
        else:
            self.store.recover(self.clock())
            self.worker = Worker(
                self.writes, self.reads, engine, self.settings, self.pace, outages=self.outages, **common
            )
            await self.worker.load_depth()
            self.tasks = [asyncio.create_task(self.worker.run()), asyncio.create_task(self.worker.purge_periodically())]
        self.tasks.append(asyncio.create_task(self.outages.watch(lambda: self.reads.run(Ping()))))
        self.submitter = JobSubmitter(self.writes, self.worker, self.settings, **common)
        self.metrics.watch(
            lambda: asdict(self.worker.depth), lambda: self.worker.oldest_age, lambda: self.worker.checking
        )
        self.is_open = True

    async def close(self) -> None:
        """Stop the worker, write what is pending, and close backend and store."""
        if not self.is_open:
            return
        self.is_open = False
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        if isinstance(self.worker, Worker):
            await self.worker.aclose()
        if isinstance(self.checks, CheckQueue):
            self.checks.close()
        await self.engine.aclose()
        for committer in (self.writes, self.reads):
            await committer.aclose()
        if self.shared is not None and self.queue is not None:
            await self.queue.close()
            self.shared.close()
        self.store.close()

    def is_working(self) -> bool:
        """Whether it is open and none of its tasks has stopped."""
        return self.is_open and not any(task.done() for task in self.tasks)

    def workers(self) -> list[dict[str, Any]] | None:
        """The workers on a store that several hosts use; None if the process has its own."""
        return [asdict(each) for each in self.worker.counted.workers] if isinstance(self.worker, SharedQueue) else None

    def commit(self, operations: Sequence[Operation]) -> Sequence[Any]:
        """Write operations to the store in one transaction, and count it."""
        self.metrics.commits.inc()
        self.metrics.operations.inc(len(operations))
        try:
            results = self.store.commit(operations)
        except IntegrityError:  # a submission that exists already
            raise
        except SQLAlchemyError:
            self.refused_at = time.monotonic()
            raise
        self.refused_at = None
        return results

    def refuses_writes(self) -> bool:
        """Whether the store refused the last write, and lately."""
        refused_at = self.refused_at
        return refused_at is not None and time.monotonic() - refused_at < REFUSED_FOR


def make_engine(settings: ServiceSettings, backend: Backend | None) -> VerificationEngine:
    """The engine, with a `LocalBackend` unless a backend is given."""
    made = backend or LocalBackend(**options_of(settings.local))
    return VerificationEngine(made, check_timeout=settings.seconds("check_timeout"))
