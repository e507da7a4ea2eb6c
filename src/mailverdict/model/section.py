"""A section of a report: a table as data, which a page and a workbook render.

    Section("What to do", (("Action", "badge"), ("Rows", "number")), [("send", 71), ("drop", 29)])

On a page a badge is coloured, and a number has its thousands set apart; in a workbook both are
cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .words import ACTION_MEANING, ACTIONS


@dataclass(frozen=True)
class Section:
    """A table with its title, and what is said about it.

    The kind of a column says what its cells are: ``text`` and ``words`` (a sentence; a page shows
    the last one below the first cell of its row) are our own texts, ``data`` and ``code`` those of
    others; ``number``, ``change`` (a number with its sign) and ``share`` are figures; a ``badge``
    is the name of a verdict, action or state; a ``bar`` is such a name and a share, and repeats a
    figure beside it, as an ``interval`` does (a share, its interval, the share of others, and the
    largest one of the table); ``bars`` are counts by verdict or state.
    """

    title: str
    columns: Sequence[tuple[str, str]] = ()  # label and kind
    rows: Sequence[Sequence[Any]] = ()
    said: str = ""  # before the table
    notes: Sequence[str] = ()  # sentences below it
    command: str = ""  # to be copied, after the notes
    is_line: bool = False  # on a page its rows are one line of text
    has_chart: bool = False  # a workbook draws its numbers

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not self.rows and not self.notes


def what_to_do(counts: Mapping[str, int], meanings: Mapping[str, str] = ACTION_MEANING) -> Section:
    """Rows by action, for reports."""
    whole = max(sum(counts.values()), 1)
    columns = (
        ("Action", "badge"),
        ("Rows", "number"),
        ("Share of rows", "share"),
        ("", "bar"),
        ("What it means", "words"),
    )
    rows = []
    for name in ACTIONS:
        count = counts[name]
        share = count / whole
        rows.append((name, count, share, (name, share), meanings[name]))
    return Section("What to do", columns, rows, has_chart=True)
