"""`SharedWorker`: one of several workers on a PostgreSQL store.

It runs the tasks of `tasks.py`. A result is written once, whoever writes first. A task that ends early, because the
worker stops, has lost the database or is cancelled, leaves its unfinished jobs in the store, where another task
continues; finished jobs are not verified again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from ...errors import BackendError
from ...model.settings import parse_duration
from ...model.words import Reason, ValidationType
from ...version import __version__
from ..engine import CheckOutcome, EngineFailure, VerificationEngine
from ..jobs.group_committer import GroupCommitter
from ..jobs.store import StoredJob
from ..jobs.verifier import Finished, JobVerifier, dump_verification, seqs_of
from ..jobs.worker import DAY, STORE_UNAVAILABLE
from ..settings import Clock, ServiceSettings
from .owners import find_owners
from .store import BATCH_LIMIT, AnsweredCheck, EndedJob, SharedStore, WorkerRow
from .tasks import ABORT_AFTER, MAINTENANCE, STALLED_AFTER, TaskQueue

P = ParamSpec("P")
T = TypeVar("T")
LOG = logging.getLogger(__name__)
HEARTBEAT_INTERVAL = 2.0  # seconds
LOST_AFTER = STALLED_AFTER / 2  # seconds without the database after which others may soon have this worker's tasks
RESTART_DELAY = 1.0  # seconds until the tasks are run again after the database was lost
# An owner's jobs are verified in pieces of about so many seconds: single checks wait for the end of one.
PIECE_SECONDS = 10.0
FIRST_PIECE = 100  # jobs
SMALLEST_PIECE = 50  # jobs; fewer would open a session for each few


@dataclass(frozen=True, slots=True)
class WorkerAbilities:
    """What a worker can do."""

    types: tuple[str, ...] = tuple(map(str, ValidationType))
    egress: str | None = None
    concurrency: int = 100  # tasks at once; each asks one owner

    @property
    def queues(self) -> list[str]:
        """The queues that it serves."""
        smtp = str(ValidationType.SMTP)
        routed = [f"{smtp}@{self.egress}"] if self.egress and smtp in self.types else []
        return [*self.types, *routed, MAINTENANCE]


class SharedWorker(JobVerifier):
    """Runs tasks until it is stopped; `open` registers it, `close` hands its owners over."""

    def __init__(
        self,
        engine: VerificationEngine,
        settings: ServiceSettings,
        abilities: WorkerAbilities,
        *,
        store: SharedStore,
        tasks: TaskQueue,
        clock: Clock,
    ) -> None:
        super().__init__(engine, settings, clock)
        self.store = store
        self.outages = store.outages
        self.tasks = tasks
        self.abilities = abilities
        self.results: GroupCommitter[tuple[int, list[EndedJob]]] = GroupCommitter(
            store.settle, name="mailverdict-results"
        )
        self.row = WorkerRow(
            f"{platform.node()}:{os.getpid()}", __version__, ",".join(abilities.types), abilities.egress
        )
        self.number = 0  # in the table of workers
        self.second_pass_after = parse_duration(settings.local.retry_greylisted, name="retry_greylisted")  # 0: none
        self.piece_seconds = PIECE_SECONDS
        self.retry_delay = 1.0  # seconds until a write that failed is tried again
        self.batches: set[asyncio.Task[None]] = set()  # verifications under way
        self.orphans: set[int] = set()  # tasks that are marked as ours and were not running at the last look
        self.is_stopping = False  # no task begins anything new
        self.seen_at = time.monotonic()  # last heartbeat
        self.lost_after = LOST_AFTER
        self.unwritten: set[object] = set()  # what could not be written and is tried again
        self.runner: Any = None  # Procrastinate's worker
        self.side_tasks: list[asyncio.Task[None]] = []

    # --- its own life ---------------------------------------------------------------------------

    async def open(self) -> None:
        """Register, and run tasks from now on."""
        self.number = await self.store.run(self.store.register, self.row)
        self.tasks.register(self)
        watch = self.outages.watch(self.write_heartbeat)
        side_tasks = (self.run_tasks(), self.beat(), self.tasks.run_schedule(), watch)
        self.side_tasks = [asyncio.create_task(each) for each in side_tasks]

    async def close(self) -> None:
        """Stop: end the verifications, hand their owners over, write what is known."""
        self.is_stopping = True
        self.interrupt()
        for task in self.side_tasks:
            task.cancel()
        await asyncio.wait(self.side_tasks, timeout=2 * ABORT_AFTER)
        await self.results.aclose()
        with suppress(*STORE_UNAVAILABLE):
            await self.store.run(self.store.unregister, self.number)

    def is_working(self) -> bool:
        """Whether it runs, has written a heartbeat lately, and could write the results that it has."""
        is_running = bool(self.side_tasks) and not any(task.done() for task in self.side_tasks)
        return is_running and not self.unwritten and time.monotonic() - self.seen_at < self.lost_after

    async def run_tasks(self) -> None:
        """Run tasks until cancelled, also when the database is away for a while.

        An error while Procrastinate's worker stops replaces the cancellation.
        """
        while not self.is_stopping:
            self.runner = self.tasks.make_worker(self.abilities.queues, self.abilities.concurrency, self.interrupt)
            try:
                await self.runner.run()  # when cancelled, it waits for its tasks
            except self.tasks.unavailable as exc:
                self.outages.failed(exc)
            except self.tasks.forgotten:
                LOG.warning("others took this worker for dead, since it wrote no heartbeat; it registers again")
            except Exception:
                LOG.exception("tasks cannot be run; the worker tries again")
            await asyncio.sleep(RESTART_DELAY)

    async def beat(self) -> None:
        """Write heartbeats; interrupt the verifications when others may get this worker's tasks.

        That is when the database cannot be reached, or when this process was suspended.
        """
        while True:
            is_lost = time.monotonic() - self.seen_at > self.lost_after
            if is_lost:
                self.interrupt()
            try:
                async with asyncio.timeout(self.lost_after):
                    await self.write_heartbeat()
                    await self.end_orphans()
                self.seen_at = time.monotonic()
            except (*STORE_UNAVAILABLE, self.tasks.unavailable, TimeoutError) as exc:
                self.outages.failed(exc)
            await asyncio.sleep(HEARTBEAT_INTERVAL)

    async def write_heartbeat(self) -> None:
        """Write a heartbeat; register again if others removed this worker while its process was suspended."""
        if not await self.store.run(self.store.heartbeat, self.number):
            self.number = await self.store.run(self.store.register, self.row)

    async def end_orphans(self) -> None:
        """End the tasks that are marked as ours and do not run: their end could not be written."""
        number = self.runner and self.runner.worker_id
        if number is None:
            return
        found = await self.store.run(self.store.tasks_of, number) - self.tasks.running
        await self.tasks.end_tasks(found & self.orphans)
        self.orphans = found

    def interrupt(self) -> None:
        """End all verifications; their jobs stay in the store."""
        for batch in self.batches:
            batch.cancel()

    # --- tasks ----------------------------------------------------------------------------------

    async def look_up(self, batch: int, validation_type: str) -> None:
        """Claim jobs of a type and verify them; for `smtp` find their owners, and let these be asked."""
        await asyncio.sleep(self.settings.seconds("gather"))
        claimed = await self.store.run(self.store.claim, validation_type, batch, self.clock())
        if claimed.has_more:
            await self.tasks.defer_look_up(validation_type)
        elif claimed.ready_in is not None:
            await self.tasks.defer_look_up(validation_type, seconds=claimed.ready_in)
        if not claimed.jobs:
            return
        try:
            await self.interruptible(self.verify_claimed(validation_type, claimed.jobs))
        finally:
            await self.store.run(self.store.give_back, batch, self.clock())  # what was not finished
        if await self.store.run(self.store.has_queued, validation_type):
            await self.tasks.defer_look_up(validation_type)

    async def verify_claimed(self, validation_type: str, jobs: Sequence[StoredJob]) -> None:
        """Verify claimed jobs, but those that need a mail server."""
        if validation_type != ValidationType.SMTP:
            await self.verify_batch(validation_type, jobs)
            return
        try:
            owners = await find_owners(self.engine.backend, {each.email for each in jobs})
        except BackendError as exc:  # the resolver cannot be used: the engine says so for every address
            LOG.error("the mail servers could not be found: %s", exc)
            owners = {}
        by_owner: dict[str, list[int]] = {}
        for each in jobs:
            if owner := owners.get(each.email):
                by_owner.setdefault(owner, []).append(each.seq)
        if by_owner:
            await self.store.run(self.store.assign_owners, by_owner)
            await self.tasks.defer_ask(by_owner)
        if without := [each for each in jobs if not owners.get(each.email)]:
            await self.verify_batch(validation_type, without)

    async def ask(self, owner: str) -> None:
        """Answer the single checks of an owner, verify a piece of its jobs, and go on while there are any.

        After `piece_seconds` another task that waits gets the place of this one.
        """
        began, size = time.monotonic(), FIRST_PIECE
        taken: set[int] = set()
        stuck: set[int] = set()  # their results could not be written; `recover` gives them another task
        while not self.is_stopping:
            checks = await self.store.run(self.store.take_checks, owner)
            if checks and not await self.interruptible(self.answer_checks(checks)):
                break
            found = await self.store.run(self.store.take, owner, size + len(stuck))
            stuck = taken & set(seqs_of(found))
            jobs = [each for each in found if each.seq not in taken]
            if not (jobs or checks):
                break
            taken.update(seqs_of(jobs))
            piece_began = time.monotonic()
            if jobs and not await self.interruptible(self.verify_batch(ValidationType.SMTP, jobs)):
                break
            if len(jobs) >= size:
                wanted = size * self.piece_seconds / max(time.monotonic() - piece_began, 0.001)
                size = int(min(max(wanted, SMALLEST_PIECE), BATCH_LIMIT))
            if time.monotonic() - began > self.piece_seconds and await self.has_waiting_tasks():
                await self.tasks.defer_ask([owner])
                return
        if self.is_stopping:
            await self.tasks.defer_ask([owner])  # another worker continues at once
        elif await self.store.run(self.store.has_queued, ValidationType.SMTP):
            await self.tasks.defer_look_up(ValidationType.SMTP)  # there is room again

    async def has_waiting_tasks(self) -> bool:
        """Whether a task that this worker can run waits for room."""
        return await self.store.run(self.store.has_waiting_tasks, self.abilities.queues)

    async def answer_checks(self, checks: Mapping[str, str]) -> None:
        """Verify the addresses of single checks, given by identifier, and write the answers as they come."""
        waiting: dict[str, list[str]] = {}
        for number, email in checks.items():
            waiting.setdefault(email, []).append(number)

        async def answer(outcomes: Sequence[CheckOutcome]) -> None:
            numbers = [(number, each) for each in outcomes for number in waiting.pop(each.email)]
            answers = [answer_of(number, each) for number, each in numbers]
            await self.persist(self.store.answer_checks, answers)

        try:
            async with (
                asyncio.timeout(self.settings.seconds("check_timeout")),
                aclosing(self.engine.verify(list(waiting), ValidationType.SMTP)) as lists,
            ):
                async for outcomes in lists:
                    await answer(outcomes)
        except TimeoutError:
            LOG.error("the engine did not answer %d single checks in time", len(waiting))
            await answer([CheckOutcome(email, failure=EngineFailure.ERROR) for email in waiting])

    async def interruptible(self, verification: Coroutine[None, None, None]) -> bool:
        """Run a verification that `interrupt` can end; return whether it came to its end."""
        batch: asyncio.Task[None] = asyncio.create_task(verification)
        self.batches.add(batch)
        try:
            await asyncio.wait([batch])
        finally:
            self.batches.discard(batch)
            batch.cancel()
        if batch.cancelled():
            return False
        batch.result()
        return True

    async def recover(self) -> None:
        """End the tasks of workers that have died, and give tasks to jobs that have none."""
        await self.tasks.end_stalled()
        owners, types = await self.store.run(self.store.abandoned, self.clock())
        await self.tasks.defer_ask(owners)
        await self.tasks.defer_ask(await self.store.run(self.store.checks_without_task), is_check=True)
        for validation_type in types:
            await self.tasks.defer_look_up(validation_type)

    async def purge(self) -> None:
        """Remove jobs whose retention is over, and the quota of past days."""
        now = self.clock()
        ended_before = now - self.settings.seconds("result_retention")
        await self.store.run(self.store.purge, ended_before, self.settings.day_of(now - DAY))

    # --- results --------------------------------------------------------------------------------

    async def write_results(self, results: Sequence[Finished]) -> None:
        """Write results, and try again for as long as the database is unavailable."""
        now = self.clock()
        ended = [
            EndedJob(
                result.seq,
                result.status,
                result.verification,
                result.message,
                verification.validation_type if verification else "",
                str(verification.result) if verification else "",
                now,
            )
            for result, verification in results
        ]
        await self.until_written(lambda: self.results.run((self.number, ended)))

    async def persist(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a method of the store, and try again for as long as the database is unavailable."""
        return await self.until_written(lambda: self.store.run(method, *args, **kwargs))

    async def until_written(self, write: Callable[[], Awaitable[T]]) -> T:
        """Write results, and try again for as long as the database is unavailable."""
        mark = object()
        try:
            while True:
                try:
                    return await write()
                except STORE_UNAVAILABLE as exc:
                    self.unwritten.add(mark)
                    self.outages.failed(exc)
                    await asyncio.sleep(self.retry_delay)
        finally:
            self.unwritten.discard(mark)

    async def settle(self, answered: Sequence[tuple[CheckOutcome, list[StoredJob]]]) -> None:
        """Write results; jobs that are greylisted for the first time get a second pass on a schedule."""
        again = await self.begin_second_pass(
            [job for outcome, jobs in answered if is_greylisted(outcome) for job in jobs]
        )
        left = [(outcome, [job for job in jobs if job.seq not in again]) for outcome, jobs in answered]
        await super().settle(left)

    async def begin_second_pass(self, jobs: Sequence[StoredJob]) -> set[int]:
        """Postpone jobs until a greylisting mail server may accept them; those that had their second pass are not."""
        if not (jobs and self.second_pass_after):
            return set()
        now = self.clock()
        due = now + self.second_pass_after
        again = await self.persist(self.store.begin_second_pass, seqs_of(jobs), due, now)
        if again:
            with self.tasks.reporting():  # `recover` finds what is due
                await self.tasks.defer_look_up(ValidationType.SMTP, seconds=due - now)
        return again

    async def write_postponed(self, jobs: Sequence[StoredJob], attempt: int, due: float) -> None:
        """Write that jobs are tried again, and schedule the look-up that will do it."""
        now = self.clock()
        await self.persist(self.store.postpone, seqs_of(jobs), attempt, due, now)
        with self.tasks.reporting():  # `recover` finds what is due
            for validation_type in {each.validation_type for each in jobs}:
                await self.tasks.defer_look_up(validation_type, seconds=due - now)

    def on_left(self, jobs: Sequence[StoredJob]) -> None:
        """Do nothing: the claim ends with the result."""


def is_greylisted(outcome: CheckOutcome) -> bool:
    return outcome.verification is not None and Reason.GREYLISTED in outcome.verification.reasons


def answer_of(number: str, outcome: CheckOutcome) -> AnsweredCheck:
    """The answer to a single check; a verification that cannot be written as JSON is a failure."""
    if outcome.verification is None:
        return AnsweredCheck(number, outcome.email, None, outcome.failure or EngineFailure.ERROR)
    try:
        return AnsweredCheck(number, outcome.email, dump_verification(outcome.verification), None)
    except Exception:
        LOG.exception("the verification of a single check could not be written as JSON")
        return AnsweredCheck(number, outcome.email, None, EngineFailure.ERROR)
