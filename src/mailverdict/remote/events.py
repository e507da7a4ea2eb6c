"""`EventStream`: one run against a verification service, from submissions and polls to events."""

from __future__ import annotations

import asyncio
import heapq
import math
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus

from ..backend import (
    Deferred,
    Event,
    Job,
    Noticed,
    Paced,
    Settled,
    Submitted,
    Waiting,
)
from ..contract.envelope import BULK_LIMIT, JobStatus
from ..errors import BackendError, RateLimited, ServiceError
from ..model.verification import Verification
from ..model.words import Reason, Verdict
from .api import (
    QUOTA_REQUEST,
    JobFailure,
    job_row,
    rows_table,
    success_of,
)
from .bulk import Submission
from .pace import QUEUED_FOR, SentBatch
from .polling import Ending, GaveUp, PollResult, PollSchedule, follow_job, poll_request, read_poll

MAX_IN_FLIGHT = (
    2_000  # jobs polled at a time; submitting waits then, so that polls stay on schedule
)
DENIED = 5.0  # seconds of answers that deny the client access, after which the quota is requested
OUTAGE = 60.0  # seconds without a usable poll after which the service counts as down
# Share of that time, and seconds, for which all polls then pause.
OUTAGE_PAUSE, MAX_OUTAGE_PAUSE = (
    0.25,
    15.0,
)
MIN_PAUSE = 0.02  # seconds between looks at the pace
LONG_PAUSE = 0.5  # the same, if only addresses at their last chance are left
MAX_SLEEP = 60.0  # seconds between looks at the pace, at most
REFUSALS = {str(reason): reason for reason in (Reason.RATE_LIMITED, Reason.THROTTLED)}
TICK = 0.05  # seconds between the times of polls; several at once need less processor time than each alone
SOON = 1.0  # seconds; a poll that is due sooner is sent exactly then
MIN_WAITING = 1.0  # seconds; there is no event for a shorter wait


@dataclass(slots=True)
class PolledJob:
    """A job that is polled."""

    job: Job
    # None: an earlier run submitted it, or the pace knows whether a limiter refused it.
    sent: SentBatch | None


class EventStream:
    """One call of `RemoteBackend.verify`: submits batch by batch, polls each job in a task, yields events."""

    def __init__(
        self,
        submission: Submission,
        *,
        schedule: PollSchedule,
        parallel: int,
        asks_again: bool = True,
    ) -> None:
        self.submission, self.schedule, self.asks_again = submission, schedule, asks_again
        self.client, self.pace, self.clock = submission.client, submission.pace, submission.clock
        self.polled: dict[asyncio.Task[Ending], PolledJob] = {}
        self.ended: list[tuple[asyncio.Task[Ending], Job]] = []
        self.slots = asyncio.Semaphore(parallel)
        # Held by a submission: the pace hears of no outcome before it is told what was sent.
        self.turn = asyncio.Lock()
        self.changed = asyncio.Event()  # a poll was answered
        self.times: list[float] = []  # of the next polls, as a heap
        self.job_count = 0
        self.paused_until = 0.0
        self.failing_since: float | None = None
        self.given_up: Counter[str] = Counter()

    async def events(self, in_flight: Sequence[Job]) -> AsyncGenerator[Event, None]:
        """Submit and poll until nothing is left.

        If the service cannot be used for submitting, the paid-for jobs are polled to their end before
        the error is raised.
        """
        self.follow(in_flight)
        try:
            while self.submission.has_work or self.has_jobs:
                if self.may_submit():
                    async with self.turn, aclosing(self.submit()) as submitting:
                        async for event in submitting:
                            yield event
                    yield self.paced()
                for event in (*self.stop_if_refused(), *self.wait_events()):
                    yield event
                await self.wait()
                for event in self.ending_events():
                    yield event
        finally:
            for task in self.polled:
                task.cancel()  # polling again costs nothing
            await asyncio.gather(
                *self.polled, *(task for task, _ in self.ended), return_exceptions=True
            )
        for event in self.final_notices():
            yield event
        if self.job_count:
            yield self.paced()
        if self.submission.error is not None:
            raise self.submission.error

    def stop_if_refused(self) -> Iterator[Event]:
        """Defer what is left if the service has refused everything for too long."""
        if self.submission.has_work and self.pace.has_given_up(self.clock()):
            yield from self.submission.defer_rest(
                "refused", "the service has refused everything for too long"
            )

    def paced(self) -> Paced:
        """The present pace, and what a later run should know."""
        now, submission = self.clock(), self.submission
        left = self.pace.seconds_left(now, len(submission.left) + len(submission.refused))
        return Paced(self.client.base_url, self.pace.speed(now), left, self.pace.known_pace(now))

    @property
    def has_jobs(self) -> bool:
        """Whether a job is still polled."""
        return bool(self.polled or self.ended)

    def may_submit(self) -> bool:
        """Whether there is something to submit, room for a whole batch of jobs, and the pace allows it."""
        return self.has_room() and self.submission.allowance() > 0

    def has_room(self) -> bool:
        """Whether there is something to submit, and room for a whole batch of jobs."""
        return (
            self.submission.has_work
            and len(self.polled) + len(self.ended) + BULK_LIMIT <= MAX_IN_FLIGHT
        )

    def follow(self, jobs: Sequence[Job], sent: SentBatch | None = None) -> None:
        """Poll jobs from now on, with staggered first polls; the last jobs of a batch first.

        A limiter that counts one by one refuses the end of a batch: if that has passed, all have.
        """
        now = self.clock()
        for place, job in enumerate(jobs if sent is None else reversed(jobs)):
            polled = PolledJob(job, sent)
            first = self.schedule.first_poll(job, place, len(jobs), now)
            task = asyncio.create_task(self.follow_to_end(polled, first))
            self.polled[task] = polled
            task.add_done_callback(self.on_ended)
        self.job_count += len(jobs)

    async def submit(self) -> AsyncGenerator[Event, None]:
        """Submit one batch, and poll its jobs from then on.

        If the run is cancelled during a submission, its answer is still processed, since its jobs are paid for.
        """
        try:
            async with aclosing(self.submission.next_batch()) as events:
                async for event in events:
                    yield event
                    if isinstance(event, Submitted):
                        self.follow(event.jobs, self.pace.on_sent(self.clock(), len(event.jobs)))
        except BackendError as exc:  # ends submitting, not polling
            self.submission.error = exc
        if self.client.is_stopped:
            raise asyncio.CancelledError
        if self.submission.error is not None and self.has_jobs:
            yield Noticed(f"nothing more is submitted: {self.submission.error}")

    def wait_events(self) -> Iterator[Event]:
        """An event if nothing is to do for a while: no poll under way or due, nothing to submit."""
        now = self.clock()
        while self.times and self.times[0] <= now:
            heapq.heappop(self.times)
        wait = max(self.times[0], self.paused_until) - now if self.times else 0.0
        if wait >= MIN_WAITING and not self.may_submit():
            yield Waiting(wait, f"waiting for {len(self.polled)} jobs")

    async def wait(self) -> None:
        """Wait until a poll is answered or the pace may allow a batch; not at all if it allows one now."""
        seconds = MAX_SLEEP if self.polled else 0.0
        if self.has_room():
            now = self.clock()
            least = LONG_PAUSE if self.submission.is_last_chance else MIN_PAUSE
            pause = max(least, self.pace.next_time(now, self.submission.next_count) - now)
            seconds = 0.0 if self.may_submit() else min(MAX_SLEEP, pause)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.changed.wait()
        self.changed.clear()

    async def follow_to_end(self, polled: PolledJob, first: float) -> Ending:
        """Poll a job to its end."""
        ending = await follow_job(polled.job, self.schedule, first, partial(self.poll, polled))
        if polled.sent is not None:
            self.pace.on_abandoned(polled.sent, self.clock())
        return ending

    def on_ended(self, task: asyncio.Task[Ending]) -> None:
        """Keep a task that has ended for `ending_events`."""
        self.ended.append((task, self.polled.pop(task).job))
        self.changed.set()

    async def poll(self, polled: PolledJob, due: float) -> tuple[PollResult, float]:
        """Poll a job when it is due and polls are not paused; gives also the time of the answer."""
        now = self.clock()
        due = common_time(due, now) if polled.sent is None else due
        heapq.heappush(self.times, due)
        await asyncio.sleep(due - now)
        async with self.slots:
            while (pause := self.paused_until - self.clock()) > 0:  # noqa: ASYNC110 - it may become longer
                await asyncio.sleep(pause)
            result = read_poll(polled.job, await self.client.send(poll_request(polled.job)))
        async with self.turn:
            self.report_to_pace(polled, result)
            await self.check_service(result)
        self.changed.set()
        now, pause = self.clock(), 0.0
        if isinstance(result, RateLimited):
            pause = result.retry_after or 0.0
        elif isinstance(result, BackendError) and self.failing_since is not None:
            pause = min(MAX_OUTAGE_PAUSE, OUTAGE_PAUSE * (now - self.failing_since))
        self.paused_until = max(self.paused_until, now + pause)
        return result, now

    def report_to_pace(self, polled: PolledJob, result: PollResult) -> None:
        """Report what a poll shows about the service's limiter."""
        sent, now = polled.sent, self.clock()
        if sent is None:
            return
        reason = refusal_reason(result)
        if reason is not None:
            polled.sent = None
            self.pace.on_refused(sent, now, is_throttled=reason is Reason.THROTTLED)
        elif isinstance(result, Verification | JobFailure) or has_left_queue(
            result, now - polled.job.submitted_at
        ):
            polled.sent = None
            self.pace.on_passed(sent, now)

    def ending_events(self) -> Iterator[Event]:
        """Events for rows that are final, for rows of addresses that are submitted again, and for jobs given up."""
        endings = [(job, task.result()) for task, job in self.ended]
        self.ended.clear()
        self.given_up.update(ending.reason for _, ending in endings if isinstance(ending, GaveUp))
        final: list[tuple[Job, Verification | JobFailure]] = []
        again: list[tuple[Job, Verification | JobFailure]] = []
        for job, ending in endings:
            if isinstance(ending, GaveUp):
                continue
            refused = self.asks_again and refusal_reason(ending) is not None
            (again if refused and self.submission.ask_again(job.email) else final).append(
                (job, ending)
            )
        for rows, is_asked_again in ((final, False), (again, True)):
            if rows:
                table = rows_table([job_row(ending, job) for job, ending in rows])
                yield Settled(
                    table, tuple(job.job_id for job, _ in rows), is_asked_again=is_asked_again
                )
        if left := tuple(job.email for job, ending in endings if isinstance(ending, GaveUp)):
            yield Deferred(left, "gave_up")

    async def check_service(self, result: PollResult) -> None:
        """Request the quota if no poll was usable for a while; raises if the service is down."""
        now = self.clock()
        if not isinstance(result, BackendError):
            self.failing_since = None
        elif self.failing_since is None:
            self.failing_since = now
        elif now - self.failing_since >= (DENIED if is_access_denied(result) else OUTAGE):
            success_of(await self.client.send(QUOTA_REQUEST))
            self.failing_since = now

    def final_notices(self) -> Iterator[Event]:
        """Notices about a long wait, addresses that were submitted again, and jobs that were given up."""
        if notice := self.client.delay_notice():
            yield Noticed(notice)
        if repeats := self.submission.repeats:
            yield Noticed(
                f"the service's limiter refused {len(self.submission.refusals):,} addresses; they were submitted "
                f"again, which cost {repeats:,} more units of quota"
            )
        for reason, count in self.given_up.items():
            yield Noticed(
                f"{count} jobs were {reason} after {self.schedule.give_up:g} seconds; they stay pending, "
                "and a later call on the same journal polls them again at no cost"
            )


def common_time(due: float, now: float) -> float:
    """The time of a poll that shows nothing about the limiter: later by less than `TICK`, unless it is due soon."""
    return math.ceil(due / TICK) * TICK if due - now >= SOON else due


def refusal_reason(result: PollResult | Ending) -> Reason | None:
    """The reason if the service's limiter or queue refused the address."""
    if isinstance(result, Verification) and result.result == Verdict.UNKNOWN and result.reasons:
        return REFUSALS.get(result.reasons[0])
    return None


def is_access_denied(result: PollResult) -> bool:
    """Whether the service does not accept the client, as when its key was revoked."""
    refusals = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
    return isinstance(result, ServiceError) and result.status in refusals


def has_left_queue(result: PollResult, age: float) -> bool:
    """Whether a job that is not over has passed the limiter, by its status or its age."""
    if not isinstance(result, str):
        return False
    return result == JobStatus.PROCESSING or age >= QUEUED_FOR
