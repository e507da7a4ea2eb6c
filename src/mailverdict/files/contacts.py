"""Contacts: files of vCards (RFC 6350, and versions 2.1 and 3.0), with a row for each address.

The text is split into lines, and each line into the name of its property, its parameters and its
value:

    item1.EMAIL;TYPE="work:main":ada@firm.example  ->  EMAIL, TYPE="work:main", ada@firm.example

Nobody is to be lost. So a contact without an address is a row, an address outside of all contacts
is one, too, and what is not read is counted. A line is split in one pass, since the text may come
from anybody.
"""

from __future__ import annotations

import quopri
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import InputError
from ..model.words import count_of, first_of
from ..table.column_names import says_email
from .encodings import SAMPLE, Encoding, find_encoding, guess_encoding, is_utf8
from .table_file import TableFile
from .whole_files import open_rows, read_whole

BEGIN = re.compile(r"BEGIN:VCARD", re.IGNORECASE)
LINE_END = re.compile(r"\r\n|\n|\r")
# Where the line end before or after an END is missing, as some programs write it.
JOINED_BEGIN = re.compile(r"(END:VCARD)[ \t]*(?=BEGIN:VCARD)", re.IGNORECASE)
JOINED_END = re.compile(r"(?<=[^\r\n])(?=END:VCARD[ \t]*(?:[\r\n]|\Z))", re.IGNORECASE)
BORDER = re.compile(r"(?:BEGIN|END):VCARD", re.IGNORECASE)
ADDRESS_SIGN = re.compile(r"\w@\w")
ESCAPED = re.compile(r"\\([\\,;nN])")
CHARSET = re.compile(
    r"CHARSET=\"?(UTF-?8|ISO-8859-[0-9]+|WINDOWS-125[0-9]|KOI8-[RU]"
    r"|SHIFT_JIS|EUC-JP|EUC-KR|GB2312|GBK|GB18030|BIG5)\b"
)
LONGEST_NAME = 60  # characters of the name of a property
MOST_NAMED = 3  # properties in a message


@dataclass
class Contact:
    """A contact that is being read."""

    has_begin: bool = True
    name: str = ""
    addresses: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)  # properties that are not read, with an address


def open_contacts(path: Path, name: str) -> TableFile:
    """Open a file of vCards: a row for each address, or for a contact without one."""
    text, encoding = read_text(path, name)
    text = JOINED_END.sub("\n", JOINED_BEGIN.sub("\\1\n", text))
    begins = len(BEGIN.findall(text))
    if not begins:
        raise InputError(f"{name} has no contact: no line is BEGIN:VCARD")
    contacts = list(read_contacts(text))
    check_addresses(name, text, contacts)
    rows: list[dict[str, str | None]] = []
    for contact in contacts:
        name_cell = contact.name or None
        for address in contact.addresses:
            rows.append({"name": name_cell, "email": address})
        if not contact.addresses:
            rows.append({"name": name_cell, "email": None})
    opened = open_rows(rows, name, "contacts: a row for each address, or for a contact without one")
    if encoding.why:
        opened.remarks.append(f"encoding: {encoding.name}, {encoding.why}")
    if damaged := text.count("\ufffd"):
        opened.remarks.append(
            f"{count_of(damaged, 'character')} that cannot be read: shown as \ufffd"
        )
    unread = begins - sum(contact.has_begin for contact in contacts)
    if unread:
        opened.remarks.append(
            f"{unread:,} of {begins:,} BEGIN:VCARD are within the text of another contact, and are "
            "not read"
        )
    without = 0
    others: list[str] = []
    for contact in contacts:
        if contact.others and not contact.addresses:
            without += 1
            others += contact.others
    if without:
        opened.remarks.append(
            f"{count_of(without, 'contact')} without an address in EMAIL, but with one in "
            f"{named(others)}, which is not read"
        )
    return opened


def read_text(path: Path, name: str) -> tuple[str, Encoding]:
    """The text of a file, and its encoding."""
    octets = read_whole(path, name, "split it into several files")
    encoding = find_encoding(path, name, None)  # refuses UTF-32
    if encoding.name == "utf-8" and not is_utf8(octets):
        lines = re.split(rb"[\r\n]+", octets)
        telling = b"\n".join(line for line in lines if not line.isascii())
        encoding = guess_encoding(telling[:SAMPLE], ",")
    return octets.decode(encoding.name, "replace"), encoding


def check_addresses(name: str, text: str, contacts: list[Contact]) -> None:
    """Raise `InputError` if no contact has an address although the text has some."""
    count = len(ADDRESS_SIGN.findall(text))
    if not count or any(contact.addresses for contact in contacts):
        return
    others: list[str] = []
    for contact in contacts:
        others += contact.others
    where = ""
    if others:
        where = f" in {named(others)}"
    raise InputError(
        f"{name}: of {count_of(len(contacts), 'contact')} none has the property EMAIL, but the "
        f"text has {count_of(count, 'address', 'addresses')}{where}: name that property EMAIL, or "
        "export the contacts as CSV"
    )


def named(properties: list[str]) -> str:
    distinct = dict.fromkeys(properties)
    return first_of(list(map(repr, distinct)), MOST_NAMED)


def read_contacts(text: str) -> Iterator[Contact]:
    """The contacts of a text; one without an end goes on to the next one.

    The contact of an assistant (AGENT) is within that of somebody else, and is one of its own.
    """
    open_contacts: list[Contact] = []
    previous = ""
    for line in unfold(text):
        key, parameters, value = split_line(line)
        is_card = value.strip().upper() == "VCARD"
        if key == "BEGIN" and is_card:
            if previous != "AGENT":
                yield from open_contacts
                open_contacts = []
            open_contacts.append(Contact())
        elif key == "END" and is_card:
            if open_contacts:
                yield open_contacts.pop()
        elif key == "AGENT" and value.strip().upper() == "BEGIN:VCARD":
            open_contacts.append(Contact())
        else:
            is_known = key == "FN" or says_email(key)
            if is_known and not open_contacts:
                open_contacts.append(Contact(has_begin=False))
            if open_contacts and (is_known or ADDRESS_SIGN.search(value)):
                add_value(open_contacts[-1], key, read_value(parameters.upper(), value))
        previous = key
    yield from open_contacts


def add_value(contact: Contact, key: str, value: str) -> None:
    has_address = ADDRESS_SIGN.search(value) is not None
    # EMAIL, and what converters write, as "E-MAIL 2".
    is_email = key == "EMAIL" or (has_address and says_email(key))
    if key == "FN":
        contact.name = value
    elif value and is_email:
        contact.addresses.append(value)
    elif has_address:
        contact.others.append(key)


def unfold(text: str) -> Iterator[str]:
    """The lines of vCards, joined with those that continue them.

    Those begin with a blank, or are behind the "=" at the end of a quoted-printable line.
    """
    parts: list[str] = []
    is_quoted = False
    for line in LINE_END.split(text):
        is_soft = is_quoted and parts[-1].endswith("=") and not BORDER.match(line)
        if is_soft:
            parts[-1] = parts[-1][:-1]
            parts.append(line)
        elif parts and line[:1] in (" ", "\t"):
            parts.append(line[1:])
        else:
            yield "".join(parts)
            parts = [line]
            is_quoted = "QUOTED-PRINTABLE" in line.upper()
    yield "".join(parts)


def split_line(line: str) -> tuple[str, str, str]:
    """The name of a property without its group, its parameters, and its value.

    The value is behind the first colon; one within quotes is part of a parameter.

    >>> split_line('item1.EMAIL;TYPE="work:main":ada@firm.example')
    ('EMAIL', 'TYPE="work:main"', 'ada@firm.example')
    """
    colon = 0
    for number, part in enumerate(line.split('"')):
        place = part.find(":")
        if number % 2 == 0 and place >= 0:
            colon += place
            break
        colon += len(part) + 1
    else:
        colon = line.find(":")  # a quote is not closed
        if colon < 0:
            return "", "", ""
    name, _, parameters = line[:colon].partition(";")
    name = name[-LONGEST_NAME:].rpartition(".")[2]
    return name.strip("\ufeff \t").upper(), parameters, line[colon + 1 :]


def read_value(parameters: str, value: str) -> str:
    if "QUOTED-PRINTABLE" in parameters:
        octets = quopri.decodestring(value.encode())
        charset = CHARSET.search(parameters)
        encoding = "cp1252"
        if charset is not None:
            encoding = charset[1]
        elif is_utf8(octets):
            encoding = "utf-8"
        value = octets.decode(encoding, "replace")
    return ESCAPED.sub(unescape, value).strip()


def unescape(escape: re.Match[str]) -> str:
    return "\n" if escape[1] in "nN" else escape[1]
