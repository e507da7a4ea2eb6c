"""A CSV larger than one would like to hold in memory, through the command line, beside copies without a check.

5,000,000 rows of three columns are verified by ``regex`` into a CSV and into Parquet, planned, and
verified with a report; ``pyarrow.csv`` and pandas read and write the same file with all cells as
text. Each is a process of its own, round by round in turn. Measured are the seconds and the highest
resident memory of the process, as the system counts it, and every row must come back in order. Run
it as ``python -m benchmarks memory``.
"""

from __future__ import annotations

import csv
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

import pyarrow.parquet

from .addresses import make_addresses
from .figures import OURS, read_options, record

DISTINCT = 1_000_000  # the rest repeats, as in exports
MIB = 1 << 20
VERIFY = ("-m", "mailverdict", "verify", "--column", "email", "--type", "regex", "--quiet")
# What is written, or nothing; and the arguments of Python, before output and input.
PROGRAMS: dict[str, tuple[str, tuple[str, ...]]] = {
    OURS: ("out.csv", (*VERIFY, "--output")),
    "mailverdict, to Parquet": ("out.parquet", (*VERIFY, "--output")),
    "mailverdict, plan": (
        "",
        ("-m", "mailverdict", "plan", "--column", "email", "--type", "regex"),
    ),
    "mailverdict, with a report": ("report.html", (*VERIFY, "--report")),
    "pyarrow.csv, no check": ("out.csv", ("-m", "benchmarks.copies", "arrow")),
    "pandas, no check": ("out.csv", ("-m", "benchmarks.copies", "pandas")),
}


def write_input(path: Path, rows: int) -> None:
    """A number, an address and a note; quoted as needed."""
    addresses = make_addresses(min(rows, DISTINCT))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "email", "note"])
        writer.writerows(
            (n, email, f"row {n}, checked")
            for n, email in enumerate(islice(cycle(addresses), rows))
        )


def run(*arguments: str) -> tuple[float, int]:
    """Seconds and highest resident octets of one process."""
    begin = time.perf_counter()
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    child = os.posix_spawn(
        sys.executable, [sys.executable, *arguments], os.environ, file_actions=silent
    )
    _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit(
            f"{' '.join(arguments)} left with status {os.waitstatus_to_exitcode(status)}"
        )
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


def main() -> None:
    given = read_options(__doc__, rows=(5_000_000, 50_000), rounds=(3, 1))
    seconds: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    peaks: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "in.csv")
        write_input(source, given.rows)
        for number in range(given.rounds):
            for name, (written, arguments) in PROGRAMS.items():
                target = Path(folder, written)
                taken, peak = run(*arguments, *([str(target)] if written else []), str(source))
                seconds[name].append(taken)
                peaks[name].append(peak / MIB)
                if target.suffix in (".csv", ".parquet") and number == 0:
                    in_order = zip(numbers_of(target), range(given.rows), strict=True)
                    assert all(a == b for a, b in in_order), f"{name}: rows out of order"
                if written:
                    target.unlink()
    for name, values in seconds.items():
        record("a large CSV by regex", name, values, size=given.rows)
    for name, values in peaks.items():
        record("a large CSV by regex, peak memory", name, values, "MiB", given.rows)


if __name__ == "__main__":
    main()
