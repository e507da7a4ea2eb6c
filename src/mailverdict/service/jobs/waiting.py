"""`WaitingJobs`: whose jobs wait, since when, and which of them may start now.

The jobs themselves are in the store; here are their numbers by client, so that a long queue costs
neither memory nor a query over all of it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter

from ..limiter import RateLimiter

CLIENTS_AT_ONCE = 250  # whose jobs are started together; each costs a query
ROUNDING = 1e-6  # tokens; after exactly the time that a token needs, the sum may be short of it


@dataclass(slots=True)
class JobGroup:
    """Jobs of one client that were submitted within one second."""

    created_at: float  # seconds since the epoch
    count: int


class WaitingJobs:
    """The number of waiting jobs of each client, and the fair share of each in what starts next.

    `pace` limits how many jobs of one client are started. To make batches large enough to share SMTP
    sessions, a client's jobs start when the tokens of a second have collected, or enough for all of them.

    >>> waiting = WaitingJobs(RateLimiter(0.0, 100))
    >>> waiting.add("192.0.2.1", 0.0, 500)
    >>> waiting.add("192.0.2.2", 0.0, 10)
    >>> waiting.shares(100)
    {'192.0.2.2': 10, '192.0.2.1': 90}
    """

    def __init__(self, pace: RateLimiter) -> None:
        self.pace = pace
        self.start_tokens = max(1.0, min(pace.rate, pace.burst))  # see above
        # By client, the oldest group first; the client whose jobs were started longest ago comes first.
        self.groups: dict[str, deque[JobGroup]] = {}
        self.counts: dict[str, int] = {}
        self.started: Counter[str] = Counter()  # jobs under way

    def count(self, client: str) -> int:
        """The waiting jobs of a client."""
        return self.counts.get(client, 0)

    def add(self, client: str, created_at: float, count: int = 1, *, is_first: bool = False) -> None:
        """Count new jobs; `is_first` if they were submitted before the others of the client."""
        if not count:
            return
        groups = self.groups.setdefault(client, deque())
        self.counts[client] = self.count(client) + count
        nearest = groups[0 if is_first else -1] if groups else None
        if nearest is not None and int(nearest.created_at) == int(created_at):
            nearest.count += count
        elif is_first:
            groups.appendleft(JobGroup(created_at, count))
        else:
            groups.append(JobGroup(created_at, count))

    def start(self, client: str, count: int) -> None:
        """Remove jobs that are started, the oldest first; the client's next turn comes after the others'."""
        self.pace.charge(client, count)
        self.started[client] += count
        groups, left = self.groups.pop(client), self.counts.pop(client) - count
        while count:
            of_group = min(count, groups[0].count)
            groups[0].count -= of_group
            count -= of_group
            if not groups[0].count:
                groups.popleft()
        if left:
            self.groups[client], self.counts[client] = groups, left

    def on_left(self, clients: Iterable[str]) -> None:
        """Count out jobs that were under way."""
        self.started.subtract(clients)
        self.started = +self.started

    def shares(self, room: int, *, newcomers_only: bool = False) -> dict[str, int]:
        """How many jobs of which client to start: equal shares of `room`, as far as jobs and pace allow."""
        clients = (each for each in self.counts if not (newcomers_only and self.started[each]))
        ready = ((client, count) for client in clients if (count := self.ready(client)))
        chosen = sorted(islice(ready, min(room, CLIENTS_AT_ONCE)), key=itemgetter(1))
        shares = {}
        for i, (client, count) in enumerate(chosen):
            shares[client] = min(count, room // (len(chosen) - i))
            room -= shares[client]
        return shares

    def ready(self, client: str) -> int:
        """How many jobs of a client may start now."""
        count, tokens = self.counts[client], self.pace.tokens(client) + ROUNDING
        return int(min(count, tokens)) if tokens >= min(count, self.start_tokens) else 0

    def seconds_until_ready(self) -> float:
        """Seconds until some client's jobs may start; 0 if nothing waits."""
        return min(
            (self.pace.seconds_until(client, min(count, self.start_tokens)) for client, count in self.counts.items()),
            default=0.0,
        )

    def oldest(self) -> float | None:
        """When the job that waits longest was submitted, in seconds since the epoch."""
        return min((groups[0].created_at for groups in self.groups.values()), default=None)
