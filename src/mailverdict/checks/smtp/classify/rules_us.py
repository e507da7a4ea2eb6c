"""Rows about the client and the sender: refusals of us, which say nothing of the mailbox.

Order is precedence; see `mailverdict.checks.smtp.classify.rules`.
"""

from __future__ import annotations

from ....model.words import Reason
from .rule import Rule, Sample
from .vocabulary import (
    ABUSE,
    ACCESS_NETWORK,
    BLACKLIST,
    CLIENT_REFUSED,
    DOMAIN_LISTED,
    LATER,
    NAMED_LIST,
    NO_ACCESS,
    PLACE_REFUSED,
    RATE,
    RELAYING,
    REVERSE_DNS,
    SENDER,
)

__all__ = ["US_RULES"]

# h: a list, a reverse name, a reputation, a rate: whose?
CLIENT_RULES = (
    Rule(
        "listed_domain",
        Reason.SENDER_BLOCKED,
        Sample("ehlo", 550, "5.7.1", "Service unavailable, Helo domain is listed in Spamhaus."),
        "Exchange Online, Postfix reject_rhsbl_sender: the list is one of domains",
        says=DOMAIN_LISTED,
        unless=r"\bip\b|client host",
    ),
    Rule(
        "listed_domain_zone",
        Reason.SENDER_BLOCKED,
        Sample("rcpt", 554, "5.7.1", "Service unavailable; v@example.com blocked using dbl.example"),
        "zones that hold domains only",
        names=r"\bdbl\.|rhsbl|\bsurbl|\buribl|\bmulti\.uribl|\bspamhaus dbl",
    ),
    Rule(
        "dns_list",
        Reason.PROTECTED,
        Sample("rcpt", 550, "5.7.1", "Service unavailable; client [192.0.2.7] blocked using b.barracudacentral.org"),
        "whoever asks a DNS list about our address",
        names=NAMED_LIST,
    ),
    Rule(
        "helo",
        Reason.SENDER_BLOCKED,
        Sample("ehlo", 501, "5.5.4", 'HELO/EHLO argument "local host" invalid, closing connection.'),
        "Gmail, Exim, Sendmail: our name, not our address",
        says=r"\b(?:helo|ehlo)\b",
        unless=r"(?:send|say|issue|polite|first)|black|reverse|\bptr\b|\bip\b",
    ),
    Rule(
        "reverse_dns",
        Reason.PROTECTED,
        Sample("banner", 421, "", "Refused. Your reverse DNS entry does not resolve to an IP."),
        "Free, Comcast, web.de, AOL",
        says=REVERSE_DNS,
    ),
    Rule(
        "dynamic_address",
        Reason.PROTECTED,
        Sample("mail", 550, "", "Dynamic and residential addresses are not served here"),
        "Mail.ru and others: access networks",
        says=ACCESS_NETWORK,
    ),
    Rule(
        "sender_reputation",
        Reason.SENDER_BLOCKED,
        Sample("mail", 550, "5.7.1", "likely suspicious due to the very low reputation of the sending domain"),
        "Gmail: the domain's reputation, not the address's",
        says=r"reputation[^.;]{0,40}\bdomain|\bdomain\b[^.;]{0,20}reputation",
    ),
    Rule(
        "sender_policy",
        Reason.SENDER_BLOCKED,
        Sample("rcpt", 550, "5.7.23", "Message rejected due to: SPF fail - not authorized"),
        "SPF, DKIM, DMARC: an address is named there only as what the domain did not allow",
        says=r"\bspf\b|\bdkim\b|\bdmarc\b|sender[- ]?id\b|domainkeys|openspf",
        unless=r"unusual rate",
    ),
    Rule(
        "sender_policy_code",
        Reason.SENDER_BLOCKED,
        Sample("rcpt", 550, "5.7.26", "This mail is unauthenticated"),
        "RFC 7372, RFC 7505 x.7.20-32; 25 is reverse DNS, and Gmail's 28 speaks of our address as well",
        enhanced=r"[45]\.7\.(?:2[0-46-79]|3[0-2])",
    ),
    Rule(
        "reputation",
        Reason.PROTECTED,
        Sample("banner", 554, "", "Your access has been rejected due to the sending MTA's poor reputation."),
        "Cisco IronPort, Gmail, Outlook.com",
        says=r"reputation",
    ),
    Rule(
        "rate_of_sender",
        Reason.SENDER_BLOCKED,
        Sample("mail", 550, "", "Sender frequency limited"),
        "QQ, NetEase, Gmail per SPF or DKIM domain",
        says=r"\b(?:sender|spf|dkim|domain|from)\b[^.;]{0,40}\b(?:frequency|rate|volume|limit\w*|throttl\w*)",
        unless=r"\bip\b|xipx|recipient has|quota exceeded",
    ),
    Rule(
        "rate_of_client",
        Reason.PROTECTED,
        Sample("rcpt", 550, "5.1.1", "<x@example.com> - 192.0.2.7 has sent to too many recipients this hour. IB607"),
        "GoDaddy, QQ, Yahoo, NetEase: they count what comes from our address",
        says=RATE,
        unless=r"recipient has|quota",
    ),
    Rule(
        "listed_client",
        Reason.PROTECTED,
        Sample("mail", 550, "", "part of their network is on our block list."),
        "Outlook.com S3150 and private lists",
        says=rf"{BLACKLIST}|xipx[^.;]{{0,30}}\blisted\b|\bip\b[^.;]{{0,30}}\blisted\b",
        unless=r"recipient'?s? black|by (?:the )?(?:recipient|user)",
    ),
    Rule(
        "refused_client",
        Reason.PROTECTED,
        Sample("rcpt", 554, "", "Host network not allowed - https://community.mimecast.com/docs/DOC-1369#554"),
        "Mimecast, Gmail, Yahoo: the client is named and refused",
        says=CLIENT_REFUSED,
        unless=r"(?:to|as a|open|unable to) relay|relaying|relay (?:access|denied|not|through)|recipient preferences",
    ),
    Rule(
        "refused_place",
        Reason.PROTECTED,
        Sample("rcpt", 554, "5.7.1", "Mail from your country is not accepted"),
        "filters by geography",
        says=PLACE_REFUSED,
    ),
    Rule(
        "refused_access",
        Reason.PROTECTED,
        Sample("mail", 501, "", "Connection rejected by policy [7.7] 38101, please visit www.example.com"),
        "MessageLabs, IronPort, iCloud: they do not talk to us",
        enhanced=r"(?!.\.4\.).*",
        says=NO_ACCESS,
        unless=r"relay",
    ),
    Rule(
        "abuse_from_client",
        Reason.PROTECTED,
        Sample("mail", 550, "", "Too much spam seen from 192.0.2.7"),
        "Orange, Gmail: spam seen from our address",
        says=ABUSE,
    ),
)

# Relaying, authentication, our sender: always sender_blocked, even beside words about a mailbox.
IDENTITY_RULES = (
    Rule(
        "bad_sequence",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 503, "5.5.1", "Error: need MAIL command"),
        "RFC 5321 4.2.2: our protocol state, after a refused MAIL for one",
        code="503",
        says=r"\bneed|first|sequence|preced|already|nested|not yet|command",
        unless=r"auth|log ?in|relay",
    ),
    Rule(
        "relaying",
        Reason.SENDER_BLOCKED,
        Sample("rcpt", 454, "4.7.1", "<x@example.org>: Relay access denied"),
        "the exchange does not serve the domain: it says nothing of the mailbox",
        phases="mail rcpt",
        says=RELAYING,
    ),
    Rule(
        "authentication",
        Reason.SENDER_BLOCKED,
        Sample("rcpt", 530, "5.7.57", "SMTP; Client was not authenticated to send anonymous mail during MAIL FROM"),
        "submission servers and internal exchanges",
        says=r"authenticat|\bauth\b|log ?in (?:first|to|before)|pop3? before",
        unless=r"(?:temporary|server|internal|backend) authentication (?:failure|error|problem)",
    ),
    Rule(
        "sender_code",
        Reason.SENDER_BLOCKED,
        Sample("mail", 553, "5.1.8", "<v@nodomain.example>... Domain does not exist"),
        "RFC 3463 x.1.7, x.1.8 sender's address; RFC 7372 x.7.28 mail flood of a domain",
        enhanced=r"[45]\.1\.[78]|[45]\.7\.28",
    ),
    Rule(
        "sender",
        Reason.SENDER_BLOCKED,
        Sample("rcpt", 553, "", "sorry, your envelope sender is in my badmailfrom list (#5.7.1)"),
        "any refusal that names the sender",
        says=SENDER,
        unless=rf"gr[ea]y|temporary|{LATER}",
    ),
)

US_RULES: tuple[Rule, ...] = (*CLIENT_RULES, *IDENTITY_RULES)
