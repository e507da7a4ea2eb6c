"""`mailverdict verify` by ``regex`` from CSV to CSV, with and without cleaning, and `clean`, beside copies of the file.

The file has columns beside the addresses, some quoted, and one messy cell in ten. The commands run
in this process, one after the other in each round; the median counts. CPU seconds are those of all
threads. For comparison, the same file is read and written by ``pandas.read_csv`` and ``to_csv`` and
by ``pyarrow.csv`` with all cells as text, and nothing is verified. Run it as ``python -m benchmarks
files``.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from mailverdict.cli import main as run_command

from .addresses import make_addresses
from .clean import make_messy
from .copies import copy_by_arrow, copy_by_pandas
from .figures import OURS, read_options, record


def write_file(path: Path, cells: Sequence[str]) -> None:
    frame = pd.DataFrame(
        {
            "id": range(len(cells)),
            "name": "Lovelace, Ada",
            "email": cells,
            "note": "met in May; call",
        }
    )
    frame.to_csv(path, index=False)


def run(*arguments: str | Path) -> None:
    """Run the command line; a wrong exit status is an error."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            run_command([str(each) for each in arguments])
    except SystemExit as exc:
        if exc.code:
            raise RuntimeError(f"{arguments[0]} left with status {exc.code}") from exc


def measure(
    functions: dict[str, Callable[[], object]], rounds: int
) -> dict[str, list[tuple[float, float]]]:
    """The wall-clock and CPU seconds of each round of each, in turn."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            begin = time.perf_counter(), time.process_time()
            function()
            taken[name].append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
    return taken


def main() -> None:
    given = read_options(__doc__, rows=(1_000_000, 20_000), rounds=(5, 1))
    for rows in (given.rows // 10, given.rows):
        compare(rows, given.rounds)


def compare(rows: int, rounds: int) -> None:
    """All commands and copies with a file of so many rows."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in.csv"), Path(folder, "out.csv")
        write_file(source, make_messy(make_addresses(rows)))
        verify = (
            "verify",
            source,
            "--column",
            "email",
            "--type",
            "regex",
            "--quiet",
            "--output",
            target,
        )
        functions: dict[str, Callable[[], object]] = {
            OURS: lambda: run(*verify),
            "mailverdict, --no-clean": lambda: run(*verify, "--no-clean"),
            "mailverdict, clean": lambda: run(
                "clean", source, "--column", "email", "--quiet", "--output", target
            ),
            "pandas, no check": lambda: copy_by_pandas(source, target),
            "pyarrow.csv, no check": lambda: copy_by_arrow(source, target),
        }
        for name, taken in measure(functions, rounds).items():
            walls, cpus = zip(*taken, strict=True)
            record("CSV to CSV by regex", name, walls, size=rows)
            record("CSV to CSV by regex, processor time", name, cpus, size=rows)


if __name__ == "__main__":
    main()
