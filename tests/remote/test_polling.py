"""The schedule, and following one job: no network, no clock."""

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.backend import Job
from mailverdict.contract.envelope import ErrorEnvelope, SuccessEnvelope
from mailverdict.errors import (
    ContractError,
    RateLimited,
    ServiceError,
    SettingsError,
    TransportError,
)
from mailverdict.model.verification import Verification
from mailverdict.remote.api import JobFailure, NoAnswer
from mailverdict.remote.events import (
    GaveUp,
    PollResult,
    PollSchedule,
    follow_job,
    poll_request,
    read_poll,
)
from tests.doubles.scripted_service import payload
from tests.doubles.tables import each_row

JOB = Job("j1", "ada@example.org", "smtp", submitted_at=1000.0)
VERIFICATION = Verification("ada@example.org", "smtp", "valid")
SCHEDULE = PollSchedule()
DOWN = TransportError("GET http://verify.test: no connection")


def follow(
    poll: Callable[[float], PollResult],
    schedule: PollSchedule = SCHEDULE,
    first: float | None = None,
) -> tuple[Any, list[float]]:
    """Follow the job with `poll(age)` as the result at each poll; give the ending and the ages of the polls."""
    ages = []

    async def poll_at(due: float) -> tuple[PollResult, float]:
        ages.append(due - JOB.submitted_at)
        assert len(ages) < 10_000, "followed for ever"
        return poll(ages[-1]), due

    first = schedule.first_poll(JOB, 0, 1, JOB.submitted_at) if first is None else first
    return asyncio.run(follow_job(JOB, schedule, first, poll_at)), ages


def test_schedule_polls_at_the_contract_s_ages() -> None:
    ending, ages = follow(lambda age: VERIFICATION if age >= 150 else "queued")
    expected = [*range(2, 31, 2), *range(35, 121, 5), 135, 150]
    assert ages == expected
    assert ending == VERIFICATION


def test_schedule_gives_up_at_its_age_and_not_before() -> None:
    ending, ages = follow(lambda _: "processing")
    assert ending == GaveUp("still 'processing'")
    assert ages[-1] >= 900 > ages[-2]


@each_row("final", [VERIFICATION, JobFailure("ERROR", "no")])
def test_a_final_status_ends_it_at_once(final: PollResult) -> None:
    assert follow(lambda _: final) == (final, [2.0])


def test_early_404_is_pending_and_a_few_in_a_row_are_an_error() -> None:
    ending, ages = follow(lambda _: None)
    assert ending.code == "JOB_NOT_FOUND"
    assert len(ages) == SCHEDULE.tolerated_404 + 1


def test_404_count_starts_again_when_the_job_is_seen() -> None:
    results = iter([None] * 5 + ["queued"] + [None] * 5 + [VERIFICATION])
    assert follow(lambda _: next(results))[0] == VERIFICATION


def test_trouble_with_the_service_says_nothing_about_the_job() -> None:
    results = iter([DOWN, ServiceError("500", status=500), DOWN, VERIFICATION])
    assert follow(lambda _: next(results)) == (VERIFICATION, [2.0, 4.0, 6.0, 8.0])


def test_a_job_whose_polls_keep_failing_is_given_up_in_the_end() -> None:
    ending, ages = follow(lambda _: DOWN)
    assert ending == GaveUp("without a usable answer (TransportError)")
    assert ages[-1] >= 900


def test_an_old_job_is_not_given_up_after_one_failing_poll() -> None:
    results = iter([DOWN, "queued"])
    ending, ages = follow(lambda _: next(results), first=90_000.0)
    assert ending == GaveUp("still 'queued'")
    assert ages == [89_000.0, 89_015.0]


def test_a_limiter_s_wait_is_respected() -> None:
    results = iter([RateLimited("slow down", retry_after=40.0), VERIFICATION])
    assert follow(lambda _: next(results))[1] == [2.0, 42.0]


def test_a_clock_that_went_back_does_no_harm() -> None:
    results = iter(["queued", VERIFICATION])
    assert follow(lambda _: next(results), first=10.0)[1] == [-990.0, -988.0]


def test_first_polls_are_staggered_within_one_interval() -> None:
    jobs = [SCHEDULE.first_poll(JOB, place, 100, 1000.0) for place in range(100)]
    assert jobs[0] == 1002.0
    assert len(set(jobs)) == 100
    assert max(jobs) < 1004.0


def test_first_poll_of_a_resumed_job_is_at_once() -> None:
    assert SCHEDULE.first_poll(JOB, 0, 1, 5000.0) == 5000.0


@each_row(("age", "seconds"), [(0, 2), (29.9, 2), (30, 5), (119, 5), (120, 15), (1e9, 15)])
def test_the_interval_grows_with_the_age_of_a_job(age: float, seconds: float) -> None:
    assert SCHEDULE.interval(age) == seconds


def test_the_last_interval_goes_on_past_the_last_step() -> None:
    assert PollSchedule(steps=((10, 1), (20, 4))).interval(10_000) == 4


@each_row(
    "wrong",
    [
        {"steps": ()},
        {"steps": ((30, 0),)},
        {"steps": ((30, -1),)},
        {"steps": ((30, math.inf),)},
        {"steps": ((30, math.nan),)},
        {"steps": ((30, 2), (30, 5))},
        {"steps": ((30, 2), (20, 5))},
        {"steps": ((math.nan, 2),)},
        {"steps": ((0, 2),)},
        {"steps": 5},
        {"steps": ((1, 2, 3),)},
        {"steps": (("a", 2),)},
        {"give_up": -1},
        {"give_up": "soon"},
        {"tolerated_404": -1},
        {"tolerated_404": 1.5},
        {"tolerated_404": True},
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        PollSchedule(**wrong)


def test_give_up_takes_a_duration() -> None:
    assert PollSchedule(give_up="15min").give_up == 900.0


def test_a_job_id_stays_within_its_path_segment() -> None:
    path = poll_request(Job("a/../b?c#d é", "x@y.org", "mx", 0.0)).path
    assert path == "/api/verification-result/a%2F..%2Fb%3Fc%23d%20%C3%A9"


def record(**fields: Any) -> SuccessEnvelope:
    base = {"email": "ada@example.org", "status": "queued", "verification": None}
    return SuccessEnvelope({"job_id": "j1", "result": {**base, **fields}}, {})


def test_news_of_a_finished_job_is_its_verification() -> None:
    result = read_poll(
        JOB,
        record(
            status="done",
            verification=payload("ada@example.org", "smtp", "risky", reasons=["role"]),
        ),
    )
    assert isinstance(result, Verification)
    assert (result.result, result.reasons) == ("risky", ("role",))


@each_row("status", ["queued", "processing", "paused", "waiting for rain"])
def test_news_of_an_unfinished_job_is_its_status_known_or_not(status: str) -> None:
    assert read_poll(JOB, record(status=status)) == status


def test_news_of_a_technical_failure() -> None:
    assert read_poll(JOB, record(status="error")) == JobFailure(
        "ERROR", "the service could not check this address"
    )


def test_news_of_an_unknown_job_is_none() -> None:
    assert read_poll(JOB, ErrorEnvelope("JOB_NOT_FOUND", "no", 404, {})) is None
    assert read_poll(JOB, ErrorEnvelope("", "HTML", 404, {})) is None


def test_news_of_an_earlier_revision_carries_the_type_that_was_asked() -> None:
    result = read_poll(
        JOB,
        SuccessEnvelope(
            {"job_id": "j1", "result": {"email": "ada@example.org", "status": "invalid"}}, {}
        ),
    )
    assert isinstance(result, Verification)
    assert (result.result, result.validation_type) == ("invalid", "smtp")


def test_another_job_s_record_is_not_a_result_of_this_one() -> None:
    done = record(status="done", verification=payload("eve@example.org", "smtp"))
    done.data["job_id"] = "j2"
    assert isinstance(read_poll(JOB, done), ContractError)


@each_row(
    "verification", [None, {}, {"email": "a@b.org", "validation_type": "mx", "result": "great"}, 7]
)
def test_a_finished_job_with_an_unusable_payload_is_over_all_the_same(verification: Any) -> None:
    result = read_poll(JOB, record(status="done", verification=verification))
    assert isinstance(result, JobFailure)
    assert result.code == "CONTRACT"


@each_row(
    "data", [None, [], {}, {"result": None}, {"result": {"status": 5}}, {"job_id": 3, "result": {}}]
)
def test_data_that_is_not_a_record_is_an_error_of_the_service(data: Any) -> None:
    assert isinstance(read_poll(JOB, SuccessEnvelope(data, {})), ContractError)


def test_a_lost_answer_is_trouble_with_the_service() -> None:
    assert read_poll(JOB, NoAnswer(DOWN, was_sent=True)) is DOWN


KEYS = [
    "job_id",
    "result",
    "email",
    "status",
    "verification",
    "valid",
    "details",
    "reasons",
    "errors",
    "checks",
    "metadata",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6)
    ),
    max_leaves=12,
)


@given(JSON, st.sampled_from(["queued", "done", "error", "valid", "invalid"]))
def test_reading_news_never_raises(data: Any, status: str) -> None:
    read_poll(JOB, SuccessEnvelope(data, {}))
    whole = {
        "job_id": "j1",
        "result": {"email": "a@b.org", "status": status, "verification": data, "details": data},
    }
    result = read_poll(JOB, SuccessEnvelope(whole, {}))
    assert isinstance(result, Verification | JobFailure | str)


def test_the_page_of_a_proxy_with_status_404_is_not_an_unknown_job() -> None:
    page = ErrorEnvelope("", "m", 404, {}, is_page=True)
    assert isinstance(read_poll(JOB, page), ServiceError)
    assert read_poll(JOB, ErrorEnvelope("", "m", 404, {})) is None
