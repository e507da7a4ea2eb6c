"""Two verifications of the same addresses: do they agree, and who was right?"""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mailverdict as mv


def export(service_words, **more):
    """What NeverBounce says, by address."""
    return mv.read_verdicts(
        pd.DataFrame(
            {
                "email": list(service_words),
                "email_status": list(service_words.values()),
                "bad_syntax": 0,
            }
            | more
        )
    )


def zerobounce(words):
    return mv.read_verdicts(
        pd.DataFrame({"E-Mail": list(words), "ZB Status": list(words.values())})
    )


A = {
    "ada@firm.example": "valid",
    "bo@firm.example": "valid",
    "cy@firm.example": "invalid",
    "di@firm.example": "invalid",
    "eve@firm.example": "catchall",
    "fay@firm.example": "unknown",
    "only@a.example": "valid",
}
B = {
    "ada@FIRM.example": "valid",
    "bo@firm.example": "invalid",
    "cy@firm.example": "valid",
    "di@firm.example": "invalid",
    "eve@firm.example": "invalid",
    "fay@firm.example": "",
    "only@b.example": "valid",
    "two@b.example": "valid",
}


def reports(outcomes):
    rows = pd.DataFrame({"who": list(outcomes), "what": list(outcomes.values())})
    return mv.read_bounces(rows, columns={"address": "who", "outcome": "what"})


def test_agreement_is_counted_by_verdict_and_contradictions_are_listed():
    found = mv.compare(export(A), zerobounce(B))
    assert found.names == ("NeverBounce", "ZeroBounce")
    assert (found.both, found.only_a, found.only_b) == (6, 1, 2)
    counts = found.agreement
    assert counts.index.tolist() == ["valid", "risky", "invalid", "unknown", "pending"]
    assert counts.columns.tolist() == counts.index.tolist()
    assert counts.loc["valid"].tolist() == [1, 0, 1, 0, 0]
    assert counts.loc["invalid"].tolist() == [1, 0, 1, 0, 0]
    assert counts.loc["risky"].tolist() == [0, 0, 1, 0, 0]
    assert counts.loc["unknown"].tolist() == [0, 0, 0, 0, 1]
    assert found.contradictions.to_dict("index") == {
        "bo@firm.example": {"a": "valid", "b": "invalid", "why_a": None, "why_b": "invalid"},
        "cy@firm.example": {"a": "invalid", "b": "valid", "why_a": "invalid", "why_b": None},
    }
    assert found.right is None


def test_who_was_right_is_counted_where_it_is_known():
    bounces = reports(
        {
            "bo@firm.example": "hard bounce",
            "cy@firm.example": "hard bounce",
            "ada@firm.example": "delivered",
            "di@firm.example": "soft bounce",
            "only@a.example": "hard bounce",
        }
    )
    right = mv.compare(export(A), zerobounce(B), bounces=bounces).right
    assert right[["known", "right"]].to_dict("index") == {
        ("NeverBounce", "valid"): {"known": 2, "right": 1},
        ("NeverBounce", "invalid"): {"known": 1, "right": 1},
        ("NeverBounce", "where they contradict"): {"known": 2, "right": 1},
        ("ZeroBounce", "valid"): {"known": 2, "right": 1},
        ("ZeroBounce", "invalid"): {"known": 1, "right": 1},
        ("ZeroBounce", "where they contradict"): {"known": 2, "right": 1},
    }
    assert right["rate"].tolist()[:2] == [0.5, 1.0]
    assert right.loc[("NeverBounce", "valid"), ["low", "high"]].round(2).tolist() == [0.09, 0.91]


@pytest.mark.slow
def test_mail_without_a_report_arrived_only_if_the_row_was_mailed():
    a, b = export(A), zerobounce(B)
    bounces = reports({"bo@firm.example": "hard bounce", "di@firm.example": "soft bounce"})
    line = ("NeverBounce", "valid")
    assert mv.compare(a, b, bounces=bounces).right.loc[line, "known"] == 1
    right = mv.compare(a, b, bounces=bounces, mailed=[True] * len(a)).right
    assert right.loc[line, ["known", "right"]].tolist() == [2, 1]
    # A soft bounce says nothing.
    assert right.loc[("NeverBounce", "invalid"), ["known", "right"]].tolist() == [
        1,
        0,
    ]
    with pytest.warns(UserWarning, match="none of the 2 addresses with a report"):
        none = mv.compare(a, b, bounces=bounces, mailed=[False] * len(a)).right
    assert none["known"].sum() == 0
    assert none["rate"].isna().all()


def test_bounces_of_others_are_told():
    with pytest.warns(UserWarning, match="none of the 1 addresses with a report"):
        mv.compare(export(A), zerobounce(B), bounces=reports({"zoe@else.example": "hard bounce"}))


@pytest.mark.slow
def test_ours_is_compared_with_an_export_in_any_kind_of_frame_or_file(tmp_path):
    path = tmp_path / "export.csv"
    words = {"Mail": list(A), "email_status": list(A.values()), "bad_syntax": 0}
    pd.DataFrame(words).to_csv(path, index=False)
    out = mv.verify(pd.DataFrame({"address": list(A)}), "address", validation_type="regex")
    found = mv.compare(out, path)
    assert found.names == ("mailverdict", "NeverBounce")
    assert found.agreement.loc["valid"].tolist() == [3, 1, 2, 1]
    for kind in (pl.from_pandas, pa.Table.from_pandas):
        other = mv.compare(kind(out), mv.read_verdicts(kind(pd.read_csv(path))))
        assert other.agreement.equals(found.agreement)
    out.to_csv(tmp_path / "out.csv", index=False)
    assert mv.compare(tmp_path / "out.csv", path).agreement.equals(found.agreement)


@pytest.mark.filterwarnings("ignore:known=")
def test_two_of_one_service_have_names_of_their_own_and_mixed_answers_are_ours():
    assert mv.compare(export(A), export(A)).names == ("NeverBounce (a)", "NeverBounce (b)")
    mixed = mv.verify(
        pd.DataFrame({"email": list(A)}), "email", validation_type="regex", known=export(A)
    )
    assert mv.compare(mixed, zerobounce(B)).names == ("mailverdict", "ZeroBounce")


def test_a_frame_that_was_not_verified_is_an_error():
    with pytest.raises(mv.ColumnError, match="no column was verified"):
        mv.compare(pd.DataFrame({"email": list(A)}), export(A))


def test_it_shows_its_figures_and_no_address():
    found = mv.compare(
        export(A), zerobounce(B), bounces=reports({"bo@firm.example": "hard bounce"})
    )
    assert repr(found) == str(found)
    assert repr(found).splitlines()[:5] == [
        "6 addresses in both, 1 only from NeverBounce, 2 only from ZeroBounce",
        "same verdict: 2 of 5 (40.0%)",
        "valid for one and invalid for the other: 2",
        "",
        "rows: NeverBounce, columns: ZeroBounce",
    ]
    page = found._repr_html_()
    for text in (repr(found), page):
        assert "who was right" in text
        assert "firm.example" not in text


def test_no_address_in_common():
    found = mv.compare(export({"a@x.example": "valid"}), export({"b@x.example": "valid"}))
    assert (found.both, found.only_a, found.only_b) == (0, 1, 1)
    assert found.agreement.to_numpy().sum() == 0
    assert len(found.contradictions) == 0
    assert str(found).startswith(
        "no address is in both; 1 only from NeverBounce (a), 1 only from NeverBounce (b)\n"
    )
