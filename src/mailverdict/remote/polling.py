"""When to poll a job, what the answers mean, and when to give up. No I/O: time is a parameter."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from ..backend import Job
from ..contract.envelope import (
    EARLIER_FINAL,
    ErrorEnvelope,
    JobRecord,
    JobStatus,
    SuccessEnvelope,
    parse_job,
)
from ..errors import BackendError, ContractError, RateLimited, SettingsError
from ..model.json_fields import shorten
from ..model.settings import parse_duration
from ..model.verification import Verification
from .api import ApiAnswer, ApiRequest, JobFailure, error_of

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
        return next((every for until, every in self.steps if age < until), self.steps[-1][1])

    def first_poll(self, job: Job, place: int, of: int, now: float) -> float:
        """When to poll a job first; `place` staggers the `of` jobs that are polled from now on."""
        interval = self.interval(max(0.0, now - job.submitted_at))
        wait = interval if now - job.submitted_at < interval else 0.0
        return now + wait + place * min(STAGGER, interval / max(1, of))


def check_steps(steps: Any) -> tuple[tuple[float, float], ...]:
    """The steps as pairs of seconds; `SettingsError` if they are not a schedule."""
    try:
        pairs = tuple((float(until), float(every)) for until, every in steps)
    except (TypeError, ValueError) as exc:
        raise SettingsError(
            f"steps={steps!r}: give pairs of seconds, as ((30, 2), (120, 5))"
        ) from exc
    ages = [until for until, _ in pairs]
    if not pairs or any(math.isnan(age) or age <= 0 for age in ages) or sorted(set(ages)) != ages:
        raise SettingsError(f"steps={steps!r}: give at least one pair, with ages above 0 that rise")
    if wrong := [every for _, every in pairs if not 0 < every < math.inf]:
        raise SettingsError(f"steps={steps!r}: an interval of {wrong[0]:g} seconds cannot work")
    return pairs


@dataclass(frozen=True, slots=True)
class GaveUp:
    """A job that is not finished and is not polled again by this run."""

    reason: str


# How the job ended; its status if it has not ended; None if there is no such job; or an error of the
# service, which shows nothing about the job.
PollResult = Verification | JobFailure | str | BackendError | None
Ending = Verification | JobFailure | GaveUp


# Polls at this time; the result, and when it came.
Poll = Callable[[float], Awaitable[tuple[PollResult, float]]]


async def follow_job(job: Job, schedule: PollSchedule, due: float, poll: Poll) -> Ending:
    """Follow one job to its end; it is first polled when it is `due`.

    A job ends with `done`, with `error`, with too many answers "no such job" in a row, and, for this
    run, at the age of `give_up`. An error of the service does not end the job.
    """
    absences = failures = 0
    while True:
        result, now = await poll(due)
        if isinstance(result, Verification | JobFailure):
            return result
        absences = absences + 1 if result is None else 0
        failures = failures + 1 if isinstance(result, BackendError) else 0
        if absences > schedule.tolerated_404:
            return JobFailure(
                "JOB_NOT_FOUND", f"the service did not know the job in {absences} polls in a row"
            )
        age = max(0.0, now - job.submitted_at)
        if age >= schedule.give_up and isinstance(result, str):
            return GaveUp(f"still {result!r}")
        if age >= schedule.give_up and failures >= MIN_FAILURES:
            return GaveUp(f"without a usable answer ({type(result).__name__})")
        requested = (result.retry_after or 0.0) if isinstance(result, RateLimited) else 0.0
        due = now + max(schedule.interval(age), requested)


def poll_request(job: Job) -> ApiRequest:
    """The request for the state of one job."""
    return ApiRequest("GET", f"/api/verification-result/{quote(job.job_id, safe='')}")


def read_poll(job: Job, answer: ApiAnswer) -> PollResult:
    """Read the answer to a poll."""
    if (
        isinstance(answer, ErrorEnvelope)
        and answer.status == HTTPStatus.NOT_FOUND
        and not answer.is_page
    ):
        return None
    if not isinstance(answer, SuccessEnvelope):
        return error_of(answer)
    try:
        check_job_id(job, answer.data)
        return result_of_record(parse_job(answer.data, job.validation_type))
    except ContractError as exc:
        return JobFailure("CONTRACT", str(exc)) if is_final_for(job, answer.data) else exc


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
        raise ContractError(
            f"data.job_id is {shorten(answered)}, not the job that was polled", path="data.job_id"
        )


def is_final_for(job: Job, data: Any) -> bool:
    """Whether a record that violates the contract still shows that this job has ended."""
    if not isinstance(data, Mapping) or data.get("job_id") not in (None, job.job_id):
        return False
    record = data.get("result")
    return isinstance(record, Mapping) and record.get("status") in FINAL
