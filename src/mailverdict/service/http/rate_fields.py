"""`RateFields`: the header fields that announce the limits to a client.

They follow draft-ietf-httpapi-ratelimit-headers-10 (September 2025) and RFC 9110 section 10.2.3
(Retry-After).
"""

from __future__ import annotations

import math

from ..jobs.store import Account
from ..limiter import RateLimiter
from ..settings import DAY, ServiceSettings

LARGEST = 999_999_999_999_999  # integer of a structured field (RFC 9651 section 3.3.1)
UNIT = 'qu="addresses"'  # the draft's default is requests


class RateFields:
    """Makes ``RateLimit-Policy`` and ``RateLimit`` for submissions and the quota.

    The policy ``daily`` is the quota. The policy ``burst`` is the token bucket of bulk jobs, less
    the client's jobs that wait for tokens; `limiter` is that of single checks if it counts bulk
    jobs, too. Its ``r`` is how many addresses would be verified without a wait, and ``t`` the
    seconds until the bucket is full.

    An `Account` has the moment for which the quota was read or debited. A reply that leaves after
    the day's end would else announce the old day's quota for the whole new one.
    """

    def __init__(self, settings: ServiceSettings, limiter: RateLimiter | None) -> None:
        self.settings = settings
        self.limiter = limiter
        self.rate = settings.rate_limit
        self.burst = float(settings.rate_burst)
        policies = [f'"daily";q={whole(settings.daily_limit)};w={DAY};{UNIT}']
        if self.rate:
            window = whole_seconds(self.burst / self.rate)
            policies.append(f'"burst";q={whole(self.burst)};w={window};{UNIT}')
        self.policy = ", ".join(policies)

    def headers(self, client: str, account: Account, *, has_daily: bool = True) -> dict[str, str]:
        """Both fields; the quota of the day only if the request asked for it or took some."""
        limits = []
        if has_daily:
            limits.append(self.daily(account))
        if self.rate:
            tokens = account.tokens
            if self.limiter is not None:
                tokens = self.limiter.tokens(client)
            seconds = whole_seconds((self.burst - tokens) / self.rate)
            limits.append(f'"burst";r={whole(max(tokens, 0))};t={seconds}')
        fields = {"ratelimit-policy": self.policy}
        if limits:
            fields["ratelimit"] = ", ".join(limits)
        return fields

    def quota_exceeded(self, account: Account, requested: int) -> dict[str, str]:
        """The fields of a refusal: the request is granted tomorrow, unless it exceeds the quota."""
        fields = {"ratelimit-policy": self.policy, "ratelimit": self.daily(account)}
        if requested <= self.settings.daily_limit:
            fields |= retry_after(self.settings.seconds_of_day_left(account.now))
        return fields

    def daily(self, account: Account) -> str:
        seconds = whole_seconds(self.settings.seconds_of_day_left(account.now))
        return f'"daily";r={whole(account.remaining)};t={seconds}'


def whole(value: float) -> int:
    """The integer part, within what a structured field can express."""
    return int(min(value, LARGEST))


def whole_seconds(value: float) -> int:
    """The next integer, within the same range."""
    return math.ceil(min(value, LARGEST))


def retry_after(seconds: float) -> dict[str, str]:
    """The header field ``Retry-After``, at least one second."""
    return {"retry-after": str(max(whole_seconds(seconds), 1))}
