"""A DNS server whose answers are wrong in the ways of real networks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import dns.message
import dns.rdatatype

from mailverdict.sandbox.dns import DnsFault, DnsServer, DomainRecords
from mailverdict.sandbox.dns_table import ZoneTable, plain_name

PORTAL = "192.0.2.80"
Lie = Callable[[str, str], DomainRecords | None]  # name and type; None: the true answer

NOTHING: Mapping[str, DomainRecords] = {}


def always(fault: DnsFault) -> Lie:
    """The same fault whatever is asked."""
    records = DomainRecords(faults={"*": fault})
    return lambda name, rdtype: records


def portal(name: str, rdtype: str) -> DomainRecords:
    """The address of a portal for every name, as the only record."""
    return DomainRecords({"A": (PORTAL,)})


def portal_of_many(name: str, rdtype: str) -> DomainRecords:
    """Another address of a portal for each name; never the same one below .com and .org."""
    return DomainRecords(
        {"A": (f"192.0.2.{10 + sum(name.encode()) % 100 + 100 * name.endswith('.org')}",)}
    )


def shared_portal(name: str, rdtype: str) -> DomainRecords:
    """One of two addresses for each name; the first one belongs to many domains that exist."""
    return DomainRecords({"A": ("192.0.2.9" if name.endswith(".com") else "192.0.2.10",)})


def search_page(true: ZoneTable, page: Lie = portal) -> Lie:
    """The address of a search page for names that do not exist."""
    return lambda name, rdtype: page(name, rdtype) if true.find(name) is None else None


def missing(*names: str) -> Lie:
    """Some domains do not exist."""
    gone = DomainRecords(faults={"*": DnsFault.NXDOMAIN})
    return lambda name, rdtype: gone if name in names else None


@dataclass(frozen=True)
class LyingTable:
    """Answers with the lie if there is one, else from the true table."""

    true: ZoneTable
    lie: Lie

    def _table(self, query: dns.message.Message) -> ZoneTable:
        asked = query.question[0]
        name = plain_name(asked.name.to_text())
        records = self.lie(name, dns.rdatatype.to_text(asked.rdtype))
        return self.true if records is None else ZoneTable({name: records})

    def fault_of(self, query: dns.message.Message) -> DnsFault | None:
        return self._table(query).fault_of(query)

    def answer(self, query: dns.message.Message) -> dns.message.Message:
        return self._table(query).answer(query)

    def delay_of(self, query: dns.message.Message) -> float:
        return self.true.delay_of(query)


class LyingServer(DnsServer):
    """Answers from `zones`, and falsely once `begins_after` questions about MX records were answered.

    A table is taken as it is: hundreds of zones need a tenth of a second to parse.
    """

    def __init__(
        self,
        zones: Mapping[str, DomainRecords] | ZoneTable,
        lie: Lie | None,
        *,
        begins_after: int = 0,
        only_udp: bool = False,
    ) -> None:
        super().__init__({})
        self.true = zones if isinstance(zones, ZoneTable) else ZoneTable(zones)
        self.lie, self.begins_after, self.only_udp = lie, begins_after, only_udp
        self.answered = 0

    def _set_table(self, *, tcp: bool) -> None:
        is_false = (
            self.lie is not None
            and self.answered >= self.begins_after
            and not (tcp and self.only_udp)
        )
        self._table = LyingTable(self.true, self.lie) if is_false else self.true  # type: ignore[assignment, arg-type]

    def _send(self, query: dns.message.Message, source: tuple[str, int]) -> None:
        self._set_table(tcp=False)
        self.answered += 1
        super()._send(query, source)

    async def _serve_query(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._set_table(tcp=True)
        await super()._serve_query(reader, writer)
