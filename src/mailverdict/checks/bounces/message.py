"""A mail that reports a delivery, as values: RFC 3464 and RFC 6533 reports, RFC 5965 complaints, plain-text bounces.

The mail is untrusted: its size, nesting, number of parts and of recipients are bounded, and what cannot be read is
returned as a problem, never raised.

A mail counts if one of ours came back with it (`origin.py`). Of its parts (`parts.py`) the report is read; without one
the text, by the forms of known mail systems or by its one recipient (`notices.py`); and each recipient is judged
(`outcome.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from email import message_from_bytes
from email.message import Message
from email.parser import HeaderParser
from email.policy import compat32
from itertools import islice

from ...model.address import folded_key
from ...model.words import Reason
from .dates import date_of
from .notices import Notice, find_notices
from .origin import (
    ANSWER,
    BOUNCE_SUBJECT,
    Sign,
    belongs_to_sender,
    is_of_daemon,
    is_of_notifier,
    is_receipt,
    own_domains_of,
    receivers_of,
    sign_of,
)
from .outcome import MAX_DIAGNOSTIC, REPLY, Judgement, Outcome, clean_text, find_status, judge
from .parts import (
    MAX_MESSAGE,
    ReturnedMail,
    addresses_in,
    attached_mails,
    decode_part,
    domain_of,
    find_address,
    header_text,
    only,
    own_parts,
    pages_of,
    read_returned,
)

MAX_MULTIPARTS = 60  # declared boundaries and attached mails; a nesting bomb has thousands
MAX_REPORTS = 5_000  # recipients in one mail
MAX_REPLIES = 20  # codes in a text that are judged
MAX_FORWARDED = 20  # attached mails that are looked into

# The standard library reads these types as messages, whatever their transfer encoding: read as text they stay whole.
REPORT_TYPES = re.compile(
    rb"message/(delivery-status|global-delivery-status|feedback-report)", re.IGNORECASE
)
STATUS_TYPES = ("text/x-delivery-status", "text/x-global-delivery-status")
FEEDBACK_TYPE = "text/x-feedback-report"
DELIVERED = ("delivered", "relayed", "expanded")
# Feedback types of RFC 5965 section 7.3 and its registry at iana.org (marf-parameters, 2026-11), and of RFC 7489: a
# person complained, or no person did. Any other type is named, and is not counted.
COMPLAINTS = ("abuse", "fraud", "opt-out", "opt-out-list", "miscategorized", "spam", "")
NO_COMPLAINTS = ("not-spam", "auth-failure", "dmarc", "virus")
CODE_AND_STATUS = re.compile(r"(?<!\d)[45]\d\d[ -]['\"]?#?[245]\.\d{1,3}\.\d{1,3}(?!\d)")
JSON_START = re.compile(r"\ufeff?\s*(?:\[\s*)*\{\s*\"")
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
    events: str = ""  # its text, if that is JSON, as Amazon SNS sends notifications by e-mail


def read_message(data: bytes) -> MailReading:
    r"""Read one mail.

    >>> read_message(b"Subject: Lunch?\n\nAt noon?").is_other
    True
    """
    cut = data[:MAX_MESSAGE]
    if not cut.strip():
        return MailReading(problems=["not a mail: it is empty"])
    nested = len(re.findall(rb"boundary\s*=|:\s*message/", cut, re.IGNORECASE))
    if nested > MAX_MULTIPARTS:
        return MailReading(problems=[f"more than {MAX_MULTIPARTS} nested parts"])
    try:
        message = message_from_bytes(REPORT_TYPES.sub(rb"text/x-\1", cut), policy=compat32)
        if not message.keys():
            return MailReading(problems=["not a mail: it has no header"])
        reading = read_parsed(message)
        last = list(own_parts(message))[-1:]
    except Exception as exc:  # noqa: BLE001 - parsers raise many kinds for hostile mails, and one mail is one mail
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
        fields = [decode_part(part) for part in status]
        reading = read_status(message, fields, texts or pages_of(parts), returned, at)
        if message.get("Resent-From"):
            return without_own(reading, message, addresses_in(message.get_all("To")))
        if sign_of(message, returned, texts) is Sign.SURE:
            return reading
        return without_own(reading, message, returned.senders)
    if feedback:
        return read_feedback(feedback, returned, at)
    if returned.complainant is not None:
        return MailReading([complaint(returned.complainant, None, at, returned)])
    reading = read_notice_text(message, parts, texts, returned, at)
    if reading.reports or depth > 0:
        return reading
    attached = [mail for part in parts for mail in attached_mails(part)]
    forwarded = MailReading()
    for mail in attached[:MAX_FORWARDED]:
        copy = read_returned(list(own_parts(mail)), [])
        inner = without_own(read_parsed(mail, depth=1), message, receivers_of(mail) or copy.senders)
        forwarded.reports += inner.reports
        forwarded.problems += inner.problems
    is_told = bool(forwarded.problems) and not reading.problems
    return forwarded if forwarded.reports or is_told else reading


def without_own(reading: MailReading, message: Message, went_to: Sequence[str]) -> MailReading:
    """The reports that a person's mail brings, without those that are not about a mail of ours.

    `went_to` are those who got the bounce. One that went to the person is about a mail to us: it names our own address.
    """
    if reading.reports and belongs_to_sender(message, went_to):
        return MailReading(problems=[f"a bounce of a mail that was not ours, but of {went_to[0]}"])
    ours = {folded_key(address) for address in receivers_of(message)}
    own_domains = own_domains_of(message)
    kept = MailReading(problems=list(reading.problems))
    for report in reading.reports:
        if folded_key(report.address) in ours or domain_of(report.address) in own_domains:
            kept.problems.append(f"a bounce that names an address of ours, {report.address}")
        else:
            kept.reports.append(report)
    return kept


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
    failed = addresses_in(message.get_all("X-Failed-Recipients"))
    senders = addresses_of_sender(message, returned)
    groups = [group for text in fields for group in recipient_groups(text)][: MAX_REPORTS + 1]
    alone: tuple[str, ...] = ()
    if len(groups) == 1 and (address := recipient_of(groups[0])):
        alone = (address,)  # the whole text is about one recipient
    notices = {
        folded_key(notice.address): notice
        for text in texts
        for notice in find_notices(text, alone, is_sure=bool(alone))
    }
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
    text = re.sub(r"^([\w-]{1,60})[ \t]+:", r"\1:", text, flags=re.MULTILINE)  # Mimecast
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
    if not diagnostic and notice is not None:
        is_open = judge(status, "").reason is Reason.INCONCLUSIVE
        diagnostic = notice.text if is_open else ""
    when = date_of(group.get("last-attempt-date")) or at or date_of(group.get("arrival-date"))
    if action in DELIVERED or (
        action not in ("failed", "delayed") and (status or "").startswith("2")
    ):
        found = Judgement(Outcome.DELIVERED, None)
    else:
        found = judge(status, diagnostic)
        original = find_address(group.get("original-recipient", ""))
        final = find_address(group.get("final-recipient", ""))
        is_another = found.outcome is Outcome.HARD and reaches_another(original, final)
        if action == "delayed" or is_another:
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


def reaches_another(original: str | None, final: str | None) -> bool:
    """Whether the mail went on to a mailbox of another name, by forwarding or a list: the first one exists."""
    if not original or not final:
        return False
    names = {address.rpartition("@")[0].strip('"').lower() for address in (original, final)}
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
    if kind in NO_COMPLAINTS:
        return MailReading(is_other=True)
    if kind not in COMPLAINTS:
        return MailReading(
            problems=[f"a feedback report of type {kind[:40]!r} is not counted as a complaint"]
        )
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
    subject = header_text(message.get("Subject"))
    failed = addresses_in(message.get_all("X-Failed-Recipients"))
    is_answer = ANSWER.match(subject) is not None
    if AUTO_REPLY.search(subject) and not failed:
        return MailReading(is_other=True)
    for text in texts:
        if JSON_START.match(text) and not is_answer and is_of_notifier(message):
            return MailReading(is_other=True, events=text)
    sign = sign_of(message, returned, texts)
    inline = [text[match.start() :] for text in texts if (match := INLINE_FIELDS.search(text))]
    if inline and sign is not Sign.NONE:
        reading = read_status(message, inline, [], returned, at)
        if not reading.problems:
            return reading
    pages = pages_of(parts)
    senders = addresses_of_sender(message, returned)
    notices: list[Notice] = []
    if sign is not Sign.NONE:
        notices = notices_in(message, texts, returned, sign)
        notices = notices or notices_in(message, pages, returned, sign)
    if notices:
        reports = [notice_report(notice, returned, senders, at) for notice in notices]
        return MailReading(reports[:MAX_REPORTS])
    text = " ".join([*texts, *pages])
    if is_receipt(message) or AUTO_REPLY.search(text[:2_000]):
        return MailReading(is_other=True)
    is_named = BOUNCE_SUBJECT.search(subject) is not None
    if sign is Sign.SURE or (is_named and not is_answer):
        problem = "a bounce without a recipient and a reason that can be read"
    elif is_named or inline or (has_reply(text) and not is_answer):
        problem = "it speaks of a bounce, but nothing shows that one of our mails came back"
    else:
        return MailReading(is_other=True)
    return MailReading(problems=[f"{problem}: {subject[:80]!r}"])


def notices_in(
    message: Message, texts: Sequence[str], returned: ReturnedMail, sign: Sign
) -> list[Notice]:
    """The notices of a mail's texts that its sign allows to believe, one of each recipient."""
    failed = addresses_in(message.get_all("X-Failed-Recipients"))
    senders = addresses_of_sender(message, returned)
    is_sure = sign is Sign.SURE
    own_domains = set() if is_of_daemon(message) else own_domains_of(message)
    notices: dict[str, Notice] = {}
    for text in texts:
        for notice in find_notices(
            text, failed, senders, copied=returned.recipients, is_sure=is_sure
        ):
            is_own = domain_of(notice.address) in own_domains
            if not is_own and (is_sure or has_reply(notice.text)):
                notices.setdefault(folded_key(notice.address), notice)
    return list(notices.values())


def has_reply(text: str) -> bool:
    """Whether a text has the reply of a mail server: with a status, or with a cause that is known."""
    if CODE_AND_STATUS.search(text):
        return True
    for match in islice(REPLY.finditer(" ".join(text[:MAX_MESSAGE].split())), MAX_REPLIES):
        reply = match.string[match.start() : match.start() + MAX_DIAGNOSTIC // 2]
        if judge(None, reply).reason is not Reason.INCONCLUSIVE:
            return True
    return False


def notice_report(
    notice: Notice, returned: ReturnedMail, senders: tuple[str, ...], at: datetime | None
) -> DeliveryReport:
    status = find_status(notice.text)
    judged = without_sender(judge(status, notice.text), notice.text, notice.address, senders)
    is_another = notice.final != "" and reaches_another(notice.address, notice.final)
    if notice.is_delay or (judged.outcome is Outcome.HARD and is_another):
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


def addresses_of_sender(bounce: Message, returned: ReturnedMail) -> tuple[str, ...]:
    """The addresses of the sender: a bounce goes to the envelope sender, and the copy has the others."""
    return (*addresses_in(bounce.get_all("To")), *returned.senders)
