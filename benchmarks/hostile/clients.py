"""The service under clients that pipeline requests and never read the replies.

200 connections, without a client key, each send up to 50,000 requests as fast as the service takes them, and stay open.
For each kind of client: how long ``GET /healthz`` takes another client meanwhile, how much more memory the service has
then, and when all connections were reset. Its log must have no traceback.

Run it as ``python -m benchmarks.hostile.clients``.
"""

from __future__ import annotations

import selectors
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from ..figures import OURS, read_options, record
from ..service import free_port

MIB = 2**20
PROBE_SECONDS = 0.2  # between two requests for /healthz
SETTLE_SECONDS = 3.0  # after the connections were reset
HEALTH = b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
FIELDS = b"".join(b"x%d:\r\n" % number for number in range(4000))
CHUNKED = b"POST /api/check-email HTTP/1.1\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
CHECK = b"POST /api/check-email HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 51\r\n\r\n"
CHECK += b'{"email":"a@example.org","validation_type":"regex"}'
# Kind of client: what each connection sends once, then what it repeats, and how often.
KINDS = {
    "short requests": (b"", b"GET /x HTTP/1.1\r\n\r\n", 50_000),
    "requests for the longest reply": (b"", b"GET /openapi.json HTTP/1.1\r\n\r\n", 50_000),
    "requests of 4,000 header fields": (b"", b"GET /x HTTP/1.1\r\n" + FIELDS + b"\r\n", 100),
    "single checks": (b"", CHECK, 20_000),
    "bodies in chunks of an octet": (b"", CHUNKED + b"1\r\n \r\n" * 10_000 + b"0\r\n\r\n", 100),
    "trailers without end": (CHUNKED + b"0\r\n", FIELDS, 1000),
}


@contextmanager
def service(folder: Path) -> Iterator[tuple[int, psutil.Process, Path]]:
    """The service as a process: its port, the process, and the file of its log."""
    port, log = free_port(), folder / "service.log"
    command = [
        sys.executable,
        "-m",
        "benchmarks.service_program",
        "service",
        str(port),
        str(folder / "jobs.db"),
        "0",
    ]
    with (
        log.open("wb") as stderr,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr) as process,
    ):
        try:
            deadline = time.monotonic() + 30
            while b"running on" not in log.read_bytes():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"the service did not start:\n{log.read_text()}")
                time.sleep(0.05)
            yield port, psutil.Process(process.pid), log
        finally:
            process.kill()


class Attack(threading.Thread):
    """Connections that send octets while the service takes them, until `stop` is set; then all are reset.

    Meanwhile it looks how much memory the service has.
    """

    def __init__(self, port: int, connections: int, kind: str, process: psutil.Process) -> None:
        super().__init__(daemon=True)
        first, repeated, times = KINDS[kind]
        many = max(1, 65_536 // len(repeated))
        self.port = port
        self.connections = connections
        self.process = process
        self.first, self.repeated = first, repeated * many
        self.octets = len(first) + len(self.repeated) * (times // many)  # that one connection sends
        self.stop = threading.Event()
        self.sent = 0
        self.highest_memory = 0

    def run(self) -> None:
        """Send without reading."""
        with selectors.DefaultSelector() as selector:
            for _ in range(self.connections):
                connection = socket.create_connection(("127.0.0.1", self.port), timeout=30)
                connection.setblocking(False)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                selector.register(connection, selectors.EVENT_WRITE, 0)
            kept = [key.fileobj for key in selector.get_map().values()]
            while not self.stop.is_set():
                self.highest_memory = max(self.highest_memory, self.process.memory_info().rss)
                ready = selector.select(0.02)
                for key, _ in ready:
                    self.send(selector, key)
                self.stop.wait(0 if ready else 0.02)
            for connection in kept:
                connection.close()  # type: ignore[union-attr]

    def send(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        """Send the next octets of a connection; one that has sent all, or was closed, is only kept."""
        at: int = key.data
        rest = (
            self.first[at:]
            or memoryview(self.repeated)[(at - len(self.first)) % len(self.repeated) :]
        )
        try:
            sent: int = key.fileobj.send(rest)  # type: ignore[union-attr]
        except BlockingIOError:
            return
        except OSError:
            selector.unregister(key.fileobj)
            return
        self.sent += sent
        if at + sent >= self.octets:
            selector.unregister(key.fileobj)
        else:
            selector.modify(key.fileobj, selectors.EVENT_WRITE, at + sent)


def health_seconds(port: int) -> float:
    """How long a new client waits for `/healthz`."""
    began = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(HEALTH)
        answer = b""
        while piece := connection.recv(65_536):
            answer += piece
    if not answer.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"/healthz: {answer!r}")
    return time.perf_counter() - began


def measure(kind: str, connections: int, seconds: int) -> None:
    """One kind of client, against a service of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="mailverdict-bench-") as name,
        service(Path(name)) as (port, process, log),
    ):
        idle = [health_seconds(port) for _ in range(5)]
        before = process.memory_info().rss
        attack = Attack(port, connections, kind, process)
        attack.start()
        waits: list[float] = []
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            waits.append(health_seconds(port))
            time.sleep(PROBE_SECONDS)
        attack.stop.set()
        attack.join()
        time.sleep(SETTLE_SECONDS)
        after = process.memory_info().rss
        waits_after = [health_seconds(port) for _ in range(5)]
        tracebacks = log.read_text(encoding="utf-8").count("Traceback")
    print(
        f"{kind}: {connections} connections sent {attack.sent / MIB:,.0f} MiB, {len(waits)} requests for /healthz"
    )
    record(f"/healthz alone, before {kind}", OURS, [1e3 * each for each in idle], "ms")
    record(
        f"/healthz during {kind}: each wait",
        OURS,
        [1e3 * each for each in waits],
        "ms",
        connections,
    )
    record(f"/healthz during {kind}: the longest wait", OURS, [1e3 * max(waits)], "ms", connections)
    record(f"/healthz after {kind}", OURS, [1e3 * each for each in waits_after], "ms", connections)
    record(f"memory before {kind}", OURS, [before / MIB], "MiB", connections)
    record(
        f"more memory during {kind}",
        OURS,
        [(attack.highest_memory - before) / MIB],
        "MiB",
        connections,
    )
    record(f"more memory after {kind}", OURS, [(after - before) / MIB], "MiB", connections)
    record(f"tracebacks in the log of {kind}", OURS, [tracebacks], "tracebacks", connections)


def main() -> None:
    given = read_options(__doc__, connections=(200, 20), seconds=(20, 3))
    for kind in KINDS:
        measure(kind, given.connections, given.seconds)


if __name__ == "__main__":
    main()
