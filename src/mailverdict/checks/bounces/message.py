"""A mail that reports a delivery: RFC 3464 and 6533 reports, RFC 5965 complaints, plain text.

    Final-Recipient: rfc822; ada@web.de
    Action: failed                            -> DeliveryReport("ada@web.de", HARD,
    Status: 5.1.1                                    MAILBOX_NOT_FOUND, "5.1.1", "smtp; 550 ...")
    Diagnostic-Code: smtp; 550 User unknown

The mail is untrusted: its size, nesting, number of parts and of recipients are bounded, and what
cannot be read is returned as a problem, never raised.

A mail counts if one of ours came back with it (`origin.py`). Of its parts (`parts.py`) the report
is read; without one the text, by the forms of known mail systems or by its one recipient
(`notices.py`); and each recipient is judged (`outcome.py`).
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

# The standard library reads these types as messages, whatever their transfer encoding: read as text
# they stay whole.
REPORT_TYPES = re.compile(
    rb"message/(delivery-status|global-delivery-status|feedback-report)", re.IGNORECASE
)
STATUS_TYPES = ("text/x-delivery-status", "text/x-global-delivery-status")
FEEDBACK_TYPE = "text/x-feedback-report"
DELIVERED = ("delivered", "relayed", "expanded")
# Feedback types of RFC 5965 section 7.3 and its registry at iana.org (marf-parameters, 2026-11),
# and of RFC 7489: a person complained, or no person did. Any other type is named, and is not
# counted.
DATE_FIELDS = {"received-date": "arrival-date"}  # of the mail that a person complains of
COMPLAINTS = ("abuse", "fraud", "opt-out", "opt-out-list", "miscategorized", "spam", "")
NO_COMPLAINTS = ("not-spam", "auth-failure", "dmarc", "virus")
XTEXT = re.compile(r"\+([0-9A-F]{2})")  # RFC 3461 section 4
CODE_AND_STATUS = re.compile(r"(?<!\d)[45]\d\d[ -]['\"]?#?[245]\.\d{1,3}\.\d{1,3}(?!\d)")
JSON_START = re.compile(r"\ufeff?\s*(?:\[\s*)*\{\s*\"")
# A delivery report in plain text, or in a part that broken MIME hides.
INLINE_FIELDS = re.compile(
    r"^(?:reporting-mta|final-recipient|original-recipient|action): ", re.IGNORECASE | re.MULTILINE
)
AUTO_REPLY = re.compile(
    r"out of (?:the )?office|automatic reply|auto-?reply|autoreply|auto:|abwesen"
    r"|automatische antwort|on vacation|absence|reponse automatique|r.ponse automatique"
    r"|respuesta autom|risposta automatica|resposta autom|afwezig",
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
    except Exception as exc:  # noqa: BLE001 - parsers raise many kinds, and one mail is one mail
        return MailReading(problems=[f"not a readable mail ({type(exc).__name__})"])
    is_cut = len(data) > MAX_MESSAGE
    ends_in_report = any(part.get_content_type() in STATUS_TYPES for part in last)
    if is_cut and (reading.problems or ends_in_report):
        most = f"{MAX_MESSAGE // 1024} KiB"
        reading.problems.append(f"only the first {most} of a larger mail were read")
    return reading


def read_parsed(message: Message, *, depth: int = 0) -> MailReading:
    """The reports of a mail; of one that is none itself, those of the mails attached to it."""
    parts = list(own_parts(message))
    status = []
    feedback = []
    texts = []
    for part in parts:
        kind = part.get_content_type()
        if kind in STATUS_TYPES:
            status.append(part)
        elif kind == FEEDBACK_TYPE:
            feedback.append(part)
        elif kind == "text/plain" or part.get_content_maintype() == "multipart":
            # A multipart that is still one text here has a wrong boundary, or none.
            texts.append(decode_part(part))
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
    forwarded = read_forwarded(message, parts)
    if forwarded.reports or (forwarded.problems and not reading.problems):
        return forwarded
    return reading


def read_forwarded(message: Message, parts: list[Message]) -> MailReading:
    """The reports in the mails that a person attached to a mail."""
    attached: list[Message] = []
    for part in parts:
        attached += attached_mails(part)
    forwarded = MailReading()
    for mail in attached[:MAX_FORWARDED]:
        went_to = receivers_of(mail)
        if not went_to:
            went_to = read_returned(list(own_parts(mail)), []).senders
        inner = without_own(read_parsed(mail, depth=1), message, went_to)
        forwarded.reports += inner.reports
        forwarded.problems += inner.problems
    return forwarded


def without_own(reading: MailReading, message: Message, went_to: Sequence[str]) -> MailReading:
    """The reports that a person's mail brings, without those that are not about a mail of ours.

    `went_to` are those who got the bounce. One that went to the person is about a mail to us: it
    names our own address.
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


# --- RFC 3464 --------------------------------------------------------------------------------


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
    groups: list[dict[str, str]] = []
    for text in fields:
        groups += recipient_groups(text)
    alone: tuple[str, ...] = ()
    fallback = only(failed)
    if len(groups) == 1:  # the whole text is about one recipient
        named = recipient_of(groups[0])
        alone = () if named is None else (named,)
        fallback = fallback or only(returned.recipients)
    notices: dict[str, Notice] = {}
    for text in texts:
        for notice in find_notices(text, alone, is_sure=bool(alone)):
            notices[folded_key(notice.address)] = notice
    if len(groups) > MAX_REPORTS:
        reading.problems.append(f"more than {MAX_REPORTS:,} recipients: the rest was not read")
    for group in groups[:MAX_REPORTS]:
        address = recipient_of(group) or fallback
        if address is None:
            reading.problems.append("a delivery report without a recipient's address")
        else:
            reading.reports.append(judge_group(address, group, notices, returned, senders, at))
    if not groups:
        reading.problems.append("a delivery report without recipients")
    return reading


def recipient_groups(text: str) -> list[dict[str, str]]:
    """The fields of each recipient, by lower-case name (RFC 3464 section 2.3).

    Blank lines between fields are tolerated.
    """
    groups: list[dict[str, str]] = []
    text = re.sub(r"^([\w-]{1,60})[ \t]+:", r"\1:", text, flags=re.MULTILINE)  # Mimecast
    for block in re.split(r"\n(?:[ \t]*\n)+", text.strip("\n")):
        group: dict[str, str] = {}
        for name, value in fields_of(block):
            if name in ("final-recipient", "original-recipient") and name in group:
                groups.append(group)
                group = {}
            group.setdefault(name, value)
        if not {"final-recipient", "original-recipient", "action", "status"}.isdisjoint(group):
            groups.append(group)
        elif groups and "diagnostic-code" in group:  # a blank line within the fields of a recipient
            groups[-1] = {**group, **groups[-1]}
    used = []
    for group in groups:
        if recipient_of(group) or "action" in group or "diagnostic-code" in group:
            used.append(group)
    return used


def fields_of(block: str) -> list[tuple[str, str]]:
    """The fields of a block of header lines, by lower-case name."""
    header = HeaderParser(policy=compat32).parsestr(block)
    return [(name.strip().lower(), clean_text(str(value))) for name, value in header.items()]


def recipient_of(group: dict[str, str]) -> str | None:
    """The address that the sender used if it is known, else the final one."""
    return original_recipient(group) or find_address(group.get("final-recipient", ""))


def original_recipient(group: dict[str, str]) -> str | None:
    """The address that the sender used.

    Some systems leave the form that it has in SMTP (RFC 3461 section 4): `ada+2Bnews` is
    `ada+news` if the final recipient says so.
    """
    original = find_address(group.get("original-recipient", ""))
    final = find_address(group.get("final-recipient", ""))
    if original is None or final is None:
        return original
    decoded = XTEXT.sub(lambda match: chr(int(match[1], 16)), original)
    if folded_key(decoded) == folded_key(final):
        return decoded
    return original


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
    diagnostic = group.get("diagnostic-code", "")
    if not diagnostic:
        diagnostic = supplementary_reply(group.get("x-supplementary-info", ""))
    notice = notices.get(folded_key(address))
    if not diagnostic and notice is not None and judge(status, "").reason is Reason.INCONCLUSIVE:
        diagnostic = notice.text
    when = date_of(group.get("last-attempt-date")) or at or date_of(group.get("arrival-date"))
    is_success = status is not None and status.startswith("2")
    if action in DELIVERED or (is_success and action not in ("failed", "delayed")):
        judged = Judgement(Outcome.DELIVERED, None)
    else:
        judged = judge(status, diagnostic)
        original = original_recipient(group)
        final = find_address(group.get("final-recipient", ""))
        is_another = judged.outcome is Outcome.HARD and reaches_another(original, final)
        if action == "delayed" or is_another:
            judged = Judgement(Outcome.SOFT, judged.reason)
        judged = without_sender(judged, diagnostic, address, senders)
    return DeliveryReport(
        address,
        judged.outcome,
        judged.reason,
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
    judged: Judgement, text: str, address: str, senders: tuple[str, ...]
) -> Judgement:
    """The judgement, unless the text names a sender as missing, and not the recipient."""
    lower = text.lower()
    if judged.outcome is not Outcome.HARD or address.lower() in lower:
        return judged
    if any(sender.lower() in lower for sender in senders):
        return Judgement(Outcome.BLOCKED, Reason.SENDER_BLOCKED)
    return judged


def reaches_another(original: str | None, final: str | None) -> bool:
    """Whether the mail went on to a mailbox of another name: then the first one exists."""
    if not original or not final:
        return False
    first_name, _, _ = original.rpartition("@")
    last_name, _, _ = final.rpartition("@")
    return first_name.strip('"').lower() != last_name.strip('"').lower()


# --- complaints ------------------------------------------------------------------------------


def read_feedback(parts: list[Message], returned: ReturnedMail, at: datetime | None) -> MailReading:
    """The recipients of an abuse report (RFC 5965); one that is no complaint is another mail."""
    by_name: dict[str, list[str]] = {}
    for part in parts:
        for name, value in fields_of(decode_part(part).lstrip("\n")):
            by_name.setdefault(DATE_FIELDS.get(name, name), []).append(value)
    kind = by_name.get("feedback-type", ["abuse"])[0].lower()
    if kind in NO_COMPLAINTS:
        return MailReading(is_other=True)
    if kind not in COMPLAINTS:
        problem = f"a feedback report of type {kind[:40]!r} is not counted as a complaint"
        return MailReading(problems=[problem])
    named = [find_address(value) for value in by_name.get("original-rcpt-to", [])]
    addresses = [address for address in dict.fromkeys(named) if address]
    if not addresses:
        copied = returned.complainant or recipient_outside(returned)
        if copied is None:
            return MailReading(problems=["a complaint without the recipient's address"])
        addresses = [copied]
    dates = by_name.get("arrival-date")
    when = at
    if dates is not None:
        when = date_of(dates[0]) or at
    reading = MailReading()
    for address in addresses[:MAX_REPORTS]:
        reading.reports.append(complaint(address, kind, when, returned))
    return reading


def recipient_outside(returned: ReturnedMail) -> str | None:
    """The recipient of the copy, unless it has the sender's domain, as the sender's list has."""
    copied = only(returned.recipients)
    if copied is None:
        return None
    our_domains = {domain_of(address) for address in returned.senders}
    return None if domain_of(copied) in our_domains else copied


def complaint(
    address: str, kind: str | None, at: datetime | None, returned: ReturnedMail
) -> DeliveryReport:
    text = f"feedback type {kind[:40]}" if kind else None
    return DeliveryReport(
        address, Outcome.COMPLAINT, diagnostic=text, at=at, message_id=returned.message_id
    )


# --- bounces without a delivery status part --------------------------------------------------


def read_notice_text(
    message: Message,
    parts: list[Message],
    texts: list[str],
    returned: ReturnedMail,
    at: datetime | None,
) -> MailReading:
    """The recipients of a bounce in plain text, or else in HTML; not of an automatic answer."""
    subject = header_text(message.get("Subject"))
    failed = addresses_in(message.get_all("X-Failed-Recipients"))
    is_answer = ANSWER.match(subject) is not None
    if AUTO_REPLY.search(subject) and not failed:
        return MailReading(is_other=True)
    for text in texts:
        if JSON_START.match(text) and not is_answer and is_of_notifier(message):
            return MailReading(is_other=True, events=text)
    sign = sign_of(message, returned, texts)
    inline = []
    for text in texts:
        match = INLINE_FIELDS.search(text)
        if match is not None:
            inline.append(text[match.start() :])
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
    our_domains: set[str] = set()
    if not is_of_daemon(message):
        our_domains = own_domains_of(message)
    notices: dict[str, Notice] = {}
    for text in texts:
        copied = returned.recipients
        for notice in find_notices(text, failed, senders, copied=copied, is_sure=is_sure):
            is_ours = domain_of(notice.address) in our_domains
            if not is_ours and (is_sure or has_reply(notice.text)):
                notices.setdefault(folded_key(notice.address), notice)
    return list(notices.values())


def has_reply(text: str) -> bool:
    """Whether a text has the reply of a mail server: with a status, or with a known cause."""
    if CODE_AND_STATUS.search(text):
        return True
    line = " ".join(text[:MAX_MESSAGE].split())
    for match in islice(REPLY.finditer(line), MAX_REPLIES):
        reply = line[match.start() : match.start() + MAX_DIAGNOSTIC // 2]
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
    """The addresses of the sender.

    A bounce goes to the envelope sender, the copy has the others.
    """
    return (*addresses_in(bounce.get_all("To")), *returned.senders)
