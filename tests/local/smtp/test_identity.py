"""Who we say we are."""

import asyncio

import pytest

from mailverdict.local.smtp.identity import FULL_NAME, find_helo_name
from mailverdict.model.settings import LocalSettings

NAMES = [
    ("mail.example.org", True),
    ("a-b.example", True),
    ("localhost", False),
    ("my_host.example", False),
    ("192.0.2.1", False),
    ("-a.example", False),
    ("a-.example", False),
    ("mail.example.org\r\nRSET", False),
    ("bücher.example", False),
    ("", False),
]


@pytest.mark.parametrize(("name", "is_full"), NAMES)
def test_only_full_host_names_are_said(name, is_full):
    assert bool(FULL_NAME.fullmatch(name)) is is_full


def test_the_setting_comes_first():
    assert asyncio.run(find_helo_name(LocalSettings(helo_name="[192.0.2.1]"))) == "[192.0.2.1]"


def test_without_it_something_sendable_is_found():
    name = asyncio.run(find_helo_name(LocalSettings()))
    assert name == "localhost" or FULL_NAME.fullmatch(name)
