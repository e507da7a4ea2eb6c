"""The tasks of a call whose workers ask.

Each has a number, and returns a report as JSON text without any address:

    {"keys": 3, "asked": 1, "notices": [], "causes": {"DNS": 2}, "owners": {"google.com": 40}}

`observe_part` writes what a partition has to ask, by the shards of its domains. `ask_domains` asks
the DNS about a shard. For `smtp`, `route_addresses` writes its addresses by the owners of their
exchanges, and `ask_mailboxes` asks all mail servers of some owners. A task that asks reads what the
scratch folder has about its shard first, asks only for the rest, and writes what settles
(`ask_rest`). `write_answers` writes answers by partition, where partitions keep their numbers. The
calling process adds the reports up (`merge_reports`).
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
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..backend import Noticed, Settled
from ..errors import MailVerdictError
from ..local.backend import LocalBackend
from ..local.domains import DomainStage, Seen, gather_groups
from ..local.smtp.stage import MailboxStage
from ..loop import run_sync
from ..model.evidence import DnsOutcome, DomainEvidence
from ..model.table import SCHEMA, dump_json
from ..model.words import Status, ValidationType
from ..runs.endings import cause_of, count_causes
from ..runs.retry import reusable
from .scratch import PieceWriter, Shards, rows_of_keys
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

# Stages, and folders of the scratch folder.
DOMAINS = "domains"
MAILBOXES = "mailboxes"
MAX_OWNERS = 50  # owners with the most rows that the report of a shard names
ROWS = pa.schema([column for column in SCHEMA if column.name != "extra"])
ROUTED = pa.schema(
    [*OBSERVED, *[EVIDENCE.field(name) for name in ("outcome", "exchanges", "message")]]
)
SEEN = ("domain", "outcome", "exchanges", "message")  # of an address, from earlier tasks
# Which rows of the scratch folder are asked about again.
AreTemporary = Callable[[pa.Table, StageJob], pa.BooleanArray]
# Asks about the keys that are marked, and writes what settles; returns notices.
Ask = Callable[[pa.BooleanArray], Coroutine[Any, Any, list[str]]]
CACHE: dict[tuple[bytes, int], LocalBackend] = {}
CACHED_BACKENDS = 4
LOCK = threading.Lock()


def backend_of(job: StageJob) -> LocalBackend:
    """The backend of this process for the job: its tasks share sockets, caches and the pace."""
    key = (job.backend, job.slots)
    with LOCK:
        if key not in CACHE:
            if len(CACHE) >= CACHED_BACKENDS:
                CACHE.pop(next(iter(CACHE)))
            # Written by the calling process.
            given: LocalBackend = pickle.loads(job.backend)  # noqa: S301
            settings = replace(
                given.settings,
                dns_concurrency=max(1, given.settings.dns_concurrency // job.slots),
                max_sessions=max(1, given.settings.max_sessions // job.slots),
            )
            CACHE[key] = type(given).from_settings(settings, clock=given.clock)
        return CACHE[key]


def observe_part(pieces: Iterable[Any], number: int, job: StageJob) -> str:
    """Write what a partition, in one or several pieces, has to ask; returns its counts."""
    counts = []

    def questions() -> Iterator[tuple[pa.Table, Shards]]:
        for piece in pieces:
            table, piece_counts = observe(piece, job)
            counts.append(piece_counts)
            numbers = pa.repeat(pa.scalar(number, pa.int64()), len(table))
            shards = shard_of(table["domain"].combine_chunks(), job.shards)
            yield table.append_column("part", numbers), shards

    job.exchange.write_groups(f"observed/{number}.parquet", OBSERVED, questions())
    return dump_json({"part": number, **sum_counts(counts)})


def read_observed(shard: int, job: StageJob) -> pa.Table:
    """What all partitions have to ask about the domains of a shard."""
    names = [f"observed/{part}.parquet" for part in job.parts]
    return job.exchange.read_groups(names, shard, OBSERVED)


def ask_rest(
    stage: str,
    shard: int,
    job: StageJob,
    keys: pa.StringArray,
    are_temporary: AreTemporary,
    ask: Ask,
) -> tuple[dict[str, Any], pa.Table]:
    """Ask about the keys that have no usable answer in the scratch folder.

    Returns a report, and the answers in the order of the keys. After an error, which is in the
    report, there are no answers.
    """
    scratch = job.required_scratch
    schema = EVIDENCE if stage == DOMAINS else ROWS
    key = schema.names[0]
    scratch.note_keys(stage, shard, len(keys))
    known = usable_answers(scratch.read(stage, shard, schema), are_temporary, job)
    is_left = rows_of_keys(keys, known, key).is_null()
    count = is_left.true_count
    report: dict[str, Any] = {"keys": len(keys), "asked": count, "notices": []}
    try:
        if count:
            report["notices"] = run_sync(ask(is_left))
    except MailVerdictError as exc:
        report["error"] = [type(exc).__name__, str(exc)]
        return report, schema.empty_table()
    answers = scratch.read(stage, shard, schema)
    scratch.compact(stage, shard, answers)
    index = rows_of_keys(keys, answers, key)
    if index.null_count:
        raise RuntimeError(
            f"{index.null_count:,} {stage} of shard {shard} have no answer in the folder"
        )
    return report, answers.take(index)


def ask_domains(shard: int, job: StageJob) -> str:
    """Ask the DNS about the distinct domains of a shard."""
    by_domain = read_observed(shard, job).group_by("domain")
    rows = by_domain.aggregate([("rows", "sum")])
    domains = rows["domain"].combine_chunks()

    def ask(is_left: pa.BooleanArray) -> Coroutine[Any, Any, list[str]]:
        return write_domains(domains.filter(is_left), shard, job)

    report, evidence = ask_rest(DOMAINS, shard, job, domains, temporary_domains, ask)
    if "error" not in report:
        report |= describe_domains(evidence, rows["rows_sum"].to_pylist(), job)
    return dump_json(report)


def temporary_domains(known: pa.Table, job: StageJob) -> pa.BooleanArray:
    """Which domains are asked again: an earlier call established nothing, or by `refresh`."""
    if not job.refresh:
        return is_temporary(known)
    verdicts = pa.array(sorted(job.refresh), pa.string())
    results = settle_domains(known, domain_type(job))["result"]
    is_refreshed = pc.is_in(results.cast(pa.string()), value_set=verdicts)
    return pc.or_(is_temporary(known), is_refreshed)


def domain_type(job: StageJob) -> ValidationType:
    """The type by which domains are judged before mailboxes are."""
    return ValidationType.MX if job.key_kind == "address" else job.validation_type


async def write_domains(domains: pa.StringArray, shard: int, job: StageJob) -> list[str]:
    """Ask about the domains and write the evidence; returns the notices."""
    backend = backend_of(job)
    names = domains.to_pylist()
    await backend.domains.require_resolver()
    groups = gather_groups(backend.domains.observe(names, domain_type(job)))
    writing = PieceWriter(job.required_scratch, DOMAINS, shard)
    async with writing as writer, aclosing(groups):  # type: ignore[type-var]
        async for group in groups:
            seen = [(names[code], dns, blacklist) for code, dns, blacklist in group]
            await writer.add(evidence_table(seen, backend.clock()))
    return backend.domains.take_notices()


def usable_answers(known: pa.Table, are_temporary: AreTemporary, job: StageJob) -> pa.Table:
    """The rows that this call may use: its own, and earlier ones that are recent and final."""
    checked = known["checked_at"]
    began = pa.scalar(job.began_at, checked.type)
    max_age = timedelta(seconds=min(job.max_age, 1e9))
    oldest = pa.scalar(job.began_at - max_age, checked.type)
    is_of_this_call = pc.greater_equal(checked, began)
    is_recent = pc.greater_equal(checked, oldest)
    is_temporary_row = pc.fill_null(are_temporary(known, job), True)
    is_reused = pc.and_(is_recent, pc.invert(is_temporary_row))
    return known.filter(pc.or_(is_of_this_call, is_reused))


def describe_domains(evidence: pa.Table, rows: Sequence[int], job: StageJob) -> dict[str, Any]:
    """The causes of missing verdicts, by rows; organisations that share a domain; large owners."""
    answers = settle_domains(evidence, domain_type(job)).to_pylist()
    causes: Counter[str] = Counter()
    for answer, count in zip(answers, rows, strict=True):
        result = answer["result"] or ""
        reasons = answer["reasons"] or ""
        error = answer["error"] or ""
        causes[cause_of(Status.DONE, result, reasons, error)] += count
    if job.key_kind != "address":
        return {"causes": causes}
    owners: Counter[str] = Counter()
    shared: set[tuple[str, ...]] = set()
    for exchanges, count in zip(evidence["exchanges"].to_pylist(), rows, strict=True):
        names = organisations_of(exchanges)
        if names:
            owners[names[0]] += count
        if len(names) > 1:
            shared.add(tuple(sorted(names)))
    largest = dict(owners.most_common(MAX_OWNERS))
    return {"causes": causes, "shared": sorted(shared), "owners": largest}


# --- mailboxes -------------------------------------------------------------------------------


class KnownDomains(DomainStage):
    """A DNS stage whose domains were looked up before, by other tasks; hosts are looked up here."""

    def __init__(self, stage: DomainStage, known: Mapping[str, DomainEvidence]) -> None:
        self.settings = stage.settings
        self.resolver = stage.resolver
        self.self_test = stage.self_test
        self.observer = stage.observer
        self.known = known

    async def observe(
        self, domains: Sequence[str], validation_type: ValidationType
    ) -> AsyncIterator[Seen]:
        """What is known about each domain."""
        for code, name in enumerate(domains):
            yield Seen(code, self.known[name])


def route_addresses(shard: int, job: StageJob) -> str:
    """Write the addresses of a shard, with evidence, by the owners of their exchanges."""
    evidence = job.required_scratch.read(DOMAINS, shard, EVIDENCE)
    routed = add_owners(read_observed(shard, job), evidence, job.routing)
    job.exchange.write_groups(f"routed/{shard}.parquet", ROUTED, [routed])
    return dump_json({})


def read_routed(shard: int, job: StageJob) -> pa.Table:
    """The addresses whose exchanges a task asks."""
    names = [f"routed/{number}.parquet" for number in range(job.shards)]
    return job.exchange.read_groups(names, shard, ROUTED)


def ask_mailboxes(shard: int, job: StageJob) -> str:
    """Ask the exchanges of a shard about its distinct addresses."""
    by_address = read_routed(shard, job).group_by("address", use_threads=False)
    first = by_address.aggregate([(name, "first") for name in SEEN])
    addresses = first["address"].combine_chunks()

    def ask(is_left: pa.BooleanArray) -> Coroutine[Any, Any, list[str]]:
        return write_mailboxes(first.filter(is_left), shard, job)

    report, rows = ask_rest(MAILBOXES, shard, job, addresses, temporary_rows, ask)
    return dump_json({**report, "causes": count_causes(rows)})


def temporary_rows(rows: pa.Table, job: StageJob) -> pa.BooleanArray:
    """Which rows of an earlier call are asked again."""
    ages = pa.nulls(len(rows), pa.float64()).fill_null(0.0)
    is_reused = reusable(rows, ages, job.refresh, costs_quota=False)
    return pc.invert(is_reused)


async def write_mailboxes(table: pa.Table, shard: int, job: StageJob) -> list[str]:
    """Ask about the addresses and write the rows; returns the notices."""
    backend = backend_of(job)
    known = known_domains(table)
    observed = await backend.observe_batch(table["address"].combine_chunks())
    domains = KnownDomains(backend.domains, known)
    stage = MailboxStage(backend.settings, domains, is_part=True)
    events = stage.settle(observed, backend.clock)
    notices = []
    writing = PieceWriter(job.required_scratch, MAILBOXES, shard)
    async with writing as writer, aclosing(events):
        async for event in events:
            if isinstance(event, Settled):
                await writer.add(event.rows.select(ROWS.names))
            elif isinstance(event, Noticed):
                notices.append(event.message)
    return notices


def known_domains(table: pa.Table) -> dict[str, DomainEvidence]:
    """The evidence about the domain of each address; undetermined where there is none."""
    columns = [table[f"{name}_first"].to_pylist() for name in SEEN]
    known: dict[str, DomainEvidence] = {}
    for domain, outcome, exchanges, message in zip(*columns, strict=True):
        if domain not in known:
            row = {
                "domain": domain,
                "outcome": outcome or str(DnsOutcome.UNDETERMINED),
                "exchanges": exchanges or "",
                "message": message or "",
                "sources": None,
            }
            known[domain], _ = evidence_of(row)
    return known


# --- answers ---------------------------------------------------------------------------------


def read_answers(shard: int, job: StageJob) -> pa.Table:
    """The answers of a shard, with their `key`."""
    if job.key_kind == "domain":
        evidence = job.required_scratch.read(DOMAINS, shard, EVIDENCE)
        return settle_domains(evidence, job.validation_type, job.lists_version)
    rows = job.required_scratch.read(MAILBOXES, shard, ROWS)
    return rows.append_column("key", rows["email"])


def answer_schema(job: StageJob) -> pa.Schema:
    """The answers that a partition reads."""
    fields = [SCHEMA.field(name) for name in job.answer_fields()]
    return pa.schema([("key", pa.string()), *fields])


def write_answers(shard: int, job: StageJob) -> str:
    """Write the answers of a shard by the partitions that asked for them."""
    if job.key_kind == "domain":
        asked = read_observed(shard, job)
        keys = asked["domain"].combine_chunks()
    else:
        asked = read_routed(shard, job)
        keys = asked["address"].combine_chunks()
    answers = read_answers(shard, job)
    index = rows_of_keys(keys, answers, "key")
    parts = asked["part"].to_numpy()
    piece = (answers.take(index), parts)
    job.exchange.write_groups(f"answers/{shard}.parquet", answer_schema(job), [piece])
    return dump_json({})


def read_part_answers(number: int, job: StageJob) -> pa.Table:
    """The answers for a partition."""
    names = [f"answers/{shard}.parquet" for shard in range(job.answering)]
    return job.exchange.read_groups(names, number, answer_schema(job))


@dataclass
class StageReport:
    """What all tasks of a stage report together."""

    shards: int
    keys: int = 0
    asked: int = 0  # of the keys; the folder had the others
    causes: Counter[str] = field(default_factory=Counter)  # of missing verdicts, by rows
    owners: Counter[str] = field(default_factory=Counter)  # rows of the largest ones
    shared: list[list[str]] = field(default_factory=list)  # organisations of one domain
    notices: list[str] = field(default_factory=list)
    errors: list[list[str]] = field(default_factory=list)  # type and message


def merge_reports(reports: Sequence[str]) -> StageReport:
    merged = StageReport(len(reports))
    for text in reports:
        report = json.loads(text)
        merged.keys += report["keys"]
        merged.asked += report["asked"]
        merged.causes.update(report.get("causes", {}))
        merged.owners.update(report.get("owners", {}))
        merged.shared += report.get("shared", [])
        for notice in report.get("notices", []):
            if notice not in merged.notices:
                merged.notices.append(notice)
        if "error" in report:
            merged.errors.append(report["error"])
    return merged
