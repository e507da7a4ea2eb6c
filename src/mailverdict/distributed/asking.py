"""The tasks that ask: the DNS about the domains of a shard, mail servers about the mailboxes of a shard.

Each reads what the scratch folder has about its shard first, asks only for the rest, and writes what settles. It
returns a report as JSON text: counts, causes and notices, but no address.
"""

from __future__ import annotations

import json
import pickle
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..backend import Noticed, Settled
from ..errors import MailVerdictError
from ..local.backend import LocalBackend
from ..local.domains import DomainStage, gather_groups
from ..local.smtp.stage import MailboxStage
from ..loop import run_sync
from ..model.evidence import BlacklistEvidence, DnsOutcome, DomainEvidence
from ..model.settings import options_of
from ..model.table import SCHEMA, dump_json
from ..model.words import Status, ValidationType
from ..runs.endings import cause_of, count_causes
from ..runs.retry import reusable
from .scratch import PieceWriter
from .stages import (
    EVIDENCE,
    StageJob,
    evidence_of,
    evidence_table,
    is_temporary,
    organisations_of,
    settle_domains,
    sum_counts,
)

DOMAINS, MAILBOXES = "domains", "mailboxes"  # stages, and folders of the scratch folder
MAX_OWNERS = 50  # owners with the most rows that the report of a shard names
ROWS = pa.schema([field for field in SCHEMA if field.name not in ("extra",)])
CACHE: dict[tuple[bytes, int], LocalBackend] = {}
CACHED_BACKENDS = 4
LOCK = threading.Lock()


def backend_of(job: StageJob) -> LocalBackend:
    """The backend of this process for the job: all its tasks share sockets, caches and the pace of the resolver."""
    key = (job.backend, job.slots)
    with LOCK:
        if key not in CACHE:
            if len(CACHE) >= CACHED_BACKENDS:
                CACHE.pop(next(iter(CACHE)))
            given: LocalBackend = pickle.loads(job.backend)  # noqa: S301 - written by the calling process
            settings = options_of(given.settings)
            for name in ("dns_concurrency", "max_sessions"):
                settings[name] = max(1, settings[name] // job.slots)
            CACHE[key] = type(given)(clock=given.clock, **settings)
        return CACHE[key]


def ask_domains(observed: pa.Table, shard: int, job: StageJob) -> str:
    """Ask the DNS about the distinct domains of a shard; `observed` has the schema `OBSERVED`."""
    keys = observed.filter(observed["domain"].is_valid())
    rows = keys.group_by("domain").aggregate([("rows", "sum")])
    domains = rows["domain"].combine_chunks()
    job.required_scratch.note_keys(DOMAINS, shard, len(domains))
    earlier = job.required_scratch.read(DOMAINS, shard, EVIDENCE)
    known = usable_answers(earlier, temporary_domains, job)
    left = domains.filter(pc.invert(pc.is_in(domains, value_set=known["domain"].combine_chunks())))
    counts = sum_counts(observed["counts"].drop_null().to_pylist())
    report: dict[str, Any] = {"keys": len(domains), "asked": len(left), "counts": counts}
    try:
        report["notices"] = run_sync(write_domains(left, shard, job)) if len(left) else []
    except MailVerdictError as exc:
        return dump_json({**report, "error": [type(exc).__name__, str(exc)]})
    evidence = job.required_scratch.read(DOMAINS, shard, EVIDENCE)
    job.required_scratch.compact(DOMAINS, shard, evidence)
    at = pc.index_in(domains, value_set=evidence["domain"].combine_chunks())
    if at.null_count:
        raise RuntimeError(f"{at.null_count:,} domains of shard {shard} have no evidence in the scratch folder")
    return dump_json({**report, **describe_domains(evidence.take(at), rows["rows_sum"].to_pylist(), job)})


def temporary_domains(known: pa.Table, job: StageJob) -> pa.BooleanArray:
    """Which domains an earlier call asked about and this one asks again: nothing was established, or by `refresh`."""
    if not job.refresh:
        return is_temporary(known)
    results = settle_domains(known, domain_type(job))["result"].cast(pa.string())
    return pc.or_(is_temporary(known), pc.is_in(results, value_set=pa.array(sorted(job.refresh), pa.string())))


def domain_type(job: StageJob) -> ValidationType:
    """The type by which domains are judged before mailboxes are."""
    return ValidationType.MX if job.key_kind == "address" else job.validation_type


async def write_domains(domains: pa.StringArray, shard: int, job: StageJob) -> list[str]:
    """Ask about the domains and write the evidence; returns the notices."""
    backend, names = backend_of(job), domains.to_pylist()
    kind = domain_type(job)
    await backend.domains.require_resolver()
    groups = gather_groups(backend.domains.observe(names, kind))
    async with PieceWriter(job.required_scratch, DOMAINS, shard) as writer, aclosing(groups):  # type: ignore[type-var]
        async for group in groups:
            seen = ((names[code], dns, blacklist) for code, dns, blacklist in group)
            await writer.add(evidence_table(seen, backend.clock()))
    return backend.domains.take_notices()


def usable_answers(
    known: pa.Table, are_temporary: Callable[[pa.Table, StageJob], pa.BooleanArray], job: StageJob
) -> pa.Table:
    """The rows that this call may use: its own, and earlier ones that are neither too old nor temporary."""
    oldest = job.began_at - timedelta(seconds=min(job.max_age, 1e9))
    checked = known["checked_at"]
    is_own = pc.greater_equal(checked, pa.scalar(job.began_at, checked.type))
    is_recent = pc.greater_equal(checked, pa.scalar(oldest, checked.type))
    is_final = pc.invert(pc.fill_null(are_temporary(known, job), True))
    return known.filter(pc.or_(is_own, pc.and_(is_recent, is_final)))


def describe_domains(evidence: pa.Table, rows: Sequence[int], job: StageJob) -> dict[str, Any]:
    """The causes of missing verdicts, by rows; organisations that share a domain; the largest owners."""
    answers = settle_domains(evidence, domain_type(job)).select(["result", "reasons", "error"]).to_pydict()
    causes: Counter[str] = Counter()
    for result, reasons, error, count in zip(*answers.values(), rows, strict=True):
        causes[cause_of(Status.DONE, result or "", reasons or "", error or "")] += count
    found: dict[str, Any] = {"causes": causes}
    if job.key_kind == "address":
        owners: Counter[str] = Counter()
        shared: set[tuple[str, ...]] = set()
        for exchanges, count in zip(evidence["exchanges"].to_pylist(), rows, strict=True):
            names = organisations_of(exchanges)
            if names:
                owners[names[0]] += count
            if len(names) > 1:
                shared.add(tuple(sorted(names)))
        found |= {"shared": sorted(shared), "owners": dict(owners.most_common(MAX_OWNERS))}
    return found


def read_domains(shards: Sequence[int], job: StageJob) -> pa.Table:
    """The answers about the domains of some shards."""
    evidence = (job.required_scratch.read(DOMAINS, shard, EVIDENCE) for shard in shards)
    tables = [settle_domains(each, job.validation_type, job.lists_version) for each in evidence]
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


# --- mailboxes ------------------------------------------------------------------------------------------------------


class KnownDomains(DomainStage):
    """A DNS stage whose domains were looked up before, by other tasks; hosts are looked up here."""

    def __init__(self, stage: DomainStage, known: Mapping[str, DomainEvidence]) -> None:
        self.settings, self.resolver, self.self_test = stage.settings, stage.resolver, stage.self_test
        self.observer, self.known = stage.observer, known

    async def observe(
        self, domains: Sequence[str], validation_type: ValidationType
    ) -> AsyncIterator[tuple[int, DomainEvidence, BlacklistEvidence | None]]:
        """What is known about each domain."""
        for code, name in enumerate(domains):
            yield code, self.known[name], None


def ask_mailboxes(owned: pa.Table, shard: int, job: StageJob) -> str:
    """Ask the exchanges of a shard about its distinct addresses; `owned` is what `add_owners` returns."""
    keys = owned.filter(owned["address"].is_valid())
    first = keys.group_by("address", use_threads=False).aggregate(
        [(name, "first") for name in ("domain", "outcome", "exchanges", "message")]
    )
    addresses = first["address"].combine_chunks()
    job.required_scratch.note_keys(MAILBOXES, shard, len(addresses))
    earlier = job.required_scratch.read(MAILBOXES, shard, ROWS)
    known = usable_answers(earlier, temporary_rows, job)
    left = first.filter(pc.invert(pc.is_in(addresses, value_set=known["email"].combine_chunks())))
    report: dict[str, Any] = {"keys": len(addresses), "asked": len(left)}
    try:
        report["notices"] = run_sync(write_mailboxes(left, shard, job)) if len(left) else []
    except MailVerdictError as exc:
        return dump_json({**report, "error": [type(exc).__name__, str(exc)]})
    rows = job.required_scratch.read(MAILBOXES, shard, ROWS)
    job.required_scratch.compact(MAILBOXES, shard, rows)
    at = pc.index_in(addresses, value_set=rows["email"].combine_chunks())
    if at.null_count:
        raise RuntimeError(f"{at.null_count:,} addresses of shard {shard} have no row in the scratch folder")
    return dump_json({**report, "causes": count_causes(rows.take(at))})


def temporary_rows(rows: pa.Table, job: StageJob) -> pa.BooleanArray:
    """Which rows of an earlier call are asked again."""
    ages = pa.nulls(len(rows), pa.float64()).fill_null(0.0)
    return pc.invert(reusable(rows, ages, job.refresh, costs_quota=False))


async def write_mailboxes(table: pa.Table, shard: int, job: StageJob) -> list[str]:
    """Ask about the addresses and write the rows; returns the notices."""
    backend = backend_of(job)
    columns = {name: table[f"{name}_first"].to_pylist() for name in ("domain", "outcome", "exchanges", "message")}
    unknown = {"outcome": str(DnsOutcome.UNDETERMINED), "exchanges": "", "message": "", "sources": None}
    known: dict[str, DomainEvidence] = {}
    for values in zip(*columns.values(), strict=True):
        row = {name: value for name, value in zip(columns, values, strict=True) if value is not None}
        if row["domain"] not in known:
            known[row["domain"]] = evidence_of({**unknown, **row})[0]
    addresses = table["address"].combine_chunks()
    observed = await backend.observe_batch(addresses)
    stage = MailboxStage(backend.settings, KnownDomains(backend.domains, known), is_part=True)
    events, notices = stage.settle(observed, backend.clock), []
    async with PieceWriter(job.required_scratch, MAILBOXES, shard) as writer, aclosing(events):
        async for event in events:
            if isinstance(event, Settled):
                await writer.add(event.rows.select(ROWS.names))
            elif isinstance(event, Noticed):
                notices.append(event.message)
    return notices


def read_mailboxes(shards: Sequence[int], job: StageJob) -> pa.Table:
    """The rows of the addresses of some shards."""
    tables = [job.required_scratch.read(MAILBOXES, shard, ROWS) for shard in shards]
    rows = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    return rows.append_column("key", rows["email"])


def merge_reports(reports: Sequence[str]) -> dict[str, Any]:
    """The reports of all shards as one."""
    merged: dict[str, Any] = {"keys": 0, "asked": 0, "causes": Counter(), "notices": [], "errors": [], "shared": []}
    merged |= {"owners": Counter(), "shards": len(reports)}
    counts = []
    for text in reports:
        report = json.loads(text)
        merged["keys"] += report["keys"]
        merged["asked"] += report["asked"]
        merged["causes"].update(report.get("causes", {}))
        merged["owners"].update(report.get("owners", {}))
        merged["shared"] += report.get("shared", [])
        merged["notices"] += [each for each in report.get("notices", []) if each not in merged["notices"]]
        merged["errors"] += [report["error"]] if "error" in report else []
        if "counts" in report:
            counts.append(dump_json(report["counts"]))
    merged["counts"] = sum_counts(counts)
    return merged
