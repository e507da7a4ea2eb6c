"""Lines of the access log, written a few times a second instead of one by one."""

from __future__ import annotations

import asyncio
from typing import TextIO

__all__ = ["Lines"]


class Lines:
    """Writes lines to a stream; a call costs next to nothing.

    Parameters
    ----------
    stream : text file
        Where they go.
    pause : float
        Seconds that a line waits for others at most.

    Examples
    --------
    >>> import io
    >>> out = io.StringIO()
    >>> lines = Lines(out)
    >>> lines("one")
    >>> out.getvalue().splitlines()
    ['one']
    """

    def __init__(self, stream: TextIO, *, pause: float = 0.2) -> None:
        self.stream = stream
        self.pause = pause
        self.waiting: list[str] = []

    def __call__(self, line: str) -> None:
        """Write a line soon; at once where no event loop runs that could do it later."""
        self.waiting.append(line)
        if len(self.waiting) == 1:
            try:
                asyncio.get_running_loop().call_later(self.pause, self.flush)
            except RuntimeError:
                self.flush()

    def flush(self) -> None:
        """Write what is waiting."""
        if self.waiting:
            text = "\n".join(self.waiting)
            self.waiting.clear()
            self.stream.write(text + "\n")
            self.stream.flush()
