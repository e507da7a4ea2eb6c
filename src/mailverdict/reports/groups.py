"""The people of a verified list by the values of its other columns, counted in pieces that add up.

Each row gets a mark: which person it counts for, if any, and what is known of that person. A column
is read as words, numbers or dates, and its rows are counted by value and mark::

    lead_source     mark                  counts of lead_source
    Trade fair      invalid               Trade fair   rows 3, people 2, of these 1 invalid
    Trade fair      sendable              Website      rows 1, people 1
    Trade fair      (the same person)
    Website         sendable

When all pieces are counted, `cut` makes groups of the values: each word or one of few numbers is a
group, many numbers are cut into quantiles, and dates into years, quarters or months. What a column
is shows its first piece; few numbers become words when words follow. Beyond that nothing depends on
how a file is cut into pieces, except where a column has so many different numbers that they are
rounded.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.lists.mailboxes import find_mailboxes
from ..frames.alike import Alike, group_alike
from ..frames.policy import Policy, apply_policy, policy_facts
from ..frames.results import Results
from ..frames.seen_addresses import SeenAddresses
from ..model.words import Verdict
from ..table.cells import is_text, read_present, to_array
from .counts import first_rows, keys_of, people_of

Codes = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Keys = npt.NDArray[Any]  # different values of a column: texts, numbers, or months since the year 0
GroupOf = Callable[[Keys], Codes]  # the group of each value; -1 for one that has none
# What is known of a person, each a bit of the mark of a row; `NOBODY` is the mark of a row that
# does not count for one.
BITS = {"invalid": 1, "unknown": 2, "sendable": 4, "disposable": 8, "bounced": 16}
NOBODY = 32
WIDTH = NOBODY + 1  # different marks
MISSING = "(missing)"
NOT_A_NUMBER = "(not a number)"
NOT_A_DATE = "(not a date)"
MAX_GROUPS = 300  # values of a column that is looked at without being asked for
FEW_NUMBERS = 20  # different numbers, up to which each is a group
QUANTILES = 5
LARGE = 10_000  # number from which thousands are set off
FINE_NUMBERS = 2_000  # to which many different numbers are rounded
MAX_NUMBERS = 8_000  # kept until they are rounded again
# Months that the dates of a column span, up to which they are cut into months, and into quarters.
MOST_MONTHS = 24
MOST_QUARTERS = 96
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


# --- who counts -----------------------------------------------------------------------------------


def mark_people(
    rows: Results, seen: SeenAddresses, policy: Policy, bounced: Collection[str] | None = None
) -> Codes:
    """The mark of each row; `seen` has the people of earlier pieces, and gets those of this one.

    A person counts with the first row that has a verdict. With the mailboxes that bounced, all
    people count that have an address.
    """
    keys = keys_of(rows)
    if bounced is None:
        people = people_of(keys)
        counted = rows["verdict"].is_valid()
    else:
        people = find_mailboxes(keys).names
        counted = people.is_valid()
    first = first_rows(people, counted, seen)
    kinds, undecided = group_alike(policy_facts(rows, policy, has_advice=False))
    marks_of_kinds = np.array(list(map(mark_of, apply_policy(undecided, policy))), np.int64)
    marks = np.full(len(rows), NOBODY, np.int64)
    marks[first] = marks_of_kinds[kinds[first]]
    if bounced is not None:
        mailboxes = people.take(pa.array(first))
        has_bounced = pc.is_in(mailboxes, value_set=pa.array(bounced, pa.string()))
        marks[first] += BITS["bounced"] * np.asarray(has_bounced, np.int64)
    return marks


def mark_of(kind: Alike) -> int:
    """What is known of a person whose row is of this kind, as the sum of its bits."""
    mark = 0
    if kind.bucket == Verdict.INVALID:
        mark += BITS["invalid"]
    if kind.bucket == Verdict.UNKNOWN:
        mark += BITS["unknown"]
    if kind.action == "send":
        mark += BITS["sendable"]
    if kind.disposable:
        mark += BITS["disposable"]
    return mark


def people_in(counts: Counts) -> Counts:
    people: Counts = counts[:, :NOBODY].sum(axis=1)
    return people


def people_that(counts: Counts, what: str) -> Counts:
    """The people of each group that are `what`: one of `BITS`, or ``not_sendable``."""
    if what == "not_sendable":
        return people_in(counts) - people_that(counts, "sendable")
    marks = np.arange(NOBODY)
    marks = marks[(marks & BITS[what]) > 0]
    people: Counts = counts[:, marks].sum(axis=1)
    return people


# --- a column -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Values:
    """A piece of a column: the different values, and for each row the position of its own.

    After the last value stand two positions for what is none: a missing cell, and a cell of another
    kind.
    """

    kind: str  # words, numbers or dates
    keys: Keys
    codes: Codes
    note: str = ""  # how dates were read, where that was a guess
    distinct: int = 0  # different numbers, also where they are rounded
    is_whole: bool = True  # the numbers have no decimals


@dataclass(frozen=True)
class Groups:
    """The groups of a column; the last ones may be the missing cells and those of another kind."""

    labels: list[str]
    counts: Counts  # a row for each group, a column for each mark
    group_of: GroupOf
    none: tuple[int, int] = (-1, -1)  # the group of missing cells, and of those of another kind
    sample: Codes = field(default_factory=lambda: np.empty(0, np.int64))  # groups of some people
    note: str = ""

    @property
    def people(self) -> Counts:
        """The people of each group."""
        return people_in(self.counts)

    def people_that(self, what: str) -> Counts:
        """The people of each group that are `what`: see the function."""
        return people_that(self.counts, what)

    def find(self, values: Values) -> Codes:
        """The group of each row of a column; -1 for what was not counted."""
        groups_of_values = np.append(self.group_of(values.keys), self.none)
        return groups_of_values[values.codes]


class ColumnCounts:
    """The rows of a column by value and mark, in pieces.

    Without having been asked for, a column is left out as soon as it has too many values;
    `left_out` says so.
    """

    def __init__(self, *, is_asked: bool = False) -> None:
        self.is_asked = is_asked
        self.left_out = ""
        self.kind: str | None = None
        self.note = ""
        self.keys: Keys = np.empty(0, object)
        self.counts: Counts = np.zeros((0, WIDTH), np.int64)
        self.none: Counts = np.zeros((2, WIDTH), np.int64)  # missing, and of another kind
        self.distinct = 0  # different values, before numbers are rounded
        self.is_whole = True  # all numbers are whole ones
        self.sample: list[Values] = []  # of people by whom columns are compared

    def add(self, cells: Any, marks: Codes, sampled: Codes) -> None:
        """Count a piece; `sampled` are the rows by which columns are compared."""
        if self.left_out:
            return
        values = values_of_cells(cells)
        may_be_words = self.kind in (None, "words")
        if may_be_words and not self.is_asked and has_many_words(values):
            self.leave_out()
            return
        column = read_column(values, self.kind)
        if self.kind == "numbers" and self.shows_words(column):
            self.become_words()
            column = read_column(values, self.kind)
        places = len(column.keys) + 2
        counts = np.bincount(column.codes * WIDTH + marks, minlength=places * WIDTH)
        counts = counts.reshape(places, WIDTH)
        if len(column.keys):
            self.kind = column.kind
            self.note = self.note or column.note
        self.none += counts[-2:]
        self.distinct = max(self.distinct, column.distinct)
        self.is_whole = self.is_whole and column.is_whole
        self.merge(column.keys, counts[:-2])
        self.sample.append(replace(column, codes=column.codes[sampled]))
        has_too_many = self.kind == "words" and len(self.keys) > MAX_GROUPS
        if has_too_many and not self.is_asked:
            self.leave_out()

    def shows_words(self, piece: Values) -> bool:
        """Whether earlier numbers are words after all, by what is no number in this piece.

        They can only become words if all of them are still known.
        """
        others = np.count_nonzero(piece.codes > len(piece.keys))
        if not others or self.distinct > len(self.keys) or self.none[1].any():
            return False
        if len(self.keys) <= FEW_NUMBERS:
            return True
        numbers_here = np.count_nonzero(piece.codes < len(piece.keys))
        numbers = self.counts.sum() + numbers_here
        return bool(numbers < MOSTLY * (numbers + others))

    def become_words(self) -> None:
        """Make words of the numbers that were counted."""
        self.kind = "words"
        self.is_whole = True
        self.keys = words_of_numbers(self.keys)
        for place, piece in enumerate(self.sample):
            words = words_of_numbers(piece.keys)
            self.sample[place] = replace(piece, kind="words", keys=words)

    def leave_out(self) -> None:
        """Keep nothing of a column that has too many values."""
        self.left_out = f"more than {MAX_GROUPS} values"
        self.keys = np.empty(0, object)
        self.counts = self.counts[:0]
        self.sample = []

    def merge(self, keys: Keys, counts: Counts) -> None:
        """Add the counts of some values; too many numbers are rounded up to some of them."""
        all_keys = np.concatenate([self.keys, keys.astype(object)])
        all_counts = np.concatenate([self.counts, counts])
        codes, distinct = pd.factorize(all_keys)
        merged = np.zeros((len(distinct), WIDTH), np.int64)
        np.add.at(merged, codes, all_counts)
        self.keys = np.asarray(distinct, object)
        self.counts = merged
        self.distinct = max(self.distinct, len(distinct))
        if self.kind == "numbers" and len(distinct) > MAX_NUMBERS:
            self.round_up()

    def round_up(self) -> None:
        """Keep some of the numbers, each with the rows of those between it and the one below."""
        order = np.argsort(self.keys.astype(np.float64))
        keys = self.keys[order]
        counts = self.counts[order]
        rows = np.cumsum(counts.sum(axis=1))
        steps = np.arange(FINE_NUMBERS) * rows[-1] // FINE_NUMBERS
        firsts = np.unique(np.searchsorted(rows, steps))
        lasts = np.append(firsts[1:], len(keys)) - 1
        self.keys = keys[lasts]
        self.counts = np.add.reduceat(counts, firsts)

    def thin(self) -> None:
        """Keep every second one of the people by whom columns are compared."""
        position = 0
        for place, values in enumerate(self.sample):
            first = position % 2
            self.sample[place] = replace(values, codes=values.codes[first::2])
            position += len(values.codes)

    def cut(self) -> Groups:
        """The groups of all that was counted, in the order of numbers and dates."""
        if self.kind == "numbers":
            labels, group_of = cut_numbers(self.keys.astype(np.float64), self.counts)
        elif self.kind == "dates":
            labels, group_of = cut_dates(self.keys.astype(np.int64), self.counts)
        else:
            labels, group_of = cut_words(self.keys)
        counts = np.zeros((len(labels), WIDTH), np.int64)
        np.add.at(counts, group_of(self.keys), self.counts)
        missing, others = self.none
        missing_group = -1
        if missing.any():
            missing_group = len(labels)
            labels = [*labels, MISSING]
            counts = np.vstack([counts, missing])
        others_group = -1
        if others.any():
            others_group = len(labels)
            labels = [*labels, NOT_A_NUMBER if self.kind == "numbers" else NOT_A_DATE]
            counts = np.vstack([counts, others])
        none = (missing_group, others_group)
        groups = Groups(labels, counts, group_of, none, note=self.note)
        if not self.sample:
            return groups
        sample = [groups.find(values) for values in self.sample]
        return replace(groups, sample=np.concatenate(sample))


# --- values ---------------------------------------------------------------------------------------


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
    places = pa.array(np.arange(0, len(values), step))
    coded = read_present(values.take(places)).dictionary_encode()
    words = coded.dictionary
    codes = coded.indices.drop_null().to_numpy()
    rows = np.bincount(codes, minlength=len(words))
    return len(words) > MAX_GROUPS and kind_of_words(words, rows) == "words"


def kind_of_words(words: pa.StringArray, rows: Codes) -> str:
    """What the distinct texts are: numbers or dates if nearly all are, else words."""
    if not len(words):
        return "words"
    whole = rows.sum()
    least = MOSTLY * whole
    # 1,234 alone may be twelve hundred and more, or one and a quarter.
    is_clear = count_rows(words, rows, ",") > count_rows(words, rows, THOUSANDS)
    numbers = count_rows(words, rows, NUMBER)
    if is_clear:
        numbers = max(numbers, count_rows(words, rows, COMMA_NUMBER))
    if numbers == whole or (numbers >= least and len(words) > FEW_NUMBERS):
        return "numbers"
    dates_with_year_first = count_rows(words, rows, YEAR_FIRST)
    dates_with_year_last = count_rows(words, rows, YEAR_LAST)
    if max(dates_with_year_first, dates_with_year_last) >= least:
        return "dates"
    return "words"


def count_rows(words: pa.StringArray, rows: Codes, pattern: str) -> int:
    """How many rows have a text with a pattern in it."""
    has_pattern = np.asarray(pc.match_substring_regex(words, pattern))
    return int(rows[has_pattern].sum())


def read_column(values: pa.Array, kind: str | None = None) -> Values:
    """A piece of a column; by default of the kind that its values show."""
    if is_number_type(values.type) and kind in (None, "numbers"):
        numbers = pc.cast(values, pa.float64(), safe=False)
        is_missing = np.asarray(pc.is_null(numbers, nan_is_null=True))
        return place_numbers(to_numpy(numbers), is_missing)
    if is_date_type(values.type) and kind in (None, "dates"):
        years = to_numpy(pc.year(values).fill_null(0))
        months = to_numpy(pc.month(values).fill_null(0))
        is_missing = np.asarray(values.is_null())
        return place_months(years * 12 + months - 1, is_missing)
    coded = read_present(values).dictionary_encode()
    words = coded.dictionary
    missing = len(words)  # the code of all missing cells
    codes = to_numpy(coded.indices.fill_null(missing)).astype(np.int64)
    if kind is None:
        rows = np.bincount(codes, minlength=missing + 1)
        kind = kind_of_words(words, rows[:missing])
    if kind == "words":
        return Values("words", np.asarray(words.to_pylist(), object), codes)
    is_missing = np.zeros(missing + 1, np.bool_)
    is_missing[missing] = True
    if kind == "numbers":
        numbers = np.append(numbers_of(words), np.nan)
        column = place_numbers(numbers, is_missing)
    else:
        months, note = months_of(words)
        column = place_months(np.append(months, 0), is_missing)
        column = replace(column, note=note)
    return replace(column, codes=column.codes[codes])


def is_number_type(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def is_date_type(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def to_numpy(values: pa.Array) -> Keys:
    numbers: Keys = values.to_numpy(zero_copy_only=False)
    return numbers


def place_numbers(numbers: Floats, is_missing: Bools) -> Values:
    """The different numbers, and the place of each; a very large number of them is rounded up."""
    is_number = np.isfinite(numbers)
    ordered = np.sort(numbers[is_number])
    is_first = np.ones(len(ordered), np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
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


def place_months(months: Codes, is_missing: Bools) -> Values:
    """The different months, and the place of each; 0 stands for a cell that is not a date."""
    is_date = (months > 0) & ~is_missing
    dates = months[is_date]
    first = int(dates.min(initial=months.max(initial=0)))
    rows = np.bincount(dates - first)
    keys = np.flatnonzero(rows) + first
    place_of_month = np.cumsum(rows > 0) - 1
    codes = np.full(len(months), len(keys) + 1, np.int64)
    codes[is_date] = place_of_month[dates - first]
    codes[is_missing] = len(keys)
    return Values("dates", keys, codes)


def numbers_of(words: pa.StringArray) -> Floats:
    """The number of each text; NaN for what is not one, or might be two (1,234)."""
    pattern = NUMBER
    once = np.ones(len(words), np.int64)
    if count_rows(words, once, COMMA_NUMBER) > count_rows(words, once, NUMBER):
        pattern = COMMA_NUMBER
    is_number = pc.match_substring_regex(words, pattern)
    texts = pc.if_else(is_number, words, None)
    texts = pc.replace_substring(texts, ",", ".")
    return to_numpy(pc.cast(texts, pa.float64())).astype(np.float64)


def months_of(words: pa.StringArray) -> tuple[Codes, str]:
    """The month since the year 0 of each text, 0 for no date; and how a guess was made."""
    first = pc.extract_regex(words, YEAR_FIRST)
    year = number_in(first, "year")
    month = number_in(first, "month")
    last = pc.extract_regex(words, YEAR_LAST)
    a = number_in(last, "a")
    b = number_in(last, "b")
    has_year_last = a > 0
    signs = pc.struct_field(last, "sign")
    has_dots = np.asarray(pc.equal(signs, ".").fill_null(False))
    is_open = has_year_last & ~has_dots  # 3/4/2023 is in March or in April
    note = ""
    month = np.where(has_year_last & has_dots, b, month)
    if (a[is_open] > 12).any():
        month = np.where(is_open, b, month)
    elif (b[is_open] > 12).any():
        month = np.where(is_open, a, month)
    elif is_open.any():
        month = np.where(is_open, 1, month)
        note = "day and month cannot be told apart, so that its dates are read as years"
    year = np.where(has_year_last, number_in(last, "year"), year)
    is_date = (year > 0) & (month >= 1) & (month <= 12)
    months = np.where(is_date, year * 12 + month - 1, 0)
    return months.astype(np.int64), note


def number_in(parts: pa.StructArray, name: str) -> Codes:
    """A part of what a pattern found, as a number; 0 where it found nothing."""
    texts = pc.struct_field(parts, name)
    numbers = pc.cast(texts, pa.int64()).fill_null(0)
    return to_numpy(numbers).astype(np.int64)


# --- groups of words, numbers and dates -----------------------------------------------------------


def cut_words(words: Keys) -> tuple[list[str], GroupOf]:
    """Each word; and which one a word is."""
    index = pd.Index(words, dtype=object)

    def group_of(keys: Keys) -> Codes:
        places = index.get_indexer(pd.Index(keys, dtype=object))
        return places.astype(np.int64)

    return words.tolist(), group_of


def cut_numbers(numbers: Floats, counts: Counts) -> tuple[list[str], GroupOf]:
    """Quantiles, or each number where they are few; and the group of each number."""
    order = np.argsort(numbers)
    ordered = numbers[order]
    if len(ordered) <= FEW_NUMBERS:
        uppers = ordered
        labels = list(map(number_text, ordered.tolist()))
    else:
        rows = np.cumsum(counts.sum(axis=1)[order])
        steps = np.arange(1, QUANTILES + 1) * rows[-1] / QUANTILES
        places = np.searchsorted(rows, steps)
        uppers = np.unique(ordered[np.minimum(places, len(ordered) - 1)])
        labels = quantile_labels(float(ordered[0]), uppers.tolist())

    def group_of(keys: Keys) -> Codes:
        places = np.searchsorted(uppers, keys.astype(np.float64))
        return np.minimum(places, len(uppers) - 1).astype(np.int64)

    return labels, group_of


def quantile_labels(lowest: float, uppers: Sequence[float]) -> list[str]:
    """Labels of quantiles, by the lowest number of all and the upper bound of each.

    >>> quantile_labels(1.0, [5.0, 12000.0])
    ['1 to 5', 'over 5 to 12,000']
    """
    sign = ""
    if max(abs(lowest), abs(uppers[-1])) >= LARGE:
        sign = ","
    texts = [number_text(upper, sign) for upper in uppers]
    first = texts[0]
    if lowest < uppers[0]:
        first = f"{number_text(lowest, sign)} to {first}"
    labels = [first]
    for below, upper in itertools.pairwise(texts):
        labels.append(f"over {below} to {upper}")
    return labels


def words_of_numbers(numbers: Keys) -> Keys:
    words = [number_text(float(number)) for number in numbers]
    return np.array(words, object)


def number_text(number: float, sign: str = "") -> str:
    """A number as a label; `sign` is between thousands.

    >>> number_text(2023.0), number_text(12000.0, ","), number_text(0.25)
    ('2023', '12,000', '0.25')
    """
    if float(number).is_integer():
        return f"{number:{sign}.0f}"
    return f"{number:{sign}.6g}"


def cut_dates(months: Codes, counts: Counts) -> tuple[list[str], GroupOf]:
    """Years, quarters or months, by the span of nearly all dates; and which one a month is in.

    A hundredth of the rows at each end does not count: a list may have dates such as 1900-01-01.
    """
    size = 1
    if len(months):
        order = np.argsort(months)
        rows = np.cumsum(counts.sum(axis=1)[order])
        ends = np.searchsorted(rows, [0.01 * rows[-1], 0.99 * rows[-1]])
        first, last = months[order[ends]].tolist()
        size = period_size(last - first + 1)
    periods = np.unique(months // size)
    labels = [period_text(period, size) for period in periods.tolist()]

    def group_of(keys: Keys) -> Codes:
        if not len(periods):
            return np.full(len(keys), -1, np.int64)
        periods_of_keys = keys.astype(np.int64) // size
        places = np.searchsorted(periods, periods_of_keys)
        places = np.minimum(places, len(periods) - 1)
        is_known = periods[places] == periods_of_keys
        return np.where(is_known, places, -1).astype(np.int64)

    return labels, group_of


def period_size(span: int) -> int:
    """How many months a period has in dates that span so many months.

    >>> period_size(24), period_size(25), period_size(97)
    (1, 3, 12)
    """
    if span <= MOST_MONTHS:
        return 1
    if span <= MOST_QUARTERS:
        return 3
    return 12


def period_text(period: int, size: int) -> str:
    """A period of so many months as a label.

    >>> period_text(2023, 12), period_text(8093, 3), period_text(24279, 1)
    ('2023', '2023 Q2', '2023-04')
    """
    year, part = divmod(period, 12 // size)
    if size == 12:
        return str(year)
    if size == 3:
        return f"{year} Q{part + 1}"
    return f"{year}-{part + 1:02}"
