"""The queries of Procrastinate's worker when the database was away, or when others took the worker for dead."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mailverdict.service.outages import OutageLog
from mailverdict.service.shared.tasks import TaskQueue
from tests.doubles.answering_backend import AnsweringBackend
from tests.doubles.clock import Clock
from tests.doubles.service import asynchronous, serving, settings_for, until, working
from tests.service.postgres import Cluster
from tests.service.shared.test_worker import rows

pytestmark = pytest.mark.servers


@pytest.fixture
def url(cluster: Cluster) -> str:
    return cluster.prepared_database()


@asynccontextmanager
async def opened(folder: Path, url: str) -> AsyncIterator[TaskQueue]:
    tasks = TaskQueue(settings_for(folder, store=url), Clock(), OutageLog())
    await tasks.open()
    try:
        yield tasks
    finally:
        await tasks.close()


ASK = "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, priority) VALUES ('smtp', 'ask', 'a.org', {})"


@asynchronous
async def test_task_of_an_owner_that_another_worker_has_just_begun_is_left_to_it(tmp_path: Path, url: str) -> None:
    async with opened(tmp_path, url) as tasks:
        manager = tasks.app.job_manager
        worker = await manager.register_worker()
        rows(url, ASK.format(0))
        # As with a transaction that is not committed: the query does not see the other task, and the index has it.
        rows(url, "CREATE UNIQUE INDEX begun ON procrastinate_jobs (lock) WHERE status = 'doing' OR priority = 9")
        rows(url, "ALTER TABLE procrastinate_jobs DISABLE TRIGGER USER")
        rows(url, ASK.format(9).replace("'smtp'", "'other'"))
        assert await manager.fetch_job(["smtp"], worker) is None
        assert tasks.outages.failures == 0


@asynchronous
async def test_end_of_a_task_that_another_worker_has_ended_is_not_an_error(tmp_path: Path, url: str) -> None:
    async with opened(tmp_path, url) as tasks:
        manager = tasks.app.job_manager
        rows(url, ASK.format(0))
        task = await manager.fetch_job(["smtp"], await manager.register_worker())
        for _ in range(2):
            assert await tasks.end_tasks([task.id]) <= 1
            await manager.finish_job(task, tasks.failed_status(), True)
        assert tasks.outages.failures == 0


@asynchronous
async def test_task_that_waits_already_is_not_refused_by_the_server(tmp_path: Path, url: str, cluster: Cluster) -> None:
    log = cluster.folder / "log"
    before = log.read_text().count("duplicate key")
    async with opened(tmp_path, url) as tasks:
        for _ in range(3):
            await tasks.defer_look_up("mx")
            await tasks.defer_ask(["a.org"])
            tasks.scheduled.clear()
            await tasks.defer_scheduled()
    names = "SELECT task_name FROM procrastinate_jobs ORDER BY task_name"
    assert rows(url, names) == [("ask",), ("look_up",), ("purge",), ("recover",)]
    assert log.read_text().count("duplicate key") == before


@asynchronous
async def test_worker_that_others_took_for_dead_registers_again(
    tmp_path: Path, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_for(tmp_path, store=url)
    async with serving(tmp_path, store=url) as world, working(settings, AnsweringBackend(), Clock()) as worker:
        await until(lambda: worker.runner is not None and worker.runner.worker_id is not None)
        before = worker.runner.worker_id
        await asyncio.to_thread(rows, url, "DELETE FROM procrastinate_workers")  # a query of the loop may lock them
        [job_id] = await world.submitted("ada@a.org", validation_type="mx")
        assert (await world.ended(job_id))["status"] == "done"
        await until(lambda: worker.runner.worker_id not in (None, before))
    lines = [record for record in caplog.records if record.levelno > logging.INFO]
    assert {record.getMessage() for record in lines} == {
        "others took this worker for dead, since it wrote no heartbeat; it registers again"
    }
    assert not any(record.exc_info for record in lines)


@pytest.mark.parametrize("is_away", [True, False])
@asynchronous
async def test_outage_does_not_end_the_worker(tmp_path: Path, url: str, cluster: Cluster, *, is_away: bool) -> None:
    """Procrastinate's own worker goes on, with its tasks, when its queries fail."""
    async with opened(tmp_path, url) as tasks:
        manager = tasks.app.job_manager
        rows(url, ASK.format(0))
        worker = await manager.register_worker()
        task = await manager.fetch_job(["smtp"], worker)
        if is_away:
            await tasks.connector.pool.close()
        else:
            rows(url, "ALTER TABLE procrastinate_jobs RENAME TO elsewhere")
        assert await manager.fetch_job(["smtp"], worker) is None
        assert await manager.list_jobs_to_abort_async() == []
        await manager.finish_job(task, tasks.failed_status(), True)
        assert tasks.outages.failures == 3
        assert (tasks.outages.began is not None) is is_away
