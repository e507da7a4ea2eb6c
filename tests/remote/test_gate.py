"""The gate as arithmetic: against limiters that count requests, and against refusals by chance."""

import random

import pytest

from mailverdict.remote.pace import MAX_HOLD, Gate
from tests.doubles.tables import each_row


def pass_requests(gate: Gate, count: int, is_accepted, now: float = 0.0) -> tuple[float, int]:
    """Send requests one after another until so many were accepted; gives the time, and how many were refused."""
    accepted = refused = 0
    while accepted < count:
        now += gate.seconds_left(now) + 0.001
        gate.on_sent(now)
        if is_accepted(now):
            gate.on_accepted(now)
            accepted += 1
        else:
            gate.on_refused(now, now, 0.5)
            refused += 1
    return now, refused


class OncePer:
    """Grants a request if so many seconds have passed since the last one that was granted."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.at = seconds, float("-inf")

    def __call__(self, now: float) -> bool:
        if now - self.at < self.seconds:
            return False
        self.at = now
        return True


def test_it_is_open_until_a_request_is_refused() -> None:
    gate = Gate()
    for now in (0.0, 0.0, 5.0, 5.0, 60.0):
        assert gate.seconds_left(now) == 0.0
        gate.on_sent(now)
        gate.on_accepted(now)
    assert gate.gap == 0.0, "pauses between requests show no limit"


@each_row("seconds", [0.1, 1.0, 10.0])
def test_the_time_between_requests_is_learned(seconds: float) -> None:
    gate = Gate()
    limiter = OncePer(seconds)
    before, _ = pass_requests(gate, 10, limiter)
    after, refused = pass_requests(gate, 100, limiter, before)
    assert (after - before) / 100 <= 1.2 * seconds
    assert refused <= 300
    assert gate.gap == pytest.approx(seconds, rel=0.25)


def test_a_limit_that_was_lifted_is_forgotten() -> None:
    gate = Gate()
    now, _ = pass_requests(gate, 20, OncePer(1.0))
    after, _ = pass_requests(gate, 100, lambda _: True, now)
    assert after - now <= 10
    assert gate.gap == 0.0


@each_row("seed", range(5))
@each_row("share", [0.3, 0.5, 0.6])
def test_refusals_by_chance_are_not_taken_for_a_limit(share: float, seed: int) -> None:
    chance = random.Random(seed)
    seconds, _ = pass_requests(Gate(), 500, lambda _: chance.random() >= share)
    assert seconds / 500 <= 0.2


def test_refusals_in_a_row_wait_longer_each_time_up_to_a_limit() -> None:
    gate, now, waits = Gate(), 0.0, []
    for _ in range(30):
        gate.on_sent(now)
        gate.on_refused(now, now, 0.5)
        waits.append(gate.seconds_left(now))
        now += waits[-1]
    assert waits == sorted(waits, key=lambda each: round(each, 6))
    assert waits[-1] == pytest.approx(MAX_HOLD)


def test_requests_that_were_sent_together_count_once() -> None:
    gate = Gate()
    for _ in range(8):
        gate.on_refused(0.0, 0.5, 0.5)
    assert gate.refusals == 1
