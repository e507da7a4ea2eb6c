"""Reading mails that report a delivery: the shapes of many systems, hostile mails, and the bounds."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.checks.bounces.message import MAX_MULTIPARTS, read_message
from mailverdict.checks.bounces.outcome import MAX_DIAGNOSTIC, Outcome
from mailverdict.checks.bounces.parts import MAX_MESSAGE, find_address
from mailverdict.model.words import Reason
from tests.doubles.tables import each_row

from .shapes import ADA, SHAPES, complaint, dsn, mail, qmail, recipient

BY_NAME = {shape.name: shape for shape in SHAPES}


def outcomes_of(data):
    return [(report.address, str(report.outcome)) for report in read_message(data).reports]


def test_the_outcome_of_each_shape_is_right():
    for shape in SHAPES:
        reading = read_message(shape.data)
        expected = [] if shape.outcome is None else [(shape.address, shape.outcome)]
        assert outcomes_of(shape.data) == expected, shape.name
        assert reading.is_other is (shape.outcome is None), shape.name
        assert reading.problems == [], shape.name


def test_line_ends_make_no_difference():
    for shape in SHAPES:
        assert outcomes_of(shape.data.replace(b"\n", b"\r\n")) == outcomes_of(shape.data), (
            shape.name
        )


def test_there_are_enough_shapes_and_their_names_differ():
    assert len(BY_NAME) == len(SHAPES)
    assert len(SHAPES) >= 100
    assert {shape.outcome for shape in SHAPES} == {None, *map(str, Outcome)}


def test_a_report_has_all_that_the_mail_says():
    (found,) = read_message(BY_NAME["sendmail report"].data).reports
    assert (found.reason, found.status) == (Reason.MAILBOX_NOT_FOUND, "5.1.1")
    assert found.diagnostic == f"SMTP; 550 5.1.1 <{ADA}>... User unknown"
    assert found.at == datetime(2026, 3, 3, 9, 15, tzinfo=UTC)
    assert found.message_id == "<m1@shop.example>"
    assert not found.is_delay


@each_row("name", ["postfix greylisted", "exim delay", "sendmail delay"])
def test_a_delay_is_marked(name):
    assert read_message(BY_NAME[name].data).reports[0].is_delay


@each_row(
    ("diagnostic", "outcome"),
    [
        ("550 5.1.1 News@shop.example: user unknown", "blocked"),
        (f"550 5.1.1 {ADA}: user unknown; ask news@shop.example", "hard"),
        ("550 5.1.1 other@x.example: user unknown", "hard"),
        ("550 5.1.1 user unknown", "hard"),
    ],
)
def test_a_mailbox_of_the_sender_that_is_missing_is_not_that_of_the_recipient(diagnostic, outcome):
    returned = f"From: The Shop <news@shop.example>\nTo: {ADA}\n\n"
    assert outcomes_of(dsn(recipient("5.1.1", f"smtp; {diagnostic}"), returned=returned)) == [
        (ADA, outcome)
    ]


def test_each_recipient_has_its_own_outcome():
    data = dsn(
        recipient("5.1.1", "smtp; 550 5.1.1 User unknown", to="a@x.example"),
        recipient("5.7.1", "smtp; 550 5.7.1 blocked using zen.spamhaus.org", to="b@x.example"),
        recipient("2.0.0", to="c@x.example", action="delivered"),
    )
    assert outcomes_of(data) == [
        ("a@x.example", "hard"),
        ("b@x.example", "blocked"),
        ("c@x.example", "delivered"),
    ]


def test_recipients_without_a_blank_line_between_them_are_kept_apart():
    rows = recipient("5.1.1", to="a@x.example") + "\n" + recipient("5.7.1", to="b@x.example")
    assert outcomes_of(dsn(rows)) == [("a@x.example", "hard"), ("b@x.example", "blocked")]


def test_several_complaints_in_one_report():
    data = complaint("Original-Rcpt-To: a@x.example", "Original-Rcpt-To: <b@x.example>")
    assert outcomes_of(data) == [("a@x.example", "complaint"), ("b@x.example", "complaint")]


def test_a_bounce_that_was_forwarded_as_an_attachment_is_read():
    inner = BY_NAME["gmail unknown"].data.decode()
    data = mail(
        f"--OUT\nContent-Type: text/plain\n\nSee below.\n\n--OUT\nContent-Type: message/rfc822\n\n{inner}\n--OUT--\n",
        sender="bo@shop.example",
        subject="Fwd: Undelivered",
        Content_Type="multipart/mixed; boundary=OUT",
    )
    assert outcomes_of(data) == [(ADA, "hard")]


def test_the_copy_of_the_sent_mail_is_not_taken_for_a_report():
    copy = f"From: a@x.example\nTo: {ADA}\nSubject: Undelivered\n\n<bo@x.example>:\nUser unknown\n"
    assert outcomes_of(dsn(recipient("4.4.1"), returned=copy)) == [(ADA, "soft")]


PROBLEMS = {
    "no recipient": (
        dsn("Action: failed\nStatus: 5.1.1", returned="Subject: x\n\n"),
        "without a recipient's address",
    ),
    "no recipients at all": (dsn("X-Note: nothing"), "without recipients"),
    "complaint without an address": (
        complaint(returned="Subject: x\n\n"),
        "complaint without the recipient's address",
    ),
    "bounce in an unknown form": (
        mail("Something went wrong.\n"),
        "a bounce without a recipient and a reason",
    ),
    "no header": (b"\n\nFrom here on there is only text", "not a mail"),
    "empty": (b"", "not a mail"),
    "attached mails in one another": (
        b"Content-Type: message/rfc822\n\n" * 5_000,
        f"more than {MAX_MULTIPARTS} nested",
    ),
    "multiparts in one another": (
        b"".join(
            b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(900)
        ),
        f"more than {MAX_MULTIPARTS} nested",
    ),
}


@each_row(("data", "problem"), PROBLEMS.values(), ids=PROBLEMS)
def test_what_cannot_be_read_is_a_problem(data, problem):
    reading = read_message(data)
    assert reading.reports == []
    assert problem in reading.problems[0]
    assert not reading.is_other


@pytest.mark.slow
def test_a_report_that_is_cut_says_so():
    rows = [
        recipient("5.1.1", "smtp; 550 5.1.1 User unknown", to=f"a{n}@x.example")
        for n in range(6_000)
    ]
    reading = read_message(dsn(*rows))
    assert 1_000 < len(reading.reports) < 6_000
    assert reading.problems == [
        f"only the first {MAX_MESSAGE // 1024} KiB of a larger mail were read"
    ]


def test_a_large_returned_mail_does_not_matter():
    data = dsn(
        recipient("5.1.1", "smtp; 550 5.1.1 User unknown"),
        returned=f"To: {ADA}\n\n" + "x" * 76 * 20_000,
    )
    reading = read_message(data)
    assert (len(reading.reports), reading.problems) == (1, [])


def test_hostile_texts_are_bounded_and_on_one_line():
    (found,) = read_message(
        dsn(recipient("5.1.1", "smtp; 550 5.1.1 \x1b[2J\0\n <b>" + "x" * 5_000))
    ).reports
    assert len(found.diagnostic) <= MAX_DIAGNOSTIC
    assert found.diagnostic.isprintable()


@each_row(
    "value",
    [
        "",
        "rfc822;",
        "x400; /c=us/",
        "rfc822; @",
        "rfc822; ada@",
        "a b@x.example",
        "x" * 400 + "@x.example",
    ],
)
def test_a_field_without_an_address_has_none(value):
    assert find_address(value) is None


@given(st.binary(max_size=400))
def test_no_mail_raises_an_error(data):
    read_message(data)
    read_message(
        b"From: mailer-daemon@x.example\nContent-Type: multipart/report; boundary=B\n\n--B\n" + data
    )


@each_row(
    ("original", "final", "address", "outcome"),
    [
        ("ada+2Bnews@firm.example", "ada+news@firm.example", "ada+news@firm.example", "hard"),
        ("ada+2Bnews@firm.example", "ada+2Bnews@firm.example", "ada+2Bnews@firm.example", "hard"),
        ("ada+2B@firm.example", "bo@firm.example", "ada+2B@firm.example", "soft"),
    ],
)
def test_an_original_recipient_in_the_form_of_smtp_is_the_final_one(
    original, final, address, outcome
):
    data = dsn(recipient("5.1.1", "smtp; 550 5.1.1 User unknown", to=final, original=original))
    [report] = read_message(data).reports
    assert (report.address, report.outcome) == (address, outcome)


@given(st.sampled_from(SHAPES), st.integers(0, 2_000), st.binary(min_size=1, max_size=12))
def test_no_damaged_report_raises_an_error(shape, at, octets):
    read_message(shape.data[:at] + octets + shape.data[at + len(octets) :])


@pytest.mark.slow
@given(st.text(max_size=300))
def test_no_reason_raises_an_error(reason):
    read_message(qmail(reason))
    read_message(dsn(recipient("5.1.1", reason.replace("\n", " "))))
