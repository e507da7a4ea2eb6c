"""Run the benchmarks one after the other, and write what they measured: ``python -m benchmarks [--quick] [name ...]``.

Without a name all are run but those of `BY_NAME`, which take long. Each benchmark replaces its
section in `results.json`; the page and the pictures are made from it, also by ``python -m
benchmarks --page``, which measures nothing. A goal that is missed is shown on the page. The exit
status is that of a benchmark that failed, else 0.

``--quick`` runs each benchmark with small sizes, which shows that everything works but not how fast
it is. Its results, page and pictures go to ``build/quick``.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from .figures import (
    RESULTS,
    VARIABLE,
    Section,
    installed_versions,
    load_results,
    read_figures,
    store_section,
)
from .results import write_page

# In the order of the page.
NAMES = (
    "column",
    "clean",
    "files",
    "memory",
    "lookups",
    "congestion",
    "smtp",
    "journal",
    "service",
    "cluster",
    "scale",
    "audit",
    "pace",
    "estimate",
    "breakdown",
    "mailing",
    "hostile.answers",
    "hostile.tables",
    "hostile.columns",
    "hostile.workbooks",
    "hostile.clients",
    "hostile.page",
    "hostile.frozen",
    "hostile.fairness",
)
BY_NAME = ("scale",)  # takes so long that it is run only if it is named
ROOT = Path(__file__).parents[1]
PAGE = Path(__file__).with_name("RESULTS.md")
PICTURES = ROOT / "docs" / "pictures" / "measured"
QUICK = ROOT / "build" / "quick"


def main() -> int:
    """Run each in a process of its own; the worst exit status is ours."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(NAMES)}")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, with results in a folder of their own"
    )
    parser.add_argument(
        "--folder", type=Path, default=QUICK, help="of the results of --quick; build/quick"
    )
    parser.add_argument(
        "--page", action="store_true", help="only write the page and pictures from results.json"
    )
    given = parser.parse_args()
    if unknown := [name for name in given.names if name not in NAMES]:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(NAMES)}")
    if given.page:
        write_page(load_results(), PAGE, PICTURES)
        return 0
    names = given.names or [name for name in NAMES if name not in BY_NAME]
    return max(run(name, given.folder if given.quick else None) for name in names)


def run(name: str, quick: Path | None) -> int:
    """Run one and store its figures; those of one that fails are not stored."""
    command = f"make bench ARGS={name}" if quick is None else f"make bench ARGS='--quick {name}'"
    print(f"== {command}", flush=True)
    load = round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "figures.jsonl")
        arguments = [sys.executable, "-m", f"benchmarks.{name}", *(["--quick"] if quick else [])]
        status = subprocess.run(
            arguments, env={**os.environ, VARIABLE: str(path)}, check=False
        ).returncode
        figures = read_figures(path)
    if status or not figures:
        print(f"{name}: nothing is stored (exit status {status})", flush=True)
        return abs(status)
    seconds = round(time.perf_counter() - began, 1)
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    results_path = quick / "results.json" if quick else RESULTS
    store_section(
        results_path,
        Section(name, command, date, load, seconds, installed_versions(), figures),
        NAMES,
    )
    page, pictures = (quick / "RESULTS.md", quick / "pictures") if quick else (PAGE, PICTURES)
    write_page(load_results(results_path), page, pictures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
