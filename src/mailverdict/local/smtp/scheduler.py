"""Which session is opened next: the runs in turn, the longest queue of a run first, within every limit.

Pure: it opens nothing itself. All runs of a backend share one scheduler, so that the limits hold for them together.

Limits apply at once over all exchanges, per exchange set, per exchange host and per IP address: many host
names may lead to one machine, and the machine counts the sessions.

A set that cannot be served waits for what it lacks: a host (its look-up, its back-off, a free session)
or an IP address. When that becomes free, the set with the longest queue is tried, and the next one only if there
is room left: however many sets wait, an event costs no more than the sessions it allows. The place is reserved for
that set, and a session ends early for a shorter queue of another run, so that no run waits until another is over.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ...model.settings import LocalSettings
from .politeness import ExchangeState
from .queues import ExchangeSet

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
    """Sets that wait for the same thing, each once: the runs in turn, and of a run the longest queue first."""

    by_run: OrderedDict[Any, list[tuple[int, int, ExchangeSet]]] = field(default_factory=OrderedDict)  # heaps
    members: set[int] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.members)

    def add(self, exchanges: ExchangeSet, order: int, *, has_turn: bool = False) -> None:
        if id(exchanges) not in self.members:
            self.members.add(id(exchanges))
            heapq.heappush(self.by_run.setdefault(exchanges.run, []), (-exchanges.waiting(), order, exchanges))
        if has_turn:  # it got nothing at its turn
            self.by_run.move_to_end(exchanges.run, last=False)

    def pop(self) -> ExchangeSet:
        run, heap = self.by_run.popitem(last=False)
        exchanges = heapq.heappop(heap)[2]
        self.members.discard(id(exchanges))
        if heap:
            self.by_run[run] = heap  # the other runs are first
        return exchanges

    def has_shorter(self, run: object, most: int) -> bool:
        """Whether another run waits that has no session here and at most `most` addresses."""
        heads = (heap[0][2] for other, heap in self.by_run.items() if other is not run)
        return any(not each.active and each.waiting() <= most for each in heads)


class Scheduler:
    """Assigns sessions within the limits."""

    def __init__(self, settings: LocalSettings) -> None:
        self.settings = settings
        self.order = itertools.count()
        self.ready = WaitingLine()
        self.lines: defaultdict[str, WaitingLine] = defaultdict(WaitingLine)
        self.freed: list[str] = []
        self.reserved: Counter[str] = Counter()  # places of hosts and addresses that ready sets waited for
        self.ending: set[str] = set()  # hosts and addresses of sessions that end early for another run
        self.backing_off: list[tuple[float, str]] = []
        self.unresolved: list[tuple[ExchangeState, Any]] = []
        self.resolving: set[str] = set()
        self.active = 0
        self.by_host: Counter[str] = Counter()
        self.by_address: Counter[str] = Counter()

    # --- what could be served --------------------------------------------------------------------

    def offer(self, exchanges: ExchangeSet, freed_by: str = "") -> bool:
        """Make a set ready if enough addresses wait; return whether it was made ready."""
        if exchanges.is_queued or not self.is_worth_a_session(exchanges):
            return False
        exchanges.is_queued, exchanges.freed_by = True, freed_by
        if freed_by:
            self.reserved[freed_by] += 1
        self.ready.add(exchanges, next(self.order))
        return True

    def is_worth_a_session(self, exchanges: ExchangeSet) -> bool:
        """Whether another session pays: the first one for anything, a further one for several windows."""
        waiting = 0 if exchanges.is_closed else exchanges.waiting()
        if not exchanges.active:
            return waiting > 0
        if exchanges.active >= self.settings.max_sessions_per_exchange:
            return False
        if exchanges.starting and not exchanges.is_answering:  # nothing is known of it, or the last session failed
            return False
        return waiting > WORTH_ANOTHER * self.settings.refusal_budget * (1 + exchanges.starting)

    def free(self, name: str) -> None:
        """A host or an address may have room: the sets that wait for it are tried next time."""
        if name in self.lines:
            self.freed.append(name)

    def offer_waiting(self) -> None:
        """Make ready the first set that waits for each freed host or address and still needs a session."""
        while self.freed:
            line = self.lines[name := self.freed.pop()]
            while line and not self.offer(line.pop(), name):
                pass
            if not line:
                del self.lines[name]

    # --- opening and ending -------------------------------------------------------------------------

    def assignments(self, now: float) -> Iterator[Assignment]:
        """What can be opened now, in order; a few at a time, since queues change meanwhile."""
        self.end_back_offs(now)
        self.offer_waiting()
        left = BATCH
        while left and self.has_more():
            exchanges = self.ready.pop()
            exchanges.is_queued, freed_by = False, exchanges.freed_by
            if freed_by:
                count_down(self.reserved, freed_by)
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
                names = self.missing_for(host, now, exchanges)
                if not names:
                    return Assignment(exchanges, mx_index, host, self.free_addresses(host, exchanges)[0]), lacking
                lacking += names
        for name in lacking:
            self.lines[name].add(exchanges, next(self.order), has_turn=name == exchanges.freed_by)
        return None, lacking

    def missing_for(self, host: ExchangeState, now: float, exchanges: ExchangeSet) -> list[str]:
        """What a session with a host must wait for; empty if it can be opened."""
        if host.addresses is None:
            return [self.look_up(host, exchanges.run)]
        if host.not_before > now:
            heapq.heappush(self.backing_off, (host.not_before, host.name))
            return [host.name]
        if self.by_host[host.name] + self.reserved_from(exchanges, host.name) >= host.limit:
            return [host.name]
        return [] if self.free_addresses(host, exchanges) else list(host.open_addresses())

    def reserved_from(self, exchanges: ExchangeSet, name: str) -> int:
        """The places that a set may not use; none if it waited itself: two such sets could wait for each other."""
        return 0 if exchanges.freed_by else self.reserved[name]

    def free_addresses(self, host: ExchangeState, exchanges: ExchangeSet) -> list[str]:
        """The addresses of a host that have room, the least busy first."""
        most = self.settings.max_sessions_per_exchange
        free = [a for a in host.open_addresses() if self.by_address[a] + self.reserved_from(exchanges, a) < most]
        return sorted(free, key=self.by_address.__getitem__)

    def look_up(self, host: ExchangeState, run: Any) -> str:
        """Request a look-up of a host's addresses, unless too many are under way; what to wait for."""
        if host.name not in self.resolving:
            if len(self.resolving) >= self.settings.dns_concurrency:
                return LOOK_UPS
            self.resolving.add(host.name)
            self.unresolved.append((host, run))
        return host.name

    def resolved(self, host: ExchangeState) -> None:
        """Free the sets that wait for a host's look-up, or for any look-up to end."""
        self.resolving.discard(host.name)
        self.free(host.name)
        self.free(LOOK_UPS)

    def pop_unresolved(self) -> list[tuple[ExchangeState, Any]]:
        """Remove and return the hosts to look up, each once, with the run that needs it."""
        wanted, self.unresolved = self.unresolved, []
        return wanted

    def begin(self, found: Assignment) -> None:
        """Count a session."""
        self.active += 1
        self.by_address[found.address] += 1
        self.by_host[found.host.name] += 1
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
        count_down(self.by_address, found.address)
        count_down(self.by_host, found.host.name)
        found.exchanges.active -= 1
        if not is_answered:
            found.exchanges.starting -= 1
            found.exchanges.is_answering = False
        for name in (found.address, found.host.name):
            self.ending.discard(name)
            self.free(name)
        self.offer_waiting()  # before the set itself
        self.offer(found.exchanges)

    def should_end(self, found: Assignment, asked: int) -> bool:
        """Whether a session that has `asked` addresses should end, since another run waits for its place.

        It should if that run has no more addresses than were asked, and fewer than are left in the queue.
        """
        most = min(asked, found.exchanges.waiting() - 1)
        for name in {found.address, found.host.name} - self.ending:
            if name in self.lines and self.lines[name].has_shorter(found.exchanges.run, most):
                self.ending.add(name)
                return True
        return False

    # --- waiting --------------------------------------------------------------------------------------

    def end_back_offs(self, now: float) -> None:
        """Free the hosts whose back-off is over."""
        while self.backing_off and self.backing_off[0][0] <= now:
            self.free(heapq.heappop(self.backing_off)[1])

    def next_time(self) -> float | None:
        """When the next back-off is over; None if there is none."""
        return self.backing_off[0][0] if self.backing_off else None


def count_down(counts: Counter[str], name: str) -> None:
    """Subtract one; without an entry for 0, since a service runs for months."""
    counts[name] -= 1
    if counts[name] <= 0:
        del counts[name]
