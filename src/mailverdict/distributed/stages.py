"""The stages of a distributed call as pure functions: Arrow tables in, Arrow tables out.

    a partition        ada@web.de, bo@gone.example, ada@web.de, (empty)
    observe            address ada@web.de, domain web.de, rows 2; ...        what has to be asked
    settle_domains     gone.example: NXDOMAIN -> key gone.example, invalid   by evidence of tasks
    add_owners         ada@web.de -> mx.web.de -> owner web.de -> shard 3    which task asks
    attach             the partition with its result columns, answers taken by their key

None of them uses the network.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.lists.flags import load_lists
from ..checks.lists.suffixes import registered_domain
from ..checks.syntax.column import normal_forms, observe_column
from ..frames.reading import (
    MISSING,
    SEVERAL,
    Reading,
    count_standing,
    describe_columns,
    number_answers,
    read_addresses,
)
from ..frames.verify import describe_origin, read_frame, tables_of
from ..local.batch import (
    Positions,
    constant,
    decision_columns,
    evidence_metadata,
    observe_batch,
)
from ..model.arrow import Codes, texts_where
from ..model.evidence import (
    BlacklistEvidence,
    DnsOutcome,
    DomainEvidence,
    Evidence,
    MailExchange,
    SyntaxEvidence,
)
from ..model.settings import Lists
from ..model.table import SCHEMA, SOURCE_LOCAL, complete_table, dump_json
from ..model.words import Status, ValidationType
from ..runs.execution import unique_addresses
from ..runs.options import Options
from ..table.columns import Column
from ..table.options import ColumnChoice, each_column
from ..table.overwrite import result_labels
from ..table.result_columns import plan_results
from ..verdicts import settle
from .scratch import Scratch, Shards, concat, rows_of_keys

# What a partition has to ask: a row per distinct domain or address.
OBSERVED = pa.schema(
    [
        ("part", pa.int64()),
        ("address", pa.string()),  # null where answers belong to a domain
        ("domain", pa.string()),  # lower case, in A-labels
        ("rows", pa.int64()),
    ]
)
# What the DNS and the blacklists say about a domain.
EVIDENCE = pa.schema(
    [
        ("domain", pa.string()),
        ("outcome", pa.string()),
        ("exchanges", pa.string()),  # "10 mx.example;20 mx2.example", lowest preference first
        ("message", pa.string()),
        ("listed", pa.bool_()),
        ("listing", pa.string()),  # which exchange on which blacklist
        ("sources", pa.string()),  # blacklists that were asked, joined by ";"; null: not asked
        ("checked_at", pa.timestamp("us", tz="UTC")),
    ]
)
# The fields of a row that follow from its domain alone; the others follow from its address, or from
# lists.
ANSWERED = ("result", "reasons", "error", "errors", "checks", "metadata", "checked_at", "source")
ANSWERS = pa.schema([("key", pa.string()), *[SCHEMA.field(name) for name in ANSWERED]])
EPOCH = datetime.fromtimestamp(0, UTC)
OK = SyntaxEvidence(ok=True)
COUNTS = ("rows", "missing", "malformed", "texts", "several")


@dataclass(frozen=True)
class Routing:
    """Which task asks the exchanges of which owner; decided once the exchanges are known."""

    shards: int = 1
    # Organisations asked together with another: its name.
    owners: Mapping[str, str] = field(default_factory=dict)
    # Shards of the owners with the most rows.
    placed: Mapping[str, int] = field(default_factory=dict)
    others: Sequence[int] = (0,)  # shards among which all other owners are hashed

    def shard_of(self, owners: pa.StringArray) -> Shards:
        """The shard of each organisation, by its distinct names."""
        names = [self.owners.get(name, name) for name in owners.to_pylist()]
        hashes = shard_of(pa.array(names, pa.string()), len(self.others))
        shards = []
        for name, number in zip(names, hashes.tolist(), strict=True):
            shards.append(self.placed.get(name, self.others[number]))
        return np.array(shards, np.int64)


# What the key of an answer is: a row, which each partition verifies where it is; a text, about
# which the calling process asks; an address or a domain, about which tasks ask.
KeyKind = Literal["row", "text", "address", "domain"]


@dataclass(frozen=True)
class StageJob:
    """All that a task needs to know about the call; sent to every worker."""

    column: ColumnChoice | None
    options: Options  # of reading cells and showing results; without a backend
    validation_type: ValidationType
    key_kind: KeyKind
    backend: bytes  # the pickled backend; empty if only the calling process asks
    source: str = SOURCE_LOCAL
    lists: Lists = field(default_factory=Lists)
    lists_version: str | None = None  # of the calling process; None if its lists are not used
    columns: Sequence[Column] = ()  # the result columns of all verified columns, each once
    scratch: Scratch | None = None  # None: no task asks
    # The folder below it in which the tasks of this call give tables to each other.
    call: str = "call"
    parts: Sequence[int] = ()  # the numbers of the partitions, once they are observed
    shards: int = 1
    slots: int = 1  # tasks that may run at once, among which the limits are divided
    began_at: datetime = EPOCH
    max_age: float = 0.0  # seconds
    refresh: frozenset[str] = frozenset()
    routing: Routing = field(default_factory=Routing)

    @property
    def is_free(self) -> bool:
        """Whether each partition is verified where it is."""
        return self.key_kind == "row"

    @property
    def required_scratch(self) -> Scratch:
        """The scratch folder of a call whose tasks ask."""
        assert self.scratch is not None
        return self.scratch

    @property
    def exchange(self) -> Scratch:
        """The folder in which the tasks of this call give tables to each other."""
        return self.required_scratch.below(self.call)

    @property
    def answering(self) -> int:
        """How many tasks have the answers: those that asked last."""
        return self.routing.shards if self.key_kind == "address" else self.shards

    def fields(self) -> list[str]:
        """The fields of the table of results that the result columns are made from."""
        names = ["status"]
        for column in self.columns:
            names += column.fields
        return list(dict.fromkeys(names))

    def answer_fields(self) -> list[str]:
        """Those of them that answers bring."""
        if self.key_kind != "domain":
            return self.fields()
        return [name for name in self.fields() if name in ANSWERED]


# --- the rows of a partition -----------------------------------------------------------------


def needed_labels(labels: Iterable[Any], job: StageJob) -> list[Any]:
    """Which columns are read before anything is asked: those to verify, and those to replace."""
    needed: set[Any] = set()
    for column in each_column(job.column):
        needed.add(column)
        needed.update(result_labels(column, job.options.prefix))
    return [label for label in labels if label in needed]


def read_rows(part: Any, job: StageJob) -> pa.RecordBatch:
    """The verified columns of a partition.

    An error if a result column would replace one of the caller's: a frame shows only its names
    before it is read, and after the answers are paid for it is too late.
    """
    tables = tables_of(part, job.column)
    results = plan_results(tables, job.column, job.options)
    kept = [result.kept for result in results]
    columns = [table.values() for table in tables]
    return read_addresses(columns, clean=job.options.clean, kept=kept)


def read_distinct(part: Any, job: StageJob) -> pa.StringArray:
    """The distinct texts of the verified columns of a partition."""
    texts, _ = number_answers(read_rows(part, job), is_free=False)
    return texts


def observe(part: Any, job: StageJob) -> tuple[pa.Table, dict[str, Any]]:
    """What has to be asked about a partition, as `address`, `domain` and `rows`; and its counts."""
    read = read_rows(part, job)
    syntax = observe_column(read["text"], threads=1, lenient=job.options.clean)
    addresses, domains, rows = distinct_keys(syntax, job)
    counts = pa.array(rows, pa.int64())
    asked = pa.table({"address": addresses, "domain": domains, "rows": counts})
    return asked, count_rows(read, syntax, job)


def keys_and_counts(part: Any, job: StageJob) -> pa.Table:
    """What a plan counts: the distinct addresses of a partition, and in the last row its counts."""
    asked, counts = observe(part, replace(job, key_kind="address"))
    keys = asked.select(["address", "domain"])
    last = pa.table({"counts": [dump_json(counts)]})
    return pa.concat_tables([keys, last], promote_options="default")


def distinct_keys(
    syntax: pa.RecordBatch, job: StageJob
) -> tuple[pa.StringArray, pa.StringArray, Shards]:
    """The distinct addresses, or null where answers belong to domains; their domains and rows."""
    accepted = syntax.filter(syntax["well_formed"])
    names = accepted["domain"].dictionary
    codes = accepted["domain"].indices
    if job.key_kind != "address":
        rows = np.bincount(codes.to_numpy(), minlength=len(names))
        return pa.nulls(len(names), pa.string()), names, rows
    addresses, address_of_row = unique_addresses(accepted["text"])
    first_row = np.zeros(len(addresses), np.int64)
    backwards = np.arange(len(address_of_row))[::-1]  # the first row of an address is written last
    first_row[address_of_row[backwards]] = backwards
    domains = names.take(codes.take(pa.array(first_row)))
    return addresses, domains, np.bincount(address_of_row, minlength=len(addresses))


def count_rows(read: pa.RecordBatch, syntax: pa.RecordBatch, job: StageJob) -> dict[str, Any]:
    """How many rows a partition has, of which kinds, and what to warn of."""
    missing = count_standing(read, MISSING)
    return {
        "rows": len(read),
        "missing": missing,
        "malformed": syntax["well_formed"].false_count - missing,
        "texts": len(read) - missing,
        "several": count_standing(read, SEVERAL),
        "notices": describe_columns(read, job.column),
    }


def read_part(part: Any, job: StageJob, extra: Sequence[Column] = ()) -> Reading:
    """Read the verified columns of a partition, and name its result columns, with `extra` ones."""
    note = describe_origin(job.validation_type, job.source, lists=job.lists_version)
    return read_frame(part, job.column, job.options, note, is_free=job.is_free, extra=extra)


def attach(part: Any, job: StageJob, answers: pa.Table | None, extra: Sequence[Column] = ()) -> Any:
    """A partition with its result columns, of its own kind.

    `answers` have the column `key`, a domain or an address, each once; None: there are none yet.
    """
    frame = read_part(part, job, extra)
    return frame(settle_texts(frame.asked, job, answers))


def settle_texts(texts: pa.StringArray, job: StageJob, answers: pa.Table | None) -> pa.Table:
    """A row in the schema of results for each text; one without an answer is pending.

    A pending row has in `email` the key of the answer that it waits for; in the others `email` is
    null.
    """
    syntax = observe_column(texts, threads=1, lenient=job.options.clean)
    batch = observe_batch(texts, load_lists(job.lists), syntax)
    if job.is_free:
        return batch.regex_rows(datetime.now(UTC))
    if answers is None:
        answers = ANSWERS.empty_table()
    columns = {"normalized": normal_forms(syntax)}
    if job.key_kind == "domain":
        keys = syntax["domain"].dictionary.take(syntax["domain"].indices)
        columns.update(batch.flags_of(batch.rows))
    elif job.key_kind == "text":
        keys = texts
    else:
        keys = texts_where(syntax["well_formed"], texts)
    index = rows_of_keys(keys, answers, "key")
    for name in answers.column_names:
        if name in SCHEMA.names:
            columns[name] = answers[name].combine_chunks().take(index)
    status = pa.scalar(str(Status.DONE))
    if "status" in columns:
        status = columns["status"].cast(pa.string())
    is_open = index.is_null()
    status = pc.if_else(is_open, pa.scalar(str(Status.PENDING)), status)
    columns["status"] = status.dictionary_encode()
    columns["email"] = texts_where(is_open, keys)
    columns["validation_type"] = constant(job.validation_type, len(texts))
    rows = complete_table(columns, len(texts))
    if job.key_kind == "text":
        return rows
    positions, malformed = batch.malformed_rows(job.validation_type, datetime.now(UTC))
    return put_malformed(rows, positions, malformed)


def put_malformed(rows: pa.Table, positions: Positions, malformed: pa.Table) -> pa.Table:
    """Rows in which those of malformed texts are replaced; these wait for no answer."""
    if not len(positions):
        return rows
    no_key = pa.nulls(len(positions), pa.string())
    malformed = malformed.set_column(0, SCHEMA.field("email"), no_key)
    both = concat([rows, malformed])
    order = np.arange(len(rows))
    order[positions] = len(rows) + np.arange(len(positions))
    return both.take(pa.array(order))


# --- evidence about domains ------------------------------------------------------------------


def evidence_table(
    seen: Iterable[tuple[str, DomainEvidence, BlacklistEvidence | None]], checked_at: datetime
) -> pa.Table:
    """Evidence by the name that was asked about, in the schema `EVIDENCE`."""
    rows: list[dict[str, Any]] = []
    for name, dns, blacklist in seen:
        exchanges = [f"{exchange.preference} {exchange.host}" for exchange in dns.exchanges]
        row = {
            "domain": name,
            "outcome": str(dns.outcome),
            "exchanges": ";".join(exchanges),
            "message": dns.message,
            "checked_at": checked_at,
        }
        if blacklist:
            row["listed"] = blacklist.listed
            row["listing"] = blacklist.message
            row["sources"] = ";".join(blacklist.sources)
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=EVIDENCE)


def evidence_of(row: Mapping[str, Any]) -> tuple[DomainEvidence, BlacklistEvidence | None]:
    """The evidence of one row."""
    exchanges = []
    for text in filter(None, row["exchanges"].split(";")):
        preference, host = text.split(" ", 1)
        exchanges.append(MailExchange(int(preference), host))
    outcome = DnsOutcome(row["outcome"])
    dns = DomainEvidence(row["domain"], outcome, tuple(exchanges), row["message"])
    if row["sources"] is None:
        return dns, None
    sources = tuple(filter(None, row["sources"].split(";")))
    return dns, BlacklistEvidence(row["listed"], row["listing"] or "", sources)


def is_temporary(evidence: pa.Table) -> pa.BooleanArray:
    """Whether a later call asks again: neither the DNS nor a blacklist established anything."""
    undetermined = pc.equal(evidence["outcome"], str(DnsOutcome.UNDETERMINED))
    unlisted = pc.and_(evidence["sources"].is_valid(), evidence["listed"].is_null())
    return pc.or_(undetermined, unlisted)


def settle_domains(
    evidence: pa.Table, validation_type: ValidationType, lists: str | None = None
) -> pa.Table:
    """The answers that follow from evidence about domains, in the schema `ANSWERS`.

    Equal evidence is judged once. `lists` is the version of the lists that decide the flags beside
    the answers.
    """
    shown = evidence.drop_columns(["checked_at"])
    judged, codes = distinct_rows(shown, ("outcome", "message", "listed", "listing", "sources"))
    decisions = []
    for row in judged:
        dns, blacklist = evidence_of(row)
        decisions.append(settle(validation_type, Evidence(OK, dns, blacklist)))
    described, metadata_codes = distinct_rows(shown, ("exchanges", "sources"))
    texts = []
    for row in described:
        dns, blacklist = evidence_of(row)
        metadata = evidence_metadata(Evidence(OK, dns, blacklist))
        texts.append(dump_json({**metadata, "lists": lists}))
    columns = {
        "key": evidence["domain"].combine_chunks(),
        "checked_at": evidence["checked_at"].combine_chunks(),
        "source": constant(SOURCE_LOCAL, len(codes)),
        "metadata": pa.DictionaryArray.from_arrays(metadata_codes, pa.array(texts, pa.string())),
        **decision_columns(decisions, codes),
    }
    return pa.table([columns[name] for name in ANSWERS.names], schema=ANSWERS)


def distinct_rows(table: pa.Table, names: Sequence[str]) -> tuple[list[dict[str, Any]], Codes]:
    """The first row of each combination of values in some columns, and for each row its number."""
    values = [table[name].to_pylist() for name in names]
    numbers: dict[tuple[Any, ...], int] = {}
    first: list[int] = []
    codes: Codes = np.zeros(len(table), np.int32)
    for row, key in enumerate(zip(*values, strict=True)):
        if key not in numbers:
            numbers[key] = len(first)
            first.append(row)
        codes[row] = numbers[key]
    rows: list[dict[str, Any]] = table.take(pa.array(first, pa.int64())).to_pylist()
    return rows, codes


def organisations_of(exchanges: str) -> tuple[str, ...]:
    """The organisations of a domain's exchanges, in order, each once."""
    names: dict[str, None] = {}
    for text in filter(None, exchanges.split(";")):
        _, _, host = text.partition(" ")
        names[registered_domain(host)] = None
    return tuple(names)


def add_owners(observed: pa.Table, evidence: pa.Table, routing: Routing) -> tuple[pa.Table, Shards]:
    """Addresses with the evidence about their domain, and the shard that asks its exchanges."""
    index = rows_of_keys(observed["domain"].combine_chunks(), evidence, "domain")
    exchanges = evidence["exchanges"].combine_chunks().dictionary_encode()
    owners = []
    for text in exchanges.dictionary.to_pylist():
        names = organisations_of(text) or ("",)
        owners.append(names[0])
    by_text = routing.shard_of(pa.array(owners, pa.string()))
    for name in ("outcome", "exchanges", "message"):
        values = evidence[name].combine_chunks().take(index)
        observed = observed.append_column(name, values)
    return observed, by_text[exchanges.indices.take(index).to_numpy()]


def shard_of(names: pa.StringArray, shards: int) -> Shards:
    """The shard of each name, from 0; the same on every machine and in every version.

    >>> shard_of(pa.array(["gmail.com", "web.de", "gmail.com"]), 4).tolist()
    [3, 1, 3]
    """
    distinct = names.dictionary_encode()
    octets = distinct.dictionary.cast(pa.binary()).to_pylist()
    hashes = np.fromiter(map(zlib.crc32, octets), np.int64, len(octets))
    shards_of_names: Shards = hashes[distinct.indices.to_numpy()] % shards
    return shards_of_names


def sum_counts(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The counts of partitions added up, and their notices, each once."""
    total: dict[str, Any] = {**dict.fromkeys(COUNTS, 0), "notices": []}
    for counts in parts:
        for notice in counts["notices"]:
            if notice not in total["notices"]:
                total["notices"].append(notice)
        for name in COUNTS:
            total[name] += counts[name]
    return total
