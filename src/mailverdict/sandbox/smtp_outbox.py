"""Replies on their way out: in order, each when it is due."""

from __future__ import annotations

import asyncio

__all__ = ["Outbox"]


class Outbox:
    """Writes to one connection.

    Parameters
    ----------
    delay : float
        Seconds from a command to its reply: a round trip.

    Attributes
    ----------
    due : float
        When the last reply goes out, by the loop's clock.
    """

    def __init__(self, delay: float) -> None:
        self.delay = delay
        self.loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport | None = None
        self.pending: list[bytes] = []
        self.due = 0.0

    def put(self, data: bytes, *, penalty: float = 0.0) -> None:
        """Put bytes behind all others, with so many seconds between them and the ones before."""
        now = self.loop.time()
        if not self.delay and not penalty and self.due <= now:
            self.pending.append(data)
            return
        self.due = max(self.due, now + self.delay) + penalty
        self.loop.call_at(self.due, self.write, data)

    def flush(self) -> None:
        """Write what is due at once, in one piece."""
        if self.pending:
            data, self.pending = b"".join(self.pending), []
            self.write(data)

    def write(self, data: bytes) -> None:
        """Write, if anybody is there."""
        if self.is_open():
            assert self.transport
            self.transport.write(data)

    def is_open(self) -> bool:
        """Whether anybody is there."""
        return self.transport is not None and not self.transport.is_closing()

    def repeat(self, data: bytes, every: float) -> None:
        """Write the same again and again, for as long as anybody is there."""
        if self.is_open():
            self.write(data)
            self.loop.call_later(every, self.repeat, data, every)

    def close(self) -> None:
        """End the connection once everything is sent."""
        self.flush()
        if self.transport:
            self.loop.call_at(max(self.due, self.loop.time()), self.transport.close)

    def abort(self) -> None:
        """Drop the connection."""
        if self.transport:
            self.transport.abort()
