"""A mail that reports a delivery, as values: RFC 3464 and RFC 6533 reports, RFC 5965 complaints, plain-text bounces.

The mail is untrusted: its size, nesting, number of parts and of recipients are bounded, and what cannot be read is
returned as a problem, never raised.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from email import message_from_bytes
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.parser import HeaderParser
from email.policy import compat32
from email.utils import getaddresses

from ...model.address import folded_key
from ...model.words import Reason
from .dates import date_of
from .notices import Notice, cut_original, find_notices
from .outcome import MAX_DIAGNOSTIC, Judgement, Outcome, clean_text, find_status, judge
from .page_text import page_text

MAX_MESSAGE = 512 * 1024  # octets of a mail that are read: a report stands before the returned mail
MAX_MULTIPARTS = 60  # declared boundaries and attached mails; a nesting bomb has thousands
MAX_PARTS = 200
MAX_REPORTS = 5_000  # recipients in one mail
MAX_ADDRESS = 320  # characters: 64 + "@" + 255 (RFC 5321 4.5.3.1)
SENDER_FIELDS = ("From", "Sender", "Return-Path", "Reply-To")  # of the returned mail
MAX_FORWARDED = 20  # attached mails that are looked into

# The standard library reads these types as messages, whatever their transfer encoding: read as text they stay whole.
REPORT_TYPES = re.compile(
    rb"message/(delivery-status|global-delivery-status|feedback-report)", re.IGNORECASE
)
STATUS_TYPES = ("text/x-delivery-status", "text/x-global-delivery-status")
FEEDBACK_TYPE = "text/x-feedback-report"
ATTACHED_TYPES = (
    "message/rfc822",
    "message/global",
    "text/rfc822-headers",
    "message/global-headers",
)
DELIVERED = ("delivered", "relayed", "expanded")
NO_COMPLAINT = ("not-spam", "auth-failure", "dmarc")  # RFC 5965 7.3, RFC 6591, RFC 7489
# Subjects and senders of bounces, to distinguish a bounce that cannot be read from other mail.
BOUNCE_SENDER = re.compile(
    r"mailer-?daemon|postmaster@|mail delivery (?:sub)?system|mdaemon", re.IGNORECASE
)
BOUNCE_SUBJECT = re.compile(
    r"undeliver|delivery (?:status notification|failure|has failed|report)|returned mail|failure notice|mail delivery"
    r"|unzustellbar|nicht zugestellt|non remis|echec de la remise|no se puede entregar|non recapitabile|n.o entregue"
    r"|onbestelbaar|mancato recapito",
    re.IGNORECASE,
)
# A delivery report in plain text, or in a part that broken MIME hides.
INLINE_FIELDS = re.compile(
    r"^(?:reporting-mta|final-recipient|original-recipient|action): ", re.IGNORECASE | re.MULTILINE
)
AUTO_REPLY = re.compile(
    r"out of (?:the )?office|automatic reply|auto-?reply|autoreply|auto:|abwesen|automatische antwort|on vacation"
    r"|absence|reponse automatique|r.ponse automatique|respuesta autom|risposta automatica|resposta autom|afwezig",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class DeliveryReport:
    """What a mail reports about one recipient."""

    address: str
    outcome: Outcome
    reason: Reason | None = None
    status: str | None = None  # enhanced status code, RFC 3463
    diagnostic: str | None = None
    at: datetime | None = None  # UTC
    is_delay: bool = False  # the mail is still being tried
    message_id: str | None = None  # of the mail that was sent


@dataclass
class MailReading:
    """All that one mail reports."""

    reports: list[DeliveryReport] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)  # why a delivery report could not be read
    is_other: bool = False  # an ordinary mail, an auto-reply, a receipt


@dataclass(frozen=True, slots=True)
class ReturnedMail:
    """What is known of the mail that was sent, from the copy that came back."""

    recipients: tuple[str, ...] = ()
    senders: tuple[str, ...] = ()
    message_id: str | None = None
    complainant: str | None = None  # Outlook.com names the recipient in a field of the copy


def read_message(data: bytes) -> MailReading:
    r"""Read one mail.

    >>> read_message(b"Subject: Lunch?\n\nAt noon?").is_other
    True
    """
    cut = data[:MAX_MESSAGE]
    nested = len(re.findall(rb"boundary\s*=|:\s*message/", cut, re.IGNORECASE))
    if nested > MAX_MULTIPARTS:
        return MailReading(problems=[f"more than {MAX_MULTIPARTS} nested parts"])
    try:
        message = message_from_bytes(REPORT_TYPES.sub(rb"text/x-\1", cut), policy=compat32)
        if not message.keys():
            return MailReading(problems=["not a mail: it has no header"])
        reading = read_parsed(message)
        last = list(own_parts(message))[-1:]
    except (
        MessageError,
        ValueError,
        LookupError,
        RecursionError,
        TypeError,
        AttributeError,
    ) as exc:
        # The parser of the standard library raises all of these for hostile mails.
        return MailReading(problems=[f"not a readable mail ({type(exc).__name__})"])
    if len(data) > MAX_MESSAGE and (
        reading.problems or any(each.get_content_type() in STATUS_TYPES for each in last)
    ):
        reading.problems.append(
            f"only the first {MAX_MESSAGE // 1024} KiB of a larger mail were read"
        )
    return reading


def read_parsed(message: Message, *, depth: int = 0) -> MailReading:
    """The reports of a mail; of one that is not a report itself, those of the mails attached to it."""
    parts = list(own_parts(message))
    status = [part for part in parts if part.get_content_type() in STATUS_TYPES]
    feedback = [part for part in parts if part.get_content_type() == FEEDBACK_TYPE]
    # A multipart that is still one text here has a wrong boundary, or none.
    texts = [
        decode_part(p)
        for p in parts
        if p.get_content_type() == "text/plain" or p.get_content_maintype() == "multipart"
    ]
    returned = read_returned(parts, texts)
    at = date_of(message.get("Date"))
    if status:
        return read_status(message, [decode_part(part) for part in status], texts, returned, at)
    if feedback:
        return read_feedback(feedback, returned, at)
    if returned.complainant is not None:
        return MailReading([complaint(returned.complainant, None, at, returned)])
    reading = read_notice_text(message, parts, texts, returned, at)
    if not reading.reports and depth == 0:
        attached = [each for part in parts for each in attached_mails(part)][:MAX_FORWARDED]
        inner = [read_parsed(each, depth=1) for each in attached]
        reports = [report for each in inner for report in each.reports]
        problems = [problem for each in inner for problem in each.problems]
        if reports or problems:
            return MailReading(reports, problems)
    return reading


def own_parts(message: Message) -> Iterator[Message]:
    """The first `MAX_PARTS` leaf parts in order, without what is inside attached mails."""
    waiting, left = [message], MAX_PARTS
    while waiting and left:
        part = waiting.pop(0)
        payload = part.get_payload()
        if part.get_content_maintype() == "multipart" and isinstance(payload, list):
            waiting[:0] = [each for each in payload if isinstance(each, Message)]
        else:
            left -= 1
            yield part


def attached_mails(part: Message) -> list[Message]:
    payload = part.get_payload()
    is_mail = part.get_content_type() in ("message/rfc822", "message/global") and isinstance(
        payload, list
    )
    return [each for each in payload if isinstance(each, Message)] if is_mail else []


def decode_part(part: Message) -> str:
    """The text of a part: in its charset if that is known and right, else UTF-8, else Latin-1."""
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    data = data[:MAX_MESSAGE]
    for charset in (part.get_content_charset(), "utf-8"):
        try:
            return data.decode(charset or "utf-8").replace("\r\n", "\n")
        except (LookupError, UnicodeError, ValueError):
            continue
    return data.decode("latin-1").replace("\r\n", "\n")


def header_text(value: object) -> str:
    """A header field as one line; encoded words (RFC 2047) are decoded where they can be."""
    text = str(value or "")[:2_000]
    if "=?" in text:
        with contextlib.suppress(MessageError, ValueError, LookupError):
            text = str(make_header(decode_header(text)))
    return clean_text(text)


# --- RFC 3464 -----------------------------------------------------------------------------------------------------


def read_status(
    message: Message,
    fields: list[str],
    texts: list[str],
    returned: ReturnedMail,
    at: datetime | None,
) -> MailReading:
    """The recipients of a delivery status notification; `texts` is what it says to people."""
    reading = MailReading()
    notices = {folded_key(each.address): each for text in texts for each in find_notices(text)}
    failed = addresses_in(message.get_all("X-Failed-Recipients"))
    senders = addresses_of_sender(message, returned)
    groups = [group for text in fields for group in recipient_groups(text)][: MAX_REPORTS + 1]
    if len(groups) > MAX_REPORTS:
        reading.problems.append(f"more than {MAX_REPORTS:,} recipients: the rest was not read")
    for group in groups[:MAX_REPORTS]:
        address = (
            recipient_of(group)
            or only(failed)
            or (only(returned.recipients) if len(groups) == 1 else None)
        )
        if address is None:
            reading.problems.append("a delivery report without a recipient's address")
        else:
            reading.reports.append(judge_group(address, group, notices, returned, senders, at))
    if not groups:
        reading.problems.append("a delivery report without recipients")
    return reading


def recipient_groups(text: str) -> list[dict[str, str]]:
    """The fields of each recipient, by lower-case name (RFC 3464 2.3); blank lines between fields are tolerated."""
    groups: list[dict[str, str]] = []
    for block in re.split(r"\n(?:[ \t]*\n)+", text.strip("\n")):
        fields = [
            (n.strip().lower(), clean_text(str(v)))
            for n, v in HeaderParser(policy=compat32).parsestr(block).items()
        ]
        group: dict[str, str] = {}
        for name, value in fields:
            if name in ("final-recipient", "original-recipient") and name in group:
                groups.append(group)
                group = {}
            group.setdefault(name, value)
        if not {"final-recipient", "original-recipient", "action", "status"}.isdisjoint(group):
            groups.append(group)
        elif groups and "diagnostic-code" in group:  # a blank line within the fields of a recipient
            groups[-1] = {**group, **groups[-1]}
    return [
        group
        for group in groups
        if recipient_of(group) or "action" in group or "diagnostic-code" in group
    ]


def recipient_of(group: dict[str, str]) -> str | None:
    """The address that the sender used if it is known, else the final one."""
    return find_address(group.get("original-recipient", "")) or find_address(
        group.get("final-recipient", "")
    )


def judge_group(
    address: str,
    group: dict[str, str],
    notices: dict[str, Notice],
    returned: ReturnedMail,
    senders: tuple[str, ...],
    at: datetime | None,
) -> DeliveryReport:
    action = group.get("action", "").split(" ", 1)[0].strip("()").lower()
    status = find_status(group.get("status", ""))
    diagnostic = group.get("diagnostic-code", "") or supplementary_reply(
        group.get("x-supplementary-info", "")
    )
    notice = notices.get(folded_key(address))
    if not diagnostic and notice is not None and (status is None or status.endswith(".0.0")):
        diagnostic = notice.text
    when = date_of(group.get("last-attempt-date")) or at or date_of(group.get("arrival-date"))
    if action in DELIVERED or (
        action not in ("failed", "delayed") and (status or "").startswith("2")
    ):
        found = Judgement(Outcome.DELIVERED, None)
    else:
        found = judge(status, diagnostic)
        if action == "delayed" or (found.outcome is Outcome.HARD and reaches_another(group)):
            found = Judgement(Outcome.SOFT, found.reason)
        found = without_sender(found, diagnostic, address, senders)
    return DeliveryReport(
        address,
        found.outcome,
        found.reason,
        status,
        clean_text(diagnostic)[:MAX_DIAGNOSTIC] or None,
        when,
        is_delay=action == "delayed",
        message_id=returned.message_id,
    )


def supplementary_reply(value: str) -> str:
    """The reply in a field of Cisco's mail gateways.

    >>> supplementary_reply("<192.0.2.25 #5.0.0 smtp; 550 User unknown>")
    'smtp; 550 User unknown'
    """
    return re.sub(r"^<?\S+ #[245]\.\d{1,3}\.\d{1,3} ", "", value).removesuffix(">")


def without_sender(
    found: Judgement, text: str, address: str, senders: tuple[str, ...]
) -> Judgement:
    """The judgement, unless the text names a sender as the mailbox that is missing, and not the recipient."""
    lower = text.lower()
    if found.outcome is not Outcome.HARD or address.lower() in lower:
        return found
    is_about_sender = any(each.lower() in lower for each in senders)
    return Judgement(Outcome.BLOCKED, Reason.SENDER_BLOCKED) if is_about_sender else found


def reaches_another(group: dict[str, str]) -> bool:
    """Whether the mail went on to a mailbox of another name, by forwarding or a list: the first one exists."""
    original, final = (
        find_address(group.get("original-recipient", "")),
        find_address(group.get("final-recipient", "")),
    )
    names = {each.rpartition("@")[0].strip('"').lower() for each in (original, final) if each}
    return len(names) > 1


# --- complaints ---------------------------------------------------------------------------------------------------


def read_feedback(parts: list[Message], returned: ReturnedMail, at: datetime | None) -> MailReading:
    """The recipients of an abuse report (RFC 5965); reports that are not complaints are other mail."""
    fields = [
        (name.lower(), clean_text(str(value)))
        for part in parts
        for name, value in HeaderParser(policy=compat32)
        .parsestr(decode_part(part).lstrip("\n"))
        .items()
    ]
    kind = next((value.lower() for name, value in fields if name == "feedback-type"), "abuse")
    if kind in NO_COMPLAINT:
        return MailReading(is_other=True)
    dates = [date_of(value) for name, value in fields if name in ("arrival-date", "received-date")]
    named = [
        found
        for name, value in fields
        if name == "original-rcpt-to" and (found := find_address(value))
    ]
    copied = returned.complainant or recipient_outside(returned)
    addresses = list(dict.fromkeys(named)) or ([] if copied is None else [copied])
    if not addresses:
        return MailReading(problems=["a complaint without the recipient's address"])
    return MailReading(
        [complaint(each, kind, (*dates, at)[0] or at, returned) for each in addresses[:MAX_REPORTS]]
    )


def recipient_outside(returned: ReturnedMail) -> str | None:
    """The recipient of the copy, unless it has the sender's domain, as the address of the sender's own list has."""
    copied = only(returned.recipients)
    own = {each.rpartition("@")[2].lower() for each in returned.senders}
    return None if copied is None or copied.rpartition("@")[2].lower() in own else copied


def complaint(
    address: str, kind: str | None, at: datetime | None, returned: ReturnedMail
) -> DeliveryReport:
    text = f"feedback type {kind[:40]}" if kind else None
    return DeliveryReport(
        address, Outcome.COMPLAINT, diagnostic=text, at=at, message_id=returned.message_id
    )


# --- bounces without a delivery status part -----------------------------------------------------------------------


def read_notice_text(
    message: Message,
    parts: list[Message],
    texts: list[str],
    returned: ReturnedMail,
    at: datetime | None,
) -> MailReading:
    """The recipients of a bounce in plain text, or else in HTML; an automatic answer of a person is not one."""
    subject, sender = header_text(message.get("Subject")), header_text(message.get("From"))
    failed = addresses_in(message.get_all("X-Failed-Recipients"))
    is_bounce = bool(failed or BOUNCE_SENDER.search(sender) or BOUNCE_SUBJECT.search(subject))
    if not is_bounce or (AUTO_REPLY.search(subject) and not failed):
        return MailReading(is_other=True)
    inline = [text[match.start() :] for text in texts if (match := INLINE_FIELDS.search(text))]
    if inline and not (reading := read_status(message, inline, [], returned, at)).problems:
        return reading
    senders = addresses_of_sender(message, returned)
    found = [notice for text in texts for notice in find_notices(text, failed, senders)]
    if not found:
        pages = [
            page_text(decode_part(part)) for part in parts if part.get_content_type() == "text/html"
        ]
        found = [notice for page in pages for notice in find_notices(page, failed, senders)]
        texts = [*texts, *pages]
    if not found:
        kind = message.get_content_type()
        if (
            kind == "multipart/report"
            and "disposition-notification" in str(message.get("Content-Type", "")).lower()
        ):
            return MailReading(is_other=True)
        if AUTO_REPLY.search(" ".join(texts)[:2_000]):
            return MailReading(is_other=True)
        return MailReading(
            problems=[
                f"a bounce without a recipient and a reason that can be read: {subject[:80]!r}"
            ]
        )
    return MailReading([notice_report(each, returned, senders, at) for each in found[:MAX_REPORTS]])


def notice_report(
    notice: Notice, returned: ReturnedMail, senders: tuple[str, ...], at: datetime | None
) -> DeliveryReport:
    status = find_status(notice.text)
    judged = without_sender(judge(status, notice.text), notice.text, notice.address, senders)
    if notice.is_delay:
        judged = Judgement(Outcome.SOFT, judged.reason)
    return DeliveryReport(
        notice.address,
        judged.outcome,
        judged.reason,
        status,
        clean_text(notice.text)[:MAX_DIAGNOSTIC] or None,
        at,
        is_delay=notice.is_delay,
        message_id=returned.message_id,
    )


# --- the returned mail, addresses and dates -----------------------------------------------------------------------


def read_returned(parts: list[Message], texts: list[str]) -> ReturnedMail:
    """What the copy of the sent mail says; in a plain-text bounce it stands at the end of the text."""
    for part in parts:
        kind = part.get_content_type()
        if kind in ATTACHED_TYPES:
            mails = attached_mails(part) or [
                HeaderParser(policy=compat32).parsestr(decode_part(part).lstrip("\n"))
            ]
            return describe_returned(mails[0])
    for text in texts:
        if copy := cut_original(text)[1]:
            return describe_returned(HeaderParser(policy=compat32).parsestr(copy))
    return ReturnedMail()


def describe_returned(mail: Message) -> ReturnedMail:
    complainants = addresses_in(mail.get_all("X-HmXmrOriginalRecipient"))
    recipients = addresses_in([*(mail.get_all("To") or ()), *(mail.get_all("Cc") or ())])
    senders = addresses_in([each for name in SENDER_FIELDS for each in mail.get_all(name) or ()])
    return ReturnedMail(
        recipients, senders, header_text(mail.get("Message-ID"))[:300] or None, only(complainants)
    )


def addresses_of_sender(bounce: Message, returned: ReturnedMail) -> tuple[str, ...]:
    """The addresses of the sender: a bounce goes to the envelope sender, and the copy has the others."""
    return (*addresses_in(bounce.get_all("To")), *returned.senders)


def addresses_in(values: Sequence[object] | None) -> tuple[str, ...]:
    """The distinct addresses in header fields."""
    texts = [header_text(value) for value in values or ()]
    found = (find_address(address) for _, address in getaddresses(texts))
    return tuple(dict.fromkeys(each for each in found if each is not None))


ADDRESS_TYPE = re.compile(r"^[\w .-]{1,40};\s*")
EMBEDDED = re.compile(r"\\x\{([0-9A-Fa-f]{2,6})\}")  # RFC 6533 3


def find_address(value: str) -> str | None:
    r"""The address in a recipient field such as ``rfc822; <ada@firm.example>``; None if there is none.

    >>> find_address("rfc822; <ada@firm.example>"), find_address(r"utf-8;\x{436}@firm.example"), find_address("x400;c=")
    ('ada@firm.example', 'ж@firm.example', None)
    """
    text = clean_text(ADDRESS_TYPE.sub("", value.strip()))
    text = EMBEDDED.sub(lambda match: chr(min(int(match[1], 16), 0x10FFFF)), text)
    if match := re.search(r"<([^<>]*@[^<>]*)>", text):
        text = match[1]
    text = text.strip(" <>'`,;").removeprefix("mailto:")
    is_plausible = (
        3 <= len(text) <= MAX_ADDRESS
        and "@" in text[1:-1]
        and (" " not in text or text.startswith('"'))
    )
    return text if is_plausible and not any(0xD800 <= ord(c) <= 0xDFFF for c in text) else None


def only(addresses: tuple[str, ...]) -> str | None:
    return addresses[0] if len(addresses) == 1 else None
