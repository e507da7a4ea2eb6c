"""The schema of a store on PostgreSQL, and the way there from an SQLite file."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, insert, text, update

from mailverdict.cli import main
from mailverdict.errors import SettingsError
from mailverdict.service.jobs.schema import CONNECTION, METADATA, about, parse_url
from mailverdict.service.jobs.store import (
    CountJobs,
    Debit,
    FindJob,
    JobResult,
    NewJob,
    QuotaUsed,
    Settle,
    Store,
    run_queries,
)
from mailverdict.service.shared import schema
from mailverdict.service.shared.transfer import copy_store
from tests.doubles.service import asynchronous, serving
from tests.service.postgres import Cluster

pytestmark = pytest.mark.servers


@pytest.fixture
def url(cluster: Cluster) -> str:
    return cluster.empty_database()


def make_first_version(url: str) -> None:
    """A store as the version before workers made it, with a job."""
    engine = create_engine(url)
    with engine.begin() as connection:
        METADATA.create_all(connection)
        connection.execute(insert(about).values(name="schema", value="1"))
        connection.execute(
            text(
                "INSERT INTO job (job_id, client, email, validation_type, status, attempt, created_at, updated_at)"
                """ VALUES (repeat('0', 32), 'c', '"ada@a.org"', 'mx', 'queued', 0, 0, 0)"""
            )
        )
    engine.dispose()


def status_of(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    return left.value.code or 0


@asynchronous
async def test_store_of_the_version_before_is_upgraded_and_keeps_its_jobs(tmp_path: Path, url: str) -> None:
    make_first_version(url)
    with pytest.raises(SettingsError, match="run 'mailverdict store upgrade'"):
        Store(url)
    engine = create_engine(url)
    assert schema.upgrade(engine) == (1, schema.SHARED_VERSION)
    assert schema.upgrade(engine) == (schema.SHARED_VERSION, schema.SHARED_VERSION)
    engine.dispose()
    async with serving(tmp_path, store=url) as world:
        assert (await world.ended("0" * 32))["status"] == "done"


def test_processes_that_start_at_once_have_one_secret(url: str) -> None:
    with ThreadPoolExecutor(6) as pool:
        stores = list(pool.map(Store, [url] * 6))
    assert len({store.secret for store in stores}) == 1
    for store in stores:
        store.close()


def test_upgrade_is_a_command(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    make_first_version(url)
    assert status_of(["store", "upgrade", "--store", url]) == 0
    assert capsys.readouterr().err == f"schema 1 became {schema.SHARED_VERSION}\n"
    assert status_of(["store", "upgrade", "--store", url]) == 0
    assert capsys.readouterr().err == f"schema {schema.SHARED_VERSION}\n"
    Store(url).close()


def test_database_that_starts_later_is_awaited(
    cluster: Cluster, url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    attempts = []

    def start_database_after_two_attempts(engine: Engine) -> bool:
        attempts.append(accepts_connections(engine))
        if len(attempts) == 2:
            cluster.start_server()
        return attempts[-1]

    accepts_connections = schema.accepts_connections
    monkeypatch.setattr(schema, "accepts_connections", start_database_after_two_attempts)
    cluster.stop()
    Store(url).close()
    assert attempts == [False, False]
    assert "the store cannot be reached; trying again" in caplog.text


def test_database_that_refuses_is_not_awaited(url: str) -> None:
    with pytest.raises(SettingsError, match="nowhere-test"):
        Store(url.replace("/test", "/nowhere-test"))


def test_newer_store_is_refused(url: str) -> None:
    Store(url).close()
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(update(about).where(about.c.name == "schema").values(value=str(schema.SHARED_VERSION + 1)))
    engine.dispose()
    known = schema.SHARED_VERSION
    with pytest.raises(SettingsError, match=f"schema {known + 1}, this version knows {known}"):
        Store(url)


def test_failed_upgrade_changes_nothing(url: str) -> None:
    make_first_version(url)
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE pace (in_the_way integer)"))
    with pytest.raises(SettingsError, match="pace"):
        schema.upgrade(engine)
    with engine.begin() as connection:
        assert connection.scalar(text("SELECT value FROM about WHERE name = 'schema'")) == "1"
        assert connection.scalar(text("SELECT to_regclass('assignment')")) is None
    engine.dispose()


def file_with_jobs(folder: Path) -> str:
    """An SQLite store with a finished job, a waiting one and one that was being verified."""
    url = f"sqlite:///{folder / 'jobs.db'}"
    store = Store(url)
    jobs = tuple(NewJob(str(n) * 32, f"a{n}\x00\ud800@a.org", "mx") for n in range(3))
    store.commit([Debit("192.0.2.1", "2027-01-15", 3, 100, 1000.0, jobs)])
    store.commit([Settle((JobResult(1, "done", '{"result":"valid"}'),), 1001.0)])
    with store.writer.begin() as connection:
        connection.execute(text("UPDATE job SET status = 'processing' WHERE seq = 2"))
    store.close()
    return url


def test_copy_has_every_job_and_the_quota(tmp_path: Path, url: str) -> None:
    source = file_with_jobs(tmp_path)
    copied = copy_store(source, url)
    assert (copied.jobs, copied.quota) == (3, 1)
    old, new = Store(source), Store(url)
    assert new.secret == old.secret  # a submission that is repeated after the move gets its jobs
    queries = [FindJob(str(n) * 32) for n in range(3)] + [QuotaUsed("192.0.2.1", "2027-01-15")]
    before, after = run_queries(old.reader, queries), run_queries(new.reader, queries)
    assert [each.email for each in after[:3]] == [f"a{n}\x00\ud800@a.org" for n in range(3)]
    assert after[0] == before[0]
    assert [each.status for each in after[:3]] == ["done", "queued", "queued"]
    assert after[3] == before[3] == 3
    new.commit([Debit("192.0.2.1", "2027-01-15", 1, 100, 1002.0, (NewJob("9" * 32, "b@a.org", "mx"),))])
    [job] = run_queries(new.reader, [FindJob("9" * 32)])
    assert job.seq == 4
    [(groups, _)] = run_queries(new.reader, [CountJobs()])
    assert sum(count for _, _, count in groups) == 3
    old.close()
    new.close()


def test_copy_refuses_a_target_with_jobs_and_a_file_in_use(tmp_path: Path, url: str) -> None:
    source = file_with_jobs(tmp_path)
    copy_store(source, url)
    with pytest.raises(SettingsError, match="give an empty database"):
        copy_store(source, url)
    used = Store(source)
    with pytest.raises(SettingsError, match="another service"):
        copy_store(source, url)
    used.close()
    with pytest.raises(SettingsError, match="from an SQLite file"):
        copy_store(url, source)


def test_copy_is_a_command(tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["store", "copy", file_with_jobs(tmp_path), url]) == 0
    assert capsys.readouterr().err == "copied: 3 jobs, 1 rows of quota\n"


def test_connections_have_time_limits_that_the_url_can_change() -> None:
    url = parse_url("postgresql://user@host/database?connect_timeout=60")
    assert url.drivername == "postgresql+psycopg"
    assert dict(url.query) == {**CONNECTION, "connect_timeout": "60"}
    assert parse_url("sqlite:///jobs.db").query == {}
