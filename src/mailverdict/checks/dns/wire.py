"""DNS messages on the wire: questions out, answers in.

`parse_plain` reads the usual answers to questions for MX records and addresses without a DNS
library, in a tenth of the time: records of the name itself, or none and the SOA record with the
TTL; beside them only NS and address records and an empty OPT record; names of the usual characters.
All other messages are parsed by dnspython. Both parsers must agree: tests compare them on generated
and on damaged messages, so every record is checked, even one that is not needed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import dns.edns
import dns.exception
import dns.flags
import dns.ipv4
import dns.ipv6
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.rdatatype
import dns.rrset

from ...model.evidence import MailExchange
from .answers import MAX_TEXTS, AnswerOutcome, DnsAnswer, RecordType, sort_exchanges
from .names import MAX_LABEL, MAX_NAME, InvalidNameError, normal_name

HEADER = struct.Struct("!HHHHHH")
RECORD = struct.Struct("!HHIH")  # type, class, TTL, length of the data
PREFERENCE = struct.Struct("!H")
SOA_NUMBERS = struct.Struct("!IIIII")
FLAGS_MASK, RESPONSE = 0xFA0F, 0x8000  # QR, opcode, TC and rcode
# One of them is set by a server that can know that there are no records.
CAN_DENY = dns.flags.AA | dns.flags.RA
# Of an answer without records, by rcode.
OUTCOMES = {
    0: AnswerOutcome.NODATA,
    3: AnswerOutcome.NXDOMAIN,
}
A, NS, SOA, MX, AAAA, OPT = 1, 2, 6, 15, 28, 41
SIZES = {A: 4, AAAA: 16}
TO_TEXT = {A: dns.ipv4.inet_ntoa, AAAA: dns.ipv6.inet_ntoa}
CLASS_IN = 1
MAX_TTL = 0x7FFFFFFF  # RFC 2181 section 8
QUESTION_TAIL = 4  # octets: type and class
QUESTION_POINTER = b"\xc0\x0c"  # to the name in the question, the usual owner of records
MAX_POINTERS = 4  # in one name; servers write one or two
LABEL = re.compile(rb"[A-Za-z0-9_-]*")


class NotPlainError(Exception):
    """The message needs the full parser."""


# Owner, type, class, TTL, position of the data and of their end.
Record = tuple[str, int, int, int, int, int]


def parse_plain(packet: bytes, rdtype: RecordType) -> DnsAnswer | None:
    """Parse a usual answer to a question of type A, AAAA or MX.

    None if the message needs the full parser.
    """
    try:
        return parse_plain_message(packet, TYPE_CODES[rdtype])
    except (NotPlainError, struct.error, IndexError):  # the last two: the message is too short
        return None


def parse_plain_message(packet: bytes, asked: int) -> DnsAnswer:
    """Parse a usual message, or raise."""
    _, flags, questions, answers, authorities, additionals = HEADER.unpack_from(packet)
    rcode = (flags & FLAGS_MASK) - RESPONSE
    require(questions == 1 and rcode in OUTCOMES and not (rcode and answers))
    name, at = read_name(packet, HEADER.size, "")
    at += QUESTION_TAIL
    found: list[Any] = []  # exchanges or addresses
    shortest = MAX_TTL
    for _ in range(answers):
        owner, rdtype, rdclass, ttl, start, at = read_record(packet, at, name)
        require(rdtype == asked and rdclass == CLASS_IN and ttl <= MAX_TTL and owner == name)
        shortest = min(shortest, ttl)
        read = read_exchange if asked == MX else read_address
        found.append(read(packet, rdtype, start, at, name))
    negative: list[int] = []
    for _ in range(authorities):
        record = read_record(packet, at, name)
        at = record[-1]
        negative += read_authority(packet, record, name)
    opts = 0
    for _ in range(additionals):
        record = read_record(packet, at, name)
        at = record[-1]
        opts += is_opt(record)
    require(opts <= 1 and at == len(packet))
    if not found:
        require(len(negative) == 1 and flags & CAN_DENY)
        return DnsAnswer(OUTCOMES[rcode], ttl=float(negative[0]))
    if asked == MX:
        return DnsAnswer(AnswerOutcome.DATA, exchanges=sort_exchanges(found), ttl=float(shortest))
    return DnsAnswer(
        AnswerOutcome.DATA, texts=tuple(dict.fromkeys(found))[:MAX_TEXTS], ttl=float(shortest)
    )


def require(condition: object) -> None:
    """Raise, so that the full parser is used, unless the condition holds."""
    if not condition:
        raise NotPlainError


def read_record(packet: bytes, at: int, name: str) -> Record:
    """Read the record at a position; `name` is the name in the question."""
    if packet.startswith(QUESTION_POINTER, at):
        owner, at = name, at + len(QUESTION_POINTER)
    else:
        owner, at = read_name(packet, at, name)
    rdtype, rdclass, ttl, size = RECORD.unpack_from(packet, at)
    at += RECORD.size
    require(at + size <= len(packet))
    return owner, rdtype, rdclass, ttl, at, at + size


def read_exchange(packet: bytes, rdtype: int, start: int, end: int, name: str) -> MailExchange:
    """Read the data of an MX record."""
    (preference,) = PREFERENCE.unpack_from(packet, start)
    host, host_end = read_name(packet, start + PREFERENCE.size, name)
    require(host_end == end)
    return MailExchange(preference, host)


def read_address(packet: bytes, rdtype: int, start: int, end: int, name: str) -> str:
    """Read the data of an A or AAAA record."""
    require(end - start == SIZES[rdtype])
    return TO_TEXT[rdtype](packet[start:end])


def read_authority(packet: bytes, record: Record, name: str) -> list[int]:
    """Read a record of the authority section.

    Returns the TTL of the negative answer if the record is the SOA.
    """
    owner, rdtype, rdclass, ttl, start, end = record
    require(rdtype in (NS, SOA) and rdclass == CLASS_IN and ttl <= MAX_TTL)
    server, at = read_name(packet, start, name)
    if rdtype == NS:
        require(at == end)
        return []
    require((not owner or f".{name}".endswith(f".{owner}")) and server not in FILTERS)
    _, at = read_name(packet, at, name)
    require(at + SOA_NUMBERS.size == end)
    return [min(ttl, int(SOA_NUMBERS.unpack_from(packet, at)[-1]))]


def is_opt(record: Record) -> bool:
    """Whether an additional record is an empty OPT record (RFC 6891), else an address.

    Such a record has neither an extended rcode nor an option.
    """
    owner, rdtype, rdclass, ttl, start, end = record
    if rdtype == OPT:
        require(not owner and ttl == 0 and start == end)
        return True
    require(SIZES.get(rdtype) == end - start and rdclass == CLASS_IN)
    return False


def read_name(packet: bytes, start: int, asked: str) -> tuple[str, int]:
    """Read a name of usual characters, or the root as ``""``; return it and the position after it.

    A pointer must lead backwards, before the labels that it follows, and only a few are followed,
    so that no message takes long (RFC 9267 section 2). Most lead to the name in the question, which
    is `asked`.
    """
    labels: list[str] = []
    at, end, pointers = start, 0, 0
    while size := packet[at]:
        if size <= MAX_LABEL:
            at += size + 1
            labels.append(read_label(packet[at - size : at]))
            continue
        target = (
            size << 8 | packet[at + 1]
        ) - 0xC000  # negative for the label types that do not exist
        end = end or at + 2
        if target == HEADER.size and asked:
            return join_labels(labels, asked), end
        pointers += 1
        require(0 <= target < start and pointers <= MAX_POINTERS)
        start = at = target
    return join_labels(labels, ""), end or at + 1


@lru_cache(maxsize=4096)
def read_label(label: bytes) -> str:
    """A label in lower case; only usual characters.

    Cached, since the same few labels are in most names.
    """
    require(LABEL.fullmatch(label))
    return label.decode("ascii").lower()


def join_labels(labels: list[str], parent: str) -> str:
    """The name of these labels below `parent`."""
    if not labels:
        return parent
    name = ".".join([*labels, parent] if parent else labels)
    require(len(name) <= MAX_NAME)
    return name


TYPE_CODES: dict[RecordType, int] = {"A": 1, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28}
PLAIN_TYPES = frozenset({"A", "AAAA", "MX"})
RECURSION_DESIRED, TRUNCATED, RCODE = 0x0100, 0x0200, 0x000F
# EDNS0 offering 1232 octets: an answer of that size is never fragmented (DNS flag day 2020).
OPT_RECORD = bytes.fromhex("00 0029 04d0 00000000 0000")
MAX_STRING = 1024  # octets kept of one TXT record
# Errors of servers that could not read the query, which may come without the question.
QUESTIONLESS = frozenset(
    {dns.rcode.FORMERR, dns.rcode.SERVFAIL, dns.rcode.NOTIMP, dns.rcode.REFUSED}
)
# Also of servers that were sent too many queries.
REFUSALS = frozenset({dns.rcode.SERVFAIL, dns.rcode.REFUSED})
# Of servers without EDNS0, RFC 6891 section 7.
EDNS_REFUSALS = frozenset({dns.rcode.FORMERR, dns.rcode.NOTIMP})
# RFC 8914 section 4: the answer is that of a filter, or (19) of a cache whose entry is too old.
NOT_OF_THE_DOMAIN = {
    4: "forged",
    15: "blocked",
    16: "censored",
    17: "filtered",
    18: "prohibited",
    19: "stale",
}
# Servers in the SOA records of filters that name the domain itself as the zone: AdGuard Home, read
# 2026-11-23.
FILTERS = frozenset({"fake-for-negative-caching.adguard.com"})


class Question(NamedTuple):
    """One question, and its octets."""

    rdtype: RecordType
    section: bytes  # QNAME in lower case, QTYPE and QCLASS

    def packet(self, identifier: int, *, edns: bool) -> bytes:
        """Build the query message with this id."""
        header = HEADER.pack(identifier, RECURSION_DESIRED, 1, 0, 0, int(edns))
        return header + self.section + (OPT_RECORD if edns else b"")

    def is_answered_by(self, packet: bytes) -> bool:
        """Whether a message with the right id repeats the question.

        An answer must do so (RFC 5452 section 9.1).
        """
        if len(packet) < HEADER.size:
            return False
        _, flags, questions, *_ = HEADER.unpack_from(packet)
        if questions == 0:
            return bool(flags & RESPONSE) and flags & RCODE in QUESTIONLESS
        asked = packet[HEADER.size : HEADER.size + len(self.section)]
        # No octet of the types, classes and label lengths is a capital letter, so lower() does not
        # change them.
        return bool(flags & RESPONSE) and questions == 1 and asked.lower() == self.section


def make_question(name: str, rdtype: RecordType) -> Question:
    """Build the question about a name in its normal form."""
    labels = [bytes((len(label),)) + label for label in name.encode("ascii").split(b".")]
    return Question(rdtype, b"".join(labels) + struct.pack("!BHH", 0, TYPE_CODES[rdtype], CLASS_IN))


def is_truncated(packet: bytes) -> bool:
    """Whether the answer did not fit into a datagram."""
    return bool(HEADER.unpack_from(packet)[1] & TRUNCATED)


def rcode_of(packet: bytes) -> int:
    """Return the response code in the header, without its extended bits."""
    return int(HEADER.unpack_from(packet)[1]) & RCODE


def is_refusal(packet: bytes) -> bool:
    """Whether the server refuses to answer the query, perhaps for now."""
    return rcode_of(packet) == dns.rcode.REFUSED


def parse_answer(packet: bytes, question: Question) -> DnsAnswer:
    """Parse a message that was matched to its question; never raises."""
    plain = parse_plain(packet, question.rdtype) if question.rdtype in PLAIN_TYPES else None
    return plain or parse_message(packet, question.rdtype)


def parse_message(packet: bytes, rdtype: RecordType) -> DnsAnswer:
    """Parse any message with dnspython."""
    try:
        message = dns.message.from_wire(packet)
        if not isinstance(message, dns.message.QueryMessage):
            return undetermined("not an answer to a query")
        if message.rcode() not in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN):
            return undetermined(dns.rcode.to_text(message.rcode()))
        return answer_of(message, rdtype)
    except dns.message.ChainTooLong:
        return undetermined("an endless chain of aliases")
    except (dns.exception.DNSException, ValueError):
        return undetermined("an unreadable answer")


def undetermined(message: str) -> DnsAnswer:
    """An answer without a result."""
    return DnsAnswer(AnswerOutcome.UNDETERMINED, message=message)


def answer_of(message: dns.message.QueryMessage, rdtype: RecordType) -> DnsAnswer:
    """Convert a readable NOERROR or NXDOMAIN message."""
    chain = message.resolve_chaining()
    ttl = float(chain.minimum_ttl)
    if label := filter_label(message):
        return undetermined(f"an answer that the resolver calls {label} (RFC 8914)")
    if chain.answer is not None:
        return data_of(chain.answer, rdtype, ttl)
    types = {rrset.rdtype for rrset in message.authority}
    if message.rcode() == dns.rcode.NOERROR and chain.cnames and dns.rdatatype.SOA not in types:
        return alias_of(chain.canonical_name, ttl)  # the server did not follow the alias
    if doubt := doubt_about_denial(message, chain):
        return undetermined(doubt)
    if message.rcode() == dns.rcode.NXDOMAIN:
        return DnsAnswer(AnswerOutcome.NXDOMAIN, ttl=ttl)
    if dns.rdatatype.NS in types and dns.rdatatype.SOA not in types:  # RFC 2308 section 2.2
        return undetermined("a referral instead of an answer")
    return DnsAnswer(AnswerOutcome.NODATA, ttl=ttl)


def filter_label(message: dns.message.QueryMessage) -> str:
    """What a resolver calls an answer that is not the domain's own; empty if it says nothing."""
    codes = [option.code for option in message.options if isinstance(option, dns.edns.EDEOption)]
    return next((NOT_OF_THE_DOMAIN[code] for code in codes if code in NOT_OF_THE_DOMAIN), "")


def doubt_about_denial(message: dns.message.QueryMessage, chain: dns.message.ChainingResult) -> str:
    """Why an answer without records does not show that there are none; empty if it does."""
    if not message.flags & CAN_DENY:  # as Quad9's answers about domains that it blocks
        return "a denial by a server that neither recurses nor has authority"
    records = [rrset for rrset in message.answer if rrset.rdtype != dns.rdatatype.RRSIG]
    if len(records) > len(chain.cnames):
        return "records of another name or type"
    names = [rrset.name for rrset in chain.cnames] + [chain.canonical_name]
    zones = [rrset for rrset in message.authority if rrset.rdtype == dns.rdatatype.SOA]
    # A response policy zone adds its own SOA record: BIND to the additional section, others as the
    # authority.
    is_changed = (
        any(rrset.rdtype == dns.rdatatype.SOA for rrset in message.additional)
        or any(not any(name.is_subdomain(zone.name) for name in names) for zone in zones)
        or any(host_text(record.mname) in FILTERS for zone in zones for record in zone)
    )
    return "a denial by a filter, not by the domain's zone" if is_changed else ""


def alias_of(name: dns.name.Name, ttl: float) -> DnsAnswer:
    """An answer that ends at an alias, which needs another question."""
    try:
        return DnsAnswer(AnswerOutcome.NODATA, ttl=ttl, alias=normal_name(host_text(name)))
    except InvalidNameError:
        return undetermined("an alias that cannot be asked about")


def data_of(rrset: dns.rrset.RRset, rdtype: RecordType, ttl: float) -> DnsAnswer:
    """An answer with records."""
    if rdtype == "MX":
        exchanges = [
            MailExchange(record.preference, host_text(record.exchange)) for record in rrset
        ]
        return DnsAnswer(AnswerOutcome.DATA, exchanges=sort_exchanges(exchanges), ttl=ttl)
    read = TEXT_READERS[rdtype]
    return DnsAnswer(
        AnswerOutcome.DATA, texts=tuple(read(record) for record in list(rrset)[:MAX_TEXTS]), ttl=ttl
    )


def host_text(name: dns.name.Name) -> str:
    """Return a name in lower case without the final dot; unusual octets are escaped."""
    return "" if name == dns.name.root else name.to_text(omit_final_dot=True).lower()


def txt_text(strings: tuple[bytes, ...]) -> str:
    """Join the strings of a TXT record, shortened, with unprintable characters escaped."""
    text = b"".join(strings)[:MAX_STRING].decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


TEXT_READERS: dict[RecordType, Callable[[Any], str]] = {
    "A": lambda record: str(record.address),
    "AAAA": lambda record: str(record.address),
    "PTR": lambda record: host_text(record.target),
    "TXT": lambda record: txt_text(record.strings),
}
