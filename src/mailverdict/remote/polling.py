"""When to poll a job, what its answers mean, and when to let it be. Pure: time is passed in."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from ..backend import Job
from ..contract.envelope import EARLIER_FINAL, Failure, JobRecord, JobStatus, Success, parse_job
from ..errors import BackendError, ContractError, RateLimited, SettingsError
from ..model.json_fields import shorten
from ..model.settings import parse_duration
from ..model.verification import Verification
from .api import Answer, Request, Trouble, error_of

__all__ = ["Ending", "GaveUp", "Heard", "News", "PollSchedule", "follow_job", "poll_request", "read_news"]

CLIMB = 0.05  # seconds between the first polls of jobs submitted together, where their interval has room
FAILURES = 3  # polls without a usable answer, in a row, before an old job is let be
LONGEST_STATUS = 40  # characters of a status that no table knows
FINAL = (JobStatus.DONE, JobStatus.ERROR, *EARLIER_FINAL)
JOB_ERROR = "the service could not check this address"


@dataclass(frozen=True, slots=True)
class PollSchedule:
    """How often a job is polled, by its age, and when it is let be.

    Parameters
    ----------
    steps : tuple of (float, float)
        Pairs of (until this age of the job, poll every so many) seconds, by rising age; past the
        last step its interval goes on.
    give_up : duration
        Age at which a job that is not finished stays `pending`; a later run polls it again.
    tolerated_404 : int
        Answers "no such job" in a row that are put down to the job being too new.

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
        """When to poll a job first: `place` staggers the `of` jobs that are taken up together."""
        interval = self.interval(max(0.0, now - job.submitted_at))
        wait = interval if now - job.submitted_at < interval else 0.0
        return now + wait + place * min(CLIMB, interval / max(1, of))


def check_steps(steps: Any) -> tuple[tuple[float, float], ...]:
    """Give the steps as pairs of seconds; raise `SettingsError` where they make no schedule."""
    try:
        pairs = tuple((float(until), float(every)) for until, every in steps)
    except (TypeError, ValueError) as exc:
        raise SettingsError(f"steps={steps!r}: give pairs of seconds, as ((30, 2), (120, 5))") from exc
    ages = [until for until, _ in pairs]
    if not pairs or any(math.isnan(age) or age <= 0 for age in ages) or sorted(set(ages)) != ages:
        raise SettingsError(f"steps={steps!r}: give at least one pair, with ages above 0 that rise")
    if wrong := [every for _, every in pairs if not 0 < every < math.inf]:
        raise SettingsError(f"steps={steps!r}: an interval of {wrong[0]:g} seconds cannot work")
    return pairs


@dataclass(frozen=True, slots=True)
class GaveUp:
    """A job that is not finished and is let be."""

    why: str


# What a poll says: how the job ended; its status where it has not; None, there is no such job; or
# what is wrong with the service, which says nothing about the job.
News = Verification | Trouble | str | BackendError | None
Ending = Verification | Trouble | GaveUp


@dataclass(frozen=True, slots=True)
class Heard:
    """What a poll said, and when."""

    news: News
    at: float


def follow_job(job: Job, schedule: PollSchedule, first: float) -> Generator[float, Heard, Ending]:
    """Follow one job to its end: yields the moment of the next poll, is sent what was heard.

    A job is over with `done`, with `error`, with too many answers "no such job" in a row, and, for
    this run, at the age of `give_up`. Trouble with the service changes nothing about the job.
    """
    at, absences, failures = first, 0, 0
    while True:
        heard = yield at
        news = heard.news
        if isinstance(news, Verification | Trouble):
            return news
        absences = absences + 1 if news is None else 0
        failures = failures + 1 if isinstance(news, BackendError) else 0
        if absences > schedule.tolerated_404:
            return Trouble("JOB_NOT_FOUND", f"the service did not know the job in {absences} polls in a row")
        age = max(0.0, heard.at - job.submitted_at)
        if age >= schedule.give_up and isinstance(news, str):
            return GaveUp(f"still {news!r}")
        if age >= schedule.give_up and failures >= FAILURES:
            return GaveUp(f"without a usable answer ({type(news).__name__})")
        at = heard.at + max(schedule.interval(age), asked_wait(news))


def asked_wait(news: News) -> float:
    """Seconds that a limiter asked for."""
    return (news.retry_after or 0.0) if isinstance(news, RateLimited) else 0.0


def poll_request(job: Job) -> Request:
    """The request that asks for one job."""
    return Request("GET", f"/api/verification-result/{quote(job.job_id, safe='')}")


def read_news(job: Job, answer: Answer) -> News:
    """Understand the answer to a poll."""
    if isinstance(answer, Failure) and answer.status == HTTPStatus.NOT_FOUND:
        return None
    if not isinstance(answer, Success):
        return error_of(answer)
    try:
        check_job_id(job, answer.data)
        return news_of(parse_job(answer.data, job.validation_type))
    except ContractError as exc:
        return Trouble("CONTRACT", str(exc)) if is_final_for(job, answer.data) else exc


def news_of(record: JobRecord) -> Verification | Trouble | str:
    """A readable record's news."""
    if record.verification is not None:
        return record.verification
    if record.status == JobStatus.ERROR:
        return Trouble("ERROR", record.message or JOB_ERROR)
    return shorten(record.status, LONGEST_STATUS)


def check_job_id(job: Job, data: Any) -> None:
    """Refuse another job's record: its verdict would be a lie about this address."""
    answered = data.get("job_id") if isinstance(data, Mapping) else None
    if answered is not None and answered != job.job_id:
        raise ContractError(f"data.job_id is {shorten(answered)}, not the job that was polled", path="data.job_id")


def is_final_for(job: Job, data: Any) -> bool:
    """Whether a record that cannot be read in full still says that this job is over."""
    if not isinstance(data, Mapping) or data.get("job_id") not in (None, job.job_id):
        return False
    record = data.get("result")
    return isinstance(record, Mapping) and record.get("status") in FINAL
