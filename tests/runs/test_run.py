"""The handle on a run: its result now or later, from any thread, any loop, any process."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from dataclasses import fields
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.backend import Noticed, Settled
from mailverdict.errors import BackendError, SettingsError
from mailverdict.model.words import ValidationType
from mailverdict.runs.execution import Execution, RunSettings
from mailverdict.runs.plan import Plan, plan_run
from mailverdict.runs.progress import Progress
from mailverdict.runs.run import Run, render_progress
from tests.doubles.answering_backend import AnsweringBackend
from tests.doubles.scripted_backend import ScriptedBackend, rows_of
from tests.doubles.tables import each_row

EMAILS = ["a@example.org", "b@example.org"]
HALF = Settled(rows_of(EMAILS[:1]), positions=np.array([0]))


def statuses(table):
    return table["status"].to_pylist()


def run_of(backend, finish=statuses):
    return Run(Execution(pa.array(EMAILS), backend, RunSettings(ValidationType.MX)), finish)


@pytest.fixture
def endless():
    """A run of which half is settled, and the other half never comes by itself."""
    gate = threading.Event()
    run = run_of(ScriptedBackend([HALF, Noticed("")], gate=gate))._start()
    while not run.progress.settled:
        pass
    yield run
    gate.set()


def test_the_result_comes_at_the_end_as_often_as_wanted():
    run = run_of(ScriptedBackend())._start()
    assert run.result() == run.result(timeout=9) == run.partial() == ["done", "done"]
    assert run.done()
    assert run.wait() is run
    assert (
        repr(run)
        == "<mailverdict.Run done: 2 of 2 addresses checked; valid 2, risky 0, invalid 0, unknown 0>"
    )


def test_a_run_that_was_not_started_starts_when_it_is_waited_for():
    assert run_of(ScriptedBackend()).result() == ["done", "done"]


def test_the_partial_result_is_there_at_any_time(endless):
    assert endless.partial() == ["done", "pending"]
    assert not endless.done()


def test_waiting_has_an_end_and_the_run_goes_on(endless):
    with pytest.raises(TimeoutError, match="not finished after 0 seconds"):
        endless.wait(timeout=0)
    with pytest.raises(TimeoutError):
        endless.result(timeout=0)
    assert endless.progress.state == "running"


class TestCancelling:
    def test_cancelling_keeps_what_is_settled(self, endless):
        endless.cancel()
        assert endless.result() == ["done", "pending"]
        assert endless.progress.state == "cancelled"
        assert endless._execution.backend.closed.is_set()

    def test_cancelling_before_the_start_ends_it_properly(self):
        backend = ScriptedBackend([HALF, Noticed("")], gate=threading.Event())
        run = run_of(backend)
        run.cancel()
        assert run.result() in (["done", "pending"], ["pending", "pending"])
        assert run.progress.state == "cancelled"

    @each_row("number", range(20))
    def test_cancelling_right_after_the_start_ends_it_properly(self, number):
        run = run_of(ScriptedBackend([HALF, Noticed("")], gate=threading.Event()))._start()
        run.cancel()
        run.wait()
        assert run.progress.state == "cancelled"

    def test_cancelling_what_is_over_changes_nothing(self):
        run = run_of(ScriptedBackend())._start()
        run.wait().cancel()
        assert run.result() == ["done", "done"]
        assert run.progress.state == "done"

    def test_interrupting_waits_until_sessions_are_closed(self, endless):
        endless._interrupt()
        assert endless.done()
        assert endless._execution.backend.closed.is_set()


class TestPausing:
    """`pause` stops as `cancel` does, `resume` goes on with the rest."""

    def paused(self, *scripts, **options):
        """A run that is paused after one of two addresses, and its backend."""
        backend = ScriptedBackend([HALF, Noticed("")], *scripts, gate=threading.Event(), **options)
        opened = partial(Execution, pa.array(EMAILS), backend, RunSettings(ValidationType.MX))
        run = Run(opened(), statuses, opened)
        run._execution.add_notice("said before")
        run._start()
        while not run.progress.settled:
            pass
        run.pause()
        run.wait()  # or the gate may open before the run has stopped, and it ends by itself
        backend.gate.set()
        return run, backend

    def test_what_is_settled_is_kept_and_only_the_rest_is_asked(self):
        run, backend = self.paused()
        assert run.result() == ["done", "pending"]
        assert (run.progress.state, run.progress.settled) == ("paused", 1)
        assert run.resume() is run
        assert run.result() == ["done", "done"]
        assert (run.progress.state, run.progress.settled, run.progress.verdicts["valid"]) == (
            "done",
            2,
            2,
        )
        assert backend.asked == [EMAILS, EMAILS[1:]]
        assert run.notices == ["said before"]

    def test_listeners_see_the_pause_and_what_follows(self):
        run, _ = self.paused()
        seen = []
        run.wait().subscribe(lambda progress: seen.append((progress.state, progress.settled)))
        run.resume().wait()
        assert seen[0] == ("paused", 1)
        assert seen[1] == ("running", 1)
        assert seen[-1] == ("done", 2)

    def test_after_a_failure_it_goes_on_too(self):
        run, backend = self.paused([BackendError("away")])
        run.resume().wait()
        assert run.progress.state == "failed"
        assert run.resume().result() == ["done", "done"]
        assert backend.asked == [EMAILS, EMAILS[1:], EMAILS[1:]]

    def test_with_a_journal_the_answers_are_taken_from_it(self, tmp_path):
        backend = AnsweringBackend()
        run = mv.start(EMAILS, backend=backend, journal=tmp_path / "j.db", limit=1)
        assert run.result()["status"].tolist() == ["done", "pending"]
        assert run.resume().result()["status"].tolist() == ["done", "done"]
        assert (run.progress.from_journal, [emails for _, emails in backend.batches]) == (
            1,
            [EMAILS[:1], EMAILS[1:]],
        )

    def test_a_run_that_goes_on_is_not_resumed(self, endless):
        with pytest.raises(SettingsError, match="the run has not ended: pause it"):
            endless.resume()

    def test_a_free_run_is_made_again(self):
        run = mv.start(["a@x.example", "b@x.example"], validation_type="regex", limit=1)
        assert run.result()["status"].tolist() == ["done", "pending"]
        assert run.resume().result()["status"].tolist() == ["done", "pending"]
        assert (run.progress.settled, run.progress.verdicts["valid"]) == (1, 1)


class TestFailing:
    def test_a_backends_error_carries_the_partial_result(self):
        run = run_of(ScriptedBackend([HALF, BackendError("dead")]))._start()
        for _ in range(2):
            with pytest.raises(BackendError, match="dead") as caught:
                run.result()
            assert caught.value.partial == ["done", "pending"]
        assert run.wait().partial() == ["done", "pending"]

    def test_another_error_is_raised_as_it_is(self):
        with pytest.raises(ZeroDivisionError):
            run_of(ScriptedBackend([ZeroDivisionError()])).result()


class TestListening:
    def test_a_subscriber_hears_the_present_and_all_that_follows(self):
        states, run = [], run_of(ScriptedBackend())
        run.subscribe(lambda progress: states.append((progress.state, progress.settled)))
        run.result()
        assert states == [("running", 0), ("running", 2), ("done", 2)]

    def test_a_late_subscriber_hears_the_end(self):
        states, run = [], run_of(ScriptedBackend())
        run.result()
        run.subscribe(lambda progress: states.append(progress.state))
        assert states == ["done"]

    def test_a_subscriber_that_fails_at_once_does_no_harm(self, caplog):
        run = run_of(ScriptedBackend())
        run.subscribe(lambda progress: 1 / 0)
        assert run.result() == ["done", "done"]
        assert len(caplog.records) == 1

    def test_notices_are_a_copy(self):
        run = run_of(ScriptedBackend([Noticed("slow")]))._start().wait()
        run.notices.append("mine")
        assert run.notices == ["slow"]


class TestWhereItRuns:
    def test_inside_a_running_loop_as_in_a_notebook(self):
        async def cell():
            return run_of(ScriptedBackend()).result()  # what asyncio.run could not do here

        assert asyncio.run(cell()) == ["done", "done"]

    def test_awaited_from_any_loop(self):
        async def cell():
            return await run_of(ScriptedBackend()), await run_of(ScriptedBackend())._start()

        assert asyncio.run(cell()) == (["done", "done"], ["done", "done"])

    def test_an_error_that_the_await_raises_is_not_logged_as_well(self):
        logged = []

        async def fail():
            with pytest.raises(BackendError, match="dead"):
                await run_of(ScriptedBackend([BackendError("dead")]))

        async def cell():
            asyncio.get_running_loop().set_exception_handler(
                lambda _, context: logged.append(context["message"])
            )
            await fail()

        asyncio.run(cell())
        run_of(ScriptedBackend()).result()  # the thread of runs keeps the last one
        gc.collect()
        assert logged == []

    def test_cancelling_the_await_cancels_the_run(self, endless):
        async def cell():
            task = asyncio.ensure_future(endless._await_result())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(cell())
        assert endless.wait().progress.state == "cancelled"

    def test_from_many_threads_at_once(self):
        results = []
        threads = [
            threading.Thread(target=lambda: results.append(run_of(ScriptedBackend()).result()))
            for _ in range(16)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [["done", "done"]] * 16

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
    def test_in_a_forked_child_after_the_parents_loop_has_run(self):
        assert run_of(ScriptedBackend()).result() == ["done", "done"]
        context = multiprocessing.get_context("fork")
        receive, send = context.Pipe(duplex=False)
        child = context.Process(target=lambda: send.send(run_of(ScriptedBackend()).result()))
        child.start()
        assert receive.poll(60)
        assert receive.recv() == ["done", "done"]
        child.join()


SLOW = """
import threading
from dataclasses import fields
import mailverdict as mv
from mailverdict.backend import Noticed, Settled
from tests.doubles.scripted_backend import ScriptedBackend, rows_of

backend = ScriptedBackend([Settled(rows_of(["a@example.org"])), Noticed("")], gate=threading.Event())
said = lambda progress: print("settled", flush=True) if progress.settled == 1 else None
options = {"backend": backend, "journal": None, "progress": said}
try:
    CALL
except KeyboardInterrupt as interrupt:
    print(interrupt.partial["status"].tolist(), interrupt.__notes__, backend.closed.is_set())
    raise
"""


@pytest.mark.slow
@each_row(
    ("call", "is_closed", "where"),
    [
        ("verify(EMAILS, **options)", True, "sys.last_value.partial"),
        ("start(EMAILS, **options).result()", False, "its partial() has the rows so far"),
    ],
    ids=["verify", "start"],
)
def test_ctrl_c_is_felt_at_once_and_keeps_what_is_settled(call, is_closed, where):
    call = call.replace("EMAILS", str(EMAILS))
    script = SLOW.replace("CALL", f"mv.{call}")
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline() == "settled\n"
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert "['done', 'pending']" in out
    assert out.rstrip().endswith(str(is_closed))
    assert child.returncode == -signal.SIGINT
    checked, rows, way = err.rstrip().splitlines()[-3:]
    assert checked == "Interrupted: 1 of 2 addresses checked."
    assert where in rows
    assert "No journal keeps the answers" in way


def test_the_snapshot_in_a_notebook_is_escaped():
    html = render_progress(
        Progress(state="running", total=2, settled=1, message="<script>alert(1)</script>")
    )
    assert "<script>" not in html
    assert "<b>Running</b>: 1 of 2 addresses checked" in html
    assert run_of(ScriptedBackend())._repr_html_().startswith("<style>")


@each_row(
    ("value", "names"),
    [
        (
            run_of(ScriptedBackend()),
            {
                "cancel",
                "done",
                "notices",
                "partial",
                "pause",
                "progress",
                "result",
                "resume",
                "subscribe",
                "wait",
            },
        ),
        (Progress(), {field.name for field in fields(Progress)} | {"is_over"}),
        (
            plan_run(rows=1, missing=0, malformed=0, unique=1),
            {field.name for field in fields(Plan)},
        ),
    ],
    ids=["Run", "Progress", "Plan"],
)
def test_only_documented_names_are_public(value, names):
    assert {name for name in dir(value) if not name.startswith("_")} == names
