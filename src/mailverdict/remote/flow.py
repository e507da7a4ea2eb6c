"""Drives submitting and polling: carries out the steps, keeps a few polls in parallel, tells events."""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from ..backend import Deferred, Event, Job, Noticed, Settled, Submitted, Waiting
from ..contract.envelope import BULK_LIMIT
from ..errors import BackendError, ContractError, RateLimited
from .bulk import Submission
from .client import Client
from .polling import Ending, GaveUp, Heard, News, PollSchedule, follow_job, poll_request, read_news
from .quota import QUOTA_REQUEST
from .rows import job_row, rows_table
from .steps import Answer, Pause, Request, Step, Steps, success_of

__all__ = ["Flow"]

MAX_IN_FLIGHT = 2_000  # jobs polled at once; beyond it submitting waits, so that polls keep their pace
OUTAGE = 60.0  # seconds without one usable poll before the service is taken to be down
WORTH_TELLING = 1.0  # seconds; a shorter wait needs no event


@dataclass(order=True)
class Watched:
    """A job and the moment of its next poll; ordered for the heap."""

    at: float
    number: int
    job: Job = field(compare=False)
    follower: Generator[float, Heard, Ending] = field(compare=False)


class Flow:
    """One call of `RemoteBackend.verify`.

    Parameters
    ----------
    client : Client
        Entered by the caller.
    submission : Submission
        What is to be submitted.
    schedule : PollSchedule
        When to poll.
    parallel : int
        Polls at once.
    clock : callable
        Seconds since the epoch.
    """

    def __init__(
        self,
        client: Client,
        submission: Submission,
        *,
        schedule: PollSchedule,
        parallel: int,
        clock: Callable[[], float],
    ) -> None:
        self.client, self.submission, self.schedule = client, submission, schedule
        self.parallel, self.clock = parallel, clock
        self.queue: list[Watched] = []
        self.polls: dict[asyncio.Task[Answer], Watched] = {}
        self.numbers = 0
        self.hold_until = 0.0
        self.failing_since: float | None = None
        self.let_be: Counter[str] = Counter()

    async def events(self, in_flight: Sequence[Job]) -> AsyncGenerator[Event, None]:
        """Submit and poll until nothing is left.

        Yields
        ------
        Event
            As `mailverdict.backend.Backend` promises.

        Raises
        ------
        BackendError
            When the service cannot be used; what was paid for before is polled to its end first,
            unless it is the polls that fail.
        """
        self.watch(in_flight)
        try:
            while self.submission.has_work or self.is_watching:
                if self.may_submit():
                    async with aclosing(self.submit()) as submitting:
                        async for event in submitting:
                            yield event
                for event in self.wait_events():
                    yield event
                for event in await self.poll():
                    yield event
        finally:
            await self.cancel_polls()
        for event in self.farewell():
            yield event
        if self.submission.error is not None:
            raise self.submission.error

    @property
    def is_watching(self) -> bool:
        """Whether a job is still followed."""
        return bool(self.queue or self.polls)

    def may_submit(self) -> bool:
        """Whether there is something to submit, and room for a whole batch of jobs."""
        return self.submission.has_work and len(self.queue) + len(self.polls) + BULK_LIMIT <= MAX_IN_FLIGHT

    def watch(self, jobs: Sequence[Job]) -> None:
        """Follow jobs from now on, their first polls staggered."""
        now = self.clock()
        for place, job in enumerate(jobs):
            self.numbers += 1
            follower = follow_job(job, self.schedule, self.schedule.first_poll(job, place, len(jobs), now))
            heapq.heappush(self.queue, Watched(next(follower), self.numbers, job, follower))

    async def submit(self) -> AsyncGenerator[Event, None]:
        """Drive one batch: each event is passed on, and done with, before the next step is taken."""
        steps = self.submission.next_batch()
        answer: Answer | None = None
        while (step := self.next_step(steps, answer)) is not None:
            answer = None
            if isinstance(step, Request):
                answer = await self.client.ask(step)
            elif isinstance(step, Pause):
                yield Waiting(step.seconds, step.why)
                await asyncio.sleep(step.seconds)
            else:
                yield step
                if isinstance(step, Submitted):
                    self.watch(step.jobs)
        if self.submission.error is not None and self.is_watching:
            yield Noticed(f"nothing more is submitted: {self.submission.error}")

    def next_step(self, steps: Steps[None], answer: Answer | None) -> Step | None:
        """The next step, or None after the last; an error ends the submitting, not the polling."""
        try:
            return steps.send(answer)
        except StopIteration:
            return None
        except ContractError as exc:
            self.submission.error = ContractError(f"{self.client.base_url}: {exc}", path=exc.path)
        except BackendError as exc:
            self.submission.error = exc
        return None

    def next_due(self) -> float:
        """When the next poll may start."""
        return max(self.queue[0].at, self.hold_until) if self.queue else float("inf")

    def wait_events(self) -> Iterator[Event]:
        """Tell a wait worth telling: nothing under way, nothing to submit, nothing due."""
        wait = self.next_due() - self.clock()
        if self.queue and not self.polls and not self.may_submit() and wait >= WORTH_TELLING:
            yield Waiting(wait, f"waiting for {len(self.queue)} jobs")

    async def poll(self) -> list[Event]:
        """Start what is due, wait for the first that comes back, tell what ended."""
        self.start_polls()
        done = await self.wait()
        endings: list[tuple[Job, Ending]] = []
        for task in done:
            watched = self.polls.pop(task)
            news = read_news(watched.job, task.result())
            await self.look_at_health(news)
            if (ending := self.tell(watched, news)) is not None:
                endings.append((watched.job, ending))
        self.let_be.update(ending.why for _, ending in endings if isinstance(ending, GaveUp))
        return list(ending_events(endings))

    def start_polls(self) -> None:
        """Start polls that are due, as far as there is room."""
        now = self.clock()
        while self.queue and len(self.polls) < self.parallel and self.next_due() <= now:
            watched = heapq.heappop(self.queue)
            self.polls[asyncio.create_task(self.client.ask(poll_request(watched.job)))] = watched

    async def wait(self) -> list[asyncio.Task[Answer]]:
        """Wait for a poll to come back, or for the next one to be due; not at all if a batch can be sent."""
        has_room = len(self.polls) < self.parallel
        wait = max(0.0, self.next_due() - self.clock()) if has_room else None
        wait = 0.0 if self.may_submit() else wait
        if self.polls:
            timeout = None if wait == float("inf") else wait
            done, _ = await asyncio.wait(self.polls, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            return list(done)
        if wait is not None and self.queue:
            await asyncio.sleep(wait)
        return []

    def tell(self, watched: Watched, news: News) -> Ending | None:
        """Tell a job's follower; give its ending, or queue its next poll."""
        now = self.clock()
        if isinstance(news, RateLimited) and news.retry_after:
            self.hold_until = max(self.hold_until, now + news.retry_after)
        try:
            watched.at = watched.follower.send(Heard(news, now))
        except StopIteration as over:
            ending: Ending = over.value
            return ending
        heapq.heappush(self.queue, watched)
        return None

    async def look_at_health(self, news: News) -> None:
        """Raise when the service, and not only one job, has been unusable for a while."""
        now = self.clock()
        if not isinstance(news, BackendError):
            self.failing_since = None
        elif self.failing_since is None:
            self.failing_since = now
        elif now - self.failing_since >= OUTAGE:
            success_of(await self.client.ask(QUOTA_REQUEST))
            self.failing_since = now

    def farewell(self) -> Iterator[Event]:
        """Say what stays unfinished."""
        for why, count in self.let_be.items():
            yield Noticed(
                f"{count} jobs were {why} after {self.schedule.give_up:g} seconds; they stay pending, "
                "and a later call on the same journal polls them again at no cost"
            )

    async def cancel_polls(self) -> None:
        """End what is under way; polling again costs nothing."""
        for task in self.polls:
            task.cancel()
        await asyncio.gather(*self.polls, return_exceptions=True)
        self.polls.clear()


def ending_events(endings: Sequence[tuple[Job, Ending]]) -> Iterator[Event]:
    """One event for the rows that came together, one for the jobs that are let be."""
    rows = [(job, job_row(ending, job)) for job, ending in endings if not isinstance(ending, GaveUp)]
    if rows:
        yield Settled(rows_table([row for _, row in rows]), tuple(job.job_id for job, _ in rows))
    if left := tuple(job.email for job, ending in endings if isinstance(ending, GaveUp)):
        yield Deferred(left, "gave_up")
