"""Which addresses are asked of which exchanges: by exchange set, queue by queue. Pure.

Thousands of domains share a few exchanges, so a queue belongs to a set of exchanges and not to a
domain. It holds positions in the batch, no text. Each set has a queue per exchange, by preference:
queue 0 is asked of the first exchange that is left, queue 1 of the first after the best, and so on; an
address that got no answer about itself moves on to the queue after the exchange that gave none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ..batch import Positions
from .politeness import ExchangeState

__all__ = ["ExchangeSet", "PreferenceQueue"]


@dataclass(slots=True)
class PreferenceQueue:
    """Positions that wait to be asked.

    Attributes
    ----------
    blocks : deque of numpy.ndarray
        Positions not handed out yet, block by block; addresses of one domain side by side.
    returned : deque of int
        Positions that a session gave back; they go first.
    size : int
        Positions in both.
    """

    blocks: deque[Positions] = field(default_factory=deque)
    returned: deque[int] = field(default_factory=deque)
    size: int = 0

    def __len__(self) -> int:
        """Positions left to hand out."""
        return self.size

    def add(self, positions: Positions) -> None:
        """Queue a block."""
        if len(positions):
            self.blocks.append(positions)
            self.size += len(positions)

    def put_back(self, positions: Iterable[int]) -> None:
        """Take back what a session did not get to; it goes first, in its order."""
        given = list(positions)
        self.returned.extendleft(reversed(given))
        self.size += len(given)

    def append(self, position: int) -> None:
        """Take an address from another queue; it goes behind those that came before it."""
        self.returned.append(position)
        self.size += 1

    def take(self, count: int) -> list[int]:
        """Hand out up to `count` positions."""
        taken = [self.returned.popleft() for _ in range(min(count, len(self.returned)))]
        while len(taken) < count and self.blocks:
            block, rest = self.blocks.popleft(), count - len(taken)
            taken += block[:rest].tolist()
            if len(block) > rest:
                self.blocks.appendleft(block[rest:])
        self.size -= len(taken)
        return taken

    def drain(self) -> list[int]:
        """Hand out everything."""
        return self.take(self.size)


@dataclass(slots=True, eq=False)
class ExchangeSet:
    """One distinct set of exchanges and what waits for it.

    Attributes
    ----------
    hosts : list of ExchangeState
        In the order to be tried: by preference; equal ones in an order of their own for each set, so that
        the load is spread (RFC 5321 section 5.1).
    most_attempts : int
        Exchanges that may be tried for one address; those that cannot be dialled at all do not count.
    queues : list of PreferenceQueue
        One per host.
    probes : list of int
        Codes of domains whose catch-all probe is due.
    active, starting : int
        Sessions under way, and those of them that have had no answer yet.
    is_queued : bool
        Whether the scheduler holds it ready.
    silent_for : float
        Seconds of sessions since the last answer.
    """

    hosts: list[ExchangeState]
    most_attempts: int
    queues: list[PreferenceQueue] = field(default_factory=list)
    probes: list[int] = field(default_factory=list)
    active: int = 0
    starting: int = 0
    is_queued: bool = False
    silent_for: float = 0.0

    def __post_init__(self) -> None:
        """Begin with empty queues."""
        self.queues = self.queues or [PreferenceQueue() for _ in self.hosts]

    def waiting(self) -> int:
        """Questions that wait, probes included."""
        return sum(map(len, self.queues)) + len(self.probes)

    def add(self, positions: Positions) -> None:
        """Queue addresses for the best exchange."""
        self.queues[0].add(positions)

    def host_for(self, mx_index: int) -> ExchangeState | None:
        """The exchange that a queue is asked of: the first one left; None: there is none."""
        tried = 0
        for index, host in enumerate(self.hosts):
            if tried >= self.most_attempts:
                return None
            if index >= mx_index and host.closed is None:
                return host
            tried += not host.is_undialled
        return None

    def servable(self) -> Iterator[tuple[int, ExchangeState]]:
        """Lanes that have something and an exchange left, with that exchange."""
        for mx_index, queue in enumerate(self.queues):
            if (queue.size or (mx_index == 0 and self.probes)) and (host := self.host_for(mx_index)) is not None:
                yield mx_index, host

    def mx_index_after(self, host: ExchangeState) -> int | None:
        """The queue of an address that this host said nothing about; None: there is no further one."""
        mx_index = self.hosts.index(host) + 1
        return mx_index if mx_index < len(self.queues) and self.host_for(mx_index) is not None else None

    def stranded(self) -> Iterator[list[int]]:
        """Take out what has no exchange left."""
        for mx_index, queue in enumerate(self.queues):
            if queue.size and self.host_for(mx_index) is None:
                yield queue.drain()
