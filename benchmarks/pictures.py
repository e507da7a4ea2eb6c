"""SVG pictures of tasks: bars of one size, or lines over several sizes, in the colours of `mailverdict.theme`.

A picture follows the scheme of the screen, light or dark, and needs nothing beside it.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence

from mailverdict.theme import COLOURS

from .figures import OURS, Figure, amount

WIDTH, TOP, ROW, LETTER = 800, 40, 26, 7.2  # pixels; of a line of text, and of a letter at most
PLOT_HEIGHT = 330
RULES = """\
text {{ font: 13px sans-serif; fill: {text}; }}
rect {{ fill: {line_strong}; }}
.paper {{ fill: {surface}; }}
.soft {{ fill: {text_soft}; }}
.ours {{ fill: {accent}; font-weight: bold; }}
.end {{ text-anchor: end; }}
.middle {{ text-anchor: middle; }}
.grid {{ stroke: {line}; }}
.spread {{ stroke: {text}; }}
polyline {{ fill: none; stroke: {line_strong}; stroke-width: 1.5; }}
polyline.ours {{ fill: none; stroke: {accent}; stroke-width: 2.5; }}
"""


def style() -> str:
    """Rules for a light screen, and for a dark one."""
    return f"{rules('light')}@media (prefers-color-scheme: dark) {{\n{rules('dark')}}}\n"


def rules(scheme: str) -> str:
    colours = {name.replace("-", "_"): getattr(each, scheme) for name, each in COLOURS.items()}
    return RULES.format_map(colours)


def draw_task(figures: Sequence[Figure]) -> str | None:
    """The picture of all figures of one task; None: they compare nothing."""
    figures = [each for each in figures if each.values]  # without those who failed
    if len({each.subject for each in figures}) < 2:
        return None
    sizes = sorted({each.size for each in figures})
    title = f"{figures[0].task[0].upper()}{figures[0].task[1:]}"
    if len(sizes) > 2 and min(each.median for each in figures) <= 0:
        return None  # a logarithmic axis has no zero
    if len(sizes) > 2:
        height, shapes = PLOT_HEIGHT, draw_lines(figures, sizes)
    else:
        largest = [each for each in figures if each.size == sizes[-1]]
        height, shapes = TOP + ROW * len(largest) + 8, draw_bars(largest)
        title += f", {sizes[-1]:,}" if sizes[-1] else ""
    title += f": {figures[0].unit}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">'
    paper = f'<rect class="paper" width="{WIDTH}" height="{height}"/>'
    parts = [
        head,
        f"<title>{html.escape(title)}</title>",
        f"<style>\n{style()}</style>",
        paper,
        text(8, 22, title),
    ]
    return "\n".join([*parts, *shapes, "</svg>", ""])


def draw_bars(figures: Sequence[Figure]) -> Iterator[str]:
    """One bar for each subject up to its median, and a line from its least to its highest value."""
    left = LETTER * max(len(each.subject) for each in figures) + 16
    scale = (WIDTH - left - 80) / (max(max(each.values) for each in figures) or 1)
    for number, each in enumerate(figures):
        y, role = TOP + ROW * number, role_of(each)
        low, high = left + scale * min(each.values), left + scale * max(each.values)
        yield text(left - 8, y + 17, each.subject, f"end {role}")
        yield f'<rect class="{role}" x="{left:.1f}" y="{y + 4}" width="{scale * each.median:.1f}" height="18"/>'
        yield line(low, y + 13, high, y + 13, "spread")
        yield text(high + 8, y + 17, amount(each.median), role)


def draw_lines(figures: Sequence[Figure], sizes: Sequence[int]) -> Iterator[str]:
    """One line for each subject, with its name at its end, on logarithmic axes."""
    left, right = 76, WIDTH - LETTER * max(len(each.subject) for each in figures) - 28
    bottom = PLOT_HEIGHT - 32
    low, high = min(each.median for each in figures), max(each.median for each in figures)

    def x_of(size: float) -> float:
        return left + (right - left) * math.log(size / sizes[0]) / math.log(sizes[-1] / sizes[0])

    def y_of(value: float) -> float:
        return bottom - (bottom - TOP - 8) * math.log(value / low) / math.log(high / low)

    for size in sizes:
        yield line(x_of(size), TOP, x_of(size), bottom + 6, "grid")
        yield text(x_of(size), bottom + 22, f"{size:,}", "soft middle")
    for value in ticks(low, high):
        yield line(left - 6, y_of(value), right, y_of(value), "grid")
        yield text(left - 10, y_of(value) + 4, f"{value:,.10g}", "soft end")
    subjects = dict.fromkeys(each.subject for each in figures)
    curves = [
        sorted((f for f in figures if f.subject == name), key=lambda f: f.size) for name in subjects
    ]
    place = math.inf
    for curve in sorted(curves, key=lambda curve: y_of(curve[-1].median), reverse=True):
        points = [(x_of(each.size), y_of(each.median)) for each in curve]
        place = min(points[-1][1], place - 16)  # names do not overlap
        yield line(*points[-1], right + 10, place, "grid")
        yield f'<polyline class="{role_of(curve[0])}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'
        yield text(right + 14, place + 4, curve[0].subject, role_of(curve[0]))


def ticks(low: float, high: float) -> list[float]:
    """Round values between two; 1, 2 and 5 if they are near each other."""
    steps = (1, 2, 5) if high / low < 100 else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [
        step * 10.0**power
        for power in powers
        for step in steps
        if low <= step * 10.0**power <= high
    ]


def role_of(figure: Figure) -> str:
    return "ours" if figure.subject.startswith(OURS) else "other"


def text(x: float, y: float, words: str, role: str = "") -> str:
    return f'<text class="{role}" x="{x:.1f}" y="{y:.1f}">{html.escape(words)}</text>'


def line(x: float, y: float, to_x: float, to_y: float, role: str) -> str:
    return f'<line class="{role}" x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"/>'
