"""Commits whose answer is lost: a submission that was written is accepted, and one that was not is refused."""

from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import Connection, event
from sqlalchemy.exc import OperationalError

from mailverdict.service.jobs.store import Account, Debit, NewJob, Store
from tests.doubles.clock import NOON, Clock
from tests.doubles.service import open_store
from tests.service.postgres import Cluster
from tests.service.recount import assert_counted
from tests.service.shared.rows import rows

pytestmark = pytest.mark.servers
JOBS = (NewJob("j1", "a@example.org", "mx"), NewJob("j2", "b@example.org", "mx"))


@pytest.fixture
def url(cluster: Cluster) -> str:
    return cluster.prepared_database()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = open_store(url, Clock(), daily_limit=2, rate_limit=0)
    yield opened
    assert_counted(url)
    opened.close()


def lose_next_commit(store: Store, loss: Callable[[], object], *, is_carried_out: bool) -> None:
    """Let the writer's connection break at its next COMMIT, after the database carried it out or before."""

    def on_commit(connection: Connection) -> None:
        if is_carried_out:
            connection.exec_driver_sql("COMMIT")
            connection.exec_driver_sql("BEGIN")  # the driver sends a COMMIT only in a transaction
        number = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
        rows(str(store.writer.url), f"SELECT pg_terminate_backend({number})")
        loss()

    event.listen(store.writer, "commit", on_commit, once=True)


def used(store: Store) -> int:
    return store.account("a").used


@pytest.mark.parametrize("is_restarted", [False, True])
def test_submission_that_was_written_is_accepted(
    store: Store, url: str, cluster: Cluster, *, is_restarted: bool
) -> None:
    lose_next_commit(store, cluster.restart if is_restarted else lambda: None, is_carried_out=True)
    granted = store.submit([Debit("a", 2, JOBS)])
    assert granted == [Account(NOON, 0)]
    assert rows(url, "SELECT job_id FROM job ORDER BY seq") == [("j1",), ("j2",)]
    assert used(store) == 2


def test_submission_that_was_not_written_is_refused_and_costs_nothing(
    store: Store, url: str
) -> None:
    lose_next_commit(store, lambda: None, is_carried_out=False)
    with pytest.raises(OperationalError):
        store.submit([Debit("a", 2, JOBS)])
    assert rows(url, "SELECT count(*) FROM job") == [(0,)]
    assert used(store) == 0
    assert store.submit([Debit("a", 2, JOBS)])[0].granted
