"""`SharedQueue`: what an API knows of the queue that all hosts share, and how it wakes the workers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from ...contract.envelope import JobStatus
from ..engine import VerificationEngine
from ..jobs.store import NewJob
from ..jobs.worker import QueueDepth
from ..limiter import RateLimiter
from ..settings import Clock, ServiceSettings
from .store import SharedDepth, SharedStore
from .tasks import TaskQueue

REFRESH_AFTER = 1.0  # seconds that a count of the queue is used
REFRESH_SHARE = 10  # a count is used at least so many times as long as it took
REFRESH_LIMIT = 30.0  # seconds that a count is used at most; one that took long may have waited for the database
WAKE_DELAY = 1.0  # seconds until a task that could not be deferred is tried again


class SharedQueue:
    """The queue in the database; its numbers are at most about a second old.

    `on_counted` gets the jobs that have ended, by status, validation type and result. `pace` gets the tokens in the
    database, for `RateFields`.
    """

    def __init__(
        self,
        store: SharedStore,
        engine: VerificationEngine,
        settings: ServiceSettings,
        tasks: TaskQueue,
        *,
        pace: RateLimiter,
        clock: Clock,
        on_counted: Callable[[dict[tuple[str, str, str], int]], None],
    ) -> None:
        self.store = store
        self.engine = engine
        self.settings = settings
        self.tasks = tasks
        self.pace = pace
        self.clock = clock
        self.on_counted = on_counted
        self.counted = SharedDepth({}, 0, 0, 0, None, [], {})
        self.added: dict[str, int] = {}  # jobs that this process submitted since the count, by client
        self.fresh_until = 0.0  # of time.monotonic
        self.to_wake: dict[str, float] = {}  # types whose jobs wait, and the seconds after which they do
        self.wakeup = asyncio.Event()

    # --- numbers ------------------------------------------------------------------------------

    async def refresh(self) -> None:
        """Count the queue unless the last count is fresh."""
        began = time.monotonic()
        if began < self.fresh_until:
            return
        self.fresh_until = began + REFRESH_AFTER  # requests that come meanwhile use the last count
        added, self.added = self.added, {}
        try:
            self.counted = await self.store.run(self.store.depth)
        except BaseException:
            for client, count in added.items():
                self.added[client] = self.added.get(client, 0) + count
            raise
        if self.pace.rate:
            counted_at = self.pace.clock()
            tokens = await self.store.run(self.store.paces, self.clock())
            self.pace.buckets = {client: (left, counted_at) for client, left in tokens.items()}
        self.fresh_until = began + seconds_fresh(time.monotonic() - began)
        self.on_counted(self.counted.ended)

    @property
    def depth(self) -> QueueDepth:
        """The jobs that have not ended."""
        waiting = sum(self.counted.waiting.values()) + sum(self.added.values())
        return QueueDepth(waiting, self.counted.verifying, self.counted.postponed)

    @property
    def checking(self) -> int:
        """Single checks under way: of this process, and by `smtp` of all."""
        return self.engine.checking + self.counted.checks

    @property
    def oldest_age(self) -> float:
        """Seconds since the submission of the job that waits longest; 0 if none waits."""
        return 0.0 if self.counted.oldest is None else max(self.clock() - self.counted.oldest, 0.0)

    def waiting_of(self, client: str) -> int:
        """The waiting jobs of a client."""
        return self.counted.waiting.get(client, 0) + self.added.get(client, 0)

    def is_saturated(self, more: int) -> bool:
        """Whether the queue has no room for so many more addresses."""
        return self.depth.total + self.checking + more > self.settings.queue_limit

    def has_room(self, client: str, more: int) -> bool:
        """Whether the queue has room for so many more jobs of a client, as in `Worker.has_room`."""
        depth = self.depth
        return self.waiting_of(client) + more <= self.settings.queue_limit - depth.total - depth.postponed

    # --- waking the workers ---------------------------------------------------------------------

    def on_submitted(self, client: str, jobs: Sequence[NewJob]) -> None:
        """Count jobs that were just written to the store, and wake the workers."""
        for each in jobs:
            if each.status == JobStatus.QUEUED:
                self.added[client] = self.added.get(client, 0) + 1
                self.to_wake[each.validation_type] = 0.0
            elif each.status == JobStatus.PROCESSING and each.due is not None:
                self.to_wake.setdefault(each.validation_type, max(each.due - self.clock(), 0.0))
        self.wakeup.set()

    async def run(self) -> None:
        """Defer look-ups of what was submitted, until cancelled.

        One that cannot be deferred is tried again; workers also find jobs without a task themselves.
        """
        while True:
            await self.wakeup.wait()
            self.wakeup.clear()
            waiting, self.to_wake = self.to_wake, {}
            for validation_type, seconds in waiting.items():
                try:
                    await self.tasks.defer_look_up(validation_type, seconds=seconds)
                except Exception as exc:  # noqa: BLE001 - the pool's errors have no class in common
                    self.store.outages.failed(exc)
                    self.to_wake.setdefault(validation_type, seconds)
                    self.wakeup.set()
            if self.to_wake:
                await asyncio.sleep(WAKE_DELAY)


def seconds_fresh(took: float) -> float:
    """How long a count that took so many seconds is used.

    >>> [seconds_fresh(took) for took in (0.01, 0.5, 60.0)]
    [1.0, 5.0, 30.0]
    """
    return min(max(REFRESH_AFTER, REFRESH_SHARE * took), REFRESH_LIMIT)
