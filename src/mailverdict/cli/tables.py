"""Commands for table files: verify, clean, plan, report."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import typer

import mailverdict as mv

from ..frames.columns import choose_columns, label_of
from ..frames.files.readers import STDIN, guess_column, open_table
from ..frames.files.restore import restore_frame
from ..frames.files.streams import PieceStream, Stopper
from ..frames.files.table_file import TableFile
from ..frames.files.writers import create_table
from ..frames.policy import find_policy
from ..model.words import ValidationType
from ..reports.report import check_path
from ..reports.summary import RunningCounts, render_counts
from .terminal import (
    INTERRUPTED,
    QUOTA,
    ColumnName,
    Delimiter,
    Encoding,
    File,
    JournalAt,
    Json,
    Kind,
    Limit,
    MaxAge,
    Offline,
    Output,
    PolicyName,
    Prefix,
    Quiet,
    Raw,
    Refresh,
    ResolverAt,
    Sandbox,
    Service,
    Sheet,
    app,
    chosen_backend,
    exit_with_error,
    parse_journal,
    print_status,
    split_list,
)

__all__ = ["clean", "plan", "report", "verify"]


@app.command()
def verify(
    file: File,
    column: ColumnName = None,
    validation_type: Kind = ValidationType.MX,
    output: Output = None,
    backend: Service = None,
    sandbox: Sandbox = False,
    resolver: ResolverAt = None,
    columns: Annotated[str, typer.Option(help="core, all, or names separated by commas.")] = "core,error_message",
    prefix: Prefix = None,
    policy: PolicyName = None,
    report: Annotated[str | None, typer.Option(help="Report to write: .html or .xlsx.")] = None,
    limit: Limit = None,
    journal: JournalAt = "auto",
    max_age: MaxAge = "30D",
    refresh: Refresh = "",
    on_quota: Annotated[str, typer.Option(help="When the daily quota is used up: stop, raise or wait.")] = "stop",
    screen: Annotated[str | None, typer.Option(help="mx: look up domains here before using quota.")] = None,
    offline: Offline = False,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    raw: Raw = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Verify a column of a table file.

    Adds verdict, reasons and flags to every row.
    """
    if report is not None:
        check_path(report)
    if as_json and output == STDIN:
        raise mv.SettingsError("--json and -o - cannot both use standard output: write the table to a file")
    written = parse_columns(columns)
    options = {
        "validation_type": validation_type,
        "columns": [*written, *COUNTED],
        "prefix": prefix,
        "limit": limit,
        "journal": parse_journal(journal),
        "max_age": max_age,
        "refresh": split_list(refresh),
        "on_quota": on_quota,
        "screen": pick_screen(screen, resolver) if backend else screen,
        "offline": offline,
        "progress": False if quiet else "auto",
    }
    with (
        open_table(file, encoding=encoding, delimiter=delimiter, sheet=sheet) as source,
        chosen_backend(backend, sandbox=sandbox, resolver=resolver) as asked,
        Stopper(announce_stop) as stopper,
    ):
        name = pick_column(source, column)
        stream = PieceStream(name, stopper, backend=asked, **options)
        rows = VerifiedRows(source, name, prefix, written, policy, for_report=report is not None)
        with open_output(output, source, raw=raw) as write:
            for piece, _ in stream.verify(source.pieces()):
                write(rows.add(piece))
    for notice in stream.notices:
        print_status(f"note: {notice}")
    show_counts(rows.counts, validation_type, as_json=as_json, quiet=quiet)
    print_written(output, quiet=quiet)
    if report is not None:
        rows.report(report, validation_type)
        print_written(report, quiet=quiet)
    exit_early(stream, rows.counts.buckets["pending"])


def pick_screen(screen: str | None, resolver: str | None) -> mv.LocalBackend | str | None:
    """With a service, the given resolver is used for screening."""
    if resolver is not None and screen is None:
        raise mv.SettingsError("--resolver with --backend needs --screen mx: a service has its own resolver")
    return mv.LocalBackend(resolver=resolver) if screen == "mx" and resolver else screen


# Columns that the summary and policies need, whether they are written or not.
COUNTED = (*(c.name for c in choose_columns("core")), "error")


class VerifiedRows:
    """Counts verified pieces, adds actions, keeps what a report needs, and selects the columns to write."""

    def __init__(
        self,
        source: TableFile,
        column: str,
        prefix: str | None,
        names: list[str],
        policy: str | None,
        *,
        for_report: bool,
    ) -> None:
        self.own_columns, self.column, self.prefix = len(source.columns), column, prefix
        self.policy = None if policy is None else find_policy(policy)
        self.written = {self.label(name) for name in names}
        self.for_report = for_report
        self.counts = RunningCounts()
        self.reported: list[pa.Table] = []

    def label(self, name: str) -> str:
        return str(label_of(self.column, self.prefix, name))

    def add(self, piece: pa.Table) -> pa.Table:
        """Count a piece and return the columns to write."""
        self.counts.add(piece, self.label(""))
        results = piece.select([self.column, *(self.label(name) for name in COUNTED)])
        if self.for_report:
            self.reported.append(results)
        shown = piece.select([i for i, n in enumerate(piece.column_names) if i < self.own_columns or n in self.written])
        return shown if self.policy is None else self.with_actions(shown, results, self.policy)

    def with_actions(self, shown: pa.Table, results: pa.Table, policy: mv.Policy) -> pa.Table:
        """Add the columns of the policy."""
        decided = mv.decide(self.frame(results), self.column, policy=policy, prefix=self.prefix)
        for name in ("action", "action_why"):
            values = pa.array(decided[self.label(name)].astype(object), pa.string(), from_pandas=True)
            shown = shown.append_column(self.label(name), values)
        return shown

    def frame(self, results: pa.Table) -> pd.DataFrame:
        return restore_frame(results, self.column, self.prefix)

    def report(self, path: str, validation_type: str) -> None:
        """Write the report of all pieces."""
        tables = [table.cast(plain_schema(table.schema)) for table in self.reported]
        frame = self.frame(pa.concat_tables(tables)) if tables else pd.DataFrame()
        frame.attrs["mailverdict"] = {self.column: {"validation_type": str(validation_type)}}
        mv.report(frame, self.column, path, policy=self.policy, prefix=self.prefix)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with dictionary-encoded text as text: each piece has another dictionary."""
    return pa.schema([pa.field(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in schema])


def announce_stop() -> None:
    """Explain what Ctrl-C does. Unbuffered, because a signal may interrupt Python in the middle of a print."""
    os.write(sys.stderr.fileno(), b"\nstopping: unfinished rows will be pending; press Ctrl-C again to exit at once\n")


def exit_early(stream: PieceStream, pending: int) -> None:
    """Exit with the status of what ended the verification early, if anything did."""
    hint = f"{pending:,} rows are pending; run the command again to continue"
    if stream.stopper.is_requested:
        exit_with_error(f"interrupted: {hint}", INTERRUPTED)
    if stream.failure is not None:
        print_status(hint)
        raise stream.failure
    if stream.is_short_of_quota:
        exit_with_error(f"stopped by the daily quota: {hint}", QUOTA)


@app.command()
def clean(
    file: File,
    column: ColumnName = None,
    output: Output = None,
    prefix: Prefix = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    raw: Raw = False,
    quiet: Quiet = False,
) -> None:
    """Clean a column of a table file.

    Unwrap, strip, lower-case domains, suggest. Uses no network.
    """
    rows = changed = 0
    with open_table(file, encoding=encoding, delimiter=delimiter, sheet=sheet) as source:
        name = pick_column(source, column)
        with open_output(output, source, raw=raw) as write:
            for piece in source.pieces():
                cleaned = mv.clean(piece, name, prefix=prefix)
                change = cleaned[label_of(name, prefix, "change")]
                rows, changed = rows + len(piece), changed + (pc.sum(pc.not_equal(change, "")).as_py() or 0)
                write(cleaned)
    if not quiet:
        print_status(f"{rows:,} rows; addresses cleaned: {changed:,}")
    print_written(output, quiet=quiet)


@app.command()
def plan(
    file: File,
    column: ColumnName = None,
    validation_type: Kind = ValidationType.MX,
    backend: Service = None,
    limit: Limit = None,
    journal: JournalAt = "auto",
    max_age: MaxAge = "30D",
    refresh: Refresh = "",
    offline: Offline = False,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    as_json: Json = False,
) -> None:
    """Show what a verification would do and cost."""
    with open_table(file, encoding=encoding, delimiter=delimiter, sheet=sheet) as source:
        name = pick_column(source, column)
        at = source.columns.index(name)
        cells = pa.chunked_array([c for piece in source.pieces() for c in piece.column(at).chunks])
    found = mv.plan(
        cells,
        validation_type=validation_type,
        backend=backend,
        limit=limit,
        journal=parse_journal(journal),
        max_age=max_age,
        refresh=split_list(refresh),
        offline=offline,
    )
    print(json.dumps(asdict(found), indent=2) if as_json else found)


@app.command()
def report(
    file: File,
    output: Annotated[str, typer.Option("--output", "-o", help="Report to write: .html or .xlsx.")],
    column: ColumnName = None,
    prefix: Prefix = None,
    policy: PolicyName = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    quiet: Quiet = False,
) -> None:
    """Report on a table file that was verified before."""
    with open_table(file, encoding=encoding, delimiter=delimiter, sheet=sheet) as source:
        name = pick_column(source, column)
        whole = pa.concat_tables([piece.cast(plain_schema(piece.schema)) for piece in source.pieces()])
    mv.report(restore_frame(whole, name, prefix), name, output, policy=policy, prefix=prefix)
    print_written(output, quiet=quiet)


def pick_column(source: TableFile, column: str | None) -> str:
    """The given column, or the one with the most addresses."""
    if column is not None:
        source.check_column(column)
        return column
    first = next(source.pieces())
    found = str(guess_column({n: first.column(i) for i, n in enumerate(source.columns)}))
    source.check_column(found)
    print_status(f"using column {found!r}; give another with --column")
    return found


def parse_columns(text: str) -> list[str]:
    """Names of columns and sets of columns, separated by commas."""
    names: list[str] = []
    for each in text.split(","):
        names += [c.name for c in choose_columns(each)] if each in ("core", "all") else [each.strip()]
    return list(dict.fromkeys(name for name in names if name))


@contextmanager
def open_output(output: str | None, source: TableFile, *, raw: bool) -> Iterator[Callable[[pa.Table], None]]:
    """Yield the function that writes a piece; without an output it does nothing."""
    if output is None:
        yield lambda piece: None
        return
    with create_table(
        output, delimiter=source.format.delimiter, escape_formulas=not raw, has_bom=source.format.has_bom
    ) as writer:
        yield writer.write


def print_written(output: str | None, *, quiet: bool) -> None:
    if output is not None and output != STDIN and not quiet:
        print_status(f"written: {output}")


def show_counts(counts: RunningCounts, validation_type: str, *, as_json: bool, quiet: bool) -> None:
    """Print the summary: JSON on standard output, or text on stderr."""
    if as_json:
        print(json.dumps(counts.to_dict(), ensure_ascii=False, indent=2))
    elif not quiet:
        lines = render_counts(counts, ValidationType(validation_type))
        print_status(f"{counts.rows:,} rows verified by {validation_type}\n{lines}")
