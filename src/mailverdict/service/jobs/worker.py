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
        """Verify a batch; the jobs of one address share its answer."""
        left: dict[str, list[StoredJob]] = {}
        for each in jobs:
            left.setdefault(each.email.strip(), []).append(each)
        async with asyncio.TaskGroup() as endings:  # beside each other, so that one commit holds many
            try:
                async with (
                    asyncio.timeout(self.settings.seconds("job_timeout")),
                    aclosing(self.engine.answers(list(left), validation_type)) as lists,
                ):
                    async for answers in lists:
                        endings.create_task(self.conclude([(each, left.pop(each.email)) for each in answers]))
            except TimeoutError:
                LOG.error("the engine did not answer %d jobs in time", len(left))
                unanswered = [
                    (CheckOutcome(email, fault=EngineFailure.ERROR), waiting) for email, waiting in left.items()
                ]
                endings.create_task(self.conclude(unanswered))

    async def conclude(self, answered: Sequence[tuple[CheckOutcome, list[StoredJob]]]) -> None:
        """End the jobs that have an answer; put off those that met saturation."""
        put_off = [job for answer, jobs in answered if answer.fault is EngineFailure.SATURATED for job in jobs]
        ended = [
            (job, answer) for answer, jobs in answered if answer.fault is not EngineFailure.SATURATED for job in jobs
        ]
        if ended:
            await self.end([(ending_of(job, answer), answer.verification) for job, answer in ended])
        self.depth.verifying -= len(ended) + len(put_off)
        await self.put_off(put_off)
        self.changed.set()

    async def end(self, endings: Sequence[tuple[JobResult, Verification | None]]) -> None:
        """Write how jobs ended, and tell."""
        await self.write(Settle(tuple(ending for ending, _ in endings), self.clock()))
        for ending, verification in endings:
            self.on_end(ending.status, verification)

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
            await self.write(Postpone(seqs_of(group), attempt + 1, due, now))
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


def ending_of(job: StoredJob, answer: CheckOutcome) -> JobResult:
    """How an answer ends a job."""
    if answer.verification is None:
        return JobResult(job.seq, JobStatus.ERROR, message=FAILURE_MESSAGE[answer.fault or EngineFailure.ERROR])
    return JobResult(job.seq, JobStatus.DONE, dump_verification(answer.verification))


def throttled(job: StoredJob) -> tuple[JobResult, Verification]:
    """The outcome of a job for which the queue never had room."""
    verification = saturated_verification(job.email.strip(), job.validation_type, Reason.THROTTLED)
    return JobResult(job.seq, JobStatus.DONE, dump_verification(verification)), verification
