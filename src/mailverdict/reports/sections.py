"""A report as a list of sections, for the page and for the workbook.

Each function makes a section out of `ReportFacts`: a title, columns with their kinds, and rows that
a page and a workbook render in their own way::

    Section("Verdicts", (("Verdict", "badge"), ("Rows", "number"), ("Share of rows", "share")),
            [("valid", 2985, 0.746), ("invalid", 412, 0.103), ...])

`sections_of` has their order, for an analyst and for a manager. A section without rows, sentences
and notes is left out.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..model.section import Section, what_to_do
from ..model.words import (
    DECISION_LABELS,
    SOURCE_MEANING,
    Verdict,
    capitalize,
    count_of,
    reason_label,
)
from ..repair.repair import ACCEPTED
from ..theme import MARK_OF, MARKS
from .breakdown import RankTable, group_order, other_sentences
from .differences import elsewhere, wilson_intervals
from .facts import RETRY_WHEN, CleaningFacts, OutcomeFacts, ReportFacts, TrendFacts
from .groups import Groups
from .origins import shown_name
from .summary import MEANING_OF_VALID
from .wording import (
    CHECKS,
    REASONLESS,
    another_check,
    days_of_earlier,
    meaning_of_actions,
    repair_label,
)

MAIN_REASONS = 5  # on the page for a manager
MAIN_COLUMNS = 3  # that say most about where invalid addresses come from
MANY_COLUMNS = 12
MANY_GROUPS = 100
MAIN_GROUPS = 6  # on the page for a manager
# Columns that several sections have.
VERDICT = ("Verdict", "badge")
ROWS = ("Rows", "number")
SHARE = ("Share of rows", "share")
BAR = ("", "bar")
GROUP_COLUMNS = (
    ("Group", "data"),
    ("People", "number"),
    ("Invalid", "share"),
    ("95% from", "share"),
    ("95% to", "share"),
    ("", "interval"),
    ("Elsewhere", "share"),
    ("Can be mailed", "share"),
)


PICTURE = -3  # the place of the interval in `GROUP_COLUMNS`, from the end


def sections_of(facts: ReportFacts) -> Iterator[Sequence[Sequence[Section]]]:
    """The sections from top to bottom, in columns that stand side by side if there is room."""
    yield [[what_to_do(facts.counts.actions, meaning_of_actions(facts.counts))]]
    if facts.audience == "manager":
        trend = []
        if facts.trend is not None:
            trend.append(without(then_and_now(facts, facts.trend), "Share then", "Share now"))
        yield [[main_reasons(facts)], trend]
        groups = [where_from(facts), *asked_groups(facts)]
        yield [[main_groups(section) for section in groups]]
        yield [[method(facts)]]
        return
    yield [[decided_by_hand(facts)]]
    yield [[reasons(facts), flags(facts)]]
    yield [[where_from(facts), *asked_groups(facts), *found_groups(facts)]]
    yield [[clean_first(facts), verify_again(facts)], [typos(facts)]]
    if facts.cleaning is not None:
        yield [[before_and_after(facts, facts.cleaning)], [repairs(facts.cleaning)]]
    if facts.trend is not None:
        yield [[then_and_now(facts, facts.trend)], [moves(facts.trend)]]
    if facts.outcomes is not None:
        yield [[outcomes(facts.outcomes), wrong_verdicts(facts.outcomes)]]
    yield [[domains(facts)]]
    yield [[method(facts)]]


def share(count: int, whole: int) -> float:
    if not whole:
        return 0.0
    return count / whole


def verdicts(facts: ReportFacts) -> Section:
    """What a page shows as a picture."""
    rows = []
    for name, count in facts.counts.lines.items():
        rows.append((name, count, share(count, facts.counts.rows)))
    return Section("Verdicts", (VERDICT, ROWS, SHARE), rows)


def reasons(facts: ReportFacts) -> Section:
    """Why the other rows cannot simply be mailed."""
    most = max((count for *_, count in facts.reasons), default=0)
    rows = []
    for bucket, reason, meaning, count in facts.reasons:
        row = (
            reason_label(reason),
            MARK_OF[bucket],
            count,
            share(count, facts.counts.rows),
            (bucket, share(count, most)),
            capitalize(meaning),
        )
        rows.append(row)
    columns = (("Reason", "text"), VERDICT, ROWS, SHARE, BAR, ("What it means", "words"))
    return Section("Why not the others", columns, rows)


def main_reasons(facts: ReportFacts) -> Section:
    """The most frequent reasons, and what the others are together."""
    whole = reasons(facts)
    others = sum(count for *_, count in facts.reasons[MAIN_REASONS:])
    notes = []
    if others:
        notes.append(f"{count_of(others, 'more row has', 'more rows have')} other reasons.")
    most = replace(whole, rows=whole.rows[:MAIN_REASONS], notes=notes)
    return without(most, "", "What it means")


def flags(facts: ReportFacts) -> Section:
    title = "Rows by flag, whatever their verdict"
    columns = (("Flag", "text"), ROWS)
    rows = []
    for flag, count in facts.counts.flags.items():
        if count:
            rows.append((reason_label(flag), count))
    return Section(title, columns, rows, is_line=True)


def decided_by_hand(facts: ReportFacts) -> Section:
    """What a person decided about single rows, whatever the policy says."""
    counts = facts.counts.decisions
    sentences = []
    for word, count in counts.items():
        if count:
            sentences.append(f"{DECISION_LABELS[word]}: {count_of(count, 'row')}")
    rows = []
    for typed, word, meant in facts.counts.decided:
        rows.append((typed, DECISION_LABELS.get(word, word), meant))
    notes = []
    whole = sum(counts.values())
    if whole > len(rows):
        notes.append(f"The first {len(rows)} of {count_of(whole, 'row')}.")
    columns = (("As typed", "data"), ("Decision", "text"), ("Suggestion", "data"))
    return Section("Decided by hand", columns, rows, said="; ".join(sentences), notes=notes)


def clean_first(facts: ReportFacts) -> Section:
    causes = facts.counts.causes
    rows = []
    if causes["clean"]:
        what = "One address with something around it, or in another form"
        rows.append(("Clean", causes["clean"], what))
    if causes["explode"]:
        what = "Several addresses in one cell: one row for each"
        rows.append(("Split", causes["explode"], what))
    columns = (("Step", "text"), ROWS, ("What they hold", "words"))
    return Section("Clean the list first", columns, rows)


def verify_again(facts: ReportFacts) -> Section:
    """The rows without a clear answer, when it makes sense to ask again, and how."""
    unknown = facts.unanswered
    rows = f"the {count_of(unknown, 'row')} without a clear answer"
    how = f"The answers of this check are not kept. Verify the whole list again for {rows}:"
    if facts.kept:
        how = (
            f"The audit page keeps clear answers {facts.kept}: “Ask again” there asks only about "
            f"{rows}. Elsewhere:"
        )
    elif facts.is_kept:
        how = (
            "Clear answers are kept, by default for 30 days. "
            f"Verify again, and only {rows} are asked about:"
        )
    whys = facts.counts.by("bucket", "why")
    lines = []
    for reason, when in RETRY_WHEN.items():
        count = whys[str(Verdict.UNKNOWN), str(reason)]
        if count:
            lines.append((reason_label(reason), count, when))
    columns = (("Reason", "text"), ROWS, ("When", "words"))
    notes = []
    if unknown:
        notes.append(how)
    return Section("Verify again", columns, lines, notes=notes, command=facts.command)


def typos(facts: ReportFacts) -> Section:
    columns = (("Typed", "data"), ("Probably meant", "data"), ROWS)
    return Section("Correct likely typos", columns, facts.typos)


def before_and_after(facts: ReportFacts, cleaning: CleaningFacts) -> Section:
    """What could be mailed before and after cleaning."""
    sent = facts.counts.actions["send"]
    counts = {"As the list came": sent - cleaning.sendable, "After cleaning": sent}
    rows = []
    for when, count in counts.items():
        part = share(count, facts.counts.rows)
        rows.append((when, count, part, ("send", part)))
    columns = (("Can be mailed", "text"), ROWS, SHARE, BAR)
    cleaned = count_of(cleaning.rows, "cell was", "cells were")
    rescued = count_of(cleaning.rescued, "cell")
    said = f"{cleaned} cleaned before the check. Without that, {rescued} would have been invalid."
    return Section("Before and after cleaning", columns, rows, said=said)


def repairs(cleaning: CleaningFacts) -> Section:
    rows = []
    for name, example, count in cleaning.repairs:
        rows.append((repair_label(name), example, count))
    columns = (("Repair", "words"), ("Example", "code"), ("Cells", "number"))
    return Section("Cells that were cleaned", columns, rows)


def where_from(facts: ReportFacts) -> Section:
    """The columns whose groups differ, with the worst group; for an analyst also the best."""
    if facts.origins is None or not facts.findings:
        return Section("")
    findings = [finding for finding in facts.findings if finding.is_found]
    notes = []
    if facts.audience == "manager":
        if not findings:
            return Section("")
        findings = findings[:MAIN_COLUMNS]
        ends = "The worst group"
        shown = 1
    else:
        findings = findings[:MANY_COLUMNS]
        ends = "The worst and the best group"
        shown = 2
        table = RankTable.of(facts.findings, facts.origins, "invalid")
        notes = [f"{capitalize(note)}." for note in other_sentences(table)]
    rows = []
    for finding in findings:
        assert finding.groups is not None
        lines = group_lines(finding.groups)
        for group in finding.ends[:shown]:
            rows.append((shown_name(finding.name), *lines[group]))
    said = ""
    if findings:
        said = f"{ends} of each column whose groups differ in invalid addresses."
    columns = (("Column", "data"), *GROUP_COLUMNS)
    return Section("Where they come from", columns, with_largest(rows), said=said, notes=notes)


def main_groups(section: Section) -> Section:
    """Groups for a manager: the first ones, whose intervals are in the picture only."""
    notes = section.notes
    if len(section.rows) > MAIN_GROUPS:
        notes = [f"The first {MAIN_GROUPS} of {len(section.rows):,}.", *section.notes]
    short = replace(section, rows=section.rows[:MAIN_GROUPS], notes=notes)
    return without(short, "95% from", "95% to")


def without(section: Section, *labels: str) -> Section:
    """The section without some columns, for a page on which there is little room."""
    places = []
    for place, (label, _) in enumerate(section.columns):
        if label not in labels:
            places.append(place)
    columns = [section.columns[place] for place in places]
    rows = [[row[place] for place in places] for row in section.rows]
    return replace(section, columns=columns, rows=rows)


def found_groups(facts: ReportFacts) -> list[Section]:
    """The groups of the columns that say most."""
    findings = [finding for finding in facts.findings if finding.is_found]
    sections = []
    for finding in findings[:MAIN_COLUMNS]:
        assert finding.groups is not None
        sections.append(groups_section(finding.name, finding.groups))
    return sections


def asked_groups(facts: ReportFacts) -> list[Section]:
    if facts.origins is None:
        return []
    sections = []
    for name, counts in facts.origins.asked.items():
        sections.append(groups_section(name, counts.cut()))
    return sections


def groups_section(name: Hashable, groups: Groups) -> Section:
    """The groups of a column, first those with the most invalid addresses above the average."""
    people = groups.people
    lines = group_lines(groups)
    rows = [lines[group] for group in group_order(groups, "invalid") if people[group]]
    notes = []
    if len(rows) > MANY_GROUPS:
        notes.append(f"The first {MANY_GROUPS} of {len(rows):,}.")
    if groups.note:
        notes.append(f"{capitalize(groups.note)}.")
    notes.append("People, each counted once. The dashed mark is the share among all others.")
    rows = with_largest(rows[:MANY_GROUPS])
    return Section(f"By {shown_name(name)}", GROUP_COLUMNS, rows, notes=notes)


def group_lines(groups: Groups) -> list[tuple[Any, ...]]:
    """The cells of each group, by `GROUP_COLUMNS`; the picture lacks the largest share."""
    people = groups.people
    bad = groups.people_that("invalid")
    low, high = wilson_intervals(bad, people)
    others = elsewhere(people, bad)
    sendable = groups.people_that("sendable")
    lines = []
    for group, label in enumerate(groups.labels):
        size = int(people[group])
        share_of_bad = share(int(bad[group]), size)
        interval = (share_of_bad, float(low[group]), float(high[group]))
        other = float(others[group])
        share_of_sendable = share(int(sendable[group]), size)
        lines.append((label, size, *interval, (*interval, other), other, share_of_sendable))
    return lines


def with_largest(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows with pictures of one scale."""
    largest = 1.0
    if rows:
        largest = max(row[PICTURE][2] for row in rows)
    scaled = []
    for row in rows:
        cells = list(row)
        cells[PICTURE] = (*row[PICTURE], largest)
        scaled.append(tuple(cells))
    return scaled


def then_and_now(facts: ReportFacts, then: TrendFacts) -> Section:
    """The list against an earlier audit."""
    now = facts.counts
    marks_then = by_mark(then.counts.lines)
    marks_now = by_mark(now.lines)
    rows = []
    for name in MARKS:
        before = marks_then[name]
        after = marks_now[name]
        share_then = share(before, then.counts.rows)
        share_now = share(after, now.rows)
        rows.append((name, before, after, after - before, share_then, share_now))
    columns = (
        VERDICT,
        ("Then", "number"),
        ("Now", "number"),
        ("Change", "change"),
        ("Share then", "share"),
        ("Share now", "share"),
    )
    added = count_of(then.added, "address is", "addresses are")
    changed = count_of(then.changed, "address has", "addresses have")
    said = f"{added} new, {then.removed:,} left the list, and {changed} another verdict."
    other = another_check(then.counts.validation_types, now.validation_types)
    title = f"Since the earlier audit ({days_of_earlier(then.counts.checked)})"
    return Section(title, columns, rows, said=f"{said} {other}".strip())


def by_mark(counts: dict[str, int]) -> dict[str, int]:
    """Rows of the lines of a summary by verdict, and those that were not checked together."""
    marked = dict.fromkeys(MARKS, 0)
    for name, count in counts.items():
        marked[MARK_OF[name]] += count
    return marked


def moves(then: TrendFacts) -> Section:
    columns = (("Verdict then", "badge"), ("Now", "badge"), ("Addresses", "number"))
    return Section("Changed verdicts", columns, then.moves)


OUTCOMES = {  # columns of `outcomes` with their labels and kinds
    "mailed": ("Mailed", "number"),
    "hard": ("Hard bounces", "number"),
    "rate": ("Share of mailed", "share"),
    "low": ("95% from", "share"),
    "high": ("95% to", "share"),
    "blocked": ("Blocked", "number"),
    "soft": ("Soft", "number"),
    "complaint": ("Complaints", "number"),
}


def outcomes(facts: OutcomeFacts) -> Section:
    """What became of the mails: hard bounces by verdict, reason and action."""
    counts = facts.counts.reset_index().to_dict("records")
    counts.sort(key=lambda row: row["by"] == "reason")
    rows = []
    for row in counts:
        if row["mailed"]:
            cells = [row[name] for name in OUTCOMES]
            rows.append((group_label(row["by"], row["value"]), *cells))
    notes = [
        f"Distinct addresses. {facts.matched:,} of them have a report; "
        f"reports on {facts.unmatched:,} other addresses are not counted.",
        "Blocked mails were refused because of the sender and say nothing about the address.",
    ]
    columns = (("Group", "text"), *OUTCOMES.values())
    return Section("Was the verdict right?", columns, rows, notes=notes)


def group_label(by: str, value: str) -> str:
    label = REASONLESS if value == "none" else reason_label(value)
    return f"{capitalize(by)}: {label}"


def wrong_verdicts(facts: OutcomeFacts) -> Section:
    """The rows whose verdict was wrong, each with what the mail server said."""
    columns = [("Address", "data"), ("Verdict and outcome", "text")]
    if any(message for *_, message in facts.contradicted):
        columns.append(("The mail server's message", "data"))
    rows = [row[: len(columns)] for row in facts.contradicted]
    notes = []
    if facts.contradicted_rows > len(rows):
        notes.append(f"The first {len(rows)}.")
    wrong = count_of(facts.contradicted_rows, "row has", "rows have")
    return Section(f"{wrong} a verdict that was wrong", columns, rows, notes=notes)


def domains(facts: ReportFacts) -> Section:
    """The largest domains, each with its verdicts."""
    rows = []
    for domain, counts in facts.domains.to_dict("index").items():
        whole = counts.pop("rows")
        part = share(whole, facts.counts.rows)
        rows.append((domain, whole, part, share(counts["valid"], whole), counts))
    columns = (("Domain", "data"), ROWS, SHARE, ("Valid", "share"), ("Verdicts", "bars"))
    return Section("Largest domains", columns, rows)


def method(facts: ReportFacts) -> Section:
    """How the rows were checked, and what the result does not say."""
    is_short = facts.audience == "manager"
    notes = []
    for kind, label in CHECKS.items():
        if kind in facts.counts.validation_types:
            notes.append(f"{label}: {MEANING_OF_VALID[kind]}.")
    if facts.is_check_unknown:
        notes.append(
            "The table does not record which check was made. "
            "“Valid” therefore means at least that the address is well "
            "formed; whether its domain receives mail and its mailbox exists depends on the check."
        )
    if facts.answered_by:
        notes.append(f"The answers come from {facts.answered_by}.")
    if facts.sources and not is_short:
        sources = []
        for word, count in facts.sources.items():
            meaning = SOURCE_MEANING.get(word, f"answered by {word}")
            sources.append(f"{count:,} {meaning}")
        notes.append(f"Rows by the source of their answer: {', '.join(sources)}.")
    notes.append(
        "“Unknown”: it was checked, without a clear answer; that does not mean “probably invalid”."
    )
    if by_mark(facts.counts.lines)["unchecked"]:
        notes.append(
            "“Not checked”: the cell is empty or has several addresses, no check has reached it, "
            "or one failed for a technical reason."
        )
    accepted = 0
    if facts.cleaning is not None:
        cleaned = count_of(facts.cleaning.rows, "cell was", "cells were")
        notes.append(f"{cleaned} cleaned first: what stood around the address was removed.")
        for name, _, rows in facts.cleaning.repairs:
            if name == ACCEPTED:
                accepted += rows
    applied = " and were not applied"
    if accepted:
        were = count_of(accepted, "was", "were")
        applied = f": {were} accepted by a person, the others were not applied"
    notes.append(f"Suggestions are guesses from the spelling{applied}.")
    return Section("How this was checked", notes=notes)
