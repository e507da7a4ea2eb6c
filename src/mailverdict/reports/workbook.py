"""A report as a workbook: its sections, the rows of each action, and everything.

The sheets of actions are for people, with few columns (`PersonSheet`); *Everything* has all columns
of the user's and all of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..files.workbook import (
    EVERYTHING,
    SUMMARY,
    XLSX_ROWS,
    FormattedBook,
    TableSheet,
    put_sections,
)
from ..frames.results import Results
from ..model.section import Section
from ..model.words import ACTIONS
from ..theme import LABELS
from .facts import ReportFacts
from .person_sheet import PersonSheet
from .sections import sections_of, verdicts
from .wording import days_of, made_checks, title_of

PIECE_ROWS = 65_536  # rows converted at once: bounds memory


def write_workbook(
    path: Path,
    facts: ReportFacts,
    rows: Results,
    table: pa.Table,
    sheet_rows: int = XLSX_ROWS - 1,
) -> list[str]:
    """Write the sections, the rows of each action, and `table`, all columns of these rows.

    Rows beyond one sheet go on in another. Returns what a sheet cannot hold.
    """
    remarks: list[str] = []
    book = FormattedBook(path, "a report as XLSX")
    shown = [known(facts), verdicts(facts)]
    for columns in sections_of(facts):
        for column in columns:
            shown += column
    put_sections(book, book.add_sheet(SUMMARY), shown)
    for_people = PersonSheet().rows(rows)
    parts = {}
    for action in ACTIONS:
        has_action = pc.equal(rows["action"], action)
        parts[LABELS[action]] = for_people.filter(has_action)
    parts[EVERYTHING] = table
    for name, part in parts.items():
        for start in range(0, max(len(part), 1), sheet_rows):
            sheet = TableSheet(book, name)
            put_part(sheet, part.slice(start, sheet_rows))
            name_of_sheet = sheet.sheet.get_name()
            remarks += [f"{remark} of sheet {name_of_sheet}" for remark in sheet.remarks()]
    book.close()
    return remarks


def put_part(sheet: TableSheet, table: pa.Table) -> None:
    for start in range(0, max(len(table), 1), PIECE_ROWS):
        sheet.write(table.slice(start, PIECE_ROWS))
    sheet.finish()


def known(facts: ReportFacts) -> Section:
    """What is known about the list, each figure with its name before it."""
    columns = (("", "text"), ("", "text"))
    return Section(title_of(facts), columns, list(facts_by_name(facts)))


def facts_by_name(facts: ReportFacts) -> Iterator[tuple[str, Any]]:
    yield "Column", facts.column
    checks = made_checks(facts)
    if checks:
        yield "Check", checks
    if facts.counts.checked:
        yield "Checked", days_of(facts.counts.checked)
    yield "Report made (UTC)", f"{facts.made_at:%Y-%m-%d %H:%M}"
    yield "Policy", facts.policy.name
    yield "Rows", facts.counts.rows
    yield "Rows with an address", facts.counts.rows - facts.counts.buckets["missing"]
    yield "Distinct well-formed addresses", facts.counts.addresses
    yield "People who can be mailed", facts.counts.people
    yield "Rows that can be mailed", facts.counts.actions["send"]
    yield "Share of rows that can be mailed", facts.counts.mailable
