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
from ..batch import ColumnView, Positions
from ..domains import domain_notes

__all__ = ["ResultBuffer", "find_aliases", "mailbox_notes"]

OK = SyntaxEvidence(ok=True)
Item = tuple[int, MailboxEvidence | None]


class ResultBuffer:
    """Collects evidence by position and makes rows of it.

    Parameters
    ----------
    view : ColumnView
        Whose rows they are.

    Attributes
    ----------
    domains : dict of int to DomainEvidence
        What the DNS said, by code of the domain.
    aliases : dict of int to list of int
        Other spellings of the address at a position; they share its answer.
    """

    def __init__(self, view: ColumnView) -> None:
        self.view = view
        self.codes = view.domain_codes()
        self.domains: dict[int, DomainEvidence] = {}
        self.aliases: dict[int, list[int]] = {}
        self.items: list[Item] = []
        flags = view.flags
        self.lists = [column.to_pylist() for column in (flags.spamtrap, flags.disposable, flags.free)]

    def __len__(self) -> int:
        """Rows that wait to be taken."""
        return len(self.items)

    def add(self, position: int, evidence: MailboxEvidence | None) -> None:
        """Take one address in, with its aliases; None: its domain has no exchange to ask."""
        self.items.append((position, evidence))
        if self.aliases and position in self.aliases:
            self.items += [(alias, evidence) for alias in self.aliases[position]]

    def take(self, now: datetime) -> tuple[Positions, pa.Table]:
        """Make rows of everything that has come since the last time; what is alike is judged once."""
        items, self.items = self.items, []
        positions = np.array([position for position, _ in items], np.int64)
        domains, roles = self.codes[positions].tolist(), self.view.role.take(pa.array(positions)).to_pylist()
        kinds: dict[Hashable, int] = {}
        decisions: list[Decision] = []
        notes: list[dict[str, Any]] = []
        codes = np.empty(len(items), np.int32)
        for row, ((_, seen), domain, role) in enumerate(zip(items, domains, roles, strict=True)):
            kind = (domain, role, seen)
            if kind not in kinds:
                kinds[kind] = len(decisions)
                decisions.append(self.decide(domain, seen, role=role))
                notes.append(self.notes(domain, seen))
            codes[row] = kinds[kind]
        table = self.view.rows(
            ValidationType.SMTP, positions, codes, decisions, now, metadata=notes, extra_columns=server_flags(items)
        )
        return positions, table

    def decide(self, domain: int, seen: MailboxEvidence | None, *, role: bool | None) -> Decision:
        """Judge."""
        spamtrap, disposable, free = (flag[domain] for flag in self.lists)
        flags = Flags(role, spamtrap, disposable, free)
        return settle(ValidationType.SMTP, Evidence(OK, self.domains[domain], mailbox=seen, flags=flags))

    def notes(self, domain: int, seen: MailboxEvidence | None) -> dict[str, Any]:
        """What `metadata` says."""
        notes = domain_notes(self.domains[domain], None)
        return notes if seen is None else {**notes, **mailbox_notes(seen)}


def server_flags(items: list[Item]) -> dict[str, pa.Array]:
    """The flags that only a session can tell, row by row."""
    return {
        "catch_all": pa.array([seen.catch_all if seen else None for _, seen in items], pa.bool_()),
        "protected": pa.array([seen.protected if seen else None for _, seen in items], pa.bool_()),
    }


def mailbox_notes(seen: MailboxEvidence) -> dict[str, Any]:
    """What `metadata` says of a mailbox: who answered, what, and by which rule it was read."""
    notes: dict[str, Any] = {"smtp_host": seen.host} if seen.host else {}
    if seen.reason is not None:
        notes["smtp_error"] = seen.reply
    notes["rule"] = seen.classification.rule
    if seen.inferred:
        notes["inferred"] = True
    return notes


def find_aliases(view: ColumnView, positions: Positions) -> tuple[Positions, dict[int, list[int]]]:
    """Part addresses from their other spellings, so that a mailbox is asked about once.

    Parameters
    ----------
    view : ColumnView
        The batch; ``ada@müller.example`` and ``ada@xn--mller-kva.example`` have one normal form.
    positions : array of int64
        Well-formed addresses.

    Returns
    -------
    tuple of array of int64 and dict of int to list of int
        The first of each, and for those that have any, where the others stand.
    """
    forms = view.syntax.normalized.take(pa.array(positions)).dictionary_encode()
    if len(forms.dictionary) == len(positions):
        return positions, {}
    codes = forms.indices.to_numpy(zero_copy_only=False)
    _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    aliases: dict[int, list[int]] = {}
    for row in np.flatnonzero(first[which] != np.arange(len(codes))).tolist():
        aliases.setdefault(int(positions[first[which[row]]]), []).append(int(positions[row]))
    return positions[np.sort(first)], aliases
