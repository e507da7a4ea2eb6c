"""What the sandbox's DNS knows, and the message that truly answers a query. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import dns.exception
import dns.message
import dns.name
import dns.rcode
import dns.rdataset
import dns.rdatatype
import dns.rrset

from ..errors import SettingsError
from .dns_faults import Fault, start_response

__all__ = ["DomainRecords", "ZoneTable", "plain_name"]

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
    faults : mapping of str to Fault
        By the type asked for; ``*`` stands for every type without a fault of its own.
    ttl : int
        Seconds, of every record.
    delay : float
        Seconds before any answer.

    Examples
    --------
    >>> DomainRecords({"A": ("127.0.0.5",)}, faults={"AAAA": Fault.SERVFAIL}).fault_of("AAAA")
    <Fault.SERVFAIL: 'servfail'>
    """

    records: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    faults: Mapping[str, Fault] = field(default_factory=dict)
    ttl: int = 300
    delay: float = 0.0

    def fault_of(self, rdtype: str) -> Fault | None:
        """Give what goes wrong when this type is asked for."""
        return self.faults.get(rdtype, self.faults.get(ANY_TYPE))


@dataclass(frozen=True, slots=True)
class Entry:
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
        self._entries: dict[str, Entry] = {}
        self._parents: set[str] = set()  # names that exist because something below them does (RFC 8020)
        for name, given in zones.items():
            self.add(name, given)

    def add(self, name: str, given: DomainRecords) -> None:
        """Add a name, or replace it."""
        plain = plain_name(name)
        self._entries[plain] = Entry(given, {rdtype: read_records(plain, rdtype, given) for rdtype in given.records})
        self._parents.update(parents_of(plain))

    def find(self, name: str) -> Entry | None:
        """Give what is known about a name; None if it does not exist."""
        plain = plain_name(name)
        if plain in self._entries or plain in self._parents:
            return self._entries.get(plain, NOTHING)
        wildcards = (self._entries.get(f"*.{parent}") for parent in parents_of(plain))
        return next(filter(None, wildcards), None)

    def fault_of(self, query: dns.message.Message) -> Fault | None:
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


NOTHING = Entry(DomainRecords(), {})


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


def negative_soa(name: str, entry: Entry) -> dns.rrset.RRset:
    """Make the record whose TTL says for how long nothing is there (RFC 2308 section 5)."""
    zone = name.partition(".")[2] or name
    return dns.rrset.from_text(f"{zone}.", entry.given.ttl, "IN", "SOA", SOA.format(ttl=entry.given.ttl))
