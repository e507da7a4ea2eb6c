"""Columns and single checks at one time with one backend: together they keep to the sessions of a mail server."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing

import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.backend import Batch, Settled
from mailverdict.local.backend import CheckRecord
from mailverdict.local.smtp.pool import KEPT_FOR
from mailverdict.sandbox import World
from mailverdict.sandbox.dns_table import DomainRecords
from mailverdict.sandbox.smtp_script import Exchange
from tests.doubles.service import asynchronous, serving, until

pytestmark = pytest.mark.usefixtures("skipped_waits")

BUSY = Exchange(
    "mx.busy.example", "a distant server with every mailbox", mailboxes=None, delay=0.01
)
ZONES = {
    "busy.example": DomainRecords({"MX": ("10 mx.busy.example",)}),
    "busy-too.example": DomainRecords({"MX": ("10 mx.busy.example", "20 mx.plain.example")}),
}


def people(count, domain="busy.example", name="ada"):
    return [f"{name}{i}@{domain}" for i in range(count)]


async def rows_of(backend, emails, settled=None):
    """The reasons of a column's rows; `settled` gets their number as they come."""
    reasons = []
    async with aclosing(backend.verify(Batch(pa.array(emails), "smtp"))) as events:
        async for event in events:
            if isinstance(event, Settled):
                reasons += event.rows["reasons"].to_pylist()
                if settled is not None:
                    settled.append(len(event.rows))
    assert len(reasons) == len(emails)
    return reasons


def pool_of(backend):
    """What the runs of a backend share on this event loop."""
    return backend.mailboxes.pools[asyncio.get_running_loop()]


def runs_of(backend):
    """The runs that use a mail server."""
    return {run for each in pool_of(backend).exchanges.values() for run in each.runs}


def assert_nothing_is_counted(backend):
    pool = pool_of(backend)
    assert runs_of(backend) == set()
    assert pool.active == 0
    assert (pool.by_address, pool.by_client) == ({}, {})
    assert {
        (each.size, len(each.sessions), len(each.held)) for each in pool.exchanges.values()
    } <= {(0, 0, 0)}


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 2])
def test_columns_and_checks_together_keep_to_the_limit_and_no_check_waits_for_a_column(limit):
    ended = []

    async def column(backend, name):
        domain = "busy-too.example" if name == "c" else "busy.example"
        reasons = await rows_of(backend, people(1000, domain, name))
        ended.append(name)
        return set(reasons)

    async def check(backend, number):
        found = await backend.check(f"single{number}@busy.example", "smtp")
        ended.append(number)
        return found.details

    async def run():
        async with World(ZONES, exchanges=[BUSY], max_sessions_per_exchange=limit) as world:
            backend = world.make_backend()
            columns = [asyncio.create_task(column(backend, name)) for name in "abc"]
            await until(lambda: world.smtp.stats(BUSY.host).open_now == limit)
            checks = [asyncio.create_task(check(backend, number)) for number in range(20)]
            found = await asyncio.gather(*columns), await asyncio.gather(*checks)
            assert_nothing_is_counted(backend)
            return found, world.smtp.stats(BUSY.host).most_open

    (columns, checks), most_open = asyncio.run(run())
    assert columns == [{"catch_all"}] * 3
    assert checks == ["catch_all"] * 20
    assert most_open == limit
    assert set(ended[:20]) == set(range(20))


@pytest.mark.slow
def test_a_short_column_does_not_wait_for_a_long_one():
    async def run():
        async with World(ZONES, exchanges=[BUSY], max_sessions_per_exchange=1) as world:
            backend, settled = world.make_backend(), []
            long = asyncio.create_task(rows_of(backend, people(3000), settled))
            await until(lambda: world.smtp.stats(BUSY.host).open_now)
            await rows_of(backend, people(30, name="grace"))
            at_end = sum(settled)
            await long
            return at_end, world.smtp.stats(BUSY.host).most_open

    at_end, most_open = asyncio.run(run())
    assert at_end < 1000
    assert most_open == 1


def test_columns_that_are_cancelled_give_their_sessions_back():
    async def run():
        async with World(ZONES, exchanges=[BUSY]) as world:
            backend = world.make_backend()
            stats = world.smtp.stats(BUSY.host)
            columns = [
                asyncio.create_task(rows_of(backend, people(1000, name=name))) for name in "abc"
            ]
            await until(lambda: stats.open_now == 2)
            waiting = asyncio.create_task(backend.check("ada@busy.example", "smtp"))
            for each in columns:
                each.cancel()
            ends = await asyncio.gather(*columns, return_exceptions=True)
            found = await waiting
            assert_nothing_is_counted(backend)
            return [type(end) for end in ends], found.details, stats.most_open

    assert asyncio.run(run()) == ([asyncio.CancelledError] * 3, "catch_all", 2)


@pytest.mark.parametrize(
    "steps",
    [*range(0, 12, 3), *(pytest.param(n, marks=pytest.mark.slow) for n in range(12) if n % 3)],
)
def test_a_column_that_is_cancelled_at_any_step_leaves_no_session_counted(steps):
    async def run():
        async with World(ZONES, exchanges=[BUSY]) as world:
            backend = world.make_backend()
            await backend.check("ada@busy.example", "smtp")  # later look-ups are in the cache
            column = asyncio.create_task(rows_of(backend, people(100)))
            while not runs_of(backend):
                await asyncio.sleep(0)
            for _ in range(steps):
                await asyncio.sleep(0)
            column.cancel()
            other = backend.check("bo@busy.example", "smtp")
            _, found = await asyncio.gather(column, other, return_exceptions=True)
            assert_nothing_is_counted(backend)
            return found.details

    assert asyncio.run(run()) == "catch_all"


def test_a_refusing_server_is_not_asked_by_the_next_runs_for_ten_minutes():
    async def run():
        async with World() as world:
            backend, stats = world.make_backend(), world.smtp.stats("mx.blocklist.example")
            counts = []
            for _ in range(2):
                assert set(await rows_of(backend, people(40, "blocklist.example"))) == {"protected"}
                counts.append(stats.sessions)
            found = await backend.check("ada@blocklist.example", "smtp")
            assert (found.result, found.metadata["inferred"]) == ("unknown", True)
            counts.append(stats.sessions)
            record = CheckRecord()  # of `explain`, which shows a dialogue and so has one
            await backend.check("ada@blocklist.example", "smtp", record=record)
            assert record.transcript
            counts.append(stats.sessions)
            await asyncio.sleep(KEPT_FOR)
            await backend.check("ada@blocklist.example", "smtp")
            return [*counts, stats.sessions]

    assert asyncio.run(run()) == [3, 3, 3, 4, 5]


def test_a_server_that_could_not_be_reached_is_dialled_by_the_next_run():
    async def run():
        away = Exchange("mx.away.example", "back later", mailboxes=None)
        async with World(exchanges=[away]) as world:
            backend = world.make_backend()
            await world.smtp.stop()
            before = await rows_of(backend, people(5, "away.example"))
            await world.smtp.start()
            return set(before), set(await rows_of(backend, people(5, "away.example")))

    assert asyncio.run(run()) == ({"port_closed"}, {"catch_all"})


@pytest.mark.slow
def test_calls_in_several_threads_keep_to_the_limit_of_their_backend():
    with World(ZONES, exchanges=[BUSY]) as world, ThreadPoolExecutor(4) as pool:
        backend = world.make_backend()
        columns = [people(200, name=n) for n in "abcd"]
        given = {"validation_type": "smtp", "backend": backend, "journal": None}
        calls = [pool.submit(mv.verify, column, **given) for column in columns]
        found = [set(call.result()["reasons"]) for call in calls]
        assert found == [{"catch_all"}] * 4
        assert world.smtp.stats(BUSY.host).most_open == 2


def test_limits_that_one_run_observed_hold_for_the_next():
    async def run():
        strict = Exchange(
            "mx.strict.example", "ten recipients a session", mailboxes=None, max_per_session=10
        )
        async with World(exchanges=[strict]) as world:
            backend = world.make_backend()
            await rows_of(backend, people(30, "strict.example"))
            observed = pool_of(backend).exchanges[strict.host].plan
            await rows_of(backend, people(30, "strict.example", "bo"))
            return observed.rcpt_per_session, pool_of(backend).exchanges[
                strict.host
            ].plan == observed

    assert asyncio.run(run()) == (10, True)


@pytest.mark.slow  # columns and checks together are tried above, without a service
@asynchronous
async def test_batches_and_single_checks_of_a_service_together_keep_to_the_limit(tmp_path):
    async with World(ZONES, exchanges=[BUSY]) as world:
        backend = world.make_backend()
        async with serving(tmp_path, backend, daily_limit=10_000) as service:
            jobs = []
            for n in range(8):
                emails = people(100, name=f"client{n}x")
                jobs += await service.submitted(
                    *emails, validation_type="smtp", address=f"192.0.2.{n + 1}"
                )
            await until(lambda: world.smtp.stats(BUSY.host).open_now == 2)
            checks = [
                asyncio.create_task(service.check(f"single{n}@busy.example", "smtp"))
                for n in range(10)
            ]
            replies = await asyncio.gather(*checks)
            assert [reply.json()["data"]["details"] for reply in replies] == ["catch_all"] * 10
            for job_id in jobs:
                assert (await service.ended(job_id))["status"] == "done"
            assert world.smtp.stats(BUSY.host).most_open == 2


@pytest.mark.slow
@asynchronous
async def test_jobs_of_a_client_at_slow_servers_do_not_delay_those_of_another(tmp_path):
    slow = [Exchange(f"mx.slow{n}.example", "slow", mailboxes=None, delay=5.0) for n in range(20)]
    zones = {
        f"slow{n}.example": DomainRecords({"MX": (f"10 mx.slow{n}.example",)}) for n in range(20)
    }
    async with (
        World(zones, exchanges=slow, max_sessions=16) as world,
        serving(tmp_path, world.make_backend(), daily_limit=10_000, concurrency=40) as service,
    ):
        for start in range(0, 200, 100):
            emails = [f"ada{n}@slow{n % 20}.example" for n in range(start, start + 100)]
            await service.submitted(*emails, validation_type="smtp", address="192.0.2.1")
        await until(lambda: sum(world.smtp.stats(each.host).open_now for each in slow) >= 14)
        began = asyncio.get_running_loop().time()
        few = [*(f"nobody{n}@plain.example" for n in range(4)), "ada@plain.example"]
        jobs = await service.submitted(*few, validation_type="smtp", address="192.0.2.2")
        found = [(await service.ended(job_id))["verification"]["result"] for job_id in jobs]
        check = await service.check("grace@plain.example", "smtp", address="192.0.2.1")
        assert found == ["invalid"] * 4 + ["valid"]
        assert check.json()["data"]["result"] == "valid"
        assert asyncio.get_running_loop().time() - began < 2.0
