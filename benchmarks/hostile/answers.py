"""Answers of a hostile service: what they cost the client, and the download of a list.

A server on loopback answers with gzip within gzip within gzip (as little as 374 octets), with one gzip that unpacks to
gigabytes, with such a body beside a redirection, and octet by octet without end. A list comes as a wheel whose module
is larger than the archive says, or as the largest text that is accepted. Measured are the seconds until the call
returns, of which 6 are allowed for an answer, and how much the highest resident memory of the process grew. Each call
is a process of its own, which is ended after two minutes. Run it as ``python -m benchmarks.hostile.answers``.
"""

import asyncio
import gzip
import io
import json
import resource
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks.figures import OURS, read_options, record

TIMEOUT = 6.0  # seconds for an answer
LONGEST = 120.0  # seconds until a process is ended
MIB = 1 << 20
MODULE = "disposable_email_domains/__init__.py"


def packed(size: int, times: int) -> bytes:
    """So many zeros, compressed one time after another; nothing large is kept in memory."""
    packer = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
    zeros = bytes(MIB)
    data = b"".join([*(packer.compress(zeros) for _ in range(size // MIB)), packer.flush()])
    for _ in range(times - 1):
        data = gzip.compress(data)
    return data


def answer(body: bytes, coding: str, status: str = "200 OK", **fields: str) -> bytes:
    head = {
        "Content-Length": f"{len(body)}",
        "Content-Encoding": coding,
        "Connection": "close",
        **fields,
    }
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in head.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


@contextmanager
def serve(answers: dict[str, bytes | None]) -> Iterator[str]:
    """A server that answers by the path; None: octet by octet, without end. Yields its base URL."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            path = self.rfile.readline().split()[1].decode()
            while self.rfile.readline().strip():
                pass
            octets = answers[path.split("/")[1]]
            with suppress(OSError):
                if octets is not None:
                    self.wfile.write(octets)
                    return
                self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                while True:
                    self.wfile.write(b"1\r\n \r\n")
                    time.sleep(0.5)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


# --- in a process of its own -----------------------------------------------------------------------------------------


def ask(url: str) -> None:
    """One request of the client, without a repetition."""
    from mailverdict.remote.api import QUOTA_REQUEST
    from mailverdict.remote.client import Client, Retries

    async def send() -> None:
        async with Client(url, timeout=TIMEOUT, retries=Retries(attempts=1)) as client:
            await client.send(QUOTA_REQUEST)

    asyncio.run(send())


def download(url: str) -> None:
    from mailverdict.errors import TransportError
    from mailverdict.remote.client import download as get

    with suppress(TransportError):
        get(url, timeout=TIMEOUT)


def read_list(path: str) -> None:
    from mailverdict.checks.lists.update import update_disposable
    from mailverdict.errors import InputError

    with suppress(InputError):
        update_disposable(lambda source: Path(source).read_bytes(), source=path, dry_run=True)


CALLS: dict[str, Callable[[str], None]] = {"ask": ask, "download": download, "list": read_list}


def measure(call: str, argument: str) -> None:
    """Make a call, and print its seconds and the MiB by which memory grew."""
    import mailverdict.checks.lists.update
    import mailverdict.remote.client  # noqa: F401 - imports are not measured

    before, began = peak(), time.perf_counter()
    CALLS[call](argument)
    print(json.dumps([time.perf_counter() - began, peak() - before]))


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        MIB if sys.platform == "darwin" else 1024
    )


# ---------------------------------------------------------------------------------------------------------------------


def wheel(kind: int, size: int) -> bytes:
    """A wheel with so many zeros in its module, of which the archive says that there are 100."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w", kind) as archive,
        archive.open(MODULE, "w", force_zip64=True) as module,
    ):
        for _ in range(size // MIB):
            module.write(bytes(MIB))
    data = bytearray(out.getvalue())
    entry = data.rindex(b"PK\x01\x02")
    data[entry + 24 : entry + 28] = (100).to_bytes(4, "little")
    return bytes(data)


def run(task: str, call: str, argument: str) -> None:
    command = [sys.executable, "-m", "benchmarks.hostile.answers", call, argument]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=True)
        seconds, grown = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        record(f"{task}, not ended", OURS, [LONGEST])
        return
    record(task, OURS, [seconds])
    record(f"{task}, memory", OURS, [grown], "MiB")


def main() -> None:
    given = read_options(__doc__, mib=(2048, 64))
    size = given.mib * MIB
    stacked = answer(packed(size, 3), "gzip, gzip, gzip")
    served: dict[str, Any] = {
        "three gzips": stacked,
        "one gzip": answer(packed(size, 1), "gzip"),
        "three gzips beside a redirection": stacked.replace(
            b"200 OK\r\n", b"302 Found\r\nLocation: /one%20gzip/\r\n"
        ),
        "octet by octet": None,
    }
    with serve({name.replace(" ", "%20"): octets for name, octets in served.items()}) as url:
        for name in served:
            for call in ("ask", "download"):
                run(f"{call}: {name}", call, f"{url}/{name.replace(' ', '%20')}")
    lists = {
        "a wheel by deflate that says 100 octets": wheel(zipfile.ZIP_DEFLATED, size),
        "a wheel by bzip2 that says 100 octets": wheel(zipfile.ZIP_BZIP2, size),
        "a wheel of numbers": numbers_wheel(),
        "the largest text": b"".join(b"%06x.a\n" % n for n in range(16 * MIB // 9)),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, data in lists.items():
            path = Path(folder, "list")
            path.write_bytes(data)
            run(f"list: {name}", "list", str(path))


def numbers_wheel() -> bytes:
    """A wheel whose module is a set of numbers: a node of a syntax tree is far larger than the text of its number."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MODULE, "blocklist = {" + "1," * (8 * MIB - 10) + "}")
    return out.getvalue()


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in CALLS:
        measure(*sys.argv[1:])
    else:
        main()
