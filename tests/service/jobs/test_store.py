"""Jobs and quota in the database; the same on SQLite and, marked `servers`, on PostgreSQL."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import insert, text, update
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from mailverdict.errors import SettingsError
from mailverdict.service.jobs.schema import about
from mailverdict.service.jobs.store import (
    Claim,
    CountJobs,
    Debit,
    DebitResult,
    DueJobs,
    FindJob,
    JobResult,
    NewJob,
    NextJobs,
    Ping,
    Postpone,
    Purge,
    QuotaUsed,
    Release,
    Settle,
    Store,
    StoredJob,
    run_queries,
)
from mailverdict.service.shared import schema
from tests.service.postgres import Cluster

DAY = "2027-01-15"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.servers)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'jobs.db'}"
    cluster: Cluster = request.getfixturevalue("cluster")
    return cluster.empty_database()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = Store(url)
    yield opened
    opened.close()


def debit(client: str, cost: int, *job_ids: str, limit: int = 100, day: str = DAY, **changed) -> Debit:
    jobs = tuple(NewJob(each, f"{each}@example.org", "mx", **changed) for each in job_ids)
    return Debit(client, day, cost, limit, 1000.0, jobs)


def ask(store: Store, *questions):
    return run_queries(store.reader, questions)


def find(store: Store, job_id: str) -> StoredJob | None:
    return ask(store, FindJob(job_id))[0]


def test_debit_counts_and_queues(store: Store) -> None:
    assert store.commit([debit("a", 2, "j1", "j2")]) == [DebitResult(granted=True, remaining=98)]
    assert ask(store, QuotaUsed("a", DAY), QuotaUsed("b", DAY), QuotaUsed("a", "2027-01-16")) == [2, 0, 0]
    found = find(store, "j1")
    assert (found.email, found.validation_type, found.status, found.attempt) == ("j1@example.org", "mx", "queued", 0)
    assert (found.created_at, found.updated_at) == (1000.0, 1000.0)


def test_debits_of_a_group_are_decided_in_their_order(store: Store) -> None:
    group = [debit("a", 3, limit=5), debit("a", 3, limit=5), debit("b", 5, limit=5), debit("a", 2, limit=5)]
    assert store.commit(group) == [
        DebitResult(granted=True, remaining=2),
        DebitResult(granted=False, remaining=2),
        DebitResult(granted=True, remaining=0),
        DebitResult(granted=True, remaining=0),
    ]
    assert ask(store, QuotaUsed("a", DAY), QuotaUsed("b", DAY)) == [5, 5]


def test_refused_debit_queues_nothing(store: Store) -> None:
    store.commit([debit("a", 2, "j1", "j2", limit=1)])
    assert ask(store, FindJob("j1"), CountJobs(), QuotaUsed("a", DAY)) == [None, ([], 0), 0]


def test_job_that_exists_fails_alone_and_leaves_nothing_behind(store: Store) -> None:
    store.commit([debit("a", 1, "j1")])
    granted, failed = store.commit([debit("a", 1, "j2"), debit("a", 1, "j1")])  # an identifier that is taken
    assert granted == DebitResult(granted=True, remaining=98)
    assert isinstance(failed, IntegrityError)
    assert ask(store, QuotaUsed("a", DAY)) == [2]
    with pytest.raises(IntegrityError):
        store.commit([debit("a", 1, "j1")])
    assert ask(store, QuotaUsed("a", DAY)) == [2]


def test_quota_is_read_from_the_disk_by_the_next_process(url: str) -> None:
    first = Store(url)
    first.commit([debit("a", 7)])
    first.close()
    second = Store(url)
    assert second.commit([debit("a", 94)]) == [DebitResult(granted=False, remaining=93)]
    second.close()


def test_debits_of_many_clients_with_different_limits_are_decided_apart(store: Store) -> None:
    store.commit([debit(f"c{n}", 5, limit=10) for n in range(30)])
    results = store.commit([debit(f"c{n}", 4, limit=8 if n % 2 else 9) for n in range(30)])
    assert [each.granted for each in results] == [n % 2 == 0 for n in range(30)]
    assert ask(store, *(QuotaUsed(f"c{n}", DAY) for n in range(30))) == [5 if n % 2 else 9 for n in range(30)]


def test_debits_of_one_client_are_granted_in_order_as_far_as_the_limit_goes(store: Store) -> None:
    results = store.commit([debit("a", 6), debit("b", 1), debit("a", 95), debit("a", 94), debit("a", 1)])
    granted = [(each.granted, each.remaining) for each in results]
    assert granted == [(True, 94), (True, 99), (False, 94), (True, 0), (False, 0)]


# Fails the debit that brings the client b to 100 units.
TRIGGER = """
    CREATE TRIGGER refuse BEFORE UPDATE ON quota WHEN NEW.client = 'b' AND NEW.used = 100
    BEGIN SELECT RAISE(ABORT, 'the disk is full'); END
"""


@pytest.fixture
def failing(tmp_path: Path) -> Iterator[Store]:
    opened = Store(f"sqlite:///{tmp_path / 'failing.db'}")
    opened.commit([debit("a", 90), debit("b", 90)])
    with opened.writer.begin() as connection:
        connection.execute(text(TRIGGER))
    yield opened
    opened.close()


def test_debits_that_are_on_disk_are_granted_although_later_ones_fail(failing: Store) -> None:
    granted, *failed = failing.commit([debit("a", 5), debit("b", 10), debit("b", 1)])
    assert granted == DebitResult(granted=True, remaining=5)
    assert all(isinstance(each, SQLAlchemyError) for each in failed)
    assert len(failed) == 2
    assert ask(failing, QuotaUsed("a", DAY), QuotaUsed("b", DAY)) == [95, 90]


def test_debits_of_one_statement_fail_together(failing: Store) -> None:
    with pytest.raises(SQLAlchemyError, match="the disk is full"):
        failing.commit([debit("a", 5), debit("b", 10)])
    assert ask(failing, QuotaUsed("a", DAY), QuotaUsed("b", DAY)) == [90, 90]
    assert failing.commit([debit("b", 9)]) == [DebitResult(granted=True, remaining=1)]


def test_commits_of_every_connection_to_sqlite_are_synced(failing: Store) -> None:
    assert failing.driver is not None
    assert failing.driver.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    with failing.writer.begin() as connection:
        assert connection.scalar(text("PRAGMA synchronous")) == 2


def test_waiting_jobs_come_one_of_each_client_in_turn(store: Store) -> None:
    store.commit([debit("many", 5, *(f"m{n}" for n in range(5))), debit("few", 2, "f0", "f1"), debit("one", 1, "o0")])
    [jobs] = ask(store, NextJobs((("few", 2), ("one", 5), ("many", 3), ("nobody", 1))))
    assert [each.job_id for each in jobs] == ["m0", "f0", "o0", "m1", "f1", "m2"]
    assert [each.client for each in jobs] == ["many", "few", "one", "many", "few", "many"]


def test_waiting_jobs_are_counted_by_client_and_second(store: Store) -> None:
    store.commit([debit("a", 2, "a0", "a1")._replace(now=1000.25)])
    store.commit([debit("b", 1, "b0")._replace(now=1000.5)])
    store.commit([debit("a", 1, "a2")._replace(now=1007.25)])
    assert ask(store, CountJobs()) == [([("a", 1000.25, 2), ("b", 1000.5, 1), ("a", 1007.25, 1)], 0)]


def test_job_moves_through_its_states(store: Store) -> None:
    store.commit([debit("a", 1, "j1")])
    seq = find(store, "j1").seq
    store.commit([Claim((seq,), 1001.0)])
    assert (find(store, "j1").status, find(store, "j1").updated_at) == ("processing", 1001.0)
    assert ask(store, NextJobs((("a", 10),)), CountJobs()) == [[], ([], 0)]
    store.commit([Postpone((seq,), 1, 1020.0, 1002.0)])
    assert (find(store, "j1").status, find(store, "j1").attempt) == ("processing", 1)
    assert ask(store, DueJobs(1019.0, 10), CountJobs()) == [[], ([], 1)]
    assert [each.job_id for each in ask(store, DueJobs(1020.0, 10))[0]] == ["j1"]
    postponed_at = find(store, "j1").updated_at
    assert ask(store, DueJobs(postponed_at - 59.0, 10)) == [[]]
    assert [each.job_id for each in ask(store, DueJobs(postponed_at - 61.0, 10))[0]] == ["j1"], "the clock was set back"
    store.commit([Release((seq,), 1020.0)])
    assert ask(store, CountJobs(), DueJobs(9999.0, 10)) == [([("a", 1000.0, 1)], 0), []]
    store.commit([Settle((JobResult(seq, "done", '{"a": 1}'),), 1030.0)])
    found = find(store, "j1")
    assert (found.status, found.verification, found.updated_at) == ("done", '{"a": 1}', 1030.0)


def test_results_of_a_group_go_to_their_own_jobs(store: Store) -> None:
    store.commit([debit("a", 3, "j0", "j1", "j2")])
    seqs = [find(store, f"j{n}").seq for n in range(3)]
    results = (JobResult(seqs[0], "done", '"x"'), JobResult(seqs[1], "error", message="why"))
    store.commit([Settle(results, 1.0), Settle((), 1.0), Settle((JobResult(seqs[2], "done", '"y"'),), 2.0)])
    found = [find(store, f"j{n}") for n in range(3)]
    assert [(each.status, each.verification, each.message, each.updated_at) for each in found] == [
        ("done", '"x"', None, 1.0),
        ("error", None, "why", 1.0),
        ("done", '"y"', None, 2.0),
    ]


def test_recovery_queues_what_a_worker_had_and_nothing_else(url: str) -> None:
    first = Store(url)
    first.commit([debit("a", 4, "queued", "working", "later", "ended")])
    seqs = {name: find(first, name).seq for name in ("working", "later", "ended")}
    first.commit([Claim(tuple(seqs.values()), 1.0)])
    first.commit([Postpone((seqs["later"],), 2, 50.0, 2.0), Settle((JobResult(seqs["ended"], "done", "{}"),), 2.0)])
    first.close()
    second = Store(url)
    second.recover(9.0)
    names = ("queued", "working", "later", "ended")
    assert [find(second, name).status for name in names] == ["queued", "queued", "processing", "done"]
    assert ask(second, CountJobs()) == [([("a", 1000.0, 2)], 1)]
    second.close()


def test_purge_removes_only_what_ended_before_and_days_that_are_over(store: Store) -> None:
    store.commit([debit("a", 4, "old", "new", "waiting", "failed"), debit("a", 1, day="2027-01-13")])
    ids = {name: find(store, name).seq for name in ("old", "new", "failed")}
    store.commit([Settle((JobResult(ids["old"], "done", "{}"), JobResult(ids["failed"], "error")), 100.0)])
    store.commit([Settle((JobResult(ids["new"], "done", "{}"),), 200.0)])
    assert store.commit([Purge(150.0, "2027-01-14")]) == [2]
    assert [find(store, name) is None for name in ("old", "failed", "new", "waiting")] == [True, True, False, False]
    assert ask(store, QuotaUsed("a", DAY), QuotaUsed("a", "2027-01-13")) == [4, 0]


@pytest.mark.parametrize("email", ["a\x00b", "\ud800", "ä@ö.example", "'; drop table job; --", "x" * 5000, '"\\'])
def test_any_text_is_kept_as_it_is(store: Store, email: str) -> None:
    store.commit([Debit("a", DAY, 1, 100, 1.0, (NewJob("j", email, "mx"),))])
    assert find(store, "j").email == email


def test_queries_of_a_group_return_in_their_order(store: Store) -> None:
    store.commit([debit("a", 2, "j1", "j2")])
    j2, none, used, j1, pong = ask(store, FindJob("j2"), FindJob("x"), QuotaUsed("a", DAY), FindJob("j1"), Ping())
    assert (j2.job_id, none, used, j1.job_id, pong) == ("j2", None, 2, "j1", True)


def test_file_belongs_to_one_process_at_a_time(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    first = Store(url)
    with pytest.raises(SettingsError, match="another service"):
        Store(url)
    first.close()
    Store(url).close()


def test_store_of_another_schema_is_left_alone(url: str) -> None:
    first = Store(url)
    with first.writer.begin() as connection:
        connection.execute(update(about).where(about.c.name == "schema").values(value="0"))
    first.close()
    for _ in range(2):  # the refusal gives the store back
        with pytest.raises(SettingsError, match="schema 0"):
            Store(url)


def test_secret_belongs_to_the_store(url: str, tmp_path: Path) -> None:
    found = []
    for each in (url, url, f"sqlite:///{tmp_path / 'another.db'}"):
        store = Store(each)
        found.append(store.secret)
        store.close()
    assert found[0] == found[1] != found[2]
    assert len(found[0]) == 64


def test_commit_is_on_the_disk(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'jobs.db'}")
    with store.writer.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
    store.close()


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")
def test_new_store_is_readable_by_its_user_only(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    store = Store(f"sqlite:///{path}")
    store.commit([debit("a", 1, "j1")])
    modes = {each.name: each.stat().st_mode & 0o777 for each in tmp_path.glob("jobs.db*") if "owner" not in each.name}
    store.close()
    assert modes == {"jobs.db": 0o600, "jobs.db-wal": 0o600, "jobs.db-shm": 0o600}
    path.chmod(0o640)  # as an operator may decide
    Store(f"sqlite:///{path}").close()
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("path", ["no/such/directory/jobs.db", "."])
def test_store_that_cannot_be_opened_is_one_clear_error(tmp_path: Path, path: str) -> None:
    with pytest.raises(SettingsError, match="store"):
        Store(f"sqlite:///{tmp_path / path}")


def test_file_that_is_not_a_database_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "letters.txt"
    file.write_text("these are my letters, not a database\n" * 100)
    before = file.read_bytes()
    with pytest.raises(SettingsError, match="cannot be opened"):
        Store(f"sqlite:///{file}")
    assert file.read_bytes() == before


def test_database_that_does_not_answer_is_one_clear_error_without_its_password(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(schema, "START_WAIT", 0.1)
    monkeypatch.setattr(schema, "START_PAUSE", 0.02)
    with pytest.raises(SettingsError) as caught:
        Store("postgresql://someone:secret@127.0.0.1:1/nothing")
    assert "cannot be opened" in str(caught.value)
    assert len(caplog.records) == 1
    assert "secret" not in str(caught.value) + caplog.text


def test_error_of_a_statement_does_not_show_addresses(store: Store) -> None:
    store.commit([debit("a", 1, "j1")])
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever the driver raises
        store.commit([debit("a", 1, "j1")])
    assert "j1@example.org" not in str(caught.value)


def test_schema_of_the_about_table_is_one_row(store: Store) -> None:
    with pytest.raises(Exception, match=r"(?i)unique|duplicate"), store.writer.begin() as connection:
        connection.execute(insert(about).values(name="schema", value="2"))
