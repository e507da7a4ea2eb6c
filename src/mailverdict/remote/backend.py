"""`RemoteBackend`: a verification service over HTTP, under its daily quota."""

from __future__ import annotations

import asyncio
import heapq
import math
import random
import time
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Self, TypeVar

from ..backend import (
    Batch,
    Deferred,
    Event,
    Job,
    KnownPace,
    Noticed,
    Paced,
    Quota,
    QuotaSeen,
    Settled,
    Submitted,
    Waiting,
)
from ..contract.envelope import BULK_LIMIT, ErrorEnvelope, JobStatus
from ..errors import BackendError, ContractError, RateLimited, ServiceError, SettingsError
from ..loop import run_sync
from ..model.evidence import Evidence, SyntaxEvidence
from ..model.settings import Duration, parse_duration
from ..model.table import SOURCE_REMOTE
from ..model.verification import Verification, parse_payload
from ..model.words import Reason, ValidationType, Verdict
from ..verdicts import settle
from .api import (
    DEFECT_PATHS,
    QUOTA_REQUEST,
    ApiAnswer,
    ApiRequest,
    JobFailure,
    Pause,
    Step,
    Steps,
    asked_as,
    find_defect,
    job_row,
    read_quota,
    rows_table,
    success_of,
)
from .bulk import MAX_REPEATS, Submission
from .client import Client, check_headers, parse_base_url
from .pace import QUEUED_FOR, FixedPace, Pace, SentBatch, check_pace
from .polling import Ending, GaveUp, PollResult, PollSchedule, TimedPollResult, follow_job, poll_request, read_poll

__all__ = ["EventStream", "RemoteBackend"]

if TYPE_CHECKING:
    from httpx import AsyncBaseTransport


T = TypeVar("T")
MAX_PARALLEL = 100  # polls
MAX_IN_FLIGHT = 2_000  # jobs polled at a time; submitting waits then, so that polls stay on schedule
CLOSED = 5.0  # seconds of answers that the client is not allowed, after which the service is asked for the quota
OUTAGE = 60.0  # seconds without a usable poll after which the service counts as down
OUTAGE_PAUSE, MAX_OUTAGE_PAUSE = 0.25, 15.0  # share of that time, and seconds, for which all polls then pause
MIN_PAUSE = 0.02  # seconds between looks at the pace
LONG_PAUSE = 0.5  # the same, if only addresses at their last chance are left
MAX_SLEEP = 60.0  # seconds between looks at the pace while there is nothing to poll
REFUSALS = {str(reason): reason for reason in (Reason.RATE_LIMITED, Reason.THROTTLED)}
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
        Seconds since the epoch, by default the time of day at the beginning of a run and an even clock from then on, so
        that setting the computer's clock changes no wait; a number from 0 to 1 that spreads repeated requests.
    pace : float, "auto" or None
        How fast addresses are submitted. ``"auto"`` adapts to the service's limiter, by the answers
        ``rate_limited`` and ``throttled``, by ``Retry-After`` and by ``RateLimit`` header fields
        (draft-ietf-httpapi-ratelimit-headers); it begins with at most 300 addresses, or with what
        the journal remembers of this service. A number is that many addresses a second, whatever the
        service answers. None submits without a limit.
    ask_again : bool
        Whether addresses that the service's limiter (``rate_limited``) or full queue (``throttled``)
        refused are submitted again in the same run: at most twice each, after all others, and only
        while quota is left. Each time costs one more unit.

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
        clock: Callable[[], float] | None = None,
        jitter: Callable[[], float] = random.random,
        pace: float | str | None = "auto",
        ask_again: bool = True,
    ) -> None:
        self.base_url = parse_base_url(base_url)
        self.pace = check_pace(pace)
        if not isinstance(ask_again, bool):
            raise SettingsError(f"ask_again={ask_again!r}: give True or False")
        self.ask_again, self.max_repeats = ask_again, MAX_REPEATS if ask_again else 0
        self.known_pace: KnownPace | None = None
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
        clock = self.clock or steady_clock()
        submission = Submission(
            batch.addresses.to_pylist(),
            str(batch.validation_type),
            clock=clock,
            new_token=new_token,
            is_paced=self.pace == "auto",
        )
        pace = (
            Pace(len(batch.addresses), known=self.known_pace)
            if self.pace == "auto"
            else FixedPace(math.inf if self.pace is None else float(self.pace))
        )
        async with self._client() as client:
            stream = EventStream(
                client,
                submission,
                schedule=self.poll,
                parallel=self.max_parallel_polls,
                clock=clock,
                pace=pace,
                asks_again=self.ask_again,
            )
            async with aclosing(stream.events(in_flight)) as events:
                async for event in events:
                    if isinstance(event, Paced) and event.known is not None:
                        self.known_pace = event.known
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
            If the answer violates the contract, or its verdict contradicts its reasons.
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
        found = self._parse(parse_payload, success_of(answer).data)
        if defect := find_defect(found, email, str(validation_type)):
            raise ContractError(f"{self.base_url}: {defect.message}", path=DEFECT_PATHS[defect.code])
        return asked_as(found, email)

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
            clock=self.clock or time.time,
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


def steady_clock() -> Callable[[], float]:
    """A clock that begins with the time of day and runs evenly."""
    loop = asyncio.get_running_loop()
    offset = time.time() - loop.time()
    return lambda: offset + loop.time()


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
    sent: SentBatch | None = field(compare=False)  # None: submitted by an earlier run
    has_passed: bool = field(compare=False, default=False)  # whether it is known that no limiter refused it


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
        pace: Pace | FixedPace,
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
                for event in (*await self.poll(), *self.client.failures.take(MIN_WAITING)):
                    yield event
        finally:
            await self.cancel_polls()
        for event in (*self.unfinished(), *self.client.failures.take()):
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
            heapq.heappush(self.queue, PolledJob(next(follower), self.job_count, job, follower, sent))

    async def submit(self) -> AsyncGenerator[Event, None]:
        """Submit one batch; each event is yielded and processed before the next step."""
        steps = self.submission.next_batch(self.allowance)
        limited = self.submission.limited
        answer: ApiAnswer | None = None
        while (step := self.next_step(steps, answer)) is not None:
            answer = None
            if isinstance(step, ApiRequest):
                answer = await self.client.send(step)
                if self.client.advertised is not None and step is QUOTA_REQUEST:
                    self.read_advertised()
            elif isinstance(step, Pause):
                yield Waiting(step.seconds, step.reason)
                self.wait_for_service(step.seconds)
                await asyncio.sleep(step.seconds)
            else:
                yield step
                if isinstance(step, QuotaSeen):
                    self.pace.on_quota(step.quota.remaining - len(self.submission.left))
                elif isinstance(step, Submitted):
                    self.repeats += sum(1 for job in step.jobs if job.email in self.submission.refusals)
                    self.follow(step.jobs, self.pace.on_sent(self.clock(), len(step.jobs)))
                    self.read_advertised()
        if self.submission.limited > limited:
            now = self.clock()
            self.pace.on_limited(now, self.submission.limited_size, self.submission.retry_after)
            self.wait_for_service(self.pace.next_time(now, self.submission.next_count) - now)
        if self.submission.error is not None and self.has_jobs:
            yield Noticed(f"nothing more is submitted: {self.submission.error}")

    def wait_for_service(self, seconds: float) -> None:
        """Count a time for which a failed request is waited for; infinity is a wait for outcomes."""
        if 0 < seconds < math.inf:
            self.client.failures.wait(asyncio.get_running_loop().time(), seconds)

    def read_advertised(self) -> None:
        """Report the header fields of the last answer about a limit."""
        if self.client.advertised is not None:
            self.pace.on_advertised(self.client.advertised, self.clock())
            self.client.advertised = None

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
            if polled.sent is not None and not polled.has_passed:
                self.pace.on_over(polled.sent, now)
            return ending
        if isinstance(result, BackendError):
            if self.failing_since is not None and not isinstance(result, RateLimited):
                pause = min(MAX_OUTAGE_PAUSE, OUTAGE_PAUSE * (now - self.failing_since))
                self.paused_until = max(self.paused_until, now + pause)
            self.wait_for_service(max(polled.due, self.paused_until) - now)
        heapq.heappush(self.queue, polled)
        return None

    def report_to_pace(self, polled: PolledJob, result: PollResult) -> None:
        """Report what a poll shows about the service's limiter."""
        sent, now = polled.sent, self.clock()
        if sent is None or polled.has_passed:
            return
        reason = refusal_reason(result)
        if reason is not None:
            polled.has_passed = True
            self.pace.on_refused(sent, now, is_throttled=reason is Reason.THROTTLED)
        elif isinstance(result, Verification | JobFailure) or has_left_queue(result, now - polled.job.submitted_at):
            polled.has_passed = True
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
        elif now - self.failing_since >= (CLOSED if is_closed(result) else OUTAGE):
            success_of(await self.client.send(QUOTA_REQUEST))
            self.failing_since = now

    def unfinished(self) -> Iterator[Event]:
        """Notices about addresses that were submitted again, and about jobs that were given up."""
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


def is_closed(result: PollResult) -> bool:
    """Whether the service does not accept the client, as when its key was revoked."""
    refusals = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
    return isinstance(result, ServiceError) and result.status in refusals


def has_left_queue(result: PollResult, age: float) -> bool:
    """Whether a job that is not over has passed the limiter, by its status or its age."""
    if not isinstance(result, str):
        return False
    return result == JobStatus.PROCESSING or age >= QUEUED_FOR
