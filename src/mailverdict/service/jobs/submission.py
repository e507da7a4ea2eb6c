"""Submission: quota is debited and jobs are written, in one transaction and before the client gets a reply."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Sequence
from typing import Protocol

from ...contract.envelope import JobStatus
from ...model.verification import Verification
from ...model.words import Reason
from ..engine import saturated_verification
from ..settings import Clock, ServiceSettings, WhenSaturated
from .group_committer import GroupCommitter
from .store import Debit, DebitResult, NewJob, Operation
from .verifier import dump_verification

MALFORMED = "Invalid email format"
JOB_ID_OCTETS = 16  # random, so that nobody finds the job of another client by guessing


class QueueFull(Exception):
    """The queue has no room for the jobs of a submission; nothing was written or debited."""


class JobQueue(Protocol):
    """What submissions need to know of the queue: `Worker` or `shared.queue.SharedQueue`."""

    def has_room(self, client: str, more: int) -> bool:
        """Whether the queue has room for so many more jobs of a client."""

    def on_submitted(self, client: str, jobs: Sequence[NewJob]) -> None:
        """Count jobs that were just written to the store, and start on them."""


class JobSubmitter:
    """Debits quota and writes new jobs to the store."""

    def __init__(
        self,
        writes: GroupCommitter[Operation],
        worker: JobQueue,
        settings: ServiceSettings,
        *,
        clock: Clock,
        on_finished: Callable[[str, Verification | None], None],
    ) -> None:
        self.writes = writes
        self.worker = worker
        self.settings = settings
        self.clock = clock
        self.on_finished = on_finished
        self.arriving = 0  # jobs that are being written

    async def debit(self, client: str, cost: int, now: float, jobs: tuple[NewJob, ...] = ()) -> DebitResult:
        """Debit the client's quota of the day of `now` and write `jobs`: all of it or nothing."""
        debit = Debit(client, self.settings.day_of(now), cost, self.settings.daily_limit, now, jobs)
        result: DebitResult = await self.writes.run(debit)
        return result

    async def submit(self, client: str, jobs: tuple[NewJob, ...], now: float) -> DebitResult:
        """Debit one unit for each job, write the jobs and start on them; `QueueFull` if they cannot wait."""
        states = [each.status for each in jobs]
        queued = states.count(JobStatus.QUEUED)
        can_wait = self.settings.when_saturated is WhenSaturated.WAIT
        if can_wait and not self.worker.has_room(client, self.arriving + queued):
            raise QueueFull
        self.arriving += queued
        try:
            result = await self.debit(client, len(jobs), now, jobs)
        finally:
            self.arriving -= queued
        if result.granted:
            self.worker.on_submitted(client, jobs)
            for each in jobs:
                if each.status in (JobStatus.DONE, JobStatus.ERROR):
                    self.on_finished(each.status, None)
        return result

    def new_job(
        self, job_id: str, email: str, validation_type: str, *, is_rate_limited: bool, is_saturated: bool
    ) -> NewJob:
        """The job of a well-formed address in its first state."""
        if is_rate_limited:  # never tried again
            refused = saturated_verification(email.strip(), validation_type, Reason.RATE_LIMITED)
            return NewJob(job_id, email, validation_type, JobStatus.DONE, verification=dump_verification(refused))
        if is_saturated:
            due = self.clock() + self.settings.saturation_backoff[0]
            return NewJob(job_id, email, validation_type, JobStatus.PROCESSING, attempt=1, due=due)
        return NewJob(job_id, email, validation_type)


def malformed_job(job_id: str, email: str, validation_type: str) -> NewJob:
    """The job of a malformed address, which only the earlier revision has."""
    return NewJob(job_id, email, validation_type, JobStatus.ERROR, message=MALFORMED)


def new_job_ids(count: int) -> list[str]:
    """Random identifiers, out of one call for random bytes."""
    size = 2 * JOB_ID_OCTETS
    digits = secrets.token_hex(JOB_ID_OCTETS * count)
    return [digits[at : at + size] for at in range(0, len(digits), size)]


def keyed_job_ids(secret: str, client: str, key: str, count: int) -> list[str]:
    """The identifiers of a submission with an Idempotency-Key: the same each time it is repeated.

    Others cannot compute them without the store's secret: if there are no client keys, an identifier is all that is
    needed to read the job.
    """
    names = (f"{client}\n{key}\n{number}".encode() for number in range(count))
    return [hmac.digest(secret.encode(), name, "sha256").hex()[: 2 * JOB_ID_OCTETS] for name in names]


def former_job_ids(client: str, key: str, count: int) -> list[str]:
    """The identifiers as versions without a secret made them.

    Their jobs are looked for first, so that a submission that is repeated after an upgrade is not paid for twice.
    """
    names = (f"{client}\n{key}\n{number}" for number in range(count))
    return [hashlib.sha256(name.encode()).hexdigest()[: 2 * JOB_ID_OCTETS] for name in names]


def is_job_id(text: str) -> bool:
    """Whether a text has the form of our identifiers; the database is not queried for anything else."""
    return len(text) == 2 * JOB_ID_OCTETS and text.isalnum() and text.isascii()
