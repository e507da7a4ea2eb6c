"""A service whose limiter refuses part of what is submitted, in virtual time: nothing lost, little paid twice."""

import math
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mailverdict.backend import KnownPace, Paced, Settled
from mailverdict.model.words import ValidationType
from mailverdict.runs.execution import Execution, RunSettings
from mailverdict.runs.journal.journal import Journal
from tests.doubles.clock import VirtualLoop, run_virtual
from tests.doubles.limiting import limit
from tests.doubles.remote import URL, Outcome, RemoteWorld, addresses
from tests.doubles.scripted_service import Fault, ScriptedService
from tests.doubles.tables import each_row

IDEAL = 24.0  # seconds for 1,500 addresses at 50 a second after a burst of 300


def verify_limited(
    count: int, prepare: Callable[[ScriptedService], object], **options: Any
) -> tuple[Outcome, ScriptedService]:
    async def main(loop: VirtualLoop) -> tuple[Outcome, ScriptedService]:
        world = RemoteWorld(loop, **options)
        prepare(world.service)
        return await world.verify(addresses(count)), world.service

    return run_virtual(main)


def lost(outcome: Outcome) -> int:
    return sum(1 for row in outcome.rows.values() if row["reasons"] == "rate_limited")


@pytest.mark.slow
@pytest.mark.parametrize("by_batch", [False, True])
def test_a_limiter_of_50_a_second_loses_nothing_and_costs_little(by_batch: bool) -> None:
    outcome, service = verify_limited(
        1_500, lambda service: limit(service, 50, 300, by_batch=by_batch)
    )
    assert sorted(outcome.rows) == sorted(addresses(1_500))
    assert lost(outcome) <= 15
    assert sum(service.paid.values()) <= 1.2 * 1_500
    assert max(service.paid.values()) <= 3
    assert outcome.seconds <= 4 * IDEAL
    assert any("submitted again" in notice for notice in outcome.notices)


@pytest.mark.slow
def test_without_asking_again_each_address_is_paid_once() -> None:
    outcome, service = verify_limited(600, lambda service: limit(service, 50, 150), ask_again=False)
    assert set(service.paid.values()) == {1}
    assert 0 < lost(outcome) <= 0.3 * 600
    assert not any(event.is_asked_again for event in outcome.all(Settled))


def test_an_address_is_submitted_three_times_at_most() -> None:
    outcome, service = verify_limited(3, lambda service: limit(service, 0.0001, 1))
    assert set(service.paid.values()) <= {1, 2, 3}
    assert lost(outcome) == 2
    assert len(outcome.rows) == 3


@pytest.mark.slow
def test_nothing_is_asked_again_when_no_quota_is_left() -> None:
    outcome, service = verify_limited(400, lambda service: limit(service, 5, 100), daily_limit=400)
    assert service.used == 400
    assert set(outcome.deferred.values()) <= {"quota"}
    assert len(outcome.rows) + len(outcome.deferred) == 400
    assert any("not submitted again" in notice for notice in outcome.notices)


@pytest.mark.slow
def test_a_pace_that_was_given_is_kept() -> None:
    outcome, service = verify_limited(300, lambda service: limit(service, 50, 300), pace=20.0)
    assert {event.per_second for event in outcome.all(Paced)} == {20.0}
    assert 300 / 20 <= outcome.seconds <= 300 / 20 + 5
    assert set(service.paid.values()) == {1}


@pytest.mark.slow
def test_without_a_limiter_the_pace_is_not_limited() -> None:
    outcome, _ = verify_limited(600, lambda _: None)
    assert {event.per_second for event in outcome.all(Paced)} == {None}
    assert outcome.seconds < 10


@pytest.mark.slow
def test_a_journal_remembers_the_pace_and_what_was_refused(tmp_path: Path) -> None:
    count = 300

    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop)
        limit(world.service, 20, 60)
        execution = Execution(
            pa.array(addresses(count)),
            world.backend,
            RunSettings(ValidationType.SMTP),
            journal=Journal(tmp_path / "j.db", clock=loop.wall_clock),
            clock=loop.wall_clock,
        )
        snapshots: list[Any] = []
        execution.subscribe(snapshots.append)
        await execution.run()
        assert execution.progress.state == "done"
        assert execution.progress.verdicts["valid"] == count
        assert execution.progress.settled == max(each.settled for each in snapshots) == count
        assert (
            execution.progress.submitted
            == sum(world.service.paid.values())
            == count + execution.progress.asked_again
        )
        assert execution.progress.asked_again > 0
        assert any("addresses a second" in str(each) for each in snapshots)
        with Journal(tmp_path / "j.db", clock=loop.wall_clock) as journal:
            known = journal.known_pace(URL)
            assert isinstance(known, KnownPace)
            assert known.limit == pytest.approx(20, rel=0.5)
            (entry,) = journal.summary()
            assert (entry.settled, entry.in_flight, entry.uncertain) == (count, 0, 0)

    run_virtual(main)


def limit_requests(service: ScriptedService, rate: float, burst: int, fault: Fault) -> None:
    """Refuse requests of every kind beyond so many a second, as nginx does; what is refused is not counted."""
    excess, at = -1.0, -math.inf

    def next_fault(_: str) -> Fault | None:
        nonlocal excess, at
        now = service.clock()
        counted = max(0.0, excess - rate * (now - at) + 1.0) if at > 0 else 0.0
        if counted > burst:
            return fault
        excess, at = counted, now
        return None

    service.next_fault = next_fault  # type: ignore[method-assign]


@pytest.mark.slow
@each_row(
    ("rate", "burst", "fault"),
    [
        (1.0, 0, Fault(429)),
        (2.0, 0, Fault(429, headers=(("retry-after", "1"),))),
        (1.0, 5, Fault(429)),
        (1.0, 5, Fault(503)),
        (10.0, 20, Fault(429)),
    ],
)
def test_a_limit_of_requests_is_kept_close_to(rate: float, burst: int, fault: Fault) -> None:
    outcome, service = verify_limited(
        120, lambda service: limit_requests(service, rate, burst, fault)
    )
    assert outcome.error is None
    assert len(outcome.rows) == 120
    assert service.violations_and_double_payments == []
    assert outcome.seconds <= 1.3 * (124 - burst) / rate + 3
    assert sum(service.requests.values()) <= 6 * 124
    told = [
        re.match(r"waited (\d+) s for the service: \d+ requests answered", notice)
        for notice in outcome.notices
    ]
    waits = [float(found[1]) for found in told if found]
    assert len(waits) == (rate == 1.0), "only a long wait is told"
    assert all(wait <= outcome.seconds for wait in waits)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("share", [0.6, 0.3])
def test_a_service_that_refuses_a_share_of_all_requests_by_chance_is_not_taken_for_slow(
    share: float, seed: int
) -> None:
    chance = random.Random(seed)

    def refuse_some(service: ScriptedService) -> None:
        service.next_fault = lambda _: Fault(429) if chance.random() < share else None  # type: ignore[method-assign]

    outcome, service = verify_limited(300, refuse_some)
    assert outcome.error is None
    assert len(outcome.rows) == 300
    assert service.violations_and_double_payments == []
    assert outcome.seconds <= 30


def test_a_quota_that_cannot_be_read_for_a_rate_limit_is_read_again() -> None:
    outcome, service = verify_limited(5, lambda service: service.script("quota", [Fault(429)] * 20))
    assert outcome.error is None
    assert len(outcome.rows) == 5
    assert service.violations_and_double_payments == []
