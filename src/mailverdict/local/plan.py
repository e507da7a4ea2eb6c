"""Which addresses are asked of which exchanges: by exchange set, lane by lane. Pure.

Thousands of domains share a few exchanges, so a queue belongs to a set of exchanges and not to a
domain. It holds positions in the batch, no text. Each set has a lane per exchange, by preference:
lane 0 may be asked of any of them, lane 1 of all but the first, and so on; an address that got no
answer about itself moves on to the next lane.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from .politeness import ExchangeState
from .view import Positions

__all__ = ["ExchangeSet", "Lane"]


@dataclass
class Lane:
    """Positions that wait to be asked.

    Attributes
    ----------
    blocks : list of numpy.ndarray
        Positions not handed out yet, block by block; addresses of one domain side by side.
    returned : list of int
        Positions that a session gave back; they go first.
    """

    blocks: list[Positions] = field(default_factory=list)
    returned: list[int] = field(default_factory=list)
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
        self.returned = [*given, *self.returned]
        self.size += len(given)

    def take(self, count: int) -> list[int]:
        """Hand out up to `count` positions."""
        taken, self.returned = self.returned[:count], self.returned[count:]
        while len(taken) < count and self.blocks:
            block, rest = self.blocks[0], count - len(taken)
            taken += block[:rest].tolist()
            self.blocks[0:1] = [block[rest:]] if len(block) > rest else []
        self.size -= len(taken)
        return taken

    def drain(self) -> list[int]:
        """Hand out everything."""
        return self.take(self.size)


@dataclass
class ExchangeSet:
    """One distinct set of exchanges and what waits for it.

    Attributes
    ----------
    key : tuple of str
        The host names by preference.
    hosts : list of ExchangeState
        By preference; equal preferences in an order of their own per set (RFC 5321 section 5.1).
    levels : list of int
        The preference of each host, for which are equal.
    lanes : list of Lane
        One per host that may be tried.
    probes : list of int
        Codes of domains whose catch-all probe is due.
    active : int
        Sessions under way.
    is_queued : bool
        Whether the dispatcher holds it ready.
    """

    key: tuple[str, ...]
    hosts: list[ExchangeState]
    levels: list[int]
    lanes: list[Lane]
    probes: list[int] = field(default_factory=list)
    active: int = 0
    is_queued: bool = False

    def waiting(self) -> int:
        """Questions that wait, probes included."""
        return sum(map(len, self.lanes)) + len(self.probes)

    def add(self, positions: Positions) -> None:
        """Queue addresses for the best exchange."""
        self.lanes[0].add(positions)

    def next_lane(self) -> int | None:
        """The lane to serve next: the first that has something and an exchange left."""
        for rank, lane in enumerate(self.lanes):
            if (len(lane) or (rank == 0 and self.probes)) and any(self.hosts_for(rank)):
                return rank
        return None

    def hosts_for(self, rank: int) -> Iterator[ExchangeState]:
        """Hosts that may serve a lane: those of the best preference with any left."""
        level = None
        for host, preference in zip(self.hosts[rank:], self.levels[rank:], strict=True):
            if host.closed is None and level in (None, preference):
                level = preference
                yield host

    def rank_after(self, host: ExchangeState) -> int | None:
        """The lane of an address that this host said nothing about; None: there is no further one."""
        rank = self.hosts.index(host) + 1
        return rank if rank < len(self.lanes) and any(self.hosts_for(rank)) else None

    def stranded(self) -> Iterator[tuple[int, list[int]]]:
        """Lanes that have something and no exchange left: rank, and the positions taken out."""
        for rank, lane in enumerate(self.lanes):
            if len(lane) and not any(self.hosts_for(rank)):
                yield rank, lane.drain()
