"""Settled mailboxes on their way into rows."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from ..model.evidence import DomainEvidence, Evidence, Flags, MailboxEvidence, SyntaxEvidence
from ..model.words import ValidationType
from ..verdicts import Decision, settle
from .domains import domain_notes
from .view import ColumnView, Positions

__all__ = ["Outbox", "mailbox_notes"]

OK = SyntaxEvidence(ok=True)


class Outbox:
    """Collects evidence by position and makes rows of it.

    Parameters
    ----------
    view : ColumnView
        Whose rows they are.
    """

    def __init__(self, view: ColumnView) -> None:
        self.view = view
        self.codes = view.domain_codes()
        self.domains: dict[int, DomainEvidence] = {}
        self.items: list[tuple[int, MailboxEvidence | None]] = []
        flags = view.flags
        self.lists = [column.to_pylist() for column in (flags.spamtrap, flags.disposable, flags.free)]
        self.decided: dict[Any, Decision] = {}

    def __len__(self) -> int:
        """Rows that wait to be taken."""
        return len(self.items)

    def add(self, position: int, evidence: MailboxEvidence | None) -> None:
        """Take one address in; None: its domain has no exchange to ask."""
        self.items.append((position, evidence))

    def take(self, now: datetime) -> tuple[Positions, pa.Table]:
        """Make rows of everything that has come since the last time."""
        items, self.items = self.items, []
        positions = np.array([position for position, _ in items], np.int64)
        roles = self.view.role.take(pa.array(positions)).to_pylist()
        decisions = [self.decide(at, seen, role) for (at, seen), role in zip(items, roles, strict=True)]
        notes = [self.notes(at, seen) for at, seen in items]
        codes = np.arange(len(items), dtype=np.int32)
        server_flags = {
            "catch_all": pa.array([seen.catch_all if seen else None for _, seen in items], pa.bool_()),
            "protected": pa.array([seen.protected if seen else None for _, seen in items], pa.bool_()),
        }
        table = self.view.rows(
            ValidationType.SMTP, positions, codes, decisions, now, metadata=notes, extra_columns=server_flags
        )
        return positions, table

    def decide(self, position: int, seen: MailboxEvidence | None, role: bool | None) -> Decision:  # noqa: FBT001 - a flag's value
        """Judge; what is the same for many addresses is judged once."""
        code = int(self.codes[position])
        spamtrap, disposable, free = (flag[code] for flag in self.lists)
        flags = Flags(role, spamtrap, disposable, free)
        if seen is not None and seen.reason is not None:
            return settle(ValidationType.SMTP, Evidence(OK, self.domains[code], mailbox=seen, flags=flags))
        key = (flags, seen.catch_all) if seen else (flags, code)
        if key not in self.decided:
            evidence = Evidence(OK, self.domains[code], mailbox=seen, flags=flags)
            self.decided[key] = settle(ValidationType.SMTP, evidence)
        return self.decided[key]

    def notes(self, position: int, seen: MailboxEvidence | None) -> dict[str, Any]:
        """What `metadata` says."""
        notes = domain_notes(self.domains[int(self.codes[position])], None)
        return notes if seen is None else {**notes, **mailbox_notes(seen)}


def mailbox_notes(seen: MailboxEvidence) -> dict[str, Any]:
    """What `metadata` says of a mailbox: who answered, what, and by which rule it was read."""
    notes: dict[str, Any] = {"smtp_host": seen.host} if seen.host else {}
    if seen.reason is not None:
        notes["smtp_error"] = seen.reply
    notes["rule"] = seen.rule
    if seen.inferred:
        notes["inferred"] = True
    return notes
