"""The service as a program of its own, to be killed: ``python -m tests.service.program STORE PORT BATCHES [RATE]``.

It answers so many batches, and never the ones after, so that a test can kill it in the middle of its work.
"""

from __future__ import annotations

import asyncio
import sys

from mailverdict.service import ServiceSettings, run
from tests.doubles.answering_backend import AnsweringBackend


class StallingBackend(AnsweringBackend):
    """Answers a number of batches and none after them."""

    def __init__(self, answered: float) -> None:
        super().__init__()
        self.answered = answered

    async def verify(self, batch, in_flight=()):
        if len(self.batches) >= self.answered:
            await asyncio.Event().wait()
        async for event in super().verify(batch, in_flight):
            yield event


if __name__ == "__main__":
    store, port, answered = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    rate = float(sys.argv[4]) if sys.argv[4:] else 0.0
    settings = ServiceSettings(
        store=store,
        trusted_proxies=["127.0.0.1"],
        concurrency=100,
        gather=0,
        daily_limit=300,
        rate_limit=rate,
        rate_burst=100,
        access_log=False,
    )
    run(settings, "127.0.0.1", port, backend=StallingBackend(answered))
