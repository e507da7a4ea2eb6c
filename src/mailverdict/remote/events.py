"""`EventStream`: one run against a verification service, from submissions and polls to events."""

from __future__ import annotations

import asyncio
import heapq
import math
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from http import HTTPStatus

from ..backend import (
    Deferred,
    Event,
    Job,
    KnownPace,
    Noticed,
    Paced,
    QuotaSeen,
    Settled,
    Submitted,
    Waiting,
)
from ..contract.envelope import BULK_LIMIT, JobStatus
from ..errors import BackendError, ContractError, RateLimited, ServiceError
from ..model.verification import Verification
from ..model.words import Reason, Verdict
from .api import (
    QUOTA_REQUEST,
    ApiAnswer,
    ApiRequest,
    JobFailure,
    Pause,
    Step,
    Steps,
    job_row,
    rows_table,
    success_of,
)
from .bulk import Submission
from .client import Client
from .pace import QUEUED_FOR, Pace, SentBatch
from .polling import Ending, GaveUp, PollResult, PollSchedule, TimedPollResult, follow_job, poll_request, read_poll

MAX_IN_FLIGHT = 2_000  # jobs polled at a time; submitting waits then, so that polls stay on schedule
DENIED = 5.0  # seconds of answers that deny the client access, after which the quota is requested
OUTAGE = 60.0  # seconds without a usable poll after which the service counts as down
OUTAGE_PAUSE, MAX_OUTAGE_PAUSE = 0.25, 15.0  # share of that time, and seconds, for which all polls then pause
MIN_PAUSE = 0.02  # seconds between looks at the pace
LONG_PAUSE = 0.5  # the same, if only addresses at their last chance are left
MAX_SLEEP = 60.0  # seconds between looks at the pace while there is nothing to poll
REFUSALS = {str(reason): reason for reason in (Reason.RATE_LIMITED, Reason.THROTTLED)}
TICK = 0.05  # seconds between the times of polls; several at once need less processor time than each alone
SOON = 1.0  # seconds; a poll that is due sooner is sent exactly then
MIN_WAITING = 1.0  # seconds; there is no event for a shorter wait


@dataclass(order=True)
class PolledJob:
    """A job and the time of its next poll; ordered for the heap."""

    due: float  # seconds since the epoch
    number: int  # order of jobs that are due at the same time
    job: Job = field(compare=False)
    follower: Generator[float, TimedPollResult, Ending] = field(compare=False)
    sent: SentBatch | None = field(compare=False)  # None: submitted by an earlier run
    is_reported: bool = field(compare=False, default=False)  # whether the pace knows if a limiter refused it


class EventStream:
    """One call of `RemoteBackend.verify`: carries out the steps, keeps a few polls in parallel, yields events."""

    def __init__(
        self,
        client: Client,
        submission: Submission,
        *,
        schedule: PollSchedule,
        parallel: int,
        clock: Callable[[], float],
        pace: Pace,
        asks_again: bool = True,
    ) -> None:
        self.client, self.submission, self.schedule = client, submission, schedule
        self.pace, self.asks_again = pace, asks_again
        self.parallel, self.clock = parallel, clock
        self.queue: list[PolledJob] = []
        self.polls: dict[asyncio.Task[ApiAnswer], PolledJob] = {}
        self.job_count = 0
        self.paused_until = 0.0
        self.failing_since: float | None = None
        self.given_up: Counter[str] = Counter()
        self.remembered: KnownPace | None = None
        self.repeats = 0  # addresses that were submitted again

    async def events(self, in_flight: Sequence[Job]) -> AsyncGenerator[Event, None]:
        """Submit and poll until nothing is left.

        If the service cannot be used for submitting, the paid-for jobs are polled to their end before
        the error is raised.
        """
        self.follow(in_flight)
        try:
            while self.submission.has_work or self.has_jobs:
                if self.may_submit():
                    async with aclosing(self.submit()) as submitting:
                        async for event in submitting:
                            yield event
                    yield self.paced()
                for event in (*self.stop_if_refused(), *self.wait_events()):
                    yield event
                for event in await self.poll():
                    yield event
        finally:
            await self.cancel_polls()
        for event in self.final_notices():
            yield event
        if self.job_count:
            yield self.paced()
        if self.submission.error is not None:
            raise self.submission.error

    def stop_if_refused(self) -> Iterator[Event]:
        """Defer what is left if the service has refused everything for too long."""
        if self.submission.has_work and self.pace.has_given_up(self.clock()):
            yield from self.submission.defer_rest("refused", "the service has refused everything for too long")

    def paced(self) -> Paced:
        """The present pace; what a later run should know is added if it has changed by a tenth or more."""
        now, submission = self.clock(), self.submission
        known, before = self.pace.known_pace(now), self.remembered
        if known is not None and before is not None and is_alike(known, before):
            known = None
        self.remembered = known or before
        left = self.pace.seconds_left(now, len(submission.left) + len(submission.refused))
        return Paced(self.client.base_url, self.pace.speed(now), left, known)

    @property
    def has_jobs(self) -> bool:
        """Whether a job is still polled."""
        return bool(self.queue or self.polls)

    def may_submit(self) -> bool:
        """Whether there is something to submit, room for a whole batch of jobs, and the pace allows it."""
        return self.has_room() and self.allowance() > 0

    def has_room(self) -> bool:
        """Whether there is something to submit, and room for a whole batch of jobs."""
        return self.submission.has_work and len(self.queue) + len(self.polls) + BULK_LIMIT <= MAX_IN_FLIGHT

    def allowance(self) -> int:
        """How many addresses the pace allows now."""
        submission = self.submission
        return self.pace.allowance(self.clock(), submission.next_count, is_last_chance=submission.is_last_chance)

    def follow(self, jobs: Sequence[Job], sent: SentBatch | None = None) -> None:
        """Poll jobs from now on, with staggered first polls; the last jobs of a batch first.

        A limiter that counts one by one refuses the end of a batch: if that has passed, all have.
        """
        now = self.clock()
        for place, job in enumerate(jobs if sent is None else reversed(jobs)):
            self.job_count += 1
            follower = follow_job(job, self.schedule, self.schedule.first_poll(job, place, len(jobs), now))
            due = next(follower)
            due = common_time(due, now) if sent is None else due
            heapq.heappush(self.queue, PolledJob(due, self.job_count, job, follower, sent))

    async def submit(self) -> AsyncGenerator[Event, None]:
        """Submit one batch; each event is yielded and processed before the next step.

        If the run is cancelled during a submission, its answer is still processed, since its jobs are paid for.
        """
        steps = self.submission.next_batch(self.allowance)
        limited = self.submission.limited
        answer: ApiAnswer | None = None
        while (step := self.next_step(steps, answer)) is not None:
            answer = None
            if isinstance(step, ApiRequest):
                answer = await self.client.send(step)
            elif isinstance(step, Pause):
                yield Waiting(step.seconds, step.reason)
                await asyncio.sleep(step.seconds)
            else:
                yield step
                if isinstance(step, QuotaSeen):
                    self.pace.on_quota(step.quota.remaining - len(self.submission.left))
                elif isinstance(step, Submitted):
                    self.repeats += sum(1 for job in step.jobs if job.email in self.submission.refusals)
                    self.follow(step.jobs, self.pace.on_sent(self.clock(), len(step.jobs)))
        if self.submission.limited > limited:
            self.pace.on_limited(self.clock(), self.submission.limited_size, self.submission.retry_after)
        if self.submission.error is not None and self.has_jobs:
            yield Noticed(f"nothing more is submitted: {self.submission.error}")

    def next_step(self, steps: Steps[None], answer: ApiAnswer | None) -> Step | None:
        """The next step, or None after the last; an error ends submitting, not polling.

        If the run was cancelled meanwhile, only the events of the last answer are left.
        """
        step: Step | None = None
        try:
            step = steps.send(answer)
        except StopIteration:
            pass
        except ContractError as exc:
            self.submission.error = ContractError(f"{self.client.base_url}: {exc}", path=exc.path)
        except BackendError as exc:
            self.submission.error = exc
        if self.client.is_stopped and (step is None or isinstance(step, ApiRequest | Pause)):
            raise asyncio.CancelledError
        return step

    def next_due(self) -> float:
        """When the next poll may start."""
        return max(self.queue[0].due, self.paused_until) if self.queue else float("inf")

    def wait_events(self) -> Iterator[Event]:
        """An event if nothing is to do for a while: no poll under way or due, nothing to submit."""
        wait = self.next_due() - self.clock()
        if self.queue and not self.polls and not self.may_submit() and wait >= MIN_WAITING:
            yield Waiting(wait, f"waiting for {len(self.queue)} jobs")

    async def poll(self) -> list[Event]:
        """Start polls that are due, wait for the first result, and return the events of jobs that ended."""
        self.start_polls()
        done = await self.wait()
        endings: list[tuple[Job, Ending]] = []
        for task in done:
            polled = self.polls.pop(task)
            result = read_poll(polled.job, task.result())
            self.report_to_pace(polled, result)
            await self.check_service(result)
            if (ending := self.on_poll_result(polled, result)) is not None:
                endings.append((polled.job, ending))
        self.given_up.update(ending.reason for _, ending in endings if isinstance(ending, GaveUp))
        return list(self.ending_events(endings))

    def start_polls(self) -> None:
        """Start polls that are due, up to the number of parallel polls."""
        now = self.clock()
        while self.queue and len(self.polls) < self.parallel and self.next_due() <= now:
            polled = heapq.heappop(self.queue)
            self.polls[asyncio.create_task(self.client.send(poll_request(polled.job)))] = polled

    async def wait(self) -> list[asyncio.Task[ApiAnswer]]:
        """Wait until a poll is answered or the next one is due; not at all if a batch can be submitted."""
        has_room = len(self.polls) < self.parallel
        wait = max(0.0, self.next_due() - self.clock()) if has_room else None
        if self.has_room():
            now = self.clock()
            pause = self.pace.next_time(now, self.submission.next_count) - now
            pause = (
                0.0 if self.may_submit() else max(pause, LONG_PAUSE if self.submission.is_last_chance else MIN_PAUSE)
            )
            wait = pause if wait is None else min(wait, pause)
            if not self.polls and not self.queue:
                await asyncio.sleep(min(wait, MAX_SLEEP))
                return []
        if self.polls:
            timeout = None if wait == float("inf") else wait
            done, _ = await asyncio.wait(self.polls, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            return [task for task in self.polls if task in done]  # in the order in which they were sent
        if wait is not None and self.queue:
            await asyncio.sleep(wait)
        return []

    def on_poll_result(self, polled: PolledJob, result: PollResult) -> Ending | None:
        """Return how the job ended, or queue its next poll."""
        now = self.clock()
        if isinstance(result, RateLimited) and result.retry_after:
            self.paused_until = max(self.paused_until, now + result.retry_after)
        try:
            due = polled.follower.send(TimedPollResult(result, now))
            polled.due = common_time(due, now) if polled.sent is None or polled.is_reported else due
        except StopIteration as over:
            ending: Ending = over.value
            if polled.sent is not None and not polled.is_reported:
                self.pace.on_abandoned(polled.sent, now)
            return ending
        is_failure = isinstance(result, BackendError) and not isinstance(result, RateLimited)
        if is_failure and self.failing_since is not None:
            pause = min(MAX_OUTAGE_PAUSE, OUTAGE_PAUSE * (now - self.failing_since))
            self.paused_until = max(self.paused_until, now + pause)
        heapq.heappush(self.queue, polled)
        return None

    def report_to_pace(self, polled: PolledJob, result: PollResult) -> None:
        """Report what a poll shows about the service's limiter."""
        sent, now = polled.sent, self.clock()
        if sent is None or polled.is_reported:
            return
        reason = refusal_reason(result)
        if reason is not None:
            polled.is_reported = True
            self.pace.on_refused(sent, now, is_throttled=reason is Reason.THROTTLED)
        elif isinstance(result, Verification | JobFailure) or has_left_queue(result, now - polled.job.submitted_at):
            polled.is_reported = True
            self.pace.on_passed(sent, now)

    def ending_events(self, endings: Sequence[tuple[Job, Ending]]) -> Iterator[Event]:
        """Events for rows that are final, for rows of addresses that are submitted again, and for jobs given up."""
        final: list[tuple[Job, Verification | JobFailure]] = []
        again: list[tuple[Job, Verification | JobFailure]] = []
        for job, ending in endings:
            if isinstance(ending, GaveUp):
                continue
            refused = self.asks_again and refusal_reason(ending) is not None
            (again if refused and self.submission.ask_again(job.email) else final).append((job, ending))
        for rows, is_asked_again in ((final, False), (again, True)):
            if rows:
                table = rows_table([job_row(ending, job) for job, ending in rows])
                yield Settled(table, tuple(job.job_id for job, _ in rows), is_asked_again=is_asked_again)
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
        if self.repeats:
            yield Noticed(
                f"the service's limiter refused {len(self.submission.refusals):,} addresses; they were submitted "
                f"again, which cost {self.repeats:,} more units of quota"
            )
        for reason, count in self.given_up.items():
            yield Noticed(
                f"{count} jobs were {reason} after {self.schedule.give_up:g} seconds; they stay pending, "
                "and a later call on the same journal polls them again at no cost"
            )

    async def cancel_polls(self) -> None:
        """Cancel polls under way; polling again costs nothing."""
        for task in self.polls:
            task.cancel()
        await asyncio.gather(*self.polls, return_exceptions=True)
        self.polls.clear()


def common_time(due: float, now: float) -> float:
    """The time of a poll that shows nothing about the limiter: later by less than `TICK`, unless it is due soon."""
    return math.ceil(due / TICK) * TICK if due - now >= SOON else due


def is_alike(one: KnownPace, other: KnownPace) -> bool:
    """Whether two paces differ by less than a tenth."""
    if (one.limit is None) != (other.limit is None):
        return False
    pairs = [(one.limit or 1.0, other.limit or 1.0)] + ([(one.window, other.window)] if one.limit is None else [])
    return all(abs(a - b) < 0.1 * b for a, b in pairs)


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
