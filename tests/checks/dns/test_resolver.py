"""The resolver against a real server on loopback: every outcome, every outcome and failure, and the number of questions."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import dns.message
import dns.rcode
import pytest

from mailverdict.checks.dns.answers import MAX_EXCHANGES, AnswerOutcome, DnsAnswer, RecordType
from mailverdict.checks.dns.resolver import Resolver, mx_evidence
from mailverdict.checks.dns.retry import system_servers
from mailverdict.checks.dns.sockets import Server
from mailverdict.errors import SettingsError
from mailverdict.loop import run_sync
from mailverdict.model.evidence import DnsOutcome, DomainEvidence, MailExchange
from mailverdict.model.settings import LocalSettings, parse_resolver
from mailverdict.sandbox.dns import DnsFault, DnsServer, DomainRecords
from mailverdict.sandbox.zones import CASES, sandbox_zones
from tests.doubles.clock import Clock
from tests.doubles.lying_resolver import LyingServer
from tests.doubles.tables import assert_none_differ, each_row

pytestmark = pytest.mark.usefixtures("skipped_waits")

T = TypeVar("T")
Zones = Mapping[str, DomainRecords]
MX = DomainRecords({"MX": ("10 mx.ada.example",)})
DEAD = DomainRecords(faults={"*": DnsFault.SILENCE})


def serve(
    zones: Zones,
    action: Callable[[Resolver, DnsServer], Awaitable[T]],
    *,
    run: Any = asyncio.run,
    **given: Any,
) -> T:
    """Run `action` with a server for `zones`, and a resolver that asks it."""
    own = {name: given.pop(name) for name in ("clock", "randomness", "cache_size") if name in given}
    given.setdefault("allow_networks", ["127.0.0.0/8"])

    async def main() -> T:
        async with DnsServer(zones) as server:
            settings = {"dns_timeout": 1.0, "dns_attempts": 1, **given}
            resolver = Resolver(LocalSettings(resolver=server.endpoint, **settings), **own)
            try:
                return await action(resolver, server)
            finally:
                await resolver.aclose()

    return run(main())


def look_up(zones: Zones, domain: str, **given: Any) -> tuple[DomainEvidence, DnsServer]:
    async def action(resolver: Resolver, server: DnsServer) -> tuple[DomainEvidence, DnsServer]:
        return await resolver.observe_domain(domain), server

    return serve(zones, action, **given)


async def collect(resolver: Resolver, domains: list[str]) -> list[tuple[int, DomainEvidence]]:
    return [seen async for seen in resolver.observe_domains(domains)]


@pytest.fixture(scope="module")
def seen() -> dict[str, DomainEvidence]:
    """Every case of the sandbox, asked all at once."""

    async def action(resolver: Resolver, _: DnsServer) -> dict[str, DomainEvidence]:
        found = await collect(resolver, [case.domain for case in CASES])
        return {evidence.domain: evidence for _, evidence in found}

    return serve(sandbox_zones(), action)


class TestOutcomes:
    def test_outcome_of_every_case_of_the_sandbox(self, seen):
        found = [(case.domain, case.why, case.outcome, seen[case.domain].outcome) for case in CASES]
        assert_none_differ(row for row in found if row[2] is not row[3])

    def test_exchanges_or_else_a_message(self, seen):
        for case in CASES:
            evidence = seen[case.domain]
            has_exchanges = case.outcome in (DnsOutcome.MX, DnsOutcome.IMPLICIT_MX)
            assert bool(evidence.exchanges) is has_exchanges, case.domain
            assert bool(evidence.message) is not has_exchanges, case.domain

    @pytest.mark.parametrize(
        ("domain", "exchanges"),
        [
            (
                "three.example",
                [(10, "mx1.cases.example"), (20, "mx2.cases.example"), (30, "mx3.cases.example")],
            ),
            ("equal.example", [(10, "mx1.cases.example"), (10, "mx2.cases.example")]),
            ("twice.example", [(10, "mx1.cases.example")]),
            ("extreme.example", [(0, "mx1.cases.example"), (65535, "mx2.cases.example")]),
            ("null-slip.example", [(10, "mx1.cases.example")]),
            ("alias-of-alias.example", [(10, "mx1.cases.example")]),
            ("alias-half.example", [(10, "mx1.cases.example")]),
            ("forged.example", [(10, "mx1.cases.example")]),
            ("implicit.example", [(0, "implicit.example")]),
            ("implicit6.example", [(0, "implicit6.example")]),
            ("alias-of-host.example", [(0, "alias-of-host.example")]),
            ("localhost-slip.example", [(10, "mx1.cases.example")]),
            ("numeric.example", [(20, "nowhere.cases.example")]),
        ],
    )
    def test_exchanges_stand_in_the_order_of_their_preference(self, seen, domain, exchanges):
        assert seen[domain].exchanges == tuple(MailExchange(*each) for each in exchanges)

    def test_exchanges_are_bounded(self, seen):
        exchanges = seen["many.example"].exchanges
        assert [each.preference for each in exchanges] == list(range(MAX_EXCHANGES))

    @pytest.mark.parametrize(
        ("domain", "message"),
        [
            ("no-such-domain.example", "the domain does not exist"),
            ("null.example", "the domain says that it accepts no mail (RFC 7505)"),
            (
                "localhost.example",
                "the only mail server has a name that no host on the Internet has: localhost",
            ),
            (
                "number.example",
                "the only mail server has a name that no host on the Internet has: 0",
            ),
            (
                "implicit-loopback.example",
                "AAAA look-up: ::1, not a public address; "
                "filters give such addresses for what they block",
            ),
            (
                "numeric-only.example",
                "the MX record names an IP address (192.0.2.25), not a host (RFC 1035 section 3.3.9)",
            ),
            ("parked.example", "the domain exists, but has no mail server"),
            ("servfail.example", "MX look-up: SERVFAIL from 127.0.0.1"),
            ("refused.example", "MX look-up: REFUSED from 127.0.0.1"),
            ("silent.example", "MX look-up: no answer in 1 s from 127.0.0.1"),
            ("lame.example", "MX look-up: a referral instead of an answer from 127.0.0.1"),
            ("garbage.example", "MX look-up: an unreadable answer from 127.0.0.1"),
            ("loop-a.example", "MX look-up: an endless chain of aliases from 127.0.0.1"),
            ("address-servfail.example", "A look-up: SERVFAIL from 127.0.0.1"),
            (
                "truncated-dead.example",
                "MX look-up: 127.0.0.1 cannot be asked (the TCP connection ended early)",
            ),
            (
                "truncated-forged.example",
                "MX look-up: 127.0.0.1 cannot be asked (the answer over TCP is to another question)",
            ),
        ],
    )
    def test_message_describes_the_answer(self, seen, domain, message):
        assert seen[domain].message == message

    @each_row("domain", ["Ada.Example", "ADA.EXAMPLE.", "ada.example"])
    def test_case_and_final_dot_make_no_difference(self, domain):
        evidence, _ = look_up({"ada.example": MX}, domain)
        assert evidence == DomainEvidence(
            "ada.example", DnsOutcome.MX, (MailExchange(10, "mx.ada.example"),)
        )

    def test_u_labels_are_asked_as_a_labels(self):
        evidence, server = look_up({"xn--mller-bau-q9a.example": MX}, "Müller-Bau.example")
        assert (evidence.domain, evidence.outcome) == ("xn--mller-bau-q9a.example", DnsOutcome.MX)
        assert server.count("xn--mller-bau-q9a.example", "MX") == 1

    @each_row("size", [1, 3])
    def test_chain_of_aliases_that_the_resolver_does_not_follow(self, size):
        zones = {
            f"a{n}.example": DomainRecords(
                {"CNAME": (f"a{n + 1}.example",)}, {"*": DnsFault.ALIAS_ONLY}
            )
            for n in range(size)
        }
        evidence, _ = look_up({**zones, f"a{size}.example": MX}, "a0.example")
        assert evidence.outcome is DnsOutcome.MX

    def test_chain_of_aliases_without_end_is_undetermined(self):
        zones = {
            f"a{n}.example": DomainRecords(
                {"CNAME": (f"a{n + 1}.example",)}, {"*": DnsFault.ALIAS_ONLY}
            )
            for n in range(30)
        }
        evidence, server = look_up(zones, "a0.example")
        assert (evidence.outcome, evidence.message) == (
            DnsOutcome.UNDETERMINED,
            "MX look-up: an endless chain of aliases",
        )
        assert server.count() < 15

    def test_alias_to_a_name_that_cannot_be_asked_is_undetermined(self):
        zones = {
            "a.example": DomainRecords({"CNAME": (r"b\000c.example",)}, {"*": DnsFault.ALIAS_ONLY})
        }
        evidence, server = look_up(zones, "a.example")
        assert evidence.outcome is DnsOutcome.UNDETERMINED
        assert server.count() == 1


UNASKABLE = {
    "label": "a" * 64 + ".example",
    "name": ".".join(["a" * 60] * 5),
    "thousand labels": ".".join(["a"] * 1000),
    "megabytes": "a" * 10_000_000,
    "empty": "",
    "root": ".",
    "empty label": "a..example",
    "leading dot": ".example",
    "blank": "a b.example",
    "NUL": "a\0.example",
    "line": "ada.example\r\nb",
    "escape": r"a\046b.example",
    "surrogate": "\udc80.example",
    "joiner": "a\u200db.example",
    "long in A-labels": "ü" * 70 + ".example",
}


class TestNames:
    @each_row("domain", UNASKABLE.values(), ids=UNASKABLE)
    def test_what_the_dns_cannot_carry_does_not_exist_and_is_not_asked(self, domain):
        evidence, server = look_up({}, domain)
        assert evidence.outcome is DnsOutcome.NXDOMAIN
        assert evidence.message
        assert len(evidence.domain) <= 253
        assert server.count() == 0

    def test_they_keep_their_place_among_others(self):
        async def action(resolver: Resolver, _: DnsServer) -> list[tuple[int, DomainEvidence]]:
            return await collect(resolver, [*UNASKABLE.values(), "ada.example"])

        found = dict(serve({"ada.example": MX}, action))
        assert len(found) == len(UNASKABLE) + 1
        assert found[len(UNASKABLE)].outcome is DnsOutcome.MX


class TestNumberOfQuestions:
    @each_row(
        ("records", "asked"),
        [
            (MX, [1, 0, 0]),
            (DomainRecords(faults={"*": DnsFault.NXDOMAIN}), [1, 1, 0]),
            (DomainRecords(faults={"*": DnsFault.SERVFAIL}), [1, 0, 0]),
            (DomainRecords({"A": ("127.0.0.5",)}), [1, 1, 0]),
            (DomainRecords({"AAAA": ("2001:db8::5",)}), [1, 1, 1]),
            (DomainRecords({"AAAA": ("::1",)}), [1, 1, 1]),
            (DomainRecords({"A": ("10.0.0.5",)}), [1, 1, 1]),
            (DomainRecords({"MX": ("0 0",), "A": ("192.0.2.1",)}), [1, 0, 0]),
            (DomainRecords({"TXT": ("hello",)}), [2, 2, 1]),
        ],
    )
    def test_no_question_is_asked_that_cannot_change_the_outcome(self, records, asked):
        _, server = look_up({"ada.example": records}, "ada.example")
        assert [server.count("ada.example", rdtype) for rdtype in ("MX", "A", "AAAA")] == asked

    @each_row("rdtype", ["MX", "A"])
    def test_a_domain_without_records_is_unknown_if_the_second_answer_has_some(self, rdtype):
        nothing = DomainRecords({"TXT": ("hello",)})
        found = DomainRecords(
            {"MX": ("10 mx.example",)} if rdtype == "MX" else {"A": ("192.0.2.1",)}
        )

        async def main() -> list[DnsOutcome]:
            async with LyingServer(
                {"ada.example": nothing}, lambda *_: found, begins_after=3
            ) as server:
                resolver = Resolver(LocalSettings(resolver=server.endpoint, dns_timeout=1.0))
                seen = [(await resolver.observe_domain("ada.example")).outcome for _ in range(2)]
                await resolver.aclose()
                return seen

        after = DnsOutcome.MX if rdtype == "MX" else DnsOutcome.IMPLICIT_MX
        assert asyncio.run(main()) == [DnsOutcome.UNDETERMINED, after]

    def test_a_second_answer_is_needed_again_after_a_contradiction(self):
        nothing, found = (
            DomainRecords({"TXT": ("hello",)}),
            DomainRecords({"MX": ("10 mx.example",)}),
        )

        def second_has_records(name: str, rdtype: str) -> DomainRecords:
            return found if server.count(name, "MX") % 2 == 0 and rdtype == "MX" else nothing

        server = LyingServer({"ada.example": nothing}, second_has_records)

        async def main() -> list[DnsOutcome]:
            async with server:
                resolver = Resolver(LocalSettings(resolver=server.endpoint, dns_timeout=1.0))
                seen = [(await resolver.observe_domain("ada.example")).outcome for _ in range(3)]
                await resolver.aclose()
                return seen

        assert asyncio.run(main()) == [DnsOutcome.UNDETERMINED] * 3

    def test_a_second_answer_is_needed_after_a_failure(self):
        nothing, found = (
            DomainRecords({"TXT": ("hello",)}),
            DomainRecords({"MX": ("10 mx.example",)}),
        )
        failing, clock = (
            DomainRecords({"TXT": ("hello",)}, faults={"A": DnsFault.SERVFAIL}),
            Clock(),
        )
        records = {"MX": nothing, "A": failing, "AAAA": nothing}

        async def main() -> list[DnsOutcome]:
            async with LyingServer(
                {"ada.example": nothing}, lambda name, rdtype: records[rdtype]
            ) as server:
                settings = LocalSettings(resolver=server.endpoint, dns_timeout=1.0, dns_attempts=1)
                resolver = Resolver(settings, clock=clock)
                first = await resolver.observe_domain("ada.example")
                # The first answer about MX is still in the cache.
                records.update(MX=found, A=nothing)
                clock.now += 6
                second = await resolver.observe_domain("ada.example")
                await resolver.aclose()
                return [first.outcome, second.outcome]

        assert asyncio.run(main()) == [DnsOutcome.UNDETERMINED, DnsOutcome.UNDETERMINED]

    @pytest.mark.slow
    def test_each_unique_domain_is_asked_once_however_often_it_comes(self):
        names = [f"d{n}.example" for n in range(300)]
        domains = [
            *names,
            *(name.upper() for name in names),
            *(f"{name}." for name in reversed(names)),
        ]

        async def action(resolver: Resolver, server: DnsServer) -> Any:
            return await collect(resolver, domains), server

        found, server = serve(dict.fromkeys(names, MX), action)
        assert sorted(position for position, _ in found) == list(range(900))
        assert all(
            evidence.domain == domains[position].lower().rstrip(".") for position, evidence in found
        )
        assert [server.count(name) for name in names] == [1] * 300

    def test_missing_domains_of_a_column_are_asked_about_twice_and_then_cached(self):
        names = [f"gone{n}.example" for n in range(50)]

        async def action(resolver: Resolver, server: DnsServer) -> Any:
            return await collect(resolver, names) + await collect(resolver, names), server

        found, server = serve({}, action)
        assert [evidence.outcome for _, evidence in found] == [DnsOutcome.NXDOMAIN] * 100
        assert [(server.count(name, "MX"), server.count(name, "A")) for name in names] == [
            (1, 1)
        ] * 50

    def test_simultaneous_requests_share_one_question(self):
        async def action(resolver: Resolver, server: DnsServer) -> Any:
            return await asyncio.gather(
                *(resolver.observe_domain("ada.example") for _ in range(20))
            ), server

        found, server = serve({"ada.example": DomainRecords(MX.records, delay=0.01)}, action)
        assert {evidence.outcome for evidence in found} == {DnsOutcome.MX}
        assert server.count() == 1

    def test_waiting_requests_continue_when_the_first_is_cancelled(self):
        async def action(resolver: Resolver, _: DnsServer) -> DomainEvidence:
            first = asyncio.create_task(resolver.observe_domain("ada.example"))
            second = asyncio.create_task(resolver.observe_domain("ada.example"))
            await asyncio.sleep(0)
            first.cancel()
            return await second

        assert (
            serve({"ada.example": DomainRecords(MX.records, delay=0.01)}, action).outcome
            is DnsOutcome.MX
        )

    def test_question_ends_when_nobody_waits_for_it(self):
        async def action(resolver: Resolver, server: DnsServer) -> int:
            asked = [asyncio.create_task(resolver.observe_domain("ada.example")) for _ in range(2)]
            while not server.count("ada.example"):
                await asyncio.sleep(0.01)
            for each in asked:
                each.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
            await asyncio.sleep(10)
            return server.count("ada.example")

        assert serve({"ada.example": DEAD}, action, dns_attempts=3) == 1

    def test_error_while_an_answer_is_read_is_raised_and_ends_the_others(self):
        class Failing(Resolver):
            def cached(self, name: str, rdtype: RecordType) -> DnsAnswer | None:
                if name == "d30.example":
                    raise ZeroDivisionError
                return super().cached(name, rdtype)

        async def main() -> int:
            async with DnsServer(
                dict.fromkeys((f"d{n}.example" for n in range(100)), MX)
            ) as server:
                resolver = Failing(LocalSettings(resolver=server.endpoint, dns_concurrency=10))
                with pytest.raises(ZeroDivisionError):
                    await collect(resolver, [f"d{n}.example" for n in range(100)])
                await resolver.aclose()
                return server.count()

        assert 20 <= asyncio.run(main()) <= 30

    def test_no_more_in_flight_than_allowed_and_not_fewer(self):
        names = [f"d{n}.example" for n in range(60)]

        async def action(resolver: Resolver, server: DnsServer) -> int:
            found = await collect(resolver, names)
            assert {evidence.outcome for _, evidence in found} == {DnsOutcome.MX}
            return server.most_in_flight

        zones = dict.fromkeys(names, DomainRecords(MX.records, delay=0.02))
        assert serve(zones, action, dns_concurrency=7) == 7

    def test_addresses_and_domains_share_the_limit(self):
        async def action(resolver: Resolver, server: DnsServer) -> int:
            await asyncio.gather(*(resolver.addresses(f"h{n}.example") for n in range(30)))
            return server.most_in_flight

        zones = {
            f"h{n}.example": DomainRecords({"A": ("127.0.0.5",)}, delay=0.01) for n in range(30)
        }
        assert serve(zones, action, dns_concurrency=5) == 5

    def test_closing_the_iterator_cancels_the_lookups(self):
        async def action(resolver: Resolver, server: DnsServer) -> int:
            async with contextlib.aclosing(
                resolver.observe_domains([f"d{n}.example" for n in range(5000)])
            ) as stream:
                async for _ in stream:
                    break
            before = len(asyncio.all_tasks())
            await asyncio.sleep(0)
            assert len(asyncio.all_tasks()) == before
            return server.count()

        assert serve({}, action, dns_concurrency=10) <= 40

    def test_nothing_to_look_up(self):
        async def action(resolver: Resolver, _: DnsServer) -> Any:
            return await collect(resolver, [])

        assert serve({}, action) == []


class TestCache:
    @each_row(
        ("records", "fresh", "stale", "questions"),
        [
            (DomainRecords(MX.records, ttl=300), 299, 301, 1),
            (DomainRecords(MX.records, ttl=0), 29, 31, 1),
            (DomainRecords(MX.records, ttl=10_000_000), 86_399, 86_401, 1),
            (DomainRecords(faults={"*": DnsFault.SERVFAIL}), 4, 6, 1),
            (DomainRecords({"TXT": ("x",)}, ttl=77), 76, 78, 2),
        ],
        ids=["TTL", "at least 30 s", "at most a day", "failure", "nothing there: TTL of the SOA"],
    )
    def test_answers_are_remembered_for_their_ttl(self, records, fresh, stale, questions):
        clock = Clock()

        async def action(resolver: Resolver, server: DnsServer) -> list[int]:
            counts = []
            for seconds in (0, fresh, stale - fresh):
                clock.now += seconds
                await resolver.observe_domain("ada.example")
                counts.append(server.count("ada.example", "MX"))
            return counts

        assert serve({"ada.example": records}, action, clock=clock) == [
            questions,
            questions,
            2 * questions,
        ]

    def test_least_recently_used_answer_goes_when_it_is_full(self):
        async def action(resolver: Resolver, server: DnsServer) -> list[int]:
            for name in ("a", "b", "a", "c", "a", "b"):
                await resolver.observe_domain(f"{name}.example")
            return [server.count(f"{name}.example") for name in "abc"]

        assert serve({f"{name}.example": MX for name in "abc"}, action, cache_size=2) == [1, 2, 1]


class TestFailingServers:
    def test_truncated_answer_is_asked_for_over_tcp(self):
        evidence, server = look_up(
            {"ada.example": DomainRecords(MX.records, {"MX": DnsFault.TRUNCATED})}, "ada.example"
        )
        assert evidence.outcome is DnsOutcome.MX
        assert [server.count("ada.example", tcp=tcp) for tcp in (False, True)] == [1, 1]

    @pytest.mark.slow
    def test_many_truncated_answers_at_once(self):
        names = [f"d{n}.example" for n in range(150)]

        async def action(resolver: Resolver, server: DnsServer) -> Any:
            return await collect(resolver, names), server

        found, server = serve(
            dict.fromkeys(names, DomainRecords(MX.records, {"MX": DnsFault.TRUNCATED})),
            action,
            dns_timeout=5.0,
        )
        assert {evidence.outcome for _, evidence in found} == {DnsOutcome.MX}
        assert server.count(tcp=True) == 150

    def test_server_that_knows_no_edns_is_asked_without(self):
        evidence, server = look_up(
            {"ada.example": DomainRecords(MX.records, {"MX": DnsFault.NO_EDNS})}, "ada.example"
        )
        assert evidence.outcome is DnsOutcome.MX
        assert server.count() == 2

    @each_row(
        ("fault", "tries"),
        [
            (DnsFault.SILENCE, 3),
            (DnsFault.GARBAGE, 3),
            (DnsFault.WRONG_ID, 3),
            (DnsFault.WRONG_QUESTION, 3),
            (DnsFault.SERVFAIL, 1),
            (DnsFault.REFUSED, 1),
        ],
    )
    def test_what_may_be_better_next_time_is_asked_again(self, fault, tries):
        zones = {"ada.example": DomainRecords(MX.records, {"MX": fault})}
        evidence, server = look_up(zones, "ada.example", dns_timeout=0.05, dns_attempts=3)
        assert evidence.outcome is DnsOutcome.UNDETERMINED
        assert server.count() == tries

    def test_silence_is_reported_with_its_seconds(self):
        evidence, _ = look_up(
            {"ada.example": DEAD}, "ada.example", dns_timeout=0.05, dns_attempts=3
        )
        assert evidence.message == "MX look-up: no answer in 0.15 s from 127.0.0.1"

    def test_answer_to_a_repeated_question_counts(self):
        """The first try is answered too late for itself, and then answers nothing else."""
        evidence, _ = look_up(
            {"ada.example": DEAD, "bob.example": MX}, "bob.example", dns_attempts=2
        )
        assert evidence.outcome is DnsOutcome.MX

    def test_port_without_a_listener(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
            taken.bind(("127.0.0.1", 0))
            endpoint = f"127.0.0.1:{taken.getsockname()[1]}"

        async def main() -> DomainEvidence:
            resolver = Resolver(LocalSettings(resolver=endpoint, dns_timeout=5.0))
            try:
                return await resolver.observe_domain("ada.example")
            finally:
                await resolver.aclose()

        evidence = asyncio.run(main())
        assert evidence.outcome is DnsOutcome.UNDETERMINED
        assert "127.0.0.1 cannot be asked" in evidence.message

    def test_closing_ends_what_is_being_asked(self):
        async def action(resolver: Resolver, server: DnsServer) -> DomainEvidence:
            asked = asyncio.create_task(resolver.observe_domain("ada.example"))
            while not server.count("ada.example"):
                await asyncio.sleep(0.01)
            await resolver.aclose()
            return await asked

        evidence = serve({"ada.example": DEAD}, action, dns_timeout=60.0, dns_attempts=3)
        assert evidence.outcome is DnsOutcome.UNDETERMINED
        assert "the resolver was closed" in evidence.message

    def test_closing_ends_what_is_being_asked_over_tcp(self):
        async def action(resolver: Resolver, server: DnsServer) -> DomainEvidence:
            asked = asyncio.create_task(resolver.observe_domain("ada.example"))
            while not server.count(tcp=True):
                await asyncio.sleep(0.01)
            await resolver.aclose()
            return await asked

        truncated = DomainRecords(MX.records, {"MX": DnsFault.TRUNCATED}, delay=0.2)
        evidence = serve({"ada.example": truncated}, action, dns_timeout=60.0)
        assert "the resolver was closed" in evidence.message

    def test_asking_after_closing_opens_again(self):
        async def action(resolver: Resolver, _: DnsServer) -> DomainEvidence:
            await resolver.aclose()
            await resolver.observe_domain("bob.example")
            await resolver.aclose()
            return await resolver.observe_domain("ada.example")

        assert serve({"ada.example": MX}, action).outcome is DnsOutcome.MX

    @pytest.mark.usefixtures("real_waits")
    def test_one_resolver_serves_one_loop_after_the_other(self):
        server = DnsServer({"ada.example": MX, "bob.example": MX})
        run_sync(server.start())
        try:
            resolver = Resolver(LocalSettings(resolver=server.endpoint))
            seen = [
                asyncio.run(resolver.observe_domain(name))
                for name in ("ada.example", "bob.example", "ada.example")
            ]
        finally:
            run_sync(server.stop())
        assert {evidence.outcome for evidence in seen} == {DnsOutcome.MX}
        assert server.count() == 2

    def test_uvloop_serves_as_well(self):
        uvloop = pytest.importorskip("uvloop")

        async def action(resolver: Resolver, _: DnsServer) -> Any:
            return await collect(resolver, ["one.example", "truncated.example", "servfail.example"])

        found = serve(sandbox_zones(), action, run=uvloop.run)
        assert {evidence.domain: evidence.outcome.value for _, evidence in found} == {
            "one.example": "mx",
            "truncated.example": "mx",
            "servfail.example": "undetermined",
        }


class Impostor(asyncio.DatagramProtocol):
    """A server whose correct answer comes after a forged NXDOMAIN from another address."""

    def __init__(self) -> None:
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        query = dns.message.from_wire(data)
        lie, truth = dns.message.make_response(query), dns.message.make_response(query)
        lie.set_rcode(dns.rcode.NXDOMAIN)
        truth.set_rcode(dns.rcode.SERVFAIL)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as elsewhere:
            elsewhere.sendto(lie.to_wire(), addr)
        self.transport.sendto(truth.to_wire(), addr)


class Repeating(random.Random):
    """Gives each number several times."""

    def __init__(self) -> None:
        super().__init__(0)
        self.calls = 0

    def getrandbits(self, bits: int) -> int:
        self.calls += 1
        return self.calls // 3 % (1 << bits)


class TestForgery:
    def test_answer_from_another_address_is_ignored(self):
        async def main() -> DomainEvidence:
            loop = asyncio.get_running_loop()
            transport, _ = await loop.create_datagram_endpoint(
                Impostor, local_addr=("127.0.0.1", 0)
            )
            port = transport.get_extra_info("sockname")[1]
            resolver = Resolver(LocalSettings(resolver=f"127.0.0.1:{port}", dns_attempts=1))
            try:
                return await resolver.observe_domain("ada.example")
            finally:
                await resolver.aclose()
                transport.close()

        assert asyncio.run(main()).message == "MX look-up: SERVFAIL from 127.0.0.1"

    def test_questions_in_flight_never_share_an_id(self):
        names = [f"d{n}.example" for n in range(40)]

        async def action(resolver: Resolver, _: DnsServer) -> Any:
            return await collect(resolver, names)

        found = serve(
            {name: DomainRecords({"MX": (f"1 mx.{name}",)}, delay=0.01) for name in names},
            action,
            randomness=Repeating(),
        )
        assert all(evidence.exchanges[0].host == f"mx.{evidence.domain}" for _, evidence in found)

    def test_late_answer_to_an_earlier_question_is_not_used_for_the_next(self):
        """Every question has the same id here, so that only the question tells the answers apart."""

        class Constant(random.Random):
            def getrandbits(self, _: int) -> int:
                return 7

        async def action(resolver: Resolver, _: DnsServer) -> DomainEvidence:
            assert (
                await resolver.observe_domain("late.example")
            ).outcome is DnsOutcome.UNDETERMINED
            return await resolver.observe_domain("ada.example")

        late = DomainRecords({"MX": ("10 mx.late.example",)}, delay=0.1)
        zones = {"late.example": late, "ada.example": DomainRecords(MX.records, delay=0.15)}
        evidence = serve(
            zones,
            action,
            dns_timeout=0.08,
            dns_attempts=1,
            dns_concurrency=1,
            randomness=Constant(),
        )
        assert evidence.exchanges == ()


class TestServers:
    """Several resolvers, as a system has them."""

    def ask(
        self, zones: list[Zones], domains: list[str], **given: Any
    ) -> tuple[list[DomainEvidence], list[int]]:
        async def main() -> tuple[list[DomainEvidence], list[int]]:
            async with contextlib.AsyncExitStack() as stack:
                servers = [await stack.enter_async_context(DnsServer(each)) for each in zones]
                found = tuple(Server(*parse_resolver(each.endpoint)) for each in servers)
                settings = LocalSettings(**{"dns_timeout": 0.5, "dns_attempts": 3, **given})
                resolver = Resolver(settings, find_servers=lambda: found)
                stack.push_async_callback(resolver.aclose)
                seen = [await resolver.observe_domain(domain) for domain in domains]
                return seen, [server.count() for server in servers]

        return asyncio.run(main())

    @each_row(
        "fault",
        [
            DnsFault.SILENCE,
            DnsFault.SERVFAIL,
            DnsFault.REFUSED,
            DnsFault.GARBAGE,
            DnsFault.WRONG_ID,
        ],
    )
    def test_next_resolver_is_asked_when_one_fails(self, fault):
        broken = {"ada.example": DomainRecords(faults={"*": fault})}
        [evidence], counts = self.ask([broken, {"ada.example": MX}], ["ada.example"])
        assert evidence.outcome is DnsOutcome.MX
        assert counts == [1, 1]

    def test_resolver_that_answered_last_is_asked_first(self):
        good = {"ada.example": MX, "bob.example": MX}
        seen, counts = self.ask([dict.fromkeys(good, DEAD), good], ["ada.example", "bob.example"])
        assert {evidence.outcome for evidence in seen} == {DnsOutcome.MX}
        assert counts == [1, 2]

    def test_every_failed_resolver_is_reported(self):
        broken = {"ada.example": DomainRecords(faults={"*": DnsFault.SERVFAIL})}
        [evidence], counts = self.ask([broken, {"ada.example": DEAD}], ["ada.example"])
        assert (
            evidence.message
            == "MX look-up: SERVFAIL from 127.0.0.1; no answer in 1.5 s from 127.0.0.1"
        )
        assert counts == [1, 2]

    def test_attempts_are_bounded_over_all_resolvers(self):
        _, counts = self.ask([{"ada.example": DEAD}] * 3, ["ada.example"], dns_attempts=2)
        assert counts == [1, 1, 0]

    def test_no_resolver_is_an_error_before_any_look_up(self, tmp_path):
        nothing = tmp_path / "resolv.conf"
        nothing.write_text("# no nameserver\nsearch example.org\n")
        resolver = Resolver(LocalSettings(), find_servers=lambda: system_servers(str(nothing)))
        with pytest.raises(SettingsError, match="resolver="):
            asyncio.run(resolver.observe_domain("ada.example"))
        with pytest.raises(SettingsError, match="resolver="):
            asyncio.run(collect(resolver, ["ada.example", "bob.example"]))

    def test_resolvers_of_the_system(self, tmp_path):
        conf = tmp_path / "resolv.conf"
        conf.write_text("nameserver 192.0.2.1\nnameserver 2001:db8::1\noptions ndots:2\n")
        assert system_servers(str(conf)) == (Server("192.0.2.1", 53), Server("2001:db8::1", 53))


class TestAddresses:
    @each_row(
        ("records", "outcome", "addresses", "is_complete"),
        [
            (
                DomainRecords({"A": ("127.0.0.5",), "AAAA": ("::1",)}),
                "data",
                ["127.0.0.5", "::1"],
                True,
            ),
            (
                DomainRecords({"A": ("127.0.0.6", "127.0.0.5")}),
                "data",
                ["127.0.0.6", "127.0.0.5"],
                True,
            ),
            (DomainRecords({"AAAA": ("2001:db8::5",)}), "data", ["2001:db8::5"], True),
            (
                DomainRecords({"A": ("127.0.0.5",)}, {"AAAA": DnsFault.SERVFAIL}),
                "data",
                ["127.0.0.5"],
                False,
            ),
            (DomainRecords(faults={"A": DnsFault.SERVFAIL}), "undetermined", [], False),
            (DomainRecords(faults={"A": DnsFault.NXDOMAIN}), "nodata", [], True),
            (DomainRecords({"TXT": ("x",)}), "nodata", [], True),
            (DomainRecords({"CNAME": ("other.example",)}), "data", ["127.0.0.9"], True),
            (DomainRecords(faults={"*": DnsFault.NXDOMAIN}), "nxdomain", [], True),
        ],
    )
    def test_addresses_of_a_host(self, records, outcome, addresses, is_complete):
        async def action(resolver: Resolver, _: DnsServer) -> Any:
            return await resolver.addresses("Mx.Ada.Example.")

        answer = serve(
            {"mx.ada.example": records, "other.example": DomainRecords({"A": ("127.0.0.9",)})},
            action,
        )
        assert (answer.outcome, sorted(answer.texts)) == (outcome, sorted(addresses))
        assert bool(answer.message) is not is_complete

    def test_name_that_no_host_has(self):
        async def action(resolver: Resolver, _: DnsServer) -> Any:
            return await resolver.addresses("not a host")

        answer = serve({}, action)
        assert (answer.outcome, answer.texts, answer.message != "") == (
            AnswerOutcome.NXDOMAIN,
            (),
            True,
        )

    @each_row(
        ("address", "name"),
        [("127.0.0.5", "5.0.0.127.in-addr.arpa"), ("::1", "1." + "0." * 31 + "ip6.arpa")],
    )
    def test_names_of_an_address(self, address, name):
        async def action(resolver: Resolver, _: DnsServer) -> Any:
            return await resolver.pointer_names(address)

        answer = serve({name: DomainRecords({"PTR": ("Mx.Ada.Example",)})}, action)
        assert (answer.outcome, answer.texts) == (AnswerOutcome.DATA, ("mx.ada.example",))

    def test_text_records_are_joined_shortened_and_escaped(self):
        async def action(resolver: Resolver, _: DnsServer) -> Any:
            return await resolver.query("ada.example", "TXT")

        long = " ".join(f'"{"x" * 250}"' for _ in range(6))
        zones = {"ada.example": DomainRecords({"TXT": (r'"two " "parts\010\255"', long)})}
        assert sorted(serve(zones, action).texts) == ["two parts\\n\\xff", "x" * 1024]


class PlainHandleLoop(asyncio.SelectorEventLoop):
    """Gives handles without a time for its timers, as uvloop does for those that are due at once."""

    class PlainHandle:
        def __init__(self, timer: asyncio.TimerHandle) -> None:
            self.cancel = timer.cancel

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:
        timer = super().call_at(when, callback, *args, context=context)
        is_ours = type(getattr(callback, "__self__", None)).__name__ == "LoopClient"
        return self.PlainHandle(timer) if is_ours else timer


def test_an_event_loop_may_give_handles_without_a_time():
    errors: list[dict[str, Any]] = []

    async def action(resolver: Resolver, server: DnsServer) -> list[DnsOutcome]:
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: errors.append(context)
        )
        found = [await resolver.observe_domain(domain) for domain in ("ada.example", "bob.example")]
        return [each.outcome for each in found]

    with asyncio.Runner(loop_factory=PlainHandleLoop) as runner:
        assert (
            serve({"ada.example": MX, "bob.example": MX}, action, run=runner.run)
            == [DnsOutcome.MX] * 2
        )
    assert errors == []


@each_row(
    ("hosts", "outcome", "kept"),
    [
        (["localhost"], DnsOutcome.NO_EXCHANGE, []),
        (["LOCALHOST", "mail.localhost"], DnsOutcome.NO_EXCHANGE, []),
        (["mx.invalid", ""], DnsOutcome.NO_EXCHANGE, []),
        (["exchange.office.local"], DnsOutcome.NO_EXCHANGE, []),
        (["mx.one.example", "ms19586615.msv1.invalid"], DnsOutcome.MX, ["mx.one.example"]),
        (["192.0.2.25", "mx.one.example"], DnsOutcome.MX, ["mx.one.example"]),
        (["192.0.2.25"], DnsOutcome.UNDETERMINED, []),
        (["[192.0.2.25]"], DnsOutcome.UNDETERMINED, []),
        (["2001:db8::25", "localhost"], DnsOutcome.UNDETERMINED, []),
        (["0"], DnsOutcome.NO_EXCHANGE, []),
        (["0", ""], DnsOutcome.NO_EXCHANGE, []),
        (["0.0.0.0"], DnsOutcome.NO_EXCHANGE, []),
        (["::"], DnsOutcome.NO_EXCHANGE, []),
        (["mx.one.example.10"], DnsOutcome.NO_EXCHANGE, []),
        (["0", "mx.one.example"], DnsOutcome.MX, ["mx.one.example"]),
        (["0", "192.0.2.25"], DnsOutcome.UNDETERMINED, []),
        # Numbers that some systems read as an address: 127.0.0.1 and 192.0.2.1.
        (["127.1"], DnsOutcome.UNDETERMINED, []),
        (["3221225985"], DnsOutcome.UNDETERMINED, []),
        # Names that only look like these, and those below which a resolver may have hosts.
        (["localhost.one.example", "mxlocal", "1.2.3.4.one.example"], DnsOutcome.MX, None),
        (["0.one.example", "mx1", "10.mx.one"], DnsOutcome.MX, None),
        (["mx.one.test", "mx.one.example", "mx.one.internal"], DnsOutcome.MX, None),
    ],
)
def test_an_exchange_that_no_other_host_can_be(hosts, outcome, kept):
    exchanges = tuple(MailExchange(10, host.lower()) for host in hosts)
    found = mx_evidence("one.example", DnsAnswer(AnswerOutcome.DATA, exchanges=exchanges))
    assert found.outcome is outcome
    assert [each.host for each in found.exchanges] == (hosts if kept is None else kept)


@each_row(
    ("records", "allowed", "outcome"),
    [
        ({"A": ("127.0.0.1",)}, (), DnsOutcome.UNDETERMINED),
        ({"AAAA": ("::1",)}, (), DnsOutcome.UNDETERMINED),
        ({"A": ("10.20.30.40",)}, (), DnsOutcome.UNDETERMINED),
        ({"A": ("169.254.1.1",), "AAAA": ("fe80::1",)}, (), DnsOutcome.UNDETERMINED),
        ({"A": ("198.18.0.7",)}, (), DnsOutcome.UNDETERMINED),  # what some proxies give for all
        ({"A": ("224.0.0.1", "255.255.255.255")}, (), DnsOutcome.UNDETERMINED),
        ({"AAAA": ("::ffff:10.0.0.1",)}, (), DnsOutcome.UNDETERMINED),
        # One that can be a host is enough, of either kind.
        ({"A": ("127.0.0.1", "8.8.8.8")}, (), DnsOutcome.IMPLICIT_MX),
        ({"A": ("127.0.0.1",), "AAAA": ("2606:4700::1",)}, (), DnsOutcome.IMPLICIT_MX),
        ({"A": ("192.0.2.1",)}, (), DnsOutcome.IMPLICIT_MX),  # stands for a public one
        # In a network that was allowed; the unspecified address is no host's.
        ({"A": ("10.20.30.40",)}, ("10.0.0.0/8",), DnsOutcome.IMPLICIT_MX),
        ({"A": ("127.0.0.1",)}, ("10.0.0.0/8",), DnsOutcome.UNDETERMINED),
        ({"A": ("0.0.0.0",)}, ("0.0.0.0/0",), DnsOutcome.UNDETERMINED),
    ],
)
def test_an_address_that_no_host_on_the_internet_has(records, allowed, outcome):
    zones = {"ada.example": DomainRecords(records)}
    found, _ = look_up(zones, "ada.example", allow_networks=allowed)
    assert found.outcome is outcome
    if outcome is DnsOutcome.UNDETERMINED:
        assert "not a public address" in found.message
