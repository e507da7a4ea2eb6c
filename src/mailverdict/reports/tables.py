"""Tables of counts as a notebook shows them: words, percent and thousands.

    bucket      rows    share                       bucket      rows   share
    valid       2985    0.746   as a plain frame -> ✓ Valid     2,985  74.6%

A `CountTable` is what `summary`, `outcomes`, `breakdown` and their like return.
"""

from __future__ import annotations

import html
from typing import Any

import pandas as pd

from ..model.words import count_of, reason_label
from ..theme import MARK_OF, badge, notebook
from .differences import wilson_intervals

SHARES = ("share", "rate", "low", "high")  # columns that are a part of 1
MOST_ROWS = 60
LONGEST_LABEL = 100  # characters


class CountTable(pd.DataFrame):
    """A table of counts for notebooks; whatever is computed from it is a plain frame."""

    @property
    def _constructor(self) -> Any:
        return pd.DataFrame

    def _repr_html_(self) -> str:
        """The first rows as HTML; every text is escaped."""
        levels = [str(name or "") for name in self.index.names]
        columns = [str(name) for name in self.columns]
        parts = ["<table><thead><tr>"]
        for name in [*levels, *columns]:
            parts.append(f"<th>{html.escape(name.replace('_', ' '))}</th>")
        parts.append("</tr></thead><tbody>")
        first = self.head(MOST_ROWS)
        for labels, values in zip(first.index, first.itertuples(index=False), strict=True):
            labels_of_row = (labels,)
            if isinstance(labels, tuple):
                labels_of_row = labels
            parts.append("<tr>")
            parts += map(label_cell, levels, labels_of_row)
            parts += map(value_cell, columns, values)
            parts.append("</tr>")
        parts.append("</tbody></table>")
        more = len(self) - MOST_ROWS
        if more > 0:
            parts.append(f'<p class="mv-soft">and {count_of(more, "more row")}</p>')
        return notebook("".join(parts))


def rate_table(hits: pd.Series[Any], trials: pd.Series[Any]) -> pd.DataFrame:
    """The rate of each line, with its 95 % Wilson score interval; NaN without trials."""
    rate = hits / trials.where(trials > 0)
    low, high = wilson_intervals(hits, trials)
    columns = {"rate": rate.astype("float64"), "low": low, "high": high}
    return pd.DataFrame(columns, hits.index)


def label_cell(level: str, label: Any) -> str:
    """What a row is about: verdicts and actions with their sign, reasons in words."""
    if label in MARK_OF:
        return f"<td>{badge(str(label))}</td>"
    shown = str(label)
    if level in ("bucket", "value"):
        shown = reason_label(label)
    return f"<td>{html.escape(shown[:LONGEST_LABEL])}</td>"


def value_cell(column: str, value: Any) -> str:
    """One figure, or a text."""
    if pd.isna(value):
        return "<td></td>"
    if isinstance(value, str) and column == "note":
        return f"<td>{html.escape(value)}</td>"
    if isinstance(value, str):
        return f"<td>{html.escape(reason_label(value))}</td>"
    figure = f"{value:,}"
    if column in SHARES:
        figure = f"{value:.1%}"
    look = "mv-number"
    if not value:
        look = "mv-number mv-soft"
    return f'<td class="{look}">{figure}</td>'
