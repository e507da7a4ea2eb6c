"""The versions of the schema, and the way from an SQLite file to PostgreSQL."""

import logging
import sqlite3
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect, text, update

from mailverdict.cli import main
from mailverdict.errors import SettingsError
from mailverdict.service.jobs import schema
from mailverdict.service.jobs.migration import copy_store, upgrade
from mailverdict.service.jobs.queue import JobOutcome, Queue
from mailverdict.service.jobs.schema import CONNECTION, METADATA, SCHEMA_VERSION, about, parse_url
from mailverdict.service.jobs.store import Debit, NewJob, WorkerRow
from tests.doubles.clock import NOON, Clock
from tests.doubles.service import asynchronous, open_store, serving
from tests.service.postgres import Cluster
from tests.service.recount import assert_counted

# Stores as versions before made them, with jobs in every state.
VERSIONS = Path(__file__).parents[1] / "versions"
KEY = "0f1e2d3c-4b5a-4789-8abc-def012345678"  # of their first submission
NAMES = ("done", "failed", "queued", "working", "later", "greylisted", "other", "second")
ROW = WorkerRow("host:1", "1", "regex,mx,mx_blacklist,smtp", None)


def load_sqlite(request: pytest.FixtureRequest, folder: Path) -> str:
    connection = sqlite3.connect(folder / "former.db")
    connection.executescript((VERSIONS / "sqlite-1.sql").read_text())
    connection.close()
    return f"sqlite:///{folder / 'former.db'}"


def load_postgresql(request: pytest.FixtureRequest, folder: Path) -> str:
    cluster: Cluster = request.getfixturevalue("cluster")
    url = cluster.empty_database()
    command = [
        str(cluster.programs / "psql"),
        "-q",
        "-v",
        "ON_ERROR_STOP=1",
        "-h",
        str(cluster.folder),
        "-U",
        "postgres",
    ]
    file = VERSIONS / "postgresql-3.sql"
    subprocess.run([*command, "-f", str(file), name_of(url)], check=True, stdout=subprocess.DEVNULL)
    return url


def name_of(url: str) -> str:
    return url.split("@/")[1].split("?", maxsplit=1)[0]


KINDS = [(load_sqlite, 1), pytest.param(load_postgresql, 3, marks=pytest.mark.servers)]
Load = Callable[[pytest.FixtureRequest, Path], str]


def job_id_of(name: str) -> str:
    return name.encode().hex().ljust(32, "0")


def status_of(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    return left.value.code or 0


@pytest.fixture
def url(cluster: Cluster) -> str:
    return cluster.empty_database()


@pytest.mark.parametrize(("load", "version"), KINDS)
@asynchronous
async def test_store_of_the_version_before_is_taken_over_with_all_jobs_and_quota(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    load: Load,
    version: int,
) -> None:
    url = load(request, tmp_path)
    with pytest.raises(
        SettingsError, match=f"has schema {version}.*run 'mailverdict store upgrade'"
    ):
        open_store(url)
    assert status_of(["store", "upgrade", "--store", url]) == 0
    assert capsys.readouterr().err == f"schema {version} became {SCHEMA_VERSION}\n"
    assert status_of(["store", "upgrade", "--store", url]) == 0
    assert capsys.readouterr().err == f"schema {SCHEMA_VERSION}\n"
    assert_counted(url)
    clock = Clock()
    async with serving(tmp_path, store=url, clock=clock, rate_limit=0) as world:
        assert (await world.poll(job_id_of("done")))["verification"]["email"] == "done@a.org"
        assert (await world.poll(job_id_of("failed")))["status"] == "error"
        for name in set(NAMES) - {"done", "failed", "later"}:
            assert (await world.ended(job_id_of(name)))["status"] == "done", name
        assert (await world.poll(job_id_of("later")))["status"] == "processing"
        clock.now += 31
        assert (await world.ended(job_id_of("later")))["status"] == "done"
        used = [await world.used(f"192.0.2.{n}") for n in (1, 2, 3)]
        assert used == [9, 2, 7]
        emails = ["ada@example.org", "bo@example.org", "cy@example.org"]
        repeated = await world.submit(emails, "regex", **{"idempotency-key": KEY})
        ids = [entry["job_id"] for entry in repeated.json()["data"]["results"]]
        assert [(await world.ended(job_id))["email"] for job_id in ids] == emails
        assert await world.used("192.0.2.1") == 9, (
            "a submission that is repeated after the upgrade is paid once"
        )
    assert_counted(url)


@pytest.mark.parametrize(("load", "version"), KINDS)
def test_upgraded_store_has_the_tables_of_a_new_one(
    tmp_path: Path, request: pytest.FixtureRequest, load: Load, version: int
) -> None:
    url = load(request, tmp_path)
    upgrade(url)
    new = f"sqlite:///{tmp_path / 'new.db'}"
    if version > 1:
        cluster: Cluster = request.getfixturevalue("cluster")
        new = cluster.empty_database()
    open_store(new).close()
    seen = []
    for each in (url, new):
        engine = create_engine(each)
        found = inspect(engine)
        names = sorted(found.get_table_names())
        columns = {
            name: sorted((c["name"], c["nullable"]) for c in found.get_columns(name))
            for name in names
        }
        indexes = {
            name: sorted(str(index["name"]) for index in found.get_indexes(name)) for name in names
        }
        seen.append((columns, indexes))
        if version > 1:
            with engine.connect() as connection:
                left = (
                    "SELECT count(*) FROM pg_proc WHERE starts_with(proname::text, 'procrastinate')"
                )
                assert connection.scalar(text(left)) == 0
        engine.dispose()
    assert seen[0] == seen[1]
    assert set(seen[0][0]) == set(METADATA.tables)


@pytest.mark.servers
def test_api_of_the_version_before_cannot_add_jobs_that_are_not_counted(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = load_postgresql(request, tmp_path)
    upgrade(url)
    engine = create_engine(url)
    statement = (
        "INSERT INTO job (job_id, client, email, validation_type, status, attempt, created_at, updated_at)"
        """ VALUES (repeat('0', 32), 'c', '"ada@a.org"', 'mx', 'queued', 0, 0, 0)"""
    )
    with pytest.raises(Exception, match="null value in column"), engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()


@pytest.mark.parametrize(("load", "version"), KINDS)
def test_failed_upgrade_changes_nothing(
    tmp_path: Path, request: pytest.FixtureRequest, load: Load, version: int
) -> None:
    url = load(request, tmp_path)
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE elsewhere (a integer)"))
        connection.execute(text("CREATE INDEX job_waiting ON elsewhere (a)"))  # in the way
    with pytest.raises(SettingsError, match="job_waiting"):
        upgrade(url)
    with engine.begin() as connection:
        assert connection.scalar(text("SELECT value FROM about WHERE name = 'schema'")) == str(
            version
        )
        columns = {each["name"] for each in inspect(connection).get_columns("job")}
        assert not columns & {"worker", "owner", "priority", "second_pass"}
    engine.dispose()


def test_file_that_a_service_uses_is_not_upgraded(tmp_path: Path) -> None:
    used = open_store(f"sqlite:///{tmp_path / 'jobs.db'}")
    with pytest.raises(SettingsError, match="another service"):
        upgrade(f"sqlite:///{tmp_path / 'jobs.db'}")
    used.close()


@pytest.mark.servers
def test_processes_that_start_at_once_have_one_secret(url: str) -> None:
    with ThreadPoolExecutor(6) as pool:
        stores = list(pool.map(open_store, [url] * 6))
    assert len({store.secret for store in stores}) == 1
    for store in stores:
        store.close()


@pytest.mark.servers
def test_database_that_starts_later_is_awaited(
    cluster: Cluster, url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", lambda _: cluster.start_server())
    schema.LOG.addHandler(handler)
    cluster.stop()
    try:
        open_store(url).close()
    finally:
        schema.LOG.removeHandler(handler)
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "the store cannot be used; trying again for 60 s"
    ]


@pytest.mark.servers
def test_database_that_refuses_is_an_error_that_says_why(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "START_WAIT", 0.1)
    with pytest.raises(SettingsError, match="nowhere-test"):
        open_store(url.replace("/test", "/nowhere-test"))


def test_newer_store_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    open_store(url).close()
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(
            update(about).where(about.c.name == "schema").values(value=str(SCHEMA_VERSION + 1))
        )
    engine.dispose()
    with pytest.raises(
        SettingsError,
        match=f"schema {SCHEMA_VERSION + 1}, this version needs {SCHEMA_VERSION}: update",
    ):
        open_store(url)


def file_with_jobs(folder: Path) -> str:
    """An SQLite store with a finished job, a waiting one and one that was being verified."""
    url = f"sqlite:///{folder / 'jobs.db'}"
    store = open_store(url, Clock())
    jobs = tuple(NewJob(str(n) * 32, f"a{n}\x00\ud800@a.org", "mx") for n in range(3))
    store.submit([Debit("192.0.2.1", 3, jobs)])
    first, *_ = Queue(store).claim(Queue(store).register(ROW), ("mx",)).jobs
    Queue(store).settle([[JobOutcome(first.seq, first.client, "done", '{"result":"valid"}')]])
    with store.writer.begin() as connection:  # the third was never claimed
        connection.execute(text("UPDATE job SET status = 'queued', worker = NULL WHERE seq = 3"))
        connection.execute(text("UPDATE backlog SET waiting = 1, verifying = 1"))
    store.close()
    assert_counted(url)
    return url


@pytest.mark.servers
def test_copy_has_every_job_and_the_quota(tmp_path: Path, url: str) -> None:
    source = file_with_jobs(tmp_path)
    copied = copy_store(source, url)
    assert (copied.jobs, copied.quota) == (3, 1)
    old, new = open_store(source, Clock()), open_store(url, Clock())
    assert new.secret == old.secret  # a submission that is repeated after the move gets its jobs
    ids = [str(n) * 32 for n in range(3)]
    before, after = old.find_jobs(ids), new.find_jobs(ids)
    assert [each.email for each in after] == [f"a{n}\x00\ud800@a.org" for n in range(3)]
    assert after[0] == before[0]
    assert [each.status for each in after] == ["done", "queued", "queued"]
    assert new.account("192.0.2.1").used == old.account("192.0.2.1").used == 3
    new.submit([Debit("192.0.2.1", 1, (NewJob("9" * 32, "b@a.org", "mx"),))])
    [job] = new.find_jobs(["9" * 32])
    assert (job.seq, job.created_at) == (4, NOON)
    assert new.depth().queue() == {"waiting": 3, "verifying": 0, "postponed": 0}
    assert_counted(url)
    old.close()
    new.close()


@pytest.mark.servers
def test_copy_refuses_a_target_with_jobs_and_a_file_in_use(tmp_path: Path, url: str) -> None:
    source = file_with_jobs(tmp_path)
    copy_store(source, url)
    with pytest.raises(SettingsError, match="give an empty database"):
        copy_store(source, url)
    used = open_store(source)
    with pytest.raises(SettingsError, match="another service"):
        copy_store(source, url)
    used.close()
    with pytest.raises(SettingsError, match="from an SQLite file"):
        copy_store(url, source)


@pytest.mark.servers
def test_copy_is_a_command(tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["store", "copy", file_with_jobs(tmp_path), url]) == 0
    assert capsys.readouterr().err == "copied: 3 jobs, 1 rows of quota\n"


def test_connections_have_time_limits_that_the_url_can_change() -> None:
    url = parse_url("postgresql://user@host/database?connect_timeout=60")
    assert url.drivername == "postgresql+psycopg"
    assert dict(url.query) == {**CONNECTION, "connect_timeout": "60"}
    assert parse_url("sqlite:///jobs.db").query == {}


def test_a_mistyped_file_is_not_created_by_an_upgrade(tmp_path: Path) -> None:
    path = tmp_path / "jbos.db"
    with pytest.raises(SettingsError, match="no such file to upgrade; check the path"):
        upgrade(f"sqlite:///{path}")
    assert not path.exists()
