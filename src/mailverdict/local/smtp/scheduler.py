"""Which session is opened next: the longest queue first, within every limit. Pure: it opens nothing itself.

Limits apply at once over all exchanges, per exchange set, per exchange host and per IP address: many host
names may lead to one machine, and the machine counts the sessions.

A set that cannot be served waits for what it lacks: a host (its look-up, its back-off, a free session)
or an IP address. When that becomes free, the set with the longest queue is tried, and the next one only if there
is room left: however many sets wait, an event costs no more than the sessions it allows.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from ...model.settings import LocalSettings
from .politeness import ExchangeState
from .queues import ExchangeSet

__all__ = ["Assignment", "Scheduler"]

BATCH = 32  # sets to look at before the sessions under way get their turn
LOOK_UPS = "look-ups"  # what a set waits for if too many look-ups are under way; not the name of a host or address
WORTH_ANOTHER = 3  # budgets of addresses; a further session on a set is opened only if more wait


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """One session to open."""

    exchanges: ExchangeSet
    mx_index: int  # of the queue that it serves
    host: ExchangeState
    address: str  # IP address


@dataclass(slots=True)
class WaitingLine:
    """Sets that wait for the same thing, each once, the longest queue first."""

    heap: list[tuple[int, int, ExchangeSet]] = field(default_factory=list)
    members: set[int] = field(default_factory=set)

    def add(self, exchanges: ExchangeSet, order: int) -> None:
        if id(exchanges) not in self.members:
            self.members.add(id(exchanges))
            heapq.heappush(self.heap, (-exchanges.waiting(), order, exchanges))

    def pop(self) -> ExchangeSet:
        exchanges = heapq.heappop(self.heap)[2]
        self.members.discard(id(exchanges))
        return exchanges


class Scheduler:
    """Assigns sessions within the limits."""

    def __init__(self, settings: LocalSettings) -> None:
        self.settings = settings
        self.order = itertools.count()
        self.ready: list[tuple[int, int, ExchangeSet, str]] = []
        self.lines: defaultdict[str, WaitingLine] = defaultdict(WaitingLine)
        self.freed: list[str] = []
        self.backing_off: list[tuple[float, str]] = []
        self.unresolved: list[ExchangeState] = []
        self.resolving: set[str] = set()
        self.active = 0
        self.by_address: Counter[str] = Counter()

    # --- what could be served --------------------------------------------------------------------

    def offer(self, exchanges: ExchangeSet, freed_by: str = "") -> bool:
        """Make a set ready if enough addresses wait; return whether it was made ready."""
        if exchanges.is_queued or not self.is_worth_a_session(exchanges):
            return False
        exchanges.is_queued = True
        heapq.heappush(self.ready, (-exchanges.waiting(), next(self.order), exchanges, freed_by))
        return True

    def is_worth_a_session(self, exchanges: ExchangeSet) -> bool:
        """Whether another session pays: the first one for anything, a further one for several windows."""
        waiting = exchanges.waiting()
        if not exchanges.active:
            return waiting > 0
        if exchanges.active >= self.settings.max_sessions_per_exchange:
            return False
        if exchanges.starting and not exchanges.is_answering:  # nothing is known of it, or the last session failed
            return False
        # A session under way may ask two budgets of addresses in its next window.
        host = exchanges.host_for(0)
        enough = max(WORTH_ANOTHER * self.settings.refusal_budget, 2 * host.plan.refusal_budget if host else 0)
        return waiting > enough * (1 + exchanges.starting)

    def free(self, name: str) -> None:
        """A host or an address may have room: the sets that wait for it are tried next time."""
        if name in self.lines:
            self.freed.append(name)

    def offer_waiting(self) -> None:
        """Make ready the first set that waits for each freed host or address and still needs a session."""
        while self.freed:
            line = self.lines[name := self.freed.pop()]
            while line.heap and not self.offer(line.pop(), name):
                pass
            if not line.heap:
                del self.lines[name]

    # --- opening and ending -------------------------------------------------------------------------

    def assignments(self, now: float) -> Iterator[Assignment]:
        """What can be opened now, longest queue first; a few at a time, since queues change meanwhile."""
        self.end_back_offs(now)
        self.offer_waiting()
        left = BATCH
        while left and self.has_more():
            _, _, exchanges, freed_by = heapq.heappop(self.ready)
            exchanges.is_queued = False
            found, lacking = self.assign(exchanges, now)
            if freed_by and freed_by not in lacking:
                self.free(freed_by)  # there may be room for one more
            if found is not None:
                self.begin(found)
                yield found
                self.offer(exchanges)
            self.offer_waiting()
            left -= 1

    def has_more(self) -> bool:
        """Whether there is more that might be opened at once."""
        return bool(self.ready) and self.active < self.settings.max_sessions

    def assign(self, exchanges: ExchangeSet, now: float) -> tuple[Assignment | None, list[str]]:
        """Find a queue with a host and address for it, else let the set wait for what all of them lack."""
        lacking: list[str] = []
        if self.is_worth_a_session(exchanges):
            for mx_index, host in exchanges.servable():
                names = self.missing_for(host, now)
                if not names:
                    return Assignment(exchanges, mx_index, host, self.free_addresses(host)[0]), lacking
                lacking += names
        for name in lacking:
            self.lines[name].add(exchanges, next(self.order))
        return None, lacking

    def missing_for(self, host: ExchangeState, now: float) -> list[str]:
        """What a session with a host must wait for; empty if it can be opened."""
        if host.addresses is None:
            return [self.look_up(host)]
        if host.not_before > now:
            heapq.heappush(self.backing_off, (host.not_before, host.host))
            return [host.host]
        if host.active >= host.limit:
            return [host.host]
        return [] if self.free_addresses(host) else list(host.open_addresses())

    def free_addresses(self, host: ExchangeState) -> list[str]:
        """The addresses of a host that have room, the least busy first."""
        most = self.settings.max_sessions_per_exchange
        free = [address for address in host.open_addresses() if self.by_address[address] < most]
        return sorted(free, key=self.by_address.__getitem__)

    def look_up(self, host: ExchangeState) -> str:
        """Request a look-up of a host's addresses, unless too many are under way; what to wait for."""
        if host.host not in self.resolving:
            if len(self.resolving) >= self.settings.dns_concurrency:
                return LOOK_UPS
            self.resolving.add(host.host)
            self.unresolved.append(host)
        return host.host

    def resolved(self, host: ExchangeState) -> None:
        """Free the sets that wait for a host's look-up, or for any look-up to end."""
        self.resolving.discard(host.host)
        self.free(host.host)
        self.free(LOOK_UPS)

    def pop_unresolved(self) -> list[ExchangeState]:
        """Remove and return the hosts to look up, each once."""
        wanted, self.unresolved = self.unresolved, []
        return wanted

    def begin(self, found: Assignment) -> None:
        """Count a session."""
        self.active += 1
        self.by_address[found.address] += 1
        found.host.active += 1
        found.exchanges.active += 1
        found.exchanges.starting += 1

    def on_first_answer(self, found: Assignment) -> None:
        """A session got its first answer: another session may be opened."""
        found.exchanges.starting -= 1
        found.exchanges.is_answering = True
        self.offer(found.exchanges)

    def end(self, found: Assignment, *, is_answered: bool) -> None:
        """Count a session out; the sets that wait for its place are tried next."""
        self.active -= 1
        self.by_address[found.address] -= 1
        found.host.active -= 1
        found.exchanges.active -= 1
        if not is_answered:
            found.exchanges.starting -= 1
            found.exchanges.is_answering = False
        self.free(found.address)
        self.free(found.host.host)
        self.offer(found.exchanges)

    # --- waiting --------------------------------------------------------------------------------------

    def end_back_offs(self, now: float) -> None:
        """Free the hosts whose back-off is over."""
        while self.backing_off and self.backing_off[0][0] <= now:
            self.free(heapq.heappop(self.backing_off)[1])

    def next_time(self) -> float | None:
        """When the next back-off is over; None if there is none."""
        return self.backing_off[0][0] if self.backing_off else None
