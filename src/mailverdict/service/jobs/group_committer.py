"""`GroupCommitter`: operations that arrive together are executed in one call on one thread.

The service has two: one commits writes to the store, one runs its queries.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

__all__ = ["CommitterClosed", "GroupCommitter"]

LOG = logging.getLogger(__name__)
Item = TypeVar("Item")
Pending = tuple[Any, "asyncio.Future[Any]"]


class CommitterClosed(Exception):
    """An operation came after `GroupCommitter.aclose`."""


class GroupCommitter(Generic[Item]):
    """Executes operations of one event loop, many in one call of a blocking function on one thread.

    While a call is running the next operations collect, so that the load decides how large a group
    is: one operation when the service is idle, hundreds while a commit takes long. `execute` gets a
    list of operations and returns their results in the same order; an exception as a result is raised for its caller.

    >>> squares = GroupCommitter(lambda numbers: [n * n for n in numbers], name="squares")
    >>> asyncio.run(squares.run(7))
    49
    >>> squares.close()
    """

    def __init__(self, execute: Callable[[list[Item]], Sequence[Any]], *, name: str, group_limit: int = 500) -> None:
        self.execute = execute
        self.name = name  # of the thread, and in the log
        self.group_limit = group_limit  # operations in one call
        self.pending: list[Pending] = []
        self.task: asyncio.Task[None] | None = None
        self.thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self.is_closed = False

    async def run(self, operation: Item) -> Any:
        """Return the result of an operation, or raise what the call that executed it raised."""
        if self.is_closed:
            raise CommitterClosed(f"{self.name} is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self.pending.append((operation, future))
        if self.task is None:
            self.task = loop.create_task(self.run_groups())
        return await future

    async def aclose(self) -> None:
        """Execute what is pending, then stop the thread."""
        self.is_closed = True
        if self.task is not None:
            await self.task
        self.close()

    def close(self) -> None:
        """Stop the thread; nothing may be pending."""
        self.is_closed = True
        self.thread.shutdown()

    async def run_groups(self) -> None:
        """Execute group after group until nothing is pending."""
        await asyncio.sleep(0)  # operations of the same loop iteration join the first group
        while self.pending:
            group, self.pending = self.pending[: self.group_limit], self.pending[self.group_limit :]
            resolve(group, await self.run_group([operation for operation, _ in group]))
        self.task = None

    async def run_group(self, operations: list[Item]) -> Sequence[Any] | Exception:
        """The results, or the error that every caller of the group gets."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self.thread, self.execute, operations)
        except Exception as exc:  # noqa: BLE001 - passed on to every caller
            LOG.error("%s failed for %d operations: %s", self.name, len(operations), exc)
            return exc


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
