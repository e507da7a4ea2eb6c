"""`df.mailverdict` and `s.mailverdict`: the same functions from the other side."""

import pandas as pd
import pytest

import mailverdict as mv
from tests.doubles.tables import each_row

CELLS = ["Ada@Example.org", "nobody", None]
FRAME = pd.DataFrame({"email": CELLS}, index=[2, 2, 0])
SERIES = FRAME["email"]


def test_a_frame_verifies_cleans_and_sums_up():
    out = FRAME.mailverdict.verify("email", validation_type="regex")
    pd.testing.assert_frame_equal(out, mv.verify(FRAME, "email", validation_type="regex"))
    pd.testing.assert_frame_equal(FRAME.mailverdict.clean("email"), mv.clean(FRAME, "email"))
    pd.testing.assert_frame_equal(
        FRAME.mailverdict.duplicates("email"), mv.duplicates(FRAME, "email")
    )
    on_list = mv.suppress(FRAME, "email", ["example.org"])
    pd.testing.assert_frame_equal(FRAME.mailverdict.suppress("email", ["example.org"]), on_list)
    pd.testing.assert_frame_equal(out.mailverdict.summary("email"), mv.summary(out, "email"))
    pd.testing.assert_frame_equal(
        out.mailverdict.breakdown("domain", top=1), mv.breakdown(out, "domain", top=1)
    )
    run = FRAME.mailverdict.start("email", validation_type="regex")
    pd.testing.assert_frame_equal(run.result(), out)
    assert out.attrs["mailverdict"]["email"]["validation_type"] == "regex"


def test_a_series_verifies_cleans_and_comes_apart():
    pd.testing.assert_frame_equal(
        SERIES.mailverdict.verify(validation_type="regex"),
        mv.verify(SERIES, validation_type="regex"),
    )
    pd.testing.assert_frame_equal(SERIES.mailverdict.clean(), mv.clean(SERIES))
    pd.testing.assert_frame_equal(SERIES.mailverdict.duplicates(), mv.duplicates(SERIES))
    on_list = mv.suppress(SERIES, against=["example.org"])
    pd.testing.assert_frame_equal(SERIES.mailverdict.suppress(["example.org"]), on_list)
    assert SERIES.mailverdict.domain.fillna("-").to_dict() == {2: "-", 0: "-"}
    assert SERIES.mailverdict.domain.tolist() == ["example.org", pd.NA, pd.NA]
    assert SERIES.mailverdict.local.tolist() == ["Ada", pd.NA, pd.NA]
    assert SERIES.mailverdict.is_well_formed.tolist() == [True, False, pd.NA]


@pytest.mark.slow
def test_a_verified_frame_decides_splits_reports_and_compares():
    out = FRAME.reset_index(drop=True).mailverdict.verify("email", validation_type="regex")
    pd.testing.assert_frame_equal(
        out.mailverdict.decide("email", policy="strict"), mv.decide(out, "email", policy="strict")
    )
    assert (
        repr(out.mailverdict.split("email"))
        == "Split(send=1, review=0, retry=0, drop=1, unchecked=1)"
    )
    assert repr(out.mailverdict.report("email", name="mine")) == repr(mv.report(out, "email"))
    pd.testing.assert_frame_equal(
        out.mailverdict.diff(out[:1], "email"), mv.diff(out[:1], out, "email")
    )
    assert FRAME.mailverdict.plan("email", validation_type="regex").rows == 3
    assert SERIES.mailverdict.plan(validation_type="regex").malformed == 1
    assert len(SERIES.mailverdict.start(validation_type="regex").result()) == 3


def test_completion_offers_the_methods_and_nothing_else():
    assert {"verify", "decide", "split", "diff", "report", "explode", "suppress", "outcomes"} <= {
        *dir(FRAME.mailverdict)
    }
    for accessor in (FRAME.mailverdict, SERIES.mailverdict):
        assert [name for name in dir(accessor) if name.startswith("_")] == []
        assert [name for name in dir(accessor) if not hasattr(accessor, name)] == []


def test_an_accessor_shows_its_column_and_methods():
    frame = pd.DataFrame({"name": ["Ada"], "email": ["ada@example.org"]})
    assert repr(frame.mailverdict).startswith(
        "<mailverdict of a DataFrame of 1 row, column 'email': breakdown, clean, contradicted,"
    )
    assert repr(frame["email"].mailverdict).startswith(
        "<mailverdict of the Series 'email' of 1 row: clean, domain,"
    )
    assert all(len(line) <= 88 for line in repr(frame.mailverdict).splitlines())


@each_row(
    "frame",
    [
        pd.DataFrame(),
        pd.DataFrame(
            {1: [1.5], "when": [pd.Timestamp(0)], "cells": [["a"]], "kind": pd.Categorical(["x"])}
        ),
        pd.DataFrame([["a", "b"]], columns=["same", "same"]),
        pd.DataFrame([[object(), 1j]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])),
    ],
    ids=["empty", "types", "same name", "upper labels"],
)
def test_a_frame_without_addresses_is_shown_too(frame):
    assert repr(frame.mailverdict).startswith(f"<mailverdict of a DataFrame of {len(frame)} row")


@each_row("wrong", ["emial", "Email", "e-mail", " email"])
def test_a_mistyped_column_is_one_line_with_the_name_that_was_meant(wrong):
    with pytest.raises(KeyError) as caught:
        FRAME.mailverdict.verify(wrong)
    assert str(caught.value) == f"no column {wrong!r} (did you mean 'email'?); there are 'email'"


def test_the_functions_pipe():
    assert (
        len(FRAME.pipe(mv.verify, "email", validation_type="regex").pipe(mv.summary, "email")) == 7
    )
