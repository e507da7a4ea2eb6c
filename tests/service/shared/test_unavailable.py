"""PostgreSQL that is away, frozen, read-only or full while API and worker run: nothing lost, nothing doubled, quota exact."""

import asyncio
import logging
import operator
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from mailverdict.service import create_app
from mailverdict.service.jobs.program import create_worker_app
from mailverdict.service.jobs.worker import Worker
from tests.doubles.answering_backend import deferred
from tests.doubles.clock import Clock
from tests.doubles.service import RunningService, asynchronous, settings_for, until
from tests.service.postgres import USER, Cluster
from tests.service.recount import assert_counted
from tests.service.shared.rows import rows
from tests.service.shared.test_worker import CountingBackend

pytestmark = [pytest.mark.servers, pytest.mark.timeout(120)]

Full = Callable[[], AbstractContextManager[None]]
KEY = "a-submission-that-is-repeated"
# With their results more than the database has room for when full.
EMAILS = [f"n{n}@d{n % 3}.org" for n in range(60)]
LATER = [f"later{n}@e{n % 3}.org" for n in range(60)]


@pytest.fixture
def url(cluster: Cluster) -> str:
    return cluster.prepared_database()


def name_of(url: str) -> str:
    return url.split("@/")[1].split("?", maxsplit=1)[0]


class Pair:
    """An API and a worker on one database; the worker answers when `gate` is set."""

    def __init__(self, api: RunningService, worker: httpx.AsyncClient, working: Worker) -> None:
        self.api = api
        self.worker = worker
        self.working = working
        self.backend: CountingBackend = api.backend
        self.gate = self.backend.gate
        self.jobs: list[str] = []

    async def begin(self) -> None:
        """Submit jobs, and wait until the worker verifies them."""
        self.jobs = await self.api.submitted(*EMAILS, validation_type="smtp")
        await until(lambda: sum(self.backend.asked.values()) == len(EMAILS))

    async def refused(self, *requests: Awaitable[httpx.Response]) -> None:
        """Each request gets the short envelope with `E1005`."""
        for request in requests:
            reply = await request
            assert (reply.status_code, reply.headers["retry-after"]) == (503, "5"), reply.text
            assert set(reply.json()) == {"error"}
            assert reply.json()["error"]["code"] == "E1005"

    async def health(self, code: int, **expected: str) -> None:
        """Wait until `/healthz` of the API has a status, and what its report says."""
        async with asyncio.timeout(30):
            while (reply := await self.api.get("/healthz")).status_code != code:
                await asyncio.sleep(0.02)
        assert expected.items() <= reply.json().items(), reply.text

    async def worker_health(self, status: int) -> None:
        async with asyncio.timeout(30):
            while (await self.worker.get("/healthz")).status_code != status:
                await asyncio.sleep(0.02)

    async def submit_with_key(self) -> httpx.Response:
        return await self.api.submit(LATER, "smtp", **{"idempotency-key": KEY})

    async def goes_on(self, url: str) -> None:
        """API and worker recover by themselves: all jobs have their result, once, and the quota is exact."""
        async with asyncio.timeout(30):
            while (reply := await self.submit_with_key()).status_code != 202:
                await asyncio.sleep(0.05)
            self.jobs += [entry["job_id"] for entry in reply.json()["data"]["results"]]
            done = "SELECT count(*) FROM job WHERE status = 'done'"
            while rows(url, done) != [(len(self.jobs),)]:
                await asyncio.sleep(0.05)
        for job_id in self.jobs:
            assert (await self.api.poll(job_id))["verification"]["result"] == "valid"
        assert await self.api.used() == len(self.jobs) == len(EMAILS) + len(LATER)
        assert rows(url, "SELECT count(*) FROM job") == [(len(self.jobs),)]
        assert_counted(url)
        await self.health(200, status="ok", store="ok")
        await self.worker_health(200)
        check = await self.api.check("check@a.org", "smtp")
        assert (check.status_code, check.json()["data"]["result"]) == (200, "valid")


@asynccontextmanager
async def api_and_worker(folder: Path, url: str) -> AsyncIterator[Pair]:
    backend, clock = CountingBackend(gate=asyncio.Event()), Clock()
    settings = settings_for(folder, store=url, rate_limit=0, daily_limit=1000)
    app = create_app(settings, backend, clock=clock)
    worker = create_worker_app(settings, backend, clock=clock)
    async with app.router.lifespan_context(app), worker.router.lifespan_context(worker):
        transport = httpx.ASGITransport(app=worker)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://worker.example"
        ) as client:
            working: Worker = worker.state.running["worker"]
            working.retry_delay = 0.05
            pair = Pair(RunningService(app, backend, clock), client, working)
            await pair.begin()
            yield pair


@asynccontextmanager
async def in_thread(state: AbstractContextManager[None]) -> AsyncIterator[None]:
    """Enter and leave a state of the database while API and worker run."""
    await asyncio.to_thread(state.__enter__)
    try:
        yield
    finally:
        await asyncio.to_thread(state.__exit__, None, None, None)


@contextmanager
def away(cluster: Cluster) -> Iterator[None]:
    """The server is stopped."""
    cluster.stop()
    try:
        yield
    finally:
        cluster.start_server()


@asynchronous
async def test_database_that_is_away_refuses_and_what_was_verified_is_written_when_it_is_back(
    tmp_path: Path, cluster: Cluster, url: str
) -> None:
    async with api_and_worker(tmp_path, url) as pair:
        async with in_thread(away(cluster)):
            await pair.refused(
                pair.submit_with_key(),
                pair.api.check(),
                pair.api.check(validation_type="smtp"),
                pair.api.get("/api/quota"),
                pair.api.get(f"/api/verification-result/{pair.jobs[0]}"),
                pair.api.get("/healthz"),
            )
            pair.gate.set()
            await pair.worker_health(503)  # it has results and cannot write them
        await pair.goes_on(url)
    assert set(pair.backend.asked.values()) == {1}, "answers were kept and not asked for again"


@asynchronous
async def test_log_says_in_a_line_that_the_database_is_away_and_in_one_that_it_is_back(
    tmp_path: Path, cluster: Cluster, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with api_and_worker(tmp_path, url) as pair:
        logs = [pair.api.state.outages, pair.working.outages]
        for each in logs:
            each.pause = 0.2
        async with in_thread(away(cluster)):
            await pair.refused(pair.submit_with_key(), pair.api.check())
            pair.gate.set()
            await pair.worker_health(503)
        await pair.goes_on(url)
        await until(lambda: not any(each.has_failed.is_set() for each in logs))
    lines = [record for record in caplog.records if record.levelno > logging.INFO]
    begins = [record.getMessage().startswith("the store cannot be used: ") for record in lines]
    ends = [
        record.getMessage().startswith("the store can be used again, after ") for record in lines
    ]
    assert begins.count(True) == ends.count(True) >= len(logs)
    assert all(map(operator.or_, begins, ends)), lines
    assert not any(record.exc_info for record in lines)


@asynchronous
async def test_worker_without_the_database_for_too_long_stops_asking_and_goes_on_later(
    tmp_path: Path, cluster: Cluster, url: str
) -> None:
    async with api_and_worker(tmp_path, url) as pair:
        pair.working.lost_after = 0.2
        async with in_thread(away(cluster)):
            await pair.worker_health(503)
            await until(lambda: not pair.working.batches)  # others may ask now
            pair.gate.set()
        pair.working.lost_after = 10.0
        await pair.goes_on(url)
    assert set(pair.backend.asked.values()) <= {1, 2}


@contextmanager
def frozen(cluster: Cluster) -> Iterator[None]:
    """The server accepts connections and does not answer, as on a machine that is suspended."""
    server = int((cluster.data / "postmaster.pid").read_text().split("\n", maxsplit=1)[0])
    os.kill(server, signal.SIGSTOP)  # it starts no process any more
    children = [
        int(number) for number in Path(f"/proc/{server}/task/{server}/children").read_text().split()
    ]
    for number in children:
        os.kill(number, signal.SIGSTOP)
    try:
        yield
    finally:
        for number in (*children, server):
            os.kill(number, signal.SIGCONT)


@asynchronous
async def test_requests_wait_for_a_frozen_database_and_one_that_is_repeated_is_paid_once(
    tmp_path: Path, cluster: Cluster, url: str
) -> None:
    async with api_and_worker(tmp_path, url) as pair:
        pair.api.state.answer_seconds = 0.2
        pair.working.lost_after = 0.2
        with frozen(cluster):
            impatient = asyncio.create_task(pair.submit_with_key())
            patient = asyncio.create_task(pair.api.check("ada@a.org", "regex"))
            reply = await pair.api.get("/healthz")
            assert (reply.status_code, reply.json()["error"]["code"]) == (503, "E1005")
            await pair.worker_health(503)
            assert not impatient.done()
            assert not patient.done()
            impatient.cancel()  # the client gives up, and repeats its submission below
            pair.gate.set()
        pair.api.state.answer_seconds = pair.working.lost_after = 10.0
        assert (await patient).status_code == 200
        assert await pair.api.used() in (len(EMAILS) + 1, len(EMAILS) + 1 + len(LATER))
        # The single check, so that the rest is one for each job.
        rows(url, "UPDATE quota SET used = used - 1")
        await pair.goes_on(url)


def set_read_only(cluster: Cluster, url: str, value: str) -> None:
    """What an administrator does, or a database that became a standby: new sessions cannot write."""
    admin, name = cluster.url("postgres"), name_of(url)
    rows(admin, f"ALTER DATABASE {name} SET default_transaction_read_only = {value}")
    rows(admin, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")


@contextmanager
def read_only(cluster: Cluster, url: str) -> Iterator[None]:
    set_read_only(cluster, url, "on")
    try:
        yield
    finally:
        set_read_only(cluster, url, "off")


@asynchronous
async def test_read_only_database_refuses_what_writes_and_answers_what_reads(
    tmp_path: Path, cluster: Cluster, url: str
) -> None:
    async with api_and_worker(tmp_path, url) as pair:
        async with in_thread(read_only(cluster, url)):
            await pair.refused(
                pair.submit_with_key(), pair.api.check(), pair.api.check(validation_type="smtp")
            )
            await pair.health(503, status="failing", store="read-only")
            assert (await pair.api.poll(pair.jobs[0]))["status"] == "processing"
            assert await pair.api.used() == len(EMAILS)
            pair.gate.set()
            await pair.worker_health(503)
        await pair.goes_on(url)
    assert set(pair.backend.asked.values()) == {1}


NO_ROOM = """
CREATE OR REPLACE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER no_room BEFORE INSERT OR UPDATE ON job FOR EACH STATEMENT EXECUTE FUNCTION no_room()
"""


@contextmanager
def error_of_a_full_disk(cluster: Cluster, url: str) -> Iterator[Full]:
    """A trigger raises SQLSTATE 53100, which the server raises on a full disk; it is the same on every machine."""

    @contextmanager
    def full() -> Iterator[None]:
        rows(url, NO_ROOM)
        yield
        rows(url, "DROP TRIGGER no_room ON job")

    yield full


@contextmanager
def full_disk(cluster: Cluster, url: str) -> Iterator[Full]:
    """The database is on a small file system of its own, and a file fills it."""
    disk, admin, name = cluster.folder / "disk", cluster.url("postgres"), name_of(url)
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(disk)]
    if (
        os.geteuid() != 0
        or subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode != 0
    ):
        disk.rmdir()
        pytest.skip("no right to mount a file system that can be filled")
    space, filler = disk / "space", disk / "filler"
    space.mkdir()
    shutil.chown(space, USER, USER)
    rows(admin, f"CREATE TABLESPACE small LOCATION '{space}'")
    rows(admin, f"ALTER DATABASE {name} SET TABLESPACE small")

    @contextmanager
    def full() -> Iterator[None]:
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(4096)):
                pass
        yield
        filler.unlink()

    try:
        yield full
    finally:
        rows(admin, f"DROP DATABASE {name} WITH (FORCE)")
        rows(admin, "DROP TABLESPACE small")
        subprocess.run(["umount", str(disk)], check=True)
        disk.rmdir()


@pytest.mark.parametrize("disk", [error_of_a_full_disk, full_disk])
@asynchronous
async def test_full_database_refuses_submissions_and_keeps_results_until_there_is_room(
    tmp_path: Path,
    cluster: Cluster,
    url: str,
    disk: Callable[[Cluster, str], AbstractContextManager[Full]],
) -> None:
    with disk(cluster, url) as full:
        async with api_and_worker(tmp_path, url) as pair:
            async with in_thread(full()):
                await pair.refused(pair.submit_with_key())
                await pair.health(503, status="failing", store="refuses writes")
                assert (await pair.api.poll(pair.jobs[0]))["status"] == "processing"
                assert await pair.api.used() == len(EMAILS), "what is refused costs nothing"
                pair.gate.set()
                await pair.worker_health(503)
            await pair.goes_on(url)
    assert set(pair.backend.asked.values()) == {1}, "answers were kept and not asked for again"


@asynchronous
async def test_saturated_jobs_are_postponed_although_the_database_is_away(
    tmp_path: Path, cluster: Cluster, url: str
) -> None:
    async with api_and_worker(tmp_path, url) as pair:
        pair.backend.script = dict.fromkeys((f"n{n}" for n in range(60)), deferred)
        async with in_thread(away(cluster)):
            pair.gate.set()
            await pair.worker_health(503)  # it has something to write
        await pair.worker_health(200)
        found = rows(
            url,
            "SELECT status, attempt, due IS NULL, message, count(*) FROM job GROUP BY 1, 2, 3, 4",
        )
        assert found == [("processing", 1, False, None, len(EMAILS))]
