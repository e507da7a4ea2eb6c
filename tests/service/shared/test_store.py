"""Transactions of several processes on the same rows: each ends, whatever the other has locked first."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import pytest
from sqlalchemy import create_engine, event, text

from mailverdict.service.jobs.queue import JobOutcome, LeaseLost, Queue
from mailverdict.service.jobs.schema import lift_limits
from mailverdict.service.jobs.store import Debit, NewJob, Store, WorkerRow
from tests.doubles.clock import NOON, Clock
from tests.doubles.service import asynchronous, open_store, until
from tests.service.postgres import Cluster
from tests.service.recount import assert_counted
from tests.service.shared.rows import rows

pytestmark = pytest.mark.servers
ROW = WorkerRow("host:1", "1", "regex,mx,mx_blacklist,smtp", None)
TYPES = tuple(ROW.types.split(","))
CLIENTS = {1: "a", 2: "b", 3: "c"}  # by the job of each
WORKER, DEAD = 1, 2  # their numbers


def outcomes(status: str, *seqs: int, due_in: float | None = None) -> list[JobOutcome]:
    return [JobOutcome(seq, CLIENTS[seq], status, due_in=due_in) for seq in seqs]


def submission(*clients: str, name: str = "more") -> list[Debit]:
    return [
        Debit(client, 1, (NewJob(f"{name}-of-{client}", "ada@a.org", "mx"),)) for client in clients
    ]


def ignoring_loss(method: Callable[..., object], *given: object) -> None:
    with suppress(LeaseLost):
        method(*given)


# What processes write, of which two at a time may meet. The jobs are those of worker 1, whose lease may have lapsed.
WRITES: dict[str, Callable[[Store], object]] = {
    "settle": lambda store: Queue(store).settle([outcomes("done", 3, 2, 1)]),
    "settle two groups": lambda store: Queue(store).settle(
        [outcomes("done", 3), outcomes("error", 2)]
    ),
    "postpone": lambda store: Queue(store).settle([outcomes("processing", 3, 1, 2, due_in=60)]),
    "route": lambda store: ignoring_loss(
        Queue(store).route, WORKER, {3: "a.org", 1: "b.org", 2: "a.org"}
    ),
    "leave": lambda store: Queue(store).leave(WORKER),
    "renew": lambda store: Queue(store).renew(DEAD),
    "claim": lambda store: ignoring_loss(Queue(store).claim, WORKER, TYPES),
    "submit": lambda store: store.submit(submission("c", "a", "b", name=str(id(store)))),
    "purge": lambda store: Queue(store).purge(),
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
def stores(url: str) -> Iterator[list[Store]]:
    opened = [open_store(url, Clock(), rate_limit=0) for _ in range(2)]
    for each in opened:  # their transactions wait for each other, however slow this machine is
        event.listen(each.writer, "begin", lift_limits)
    yield opened
    assert_counted(url)
    for each in opened:
        each.close()


def begin(url: str, store: Store) -> None:
    """A job of each client, claimed by a worker that has died."""
    rows(url, "TRUNCATE job, backlog, quota, worker, owner RESTART IDENTITY CASCADE")
    store.submit(submission("a", "b", "c", name="job"))
    assert [Queue(store).register(ROW), Queue(store).register(ROW)] == [WORKER, DEAD]
    assert [each.seq for each in Queue(store).claim(WORKER, TYPES).jobs] == [1, 2, 3]
    rows(url, "UPDATE worker SET lease = 0 WHERE id = 1")
    for table, column in (("job", "seq"), ("backlog", "client"), ("quota", "client")):
        for (value,) in rows(url, f"SELECT {column} FROM {table} ORDER BY {column} DESC"):
            rows(
                url, f"UPDATE {table} SET {column} = {column} WHERE {column} = :value", value=value
            )


async def both_end(
    url: str, blocked: str, first: Callable[[], object], second: Callable[[], object]
) -> None:
    """Run two transactions that meet at a row which a third one has locked."""
    name = url.split("@/")[1].split("?", maxsplit=1)[0]
    waiting = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}' AND wait_event_type = 'Lock'"
    engine = create_engine(url)
    running: list[asyncio.Task[object]] = []
    with engine.connect() as connection:
        connection.execute(text(f"{blocked} FOR UPDATE"))
        for each in (first, second):
            running.append(asyncio.create_task(asyncio.to_thread(each)))
            await until(
                lambda: (
                    rows(url, waiting)[0][0] + sum(task.done() for task in running) == len(running)
                )
            )
    engine.dispose()
    await asyncio.gather(*running)


@pytest.mark.parametrize("blocked", ["job WHERE seq = 2", "backlog WHERE client = 'b'"])
@pytest.mark.parametrize("first", WRITES)
@asynchronous
async def test_two_transactions_about_the_same_jobs_end(
    url: str, stores: list[Store], first: str, blocked: str
) -> None:
    one, two = stores
    for second in WRITES.values():
        begin(url, one)
        await both_end(
            url, f"SELECT FROM {blocked}", partial(WRITES[first], one), partial(second, two)
        )
        assert_counted(url)


@asynchronous
async def test_worker_that_was_suspended_has_nothing_left(url: str, stores: list[Store]) -> None:
    one, two = stores
    begin(url, one)
    two.submit(submission("b"))
    rows(url, "INSERT INTO owner (name, worker) VALUES ('a.org', 1)")
    assert Queue(two).renew(DEAD)
    assert rows(url, "SELECT count(*) FROM job WHERE status = 'queued' AND worker IS NULL") == [
        (4,)
    ]
    assert rows(url, "SELECT name FROM owner") == []
    assert not Queue(one).renew(WORKER)
    for attempt in (
        lambda: Queue(one).claim(WORKER, TYPES),
        lambda: Queue(one).route(WORKER, {1: "a.org"}),
        lambda: Queue(one).lease_owners(WORKER, None, {}, 10),
    ):
        with pytest.raises(LeaseLost):
            attempt()
    assert [each.seq for each in Queue(two).claim(DEAD, TYPES).jobs] == [1, 2, 3, 4]
    assert Queue(one).settle([outcomes("done", 1)]) == [{1}], (
        "what it had verified counts, if it comes first"
    )
    assert Queue(two).settle([outcomes("error", 1, 2)]) == [{2}]
    assert rows(url, "SELECT status FROM job WHERE seq IN (1, 2) ORDER BY seq") == [
        ("done",),
        ("error",),
    ]


@asynchronous
async def test_owner_belongs_to_one_worker_and_single_checks_come_first(
    url: str, stores: list[Store]
) -> None:
    one, two = stores
    numbers = [Queue(one).register(ROW), Queue(two).register(ROW)]
    ids = [f"{client}{n}" for client in ("a", "b") for n in range(3)]
    one.submit([Debit(each[0], 1, (NewJob(each, f"{each}@x.org", "smtp"),)) for each in ids])
    jobs = Queue(one).claim(numbers[0], TYPES).jobs
    Queue(one).route(numbers[0], {each.seq: "x.org" for each in jobs})
    assert Queue(one).lease_owners(numbers[0], None, {}, 10) == ({"x.org"}, False)
    assert Queue(two).lease_owners(numbers[1], None, {}, 10) == (set(), False)
    assert Queue(one).lease_owners(numbers[0], None, {}, 10) == ({"x.org"}, False), (
        "the answer to the first was lost"
    )
    check = NewJob("check", "c@x.org", "smtp", "processing", owner="x.org", priority=1)
    two.submit([Debit("c", 1, (check,))])
    taken = [each.job_id for each in Queue(one).take("x.org", 5)]
    assert taken == ["check", "a0", "b0", "a1", "b1"]
    Queue(one).release_owner(numbers[0], "x.org")
    assert Queue(two).lease_owners(numbers[1], None, {}, 10) == ({"x.org"}, False)


@asynchronous
async def test_worker_begins_with_ten_owners_at_once(url: str, stores: list[Store]) -> None:
    store = stores[0]
    queue = Queue(store)
    number = queue.register(ROW)
    new = [NewJob(f"job{n}", f"ada@d{n}.org", "smtp") for n in range(25)]
    store.submit([Debit("a", len(new), tuple(new))])
    jobs = queue.claim(number, TYPES).jobs
    queue.route(number, {job.seq: job.email.partition("@")[2] for job in jobs})
    asked: dict[str, set[str]] = {}
    sizes = []
    for _ in range(4):
        names, _ = queue.lease_owners(number, None, asked, 100)
        sizes.append(len(names))
        asked.update({name: {"a"} for name in names})
    assert sizes == [10, 10, 5, 0]
    assert sorted(asked) == sorted(f"d{n}.org" for n in range(25))


@asynchronous
async def test_time_of_jobs_and_quota_is_the_databases(url: str) -> None:
    store = open_store(url)
    [account] = store.submit(submission("a"))
    [(now, created)] = rows(url, "SELECT extract(epoch FROM now())::float, created_at FROM job")
    assert abs(now - created) < 60
    assert abs(account.now - now) < 60
    assert abs(now - NOON) > 60
    store.close()
