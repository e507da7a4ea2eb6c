"""The worker: what happens to a job between its submission and its removal.

In order: `start_batches` claims waiting jobs, each client's share at its pace; `JobVerifier` verifies them and
writes their results; `release_due` queues postponed jobs again; `purge` removes jobs whose retention is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy.exc import SQLAlchemyError

from ...contract.envelope import JobStatus
from ...errors import SettingsError
from ...model.verification import Verification
from ..engine import VerificationEngine
from ..limiter import RateLimiter
from ..outages import OutageLog
from ..settings import Clock, ServiceSettings, WhenSaturated
from .group_committer import GroupCommitter
from .store import (
    Claim,
    CountJobs,
    DueJobs,
    NewJob,
    NextJobs,
    Operation,
    Postpone,
    Purge,
    Release,
    Settle,
    StoredJob,
    StoreQuery,
)
from .verifier import Finished, JobVerifier, seqs_of
from .waiting import WaitingJobs

RELEASE_INTERVAL = 1.0  # seconds between looks for retries that are due
PURGE_INTERVAL = 600.0  # seconds between looks for jobs whose retention is over
DAY = 86_400.0
KEPT = 10  # one in so many of the jobs at once is kept for clients that have none under way
BATCH_LIMIT = 1000  # jobs in one query, and addresses in one batch
# The database does not answer, or another process has taken its lock. Later attempts may succeed.
STORE_UNAVAILABLE = (SQLAlchemyError, SettingsError)


@dataclass(slots=True)
class QueueDepth:
    """How many jobs have not ended, by what they wait for."""

    waiting: int = 0
    verifying: int = 0
    postponed: int = 0

    @property
    def total(self) -> int:
        """What counts against `queue_limit`: a job whose retry is pending is not in the queue."""
        return self.waiting + self.verifying


class Worker(JobVerifier):
    """Moves jobs from `queued` over `processing` to `done` or `error`, and removes old ones.

    `on_finished` gets the final status and the verification of every job that ends.
    """

    def __init__(
        self,
        writes: GroupCommitter[Operation],
        reads: GroupCommitter[StoreQuery],
        engine: VerificationEngine,
        settings: ServiceSettings,
        pace: RateLimiter,
        *,
        clock: Clock,
        outages: OutageLog,
        on_finished: Callable[[str, Verification | None], None],
    ) -> None:
        super().__init__(engine, settings, clock)
        self.outages = outages
        self.writes = writes
        self.reads = reads
        self.on_finished = on_finished
        self.depth = QueueDepth()
        self.waiting = WaitingJobs(pace)
        self.retry_delay = 1.0  # seconds until a write that failed is tried again
        self.wakeup = asyncio.Event()
        self.tasks: set[asyncio.Task[None]] = set()

    def is_saturated(self, more: int) -> bool:
        """Whether the queue has no room for so many more addresses."""
        return self.depth.total + self.engine.checking + more > self.settings.queue_limit

    def has_room(self, client: str, more: int) -> bool:
        """Whether the queue has room for so many more jobs of a client.

        A client may have as many waiting jobs as there is room for others, so that one alone can fill
        half of the queue, and the queue is never full for a client that has none in it.
        """
        unfinished = self.depth.total + self.depth.postponed
        return self.waiting.count(client) + more <= self.settings.queue_limit - unfinished

    def on_submitted(self, client: str, jobs: Sequence[NewJob]) -> None:
        """Count jobs that were just written to the store, and start on them."""
        states = [each.status for each in jobs]
        waiting, postponed = states.count(JobStatus.QUEUED), states.count(JobStatus.PROCESSING)
        self.waiting.add(client, self.clock(), waiting)
        self.depth.waiting += waiting
        self.depth.postponed += postponed
        if waiting:
            self.wakeup.set()

    def waiting_of(self, client: str) -> int:
        """The waiting jobs of a client."""
        return self.waiting.count(client)

    async def refresh(self) -> None:
        """Do nothing: the numbers are always those of the store, which belongs to this process."""

    async def load_depth(self) -> None:
        """Count the jobs that an earlier process left."""
        groups, self.depth.postponed = await self.reads.run(CountJobs())
        for client, created_at, count in groups:
            self.waiting.add(client, created_at, count)
            self.depth.waiting += count

    @property
    def checking(self) -> int:
        """Single checks under way."""
        return self.engine.checking

    @property
    def oldest_age(self) -> float:
        """Seconds since the submission of the job that waits longest; 0 if none waits."""
        oldest = self.waiting.oldest()
        return 0.0 if oldest is None else max(self.clock() - oldest, 0.0)

    async def run(self) -> None:
        """Work until cancelled, also when the store is unavailable for a while."""
        while True:
            self.wakeup.clear()
            try:
                await self.release_due()
                while await self.start_batches():
                    pass
            except STORE_UNAVAILABLE as exc:  # the jobs are safe in the store
                self.outages.failed(exc)
            await self.wait_for_work()

    async def wait_for_work(self) -> None:
        """Wait until there is something to do, then for `gather`, so that jobs share a batch."""
        until_ready = self.waiting.seconds_until_ready()  # 0: all jobs started, or the engine has no room
        with suppress(TimeoutError):
            async with asyncio.timeout(min(until_ready or RELEASE_INTERVAL, RELEASE_INTERVAL)):
                await self.wakeup.wait()
            await asyncio.sleep(self.settings.seconds("gather"))

    async def aclose(self) -> None:
        """Stop; jobs being verified stay `processing` in the store and continue at the next start."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def start_batches(self) -> bool:
        """Claim the next jobs and start one batch for each type; False if there is nothing to start.

        Every client gets its share, within the pace of its jobs. It waits until a quarter of the
        concurrency is free instead of claiming jobs one by one. A tenth is kept for clients that have no
        jobs under way, so that none waits for slow mail servers of another.
        """
        most = self.settings.concurrency
        room, kept = most - self.depth.verifying, most // KEPT
        if not self.depth.waiting or room <= 0:
            return False
        is_roomy = room - kept >= max(most // 4, 1)
        shares = self.waiting.shares(min(room - kept if is_roomy else room, BATCH_LIMIT), newcomers_only=not is_roomy)
        if not shares:
            return False
        jobs: list[StoredJob] = await self.reads.run(NextJobs(tuple(shares.items())))
        await self.write(Claim(seqs_of(jobs), self.clock()))
        for client, count in shares.items():
            self.waiting.start(client, count)
            self.depth.waiting -= count
        self.depth.verifying += len(jobs)
        for validation_type in sorted({each.validation_type for each in jobs}):
            batch = [each for each in jobs if each.validation_type == validation_type]
            task = asyncio.get_running_loop().create_task(self.verify_batch(validation_type, batch))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        return True

    async def write(self, operation: Operation) -> None:
        """Write, and try again for as long as the store is unavailable: a result must not be lost.

        Every operation of the worker sets a state, so that it may be written twice.
        """
        while True:
            try:
                await self.writes.run(operation)
                return
            except STORE_UNAVAILABLE as exc:
                self.outages.failed(exc)
                await asyncio.sleep(self.retry_delay)

    async def write_results(self, results: Sequence[Finished]) -> None:
        """Write results and count them."""
        await self.write(Settle(tuple(result for result, _ in results), self.clock()))
        for result, verification in results:
            self.on_finished(result.status, verification)

    async def write_postponed(self, jobs: Sequence[StoredJob], attempt: int, due: float) -> None:
        """Write that jobs are tried again when `due`, and count them."""
        await self.write(Postpone(seqs_of(jobs), attempt, due, self.clock()))
        self.depth.postponed += len(jobs)

    def on_left(self, jobs: Sequence[StoredJob]) -> None:
        """Make room for the next jobs."""
        self.depth.verifying -= len(jobs)
        self.waiting.on_left(each.client for each in jobs)
        self.wakeup.set()

    async def release_due(self) -> None:
        """Queue jobs whose retry is due while there is room; postpone the others again."""
        if not self.depth.postponed:
            return
        jobs: list[StoredJob] = await self.reads.run(DueJobs(self.clock(), BATCH_LIMIT))
        room = max(self.settings.queue_limit - self.depth.total - self.engine.checking, 0)
        if self.settings.when_saturated is WhenSaturated.WAIT:  # they have been counted among the unfinished
            room = len(jobs)
        admitted, refused = jobs[:room], jobs[room:]
        if admitted:
            await self.write(Release(seqs_of(admitted), self.clock()))
        for each in reversed(admitted):
            self.waiting.add(each.client, each.created_at, is_first=True)
        self.depth.postponed -= len(jobs)
        self.depth.waiting += len(admitted)
        await self.postpone(refused)

    async def purge_periodically(self) -> None:
        """Call `purge` until cancelled."""
        while True:
            try:
                await self.purge()
            except STORE_UNAVAILABLE as exc:
                self.outages.failed(exc)
            await asyncio.sleep(PURGE_INTERVAL)

    async def purge(self) -> int:
        """Remove jobs whose retention is over and the quota of past days; return the number of jobs."""
        now = self.clock()
        ended_before = now - self.settings.seconds("result_retention")
        removed: int = await self.writes.run(Purge(ended_before, self.settings.day_of(now - DAY)))
        return removed
