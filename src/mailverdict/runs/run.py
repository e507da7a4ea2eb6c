"""`Run`: the handle on a verification that runs in the background."""

from __future__ import annotations

import asyncio
import concurrent.futures
import html
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

import pyarrow as pa

from ..errors import BackendError, JournalError
from ..loop import loop_thread, start_task, wait_until_done
from .execution import Execution
from .progress import Listener, Progress, checked_text, pace_text

T = TypeVar("T")


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

    Examples
    --------
    >>> import mailverdict as mv
    >>> run = mv.start(["ada@example.org", "nonsense"], validation_type="regex")
    >>> run.result()["verdict"].tolist()
    ['valid', 'invalid']
    >>> run.progress.state
    'done'
    """

    def __init__(self, execution: Execution, build: Callable[[pa.Table], T]) -> None:
        self._execution = execution
        self._build = build
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
        return self._execution.progress

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
        self._execution.subscribe(callback)

    def cancel(self) -> None:
        """Stop the run; sessions are closed and answers are kept."""
        self._is_cancelled = True
        if self._task is not None and not self.done():  # at the end of the process no thread can be started
            loop_thread().loop.call_soon_threadsafe(self._task.cancel)

    def done(self) -> bool:
        """Whether the run has ended.

        Returns
        -------
        bool
            True also after a failure or `cancel`.
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
        """
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
            await asyncio.sleep(0)  # a task cancelled before its first step would not close its journal
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
        """The fields that results are made from, of all addresses; those that are not settled are pending."""
        return self._execution.results.table(self._execution.settings.validation_type)

    def _interrupt(self) -> None:
        """Cancel and wait until sockets are closed."""
        self.cancel()
        self.wait()


def render_progress(progress: Progress) -> str:
    """The snapshot as HTML; every text is escaped."""
    from ..theme import badge, bar, notebook  # noqa: PLC0415 - only notebooks need it

    left = {"pending": progress.total - progress.settled, "error": progress.errors}
    counts = {**progress.verdicts, **{name: count for name, count in left.items() if count > 0}}
    cells = "".join(f'<td>{badge(name)}</td><td class="mv-number">{count:,}</td>' for name, count in counts.items())
    notes = [progress.message, pace_text(progress), progress.problem]
    body = f"<p><b>{html.escape(progress.state.capitalize())}</b>: {html.escape(checked_text(progress))}</p>"
    body += f"{bar(counts)}<table><tr>{cells}</tr></table>"
    return notebook(body + "".join(f'<p class="mv-soft">{html.escape(note)}</p>' for note in notes if note))
