"""Write `RESULTS.md`, the measured parts of the documentation, and the pictures, all from `results.json`.

``python -m benchmarks --pages`` does nothing else. In a document, everything between ``<!-- measured: NAME -->`` and
``<!-- end of measured -->`` is made by the function of `BLOCKS` with this name. A block for which nothing was measured
stays as it is. `tests/test_results.py` fails if a document or a picture differs from `results.json`.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path

from .figures import OURS, Figure, Results, Section, amount, slope
from .goals import GOALS
from .pictures import draw_pictures

__all__ = ["DOCUMENTS", "PAGE", "PICTURES", "ROOT", "fill_blocks", "results_markdown", "write_pages"]

ROOT = Path(__file__).parents[1]
PAGE = Path(__file__).with_name("RESULTS.md")
PICTURES = ROOT / "docs" / "pictures"
DOCUMENTS = (
    ROOT / "benchmarks" / "README.md",
    ROOT / "docs" / "explanation" / "measured.md",
    ROOT / "docs" / "explanation" / "dns.md",
    ROOT / "docs" / "explanation" / "pace.md",
    ROOT / "docs" / "how-to" / "scale.md",
)
BLOCK = re.compile(r"(<!-- measured: (\w+) -->\n).*?(<!-- end of measured -->)", re.DOTALL)
MILLION = 1_000_000
Rows = Iterable[Sequence[str]]


def write_pages(results: Results, page: Path, pictures: Path, documents: Sequence[Path]) -> None:
    """Write the page, the pictures whose tasks were measured, and the blocks of the documents."""
    page.write_text(results_markdown(results), encoding="utf-8")
    draw_pictures(results, pictures)
    for path in documents:
        text = path.read_text(encoding="utf-8")
        if (filled := fill_blocks(text, results)) != text:
            path.write_text(filled, encoding="utf-8")


def fill_blocks(text: str, results: Results) -> str:
    """Replace each block of a document for which something was measured; an unknown name is an error."""

    def block(match: re.Match[str]) -> str:
        begin, name, end = match.groups()
        lines = BLOCKS[name](results)
        return "\n".join([begin, *lines, "", end]) if lines else match[0]

    return BLOCK.sub(block, text)


def table(head: Sequence[str], rows: Rows) -> list[str]:
    """The lines of a Markdown table."""
    return [f"| {' | '.join(line)} |".replace("|  |", "| |") for line in (head, ["---"] * len(head), *rows)]


# --- RESULTS.md ------------------------------------------------------------------------------------------------------


def results_markdown(results: Results) -> str:
    """The whole page."""
    lines = [
        "# Measured",
        "",
        "Written by `make bench` from `results.json`. Medians, and the best and the worst round. *Times* compares with",
        f"{OURS} in the same task and run: 4 means that {OURS} is 4 times as fast or needs a fourth. Times of another",
        "machine differ, ratios differ less. *Load* is the number of running processes when a benchmark began.",
        "",
        *machine_lines(results),
        "",
        "## Runs",
        "",
        *run_lines(results),
        "",
        "## Goals",
        "",
        *goal_lines(results),
        "",
        "## Slopes",
        "",
        "The slope of time against size on logarithmic axes: 1 is proportional to the size; below 1, a part that does",
        "not grow still counts.",
        "",
        *slope_lines(results),
        "",
    ]
    for section in results.sections:
        lines += section_lines(section)
    return "\n".join(lines).rstrip() + "\n"


def machine_lines(results: Results) -> list[str]:
    """The machine, and the versions that all sections have."""
    common = set.intersection(*(set(each.versions.items()) for each in results.sections)) if results.sections else set()
    versions = [pair for pair in newest(results).items() if pair in common]
    return table(("machine", ""), [*results.machine.items(), *versions])


def newest(results: Results) -> dict[str, str]:
    """The versions of the section that was measured last."""
    return max(results.sections, key=lambda each: each.date).versions if results.sections else {}


def run_lines(results: Results) -> list[str]:
    """When and how each section was measured, with the versions that not all have."""
    common = set.intersection(*(set(each.versions.items()) for each in results.sections)) if results.sections else set()
    rows = []
    for each in results.sections:
        load = "unknown" if each.load is None else f"{each.load:g}"
        others = ", ".join(
            f"{name} {version}" for name, version in each.versions.items() if (name, version) not in common
        )
        rows.append((f"`{each.command}`", each.date, load, duration(each.seconds), others))
    return table(("command", "date", "load", "duration", "other versions"), rows)


def duration(seconds: float | None) -> str:
    """To the second, as minutes from two minutes on."""
    if seconds is None:
        return "not recorded"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def goal_lines(results: Results) -> list[str]:
    """Every goal that was measured."""
    dates = {each.name: each.date for each in results.sections}
    measured = [(goal, goal.measured(results)) for goal in GOALS]
    rows = [
        (goal.words, goal.demanded, goal.show(value), f"`{goal.section}`, {dates[goal.section]}")
        for goal, value in measured
        if value is not None
    ]
    return table(("", "goal", "measured", "benchmark"), rows)


def slope_lines(results: Results) -> list[str]:
    """For each task with several sizes: the slope over all of them, and between each two."""
    rows = []
    for section in results.sections:
        for task, figures in by_task(section.figures):
            for subject in dict.fromkeys(each.subject for each in figures):
                line = [each for each in figures if each.subject == subject]
                if len(line) > 1 and (line[0].unit == "s" or line[0].is_rate):
                    steps = ", ".join(f"{slope(*pair):.2f} to {pair[1].size:,}" for pair in pairwise(line))
                    rows.append((task, subject, f"{slope(line[0], line[-1]):.2f}", f"from {line[0].size:,}: {steps}"))
    return table(("task", "who", "slope", "step by step"), rows)


def section_lines(section: Section) -> Iterator[str]:
    """The tables of one benchmark."""
    yield f"## {section.name}"
    yield ""
    for task, figures in by_task(section.figures):
        rows = []
        for size, group in groupby(figures, key=lambda each: each.size):
            members = list(group)
            ours = next((each for each in members if each.subject == OURS), None)
            rows += [row(size, each, ours) for each in members]
        yield f"### {task[0].upper()}{task[1:]}"
        yield ""
        yield from table(("size", "who", "median", "best to worst", "times"), rows)
        yield ""


def by_task(figures: Sequence[Figure]) -> list[tuple[str, list[Figure]]]:
    """Figures by task, in the order of their first mention; by size within a task."""
    tasks: dict[str, list[Figure]] = {}
    for figure in figures:
        tasks.setdefault(figure.task, []).append(figure)
    return [(task, sorted(group, key=lambda each: each.size)) for task, group in tasks.items()]


def row(size: int, figure: Figure, ours: Figure | None) -> tuple[str, ...]:
    middle, spread = figure.describe()
    is_peer = ours is not None and figure is not ours and figure.median and ours.median
    times = f"{ours.times_better(figure):,.2g}" if ours is not None and is_peer else ""
    return f"{size:,}" if size else "", figure.subject, middle, spread, times


# --- blocks of the documentation -------------------------------------------------------------------------------------


def goals_block(results: Results) -> list[str]:
    """The goals, and on which machine."""
    if not results.sections:
        return []
    machine = f"Measured on {results.machine['processor']}, {results.machine['memory']}, with"
    packages = ", ".join(f"{name} {version}" for name, version in newest(results).items())
    return [f"{machine} {packages}.", "", *goal_lines(results)]


def measured_by(results: Results, name: str) -> list[str]:
    """A line with the date and the command of a section; empty if it was not measured."""
    found = [each for each in results.sections if each.name == name]
    return [f"Measured on {each.date} by `{each.command}`, {results.machine['processor']}." for each in found]


def of_task(results: Results, task: str) -> dict[str, Figure]:
    """The figures of a task by subject."""
    return {each.subject: each for each in results.figures if each.task == task}


def congestion_block(results: Results) -> list[str]:
    """One row for each rate and loss; the values of a figure are those of nine resolvers, in the same order."""
    unknown = of_task(results, "simulated resolvers, domains without an answer")
    queries = of_task(results, "simulated resolvers, queries a domain")
    times = of_task(results, "simulated resolvers, time compared with the ideal")
    rows = []
    for subject in unknown:
        cases = [figures[subject].values for figures in (unknown, queries, times)]
        reached = sum(a <= 1 and b <= 1.3 and c <= 2 for a, b, c in zip(*cases, strict=True))
        cells = [f"{statistics.median(values):.2f}, {max(values):.2f}" for values in cases[1:]]
        rows.append((subject, f"{max(cases[0]):.2f} %", *cells, f"{reached} of {len(cases[0])}"))
    head = ("resolver", "most unknown", "queries a domain: median, most", "time: median, most", "in bounds")
    return [*measured_by(results, "congestion"), "", *table(head, rows)] if rows else []


def pace_block(results: Results) -> list[str]:
    """One row for each kind of service, and one for all; the values of a figure are those of its runs."""
    names = (
        "addresses",
        "addresses lost",
        "addresses without quota",
        "units an address",
        "time compared with the ideal",
    )
    tasks = [of_task(results, f"simulated services, {name}") for name in names]
    values = {kind: [task[kind].values for task in tasks] for kind in tasks[0]}
    if not values:
        return []
    values["all"] = [sum(each, ()) for each in zip(*values.values(), strict=True)]
    rows = []
    for kind, (addresses, lost, unpaid, cost, ratio) in values.items():
        counts = (f"{n:,.0f}" for n in (len(addresses), sum(addresses), sum(lost), sum(unpaid)))
        rows.append((kind, *counts, *(f"{statistics.median(x):.2f}, {max(x):.2f}" for x in (cost, ratio))))
    head = (
        "service",
        "runs",
        "addresses",
        "lost",
        "no quota left",
        "units an address: median, most",
        "time: median, most",
    )
    return [*measured_by(results, "pace"), "", *table(head, rows)]


def scale_block(results: Results) -> list[str]:
    """One row for each number of rows."""
    rows = []
    for size in sorted({each.size for each in results.figures if each.task == "a Dask frame by mx, two workers"}):

        def cell(task: str, subject: str, divisor: float = 1, form: str = ",.0f", size: int = size) -> str:
            found = results.find(task, subject, size)
            return "" if found is None else f"{found.median / divisor:{form}}"

        time, memory = "a Dask frame by mx, two workers", "a Dask frame by mx, peak memory"
        rows.append(
            (
                f"{size:,}",
                cell("a Dask frame by mx, work", "domains"),
                cell("a Dask frame by mx, work", "questions to the DNS"),
                cell(time, "wall clock", size / MILLION, ".1f"),
                cell(time, "processors", size / MILLION, ".1f"),
                f"{cell(memory, 'calling process')} MiB",
                f"{cell(memory, 'largest worker')} MiB",
            )
        )
    head = (
        "rows",
        "domains",
        "questions to the DNS",
        "seconds per million rows",
        "processor seconds",
        "memory of the calling process",
        "of a worker",
    )
    return [*measured_by(results, "scale"), "", *table(head, rows)] if rows else []


def workers_block(results: Results) -> list[str]:
    """One worker and two on a slow column."""
    found = of_task(results, "a Dask frame by smtp, replies after 500 ms, 16 sessions for each worker")
    rows = [(who, f"{each.size:,}", f"{amount(each.median)} s") for who, each in found.items()]
    return table(("workers", "addresses", "time"), rows) if rows else []


def durations_block(results: Results) -> list[str]:
    return run_lines(results) if results.sections else []


BLOCKS: dict[str, Callable[[Results], list[str]]] = {
    "goals": goals_block,
    "durations": durations_block,
    "congestion": congestion_block,
    "pace": pace_block,
    "scale": scale_block,
    "workers": workers_block,
}
