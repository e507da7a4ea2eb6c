"""A CSV larger than one would like to hold in memory, through the command line.

5,000,000 rows (``--rows``) of three columns are verified by ``regex`` into a CSV and into Parquet, each in a
process of its own. Told are the seconds, the highest resident memory of that process as the system saw it, and
whether every row came back in order. Run it as ``python -m benchmarks.memory``.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path

import pyarrow.parquet

from .addresses import make_addresses

ROWS = 5_000_000
DISTINCT = 1_000_000  # the rest repeats, as in exports
GOAL = 1 << 30  # octets
COMMAND = ("-m", "mailverdict", "verify", "--column", "email", "--type", "regex", "--quiet", "--output")


def write_input(path: Path, rows: int) -> None:
    """A number, an address and a note; quoted as needed."""
    addresses = make_addresses(min(rows, DISTINCT))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "email", "note"])
        writer.writerows((n, email, f"row {n}, checked") for n, email in enumerate(islice(cycle(addresses), rows)))


def run(source: Path, target: Path) -> tuple[float, int]:
    """Seconds and highest resident octets of one call of the command line."""
    begin = time.perf_counter()
    child = os.posix_spawn(sys.executable, [sys.executable, *COMMAND, str(target), str(source)], os.environ)
    _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit(f"the command left with status {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - begin, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def numbers_of(path: Path) -> Iterator[int]:
    """The first column of a written file."""
    if path.suffix == ".parquet":
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(columns=["id"]):
                yield from map(int, batch.column(0).to_pylist())
        return
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        next(rows)
        yield from (int(row[0]) for row in rows)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    rows = parser.parse_args(argv).rows
    worst = 0
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "in.csv")
        write_input(source, rows)
        print(f"{rows:,} rows, {source.stat().st_size / 1e6:,.0f} MB of CSV")
        for name in ("out.csv", "out.parquet"):
            target = Path(folder, name)
            seconds, peak = run(source, target)
            in_order = all(a == b for a, b in zip(numbers_of(target), range(rows), strict=True))
            worst = max(worst, peak)
            order = "every row in order" if in_order else "ROWS OUT OF ORDER"
            print(f"{name:12} {seconds:7.1f} s  {peak / 2**20:7.0f} MiB at most  {order}")
            target.unlink()
    print(f"goal: less than {GOAL / 2**20:,.0f} MiB: {'reached' if worst < GOAL else 'MISSED'}")
    return int(worst >= GOAL)


if __name__ == "__main__":
    sys.exit(main())
