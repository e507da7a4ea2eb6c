"""A bounded cache of answers that expire, in which simultaneous askers share one question."""

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
    """Remembers answers by key; the least recently used go first when it is full.

    Parameters
    ----------
    lifetime : callable
        Seconds for which an answer is remembered; infinite where it never expires.
    size : int
        How many answers are kept.
    clock : callable
        Seconds of a monotonic clock.
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
        self._kept: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._asked: dict[K, asyncio.Future[tuple[V] | None]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    async def get(self, key: K, ask: Callable[[], Awaitable[V]]) -> V:
        """Give the remembered answer, or the one that another task is waiting for, or `ask`."""
        while True:
            kept = self._kept.get(key)
            if kept is not None and kept[0] > self._clock():
                self._kept.move_to_end(key)
                return kept[1]
            asked = self._asked.get(key)
            # A loop that was closed half-way leaves a future that nobody will ever end.
            if asked is None or asked.get_loop() is not asyncio.get_running_loop():
                return await self._ask(key, ask)
            if shared := await asyncio.shield(asked):
                return shared[0]

    async def _ask(self, key: K, ask: Callable[[], Awaitable[V]]) -> V:
        """Ask, remember and share; if this fails, whoever waits is woken without an answer and asks in turn."""
        asked = self._asked[key] = asyncio.get_running_loop().create_future()
        shared: tuple[V] | None = None
        try:
            shared = (await ask(),)
            self._keep(key, shared[0])
            return shared[0]
        finally:
            del self._asked[key]
            asked.set_result(shared)

    def _keep(self, key: K, answer: V) -> None:
        self._kept[key] = (self._clock() + self._lifetime(answer), answer)
        self._kept.move_to_end(key)
        if len(self._kept) > self._size:
            self._kept.popitem(last=False)
