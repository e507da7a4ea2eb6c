"""Which addresses of mail servers may be contacted: the packaged lists, and IPv4 addresses inside IPv6 ones."""

from __future__ import annotations

import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from mailverdict.checks.lists.files import find_lists, read_entries
from mailverdict.checks.networks import LISTS, may_dial
from tests.doubles.tables import assert_none_differ, each_row

ROWS = {
    name: [entry.split(maxsplit=3) for entry in read_entries(each)]
    for name, each in find_lists(LISTS).items()
}

# Block; whether the addresses just before and just after it are dialled (None: there is none); why no address in it is.
REFUSED = [
    ("0.0.0.0/8", None, True, "this network; a connection to 0.0.0.0 reaches this host"),
    ("10.0.0.0/8", True, True, "private"),
    (
        "100.64.0.0/10",
        True,
        True,
        "behind the NAT of a provider; metadata of Alibaba Cloud (100.100.100.200)",
    ),
    ("127.0.0.0/8", True, True, "this host"),
    ("168.63.129.16/32", True, True, "the host of a virtual machine in Azure"),
    ("169.254.0.0/16", True, True, "link-local; metadata of clouds (169.254.169.254)"),
    ("172.16.0.0/12", True, True, "private"),
    ("192.0.0.0/29", True, False, "DS-Lite, behind the NAT of a provider"),
    ("192.0.0.8/32", False, True, "dummy address"),
    ("192.0.0.11/32", True, False, "IETF protocol assignments, not assigned"),
    ("192.0.0.170/31", False, False, "discovery of NAT64"),
    (
        "192.0.0.192/32",
        False,
        False,
        "IETF protocol assignments; was the metadata address of Oracle Cloud",
    ),
    ("192.0.0.255/32", False, True, "the last one of the IETF protocol assignments"),
    ("192.0.2.0/24", True, True, "documentation"),
    ("192.88.99.0/24", True, True, "6to4 relays, given up"),
    ("192.168.0.0/16", True, True, "private"),
    ("198.18.0.0/15", True, True, "benchmarks"),
    ("198.51.100.0/24", True, True, "documentation"),
    ("203.0.113.0/24", True, True, "documentation"),
    ("224.0.0.0/4", True, False, "multicast, also where it is global (233.252.0.1)"),
    ("240.0.0.0/4", False, None, "class E and broadcast"),
    ("::/96", None, False, "unspecified, loopback, IPv4-compatible"),
    ("::1:0:0/96", False, False, "assigned to nobody"),
    ("64:ff9b:1::/48", False, False, "NAT64 of a private network"),
    ("100::/64", False, False, "discarded"),
    ("100:0:0:1::/64", False, False, "dummy prefix"),
    ("1000::/4", False, True, "assigned to nobody, up to 2000::/3"),
    ("2001:1::/128", False, True, "IETF protocol assignments, before the anycast addresses"),
    ("2001:1::4/128", True, False, "IETF protocol assignments, after the anycast addresses"),
    ("2001:2::/48", False, False, "benchmarks"),
    ("2001:10::/28", False, True, "ORCHID, given up"),
    ("2001:40::/26", True, False, "IETF protocol assignments, not assigned"),
    ("2001:100::/24", False, True, "the end of the IETF protocol assignments"),
    ("2001:db8::/32", True, True, "documentation"),
    ("3fff::/20", True, True, "documentation"),
    ("4000::/3", True, False, "assigned to nobody, from 2000::/3"),
    ("5f00::/16", False, False, "segment routing"),
    ("8000::/2", False, False, "assigned to nobody"),
    ("fc00::/7", False, False, "unique local; metadata of AWS (fd00:ec2::254)"),
    ("fe80::/10", False, False, "link-local"),
    ("fec0::/10", False, False, "site-local, given up"),
    ("ff00::/8", False, None, "multicast"),
]


def test_a_special_network_is_refused_from_its_first_to_its_last_address():
    for block, before, after, why in REFUSED:
        network = ipaddress.ip_network(block)
        first, last = network[0], network[-1]
        inside = (first, network[network.num_addresses // 2], last)
        assert [each for each in inside if may_dial(str(each))] == [], (block, why)
        if before is not None:
            assert may_dial(str(first - 1)) is before, (block, why)
        if after is not None:
            assert may_dial(str(last + 1)) is after, (block, why)


# An address; whether it is dialled; why.
ADDRESSES = [
    ("8.8.8.8", True, "public"),
    ("2001:4860:4860::8888", True, "public"),
    ("192.0.0.9", True, "anycast for everybody, inside a special network"),
    ("192.0.0.10", True, "the same"),
    ("192.31.196.1", True, "special, but globally reachable"),
    ("192.52.193.1", True, "the same"),
    ("192.175.48.1", True, "the same"),
    ("2001:1::1", True, "the same"),
    ("2001:1::2", True, "the same"),
    ("2001:1::3", True, "the same"),
    ("2001:3::1", True, "the same"),
    ("2001:4:112::1", True, "the same"),
    ("2001:20::1", True, "the same"),
    ("2001:30::1", True, "the same"),
    ("2620:4f:8000::1", True, "the same"),
    ("fe80::1%eth0", False, "link-local, with a zone"),
    # IPv4 inside IPv6: mapped
    ("::ffff:8.8.8.8", True, "public"),
    ("::ffff:127.0.0.1", False, "this host"),
    ("::ffff:192.0.0.9", True, "globally reachable"),
    ("::ffff:168.63.129.16", False, "listed by us"),
    # NAT64
    ("64:ff9b::8.8.8.8", True, "public"),
    ("64:ff9b::7f00:1", False, "127.0.0.1"),
    ("64:ff9b::a9fe:a9fe", False, "169.254.169.254"),
    ("64:ff9b::a83f:8110", False, "168.63.129.16"),
    ("64:ff9b::1:808:808", False, "beyond the prefix, which leaves 32 bits"),
    (
        "64:ff9b:1::808:808",
        False,
        "the prefix of a private network, though the IPv4 address is public",
    ),
    ("64:ff9b:1::a9fe:a9fe", False, "the same, with 169.254.169.254"),
    # 6to4
    ("2002:808:808::1", True, "8.8.8.8"),
    ("2002:7f00:1::", False, "127.0.0.1"),
    ("2002:a00:1::808:808", False, "10.0.0.1; its last bits mean nothing"),
    # Teredo: the server, and the client with every bit inverted
    ("2001:0:808:808::f7f7:f7f7", True, "8.8.8.8 and 8.8.8.8"),
    ("2001:0:808:808::80ff:fffe", False, "the client is 127.0.0.1"),
    ("2001:0:a00:1::f7f7:f7f7", False, "the server is 10.0.0.1"),
    ("2001::1", False, "the server is 0.0.0.0"),
    # ISATAP, in any prefix
    ("2001:4860::5efe:808:808", True, "8.8.8.8"),
    ("2001:4860::200:5efe:808:808", True, "8.8.8.8, marked as unique"),
    ("2001:4860::5efe:7f00:1", False, "127.0.0.1"),
    ("2001:4860::200:5efe:a00:1", False, "10.0.0.1"),
    ("2001:4860::100:5efe:a00:1", True, "not the mark of ISATAP"),
    (
        "2002:808:808::5efe:a00:1",
        False,
        "6to4 with a public address, and ISATAP with a private one",
    ),
    ("fe80::5efe:808:808", False, "a link-local prefix"),
    # Forms that nothing uses any more: refused with any IPv4 address
    ("::7f00:1", False, "IPv4-compatible, 127.0.0.1"),
    ("::808:808", False, "IPv4-compatible, 8.8.8.8"),
    ("::ffff:0:7f00:1", False, "IPv4-translated, 127.0.0.1"),
    ("::ffff:0:808:808", False, "IPv4-translated, 8.8.8.8"),
]


def test_an_address_is_dialled_if_it_and_those_inside_are_public():
    assert_none_differ(
        (address, expected, why)
        for address, expected, why in ADDRESSES
        if may_dial(address) is not expected
    )


@each_row("text", ["mx.example.org", "", "8.8.8", "8.8.8.8/32"])
def test_what_is_not_an_address_is_not_dialled(text):
    assert may_dial(text, [ipaddress.ip_network("0.0.0.0/0")]) is False


# An address, the networks of the user, whether it is dialled, why.
ALLOWED = [
    ("127.25.0.9", "127.0.0.0/8", True, "in the network"),
    ("10.0.0.1", "127.0.0.0/8", False, "in another one"),
    ("::1", "127.0.0.0/8", False, "another address"),
    ("168.63.129.16", "168.63.129.16/32", True, "what we list can be allowed, too"),
    ("::ffff:127.0.0.1", "127.0.0.0/8", True, "the connection is to the IPv4 address"),
    (
        "::ffff:127.0.0.1",
        "::ffff:127.0.0.0/104",
        True,
        "the same network, written like the address",
    ),
    (
        "64:ff9b::a00:1",
        "10.0.0.0/8",
        False,
        "10.0.0.1 of the translator's network, not of the user's",
    ),
    ("64:ff9b:1::a00:1", "10.0.0.0/8", False, "the same"),
    ("2002:a00:1::", "10.0.0.0/8", False, "the same with a tunnel"),
    ("::7f00:1", "127.0.0.0/8", False, "no connection by IPv4"),
    ("::ffff:0:7f00:1", "127.0.0.0/8", False, "the same"),
    ("64:ff9b:1::a00:1", "64:ff9b:1::/48", True, "the network holds the address itself"),
    ("64:ff9b::7f00:1", "64:ff9b::/96", True, "the same"),
    (
        "2001:0:808:808::80ff:fffe",
        "127.0.0.0/8",
        False,
        "a tunnel to a client, which is not this host",
    ),
    ("fd00::5efe:a00:1", "fd00::/8", True, "the network holds the address itself"),
    ("2001:4860::5efe:a00:1", "10.0.0.0/8", False, "a tunnel of another network"),
    ("fe80::1%eth0", "fe80::/10", True, "a zone changes nothing"),
]


@each_row(("address", "allowed", "expected", "why"), ALLOWED)
def test_a_user_can_allow_networks(address, allowed, expected, why):
    assert may_dial(address, [ipaddress.ip_network(allowed)]) is expected, why


@given(st.ip_addresses(v=4))
def test_a_mapped_address_and_one_of_nat64_are_judged_as_the_ipv4_address(inside):
    expected = may_dial(str(inside))
    assert may_dial(f"::ffff:{inside}") is expected
    assert may_dial(f"64:ff9b::{inside}") is expected


# Where Python's is_global says something else: the network, what we say there, why. Releases of Python differ.
DIFFERENT = [
    ("192.0.0.0/24", False, "before 3.11.10, 3.12.4 and 3.13 Python knows two small parts of it"),
    ("192.88.99.0/24", False, "the registry's cell is empty, since the assignment has ended"),
    ("168.63.129.16/32", False, "listed by us"),
    (
        "::/3",
        False,
        "all that is not special is global for Python; we judge the IPv4 address of NAT64",
    ),
    ("4000::/2", False, "the same"),
    ("8000::/1", False, "the same"),
    ("2001::/32", True, "the registry says N/A: we judge the IPv4 addresses"),
    ("2001:1::1/128", True, "before 3.11.10, 3.12.4 and 3.13 Python refuses all of 2001::/23"),
    ("2001:1::2/128", True, "the same"),
    ("2001:1::3/128", True, "assigned in 2024, Python does not know it"),
    ("2001:3::/32", True, "before 3.11.10, 3.12.4 and 3.13 Python refuses all of 2001::/23"),
    ("2001:4:112::/48", True, "the same"),
    ("2001:20::/28", True, "the same"),
    ("2001:30::/28", True, "the same"),
    ("2001:4860::/64", False, "Python does not look for ISATAP"),
    ("2002::/16", True, "the registry says N/A: we judge the IPv4 address, Python says no"),
    ("2002::/16", False, "the same; before 3.11.10, 3.12.4 and 3.13 Python says yes"),
    ("3fff::/20", False, "assigned in 2024, older releases of Python do not know it"),
]


def test_python_agrees_elsewhere():
    addresses = [ipaddress.ip_address(address) for address, _, _ in ADDRESSES]
    for block in (ipaddress.ip_network(row[0]) for rows in ROWS.values() for row in rows):
        first, last = int(block[0]), int(block[-1])
        numbers = (first - 1, first, (first + last) // 2, last, last + 1)
        addresses += [
            type(block[0])(each) for each in numbers if 0 <= each < 2**block.max_prefixlen
        ]
    for address in addresses:
        ours, theirs = may_dial(str(address)), address.is_global and not address.is_multicast
        listed = any(
            address in ipaddress.ip_network(network) and ours is said
            for network, said, _ in DIFFERENT
        )
        assert ours is theirs or listed, address


@each_row("name", LISTS)
def test_rows_of_a_list_are_in_normal_form_and_unique(name):
    blocks = [row[0] for row in ROWS[name]]
    assert [each for each in blocks if str(ipaddress.ip_network(each)) != each] == []
    assert len(set(blocks)) == len(blocks)
    assert {row[1] for row in ROWS[name]} <= {"True", "False", "N/A", "-"}
    assert all(len(row) == 4 for row in ROWS[name])


def test_no_row_of_ours_repeats_one_of_the_registries():
    registry, ours = ({row[0] for row in ROWS[name]} for name in LISTS)
    assert registry & ours == set()
