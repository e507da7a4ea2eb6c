"""Run the benchmarks one after the other: ``python -m benchmarks [name ...]``."""

import subprocess
import sys
from pathlib import Path

# In the order of the README's table.
NAMES = (
    "syntax",
    "column",
    "clean",
    "files",
    "memory",
    "lookups",
    "congestion",
    "smtp",
    "polling",
    "pace",
    "journal",
    "service",
)


def main(names: list[str]) -> int:
    """Run each in a process of its own; the worst exit status is ours."""
    present = [name for name in NAMES if Path(__file__).with_name(f"{name}.py").exists()]
    unknown = [name for name in names if name not in present]
    if unknown:
        print(f"no benchmark {unknown[0]!r}; there are {', '.join(present)}", file=sys.stderr)
        return 2
    worst = 0
    for name in names or present:
        print(f"== {name}", flush=True)
        worst = max(worst, subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode)
    return worst


sys.exit(main(sys.argv[1:]))
