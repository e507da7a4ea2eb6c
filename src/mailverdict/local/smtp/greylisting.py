"""Greylisted addresses and probes between their first and second attempt. Pure: the clock is a parameter."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from .probes import Probe
from .queues import ExchangeSet

LONGEST = 900.0  # seconds; a longer wait is left to another run
MARGIN = 0.5  # seconds, added because servers measure the wait with their own clock


@dataclass(slots=True)
class RetryBatch:
    """Addresses and probes of one exchange set that are due together."""

    exchanges: ExchangeSet
    positions: list[int] = field(default_factory=list)
    probes: list[Probe] = field(default_factory=list)


class RetrySchedule:
    """Schedules the second attempts of greylisted addresses and probes, one each."""

    def __init__(self, wait: float) -> None:
        self.wait = wait  # seconds where the server names no time; 0: no second attempt
        self.retried: set[int] = set()
        self.retried_probes: set[Probe] = set()
        self.batches: dict[tuple[float, int], RetryBatch] = {}
        self.times: list[tuple[float, int]] = []
        self.size = 0

    def __len__(self) -> int:
        """Addresses that wait."""
        return self.size

    def add(self, exchanges: ExchangeSet, position: int, hint: float | None, now: float) -> bool:
        """Schedule an address; False if it was retried before or would wait too long. `hint` is the server's wait."""
        if position in self.retried or not self.is_short_enough(hint):
            return False
        self.retried.add(position)
        self.batch_for(exchanges, hint, now).positions.append(position)
        self.size += 1
        return True

    def add_probe(self, exchanges: ExchangeSet, probe: Probe, hint: float | None, now: float) -> bool:
        """Schedule a probe; as `add`."""
        if probe in self.retried_probes or not self.is_short_enough(hint):
            return False
        self.retried_probes.add(probe)
        self.batch_for(exchanges, hint, now).probes.append(probe)
        return True

    def is_short_enough(self, hint: float | None) -> bool:
        """Whether a second attempt is wanted, and soon enough for this run."""
        return self.wait > 0 and (hint or self.wait) <= LONGEST

    def batch_for(self, exchanges: ExchangeSet, hint: float | None, now: float) -> RetryBatch:
        """The batch of a set and a second, so that its addresses are asked together."""
        due = float(math.ceil(now + (hint or self.wait) + MARGIN))
        key = (due, id(exchanges))
        if key not in self.batches:
            self.batches[key] = RetryBatch(exchanges)
            heapq.heappush(self.times, key)
        return self.batches[key]

    def next_time(self) -> float | None:
        """When the first of them is due."""
        return self.times[0][0] if self.times else None

    def pop_due(self, now: float) -> Iterator[RetryBatch]:
        """Remove and return the batches that are due."""
        while self.times and self.times[0][0] <= now:
            batch = self.batches.pop(heapq.heappop(self.times))
            self.size -= len(batch.positions)
            yield batch
