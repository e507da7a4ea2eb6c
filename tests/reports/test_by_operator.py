"""``breakdown(out, "operator")``: distinct addresses by operator and answer, and the sentence where little is clear."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.errors import ColumnError, SettingsError
from mailverdict.frames.results import Results
from mailverdict.reports.by_operator import OperatorCounts
from mailverdict.reports.deprecated import by_operator
from tests.doubles.tables import each_row

ROWS = [  # address, verdict, why, catch_all, operator
    ("a@x.example", "valid", None, False, "hoster.example"),
    # The same domain in capitals: another local part.
    (
        "A@X.example",
        "valid",
        None,
        False,
        "hoster.example",
    ),
    ("a@x.example", "valid", None, False, "hoster.example"),
    ("b@x.example", "invalid", "mailbox_not_found", False, "hoster.example"),
    ("info@x.example", "risky", "role", False, "hoster.example"),
    ("a@y.example", "risky", "catch_all", True, "yahoo"),
    ("b@y.example", "risky", "disposable", True, "yahoo"),
    ("c@y.example", "invalid", "mailbox_not_found", None, "yahoo"),
    ("a@g.example", "unknown", "greylisted", None, "slow.example"),
    ("b@g.example", "unknown", "timeout", None, "slow.example"),
    ("c@g.example", "unknown", "greylisted", None, "slow.example"),
    ("a@m.example", "unknown", "protected", None, "gmx"),
    ("b@m.example", "unknown", "sender_blocked", None, "gmx"),
    ("a@n.example", "unknown", "port_closed", None, "self"),
    ("a@gone.example", "invalid", "no_mx_record", None, None),
    (None, None, None, None, None),
]


def frame(rows=ROWS):
    columns = ("email", "email_verdict", "email_why", "email_catch_all", "email_operator")
    out = pd.DataFrame(rows, columns=columns)
    out["email_catch_all"] = out["email_catch_all"].astype("boolean")
    out["email_suggestion"] = pd.array([None] * len(out), "string")
    for flag in ("role", "disposable", "free", "spamtrap", "protected"):
        out[f"email_{flag}"] = pd.array([None] * len(out), "boolean")
    out["email_status"] = ["missing" if each is None else "done" for each in out["email"]]
    return out


COUNTED = ("addresses", "clear", "catch_all", "deferred", "refused", "no_answer", "dead")


def test_addresses_are_counted_once_by_operator_and_answer():
    found = mv.breakdown(frame(), "operator")
    known = found.dropna(subset="addresses")
    assert known[list(COUNTED)].T.to_dict("list") == {
        "hoster.example": [4, 4, 0, 0, 0, 0, 1],
        "yahoo": [3, 1, 2, 0, 0, 0, 1],
        "slow.example": [3, 0, 0, 2, 0, 1, 0],
        "gmx": [2, 0, 0, 0, 2, 0, 0],
        "self": [1, 0, 0, 0, 0, 1, 0],
    }
    assert known["clear_share"].round(3).tolist() == [1.0, 0.333, 0.0, 0.0, 0.0]
    assert found[[*COUNTED, "clear_share", "note"]].dtypes.astype(str).to_dict() == {
        **dict.fromkeys(COUNTED, "Int64"),
        "clear_share": "float64",
        "note": "object",
    }


def test_people_whose_mail_servers_are_not_known_are_counted_without_addresses():
    line = mv.breakdown(frame(), "operator").loc["(missing)"]
    assert (line["rows"], line["people"], line["invalid"]) == (2, 1, 1)
    assert pd.isna(line["addresses"])
    assert line["note"] is None


def test_the_sentence_is_about_these_rows_and_cites_what_others_say():
    notes = mv.breakdown(frame(), "operator")["note"]
    assert notes["hoster.example"] is None
    assert notes["slow.example"] == (
        "2 of 3 are to be verified again later: the mail server defers clients that it does not know"
    )
    assert notes["yahoo"].startswith(
        "2 of 3 accept every address, so an accepted one proves little; known to accept"
    )
    assert "https://" in notes["yahoo"]
    assert notes["gmx"].startswith("2 of 2 are not answered to this computer")
    assert "known to refuse clients for their address (https://github.com/" in notes["gmx"]


def test_rows_that_are_not_verified_yet_have_no_sentence():
    out = frame([("a@x.example", None, None, None, "x.example")]).assign(email_status="pending")
    line = mv.breakdown(out, "operator").loc["x.example"]
    assert (line["addresses"], line["clear"], line["note"]) == (1, 0, None)


def test_the_mail_servers_will_do_for_the_operator():
    out = frame().drop(columns="email_operator")
    with pytest.raises(ColumnError, match="no column 'email_operator': verify with columns='all'"):
        mv.breakdown(out, "operator")
    out["email_mx_records"] = "aspmx.l.google.com;mx.x.example"
    assert "google" in mv.breakdown(out, "operator").index


def test_pieces_add_up_to_the_whole():
    counts, whole = OperatorCounts(), frame()
    for at in range(0, len(whole), 3):
        counts.add(Results(whole.iloc[at : at + 3], "email", None))
    table = counts.table()
    known = mv.breakdown(whole, "operator").loc[table.index]
    assert table["addresses"].tolist() == known["addresses"].tolist()
    assert table["note"].tolist() == known["note"].tolist()


def test_clear_answers_and_the_sentence_are_shown():
    table = mv.breakdown(frame(), "operator")
    assert "1 of 3" in repr(table)
    assert "\n  2 of 3 accept every address" in repr(table)
    shown = table._repr_html_()
    assert '<td class="mv-number">1 of 3</td>' in shown
    assert "known to accept every recipient at RCPT (https://" in shown


def test_the_deprecated_table_has_the_largest_operators_first_with_plain_numbers():
    found = by_operator(frame(), "email")
    assert found["addresses"].to_dict() == {
        "hoster.example": 4,
        "slow.example": 3,
        "yahoo": 3,
        "gmx": 2,
        "self": 1,
    }
    assert found.dtypes.astype(str).to_dict() == {
        **dict.fromkeys(COUNTED, "int64"),
        "share": "float64",
        "note": "object",
    }
    assert by_operator(frame(), "email", top=2).index.tolist() == ["hoster.example", "slow.example"]
    assert "33.3%" in found._repr_html_()
    assert len(by_operator(frame([]), "email")) == 0
    with pytest.raises(SettingsError, match="top=-1: give a number of operators"):
        by_operator(frame(), "email", top=-1)


def test_the_deprecated_table_does_without_flags_and_does_not_count_a_column_called_operator():
    out = frame().drop(columns=["email_role", "email_disposable", "email_suggestion"])
    found = by_operator(out.assign(operator="of a machine"), "email")
    assert found.equals(by_operator(frame(), "email"))


@each_row(("make", "kind"), [(pl.from_pandas, pl.DataFrame), (pa.Table.from_pandas, pa.Table)])
def test_the_deprecated_table_is_of_the_kind_of_the_frame(make, kind):
    found = by_operator(make(frame()), "email")
    assert isinstance(found, kind)
    names = found["operator"].to_pylist() if kind is pa.Table else found["operator"].to_list()
    assert names[0] == "hoster.example"
