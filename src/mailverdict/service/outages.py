"""`OutageLog`: a line in the log when the store cannot be used any more, and one when it can be used again.

Whoever meets an error of the store reports it to `OutageLog.failed`; the same outage is met by each request, task and
connection. An error that neither the state of the database nor the connection explains is a bug: it has a traceback.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from ..errors import SettingsError

LOG = logging.getLogger(__name__)
PAUSE = 2.0  # seconds without an error after which the store can be used again; longer than a writer waits to try again
CAUSE_LIMIT = 300  # characters of an error's text
# Classes of SQLSTATE, or whole ones, that tell of the server, the connection or what an administrator did.
OUTAGES = (
    "08",  # connection
    "28",  # the login is refused
    "3D",  # the database does not exist
    "53",  # no connection, memory or disk is left
    "57",  # the server stops or starts, or an administrator ended the query or the connection
    "58",  # a file cannot be read or written
    "25006",  # read-only, as a standby
    "55P03",  # a lock was not available in time
)
LOST = (
    "the store cannot be used: %s; this process tries again until it can. If that lasts, check that the database is"
    " running, that this host can reach it, and that its disk has room"
)


class OutageLog:
    """Logs the beginning and the end of each outage of a store, and every other error once until then."""

    def __init__(self, *, pause: float = PAUSE, clock: Callable[[], float] = time.monotonic) -> None:
        self.pause = pause
        self.clock = clock
        self.failures = 0
        self.began: float | None = None  # the outage that is under way
        self.reported: set[str] = set()  # bugs
        self.has_failed = asyncio.Event()

    def failed(self, error: BaseException) -> None:
        """Log an error unless it is part of an outage, or of a series of errors, that was logged."""
        self.failures += 1
        self.has_failed.set()
        if is_outage(error):
            if self.began is None:
                self.began = self.clock()
                LOG.error(LOST, " ".join(str(cause_of(error)).split())[:CAUSE_LIMIT])
            return
        kind = f"{type(error).__name__} {sqlstate_of(error)}"
        if kind not in self.reported:
            self.reported.add(kind)
            LOG.error("a query of the store failed; it is not repeated here until one has succeeded", exc_info=error)

    async def watch(self, probe: Callable[[], Awaitable[object]]) -> None:
        """After an error, call `probe` until it succeeds and no other error has come; until cancelled."""
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


def cause_of(error: BaseException) -> BaseException:
    """The driver's error, which SQLAlchemy has as an attribute."""
    if isinstance(error, DBAPIError):
        return error.orig or error
    if isinstance(error, TimeoutError) and not str(error):
        return TimeoutError("no answer in time")
    return error


def sqlstate_of(error: BaseException) -> str | None:
    """The code of the server's error; None if it has none, as of a connection that broke."""
    found: str | None = getattr(cause_of(error), "sqlstate", None)
    return found


def is_outage(error: BaseException) -> bool:
    """Whether the state of the database or the connection explains an error."""
    if isinstance(error, (TimeoutError, SettingsError)):
        return True
    if (state := sqlstate_of(error)) is not None:
        return state.startswith(OUTAGES)
    is_broken = isinstance(error, DBAPIError) and error.connection_invalidated
    return is_broken or isinstance(error, (OperationalError, InterfaceError))
