"""Greylisted addresses between their first and their second try. Pure: the clock comes from outside."""

from __future__ import annotations

from collections.abc import Iterator

from .plan import ExchangeSet

__all__ = ["Parking"]

LONGEST = 900.0  # seconds; a hint beyond this is for another run
MARGIN = 0.5  # servers count from their own clock


class Parking:
    """Where greylisted addresses wait; each may wait once.

    Parameters
    ----------
    wait : float
        Seconds where the server gives no hint; 0: nobody waits.
    """

    def __init__(self, wait: float) -> None:
        self.wait = wait
        self.retried: set[int] = set()
        self.waiting: dict[tuple[float, int], tuple[ExchangeSet, list[int]]] = {}

    def __len__(self) -> int:
        """Addresses that wait."""
        return sum(len(positions) for _, positions in self.waiting.values())

    def park(self, exchanges: ExchangeSet, position: int, hint: float | None, now: float) -> bool:
        """Let an address wait; False where it has waited already, or would wait too long."""
        wait = hint or self.wait
        if not self.wait or position in self.retried or wait > LONGEST:
            return False
        self.retried.add(position)
        due = float(round(now + wait + MARGIN))  # by the second, so that a lane is asked in one go
        self.waiting.setdefault((due, id(exchanges)), (exchanges, []))[1].append(position)
        return True

    def next_moment(self) -> float | None:
        """When the first of them may be asked again."""
        return min((due for due, _ in self.waiting), default=None)

    def due(self, now: float) -> Iterator[tuple[ExchangeSet, list[int]]]:
        """Give, once, what has waited long enough."""
        for key in [key for key in self.waiting if key[0] <= now]:
            yield self.waiting.pop(key)
