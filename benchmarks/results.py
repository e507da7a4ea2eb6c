"""Write `RESULTS.md` and the pictures from `results.json`: ``python -m benchmarks.results``.

Pictures are SVG files for light and dark pages, in the colours of `mailverdict.theme`. `docs/explanation/measured.md`
and the README show them.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from mailverdict.theme import COLOURS

from .figures import OURS, Figure, Section, load_sections

__all__ = ["results_markdown", "write_pages"]

ROOT = Path(__file__).parents[1]
PAGE = Path(__file__).with_name("RESULTS.md")
PICTURES = ROOT / "docs" / "pictures"
WIDTH, BAR_HEIGHT, LINES_HEIGHT = 8.0, 0.32, 3.6  # inches
LABEL_DISTANCE = 1.5  # between the heights of two names beside lines, as a factor
# Tasks that are drawn: the file, the title and the task; lines over the sizes, or bars.
LINES = (
    ("column", "A column by regex: seconds by rows", "a column by regex"),
    ("lookups", "MX look-ups a second, answers after 20 ms, by domains", "MX look-ups, answers after 20 ms"),
)
BARS = (
    ("smtp", "10,000 mailboxes by smtp, seconds", "mailboxes by smtp: refusals punished, PIPELINING everywhere"),
    ("service", "Single checks by regex over HTTP, requests a second", "single checks by regex over HTTP"),
)


def write_pages() -> None:
    """Write the page, and the pictures whose tasks were measured."""
    machine, sections = load_sections()
    PAGE.write_text(results_markdown(machine, sections), encoding="utf-8")
    figures = [figure for section in sections for figure in section.figures]
    for name, title, task in LINES:
        draw(name, title, [each for each in figures if each.task == task], draw_lines)
    for name, title, task in BARS:
        draw(name, title, [each for each in figures if each.task == task], draw_bars)


def results_markdown(machine: dict[str, str], sections: Sequence[Section]) -> str:
    """The whole page."""
    lines = [
        "# Measured",
        "",
        "Written by `make bench`. Medians, and the fastest and slowest round in brackets. *Times* compares with",
        f"{OURS} in the same task and run: 4 means that {OURS} is 4 times as fast or needs a fourth. Times of another",
        "machine differ, ratios differ less. *Load* is the number of running processes when a benchmark began.",
        "",
        "| machine | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in machine.items()),
        "",
    ]
    for section in sections:
        lines += section_lines(section)
    return "\n".join(lines).rstrip() + "\n"


def section_lines(section: Section) -> Iterator[str]:
    """The tables of one benchmark."""
    yield f"## {section.name}"
    yield ""
    yield f"`make bench ARGS={section.name}`, {section.date}, load {section.load:g}"
    yield ""
    for task, figures in by_task(section.figures):
        yield f"### {task[0].upper()}{task[1:]}" if not task.startswith("MX") else f"### {task}"
        yield ""
        yield "| size | who | median | fastest to slowest | times |"
        yield "|---|---|---|---|---|"
        for size, group in groupby(figures, key=lambda each: each.size):
            members = list(group)
            ours = next((each for each in members if each.subject == OURS), None)
            yield from (row(size, each, ours) for each in members)
        yield ""


def by_task(figures: Sequence[Figure]) -> list[tuple[str, list[Figure]]]:
    """Figures by task, in the order of their first mention; by size within a task."""
    tasks: dict[str, list[Figure]] = {}
    for figure in figures:
        tasks.setdefault(figure.task, []).append(figure)
    return [(task, sorted(group, key=lambda each: each.size)) for task, group in tasks.items()]


def row(size: int, figure: Figure, ours: Figure | None) -> str:
    unit, values = figure.unit, figure.values
    low, high = (max(values), min(values)) if figure.is_rate else (min(values), max(values))
    spread = f"{amount(low)} to {amount(high)}" if len(values) > 1 else "once"
    times = f"{ours.times_better(figure):,.2g}" if ours is not None and figure is not ours else ""
    shown = f"{size:,}" if size else ""
    return f"| {shown} | {figure.subject} | {amount(figure.median)} {unit} | {spread} | {times} |"


def amount(value: float) -> str:
    """Three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


# --- pictures ----------------------------------------------------------------------------------------


def draw(name: str, title: str, figures: list[Figure], draw_axes: Any) -> None:
    """One SVG file for each scheme; nothing without figures."""
    if not figures:
        return
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("svg")
    plt = importlib.import_module("matplotlib.pyplot")
    PICTURES.mkdir(exist_ok=True)
    for scheme in ("light", "dark"):
        colours = {key: getattr(colour, scheme) for key, colour in COLOURS.items()}
        with plt.rc_context(style(colours)):
            height = LINES_HEIGHT if draw_axes is draw_lines else 0.9 + BAR_HEIGHT * len(figures)
            picture, axes = plt.subplots(figsize=(WIDTH, height))
            draw_axes(axes, figures, colours)
            axes.set_title(title, loc="left")
            path = PICTURES / f"{name}-{scheme}.svg"
            picture.savefig(path, metadata={"Date": None, "Title": title})
            plt.close(picture)
        path.write_text("\n".join(line.rstrip() for line in path.read_text("utf-8").splitlines()) + "\n", "utf-8")


def style(colours: dict[str, str]) -> dict[str, Any]:
    """Settings of matplotlib: text stays text, and the file is the same for the same figures."""
    soft = dict.fromkeys(("axes.labelcolor", "xtick.color", "ytick.color"), colours["text-soft"])
    return {
        "svg.fonttype": "none",
        "svg.hashsalt": "mailverdict",
        "font.family": "sans-serif",
        "figure.constrained_layout.use": True,
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
        "axes.edgecolor": colours["line-strong"],
        "axes.spines.top": False,
        "axes.spines.right": False,
        "text.color": colours["text"],
        "axes.titlecolor": colours["text"],
        **soft,
    }


def draw_lines(axes: Any, figures: list[Figure], colours: dict[str, str]) -> None:
    """One line for each subject on logarithmic axes, with its name at its end."""
    lines = {
        subject: sorted((each.size, each.median) for each in figures if each.subject == subject)
        for subject in dict.fromkeys(each.subject for each in figures)
    }
    height = 0.0
    for subject, points in sorted(lines.items(), key=lambda line: line[1][-1][1]):
        is_ours = subject == OURS
        colour = colours["accent"] if is_ours else colours["line-strong"]
        axes.plot(*zip(*points, strict=True), marker="o", color=colour, linewidth=2.4 if is_ours else 1.2)
        height = max(points[-1][1], height * LABEL_DISTANCE)  # labels do not overlap
        axes.annotate(
            subject,
            (points[-1][0], height),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            color=colour if is_ours else colours["text-soft"],
            weight="bold" if is_ours else "normal",
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(x=0.04)
    right = max(each.size for each in figures)
    axes.set_xlim(right=right * (right / min(each.size for each in figures)) ** 0.45)
    formatter = importlib.import_module("matplotlib.ticker").FuncFormatter(lambda value, _: f"{value:,.10g}")
    axes.xaxis.set_major_formatter(formatter)
    axes.yaxis.set_major_formatter(formatter)


def draw_bars(axes: Any, figures: list[Figure], colours: dict[str, str]) -> None:
    """One bar for each subject, with its figure."""
    names = [each.subject for each in figures]
    medians = [each.median for each in figures]
    fills = [colours["accent"] if name == OURS else colours["line-strong"] for name in names]
    bars = axes.barh(names, medians, color=fills, height=0.6)
    axes.bar_label(bars, [amount(value) for value in medians], padding=4)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)


if __name__ == "__main__":
    write_pages()
