"""Whose bounce a mail is: one of ours that came back, that of a person who writes to us, or none.

    From: MAILER-DAEMON                              SURE: sentences are believed
    Return-Path: <> and Subject: Undeliverable       SURE
    Subject: Undeliverable, from a person            LIKELY: only a reply "550 5.1.1 ..." is
    Subject: Re: Lunch                               NONE

A report part in a mail of its own came back to us, and one that is attached did unless it was
addressed to the person who attaches it. A text is weighed (`Sign`): the sender, or an empty return
path beside a subject, show a bounce of which sentences are believed; one of these signs alone, only
the reply of a mail server; without any the mail is another one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from email.message import Message
from enum import IntEnum

from ...model.address import folded_key
from .parts import ReturnedMail, addresses_in, domain_of, header_text, values_of

PERSON_FIELDS = ("From", "Sender", "Reply-To", "Resent-From")  # of a mail that brings a report
RECEIVER_FIELDS = ("To", "Cc", "Resent-To", "Delivered-To", "X-Original-To", "Envelope-To")
# Senders and subjects of bounces.
BOUNCE_SENDER = re.compile(
    r"mailer-?daemon|post_?master@|mail delivery (?:sub)?system|mdaemon", re.IGNORECASE
)
BOUNCE_SUBJECT = re.compile(
    r"undeliver|delivery (?:status notification|fail|has failed|report|problem|error)"
    r"|returned mail|failure notice"
    r"|mail delivery|mail fail|failed mail|mail (?:system )?error|error sending your mail"
    r"|(?:not|n't) (?:be |been )?(?:yet )?(?:delivered|sent)\b|non-?deliver"
    r"|unzustellbar|nicht zugestellt|non remis|echec de la remise|no se puede entregar"
    r"|non recapitabile|n.o entregue"
    r"|onbestelbaar|mancato recapito|niedostarczon|nie dostarczon|не доставлен|недоставлен"
    r"|退信|メールエラー|配信不能|配信エラー",
    re.IGNORECASE,
)
MACHINE = re.compile(r"no-?reply|notif|alert|sns|webhook|postmaster|daemon", re.IGNORECASE)
ANSWER = re.compile(
    r"\s*(?:\[[^\]]{0,40}\]\s*)?"
    r"(?:re|fwd?|aw|wg|tr|rv|enc|sv|vs|vb|antw|odp|pd|ref|回复|答复|转发|回覆|轉寄)"
    r"\s*(?:\[\d+\])?[:：]",
    re.IGNORECASE,
)


class Sign(IntEnum):
    """How much shows that a mail is a bounce."""

    NONE = 0
    LIKELY = 1  # one sign that others may have, too: the reply of a mail server is believed
    SURE = 2  # sentences are believed


def sign_of(message: Message, returned: ReturnedMail, texts: Sequence[str]) -> Sign:
    """How much shows that a mail is a bounce of a mail of ours."""
    if is_of_daemon(message):
        return Sign.SURE
    subject = header_text(message.get("Subject"))
    is_answer = ANSWER.match(subject) is not None
    has_subject = BOUNCE_SUBJECT.search(subject) is not None and not is_answer
    is_machine = is_of_machine(message)
    came_back = not is_answer and is_returned_to_us(message, returned)
    if has_subject and (is_machine or came_back):
        return Sign.SURE
    if came_back and any(BOUNCE_SUBJECT.search(text[:4_000]) for text in texts):
        return Sign.SURE
    if has_subject or is_machine or came_back:
        return Sign.LIKELY
    return Sign.NONE


def is_of_daemon(message: Message) -> bool:
    """Whether a mail system says of itself that it writes."""
    if addresses_in(message.get_all("X-Failed-Recipients")):
        return True
    sender = " ".join(header_text(value) for value in values_of(message, ("From", "Return-Path")))
    if BOUNCE_SENDER.search(sender):
        return True
    is_report = message.get_content_type() == "multipart/report" and not is_receipt(message)
    return is_report and ANSWER.match(header_text(message.get("Subject"))) is None


def is_of_machine(message: Message) -> bool:
    """Whether a program sent a mail, by what it says of itself."""
    paths = [header_text(value) for value in message.get_all("Return-Path") or ()]
    submitted = header_text(message.get("Auto-Submitted")).lower()
    return "<>" in paths or submitted.startswith("auto-")


def is_of_notifier(message: Message) -> bool:
    """Whether a program sent a mail, by its own words or by the address."""
    if is_of_machine(message):
        return True
    names = [address.rpartition("@")[0] for address in senders_of(message)]
    return any(MACHINE.search(name) for name in names)


def is_returned_to_us(message: Message, returned: ReturnedMail) -> bool:
    """Whether a mail has a copy of one of ours, and is not the answer of a person who got it."""
    ours = set(map(folded_key, returned.senders))
    theirs = set(map(folded_key, returned.recipients))
    if ours.isdisjoint(map(folded_key, receivers_of(message))):
        return False
    return theirs.isdisjoint(map(folded_key, senders_of(message)))


def senders_of(message: Message) -> tuple[str, ...]:
    return addresses_in([*values_of(message, PERSON_FIELDS)])


def receivers_of(message: Message) -> tuple[str, ...]:
    return addresses_in([*values_of(message, RECEIVER_FIELDS)])


def is_receipt(message: Message) -> bool:
    return "disposition-notification" in str(message.get("Content-Type", "")).lower()


def belongs_to_sender(message: Message, went_to: Sequence[str]) -> bool:
    """Whether a bounce went to the person who sends it to us, or to others of that domain."""
    senders = senders_of(message)
    theirs = set(map(folded_key, senders))
    if not theirs.isdisjoint(map(folded_key, went_to)):
        return True
    if not went_to or not own_domains_of(message):
        return False
    domains = {domain_of(address) for address in senders}
    return all(domain_of(address) in domains for address in went_to)


def own_domains_of(message: Message) -> set[str]:
    """The domains of those who got a mail, without the sender's: a provider's, or a colleague's."""
    theirs = {domain_of(address) for address in senders_of(message)}
    ours = {domain_of(address) for address in receivers_of(message)}
    return ours - theirs
