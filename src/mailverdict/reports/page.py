"""A report as one self-contained HTML page: every text escaped, no outside resource.

A page of its own has a small script that sorts and filters its tables; its Content-Security-Policy
allows that script and the style sheet by their hashes and nothing else. Inside a notebook there is
no script.
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
    texts = [f"<{tag}"]
    for name, value in attributes.items():
        attribute = name.rstrip("_").replace("_", "-")
        texts.append(f' {attribute}="{escape(value)}"')
    texts.append(">")
    for part in parts:
        texts.append(part if isinstance(part, Markup) else escape(part))
    texts.append(f"</{tag}>")
    return Markup("".join(texts))


def escape(text: object) -> str:
    return html.escape(show_directions(str(text)))


# --- the document ---------------------------------------------------------------------------------


def render_page(facts: ReportFacts) -> str:
    """The whole document."""
    # The ground of the document is that of the report, in the scheme that the browser asks for.
    style = page_style()
    style += "html{color-scheme:light dark}body{margin:0}body.mv-report{min-height:100vh}"
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
    """The same for a notebook: no document, no script, and the first rows of long tables."""
    inside = element("div", *content(facts, most=FEW), class_="mv-report")
    return f"<style>{page_style()}</style>{inside}"


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
        filled = []
        for column in columns:
            shown = [render(section, most) for section in column if not section.is_empty]
            if shown:
                filled.append(shown)
        if len(filled) == 1:
            parts += filled[0]
        elif filled:
            sides = [element("div", *column) for column in filled]
            parts.append(element("div", *sides, class_="mv-sides"))
    return parts


# --- the head -------------------------------------------------------------------------------------


def head(facts: ReportFacts) -> list[Markup]:
    """The list, the share that can be mailed, and a picture of all rows."""
    counts = facts.counts
    marked = by_mark(counts.lines)
    sentences = [f"{people_text(counts)}, by the policy “{facts.policy.name}”."]
    limit = limit_text(counts.validation_types)
    if limit:
        sentences.append(f" {limit}")
    empty = counts.buckets["missing"]
    if empty:
        sentences.append(f" {count_of(empty, 'cell is', 'cells are')} empty.")
    sentences.append(trend_line(facts))
    return [
        element("h1", title_of(facts)),
        element("p", *list_and_days(facts), class_="mv-soft"),
        element(
            "div",
            element("p", f"{mailable_text(counts)} can be mailed", class_="mv-figure"),
            element("p", *sentences),
            stacked_bar(marked, "Rows by verdict", "mv-picture", 32),
            element("ul", *legend(marked, counts.rows), class_="mv-legend", role="list"),
            class_="mv-hero",
        ),
    ]


def list_and_days(facts: ReportFacts) -> list[str]:
    """The line below the title: column, size, check and days, with dots between them."""
    counts = facts.counts
    parts: list[str] = []
    if facts.name:
        parts.append(Markup(f"column {element('bdi', facts.column)}"))
    parts.append(count_of(counts.rows, "row"))
    parts.append(count_of(counts.addresses, "distinct address", "distinct addresses"))
    checks = made_checks(facts)
    if checks:
        parts.append(f"check: {checks}")
    if counts.checked:
        parts.append(element("span", f"checked {days_of(counts.checked)}", class_="mv-day"))
    made_at = f"report of {facts.made_at:%Y-%m-%d %H:%M} UTC"
    parts.append(element("span", made_at, class_="mv-day"))
    dotted = [parts[0]]
    for part in parts[1:]:
        dotted += [" · ", part]
    return dotted


def legend(marked: Mapping[str, int], rows: int) -> list[Markup]:
    """Each verdict with its sign, its rows and their share."""
    items = []
    for name, count in marked.items():
        if not count and name == "unchecked":
            continue
        mark = Markup(symbol(name))
        number = element("b", f"{count:,}")
        share = element("span", f"({percent(count, rows)})")
        items.append(element("li", mark, f" {LABELS[name]} ", number, " ", share))
    return items


def mailable_text(counts: Counts) -> str:
    """The share of all rows that can be mailed."""
    return percent(counts.actions["send"], counts.rows)


def trend_line(facts: ReportFacts) -> str:
    if facts.trend is None:
        return ""
    earlier = facts.trend.counts
    since = " (day not recorded)"
    if earlier.checked:
        since = f" of {days_of(earlier.checked)}"
    points = 100 * (facts.counts.mailable - earlier.mailable)
    if abs(points) < 0.05:
        how = "as many as"
    elif points > 0:
        how = f"{points:.1f} percentage points more than"
    else:
        how = f"{-points:.1f} percentage points less than"
    return f" That is {how} in the earlier audit{since} ({mailable_text(earlier)})."


# --- a section ------------------------------------------------------------------------------------


def render(section: Section, most: int | None) -> Markup:
    """A section; of its table at most so many rows."""
    if section.is_line:
        counts = [f"{label}: {count:,}" for label, count in section.rows]
        return element("p", f"{section.title}. {'; '.join(counts)}.", class_="mv-soft")
    parts = [element("h2", section.title)]
    if section.said:
        parts.append(element("p", section.said))
    if section.rows:
        parts += table(section, section.rows[:most])
    if section.notes:
        command = []
        if section.command:
            # To be copied: no character of it is shown as another one.
            copied = Markup(html.escape(section.command))
            command = [Markup("<br>"), element("code", copied, class_="mv-command")]
        parts.append(element("p", " ".join(section.notes), *command, class_="mv-soft"))
    return element("section", *parts)


def table(section: Section, rows: Sequence[Sequence[Any]]) -> list[Markup]:
    """A table that can be sorted."""
    columns = [*section.columns]
    # A sentence in a column of its own is narrow and high, or makes the others so: it stands below
    # the first cell.
    has_sentence = len(columns) > 1 and columns[-1][1] == "words"
    if has_sentence:
        columns.pop()
    heads = []
    for label, kind in columns:
        heads.append(element("th", label, scope="col", class_=class_of(kind)))
    lines = []
    for row in rows:
        below = row[len(columns) :]
        cells = []
        for (_, kind), value in zip(columns, row, strict=False):
            cells.append(cell_of(kind, value, below))
            below = ()
        lines.append(element("tr", *cells))
    head = element("thead", element("tr", *heads))
    body = element("tbody", *lines)
    whole = element("table", head, body, class_="mv-sort", aria_label=section.title)
    parts = [element("div", whole, class_="mv-scroll")]
    if len(rows) < len(section.rows):
        first = f"The first {len(rows)} of {len(section.rows):,}."
        parts.append(element("p", first, class_="mv-soft"))
    return parts


def class_of(kind: str) -> str:
    return f"mv-{CLASS_OF.get(kind, kind)}"


def cell_of(kind: str, value: Any, below: Sequence[str]) -> Markup:
    """A cell, with what it is sorted by if that is not its text, and sentences below its text."""
    shown, key = value_of(kind, value)
    attributes = {"class_": class_of(kind)}
    if key is not None:
        attributes["data_sort"] = key
    sentences = [element("span", sentence, class_="mv-below") for sentence in below]
    return element("td", shown, *sentences, **attributes)


def value_of(kind: str, value: Any) -> tuple[Any, Any]:
    """What a cell of a kind shows, and what it is sorted by; None if by its text."""
    if kind == "badge":
        return Markup(badge(value)), None
    if kind == "number":
        return f"{value:,}", value
    if kind == "change":
        return f"{value:+,}", value
    if kind == "share":
        return percent(value, 1), f"{value:.6f}"
    if kind == "bar":
        name, share = value
        return meter(name, share), f"{share:.6f}"
    if kind == "interval":
        return Markup(interval_bar(*value)), f"{value[0]:.6f}"
    if kind == "bars":
        valid = value["valid"] / max(sum(value.values()), 1)
        return stacked_bar(value, "Verdicts", "mv-small", 12), f"{valid:.6f}"
    return value, None


def meter(name: str, share: float) -> Markup:
    """A bar for one figure."""
    width = 0.0
    if share:
        width = max(100 * share, 1)
    track = element("rect", class_="mv-track", width="100%", height=8)
    filled = element("rect", class_=f"mv-{name}", width=f"{width:.2f}%", height=8)
    return element("svg", track, filled, class_="mv-small", height=8, aria_hidden="true")


def stacked_bar(counts: Mapping[str, int], label: str, class_: str, height: int) -> Markup:
    """One bar with a part for each verdict or state."""
    whole = sum(counts.values()) or 1
    left = 0.0
    parts = []
    words = []
    for name, count in counts.items():
        if not count:
            continue
        width = 100 * count / whole
        place = {"x": f"{left:.2f}%", "width": f"{width:.2f}%", "height": "100%"}
        hint = element("title", f"{LABELS[name]}: {count:,}")
        parts.append(element("rect", hint, class_=f"mv-{name}", **place))
        words.append(f"{LABELS[name]} {count:,}")
        left += width
    text = f"{label}: {', '.join(words)}"
    return element("svg", *parts, class_=class_, height=height, role="img", aria_label=text)
