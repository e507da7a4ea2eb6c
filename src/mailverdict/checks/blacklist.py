"""Whether the exchanges of a domain are on a blacklist: given addresses and hosts, and DNS lists (RFC 5782).

Only an answer that means *listed* counts as listed; a list that could not be asked leaves the question
open, and what is open is never taken for clean.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from ..model.evidence import BlacklistEvidence, DomainEvidence
from ..model.settings import Blacklist, Network, Zone
from .dns.answers import AddressAnswer, Answer, IPAddress, RecordType
from .dns.cache import AnswerCache

__all__ = ["BlacklistCheck", "observe_blacklist"]

STATIC_HOSTS, STATIC_IPS = "static hosts", "static ips"
# Of one domain, and of one host: the largest operators publish about twenty of each; a domain made to
# have others flood a list has more. What is left out leaves the question open.
MAX_EXCHANGES, MAX_ADDRESSES = 32, 32
MAX_MESSAGES = 3  # in one sentence
CACHE_SIZE = 100_000  # hosts, and the same of addresses in a zone
TRUSTED_FOR, RETEST_AFTER = 3600.0, 60.0  # seconds after which a self-test that went well, or not, is made again

# RFC 5782 section 5: what every DNS list holds, and what none does, so that a user can tell that it works.
LISTED_TEST = {4: ipaddress.ip_address("127.0.0.2"), 6: ipaddress.ip_address("::ffff:127.0.0.2")}
CLEAN_TEST = {4: ipaddress.ip_address("127.0.0.1"), 6: ipaddress.ip_address("::ffff:127.0.0.1")}
TEST_ENTRIES = frozenset(map(ipaddress.ip_address, ("127.0.0.1", "127.0.0.2")))  # say nothing about who is there
# Answers by which a list refuses to answer: over quota, asked through a public resolver, mistyped zone.
REFUSALS = (ipaddress.ip_network("127.255.255.0/24"), ipaddress.ip_network("127.0.0.1/32"))
CODES = ipaddress.ip_network("127.0.0.0/8")  # RFC 5782 section 2.3; beyond it, a resolver rewrites NXDOMAIN


class Asks(Protocol):
    """What is needed of a resolver."""

    async def addresses(self, host: str) -> AddressAnswer:
        """Look up the addresses of a host."""
        ...

    async def query(self, name: str, rdtype: RecordType) -> Answer:
        """Ask one question."""
        ...


@dataclass(frozen=True, slots=True)
class Finding:
    """What one or more sources said.

    Attributes
    ----------
    listed : bool or None
        None: nothing was established.
    message : str
        Which source and why; empty when clean.
    sources : tuple of str
        Who was consulted.
    """

    listed: bool | None = False
    message: str = ""
    sources: tuple[str, ...] = ()


def merge_findings(findings: Sequence[Finding]) -> Finding:
    """Make one of many: listed beats undetermined, which beats clean.

    >>> merge_findings([Finding(False), Finding(None, "silence"), Finding(True, "on bl.example")]).message
    'on bl.example'
    """
    sources = tuple(dict.fromkeys(source for each in findings for source in each.sources))
    for listed in (True, None):
        messages = dict.fromkeys(each.message for each in findings if each.listed is listed)
        if messages:
            return Finding(listed, "; ".join(list(messages)[:MAX_MESSAGES]), sources)
    return Finding(False, "", sources)


class BlacklistCheck:
    """Holds exchanges against one blacklist; each host, address and zone is asked about once.

    Parameters
    ----------
    blacklist : Blacklist
        What to hold them against.
    resolver : Resolver
        Who looks up addresses and DNS lists.
    clock : callable
        Seconds of a monotonic clock: DNS lists are tested anew once an hour, distrusted ones after a minute.

    Attributes
    ----------
    notices : list of str
        What the user should be told: which DNS lists are not used, and why. Each once; whoever has told
        them may empty the list.
    """

    def __init__(self, blacklist: Blacklist, resolver: Asks, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.notices: list[str] = []
        self._blacklist = blacklist
        self._resolver = resolver
        self._hosts = frozenset(blacklist.hosts)
        self._networks = NetworkTable(blacklist.ips)
        self._zones = [ZoneCheck(zone, resolver, self._notice, clock) for zone in blacklist.zones]
        self._noticed: set[str] = set()
        self._findings: AnswerCache[str, Finding] = AnswerCache(finding_lifetime, size=CACHE_SIZE, clock=clock)

    async def observe(self, evidence: DomainEvidence) -> BlacklistEvidence:
        """Hold the exchanges of a domain against the blacklist.

        Parameters
        ----------
        evidence : DomainEvidence
            What the DNS said about the domain.

        Returns
        -------
        BlacklistEvidence
            Listed if one exchange is; otherwise undetermined if anything could not be asked. An empty
            blacklist lists nothing and has no sources.
        """
        if self._blacklist.is_empty:
            return BlacklistEvidence(False)
        if not evidence.exchanges:
            return BlacklistEvidence(None, "the domain has no exchange to look up")
        hosts = [each.host for each in evidence.exchanges]
        found = merge_findings([self._find_name(host) for host in hosts])
        if not found.listed:
            found = merge_findings([found, *await self._find_all(hosts)])
        return BlacklistEvidence(found.listed, found.message, found.sources)

    async def _find_all(self, hosts: Sequence[str]) -> list[Finding]:
        """Hold the addresses of hosts against addresses and zones."""
        if not (self._blacklist.ips or self._zones):
            return []
        asked = [self._findings.get(host, partial(self._find_addresses, host)) for host in hosts[:MAX_EXCHANGES]]
        return [*await asyncio.gather(*asked), *leave_open(len(hosts), MAX_EXCHANGES, "exchanges of the domain")]

    def _find_name(self, host: str) -> Finding:
        """Hold a host name, and the names above it, against the host names."""
        sources = (STATIC_HOSTS,) if self._hosts else ()
        labels = host.split(".")
        for depth in range(len(labels)):
            if (name := ".".join(labels[depth:])) in self._hosts:
                return Finding(True, f"{host} is {name} or below it ({STATIC_HOSTS})", sources)
        return Finding(sources=sources)

    async def _find_addresses(self, host: str) -> Finding:
        """Hold the addresses of one host against addresses and zones."""
        answer = await self._resolver.addresses(host)
        addresses = list(dict.fromkeys(map(unmapped, answer.addresses)))
        findings = [self._find_network(host, address) for address in addresses]
        if not any(each.listed for each in findings):
            asked = [zone.find(host, address) for address in addresses[:MAX_ADDRESSES] for zone in self._zones]
            findings += await asyncio.gather(*asked)
            findings += leave_open(len(addresses) if self._zones else 0, MAX_ADDRESSES, f"addresses of {host}")
        if not answer.is_complete:
            findings.append(Finding(None, f"not all addresses of {host} are known: {answer.message}"))
        return merge_findings(findings)

    def _find_network(self, host: str, address: IPAddress) -> Finding:
        sources = (STATIC_IPS,) if self._blacklist.ips else ()
        network = self._networks.find(address)
        if network is None:
            return Finding(sources=sources)
        return Finding(True, f"{host} ({address}) is in {network} ({STATIC_IPS})", sources)

    def _notice(self, text: str) -> None:
        if text not in self._noticed:
            self._noticed.add(text)
            self.notices.append(text)


async def observe_blacklist(evidence: DomainEvidence, resolver: Asks, blacklist: Blacklist) -> BlacklistEvidence:
    """Hold the exchanges of one domain against a blacklist; for many, keep one `BlacklistCheck`.

    Parameters
    ----------
    evidence : DomainEvidence
        What the DNS said about the domain.
    resolver : Resolver
        Who looks up addresses and DNS lists.
    blacklist : Blacklist
        What to hold them against.

    Returns
    -------
    BlacklistEvidence
        As of `BlacklistCheck.observe`.
    """
    return await BlacklistCheck(blacklist, resolver).observe(evidence)


class NetworkTable:
    """Finds the network that an address is in, at a cost that grows with the prefix lengths and not the networks."""

    def __init__(self, networks: Iterable[Network]) -> None:
        self._by_length: dict[tuple[int, int], dict[int, Network]] = {}
        for network in networks:
            shift = network.max_prefixlen - network.prefixlen
            of_length = self._by_length.setdefault((network.version, shift), {})
            of_length[int(network.network_address) >> shift] = network

    def find(self, address: IPAddress) -> Network | None:
        """Give a network that holds the address."""
        for (version, shift), networks in self._by_length.items():
            if version == address.version and (found := networks.get(int(address) >> shift)):
                return found
        return None


class ZoneCheck:
    """Asks one DNS list about addresses, once it has passed its self-test.

    Parameters
    ----------
    zone : Zone
        The list and the codes that mean *listed*.
    resolver : Resolver
        Who asks.
    notice : callable
        Told, in a sentence, why the list is not used.
    clock : callable
        Seconds of a monotonic clock.
    """

    def __init__(self, zone: Zone, resolver: Asks, notice: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._zone = zone
        self._resolver = resolver
        self._notice = notice
        self._tests: AnswerCache[int, SelfTest] = AnswerCache(self_test_lifetime, size=len(LISTED_TEST), clock=clock)
        self._answers: AnswerCache[IPAddress, Answer] = AnswerCache(answer_lifetime, size=CACHE_SIZE, clock=clock)

    async def find(self, host: str, address: IPAddress) -> Finding:
        """Say whether the list holds the address of a host."""
        test = await self._self_test(4)
        if test.fault is None and address.version == 6:
            test = await self._self_test(6)
        if test.fault is not None:
            return Finding(None, f"{self._zone.name} is not used: {test.fault}")
        if not test.holds_entries or address in TEST_ENTRIES:
            return Finding(sources=(self._zone.name,))
        answer = await self._answers.get(address, partial(self._ask, address))
        return read_answer(self._zone, f"{host} ({address})", answer)

    async def _ask(self, address: IPAddress) -> Answer:
        reversed_address = address.reverse_pointer.removesuffix(".in-addr.arpa").removesuffix(".ip6.arpa")
        return await self._resolver.query(f"{reversed_address}.{self._zone.name}", "A")

    async def _self_test(self, version: int) -> SelfTest:
        return await self._tests.get(version, partial(self._make_self_test, version))

    async def _make_self_test(self, version: int) -> SelfTest:
        """Ask about the two test entries of an address family."""
        entry, absent = LISTED_TEST[version], CLEAN_TEST[version]
        test = judge_self_test(await self._ask(entry), await self._ask(absent), version)
        if test.fault is not None:
            self._notice(f"The DNS list {self._zone.name} is not used: {test.fault}. What it lists is undetermined.")
        return test


@dataclass(frozen=True, slots=True)
class SelfTest:
    """What a DNS list's test entries showed.

    Attributes
    ----------
    fault : str or None
        Why its answers mean nothing; None if they do.
    holds_entries : bool
        Whether it has entries of the address family at all.
    """

    fault: str | None = None
    holds_entries: bool = True


def judge_self_test(entry: Answer, absent: Answer, version: int) -> SelfTest:
    """Judge the answers about the entry that must be there and the one that must not (RFC 5782 section 5)."""
    for answer in (entry, absent):
        if answer.message:
            return SelfTest(f"its self-test got no answer ({answer.message})")
    if refusals := [code for code in codes_of(entry) + codes_of(absent) if is_refusal(code)]:
        return SelfTest(f"it refuses to answer, or the resolver answers in its place ({refusals[0]})")
    if codes_of(absent):
        return SelfTest(f"it lists {CLEAN_TEST[version]}, which no list does, so it may list everything")
    if codes_of(entry):
        return SelfTest()
    if version == 6:  # a list of IPv4 addresses only, as most are
        return SelfTest(holds_entries=False)
    return SelfTest(f"it lacks the test entry {LISTED_TEST[version]}, so it may be out of service")


def read_answer(zone: Zone, what: str, answer: Answer) -> Finding:
    """Say what an answer of a DNS list means for the address it was asked about."""
    sources = (zone.name,)
    if answer.message:
        return Finding(None, f"{zone.name} gave no answer about {what}: {answer.message}", sources)
    codes = codes_of(answer)
    listed = [code for code in codes if not is_refusal(code) and any(code in network for network in zone.codes)]
    if listed:
        return Finding(True, f"{what} is on {zone.name} ({listed[0]})", sources)
    if codes:
        return Finding(None, f"{zone.name} answered {codes[0]} about {what}, which does not mean listed", sources)
    return Finding(sources=sources)


def codes_of(answer: Answer) -> list[IPAddress]:
    """Give the codes of an answer; none if the address is not on the list."""
    return [ipaddress.ip_address(text) for text in answer.texts]


def is_refusal(code: IPAddress) -> bool:
    """Whether a code says that there was no look-up."""
    return code not in CODES or any(code in network for network in REFUSALS)


def unmapped(address: IPAddress) -> IPAddress:
    """Give an IPv4-mapped IPv6 address as the IPv4 address that it is."""
    return getattr(address, "ipv4_mapped", None) or address


def leave_open(count: int, most: int, what: str) -> list[Finding]:
    """Say that not all of `count` were looked up, if so."""
    return [Finding(None, f"only {most} of {count} {what} were looked up")] if count > most else []


def finding_lifetime(finding: Finding) -> float:
    """Keep what was established as long as a self-test, the rest until it makes sense to ask again."""
    return RETEST_AFTER if finding.listed is None else TRUSTED_FOR


def answer_lifetime(answer: Answer) -> float:
    """As of findings."""
    return RETEST_AFTER if answer.message else TRUSTED_FOR


def self_test_lifetime(test: SelfTest) -> float:
    """As of findings."""
    return TRUSTED_FOR if test.fault is None else RETEST_AFTER
