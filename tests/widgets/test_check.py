"""Rates, times and endings in words."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import pytest

from mailverdict import Quota
from mailverdict.runs.plan import plan_run
from mailverdict.runs.progress import Progress
from mailverdict.widgets.check import (
    Rate,
    describe_end,
    describe_plan,
    describe_progress,
    next_day,
    slow_text,
)
from mailverdict.widgets.steps import Planned


class Ticks:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def rate_after(*readings: tuple[float, int], from_journal: int = 0) -> Rate:
    clock = Ticks()
    rate = Rate(clock)
    for clock.now, settled in readings:
        rate.add(Progress(total=1_000, settled=settled, from_journal=from_journal))
    return rate


def test_the_rate_is_that_of_the_last_part_and_without_the_journal():
    assert rate_after((0, 0), (10, 100)).per_second() == 10
    assert rate_after((0, 500), (10, 600), from_journal=500).per_second() == 10
    assert rate_after((0, 0), (10, 900), (41, 931), (50, 940)).per_second() == 1
    assert rate_after((0, 0)).per_second() is None
    assert rate_after((0, 0), (2, 100)).per_second() is None


def test_the_time_left_is_not_less_than_a_limit_says():
    assert rate_after((0, 0), (10, 100)).seconds_left(Progress(total=1_000, settled=100)) == 90
    slow, fast = (Progress(total=1_000, settled=100, seconds_left=left) for left in (500.0, 5.0))
    assert rate_after((0, 0), (10, 100)).seconds_left(slow) == 500
    assert rate_after((0, 0), (10, 100)).seconds_left(fast) == 90


def test_no_time_is_named_before_a_rate_is_known():
    """A run of a moment ago may name minutes while it is nearly over."""
    assert Rate().seconds_left(Progress(total=1_000, settled=940, seconds_left=720)) is None
    assert (
        rate_after((0, 0), (2, 900)).seconds_left(
            Progress(total=1_000, settled=900, seconds_left=720)
        )
        is None
    )


def test_the_time_left_goes_down_and_is_corrected_once_while_readings_go_up_and_down():
    clock = Ticks()
    rate, left, settled = Rate(clock), [], 0
    for clock.now in range(60):
        settled += (7, 13, 10, 12, 8)[int(clock.now) % 5]
        progress = Progress(total=1_000, settled=settled)
        rate.add(progress)
        left.append(rate.seconds_left(progress))
    known = [each for each in left if each is not None]
    steps = [later - earlier for earlier, later in itertools.pairwise(known)]
    assert sum(abs(step + 1) > 0.001 for step in steps) <= 1, "it counts down second by second"
    assert 35 < known[-1] < 45


def test_what_is_slow_is_named():
    quick = rate_after((0, 0), (10, 100))
    assert slow_text(Progress(total=1_000, settled=100), quick) == ""
    waiting = Progress(total=1_000, settled=988, message="12 greylisted, asked again in 280 s")
    assert (
        slow_text(waiting, quick)
        == "12 addresses wait: the mail servers ask us to come again in about 5 minutes."
    )
    tail = rate_after((0, 0), (30, 940), (61, 941), (90, 942))
    assert slow_text(Progress(total=1_000, settled=942), tail) == (
        "The last 58 addresses are at servers that answer slowly."
    )


def test_progress_has_percent_rate_and_time_left():
    shown = describe_progress(
        Progress(total=1_000, settled=100, quota=Quota(1_000, 1, 999)),
        rate_after((0, 0), (10, 100)),
    )
    assert (shown["percent"], shown["label"]) == ("10.0%", "100 of 1,000 different entries checked")
    assert (shown["rate"], shown["left"]) == ("10 a second", "about 2 minutes left")
    assert shown["quota"] == "999 of 1,000 addresses of quota left today"


@pytest.mark.parametrize(
    ("counts", "rate", "cost"),
    [
        ({"quota": None}, None, "Costs nothing: this computer asks."),
        (
            {"quota": Quota(100, 0, 100)},
            1.0,
            "on 3 days: come back after 00:00 UTC each day and press Resume.",
        ),
        ({"quota": Quota(0, 0, 0)}, None, "This service allows no addresses."),
        (
            {"quota": Quota(100, 0, 100), "known": 250},
            None,
            "Costs nothing more. Quota: 100 of 100 addresses left today.",
        ),
    ],
)
def test_the_cost_is_said_in_addresses_and_days(counts, rate, cost):
    plan = plan_run(rows=260, missing=5, malformed=5, unique=250, **counts)
    described = describe_plan(Planned(plan, 0, None), rate)
    assert described["cost"].endswith(cost)
    assert described["time"] == ("Takes about 2 minutes today." if rate else "")


@pytest.mark.parametrize(
    ("progress", "can_resume", "text", "kind"),
    [
        (Progress(state="done", total=1, settled=1), True, "", "done"),
        (
            Progress(state="cancelled", total=2, settled=1),
            False,
            "Press Start again to check the whole list.",
            "warned",
        ),
        (
            Progress(state="stopped", total=2, settled=1),
            True,
            "The service did not take or answer 1 address. What is checked so far is kept. Press Resume to go on.",
            "warned",
        ),
        (
            Progress(state="failed", message="it broke"),
            True,
            "It broke. What is checked so far is kept.",
            "failed",
        ),
    ],
)
def test_the_end_of_a_run_says_what_to_do_next(progress, can_resume, text, kind):
    said, found = describe_end(progress, [], can_resume=can_resume)
    assert text in said
    assert found == kind


def test_a_limit_that_is_reached_is_no_refusal():
    said, _ = describe_end(
        Progress(state="stopped", total=2, settled=1), [], can_resume=True, has_limit=True
    )
    assert said == "Stopped as planned. 1 address left to check. Press Resume to go on."


def test_the_next_day_begins_at_midnight_utc():
    assert next_day(datetime(2026, 12, 31, 23, 59, tzinfo=UTC)) == datetime(2027, 1, 1, tzinfo=UTC)
