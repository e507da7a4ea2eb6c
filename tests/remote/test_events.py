"""Submitting and polling together, against a service that watches, in virtual time."""

import asyncio
import time
from collections import Counter
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from mailverdict.backend import Job, Settled, Submitted, Submitting
from mailverdict.errors import ContractError, ServiceError, TransportError
from mailverdict.remote.bulk import RESUBMISSIONS
from mailverdict.remote.events import MAX_IN_FLIGHT, OUTAGE, PollSchedule
from mailverdict.remote.pace import QUEUED_FOR
from tests.doubles.clock import EPOCH, VirtualLoop, run_virtual
from tests.doubles.remote import RemoteWorld, addresses, batch, verify_scripted
from tests.doubles.scripted_service import FAULTS, Fault, ScriptedService, envelope, payload
from tests.doubles.tables import crossed, each_row


def test_every_address_is_settled_once_and_the_service_has_nothing_to_complain_of() -> None:
    outcome, service = verify_scripted(addresses(250))
    assert outcome.error is None
    assert sorted(outcome.rows) == sorted(addresses(250))
    assert {row["result"] for row in outcome.rows.values()} == {"valid"}
    assert service.violations_and_double_payments == []
    assert [len(each) for each in service.batches] == [100, 100, 50]


def test_a_batch_is_claimed_before_it_is_sent_and_jobs_are_yielded_before_the_first_poll() -> None:
    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop)
        claimed: list[Submitting] = []

        def claim(submitting: Submitting) -> tuple[str, ...]:
            assert world.service.requests["bulk"] == 0
            claimed.append(submitting)
            return submitting.emails

        announced = replace(batch(addresses(5)), claim=claim)
        async with aclosing(world.backend.verify(announced)) as events:
            async for event in events:
                if isinstance(event, Submitted):
                    assert world.service.requests["poll"] == 0
        assert [each.emails for each in claimed] == [tuple(addresses(5))]

    run_virtual(main)


@pytest.mark.slow
def test_polls_are_few_at_once_and_spread() -> None:
    _, service = verify_scripted(addresses(100), duration=lambda _: 20.0, parallel=4)
    assert service.most_parallel <= 4 + 1
    first = sorted(job.polled_at[0] - job.made_at for job in service.jobs.values())
    assert first[0] >= 2.0
    assert first[-1] - first[0] > 1.5


@pytest.mark.slow
def test_polls_of_nearly_the_same_time_are_sent_together_after_those_that_show_the_limiter() -> (
    None
):
    _, service = verify_scripted(addresses(100), duration=lambda _: 60.0, parallel=100)
    late = Counter(
        round(at, 3)
        for job in service.jobs.values()
        for at in job.polled_at
        if at - job.made_at > QUEUED_FOR + 5
    )
    assert late.total() / len(late) > 2
    first = Counter(round(job.polled_at[0], 3) for job in service.jobs.values())
    assert set(first.values()) == {1}


@pytest.mark.slow
@each_row("seconds", [0.5, 3.0, 29.0, 65.0, 200.0])
def test_requests_per_job_are_within_a_tenth_of_what_the_schedule_needs(seconds: float) -> None:
    count = 40
    _, service = verify_scripted(addresses(count), duration=lambda _: seconds)
    schedule, needed, age = PollSchedule(), 0, 0.0
    while age < seconds or not needed:
        age += schedule.interval(age)
        needed += 1
    assert sum(service.requests.values()) / count <= 1.1 * needed


def test_only_pending_jobs_are_polled() -> None:
    _, service = verify_scripted(
        addresses(20), duration=lambda email: 60.0 if email.startswith("user1") else 1.0
    )
    polls = {job.email: len(job.polled_at) for job in service.jobs.values()}
    assert polls["user2@example2.org"] == 1
    assert polls["user1@example1.org"] > 10
    assert service.violations == []


def test_what_is_not_finished_after_15_minutes_stays_pending_with_a_notice() -> None:
    outcome, service = verify_scripted(
        addresses(4), duration=lambda e: 1e9 if e.startswith("user1") else 1.0
    )
    assert outcome.deferred == {"user1@example1.org": "gave_up"}
    assert len(outcome.rows) == 3
    assert 900 <= outcome.seconds < 920
    assert any("still 'processing'" in notice for notice in outcome.notices)
    assert service.violations == []


@pytest.mark.slow
def test_jobs_of_an_earlier_call_are_polled_and_never_submitted() -> None:
    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop, duration=lambda _: 5000.0)
        first = await world.verify(addresses(5))
        assert set(first.deferred.values()) == {"gave_up"}
        before = sum(world.service.requests.values())
        await asyncio.sleep(5000)
        second = await world.verify([], in_flight=first.jobs)
        assert sorted(second.rows) == sorted(addresses(5))
        assert sum(world.service.requests.values()) - before == 5, (
            "one poll each, and no quota asked"
        )
        assert world.service.violations_and_double_payments == []

    run_virtual(main)


@pytest.mark.slow
def test_an_old_job_that_is_not_finished_is_polled_once_and_given_up() -> None:
    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop, duration=lambda _: 1e9)
        first = await world.verify(addresses(3))
        await asyncio.sleep(5000)
        second = await world.verify([], in_flight=first.jobs)
        assert set(second.deferred.values()) == {"gave_up"}
        assert second.seconds < 1.0

    run_virtual(main)


def test_jobs_that_the_service_forgot_end_as_errors() -> None:
    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop)
        gone = Job("gone", "ada@example.org", "smtp", EPOCH - 90_000)
        outcome = await world.verify([], in_flight=[gone])
        assert outcome.rows["ada@example.org"]["error"] == "JOB_NOT_FOUND"

    run_virtual(main)


@pytest.mark.slow
def test_the_quota_is_asked_before_anything_is_sent_and_the_rest_deferred() -> None:
    outcome, service = verify_scripted(addresses(250), daily_limit=120, used=0)
    assert len(outcome.rows) == 120
    assert list(outcome.deferred.values()) == ["quota"] * 130
    assert service.used == 120


def test_a_used_up_quota_costs_one_request() -> None:
    outcome, service = verify_scripted(addresses(5), daily_limit=100, used=100)
    assert set(outcome.deferred.values()) == {"quota"}
    assert dict(service.requests) == {"quota": 1}


def test_a_quota_race_is_won_by_shrinking() -> None:
    """Somebody on the same address spends between our look and our submission."""

    def prepare(service: ScriptedService) -> None:
        others = iter([40, 20])

        def spend() -> None:
            service.used += next(others, 0)

        service.quota_before_bulk = spend

    outcome, service = verify_scripted(addresses(90), prepare, daily_limit=100)
    assert len(outcome.rows) == 40
    assert list(outcome.deferred.values()) == ["quota"] * 50
    assert service.used == 100
    assert service.violations_and_double_payments == []


def test_malformed_addresses_are_settled_by_the_submission_and_never_polled() -> None:
    outcome, service = verify_scripted(["ada@example.org", "malformed"])
    assert outcome.rows["malformed"]["result"] == "invalid"
    assert service.violations_and_double_payments == []


def test_the_earlier_revision_is_recognised_by_its_shape() -> None:
    def verdict(email: str, kind: str) -> dict[str, Any] | None:
        results = {"a": "valid", "b": "invalid"}
        return payload(email, kind, results[email[0]]) if email[0] in results else None

    outcome, service = verify_scripted(
        ["a@x.org", "b@x.org", "c@x.org"], earlier=True, verdict=verdict, validation_type="mx"
    )
    seen = {
        email: (row["status"], row["result"], row["validation_type"])
        for email, row in outcome.rows.items()
    }
    assert seen == {
        "a@x.org": ("done", "valid", "mx"),
        "b@x.org": ("done", "invalid", "mx"),
        "c@x.org": ("error", None, "mx"),
    }
    assert service.violations_and_double_payments == []


def test_unknown_reasons_fields_and_statuses_are_tolerated_and_kept() -> None:
    def odd(decoded: Any) -> Any:
        record = decoded.get("data", {}).get("result")
        if record and record["status"] == "queued":
            record["status"] = "warming_up"
        return {**decoded, "surprise": 1}

    def prepare(service: ScriptedService) -> None:
        service.edit = {"poll": odd, "bulk": odd, "quota": odd}

    outcome, _ = verify_scripted(
        addresses(3),
        prepare,
        duration=lambda _: 10.0,
        verdict=lambda e, k: payload(e, k, "risky", reasons=["on_holiday"], score=3),
    )
    assert {(row["reasons"], row["extra"]) for row in outcome.rows.values()} == {
        ("on_holiday", '{"score":3}')
    }


TRANSIENT = [
    "500",
    "502",
    "short envelope",
    "HTML error",
    "cut JSON",
    "reset before",
    "reset after",
    "half an answer",
]


@pytest.mark.parametrize(
    ("fault", "endpoint", "place"),
    crossed(
        [*TRANSIENT, "500 after", "HTML success", "no connection", "never answers", "limiter"],
        ["quota", "bulk", "poll"],
        [0, 1],
    ),
)
def test_no_fault_makes_an_address_paid_twice(fault: str, endpoint: str, place: int) -> None:
    """One fault at the first or second request of an endpoint: everything else is settled all the same."""

    def prepare(service: ScriptedService) -> None:
        service.script(endpoint, [None] * place + [FAULTS[fault]])

    count = 110 if endpoint == "bulk" else 20  # two batches
    outcome, service = verify_scripted(addresses(count), prepare)
    told_twice = [v for v in service.violations if "terminal" not in v or not FAULTS[fault].is_done]
    assert told_twice == []
    assert max(service.paid.values()) == 1
    assert outcome.error is None
    assert len(outcome.rows) + len(outcome.deferred) == count
    assert set(outcome.deferred.values()) <= {"uncertain"}
    lost = endpoint == "bulk" and FAULTS[fault].is_done
    assert len(outcome.deferred) == (len(service.batches[place]) if lost else 0)
    assert bool(lost) == any("may have been paid for" in notice for notice in outcome.notices)


@each_row("fault", [*TRANSIENT, "500 after", "HTML success", "no connection", "never answers"])
def test_a_service_that_always_fails_to_take_submissions_is_one_error(fault: str) -> None:
    def prepare(service: ScriptedService) -> None:
        service.always["bulk"] = FAULTS[fault]

    outcome, service = verify_scripted(addresses(300), prepare)
    assert isinstance(outcome.error, ServiceError | TransportError | ContractError)
    assert "http://verify.test/api/bulk-check-email" in str(outcome.error)
    assert not service.paid or max(service.paid.values()) == 1
    assert len(service.batches) <= RESUBMISSIONS + 1


@each_row("fault", [*TRANSIENT, "HTML success", "no connection", "never answers"])
def test_a_service_whose_quota_cannot_be_read_is_one_error_before_anything_is_sent(
    fault: str,
) -> None:
    def prepare(service: ScriptedService) -> None:
        service.always["quota"] = FAULTS[fault]

    outcome, service = verify_scripted(addresses(3), prepare)
    assert isinstance(outcome.error, ServiceError | TransportError | ContractError)
    assert "http://verify.test" in str(outcome.error)
    assert service.requests["bulk"] == 0
    assert outcome.seconds < 100


def test_another_json_is_one_error_that_says_what_was_seen() -> None:
    def prepare(service: ScriptedService) -> None:
        service.edit["quota"] = lambda _: {"hello": "world"}

    outcome, service = verify_scripted(addresses(3), prepare)
    assert isinstance(outcome.error, ContractError)
    assert str(outcome.error) == "http://verify.test: daily_limit is absent, not a whole number"
    assert service.requests["bulk"] == 0


def test_an_outage_during_polling_is_an_error_after_a_minute_and_settled_rows_are_kept() -> None:
    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop, duration=lambda e: 1.0 if e.startswith("user1") else 50.0)

        def fail() -> None:
            world.service.always = dict.fromkeys(["poll", "quota"], FAULTS["no connection"])

        loop.call_later(20.0, fail)
        outcome = await world.verify(addresses(12))
        assert isinstance(outcome.error, TransportError)
        assert sorted(outcome.rows) == [
            "user10@example3.org",
            "user11@example4.org",
            "user1@example1.org",
        ]
        assert outcome.seconds < 20 + 2 * OUTAGE
        assert len(outcome.jobs) == 12, "all are told as paid for, so a later call goes on"

    run_virtual(main)


def test_an_outage_shorter_than_a_minute_is_ridden_out() -> None:
    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop, duration=lambda _: 30.0)
        loop.call_later(
            10.0, world.service.always.update, dict.fromkeys(["poll", "quota"], FAULTS["502"])
        )
        loop.call_later(50.0, world.service.always.clear)
        outcome = await world.verify(addresses(12))
        assert outcome.error is None
        assert len(outcome.rows) == 12
        assert world.service.violations_and_double_payments == []

    run_virtual(main)


@pytest.mark.slow
def test_polls_pause_while_none_of_them_is_answered() -> None:
    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop, duration=lambda _: 20.0)
        loop.call_later(10.0, world.service.always.update, {"poll": FAULTS["500"]})
        loop.call_later(310.0, world.service.always.clear)
        outcome = await world.verify(addresses(60))
        assert outcome.error is None
        assert len(outcome.rows) == 60
        assert world.service.requests["poll"] < 2_000, (
            "each job by its schedule, with three repetitions: 3,900"
        )
        assert outcome.seconds < 360

    run_virtual(main)


@pytest.mark.parametrize("hours", [-5, 5])
def test_a_clock_that_is_set_during_a_run_changes_no_wait(
    hours: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop, duration=lambda _: 20.0)
        shift = [0.0]
        world.backend.clock = None
        monkeypatch.setattr(time, "time", lambda: loop.wall_clock() + shift[0])
        loop.call_later(5.0, shift.__setitem__, 0, hours * 3600.0)
        outcome = await world.verify(addresses(12))
        assert (outcome.error, len(outcome.rows), outcome.deferred) == (None, 12, {})
        assert outcome.seconds < 30

    run_virtual(main)


@each_row(
    "fault", [Fault(503, b""), Fault(503, b"", (("retry-after", "9"),)), FAULTS["short envelope"]]
)
def test_a_service_that_is_unavailable_for_a_while_loses_nothing_and_costs_nothing(
    fault: Fault,
) -> None:
    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop)
        world.service.script("bulk", [fault] * 5)
        outcome = await world.verify(addresses(12))
        assert (outcome.error, len(outcome.rows), outcome.deferred) == (None, 12, {})
        assert sorted(world.service.paid.values()) == [1] * 12
        assert world.service.violations_and_double_payments == []

    run_virtual(main)


def test_a_service_that_stays_unavailable_ends_the_run_with_a_readable_error() -> None:
    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop)
        world.service.always["bulk"] = Fault(503, b"")
        outcome = await world.verify(addresses(12))
        assert str(outcome.error).endswith("/api/bulk-check-email: 503 with an empty body")
        assert 60 < outcome.seconds < 180

    run_virtual(main)


def test_a_key_that_is_revoked_in_the_middle_ends_the_run_soon_and_no_job_is_lost() -> None:
    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop, duration=lambda _: 60.0)
        closed = Fault(401, envelope("UNAUTHORIZED"))
        loop.call_later(
            10.0, world.service.always.update, dict.fromkeys(["poll", "quota", "bulk"], closed)
        )
        outcome = await world.verify(addresses(12))
        assert isinstance(outcome.error, ServiceError)
        assert (outcome.error.status, len(outcome.jobs), outcome.rows) == (401, 12, {})
        assert outcome.seconds < 10 + OUTAGE / 2

    run_virtual(main)


def test_one_poisoned_job_does_not_end_the_run() -> None:
    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop)
        poisoned = Job("poisoned", "eve@example.org", "smtp", EPOCH)
        served = world.service.answer_poll

        def answer(path: str, body: bytes) -> Any:
            return (
                (500, {"error": {"code": "X"}}) if path.endswith("poisoned") else served(path, body)
            )

        world.service.answer_poll = answer  # type: ignore[method-assign]
        outcome = await world.verify(addresses(3), in_flight=[poisoned])
        assert outcome.error is None
        assert len(outcome.rows) == 3
        assert outcome.deferred == {"eve@example.org": "gave_up"}
        assert any("without a usable answer" in notice for notice in outcome.notices)

    run_virtual(main)


def test_an_error_while_submitting_lets_what_is_paid_for_come_home_first() -> None:
    def prepare(service: ScriptedService) -> None:
        service.script("quota", [None])
        service.always["quota"] = FAULTS["500"]

    outcome, _ = verify_scripted(addresses(150), prepare)
    assert isinstance(outcome.error, ServiceError)
    assert len(outcome.rows) == 100
    assert any(notice.startswith("nothing more is submitted") for notice in outcome.notices)


def test_a_limiter_on_polls_slows_all_of_them_down() -> None:
    def prepare(service: ScriptedService) -> None:
        service.always["poll"] = FAULTS["limiter"]

    async def main(loop: VirtualLoop) -> ScriptedService:
        world = RemoteWorld(loop)
        prepare(world.service)
        loop.call_later(100.0, world.service.always.clear)
        outcome = await world.verify(addresses(100))
        assert outcome.error is None
        assert len(outcome.rows) == 100
        return world.service

    service = run_virtual(main)
    assert service.requests["poll"] < 500


@pytest.mark.slow  # more than a thousand jobs, each polled; the bound is one comparison in events.py
def test_jobs_in_flight_are_bounded() -> None:
    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop, pace=None)
        open_jobs = most = 0
        async with aclosing(world.backend.verify(batch(addresses(MAX_IN_FLIGHT + 150)))) as events:
            async for event in events:
                open_jobs += len(event.jobs) if isinstance(event, Submitted) else 0
                open_jobs -= len(event.job_ids) if isinstance(event, Settled) else 0
                most = max(most, open_jobs)
        assert open_jobs == 0
        assert most == MAX_IN_FLIGHT

    run_virtual(main)


def test_leaving_early_ends_every_request() -> None:
    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop, duration=lambda _: 100.0)
        async with aclosing(world.backend.verify(batch(addresses(50)))) as events:
            async for event in events:
                if isinstance(event, Submitted):
                    break
        assert world.service.under_way == 0
        assert len(asyncio.all_tasks(loop)) == 1

    run_virtual(main)


def test_cancelling_ends_every_request() -> None:
    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop, duration=lambda _: 100.0)
        world.wire.latency = 0.5
        task = asyncio.create_task(world.verify(addresses(50)))
        await asyncio.sleep(4.0)
        assert world.service.under_way > 0
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        assert world.service.under_way == 0
        assert len(asyncio.all_tasks(loop)) == 1

    run_virtual(main)


def test_a_long_wait_is_an_event() -> None:
    outcome, _ = verify_scripted(addresses(1), duration=lambda _: 60.0)
    assert max(outcome.waits) == pytest.approx(5.0, abs=0.1)
