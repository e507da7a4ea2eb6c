"""The per-client limiter: a bucket of addresses that fills again over time."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["RateLimiter"]

MOST_CLIENTS = 100_000  # buckets kept; a full one is the same as none


class RateLimiter:
    """Grants each client `burst` addresses at once and `rate` a second in the long run.

    Parameters
    ----------
    rate : float
        Addresses per second; 0: everything is granted.
    burst : int
        What a bucket holds.
    clock : callable
        Seconds, monotonic.

    Examples
    --------
    >>> limiter = RateLimiter(1.0, 100, clock=lambda: 0.0)
    >>> limiter.try_acquire("192.0.2.1", 100), limiter.try_acquire("192.0.2.1", 1)
    (True, False)
    """

    def __init__(self, rate: float, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self.burst = float(burst)
        self.clock = clock
        self.buckets: dict[str, tuple[float, float]] = {}

    def try_acquire(self, client: str, cost: int) -> bool:
        """Take `cost` addresses out of the client's bucket, if they are in it."""
        if not self.rate:
            return True
        now = self.clock()
        level = self.level(client, now)
        if level < cost:
            return False
        self.buckets[client] = (level - cost, now)
        if len(self.buckets) > MOST_CLIENTS:
            self.forget(now)
        return True

    def level(self, client: str, now: float) -> float:
        """What is in the bucket by now."""
        left, since = self.buckets.get(client, (self.burst, now))
        return min(self.burst, left + (now - since) * self.rate)

    def forget(self, now: float) -> None:
        """Drop the buckets that are full again, and the oldest if that is not half of them."""
        busy = {client: seen for client, seen in self.buckets.items() if self.level(client, now) < self.burst}
        newest = sorted(busy.items(), key=lambda item: item[1][1])[-MOST_CLIENTS // 2 :]
        self.buckets = dict(newest)
