"""The tasks of a call whose workers ask. Each has a number, and returns a report as JSON text without any address.

`observe_part` writes what a partition has to ask, by the shards of its domains. `ask_domains` asks the DNS about a
shard. For `smtp`, `route_addresses` writes its addresses by the owners of their exchanges, and `ask_mailboxes` asks all
mail servers of some owners. A task that asks reads what the scratch folder has about its shard first, asks only for the
rest, and writes what settles. `write_answers` writes answers by partition, where partitions keep their numbers.
"""

from __future__ import annotations

import json
import pickle
import threading
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import numpy as np
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
from .scratch import PieceWriter, Shards
from .stages import (
    EVIDENCE,
    OBSERVED,
    StageJob,
    add_owners,
    evidence_of,
    evidence_table,
    is_temporary,
    observe,
    organisations_of,
    settle_domains,
    shard_of,
    sum_counts,
)

DOMAINS, MAILBOXES = "domains", "mailboxes"  # stages, and folders of the scratch folder
MAX_OWNERS = 50  # owners with the most rows that the report of a shard names
ROWS = pa.schema([field for field in SCHEMA if field.name not in ("extra",)])
ROUTED = pa.schema(
    [*OBSERVED, *(EVIDENCE.field(name) for name in ("outcome", "exchanges", "message"))]
)
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


def observe_part(pieces: Iterable[Any], number: int, job: StageJob) -> str:
    """Write what the rows of a partition, in one or several pieces, have to ask; returns their counts."""
    counts = []

    def asked() -> Iterator[tuple[pa.Table, Shards]]:
        for piece in pieces:
            table, counted = observe(piece, job)
            counts.append(counted)
            numbers = pa.array(np.full(len(table), number, np.int64))
            yield (
                table.append_column("part", numbers),
                shard_of(table["domain"].combine_chunks(), job.shards),
            )

    job.exchange.write_groups(f"observed/{number}.parquet", OBSERVED, asked())
    return dump_json({"part": number, **sum_counts(counts)})


def read_observed(shard: int, job: StageJob) -> pa.Table:
    """What all partitions have to ask about the domains of a shard."""
    return job.exchange.read_groups(
        (f"observed/{part}.parquet" for part in job.parts), shard, OBSERVED
    )


def ask_rest(
    stage: str,
    shard: int,
    job: StageJob,
    keys: pa.StringArray,
    are_temporary: Callable[[pa.Table, StageJob], pa.BooleanArray],
    ask: Callable[[pa.BooleanArray], Coroutine[Any, Any, list[str]]],
) -> tuple[dict[str, Any], pa.Table]:
    """Ask about the keys that have no usable answer in the scratch folder; a report, and the answers in their order.

    After an error, which is in the report, there are no answers.
    """
    scratch, schema = job.required_scratch, EVIDENCE if stage == DOMAINS else ROWS
    scratch.note_keys(stage, shard, len(keys))
    known = usable_answers(scratch.read(stage, shard, schema), are_temporary, job)
    is_left = pc.invert(pc.is_in(keys, value_set=known.column(0).combine_chunks()))
    report: dict[str, Any] = {"keys": len(keys), "asked": is_left.true_count}
    try:
        report["notices"] = run_sync(ask(is_left)) if is_left.true_count else []
    except MailVerdictError as exc:
        return {**report, "error": [type(exc).__name__, str(exc)]}, schema.empty_table()
    answers = scratch.read(stage, shard, schema)
    scratch.compact(stage, shard, answers)
    at = pc.index_in(keys, value_set=answers.column(0).combine_chunks())
    if at.null_count:
        raise RuntimeError(
            f"{at.null_count:,} {stage} of shard {shard} have no answer in the scratch folder"
        )
    return report, answers.take(at)


def ask_domains(shard: int, job: StageJob) -> str:
    """Ask the DNS about the distinct domains of a shard."""
    rows = read_observed(shard, job).group_by("domain").aggregate([("rows", "sum")])
    domains = rows["domain"].combine_chunks()
    report, evidence = ask_rest(
        DOMAINS,
        shard,
        job,
        domains,
        temporary_domains,
        lambda left: write_domains(domains.filter(left), shard, job),
    )
    if "error" in report:
        return dump_json(report)
    return dump_json({**report, **describe_domains(evidence, rows["rows_sum"].to_pylist(), job)})


def temporary_domains(known: pa.Table, job: StageJob) -> pa.BooleanArray:
    """Which domains an earlier call asked about and this one asks again: nothing was established, or by `refresh`."""
    if not job.refresh:
        return is_temporary(known)
    results = settle_domains(known, domain_type(job))["result"].cast(pa.string())
    return pc.or_(
        is_temporary(known), pc.is_in(results, value_set=pa.array(sorted(job.refresh), pa.string()))
    )


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
    answers = (
        settle_domains(evidence, domain_type(job))
        .select(["result", "reasons", "error"])
        .to_pydict()
    )
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


# --- mailboxes ------------------------------------------------------------------------------------------------------


class KnownDomains(DomainStage):
    """A DNS stage whose domains were looked up before, by other tasks; hosts are looked up here."""

    def __init__(self, stage: DomainStage, known: Mapping[str, DomainEvidence]) -> None:
        self.settings, self.resolver, self.self_test = (
            stage.settings,
            stage.resolver,
            stage.self_test,
        )
        self.observer, self.known = stage.observer, known

    async def observe(
        self, domains: Sequence[str], validation_type: ValidationType
    ) -> AsyncIterator[tuple[int, DomainEvidence, BlacklistEvidence | None]]:
        """What is known about each domain."""
        for code, name in enumerate(domains):
            yield code, self.known[name], None


def route_addresses(shard: int, job: StageJob) -> str:
    """Write the addresses of a shard, with the evidence about their domains, by the owners of their exchanges."""
    evidence = job.required_scratch.read(DOMAINS, shard, EVIDENCE)
    routed = add_owners(read_observed(shard, job), evidence, job.routing)
    job.exchange.write_groups(f"routed/{shard}.parquet", ROUTED, [routed])
    return dump_json({})


def read_routed(shard: int, job: StageJob) -> pa.Table:
    """The addresses whose exchanges a task asks."""
    return job.exchange.read_groups(
        (f"routed/{domains}.parquet" for domains in range(job.shards)), shard, ROUTED
    )


def ask_mailboxes(shard: int, job: StageJob) -> str:
    """Ask the exchanges of a shard about its distinct addresses."""
    first = (
        read_routed(shard, job)
        .group_by("address", use_threads=False)
        .aggregate([(name, "first") for name in ("domain", "outcome", "exchanges", "message")])
    )
    addresses = first["address"].combine_chunks()
    report, rows = ask_rest(
        MAILBOXES,
        shard,
        job,
        addresses,
        temporary_rows,
        lambda left: write_mailboxes(first.filter(left), shard, job),
    )
    return dump_json({**report, "causes": count_causes(rows)})


def temporary_rows(rows: pa.Table, job: StageJob) -> pa.BooleanArray:
    """Which rows of an earlier call are asked again."""
    ages = pa.nulls(len(rows), pa.float64()).fill_null(0.0)
    return pc.invert(reusable(rows, ages, job.refresh, costs_quota=False))


async def write_mailboxes(table: pa.Table, shard: int, job: StageJob) -> list[str]:
    """Ask about the addresses and write the rows; returns the notices."""
    backend = backend_of(job)
    columns = {
        name: table[f"{name}_first"].to_pylist()
        for name in ("domain", "outcome", "exchanges", "message")
    }
    unknown = {
        "outcome": str(DnsOutcome.UNDETERMINED),
        "exchanges": "",
        "message": "",
        "sources": None,
    }
    known: dict[str, DomainEvidence] = {}
    for values in zip(*columns.values(), strict=True):
        row = {
            name: value for name, value in zip(columns, values, strict=True) if value is not None
        }
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


# --- answers --------------------------------------------------------------------------------------------------------


def read_answers(shard: int, job: StageJob) -> pa.Table:
    """The answers of a shard, with their `key`."""
    if job.key_kind == "domain":
        evidence = job.required_scratch.read(DOMAINS, shard, EVIDENCE)
        return settle_domains(evidence, job.validation_type, job.lists_version)
    rows = job.required_scratch.read(MAILBOXES, shard, ROWS)
    return rows.append_column("key", rows["email"])


def answer_schema(job: StageJob) -> pa.Schema:
    """The answers that a partition reads."""
    return pa.schema([("key", pa.string()), *(SCHEMA.field(name) for name in job.answer_fields())])


def write_answers(shard: int, job: StageJob) -> str:
    """Write the answers of a shard by the partitions that asked for them."""
    is_domain = job.key_kind == "domain"
    asked = read_observed(shard, job) if is_domain else read_routed(shard, job)
    answers = read_answers(shard, job)
    keys = asked["domain" if is_domain else "address"].combine_chunks()
    taken = answers.take(pc.index_in(keys, value_set=answers["key"].combine_chunks()))
    job.exchange.write_groups(
        f"answers/{shard}.parquet", answer_schema(job), [(taken, asked["part"].to_numpy())]
    )
    return dump_json({})


def read_part_answers(number: int, job: StageJob) -> pa.Table:
    """The answers for a partition."""
    return job.exchange.read_groups(
        (f"answers/{shard}.parquet" for shard in range(job.answering)), number, answer_schema(job)
    )


def merge_reports(reports: Sequence[str]) -> dict[str, Any]:
    """The reports of all shards as one."""
    merged: dict[str, Any] = {
        "keys": 0,
        "asked": 0,
        "causes": Counter(),
        "notices": [],
        "errors": [],
        "shared": [],
    }
    merged |= {"owners": Counter(), "shards": len(reports)}
    for text in reports:
        report = json.loads(text)
        merged["keys"] += report["keys"]
        merged["asked"] += report["asked"]
        merged["causes"].update(report.get("causes", {}))
        merged["owners"].update(report.get("owners", {}))
        merged["shared"] += report.get("shared", [])
        merged["notices"] += [
            each for each in report.get("notices", []) if each not in merged["notices"]
        ]
        merged["errors"] += [report["error"]] if "error" in report else []
    return merged
