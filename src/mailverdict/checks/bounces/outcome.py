"""What a delivery report means for an address: one of five outcomes, by the rules for SMTP replies.

    5.1.1, "smtp; 550 5.1.1 User unknown"           a reply: by the rules of `checks.smtp` -> hard
    5.7.1, "554 5.7.1 blocked using zen..."         a reply -> blocked
    4.4.7, "delivery time expired"                  a statement (`OWN_STATEMENTS`) -> soft
    "", "Host or domain name not found"             a statement -> hard, no_mx_record

*Hard* is reserved for a mailbox or domain that does not exist or is disabled. Whatever else is
refused for good says something about the sender (*blocked*), or nothing about the address (*soft*).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from ...model.evidence import Action, Classification
from ...model.words import Reason
from ..smtp.classify.classifier import classify_reply
from ..smtp.replies import CONTROLS, Reply

MAX_DIAGNOSTIC = 500  # characters that are kept; the cause is in the first sentence
MAX_JUDGED = 4_000  # characters that are read


class Outcome(StrEnum):
    """What became of a mail, from the best to the worst for the address."""

    DELIVERED = "delivered"
    SOFT = "soft"  # may be delivered another time: full, greylisted, time-out, cause unknown
    BLOCKED = "blocked"  # the sender or the message was refused; says nothing about the address
    COMPLAINT = "complaint"  # the recipient reported the mail as spam
    HARD = "hard"  # no such mailbox or domain, or it is disabled


@dataclass(frozen=True, slots=True)
class Judgement:
    """The meaning of a failed or delayed delivery."""

    outcome: Outcome
    reason: Reason | None


OUTCOMES = {
    Reason.MAILBOX_NOT_FOUND: Outcome.HARD,
    Reason.NO_MX_RECORD: Outcome.HARD,
    Reason.PROTECTED: Outcome.BLOCKED,
    Reason.SENDER_BLOCKED: Outcome.BLOCKED,
}

# A quote may stand between the code and the status, as Cisco writes it: 550-'5.1.1 Mailbox does not
# exist'.
REPLY = re.compile(
    r"(?:^|(?<=[;:'\"(\[<>,])|(?<=[;:'\"(\[<>,] )|(?<=error )|(?<=said )|(?<=reply ))"
    r"#?([45]\d\d)[ -]+(?=\D|[245]\.)(?:['\"]?#?([245]\.\d{1,3}\.\d{1,3})(?!\d|\.\d))?"
)
STATUS = re.compile(r"(?<![\d.])([245]\.\d{1,3}\.\d{1,3})(?!\d|\.\d)")
DIAGNOSTIC_TYPE = re.compile(
    r"^\s*(smtp|x-[\w-]+|x[45]00|unknown|local|utf-?8|rfc822)\s*;\s*", re.IGNORECASE
)

# What a mail system says of its own accord, without a reply of another server; searched in this
# order. A domain without DNS records is established only by the words for "does not exist", never
# by a failed look-up.
STATEMENT_ROWS = (
    (
        Reason.CONNECTION_DROPPED,
        r"lost connection|connection (?:was )?(?:reset|closed|dropped)|broken pipe",
    ),
    (
        Reason.PORT_CLOSED,
        r"connection refused|no route to host|network is unreachable|socket error",
    ),
    (
        Reason.TIMEOUT,
        r"(?:connection|operation|connect\S*|session|conversation)\b.{0,120} timed out"
        r"|\btimed out (?:while|waiting|after)\b",
    ),
    (
        Reason.TIMEOUT,
        r"servfail|try again|temporar(?:y|ily)|lookup (?:failed|failure|timed)|\bdeferr?ed\b",
    ),
    (
        Reason.NO_MX_RECORD,
        r"host or domain name not found|name service error[^;]*host not found|host unknown"
        r"|\bnxdomain\b|host found but no data record|couldn'?t find any host"
        r"|no such (?:domain|host)|unknown (?:mail )?domain"
        r"|\bdomain\b(?:(?!user|mailbox|recipient|account|address)[^;]){0,80}"
        r"\b(?:does(?: not|n't) exist|not found|unknown)"
        r"|invalid domain(?! name)|couldn'?t find a mail exchanger"
        r"|\bhost(?: name)? (?:\S+ )?(?:does not exist|not found|unknown)"
        r"|non-?existent (?:domain|host)|(?:domain|host)[^.;]{0,20} is invalid or not accessible"
        r"|point to non-?existent hosts|indicated no smtp service|null ?mx|does not accept mail"
        r"|no (?:mx|mail exchanger)[^.;]{0,30} (?:record|found|exist)"
        r"|bad destination (?:host|system)|unroute?able (?:mail )?domain",
    ),
    (
        Reason.TIMEOUT,
        r"timed? ?-?out|retry time|expired|delivery time|too long in queue"
        r"|could not be delivered for|\bg[ai]v(?:e|en|ing) up after\b",
    ),
    (Reason.MAILBOX_NOT_FOUND, r"unroute?able address"),
)
OWN_STATEMENTS: tuple[tuple[Reason, re.Pattern[str]], ...] = tuple(
    (reason, re.compile(pattern, re.IGNORECASE)) for reason, pattern in STATEMENT_ROWS
)
FAILURES = OWN_STATEMENTS[:3]  # a session that failed says nothing about a mailbox or a sender
BEFORE_RCPT = re.compile(
    r"(?:in reply to|after)(?: pipelined| sending)? (?:mail from|helo|ehlo)|my name was rejected",
    re.IGNORECASE,
)
ABOUT_SENDER = re.compile(
    r"\bsend(?:er|ing)\b|\bmail ?from\b|\bhelo\b|\behlo\b|\bclient\b|return[- ]path|originator"
    r"|\byour (?!message|mail)",
    re.IGNORECASE,
)
# GMX.
WITHOUT_CODE = re.compile(
    r"^smtp error from remote server after .{1,200}?(?=5\.\d\.\d )", re.IGNORECASE
)

REPEATED_CODE = re.compile(r" [245]\d\d-[245]\.\d{1,3}\.\d{1,3} ")
# A service that refuses to send to an address on a list of its own: nothing is known of the mail
# server.
NOT_SENT = re.compile(
    r"on (?:the|our|your) suppression list|(?:address|recipient) (?:was |is )?suppressed"
    r"|suppressed sending to|due to blacklist(?:ed)? user",
    re.IGNORECASE,
)
# RFC 3463 x.1.2, x.4.4; Exchange Online: no such domain.
PERMANENT_DOMAIN_CODES = ("5.1.2", "5.4.4", "5.4.310")


def judge(status: str | None, diagnostic: str) -> Judgement:
    """Judge a failed delivery by its status code and diagnostic text; either may be missing.

    >>> judge("5.1.1", "smtp; 550 5.1.1 <ada@firm.example>: User unknown").outcome.value
    'hard'
    >>> judge("5.7.1", "smtp; 554 5.7.1 client blocked using zen.spamhaus.org").outcome.value
    'blocked'
    >>> judge("4.4.7", "").outcome.value
    'soft'
    """
    if NOT_SENT.search(diagnostic[:MAX_JUDGED]):
        return Judgement(Outcome.SOFT, Reason.INCONCLUSIVE)
    given = DIAGNOSTIC_TYPE.match(diagnostic[:100])
    text = REPEATED_CODE.sub(" ", " ".join(diagnostic[:MAX_JUDGED].split()))
    text = DIAGNOSTIC_TYPE.sub("", text)
    replies = [reply_at(text, match) for match in REPLY.finditer(text)]
    if not replies:
        return judge_statement(status, text)
    # A reply to MAIL or EHLO is about the sender or the client, whatever its text says.
    phase = "mail" if BEFORE_RCPT.search(text) else "rcpt"
    first = replies[0]
    finding = classify_reply(first, phase=phase)
    if phase == "mail":
        return conclude(finding, status)
    for reply in replies[1:]:
        if is_open(finding):
            later = classify_reply(reply, phase=phase)
            if not is_open(later):
                finding = later
    has_domain_code = is_open(finding) and first.enhanced_code in PERMANENT_DOMAIN_CODES
    if finding.rule == "domain_trouble" or has_domain_code:
        statement = find_statement(text)
        if statement is Reason.NO_MX_RECORD:
            return Judgement(Outcome.HARD, statement)
    is_local = given is not None and given[1].lower() != "smtp"
    if is_open(finding) and is_local and first.code >= 500:
        return judge_statement(status, text)
    judged = conclude(finding, status)
    if judged.reason is Reason.INCONCLUSIVE and find_statement(text) is Reason.TIMEOUT:
        return Judgement(Outcome.SOFT, Reason.TIMEOUT)
    return judged


def is_final_reply(text: str) -> bool:
    """Whether a text has replies of a server, and all of them are permanent.

    >>> is_final_reply("smtp; 550 5.1.1 User unknown")
    True
    >>> is_final_reply("User unknown"), is_final_reply("451 4.1.1 later")
    (False, False)
    """
    line = " ".join(text[:MAX_JUDGED].split())
    codes = [match[1] for match in REPLY.finditer(line)]
    return bool(codes) and all(code.startswith("5") for code in codes)


def reply_at(text: str, match: re.Match[str]) -> Reply:
    after = clean_text(text[match.end() :]).strip(" -")
    if match[2] or not after.startswith(": "):  # KDDI's filter has an empty address before a colon
        after = after.strip(" :-")
    return Reply(int(match[1]), match[2], after)


def is_open(finding: Classification) -> bool:
    """Whether the rules found no cause."""
    return finding.reason is Reason.INCONCLUSIVE and finding.action is Action.NONE


def judge_statement(status: str | None, text: str) -> Judgement:
    """Judge what a mail system says about its own delivery, without a reply code."""
    text = WITHOUT_CODE.sub("", text)
    is_permanent = status is None or status.startswith("5")
    statement = find_statement(text)
    if statement is Reason.NO_MX_RECORD and is_permanent:
        return Judgement(Outcome.HARD, statement)
    failure = first_statement(text, FAILURES)
    if failure is not None:
        return Judgement(Outcome.SOFT, failure)
    code = 550 if is_permanent else 450
    known = status if status and status != "5.0.0" else None
    finding = classify_reply(Reply(code, known, clean_text(text)), phase="rcpt")
    if not is_open(finding):
        return conclude(finding, status)
    if statement is not None and is_permanent:
        return Judgement(OUTCOMES.get(statement, Outcome.SOFT), statement)
    if statement is not None:
        return Judgement(Outcome.SOFT, statement)
    if status == "5.1.2" and not text.strip():
        return Judgement(Outcome.HARD, Reason.NO_MX_RECORD)
    return conclude(finding, status)


def find_statement(text: str) -> Reason | None:
    """The cause in the words of a mail system; a missing domain must not be that of the sender."""
    statement = first_statement(text, OWN_STATEMENTS)
    if statement is Reason.NO_MX_RECORD and ABOUT_SENDER.search(text):
        return None
    return statement


def first_statement(
    text: str, statements: tuple[tuple[Reason, re.Pattern[str]], ...]
) -> Reason | None:
    for reason, pattern in statements:
        if pattern.search(text):
            return reason
    return None


def conclude(finding: Classification, status: str | None) -> Judgement:
    """The outcome of a classification.

    A security or policy code (RFC 3463 x.7) is a refusal of the sender; x.7.27 of its domain.
    """
    blocked = Judgement(Outcome.BLOCKED, Reason.SENDER_BLOCKED)
    code = status or ""
    if finding.reason is Reason.NO_MX_RECORD and code.startswith("5.7."):
        return blocked
    if finding.action is Action.USE_TLS:
        return blocked
    if is_open(finding) and code.startswith(("5.7.", "4.7.")):
        return blocked
    if finding.reason is None:  # the recipient's limits, which prove that the mailbox exists
        return Judgement(Outcome.SOFT, Reason.INCONCLUSIVE)
    return Judgement(OUTCOMES.get(finding.reason, Outcome.SOFT), finding.reason)


def find_status(text: str) -> str | None:
    """The first enhanced status code in a text (RFC 3463).

    >>> find_status("5.1.1 (bad destination mailbox address)"), find_status("10.5.1.1")
    ('5.1.1', None)
    """
    match = STATUS.search(text[:MAX_JUDGED])
    return match[1] if match else None


def clean_text(text: str) -> str:
    """One line without control characters."""
    return " ".join(whole_text(text).translate(CONTROLS).split())


def whole_text(text: str) -> str:
    """A text that can be written as UTF-8: halves of surrogate pairs are replaced.

    JSON and UTF-7 can hold such.
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
