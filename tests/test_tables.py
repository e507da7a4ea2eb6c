"""The tables of cases that other tests use."""

import pytest

from tests.doubles.tables import crossed, each_row


def test_each_row_that_fails_is_listed_and_the_others_are_tried():
    seen = []

    @each_row("number", [1, 2, 3])
    @each_row(("first", "second"), [(1, 2), pytest.param(1, 1)], ids=["differs", "same"])
    def compare(number, first, second):
        seen.append(number)
        assert first == second or number == 2

    with pytest.raises(AssertionError, match="2 of 3 rows fail") as failed:
        compare()
    assert seen == [1, 1, 2, 2, 3, 3]
    lines = str(failed.value)
    assert [label for label in ("(1,)", "(2,)", "(3,)", "differs", "same") if label in lines] == [
        "(1,)",
        "(3,)",
        "differs",
    ]


def test_every_value_is_in_a_row_that_is_not_slow():
    rows = crossed("ab", [1, 2, 3])
    assert [row.values for row in rows] == [
        ("a", 1),
        ("a", 2),
        ("a", 3),
        ("b", 1),
        ("b", 2),
        ("b", 3),
    ]
    assert [row.values for row in rows if not row.marks] == [("a", 1), ("a", 3), ("b", 2)]
