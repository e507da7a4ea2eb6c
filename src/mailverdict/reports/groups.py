"""The people of a verified list by the values of its other columns, counted in pieces that add up.

Each row gets a mark: which person it counts for, if any, and what is known of that person. A column is read as words,
numbers or dates, and its rows are counted by value and mark::

    lead_source     mark                  counts of lead_source
    Trade fair      invalid               Trade fair   rows 3, people 2, of these 1 invalid
    Trade fair      sendable              Website      rows 1, people 1
    Trade fair      (the same person)
    Website         sendable

When all pieces are counted, `cut` makes groups of the values: each word or one of few numbers is a group, many numbers
are cut into quantiles, and dates into years, quarters or months. Nothing of it depends on how a file is cut into pieces,
except where a column has so many different numbers that they are rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.lists.mailboxes import find_mailboxes
from ..frames.alike import group_alike
from ..frames.policy import Policy, apply_policy, policy_facts
from ..frames.results import Results
from ..frames.seen_addresses import SeenAddresses
from ..model.words import Verdict
from ..table.cells import is_text, read_present, to_array
from .counts import first_rows, keys_of, people_of

Codes = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]
# What is known of a person, each a bit of the mark of a row; `NOBODY` is the mark of a row that does not count for one.
BITS = {"invalid": 1, "unknown": 2, "sendable": 4, "disposable": 8, "bounced": 16}
NOBODY = 32
MARKS = np.arange(NOBODY)
MISSING, NOT_A_NUMBER, NOT_A_DATE = "(missing)", "(not a number)", "(not a date)"
MAX_GROUPS = 300  # values of a column that is looked at without being asked for
FEW_NUMBERS = 20  # different numbers, up to which each is a group
QUANTILES = 5
LARGE = 10_000  # number from which thousands are set off
FINE_NUMBERS = 2_000  # to which many different numbers are rounded
MAX_NUMBERS = 8_000  # kept until they are rounded again
# Months that the dates of a column span, up to which they are cut into months, and into quarters.
MOST_MONTHS, MOST_QUARTERS = 24, 96
SAMPLE = 20_000  # people by which columns are compared
LOOK = 5_000  # values by which a column of texts is known
MOSTLY = 0.95  # of the filled rows must be numbers, or dates
# A leading zero shows a code, such as a postal one.
NUMBER = r"^-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?$"
COMMA_NUMBER = r"^-?(?:0|[1-9][0-9]{0,14})(?:,[0-9]{1,15})?$"
THOUSANDS = r",[0-9]{3}$"
YEAR_FIRST = r"^(?P<year>[12][0-9]{3})[-/](?P<month>[0-9]{2})[-/][0-9]{2}(?:$|[ T])"
YEAR_LAST = (
    r"^(?P<a>[0-9]{1,2})(?P<sign>[./-])(?P<b>[0-9]{1,2})[./-](?P<year>[12][0-9]{3})(?:$|[ T])"
)


# --- who counts -------------------------------------------------------------------------------------------------------


def mark_people(
    rows: Results, seen: SeenAddresses, policy: Policy, bounced: Collection[str] | None = None
) -> Codes:
    """The mark of each row; `seen` has the people of earlier pieces, and gets those of this one.

    A person counts with the first row that has a verdict. With the mailboxes that bounced, all people count that have
    an address.
    """
    keys = keys_of(rows)
    if bounced is None:
        people = people_of(keys)
        counted = rows["verdict"].is_valid()
    else:
        people = find_mailboxes(keys).names
        counted = people.is_valid()
    at = first_rows(people, counted, seen)
    kinds, undecided = group_alike(policy_facts(rows, policy, has_advice=False))
    alike = apply_policy(undecided, policy)
    marks_of_kinds = np.zeros(len(alike), np.int64)
    for place, kind in enumerate(alike):
        known = {
            "invalid": kind.bucket == Verdict.INVALID,
            "unknown": kind.bucket == Verdict.UNKNOWN,
            "sendable": kind.action == "send",
            "disposable": bool(kind.disposable),
        }
        marks_of_kinds[place] = sum(BITS[name] for name, is_true in known.items() if is_true)
    marks = np.full(len(rows), NOBODY, np.int64)
    marks[at] = marks_of_kinds[kinds[at]]
    if bounced is not None:
        has_bounced = pc.is_in(people.take(pa.array(at)), value_set=pa.array(bounced, pa.string()))
        marks[at] += BITS["bounced"] * np.asarray(has_bounced, np.int64)
    return marks


def people_in(counts: Counts) -> Counts:
    """The people of each group."""
    people: Counts = counts[:, :NOBODY].sum(axis=1)
    return people


def people_that(counts: Counts, what: str) -> Counts:
    """The people of each group of whom something is known; `what` is of `BITS`, or ``not_sendable``."""
    if what == "not_sendable":
        return people_in(counts) - people_that(counts, "sendable")
    has_bit = (MARKS & BITS[what]) > 0
    people: Counts = counts[:, :NOBODY][:, has_bit].sum(axis=1)
    return people


# --- a column ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Values:
    """A piece of a column: the different values, and for each row the position of its own.

    After the last value stand two positions for what is none: a missing cell, and a cell of another kind.
    """

    kind: str  # words, numbers or dates
    keys: npt.NDArray[Any]  # texts, numbers, or months since the year 0
    codes: Codes
    note: str = ""  # how dates were read, where that was a guess
    distinct: int = 0  # different numbers, also where they are rounded
    is_whole: bool = True  # the numbers have no decimals


@dataclass(frozen=True)
class Groups:
    """The groups of a column; the last ones may be the missing cells and those of another kind."""

    labels: list[str]
    counts: Counts  # a row for each group, a column for each mark
    group_of: Callable[[npt.NDArray[Any]], Codes]  # the group of each value
    none: tuple[int, int] = (-1, -1)  # the group of missing cells, and of those of another kind
    # The groups of some people.
    sample: Codes = field(default_factory=lambda: np.empty(0, np.int64))
    note: str = ""

    def find(self, values: Values) -> Codes:
        """The group of each row of a column; -1 for what was not counted."""
        return np.append(self.group_of(values.keys), self.none)[values.codes]


class ColumnCounts:
    """The rows of a column by value and mark, in pieces.

    Without having been asked for, a column is left out as soon as it has too many values; `left_out` says so.
    """

    def __init__(self, *, is_asked: bool = False) -> None:
        self.is_asked = is_asked
        self.left_out = ""
        self.kind: str | None = None
        self.note = ""
        self.keys: npt.NDArray[Any] = np.empty(0, object)
        self.counts: Counts = np.zeros((0, NOBODY + 1), np.int64)
        self.none: Counts = np.zeros((2, NOBODY + 1), np.int64)  # missing, and of another kind
        self.distinct = 0  # different values, before numbers are rounded
        self.is_whole = True  # all numbers are whole ones
        self.sample: list[Values] = []  # of people by whom columns are compared

    def add(self, cells: Any, marks: Codes, sampled: Codes) -> None:
        """Count a piece; `sampled` are the rows by which columns are compared."""
        if self.left_out:
            return
        values = values_of_cells(cells)
        if not self.is_asked and self.kind in (None, "words") and has_many_words(values):
            self.leave_out()
            return
        column = read_column(values, self.kind)
        width = NOBODY + 1
        cells_of_table = (len(column.keys) + 2) * width
        counts = np.bincount(column.codes * width + marks, minlength=cells_of_table)
        counts = counts.reshape(-1, width)
        if len(column.keys):
            self.kind = column.kind
            self.note = self.note or column.note
        self.none += counts[-2:]
        self.distinct = max(self.distinct, column.distinct)
        self.is_whole = self.is_whole and column.is_whole
        self.merge(column.keys, counts[:-2])
        self.sample.append(replace(column, codes=column.codes[sampled]))
        if not self.is_asked and self.kind == "words" and len(self.keys) > MAX_GROUPS:
            self.leave_out()

    def leave_out(self) -> None:
        """Keep nothing of a column that has too many values."""
        self.left_out = f"more than {MAX_GROUPS} values"
        self.keys = np.empty(0, object)
        self.counts = self.counts[:0]
        self.sample = []

    def merge(self, keys: npt.NDArray[Any], counts: Counts) -> None:
        """Add the counts of some values; too many numbers are rounded up to some of them."""
        codes, distinct = pd.factorize(np.concatenate([self.keys, keys.astype(object)]))
        merged = np.zeros((len(distinct), NOBODY + 1), np.int64)
        np.add.at(merged, codes, np.concatenate([self.counts, counts]))
        self.keys = np.asarray(distinct, object)
        self.counts = merged
        self.distinct = max(self.distinct, len(distinct))
        if self.kind == "numbers" and len(distinct) > MAX_NUMBERS:
            order = np.argsort(self.keys.astype(np.float64))
            rows = np.cumsum(merged.sum(axis=1)[order])
            steps = np.arange(FINE_NUMBERS) * rows[-1] // FINE_NUMBERS
            firsts = np.unique(np.searchsorted(rows, steps))
            lasts = np.append(firsts[1:], len(order)) - 1
            self.keys = self.keys[order][lasts]
            self.counts = np.add.reduceat(merged[order], firsts)

    def thin(self) -> None:
        """Keep every second one of the people by whom columns are compared."""
        position = 0
        for place, values in enumerate(self.sample):
            self.sample[place] = replace(values, codes=values.codes[position % 2 :: 2])
            position += len(values.codes)

    def cut(self) -> Groups:
        """The groups of all that was counted, in the order of numbers and dates."""
        if self.kind == "numbers":
            labels, group_of = cut_numbers(self.keys.astype(np.float64), self.counts)
        elif self.kind == "dates":
            labels, group_of = cut_dates(self.keys.astype(np.int64), self.counts)
        else:
            labels = self.keys.tolist()
            group_of = pd.Index(self.keys, dtype=object).get_indexer
        counts = np.zeros((len(labels), NOBODY + 1), np.int64)
        np.add.at(counts, group_of(self.keys), self.counts)
        none = [-1, -1]
        names = (MISSING, NOT_A_NUMBER if self.kind == "numbers" else NOT_A_DATE)
        for place, name in enumerate(names):
            if self.none[place].any():
                none[place] = len(labels)
                labels = [*labels, name]
                counts = np.vstack([counts, self.none[place]])
        groups = Groups(labels, counts, group_of, (none[0], none[1]), note=self.note)
        sample = [groups.find(values) for values in self.sample]
        return replace(groups, sample=np.concatenate([*sample, groups.sample]))


# --- values -----------------------------------------------------------------------------------------------------------


def values_of_cells(cells: Any) -> pa.Array:
    """The cells of a column as an array; periods, which Arrow takes for numbers, as text."""
    if isinstance(cells, pd.Series) and isinstance(cells.dtype, pd.PeriodDtype):
        cells = cells.astype("string")
    return to_array(cells)


def has_many_words(values: pa.Array) -> bool:
    """Whether some of the values show that they are too many words, without reading all."""
    if not is_text(values.type):
        return False
    step = max(len(values) // LOOK, 1)
    some = read_present(values.take(pa.array(np.arange(0, len(values), step)))).dictionary_encode()
    rows = np.bincount(some.indices.drop_null().to_numpy(), minlength=len(some.dictionary))
    return len(rows) > MAX_GROUPS and kind_of_words(some.dictionary, rows) == "words"


def kind_of_words(words: pa.StringArray, rows: Codes) -> str:
    """What different texts are, each in so many rows: numbers or dates if nearly all are, else words."""
    if not len(words):
        return "words"
    least = MOSTLY * rows.sum()
    # 1,234 alone may be twelve hundred and more, or one and a quarter.
    is_clear = count_rows(words, rows, ",") > count_rows(words, rows, THOUSANDS)
    numbers = count_rows(words, rows, NUMBER)
    if is_clear:
        numbers = max(numbers, count_rows(words, rows, COMMA_NUMBER))
    if numbers == rows.sum() or (numbers >= least and len(words) > FEW_NUMBERS):
        return "numbers"
    dates = max(count_rows(words, rows, YEAR_FIRST), count_rows(words, rows, YEAR_LAST))
    return "dates" if dates >= least else "words"


def count_rows(words: pa.StringArray, rows: Codes, pattern: str) -> int:
    """How many rows have a text with a pattern in it."""
    has_pattern = np.asarray(pc.match_substring_regex(words, pattern))
    return int(rows[has_pattern].sum())


def read_column(values: pa.Array, kind: str | None = None) -> Values:
    """A piece of a column; by default of the kind that its values show."""
    type_ = values.type
    is_number = pa.types.is_integer(type_) or pa.types.is_floating(type_)
    is_number = is_number or pa.types.is_decimal(type_)
    is_date = pa.types.is_date(type_) or pa.types.is_timestamp(type_)
    if is_number and kind in (None, "numbers"):
        numbers = pc.cast(values, pa.float64(), safe=False)
        is_missing = np.asarray(pc.is_null(numbers, nan_is_null=True))
        return place_numbers(numbers.to_numpy(zero_copy_only=False), is_missing)
    if is_date and kind in (None, "dates"):
        years = pc.year(values).fill_null(0).to_numpy(zero_copy_only=False)
        months = pc.month(values).fill_null(0).to_numpy(zero_copy_only=False)
        return place_months(years * 12 + months - 1, np.asarray(values.is_null()))
    coded = read_present(values).dictionary_encode()
    words = coded.dictionary
    codes = coded.indices.fill_null(len(words)).to_numpy(zero_copy_only=False).astype(np.int64)
    if kind is None:
        kind = kind_of_words(words, np.bincount(codes, minlength=len(words) + 1)[: len(words)])
    if kind == "words":
        return Values("words", np.asarray(words.to_pylist(), object), codes)
    # The last one stands for all missing cells.
    is_missing = np.arange(len(words) + 1) == len(words)
    if kind == "numbers":
        placed = place_numbers(np.append(numbers_of(words), np.nan), is_missing)
        return replace(placed, codes=placed.codes[codes])
    months, note = months_of(words)
    placed = place_months(np.append(months, 0), is_missing)
    return replace(placed, codes=placed.codes[codes], note=note)


def place_numbers(numbers: npt.NDArray[np.float64], is_missing: npt.NDArray[np.bool_]) -> Values:
    """The different numbers, and the place of each; a very large number of them is rounded up."""
    is_number = np.isfinite(numbers)
    ordered = np.sort(numbers[is_number])
    is_first = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
    keys = ordered[is_first]
    distinct = len(keys)
    is_whole = bool((keys == np.floor(keys)).all())
    if distinct > MAX_NUMBERS:
        steps = np.arange(1, FINE_NUMBERS + 1) * len(ordered) // FINE_NUMBERS - 1
        keys = np.unique(ordered[steps])
    codes = np.searchsorted(keys, numbers).astype(np.int64)
    codes[~is_number] = len(keys) + 1
    codes[is_missing] = len(keys)
    return Values("numbers", keys, codes, distinct=distinct, is_whole=is_whole)


def place_months(months: Codes, is_missing: npt.NDArray[np.bool_]) -> Values:
    """The different months, and the place of each; 0 stands for a cell that is not a date."""
    is_date = (months > 0) & ~is_missing
    first = int(months[is_date].min(initial=months.max(initial=0)))
    rows = np.bincount(months[is_date] - first)
    keys = np.flatnonzero(rows) + first
    place_of = np.cumsum(rows > 0) - 1
    codes = np.full(len(months), len(keys) + 1, np.int64)
    codes[is_date] = place_of[months[is_date] - first]
    codes[is_missing] = len(keys)
    return Values("dates", keys, codes)


def numbers_of(words: pa.StringArray) -> npt.NDArray[np.float64]:
    """The number of each text; NaN for what is not one, or might be two (1,234)."""
    pattern = NUMBER
    once = np.ones(len(words), np.int64)
    if count_rows(words, once, COMMA_NUMBER) > count_rows(words, once, NUMBER):
        pattern = COMMA_NUMBER
    is_number = pc.match_substring_regex(words, pattern)
    plain = pc.replace_substring(pc.if_else(is_number, words, None), ",", ".")
    return np.asarray(pc.cast(plain, pa.float64()).to_numpy(zero_copy_only=False), np.float64)


def months_of(words: pa.StringArray) -> tuple[Codes, str]:
    """The month of each text since the year 0, 0 for what is not a date; and how it was read, if that was a guess."""
    first = pc.extract_regex(words, YEAR_FIRST)
    year = number_in(first, "year")
    month = number_in(first, "month")
    last = pc.extract_regex(words, YEAR_LAST)
    a = number_in(last, "a")
    b = number_in(last, "b")
    is_last = a > 0
    is_dotted = np.asarray(pc.equal(pc.struct_field(last, "sign"), ".").fill_null(False))
    is_open = is_last & ~is_dotted  # 3/4/2023 is in March or in April
    note = ""
    month = np.where(is_last & is_dotted, b, month)
    if (a[is_open] > 12).any():
        month = np.where(is_open, b, month)
    elif (b[is_open] > 12).any():
        month = np.where(is_open, a, month)
    elif is_open.any():
        month = np.where(is_open, 1, month)
        note = "day and month cannot be told apart, so that its dates are read as years"
    year = np.where(is_last, number_in(last, "year"), year)
    is_date = (year > 0) & (month >= 1) & (month <= 12)
    return np.where(is_date, year * 12 + month - 1, 0).astype(np.int64), note


def number_in(parts: pa.StructArray, name: str) -> Codes:
    """A part of what a pattern found, as a number; 0 where it found nothing."""
    numbers = pc.cast(pc.struct_field(parts, name), pa.int64()).fill_null(0)
    return np.asarray(numbers.to_numpy(zero_copy_only=False), np.int64)


# --- groups of numbers and dates --------------------------------------------------------------------------------------


def cut_numbers(
    numbers: npt.NDArray[np.float64], counts: Counts
) -> tuple[list[str], Callable[[npt.NDArray[Any]], Codes]]:
    """Quantiles of equally many rows, or each number where they are few; and which one a number is in."""
    order = np.argsort(numbers)
    ordered = numbers[order]
    is_few = len(ordered) <= FEW_NUMBERS
    sign = "," if not is_few and np.abs(ordered).max() >= LARGE else ""
    texts = {number: number_text(number, sign) for number in ordered.tolist()}
    if is_few:
        labels = [*texts.values()]
        uppers = ordered
    else:
        rows = np.cumsum(counts.sum(axis=1)[order])
        steps = np.arange(1, QUANTILES + 1) * rows[-1] / QUANTILES
        uppers = np.unique(ordered[np.minimum(np.searchsorted(rows, steps), len(ordered) - 1)])
        first, *others = uppers.tolist()
        lowest = ordered[0]
        labels = [texts[first] if first == lowest else f"{texts[lowest]} to {texts[first]}"]
        for below, upper in zip(uppers.tolist(), others, strict=False):
            labels.append(f"over {texts[below]} to {texts[upper]}")

    def group_of(keys: npt.NDArray[Any]) -> Codes:
        places = np.searchsorted(uppers, keys.astype(np.float64))
        return np.minimum(places, len(uppers) - 1).astype(np.int64)

    return labels, group_of


def number_text(number: float, sign: str = "") -> str:
    """A number as a label; `sign` is between thousands.

    >>> number_text(2023.0), number_text(12000.0, ","), number_text(0.25)
    ('2023', '12,000', '0.25')
    """
    digits = ".0f" if float(number).is_integer() else ".6g"
    return f"{number:{sign}{digits}}"


def cut_dates(
    months: Codes, counts: Counts
) -> tuple[list[str], Callable[[npt.NDArray[Any]], Codes]]:
    """Years, quarters or months, by the span of nearly all dates; and which one a month is in.

    A hundredth of the rows at each end does not count: a list may have dates such as 1900-01-01.
    """
    order = np.argsort(months)
    rows = np.cumsum(counts.sum(axis=1)[order])
    first, last = (
        np.searchsorted(rows, [0.01 * rows[-1], 0.99 * rows[-1]]) if len(rows) else (0, -1)
    )
    span = months[order][last] - months[order][first] + 1 if len(rows) else 0
    size = 1 if span <= MOST_MONTHS else 3 if span <= MOST_QUARTERS else 12
    periods = np.unique(months // size)
    labels = [period_text(int(period), size) for period in periods]

    def group_of(keys: npt.NDArray[Any]) -> Codes:
        periods_of_keys = keys.astype(np.int64) // size
        places = np.minimum(np.searchsorted(periods, periods_of_keys), len(periods) - 1)
        is_known = periods[places] == periods_of_keys if len(periods) else np.zeros(0, np.bool_)
        return np.where(is_known, places, -1).astype(np.int64)

    return labels, group_of


def period_text(period: int, size: int) -> str:
    """A period of so many months as a label.

    >>> period_text(2023, 12), period_text(8093, 3), period_text(24279, 1)
    ('2023', '2023 Q2', '2023-04')
    """
    year, part = divmod(period, 12 // size)
    if size == 12:
        return str(year)
    return f"{year} Q{part + 1}" if size == 3 else f"{year}-{part + 1:02}"
