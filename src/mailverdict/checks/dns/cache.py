"""A bounded cache of answers that expire; simultaneous requests for one key share one question."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["AnswerCache"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class AnswerCache(Generic[K, V]):
    """Answers by key; the least recently used are dropped first. `lifetime` gives the seconds to keep an answer."""

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

    async def get(self, key: K, ask: Callable[[], Awaitable[V]]) -> V:
        """Return the cached answer, or the one another task is asking for, or the result of `ask`."""
        while True:
            entry = self._entries.get(key)
            if entry is not None and entry[0] > self._clock():
                self._entries.move_to_end(key)
                return entry[1]
            asking = self._asking.get(key)
            # The future of a loop that was closed meanwhile never completes.
            if asking is None or asking.get_loop() is not asyncio.get_running_loop():
                return await self._ask(key, ask)
            if shared := await asyncio.shield(asking):
                return shared[0]

    async def _ask(self, key: K, ask: Callable[[], Awaitable[V]]) -> V:
        """Ask, cache and share; after a failure the waiting tasks wake without an answer and ask themselves."""
        future = self._asking[key] = asyncio.get_running_loop().create_future()
        shared: tuple[V] | None = None
        try:
            shared = (await ask(),)
            self._store(key, shared[0])
            return shared[0]
        finally:
            del self._asking[key]
            future.set_result(shared)

    def _store(self, key: K, answer: V) -> None:
        self._entries[key] = (self._clock() + self._lifetime(answer), answer)
        self._entries.move_to_end(key)
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)
