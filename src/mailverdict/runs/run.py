"""`Run`: a verification that goes on in the background, and the handle on it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import html
from collections.abc import Callable
from typing import Generic, TypeVar

import pyarrow as pa

from ..errors import BackendError
from ..loop import loop_thread, start_task, wait_until_done
from .execution import Execution
from .progress import Listener, Progress

__all__ = ["Run"]

T = TypeVar("T")


class Run(Generic[T]):
    """A verification in the background; made by `mailverdict.start`.

    The kernel stays free while it runs. Everything settled is kept: `partial` gives it at any time.

    Parameters
    ----------
    execution : Execution
        The pass over the unique addresses.
    finish : callable
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

    def __init__(self, execution: Execution, finish: Callable[[pa.Table], T]) -> None:
        self.execution = execution
        self.finish = finish
        self.future: concurrent.futures.Future[None] | None = None
        self.task: asyncio.Task[None] | None = None
        self.is_cancelled = False

    def start(self) -> Run[T]:
        """Begin on the loop thread."""
        self.future = start_task(self.go())
        return self

    async def go(self) -> None:
        """Run as a task of its own, so that the future ends only when sessions are closed."""
        self.task = asyncio.ensure_future(self.execution.run())
        if self.is_cancelled:
            await asyncio.sleep(0)  # a task that never began would not tell its end, nor close its journal
            self.task.cancel()
        await asyncio.wait([self.task])
        if not self.task.cancelled():
            self.task.result()

    @property
    def progress(self) -> Progress:
        """How far it is: a snapshot.

        Returns
        -------
        Progress
            Counts are in unique addresses.
        """
        return self.execution.progress

    @property
    def notices(self) -> list[str]:
        """Warnings so far, each once.

        Returns
        -------
        list of str
            In the order they came up.
        """
        return list(self.execution.notices)

    def subscribe(self, callback: Listener) -> None:
        """Have `callback` called with each new `Progress`, on the background thread.

        Parameters
        ----------
        callback : callable
            Takes a `Progress`, at once the present one; one that raises is dropped, the run goes on.
        """
        self.execution.listen(callback)

    def cancel(self) -> None:
        """Stop; sessions are closed and what is settled is kept."""
        self.is_cancelled = True
        if self.task is not None:
            loop_thread().loop.call_soon_threadsafe(self.task.cancel)

    def done(self) -> bool:
        """Whether it is over, well or not.

        Returns
        -------
        bool
            True also after a failure or `cancel`.
        """
        return self.future is not None and self.future.done()

    def wait(self, timeout: float | None = None) -> Run[T]:
        """Wait until it is over; an error of the run is kept for `result`.

        Parameters
        ----------
        timeout : float, optional
            Seconds; the run goes on when they are over.

        Returns
        -------
        Run
            Itself, for chaining.

        Raises
        ------
        TimeoutError
            If it is not over after `timeout` seconds.
        """
        wait_until_done(self.running(), timeout)
        return self

    def partial(self) -> T:
        """What is settled now, in the caller's form; the rest is ``pending``.

        Returns
        -------
        same kind as the input of `start`
            One row out per row in.
        """
        return self.finish(self.execution.ledger.table(self.execution.request.validation_type))

    def result(self, timeout: float | None = None) -> T:
        """Wait for the end and give the whole result.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait at most.

        Returns
        -------
        same kind as the input of `start`
            One row out per row in; after `cancel`, what was settled.

        Raises
        ------
        BackendError
            If the backend failed; what was settled is on its `partial`.
        TimeoutError
            If it is not over after `timeout` seconds.
        """
        future = self.running()
        self.wait(timeout)
        self.raise_error(future)
        return self.partial()

    def raise_error(self, future: concurrent.futures.Future[None]) -> None:
        """Raise what ended the run, with what was settled on it."""
        error = future.exception()
        if isinstance(error, BackendError):
            error.partial = self.partial()
        if error is not None:
            raise error

    def interrupt(self) -> None:
        """Cancel and wait until sockets are closed."""
        self.cancel()
        self.wait()

    def running(self) -> concurrent.futures.Future[None]:
        """The future behind it; starts the run if nobody has."""
        if self.future is None:
            self.start()
        assert self.future is not None
        return self.future

    def __await__(self):  # type: ignore[no-untyped-def]
        """Await the result from any event loop; cancelling the await cancels the run."""
        return self.await_result().__await__()

    async def await_result(self) -> T:
        """Wait without blocking the caller's event loop."""
        try:
            await asyncio.wait([asyncio.wrap_future(self.running())])
        except asyncio.CancelledError:
            self.cancel()
            raise
        return await asyncio.to_thread(self.result)

    def __repr__(self) -> str:
        """One line: state and counts."""
        return f"<mailverdict.Run {self.progress}>"

    def _repr_html_(self) -> str:
        """A small table for notebooks; every text is escaped."""
        return render_progress(self.progress)


def render_progress(progress: Progress) -> str:
    """The snapshot as HTML that needs no style sheet."""
    cells = "".join(
        f"<td><b>{count:,}</b><br>{html.escape(verdict)}</td>" for verdict, count in progress.verdicts.items()
    )
    head = f"{html.escape(progress.state)}: {progress.settled:,} of {progress.total:,} addresses settled"
    note = f"<p>{html.escape(progress.message)}</p>" if progress.message else ""
    return f"<div><p>{head}</p><table><tr>{cells}</tr></table>{note}</div>"
