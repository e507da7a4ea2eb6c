"""Columns that say no, and rows that a user wants to be taken off by a column."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

from mailverdict.errors import SettingsError
from mailverdict.table.column_names import read_table
from mailverdict.table.refusals import WhereRule, find_refusals, kind_of_name, parse_where
from tests.doubles.tables import each_row


def found_in(name, cells):
    """The values of a column that say no, with their rows."""
    return [dict(refusal.values) for refusal in find_refusals({name: cells})]


@each_row(
    ("name", "cells", "values"),
    [
        ("Unsubscribed from all email", [True, False, None, True], {"True": 2}),
        ("Unsubscribed from all email", ["TRUE", "", "FALSE"], {"TRUE": 1}),
        ("opt_out", ["1", "0", ""], {"1": 1}),
        ("HasOptedOutOfEmail", ["true", "false"], {"true": 1}),
        ("Email Opt-in", ["No", "Yes", ""], {"No": 1}),
        ("Accepts Email Marketing", ["yes", "no", "no"], {"no": 2}),
        ("accepts_marketing", ["false", "true"], {"false": 1}),
        ("Marketing contact status", ["Marketing contact", "Non-marketing contact"],
         {"Non-marketing contact": 1}),
        ("Status", ["subscribed", "Unsubscribed", "cleaned", "cleaned"],
         {"cleaned": 2, "Unsubscribed": 1}),
        ("Email Marketing Consent", ["SUBSCRIBED", "UNSUBSCRIBED", "NEVER_SUBSCRIBED"],
         {"UNSUBSCRIBED": 1}),
        ("emailBlacklisted", ["true", "false"], {"true": 1}),
        ("bounced", ["yes", ""], {"yes": 1}),
        ("do not contact", ["x", ""], {"x": 1}),
        ("abgemeldet", ["ja", "nein"], {"ja": 1}),
        ("Newsletter abbestellt", ["Ja", ""], {"Ja": 1}),
        ("Werbesperre", ["Ja", "Nein"], {"Ja": 1}),
        ("Ne pas contacter", ["oui", "non"], {"oui": 1}),
        ("Markkinointikielto", ["ei", "kyllä"], {"kyllä": 1}),
        ("Uutiskirje", ["ei", "kyllä"], {"ei": 1}),
        ("Abgemeldet", ["WAHR", "FALSCH"], {"WAHR": 1}),
        ("配信停止", ["はい", ""], {"はい": 1}),
        ("수신거부", ["예", "아니요"], {"예": 1}),
        ("Do not allow Bulk Emails", ["1", "0"], {"1": 1}),
        ("status", ["Désabonné·e", "Abonné·e", "Отписан"], {"Désabonné·e": 1, "Отписан": 1}),
        ("I do not want the newsletter", ["yes", "no"], {"yes": 1}),
    ],
)  # fmt: skip
def test_a_column_that_says_no_is_found_with_its_rows(name, cells, values):
    assert found_in(name, cells) == [values]


@each_row(
    ("name", "cells"),
    [
        ("Unsubscribed", ["", None, "no"]),
        ("Accepts SMS Marketing", ["no", "yes"]),
        ("DoNotCall", ["true", "false"]),
        ("Status", ["pending", "active", "inactive", "declined"]),
        ("order status", ["unsubscribed"]),
        ("Marketing emails bounced", ["1", "0"]),
        ("bounced", ["0", "1", "7"]),
        ("Unsubscribe reason", ["no"]),
        ("email", ["no"]),
        ("Photo consent", ["no"]),
        ("Kurs", ["abgesagt", "angemeldet"]),
        ("Status", ["cancelado", "inscrito"]),
        ("Consent", ["NEVER_SUBSCRIBED", ""]),
    ],
)
def test_what_is_no_written_no_is_not_found(name, cells):
    assert found_in(name, cells) == []


def test_a_name_of_both_kinds_is_of_what_is_refused():
    assert str(kind_of_name("Newsletter unsubscribed")) == "refused"
    assert str(kind_of_name("Subscribed to newsletter")) == "allowed"


def test_more_than_half_of_the_rows_is_said():
    (refusal,) = find_refusals({"Newsletter": ["no", "no", "yes"]})
    assert refusal.is_most
    assert refusal.describe() == ("Newsletter: 2 rows say no; that is more than half of the 3 rows")


class TestWhere:
    @each_row(
        ("value", "cells"),
        [
            (True, [True, None, False]),
            (True, ["Yes", "", "no"]),
            ("true", [1.0, None, 0.0]),
            ("1", pa.array([True, None, False])),
            (1, ["y", None, "n"]),
            ("un subscribed", ["Un-Subscribed ", None, "subscribed"]),
            ("cleaned", ["CLEANED", "  ", "clean"]),
        ],
    )
    def test_cells_are_compared_without_case_and_a_yes_is_a_yes(self, value, cells):
        column = pd.Series(cells) if isinstance(cells, list) else cells
        assert WhereRule("x", (value,)).find(column).to_pylist() == [True, False, False]

    def test_a_value_that_no_row_has_is_an_error_with_those_there_are(self):
        rule = WhereRule("Status", ("gone",))
        counts = {"subscribed": 3, "cleaned": 1}
        with pytest.raises(SettingsError, match=r"'gone'; it has 'subscribed', 'cleaned'"):
            rule.refuse(rule.absent(counts), counts)

    @each_row("where", [{}, None, "Status", {"Status": []}, {"Status": ""}, {"Status": [None]}])
    def test_what_is_no_rule_is_an_error(self, where):
        with pytest.raises(SettingsError, match="where"):
            parse_where(where)


@pytest.mark.parametrize("kind", ["name", "word"])
def test_each_row_of_the_table_has_a_source(kind):
    for row in read_table("refusals.toml")[kind]:
        assert row["service"]
        assert row["words"]
        assert row["seen"]
        assert "by hand" not in row["source"]
