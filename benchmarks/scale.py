"""A Dask frame of millions of rows by ``mx``, on a LocalCluster of two worker processes.

The rows are made on the workers: one address in two rows is new, and each hundred rows bring one
new domain. The sandbox's DNS server, a process of its own, knows them all. For 1, 10 and 50 million
rows are measured: seconds of wall clock and of the processors (of workers and calling process), the
highest resident memory of the calling process and of a worker, the distinct domains and the
questions that the server received. Then one worker is compared with two on a column by ``smtp``
whose mail servers answer slowly. Run it as ``python -m benchmarks scale``.
"""

from __future__ import annotations

import logging
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

import mailverdict as mv
from mailverdict.loop import run_sync
from mailverdict.sandbox.dns import DnsServer
from mailverdict.sandbox.dns_table import DomainRecords

from .figures import read_options, record

MILLION, MIB = 1_000_000, 1 << 20
PART_ROWS = 500_000
ROWS_PER_DOMAIN = 100
COMMON = 50  # domains that have half of the rows
# Of the slow column: mail servers, seconds of a round trip, sessions of each worker
EXCHANGES, DELAY, SESSIONS = 64, 0.5, 16
SAMPLE = ["ada@gmail.com", "bo@gone.example"]


def make_part(number: int) -> pd.DataFrame:
    """Rows of one partition: half at common domains, half at rare ones."""
    rows = np.arange(number * PART_ROWS, (number + 1) * PART_ROWS)
    domain = np.where(rows % 2, (rows // 2) % COMMON, COMMON + rows // ROWS_PER_DOMAIN)
    local = pc.binary_join_element_wise("user", pa.array(rows // 2).cast(pa.string()), "")
    names = pc.binary_join_element_wise(
        "d", pa.array(domain).cast(pa.string()), ".scale.example", ""
    )
    emails = pc.binary_join_element_wise(local, names, "@")
    return pd.DataFrame({"row": rows, "email": pd.array(emails, dtype=pd.StringDtype("pyarrow"))})


def serve(pipe: Connection) -> None:
    """Run the DNS server until told otherwise; each message is answered with the number of questions so far."""
    records = DomainRecords({"MX": ("10 mx.scale.example",)}, ttl=86_400)
    server = DnsServer({"*.scale.example": records, "scale.example": records})
    run_sync(server.start())
    pipe.send(server.endpoint)
    while pipe.recv():
        pipe.send(server.count())
    run_sync(server.stop())


@contextmanager
def dns_server() -> Iterator[tuple[str, Connection]]:
    """The server in a process of its own."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    process.start()
    yield here.recv(), here
    here.send(False)
    process.join()


@contextmanager
def cluster(workers: int, memory: str = "2GiB") -> Iterator[Any]:
    """A client of a LocalCluster of single-threaded worker processes."""
    from distributed import Client, LocalCluster

    options: dict[str, Any] = {
        "threads_per_worker": 1,
        "processes": True,
        "dashboard_address": "127.0.0.1:0",
    }
    options["silence_logs"] = logging.ERROR
    with (
        LocalCluster(n_workers=workers, memory_limit=memory, **options) as made,
        Client(made) as client,
    ):
        yield client


def used() -> tuple[float, int]:
    """Seconds of the processor, and the highest resident octets of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def measure(rows: int) -> None:
    """One number of rows."""
    import dask.dataframe as dd

    import mailverdict.dask

    with (
        dns_server() as (endpoint, pipe),
        cluster(2) as client,
        tempfile.TemporaryDirectory() as scratch,
    ):
        backend = mv.LocalBackend(resolver=endpoint, resolver_check=False)
        frame = dd.from_map(make_part, range(rows // PART_ROWS), meta=make_part(0).iloc[:0])
        before = sum(seconds for seconds, _ in client.run(used).values()) + used()[0]
        begin = time.perf_counter()
        out = mailverdict.dask.verify(
            frame, "email", backend=backend, scratch=scratch, progress=False
        )
        counts = out["email_verdict"].value_counts().compute()
        wall = time.perf_counter() - begin
        workers = client.run(used).values()
        pipe.send(True)
        questions = pipe.recv()
        if counts["valid"] != rows:
            raise SystemExit(f"{rows - counts['valid']:,} of {rows:,} rows are not valid")
        cpu = sum(seconds for seconds, _ in workers) + used()[0] - before
        domains = COMMON + rows // ROWS_PER_DOMAIN
        caller, worker = used()[1] / MIB, max(size for _, size in workers) / MIB
        record("a Dask frame by mx, two workers", "wall clock", [wall], size=rows)
        record("a Dask frame by mx, two workers", "processors", [cpu], size=rows)
        record("a Dask frame by mx, peak memory", "calling process", [caller], "MiB", rows)
        record("a Dask frame by mx, peak memory", "largest worker", [worker], "MiB", rows)
        record("a Dask frame by mx, work", "domains", [domains], "domains", rows)
        record("a Dask frame by mx, work", "questions to the DNS", [questions], "questions", rows)


def measure_workers(addresses: int) -> None:
    """Seconds of a slow SMTP column with one worker and with two, each with the same number of sessions."""
    import dask.dataframe as dd

    import mailverdict.dask
    from mailverdict.sandbox.smtp_script import Exchange

    hosts = [f"mx.firm{at}.example" for at in range(EXCHANGES)]
    exchanges = [
        Exchange(host, "slow", mailboxes=None, delay=DELAY, extensions=()) for host in hosts
    ]
    zones = {
        f"firm{at}.example": DomainRecords({"MX": (f"10 {host}",)}) for at, host in enumerate(hosts)
    }
    emails = [
        f"user{number}@firm{at}.example" for number in range(addresses) for at in range(EXCHANGES)
    ]
    options: dict[str, Any] = {"validation_type": "smtp", "progress": False}
    seconds = {}
    for workers in (1, 2):
        with (
            mv.sandbox.World(zones, exchanges=exchanges, catch_all_probe=False) as world,
            cluster(workers),
        ):
            deadlines = {"deadline": 900.0, "session_deadline": 900.0, "command_timeout": 60.0}
            backend = world.make_backend(max_sessions=SESSIONS * workers, **deadlines)
            frames = [
                dd.from_pandas(pd.DataFrame({"email": given}), npartitions=4)
                for given in (SAMPLE, emails)
            ]
            mailverdict.dask.verify(
                frames[0], "email", backend=backend, **options
            ).compute()  # imports the package
            begin = time.perf_counter()
            out = mailverdict.dask.verify(frames[1], "email", backend=backend, **options)
            counts = out["email_verdict"].value_counts().compute()
            seconds[workers] = time.perf_counter() - begin
            most = max(world.smtp.stats(host).most_open for host in hosts)
            if counts["valid"] != len(emails) or most > backend.settings.max_sessions_per_exchange:
                raise SystemExit(
                    f"not all rows are valid, or too many sessions ({most}): {counts.to_dict()}"
                )
    task = "a Dask frame by smtp, replies after 500 ms, 16 sessions for each worker"
    record(task, "one worker", [seconds[1]], size=len(emails))
    record(task, "two workers", [seconds[2]], size=len(emails))


def main() -> None:
    given = read_options(__doc__, most=(50, 1), addresses=(40, 2))
    for millions in (1, 10, 50):
        if millions <= given.most:
            measure(millions * MILLION)
    measure_workers(given.addresses)


if __name__ == "__main__":
    main()
