"""The sandbox's DNS server: it answers from a table, over UDP and TCP on loopback.

What it answers, right or wrong, is decided in `dns_table`; this module is the sockets and the
counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import Counter
from collections.abc import Mapping
from functools import partial
from types import TracebackType
from typing import Self

import dns.exception
import dns.flags
import dns.message
import dns.rdatatype

from .dns_table import (
    DnsFault,
    DomainRecords,
    ZoneTable,
    answer_messages,
    fits_datagram,
    plain_name,
)

__all__ = ["DnsFault", "DnsServer", "DomainRecords"]

NOT_A_QUERY = (dns.exception.DNSException, ValueError)  # raised by bytes that are not a query
# Bytes; a client on the same event loop may send hundreds of queries before we can read one.
RECEIVE_BUFFER = 1 << 20
BIND_TRIES = 20  # a free UDP port may be in use for TCP


class DnsServer:
    """A DNS server on one loopback address, over UDP and TCP.

    Parameters
    ----------
    zones : mapping of str to DomainRecords
        By name, without final dot; ``*.bl.example`` matches every name below ``bl.example`` that
        has no records of its own. All other names do not exist.
    host : str
        Address to listen on.
    port : int
        Port to listen on; 0: any free port.

    Attributes
    ----------
    in_flight, most_in_flight : int
        Queries received and not yet answered: now, and at most.

    Raises
    ------
    SettingsError
        If a record cannot be read.

    Examples
    --------
    >>> import asyncio
    >>> async def serve():
    ...     async with DnsServer({"ada.example": DomainRecords({"A": ("127.0.0.5",)})}) as server:
    ...         return server.endpoint.startswith("127.0.0.1:"), server.count("ada.example", "A")
    >>> asyncio.run(serve())
    (True, 0)
    """

    def __init__(
        self, zones: Mapping[str, DomainRecords], *, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self._table = ZoneTable(zones)
        self._host = host
        self._port = port
        self._counts: Counter[tuple[str, str, bool]] = Counter()
        self._udp: asyncio.DatagramTransport | None = None
        self._udp_closed: asyncio.Future[None] | None = None
        self._tcp: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.in_flight = 0
        self.most_in_flight = 0

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    @property
    def endpoint(self) -> str:
        """Address and port in the form of the setting `resolver`; known after the start."""
        if ":" in self._host:
            return f"[{self._host}]:{self._port}"
        return f"{self._host}:{self._port}"

    def add(self, name: str, records: DomainRecords) -> None:
        """Add a name or replace its records, also while the server runs."""
        self._table.add(name, records)

    def records_of(self, name: str) -> DomainRecords | None:
        """The records of a name as they were given; None if it does not exist."""
        try:
            entry = self._table.find(name)
        except NOT_A_QUERY:  # not a name
            return None
        if entry is None:
            return None
        return entry.given

    def count(
        self, name: str | None = None, rdtype: str | None = None, *, tcp: bool | None = None
    ) -> int:
        """Count the queries received, repeated ones each time.

        Parameters
        ----------
        name, rdtype : str, optional
            Only queries for this name, of this type.
        tcp : bool, optional
            True: only queries over TCP; False: only over UDP.

        Returns
        -------
        int
            How many.
        """
        if name is not None:
            name = plain_name(name)
        total = 0
        for (asked_name, asked_type, over_tcp), count in self._counts.items():
            is_wanted = name in (None, asked_name) and rdtype in (None, asked_type)
            if is_wanted and tcp in (None, over_tcp):
                total += count
        return total

    async def start(self) -> None:
        """Listen on UDP and TCP; raises `OSError` if the address or port is not available."""
        tries = 1
        if self._port == 0:
            tries = BIND_TRIES
        for tries_left in reversed(range(tries)):
            try:
                await self._listen()
            except OSError:
                if not tries_left:
                    raise
            else:
                return

    async def _listen(self) -> None:
        """Bind UDP, then TCP to the same port."""
        loop = asyncio.get_running_loop()
        make_protocol = partial(Datagrams, self, loop.create_future())
        udp, protocol = await loop.create_datagram_endpoint(
            make_protocol, local_addr=(self._host, self._port)
        )
        udp.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        port = udp.get_extra_info("sockname")[1]
        try:
            self._tcp = await asyncio.start_server(self._serve_connection, self._host, port)
        except OSError:
            udp.close()
            raise
        self._udp = udp
        self._udp_closed = protocol.closed
        self._port = port

    async def stop(self) -> None:
        """Close all sockets; a new start listens on the same port."""
        if self._udp is not None and self._udp_closed is not None:
            self._udp.close()
            await self._udp_closed
        if self._tcp is not None:
            self._tcp.close()
            for connection in self._connections:
                connection.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)
            await self._tcp.wait_closed()
        self._udp = self._tcp = None

    def receive(self, packet: bytes, source: tuple[str, int]) -> None:
        """Answer a datagram after the delay of its name; ignore one that is not a query."""
        with contextlib.suppress(*NOT_A_QUERY):
            query = self._read(packet, tcp=False)
            self._count_in_flight()
            loop = asyncio.get_running_loop()
            loop.call_later(self._table.delay_of(query), self._send, query, source)

    def _send(self, query: dns.message.Message, source: tuple[str, int]) -> None:
        self.in_flight -= 1
        answer = self._table.answer(query)
        fault = self._table.fault_of(query)
        if fault is None and not fits_datagram(query, answer):
            fault = DnsFault.TRUNCATED
        for packet in answer_messages(fault, query, answer, tcp=False):
            if self._udp is not None:
                self._udp.sendto(packet, source)

    async def _serve_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer the queries of one TCP connection."""
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            with contextlib.suppress(EOFError, OSError, *NOT_A_QUERY):
                while True:
                    await self._serve_query(reader, writer)
        finally:
            self._connections.discard(task)
            writer.close()

    async def _serve_query(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        size = int.from_bytes(await reader.readexactly(2), "big")
        query = self._read(await reader.readexactly(size), tcp=True)
        self._count_in_flight()
        try:
            await asyncio.sleep(self._table.delay_of(query))
        finally:
            self.in_flight -= 1
        answer = self._table.answer(query)
        packets = answer_messages(self._table.fault_of(query), query, answer, tcp=True)
        if not packets:
            raise EOFError("no answer: close the connection")
        for packet in packets:
            writer.write(len(packet).to_bytes(2, "big") + packet)
        await writer.drain()

    def _read(self, packet: bytes, *, tcp: bool) -> dns.message.Message:
        """Read and count a query."""
        query = dns.message.from_wire(packet)
        if query.flags & dns.flags.QR or len(query.question) != 1:
            raise ValueError("not a query with one question")
        asked = query.question[0]
        name = plain_name(asked.name.to_text())
        rdtype = dns.rdatatype.to_text(asked.rdtype)
        self._counts[name, rdtype, tcp] += 1
        return query

    def _count_in_flight(self) -> None:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)


class Datagrams(asyncio.DatagramProtocol):
    """Passes datagrams to the server."""

    def __init__(self, server: DnsServer, closed: asyncio.Future[None]) -> None:
        self._server = server
        self.closed = closed

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._server.receive(data, addr)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set_result(None)
