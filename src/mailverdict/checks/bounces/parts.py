"""The parts of a mail as texts, its addresses, and the copy of the mail that came back."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.parser import HeaderParser
from email.policy import compat32
from email.utils import getaddresses

from .notices import cut_original
from .outcome import clean_text, whole_text
from .page_text import page_text

MAX_MESSAGE = 512 * 1024  # octets of a mail that are read: a report stands before the returned mail
MAX_PARTS = 200
MAX_ADDRESS = 320  # characters: 64 + "@" + 255 (RFC 5321 4.5.3.1)
SENDER_FIELDS = ("From", "Sender", "Return-Path", "Reply-To")  # of the returned mail
MAIL_TYPES = ("message/rfc822", "message/global")
ATTACHED_TYPES = (*MAIL_TYPES, "text/rfc822-headers", "message/global-headers")


@dataclass(frozen=True, slots=True)
class ReturnedMail:
    """What is known of the mail that was sent, from the copy that came back."""

    recipients: tuple[str, ...] = ()
    senders: tuple[str, ...] = ()
    message_id: str | None = None
    complainant: str | None = None  # Outlook.com names the recipient in a field of the copy


def own_parts(message: Message) -> Iterator[Message]:
    """The first `MAX_PARTS` leaf parts in order, without what is inside attached mails."""
    waiting = [message]
    left = MAX_PARTS
    while waiting and left:
        part = waiting.pop(0)
        payload = part.get_payload()
        if part.get_content_maintype() == "multipart" and isinstance(payload, list):
            waiting[:0] = [inner for inner in payload if isinstance(inner, Message)]
        else:
            left -= 1
            yield part


def attached_mails(part: Message) -> list[Message]:
    payload = part.get_payload()
    if part.get_content_type() not in MAIL_TYPES or not isinstance(payload, list):
        return []
    return [mail for mail in payload if isinstance(mail, Message)]


def decode_part(part: Message) -> str:
    """The text of a part: in its charset if that is known and right, else UTF-8, else Latin-1."""
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    data = data[:MAX_MESSAGE]
    for charset in (part.get_content_charset(), "utf-8"):
        try:
            return whole_text(data.decode(charset or "utf-8")).replace("\r\n", "\n")
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


def pages_of(parts: list[Message]) -> list[str]:
    pages = [part for part in parts if part.get_content_type() == "text/html"]
    return [page_text(decode_part(page)) for page in pages]


# --- the returned mail and addresses ---------------------------------------------------------


def values_of(message: Message, names: Sequence[str]) -> Iterator[object]:
    for name in names:
        yield from message.get_all(name) or ()


def domain_of(address: str) -> str:
    return address.rpartition("@")[2].lower()


def read_returned(parts: list[Message], texts: list[str]) -> ReturnedMail:
    """What the copy of the sent mail says.

    In a plain-text bounce it stands at the end of the text.
    """
    for part in parts:
        if part.get_content_type() not in ATTACHED_TYPES:
            continue
        mails = attached_mails(part)
        if mails:
            return describe_returned(mails[0])
        header = decode_part(part).lstrip("\n")
        return describe_returned(HeaderParser(policy=compat32).parsestr(header))
    for text in texts:
        _, copy = cut_original(text)
        if copy:
            return describe_returned(HeaderParser(policy=compat32).parsestr(copy))
    return ReturnedMail()


def describe_returned(mail: Message) -> ReturnedMail:
    complainants = addresses_in(mail.get_all("X-HmXmrOriginalRecipient"))
    recipients = addresses_in(list(values_of(mail, ("To", "Cc"))))
    senders = addresses_in(list(values_of(mail, SENDER_FIELDS)))
    message_id = header_text(mail.get("Message-ID"))[:300] or None
    return ReturnedMail(recipients, senders, message_id, only(complainants))


def addresses_in(values: Sequence[object] | None) -> tuple[str, ...]:
    """The distinct addresses in header fields."""
    texts = [header_text(value) for value in values or ()]
    addresses: dict[str, None] = {}
    for _, text in getaddresses(texts):
        address = find_address(text)
        if address is not None:
            addresses[address] = None
    return tuple(addresses)


ADDRESS_TYPE = re.compile(r"^[\w ./-]{1,40};\s*")
EMBEDDED = re.compile(r"\\x\{([0-9A-Fa-f]{2,6})\}")  # RFC 6533 3


def find_address(value: str) -> str | None:
    r"""The address in a recipient field such as ``rfc822; <ada@firm.example>``.

    >>> find_address("rfc822; <ada@firm.example>"), find_address("x400;c=")
    ('ada@firm.example', None)
    >>> find_address(r"utf-8;\x{436}@firm.example")
    'ж@firm.example'
    """
    text = clean_text(ADDRESS_TYPE.sub("", value.strip()))
    text = EMBEDDED.sub(lambda match: chr(min(int(match[1], 16), 0x10FFFF)), text)
    match = re.search(r"<([^<>]*@[^<>]*)>", text)
    if match is not None:
        text = match[1]
    text = text.strip(" <>'`,;").removeprefix("mailto:")
    if not 3 <= len(text) <= MAX_ADDRESS or "@" not in text[1:-1]:
        return None
    if " " in text and not text.startswith('"'):
        return None
    if "\ufffd" in text or whole_text(text) != text:
        return None
    return text


def only(addresses: tuple[str, ...]) -> str | None:
    return addresses[0] if len(addresses) == 1 else None
