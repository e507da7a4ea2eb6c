"""The verbs that follow `verify` find the column that was verified, and say so if they cannot."""

from __future__ import annotations

import functools

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mailverdict as mv
from tests.doubles.tables import crossed, each_row

CELLS = {"name": ["Ada", "Bo", "Cy"], "email": ["ada@example.org", "nobody", None]}
BOUNCES = {
    "address": ["ada@example.org"],
    "outcome": ["hard"],
    "diagnostic": ["550 5.1.1 User unknown"],
}


def verified(make=pd.DataFrame, **options):
    return mv.verify(make(CELLS), "email", validation_type="regex", **options)


def as_pandas(frame):
    return frame if isinstance(frame, pd.DataFrame) else frame.to_pandas()


@functools.cache
def bounces():
    return mv.read_bounces(pd.DataFrame(BOUNCES), columns={name: name for name in BOUNCES})


VERBS = {
    "summary": mv.summary,
    "breakdown": lambda out, *column: mv.breakdown(out, "domain", column=next(iter(column), None)),
    "decide": mv.decide,
    "split": lambda out, *column: mv.split(out, *column).send,
    "diff": lambda out, *column: mv.diff(out[:1], out, *column),
    "report": lambda out, *column: pd.DataFrame([mv.report(out, *column)._facts.counts.buckets]),
    "outcomes": lambda out, *column: mv.outcomes(out, *column, bounces=bounces()),
    "contradicted": lambda out, *column: mv.contradicted(out, *column, bounces=bounces()),
    "learn": lambda out, *column: (
        mv.learn(out, *column, bounces=bounces(), mailed=[True] * len(out)).counts
    ),
    "mailing": lambda out, *column: mv.mailing(out, *column).held,
}


@functools.cache
def verified_once(make, columns):
    return verified(make, columns=columns if isinstance(columns, str) else [*columns, "spamtrap"])


SETS_OF_COLUMNS = (
    "core",
    "short",
    ("verdict", "why", "status", "suggestion", "role", "disposable"),
)


# A list whose mailboxes nobody asked about says so before a mailing.
@pytest.mark.filterwarnings(
    "ignore:.*counts? as mailed:UserWarning", "ignore:there is no column:UserWarning"
)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "make", "columns"),
    crossed([*VERBS], [pd.DataFrame, pl.DataFrame, pa.table], SETS_OF_COLUMNS),
)
def test_without_a_column_it_is_the_only_verified_one(verb, make, columns):
    out = verified_once(make, columns)
    pd.testing.assert_frame_equal(as_pandas(VERBS[verb](out)), as_pandas(VERBS[verb](out, "email")))


@pytest.mark.slow
@each_row("label", ["e-mail", 0, ("work", "email")])
def test_a_column_of_any_label_is_found(label):
    frame = pd.DataFrame({"x": CELLS["email"]})
    frame.columns = pd.MultiIndex.from_tuples([label]) if isinstance(label, tuple) else [label]
    out = mv.verify(frame, label, validation_type="regex")
    assert mv.summary(out).equals(mv.summary(out, label))
    assert mv.split(out).drop.equals(mv.split(out, label).drop)


def test_a_stream_is_read_once():
    out = verified(pa.table)
    assert mv.summary(out.to_reader()) == mv.summary(out, "email")


@each_row("make", [pd.DataFrame, pa.table])
def test_the_note_of_the_call_says_what_was_verified_with_another_prefix(make):
    out = verified(make, prefix="mail_")
    pd.testing.assert_frame_equal(
        as_pandas(mv.decide(out)), as_pandas(mv.decide(out, "email", prefix="mail_"))
    )


def test_without_a_note_the_column_of_another_prefix_has_to_be_given():
    with pytest.raises(
        mv.ColumnError, match="give the column that 'mail_verdict' is about, and its prefix='mail_'"
    ):
        mv.summary(verified(pl.DataFrame, prefix="mail_"))


@pytest.mark.slow
@each_row("make", [list, pd.Series])
def test_the_result_of_a_list_or_series_is_about_its_clean_addresses(make):
    out = mv.verify(make(["Ada <ada@x.org>", "bad", None]), validation_type="regex")
    assert mv.summary(out)["rows"].to_dict() == {
        **dict.fromkeys(mv.summary(out).index, 0),
        "valid": 1,
        "invalid": 1,
        "missing": 1,
    }
    assert mv.split(out).send["clean"].to_list() == ["ada@x.org"]
    assert mv.breakdown(out, "domain").index.to_list() == ["x.org", "(missing)"]
    alone = mv.verify(make(["ada@x.org"]), validation_type="regex", clean=False)
    with pytest.raises(
        mv.ColumnError,
        match="the result of a list or a Series, without its addresses: verify a frame",
    ):
        mv.summary(alone)


def test_of_several_verified_columns_one_has_to_be_given():
    out = mv.verify(
        pd.DataFrame({"work": ["a@x.org"], "home": ["b@x.org"]}),
        ["work", "home"],
        validation_type="regex",
    )
    with pytest.raises(
        mv.ColumnError, match="several columns were verified: give one of 'work', 'home'"
    ):
        mv.summary(out)
    assert mv.summary(out, prefix="home_").equals(mv.summary(out, "home"))


@each_row(
    "frame",
    [
        pd.DataFrame(CELLS),
        pd.DataFrame(CELLS).assign(email_verdict=["good", "bad", None], email_status="done"),
        pd.DataFrame(CELLS).assign(email_verdict="valid"),
    ],
)
def test_a_frame_that_was_not_verified_is_an_error(frame):
    with pytest.raises(
        mv.ColumnError, match="no column was verified: verify one first; there are 'name', 'email'"
    ):
        mv.split(frame)


@each_row("data", [pd.Series(["a@x.org"]), ["a@x.org"], None])
def test_what_is_not_a_frame_is_an_error(data):
    with pytest.raises(mv.SettingsError, match="give the frame that verify returned"):
        mv.summary(data)


@each_row("function", [mv.outcomes, mv.contradicted])
def test_outcomes_need_reports(function):
    with pytest.raises(mv.SettingsError, match="give bounces="):
        function(verified())


def test_the_methods_of_a_frame_find_it_too():
    out = verified()
    assert out.mailverdict.summary().equals(mv.summary(out, "email"))
    assert out.mailverdict.diff(out).empty


@pytest.mark.slow
@each_row("like", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_addresses_beside_the_short_set_are_verified_and_what_was_repaired_is_known_again(like):
    cells = {
        "email": ["<ada@example.org>", "do not contact: bo@example.org", "nobody", "cy@example.org"]
    }
    out = mv.verify(pd.DataFrame(cells), "email", validation_type="regex", columns="short")
    out["email_clean"] = pd.array(
        ["ada@example.net", "bo@example.org", "kim@example.org", None], "string"
    )
    with pytest.warns(
        UserWarning,
        match="column 'email': the addresses in 'email_clean' were verified as they stand",
    ):
        again = as_pandas(mv.verify(like(out), "email", validation_type="regex"))
    assert again["email_clean"].tolist()[:3] == [
        "ada@example.net",
        "bo@example.org",
        "kim@example.org",
    ]
    assert again["email_change"].tolist() == ["unwrapped", "remark", "", ""]
    assert mv.decide(again)["email_action"].tolist() == ["send", "review", "send", "send"]
