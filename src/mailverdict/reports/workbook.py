"""A report as a workbook: a sheet with its sections, then one with the rows of each action."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..files.workbook import SUMMARY, XLSX_ROWS, FormattedBook, TableSheet, put_sections
from ..model.section import Section
from ..theme import LABELS
from .facts import ReportFacts
from .sections import sections_of, verdicts
from .wording import days_of, made_checks, title_of

PIECE_ROWS = 65_536  # rows converted at once: bounds memory


def write_workbook(
    path: Path, facts: ReportFacts, parts: Mapping[str, pa.Table], sheet_rows: int = XLSX_ROWS - 1
) -> list[str]:
    """Write the sections and the rows of each action; rows beyond one sheet go on in another.

    Returns what a sheet cannot hold.
    """
    remarks: list[str] = []
    book = FormattedBook(path, "a report as XLSX")
    shown = [section for columns in sections_of(facts) for column in columns for section in column]
    put_sections(book, book.add_sheet(SUMMARY), [known(facts), verdicts(facts), *shown])
    for action, table in parts.items():
        for start in range(0, max(len(table), 1), sheet_rows):
            sheet = TableSheet(book, LABELS[action])
            put_part(sheet, table.slice(start, sheet_rows))
            remarks += [f"{each} of sheet {sheet.sheet.get_name()}" for each in sheet.remarks()]
    book.close()
    return remarks


def put_part(sheet: TableSheet, table: pa.Table) -> None:
    for start in range(0, max(len(table), 1), PIECE_ROWS):
        sheet.write(table.slice(start, PIECE_ROWS))
    sheet.finish()


def known(facts: ReportFacts) -> Section:
    """What is known about the list, each figure with its name before it."""
    return Section(title_of(facts), (("", "text"), ("", "text")), [*facts_by_name(facts)])


def facts_by_name(facts: ReportFacts) -> Iterator[tuple[str, Any]]:
    yield "Column", facts.column
    if checks := made_checks(facts):
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
