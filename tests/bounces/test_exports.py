"""Exports of sending services.

Known columns, their words, and replies that contradict a service.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd
import pytest

import mailverdict as mv
from mailverdict.bounces.exports import choose_layout, conclude_row, parse_moment
from mailverdict.bounces.services import JUDGE, SENTENCES, SKIP, layouts, meanings
from mailverdict.checks.bounces.outcome import Outcome
from tests.doubles.tables import each_row

UNKNOWN = "550 5.1.1 User unknown"
LISTED = "554 5.7.1 Service unavailable; client blocked using zen.spamhaus.org"
WHEN = "2026-03-03T09:15:00Z"
EXPORTS = {
    "SendGrid bounces or blocks": (
        "email,created,reason,status\na@x.example,1772529300,550 5.1.1 User unknown,5.1.1\n"
        "b@x.example,1772529300,554 5.7.1 blocked using zen.spamhaus.org,5.7.1\n",
        ["hard", "blocked"],
    ),
    "SendGrid events": (
        "email,timestamp,event,reason,status,sg_event_id\n"
        "a@x.example,1772529300,bounce,550 5.1.1 User unknown,5.1.1,1\n"
        "b@x.example,1772529300,open,,,2\nc@x.example,1772529300,delivered,,,3\n"
        "d@x.example,1772529300,spamreport,,,4\n"
        "e@x.example,1772529300,deferred,451 4.7.1 Greylisted,,5\n",
        ["hard", "delivered", "complaint", "soft"],
    ),
    "Mailgun bounces": (
        "address,code,error,created_at\n"
        f'a@x.example,550,User unknown,"{"Tue, 03 Mar 2026 09:15:00 GMT"}"\n'
        "b@x.example,550,5.7.1 blocked using zen.spamhaus.org,\n",
        ["hard", "blocked"],
    ),
    "Postmark bounces": (
        "ID,Type,Email,BouncedAt,Details\n"
        f"1,HardBounce,a@x.example,{WHEN},smtp;550 5.1.1 User unknown\n"
        f"2,SoftBounce,b@x.example,{WHEN},mailbox full\n3,SpamComplaint,c@x.example,{WHEN},\n"
        f"4,AutoResponder,d@x.example,{WHEN},\n5,Blocked,e@x.example,{WHEN},\n"
        f"6,DnsError,f@x.example,{WHEN},\n",
        ["hard", "soft", "complaint", "blocked", "soft"],
    ),
    "Amazon SES suppression list": (
        f"EmailAddress,Reason,LastUpdateTime\na@x.example,BOUNCE,{WHEN}\n"
        f"b@x.example,COMPLAINT,{WHEN}\n",
        ["hard", "complaint"],
    ),
    "Salesforce Marketing Cloud bounces": (
        "ClientID,SendID,SubscriberKey,EmailAddress,EventDate,EventType,BounceCategory,SMTPCode,"
        "BounceReason\n"
        f"1,2,a,a@x.example,{WHEN},HardBounce,Hard bounce,550,User unknown\n"
        f"1,2,b,b@x.example,{WHEN},HardBounce,Block bounce,554,blocked\n"
        f"1,2,c,c@x.example,{WHEN},SoftBounce,Technical/Other bounce,452,mailbox full\n",
        ["hard", "blocked", "soft"],
    ),
    "Brevo events": (
        "event,email,ts_event,message-id,reason\n"
        "hard_bounce,a@x.example,1772529300,1,550 5.1.1 User unknown\n"
        "soft_bounce,b@x.example,1772529300,2,\nspam,c@x.example,1772529300,3,\n"
        "unique_opened,d@x.example,1772529300,4,\n",
        ["hard", "soft", "complaint"],
    ),
}


@pytest.mark.parametrize(
    ("name", "text", "outcomes"), [(n, *rest) for n, rest in EXPORTS.items()], ids=EXPORTS
)
def test_a_known_export_is_read(tmp_path, name, text, outcomes):
    (tmp_path / "export.csv").write_text(text)
    found = mv.read_bounces(tmp_path / "export.csv")
    assert found["outcome"].tolist() == outcomes
    assert found["at"].iloc[0] == pd.Timestamp("2026-03-03 09:15", tz="UTC")
    assert choose_layout(text.partition("\n")[0].split(","), None).name == name


def test_every_word_has_a_meaning():
    assert {layout.name for layout in layouts()} > {"mailverdict", *EXPORTS}
    assert {
        *meanings("words").values(),
        *meanings("reasons").values(),
        *dict(SENTENCES).values(),
    } <= {
        *Outcome,
        JUDGE,
        SKIP,
    }


CASES = [
    ("hard", "5.1.1", UNKNOWN, "hard", "both agree"),
    ("hard", None, LISTED, "blocked", "a refusal of the sender is never hard"),
    ("hard", "5.7.1", None, "blocked", "the status alone"),
    ("hard", None, None, "hard", "nothing contradicts the service"),
    ("hard", None, "550 Rejected", "hard", "a reply without a cause contradicts nothing"),
    ("hard", None, "452 4.2.2 mailbox full", "soft", "a full mailbox exists"),
    ("hard", "550", "5.1.1 unknown", "hard", "a reply code in a column of its own"),
    ("soft", "5.1.1", UNKNOWN, "hard", "a final reply that names the mailbox"),
    (
        "soft",
        "5.1.1",
        "550 Rejected",
        "soft",
        "the status is the service's own, the reply names nothing",
    ),
    ("soft", "5.1.1", "User unknown", "soft", "not the reply of a server"),
    ("soft", "4.1.1", "450 4.1.1 User unknown", "soft", "not final"),
    ("hard", "4.2.2 (mailbox full)", None, "soft", "the status with its comment outranks the word"),
    ("hard", "5.1.1 (bad destination mailbox address)", None, "hard", "both agree"),
    ("hard", "5.3.4 (message too big for system)", None, "soft", "not the mailbox"),
    ("hard", None, "554 5.4.6 Too many hops", "soft", "not the mailbox"),
    ("hard", "5.4.4", None, "hard", "the domain cannot be routed"),
    ("hard", "5.0.0 (undefined status)", None, "hard", "the status says nothing"),
    ("hard", "602", "Gave up after several attempts", "soft", "the server may answer another time"),
    ("blocked", "5.1.1", UNKNOWN, "blocked", "the service knows better why"),
    (JUDGE, None, UNKNOWN, "hard", "the reply decides"),
    (JUDGE, None, None, "soft", "no cause"),
    ("delivered", None, UNKNOWN, "delivered", "the reply is of an earlier attempt"),
    ("complaint", None, None, "complaint", ""),
]


@each_row(("word", "status", "reply", "outcome", "why"), CASES)
def test_what_the_service_says_and_the_reply_together(word, status, reply, outcome, why):
    assert conclude_row(word, status, reply).outcome == outcome, why


def test_a_table_without_an_address_or_a_statement_asks_for_the_columns():
    for columns in ({"email": ["a@x.example"], "name": ["Ada"]}, {"event": ["bounce"]}):
        with pytest.raises(mv.ColumnError, match="name the columns"):
            mv.read_bounces(pd.DataFrame(columns))


def frame(**columns):
    return pd.DataFrame(columns)


def test_columns_can_be_given():
    export = frame(Who=["a@x.example", "b@x.example", "c@x.example"], Result=["Dead", "ok", "Hard"])
    columns = {"address": "Who", "outcome": "Result"}
    with pytest.warns(
        UserWarning,
        match=r"1 of 3 .*row 1: the outcome is not known \(1 row\); give outcomes={'Dead'",
    ):
        mv.read_bounces(export, columns=columns, outcomes={"ok": "skip"})
    found = mv.read_bounces(export, columns=columns, outcomes={"Dead": "hard", "ok": "delivered"})
    assert found["outcome"].tolist() == ["hard", "delivered", "hard"]


@each_row(
    ("error", "outcome"),
    [
        ("550 5.7.1 Message rejected as spam", "blocked"),
        ("Message rejected as spam", "blocked"),
        ("550 5.1.1 User unknown", "hard"),
        ("451 4.7.1 Greylisted", "soft"),
        (None, "complaint"),
        ("abuse", "complaint"),
    ],
)
def test_a_complaint_never_comes_with_a_refusal(error, outcome):
    export = frame(to=["a@x.example"], category=["Spam"], error=[error])
    columns = {"address": "to", "outcome": "category", "diagnostic": "error"}
    assert mv.read_bounces(export, columns=columns)["outcome"].tolist() == [outcome]


def test_rows_without_an_address_are_named():
    export = frame(email=["a@x.example", None, "nobody"], Type=["Hard"] * 3)
    with pytest.warns(
        UserWarning,
        match=r"2 of 3 .*the frame, row 2: '' is not an address; the frame, row 3: 'nobody'",
    ):
        found = mv.read_bounces(export, columns={"address": "email", "outcome": "Type"})
    assert len(found) == 1


@each_row(
    ("columns", "outcomes", "error", "message"),
    [
        ({"address": "email"}, None, mv.SettingsError, "at least one of 'outcome'"),
        ({"outcome": "Type"}, None, mv.SettingsError, "give 'address'"),
        ({"address": "email", "kind": "Type"}, None, mv.SettingsError, "'kind' is not one of"),
        (
            {"address": "mail", "outcome": "Type"},
            None,
            mv.ColumnError,
            "no column 'mail' \\(did you mean 'email'\\?\\); there are 'email', 'Type'",
        ),
        (None, {"x": "dead"}, mv.SettingsError, "one of delivered"),
    ],
)
def test_wrong_arguments_are_errors(columns, outcomes, error, message):
    with pytest.raises(error, match=message):
        mv.read_bounces(
            frame(email=["a@x.example"], Type=["Hard"]), columns=columns, outcomes=outcomes
        )


MOMENTS = [
    ("2026-03-03T09:15:00Z", "2026-03-03T09:15:00+00:00"),
    ("2026-03-03 10:15:00+01:00", "2026-03-03T09:15:00+00:00"),
    ("2026-03-03 09:15:00 UTC", "2026-03-03T09:15:00+00:00"),
    ("Tue, 03 Mar 2026 09:15:00 GMT", "2026-03-03T09:15:00+00:00"),
    (1772529300, "2026-03-03T09:15:00+00:00"),
    ("1772529300000", "2026-03-03T09:15:00+00:00"),
    (datetime(2026, 3, 3, 9, 15, tzinfo=UTC), "2026-03-03T09:15:00+00:00"),
    ("3/5/2026 10:00", None),
    ("yesterday", None),
    ("nan", None),
    (17, None),
]


@each_row(("value", "expected"), MOMENTS)
def test_times_are_read_where_they_are_not_ambiguous(value, expected):
    found = parse_moment(value)
    assert (found and found.isoformat()) == expected
