"""Whether the exchanges of a domain are on a blacklist.

A blacklist is a set of configured hosts and addresses, and DNS lists (RFC 5782).

`BlacklistCheck` compares host names and addresses with the configured ones, then asks each DNS list
(`ZoneCheck`) that has passed its self-test. Only an answer that means *listed* counts as listed; if
a list could not be asked, the result is undetermined, never clean.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol

from ..model.evidence import BlacklistEvidence, DomainEvidence
from ..model.settings import Blacklist, Network, Zone
from .dns.answers import DENIALS, AnswerCache, DnsAnswer, IPAddress, RecordType

STATIC_HOSTS, STATIC_IPS = "static hosts", "static ips"
# Of one domain, and of one host. The largest operators publish about twenty of each; more would let
# a domain cause floods of questions to a list. If some are not looked up, the result is
# undetermined.
MAX_EXCHANGES, MAX_ADDRESSES = 32, 32
MAX_MESSAGES = 3  # in one sentence
CACHE_SIZE = 100_000  # hosts; answers about addresses are in the resolver's cache
# Seconds for which a result is kept: one that was established, and one that was not.
TRUSTED_FOR = 3600.0
RETEST_AFTER = 60.0

# RFC 5782 section 5: the entry that every DNS list contains, and the one that none contains, to
# test that it works.
LISTED_TEST = {4: ipaddress.ip_address("127.0.0.2"), 6: ipaddress.ip_address("::ffff:127.0.0.2")}
CLEAN_TEST = {4: ipaddress.ip_address("127.0.0.1"), 6: ipaddress.ip_address("::ffff:127.0.0.1")}
# Not about an exchange.
TEST_ENTRIES = frozenset(map(ipaddress.ip_address, ("127.0.0.1", "127.0.0.2")))
# Codes of a refused query: over quota, asked through a public resolver, mistyped zone.
REFUSALS = (ipaddress.ip_network("127.255.255.0/24"), ipaddress.ip_network("127.0.0.1/32"))
# RFC 5782 section 2.3; a resolver that rewrites NXDOMAIN gives others.
CODES = ipaddress.ip_network("127.0.0.0/8")


class ResolverLike(Protocol):
    """The part of `Resolver` that is needed here."""

    async def addresses(self, host: str) -> DnsAnswer:
        """Look up the addresses of a host."""
        ...

    async def query(self, name: str, rdtype: RecordType) -> DnsAnswer:
        """Ask one question."""
        ...


def merge_results(results: Sequence[BlacklistEvidence]) -> BlacklistEvidence:
    """Combine the results of several sources: listed beats undetermined, which beats clean.

    >>> unlisted, unasked = BlacklistEvidence(False), BlacklistEvidence(None, "no answer")
    >>> merge_results([unlisted, unasked, BlacklistEvidence(True, "on b")])
    BlacklistEvidence(listed=True, message='on b', sources=())
    """
    sources = tuple(dict.fromkeys(source for each in results for source in each.sources))
    for listed in (True, None):
        messages = dict.fromkeys(each.message for each in results if each.listed is listed)
        if messages:
            return BlacklistEvidence(listed, "; ".join(list(messages)[:MAX_MESSAGES]), sources)
    return clean(sources)


def clean(sources: tuple[str, ...]) -> BlacklistEvidence:
    """What sources that list nothing show."""
    return BlacklistEvidence(False, sources=sources)


class BlacklistCheck:
    """Checks exchanges against one blacklist.

    Each host is looked up once, and each list is tested once in a while.

    `notices` are messages for the user: which DNS lists are not used, and why. Each is added once;
    the caller may empty the list after showing them.
    """

    def __init__(
        self,
        blacklist: Blacklist,
        resolver: ResolverLike,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.notices: list[str] = []
        self._blacklist = blacklist
        self._resolver = resolver
        self._hosts = frozenset(blacklist.hosts)
        self._networks = NetworkTable(blacklist.ips)
        self._zones = [ZoneCheck(zone, resolver, self._notice, clock) for zone in blacklist.zones]
        self._noticed: set[str] = set()
        self._results: AnswerCache[str, BlacklistEvidence] = AnswerCache(
            seconds_used, size=CACHE_SIZE, clock=clock
        )

    async def observe(self, evidence: DomainEvidence) -> BlacklistEvidence:
        """Check the exchanges of a domain.

        It is listed if one of them is, else undetermined if anything could not be asked.

        An empty blacklist lists nothing and has no sources.
        """
        if self._blacklist.is_empty:
            return BlacklistEvidence(False)
        if not evidence.exchanges:
            return BlacklistEvidence(None, "the domain has no mail server to look up")
        hosts = [each.host for each in evidence.exchanges]
        result = merge_results([self._check_name(host) for host in hosts])
        if not result.listed:
            result = merge_results([result, *await self._check_hosts(hosts)])
        return result

    async def _check_hosts(self, hosts: Sequence[str]) -> list[BlacklistEvidence]:
        """Check the addresses of hosts against networks and zones."""
        if not (self._blacklist.ips or self._zones):
            return []
        asked = [
            self._results.get(host, partial(self._check_host, host))
            for host in hosts[:MAX_EXCHANGES]
        ]
        return [
            *await asyncio.gather(*asked),
            *not_looked_up(len(hosts), MAX_EXCHANGES, "mail servers of the domain"),
        ]

    def _check_name(self, host: str) -> BlacklistEvidence:
        """Check a host name, and the names above it, against the configured hosts."""
        sources = (STATIC_HOSTS,) if self._hosts else ()
        labels = host.split(".")
        for depth in range(len(labels)):
            if (name := ".".join(labels[depth:])) in self._hosts:
                return BlacklistEvidence(
                    True, f"{host} is {name} or below it ({STATIC_HOSTS})", sources
                )
        return clean(sources)

    async def _check_host(self, host: str) -> BlacklistEvidence:
        """Check the addresses of one host against networks and zones."""
        answer = await self._resolver.addresses(host)
        addresses = list(
            dict.fromkeys(unmapped(ipaddress.ip_address(text)) for text in answer.texts)
        )
        results = [self._check_networks(host, address) for address in addresses]
        if not any(each.listed for each in results):
            asked = [
                zone.check(host, address)
                for address in addresses[:MAX_ADDRESSES]
                for zone in self._zones
            ]
            results += await asyncio.gather(*asked)
            results += not_looked_up(
                len(addresses) if self._zones else 0, MAX_ADDRESSES, f"addresses of {host}"
            )
        if answer.message and answer.outcome not in DENIALS:
            results.append(
                BlacklistEvidence(None, f"not all addresses of {host} are known: {answer.message}")
            )
        return merge_results(results)

    def _check_networks(self, host: str, address: IPAddress) -> BlacklistEvidence:
        sources = (STATIC_IPS,) if self._blacklist.ips else ()
        network = self._networks.find(address)
        if network is None:
            return clean(sources)
        return BlacklistEvidence(
            True, f"{host} ({address}) is in {network} ({STATIC_IPS})", sources
        )

    def _notice(self, text: str) -> None:
        if text not in self._noticed:
            self._noticed.add(text)
            self.notices.append(text)


class NetworkTable:
    """Finds the network of an address.

    The cost grows with the number of prefix lengths, not of networks.
    """

    def __init__(self, networks: Iterable[Network]) -> None:
        self._by_length: dict[tuple[int, int], dict[int, Network]] = {}
        for network in networks:
            shift = network.max_prefixlen - network.prefixlen
            of_length = self._by_length.setdefault((network.version, shift), {})
            of_length[int(network.network_address) >> shift] = network

    def find(self, address: IPAddress) -> Network | None:
        """Return a network that contains the address."""
        for (version, shift), networks in self._by_length.items():
            if version == address.version and (found := networks.get(int(address) >> shift)):
                return found
        return None


class ZoneCheck:
    """Asks one DNS list about addresses, once it has passed its self-test.

    `notice` gets the reason if it has not.
    """

    def __init__(
        self,
        zone: Zone,
        resolver: ResolverLike,
        notice: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self._zone = zone
        self._resolver = resolver
        self._notice = notice
        self._tests: AnswerCache[int, BlacklistEvidence] = AnswerCache(
            seconds_used, size=len(LISTED_TEST), clock=clock
        )

    async def check(self, host: str, address: IPAddress) -> BlacklistEvidence:
        """Check the address of a host."""
        for version in sorted({4, address.version}):
            test = await self._tests.get(version, partial(self._test, version))
            if test.listed is None:
                return BlacklistEvidence(None, f"{self._zone.name} is not used: {test.message}")
        if not test.listed or address in TEST_ENTRIES:
            return clean((self._zone.name,))
        return parse_listing(self._zone, f"{host} ({address})", await self._ask(address))

    async def _ask(self, address: IPAddress) -> DnsAnswer:
        return await self._resolver.query(name_of_entry(address, self._zone), "A")

    async def _test(self, version: int) -> BlacklistEvidence:
        """Ask about the two test entries of an address family."""
        entry = await self._ask(LISTED_TEST[version])
        absent = await self._ask(CLEAN_TEST[version])
        failure = find_failure(entry, absent, version)
        if failure:
            self._notice(
                f"The DNS list {self._zone.name} is not used: {failure}. What it lists is "
                "undetermined."
            )
        return BlacklistEvidence(None if failure else bool(codes_of(entry)), failure)


def name_of_entry(address: IPAddress, zone: Zone) -> str:
    """The name that a DNS list has for an address (RFC 5782 section 2.1).

    >>> name_of_entry(ipaddress.ip_address("192.0.2.7"), Zone("bl.example", codes=["127.0.0.2"]))
    '7.2.0.192.bl.example'
    """
    reversed_address = address.reverse_pointer.removesuffix(".in-addr.arpa").removesuffix(
        ".ip6.arpa"
    )
    return f"{reversed_address}.{zone.name}"


def find_failure(entry: DnsAnswer, absent: DnsAnswer, version: int) -> str:
    """Why a list is not used; empty if it can be.

    The answers are about the entry that must exist and the one that must not.

    See RFC 5782 section 5. Without the entry for IPv6 it lists IPv4 addresses only, as most lists
    do.
    """
    for answer in (entry, absent):
        if answer.message:
            return f"its self-test got no answer ({answer.message})"
    if refusals := [code for code in codes_of(entry) + codes_of(absent) if is_refusal(code)]:
        return f"it refuses to answer, or the resolver answers in its place ({refusals[0]})"
    if codes_of(absent):
        return f"it lists {CLEAN_TEST[version]}, which no list does, so it may list everything"
    if not codes_of(entry) and version == 4:
        return f"it lacks the test entry {LISTED_TEST[version]}, so it may be out of service"
    return ""


def parse_listing(zone: Zone, subject: str, answer: DnsAnswer) -> BlacklistEvidence:
    """Convert the answer of a DNS list about an address."""
    sources = (zone.name,)
    if answer.message:
        return BlacklistEvidence(
            None, f"{zone.name} gave no answer about {subject}: {answer.message}", sources
        )
    codes = [
        c
        for c in codes_of(answer)
        if is_refusal(c) or not any(c in network for network in zone.ignored)
    ]
    listed = [
        code
        for code in codes
        if not is_refusal(code) and any(code in network for network in zone.codes)
    ]
    if listed:
        return BlacklistEvidence(True, f"{subject} is on {zone.name} ({listed[0]})", sources)
    if codes:
        message = f"{zone.name} answered {codes[0]} about {subject}, which does not mean listed"
        return BlacklistEvidence(None, message, sources)
    return clean(sources)


def codes_of(answer: DnsAnswer) -> list[IPAddress]:
    """Return the codes of an answer; empty if the address is not on the list."""
    return [ipaddress.ip_address(text) for text in answer.texts]


def is_refusal(code: IPAddress) -> bool:
    """Whether a code means that the list did not look the address up."""
    return code not in CODES or any(code in network for network in REFUSALS)


def unmapped(address: IPAddress) -> IPAddress:
    """Convert an IPv4-mapped IPv6 address to IPv4."""
    return getattr(address, "ipv4_mapped", None) or address


def not_looked_up(count: int, limit: int, what: str) -> list[BlacklistEvidence]:
    """An undetermined result if not all of `count` are looked up."""
    return (
        [BlacklistEvidence(None, f"only {limit} of {count} {what} were looked up")]
        if count > limit
        else []
    )


def seconds_used(result: BlacklistEvidence) -> float:
    """Seconds to keep a result."""
    return RETEST_AFTER if result.listed is None else TRUSTED_FOR
