"""Colours, shapes, type and spacing of everything that is shown.

That is audit page, report, service page and documentation.

Style sheets use the CSS custom properties `--mv-...` that `stylesheet` defines, and no other
colours. A light and a dark scheme follow the browser (`prefers-color-scheme`) or the page around
(JupyterLab, VS Code, mkdocs-material); print is light. A verdict is never shown by colour alone:
each has a word and a shape (WCAG 2.2, 1.4.1). `tests/test_theme.py` measures contrast, and the
distance of the verdict colours for colour-blind readers.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Colour:
    """One colour in both schemes, as ``#rrggbb``."""

    light: str
    dark: str


# By the name of the custom property without `--mv-`. For each verdict: the colour of bars and
# shapes (3:1 on every surface), the same for text (`-text`, 4.5:1) and a background for badges
# (`-soft`).
COLOURS: Mapping[str, Colour] = {
    "page": Colour("#f5f7f9", "#12161b"),  # behind everything
    "surface": Colour("#ffffff", "#1b2027"),  # cards, tables, fields
    "sunken": Colour("#e9edf1", "#2a313b"),  # tracks of bars, heads of tables, code
    "text": Colour("#1b2430", "#e8edf3"),
    "text-soft": Colour("#4f5b69", "#a9b4c1"),  # second lines, labels
    # Between rows and around cards; not needed to understand a page.
    "line": Colour("#d5dbe2", "#39434f"),
    "line-strong": Colour("#76828f", "#8592a1"),  # around fields and buttons, 3:1
    "accent": Colour("#0f5cad", "#82b6ff"),  # links, the primary button, the chosen step
    "on-accent": Colour("#ffffff", "#0d1522"),
    "accent-soft": Colour("#e3edf8", "#21354f"),  # behind what is chosen
    "focus": Colour("#0f5cad", "#82b6ff"),
    "valid": Colour("#178a72", "#7be8c4"),
    "valid-text": Colour("#0b6350", "#7be8c4"),
    "valid-soft": Colour("#e0f3ee", "#173a33"),
    "risky": Colour("#b96f08", "#f3b53d"),
    "risky-text": Colour("#834a00", "#f3b53d"),
    "risky-soft": Colour("#fbeed8", "#43341a"),
    "invalid": Colour("#a3132b", "#df4f63"),
    "invalid-text": Colour("#a3132b", "#ff98a4"),
    "invalid-soft": Colour("#f9e3e6", "#4a2129"),
    "unknown": Colour("#7460c4", "#8a80e6"),
    "unknown-text": Colour("#5844a8", "#b6aefa"),
    "unknown-soft": Colour("#ebe8f8", "#2d2b52"),
    "unchecked": Colour("#4b5661", "#a7b0ba"),
    "unchecked-text": Colour("#4b5661", "#b8c0c9"),
    "unchecked-soft": Colour("#e7eaed", "#323a44"),
}

# The type scale and the spacing, in pixels: the host page decides what `rem` is, and hosts differ.
SIZES: Mapping[str, str] = {
    **{f"space-{step}": f"{4 * step}px" for step in (1, 2, 3, 4, 5, 6, 8, 10, 12)},
    **{
        f"font-{name}": f"{size}px"
        for name, size in (("xs", 12), ("s", 13), ("m", 15), ("l", 18), ("xl", 24))
    },
    "font-figure": "44px",  # the one figure that a page is about
    "radius": "8px",
    "radius-small": "4px",
    "font": 'system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif',
    "font-code": "ui-monospace,SFMono-Regular,Menlo,Consolas,monospace",
}


@dataclass(frozen=True)
class Mark:
    """How one verdict is shown beside its colour.

    `glyph` is one character for plain text. `shape` and `sign` are SVG paths in a box of 16 by 16:
    the shape is filled, the sign is a line on it in the colour of the surface. A shape of the empty
    text is drawn as an open ring.
    """

    label: str
    glyph: str
    shape: str
    sign: str


MARKS: Mapping[str, Mark] = {
    "valid": Mark("Valid", "✓", "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1z", "M4.7 8.3 7 10.6l4.3-5"),
    "risky": Mark("Risky", "▲", "M8 1.1 15.6 14.6H.4z", "M8 6.2v4M8 12.3v.2"),
    "invalid": Mark(
        "Invalid", "✗", "M5 1h6l4 4v6l-4 4H5l-4-4V5z", "m5.4 5.4 5.2 5.2m0-5.2-5.2 5.2"
    ),
    "unknown": Mark(
        "Unknown",
        "?",
        "M8 .3 15.7 8 8 15.7.3 8z",
        "M6.2 6.4a1.8 1.8 0 1 1 2.7 1.6c-.6.35-.9.7-.9 1.3M8 11.4v.2",
    ),
    "unchecked": Mark("Not checked", "○", "", ""),
}
# What has no colour of its own: the actions, the states of rows without a verdict, and cells with
# several addresses, about which nobody was asked.
MARK_OF: Mapping[str, str] = {
    **{name: name for name in MARKS},
    "send": "valid",
    "review": "risky",
    "retry": "unknown",
    "drop": "invalid",
    "error": "unchecked",
    "pending": "unchecked",
    "missing": "unchecked",
    "several_addresses": "unchecked",
}
LABELS: Mapping[str, str] = {
    **{name: mark.label for name, mark in MARKS.items()},
    "send": "Send list",
    "review": "To review",
    "retry": "Ask again",
    "drop": "Remove",
    "error": "Technical error",
    "pending": "Not checked yet",
    "missing": "Empty cell",
    "several_addresses": "Several addresses in a cell",
}

LIGHT_PAGES = '[data-jp-theme-light="true"],[data-md-color-scheme="default"],.vscode-light'
DARK_PAGES = '[data-jp-theme-light="false"],[data-md-color-scheme="slate"],.vscode-dark'
# Elements that more than one page has. `S` stands for the scope, `.mv-NAME` for a verdict or
# action.
SHARED = """
S .mv-symbol{display:inline-block;width:1em;height:1em;flex:none;vertical-align:-.125em;fill:var(--mv-key);stroke:none}
S .mv-symbol .mv-sign{fill:none;stroke:var(--mv-surface);stroke-width:2;stroke-linecap:round;stroke-linejoin:round}
S .mv-symbol .mv-ring{fill:none;stroke:var(--mv-key);stroke-width:2}
S .mv-badge{display:inline-flex;align-items:center;gap:var(--mv-space-1);padding:0 var(--mv-space-2) 0 6px;
border-radius:12px;background:var(--mv-key-soft);color:var(--mv-key-text);font-size:var(--mv-font-s);font-weight:600;
line-height:24px;white-space:nowrap}
S .mv-stack{display:flex;gap:2px;overflow:hidden;border-radius:var(--mv-radius-small)}
S .mv-stack>*{display:block;min-width:2px;background:var(--mv-key)}
S .mv-meter{display:block;height:8px;border-radius:var(--mv-radius-small);background:var(--mv-sunken);overflow:hidden}
S .mv-meter>*{display:block;height:100%;background:var(--mv-key,var(--mv-accent))}
S .mv-interval{display:block;width:100%;min-width:120px}
S .mv-interval .mv-track{fill:var(--mv-sunken)}
S .mv-interval .mv-part-of{fill:var(--mv-invalid)}
S .mv-interval .mv-whisker{stroke:var(--mv-text);stroke-width:1.5}
S .mv-interval .mv-others{stroke:var(--mv-text-soft);stroke-width:2;stroke-dasharray:3 2}
S :focus-visible{outline:2px solid var(--mv-focus);outline-offset:2px}
@media print{S .mv-symbol,S .mv-badge,S .mv-stack>*,S .mv-meter,S .mv-meter>*{print-color-adjust:exact;
-webkit-print-color-adjust:exact}}
"""


# The styles of what `_repr_html_` returns. Its class is named twice to have precedence over the
# rules of JupyterLab.
NOTEBOOK = ".mv-repr.mv-repr"
NOTEBOOK_CSS = """
S {font:var(--mv-font-s)/1.5 var(--mv-font);color:var(--mv-text);background:var(--mv-surface);max-width:60em;
padding:var(--mv-space-2) var(--mv-space-3);border:1px solid var(--mv-line);border-radius:var(--mv-radius)}
S p,S ul,S table{margin:0 0 var(--mv-space-1)}
S .mv-soft{color:var(--mv-text-soft)}
S code,S pre{font:var(--mv-font-xs)/1.4 var(--mv-font-code);color:inherit;background:none;padding:0}
S pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere}
S table{border-collapse:collapse;border:0}
S th,S td{padding:2px var(--mv-space-4) 2px 0;border:0;text-align:left;vertical-align:top;font-weight:400;
background:none;white-space:normal}
S th{color:var(--mv-text-soft);white-space:nowrap}
S .mv-wide{overflow-x:auto;white-space:nowrap}
S .mv-wide td{white-space:nowrap}
S p .mv-badge{vertical-align:middle;margin-right:var(--mv-space-1)}
S .mv-number{text-align:right;font-variant-numeric:tabular-nums}
S .mv-step{border-left:3px solid var(--mv-line);padding-left:var(--mv-space-3);margin:var(--mv-space-2) 0}
S .mv-stack{height:12px;margin:var(--mv-space-1) 0 var(--mv-space-2);background:var(--mv-sunken)}
S .mv-meter{max-width:24em;margin:var(--mv-space-1) 0}
"""


def colour(name: str) -> str:
    """The colour of a verdict, action or state as ``#rrggbb``, for charts outside a browser."""
    return COLOURS[MARK_OF.get(name, name)].light


def stylesheet(scope: str = ":root") -> str:
    """The custom properties of both schemes and the shared elements, within a selector.

    A scope inside a foreign page follows the theme of that page where it is known, else the
    browser.
    """
    light = f"color-scheme:light;{properties(is_dark=False)}"
    dark = f"color-scheme:dark;{properties(is_dark=True)}"
    sizes = "".join(f"--mv-{name}:{value};" for name, value in SIZES.items())
    keys = "".join(
        f"{scope} .mv-{name}{{--mv-key:var(--mv-{mark});--mv-key-text:var(--mv-{mark}-text);"
        f"--mv-key-soft:var(--mv-{mark}-soft)}}\n"
        for name, mark in MARK_OF.items()
    )
    return (
        f"{scope}{{{sizes}{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{{scope}{{{dark}}}}}\n"
        f"@media screen{{{within(scope, LIGHT_PAGES)}{{{light}}}\n"
        f"{within(scope, DARK_PAGES)}{{{dark}}}}}\n"
        f"{keys}{scoped(SHARED, scope)}\n"
    )


def scoped(css: str, scope: str) -> str:
    """A style sheet in which the letter ``S`` stands for the scope, as in ``S .mv-badge{...}``."""
    return re.sub(r"\bS(?=[ {])", scope, css.strip())


def notebook(body: str) -> str:
    """HTML for the output of a notebook's cell: `body`, which is HTML, with the style sheet."""
    css = stylesheet(NOTEBOOK) + scoped(NOTEBOOK_CSS, NOTEBOOK)
    return f'<style>{css}</style><div class="mv-repr">{body}</div>'


def bar(counts: Mapping[str, int]) -> str:
    """One bar with a part for each verdict, action or state.

    A list with the same figures must be beside it.
    """
    parts = (
        f'<span class="mv-{name}" style="flex:{count}"></span>'
        for name, count in counts.items()
        if count
    )
    return f'<div class="mv-stack" aria-hidden="true">{"".join(parts)}</div>'


def interval_bar(share: float, low: float, high: float, others: float, largest: float) -> str:
    """A share as a bar, with its interval and the share of all others as a mark.

    Inline SVG; the interval is a line across the end of the bar.

    `largest` is the share at the right end of all bars of a table. The same figures must be beside
    it.
    """
    if share != share:  # nobody to have a share of
        return ""

    def place(value: float) -> str:
        return f"{100 * min(value / largest, 1.0):.2f}%"

    parts = [
        '<rect class="mv-track" y="3" width="100%" height="8"/>',
        f'<rect class="mv-part-of" y="3" width="{place(share)}" height="8"/>',
        f'<line class="mv-whisker" x1="{place(low)}" x2="{place(high)}" y1="7" y2="7"/>',
    ]
    if others == others:
        x = place(others)
        parts.append(f'<line class="mv-others" x1="{x}" x2="{x}" y1="0" y2="14"/>')
    return f'<svg class="mv-interval" height="14" aria-hidden="true">{"".join(parts)}</svg>'


def properties(*, is_dark: bool) -> str:
    return "".join(
        f"--mv-{name}:{each.dark if is_dark else each.light};" for name, each in COLOURS.items()
    )


def within(scope: str, pages: str) -> str:
    """The scope where it is, or is inside, one of the elements `pages`."""
    inside = ",".join(f"{page} *" for page in pages.split(","))
    return f"{scope}:is({pages},{inside})"


def symbol(name: str) -> str:
    """The shape of a verdict, action or state as inline SVG.

    It is hidden from screen readers: its word is beside it.
    """
    mark = MARKS[MARK_OF[name]]
    if mark.shape:
        paths = f'<path d="{mark.shape}"/><path class="mv-sign" d="{mark.sign}"/>'
    else:
        paths = '<circle class="mv-ring" cx="8" cy="8" r="6"/>'
    return f'<svg class="mv-symbol mv-{name}" viewBox="0 0 16 16" aria-hidden="true">{paths}</svg>'


def badge(name: str, label: str | None = None) -> str:
    """A verdict, action or state as colour, shape and word; the label is escaped."""
    text = LABELS[name] if label is None else label
    return f'<span class="mv-badge mv-{name}">{symbol(name)}{html.escape(text)}</span>'
