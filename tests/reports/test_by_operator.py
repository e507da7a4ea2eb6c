"""`by_operator`: distinct addresses by operator and answer, and the sentence where little is clear."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.errors import ColumnError, SettingsError
from mailverdict.frames.results import Results
from mailverdict.reports.by_operator import OperatorCounts
from tests.doubles.tables import each_row

pytestmark = pytest.mark.filterwarnings(
    "ignore:mailverdict.by_operator is deprecated:FutureWarning"
)
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
    out["email_status"] = ["missing" if each is None else "done" for each in out["email"]]
    return out


COUNTED = ("addresses", "clear", "catch_all", "deferred", "refused", "no_answer", "dead")


def test_addresses_are_counted_once_by_operator_and_answer():
    found = mv.by_operator(frame(), "email")
    assert found[list(COUNTED)].T.to_dict("list") == {
        "hoster.example": [4, 4, 0, 0, 0, 0, 1],
        "slow.example": [3, 0, 0, 2, 0, 1, 0],
        "yahoo": [3, 1, 2, 0, 0, 0, 1],
        "gmx": [2, 0, 0, 0, 2, 0, 0],
        "self": [1, 0, 0, 0, 0, 1, 0],
    }
    assert found["share"].round(3).tolist() == [1.0, 0.0, 0.333, 0.0, 0.0]
    assert found.dtypes.astype(str).to_dict() == {
        **dict.fromkeys(COUNTED, "int64"),
        "share": "float64",
        "note": "object",
    }


def test_the_sentence_is_about_these_rows_and_cites_what_others_say():
    notes = mv.by_operator(frame(), "email")["note"]
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
    line = mv.by_operator(out, "email").loc["x.example"]
    assert (line["addresses"], line["clear"], line["note"]) == (1, 0, None)


def test_the_largest_operators_come_first():
    assert mv.by_operator(frame(), "email", top=2).index.tolist() == [
        "hoster.example",
        "slow.example",
    ]
    with pytest.raises(SettingsError, match="top=-1: give a number of operators"):
        mv.by_operator(frame(), "email", top=-1)


def test_the_mail_servers_will_do_for_the_operator():
    out = frame().drop(columns="email_operator")
    with pytest.raises(ColumnError, match="no column 'email_operator': verify with columns='all'"):
        mv.by_operator(out, "email")
    out["email_mx_records"] = "aspmx.l.google.com;mx.x.example"
    assert mv.by_operator(out, "email").index.tolist() == ["google"]


@each_row(("make", "kind"), [(pl.from_pandas, pl.DataFrame), (pa.Table.from_pandas, pa.Table)])
def test_other_frames_get_their_own_kind(make, kind):
    found = mv.by_operator(make(frame()), "email")
    assert isinstance(found, kind)
    assert (found["operator"].to_pylist() if kind is pa.Table else found["operator"].to_list())[
        0
    ] == "hoster.example"


def test_pieces_add_up_to_the_whole():
    counts, whole = OperatorCounts(), frame()
    for at in range(0, len(whole), 3):
        counts.add(Results(whole.iloc[at : at + 3], "email", None))
    pd.testing.assert_frame_equal(counts.table(20), pd.DataFrame(mv.by_operator(whole, "email")))


def test_a_frame_without_rows_has_no_line():
    assert len(mv.by_operator(frame([]), "email")) == 0


def test_a_notebook_shows_whole_sentences():
    shown = mv.by_operator(frame(), "email")._repr_html_()
    assert "known to accept every recipient at RCPT (https://" in shown
    assert "33.3%" in shown
