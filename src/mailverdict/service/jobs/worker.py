"""`Worker`: what happens to a job between its submission and its removal, on either store.

In the process of the API (SQLite) or in any number of processes (PostgreSQL) it looks four times a
second: `claim` gives it waiting jobs, and their results are written as they come. On PostgreSQL a
job by `smtp` is first routed to the owner of its mail servers; the worker that has the owner
verifies the owner's jobs in pieces, so that in the whole cluster one worker asks a mail server. A
worker renews its lease every two seconds; what others let lapse, it frees.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import platform
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from ...backend import Backend
from ...checks.lists.suffixes import registered_domain
from ...checks.syntax.address import observe_syntax
from ...contract.envelope import JobStatus
from ...errors import BackendError
from ...local.backend import LocalBackend
from ...model.settings import parse_duration
from ...model.verification import Verification, dump_payload
from ...model.words import Reason, ValidationType
from ...version import __version__
from ..engine import (
    FAILURE_MESSAGE,
    CheckOutcome,
    EngineFailure,
    VerificationEngine,
    saturated_verification,
)
from ..outages import OutageLog
from ..settings import ServiceSettings
from .group_committer import GroupCommitter
from .queue import BATCH_LIMIT, LEASE, OWNERS_AT_ONCE, JobOutcome, LeaseLost, Queue
from .schema import RowsLocked
from .store import STORE_UNAVAILABLE, Store, StoredJob, WorkerRow

T = TypeVar("T")
LOG = logging.getLogger(__name__)
LOOK_INTERVAL = 0.25  # seconds between looks for jobs
RENEW_INTERVAL = 2.0  # seconds
# Seconds without the database after which others may soon have this worker's jobs.
LOST_AFTER = LEASE / 2
PURGE_INTERVAL = 600.0  # seconds
ABORT_AFTER = 10.0  # seconds that results have to be written when the worker stops
# An owner's jobs are verified in pieces of about so many seconds: single checks wait for the end of
# one.
PIECE_SECONDS = 10.0
FIRST_PIECE = 100  # jobs
SMALLEST_PIECE = 50  # jobs; fewer would open a session for each few
NOT_WRITTEN = "the result could not be written"
Finished = tuple[JobOutcome, Verification | None]


@dataclass(frozen=True, slots=True)
class WorkerAbilities:
    """What a worker can do."""

    types: tuple[str, ...] = tuple(map(str, ValidationType))
    egress: str | None = None
    concurrency: int = 100  # owners at once


class Worker:
    """Moves jobs from `queued` over `processing` to `done` or `error`, and removes old ones.

    `on_finished` gets the final status and the verification of every job that ends here.
    """

    def __init__(
        self,
        store: Store,
        results: GroupCommitter[Sequence[JobOutcome]],
        engine: VerificationEngine,
        settings: ServiceSettings,
        abilities: WorkerAbilities | None = None,
        *,
        outages: OutageLog,
        on_finished: Callable[[str, Verification | None], None],
    ) -> None:
        self.store = store
        self.queue = Queue(store)
        self.results = results
        self.engine = engine
        self.settings = settings
        self.abilities = abilities or WorkerAbilities()
        self.outages = outages
        self.on_finished = on_finished
        types = ",".join(self.abilities.types)
        self.row = WorkerRow(
            f"{platform.node()}:{os.getpid()}", __version__, types, self.abilities.egress
        )
        self.number = 0  # in the table of workers
        # Seconds until a greylisted address is asked again; 0: never.
        self.second_pass_after = parse_duration(
            settings.local.retry_greylisted, name="retry_greylisted"
        )
        self.piece_seconds = PIECE_SECONDS
        self.retry_delay = 1.0  # seconds until a write that failed is tried again
        self.lost_after = LOST_AFTER
        self.wakeup = asyncio.Event()
        self.held: set[int] = set()  # claimed jobs
        # Owners that are asked, and the clients of their present jobs; none before these are read.
        self.asked: dict[str, set[str]] = {}
        self.stuck: set[int] = set()  # jobs of owners whose results can never be written
        self.others_wait = False  # owners wait for a place
        self.given_up: dict[str, None] = {}  # owners with more jobs, the last one at the end
        # The answer to a claim was lost, so that there may be more jobs than `held`.
        self.is_unsure = False
        # Others have its jobs, or may have them soon: it verifies nothing until it registers again.
        self.is_lost = False
        self.renewed_at = time.monotonic()
        self.unwritten: set[object] = set()  # what could not be written and is tried again
        self.batches: set[asyncio.Task[None]] = set()  # verifications under way
        self.writing: set[asyncio.Task[None]] = set()  # of results
        self.tasks: list[asyncio.Task[None]] = []

    # --- its own life -----------------------------------------------------------------------------

    async def open(self) -> None:
        """Register, and work from now on."""
        self.number = await self.store.write(self.queue.register, self.row)
        running = [self.run(), self.purge_periodically()]
        if self.store.is_shared:
            running += [self.renew_periodically(), self.outages.watch(self.renew)]
        self.tasks = list(map(asyncio.create_task, running))

    async def close(self) -> None:
        """Stop: end the verifications, write what is known, leave the rest to others."""
        self.interrupt()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, *self.batches, return_exceptions=True)
        if self.writing:
            await asyncio.wait(self.writing, timeout=ABORT_AFTER)
        for task in self.writing:
            task.cancel()
        await asyncio.gather(*self.writing, return_exceptions=True)
        with suppress(*STORE_UNAVAILABLE):
            await self.store.write(self.queue.leave, self.number)

    def is_working(self) -> bool:
        """Whether it runs, has renewed its lease lately, and could write its results."""
        is_running = bool(self.tasks) and not any(task.done() for task in self.tasks)
        is_late = self.store.is_shared and time.monotonic() - self.renewed_at > self.lost_after
        return is_running and not self.unwritten and not is_late

    async def run(self) -> None:
        """Work until cancelled, also when the store is unavailable for a while."""
        while True:
            self.wakeup.clear()
            if not self.is_lost:
                try:
                    await self.look()
                except LeaseLost:
                    self.interrupt()
                except STORE_UNAVAILABLE as exc:  # the jobs are safe in the store
                    self.is_unsure = True
                    self.outages.failed(exc)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_INTERVAL):
                    await self.wakeup.wait()
            await asyncio.sleep(self.settings.seconds("gather"))  # so that jobs share a batch

    async def look(self) -> None:
        """Claim jobs and start on them; then ask the owners whose jobs wait."""
        types = self.abilities.types
        held = self.held if self.is_unsure else None
        claimed = await self.store.write(self.queue.claim, self.number, types, held)
        self.is_unsure = False
        self.held.update(job.seq for job in claimed.jobs)
        if claimed.jobs:
            self.wakeup.set()  # there may be more
        batches: dict[tuple[str, str], list[StoredJob]] = {}
        for job in claimed.jobs:
            # Each client is routed by itself: the domains of another one may take long to look up.
            client = job.client if self.is_routed(job.validation_type) else ""
            batches.setdefault((job.validation_type, client), []).append(job)
        for (validation_type, _), batch in batches.items():
            self.start(self.begin(validation_type, batch))
        saturated = []
        for job in claimed.refused:
            saturated.append((job, CheckOutcome(job.email, failure=EngineFailure.SATURATED)))
        if saturated:
            keep(self.settle(saturated), self.writing)
        asks_owners = self.store.is_shared and ValidationType.SMTP in types
        beginning = sum(not clients for clients in self.asked.values())
        if asks_owners and claimed.others and beginning < OWNERS_AT_ONCE:
            await self.lease_owners()

    async def lease_owners(self) -> None:
        """Begin with owners whose jobs wait, as far as there are places."""
        names, self.others_wait = await self.store.write(
            self.queue.lease_owners,
            self.number,
            self.abilities.egress,
            dict(self.asked),
            self.abilities.concurrency,
            list(self.given_up),
        )
        for name in names:
            self.asked[name] = set()
            self.given_up.pop(name, None)
            self.start(self.ask(name))

    async def renew_periodically(self) -> None:
        """Renew the lease; interrupt the verifications when others may get this worker's jobs.

        That is when the database cannot be reached, or when this process was suspended.
        """
        while True:
            if time.monotonic() - self.renewed_at > self.lost_after:
                self.interrupt()
            try:
                async with asyncio.timeout(self.lost_after):
                    await self.renew()
            except (*STORE_UNAVAILABLE, TimeoutError) as exc:
                self.outages.failed(exc)
            await asyncio.sleep(RENEW_INTERVAL)

    async def renew(self) -> None:
        """Renew the lease, or register again as soon as the results that it has are written."""
        if not self.is_lost and not await self.store.write(self.queue.renew, self.number):
            self.interrupt()
        if self.is_lost and not self.batches and not self.unwritten:
            self.number = await self.store.write(self.queue.register, self.row, self.number)
            self.held.clear()
            self.asked.clear()
            self.is_lost = False
            self.wakeup.set()
        self.renewed_at = time.monotonic()

    def interrupt(self) -> None:
        """End all verifications; their jobs stay in the store."""
        self.is_lost = True
        for batch in self.batches:
            batch.cancel()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin with jobs; `interrupt` ends it."""
        keep(work, self.batches).add_done_callback(log_failure)

    async def purge_periodically(self) -> None:
        """Remove what is over until cancelled."""
        while True:
            try:
                await self.store.write(self.queue.purge)
            except STORE_UNAVAILABLE as exc:
                self.outages.failed(exc)
            await asyncio.sleep(PURGE_INTERVAL)

    # --- verification -----------------------------------------------------------------------------

    async def begin(self, validation_type: str, jobs: Sequence[StoredJob]) -> None:
        """Verify claimed jobs.

        On PostgreSQL those that need a mail server are left to its owner.
        """
        if self.is_routed(validation_type):
            jobs = await self.route(jobs)
        await self.verify(validation_type, jobs)

    def is_routed(self, validation_type: str) -> bool:
        """Whether jobs go to the worker that has the owner of their mail servers."""
        return self.store.is_shared and validation_type == ValidationType.SMTP

    async def route(self, jobs: Sequence[StoredJob]) -> Sequence[StoredJob]:
        """Write who owns the mail servers of jobs; return the jobs that need none."""
        try:
            emails = {job.email for job in jobs}
            owner_of = await find_owners(self.engine.backend, emails)
        except BackendError as exc:
            # The resolver cannot be used: the engine says so for every address.
            LOG.error("the mail servers could not be found: %s", exc)
            return jobs
        owners: dict[int, str] = {}
        without_owner: list[StoredJob] = []
        for job in jobs:
            name = owner_of[job.email]
            if name:
                owners[job.seq] = name
            else:
                without_owner.append(job)
        if owners:
            await self.until_written(
                partial(self.store.write, self.queue.route, self.number, owners)
            )
            self.held.difference_update(owners)
            self.wakeup.set()
        return without_owner

    async def ask(self, name: str) -> None:
        """Verify the single checks and the jobs of an owner in pieces while there are any.

        After `piece_seconds` another owner that waits gets the place of this one.
        """
        began = time.monotonic()
        size = FIRST_PIECE
        while True:
            take = partial(self.store.read, self.queue.take, name, size)
            taken = await self.until_written(take)
            if not taken:
                break
            jobs = [job for job in taken if job.seq not in self.stuck]
            if not jobs:
                # Nobody asks again what cannot be written, until this worker is started again.
                return
            checks = [job for job in jobs if job.priority]
            piece = checks or jobs
            piece_began = time.monotonic()
            self.asked[name] = {job.client for job in piece}
            if self.others_wait:
                self.wakeup.set()
            limit = "check_timeout" if checks else "job_timeout"
            await self.verify(ValidationType.SMTP, piece, limit)
            if len(piece) >= size:
                seconds = max(time.monotonic() - piece_began, 0.001)
                wanted = size * self.piece_seconds / seconds
                size = int(min(max(wanted, SMALLEST_PIECE), BATCH_LIMIT))
            if time.monotonic() - began > self.piece_seconds and self.others_wait:
                self.given_up[name] = None
                break
        release = partial(self.store.write, self.queue.release_owner, self.number, name)
        await self.until_written(release)
        self.asked.pop(name, None)
        self.wakeup.set()

    async def verify(
        self, validation_type: str, jobs: Sequence[StoredJob], limit: str = "job_timeout"
    ) -> None:
        """Verify jobs of one type, and write their results as they come.

        The jobs of one address share its outcome.
        """
        unanswered: dict[str, list[StoredJob]] = {}
        for job in jobs:
            unanswered.setdefault(job.email.strip(), []).append(job)
        if not unanswered:
            return
        clients = [same[0].client for same in unanswered.values()]
        written: list[asyncio.Task[None]] = []

        def settle(outcomes: Iterable[CheckOutcome]) -> None:
            """Concurrently, so that one commit has many results."""
            answered = []
            for outcome in outcomes:
                for job in unanswered.pop(outcome.email):
                    answered.append((job, outcome))
            written.append(keep(self.settle(answered), self.writing))

        try:
            async with (
                asyncio.timeout(self.settings.seconds(limit)),
                aclosing(self.engine.verify(list(unanswered), validation_type, clients)) as lists,
            ):
                async for outcomes in lists:
                    settle(outcomes)
        except TimeoutError:
            LOG.error("the engine did not answer %d jobs in time", len(unanswered))
            failure = EngineFailure.ERROR
            settle([CheckOutcome(email, failure=failure) for email in unanswered])
        await asyncio.gather(*(asyncio.shield(task) for task in written))

    # --- results ----------------------------------------------------------------------------------

    async def settle(self, answered: Sequence[tuple[StoredJob, CheckOutcome]]) -> None:
        """Write what becomes of jobs; a result that cannot be written is an error of the job.

        It never raises: an error here must not stop the other jobs of the batch.
        """
        jobs = [job for job, _ in answered]
        try:
            try:
                outcomes = [self.outcome_of(job, outcome) for job, outcome in answered]
                await self.write_outcomes(jobs, outcomes)
            except Exception:
                LOG.exception("%d results could not be written; their jobs end in error", len(jobs))
                errors = [(error_of(job, NOT_WRITTEN), None) for job in jobs]
                await self.write_outcomes(jobs, errors)
        except Exception:
            LOG.exception("%d jobs stay in processing until the next start", len(jobs))
            self.stuck.update(job.seq for job in jobs)

    async def write_outcomes(self, jobs: Sequence[StoredJob], finished: Sequence[Finished]) -> None:
        """Write outcomes, for as long as the store is unavailable again and again.

        Then count the jobs that ended.

        Those of each client are an operation of their own, so that none waits for the rows of
        another client.
        """
        by_client: dict[str, list[JobOutcome]] = {}
        for outcome, _ in finished:
            by_client.setdefault(outcome.client, []).append(outcome)
        writes = []
        for outcomes in by_client.values():
            writes.append(self.until_written(partial(self.results.run, outcomes)))
        written = set().union(*await asyncio.gather(*writes))
        for job, (outcome, verification) in zip(jobs, finished, strict=True):
            has_ended = job.seq in written and outcome.status != JobStatus.PROCESSING
            if has_ended and not job.priority:
                self.on_finished(outcome.status, verification)
        self.held.difference_update(job.seq for job in jobs)
        self.wakeup.set()

    async def until_written(self, write: Callable[[], Awaitable[T]]) -> T:
        """Write, and try again for as long as the store is unavailable.

        All that is written may be written twice.
        """
        mark = object()
        try:
            while True:
                try:
                    return await write()
                except STORE_UNAVAILABLE as exc:
                    if not isinstance(exc, RowsLocked):  # which says nothing about the store
                        self.unwritten.add(mark)
                    self.outages.failed(exc)
                    await asyncio.sleep(self.retry_delay)
        finally:
            self.unwritten.discard(mark)

    def outcome_of(self, job: StoredJob, outcome: CheckOutcome) -> Finished:
        """What becomes of a job.

        It ends, or is tried again, as the engine was saturated or a mail server greylists it.

        A job without further attempts ends as `throttled`, and a single check is not tried again:
        its client waits.
        """
        backoff = self.settings.saturation_backoff
        verification = outcome.verification
        again = JobOutcome(
            job.seq,
            job.client,
            JobStatus.PROCESSING,
            attempt=job.attempt,
            second_pass=job.second_pass,
        )
        if outcome.failure is EngineFailure.SATURATED:
            if not job.priority and job.attempt < len(backoff):
                due_in = backoff[job.attempt]
                return replace(again, attempt=job.attempt + 1, due_in=due_in), None
            email = job.email.strip()
            verification = saturated_verification(email, job.validation_type, Reason.THROTTLED)
        if verification is None:
            failure = outcome.failure or EngineFailure.ERROR
            return error_of(job, FAILURE_MESSAGE[failure]), None
        is_first_pass = bool(self.second_pass_after) and not (job.second_pass or job.priority)
        if Reason.GREYLISTED in verification.reasons and is_first_pass:
            return replace(again, second_pass=True, due_in=self.second_pass_after), None
        try:
            payload = dump_verification(verification)
        except Exception:
            LOG.exception("the verification of job %s could not be written as JSON", job.job_id)
            return error_of(job, NOT_WRITTEN), None
        return replace(again, status=JobStatus.DONE, verification=payload), verification


async def find_owners(backend: Backend, emails: Iterable[str]) -> dict[str, str | None]:
    """The owner of the preferred mail server of each address's domain.

    None if no mail server would be asked.

    A domain whose mail servers are not known, because its look-up failed or the backend does not
    use the DNS, is its own owner.
    """
    domains = {email: observe_syntax(email.strip()).ascii_domain for email in emails}
    owners: dict[str, str | None] = {domain: domain or None for domain in domains.values()}
    if isinstance(backend, LocalBackend):
        names = [domain for domain in owners if domain]
        await backend.domains.require_resolver()
        async for position, dns in backend.domains.observer.observe_domains(names):
            if dns.exchanges:
                host = dns.exchanges[0].host.lower().rstrip(".")
                owners[names[position]] = registered_domain(host)
            elif dns.is_undeliverable:
                owners[names[position]] = None
    return {email: owners[domain] for email, domain in domains.items()}


def error_of(job: StoredJob, message: str) -> JobOutcome:
    return JobOutcome(
        job.seq,
        job.client,
        JobStatus.ERROR,
        message=message,
        attempt=job.attempt,
        second_pass=job.second_pass,
    )


def dump_verification(verification: Verification) -> str:
    """The payload as the store keeps it."""
    return json.dumps(dump_payload(verification), separators=(",", ":"))


def keep(work: Coroutine[Any, Any, None], tasks: set[asyncio.Task[None]]) -> asyncio.Task[None]:
    """Begin with work, which is in `tasks` until its end."""
    task = asyncio.get_running_loop().create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return task


def log_failure(task: asyncio.Task[None]) -> None:
    """Log why work ended early; its jobs stay in the store until the worker is started again."""
    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, LeaseLost):
        LOG.error("jobs stay in processing until this worker is started again", exc_info=error)
