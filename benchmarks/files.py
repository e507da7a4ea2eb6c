"""`mailverdict verify` for ``regex`` from CSV to CSV, with and without cleaning, and `clean`: rows and bytes a second.

The file has columns beside the addresses, some quoted. The commands run in this process, one after the other in each
round; the median counts. CPU seconds are those of all threads. For comparison, the same file is read and written by
``pandas.read_csv`` and ``to_csv`` and by ``pyarrow.csv`` with all cells as text, and nothing is verified. Run it as
``python -m benchmarks.files``; ``--rows`` and ``--rounds`` may be given.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv

from mailverdict.cli import main as run_command

from .addresses import make_addresses
from .clean import make_messy
from .figures import record

ROWS, ROUNDS = 1_000_000, 5


def write_file(path: Path, cells: Sequence[str]) -> None:
    frame = pd.DataFrame({"id": range(len(cells)), "name": "Lovelace, Ada", "email": cells, "note": "met in May; call"})
    frame.to_csv(path, index=False)


def run(*arguments: str | Path) -> None:
    """Run the command line; a wrong exit status is an error."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            run_command([str(each) for each in arguments])
    except SystemExit as exc:
        if exc.code:
            raise RuntimeError(f"{arguments[0]} left with status {exc.code}") from exc


def copy_by_pandas(source: Path, target: Path) -> None:
    pd.read_csv(source, dtype=str, keep_default_na=False).to_csv(target, index=False)


def copy_by_arrow(source: Path, target: Path) -> None:
    """In pieces, as the command reads and writes."""
    names = ("id", "name", "email", "note")
    as_text = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
    reader = pyarrow.csv.open_csv(source, convert_options=as_text)
    with reader, pyarrow.csv.CSVWriter(target, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)


def measure(functions: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[tuple[float, float]]]:
    """The wall-clock and CPU seconds of each round of each, in turn."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            begin = time.perf_counter(), time.process_time()
            function()
            taken[name].append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
    return taken


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in.csv"), Path(folder, "out.csv")
        write_file(source, make_messy(make_addresses(given.rows)))
        size = source.stat().st_size / 1e6
        print(f"{given.rows:,} rows, {size:,.0f} MB, one messy cell in ten; median of {given.rounds} rounds")
        verify = ("verify", source, "--column", "email", "--type", "regex", "--quiet", "--output", target)
        functions: dict[str, Callable[[], object]] = {
            "verify": lambda: run(*verify),
            "verify --no-clean": lambda: run(*verify, "--no-clean"),
            "clean": lambda: run("clean", source, "--column", "email", "--quiet", "--output", target),
            "pandas, no check": lambda: copy_by_pandas(source, target),
            "pyarrow.csv, no check": lambda: copy_by_arrow(source, target),
        }
        measured = measure(functions, given.rounds)
        for name, taken in measured.items():
            walls, cpus = zip(*taken, strict=True)
            record("CSV to CSV by regex, processor time", name, cpus, size=given.rows)
            record("CSV to CSV by regex", name, walls, size=given.rows)
            wall, cpu = statistics.median(walls), statistics.median(cpus)
            rate = f"{given.rows / wall:>10,.0f} rows/s {size / wall:6.1f} MB/s"
            print(f"{name:22} {wall:6.2f} s {rate}   {cpu:6.2f} s of CPU {given.rows / cpu:>10,.0f} rows/s of CPU")


if __name__ == "__main__":
    main()
