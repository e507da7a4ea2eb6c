"""The page of `mailverdict audit` under clients of the same machine that have no key.

Twenty connections each send requests for a script and never read the replies; then 1,200 send half a head and stay
open, while the process may have 1,024 files open. Measured are its highest memory and how long another client waits for
the page. Run it as ``python -m benchmarks.hostile.page``.
"""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack

import httpx
import psutil

from ..figures import OURS, read_options, record

READERS, HEADS, FILES = 20, 1_200, 1_024
MIB = 2**20


def start(folder: str) -> tuple[subprocess.Popen[str], int]:
    """The page as a process, and its port."""
    command = [sys.executable, "-m", "mailverdict", "audit", "--no-browser", "--sandbox"]
    process = subprocess.Popen(
        command,
        env={**os.environ, "XDG_DATA_HOME": folder},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES)),  # noqa: PLW1509 - no other thread
    )
    assert process.stdout is not None
    return process, httpx.URL(process.stdout.readline().strip()).port or 0


def seconds_of_page(port: int) -> float:
    """How long another client waits for the page; 30 if it does not come."""
    began = time.perf_counter()
    try:
        httpx.get(f"http://127.0.0.1:{port}/", timeout=30)
    except httpx.HTTPError:
        return 30.0
    return time.perf_counter() - began


def send_without_reading(port: int, process: psutil.Process, seconds: int) -> int:
    """Send while the page takes it; its highest memory."""
    request = f"GET /static/page.js HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode() * 2_000
    highest = 0
    with ExitStack() as opened:
        connections = []
        for _ in range(READERS):
            connection = opened.enter_context(socket.create_connection(("127.0.0.1", port)))
            connection.setblocking(False)
            connections.append(connection)
        sent = [0] * READERS
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for number, connection in enumerate(connections):
                try:
                    sent[number] += connection.send(request[sent[number] % len(request) :])
                except OSError:
                    continue
            highest = max(highest, process.memory_info().rss)
            time.sleep(0.005)
        record("page, 20 readers that never read: another client", OURS, [seconds_of_page(port)])
    return highest


def main() -> None:
    given = read_options(__doc__, seconds=(8, 2))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(2 * HEADS, hard), hard))
    with tempfile.TemporaryDirectory(prefix="mailverdict-bench-") as folder, ExitStack() as opened:
        process, port = start(folder)
        opened.callback(process.kill)
        highest = send_without_reading(port, psutil.Process(process.pid), given.seconds)
        record("page, 20 readers that never read: memory", OURS, [highest / MIB], "MiB")
        for _ in range(HEADS):
            connection = opened.enter_context(socket.create_connection(("127.0.0.1", port)))
            connection.send(b"GET / HTTP/1.1\r\nHost:")
        record("page, 1,200 half heads: another client", OURS, [seconds_of_page(port)])


if __name__ == "__main__":
    main()
