"""Whose jobs start next: fair shares, pace, and the age of the oldest."""

import pytest

from mailverdict.service.jobs import waiting as module
from mailverdict.service.jobs.waiting import WaitingJobs
from mailverdict.service.limiter import RateLimiter
from tests.doubles.clock import Clock


def waiting_of(rate: float = 0.0, burst: int = 100, clock: Clock | None = None, **jobs: int) -> WaitingJobs:
    waiting = WaitingJobs(RateLimiter(rate, burst, clock=clock or Clock()))
    for client, count in jobs.items():
        waiting.add(client, 0.0, count)
    return waiting


@pytest.mark.parametrize(
    ("jobs", "room", "shares"),
    [
        ({"a": 3}, 10, {"a": 3}),
        ({"a": 30}, 10, {"a": 10}),
        ({"a": 30, "b": 2}, 10, {"b": 2, "a": 8}),
        ({"a": 30, "b": 30, "c": 30}, 10, {"a": 3, "b": 3, "c": 4}),
        ({"a": 5, "b": 5, "c": 5}, 2, {"a": 1, "b": 1}),
        ({}, 10, {}),
    ],
)
def test_room_is_shared_equally_as_far_as_there_are_jobs(jobs: dict, room: int, shares: dict) -> None:
    assert waiting_of(**jobs).shares(room) == shares


def test_clients_that_found_no_room_come_first_the_next_time() -> None:
    waiting, served = waiting_of(a=3, b=3, c=3), []
    for _ in range(6):
        [client] = waiting.shares(1)
        waiting.start(client, 1)
        served.append(client)
    assert served == ["a", "b", "c", "a", "b", "c"]


def test_number_of_clients_started_together_is_bounded_and_all_have_their_turn() -> None:
    clients = [f"c{n}" for n in range(2 * module.CLIENTS_AT_ONCE)]
    waiting = waiting_of(**dict.fromkeys(clients, 1))
    started = []
    for _ in range(2):
        shares = waiting.shares(10_000)
        assert len(shares) == module.CLIENTS_AT_ONCE
        for client, count in shares.items():
            waiting.start(client, count)
        started += shares
    assert started == clients
    assert waiting.counts == waiting.groups == {}


def test_jobs_start_with_the_burst_and_go_on_at_the_rate() -> None:
    clock = Clock()
    waiting = waiting_of(50.0, 100, clock, a=1000)
    started = []
    for _ in range(4):
        started.append(waiting.shares(500).get("a", 0))
        waiting.start("a", started[-1])
        assert waiting.shares(500) == {}
        assert waiting.seconds_until_ready() == pytest.approx(1.0)
        clock.now += 1.0
    assert started == [100, 50, 50, 50]


def test_few_jobs_start_as_soon_as_there_are_tokens_for_all_of_them() -> None:
    clock = Clock()
    waiting = waiting_of(50.0, 100, clock, a=110)
    waiting.start("a", 100)
    assert waiting.seconds_until_ready() == pytest.approx(0.2)
    clock.now += waiting.seconds_until_ready()
    assert waiting.shares(500) == {"a": 10}


def test_rate_below_one_starts_jobs_one_by_one() -> None:
    clock = Clock()
    waiting = waiting_of(0.1, 100, clock, a=102)
    waiting.start("a", 100)
    assert waiting.seconds_until_ready() == pytest.approx(10.0)
    clock.now += 10.0
    assert waiting.shares(500) == {"a": 1}


def test_client_without_tokens_leaves_the_room_to_the_others() -> None:
    waiting = waiting_of(1.0, 100, Clock(), a=200)
    waiting.start("a", 100)
    waiting.add("b", 0.0, 60)
    assert waiting.shares(50) == {"b": 50}
    assert waiting.seconds_until_ready() == 0.0


def test_a_client_with_jobs_under_way_is_not_a_newcomer() -> None:
    waiting = waiting_of(a=200, b=10)
    waiting.start("a", 100)
    assert waiting.shares(50, newcomers_only=True) == {"b": 10}
    waiting.start("b", 4)
    assert waiting.shares(50, newcomers_only=True) == {}
    waiting.on_left(["b"] * 4)
    assert waiting.shares(50, newcomers_only=True) == {"b": 6}


def test_oldest_job_is_known_after_some_have_started_and_others_came_back() -> None:
    waiting = waiting_of()
    assert waiting.oldest() is None
    for created_at, count in ((10.2, 3), (10.9, 2), (20.0, 1), (30.0, 4)):
        waiting.add("a", created_at, count)
    waiting.add("b", 15.0, 1)
    assert waiting.oldest() == 10.2
    assert len(waiting.groups["a"]) == 3  # jobs of one second are one group
    waiting.start("a", 6)
    assert waiting.oldest() == 15.0
    waiting.start("b", 1)
    assert waiting.oldest() == 30.0
    waiting.add("a", 20.0, is_first=True)
    assert waiting.oldest() == 20.0
    waiting.start("a", 5)
    assert waiting.oldest() is None
