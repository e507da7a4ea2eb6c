"""Judging status codes and diagnostic texts: hard only for a missing mailbox or domain."""

from __future__ import annotations

from mailverdict.checks.bounces.outcome import Outcome, find_status, judge
from mailverdict.model.words import Reason
from tests import CASES
from tests.doubles.tables import each_row, rows_of_csv

# The replies of real servers with the reasons that are right for them.
REPLIES = [
    row
    for name in ("smtp_replies.csv", "smtp_replies_more.csv")
    for row in rows_of_csv(CASES / name)
    if row["phase"] == "rcpt" and row.get("confidence", "high") == "high"
]


def diagnostic(row):
    return " ".join(("smtp;", row["code"], row["enhanced"], row["text"]))


def test_a_refusal_of_the_sender_is_never_hard():
    refused = [row for row in REPLIES if row["expected_reason"] in ("protected", "sender_blocked")]
    assert len(refused) > 100
    hard = [
        row["text"]
        for row in refused
        if judge(row["enhanced"], diagnostic(row)).outcome is Outcome.HARD
    ]
    assert hard == []


def test_a_missing_mailbox_is_hard_after_a_permanent_reply():
    missing = [
        row
        for row in REPLIES
        if row["expected_reason"] == "mailbox_not_found" and row["code"].startswith("5")
    ]
    wrong = [
        row["text"]
        for row in missing
        if judge(row["enhanced"], diagnostic(row)).outcome is not Outcome.HARD
    ]
    assert len(missing) >= 90
    assert len(wrong) <= len(missing) * 0.02, wrong


CASES = [
    (
        "5.1.1",
        "",
        Outcome.HARD,
        Reason.MAILBOX_NOT_FOUND,
        "the status of the reporting server is enough",
    ),
    ("5.1.2", "", Outcome.HARD, Reason.NO_MX_RECORD, "RFC 3463 x.1.2"),
    ("5.2.1", "", Outcome.HARD, Reason.MAILBOX_NOT_FOUND, "disabled"),
    ("5.2.2", "", Outcome.SOFT, Reason.MAILBOX_FULL, "full"),
    ("5.7.1", "", Outcome.BLOCKED, Reason.SENDER_BLOCKED, "policy"),
    ("5.0.0", "", Outcome.SOFT, Reason.INCONCLUSIVE, "no cause"),
    (None, "", Outcome.SOFT, Reason.INCONCLUSIVE, "nothing at all"),
    ("4.4.7", "", Outcome.SOFT, Reason.INCONCLUSIVE, "expired"),
    (
        "5.1.1",
        "smtp; 550 Rejected",
        Outcome.SOFT,
        Reason.INCONCLUSIVE,
        "Sendmail gives 5.1.1 to any 550",
    ),
    (
        "5.7.27",
        "smtp; 550 5.7.27 Sender address has null MX",
        Outcome.BLOCKED,
        Reason.SENDER_BLOCKED,
        "RFC 7505",
    ),
    (
        "5.1.10",
        "smtp; 556 5.1.10 Recipient address has null MX",
        Outcome.HARD,
        Reason.NO_MX_RECORD,
        "RFC 7505",
    ),
    (
        "4.1.1",
        "smtp; 450 4.1.1 User unknown",
        Outcome.SOFT,
        Reason.INCONCLUSIVE,
        "transient replies prove nothing",
    ),
    (
        "5.4.4",
        "X-Postfix; Host or domain name not found, try again",
        Outcome.SOFT,
        None,
        "a failed look-up",
    ),
    (
        None,
        "lost connection with mx.example while sending RCPT TO",
        Outcome.SOFT,
        Reason.CONNECTION_DROPPED,
        "own words",
    ),
    (
        None,
        "connect to mx.example[192.0.2.1]:25: Connection refused",
        Outcome.SOFT,
        Reason.PORT_CLOSED,
        "own words",
    ),
    (
        None,
        "Sender verify failed: domain does not exist",
        Outcome.BLOCKED,
        None,
        "the domain of the sender",
    ),
    (
        "5.1.8",
        "X-Local; Domain of sender address does not exist",
        Outcome.BLOCKED,
        None,
        "the same with a status",
    ),
    (
        "5.1.1",
        "smtp; 550 5.1.1 User unknown (in reply to MAIL FROM command)",
        Outcome.BLOCKED,
        None,
        "the sender",
    ),
    (
        None,
        "after MAIL FROM:<news@shop.example>: 553 5.1.0 does not exist",
        Outcome.BLOCKED,
        None,
        "Exim: the sender",
    ),
    (
        None,
        "Helo command rejected: Host not found",
        Outcome.BLOCKED,
        None,
        "the name of the client",
    ),
    (None, "smtp; 550 5.4.4 Invalid domain", Outcome.HARD, Reason.NO_MX_RECORD, "Amazon SES"),
    (
        None,
        "smtp; 501 5.0.0 Invalid domain name",
        Outcome.SOFT,
        Reason.INCONCLUSIVE,
        "the HELO name",
    ),
]


def test_status_and_text_together():
    for status, diagnostic, outcome, reason, why in CASES:
        found = judge(status, diagnostic)
        assert found.outcome is outcome, why
        assert reason is None or found.reason is reason, why


@each_row(
    ("text", "status"),
    [
        ("5.1.1 (bad)", "5.1.1"),
        ("10.5.1.1", None),
        ("5.1.1.9", None),
        ("", None),
        ("x 4.2.2;", "4.2.2"),
    ],
)
def test_a_status_code_is_not_an_ip_address(text, status):
    assert find_status(text) == status
