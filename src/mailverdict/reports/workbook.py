"""The report as a workbook: a sheet of facts, then a sheet per action."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..errors import MissingExtraError
from ..frames.files.writers import XLSX_OPTIONS, put_rows
from .facts import ReportFacts

__all__ = ["write_workbook"]


def write_workbook(path: Path, facts: ReportFacts, sheets: Mapping[str, pa.Table]) -> None:
    """Write the facts and each table on a sheet of its own; texts are never formulas."""
    try:
        import xlsxwriter  # noqa: PLC0415 - an extra
    except ImportError as exc:
        raise MissingExtraError("a report as XLSX", "excel") from exc
    with xlsxwriter.Workbook(str(path), XLSX_OPTIONS) as book:
        put_rows(book.add_worksheet("summary"), fact_rows(facts))
        for name, table in sheets.items():
            put_rows(book.add_worksheet(name), table_rows(table))


def table_rows(table: pa.Table) -> Iterator[Any]:
    """Header and rows."""
    yield table.column_names
    yield from zip(*(column.to_pylist() for column in table.columns), strict=True)


def fact_rows(facts: ReportFacts) -> Iterator[tuple[Any, ...]]:
    """The report's tables one below the other."""
    yield ("e-mail audit", facts.column)
    yield ("made at (UTC)", f"{facts.made_at:%Y-%m-%d %H:%M}")
    yield ("rows", facts.rows)
    yield ("can be mailed", f"{facts.mailable:.1%}", f"policy {facts.policy}")
    for title, counts in (("verdict", facts.buckets), ("action", facts.actions), ("flag", facts.flags)):
        yield ()
        yield (title, "rows")
        yield from counts.items()
    yield ()
    yield ("why not", "rows", "meaning")
    yield from ((reason, count, meaning) for reason, meaning, count in facts.why)
    yield ()
    yield ("ask again", "rows", "when")
    yield from ((reason, count, when) for reason, when, count in facts.ask_again)
    yield ()
    yield ("typed", "rows", "probably meant")
    yield from ((typed, count, meant) for typed, meant, count in facts.slips)
