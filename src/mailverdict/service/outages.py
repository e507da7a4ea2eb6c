"""`OutageLog`: a line in the log when the store cannot be used, and one when it can again.

Whoever meets an error of the store reports it to `OutageLog.failed`; the same outage is met by each
request, task and connection. Any other error of the database is a bug: it has a traceback.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from sqlalchemy.exc import InterfaceError, InternalError, OperationalError

from ..errors import SettingsError
from .jobs.schema import RowsLocked

LOG = logging.getLogger(__name__)
# Seconds without an error after which the store can be used again; longer than a writer waits to
# try again.
PAUSE = 2.0
CAUSE_LIMIT = 300  # characters of an error's text
# The database is away, cannot be written or was told to stop; InternalError: it is read-only, as a
# standby is.
AWAY = (TimeoutError, SettingsError, OperationalError, InterfaceError, InternalError)
LOST = (
    "the store cannot be used: %s; this process tries again until it can. If that lasts, check that"
    " the database is running, that this host can reach it, and that its disk has room"
)
LOCKED = (
    "another process has rows of the store locked and does not go on; what needs them is tried"
    " again. If that lasts, look for a process that is stopped, or for a transaction of somebody"
    " else (pg_stat_activity, pg_blocking_pids)"
)


class OutageLog:
    """Logs beginning and end of each outage of a store, and other errors once until then."""

    def __init__(
        self, *, pause: float = PAUSE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.pause = pause
        self.clock = clock
        self.failures = 0
        self.began: float | None = None  # the outage that is under way
        self.reported: set[str] = set()  # kinds of errors other than outages
        self.has_failed = asyncio.Event()

    def failed(self, error: BaseException) -> None:
        """Log an error unless its outage, or the first of its kind, was logged."""
        self.failures += 1
        self.has_failed.set()
        if isinstance(error, RowsLocked):
            if LOCKED not in self.reported:
                self.reported.add(LOCKED)
                LOG.warning(LOCKED)
        elif isinstance(error, AWAY) or getattr(error, "connection_invalidated", False):
            if self.began is None:
                self.began = self.clock()
                cause = str(getattr(error, "orig", error)) or "no answer in time"
                LOG.error(LOST, " ".join(cause.split())[:CAUSE_LIMIT])
        elif (kind := type(error).__name__) not in self.reported:
            self.reported.add(kind)
            LOG.error(
                "a query of the store failed; it is not repeated here until one has succeeded",
                exc_info=error,
            )

    async def watch(self, probe: Callable[[], Awaitable[object]]) -> None:
        """After an error, call `probe` until it succeeds and no other error has come.

        Until cancelled.
        """
        while True:
            await self.has_failed.wait()
            before = self.failures
            await asyncio.sleep(self.pause)
            try:
                await probe()
            except Exception as exc:  # noqa: BLE001 - logged
                self.failed(exc)
            if self.failures == before:
                self.end()

    def end(self) -> None:
        """Log that the store can be used again."""
        self.has_failed.clear()
        self.reported.clear()
        if self.began is not None:
            LOG.warning("the store can be used again, after %.0f s", self.clock() - self.began)
            self.began = None
