"""A column as groups: words, numbers in quantiles, dates by their span, whole or in pieces."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mailverdict.reports.groups import (
    FINE_NUMBERS,
    MAX_GROUPS,
    MAX_NUMBERS,
    NOBODY,
    ColumnCounts,
    read_column,
    values_of_cells,
)
from tests.doubles.tables import each_row

DAY = datetime.date


def counted(*pieces, is_asked=True, marks=None):
    column = ColumnCounts(is_asked=is_asked)
    for cells in pieces:
        none = np.zeros(len(cells), np.int64) if marks is None else marks
        column.add(cells, none, np.arange(len(cells)))
    return column


def rows_by_label(*pieces):
    groups = counted(*pieces).cut()
    return dict(zip(groups.labels, groups.counts.sum(axis=1).tolist(), strict=True))


FEW = (  # cells, rows by group, why
    (["b", "a", "b", None, ""], {"b": 2, "a": 1, "(missing)": 2}, "an empty text is missing"),
    ([" a", "a ", "A"], {"a": 2, "A": 1}, "blanks around do not count, capitals do"),
    ([True, False, True], {"true": 2, "false": 1}, "truth values"),
    ([3.0, 1.0, None], {"1": 1, "3": 1, "(missing)": 1}, "whole numbers without decimals"),
    (["2", "10", "2"], {"2": 2, "10": 1}, "numbers in texts, in their order"),
    (["01", "10", "01"], {"01": 2, "10": 1}, "a leading zero shows a code"),
    (["1,5", "2,25", "3"], {"1.5": 1, "2.25": 1, "3": 1}, "a decimal comma"),
    (["1,500", "2,250"], {"1,500": 1, "2,250": 1}, "a comma that may be between thousands"),
    ([float("inf"), 1.0], {"1": 1, "(not a number)": 1}, "no finite number"),
    (["n/a", "-", "x"], {"n/a": 1, "-": 1, "x": 1}, "words that mean missing stay as they are"),
    ([["a"], ["b"], ["a"]], {'["a"]': 2, '["b"]': 1}, "lists"),
)


@each_row(("cells", "expected", "why"), FEW)
def test_few_values_are_a_group_each(cells, expected, why):
    assert rows_by_label(pd.Series(cells)) == expected


DATES = (  # cells, rows by group, why
    ([DAY(2020, 1, 1), DAY(2031, 5, 1)], {"2020": 1, "2031": 1}, "a long span: years"),
    ([DAY(2020, 1, 1), DAY(2024, 5, 1)], {"2020 Q1": 1, "2024 Q2": 1}, "some years: quarters"),
    (
        [DAY(2023, 4, 1), DAY(2023, 5, 9), None],
        {"2023-04": 1, "2023-05": 1, "(missing)": 1},
        "months",
    ),
    (["2023-04-01", "2023-05-09T10:00"], {"2023-04": 1, "2023-05": 1}, "texts as ISO 8601"),
    (["01.04.2023", "9.5.2023"], {"2023-04": 1, "2023-05": 1}, "with dots the day is first"),
    (["04/31/2023", "05/09/2023"], {"2023-04": 1, "2023-05": 1}, "a second part above 12 is a day"),
    (["31/04/2023", "09/05/2023"], {"2023-04": 1, "2023-05": 1}, "a first part above 12 is a day"),
    (["01/04/2023", "09/05/2024"], {"2023-01": 1, "2024-01": 1}, "neither: only the year is sure"),
    (
        ["2023-04-01"] * 40 + ["2023-05-01"] * 40 + ["unknown", "2023-13-01"],
        {"2023-04": 40, "2023-05": 40, "(not a date)": 2},
        "a few texts that are none",
    ),
    (
        [DAY(1900, 1, 1)] + [DAY(2023, 4, 1)] * 200 + [DAY(2023, 6, 1)] * 200,
        {"1900-01": 1, "2023-04": 200, "2023-06": 200},
        "one date far away does not decide",
    ),
)


@each_row(("cells", "expected", "why"), DATES)
def test_dates_are_cut_by_their_span(cells, expected, why):
    assert rows_by_label(pd.Series(cells)) == expected


def test_a_date_whose_day_and_month_are_not_clear_says_so():
    groups = counted(pd.Series(["01/04/2023", "09/05/2024"])).cut()
    assert groups.note == "day and month cannot be told apart, so that its dates are read as years"


@each_row(
    "make", [pd.Series, pl.Series, pa.array, lambda cells: pd.Series(cells, dtype="category")]
)
def test_kinds_of_columns_give_the_same_groups(make):
    assert rows_by_label(values_of_cells(make(["x", "y", None, "x"]))) == {
        "x": 2,
        "y": 1,
        "(missing)": 1,
    }
    assert rows_by_label(values_of_cells(make([5, 7, 5]))) == {"5": 2, "7": 1}


def test_periods_are_words():
    months = pd.Series(pd.period_range("2023-04", periods=3, freq="M"))
    assert list(rows_by_label(months)) == ["2023-04", "2023-05", "2023-06"]


def test_many_numbers_are_cut_into_five_groups_of_equally_many_rows():
    found = rows_by_label(pd.Series(range(1_000)))
    assert list(found.values()) == [200] * 5
    assert list(found)[:2] == ["0 to 199", "over 199 to 399"]
    assert next(iter(rows_by_label(pd.Series([0.0] * 600 + [*range(1, 401)])))) == "0"
    assert list(rows_by_label(pd.Series(np.arange(1_000) * 50)))[-1] == "over 39,950 to 49,950"


def test_pieces_add_up_to_the_whole():
    rng = np.random.default_rng(5)
    cells = pd.Series(rng.choice(["a", "b", "c", None], 5_000))
    numbers = pd.Series(rng.integers(0, 500, 5_000))
    days = pd.Series(pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 5_000), "D"))
    for column in (cells, numbers, days, numbers.astype(str), days.astype(str)):
        whole = rows_by_label(column)
        assert (
            rows_by_label(*(column[start : start + 700] for start in range(0, 5_000, 700))) == whole
        )


def test_numbers_are_words_where_words_follow_in_a_later_piece():
    plans = pd.Series([*["1", "2"] * 30, None, *["Team", "2"] * 10])
    expected = {"1": 30, "2": 40, "Team": 10, "(missing)": 1}
    assert rows_by_label(plans) == expected
    assert rows_by_label(plans[:50], plans[50:]) == expected
    column = counted(plans[:50], plans[50:])
    assert column.kind == "words"
    assert len(column.cut().sample) == len(plans)
    many = pd.Series([*map(str, range(100)), *["n/a"] * 3, "7"])
    assert rows_by_label(many[:90], many[90:]) == rows_by_label(many)
    assert rows_by_label(many)["(not a number)"] == 3


def test_very_many_numbers_are_rounded_and_hardly_move():
    rng = np.random.default_rng(6)
    numbers = pd.Series(rng.gamma(2, 1_000, 30_000))
    assert numbers.nunique() > MAX_NUMBERS > FINE_NUMBERS
    whole = counted(numbers)
    parts = counted(numbers[:9_000], numbers[9_000:])
    assert whole.distinct > MAX_NUMBERS
    for column in (whole, parts):
        sizes = column.cut().counts.sum(axis=1)
        assert sizes.sum() == 30_000
        assert abs(sizes - 6_000).max() < 60


def test_the_group_of_each_row_is_found_again():
    cells = pd.Series(["x", None, "y", "x"])
    column = counted(cells)
    groups = column.cut()
    codes = groups.find(read_column(values_of_cells(cells), column.kind))
    assert [groups.labels[code] for code in codes] == ["x", "(missing)", "y", "x"]
    numbers = pd.Series([*range(100), None])
    column = counted(numbers)
    groups = column.cut()
    codes = groups.find(read_column(values_of_cells(numbers), column.kind))
    assert (np.bincount(codes) == groups.counts.sum(axis=1)).all()


def test_a_column_with_too_many_words_is_left_out_unless_it_was_asked_for():
    cells = pd.Series([f"name {number}" for number in range(MAX_GROUPS + 1)])
    assert counted(cells, is_asked=False).left_out == f"more than {MAX_GROUPS} values"
    assert counted(cells[:200], cells[200:], is_asked=False).left_out
    assert len(counted(cells).cut().labels) == MAX_GROUPS + 1
    assert not counted(cells[:MAX_GROUPS], is_asked=False).left_out


def test_rows_are_counted_by_mark():
    marks = np.array([1, NOBODY, 4, 4])
    groups = counted(pd.Series(["x", "x", "x", "y"]), marks=marks).cut()
    assert groups.counts[:, [1, 4, NOBODY]].tolist() == [[1, 1, 1], [0, 1, 0]]


def test_a_column_without_values_has_at_most_one_group():
    assert rows_by_label(pd.Series([None, None])) == {"(missing)": 2}
    assert rows_by_label(pd.Series([], dtype=object)) == {}


@pytest.mark.parametrize("cells", [["a", "b"], [1, 2], ["2023-01-01", "2023-02-01"]])
def test_every_second_person_is_kept_over_pieces(cells):
    column = counted(pd.Series(cells * 3), pd.Series(cells * 4 + cells[:1]))
    before = column.cut().sample
    column.thin()
    assert column.cut().sample.tolist() == before[::2].tolist()
