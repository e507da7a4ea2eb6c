"""DNS messages (RFC 1035, RFC 6891): questions to octets, octets to answers. No I/O.

Questions are written by hand, since they are all alike; answers are parsed by dnspython, apart from
the usual ones to MX questions, which `dns_plain` reads.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dns.exception
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.rdatatype
import dns.rrset

from .dns_answer import MAX_TEXTS, Answer, AnswerOutcome, RecordType, sort_exchanges
from .dns_name import UnaskableNameError, normal_name
from .dns_plain import read_plain_mx

__all__ = ["EDNS_REFUSALS", "Question", "is_truncated", "make_question", "parse_answer", "rcode_of"]

TYPE_CODES: dict[RecordType, int] = {"A": 1, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28}
CLASS_IN = 1
HEADER = struct.Struct("!HHHHHH")
RECURSION_DESIRED, RESPONSE, TRUNCATED, RCODE = 0x0100, 0x8000, 0x0200, 0x000F
# EDNS0 offering 1232 octets: an answer of that size is never fragmented (DNS flag day 2020).
OPT = bytes.fromhex("00 0029 04d0 00000000 0000")
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
        return header + self.section + (OPT if edns else b"")

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
