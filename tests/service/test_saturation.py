"""Our own queue and limiter: outcomes that say nothing about the address; on the bulk path with ``settle``."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.answering_backend import AnsweringBackend
from tests.doubles.clock import Clock
from tests.doubles.service import RunningService, asynchronous, serving, until

OTHER = "192.0.2.9"
FLAGS = {"role", "spamtrap", "disposable", "free"}


def assert_untouched(data: dict[str, Any], reason: str, validation_type: str) -> None:
    """The whole payload of a saturation outcome."""
    assert data["email"] == "ada@example.org"
    assert data["validation_type"] == validation_type
    assert data["result"] == "unknown"
    assert data["details"] == reason
    assert data["reasons"] == [reason]
    assert data["checks"] == {}
    assert not FLAGS & set(data)
    assert ("catch_all" in data) is (validation_type == "smtp")


@pytest.mark.parametrize("validation_type", ["smtp", "mx", "mx_blacklist", "regex"])
@asynchronous
async def test_check_on_a_full_queue_is_throttled(tmp_path: Path, validation_type: str) -> None:
    async with serving(tmp_path, AnsweringBackend(gate=asyncio.Event()), queue_limit=1) as world:
        await world.submitted("bob@example.org", validation_type="mx", address=OTHER)
        await until(lambda: world.backend.batches)
        reply = await world.check(validation_type=validation_type)
        assert reply.status_code == 200
        assert_untouched(reply.json()["data"], "throttled", validation_type)
        assert reply.headers["retry-after"] == "15"
        assert world.backend.batches == [("mx", ["bob@example.org"])]
        assert await world.used() == 0


@pytest.mark.parametrize("validation_type", ["smtp", "regex"])
@asynchronous
async def test_check_that_the_limiter_refuses_is_rate_limited(
    tmp_path: Path, validation_type: str
) -> None:
    async with serving(tmp_path, rate_limit=0.001, rate_burst=100) as world:
        world.state.limiter.try_acquire("192.0.2.1", 100)
        reply = await world.check(validation_type=validation_type)
        assert reply.status_code == 200
        assert_untouched(reply.json()["data"], "rate_limited", validation_type)
        assert 990 <= int(reply.headers["retry-after"]) <= 1000
        assert world.backend.batches == []
        assert await world.used() == 0
        assert (await world.check(address="192.0.2.9")).json()["data"]["result"] == "valid"


@asynchronous
async def test_batch_that_the_limiter_refuses_is_rate_limited_as_a_whole_and_at_once(
    tmp_path: Path,
) -> None:
    async with serving(
        tmp_path, rate_limit=0.001, rate_burst=100, when_saturated="settle"
    ) as world:
        world.state.limiter.try_acquire("192.0.2.1", 99)
        reply = await world.submit(["ada@example.org", "broken", "ada@example.org"], "smtp")
        entries = reply.json()["data"]["results"]
        assert [entry["status"] for entry in entries] == ["queued", "error", "queued"]
        for entry in (entries[0], entries[2]):
            record = await world.poll(entry["job_id"])
            assert record["status"] == "done"
            assert_untouched(record["verification"], "rate_limited", "smtp")
        assert world.backend.batches == []  # never tried again
        assert await world.used() == 2  # quota is consumed at submission


@asynccontextmanager
async def full_queue(
    folder: Path, clock: Clock, gate: asyncio.Event
) -> AsyncIterator[tuple[RunningService, str]]:
    """A service whose queue has room for one job, which is verified until the gate is open; and a job of another."""
    backend = AnsweringBackend(gate=gate)
    async with serving(
        folder, backend, clock=clock, queue_limit=1, when_saturated="settle"
    ) as world:
        await world.submitted("bob@example.org", address=OTHER)
        await until(lambda: backend.batches)
        [job_id] = await world.submitted("ada@example.org", validation_type="smtp")
        yield world, job_id


def attempt_of(folder: Path, job_id: str) -> int:
    """Look into the store from outside."""
    connection = sqlite3.connect(folder / "jobs.db")
    try:
        return connection.execute("SELECT attempt FROM job WHERE job_id = ?", [job_id]).fetchone()[
            0
        ]
    finally:
        connection.close()


@pytest.mark.slow
@asynchronous
async def test_job_on_a_full_queue_is_throttled_after_twelve_minutes_of_back_off(
    tmp_path: Path,
) -> None:
    clock = Clock()
    async with full_queue(tmp_path, clock, asyncio.Event()) as (world, job_id):
        began, waits = clock.now, world.state.settings.saturation_backoff
        for attempt, wait in enumerate(waits, 1):
            await until(lambda: attempt_of(tmp_path, job_id) == attempt)  # noqa: B023
            record = await world.poll(job_id)
            assert record == {
                "email": "ada@example.org",
                "status": "processing",
                "verification": None,
            }
            clock.now += wait - 1
            world.state.worker.wakeup.set()
            await asyncio.sleep(0.05)
            assert attempt_of(tmp_path, job_id) == attempt
            clock.now += 1
            world.state.worker.wakeup.set()
        record = await world.ended(job_id)
        assert record["status"] == "done"
        assert_untouched(record["verification"], "throttled", "smtp")
        assert clock.now - began == 12 * 60
        assert world.backend.batches == [("regex", ["bob@example.org"])]


@pytest.mark.slow
@asynchronous
async def test_job_is_verified_when_the_queue_has_drained(tmp_path: Path) -> None:
    clock, gate = Clock(), asyncio.Event()
    async with full_queue(tmp_path, clock, gate) as (world, job_id):
        gate.set()
        await world.has_queue(verifying=0, postponed=1)
        clock.now += world.state.settings.saturation_backoff[0]
        record = await world.ended(job_id)
        assert record["verification"]["result"] == "valid"


@pytest.mark.slow
@asynchronous
async def test_retry_takes_only_as_many_jobs_as_there_is_room_for(tmp_path: Path) -> None:
    clock, gate = Clock(), asyncio.Event()
    async with serving(
        tmp_path, AnsweringBackend(gate=gate), clock=clock, queue_limit=3, when_saturated="settle"
    ) as world:
        jobs = await world.submitted(*(f"a{i}@example.org" for i in range(5)))
        await world.has_queue(postponed=5)
        clock.now += world.state.settings.saturation_backoff[0]
        await world.has_queue(waiting=0, verifying=3, postponed=2)
        gate.set()
        assert {(await world.ended(job_id))["status"] for job_id in jobs[:3]} == {"done"}


@asynchronous
async def test_singles_in_the_engine_count_as_queue(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with serving(tmp_path, AnsweringBackend(gate=gate), queue_limit=2) as world:
        pending = [asyncio.create_task(world.check(f"a{i}@example.org", "mx")) for i in range(2)]
        await until(lambda: world.state.engine.checking == 2)
        assert (await world.check("ada@example.org", "mx")).json()["data"]["details"] == "throttled"
        gate.set()
        assert {(await each).json()["data"]["result"] for each in pending} == {"valid"}
