"""Which mails are bounces of ours: by sender, subject and text; mails of people; texts without a known form."""

from __future__ import annotations

from mailverdict.checks.bounces.message import read_message
from mailverdict.checks.bounces.notices import find_notices
from tests.doubles.tables import each_row

from .shapes import ADA, complaint, dsn, mail, recipient

BO = "Bo <bo@firm.example>"
UNKNOWN = "550 5.1.1 User unknown"
COPY = f"From: News <news@shop.example>\nTo: {ADA}\nSubject: March\n\nHello\n"


def outcomes_of(data):
    return [(report.address, str(report.outcome)) for report in read_message(data).reports]


def with_copy(text, copy=COPY, **fields):
    """A mail with a copy of another one."""
    body = (
        f"--OUT\nContent-Type: text/plain\n\n{text}\n\n"
        f"--OUT\nContent-Type: message/rfc822\n\n{copy}\n--OUT--\n"
    )
    return mail(body, Content_Type="multipart/mixed; boundary=OUT", **fields)


def ndr(address, to="bo@firm.example"):
    """A report about an address, as the text that a mail attaches."""
    report = dsn(recipient("5.1.1", f"smtp; {UNKNOWN}", to=address), returned="Subject: x\n\n")
    return report.decode().replace("To: news@shop.example", f"To: {to}", 1)


SALES = "sales@shop.example"
PEOPLE = [
    (with_copy("See below", ndr(SALES), sender=BO, subject="no answer"), "it went to him"),
    (
        with_copy("See below", ndr(SALES, "bo.li@firm.example"), sender=BO, subject="no answer"),
        "it went to another address of his company",
    ),
    (
        with_copy(
            "See below",
            ndr("cy@other.example")
            .replace("To: bo@firm.example\n", "", 1)
            .replace("Subject: x", f"From: {BO}"),
            sender=BO,
            subject="no answer",
        ),
        "the mail that came back was his",
    ),
    (
        with_copy("See below", ndr(SALES, "bo@home.example"), sender=BO, subject="no answer"),
        "it names our domain",
    ),
    (
        mail(
            f"--B\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; x\n\n"
            f"{recipient('5.1.1', to=SALES)}\n--B--\n",
            sender=BO,
            subject="Fwd: Undelivered",
            Content_Type="multipart/mixed; boundary=B",
        ),
        "the report part is forwarded alone",
    ),
    (
        mail(f"<{SALES}>: {UNKNOWN}\n", sender=BO, subject="Fwd: Undelivered Mail"),
        "forwarded as a text",
    ),
    (
        mail(f"> <{SALES}>: {UNKNOWN}\n", sender=BO, subject="Re: Undelivered Mail"),
        "an answer that quotes a bounce",
    ),
    (
        mail(f"Mail to {SALES} fails: {UNKNOWN}\n", sender=BO, subject="Undeliverable?"),
        "the subject alone, and our domain",
    ),
    (
        dsn(
            recipient("5.1.1", to=SALES),
            returned="Subject: x\n\n",
            sender=BO,
            subject="Fwd: Report",
        ),
        "a report that was forwarded as it is",
    ),
    (
        mail(
            f"We got your mail:\n{SALES}: {UNKNOWN}\n",
            sender="Support <support@firm.example>",
            subject="[Ticket 7] Undelivered Mail Returned to Sender",
            Auto_Submitted="auto-replied",
        ),
        "a ticket system quotes a bounce of its own",
    ),
    (
        mail(
            "I am away. bob@firm.example does not exist any more, write to cy@firm.example\n",
            sender=BO,
            subject="Thank you",
            Auto_Submitted="auto-replied",
            Return_Path="<>",
        ),
        "an automatic answer names others",
    ),
    (
        mail(
            f"Your parcel could not be delivered, the address is unknown:\n550 Unknown Road\n{ADA}\n",
            sender="info@carrier.example",
            subject="Delivery failure: parcel 123",
        ),
        "a parcel",
    ),
    (
        with_copy("The mailbox does not exist", sender=f"Ada <{ADA}>", subject="March"),
        "an answer of the recipient with our mail",
    ),
]


@each_row(("data", "why"), PEOPLE)
def test_a_mail_of_a_person_names_nobody(data, why):
    assert outcomes_of(data) == [], why


def test_a_bounce_that_a_colleague_forwards_counts():
    data = with_copy("See", ndr(ADA, "news@shop.example"), sender="cy@shop.example", subject="x")
    assert outcomes_of(data) == [(ADA, "hard")]


def test_the_bounce_of_another_is_named_as_a_problem():
    (problem,) = read_message(PEOPLE[0][0]).problems
    assert problem == "a bounce of a mail that was not ours, but of bo@firm.example"


def test_a_reply_in_a_mail_that_is_no_bounce_is_named():
    data = mail(f"It says {UNKNOWN} for {ADA}\n", sender=BO, subject="a question")
    reading = read_message(data)
    assert (reading.reports, reading.is_other) == ([], False)
    assert "nothing shows that one of our mails came back" in reading.problems[0]


TEXTS = [
    ("Delivery to {} failed.\n\nThe mailbox is full.\n", "soft", "a sentence gives the cause"),
    ("Could not deliver to {} [550 5.1.1 unknown user]\n", "hard", "a reply in brackets"),
    ("Could not deliver to {} (550) unknown user\n", "hard", "the code in brackets"),
    (
        "To: {}\n\n5.1.0 - Unknown address error 550-'5.1.1 No user'\n",
        "hard",
        "quote before a code",
    ),
    ("The address {} was not found.\n", "hard", "one sentence"),
    ("RCPT TO: {}\nMAIL FROM: x@y.example\n550 no such user here\n", "hard", "a session"),
    (
        "Delivery to {} failed.\n\nThe mailbox is full or the user does not exist.\n",
        "soft",
        "two causes in a sentence: not the one that loses a contact",
    ),
    (
        "Delivery to {} failed.\n\nUser unknown.\n\nThe mailbox is full.\n",
        "soft",
        "two causes in two sentences",
    ),
    ("Your mail to {} was refused.\nThe message was classified as spam.\n", "blocked", "a filter"),
    (
        "{}: conversation with mx[192.0.2.1] timed out while sending end of data\n",
        "soft",
        "Postfix",
    ),
    ("Die Nachricht an {} kam zurück:\n\nDie Adresse wurde nicht gefunden.\n", "hard", "German"),
    ("There was a temporary problem with {}. We will retry for 46 hours.\n", "soft", "a delay"),
]


@each_row(("text", "outcome", "why"), TEXTS)
def test_a_text_of_no_known_form_is_read(text, outcome, why):
    assert outcomes_of(mail(text.format(ADA))) == [(ADA, outcome)], why


@each_row(
    "text",
    [
        "Delivery to {} failed. Please check if the user is unknown.\n",
        "Delivery to {} failed. The address may not exist.\n",
        "Die Nachricht an {} kam zurück. Die Adresse existiert möglicherweise nicht.\n",
        "Delivery to {} and bo@firm.example failed: user unknown\n",
        "Delivery to {} failed.\n",
    ],
)
def test_a_text_without_one_recipient_and_a_cause_is_a_problem(text):
    assert "a bounce without" in read_message(mail(text.format(ADA))).problems[0]


PASSED_ON = [
    ("<bo@x.example>: (expanded from <{}>): host mx said: " + UNKNOWN, "Postfix"),
    ("  bo@x.example\n    (generated from {})\n    " + UNKNOWN + "\n", "Exim"),
    ("  an undisclosed address\n    (generated from {})\n    " + UNKNOWN + "\n", "Exim, hidden"),
    (
        "----- The following addresses had permanent fatal errors -----\n<bo@x.example>\n"
        "    (reason: " + UNKNOWN + ")\n    (expanded from: <{}>)\n",
        "Sendmail",
    ),
    ("Problems with local user ada.\n(Originally addressed to {})\n\nMailbox full\n", "others"),
]


@each_row(("text", "why"), PASSED_ON)
def test_the_address_that_was_mailed_is_named_and_not_hard(text, why):
    assert outcomes_of(mail(text.format(ADA))) == [(ADA, "soft")], why


def test_the_same_name_at_another_domain_is_the_same_mailbox():
    text = f"<ada@gone.example>: (expanded from <{ADA}>): Host or domain name not found."
    assert outcomes_of(mail(text)) == [(ADA, "hard")]


REPORTS = [
    ("5.0.0", "** Address not found **\n\nThe address couldn't be found.", "hard", "Google"),
    ("5.0.0", "The mailbox is full.", "soft", "a full mailbox"),
    ("5.0.0", "Please check whether the address exists.", "soft", "advice"),
    ("5.2.2", "The address couldn't be found.", "soft", "the status says why"),
]


@each_row(("status", "text", "outcome", "why"), REPORTS)
def test_a_report_without_a_diagnosis_is_judged_by_its_text(status, text, outcome, why):
    assert outcomes_of(dsn(recipient(status), text=text)) == [(ADA, outcome)], why


def test_fields_with_a_blank_before_the_colon_are_read():
    group = recipient("5.1.1", f"smtp;{UNKNOWN}").replace(":", " :")
    assert outcomes_of(dsn(group.replace("rfc822", "rfc/822"))) == [(ADA, "hard")]


@each_row(
    ("kind", "count"),
    [("abuse", 1), ("fraud", 1), ("not-spam", 0), ("auth-failure", 0), ("virus", 0), ("dmarc", 0)],
)
def test_only_feedback_of_a_person_is_a_complaint(kind, count):
    data = complaint().replace(b"Feedback-Type: abuse", f"Feedback-Type: {kind}".encode())
    reading = read_message(data)
    assert len(reading.reports) == count
    assert reading.is_other is (count == 0)


def test_feedback_of_an_unknown_type_is_named():
    data = complaint().replace(b"Feedback-Type: abuse", b"Feedback-Type: other")
    assert read_message(data).problems == [
        "a feedback report of type 'other' is not counted as a complaint"
    ]


@each_row(
    "page", ["<![x[", "<p>a<![x[ b", "<![CDATA[ x", "<!x[", "<![if !mso]>", "<?x", "<![" * 900]
)
def test_a_marked_section_is_no_error(page):
    data = mail(page, sender=BO, subject="March", Content_Type="text/html")
    assert read_message(data).is_other


def test_a_notification_in_json_is_given_to_the_reader_of_events():
    text = '{"notificationType": "Bounce"}\n\n--\nTo unsubscribe: ...\n'
    sender = "AWS Notifications <no-reply@sns.amazonaws.com>"
    reading = read_message(mail(text, sender=sender, subject="AWS Notification Message"))
    assert reading.events.startswith('{"notificationType"')
    assert read_message(mail(text, sender=BO, subject="Fwd: AWS")).events == ""
    assert read_message(mail(text, sender=BO, subject="AWS")).events == ""


def test_sentences_are_believed_only_of_a_mail_that_is_surely_a_bounce():
    text = f"The address {ADA} was not found."
    assert find_notices(text) == []
    assert find_notices(text, is_sure=True)[0].address == ADA


def test_half_a_character_in_a_mail_is_replaced():
    text = f"<{ADA}>: {UNKNOWN} +2AA-\n"
    (report,) = read_message(mail(text, Content_Type="text/plain; charset=utf-7")).reports
    assert report.diagnostic == f"{UNKNOWN} \ufffd"
