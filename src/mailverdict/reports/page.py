"""A report as one self-contained HTML page: every text escaped, no outside resource.

A page of its own has a small script that sorts and filters its tables; its Content-Security-Policy allows that script
and the style sheet by their hashes and nothing else. Inside a notebook there is no script.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from ..model.section import Section
from ..model.words import count_of, percent, show_directions
from ..theme import LABELS, badge, interval_bar, scoped, stylesheet, symbol
from .counts import Counts
from .facts import ReportFacts
from .sections import by_mark, sections_of
from .wording import days_of, limit_text, made_checks, people_text, title_of

SCOPE = ".mv-report.mv-report"  # twice, to come before the style sheet of JupyterLab
FEW = 12  # rows of a long table inside a notebook
# Of columns by kind, in page.css.
CLASS_OF = {
    "badge": "text",
    "share": "number",
    "change": "number",
    "bar": "gauge",
    "interval": "gauge",
}


class Markup(str):
    """HTML. Any other text is escaped where it becomes a part of an element."""

    __slots__ = ()


def element(tag: str, *parts: object, **attributes: object) -> Markup:
    """An element; its texts and the values of its attributes are escaped, here and nowhere else.

    >>> element("p", "a < b", element("b", "c"), class_="mv-soft", aria_label='"')
    '<p class="mv-soft" aria-label="&quot;">a &lt; b<b>c</b></p>'
    """
    inside = "".join(each if isinstance(each, Markup) else escape(each) for each in parts)
    names = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    given = "".join(f' {name}="{escape(value)}"' for name, value in names.items())
    return Markup(f"<{tag}{given}>{inside}</{tag}>")


def escape(text: object) -> str:
    return html.escape(show_directions(str(text)))


# --- the document -----------------------------------------------------------------------------------------------------


def render_page(facts: ReportFacts) -> str:
    """The whole document."""
    # The ground of the document is that of the report, in the scheme that the browser asks for.
    style = f"{page_style()}html{{color-scheme:light dark}}body{{margin:0}}body.mv-report{{min-height:100vh}}"
    script = read_file("page.js")
    policy = f"default-src 'none'; style-src '{digest(style)}'; script-src '{digest(script)}'"
    policy += "; base-uri 'none'; form-action 'none'"
    main = element("main", *content(facts))
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"{element('title', title_of(facts))}<style>{style}</style></head>"
        f'<body class="mv-report">{main}<script>{script}</script></body></html>'
    )


def render_section(facts: ReportFacts) -> str:
    """The same without the document and the script, for a notebook; of long tables the first rows."""
    return f"<style>{page_style()}</style>{element('div', *content(facts, most=FEW), class_='mv-report')}"


def digest(content: str) -> str:
    """The hash by which a Content-Security-Policy allows an inline element."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def page_style() -> str:
    return stylesheet(SCOPE) + scoped(read_file("page.css"), SCOPE)


def read_file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def content(facts: ReportFacts, most: int | None = None) -> list[Markup]:
    """The head and all sections; of each table at most so many rows."""
    parts = head(facts)
    for columns in sections_of(facts):
        shown = [[render(each, most) for each in column if not each.is_empty] for column in columns]
        filled = [column for column in shown if column]
        sides = [element("div", *column) for column in filled]
        parts += (
            filled[0]
            if len(filled) == 1
            else [element("div", *sides, class_="mv-sides")]
            if sides
            else []
        )
    return parts


# --- the head ---------------------------------------------------------------------------------------------------------


def head(facts: ReportFacts) -> list[Markup]:
    """The list, the share that can be mailed, and a picture of all rows."""
    counts, checks = facts.counts, made_checks(facts)
    known = (
        Markup(f"column {element('bdi', facts.column)}") if facts.name else "",
        count_of(counts.rows, "row"),
        count_of(counts.addresses, "distinct address", "distinct addresses"),
        f"check: {checks}" if checks else "",
    )
    days = (
        f"checked {days_of(counts.checked)}" if counts.checked else "",
        f"report of {facts.made_at:%Y-%m-%d %H:%M} UTC",
    )
    parts = [
        *filter(None, known),
        *(element("span", each, class_="mv-day") for each in days if each),
    ]
    dotted = [part for each in parts for part in (" · ", each)][1:]
    marked = by_mark(counts.buckets)
    said = [f"{people_text(counts)}, by the policy “{facts.policy.name}”."]
    if limit := limit_text(counts.validation_types):
        said.append(f" {limit}")
    if empty := counts.buckets["missing"]:
        said.append(f" {count_of(empty, 'cell is', 'cells are')} empty.")
    said.append(trend_line(facts))
    legend = [
        element(
            "li",
            *(Markup(symbol(name)), f" {LABELS[name]} ", element("b", f"{count:,}"), " "),
            element("span", f"({percent(count, counts.rows)})"),
        )
        for name, count in marked.items()
        if count or name != "unchecked"
    ]
    return [
        element("h1", title_of(facts)),
        element("p", *dotted, class_="mv-soft"),
        element(
            "div",
            element("p", f"{mailable_text(counts)} can be mailed", class_="mv-figure"),
            element("p", *said),
            stacked_bar(marked, "Rows by verdict", "mv-picture", 32),
            element("ul", *legend, class_="mv-legend", role="list"),
            class_="mv-hero",
        ),
    ]


def mailable_text(counts: Counts) -> str:
    """The share of all rows that can be mailed."""
    return percent(counts.actions["send"], counts.rows)


def trend_line(facts: ReportFacts) -> str:
    if facts.trend is None:
        return ""
    points = 100 * (facts.counts.mailable - facts.trend.counts.mailable)
    since = (
        f" of {days_of(facts.trend.counts.checked)}"
        if facts.trend.counts.checked
        else " (day not recorded)"
    )
    how = (
        "as many as"
        if abs(points) < 0.05
        else f"{abs(points):.1f} percentage points {'more' if points > 0 else 'less'} than"
    )
    return f" That is {how} in the earlier audit{since} ({mailable_text(facts.trend.counts)})."


# --- a section --------------------------------------------------------------------------------------------------------


def render(section: Section, most: int | None) -> Markup:
    """A section; of its table at most so many rows."""
    if section.is_line:
        line = "; ".join(f"{label}: {count:,}" for label, count in section.rows)
        return element("p", f"{section.title}. {line}.", class_="mv-soft")
    parts = [element("h2", section.title)]
    if section.said:
        parts.append(element("p", section.said))
    if section.rows:
        parts += table(section, section.rows[:most])
    if section.notes:
        # To be copied: no character of it is shown as another one.
        copied = Markup(html.escape(section.command))
        command = [Markup("<br>"), element("code", copied, class_="mv-command")] if copied else []
        parts.append(element("p", " ".join(section.notes), *command, class_="mv-soft"))
    return element("section", *parts)


def table(section: Section, rows: Sequence[Sequence[Any]]) -> list[Markup]:
    """A table that can be sorted."""
    *others, (_, last) = section.columns
    # A sentence in a column of its own is narrow and high, or makes the others so.
    columns = others if others and last == "words" else [*section.columns]
    kinds = [kind for _, kind in columns]
    classes = [f"mv-{CLASS_OF.get(kind, kind)}" for kind in kinds]
    heads = [
        element("th", label, scope="col", class_=each)
        for (label, _), each in zip(columns, classes, strict=True)
    ]
    body = [
        element(
            "tr",
            *map(cell_of, kinds, classes, row, [row[len(columns) :], *[()] * (len(columns) - 1)]),
        )
        for row in rows
    ]
    inside = (element("thead", element("tr", *heads)), element("tbody", *body))
    made = element("table", *inside, class_="mv-sort", aria_label=section.title)
    parts = [element("div", made, class_="mv-scroll")]
    if len(rows) < len(section.rows):
        parts.append(
            element("p", f"The first {len(rows)} of {len(section.rows):,}.", class_="mv-soft")
        )
    return parts


def cell_of(kind: str, class_: str, value: Any, below: Sequence[str]) -> Markup:
    """A cell, with what it is sorted by if that is not its text, and sentences below its text."""
    shown, key = SHOWN[kind](value) if kind in SHOWN else (value, None)
    parts = [shown, *(element("span", each, class_="mv-below") for each in below)]
    return (
        element("td", *parts, class_=class_)
        if key is None
        else element("td", *parts, class_=class_, data_sort=key)
    )


def meter(name: str, share: float) -> Markup:
    """A bar for one figure."""
    track = element("rect", class_="mv-track", width="100%", height=8)
    filled = element(
        "rect", class_=f"mv-{name}", width=f"{max(100 * share, 1) if share else 0:.2f}%", height=8
    )
    return element("svg", track, filled, class_="mv-small", height=8, aria_hidden="true")


def stacked_bar(counts: Mapping[str, int], label: str, class_: str, height: int) -> Markup:
    """One bar with a part for each verdict or state."""
    whole, at, parts = sum(counts.values()) or 1, 0.0, []
    for name, count in counts.items():
        width = 100 * count / whole
        if count:
            hint = element("title", f"{LABELS[name]}: {count:,}")
            place = {"x": f"{at:.2f}%", "width": f"{width:.2f}%", "height": "100%"}
            parts.append(element("rect", hint, class_=f"mv-{name}", **place))
        at += width
    said = ", ".join(f"{LABELS[name]} {count:,}" for name, count in counts.items() if count)
    return element(
        "svg", *parts, class_=class_, height=height, role="img", aria_label=f"{label}: {said}"
    )


# What a cell of each kind shows, and what it is sorted by; a text of ours or of others is shown as it is.
SHOWN: Mapping[str, Any] = {
    "badge": lambda name: (Markup(badge(name)), None),
    "number": lambda count: (f"{count:,}", count),
    "change": lambda count: (f"{count:+,}", count),
    "share": lambda share: (percent(share, 1), f"{share:.6f}"),
    "bar": lambda bar: (meter(*bar), f"{bar[1]:.6f}"),
    "interval": lambda cell: (Markup(interval_bar(*cell)), f"{cell[0]:.6f}"),
    "bars": lambda counts: (
        stacked_bar(counts, "Verdicts", "mv-small", 12),
        f"{counts['valid'] / max(sum(counts.values()), 1):.6f}",
    ),
}
