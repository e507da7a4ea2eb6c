"""Names in their normal form, and those that the DNS cannot carry."""

from __future__ import annotations

import dns.name
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.checks.dns.names import InvalidNameError, normal_name
from tests.doubles.tables import each_row


@each_row(
    ("name", "normal"),
    [
        ("Ada.Example", "ada.example"),
        ("ada.example.", "ada.example"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.Example.", "xn--bcher-kva.example"),
        ("straße.example", "xn--strae-oqa.example"),
        ("例え。jp", "xn--r8jz45g.jp"),
        ("_dmarc.ada_b.example", "_dmarc.ada_b.example"),
        ("1.0/25.2.0.192.in-addr.arpa", "1.0/25.2.0.192.in-addr.arpa"),
        ("a" * 63 + ".example", "a" * 63 + ".example"),
        (".".join(["a" * 49] * 5) + ".abc.", ".".join(["a" * 49] * 5) + ".abc"),
    ],
)
def test_a_name_has_one_normal_form(name, normal):
    assert normal_name(name) == normal


@each_row(
    ("name", "message"),
    [
        (
            "a" * 64 + ".example",
            "a label has at most 63 characters (RFC 1035), one of this name has 64",
        ),
        (
            ".".join(["a" * 49] * 5) + ".abcd",
            "a domain name has at most 253 characters (RFC 1035), this has 254",
        ),
        ("a..example", "the name has an empty label"),
        ("", "the name has an empty label"),
        ("a\x00b.example", "the name contains a character that is not allowed in domain names"),
        ("a\\b.example", "the name contains a character that is not allowed in domain names"),
        ("\ud800.example", "the name cannot be written in A-labels (RFC 5891)"),
    ],
)
def test_what_the_dns_cannot_carry(name, message):
    with pytest.raises(InvalidNameError) as caught:
        normal_name(name)
    assert str(caught.value) == message


@given(st.one_of(st.text(max_size=300), st.text("ab.-_ü\u200d ", max_size=80)))
def test_any_text_is_a_name_for_dnspython_or_refused(text):
    try:
        name = normal_name(text)
    except InvalidNameError:
        return
    assert normal_name(name) == name
    assert dns.name.from_text(name).to_text(omit_final_dot=True).replace("\\", "") == name
