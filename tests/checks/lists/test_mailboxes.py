"""Rules about the addresses of one mailbox: the packaged table, and what a column makes of it."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from mailverdict.checks.lists.flags import normal_domain
from mailverdict.checks.lists.mailboxes import (
    find_mailboxes,
    load_mailbox_rules,
    parse_mailbox_rules,
)
from mailverdict.errors import SettingsError
from tests.doubles.tables import each_row

RULES = load_mailbox_rules()

# An address and its mailbox.
CASES = [
    ("Ada@Example.ORG", "ada@example.org"),
    # At an unknown domain these are ordinary characters.
    (
        "a.da+x@example.org",
        "a.da+x@example.org",
    ),
    ("A.da+shop@gmail.com", "ada@gmail.com"),
    ("ada+a+b@googlemail.com", "ada@gmail.com"),
    ("a-da@gmail.com", "a-da@gmail.com"),
    ("ada@mail.gmail.com", "ada@mail.gmail.com"),  # no domain of the provider
    ("a.da+x@hotmail.com", "a.da@hotmail.com"),
    ("ada@outlook.com", "ada@outlook.com"),  # another mailbox than at hotmail.com
    ("a.da+x@me.com", "a.da@icloud.com"),
    ("ada@mac.com", "ada@icloud.com"),
    ("a.d_a-+x@pm.me", "ada@proton.me"),
    ("ada@protonmail.ch", "ada@proton.me"),
    ("_@proton.me", "_@proton.me"),  # never empty
    ("ada+x@fastmail.fm", "ada@fastmail.fm"),
    ("shop@Ada.fastmail.com", "ada@fastmail.com"),
    ("x@shop.ada.fastmail.com", "x@shop.ada.fastmail.com"),
    ("a-da+x@ya.ru", "a.da@yandex.ru"),
    ("ada-shop@yahoo.com", "ada-shop@yahoo.com"),
    ("+x@gmail.com", "+x@gmail.com"),  # never empty
    ("Bär@Bücher.example", "bär@xn--bcher-kva.example"),
]


@each_row(("address", "expected"), CASES)
def test_the_mailbox_of_an_address(address: str, expected: str) -> None:
    assert find_mailboxes(pa.array([address])).names.to_pylist() == [expected]


def test_a_column_gives_the_same_as_each_of_its_rows() -> None:
    column = pa.array([address for address, _ in CASES] + ["nobody", ""])
    assert find_mailboxes(column).names.to_pylist() == [expected for _, expected in CASES] + [
        None,
        None,
    ]


def test_a_column_without_addresses() -> None:
    assert find_mailboxes(pa.array([], pa.string())).names.to_pylist() == []
    assert find_mailboxes(pa.array(["", "x", None])).names.to_pylist() == [None, None, None]


def test_the_name_of_a_mailbox_reaches_it() -> None:
    mailboxes = pa.array([expected for _, expected in CASES])
    assert find_mailboxes(mailboxes).names.to_pylist() == mailboxes.to_pylist()


def test_every_rule_has_a_source_and_its_domains_are_in_normal_form() -> None:
    for domain, rule in RULES.items():
        assert normal_domain(domain) == domain
        assert rule.source.startswith("https://"), domain
        assert rule.seen <= datetime.date(2026, 12, 31), domain
        assert len(rule.same) != 1, domain


@each_row(
    ("text", "message"),
    [
        ("[[provider]", "mailboxes.toml cannot be read"),
        ("", "mailboxes.toml cannot be read"),
        (
            '[[provider]]\nname = "x"\ndomains = ["a.example"]\ndots = true',
            "mailboxes.toml cannot be read",
        ),
        (
            '[[provider]]\nname = "x"\ndomains = ["a.example", "a.example"]\nseen = 2026-01-01\nsource = "x"',
            "a.example occurs twice",
        ),
    ],
)
def test_a_damaged_table_is_an_error(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        parse_mailbox_rules(text)
