"""Was the verdict right: counts, intervals, matching of addresses, and the rows that were wrong."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.reports.outcomes import wilson_interval
from mailverdict.table.columns import VERDICT_DTYPE
from tests.checks.bounces.shapes import dsn, recipient
from tests.doubles.tables import each_row

# Known values of the 95 % Wilson score interval (Newcombe 1998, table I and others).
INTERVALS = [
    (81, 263, 0.2553, 0.3662),
    (15, 148, 0.0624, 0.1605),
    (0, 20, 0.0, 0.1611),
    (1, 29, 0.0061, 0.1718),
    (10, 100, 0.0552, 0.1744),
    (20, 20, 0.8389, 1.0),
]


@each_row(("hits", "trials", "low", "high"), INTERVALS)
def test_the_interval_is_that_of_wilson(hits, trials, low, high):
    assert wilson_interval(hits, trials) == pytest.approx((low, high), abs=5e-5)


def test_without_trials_there_is_no_interval():
    assert all(map(math.isnan, wilson_interval(0, 0)))


CELLS = {
    "Ada@Firm.example": ("valid", None),
    "ada@firm.example": ("valid", None),
    "bo@firm.example": ("valid", None),
    "cy@firm.example": ("risky", "role"),
    "di@firm.example": ("invalid", "mailbox_not_found"),
    "ed@firm.example": ("invalid", "mailbox_not_found"),
    "flo@firm.example": ("unknown", "greylisted"),
    "жук@bücher.example": ("valid", None),
}


def verified(cells=CELLS):
    """A verified frame with these verdicts and reasons."""
    frame = pd.DataFrame(
        {"email": [*cells, None], "id": range(10, 11 + len(cells))}, index=range(len(cells), -1, -1)
    )
    out = mv.verify(frame, "email", validation_type="regex")
    out["email_verdict"] = pd.Categorical(
        [*(v for v, _ in cells.values()), None], dtype=VERDICT_DTYPE
    )
    out["email_details"] = pd.array(
        [*(reason for _, reason in cells.values()), None], dtype="string"
    )
    return out


def reports(**outcomes):
    """Bounces by address; the local part is the keyword."""
    rows = [(f"{name}@firm.example", *each) for name, found in outcomes.items() for each in found]
    frame = pd.DataFrame(rows, columns=["who", "result", "reply"])
    return mv.read_bounces(
        frame, columns={"address": "who", "outcome": "result", "diagnostic": "reply"}
    )


HARD = ("hard", "550 5.1.1 User unknown")
BLOCKED = ("blocked", "554 5.7.1 blocked using zen.spamhaus.org")
BOUNCES = {
    "bo": [HARD],
    "cy": [BLOCKED],
    "di": [HARD],
    "ed": [("delivered", None)],
    "flo": [("soft", None)] * 2,
}


def test_each_verdict_reason_and_action_is_counted_by_distinct_address():
    table = mv.outcomes(verified(), "email", reports(**BOUNCES))
    assert table.index.names == ["by", "value"]
    by_verdict = table.loc["verdict"]
    assert list(by_verdict.index) == ["valid", "risky", "invalid", "unknown"]
    assert by_verdict["rows"].tolist() == [4, 1, 2, 1]
    assert by_verdict["mailed"].tolist() == [3, 1, 2, 1]  # Ada is two rows and one address
    assert by_verdict["hard"].tolist() == [1, 0, 1, 0]
    assert by_verdict["blocked"].tolist() == [0, 1, 0, 0]
    assert by_verdict["soft"].tolist() == [0, 0, 0, 1]
    assert by_verdict["delivered"].tolist() == [0, 0, 1, 0]
    assert by_verdict.loc["valid", "rate"] == 1 / 3
    assert tuple(by_verdict.loc["valid", ["low", "high"]]) == wilson_interval(1, 3)
    assert table.loc[("reason", "mailbox_not_found"), ["mailed", "hard"]].tolist() == [2, 1]
    assert table.loc[("reason", "none"), "mailed"] == 3
    assert table.loc["action", "mailed"].to_dict() == {
        "send": 3,
        "review": 1,
        "retry": 1,
        "drop": 2,
    }
    assert table.attrs["outcomes"] == {"matched": 5, "unmatched": 0}


def test_dtypes_are_those_documented():
    dtypes = mv.outcomes(verified(), "email", reports(**BOUNCES)).dtypes
    assert {name for name, dtype in dtypes.items() if dtype == np.float64} == {
        "rate",
        "low",
        "high",
    }
    assert {
        str(dtype) for name, dtype in dtypes.items() if name not in ("rate", "low", "high")
    } == {"int64"}


@pytest.mark.slow
def test_actions_in_the_frame_are_used_unless_a_policy_is_given():
    decided = mv.decide(
        verified(),
        "email",
        policy=mv.Policy("all", send=["valid", "invalid", "unknown", "risky"], drop=[], retry=[]),
    )
    assert mv.outcomes(decided, "email", reports(**BOUNCES)).loc[("action", "send"), "mailed"] == 7
    assert (
        mv.outcomes(decided, "email", reports(**BOUNCES), policy="strict").loc[
            ("action", "send"), "mailed"
        ]
        == 3
    )


def test_addresses_match_without_regard_to_case_and_form_of_the_domain():
    rows = [
        ("ADA@FIRM.EXAMPLE", "hard"),
        ("жук@xn--bcher-kva.example", "hard"),
        ("else@firm.example", "hard"),
    ]
    bounces = mv.read_bounces(
        pd.DataFrame(rows, columns=["who", "what"]), columns={"address": "who", "outcome": "what"}
    )
    table = mv.outcomes(verified(), "email", bounces)
    assert table.loc[("verdict", "valid"), "hard"] == 2
    assert table.attrs["outcomes"] == {"matched": 2, "unmatched": 1}


@pytest.mark.slow
def test_addresses_of_one_mailbox_are_one():
    cells = ["ada@gmail.com", "A.da+news@googlemail.com"]
    out = mv.verify(pd.DataFrame({"email": cells}), "email", validation_type="regex")
    bounces = mv.read_bounces(
        pd.DataFrame({"who": ["ADA@gmail.com"], "what": ["hard"]}),
        columns={"address": "who", "outcome": "what"},
    )
    counts = mv.outcomes(out, "email", bounces).loc[("verdict", "valid")]
    assert counts[["rows", "mailed", "hard"]].tolist() == [2, 1, 1]
    assert mv.contradicted(out, "email", bounces)["email"].tolist() == cells
    assert "A.da+news@googlemail.com" in mv.report(out, "email", bounces=bounces).to_html()


@pytest.mark.slow
def test_only_the_mailed_rows_count():
    out = verified()
    out["sent"] = [True, True, False, True, True, False, False, False, False]
    for mailed in ("sent", out["sent"].tolist(), out["sent"].astype("boolean")):
        table = mv.outcomes(out, "email", reports(**BOUNCES), mailed=mailed)
        assert table.loc["verdict", "mailed"].tolist() == [1, 1, 1, 0]
        assert table.loc["verdict", "hard"].sum() == 1
        assert len(mv.contradicted(out, "email", reports(**BOUNCES), mailed=mailed)) == 0


def test_cleaned_addresses_are_matched():
    out = mv.verify(
        pd.DataFrame({"email": ["Ada <ada@firm.example>"]}), "email", validation_type="regex"
    )
    assert mv.outcomes(out, "email", reports(ada=[HARD])).loc[("verdict", "valid"), "hard"] == 1


def test_reports_about_other_addresses_only_are_warned_about():
    with pytest.warns(
        UserWarning,
        match="none of the 1 addresses with a report is among the mailed rows of 'email'",
    ):
        mv.outcomes(verified(), "email", reports(zoe=[HARD]))


def test_contradicted_rows_keep_their_order_index_and_columns():
    out = verified()
    wrong = mv.contradicted(out, "email", reports(**BOUNCES, ada=[("complaint", None)]))
    assert wrong["email"].tolist() == ["bo@firm.example", "ed@firm.example"]
    assert wrong.index.tolist() == [6, 3]
    assert wrong["id"].tolist() == [12, 15]
    assert wrong["email_outcome"].tolist() == ["hard", "delivered"]
    assert wrong["email_outcome_diagnostic"].fillna("").tolist() == ["550 5.1.1 User unknown", ""]
    assert wrong["email_contradiction"].tolist() == [
        "valid, but the mailbox or domain is missing",
        "invalid, but mail was delivered",
    ]
    assert list(wrong.columns[: len(out.columns)]) == list(out.columns)


def test_an_address_that_was_delivered_once_and_bounced_hard_is_not_a_wrong_invalid():
    wrong = mv.contradicted(
        verified(), "email", reports(di=[HARD, ("delivered", None)], ed=[BLOCKED])
    )
    assert wrong.empty
    assert wrong["email_outcome"].dtype == "string"


def test_a_complaint_shows_that_an_invalid_address_received_mail():
    wrong = mv.contradicted(verified(), "email", reports(di=[("complaint", None)]))
    assert wrong["email_outcome"].tolist() == ["complaint"]


@pytest.mark.slow
@each_row(
    "convert", [pl.from_pandas, lambda frame: pa.Table.from_pandas(frame, preserve_index=False)]
)
def test_polars_and_arrow_give_their_own_kind_and_the_same_numbers(convert):
    out, bounces = verified(), reports(**BOUNCES)
    table = mv.outcomes(convert(out), "email", convert(bounces))
    wrong = mv.contradicted(convert(out), "email", convert(bounces))
    assert type(table) is type(wrong) is type(convert(out))
    expected = mv.outcomes(out, "email", bounces).reset_index()
    pd.testing.assert_frame_equal(table.to_pandas(), expected, check_dtype=False, check_flags=False)
    assert (
        wrong["email"].to_pylist()
        if isinstance(wrong, pa.Table)
        else wrong["email"].to_list() == ["bo@firm.example", "ed@firm.example"]
    )


@pytest.mark.slow
def test_streams_are_read_once():
    out, bounces = (
        pa.Table.from_pandas(each, preserve_index=False)
        for each in (verified(), reports(**BOUNCES))
    )
    expected = mv.outcomes(out, "email", bounces)
    assert mv.outcomes(out.to_reader(), "email", bounces.to_reader()) == expected
    wrong = mv.contradicted(out.to_reader(), "email", bounces.to_reader())
    assert wrong == mv.contradicted(out, "email", bounces)
    assert wrong["email"].to_pylist() == ["bo@firm.example", "ed@firm.example"]
    assert (
        "bo@firm.example"
        in mv.report(out.to_reader(), "email", bounces=bounces.to_reader()).to_html()
    )


def test_an_export_may_be_a_stream():
    export = pa.table({"who": ["bo@firm.example"], "reply": ["550 5.1.1 User unknown"]})
    columns = {"address": "who", "diagnostic": "reply"}
    found = mv.read_bounces(export.to_reader(), columns=columns)
    assert found == mv.read_bounces(export, columns=columns)
    assert found["outcome"].to_pylist() == ["hard"]
    known = {
        "email": export["who"],
        "created": [1772529300],
        "status": ["5.1.1"],
        "reason": export["reply"],
    }
    counts = mv.outcomes(verified(), "email", pa.table(known).to_reader())
    assert counts.loc[("verdict", "valid"), "hard"] == 1


def as_text(frame):
    """A frame as Arrow text, in which a file without types is read: empty for what is missing."""
    columns = {
        name: frame[name].astype("string").str.lower().fillna("")
        for name in frame.columns
        if name != "email"
    }
    return pa.table({"email": frame["email"].astype("string").fillna(""), **columns})


@pytest.mark.slow
def test_a_table_of_texts_gives_what_the_frame_gives():
    out, bounces = verified(), reports(**BOUNCES)
    expected = mv.outcomes(out, "email", bounces).reset_index()
    found = mv.outcomes(as_text(out), "email", bounces).to_pandas()
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, check_flags=False)
    parts = mv.split(as_text(out), "email")
    assert parts.counts().equals(mv.split(out, "email").counts())
    for name in ("verdict", "disposable"):
        wrong = as_text(out.assign(**{f"email_{name}": "perhaps"}))
        with pytest.raises(
            mv.InputError, match=f"column 'email_{name}' holds 'perhaps', which verify never writes"
        ):
            mv.outcomes(wrong, "email", bounces)


def test_contradicted_needs_no_columns_but_those_of_the_verdict():
    few = verified()[["email", "email_verdict", "email_details", "email_status"]]
    assert mv.contradicted(few, "email", reports(**BOUNCES))["email"].tolist() == [
        "bo@firm.example",
        "ed@firm.example",
    ]


@pytest.mark.slow
@each_row(
    "convert", [pl.Series, pa.array, np.array, tuple, pd.array], ids=lambda each: each.__module__
)
def test_mailed_may_be_any_kind_of_column(convert):
    sent = [False, False, True, *[False] * 6]
    table = mv.outcomes(verified(), "email", reports(**BOUNCES), mailed=convert(sent))
    assert table.loc["verdict", "mailed"].tolist() == [1, 0, 0, 0]


@pytest.mark.slow
def test_rows_without_a_value_in_mailed_were_not_mailed():
    out = verified().assign(sent=pd.array([None, None, True, *[None] * 6], dtype="boolean"))
    for frame in (out, pl.from_pandas(out)):
        table = mv.outcomes(frame, "email", reports(**BOUNCES), mailed="sent")
        assert table["mailed"].to_list()[:4] == [1, 0, 0, 0]


def test_a_path_is_read(tmp_path):
    (tmp_path / "a.eml").write_bytes(
        dsn(recipient("5.1.1", "smtp; 550 5.1.1 User unknown", to="bo@firm.example"))
    )
    assert (
        mv.outcomes(verified(), "email", tmp_path / "a.eml").loc[("verdict", "valid"), "hard"] == 1
    )


@each_row(
    ("arguments", "error", "message"),
    [
        ({"mailed": "sent"}, mv.ColumnError, "mailed: no column 'sent'"),
        ({"mailed": [True]}, mv.SettingsError, "mailed has 1 values for 9 rows"),
        (
            {"mailed": True},
            mv.SettingsError,
            "mailed: give a column of the frame, or true or false for each row",
        ),
        ({"mailed": ["x"] * 9}, mv.SettingsError, "true or false"),
        ({"policy": "lax"}, mv.SettingsError, "policy='lax'"),
        ({"prefix": "mail_"}, mv.ColumnError, "no column 'mail_verdict'"),
    ],
)
def test_wrong_arguments_are_errors(arguments, error, message):
    with pytest.raises(error, match=message):
        mv.outcomes(verified(), "email", reports(**BOUNCES), **arguments)


def test_another_frame_is_an_error():
    with pytest.raises(
        mv.SettingsError, match="data is a list: give the frame that verify returned"
    ):
        mv.outcomes(["a@x.example"], "email", reports(**BOUNCES))
    with pytest.raises(mv.ColumnError, match="verify 'email' first"):
        mv.outcomes(pd.DataFrame({"email": ["a@x.example"]}), "email", reports(**BOUNCES))


class TestReport:
    @pytest.mark.slow
    def test_the_report_shows_outcomes_only_if_bounces_are_given(self):
        out = verified()
        assert "Was the verdict right?" not in mv.report(out, "email").to_html()
        page = mv.report(out, "email", bounces=reports(**BOUNCES)).to_html()
        assert "<h2>Was the verdict right?</h2>" in page
        assert ">Verdict: Valid</td>" in page
        assert "2 rows have a verdict that was wrong" in page
        assert "bo@firm.example" in page

    def test_what_a_mail_server_said_is_escaped(self):
        hostile = ("hard", "550 5.1.1 <script>alert(1)</script> User unknown")
        page = mv.report(verified(), "email", bounces=reports(bo=[hostile])).to_html()
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert(1)" in page

    @pytest.mark.slow
    def test_a_workbook_has_the_counts(self, tmp_path):
        from python_calamine import CalamineWorkbook

        mv.report(verified(), "email", tmp_path / "r.xlsx", bounces=reports(**BOUNCES))
        rows = (
            CalamineWorkbook.from_path(str(tmp_path / "r.xlsx"))
            .get_sheet_by_name("Summary")
            .to_python()
        )
        found = next(row for row in rows if row[0] == "Verdict: Valid")
        assert found[1:3] == [3, 1]
        assert ["2 rows have a verdict that was wrong"] in [row[:1] for row in rows]
        assert ["bo@firm.example", "valid, but the mailbox or domain is missing"] in [
            row[:2] for row in rows
        ]
