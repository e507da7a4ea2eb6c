"""The direct reading of plain MX answers gives what dnspython gives, or leaves the message to it."""

from __future__ import annotations

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mailverdict.checks.dns_plain import read_plain_mx
from mailverdict.checks.dns_wire import make_question, parse_message

LABEL = st.text("abcXYZ019-_", min_size=1, max_size=12)
ODD_LABEL = st.text("ab\x00\xff.\\ é", min_size=1, max_size=4).map(lambda text: text.encode("latin-1"))
HOST = st.lists(LABEL, max_size=4).map(lambda labels: dns.name.Name([each.encode() for each in labels] + [b""]))
BELOW = st.lists(LABEL, min_size=1, max_size=2).map(
    lambda labels: dns.name.Name([each.encode() for each in labels] + [b"ada", b"example", b""])
)
ODD_HOST = st.lists(ODD_LABEL, min_size=1, max_size=3).map(lambda labels: dns.name.Name([*labels, b""]))
RECORDS = st.lists(st.tuples(st.integers(0, 0xFFFF), st.one_of(HOST, BELOW, ODD_HOST)), min_size=1, max_size=8)
SECTION = make_question("ada.example", "MX").section


def message_of(records, ttl: int = 300, *, edns: bool = True) -> dns.message.Message:
    message = dns.message.make_response(dns.message.make_query("ada.example.", "MX", use_edns=0 if edns else -1))
    texts = [f"{preference} {host.to_text()}" for preference, host in records]
    message.answer.append(dns.rrset.from_text("ada.example.", ttl, "IN", "MX", *texts))
    return message


def assert_alike(packet: bytes) -> bool:
    """Check a message; tell whether it was read here at all."""
    plain = read_plain_mx(packet, len(SECTION))
    if plain is not None:
        theirs = parse_message(packet, "MX")
        assert (theirs.outcome, theirs.exchanges, theirs.ttl) == ("data", plain[0], float(plain[1]))
    return plain is not None


@given(RECORDS, st.integers(0, 2**31 - 1), st.booleans())
def test_generated_answers_are_read_alike(records, ttl, edns):
    is_plain = all(host == dns.name.root or host.to_text().replace("\\", "") == host.to_text() for _, host in records)
    read = assert_alike(message_of(records, ttl, edns=edns).to_wire())
    assert read or not is_plain or any("@" in host.to_text() for _, host in records)


@settings(max_examples=500)
@given(RECORDS, st.booleans(), st.data())
def test_damaged_answers_are_read_alike(records, edns, data):
    whole = message_of(records, edns=edns).to_wire()
    packet = bytearray(whole)
    places = st.one_of(st.integers(2, 11), st.integers(12 + len(SECTION), len(whole) - 1))
    for at, octet in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=4)):
        packet[at] = octet
    cut = data.draw(st.one_of(st.just(len(whole)), st.integers(12, len(whole))))
    assert_alike(bytes(packet[:cut]) + data.draw(st.sampled_from([b"", b"\0", b"\0\0\x29\x04\xd0\0\0\0\0\0\0"])))


@settings(max_examples=500)
@given(st.data())
def test_pointers_anywhere_are_read_alike(data):
    """Names out of labels and pointers at random: forwards, backwards, to themselves, into the middle of labels."""
    piece = st.one_of(
        st.sampled_from([b"\x01a", b"\x03mx1", b"\0", b"\xc0\x0c", b"\xc0\x10", b"\x40\x01", b"\x80\x01"]),
        st.integers(0, 120).map(lambda target: bytes([0xC0, target])),
    )
    records = b""
    count = data.draw(st.integers(1, 4))
    for _ in range(count):
        host = b"".join(data.draw(st.lists(piece, min_size=1, max_size=4)))
        records += b"\xc0\x0c\0\x0f\0\x01\0\0\0\x3c" + (len(host) + 2).to_bytes(2, "big") + b"\0\x0a" + host
    header = bytes.fromhex("0001 8180 0001") + count.to_bytes(2, "big") + bytes(4)
    assert_alike(header + SECTION + records)


ONE = message_of([(10, dns.name.from_text("mx.ada.example."))])


def rrset(owner: str, rdtype: str, record: str) -> dns.rrset.RRset:
    return dns.rrset.from_text(owner, 300, "IN", rdtype, record)


def changed(**parts) -> bytes:
    message = message_of([(10, dns.name.from_text("mx.ada.example."))])
    for name, value in parts.items():
        setattr(message, name, value)
    return message.to_wire()


@pytest.mark.parametrize(
    ("packet", "is_plain", "why"),
    [
        (ONE.to_wire(), True, "what resolvers send"),
        (changed(flags=ONE.flags | dns.flags.AA | dns.flags.RA | dns.flags.AD), True, "flags that change nothing"),
        (message_of([(0, dns.name.root)]).to_wire(), True, "a null MX"),
        (changed(flags=ONE.flags | dns.flags.TC), False, "truncated"),
        (changed(flags=ONE.flags | dns.rcode.NXDOMAIN), False, "NXDOMAIN, with an answer"),
        (changed(authority=[rrset("example.", "NS", "a.example.")]), False, "an authority section"),
        (changed(additional=[rrset("mx.ada.example.", "A", "127.0.0.1")]), False, "addresses along"),
        (changed(answer=[rrset("ada.example.", "CNAME", "b.example."), *ONE.answer]), False, "an alias"),
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
            records += b"\xc0\x0c\0\x0f\0\x01\0\0\0\x3c\0\x06\0\x0a\x01a" + bytes([0xC0 | target >> 8, target & 0xFF])
            target = at
        header = bytes.fromhex("0001 8180 0001") + depth.to_bytes(2, "big") + bytes(4)
        assert assert_alike(header + SECTION + records) is is_plain
