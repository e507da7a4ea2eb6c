"""`plot`: how many rows have each verdict, and why the others are not valid.

The first part is one bar of all rows, with a legend in words; the second a bar for each reason::

    ✓ Valid 2,985 (74.6%)   ✗ Invalid 412 (10.3%)   ? Unknown 603 (15.1%)

    Domain receives no mail        ▇▇▇▇▇▇▇▇▇▇▇ 412
    No answer to the check         ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇ 603
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtraError
from ..frames.alike import Alike
from ..frames.results import Results
from ..model.words import LONGEST_LABEL, count_of, printable_text, reason_label
from ..theme import COLOURS, LABELS, MARK_OF, MARKS
from .counts import Counts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 8  # reasons shown
WIDTH, LINE = 7.5, 0.3  # inches: of the picture, and of one reason


def plot(
    out: Any, column: Hashable | None = None, *, prefix: str | None = None, dark: bool = False
) -> Figure:
    """Draw a verified column: rows by verdict, and why rows are not valid.

    For notebooks, and files by ``savefig``.

    Parameters
    ----------
    out : DataFrame
        What `verify` returned: a pandas, Polars or Arrow frame.
    column, prefix : optional
        The column that was verified and its prefix; by default the only one.
    dark : bool, default False
        Light on dark, for a dark page.

    Returns
    -------
    matplotlib.figure.Figure
        A notebook shows it; ``plot(out).savefig("verdicts.png")`` writes it.

    Raises
    ------
    ColumnError
        If the frame has no such column, or it has not been verified.
    MissingExtraError
        If matplotlib is not installed: ``pip install 'mailverdict[widgets]'``.

    Examples
    --------
    >>> import mailverdict as mv
    >>> import pandas as pd
    >>> df = pd.DataFrame({"email": ["ada@example.org", "bob@example.org", "no at sign"]})
    >>> picture = mv.plot(mv.verify(df, "email", validation_type="regex"))
    >>> picture.get_axes()[0].get_title(loc="left")
    '3 rows of email by verdict'
    """
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415 - an optional extra
    except ImportError as exc:
        raise MissingExtraError("a picture", "widgets") from exc
    rows = Results(out, column, prefix)
    counts = Counts()
    counts.add(rows)
    reasons = counts.by_key(bucket_and_reason)
    heights = [1.5]
    if reasons:
        heights.append(0.5 + LINE * min(len(reasons), MOST))
    surface = shade("surface", dark=dark)
    size = (WIDTH, sum(heights))
    figure = plt.figure(figsize=size, layout="constrained", facecolor=surface)
    plt.close(figure)  # or a notebook would show it twice
    parts = figure.subfigures(len(heights), height_ratios=heights, squeeze=False, facecolor="none")
    draw_verdicts(parts[0][0].subplots(), counts, str(rows.column), dark=dark)
    if reasons:
        draw_reasons(parts[1][0].subplots(), reasons, dark=dark)
    return figure


def bucket_and_reason(alike: Alike) -> tuple[str, str] | None:
    """What rows that have a reason are counted by."""
    if not alike.reason:
        return None
    return alike.bucket, alike.reason


def shade(name: str, *, dark: bool) -> str:
    if dark:
        return COLOURS[name].dark
    return COLOURS[name].light


def draw_verdicts(axes: Axes, counts: Counts, column: str, *, dark: bool) -> None:
    """One bar of all rows; below it each verdict with its number, in words and with its sign."""
    edge = shade("surface", dark=dark)
    left = 0
    # Cells with several addresses are counted by themselves, as in `summary`: nobody was asked.
    for name, count in counts.lines.items():
        if not count:
            continue
        mark = MARK_OF[name]
        share = f"{count / counts.rows:.1%}"
        label = f"{MARKS[mark].glyph} {LABELS[name]} {count:,} ({share})"
        colour = shade(mark, dark=dark)
        axes.barh(0, count, left=left, color=colour, edgecolor=edge, label=label)
        left += count
    title = f"{count_of(counts.rows, 'row')} of {printable_text(column, LONGEST_LABEL)} by verdict"
    frame(axes, title, dark=dark)
    axes.set_xlim(0, max(left, 1))
    axes.set_yticks([])
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(
        handles,
        labels,
        loc="upper left",
        bbox_to_anchor=(0, 0),
        borderaxespad=0.4,
        ncols=3,
        frameon=False,
        handlelength=1,
        labelcolor=shade("text", dark=dark),
    )


def draw_reasons(axes: Axes, reasons: Counter[tuple[str, str]], *, dark: bool) -> None:
    """A bar for each of the most frequent reasons, in the colour of its verdict."""
    most = reasons.most_common(MOST)
    names = []
    numbers = []
    colours = []
    for (bucket, reason), count in most:
        names.append(reason_label(reason))
        numbers.append(count)
        colours.append(shade(MARK_OF[bucket], dark=dark))
    bars = axes.barh(range(len(names)), numbers, color=colours)
    labels = axes.bar_label(bars, [f"{number:,}" for number in numbers], padding=4)
    for label in labels:
        label.set_color(shade("text", dark=dark))
    title = f"Why {count_of(reasons.total(), 'row is', 'rows are')} not valid"
    if len(reasons) > MOST:
        title += f": the {MOST} most frequent reasons"
    frame(axes, title, dark=dark)
    axes.set_yticks(range(len(names)), names, parse_math=False)  # a text of a service may hold "$"
    axes.invert_yaxis()
    axes.margins(x=0.1)


def frame(axes: Axes, title: str, *, dark: bool) -> None:
    """Title and colours; no axis of numbers, since each bar has its own."""
    axes.set_facecolor(shade("surface", dark=dark))
    axes.set_title(
        title,
        loc="left",
        color=shade("text", dark=dark),
        fontsize=11,
        fontweight="bold",
        parse_math=False,
    )
    axes.spines[:].set_visible(False)
    axes.tick_params(axis="x", bottom=False, labelbottom=False)
    axes.tick_params(axis="y", length=0, colors=shade("text", dark=dark))
