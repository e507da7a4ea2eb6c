"""`JobVerifier`: what happens to jobs between their claim and their end, the same in each kind of worker.

`verify_batch` passes jobs to the engine; `settle` writes results as they come; `postpone` delays jobs for which
the engine had no room. Where jobs come from and how they are written is up to the subclass: `Worker` (one process
with its own store) or `shared.worker.SharedWorker` (several hosts with one database).
"""

from __future__ import annotations

import asyncio
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import aclosing

from ...contract.envelope import JobStatus
from ...model.verification import Verification, dump_payload
from ...model.words import Reason
from ..engine import FAILURE_MESSAGE, CheckOutcome, EngineFailure, VerificationEngine, saturated_verification
from ..settings import Clock, ServiceSettings
from .store import JobResult, StoredJob

LOG = logging.getLogger(__name__)
NOT_WRITTEN = "the result could not be written"
Finished = tuple[JobResult, Verification | None]


class JobVerifier(ABC):
    """Verifies claimed jobs; every job gets a result or is postponed."""

    def __init__(self, engine: VerificationEngine, settings: ServiceSettings, clock: Clock) -> None:
        self.engine = engine
        self.settings = settings
        self.clock = clock

    @abstractmethod
    async def write_results(self, results: Sequence[Finished]) -> None:
        """Write how jobs ended, and try again for as long as the store is unavailable."""

    @abstractmethod
    async def write_postponed(self, jobs: Sequence[StoredJob], attempt: int, due: float) -> None:
        """Write that jobs are tried again when `due`."""

    @abstractmethod
    def on_left(self, jobs: Sequence[StoredJob]) -> None:
        """Called when jobs have left the engine."""

    async def verify_batch(self, validation_type: str, jobs: Sequence[StoredJob]) -> None:
        """Verify jobs of one type; the jobs of one address share its outcome."""
        unanswered: dict[str, list[StoredJob]] = {}
        for each in jobs:
            unanswered.setdefault(each.email.strip(), []).append(each)
        clients = [same[0].client for same in unanswered.values()]
        async with asyncio.TaskGroup() as settling:  # concurrently, so that one commit has many results
            try:
                async with (
                    asyncio.timeout(self.settings.seconds("job_timeout")),
                    aclosing(self.engine.verify(list(unanswered), validation_type, clients)) as lists,
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
            self.on_left([job for job, _ in pairs])

    async def finish(self, results: Sequence[Finished]) -> None:
        """Write results; jobs whose results cannot be written end in `error`."""
        try:
            await self.write_results(results)
        except Exception:
            LOG.exception("%d results could not be written; their jobs end in error", len(results))
            await self.write_results([error_result(result) for result, _ in results])

    async def postpone(self, jobs: Iterable[StoredJob]) -> None:
        """Schedule the next attempt; a job without further attempts ends as `throttled`."""
        by_attempt: dict[int, list[StoredJob]] = {}
        for each in jobs:
            by_attempt.setdefault(each.attempt, []).append(each)
        for attempt, group in by_attempt.items():
            if attempt >= len(self.settings.saturation_backoff):
                await self.finish([throttled_result(each) for each in group])
                continue
            due = self.clock() + self.settings.saturation_backoff[attempt]
            try:
                await self.write_postponed(group, attempt + 1, due)
            except Exception:
                LOG.exception("%d jobs could not be postponed; they end in error", len(group))
                await self.finish([error_result(JobResult(each.seq, JobStatus.ERROR)) for each in group])


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
        return error_result(JobResult(job.seq, JobStatus.ERROR))
    return JobResult(job.seq, JobStatus.DONE, payload), outcome.verification


def error_result(result: JobResult) -> Finished:
    """The result of a job whose own result cannot be written."""
    return JobResult(result.seq, JobStatus.ERROR, message=NOT_WRITTEN), None


def throttled_result(job: StoredJob) -> Finished:
    """The result of a job for which the queue never had room."""
    verification = saturated_verification(job.email.strip(), job.validation_type, Reason.THROTTLED)
    return JobResult(job.seq, JobStatus.DONE, dump_verification(verification)), verification
