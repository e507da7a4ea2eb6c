"""Figures of benchmarks: recorded by each of them, kept in `results.json`, shown in `RESULTS.md` and in pictures.

A benchmark calls `record`. If ``python -m benchmarks`` started it, the figures go to a file that the environment names,
and from there, with the machine and the date, into `results.json`; else they are only printed by the benchmark.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

__all__ = ["OURS", "Figure", "Section", "describe_machine", "load_sections", "record", "store_section"]

OURS = "mailverdict"
VARIABLE = "MAILVERDICT_BENCHMARK_FIGURES"
RESULTS = Path(__file__).with_name("results.json")
PACKAGES = (
    "pandas",
    "pyarrow",
    "polars",
    "numpy",
    "dnspython",
    "httpx",
    "email-validator",
    "emval",
    "aiodns",
    "aiosmtplib",
    "py3-validate-email",
    "starlette",
    "fastapi",
    "uvicorn",
)


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
        One for each round.
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


@dataclass(frozen=True)
class Section:
    """All figures of one benchmark, from one run."""

    name: str
    date: str
    load: float  # processes that were running when it began, on average of a minute
    figures: tuple[Figure, ...]


def record(task: str, subject: str, values: Iterable[float], unit: str = "s", size: int = 0) -> None:
    """Keep a figure of this run."""
    if path := os.environ.get(VARIABLE):
        figure = Figure(task, subject, unit, tuple(float(f"{value:.6g}") for value in values), size)
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(figure)) + "\n")


def read_figures(path: Path) -> tuple[Figure, ...]:
    """Figures as `record` wrote them."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return tuple(make_figure(json.loads(line)) for line in lines)


def make_figure(fields: dict[str, Any]) -> Figure:
    return Figure(**{**fields, "values": tuple(fields["values"])})


def load_sections() -> tuple[dict[str, str], list[Section]]:
    """The machine, and the sections in `results.json`."""
    if not RESULTS.exists():
        return {}, []
    stored = json.loads(RESULTS.read_text(encoding="utf-8"))
    sections = [
        Section(each["name"], each["date"], each["load"], tuple(map(make_figure, each["figures"])))
        for each in stored["sections"]
    ]
    return stored["machine"], sections


def store_section(name: str, load: float, figures: Sequence[Figure], order: Sequence[str]) -> None:
    """Replace the section of a benchmark; sections of another machine are dropped, since they do not compare."""
    machine, sections = load_sections()
    here = describe_machine()
    kept = [each for each in sections if each.name != name] if machine == here else []
    made = Section(name, datetime.now(UTC).strftime("%Y-%m-%d"), round(load, 1), tuple(figures))
    kept = sorted([*kept, made], key=lambda each: order.index(each.name))
    text = json.dumps({"machine": here, "sections": [asdict(each) for each in kept]}, indent=1)
    RESULTS.write_text(text + "\n", encoding="utf-8")


def describe_machine() -> dict[str, str]:
    """Processor, memory, system and versions; nothing that names the machine or its user."""
    memory = psutil.virtual_memory().total / 2**30
    machine = {
        "processor": f"{processor_name()}, {os.cpu_count()} cores",
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "Python": platform.python_version(),
    }
    for package in PACKAGES:
        try:
            machine[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return machine


def processor_name() -> str:
    """The model of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
