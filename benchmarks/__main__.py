"""Run the benchmarks one after the other, and write what they measured: ``python -m benchmarks [name ...]``.

Each benchmark replaces its section in `results.json`; `RESULTS.md` and the pictures are made from it.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from .figures import VARIABLE, read_figures, store_section
from .results import write_pages

# In the order of the page.
NAMES = (
    "column",
    "syntax",
    "clean",
    "files",
    "memory",
    "lookups",
    "smtp",
    "polling",
    "journal",
    "service",
    "cluster",
    "scale",
    "imports",
    "audit",
    "congestion",
    "pace",
)


def main(names: list[str]) -> int:
    """Run each in a process of its own; the worst exit status is ours."""
    present = [name for name in NAMES if Path(__file__).with_name(f"{name}.py").exists()]
    unknown = [name for name in names if name not in present]
    if unknown:
        print(f"no benchmark {unknown[0]!r}; there are {', '.join(present)}", file=sys.stderr)
        return 2
    return max(run(name) for name in names or present)


def run(name: str) -> int:
    """Run one and store its figures; a missed goal is an exit status, and its figures count."""
    print(f"== {name}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "figures.jsonl")
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
        environment = {**os.environ, VARIABLE: str(path)}
        status = subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], env=environment, check=False).returncode
        if figures := read_figures(path):
            store_section(name, load, figures, NAMES)
            write_pages()
    return status


sys.exit(main(sys.argv[1:]))
