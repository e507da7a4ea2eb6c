"""Which addresses are asked of which exchanges: one queue per exchange of an exchange set. Pure.

Thousands of domains share a few exchanges, so queues belong to a set of exchanges and not to a domain. They hold
positions in the batch, no text. Each set has a queue per exchange, by preference: queue 0 is served by the first
exchange that is not closed, queue 1 by the first one after the best, and so on. An address that got no answer
about itself moves to the queue after the exchange that was asked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..batch import Positions
from .politeness import ExchangeState
from .probes import Probe


@dataclass(slots=True)
class PreferenceQueue:
    """Positions that wait to be asked."""

    blocks: deque[Positions] = field(default_factory=deque)  # of one domain each
    returned: deque[int] = field(default_factory=deque)  # positions that were drawn before; they go first
    size: int = 0  # positions in both
    probes: list[Probe] = field(default_factory=list)  # that are due at the exchange of this queue

    def __len__(self) -> int:
        return self.size

    def add(self, positions: Positions) -> None:
        """Queue a block."""
        if len(positions):
            self.blocks.append(positions)
            self.size += len(positions)

    def put_back(self, positions: Iterable[int]) -> None:
        """Put positions first, in their order."""
        given = list(positions)
        self.returned.extendleft(reversed(given))
        self.size += len(given)

    def append(self, position: int) -> None:
        """Add an address from another queue, behind those that came before it."""
        self.returned.append(position)
        self.size += 1

    def draw(self, count: int) -> list[int]:
        """Remove and return up to `count` positions."""
        drawn = [self.returned.popleft() for _ in range(min(count, len(self.returned)))]
        while len(drawn) < count and self.blocks:
            block, rest = self.blocks.popleft(), count - len(drawn)
            drawn += block[:rest].tolist()
            if len(block) > rest:
                self.blocks.appendleft(block[rest:])
        self.size -= len(drawn)
        return drawn

    def drain(self) -> list[int]:
        """Remove and return everything."""
        return self.draw(self.size)


@dataclass(slots=True, eq=False)
class ExchangeSet:
    """A distinct set of exchanges, and the addresses that wait for it."""

    # By preference; equal ones in a random order for each set, to spread the load (RFC 5321 section 5.1).
    hosts: list[ExchangeState]
    most_attempts: int  # exchanges to try for one address; those without an address to contact do not count
    queues: list[PreferenceQueue] = field(default_factory=list)  # one per host
    active: int = 0  # sessions under way
    starting: int = 0  # those of them without an answer yet
    is_answering: bool = False  # the last session that got an answer, or ended without one, got one
    run: Any = None  # the engine that it belongs to
    is_closed: bool = False  # its run has ended: no session is opened for it any more
    is_queued: bool = False  # the scheduler has it among the ready ones
    freed_by: str = ""  # the host or address whose free place made it ready
    silent_for: float = 0.0  # seconds of sessions since the last answer

    def __post_init__(self) -> None:
        """Begin with empty queues."""
        self.queues = self.queues or [PreferenceQueue() for _ in self.hosts]

    def waiting(self) -> int:
        """Addresses and probes that wait."""
        return sum([queue.size + len(queue.probes) for queue in self.queues])

    def add(self, positions: Positions) -> None:
        """Queue addresses for the best exchange."""
        self.queues[0].add(positions)

    def host_for(self, mx_index: int) -> ExchangeState | None:
        """The exchange that serves a queue: the first one from `mx_index` on that is not closed."""
        tried = 0
        for index, host in enumerate(self.hosts):
            if tried >= self.most_attempts:
                return None
            if index >= mx_index and host.closed is None:
                return host
            tried += not host.has_no_address
        return None

    def servable(self) -> Iterator[tuple[int, ExchangeState]]:
        """Queues that are not empty and have an exchange left, with that exchange."""
        for mx_index, queue in enumerate(self.queues):
            if (queue.size or queue.probes) and (host := self.host_for(mx_index)) is not None:
                yield mx_index, host

    def add_probe(self, probe: Probe) -> None:
        """Queue a probe for the exchange whose answers it explains."""
        mx_index = next(index for index, host in enumerate(self.hosts) if host.name == probe.host)
        self.queues[mx_index].probes.append(probe)

    def probes_at(self, host: ExchangeState) -> list[Probe]:
        """The probes that are due at an exchange."""
        return self.queues[self.hosts.index(host)].probes

    def mx_index_after(self, host: ExchangeState) -> int | None:
        """The queue of an address that got no answer from this host; None if no exchange is left."""
        mx_index = self.hosts.index(host) + 1
        return mx_index if mx_index < len(self.queues) and self.host_for(mx_index) is not None else None

    def drain_unservable(self) -> Iterator[list[int]]:
        """Remove the addresses that have no exchange left."""
        for mx_index, queue in enumerate(self.queues):
            if queue.size and self.host_for(mx_index) is None:
                yield queue.drain()
