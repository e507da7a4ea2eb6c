"""The service as a program of its own, to be killed: ``program.py STORE PORT SECONDS``.

Every batch takes SECONDS, so that a test can kill it in the middle of its work.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from mailverdict.service import ServiceSettings, run
from tests.service.scripted import ScriptedBackend


class SlowBackend(ScriptedBackend):
    """Takes its time for each batch."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    async def verify(self, batch, in_flight=()):
        await asyncio.sleep(self.seconds)
        async for event in super().verify(batch, in_flight):
            yield event


if __name__ == "__main__":
    store, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    settings = ServiceSettings(
        store=store, trusted_proxies=["127.0.0.1"], concurrency=100, gather=0, daily_limit=200, access_log=False
    )
    run(settings, "127.0.0.1", port, backend=SlowBackend(seconds))
