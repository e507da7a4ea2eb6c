"""Tables made to use up time and memory: a line with two million cells, and the like.

``mailverdict verify --type regex`` reads each of them, in a process of its own that is ended after two minutes.
Measured are its seconds of processor time and its highest resident memory, those of a small file included. Run it as
``python -m benchmarks.hostile.tables``.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.figures import OURS, read_options, record

LONGEST = 120.0  # seconds until a process is ended
COLUMNS = 16_384  # as many as are read
NAMES = ",".join(["email", *(f"c{n}" for n in range(1, COLUMNS))])
MEMBERS = ", ".join(f'"c{n}": 1' for n in range(COLUMNS - 1))

# What is in each file, by a number of cells: refused are those with too many, the others are read.
TABLES: dict[str, tuple[str, Callable[[int], str]]] = {
    "a small file": ("csv", lambda cells: "email,note\nada@example.org,x\n"),
    "a header": (
        "csv",
        lambda cells: "email" + ",a" * cells + "\nada@example.org" + "," * cells + "\n",
    ),
    "a row": (
        "csv",
        lambda cells: "email,note\nada@example.org,x\nbob@example.org" + ",x" * cells + "\n",
    ),
    "a row with quotes in its cells": (
        "csv",
        lambda cells: "email,note\nada@example.org," + 'a"b,' * cells + "\n",
    ),
    "a header with quotes in its cells": ("csv", lambda cells: 'a"b,' * cells + "\n"),
    "a JSON object": (
        "jsonl",
        lambda cells: "{" + ", ".join(f'"c{n}": 1' for n in range(cells)) + "}\n",
    ),
    "JSON objects with other members each": (
        "jsonl",
        lambda cells: "".join(
            "{" + ", ".join(f'"c{n + i}": 1' for i in range(1000)) + "}\n"
            for n in range(0, cells, 1000)
        ),
    ),
    "short rows below 16,384 columns": (
        "csv",
        lambda cells: f"{NAMES}\n" + "ada@example.org\n" * (cells // 2),
    ),
    "empty objects below 16,384 members": (
        "jsonl",
        lambda cells: f'{{"email": "ada@example.org", {MEMBERS}}}\n' + "{}\n" * (cells // 2),
    ),
    "at signs in a row with a cell too many": (
        "csv",
        lambda cells: "note,email\nx,ada@example.org\nx,y," + "@." * (cells // 10) + "\n",
    ),
    "16,384 columns, which are read": (
        "csv",
        lambda cells: f"{NAMES}\n" + ("ada@example.org" + "," * (COLUMNS - 1) + "\n") * 300,
    ),
    "notes of 1 MiB, which are read": (
        "csv",
        lambda cells: "email,note\n" + f"ada@example.org,{'x' * (1 << 20)}\n" * 20,
    ),
}


def verify(path: str, target: str) -> None:
    """Verify a file, and print the seconds of processor time and the MiB of the process that does it."""
    command = [
        sys.executable,
        "-m",
        "mailverdict",
        "verify",
        path,
        "--column",
        "email",
        "--type",
        "regex",
    ]
    done = subprocess.run([*command, "--output", target], capture_output=True, check=False)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    mib = usage.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1024)
    print(json.dumps([usage.ru_utime + usage.ru_stime, mib, done.returncode]))


def measure(path: Path) -> tuple[float, float, int] | None:
    """What a file costs, and the exit status; None if it took too long."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.hostile.tables",
        "one",
        str(path),
        str(path.with_name("out.csv")),
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        try:
            seconds, mib, status = json.loads(child.communicate(timeout=LONGEST)[0])
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            return None
    return seconds, mib, status


def main() -> None:
    given = read_options(__doc__, cells=(2_000_000, 100_000))
    with tempfile.TemporaryDirectory() as folder:
        for name, (ending, content) in TABLES.items():
            path = Path(folder, f"in.{ending}")
            path.write_text(content(given.cells), encoding="utf-8")
            found = measure(path)
            if found is None:
                record(f"{name}, not ended", OURS, [LONGEST], size=given.cells)
                continue
            record(f"{name}, exit status {found[2]}", OURS, found[:1], size=given.cells)
            record(f"{name}, memory", OURS, found[1:2], "MiB", given.cells)


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        verify(*sys.argv[2:])
    else:
        main()
