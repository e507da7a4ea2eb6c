"""Commands over table files: verify, clean, plan, report."""

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
    fail,
    journal_option,
    split_list,
    tell,
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
    on_quota: Annotated[str, typer.Option(help="stop, raise or wait.")] = "stop",
    screen: Annotated[str | None, typer.Option(help="mx: settle domains without mail here first.")] = None,
    offline: Offline = False,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    raw: Raw = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Verify a column of a table file: a verdict, its reasons and flags for every row."""
    if report is not None:
        check_path(report)
    if as_json and output == STDIN:
        raise mv.SettingsError("--json and -o - both want standard output: write the table to a file")
    asked_columns = wanted_columns(columns)
    options = {
        "validation_type": validation_type,
        "columns": [*asked_columns, *TALLIED],
        "prefix": prefix,
        "limit": limit,
        "journal": journal_option(journal),
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
        Stopper(tell_stopping) as stopper,
    ):
        name = pick_column(source, column)
        stream = PieceStream(name, stopper, backend=asked, **options)
        sheet_of = Verified(source, name, prefix, asked_columns, policy, for_report=report is not None)
        with open_output(output, source, raw=raw) as write:
            for piece, _ in stream.verify(source.pieces()):
                write(sheet_of.take(piece))
    for notice in stream.notices:
        tell(f"note: {notice}")
    show_tally(sheet_of.tally, validation_type, as_json=as_json, quiet=quiet)
    tell_written(output, quiet=quiet)
    if report is not None:
        sheet_of.report(report, validation_type)
        tell_written(report, quiet=quiet)
    tell_end(stream, sheet_of.tally.buckets["pending"])


def pick_screen(screen: str | None, resolver: str | None) -> mv.LocalBackend | str | None:
    """Beside a service, the resolver given is the one that screens."""
    if resolver is not None and screen is None:
        raise mv.SettingsError("--resolver beside --backend is for --screen mx: a service asks its own resolver")
    return mv.LocalBackend(resolver=resolver) if screen == "mx" and resolver else screen


# What the summary counts and a policy looks at, whatever is written.
TALLIED = (*(c.name for c in choose_columns("core")), "error")


class Verified:
    """Takes verified pieces: counts them, adds actions, keeps what a report needs, gives what is to be written."""

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
        self.own, self.column, self.prefix = len(source.columns), column, prefix
        self.policy = None if policy is None else find_policy(policy)
        self.kept = {self.label(name) for name in names}
        self.for_report = for_report
        self.tally = RunningCounts()
        self.reported: list[pa.Table] = []

    def label(self, name: str) -> str:
        """The name of a result column in the file."""
        return str(label_of(self.column, self.prefix, name))

    def take(self, piece: pa.Table) -> pa.Table:
        """Count a piece and give the columns that are to be written."""
        self.tally.add(piece, self.label(""))
        results = piece.select([self.column, *(self.label(name) for name in TALLIED)])
        if self.for_report:
            self.reported.append(results)
        shown = piece.select([i for i, n in enumerate(piece.column_names) if i < self.own or n in self.kept])
        return shown if self.policy is None else self.with_actions(shown, results, self.policy)

    def with_actions(self, shown: pa.Table, results: pa.Table, policy: mv.Policy) -> pa.Table:
        """Add what to do with each row."""
        decided = mv.decide(self.frame(results), self.column, policy=policy, prefix=self.prefix)
        for name in ("action", "action_why"):
            values = pa.array(decided[self.label(name)].astype(object), pa.string(), from_pandas=True)
            shown = shown.append_column(self.label(name), values)
        return shown

    def frame(self, results: pa.Table) -> pd.DataFrame:
        """Result columns as pandas has them."""
        return restore_frame(results, self.column, self.prefix)

    def report(self, path: str, validation_type: str) -> None:
        """Write the report of all pieces."""
        tables = [table.cast(plain_schema(table.schema)) for table in self.reported]
        frame = self.frame(pa.concat_tables(tables)) if tables else pd.DataFrame()
        frame.attrs["mailverdict"] = {self.column: {"validation_type": str(validation_type)}}
        mv.report(frame, self.column, path, policy=self.policy, prefix=self.prefix)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Dictionary-encoded text as text, since pieces have dictionaries of their own."""
    return pa.schema([pa.field(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in schema])


def tell_stopping() -> None:
    """Say what Ctrl-C does; written past Python's buffers, since it may fall into the middle of a write."""
    os.write(sys.stderr.fileno(), b"\nstopping: what is not settled stays pending; Ctrl-C again leaves at once\n")


def tell_end(stream: PieceStream, pending: int) -> None:
    """Leave with the status of whatever ended the verifying early."""
    if stream.stopper.is_requested:
        fail(f"interrupted: {pending:,} rows are pending; call again to go on", INTERRUPTED)
    if stream.failure is not None:
        tell(f"{pending:,} rows are pending; call again to go on")
        raise stream.failure
    if stream.is_short_of_quota:
        fail(f"stopped by the daily quota: {pending:,} rows are pending; call again to go on", QUOTA)


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
    """Tidy a column of a table file: unwrap, strip, lower-case domains, suggest. Asks no network."""
    rows = changed = 0
    with open_table(file, encoding=encoding, delimiter=delimiter, sheet=sheet) as source:
        name = pick_column(source, column)
        with open_output(output, source, raw=raw) as write:
            for piece in source.pieces():
                tidied = mv.clean(piece, name, prefix=prefix)
                change = tidied[label_of(name, prefix, "change")]
                rows, changed = rows + len(piece), changed + (pc.sum(pc.not_equal(change, "")).as_py() or 0)
                write(tidied)
    if not quiet:
        tell(f"{rows:,} rows; addresses tidied: {changed:,}")
    tell_written(output, quiet=quiet)


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
    """Work out what verifying a table file would do and cost. Spends nothing."""
    with open_table(file, encoding=encoding, delimiter=delimiter, sheet=sheet) as source:
        name = pick_column(source, column)
        at = source.columns.index(name)
        cells = pa.chunked_array([c for piece in source.pieces() for c in piece.column(at).chunks])
    found = mv.plan(
        cells,
        validation_type=validation_type,
        backend=backend,
        limit=limit,
        journal=journal_option(journal),
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
    tell_written(output, quiet=quiet)


def pick_column(source: TableFile, column: str | None) -> str:
    """The column named, or the one that looks most like addresses."""
    if column is not None:
        source.check_column(column)
        return column
    first = next(source.pieces())
    found = str(guess_column({n: first.column(i) for i, n in enumerate(source.columns)}))
    source.check_column(found)
    tell(f"column {found!r} looks like the addresses; name another with --column")
    return found


def wanted_columns(text: str) -> list[str]:
    """A set's name or names, separated by commas."""
    names: list[str] = []
    for each in text.split(","):
        names += [c.name for c in choose_columns(each)] if each in ("core", "all") else [each.strip()]
    return list(dict.fromkeys(name for name in names if name))


@contextmanager
def open_output(output: str | None, source: TableFile, *, raw: bool) -> Iterator[Callable[[pa.Table], None]]:
    """Where pieces go: a file that appears whole, or nowhere."""
    if output is None:
        yield lambda piece: None
        return
    with create_table(
        output, delimiter=source.format.delimiter, escape_formulas=not raw, has_bom=source.format.has_bom
    ) as table:
        yield table.write


def tell_written(output: str | None, *, quiet: bool) -> None:
    if output is not None and output != STDIN and not quiet:
        tell(f"written: {output}")


def show_tally(tally: RunningCounts, validation_type: str, *, as_json: bool, quiet: bool) -> None:
    """The summary: JSON on standard output, or lines for a person on stderr."""
    if as_json:
        print(json.dumps(tally.to_dict(), ensure_ascii=False, indent=2))
    elif not quiet:
        lines = render_counts(tally, ValidationType(validation_type))
        tell(f"{tally.rows:,} rows verified by {validation_type}\n{lines}")
