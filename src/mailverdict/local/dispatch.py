"""Which session is opened next: the longest queue first, within every limit. Pure but for what it is told.

Limits hold at once over all exchanges, per exchange host and per IP address: many host names may
lead to one machine, and it is the machine that counts our sessions.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from ..model.settings import LocalSettings
from .plan import ExchangeSet
from .politeness import ExchangeState

__all__ = ["Assignment", "Dispatcher"]

WORTH_ANOTHER = 3  # windows that must wait before a further session on the same set is worth its greeting


@dataclass(frozen=True, eq=False)
class Assignment:
    """One session to open.

    Attributes
    ----------
    exchanges : ExchangeSet
        Whose lane it serves.
    rank : int
        Which lane.
    host : ExchangeState
        The exchange.
    address : str
        The IP address to dial.
    """

    exchanges: ExchangeSet
    rank: int
    host: ExchangeState
    address: str


class Dispatcher:
    """Hands out sessions within the limits.

    Parameters
    ----------
    settings : LocalSettings
        The limits.
    """

    def __init__(self, settings: LocalSettings) -> None:
        self.settings = settings
        self.order = itertools.count()
        self.ready: list[tuple[int, int, ExchangeSet]] = []
        self.sleeping: list[tuple[float, int, ExchangeSet]] = []
        self.blocked: defaultdict[str, list[ExchangeSet]] = defaultdict(list)
        self.unresolved: list[ExchangeState] = []
        self.active = 0
        self.by_address: Counter[str] = Counter()
        self.starting: Counter[int] = Counter()

    def offer(self, exchanges: ExchangeSet) -> None:
        """Hold a set ready if it has anything worth a session."""
        if not exchanges.is_queued and self.is_worth_a_session(exchanges):
            exchanges.is_queued = True
            heapq.heappush(self.ready, (-exchanges.waiting(), next(self.order), exchanges))

    def is_worth_a_session(self, exchanges: ExchangeSet) -> bool:
        """One session serves any number; a further one only pays for several windows."""
        waiting = exchanges.waiting()
        if not exchanges.active:
            return waiting > 0
        is_starting = self.starting[id(exchanges)] > 0
        return not is_starting and waiting > WORTH_ANOTHER * self.settings.refusal_budget

    def assignments(self, now: float) -> Iterator[Assignment]:
        """Everything that can be opened now, longest queue first."""
        self.wake(now)
        while self.ready and self.active < self.settings.max_sessions:
            _, _, exchanges = heapq.heappop(self.ready)
            exchanges.is_queued = False
            found = self.assign(exchanges, now)
            if found is not None:
                self.begin(found)
                yield found

    def assign(self, exchanges: ExchangeSet, now: float) -> Assignment | None:
        """Find a host and address for the set's next lane, or note what it waits for."""
        rank = exchanges.next_lane()
        if rank is None:
            return None
        hosts = sorted(exchanges.hosts_for(rank), key=lambda host: host.active)
        for host in hosts:
            address = self.free_address(host, now)
            if address is not None:
                return Assignment(exchanges, rank, host, address)
        for host in hosts:
            self.note_blocked(exchanges, host, now)
        return None

    def free_address(self, host: ExchangeState, now: float) -> str | None:
        """The least busy address of a host that may be dialled now."""
        if host.addresses is None or host.not_before > now or host.active >= host.limit:
            return None
        most = self.settings.max_sessions_per_exchange
        free = [address for address in host.open_addresses() if self.by_address[address] < most]
        return min(free, key=self.by_address.__getitem__, default=None)

    def note_blocked(self, exchanges: ExchangeSet, host: ExchangeState, now: float) -> None:
        """Remember what would make the set ready again."""
        if host.addresses is None:
            self.unresolved.append(host)
            self.blocked[host.host].append(exchanges)
        elif host.not_before > now:
            heapq.heappush(self.sleeping, (host.not_before, next(self.order), exchanges))
        else:
            for address in host.open_addresses():
                self.blocked[address].append(exchanges)

    def take_unresolved(self) -> list[ExchangeState]:
        """Hosts whose addresses are wanted, each once."""
        wanted = list({id(host): host for host in self.unresolved}.values())
        self.unresolved = []
        return wanted

    def begin(self, found: Assignment) -> None:
        """Count a session."""
        self.active += 1
        self.by_address[found.address] += 1
        self.starting[id(found.exchanges)] += 1
        found.host.active += 1
        found.exchanges.active += 1

    def drew(self, found: Assignment) -> None:
        """A session has drawn its first recipients: whether another is worth it can be told now."""
        if self.starting[id(found.exchanges)]:
            self.starting[id(found.exchanges)] -= 1
            self.offer(found.exchanges)

    def end(self, found: Assignment, *, has_drawn: bool) -> None:
        """Count a session out and wake whoever waited for its place."""
        if not has_drawn:
            self.starting[id(found.exchanges)] -= 1
        self.active -= 1
        self.by_address[found.address] -= 1
        found.host.active -= 1
        found.exchanges.active -= 1
        self.unblock(found.address)
        self.offer(found.exchanges)

    def unblock(self, name: str) -> None:
        """Offer the sets that waited for an address or for a host's look-up."""
        for exchanges in self.blocked.pop(name, []):
            self.offer(exchanges)

    def sleep_until(self, when: float, exchanges: ExchangeSet) -> None:
        """Offer a set again at a moment."""
        heapq.heappush(self.sleeping, (when, next(self.order), exchanges))

    def wake(self, now: float) -> None:
        """Offer the sets whose moment has come."""
        while self.sleeping and self.sleeping[0][0] <= now:
            self.offer(heapq.heappop(self.sleeping)[2])

    def next_moment(self) -> float | None:
        """When the next sleeper wakes; None: nobody sleeps."""
        return self.sleeping[0][0] if self.sleeping else None
