"""`breakdown`: people by the columns of the user's, and the columns by what they say."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.errors import ColumnError, SettingsError
from mailverdict.frames.policy import POLICIES, read_decided
from mailverdict.reports.breakdown import table_of_counts
from mailverdict.reports.origins import ListCounts
from mailverdict.reports.outcomes import wilson_interval
from tests.doubles.simulated_origins import simulated_list
from tests.doubles.tables import each_row


def verified(**columns):
    return mv.verify(pd.DataFrame(columns), "email", validation_type="regex")


def sources():
    """Of 40 people from the fair 12 are invalid, of 160 from the website 8; 20 rows have no address."""
    right = [f"p{number}@firm.example" for number in range(180)]
    wrong = [f"p{number}@firm" for number in range(20)]
    return verified(
        email=[*right[:28], *wrong[:12], *right[28:], *wrong[12:], *[None] * 20],
        source=["fair"] * 40 + ["web"] * 160 + ["fair"] * 20,
        country=(["DE", "FR", "DE", "IT"] * 55),
        language=(["de", "fr", "de", "it"] * 55),
        note=[f"called on {number}" for number in range(220)],
        id=range(1, 221),
        constant=["x"] * 220,
    )


class TestGroups:
    def test_people_are_counted_by_group_the_worst_first(self):
        found = mv.breakdown(sources(), "source")
        assert found.index.tolist() == ["fair", "web"]
        assert found.index.name == "source"
        assert found["rows"].tolist() == [60, 160]
        assert found["people"].tolist() == [40, 160]
        assert found["invalid"].tolist() == [12, 8]
        assert found["sendable"].tolist() == [28, 152]
        assert found["unknown"].tolist() == [0, 0]
        assert found["invalid_share"].tolist() == [0.3, 0.05]
        assert tuple(found.loc["fair", ["invalid_low", "invalid_high"]]) == wilson_interval(12, 40)
        assert found["elsewhere"].tolist() == [0.05, 0.3]
        assert found["above"].tolist() == pytest.approx([8, -8])
        assert 0.2 < found.loc["fair", "difference"] < 0.25
        assert found.dtypes[["rows", "people", "invalid", "sendable"]].tolist() == ["int64"] * 4

    def test_who_is_in_several_rows_counts_once_with_the_first_that_has_a_verdict(self):
        out = verified(
            email=[
                "a.da@gmail.com",
                "ada+x@googlemail.com",
                "bo@x.org",
                "bo@x.org",
                "cy@x",
                "cy@x",
            ],
            owner=["ann", "bob", "ann", "ann", "bob", "ann"],
        )
        found = mv.breakdown(out, "owner")
        assert found["rows"].to_dict() == {"ann": 4, "bob": 2}
        assert found["people"].to_dict() == {"ann": 2, "bob": 1}
        out.loc[2, ["email_verdict", "email_status"]] = [None, "pending"]
        assert mv.breakdown(out, "owner")["people"].to_dict() == {"ann": 2, "bob": 1}

    def test_the_shares_sum_up_and_the_order_of_rows_does_not_matter_without_repeats(self):
        out = sources()
        shuffled = out.sample(frac=1, random_state=3)
        for by in ("source", "country", "domain"):
            pd.testing.assert_frame_equal(mv.breakdown(out, by), mv.breakdown(shuffled, by))
            assert mv.breakdown(out, by)["people"].sum() == 200

    def test_two_columns_are_crossed(self):
        found = mv.breakdown(sources(), ["source", "country"])
        assert found.index.names == ["source", "country"]
        assert found.loc[("fair", "DE"), "rows"] == 30
        assert found["people"].sum() == 200
        assert len(found) == 6

    def test_empty_cells_are_a_group_of_their_own(self):
        out = verified(email=["a@x.org", "b@x.org", "c@x.org"], owner=["ann", None, ""])
        assert mv.breakdown(out, "owner")["rows"].to_dict() == {"(missing)": 2, "ann": 1}

    def test_dates_and_numbers_are_grouped(self):
        days = [datetime.date(2023, 1 + at % 3, 5) for at in range(60)]
        out = verified(
            email=[f"p{at}@x.org" for at in range(60)], day=days, worth=np.arange(60) * 1.5
        )
        assert sorted(mv.breakdown(out, "day").index) == ["2023-01", "2023-02", "2023-03"]
        assert mv.breakdown(out, "worth")["rows"].tolist() == [12] * 5

    def test_domains_and_operators_are_made_of_the_addresses(self):
        out = sources()
        assert mv.breakdown(out, "domain")["invalid"].to_dict() == {
            "firm": 20,
            "(missing)": 0,
            "firm.example": 0,
        }
        with pytest.raises(ColumnError, match="verify with columns='all'"):
            mv.breakdown(out, "operator")
        out["email_operator"] = ["bigmail"] * 28 + [None] * 192
        out.loc[[0, 1], ["email_verdict", "email_why"]] = ["unknown", "greylisted"]
        found = mv.breakdown(out, "operator")
        assert found.loc["bigmail", ["clear", "deferred", "catch_all", "refused"]].tolist() == [
            *(26, 2, 0, 0)
        ]
        assert found.loc["bigmail", "note"] is None
        assert found.loc["(missing)", ["clear", "dead"]].isna().all()

    def test_a_column_of_the_users_own_wins_and_says_so(self):
        out = sources().assign(domain=["mine", "yours"] * 110)
        with pytest.warns(UserWarning, match="'domain' is a column of yours, and is counted"):
            found = mv.breakdown(out, "domain")
        assert sorted(found.index) == ["mine", "yours"]

    def test_top_gives_the_first_lines_with_the_figures_of_all(self):
        whole, first = mv.breakdown(sources(), "source"), mv.breakdown(sources(), "source", top=1)
        pd.testing.assert_frame_equal(whole.head(1), pd.DataFrame(first), check_frame_type=False)
        assert repr(first).splitlines()[0] == "200 people, 10.0% invalid"

    def test_a_group_without_verdicts_has_no_share(self):
        out = verified(email=["a@x.org", None], owner=["ann", "bob"])
        line = mv.breakdown(out, "owner").loc["bob"]
        assert (line["rows"], line["people"]) == (1, 0)
        assert np.isnan(line["invalid_share"])


class TestWhat:
    def test_what_is_bad_is_chosen(self):
        out = verified(
            email=["a@x.org", "b@mailinator.com", "info@x.org", "nobody"] * 5 + ["c@x.org"] * 4,
            owner=["ann"] * 20 + ["bob"] * 4,
        )
        out["email"] = [f"{at}{cell}" for at, cell in enumerate(out["email"])]
        out = mv.verify(out[["email", "owner"]], "email", validation_type="regex")
        found = mv.breakdown(out, "owner", what="disposable")
        assert found["disposable"].to_dict() == {"ann": 5, "bob": 0}
        assert found.loc["ann", "elsewhere"] == 0
        found = mv.breakdown(out, "owner", what="not_sendable")
        assert found["not_sendable"].to_dict() == {"ann": 10, "bob": 0}

    def test_bounces_are_matched_by_mailbox(self):
        out = verified(
            email=["ada@gmail.com", "bo@x.org", "cy@x.org", "nobody"],
            owner=["ann", "ann", "bob", "bob"],
        )
        reports = pd.DataFrame(
            {
                "who": ["A.da@gmail.com", "zoe@x.org", "bo@x.org"],
                "reply": ["550 5.1.1", "550 5.1.1", "452 4.2.2"],
            }
        )
        columns = {"address": "who", "diagnostic": "reply"}
        bounces = mv.read_bounces(reports, columns=columns)
        found = mv.breakdown(out, "owner", what="bounced", bounces=bounces)
        assert found["bounced"].to_dict() == {"ann": 1, "bob": 0}
        assert found["people"].to_dict() == {"ann": 2, "bob": 1}
        assert "all people with an address count as mailed" in repr(found)


class TestRanking:
    def test_a_column_that_differs_comes_first_in_a_sentence_each(self):
        found = mv.breakdown(sources())
        assert found.index[0] == "source"
        assert found.loc["source", "says"] == "differs"
        assert found.loc["source", "worst"] == "source “fair”: 30.0% invalid of 40, elsewhere 5.0%"
        assert found.loc["source", "best"] == "source “web”: 5.0% invalid of 160, elsewhere 30.0%"
        assert found.loc["source", "strength"] > 0.3
        assert found.loc["source", "adjusted"] < 0.001

    def test_columns_that_say_nothing_or_are_left_out_are_named(self):
        found = mv.breakdown(sources())
        assert found["says"].drop("source").to_dict() == {
            "country": "nothing",
            "language": "nothing",
            "note": "left out: nearly every row has a value of its own",
            "id": "left out: nearly every row has a value of its own",
            "constant": "left out: one value",
        }
        assert repr(found).splitlines() == [
            "200 people, 10.0% invalid",
            "source “fair”: 30.0% invalid of 40, elsewhere 5.0%",
            "source “web”: 5.0% invalid of 160, elsewhere 30.0%",
            "say nothing: country, language",
            "left out: note, id (nearly every row has a value of its own); constant (one value); "
            "the verified column and the result columns",
            "20 rows without a verdict (no address, or not checked) count as rows only",
        ]

    def test_two_columns_that_tell_the_same_are_told_once(self):
        out = sources()
        out["campaign"] = [
            f"{name} {at % 2}" if name == "fair" else name for at, name in enumerate(out["source"])
        ]
        found = mv.breakdown(out)
        assert sorted(found["says"][["source", "campaign"]]) == ["differs", "the same as source"]
        assert "campaign and source say the same" in repr(found)

    def test_results_of_every_verified_column_are_left_out_and_columns_of_like_names_not(self):
        out = sources()
        out["other"] = out["email"]
        out = mv.verify(out, "other", validation_type="regex")
        out["email_source"] = ["a", "b"] * 110  # a name of ours, but not noted as written by us
        found = mv.breakdown(out, column="email")
        assert "email_source" in found.index
        assert not [name for name in found.index if name.endswith(("_verdict", "_status", "_role"))]

    def test_too_few_bad_people_are_not_compared(self):
        out = verified(
            email=[f"p{at}@x.org" for at in range(50)] + ["nobody"], owner=["ann", "bob", "cy"] * 17
        )
        shown = repr(mv.breakdown(out))
        assert "1 invalid and 50 other people: too few to compare columns" in shown
        assert "say nothing: owner" in shown

    def test_a_sure_but_tiny_difference_says_little(self):
        size = 60_000
        is_bad = np.zeros(2 * size, np.bool_)
        is_bad[: size // 20] = True
        is_bad[size : size + round(size * 0.0565)] = True
        frame = pd.DataFrame(
            {
                "email": [f"p{at}@x.org" for at in range(2 * size)],
                "half": ["a"] * size + ["b"] * size,
                "email_verdict": np.where(is_bad, "invalid", "valid"),
                "email_status": "done",
                "email_why": pd.Series(np.where(is_bad, "no_mx_record", None), dtype=object),
                "email_suggestion": pd.Series([None] * 2 * size, dtype=object),
                "email_disposable": False,
                "email_spamtrap": False,
            }
        )
        found = mv.breakdown(frame, column="email")
        assert found.loc["half", "says"] == "little"
        assert "differ by less than a percentage point: half" in repr(found)

    def test_lists_without_an_effect_hardly_ever_name_a_column(self):
        named = [
            (mv.breakdown(simulated_list(seed, 500))["says"] == "differs").any()
            for seed in range(20)
        ]
        assert sum(named) <= 3

    def test_a_bad_source_is_found(self):
        for seed in range(5):
            found = mv.breakdown(simulated_list(seed, has_effect=True))
            assert found.index[0] == "source"
            assert found.loc["source", "worst"].startswith("source “Fair”: ")

    @pytest.mark.slow
    def test_of_many_lists_few_name_a_column_by_chance_and_nearly_all_a_bad_source(self):
        named = found = 0
        for seed in range(200):
            named += (mv.breakdown(simulated_list(seed, 800))["says"] == "differs").any()
            out = simulated_list(seed, 800, has_effect=True)
            found += mv.breakdown(out)["says"]["source"] == "differs"
        assert named <= 20
        assert found >= 190


class TestKinds:
    @each_row("make", [lambda out: out, pl.from_pandas, pa.Table.from_pandas])
    def test_frames_of_any_kind_give_the_same(self, make):
        out = sources()
        for by in (None, "source", ["source", "country"], "domain"):
            found = mv.breakdown(make(out), by, column="email")
            if not isinstance(found, pd.DataFrame):
                found = found.to_pandas()
            expected = mv.breakdown(out, by)
            if list(found.columns) != list(expected.columns):
                expected = expected.reset_index()
            values, wanted = (
                frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
                for frame in (found, expected)
            )
            assert values == wanted

    def test_pieces_add_up_to_the_whole(self):
        out = simulated_list(4, has_effect=True)
        whole = mv.breakdown(out)
        for asked in ([], ["source"], ["amount"]):
            counts = ListCounts(POLICIES["balanced"], asked=asked, ranks=not asked)
            for start in range(0, len(out), 400):
                counts.add(read_decided(out[start : start + 400], "email", None))
            expected = mv.breakdown(out, asked[0]) if asked else whole
            pd.testing.assert_frame_equal(table_of_counts(counts, "invalid"), expected)

    def test_a_frame_without_rows_has_no_lines(self):
        out = sources().iloc[:0]
        assert len(mv.breakdown(out, "source")) == 0
        assert "0 people, 0% invalid" in repr(mv.breakdown(out, "source"))
        assert set(mv.breakdown(out)["says"]) == {"left out: no values"}

    def test_the_frame_of_the_caller_stays(self):
        out = sources()
        before = out.copy()
        mv.breakdown(out)
        pd.testing.assert_frame_equal(out, before)


class TestShown:
    def test_text_of_others_is_escaped_in_notebooks_and_on_terminals(self):
        out = sources().assign(**{"<b>source": ["<script>\x1b[2J", "web"] * 110})
        groups = mv.breakdown(out, "<b>source")
        assert "<script>" not in groups._repr_html_()
        assert "&lt;script&gt;" in groups._repr_html_()
        assert "\x1b" not in repr(groups)
        out["<b>source"] = np.where(out["source"] == "fair", "<script>\x1b[2J", "web")
        ranks = mv.breakdown(
            out[["email", "<b>source", *[name for name in out if name.startswith("email_")]]]
        )
        assert "<script>" not in ranks._repr_html_()
        assert "&lt;script&gt;" in ranks._repr_html_()
        assert "\x1b" not in repr(ranks)

    def test_of_many_groups_the_first_are_shown(self):
        out = verified(email=[f"p@x{at}.org" for at in range(50)])
        found = mv.breakdown(out, "domain")
        assert len(found) == 50
        assert "and 20 more groups" in repr(found)
        assert "and 20 more groups" in found._repr_html_()

    def test_what_is_computed_from_a_table_is_a_plain_frame(self):
        found = mv.breakdown(sources(), "source")
        assert type(found[["rows"]]) is pd.DataFrame
        assert "rows" in repr(found[["rows"]])


class TestWrongInput:
    @each_row(
        ("arguments", "error", "message"),
        (
            ({"by": "email"}, ColumnError, "by='email' is the verified column"),
            ({"by": "sorce"}, ColumnError, "by: no column 'sorce' (did you mean 'source'?)"),
            ({"by": ["source", "sorce"]}, ColumnError, "no column 'sorce'"),
            ({"by": ["source", "country", "note"]}, SettingsError, "a list of two to cross them"),
            ({"by": []}, SettingsError, "by=[]: give one column"),
            ({"by": ["source", "source"]}, SettingsError, "names a column twice"),
            ({"by": {"source"}}, SettingsError, "by={'source'}: give the name of a column"),
            ({"by": ("source", "country")}, ColumnError, "by=['source', 'country']"),
            ({"what": "bad"}, SettingsError, "what='bad': give one of invalid, not_sendable"),
            ({"what": "bounced"}, SettingsError, "needs bounces="),
            ({"bounces": "x.csv"}, SettingsError, "goes with what='bounced'"),
            ({"top": -1}, SettingsError, "top=-1"),
            ({"top": True}, SettingsError, "top=True"),
            ({"column": "nothing"}, ColumnError, "nothing"),
        ),
    )
    def test_it_says_what_and_what_to_do(self, arguments, error, message):
        with pytest.raises(error) as caught:
            mv.breakdown(sources(), **arguments)
        assert message in str(caught.value)

    def test_an_error_does_not_list_our_columns(self):
        with pytest.raises(ColumnError) as caught:
            mv.breakdown(sources(), "nothing like it")
        assert "email_verdict" not in str(caught.value)

    def test_a_name_that_occurs_twice_is_left_out_or_refused(self):
        out = sources()
        out = pd.concat([out, out[["country"]]], axis=1)
        assert mv.breakdown(out)["says"]["country"] == "left out: its name occurs twice"
        with pytest.raises(ColumnError, match="occurs 2 times"):
            mv.breakdown(out, "country")
