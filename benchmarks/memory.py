"""A CSV larger than one would like to hold in memory, through the command line.

5,000,000 rows (``--rows``) of three columns are verified by ``regex`` into a CSV and into Parquet, planned, and
verified with a report, each in a process of its own. Printed are the seconds, the highest resident memory of that
process as the system measured it, and whether every row came back in order. Run it as ``python -m benchmarks.memory``.
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
from .figures import OURS, record

ROWS = 5_000_000
DISTINCT = 1_000_000  # the rest repeats, as in exports
MIB = 1 << 20
VERIFY = ("verify", "--column", "email", "--type", "regex", "--quiet")
# What is written, or None; the goal in octets; and the command, before its output.
COMMANDS: tuple[tuple[str | None, int, tuple[str, ...]], ...] = (
    ("out.csv", 500 * MIB, (*VERIFY, "--output")),
    ("out.parquet", 500 * MIB, (*VERIFY, "--output")),
    (None, 600 * MIB, ("plan", "--column", "email", "--type", "regex")),
    ("report.html", 600 * MIB, (*VERIFY, "--report")),
)


def write_input(path: Path, rows: int) -> None:
    """A number, an address and a note; quoted as needed."""
    addresses = make_addresses(min(rows, DISTINCT))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "email", "note"])
        writer.writerows((n, email, f"row {n}, checked") for n, email in enumerate(islice(cycle(addresses), rows)))


def run(*arguments: str) -> tuple[float, int]:
    """Seconds and highest resident octets of one call of the command line."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "mailverdict", *arguments]
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    child = os.posix_spawn(sys.executable, command, os.environ, file_actions=silent)
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
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "in.csv")
        write_input(source, rows)
        print(f"{rows:,} rows, {source.stat().st_size / 1e6:,.0f} MB of CSV")
        for name, goal, command in COMMANDS:
            target = Path(folder, name or "")
            seconds, peak = run(*command, *([str(target)] if name else []), str(source))
            is_table = target.suffix in (".csv", ".parquet")
            in_order = is_table and all(a == b for a, b in zip(numbers_of(target), range(rows), strict=True))
            order = ("every row in order" if in_order else "ROWS OUT OF ORDER") if is_table else ""
            task = f"{command[0]}, CSV to {target.suffix[1:] or 'the terminal'}, by regex"
            record(task, OURS, [seconds], size=rows)
            record(f"{task}, peak memory of the process", OURS, [peak / MIB], "MiB", rows)
            reached = "reached" if peak < goal else "MISSED"
            missed += peak >= goal or (is_table and not in_order)
            figures = f"{seconds:7.1f} s  {peak / MIB:7.0f} MiB at most, goal {goal / MIB:5.0f} {reached}"
            print(f"{name or command[0]:12} {figures}  {order}")
            if name:
                target.unlink()
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
