"""The plain summary: every row is counted once, wherever it stands."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mailverdict as mv
from mailverdict.errors import ColumnError, SettingsError
from mailverdict.frames.results import BUCKETS
from mailverdict.reports.deprecated import by_domain
from mailverdict.table.columns import STATUS_DTYPE, VERDICT_DTYPE
from tests.doubles.tables import each_row

CELLS = [
    "ada@x.org",
    "Ada@X.org",
    "ada@X.ORG ",
    "bob@y.org",
    "nobody",
    "a..b@x.org",
    None,
    7,
    "\ud800@x.org",
    "",
]


def verified(cells=CELLS, **options):
    frame = pd.DataFrame({"email": pd.Series(cells, dtype=object)})
    return mv.verify(frame, "email", **{"validation_type": "regex", **options})


def made(buckets, details=None):
    """A verified frame as it might come from a service."""
    verdicts = [b if b in BUCKETS[:4] else None for b in buckets]
    return pd.DataFrame(
        {
            "email": [f"a{n}@x.org" for n in range(len(buckets))],
            "email_verdict": pd.Categorical(verdicts, dtype=VERDICT_DTYPE),
            "email_status": pd.Categorical(
                ["done" if b in BUCKETS[:4] else b for b in buckets], dtype=STATUS_DTYPE
            ),
            "email_details": pd.Series(details or [None] * len(buckets), dtype="string"),
        }
    )


def test_rows_and_distinct_addresses_by_bucket():
    table = mv.summary(verified(), "email")
    assert table.index.tolist() == list(BUCKETS)
    assert table.index.name == "bucket"
    assert table["rows"].to_dict() == dict.fromkeys(BUCKETS, 0) | {
        "valid": 4,
        "invalid": 4,
        "missing": 2,
    }
    # "Ada@" is another local part than "ada@".
    assert table["addresses"].to_dict() == dict.fromkeys(BUCKETS, 0) | {"valid": 3, "invalid": 4}
    assert table["share"].sum() == pytest.approx(1)
    assert table.dtypes.astype(str).to_dict() == {
        "rows": "int64",
        "share": "float64",
        "addresses": "int64",
        "top_reason": "object",
    }


@pytest.mark.slow
@given(st.lists(st.sampled_from(BUCKETS)))
def test_every_row_is_in_one_bucket(buckets):
    table = mv.summary(made(buckets), "email")
    assert table["rows"].to_dict() == {b: buckets.count(b) for b in BUCKETS}
    domains = by_domain(made(buckets), "email")
    assert domains["rows"].sum() == len(buckets)
    assert domains[list(BUCKETS)].sum(axis=1).tolist() == domains["rows"].tolist()


def test_the_most_frequent_reason_of_each_bucket():
    table = mv.summary(
        made(["unknown"] * 3 + ["risky"], ["timeout", "greylisted", "timeout", "role"]), "email"
    )
    assert table["top_reason"].to_dict() == dict.fromkeys(BUCKETS) | {
        "unknown": "timeout",
        "risky": "role",
    }


def test_a_verdict_counts_only_where_the_status_is_done():
    frame = made(["valid", "valid"])
    frame["email_status"] = pd.Categorical(["done", "error"], dtype=STATUS_DTYPE)
    assert mv.summary(frame, "email")["rows"].to_dict() == dict.fromkeys(BUCKETS, 0) | {
        "valid": 1,
        "error": 1,
    }


@each_row("cells", [[], [None, ""]], ids=len)
def test_nothing_to_count_gives_all_buckets(cells):
    table = mv.summary(verified(cells), "email")
    assert table["rows"].sum() == len(cells)
    assert by_domain(verified(cells), "email").shape == (0, 1 + len(BUCKETS))


def test_an_index_of_any_kind_does_not_matter():
    frame = verified()
    odd = frame.set_axis([3] * len(frame))
    pd.testing.assert_frame_equal(mv.summary(odd, "email"), mv.summary(frame, "email"))
    pd.testing.assert_frame_equal(by_domain(odd, "email"), by_domain(frame, "email"))


def test_domains_by_rows_then_by_name():
    table = by_domain(verified(), "email", top=2)
    assert table["rows"].to_dict() == {"x.org": 5, "y.org": 1}
    assert table.loc["x.org", ["valid", "invalid"]].tolist() == [3, 2]
    assert table.index.name == "domain"
    assert {str(dtype) for dtype in table.dtypes} == {"int64"}


def test_another_prefix_is_named_in_the_error():
    out = verified(prefix="e_")
    assert mv.summary(out, "email", prefix="e_").loc["valid", "rows"] == 4
    with pytest.raises(
        ColumnError,
        match="no column 'email_verdict': verify 'email' first, or give the prefix that",
    ):
        mv.summary(out, "email")


@pytest.mark.parametrize("function", [mv.summary, by_domain])
class TestWrongInput:
    def test_a_column_that_is_not_there_once(self, function):
        with pytest.raises(ColumnError, match="no column 'mail'"):
            function(verified(), "mail")
        twice = pd.DataFrame([["a", "b"]], columns=["email", "email"])
        with pytest.raises(ColumnError, match="occurs 2 times"):
            function(twice, "email")

    def test_a_frame_that_was_not_verified(self, function):
        with pytest.raises(ColumnError, match="verify 'email' first"):
            function(pd.DataFrame({"email": CELLS}), "email")

    def test_a_column_without_a_frame_is_refused(self, function):
        with pytest.raises(
            SettingsError,
            match="goes with a frame, but data is a list: give the frame that verify returned",
        ):
            function(["ada@x.org"], "email")


def test_rows_of_a_join_without_results_are_pending_or_missing():
    results = mv.verify(
        pd.DataFrame({"email": ["ada@one.example", "nobody"]}), "email", validation_type="regex"
    )
    contacts = pd.DataFrame({"email": ["ada@one.example", "new@one.example", None, "nobody"]})
    joined = contacts.merge(results, on="email", how="left")
    rows = mv.summary(joined, "email")["rows"]
    assert rows[rows > 0].to_dict() == {"valid": 1, "invalid": 1, "pending": 1, "missing": 1}
    assert by_domain(joined, "email").loc["one.example", ["valid", "pending"]].tolist() == [1, 1]
    assert mv.decide(joined, "email")["email_action_why"].tolist()[1:3] == [
        "no check has reached the row yet",
        "the cell holds no address",
    ]
