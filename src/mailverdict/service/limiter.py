"""`RateLimiter`: a token bucket of addresses for each client."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

SHORTEST_WAIT = 0.001  # seconds until tokens that were refused
CLIENT_LIMIT = 100_000  # buckets kept; a full bucket is the same as none


class RateLimiter:
    """Grants each client `burst` addresses at once and `rate` addresses per second in the long run.

    A rate of 0 grants everything.

    >>> limiter = RateLimiter(1.0, 100, clock=lambda: 0.0)
    >>> limiter.try_acquire("192.0.2.1", 100), limiter.try_acquire("192.0.2.1", 1)
    (True, False)
    """

    def __init__(
        self, rate: float, burst: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.rate = rate
        self.burst = float(burst)
        self.clock = clock
        self.buckets: dict[str, tuple[float, float]] = {}  # tokens, and when they were counted

    def try_acquire(self, client: str, cost: int) -> bool:
        """Take `cost` tokens out of the client's bucket if it has them."""
        if not self.rate:
            return True
        now = self.clock()
        tokens = self.tokens_at(client, now)
        if tokens < cost:
            return False
        self.buckets[client] = (tokens - cost, now)
        if len(self.buckets) > CLIENT_LIMIT:
            self.drop_buckets(now)
        return True

    def acquire(self, client: str, cost: int) -> float:
        """Take `cost` tokens, and return 0; or the seconds after which the bucket has them."""
        if self.try_acquire(client, cost):
            return 0.0
        missing = cost - self.tokens(client)
        return max(missing / self.rate, SHORTEST_WAIT)

    def tokens(self, client: str) -> float:
        """The tokens in the client's bucket at present."""
        if not self.rate:
            return math.inf
        return self.tokens_at(client, self.clock())

    def tokens_at(self, client: str, now: float) -> float:
        left, since = self.buckets.get(client, (self.burst, now))
        return min(self.burst, left + (now - since) * self.rate)

    def drop_buckets(self, now: float) -> None:
        """Drop full buckets, then the oldest until half of the limit is left."""
        used = []
        for client, bucket in self.buckets.items():
            if self.tokens_at(client, now) < self.burst:
                used.append((client, bucket))
        used.sort(key=lambda item: item[1][1])
        self.buckets = dict(used[-CLIENT_LIMIT // 2 :])
