"""The resolver: DNS evidence about domains, addresses of hosts, and single questions.

All of them go through one cache.

A question that the cache (answers.py) cannot answer becomes a `LookUp`, shared by all who wait for
the answer. It asks the `LoopClient` (retry.py), whose sockets are in sockets.py; congestion.py
decides when a query is sent, and wire.py reads the answer. NXDOMAIN, NODATA and *no answer* are
three different outcomes: a time-out, SERVFAIL or REFUSED is about a server, not about the domain.

What is asked about a domain, and the evidence:

    answer to MX       further questions          evidence
    10 mx.firm.com.                               MX
    0 .                                           NULL_MX
    NODATA             A: an address              IMPLICIT_MX
    NODATA             A, AAAA; MX, A: none       NODATA
    NXDOMAIN           A: NXDOMAIN                NXDOMAIN
    NXDOMAIN           A: anything else           UNDETERMINED, as one answer is wrong
    no answer                                     UNDETERMINED
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import math
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...model.evidence import NO_MAIL, DnsOutcome, DomainEvidence, MailExchange
from ...model.settings import LocalSettings, parse_resolver
from ..networks import may_be_host
from .answers import (
    ADDRESS_TYPES,
    DENIALS,
    AnswerCache,
    AnswerOutcome,
    DnsAnswer,
    IPAddress,
    RecordType,
)
from .congestion import Query
from .exchanges import is_address, may_be_host_name
from .names import MAX_NAME, InvalidNameError, normal_name
from .retry import DnsClient, Effort, LoopClient, set_answer, system_servers
from .sockets import Server, ask_tcp
from .wire import make_question, parse_answer

CACHE_SIZE = 50_000  # answers; about 30 MB when full
SHORTEST_TTL = 30.0  # seconds; a run asks once even if the TTL is 0
LONGEST_TTL = 86_400.0  # a day, the usual limit of caching resolvers
# RFC 2308 section 7 allows up to five minutes, but most failures pass when there are fewer
# questions.
FAILURE_TTL = 5.0
MAX_ALIASES = 7  # followed by another question; usually the resolver follows them itself

# A function, and its argument before the answer.
Waiter = tuple[Callable[[Any, DnsAnswer], None], Any]


class Resolver:
    """Asks recursive resolvers: many questions at once, each question once.

    Answers are cached for their TTL, also for another event loop. Without `settings.resolver`,
    `find_servers` gives the servers to ask; `randomness` gives the message ids, and is the system's
    by default, so that answers are hard to forge.

    >>> import asyncio
    >>> from mailverdict.model.settings import LocalSettings
    >>> from mailverdict.sandbox.dns import DnsServer, DomainRecords
    >>> async def look_up(domain):
    ...     records = DomainRecords({"MX": ("10 mx.ada.example.",)})
    ...     async with DnsServer({"ada.example": records}) as server:
    ...         resolver = Resolver(LocalSettings(resolver=server.endpoint))
    ...         evidence = await resolver.observe_domain(domain)
    ...         await resolver.aclose()
    ...     return evidence
    >>> asyncio.run(look_up("ada.example")).exchanges
    (MailExchange(preference=10, host='mx.ada.example'),)
    >>> asyncio.run(look_up("nobody.example")).message
    'the domain does not exist'
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
        self._settings = settings
        self._find_servers = find_servers
        self._randomness = randomness or random.SystemRandom()
        self._client = DnsClient(settings, self._randomness, find_servers)
        self._make_cache = partial(AnswerCache, cache_seconds, size=cache_size, clock=clock)
        self._cache: AnswerCache[tuple[str, RecordType], DnsAnswer] = self._make_cache()
        # Domains about which one answer is a denial and another one is not; kept where there is a
        # self-test.
        self.contradicted: dict[str, None] | None = None

    async def observe_domain(self, domain: str) -> DomainEvidence:
        """Find the exchanges of a domain in A-labels (RFC 5321 section 5.1).

        Raises SettingsError if no resolver is set and the system has none.
        """
        try:
            name = normal_name(domain)
        except InvalidNameError as exc:
            return evidence_of_invalid(domain, exc)
        answer = await self._query(name, "MX")
        if answer.outcome is AnswerOutcome.NODATA:
            return await self.observe_implicit(name)
        if answer.outcome is AnswerOutcome.NXDOMAIN:
            second = await self._query(name, "A")
            return self.missing_evidence(name, second)
        return mx_evidence(name, answer)

    async def observe_domains(
        self, domains: Sequence[str]
    ) -> AsyncIterator[tuple[int, DomainEvidence]]:
        """Observe many domains, each once, with at most `dns_concurrency` at a time.

        Yields each position in `domains` once, with its evidence, in the order of the answers.
        Domains that remain undetermined are asked about again after the others, when it is known
        how many queries the resolver can take. There are only as many tasks as look-ups in flight,
        however many domains there are.
        """
        asked, repeated = group_positions(domains)
        for effort in (Effort.brief(self._settings), Effort.last(self._settings)):
            left: dict[str, int] = {}
            stream = DomainStream(self, asked, effort, self._settings.dns_concurrency)
            async with aclosing(stream.batches()) as batches:
                async for batch in batches:
                    for domain, evidence in batch:
                        position = asked[domain]
                        if effort.is_new and evidence.outcome is DnsOutcome.UNDETERMINED:
                            left[domain] = position
                            continue
                        yield position, evidence
                        for later in repeated.get(position, ()):
                            yield later, evidence
            for name in left:
                self._forget_failures(name)
            asked = left

    def _forget_failures(self, domain: str) -> None:
        """Let the next question about a domain be asked, if the last one had no result."""

        def is_failure(answer: DnsAnswer) -> bool:
            return answer.outcome is AnswerOutcome.UNDETERMINED

        with contextlib.suppress(InvalidNameError):
            name = normal_name(domain)
            for rdtype in ("MX", *ADDRESS_TYPES):
                self._cache.discard((name, rdtype), is_failure)

    async def addresses(self, host: str) -> DnsAnswer:
        """Look up the A and AAAA records of a host, both at once; the message says what failed."""
        four, six = await asyncio.gather(self.query(host, "A"), self.query(host, "AAAA"))
        return join_addresses(four, six)

    async def pointer_names(self, address: str | IPAddress) -> DnsAnswer:
        """Look up the PTR records of an address; the names are the answer's `texts`.

        ValueError if it is not an address.
        """
        name = ipaddress.ip_address(address).reverse_pointer
        return await self.query(name, "PTR")

    async def query(self, name: str, rdtype: RecordType) -> DnsAnswer:
        """Ask one question, or take its answer from the cache.

        A name that the DNS cannot carry gives NXDOMAIN.
        """
        try:
            normal = normal_name(name)
        except InvalidNameError as exc:
            return DnsAnswer(AnswerOutcome.NXDOMAIN, message=str(exc))
        return await self._query(normal, rdtype)

    async def query_uncached(self, name: str, rdtype: RecordType) -> DnsAnswer:
        """Ask one question about a name in its normal form.

        It is asked whatever the cache has, and the answer is not cached.
        """
        client = self._client.of_running_loop()
        return await client.answer(make_question(name, rdtype))

    async def query_tcp(self, name: str, rdtype: RecordType) -> DnsAnswer:
        """Ask the first server over TCP, which shows whether only UDP fails. Not cached."""
        given = self._settings.resolver
        server = self._find_servers()[0] if given is None else Server(*parse_resolver(given))
        question = make_question(name, rdtype)
        identifier = self._randomness.getrandbits(16)
        try:
            async with asyncio.timeout(self._settings.dns_timeout):
                packet = await ask_tcp(server, question, identifier, edns=True)
        except (TimeoutError, OSError) as exc:
            return DnsAnswer(AnswerOutcome.UNDETERMINED, message=str(exc) or "no answer")
        return parse_answer(packet, question)

    def forget(self) -> None:
        """Drop every cached answer."""
        self._cache = self._make_cache()

    async def aclose(self) -> None:
        """Close the sockets.

        Open questions become undetermined; a later question opens new sockets.
        """
        await self._client.aclose()

    async def _query(
        self, name: str, rdtype: RecordType, effort: Effort | None = None
    ) -> DnsAnswer:
        """Ask about a name in its normal form, unless the answer is cached.

        The effort is the usual one by default.
        """
        answer = self.cached(name, rdtype)
        if answer is not None:
            return answer
        answered: asyncio.Future[DnsAnswer] = asyncio.get_running_loop().create_future()
        waiter = (set_answer, answered)
        look_up = self.look_up(name, rdtype, effort, waiter)
        try:
            return await answered
        finally:
            look_up.remove(waiter)  # if the task was cancelled

    def cached(self, name: str, rdtype: RecordType) -> DnsAnswer | None:
        """The cached answer about a name in its normal form."""
        return self._cache.find((name, rdtype))

    def look_up(
        self, name: str, rdtype: RecordType, effort: Effort | None, waiter: Waiter
    ) -> LookUp:
        """Call the waiter with the answer about a name in its normal form.

        The question is asked unless it is already.
        """
        client = self._client.of_running_loop()
        look_up: LookUp | None = client.in_progress.get((name, rdtype))
        if look_up is None:
            look_up = LookUp(name, rdtype, effort, [waiter], self._cache, client)
            look_up.start()
        else:
            look_up.waiters.append(waiter)
        return look_up

    def missing_evidence(self, name: str, answer: DnsAnswer) -> DomainEvidence:
        """Evidence about a domain that the MX question denies, from the answer for its address.

        Some servers answer NXDOMAIN to every type but A, and one of several resolvers behind an
        address may be broken.
        """
        if answer.outcome is AnswerOutcome.NXDOMAIN:
            return mx_evidence(name, answer)
        if self.contradicted is not None and answer.outcome is not AnswerOutcome.UNDETERMINED:
            self.contradicted[name] = None
        seen = answer.message or "the name exists"
        message = f"MX look-up: NXDOMAIN; A look-up: {seen}"
        return DomainEvidence(name, DnsOutcome.UNDETERMINED, message=message)

    async def observe_implicit(self, name: str, effort: Effort | None = None) -> DomainEvidence:
        """Look for the address of a domain without MX records: its implicit MX."""
        # Kept only if a second look-up agreed.
        is_confirmed = self.cached(name, ADDRESS_TYPES[-1]) is not None
        failures: list[str] = []
        denial = NO_MAIL[DnsOutcome.NODATA]
        allowed = self._settings.allow_networks
        for rdtype in ADDRESS_TYPES:
            answer = await self._query(name, rdtype, effort)
            if answer.outcome is AnswerOutcome.DATA:
                if any(may_be_host(address, allowed) for address in answer.texts):
                    return DomainEvidence(name, DnsOutcome.IMPLICIT_MX, (MailExchange(0, name),))
                failures.append(
                    f"{rdtype} look-up: {answer.texts[0]}, not a public address; "
                    "filters give such addresses for what they block"
                )
            failures += describe_failure(rdtype, answer)
            if answer.outcome is AnswerOutcome.NXDOMAIN and answer.message:
                denial = answer.message
        if failures:
            self._forget_answers(name, ADDRESS_TYPES[-1])
            return DomainEvidence(name, DnsOutcome.UNDETERMINED, message="; ".join(failures))
        if not is_confirmed:
            change = await self._ask_again(name, effort)
            if change:
                return DomainEvidence(name, DnsOutcome.UNDETERMINED, message=change)
        return DomainEvidence(name, DnsOutcome.NODATA, message=denial)

    async def _ask_again(self, name: str, effort: Effort | None) -> str:
        """Ask once more about a domain that has neither exchanges nor an address.

        Returns what is different now.
        """
        self._forget_answers(name, "MX", "A")
        exchange, address = await asyncio.gather(
            self._query(name, "MX", effort), self._query(name, "A", effort)
        )
        if exchange.outcome in DENIALS and address.outcome in DENIALS:
            return ""
        self._forget_answers(name, "MX", *ADDRESS_TYPES)
        for rdtype, answer in (("MX", exchange), ("A", address)):
            if answer.outcome is AnswerOutcome.DATA:
                if self.contradicted is not None:
                    self.contradicted[name] = None
                return f"{rdtype} look-up: no records, but some when asked again"
        failures = describe_failure("MX", exchange) + describe_failure("A", address)
        return "; ".join(failures)

    def _forget_answers(self, name: str, *rdtypes: RecordType) -> None:
        for rdtype in rdtypes:
            self._cache.discard((name, rdtype), lambda _: True)


@dataclass(slots=True, eq=False)
class LookUp:
    """A question that is being asked, and who waits for its answer.

    Aliases are followed by further questions.
    """

    name: str
    rdtype: RecordType
    effort: Effort | None
    waiters: list[Waiter]
    cache: AnswerCache[tuple[str, RecordType], DnsAnswer]
    client: LoopClient
    query: Query | None = None
    aliases: int = 0  # followed
    ttl: float = math.inf  # the shortest of their answers

    def start(self) -> None:
        """Ask the question."""
        self.client.in_progress[self.name, self.rdtype] = self
        self._ask(self.name)

    def _ask(self, name: str) -> None:
        question = make_question(name, self.rdtype)
        self.query = self.client.ask(question, self.effort, self._on_answer)

    def _on_answer(self, answer: DnsAnswer) -> None:
        """Cache the answer and call the waiters.

        If the answer ends at an alias, ask about that (RFC 1034 section 5.2.2).
        """
        if answer.alias and self.aliases < MAX_ALIASES:
            self.aliases += 1
            self.ttl = min(self.ttl, answer.ttl)
            self._ask(answer.alias)
            return
        if answer.alias:
            answer = DnsAnswer(AnswerOutcome.UNDETERMINED, message="an endless chain of aliases")
        elif self.aliases:
            answer = answer._replace(ttl=min(self.ttl, answer.ttl))
        key = (self.name, self.rdtype)
        del self.client.in_progress[key]
        self.cache.store(key, answer)
        waiters = self.waiters
        self.waiters = []
        for call, argument in waiters:
            call(argument, answer)

    def remove(self, waiter: Waiter) -> None:
        """Do not call a waiter any more; the question ends with its last one."""
        if waiter not in self.waiters:
            return
        self.waiters.remove(waiter)
        if not self.waiters and self.query is not None:
            del self.client.in_progress[self.name, self.rdtype]
            self.client.cancel(self.query)


class DomainStream:
    """Observes unique domains, at most `limit` at a time; waits for a slow consumer.

    The look-ups call functions of this class. A task is only needed for a domain that exists
    without MX records.
    """

    def __init__(
        self, resolver: Resolver, domains: Iterable[str], effort: Effort, limit: int
    ) -> None:
        self._resolver = resolver
        self._effort = effort
        self._limit = limit
        self._pending = iter(domains)
        self._look_ups: dict[str, LookUp] = {}  # by domain
        self._tasks: dict[str, asyncio.Task[DomainEvidence]] = {}
        self._found: list[tuple[str, DomainEvidence]] = []
        self._error: BaseException | None = None
        self._changed = asyncio.Event()

    async def batches(self) -> AsyncGenerator[list[tuple[str, DomainEvidence]], None]:
        """Yield what was found since the last time, in the order of the answers."""
        try:
            self._start()
            while self._found or self._look_ups or self._tasks:
                if self._found:
                    await asyncio.sleep(0)
                else:
                    await self._changed.wait()
                self._changed.clear()
                if self._error is not None:
                    raise self._error
                found = self._found
                self._found = []
                yield found
                self._start()
        finally:
            await self._cancel()

    def _start(self) -> None:
        """Start as many look-ups as are allowed."""
        free = self._limit - len(self._look_ups) - len(self._tasks)
        for _ in range(free):
            under_way = len(self._look_ups) + len(self._tasks)
            if under_way + len(self._found) >= 2 * self._limit:
                return
            domain = next(self._pending, None)
            if domain is None:
                return
            try:
                name = normal_name(domain)
            except InvalidNameError as exc:
                self._found.append((domain, evidence_of_invalid(domain, exc)))
                continue
            answer = self._resolver.cached(name, "MX")
            if answer is None:
                self._look_up(domain, name, "MX")
            else:
                self._observe(domain, name, answer)

    def _look_up(self, domain: str, name: str, rdtype: RecordType) -> None:
        waiter = (self._on_answer, domain)
        self._look_ups[domain] = self._resolver.look_up(name, rdtype, self._effort, waiter)

    def _on_answer(self, domain: str, answer: DnsAnswer) -> None:
        try:
            look_up = self._look_ups.pop(domain)
            if look_up.rdtype == "A":
                evidence = self._resolver.missing_evidence(look_up.name, answer)
                self._found.append((domain, evidence))
            else:
                self._observe(domain, look_up.name, answer)
            self._start()
        except Exception as exc:  # noqa: BLE001 - the consumer raises it, not the socket's reader
            self._error = exc
        self._changed.set()

    def _observe(self, domain: str, name: str, answer: DnsAnswer) -> None:
        if answer.outcome is AnswerOutcome.NODATA:
            observation = self._resolver.observe_implicit(name, self._effort)
            task = asyncio.get_running_loop().create_task(observation)
            self._tasks[domain] = task
            task.add_done_callback(partial(self._on_task_end, domain))
        elif answer.outcome is AnswerOutcome.NXDOMAIN:
            second = self._resolver.cached(name, "A")
            if second is None:
                self._look_up(domain, name, "A")
            else:
                evidence = self._resolver.missing_evidence(name, second)
                self._found.append((domain, evidence))
        else:
            self._found.append((domain, mx_evidence(name, answer)))

    def _on_task_end(self, domain: str, task: asyncio.Task[DomainEvidence]) -> None:
        del self._tasks[domain]
        if not task.cancelled():
            self._error = self._error or task.exception()
            if self._error is None:
                self._found.append((domain, task.result()))
                self._start()
        self._changed.set()

    async def _cancel(self) -> None:
        """End what is under way."""
        self._pending = iter(())
        for domain, look_up in self._look_ups.items():
            look_up.remove((self._on_answer, domain))
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def evidence_of_invalid(domain: str, error: InvalidNameError) -> DomainEvidence:
    """Evidence about a domain that the DNS cannot carry."""
    return DomainEvidence(domain[:MAX_NAME], DnsOutcome.NXDOMAIN, message=str(error))


def cache_seconds(answer: DnsAnswer) -> float:
    """How long an answer is cached."""
    if answer.outcome is AnswerOutcome.UNDETERMINED:
        return FAILURE_TTL
    return min(max(answer.ttl, SHORTEST_TTL), LONGEST_TTL)


def mx_evidence(name: str, answer: DnsAnswer) -> DomainEvidence:
    """Evidence from an answer to the MX question other than NODATA.

    NXDOMAIN must be confirmed before.
    """
    if answer.outcome is AnswerOutcome.UNDETERMINED:
        message = f"MX look-up: {answer.message}"
        return DomainEvidence(name, DnsOutcome.UNDETERMINED, message=message)
    if answer.outcome is AnswerOutcome.NXDOMAIN:
        return DomainEvidence(name, DnsOutcome.NXDOMAIN, message=NO_MAIL[DnsOutcome.NXDOMAIN])
    # A null MX must be the only one (RFC 7505 section 3); beside real exchanges it is a mistake and
    # ignored.
    named = [exchange for exchange in answer.exchanges if exchange.host]
    addresses = [exchange.host for exchange in named if is_address(exchange.host)]
    hosts = [exchange for exchange in named if may_be_host_name(exchange.host)]
    if hosts:
        return DomainEvidence(name, DnsOutcome.MX, tuple(hosts))
    if addresses:
        message = (
            f"the MX record names an IP address ({addresses[0]}), "
            "not a host (RFC 1035 section 3.3.9)"
        )
        return DomainEvidence(name, DnsOutcome.UNDETERMINED, message=message)
    if named:
        message = f"{NO_MAIL[DnsOutcome.NO_EXCHANGE]}: {named[0].host}"
        return DomainEvidence(name, DnsOutcome.NO_EXCHANGE, message=message)
    return DomainEvidence(name, DnsOutcome.NULL_MX, message=NO_MAIL[DnsOutcome.NULL_MX])


def join_addresses(four: DnsAnswer, six: DnsAnswer) -> DnsAnswer:
    """Combine the answers to the A and the AAAA question.

    Addresses are written as Python writes them.
    """
    texts = tuple(str(ipaddress.ip_address(text)) for text in four.texts + six.texts)
    outcome = min(four.outcome, six.outcome, key=OUTCOME_PRECEDENCE.index)
    failures = describe_failure("A", four) + describe_failure("AAAA", six)
    return DnsAnswer(outcome, texts=texts, message="; ".join(failures) or four.message)


# Which of two outcomes counts: an address first, then the possibility of one. NODATA beats
# NXDOMAIN: a name that exists for one type exists, so the other answer is a mistake of a server.
OUTCOME_PRECEDENCE = (
    AnswerOutcome.DATA,
    AnswerOutcome.UNDETERMINED,
    AnswerOutcome.NODATA,
    AnswerOutcome.NXDOMAIN,
)


def describe_failure(rdtype: RecordType, answer: DnsAnswer) -> list[str]:
    """The message of an answer without a result, as a list of at most one."""
    if answer.outcome is not AnswerOutcome.UNDETERMINED:
        return []
    return [f"{rdtype} look-up: {answer.message}"]


def group_positions(domains: Iterable[str]) -> tuple[dict[str, int], dict[int, list[int]]]:
    """Return the first position of each domain, and by that position the later ones, if any."""
    first: dict[str, int] = {}
    repeated: dict[int, list[int]] = {}
    for position, domain in enumerate(domains):
        name = domain.lower().removesuffix(".")
        earlier = first.setdefault(name, position)
        if earlier != position:
            repeated.setdefault(earlier, []).append(position)
    return first, repeated
