"""Single checks in the cluster: by `smtp` a worker answers them, under the owner's lock; the rate limit is one for all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mailverdict.backend import Batch
from mailverdict.model.settings import LocalSettings
from mailverdict.service import create_app
from mailverdict.service.shared.store import SharedStore
from tests.doubles.answering_backend import AnsweringBackend, unknown, valid
from tests.doubles.clock import Clock
from tests.doubles.service import RunningService, asynchronous, serving, settings_for, until, working
from tests.service.postgres import Cluster
from tests.service.shared.test_worker import CountingBackend, rows

pytestmark = pytest.mark.servers


@pytest.fixture
def url(cluster: Cluster) -> str:
    return cluster.prepared_database()


@asynccontextmanager
async def api(folder: Path, url: str, backend: AnsweringBackend | None = None, **changed: Any) -> AsyncIterator:
    """An API without a worker."""
    backend, clock = backend or AnsweringBackend(), Clock()
    app = create_app(settings_for(folder, store=url, **changed), backend, clock=clock)
    async with app.router.lifespan_context(app):
        yield RunningService(app, backend, clock)


def work(folder: Path, url: str, backend: AnsweringBackend, *, clock: Clock | None = None, **abilities: Any) -> Any:
    """A worker with a backend of its own."""
    return working(settings_for(folder, store=url), backend, clock or Clock(), **abilities)


async def result_of(world: RunningService, email: str, **more: Any) -> tuple[str, str | None]:
    reply = await world.check(email, "smtp", **more)
    assert reply.status_code == 200, reply.text
    return reply.json()["data"]["result"], reply.json()["data"]["details"]


@asynchronous
async def test_check_by_smtp_is_answered_by_a_worker_and_the_others_by_the_api(tmp_path: Path, url: str) -> None:
    there = AnsweringBackend()
    async with api(tmp_path, url) as world, work(tmp_path, url, there):
        assert await result_of(world, "ada@a.org") == ("valid", None)
        for validation_type in ("mx", "mx_blacklist", "regex"):
            assert (await world.check("bob@b.org", validation_type)).json()["data"]["result"] == "valid"
        assert there.batches == [("smtp", ["ada@a.org"])]
        assert [kind for kind, _ in world.backend.batches] == ["mx", "mx_blacklist", "regex"]
        assert await world.used() == 4
    assert rows(url, "SELECT count(*) FROM single_check") == [(0,)]


@asynchronous
async def test_checks_and_jobs_of_an_owner_are_never_asked_at_the_same_time(tmp_path: Path, url: str) -> None:
    backend = CountingBackend(0.02)
    async with (
        serving(tmp_path, backend, store=url, daily_limit=10_000, rate_limit=0) as world,
        api(tmp_path, url, backend, daily_limit=10_000, rate_limit=0) as other,
        work(tmp_path, url, backend),
    ):
        jobs = await world.submitted(*(f"n{n}@d{n % 3}.org" for n in range(100)), validation_type="smtp")
        checks = [result_of((world, other)[n % 2], f"check{n}@d{n % 3}.org") for n in range(30)]
        assert set(await asyncio.gather(*checks)) == {("valid", None)}
        for job_id in jobs:
            assert (await world.ended(job_id))["status"] == "done"
    assert set(backend.asked.values()) == {1}
    assert backend.most == {f"d{n}.org": 1 for n in range(3)}


@asynchronous
async def test_check_does_not_wait_for_all_jobs_of_its_owner(tmp_path: Path, url: str) -> None:
    gate = asyncio.Event()
    backend = AnsweringBackend(gate=gate)
    async with serving(tmp_path, backend, store=url, daily_limit=10_000, rate_limit=0) as world:
        for turn in range(3):
            await world.submitted(*(f"t{turn}n{n}@a.org" for n in range(100)), validation_type="smtp")
        await until(lambda: rows(url, "SELECT count(*) FROM assignment WHERE owner IS NOT NULL") == [(300,)])
        await until(lambda: backend.batches)
        check = asyncio.create_task(result_of(world, "ada@a.org"))
        await until(lambda: rows(url, "SELECT count(*) FROM single_check") == [(1,)])
        gate.set()
        assert await check == ("valid", None)
    asked = [emails for _, emails in backend.batches]
    assert len(asked[0]) <= 100
    assert asked[1] == ["ada@a.org"], "between the first piece of the jobs and the second one"


@asynchronous
async def test_owner_with_many_jobs_gives_its_place_to_a_task_that_waits(tmp_path: Path, url: str) -> None:
    gate = asyncio.Event()
    backend = AnsweringBackend(gate=gate)
    changed = {"daily_limit": 10_000, "rate_limit": 0}
    settings = settings_for(tmp_path, store=url, **changed)
    async with api(tmp_path, url, **changed) as world, working(settings, backend, world.clock, concurrency=1) as worker:
        worker.piece_seconds = 0.0
        jobs = []
        for turn in range(3):
            jobs += await world.submitted(*(f"t{turn}n{n}@a.org" for n in range(100)), validation_type="smtp")
        await until(lambda: backend.batches)
        jobs += await world.submitted("bob@b.org", validation_type="smtp")
        waiting = "SELECT count(*) > 0 FROM procrastinate_jobs WHERE status = 'todo' AND task_name = 'look_up'"
        await until(lambda: rows(url, waiting) == [(True,)])
        gate.set()
        for job_id in jobs:
            assert (await world.ended(job_id))["status"] == "done"
    asked = [emails[0].partition("@")[2] for _, emails in backend.batches]
    assert asked.index("b.org") < len(asked) - 1


@asynchronous
async def test_without_a_worker_that_can_a_check_is_throttled_at_once_and_free(tmp_path: Path, url: str) -> None:
    async with api(tmp_path, url) as world:
        assert await result_of(world, "ada@a.org") == ("unknown", "throttled")
        async with work(tmp_path, url, AnsweringBackend(), types=("mx", "regex")):
            assert await result_of(world, "ada@a.org") == ("unknown", "throttled")
        assert await world.used() == 0
        assert (await world.check("ada@a.org", "mx")).json()["data"]["result"] == "valid"
        rows(url, "INSERT INTO worker (name, version, types, seen_at) VALUES ('old', '0', 'smtp', 1e12)")
        assert await result_of(world, "ada@a.org") == ("unknown", "throttled"), "the version before answers none"


@asynchronous
async def test_check_without_an_answer_in_time_is_throttled(tmp_path: Path, url: str) -> None:
    backend = AnsweringBackend(gate=asyncio.Event())
    async with serving(tmp_path, backend, store=url, check_timeout=0.5) as world:
        assert await result_of(world, "ada@a.org") == ("unknown", "throttled")
        assert rows(url, "SELECT count(*) FROM single_check") == [(0,)]


@asynchronous
async def test_check_is_answered_by_the_next_worker_when_one_stops(tmp_path: Path, url: str) -> None:
    stuck, later = AnsweringBackend(gate=asyncio.Event()), AnsweringBackend()
    async with api(tmp_path, url) as world:
        async with work(tmp_path, url, stuck):
            check = asyncio.create_task(result_of(world, "ada@a.org"))
            await until(lambda: stuck.batches)
        async with work(tmp_path, url, later):
            assert await check == ("valid", None)


@asynchronous
async def test_check_whose_task_was_lost_gets_another_one(tmp_path: Path, url: str) -> None:
    backend = AnsweringBackend()
    async with api(tmp_path, url) as world:
        rows(
            url,
            "INSERT INTO worker (name, version, types, seen_at, answers_checks) VALUES ('w', '1', 'smtp', 1e12, true)",
        )
        check = asyncio.create_task(result_of(world, "ada@a.org"))
        todo = "SELECT lock, priority FROM procrastinate_jobs WHERE status = 'todo' AND lock IS NOT NULL"
        await until(lambda: rows(url, todo) == [("a.org", 1)])
        rows(url, "DELETE FROM procrastinate_jobs")
        async with work(tmp_path, url, backend) as worker:
            await worker.recover()
            assert await check == ("valid", None)


@asynchronous
async def test_check_is_answered_after_the_database_was_away(tmp_path: Path, cluster: Cluster, url: str) -> None:
    gate = asyncio.Event()
    backend = AnsweringBackend(gate=gate)
    async with serving(tmp_path, backend, store=url) as world:
        check = asyncio.create_task(result_of(world, "ada@a.org"))
        await until(lambda: backend.batches)
        await asyncio.to_thread(cluster.restart)
        gate.set()
        async with asyncio.timeout(60):
            assert await check == ("valid", None)


@asynchronous
async def test_check_that_cost_its_unit_and_cannot_be_written_is_an_upstream_error(tmp_path: Path, url: str) -> None:
    async with api(tmp_path, url) as world, work(tmp_path, url, AnsweringBackend()):
        rows(url, "ALTER TABLE single_check RENAME COLUMN owner TO elsewhere")
        reply = await world.check("ada@a.org", "smtp")
        assert (reply.status_code, reply.json()["error"]["code"]) == (502, "UPSTREAM_ERROR")
        assert await world.used() == 1


@asynchronous
async def test_check_of_a_routed_owner_is_answered_from_its_egress(tmp_path: Path, url: str) -> None:
    here, berlin, clock = AnsweringBackend(), AnsweringBackend(), Clock()
    changed = {"egress_routes": ("a.org=berlin",)}
    settings = settings_for(tmp_path, store=url, **changed)
    async with (
        api(tmp_path, url, **changed) as world,
        working(settings, here, clock),
        working(settings, berlin, clock, egress="berlin"),
    ):
        assert await result_of(world, "ada@a.org") == ("valid", None)
    assert (here.batches, berlin.batches) == ([], [("smtp", ["ada@a.org"])])


@asynchronous
async def test_check_that_waits_when_the_api_is_closed_ends(tmp_path: Path, url: str) -> None:
    backend = AnsweringBackend(gate=asyncio.Event())
    async with api(tmp_path, url) as world, work(tmp_path, url, backend):
        check = asyncio.create_task(world.check("ada@a.org", "smtp"))
        await until(lambda: backend.batches)
        world.state.checks.close()
        assert (await check).json()["error"]["code"] == "UPSTREAM_ERROR"


@asynchronous
async def test_rate_limit_of_single_checks_is_exact_for_all_apis_together(tmp_path: Path, url: str) -> None:
    changed = {"rate_limit": 0.001, "rate_burst": 100, "daily_limit": 1000}
    async with api(tmp_path, url, **changed) as one, api(tmp_path, url, **changed) as two:
        replies = await asyncio.gather(*((one, two)[n % 2].check("ada@a.org") for n in range(130)))
        details = [reply.json()["data"]["details"] for reply in replies]
        assert (details.count(None), details.count("rate_limited")) == (100, 30)
        refused = [reply for reply in replies if reply.json()["data"]["details"]]
        assert all(900 <= int(reply.headers["retry-after"]) <= 1000 for reply in refused)
        assert await one.used() == 100
        assert (await two.check("ada@a.org", address="192.0.2.9")).json()["data"]["result"] == "valid"


@asynchronous
async def test_bucket_of_single_checks_refills_and_is_purged_when_full(tmp_path: Path, url: str) -> None:
    store = SharedStore(settings_for(tmp_path, store=url, rate_limit=2.0, rate_burst=100))
    try:
        assert store.acquire("c", 100, 2.0, 100.0) == (True, 0.0)
        rows(url, "UPDATE check_pace SET counted_at = counted_at - 10")
        granted, left = store.acquire("c", 20, 2.0, 100.0)
        assert granted
        assert 0 <= left < 20
        rows(url, "UPDATE check_pace SET counted_at = counted_at + 30")  # an UPDATE that came late
        assert store.acquire("c", 90, 2.0, 100.0)[0] is False
        rows(url, "UPDATE check_pace SET counted_at = counted_at - 30 + 3600")  # the clock was set back since
        assert store.acquire("c", 101, 2.0, 100.0) == (False, 100.0)
        assert store.acquire("c", 90, 2.0, 100.0) == (True, 10.0)
        assert store.acquire("c", 90, 2.0, 100.0)[0] is False
        store.purge(0.0, "2000-01-01")
        assert rows(url, "SELECT count(*) FROM check_pace") == [(1,)]
        rows(url, "UPDATE check_pace SET counted_at = counted_at - 1000")
        store.purge(0.0, "2000-01-01")
        assert rows(url, "SELECT count(*) FROM check_pace") == [(0,)]
    finally:
        store.close()


class GreylistingBackend(AnsweringBackend):
    """Greylists each address of a domain so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    async def verify(self, batch: Batch, in_flight=()):
        is_early = len(self.batches) < self.times
        self.script = dict.fromkeys(("ada", "bob"), unknown("greylisted") if is_early else valid)
        async for event in super().verify(batch, in_flight):
            yield event


@pytest.mark.parametrize(("times", "details"), [(1, None), (2, "greylisted")])
@asynchronous
async def test_greylisted_job_gets_one_second_pass_on_a_schedule(
    tmp_path: Path, url: str, times: int, details: str | None
) -> None:
    backend, clock = GreylistingBackend(times), Clock()
    local = LocalSettings(retry_greylisted="5min")
    async with serving(tmp_path, backend, clock=clock, store=url, local=local) as world:
        [job_id] = await world.submitted("ada@a.org", validation_type="smtp")
        await until(lambda: rows(url, "SELECT due - updated_at FROM job") == [(300.0,)])
        assert (await world.poll(job_id))["status"] == "processing"
        assert rows(url, "SELECT count(*) FROM assignment") == [(0,)], "no task and no claim waits meanwhile"
        await until(lambda: rows(url, "SELECT count(*) FROM procrastinate_jobs WHERE status = 'doing'") == [(0,)])
        [(scheduled,)] = rows(
            url,
            "SELECT extract(epoch FROM scheduled_at - now()) FROM procrastinate_jobs WHERE scheduled_at IS NOT NULL",
        )
        assert 200 < scheduled <= 302
        clock.now += 300
        await world.state.queue.defer_look_up("smtp")
        record = await world.ended(job_id)
        assert (record["status"], record["verification"]["details"]) == ("done", details)
    assert len(backend.batches) == 2


@asynchronous
async def test_greylisted_job_has_no_second_pass_by_default(tmp_path: Path, url: str) -> None:
    backend = GreylistingBackend(1)
    async with serving(tmp_path, backend, store=url) as world:
        [job_id] = await world.submitted("ada@a.org", validation_type="smtp")
        assert (await world.ended(job_id))["verification"]["details"] == "greylisted"
        assert await result_of(world, "bob@a.org") == ("valid", None)
