"""Greylisted addresses and probes between their first and their second try. Pure: the clock comes from outside."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from .queues import ExchangeSet

__all__ = ["RetryBatch", "RetrySchedule"]

LONGEST = 900.0  # seconds; a hint beyond this is for another run
MARGIN = 0.5  # seconds; servers count from their own clock


@dataclass(slots=True)
class RetryBatch:
    """What one exchange set is asked again at one moment.

    Attributes
    ----------
    exchanges : ExchangeSet
        Whom to ask.
    positions : list of int
        Addresses.
    probes : list of int
        Codes of domains whose random address was greylisted.
    """

    exchanges: ExchangeSet
    positions: list[int] = field(default_factory=list)
    probes: list[int] = field(default_factory=list)


class RetrySchedule:
    """Where greylisted addresses wait; each may wait once.

    Parameters
    ----------
    wait : float
        Seconds where the server gives no hint; 0: nobody waits.
    """

    def __init__(self, wait: float) -> None:
        self.wait = wait
        self.retried: set[int] = set()
        self.retried_probes: set[int] = set()
        self.waiting: dict[tuple[float, int], RetryBatch] = {}
        self.moments: list[tuple[float, int]] = []
        self.size = 0

    def __len__(self) -> int:
        """Addresses that wait."""
        return self.size

    def park(self, exchanges: ExchangeSet, position: int, hint: float | None, now: float) -> bool:
        """Let an address wait; False where it has waited already, or would wait too long."""
        if position in self.retried or not self.is_worth(hint):
            return False
        self.retried.add(position)
        self.parked(exchanges, hint, now).positions.append(position)
        self.size += 1
        return True

    def park_probe(self, exchanges: ExchangeSet, code: int, hint: float | None, now: float) -> bool:
        """Let the random address of a domain wait, as any other."""
        if code in self.retried_probes or not self.is_worth(hint):
            return False
        self.retried_probes.add(code)
        self.parked(exchanges, hint, now).probes.append(code)
        return True

    def is_worth(self, hint: float | None) -> bool:
        """Whether a wait is wanted at all, and short enough for this run."""
        return self.wait > 0 and (hint or self.wait) <= LONGEST

    def parked(self, exchanges: ExchangeSet, hint: float | None, now: float) -> RetryBatch:
        """Where to wait: by the second, so that a queue is asked in one go."""
        due = float(math.ceil(now + (hint or self.wait) + MARGIN))
        key = (due, id(exchanges))
        if key not in self.waiting:
            self.waiting[key] = RetryBatch(exchanges)
            heapq.heappush(self.moments, key)
        return self.waiting[key]

    def next_moment(self) -> float | None:
        """When the first of them may be asked again."""
        return self.moments[0][0] if self.moments else None

    def due(self, now: float) -> Iterator[RetryBatch]:
        """Give, once, what has waited long enough."""
        while self.moments and self.moments[0][0] <= now:
            ready = self.waiting.pop(heapq.heappop(self.moments))
            self.size -= len(ready.positions)
            yield ready
