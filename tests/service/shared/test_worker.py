"""Workers on PostgreSQL: every job once, an owner in one place at a time, nothing lost when one stops or dies."""

import asyncio
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest
from sqlalchemy import create_engine, text

from mailverdict.backend import Batch
from mailverdict.errors import SettingsError
from mailverdict.service import ServiceSettings, create_app
from mailverdict.service.jobs.store import Debit, NewJob, Store
from mailverdict.service.outages import OutageLog
from mailverdict.service.shared.app import create_worker_app, open_worker
from mailverdict.service.shared.store import DatabaseClock, EndedJob, SharedStore
from mailverdict.service.shared.tasks import TaskQueue
from mailverdict.service.shared.worker import WorkerAbilities
from tests.doubles.answering_backend import AnsweringBackend, deferred
from tests.doubles.clock import Clock
from tests.doubles.service import RunningService, asynchronous, serving, settings_for, until, working
from tests.service.postgres import Cluster

pytestmark = pytest.mark.servers


@pytest.fixture
def url(cluster: Cluster) -> str:
    return cluster.prepared_database()


def rows(url: str, statement: str, **values: object) -> list[tuple]:
    """Look into the database from outside."""
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            result = connection.execute(text(statement), values)
            return [tuple(row) for row in result] if result.returns_rows else []
    finally:
        engine.dispose()


class CountingBackend(AnsweringBackend):
    """Counts how often each address is verified, and the verifications of each domain at one time."""

    def __init__(self, seconds: float = 0.0, **options: object) -> None:
        super().__init__(**options)
        self.seconds = seconds
        self.asked: Counter[str] = Counter()
        self.open: Counter[str] = Counter()
        self.most: Counter[str] = Counter()

    async def verify(self, batch: Batch, in_flight=()):
        emails = batch.addresses.to_pylist()
        domains = {email.partition("@")[2] for email in emails}
        self.asked.update(emails)
        self.open.update(domains)
        self.most |= self.open
        try:
            await asyncio.sleep(self.seconds)
            async for event in super().verify(batch, in_flight):
                yield event
        finally:
            self.open.subtract(domains)


@pytest.mark.parametrize("validation_type", ["regex", "mx", "mx_blacklist", "smtp"])
@asynchronous
async def test_job_of_each_type_is_verified(tmp_path: Path, url: str, validation_type: str) -> None:
    async with serving(tmp_path, store=url) as world:
        jobs = await world.submitted("ada@a.org", "bob@b.org", validation_type=validation_type)
        for job_id in jobs:
            assert (await world.ended(job_id))["verification"]["validation_type"] == validation_type
    assert rows(url, "SELECT count(*) FROM assignment") == [(0,)]
    assert rows(url, "SELECT sum(count) FROM tally") == [(2,)]


@asynchronous
async def test_owner_is_asked_in_one_place_at_a_time_and_each_address_once(tmp_path: Path, url: str) -> None:
    backend = CountingBackend(0.02)
    async with serving(tmp_path, backend, store=url, daily_limit=10_000, rate_limit=0) as world:
        settings = world.state.settings
        async with working(settings, backend, world.clock), working(settings, backend, world.clock):
            jobs = []
            for turn in range(10):
                jobs += await world.submitted(
                    *(f"t{turn}n{n}@d{n % 5}.org" for n in range(100)),
                    validation_type="smtp",
                    address=f"192.0.2.{turn}",
                )
            async with asyncio.timeout(60):
                while rows(url, "SELECT count(*) FROM job WHERE status = 'done'") != [(len(jobs),)]:
                    await asyncio.sleep(0.05)
    assert set(backend.asked.values()) == {1}
    assert sum(backend.asked.values()) == 1000
    assert backend.most == Counter({f"d{n}.org": 1 for n in range(5)})


@asynchronous
async def test_stopped_worker_hands_its_owners_over(tmp_path: Path, url: str) -> None:
    stuck, later = AnsweringBackend(gate=asyncio.Event()), AnsweringBackend()
    settings, clock = settings_for(tmp_path, store=url), Clock()
    app = create_app(settings, later, clock=clock)
    async with app.router.lifespan_context(app):
        world = RunningService(app, later, clock)
        async with working(settings, stuck, clock):
            jobs = await world.submitted("ada@a.org", "bob@b.org", validation_type="smtp")
            await until(lambda: len(stuck.batches) == 2)
        assert rows(url, "SELECT count(*) FROM job WHERE status = 'processing'") == [(2,)]
        todo = "SELECT lock FROM procrastinate_jobs WHERE status = 'todo' AND task_name = 'ask' ORDER BY lock"
        assert rows(url, todo) == [("a.org",), ("b.org",)]
        async with working(settings, later, clock):
            for job_id in jobs:
                assert (await world.ended(job_id))["status"] == "done"


@asynchronous
async def test_jobs_of_a_dead_worker_are_verified_and_finished_ones_are_not_asked_again(
    tmp_path: Path, url: str
) -> None:
    async with serving(tmp_path, AnsweringBackend(), store=url) as world:
        done = await world.submitted("done@a.org", validation_type="smtp")
        assert (await world.ended(done[0]))["status"] == "done"
    async with serving(tmp_path, AnsweringBackend(gate=asyncio.Event()), store=url) as world:
        jobs = await world.submitted("ada@a.org", "bob@b.org", validation_type="smtp")
        jobs += await world.submitted("eve@c.org", validation_type="mx")
        await until(lambda: len(world.backend.batches) == 3)
        left = rows(
            url, "SELECT id, queue_name, task_name, lock, args::text FROM procrastinate_jobs WHERE status = 'doing'"
        )
        claims = rows(url, "SELECT seq, validation_type, batch, owner FROM assignment")
    # Put back what a clean stop has tidied up: the claims, and the tasks that are marked as running.
    rows(url, "DELETE FROM procrastinate_jobs WHERE status = 'todo'")
    rows(url, "DELETE FROM assignment")
    rows(url, "UPDATE job SET status = 'processing' WHERE status = 'queued'")
    for number, queue, task, lock, arguments in left:
        rows(
            url,
            "INSERT INTO procrastinate_jobs (id, queue_name, task_name, lock, args, status)"
            " VALUES (:id, :queue, :task, :lock, CAST(:args AS jsonb), 'doing')",
            id=number, queue=queue, task=task, lock=lock, args=arguments,
        )  # fmt: skip
    for seq, validation_type, batch, owner in claims:
        rows(
            url,
            "INSERT INTO assignment (seq, validation_type, batch, owner) VALUES (:seq, :type, :batch, :owner)",
            seq=seq, type=validation_type, batch=batch, owner=owner,
        )  # fmt: skip
    backend = CountingBackend()
    settings = settings_for(tmp_path, store=url)
    async with serving(tmp_path, backend, store=url) as world, working(settings, backend, world.clock) as worker:
        await worker.recover()
        for job_id in jobs:
            assert (await world.ended(job_id))["status"] == "done"
    assert backend.asked == Counter({"ada@a.org": 1, "bob@b.org": 1, "eve@c.org": 1})


@asynchronous
async def test_result_is_written_once_whoever_comes_later(tmp_path: Path, url: str) -> None:
    async with serving(tmp_path, AnsweringBackend(), store=url) as world:
        [job_id] = await world.submitted("ada@a.org", validation_type="smtp")
        record = await world.ended(job_id)
        store = SharedStore(world.state.settings)
        [(seq,)] = rows(url, "SELECT seq FROM job")
        late = EndedJob(seq, "error", None, "too late", "smtp", "", 0.0)
        assert store.settle([(1, [late])]) == [0]
        store.close()
        assert await world.poll(job_id) == record
    assert rows(url, "SELECT status, count FROM tally") == [("done", 1)]


@asynchronous
async def test_second_pass_whose_beginning_is_written_twice_is_begun_once(tmp_path: Path, url: str) -> None:
    async with serving(tmp_path, AnsweringBackend(gate=asyncio.Event()), store=url) as world:
        await world.submitted("ada@a.org", validation_type="smtp")
        claimed = "SELECT seq FROM job WHERE status = 'processing'"
        await until(lambda: rows(url, claimed))
        [(seq,)] = rows(url, claimed)
        store = SharedStore(world.state.settings)
        try:
            for _ in range(2):  # the answer to the first was lost
                assert store.begin_second_pass([seq], 2000.5, 1000.0) == {seq}
            assert store.begin_second_pass([seq], 3000.5, 2100.0) == set()
        finally:
            store.close()


@asynchronous
async def test_saturated_engine_postpones_and_the_job_is_tried_again(tmp_path: Path, url: str) -> None:
    clock = Clock()
    backend = AnsweringBackend({"busy": deferred})
    async with serving(tmp_path, backend, clock=clock, store=url, saturation_backoff="0.001, 0.001") as world:
        [job_id] = await world.submitted("busy@a.org", validation_type="smtp")
        async with asyncio.timeout(20):
            while rows(url, "SELECT attempt FROM job") == [(0,)]:
                await asyncio.sleep(0.01)
        clock.now += 1
        record = None
        async with asyncio.timeout(30):
            while (record := await world.poll(job_id))["status"] != "done":
                clock.now += 1
                await asyncio.sleep(0.05)
        assert record["verification"]["reasons"] == ["throttled"]
    assert len(backend.batches) == 3


@asynchronous
async def test_worker_gets_only_the_types_that_it_can_do(tmp_path: Path, url: str) -> None:
    settings = settings_for(tmp_path, store=url)
    narrow, wide = AnsweringBackend(), AnsweringBackend()
    clock = Clock()
    app = create_app(settings, AnsweringBackend(), clock=clock)
    async with app.router.lifespan_context(app), working(settings, narrow, clock, types=("mx", "regex")):
        world = RunningService(app, narrow, clock)
        [smtp] = await world.submitted("ada@a.org", validation_type="smtp")
        [mx] = await world.submitted("bob@b.org", validation_type="mx")
        assert (await world.ended(mx))["status"] == "done"
        assert (await world.poll(smtp))["status"] == "queued"
        async with working(settings, wide, clock, types=("smtp",)):
            assert (await world.ended(smtp))["status"] == "done"
    assert {kind for kind, _ in narrow.batches} == {"mx"}
    assert {kind for kind, _ in wide.batches} == {"smtp"}


@asynchronous
async def test_owner_with_a_route_is_asked_from_its_egress(tmp_path: Path, url: str) -> None:
    settings = settings_for(tmp_path, store=url, egress_routes=("a.org=berlin",))
    here, berlin, clock = AnsweringBackend(), AnsweringBackend(), Clock()
    app = create_app(settings, AnsweringBackend(), clock=clock)
    async with app.router.lifespan_context(app), working(settings, here, clock):
        world = RunningService(app, here, clock)
        routed, other = await world.submitted("ada@a.org", "bob@b.org", validation_type="smtp")
        assert (await world.ended(other))["status"] == "done"
        assert (await world.poll(routed))["status"] == "processing"
        async with working(settings, berlin, clock, egress="berlin"):
            assert (await world.ended(routed))["status"] == "done"
    assert berlin.batches == [("smtp", ["ada@a.org"])]


@asynchronous
async def test_pace_of_a_client_is_kept_by_all_workers_together(tmp_path: Path, url: str) -> None:
    clock = Clock()
    backend = AnsweringBackend()
    changed = {"rate_limit": 1.0, "rate_burst": 100, "daily_limit": 1000}
    settings = settings_for(tmp_path, store=url, **changed)
    async with (
        serving(tmp_path, backend, clock=clock, store=url, **changed) as world,
        working(settings, backend, clock),
    ):
        for turn in range(3):
            await world.submitted(*(f"t{turn}n{n}@a.org" for n in range(100)), validation_type="mx")
        done = "SELECT count(*) FROM job WHERE status = 'done'"
        async with asyncio.timeout(20):
            while rows(url, done) != [(100,)]:
                await asyncio.sleep(0.01)
        for _ in range(5):
            await world.state.queue.defer_look_up("mx")
            await asyncio.sleep(0.02)
        assert rows(url, done) == [(100,)]
        clock.now += 50
        await world.state.queue.defer_look_up("mx")
        async with asyncio.timeout(20):
            while rows(url, done) != [(150,)]:
                await asyncio.sleep(0.01)


@asynchronous
async def test_announced_burst_is_that_of_all_workers_together(tmp_path: Path, url: str) -> None:
    clock = Clock()
    changed = {"rate_limit": 0.01, "rate_burst": 200, "daily_limit": 1000}
    async with serving(tmp_path, clock=clock, store=url, **changed) as world:
        assert '"burst";r=200;t=0' in (await world.get("/api/quota")).headers["ratelimit"]
        for job_id in await world.submitted(*(f"n{n}@a.org" for n in range(100)), validation_type="mx"):
            await world.ended(job_id)
        world.state.worker.fresh_until = 0.0  # the count is from before the jobs ended
        assert '"burst";r=100;t=10000' in (await world.get("/api/quota")).headers["ratelimit"]
        clock.now += 1000
        world.state.worker.fresh_until = 0.0
        assert '"burst";r=110;t=9000' in (await world.get("/api/quota")).headers["ratelimit"]
        assert '"burst";r=200;t=0' in (await world.get("/api/quota", address="192.0.2.9")).headers["ratelimit"]


@asynchronous
async def test_health_of_a_worker_names_what_it_can_do(tmp_path: Path, url: str) -> None:
    app = create_worker_app(settings_for(tmp_path, store=url), AnsweringBackend(), WorkerAbilities(("mx",), "berlin"))
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://worker.example") as client:
            report = (await client.get("/healthz")).json()
            assert (report["status"], report["types"], report["egress"]) == ("ok", ["mx"], "berlin")
            assert 'mailverdict_jobs{state="waiting"} 0.0' in (await client.get("/metrics")).text
    async with serving(tmp_path, store=url) as world:
        world.state.worker.fresh_until = 0.0  # the count is from before the worker registered
        [worker] = (await world.get("/healthz")).json()["workers"]
        assert worker["types"] == "regex,mx,mx_blacklist,smtp"


@asynchronous
async def test_worker_goes_on_after_the_database_was_away(tmp_path: Path, cluster: Cluster, url: str) -> None:
    gate = asyncio.Event()
    async with serving(tmp_path, AnsweringBackend(gate=gate), store=url) as world:
        jobs = await world.submitted("ada@a.org", "bob@b.org", validation_type="mx")
        await until(lambda: world.backend.batches)
        await asyncio.to_thread(cluster.restart)
        gate.set()
        async with asyncio.timeout(60):
            statuses = set()
            while statuses != {"done"}:
                replies = [await world.get(f"/api/verification-result/{job_id}") for job_id in jobs]
                statuses = {r.json()["data"]["result"]["status"] for r in replies if r.status_code == 200}
                await asyncio.sleep(0.05)
        assert await world.used() == 2
    assert rows(url, "SELECT sum(count) FROM tally") == [(2,)]


def test_worker_needs_postgresql(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="a worker needs PostgreSQL"):
        create_worker_app(ServiceSettings(store=f"sqlite:///{tmp_path / 'jobs.db'}"))


def test_clocks_of_hosts_that_differ_agree_by_the_database(cluster: Cluster, url: str) -> None:
    engine = create_engine(url)
    clocks = [DatabaseClock(lambda skew=skew: 1_000_000.0 + skew) for skew in (-300.0, 0.0, 300.0)]
    with engine.connect() as connection:
        database = float(connection.scalar(text("SELECT extract(epoch FROM clock_timestamp())")))
        for clock in clocks:
            clock.measure(connection)
    engine.dispose()
    for clock in clocks:
        assert clock() == pytest.approx(database, abs=60)


class SlowAnswer:
    """A database whose answer comes a minute after the query, and whose clock is ahead."""

    def __init__(self, clock: Clock, ahead: float) -> None:
        self.clock, self.ahead = clock, ahead

    def scalar(self, _: object) -> float:
        self.clock.now += 60
        return self.clock.now + self.ahead


@pytest.mark.parametrize(("known", "ahead", "offset"), [(0, 0, 0), (3, 3, 3), (0, 300, 300), (0, -300, -240)])
def test_answer_that_took_long_moves_a_clock_only_if_it_is_certainly_wrong(
    known: float, ahead: float, offset: float
) -> None:
    local = Clock()
    clock = DatabaseClock(local)
    clock.offset = known
    clock.measure(SlowAnswer(local, ahead))
    assert clock.offset == offset


@asynchronous
async def test_hosts_whose_clocks_are_minutes_apart_agree_when_a_job_is_due(tmp_path: Path, url: str) -> None:
    backend = AnsweringBackend({"busy": deferred})
    settings = settings_for(tmp_path, store=url, saturation_backoff="0.001, 0.001")
    app = create_app(settings, AnsweringBackend())
    app.state.service.shared.clock.local = lambda: time.time() + 300
    async with (
        app.router.lifespan_context(app),
        open_worker(settings, backend, WorkerAbilities(), time.time) as worker,
    ):
        worker.store.clock.local = lambda: time.time() - 300
        await worker.store.run(worker.store.heartbeat, worker.number)
        world = RunningService(app, backend, Clock())
        [job_id] = await world.submitted("busy@a.org", validation_type="mx")
        async with asyncio.timeout(30):
            while (await world.poll(job_id))["status"] != "done":
                await asyncio.sleep(0.02)
        [(created, updated, now)] = rows(
            url, "SELECT created_at, updated_at, extract(epoch FROM now())::float FROM job WHERE status = 'done'"
        )
        assert len(backend.batches) == 3
        assert abs(now - created) < 60
        assert created < updated <= now + 60


def test_postponed_job_is_due_after_the_clock_was_set_back(tmp_path: Path, url: str) -> None:
    settings = settings_for(tmp_path, store=url)
    api, store = Store(url), SharedStore(settings)
    postponed = NewJob("j1", "ada@a.org", "mx", "processing", attempt=1, due=10_015.0)
    api.commit([Debit("a", "2027-01-15", 1, 5, 10_000.0, (postponed,))])
    try:
        for now, is_due in ((10_014.0, False), (9_941.0, False), (6_400.0, True)):
            assert store.abandoned(now) == ([], ["mx"] if is_due else [])
            assert [each.job_id for each in store.claim("mx", 1, now).jobs] == (["j1"] if is_due else [])
    finally:
        store.close()
        api.close()


@asynchronous
async def test_scheduled_tasks_go_on_after_the_clock_was_set_back(tmp_path: Path, url: str) -> None:
    clock = Clock(7200.0)
    one, two = (TaskQueue(settings_for(tmp_path, store=url), clock, OutageLog()) for _ in range(2))
    deferred: list[list[str]] = []
    for tasks in (one, two):
        await tasks.open()
    for step in (0.0, 9.0, 1.0, 590.0, -3600.0, 10.0):
        clock.now += step
        for tasks in (one, two):
            await tasks.defer_scheduled()
        deferred.append([name for (name,) in rows(url, "SELECT task_name FROM procrastinate_jobs ORDER BY id")])
        rows(url, "DELETE FROM procrastinate_jobs")
    for tasks in (one, two):
        await tasks.close()
    both, recover = ["recover", "purge"], ["recover"]
    assert deferred == [both, [], recover, both, both, recover]


@asynchronous
async def test_old_results_are_purged_and_waiting_jobs_are_not(tmp_path: Path, url: str) -> None:
    clock = Clock()
    settings = settings_for(tmp_path, store=url, result_retention="1h")
    app = create_app(settings, AnsweringBackend(), clock=clock)
    async with app.router.lifespan_context(app), working(settings, AnsweringBackend(), clock, types=("mx",)) as worker:
        world = RunningService(app, AnsweringBackend(), clock)
        [ended] = await world.submitted("ada@a.org", validation_type="mx")
        [waiting] = await world.submitted("bob@b.org", validation_type="smtp")
        await world.ended(ended)
        clock.now += 3601
        await worker.purge()
        assert (await world.get(f"/api/verification-result/{ended}")).status_code == 404
        assert (await world.poll(waiting))["status"] == "queued"


@asynchronous
async def test_task_whose_end_could_not_be_written_is_ended_by_its_own_worker(tmp_path: Path, url: str) -> None:
    settings = settings_for(tmp_path, store=url)
    async with working(settings, AnsweringBackend(), Clock()) as worker:
        await until(lambda: worker.runner is not None and worker.runner.worker_id is not None)
        rows(
            url,
            "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, status, worker_id)"
            " VALUES ('smtp', 'ask', 'a.org', 'doing', :worker)",
            worker=worker.runner.worker_id,
        )
        held = "SELECT count(*) FROM procrastinate_jobs WHERE lock = 'a.org'"
        worker.orphans = set()
        await worker.end_orphans()
        assert rows(url, held) == [(1,)], "it may have begun since the last look"
        await worker.end_orphans()
        assert rows(url, held) == [(0,)]


@asynchronous
async def test_worker_that_a_purge_has_removed_is_listed_again(tmp_path: Path, url: str) -> None:
    async with working(settings_for(tmp_path, store=url), AnsweringBackend(), Clock()) as worker:
        for task in worker.side_tasks:  # they write heartbeats, too
            task.cancel()
        await asyncio.wait(worker.side_tasks)
        rows(url, "UPDATE worker SET seen_at = 0")  # its process was suspended for longer than a purge waits
        await worker.purge()
        assert rows(url, "SELECT count(*) FROM worker") == [(0,)]
        await worker.write_heartbeat()
        assert rows(url, "SELECT id, types FROM worker") == [(worker.number, worker.row.types)]
        assert await worker.store.run(worker.store.has_check_worker, "smtp")


@asynchronous
async def test_interrupted_verification_leaves_its_jobs_to_the_next_task(tmp_path: Path, url: str) -> None:
    gate = asyncio.Event()
    backend = CountingBackend(gate=gate)
    clock = Clock()
    settings = settings_for(tmp_path, store=url)
    app = create_app(settings, backend, clock=clock)
    async with app.router.lifespan_context(app), working(settings, backend, clock) as worker:
        world = RunningService(app, backend, clock)
        [job_id] = await world.submitted("ada@a.org", validation_type="smtp")
        await until(lambda: backend.batches)
        worker.interrupt()  # as when the database was lost for too long
        await until(lambda: not worker.batches)
        gate.set()
        async with asyncio.timeout(20):
            while (await world.poll(job_id))["status"] != "done":
                await worker.recover()
                await asyncio.sleep(0.02)
    assert backend.asked == Counter({"ada@a.org": 2})
