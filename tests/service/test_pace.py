"""The bulk path with ``wait``: what the quota covers waits, and is verified at the pace of the rate limit."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.answering_backend import AnsweringBackend
from tests.doubles.clock import NOON, Clock
from tests.doubles.service import RunningService, asynchronous, serving, until

DAY = 86_400
OTHER = "192.0.2.2"


def emails(count: int, name: str = "a") -> list[str]:
    return [f"{name}{n}@example.org" for n in range(count)]


@asynccontextmanager
async def paced(
    folder: Path, hand: Clock, backend: AnsweringBackend | None = None, **changed: Any
) -> AsyncIterator:
    """A service whose limits run on a clock that the test sets."""
    async with serving(folder, backend, clock=hand, **{"daily_limit": 10_000, **changed}) as world:
        world.state.limiter.clock = hand
        yield world


async def verified(world: RunningService, count: int) -> None:
    """Wait until so many addresses have been verified and none is being verified."""
    await until(lambda: sum(len(batch) for _, batch in world.backend.batches) >= count)
    await world.has_queue(verifying=0)
    assert sum(len(batch) for _, batch in world.backend.batches) == count


async def advance(world: RunningService, seconds: float) -> None:
    world.clock.now += seconds
    world.state.worker.wakeup.set()


@pytest.mark.slow
@pytest.mark.parametrize("validation_type", ["smtp", "regex"])
@asynchronous
async def test_what_exceeds_the_burst_waits_and_none_of_it_is_rate_limited(
    tmp_path: Path, validation_type: str
) -> None:
    hand = Clock()
    async with paced(tmp_path, hand, rate_limit=50, rate_burst=100) as world:
        jobs = []
        for n in range(3):
            jobs += await world.submitted(*emails(100, f"b{n}n"), validation_type=validation_type)
        await verified(world, 100)
        await world.has_queue(waiting=200)
        assert (await world.poll(jobs[-1]))["status"] == "queued"
        for so_far in (150, 200, 250, 300):
            await advance(world, 1.0)
            await verified(world, so_far)
        records = [await world.ended(job_id) for job_id in jobs]
        assert {record["verification"]["result"] for record in records} == {"valid"}
        assert await world.used() == 300


@pytest.mark.slow
@asynchronous
async def test_single_checks_are_not_refused_because_bulk_jobs_wait(tmp_path: Path) -> None:
    async with paced(tmp_path, Clock(), rate_limit=1, rate_burst=100) as world:
        await world.submitted(*emails(100))
        await world.submitted(*emails(100, "b"))
        await verified(world, 100)
        for _ in range(100):
            assert (await world.check()).json()["data"]["result"] == "valid"
        assert (await world.check()).json()["data"]["details"] == "rate_limited"


@pytest.mark.slow
@asynchronous
async def test_client_that_waits_for_its_pace_does_not_delay_another(tmp_path: Path) -> None:
    async with paced(tmp_path, Clock(), rate_limit=0.001, rate_burst=100) as world:
        for n in range(5):
            await world.submitted(*emails(100, f"many{n}n"))
        await verified(world, 100)
        few = await world.submitted(*emails(10, "few"), address=OTHER)
        for job_id in few:
            assert (await world.ended(job_id))["status"] == "done"
        await world.has_queue(waiting=400)


@pytest.mark.slow
@asynchronous
async def test_long_queue_goes_on_at_its_pace_after_a_restart_and_is_charged_once(
    tmp_path: Path,
) -> None:
    hand = Clock()
    async with paced(tmp_path, hand, rate_limit=10, rate_burst=100) as world:
        jobs = await world.submitted(*emails(100)) + await world.submitted(*emails(100, "b"))
        jobs += await world.submitted(*emails(100, "c"))
        await verified(world, 100)
    async with paced(tmp_path, hand, AnsweringBackend(), rate_limit=10, rate_burst=100) as world:
        await world.has_queue(waiting=200, verifying=0)
        await advance(world, 10.0)
        await verified(world, 100)
        await advance(world, 10.0)
        await verified(world, 200)
        assert {(await world.ended(job_id))["status"] for job_id in jobs} == {"done"}
        assert await world.used() == 300


@pytest.mark.slow
@asynchronous
async def test_jobs_that_wait_over_midnight_are_charged_to_the_day_of_their_submission(
    tmp_path: Path,
) -> None:
    clock = Clock(NOON // DAY * DAY + DAY - 1)
    async with paced(tmp_path, clock, rate_limit=100, rate_burst=100, daily_limit=200) as world:
        jobs = await world.submitted(*emails(100)) + await world.submitted(*emails(100, "b"))
        await verified(world, 100)
        assert (await world.submit(["ada@example.org"])).status_code == 429
        await advance(world, 1.0)
        assert await world.used() == 0
        assert {(await world.ended(job_id))["status"] for job_id in jobs} == {"done"}
        assert await world.used() == 0
        assert len(await world.submitted(*emails(100, "c"))) == 100


@pytest.mark.slow
@asynchronous
async def test_submission_without_room_is_refused_before_it_costs_anything(tmp_path: Path) -> None:
    gate = asyncio.Event()
    limits = {"rate_limit": 0, "queue_limit": 300, "concurrency": 1}
    async with paced(tmp_path, Clock(), AnsweringBackend(gate=gate), **limits) as world:
        jobs = await world.submitted(*emails(100))
        await world.has_queue(verifying=1)
        jobs += await world.submitted(*emails(100, "b"))  # then 199 wait, and there is room for 100
        refused = await world.submit(emails(1, "c"))
        assert refused.status_code == 429
        assert refused.json()["error"]["code"] == "QUEUE_FULL"
        assert set(refused.json()) == {"error"}
        assert refused.headers["retry-after"] == "15"
        assert await world.used() == 200
        assert (
            await world.submit(emails(100, "d"), address=OTHER)
        ).status_code == 202  # there is room for others
        gate.set()
        assert {(await world.ended(job_id))["status"] for job_id in jobs} == {"done"}
        await world.has_queue(waiting=0, verifying=0)
        assert (await world.submit(emails(1, "c"))).status_code == 202


@asynchronous
async def test_submissions_at_once_do_not_exceed_the_queue(tmp_path: Path) -> None:
    gate = asyncio.Event()
    limits = {"rate_limit": 0, "queue_limit": 250, "concurrency": 1}
    async with paced(tmp_path, Clock(), AnsweringBackend(gate=gate), **limits) as world:
        many = [world.submit(emails(50, f"b{n}n"), address=f"198.51.100.{n}") for n in range(20)]
        statuses = [reply.status_code for reply in await asyncio.gather(*many)]
        assert (statuses.count(202), statuses.count(429)) == (5, 15)
        await world.has_queue(waiting=249, verifying=1)
        gate.set()


@asynchronous
async def test_full_disk_refuses_submissions_and_charges_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path, daily_limit=100_000, rate_limit=0) as world:
        await world.ended((await world.submitted(*emails(100)))[-1])

        def set_page_limit(pages: int) -> None:
            with world.state.store.writer.connect() as connection:
                connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

        await world.has_queue(waiting=0, verifying=0)
        loop = asyncio.get_running_loop()
        # No page more than there are.
        await loop.run_in_executor(world.state.store.writers, set_page_limit, 1)
        accepted = 0
        for n in range(50):
            reply = await world.submit(
                [f"{'x' * 60}{n}n{i}@{'y' * 60}.example.org" for i in range(100)]
            )
            if reply.status_code != 202:
                break
            accepted += 100
        assert reply.status_code == 503
        assert reply.json()["error"]["code"] == "E1005"
        assert reply.headers["retry-after"] == "5"
        assert await world.used() == 100 + accepted
        await loop.run_in_executor(world.state.store.writers, set_page_limit, 1_000_000)
        world.state.worker.retry_delay = 0.001
        assert (await world.submit(emails(100, "after"))).status_code == 202
        assert await world.used() == 200 + accepted


@asynchronous
async def test_age_of_the_oldest_waiting_job_is_a_metric(tmp_path: Path) -> None:
    clock = Clock()
    async with paced(tmp_path, clock, rate_limit=0.001, rate_burst=100) as world:
        name = "mailverdict_oldest_waiting_job_seconds"
        assert f"\n{name} 0.0\n" in (await world.get("/metrics")).text
        await world.submitted(*emails(100))
        clock.now += 5
        await world.submitted(*emails(100, "b"))
        await verified(world, 100)
        clock.now += 37
        assert f"\n{name} 37.0\n" in (await world.get("/metrics")).text
        assert '\nmailverdict_jobs{state="waiting"} 100.0\n' in (await world.get("/metrics")).text
        await advance(world, 100_000.0)
        await verified(world, 200)
        assert f"\n{name} 0.0\n" in (await world.get("/metrics")).text


# RateLimit and RateLimit-Policy.

MEMBER = r'"(?:daily|burst)"(?:;[a-z]+=(?:\d+|"[a-z]+"))+'
FIELD = re.compile(rf"{MEMBER}(?:, {MEMBER})*")
POLICY = '"daily";q=500;w=86400;qu="addresses", "burst";q=200;w=4;qu="addresses"'


@asynchronous
async def test_submissions_and_quota_announce_the_limits(tmp_path: Path) -> None:
    clock = Clock(NOON // DAY * DAY + 1000.5)
    async with paced(tmp_path, clock, rate_limit=50, rate_burst=200, daily_limit=500) as world:
        quota = await world.get("/api/quota")
        assert quota.headers["ratelimit-policy"] == POLICY
        assert quota.headers["ratelimit"] == '"daily";r=500;t=85400, "burst";r=200;t=0'
        first = await world.submit(emails(50))
        assert first.headers["ratelimit-policy"] == POLICY
        assert first.headers["ratelimit"] == '"daily";r=450;t=85400, "burst";r=150;t=1'
        for _ in range(3):
            last = await world.submit(emails(100))
        # 150 of them wait.
        assert last.headers["ratelimit"] == '"daily";r=150;t=85400, "burst";r=0;t=7'
        malformed = await world.submit(["broken"])
        assert malformed.headers["ratelimit"] == '"burst";r=0;t=7'
        for reply in (quota, first, last, malformed):
            assert FIELD.fullmatch(reply.headers["ratelimit"])
            assert FIELD.fullmatch(reply.headers["ratelimit-policy"])


@asynchronous
async def test_quota_that_is_used_up_names_the_end_of_the_day(tmp_path: Path) -> None:
    clock = Clock(NOON // DAY * DAY + DAY - 90)
    async with serving(tmp_path, daily_limit=10, clock=clock) as world:
        await world.submitted(*emails(8))
        for reply in (await world.submit(emails(5)), await world.submit(emails(3))):
            assert reply.status_code == 429
            assert reply.headers["retry-after"] == "90"
            assert reply.headers["ratelimit"] == '"daily";r=2;t=90'
        never = await world.submit(emails(11))
        assert never.status_code == 429
        assert "retry-after" not in never.headers  # it exceeds the quota of every day
        assert [(await world.check()).status_code for _ in range(3)] == [200, 200, 429]


@asynchronous
async def test_service_without_rate_limit_announces_the_quota_only(tmp_path: Path) -> None:
    async with serving(tmp_path, rate_limit=0) as world:
        reply = await world.submit(emails(1))
        assert reply.headers["ratelimit-policy"] == '"daily";q=100;w=86400;qu="addresses"'
        assert re.fullmatch(r'"daily";r=99;t=\d+', reply.headers["ratelimit"])
        assert "ratelimit" not in (await world.submit(["broken"])).headers


@pytest.mark.slow
@asynchronous
async def test_limits_that_settle_are_announced_too(tmp_path: Path) -> None:
    async with paced(
        tmp_path, Clock(), rate_limit=10, rate_burst=100, when_saturated="settle"
    ) as world:
        assert (await world.submit(emails(90))).headers["ratelimit"].endswith('"burst";r=10;t=9')
        # Refused.
        assert (await world.submit(emails(90))).headers["ratelimit"].endswith('"burst";r=10;t=9')


@asynchronous
async def test_enormous_limits_fit_into_a_structured_field(tmp_path: Path) -> None:
    limits = {"daily_limit": 10**30, "rate_limit": 1e-300, "rate_burst": 10**30}
    async with serving(tmp_path, **limits) as world:
        reply = await world.get("/api/quota")
        for name in ("ratelimit", "ratelimit-policy"):
            assert max(map(len, re.findall(r"\d+", reply.headers[name]))) == 15
