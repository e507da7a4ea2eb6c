"""DNS answers as values, without wire format and I/O."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from ...model.evidence import MailExchange

__all__ = ["AddressAnswer", "AnswerOutcome", "DnsAnswer", "IPAddress", "RecordType", "sort_exchanges"]

RecordType = Literal["A", "AAAA", "MX", "PTR", "TXT"]
IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

# RFC 5321 section 5.1 lets a sender limit how many exchanges it tries; the largest mail operators
# publish fewer than 20. The limit bounds the work that a 64 KiB answer of invented exchanges causes.
MAX_EXCHANGES = 64
MAX_TEXTS = 64  # addresses, names or strings kept of one RRset, for the same reason


class AnswerOutcome(StrEnum):
    """The result of one DNS question."""

    DATA = "data"  # the name has records of the type
    NODATA = "nodata"  # the name exists, with no record of the type (RFC 2308 section 2.2)
    NXDOMAIN = "nxdomain"  # the name does not exist
    UNDETERMINED = "undetermined"  # time-out, SERVFAIL, REFUSED, unreadable: nothing is known


@dataclass(frozen=True, slots=True)
class DnsAnswer:
    """The answer to one question."""

    outcome: AnswerOutcome
    exchanges: tuple[MailExchange, ...] = ()  # for MX: lowest preference first; a null MX has the host ""
    texts: tuple[str, ...] = ()  # for A and AAAA addresses, for PTR names, for TXT the joined strings
    ttl: float = 0.0  # seconds
    message: str = ""  # the cause, if the outcome is undetermined or the DNS cannot carry the name
    alias: str = ""  # the end of a CNAME chain that the resolver did not follow


@dataclass(frozen=True, slots=True)
class AddressAnswer:
    """The addresses of a host, from its A and AAAA records."""

    host: str
    addresses: tuple[IPAddress, ...] = ()  # IPv4 first
    outcome: AnswerOutcome = AnswerOutcome.NODATA  # DATA if there is any address
    message: str = ""  # what failed
    is_complete: bool = True  # both address families were answered


def sort_exchanges(pairs: Iterable[tuple[int, str]]) -> tuple[MailExchange, ...]:
    """Sort exchanges by preference, then name; a host that occurs twice keeps its lowest preference.

    >>> [each.host for each in sort_exchanges([(20, "b.example"), (10, "a.example"), (30, "a.example")])]
    ['a.example', 'b.example']
    """
    best: dict[str, int] = {}
    for preference, host in sorted(pairs):
        best.setdefault(host, preference)
    return tuple(MailExchange(preference, host) for host, preference in best.items())[:MAX_EXCHANGES]
