"""The general reading: exports and events of services without a layout, by their names.

The names are those of the services' public documentation; addresses and replies are made up.
"""

from __future__ import annotations

import json
import warnings

import pandas as pd
import pytest

import mailverdict as mv
from mailverdict.bounces.general import general_layout
from mailverdict.bounces.services import word_parts
from mailverdict.bounces.words import known_word
from tests.checks.bounces.shapes import ADA, mail
from tests.doubles.tables import each_row

UNKNOWN = "550 5.1.1 User unknown"
FULL = "552 5.2.2 over quota"
WHEN = 1772529300


def outcomes_of(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = mv.read_bounces(path)
    rows = list(zip(found["address"], found["outcome"].astype(str), strict=True))
    return rows, found.attrs["bounces"]


EVENTS = [
    (
        {"events": [{"event": "bounce", "email": ADA, "response": f"bounced ({UNKNOWN})"}]},
        "hard",
        "Mailtrap: the reply behind a word",
    ),
    (
        {
            "event": "bounce",
            "email": ADA,
            "response": "not allowed by policy",
            "response_code": 555,
        },
        "blocked",
        "Mailtrap: the code in a member of its own",
    ),
    ({"event": "soft_bounce", "email": ADA, "reason": FULL}, "soft", "a full mailbox"),
    ({"event": "hard_bounce", "email": ADA, "diag": FULL}, "soft", "the reply outranks the word"),
    (
        {"type": "message.bounced", "data": {"event": "on_bounced", "recipient": ADA}},
        "soft",
        "AhaSend",
    ),
    (
        {
            "eventType": "failure_perm",
            "recipient": ADA,
            "payload": {"delivery-status": {"code": 550}},
        },
        "hard",
        "Mailomat",
    ),
    (
        {"event": "messageBounce", "data": {"recipient": ADA, "response": {"message": UNKNOWN}}},
        "hard",
        "EmailEngine",
    ),
    (
        {"type": "Bounce", "recipient": ADA, "response": {"code": 550, "content": "User unknown"}},
        "hard",
        "KumoMTA: a member of a reply",
    ),
    ({"type": "email.bounced", "data": {"object": {"to": ADA}}}, "soft", "no cause"),
    ({"type": "bounce", "bounce": {"email": ADA, "type": "hard"}}, "hard", "BigMailer"),
    ({"action": "Bounce", "data": [{"bounce_type": "hard", "contact_email": ADA}]}, "hard", "Zoho"),
    (
        {"event": "bounce", "to": [ADA], "attempts": [{"response": UNKNOWN}]},
        "hard",
        "a list of attempts",
    ),
    ({"event": "bounce", "type": "blocked", "email": ADA}, "blocked", "two words"),
    ({"event": "bounce", "category": "Spam", "email": ADA}, "blocked", "a bounce is no complaint"),
    ({"event": "spam", "email": ADA}, "complaint", "a complaint"),
    (
        {"event": "spam", "email": ADA, "response": UNKNOWN},
        "hard",
        "a refused mail has no complainant",
    ),
    ({"event": "dropped", "email": ADA, "reason": "on a black list"}, "soft", "it was not sent"),
    ({"event": "delivered", "email": ADA, "category": "spam"}, "delivered", "a tag of the sender"),
    ({"event": "open", "email": ADA, "category": "bounce"}, None, "a tag of the sender"),
    ({"event": "bounce", "bounced": True, "hard_bounce": False, "email": ADA}, "soft", "flags"),
    ({"status": "sent", "bounce_type": "hard", "email": ADA}, "hard", "sent, and then it bounced"),
    ({"event": "complaint", "feedbackType": "not-spam", "email": ADA}, None, "no complaint"),
    (
        {"event": "bounce", "from": {"email": "news@shop.example"}, "to": {"email": ADA}},
        "soft",
        "not the sender",
    ),
    ({"event": "bounce", "email": "b@shop.example", "recipient": ADA}, "soft", "the nearer name"),
    ({"event": "bounce", "to": ADA, "direction": "incoming", "output": UNKNOWN}, None, "not sent"),
    (
        {
            "event": "hard_bounce",
            "email": ADA,
            "reason": "The provider gave no reason for it. We recommend to remove the address, "
            "since mails to such addresses can have an influence on your reputation as a sender.",
        },
        "hard",
        "advice of the service is no reply",
    ),
]


@each_row(("event", "outcome", "why"), EVENTS)
def test_an_event_of_any_service_is_read(tmp_path, event, outcome, why):
    (tmp_path / "e.json").write_text(json.dumps(event))
    rows, note = outcomes_of(tmp_path / "e.json")
    assert rows == ([] if outcome is None else [(ADA, outcome)]), why
    assert note["unread"] == 0, why


SERVICES = [
    (
        {"event": "hard_bounce", "ts": WHEN, "msg": {"email": ADA, "_version": "v", "diag": FULL}},
        "soft",
        "Mandrill",
    ),
    (
        {
            "type": "email.bounced",
            "created_at": "2026-03-03T09:15:00Z",
            "data": {
                "email_id": "e",
                "to": [ADA],
                "bounce": {"type": "Permanent", "message": UNKNOWN},
            },
        },
        "hard",
        "Resend",
    ),
    (
        {"type": "email.complained", "data": {"email_id": "e", "to": [ADA]}},
        "complaint",
        "Resend: a complaint",
    ),
    (
        {
            "event": "MessageDeliveryFailed",
            "payload": {"status": "HardFail", "output": UNKNOWN, "time": 1, "message": {"to": ADA}},
        },
        "hard",
        "Postal",
    ),
    (
        {
            "event": "MessageBounced",
            "payload": {"original_message": {"to": ADA}, "bounce": {"to": "x@psrp.shop.example"}},
        },
        "soft",
        "Postal: the bounce went to our own address",
    ),
    (
        {"recipient": ADA, "type": "BOUNCE", "category": "SPAM", "portalId": 1, "appId": 2},
        "blocked",
        "HubSpot",
    ),
    (
        {"recipient": ADA, "type": "UNBOUNCE", "portalId": 1, "appId": 2},
        None,
        "HubSpot: taken back",
    ),
    (
        {"EmailAddress": ADA, "SuppressionReason": "HardBounce", "Origin": "Recipient"},
        "hard",
        "Postmark's suppressions",
    ),
    (
        {"Recipient": ADA, "SuppressSending": False, "SuppressionReason": None},
        None,
        "Postmark: mailed again",
    ),
    ({"email": ADA, "type": "complaint", "subscriber_uuid": "u"}, "complaint", "listmonk"),
    (
        {"attributes": {"email": ADA, "suppression": [{"reason": "HARD_BOUNCE"}]}},
        "hard",
        "Klaviyo",
    ),
    (
        {"type": "bounce", "contact": {"email": ADA}, "bounce": {"email": ADA, "type": "hard"}},
        "hard",
        "ActiveCampaign",
    ),
    (
        {"event": "blocked", "email": ADA, "ts_epoch": WHEN, "reason": "due to blacklist user"},
        "soft",
        "Brevo did not send",
    ),
]


@each_row(("event", "outcome", "why"), SERVICES)
def test_an_event_of_a_frequent_service_is_read(tmp_path, event, outcome, why):
    (tmp_path / "e.json").write_text(json.dumps(event))
    rows, note = outcomes_of(tmp_path / "e.json")
    assert rows == ([] if outcome is None else [(ADA, outcome)]), why
    assert note["unread"] == 0, why


def test_mailchimps_cleaned_contacts_are_hard_bounces(tmp_path):
    path = tmp_path / "cleaned.csv"
    path.write_text(f"Email Address,First Name,LEID,CLEAN_TIME\n{ADA},Ada,1,2026-03-03 09:15:00\n")
    assert mv.read_bounces(path)["outcome"].tolist() == ["hard"]


def test_columns_that_sendgrid_has_too_are_read_by_what_they_hold(tmp_path):
    (tmp_path / "x.csv").write_text(f"email,created,status,reason\n{ADA},{WHEN},hard_bounced,\n")
    assert mv.read_bounces(tmp_path / "x.csv")["outcome"].tolist() == ["hard"]


TABLES = [
    ("email,type\n{},permanent\n{},temporary\n", ["soft"], 1, "staff: permanent is no bounce"),
    ("email,bounce_type\n{},permanent\n{},temporary\n", ["hard", "soft"], 0, "bounces"),
    ("email,status\n{},spam\n{},bounced\n", ["soft"], 1, "a form: spam is no complaint"),
    ("to,email,event\na@x.example,b@x.example,bounce\n{},,bounce\n", ["soft"], 1, "two addresses"),
    ("email,event\n{},bounce_resolved\n{},bounce\n", ["soft"], 1, "taken back"),
    ("email,feedback_type\n{},abuse\n{},other\n", ["complaint"], 1, "an unknown type"),
    ("Contact e-mail address,SMTP response\n{},550 5.1.1 No\n", ["hard"], 0, "a long name"),
]


@each_row(("text", "outcomes", "unread", "why"), TABLES)
def test_a_table_of_any_program_is_read_and_the_rest_is_counted(
    tmp_path, text, outcomes, unread, why
):
    (tmp_path / "t.csv").write_text(text.replace("{}", ADA))
    rows, note = outcomes_of(tmp_path / "t.csv")
    assert [outcome for _, outcome in rows] == outcomes, why
    assert note["unread"] == unread, why


def test_the_names_that_were_taken_are_told():
    table = pd.DataFrame({"id": [1], "rcpt": [ADA], "result": ["bounced"], "response": [UNKNOWN]})
    with pytest.warns(
        UserWarning,
        match=r"the frame: not an export that is known; addresses were taken from 'rcpt', words "
        r"and replies were taken from 'result', 'response'; if that is wrong, name the columns",
    ):
        found = mv.read_bounces(table)
    assert found["outcome"].tolist() == ["hard"]
    assert len(found.attrs["bounces"]["guesses"]) == 1


@each_row(
    "columns",
    [
        {"email": [ADA], "status": ["active"]},
        {"email": [ADA], "status": ["unpaid"], "error": ["card declined"]},
    ],
)
def test_a_table_in_which_nothing_is_understood_is_an_error(columns):
    with pytest.raises(mv.ColumnError, match="name the columns"):
        mv.read_bounces(pd.DataFrame(columns))


def test_doubtful_words_can_be_given_a_meaning():
    table = pd.DataFrame({"email": [ADA], "type": ["permanent"]})
    with pytest.warns(UserWarning, match="not an export that is known"):
        found = mv.read_bounces(table, outcomes={"permanent": "hard"})
    assert found["outcome"].tolist() == ["hard"]


@each_row(
    ("word", "meaning"),
    [
        ("activity.hard_bounced", "hard"),
        ("MessageDelayed", "soft"),
        ("soft bounce", "soft"),
        ("transient_failure", "soft"),
        ("delivery failed", "judge"),
        ("not delivered", "judge"),
        ("unbounced", None),
        ("bounce removed", None),
        ("hard or soft bounce", "judge"),
        ("never bounced", None),
        ("a sentence that speaks of a bounce", None),
        ("email.opened", "skip"),
        ("lunch", None),
        ("The address is not at this host any more, see example.org/bounce", None),
        ("FilteredSpam", "blocked"),
        ("spam complaint, blocked", "complaint"),
        ("users.messages.email.MarkAsSpam", "complaint"),
        ("users.messages.email.Delivery", "delivered"),
        ("spammed", "complaint"),
    ],
)
def test_a_word_is_known_by_its_parts(word, meaning):
    assert known_word(word) == meaning


def test_no_part_of_a_word_has_two_meanings():
    parts = [name for names in word_parts().values() for name in names]
    assert len(parts) == len(set(parts))


def test_a_layout_needs_an_address_and_a_statement():
    assert general_layout(("email", "created_at", "ip")) is None
    assert general_layout(("event", "status")) is None
    assert general_layout(("from.email", "event")) is None
    assert general_layout(("data.to", "event")).is_general


def test_events_in_a_mail_are_read(tmp_path):
    event = {"event": "bounce", "email": ADA, "timestamp": WHEN, "response": UNKNOWN}
    path = tmp_path / "sns.eml"
    text = json.dumps(event) + "\n\n--\nTo stop these mails: ...\n"
    text = text.replace("User unknown", "User!\n  unknown")  # as Sendmail breaks a long line
    path.write_bytes(mail(text, sender="no-reply@sns.example", subject="Notification"))
    rows, note = outcomes_of(path)
    assert rows == [(ADA, "hard")]
    assert (note["mails"], note["rows"], note["other"]) == (1, 0, 0)


def test_a_notification_in_a_mail_that_is_cut_is_a_problem(tmp_path):
    (tmp_path / "a.eml").write_bytes(
        mail('{"event": "bounce', sender="no-reply@y.example", subject="N")
    )
    _, note = outcomes_of(tmp_path / "a.eml")
    assert (note["unread"], note["other"]) == (1, 0)
    assert "not valid" in note["problems"][0][1]


@each_row(
    ("event", "count"),
    [("not-spam", 0), ("auth-failure", 0), ("abuse", 1), (None, 1)],
)
def test_the_feedback_type_of_a_service_decides(tmp_path, event, count):
    complaint = {"complainedRecipients": [{"emailAddress": ADA}], "complaintFeedbackType": event}
    text = json.dumps({"notificationType": "Complaint", "complaint": complaint})
    (tmp_path / "ses.json").write_text(text)
    rows, _ = outcomes_of(tmp_path / "ses.json")
    assert rows == [(ADA, "complaint")] * count


@each_row(
    ("event", "count"),
    [
        ({"email": ADA, "event": "bounce", "response": f"{UNKNOWN} \ud800"}, 1),
        ({"email": "a\ud800a@firm.example", "event": "bounce", "response": UNKNOWN}, 0),
        ({"email": ADA, "event": "bou\ud800nce", "response": UNKNOWN, "\ud800": 1}, 1),
    ],
)
def test_half_a_character_costs_its_own_event_only(tmp_path, event, count):
    whole = {"email": "bo@firm.example", "event": "bounce", "response": UNKNOWN}
    (tmp_path / "e.jsonl").write_text(f"{json.dumps(event)}\n{json.dumps(whole)}\n")
    rows, note = outcomes_of(tmp_path / "e.jsonl")
    assert len(rows) == 1 + count
    assert note["unread"] == 1 - count


BO = "bo@firm.example"


@each_row(
    ("event", "outcome"),
    [
        ({"event": "delivery", "status": "failed", "email": ADA, "response": UNKNOWN}, "hard"),
        ({"event": "delivered", "email": ADA, "response": UNKNOWN}, "hard"),
        ({"event": "delivered", "email": ADA, "response": "250 2.0.0 OK"}, "delivered"),
        ({"status": "bounced", "email": ADA, "failure_reason": "hard bounce"}, "hard"),
    ],
)
def test_a_failure_outranks_the_word_delivered_and_a_word_is_no_reply(tmp_path, event, outcome):
    path = tmp_path / "events.json"
    path.write_text(json.dumps(event))
    assert outcomes_of(path)[0] == [(ADA, outcome)]


@each_row(
    ("event", "rows"),
    [
        ({"type": "message.bounced", "data": {"to": [ADA, BO], "bounce": {"type": "hard"}}}, []),
        ({"type": "message.bounced", "to": [{"email": ADA}, {"email": BO}], "hard": True}, []),
        ({"type": "email.bounced", "data": {"email_id": "1", "to": [ADA, BO]}}, []),
        ({"event": "bounce", "to": f"{ADA}, {BO}", "reason": UNKNOWN}, []),
        ({"event": "bounce", "to": [ADA, ADA.removeprefix("a")], "reason": UNKNOWN}, []),
        (
            {
                "event": "bounce",
                "message": {"to": [ADA, BO]},
                "bounces": [{"email": BO, "diagnostic_code": UNKNOWN}],
            },
            [(BO, "hard")],
        ),
    ],
)
def test_a_bounce_of_a_mail_to_several_says_nothing_about_all_of_them(tmp_path, event, rows):
    path = tmp_path / "events.jsonl"
    other = {"event": "bounce", "recipient": "cy@firm.example", "reason": UNKNOWN}
    path.write_text("\n".join(map(json.dumps, (other, event))))
    found, note = outcomes_of(path)
    assert found[1:] == rows
    assert bool(note["unread"]) is not bool(rows)


@each_row(
    ("event", "outcome"),
    [
        ({"event": "bounce", "email": ADA, "recipientState": "HardBounce"}, "hard"),
        ({"event": "bounce", "email": ADA, "smtp_log": UNKNOWN}, "hard"),
        ({"event": "bounce", "email": ADA, "order_status": "failed"}, "soft"),
        ({"event": "bounce", "email": ADA, "metadata": {"type": "hard bounce"}}, "soft"),
        ({"event": "bounce", "email": ADA, "reason": FULL, "last_state": "HardBounce"}, "soft"),
    ],
)
def test_a_cause_in_a_longer_name_is_read_if_there_is_no_other(tmp_path, event, outcome):
    path = tmp_path / "events.json"
    path.write_text(json.dumps(event))
    assert outcomes_of(path)[0] == [(ADA, outcome)]


def test_a_table_has_its_cause_in_a_column_of_comments(tmp_path):
    path = tmp_path / "bounced.csv"
    rows = f"{ADA},Bounced,{UNKNOWN}\n{BO},Unsubscribed,asked by phone\n"
    path.write_text(f"Email address,Reason,Comments\n{rows}")
    assert outcomes_of(path)[0] == [(ADA, "hard")]


def test_what_the_sender_wrote_into_an_event_is_no_bounce(tmp_path):
    path = tmp_path / "events.jsonl"
    bounce = {"event": "bounce", "email": BO, "reason": UNKNOWN}
    opened = {"event": "open", "email": ADA, "metadata": {"type": "permanent"}}
    path.write_text("\n".join(map(json.dumps, (bounce, opened))))
    assert outcomes_of(path)[0] == [(BO, "hard")]


@each_row(
    ("kind", "code", "text", "outcome"),
    [
        ("email_mailbox_not_found", 550, "5.1.1 User unknown", "hard"),
        ("email_dropped", 550, "5.7.1 blocked using zen.spamhaus.org", "blocked"),
        ("email_deferred", 452, "4.2.2 over quota", "soft"),
        ("email_spam", 0, "", "blocked"),
    ],
)
def test_scaleway_names_its_events_after_the_mail(tmp_path, kind, code, text, outcome):
    path = tmp_path / "events.json"
    event = {"type": kind, "email_id": "1", "email_to": ADA, "email_response_code": code}
    path.write_text(json.dumps({**event, "email_response_message": text}))
    assert outcomes_of(path)[0] == [(ADA, outcome)]
