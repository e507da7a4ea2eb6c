"""Which IP addresses may be contacted."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from ....model.settings import Network

__all__ = ["may_dial"]

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def may_dial(address: str, allow_networks: Sequence[Network] = ()) -> bool:
    """Whether an IP address may be contacted: global unicast, or in a network that was allowed.

    An MX that points to a loopback or private address must not make this host connect to its own network.

    >>> may_dial("127.0.0.1"), may_dial("127.0.0.1", [ipaddress.ip_network("127.0.0.0/8")])
    (False, True)
    """
    try:
        forms = list(unwrapped(ipaddress.ip_address(address)))
    except ValueError:
        return False
    if any(form in network for form in forms for network in allow_networks):
        return True
    return all(form.is_global and not form.is_multicast for form in forms)


def unwrapped(address: IPAddress) -> Iterator[IPAddress]:
    """Every address that packets to `address` can reach: an IPv6 address can contain an IPv4 one."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    relayed = address.sixtofour if isinstance(address, ipaddress.IPv6Address) else None
    yield mapped or address
    if relayed:
        yield relayed
