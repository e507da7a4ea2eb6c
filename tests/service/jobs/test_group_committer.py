"""Group commit."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mailverdict.service.jobs.group_committer import CommitterClosed, GroupCommitter
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
