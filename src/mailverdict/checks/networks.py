"""Which IP addresses may be contacted, and which can be those of a mail server on the Internet.

The address of a mail server comes from somebody else's DNS, and must not make this host connect to
its own network. Two packaged lists say which networks are special: the rows of IANA's registries,
and what these lack. An IPv6 address can contain an IPv4 address to which a translator or a tunnel
takes the packets, so both are judged.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from functools import cache

from ..model.settings import Network
from .lists.files import find_lists, read_entries

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
LISTS = ("special_networks", "special_networks_more")
REACHABLE = ("True", "N/A")  # N/A, of 6to4 and Teredo: the IPv4 addresses inside decide
# RFC 6052; the other prefix for translation (RFC 8215) is not global.
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# RFC 5214 section 6.1: in an interface identifier, before the IPv4 address.
ISATAP = (
    0x0000_5EFE,
    0x0200_5EFE,
)
UNSPECIFIED = ("0.0.0.0", "::")  # noqa: S104 - no host has them; compared, not bound
# Examples and tests write these in place of public addresses; RFC 5737, RFC 3849, RFC 9637.
DOCUMENTATION = tuple(
    map(
        ipaddress.ip_network,
        ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"),
    )
)


def may_dial(address: str, allow_networks: Sequence[Network] = ()) -> bool:
    """Whether an IP address may be contacted.

    It must be a global unicast address, or in a network that was allowed.

    To allow an IPv4 network does not allow the IPv6 addresses by which a translator or a tunnel
    leads to one.

    >>> may_dial("127.0.0.1"), may_dial("127.0.0.1", [ipaddress.ip_network("127.0.0.0/8")])
    (False, True)
    """
    try:
        given = ipaddress.ip_address(address)
    except ValueError:
        return False
    contacted, *inside = destinations(given)
    if any(each in network for network in allow_networks for each in (given, contacted)):
        return True
    return all(map(is_reachable, (contacted, *inside)))


def may_be_host(address: str, allow_networks: Sequence[Network] = ()) -> bool:
    """Whether a host on the Internet, or in a network that was allowed, can have an IP address.

    A domain with no other address has none that mail arrives at, or a filter answered in its place.

    >>> may_be_host("127.0.0.1"), may_be_host("10.20.30.40"), may_be_host("192.0.2.1")
    (False, False, True)
    """
    if address in UNSPECIFIED:
        return False
    if may_dial(address, allow_networks):
        return True
    return any(ipaddress.ip_address(address) in network for network in DOCUMENTATION)


def destinations(address: IPAddress) -> list[IPAddress]:
    """The address that a connection to `address` is to, and the IPv4 addresses inside it."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:  # the operating system connects by IPv4
        return [address.ipv4_mapped]
    found: list[IPAddress] = [address]
    if address.sixtofour is not None:
        found.append(address.sixtofour)
    if address.teredo is not None:
        found += address.teredo  # the server and the client
    if address in NAT64 or (int(address) >> 32) & 0xFFFF_FFFF in ISATAP:
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    return found


def is_reachable(address: IPAddress) -> bool:
    """Whether the most specific network of the lists is globally reachable, or there is none."""
    bits = int(address)
    for shift, prefix, reachable in special_networks()[address.version]:
        if bits >> shift == prefix:
            return reachable
    return True


@cache
def special_networks() -> dict[int, list[tuple[int, int, bool]]]:
    """The networks of both lists by IP version, the most specific first.

    Each has the bits to shift out, the prefix, and whether it is reachable.

    A user's copy of a list is not read: what else may be contacted is the setting `allow_networks`.
    """
    by_version: dict[int, list[tuple[int, int, bool]]] = {4: [], 6: []}
    for file in find_lists(LISTS).values():
        for entry in read_entries(file):
            block, reachable, _source, _name = entry.split(maxsplit=3)
            network = ipaddress.ip_network(block)
            shift = network.max_prefixlen - network.prefixlen
            prefix = int(network.network_address) >> shift
            by_version[network.version].append((shift, prefix, reachable in REACHABLE))
    return {version: sorted(networks) for version, networks in by_version.items()}
