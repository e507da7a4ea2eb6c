"""The sandbox's DNS server, asked by dnspython: what it says, how it misbehaves, and what it counts."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import TypeVar

import dns.asyncquery
import dns.exception
import dns.flags
import dns.message
import dns.rcode
import pytest

from mailverdict.errors import SettingsError
from mailverdict.model.settings import parse_resolver
from mailverdict.sandbox.dns import DnsFault, DnsServer, DomainRecords
from tests.doubles.tables import each_row

pytestmark = pytest.mark.usefixtures("skipped_waits")

T = TypeVar("T")
ZONES = {
    "ada.example": DomainRecords(
        {"MX": ("20 b.ada.example", "10 a.ada.example."), "A": ("127.0.0.5",)}, ttl=77
    ),
    "b.ada.example": DomainRecords({"A": ("127.0.0.6",)}),
    "alias.example": DomainRecords({"CNAME": ("ada.example",)}),
    "loop.example": DomainRecords({"CNAME": ("loop.example",)}),
    "dangling.example": DomainRecords({"CNAME": ("nowhere.example",)}),
    "*.bl.example": DomainRecords({"A": ("127.0.0.2",)}),
    "known.bl.example": DomainRecords({"A": ("127.0.0.3",)}),
    "deep.tree.example": DomainRecords({"A": ("127.0.0.7",)}),
    "big.example": DomainRecords({"TXT": tuple(f'"{n:0200}"' for n in range(20))}),
    "slow.example": DomainRecords({"A": ("127.0.0.8",)}, delay=0.05),
}


def serve(
    action: Callable[[DnsServer, Callable[..., Awaitable[dns.message.Message]]], Awaitable[T]],
    **zones: DomainRecords,
) -> T:
    async def main() -> T:
        async with DnsServer({**ZONES, **zones}) as server:
            host, port = parse_resolver(server.endpoint)

            async def ask(
                name: str, rdtype: str, *, tcp: bool = False, edns: bool = True
            ) -> dns.message.Message:
                query = dns.message.make_query(
                    name, rdtype, use_edns=0 if edns else -1, payload=1232
                )
                method = dns.asyncquery.tcp if tcp else dns.asyncquery.udp
                return await method(query, host, port=port, timeout=1.0)

            return await action(server, ask)

    return asyncio.run(main())


@each_row("tcp", [False, True])
@each_row(
    ("name", "rdtype", "rcode", "answers"),
    [
        ("ada.example", "MX", "NOERROR", ["10 a.ada.example.", "20 b.ada.example."]),
        ("ADA.example", "A", "NOERROR", ["127.0.0.5"]),
        ("ada.example", "AAAA", "NOERROR", []),
        ("b.ada.example", "A", "NOERROR", ["127.0.0.6"]),
        ("c.ada.example", "A", "NXDOMAIN", []),
        ("alias.example", "A", "NOERROR", ["127.0.0.5", "ada.example."]),
        ("alias.example", "CNAME", "NOERROR", ["ada.example."]),
        ("dangling.example", "A", "NXDOMAIN", ["nowhere.example."]),
        ("loop.example", "A", "NOERROR", ["loop.example."]),
        ("1.2.3.4.bl.example", "A", "NOERROR", ["127.0.0.2"]),
        ("known.bl.example", "A", "NOERROR", ["127.0.0.3"]),
        ("bl.example", "A", "NOERROR", []),
        ("tree.example", "A", "NOERROR", []),
        ("elsewhere", "A", "NXDOMAIN", []),
    ],
)
def test_records_are_answered(name, rdtype, rcode, answers, tcp):
    response = serve(lambda _, ask: ask(name, rdtype, tcp=tcp))
    assert dns.rcode.to_text(response.rcode()) == rcode
    assert sorted(record.to_text() for rrset in response.answer for record in rrset) == answers
    assert response.flags & dns.flags.RA


@each_row(("name", "ttl"), [("ada.example", 77), ("c.ada.example", 300)])
def test_negative_answers_have_a_lifetime(name, ttl):
    response = serve(lambda _, ask: ask(name, "TXT"))
    assert response.resolve_chaining().minimum_ttl == ttl


@each_row("edns", [False, True])
def test_answer_that_fits_no_datagram_is_truncated_and_whole_over_tcp(edns):
    async def action(_, ask):
        return await ask("big.example", "TXT", edns=edns), await ask(
            "big.example", "TXT", tcp=True, edns=edns
        )

    short, whole = serve(action)
    assert short.flags & dns.flags.TC
    assert not short.answer
    assert len(whole.answer[0]) == 20


def test_every_fault_has_its_way():
    """What a careful client sees of each fault, over UDP and over TCP."""

    async def look(ask, name: str, tcp: bool) -> str:
        try:
            response = await ask(name, "A", tcp=tcp)
        except dns.exception.Timeout:
            return "silence"
        except EOFError:
            return "end"
        except (dns.exception.DNSException, dns.asyncquery.BadResponse) as exc:
            return type(exc).__name__
        said = dns.rcode.to_text(response.rcode())
        return f"{said} {'truncated' if response.flags & dns.flags.TC else len(response.answer)}"

    async def action(_, ask):
        names = {fault: f"{fault.name.lower().replace('_', '-')}.example" for fault in DnsFault}
        seen = {}
        for fault, name in names.items():
            seen[fault.name] = [await look(ask, name, tcp) for tcp in (False, True)]
        return seen

    faulty = {
        f"{f.name.lower().replace('_', '-')}.example": DomainRecords(
            {"A": ("127.0.0.5",)}, {"*": f}
        )
        for f in DnsFault
    }
    assert serve(action, **faulty) == {
        "SERVFAIL": ["SERVFAIL 0"] * 2,
        "REFUSED": ["REFUSED 0"] * 2,
        "NXDOMAIN": ["NXDOMAIN 0"] * 2,
        "REFERRAL": ["NOERROR 0"] * 2,
        "NO_EDNS": ["FORMERR 0"] * 2,
        "ALIAS_ONLY": ["NOERROR 1"] * 2,
        "SILENCE": ["silence", "end"],
        "TRUNCATED": ["NOERROR truncated", "NOERROR 1"],
        "TCP_SILENCE": ["NOERROR truncated", "end"],
        "TCP_FORGED": ["NOERROR truncated", "BadResponse"],
        "GARBAGE": ["FormError"] * 2,
        "WRONG_ID": ["BadResponse"] * 2,
        "WRONG_QUESTION": ["BadResponse"] * 2,
        "FORGED_FIRST": ["BadResponse"] * 2,
    }


def test_queries_are_counted_by_name_type_and_transport():
    async def action(server, ask):
        for name, rdtype, tcp in (
            ("ada.example", "A", False),
            ("Ada.Example", "A", True),
            ("ada.example", "MX", False),
            ("x.y", "A", False),
        ):
            await ask(name, rdtype, tcp=tcp)
        return [
            server.count(),
            server.count("ADA.example."),
            server.count("ada.example", "A"),
            server.count(rdtype="A"),
            server.count(tcp=True),
            server.count("ada.example", tcp=False),
            server.count("never.example"),
        ]

    assert serve(action) == [4, 3, 2, 3, 1, 2, 0]


def test_names_may_be_added_and_replaced_while_it_runs():
    async def action(server, ask):
        server.add("New.Example", DomainRecords({"A": ("127.0.0.9",)}))
        server.add("ada.example", DomainRecords({"A": ("127.0.0.10",)}))
        return [
            (await ask(name, "A")).answer[0][0].address for name in ("new.example", "ada.example")
        ]

    assert serve(action) == ["127.0.0.9", "127.0.0.10"]


def test_answers_under_way_are_counted():
    async def action(server, ask):
        await asyncio.gather(*(ask("slow.example", "A") for _ in range(5)))
        return server.in_flight, server.most_in_flight

    assert serve(action) == (0, 5)


@each_row(
    "junk",
    [
        b"",
        b"junk",
        b"\0" * 12,
        b"\xff" * 40,
        dns.message.make_response(dns.message.make_query("a.b", "A")).to_wire(),
    ],
    ids=["empty", "text", "zeros", "ones", "an answer"],
)
def test_non_queries_are_dropped(junk):
    async def action(server, ask):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.sendto(junk, parse_resolver(server.endpoint))
        reader, writer = await asyncio.open_connection(*parse_resolver(server.endpoint))
        writer.write(len(junk).to_bytes(2, "big") + junk)
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
        await ask("ada.example", "A")
        return server.count(), server.in_flight

    assert serve(action) == (1, 0)


def test_several_queries_over_one_connection_that_stopping_does_not_wait_for():
    async def main():
        addresses = []
        async with DnsServer(ZONES) as server:
            reader, writer = await asyncio.open_connection(*parse_resolver(server.endpoint))
            for name in ("ada.example", "b.ada.example"):
                packet = dns.message.make_query(name, "A").to_wire()
                writer.write(len(packet).to_bytes(2, "big") + packet)
                size = int.from_bytes(await reader.readexactly(2), "big")
                addresses.append(
                    dns.message.from_wire(await reader.readexactly(size)).answer[0][0].address
                )
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
        return addresses

    assert asyncio.run(main()) == ["127.0.0.5", "127.0.0.6"]


def test_it_stops_and_starts_again_on_the_same_port():
    async def main():
        server = DnsServer(ZONES)
        async with server:
            first = server.endpoint
        async with server:
            return first, server.endpoint

    first, second = asyncio.run(main())
    assert first == second


def test_it_listens_on_ipv6_too():
    async def main():
        async with DnsServer(ZONES, host="::1") as server:
            host, port = parse_resolver(server.endpoint)
            return await dns.asyncquery.udp(
                dns.message.make_query("ada.example", "A"), host, port=port, timeout=1.0
            )

    assert asyncio.run(main()).answer[0][0].address == "127.0.0.5"


def test_port_that_is_taken_is_an_error():
    async def main():
        async with DnsServer({}) as server:
            _, port = parse_resolver(server.endpoint)
            await DnsServer({}, port=port).start()

    with pytest.raises(OSError, match="in use"):
        asyncio.run(main())


@each_row(("rdtype", "record"), [("A", "not an address"), ("MX", "ada.example"), ("NOSUCH", "x")])
def test_record_that_cannot_be_read_is_an_error_at_once(rdtype, record):
    with pytest.raises(SettingsError, match=r"bad\.example"):
        DnsServer({"bad.example": DomainRecords({rdtype: (record,)})})
