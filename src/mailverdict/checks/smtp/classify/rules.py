"""The classification table: order is precedence, the first row that matches decides.

Letters in the comments are those of the order of tests: what cannot be about the mailbox is sorted out
first, so that a later row may read words about a mailbox as what they say.
"""

from __future__ import annotations

from ....model.words import Reason
from .classification import Action
from .rule import Rule, Sample
from .rules_mailbox import MAILBOX_RULES
from .rules_special import SPECIAL_RULES
from .rules_us import US_RULES
from .vocabulary import ABSENT, CLOSED, LATER, SERVER_TROUBLE, US

__all__ = ["RULES"]

TRANSIENT = "4.."
PERMANENT = "5.."

# Replies that are no answer to the question, whatever their words.
FIRST_RULES = (
    Rule(
        "closing",
        Reason.CONNECTION_DROPPED,
        Sample("rcpt", 221, "2.0.0", "Service closing transmission channel"),
        "RFC 5321 4.2.3; a server that gives up in the middle",
        code="221",
    ),
    Rule(
        "out_of_step_greeting",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 220, "", "mx.example.org ESMTP"),
        "servers that lose count under pipelining",
        code="220",
        phases="mail rcpt",
    ),
    Rule("accepted", None, Sample("rcpt", 250, "2.1.5", "Recipient OK"), "everyone; 251 and 252 too", code="2.."),
    Rule(
        "out_of_step",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 354, "", "End data with <CR><LF>.<CR><LF>"),
        "no command of ours has an intermediate reply",
        code="3..",
    ),
)

# l, m: transient replies that named neither us nor a full mailbox.
TRANSIENT_RULES = (
    Rule(
        "postscreen_after_220",
        Reason.GREYLISTED,
        Sample("rcpt", 450, "4.3.2", "Service currently unavailable"),
        "Postfix postscreen after its deep tests: it lets us in on the next connection",
        code="450",
        enhanced=r"4\.3\.2",
        phases="rcpt",
        retry_after=1.0,
    ),
    Rule(
        "lost_connection",
        Reason.CONNECTION_DROPPED,
        Sample("rcpt", 421, "4.4.2", "mx.example.org Error: timeout exceeded"),
        "RFC 3463 x.4.2 bad connection",
        code="[45]..",
        enhanced=r"[45]\.4\.2",
    ),
    Rule(
        "mimecast_greylist",
        Reason.GREYLISTED,
        Sample("rcpt", 451, "", "Internal resources are temporarily unavailable - https://community.mimecast.com/docs"),
        "Mimecast documents this wording as its greylisting",
        code="451",
        phases="mail rcpt",
        says=r"internal resources? (?:is |are )?temporarily unavailable",
    ),
    Rule(
        "server_trouble_code",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 451, "4.3.0", "Temporary lookup failure"),
        "RFC 3463 x.3 mail system, x.4 network, x.5 protocol",
        code=TRANSIENT,
        enhanced=r"4\.[345]\.\d+",
    ),
    Rule(
        "server_busy",
        Reason.INCONCLUSIVE,
        Sample("mail", 421, "", "Server busy, try again later"),
        "capacity without the word",
        code=TRANSIENT,
        says=r"\b(?:server|system|service|host)\b[^.;]{0,20}\bbusy|too busy|high load",
        action=Action.BACK_OFF,
    ),
    Rule(
        "server_trouble",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 451, "", "Temporary local problem - please try later"),
        "Exim, and the wording of RFC 5321 4.2.3 for 451",
        code=TRANSIENT,
        says=SERVER_TROUBLE,
    ),
    Rule(
        "soft_unknown",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 450, "4.1.1", "<x@example.org>: Recipient address rejected: User unknown in alias table"),
        "Postfix with soft_bounce: a transient reply establishes no refusal",
        code=TRANSIENT,
        enhanced=r"4\.[126]\.[1-9]\d*",
        phases="rcpt",
        unless=LATER,
    ),
    Rule(
        "soft_unknown_words",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 451, "", "Invalid Recipient - https://community.mimecast.com/docs/DOC-1369#451"),
        "Mimecast; transient, so not established",
        code=TRANSIENT,
        phases="rcpt",
        says=f"{ABSENT}|{CLOSED}",
        unless=f"{LATER}|{US}",
    ),
    Rule(
        "policy_transient",
        Reason.SENDER_BLOCKED,
        Sample("rcpt", 450, "4.7.1", "<x@example.com>: Recipient address rejected: Policy Rejection- Abuse. Go away."),
        "policyd",
        code=TRANSIENT,
        phases="mail rcpt",
        says=US,
        unless=LATER,
    ),
    Rule(
        "later",
        Reason.GREYLISTED,
        Sample("rcpt", 451, "", "Temporary failure, please try again later."),
        "OpenBSD spamd, rspamd, iCloud: later, and no cause",
        code=TRANSIENT,
        phases="mail rcpt",
        says=LATER,
    ),
    Rule(
        "bare_transient",
        Reason.GREYLISTED,
        Sample("rcpt", 450, "", "Requested mail action not taken: mailbox unavailable"),
        "the plain 450 and 451 of RFC 5321 4.2.3",
        code="45[01]",
        enhanced=r"|4\.2\.0|4\.7\.[01]",
        phases="mail rcpt",
    ),
    Rule(
        "transient",
        Reason.INCONCLUSIVE,
        Sample("banner", 421, "", "mx.example.org Service not available, closing transmission channel"),
        "what is left of 4xx",
        code=TRANSIENT,
    ),
)

# o: what is left of 5xx, by phase.
DEFAULT_RULES = (
    Rule(
        "banner_refused",
        Reason.PROTECTED,
        Sample("banner", 554, "", "Transaction failed"),
        "a server that refuses before it knows more than our address",
        code=PERMANENT,
        phases="banner",
    ),
    Rule(
        "ehlo_refused",
        Reason.PROTECTED,
        Sample("ehlo", 521, "5.5.1", "Protocol error"),
        "Postfix postscreen",
        code=PERMANENT,
        phases="ehlo",
    ),
    Rule(
        "mail_refused",
        Reason.SENDER_BLOCKED,
        Sample("mail", 550, "", "Rejected"),
        "nothing but our identity is known at MAIL",
        code=PERMANENT,
        phases="mail",
    ),
    Rule(
        "policy_code",
        Reason.SENDER_BLOCKED,
        Sample("rcpt", 550, "5.7.1", "Rejected"),
        "RFC 3463 x.7 security or policy",
        code=PERMANENT,
        enhanced=r"5\.7\.\d+",
        phases="rcpt",
    ),
    Rule(
        "command_words",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 501, "", "Syntax error in parameters or arguments"),
        "RFC 5321 4.2.2: about the command; Yahoo and GMX use it for much else",
        code=PERMANENT,
        phases="rcpt",
        says=r"syntax error|not implemented|unrecogni[sz]ed command|unknown command|unsupported option|bad command",
    ),
    Rule(
        "policy_words",
        Reason.SENDER_BLOCKED,
        Sample("rcpt", 550, "", "Mail is rejected by recipients"),
        "QQ and many a local rule",
        code=PERMANENT,
        phases="rcpt",
        says=rf"{US}|rejected by (?:the |this )?(?:recipient|user)s?",
    ),
    Rule(
        "permanent",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 550, "", "Rejected"),
        "a refusal without a word why: the random address may tell",
        code=PERMANENT,
    ),
)

RULES: tuple[Rule, ...] = (*FIRST_RULES, *SPECIAL_RULES, *US_RULES, *MAILBOX_RULES, *TRANSIENT_RULES, *DEFAULT_RULES)
