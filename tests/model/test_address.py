"""When two texts are one address."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mailverdict.checks.syntax.address import observe_syntax
from mailverdict.model.address import address_key, address_keys, lower_domain
from tests.doubles.tables import each_row

# An address, and the text it is known by.
CASES = [
    ("ada@example.org", "ada@example.org"),
    (" ada@example.org\t", "ada@example.org"),
    ("Ada.L@Example.ORG", "Ada.L@example.org"),
    ("ADA@B\u00dcCHER.DE", "ADA@b\u00fccher.de"),
    ("a@B@C.org", "a@B@c.org"),
    # Not the final sigma, another domain.
    (
        "ada@\u039d\u0395\u039f\u03a3.gr",
        "ada@\u03bd\u03b5\u03bf\u03c3.gr",
    ),
    ("ada@\u0130.com", "ada@i\u0307.com"),
    ("NoBody", "NoBody"),
    ("@X.org", "@x.org"),
    ("", ""),
]


@each_row(("email", "known_by"), CASES)
def test_an_address_is_known_by_one_text(email, known_by):
    assert address_key(email) == known_by
    assert address_keys(pa.array([email.strip()])).to_pylist() == [known_by]


def test_a_column_without_capitals_is_not_copied():
    emails = pa.array(["ada@example.org", "BOB@example.org"])
    assert address_keys(emails) is emails


ADDRESSES = st.from_regex(
    r"[A-Za-z]{1,3}@[A-Za-z\u00c0-\u03ff\u0410-\u044f]{1,6}\.[A-Za-z]{2,3}", fullmatch=True
)


@pytest.mark.slow
@given(st.lists(ADDRESSES | st.text(), max_size=6))
@example(["a@\x1fB", "\u2028a@B.c\u2028"])
def test_a_column_agrees_with_one_by_one(emails):
    stripped = [email.strip() for email in emails if email.isprintable()]
    assert address_keys(pa.array(stripped, pa.string())).to_pylist() == [
        address_key(email) for email in stripped
    ]


@given(ADDRESSES)
def test_it_is_the_same_mailbox_at_the_same_domain(email):
    seen, known = observe_syntax(email), observe_syntax(address_key(email))
    assert (seen.ok, seen.local, seen.ascii_domain) == (known.ok, known.local, known.ascii_domain)


@given(st.text())
def test_lowering_twice_changes_nothing_more(domain):
    assert lower_domain(lower_domain(domain)) == lower_domain(domain)
