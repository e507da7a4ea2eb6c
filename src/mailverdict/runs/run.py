"""`Run`: the handle on a verification that runs in the background.

start -> Run(execution, build) -> a task on the loop thread (`mailverdict.loop`)
partial()  build(the table of what is settled so far)
pause()    the task is cancelled, answers are kept; resume() opens the execution anew
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import html
from collections.abc import Callable, Generator
from dataclasses import replace
from datetime import UTC, date, datetime
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

import pyarrow as pa

from ..errors import BackendError, JournalError, MissingExtraError, SettingsError
from ..loop import loop_thread, start_task, wait_until_done
from ..model.table import SOURCE_LOCAL
from .execution import Execution
from .plan import day_when_done
from .progress import Listener, Progress, checked_text, is_notebook, pace_text

T = TypeVar("T")
PAUSED = "what is checked is kept; resume goes on with the rest"


class Run(Generic[T]):
    """A verification in the background; made by `mailverdict.start`.

    The kernel stays free while it runs. Settled rows are kept, and `partial` returns them at any
    time. A run can be awaited from any event loop; cancelling the await cancels the run.

    Parameters
    ----------
    execution : Execution
        The run over the unique addresses.
    build : callable
        Makes the caller's kind of result out of the table of unique addresses.
    reopen : callable, optional
        Opens the same run anew, for `resume`.

    Examples
    --------
    >>> import mailverdict as mv
    >>> run = mv.start(["ada@example.org", "nonsense"], validation_type="regex")
    >>> run.result()["verdict"].tolist()
    ['valid', 'invalid']
    >>> run.progress.state
    'done'
    """

    def __init__(
        self,
        execution: Execution,
        build: Callable[[pa.Table], T],
        reopen: Callable[[], Execution] | None = None,
    ) -> None:
        self._execution = execution
        self._build = build
        self._reopen = reopen
        self._is_paused = False
        self._live: Any = None  # the widget that shows it
        self._future: concurrent.futures.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_cancelled = False

    @property
    def progress(self) -> Progress:
        """How far the run is: a snapshot.

        Returns
        -------
        Progress
            Counts are in distinct addresses; for ``regex``, in rows.
        """
        progress = self._execution.progress
        if self._is_paused and progress.state == "cancelled":
            return replace(progress, state="paused", message=PAUSED)
        return progress

    @property
    def notices(self) -> list[str]:
        """Warnings so far, each once.

        Returns
        -------
        list of str
            In order of appearance.
        """
        return self._execution.notices

    def subscribe(self, callback: Listener) -> None:
        """Call `callback` with each new `Progress`, on the background thread.

        Parameters
        ----------
        callback : callable
            Takes a `Progress`; called at once with the present one. A callback that raises is
            removed, and the run continues.
        """
        self._execution.subscribe(lambda _: callback(self.progress))

    def cancel(self) -> None:
        """Stop the run; sessions are closed and answers are kept."""
        self._is_cancelled = True
        # At the end of the process no thread can be started.
        if self._task is not None and not self.done():
            loop_thread().loop.call_soon_threadsafe(self._task.cancel)

    def pause(self) -> None:
        """Stop as `cancel` does, until `resume`."""
        if not self.done():
            self._is_paused = True
            self.cancel()

    def resume(self) -> Run[T]:
        """Go on after the end with what is not checked yet.

        That is after `pause`, or when there is quota again. Answers come from the journal, as in a
        second call of `start`. Without a journal the run keeps those it has, but what a service was
        asked about meanwhile costs its quota again.

        Returns
        -------
        Run
            Itself, for chaining.

        Raises
        ------
        SettingsError
            If the run goes on.
        JournalError
            If the journal cannot be opened.
        """
        if self._is_paused:
            self.wait()  # sessions are being closed
        if self._reopen is None or not self.done():
            raise SettingsError("the run has not ended: pause it, or wait for its end")
        before = self._execution
        after = self._reopen()
        is_free = before.backend.is_free(before.settings.validation_type)
        if before.journal is None and not is_free:
            after.results = before.results
            after.emit_progress()
        after.noticed = list(before.noticed)
        self._execution = after
        self._task = None
        self._is_paused = False
        self._is_cancelled = False
        for listener in before.listeners:
            after.subscribe(listener)
        return self._start()

    def _loses_answers(self) -> bool:
        """Whether a pause loses answers that are paid for and have not come: nothing keeps them."""
        return self._execution.journal is None and self._execution.backend.source != SOURCE_LOCAL

    def done(self) -> bool:
        """Whether the run has ended.

        Returns
        -------
        bool
            True also after a failure, `pause` or `cancel`.
        """
        return self._future is not None and self._future.done()

    def wait(self, timeout: float | None = None) -> Run[T]:
        """Wait until the run has ended; an error of the run is raised by `result` only.

        Parameters
        ----------
        timeout : float, optional
            Seconds; the run continues after them.

        Returns
        -------
        Run
            Itself, for chaining.

        Raises
        ------
        TimeoutError
            If the run has not ended after `timeout` seconds.
        """
        wait_until_done(self._started_future(), timeout)
        return self

    def partial(self) -> T:
        """Return what is checked so far; the rest is ``pending``.

        Returns
        -------
        same kind as the input of `start`
            One row out per row in.
        """
        return self._build(self._settled_table())

    def result(self, timeout: float | None = None) -> T:
        """Wait for the end and return the whole result.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait at most.

        Returns
        -------
        same kind as the input of `start`
            One row out per row in; after `cancel`, what was checked.

        Raises
        ------
        BackendError
            If the backend failed; what was checked is on its `partial`.
        JournalError
            If the journal cannot be written, as on a full disk; it has a `partial`, too.
        TimeoutError
            If the run has not ended after `timeout` seconds.
        KeyboardInterrupt
            At Ctrl-C. The run goes on; what was checked until then is on its `partial`.
        """
        try:
            return self._wait_for_result(timeout)
        except KeyboardInterrupt as interrupt:
            self._describe(interrupt)
            raise

    def _wait_for_result(self, timeout: float | None = None) -> T:
        future = self._started_future()
        self.wait(timeout)
        error = future.exception()
        if isinstance(error, BackendError | JournalError):
            error.partial = self.partial()
        if error is not None:
            raise error
        return self.partial()

    def __await__(self) -> Generator[Any, None, T]:
        """Await the result from any event loop; cancelling the await cancels the run."""
        return self._await_result().__await__()

    def __repr__(self) -> str:
        """One line: state and counts."""
        return f"<mailverdict.Run {self.progress}>"

    def _repr_html_(self) -> str:
        """A small table for notebooks; every text is escaped."""
        return render_progress(self.progress)

    def _repr_mimebundle_(self, **_: object) -> Any:
        """In a notebook with anywidget a live widget; else the table."""
        shown = {"text/plain": repr(self), "text/html": self._repr_html_()}
        live = self._live_widget()
        if live is None:
            return shown
        data, metadata = live._repr_mimebundle_()
        return {**data, **shown}, metadata

    def _display_(self) -> Any:
        """The same for marimo, which would prefer the table."""
        return self._live_widget() or SimpleNamespace(_repr_html_=self._repr_html_)

    def _live_widget(self, *, has_buttons: bool = True) -> Any:
        """The widget that shows this run; None outside of a notebook, and without anywidget."""
        if self._live is None and is_notebook():
            try:
                # Only a notebook loads the widget, which is in a higher layer; see pyproject.toml.
                from ..widgets import RunWidget  # noqa: PLC0415
            except MissingExtraError:
                return None
            self._live = RunWidget(self, has_buttons=has_buttons)
        return self._live

    def _start(self) -> Run[T]:
        """Begin on the loop thread."""
        self._future = start_task(self._run_task())
        return self

    def _started_future(self) -> concurrent.futures.Future[None]:
        """The future of the run, which is started if it was not."""
        if self._future is None:
            self._start()
        assert self._future is not None
        return self._future

    async def _run_task(self) -> None:
        """Run in a task of its own, so that the future ends only after sessions are closed."""
        self._task = asyncio.ensure_future(self._execution.run())
        if self._is_cancelled:
            # A task cancelled before its first step would not close its journal.
            await asyncio.sleep(0)
            self._task.cancel()
        await asyncio.wait([self._task])
        if not self._task.cancelled():
            self._task.result()

    async def _await_result(self) -> T:
        """Wait without blocking the caller's event loop."""
        ended = asyncio.wrap_future(self._started_future())
        # `result` raises the error; without this, asyncio would also log it as never retrieved.
        ended.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            await asyncio.wait([ended])
        except asyncio.CancelledError:
            self.cancel()
            raise
        return await asyncio.to_thread(self.result)

    def _replace_result(self, make: Callable[[], T]) -> None:
        """Make the result by `make` from now on; the rows that the run has kept are dropped."""
        self._build = lambda unique: make()
        self._execution.drop_rows()

    def _settled_table(self) -> pa.Table:
        """The fields that results are made from, of all addresses.

        Those that are not settled are pending.
        """
        return self._execution.results.table(self._execution.settings.validation_type)

    def _interrupt(self) -> None:
        """Cancel and wait until sockets are closed."""
        self.cancel()
        self.wait()

    def _describe(self, interrupt: KeyboardInterrupt) -> None:
        """Put what is settled on the exception of Ctrl-C, and three lines about the run."""
        interrupt.partial = self.partial()  # type: ignore[attr-defined]
        for line in describe_interrupt(self):
            interrupt.add_note(line)


def describe_interrupt(run: Run[Any]) -> tuple[str, str, str]:
    """Three lines for Ctrl-C: how far the run is, where its rows are, and how to go on."""
    checked = f"Interrupted: {checked_text(run.progress)}."
    if run.done():
        rows = "The rows so far: sys.last_value.partial, "
        rows += "or .partial of this exception where it is caught."
        again = "To go on, make the same call again"
    else:
        rows = "The run goes on while this process does: "
        rows += "its partial() has the rows so far, cancel() ends it."
        again = "If it ends early, make the same call again"
    execution = run._execution
    journal = execution.journal
    if execution.backend.is_free(execution.settings.validation_type):
        way = f"{again}: it begins anew."
    elif journal is None:
        way = "No journal keeps the answers: the next call begins anew, "
        way += 'unless it has journal="answers.db".'
    else:
        way = f"{again}: the answers are kept in {journal.path}."
    return checked, rows, way


def quota_text(progress: Progress, today: date | None = None) -> str:
    """What is left of the quota, which rows use it first, and on which day the rest is done.

    Empty without a quota. `today` is that of UTC.

    >>> from mailverdict.backend import Quota
    >>> progress = Progress(total=250, settled=40, submitted=40, quota=Quota(100, 40, 60))
    >>> quota_text(progress, date(2026, 11, 26)).split("; ")
    ['60 of 100 addresses left today',
     'rows come in their order, and at this quota all are done on 2026-11-28']
    """
    quota = progress.quota
    if quota is None or progress.state == "done":
        return ""
    # A run that has stopped says the day itself.
    if progress.state == "stopped" or not is_short_of_quota(progress):
        return str(quota)
    text = f"{quota}; rows come in their order"
    day = day_when_done(addresses_left(progress), quota, today or datetime.now(UTC).date())
    if day is not None:
        text += f", and at this quota all are done on {day}"
    return text


def is_short_of_quota(progress: Progress) -> bool:
    """Whether today's quota ends before the column."""
    return progress.quota is not None and addresses_left(progress) > progress.quota.remaining


def addresses_left(progress: Progress) -> int:
    """How many are still to be submitted."""
    begun = max(progress.settled, progress.from_journal + progress.submitted)
    return max(progress.total - begun, 0)


def render_progress(progress: Progress) -> str:
    """The snapshot as HTML; every text is escaped."""
    from ..theme import badge, bar, notebook  # noqa: PLC0415 - only notebooks need it

    counts = dict(progress.verdicts)
    pending = progress.total - progress.settled
    if pending > 0:
        counts["pending"] = pending
    if progress.errors > 0:
        counts["error"] = progress.errors
    cells = []
    for name, count in counts.items():
        cells.append(f'<td>{badge(name)}</td><td class="mv-number">{count:,}</td>')
    state = html.escape(progress.state.capitalize())
    parts = [
        f"<p><b>{state}</b>: {html.escape(checked_text(progress))}</p>",
        bar(counts),
        f"<table><tr>{''.join(cells)}</tr></table>",
    ]
    for note in (progress.message, pace_text(progress), quota_text(progress), progress.problem):
        if note:
            parts.append(f'<p class="mv-soft">{html.escape(note)}</p>')
    return notebook("".join(parts))
