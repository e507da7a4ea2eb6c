"""Work for a page in one thread, and what each section of the page says about it.

A `Step` is a value that is computed from inputs: the cost of a check from the list and the depth of
the check. The thread computes it again when an input has changed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..errors import MailVerdictError, TransportError
from .wording import plain_words

logger = logging.getLogger("mailverdict")
Message = tuple[str, str]  # text and kind: plain, done, warned, failed or idle
NO_MESSAGE: Message = ("", "plain")
Task = Callable[[], None]
Inputs = tuple[Any, ...]


class Step:
    """What is made from other things, and again when these are others.

    Parameters
    ----------
    get_inputs : callable
        Gives what it is made from, as things are now; None while it cannot be made.
    make : callable
        Makes it from them.
    """

    def __init__(self, get_inputs: Callable[[], Inputs | None], make: Callable[..., Any]) -> None:
        self.get_inputs = get_inputs
        self.make = make
        self.forget()

    def forget(self) -> None:
        """Forget what was made."""
        self.made: tuple[Any, Any] = (None, None)  # of which inputs, and the value

    def due(self) -> Inputs | None:
        """What it is to be made from; None if that cannot be, or is the same as the last time."""
        inputs = self.get_inputs()
        if inputs == self.made[0]:
            return None
        return inputs

    def run(self, inputs: Inputs) -> None:
        """Make it; where that fails, it is not due again with the same inputs."""
        value = None
        try:
            value = self.make(*inputs)
        finally:
            self.made = (inputs, value)

    @property
    def value(self) -> Any:
        """What was made the last time; None if that failed."""
        return self.made[1]

    @property
    def current(self) -> Any:
        """What was made from the things as they are; None where there is nothing yet."""
        if self.get_inputs() != self.made[0]:
            return None
        return self.value


class Background:
    """One thread, which does what was asked for, then what `next_task` gives.

    It ends when there is nothing left.
    """

    def __init__(self, sections: Sequence[str], next_task: Callable[[], Task | None]) -> None:
        self.sections = sections
        self.next_task = next_task
        self.on_change: Callable[[Sequence[str]], None] = lambda names: None
        self.lock = threading.RLock()
        self.thread: threading.Thread | None = None
        self.jobs: deque[Task] = deque()
        self.messages: dict[str, Message] = dict.fromkeys(sections, NO_MESSAGE)
        self.busy: dict[str, str] = dict.fromkeys(sections, "")
        self.spoken = ""  # for screen readers: the last thing that happened

    # --- what the page says -----------------------------------------------------------------------

    def changed(self, *names: str) -> None:
        """Tell the pages what has changed: some sections, or anything."""
        sections = (*names, "page") if names else self.sections
        try:
            self.on_change(sections)
        except Exception:
            # It is closed; the work goes on.
            logger.exception("the page cannot be told what has changed")

    def say(self, section: str, text: str, kind: str = "plain") -> None:
        """Show a message in a section, or none."""
        self.messages[section] = (text, kind)
        if text:
            self.spoken = text

    def say_error(self, section: str, exc: Exception, what_to_do: str = "") -> None:
        """Show an error in a section, and what to do about it.

        One that is not expected also goes to the log, and so does the request that had no answer.
        """
        if isinstance(exc, TransportError):
            logger.warning("%s", exc)
        if isinstance(exc, MailVerdictError):
            self.say(section, f"{plain_words(exc)} {what_to_do}".rstrip(), "failed")
        elif isinstance(exc, MemoryError):
            self.say(section, "There is not enough memory for this.", "failed")
        else:
            logger.error("the audit met an error", exc_info=exc)
            self.say(section, f"{type(exc).__name__}: {exc}", "failed")

    @contextmanager
    def guarded(self, section: str) -> Iterator[None]:
        """Turn an error into a message: what a handler raises is shown nowhere."""
        try:
            yield
        except Exception as exc:  # noqa: BLE001 - shown on the page
            self.say_error(section, exc)
            self.changed()

    # --- the thread -------------------------------------------------------------------------------

    def add(self, section: str, work: Task, busy: str) -> None:
        """Do something that takes long; an error becomes a message of the section."""
        self.busy[section] = busy

        def job() -> None:
            with self.guarded(section):
                work()
            self.busy[section] = ""
            self.changed()

        self.jobs.append(job)
        self.wake()

    def wake(self, *names: str) -> None:
        """Start the thread if there is work for it, and tell the pages what has changed."""
        with self.lock:
            if self.thread is None and (self.jobs or self.next_task() is not None):
                # A daemon, so that the kernel can exit at any time.
                self.thread = threading.Thread(
                    target=self.run, name="mailverdict-audit", daemon=True
                )
                self.thread.start()
        self.changed(*names)

    def run(self) -> None:
        """Do what is to be done until there is nothing."""
        while True:
            with self.lock:
                task = self.jobs.popleft() if self.jobs else self.next_task()
                if task is None:
                    self.thread = None
                    return
            task()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until nothing is left to be done.

        `TimeoutError` after `timeout` seconds.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while (thread := self.thread) is not None:
            thread.join(0.1)
            if until is not None and time.monotonic() > until:
                raise TimeoutError(f"not finished after {timeout} seconds")
