"""A report as a workbook: a sheet with the figures and a picture, then one with the rows of each action."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..frames.columns import ACTIONS
from ..frames.files.plain import to_plain
from ..frames.files.workbook import XLSX_ROWS, PersonBook, TableSheet, put_chart, put_row
from ..frames.policy import ACTION_MEANING
from ..theme import LABELS, MARK_OF, MARKS
from .facts import ReportFacts, share
from .wording import (
    another_check,
    capitalize,
    checks_of,
    days_of,
    days_of_earlier,
    how_to_verify_again,
    made_checks,
    outcome_label,
    reason_label,
    repair_label,
    title_of,
)

PIECE_ROWS = 65_536  # rows converted at once: bounds memory
WIDTHS = (34, 30, 14, 14, 14, 14, 14, 14, 14)  # characters, of the summary's columns
ALL_ROWS = "Share of rows"


@dataclass(frozen=True)
class Section:
    """A table of the summary; a column whose name begins with ``Share`` holds shares."""

    title: str
    names: Sequence[str]
    rows: Sequence[Sequence[Any]]


def write_workbook(
    path: Path, facts: ReportFacts, parts: Mapping[str, pa.Table], sheet_rows: int = XLSX_ROWS - 1
) -> None:
    """Write the facts and the rows of each action; rows beyond one sheet go on in another."""
    book = PersonBook(path, "a report as XLSX")
    put_facts(book, facts)
    for action, table in parts.items():
        for start in range(0, max(len(table), 1), sheet_rows):
            put_part(TableSheet(book, LABELS[action]), table.slice(start, sheet_rows))
    book.close()


def put_part(sheet: TableSheet, table: pa.Table) -> None:
    sheet.begin(table.column_names)
    for start in range(0, len(table), PIECE_ROWS):
        sheet.write([to_plain(column) for column in table.slice(start, PIECE_ROWS).columns])
    sheet.finish()


def put_facts(book: PersonBook, facts: ReportFacts) -> None:
    """The tables of the report, one below the other, and a picture of the actions beside them."""
    sheet = book.add_sheet("Summary")
    sheet.write_string(0, 0, title_of(facts), book.title)
    row = 2
    for name, value in known(facts):
        sheet.write_string(row, 0, name)
        put_cell(sheet, row, 1, value, book.share if name.startswith("Share") else book.count)
        row += 1
    for section in sections(facts):
        row += 1
        sheet.write_string(row, 0, section.title, book.section)
        for column, name in enumerate(section.names):
            sheet.write_string(row + 1, column, name, book.head)
        first = row + 2
        row = first
        for cells in section.rows:
            for column, (name, cell) in enumerate(zip(section.names, cells, strict=True)):
                put_cell(sheet, row, column, cell, book.share if name.startswith("Share") else book.count)
            row += 1
        if section.title == "What to do":
            put_chart(book, sheet, first, row, ACTIONS, "Rows by action", "F2")
    for column, width in enumerate(WIDTHS):
        sheet.set_column(column, column, width)


def put_cell(sheet: Any, row: int, column: int, cell: Any, form: Any) -> None:
    """Numbers in a format; text as text, and missing values as an empty cell."""
    if isinstance(cell, int | float) and cell == cell:
        sheet.write_number(row, column, cell, form)
    elif isinstance(cell, str):
        put_row(sheet, row, [cell], first=column)


def known(facts: ReportFacts) -> Iterator[tuple[str, Any]]:
    yield "Column", facts.column
    if checks := made_checks(facts):
        yield "Check", checks
    if facts.checked:
        yield "Checked", days_of(facts.checked)
    yield "Report made (UTC)", f"{facts.made_at:%Y-%m-%d %H:%M}"
    yield "Policy", facts.policy.name
    yield "Rows", facts.rows
    yield "Rows with an address", facts.addressed
    yield "Distinct well-formed addresses", facts.addresses
    yield "Rows that can be mailed", facts.actions["send"]
    yield "Share of rows that can be mailed", facts.mailable


def sections(facts: ReportFacts) -> Iterator[Section]:
    """The same as on the page; empty ones are left out."""
    for section in (
        *rows_by_word(facts),
        Section(
            "Why not the others",
            ("Reason", "What it means", "Verdict", "Rows", ALL_ROWS),
            [
                (
                    reason_label(reason),
                    capitalize(meaning),
                    MARKS[MARK_OF[bucket]].label,
                    count,
                    share(count, facts.rows),
                )
                for bucket, reason, meaning, count in facts.reasons
            ],
        ),
        Section(
            "Flags, whatever the verdict",
            ("Flag", "Rows"),
            [(reason_label(flag), count) for flag, count in facts.flags.items() if count],
        ),
        Section(
            "Clean the list first",
            ("What cells hold", "Rows"),
            [
                each
                for each in (
                    ("One address and something around it", facts.cleanable),
                    ("Several addresses", facts.several),
                )
                if each[1]
            ],
        ),
        Section(
            "Verify again",
            ("Reason", "When", "Rows"),
            [(reason_label(reason), when, count) for reason, when, count in facts.retries],
        ),
        Section(
            "How to verify again",
            ("Command", "What it does"),
            [(facts.command, how_to_verify_again(facts).rstrip(":"))] if facts.unanswered else [],
        ),
        Section("Correct likely typos", ("Typed", "Probably meant", "Rows"), facts.typos),
        *compared(facts),
        Section(
            "Largest domains",
            ("Domain", *(LABELS.get(name, capitalize(name)) for name in facts.domains.columns)),
            domain_rows(facts),
        ),
    ):
        if section.rows:
            yield section


def rows_by_word(facts: ReportFacts) -> Iterator[Section]:
    """By action, and by verdict or state."""
    counts = [
        (LABELS[name], count, share(count, facts.rows), ACTION_MEANING[name]) for name, count in facts.actions.items()
    ]
    yield Section("What to do", ("Action", "Rows", ALL_ROWS, "What it means"), counts)
    by_bucket = [(LABELS[name], count, share(count, facts.rows)) for name, count in facts.buckets.items()]
    yield Section("Verdicts", ("Verdict", "Rows", ALL_ROWS), by_bucket)


def compared(facts: ReportFacts) -> Iterator[Section]:
    """Before and after cleaning, then and now, and what became of the mails."""
    if facts.cleaning is not None:
        sent = facts.actions["send"]
        before = sent - facts.cleaning.sendable
        rows = [
            ("As the list came", before, share(before, facts.rows)),
            ("After cleaning", sent, share(sent, facts.rows)),
        ]
        yield Section("Before and after cleaning", ("Can be mailed", "Rows", ALL_ROWS), rows)
        repairs = [(repair_label(name), example, count) for name, example, count in facts.cleaning.repairs]
        yield Section("Cells cleaned", ("Repair", "Example", "Cells"), repairs)
    if facts.trend is not None:
        old = facts.trend
        pairs = [(LABELS[name], old.buckets[name], count) for name, count in facts.buckets.items()]
        yield Section(
            f"Since the earlier audit ({days_of_earlier(old.checked)})",
            ("Verdict", "Rows then", "Rows now", "Change"),
            [(label, then, now, now - then) for label, then, now in pairs],
        )
        if another_check(old.validation_types, facts.validation_types):
            checks = (checks_of(old.validation_types), checks_of(facts.validation_types))
            yield Section("Another check", ("Check then", "Check now"), [checks])
        moves = (("new", old.added), ("not there any more", old.removed), ("with another verdict", old.changed))
        yield Section("Addresses since then", ("Addresses", "Count"), moves)
    if facts.outcomes is not None:
        found = facts.outcomes
        names = (
            "Mailed",
            "Hard bounces",
            "Share of mailed",
            "Share, low",
            "Share, high",
            "Blocked",
            "Soft",
            "Complaints",
        )
        fields = ("mailed", "hard", "rate", "low", "high", "blocked", "soft", "complaint")
        rows = [
            (outcome_label(str(row["by"]), str(row["value"])), *(plain(row[each]) for each in fields))
            for row in found.counts.reset_index().to_dict("records")
        ]
        yield Section("Was the verdict right?", ("Group", *names), rows)
        yield Section("Wrong verdicts", ("Rows whose verdict was wrong", "Rows"), [("All", found.contradicted_rows)])


def plain(value: Any) -> Any:
    """A number of NumPy as one of Python."""
    return value.item() if hasattr(value, "item") else value


def domain_rows(facts: ReportFacts) -> list[Sequence[Any]]:
    return [(str(domain), *(int(count) for count in counts)) for domain, counts in facts.domains.iterrows()]
