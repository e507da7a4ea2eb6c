"""Load for `benchmarks.service`: requests on 64 connections, from a process of its own."""

from __future__ import annotations

import asyncio
import itertools
import re
import subprocess
import sys
import time

CONNECTIONS = 64
# Addresses differ, so that no cache of the last request helps.
BODY = '{"email":"ada.%d@example%d.org","validation_type":"regex"}'


def requests_per_second(port: int, path: str, seconds: int) -> float:
    """The rate at which a server answers requests; every reply must have status 200."""
    command = [sys.executable, "-m", "benchmarks.service_load", str(port), path, str(seconds)]
    return float(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


class Connection(asyncio.Protocol):
    """Sends a request, waits for its answer, sends the next."""

    def __init__(self, path: str, numbers: itertools.count[int], deadline: float) -> None:
        self.path = path
        self.numbers = numbers
        self.deadline = deadline
        self.answered = 0
        self.left = b""
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        """Send the next request."""
        n = next(self.numbers)
        body = BODY % (n, n % 500)
        head = f"POST {self.path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
        self.transport.write(f"{head}\r\n\r\n{body}".encode())  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        """Count a complete response and send the next request."""
        self.left += data
        head, separator, body = self.left.partition(b"\r\n\r\n")
        if not separator or len(body) < int(re.search(rb"(?i)content-length: (\d+)", head)[1]):  # type: ignore[index]
            return
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"not answered with success: {self.left!r}")
        self.left = b""
        self.answered += 1
        if time.monotonic() < self.deadline:
            self.ask()
        else:
            self.transport.close()
            self.done.set_result(self.answered)


async def load(port: int, path: str, seconds: float) -> float:
    """Requests a second over all connections."""
    loop, numbers, deadline = (
        asyncio.get_running_loop(),
        itertools.count(),
        time.monotonic() + seconds,
    )
    pairs = [
        await loop.create_connection(lambda: Connection(path, numbers, deadline), "127.0.0.1", port)
        for _ in range(CONNECTIONS)
    ]
    answered: list[int] = await asyncio.gather(*(connection.done for _, connection in pairs))
    return sum(answered) / seconds


if __name__ == "__main__":
    import uvloop

    print(uvloop.run(load(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]))))
