"""What sending services call their columns, outcomes and reasons: tables, each with the public page that says so.

`LAYOUTS` are the known exports and events, `WORDS` what services call an outcome, `REASONS` and `SENTENCES` what they
write in place of the reply of a mail server, above all for a mail that they did not send.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..checks.bounces.outcome import Outcome

FIELDS = ("address", "at", "outcome", "status", "diagnostic", "reason")
JUDGE = "judge"  # the word does not say why: the reply decides
SKIP = "skip"  # not about the delivery
DELIVERED, SOFT, BLOCKED, COMPLAINT, HARD = Outcome


@dataclass(frozen=True)
class ExportLayout:
    """An export or event of a service: the columns of each of our fields; the first that is not empty counts."""

    name: str
    columns: Mapping[str, tuple[str, ...]]  # ours -> theirs; a member of an inner object as `outer.inner`
    source: str  # where the names of the columns are documented
    needs: tuple[str, ...] = ()  # the columns by which it is known; all if empty
    words: Mapping[str, str] = field(default_factory=dict)  # what differs from `WORDS`
    without_word: str = JUDGE  # what every row means if there is no column for the outcome
    is_final: bool = False  # outcomes are ours already

    def fits(self, names: frozenset[str]) -> bool:
        """Whether a table with these columns, in lower case, is such an export."""
        needed = self.needs or [name for names in self.columns.values() for name in names]
        return all(name.lower() in names for name in needed)


SES = "docs.aws.amazon.com/ses/latest/dg/notification-contents.html, read 2026-11"
SES_REPLY = {"address": ("emailAddress",), "at": ("timestamp",), "status": ("status",)}
MAILGUN = "documentation.mailgun.com/docs/mailgun/user-manual/events, read 2026-11"

# The first layout that fits is used; those that need more columns stand first.
LAYOUTS = (
    ExportLayout(
        "mailverdict",
        {name: (name,) for name in FIELDS},
        "mailverdict.read_bounces, as written to a file",
        is_final=True,
    ),
    ExportLayout(
        "Amazon SES bounces",
        {**SES_REPLY, "outcome": ("bounceType",), "diagnostic": ("diagnosticCode", "bounceSubType")},
        SES,
        needs=("emailAddress", "bounceType"),
    ),
    ExportLayout(
        "Amazon SES complaints",
        {"address": ("emailAddress",), "at": ("timestamp",)},
        SES,
        needs=("emailAddress", "complainedRecipients"),
        without_word=COMPLAINT,
    ),
    ExportLayout(
        "Amazon SES delays",
        {**SES_REPLY, "diagnostic": ("diagnosticCode", "delayType")},
        "docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns-contents.html, read 2026-11",
        needs=("emailAddress", "delayType"),
        without_word=SOFT,
    ),
    ExportLayout(
        "Amazon SES deliveries",
        {"address": ("recipients",), "at": ("timestamp",)},
        SES,
        needs=("recipients", "smtpResponse"),
        without_word=DELIVERED,
    ),
    ExportLayout(
        "SendGrid events",
        {
            "address": ("email",),
            "at": ("timestamp",),
            "outcome": ("event",),
            "status": ("status",),
            "diagnostic": ("reason",),
        },
        "twilio.com/docs/sendgrid/for-developers/tracking-events/event, read 2026-11",
        needs=("email", "timestamp", "event"),
    ),
    ExportLayout(
        "SendGrid bounces or blocks",
        {"address": ("email",), "at": ("created",), "status": ("status",), "diagnostic": ("reason",)},
        "twilio.com/docs/sendgrid/api-reference/bounces-api, read 2026-11",
    ),
    ExportLayout(
        "Mailgun events",
        {
            "address": ("recipient",),
            "at": ("timestamp",),
            "outcome": ("severity", "event"),
            "status": ("delivery-status.code",),
            "diagnostic": ("delivery-status.message", "delivery-status.description", "reason"),
        },
        MAILGUN,
        needs=("recipient", "event"),
    ),
    ExportLayout(
        "Mailgun bounces",
        {"address": ("address",), "at": ("created_at",), "status": ("code",), "diagnostic": ("error",)},
        "documentation.mailgun.com/docs/mailgun/api-reference/send/mailgun/bounces, read 2026-11",
        without_word=HARD,  # "permanent recipient mailbox errors"
    ),
    ExportLayout(
        "Postmark bounces",
        {"address": ("Email",), "at": ("BouncedAt",), "outcome": ("Type",), "diagnostic": ("Details",)},
        "the Bounce type of Postmark's client library postmark 4.0, read 2026-11",
    ),
    ExportLayout(
        "Postmark deliveries",
        {"address": ("Recipient",), "at": ("DeliveredAt",)},
        "postmarkapp.com/developer/webhooks/delivery-webhook, read 2026-11",
        without_word=DELIVERED,
    ),
    ExportLayout(
        "Amazon SES suppression list",
        {"address": ("EmailAddress",), "at": ("LastUpdateTime",), "outcome": ("Reason",)},
        "docs.aws.amazon.com/ses/latest/APIReference-V2/API_SuppressedDestinationSummary.html, read 2026-11",
        words={"bounce": HARD},  # "results in a hard bounce"
    ),
    ExportLayout(
        "Salesforce Marketing Cloud bounces",
        {
            "address": ("EmailAddress",),
            "at": ("EventDate",),
            "outcome": ("BounceCategory",),
            "status": ("SMTPCode",),
            "diagnostic": ("BounceReason",),
        },
        "help.salesforce.com, mktg.mc_as_bounces, read 2026-11",
    ),
    ExportLayout(
        "SparkPost events",
        {
            "address": ("rcpt_to", "raw_rcpt_to"),
            "at": ("timestamp",),
            "outcome": ("type",),
            "status": ("error_code",),
            "diagnostic": ("raw_reason", "reason"),
        },
        "developers.sparkpost.com/api/webhooks, read 2026-11",
        needs=("rcpt_to", "type"),
    ),
    ExportLayout(
        "PowerMTA accounting",
        {
            "address": ("rcpt",),
            "at": ("timeLogged",),
            "outcome": ("type",),
            "status": ("dsnStatus",),
            "diagnostic": ("dsnDiag", "bounceCat"),
        },
        "PowerMTA User's Guide, Accounting records, read 2026-11",
        needs=("rcpt", "timeLogged", "type"),
        words={
            "d": DELIVERED,
            "b": JUDGE,
            "rb": JUDGE,
            "t": SOFT,
            "f": COMPLAINT,
            **dict.fromkeys(("tq", "r", "rs"), SKIP),
        },
    ),
    ExportLayout(
        "Mailjet events",
        {"address": ("email",), "at": ("time",), "outcome": ("event",), "diagnostic": ("error", "comment")},
        "dev.mailjet.com/email/guides/webhooks, read 2026-11",
        needs=("email", "time", "event"),
        words={"sent": DELIVERED},  # "the message is delivered to the destination server"
    ),
    ExportLayout(
        "Brevo blocked contacts",
        {"address": ("email",), "at": ("blockedAt",), "outcome": ("reason.code", "code")},
        "developers.brevo.com/reference/get-transac-blocked-contacts, read 2026-11",
        needs=("email", "blockedAt"),
    ),
    ExportLayout(
        "Brevo events",
        {"address": ("email",), "at": ("ts_event", "date"), "outcome": ("event",), "diagnostic": ("reason",)},
        "developers.brevo.com/docs/transactional-webhooks, read 2026-11",
        needs=("email", "event"),
    ),
)


def spread(table: tuple[tuple[str, Mapping[str, str]], ...]) -> Iterator[tuple[str, str]]:
    """Each word with its meaning."""
    for _, words in table:
        for meaning, names in words.items():
            for name in names.split():
                yield name, meaning


# What services call an outcome, without blanks, hyphens and case; and the page that lists the words, read 2026-11.
WORDS: dict[str, str] = dict(
    spread(
        (
            (
                "several services, and the senders' own tables",
                {
                    HARD: "hard hardbounce hardbounces hardbounced permanent",
                    SOFT: "soft softbounce softbounces softbounced transient temporary deferred deferral delayed delay",
                    BLOCKED: "block blocked blockbounce",
                    COMPLAINT: "complaint complained spam spamreport spamcomplaint markedasspam abuse",
                    DELIVERED: "delivered delivery relayed expanded",  # the last two: RFC 3464 section 2.3.3
                    JUDGE: "bounce bounced bounces failed failure error undetermined unknown unknownbounce",
                    SKIP: "processed sent send request requests queued accepted dropped open opened click"
                    " clicked clicks unsubscribe unsubscribed subscribe invalid",
                },
            ),
            (
                "twilio.com/docs/sendgrid/for-developers/tracking-events/event",
                {SKIP: "groupunsubscribe groupresubscribe"},
            ),
            (
                "the Bounce type of Postmark's client library postmark 4.0",
                {
                    HARD: "bademailaddress",
                    SOFT: "dnserror",
                    BLOCKED: "spamnotification virusnotification dmarcpolicy",
                    SKIP: "autoresponder addresschange challengeverification openrelaytest manuallydeactivated"
                    " unconfirmed smtpapierror inbounderror templaterenderingfailed",
                },
            ),
            ("help.salesforce.com, mktg.mc_as_bounces", {JUDGE: "technical technicalother technicalotherbounce"}),
            (
                "developers.sparkpost.com/api/webhooks",
                {
                    BLOCKED: "policyrejection",
                    JUDGE: "outofband generationrejection",
                    SKIP: "generationfailure injection listunsubscribe linkunsubscribe initialopen ampopen"
                    " ampinitialopen ampclick relayinjection relayrejection relaydelivery relaytempfail relaypermfail",
                },
            ),
            ("dev.mailjet.com/email/guides/webhooks", {SKIP: "unsub"}),
            (
                "developers.brevo.com/docs/transactional-webhooks and /reference/get-transac-blocked-contacts",
                {
                    HARD: "invalidemail",
                    COMPLAINT: "contactflaggedasspam",
                    SKIP: "firstopening uniqueopened proxyopen uniqueproxyopen loadedbyproxy contactdeleted"
                    " contactupdated listaddition adminblocked unsubscribedviama unsubscribedviaemail"
                    " unsubscribedviaapi",
                },
            ),
        )
    )
)

# What services write in place of a reply.
REASONS: dict[str, str] = dict(
    spread(
        (
            (
                SES,  # a list of an account holds complainants, too, so that it does not show that a mailbox is missing
                {
                    HARD: "noemail",
                    SOFT: "suppressed onaccountsuppressionlist mailboxfull messagetoolarge",
                    BLOCKED: "contentrejected attachmentrejected",
                },
            ),
            (
                MAILGUN,
                {
                    HARD: "suppressbounce",
                    SOFT: "old tooold",
                    BLOCKED: "espblock",
                    COMPLAINT: "suppresscomplaint",
                    SKIP: "suppressunsubscribe",
                },
            ),
            (
                "dev.mailjet.com/email/guides/webhooks: possible values for errors",
                {SOFT: "greylisted", COMPLAINT: "spamreporter", SKIP: "duplicateincampaign"},
            ),
            (
                "PowerMTA User's Guide, Bounce categories",
                {
                    HARD: "badmailbox inactivemailbox baddomain",
                    SOFT: "quotaissues messageexpired noanswerfromhost badconnection badconfiguration routingerrors"
                    " protocolerrors other",
                    BLOCKED: "policyrelated spamrelated contentrelated virusrelated invalidsender relayingissues",
                },
            ),
        )
    )
)

# Why a service did not send a mail. Only a list of bounces says something about the mailbox.
SENTENCES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), meaning)
    for pattern, meaning in (
        # Mailgun's code 605; Amazon SES, its global list
        (r"previously bounced|history of bouncing", HARD),
        (r"not delivering to (?:an? )?unsubscribed", SKIP),  # Mailgun, 606
        (r"marked your (?:messages?|e?-?mails?) as spam", COMPLAINT),  # Mailgun, 607
        # Amazon SES, the list of an account; SparkPost, "due to customer policy"
        (r"on (?:the|our|your) suppression list|(?:address|recipient) (?:was |is )?suppressed", SOFT),
    )
)
