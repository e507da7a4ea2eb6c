"""Which addresses of mail servers may be contacted."""

from __future__ import annotations

import ipaddress

import pytest

from mailverdict.checks.smtp.transport.networks import may_dial

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)

ADDRESSES = [
    ("8.8.8.8", True, "public"),
    ("2001:4860:4860::8888", True, "public, IPv6"),
    ("127.0.0.1", False, "loopback"),
    ("::1", False, "loopback, IPv6"),
    ("10.0.0.1", False, "private"),
    ("172.16.5.5", False, "private"),
    ("192.168.1.1", False, "private"),
    ("100.64.0.1", False, "shared address space"),
    ("169.254.1.1", False, "link-local"),
    ("fe80::1", False, "link-local, IPv6"),
    ("fe80::1%eth0", False, "with a zone"),
    ("fd00::1", False, "unique local"),
    ("224.0.0.1", False, "multicast"),
    ("ff02::1", False, "multicast, IPv6"),
    ("233.252.0.1", False, "multicast that is global"),
    ("0.0.0.0", False, "unspecified, which connects to ourselves"),
    ("255.255.255.255", False, "broadcast"),
    ("240.0.0.1", False, "reserved"),
    ("::ffff:127.0.0.1", False, "loopback in IPv6 clothes"),
    ("::ffff:8.8.8.8", True, "public in IPv6 clothes"),
    ("2002:7f00:1::", False, "6to4 to loopback"),
    ("192.0.2.1", False, "documentation"),
    ("mx.example.org", False, "a name"),
    ("", False, "nothing"),
]


@pytest.mark.parametrize(("address", "expected", "why"), ADDRESSES)
def test_may_dial_public_unicast_only(address: str, expected: bool, why: str) -> None:
    assert may_dial(address) is expected, why


@pytest.mark.parametrize("address", ["127.0.0.1", "127.25.0.9", "::ffff:127.0.0.1"])
def test_may_dial_networks_that_were_allowed(address: str) -> None:
    assert may_dial(address, LOOPBACK)


def test_may_dial_only_the_networks_that_were_allowed() -> None:
    assert not may_dial("10.0.0.1", LOOPBACK)
