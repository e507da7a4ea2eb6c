"""Print constraints for pip: the lowest declared release of each dependency, others as in constraints.txt.

`make test-lower` installs these and runs the frame tests with them.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
# Those that `make test-lower` uses.
EXTRAS = (
    "cli",
    "excel",
    "polars",
    "dask",
    "spark",
    "service",
    "postgres",
)
# Whose release follows from that of Dask, PySpark or psycopg.
TIED = (
    "distributed",
    "py4j",
    "psycopg-binary",
)
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[[^]]*\])?>=(?P<lowest>[\d.]+)")


def lower_bounds(project: dict[str, dict[str, object]]) -> dict[str, str]:
    """Lowest release by name, of the dependencies and the extras."""
    table = project["project"]
    extras: dict[str, list[str]] = table["optional-dependencies"]  # type: ignore[assignment]
    requirements = [*table["dependencies"], *(line for extra in EXTRAS for line in extras[extra])]  # type: ignore[misc]
    everywhere = [line for line in requirements if ";" not in line]
    found = (REQUIREMENT.match(line) for line in everywhere)
    return {match["name"].lower(): match["lowest"] for match in found if match}


def main() -> None:
    lowest = lower_bounds(tomllib.loads((ROOT / "pyproject.toml").read_text()))
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
    others = {
        name: release
        for name, release in pins.items()
        if name.lower().replace("_", "-") not in (*lowest, *TIED)
    }
    for name, release in {**others, **lowest}.items():
        print(f"{name}=={release}")


if __name__ == "__main__":
    main()
