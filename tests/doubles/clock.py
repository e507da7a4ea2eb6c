"""Time in tests: a clock that is set, and event loops whose time does not depend on how busy the machine is.

`Clock` replaces `time.time` and `time.monotonic` where they are parameters. `PatientLoop` is the event loop of all
tests (`conftest.py`): a pause of the process counts for at most `SLICE`. Under `skip_waits` it also does not wait at
all, which is right where both ends of each connection are in this process. `VirtualLoop` never waits.
"""

from __future__ import annotations

import asyncio
import selectors
import socket
import time
import warnings
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

NOON = 1_800_000_000.0  # 2027-01-15 08:00 UTC
EPOCH = 1_700_000_000.0  # the wall clock of a virtual loop at its start
SLICE = 0.01  # seconds that one wait of a patient loop counts for at most
LONG = 0.1  # seconds from which a skipped wait may be somebody's time-out
GRACE = 0.005  # seconds that a long skipped wait takes


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self, now: float = NOON) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class FastClock:
    """Runs 30 times as fast as the wall clock, so that an outage of a minute takes two seconds."""

    def __init__(self) -> None:
        self.begun = time.time()

    def __call__(self) -> float:
        return self.begun + 30 * (time.time() - self.begun)


class PatientSelector(selectors.DefaultSelector):
    """Waits in short slices and counts no slice for longer than it was meant to be."""

    loop: PatientLoop

    def __init__(self) -> None:
        super().__init__()
        self.echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.echo.bind(("127.0.0.1", 0))
        self.echo.connect(self.echo.getsockname())

    def close(self) -> None:
        self.echo.close()
        super().close()

    def wait_for_delivery(self) -> None:
        """Wait until what was sent on loopback has arrived: a busy kernel delivers later, but in order."""
        self.echo.send(b"x")
        self.echo.recv(1)

    def select(self, timeout: float | None = None) -> list[Any]:
        """Wait for events; advance the loop's time by what was waited."""
        if timeout is None:
            return super().select(None)
        if timeout <= 0:
            return super().select(0)
        if PatientLoop.is_skipping and not self.loop.jobs:
            self.wait_for_delivery()
            events = super().select(GRACE if timeout >= LONG else 0)
            if not events and not self.loop.jobs:
                self.loop.now += timeout
            return events
        piece = min(timeout, SLICE)
        begun = time.monotonic()
        events = super().select(piece)
        self.loop.now += min(time.monotonic() - begun, piece) if events else piece
        return events


class PatientLoop(asyncio.SelectorEventLoop):
    """Its time advances only while it waits: what is ready is always done before any time-out ends."""

    is_skipping = False

    def __init__(self) -> None:
        self.now = time.monotonic()
        self.jobs = 0  # in executors, which skipped waits would not wait for
        selector = PatientSelector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        """Let time pass in which nothing runs, as if the process were suspended."""
        self.now += seconds

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        self.jobs += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self.job_done)
        return future

    def job_done(self, _: object) -> None:
        self.jobs -= 1

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait for the executor's threads without a limit; Python 3.12 and newer would skip to theirs."""
        self.jobs += 1
        await super().shutdown_default_executor()
        self.jobs -= 1


with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.14 has it for one more release
    DefaultPolicy: Any = asyncio.DefaultEventLoopPolicy


class PatientPolicy(DefaultPolicy):
    """Makes every new event loop a patient one."""

    _loop_factory = PatientLoop


@contextmanager
def skip_waits(*, is_skipping: bool = True) -> Iterator[None]:
    """Let patient loops jump to their next timer when nothing is ready; all sockets must be served by one loop."""
    before, PatientLoop.is_skipping = PatientLoop.is_skipping, is_skipping
    try:
        yield
    finally:
        PatientLoop.is_skipping = before


class InstantSelector(selectors.DefaultSelector):
    """Advances the loop's clock instead of sleeping."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[Any]:
        events = super().select(0)
        if events:
            return events
        if timeout is None:
            raise RuntimeError("all tasks wait for something that cannot happen")
        self.loop.now += timeout
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """Begins at 0 seconds; without sockets, every run is the same."""

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
