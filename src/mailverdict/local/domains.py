"""The DNS stage of the local backend: each domain is looked up once; rows settle as answers come.

domains   0 web.de   1 gone.example
observe   (1, NXDOMAIN, None), (0, MX mx.web.de, None)    in the order of the answers
groups    about five a second, at most 2,000 domains each
Settled   positions of the rows of these domains (`DomainRows`), and their rows
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..backend import Event, Noticed, Settled
from ..checks.blacklist import BlacklistCheck
from ..checks.dns.resolver import Resolver
from ..checks.dns.self_test import ResolverTest
from ..model.arrow import Codes
from ..model.evidence import BlacklistEvidence, DomainEvidence, Evidence, SyntaxEvidence
from ..model.settings import LocalSettings
from ..model.words import ValidationType
from .batch import ObservedBatch, Positions

# Domains per event: few enough for a smooth progress bar, enough for columnar speed.
FLUSH_DOMAINS = 2000
FLUSH_SECONDS = 0.2  # or after this time, so that the answers of a slow resolver appear


class Seen(NamedTuple):
    """What was observed of a domain, by its code."""

    code: int
    dns: DomainEvidence
    blacklist: BlacklistEvidence | None = None


class DomainRows:
    """Which rows of a batch belong to which domain."""

    def __init__(self, codes: Codes, domains: int) -> None:
        self.order: Positions = np.argsort(codes, kind="stable").astype(np.int64)
        bounds = np.searchsorted(codes[self.order], np.arange(domains + 1))
        self.starts = bounds[:-1]
        self.ends = bounds[1:]

    def of(self, wanted: Sequence[int]) -> tuple[Positions, Codes]:
        """Positions of the rows of some domains, and for each the index into `wanted`."""
        if not wanted:
            return np.empty(0, np.int64), np.empty(0, np.int32)
        spans = []
        for code in wanted:
            start = self.starts[code]
            end = self.ends[code]
            spans.append(self.order[start:end])
        numbers = np.arange(len(wanted), dtype=np.int32)
        codes = np.repeat(numbers, list(map(len, spans)))
        return np.concatenate(spans), codes


class DomainStage:
    """Looks up domains and, for `mx_blacklist`, their mail servers on blacklists."""

    def __init__(self, settings: LocalSettings) -> None:
        self.settings = settings
        self.resolver = Resolver(settings)
        self.shown = "the system's DNS resolver"
        if settings.resolver is not None:
            self.shown = f"the resolver {settings.resolver}"
        self.observer: Resolver | ResolverTest = self.resolver
        self.self_test: ResolverTest | None = None
        if settings.resolver_check:
            self.self_test = ResolverTest(self.resolver, shown=self.shown)
            self.observer = self.self_test

    @cached_property
    def blacklist(self) -> BlacklistCheck:
        """The blacklists, which only `mx_blacklist` needs."""
        return BlacklistCheck(self.settings.blacklist, self.resolver)

    async def require_resolver(self) -> None:
        """Raise ResolverError if the resolver cannot be used; tested once in a while."""
        if self.self_test is not None:
            await self.self_test.require()

    def take_notices(self) -> list[str]:
        """What a user must know about the resolver and the blacklists.

        What there is to know about the blacklists is returned once.
        """
        notices = []
        if self.self_test is not None:
            notices += self.self_test.notices()
        if "blacklist" in vars(self):
            notices += self.blacklist.notices
            self.blacklist.notices.clear()
        return notices

    async def settle(
        self, batch: ObservedBatch, validation_type: ValidationType, clock: Callable[[], datetime]
    ) -> AsyncGenerator[Event, None]:
        """Yield the rows of every domain once it has answered."""
        rows = DomainRows(batch.domain_codes(), len(batch.domains))
        observed = self.observe(batch.domain_names(), validation_type)
        async for group in gather_groups(observed):
            yield self.settle_group(batch, validation_type, rows, group, clock())
        for notice in self.take_notices():
            yield Noticed(notice)

    def settle_group(
        self,
        batch: ObservedBatch,
        validation_type: ValidationType,
        rows: DomainRows,
        group: list[Seen],
        now: datetime,
    ) -> Settled:
        syntax = SyntaxEvidence(ok=True)
        evidence = [Evidence(syntax, seen.dns, seen.blacklist) for seen in group]
        positions, codes = rows.of([seen.code for seen in group])
        table = batch.result_rows(validation_type, positions, codes, evidence, now)
        return Settled(table, positions=positions)

    async def observe(
        self, domains: Sequence[str], validation_type: ValidationType
    ) -> AsyncIterator[Seen]:
        """What DNS and, for `mx_blacklist`, blacklists say about each domain, as answers come."""
        if validation_type is not ValidationType.MX_BLACKLIST:
            async for code, dns in self.observer.observe_domains(domains):
                yield Seen(code, dns)
            return
        async for seen in self.observe_listed(domains):
            yield seen

    async def observe_listed(self, domains: Sequence[str]) -> AsyncIterator[Seen]:
        """The same with the blacklists, asked as soon as the exchanges of a domain are known."""
        tasks: set[asyncio.Task[Seen]] = set()
        try:
            async for code, dns in self.observer.observe_domains(domains):
                tasks.add(asyncio.create_task(self.look_up(code, dns)))
                if len(tasks) >= self.settings.dns_concurrency:
                    done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        yield task.result()
            for finished in asyncio.as_completed(tasks):
                yield await finished
        finally:
            for task in tasks:
                task.cancel()

    async def look_up(self, code: int, dns: DomainEvidence) -> Seen:
        """Add what the blacklists say about one domain's exchanges."""
        blacklist = None
        if dns.exchanges:
            blacklist = await self.blacklist.observe(dns)
        return Seen(code, dns, blacklist)

    async def observe_one(
        self, domain: str, validation_type: ValidationType
    ) -> tuple[DomainEvidence, BlacklistEvidence | None]:
        """The same for one domain."""
        dns = await self.observer.observe_domain(domain)
        if validation_type is not ValidationType.MX_BLACKLIST:
            return dns, None
        seen = await self.look_up(0, dns)
        return seen.dns, seen.blacklist

    async def aclose(self) -> None:
        """Close the resolver's sockets."""
        await self.resolver.aclose()


async def gather_groups(stream: AsyncIterator[Seen]) -> AsyncIterator[list[Seen]]:
    """Collect a stream into groups by size or time, so that a slow domain delays no other."""
    group: list[Seen] = []
    following = asyncio.ensure_future(anext(stream, None))
    try:
        while True:
            done, _ = await asyncio.wait([following], timeout=FLUSH_SECONDS)
            seen = None
            try:
                if done:
                    seen = following.result()
            except Exception:
                if group:  # what was established before stays
                    yield group
                raise
            if seen is not None:
                group.append(seen)
                following = asyncio.ensure_future(anext(stream, None))
            if group and (seen is None or len(group) >= FLUSH_DOMAINS):
                yield group
                group = []
            if done and seen is None:
                return
    finally:
        following.cancel()
