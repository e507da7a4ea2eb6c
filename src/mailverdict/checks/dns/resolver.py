"""The resolver: DNS evidence about domains, addresses of hosts, and single questions, all through one cache.

A question goes from `Resolver` over `AnswerCache` (answers.py) to `DnsClient` (retry.py), whose sockets are in
sockets.py; congestion.py decides when it is sent, and wire.py reads the answer. NXDOMAIN, NODATA and *no answer* are
three different outcomes: a time-out, SERVFAIL or REFUSED is about a server, not about the domain.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial

from ...model.evidence import NO_MAIL, DnsOutcome, DomainEvidence, MailExchange
from ...model.settings import LocalSettings, parse_resolver
from .answers import AddressAnswer, AnswerCache, AnswerOutcome, DnsAnswer, IPAddress, RecordType
from .names import MAX_NAME, InvalidNameError, normal_name
from .retry import DnsClient, Effort, system_servers
from .self_test import AnswerWatch
from .sockets import Server, ask_tcp
from .wire import make_question, parse_answer

__all__ = ["Resolver"]

CACHE_SIZE = 50_000  # answers; about 30 MB when full
SHORTEST_TTL = 30.0  # seconds; a run asks once even if the TTL is 0
LONGEST_TTL = 86_400.0  # a day, the usual limit of caching resolvers
FAILURE_TTL = 5.0  # RFC 2308 section 7 allows up to five minutes, but most failures pass when there are fewer questions
MAX_ALIASES = 8  # followed by another question; usually the resolver follows them itself

ADDRESS_TYPES: tuple[RecordType, ...] = ("A", "AAAA")


class Resolver:
    """Asks recursive resolvers: many questions at once, each question once.

    Answers are cached for their TTL, also for another event loop. Without `settings.resolver`, `find_servers` gives
    the servers to ask; `randomness` gives the message ids, and is the system's by default, so that answers are hard
    to forge.

    >>> import asyncio
    >>> from mailverdict.model.settings import LocalSettings
    >>> from mailverdict.sandbox.dns import DnsServer, DomainRecords
    >>> async def look_up(domain):
    ...     async with DnsServer({"ada.example": DomainRecords({"MX": ("10 mx.ada.example.",)})}) as server:
    ...         resolver = Resolver(LocalSettings(resolver=server.endpoint))
    ...         evidence = await resolver.observe_domain(domain)
    ...         await resolver.aclose()
    ...     return evidence
    >>> asyncio.run(look_up("ada.example")).exchanges
    (MailExchange(preference=10, host='mx.ada.example'),)
    >>> asyncio.run(look_up("nobody.example")).message
    'the domain does not exist (NXDOMAIN)'
    """

    def __init__(
        self,
        settings: LocalSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
        randomness: random.Random | None = None,
        cache_size: int = CACHE_SIZE,
        find_servers: Callable[[], tuple[Server, ...]] = system_servers,
    ) -> None:
        self._concurrency = settings.dns_concurrency
        self._settings, self._find_servers = settings, find_servers
        self._randomness = randomness or random.SystemRandom()
        self._client = DnsClient(settings, self._randomness, find_servers)
        self._make_cache = partial(AnswerCache, cache_seconds, size=cache_size, clock=clock)
        self._cache: AnswerCache[tuple[str, RecordType], DnsAnswer] = self._make_cache()
        self.watch: AnswerWatch | None = None  # notes the answers for a self-test

    async def observe_domain(self, domain: str, effort: Effort | None = None) -> DomainEvidence:
        """Find the exchanges of a domain in A-labels (RFC 5321 section 5.1), by default with the usual effort.

        Raises SettingsError if no resolver is set and the system has none.
        """
        try:
            name = normal_name(domain)
        except InvalidNameError as exc:
            return DomainEvidence(domain[:MAX_NAME], DnsOutcome.NXDOMAIN, message=str(exc))
        answer = await self._query(name, "MX", effort)
        if answer.outcome is AnswerOutcome.NODATA:
            return await self._observe_implicit(name, effort)
        return mx_evidence(name, answer)

    async def observe_domains(self, domains: Sequence[str]) -> AsyncIterator[tuple[int, DomainEvidence]]:
        """Observe many domains, each once, with at most `dns_concurrency` at a time.

        Yields each position in `domains` once, with its evidence, in the order of the answers. Domains that remain
        undetermined are asked about again after the others, when the pace that the resolver stands is known. Millions
        are fine: there are only as many tasks as look-ups in flight.
        """
        first, repeated = group_positions(domains)
        undetermined: dict[str, int] = {}
        async with aclosing(self._observe_each(first, Effort.brief(self._settings))) as stream:
            async for domain, evidence in stream:
                position = first[domain]
                if evidence.outcome is DnsOutcome.UNDETERMINED:
                    undetermined[domain] = position
                    continue
                for each in (position, *repeated.get(position, ())):
                    yield each, evidence
        for name in undetermined:
            self._forget_failures(name)
        async with aclosing(self._observe_each(undetermined, Effort.last(self._settings))) as stream:
            async for domain, evidence in stream:
                position = undetermined[domain]
                for each in (position, *repeated.get(position, ())):
                    yield each, evidence

    async def _observe_each(
        self, domains: Collection[str], effort: Effort
    ) -> AsyncGenerator[tuple[str, DomainEvidence], None]:
        """Observe unique domains, in the order of the answers."""
        pending = iter(domains)
        results: asyncio.Queue[tuple[str, DomainEvidence] | BaseException | None] = asyncio.Queue()
        slots = asyncio.Semaphore(2 * self._concurrency)  # so that workers wait for a slow consumer

        async def work() -> None:
            for domain in pending:
                await slots.acquire()
                results.put_nowait((domain, await self.observe_domain(domain, effort)))

        workers = [asyncio.create_task(work()) for _ in range(min(self._concurrency, len(domains)))]
        asyncio.gather(*workers).add_done_callback(lambda all_: results.put_nowait(error_of(all_)))
        try:
            while isinstance(result := await results.get(), tuple):
                slots.release()
                yield result
            if result is not None:
                raise result
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    def _forget_failures(self, domain: str) -> None:
        """Let the next question about a domain be asked, if the last one had no result."""
        with contextlib.suppress(InvalidNameError):
            name = normal_name(domain)
            for rdtype in ("MX", *ADDRESS_TYPES):
                self._cache.discard((name, rdtype), lambda answer: answer.outcome is AnswerOutcome.UNDETERMINED)

    async def addresses(self, host: str) -> AddressAnswer:
        """Look up the A and AAAA records of a host, both at once."""
        four, six = await asyncio.gather(self.query(host, "A"), self.query(host, "AAAA"))
        return join_addresses(host, four, six)

    async def pointer_names(self, address: str | IPAddress) -> DnsAnswer:
        """Look up the PTR records of an address; the names are the answer's `texts`. ValueError if it is not one."""
        return await self.query(ipaddress.ip_address(address).reverse_pointer, "PTR")

    async def query(self, name: str, rdtype: RecordType) -> DnsAnswer:
        """Ask one question, or take its answer from the cache; a name that the DNS cannot carry gives NXDOMAIN."""
        try:
            normal = normal_name(name)
        except InvalidNameError as exc:
            return DnsAnswer(AnswerOutcome.NXDOMAIN, message=str(exc))
        return await self._query(normal, rdtype, None)

    async def query_uncached(self, name: str, rdtype: RecordType) -> DnsAnswer:
        """Ask one question about a name in its normal form, whatever the cache has, and do not cache the answer."""
        return await self._client.ask(make_question(name, rdtype))

    async def query_tcp(self, name: str, rdtype: RecordType) -> DnsAnswer:
        """Ask the first server over TCP: shows whether a failure is one of UDP alone. Not cached."""
        given = self._settings.resolver
        server = self._find_servers()[0] if given is None else Server(*parse_resolver(given))
        question = make_question(name, rdtype)
        try:
            async with asyncio.timeout(self._settings.dns_timeout):
                packet = await ask_tcp(server, question, self._randomness.getrandbits(16), edns=True)
        except (TimeoutError, OSError) as exc:
            return DnsAnswer(AnswerOutcome.UNDETERMINED, message=str(exc) or "no answer")
        return parse_answer(packet, question)

    def forget(self) -> None:
        """Drop every cached answer."""
        self._cache = self._make_cache()

    async def aclose(self) -> None:
        """Close the sockets. Open questions become undetermined; a later question opens new sockets."""
        await self._client.aclose()

    async def _query(self, name: str, rdtype: RecordType, effort: Effort | None) -> DnsAnswer:
        """Ask about a name in its normal form, unless the answer is cached."""
        return await self._cache.get((name, rdtype), partial(self._resolve, name, rdtype, effort))

    async def _resolve(self, name: str, rdtype: RecordType, effort: Effort | None) -> DnsAnswer:
        """Ask, and ask about the alias if an answer ends at one (RFC 1034 section 5.2.2)."""
        began = self.watch.begin() if self.watch is not None else 0
        answer = await self._client.ask(make_question(name, rdtype), effort)
        for _ in range(MAX_ALIASES):
            if not answer.alias:
                return answer if self.watch is None else self.watch.note(name, rdtype, answer, began)
            next_answer = await self._client.ask(make_question(answer.alias, rdtype), effort)
            answer = replace(next_answer, ttl=min(answer.ttl, next_answer.ttl))
        return DnsAnswer(AnswerOutcome.UNDETERMINED, message="an endless chain of aliases")

    async def _observe_implicit(self, name: str, effort: Effort | None) -> DomainEvidence:
        """Look for the address that makes a domain without MX records its own exchange (implicit MX)."""
        failures: list[str] = []
        denial = NO_MAIL[DnsOutcome.NODATA]
        for rdtype in ADDRESS_TYPES:
            answer = await self._query(name, rdtype, effort)
            if answer.outcome is AnswerOutcome.DATA:
                return DomainEvidence(name, DnsOutcome.IMPLICIT_MX, (MailExchange(0, name),))
            failures += describe_failure(rdtype, answer)
            if answer.outcome is AnswerOutcome.NXDOMAIN and answer.message:
                denial = answer.message
        if failures:
            return DomainEvidence(name, DnsOutcome.UNDETERMINED, message="; ".join(failures))
        return DomainEvidence(name, DnsOutcome.NODATA, message=denial)


def cache_seconds(answer: DnsAnswer) -> float:
    """How long an answer is cached."""
    if answer.outcome is AnswerOutcome.UNDETERMINED:
        return FAILURE_TTL
    return min(max(answer.ttl, SHORTEST_TTL), LONGEST_TTL)


def mx_evidence(name: str, answer: DnsAnswer) -> DomainEvidence:
    """Evidence from an answer to the MX question other than NODATA."""
    if answer.outcome is AnswerOutcome.UNDETERMINED:
        return DomainEvidence(name, DnsOutcome.UNDETERMINED, message=f"MX look-up: {answer.message}")
    if answer.outcome is AnswerOutcome.NXDOMAIN:
        return DomainEvidence(name, DnsOutcome.NXDOMAIN, message=NO_MAIL[DnsOutcome.NXDOMAIN])
    # A null MX must be the only one (RFC 7505 section 3); beside real exchanges it is a mistake and ignored.
    if exchanges := tuple(each for each in answer.exchanges if each.host):
        return DomainEvidence(name, DnsOutcome.MX, exchanges)
    return DomainEvidence(name, DnsOutcome.NULL_MX, message=NO_MAIL[DnsOutcome.NULL_MX])


def join_addresses(host: str, four: DnsAnswer, six: DnsAnswer) -> AddressAnswer:
    """Combine the answers to the A and the AAAA question."""
    addresses = tuple(ipaddress.ip_address(text) for text in four.texts + six.texts)
    failures = describe_failure("A", four) + describe_failure("AAAA", six)
    outcomes = {four.outcome, six.outcome}
    outcome = next(each for each in OUTCOME_PRECEDENCE if each in outcomes)
    return AddressAnswer(host, addresses, outcome, "; ".join(failures) or four.message, is_complete=not failures)


# Which of two outcomes counts: an address first, then the possibility of one. NODATA beats NXDOMAIN: a name that
# exists for one type exists, so the other answer is a mistake of a server.
OUTCOME_PRECEDENCE = (AnswerOutcome.DATA, AnswerOutcome.UNDETERMINED, AnswerOutcome.NODATA, AnswerOutcome.NXDOMAIN)


def describe_failure(rdtype: RecordType, answer: DnsAnswer) -> list[str]:
    """The message of an answer without a result, as a list of at most one."""
    return [f"{rdtype} look-up: {answer.message}"] if answer.outcome is AnswerOutcome.UNDETERMINED else []


def group_positions(domains: Iterable[str]) -> tuple[dict[str, int], dict[int, list[int]]]:
    """Return the first position of each domain, and by that position the later ones, if any."""
    first: dict[str, int] = {}
    repeated: dict[int, list[int]] = {}
    for position, domain in enumerate(domains):
        earlier = first.setdefault(domain.lower().removesuffix("."), position)
        if earlier != position:
            repeated.setdefault(earlier, []).append(position)
    return first, repeated


def error_of(future: asyncio.Future[list[None]]) -> BaseException | None:
    """Return the exception of a future, if it has one; None if it was cancelled."""
    return None if future.cancelled() else future.exception()
