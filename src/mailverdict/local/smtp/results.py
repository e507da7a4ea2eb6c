"""Settled mailboxes on their way into rows."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from ...model.evidence import DomainEvidence, Evidence, Flags, MailboxEvidence, SyntaxEvidence
from ...model.words import ValidationType
from ...verdicts import Decision, settle
from ..batch import ObservedBatch, Positions
from ..domains import domain_metadata

OK = SyntaxEvidence(ok=True)
SERVER_FLAGS = ("catch_all", "protected")  # which only a session can establish


class ResultBuffer:
    """Collects evidence by position, judges it, and makes rows of it; equal evidence is judged once.

    `domains` holds what the DNS showed, by code of the domain; `aliases` the positions of other spellings of the
    address at a position, which get the same answer.
    """

    def __init__(self, batch: ObservedBatch) -> None:
        self.batch = batch
        self.codes = batch.domain_codes()
        self.domain_codes = self.codes.data  # reads single values faster than numpy
        self.domains: dict[int, DomainEvidence] = {}
        self.aliases: dict[int, list[int]] = {}
        self.roles = batch.role.to_pylist()
        flags = batch.flags
        self.lists = [column.to_pylist() for column in (flags.spamtrap, flags.disposable, flags.free)]
        self.clear()

    def clear(self) -> None:
        """Forget what rows were made of."""
        self.positions: list[int] = []  # of the rows that can be made
        self.indices: list[int] = []  # per row, that of its evidence
        self.index_of: dict[Hashable, int] = {}
        self.seen: list[MailboxEvidence | None] = []  # each once for a domain, with its decision and metadata
        self.decisions: list[Decision] = []
        self.metadata: list[dict[str, Any]] = []

    def __len__(self) -> int:
        """Rows that can be made."""
        return len(self.positions)

    def add(self, position: int, evidence: MailboxEvidence | None) -> None:
        """Add one address and its aliases; None: its domain has no exchange to ask."""
        self.add_one(position, evidence)
        if self.aliases:
            for alias in self.aliases.get(position, ()):
                self.add_one(alias, evidence)

    def add_one(self, position: int, evidence: MailboxEvidence | None) -> None:
        """Judge what was observed about one address, unless the same was judged before."""
        domain, role = self.domain_codes[position], self.roles[position]
        key = (domain, role, evidence)
        index = self.index_of.get(key)
        if index is None:
            index = self.index_of[key] = len(self.decisions)
            self.seen.append(evidence)
            self.decisions.append(self.decide(domain, evidence, role=role))
            self.metadata.append(self.make_metadata(domain, evidence))
        self.positions.append(position)
        self.indices.append(index)

    def take(self, now: datetime) -> tuple[Positions, pa.Table]:
        """Make rows of everything that has come since the last time; their positions, and the table."""
        positions, codes = np.array(self.positions, np.int64), np.array(self.indices, np.int32)
        flags = {
            name: pa.array([getattr(each, name, None) for each in self.seen], pa.bool_()).take(pa.array(codes))
            for name in SERVER_FLAGS
        }
        table = self.batch.rows(
            ValidationType.SMTP, positions, codes, self.decisions, now, metadata=self.metadata, extra_columns=flags
        )
        self.clear()
        return positions, table

    def decide(self, domain: int, seen: MailboxEvidence | None, *, role: bool | None) -> Decision:
        """Judge the evidence of one address."""
        spamtrap, disposable, free = (flag[domain] for flag in self.lists)
        flags = Flags(role, spamtrap, disposable, free)
        return settle(ValidationType.SMTP, Evidence(OK, self.domains[domain], mailbox=seen, flags=flags))

    def make_metadata(self, domain: int, seen: MailboxEvidence | None) -> dict[str, Any]:
        """The `metadata` of a row."""
        metadata = domain_metadata(self.domains[domain], None)
        return metadata if seen is None else {**metadata, **mailbox_metadata(seen)}


def mailbox_metadata(seen: MailboxEvidence) -> dict[str, Any]:
    """The `metadata` of a mailbox: which server replied, what, and the rule that classified it."""
    metadata: dict[str, Any] = {"smtp_host": seen.host} if seen.host else {}
    if seen.reason is not None:
        metadata["smtp_error"] = seen.reply
    metadata["rule"] = seen.classification.rule
    if seen.inferred:
        metadata["inferred"] = True
    return metadata


def find_aliases(batch: ObservedBatch, positions: Positions) -> tuple[Positions, dict[int, list[int]]]:
    """Separate addresses from their other spellings, so that a mailbox is asked about once.

    ``ada@müller.example`` and ``ada@xn--mller-kva.example`` have one normal form. Returns the position of the first
    of each, and by it the positions of the others.
    """
    forms = batch.syntax.normalized(pa.array(positions)).dictionary_encode()
    if len(forms.dictionary) == len(positions):
        return positions, {}
    codes = forms.indices.to_numpy(zero_copy_only=False)
    _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    aliases: dict[int, list[int]] = {}
    for row in np.flatnonzero(first[which] != np.arange(len(codes))).tolist():
        aliases.setdefault(int(positions[first[which[row]]]), []).append(int(positions[row]))
    return positions[np.sort(first)], aliases
