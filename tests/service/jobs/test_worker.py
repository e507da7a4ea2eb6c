"""What becomes of jobs: fair turns, bounded room, a store that comes and goes."""

import asyncio
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from mailverdict.model.settings import LocalSettings
from mailverdict.service.jobs import worker as worker_module
from mailverdict.service.jobs.queue import Queue
from tests.doubles.answering_backend import AnsweringBackend, deferred, unknown, valid
from tests.doubles.clock import Clock
from tests.doubles.service import asynchronous, serving, until
from tests.service.postgres import Cluster


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.servers)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'jobs.db'}"
    cluster: Cluster = request.getfixturevalue("cluster")
    return cluster.prepared_database()


def local_parts(world) -> list[str]:
    """Who was verified, in order."""
    return [email.partition("@")[0] for _, emails in world.backend.batches for email in emails]


@asynchronous
async def test_client_with_few_jobs_does_not_wait_behind_one_with_many(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with serving(
        tmp_path, AnsweringBackend(gate=gate), concurrency=4, daily_limit=1000
    ) as world:
        # The engine is full.
        await world.submitted(*(f"first{n}@x.org" for n in range(4)), address="192.0.2.3")
        await world.has_queue(verifying=4)
        many = await world.submitted(*(f"many{n}@x.org" for n in range(20)), address="192.0.2.1")
        few = await world.submitted("few0@x.org", "few1@x.org", address="192.0.2.2")
        gate.set()
        for job_id in (*few, *many):
            assert (await world.ended(job_id))["status"] == "done"
        order = local_parts(world)[4:]
        assert set(order[:4]) == {"many0", "few0", "many1", "few1"}
        assert order[4:] == [f"many{n}" for n in range(2, 20)]


@pytest.mark.slow
@asynchronous
async def test_engine_never_has_more_than_the_concurrency(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with serving(
        tmp_path, AnsweringBackend(gate=gate), concurrency=8, daily_limit=1000
    ) as world:
        jobs = await world.submitted(*(f"a{n}@x.org" for n in range(30)))
        await until(lambda: len(local_parts(world)) >= 8)
        await world.has_queue(verifying=8, waiting=22)
        assert len(local_parts(world)) == 8
        gate.set()
        assert {(await world.ended(job_id))["status"] for job_id in jobs} == {"done"}
        assert len(local_parts(world)) == 30
        await world.has_queue(waiting=0, verifying=0)


@asynchronous
async def test_batch_that_takes_too_long_ends_in_error(tmp_path: Path) -> None:
    backend = AnsweringBackend(gate=asyncio.Event())
    async with serving(tmp_path, backend, job_timeout=0.01) as world:
        jobs = await world.submitted("a@x.org", "b@x.org")
        assert {(await world.ended(job_id))["status"] for job_id in jobs} == {"error"}
        await world.has_queue(verifying=0)


@asynchronous
async def test_jobs_under_way_go_on_at_the_next_start(tmp_path: Path) -> None:
    stuck = AnsweringBackend(gate=asyncio.Event())
    async with serving(tmp_path, stuck) as world:
        jobs = await world.submitted("a@x.org", "b@x.org", validation_type="smtp")
        await until(lambda: stuck.batches)
    async with serving(tmp_path, AnsweringBackend({"b": unknown("timeout")})) as world:
        records = [await world.ended(job_id) for job_id in jobs]
        assert [record["verification"]["result"] for record in records] == ["valid", "unknown"]
        assert await world.used() == 2


@asynchronous
async def test_pending_retry_survives_a_restart(tmp_path: Path) -> None:
    clock = Clock()
    async with serving(tmp_path, AnsweringBackend({"a": deferred}), clock=clock) as world:
        [job_id] = await world.submitted("a@x.org")
        await world.has_queue(postponed=1)
    clock.now += 15
    async with serving(tmp_path, clock=clock) as world:
        assert (await world.ended(job_id))["verification"]["result"] == "valid"


@asynchronous
async def test_done_jobs_still_answer_after_a_restart(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        [job_id] = await world.submitted("a@x.org")
        before = await world.ended(job_id)
    async with serving(tmp_path) as world:
        assert await world.poll(job_id) == before


@pytest.mark.slow
@asynchronous
async def test_results_are_removed_after_their_retention_and_not_before(tmp_path: Path) -> None:
    clock = Clock()
    async with serving(tmp_path, clock=clock, result_retention="1h") as world:
        [job_id] = await world.submitted("a@x.org")
        await world.ended(job_id)
        clock.now += 3600
        assert Queue(world.state.store).purge() == 0
        clock.now += 1
        assert Queue(world.state.store).purge() == 1
        assert (await world.get(f"/api/verification-result/{job_id}")).status_code == 404


@asynchronous
async def test_results_are_kept_until_the_store_is_available(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with serving(tmp_path, AnsweringBackend(gate=gate)) as world:
        worker = world.state.worker
        worker.retry_delay = 0.001
        [job_id] = await world.submitted("a@x.org")
        await until(lambda: world.backend.batches)
        refusals, serve = [], world.state.results.execute

        def away_for_a_while(operations):
            if len(refusals) < 3:
                refusals.append(operations)
                raise OperationalError("update", {}, Exception("away"))
            return serve(operations)

        world.state.results.execute = away_for_a_while
        gate.set()
        assert (await world.ended(job_id))["status"] == "done"
        assert len(refusals) == 3
        assert len(world.backend.batches) == 1  # the answer was kept, not asked for again


@asynchronous
async def test_worker_survives_a_store_that_cannot_be_read(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        claim = world.state.worker.queue.claim
        refusals = []

        def away_once(*given):
            if not refusals:
                refusals.append(1)
                raise OperationalError("select", {}, Exception("away"))
            return claim(*given)

        world.state.worker.queue.claim = away_once
        [job_id] = await world.submitted("a@x.org")
        await until(lambda: refusals)
        assert (await world.ended(job_id))["status"] == "done"
        assert (await world.get("/healthz")).status_code == 200


@pytest.mark.slow
@asynchronous
async def test_jobs_are_taken_in_batches_and_not_one_by_one(tmp_path: Path) -> None:
    async with serving(tmp_path, concurrency=40, daily_limit=1000) as world:
        jobs = await world.submitted(*(f"a{n}@x.org" for n in range(100)))
        assert {(await world.ended(job_id))["status"] for job_id in jobs} == {"done"}
        assert all(len(emails) >= 10 for _, emails in world.backend.batches)


@asynchronous
async def test_unexpected_error_while_settling_ends_only_its_own_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    dump = worker_module.dump_verification

    def broken(verification):
        if verification.email == "bad@x.org":
            raise ValueError("not JSON")
        return dump(verification)

    monkeypatch.setattr(worker_module, "dump_verification", broken)
    async with serving(tmp_path) as world:
        jobs = await world.submitted("good@x.org", "bad@x.org", "fine@x.org")
        assert [(await world.ended(job_id))["status"] for job_id in jobs] == [
            "done",
            "error",
            "done",
        ]
        await world.has_queue(waiting=0, verifying=0)
        metrics = (await world.get("/metrics")).text
        assert 'mailverdict_jobs_ended_total{status="error"} 1' in metrics
        assert (await world.get("/healthz")).status_code == 200
    assert "could not be written as JSON" in caplog.text
    assert "x.org" not in caplog.text


@pytest.mark.parametrize("script", [{}, {"a": deferred}])
@asynchronous
async def test_result_that_cannot_be_written_is_an_error_and_leaves_the_queue(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, script: dict
) -> None:
    async with serving(tmp_path, AnsweringBackend(script)) as world:
        serve, failures = world.state.results.execute, []

        def failing_once(operations):
            if not failures:
                failures.append(operations)
                raise TypeError("a bug")
            return serve(operations)

        world.state.results.execute = failing_once
        [job_id] = await world.submitted("a@x.org")
        assert (await world.ended(job_id))["status"] == "error"
        await world.has_queue(waiting=0, verifying=0, postponed=0)
    assert len([each for each in caplog.records if each.exc_info]) == 1


@asynchronous
async def test_store_that_refuses_every_result_leaves_the_job_for_the_next_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path) as world:

        def failing(operations):
            raise TypeError("a bug")

        world.state.results.execute = failing
        [job_id] = await world.submitted("a@x.org")
        await until(lambda: "until the next start" in caplog.text)
        assert (await world.poll(job_id))["status"] == "processing"
        assert (await world.get("/healthz")).status_code == 200
    async with serving(tmp_path) as world:
        assert (await world.ended(job_id))["status"] == "done"


class GreylistingBackend(AnsweringBackend):
    """Greylists each address so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    async def verify(self, batch, in_flight=()):
        is_early = len(self.batches) < self.times
        self.script = {"ada": unknown("greylisted") if is_early else valid}
        async for event in super().verify(batch, in_flight):
            yield event


@pytest.mark.slow
@pytest.mark.parametrize(("times", "details"), [(1, None), (2, "greylisted")])
@asynchronous
async def test_greylisted_job_gets_one_second_pass_and_nothing_waits_meanwhile(
    tmp_path: Path, url: str, times: int, details: str | None
) -> None:
    backend, clock = GreylistingBackend(times), Clock()
    local = LocalSettings(retry_greylisted="5min")
    async with serving(tmp_path, backend, clock=clock, store=url, local=local) as world:
        [job_id] = await world.submitted("ada@a.org", validation_type="smtp")
        await world.has_queue(postponed=1, verifying=0)
        assert (await world.poll(job_id))["status"] == "processing"
        clock.now += 299
        await asyncio.sleep(0.5)  # the worker looks, and finds nothing that is due
        assert len(backend.batches) == 1
        clock.now += 1
        record = await world.ended(job_id)
        assert (record["status"], record["verification"]["details"]) == ("done", details)
    assert len(backend.batches) == 2


@asynchronous
async def test_greylisted_job_has_no_second_pass_by_default(tmp_path: Path, url: str) -> None:
    async with serving(tmp_path, GreylistingBackend(1), store=url) as world:
        [job_id] = await world.submitted("ada@a.org", validation_type="smtp")
        assert (await world.ended(job_id))["verification"]["details"] == "greylisted"
