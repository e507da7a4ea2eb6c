"""Connecting: which addresses may be contacted, and what became of the attempts."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ....model.settings import Network
from ..classify.classification import Failure, FailureKind

__all__ = ["Target", "dial", "may_dial"]

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
REFUSED = frozenset({errno.ECONNREFUSED, errno.ECONNRESET})
# What outlives the others as the reason: a time-out says less than a refusal, so it must not hide behind one.
GRAVEST = (FailureKind.CONNECT_TIMEOUT, FailureKind.REFUSED, FailureKind.UNREACHABLE, FailureKind.NOT_DIALLED)


@dataclass(frozen=True, slots=True)
class Target:
    """What to connect to."""

    addresses: tuple[str, ...]
    port: int
    source: str | None = None
    allow_networks: tuple[Network, ...] = ()


def may_dial(address: str, allow_networks: Sequence[Network] = ()) -> bool:
    """Whether an IP address may be contacted: global unicast, or in a network that was allowed.

    An MX that points at a loopback or private address would make us knock at our own doors.

    Parameters
    ----------
    address : str
        An IP address; anything else may not be dialled.
    allow_networks : sequence of network
        Non-global networks that may be contacted all the same.

    Returns
    -------
    bool
        Whether it may be contacted.

    Examples
    --------
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
    """Every address that packets to `address` may end at: IPv6 can wrap an IPv4 one."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    relayed = address.sixtofour if isinstance(address, ipaddress.IPv6Address) else None
    yield mapped or address
    if relayed:
        yield relayed


async def dial(target: Target, protocol: Callable[[], asyncio.Protocol], patience: float) -> str | Failure:
    """Connect to the first address that lets us; give that address, or why there was none.

    Parameters
    ----------
    target : Target
        Addresses in the order to try, port, source address, networks allowed.
    protocol : callable
        Gives the protocol for the connection.
    patience : float
        Seconds for all addresses together; each attempt gets an equal share of what is left.

    Returns
    -------
    str or Failure
        The address that was connected to, or the gravest failure.
    """
    allowed = [address for address in target.addresses if may_dial(address, target.allow_networks)]
    if not allowed:
        return Failure(FailureKind.NOT_DIALLED, not_dialled(target.addresses))
    until = asyncio.get_running_loop().time() + patience
    failures = []
    for index, address in enumerate(allowed):
        share = (until - asyncio.get_running_loop().time()) / (len(allowed) - index)
        failure = await attempt(address, target, protocol, max(share, 0.001))
        if failure is None:
            return address
        failures.append(failure)
    return min(failures, key=lambda failure: GRAVEST.index(failure.kind))


def not_dialled(addresses: Sequence[str]) -> str:
    """Why there is nothing to connect to."""
    if not addresses:
        return "the exchange has no address"
    return f"{', '.join(addresses)}: not a public address, and not in allow_networks"


async def attempt(
    address: str, target: Target, protocol: Callable[[], asyncio.Protocol], patience: float
) -> Failure | None:
    """Try one address."""
    loop = asyncio.get_running_loop()
    source = (target.source, 0) if target.source else None
    try:
        async with asyncio.timeout(patience):
            await loop.create_connection(protocol, address, target.port, local_addr=source)
    except TimeoutError:
        return Failure(FailureKind.CONNECT_TIMEOUT, f"{address}: no connection within {patience:g} s")
    except OSError as exc:
        kind = FailureKind.REFUSED if exc.errno in REFUSED else FailureKind.UNREACHABLE
        return Failure(kind, f"{address}: {exc.strerror or exc}")
    return None
