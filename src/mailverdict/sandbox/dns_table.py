"""What the sandbox's DNS server answers. No I/O.

`DomainRecords` are the records of one name, `ZoneTable` those of all names and the correct answer
to a query. `answer_messages` turns a correct answer into what broken servers, bad networks and
forgers send.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdataset
import dns.rdatatype
import dns.rrset

from ..errors import SettingsError

__all__ = [
    "DnsFault",
    "DomainRecords",
    "ZoneTable",
    "answer_messages",
    "fits_datagram",
    "plain_name",
]

ANY_TYPE = "*"
ALIAS = "CNAME"
MAX_ALIASES = 8
SOA = "ns.sandbox.test. hostmaster.sandbox.test. 1 3600 600 86400 {ttl}"
HEADER_SIZE = 12
MAX_WITHOUT_EDNS = 512  # bytes of a datagram unless the query allows more (RFC 1035 section 2.3.4)
MAX_OVER_TCP = 65_535  # bytes of a message


class DnsFault(StrEnum):
    """What is wrong with an answer."""

    SERVFAIL = "servfail"  # the name servers of the domain do not work
    REFUSED = "refused"  # this resolver refuses to answer
    NXDOMAIN = "nxdomain"  # the name does not exist, whatever its records
    REFERRAL = "referral"  # other name servers instead of an answer
    NO_EDNS = "no_edns"  # FORMERR to a query with an OPT record, as from old servers
    ALIAS_ONLY = "alias_only"  # the alias without its target, as from authoritative servers
    SILENCE = "silence"  # no answer
    TRUNCATED = "truncated"  # UDP: truncated, ask over TCP
    TCP_SILENCE = "tcp_silence"  # the same, and TCP closes without an answer
    TCP_FORGED = "tcp_forged"  # the same, and TCP answers another question
    GARBAGE = "garbage"  # the right id and question, then bytes that are not a message
    WRONG_ID = "wrong_id"  # a forged NXDOMAIN with another id
    WRONG_QUESTION = "wrong_question"  # a forged NXDOMAIN to another question
    FORGED_FIRST = "forged_first"  # both forgeries, then the correct answer


# --- records and correct answers ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DomainRecords:
    """The DNS records of one name.

    Attributes
    ----------
    records : mapping of str to tuple of str
        By type, in presentation format: ``{"MX": ("10 mx.ada.example",)}``. All names are absolute.
        A ``CNAME`` is followed, as recursive resolvers do.
    faults : mapping of str to DnsFault
        What is wrong with the answer, by the type asked for; ``*`` is for every type not named.
    ttl : int
        Of every record, in seconds.
    delay : float
        Seconds before every answer.

    Examples
    --------
    >>> DomainRecords({"A": ("127.0.0.5",)}, faults={"AAAA": DnsFault.SERVFAIL}).fault_of("AAAA")
    <DnsFault.SERVFAIL: 'servfail'>
    """

    records: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    faults: Mapping[str, DnsFault] = field(default_factory=dict)
    ttl: int = 300
    delay: float = 0.0

    def fault_of(self, rdtype: str) -> DnsFault | None:
        """What is wrong with the answer for a type, if anything."""
        return self.faults.get(rdtype, self.faults.get(ANY_TYPE))


@dataclass(frozen=True, slots=True)
class ZoneEntry:
    """The records of one name, as given and parsed."""

    given: DomainRecords
    rdatasets: Mapping[str, dns.rdataset.Rdataset]


NO_RECORDS = ZoneEntry(DomainRecords(), {})


class ZoneTable:
    """All names with their records; other names do not exist.

    ``*.bl.example`` matches every name below ``bl.example`` that has no records of its own.
    """

    def __init__(self, zones: Mapping[str, DomainRecords]) -> None:
        self._entries: dict[str, ZoneEntry] = {}
        # Names that exist because a name below them does (RFC 8020).
        self._parents: set[str] = set()
        for name, given in zones.items():
            self.add(name, given)

    def add(self, name: str, given: DomainRecords) -> None:
        """Add a name or replace its records; `SettingsError` if a record cannot be parsed."""
        plain = plain_name(name)
        rdatasets = {}
        for rdtype, texts in given.records.items():
            try:
                rdatasets[rdtype] = parse_records(rdtype, given.ttl, tuple(texts))
            except (dns.exception.DNSException, ValueError) as exc:
                raise SettingsError(f"{name}: {texts!r} are not {rdtype} records: {exc}") from exc
        self._entries[plain] = ZoneEntry(given, rdatasets)
        self._parents.update(parents_of(plain))

    def find(self, name: str) -> ZoneEntry | None:
        """The records of a name; None if it does not exist."""
        plain = plain_name(name)
        if plain in self._entries or plain in self._parents:
            return self._entries.get(plain, NO_RECORDS)
        for parent in parents_of(plain):
            wildcard = self._entries.get(f"*.{parent}")
            if wildcard is not None:
                return wildcard
        return None

    def fault_of(self, query: dns.message.Message) -> DnsFault | None:
        """The fault of the name of a query, or of a name its aliases lead to."""
        rdtype = dns.rdatatype.to_text(query.question[0].rdtype)
        for name in self._alias_chain(query):
            entry = self.find(name)
            fault = None
            if entry is not None:
                fault = entry.given.fault_of(rdtype)
            if fault is not None:
                return fault
        return None

    def delay_of(self, query: dns.message.Message) -> float:
        """Seconds before the answer to a query."""
        entry = self.find(query.question[0].name.to_text())
        if entry is None:
            return 0.0
        return entry.given.delay

    def answer(self, query: dns.message.Message) -> dns.message.Message:
        """The correct answer to a query."""
        asked = query.question[0]
        rdtype = dns.rdatatype.to_text(asked.rdtype)
        response = empty_response(query)
        *aliases, last = self._alias_chain(query)
        for alias in aliases:
            response.answer.append(self._rrset(alias, ALIAS))
        entry = self.find(last)
        if entry is None:
            response.set_rcode(dns.rcode.NXDOMAIN)
        if entry is not None and rdtype in entry.rdatasets:
            response.answer.append(self._rrset(last, rdtype))
        elif last not in aliases:
            response.authority.append(negative_soa(last, entry or NO_RECORDS))
        return response

    def _alias_chain(self, query: dns.message.Message) -> list[str]:
        """The name asked for and those its aliases lead to; a loop ends where it closes."""
        names = [plain_name(query.question[0].name.to_text())]
        while len(names) <= MAX_ALIASES and names[-1] not in names[:-1]:
            entry = self.find(names[-1])
            if (
                entry is None
                or ALIAS not in entry.rdatasets
                or query.question[0].rdtype == dns.rdatatype.CNAME
            ):
                break
            names.append(plain_name(entry.rdatasets[ALIAS][0].target.to_text()))
        return names

    def _rrset(self, name: str, rdtype: str) -> dns.rrset.RRset:
        entry = self.find(name)
        assert entry is not None
        return dns.rrset.from_rdata_list(
            dns.name.from_text(name), entry.given.ttl, list(entry.rdatasets[rdtype])
        )


def plain_name(name: str) -> str:
    """The name in lower case without the final dot."""
    return name.lower().removesuffix(".")


def parents_of(name: str) -> Iterator[str]:
    """The names above a name, the nearest first."""
    while "." in name:
        name = name.partition(".")[2]
        yield name


@lru_cache(maxsize=4096)
def parse_records(rdtype: str, ttl: int, texts: tuple[str, ...]) -> dns.rdataset.Rdataset:
    """Parse records that nobody changes; many worlds have the same ones."""
    return dns.rdataset.from_text_list(
        "IN", rdtype, ttl, list(texts), origin=dns.name.root, relativize=False
    )


def negative_soa(name: str, entry: ZoneEntry) -> dns.rrset.RRset:
    """The record whose TTL is how long a negative answer may be cached (RFC 2308 section 5)."""
    zone = name.partition(".")[2] or name
    return dns.rrset.from_text(
        f"{zone}.", entry.given.ttl, "IN", "SOA", SOA.format(ttl=entry.given.ttl)
    )


def empty_response(query: dns.message.Message) -> dns.message.Message:
    return dns.message.make_response(query, recursion_available=True)


def to_wire(answer: dns.message.Message) -> bytes:
    return answer.to_wire(max_size=MAX_OVER_TCP)


def fits_datagram(query: dns.message.Message, answer: dns.message.Message) -> bool:
    """Whether the answer is not larger than the query allows for a datagram."""
    return len(to_wire(answer)) <= max(query.payload, MAX_WITHOUT_EDNS)


# --- faulty answers -------------------------------------------------------------------------------


def answer_messages(
    fault: DnsFault | None, query: dns.message.Message, answer: dns.message.Message, *, tcp: bool
) -> list[bytes]:
    """The messages sent for a query: the correct answer, or what the fault makes of it."""
    if fault is None:
        return [to_wire(answer)]
    if tcp and fault in OVER_TCP:
        return OVER_TCP[fault](query, answer)
    return FAULTY_ANSWERS[fault](query, answer)


def with_rcode(query: dns.message.Message, rcode: dns.rcode.Rcode) -> bytes:
    response = empty_response(query)
    response.set_rcode(rcode)
    return response.to_wire()


def with_wrong_id(query: dns.message.Message) -> bytes:
    packet = bytearray(with_rcode(query, dns.rcode.NXDOMAIN))
    packet[0] ^= 0xFF
    return bytes(packet)


def with_wrong_question(query: dns.message.Message) -> bytes:
    """NXDOMAIN for another name of the same length."""
    packet = bytearray(with_rcode(query, dns.rcode.NXDOMAIN))
    packet[HEADER_SIZE + 1] = ord("y") if packet[HEADER_SIZE + 1] == ord("x") else ord("x")
    return bytes(packet)


def with_referral(query: dns.message.Message) -> bytes:
    response = empty_response(query)
    response.authority.append(dns.rrset.from_text("test.", 300, "IN", "NS", "ns.sandbox.test."))
    return response.to_wire()


def with_garbage(query: dns.message.Message) -> bytes:
    """A message whose header announces five records and that ends within the first."""
    response = empty_response(query)
    response.use_edns(False)
    packet = response.to_wire()
    return packet[:6] + (5).to_bytes(2, "big") + packet[8:] + b"\x07garbage"


def with_truncation(query: dns.message.Message) -> bytes:
    response = empty_response(query)
    response.flags |= dns.flags.TC
    return response.to_wire()


def with_alias_only(answer: dns.message.Message) -> bytes:
    del answer.answer[1:]
    answer.authority.clear()
    answer.set_rcode(dns.rcode.NOERROR)
    return answer.to_wire()


def without_edns(query: dns.message.Message, answer: dns.message.Message) -> list[bytes]:
    """The correct answer to a query without EDNS; else the bare header of old servers."""
    if query.edns < 0:
        return [to_wire(answer)]
    return [with_rcode(query, dns.rcode.FORMERR)[:4] + bytes(HEADER_SIZE - 4)]


FaultyAnswer = Callable[[dns.message.Message, dns.message.Message], list[bytes]]

FAULTY_ANSWERS: dict[DnsFault, FaultyAnswer] = {
    DnsFault.SERVFAIL: lambda query, _: [with_rcode(query, dns.rcode.SERVFAIL)],
    DnsFault.REFUSED: lambda query, _: [with_rcode(query, dns.rcode.REFUSED)],
    DnsFault.NXDOMAIN: lambda query, _: [with_rcode(query, dns.rcode.NXDOMAIN)],
    DnsFault.REFERRAL: lambda query, _: [with_referral(query)],
    DnsFault.NO_EDNS: without_edns,
    DnsFault.ALIAS_ONLY: lambda _, answer: [with_alias_only(answer)],
    DnsFault.SILENCE: lambda _query, _answer: [],
    DnsFault.TRUNCATED: lambda query, _: [with_truncation(query)],
    DnsFault.TCP_SILENCE: lambda query, _: [with_truncation(query)],
    DnsFault.TCP_FORGED: lambda query, _: [with_truncation(query)],
    DnsFault.GARBAGE: lambda query, _: [with_garbage(query)],
    DnsFault.WRONG_ID: lambda query, _: [with_wrong_id(query)],
    DnsFault.WRONG_QUESTION: lambda query, _: [with_wrong_question(query)],
    DnsFault.FORGED_FIRST: lambda query, answer: [
        with_wrong_id(query),
        with_wrong_question(query),
        to_wire(answer),
    ],
}
# What TCP answers for the faults whose datagrams ask for TCP.
OVER_TCP: dict[DnsFault, FaultyAnswer] = {
    DnsFault.TRUNCATED: lambda _, answer: [to_wire(answer)],
    DnsFault.TCP_SILENCE: lambda _query, _answer: [],
    DnsFault.TCP_FORGED: lambda query, _: [with_wrong_question(query)],
}
