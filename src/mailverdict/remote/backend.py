"""`RemoteBackend`: a verification service over HTTP, under its daily quota."""

from __future__ import annotations

import asyncio
import heapq
import random
import time
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self, TypeVar

from ..backend import Batch, Deferred, Event, Job, Noticed, Quota, Settled, Submitted, Waiting
from ..contract.envelope import BULK_LIMIT, ErrorEnvelope
from ..errors import BackendError, ContractError, RateLimited, SettingsError
from ..loop import run_sync
from ..model.evidence import Evidence, SyntaxEvidence
from ..model.settings import Duration, parse_duration
from ..model.table import SOURCE_REMOTE
from ..model.verification import Verification, parse_payload
from ..model.words import ValidationType
from ..verdicts import settle
from .api import (
    QUOTA_REQUEST,
    ApiAnswer,
    ApiRequest,
    Pause,
    Step,
    Steps,
    asked_as,
    job_row,
    read_quota,
    rows_table,
    success_of,
)
from .bulk import Submission
from .client import Client, check_headers, parse_base_url
from .polling import Ending, GaveUp, PollResult, PollSchedule, TimedPollResult, follow_job, poll_request, read_poll

__all__ = ["EventStream", "RemoteBackend"]

if TYPE_CHECKING:
    from httpx import AsyncBaseTransport


T = TypeVar("T")
MAX_PARALLEL = 100  # polls
MAX_IN_FLIGHT = 2_000  # jobs polled at a time; submitting waits then, so that polls stay on schedule
OUTAGE = 60.0  # seconds without a usable poll after which the service counts as down
MIN_WAITING = 1.0  # seconds; there is no event for a shorter wait
MALFORMED_CODES = ("EMAIL_REQUIRED", "E1002")  # errors of the single check for an address that the service refuses


def new_token() -> str:
    """A unique name for an attempt."""
    return uuid.uuid4().hex


class RemoteBackend:
    """Verify by asking a verification service.

    Every distinct address that is submitted costs one unit of the service's daily quota; polling
    and asking for the quota cost nothing. Works with services of either revision of the contract.

    Parameters
    ----------
    base_url : str
        Where the service is, as ``https://verify.example.org``.
    poll : PollSchedule, optional
        How often jobs are polled and when they are given up.
    max_parallel_polls : int
        Requests at once, 1 to 100; more than a few makes polling slower, not faster.
    timeout : duration
        For one request, from connecting to the end of the answer.
    headers : mapping of str to str, optional
        Sent with every request, as ``{"Authorization": "Bearer ..."}``; never shown or logged.
    transport : httpx.AsyncBaseTransport, optional
        What carries the requests instead of sockets, as ``httpx.ASGITransport(app)``.
    clock, jitter : callable
        Seconds since the epoch; a number from 0 to 1 that spreads repeated requests.

    Raises
    ------
    SettingsError
        If a value cannot work; nothing is asked of the network.

    Examples
    --------
    >>> import mailverdict as mv
    >>> mv.RemoteBackend("https://verify.example.org/", timeout="20s")
    RemoteBackend('https://verify.example.org')
    """

    source = SOURCE_REMOTE

    def __init__(
        self,
        base_url: str,
        poll: PollSchedule | None = None,
        max_parallel_polls: int = 8,
        timeout: Duration = 30.0,
        headers: Mapping[str, str] | None = None,
        transport: AsyncBaseTransport | None = None,
        *,
        clock: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.base_url = parse_base_url(base_url)
        self.poll = check_schedule(poll)
        self.max_parallel_polls = check_parallel(max_parallel_polls)
        self.timeout = check_timeout(timeout)
        self.headers = check_headers(headers)
        self.transport, self.clock, self.jitter = transport, clock, jitter
        self._is_closed = False

    def __repr__(self) -> str:
        """The URL; headers may be secret."""
        return f"RemoteBackend({self.base_url!r})"

    def is_free(self, validation_type: str) -> bool:
        """Return False: every address costs quota.

        Parameters
        ----------
        validation_type : str
            Any.

        Returns
        -------
        bool
            False.
        """
        return False

    def wants_journal(self, validation_type: str) -> bool:
        """Return True: paid-for answers are kept in a journal.

        Parameters
        ----------
        validation_type : str
            Any.

        Returns
        -------
        bool
            True.
        """
        return True

    def journal_key(self, validation_type: str) -> str:
        """Return the key of answers in a journal: the type and the service.

        Parameters
        ----------
        validation_type : str
            As submitted.

        Returns
        -------
        str
            Type and base URL.
        """
        return f"{validation_type} {self.base_url}"

    async def verify(self, batch: Batch, in_flight: Sequence[Job] = ()) -> AsyncIterator[Event]:
        """Submit a batch in portions that the quota covers, and poll until every job is over.

        Parameters
        ----------
        batch : Batch
            Unique, well-formed addresses.
        in_flight : sequence of Job
            Already paid for; they are polled, never submitted.

        Yields
        ------
        Event
            See `mailverdict.backend`.

        Raises
        ------
        BackendError
            If the service cannot be used; the message names the URL and the cause.
        """
        submission = Submission(
            batch.addresses.to_pylist(), str(batch.validation_type), clock=self.clock, new_token=new_token
        )
        async with self._client() as client:
            stream = EventStream(
                client, submission, schedule=self.poll, parallel=self.max_parallel_polls, clock=self.clock
            )
            async with aclosing(stream.events(in_flight)) as events:
                async for event in events:
                    yield event

    async def quota(self) -> Quota:
        """Ask how much of today's quota is left; costs nothing.

        Returns
        -------
        Quota
            Limit, used and remaining, in addresses.

        Raises
        ------
        BackendError
            If the service gives no usable answer.
        """
        async with self._client() as client:
            data = success_of(await client.send(QUOTA_REQUEST)).data
        return self._parse(read_quota, data)

    async def check(self, email: str, validation_type: str) -> Verification:
        """Verify one address at once, by the service's single check; it may cost a unit of quota.

        Parameters
        ----------
        email : str
            The address.
        validation_type : str
            ``regex``, ``mx``, ``mx_blacklist`` or ``smtp``.

        Returns
        -------
        Verification
            The service's verdict, unchanged.

        Raises
        ------
        QuotaExceeded
            If today's quota is used up.
        RateLimited
            If the service asks to be called later.
        ContractError
            If the answer violates the contract.
        ServiceError
            If the service answers with another error.
        TransportError
            If there is no answer; the request is not repeated once it was sent.
        """
        request = ApiRequest(
            "POST",
            "/api/check-email",
            {"email": email, "validation_type": str(validation_type)},
            is_repeatable=False,
        )
        async with self._client() as client:
            answer = await client.send(request)
        if isinstance(answer, ErrorEnvelope) and answer.code in MALFORMED_CODES:
            malformed = Evidence(SyntaxEvidence(ok=False, message="the service refuses the address as malformed"))
            return settle(ValidationType(validation_type), malformed).to_verification(email, validation_type)
        return asked_as(self._parse(parse_payload, success_of(answer).data), email)

    def _client(self) -> Client:
        """A client for the running event loop; its sockets are closed at the end of the call."""
        if self._is_closed:
            raise BackendError(f"{self!r} was closed; make a new one")
        return Client(
            self.base_url,
            timeout=self.timeout,
            headers=self.headers,
            transport=self.transport,
            parallel=self.max_parallel_polls,
            jitter=self.jitter,
            clock=self.clock,
        )

    def _parse(self, read: Callable[[object], T], data: object) -> T:
        """Read an answer's data; an error names the URL."""
        try:
            return read(data)
        except ContractError as exc:
            raise ContractError(f"{self.base_url}: {exc}", path=exc.path) from exc

    def close(self) -> None:
        """Close the transport that was given. Using the backend afterwards raises `BackendError`."""
        run_sync(self.aclose())

    async def aclose(self) -> None:
        """Do as `close`, from async code; own sockets are closed at the end of each call."""
        self._is_closed = True
        if self.transport is not None:
            await self.transport.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def check_schedule(poll: PollSchedule | None) -> PollSchedule:
    """The schedule; by default the one that the contract recommends."""
    if poll is not None and not isinstance(poll, PollSchedule):
        raise SettingsError(f"poll={poll!r}: give PollSchedule(steps=..., give_up=...)")
    return poll or PollSchedule()


def check_parallel(count: int) -> int:
    """A valid number of parallel requests."""
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_PARALLEL:
        raise SettingsError(f"max_parallel_polls={count!r}: give a whole number from 1 to {MAX_PARALLEL}")
    return count


def check_timeout(timeout: Duration) -> float:
    """A timeout in seconds, which must be positive and finite."""
    seconds = parse_duration(timeout, name="timeout")
    if not 0 < seconds < float("inf"):
        raise SettingsError(f"timeout={timeout!r}: give more than 0 seconds, and an end")
    return seconds


@dataclass(order=True)
class PolledJob:
    """A job and the time of its next poll; ordered for the heap."""

    due: float  # seconds since the epoch
    number: int  # order of jobs that are due at the same time
    job: Job = field(compare=False)
    follower: Generator[float, TimedPollResult, Ending] = field(compare=False)


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
    ) -> None:
        self.client, self.submission, self.schedule = client, submission, schedule
        self.parallel, self.clock = parallel, clock
        self.queue: list[PolledJob] = []
        self.polls: dict[asyncio.Task[ApiAnswer], PolledJob] = {}
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
                    async with aclosing(self.submit()) as submitting:
                        async for event in submitting:
                            yield event
                for event in self.wait_events():
                    yield event
                for event in await self.poll():
                    yield event
        finally:
            await self.cancel_polls()
        for event in self.unfinished():
            yield event
        if self.submission.error is not None:
            raise self.submission.error

    @property
    def has_jobs(self) -> bool:
        """Whether a job is still polled."""
        return bool(self.queue or self.polls)

    def may_submit(self) -> bool:
        """Whether there is something to submit, and room for a whole batch of jobs."""
        return self.submission.has_work and len(self.queue) + len(self.polls) + BULK_LIMIT <= MAX_IN_FLIGHT

    def follow(self, jobs: Sequence[Job]) -> None:
        """Poll jobs from now on, with staggered first polls."""
        now = self.clock()
        for place, job in enumerate(jobs):
            self.job_count += 1
            follower = follow_job(job, self.schedule, self.schedule.first_poll(job, place, len(jobs), now))
            heapq.heappush(self.queue, PolledJob(next(follower), self.job_count, job, follower))

    async def submit(self) -> AsyncGenerator[Event, None]:
        """Submit one batch; each event is yielded and processed before the next step."""
        steps = self.submission.next_batch()
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
                if isinstance(step, Submitted):
                    self.follow(step.jobs)
        if self.submission.error is not None and self.has_jobs:
            yield Noticed(f"nothing more is submitted: {self.submission.error}")

    def next_step(self, steps: Steps[None], answer: ApiAnswer | None) -> Step | None:
        """The next step, or None after the last; an error ends submitting, not polling."""
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
            await self.check_service(result)
            if (ending := self.on_poll_result(polled, result)) is not None:
                endings.append((polled.job, ending))
        self.given_up.update(ending.reason for _, ending in endings if isinstance(ending, GaveUp))
        return list(ending_events(endings))

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
        wait = 0.0 if self.may_submit() else wait
        if self.polls:
            timeout = None if wait == float("inf") else wait
            done, _ = await asyncio.wait(self.polls, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            return list(done)
        if wait is not None and self.queue:
            await asyncio.sleep(wait)
        return []

    def on_poll_result(self, polled: PolledJob, result: PollResult) -> Ending | None:
        """Return how the job ended, or queue its next poll."""
        now = self.clock()
        if isinstance(result, RateLimited) and result.retry_after:
            self.paused_until = max(self.paused_until, now + result.retry_after)
        try:
            polled.due = polled.follower.send(TimedPollResult(result, now))
        except StopIteration as over:
            ending: Ending = over.value
            return ending
        heapq.heappush(self.queue, polled)
        return None

    async def check_service(self, result: PollResult) -> None:
        """Request the quota if no poll was usable for a while; raises if the service is down."""
        now = self.clock()
        if not isinstance(result, BackendError):
            self.failing_since = None
        elif self.failing_since is None:
            self.failing_since = now
        elif now - self.failing_since >= OUTAGE:
            success_of(await self.client.send(QUOTA_REQUEST))
            self.failing_since = now

    def unfinished(self) -> Iterator[Event]:
        """Notices about jobs that were given up."""
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


def ending_events(endings: Sequence[tuple[Job, Ending]]) -> Iterator[Event]:
    """One event for the rows, and one for the jobs that were given up."""
    rows = [(job, job_row(ending, job)) for job, ending in endings if not isinstance(ending, GaveUp)]
    if rows:
        yield Settled(rows_table([row for _, row in rows]), tuple(job.job_id for job, _ in rows))
    if left := tuple(job.email for job, ending in endings if isinstance(ending, GaveUp)):
        yield Deferred(left, "gave_up")
