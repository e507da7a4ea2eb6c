"""The self-test of the resolver: whether it knows domains that exist, and denies names that do not exist.

Closed networks, captive portals and search pages of providers answer DNS questions falsely. `ResolverTest` asks a few
known questions before a run. During a run, `AnswerWatch` keeps a list of the answers that would settle a domain as
one without mail; such an answer is used once a later answer shows that the resolver still works.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import random
import string
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import ResolverError, SettingsError
from ...model.evidence import DnsOutcome, DomainEvidence
from ..lists.files import find_list, read_entries, user_lists_folder
from .answers import ADDRESS_TYPES, DENIALS, AnswerCache, AnswerOutcome, DnsAnswer, RecordType

if TYPE_CHECKING:
    from .resolver import Resolver

__all__ = ["AnswerWatch", "ProbeTable", "ResolverTest", "load_probes", "parse_probes"]

LIST_NAME = "resolver_test"
SAMPLE = 3  # known domains asked before a run
ROTATED = 8  # known domains that the tests during a run ask in turn: the first of the table
LABEL_LENGTH = 24  # random letters: nobody registered such a name
TRUSTED_FOR, RETEST_AFTER = 3600.0, 60.0  # seconds for which a result is used: without and with a finding
MAX_WAITING = 20_000  # answers that wait to be confirmed, before a question is asked to confirm them
FIRST_WAIT = 10.0  # seconds that they wait at first; then twice as long each time, so that the questions stay few
RECENT = 3  # domains that were seen to have MX records, kept to ask about them again in a run of many domains
MANY = 100  # domains with MX records
# Denials contradicted by the domain's address, after which no denial is used: so many, and this share of all domains.
# Name servers that deny only the MX question are far rarer.
CONTRADICTIONS, CONTRADICTED_SHARE = 3, 0.01
COUNTED = 2000  # domains, after which the older half is left out: a resolver may begin to answer falsely late
ROUNDS = 3  # tests in a row that do not confirm an answer, after which it stays unconfirmed

USE_ANOTHER = "use another resolver, as LocalBackend(resolver='9.9.9.9')"
NEGATIVE = (DnsOutcome.NXDOMAIN, DnsOutcome.NODATA)
# What a resolver that answers falsely may give.
FALSIFIABLE = (*NEGATIVE, DnsOutcome.NULL_MX, DnsOutcome.NO_EXCHANGE, DnsOutcome.IMPLICIT_MX)
WaitingEvidence = tuple[DomainEvidence, int]  # with the edition of the resolver's answers that it is from


@dataclass(frozen=True, slots=True)
class ProbeTable:
    """What every resolver of the public DNS must answer."""

    known: tuple[str, ...]  # domains with MX records; the first are asked before a run
    unused: tuple[str, ...]  # random names below these do not exist


def load_probes(folder: Path | None = None) -> ProbeTable:
    """Load the table from the user's lists folder, else from the package; SettingsError if it is damaged.

    >>> load_probes().known[0]
    'gmail.com'
    """
    listing = find_list(LIST_NAME, user_lists_folder() if folder is None else folder)
    return parse_probes(read_entries(listing))


def parse_probes(entries: Sequence[str]) -> ProbeTable:
    """Parse the rows of the table: name, MX or NXDOMAIN, date, reason."""
    names: dict[str, list[str]] = {"MX": [], "NXDOMAIN": []}
    for entry in entries:
        columns = entry.split(maxsplit=3)
        if len(columns) < 4 or columns[1] not in names:
            raise SettingsError(f"list {LIST_NAME}: {entry!r:.100}: give a name, MX or NXDOMAIN, a date and a reason")
        names[columns[1]].append(columns[0].lower())
    if len(names["MX"]) < SAMPLE or len(names["NXDOMAIN"]) < 2:
        raise SettingsError(f"list {LIST_NAME}: give at least {SAMPLE} names with MX and 2 with NXDOMAIN")
    return ProbeTable(tuple(names["MX"]), tuple(names["NXDOMAIN"]))


class AnswerWatch:
    """Names whose last answer would settle them as without mail and is not confirmed; notes each uncached answer.

    An answer is confirmed by the MX records of another domain if their question was sent after the answer came.
    Answers are counted: the count when a question is sent shows which answers came before it.
    """

    def __init__(self) -> None:
        self.false_addresses: frozenset[str] = frozenset()  # given for names that do not exist
        self.not_proof: frozenset[str] = frozenset()  # domains that also a closed network may let through
        self._recent: deque[str] = deque(maxlen=RECENT)  # the last domains that had MX records, the latest first
        self.proofs = 0  # answers with MX records
        self.domains = 0  # answers to MX questions
        self.contradicted: dict[str, None] = {}  # domains about which one answer is a denial and another one is not
        self._answers = 0
        self._unconfirmed: dict[str, int] = {}  # the number of each answer, in ascending order
        self._lock = threading.Lock()  # event loops of two threads may share the resolver

    def last_answer(self) -> int:
        """The number of the last answer that was noted; a question that is sent now is asked after it."""
        return self._answers

    def note_contradiction(self, name: str) -> None:
        """Note a domain about which one answer is a denial and another one is not."""
        with self._lock:
            self.contradicted[name] = None

    def _count_domain(self) -> None:
        self.domains += 1
        if self.domains > COUNTED:
            self.domains //= 2
            for name in list(self.contradicted)[: len(self.contradicted) // 2]:
                del self.contradicted[name]

    @property
    def is_suspect(self) -> bool:
        """Whether the contradicted denials are many for the number of domains."""
        return bool(self.contradicted) and len(self.contradicted) >= CONTRADICTED_SHARE * self.domains

    @property
    def is_inconsistent(self) -> bool:
        """Whether that is not an accident: one of several resolvers behind the address answers falsely."""
        return len(self.contradicted) >= CONTRADICTIONS and self.is_suspect

    def note(self, name: str, rdtype: RecordType, answer: DnsAnswer, asked_after: int) -> DnsAnswer:
        """Note an answer; one that consists of false addresses is replaced by NXDOMAIN."""
        if answer.outcome is AnswerOutcome.UNDETERMINED or (rdtype != "MX" and rdtype not in ADDRESS_TYPES):
            return answer
        if answer.texts and self.false_addresses.issuperset(answer.texts):
            shown = ", ".join(answer.texts[:2])
            message = f"the resolver gives {shown} for names that do not exist, so this counts as NXDOMAIN"
            answer = answer._replace(outcome=AnswerOutcome.NXDOMAIN, texts=(), message=message)
        with self._lock:
            self._answers += 1
            if rdtype == "MX":
                self._count_domain()
            if self._unconfirmed:
                self._unconfirmed.pop(name, None)
            if not has_exchange(answer):
                self._unconfirmed[name] = self._answers
            elif name not in self.not_proof:
                self._recent.appendleft(name)
                self.proofs += 1
                if self._unconfirmed:
                    self._confirm(asked_after)
        return answer

    def recent(self) -> list[str]:
        """Domains that had MX records a moment ago; none in a small run, where asking again would cost too much."""
        return list(self._recent) if self.proofs >= MANY else []

    def confirm(self, asked_after: int) -> None:
        """Confirm the answers up to this number."""
        with self._lock:
            self._confirm(asked_after)

    def _confirm(self, asked_after: int) -> None:
        while self._unconfirmed:
            name, number = next(iter(self._unconfirmed.items()))
            if number > asked_after:
                return
            del self._unconfirmed[name]

    def is_unconfirmed(self, evidence: DomainEvidence) -> bool:
        """Whether the evidence rests on an answer that is not confirmed."""
        return evidence.domain in self._unconfirmed and evidence.outcome in FALSIFIABLE


def has_exchange(answer: DnsAnswer) -> bool:
    """Whether there is an MX record other than a null MX."""
    exchanges = answer.exchanges
    return bool(exchanges) and (bool(exchanges[0].host) or any(exchange.host for exchange in exchanges))


def exchange_form(name: str, host: str) -> str:
    """The exchange with ``*`` for the name that it is given for, since a wildcard may have one below each name.

    >>> exchange_form("ada.example", "mx.ada.example"), exchange_form("ada.example", "mx.example")
    ('mx.*', 'mx.example')
    """
    return f"{host.removesuffix(name)}*" if f".{host}".endswith(f".{name}") else host


def is_denial(answer: DnsAnswer) -> bool:
    """Whether the answer means that there are no MX records."""
    return answer.outcome in DENIALS or (answer.outcome is AnswerOutcome.DATA and not has_exchange(answer))


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of a test."""

    error: str = ""  # why the resolver cannot be used
    has_findings: bool = False  # the resolver can be used, with care


class ResolverTest:
    """Tests a resolver before a run and during it; one for each backend.

    `randomness` gives the names that do not exist. The table is read when it is first needed.
    """

    def __init__(
        self,
        resolver: Resolver,
        *,
        shown: str = "the system's resolver",
        clock: Callable[[], float] = time.monotonic,
        randomness: random.Random | None = None,
    ) -> None:
        self.resolver, self.shown, self.clock = resolver, shown, clock
        self.watch = resolver.watch = AnswerWatch()
        self._randomness = randomness or random.SystemRandom()
        self._probes: ProbeTable | None = None
        self._rotation: Iterator[str] = iter(())
        self._denied: dict[str, None] = {}  # known domains without MX records according to the resolver
        self._is_ambiguous = False  # names that do not exist have addresses, another one each time
        self._false_exchanges: frozenset[str] = frozenset()  # for names that do not exist, by `exchange_form`
        self._are_exchanges_ambiguous = False  # those differ from name to name
        self._began_late = False  # they were found when rows of the run had been settled
        self._is_inconsistent = False  # it denied records of domains and then gave them
        self._later_tests = 0
        self._edition = (
            0  # of the resolver's answers: raised when it begins to give addresses for names that do not exist
        )
        self._first = self._make_cache()
        self._later: AnswerCache[str, ProbeResult] = AnswerCache(lambda _: 0.0, size=1, clock=clock)

    @property
    def probes(self) -> ProbeTable:
        """The table."""
        if self._probes is None:
            self._probes = load_probes()
            self._rotation = itertools.cycle(
                self._probes.known[SAMPLE - 1 : ROTATED] + self._probes.known[: SAMPLE - 1]
            )
            self.watch.not_proof = frozenset(self._probes.known)
        return self._probes

    def notices(self) -> list[str]:
        """What a user must know about the resolver."""
        found = []
        if self._denied:
            names = ", ".join(list(self._denied)[:5])
            found.append(
                f"{self.shown} gives no MX records for {names}, which is false: its other answers of this kind are not "
                f"used, and such rows are 'unknown'; {USE_ANOTHER}"
            )
        if self._is_inconsistent:
            found.append(
                f"{self.shown} denied records of domains and then gave them, as if one of several resolvers behind it "
                f"answered falsely: denials are not used, and such rows are 'unknown'; {USE_ANOTHER}"
            )
        if self.watch.false_addresses:
            shown = ", ".join(sorted(self.watch.false_addresses)[:4])
            found.append(f"{self.shown} gives {shown} for names that do not exist: that answer counts as NXDOMAIN")
        if self._began_late:
            found.append(
                f"{self.shown} began during a run to give exchanges for names that do not exist: domains of that run "
                f"that have exchanges may not exist; {USE_ANOTHER}, and verify again"
            )
        elif self._is_ambiguous or self._false_exchanges:
            found.append(
                f"{self.shown} answers for names that do not exist, and such answers cannot be distinguished from "
                f"true ones: rows that depend on them are 'unknown'; {USE_ANOTHER}"
            )
        return found

    # --- before a run -------------------------------------------------------------------------------

    async def require(self) -> None:
        """Test the resolver unless that was done lately; raises ResolverError if it cannot be used."""
        result = await self._first.get("", self._run_first)
        if result.error:
            raise ResolverError(result.error)

    async def _run_first(self) -> ProbeResult:
        if self.notices():
            self._forget_findings()
        known, (one, two) = self.probes.known[:SAMPLE], self.probes.unused[:2]
        names = self._random_name(one), self._random_name(two)
        *answers, address, exchange = await asyncio.gather(
            *(self.resolver.query(name, "MX") for name in known),  # cached: a run often asks about these, too
            self.resolver.query_uncached(names[0], "A"),
            self.resolver.query_uncached(names[1], "MX"),
        )
        if not any(map(has_exchange, answers)):
            error = await self._describe_failure(known, answers)
            self.resolver.forget()
            return ProbeResult(error)
        self._denied |= {name: None for name, answer in zip(known, answers, strict=True) if is_denial(answer)}
        if address.outcome in (AnswerOutcome.DATA, AnswerOutcome.NODATA) or has_exchange(exchange):
            await self._examine_wildcard(names)
        return ProbeResult(has_findings=bool(self.notices()))

    async def _describe_failure(self, known: Sequence[str], answers: Sequence[DnsAnswer]) -> str:
        """Why the resolver cannot be used, and what helps; TCP shows whether only UDP is affected."""
        over_tcp = await self.resolver.query_tcp(known[0], "MX")
        denied = [name for name, answer in zip(known, answers, strict=True) if is_denial(answer)]
        if denied:
            cause = f"{self.shown} gives no MX records for {join_words(denied)}, which is false"
            if has_exchange(over_tcp):
                cause += "; over TCP it gives the right answer, so something on this network changes answers over UDP"
        else:
            cause = f"{self.shown} gave no answer about {join_words(known)} ({answers[0].message})"
            if has_exchange(over_tcp):
                cause += "; over TCP it answers, so this network seems to block DNS over UDP"
            else:
                cause += f"; over TCP: {over_tcp.message or 'no usable answer'}"
        return (
            f"{cause}. Nothing was verified with it. Log in to the network if it asks for that, or give another "
            "resolver, as LocalBackend(resolver='9.9.9.9') or --resolver 9.9.9.9. If this is a private network whose "
            "resolver knows only its own names: LocalBackend(resolver_check=False) or --no-resolver-check"
        )

    async def _examine_wildcard(self, names: Sequence[str]) -> None:
        """Find out what the resolver gives for names that do not exist."""
        kinds: tuple[RecordType, ...] = ("A", "AAAA", "MX")
        asked = [(name, kind) for kind in kinds for name in names]
        answers = await asyncio.gather(*(self.resolver.query_uncached(name, kind) for name, kind in asked))
        for kind in ("A", "AAAA"):
            sets = [set(answer.texts) for (_, each), answer in zip(asked, answers, strict=True) if each == kind]
            if any(each != sets[0] for each in sets):
                self._is_ambiguous = True
            self.watch.false_addresses |= frozenset().union(*sets)
        if self._is_ambiguous:  # existing domains may share these addresses, so that none of them means NXDOMAIN
            self.watch.false_addresses = frozenset()
        forms = [
            {exchange_form(name, exchange.host) for exchange in answer.exchanges if exchange.host}
            for (name, _), answer in zip(asked, answers, strict=True)
            if has_exchange(answer)
        ]
        self._are_exchanges_ambiguous |= any(each != forms[0] for each in forms)
        self._false_exchanges |= frozenset().union(*forms)

    # --- during a run -------------------------------------------------------------------------------

    async def observe_domain(self, domain: str) -> DomainEvidence:
        """Observe one domain as `Resolver.observe_domain` does; an answer without MX records is confirmed first."""
        await self.require()
        edition = self._edition
        evidence = await self.resolver.observe_domain(domain)
        self._check_known(evidence)
        if self._needs_confirmation(evidence):
            await self._confirm({0: (evidence, edition)})
        return self._review(evidence, edition)

    async def observe_domains(self, domains: Sequence[str]) -> AsyncIterator[tuple[int, DomainEvidence]]:
        """Observe many domains as `Resolver.observe_domains` does; those without MX records wait to be confirmed.

        Known domains are asked first, since their answers show whether the others can be used.
        """
        if not len(domains):
            return
        await self.require()
        order, first = self._known_first(domains)
        known_left, tests, proofs = first, self._later_tests, self.watch.proofs
        waiting: dict[int, WaitingEvidence] = {}  # by position
        wait, due, found = FIRST_WAIT, math.inf, DnsOutcome.MX
        try:
            async with aclosing(self.resolver.observe_domains([domains[i] for i in order])) as stream:  # type: ignore[type-var]
                async for at, evidence in stream:
                    known_left -= at < first
                    if at >= first and evidence.outcome is found and not self._false_exchanges:
                        yield order[at], evidence  # most domains: nothing to examine
                    else:
                        self._check_known(evidence)
                        if self._is_held(evidence) or (known_left and evidence.outcome in FALSIFIABLE):
                            waiting[order[at]] = evidence, self._edition
                            due = min(due, self.clock() + wait)
                        else:
                            yield order[at], self._review(evidence, self._edition)
                    if known_left or not waiting:
                        continue
                    if len(waiting) >= MAX_WAITING or self.clock() >= due:
                        await self._confirm(waiting)
                        wait *= 2
                    elif self._is_held(waiting[next(iter(waiting))][0]):
                        continue
                    for position in self._settled(waiting):
                        yield position, self._review(*waiting.pop(position))
                    due = due if waiting else math.inf
            await self._confirm(waiting)
            await self._test_at_end(is_needed=tests == self._later_tests and self.watch.proofs - proofs >= MANY)
            while waiting:
                position = next(iter(waiting))
                yield position, self._review(*waiting.pop(position))
        finally:
            self._drop(waiting)

    def _known_first(self, domains: Sequence[str]) -> tuple[list[int], int]:
        """The positions of the domains with the known ones first, and the number of those."""
        known = frozenset(self.probes.known)
        front = [i for i, domain in enumerate(domains) if domain in known]
        return front + [i for i, domain in enumerate(domains) if domain not in known], len(front)

    def _drop(self, waiting: Mapping[int, WaitingEvidence]) -> None:
        """Do not leave answers in the cache that the run ended without confirming."""
        if waiting:
            self.resolver.forget()

    def _settled(self, waiting: Mapping[int, WaitingEvidence]) -> list[int]:
        """The positions at the front of `waiting` that wait no longer: answers are confirmed in their order."""
        return list(itertools.takewhile(lambda position: not self._is_held(waiting[position][0]), waiting))

    def _needs_confirmation(self, evidence: DomainEvidence) -> bool:
        """Whether the evidence must be confirmed before it is used."""
        return self.watch.is_unconfirmed(evidence) and not (self._denied and evidence.outcome in NEGATIVE)

    def _is_held(self, evidence: DomainEvidence) -> bool:
        """Whether the evidence waits for a test, or for more domains if a denial was contradicted."""
        return self._needs_confirmation(evidence) or (
            evidence.outcome in NEGATIVE and self.watch.is_suspect and not self.watch.is_inconsistent
        )

    def _check_known(self, evidence: DomainEvidence) -> None:
        """Note a known domain without MX records."""
        if evidence.outcome in FALSIFIABLE and evidence.domain in self.watch.not_proof:
            self._denied[evidence.domain] = None

    def _review(self, evidence: DomainEvidence, edition: int) -> DomainEvidence:
        """The evidence, or undetermined if the answer cannot be used."""
        if doubt := self._find_doubt(evidence, edition):
            return DomainEvidence(evidence.domain, DnsOutcome.UNDETERMINED, message=doubt)
        return evidence

    def _find_doubt(self, evidence: DomainEvidence, edition: int) -> str:
        """Why the evidence cannot be used; empty if it can."""
        if evidence.outcome in FALSIFIABLE and evidence.domain in self._denied:
            return f"{self.shown} gives no MX records for {evidence.domain}, which is known to have some"
        if evidence.outcome in NEGATIVE and self._denied:
            return f"{self.shown} denies {next(iter(self._denied))}, which exists, so its other denials are not used"
        if evidence.outcome in NEGATIVE and self._contradicts_itself():
            return f"{self.shown} denies records and then gives them, so its denials are not used"
        if self.watch.is_unconfirmed(evidence):
            return f"{self.shown} gave an answer ({evidence.message or evidence.outcome}), and then could not be tested"
        if evidence.outcome is DnsOutcome.IMPLICIT_MX and (self._is_ambiguous or edition != self._edition):
            return (
                f"{self.shown} gives addresses for names that do not exist, so the address of this one proves nothing"
            )
        if evidence.outcome is DnsOutcome.MX and self._false_exchanges:
            if self._are_exchanges_ambiguous:
                return f"{self.shown} gives exchanges for names that do not exist, another one for each"
            if self._false_exchanges.issuperset(exchange_form(evidence.domain, e.host) for e in evidence.exchanges):
                return f"{self.shown} gives the same exchange for names that do not exist"
        return ""

    def _contradicts_itself(self) -> bool:
        """Whether the resolver denies records and then gives them; if so, the next run begins with a new test."""
        if self.watch.is_inconsistent and not self._is_inconsistent:
            self._is_inconsistent = True
            self._first = self._make_cache()
        return self._is_inconsistent

    async def _confirm(self, waiting: Mapping[int, WaitingEvidence]) -> None:
        """Ask questions that confirm these answers; ResolverError if the resolver has begun to answer falsely."""
        for _ in range(ROUNDS):
            if not self._any_needs_confirmation(waiting):
                return
            result = await self._later.get("", self._run_again)
            if result.error:
                self.resolver.forget()
                self._first = self._make_cache()
                raise ResolverError(result.error)
        if self._any_needs_confirmation(waiting):
            self.resolver.forget()

    def _any_needs_confirmation(self, waiting: Mapping[int, WaitingEvidence]) -> bool:
        return any(self._needs_confirmation(evidence) for evidence, _ in waiting.values())

    async def _run_again(self) -> ProbeResult:
        """Ask about a known domain, one that had MX records a moment ago, and a name that does not exist."""
        self._later_tests += 1
        asked_after = self.watch.last_answer()
        known, recent = next(self._rotation), self.watch.recent()
        name = self._random_name(self._randomness.choice(self.probes.unused))
        *answers, address = await asyncio.gather(
            *(self.resolver.query_uncached(each, "MX") for each in (known, *recent[:1])),
            self.resolver.query_uncached(name, "A"),
        )
        if len(answers) > 1 and is_denial(answers[1]):  # the name servers of one domain may disagree: ask about others
            others = [await self.resolver.query_uncached(each, "MX") for each in recent[1:]]
            if (others or not has_exchange(answers[0])) and not any(map(has_exchange, others)):
                return ProbeResult(self._describe_change(recent[0]))
        elif is_denial(answers[0]):
            if not any(map(has_exchange, answers)):
                return ProbeResult(self._describe_change(known))
            self._denied[known] = None
        if not any(map(has_exchange, answers)):
            return ProbeResult()
        is_known = self._is_ambiguous or self.watch.false_addresses.issuperset(address.texts)
        if address.outcome is AnswerOutcome.DATA and not is_known:
            await self._examine_wildcard((name, self._random_name(self.probes.unused[0])))
            self._edition += 1
            self.resolver.forget()
        self.watch.confirm(asked_after)
        return ProbeResult()

    async def _test_at_end(self, *, is_needed: bool) -> None:
        """Test at the end of a run without other tests: exchanges for all names would cause none."""
        if not is_needed:
            return
        name = self._random_name(self._randomness.choice(self.probes.unused))
        if has_exchange(await self.resolver.query_uncached(name, "MX")) and not self._false_exchanges:
            await self._examine_wildcard((name, self._random_name(self.probes.unused[0])))
            self._began_late = True
            self._first = self._make_cache()
            self.resolver.forget()

    def _describe_change(self, name: str) -> str:
        return (
            f"{self.shown} began to answer falsely during the run: it gives no MX records for {name} any more. "
            "Rows that depend on such answers get no verdict. A network that asks for a login does this; log in or "
            "give another resolver, as LocalBackend(resolver='9.9.9.9') or --resolver 9.9.9.9, and run again"
        )

    def _random_name(self, parent: str) -> str:
        return f"{''.join(self._randomness.choices(string.ascii_lowercase, k=LABEL_LENGTH))}.{parent}"

    def _forget_findings(self) -> None:
        """Begin as for a resolver that was never tested."""
        self._denied, self._false_exchanges = {}, frozenset()
        self._is_ambiguous = self._are_exchanges_ambiguous = self._began_late = self._is_inconsistent = False
        self.watch.false_addresses = frozenset()
        self.watch.domains, self.watch.contradicted = 0, {}
        self.resolver.forget()

    def _make_cache(self) -> AnswerCache[str, ProbeResult]:
        """A cache for one result, which simultaneous tests share."""
        return AnswerCache(self._seconds_used, size=1, clock=self.clock)

    def _seconds_used(self, result: ProbeResult) -> float:
        """How long the result of the test before a run is used; an error is never kept."""
        if result.error:
            return 0.0
        return RETEST_AFTER if result.has_findings else TRUSTED_FOR


def join_words(words: Sequence[str]) -> str:
    """Join words as in a sentence.

    >>> join_words(["one.example", "two.example", "three.example"])
    'one.example, two.example and three.example'
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
