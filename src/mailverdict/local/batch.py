"""A batch by column: the checks that need no network, for all addresses at once.

`observe_batch` makes two tables. One has a row for each address of the batch:

    text            well_formed  local  domain  display  role   fault
    Ada@WEB.de      true         Ada    web.de  web.de   false
    ada@web         false                                       There is no dot in the domain.

The other has a row for each distinct domain of the accepted addresses, with its flags and the
domain that was probably meant; the codes of the column `domain` of the first table are the rows of
the second.

A stage (of the DNS, of mail servers) then collects evidence. `ObservedBatch.result_rows` judges
each distinct evidence once, and gives its decision to the rows by a code. There is no loop over
rows in Python.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.lists.flags import LoadedLists
from ..checks.lists.suggestions import suggest_domains
from ..checks.syntax.column import fault_messages, normal_forms, observe_column
from ..model.arrow import Codes
from ..model.evidence import Evidence, SyntaxEvidence
from ..model.table import JUDGED_COLUMNS, SCHEMA, SOURCE_LOCAL, complete_table, dump_json
from ..model.words import Status, ValidationType
from ..verdicts import Decision, settle

Positions = npt.NDArray[np.int64]
WELL_FORMED = Evidence(SyntaxEvidence(ok=True))
FLAGS = ("spamtrap", "disposable", "free")  # of domains


def observe_batch(
    texts: pa.StringArray,
    lists: LoadedLists,
    syntax: pa.RecordBatch | None = None,
    fields: Collection[str] | None = None,
    *,
    lenient: bool = False,
) -> ObservedBatch:
    """Run the checks that need no network.

    `syntax` is what `observe_column` saw, if it was called already.

    With `lenient` the two forms of `accept_leniently` are accepted. With `fields`, flags and
    suggestions that no field of the result table needs are null.
    """
    if syntax is None:
        syntax = observe_column(texts, lenient=lenient)
    wanted = frozenset(SCHEMA.names)
    if fields is not None:
        wanted = frozenset(fields)
    with ThreadPoolExecutor(1) as beside:  # Arrow works without the interpreter's lock
        faults = beside.submit(fault_messages, syntax)
        domains = observe_domains(syntax["domain"].dictionary, lists, wanted)
        role = pa.nulls(len(syntax), pa.bool_())
        if "role" in wanted:
            role = lists.match_roles(syntax["local"])
        rows = syntax.append_column("role", role)
        rows = rows.append_column("fault", faults.result())
    return ObservedBatch(rows, domains, lists.version)


def observe_domains(
    domains: pa.StringArray, lists: LoadedLists, wanted: Collection[str]
) -> pa.RecordBatch:
    """The flags of each domain; null where not wanted.

    `meant` has the domain that was probably meant.
    """
    names = domains.to_pylist()
    columns = {"domain": domains}
    for name in FLAGS:
        columns[name] = pa.nulls(len(names), pa.bool_())
    if not frozenset(FLAGS).isdisjoint(wanted):
        flags = lists.domain_flags(names)
        for name in FLAGS:
            columns[name] = flags[name]
    columns["meant"] = pa.nulls(len(names), pa.string())
    if "suggestion" in wanted:
        columns["meant"] = pa.array(suggest_domains(names), pa.string())
    return pa.record_batch(columns)


@dataclass(frozen=True)
class ObservedBatch:
    """What syntax and lists say about each address of a batch."""

    # Columns: text, well_formed, local, domain, display, role, fault: one for each address.
    rows: pa.RecordBatch
    # Columns: domain, spamtrap, disposable, free, meant: one for each distinct domain.
    domains: pa.RecordBatch
    lists_version: str  # for `metadata`

    def __len__(self) -> int:
        """How many addresses there are."""
        return len(self.rows)

    def domain_names(self) -> list[str]:
        """The distinct domains of the accepted addresses."""
        names: list[str] = self.domains["domain"].to_pylist()
        return names

    def domain_codes(self) -> Codes:
        """The row of each address's domain; -1 for a malformed address."""
        codes: Codes = self.rows["domain"].indices.fill_null(-1).to_numpy()
        return codes

    def accepted(self) -> Positions:
        """Positions of the well-formed addresses."""
        return positions_where(self.rows["well_formed"])

    def refused(self) -> Positions:
        """Positions of the malformed addresses."""
        return positions_where(pc.invert(self.rows["well_formed"]))

    def regex_rows(self, checked_at: datetime, fields: Collection[str] | None = None) -> pa.Table:
        """All rows of the batch, in order, for type `regex`.

        Only `fields` of the result table, if they are given.
        """
        evidence = [WELL_FORMED, *self.malformed_evidence()]
        fault = self.rows["fault"].indices
        codes = pc.add(fault, 1).fill_null(0).to_numpy()
        return self.result_rows(ValidationType.REGEX, None, codes, evidence, checked_at, fields)

    def malformed_rows(
        self, validation_type: ValidationType, checked_at: datetime
    ) -> tuple[Positions, pa.Table]:
        """The rows of malformed addresses: they are settled without any network, for every type."""
        positions = self.refused()
        fault = self.rows["fault"].indices
        codes = fault.take(positions).to_numpy()
        evidence = self.malformed_evidence()
        rows = self.result_rows(validation_type, positions, codes, evidence, checked_at)
        return positions, rows

    def malformed_evidence(self) -> list[Evidence]:
        """What was seen of malformed addresses, one for each distinct fault."""
        messages = self.rows["fault"].dictionary.to_pylist()
        return [Evidence(SyntaxEvidence(ok=False, message=message)) for message in messages]

    def result_rows(
        self,
        validation_type: ValidationType,
        positions: Positions | None,
        codes: Codes,
        evidence: Sequence[Evidence],
        checked_at: datetime,
        fields: Collection[str] | None = None,
    ) -> pa.Table:
        """Rows of the result table, or only `fields` of it; each evidence is judged once.

        `codes` has the index of each row's evidence; `positions` are the rows of the batch, None
        for all in order.
        """
        rows = self.rows
        if positions is not None:
            rows = rows.take(positions)
        size = len(rows)
        decisions = [settle(validation_type, seen) for seen in evidence]
        metadata = [self.metadata_text(seen) for seen in evidence]
        columns = {
            "email": rows["text"],
            "status": constant(Status.DONE, size),
            "validation_type": constant(validation_type, size),
            "source": constant(SOURCE_LOCAL, size),
            "checked_at": constant_moment(checked_at, size),
            "metadata": by_code(metadata, codes),
            **decision_columns(decisions, codes),
            **self.flags_of(rows),
        }
        if fields is None or "normalized" in fields:
            columns["normalized"] = normal_forms(rows)
        if validation_type is ValidationType.SMTP:
            columns["catch_all"] = server_flag("catch_all", evidence, codes)
            columns["protected"] = server_flag("protected", evidence, codes)
        return complete_table(columns, size, fields)

    def metadata_text(self, evidence: Evidence) -> str:
        """The `metadata` of rows, as JSON."""
        metadata = evidence_metadata(evidence)
        metadata["lists"] = self.lists_version
        return dump_json(metadata)

    def flags_of(self, rows: pa.RecordBatch) -> dict[str, pa.Array]:
        """Flags and suggestion of some rows; null for a malformed address."""
        domain = rows["domain"].indices
        flags = {"role": rows["role"]}
        for name in FLAGS:
            flags[name] = self.domains[name].take(domain)
        flags["suggestion"] = self.suggestions(rows)
        return flags

    def suggestions(self, rows: pa.RecordBatch) -> pa.StringArray:
        """The whole address with the domain that was probably meant; null for most rows."""
        nothing = pa.nulls(len(rows), pa.string())
        meant = self.domains["meant"]
        if meant.null_count == len(meant):
            return nothing
        domain = rows["domain"].indices
        is_mistyped = meant.is_valid().take(domain).fill_null(False)
        local = rows["local"].filter(is_mistyped)
        meant_domain = meant.take(domain.filter(is_mistyped))
        addresses = pc.binary_join_element_wise(local, meant_domain, "@")
        return pc.replace_with_mask(nothing, is_mistyped, addresses)


def evidence_metadata(evidence: Evidence) -> dict[str, Any]:
    """What `metadata` says about the domain and the mailbox."""
    dns = evidence.dns
    blacklist = evidence.blacklist
    mailbox = evidence.mailbox
    metadata: dict[str, Any] = {}
    if dns is not None and dns.exchanges:
        metadata["mx_records"] = [exchange.host for exchange in dns.exchanges]
    if blacklist is not None:
        metadata["blacklist_sources"] = list(blacklist.sources)
    if mailbox is None:
        return metadata
    if mailbox.host:
        metadata["smtp_host"] = mailbox.host
    if mailbox.reason is not None:
        metadata["smtp_error"] = mailbox.reply
    metadata["rule"] = mailbox.classification.rule
    if mailbox.inferred:
        metadata["inferred"] = True
    return metadata


def server_flag(name: str, evidence: Sequence[Evidence], codes: Codes) -> pa.BooleanArray:
    """A flag that only a session can establish."""
    flags = []
    for seen in evidence:
        flag = None
        if seen.mailbox is not None:
            flag = getattr(seen.mailbox, name)
        flags.append(flag)
    return pa.array(flags, pa.bool_()).take(codes)


def decision_columns(decisions: Sequence[Decision], codes: Codes) -> dict[str, pa.DictionaryArray]:
    """The columns that a decision fills."""
    columns = {}
    for name, encode in JUDGED_COLUMNS.items():
        columns[name] = by_code(list(map(encode, decisions)), codes)
    return columns


def by_code(values: Sequence[str | None], codes: Codes) -> pa.DictionaryArray:
    """A dictionary-encoded column: row i has ``values[codes[i]]``."""
    texts = [None if value is None else str(value) for value in values]
    distinct = pa.array(texts, pa.string()).dictionary_encode()
    indices = distinct.indices.take(codes)
    return pa.DictionaryArray.from_arrays(indices, distinct.dictionary)


def constant(value: str, size: int) -> pa.DictionaryArray:
    """A dictionary-encoded column of one value."""
    codes = pa.array(np.zeros(size, np.int32))
    return pa.DictionaryArray.from_arrays(codes, pa.array([str(value)]))


def constant_moment(moment: datetime, size: int) -> pa.TimestampArray:
    return pa.repeat(pa.scalar(moment, SCHEMA.field("checked_at").type), size)


def positions_where(mask: pa.BooleanArray) -> Positions:
    positions: Positions = pc.indices_nonzero(mask).cast(pa.int64()).to_numpy()
    return positions
