"""An SQLite store that is full or read-only: nothing is accepted, lost or doubled, and the service goes on by itself."""

import asyncio
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from mailverdict.errors import SettingsError
from mailverdict.service import ServiceSettings, run
from mailverdict.service.jobs.store import Debit, Depth, NewJob, Store
from tests.doubles.answering_backend import AnsweringBackend
from tests.doubles.service import RunningService, asynchronous, open_store, serving, until
from tests.doubles.tables import first_ones

STATES = {  # of the writer's connection: what SQLite does without room on the disk, and on a file system that is read-only
    "full": ("PRAGMA max_page_count = 1", "PRAGMA max_page_count = 1000000"),
    "read-only": ("PRAGMA query_only = ON", "PRAGMA query_only = OFF"),
}


async def execute(world: RunningService, statement: str) -> None:
    """Execute a statement on the writer's connection, in its thread."""

    def work() -> None:
        connection = world.state.store.writer.raw_connection()  # begins no transaction
        connection.driver_connection.execute(statement)
        connection.close()

    await asyncio.get_running_loop().run_in_executor(world.state.store.writers, work)


async def unhealthy(world: RunningService) -> None:
    reply = await world.get("/healthz")
    assert (reply.status_code, reply.json()["status"], reply.json()["store"]) == (
        503,
        "failing",
        "refuses writes",
    )


@pytest.mark.parametrize("state", first_ones(STATES, 1))
@asynchronous
async def test_results_wait_until_the_store_can_be_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, state: str
) -> None:
    begins, ends = STATES[state]
    backend = AnsweringBackend(gate=asyncio.Event())
    async with serving(tmp_path, backend, daily_limit=10_000, rate_limit=0) as world:
        world.state.worker.retry_delay = 0.01
        emails = [f"n{n}@example.org" for n in range(100)]
        jobs = await world.submitted(*emails, validation_type="smtp")
        await until(lambda: backend.batches)
        await execute(world, begins)
        reply = None
        while reply is None or reply.status_code == 202:  # until the pages that are there are full
            reply = await world.submit(
                [f"{'x' * 60}{len(jobs)}n{n}@{'y' * 60}.example.org" for n in range(100)]
            )
            jobs += (
                [entry["job_id"] for entry in reply.json()["data"]["results"]]
                if reply.status_code == 202
                else []
            )
        assert (reply.status_code, reply.json()["error"]["code"], reply.headers["retry-after"]) == (
            503,
            "E1005",
            "5",
        )
        await unhealthy(world)
        failures = world.state.outages.failures
        backend.gate.set()
        # The worker tries to write its results.
        await until(lambda: world.state.outages.failures > failures + 2)
        await unhealthy(world)
        assert (await world.poll(jobs[0]))["status"] == "processing"
        assert await world.used() == len(jobs), "what is refused costs nothing"
        await execute(world, ends)
        assert {(await world.ended(job_id))["verification"]["result"] for job_id in jobs} == {
            "valid"
        }
        assert (await world.get("/healthz")).json()["store"] == "ok"
        asked = [email for _, batch in backend.batches for email in batch]
        assert len(asked) == len(jobs), "answers were kept and not asked for again"
        assert (await world.submit(emails, "smtp")).status_code == 202
        assert await world.used() == len(jobs) + 100
        await until(lambda: "the store can be used again" in caplog.text)
    lines = [
        record.getMessage() for record in caplog.records if record.levelname in ("ERROR", "WARNING")
    ]
    assert ["the store cannot be used" in line for line in lines] == [True, False], lines
    assert "Traceback" not in caplog.text


@asynchronous
async def test_single_check_is_refused_at_no_cost_while_the_store_cannot_be_written(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, AnsweringBackend(), daily_limit=10) as world:
        assert (
            await world.check("ada@example.org", "mx")
        ).status_code == 200  # by now the first purge is over
        driver = world.state.store.driver
        assert driver is not None
        driver.execute("PRAGMA query_only = ON")
        reply = await world.check("ada@example.org", "mx")
        assert (reply.status_code, reply.json()["error"]["code"], reply.headers["retry-after"]) == (
            503,
            "E1005",
            "5",
        )
        await unhealthy(world)
        driver.execute("PRAGMA query_only = OFF")
        assert (await world.check("ada@example.org", "mx")).status_code == 200
        assert await world.used() == 2


@contextmanager
def unprivileged() -> Iterator[None]:
    """Under an account for which the mode of a file counts, if this is root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_read_only_file_is_refused_at_the_start() -> None:
    with tempfile.TemporaryDirectory(prefix="mailverdict-") as folder:
        file = Path(folder) / "jobs.db"
        Path(folder).chmod(0o777)
        open_store(f"sqlite:///{file}").close()
        Path(f"{file}-owner").unlink()
        file.chmod(0o444)
        with (
            unprivileged(),
            pytest.raises(SettingsError, match=r"jobs.db' cannot be written; check its owner"),
        ):
            open_store(f"sqlite:///{file}")
        file.chmod(0o666)
        with unprivileged():
            open_store(f"sqlite:///{file}").close()  # the refused one has released its lock


def test_folder_that_cannot_be_written_is_refused_at_the_start() -> None:
    with tempfile.TemporaryDirectory(prefix="mailverdict-") as folder:
        Path(folder).chmod(0o555)
        try:
            with (
                unprivileged(),
                pytest.raises(
                    SettingsError,
                    match=r"jobs.db-owner' cannot be created or opened; check its folder",
                ),
            ):
                open_store(f"sqlite:///{folder}/jobs.db")
        finally:
            Path(folder).chmod(0o755)


def test_store_that_is_full_at_the_start_is_one_clear_error(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    store = open_store(url)
    store.submit([Debit("a", 1, (NewJob("j1", "ada@example.org", "mx"),))])
    full = "CREATE TRIGGER full BEFORE UPDATE ON about BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
    with store.writer.begin() as connection:
        connection.exec_driver_sql(full)
    store.close()
    with pytest.raises(
        SettingsError, match=r"jobs.db' cannot be written: database or disk is full; look whether"
    ):
        run(ServiceSettings(store=url), port=0)
    open_store(url).close()  # the lock was released


@asynchronous
async def test_service_starts_although_the_store_goes_away_at_that_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures = [OperationalError("SELECT", {}, Exception("terminating connection"))]
    count = Store.depth

    def depth(store: Store) -> Depth:
        if failures:
            raise failures.pop()
        return count(store)

    monkeypatch.setattr(Store, "depth", depth)
    async with serving(tmp_path, AnsweringBackend()) as world:
        assert not failures
        assert "the store cannot be used: terminating connection" in caplog.text
        await world.submitted("ada@example.org")
