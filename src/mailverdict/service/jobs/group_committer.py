"""`GroupCommitter`: operations that arrive together are executed in one call on a thread.

The service has three: for submissions, for results of jobs, and for look-ups of jobs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

# Iterations of the event loop until a group starts: the callers of the group before reply, their next requests arrive,
# and these come to their operations. Two threads that share the interpreter lock hinder each other, so that a few large
# groups take less time than many small ones.
ITERATIONS = 3
Item = TypeVar("Item")
Pending = tuple[Any, "asyncio.Future[Any]"]


class CommitterClosed(Exception):
    """An operation came after `GroupCommitter.aclose`."""


class GroupCommitter(Generic[Item]):
    """Executes operations of one event loop, many in one call of a blocking function on one of `threads`.

    While a call is running, and for some iterations of the event loop, operations collect, so that the load decides how
    large a group is: one operation when the service is idle, hundreds while a commit takes long. `execute` gets a list
    of operations and returns their results in the same order; an exception as a result is raised for its caller.

    >>> squares = GroupCommitter(lambda numbers: [n * n for n in numbers], ThreadPoolExecutor(1), name="squares")
    >>> asyncio.run(squares.run(7))
    49
    """

    def __init__(
        self,
        execute: Callable[[list[Item]], Sequence[Any]],
        threads: ThreadPoolExecutor,
        *,
        name: str,
        group_limit: int = 500,
    ) -> None:
        self.execute = execute
        self.threads = threads
        self.name = name
        self.group_limit = group_limit  # operations in one call
        self.pending: list[Pending] = []
        self.idle = asyncio.Event()  # no operation is pending or being executed
        self.idle.set()
        self.is_closed = False

    async def run(self, operation: Item) -> Any:
        """Return the result of an operation, or raise what the call that executed it raised."""
        if self.is_closed:
            raise CommitterClosed(f"{self.name} is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self.pending.append((operation, future))
        if self.idle.is_set():
            self.idle.clear()
            self.collect(loop, ITERATIONS)
        return await future

    async def aclose(self) -> None:
        """Execute what is pending; nothing more is accepted."""
        self.is_closed = True
        await self.idle.wait()

    def collect(self, loop: asyncio.AbstractEventLoop, iterations: int) -> None:
        """Start the next group after so many iterations of the event loop, so that more operations join it."""
        if iterations:
            loop.call_soon(self.collect, loop, iterations - 1)
        else:
            self.start_group(loop)

    def start_group(self, loop: asyncio.AbstractEventLoop) -> None:
        """Execute the next group on a thread."""
        group, self.pending = self.pending[: self.group_limit], self.pending[self.group_limit :]
        self.threads.submit(self.execute_group, loop, group)

    def execute_group(self, loop: asyncio.AbstractEventLoop, group: list[Pending]) -> None:
        """On the thread: execute a group and pass on the results, or the error that every caller of the group gets."""
        results: Sequence[Any] | Exception
        try:
            results = self.execute([operation for operation, _ in group])
        except Exception as exc:  # noqa: BLE001 - passed on to every caller
            results = exc
        loop.call_soon_threadsafe(self.finish_group, loop, group, results)

    def finish_group(
        self,
        loop: asyncio.AbstractEventLoop,
        group: list[Pending],
        results: Sequence[Any] | Exception,
    ) -> None:
        """Give the callers their results, then execute what has become pending meanwhile."""
        resolve(group, results)
        if self.pending:
            self.collect(loop, ITERATIONS)
        else:
            self.idle.set()


def resolve(group: Sequence[Pending], results: Sequence[Any] | Exception) -> None:
    """Set the futures whose callers still wait."""
    for i, (_, future) in enumerate(group):
        if future.done():
            continue
        result = results if isinstance(results, Exception) else results[i]
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
