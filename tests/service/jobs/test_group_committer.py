"""Group commit."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mailverdict.service.jobs.group_committer import PATIENCE, CommitterClosed, GroupCommitter
from mailverdict.service.jobs.schema import RowsLocked
from tests.doubles.clock import Clock
from tests.doubles.service import asynchronous

THREADS = ThreadPoolExecutor(1)


class Recorder:
    """A blocking function that remembers its calls."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.may_go = threading.Event()
        self.may_go.set()

    def __call__(self, numbers: list[int]) -> list[int]:
        self.calls.append(numbers)
        self.may_go.wait(10)
        return [10 * n for n in numbers]


@asynchronous
async def test_operations_of_one_loop_iteration_are_one_call() -> None:
    recorder = Recorder()
    group = GroupCommitter(recorder, THREADS, name="test")
    assert await asyncio.gather(*(group.run(n) for n in range(20))) == [10 * n for n in range(20)]
    assert len(recorder.calls) == 1
    await group.aclose()


@asynchronous
async def test_operations_of_the_next_iterations_join() -> None:
    recorder = Recorder()
    group = GroupCommitter(recorder, THREADS, name="test")
    first = asyncio.create_task(group.run(0))
    await asyncio.sleep(0)
    second = asyncio.create_task(group.run(1))
    assert await asyncio.gather(first, second) == [0, 10]
    assert recorder.calls == [[0, 1]]
    await group.aclose()


@asynchronous
async def test_operations_collect_while_a_call_is_running() -> None:
    recorder = Recorder()
    recorder.may_go.clear()
    group = GroupCommitter(recorder, THREADS, name="test")
    first = asyncio.create_task(group.run(0))
    while not recorder.calls:
        await asyncio.sleep(0)
    rest = [asyncio.create_task(group.run(n)) for n in range(1, 8)]
    await asyncio.sleep(0)
    recorder.may_go.set()
    assert [await first, *[await each for each in rest]] == [10 * n for n in range(8)]
    assert recorder.calls == [[0], list(range(1, 8))]
    await group.aclose()


@asynchronous
async def test_call_is_not_larger_than_allowed() -> None:
    recorder = Recorder()
    group = GroupCommitter(recorder, THREADS, name="test", group_limit=3)
    await asyncio.gather(*(group.run(n) for n in range(8)))
    assert [len(call) for call in recorder.calls] == [3, 3, 2]
    await group.aclose()


@asynchronous
async def test_error_reaches_every_caller_and_the_thread_continues() -> None:
    healthy = False

    def serve(numbers: list[int]) -> list[int]:
        if not healthy:
            raise OSError("no space left")
        return numbers

    group = GroupCommitter(serve, THREADS, name="test")
    outcomes = await asyncio.gather(*(group.run(n) for n in range(3)), return_exceptions=True)
    assert [type(each) for each in outcomes] == [OSError] * 3
    healthy = True
    assert await group.run(7) == 7
    await group.aclose()


@asynchronous
async def test_cancelled_caller_does_not_block_the_others() -> None:
    recorder = Recorder()
    group = GroupCommitter(recorder, THREADS, name="test")
    gone = asyncio.create_task(group.run(1))
    stays = asyncio.create_task(group.run(2))
    await asyncio.sleep(0)
    gone.cancel()
    assert await stays == 20
    await group.aclose()


@asynchronous
async def test_close_executes_what_is_pending_and_refuses_more() -> None:
    recorder = Recorder()
    group = GroupCommitter(recorder, THREADS, name="test")
    waiting = asyncio.create_task(group.run(1))
    await asyncio.sleep(0)
    await group.aclose()
    assert await waiting == 10
    with pytest.raises(CommitterClosed):
        await group.run(2)


class Locks:
    """A blocking function for operations of clients, of which some are locked; it remembers its calls."""

    def __init__(self, *locked: str) -> None:
        self.locked = set(locked)
        self.calls: list[list[str]] = []

    def __call__(self, operations: list[str]) -> list[str]:
        self.calls.append(operations)
        if self.locked & {operation[0] for operation in operations}:
            raise RowsLocked
        return operations

    def committer(self, clock: Clock) -> GroupCommitter[str]:
        return GroupCommitter(
            self, ThreadPoolExecutor(2), name="test", client_of=lambda name: name[0], clock=clock
        )


@asynchronous
async def test_group_that_meets_a_lock_is_tried_again_client_by_client() -> None:
    locks = Locks("b")
    group = locks.committer(Clock(0.0))
    tasks = {name: asyncio.create_task(group.run(name)) for name in ("a1", "b1", "a2", "c1")}
    done = await asyncio.gather(tasks["a1"], tasks["a2"], tasks["c1"])
    assert done == ["a1", "a2", "c1"]
    assert not tasks["b1"].done()
    assert locks.calls[:2] == [["a1", "b1", "a2", "c1"], ["a1", "a2"]]
    assert ["c1"] in locks.calls
    locks.locked.clear()
    assert await tasks["b1"] == "b1"
    await group.aclose()


@asynchronous
async def test_later_operations_of_a_locked_client_stay_out_of_the_groups_and_in_order() -> None:
    locks = Locks("b")
    group = locks.committer(Clock(0.0))
    first = asyncio.create_task(group.run("b1"))
    while "b" not in group.locked:
        await asyncio.sleep(0)
    second = asyncio.create_task(group.run("b2"))
    assert await asyncio.gather(*(group.run(f"a{n}") for n in range(3))) == ["a0", "a1", "a2"]
    assert ["a0", "a1", "a2"] in locks.calls
    assert not first.done()
    assert not second.done()
    locks.locked.clear()
    assert await asyncio.gather(first, second) == ["b1", "b2"]
    assert locks.calls[-1] == ["b1", "b2"]
    assert not group.locked
    await group.aclose()


@asynchronous
async def test_nobody_is_refused_before_an_attempt_alone_and_before_patience_is_over() -> None:
    locks, clock = Locks("b"), Clock(0.0)
    group = locks.committer(clock)
    refused = asyncio.create_task(group.run("b1"))
    while locks.calls.count(["b1"]) < 3:
        await asyncio.sleep(0)
    clock.now = PATIENCE - 1
    later = asyncio.create_task(group.run("b2"))
    while ["b1", "b2"] not in locks.calls:
        await asyncio.sleep(0)
    assert not refused.done()
    clock.now = PATIENCE
    with pytest.raises(RowsLocked):
        await refused
    assert not later.done()
    locks.locked.clear()
    assert await later == "b2"
    await group.aclose()


@asynchronous
async def test_close_waits_for_the_operations_of_a_locked_client() -> None:
    locks, clock = Locks("b"), Clock(0.0)
    group = locks.committer(clock)
    refused = asyncio.create_task(group.run("b1"))
    while "b" not in group.locked:
        await asyncio.sleep(0)
    clock.now = PATIENCE
    await group.aclose()
    with pytest.raises(RowsLocked):
        await refused
