"""Many mail servers on loopback, each with an address of its own, all on one port.

macOS has only 127.0.0.1: there each listens on a port of its own, and `SandboxBackend` connects to
that.

What each of them does is data, see `smtp_script`. No message is ever accepted.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from .smtp_connection import SmtpConnection, SmtpStats
from .smtp_script import EXCHANGES, Exchange, SmtpFault

__all__ = ["Exchange", "SmtpFault", "SmtpServer", "SmtpStats"]

CERTIFICATE = Path(__file__).with_name("starttls.pem")
LOCALHOST = "127.0.0.1"  # the one loopback address that every system has
BIND_TRIES = 20  # a port that is free on one address may be in use on another


class SmtpServer:
    r"""Scripted mail servers on loopback addresses.

    Use it as an asynchronous context manager, or `start` and `stop` it.

    Parameters
    ----------
    exchanges : iterable of Exchange, optional
        Their scripts; all of the sandbox's own by default.
    port : int
        Port of all of them; 0: any free port.

    Raises
    ------
    OSError
        On `start`, if the addresses cannot be bound; on macOS most of 127.0.0.0/8 cannot, which
        matters only if a port is given.

    Examples
    --------
    >>> import asyncio
    >>> async def greet():
    ...     async with SmtpServer([Exchange("mx.ada.example", "a mailbox")]) as server:
    ...         address = server.address_of("mx.ada.example")
    ...         reader, writer = await asyncio.open_connection(address, server.port)
    ...         line = await reader.readline()
    ...         writer.close()
    ...         return line
    >>> asyncio.run(greet())
    b'220 mx.ada.example ESMTP sandbox\r\n'
    """

    def __init__(self, exchanges: Iterable[Exchange] = EXCHANGES, *, port: int = 0) -> None:
        self.exchanges = {exchange.host: exchange for exchange in exchanges}
        self.addresses = dict(assign_addresses(self.exchanges.values()))
        self.port = port
        self.ports: dict[str, int] = {}  # by address, where all listen on 127.0.0.1
        self._stats = {host: SmtpStats() for host in self.exchanges}
        self._tls: ssl.SSLContext | None = None
        self._servers: list[asyncio.Server] = []
        self._connections: set[SmtpConnection] = set()

    def address_of(self, host: str) -> str:
        """The loopback address of an exchange."""
        return self.addresses[host]

    def stats(self, host: str) -> SmtpStats:
        """The counts of an exchange; they go on changing."""
        return self._stats[host]

    async def start(self) -> Self:
        """Listen on every address."""
        listening = [exchange for exchange in self.exchanges.values() if exchange.listens]
        addresses = [self.addresses[exchange.host] for exchange in listening]
        try:
            sockets = bind_all(addresses, self.port)
        except OSError as exc:
            if self.port or exc.errno != errno.EADDRNOTAVAIL:
                raise
            sockets = [bind(LOCALHOST, 0) for _ in addresses]
            ports = [sock.getsockname()[1] for sock in sockets]
            self.ports = dict(zip(addresses, ports, strict=True))
        if sockets:
            self.port = sockets[0].getsockname()[1]
        for sock, exchange in zip(sockets, listening, strict=True):
            first_asked: dict[str, float] = {}  # shared by all connections to this exchange
            connect = partial(
                SmtpConnection,
                exchange,
                self._stats[exchange.host],
                self._connections,
                first_asked,
                self.tls,
            )
            self._servers.append(await asyncio.get_running_loop().create_server(connect, sock=sock))
        return self

    def tls(self) -> ssl.SSLContext:
        """The TLS context of all connections, made for the first one that needs it."""
        if self._tls is None:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(CERTIFICATE)
        return self._tls

    async def stop(self) -> None:
        """Stop listening and close every connection."""
        for server in self._servers:
            server.close()
        for connection in tuple(self._connections):
            connection.abort()
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()


def assign_addresses(exchanges: Iterable[Exchange]) -> Iterator[tuple[str, str]]:
    """Yield each exchange's name and address: its own, or the next of 127.25.0.0/16."""
    for number, exchange in enumerate(exchanges, start=1):
        yield exchange.host, exchange.address or f"127.25.{number >> 8}.{number & 255}"


def bind_all(addresses: list[str], port: int) -> list[socket.socket]:
    """Bind one port on all addresses; with port 0, a port that is free on all of them."""
    for tries_left in reversed(range(BIND_TRIES)):
        sockets: list[socket.socket] = []
        wanted = port
        try:
            for address in addresses:
                sockets.append(bind(address, wanted))
                wanted = sockets[0].getsockname()[1]
        except OSError as exc:
            for sock in sockets:
                sock.close()
            if port or exc.errno != errno.EADDRINUSE or not tries_left:
                raise
        else:
            return sockets
    return []


def bind(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    if sys.platform != "win32":  # where two servers could listen on one port by it
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Accepted sockets inherit it. asyncio sets it only where a socket names its protocol, and
    # without it a second reply waits up to 40 ms for the acknowledgement of the first.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        sock.bind((address, port))
    except OSError:
        sock.close()
        raise
    return sock
