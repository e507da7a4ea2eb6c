"""Figures of benchmarks: printed and recorded by each of them, kept in `results.json`.

A benchmark calls `record`, which prints the figure. If ``python -m benchmarks`` started the
benchmark, the figure also goes to a file that the environment names, and from there into
`results.json`, with the command, date, duration, load and versions of this run. From that file
`results.py` makes `RESULTS.md` with the goals of `goals.py` and the pictures of `pictures.py`.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

OURS = "mailverdict"
VARIABLE = "MAILVERDICT_BENCHMARK_FIGURES"
RESULTS = Path(__file__).with_name("results.json")
# Whose versions are recorded.
PACKAGES = """
mailverdict pandas pyarrow polars numpy dnspython httpx email-validator emval aiodns aiosmtplib py3-validate-email
starlette fastapi uvicorn dask
"""


@dataclass(frozen=True)
class Figure:
    """What one contestant needed for one task.

    Attributes
    ----------
    task : str
        What was done, with its conditions.
    subject : str
        Who did it; `OURS` for this package.
    unit : str
        Of the values; ``/s`` at the end: more is better, else less is.
    values : tuple of float
        One for each round, or for each of several cases; none: the subject failed.
    size : int
        Rows, domains or addresses; 0 where it says nothing.
    """

    task: str
    subject: str
    unit: str
    values: tuple[float, ...]
    size: int = 0

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def is_rate(self) -> bool:
        return self.unit.endswith("/s")

    def times_better(self, other: Figure) -> float:
        """How many times as good as another figure of the same task."""
        return self.median / other.median if self.is_rate else other.median / self.median

    def describe(self) -> tuple[str, str]:
        """The median with its unit, and the best and the worst value."""
        if not self.values:
            return "failed", ""
        low, high = (
            (max(self.values), min(self.values))
            if self.is_rate
            else (min(self.values), max(self.values))
        )
        spread = f"{amount(low)} to {amount(high)}" if len(self.values) > 1 else "once"
        return f"{amount(self.median)} {self.unit}", spread


@dataclass(frozen=True)
class Section:
    """All figures of one benchmark, from one run.

    Attributes
    ----------
    load : float or None
        Processes that were running when it began, on average of a minute; None where the system
        does not count them.
    seconds : float or None
        Duration of the whole benchmark; None if it was not recorded.
    versions : dict
        Of Python and of the packages that are compared or measured.
    """

    name: str
    command: str
    date: str
    load: float | None
    seconds: float | None
    versions: dict[str, str]
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Results:
    """What was measured on one machine."""

    machine: dict[str, str]
    sections: tuple[Section, ...]

    @property
    def figures(self) -> list[Figure]:
        """Those of all sections, without the subjects that failed."""
        every = [figure for section in self.sections for figure in section.figures]
        return [figure for figure in every if figure.values]

    def find(self, task: str, subject: str = OURS, size: int | None = None) -> Figure:
        """The figure of a task, of the largest size if none is given; LookupError: it was not measured."""
        found = [each for each in self.figures if (each.task, each.subject) == (task, subject)]
        found = [each for each in found if size in (None, each.size)]
        if not found:
            raise LookupError(task, subject, size)
        return max(found, key=lambda each: each.size)


def amount(value: float) -> str:
    """Three digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


# --- in a benchmark --------------------------------------------------------------------------------------------------


def read_options(doc: str | None, **numbers: tuple[int, int]) -> argparse.Namespace:
    """What the command line of a benchmark sets: numbers, each with its usual value and that of ``--quick``."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, which only show that everything works"
    )
    for name, (usual, quick) in numbers.items():
        parser.add_argument(f"--{name}", type=int, help=f"{usual:,}; {quick:,} with --quick")
    given = parser.parse_args()
    for name, pair in numbers.items():
        if getattr(given, name) is None:
            setattr(given, name, pair[given.quick])
    return given


def record(
    task: str, subject: str, values: Iterable[float], unit: str = "s", size: int = 0
) -> None:
    """Print a figure of this run, and keep it."""
    figure = Figure(task, subject, unit, tuple(float(f"{value:.6g}") for value in values), size)
    middle, spread = figure.describe()
    what = f"{task}, {size:,}" if size else task
    print(f"{what}: {subject}: {middle}", f"({spread})" if spread else "", flush=True)
    if path := os.environ.get(VARIABLE):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(figure)) + "\n")


# --- results.json ----------------------------------------------------------------------------------------------------


def read_figures(path: Path) -> tuple[Figure, ...]:
    """Figures as `record` wrote them."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return tuple(make_figure(json.loads(line)) for line in lines)


def make_figure(fields: dict[str, Any]) -> Figure:
    return Figure(**{**fields, "values": tuple(fields["values"])})


def load_results(path: Path = RESULTS) -> Results:
    """The results in a file; none if it does not exist."""
    if not path.exists():
        return Results({}, ())
    stored = json.loads(path.read_text(encoding="utf-8"))
    sections = [
        Section(**{**each, "figures": tuple(map(make_figure, each["figures"]))})
        for each in stored["sections"]
    ]
    return Results(stored["machine"], tuple(sections))


def store_section(path: Path, section: Section, order: Sequence[str]) -> None:
    """Replace the section of a benchmark; sections of another machine are dropped, since they do not compare."""
    earlier, here = load_results(path), describe_machine()
    others = set(order) - {section.name}
    kept = (
        [each for each in earlier.sections if each.name in others]
        if earlier.machine == here
        else []
    )
    sections = sorted([*kept, section], key=lambda each: order.index(each.name))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(results_json(Results(here, tuple(sections))), encoding="utf-8")


def results_json(results: Results) -> str:
    """JSON with a line for each figure, so that a new measurement is a short difference."""
    sections = []
    for section in results.sections:
        fields = json.dumps(
            {key: value for key, value in asdict(section).items() if key != "figures"}
        )
        figures = ",\n".join(
            f"   {json.dumps(asdict(figure), ensure_ascii=False)}" for figure in section.figures
        )
        sections.append(f' {fields[:-1]},\n  "figures": [\n{figures}\n  ]}}')
    body = ",\n".join(sections)
    return f'{{"machine": {json.dumps(results.machine)},\n"sections": [\n{body}\n]}}\n'


def describe_machine() -> dict[str, str]:
    """Processor, memory and system; nothing that names the machine or its user."""
    memory = psutil.virtual_memory().total / 2**30
    return {
        "processor": f"{processor_name()}, {os.cpu_count()} cores",
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
    }


def installed_versions() -> dict[str, str]:
    """Python and the packages that are installed."""
    versions = {"Python": platform.python_version()}
    for package in PACKAGES.split():
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def processor_name() -> str:
    """The model of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )
