"""The pace as arithmetic, and against simulated services in virtual time."""

import math
import random
from collections.abc import Callable
from typing import Any

import pytest

from mailverdict.backend import KnownPace
from mailverdict.errors import SettingsError
from mailverdict.remote.backend import RemoteBackend
from mailverdict.remote.pace import Pace, SentBatch
from tests.doubles.remote import URL
from tests.doubles.simulated_services import KINDS, Case, Limiter, measure, random_case
from tests.doubles.tables import each_row


def send(pace: Pace, now: float, left: int = 10_000) -> list[SentBatch]:
    """Send as long as the pace allows it."""
    sent = []
    while size := pace.allowance(now, left):
        sent.append(pace.on_sent(now, size))
    return sent


def report(
    times: int, tell: Callable[[SentBatch, float], None], sent: SentBatch, now: float
) -> None:
    for _ in range(times):
        tell(sent, now)


def test_it_begins_with_one_batch_and_then_sends_as_many_as_have_passed() -> None:
    pace, now, sizes = Pace(100_000), 0.0, []
    for _ in range(6):
        batches = send(pace, now)
        sizes.append(sum(batch.size for batch in batches))
        now += 2.0
        for batch in batches:
            report(10, pace.on_passed, batch, now)
    assert sizes == [100, 200, 300, 600, 1_200, 2_000]
    assert pace.speed(now) is None


def test_a_part_of_the_list_is_at_risk_while_the_limit_is_not_known() -> None:
    pace, now, most = Pace(3_000), 0.0, 0
    for _ in range(8):
        batches = send(pace, now)
        most = max(most, pace.outstanding)
        now += 2.0
        for batch in batches:
            report(10, pace.on_passed, batch, now)
    assert most == 1_500


@each_row(("spare", "at_risk"), [(-500, 100), (0, 100), (250, 250), (100_000, 300)])
def test_it_begins_with_three_batches_if_the_quota_covers_their_refusal(
    spare: int, at_risk: int
) -> None:
    pace = Pace(5_000)
    pace.on_quota(spare)
    assert sum(batch.size for batch in send(pace, 0.0)) == at_risk
    pace.on_quota(100_000)
    assert send(pace, 0.1) == [], "what is at risk is not raised later"


def test_after_a_refusal_only_a_trial_is_sent_and_the_next_waits_longer_each_time() -> None:
    pace, now = Pace(1_000), 0.0
    (first,) = send(pace, now)
    now += 2.0
    pace.on_refused(first, now)
    waits = []
    for _ in range(6):
        (trial,) = send(pace, now)
        assert trial.is_trial
        assert trial.size == 5
        assert pace.next_time(now, 900) == math.inf, "its outcome is awaited"
        now += 2.0
        pace.on_refused(trial, now)
        waits.append(pace.next_time(now, 900) - now)
        now += waits[-1]
    assert waits == sorted(waits)
    assert waits[-1] > 2 * waits[0]
    assert pace.speed(now) == 0.0


def test_refusals_of_batches_sent_before_a_decrease_decrease_no_further() -> None:
    pace, now = Pace(100_000), 0.0
    (first,) = send(pace, now)
    report(10, pace.on_passed, first, 2.0)
    old, other = send(pace, 2.0)
    pace.on_refused(old, 4.0)
    (trial,) = send(pace, 4.0)
    report(5, pace.on_passed, trial, 6.0)
    assert pace.blocked_at is None
    pace.on_refused(other, 6.1)
    assert pace.blocked_at is None


def test_the_limit_is_what_passes_between_two_refusals() -> None:
    pace, now = Pace(5_000), 0.0
    limiter, pending = Limiter(20, 200), []
    while now < 120:
        pending.extend(
            (now + 2.0, batch, limiter.grant(now, batch.size)) for batch in send(pace, now)
        )
        now = round(now + 0.25, 2)
        for _, batch, granted in [each for each in pending if each[0] <= now]:
            report(batch.size - granted, pace.on_refused, batch, now)
            report(granted, pace.on_passed, batch, now)
        pending = [each for each in pending if each[0] > now]
    assert pace.limit == pytest.approx(20, rel=0.2)


def test_what_is_known_of_a_service_is_where_the_next_run_begins() -> None:
    limited = Pace(5_000, known=Pace(1_000, limit=20.0).known_pace(1_000.0))
    assert next(batch.size for batch in send(limited, 1_100.0)) == 18
    free = Pace(5_000, known=Pace(1_000, window=1_600.0).known_pace(1_000.0))
    assert sum(batch.size for batch in send(free, 1_100.0)) == 1_600
    old = Pace(5_000, known=Pace(1_000, window=1_600.0).known_pace(1_000.0))
    assert sum(batch.size for batch in send(old, 1_000.0 + 30 * 86_400)) == 100


def test_status_429_waits_as_long_as_the_service_asks() -> None:
    pace = Pace(1_000)
    assert pace.allowance(0.0, 500) == 100
    pace.on_limited(0.0, 100, 7.0)
    assert pace.allowance(6.9, 500) == 0
    assert pace.next_time(6.9, 500) == 7.0
    assert pace.speed(6.9) == 0.0
    assert pace.allowance(7.0, 500) == 100


def test_status_429_again_makes_the_batch_smaller_and_the_wait_longer() -> None:
    pace, now, sizes, waits = Pace(1_000), 0.0, [], []
    for _ in range(5):
        sizes.append(pace.allowance(now, 500))
        pace.on_limited(now, sizes[-1], None)
        waits.append(round(pace.next_time(now, 500) - now, 2))
        now += waits[-1]
    assert sizes == [100, 50, 25, 12, 6]
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0]
    assert pace.blocked_at is None, "nothing was paid for: no trial is needed"


def test_a_refused_reading_of_the_quota_says_nothing_about_the_size() -> None:
    pace = Pace(1_000)
    assert pace.allowance(0.0, 500) == 100
    for now in (0.0, 1.0):
        pace.on_limited(now, 0, None)
    assert pace.next_time(1.0, 500) == 3.0
    assert pace.allowance(3.0, 500) == 100
    assert pace.limit is None


def test_a_limit_that_answers_429_is_estimated_by_what_was_accepted() -> None:
    pace, now, limiter = Pace(5_000), 0.0, Limiter(20, 100, is_whole=True)
    while now < 200:
        if size := pace.allowance(now, 5_000):
            if limiter.grant(now, size):
                report(min(size, 10), pace.on_passed, pace.on_sent(now, size), now)
            else:
                pace.on_limited(now, size, None)
        now = round(now + 0.25, 2)
    assert pace.limit == pytest.approx(20, rel=0.3)


@each_row("pace", [0, -1, math.inf, math.nan, True, "fast", [5]])
def test_a_pace_that_cannot_work_is_refused(pace: Any) -> None:
    with pytest.raises(SettingsError, match="pace="):
        RemoteBackend(URL, pace=pace)


def test_ask_again_is_true_or_false() -> None:
    with pytest.raises(SettingsError, match="ask_again=2"):
        RemoteBackend(URL, ask_again=2)  # type: ignore[arg-type]


def test_an_address_at_its_last_chance_is_sent_at_a_slow_service_too() -> None:
    pace = Pace(1_000, known=KnownPace(0.02, 2.0, 0.0))
    (first,) = send(pace, 100.0)
    pace.on_refused(first, 102.0)
    (trial,) = send(pace, 200.0)
    report(trial.size, pace.on_passed, trial, 202.0)
    assert any(pace.allowance(float(now), 5, is_last_chance=True) for now in range(203, 1_000))


def test_as_many_are_sent_at_their_last_chance_as_twice_the_largest_batch_that_has_passed() -> None:
    pace = Pace(1_000)
    (first,) = send(pace, 0.0)
    pace.on_refused(first, 2.0)
    report(first.open, pace.on_abandoned, first, 2.0)
    (trial,) = send(pace, 3.0)
    report(trial.size, pace.on_passed, trial, 5.0)
    for size in (7, 2):  # a small batch does not lower what a larger one has shown
        assert pace.allowance(5.0, size) == size
        report(size, pace.on_passed, pace.on_sent(5.0, size), 6.0)
    assert pace.allowance(1_000.0, 100, is_last_chance=True) == 2 * 7


def test_a_fixed_pace_is_kept_whatever_is_refused() -> None:
    pace, sent, now = Pace(1_000, fixed=20.0), 0, 0.0
    while now < 10:
        while size := pace.allowance(now, 1_000):
            pace.on_sent(now, size)
            sent += size
        now = pace.next_time(now, 1_000)
    assert sent == 200


def check_simulated(kind: str, max_size: int, seed: int = 7) -> None:
    chance = random.Random(seed)
    case = next(
        case
        for case in iter(lambda: random_case(chance), None)
        if case.kind == kind and case.size < max_size
    )
    result = measure(case, seed)
    assert result.pending == 0
    # When a window begins anew cannot be known: an address at its last chance may be sent into one that is used up.
    assert result.lost <= (case.size / 100 if kind == "fixed window" else 0)
    assert result.ratio <= 4


@pytest.mark.slow
@each_row("kind", ["bucket by batch", "status 429"])
def test_a_simulated_service_loses_nothing_within_four_times_the_ideal(kind: str) -> None:
    check_simulated(kind, 700)


@pytest.mark.slow
@each_row("seed", [7, 8])
@each_row("kind", KINDS)
def test_every_kind_of_simulated_service_loses_nothing_but_to_windows(kind: str, seed: int) -> None:
    check_simulated(kind, 1_500, seed)


@pytest.mark.slow
def test_throttled_addresses_are_asked_again_when_the_queue_has_room() -> None:
    case = Case("full queue", 150, Limiter(), speed=5.0, queue=30.0)
    result = measure(case, 7)
    assert (result.lost, result.pending) == (0, 0)
