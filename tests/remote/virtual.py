"""An event loop whose clock is a number: waiting costs no time, and every run is the same."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any

EPOCH = 1_700_000_000.0  # what the wall clock shows when a virtual loop begins


class InstantSelector(selectors.DefaultSelector):
    """Advances the loop's clock instead of sleeping."""

    loop: "VirtualLoop"

    def select(self, timeout: float | None = None) -> list[Any]:
        events = super().select(0)
        if events:
            return events
        if timeout is None:
            raise RuntimeError("everything waits, and nothing will ever happen")
        self.loop.now += timeout
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """Begins at 0 seconds."""

    def __init__(self) -> None:
        self.now = 0.0
        selector = InstantSelector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now

    def wall_clock(self) -> float:
        return EPOCH + self.now


def run_virtual(main: Callable[[VirtualLoop], Coroutine[Any, Any, Any]]) -> Any:
    """Run ``main(loop)`` on a virtual loop to its end, and everything it left behind."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(main(loop))
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
