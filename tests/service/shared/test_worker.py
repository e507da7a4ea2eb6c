"""Workers on PostgreSQL: every job once, an owner in one place at a time, nothing lost when one stops or dies."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import httpx
import pytest

from mailverdict.backend import Batch
from mailverdict.errors import SettingsError
from mailverdict.service import ServiceSettings, create_app
from mailverdict.service.jobs import worker as worker_module
from mailverdict.service.jobs.program import create_worker_app
from mailverdict.service.jobs.queue import Queue
from mailverdict.service.jobs.worker import WorkerAbilities
from tests.doubles.answering_backend import AnsweringBackend, deferred
from tests.doubles.clock import Clock
from tests.doubles.service import (
    RunningService,
    asynchronous,
    serving,
    settings_for,
    until,
    working,
)
from tests.service.postgres import Cluster
from tests.service.recount import assert_counted
from tests.service.shared.rows import rows

pytestmark = pytest.mark.servers


@pytest.fixture
def url(cluster: Cluster) -> str:
    return cluster.prepared_database()


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
    assert_counted(url)


@asynchronous
async def test_owner_is_asked_in_one_place_at_a_time_and_each_address_once(
    tmp_path: Path, url: str
) -> None:
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
        assert rows(url, "SELECT status, owner FROM job") == [
            ("processing", "a.org"),
            ("processing", "b.org"),
        ]
        assert rows(url, "SELECT name FROM owner") == rows(url, "SELECT id FROM worker") == []
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
        # What is left when the process is killed: nothing is tidied up. Another worker notices that the lease lapsed.
        world.state.outages.failed = lambda error: None
        left = {
            table: rows(url, f"SELECT * FROM {table}")
            for table in ("job", "backlog", "worker", "owner")
        }
    for table, values in left.items():
        rows(url, f"DELETE FROM {table}")
        for row in values:
            names = [f"v{n}" for n in range(len(row))]
            override = "OVERRIDING SYSTEM VALUE" if table == "worker" else ""
            placed = ", ".join(f":{name}" for name in names)
            rows(
                url,
                f"INSERT INTO {table} {override} VALUES ({placed})",
                **dict(zip(names, row, strict=True)),
            )
    assert_counted(url)
    backend = CountingBackend()
    settings = settings_for(tmp_path, store=url)
    async with serving(tmp_path, backend, store=url) as world:
        assert {(await world.poll(job_id))["status"] for job_id in jobs} == {"processing"}
        await asyncio.sleep(1)
        assert not backend.batches, "the lease of the dead worker is not over"
        rows(url, "UPDATE worker SET lease = 0 WHERE id = (SELECT min(id) FROM worker)")
        async with working(settings, backend, world.clock):
            for job_id in jobs:
                assert (await world.ended(job_id))["status"] == "done"
    assert_counted(url)
    assert backend.asked == Counter({"ada@a.org": 1, "bob@b.org": 1, "eve@c.org": 1})


@asynchronous
async def test_saturated_engine_postpones_and_the_job_is_tried_again(
    tmp_path: Path, url: str
) -> None:
    clock = Clock()
    backend = AnsweringBackend({"busy": deferred})
    async with serving(
        tmp_path, backend, clock=clock, store=url, saturation_backoff="0.001, 0.001"
    ) as world:
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
    async with (
        app.router.lifespan_context(app),
        working(settings, narrow, clock, types=("mx", "regex")),
    ):
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
        await asyncio.sleep(1)  # both look several times
        assert rows(url, done) == [(100,)]
        clock.now += 50
        async with asyncio.timeout(20):
            while rows(url, done) != [(150,)]:
                await asyncio.sleep(0.01)


@asynchronous
async def test_announced_burst_is_that_of_all_workers_together(tmp_path: Path, url: str) -> None:
    clock = Clock()
    changed = {"rate_limit": 0.01, "rate_burst": 200, "daily_limit": 1000}
    async with serving(tmp_path, clock=clock, store=url, **changed) as world:
        assert '"burst";r=200;t=0' in (await world.get("/api/quota")).headers["ratelimit"]
        for job_id in await world.submitted(
            *(f"n{n}@a.org" for n in range(100)), validation_type="mx"
        ):
            await world.ended(job_id)
        assert '"burst";r=100;t=10000' in (await world.get("/api/quota")).headers["ratelimit"]
        clock.now += 1000
        assert '"burst";r=110;t=9000' in (await world.get("/api/quota")).headers["ratelimit"]
        assert (
            '"burst";r=200;t=0'
            in (await world.get("/api/quota", address="192.0.2.9")).headers["ratelimit"]
        )


@asynchronous
async def test_health_of_a_worker_names_what_it_can_do(tmp_path: Path, url: str) -> None:
    app = create_worker_app(
        settings_for(tmp_path, store=url), AnsweringBackend(), WorkerAbilities(("mx",), "berlin")
    )
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://worker.example"
        ) as client:
            report = (await client.get("/healthz")).json()
            assert (report["status"], report["types"], report["egress"]) == ("ok", ["mx"], "berlin")
            assert 'mailverdict_jobs{state="waiting"} 0.0' in (await client.get("/metrics")).text
    async with serving(tmp_path, store=url) as world:
        [worker] = (await world.get("/healthz")).json()["workers"]
        assert worker["types"] == "regex,mx,mx_blacklist,smtp"


@asynchronous
async def test_worker_goes_on_after_the_database_was_away(
    tmp_path: Path, cluster: Cluster, url: str
) -> None:
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
                statuses = {
                    r.json()["data"]["result"]["status"] for r in replies if r.status_code == 200
                }
                await asyncio.sleep(0.05)
        assert await world.used() == 2
    assert_counted(url)


def test_worker_needs_postgresql(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="a worker needs PostgreSQL"):
        create_worker_app(ServiceSettings(store=f"sqlite:///{tmp_path / 'jobs.db'}"))


@asynchronous
async def test_old_results_are_purged_and_waiting_jobs_are_not(tmp_path: Path, url: str) -> None:
    clock = Clock()
    settings = settings_for(tmp_path, store=url, result_retention="1h")
    app = create_app(settings, AnsweringBackend(), clock=clock)
    async with (
        app.router.lifespan_context(app),
        working(settings, AnsweringBackend(), clock, types=("mx",)) as worker,
    ):
        world = RunningService(app, AnsweringBackend(), clock)
        [ended] = await world.submitted("ada@a.org", validation_type="mx")
        [waiting] = await world.submitted("bob@b.org", validation_type="smtp")
        await world.ended(ended)
        clock.now += 3601
        Queue(worker.store).purge()
        assert (await world.get(f"/api/verification-result/{ended}")).status_code == 404
        assert (await world.poll(waiting))["status"] == "queued"


@asynchronous
async def test_worker_whose_lease_others_let_lapse_registers_again_and_goes_on(
    tmp_path: Path, url: str
) -> None:
    gate = asyncio.Event()
    backend, clock = CountingBackend(gate=gate), Clock()
    settings = settings_for(tmp_path, store=url)
    app = create_app(settings, backend, clock=clock)
    async with app.router.lifespan_context(app), working(settings, backend, clock) as worker:
        world = RunningService(app, backend, clock)
        [job_id] = await world.submitted("ada@a.org", validation_type="smtp")
        await until(lambda: backend.batches)
        number = worker.number
        # As another one does with a worker whose process was suspended.
        Queue(worker.store).leave(number)
        await until(lambda: worker.number != number)
        gate.set()
        assert (await world.ended(job_id))["status"] == "done"
        assert rows(url, "SELECT id, types FROM worker") == [(worker.number, worker.row.types)]
    assert backend.asked == Counter({"ada@a.org": 2})
    assert_counted(url)


@asynchronous
async def test_slow_mail_servers_of_one_client_do_not_delay_another(
    tmp_path: Path, url: str
) -> None:
    """300 owners of 100 places; what is slow stands still until another client's jobs have ended."""

    class SlowBackend(AnsweringBackend):
        async def verify(self, batch: Batch, in_flight=()):
            if "slow" in batch.addresses[0].as_py():
                await gate.wait()
            async for event in super().verify(batch, in_flight):
                yield event

    gate, clock = asyncio.Event(), Clock()
    settings = settings_for(tmp_path, store=url, daily_limit=1000, rate_limit=0)
    backend = SlowBackend()
    app = create_app(settings, backend, clock=clock)
    async with app.router.lifespan_context(app), working(settings, backend, clock) as worker:
        world = RunningService(app, backend, clock)
        for turn in range(3):
            await world.submitted(
                *(f"a@slow{turn}n{n}.org" for n in range(100)), validation_type="smtp"
            )
        await until(lambda: len(worker.asked) == 90)
        few = await world.submitted(
            *(f"b@fast{n}.org" for n in range(10)), validation_type="smtp", address="192.0.2.9"
        )
        for job_id in few:
            assert (await world.ended(job_id))["status"] == "done"
        # A place is free a moment after its job has ended.
        await until(lambda: len(worker.asked) == 90)
        gate.set()
        await world.has_queue(waiting=0, verifying=0)
    assert_counted(url)


@asynchronous
async def test_domains_of_one_client_that_take_long_to_look_up_do_not_delay_another(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, clock = asyncio.Event(), Clock()

    async def find_owners(_: object, emails: Iterable[str]) -> dict[str, str | None]:
        domains = {email: email.partition("@")[2] for email in emails}
        if "slow.org" in domains.values():
            await gate.wait()
        return domains

    monkeypatch.setattr(worker_module, "find_owners", find_owners)
    settings, backend = settings_for(tmp_path, store=url), AnsweringBackend()
    app = create_app(settings, backend, clock=clock)
    async with app.router.lifespan_context(app):
        world = RunningService(app, backend, clock)
        [slow] = await world.submitted("a@slow.org", validation_type="smtp")
        [fast] = await world.submitted("b@fast.org", validation_type="smtp", address="192.0.2.9")
        async with working(settings, backend, clock):  # it claims both at once
            assert (await world.ended(fast))["status"] == "done"
            assert (await world.poll(slow))["status"] == "processing"
            gate.set()
            assert (await world.ended(slow))["status"] == "done"
    assert_counted(url)
