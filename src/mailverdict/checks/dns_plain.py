"""The plain MX answer, which is most of what a column of addresses gets, read without a DNS library.

Plain means: NOERROR, nothing but MX records for the question itself, host names of the usual
characters, and at most an empty OPT record behind them. Everything else is for the full parser, and
whatever is read here is read alike there (the tests compare them on generated and on damaged messages).
"""

from __future__ import annotations

import re
import struct

from ..model.evidence import Exchange
from .dns_answer import sort_exchanges

__all__ = ["read_plain_mx"]

HEADER = struct.Struct("!HHHHHH")
RECORD = struct.Struct("!HHHIHH")  # owner, type, class, TTL, length of the data; the preference is the first of these
PREFERENCE_SIZE = 2
FLAGS_MASK, PLAIN_FLAGS = 0xFA0F, 0x8000  # QR, opcode, TC and rcode; the other flags change nothing
OWNER = 0xC000 | HEADER.size  # the pointer to the question by which servers name the owner
MX, CLASS_IN = 15, 1
MAX_TTL = 0x7FFFFFFF  # RFC 2181 section 8
MAX_LABEL = 63
MAX_POINTERS = 4  # servers write one or two
LABEL = re.compile(rb"[A-Za-z0-9_-]+")
MAX_HOST = 253
TAIL = re.compile(rb"\x00\x00\x29..\x00{6}", re.DOTALL)  # OPT (RFC 6891): no extended rcode, no flag, no option


def read_plain_mx(packet: bytes, section_size: int) -> tuple[tuple[Exchange, ...], int] | None:
    """Give the exchanges and the TTL, or None where the message is of any other form.

    Parameters
    ----------
    packet : bytes
        A message whose question was already found to be ours, and to ask for MX.
    section_size : int
        Octets of the question section.
    """
    try:
        _, flags, questions, answers, authorities, additionals = HEADER.unpack_from(packet)
        if flags & FLAGS_MASK != PLAIN_FLAGS or (questions, authorities) != (1, 0) or not answers:
            return None
        return read_records(packet, HEADER.size + section_size, answers, additionals)
    except (struct.error, IndexError):  # it ends too early
        return None


def read_records(packet: bytes, at: int, count: int, additionals: int) -> tuple[tuple[Exchange, ...], int] | None:
    """Read `count` MX records from `at`, then at most one OPT record."""
    pairs, lifetime = [], MAX_TTL
    for _ in range(count):
        owner, rdtype, rdclass, ttl, size, preference = RECORD.unpack_from(packet, at)
        at += RECORD.size
        end = at + size - PREFERENCE_SIZE
        host = read_host(packet, at, end)
        if (owner, rdtype, rdclass) != (OWNER, MX, CLASS_IN) or ttl > MAX_TTL or host is None:
            return None
        pairs.append((preference, host))
        lifetime = min(lifetime, ttl)
        at = end
    return (sort_exchanges(pairs), lifetime) if is_plain_tail(packet[at:], additionals) else None


def is_plain_tail(tail: bytes, additionals: int) -> bool:
    """Whether nothing follows the answers but one empty OPT record, or nothing at all."""
    return bool(TAIL.fullmatch(tail)) if additionals == 1 else not (tail or additionals)


def read_host(packet: bytes, start: int, end: int) -> str | None:
    """Read the name that fills `start` to `end`; None unless it is a usual host name, or the root.

    A pointer must lead backwards, to labels that end before those it follows: every step leaves
    less to read, so that no message makes this run long (RFC 9267 section 2).
    """
    labels: list[bytes] = []
    here, target = read_labels(packet, start, labels)
    if here != end:
        return None
    for _ in range(MAX_POINTERS):
        if target is None:
            break
        if not 0 <= target < start:
            return None
        stop, start = start, target
        here, target = read_labels(packet, start, labels)
        if here > stop:
            return None
    return host_of(labels) if target is None else None


def read_labels(packet: bytes, at: int, labels: list[bytes]) -> tuple[int, int | None]:
    """Read labels up to the root or a pointer; give where that ends, and where the pointer leads."""
    while 0 < (size := packet[at]) <= MAX_LABEL:
        labels.append(packet[at + 1 : at + 1 + size])
        at += 1 + size
    if size == 0:
        return at + 1, None
    return at + 2, (size << 8 | packet[at + 1]) - 0xC000  # negative for the label types that do not exist


def host_of(labels: list[bytes]) -> str | None:
    """Give labels as a lower-case name; None where one holds an unusual octet."""
    host = b".".join(labels)
    if len(host) > MAX_HOST or not all(map(LABEL.fullmatch, labels)):
        return None
    return host.decode("ascii").lower()
