"""Clients in turn: many addresses of one at slow mail servers do not delay another's few. In virtual time."""

import asyncio

import pytest

from tests.doubles.clock import run_virtual
from tests.doubles.mail_servers import ScriptedWorld, Server

SLOW = 5.0  # seconds to each reply
SOON = 2.0  # seconds in which ten addresses of another client are answered


def slow_world(slow=300, **quick):
    """Slow mail servers and a quick one."""
    servers = {f"mx.slow{n}.example": Server(delay=SLOW) for n in range(slow)}
    return ScriptedWorld({**servers, "mx.quick.example": Server(**quick)})


def long_list(number=0, addresses=20_000, slow=300):
    return [f"user{number}x{n}@slow{n % slow}.example" for n in range(addresses)]


async def seconds_of(loop, work):
    began = loop.time()
    await work
    return loop.time() - began


async def cancel(*tasks):
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.slow
@pytest.mark.parametrize("others", [1, 2, 5])
def test_a_short_list_at_a_quick_server_does_not_wait_for_long_lists_at_slow_ones(others):
    async def run(loop):
        world = slow_world()
        pool = world.pool()
        long = [
            asyncio.create_task(world.verify(pool, long_list(n), f"long {n}"))
            for n in range(others)
        ]
        await asyncio.sleep(20)
        short = await seconds_of(
            loop, world.verify(pool, [f"user{n}@quick.example" for n in range(10)], "short")
        )
        checks = [world.verify(pool, [f"user1{n}@quick.example"], "checks") for n in range(10)]
        single = await seconds_of(loop, asyncio.gather(*checks))
        busy = pool.active
        await cancel(*long)
        return short, single, busy, pool.active

    short, single, busy, left = run_virtual(run)
    assert (short < SOON, single < SOON) == (True, True)
    assert (busy >= 175, left) == (True, 0)


def test_no_client_waits_for_the_whole_queue_of_another_at_one_server():
    async def run(loop):
        world = ScriptedWorld({"mx.quick.example": Server()})
        pool = world.pool()
        long = asyncio.create_task(
            world.verify(pool, [f"user{n}@quick.example" for n in range(20_000)], "long")
        )
        await asyncio.sleep(1)
        short = await seconds_of(
            loop, world.verify(pool, [f"user{n}@quick.example" for n in range(10)], "short")
        )
        asked = len(world.servers["mx.quick.example"].asked)
        await cancel(long)
        return short, asked, world.most

    short, asked, most = run_virtual(run)
    assert short < SOON
    assert (asked < 2_000, most) == (True, 2)


def test_an_eighth_of_the_sessions_is_kept_for_clients_that_have_few():
    async def run(loop):
        world = slow_world()
        pool = world.pool(max_sessions=80)
        task = asyncio.create_task(world.verify(pool, long_list(1)))
        await asyncio.sleep(1)
        alone = pool.active
        more = asyncio.create_task(world.verify(pool, long_list(2)))
        await asyncio.sleep(1)
        both = pool.active
        await cancel(task, more)
        return alone, both

    assert run_virtual(run) == (70, 72)


def test_the_same_address_of_two_clients_is_asked_once():
    async def run(loop):
        world = ScriptedWorld({"mx.quick.example": Server()})
        pool = world.pool(catch_all_probe=False)
        found = await asyncio.gather(
            *(world.verify(pool, ["user@quick.example"], name) for name in "ab")
        )
        return [list(each) for each in found], world.servers["mx.quick.example"].asked

    assert run_virtual(run) == ([["user@quick.example"]] * 2, ["user@quick.example"])
