"""What a list means for a mailing, and where its invalid addresses come from.

A sample first, who runs the mailboxes, what bounces say, what to mail next: each gives a table for
the page, which is a sentence, heads, and rows of texts.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ..bounces.read import read_bounces
from ..checks.bounces.outcome import Outcome
from ..checks.operators import SELF, known_operators
from ..errors import InputError, MailVerdictError
from ..frames.policy import POLICIES, read_decided
from ..local.backend import LocalBackend
from ..mailings.estimate import LINE_LABELS, estimate, is_verified_whole
from ..mailings.experience import Experience
from ..mailings.learn import describe_older, find_older_reports, learn
from ..mailings.waves import mailing
from ..model.words import ACTIONS, Verdict, count_of, percent
from ..reports.breakdown import RankTable, group_order, headline, other_sentences
from ..reports.by_operator import OperatorCounts
from ..reports.differences import elsewhere, wilson_intervals
from ..reports.groups import Groups, people_in, people_that
from ..reports.origins import ListCounts, rank, shown_name
from ..reports.outcomes import count_outcomes, match_outcomes
from ..runs.options import Options
from ..runs.plan import Plan
from ..table.columns import COLUMNS, label_of
from ..table.table import Table
from ..theme import LABELS
from .listing import CORE, Listing, Rows, group_value
from .source import printable_label, readable, short_text
from .steps import Prepared

SAMPLE = 400  # addresses that are checked first
WAVES = 6
BUDGET = 0.02  # of hard bounces
PILOT = 200  # rows
MAX_OPERATORS = 10
SAMPLE_HEADS = ("Verdict", "Share", "95 % range", "Rows")
OPERATOR_HEADS = ("Operator", "Addresses", "Clear answers", "Why not more")
BOUNCE_HEADS = (
    "Verdict",
    "Mailed",
    "Does not exist",
    "Share",
    "95 % range",
    "Refused the sender",
    "Later",
)
# What `outcomes`, `learn` and `mailing` read of a result.
READ = tuple(
    column for column in COLUMNS if column.in_core or column.name in ("validation_type", "operator")
)


def table_of(
    text: str, heads: Sequence[str], rows: Sequence[tuple[str, ...]], notes: Sequence[str]
) -> dict[str, Any]:
    """A table of the page; what was warned of is said with it."""
    return {
        "text": with_notes(text, notes),
        "heads": list(heads),
        "rows": [list(row) for row in rows],
    }


def with_notes(text: str, notes: Sequence[str]) -> str:
    """A text, and what was warned of as sentences."""
    return " ".join([text, *(f"{each[:1].upper()}{each[1:]}." for each in notes)]).strip()


def range_text(low: float, high: float) -> str:
    return "" if low == high else f"{low:.1%} to {high:.1%}"


@contextmanager
def noting(notes: list[str]) -> Iterator[None]:
    """Collect what is warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    notes += [readable(str(each.message), 300) for each in caught]


# --- a sample first -------------------------------------------------------------------------------


def is_worth_a_sample(plan: Plan, options: Options) -> bool:
    """Whether a check is long or costs something, and keeps the answers of a sample."""
    return (
        plan.to_submit > 2 * SAMPLE
        and options.journal is not None
        and not is_verified_whole(options)
    )


def check_sample(prepared: Prepared, options: Options) -> dict[str, Any]:
    """What to expect of the whole list, from the answers to a sample.

    They are in the journal, and not paid again.

    Domains are looked up first where this computer checks; a person who chose a service did not ask
    for it.
    """
    texts, notes = prepared.read["text"], list[str]()
    if "wanted" in prepared.read.schema.names:
        texts = texts.filter(prepared.read["wanted"])
    with noting(notes):
        found = estimate(
            pa.table({"email": texts}),
            "email",
            sample=SAMPLE,
            mx="all" if isinstance(options.backend, LocalBackend) or options.screen else None,
            validation_type=options.validation_type,
            backend=options.backend,
            journal=options.journal,
            screen=options.screen,  # type: ignore[arg-type]  # it was checked
            clean=False,
            progress=False,
        )
    rows = [
        (
            LINE_LABELS[line],
            percent(row["share"], 1.0),
            range_text(row["low"], row["high"]),
            f"{row['rows']:,}",
        )
        for line, row in zip(found.shares.index, found.shares.to_dict("records"), strict=True)
        if row["rows"] or line in tuple(Verdict)
    ]
    text = f"What to expect of the whole list, {found.origin}. To check it whole: {found.cost}."
    valid = percent(float(found.shares["share"][str(Verdict.VALID)]), 1.0)
    return {**table_of(text, SAMPLE_HEADS, rows, notes), "valid": valid}


# --- operators ------------------------------------------------------------------------------------


def count_operators(listing: Listing) -> dict[str, Any] | None:
    """Who runs the mailboxes, and how many of their addresses got a clear answer.

    None where nothing is known.
    """
    counts = OperatorCounts()
    counts.add(listing.rows.results(("operator",)))
    found = counts.table(MAX_OPERATORS)
    if not len(found):
        return None
    more, known = len(counts.by_name) - len(found), known_operators()
    text = (
        f"The {len(found)} largest of {count_of(len(counts.by_name), 'operator')}." if more else ""
    )
    rows = [
        (
            known[name][0].name
            if name in known
            else "The domains themselves"
            if name == SELF
            else readable(name),
            f"{row['addresses']:,}",
            f"{row['clear']:,} ({percent(row['clear'], row['addresses'])})",
            row["note"] or "",
        )
        for name, row in zip(found.index, found.to_dict("records"), strict=True)
    ]
    return table_of(text, OPERATOR_HEADS, rows, ())


# --- bounces --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Bounced:
    """What a sender's export says about a result."""

    table: dict[str, Any]
    gone: Rows  # whose mailbox or domain does not exist
    reports: pd.DataFrame  # what `read_bounces` gave, of all exports
    is_complete: bool = False  # whether a person said that all bounces have come


def read_outcomes(path: Path, name: str, listing: Listing, earlier: Bounced | None) -> Bounced:
    """Compare the verdicts with what became of the mails, by an export and those before.

    Mailed are the rows that have a wave; where none has, the rows to send, and all that have a
    report.
    """
    shown, column, notes = readable(name), listing.column, list[str]()
    with noting(notes):
        try:
            bounces = read_bounces(path)
        except MailVerdictError as exc:
            raise type(exc)(str(exc).replace(str(path), shown)) from None
    rows = read_decided(listing.rows.to_frame(columns=READ), column, None)
    older = find_older_reports(listing.rows.to_frame(columns=READ), column, bounces)
    if older.any():
        told = describe_older(int(older.sum()))
        if older.all():
            raise InputError(f"{shown}: {told}")
        notes.append(f"{told}, so that they do not count")
        bounces = bounces[~older]
    mailed = listing.rows.wave > 0
    new = match_outcomes(rows, bounces, mailed=pd.Series(mailed) if mailed.any() else None)
    if not new.matched:
        where = "was mailed in a wave of this list" if mailed.any() else "is in this list"
        raise InputError(f"{shown}: none of its {count_of(new.unmatched, 'address')} {where}")
    if earlier is not None:
        bounces = pd.concat([earlier.reports, bounces], ignore_index=True).drop_duplicates()
        shown += " with the exports before"
    if not mailed.any():
        reported = match_outcomes(rows, bounces)
        mailed = np.logical_or.reduce(
            [listing.action == ACTIONS.index("send"), *reported.has.values()]
        )
    found = match_outcomes(rows, bounces, mailed=pd.Series(mailed))
    counts = count_outcomes(found, np.array([""] * len(rows), object)).loc[["verdict"]].droplevel(0)
    lines = [
        (
            LABELS[str(verdict)],
            f"{row['mailed']:,}",
            f"{row['hard']:,}",
            percent(row["hard"], row["mailed"]),
            range_text(row["low"], row["high"]),
            f"{row['blocked']:,}",
            f"{row['soft']:,}",
        )
        for verdict, row in zip(counts.index, counts.to_dict("records"), strict=True)
        if row["mailed"]
    ]
    gone = np.flatnonzero(found.has[Outcome.HARD] & found.is_mailed)
    people = len({found.keys[row] for row in gone.tolist()})
    others = f", and {count_of(found.unmatched, 'other')}" if found.unmatched else ""
    text = f"{shown} has {count_of(found.matched, 'address')} of this list{others}. "
    text += f"{count_of(people, 'mailbox does', 'mailboxes do')} not exist any more."
    return Bounced(table_of(text, BOUNCE_HEADS, lines, notes), gone, bounces)


# --- waves ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlannedWave:
    """A wave as the page shows it."""

    number: int
    rows: Rows
    text: str  # what to expect of it, and what is wrong
    can_pilot: bool = False  # no row is sure enough, and a few would teach something
    can_resume: bool = False  # rows wait since the last wave was blocked or complained about
    planned_at: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))


NO_WAVE = PlannedWave(0, np.array([], np.int64), "")


def plan_wave(
    listing: Listing, bounced: Bounced | None, *, pilot: bool = False, resume: bool = False
) -> PlannedWave:
    """The rows of the next wave, and what to expect of it.

    `bounced` has the reports of those before.
    """
    frame = listing.rows.to_frame(columns=READ)
    column = listing.column
    last = int(listing.rows.wave.max(initial=0))
    known = Experience()
    if bounced is not None and last:
        with noting([]):  # what is not learnt is said below
            known = learn(frame, column, bounced.reports, complete=bounced.is_complete)
    with noting([]):  # the warnings are also in the plan
        plan = mailing(
            frame,
            column,
            max_bounce_rate=BUDGET,
            waves=max(WAVES, last + 1),
            experience=known,
            pilot=PILOT if pilot else None,
            resume=resume,
        )
    notes = list[str]()
    if plan.not_learnt:
        way = "If all bounces have come, say so at Bounces"
        if bounced is None:
            way = "Give its bounces first"
        numbers = ", ".join(map(str, plan.not_learnt))
        notes.append(
            f"No report is about wave {numbers}, so that nothing is learnt from it. {way};"
            " if it was not mailed, undo it"
        )
    notes += plan.warnings
    is_next = plan.frame[label_of(column, None, "wave")] == plan.wave
    rows = np.flatnonzero(is_next.fillna(False).to_numpy(np.bool_))
    expected, low, high = plan.expected
    forecast = ""
    if len(rows):
        forecast = (
            f"{count_of(round(expected), 'hard bounce')} expected, {low:,.0f} to {high:,.0f}. "
        )
    text = f"Wave {plan.wave} of {plan.waves}: {count_of(len(rows), 'row')}. {forecast}{plan.why}"
    return PlannedWave(
        plan.wave,
        rows,
        with_notes(text, notes),
        can_pilot=not len(rows) and plan.can_pilot,
        can_resume=plan.can_resume,
    )


# --- where invalid addresses come from ------------------------------------------------------------


MAX_SENTENCES = 12
MAX_GROUPS = 12  # of a column that are shown at once
LONGEST = 200


def count_origins(listing: Listing, *, is_decided: bool = False) -> ListCounts:
    """The people of a result by its other columns.

    With `is_decided` as policy and decisions have it.
    """
    rows, column = listing.rows, listing.column
    own = [listing.address_at, *listing.own_columns]
    table = Table(rows.frame.iloc[:, own], column)
    counts = ListCounts(listing.policy if is_decided else POLICIES["balanced"])
    if is_decided:
        counts.add(read_decided(rows.to_frame(columns=CORE), column, None), table)
    else:
        counts.add(rows.results(), table)
    return counts


class Origins:
    """What the other columns of a result say, and the groups of the one that is looked at."""

    def __init__(self, listing: Listing) -> None:
        counts = count_origins(listing)
        self.findings = rank(counts, "invalid")
        self.table = RankTable.of(self.findings, counts, "invalid")
        names: list[Any] = list(listing.rows.frame.columns)
        self.place_of = {finding.name: names.index(finding.name) for finding in self.findings}
        self.shown = [finding for finding in self.findings if finding.groups is not None]

    def to_json(self, listing: Listing, chosen: int | None) -> dict[str, Any] | None:
        """What the page shows; None where there is nothing to look at.

        `chosen` is the position of a column.
        """
        if not self.shown:
            return None
        by_place = {self.place_of[finding.name]: finding for finding in self.shown}
        looked_at = by_place.get(-1 if chosen is None else chosen, self.shown[0])
        at = self.place_of[looked_at.name]
        pressed = listing.chosen["group"]
        found = []
        for finding in self.shown:
            for text, group in zip((finding.worst, finding.best), finding.ends, strict=True):
                if finding.is_found and text is not None and finding.groups is not None:
                    value = group_value(self.place_of[finding.name], finding.groups.labels[group])
                    found.append(
                        {"id": value, "text": short_text(text, LONGEST), "on": value in pressed}
                    )
        assert looked_at.groups is not None
        rest = other_sentences(self.table)
        return {
            "headline": f"{headline(self.table)}.",
            "found": found[:MAX_SENTENCES],
            "rest": [short_text(f"{line[:1].upper()}{line[1:]}.", 2 * LONGEST) for line in rest],
            "columns": [
                {"id": place, "label": printable_label(finding.name)}
                for place, finding in by_place.items()
            ],
            "column": at,
            "name": short_text(shown_name(looked_at.name), LONGEST),
            "groups": groups_part(looked_at.groups, at, pressed),
            "more": max(len(looked_at.groups.labels) - MAX_GROUPS, 0),
        }


def groups_part(groups: Groups, at: int, pressed: set[str]) -> list[dict[str, Any]]:
    """The groups of a column, each with its figures; pressed ones filter the rows."""
    people = people_in(groups.counts)
    bad = people_that(groups.counts, "invalid")
    low, high = wilson_intervals(bad, people)
    others = elsewhere(people, bad)
    order = [place for place in group_order(groups, "invalid") if people[place]][:MAX_GROUPS]
    largest = max((float(bad[place] / people[place]) for place in order), default=0.0) or 1.0
    parts = []
    for place in order:
        value = group_value(at, groups.labels[place])
        share = float(bad[place] / people[place])
        parts.append(
            {
                "id": value,
                "label": short_text(groups.labels[place], 80),
                "share": share / largest,
                "percent": percent(int(bad[place]), int(people[place])),
                "interval": f"{low[place]:.1%} to {high[place]:.1%}",
                "people": f"{int(people[place]):,}",
                "elsewhere": "" if others[place] != others[place] else f"{others[place]:.1%}",
                "on": value in pressed,
            }
        )
    return parts
