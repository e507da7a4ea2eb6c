"""Answers gone wrong: what a resolver sees of broken servers, bad networks and forgers. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import dns.flags
import dns.message
import dns.rcode
import dns.rrset

__all__ = ["Fault", "fits_datagram", "spoil", "start_response"]

HEADER_SIZE = 12
WITHOUT_EDNS = 512  # octets of a datagram where the query does not offer more (RFC 1035 section 2.3.4)
LARGEST = 65_535  # octets of a message over TCP


class Fault(StrEnum):
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


def spoil(fault: Fault | None, query: dns.message.Message, truth: dns.message.Message, *, tcp: bool) -> list[bytes]:
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

SPOILERS: dict[Fault, Spoiler] = {
    Fault.SERVFAIL: lambda query, _: [with_rcode(query, dns.rcode.SERVFAIL)],
    Fault.REFUSED: lambda query, _: [with_rcode(query, dns.rcode.REFUSED)],
    Fault.NXDOMAIN: lambda query, _: [with_rcode(query, dns.rcode.NXDOMAIN)],
    Fault.REFERRAL: lambda query, _: [with_referral(query)],
    Fault.NO_EDNS: unless_edns,
    Fault.ALIAS_ONLY: lambda _, truth: [with_alias_only(truth)],
    Fault.SILENCE: lambda _query, _truth: [],
    Fault.TRUNCATED: lambda query, _: [with_truncation(query)],
    Fault.TCP_SILENCE: lambda query, _: [with_truncation(query)],
    Fault.TCP_FORGED: lambda query, _: [with_truncation(query)],
    Fault.GARBAGE: lambda query, _: [with_garbage(query)],
    Fault.WRONG_ID: lambda query, _: [with_wrong_id(query)],
    Fault.WRONG_QUESTION: lambda query, _: [with_wrong_question(query)],
    Fault.FORGED_FIRST: lambda query, truth: [with_wrong_id(query), with_wrong_question(query), whole(truth)],
}
# Those of which only the datagrams are spoiled as above, and what TCP says then.
ONLY_UDP: dict[Fault, Spoiler] = {
    Fault.TRUNCATED: lambda _, truth: [whole(truth)],
    Fault.TCP_SILENCE: lambda _query, _truth: [],
    Fault.TCP_FORGED: lambda query, _: [with_wrong_question(query)],
}
