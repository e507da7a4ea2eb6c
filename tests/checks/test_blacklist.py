"""Blacklists: only a code that means *listed* is listed; a list that could not be asked never means clean."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.checks.blacklist import (
    MAX_ADDRESSES,
    MAX_EXCHANGES,
    BlacklistCheck,
    NetworkTable,
    merge_results,
)
from mailverdict.checks.dns.resolver import Resolver
from mailverdict.model.evidence import BlacklistEvidence, DnsOutcome, DomainEvidence, MailExchange
from mailverdict.model.settings import Blacklist, LocalSettings, Zone
from mailverdict.sandbox.dns import DnsFault, DnsServer, DomainRecords
from mailverdict.sandbox.zones import LISTS, sandbox_zones
from tests.doubles.tables import each_row

pytestmark = pytest.mark.usefixtures("skipped_waits")

T = TypeVar("T")
ZONE = Zone("bl.example", codes=["127.0.0.2", "127.0.0.4/31"])
HOST = DomainRecords({"A": ("198.51.100.7",)})
TEST_ENTRY = {"2.0.0.127.bl.example": DomainRecords({"A": ("127.0.0.2",)})}


def with_exchanges(*hosts: str) -> DomainEvidence:
    exchanges = tuple(MailExchange(10 * n, host) for n, host in enumerate(hosts))
    return DomainEvidence("ada.example", DnsOutcome.MX, exchanges)


ADA = with_exchanges("mx.ada.example")


def serve(
    zones: dict[str, DomainRecords],
    action: Callable[[Resolver, DnsServer], Awaitable[T]],
    *,
    clock: Callable[[], float] = time.monotonic,
    **given: Any,
) -> T:
    async def main() -> T:
        async with DnsServer(zones) as server:
            settings = {"dns_timeout": 1.0, "dns_attempts": 1, **given}
            resolver = Resolver(LocalSettings(resolver=server.endpoint, **settings), clock=clock)
            try:
                return await action(resolver, server)
            finally:
                await resolver.aclose()

    return asyncio.run(main())


def check(
    zones: dict[str, DomainRecords],
    blacklist: Blacklist,
    evidence: DomainEvidence = ADA,
    **given: Any,
) -> BlacklistEvidence:
    async def action(resolver: Resolver, _: DnsServer) -> BlacklistEvidence:
        return await BlacklistCheck(blacklist, resolver).observe(evidence)

    return serve(zones, action, **given)


class TestStatic:
    def test_empty_blacklist_lists_nothing_and_has_no_sources(self):
        assert check({}, Blacklist()) == BlacklistEvidence(False)

    def test_domain_without_exchanges_is_undetermined(self):
        evidence = DomainEvidence("ada.example", DnsOutcome.NXDOMAIN)
        assert check({}, Blacklist(hosts=["ada.example"]), evidence).listed is None

    @each_row(
        ("entry", "host", "listed"),
        [
            ("mx.bad.example", "mx.bad.example", True),
            ("bad.example", "mx.bad.example", True),
            ("Bad.Example.", "mx.bad.example", True),
            ("example", "mx.bad.example", True),
            ("ad.example", "mx.bad.example", False),
            ("mx.bad.example", "bad.example", False),
            ("bad.example", "bad.example.org", False),
        ],
    )
    def test_hosts_match_on_label_boundaries(self, entry, host, listed):
        seen = check({}, Blacklist(hosts=[entry]), with_exchanges("mx.good.example", host))
        assert (seen.listed, seen.sources) == (listed, ("static hosts",))

    def test_hosts_need_no_look_up(self):
        async def action(resolver: Resolver, server: DnsServer) -> Any:
            blacklist = Blacklist(hosts=["ada.example"], ips=["192.0.2.1"], zones=[ZONE])
            return await BlacklistCheck(blacklist, resolver).observe(ADA), server.count()

        seen, count = serve({}, action)
        assert seen == BlacklistEvidence(
            True, "mx.ada.example is ada.example or below it (static hosts)", ("static hosts",)
        )
        assert count == 0

    @each_row(
        ("entry", "listed"),
        [
            ("198.51.100.7", "198.51.100.7/32"),
            ("198.51.100.0/24", "198.51.100.0/24"),
            ("198.51.100.8/29", None),
            ("2001:db8::25", "2001:db8::25/128"),
            ("2001:db8::/32", "2001:db8::/32"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("2001:db9::/32", None),
        ],
    )
    def test_addresses_of_both_families(self, entry, listed):
        zones = {
            "mx.ada.example": DomainRecords({"A": ("198.51.100.7",), "AAAA": ("2001:db8::25",)})
        }
        seen = check(zones, Blacklist(ips=[entry]))
        assert (seen.listed, seen.sources) == (listed is not None, ("static ips",))
        assert listed is None or f"is in {listed} (static ips)" in seen.message

    def test_mapped_address_is_the_ipv4_address_that_it_is(self):
        zones = {"mx.ada.example": DomainRecords({"AAAA": ("::ffff:198.51.100.7",)})}
        assert check(zones, Blacklist(ips=["198.51.100.0/24"])).listed is True

    def test_one_exchange_of_several_is_enough(self):
        zones = {"mx.bob.example": HOST, "mx.ada.example": DomainRecords({"A": ("192.0.2.1",)})}
        seen = check(
            zones,
            Blacklist(ips=["198.51.100.7"]),
            with_exchanges("mx.ada.example", "mx.bob.example"),
        )
        assert seen.message == "mx.bob.example (198.51.100.7) is in 198.51.100.7/32 (static ips)"

    @each_row("rdtype", ["A", "AAAA", "*"])
    def test_addresses_that_are_not_known_are_not_clean(self, rdtype):
        zones = {
            "mx.ada.example": DomainRecords({"A": ("198.51.100.7",)}, {rdtype: DnsFault.SERVFAIL})
        }
        seen = check(zones, Blacklist(ips=["192.0.2.1"]))
        assert seen.listed is None
        assert "SERVFAIL from 127.0.0.1" in seen.message

    def test_listed_beats_what_is_not_known(self):
        zones = {
            "mx.ada.example": DomainRecords({"A": ("198.51.100.7",)}, {"AAAA": DnsFault.SERVFAIL})
        }
        assert check(zones, Blacklist(ips=["198.51.100.7"])).listed is True

    def test_exchange_without_address_is_on_no_list(self):
        assert check({}, Blacklist(ips=["0.0.0.0/0"])).listed is False

    def test_more_exchanges_than_are_looked_up_leave_the_question_open(self):
        hosts = [f"mx{n}.ada.example" for n in range(MAX_EXCHANGES + 1)]
        seen = check(
            dict.fromkeys(hosts, HOST), Blacklist(ips=["192.0.2.1"]), with_exchanges(*hosts)
        )
        assert (seen.listed, seen.message) == (
            None,
            "only 32 of 33 mail servers of the domain were looked up",
        )

    @given(
        st.lists(st.ip_addresses(), max_size=20),
        st.lists(st.integers(0, 128), min_size=20, max_size=20),
        st.ip_addresses(),
    )
    def test_table_finds_what_a_search_finds(self, bases, lengths, address):
        networks = [
            ipaddress.ip_network((base, min(length, base.max_prefixlen)), strict=False)
            for base, length in zip(bases, lengths, strict=False)
        ]
        table = NetworkTable(networks)
        for each in (address, *bases):
            found = table.find(each)
            assert (found is not None) == any(each in network for network in networks)
            assert found is None or each in found


CODES = {
    "127.0.0.2": True,
    "127.0.0.4": True,
    "127.0.0.5": True,
    "127.0.0.3": None,
    "127.0.0.10": None,
    "127.0.0.1": None,
    "127.255.255.252": None,
    "127.255.255.254": None,
    "127.255.255.255": None,
    "192.0.2.80": None,
    "0.0.0.0": None,
}


class TestZones:
    def zones(self, **records: DomainRecords) -> dict[str, DomainRecords]:
        entries = {
            f"7.100.51.198.{name}": each
            for name, each in {
                "bl.example": DomainRecords(faults={"*": DnsFault.NXDOMAIN}),
                **records,
            }.items()
        }
        return {"mx.ada.example": HOST, **TEST_ENTRY, **entries}

    @each_row(("code", "listed"), CODES.items())
    def test_only_configured_codes_mean_listed(self, code, listed):
        seen = check(
            self.zones(**{"bl.example": DomainRecords({"A": (code,)})}), Blacklist(zones=[ZONE])
        )
        assert (seen.listed, seen.sources) == (listed, ("bl.example",))
        assert f"({code})" in seen.message or f"answered {code}" in seen.message

    def test_refusals_never_mean_listed_even_if_configured(self):
        every = Zone("bl.example", codes=["127.0.0.0/8"])
        for code in ("127.0.0.1", "127.255.255.254"):
            zones = self.zones(**{"bl.example": DomainRecords({"A": (code,)})})
            assert check(zones, Blacklist(zones=[every])).listed is None

    def test_one_code_that_counts_is_enough(self):
        zones = self.zones(**{"bl.example": DomainRecords({"A": ("127.0.0.10", "127.0.0.4")})})
        seen = check(zones, Blacklist(zones=[ZONE]))
        assert (seen.listed, seen.message) == (
            True,
            "mx.ada.example (198.51.100.7) is on bl.example (127.0.0.4)",
        )

    @each_row(
        ("codes", "listed"),
        [
            (("127.0.0.10",), False),
            (("127.0.0.10", "127.0.0.4"), True),
            (("127.0.0.10", "127.0.0.99"), None),
            (("127.255.255.254",), None),
        ],
    )
    def test_ignored_codes_say_nothing_and_a_refusal_is_never_ignored(self, codes, listed):
        zone = Zone("bl.example", codes=["127.0.0.4"], ignored=["127.0.0.10", "127.255.0.0/16"])
        zones = self.zones(**{"bl.example": DomainRecords({"A": codes})})
        assert check(zones, Blacklist(zones=[zone])).listed is listed

    @each_row(
        ("entry", "listed"),
        [
            (DomainRecords(faults={"*": DnsFault.NXDOMAIN}), False),
            (DomainRecords({"TXT": ("delisted",)}), False),
            (DomainRecords(faults={"*": DnsFault.SERVFAIL}), None),
            (DomainRecords(faults={"*": DnsFault.REFUSED}), None),
            (DomainRecords(faults={"*": DnsFault.SILENCE}), None),
            (DomainRecords(faults={"*": DnsFault.GARBAGE}), None),
        ],
    )
    def test_no_answer_is_not_clean(self, entry, listed):
        seen = check(self.zones(**{"bl.example": entry}), Blacklist(zones=[ZONE]))
        assert seen.listed is listed
        assert (seen.message == "") is (listed is False)

    @each_row(
        ("name", "fault"),
        [
            (
                "wildcard-bl.sandbox.example",
                "it lists 127.0.0.1, which no list does, so it may list everything",
            ),
            (
                "empty-bl.sandbox.example",
                "it lacks the test entry 127.0.0.2, so it may be out of service",
            ),
            (
                "no-such-bl.example",
                "it lacks the test entry 127.0.0.2, so it may be out of service",
            ),
            (
                "refusing-bl.sandbox.example",
                "it refuses to answer, or the resolver answers in its place (127.255.255.254)",
            ),
            (
                "hijacked-bl.sandbox.example",
                "it refuses to answer, or the resolver answers in its place (192.0.2.80)",
            ),
            ("broken-bl.sandbox.example", "its self-test got no answer (SERVFAIL from 127.0.0.1)"),
            ("a" * 64 + ".example", None),
        ],
    )
    def test_list_that_fails_its_self_test_is_not_asked_and_not_clean(self, name, fault):
        zone = (
            Zone(name, codes=["127.0.0.2"])
            if len(name) < 64
            else Zone(".".join(["a" * 60] * 4), codes=["127.0.0.2"])
        )

        async def action(resolver: Resolver, server: DnsServer) -> Any:
            blacklist = BlacklistCheck(Blacklist(zones=[zone]), resolver)
            seen = [
                await blacklist.observe(with_exchanges(host))
                for host in ("mx1.cases.example", "mx2.cases.example")
            ]
            return seen, blacklist.notices, server.count(f"1.30.0.127.{zone.name}")

        seen, notices, count = serve(sandbox_zones(), action)
        assert [(each.listed, each.sources) for each in seen] == [(None, ())] * 2
        assert len(notices) == 1
        assert count == 0
        if fault:
            assert notices == [
                f"The DNS list {name} is not used: {fault}. What it lists is undetermined."
            ]
            assert seen[0].message == f"{name} is not used: {fault}"

    def test_all_lists_of_the_sandbox_are_covered(self):
        assert set(LISTS) - {"bl.sandbox.example"} == {
            f"{habit}-bl.sandbox.example"
            for habit in ("wildcard", "empty", "refusing", "hijacked", "broken")
        }

    @each_row(
        ("domain", "listed"),
        [
            ("one", False),
            ("listed", True),
            ("listed-second", True),
            ("pool", None),
            ("refusing-list", None),
            ("loopback", False),
        ],
    )
    def test_cases_of_the_sandbox(self, domain, listed):
        async def action(resolver: Resolver, _: DnsServer) -> BlacklistEvidence:
            blacklist = Blacklist(zones=[Zone("bl.sandbox.example", codes=["127.0.0.2"])])
            return await BlacklistCheck(blacklist, resolver).observe(
                await resolver.observe_domain(f"{domain}.example")
            )

        assert serve(sandbox_zones(), action).listed is listed

    def test_one_bad_list_does_not_hide_a_hit_on_another(self):
        lists = [
            Zone("empty-bl.sandbox.example", codes=["127.0.0.2"]),
            Zone("bl.sandbox.example", codes=["127.0.0.2"]),
        ]
        seen = check(sandbox_zones(), Blacklist(zones=lists), with_exchanges("mx.listed.example"))
        assert (seen.listed, seen.sources) == (True, ("bl.sandbox.example",))

    @each_row("address", ["127.0.0.1", "127.0.0.2"])
    def test_test_entries_do_not_list_an_exchange(self, address):
        zones = {"mx.ada.example": DomainRecords({"A": (address,)}), **TEST_ENTRY}
        assert check(zones, Blacklist(zones=[ZONE])).listed is False


def nibbles(address: str) -> str:
    return ipaddress.IPv6Address(address).reverse_pointer.removesuffix(".ip6.arpa")


class TestZonesWithIpv6:
    host = {"mx.ada.example": DomainRecords({"AAAA": ("2001:db8::25",)})}
    listed = {f"{nibbles('2001:db8::25')}.bl.example": DomainRecords({"A": ("127.0.0.2",)})}
    test_entry = {f"{nibbles('::ffff:127.0.0.2')}.bl.example": DomainRecords({"A": ("127.0.0.2",)})}
    opposite = {f"{nibbles('::ffff:127.0.0.1')}.bl.example": DomainRecords({"A": ("127.0.0.2",)})}

    @each_row(
        ("entries", "listed", "why"),
        [
            (
                {**TEST_ENTRY, **test_entry, **listed},
                True,
                "a list that holds IPv6 addresses, and this one",
            ),
            ({**TEST_ENTRY, **test_entry}, False, "and not this one"),
            ({**TEST_ENTRY}, False, "a list of IPv4 addresses: none other can be on it"),
            (
                {**TEST_ENTRY, **test_entry, **opposite},
                None,
                "it fails the self-test of this family",
            ),
            ({**test_entry, **listed}, None, "it fails that of the other one"),
        ],
    )
    def test_addresses_of_the_newer_kind(self, entries, listed, why):
        assert check({**self.host, **entries}, Blacklist(zones=[ZONE])).listed is listed, why


class TestNumberOfQuestions:
    def test_each_address_is_looked_up_once_in_a_zone(self):
        hosts = [f"mx{n}.example" for n in range(5)]
        zones = {**dict.fromkeys(hosts, HOST), **TEST_ENTRY}

        async def action(resolver: Resolver, server: DnsServer) -> Any:
            blacklist = BlacklistCheck(Blacklist(zones=[ZONE]), resolver)
            domains = [with_exchanges(*hosts), *(with_exchanges(host) for host in hosts)] * 20
            seen = await asyncio.gather(*(blacklist.observe(domain) for domain in domains))
            return Counter(each.listed for each in seen), server

        seen, server = serve(zones, action)
        assert seen == {False: 120}
        assert server.count("7.100.51.198.bl.example", "A") == 1
        assert (
            server.count("2.0.0.127.bl.example", "A")
            == server.count("1.0.0.127.bl.example", "A")
            == 1
        )
        assert [server.count(host) for host in hosts] == [2] * 5

    def test_host_with_more_addresses_than_are_looked_up_stays_open(self):
        zones = {
            "mx.ada.example": DomainRecords(
                {"A": tuple(f"198.51.100.{n}" for n in range(MAX_ADDRESSES + 8))}
            ),
            **TEST_ENTRY,
        }

        async def action(resolver: Resolver, server: DnsServer) -> Any:
            return await BlacklistCheck(Blacklist(zones=[ZONE]), resolver).observe(
                ADA
            ), server.count()

        seen, count = serve(zones, action)
        assert (seen.listed, seen.message) == (
            None,
            "only 32 of 40 addresses of mx.ada.example were looked up",
        )
        assert count == 2 + 2 + MAX_ADDRESSES  # the host's A and AAAA, the self-test, the look-ups

    def test_lists_are_tested_anew_an_hour_later_or_a_minute_if_distrusted(self):
        entry, gone = "2.0.0.127.bl.example", DomainRecords(faults={"*": DnsFault.NXDOMAIN})
        times = [0.0]

        async def action(resolver: Resolver, server: DnsServer) -> Any:
            blacklist = BlacklistCheck(Blacklist(zones=[ZONE]), resolver, clock=lambda: times[-1])
            seen = []
            for moment, records in (
                (0, gone),
                (59, TEST_ENTRY[entry]),
                (400, TEST_ENTRY[entry]),
                (3900, gone),
                (4100, gone),
            ):
                times.append(moment)
                server.add(entry, records)
                seen.append((await blacklist.observe(ADA)).listed)
            return seen, blacklist.notices

        seen, notices = serve({"mx.ada.example": HOST}, action, clock=lambda: times[-1])
        assert seen == [None, None, False, False, None]
        assert len(notices) == 1


class TestMerging:
    @each_row(
        ("listed", "merged"),
        [
            ((), False),
            ((False, False), False),
            ((False, None), None),
            ((None, True, False), True),
            ((True, None), True),
        ],
    )
    def test_listed_beats_undetermined_beats_clean(self, listed, merged):
        assert (
            merge_results([BlacklistEvidence(each, str(each)) for each in listed]).listed is merged
        )

    def test_messages_and_sources_come_once_and_not_without_end(self):
        found = merge_results(
            [BlacklistEvidence(True, f"m{n % 5}", ("a", f"s{n % 2}")) for n in range(50)]
        )
        assert (found.message, found.sources) == ("m0; m1; m2", ("a", "s0", "s1"))
