"""Columns that say no: people who unsubscribed, objected or bounced, by the user's own table.

`find_refusals` looks for them by the tables of `data/refusals.toml`: a column "Unsubscribed from
all email" with true in 71 rows is one `Refusal`. They are offered, and nothing is done by them.
`WhereRule` is what a user asks for: the rows whose cell in a column is one of some values.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

import pyarrow as pa

from ..errors import SettingsError
from ..model.arrow import map_distinct_texts
from ..model.words import count_of, first_of, printable_text
from .cells import as_text, cut_long
from .column_names import (
    WITHOUT_BLANKS,
    between_blanks,
    fold_text,
    pattern_of,
    phrases_of,
    read_table,
)

LONGEST_CELL = 200  # characters of a cell that are compared
LONGEST_SHOWN = 60  # characters of a value in a message
MOST_SHOWN = 8  # values in an error
MOST_DIFFERENT = 1_000  # different texts of a column that says no; a column of notes has more


class Kind(StrEnum):
    """How a column says no."""

    REFUSED = "refused"  # by a yes
    ALLOWED = "allowed"  # by a no
    STATUS = "status"  # by a word


@dataclass(frozen=True)
class RefusalTable:
    """The table of `refusals.toml`, folded for comparison."""

    names: Mapping[str, Kind]  # by the folded name of a column
    inside: re.Pattern[str]  # those that are found in longer names, too
    negation: re.Pattern[str]
    around: frozenset[str]  # words around a name that change nothing
    other: re.Pattern[str]  # what names of columns about something else have
    words: frozenset[str]  # of a status
    answers: frozenset[str]  # further words, in a column that asks for consent
    yes: frozenset[str]
    no: frozenset[str]


@cache
def refusal_table() -> RefusalTable:
    """The packaged table."""
    table = read_table("refusals.toml")
    names = {}
    for row in table["name"]:
        for phrase in phrases_of(row["words"]):
            names[fold_text(phrase)] = Kind(row["kind"])
    inside = phrases_of(table["inside"]["words"])
    for name, kind in names.items():
        is_long = len(name.split()) > 1 or WITHOUT_BLANKS.search(name)
        if is_long and kind is not Kind.STATUS:
            inside.append(name.strip())
    words: list[str] = []
    answers: list[str] = []
    for row in table["word"]:
        folded = map(fold_text, phrases_of(row["words"]))
        if row.get("only") == Kind.ALLOWED:
            answers += folded
        else:
            words += folded
    truth = table["truth"]
    return RefusalTable(
        names=names,
        inside=pattern_of(inside),
        negation=pattern_of(phrases_of(table["negation"]["words"])),
        around=frozenset(phrases_of(table["around"]["words"])),
        other=pattern_of(phrases_of(table["other"]["words"])),
        words=frozenset(words),
        answers=frozenset(answers),
        yes=frozenset(map(fold_text, phrases_of(truth["yes"]))),
        no=frozenset(map(fold_text, phrases_of(truth["no"]))),
    )


def kind_of_name(name: Any) -> Kind | None:
    """How a column of this name says no; None if its name does not say that it does.

    >>> str(kind_of_name("Email Opt-Out")), str(kind_of_name("acceptsMarketing"))
    ('refused', 'allowed')
    >>> kind_of_name("Accepts SMS Marketing") is None
    True
    """
    table = refusal_table()
    folded = fold_text(name)
    if folded in table.names:
        return table.names[folded]
    if table.other.search(folded):
        return None
    kept = [word for word in folded.split() if word not in table.around]
    without = between_blanks(kept)
    if without in table.names:
        return table.names[without]
    inside = [fold_text(match[0]) for match in table.inside.finditer(folded)]
    kinds = {table.names[name] for name in inside}
    if not kinds:
        return None
    if Kind.REFUSED in kinds or table.negation.search(folded):
        return Kind.REFUSED
    return Kind.ALLOWED


@dataclass(frozen=True)
class Refusal:
    """A column that says no, with the rows of each such value."""

    name: Any
    values: Mapping[str, int]  # as most rows write it -> rows
    rows: int  # of the table that were looked at
    is_whole: bool = True  # all rows of the table were looked at

    @property
    def label(self) -> str:
        """The name for a message."""
        return printable_text(str(self.name), LONGEST_SHOWN)

    @property
    def refused(self) -> int:
        """How many rows say no."""
        return sum(self.values.values())

    @property
    def is_most(self) -> bool:
        """Whether more than half of the rows say no: perhaps something else is meant."""
        return 2 * self.refused > self.rows

    def describe(self) -> str:
        """The column in a sentence.

        >>> print(Refusal("Status", {"cleaned": 51}, 100).describe())
        Status: 51 rows say cleaned; that is more than half of the 100 rows
        """
        parts = []
        for value, count in self.values.items():
            verb = "says" if count == 1 else "say"
            parts.append(f"{count_of(count, 'row')} {verb} {printable_text(value, LONGEST_SHOWN)}")
        sentence = f"{self.label}: {', '.join(parts)}"
        extent = count_of(self.rows, "row")
        if not self.is_whole:
            extent = f"first {extent}"
        if self.is_most:
            return f"{sentence}; that is more than half of the {extent}"
        if not self.is_whole:
            return f"{sentence} of the {extent}"
        return sentence


def find_refusals(columns: Mapping[Any, Any], *, is_whole: bool = True) -> list[Refusal]:
    """The columns that say no in some rows, in the order of the table.

    >>> table = {"email": ["a@x.org", "b@x.org", "c@x.org"], "Email opt-in": ["yes", "No", ""]}
    >>> [found.describe() for found in find_refusals(table)]
    ['Email opt-in: 1 row says No']
    """
    refusals = []
    for name, cells in columns.items():
        kind = kind_of_name(name)
        if kind is None:
            continue
        values = refused_values(count_values(cells), kind)
        if values:
            refusals.append(Refusal(name, values, len(cells), is_whole))
    return refusals


def refused_values(counts: Mapping[str, int], kind: Kind) -> dict[str, int]:
    """The values of a column that are a no, with their rows, the most frequent first.

    A column of numbers or notes has none.
    """
    if len(counts) > MOST_DIFFERENT:
        return {}
    table = refusal_table()
    refused: dict[str, dict[str, int]] = {}  # by the folded value
    for text, count in counts.items():
        folded = fold_value(text)
        is_truth = folded in table.yes or folded in table.no
        if kind is not Kind.STATUS and folded.strip().isdigit() and not is_truth:
            return {}  # a number: of mails, of times
        if folded in no_words(kind):
            refused.setdefault(folded, {})[text] = count
    totals: Counter[str] = Counter()
    for spellings in refused.values():
        most_frequent = max(spellings, key=spellings.__getitem__)
        totals[most_frequent] = sum(spellings.values())
    return dict(totals.most_common())


def no_words(kind: Kind) -> frozenset[str]:
    """The folded values that are a no in a column of some kind."""
    table = refusal_table()
    if kind is Kind.REFUSED:
        return table.yes
    if kind is Kind.ALLOWED:
        return table.no | table.words | table.answers
    return table.words


def count_values(cells: Any) -> dict[str, int]:
    """The different texts of a column that are not empty, with their rows."""
    texts = cut_long(as_text(cells), LONGEST_CELL)
    counts = {}
    for entry in texts.value_counts().to_pylist():
        text = entry["values"]
        if text.strip():
            counts[text] = entry["counts"]
    return counts


def fold_value(value: Any) -> str:
    """A cell or a wanted value in the form in which it is compared.

    1.0 is 1, as pandas writes it beside empty cells.

    >>> fold_value(True), fold_value(" Un-Subscribed "), fold_value("1.0")
    (' true ', ' un subscribed ', ' 1 ')
    """
    text = str(value).strip()
    if text in ("0.0", "1.0"):
        text = text.removesuffix(".0")
    return fold_text(text)


# --- what a user asks for -------------------------------------------------------------------------


@dataclass(frozen=True)
class WhereRule:
    """Rows that a user wants to be taken off: those with one of some values in a column."""

    column: Any
    values: tuple[Any, ...]  # as given

    def wanted(self, value: Any) -> frozenset[str]:
        """The folded texts that are meant by a value: for a yes or no all of them."""
        table = refusal_table()
        folded = fold_value(value)
        if folded in table.yes:
            return table.yes
        if folded in table.no:
            return table.no
        return frozenset((folded,))

    def find(self, cells: Any) -> pa.BooleanArray:
        """Which cells are one of the values; an empty cell is none."""
        wanted = frozenset().union(*map(self.wanted, self.values))

        def is_wanted(text: str) -> bool:
            return text.strip() != "" and fold_value(text) in wanted

        texts = cut_long(as_text(cells), LONGEST_CELL)
        return map_distinct_texts(is_wanted, texts, pa.bool_())

    def absent(self, counts: Mapping[str, int]) -> set[Any]:
        """The wanted values that are not among those of some cells."""
        there = frozenset(map(fold_value, counts))
        return {value for value in self.values if self.wanted(value).isdisjoint(there)}

    def refuse(self, absent: Iterable[Any], counts: Mapping[str, int]) -> None:
        """Raise `SettingsError` for values that no row has; `counts` are those that there are."""
        for value in self.values:
            if value not in absent:
                continue
            has = "no value at all"
            if counts:
                shown = [repr(printable_text(text, LONGEST_SHOWN)) for text in counts]
                has = first_of(shown, MOST_SHOWN)
            raise SettingsError(
                f"where: no row of column {self.column!r:.80} has {value!r:.60}; it has {has}"
            )


def parse_where(where: Any) -> tuple[WhereRule, ...]:
    """The rules of ``where={"Unsubscribed": True, "Status": ["cleaned", "bounced"]}``.

    >>> parse_where({"Status": ["cleaned", "bounced"]})
    (WhereRule(column='Status', values=('cleaned', 'bounced')),)
    """
    if not isinstance(where, Mapping) or not where:
        raise SettingsError(
            f"where={where!r:.60}: give a column and a value of it, as {{'Unsubscribed': True}}"
        )
    rules = []
    for column, values in where.items():
        listed = [values]
        if is_list(values):
            listed = list(values)
        if not listed:
            raise SettingsError(f"where: no value is given for column {column!r:.80}")
        for value in listed:
            if value is None or not str(value).strip():
                raise SettingsError(
                    f"where: an empty cell of column {column!r:.80} says nothing: "
                    "give a written value"
                )
        rules.append(WhereRule(column, tuple(listed)))
    return tuple(rules)


def is_list(values: Any) -> bool:
    return isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping)
