"""The self-test during a run, with a resolver that answers from a script, and a clock that is a number."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence

import pytest

from mailverdict.checks.dns.answers import AnswerOutcome, DnsAnswer
from mailverdict.checks.dns.self_test import FIRST_WAIT, MAX_HELD, ResolverTest
from mailverdict.errors import ResolverError
from mailverdict.model.evidence import DnsOutcome, DomainEvidence, MailExchange

EXCHANGE = DnsAnswer(AnswerOutcome.DATA, (MailExchange(10, "mx.example"),))
MISSING, SILENCE = (
    DnsAnswer(AnswerOutcome.NXDOMAIN),
    DnsAnswer(AnswerOutcome.UNDETERMINED, message="no answer"),
)


class ScriptedResolver:
    """Domains that begin with "dead" do not exist; each answer of a column takes `seconds`."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds, self.now = seconds, 0.0
        self.contradicted: dict[str, None] = {}
        self.known = dict.fromkeys(("gmail.com", "outlook.com", "ietf.org"), EXCHANGE)
        self.asked: list[str] = []  # control questions during a run
        self.gate = asyncio.Event()  # they are answered when it is set
        self.gate.set()
        self.forgotten = 0

    async def query(self, name: str, rdtype: str) -> DnsAnswer:
        return self.known.get(name, MISSING)

    async def query_uncached(self, name: str, rdtype: str) -> DnsAnswer:
        self.asked.append(name)
        await self.gate.wait()
        return self.known.get(name, MISSING)

    async def observe_domain(self, domain: str) -> DomainEvidence:
        if domain.startswith("odd"):
            self.contradicted[domain] = None
            return DomainEvidence(domain, DnsOutcome.UNDETERMINED)
        return DomainEvidence(
            domain, DnsOutcome.NXDOMAIN if domain.startswith("dead") else DnsOutcome.MX
        )

    async def observe_domains(
        self, domains: Sequence[str]
    ) -> AsyncIterator[tuple[int, DomainEvidence]]:
        for position, domain in enumerate(domains):
            self.now += self.seconds
            yield position, await self.observe_domain(domain)

    def forget(self) -> None:
        self.forgotten += 1

    def checkpoints(self) -> int:
        """Tests that were begun after the one before the run, which asks about no known domain uncached."""
        return sum(name in self.known for name in self.asked)


def make_test(resolver: ScriptedResolver) -> ResolverTest:
    return ResolverTest(resolver, clock=lambda: resolver.now, randomness=random.Random(1))  # type: ignore[arg-type]


async def observe(
    resolver: ScriptedResolver, domains: Sequence[str]
) -> list[tuple[float, str, DnsOutcome]]:
    """When each domain was settled, by the answers that had come, and how."""
    test = make_test(resolver)
    return [
        (resolver.now, domains[at], seen.outcome)
        async for at, seen in test.observe_domains(domains)
    ]


def test_good_domains_are_settled_as_they_are_answered() -> None:
    good = [f"live{n}.example" for n in range(300)]
    found = asyncio.run(observe(ScriptedResolver(seconds=1.0), good))

    assert found == [(n + 1.0, name, DnsOutcome.MX) for n, name in enumerate(good)]


def test_a_missing_domain_is_held_for_a_while() -> None:
    domains = [
        "dead.example",
        *[f"live{n}.example" for n in range(50)],
        "dead2.example",
        "live.example",
    ]
    resolver = ScriptedResolver(seconds=1.0)
    when = {name: at for at, name, _ in asyncio.run(observe(resolver, domains))}

    assert when["dead.example"] == 1 + FIRST_WAIT
    assert when["dead2.example"] == len(domains)
    assert resolver.checkpoints() == 2


def test_not_more_than_so_many_are_held() -> None:
    domains = [f"dead{n}.example" for n in range(MAX_HELD + 5)]
    resolver = ScriptedResolver(seconds=1e-6)
    found = asyncio.run(observe(resolver, domains))

    assert round(found[0][0] / resolver.seconds) == MAX_HELD
    assert [name for _, name, _ in found] == domains
    assert resolver.checkpoints() == 2


@pytest.mark.slow
def test_a_resolver_that_begins_late_to_contradict_itself_is_noticed() -> None:
    live = [f"live{n}.example" for n in range(100_000)]
    odd = [f"odd{n}.example" for n in range(20)]
    found = asyncio.run(
        observe(ScriptedResolver(), ["odd.example", *live, "dead1.example", *odd, "dead2.example"])
    )

    assert {name: outcome for _, name, outcome in found if name.startswith("dead")} == {
        "dead1.example": DnsOutcome.UNDETERMINED,
        "dead2.example": DnsOutcome.UNDETERMINED,
    }


def test_one_contradiction_of_many_domains_is_an_accident() -> None:
    live = [f"live{n}.example" for n in range(1000)]
    found = asyncio.run(observe(ScriptedResolver(), ["odd.example", *live, "dead.example"]))

    assert found[-1][1:] == ("dead.example", DnsOutcome.NXDOMAIN)


def test_denials_wait_for_more_domains_where_few_were_contradicted() -> None:
    domains = [
        "odd.example",
        "dead.example",
        *[f"live{n}.example" for n in range(30)],
        "odd2.example",
        "odd3.example",
    ]
    found = asyncio.run(observe(ScriptedResolver(seconds=1.0), domains))

    assert found[-1] == (len(domains), "dead.example", DnsOutcome.UNDETERMINED)


def test_a_resolver_that_cannot_be_tested_settles_no_denial() -> None:
    async def main() -> list[DnsOutcome]:
        resolver = ScriptedResolver()
        test = make_test(resolver)
        await test.require()
        resolver.known = dict.fromkeys(resolver.known, SILENCE)
        column = [
            seen.outcome async for _, seen in test.observe_domains(["dead.example", "live.example"])
        ]
        return [*column, (await test.observe_domain("dead.example")).outcome]

    assert asyncio.run(main()) == [DnsOutcome.MX, DnsOutcome.UNDETERMINED, DnsOutcome.UNDETERMINED]


def test_one_known_domain_that_is_denied_ends_no_run_and_all_of_them_do() -> None:
    async def main(names: Sequence[str]) -> DnsOutcome:
        resolver = ScriptedResolver()
        test = make_test(resolver)
        await test.require()
        resolver.known |= dict.fromkeys(names, MISSING)
        for _ in range(20):  # the domain that is asked about is a random one
            outcome = (await test.observe_domain("dead.example")).outcome
            resolver.now += 61.0
        return outcome

    assert asyncio.run(main(["ietf.org"])) is DnsOutcome.UNDETERMINED
    with pytest.raises(ResolverError, match="began to answer falsely"):
        asyncio.run(main(["gmail.com", "outlook.com", "ietf.org"]))


def test_single_denials_share_a_test_that_begins_after_them() -> None:
    async def main() -> tuple[int, int, int]:
        resolver = ScriptedResolver()
        test = make_test(resolver)
        await test.require()
        resolver.gate.clear()
        first = asyncio.create_task(test.observe_domain("dead.example"))
        while not resolver.checkpoints():
            await asyncio.sleep(0)
        others = [asyncio.create_task(test.observe_domain(f"dead{n}.example")) for n in range(10)]
        for _ in range(10):
            await asyncio.sleep(0)
        resolver.gate.set()
        await asyncio.gather(first, *others)
        shared = resolver.checkpoints()
        await test.observe_domain("dead.example")
        soon = resolver.checkpoints()
        resolver.now += 61.0
        await test.observe_domain("dead.example")
        return shared, soon, resolver.checkpoints()

    assert asyncio.run(main()) == (2, 2, 3)


def test_answers_of_a_column_that_ends_early_are_forgotten() -> None:
    async def main() -> int:
        resolver = ScriptedResolver()
        stream = make_test(resolver).observe_domains(["dead.example", "live.example"])
        await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]
        return resolver.forgotten

    assert asyncio.run(main()) == 1
