"""Connecting to a mail server, and the result of the attempts."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ....model.settings import Network
from ...networks import may_dial
from ..classify.classification import ConnectionFailure, FailureKind

REFUSED = frozenset({errno.ECONNREFUSED, errno.ECONNRESET})
# The failure that is reported, most important first: one time-out means that the port may be open.
REPORTED_FIRST = (
    FailureKind.CONNECT_TIMEOUT,
    FailureKind.REFUSED,
    FailureKind.UNREACHABLE,
    FailureKind.NOT_DIALLED,
)


@dataclass(frozen=True, slots=True)
class Target:
    """What to connect to."""

    addresses: tuple[str, ...]
    port: int
    source: str | None = None
    allow_networks: tuple[Network, ...] = ()


async def dial(
    target: Target, protocol: Callable[[], asyncio.Protocol], seconds: float
) -> str | ConnectionFailure:
    """Connect to the first address that accepts; return it, or the most important failure.

    `seconds` is the time for all addresses together; each attempt gets an equal share of what is
    left.
    """
    allowed = [address for address in target.addresses if may_dial(address, target.allow_networks)]
    if not allowed:
        return ConnectionFailure(FailureKind.NOT_DIALLED, not_dialled(target.addresses))
    until = asyncio.get_running_loop().time() + seconds
    failures = []
    for index, address in enumerate(allowed):
        share = (until - asyncio.get_running_loop().time()) / (len(allowed) - index)
        failure = await attempt(address, target, protocol, max(share, 0.001))
        if failure is None:
            return address
        failures.append(failure)
    return min(failures, key=lambda failure: REPORTED_FIRST.index(failure.kind))


def not_dialled(addresses: Sequence[str]) -> str:
    """The reason why no address can be contacted."""
    if not addresses:
        return "the mail server has no address"
    return f"{', '.join(addresses)}: not a public address, and not in allow_networks"


async def attempt(
    address: str, target: Target, protocol: Callable[[], asyncio.Protocol], seconds: float
) -> ConnectionFailure | None:
    """Try one address."""
    source = (target.source, 0) if target.source else None
    try:
        async with asyncio.timeout(seconds):
            await asyncio.get_running_loop().create_connection(
                protocol, address, target.port, local_addr=source
            )
    except TimeoutError:
        return ConnectionFailure(
            FailureKind.CONNECT_TIMEOUT, f"{address}: no connection within {seconds:g} s"
        )
    except OSError as exc:
        kind = FailureKind.REFUSED if exc.errno in REFUSED else FailureKind.UNREACHABLE
        return ConnectionFailure(kind, f"{address}: {exc.strerror or exc}")
    return None
