"""Who asks: the address that quota and limiter are accounted to."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from functools import lru_cache

from ...model.settings import Network

__all__ = ["account_of", "client_of"]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
NOBODY = "unknown"  # a peer without an address, as on a Unix socket
SHARED_PREFIX = 64  # a network of this size is one customer's: RFC 6177, and what hosts change addresses within


def client_of(peer: str | None, forwarded: Sequence[str], trusted: tuple[Network, ...]) -> str:
    """Name the client's account.

    ``X-Forwarded-For`` is read from its end, where the nearest proxy wrote: as long as the one who
    tells is trusted, what it tells is believed. Anything before that may be forged.

    Parameters
    ----------
    peer : str or None
        Address of the connection's other end.
    forwarded : sequence of str
        The values of the ``X-Forwarded-For`` headers, in order.
    trusted : tuple of Network
        Proxies that are believed.

    Returns
    -------
    str
        An IPv4 address, the /64 network of an IPv6 address, or ``unknown``.
    """
    if not (trusted and forwarded):
        return account_of_peer(peer)
    teller = parse_address(peer or "")
    if teller is None:
        return NOBODY
    hops = [hop for value in forwarded for hop in value.split(",")]
    while hops and is_within(teller, trusted):
        told = parse_address(hops.pop())
        if told is None:
            break
        teller = told
    return account_of(teller)


@lru_cache(maxsize=4096)
def account_of_peer(peer: str | None) -> str:
    """The account of a connection's other end; most requests come over connections that are kept."""
    address = parse_address(peer or "")
    return NOBODY if address is None else account_of(address)


def account_of(address: Address) -> str:
    """IPv6 clients choose among 2**64 addresses, so their network is the account.

    >>> account_of(ipaddress.ip_address("2001:db8::1:2:3:4"))
    '2001:db8::/64'
    """
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    network = int(address) >> (128 - SHARED_PREFIX) << (128 - SHARED_PREFIX)
    return f"{ipaddress.IPv6Address(network)}/{SHARED_PREFIX}"


def is_within(address: Address, networks: tuple[Network, ...]) -> bool:
    return any(address in network for network in networks)


def parse_address(text: str) -> Address | None:
    """An address, with or without a port; IPv4 in IPv6 clothing is IPv4."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
