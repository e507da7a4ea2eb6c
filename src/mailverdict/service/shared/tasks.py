"""The tasks that are distributed, on Procrastinate: `look_up`, `ask`, and what runs on a schedule.

`look_up` claims a batch of jobs of one type; for `smtp` it finds the owner of each job's mail servers, for the other
types it verifies them. `ask` answers the single checks of one owner and verifies its jobs; the task has the owner as
its lock, so that in the whole cluster one task at a time asks an owner's mail servers. A queue is a validation type, or
`smtp@NAME` for owners that are asked from a certain egress, so that a worker gets only tasks that it can do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

from ...errors import MissingExtraError
from ...model.words import ValidationType
from ..jobs.schema import parse_url
from ..outages import OutageLog
from ..settings import ServiceSettings

MAINTENANCE = "maintenance"  # queue of the scheduled tasks
HEARTBEAT_INTERVAL = 5.0  # seconds
STALLED_AFTER = 20.0  # seconds without a heartbeat after which a worker's tasks go to others
POLLING_INTERVAL = 1.0  # seconds; a notification wakes a worker at once, a scheduled task waits for this
ABORT_AFTER = 10.0  # seconds that tasks have to end when a worker stops
ANSWER_TIMEOUT = 10.0  # seconds that a query of Procrastinate waits for a connection
IS_DEFERRED = (
    "SELECT EXISTS (SELECT FROM procrastinate_jobs WHERE queueing_lock = %(name)s AND status = 'todo') AS found"
)
# Seconds between the scheduled tasks, by the database's clock; the first is a divisor of the others. Procrastinate's
# own schedule follows the host's clock, and stands still for an hour after it was set back by an hour.
SCHEDULE = {"recover": 10, "purge": 600}


class TaskHandler(Protocol):
    """What a worker does for each kind of task."""

    async def look_up(self, batch: int, validation_type: str) -> None:
        """Claim jobs of a type; `batch` is the task's number."""

    async def ask(self, owner: str) -> None:
        """Answer the single checks of an owner, and verify its jobs."""

    async def recover(self) -> None:
        """Give tasks to jobs that have none."""

    async def purge(self) -> None:
        """Remove what is over."""


def queue_of_owner(settings: ServiceSettings, owner: str) -> str:
    """The queue of an owner's tasks: that of its egress, if it has one."""
    egress = dict(route.split("=") for route in settings.egress_routes).get(owner)
    return f"{ValidationType.SMTP}@{egress}" if egress else str(ValidationType.SMTP)


class TaskQueue:
    """Defers tasks, and runs them in a worker; `open` connects to the database."""

    def __init__(self, settings: ServiceSettings, database_clock: Callable[[], float], outages: OutageLog) -> None:
        try:
            import procrastinate  # noqa: PLC0415 - an extra

            from . import procrastinate_parts as parts  # noqa: PLC0415 - it imports the extra
        except ModuleNotFoundError as exc:
            raise MissingExtraError("a store on PostgreSQL", "postgres") from exc
        for name in ("procrastinate", "psycopg"):  # a line for each task and each lost connection
            logging.getLogger(name).setLevel(logging.ERROR)
        self.settings = settings
        self.outages = outages
        self.running: set[int] = set()  # tasks that run in this process, by their number
        self.scheduled: dict[str, int] = {}  # when each scheduled task was due for the last time
        self.database_clock = database_clock
        url = parse_url(settings.store).set(drivername="postgresql").render_as_string(hide_password=False)
        # The pool tries to connect after 1, 3, 7 and 10 s, and again with the next query. Without the limit the pauses
        # double for minutes, and a worker would go on minutes after a long outage.
        limits = {"timeout": ANSWER_TIMEOUT, "reconnect_timeout": ANSWER_TIMEOUT}
        self.connector = parts.ReconnectingConnector(outages, conninfo=url, min_size=1, max_size=8, **limits)
        self.app: Any = procrastinate.App(connector=self.connector)
        self.app.job_manager = parts.PersistentJobManager(outages, self.connector)
        self.already_enqueued = procrastinate.exceptions.AlreadyEnqueued
        self.unavailable = procrastinate.exceptions.ConnectorException
        self.forgotten = parts.WorkerForgotten
        # What was not done is done later, by `recover` if by nobody else.
        self.reporting = partial(parts.reporting, outages)
        self.reporting_unless_gone = partial(parts.reporting, outages, parts.TASK_IS_GONE)

    async def open(self) -> None:
        """Connect."""
        await self.app.open_async()

    async def close(self) -> None:
        """Disconnect."""
        await self.app.close_async()

    # --- deferring ----------------------------------------------------------------------------

    async def defer_look_up(self, validation_type: str, *, seconds: float = 0.0) -> None:
        """Look up queued jobs of a type, now or later, unless a task that waits will do it."""
        name, at = f"look_up {validation_type}", None
        if seconds > 0:
            due = int(self.database_clock() + seconds) + 1
            name, at = f"{name} at {due}", datetime.fromtimestamp(due, UTC)
        options = {"queue": validation_type, "queueing_lock": name, "schedule_at": at}
        await self.defer("look_up", options, validation_type=validation_type)

    async def defer_ask(self, owners: Iterable[str], *, is_check: bool = False) -> None:
        """Ask owners, unless a task that waits will do it; for single checks before all other tasks."""
        for owner in owners:
            name, priority = (f"check {owner}", 1) if is_check else (f"ask {owner}", 0)
            options = {"lock": owner, "queueing_lock": name, "priority": priority}
            await self.defer("ask", {"queue": queue_of_owner(self.settings, owner), **options}, owner=owner)

    async def defer(self, task: str, options: Mapping[str, Any], **arguments: str) -> None:
        """Defer a task unless one with the same queueing lock waits.

        It looks first, since the server logs each refused INSERT as an error.
        """
        if await self.is_deferred(options["queueing_lock"]):
            return
        with suppress(self.already_enqueued):
            await self.app.configure_task(task, allow_unknown=True, **options).defer_async(**arguments)

    async def is_deferred(self, name: str) -> bool:
        """Whether a task with a queueing lock waits."""
        return bool((await self.connector.execute_query_one_async(IS_DEFERRED, name=name))["found"])

    async def run_schedule(self) -> None:
        """Defer the scheduled tasks until cancelled."""
        while True:
            with self.reporting():  # tried again with the next ones
                await self.defer_scheduled()
            every = SCHEDULE["recover"]
            await asyncio.sleep(every - self.database_clock() % every)

    async def defer_scheduled(self) -> None:
        """Defer the scheduled tasks that are due, unless another worker did or one that waits will do it."""
        for name, every in SCHEDULE.items():
            due = int(self.database_clock() // every) * every
            if self.scheduled.get(name) == due:
                continue
            options: dict[str, Any] = {"queue": MAINTENANCE, "queueing_lock": name, "task_kwargs": {"timestamp": due}}
            # Without a lock: a `recover` whose worker has died must not stop the others.
            job = self.app.configure_task(name, allow_unknown=True, **options).job
            if not await self.is_deferred(name):
                with suppress(self.already_enqueued):
                    await self.app.job_manager.defer_periodic_job(job=job, periodic_id="", defer_timestamp=due)
            self.scheduled[name] = due

    # --- notifications --------------------------------------------------------------------------

    async def listen(self, channel: str, on_payload: Callable[[str], None]) -> None:
        """Call back for each notification on a channel, until cancelled; some are lost with the connection."""

        async def pass_on(*, channel: str, payload: str) -> None:
            on_payload(payload)

        await self.connector.listen_notify(on_notification=pass_on, channels=[channel])

    # --- running ------------------------------------------------------------------------------

    def register(self, handler: TaskHandler) -> None:
        """Set what runs the tasks."""

        async def look_up(context: Any, validation_type: str) -> None:
            with self.marked_running(context.job.id):
                await handler.look_up(context.job.id, validation_type)

        async def ask(context: Any, owner: str) -> None:
            with self.marked_running(context.job.id):
                await handler.ask(owner)

        async def recover(timestamp: int) -> None:
            with self.reporting():
                await handler.recover()

        async def purge(timestamp: int) -> None:
            with self.reporting():
                await handler.purge()

        self.app.task(name="look_up", pass_context=True)(look_up)
        self.app.task(name="ask", pass_context=True)(ask)
        self.app.task(name="recover")(recover)
        self.app.task(name="purge")(purge)

    @contextmanager
    def marked_running(self, number: int) -> Iterator[None]:
        """Keep the number of a task in `running` while it runs; one that loses the database ends early."""
        self.running.add(number)
        try:
            with self.reporting():
                yield
        finally:
            self.running.discard(number)

    def make_worker(self, queues: list[str], concurrency: int, on_stop: Callable[[], None]) -> Any:
        """A worker of Procrastinate; `on_stop` is called when it stops, for whatever reason."""
        from procrastinate.worker import Worker  # noqa: PLC0415 - an extra

        class StoppingWorker(Worker):  # type: ignore[misc,unused-ignore]
            """Calls back before it waits for its tasks."""

            def stop(self) -> None:
                on_stop()
                super().stop()  # type: ignore[no-untyped-call,unused-ignore]

        return StoppingWorker(
            self.app,
            queues=queues,
            name="mailverdict",
            concurrency=concurrency,
            fetch_job_polling_interval=POLLING_INTERVAL,
            shutdown_graceful_timeout=ABORT_AFTER,
            delete_jobs="always",
            install_signal_handlers=False,
            update_heartbeat_interval=HEARTBEAT_INTERVAL,
            stalled_worker_timeout=STALLED_AFTER,
        )

    async def end_stalled(self) -> int:
        """End the tasks of workers without a heartbeat, which releases their locks; return how many."""
        stalled = list(await self.app.job_manager.get_stalled_jobs(seconds_since_heartbeat=STALLED_AFTER))
        return await self.end_tasks([task.id for task in stalled])

    async def end_tasks(self, numbers: Iterable[int]) -> int:
        """End tasks that nobody runs any more."""
        count = 0
        for number in numbers:
            with self.reporting_unless_gone():  # somebody else ended it
                await self.app.job_manager.finish_job_by_id_async(
                    job_id=number, status=self.failed_status(), delete_job=True
                )
                count += 1
        return count

    @staticmethod
    def failed_status() -> Any:
        from procrastinate.jobs import Status  # noqa: PLC0415 - an extra

        return Status.FAILED
