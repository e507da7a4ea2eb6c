"""DNS answers as values, without wire format and I/O, and a bounded cache of them.

Simultaneous requests for one key of the cache share one question.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable
from enum import StrEnum
from typing import Generic, Literal, NamedTuple, TypeVar

from ...model.evidence import MailExchange

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

RecordType = Literal["A", "AAAA", "MX", "PTR", "TXT"]
ADDRESS_TYPES: tuple[RecordType, ...] = ("A", "AAAA")
IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

# RFC 5321 section 5.1 lets a sender limit how many exchanges it tries; the largest mail operators
# publish fewer than 20. The limit bounds the work that a 64 KiB answer of invented exchanges
# causes.
MAX_EXCHANGES = 64
MAX_TEXTS = 64  # addresses, names or strings kept of one RRset, for the same reason


class AnswerOutcome(StrEnum):
    """The result of one DNS question."""

    DATA = "data"  # the name has records of the type
    NODATA = "nodata"  # the name exists, with no record of the type (RFC 2308 section 2.2)
    NXDOMAIN = "nxdomain"  # the name does not exist
    UNDETERMINED = "undetermined"  # time-out, SERVFAIL, REFUSED, unreadable: nothing is known


DENIALS = (AnswerOutcome.NXDOMAIN, AnswerOutcome.NODATA)


class DnsAnswer(NamedTuple):
    """The answer to one question, or to those for the A and the AAAA records of a host."""

    outcome: AnswerOutcome
    exchanges: tuple[
        MailExchange, ...
    ] = ()  # for MX: lowest preference first; a null MX has the host ""
    texts: tuple[
        str, ...
    ] = ()  # for A and AAAA addresses (A first), for PTR names, for TXT the joined strings
    ttl: float = 0.0  # seconds
    message: str = ""  # the cause, if something is undetermined or the DNS cannot carry the name
    alias: str = ""  # the end of a CNAME chain that the resolver did not follow


def sort_exchanges(exchanges: Iterable[MailExchange]) -> tuple[MailExchange, ...]:
    """Sort exchanges by preference, then host.

    A host that occurs twice keeps its lowest preference.

    >>> records = (20, "b.example"), (10, "a.example"), (30, "a.example")
    >>> [each.host for each in sort_exchanges(MailExchange(*record) for record in records)]
    ['a.example', 'b.example']
    """
    best: dict[str, MailExchange] = {}
    for each in sorted(exchanges):
        best.setdefault(each.host, each)
    return tuple(best.values())[:MAX_EXCHANGES]


class AnswerCache(Generic[K, V]):
    """Answers by key; the least recently used are dropped first.

    `lifetime` gives the seconds to keep an answer.
    """

    def __init__(
        self,
        lifetime: Callable[[V], float],
        *,
        size: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lifetime = lifetime
        self._size = size
        self._clock = clock
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._asking: dict[K, asyncio.Future[tuple[V] | None]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, key: K) -> V | None:
        """Return the cached answer."""
        entry = self._entries.get(key)
        if entry is None or entry[0] <= self._clock():
            return None
        self._entries.move_to_end(key)
        return entry[1]

    async def get(self, key: K, ask: Callable[[], Awaitable[V]]) -> V:
        """Return the cached answer, or the one that another task asks for, or that of `ask`."""
        while True:
            if (answer := self.find(key)) is not None:
                return answer
            asking = self._asking.get(key)
            # The future of a loop that was closed meanwhile never completes.
            if asking is None or asking.get_loop() is not asyncio.get_running_loop():
                return await self._ask(key, ask)
            if shared := await asyncio.shield(asking):
                return shared[0]

    def discard(self, key: K, condition: Callable[[V], bool]) -> None:
        """Remove an answer that meets a condition."""
        entry = self._entries.get(key)
        if entry is not None and condition(entry[1]):
            del self._entries[key]

    async def _ask(self, key: K, ask: Callable[[], Awaitable[V]]) -> V:
        """Ask, cache and share.

        After a failure the waiting tasks wake without an answer and ask themselves.
        """
        future = self._asking[key] = asyncio.get_running_loop().create_future()
        shared: tuple[V] | None = None
        try:
            shared = (await ask(),)
            self.store(key, shared[0])
            return shared[0]
        finally:
            del self._asking[key]
            future.set_result(shared)

    def store(self, key: K, answer: V) -> None:
        """Cache an answer."""
        self._entries[key] = (self._clock() + self._lifetime(answer), answer)
        self._entries.move_to_end(key)
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)
