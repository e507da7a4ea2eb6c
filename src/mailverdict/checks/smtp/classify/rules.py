"""The classification rules: one table, read from top to bottom.

The first rule that matches decides.

The order is the meaning. A refusal often contains words of several causes, so causes that would be
mistaken for a missing mailbox stand above the mailbox rules. The heading of each section says why
the section stands there.

Four classes of refusals: of the *client* (this machine: IP address, reverse DNS, rates), of the
*sender* (HELO name, MAIL FROM, right to send), of the *recipient* (its mailbox), and failures of
the *server*.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from ....model.evidence import Action
from ....model.words import Reason
from .mailbox_words import (
    ADDRESS_REFUSED_WORDS,
    FORWARD_WORDS,
    MAILBOX_CLOSED_WORDS,
    MAILBOX_EITHER_WORDS,
    MAILBOX_FULL_WORDS,
    MAILBOX_UNKNOWN_WORDS,
    RECIPIENT_REFUSED_WORDS,
    THING_OF_USER_WORDS,
)
from .other_words import (
    ABUSE_WORDS,
    ACCESS_NETWORK_WORDS,
    ACCESS_REFUSED_WORDS,
    ADVICE,
    BLACKLIST_WORDS,
    CAPACITY_WORDS,
    CERTIFIED_MAIL_WORDS,
    CLIENT,
    CLIENT_OR_SENDER_WORDS,
    CLIENT_REFUSED_WORDS,
    COUNTRY_REFUSED_WORDS,
    DNS_LIST_NAMES,
    DOMAIN_LISTED_WORDS,
    DOMAIN_UNKNOWN_WORDS,
    DOUBT_WORDS,
    ERRORS_FROM_CLIENT,
    FOREIGN_MESSAGE_WORDS,
    FOREIGN_TROUBLE_WORDS,
    INCOMPLETE_WORDS,
    OFFLINE_WORDS,
    OTHER_SUBJECT_WORDS,
    RATE_WORDS,
    RELAY_WORDS,
    RETRY_WORDS,
    REVERSE_DNS_WORDS,
    SENDER_WORDS,
    SERVER_FAILURE_WORDS,
    SEVERAL_RECIPIENTS_WORDS,
    TEMPORARY_WORDS,
    UNWANTED_MESSAGE_WORDS,
)
from .patterns import (
    ReplyText,
    compile_pattern,
    find_letters,
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table.

    It matches if phase, code, enhanced code and all given patterns match.
    """

    name: str  # kept in the evidence
    reason: Reason | None  # None: accepted
    sample: str  # phase and reply that this rule must decide
    seen: str  # who sends such replies, or which RFC defines them
    code: str = "[45].."  # pattern of the whole reply code
    # Pattern of the whole enhanced status code, which is empty if there is none.
    enhanced: str = ".*"
    phases: str = "banner ehlo mail rcpt"
    text: str | tuple[str, ...] = ()  # one of them to be found in the masked text
    unmasked: str | tuple[str, ...] = ()  # to be found in the text with its links and host names
    unless: str | tuple[str, ...] = ()  # none of them to be found in the masked text
    without_advice: bool = False  # search the statement instead, if there is advice after it
    statement: bool = False  # search the statement, whether or not there is advice after it
    quoted: bool = False  # the text quotes another server's reply, and that reply has this reason
    error_code: str = "SMTP"
    action: Action = Action.NONE
    retry_after: float | None = None  # seconds

    def __post_init__(self) -> None:
        """Make tuples of single patterns."""
        for name in ("text", "unmasked", "unless"):
            if isinstance(given := getattr(self, name), str):
                object.__setattr__(self, name, (given,))

    def applies(self, phase: str, code: str, enhanced: str) -> bool:
        """Whether the rule is about replies with these codes in this phase."""
        return bool(
            phase in self.phases
            and re.fullmatch(self.code, code)
            and re.fullmatch(self.enhanced, enhanced)
        )

    def matches(self, reply: SearchedReply) -> bool:
        """Whether a text of such a reply matches."""
        searched = reply.masked
        if self.without_advice or self.statement:
            searched = reply.statement
            if self.without_advice and searched is reply.masked:
                return False
        if self.text and not searched.holds_any(self.text):
            return False
        if self.unmasked and not reply.unmasked.holds_any(self.unmasked):
            return False
        return not searched.holds_any(self.unless)


class SearchedText:
    """A text in which each pattern is searched once, since many rules share patterns."""

    def __init__(self, text: str) -> None:
        """Nothing has been searched yet."""
        self.text = text
        self.letters = find_letters(text)
        self.found: dict[str, bool] = {}

    def holds_any(self, patterns: Iterable[str]) -> bool:
        """Whether one of the patterns is found."""
        for pattern in patterns:
            found = self.found.get(pattern)
            if found is None:
                found = compile_pattern(pattern, self.letters).search(self.text) is not None
                self.found[pattern] = found
            if found:
                return True
        return False


class SearchedReply:
    """The forms of a reply's text that rules search."""

    def __init__(self, text: ReplyText) -> None:
        """The statement is only found if a rule asks for it."""
        self.masked = SearchedText(text.masked)
        self.unmasked = SearchedText(text.unmasked)

    @cached_property
    def statement(self) -> SearchedText:
        """The masked text without sentences that only advise the sender.

        If it has none, it is the masked text itself.
        """
        statement = ADVICE.sub("", self.masked.text).strip()
        return self.masked if statement == self.masked.text else SearchedText(statement)


TRANSIENT = "4.."
PERMANENT = "5.."
# Not 500 and 502-504, which are about the command (RFC 5321 4.2.2), nor 530-538, about
# authentication (RFC 4954).
MAILBOX_CODES = r"5(?!0[0234]|3[0-8])\d\d"
# Exim says so of a recipient only, and quotes the next server; of a sender it says "Called: ...
# Response: ...".
RECIPIENT_CALLOUT = r"^callout verification failed: 5\d\d(?!.*\b(?:sender|sent):? )"
SENDER_CALLOUT = (
    r"(?:\bsender|call-?out|call-?back|return[- ]path|reverse[- ]path|mail from)\b[^;]{0,80}\bverif"
    r"|\bverif\w+[^.;]{0,40}\bsender"
    r"|call-?out|call-?back|sender address rejected: un|postmaster verif"
    r"|(?<!address )\bverification failed (?:for|while checking) xaddrx|\bcalled: .{0,80}\bsent: "
)
BLOCKING_WORDS = r"reputation|black|block|spam|abus|unsolicited|banned|unusual|suspicious"
# "Too many recipients" that the client asked about over time, not in this transaction.
OVER_TIME_WORDS = (
    r"\bsent\b|\bfrom\b|hour|minute|\bday\b|invalid|unknown|\bbad\b|non-?exist|xipx"
    r"|your (?:ip|host|server)"
)
OTHER_CAUSE_WORDS = (
    CLIENT_OR_SENDER_WORDS,
    DOMAIN_UNKNOWN_WORDS,
    FORWARD_WORDS,
    THING_OF_USER_WORDS,
)
LOOKUP_FAILURE_WORDS = (
    DOUBT_WORDS + "|"
    r"\b(?:ldap|director(?:y|ies)|databases?|\w*sql|nss|nis|back-?end|look-?ups?|configuration"
    r"|server)\b[^.:;]{0,16} "
    r"(?:errors?|fail\w*|problems?|down|gone|deferred|unavailable|not available|timed? ?out)\b"
    r"|\b(?:table|map|file|passwd|database) (?:is )?(?:empty|missing|corrupt\w*|locked|not found)"
    r"|\b(?:disk|i/o|io|read|write|file|memory|network|storage|internal)"
    r" (?:errors?|failures?|problems?)\b"
    r"|\b(?:due to|because of) (?:an? |the )?[^.;]{0,24}\b(?:error|failure|problem)\b"
    r"|\bunable to (?:verify|check|query|open|read|access|connect)\b|\btrial\b|\blicen[cs]e\b"
    r"|\bcommand [^.;]{0,20}not (?:recogni[sz]ed|implemented|supported)|\bunknown command\b"
    r"|\ball (?:\w+ )?(?:users|accounts|mailboxes|addresses)\b"
    r"|\bmaintenance|shutting down"
    r"|(?:could|can) ?not (?:be )?(?:connect|contact|load|open|read\b|quer)"
    r"|permission denied|\bfailed look-?up"
    rf"|{TEMPORARY_WORDS}|{OFFLINE_WORDS}|error while|time(?:d )?-?out|\bcache\b"
    r"|look-?up (?:of \w+ )?failed"
    rf"|{INCOMPLETE_WORDS}|{SEVERAL_RECIPIENTS_WORDS}|{FOREIGN_TROUBLE_WORDS}"
    r"|\b(?:could|can) ?not be reached|\buntil\b|\btry (?:again )?(?:later|in)\b"
    r"|(?<!not )\bretry\b|hosting account"
    r"|\bmessage expired|\bon (?:legal )?hold\b"
    r"|(?:suspend|lock|block|disabl|clos)ed for (?:\d+|the next) (?:minute|hour|day)"
)
NOT_UNKNOWN_WORDS = (
    *OTHER_CAUSE_WORDS,
    MAILBOX_FULL_WORDS,
    MAILBOX_EITHER_WORDS,
    RELAY_WORDS,
    CERTIFIED_MAIL_WORDS,
    LOOKUP_FAILURE_WORDS,
    SENDER_CALLOUT,
    RATE_WORDS,
    r"un(?:deliverable|verified) address: \S|\blog ?in\b|^: ",
)
# Beside an unknown mailbox.
UNKNOWN_CODES = r"|5\.(?:0\.0|1\.(?![78])\d+|2\.[01]|3\.0|[45]\.\d+|7\.1)"
NOT_FULL_WORDS = (  # what is full or exceeded is not a mailbox
    r"\bsend(?:ing|er)|\bip\b|xipx(?!\W*$)|daily|hourly|\brelay|\brate\b|messages? per"
    r"|outgoing|outbound"
    r"|message size|queue(?! as\b)|polic|system|submission|shutting down"
)
NOT_MAILBOX_WORDS = (
    *OTHER_CAUSE_WORDS,
    OTHER_SUBJECT_WORDS,
    LOOKUP_FAILURE_WORDS,
    MAILBOX_FULL_WORDS,
    MAILBOX_EITHER_WORDS,
)

# One row, one rule; aligned by hand.
# fmt: off
RULES: tuple[Rule, ...] = (
    # 1. Replies that do not answer the command.
    # First, because their code alone decides, whatever the text.
    Rule("closing", Reason.CONNECTION_DROPPED, code="221",
         sample="rcpt 221 2.0.0 Service closing transmission channel",
         seen="RFC 5321 4.2.3; a server that ends the session early"),
    Rule("out_of_step_greeting", Reason.INCONCLUSIVE, code="220", phases="mail rcpt",
         sample="rcpt 220 mx.example.org ESMTP", seen="servers that lose the order of replies under pipelining"),
    Rule("accepted", None, code="2..",
         sample="rcpt 250 2.1.5 Recipient OK", seen="all servers; 251 and 252 too"),
    Rule("out_of_step", Reason.INCONCLUSIVE, code="3..",
         sample="rcpt 354 End data with <CR><LF>.<CR><LF>", seen="no command that is sent has an intermediate reply"),

    # 2. The domain has no mail service (RFC 7504, RFC 7505).
    # Before everything about a mailbox: these texts also name the recipient's address.
    Rule("null_mx", Reason.NO_MX_RECORD, code="556", unless=r"\b(?:ips?|rcpts)\b",
         sample="rcpt 556 5.1.10 Recipient address has null MX", seen="RFC 7505 4.2"),
    Rule("null_mx_words", Reason.NO_MX_RECORD, code=PERMANENT, phases="rcpt",
         text=r"null ?mx|indicated no smtp service", unless=r"sender|from",
         sample="rcpt 550 5.1.10 <x@example.org>: Recipient address rejected: Domain does not accept mail (nullMX)",
         seen="Postfix"),
    Rule("host_takes_no_mail", Reason.NO_MX_RECORD, code="521",
         text=r"(?:does|do|will)(?: not|n't) (?:accept|receive) (?:any |incoming )?(?:e-?)?mail|accepts no mail",
         unless=rf"your|xipx|{CLIENT}",
         sample="banner 521 mx.example.org does not accept mail",
         seen="RFC 7504; the domain has no mail only if all its exchanges send this"),

    # 3. Complete statements of known servers about the recipient.
    # Before the rules about client and sender: a footer or a rate text contains words of those
    # rules.
    Rule("postfix_unknown", Reason.MAILBOX_NOT_FOUND, code=PERMANENT, phases="rcpt",
         text=r"^xaddrx: recipient address rejected: user unknown in (?:[\w-]+ ){0,3}table\b",
         sample="rcpt 550 5.1.1 <x@example.org>: Recipient address rejected: User unknown in virtual mailbox "
                "table. For assistance please provide: client (192.0.2.7). See the user policy.",
         seen="Postfix: its own text comes first; smtpd_reject_footer adds advice that may name the client"),
    Rule("recipient_rate", None, phases="rcpt",
         text=r"(?:user|recipient|mailbox|account)\b[^.;]{0,40} is receiving (?:mail|messages|e-?mail)"
              r"|recipient has exceeded [^.;]{0,20}\b(?:limit|rate)"
              r"|messages? to xaddrx deferred due to excessive volume"
              r"|too many messages (?:to|for) (?:this|the) (?:recipient|user|mailbox)"
              r"|(?:recipient|user|mailbox) (?:has )?received too (?:many|much) (?:mail|messages|e-?mails?)"
              r"|recipient'?s? [^.;]{0,20}receive limit",
         unless=r"quota|storage|size|disk|space|full",
         sample="rcpt 450 4.2.1 The user you are trying to contact is receiving mail at a rate that prevents it",
         seen="Gmail, Outlook.com, Yandex, iCloud: a limit of the recipient proves that the mailbox exists"),

    Rule("forward_path", Reason.INCONCLUSIVE, code="551", phases="rcpt", text=r"\btry:? xaddrx",
         sample="rcpt 551 5.1.6 User not local; please try <ada@other.example>",
         seen="RFC 5321 3.4: the user receives mail at the address that the server names"),
    Rule("docomo_filter", Reason.INCONCLUSIVE, code="550", enhanced=r"5\.2\.0", phases="rcpt",
         text=r"^(?:unknown user|user unknown)\b",
         sample="rcpt 550 5.2.0 Unknown user x@docomo.example",
         seen="NTT docomo: with 5.2.0 it is the recipient's filter, an unknown user has 5.1.1"),
    Rule("kddi_filter", Reason.INCONCLUSIVE, code="550", phases="rcpt", text=r"^: user unknown",
         sample="rcpt 550 : User unknown",
         seen="KDDI: with an empty address it is the recipient's filter"),
    Rule("unknown_beside_advice", Reason.MAILBOX_NOT_FOUND, code=MAILBOX_CODES, enhanced=UNKNOWN_CODES, phases="rcpt",
         text=MAILBOX_UNKNOWN_WORDS, unless=(*NOT_UNKNOWN_WORDS, REVERSE_DNS_WORDS), without_advice=True,
         sample="rcpt 550 5.1.1 User unknown; please check your settings",
         seen="local rules: the advice after the reason may name the sender, a policy or a server"),
    Rule("closed_beside_advice", Reason.MAILBOX_NOT_FOUND, code=MAILBOX_CODES, enhanced=UNKNOWN_CODES, phases="rcpt",
         error_code="MAILBOX_DISABLED", text=MAILBOX_CLOSED_WORDS, without_advice=True,
         unless=(*NOT_UNKNOWN_WORDS, r"\btry again|\bof the domain", FOREIGN_MESSAGE_WORDS),
         sample="rcpt 550 5.2.1 The account is disabled. Please contact your administrator.",
         seen="as the rule above"),

    # 4. An extension is missing: TLS or SMTPUTF8.
    # Early, because the same command is sent again with the extension; nothing is refused for good
    # yet.
    Rule("tls_demanded", Reason.INCONCLUSIVE, error_code="TLS_REQUIRED", action=Action.USE_TLS,
         text=r"\bstarttls\b"
              r"|(?:requires?|must (?:use|issue|support)|needs?|needed|only accept\w*|without|please use|over) "
              r"[^.;]{0,40}\b(?:tls|ssl|encryption|encrypted|secure (?:connection|channel))\b"
              r"|\b(?:tls|ssl|encryption|secure connection)\b[^.;]{0,30}\b(?:required|needed|mandatory)",
         sample="mail 530 5.7.0 Must issue a STARTTLS command first", seen="RFC 3207 4; Postfix, Exchange"),
    Rule("tls_demanded_code", Reason.INCONCLUSIVE, enhanced=r"[45]\.7\.10",
         error_code="TLS_REQUIRED", action=Action.USE_TLS,
         sample="rcpt 554 5.7.10 Encryption", seen="RFC 7817 x.7.10"),
    Rule("smtputf8_code", Reason.INCONCLUSIVE, enhanced=r"[45]\.6\.7",
         error_code="SMTPUTF8_REQUIRED", action=Action.USE_SMTPUTF8,
         sample="rcpt 553 5.6.7 Address not allowed", seen="RFC 6531 3.5"),
    Rule("smtputf8_words", Reason.INCONCLUSIVE, error_code="SMTPUTF8_REQUIRED", action=Action.USE_SMTPUTF8,
         text=r"smtputf8"
              r"|\b(?:non-?ascii|internationali[sz]ed|utf-?8)\b[^.;]{0,40}"
              r"\b(?:address|mailbox|recipient|envelope|local)",
         sample="rcpt 553 SMTPUTF8 is required, but was not offered by the sender", seen="Postfix, Exim"),

    # 5. A reply inside the reply: the server asked another server.
    # Before the mailbox rules, because "no such user" may be about the sender's address, and before
    # the rules by code, because the inner code counts.
    Rule("sender_callout", Reason.SENDER_BLOCKED,
         text=SENDER_CALLOUT,
         unless=rf"recipient (?:verif\w+ )?(?:call-?out|verif)|{RECIPIENT_CALLOUT}",
         sample="rcpt 550 Verification failed for <v@example.com> No Such User Here Sender verify failed",
         seen="Exim and Postfix verify the sender: this 'no such user' is the sender's address"),
    Rule("verification_in_progress", Reason.GREYLISTED, code=TRANSIENT, phases="rcpt", retry_after=20.0,
         text=r"verification in progress",
         sample="rcpt 450 4.1.1 <x@example.org>: Recipient address rejected: Address verification in progress",
         seen="Postfix, Proofpoint: the next server is being asked"),
    Rule("nested_unknown", Reason.MAILBOX_NOT_FOUND, phases="rcpt", quoted=True,
         sample="rcpt 450 4.1.1 <x@example.org>: Recipient address rejected: undeliverable address: host "
                "mx.example.org[198.51.100.9] said: 550 5.1.1 <x@example.org>: User unknown "
                "(in reply to RCPT TO command)",
         seen="Postfix address verification: the next server's permanent reply counts, not the outer code"),
    Rule("nested_full", Reason.MAILBOX_FULL, phases="rcpt", quoted=True,
         sample="rcpt 550 5.1.1 host mx.example.org[198.51.100.9] said: 552 5.2.2 <x@example.org>: over quota",
         seen="as the rule above"),
    Rule("nested_trouble", Reason.INCONCLUSIVE, phases="rcpt",
         text=rf"un(?:deliverable|verified) address: \S|(?:\bsaid|\bhost \S+ xipx) ?: 5\d\d|{RECIPIENT_CALLOUT}",
         sample="rcpt 450 4.1.1 <x@example.org>: unverified address: connect to mx[192.0.2.1]:25: refused",
         seen="Postfix address verification that could not reach the next server, or that was refused there"),

    # 6. Enhanced codes that are only used for refused clients.
    # Before the rules by text, because the texts beside these codes vary.
    Rule("client_code", Reason.PROTECTED, enhanced=r"5\.7\.[678]\d\d|4\.7\.[56]\d\d|[45]\.7\.25",
         sample="rcpt 550 5.7.606 Access denied, banned sending IP [192.0.2.7]",
         seen="Exchange Online 5.7.6xx-8xx and 4.7.5xx-6xx; RFC 7372 x.7.25 reverse DNS"),

    # 7. Capacity: too many recipients, connections or sessions.
    # Before the client rules, which match "limit" and "too many": here the same recipient is asked
    # again, in another transaction or later. A text with a word for blocking or for a count over
    # time is left to section 9.
    Rule("one_domain", Reason.INCONCLUSIVE, phases="mail rcpt", action=Action.ONE_DOMAIN,
         text=r"multiple (?:destination|recipient) domains|different domains|one domain (?:per|at)",
         sample="rcpt 451 4.3.0 Multiple destination domains per transaction is unsupported. Please try again.",
         seen="Google, where hosted domains share one exchange"),
    Rule("too_many_recipients", Reason.INCONCLUSIVE, phases="mail rcpt", action=Action.FEWER_RECIPIENTS,
         text=r"too many (?:rcpts?|recipients)|(?:rcpt|recipient)s? (?:limit|count|list exceeds)"
              r"|max\w* (?:number of )?(?:rcpt|recipient)s|limit of \d+ recipients"
              r"|multiple recipients|one recipient (?:at|per)",
         unless=OVER_TIME_WORDS,
         sample="rcpt 452 4.5.3 Error: too many recipients",
         seen="RFC 5321 4.5.3.1.10; Outlook.com after the first recipient"),
    Rule("too_many_recipients_code", Reason.INCONCLUSIVE, enhanced=r"[45]\.5\.3", phases="mail rcpt",
         action=Action.FEWER_RECIPIENTS, unless=(OVER_TIME_WORDS, "rcpthosts"),
         sample="rcpt 452 4.5.3 Try again", seen="RFC 3463 x.5.3"),
    Rule("capacity", Reason.INCONCLUSIVE, action=Action.BACK_OFF, text=CAPACITY_WORDS,
         unless=(BLOCKING_WORDS, ERRORS_FROM_CLIENT),
         sample="mail 452 4.3.2 Connection rate limit exceeded.",
         seen="Sendmail, Postfix anvil, Exchange: a limit on simultaneous connections, not a refusal of the client"),

    # 8. Greylisting by name, and client or sender in the form of Postfix (`<x>: CLASS rejected:`).
    # Before the client rules: links to greylisting pages hold names of DNS lists. `Recipient
    # address rejected` is not here, since its text decides.
    Rule("greylist", Reason.GREYLISTED, code=TRANSIENT, text=r"gr[ea]y-? ?list|\[gl\d\d\]|not (?:been )?seen before",
         sample="rcpt 450 4.2.0 <x@example.com>: Recipient address rejected: Greylisted, see http://postgrey.example",
         seen="Postgrey, milter-greylist, sqlgrey, Yahoo's [GL01]"),
    Rule("postfix_configuration", Reason.INCONCLUSIVE, enhanced=r"[45]\.3\.5",
         text=r"rejected: server configuration (?:error|problem)",
         sample="rcpt 451 4.3.5 <v@example.com>: Sender address rejected: Server configuration problem",
         seen="Postfix: a table that it cannot read, whatever the class"),
    Rule("postfix_client", Reason.PROTECTED, text=r"client (?:host|address) rejected",
         sample="rcpt 554 5.7.1 <unknown[192.0.2.7]>: Client host rejected: Access denied",
         seen="Postfix, smtpd_client_restrictions"),
    Rule("postfix_identity", Reason.SENDER_BLOCKED, text=r"(?:helo|ehlo) command rejected|sender address rejected",
         sample="rcpt 504 5.5.2 <localhost>: Helo command rejected: need fully-qualified hostname",
         seen="Postfix, smtpd_helo_restrictions and smtpd_sender_restrictions"),

    # 9. The client or the sender's domain is refused: DNS lists, HELO name, reverse DNS,
    # reputation, rates, country.
    # Before the mailbox rules, since such a refusal may name the recipient too. Within the section,
    # rules about the sender's domain stand before the rules about the client whose words they
    # share.
    Rule("listed_domain", Reason.SENDER_BLOCKED, text=DOMAIN_LISTED_WORDS, unless=r"\bip\b|client host",
         sample="ehlo 550 5.7.1 Service unavailable, Helo domain is listed in Spamhaus.",
         seen="Exchange Online, Postfix reject_rhsbl_sender: a list of domains"),
    Rule("listed_domain_zone", Reason.SENDER_BLOCKED,
         unmasked=r"\b(?:dbl\.|surbl|uribl|multi\.uribl|spamhaus dbl)|rhsbl",
         sample="rcpt 554 5.7.1 Service unavailable; v@example.com blocked using dbl.example",
         seen="zones that hold domains only"),
    Rule("dns_list", Reason.PROTECTED, unmasked=DNS_LIST_NAMES,
         sample="rcpt 550 5.7.1 Service unavailable; client [192.0.2.7] blocked using b.barracudacentral.org",
         seen="servers that look the client's IP address up in a DNS list"),
    Rule("helo", Reason.SENDER_BLOCKED, text=r"\b(?:helo|ehlo)\b",
         unless=r"(?:send|say|issue|polite|first)|black|reverse|\bptr\b|\bip\b",
         sample='ehlo 501 5.5.4 HELO/EHLO argument "local host" invalid, closing connection.',
         seen="Gmail, Exim, Sendmail: the HELO name is refused, not the IP address"),
    Rule("reverse_dns", Reason.PROTECTED, text=REVERSE_DNS_WORDS,
         sample="banner 421 Refused. Your reverse DNS entry does not resolve to an IP.",
         seen="Free, Comcast, web.de, AOL"),
    Rule("dynamic_address", Reason.PROTECTED, text=ACCESS_NETWORK_WORDS,
         sample="mail 550 Dynamic and residential addresses are not served here",
         seen="Mail.ru and others: client in an access network"),
    Rule("sender_reputation", Reason.SENDER_BLOCKED,
         text=r"reputation[^.;]{0,40}\bdomain|\bdomain\b[^.;]{0,20}reputation",
         sample="mail 550 5.7.1 likely suspicious due to the very low reputation of the sending domain",
         seen="Gmail: reputation of the sender's domain, not of the IP address"),
    Rule("sender_policy", Reason.SENDER_BLOCKED,
         text=r"\b(?:spf|dkim|dmarc)\b|sender[- ]?id\b|domainkeys|openspf", unless=r"unusual rate",
         sample="rcpt 550 5.7.23 Message rejected due to: SPF fail - not authorized",
         seen="SPF, DKIM, DMARC: an IP address is named only as one that the domain did not allow"),
    Rule("sender_policy_link", Reason.SENDER_BLOCKED, unmasked=r"\bopen-?spf\.",
         sample="rcpt 550 5.7.1 <x@example.org>: Recipient address rejected: Please see http://www.openspf.org/Why?"
                "s=mfrom;id=y%40example.net;ip=192.0.2.7;r=example.org",
         seen="policyd-spf: the link names the client, but the sender's domain did not allow it"),
    Rule("sender_policy_code", Reason.SENDER_BLOCKED, enhanced=r"[45]\.7\.(?:2[0-46-79]|3[0-2])",
         sample="rcpt 550 5.7.26 This mail is unauthenticated",
         seen="RFC 7372, RFC 7505 x.7.20-32; 25 is reverse DNS; Gmail sends 28 about IP addresses too"),
    Rule("reputation", Reason.PROTECTED, text=r"reputation",
         sample="banner 554 Your access has been rejected due to the sending MTA's poor reputation.",
         seen="Cisco IronPort, Gmail, Outlook.com"),
    Rule("rate_of_sender", Reason.SENDER_BLOCKED,
         text=r"\b(?:sender|spf|dkim|domain|from)\b[^.;]{0,40}\b(?:frequency|rate|volume|limit\w*|throttl\w*"
              r"|max\w* (?:e-?mails|messages) per)",
         unless=r"\bip\b|xipx|recipient has|quota exceeded",
         sample="mail 550 Sender frequency limited", seen="QQ, NetEase, Gmail per SPF or DKIM domain"),
    Rule("rate_of_client", Reason.PROTECTED, text=RATE_WORDS, unless=r"recipient has|quota",
         sample="rcpt 550 5.1.1 <x@example.com> - 192.0.2.7 has sent to too many recipients this hour. IB607",
         seen="GoDaddy, QQ, Yahoo, NetEase: limits on what one IP address sends"),
    Rule("listed_client", Reason.PROTECTED,
         text=rf"{BLACKLIST_WORDS}|xipx[^.;]{{0,30}}\blisted\b|\bip\b[^.;]{{0,30}}\blisted\b",
         unless=r"recipient'?s? (?:xaddrx )?black|by (?:the )?(?:recipient|user)|sender is",
         sample="mail 550 part of their network is on our block list.", seen="Outlook.com S3150 and private lists"),
    Rule("refused_client", Reason.PROTECTED, text=CLIENT_REFUSED_WORDS,
         unless=r"(?:to|as a|open|unable to) relay|relaying|relay (?:access|denied|not|through)|recipient preferences",
         sample="rcpt 554 Host network not allowed - https://community.mimecast.com/docs/DOC-1369#554",
         seen="Mimecast, Gmail, Yahoo: the text names the client as refused"),
    Rule("refused_place", Reason.PROTECTED, text=COUNTRY_REFUSED_WORDS,
         sample="rcpt 554 5.7.1 Mail from your country is not accepted", seen="filters by geography"),
    Rule("refused_access", Reason.PROTECTED, enhanced=r"(?!.\.4\.).*", text=ACCESS_REFUSED_WORDS, unless=r"relay",
         sample="mail 501 Connection rejected by policy [7.7] 38101, please visit www.example.com",
         seen="MessageLabs, IronPort, iCloud: connection refused"),
    Rule("abuse_from_client", Reason.PROTECTED, text=ABUSE_WORDS,
         sample="mail 550 Too much spam seen from 192.0.2.7",
         seen="Orange, Gmail: spam seen from the client's IP address"),

    # 10. The sender, or the right to send, is refused: relaying, authentication, MAIL FROM.
    # After section 9, whose rules name the cause more precisely. Before the mailbox rules: "relay
    # access denied" or "sender unknown" beside a word for a mailbox says nothing about the mailbox.
    Rule("bad_sequence", Reason.INCONCLUSIVE, code="503",
         text=r"\bneed|first|sequence|preced|already|nested|not yet|command|provide", unless=r"auth|log ?in|relay",
         sample="rcpt 503 5.5.1 Error: need MAIL command",
         seen="RFC 5321 4.2.2: state of the session, for example after a refused MAIL"),
    Rule("relaying", Reason.SENDER_BLOCKED, phases="mail rcpt", text=RELAY_WORDS,
         sample="rcpt 454 4.7.1 <x@example.org>: Relay access denied",
         seen="the exchange does not serve the domain: nothing is known of the mailbox"),
    Rule("certified_mail", Reason.SENDER_BLOCKED, phases="mail rcpt", text=CERTIFIED_MAIL_WORDS,
         sample="rcpt 554 <x@pec.example>: Messaggio rifiutato dal sistema. Indirizzo destinatario sconosciuto o non "
                "abilitato alla ricezione di posta non certificata",
         seen="Aruba PEC: a mailbox for certified mail refuses ordinary mail"),
    Rule("authentication", Reason.SENDER_BLOCKED,
         text=r"authenti(?:cat|fi|se)|autentic|\bauth\b|anmeldung (?:ist )?erforderlich"
              r"|log ?in (?:first|to|before)|pop3? before",
         unless=r"(?:temporary|server|internal|backend) authentication (?:failure|error|problem)",
         sample="rcpt 530 5.7.57 SMTP; Client was not authenticated to send anonymous mail during MAIL FROM",
         seen="submission servers and internal exchanges"),
    Rule("sender_code", Reason.SENDER_BLOCKED, enhanced=r"[45]\.1\.[78]|[45]\.7\.28", phases="ehlo mail rcpt",
         sample="mail 553 5.1.8 <v@nodomain.example>... Domain does not exist",
         seen="RFC 3463 x.1.7, x.1.8 sender's address; RFC 7372 x.7.28 mail flood of a domain"),
    Rule("sender", Reason.SENDER_BLOCKED, text=SENDER_WORDS, unless=rf"gr[ea]y|temporary|{RETRY_WORDS}",
         sample="rcpt 553 sorry, your envelope sender is in my badmailfrom list (#5.7.1)",
         seen="any refusal that names the sender"),

    # 11. The mailbox is full.
    # Before "unknown" and "closed": a full mailbox exists, whatever else the text says.
    Rule("over_quota_code", Reason.MAILBOX_FULL, enhanced=r"[45]\.2\.2", phases="rcpt", unless="submission",
         sample="rcpt 552 5.2.2 Mailbox size limit exceeded", seen="RFC 3463 x.2.2"),
    Rule("over_quota", Reason.MAILBOX_FULL, phases="rcpt", text=MAILBOX_FULL_WORDS,
         unless=NOT_FULL_WORDS,
         sample="rcpt 552 Requested mail action aborted: exceeded storage allocation Quota exceeded.",
         seen="GMX and other servers without enhanced codes"),
    Rule("over_quota_beside_advice", Reason.MAILBOX_FULL, phases="rcpt", text=MAILBOX_FULL_WORDS, unless=NOT_FULL_WORDS,
         without_advice=True,
         sample="rcpt 550 Mailbox full. Please try sending your message again tomorrow.",
         seen="local rules: the advice after the reason may contain a word for the sender"),

    Rule("over_quota_552", Reason.MAILBOX_FULL, code="552", phases="rcpt",
         text=r"(?:not|n't) (?:have )?enough disk ?space|^(?:user'?s? )?disk quota\b|mailbox disk quota"
              r"|not able to receive any more|larger than the space available"
              r"|over the maximum allowed|exceeds allowed message count",
         sample="rcpt 552 over the maximum allowed number of messages",
         seen="local rules; 552 is storage allocation (RFC 5321 4.2.3), beside other codes such words mean the server"),

    # 12. Complete statements of known servers whose words would be read as a policy in section 13.
    # They stand first among the mailbox rules for that reason.
    Rule("yandex_target_policy", Reason.MAILBOX_NOT_FOUND, code=MAILBOX_CODES, phases="rcpt",
         error_code="MAILBOX_DISABLED",
         text=r"^policy rejection on the target address",
         sample="rcpt 550 5.7.1 Policy rejection on the target address",
         seen="Yandex, for accounts that it has closed"),
    Rule("rambler_closed", Reason.MAILBOX_NOT_FOUND, code="540", phases="rcpt", error_code="MAILBOX_DISABLED",
         text=r"^xaddrx:? recipient address rejected:? .*\b(?:account (?:has been suspended|locked by)|inactive)",
         sample="rcpt 540 5.7.1 <x@example.org>: Recipient address rejected: Account locked by abuse team",
         seen="Rambler: 540 is its code for closed accounts"),
    Rule("o2_closed", Reason.MAILBOX_NOT_FOUND, code="50[04]", enhanced="", phases="rcpt",
         text=r"^(?:no such user|mailbox is disabled)$",
         sample="rcpt 500 no such user", seen="o2.pl: 500 and 504 with texts that are not about the command"),
    Rule("qmail_badrcptto", Reason.MAILBOX_NOT_FOUND, code=MAILBOX_CODES, phases="rcpt", error_code="MAILBOX_DISABLED",
         text=r"recipient is (?:in my bad(?:rcptto|recipientto)|not in my validrcptto)|\bbadrcptto\b",
         sample="rcpt 553 sorry, your envelope recipient is in my badrcptto list (#5.7.1)",
         seen="qmail: addresses that the administrator has closed"),
    Rule("directory_edge_block", Reason.MAILBOX_NOT_FOUND, code=MAILBOX_CODES, phases="rcpt",
         enhanced=r"5\.4\.1|5\.7\.504",
         text=r"recipient address rejected ?: ?access denied",
         sample="rcpt 550 5.4.1 Recipient address rejected: Access denied [MN1PEPF.prod.outlook.com]",
         seen="Exchange Online with directory-based edge blocking; 5.7.504 by its list of codes"),
    Rule("directory_edge_policy", Reason.SENDER_BLOCKED, code=PERMANENT, enhanced=r"5\.4\.1", phases="rcpt",
         text=r"recipient addresses rejected ?: ?access denied",
         sample="rcpt 550 5.4.1 All recipient addresses rejected : Access denied. AS(201806271)",
         seen="Exchange Online: only allowed senders reach the domain (SMTP Field Manual), whatever the recipient"),
    Rule("postfix_recipient_access", Reason.INCONCLUSIVE, code=MAILBOX_CODES, phases="rcpt",
         text=r"^xaddrx: recipient address rejected: access denied$",
         sample="rcpt 554 5.7.1 <x@example.org>: Recipient address rejected: Access denied",
         seen="Postfix: an entry for this recipient, or a restriction list that ends with `reject`, which refuses all "
              "recipients of a client; the reply to a random address may show it"),

    Rule("interia_not_available", Reason.INCONCLUSIVE, code="550", enhanced=r"5\.2\.1", phases="rcpt",
         text=r"^(?:xaddrx:? )?mailbox not available\b",
         sample="rcpt 550 5.2.1 Mailbox not available",
         seen="Interia documents it as misspelled, full or suspended"),

    Rule("account_disabled_525", Reason.MAILBOX_NOT_FOUND, code="525", phases="rcpt", error_code="MAILBOX_DISABLED",
         text=r"disabled", unless=CLIENT_OR_SENDER_WORDS,
         sample="rcpt 525 5.7.13 Disabled recipient address", seen="RFC 5248: 525 is a disabled user account"),

    # 13. The mailbox is closed or unknown, by text.
    # A rule applies only if no word for client, sender or domain is in the text: otherwise the
    # cause is not certain. `client_link` stands last: a link that holds the client's IP address
    # counts less than a clear text about the mailbox, and more than the codes of section 14, which
    # some servers send with every refusal.
    Rule("domain_trouble", Reason.INCONCLUSIVE, code=MAILBOX_CODES, phases="rcpt", text=DOMAIN_UNKNOWN_WORDS,
         unless=CLIENT_OR_SENDER_WORDS, statement=True,
         sample="rcpt 550 5.1.2 <x@nodns.example>: Recipient address rejected: Domain not found",
         seen="the server cannot resolve the domain: nothing is known of the mailbox"),
    Rule("mailbox_either", Reason.INCONCLUSIVE, code=PERMANENT, phases="rcpt", text=MAILBOX_EITHER_WORDS,
         unless=OTHER_CAUSE_WORDS,
         sample="rcpt 550 Adressat unbekannt oder Mailbox deaktiviert",
         seen="GMX, La Poste, Tiscali: \"unknown or closed\" establishes neither"),
    Rule("mailbox_closed", Reason.MAILBOX_NOT_FOUND, code=MAILBOX_CODES, phases="rcpt", error_code="MAILBOX_DISABLED",
         text=MAILBOX_CLOSED_WORDS,
         unless=(*OTHER_CAUSE_WORDS, LOOKUP_FAILURE_WORDS, MAILBOX_FULL_WORDS, r"\btry again|\bof the domain",
                 FOREIGN_MESSAGE_WORDS),
         sample="rcpt 550 5.2.1 The email account that you tried to reach is disabled.",
         seen="Gmail, Mail.ru, La Poste, NetEase"),
    Rule("mailbox_unknown", Reason.MAILBOX_NOT_FOUND, code=MAILBOX_CODES, phases="rcpt", text=MAILBOX_UNKNOWN_WORDS,
         unless=(*OTHER_CAUSE_WORDS, LOOKUP_FAILURE_WORDS),
         sample="rcpt 550 Mailbox not found.", seen="all servers, in several languages"),
    Rule("client_link", Reason.PROTECTED, unmasked=r"[?&]ip=|\bip ?= ?\d", unless=r"prefer|\bdt:spm",
         sample="rcpt 554 Rejected. See https://postmaster.example.net/error?ip=192.0.2.7",
         seen="GMX, T-Online, Proofpoint: the link explains what the client's IP address did"),

    # 14. The mailbox is closed or unknown, by enhanced code or by the standard text of a 550.
    # After the texts: servers send 5.1.1 or 5.2.1 with texts about other things, which
    # `NOT_MAILBOX_WORDS` excludes. The last two rules keep system codes and a text of QQ, which
    # look like such a refusal, away from section 16.
    Rule("mailbox_disabled_code", Reason.MAILBOX_NOT_FOUND, code=r"5(?!0[0234]|21)\d\d", enhanced=r"5\.2\.1",
         phases="rcpt", error_code="MAILBOX_DISABLED", text=RECIPIENT_REFUSED_WORDS, statement=True,
         unless=NOT_MAILBOX_WORDS,
         sample="rcpt 550 5.2.1 Mailbox unavailable", seen="RFC 3463 x.2.1"),
    Rule("mailbox_unknown_code", Reason.MAILBOX_NOT_FOUND, code=MAILBOX_CODES, enhanced=r"5\.1\.(?:1|3|6|10)",
         phases="rcpt", text=RECIPIENT_REFUSED_WORDS, statement=True, unless=NOT_MAILBOX_WORDS,
         sample="rcpt 550 5.1.1 RCPT refused", seen="RFC 3463 x.1.1, x.1.3, x.1.6; x.1.10 as Exchange uses it"),
    Rule("address_refused_code", Reason.MAILBOX_NOT_FOUND, code=MAILBOX_CODES, enhanced=r"5\.1\.[02]", phases="rcpt",
         text=ADDRESS_REFUSED_WORDS, statement=True, unless=NOT_MAILBOX_WORDS,
         sample="rcpt 550 5.1.0 Address rejected.",
         seen="Cisco IronPort; x.1.0 and x.1.2 count only beside a word for the address"),
    Rule("mailbox_unavailable", Reason.MAILBOX_NOT_FOUND, code="550", enhanced=r"|5\.[0125]\.0", phases="rcpt",
         text=r"mailbox (?:xaddrx )?(?:is )?(?:un|not )ava(?:i?l|li|i)a?ble", statement=True,
         unless=(*NOT_MAILBOX_WORDS, r"\bor\b"),
         sample="rcpt 550 5.5.0 Requested action not taken: mailbox unavailable (S2017062302).",
         seen="Outlook.com, GMX, IONOS for unknown users, in the wording of RFC 5321 4.2.3"),
    Rule("permanent_system_code", Reason.INCONCLUSIVE, code=PERMANENT, enhanced=r"5\.(?:2\.[34]|[345]\.\d+)",
         phases="rcpt", unless=r"spam\b|\bpolicy\b(?! reasons)|politica|mailpolicy",
         sample="rcpt 524 5.2.4 Mailing list expansion problem: <x@example.org>",
         seen="RFC 3463 x.2.4, x.3 mail system, x.4 network, x.5 protocol"),
    Rule("qq_flood", Reason.INCONCLUSIVE, code=MAILBOX_CODES, phases="rcpt", text=r"unavailable or access denied",
         sample="rcpt 550 Mailbox unavailable or access denied",
         seen="QQ documents this as a flood of recipients, not an unknown user"),

    # 15. Other transient replies (4xx): the code alone never establishes that a mailbox does not
    # exist.
    # First texts with a known meaning, then failures of the server, then "unknown" without proof,
    # then policies. What is left and asks to try again later is greylisting.
    Rule("postscreen_after_220", Reason.GREYLISTED, code="450", enhanced=r"4\.3\.2", phases="rcpt", retry_after=1.0,
         sample="rcpt 450 4.3.2 Service currently unavailable",
         seen="Postfix postscreen after its deep tests: it accepts the next connection"),
    Rule("lost_connection", Reason.CONNECTION_DROPPED, enhanced=r"[45]\.4\.2",
         sample="rcpt 421 4.4.2 mx.example.org Error: timeout exceeded", seen="RFC 3463 x.4.2 bad connection"),
    Rule("mimecast_greylist", Reason.GREYLISTED, code="451", phases="mail rcpt",
         text=r"internal resources? (?:is |are )?temporarily unavailable",
         sample="rcpt 451 Internal resources are temporarily unavailable - https://community.mimecast.com/docs",
         seen="Mimecast documents this wording as its greylisting"),
    Rule("server_trouble_code", Reason.INCONCLUSIVE, code=TRANSIENT, enhanced=r"4\.[345]\.\d+",
         sample="rcpt 451 4.3.0 Temporary lookup failure",
         seen="RFC 3463 x.3 mail system, x.4 network, x.5 protocol"),
    Rule("server_busy", Reason.INCONCLUSIVE, code=TRANSIENT, action=Action.BACK_OFF,
         text=r"\b(?:server|system|service|host)\b[^.;]{0,20}\bbusy|too busy|high load",
         sample="mail 421 Server busy, try again later", seen="capacity in other words"),
    Rule("server_trouble", Reason.INCONCLUSIVE, code=TRANSIENT, text=SERVER_FAILURE_WORDS,
         sample="rcpt 451 Temporary local problem - please try later",
         seen="Exim, and the wording of RFC 5321 4.2.3 for 451"),
    Rule("soft_unknown", Reason.INCONCLUSIVE, code=TRANSIENT, enhanced=r"4\.[126]\.[1-9]\d*", phases="rcpt",
         unless=RETRY_WORDS,
         sample="rcpt 450 4.1.1 <x@example.org>: Recipient address rejected: User unknown in alias table",
         seen="Postfix with soft_bounce: a transient reply establishes no refusal"),
    Rule("soft_unknown_words", Reason.INCONCLUSIVE, code=TRANSIENT, phases="rcpt",
         text=(MAILBOX_UNKNOWN_WORDS, MAILBOX_CLOSED_WORDS), unless=(RETRY_WORDS, CLIENT_OR_SENDER_WORDS),
         sample="rcpt 451 Invalid Recipient - https://community.mimecast.com/docs/DOC-1369#451",
         seen="Mimecast; transient, so not established"),
    Rule("policy_transient", Reason.SENDER_BLOCKED, code=TRANSIENT, phases="mail rcpt", text=CLIENT_OR_SENDER_WORDS,
         unless=RETRY_WORDS,
         sample="rcpt 450 4.7.1 <x@example.com>: Recipient address rejected: Policy Rejection- Abuse. Go away.",
         seen="policyd"),
    Rule("later", Reason.GREYLISTED, code=TRANSIENT, phases="mail rcpt", text=RETRY_WORDS,
         sample="rcpt 451 Temporary failure, please try again later.",
         seen="OpenBSD spamd, rspamd, iCloud: \"later\" without a cause"),
    Rule("bare_transient", Reason.GREYLISTED, code="45[01]", enhanced=r"|4\.2\.0|4\.7\.[01]", phases="mail rcpt",
         sample="rcpt 450 Requested mail action not taken: mailbox unavailable",
         seen="the plain 450 and 451 of RFC 5321 4.2.3"),
    Rule("transient", Reason.INCONCLUSIVE, code=TRANSIENT,
         sample="banner 421 mx.example.org Service not available, closing transmission channel",
         seen="all other 4xx"),

    # 16. Other permanent replies (5xx), by phase: before RCPT nothing but client and sender is
    # known.
    # Last, because every rule above is more specific.
    Rule("banner_refused", Reason.PROTECTED, code=PERMANENT, phases="banner",
         sample="banner 554 Transaction failed", seen="only the client's IP address is known at the greeting"),
    Rule("ehlo_refused", Reason.PROTECTED, code=PERMANENT, phases="ehlo",
         sample="ehlo 521 5.5.1 Protocol error", seen="Postfix postscreen"),
    Rule("mail_refused", Reason.SENDER_BLOCKED, code=PERMANENT, phases="mail",
         sample="mail 550 Rejected", seen="only the client and the sender are known at MAIL"),
    Rule("permanent_trouble", Reason.INCONCLUSIVE, code=PERMANENT, phases="rcpt",
         text=r"\b(?:internal|system|software|configuration) (?:\w+ )?(?:error|failure|problem)"
              r"|\b(?:ldap|directory|database|look-?up)\b[^.;]{0,12} (?:error|fail\w*|(?:is )?unavailable)"
              r"|\bcan(?: ?not|'t) (?:create|open)|\btoo many hops|\bhop count|\b(?:mail|routing) loop"
              r"|\bloop (?:was |is )?detected",
         sample="rcpt 550 5.7.1 Internal error while looking up the recipient",
         seen="local rules: a failure of the server establishes nothing about the sender, whatever the code"),
    Rule("message_size", Reason.INCONCLUSIVE, code=PERMANENT, phases="rcpt",
         text=r"\b(?:message|mail|header|attachment)s?'?s? ?(?:\w+ )?size\b|\bsize (?:of|limit)\b",
         sample="rcpt 552 Message header size exceeds limit", seen="James, Exchange: the message, not the sender"),
    Rule("policy_code", Reason.SENDER_BLOCKED, code=PERMANENT, enhanced=r"5\.7\.\d+", phases="rcpt",
         sample="rcpt 550 5.7.1 Rejected", seen="RFC 3463 x.7 security or policy"),
    Rule("command_words", Reason.INCONCLUSIVE, code=PERMANENT, phases="rcpt",
         text=r"syntax error|not implemented|unrecogni[sz]ed command|unknown command|unsupported option|bad command",
         sample="rcpt 501 Syntax error in parameters or arguments",
         seen="RFC 5321 4.2.2: about the command; Yahoo and GMX use it for much else"),
    Rule("policy_words", Reason.SENDER_BLOCKED, code=PERMANENT, phases="rcpt",
         text=(CLIENT_OR_SENDER_WORDS, UNWANTED_MESSAGE_WORDS),
         sample="rcpt 550 Mail is rejected by recipients", seen="QQ and many local rules"),
    Rule("permanent", Reason.INCONCLUSIVE, code=PERMANENT,
         sample="rcpt 550 Rejected", seen="a refusal without a cause; the reply to a random address may show it"),
)
# fmt: on
