"""The worker: takes waiting jobs, fairly and many at once, to the engine, and writes down how they end."""

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
from ..settings import Clock, ServiceSettings
from .group_committer import GroupCommitter
from .store import (
    Claim,
    CountJobs,
    DueJobs,
    JobResult,
    NextJobs,
    Operation,
    Postpone,
    Release,
    Settle,
    StoredJob,
    StoreQuery,
)

__all__ = ["STORE_UNAVAILABLE", "QueueDepth", "Worker", "dump_verification"]

LOG = logging.getLogger(__name__)
TICK = 1.0  # seconds between looks at retries that may be due
BATCH_LIMIT = 1000  # jobs in one look, and addresses in one batch
STORE_UNAVAILABLE = (SQLAlchemyError, SettingsError)  # the database does not answer, or has become another process's
NOT_WRITTEN = "the result could not be written"
Ended = Callable[[str, Verification | None], None]


@dataclass(slots=True)
class QueueDepth:
    """How long the verification queue is, as this process knows it."""

    waiting: int = 0
    verifying: int = 0
    postponed: int = 0

    @property
    def total(self) -> int:
        """What counts against `queue_limit`: a job whose retry is pending is not in the queue."""
        return self.waiting + self.verifying


class Worker:
    """Moves jobs from `queued` over `processing` to `done` or `error`.

    Parameters
    ----------
    writes, reads : GroupCommitter
        The store's two threads.
    engine : VerificationEngine
        What verifies.
    settings : ServiceSettings
        Concurrency, back-off and time limits.
    clock : callable
        Seconds since the epoch.
    on_end : callable
        Told the final status and the verification of every job that ends.
    """

    def __init__(
        self,
        writes: GroupCommitter[Operation],
        reads: GroupCommitter[StoreQuery],
        engine: VerificationEngine,
        settings: ServiceSettings,
        *,
        clock: Clock,
        on_end: Ended,
    ) -> None:
        self.writes = writes
        self.reads = reads
        self.engine = engine
        self.settings = settings
        self.clock = clock
        self.on_end = on_end
        self.depth = QueueDepth()
        self.pause = 1.0  # seconds until what could not be written is tried again
        self.changed = asyncio.Event()
        self.tasks: set[asyncio.Task[None]] = set()

    def is_saturated(self, more: int) -> bool:
        """Whether the queue has no room for so many more addresses."""
        return self.depth.total + self.engine.checking + more > self.settings.queue_limit

    def notice(self, waiting: int, postponed: int) -> None:
        """Jobs were submitted."""
        self.depth.waiting += waiting
        self.depth.postponed += postponed
        if waiting:
            self.changed.set()

    async def load(self) -> None:
        """See what an earlier process left to do."""
        self.depth.waiting, self.depth.postponed = await self.reads.ask(CountJobs())

    async def run(self) -> None:
        """Work until cancelled; an error of the store is survived."""
        while True:
            self.changed.clear()
            try:
                await self.retry_due()
                while await self.start_batches():
                    pass
            except STORE_UNAVAILABLE:  # for a while; the jobs are safe in the store
                LOG.exception("the worker could not read; it tries again")
            await self.rest()

    async def rest(self) -> None:
        """Wait for something to do, then a moment longer, so that jobs come together."""
        with suppress(TimeoutError):
            async with asyncio.timeout(TICK):
                await self.changed.wait()
            await asyncio.sleep(self.settings.seconds("gather"))

    async def aclose(self) -> None:
        """Stop; what is under way stays `processing` in the store and goes on at the next start."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def start_batches(self) -> bool:
        """Hand the next jobs to the engine, one batch per type; False where there is nothing to hand over.

        New jobs are taken when a quarter of the room is free and not one by one, since a batch plans
        its sessions as a whole.
        """
        room = self.settings.concurrency - self.depth.verifying
        if not self.depth.waiting or room < max(self.settings.concurrency // 4, 1):
            return False
        jobs: list[StoredJob] = await self.reads.ask(NextJobs(min(room, BATCH_LIMIT)))
        if not jobs:
            return False
        await self.write(Claim(seqs_of(jobs), self.clock()))
        self.depth.waiting -= len(jobs)
        self.depth.verifying += len(jobs)
        for validation_type in sorted({each.validation_type for each in jobs}):
            self.begin(validation_type, [each for each in jobs if each.validation_type == validation_type])
        return True

    def begin(self, validation_type: str, jobs: list[StoredJob]) -> None:
        """Verify a batch beside the others."""
        task = asyncio.get_running_loop().create_task(self.work(validation_type, jobs))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def work(self, validation_type: str, jobs: Sequence[StoredJob]) -> None:
        """Verify a batch; the jobs of one address share its outcome."""
        unanswered: dict[str, list[StoredJob]] = {}
        for each in jobs:
            unanswered.setdefault(each.email.strip(), []).append(each)
        async with asyncio.TaskGroup() as settling:  # concurrently, so that one commit has many results
            try:
                async with (
                    asyncio.timeout(self.settings.seconds("job_timeout")),
                    aclosing(self.engine.answers(list(unanswered), validation_type)) as lists,
                ):
                    async for outcomes in lists:
                        answered = [(each, unanswered.pop(each.email)) for each in outcomes]
                        settling.create_task(self.settle(answered))
            except TimeoutError:
                LOG.error("the engine did not answer %d jobs in time", len(unanswered))
                failed = [(CheckOutcome(email, fault=EngineFailure.ERROR), same) for email, same in unanswered.items()]
                settling.create_task(self.settle(failed))

    async def settle(self, answered: Sequence[tuple[CheckOutcome, list[StoredJob]]]) -> None:
        """Write the results of jobs that have an outcome; postpone those that met saturation.

        It never raises: an error here must not stop the other jobs of the batch, and must not leave
        the queue depth too high.
        """
        pairs = [(job, outcome) for outcome, jobs in answered for job in jobs]
        settled = [pair for pair in pairs if pair[1].fault is not EngineFailure.SATURATED]
        postponed = [job for job, outcome in pairs if outcome.fault is EngineFailure.SATURATED]
        try:
            if settled:
                await self.end([result_of(job, outcome) for job, outcome in settled])
            await self.put_off(postponed)
        except Exception:
            LOG.exception("%d jobs stay in processing until the next start", len(pairs))
        finally:
            self.depth.verifying -= len(pairs)
            self.changed.set()

    async def end(self, results: Sequence[tuple[JobResult, Verification | None]]) -> None:
        """Write results and count them; jobs whose results cannot be written end in `error`."""
        try:
            await self.write(Settle(tuple(result for result, _ in results), self.clock()))
        except Exception:
            LOG.exception("%d results could not be written; their jobs end in error", len(results))
            results = [(error_result(result.seq), None) for result, _ in results]
            await self.write(Settle(tuple(result for result, _ in results), self.clock()))
        for result, verification in results:
            self.on_end(result.status, verification)

    async def write(self, operation: Operation) -> None:
        """Write, however long the store is away: answers were not cheap, and no job may be left lying.

        Every operation of the worker sets a state, so that writing it twice does no harm.
        """
        while True:
            try:
                await self.writes.ask(operation)
                return
            except STORE_UNAVAILABLE:
                LOG.exception("the worker could not write; it tries again")
                await asyncio.sleep(self.pause)

    async def put_off(self, jobs: Iterable[StoredJob]) -> None:
        """Back off; a job whose schedule is over is `throttled`."""
        by_attempt: dict[int, list[StoredJob]] = {}
        for each in jobs:
            by_attempt.setdefault(each.attempt, []).append(each)
        for attempt, group in by_attempt.items():
            if attempt >= len(self.settings.saturation_backoff):
                await self.end([throttled(each) for each in group])
                continue
            now = self.clock()
            due = now + self.settings.saturation_backoff[attempt]
            try:
                await self.write(Postpone(seqs_of(group), attempt + 1, due, now))
            except Exception:
                LOG.exception("%d jobs could not be postponed; they end in error", len(group))
                await self.end([(error_result(each.seq), None) for each in group])
            else:
                self.depth.postponed += len(group)

    async def retry_due(self) -> None:
        """Queue the jobs whose retry is due, as far as there is room; the others back off further."""
        if not self.depth.postponed:
            return
        jobs: list[StoredJob] = await self.reads.ask(DueJobs(self.clock(), BATCH_LIMIT))
        room = max(self.settings.queue_limit - self.depth.total - self.engine.checking, 0)
        admitted, refused = jobs[:room], jobs[room:]
        if admitted:
            await self.write(Release(seqs_of(admitted), self.clock()))
        self.depth.postponed -= len(jobs)
        self.depth.waiting += len(admitted)
        await self.put_off(refused)


def seqs_of(jobs: Iterable[StoredJob]) -> tuple[int, ...]:
    return tuple(each.seq for each in jobs)


def dump_verification(verification: Verification) -> str:
    """The payload as the store keeps it."""
    return json.dumps(dump_payload(verification), separators=(",", ":"))


def result_of(job: StoredJob, outcome: CheckOutcome) -> tuple[JobResult, Verification | None]:
    """The result of a job; a verification that cannot be written as JSON is an error of this job only."""
    if outcome.verification is None:
        message = FAILURE_MESSAGE[outcome.fault or EngineFailure.ERROR]
        return JobResult(job.seq, JobStatus.ERROR, message=message), None
    try:
        payload = dump_verification(outcome.verification)
    except Exception:
        LOG.exception("the verification of job %s could not be written as JSON", job.job_id)
        return error_result(job.seq), None
    return JobResult(job.seq, JobStatus.DONE, payload), outcome.verification


def error_result(seq: int) -> JobResult:
    return JobResult(seq, JobStatus.ERROR, message=NOT_WRITTEN)


def throttled(job: StoredJob) -> tuple[JobResult, Verification]:
    """The outcome of a job for which the queue never had room."""
    verification = saturated_verification(job.email.strip(), job.validation_type, Reason.THROTTLED)
    return JobResult(job.seq, JobStatus.DONE, dump_verification(verification)), verification
