"""Bounces in plain text: recipients and reasons where a known mail system's form allows them to be read reliably.

Forms: qmail's QSBMF and those like it, Exim, Sendmail, Exchange, Notes and Domino, IMail, Zoho, DragonFly, the old form
of Gmail, and one recipient with one reply.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Notice", "cut_original", "find_notices"]

MAX_TEXT = 64 * 1024  # characters of a text part that are read
MAX_LINE = 998  # characters, RFC 5322 2.1.1
MAX_NOTICES = 5_000
MAX_REASON = 2_000


@dataclass(frozen=True, slots=True)
class Notice:
    """One recipient of a bounce, and why the mail was not delivered."""

    address: str
    text: str
    is_delay: bool = False


ADDRESS = r"[^\s<>()\[\]\"',;:@]{1,64}@[^\s<>()\[\]\"',;:@]{1,255}"
# Where the copy of the returned mail begins.
ORIGINAL = re.compile(
    r"^(?:-{2,}[ >]*(?:below this line|enclosed|undelivered message follows|returned mail follows).*"
    r"|-{3,} ?this is (?:a|the) copy of (?:the|your) .*"
    r"|[ \t]*-{3,} ?(?:original message|unsent message|returned message|the original message|the header of).*"
    r"|[ \t]*(?:below is a copy of the original message|original message (?:follows|headers)|message headers follow).*"
    r"|urspr.ngliche nachrichtenkopfzeilen:.*|received: ?from .*)$",
    re.IGNORECASE | re.MULTILINE,
)
DELAY = re.compile(
    r"not (?:yet )?been delivered yet|has not yet been delivered|warning: (?:could not send|message still undelivered)"
    r"|delivery (?:of your message )?(?:has been|is) delayed|is delayed|transient non-fatal errors"
    r"|this is a warning message only|will (?:continue to )?(?:be )?retr(?:y|ied)|delivery attempts will continue"
    r"|noch nicht zugestellt|no action is required on your part",
    re.IGNORECASE,
)

# <ada@firm.example>:                      qmail, Postfix, Yahoo; also "ada@firm.example": (GMX) and without marks
# host mx.firm.example said: 550 5.1.1 User unknown
QSBMF = re.compile(
    rf"^(?:<({ADDRESS})>:?|\"?({ADDRESS})\"?:)[ \t]*((?:\S.*)?(?:\n(?!<{ADDRESS}>|\"?{ADDRESS}\"?:)[ \t]*\S.*)*)",
    re.MULTILINE,
)
#   ada@firm.example
#     SMTP error from remote mail server after RCPT TO:<ada@firm.example>: 550 User unknown
EXIM = re.compile(rf"^ {{2,4}}<?({ADDRESS})>?[ \t]*\n((?:(?: {{4,}}|\t)\S.*\n?)+)", re.MULTILINE)
#   ----- The following addresses had permanent fatal errors -----
SENDMAIL = re.compile(
    r"^[ \t]*-+ (?:the following addresses had (?:\w+ )?(?:fatal|non-fatal|delivery) (?:errors|problems)"
    r"|transcript of session follows)",
    re.IGNORECASE | re.MULTILINE,
)
SENDMAIL_ROW = re.compile(rf"^[ \t]*\"?<?({ADDRESS})>?\"?[ \t]*(?:\(.*\)[ \t]*)?$", re.MULTILINE)
# 550 <ada@firm.example>... User unknown
TRANSCRIPT_ROW = re.compile(rf"^([45]\d\d) <?({ADDRESS})>?\.\.\. (.*)$", re.MULTILINE)
SENDMAIL_REASON = re.compile(r"^[ \t]*\(reason: (.*)\)", re.MULTILINE)
#       ada@firm.example on 3/5/2026 10:12
#             The e-mail account does not exist. <mx.firm.example #5.1.1 smtp;550 5.1.1 User unknown>
EXCHANGE = re.compile(
    rf"^[ \t]*'?({ADDRESS})'? (?:on|am|le|el|il|em|op) \w.*\n((?:[ \t]+\S.*\n?)+)", re.MULTILINE | re.IGNORECASE
)
# ada@firm.example
# #550 5.1.1 RESOLVER.ADR.RecipNotFound; not found ##
DIAGNOSTICS = re.compile(
    rf"^[ \t]*({ADDRESS})[ \t]*\n(?:[ \t]*\n)?[ \t]*(?:remote server (?:returned|said) ['\"]?)?#?<?"
    rf"([45]\d\d[ -#].*)$",
    re.MULTILINE | re.IGNORECASE,
)
# One line that holds the recipient and the cause: Domino, IMail, Zoho.
ON_ONE_LINE = re.compile(
    rf"^.{{0,200}}?(?:\buser\b.{{0,100}}?\b({ADDRESS})\b.{{0,40}}\b(?:not listed|not unique|unknown)"
    rf"|^(?:unknown (?:user|host|domain)|user mailbox exceeds allowed size|invalid final delivery userid): ({ADDRESS})"
    rf"|^({ADDRESS})\b.{{0,60}}\bERROR_CODE ?:[45]\d\d).*$",
    re.IGNORECASE | re.MULTILINE,
)
ERROR_CODES = re.compile(r"^.*?ERROR_CODE ?:(\d\d\d), ERROR_CODE ?:", re.IGNORECASE)
#      ada@firm.example
#
# Technical details of permanent failure:
GMAIL = re.compile(
    rf"^ *({ADDRESS})[ \t]*\n\s*Technical details of (permanent|temporary) failure:([\s\S]{{1,{MAX_REASON}}})",
    re.MULTILINE,
)
# ------- Failure Reasons  --------
# User not listed in public Name & Address Book
# ada@firm.example
NOTES = re.compile(rf"^-+ Failure Reasons +-+\n\s*(\S.*)\n({ADDRESS})[ \t]*$", re.MULTILINE)
# There was an error delivering your mail to <ada@firm.example>.
DRAGONFLY = re.compile(
    rf"^There was an error delivering your mail to <({ADDRESS})>\.\s*\n([\s\S]{{1,{MAX_REASON}}})", re.MULTILINE
)
REPLY_LINE = re.compile(r"(?:^|[\s:;<#'\"(])([45]\d\d[ -](?:#?[245]\.\d{1,3}\.\d{1,3}|\D).*)", re.MULTILINE)


def find_notices(text: str, failed: Sequence[str] = ()) -> list[Notice]:
    r"""The recipients of a bounce; `failed` are those that its header names.

    >>> find_notices("Hi. This is qmail.\n\n<ada@firm.example>:\nSorry, no mailbox here. (#5.1.1)\n")
    [Notice(address='ada@firm.example', text='Sorry, no mailbox here. (#5.1.1)', is_delay=False)]
    """
    # Short lines keep the search linear in the length of the text.
    body = "\n".join(line[:MAX_LINE] for line in cut_original(text[:MAX_TEXT])[0].split("\n"))
    for form in (read_sendmail, read_qsbmf, read_exim, read_exchange, read_one_line, read_gmail, read_others):
        if found := list(form(body)):
            return with_delay(found, body)[:MAX_NOTICES]
    return with_delay(read_single(body, failed), body)


def with_delay(found: list[Notice], body: str) -> list[Notice]:
    is_delay = bool(DELAY.search(body))
    distinct = {
        each.address.lower(): Notice(each.address, each.text[:MAX_REASON], is_delay) for each in reversed(found)
    }
    return list(reversed(distinct.values()))


def cut_original(text: str) -> tuple[str, str]:
    """The text of the bounce, and the copy of the returned mail below it."""
    match = ORIGINAL.search(text)
    if match is None:
        return text, ""
    at = match.start() if match[0].lower().startswith("received:") else match.end()
    return text[: match.start()], text[at:].lstrip("\n -")


def read_qsbmf(body: str) -> Iterator[Notice]:
    for match in QSBMF.finditer(body):
        if reason := match[3].strip():
            yield Notice(match[1] or match[2], reason)


def read_exim(body: str) -> Iterator[Notice]:
    for match in EXIM.finditer(body):
        yield Notice(match[1], match[2].strip())


def read_sendmail(body: str) -> Iterator[Notice]:
    """The addresses of the first section; the reason is below the address, or in the transcript of the session."""
    start = SENDMAIL.search(body)
    if start is None:
        return
    section, _, transcript = body[start.end() :].partition("Transcript of session follows")
    replies = session_replies(transcript or section)
    named = {address.lower(): line for line in reversed(replies) for address in re.findall(ADDRESS, line)}
    rows = list(SENDMAIL_ROW.finditer(section))
    if not rows:
        for match in TRANSCRIPT_ROW.finditer(section):
            yield Notice(match[2], f"{match[1]} {match[3]}")
    for row, after in zip(rows, [*(each.start() for each in rows[1:]), *[len(section)] * bool(rows)], strict=True):
        given = SENDMAIL_REASON.search(section, row.end(), after)
        reason = given[1] if given else named.get(row[1].lower())
        if reason is None and len(rows) == 1:
            reason = " ".join(dict.fromkeys(replies))
        if reason:
            yield Notice(row[1], reason)


def session_replies(transcript: str) -> list[str]:
    """The lines of a transcript that refuse something."""
    lines = [line.removeprefix("<<< ").strip() for line in transcript.splitlines() if not line.startswith(">>>")]
    return [line for line in lines if re.match(r"[45]\d\d[ -]", line)]


def read_exchange(body: str) -> Iterator[Notice]:
    for match in EXCHANGE.finditer(body):
        yield Notice(match[1], match[2].strip())
    for match in DIAGNOSTICS.finditer(body):
        yield Notice(match[1], match[2].strip(" #'\""))


def read_one_line(body: str) -> Iterator[Notice]:
    for match in ON_ONE_LINE.finditer(body):
        yield Notice(match[1] or match[2] or match[3], ERROR_CODES.sub(r"\1 ", match[0].strip()))


def read_gmail(body: str) -> Iterator[Notice]:
    for match in GMAIL.finditer(body):
        yield Notice(match[1], match[3].strip(), is_delay=match[2] == "temporary")


def read_others(body: str) -> Iterator[Notice]:
    for match in NOTES.finditer(body):
        yield Notice(match[2], match[1].strip())
    for match in DRAGONFLY.finditer(body):
        yield Notice(match[1], match[2].strip().split("\n\n", 1)[0])


def read_single(body: str, failed: Sequence[str]) -> list[Notice]:
    """One recipient and one reply: the recipient that the header names, or the only address in the text."""
    replies = list(dict.fromkeys(match[1].strip() for match in REPLY_LINE.finditer(body)))
    named = list(dict.fromkeys(failed or [a for a in re.findall(ADDRESS, body) if not is_service(a)]))
    if len({each.lower().rstrip(".") for each in named}) != 1 or not replies:
        return []
    return [Notice(named[0].rstrip("."), " ".join(replies))]


def is_service(address: str) -> bool:
    """Whether an address is that of the mail system, which bounces name as a contact."""
    return address.lower().partition("@")[0] in ("postmaster", "mailer-daemon", "abuse", "admin", "support", "helpdesk")
