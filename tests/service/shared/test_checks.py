"""Single checks of a service on several hosts: by `smtp` a worker answers them, the one that asks the owner."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mailverdict.model.settings import LocalSettings
from mailverdict.service import create_app
from mailverdict.service.jobs.queue import Queue
from tests.doubles.answering_backend import AnsweringBackend, deferred, no_verdict, unknown
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
from tests.service.shared.test_worker import CountingBackend

pytestmark = pytest.mark.servers


@pytest.fixture
def url(cluster: Cluster) -> str:
    return cluster.prepared_database()


@asynccontextmanager
async def api(
    folder: Path, url: str, backend: AnsweringBackend | None = None, **changed: Any
) -> AsyncIterator:
    """An API without a worker."""
    backend, clock = backend or AnsweringBackend(), Clock()
    app = create_app(settings_for(folder, store=url, **changed), backend, clock=clock)
    async with app.router.lifespan_context(app):
        yield RunningService(app, backend, clock)


def work(
    folder: Path,
    url: str,
    backend: AnsweringBackend,
    *,
    clock: Clock | None = None,
    **abilities: Any,
) -> Any:
    """A worker with a backend of its own."""
    return working(settings_for(folder, store=url), backend, clock or Clock(), **abilities)


async def result_of(world: RunningService, email: str, **more: Any) -> tuple[str, str | None]:
    reply = await world.check(email, "smtp", **more)
    assert reply.status_code == 200, reply.text
    return reply.json()["data"]["result"], reply.json()["data"]["details"]


@asynchronous
async def test_check_by_smtp_is_answered_by_a_worker_and_the_others_by_the_api(
    tmp_path: Path, url: str
) -> None:
    there = AnsweringBackend()
    async with api(tmp_path, url) as world, work(tmp_path, url, there):
        assert await result_of(world, "ada@a.org") == ("valid", None)
        for validation_type in ("mx", "mx_blacklist", "regex"):
            assert (await world.check("bob@b.org", validation_type)).json()["data"][
                "result"
            ] == "valid"
        assert there.batches == [("smtp", ["ada@a.org"])]
        assert [kind for kind, _ in world.backend.batches] == ["mx", "mx_blacklist", "regex"]
        assert await world.used() == 4
    assert rows(url, "SELECT DISTINCT status FROM job WHERE priority = 1") == [("done",)]
    assert_counted(url)


@asynchronous
async def test_checks_and_jobs_of_an_owner_are_never_asked_at_the_same_time(
    tmp_path: Path, url: str
) -> None:
    backend = CountingBackend(0.02)
    async with (
        serving(tmp_path, backend, store=url, daily_limit=10_000, rate_limit=0) as world,
        api(tmp_path, url, backend, daily_limit=10_000, rate_limit=0) as other,
        work(tmp_path, url, backend),
    ):
        jobs = await world.submitted(
            *(f"n{n}@d{n % 3}.org" for n in range(100)), validation_type="smtp"
        )
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
            await world.submitted(
                *(f"t{turn}n{n}@a.org" for n in range(100)), validation_type="smtp"
            )
        await until(
            lambda: rows(url, "SELECT count(*) FROM job WHERE owner IS NOT NULL") == [(300,)]
        )
        await until(lambda: backend.batches)
        check = asyncio.create_task(result_of(world, "ada@a.org"))
        await until(lambda: rows(url, "SELECT count(*) FROM job WHERE priority = 1") == [(1,)])
        gate.set()
        assert await check == ("valid", None)
    asked = [emails for _, emails in backend.batches]
    assert len(asked[0]) <= 100
    assert asked[1] == ["ada@a.org"], "between the first piece of the jobs and the second one"


@asynchronous
async def test_owner_with_many_jobs_gives_its_place_to_a_task_that_waits(
    tmp_path: Path, url: str
) -> None:
    gate = asyncio.Event()
    backend = AnsweringBackend(gate=gate)
    changed = {"daily_limit": 10_000, "rate_limit": 0}
    settings = settings_for(tmp_path, store=url, **changed)
    async with (
        api(tmp_path, url, **changed) as world,
        working(settings, backend, world.clock, concurrency=1) as worker,
    ):
        worker.piece_seconds = 0.0
        jobs = []
        for turn in range(3):
            jobs += await world.submitted(
                *(f"t{turn}n{n}@a.org" for n in range(100)), validation_type="smtp"
            )
        await until(lambda: backend.batches)
        jobs += await world.submitted("bob@b.org", validation_type="smtp")
        await until(lambda: worker.others_wait)
        gate.set()
        for job_id in jobs:
            assert (await world.ended(job_id))["status"] == "done"
    asked = [emails[0].partition("@")[2] for _, emails in backend.batches]
    assert asked.index("b.org") < len(asked) - 1


@asynchronous
async def test_without_a_worker_that_can_a_check_is_throttled_at_once_and_free(
    tmp_path: Path, url: str
) -> None:
    async with api(tmp_path, url) as world:
        assert await result_of(world, "ada@a.org") == ("unknown", "throttled")
        async with work(tmp_path, url, AnsweringBackend(), types=("mx", "regex")):
            assert await result_of(world, "ada@a.org") == ("unknown", "throttled")
        assert await world.used() == 0
        assert (await world.check("ada@a.org", "mx")).json()["data"]["result"] == "valid"
        rows(
            url, "INSERT INTO worker (name, version, types, lease) VALUES ('dead', '0', 'smtp', 0)"
        )
        assert await result_of(world, "ada@a.org") == ("unknown", "throttled")


@asynchronous
async def test_check_without_an_answer_in_time_is_throttled(tmp_path: Path, url: str) -> None:
    backend = AnsweringBackend(gate=asyncio.Event())
    async with serving(tmp_path, backend, store=url, check_timeout=0.5) as world:
        assert await result_of(world, "ada@a.org") == ("unknown", "throttled")
        assert rows(url, "SELECT status FROM job") == [("done",)], (
            "no worker begins with it any more"
        )


@asynchronous
async def test_check_is_answered_by_the_next_worker_when_one_stops(
    tmp_path: Path, url: str
) -> None:
    stuck, later = AnsweringBackend(gate=asyncio.Event()), AnsweringBackend()
    async with api(tmp_path, url) as world:
        async with work(tmp_path, url, stuck):
            check = asyncio.create_task(result_of(world, "ada@a.org"))
            await until(lambda: stuck.batches)
        async with work(tmp_path, url, later):
            assert await check == ("valid", None)


@asynchronous
async def test_check_is_answered_after_the_database_was_away(
    tmp_path: Path, cluster: Cluster, url: str
) -> None:
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
async def test_check_that_cannot_be_written_costs_nothing(tmp_path: Path, url: str) -> None:
    async with api(tmp_path, url) as world, work(tmp_path, url, AnsweringBackend()):
        assert await result_of(world, "bob@a.org") == ("valid", None)
        rows(url, "ALTER TABLE job ADD CHECK (email <> '\"ada@a.org\"') NOT VALID")
        reply = await world.check("ada@a.org", "smtp")
        assert (reply.status_code, reply.json()["error"]["code"]) == (503, "E1005")
        assert await world.used() == 1


@asynchronous
async def test_check_whose_verification_failed_has_the_code_of_the_failure(
    tmp_path: Path, url: str
) -> None:
    script = {"bad": RuntimeError("boom"), "odd": no_verdict, "busy": deferred}
    async with serving(tmp_path, AnsweringBackend(script), store=url) as world:
        for name, status, code in (
            ("bad", 502, "UPSTREAM_ERROR"),
            ("odd", 502, "UPSTREAM_SCHEMA_MISMATCH"),
        ):
            reply = await world.check(f"{name}@{name}.org", "smtp")
            assert (reply.status_code, reply.json()["error"]["code"]) == (status, code)
        assert await result_of(world, "busy@busy.org") == ("unknown", "throttled")
        assert await world.used() == 3


@asynchronous
async def test_check_of_a_routed_owner_is_answered_from_its_egress(
    tmp_path: Path, url: str
) -> None:
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
        await world.state.close()
        assert (await check).json()["error"]["code"] == "UPSTREAM_ERROR"


@asynchronous
async def test_greylisted_check_is_not_asked_again(tmp_path: Path, url: str) -> None:
    backend = AnsweringBackend({"ada": unknown("greylisted")})
    local = LocalSettings(retry_greylisted="5min")
    async with serving(tmp_path, backend, store=url, local=local) as world:
        assert await result_of(world, "ada@a.org") == ("unknown", "greylisted")


@asynchronous
async def test_answered_checks_are_removed_and_jobs_are_kept(tmp_path: Path, url: str) -> None:
    async with serving(tmp_path, AnsweringBackend(), store=url) as world:
        [job_id] = await world.submitted("ada@a.org", validation_type="smtp")
        await world.ended(job_id)
        await result_of(world, "bob@a.org")
        world.clock.now += 61
        assert Queue(world.state.store).purge() == 0
        assert rows(url, "SELECT email FROM job") == [('"ada@a.org"',)]
