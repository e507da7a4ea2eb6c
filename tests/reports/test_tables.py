"""Tables of counts in a notebook."""

from __future__ import annotations

import pandas as pd

import mailverdict as mv
from mailverdict.reports.tables import MOST_ROWS, CountTable

DF = pd.DataFrame({"email": ["ada@example.org", "info@example.org", "no at sign", None] * 300})
OUT = mv.verify(DF, "email", validation_type="regex")


def test_a_summary_is_words_percent_and_thousands():
    page = mv.summary(OUT, "email")._repr_html_()
    assert "Valid</span>" in page
    assert "50.0%" in page
    assert '<td class="mv-number mv-soft">0</td>' in page
    assert ">NaN<" not in page
    assert ">None<" not in page


def test_what_is_computed_from_it_is_a_plain_frame():
    found = mv.summary(OUT, "email")
    assert isinstance(found, pd.DataFrame)
    assert type(found[["rows"]]) is pd.DataFrame
    assert type(found.reset_index()) is pd.DataFrame
    assert repr(found) == repr(pd.DataFrame(found))


def test_texts_of_others_are_escaped_and_a_long_table_is_cut():
    names = pd.Index(
        ["<img src=x>", *(f"d{n}.example" for n in range(MOST_ROWS + 9))], name="domain"
    )
    page = CountTable({"rows": range(len(names)), "top_reason": "<b>"}, index=names)._repr_html_()
    assert "<img" not in page
    assert "<b>" not in page
    assert "and 10 more rows" in page


def test_shares_of_outcomes_are_percent():
    columns = {"address": "address", "outcome": "outcome", "diagnostic": "reply"}
    report = pd.DataFrame(
        {"address": ["ada@example.org"], "outcome": ["hard"], "reply": ["550 5.1.1 User unknown"]}
    )
    page = mv.outcomes(OUT, "email", mv.read_bounces(report, columns=columns))._repr_html_()
    assert "50.0%" in page
    assert "Valid</span>" in page
