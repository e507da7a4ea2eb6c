"""The self-test of the resolver.

It shows whether the resolver knows domains that exist, and denies names that do not exist.

Closed networks, captive portals and search pages of providers answer DNS questions falsely.
`ResolverTest` asks a few known questions before a run. During a run, answers that a resolver may
give falsely are held until the same questions, asked after them, are answered truly.
"""

from __future__ import annotations

import asyncio
import random
import string
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...errors import ResolverError, SettingsError
from ...model.evidence import NO_MAIL, DnsOutcome, DomainEvidence
from ..lists.files import find_list, read_entries, user_lists_folder
from .answers import DENIALS, AnswerCache, AnswerOutcome, DnsAnswer
from .exchanges import may_be_host_name

if TYPE_CHECKING:
    from .resolver import Resolver

LIST_NAME = "resolver_test"
SAMPLE = 3  # known domains asked before a run
LABEL_LENGTH = 24  # random letters: nobody registered such a name
# Seconds for which a result is used: without and with a finding.
TRUSTED_FOR = 3600.0
RETEST_AFTER = 60.0
MAX_HELD = 20_000  # answers that are held before the resolver is tested
# Seconds that they are held at first; then twice as long each time, so that the questions stay few.
FIRST_WAIT = 10.0
MANY = 100  # domains, after which a run ends with a test although no answer is held
# Denials contradicted by the domain's address, after which no denial is used: so many, and this
# share of all domains. Name servers that deny only the MX question are far rarer.
CONTRADICTIONS = 3
CONTRADICTED_SHARE = 0.01
# Domains, after which the older half is left out: a resolver may begin to answer falsely late.
COUNTED = 2000
ROUNDS = 3  # tests in a row that are not passed, after which held answers are not used

USE_ANOTHER = "use another resolver, as LocalBackend(resolver='9.9.9.9')"
NEGATIVE = (DnsOutcome.NXDOMAIN, DnsOutcome.NODATA)
OF_RECORDS = (DnsOutcome.MX, DnsOutcome.NULL_MX, DnsOutcome.NO_EXCHANGE)  # what MX records show
# What a resolver that answers falsely may give; answers with exchanges are not held.
HELD = (*NEGATIVE, DnsOutcome.NULL_MX, DnsOutcome.NO_EXCHANGE, DnsOutcome.IMPLICIT_MX)


@dataclass(frozen=True, slots=True)
class ProbeTable:
    """What every resolver of the public DNS must answer."""

    known: tuple[str, ...]  # domains with MX records; the first are asked before a run
    unused: tuple[str, ...]  # random names below these do not exist


def load_probes(folder: Path | None = None) -> ProbeTable:
    """Load the table from the user's lists folder, else from the package.

    SettingsError if it is damaged.

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
            raise SettingsError(
                f"list {LIST_NAME}: {entry!r:.100}: give a name, MX or NXDOMAIN, a date and a "
                "reason"
            )
        names[columns[1]].append(columns[0].lower())
    if len(names["MX"]) < SAMPLE or len(names["NXDOMAIN"]) < 2:
        raise SettingsError(
            f"list {LIST_NAME}: give at least {SAMPLE} names with MX and 2 with NXDOMAIN"
        )
    return ProbeTable(tuple(names["MX"]), tuple(names["NXDOMAIN"]))


def has_exchange(answer: DnsAnswer) -> bool:
    """Whether there is an MX record with a name that a host can have."""
    return any(exchange.host and may_be_host_name(exchange.host) for exchange in answer.exchanges)


def is_denial(answer: DnsAnswer) -> bool:
    """Whether the answer means that there are no MX records."""
    return answer.outcome in DENIALS or (
        answer.outcome is AnswerOutcome.DATA and not has_exchange(answer)
    )


@dataclass(slots=True)
class Findings:
    """What is wrong with a resolver that can be used nevertheless, with care."""

    # Known domains without MX records according to it.
    denied: dict[str, None] = field(default_factory=dict)
    addresses: set[str] = field(default_factory=set)  # that it gives for names that do not exist
    has_exchanges: bool = False  # it gives MX records for names that do not exist
    began: bool = False  # it does so since rows of a run were settled
    is_inconsistent: bool = False  # it denied records of domains and then gave them


class Checkpoint(NamedTuple):
    """The result of a test during a run."""

    number: int
    is_passed: bool = False  # all questions were answered, and a known domain has MX records
    error: str = ""  # why the resolver cannot be used any more


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
        self.resolver = resolver
        self.shown = shown
        self.clock = clock
        self.found = Findings()
        # Domains about which one answer is a denial and another one is not.
        self.contradicted: dict[str, None] = {}
        self.resolver.contradicted = self.contradicted
        self.domains = 0  # observed
        self._randomness = randomness or random.SystemRandom()
        self._checkpoints = 0  # begun
        self._first = self._make_cache()
        self._checkpoint: AnswerCache[str, Checkpoint] = AnswerCache(
            lambda _: 0.0, size=1, clock=clock
        )
        self._confirmed: AnswerCache[tuple[str, DnsOutcome], bool] = AnswerCache(
            lambda _: RETEST_AFTER, size=MAX_HELD, clock=clock
        )

    @cached_property
    def probes(self) -> ProbeTable:
        """The table."""
        return load_probes()

    @cached_property
    def known(self) -> frozenset[str]:
        """All domains of the table that have MX records."""
        return frozenset(self.probes.known)

    def notices(self) -> list[str]:
        """What a user must know about the resolver."""
        notices = []
        found = self.found
        if found.denied:
            names = ", ".join(list(found.denied)[:5])
            notices.append(
                f"{self.shown} gives no MX records for {names}, which is false: its other answers "
                f"of this kind are not used, and such rows are 'unknown'; {USE_ANOTHER}"
            )
        if found.is_inconsistent and not found.addresses:  # those contradict denials, too
            notices.append(
                f"{self.shown} denied records of domains and then gave them, as if one of several "
                "resolvers behind it answered falsely: denials are not used, and such rows are "
                f"'unknown'; {USE_ANOTHER}"
            )
        if found.began:
            notices.append(
                f"{self.shown} began during a run to give exchanges for names that do not exist: "
                f"domains of that run that have exchanges may not exist; {USE_ANOTHER}, and verify "
                "again"
            )
        elif found.addresses or found.has_exchanges:
            given = ", ".join([*sorted(found.addresses)[:4], *["exchanges"] * found.has_exchanges])
            notices.append(
                f"{self.shown} gives {given} for names that do not exist, and such answers cannot "
                "be distinguished from true ones: rows that depend on them are 'unknown'; "
                f"{USE_ANOTHER}"
            )
        return notices

    # --- before a run -----------------------------------------------------------------------------

    async def require(self) -> None:
        """Test the resolver unless that was done lately; ResolverError if it cannot be used."""
        error = await self._first.get("", self._run_first)
        if error:
            raise ResolverError(error)

    async def _run_first(self) -> str:
        """Test the resolver; why it cannot be used."""
        if self.notices():
            self.resolver.forget()
        self.found = Findings()
        self.domains = 0
        self.contradicted.clear()
        known = self.probes.known[:SAMPLE]
        answers, _ = await asyncio.gather(
            # Cached: runs often ask these, too.
            asyncio.gather(*(self.resolver.query(name, "MX") for name in known)),
            self._ask_about_unused(),
        )
        if not any(map(has_exchange, answers)):
            error = await self._describe_failure(known, answers)
            self.resolver.forget()
            return error
        self.found.denied |= {
            name: None for name, answer in zip(known, answers, strict=True) if is_denial(answer)
        }
        return ""

    async def _describe_failure(self, known: Sequence[str], answers: Sequence[DnsAnswer]) -> str:
        """Why the resolver cannot be used, and what helps.

        A question over TCP shows whether only UDP is affected.
        """
        over_tcp = await self.resolver.query_tcp(known[0], "MX")
        denied = [name for name, answer in zip(known, answers, strict=True) if is_denial(answer)]
        if denied:
            cause = f"{self.shown} gives no MX records for {join_words(denied)}, which is false"
            if has_exchange(over_tcp):
                cause += (
                    "; over TCP it gives the right answer, so something on this network changes "
                    "answers over UDP"
                )
        else:
            cause = f"{self.shown} gave no answer about {join_words(known)} ({answers[0].message})"
            if has_exchange(over_tcp):
                cause += "; over TCP it answers, so this network seems to block DNS over UDP"
            else:
                cause += f"; over TCP: {over_tcp.message or 'no usable answer'}"
        return (
            f"{cause}. Nothing was verified with it. Log in to the network if it asks for that, or "
            "give another resolver, as LocalBackend(resolver='9.9.9.9') or --resolver 9.9.9.9. If "
            "this is a private network whose resolver knows only its own names: "
            "LocalBackend(resolver_check=False) or --no-resolver-check"
        )

    async def _ask_about_unused(self) -> bool:
        """Note what the resolver gives for names that do not exist; whether it answered."""
        name, other = map(self._random_name, self._randomness.sample(self.probes.unused, 2))
        address, exchange = await asyncio.gather(
            self.resolver.query_uncached(name, "A"), self.resolver.query_uncached(other, "MX")
        )
        if address.outcome is AnswerOutcome.NODATA:
            address = await self.resolver.query_uncached(name, "AAAA")
        self.found.addresses.update(address.texts)
        self.found.has_exchanges |= exchange.outcome is AnswerOutcome.DATA
        return AnswerOutcome.UNDETERMINED not in (address.outcome, exchange.outcome)

    # --- during a run -----------------------------------------------------------------------------

    async def observe_domain(self, domain: str) -> DomainEvidence:
        """Observe one domain as `Resolver.observe_domain` does.

        An answer that may be false is confirmed first.
        """
        await self.require()
        evidence = await self.resolver.observe_domain(domain)
        self._note(evidence)
        key = domain, evidence.outcome
        if evidence.outcome in HELD and not self._confirmed.find(key):
            if not await self._confirm():
                return self._review(evidence, is_confirmed=False)
            self._confirmed.store(key, True)
        return self._review(evidence)

    async def observe_domains(
        self, domains: Sequence[str]
    ) -> AsyncIterator[tuple[int, DomainEvidence]]:
        """Observe many domains as `Resolver.observe_domains` does.

        Answers that may be false are held.

        Known domains are asked first, since their answers show whether the others can be used.
        """
        if not len(domains):
            return
        await self.require()
        order = [at for at, domain in enumerate(domains) if domain in self.known]
        order += [at for at, domain in enumerate(domains) if domain not in self.known]
        held: list[tuple[int, DomainEvidence]] = []
        wait = FIRST_WAIT
        due = 0.0
        since = 0  # answers since the last test
        try:
            async with aclosing(
                self.resolver.observe_domains([domains[at] for at in order])
            ) as stream:  # type: ignore[type-var]
                async for at, evidence in stream:
                    since += 1
                    self._note(evidence)
                    if evidence.outcome in HELD:
                        due = due if held else self.clock() + wait
                        held.append((order[at], evidence))
                    else:
                        yield order[at], self._review(evidence)
                    is_due = len(held) >= MAX_HELD or (held and self.clock() >= due)
                    if not is_due or self._is_undecided():
                        continue
                    is_confirmed = await self._confirm()
                    since = 0
                    wait *= 2
                    due = self.clock() + wait
                    if is_confirmed or len(held) >= MAX_HELD:
                        released = held
                        held = []
                        for position, answer in released:
                            yield position, self._review(answer, is_confirmed=is_confirmed)
            # Also where nothing is held: a resolver may have begun to give exchanges for all names.
            is_confirmed = await self._confirm() if held or since >= MANY else True
            released = held
            held = []
            for position, answer in released:
                yield position, self._review(answer, is_confirmed=is_confirmed)
        finally:
            if held:  # the run ended before they were confirmed
                self.resolver.forget()

    def _note(self, evidence: DomainEvidence) -> None:
        """Count a domain, and note a known one without MX records."""
        self.domains += 1
        if self.domains > COUNTED:
            self.domains //= 2
            for name in list(self.contradicted)[: len(self.contradicted) // 2]:
                self.contradicted.pop(name, None)
        if evidence.outcome in HELD and evidence.domain in self.known:
            self.found.denied[evidence.domain] = None

    def _is_contradicted(self) -> bool:
        """Whether contradicted denials are many for the number of domains."""
        return (
            bool(self.contradicted) and len(self.contradicted) >= CONTRADICTED_SHARE * self.domains
        )

    def _is_undecided(self) -> bool:
        """Whether more domains must show if it is an accident that a denial was contradicted."""
        return self._is_contradicted() and len(self.contradicted) < CONTRADICTIONS

    def _is_inconsistent(self) -> bool:
        """Whether that is not an accident; if so, the next run begins with a new test."""
        if (
            not self.found.is_inconsistent
            and self._is_contradicted()
            and len(self.contradicted) >= CONTRADICTIONS
        ):
            self.found.is_inconsistent = True
            self._first = self._make_cache()
        return self.found.is_inconsistent

    def _review(self, evidence: DomainEvidence, *, is_confirmed: bool = True) -> DomainEvidence:
        """The evidence, or undetermined if the answer cannot be used."""
        if doubt := self._find_doubt(evidence, is_confirmed=is_confirmed):
            return DomainEvidence(evidence.domain, DnsOutcome.UNDETERMINED, message=doubt)
        return evidence

    def _find_doubt(self, evidence: DomainEvidence, *, is_confirmed: bool) -> str:
        """Why the evidence cannot be used; empty if it can."""
        outcome = evidence.outcome
        found = self.found
        if outcome in OF_RECORDS and found.has_exchanges:
            return (
                f"{self.shown} gives exchanges for names that do not exist, so those of this one "
                "prove nothing"
            )
        if outcome in HELD and evidence.domain in found.denied:
            return (
                f"{self.shown} gives no MX records for {evidence.domain}, which is known to have "
                "some"
            )
        if outcome in NO_MAIL and found.denied:
            return (
                f"{self.shown} denies {next(iter(found.denied))}, which exists, so its other "
                "denials are not used"
            )
        if outcome in NEGATIVE and self._is_inconsistent():
            return f"{self.shown} denies records and then gives them, so its denials are not used"
        if outcome is DnsOutcome.IMPLICIT_MX and found.addresses:
            return (
                f"{self.shown} gives addresses for names that do not exist, so the address of this "
                "one proves nothing"
            )
        if not is_confirmed:
            return (
                f"{self.shown} gave an answer ({evidence.message or outcome}), and then could not "
                "be tested"
            )
        return ""

    async def _confirm(self) -> bool:
        """Test the resolver, for answers that have come.

        ResolverError if it has begun to answer falsely.
        """
        before = self._checkpoints
        # A test that is under way may have begun before the answers came, and does not count.
        for _ in range(ROUNDS + 1):
            checkpoint = await self._checkpoint.get("", self._run_checkpoint)
            if checkpoint.error:
                self.resolver.forget()
                self._first = self._make_cache()
                raise ResolverError(checkpoint.error)
            if checkpoint.is_passed and checkpoint.number > before:
                return True
        self.resolver.forget()
        return False

    async def _run_checkpoint(self) -> Checkpoint:
        """Ask about a known domain and about names that do not exist."""
        self._checkpoints += 1
        number = self._checkpoints
        before = (bool(self.found.addresses), self.found.has_exchanges)
        name, *others = self._randomness.sample(self.probes.known[:SAMPLE], SAMPLE)
        answer, is_answered = await asyncio.gather(
            self.resolver.query_uncached(name, "MX"), self._ask_about_unused()
        )
        is_known = has_exchange(answer)
        if is_denial(answer):
            answers = await asyncio.gather(
                *(self.resolver.query_uncached(other, "MX") for other in others)
            )
            is_known = any(map(has_exchange, answers))
            if not is_known:
                return Checkpoint(number, error=self._describe_change(name))
            self.found.denied[name] = None
        if before != (bool(self.found.addresses), self.found.has_exchanges):
            self.found.began |= self.found.has_exchanges and not before[1]
            self._first = self._make_cache()
            self.resolver.forget()
        return Checkpoint(number, is_passed=is_known and is_answered)

    def _describe_change(self, name: str) -> str:
        return (
            f"{self.shown} began to answer falsely during the run: it gives no MX records for "
            f"{name} any more. Rows that depend on such answers get no verdict. A network that "
            "asks for a login does this; log in or give another resolver, as "
            "LocalBackend(resolver='9.9.9.9') or --resolver 9.9.9.9, and run again"
        )

    def _random_name(self, parent: str) -> str:
        return (
            f"{''.join(self._randomness.choices(string.ascii_lowercase, k=LABEL_LENGTH))}.{parent}"
        )

    def _make_cache(self) -> AnswerCache[str, str]:
        """A cache for the result of the test before a run.

        Simultaneous runs share it; an error is never kept.
        """
        return AnswerCache(self._seconds_used, size=1, clock=self.clock)

    def _seconds_used(self, error: str) -> float:
        if error:
            return 0.0
        return RETEST_AFTER if self.notices() else TRUSTED_FOR


def join_words(words: Sequence[str]) -> str:
    """Join words as in a sentence.

    >>> join_words(["one.example", "two.example", "three.example"])
    'one.example, two.example and three.example'
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
