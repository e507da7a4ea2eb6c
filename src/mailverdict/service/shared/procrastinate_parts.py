"""Procrastinate's connections and queries as a worker uses them: they go on after an outage of the database.

Procrastinate itself ends its worker, and with it all tasks, when one query of the worker fails, such as a heartbeat.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from procrastinate import PsycopgConnector
from procrastinate.exceptions import ConnectorException, UniqueViolation
from procrastinate.manager import JobManager
from sqlalchemy.exc import SQLAlchemyError

from ..outages import OutageLog, sqlstate_of

LISTEN_DELAY = 1.0  # seconds until a connection for notifications is made again
HEARTBEAT_DELAY = 1.0  # seconds until a heartbeat that could not be written is tried again
TASK_IS_GONE = "P0001"  # SQLSTATE of Procrastinate's functions: another worker has ended the task
WORKER_IS_GONE = "23503"  # of the foreign key: another worker has removed the one that would get the task


class WorkerForgotten(Exception):
    """Others have taken over the tasks of this worker, since it wrote no heartbeat."""


@contextmanager
def reporting(outages: OutageLog, *ignored: str) -> Iterator[None]:
    """Report an error of the database instead of raising it, unless it has a SQLSTATE that is ignored."""
    try:
        yield
    except (ConnectorException, SQLAlchemyError) as exc:
        if sqlstate_of(exc) not in ignored:
            outages.failed(exc)


class ReconnectingConnector(PsycopgConnector):  # type: ignore[misc,unused-ignore]
    """Connects again for notifications when the database was away, which would else stop a worker at once."""

    def __init__(self, outages: OutageLog, **options: Any) -> None:
        super().__init__(**options)
        self.outages = outages

    async def listen_notify(self, *args: Any, **kwargs: Any) -> None:
        """Listen until cancelled."""
        while True:
            with reporting(self.outages):
                await super().listen_notify(*args, **kwargs)
            await asyncio.sleep(LISTEN_DELAY)


class PersistentJobManager(JobManager):  # type: ignore[misc,unused-ignore]
    """Reports errors, and lets a worker look for tasks and write heartbeats again."""

    def __init__(self, outages: OutageLog, connector: ReconnectingConnector) -> None:
        super().__init__(connector)
        self.outages = outages

    async def fetch_job(self, *args: Any, **kwargs: Any) -> Any:
        """The next task; None, so that the worker looks again a second later, if it could not be fetched."""
        with reporting(self.outages):
            try:
                return await super().fetch_job(*args, **kwargs)
            except UniqueViolation:  # another worker has begun a task of the same owner at the same moment
                return None
            except ConnectorException as exc:
                if sqlstate_of(exc) == WORKER_IS_GONE:
                    raise WorkerForgotten from exc
                raise
        return None

    async def finish_job(self, *args: Any, **kwargs: Any) -> None:
        """End a task; one that is still there after an error is ended by `SharedWorker.end_orphans`."""
        with reporting(self.outages, TASK_IS_GONE):
            await super().finish_job(*args, **kwargs)

    async def update_heartbeat(self, *args: Any, **kwargs: Any) -> None:
        """Write a heartbeat, and try again until it is written."""
        is_written = False
        while not is_written:
            with reporting(self.outages):
                await super().update_heartbeat(*args, **kwargs)
                is_written = True
            if not is_written:
                await asyncio.sleep(HEARTBEAT_DELAY)

    async def list_jobs_to_abort_async(self, *args: Any, **kwargs: Any) -> Any:
        """The tasks that somebody asked to abort."""
        with reporting(self.outages):
            return await super().list_jobs_to_abort_async(*args, **kwargs)
        return []

    async def unregister_worker(self, *args: Any, **kwargs: Any) -> None:
        """Remove a worker; others remove one that has no heartbeat."""
        with reporting(self.outages):
            await super().unregister_worker(*args, **kwargs)
