"""Group commit: all that is asked at one moment, and while the thread is busy, is served in one call."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

__all__ = ["CommitterClosed", "GroupCommitter"]

LOG = logging.getLogger(__name__)
Question = TypeVar("Question")
Asked = tuple[Any, "asyncio.Future[Any]"]


class CommitterClosed(Exception):
    """A question came after `GroupCommitter.close`."""


class GroupCommitter(Generic[Question]):
    """Answers questions of one event loop, many in one call of a blocking function on one thread.

    While a call is under way the next questions gather, so that a group is as large as the load
    makes it: one question when it is quiet, hundreds when a commit takes long.

    Parameters
    ----------
    serve : callable
        Takes a list of questions and gives their answers in the same order.
    name : str
        For the thread and the log.
    largest : int
        Questions in one call at most.

    Attributes
    ----------
    calls, asked : int
        Calls made, and questions in them.

    Examples
    --------
    >>> import asyncio
    >>> squares = GroupCommitter(lambda numbers: [n * n for n in numbers], name="squares")
    >>> asyncio.run(squares.ask(7))
    49
    >>> squares.close()
    """

    def __init__(self, serve: Callable[[list[Question]], Sequence[Any]], *, name: str, largest: int = 500) -> None:
        self.serve = serve
        self.name = name
        self.largest = largest
        self.calls = 0
        self.asked = 0
        self.waiting: list[Asked] = []
        self.task: asyncio.Task[None] | None = None
        self.thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self.is_closed = False

    async def ask(self, question: Question) -> Any:
        """Give the answer to a question; raises what the call that served it raised."""
        if self.is_closed:
            raise CommitterClosed(f"{self.name} is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self.waiting.append((question, future))
        if self.task is None:
            self.task = loop.create_task(self.serve_all())
        return await future

    async def aclose(self) -> None:
        """Serve what is waiting, then end the thread."""
        self.is_closed = True
        if self.task is not None:
            await self.task
        self.close()

    def close(self) -> None:
        """End the thread, where nothing is waiting."""
        self.is_closed = True
        self.thread.shutdown()

    async def serve_all(self) -> None:
        """Serve group after group until nothing is waiting."""
        await asyncio.sleep(0)  # who asks at this very moment comes along
        while self.waiting:
            group, self.waiting = self.waiting[: self.largest], self.waiting[self.largest :]
            resolve(group, await self.answer([question for question, _ in group]))
            self.calls += 1
            self.asked += len(group)
        self.task = None

    async def answer(self, questions: list[Question]) -> Sequence[Any] | Exception:
        """The answers, or what went wrong, which every asker is told."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self.thread, self.serve, questions)
        except Exception as exc:  # noqa: BLE001 - handed on to every asker
            LOG.error("%s failed for %d questions: %s", self.name, len(questions), exc)
            return exc


def resolve(group: Sequence[Asked], answers: Sequence[Any] | Exception) -> None:
    """Tell those who still wait."""
    for i, (_, future) in enumerate(group):
        if future.done():
            continue
        if isinstance(answers, Exception):
            future.set_exception(answers)
        else:
            future.set_result(answers[i])
