"""`GroupCommitter`: operations that arrive together are executed in one call on a thread.

The service has three: for submissions, for results of jobs, and for look-ups of jobs. While a call
is running, operations collect, and the next call has all of them. So the load decides how large a
group is: one operation when the service is idle, hundreds while a commit takes long.

If another process has rows of a client locked and does not go on, the call of a group fails with
`RowsLocked`. Then the operations of each of its clients get a call of their own, beside the groups
and in turn, until it succeeds or until `PATIENCE` is over. What such a client sends meanwhile waits
behind its first operations, so that no later group meets the same lock. Here the rows of bob are
locked:

    groups    [ada bob eve] locked    [fay gil]    [ada hal]    ...
    beside                  [ada]    [bob] locked    [eve]    [bob bob] locked    [bob bob] ...
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, NamedTuple, TypeVar

from .schema import RowsLocked

# Seconds for which the operations of a client whose rows are locked are tried again: longer than a
# process can stop in a transaction (`schema.SESSION`), and shorter than a client of HTTP commonly
# waits for a reply.
PATIENCE = 5.0
# Iterations of the event loop until a group starts: the callers of the group before reply, their
# next requests arrive, and these come to their operations. Two threads that share the interpreter
# lock hinder each other, so that a few large groups take less time than many small ones: without it
# a single check takes a third more.
ITERATIONS = 3
Item = TypeVar("Item")


class CommitterClosed(Exception):
    """An operation came after `GroupCommitter.aclose`."""


class Pending(NamedTuple):
    """An operation whose caller waits."""

    operation: Any
    client: str
    since: float
    future: asyncio.Future[Any]


class GroupCommitter(Generic[Item]):
    """Executes operations of one event loop, many in one call on one of `threads`.

    `execute` gets a list of operations and returns their results in the same order; an exception as
    a result is raised for its caller, and one that it raises for all callers. `client_of` names the
    client whose rows an operation needs.

    >>> threads = ThreadPoolExecutor(1)
    >>> squares = GroupCommitter(lambda group: [n * n for n in group], threads, name="squares")
    >>> asyncio.run(squares.run(7))
    49
    """

    def __init__(
        self,
        execute: Callable[[list[Item]], Sequence[Any]],
        threads: ThreadPoolExecutor,
        *,
        name: str,
        client_of: Callable[[Item], str] = lambda _: "",
        group_limit: int = 500,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.execute = execute
        self.threads = threads
        self.name = name
        self.client_of = client_of
        self.group_limit = group_limit  # operations in one call
        self.clock = clock
        self.pending: list[Pending] = []
        self.locked: dict[str, list[Pending]] = {}  # by client, the one whose turn it is first
        self.groups: asyncio.Task[None] | None = None  # while operations are pending
        self.beside: asyncio.Task[None] | None = None  # while there are any in `locked`
        self.is_closed = False

    async def run(self, operation: Item) -> Any:
        """Return the result of an operation, or raise what the call that executed it raised."""
        if self.is_closed:
            raise CommitterClosed(f"{self.name} is closed")
        loop = asyncio.get_running_loop()
        pending = Pending(operation, self.client_of(operation), self.clock(), loop.create_future())
        if pending.client in self.locked:
            self.locked[pending.client].append(pending)
        else:
            self.pending.append(pending)
        if self.groups is None and self.pending:
            self.groups = loop.create_task(self.execute_groups())
        return await pending.future

    async def aclose(self) -> None:
        """Execute what is pending; nothing more is accepted."""
        self.is_closed = True
        while tasks := [task for task in (self.groups, self.beside) if task is not None]:
            await asyncio.wait(tasks)

    async def execute_groups(self) -> None:
        """Execute what is pending; operations whose rows are locked go to `locked`."""
        while self.pending:
            for _ in range(ITERATIONS):
                await asyncio.sleep(0)
            group = self.pending[: self.group_limit]
            del self.pending[: self.group_limit]
            for pending in await self.call(group):
                self.locked.setdefault(pending.client, []).append(pending)
        self.groups = None
        if self.locked and self.beside is None:
            self.beside = asyncio.get_running_loop().create_task(self.execute_beside())

    async def execute_beside(self) -> None:
        """Execute the operations of each client whose rows are locked, in turn.

        A call waits for the lock.
        """
        while self.locked:
            client = next(iter(self.locked))
            group = self.locked[client][: self.group_limit]
            again = await self.call(group)
            waiting = []
            for pending in again:
                if self.clock() - pending.since < PATIENCE:
                    waiting.append(pending)
                elif not pending.future.done():
                    pending.future.set_exception(RowsLocked(f"the rows of {client} are locked"))
            waiting += self.locked.pop(client)[len(group) :]
            if waiting:
                self.locked[client] = waiting
        self.beside = None

    async def call(self, group: Sequence[Pending]) -> list[Pending]:
        """Execute a group on a thread and give its callers their results.

        Return those whose rows are locked.
        """
        operations = [pending.operation for pending in group]
        results: Sequence[Any]
        try:
            results = await asyncio.get_running_loop().run_in_executor(
                self.threads, self.execute, operations
            )
        except Exception as exc:  # noqa: BLE001 - passed on to every caller
            results = [exc] * len(group)
        locked = []
        for pending, result in zip(group, results, strict=True):
            if isinstance(result, RowsLocked):
                locked.append(pending)
            elif pending.future.done():
                continue  # its caller has gone
            elif isinstance(result, Exception):
                pending.future.set_exception(result)
            else:
                pending.future.set_result(result)
        return locked
