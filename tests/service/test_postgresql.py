"""The whole service on PostgreSQL, and a database that drops its connections."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from mailverdict.service.jobs.store import Debit
from tests.doubles.clock import Clock
from tests.doubles.service import asynchronous, open_store, serving
from tests.service.postgres import Cluster

pytestmark = pytest.mark.servers


def drop_connections(cluster: Cluster, url: str) -> None:
    """What a restart of the database does to its clients."""
    database = url.split("@/")[1].split("?", maxsplit=1)[0]
    engine = create_engine(cluster.url("postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(
            text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"),
            {"name": database},
        )
    engine.dispose()


@pytest.fixture
def url(cluster: Cluster) -> str:
    return cluster.empty_database()


def test_jobs_and_quota_outlive_a_restart(tmp_path: Path, url: str) -> None:
    @asynchronous
    async def first() -> None:
        async with serving(tmp_path, store=url, daily_limit=4) as world:
            jobs.extend(await world.submitted("ada@example.org", "bob@example.org"))
            assert (await world.ended(jobs[0]))["verification"]["result"] == "valid"
            assert (await world.check()).status_code == 200

    @asynchronous
    async def second() -> None:
        async with serving(tmp_path, store=url, daily_limit=4) as world:
            assert [(await world.ended(job_id))["status"] for job_id in jobs] == ["done", "done"]
            assert (await world.submit(["a@example.org"] * 2)).json()["error"]["details"][
                "remaining"
            ] == 1

    jobs: list[str] = []
    first()
    second()


@asynchronous
async def test_connections_that_were_dropped_are_made_anew(
    tmp_path: Path, cluster: Cluster, url: str
) -> None:
    async with serving(tmp_path, store=url) as world:
        [job_id] = await world.submitted("ada@example.org")
        await world.ended(job_id)
        drop_connections(cluster, url)
        [later] = await world.submitted("bob@example.org")
        assert (await world.ended(later))["status"] == "done"
        assert (await world.poll(job_id))["status"] == "done"
        assert await world.used() == 2


def test_clients_are_debited_in_one_order_also_beyond_their_limit(cluster: Cluster) -> None:
    url = cluster.prepared_database()
    store, engine = open_store(url, Clock()), create_engine(url)
    store.submit([Debit("a", 1), Debit("b", 1)])
    group = [Debit("b", 9), Debit("a", 60), Debit("a", 60)]  # 120 for the client a
    waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    try:
        with ThreadPoolExecutor(1) as thread, engine.connect() as other, engine.connect() as third:
            other.execute(text("SELECT FROM quota WHERE client = 'a' FOR UPDATE"))
            committed = thread.submit(store.submit, group)
            while not third.scalar(waiting):
                third.rollback()
            free = third.scalars(text("SELECT client FROM quota FOR UPDATE SKIP LOCKED")).all()
            third.rollback()
            other.rollback()
            assert [each.granted for each in committed.result()] == [True, True, False]
        assert free == ["b"], "the row of b is locked after that of a, as in all other transactions"
    finally:
        engine.dispose()
        store.close()
