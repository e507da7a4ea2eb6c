"""DNS messages on the wire: questions out, answers in.

`parse_plain` reads the usual answers to questions for MX records and addresses without a DNS
library, in a tenth of the time: records of the name itself, or none and the SOA record with the
TTL; beside them only NS and address records and an empty OPT record; names of the usual characters.
All other messages are parsed by dnspython. Both parsers must agree: tests compare them on generated
and on damaged messages, so every record is checked, even one that is not needed.

What `parse_answer` makes of an answer to the question for the MX records of `ada.example`:

    message                                  outcome       beside it
    ada.example. 300 MX 10 mx.ada.example.   DATA          exchanges (10, mx.ada.example), TTL 300
    NOERROR, no records, the zone's SOA      NODATA        TTL of the SOA record
    NXDOMAIN, the zone's SOA                 NXDOMAIN      TTL of the SOA record
    NXDOMAIN, the SOA of a filter            UNDETERMINED  why the denial is doubtful
    SERVFAIL                                 UNDETERMINED  SERVFAIL
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


# --- usual answers --------------------------------------------------------------------------------


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
    require(questions == 1 and rcode in OUTCOMES)
    require(rcode == 0 or answers == 0)
    name, at = read_name(packet, HEADER.size, "")
    at += QUESTION_TAIL

    read = read_exchange if asked == MX else read_address
    found: list[Any] = []  # exchanges or addresses
    shortest = MAX_TTL
    for _ in range(answers):
        owner, rdtype, rdclass, ttl, start, at = read_record(packet, at, name)
        require(rdtype == asked and rdclass == CLASS_IN and ttl <= MAX_TTL and owner == name)
        shortest = min(shortest, ttl)
        found.append(read(packet, rdtype, start, at, name))

    denial_ttls: list[int] = []
    for _ in range(authorities):
        record = read_record(packet, at, name)
        at = record[-1]
        denial_ttls += read_authority(packet, record, name)

    opts = 0
    for _ in range(additionals):
        record = read_record(packet, at, name)
        at = record[-1]
        opts += is_opt(record)
    require(opts <= 1 and at == len(packet))

    if not found:
        require(len(denial_ttls) == 1 and flags & CAN_DENY)
        return DnsAnswer(OUTCOMES[rcode], ttl=float(denial_ttls[0]))
    lifetime = float(shortest)
    if asked == MX:
        return DnsAnswer(AnswerOutcome.DATA, exchanges=sort_exchanges(found), ttl=lifetime)
    addresses = tuple(dict.fromkeys(found))
    return DnsAnswer(AnswerOutcome.DATA, texts=addresses[:MAX_TEXTS], ttl=lifetime)


def require(condition: object) -> None:
    """Raise, so that the full parser is used, unless the condition holds."""
    if not condition:
        raise NotPlainError


def read_record(packet: bytes, at: int, name: str) -> Record:
    """Read the record at a position; `name` is the name in the question."""
    if packet.startswith(QUESTION_POINTER, at):
        owner = name
        at += len(QUESTION_POINTER)
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
    require(not owner or f".{name}".endswith(f".{owner}"))
    require(server not in FILTERS)
    _, at = read_name(packet, at, name)
    require(at + SOA_NUMBERS.size == end)
    *_, minimum = SOA_NUMBERS.unpack_from(packet, at)
    return [min(ttl, minimum)]


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
    at = start
    end = 0  # the position after the first pointer
    pointers = 0
    while size := packet[at]:
        if size <= MAX_LABEL:
            at += size + 1
            labels.append(read_label(packet[at - size : at]))
            continue
        # Negative for the label types that do not exist.
        target = (size << 8 | packet[at + 1]) - 0xC000
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
    name = ".".join(labels)
    if parent:
        name += "." + parent
    require(len(name) <= MAX_NAME)
    return name


# --- questions ------------------------------------------------------------------------------------


class Question(NamedTuple):
    """One question, and its octets."""

    rdtype: RecordType
    section: bytes  # QNAME in lower case, QTYPE and QCLASS

    def packet(self, identifier: int, *, edns: bool) -> bytes:
        """Build the query message with this id."""
        header = HEADER.pack(identifier, RECURSION_DESIRED, 1, 0, 0, int(edns))
        message = header + self.section
        if edns:
            message += OPT_RECORD
        return message

    def is_answered_by(self, packet: bytes) -> bool:
        """Whether a message with the right id repeats the question.

        An answer must do so (RFC 5452 section 9.1).
        """
        if len(packet) < HEADER.size:
            return False
        _, flags, questions, *_ = HEADER.unpack_from(packet)
        if not flags & RESPONSE:
            return False
        if questions == 0:
            return flags & RCODE in QUESTIONLESS
        asked = packet[HEADER.size : HEADER.size + len(self.section)]
        # No octet of the types, classes and label lengths is a capital letter, so lower() does not
        # change them.
        return questions == 1 and asked.lower() == self.section


def make_question(name: str, rdtype: RecordType) -> Question:
    """Build the question about a name in its normal form."""
    section = b""
    for label in name.encode("ascii").split(b"."):
        section += bytes((len(label),)) + label
    section += struct.pack("!BHH", 0, TYPE_CODES[rdtype], CLASS_IN)
    return Question(rdtype, section)


def is_truncated(packet: bytes) -> bool:
    """Whether the answer did not fit into a datagram."""
    _, flags, *_ = HEADER.unpack_from(packet)
    return bool(flags & TRUNCATED)


def rcode_of(packet: bytes) -> int:
    """Return the response code in the header, without its extended bits."""
    _, flags, *_ = HEADER.unpack_from(packet)
    return int(flags & RCODE)


def is_refusal(packet: bytes) -> bool:
    """Whether the server refuses to answer the query, perhaps for now."""
    return rcode_of(packet) == dns.rcode.REFUSED


# --- any answer -----------------------------------------------------------------------------------


def parse_answer(packet: bytes, question: Question) -> DnsAnswer:
    """Parse a message that was matched to its question; never raises."""
    if question.rdtype in PLAIN_TYPES:
        plain = parse_plain(packet, question.rdtype)
        if plain is not None:
            return plain
    return parse_message(packet, question.rdtype)


def parse_message(packet: bytes, rdtype: RecordType) -> DnsAnswer:
    """Parse any message with dnspython."""
    try:
        message = dns.message.from_wire(packet)
        if not isinstance(message, dns.message.QueryMessage):
            return undetermined("not an answer to a query")
        rcode = message.rcode()
        if rcode not in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN):
            return undetermined(dns.rcode.to_text(rcode))
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
    label = filter_label(message)
    if label:
        return undetermined(f"an answer that the resolver calls {label} (RFC 8914)")
    if chain.answer is not None:
        return data_of(chain.answer, rdtype, ttl)
    is_nxdomain = message.rcode() == dns.rcode.NXDOMAIN
    types = {rrset.rdtype for rrset in message.authority}
    has_soa = dns.rdatatype.SOA in types
    if chain.cnames and not has_soa and not is_nxdomain:
        return alias_of(chain.canonical_name, ttl)  # the server did not follow the alias
    doubt = doubt_about_denial(message, chain)
    if doubt:
        return undetermined(doubt)
    if is_nxdomain:
        return DnsAnswer(AnswerOutcome.NXDOMAIN, ttl=ttl)
    if dns.rdatatype.NS in types and not has_soa:  # RFC 2308 section 2.2
        return undetermined("a referral instead of an answer")
    return DnsAnswer(AnswerOutcome.NODATA, ttl=ttl)


def filter_label(message: dns.message.QueryMessage) -> str:
    """What a resolver calls an answer that is not the domain's own; empty if it says nothing."""
    for option in message.options:
        if isinstance(option, dns.edns.EDEOption) and option.code in NOT_OF_THE_DOMAIN:
            return NOT_OF_THE_DOMAIN[option.code]
    return ""


def doubt_about_denial(message: dns.message.QueryMessage, chain: dns.message.ChainingResult) -> str:
    """Why an answer without records does not show that there are none; empty if it does."""
    if not message.flags & CAN_DENY:  # as Quad9's answers about domains that it blocks
        return "a denial by a server that neither recurses nor has authority"
    records = [rrset for rrset in message.answer if rrset.rdtype != dns.rdatatype.RRSIG]
    if len(records) > len(chain.cnames):
        return "records of another name or type"
    if is_of_filter(message, chain):
        return "a denial by a filter, not by the domain's zone"
    return ""


def is_of_filter(message: dns.message.QueryMessage, chain: dns.message.ChainingResult) -> bool:
    """Whether an SOA record is not that of a zone above one of the names.

    A response policy zone adds its own SOA record: BIND to the additional section, others as the
    authority.
    """
    if any(rrset.rdtype == dns.rdatatype.SOA for rrset in message.additional):
        return True
    names = [rrset.name for rrset in chain.cnames]
    names.append(chain.canonical_name)
    for zone in message.authority:
        if zone.rdtype != dns.rdatatype.SOA:
            continue
        if not any(name.is_subdomain(zone.name) for name in names):
            return True
        if any(host_text(record.mname) in FILTERS for record in zone):
            return True
    return False


def alias_of(name: dns.name.Name, ttl: float) -> DnsAnswer:
    """An answer that ends at an alias, which needs another question."""
    try:
        return DnsAnswer(AnswerOutcome.NODATA, ttl=ttl, alias=normal_name(host_text(name)))
    except InvalidNameError:
        return undetermined("an alias that cannot be asked about")


def data_of(rrset: dns.rrset.RRset, rdtype: RecordType, ttl: float) -> DnsAnswer:
    """An answer with records."""
    if rdtype == "MX":
        exchanges = []
        for record in rrset:
            host = host_text(record.exchange)
            exchanges.append(MailExchange(record.preference, host))
        return DnsAnswer(AnswerOutcome.DATA, exchanges=sort_exchanges(exchanges), ttl=ttl)
    records = list(rrset)[:MAX_TEXTS]
    texts = tuple(map(TEXT_READERS[rdtype], records))
    return DnsAnswer(AnswerOutcome.DATA, texts=texts, ttl=ttl)


def host_text(name: dns.name.Name) -> str:
    """Return a name in lower case without the final dot; unusual octets are escaped."""
    if name == dns.name.root:
        return ""
    return name.to_text(omit_final_dot=True).lower()


def txt_text(strings: tuple[bytes, ...]) -> str:
    """Join the strings of a TXT record, shortened, with unprintable characters escaped."""
    octets = b"".join(strings)[:MAX_STRING]
    text = ""
    for character in octets.decode("utf-8", "backslashreplace"):
        text += character if character.isprintable() else ascii(character)[1:-1]
    return text


TEXT_READERS: dict[RecordType, Callable[[Any], str]] = {
    "A": lambda record: str(record.address),
    "AAAA": lambda record: str(record.address),
    "PTR": lambda record: host_text(record.target),
    "TXT": lambda record: txt_text(record.strings),
}
