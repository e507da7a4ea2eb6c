"""Settled mailboxes on their way into rows."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime

import numpy as np
import pyarrow as pa

from ...checks.syntax.column import normal_forms
from ...model.evidence import DomainEvidence, Evidence, Flags, MailboxEvidence, SyntaxEvidence
from ...model.words import ValidationType
from ..batch import FLAGS, ObservedBatch, Positions

OK = SyntaxEvidence(ok=True)


class OneResult:
    """Takes what is observed about the only address of a check; else see `ResultBuffer`."""

    def __init__(self, syntax: SyntaxEvidence) -> None:
        self.local_parts, self.names = pa.array([syntax.local]), [syntax.ascii_domain]
        self.domains: dict[int, DomainEvidence] = {}
        self.evidence: MailboxEvidence | None = None

    def __len__(self) -> int:
        """Rows that can be made."""
        return 0

    def add(self, position: int, evidence: MailboxEvidence | None) -> None:
        """Keep the evidence."""
        self.evidence = evidence


class ResultBuffer:
    """Collects evidence by position, and makes rows of it.

    `domains` holds what the DNS showed, by code of the domain; `aliases` the positions of other spellings of the
    address at a position, which get the same answer.
    """

    def __init__(self, batch: ObservedBatch) -> None:
        self.batch = batch
        self.local_parts = batch.rows["local"]
        self.names = batch.domain_names()
        self.codes = batch.domain_codes()
        self.domain_codes = self.codes.data  # reads single values faster than numpy
        self.domains: dict[int, DomainEvidence] = {}
        self.aliases: dict[int, list[int]] = {}
        self.roles = batch.rows["role"].to_pylist()
        self.lists = [batch.domains[name].to_pylist() for name in FLAGS]
        self.clear()

    def clear(self) -> None:
        """Forget what rows were made of."""
        self.positions: list[int] = []  # of the rows that can be made
        self.indices: list[int] = []  # per row, that of its evidence
        self.index_of: dict[Hashable, int] = {}  # what is in `evidence` already
        self.evidence: list[Evidence] = []

    def __len__(self) -> int:
        """Rows that can be made."""
        return len(self.positions)

    def add(self, position: int, evidence: MailboxEvidence | None) -> None:
        """Add one address and its aliases; None: its domain has no exchange to ask."""
        self.add_one(position, evidence)
        if self.aliases:
            for alias in self.aliases.get(position, ()):
                self.add_one(alias, evidence)

    def add_one(self, position: int, seen: MailboxEvidence | None) -> None:
        """Add what was observed about one address; all that is equal is one evidence."""
        domain, role = self.domain_codes[position], self.roles[position]
        key = (domain, role, seen)
        index = self.index_of.get(key)
        if index is None:
            index = self.index_of[key] = len(self.evidence)
            flags = Flags(role, *(flag[domain] for flag in self.lists))
            self.evidence.append(Evidence(OK, self.domains[domain], mailbox=seen, flags=flags))
        self.positions.append(position)
        self.indices.append(index)

    def take(self, now: datetime) -> tuple[Positions, pa.Table]:
        """Make rows of everything that has come since the last time; their positions, and the table."""
        positions, codes = np.array(self.positions, np.int64), np.array(self.indices, np.int32)
        table = self.batch.result_rows(ValidationType.SMTP, positions, codes, self.evidence, now)
        self.clear()
        return positions, table


def find_aliases(
    batch: ObservedBatch, positions: Positions
) -> tuple[Positions, dict[int, list[int]]]:
    """Separate addresses from their other spellings, so that a mailbox is asked about once.

    ``ada@müller.example`` and ``ada@xn--mller-kva.example`` have one normal form. Returns the position of the first
    of each, and by it the positions of the others.
    """
    forms = normal_forms(batch.rows.take(pa.array(positions))).dictionary_encode()
    if len(forms.dictionary) == len(positions):
        return positions, {}
    codes = forms.indices.to_numpy(zero_copy_only=False)
    _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    aliases: dict[int, list[int]] = {}
    for row in np.flatnonzero(first[which] != np.arange(len(codes))).tolist():
        aliases.setdefault(int(positions[first[which[row]]]), []).append(int(positions[row]))
    return positions[np.sort(first)], aliases
