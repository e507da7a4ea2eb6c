"""`EventStream`: one run against a verification service, from submissions and polls to events.

A batch is submitted when the pace allows it and there is room for its jobs. Each job is then polled
by a task of its own, which decides nothing about the run:

    follow_job(job)  "queued", wait by the schedule, poll again, ... -> Verification
                     "error", "no such job" six times in a row -> JobFailure
                     too old -> GaveUp
    EventStream      Submitted(jobs), then Settled(rows) for endings and Deferred("gave_up");
                     a refused address (`rate_limited`) is submitted again at the end

What a poll shows of the service's limiter is told to the pace (`report_to_pace`).
"""

from __future__ import annotations

import asyncio
import heapq
import math
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

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
from ..contract.envelope import (
    BULK_LIMIT,
    EARLIER_FINAL,
    ErrorEnvelope,
    JobRecord,
    JobStatus,
    SuccessEnvelope,
    parse_job,
)
from ..errors import BackendError, ContractError, RateLimited, ServiceError, SettingsError
from ..model.json_fields import shorten
from ..model.settings import parse_duration
from ..model.verification import Verification
from ..model.words import Reason, Verdict
from .api import (
    QUOTA_REQUEST,
    ApiAnswer,
    ApiRequest,
    JobFailure,
    Row,
    error_of,
    job_row,
    rows_table,
    success_of,
)
from .bulk import Submission
from .pace import QUEUED_FOR, SentBatch

# Jobs polled at a time; submitting waits then, so that polls stay on schedule.
MAX_IN_FLIGHT = 2_000
DENIED = 5.0  # seconds of answers that deny the client access, after which the quota is requested
OUTAGE = 60.0  # seconds without a usable poll after which the service counts as down
# Share of that time, and seconds, for which all polls then pause.
OUTAGE_PAUSE = 0.25
MAX_OUTAGE_PAUSE = 15.0
MIN_PAUSE = 0.02  # seconds between looks at the pace
LONG_PAUSE = 0.5  # the same, if only addresses at their last chance are left
MAX_SLEEP = 60.0  # seconds between looks at the pace, at most
REFUSALS = {str(reason): reason for reason in (Reason.RATE_LIMITED, Reason.THROTTLED)}
# Seconds between the times of polls; several at once need less processor time than each alone.
TICK = 0.05
SOON = 1.0  # seconds; a poll that is due sooner is sent exactly then
MIN_WAITING = 1.0  # seconds; there is no event for a shorter wait
STAGGER = 0.05  # seconds between the first polls of jobs submitted together, at most
MIN_FAILURES = 3  # polls in a row without a usable answer, before an old job is given up
MAX_STATUS = 40  # characters of an unknown status
FINAL = (JobStatus.DONE, JobStatus.ERROR, *EARLIER_FINAL)
JOB_ERROR = "the service could not check this address"


@dataclass(frozen=True, slots=True)
class PollSchedule:
    """How often a job is polled, by its age, and when it is given up.

    Parameters
    ----------
    steps : tuple of (float, float)
        Pairs of (until this age of the job, poll every so many) seconds, by rising age; after the
        last step its interval goes on.
    give_up : duration
        Age at which a job that is not finished stays `pending`; a later run polls it again.
    tolerated_404 : int
        Answers "no such job" in a row that are tolerated, since the job may be too new.

    Raises
    ------
    SettingsError
        If a value cannot work; the message names it.

    Examples
    --------
    >>> from mailverdict import PollSchedule
    >>> schedule = PollSchedule()
    >>> [schedule.interval(age) for age in (0, 29, 30, 120, 5000)]
    [2.0, 2.0, 5.0, 15.0, 15.0]
    """

    steps: tuple[tuple[float, float], ...] = ((30, 2), (120, 5), (math.inf, 15))
    give_up: float = 900.0
    tolerated_404: int = 5

    def __post_init__(self) -> None:
        """Check every value and keep it as a number of seconds."""
        object.__setattr__(self, "steps", check_steps(self.steps))
        object.__setattr__(self, "give_up", parse_duration(self.give_up, name="give_up"))
        count = self.tolerated_404
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= 1_000:
            raise SettingsError(f"tolerated_404={count!r}: give a whole number from 0 to 1000")

    def interval(self, age: float) -> float:
        """Seconds until the next poll of a job of this age.

        Parameters
        ----------
        age : float
            Seconds since its submission.

        Returns
        -------
        float
            The interval of the first step that reaches beyond `age`.
        """
        for until, every in self.steps:
            if age < until:
                return every
        _, every = self.steps[-1]
        return every

    def first_poll(self, job: Job, place: int, of: int, now: float) -> float:
        """When to poll a job first; `place` staggers the `of` jobs that are polled from now on."""
        age = now - job.submitted_at
        interval = self.interval(max(0.0, age))
        wait = interval if age < interval else 0.0
        return now + wait + place * min(STAGGER, interval / max(1, of))


def check_steps(steps: Any) -> tuple[tuple[float, float], ...]:
    """The steps as pairs of seconds; `SettingsError` if they are not a schedule."""
    try:
        pairs = tuple((float(until), float(every)) for until, every in steps)
    except (TypeError, ValueError) as exc:
        message = f"steps={steps!r}: give pairs of seconds, as ((30, 2), (120, 5))"
        raise SettingsError(message) from exc
    ages = [until for until, _ in pairs]
    is_rising = ages == sorted(set(ages)) and not any(math.isnan(age) for age in ages)
    if not pairs or not is_rising or ages[0] <= 0:
        raise SettingsError(f"steps={steps!r}: give at least one pair, with ages above 0 that rise")
    for _, every in pairs:
        if not 0 < every < math.inf:
            raise SettingsError(f"steps={steps!r}: an interval of {every:g} seconds cannot work")
    return pairs


@dataclass(frozen=True, slots=True)
class GaveUp:
    """A job that is not finished and is not polled again by this run."""

    reason: str


# What a poll shows: how the job ended; its status if it has not; None if there is no such job; or
# an error of the service, which shows nothing about the job.
PollResult = Verification | JobFailure | str | BackendError | None
Ending = Verification | JobFailure | GaveUp


# Polls at this time; the result, and when it came.
Poll = Callable[[float], Awaitable[tuple[PollResult, float]]]


async def follow_job(job: Job, schedule: PollSchedule, due: float, poll: Poll) -> Ending:
    """Follow one job to its end; it is first polled when it is `due`.

    A job ends with `done`, with `error`, with too many answers "no such job" in a row, and, for
    this run, at the age of `give_up`. An error of the service does not end the job.
    """
    absences = 0
    failures = 0
    while True:
        result, now = await poll(due)
        if isinstance(result, Verification | JobFailure):
            return result
        absences = absences + 1 if result is None else 0
        failures = failures + 1 if isinstance(result, BackendError) else 0
        if absences > schedule.tolerated_404:
            message = f"the service did not know the job in {absences} polls in a row"
            return JobFailure("JOB_NOT_FOUND", message)
        age = max(0.0, now - job.submitted_at)
        is_old = age >= schedule.give_up
        if is_old and isinstance(result, str):
            return GaveUp(f"still {result!r}")
        if is_old and failures >= MIN_FAILURES:
            return GaveUp(f"without a usable answer ({type(result).__name__})")
        wait = schedule.interval(age)
        if isinstance(result, RateLimited) and result.retry_after is not None:
            wait = max(wait, result.retry_after)
        due = now + wait


def poll_request(job: Job) -> ApiRequest:
    return ApiRequest("GET", f"/api/verification-result/{quote(job.job_id, safe='')}")


def read_poll(job: Job, answer: ApiAnswer) -> PollResult:
    """Read the answer to a poll."""
    if isinstance(answer, ErrorEnvelope):
        if answer.status == HTTPStatus.NOT_FOUND and not answer.is_page:
            return None
        return error_of(answer)
    if not isinstance(answer, SuccessEnvelope):
        return error_of(answer)
    try:
        check_job_id(job, answer.data)
        return result_of_record(parse_job(answer.data, job.validation_type))
    except ContractError as exc:
        if is_final_for(job, answer.data):
            return JobFailure("CONTRACT", str(exc))
        return exc


def result_of_record(record: JobRecord) -> Verification | JobFailure | str:
    """The result of a valid job record."""
    if record.verification is not None:
        return record.verification
    if record.status == JobStatus.ERROR:
        return JobFailure("ERROR", record.message or JOB_ERROR)
    return shorten(record.status, MAX_STATUS)


def check_job_id(job: Job, data: Any) -> None:
    """Raise for the record of another job, whose verdict is about another address."""
    answered = data.get("job_id") if isinstance(data, Mapping) else None
    if answered is not None and answered != job.job_id:
        message = f"data.job_id is {shorten(answered)}, not the job that was polled"
        raise ContractError(message, path="data.job_id")


def is_final_for(job: Job, data: Any) -> bool:
    """Whether a record that violates the contract still shows that this job has ended."""
    if not isinstance(data, Mapping) or data.get("job_id") not in (None, job.job_id):
        return False
    record = data.get("result")
    return isinstance(record, Mapping) and record.get("status") in FINAL


# --- the events of a run ---


@dataclass(slots=True)
class PolledJob:
    """A job that is polled."""

    job: Job
    # The batch in which it was sent; None if an earlier run sent it, or if the pace knows already
    # whether a limiter refused it.
    sent: SentBatch | None


class EventStream:
    """One call of `RemoteBackend.verify`: submits batches, polls jobs in tasks, yields events."""

    def __init__(
        self,
        submission: Submission,
        *,
        schedule: PollSchedule,
        parallel: int,
        asks_again: bool = True,
    ) -> None:
        self.submission = submission
        self.schedule = schedule
        self.asks_again = asks_again
        self.client = submission.client
        self.pace = submission.pace
        self.clock = submission.clock
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

        If the service cannot be used for submitting, the paid-for jobs are polled to their end
        before the error is raised.
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
            ended = [task for task, _ in self.ended]
            await asyncio.gather(*self.polled, *ended, return_exceptions=True)
        for event in self.final_notices():
            yield event
        if self.job_count:
            yield self.paced()
        if self.submission.error is not None:
            raise self.submission.error

    def stop_if_refused(self) -> Iterator[Event]:
        """Defer what is left if the service has refused everything for too long."""
        if self.submission.has_work and self.pace.has_given_up(self.clock()):
            why = "the service has refused everything for too long"
            yield from self.submission.defer_rest("refused", why)

    def paced(self) -> Paced:
        """The present pace, and what a later run should know."""
        now = self.clock()
        left = len(self.submission.left) + len(self.submission.refused)
        return Paced(
            self.client.base_url,
            self.pace.speed(now),
            self.pace.seconds_left(now, left),
            self.pace.known_pace(now),
        )

    @property
    def has_jobs(self) -> bool:
        """Whether a job is still polled."""
        return bool(self.polled or self.ended)

    def may_submit(self) -> bool:
        """Whether there is something to submit, room for its jobs, and the pace allows it."""
        return self.has_room() and self.submission.allowance() > 0

    def has_room(self) -> bool:
        """Whether there is something to submit, and room for a whole batch of jobs."""
        jobs = len(self.polled) + len(self.ended)
        return self.submission.has_work and jobs + BULK_LIMIT <= MAX_IN_FLIGHT

    def follow(self, jobs: Sequence[Job], sent: SentBatch | None = None) -> None:
        """Poll jobs from now on, with staggered first polls; the last jobs of a batch first.

        A limiter that counts one by one refuses the end of a batch: if that has passed, all have.
        """
        now = self.clock()
        if sent is not None:
            jobs = jobs[::-1]
        for place, job in enumerate(jobs):
            polled = PolledJob(job, sent)
            first = self.schedule.first_poll(job, place, len(jobs), now)
            task = asyncio.create_task(self.follow_to_end(polled, first))
            self.polled[task] = polled
            task.add_done_callback(self.on_ended)
        self.job_count += len(jobs)

    async def submit(self) -> AsyncGenerator[Event, None]:
        """Submit one batch, and poll its jobs from then on.

        If the run is cancelled meanwhile, the answer is still processed: its jobs are paid for.
        """
        try:
            async with aclosing(self.submission.next_batch()) as events:
                async for event in events:
                    yield event
                    if isinstance(event, Submitted):
                        sent = self.pace.on_sent(self.clock(), len(event.jobs))
                        self.follow(event.jobs, sent)
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
        if not self.times:
            return
        wait = max(self.times[0], self.paused_until) - now
        if wait >= MIN_WAITING and not self.may_submit():
            yield Waiting(wait, f"waiting for {len(self.polled)} jobs")

    async def wait(self) -> None:
        """Wait until a poll is answered or the pace may allow a batch.

        Not at all if it does now.
        """
        seconds = MAX_SLEEP if self.polled else 0.0
        if self.has_room():
            now = self.clock()
            pause = self.pace.next_time(now, self.submission.next_count) - now
            least = LONG_PAUSE if self.submission.is_last_chance else MIN_PAUSE
            seconds = min(MAX_SLEEP, max(least, pause))
            if self.may_submit():
                seconds = 0.0
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.changed.wait()
        self.changed.clear()

    async def follow_to_end(self, polled: PolledJob, first: float) -> Ending:
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
        if polled.sent is None:
            due = common_time(due, now)
        heapq.heappush(self.times, due)
        await asyncio.sleep(due - now)
        async with self.slots:
            pause = self.paused_until - self.clock()
            while pause > 0:  # it may become longer meanwhile
                await asyncio.sleep(pause)
                pause = self.paused_until - self.clock()
            answer = await self.client.send(poll_request(polled.job))
            result = read_poll(polled.job, answer)
        async with self.turn:
            self.report_to_pace(polled, result)
            await self.check_service(result)
        self.changed.set()
        now = self.clock()
        pause = 0.0
        if isinstance(result, RateLimited):
            pause = result.retry_after or 0.0
        elif isinstance(result, BackendError) and self.failing_since is not None:
            pause = min(MAX_OUTAGE_PAUSE, OUTAGE_PAUSE * (now - self.failing_since))
        self.paused_until = max(self.paused_until, now + pause)
        return result, now

    def report_to_pace(self, polled: PolledJob, result: PollResult) -> None:
        """Report what a poll shows about the service's limiter."""
        sent = polled.sent
        if sent is None:
            return
        now = self.clock()
        reason = refusal_reason(result)
        is_over = isinstance(result, Verification | JobFailure)
        if reason is not None:
            polled.sent = None
            self.pace.on_refused(sent, now, is_throttled=reason is Reason.THROTTLED)
        elif is_over or has_left_queue(result, now - polled.job.submitted_at):
            polled.sent = None
            self.pace.on_passed(sent, now)

    def ending_events(self) -> Iterator[Event]:
        """Events for rows that are final, for addresses submitted again, and for jobs given up."""
        endings = [(job, task.result()) for task, job in self.ended]
        self.ended.clear()
        final: list[tuple[Job, Row]] = []
        again: list[tuple[Job, Row]] = []
        left = []
        for job, ending in endings:
            if isinstance(ending, GaveUp):
                self.given_up[ending.reason] += 1
                left.append(job.email)
                continue
            is_refused = self.asks_again and refusal_reason(ending) is not None
            if is_refused and self.submission.ask_again(job.email):
                again.append((job, job_row(ending, job)))
            else:
                final.append((job, job_row(ending, job)))
        if final:
            yield settled_jobs(final, is_asked_again=False)
        if again:
            yield settled_jobs(again, is_asked_again=True)
        if left:
            yield Deferred(tuple(left), "gave_up")

    async def check_service(self, result: PollResult) -> None:
        """Request the quota if no poll was usable for a while; raises if the service is down."""
        now = self.clock()
        if not isinstance(result, BackendError):
            self.failing_since = None
            return
        if self.failing_since is None:
            self.failing_since = now
        patience = DENIED if is_access_denied(result) else OUTAGE
        if now - self.failing_since >= patience:
            success_of(await self.client.send(QUOTA_REQUEST))
            self.failing_since = now

    def final_notices(self) -> Iterator[Event]:
        """Notices about a long wait, addresses that were submitted again, and jobs given up."""
        delay = self.client.delay_notice()
        if delay:
            yield Noticed(delay)
        repeats = self.submission.repeats
        if repeats:
            yield Noticed(
                f"the service's limiter refused {len(self.submission.refusals):,} addresses; "
                f"they were submitted again, which cost {repeats:,} more units of quota"
            )
        for reason, count in self.given_up.items():
            yield Noticed(
                f"{count} jobs were {reason} after {self.schedule.give_up:g} seconds; they stay "
                "pending, and a later call on the same journal polls them again at no cost"
            )


def settled_jobs(rows: Sequence[tuple[Job, Row]], *, is_asked_again: bool) -> Settled:
    """The event for the rows of some jobs."""
    table = rows_table([row for _, row in rows])
    job_ids = tuple(job.job_id for job, _ in rows)
    return Settled(table, job_ids, is_asked_again=is_asked_again)


def common_time(due: float, now: float) -> float:
    """The time of a poll that shows nothing about the limiter, together with others.

    It is later by less than `TICK`, unless the poll is due soon.
    """
    if due - now < SOON:
        return due
    return math.ceil(due / TICK) * TICK


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
