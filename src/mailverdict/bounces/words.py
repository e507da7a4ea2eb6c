"""The cells of an export as texts, and what an outcome's word means in every export.

"Hard bounce"             a word of `bounce_services.toml`: hard
"activity.hard_bounced"   by its parts: activity, hard, bounced -> hard
hard_bounce: true         a flag: its word is the name of the column (`word_of_flag`)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from ..checks.bounces.outcome import MAX_DIAGNOSTIC, whole_text
from ..table.columns import plain_word
from .services import JUDGE, SKIP, ExportLayout, meanings, word_parts

MAX_WORD = 60  # characters of an outcome's word
# Of the parts of a word that mean different things, the first counts.
PRECEDENCE = ("complaint", "hard", "soft", "blocked", JUDGE, "delivered", SKIP)
# Without one of these parts, spam that was blocked is no complaint: `FilteredSpam` of Azure.
COMPLAINED = frozenset(
    ["complaint", "complaints", "complained", "complain", "report", "reported", "marked"]
)
MAX_WORDS = 5  # parts of one; more are a sentence


class ExportRow(NamedTuple):
    """A row of an export, or an event."""

    layout: ExportLayout
    cells: Mapping[str, Any]  # by the names of the export

    def filled(self, field: str) -> Iterator[tuple[str, str]]:
        """The names and texts of the cells for a field that are not empty."""
        for name in self.layout.columns.get(field, ()):
            text = filled_text(self.cells.get(name))
            if text is not None:
                yield name, text

    def first(self, field: str) -> str | None:
        """The text of the first of them."""
        for _, text in self.filled(field):
            return text
        return None


def filled_text(cell: object) -> str | None:
    """A cell as stripped text; None if it is empty."""
    if cell is None or cell != cell:
        return None
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    text = str(cell).strip()
    return whole_text(text[: MAX_DIAGNOSTIC * 8]) or None


@lru_cache(maxsize=10_000)
def known_word(text: str) -> str | None:
    """What a word means in every export: as a whole, or else by its parts.

    >>> known_word("activity.hard_bounced"), known_word("MessageDeliveryFailed")
    ('hard', 'judge')
    >>> known_word("users.messages.email.MarkAsSpam"), known_word("FilteredAsSpam")
    ('complaint', 'blocked')
    >>> known_word("unbounced"), known_word("Lunch")
    (None, None)
    """
    last = text
    if " " not in text:  # a name with dots, not a sentence
        last = last_member(text)
    whole = whole_word(text) or whole_word(last)
    if whole is not None:
        return whole
    parts = parts_of(text)
    if len(parts) > MAX_WORDS:
        parts = parts_of(last)
    if not parts or len(parts) > MAX_WORDS or parts & word_parts()["undone"]:
        return None
    if parts & word_parts()["blocked"] and not parts & COMPLAINED:
        return "blocked"  # nobody got it who could complain
    of_parts = [meaning for meaning, names in word_parts().items() if parts & names]
    if "hard" in of_parts and "soft" in of_parts:
        return JUDGE
    for meaning in PRECEDENCE:
        if meaning in of_parts:
            return meaning
    return None


def whole_word(text: str) -> str | None:
    """What a word means that a table has as a whole."""
    word = plain_word(text)
    return meanings("words").get(word) or meanings("reasons").get(word)


def parts_of(text: str) -> frozenset[str]:
    """The parts of a word: at signs and blanks, and before a capital letter."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", text[:MAX_WORD])
    return frozenset(word.lower() for word in words)


def word_of_flag(name: str, cell: str) -> str | None:
    """The word of a cell.

    Of ``hard_bounce: true`` the name of its column, None of one that is false.
    """
    flag = cell.lower()
    member = last_member(name)
    if flag not in ("true", "false") or known_word(member) in (None, SKIP):
        return cell
    if flag == "false":
        return None
    return member


def last_member(name: str) -> str:
    return name.rpartition(".")[2]
