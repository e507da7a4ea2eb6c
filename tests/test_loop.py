"""The bridge from sync to async: it works wherever it is called, and Ctrl-C interrupts it."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import sys
import threading
import traceback

import pytest

from mailverdict.loop import loop_thread, run_sync, start_task, wait_until_done


async def answer():
    await asyncio.sleep(0)
    return threading.current_thread().name


def test_it_runs_on_a_thread_of_its_own_and_always_the_same():
    assert run_sync(answer()) == "mailverdict-loop"
    assert loop_thread() is loop_thread()
    assert loop_thread().thread.daemon


def test_it_works_inside_a_running_loop():
    async def cell():
        return run_sync(answer())

    assert asyncio.run(cell()) == "mailverdict-loop"


def test_it_works_from_many_threads_and_starts_once():
    seen = []
    threads = [
        threading.Thread(target=lambda: seen.append((run_sync(answer()), loop_thread())))
        for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == 1


def test_an_error_is_raised_where_it_was_called_for():
    async def fail():
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        run_sync(fail())


def test_waiting_has_an_end_and_the_work_goes_on():
    gate = threading.Event()

    async def wait():
        while not gate.is_set():
            await asyncio.sleep(0.001)
        return "done"

    future = start_task(wait())
    with pytest.raises(TimeoutError, match=r"not finished after 0\.01 seconds"):
        wait_until_done(future, timeout=0.01)
    gate.set()
    wait_until_done(future, timeout=60)
    assert future.result() == "done"


def is_waiting(frame):
    """Whether a thread has begun to wait for its result: before, an interrupt reaches the caller's own code."""
    return any(each.f_code is wait_until_done.__code__ for each, _ in traceback.walk_stack(frame))


def test_ctrl_c_cancels_the_work_and_is_raised():
    begun, ended = threading.Event(), threading.Event()

    async def endless():
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    main = threading.main_thread().ident

    def interrupt():
        begun.wait()
        while not is_waiting(sys._current_frames()[main]):
            continue
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        run_sync(endless())
    assert ended.wait(60)


def test_context_variables_of_the_caller_are_seen():
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("set")

    async def read():
        return variable.get()

    assert run_sync(read()) == "set"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_gets_a_loop_of_its_own():
    parent = loop_thread()
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:  # no pytest in here: say what was seen and leave
        is_fresh = loop_thread() is not parent and run_sync(answer()) == "mailverdict-loop"
        os.write(send, b"fresh" if is_fresh else b"stale")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(receive, 9) == b"fresh"
    assert loop_thread() is parent
