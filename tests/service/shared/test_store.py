"""Transactions of several workers on the same rows: each ends, whatever the other has locked first."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from mailverdict.service.jobs.store import Debit, NewJob, Store
from mailverdict.service.shared.store import EndedJob, SharedStore
from tests.doubles.service import asynchronous, settings_for, until
from tests.service.postgres import Cluster
from tests.service.shared.test_worker import rows

pytestmark = pytest.mark.servers
BATCH, NOW = 7, 1000.0
ENDED = EndedJob(1, "done", "{}", None, "mx", "valid", NOW)
REGEX = replace(ENDED, validation_type="regex")
SEQS = (1, 2, 3)  # of the jobs in the database

# What a worker writes about jobs that one look-up has claimed. In each pair one may be late: its task was given to
# another worker. Workers 1 and 17 add to the same rows of `tally`.
CLAIMED: dict[str, Callable[[SharedStore], object]] = {
    "settle": lambda store: store.settle([(1, [replace(ENDED, seq=seq) for seq in (3, 2, 1)])]),
    "settle two groups": lambda store: store.settle([(1, [replace(ENDED, seq=3)]), (1, [replace(REGEX, seq=2)])]),
    "settle as worker 17": lambda store: store.settle([(17, [replace(REGEX, seq=1)]), (17, [replace(ENDED, seq=2)])]),
    "postpone": lambda store: store.postpone((3, 2, 1), 1, NOW + 60, NOW),
    "second pass": lambda store: store.begin_second_pass((3, 2, 1), NOW + 60, NOW),
    "owners": lambda store: store.assign_owners({"a.org": [1, 3], "b.org": [2]}),
    "give back": lambda store: store.give_back(BATCH, NOW),
    "abandoned": lambda store: store.abandoned(NOW),
}


@pytest.fixture
def url(cluster: Cluster) -> str:
    """A database whose queries find the rows in another order than that of the jobs: the last one first."""
    url = cluster.prepared_database()
    name = url.split("@/")[1].split("?", maxsplit=1)[0]
    for plan in ("indexscan", "bitmapscan", "indexonlyscan", "nestloop"):
        rows(url, f"ALTER DATABASE {name} SET enable_{plan} = off")
    return url


@pytest.fixture
def store(tmp_path: Path, url: str) -> Iterator[SharedStore]:
    submit(url, "a", "b", "c")
    opened = SharedStore(settings_for(tmp_path, store=url))
    yield opened
    opened.close()


def submit(url: str, *clients: str) -> None:
    api = Store(url)
    for client in clients:
        api.commit([Debit(client, "2027-01-15", 1, 1000, NOW, (NewJob(f"job-of-{client}", "ada@a.org", "mx"),))])
    api.close()


def reverse(url: str, table: str, column: str) -> None:
    """Write the rows anew, the last one first."""
    for (value,) in rows(url, f"SELECT {column} FROM {table} ORDER BY {column} DESC"):
        rows(url, f"UPDATE {table} SET {column} = {column} WHERE {column} = :value", value=value)


async def both_end(url: str, blocked: str, first: Callable[[], object], second: Callable[[], object]) -> None:
    """Run two transactions that meet at a row which a third one has locked."""
    name = url.split("@/")[1].split("?", maxsplit=1)[0]
    waiting = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}' AND wait_event_type = 'Lock'"
    engine = create_engine(url)
    running: list[asyncio.Task[object]] = []
    with engine.connect() as connection:
        connection.execute(text(f"{blocked} FOR UPDATE"))
        for each in (first, second):
            running.append(asyncio.create_task(asyncio.to_thread(each)))
            await until(lambda: rows(url, waiting)[0][0] + sum(task.done() for task in running) == len(running))
    engine.dispose()
    await asyncio.gather(*running)


@pytest.mark.parametrize("first", CLAIMED)
@asynchronous
async def test_two_transactions_about_claimed_jobs_end(url: str, store: SharedStore, first: str) -> None:
    for second in CLAIMED.values():
        rows(url, "TRUNCATE job, tally RESTART IDENTITY CASCADE")
        submit(url, "a", "b", "c")
        assert [each.seq for each in store.claim("mx", BATCH, NOW).jobs] == list(SEQS)
        reverse(url, "job", "seq")
        reverse(url, "assignment", "seq")
        await both_end(url, "SELECT FROM job WHERE seq = 2", partial(CLAIMED[first], store), partial(second, store))


@pytest.mark.parametrize("is_claim_first", [True, False])
@asynchronous
async def test_claim_of_due_and_queued_jobs_and_late_results_end(
    url: str, store: SharedStore, *, is_claim_first: bool
) -> None:
    rows(url, "UPDATE job SET status = 'processing', due = 0, attempt = 1 WHERE seq = 3")
    results: list[object] = []

    def claim() -> None:
        results.append({each.seq for each in store.claim("mx", BATCH, NOW).jobs})

    def settle() -> None:
        store.settle([(1, [replace(ENDED, seq=seq) for seq in SEQS])])

    pair = (claim, settle) if is_claim_first else (settle, claim)
    await both_end(url, "SELECT FROM job WHERE seq = 2", *pair)
    assert rows(url, "SELECT DISTINCT status FROM job") == [("done",)]
    claimed = {seq for (seq,) in rows(url, "SELECT seq FROM assignment")}
    assert claimed <= results[0] if is_claim_first else claimed == results[0] == set()


@pytest.mark.parametrize("is_claim_first", [True, False])
@asynchronous
async def test_claim_and_purge_of_old_buckets_end(url: str, store: SharedStore, *, is_claim_first: bool) -> None:
    for client in "abc":
        rows(url, "INSERT INTO pace VALUES (:client, 0, 0)", client=client)
    reverse(url, "pace", "client")

    def claim() -> None:
        assert len(store.claim("mx", BATCH, NOW).jobs) == len(SEQS)

    def purge() -> None:
        store.purge(NOW - 1, "2027-01-15")

    pair = (claim, purge) if is_claim_first else (purge, claim)
    await both_end(url, "SELECT FROM pace WHERE client = 'b'", *pair)


@asynchronous
async def test_purge_and_a_migration_that_changes_the_workers_end(url: str, store: SharedStore) -> None:
    rows(url, "INSERT INTO worker (name, version, types, seen_at) VALUES ('old', '1', 'mx', 0)")

    def migrate() -> None:
        with store.engine.begin() as connection:
            connection.execute(text("CREATE TABLE added (seq bigint REFERENCES job (seq))"))
            connection.execute(text("ALTER TABLE worker ADD COLUMN added integer"))

    await both_end(url, "SELECT FROM worker", lambda: store.purge(NOW - 1, "2027-01-15"), migrate)


@asynchronous
async def test_only_one_purge_runs_at_a_time(url: str, store: SharedStore) -> None:
    store.settle([(1, [replace(ENDED, seq=seq) for seq in SEQS])])
    removed: list[int] = []

    def purge() -> None:
        removed.append(store.purge(NOW + 1, "2027-01-15"))

    await both_end(url, "SELECT FROM job WHERE seq = 2", purge, purge)
    assert removed == [0, len(SEQS)]
