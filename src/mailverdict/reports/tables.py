"""Tables of counts as a notebook shows them: words, percent and thousands, in the look of the reports."""

from __future__ import annotations

import html
from typing import Any

import pandas as pd

from ..model.words import count_of, reason_label
from ..theme import MARK_OF, badge, notebook

SHARES = ("share", "rate", "low", "high")  # columns that are a part of 1
MOST_ROWS = 60


class CountTable(pd.DataFrame):
    """A table of counts with a look of its own in notebooks; whatever is computed from it is a plain frame."""

    @property
    def _constructor(self) -> Any:
        return pd.DataFrame

    def _repr_html_(self) -> str:
        """The first rows as HTML; every text is escaped."""
        levels = [str(name or "") for name in self.index.names]
        head = "".join(
            f"<th>{html.escape(name.replace('_', ' '))}</th>"
            for name in [*levels, *map(str, self.columns)]
        )
        rows = []
        for labels, values in zip(
            self.index[:MOST_ROWS], self.itertuples(index=False), strict=False
        ):
            own = labels if isinstance(labels, tuple) else (labels,)
            cells = [
                *map(label_cell, levels, own),
                *map(value_cell, map(str, self.columns), values),
            ]
            rows.append(f"<tr>{''.join(cells)}</tr>")
        left = len(self) - MOST_ROWS
        more = f'<p class="mv-soft">and {count_of(left, "more row")}</p>' if left > 0 else ""
        return notebook(
            f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{more}"
        )


def label_cell(level: str, label: Any) -> str:
    """What a row is about: verdicts and actions with their sign, reasons in words."""
    if label in MARK_OF:
        return f"<td>{badge(str(label))}</td>"
    shown = reason_label(label) if level in ("bucket", "value") else str(label)
    return f"<td>{html.escape(shown[:100])}</td>"


def value_cell(column: str, value: Any) -> str:
    """One figure, or a text."""
    if pd.isna(value):
        return "<td></td>"
    if isinstance(value, str):
        return f"<td>{html.escape(value if column == 'note' else reason_label(value))}</td>"
    shown = f"{value:.1%}" if column in SHARES else f"{value:,}"
    return f'<td class="mv-number{"" if value else " mv-soft"}">{shown}</td>'
