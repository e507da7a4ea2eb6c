"""The worker: what happens to a job between its submission and its removal.

In order: `start_batches` claims waiting jobs, each client's share at its pace; `verify_batch` passes them to
the engine; `settle` writes their results; `postpone` delays jobs for which the queue had no room, and
`release_due` queues them again; `purge` removes jobs whose retention is over.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass

from sqlalchemy.exc import SQLAlchemyError

from ...contract.envelope import JobStatus
from ...errors import SettingsError
from ...model.verification import Verification, dump_payload
from ...model.words import Reason
from ..engine import FAILURE_MESSAGE, CheckOutcome, EngineFailure, VerificationEngine, saturated_verification
from ..limiter import RateLimiter
from ..settings import Clock, ServiceSettings, WhenSaturated
from .group_committer import GroupCommitter
from .store import (
    Claim,
    CountJobs,
    DueJobs,
    JobResult,
    NextJobs,
    Operation,
    Postpone,
    Purge,
    Release,
    Settle,
    StoredJob,
    StoreQuery,
)
from .waiting import WaitingJobs

__all__ = ["STORE_UNAVAILABLE", "QueueDepth", "Worker", "dump_verification"]

LOG = logging.getLogger(__name__)
RELEASE_INTERVAL = 1.0  # seconds between looks for retries that are due
PURGE_INTERVAL = 600.0  # seconds between looks for jobs whose retention is over
DAY = 86_400.0
BATCH_LIMIT = 1000  # jobs in one query, and addresses in one batch
# The database does not answer, or another process has taken its lock. Later attempts may succeed.
STORE_UNAVAILABLE = (SQLAlchemyError, SettingsError)
NOT_WRITTEN = "the result could not be written"
Finished = tuple[JobResult, Verification | None]


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


class Worker:
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
        on_finished: Callable[[str, Verification | None], None],
    ) -> None:
        self.writes = writes
        self.reads = reads
        self.engine = engine
        self.settings = settings
        self.clock = clock
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

    def on_submitted(self, client: str, created_at: float, waiting: int, postponed: int) -> None:
        """Count jobs that were just written to the store, and start on them."""
        self.waiting.add(client, created_at, waiting)
        self.depth.waiting += waiting
        self.depth.postponed += postponed
        if waiting:
            self.wakeup.set()

    async def load_depth(self) -> None:
        """Count the jobs that an earlier process left."""
        groups, self.depth.postponed = await self.reads.run(CountJobs())
        for client, created_at, count in groups:
            self.waiting.add(client, created_at, count)
            self.depth.waiting += count

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
            except STORE_UNAVAILABLE:  # the jobs are safe in the store
                LOG.exception("the worker could not read the store; it tries again")
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
        concurrency is free instead of claiming jobs one by one, since a batch plans its SMTP sessions as
        a whole.
        """
        room = self.settings.concurrency - self.depth.verifying
        if not self.depth.waiting or room < max(self.settings.concurrency // 4, 1):
            return False
        shares = self.waiting.shares(min(room, BATCH_LIMIT))
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

    async def verify_batch(self, validation_type: str, jobs: Sequence[StoredJob]) -> None:
        """Verify jobs of one type; the jobs of one address share its outcome."""
        unanswered: dict[str, list[StoredJob]] = {}
        for each in jobs:
            unanswered.setdefault(each.email.strip(), []).append(each)
        async with asyncio.TaskGroup() as settling:  # concurrently, so that one commit has many results
            try:
                async with (
                    asyncio.timeout(self.settings.seconds("job_timeout")),
                    aclosing(self.engine.verify(list(unanswered), validation_type)) as lists,
                ):
                    async for outcomes in lists:
                        answered = [(each, unanswered.pop(each.email)) for each in outcomes]
                        settling.create_task(self.settle(answered))
            except TimeoutError:
                LOG.error("the engine did not answer %d jobs in time", len(unanswered))
                failed = [
                    (CheckOutcome(email, failure=EngineFailure.ERROR), same) for email, same in unanswered.items()
                ]
                settling.create_task(self.settle(failed))

    async def settle(self, answered: Sequence[tuple[CheckOutcome, list[StoredJob]]]) -> None:
        """Write the results of jobs that have an outcome; postpone those that met saturation.

        It never raises: an error here must not stop the other jobs of the batch, and must not leave
        the queue depth too high.
        """
        pairs = [(job, outcome) for outcome, jobs in answered for job in jobs]
        finished = [pair for pair in pairs if pair[1].failure is not EngineFailure.SATURATED]
        saturated = [job for job, outcome in pairs if outcome.failure is EngineFailure.SATURATED]
        try:
            if finished:
                await self.finish([result_of(job, outcome) for job, outcome in finished])
            await self.postpone(saturated)
        except Exception:
            LOG.exception("%d jobs stay in processing until the next start", len(pairs))
        finally:
            self.depth.verifying -= len(pairs)
            self.wakeup.set()

    async def finish(self, results: Sequence[Finished]) -> None:
        """Write results and count them; jobs whose results cannot be written end in `error`."""
        try:
            await self.write(Settle(tuple(result for result, _ in results), self.clock()))
        except Exception:
            LOG.exception("%d results could not be written; their jobs end in error", len(results))
            results = [error_result(result.seq) for result, _ in results]
            await self.write(Settle(tuple(result for result, _ in results), self.clock()))
        for result, verification in results:
            self.on_finished(result.status, verification)

    async def write(self, operation: Operation) -> None:
        """Write, and try again for as long as the store is unavailable: a result must not be lost.

        Every operation of the worker sets a state, so that it may be written twice.
        """
        while True:
            try:
                await self.writes.run(operation)
                return
            except STORE_UNAVAILABLE:
                LOG.exception("the worker could not write to the store; it tries again")
                await asyncio.sleep(self.retry_delay)

    async def postpone(self, jobs: Iterable[StoredJob]) -> None:
        """Schedule the next attempt; a job without further attempts ends as `throttled`."""
        by_attempt: dict[int, list[StoredJob]] = {}
        for each in jobs:
            by_attempt.setdefault(each.attempt, []).append(each)
        for attempt, group in by_attempt.items():
            if attempt >= len(self.settings.saturation_backoff):
                await self.finish([throttled_result(each) for each in group])
                continue
            now = self.clock()
            due = now + self.settings.saturation_backoff[attempt]
            try:
                await self.write(Postpone(seqs_of(group), attempt + 1, due, now))
            except Exception:
                LOG.exception("%d jobs could not be postponed; they end in error", len(group))
                await self.finish([error_result(each.seq) for each in group])
            else:
                self.depth.postponed += len(group)

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
            except STORE_UNAVAILABLE:
                LOG.exception("old jobs could not be removed; the next attempt follows in %d s", PURGE_INTERVAL)
            await asyncio.sleep(PURGE_INTERVAL)

    async def purge(self) -> int:
        """Remove jobs whose retention is over and the quota of past days; return the number of jobs."""
        now = self.clock()
        ended_before = now - self.settings.seconds("result_retention")
        removed: int = await self.writes.run(Purge(ended_before, self.settings.day_of(now - DAY)))
        return removed


def seqs_of(jobs: Iterable[StoredJob]) -> tuple[int, ...]:
    return tuple(each.seq for each in jobs)


def dump_verification(verification: Verification) -> str:
    """The payload as the store keeps it."""
    return json.dumps(dump_payload(verification), separators=(",", ":"))


def result_of(job: StoredJob, outcome: CheckOutcome) -> Finished:
    """The result of a job; a verification that cannot be written as JSON is an error of this job only."""
    if outcome.verification is None:
        message = FAILURE_MESSAGE[outcome.failure or EngineFailure.ERROR]
        return JobResult(job.seq, JobStatus.ERROR, message=message), None
    try:
        payload = dump_verification(outcome.verification)
    except Exception:
        LOG.exception("the verification of job %s could not be written as JSON", job.job_id)
        return error_result(job.seq)
    return JobResult(job.seq, JobStatus.DONE, payload), outcome.verification


def error_result(seq: int) -> Finished:
    return JobResult(seq, JobStatus.ERROR, message=NOT_WRITTEN), None


def throttled_result(job: StoredJob) -> Finished:
    """The result of a job for which the queue never had room."""
    verification = saturated_verification(job.email.strip(), job.validation_type, Reason.THROTTLED)
    return JobResult(job.seq, JobStatus.DONE, dump_verification(verification)), verification
