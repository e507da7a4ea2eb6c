"""Work beside the kernel's own thread, so that buttons are answered while it goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ..runs.progress import Progress
from ..runs.run import Run

__all__ = ["INTERVAL", "Background", "follow"]

INTERVAL = 0.1  # seconds between updates: ten a second is what a person sees and a browser bears
LONG = 100  # intervals without news after which a person wonders


class Background:
    """Threads that end by themselves and never keep a kernel from ending."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []

    def start(self, work: Callable[[], object]) -> None:
        """Begin `work` on a thread of its own."""
        thread = threading.Thread(target=work, name="mailverdict-audit", daemon=True)
        self.threads = [earlier for earlier in self.threads if earlier.is_alive()] + [thread]
        thread.start()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until all is done, also what one piece of work has started.

        Raises
        ------
        TimeoutError
            If it is not after `timeout` seconds.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while alive := [thread for thread in self.threads if thread.is_alive()]:
            alive[0].join(INTERVAL)
            if until is not None and time.monotonic() > until:
                raise TimeoutError(f"not finished after {timeout} seconds")


def follow(
    run: Run[object], show: Callable[[Progress], None], idle: Callable[[float], None], interval: float = INTERVAL
) -> None:
    """Show a run's progress at intervals until it is over, and only what is new; tell when nothing is for long."""
    shown, still = None, 0
    while not run.done():
        if (progress := run.progress) is not shown:
            show(progress)
            shown, still = progress, 0
        elif still % LONG == 0:
            idle(still * interval)
        still += 1
        try:
            run.wait(interval)
        except TimeoutError:
            continue
