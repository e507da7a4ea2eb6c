"""Jobs, quota and backlog in the database; the same on SQLite and, marked `servers`, on PostgreSQL."""

import os
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import insert, text, update
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from mailverdict.errors import SettingsError
from mailverdict.service.jobs import schema
from mailverdict.service.jobs.queue import CLIENTS_AT_ONCE, JobOutcome, LeaseLost, Queue
from mailverdict.service.jobs.schema import about
from mailverdict.service.jobs.store import (
    Account,
    Debit,
    Depth,
    NewJob,
    QueueFull,
    Store,
    StoredJob,
    WorkerRow,
)
from tests.doubles.clock import NOON, Clock
from tests.doubles.service import open_store
from tests.service.postgres import Cluster
from tests.service.recount import assert_counted

ROW = WorkerRow("host:1", "1", "regex,mx,mx_blacklist,smtp", None)
ALL = tuple(ROW.types.split(","))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.servers)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'jobs.db'}"
    cluster: Cluster = request.getfixturevalue("cluster")
    return cluster.empty_database()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(url: str, clock: Clock) -> Iterator[Store]:
    opened = open_store(url, clock, rate_limit=0)
    yield opened
    assert_counted(url)
    opened.close()


def debit(client: str, cost: int, *job_ids: str, **changed) -> Debit:
    return Debit(
        client,
        cost,
        tuple(NewJob(each, f"{each}@example.org", "mx", **changed) for each in job_ids),
    )


def granted(*remaining: int, now: float = NOON) -> list[Account]:
    return [Account(now, each) for each in remaining]


def find(store: Store, job_id: str) -> StoredJob | None:
    return store.find_jobs([job_id])[0]


def used(store: Store, *clients: str) -> list[int]:
    return [store.account(client).used for client in clients]


def claimed(store: Store, number: int, types: tuple[str, ...] = ALL) -> list[str]:
    return [each.job_id for each in Queue(store).claim(number, types).jobs]


def done(job: StoredJob, payload: str = "{}") -> JobOutcome:
    return JobOutcome(job.seq, job.client, "done", payload)


def test_debit_counts_and_queues(store: Store, clock: Clock) -> None:
    assert [each.remaining for each in store.submit([debit("a", 2, "j1", "j2")])] == [98]
    assert used(store, "a", "b") == [2, 0]
    found = find(store, "j1")
    assert (found.email, found.validation_type, found.status, found.attempt) == (
        "j1@example.org",
        "mx",
        "queued",
        0,
    )
    assert (found.created_at, found.updated_at) == (NOON, NOON)
    clock.now += 86_400
    assert used(store, "a") == [0]


@pytest.mark.parametrize("limit", [5])
def test_debits_of_a_group_are_decided_in_their_order(url: str, limit: int) -> None:
    store = open_store(url, Clock(), daily_limit=limit)
    results = store.submit(
        [debit("a", 3), debit("a", 3), debit("b", 5), debit("a", 2), debit("c", 6)]
    )
    assert [(each.granted, each.remaining) for each in results] == [
        (True, 2), (False, 2), (True, 0), (True, 0), (False, 5),
    ]  # fmt: skip
    assert used(store, "a", "b", "c") == [5, 5, 0]
    store.close()


def test_refused_debit_queues_nothing(store: Store) -> None:
    [refused] = store.submit([debit("a", 101, "j1", "j2")])
    assert not refused.granted
    assert (find(store, "j1"), store.depth(), used(store, "a")) == (None, Depth(), [0])


def test_job_that_exists_fails_alone_and_leaves_nothing_behind(store: Store) -> None:
    store.submit([debit("a", 1, "j1")])
    # An identifier that is taken.
    added, failed = store.submit([debit("a", 1, "j2"), debit("a", 1, "j1")])
    assert (added.granted, added.remaining) == (True, 98)
    assert isinstance(failed, IntegrityError)
    assert used(store, "a") == [2]
    with pytest.raises(IntegrityError):
        store.submit([debit("a", 1, "j1")])
    assert used(store, "a") == [2]


def test_quota_is_read_from_the_disk_by_the_next_process(url: str) -> None:
    first = open_store(url, Clock())
    first.submit([debit("a", 7)])
    first.close()
    second = open_store(url, Clock())
    assert second.submit([debit("a", 94)]) == [Account(NOON, 93, granted=False)]
    second.close()


def test_debits_of_many_clients_are_decided_apart(store: Store) -> None:
    store.submit([debit(f"c{n}", 95) for n in range(30)])
    results = store.submit([debit(f"c{n}", 5 + n % 2) for n in range(30)])
    assert [each.granted for each in results] == [n % 2 == 0 for n in range(30)]
    assert used(store, *(f"c{n}" for n in range(30))) == [95 if n % 2 else 100 for n in range(30)]


def test_debits_of_one_client_are_granted_in_order_as_far_as_the_limit_goes(store: Store) -> None:
    results = store.submit(
        [debit("a", 6), debit("b", 1), debit("a", 95), debit("a", 94), debit("a", 1)]
    )
    assert [(each.granted, each.remaining) for each in results] == [
        (True, 94), (True, 99), (False, 94), (True, 0), (False, 0),
    ]  # fmt: skip


def test_client_fills_half_of_the_queue_and_leaves_the_rest_to_others(url: str) -> None:
    store = open_store(url, Clock(), queue_limit=4)
    ids = iter(range(100))
    results = [
        store.submit([debit(client, count, *(f"j{next(ids)}" for _ in range(count)))])[0]
        for client, count in (("a", 2), ("a", 1), ("b", 1), ("b", 1), ("c", 1))
    ]
    assert [type(each) is QueueFull for each in results] == [False, True, False, True, False]
    assert used(store, "a", "b", "c") == [2, 1, 1], "what is refused costs nothing"
    assert_counted(url)
    store.close()


# Fails the debit that brings the client b to 100 units.
TRIGGER = """
    CREATE TRIGGER refuse BEFORE UPDATE ON quota WHEN NEW.client = 'b' AND NEW.used = 100
    BEGIN SELECT RAISE(ABORT, 'the disk is full'); END
"""


@pytest.fixture
def failing(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path / 'failing.db'}", Clock())
    opened.submit([debit("a", 90), debit("b", 90)])
    with opened.writer.begin() as connection:
        connection.execute(text(TRIGGER))
    yield opened
    opened.close()


def test_debits_of_one_call_fail_together_although_some_fit(failing: Store) -> None:
    with pytest.raises(SQLAlchemyError, match="the disk is full"):
        failing.submit([debit("a", 5), debit("b", 10), debit("b", 1)])
    assert used(failing, "a", "b") == [90, 90]
    assert failing.submit([debit("a", 5)]) == granted(5)


def test_debits_of_one_statement_fail_together(failing: Store) -> None:
    with pytest.raises(SQLAlchemyError, match="the disk is full"):
        failing.submit([debit("a", 5), debit("b", 10)])
    assert used(failing, "a", "b") == [90, 90]
    assert failing.submit([debit("b", 9)]) == granted(1)


def test_commits_of_every_connection_to_sqlite_are_synced(failing: Store) -> None:
    assert failing.driver is not None
    assert failing.driver.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    with failing.writer.begin() as connection:
        assert connection.scalar(text("PRAGMA synchronous")) == 2


# --- the life of a job ---------------------------------------------------------------------------


def test_job_moves_through_its_states(store: Store, clock: Clock) -> None:
    worker = Queue(store).register(ROW)
    store.submit([debit("a", 1, "j1")])
    assert store.depth().queue() == {"waiting": 1, "verifying": 0, "postponed": 0}
    clock.now += 1
    [job] = Queue(store).claim(worker, ALL).jobs
    assert (find(store, "j1").status, find(store, "j1").updated_at) == ("processing", NOON + 1)
    assert Queue(store).claim(worker, ALL).jobs == []
    assert Queue(store).settle(
        [[JobOutcome(job.seq, "a", "processing", attempt=1, due_in=20)]]
    ) == [{job.seq}]
    assert (find(store, "j1").status, find(store, "j1").attempt) == ("processing", 1)
    assert store.depth().queue() == {"waiting": 0, "verifying": 0, "postponed": 1}
    clock.now += 19
    assert Queue(store).claim(worker, ALL).jobs == []
    clock.now += 1
    [job] = Queue(store).claim(worker, ALL).jobs
    assert job.attempt == 1
    clock.now += 10
    Queue(store).settle([[done(job, '{"a": 1}')]])
    found = find(store, "j1")
    assert (found.status, found.verification, found.updated_at) == ("done", '{"a": 1}', NOON + 31)
    assert store.depth() == store.depth().__class__(workers=store.depth().workers)


def test_results_of_a_group_go_to_their_own_jobs_and_the_first_one_stays(store: Store) -> None:
    store.submit([debit("a", 3, "j0", "j1", "j2")])
    j0, j1, j2 = Queue(store).claim(Queue(store).register(ROW), ALL).jobs
    first, second = (
        [done(j0, '"x"'), JobOutcome(j1.seq, "a", "error", message="why")],
        [done(j2, '"y"')],
    )
    assert Queue(store).settle([first, [], second]) == [{j0.seq, j1.seq}, set(), {j2.seq}]
    late = [JobOutcome(each.seq, "a", "error", message="too late") for each in (j0, j1, j2)]
    assert Queue(store).settle([late]) == [set()]
    found = [find(store, f"j{n}") for n in range(3)]
    assert [(each.status, each.verification, each.message) for each in found] == [
        ("done", '"x"', None),
        ("error", None, "why"),
        ("done", '"y"', None),
    ]


def test_room_is_shared_equally_and_a_tenth_is_kept_for_clients_with_nothing_under_way(
    url: str,
) -> None:
    store = open_store(url, Clock(), rate_limit=0, concurrency=20, daily_limit=1000)
    worker = Queue(store).register(ROW)
    store.submit([debit("many", 60, *(f"m{n}" for n in range(60)))])
    assert claimed(store, worker) == [f"m{n}" for n in range(18)]
    assert claimed(store, worker) == []
    store.submit([debit("few", 5, *(f"f{n}" for n in range(5)))])
    assert claimed(store, worker) == ["f0", "f1"]
    assert claimed(store, worker) == [], "it waits until a quarter is free"
    Queue(store).settle([[done(find(store, f"m{n}")) for n in range(18)]])
    assert sorted(claimed(store, worker)) == sorted(
        [*(f"m{n}" for n in range(18, 31)), "f2", "f3", "f4"]
    )
    assert_counted(url)
    store.close()


@pytest.mark.parametrize("waiting", [2000, pytest.param(50_000, marks=pytest.mark.slow)])
def test_a_small_client_gets_half_of_the_claims_beside_one_with_a_long_queue(
    url: str, waiting: int
) -> None:
    store = open_store(url, Clock(), rate_limit=0, concurrency=40, daily_limit=100_000)
    worker = Queue(store).register(ROW)
    for at in range(0, waiting, 1000):
        store.submit([debit("large", 1000, *(f"l{n}" for n in range(at, at + 1000)))])
    Queue(store).settle([[done(each) for each in Queue(store).claim(worker, ALL).jobs]])
    store.submit([debit("small", 60, *(f"s{n}" for n in range(60)))])
    clients: list[str] = []
    while len(clients) < 100:
        jobs = Queue(store).claim(worker, ALL).jobs
        clients += [each.client for each in jobs]
        Queue(store).settle([[done(each) for each in jobs]])
    assert clients[:100].count("small") >= 40
    store.close()


@pytest.mark.slow
def test_number_of_clients_started_together_is_bounded_and_all_have_their_turn(url: str) -> None:
    clock = Clock()
    store = open_store(url, clock, rate_limit=0, concurrency=10_000)
    worker = Queue(store).register(ROW)
    clients = [f"c{n:03}" for n in range(2 * CLIENTS_AT_ONCE)]
    store.submit([debit(client, 1, f"{client}-job") for client in clients])
    turns = []
    for _ in range(2):
        clock.now += 1
        turns.append({each.client for each in Queue(store).claim(worker, ALL).jobs})
    assert [len(each) for each in turns] == [CLIENTS_AT_ONCE] * 2
    assert turns[0] | turns[1] == set(clients)
    store.close()


def test_jobs_start_with_the_burst_and_go_on_at_the_rate(url: str) -> None:
    clock = Clock()
    store = open_store(url, clock, rate_limit=50, rate_burst=100, daily_limit=1000)
    worker = Queue(store).register(ROW)
    for turn in range(3):
        [account] = store.submit([debit("a", 100, *(f"j{turn}n{n}" for n in range(100)))])
        assert account.tokens == 100 - 100 * (turn + 1)
    started = []
    for _ in range(4):
        started.append(len(claimed(store, worker)))
        clock.now += 0.5
        assert claimed(store, worker) == []
        clock.now += 0.5
    assert started == [100, 50, 50, 50]
    assert store.account("a").tokens == 50 - 50
    store.close()


@pytest.mark.parametrize("back", [3_600, 86_400])
def test_used_bucket_is_full_after_the_clock_was_put_back(
    url: str, clock: Clock, back: int
) -> None:
    store = open_store(url, clock, rate_limit=1, rate_burst=100)
    number = Queue(store).register(ROW)
    store.submit([debit("a", 0, *(f"first{n}" for n in range(100)))])
    assert len(claimed(store, number)) == 100
    clock.now -= back
    account = store.submit([debit("a", 0, *(f"later{n}" for n in range(100)))])[0]
    assert account.tokens == 0.0, "all of them start at once"
    assert store.account("a").tokens == 0.0
    Queue(store).settle([[JobOutcome(seq, "a", "done", "{}") for seq in range(1, 101)]])
    assert len(claimed(store, number)) == 100
    clock.now += 10
    store.submit([debit("a", 0, *(f"last{n}" for n in range(100)))])
    Queue(store).settle([[JobOutcome(seq, "a", "done", "{}") for seq in range(101, 201)]])
    assert len(claimed(store, number)) == 10, "the pace goes on from there"
    store.close()


def test_bucket_is_as_it_was_if_another_transaction_read_the_clock_later(
    url: str, clock: Clock
) -> None:
    store = open_store(url, clock, rate_limit=1, rate_burst=100)
    number = Queue(store).register(ROW)
    store.submit([debit("a", 0, *(f"first{n}" for n in range(100)))])
    assert len(claimed(store, number)) == 100
    clock.now -= 1
    Queue(store).settle([[JobOutcome(seq, "a", "done", "{}") for seq in range(1, 101)]])
    store.submit([debit("a", 0, *(f"later{n}" for n in range(100)))])
    assert claimed(store, number) == []
    store.close()


@pytest.mark.parametrize("back", [3_600, 86_400])
def test_retry_beyond_the_longest_wait_is_due(store: Store, clock: Clock, back: int) -> None:
    queue = Queue(store)
    number = queue.register(ROW)
    store.submit([debit("a", 0, "one")])
    assert claimed(store, number) == ["one"]
    longest = max(store.settings.saturation_backoff)
    queue.settle([[JobOutcome(1, "a", "processing", attempt=1, due_in=longest)]])
    assert claimed(store, number) == []
    clock.now -= 1
    assert claimed(store, number) == [], "it waits, as long as the clock may be right"
    clock.now -= back
    assert claimed(store, number) == ["one"]


def test_few_jobs_start_as_soon_as_there_are_tokens_for_all_of_them(url: str) -> None:
    clock = Clock()
    store = open_store(url, clock, rate_limit=50, rate_burst=100, daily_limit=1000)
    worker = Queue(store).register(ROW)
    store.submit([debit("a", 100, *(f"a{n}" for n in range(100)))])
    claimed(store, worker)
    store.submit([debit("a", 10, *(f"b{n}" for n in range(10)))])
    clock.now += 0.19
    assert claimed(store, worker) == []
    clock.now += 0.01
    assert len(claimed(store, worker)) == 10
    store.close()


def test_pace_goes_on_in_the_next_process(url: str) -> None:
    clock, settings = Clock(), {"rate_limit": 1, "rate_burst": 100, "daily_limit": 1000}
    store = open_store(url, clock, **settings)
    for turn in range(2):
        store.submit([debit("a", 100, *(f"j{turn}n{n}" for n in range(100)))])
    number = Queue(store).register(ROW)
    assert len(claimed(store, number)) == 100
    Queue(store).leave(number)
    store.close()
    clock.now += 10
    store = open_store(url, clock, **settings)
    assert len(claimed(store, Queue(store).register(ROW))) == 10
    store.close()


def test_worker_gets_only_the_types_that_it_can_do(store: Store) -> None:
    worker = Queue(store).register(ROW)
    store.submit([debit("a", 1, "j1")])
    assert claimed(store, worker, ("smtp", "regex")) == []
    assert claimed(store, worker, ("mx", "regex")) == ["j1"]


def test_jobs_of_a_worker_that_leaves_wait_again_and_nothing_else_does(
    store: Store, clock: Clock
) -> None:
    store.submit([debit("a", 4, "working", "later", "ended", "single")])
    worker = Queue(store).register(ROW)
    jobs = {each.job_id: each for each in Queue(store).claim(worker, ALL).jobs}
    Queue(store).settle(
        [
            [
                JobOutcome(jobs["later"].seq, "a", "processing", attempt=2, due_in=50),
                done(jobs["ended"]),
            ]
        ]
    )
    store.submit([debit("a", 1, "queued")])
    Queue(store).leave(worker)
    names = ("queued", "working", "later", "ended")
    assert [find(store, name).status for name in names] == [
        "queued",
        "queued",
        "processing",
        "done",
    ]
    assert_counted(str(store.writer.url.render_as_string(hide_password=False)))
    with pytest.raises(LeaseLost):
        Queue(store).claim(worker, ALL)
    assert sorted(claimed(store, Queue(store).register(ROW))) == ["queued", "single", "working"]


def test_claim_whose_answer_was_lost_is_found_again(store: Store) -> None:
    store.submit([debit("a", 2, "j1", "j2")])
    worker = Queue(store).register(ROW)
    known, lost = Queue(store).claim(worker, ALL).jobs
    assert Queue(store).claim(worker, ALL).jobs == []
    assert [each.seq for each in Queue(store).claim(worker, ALL, {known.seq}).jobs] == [lost.seq]


def test_purge_removes_only_what_ended_before_and_days_that_are_over(url: str) -> None:
    clock = Clock()
    store = open_store(url, clock, result_retention="2D")
    worker = Queue(store).register(ROW)
    store.submit([debit("a", 2, "old", "failed"), debit("b", 1)])
    old, failed = Queue(store).claim(worker, ALL).jobs
    Queue(store).settle([[done(old), JobOutcome(failed.seq, "a", "error")]])
    clock.now += 86_400
    store.submit([debit("a", 2, "new", "waiting")])
    new, _ = Queue(store).claim(worker, ALL).jobs
    Queue(store).settle([[done(new)]])
    Queue(store).leave(worker)
    clock.now += 86_400 - 1
    assert Queue(store).purge() == 0
    clock.now += 2
    assert Queue(store).purge() == 2
    assert [find(store, name) is None for name in ("old", "failed", "new", "waiting")] == [
        True,
        True,
        False,
        False,
    ]
    with store.reader.connect() as connection:
        days = connection.execute(text("SELECT client, day FROM quota ORDER BY client")).all()
        assert [tuple(each) for each in days] == [("a", "2027-01-16")]
        assert connection.scalars(text("SELECT client FROM backlog")).all() == ["a"]
    assert_counted(url)
    store.close()


@pytest.mark.parametrize(
    "email", ["a\x00b", "\ud800", "ä@ö.example", "'; drop table job; --", "x" * 5000, '"\\']
)
def test_any_text_is_kept_as_it_is(store: Store, email: str) -> None:
    store.submit([Debit("a", 1, (NewJob("j", email, "mx"),))])
    assert find(store, "j").email == email


def test_jobs_are_found_in_the_order_of_their_identifiers(store: Store) -> None:
    store.submit([debit("a", 2, "j1", "j2")])
    j2, none, j1, again = store.find_jobs(["j2", "x", "j1", "j2"])
    assert (j2.job_id, none, j1.job_id, again) == ("j2", None, "j1", j2)
    assert store.accepts_writes()


def test_file_belongs_to_one_process_at_a_time(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    first = open_store(url)
    with pytest.raises(SettingsError, match="another service"):
        open_store(url)
    first.close()
    open_store(url).close()


def test_store_of_another_schema_is_left_alone(url: str) -> None:
    first = open_store(url)
    with first.writer.begin() as connection:
        connection.execute(update(about).where(about.c.name == "schema").values(value="0"))
    first.close()
    for _ in range(2):  # the refusal gives the store back
        with pytest.raises(SettingsError, match="schema 0"):
            open_store(url)


def test_secret_belongs_to_the_store(url: str, tmp_path: Path) -> None:
    found = []
    for each in (url, url, f"sqlite:///{tmp_path / 'another.db'}"):
        store = open_store(each)
        found.append(store.secret)
        store.close()
    assert found[0] == found[1] != found[2]
    assert len(found[0]) == 64


def test_commit_is_on_the_disk(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'jobs.db'}")
    with store.writer.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
    store.close()


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")
@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_lock_of_a_store_is_of_its_user_only_also_if_an_earlier_version_made_it(
    tmp_path: Path,
) -> None:
    owner = tmp_path / "jobs.db-owner"
    open_store(f"sqlite:///{tmp_path / 'jobs.db'}").close()
    assert owner.stat().st_mode & 0o777 == 0o600
    owner.chmod(0o644)
    open_store(f"sqlite:///{tmp_path / 'jobs.db'}").close()
    assert owner.stat().st_mode & 0o777 == 0o600


def test_new_store_is_readable_by_its_user_only(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    store = open_store(f"sqlite:///{path}")
    store.submit([debit("a", 1, "j1")])
    modes = {
        each.name: each.stat().st_mode & 0o777
        for each in tmp_path.glob("jobs.db*")
        if "owner" not in each.name
    }
    store.close()
    assert modes == {"jobs.db": 0o600, "jobs.db-wal": 0o600, "jobs.db-shm": 0o600}
    path.chmod(0o640)  # as an operator may decide
    open_store(f"sqlite:///{path}").close()
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("path", ["no/such/directory/jobs.db", "."])
def test_store_that_cannot_be_opened_is_one_clear_error(tmp_path: Path, path: str) -> None:
    with pytest.raises(SettingsError, match="store"):
        open_store(f"sqlite:///{tmp_path / path}")


def test_file_that_is_not_a_database_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "letters.txt"
    file.write_text("these are my letters, not a database\n" * 100)
    before = file.read_bytes()
    with pytest.raises(SettingsError, match="cannot be opened"):
        open_store(f"sqlite:///{file}")
    assert file.read_bytes() == before


def test_database_that_does_not_answer_is_one_clear_error_without_its_password(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(schema, "START_WAIT", 0.1)
    monkeypatch.setattr(schema, "START_PAUSE", 0.02)
    with pytest.raises(SettingsError) as caught:
        open_store("postgresql://someone:secret@127.0.0.1:1/nothing")
    assert "cannot be opened" in str(caught.value)
    assert len(caplog.records) == 1
    assert "secret" not in str(caught.value) + caplog.text


def test_error_of_a_statement_does_not_show_addresses(store: Store) -> None:
    store.submit([debit("a", 1, "j1")])
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever the driver raises
        store.submit([debit("a", 1, "j1")])
    assert "j1@example.org" not in str(caught.value)
    with pytest.raises(IntegrityError) as caught:  # a server's error has the row as its detail
        store.submit([debit("a", 1, "j2", message=None, status=None)])
    assert "j2@example.org" not in "".join(traceback.format_exception(caught.value))


def test_schema_of_the_about_table_is_one_row(store: Store) -> None:
    with (
        pytest.raises(Exception, match=r"(?i)unique|duplicate"),
        store.writer.begin() as connection,
    ):
        connection.execute(insert(about).values(name="schema", value="2"))
