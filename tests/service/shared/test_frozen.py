"""A process that stops in the middle of a transaction on PostgreSQL: it holds up nobody but the clients it has locked."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, text

from mailverdict.service.jobs.group_committer import PATIENCE
from mailverdict.service.jobs.queue import LEASE, JobOutcome, Queue
from mailverdict.service.jobs.schema import SESSION, RowsLocked, lift_limits, locked_version
from mailverdict.service.jobs.store import Debit, NewJob, WorkerRow
from tests.doubles.service import RunningService, asynchronous, open_store, serving, until
from tests.service.postgres import Cluster

pytestmark = pytest.mark.servers
ADA, BOB = "198.51.100.1", "198.51.100.2"
ROW = WorkerRow("host:1", "1", "mx", None)


@pytest.fixture
def url(cluster: Cluster) -> str:
    return cluster.prepared_database()


@asynccontextmanager
async def locked(url: str, statement: str) -> AsyncIterator[Connection]:
    """Row locks of a transaction that does not go on, in a session without limits."""
    engine = create_engine(url)
    with engine.connect() as connection:
        connection.execute(text(statement))
        yield connection
        connection.rollback()
    engine.dispose()


async def submit(world: RunningService, client: str) -> int:
    return (await world.submit(["ada@example.org"], "mx", address=client)).status_code


def test_sessions_have_limits_of_the_server(url: str) -> None:
    store = open_store(url)
    with store.writer.connect() as connection:
        for name, value in SESSION.items():
            shown = "SELECT setting FROM pg_settings WHERE name = :name"
            setting = connection.scalar(text(shown), {"name": name})
            if name.startswith("tcp_"):
                assert setting == "0", "the tests use a socket of this host"
            else:
                assert setting == value
    store.close()


def test_stopped_process_loses_its_locks_before_its_clients_are_refused() -> None:
    assert int(SESSION["idle_in_transaction_session_timeout"]) < PATIENCE * 1000
    assert int(SESSION["lock_timeout"]) < 1000


def test_changes_of_the_schema_have_no_limits(url: str) -> None:
    store = open_store(url)
    limit = text("SELECT current_setting('lock_timeout')")
    idle = text("SELECT current_setting('idle_in_transaction_session_timeout')")
    with store.writer.begin() as connection:
        locked_version(connection)
        assert connection.scalar(limit) == "0"
        lift_limits(connection)
        assert connection.scalar(idle) == "0"
    with store.writer.begin() as connection:
        assert connection.scalar(limit) == "250ms"
        assert connection.scalar(idle) == "4s"
    store.close()


@pytest.mark.parametrize("table", ["quota", "backlog"])
@asynchronous
async def test_other_clients_go_on_and_the_locked_one_is_served_when_the_lock_ends(
    tmp_path: Path, url: str, table: str
) -> None:
    async with serving(tmp_path, store=url) as world:
        assert await submit(world, ADA) == 202
        statement = f"SELECT FROM {table} WHERE client = '{ADA}' FOR UPDATE"
        async with locked(url, statement):
            waiting = [asyncio.create_task(submit(world, ADA)) for _ in range(8)]
            replies = await asyncio.gather(*(submit(world, f"{BOB}{n}") for n in range(9)))
            assert replies == [202] * 9
            assert not any(task.done() for task in waiting)
            assert list(world.state.writes.locked) == [ADA]
            reply = await world.get("/healthz")
            assert (reply.status_code, reply.json()["store"]) == (200, "ok")
        assert await asyncio.gather(*waiting) == [202] * 8
        quota = await world.get("/api/quota", address=ADA)
        assert quota.json()["used"] == 9


@asynchronous
async def test_client_whose_lock_does_not_end_gets_503_and_the_service_is_healthy(
    tmp_path: Path, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path, store=url) as world:
        assert await submit(world, ADA) == 202
        async with locked(url, f"SELECT FROM quota WHERE client = '{ADA}' FOR UPDATE"):
            refused = asyncio.create_task(submit(world, ADA))
            await until(lambda: ADA in world.state.writes.locked)
            world.state.writes.clock = lambda: float("inf")
            assert await refused == 503
            assert (await world.get("/healthz")).status_code == 200
            assert await submit(world, BOB) == 202
        world.state.writes.clock = lambda: 0.0
        assert await submit(world, ADA) == 202
    assert "look for a process that is stopped" in caplog.text
    assert "the store cannot be used" not in caplog.text


@asynchronous
async def test_lease_is_renewed_while_the_rows_of_a_dead_worker_are_locked(url: str) -> None:
    store = open_store(url)
    queue = Queue(store)
    mine, dead = queue.register(ROW), queue.register(ROW)
    store.submit([Debit("a", 1, (NewJob("j1", "ada@example.org", "mx"),))])
    assert len(queue.claim(dead, ("mx",)).jobs) == 1
    with store.writer.begin() as connection:
        connection.execute(text("UPDATE worker SET lease = 0"))
    async with locked(url, "SELECT FROM backlog FOR UPDATE"):
        with pytest.raises(RowsLocked):
            queue.renew(mine)
        lease = text(f"SELECT lease > extract(epoch FROM now()) FROM worker WHERE id = {mine}")
        with store.reader.begin() as connection:
            assert connection.scalar(lease)
        with pytest.raises(RowsLocked):
            queue.settle([[JobOutcome(1, "a", "error", message="late")]])
    assert queue.renew(mine)
    assert len(queue.claim(mine, ("mx",)).jobs) == 1
    store.close()


def test_lease_beyond_its_longest_ends_after_the_clock_was_put_back(url: str) -> None:
    store = open_store(url)
    queue = Queue(store)
    mine, dead = queue.register(ROW), queue.register(ROW)
    now = "extract(epoch FROM clock_timestamp())"
    with store.writer.begin() as connection:
        connection.execute(text(f"UPDATE worker SET lease = {now} + 86400 WHERE id = {dead}"))
    assert queue.renew(mine)
    with store.reader.begin() as connection:
        left = connection.scalar(text(f"SELECT lease - {now} FROM worker WHERE id = {dead}"))
    assert left <= LEASE
    store.close()
