"""What a result means for a mailing: who runs the mailboxes, and what the bounces of a mailing say about the verdicts.

Each gives a table for the page: a sentence, heads, and rows of texts.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..bounces.read import read_bounces
from ..checks.bounces.outcome import Outcome
from ..checks.operators import SELF, known_operators
from ..errors import InputError, MailVerdictError
from ..frames.policy import read_decided
from ..model.words import count_of, percent
from ..reports.by_operator import OperatorCounts
from ..reports.outcomes import count_outcomes, match_outcomes
from ..theme import LABELS
from .listing import CORE, Listing, Rows
from .source import readable

MAX_OPERATORS = 10
OPERATOR_HEADS = ("Operator", "Addresses", "Clear answers", "Why not more")
BOUNCE_HEADS = ("Verdict", "Mailed", "Does not exist", "Share", "95 % range", "Refused the sender", "Later")


def table_of(text: str, heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> dict[str, Any]:
    """A table of the page."""
    return {"text": text, "heads": list(heads), "rows": [list(row) for row in rows]}


def count_operators(listing: Listing) -> dict[str, Any] | None:
    """Who runs the mailboxes, and how many of their addresses got a clear answer; None where nothing is known."""
    counts = OperatorCounts()
    counts.add(listing.rows.results(("operator",)))
    found = counts.table(MAX_OPERATORS)
    if not len(found):
        return None
    more, known = len(counts.by_name) - len(found), known_operators()
    text = f"The {len(found)} largest of {count_of(len(counts.by_name), 'operator')}." if more else ""
    rows = [
        (
            known[name][0].name if name in known else "The domains themselves" if name == SELF else readable(name),
            f"{row['addresses']:,}",
            f"{row['clear']:,} ({percent(row['clear'], row['addresses'])})",
            row["note"] or "",
        )
        for name, row in zip(found.index, found.to_dict("records"), strict=True)
    ]
    return table_of(text, OPERATOR_HEADS, rows)


@dataclass(frozen=True, eq=False)
class Bounced:
    """What a sender's export says about a result."""

    table: dict[str, Any]
    rows: Rows  # whose mailbox or domain does not exist


def read_outcomes(path: Path, name: str, listing: Listing) -> Bounced:
    """Compare the verdicts with what became of the mails; mailed are the rows to send, and all that have a report."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            bounces = read_bounces(path)
        except MailVerdictError as exc:
            raise type(exc)(str(exc).replace(str(path), readable(name))) from None
    rows = read_decided(listing.rows.to_frame(columns=CORE), listing.column, None)
    reported = match_outcomes(rows, bounces)
    sent = listing.action == 0
    mailed = pd.Series(sent | np.any([*reported.has.values()], axis=0))
    found = match_outcomes(rows, bounces, mailed=mailed)
    if not found.matched:
        raise InputError(f"{readable(name)}: none of its {count_of(found.unmatched, 'address')} is in this list")
    counts = count_outcomes(found, np.array([""] * len(rows), object)).loc[["verdict"]].droplevel(0)
    lines = [
        (
            LABELS[str(verdict)],
            f"{row['mailed']:,}",
            f"{row['hard']:,}",
            percent(row["hard"], row["mailed"]),
            f"{row['low']:.1%} to {row['high']:.1%}",
            f"{row['blocked']:,}",
            f"{row['soft']:,}",
        )
        for verdict, row in zip(counts.index, counts.to_dict("records"), strict=True)
        if row["mailed"]
    ]
    gone = np.flatnonzero(found.has[Outcome.HARD] & found.is_mailed)
    people = len({found.keys[row] for row in gone.tolist()})
    others = f", and {count_of(found.unmatched, 'other')}" if found.unmatched else ""
    text = f"{readable(name)} has {count_of(found.matched, 'address')} of this list{others}. "
    verb = "does" if people == 1 else "do"
    text += f"{count_of(people, 'person', 'people')} {verb} not exist any more."
    notes = [readable(str(each.message), 200) for each in caught]
    return Bounced(table_of(" ".join([text, *notes]), BOUNCE_HEADS, lines), gone)
