"""The per-client limiter."""

import pytest

from mailverdict.service import limiter as module
from mailverdict.service.limiter import RateLimiter


class Hand:
    """A clock's hand that is moved."""

    at = 0.0

    def __call__(self) -> float:
        return self.at


def test_a_client_has_its_burst_and_then_its_rate() -> None:
    hand = Hand()
    limiter = RateLimiter(2.0, 100, clock=hand)
    assert limiter.try_acquire("a", 100)
    assert not limiter.try_acquire("a", 1)
    hand.at += 0.5
    assert limiter.try_acquire("a", 1)
    assert not limiter.try_acquire("a", 1)


def test_bucket_holds_no_more_than_the_burst() -> None:
    hand = Hand()
    limiter = RateLimiter(10.0, 100, clock=hand)
    limiter.try_acquire("a", 50)
    hand.at += 3600
    assert limiter.try_acquire("a", 100)
    assert not limiter.try_acquire("a", 1)


def test_refusal_costs_nothing() -> None:
    limiter = RateLimiter(1.0, 100, clock=Hand())
    limiter.try_acquire("a", 60)
    assert not limiter.try_acquire("a", 50)
    assert limiter.try_acquire("a", 40)


def test_clients_do_not_share() -> None:
    limiter = RateLimiter(1.0, 100, clock=Hand())
    limiter.try_acquire("a", 100)
    assert limiter.try_acquire("b", 100)


def test_zero_rate_grants_everything() -> None:
    limiter = RateLimiter(0.0, 100, clock=Hand())
    assert all(limiter.try_acquire("a", 100) for _ in range(50))
    assert limiter.buckets == {}


@pytest.mark.slow
def test_memory_is_bounded_however_many_clients_come() -> None:
    hand = Hand()
    limiter = RateLimiter(1.0, 100, clock=hand)
    for client in range(module.CLIENT_LIMIT + 2):
        hand.at += 0.001
        limiter.try_acquire(str(client), 100)
    assert len(limiter.buckets) <= module.CLIENT_LIMIT
    assert not limiter.try_acquire(str(module.CLIENT_LIMIT + 1), 100)  # the newest are remembered
