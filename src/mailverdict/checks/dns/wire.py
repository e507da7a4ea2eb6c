"""The usual answers to MX questions, read without a DNS library, which takes most of the time otherwise.

Usual means: MX records of the name itself, or none and the SOA record that says for how long; around
them nothing but NS and address records and an empty OPT record; names of the usual characters. All
else is left to the full parser. What is read here is read alike there: the tests compare the two on
generated and on damaged messages, so every record is checked, even one that is not needed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import dns.exception
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.rdatatype
import dns.rrset

from .answers import MAX_TEXTS, Answer, AnswerOutcome, RecordType, sort_exchanges
from .names import UnaskableNameError, normal_name

__all__ = ["EDNS_REFUSALS", "Question", "is_truncated", "make_question", "parse_answer", "rcode_of", "read_plain_mx"]

HEADER = struct.Struct("!HHHHHH")
RECORD = struct.Struct("!HHIH")  # type, class, TTL, length of the data
PREFERENCE = struct.Struct("!H")
SOA_NUMBERS = struct.Struct("!IIIII")
FLAGS_MASK, RESPONSE = 0xFA0F, 0x8000  # QR, opcode, TC and rcode; the other flags change nothing
OUTCOMES = {0: AnswerOutcome.NODATA, 3: AnswerOutcome.NXDOMAIN}  # of an answer without records, by rcode
A, NS, SOA, MX, AAAA, OPT = 1, 2, 6, 15, 28, 41
SIZES = {A: 4, AAAA: 16}
CLASS_IN = 1
MAX_TTL = 0x7FFFFFFF  # RFC 2181 section 8
QUESTION_TAIL = 4  # octets: type and class
QUESTION = b"\xc0\x0c"  # the pointer to the name that was asked about, by which servers name most owners
MAX_LABEL = 63
MAX_POINTERS = 4  # in one name; servers write one or two
MAX_NAME = 253
LABEL = re.compile(rb"[A-Za-z0-9_-]+")


class UnusualError(Exception):
    """A message is for the full parser."""


class Record(NamedTuple):
    """A resource record: its owner, and where its data are."""

    owner: str
    rdtype: int
    rdclass: int
    ttl: int
    start: int
    end: int


def read_plain_mx(packet: bytes) -> Answer | None:
    """Say what a usual answer to an MX question amounts to; None where the full parser has to.

    Parameters
    ----------
    packet : bytes
        A message that was already found to answer one MX question, ours.

    Returns
    -------
    Answer or None
        With or without exchanges, NODATA or NXDOMAIN.
    """
    try:
        return read_message(packet)
    except (UnusualError, struct.error, IndexError):  # the last two: it ends too early
        return None


def read_message(packet: bytes) -> Answer:
    """Read a message, or raise."""
    _, flags, questions, answers, authorities, additionals = HEADER.unpack_from(packet)
    rcode = (flags & FLAGS_MASK) - RESPONSE
    require(questions == 1 and rcode in OUTCOMES and not (rcode and answers))
    name, at = read_name(packet, HEADER.size)
    at += QUESTION_TAIL
    records = list(read_records(packet, at, answers + authorities + additionals, name))
    require((records[-1].end if records else at) == len(packet))
    pairs = [read_exchange(packet, record, name) for record in records[:answers]]
    negative = [read_authority(packet, record, name) for record in records[answers : answers + authorities]]
    check_additional(records[answers + authorities :])
    if pairs:
        lifetime = min(record.ttl for record in records[:answers])
        return Answer(AnswerOutcome.DATA, exchanges=sort_exchanges(pairs), ttl=float(lifetime))
    lifetimes = [each for each in negative if each is not None]
    require(len(lifetimes) == 1)
    return Answer(OUTCOMES[rcode], ttl=float(lifetimes[0]))


def require(condition: object) -> None:
    """Leave the message to the full parser unless the condition holds."""
    if not condition:
        raise UnusualError


def read_records(packet: bytes, at: int, count: int, name: str) -> Iterator[Record]:
    """Give the records from `at` on; `name` is the one that was asked about."""
    for _ in range(count):
        if packet.startswith(QUESTION, at):
            owner, at = name, at + len(QUESTION)
        else:
            owner, at = read_name(packet, at)
        rdtype, rdclass, ttl, size = RECORD.unpack_from(packet, at)
        start = at + RECORD.size
        at = start + size
        yield Record(owner, rdtype, rdclass, ttl, start, at)


def read_exchange(packet: bytes, record: Record, name: str) -> tuple[int, str]:
    """Read an MX record of the answer section."""
    require(record.rdtype == MX and record.rdclass == CLASS_IN and record.ttl <= MAX_TTL and record.owner == name)
    (preference,) = PREFERENCE.unpack_from(packet, record.start)
    host, end = read_name(packet, record.start + PREFERENCE.size)
    require(end == record.end)
    return preference, host


def read_authority(packet: bytes, record: Record, name: str) -> int | None:
    """Read a record of the authority section; give the lifetime of a negative answer if it is the SOA."""
    require(record.rdtype in (NS, SOA) and record.rdclass == CLASS_IN and record.ttl <= MAX_TTL)
    _, at = read_name(packet, record.start)
    if record.rdtype == NS:
        require(at == record.end)
        return None
    require(not record.owner or f".{name}".endswith(f".{record.owner}"))
    _, at = read_name(packet, at)
    require(at + SOA_NUMBERS.size == record.end)
    return min(record.ttl, int(SOA_NUMBERS.unpack_from(packet, at)[-1]))


def check_additional(records: list[Record]) -> None:
    """Check that there are only addresses and at most one empty OPT record (RFC 6891): no extended rcode, no option."""
    opts = [record for record in records if record.rdtype == OPT]
    require(len(opts) <= 1)
    for record in records:
        size = record.end - record.start
        if record.rdtype == OPT:
            require((record.owner, record.ttl, size) == ("", 0, 0))
        else:
            require(SIZES.get(record.rdtype) == size and record.rdclass == CLASS_IN)


def read_name(packet: bytes, start: int) -> tuple[str, int]:
    """Read a name of usual characters, or the root as ``""``; give where it ends in its own place, too.

    A pointer must lead backwards, before the labels that it follows, and only a few are followed, so
    that no message makes this run long (RFC 9267 section 2).
    """
    labels: list[bytes] = []
    end, target = read_labels(packet, start, labels)
    for _ in range(MAX_POINTERS):
        if target is None:
            break
        require(0 <= target < start)
        start = target
        _, target = read_labels(packet, start, labels)
    name = b".".join(labels)
    require(target is None and len(name) <= MAX_NAME and all(map(LABEL.fullmatch, labels)))
    return name.decode("ascii").lower(), end


def read_labels(packet: bytes, at: int, labels: list[bytes]) -> tuple[int, int | None]:
    """Read labels up to the root or a pointer; give where that ends, and where the pointer leads."""
    while 0 < (size := packet[at]) <= MAX_LABEL:
        labels.append(packet[at + 1 : at + 1 + size])
        at += 1 + size
    if size == 0:
        return at + 1, None
    return at + 2, (size << 8 | packet[at + 1]) - 0xC000  # negative for the label types that do not exist


TYPE_CODES: dict[RecordType, int] = {"A": 1, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28}
RECURSION_DESIRED, TRUNCATED, RCODE = 0x0100, 0x0200, 0x000F
# EDNS0 offering 1232 octets: an answer of that size is never fragmented (DNS flag day 2020).
OPT_RECORD = bytes.fromhex("00 0029 04d0 00000000 0000")
MAX_STRING = 1024  # octets kept of one TXT record
# What a server sends that could not read the query; such an error may come without the question.
QUESTIONLESS = frozenset({dns.rcode.FORMERR, dns.rcode.SERVFAIL, dns.rcode.NOTIMP, dns.rcode.REFUSED})
EDNS_REFUSALS = frozenset({dns.rcode.FORMERR, dns.rcode.NOTIMP})  # of servers that know no EDNS0, RFC 6891 section 7


@dataclass(frozen=True, slots=True)
class Question:
    """One question, and the octets that ask it.

    Attributes
    ----------
    rdtype : str
        Record type.
    section : bytes
        QNAME in lower case, QTYPE and QCLASS.
    """

    rdtype: RecordType
    section: bytes

    def packet(self, identifier: int, *, edns: bool) -> bytes:
        """Give the query message with this id."""
        header = HEADER.pack(identifier, RECURSION_DESIRED, 1, 0, 0, int(edns))
        return header + self.section + (OPT_RECORD if edns else b"")

    def is_answered_by(self, packet: bytes) -> bool:
        """Whether a message with our id repeats our question, as an answer must (RFC 5452 section 9.1)."""
        if len(packet) < HEADER.size:
            return False
        _, flags, questions, *_ = HEADER.unpack_from(packet)
        if questions == 0:
            return bool(flags & RESPONSE) and flags & RCODE in QUESTIONLESS
        asked = packet[HEADER.size : HEADER.size + len(self.section)]
        # No octet of our types, classes and label lengths is a capital letter, so that lower() leaves them alone.
        return bool(flags & RESPONSE) and questions == 1 and asked.lower() == self.section


def make_question(name: str, rdtype: RecordType) -> Question:
    """Make the question about a name in its normal form."""
    labels = [bytes((len(label),)) + label for label in name.encode("ascii").split(b".")]
    return Question(rdtype, b"".join(labels) + struct.pack("!BHH", 0, TYPE_CODES[rdtype], CLASS_IN))


def is_truncated(packet: bytes) -> bool:
    """Whether the answer did not fit into a datagram."""
    return bool(HEADER.unpack_from(packet)[1] & TRUNCATED)


def rcode_of(packet: bytes) -> int:
    """Give the four bits of the response code that stand in the header."""
    return int(HEADER.unpack_from(packet)[1]) & RCODE


def parse_answer(packet: bytes, question: Question) -> Answer:
    """Say what a message, already matched to its question, amounts to; never raises."""
    plain = read_plain_mx(packet) if question.rdtype == "MX" else None
    return plain or parse_message(packet, question.rdtype)


def parse_message(packet: bytes, rdtype: RecordType) -> Answer:
    """Say what any message amounts to, by dnspython."""
    try:
        message = dns.message.from_wire(packet)
        if not isinstance(message, dns.message.QueryMessage):
            return undetermined("an answer to something else")
        if message.rcode() not in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN):
            return undetermined(dns.rcode.to_text(message.rcode()))
        return answer_of(message, rdtype)
    except dns.message.ChainTooLong:
        return undetermined("an endless chain of aliases")
    except (dns.exception.DNSException, ValueError):
        return undetermined("an unreadable answer")


def undetermined(message: str) -> Answer:
    """An answer from which nothing is known."""
    return Answer(AnswerOutcome.UNDETERMINED, message=message)


def answer_of(message: dns.message.QueryMessage, rdtype: RecordType) -> Answer:
    """Say what a readable NOERROR or NXDOMAIN message amounts to."""
    chain = message.resolve_chaining()
    ttl = float(chain.minimum_ttl)
    if chain.answer is not None:
        return data_of(chain.answer, rdtype, ttl)
    if message.rcode() == dns.rcode.NXDOMAIN:
        return Answer(AnswerOutcome.NXDOMAIN, ttl=ttl)
    types = {rrset.rdtype for rrset in message.authority}
    if chain.cnames and dns.rdatatype.SOA not in types:  # the server did not follow the alias
        return alias_of(chain.canonical_name, ttl)
    if dns.rdatatype.NS in types and dns.rdatatype.SOA not in types:  # RFC 2308 section 2.2
        return undetermined("a referral instead of an answer")
    return Answer(AnswerOutcome.NODATA, ttl=ttl)


def alias_of(name: dns.name.Name, ttl: float) -> Answer:
    """An answer that ends at an alias, to be asked about in turn."""
    try:
        return Answer(AnswerOutcome.NODATA, ttl=ttl, alias=normal_name(host_text(name)))
    except UnaskableNameError:
        return undetermined("an alias that cannot be asked about")


def data_of(rrset: dns.rrset.RRset, rdtype: RecordType, ttl: float) -> Answer:
    """An answer that holds records."""
    if rdtype == "MX":
        pairs = [(record.preference, host_text(record.exchange)) for record in rrset]
        return Answer(AnswerOutcome.DATA, exchanges=sort_exchanges(pairs), ttl=ttl)
    read = TEXT_READERS[rdtype]
    return Answer(AnswerOutcome.DATA, texts=tuple(read(record) for record in list(rrset)[:MAX_TEXTS]), ttl=ttl)


def host_text(name: dns.name.Name) -> str:
    """Give a name in lower case without the final dot; unusual octets are escaped."""
    return "" if name == dns.name.root else name.to_text(omit_final_dot=True).lower()


def txt_text(strings: tuple[bytes, ...]) -> str:
    """Join the strings of a TXT record, shortened, with what cannot be shown escaped."""
    text = b"".join(strings)[:MAX_STRING].decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


TEXT_READERS: dict[RecordType, Callable[[Any], str]] = {
    "A": lambda record: str(record.address),
    "AAAA": lambda record: str(record.address),
    "PTR": lambda record: host_text(record.target),
    "TXT": lambda record: txt_text(record.strings),
}
