"""The highest resident memory of a stretch of code, watched from a thread."""

from __future__ import annotations

import gc
import threading
import time
from types import TracebackType

import psutil
import pyarrow as pa

__all__ = ["PeakMemory"]

INTERVAL = 0.001  # seconds between looks


class PeakMemory:
    """Watches this process while it is open.

    Attributes
    ----------
    before, peak : int
        Octets resident at the start, and at most.
    """

    def __init__(self) -> None:
        self.process = psutil.Process()
        self.before = self.peak = 0
        self.is_over = threading.Event()

    @property
    def above(self) -> int:
        """Octets at most above the start."""
        return self.peak - self.before

    def __enter__(self) -> PeakMemory:
        gc.collect()
        pa.default_memory_pool().release_unused()
        self.before = self.peak = self.process.memory_info().rss
        self.watcher = threading.Thread(target=self.watch, daemon=True)
        self.watcher.start()
        return self

    def watch(self) -> None:
        """Look again and again."""
        while not self.is_over.is_set():
            self.peak = max(self.peak, self.process.memory_info().rss)
            time.sleep(INTERVAL)

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.is_over.set()
        self.watcher.join()
