"""Answers gone wrong: what a resolver sees of broken servers, bad networks and forgers. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdataset
import dns.rdatatype
import dns.rrset

from ..errors import SettingsError

__all__ = ["DnsFault", "DomainRecords", "ZoneTable", "fits_datagram", "plain_name", "spoil", "start_response"]

HEADER_SIZE = 12
WITHOUT_EDNS = 512  # octets of a datagram where the query does not offer more (RFC 1035 section 2.3.4)
LARGEST = 65_535  # octets of a message over TCP


class DnsFault(StrEnum):
    """How an answer goes wrong."""

    SERVFAIL = "servfail"  # the name servers of the domain are broken
    REFUSED = "refused"  # this resolver does not want us
    NXDOMAIN = "nxdomain"  # the name is denied, whatever its records
    REFERRAL = "referral"  # the question is passed on, not answered
    NO_EDNS = "no_edns"  # FORMERR to a query with an OPT record, as old servers do
    ALIAS_ONLY = "alias_only"  # the alias is told and not followed, as authoritative servers do
    SILENCE = "silence"  # no answer at all
    TRUNCATED = "truncated"  # UDP says to come back over TCP
    TCP_SILENCE = "tcp_silence"  # the same, and TCP is closed without an answer
    TCP_FORGED = "tcp_forged"  # the same, and TCP answers another question
    GARBAGE = "garbage"  # octets that are no message, behind our id and question
    WRONG_ID = "wrong_id"  # NXDOMAIN by a forger who does not know the id
    WRONG_QUESTION = "wrong_question"  # NXDOMAIN by a forger who answers another question
    FORGED_FIRST = "forged_first"  # both, then the true answer


def spoil(fault: DnsFault | None, query: dns.message.Message, truth: dns.message.Message, *, tcp: bool) -> list[bytes]:
    """Give the messages that are sent in place of the true answer, in order; none for silence."""
    if fault is None:
        return [whole(truth)]
    if tcp and fault in ONLY_UDP:
        return ONLY_UDP[fault](query, truth)
    return SPOILERS[fault](query, truth)


def whole(truth: dns.message.Message) -> bytes:
    """Give a message in full, whatever its size."""
    return truth.to_wire(max_size=LARGEST)


def fits_datagram(query: dns.message.Message, truth: dns.message.Message) -> bool:
    """Whether the answer is no larger than the query allows a datagram to be."""
    return len(whole(truth)) <= max(query.payload, WITHOUT_EDNS)


def start_response(query: dns.message.Message) -> dns.message.Message:
    """Make an empty answer of a resolver that does recursion."""
    return dns.message.make_response(query, recursion_available=True)


def with_rcode(query: dns.message.Message, rcode: dns.rcode.Rcode) -> bytes:
    """Make an answer that consists of a response code."""
    response = start_response(query)
    response.set_rcode(rcode)
    return response.to_wire()


def with_wrong_id(query: dns.message.Message) -> bytes:
    """Make a denial as a forger would who does not know the id."""
    packet = bytearray(with_rcode(query, dns.rcode.NXDOMAIN))
    packet[0] ^= 0xFF
    return bytes(packet)


def with_wrong_question(query: dns.message.Message) -> bytes:
    """Make a denial of another name of the same length."""
    packet = bytearray(with_rcode(query, dns.rcode.NXDOMAIN))
    packet[HEADER_SIZE + 1] = ord("y") if packet[HEADER_SIZE + 1] == ord("x") else ord("x")
    return bytes(packet)


def with_referral(query: dns.message.Message) -> bytes:
    """Make an answer that names other name servers and nothing else."""
    response = start_response(query)
    response.authority.append(dns.rrset.from_text("test.", 300, "IN", "NS", "ns.sandbox.test."))
    return response.to_wire()


def with_garbage(query: dns.message.Message) -> bytes:
    """Make an answer that says it holds five records, and ends within the first."""
    response = start_response(query)
    response.use_edns(False)
    packet = response.to_wire()
    return packet[:6] + (5).to_bytes(2, "big") + packet[8:] + b"\x07garbage"


def with_truncation(query: dns.message.Message) -> bytes:
    """Make the empty answer that asks to come back over TCP."""
    response = start_response(query)
    response.flags |= dns.flags.TC
    return response.to_wire()


def with_alias_only(truth: dns.message.Message) -> bytes:
    """Leave the first alias of an answer and nothing of where it leads."""
    del truth.answer[1:]
    truth.authority.clear()
    truth.set_rcode(dns.rcode.NOERROR)
    return truth.to_wire()


def unless_edns(query: dns.message.Message, truth: dns.message.Message) -> list[bytes]:
    """Answer a query without EDNS0; to others send the bare header that old servers send."""
    if query.edns < 0:
        return [whole(truth)]
    return [with_rcode(query, dns.rcode.FORMERR)[:4] + bytes(HEADER_SIZE - 4)]


Spoiler = Callable[[dns.message.Message, dns.message.Message], list[bytes]]

SPOILERS: dict[DnsFault, Spoiler] = {
    DnsFault.SERVFAIL: lambda query, _: [with_rcode(query, dns.rcode.SERVFAIL)],
    DnsFault.REFUSED: lambda query, _: [with_rcode(query, dns.rcode.REFUSED)],
    DnsFault.NXDOMAIN: lambda query, _: [with_rcode(query, dns.rcode.NXDOMAIN)],
    DnsFault.REFERRAL: lambda query, _: [with_referral(query)],
    DnsFault.NO_EDNS: unless_edns,
    DnsFault.ALIAS_ONLY: lambda _, truth: [with_alias_only(truth)],
    DnsFault.SILENCE: lambda _query, _truth: [],
    DnsFault.TRUNCATED: lambda query, _: [with_truncation(query)],
    DnsFault.TCP_SILENCE: lambda query, _: [with_truncation(query)],
    DnsFault.TCP_FORGED: lambda query, _: [with_truncation(query)],
    DnsFault.GARBAGE: lambda query, _: [with_garbage(query)],
    DnsFault.WRONG_ID: lambda query, _: [with_wrong_id(query)],
    DnsFault.WRONG_QUESTION: lambda query, _: [with_wrong_question(query)],
    DnsFault.FORGED_FIRST: lambda query, truth: [with_wrong_id(query), with_wrong_question(query), whole(truth)],
}
# Those of which only the datagrams are spoiled as above, and what TCP says then.
ONLY_UDP: dict[DnsFault, Spoiler] = {
    DnsFault.TRUNCATED: lambda _, truth: [whole(truth)],
    DnsFault.TCP_SILENCE: lambda _query, _truth: [],
    DnsFault.TCP_FORGED: lambda query, _: [with_wrong_question(query)],
}


ANY_TYPE = "*"
ALIAS = "CNAME"
MAX_ALIASES = 8
SOA = "ns.sandbox.test. hostmaster.sandbox.test. 1 3600 600 86400 {ttl}"


@dataclass(frozen=True, slots=True)
class DomainRecords:
    """What is known about one name.

    Attributes
    ----------
    records : mapping of str to tuple of str
        By type, in presentation format: ``{"MX": ("10 mx.ada.example",)}``. All names are absolute. A
        ``CNAME`` is followed, as recursive resolvers do.
    faults : mapping of str to DnsFault
        By the type asked for; ``*`` stands for every type without a fault of its own.
    ttl : int
        Seconds, of every record.
    delay : float
        Seconds before any answer.

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
        """Give what goes wrong when this type is asked for."""
        return self.faults.get(rdtype, self.faults.get(ANY_TYPE))


@dataclass(frozen=True, slots=True)
class ZoneEntry:
    """A name's records as given, and as read."""

    given: DomainRecords
    rdatasets: Mapping[str, dns.rdataset.Rdataset]


class ZoneTable:
    """Names and what is known about them; the rest of the world does not exist.

    Parameters
    ----------
    zones : mapping of str to DomainRecords
        By name; ``*.bl.example`` stands for every name below ``bl.example`` that is not there itself.

    Raises
    ------
    SettingsError
        If a record cannot be read.
    """

    def __init__(self, zones: Mapping[str, DomainRecords]) -> None:
        self._entries: dict[str, ZoneEntry] = {}
        self._parents: set[str] = set()  # names that exist because something below them does (RFC 8020)
        for name, given in zones.items():
            self.add(name, given)

    def add(self, name: str, given: DomainRecords) -> None:
        """Add a name, or replace it."""
        plain = plain_name(name)
        self._entries[plain] = ZoneEntry(
            given, {rdtype: read_records(plain, rdtype, given) for rdtype in given.records}
        )
        self._parents.update(parents_of(plain))

    def find(self, name: str) -> ZoneEntry | None:
        """Give what is known about a name; None if it does not exist."""
        plain = plain_name(name)
        if plain in self._entries or plain in self._parents:
            return self._entries.get(plain, NOTHING)
        wildcards = (self._entries.get(f"*.{parent}") for parent in parents_of(plain))
        return next(filter(None, wildcards), None)

    def fault_of(self, query: dns.message.Message) -> DnsFault | None:
        """Give what goes wrong with the answer to a query: by its name, or by where its aliases lead."""
        rdtype = dns.rdatatype.to_text(query.question[0].rdtype)
        found = (self.find(name) for name in self._chain(query))
        return next((fault for entry in found if entry and (fault := entry.given.fault_of(rdtype))), None)

    def delay_of(self, query: dns.message.Message) -> float:
        """Give the seconds that the answer to a query takes."""
        found = self.find(query.question[0].name.to_text())
        return found.given.delay if found else 0.0

    def answer(self, query: dns.message.Message) -> dns.message.Message:
        """Give the true answer to a query."""
        asked = query.question[0]
        rdtype = dns.rdatatype.to_text(asked.rdtype)
        response = start_response(query)
        *aliases, last = self._chain(query)
        for alias in aliases:
            response.answer.append(self._rrset(alias, ALIAS))
        entry = self.find(last)
        if entry is None:
            response.set_rcode(dns.rcode.NXDOMAIN)
        if entry is not None and rdtype in entry.rdatasets:
            response.answer.append(self._rrset(last, rdtype))
        elif last not in aliases:
            response.authority.append(negative_soa(last, entry or NOTHING))
        return response

    def _chain(self, query: dns.message.Message) -> list[str]:
        """Give the name asked about and those its aliases lead to; a loop ends where it closes."""
        names = [plain_name(query.question[0].name.to_text())]
        while len(names) <= MAX_ALIASES and names[-1] not in names[:-1]:
            entry = self.find(names[-1])
            if entry is None or ALIAS not in entry.rdatasets or query.question[0].rdtype == dns.rdatatype.CNAME:
                break
            names.append(plain_name(entry.rdatasets[ALIAS][0].target.to_text()))
        return names

    def _rrset(self, name: str, rdtype: str) -> dns.rrset.RRset:
        entry = self.find(name)
        assert entry is not None
        return dns.rrset.from_rdata_list(dns.name.from_text(name), entry.given.ttl, list(entry.rdatasets[rdtype]))


NOTHING = ZoneEntry(DomainRecords(), {})


def plain_name(name: str) -> str:
    """Give a name in lower case without the final dot."""
    return name.lower().removesuffix(".")


def parents_of(name: str) -> Iterator[str]:
    """Give the names above a name, the nearest first."""
    while "." in name:
        name = name.partition(".")[2]
        yield name


def read_records(name: str, rdtype: str, given: DomainRecords) -> dns.rdataset.Rdataset:
    """Read the records of one type."""
    try:
        texts = list(given.records[rdtype])
        return dns.rdataset.from_text_list("IN", rdtype, given.ttl, texts, origin=dns.name.root, relativize=False)
    except (dns.exception.DNSException, ValueError) as exc:
        raise SettingsError(f"{name}: {given.records[rdtype]!r} are no {rdtype} records: {exc}") from exc


def negative_soa(name: str, entry: ZoneEntry) -> dns.rrset.RRset:
    """Make the record whose TTL says for how long nothing is there (RFC 2308 section 5)."""
    zone = name.partition(".")[2] or name
    return dns.rrset.from_text(f"{zone}.", entry.given.ttl, "IN", "SOA", SOA.format(ttl=entry.given.ttl))
