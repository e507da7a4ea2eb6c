"""`RESULTS.md`, the page of all results, and its pictures, from `results.json`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from .figures import OURS, Figure, Results
from .goals import GOALS
from .pictures import draw_task

INTRODUCTION = f"""
Written by `make bench` from `results.json`. Medians, and the best and the worst round. *Times* compares with {OURS} in
the same task and run: 4 means that {OURS} is 4 times as fast or needs a fourth. A line on a bar goes from the least to
the highest value. *Load* is the number of running processes when a benchmark began. Times of another machine differ,
ratios differ less. [README](README.md) says how to measure, and what bounds the figures.
"""


def write_page(results: Results, page: Path, pictures: Path) -> None:
    """Write the page and a picture of each task that compares something; other pictures in the folder are deleted."""
    pictures.mkdir(parents=True, exist_ok=True)
    for path in pictures.glob("*.svg"):
        path.unlink()
    lines = [
        "# Measured",
        INTRODUCTION,
        *table(("machine", ""), [*results.machine.items(), *newest(results).items()]),
    ]
    lines += ["", "## Goals", "", *goal_lines(results), "", "## Runs", "", *run_lines(results)]
    for section in results.sections:
        lines += ["", f"## {section.name}"]
        for task, figures in by_task(section.figures):
            lines += ["", f"### {task[0].upper()}{task[1:]}", ""]
            if picture := draw_task(figures):
                path = pictures / f"{re.sub('[^a-z0-9]+', '-', task.lower()).strip('-')}.svg"
                path.write_text(picture, encoding="utf-8")
                lines += [f"![{task}]({Path(os.path.relpath(path, page.parent)).as_posix()})", ""]
            lines += table(
                ("size", "who", "median", "best to worst", "times"), figure_rows(figures)
            )
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table."""
    return [
        f"| {' | '.join(line)} |".replace("|  |", "| |")
        for line in (head, ["---"] * len(head), *rows)
    ]


def newest(results: Results) -> dict[str, str]:
    """The versions of the section that was measured last."""
    return max(results.sections, key=lambda each: each.date).versions if results.sections else {}


def goal_lines(results: Results) -> list[str]:
    """The goals of the benchmarks that were measured."""
    dates = {each.name: each.date for each in results.sections}
    rows = [
        (f"`{name}`, {dates[name]}", goal.words, goal.demanded, goal.outcome(results))
        for name, goals in GOALS.items()
        for goal in goals
        if name in dates
    ]
    return table(("benchmark", "", "goal", "measured"), rows)


def run_lines(results: Results) -> list[str]:
    """When and how each section was measured, with the versions that are not those of the machine's table."""
    usual, rows = newest(results).items(), []
    for each in results.sections:
        load = "unknown" if each.load is None else f"{each.load:g}"
        others = ", ".join(
            f"{name} {version}" for name, version in sorted(each.versions.items() - usual)
        )
        others = others if each.versions else "not recorded"
        rows.append((f"`{each.command}`", each.date, load, duration(each.seconds), others))
    return table(("command", "date", "load", "duration", "other versions"), rows)


def duration(seconds: float | None) -> str:
    """To the second, as minutes from two minutes on."""
    if seconds is None:
        return "not recorded"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def by_task(figures: Sequence[Figure]) -> list[tuple[str, list[Figure]]]:
    """Figures by task, in the order of their first mention; by size within a task."""
    tasks: dict[str, list[Figure]] = {}
    for figure in figures:
        tasks.setdefault(figure.task, []).append(figure)
    return [(task, sorted(group, key=lambda each: each.size)) for task, group in tasks.items()]


def figure_rows(figures: Sequence[Figure]) -> Iterator[tuple[str, ...]]:
    """A row for each figure of a task; those of peers are compared with ours of the same size."""
    ours = {each.size: each for each in figures if each.subject == OURS}
    for each in figures:
        middle, spread = each.describe()
        mine = ours.get(each.size)
        times = ""
        if mine is not None and each is not mine and mine.values and each.values:
            times = f"{mine.times_better(each):,.2g}" if each.median and mine.median else ""
        yield f"{each.size:,}" if each.size else "", each.subject, middle, spread, times
