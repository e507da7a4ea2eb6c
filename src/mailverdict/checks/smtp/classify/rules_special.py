"""Rows for what is peculiar: extensions demanded, sender callouts, nested replies, limits, greylisting.

They stand before all others, since their words would mislead the rows that follow. Order is precedence; see
`mailverdict.checks.smtp.classify.rules`.
"""

from __future__ import annotations

from ....model.words import Reason
from .classification import Action
from .rule import Rule, Sample
from .vocabulary import ABSENT, CAPACITY, CLIENT, CLOSED, US

__all__ = ["SPECIAL_RULES"]

TRANSIENT = "4.."
PERMANENT = "5.."
HOSTILE = r"reputation|black|block|spam|abus|unsolicited|banned|unusual|suspicious"
# "Too many recipients" that our address asked about over time, not in this transaction.
OVER_TIME = r"\bsent\b|\bfrom\b|hour|minute|\bday\b|invalid|unknown|\bbad\b|non-?exist|xipx|your (?:ip|host|server)"
NESTED = r"(?:said|says|was|respon\w+|repl\w+|answer\w*|return\w*|fail\w*|error|\(xaddrx)[ :\"']{1,3}5\d\d[ -]+"

# a to d: replies that speak of the recipient in a way no later row may misread.
QUESTION_RULES = (
    Rule(
        "null_mx",
        Reason.NO_MX_RECORD,
        Sample("rcpt", 556, "5.1.10", "Recipient address has null MX"),
        "RFC 7505 4.2",
        code="556",
    ),
    Rule(
        "null_mx_words",
        Reason.NO_MX_RECORD,
        Sample(
            "rcpt", 550, "5.1.10", "<x@example.org>: Recipient address rejected: Domain does not accept mail (nullMX)"
        ),
        "Postfix",
        code=PERMANENT,
        phases="rcpt",
        says=r"null ?mx",
        unless=r"sender|from",
    ),
    Rule(
        "host_takes_no_mail",
        Reason.NO_MX_RECORD,
        Sample("banner", 521, "", "mx.example.org does not accept mail"),
        "RFC 7504; of a domain only if all its exchanges say so",
        code="521",
        says=r"(?:does|do|will)(?: not|n't) (?:accept|receive) (?:any |incoming )?(?:e-?)?mail|accepts no mail",
        unless=rf"your|xipx|{CLIENT}",
    ),
    Rule(
        "postfix_unknown",
        Reason.MAILBOX_NOT_FOUND,
        Sample(
            "rcpt",
            550,
            "5.1.1",
            "<x@example.org>: Recipient address rejected: User unknown in virtual mailbox table. "
            "For assistance please provide: client (192.0.2.7). See the user policy.",
        ),
        "Postfix, whose own words come first; smtpd_reject_footer adds advice that may speak of us",
        code=PERMANENT,
        phases="rcpt",
        says=r"^xaddrx: recipient address rejected: user unknown in (?:[\w-]+ ){0,3}table\b",
    ),
    Rule(
        "recipient_rate",
        None,
        Sample("rcpt", 450, "4.2.1", "The user you are trying to contact is receiving mail at a rate that prevents it"),
        "Gmail, Outlook.com, Yandex, iCloud: a limit of the recipient's own proves the mailbox",
        phases="rcpt",
        says=r"(?:user|recipient|mailbox|account)\b[^.;]{0,40} is receiving (?:mail|messages|e-?mail)"
        r"|recipient has exceeded [^.;]{0,20}\b(?:limit|rate)|messages? to xaddrx deferred due to excessive volume"
        r"|too many messages (?:to|for) (?:this|the) (?:recipient|user|mailbox)",
        unless=r"quota|storage|size|disk|space|full",
    ),
    Rule(
        "tls_demanded",
        Reason.INCONCLUSIVE,
        Sample("mail", 530, "5.7.0", "Must issue a STARTTLS command first"),
        "RFC 3207 4; Postfix, Exchange",
        says=r"\bstarttls\b"
        r"|(?:requires?|must (?:use|issue|support)|needs?|needed|only accept\w*|without|please use|over) [^.;]{0,40}"
        r"\b(?:tls|ssl|encryption|encrypted|secure (?:connection|channel))\b"
        r"|\b(?:tls|ssl|encryption|secure connection)\b[^.;]{0,30}\b(?:required|needed|mandatory)",
        error_code="TLS_REQUIRED",
        action=Action.USE_TLS,
    ),
    Rule(
        "tls_demanded_code",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 554, "5.7.10", "Encryption"),
        "RFC 7817 x.7.10",
        enhanced=r"[45]\.7\.10",
        error_code="TLS_REQUIRED",
        action=Action.USE_TLS,
    ),
    Rule(
        "smtputf8_code",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 553, "5.6.7", "Address not allowed"),
        "RFC 6531 3.5",
        enhanced=r"[45]\.6\.7",
        error_code="SMTPUTF8_REQUIRED",
        action=Action.USE_SMTPUTF8,
    ),
    Rule(
        "smtputf8_words",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 553, "", "SMTPUTF8 is required, but was not offered by the sender"),
        "Postfix, Exim",
        says=r"smtputf8"
        r"|\b(?:non-?ascii|internationali[sz]ed|utf-?8)\b[^.;]{0,40}\b(?:address|mailbox|recipient|envelope|local)",
        error_code="SMTPUTF8_REQUIRED",
        action=Action.USE_SMTPUTF8,
    ),
    Rule(
        "sender_callout",
        Reason.SENDER_BLOCKED,
        Sample("rcpt", 550, "", "Verification failed for <v@example.com> No Such User Here Sender verify failed"),
        "Exim and Postfix asking our sender's exchange: its 'no such user' is not about the recipient",
        says=r"(?:\bsender|call-?out|call-?back|return[- ]path|reverse[- ]path|mail from)\b[^;]{0,80}\bverif"
        r"|\bverif\w+[^.;]{0,40}\bsender"
        r"|call-?out|call-?back|sender address rejected: un",
        unless=r"recipient (?:verif\w+ )?(?:call-?out|verif)",
    ),
    Rule(
        "verification_in_progress",
        Reason.GREYLISTED,
        Sample("rcpt", 450, "4.1.1", "<x@example.org>: Recipient address rejected: Address verification in progress"),
        "Postfix, Proofpoint: they ask the next server meanwhile",
        code=TRANSIENT,
        phases="rcpt",
        says=r"verification in progress",
        retry_after=20.0,
    ),
    Rule(
        "nested_unknown",
        Reason.MAILBOX_NOT_FOUND,
        Sample(
            "rcpt",
            450,
            "4.1.1",
            "<x@example.org>: Recipient address rejected: undeliverable address: host mx.example.org[198.51.100.9] "
            "said: 550 5.1.1 <x@example.org>: User unknown (in reply to RCPT TO command)",
        ),
        "Postfix address verification: the permanent reply of the server behind wins over the outer code",
        phases="rcpt",
        says=rf"{NESTED}(?:#?5\.(?:1\.[136]|1\.10|2\.1)\b|[^;]{{0,160}}?{ABSENT}|[^;]{{0,160}}?{CLOSED})"
        rf"|undeliverable address: (?:unknown user|user unknown|no such user)",
        unless=US,
    ),
    Rule(
        "nested_trouble",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 450, "4.1.1", "<x@example.org>: unverified address: connect to mx[192.0.2.1]:25: refused"),
        "Postfix address verification that could not ask the server behind",
        phases="rcpt",
        says=r"un(?:deliverable|verified) address: \S|\bsaid: 5\d\d",
    ),
)

# e, f, g: capacity, greylisting, and the grammar in which Postfix says what it rejected.
HABIT_RULES = (
    Rule(
        "client_code",
        Reason.PROTECTED,
        Sample("rcpt", 550, "5.7.606", "Access denied, banned sending IP [192.0.2.7]"),
        "Exchange Online 5.7.6xx-8xx and 4.7.5xx-6xx; RFC 7372 x.7.25 reverse DNS",
        enhanced=r"5\.7\.[678]\d\d|4\.7\.[56]\d\d|[45]\.7\.25",
    ),
    Rule(
        "one_domain",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 451, "4.3.0", "Multiple destination domains per transaction is unsupported. Please try again."),
        "Google, where hosted domains share one exchange",
        phases="mail rcpt",
        says=r"multiple (?:destination|recipient) domains|different domains|one domain (?:per|at)",
        action=Action.ONE_DOMAIN,
    ),
    Rule(
        "too_many_recipients",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 452, "4.5.3", "Error: too many recipients"),
        "RFC 5321 4.5.3.1.10; Outlook.com after the first recipient",
        phases="mail rcpt",
        says=r"too many (?:rcpts?|recipients)|recipients? (?:limit|count)|max\w* (?:number of )?recipients"
        r"|multiple recipients|one recipient (?:at|per)",
        unless=OVER_TIME,
        action=Action.FEWER_RECIPIENTS,
    ),
    Rule(
        "too_many_recipients_code",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 452, "4.5.3", "Try again"),
        "RFC 3463 x.5.3",
        enhanced=r"[45]\.5\.3",
        phases="mail rcpt",
        unless=OVER_TIME,
        action=Action.FEWER_RECIPIENTS,
    ),
    Rule(
        "capacity",
        Reason.INCONCLUSIVE,
        Sample("mail", 452, "4.3.2", "Connection rate limit exceeded."),
        "Sendmail, Postfix anvil, Exchange: they would talk to us, only not to so many of us",
        says=CAPACITY,
        unless=HOSTILE,
        action=Action.BACK_OFF,
    ),
    Rule(
        "greylist",
        Reason.GREYLISTED,
        Sample(
            "rcpt", 450, "4.2.0", "<x@example.com>: Recipient address rejected: Greylisted, see http://postgrey.example"
        ),
        "Postgrey, milter-greylist, sqlgrey, Yahoo's [GL01]",
        code=TRANSIENT,
        says=r"gr[ea]y-? ?list|\[gl\d\d\]",
    ),
    Rule(
        "postfix_client",
        Reason.PROTECTED,
        Sample("rcpt", 554, "5.7.1", "<unknown[192.0.2.7]>: Client host rejected: Access denied"),
        "Postfix, smtpd_client_restrictions",
        says=r"client (?:host|address) rejected",
    ),
    Rule(
        "postfix_identity",
        Reason.SENDER_BLOCKED,
        Sample("rcpt", 504, "5.5.2", "<localhost>: Helo command rejected: need fully-qualified hostname"),
        "Postfix, smtpd_helo_restrictions and smtpd_sender_restrictions",
        says=r"(?:helo|ehlo) command rejected|sender address rejected",
    ),
)

SPECIAL_RULES: tuple[Rule, ...] = (*QUESTION_RULES, *HABIT_RULES)
