"""A batch by column: the checks that need no network, for all addresses at once, and the rows of results.

What repeats is computed once per domain or decision and assigned to rows by integer codes. There is no
Python loop over rows, for speed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.lists.flags import DomainFlags, LoadedLists
from ..checks.lists.suggestions import suggest_domains
from ..checks.syntax.column import SyntaxColumn, fault_messages, observe_column
from ..checks.syntax.kernels import Codes
from ..model.evidence import Evidence, SyntaxEvidence
from ..model.table import JUDGED_COLUMNS, SCHEMA, SOURCE_LOCAL, complete_table, dump_json
from ..model.words import Status, ValidationType
from ..verdicts import Decision, settle

Positions = npt.NDArray[np.int64]
LARGE = 100_000  # rows from which several threads are faster than one
WELL_FORMED = Evidence(SyntaxEvidence(ok=True))


@dataclass(frozen=True)
class ObservedBatch:
    """What syntax and lists say about each address of a batch."""

    texts: pa.StringArray  # the batch, n addresses
    syntax: SyntaxColumn  # per row, and the unique domains of the accepted rows
    role: pa.BooleanArray  # n; null for a malformed address
    flags: DomainFlags  # one entry per unique domain
    suggested: Sequence[str | None]  # the domain probably meant, one per unique domain
    faults: pa.DictionaryArray  # n; why an address is malformed, else null
    lists_version: str  # for `metadata`

    def accepted(self) -> Positions:
        """Positions of the well-formed addresses."""
        return positions_where(self.syntax.ok)

    def refused(self) -> Positions:
        """Positions of the malformed addresses."""
        return positions_where(pc.invert(self.syntax.ok))

    def domain_codes(self) -> Codes:
        """The index of each row's domain; -1 for a malformed address."""
        codes: Codes = self.syntax.domain_codes.fill_null(-1).to_numpy(zero_copy_only=False)
        return codes

    def regex_rows(self, checked_at: datetime, fields: Collection[str] | None = None) -> pa.Table:
        """All rows of the batch, in order, for type `regex`; only `fields` of the result table, if given."""
        evidence = [WELL_FORMED, *self.malformed_evidence()]
        codes = (
            pc.add(self.faults.indices, 1)
            .fill_null(0)
            .cast(pa.int32())
            .to_numpy(zero_copy_only=False)
        )
        return self.rows(ValidationType.REGEX, None, codes, evidence, checked_at, fields)

    def malformed_rows(
        self, validation_type: ValidationType, checked_at: datetime
    ) -> tuple[Positions, pa.Table]:
        """The rows of malformed addresses: they are settled without any network, for every type."""
        positions = self.refused()
        codes = (
            self.faults.indices.take(pa.array(positions))
            .cast(pa.int32())
            .to_numpy(zero_copy_only=False)
        )
        return positions, self.rows(
            validation_type, positions, codes, self.malformed_evidence(), checked_at
        )

    def malformed_evidence(self) -> list[Evidence]:
        """What was seen of malformed addresses, one for each distinct fault."""
        return [
            Evidence(SyntaxEvidence(ok=False, message=message))
            for message in self.faults.dictionary.to_pylist()
        ]

    def rows(
        self,
        validation_type: ValidationType,
        positions: Positions | None,
        codes: Codes,
        evidence: Sequence[Evidence],
        checked_at: datetime,
        fields: Collection[str] | None = None,
    ) -> pa.Table:
        """Rows of the result table, or only `fields` of it; each evidence is judged once.

        `codes` has the index of each row's evidence; `positions` are the rows of the batch, None for all in order.
        """
        picked = None if positions is None else pa.array(positions)
        size = len(self.texts) if picked is None else len(picked)
        decisions = [settle(validation_type, each) for each in evidence]
        columns: dict[str, Callable[[], pa.Array]] = {
            "email": lambda: pick(self.texts, picked),
            "status": lambda: constant(Status.DONE, size),
            "validation_type": lambda: constant(validation_type, size),
            "source": lambda: constant(SOURCE_LOCAL, size),
            **{
                name: partial(decision_column, encode, decisions, codes)
                for name, encode in JUDGED_COLUMNS.items()
            },
            "metadata": lambda: by_code([self.metadata_text(each) for each in evidence], codes),
            "normalized": lambda: self.syntax.normalized(picked),
            "checked_at": lambda: moments(checked_at, size),
            **self.flag_columns(picked),
        }
        if validation_type is ValidationType.SMTP:
            columns |= {
                name: partial(server_flag, name, evidence, codes)
                for name in ("catch_all", "protected")
            }
        wanted = {name: make for name, make in columns.items() if fields is None or name in fields}
        if size < LARGE:
            made = {name: make() for name, make in wanted.items()}
        else:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                made = dict(
                    zip(wanted, pool.map(lambda make: make(), wanted.values()), strict=True)
                )
        return complete_table(made, size, fields)

    def metadata_text(self, evidence: Evidence) -> str:
        """The `metadata` of rows, as JSON."""
        return dump_json({**evidence_metadata(evidence), "lists": self.lists_version})

    def flag_columns(self, picked: pa.Array | None) -> dict[str, Callable[[], pa.Array]]:
        """How to make flags and suggestion of the rows; null for a malformed address."""
        domains = pick(self.syntax.domain_codes, picked)
        return {
            "role": lambda: pick(self.role, picked),
            "spamtrap": lambda: take_flags(self.flags.spamtrap, domains),
            "disposable": lambda: take_flags(self.flags.disposable, domains),
            "free": lambda: take_flags(self.flags.free, domains),
            "suggestion": lambda: self.suggestions(picked, domains),
        }

    def suggestions(self, picked: pa.Array | None, domains: pa.Int32Array) -> pa.StringArray:
        """The whole address with the domain that was probably meant; null for most rows."""
        nothing = pa.nulls(len(domains), pa.string())
        if not any(self.suggested):
            return nothing
        wanted = pa.array([s is not None for s in self.suggested], pa.bool_())
        mask = take_flags(wanted, domains).fill_null(False)
        local = self.syntax.local(
            pa.array(positions_where(mask)) if picked is None else picked.filter(mask)
        )
        meant = pa.array(self.suggested, pa.string()).take(domains.filter(mask))
        return pc.replace_with_mask(nothing, mask, pc.binary_join_element_wise(local, meant, "@"))


FLAG_FIELDS = frozenset(("spamtrap", "disposable", "free"))


def observe_batch(
    texts: pa.StringArray,
    lists: LoadedLists,
    syntax: SyntaxColumn | None = None,
    fields: Collection[str] | None = None,
) -> ObservedBatch:
    """Run the checks that need no network; `syntax` is the syntax check of the texts, if it was made already.

    With `fields`, flags and suggestions that no field of the result table needs are null.
    """
    syntax = observe_column(texts) if syntax is None else syntax
    wanted = frozenset(SCHEMA.names) if fields is None else frozenset(fields)
    # Arrow and numpy release the interpreter lock, so the look-ups by domain run at the same time.
    with ThreadPoolExecutor(2) as beside:
        faults = beside.submit(fault_messages, texts, syntax.ok)
        match_roles = partial(
            syntax.match_locals, lists.role_names, lists.role_words, lists.no_roles
        )
        role = beside.submit(match_roles) if "role" in wanted else None
        domains = syntax.domains.to_pylist()
        flags = (
            lists.domain_flags(domains)
            if wanted & FLAG_FIELDS
            else DomainFlags(*[no_flags(len(domains))] * 3)
        )
        suggested = suggest_domains(domains) if "suggestion" in wanted else [None] * len(domains)
    roles = no_flags(len(texts)) if role is None else role.result()
    return ObservedBatch(texts, syntax, roles, flags, suggested, faults.result(), lists.version)


def no_flags(size: int) -> pa.BooleanArray:
    return pa.nulls(size, pa.bool_())


def evidence_metadata(evidence: Evidence) -> dict[str, Any]:
    """What `metadata` says about the domain and the mailbox."""
    dns, blacklist, mailbox = evidence.dns, evidence.blacklist, evidence.mailbox
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
    flags = [None if each.mailbox is None else getattr(each.mailbox, name) for each in evidence]
    return pa.array(flags, pa.bool_()).take(pa.array(codes))


def decision_columns(decisions: Sequence[Decision], codes: Codes) -> dict[str, pa.DictionaryArray]:
    """The columns that a decision fills."""
    return {
        name: decision_column(encode, decisions, codes) for name, encode in JUDGED_COLUMNS.items()
    }


def decision_column(
    encode: Callable[[Decision], str | None], decisions: Sequence[Decision], codes: Codes
) -> pa.DictionaryArray:
    return by_code([encode(decision) for decision in decisions], codes)


def moments(checked_at: datetime, size: int) -> pa.Array:
    """A column of one moment."""
    return pa.repeat(pa.scalar(checked_at, pa.timestamp("us", tz="UTC")), size)


def by_code(values: Sequence[str | None], codes: Codes) -> pa.DictionaryArray:
    """A dictionary-encoded column: row i has ``values[codes[i]]``."""
    distinct = pa.array(
        [None if v is None else str(v) for v in values], pa.string()
    ).dictionary_encode()
    indices = pc.take(distinct.indices, pa.array(codes), boundscheck=False)
    return pa.DictionaryArray.from_arrays(indices, distinct.dictionary)


def constant(value: str, size: int) -> pa.DictionaryArray:
    """A dictionary-encoded column of one value."""
    return pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(size, np.int32)), pa.array([str(value)])
    )


def take_flags(flags: pa.BooleanArray, domains: pa.Int32Array) -> pa.BooleanArray:
    """The flag of each row's domain."""
    if flags.null_count == len(flags):
        return no_flags(len(domains))
    return pc.take(flags, domains, boundscheck=False)


def pick(values: pa.Array, positions: pa.Array | None) -> pa.Array:
    return values if positions is None else values.take(positions)


def positions_where(mask: pa.BooleanArray) -> Positions:
    positions: Positions = pc.indices_nonzero(mask).cast(pa.int64()).to_numpy(zero_copy_only=False)
    return positions
