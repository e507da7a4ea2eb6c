"""What the DNS says about a domain: its exchanges, or why it has none, or that nothing is known.

NXDOMAIN, NODATA and *no answer* are three things: a time-out, SERVFAIL or REFUSED says something
about a server on the way and nothing about the domain.
"""

from __future__ import annotations

import asyncio
import ipaddress
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from ...model.evidence import NO_MAIL, DnsOutcome, DomainEvidence, Exchange
from ...model.settings import LocalSettings
from .answers import AddressAnswer, Answer, AnswerOutcome, IPAddress, RecordType
from .cache import AnswerCache
from .names import MAX_NAME, UnaskableNameError, normal_name
from .retry import Asker, system_servers
from .sockets import Server
from .wire import make_question

__all__ = ["Resolver"]

CACHE_SIZE = 50_000  # answers; about 30 MB when full
SHORTEST_TTL = 30.0  # seconds; a run asks once even where the TTL is 0
LONGEST_TTL = 86_400.0  # a day, as caching resolvers have it
FAILURE_TTL = 30.0  # RFC 2308 section 7 allows up to five minutes
MAX_ALIASES = 8  # that we follow by asking anew; resolvers do it for us

ADDRESS_TYPES: tuple[RecordType, ...] = ("A", "AAAA")


class Resolver:
    """Asks recursive resolvers: many questions at once, each question once.

    Sockets belong to the running event loop and are opened when the first question is asked in it;
    answers are remembered for their TTL, whatever the loop.

    Parameters
    ----------
    settings : LocalSettings
        `resolver`, `dns_concurrency`, `dns_timeout` and `dns_attempts` are used.
    clock : callable
        Seconds of a monotonic clock, for the TTLs.
    randomness : random.Random
        Source of the message ids; by default the system's, so that answers are hard to forge.
    cache_size : int
        How many answers are remembered.
    find_servers : callable
        Gives the resolvers of the system, for where none is set.

    Examples
    --------
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
    (Exchange(preference=10, host='mx.ada.example'),)
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
        self._asker = Asker(settings, randomness or random.SystemRandom(), find_servers)
        self._cache: AnswerCache[tuple[str, RecordType], Answer] = AnswerCache(lifetime, size=cache_size, clock=clock)

    async def observe_domain(self, domain: str) -> DomainEvidence:
        """Look up where mail for a domain goes (RFC 5321 section 5.1).

        Parameters
        ----------
        domain : str
            In A-labels; case and a final dot make no difference.

        Returns
        -------
        DomainEvidence
            `message` says what was seen where there is no exchange.

        Raises
        ------
        SettingsError
            If no resolver is set, and the system has none.
        """
        try:
            name = normal_name(domain)
        except UnaskableNameError as exc:
            return DomainEvidence(domain[:MAX_NAME], DnsOutcome.NXDOMAIN, message=str(exc))
        answer = await self._query(name, "MX")
        if answer.outcome is AnswerOutcome.NODATA:
            return await self._observe_implicit(name)
        return mx_evidence(name, answer)

    async def observe_domains(self, domains: Sequence[str]) -> AsyncIterator[tuple[int, DomainEvidence]]:
        """Look up many domains, each once, with at most `dns_concurrency` in flight.

        Parameters
        ----------
        domains : sequence of str
            Millions are fine: there are only as many tasks as look-ups in flight.

        Yields
        ------
        tuple of int and DomainEvidence
            A position in `domains` and what was seen; each position once, in the order of the answers.

        Raises
        ------
        SettingsError
            If no resolver is set, and the system has none.
        """
        first, again = group_positions(domains)
        todo = iter(first.items())
        seen: asyncio.Queue[tuple[int, DomainEvidence] | BaseException | None] = asyncio.Queue()
        room = asyncio.Semaphore(2 * self._concurrency)  # a slow consumer holds the workers back

        async def work() -> None:
            for domain, position in todo:
                await room.acquire()
                seen.put_nowait((position, await self.observe_domain(domain)))

        workers = [asyncio.create_task(work()) for _ in range(min(self._concurrency, len(first)))]
        asyncio.gather(*workers).add_done_callback(lambda all_: seen.put_nowait(error_of(all_)))
        try:
            while isinstance(found := await seen.get(), tuple):
                room.release()
                for position in (found[0], *again.get(found[0], ())):
                    yield position, found[1]
            if found is not None:
                raise found
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def addresses(self, host: str) -> AddressAnswer:
        """Look up the A and AAAA records of a host, both at once.

        Parameters
        ----------
        host : str
            A host name; an IP address is none, and so does not exist.

        Returns
        -------
        AddressAnswer
            Without addresses, its outcome tells a host that has none from one of which nothing is known.

        Raises
        ------
        SettingsError
            If no resolver is set, and the system has none.
        """
        four, six = await asyncio.gather(self.query(host, "A"), self.query(host, "AAAA"))
        return join_addresses(host, four, six)

    async def pointer_names(self, address: str | IPAddress) -> Answer:
        """Look up the PTR records of an address; the names are the answer's `texts`.

        Parameters
        ----------
        address : str or ipaddress.IPv4Address or ipaddress.IPv6Address
            The address to name.

        Returns
        -------
        Answer
            Names in lower case without the final dot.

        Raises
        ------
        SettingsError
            If no resolver is set, and the system has none.
        ValueError
            If `address` is no IP address.
        """
        return await self.query(ipaddress.ip_address(address).reverse_pointer, "PTR")

    async def query(self, name: str, rdtype: RecordType) -> Answer:
        """Ask one question, or remember its answer.

        Parameters
        ----------
        name : str
            The name to ask about.
        rdtype : str
            ``A``, ``AAAA``, ``MX``, ``PTR`` or ``TXT``.

        Returns
        -------
        Answer
            NXDOMAIN with a message for a name that the DNS cannot carry: nothing is asked then.

        Raises
        ------
        SettingsError
            If no resolver is set, and the system has none.
        """
        try:
            normal = normal_name(name)
        except UnaskableNameError as exc:
            return Answer(AnswerOutcome.NXDOMAIN, message=str(exc))
        return await self._query(normal, rdtype)

    async def aclose(self) -> None:
        """Close the sockets. What is still being asked becomes undetermined; asking again opens new ones."""
        await self._asker.aclose()

    async def _query(self, name: str, rdtype: RecordType) -> Answer:
        """Ask about a name in its normal form, unless the answer is known."""
        return await self._cache.get((name, rdtype), partial(self._resolve, name, rdtype))

    async def _resolve(self, name: str, rdtype: RecordType) -> Answer:
        """Ask, and ask on where an answer ends at an alias (RFC 1034 section 5.2.2)."""
        answer = await self._asker.ask(make_question(name, rdtype))
        for _ in range(MAX_ALIASES):
            if not answer.alias:
                return answer
            next_answer = await self._asker.ask(make_question(answer.alias, rdtype))
            answer = replace(next_answer, ttl=min(answer.ttl, next_answer.ttl))
        return Answer(AnswerOutcome.UNDETERMINED, message="an endless chain of aliases")

    async def _observe_implicit(self, name: str) -> DomainEvidence:
        """Look for an address that makes a domain without MX records its own exchange."""
        failures: list[str] = []
        for rdtype in ADDRESS_TYPES:
            answer = await self._query(name, rdtype)
            if answer.outcome is AnswerOutcome.DATA:
                return DomainEvidence(name, DnsOutcome.IMPLICIT_MX, (Exchange(0, name),))
            failures += describe_failure(rdtype, answer)
        if failures:
            return DomainEvidence(name, DnsOutcome.UNDETERMINED, message="; ".join(failures))
        return DomainEvidence(name, DnsOutcome.NODATA, message=NO_MAIL[DnsOutcome.NODATA])


def lifetime(answer: Answer) -> float:
    """Give the seconds for which an answer is remembered."""
    if answer.outcome is AnswerOutcome.UNDETERMINED:
        return FAILURE_TTL
    return min(max(answer.ttl, SHORTEST_TTL), LONGEST_TTL)


def mx_evidence(name: str, answer: Answer) -> DomainEvidence:
    """Say what an answer to the MX question, other than NODATA, means for mail."""
    if answer.outcome is AnswerOutcome.UNDETERMINED:
        return DomainEvidence(name, DnsOutcome.UNDETERMINED, message=f"MX look-up: {answer.message}")
    if answer.outcome is AnswerOutcome.NXDOMAIN:
        return DomainEvidence(name, DnsOutcome.NXDOMAIN, message=NO_MAIL[DnsOutcome.NXDOMAIN])
    # A null MX stands alone (RFC 7505 section 3); one beside real exchanges is a mistake, and they win.
    if exchanges := tuple(each for each in answer.exchanges if each.host):
        return DomainEvidence(name, DnsOutcome.MX, exchanges)
    return DomainEvidence(name, DnsOutcome.NULL_MX, message=NO_MAIL[DnsOutcome.NULL_MX])


def join_addresses(host: str, four: Answer, six: Answer) -> AddressAnswer:
    """Make one answer of those to the A and the AAAA question."""
    addresses = tuple(ipaddress.ip_address(text) for text in four.texts + six.texts)
    failures = describe_failure("A", four) + describe_failure("AAAA", six)
    outcomes = {four.outcome, six.outcome}
    outcome = next(each for each in BY_WEIGHT if each in outcomes)
    return AddressAnswer(host, addresses, outcome, "; ".join(failures) or four.message, is_complete=not failures)


# What counts of two answers: an address that is known, then that one may be unknown. A name with an
# answer for one type exists, so NXDOMAIN for the other is a server's mistake.
BY_WEIGHT = (AnswerOutcome.DATA, AnswerOutcome.UNDETERMINED, AnswerOutcome.NODATA, AnswerOutcome.NXDOMAIN)


def describe_failure(rdtype: RecordType, answer: Answer) -> list[str]:
    """Say what failed, if anything did."""
    return [f"{rdtype} look-up: {answer.message}"] if answer.outcome is AnswerOutcome.UNDETERMINED else []


def group_positions(domains: Iterable[str]) -> tuple[dict[str, int], dict[int, list[int]]]:
    """Give where each domain comes first, and by that position where it comes again, if it does."""
    first: dict[str, int] = {}
    again: dict[int, list[int]] = {}
    for position, domain in enumerate(domains):
        earlier = first.setdefault(domain.lower().removesuffix("."), position)
        if earlier != position:
            again.setdefault(earlier, []).append(position)
    return first, again


def error_of(future: asyncio.Future[list[None]]) -> BaseException | None:
    """Give what ended a future early; None if it came to its end, or was cancelled."""
    return None if future.cancelled() else future.exception()
