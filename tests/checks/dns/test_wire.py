"""Questions are the octets that dnspython would send; no octets at all make the reading of an answer raise."""

from __future__ import annotations

import dns.edns
import dns.flags
import dns.message
import dns.rcode
import dns.rrset
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.checks.dns.answers import AnswerOutcome, DnsAnswer
from mailverdict.checks.dns.wire import (
    TYPE_CODES,
    Question,
    is_truncated,
    make_question,
    parse_answer,
    rcode_of,
)
from tests.doubles.tables import each_row

QUESTION = make_question("ada.example", "MX")
LABEL = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_/*", min_size=1, max_size=63)
NAME = st.lists(LABEL, min_size=1, max_size=6).map(".".join).filter(lambda name: len(name) <= 253)
RDTYPE = st.sampled_from(sorted(TYPE_CODES))


def response(
    *rrsets: str,
    rcode: int = dns.rcode.NOERROR,
    rdtype: str = "MX",
    authority: str = "",
    additional: str = "",
    flags: int = dns.flags.RA,
    error: int | None = None,  # an extended one (RFC 8914)
) -> bytes:
    """An answer to the question about ada.example, from records in presentation format."""
    message = dns.message.make_response(dns.message.make_query("ada.example", rdtype, use_edns=0))
    message.set_rcode(rcode)
    message.flags |= flags
    message.answer = [rrset_of(text) for text in rrsets]
    message.authority = [rrset_of(authority)] if authority else []
    message.additional = [rrset_of(additional)] if additional else []
    if error is not None:
        message.use_edns(options=[dns.edns.EDEOption(error, "why")])
    return message.to_wire(max_size=65_535)


def rrset_of(text: str) -> dns.rrset.RRset:
    owner, ttl, rdtype, *records = text.split("|")
    return dns.rrset.from_text(owner, int(ttl), "IN", rdtype, *records)


SOA = "example.|500|SOA|ns.example. host.example. 1 2 3 4 120"
POLICY = "rpz.local.|60|SOA|localhost. root.localhost. 1 2 3 4 60"
ADGUARD = (
    "ada.example.|10|SOA|fake-for-negative-caching.adguard.com. hostmaster.ada.example. 1 2 3 4 10"
)
FILTER = "a denial by a filter, not by the domain's zone"
NOBODY = "a denial by a server that neither recurses nor has authority"


class TestQuestion:
    @given(NAME, RDTYPE, st.integers(0, 0xFFFF), st.booleans())
    def test_octets_are_those_of_dnspython(self, name, rdtype, identifier, edns):
        theirs = dns.message.make_query(
            f"{name}.", rdtype, use_edns=0 if edns else -1, payload=1232, id=identifier
        )
        assert make_question(name, rdtype).packet(identifier, edns=edns) == theirs.to_wire()

    @given(st.binary(max_size=80))
    def test_no_octets_make_matching_raise(self, packet):
        assert QUESTION.is_answered_by(packet) in (True, False)

    @each_row(
        ("packet", "is_answer", "why"),
        [
            (response(), True, "our question"),
            (response().replace(b"ada", b"ADA"), True, "in capitals: names compare without case"),
            (response().replace(b"ada", b"bob"), False, "another name"),
            (response(rdtype="A"), False, "another type"),
            (QUESTION.packet(1, edns=False), False, "a query, as an echo sends it back"),
            (bytes.fromhex("0001 8081 0000 0000 0000 0000"), True, "FORMERR without a question"),
            (
                bytes.fromhex("0001 8083 0000 0000 0000 0000"),
                False,
                "NXDOMAIN without a question: of what?",
            ),
            (bytes.fromhex("0001 8080 0000 0000 0000 0000"), False, "NOERROR without a question"),
            (response()[:11], False, "less than a header"),
            (response()[:20], False, "half a question"),
            (response()[:4] + b"\0\2" + response()[6:], False, "two questions, it says"),
            (b"", False, "nothing"),
        ],
    )
    def test_only_an_answer_to_the_question_is_accepted(self, packet, is_answer, why):
        assert QUESTION.is_answered_by(packet) is is_answer, why


MX_ANSWER = "ada.example.|300|MX|20 b.example.|10 A.Example."


class TestAnswer:
    @each_row(
        ("packet", "outcome", "ttl"),
        [
            (response(MX_ANSWER), "data", 300),
            (
                response("ada.example.|60|CNAME|eva.example.", "eva.example.|300|MX|10 a.example."),
                "data",
                60,
            ),
            (response(authority=SOA), "nodata", 120),
            (response("ada.example.|60|CNAME|eva.example.", authority=SOA), "nodata", 60),
            (response(rcode=dns.rcode.NXDOMAIN, authority=SOA), "nxdomain", 120),
            (
                response(
                    "ada.example.|60|CNAME|eva.example.", rcode=dns.rcode.NXDOMAIN, authority=SOA
                ),
                "nxdomain",
                60,
            ),
            (response(), "nodata", 300),
            (response(authority=SOA, flags=dns.flags.AA), "nodata", 120),
            (response(rcode=dns.rcode.NXDOMAIN, authority=SOA, error=29), "nxdomain", 120),
        ],
        ids=[
            "MX",
            "alias",
            "nothing",
            "alias to nothing",
            "no name",
            "alias to no name",
            "no SOA",
            "of the zone's server",
            "synthesized of a signed denial",
        ],
    )
    def test_what_an_answer_amounts_to(self, packet, outcome, ttl):
        answer = parse_answer(packet, QUESTION)
        assert (answer.outcome, answer.ttl, answer.message) == (outcome, ttl, "")

    @each_row(
        ("packet", "message"),
        [
            (response(rcode=dns.rcode.SERVFAIL), "SERVFAIL"),
            (response(rcode=dns.rcode.REFUSED), "REFUSED"),
            (response(rcode=dns.rcode.NOTIMP), "NOTIMP"),
            (response(rcode=dns.rcode.BADVERS), "BADVERS"),
            (response(authority="example.|300|NS|ns.example."), "a referral instead of an answer"),
            (response(MX_ANSWER, rcode=dns.rcode.NXDOMAIN), "an unreadable answer"),
            (response(MX_ANSWER)[:-20], "an unreadable answer"),
            (response(MX_ANSWER) + b"junk", "an unreadable answer"),
            (response("ada.example.|60|CNAME|ada.example."), "an endless chain of aliases"),
            (
                response(r"ada.example.|60|CNAME|e\000va.example."),
                "an alias that cannot be asked about",
            ),
        ],
    )
    def test_message_without_a_result_is_undetermined(self, packet, message):
        assert parse_answer(packet, QUESTION) == DnsAnswer(
            AnswerOutcome.UNDETERMINED, message=message
        )

    @each_row(
        ("packet", "message"),
        [
            (
                response(rcode=dns.rcode.NXDOMAIN, error=15),
                "an answer that the resolver calls blocked (RFC 8914)",
            ),
            (
                response(authority=SOA, error=17),
                "an answer that the resolver calls filtered (RFC 8914)",
            ),
            (response(MX_ANSWER, error=4), "an answer that the resolver calls forged (RFC 8914)"),
            (
                response(rcode=dns.rcode.NXDOMAIN, authority=SOA, error=19),
                "an answer that the resolver calls stale (RFC 8914)",
            ),
            (response(rcode=dns.rcode.NXDOMAIN, flags=0), NOBODY),
            (response(authority=SOA, flags=0), NOBODY),
            (response(rcode=dns.rcode.NXDOMAIN, authority=POLICY), FILTER),
            (response(rcode=dns.rcode.NXDOMAIN, authority=SOA, additional=POLICY), FILTER),
            (response(additional=POLICY), FILTER),
            (response("ada.example.|60|CNAME|eva.test.", authority=POLICY), FILTER),
            (response(rcode=dns.rcode.NXDOMAIN, authority=ADGUARD), FILTER),
            (response("bob.example.|300|MX|10 evil.example."), "records of another name or type"),
            (response("ada.example.|300|A|192.0.2.1"), "records of another name or type"),
        ],
    )
    def test_denial_that_is_not_of_the_domains_zone_is_undetermined(self, packet, message):
        assert parse_answer(packet, QUESTION) == DnsAnswer(
            AnswerOutcome.UNDETERMINED, message=message
        )

    def test_message_of_another_kind_is_not_an_answer(self):
        packet = bytearray(response())
        packet[2] |= 5 << 3  # UPDATE
        assert parse_answer(bytes(packet), QUESTION).outcome is AnswerOutcome.UNDETERMINED

    def test_alias_that_is_not_followed_is_reported(self):
        answer = parse_answer(response("ada.example.|60|CNAME|Eva.Example."), QUESTION)
        assert (answer.outcome, answer.alias, answer.ttl) == (
            AnswerOutcome.NODATA,
            "eva.example",
            60,
        )

    def test_compression_loop_is_unreadable(self):
        packet = response(MX_ANSWER)
        at = packet.index(b"\x01b\xc0\x10")
        packet = packet[: at + 2] + bytes([0xC0, at]) + packet[at + 4 :]
        assert parse_answer(packet, QUESTION).message == "an unreadable answer"

    @given(st.binary(max_size=300))
    def test_no_octets_make_reading_raise(self, junk):
        for packet in (
            junk,
            response()[:12] + junk,
            response()[: 12 + len(QUESTION.section)] + junk,
        ):
            if len(packet) >= 12:
                assert isinstance(parse_answer(packet, QUESTION), DnsAnswer)
                assert is_truncated(packet) in (True, False)
                assert 0 <= rcode_of(packet) < 16

    @given(RDTYPE, st.data())
    def test_no_damage_makes_reading_raise(self, rdtype, data):
        records = {
            "A": "127.0.0.1",
            "AAAA": "::1",
            "MX": "10 a.example.",
            "PTR": "a.example.",
            "TXT": '"x"',
        }
        whole = response(
            f"ada.example.|300|{rdtype}|{records[rdtype]}", rdtype=rdtype, authority=SOA
        )
        packet = bytearray(whole)
        for at, octet in data.draw(
            st.lists(st.tuples(st.integers(12, len(whole) - 1), st.integers(0, 255)), max_size=6)
        ):
            packet[at] = octet
        cut = data.draw(st.integers(12, len(whole)))
        assert isinstance(
            parse_answer(bytes(packet[:cut]), Question(rdtype, QUESTION.section)), DnsAnswer
        )
