"""The direct reading of usual answers gives what dnspython gives, or leaves the message to it."""

from __future__ import annotations

import struct

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rrset
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.checks.dns.wire import make_question, parse_message, parse_plain
from tests.doubles.tables import each_row

LABEL = st.text("abcXYZ019-_", min_size=1, max_size=12)
ODD_LABEL = st.text("ab\x00\xff.\\ é", min_size=1, max_size=4).map(
    lambda text: text.encode("latin-1")
)
HOST = st.lists(LABEL, max_size=4).map(
    lambda labels: dns.name.Name([each.encode() for each in labels] + [b""])
)
BELOW = st.lists(LABEL, min_size=1, max_size=2).map(
    lambda labels: dns.name.Name([each.encode() for each in labels] + [b"ada", b"example", b""])
)
ODD_HOST = st.lists(ODD_LABEL, min_size=1, max_size=3).map(
    lambda labels: dns.name.Name([*labels, b""])
)
RECORDS = st.lists(
    st.tuples(st.integers(0, 0xFFFF), st.one_of(HOST, BELOW, ODD_HOST)), min_size=1, max_size=8
)
SECTION = make_question("ada.example", "MX").section


NAMES = st.sampled_from(
    [
        "example.",
        "ns.example.",
        "mx1.ada.example.",
        "b.elsewhere.test.",
        ".",
        r"odd\046name.example.",
    ]
)
AUTHORITY = st.lists(
    st.one_of(
        NAMES.map(lambda name: ("example.", "NS", name)),
        NAMES.map(lambda name: ("example.", "SOA", f"{name} host.example. 1 2 3 4 60")),
        st.sampled_from([".", "ada.example.", "elsewhere.test."]).map(
            lambda owner: (owner, "SOA", ". . 1 2 3 4 4294967295")
        ),
        st.just(("example.", "TXT", "text")),
    ),
    max_size=3,
)
ADDITIONAL = st.lists(
    st.one_of(
        NAMES.map(lambda name: (name, "A", "127.0.0.1")),
        NAMES.map(lambda name: (name, "AAAA", "::1")),
        st.just(("a.example.", "TXT", "text")),
    ),
    max_size=3,
)


def rrset(owner: str, rdtype: str, *records: str, ttl: int = 300) -> dns.rrset.RRset:
    return dns.rrset.from_text(owner, ttl, "IN", rdtype, *records)


def message_of(
    records,
    ttl=300,
    *,
    edns=True,
    authority=(),
    additional=(),
    rcode=dns.rcode.NOERROR,
    recursive=True,
) -> dns.message.Message:
    query = dns.message.make_query("ada.example.", "MX", use_edns=0 if edns else -1)
    message = dns.message.make_response(query, recursion_available=recursive)
    message.set_rcode(rcode)
    if records:
        message.answer.append(
            rrset("ada.example.", "MX", *(f"{n} {host.to_text()}" for n, host in records), ttl=ttl)
        )
    message.authority += [rrset(*each) for each in authority]
    message.additional += [rrset(*each) for each in additional]
    return message


MESSAGES = st.builds(
    message_of,
    st.one_of(RECORDS, st.just([])),
    st.integers(0, 2**32 - 1),
    edns=st.booleans(),
    authority=AUTHORITY,
    additional=ADDITIONAL,
    rcode=st.sampled_from(
        [dns.rcode.NOERROR, dns.rcode.NXDOMAIN, dns.rcode.SERVFAIL, dns.rcode.BADVERS]
    ),
)


def assert_alike(packet: bytes, rdtype="MX") -> bool:
    """Check a message; tell whether it was read here at all."""
    plain = parse_plain(packet, rdtype)
    assert plain is None or plain == parse_message(packet, rdtype)
    return plain is not None


@given(
    st.lists(st.tuples(st.integers(0, 0xFFFF), st.one_of(HOST, BELOW)), min_size=1, max_size=8),
    st.booleans(),
)
def test_exchanges_with_usual_names_are_read_here(records, edns):
    assert assert_alike(message_of(records, edns=edns).to_wire())


@pytest.mark.slow
@given(MESSAGES)
def test_generated_answers_are_read_alike(message):
    assert_alike(message.to_wire())


@given(MESSAGES, st.data())
def test_damaged_answers_are_read_alike(message, data):
    whole = message.to_wire()
    packet = bytearray(whole)
    places = st.one_of(
        st.integers(2, 11), st.integers(12 + len(SECTION), max(len(whole) - 1, 12 + len(SECTION)))
    )
    for at, octet in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=4)):
        packet[at : at + 1] = bytes([octet])
    cut = data.draw(st.one_of(st.just(len(packet)), st.integers(12, len(packet))))
    assert_alike(
        bytes(packet[:cut])
        + data.draw(st.sampled_from([b"", b"\0", b"\0\0\x29\x04\xd0\0\0\0\0\0\0"]))
    )


@given(st.data())
def test_pointers_anywhere_are_read_alike(data):
    """Names out of labels and pointers at random: forwards, backwards, to themselves, into the middle of labels."""
    piece = st.one_of(
        st.sampled_from(
            [b"\x01a", b"\x03mx1", b"\0", b"\xc0\x0c", b"\xc0\x10", b"\x40\x01", b"\x80\x01"]
        ),
        st.integers(0, 120).map(lambda target: bytes([0xC0, target])),
    )
    name = st.lists(piece, min_size=1, max_size=4).map(b"".join)
    counts = data.draw(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 2)))
    records = b""
    for count, rdtype in zip(counts, (15, 2, 1), strict=True):
        for _ in range(count):
            owner = data.draw(st.one_of(st.just(b"\xc0\x0c"), name))
            rdata = {15: b"\0\x0a", 2: b"", 1: b"\x7f\0\0\1"}[rdtype] + (
                b"" if rdtype == 1 else data.draw(name)
            )
            records += (
                owner
                + bytes([0, rdtype])
                + b"\0\x01\0\0\0\x3c"
                + len(rdata).to_bytes(2, "big")
                + rdata
            )
    header = bytes.fromhex("0001 8180 0001") + b"".join(
        count.to_bytes(2, "big") for count in counts
    )
    assert_alike(header + SECTION + records)


def addresses_of(rdtype, octets, ttls, *, authority=(), additional=()) -> bytes:
    """An answer with addresses, which may repeat, each with its own TTL."""
    query = dns.message.make_query("ada.example.", rdtype, use_edns=0)
    message = dns.message.make_response(query, recursion_available=True)
    message.authority += [rrset(*each) for each in authority]
    message.additional += [rrset(*each) for each in additional]
    empty = message.to_wire()
    start = 12 + len(SECTION)
    code, size = {"A": (1, 4), "AAAA": (28, 16)}[rdtype]
    records = b"".join(
        b"\xc0\x0c" + struct.pack("!HHIH", code, 1, ttl, len(each)) + each
        for each, ttl in zip(octets, ttls, strict=True)
    )
    assert all(len(each) == size for each in octets)
    return empty[:6] + len(octets).to_bytes(2, "big") + empty[8:start] + records + empty[start:]


@given(st.data(), st.sampled_from(["A", "AAAA"]))
def test_addresses_are_read_alike(data, rdtype):
    size = {"A": 4, "AAAA": 16}[rdtype]
    octet = st.sampled_from([0, 1, 127, 255])
    octets = data.draw(
        st.lists(st.lists(octet, min_size=size, max_size=size).map(bytes), max_size=5)
    )
    ttls = data.draw(
        st.lists(st.integers(0, 2**31 - 1), min_size=len(octets), max_size=len(octets))
    )
    packet = addresses_of(rdtype, octets, ttls, authority=[THE_SOA])
    assert assert_alike(packet, rdtype)
    assert_alike(packet, "MX")
    start = 12 + len(SECTION)
    at = data.draw(st.integers(start, len(packet) - 1))
    damaged = packet[:at] + bytes([data.draw(octet)]) + packet[at + 1 :]
    assert_alike(damaged, rdtype)
    assert_alike(packet[:at], rdtype)


def test_mapped_addresses_and_many_addresses_are_read_alike():
    for each in (
        "00" * 10 + "ffff7f000001",
        "00" * 12 + "7f000001",
        "2001" + "00" * 13 + "01",
        "fe80" + "00" * 14,
    ):
        assert assert_alike(addresses_of("AAAA", [bytes.fromhex(each)], [60]), "AAAA")
    many = [n.to_bytes(4, "big") for n in range(100)]
    assert assert_alike(addresses_of("A", many, [60] * len(many)), "A")


ONE = message_of([(10, dns.name.from_text("mx.ada.example."))])


THE_SOA = ("example.", "SOA", "ns.example. host.example. 1 2 3 4 60")
ADGUARD = (
    "ada.example.",
    "SOA",
    "fake-for-negative-caching.adguard.com. hostmaster.ada.example. 1 2 3 4 60",
)


def changed(**parts) -> bytes:
    message = message_of([(10, dns.name.from_text("mx.ada.example."))])
    for name, value in parts.items():
        setattr(message, name, value)
    return message.to_wire()


@each_row(
    ("packet", "is_plain", "why"),
    [
        (ONE.to_wire(), True, "what resolvers send"),
        (changed(flags=ONE.flags | dns.flags.AA | dns.flags.RA | dns.flags.AD), True, "flags that change nothing"),
        (message_of([(0, dns.name.root)]).to_wire(), True, "a null MX"),
        (changed(flags=ONE.flags | dns.flags.TC), False, "truncated"),
        (changed(flags=ONE.flags | dns.rcode.NXDOMAIN), False, "NXDOMAIN, with an answer"),
        (changed(authority=[rrset("example.", "NS", "a.example.")]), True, "name servers along"),
        (changed(additional=[rrset("mx.ada.example.", "A", "127.0.0.1")]), True, "addresses along"),
        (message_of([], authority=[THE_SOA]).to_wire(), True, "NODATA"),
        (message_of([], authority=[THE_SOA], rcode=3).to_wire(), True, "NXDOMAIN"),
        (message_of([], authority=[(".", "SOA", "a. b. 1 2 3 4 60")], rcode=3).to_wire(), True, "no such TLD"),
        (message_of([], authority=[THE_SOA], rcode=3, recursive=False).to_wire(), False, "not by a recursive server"),
        (message_of([], authority=[ADGUARD], rcode=3).to_wire(), False, "NXDOMAIN of a filter"),
        (message_of([], authority=[THE_SOA], rcode=2).to_wire(), False, "SERVFAIL"),
        (message_of([], authority=[("b.test.", *THE_SOA[1:])]).to_wire(), False, "the SOA of somewhere else"),
        (message_of([], authority=[("example.", "NS", "a.example.")]).to_wire(), False, "a referral"),
        (message_of([], rcode=3).to_wire(), False, "NXDOMAIN without a lifetime"),
        (changed(answer=[rrset("ada.example.", "CNAME", "b.example."), *ONE.answer]), False, "an alias"),
        (changed(answer=[rrset("eva.example.", "MX", "1 b.example."), *ONE.answer]), False, "records of another name"),
        (changed(answer=[]), False, "no answer"),
        (message_of([(1, dns.name.from_text(r"a\.b.example."))]).to_wire(), False, "a dot within a label"),
        (message_of([(1, dns.name.from_text("a"))], 0).to_wire(), True, "one label, and no lifetime"),
        (ONE.to_wire() + b"\0", False, "something after the end"),
        (ONE.to_wire()[:-1], False, "cut"),
        (b"", False, "nothing"),
    ],
)  # fmt: skip
def test_only_the_plain_form_is_read_here(packet, is_plain, why):
    assert assert_alike(packet) is is_plain, why


def raw(*sections: list[tuple[bytes, int, bytes]]) -> bytes:
    """A message by hand: in each section owner, type and data of its records."""
    counts = b"".join(len(section).to_bytes(2, "big") for section in sections)
    records = b"".join(
        owner
        + rdtype.to_bytes(2, "big")
        + b"\0\x01\0\0\0\x3c"
        + len(rdata).to_bytes(2, "big")
        + rdata
        for section in sections
        for owner, rdtype, rdata in section
    )
    return bytes.fromhex("0001 8180 0001") + counts + SECTION + records


# The name asked about; where the host of the first MX record is.
US, HOST_AT = (
    b"\xc0\x0c",
    12 + len(SECTION) + 14,
)
NUMBERS = bytes(16) + b"\0\0\0\x3c"


def with_opt(count: int) -> bytes:
    """A message with so many OPT records."""
    packet = raw([(US, 15, b"\0\x0a\0")], [], [])
    return (
        packet[:10]
        + count.to_bytes(2, "big")
        + packet[12:]
        + bytes.fromhex("00 0029 04d0 00000000 0000") * count
    )


@each_row(
    ("packet", "is_plain", "why"),
    [
        (raw([(US, 15, b"\0\x0a\x02mx" + US)], [], []), True, "well made"),
        (raw([(US, 15, b"\0\x0a\xc0" + bytes([HOST_AT]))], [], []), False, "a pointer to itself"),
        (
            raw([(US, 15, b"\0\x0a\xbf\xff"), (US, 15, b"\0\x0a\0")], [], []),
            False,
            "a kind of label that does not exist",
        ),
        (
            raw([(US, 15, b"\0\x0a\xc0" + bytes([HOST_AT + 2])), (US, 15, b"\0\x0a\0")], [], []),
            False,
            "a pointer forwards",
        ),
        (
            raw([(US, 15, b"\x01a\xc0" + bytes([HOST_AT - 2]))], [], []),
            False,
            "a pointer to where it would be read again",
        ),
        (
            raw([(US, 15, b"\x01a\x01b\xc0" + bytes([HOST_AT - 2]))], [], []),
            False,
            "the same with a label between",
        ),
        (raw([(US, 15, b"\0\x0a\0\0")], [], []), False, "an octet behind the host"),
        (raw([(US, 15, b"\0\x0a\x02mx")], [], []), False, "no end of the host"),
        (raw([], [(US, 6, b"\0\0" + NUMBERS)], []), True, "the lifetime of nothing"),
        (raw([], [(US, 6, b"\0\0" + NUMBERS + b"\0")], []), False, "an octet behind it"),
        (
            raw([], [(US, 6, b"\0\0" + NUMBERS), (US, 6, b"\0\0" + bytes(20))], []),
            False,
            "two lifetimes",
        ),
        (
            raw([], [(b"\xc0\x10", 6, b"\0\0" + NUMBERS), (US, 6, b"\0\0" + bytes(20))], []),
            False,
            "two, one nearer",
        ),
        (
            raw([(US, 15, b"\0\x0a\0")], [], [(US, 1, bytes(4)), (US, 28, bytes(16))]),
            True,
            "addresses of both kinds",
        ),
        (raw([(US, 15, b"\0\x0a\0")], [], [(US, 1, bytes(5))]), False, "an address of five octets"),
        (
            raw([(US, 15, b"\0\x0a\0")], [], [(US, 28, bytes(4))]),
            False,
            "an address of the wrong kind",
        ),
        (
            raw([(US, 15, b"\0\x0a\0")], [], [(b"\0", 41, b"")]),
            False,
            "an OPT record with flags that do not exist",
        ),
        (with_opt(1), True, "an OPT record"),
        (with_opt(2), False, "two of them"),
    ],
)
def test_only_whole_and_sound_records_are_read_here(packet, is_plain, why):
    assert assert_alike(packet) is is_plain, why


def test_a_ttl_beyond_31_bits_is_left_to_dnspython():
    packet = bytearray(ONE.to_wire())
    at = 12 + len(SECTION) + 6
    packet[at] = 0x80
    assert not assert_alike(bytes(packet))


def test_a_chain_of_pointers_is_followed_for_a_few_steps_only():
    """Each record's host points into the one before: dnspython reads sixteen, servers write two."""
    for depth, is_plain in ((2, True), (12, False)):
        records, target = b"", 12
        for _ in range(depth):
            at = 12 + len(SECTION) + len(records) + 14
            records += b"\xc0\x0c\0\x0f\0\x01\0\0\0\x3c\0\x06\0\x0a\x01a" + bytes(
                [0xC0 | target >> 8, target & 0xFF]
            )
            target = at
        header = bytes.fromhex("0001 8180 0001") + depth.to_bytes(2, "big") + bytes(4)
        assert assert_alike(header + SECTION + records) is is_plain
