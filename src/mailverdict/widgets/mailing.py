"""What a list means for a mailing, and where its invalid addresses come from.

A sample first, who runs the mailboxes, what bounces say, what to mail next: each makes a table for
the page: a sentence, heads, and rows of texts.
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
from ..frames.policy import POLICIES
from ..local.backend import LocalBackend
from ..mailings.estimate import LINE_LABELS, estimate, is_verified_whole
from ..mailings.experience import Experience
from ..mailings.learn import describe_older, find_older_reports, learn
from ..mailings.waves import mailing
from ..model.words import ACTIONS, Verdict, capitalize, count_of, percent
from ..reports.breakdown import RankTable, group_order, headline, other_sentences
from ..reports.by_operator import OperatorCounts
from ..reports.differences import elsewhere, wilson_intervals
from ..reports.groups import Groups
from ..reports.origins import ListCounts, rank, shown_name
from ..reports.outcomes import OutcomeRows, count_outcomes, match_outcomes
from ..runs.options import Options
from ..runs.plan import Plan
from ..table.columns import COLUMNS, label_of
from ..table.table import Table
from ..theme import LABELS
from .listing import Listing, Rows, group_value
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
    sentences = [f"{capitalize(note)}." for note in notes]
    return " ".join([text, *sentences]).strip()


def range_text(low: float, high: float) -> str:
    if low == high:
        return ""
    return f"{low:.1%} to {high:.1%}"


@contextmanager
def noting(notes: list[str]) -> Iterator[None]:
    """Collect what is warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        notes.append(readable(str(warning.message), 300))


# --- a sample first -------------------------------------------------------------------------------


def is_worth_a_sample(plan: Plan, options: Options) -> bool:
    """Whether a check is long or costs something, and keeps the answers of a sample."""
    if options.journal is None or is_verified_whole(options):
        return False
    return plan.to_submit > 2 * SAMPLE


def check_sample(prepared: Prepared, options: Options) -> dict[str, Any]:
    """What to expect of the whole list, from the answers to a sample.

    They are in the journal, and not paid again.

    Domains are looked up first where this computer checks; a person who chose a service did not ask
    for it.
    """
    texts = prepared.read["text"]
    if "wanted" in prepared.read.schema.names:
        texts = texts.filter(prepared.read["wanted"])
    mx = None
    if options.screen or isinstance(options.backend, LocalBackend):
        mx = "all"
    notes: list[str] = []
    with noting(notes):
        expected = estimate(
            pa.table({"email": texts}),
            "email",
            sample=SAMPLE,
            mx=mx,
            validation_type=options.validation_type,
            backend=options.backend,
            journal=options.journal,
            screen=options.screen,  # type: ignore[arg-type]  # it was checked
            clean=False,
            progress=False,
        )
    rows = []
    for line, share in expected.shares.to_dict("index").items():
        if not share["rows"] and line not in tuple(Verdict):
            continue
        row = (
            LINE_LABELS[str(line)],
            percent(share["share"], 1.0),
            range_text(share["low"], share["high"]),
            f"{share['rows']:,}",
        )
        rows.append(row)
    text = (
        f"What to expect of the whole list, {expected.origin}. To check it whole: {expected.cost}."
    )
    valid = float(expected.shares["share"][str(Verdict.VALID)])
    return {**table_of(text, SAMPLE_HEADS, rows, notes), "valid": percent(valid, 1.0)}


# --- operators ------------------------------------------------------------------------------------


def count_operators(listing: Listing) -> dict[str, Any] | None:
    """Who runs the mailboxes, and how many of their addresses got a clear answer.

    None where nothing is known.
    """
    counts = OperatorCounts()
    counts.add(listing.rows.results(("operator",)))
    largest = counts.table(MAX_OPERATORS)
    if not len(largest):
        return None
    operators = len(counts.by_name)
    text = ""
    if operators > len(largest):
        text = f"The {len(largest)} largest of {count_of(operators, 'operator')}."
    rows = []
    for name, figures in largest.to_dict("index").items():
        clear = figures["clear"]
        addresses = figures["addresses"]
        row = (
            operator_label(str(name)),
            f"{addresses:,}",
            f"{clear:,} ({percent(clear, addresses)})",
            figures["note"] or "",
        )
        rows.append(row)
    return table_of(text, OPERATOR_HEADS, rows, ())


def operator_label(name: str) -> str:
    """An operator for people."""
    known = known_operators()
    if name in known:
        return known[name][0].name
    if name == SELF:
        return "The domains themselves"
    return readable(name)


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
    shown = readable(name)
    notes: list[str] = []
    with noting(notes):
        try:
            bounces = read_bounces(path)
        except MailVerdictError as exc:
            raise type(exc)(str(exc).replace(str(path), shown)) from None
    rows = listing.rows.decided(columns=READ)
    frame = listing.rows.to_frame(columns=READ)
    older = find_older_reports(frame, listing.column, bounces)
    if older.any():
        told = describe_older(int(older.sum()))
        if older.all():
            raise InputError(f"{shown}: {told}")
        notes.append(f"{told}, so that they do not count")
        bounces = bounces[~older]
    mailed = listing.rows.wave > 0
    has_waves = bool(mailed.any())
    in_wave = pd.Series(mailed) if has_waves else None
    new = match_outcomes(rows, bounces, mailed=in_wave)
    if not new.matched:
        where = "was mailed in a wave of this list" if has_waves else "is in this list"
        raise InputError(f"{shown}: none of its {count_of(new.unmatched, 'address')} {where}")
    if earlier is not None:
        bounces = pd.concat([earlier.reports, bounces], ignore_index=True).drop_duplicates()
        shown += " with the exports before"
    if not has_waves:
        mailed = listing.action == ACTIONS.index("send")
        for is_reported in match_outcomes(rows, bounces).has.values():
            mailed = mailed | is_reported
    outcomes = match_outcomes(rows, bounces, mailed=pd.Series(mailed))
    gone = np.flatnonzero(outcomes.has[Outcome.HARD] & outcomes.is_mailed)
    people = len({outcomes.keys[row] for row in gone.tolist()})
    others = ""
    if outcomes.unmatched:
        others = f", and {count_of(outcomes.unmatched, 'other')}"
    text = (
        f"{shown} has {count_of(outcomes.matched, 'address')} of this list{others}."
        f" {count_of(people, 'mailbox does', 'mailboxes do')} not exist any more."
    )
    table = table_of(text, BOUNCE_HEADS, bounce_lines(outcomes), notes)
    return Bounced(table, gone, bounces)


def bounce_lines(outcomes: OutcomeRows) -> list[tuple[str, ...]]:
    """What became of the mails, by verdict."""
    one_group = np.array([""] * len(outcomes.is_mailed), object)
    counts = count_outcomes(outcomes, one_group).loc[["verdict"]].droplevel(0)
    lines: list[tuple[str, ...]] = []
    for verdict, row in counts.to_dict("index").items():
        if not row["mailed"]:
            continue
        line = (
            LABELS[str(verdict)],
            f"{row['mailed']:,}",
            f"{row['hard']:,}",
            percent(row["hard"], row["mailed"]),
            range_text(row["low"], row["high"]),
            f"{row['blocked']:,}",
            f"{row['soft']:,}",
        )
        lines.append(line)
    return lines


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
    notes: list[str] = []
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
    forecast = ""
    if len(rows):
        expected, low, high = plan.expected
        bounces = count_of(round(expected), "hard bounce")
        forecast = f"{bounces} expected, {low:,.0f} to {high:,.0f}. "
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
    rows = listing.rows
    own = rows.frame.iloc[:, [listing.address_at, *listing.own_columns]]
    if is_decided:
        counts = ListCounts(listing.policy)
        results = rows.decided()
    else:
        counts = ListCounts(POLICIES["balanced"])
        results = rows.results()
    counts.add(results, Table(own, listing.column))
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
        looked_at = self.shown[0]
        columns = []
        for finding in self.shown:
            place = self.place_of[finding.name]
            columns.append({"id": place, "label": printable_label(finding.name)})
            if place == chosen:
                looked_at = finding
        place = self.place_of[looked_at.name]
        assert looked_at.groups is not None
        pressed = listing.chosen["group"]
        rest = [f"{capitalize(line)}." for line in other_sentences(self.table)]
        return {
            "headline": f"{headline(self.table)}.",
            "found": self.sentences(pressed)[:MAX_SENTENCES],
            "rest": [short_text(line, 2 * LONGEST) for line in rest],
            "columns": columns,
            "column": place,
            "name": short_text(shown_name(looked_at.name), LONGEST),
            "groups": groups_part(looked_at.groups, place, pressed),
            "more": max(len(looked_at.groups.labels) - MAX_GROUPS, 0),
        }

    def sentences(self, pressed: set[str]) -> list[dict[str, Any]]:
        """What is said about the worst and the best group of each column; each filters the rows."""
        parts = []
        for finding in self.shown:
            if not finding.is_found or finding.groups is None:
                continue
            place = self.place_of[finding.name]
            for text, group in zip((finding.worst, finding.best), finding.ends, strict=True):
                if text is None:
                    continue
                value = group_value(place, finding.groups.labels[group])
                parts.append(
                    {"id": value, "text": short_text(text, LONGEST), "on": value in pressed}
                )
        return parts


def groups_part(groups: Groups, place: int, pressed: set[str]) -> list[dict[str, Any]]:
    """The groups of the column at a place, each with its figures; pressed ones filter the rows."""
    people = groups.people
    bad = groups.people_that("invalid")
    low, high = wilson_intervals(bad, people)
    others = elsewhere(people, bad)
    order = [group for group in group_order(groups, "invalid") if people[group]][:MAX_GROUPS]
    largest = max((float(bad[group] / people[group]) for group in order), default=0.0) or 1.0
    parts = []
    for group in order:
        label = groups.labels[group]
        value = group_value(place, label)
        share = float(bad[group] / people[group])
        elsewhere_text = ""
        if not np.isnan(others[group]):
            elsewhere_text = f"{others[group]:.1%}"
        part = {
            "id": value,
            "label": short_text(label, 80),
            "share": share / largest,
            "percent": percent(int(bad[group]), int(people[group])),
            "interval": f"{low[group]:.1%} to {high[group]:.1%}",
            "people": f"{int(people[group]):,}",
            "elsewhere": elsewhere_text,
            "on": value in pressed,
        }
        parts.append(part)
    return parts
