"""What polling costs: 2,000 jobs in flight on the 15 s step, requests per job, and processor time beside httpx alone.

A service in another process answers on loopback; only this process's CPU is counted. The jobs are
older than two minutes, so each is polled every 15 s, and none finishes while it is measured.

Both are measured in turn; the median counts. Then 200 jobs that are done after 40 seconds are polled, and the requests
are compared with the fewest that the schedule allows. Run it as ``python -m benchmarks polling``.
"""

from __future__ import annotations

import asyncio
import json
import math
import multiprocessing
import time
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from typing import Any

import httpx
import pyarrow as pa

from mailverdict.backend import Batch, Job, Settled
from mailverdict.remote.backend import RemoteBackend
from mailverdict.remote.polling import PollSchedule

from .figures import OURS, read_options, record

JOBS = 2_000
OLD = 200.0  # seconds; beyond 120 the step is 15
DONE_AFTER = 40.0  # seconds until a job of the second measurement is done
BATCH = 200
META = {"request_id": "r", "timestamp": "2026-01-02T03:04:05+00:00", "version": "v1"}


class Service(asyncio.Protocol):
    """Answers as the contract has it, as cheaply as Python can."""

    requests = 0

    def connection_made(self, transport: Any) -> None:
        """Begin with nothing received."""
        self.transport, self.buffer = transport, b""

    def data_received(self, data: bytes) -> None:
        """Answer each request that is complete."""
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].decode()
            stop = end + 4 + body_size(head)
            if len(self.buffer) < stop:
                return
            body, self.buffer = self.buffer[end + 4 : stop], self.buffer[stop:]
            Service.requests += 1
            self.answer(head.split(" ", 2)[1], body)

    def answer(self, path: str, body: bytes) -> None:
        """Write one answer."""
        status, decoded = respond(path, body)
        content = json.dumps(decoded).encode()
        head = f"HTTP/1.1 {status} OK\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        self.transport.write(head.encode() + content)


def body_size(head: str) -> int:
    """Octets of the body that a request's head announces."""
    sizes = (line[15:] for line in head.split("\r\n") if line.lower().startswith("content-length:"))
    return int(next(sizes, "0"))


def respond(path: str, body: bytes) -> tuple[int, Any]:
    """Jobs need no memory: their id says when they are done, `DONE_AFTER` seconds after they were made."""
    if path == "/api/quota":
        return 200, {"daily_limit": 100_000, "used": 0, "remaining": 100_000}
    if path == "/requests":
        return 200, {"requests": Service.requests - 1}
    if path == "/api/bulk-check-email":
        done_at = time.time() + DONE_AFTER
        results = [
            {"email": email, "status": "queued", "message": "", "job_id": f"{done_at}-{n}"}
            for n, email in enumerate(json.loads(body)["emails"])
        ]
        return 202, {"success": True, "data": {"results": results}, "meta": META}
    job_id = path.rpartition("/")[2]
    is_done = float(job_id.partition("-")[0]) <= time.time()
    payload = {"email": "a@b.org", "validation_type": "mx", "result": "valid", "reasons": [], "checks": {"dns": True}}
    record = {"email": "a@b.org", "status": "queued", "verification": None}
    if is_done:
        record |= {"status": "done", "verification": payload}
    return 200, {"success": True, "data": {"job_id": job_id, "result": record}, "meta": META}


def run_service(ready: Any) -> None:
    """Serve until killed."""

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Service, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


@contextmanager
def service() -> Iterator[str]:
    """The base URL of a service in another process."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=run_service, args=(there,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}"
    finally:
        process.terminate()
        process.join()


async def poll_for(url: str, seconds: float) -> None:
    """Poll `JOBS` old jobs that never finish for so long."""
    submitted_at = time.time() - OLD
    jobs = [Job(f"{math.inf}-{n}", f"user{n}@example.org", "mx", submitted_at) for n in range(JOBS)]
    backend = RemoteBackend(url, PollSchedule(give_up=10**9))
    batch = Batch(pa.array([], pa.string()), "mx")
    try:
        async with asyncio.timeout(seconds), aclosing(backend.verify(batch, jobs)) as events:
            async for _ in events:
                pass
    except TimeoutError:
        return


async def poll_alone(url: str, polls: int) -> float:
    """Processor seconds of one request by httpx, over as many requests, eight at a time."""
    numbers = iter(range(polls))
    async with httpx.AsyncClient(base_url=url) as client:

        async def work() -> None:
            for number in numbers:
                (await client.get(f"/api/verification-result/{math.inf}-{number}")).json()

        begun = time.process_time()
        await asyncio.gather(*(work() for _ in range(8)))
        return (time.process_time() - begun) / polls


async def verify_batch(url: str) -> int:
    """Verify `BATCH` addresses; how many were settled."""
    emails = pa.array([f"user{n}@example.org" for n in range(BATCH)])
    settled = 0
    async with aclosing(RemoteBackend(url).verify(Batch(emails, "mx"))) as events:
        async for event in events:
            settled += len(event.rows) if isinstance(event, Settled) else 0
    return settled


async def count_requests(url: str) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    writer.write(b"GET /requests HTTP/1.1\r\n\r\n")
    answer = await reader.readuntil(b"}")
    writer.close()
    return int(json.loads(answer.partition(b"\r\n\r\n")[2])["requests"])


def fewest_polls(schedule: PollSchedule, done_after: float) -> int:
    """Polls that the schedule needs for a job that is done at this age."""
    age, polls = 0.0, 0
    while age < done_after:
        age += schedule.interval(age)
        polls += 1
    return polls


def main() -> None:
    given = read_options(__doc__, seconds=(30, 5), rounds=(3, 1))
    shares, ours, alone = [], [], []
    for _ in range(given.rounds):
        with service() as url:
            begun, cpu = time.perf_counter(), time.process_time()
            asyncio.run(poll_for(url, given.seconds))
            used = time.process_time() - cpu
            shares.append(used / (time.perf_counter() - begun) * 100)
            polls = asyncio.run(count_requests(url))
            ours.append(used / polls * 1e3)
            alone.append(asyncio.run(poll_alone(url, polls)) * 1e3)
    record("processor time of a poll", OURS, ours, "ms", JOBS)
    record("processor time of a poll", "httpx alone, nothing parsed but the JSON", alone, "ms", JOBS)
    record("share of a core, polling", OURS, shares, "%", JOBS)
    with service() as url:
        assert asyncio.run(verify_batch(url)) == BATCH
        ratio = asyncio.run(count_requests(url)) / (BATCH * fewest_polls(PollSchedule(), DONE_AFTER))
    record("requests of a poll schedule", OURS, [ratio], "times the fewest", BATCH)


if __name__ == "__main__":
    main()
