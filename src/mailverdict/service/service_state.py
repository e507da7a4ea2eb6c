"""`ServiceState`: what the endpoints work with, from the first request to the last.

With an SQLite file the process has the worker. With PostgreSQL workers are processes of their own,
on any host.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, repeat
from typing import Any

from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from ..backend import Backend
from ..contract.envelope import JobStatus
from ..errors import BackendError
from ..local.backend import LocalBackend
from ..local.smtp import stage as _  # noqa: F401 - now, not in the event loop by a check
from ..model.verification import Verification, parse_payload
from ..model.words import Reason, ValidationType
from .engine import (
    FAILURE_MESSAGE,
    CheckOutcome,
    EngineFailure,
    VerificationEngine,
    failure_of,
    saturated_verification,
)
from .http.metrics import Metrics
from .jobs.group_committer import CommitterClosed, GroupCommitter
from .jobs.queue import JobOutcome, Queue, client_of
from .jobs.store import STORE_UNAVAILABLE, Account, Debit, Depth, NewJob, Store, StoredJob
from .jobs.submission import check_job
from .jobs.worker import Worker, dump_verification, find_owners
from .limiter import RateLimiter
from .outages import OutageLog
from .settings import Clock, ServiceSettings

LOG = logging.getLogger(__name__)
# Seconds for which a write that the store refused counts, unless a later one succeeds.
REFUSED_FOR = 30.0
DEPTH_FOR = 1.0  # seconds that a count of the queue is used
# Seconds between looks for the answer to a single check; then the last again.
LOOK_AFTER = (0.1, 0.1, 0.2, 0.3, 0.5)


class ServiceState:
    """Store, engine, worker, rate limiter and metrics of one service.

    Without a `backend`, `open` makes a `LocalBackend` with ``settings.local``. A `clock` replaces
    the store's.
    """

    store: Store
    writes: GroupCommitter[Debit]
    results: GroupCommitter[Sequence[JobOutcome]]
    reads: GroupCommitter[str]  # identifiers of jobs
    engine: VerificationEngine

    def __init__(
        self, settings: ServiceSettings, backend: Backend | None, clock: Clock | None
    ) -> None:
        self.settings = settings
        self.backend = backend
        self.clock = clock
        self.outages = OutageLog()
        self.metrics = Metrics()
        # Of single checks in this process.
        self.limiter = RateLimiter(settings.rate_limit, settings.rate_burst)
        self.worker: Worker | None = None
        self.depth = Depth()
        self.depth_until = 0.0  # of time.monotonic
        self.tasks: list[asyncio.Task[None]] = []
        # Of time.monotonic: the last write, if the store refused it.
        self.refused_at: float | None = None
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

        The process's own worker continues with the jobs that an earlier process was verifying.
        """
        engine = make_engine(self.settings, self.backend)
        self.store = Store(self.settings, self.clock)
        try:
            await self.start(engine)
        except BaseException:
            self.store.close()
            raise

    async def start(self, engine: VerificationEngine) -> None:
        """Start everything that uses the store."""
        store = self.store
        queue = Queue(store)
        self.engine = engine
        self.writes = GroupCommitter(
            self.watched(store.submit),
            store.writers,
            name="submissions",
            client_of=lambda debit: debit.client,
        )
        self.results = GroupCommitter(
            self.watched(queue.settle), store.writers, name="results", client_of=client_of
        )
        self.reads = GroupCommitter(store.find_jobs, store.readers, name="look-ups")
        if not store.is_shared:
            await store.write(queue.recover)
            self.worker = Worker(
                store,
                self.results,
                engine,
                self.settings,
                outages=self.outages,
                on_finished=self.on_finished,
            )
            await self.worker.open()
        try:
            await self.refresh(0.0)
        except STORE_UNAVAILABLE as exc:
            # It was there a moment ago, and the requests will see when it is back.
            self.outages.failed(exc)
        watch = self.outages.watch(lambda: store.read(store.accepts_writes))
        self.tasks = [asyncio.create_task(watch)]
        if self.worker is not None:
            self.tasks += self.worker.tasks
        self.metrics.watch(lambda: self.depth, lambda: self.engine.checking)
        self.is_open = True

    async def close(self) -> None:
        """Stop the worker, write what is pending, and close backend and store."""
        if not self.is_open:
            return
        self.is_open = False
        if self.worker is not None:
            await self.worker.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.engine.aclose()
        for committer in (self.writes, self.results, self.reads):
            await committer.aclose()
        self.store.close()

    def is_working(self) -> bool:
        """Whether it is open and none of its tasks has stopped."""
        return self.is_open and not any(task.done() for task in self.tasks)

    def watched(
        self, write: Callable[[Sequence[Any]], Sequence[Any]]
    ) -> Callable[[list[Any]], Sequence[Any]]:
        """A method of the store that writes operations in one transaction, which is counted."""

        def commit(operations: list[Any]) -> Sequence[Any]:
            self.metrics.commits.inc()
            self.metrics.operations.inc(len(operations))
            try:
                results = write(operations)
            except IntegrityError:  # a submission that exists already
                raise
            except SQLAlchemyError:
                self.refused_at = time.monotonic()
                raise
            self.refused_at = None
            return results

        return commit

    def refuses_writes(self) -> bool:
        """Whether the store refused the last write, and lately."""
        refused_at = self.refused_at
        return refused_at is not None and time.monotonic() - refused_at < REFUSED_FOR

    # --- the queue --------------------------------------------------------------------------------

    def debit(self, client: str, cost: int, jobs: tuple[NewJob, ...] = ()) -> Awaitable[Account]:
        """Debit the client's quota of today and write `jobs`: all of it or nothing.

        `QueueFull` if they cannot wait.
        """
        return self.writes.run(Debit(client, cost, jobs))

    async def submit(self, client: str, jobs: tuple[NewJob, ...]) -> Account:
        """Debit one unit for each job, write the jobs and start on them."""
        account = await self.debit(client, len(jobs), jobs)
        if account.granted:
            self.depth_until = 0.0
            if self.worker is not None:
                self.worker.wakeup.set()
            for job in jobs:
                if job.status in (JobStatus.DONE, JobStatus.ERROR):
                    self.on_finished(job.status, None)
        return account

    def on_finished(self, status: str, verification: Verification | None) -> None:
        """Count a job that has ended in this process."""
        self.depth_until = 0.0
        self.metrics.count_finished_job(status, verification)

    async def refresh(self, seconds: float = DEPTH_FOR) -> None:
        """Count the queue, unless the last count is at most so many seconds old."""
        now = time.monotonic()
        if now >= self.depth_until or not seconds:
            self.depth_until = now + DEPTH_FOR  # requests that come meanwhile use the last count
            self.depth = await self.store.read(self.store.depth)

    def is_saturated(self, more: int) -> bool:
        """Whether the queue has no room for so many more addresses."""
        return self.depth.total + self.engine.checking + more > self.settings.queue_limit

    # --- single checks ----------------------------------------------------------------------------

    async def can_answer(self, validation_type: str) -> bool:
        """Whether somebody answers single checks of a type at present."""
        if validation_type != ValidationType.SMTP or not self.store.is_shared:
            return True
        return await self.store.read(self.store.has_worker, validation_type)

    async def check(self, client: str, email: str, validation_type: str) -> CheckOutcome | Account:
        """Debit a unit of quota, if checks cost one, and verify an address.

        The account if the debit is refused.

        The debit is on disk before the engine starts. On PostgreSQL a check by `smtp` is a job, so
        that no mail server gets more sessions than its limit: it is written with the debit, and a
        worker answers it.
        """
        cost = int(self.settings.check_costs_quota)
        owner = None
        failure = None
        if validation_type == ValidationType.SMTP and self.store.is_shared:
            try:
                async with asyncio.timeout(self.engine.check_timeout):
                    owners = await find_owners(self.engine.backend, [email])
                    owner = owners[email]
            except BackendError as exc:  # the resolver cannot be used
                failure = failure_of(exc)
            except TimeoutError:
                failure = EngineFailure.ERROR
        jobs = (check_job(email, owner),) if owner else ()
        if cost or jobs:
            account = await self.debit(client, cost, jobs)
            if not account.granted:
                return account
        if failure is not None:
            return CheckOutcome(email, failure=failure)
        if jobs:
            return await self.answer(email, jobs[0].job_id)
        return await self.engine.check(email, validation_type, client)

    async def answer(self, email: str, job_id: str) -> CheckOutcome:
        """Wait for a worker's answer to a single check.

        `SATURATED` if there is none within `check_timeout`.
        """
        found: StoredJob | None = None
        try:
            async with asyncio.timeout(self.engine.check_timeout):
                for pause in chain(LOOK_AFTER, repeat(LOOK_AFTER[-1])):
                    await asyncio.sleep(pause)
                    try:
                        found = await self.reads.run(job_id)
                    except STORE_UNAVAILABLE as exc:
                        self.outages.failed(exc)
                    if found is not None and found.status != JobStatus.PROCESSING:
                        return read_answer(email, found)
        except CommitterClosed:
            return CheckOutcome(email, failure=EngineFailure.ERROR)
        except TimeoutError:
            LOG.error("no worker has answered a single check in time")
        if found is not None:  # nobody needs it any more
            throttled = saturated_verification(email, ValidationType.SMTP, Reason.THROTTLED)
            payload = dump_verification(throttled)
            outcome = JobOutcome(found.seq, found.client, JobStatus.DONE, payload)
            with suppress(*STORE_UNAVAILABLE):
                await self.results.run([outcome])
        return CheckOutcome(email, failure=EngineFailure.SATURATED)


FAILURES = {message: failure for failure, message in FAILURE_MESSAGE.items()}


def read_answer(email: str, found: StoredJob) -> CheckOutcome:
    """The outcome of a single check that has ended."""
    if found.verification is None:
        return CheckOutcome(email, failure=FAILURES.get(found.message or "", EngineFailure.ERROR))
    return CheckOutcome(email, parse_payload(json.loads(found.verification)))


def make_engine(settings: ServiceSettings, backend: Backend | None) -> VerificationEngine:
    """The engine, with a `LocalBackend` unless a backend is given.

    It asks greylisted addresses once: a job gets its second attempt later (`JobOutcome`), so that
    nobody waits for it.
    """
    made = backend or LocalBackend.from_settings(replace(settings.local, retry_greylisted=0))
    return VerificationEngine(made, check_timeout=settings.seconds("check_timeout"))
