"""Rows about the mailbox: full, closed, or not there.

Every row that says `mailbox_not_found` from words or from a code steps aside when the text also speaks
of us (`US`) or of a domain: unknown is the honest answer there. See `mailverdict.checks.smtp.classify.rules`.
"""

from __future__ import annotations

from ....model.words import Reason
from .rule import Rule, Sample
from .vocabulary import ABSENT, CLOSED, DOMAIN_TROUBLE, FULL, NO_MAILBOX, US

__all__ = ["MAILBOX_RULES"]

PERMANENT = r"5(?!0[0234])\d\d"  # 500, 502-504 are about the command (RFC 5321 4.2.2), whatever they say
NOT_ABOUT_US = f"{US}|{DOMAIN_TROUBLE}"
NOT_ABOUT_MAIL = f"{NOT_ABOUT_US}|{NO_MAILBOX}"

MAILBOX_RULES: tuple[Rule, ...] = (
    Rule(
        "over_quota_code",
        Reason.MAILBOX_FULL,
        Sample("rcpt", 552, "5.2.2", "Mailbox size limit exceeded"),
        "RFC 3463 x.2.2",
        enhanced=r"[45]\.2\.2",
        phases="rcpt",
    ),
    Rule(
        "over_quota",
        Reason.MAILBOX_FULL,
        Sample("rcpt", 552, "", "Requested mail action aborted: exceeded storage allocation Quota exceeded."),
        "GMX and everyone without enhanced codes",
        phases="rcpt",
        says=FULL,
        unless=r"\bsend(?:ing|er)|\bip\b|xipx|daily|hourly|\brelay|\brate\b|messages? per|outgoing|outbound"
        r"|message size|queue|polic|system",
    ),
    Rule(
        "yandex_target_policy",
        Reason.MAILBOX_NOT_FOUND,
        Sample("rcpt", 550, "5.7.1", "Policy rejection on the target address"),
        "Yandex, of an account that it has closed",
        code=PERMANENT,
        phases="rcpt",
        says=r"^policy rejection on the target address",
        error_code="MAILBOX_DISABLED",
    ),
    Rule(
        "qmail_badrcptto",
        Reason.MAILBOX_NOT_FOUND,
        Sample("rcpt", 553, "", "sorry, your envelope recipient is in my badrcptto list (#5.7.1)"),
        "qmail: addresses that the administrator has shut",
        code=PERMANENT,
        phases="rcpt",
        says=r"recipient is (?:in my bad(?:rcptto|recipientto)|not in my validrcptto)",
        error_code="MAILBOX_DISABLED",
    ),
    Rule(
        "directory_edge_block",
        Reason.MAILBOX_NOT_FOUND,
        Sample("rcpt", 550, "5.4.1", "All recipient addresses rejected : Access denied [MN1PEPF.prod.outlook.com]"),
        "Exchange Online with directory-based edge blocking",
        code=PERMANENT,
        enhanced=r"5\.4\.1",
        phases="rcpt",
        says=r"recipient address(?:es)? rejected ?: ?access denied",
    ),
    Rule(
        "postfix_recipient_access",
        Reason.MAILBOX_NOT_FOUND,
        Sample("rcpt", 554, "5.7.1", "<x@example.org>: Recipient address rejected: Access denied"),
        "Postfix check_recipient_access: the one class of that grammar that is about the recipient",
        code=PERMANENT,
        phases="rcpt",
        says=r"^xaddrx: recipient address rejected: access denied$",
        error_code="MAILBOX_DISABLED",
    ),
    Rule(
        "domain_trouble",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 550, "5.1.2", "<x@nodns.example>: Recipient address rejected: Domain not found"),
        "the server cannot see the domain; what it says of the mailbox follows from that",
        code=PERMANENT,
        phases="rcpt",
        says=DOMAIN_TROUBLE,
        unless=US,
    ),
    Rule(
        "mailbox_closed",
        Reason.MAILBOX_NOT_FOUND,
        Sample("rcpt", 550, "5.2.1", "The email account that you tried to reach is disabled."),
        "Gmail, Mail.ru, La Poste, NetEase",
        code=PERMANENT,
        phases="rcpt",
        says=CLOSED,
        unless=NOT_ABOUT_US,
        error_code="MAILBOX_DISABLED",
    ),
    Rule(
        "mailbox_unknown",
        Reason.MAILBOX_NOT_FOUND,
        Sample("rcpt", 550, "", "Mailbox not found."),
        "everyone, in several languages",
        code=PERMANENT,
        phases="rcpt",
        says=ABSENT,
        unless=NOT_ABOUT_US,
    ),
    Rule(
        "client_link",
        Reason.PROTECTED,
        Sample("rcpt", 554, "", "Rejected. See https://postmaster.example.net/error?ip=192.0.2.7"),
        "GMX, T-Online, Proofpoint: they explain what our address did",
        code="[45]..",
        names=r"[?&]ip=|\bip ?= ?\d",
        unless=r"prefer",
    ),
    Rule(
        "mailbox_disabled_code",
        Reason.MAILBOX_NOT_FOUND,
        Sample("rcpt", 550, "5.2.1", "Mailbox unavailable"),
        "RFC 3463 x.2.1",
        code=PERMANENT,
        enhanced=r"5\.2\.1",
        phases="rcpt",
        unless=NOT_ABOUT_MAIL,
        error_code="MAILBOX_DISABLED",
    ),
    Rule(
        "mailbox_unknown_code",
        Reason.MAILBOX_NOT_FOUND,
        Sample("rcpt", 550, "5.1.1", "RCPT refused"),
        "RFC 3463 x.1.1, x.1.3, x.1.6; x.1.10 as Exchange uses it",
        code=PERMANENT,
        enhanced=r"5\.1\.(?:1|3|6|10)",
        phases="rcpt",
        unless=NOT_ABOUT_MAIL,
    ),
    Rule(
        "address_refused_code",
        Reason.MAILBOX_NOT_FOUND,
        Sample("rcpt", 550, "5.1.0", "Address rejected."),
        "Cisco IronPort; x.1.0 and x.1.2 say it only together with a word for the address",
        code=PERMANENT,
        enhanced=r"5\.1\.[02]",
        phases="rcpt",
        says=r"\b(?:recipient|mailbox|user|account|address(?:ee)?|rcpt|xaddrx)\b",
        unless=NOT_ABOUT_MAIL,
    ),
    Rule(
        "mailbox_unavailable",
        Reason.MAILBOX_NOT_FOUND,
        Sample("rcpt", 550, "5.5.0", "Requested action not taken: mailbox unavailable (S2017062302)."),
        "Outlook.com, GMX, IONOS for unknown users, in the wording of RFC 5321 4.2.3",
        code="550",
        enhanced=r"|5\.[0125]\.0",
        phases="rcpt",
        says=r"mailbox (?:is )?(?:unavailable|not available)",
        unless=rf"{NOT_ABOUT_MAIL}|\bor\b",
    ),
    Rule(
        "permanent_system_code",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 524, "5.2.4", "Mailing list expansion problem: <x@example.org>"),
        "RFC 3463 x.2.4, x.3 mail system, x.4 network, x.5 protocol",
        code="5..",
        enhanced=r"5\.(?:2\.[34]|[345]\.\d+)",
        phases="rcpt",
    ),
    Rule(
        "qq_flood",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 550, "", "Mailbox unavailable or access denied"),
        "QQ documents this as a flood of recipients, not an unknown user",
        code=PERMANENT,
        phases="rcpt",
        says=r"unavailable or access denied",
    ),
)
