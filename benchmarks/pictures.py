"""SVG pictures of `results.json` for light and dark pages, in the colours of `mailverdict.theme`.

Each file has the figures that it shows as its description, for screen readers and for the test that compares it.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mailverdict.theme import COLOURS

from .figures import OURS, Figure, Results, amount, slope

__all__ = ["draw_pictures", "pictures_of"]

WIDTH, BAR_HEIGHT, LINES_HEIGHT = 8.0, 0.3, 4.0  # inches
LABEL_DISTANCE = 14.0  # points between the names of two lines, at least


@dataclass(frozen=True)
class Picture:
    """One file for each scheme.

    Attributes
    ----------
    parts : dict
        Tasks by the heading of their bars; of lines there is one.
    size : str
        What the sizes count: the picture has lines. Empty: it has bars.
    """

    name: str
    title: str
    parts: dict[str, str]
    unit: str
    size: str = ""


SMTP = {
    f"PIPELINING {where}; {delays}": f"mailboxes by smtp: {punished}, PIPELINING {where}"
    for punished, delays in (
        ("refusals punished", "replies after many unknown users are delayed"),
        ("no punishment", "no delays"),
    )
    for where in ("everywhere", "at 70 %")
}
PICTURES = (
    Picture("column", "A column by regex", {"": "a column by regex"}, "seconds, logarithmic", "rows, logarithmic"),
    Picture(
        "lookups",
        "MX look-ups, each answer after 20 ms",
        {"": "MX look-ups, answers after 20 ms"},
        "look-ups a second, logarithmic",
        "domains, logarithmic",
    ),
    Picture("smtp", "10,000 mailboxes at 200 mail servers by smtp, each reply after 25 ms", SMTP, "seconds"),
    Picture(
        "service", "Single checks by regex over HTTP", {"": "single checks by regex over HTTP"}, "requests a second"
    ),
    Picture("files", "CSV to CSV by regex, 1,000,000 rows", {"": "CSV to CSV by regex"}, "seconds"),
)


def figures_of(picture: Picture, results: Results) -> list[tuple[str, list[Figure]]]:
    """Headings and figures that the picture shows: all sizes for lines, else the largest."""
    parts = []
    for heading, task in picture.parts.items():
        found = [each for each in results.figures if each.task == task]
        largest = max((each.size for each in found), default=0)
        parts.append((heading, [each for each in found if picture.size or each.size == largest]))
    return [(heading, figures) for heading, figures in parts if figures]


def describe(picture: Picture, results: Results) -> str:
    """All figures of a picture as text."""
    lines = [
        f"{each.subject}{f', {each.size:,}' if each.size else ''}: {amount(each.median)} {each.unit}"
        for _, figures in figures_of(picture, results)
        for each in figures
    ]
    return "; ".join(lines)


def pictures_of(results: Results) -> dict[str, str]:
    """The description of each file that `draw_pictures` writes."""
    found = {picture.name: describe(picture, results) for picture in PICTURES}
    return {f"{name}-{scheme}.svg": text for name, text in found.items() if text for scheme in ("light", "dark")}


def draw_pictures(results: Results, folder: Path) -> None:
    """Write all pictures whose tasks were measured."""
    folder.mkdir(parents=True, exist_ok=True)
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("svg")
    for picture in PICTURES:
        if parts := figures_of(picture, results):
            for scheme in ("light", "dark"):
                draw(picture, parts, describe(picture, results), scheme, folder / f"{picture.name}-{scheme}.svg")


def draw(picture: Picture, parts: Sequence[tuple[str, list[Figure]]], text: str, scheme: str, path: Path) -> None:
    """Write one file."""
    plt = importlib.import_module("matplotlib.pyplot")
    colours = {key: getattr(colour, scheme) for key, colour in COLOURS.items()}
    bars = [len(figures) for _, figures in parts]
    heights = [LINES_HEIGHT] if picture.size else [0.45 + BAR_HEIGHT * count for count in bars]
    with plt.rc_context(style(colours)):
        shape = {"sharex": True, "height_ratios": heights, "squeeze": False}
        drawing, axes = plt.subplots(len(heights), 1, figsize=(WIDTH, sum(heights) + 0.6), **shape)
        for place, (heading, figures) in zip(axes[:, 0], parts, strict=True):
            if picture.size:
                draw_lines(place, figures, colours)
                place.set(xlabel=picture.size, ylabel=picture.unit)
            else:
                draw_bars(place, figures, colours)
                place.set_title(heading, loc="left", fontsize="medium", color=colours["text-soft"])
        drawing.suptitle(picture.title if picture.size else f"{picture.title}: {picture.unit}", x=0.01, ha="left")
        drawing.savefig(path, metadata={"Date": None, "Title": picture.title, "Description": text})
        plt.close(drawing)
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


def draw_lines(axes: Any, figures: Sequence[Figure], colours: dict[str, str]) -> None:
    """One line for each subject, with its name and its slope at its end."""
    names = dict.fromkeys(each.subject for each in figures)
    lines = {name: sorted((f for f in figures if f.subject == name), key=lambda each: each.size) for name in names}
    right = max(each.size for each in figures)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for subject, line in lines.items():
        is_ours = subject == OURS
        colour = colours["accent"] if is_ours else colours["line-strong"]
        sizes, medians = [each.size for each in line], [each.median for each in line]
        axes.plot(
            sizes, medians, marker="o", color=colour, linewidth=2.4 if is_ours else 1.2, zorder=3 if is_ours else 2
        )
    axes.margins(x=0.03)
    low, high = axes.get_ylim()
    points = axes.get_window_extent().height * 72 / axes.figure.dpi
    height = -LABEL_DISTANCE
    for subject, line in sorted(lines.items(), key=lambda each: each[1][-1].median):
        is_ours, last = subject == OURS, line[-1]
        steepness = f"slope {slope(*line[-2:]):.2f}" if len(line) > 1 else ""
        form: dict[str, Any] = {
            "textcoords": "offset points",
            "color": colours["accent"] if is_ours else colours["text-soft"],
            "weight": "bold" if is_ours else "normal",
        }
        if last.size < right:  # other lines go on to the right of it
            text = f"{subject}\n{steepness}"
            axes.annotate(text, (last.size, last.median), xytext=(4, 6), ha="right", va="bottom", **form)
            continue
        place = points * axes.transScale.transform((1, last.median))[1]
        bottom, top = (axes.transScale.transform((1, edge))[1] for edge in (low, high))
        place = (place - points * bottom) / (top - bottom)
        height = max(place, height + LABEL_DISTANCE)  # names do not overlap
        text = f"{subject}, {steepness}"
        axes.annotate(text, (last.size, last.median), xytext=(9, height - place), va="center", **form)
    ticker = importlib.import_module("matplotlib.ticker")
    formatter = ticker.FuncFormatter(lambda value, _: f"{value:,.10g}")
    axes.xaxis.set_major_formatter(formatter)
    axes.yaxis.set_major_formatter(formatter)
    if high / low < 300:
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.set_xticks(sorted({each.size for each in figures}))
    axes.minorticks_off()
    axes.grid(color=colours["line"], linewidth=0.6)
    axes.set_axisbelow(True)


def draw_bars(axes: Any, figures: Sequence[Figure], colours: dict[str, str]) -> None:
    """One bar for each subject, with its figure."""
    names = [each.subject for each in figures]
    medians = [each.median for each in figures]
    fills = [colours["accent"] if name.startswith(OURS) else colours["line-strong"] for name in names]
    bars = axes.barh(names, medians, color=fills, height=0.6)
    axes.bar_label(bars, [amount(value) for value in medians], padding=4)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xticks([])
    axes.tick_params(left=False)
    axes.spines["bottom"].set_visible(False)
