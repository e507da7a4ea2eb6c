"""Which column of a table has the addresses of its people."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.errors import ColumnError
from mailverdict.table.choose_column import LOOKED_AT, choose_column, look_at
from tests.doubles.tables import each_row

ADDRESSES = ["ada@example.org", "Bob <bob@example.org>", None, ""]


def people(count, *, of=None, at="firm.example"):
    """Different addresses, and empty cells up to `of` rows."""
    filled = [f"p{number}@{at}" for number in range(count)]
    return filled + [""] * ((of or count) - count)


def staff(rows, different=2):
    """A few addresses that stand in every row."""
    return [f"rep{number % different}@shop.example" for number in range(rows)]


def choose(columns):
    return choose_column(columns).name()


class TestByName:
    @each_row(
        "other",
        ["owner", "Reservation Email", "buyer", "added_by", "createdBy", "Sales Rep", "担当者"],
    )
    def test_a_full_column_of_a_role_does_not_win_over_email_with_gaps(self, other):
        columns = {other: staff(1_500), "email": people(1_310, of=1_500)}
        choice = choose_column(columns)
        assert choice.name() == "email"
        figures = "column email: 1,310 of 1,500 rows filled, 1,310 different addresses"
        named = f"addresses are also in {other} (1,500 filled, 2 different)"
        assert choice.describe() == f"{figures}; {named}"

    def test_a_column_without_a_name_of_email_comes_before_one_of_a_role(self):
        columns = {"owner": people(100, at="shop.example"), "username": people(100)}
        assert choose(columns) == "username"

    def test_a_name_of_email_comes_before_none(self):
        columns = {"username": people(100, at="login.example"), "E-Mail": people(60, of=100)}
        assert choose(columns) == "E-Mail"

    def test_a_named_column_with_few_addresses_does_not_win_alone(self):
        columns = {"username": people(100, at="login.example"), "email": people(9, of=100)}
        choice = choose_column(columns)
        assert choice.name() == "username"
        assert [other.name for other in choice.others] == ["email"]

    def test_a_column_of_a_role_does_not_win_over_few_addresses_in_silence(self):
        columns = {"owner": staff(100, different=50), "email": people(5, of=100)}
        with pytest.raises(ColumnError, match=r"owner \(.*\) or email \("):
            choose(columns)

    def test_a_column_of_a_role_does_not_win_beside_an_empty_column_of_email(self):
        with pytest.raises(ColumnError, match=r"owner \(.*\) or email \(no filled cell\)"):
            choose({"owner": staff(100), "email": [""] * 100})

    def test_a_column_of_a_role_alone_is_taken_and_said(self):
        choice = choose_column({"id": list(range(30)), "Billing Email": people(30)})
        assert choice.name() == "Billing Email"
        assert "by its name they may be somebody else's" in choice.describe()
        assert not choice.is_sure
        with pytest.raises(ColumnError, match="may be of somebody else"):
            choice.require_sure()

    def test_the_only_column_is_sure_whatever_its_name(self):
        assert choose_column({"added_by": people(3)}).require_sure() == "added_by"

    def test_the_name_decides_where_there_are_no_cells(self):
        assert choose({"name": [], "E-Mail": []}) == "E-Mail"
        assert choose({"name": ["Ada"], "email": [None]}) == "email"
        with pytest.raises(ColumnError):
            choose({"name": ["Ada"], "email": ["nobody"]})
        with pytest.raises(ColumnError):
            choose({"home email": [], "work email": []})
        assert choose({"email": [], "Email opt-in": []}) == "email"

    def test_the_name_decides_where_addresses_are_within_text(self):
        assert choose({"note": ["call c@d.org now"], "email": ["write to a@b.org"]}) == "email"

    def test_words_for_a_missing_address_do_not_exclude_a_named_column(self):
        cells = people(20) + ["Information Requested"] * 80
        assert choose({"owner": staff(100), "Email": cells}) == "Email"


class TestByNumber:
    def test_of_one_rank_the_column_with_more_different_addresses_wins(self):
        columns = {"work email": staff(100, different=40), "private email": people(90, of=100)}
        assert choose(columns) == "private email"

    def test_two_columns_of_one_rank_are_ambiguous(self):
        columns = {
            "work email": people(90, of=100),
            "home email": people(95, of=100, at="home.example"),
        }
        choice = choose_column(columns)
        assert choice.is_ambiguous
        assert {each.name for each in choice.doubted} == {"work email", "home email"}
        with pytest.raises(ColumnError, match=r"home email \(95 of 100 rows .* or work email \(90"):
            choice.name()

    def test_the_plain_name_of_two_is_meant(self):
        columns = {
            "work email": people(95, of=100, at="firm2.example"),
            "email": people(90, of=100),
        }
        choice = choose_column(columns)
        assert choice.name() == "email"
        assert [other.name for other in choice.others] == ["work email"]

    def test_the_plain_name_is_meant_also_beside_two_others(self):
        columns = {
            "work email": people(100, at="firm2.example"),
            "home email": people(98, of=100, at="home.example"),
            "email": people(95, of=100),
        }
        assert choose(columns) == "email"

    def test_two_columns_with_the_same_addresses_are_not_ambiguous(self):
        assert choose({"work": ADDRESSES, "home": ADDRESSES}) == "work"

    def test_a_second_column_with_few_addresses_is_not_ambiguous(self):
        columns = {
            "work email": people(90, of=100),
            "home email": people(9, of=100, at="h.example"),
        }
        assert choose(columns) == "work email"

    def test_the_case_of_an_address_makes_no_other_one(self):
        found = look_at("email", ["Ada@x.example", "ada@X.example ", "bo@x.example"])
        assert found.different == 2


class TestCells:
    def test_a_column_that_mentions_addresses_is_none(self):
        columns = {
            "id": [1, 2, 3, 4],
            "notes": ["wrote to x@example.org", "called", "left", "ada@example.org"],
            "contact": ADDRESSES,
            "web": ["https://example.org/@ada", "http://x.org", None, None],
        }
        assert choose(columns) == "contact"

    def test_few_rows_are_enough_where_nothing_else_has_addresses(self):
        assert (
            choose({"id": [1, 2, 3, 4, 5], "mail": ["a@x.org", None, None, None, None]}) == "mail"
        )

    @each_row(
        "written",
        [
            ["mail_clean"],
            ["mail_normalized", "mail_suggestion"],
            ["mail_identity"],
            ["x_verdict", "x_status", "x_suggestion"],
            ["x_identity", "x_duplicate_of"],
        ],
    )
    def test_a_column_that_was_written_by_us_is_not_taken(self, written):
        full = ["a@x.org", "b@x.org"]
        assert choose({**dict.fromkeys(written, full), "mail": ["a@x.org", ""]}) == "mail"
        assert choose({"mail_clean": full, "id": [1, 2]}) == "mail_clean"

    @each_row(
        "cells",
        [
            *(
                ["a@b.org; c@d.org"],
                ["Email: a@b.org"],
                ["ada [at] b.org"],
                ["; ".join(["a@b.org"] * 1_000)],
            ),
            pa.array([["a@b.org"], ["a@b.org", "c@d.org"]]),
        ],
    )
    def test_messy_cells_are_addresses_too(self, cells):
        assert choose({"note": ["call ada@b.org on Monday"], "contact": cells}) == "contact"

    @given(st.lists(st.text("ab@. []()at;<>=:\n", max_size=20) | st.none(), max_size=5))
    def test_all_kinds_of_cells_are_read_alike(self, cells):
        expected = look_at("x", cells)
        for kind in (pa.string(), pa.large_string()):
            found = look_at("x", pa.array(cells, kind))
            assert (found is None) == (expected is None)
            if found is not None:
                assert found.describe() == expected.describe()

    @pytest.mark.slow
    def test_only_the_first_rows_are_looked_at_and_that_is_said(self):
        late = [None] * LOOKED_AT + ADDRESSES
        with pytest.raises(ColumnError):
            choose({"late": pd.Series(late)})
        early = pd.Series(["a@x.example"] * (LOOKED_AT + 1), index=range(5, LOOKED_AT + 6))
        assert "of the first 100,000 rows filled" in choose_column({"early": early}).describe()
        assert "of the first 1 rows" in choose_column({"e": ["a@x.org"]}, is_whole=False).describe()

    @each_row(
        "columns", [{"a": []}, {"a": [None], "b": [1]}, {"a": ["x", "y", "ada@example.org", "z"]}]
    )
    def test_no_likely_column_is_told(self, columns):
        with pytest.raises(ColumnError, match="no column looks like e-mail addresses; name one of"):
            choose(columns)

    def test_a_table_without_columns_is_told(self):
        with pytest.raises(ColumnError, match="no columns to choose from"):
            choose({})
