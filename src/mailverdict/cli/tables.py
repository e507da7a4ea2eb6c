"""Commands for table files: verify, clean, plan, report."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import typer

import mailverdict as mv

from ..frames.columns import RESULT_NAMES, choose_columns, label_of
from ..frames.duplicates import SuppressionList
from ..frames.files.readers import COMPRESSIONS, SAMPLE_ROWS, STDIN, address_shares, explain_guess, open_table
from ..frames.files.restore import restore_frame
from ..frames.files.streams import PieceStream, Stopper, exit_on_signal, heard_signals
from ..frames.files.table_file import LINE, TableFile
from ..frames.files.workbook import check_room
from ..frames.files.writers import FormulaColumns, check_target, create_table, to_plain
from ..frames.options import VerifyOptions
from ..frames.planning import plan_pieces
from ..frames.policy import find_policy, read_decided
from ..model.paths import user_path
from ..model.words import ValidationType, count_of
from ..reports.facts import FactsCounter, ReportFacts, verify_command
from ..reports.report import Report, check_path, read_earlier
from ..reports.summary import RunningCounts
from .outcome import FileOutcome, parse_limits
from .status import STATUS, ProgressLog, print_status, printed_warnings
from .terminal import (
    BounceColumns,
    Clean,
    ColumnName,
    Delimiter,
    Earlier,
    Encoding,
    EscapeFormulas,
    FailAbove,
    File,
    HasHeader,
    InPlace,
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
    ResolverCheck,
    Sandbox,
    Service,
    Sheet,
    Strict,
    app,
    chosen_backend,
    parse_journal,
    split_list,
)

__all__ = ["clean", "plan", "report", "verify"]


@app.command()
def verify(
    context: typer.Context,
    file: File,
    column: ColumnName = None,
    validation_type: Kind = ValidationType.MX,
    output: Output = None,
    backend: Service = None,
    sandbox: Sandbox = False,
    resolver: ResolverAt = None,
    resolver_check: ResolverCheck = True,
    columns: Annotated[str, typer.Option(help="core, all, or names separated by commas.")] = "core",
    prefix: Prefix = None,
    policy: PolicyName = None,
    report: Annotated[
        str | None, typer.Option(help="Report to write: .html, or .xlsx, for which all rows are held in memory.")
    ] = None,
    earlier: Earlier = None,
    clean: Clean = True,
    explode: Annotated[bool, typer.Option("--explode", help="First give each address of a cell its own row.")] = False,
    suppress: Annotated[
        str | None, typer.Option("--suppress", help="List of people who must not be mailed; marks their rows.")
    ] = None,
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
    header: HasHeader = None,
    strict: Strict = False,
    in_place: InPlace = False,
    escape_formulas: EscapeFormulas = False,
    raw: Raw = False,
    fail_above: FailAbove = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Verify a column of a table file.

    Adds verdict, reasons and flags to every row.
    """
    began_at = time.perf_counter()
    limits = parse_limits(fail_above)
    output = check_output(file, output, in_place=in_place, escape_formulas=escape_formulas, raw=raw)
    check_report(report, earlier, read_or_written=(file, output, suppress))
    check_not_read(output, "--output", suppress)
    if as_json and output == STDIN:
        raise mv.SettingsError("--json and -o - cannot both use standard output: write the table to a file")
    written = parse_columns(columns)
    listed = None if suppress is None else read_suppression_list(suppress)
    options = {
        "validation_type": validation_type,
        "columns": [*written, *COUNTED],
        "clean": clean,
        "prefix": prefix,
        "limit": limit,
        "journal": parse_journal(journal),
        "max_age": max_age,
        "refresh": split_list(refresh),
        "on_quota": on_quota,
        "screen": pick_screen(screen, resolver, resolver_check=resolver_check) if backend else screen,
        "offline": offline,
        "progress": False if quiet or STATUS.get().is_json else "auto",
    }
    with (
        open_source(
            file, encoding=encoding, delimiter=delimiter, sheet=sheet, has_header=header, is_strict=strict
        ) as source,
        chosen_backend(backend, sandbox=sandbox, resolver=resolver, resolver_check=resolver_check) as asked,
        Stopper(announce_stop) as stopper,
    ):
        name = pick_column(source, column)
        is_logged = not quiet and (STATUS.get().is_json or not sys.stderr.isatty())
        listener = ProgressLog(STATUS.get()) if is_logged else None
        stream = PieceStream(name, stopper, backend=asked, listener=listener, **options)
        if validation_type != ValidationType.REGEX:
            source.check_rows()
            if named := [each for each in source.columns if each.endswith(RESULT_NAMES)]:
                stream.check_columns(source.pieces([name, *named]))
        added = [
            *(("part",) if explode else ()),
            *(("clean", "change") if clean else ()),
            *(() if listed is None else ("suppressed",)),
        ]
        rows = VerifiedRows(source, name, prefix, [*written, *added], policy, report=report, earlier=earlier)
        by_action = None if policy is None else rows.label("action")
        table_output = TableOutput(
            output, source, FormulaColumns(name, prefix, in_all=escape_formulas), by_action=by_action
        )

        def given_rows() -> Iterator[pa.Table]:
            if not explode:
                return table_output.pieces([name])
            return (mv.explode(piece, name, prefix=prefix) for piece in source.pieces())

        table_output.check_room(given_rows)
        with table_output.open(lambda: stream.failure is not None) as write:
            pieces = given_rows()
            if listed is not None:
                pieces = (mv.suppress(piece, name, listed, prefix=prefix) for piece in pieces)
            for piece, _ in stream.verify(pieces):
                write(rows.add(piece))
    print_notices(stream)
    print_remarks(source, quiet=quiet)
    outcome = FileOutcome(
        stream, rows.counts, limits, validation_type, began_at, file, output=table_output.written, report=report
    )
    outcome.show(as_json=as_json, quiet=quiet)
    print_written(table_output.written, quiet=quiet or (as_json and output is None))
    if report is not None:
        again = verify_command(file, options_given(context))
        rows.report(report, validation_type, list_name(file), again, getattr(asked, "label", ""))
        print_written(report, quiet=quiet)
    if stream.failure is not None and output is not None and table_output.written != output:
        print_status(f"the run failed: {output} is not changed; what is checked so far is in {table_output.written}")
    outcome.exit_early()


def options_given(context: typer.Context) -> list[str]:
    """The options of the command line as they were given, but for the verdicts to verify again."""
    words = []
    for option in context.command.params:
        value, name = context.params.get(str(option.name)), max(option.opts, key=len)
        source = context.get_parameter_source(str(option.name))
        if source is None or source.name != "COMMANDLINE" or option.name in ("file", "refresh"):
            continue
        if isinstance(value, bool):
            words.append(name if value else max(option.secondary_opts, key=len))
        else:
            words += [word for each in (value if isinstance(value, list) else [value]) for word in (name, str(each))]
    return words


def check_report(report: str | None, earlier: str | None, read_or_written: Sequence[str | None]) -> None:
    """Refuse options that name no report, one that cannot be written, or one that would replace another file."""
    if report is not None:
        check_not_read(report, "--report", earlier, *read_or_written)
        check_path(report)
    elif earlier is not None:
        raise mv.SettingsError("--earlier is for the report: add --report audit.html")


def pick_screen(screen: str | None, resolver: str | None, *, resolver_check: bool) -> mv.LocalBackend | str | None:
    """With a service, the given resolver is used for screening."""
    if resolver is not None and screen is None:
        raise mv.SettingsError("--resolver with --backend needs --screen mx: a service has its own resolver")
    if screen == "mx" and (resolver or not resolver_check):
        return mv.LocalBackend(resolver=resolver, resolver_check=resolver_check)
    return screen


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
        report: str | None,
        earlier: str | None = None,
    ) -> None:
        self.own_columns, self.column, self.prefix = len(source.columns), column, prefix
        self.policy = None if policy is None else find_policy(policy)
        self.written = {self.label(name) for name in names}
        self.counts = RunningCounts()
        self.facts = FactsCounter(column, self.policy or find_policy("balanced"))
        self.report_path = report
        # Read now: the output may replace the file.
        self.earlier = None if earlier is None else read_earlier(earlier, column, prefix).data.frame
        self.is_counted = report is not None and is_page(report) and earlier is None
        self.reported: list[pa.Table] = []  # for a workbook, which has all rows, and for a comparison

    def label(self, name: str) -> str:
        return str(label_of(self.column, self.prefix, name))

    def add(self, piece: pa.Table) -> pa.Table:
        """Count a piece and return the columns to write."""
        self.counts.add(piece, self.label(""))
        judged = (self.label(name) for name in (*COUNTED, "clean", "change", "suppressed"))
        results = piece.select([self.column, *(label for label in judged if label in piece.column_names)])
        if self.report_path is not None:
            if self.is_counted:
                self.facts.add(read_decided(self.frame(results), self.column, self.prefix))
            else:
                self.reported.append(results)
        shown = piece.select(
            [i for i, n in enumerate(piece.column_names) if i < self.own_columns or n in self.written or n == LINE]
        )
        return shown if self.policy is None else self.with_actions(shown, results, self.policy)

    def with_actions(self, shown: pa.Table, results: pa.Table, policy: mv.Policy) -> pa.Table:
        """Add the columns of the policy."""
        decided = mv.decide(self.frame(results), self.column, policy=policy, prefix=self.prefix)
        for name in ("action", "action_why"):
            values = pa.array(decided[self.label(name)].astype(object), pa.string(), from_pandas=True)
            at = shown.schema.get_field_index(self.label(name))
            label = self.label(name)
            shown = shown.append_column(label, values) if at < 0 else shown.set_column(at, label, values)
        return shown

    def frame(self, results: pa.Table) -> pd.DataFrame:
        return restore_frame(results, self.column, self.prefix)

    def report(self, path: str, validation_type: str, name: str, again: str, answered_by: str) -> None:
        """Write the report of all pieces; `answered_by` is the label of the backend, if it has one."""
        note = {"validation_type": str(validation_type), **({"answered_by": answered_by} if answered_by else {})}
        if self.is_counted:
            self.facts.validation_types[str(validation_type)] = None
            self.facts.answered_by.update(dict.fromkeys(filter(None, [answered_by])))
            facts = self.facts.facts(datetime.now(UTC), name, again)
            Report(facts, None, self.column, self.facts.policy, self.prefix).save(path)
            return
        tables = [table.cast(plain_schema(table.schema)) for table in self.reported]
        frame = self.frame(pa.concat_tables(tables)) if tables else pd.DataFrame()
        frame.attrs["mailverdict"] = {self.column: note}
        made = mv.report(frame, self.column, policy=self.policy, prefix=self.prefix, earlier=self.earlier, name=name)
        made._with_command(again).save(path)


def is_page(path: str) -> bool:
    """Whether a report at this path has counts only."""
    return not path.lower().endswith(".xlsx")


def list_name(file: str) -> str:
    """What a report calls the list."""
    return "standard input" if file == STDIN else Path(file).name


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with dictionary-encoded text as text: each piece has another dictionary."""
    return pa.schema([pa.field(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in schema])


def announce_stop() -> None:
    """Explain what Ctrl-C does. Unbuffered, because a signal may interrupt Python in the middle of a print."""
    log = STATUS.get()
    line = log.line("stopping: unfinished rows will be pending; press Ctrl-C again to exit at once")
    os.write(sys.stderr.fileno(), f"{'' if log.is_json else chr(10)}{line}\n".encode())


def print_notices(stream: PieceStream) -> None:
    for notice in (*stream.notices, *stream.delay_notices(), *stream.repair_notices()):
        print_status(notice, "note")
    if problem := stream.problem():
        print_status(problem, "warning")


@app.command()
def clean(
    file: File,
    column: ColumnName = None,
    output: Output = None,
    prefix: Prefix = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    header: HasHeader = None,
    strict: Strict = False,
    in_place: InPlace = False,
    escape_formulas: EscapeFormulas = False,
    raw: Raw = False,
    quiet: Quiet = False,
) -> None:
    """Clean a column of a table file.

    Unwrap, strip, lower-case domains, suggest. Uses no network.
    """
    output = check_output(file, output, in_place=in_place, escape_formulas=escape_formulas, raw=raw)
    rows = changed = 0
    with open_source(
        file, encoding=encoding, delimiter=delimiter, sheet=sheet, has_header=header, is_strict=strict
    ) as source:
        name = pick_column(source, column)
        table_output = TableOutput(output, source, FormulaColumns(name, prefix, in_all=escape_formulas))
        with table_output.open() as write:
            for piece in table_output.pieces([name]):
                cleaned = mv.clean(piece, name, prefix=prefix)
                change = cleaned[label_of(name, prefix, "change")]
                rows, changed = rows + len(piece), changed + (pc.sum(pc.not_equal(change, "")).as_py() or 0)
                write(cleaned)
    print_remarks(source, quiet=quiet)
    if not quiet:
        print_status(f"rows: {rows:,}; cells cleaned: {changed:,}")
    print_written(output, quiet=quiet)


@app.command()
def plan(
    file: File,
    column: ColumnName = None,
    validation_type: Kind = ValidationType.MX,
    backend: Service = None,
    sandbox: Sandbox = False,
    limit: Limit = None,
    journal: JournalAt = "auto",
    max_age: MaxAge = "30D",
    refresh: Refresh = "",
    offline: Offline = False,
    clean: Clean = True,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    header: HasHeader = None,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Show what a verification would do and cost.

    The file is read in pieces, of which a hash of each address is kept in memory.
    """
    with (
        open_source(
            file, encoding=encoding, delimiter=delimiter, sheet=sheet, has_header=header, is_strict=strict
        ) as source,
        chosen_backend(backend, sandbox=sandbox) as asked,
    ):
        name = pick_column(source, column)
        at = source.columns.index(name)
        options: VerifyOptions = {
            "validation_type": validation_type,
            "backend": asked,
            "limit": limit,
            "journal": parse_journal(journal),
            "max_age": max_age,
            "refresh": split_list(refresh),
            "offline": offline,
            "clean": clean,
        }
        with printed_warnings("warning"):
            found = plan_pieces(([to_plain(piece.column(at))] for piece in source.pieces([name])), options)
    print(json.dumps(asdict(found), indent=2) if as_json else found)


@app.command()
def report(
    file: File,
    output: Annotated[str, typer.Option("--output", "-o", help="Report to write: .html or .xlsx.")],
    column: ColumnName = None,
    prefix: Prefix = None,
    policy: PolicyName = None,
    bounces: Annotated[
        str | None, typer.Option("--bounces", help="Mailbox or export with what became of the mails, to compare with.")
    ] = None,
    bounce_columns: BounceColumns = None,
    earlier: Earlier = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    header: HasHeader = None,
    strict: Strict = False,
    quiet: Quiet = False,
) -> None:
    """Report on a table file that was verified before.

    For a page the file is read in pieces. A workbook, --bounces and --earlier hold its result columns in memory.
    """
    check_not_read(output, "--output", file, bounces, earlier)
    check_path(output)
    reports = None if bounces is None else read_bounce_file(bounces, bounce_columns)
    with open_source(
        file, encoding=encoding, delimiter=delimiter, sheet=sheet, has_header=header, is_strict=strict
    ) as source:
        name = pick_column(source, column)
        results = str(label_of(name, prefix, ""))
        needed = [i for i, each in enumerate(source.columns) if each == name or each.startswith(results)]
        pieces = (piece.select(needed) for piece in source.pieces([source.columns[i] for i in needed]))
        if is_page(output) and reports is None and earlier is None:
            counts = FactsCounter(name, find_policy(policy or "balanced"))
            for piece in pieces:
                counts.add(read_decided(restore_frame(piece, name, prefix), name, prefix))
            facts = counts.facts(datetime.now(UTC), list_name(file))
            Report(facts, None, name, counts.policy, prefix)._with_command(reported_command(file, facts)).save(output)
            print_written(output, quiet=quiet)
            return
        whole = pa.concat_tables([piece.cast(plain_schema(piece.schema)) for piece in pieces])
    frame = restore_frame(whole, name, prefix)
    made = mv.report(frame, name, policy=policy, prefix=prefix, bounces=reports, earlier=earlier, name=list_name(file))
    made._with_command(reported_command(file, made._facts)).save(output)
    print_written(output, quiet=quiet)


def reported_command(file: str, facts: ReportFacts) -> str:
    """The command that verifies a file again which has been verified before; empty where its check is not known."""
    if len(facts.validation_types) != 1 or file == STDIN:
        return ""
    service = ("--backend", "URL") if "remote" in facts.sources else ()
    return verify_command(file, ["--column", facts.column, "--type", *facts.validation_types, *service])


def read_bounce_file(path: str, columns: str | None) -> pd.DataFrame:
    """Read what became of the mails; what cannot be read is printed."""
    named = None
    if columns is not None:
        pairs = [each.partition("=") for each in split_list(columns)]
        if wrong := [name for name, equals, value in pairs if not (equals and value)]:
            raise mv.SettingsError(f"--bounce-columns: {wrong[0]!r} names no column; write address=Recipient")
        named = {name.strip(): value.strip() for name, _, value in pairs}
    with printed_warnings():
        reports: pd.DataFrame = mv.read_bounces(path, columns=named)
    return reports


def read_suppression_list(path: str) -> SuppressionList:
    """Read the list once; what is wrong with it is printed."""
    if not user_path(path).exists():
        raise mv.InputError(f"{path}: no such file")
    with printed_warnings():
        return SuppressionList.read(path)


def pick_column(source: TableFile, column: str | None) -> str:
    """The given column, or the one with the most addresses."""
    if column is not None:
        source.check_column(column)
        source.address_at = source.columns.index(column)
        return column
    first = next(source.pieces())
    heads = [first.column(i)[:SAMPLE_ROWS] for i in range(len(source.columns))]
    # Of columns with the same name the one with the most addresses, so that the name is refused if that is the best.
    shares = [address_shares({0: head})[0] for head in heads] if has_repeated(source.columns) else [0.0] * len(heads)
    by_name = {source.columns[i]: heads[i] for i in sorted(range(len(heads)), key=shares.__getitem__)}
    try:
        found, reason = explain_guess({name: by_name[name] for name in source.columns})
    except mv.ColumnError as exc:  # perhaps the sheet or the delimiter is not the right one
        raise mv.ColumnError("; ".join([str(exc), *source.remarks])) from exc
    source.check_column(found)
    source.address_at = source.columns.index(found)
    print_status(f"using column {found!r} ({reason}); give another with --column")
    return str(found)


def has_repeated(names: Sequence[str]) -> bool:
    return len(set(names)) < len(names)


def parse_columns(text: str) -> list[str]:
    """Names of columns and sets of columns, separated by commas."""
    names: list[str] = []
    for each in text.split(","):
        names += [c.name for c in choose_columns(each)] if each in ("core", "all") else [each.strip()]
    return list(dict.fromkeys(name for name in names if name))


# Parameters of mallopt(3) of the GNU C library: from which size on memory is returned at once, and how much is kept.
M_MMAP_THRESHOLD, LARGEST_THRESHOLD = -3, 32 << 20
M_TRIM_THRESHOLD, KEPT_MEMORY = -1, 512 << 20


def keep_freed_memory() -> None:
    """Let the process keep freed memory for the next piece of a file; by default most of it is returned at once.

    The system clears each page that it gives again, which takes up to a tenth of the processor time of a command.
    """
    with suppress(OSError, AttributeError, TypeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        if mallopt(M_MMAP_THRESHOLD, LARGEST_THRESHOLD) and mallopt(M_TRIM_THRESHOLD, KEPT_MEMORY):
            pa.set_memory_pool(pa.system_memory_pool())  # Arrow's own allocator returns memory, too


@contextmanager
def open_source(file: str, **options: Any) -> Iterator[TableFile]:
    """Open a table file; SIGTERM and SIGHUP leave by an exception, so that no temporary file is left behind."""
    keep_freed_memory()
    numbers = [number for number in heard_signals() if number != signal.SIGINT]
    previous_handlers = {number: signal.signal(number, exit_on_signal) for number in numbers}
    try:
        with open_table(file, **options) as source:
            yield source
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


def check_output(file: str, output: str | None, *, in_place: bool, escape_formulas: bool, raw: bool) -> str | None:
    """The path of the file to write; refuses to overwrite the input unless told to."""
    if raw and escape_formulas:
        raise mv.SettingsError("--raw and --escape-formulas contradict each other: give one of them")
    if in_place and file == STDIN:
        raise mv.SettingsError("--in-place needs a file; standard input cannot be replaced")
    if in_place and output is None:
        return str(user_path(file))
    output = output if output in (None, STDIN) else str(user_path(str(output)))
    is_same = output not in (None, STDIN) and file != STDIN and is_same_file(file, str(output))
    if in_place and not is_same:
        raise mv.SettingsError(f"--in-place replaces {file}, but --output is {output}: give one of them")
    if is_same and not in_place:
        raise mv.SettingsError(f"{output} is the input: name another output, or add --in-place to replace it")
    return output


def check_not_read(output: str | None, option: str, *others: str | None) -> None:
    """Refuse to write a file that the same command reads or writes."""
    for other in others:
        if output is not None and other not in (None, STDIN) and is_same_file(output, str(other)):
            raise mv.SettingsError(f"{option} {output} would replace {other}: give another name")


def is_same_file(one: str, other: str) -> bool:
    """Whether two names are the same file, which need not exist."""
    first, second = (Path(os.path.realpath(user_path(name))) for name in (one, other))
    try:
        return first == second or first.samefile(second)
    except OSError:
        return False


class TableOutput:
    """The table that a command writes; `written` is where it was written in the end, None for nowhere."""

    def __init__(
        self, path: str | None, source: TableFile, is_escaped: Callable[[str], bool], by_action: str | None = None
    ) -> None:
        self.path, self.source, self.is_escaped, self.by_action = path, source, is_escaped, by_action
        self.written = path

    def pieces(self, needed: Sequence[str]) -> Iterator[pa.Table]:
        """The rows of the source; from CSV to CSV its cells are copied, and only the needed columns are decoded.

        Those are also columns with the name of a result column: their content decides whether they are replaced.
        """
        if self.path is None or (self.source.format.header and self.is_copied(self.path)):
            named = (name for name in self.source.columns if name.endswith(RESULT_NAMES))
            return self.source.pieces([*needed, *named], with_lines=self.path is not None)
        return self.source.pieces()

    def is_copied(self, path: str) -> bool:
        """Whether the output is a CSV with the delimiter of the source."""
        kind = "csv" if path == STDIN else check_target(Path(path))
        return kind == "csv" or (kind == "tsv" and self.source.format.delimiter == "\t")

    def check_room(self, pieces: Callable[[], Iterator[pa.Table]]) -> None:
        """Raise `InputError` for more rows than a workbook has, before anything is spent."""
        if self.path is not None and self.path.lower().endswith(".xlsx"):
            check_room(len(self.source.format.title) + sum(map(len, pieces())))

    @contextmanager
    def open(self, has_failed: Callable[[], bool] = lambda: False) -> Iterator[Callable[[pa.Table], None]]:
        """Yield the function that writes a piece; without an output it does nothing.

        If the run has failed at the end, an older output stays, and the table is written beside it.
        """
        if self.path is None:
            yield lambda piece: None
            return

        def choose() -> Path:
            if has_failed():
                self.written = str(partial_path(str(self.path)))
            return Path(str(self.written))

        found = self.source.format
        if found.formulas and self.path != STDIN and is_same_file(self.path, str(self.source.path)):
            formulas = count_of(found.formulas, "formula")
            raise mv.InputError(
                f"{self.path} has {formulas} without a saved value in sheet {found.sheet!r}, and replacing it would "
                "empty their cells: open it in a spreadsheet program and save it first, or give another --output"
            )
        if found.sheet is not None and Path(self.path).suffix.lower() == ".xlsx":
            self.source.remarks.append("the sheet is written anew with its values, without formulas and formats")
        with create_table(
            self.path,
            columns=self.source.columns,
            delimiter=found.delimiter,
            is_escaped=self.is_escaped,
            has_bom=found.has_bom,
            choose=choose,
            like=found,
            by_action=self.by_action,
        ) as writer:
            yield writer.write
            self.source.remarks += writer.remarks


def partial_path(path: str) -> Path:
    """``out.csv`` -> ``out.partial.csv``: where a failed run writes."""
    whole = Path(path)
    inner = Path(whole.stem) if whole.suffix.lower() in COMPRESSIONS else whole
    return whole.with_name(f"{inner.stem}.partial{whole.name[len(inner.stem) :]}")


def print_remarks(source: TableFile, *, quiet: bool) -> None:
    """Print what was guessed about the file and what was odd in it."""
    for remark in [] if quiet else [*source.remarks, *source.final_remarks()]:
        print_status(remark, "note")


def print_written(output: str | None, *, quiet: bool) -> None:
    if output is None and not quiet and not STATUS.get().is_json:
        print_status("no table was written: --output names a file for it")
    elif output is not None and output != STDIN and not quiet:
        print_status(f"written: {output}")
