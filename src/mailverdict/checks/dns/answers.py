"""What one DNS look-up gave: plain values, with no wire format and no I/O."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from ...model.evidence import Exchange

__all__ = ["AddressAnswer", "Answer", "AnswerOutcome", "IPAddress", "RecordType", "sort_exchanges"]

RecordType = Literal["A", "AAAA", "MX", "PTR", "TXT"]
IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

# RFC 5321 section 5.1 lets a sender limit how many exchanges it tries; the largest mail operators
# publish fewer than 20. The bound stops a 64 KiB answer of made-up exchanges from spreading.
MAX_EXCHANGES = 64
MAX_TEXTS = 64  # addresses, names or strings kept of one RRset, for the same reason


class AnswerOutcome(StrEnum):
    """What the answer to one question amounts to."""

    DATA = "data"  # the name has records of the type
    NODATA = "nodata"  # the name exists, with no record of the type (RFC 2308 section 2.2)
    NXDOMAIN = "nxdomain"  # the name does not exist
    UNDETERMINED = "undetermined"  # time-out, SERVFAIL, REFUSED, unreadable: nothing is known


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one question.

    Attributes
    ----------
    outcome : AnswerOutcome
        What the answer amounts to.
    exchanges : tuple of Exchange
        For MX: by preference, lowest first; a null MX has the host ``""``. At most 64.
    texts : tuple of str
        For A and AAAA the addresses, for PTR lower-case names without the final dot, for TXT the
        joined character strings; in the order of the answer, at most 64.
    ttl : float
        Seconds for which the answer may be remembered.
    message : str
        Why nothing is known, in a sentence; empty unless the outcome is undetermined, or the name
        is one that the DNS cannot carry.
    alias : str
        Where a chain of CNAME records left the answer, if the resolver did not follow it.
    """

    outcome: AnswerOutcome
    exchanges: tuple[Exchange, ...] = ()
    texts: tuple[str, ...] = ()
    ttl: float = 0.0
    message: str = ""
    alias: str = ""


@dataclass(frozen=True, slots=True)
class AddressAnswer:
    """The addresses of a host, from its A and AAAA records.

    Attributes
    ----------
    host : str
        As it was asked.
    addresses : tuple of ipaddress.IPv4Address or ipaddress.IPv6Address
        IPv4 first, each in the order of its answer.
    outcome : AnswerOutcome
        DATA with at least one address; UNDETERMINED only without any.
    message : str
        What failed, in a sentence; empty when nothing did.
    is_complete : bool
        Whether both address families were answered; without, there may be more addresses.
    """

    host: str
    addresses: tuple[IPAddress, ...] = ()
    outcome: AnswerOutcome = AnswerOutcome.NODATA
    message: str = ""
    is_complete: bool = True


def sort_exchanges(pairs: Iterable[tuple[int, str]]) -> tuple[Exchange, ...]:
    """Order exchanges by preference, then name; a host given twice keeps its lowest preference.

    >>> [each.host for each in sort_exchanges([(20, "b.example"), (10, "a.example"), (30, "a.example")])]
    ['a.example', 'b.example']
    """
    best: dict[str, int] = {}
    for preference, host in sorted(pairs):
        best.setdefault(host, preference)
    return tuple(Exchange(preference, host) for host, preference in best.items())[:MAX_EXCHANGES]
