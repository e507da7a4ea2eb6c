"""The account of a client."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.model.settings import parse_networks
from mailverdict.service.http.access import client_account

TRUSTED = parse_networks(["10.0.0.0/8", "fd00::/8"], name="trusted_proxies")

CASES = [
    # peer, forwarded, expected, why
    ("192.0.2.1", [], "192.0.2.1", "a direct client"),
    ("192.0.2.1", ["203.0.113.7"], "192.0.2.1", "a client cannot speak for another"),
    ("10.0.0.1", ["203.0.113.7"], "203.0.113.7", "a trusted proxy can"),
    (
        "10.0.0.1",
        ["198.51.100.1, 203.0.113.7"],
        "203.0.113.7",
        "the nearest untrusted one is the client",
    ),
    ("10.0.0.1", ["198.51.100.1", "203.0.113.7"], "203.0.113.7", "several headers are one list"),
    ("10.0.0.1", ["203.0.113.7, 10.9.9.9"], "203.0.113.7", "a chain of trusted proxies"),
    ("10.0.0.1", [], "10.0.0.1", "a proxy that says nothing is the client itself"),
    ("10.0.0.1", ["unknown"], "10.0.0.1", "what is not an address is ignored"),
    ("10.0.0.1", ["203.0.113.7, nonsense"], "10.0.0.1", "nor what stands behind it"),
    ("10.0.0.1", ["203.0.113.7:4711"], "203.0.113.7", "a port is not part of the address"),
    ("10.0.0.1", ["[2001:db8::1]:4711"], "2001:db8::/64", "nor in brackets"),
    ("10.0.0.1", ["10.0.0.2, 10.0.0.3"], "10.0.0.2", "trusted all the way: the farthest"),
    ("2001:db8:1:2:3:4:5:6", [], "2001:db8:1:2::/64", "an IPv6 client is its network"),
    ("::ffff:192.0.2.1", [], "192.0.2.1", "IPv4 in IPv6 clothing"),
    ("::ffff:10.0.0.1", ["203.0.113.7"], "203.0.113.7", "a trusted proxy in IPv6 clothing"),
    ("fd00::1", ["2001:db8::7"], "2001:db8::/64", "a trusted proxy on IPv6"),
    ("fe80::1%eth0", [], "fe80::/64", "a zone is not part of the address"),
    (None, [], "unknown", "a Unix socket has no address"),
    ("/run/app.sock", ["203.0.113.7"], "unknown", "nor is a path one"),
]


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected", "why"), CASES, ids=[case[3] for case in CASES]
)
def test_the_client_is_the_last_address_that_no_trusted_proxy_has(
    peer: str | None, forwarded: list[str], expected: str, why: str
) -> None:
    assert client_account(peer, forwarded, TRUSTED) == expected, why


def test_without_trusted_proxies_the_header_is_not_even_read() -> None:
    assert client_account("10.0.0.1", ["203.0.113.7"], ()) == "10.0.0.1"


@given(st.text(max_size=60), st.lists(st.text(max_size=80), max_size=3))
def test_any_text_gives_an_account_that_fits_the_store(peer: str, forwarded: list[str]) -> None:
    account = client_account(peer, forwarded, TRUSTED)
    assert account == "unknown" or ipaddress.ip_network(account)
    assert len(account) <= 64
