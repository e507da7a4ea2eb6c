"""Commands for table files: verify, clean, plan, estimate, report.

`verify` is a stream of pieces. A piece passes these functions, and no other piece is in memory::

    rows_to_verify    rows of the file; with --explode one for each address of a cell
    mark_rows         `suppressed`, with --suppress
    FileRun.verify    verdicts, of all distinct addresses at once
    VerifiedRows.add  counted; `action` and `action_why`, with --policy; columns to write chosen
    TableOutput       written

A workbook as a report and a comparison with an earlier file keep all rows.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import typer

import mailverdict as mv

from ..files.plain import to_plain
from ..files.readers import STDIN
from ..files.table_file import LINE, ReadOptions, TableFile
from ..files.workbook import ActionSheets
from ..files.writers import FormulaColumns
from ..frames.duplicates import SentMailboxes
from ..frames.file_run import FileRun
from ..frames.planning import plan_pieces
from ..frames.policy import Policy, decide_rows, describe_repeats, find_policy, read_decided
from ..frames.results import Results
from ..frames.suppress import SuppressionList
from ..model.arrow import one_array
from ..model.table import SOURCE_REMOTE, plain_schema
from ..model.words import ValidationType, count_of
from ..reports.counts import Counts, keys_of, people_of
from ..reports.facts import verify_command
from ..reports.origins import ListCounts
from ..reports.person_sheet import PersonSheet
from ..reports.report import check_audience, check_path, make_report, read_earlier, verified_pieces
from ..table.columns import REPAIR_COLUMNS, SETS, choose_columns, label_of
from ..table.options import VerifyOptions
from ..table.table import Table, put_column
from .files import (
    RewriteOptions,
    TableOutput,
    add_refusals,
    as_list,
    check_not_read,
    check_output,
    open_source,
    pick_column,
    pick_verified,
    print_remarks,
    print_written,
    read_bounce_file,
    read_known_file,
    read_suppression_list,
    rewrite_table,
    with_rewrite_options,
)
from .options import (
    AgainstColumn,
    Audience,
    BounceColumns,
    Clean,
    ColumnName,
    Earlier,
    EscapeFormulas,
    FailAbove,
    File,
    ForService,
    InPlace,
    JournalAt,
    Json,
    KeepRepeats,
    Kind,
    Known,
    Limit,
    Mapped,
    MaxAge,
    Offline,
    Output,
    PolicyName,
    Prefix,
    Quiet,
    Refresh,
    ResolverAt,
    ResolverCheck,
    Sandbox,
    Service,
    Suppress,
    SuppressWhere,
    parse_journal,
    split_list,
    with_read_options,
)
from .outcome import FileOutcome, parse_limits
from .send_list import SendListFiles
from .status import STATUS, ProgressLog, print_status, printed_warnings
from .stopper import Stopper
from .terminal import GroupedOptions, app, chosen_backend


@app.command(cls=GroupedOptions)
@with_read_options
def verify(
    context: typer.Context,
    file: File,
    *,
    column: ColumnName = None,
    validation_type: Kind = ValidationType.MX,
    output: Output = None,
    backend: Service = None,
    sandbox: Sandbox = False,
    resolver: ResolverAt = None,
    resolver_check: ResolverCheck = True,
    columns: Annotated[
        str, typer.Option(help="short, core, all, or names separated by commas.")
    ] = "core",
    prefix: Prefix = None,
    policy: PolicyName = None,
    for_service: ForService = None,
    report: Annotated[
        str | None,
        typer.Option(
            help="Report to write: .html, or .xlsx, for which all rows are held in memory."
        ),
    ] = None,
    audience: Audience = "analyst",
    earlier: Earlier = None,
    clean: Clean = True,
    explode: Annotated[
        bool, typer.Option("--explode", help="First give each address of a cell its own row.")
    ] = False,
    suppress: Suppress = None,
    suppress_where: SuppressWhere = None,
    known: Known = None,
    mapped: Mapped = None,
    against_column: AgainstColumn = None,
    keep_repeats: KeepRepeats = False,
    limit: Limit = None,
    journal: JournalAt = "auto",
    max_age: MaxAge = None,
    refresh: Refresh = "",
    on_quota: Annotated[
        str, typer.Option(help="When the daily quota is used up: stop, raise or wait.")
    ] = "stop",
    screen: Annotated[
        str | None, typer.Option(help="mx: look up domains here before using quota.")
    ] = None,
    offline: Offline = False,
    reading: ReadOptions,
    in_place: InPlace = False,
    escape_formulas: EscapeFormulas = False,
    fail_above: FailAbove = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Verify a column of a table file.

    Adds verdict, reasons and flags to every row.
    """
    began_at = time.perf_counter()
    limits = parse_limits(fail_above)
    output = check_output(file, output, in_place=in_place, as_json=as_json)
    check_report(report, earlier, audience, read_or_written=(file, output, suppress, known))
    check_not_read(output, "--output", suppress, known)
    check_second_table(against_column, suppress, known)
    if keep_repeats and policy is None and report is None:
        raise mv.SettingsError(
            "--keep-repeats is for --policy and --report, which say what is sent"
        )
    send_list = SendListFiles.check(for_service, policy, output, file, suppress, known, report)
    written = parse_columns(columns, clean=clean)
    listed = read_suppression_list(suppress, against_column)
    settled = read_known_file(known, mapped, validation_type, max_age, against_column)
    options = {
        "validation_type": validation_type,
        "columns": [*(name for name in written if name not in REPAIRS), *COUNTED],
        "clean": clean,
        "prefix": prefix,
        "limit": limit,
        "journal": parse_journal(journal),
        "max_age": max_age,
        "refresh": split_list(refresh),
        "on_quota": on_quota,
        "screen": pick_screen(screen, backend, resolver, resolver_check=resolver_check),
        "known": settled,
        "offline": offline,
        "progress": pick_progress(quiet=quiet),
    }
    with (
        open_source(file, reading) as source,
        chosen_backend(
            backend, sandbox=sandbox, resolver=resolver, resolver_check=resolver_check
        ) as asked,
        Stopper(announce_stop) as stopper,
    ):
        name = pick_column(source, column)
        listed = add_refusals(source, name, listed, suppress_where or (), quiet=quiet)
        needed = needed_columns(source, name, listed, report)
        identifiers = []
        if send_list is not None:
            identifiers = send_list.find_identifier(source.columns, name)
            needed += identifiers
        run = FileRun(name, stopper, backend=asked, listener=progress_log(quiet=quiet), **options)
        added = {"part": explode, "suppressed": listed is not None, "source": settled is not None}
        for result_column, is_added in added.items():
            if is_added and result_column not in written:
                written.append(result_column)
        rows = VerifiedRows(
            source,
            name,
            prefix,
            written,
            policy,
            report=report,
            audience=audience,
            earlier=earlier,
            keep_repeats=keep_repeats,
            identifiers=identifiers,
        )
        escaped = FormulaColumns(name, prefix, in_all=escape_formulas)
        table_output = TableOutput(output, source, escaped, by_action=rows.sheets())
        given_rows = partial(rows_to_verify, table_output, needed, name, prefix, explode=explode)
        table_output.check_room(given_rows)

        def marked_rows() -> Iterator[pa.Table]:
            return mark_rows(given_rows(), name, prefix, listed)

        def has_failed() -> bool:
            return run.failure is not None

        with ExitStack() as outputs:
            write = outputs.enter_context(table_output.open(has_failed))
            if send_list is not None:
                rows.on_decided = outputs.enter_context(send_list.open(has_failed))
            for piece in run.verify(marked_rows):
                write(rows.add(piece))
    print_notices(run)
    rows.print_repeats(quiet=quiet)
    print_remarks(source, quiet=quiet)
    outcome = FileOutcome(
        run,
        stopper,
        rows.counts,
        limits,
        validation_type,
        began_at,
        file,
        output=table_output.written,
        report=report,
    )
    outcome.show(as_json=as_json, quiet=quiet)
    print_written(table_output.written, quiet=quiet or (as_json and output is None))
    if send_list is not None:
        send_list.print_written(quiet=quiet)
    if report is not None:
        again = verify_command(file, options_given(context))
        rows.save_report(validation_type, list_name(file), again, getattr(asked, "label", ""))
        print_written(report, quiet=quiet)
    if run.failure is not None and output is not None and table_output.written != output:
        checked = f"what is checked so far is in {table_output.written}"
        print_status(f"the run failed: {output} is not changed; {checked}")
    if sandbox and not quiet:
        print_status(MADE_UP, "note")
    outcome.exit_early()


def needed_columns(
    source: TableFile, name: str, listed: SuppressionList | None, report: str | None
) -> list[str]:
    """The columns to read besides those of results."""
    if report is not None and not is_page(report):
        return list(source.columns)  # a workbook has all
    if listed is None:
        return [name]
    return [name, *(rule.column for rule in listed.rules)]


def rows_to_verify(
    output: TableOutput, needed: Sequence[str], name: str, prefix: str | None, *, explode: bool
) -> Iterator[pa.Table]:
    """The rows of the file; with `explode` one for each address of a cell."""
    if not explode:
        yield from output.pieces(needed)
        return
    for piece in output.source.pieces():
        yield mv.explode(piece, name, prefix=prefix)


def mark_rows(
    pieces: Iterator[pa.Table], name: str, prefix: str | None, listed: SuppressionList | None
) -> Iterator[pa.Table]:
    """The rows, with a mark for people who must not be mailed if there is a list of them."""
    for piece in pieces:
        if listed is None:
            yield piece
        else:
            yield mv.suppress(piece, name, listed, prefix=prefix)


def check_second_table(against_column: str | None, *paths: str | None) -> None:
    """Refuse a column of a second table without such a table."""
    if against_column is not None and not any(paths):
        raise mv.SettingsError(
            "--against-column is for the file of --suppress or --known: give one of them"
        )


def progress_log(*, quiet: bool) -> ProgressLog | None:
    """What writes lines about the progress where no bar is shown."""
    log = STATUS.get()
    has_bar = sys.stderr.isatty() and not log.is_json
    if quiet or has_bar:
        return None
    return ProgressLog(log)


def pick_progress(*, quiet: bool) -> bool | Literal["auto"]:
    """Whether the library shows a bar."""
    if quiet or STATUS.get().is_json:
        return False
    return "auto"


def options_given(context: typer.Context) -> list[str]:
    """The options of the command line as they were given, but for the verdicts to verify again."""
    words = []
    for option in context.command.params:
        source = context.get_parameter_source(str(option.name))
        if source is None or source.name != "COMMANDLINE" or option.name in ("file", "refresh"):
            continue
        name = max(option.opts, key=len)
        value = context.params.get(str(option.name))
        if value is True:
            words.append(name)
        elif value is False:
            words.append(max(option.secondary_opts, key=len))
        elif isinstance(value, list):
            for part in value:
                words += [name, str(part)]
        else:
            words += [name, str(value)]
    return words


def check_report(
    report: str | None, earlier: str | None, audience: str, read_or_written: Sequence[str | None]
) -> None:
    """Refuse options of a report that cannot be written or would replace another file."""
    if report is not None:
        check_not_read(report, "--report", earlier, *read_or_written)
        check_path(report)
        check_audience(audience)
    elif audience != "analyst":
        raise mv.SettingsError("--audience is for the report: add --report audit.html")
    elif earlier is not None:
        raise mv.SettingsError("--earlier is for the report: add --report audit.html")


def pick_screen(
    screen: str | None, backend: str | None, resolver: str | None, *, resolver_check: bool
) -> mv.LocalBackend | str | None:
    """With a service, the given resolver is used for screening."""
    if not backend:
        return screen
    if resolver is not None and screen is None:
        raise mv.SettingsError(
            "--resolver with --backend needs --screen mx: a service has its own resolver"
        )
    if screen == "mx" and (resolver or not resolver_check):
        return mv.LocalBackend(resolver=resolver, resolver_check=resolver_check)
    return screen


MADE_UP = (
    "made-up servers gave these verdicts, which say nothing about real addresses: "
    "leave out --sandbox to verify them"
)
REPAIRS = tuple(column.name for column in REPAIR_COLUMNS)
# Columns that the summary and policies need, whether they are written or not.
COUNTED = (*(column.name for column in choose_columns("core")), "disposable_suspected")
# Columns beside these that say something of a row that policies look at.
JUDGED = (*COUNTED, "clean", "change", "suppressed", "decision", "decided_address")


class VerifiedRows:
    """Counts verified pieces, adds actions, keeps what a report needs, selects columns."""

    def __init__(
        self,
        source: TableFile,
        column: str,
        prefix: str | None,
        names: list[str],
        policy: str | None,
        *,
        report: str | None,
        audience: str,
        earlier: str | None = None,
        keep_repeats: bool = False,
        identifiers: Sequence[str] = (),
    ) -> None:
        # Called with each piece and its actions; the identifiers are columns that it needs.
        self.on_decided: Callable[[Results, pa.Array], None] | None = None
        self.identifiers = identifiers
        self.keep_repeats = keep_repeats
        self.sent = SentMailboxes()
        self.repeated = 0  # rows whose mailbox is sent in an earlier row
        self.column = column
        self.prefix = prefix
        self.audience = audience
        self.given = {*source.columns, LINE}
        self.added = [self.label(name) for name in names]
        self.report_path = report
        self.person_sheet = PersonSheet()
        self.has_actions = policy is not None  # whether they are written
        self.judge: Policy | None = None  # what says which rows are sent
        if policy is not None or report is not None:
            self.judge = find_policy(policy or "balanced")
        self.counts = Counts()
        self.origins: ListCounts | None = None
        if report is not None:
            assert self.judge is not None
            self.counts = Counts(self.judge)
            self.origins = ListCounts(self.judge)
        self.earlier: Results | None = None
        if earlier is not None:  # read now: the output may replace the file
            self.earlier = read_earlier(earlier, column, prefix)
        self.has_sheets = report is not None and not is_page(report)  # of all rows
        self.is_kept = self.has_sheets or earlier is not None
        self.kept: list[pa.Table] = []  # for a workbook, which has all rows, and for a comparison

    def label(self, name: str) -> str:
        return str(label_of(self.column, self.prefix, name))

    def add(self, piece: pa.Table) -> pa.Table:
        """Count a piece and return the columns to write."""
        names = piece.column_names
        judged = [label for label in map(self.label, JUDGED) if label in names]
        results = piece.select([self.column, *judged])
        rows = read_decided(results, self.column, self.prefix)
        decided = None
        if self.judge is not None:
            decided = decide_rows(rows, self.judge)
            repeats = self.find_repeats(rows, decided)
            if repeats.any() or self.is_kept:  # pieces that are kept have the same columns
                results = self.name_repeats(results, decided, repeats)
                rows = read_decided(results, self.column, self.prefix)
                decided = decide_rows(rows, self.judge)
        if self.on_decided is not None and decided is not None:
            named = results
            for name in self.identifiers:
                named = put_column(named, piece.field(name), piece[name])
            action = one_array(decided["action"]).cast(pa.string())
            self.on_decided(read_decided(named, self.column, self.prefix), action)
        self.counts.add(rows)
        whole = without_lines(piece)
        if self.origins is not None:
            self.origins.add(rows, Table(whole, self.column))
        if self.is_kept:
            kept = results
            if self.has_sheets:
                kept = self.with_others(results, whole)
            self.kept.append(kept.cast(plain_schema(kept.schema)))
        # By position, since names of the user's may occur twice.
        shown = [place for place, name in enumerate(names) if name in self.given]
        for name in self.added:
            if name not in self.given and name in names:
                shown.append(names.index(name))
        written = piece.select(shown)
        if self.has_actions and decided is not None:
            for name in ("action", "action_why"):
                field = pa.field(self.label(name), pa.string())
                written = put_column(written, field, decided[name].cast(pa.string()))
        return written

    def with_others(self, results: pa.Table, whole: pa.Table) -> pa.Table:
        """All columns of a piece, with the results as they were judged."""
        names = whole.column_names
        for name in results.column_names:
            if name not in names:
                whole = put_column(whole, results.field(name), results[name])
        return whole

    def sheets(self) -> ActionSheets | None:
        """What makes a sheet for each action, if the table is a workbook."""
        if not self.has_actions:
            return None
        return ActionSheets(self.label("action"), self.for_people)

    def print_repeats(self, *, quiet: bool) -> None:
        if not self.repeated or quiet:
            return
        rows = count_of(self.repeated, "row has a mailbox", "rows have a mailbox")
        how = "dropped; --keep-repeats sends all"
        print_status(f"{rows} that an earlier row is sent at: {how}", "note")

    def for_people(self, piece: pa.Table) -> pa.Table:
        """The rows that are written as a person reads them, for the sheets of a workbook."""
        return self.person_sheet.rows(Results(piece, self.column, self.prefix, ()))

    def find_repeats(self, rows: Results, decided: pa.Table) -> npt.NDArray[np.int64]:
        """For each row of a piece the earlier one that is sent at its mailbox; 0 for none."""
        if self.keep_repeats:
            return np.zeros(len(rows), np.int64)
        is_sent = pc.equal(decided["action"].cast(pa.string()), "send")
        people = pc.if_else(is_sent, people_of(keys_of(rows)), None)
        repeats = self.sent.find_repeats(one_array(people))
        self.repeated += int(np.count_nonzero(repeats))
        return repeats

    def name_repeats(
        self, results: pa.Table, decided: pa.Table, repeats: npt.NDArray[np.int64]
    ) -> pa.Table:
        """The results with actions, and with words for the rows that repeat a mailbox."""
        actions = decided["action"].cast(pa.string())
        why = pc.coalesce(describe_repeats(repeats), one_array(decided["action_why"]))
        for name, values in (("action", actions), ("action_why", why)):
            results = put_column(results, pa.field(self.label(name), pa.string()), values)
        return results

    def save_report(self, validation_type: str, name: str, again: str, answered_by: str) -> None:
        """Write the report of all pieces; `answered_by` is the label of the backend, if any."""
        assert self.report_path is not None
        self.counts.validation_types[str(validation_type)] = None
        if answered_by:
            self.counts.answered_by[answered_by] = None
        rows = None
        if self.kept:
            rows = read_decided(pa.concat_tables(self.kept), self.column, self.prefix)
        result = make_report(
            self.counts,
            self.column,
            rows,
            earlier=self.earlier,
            name=name,
            again=again,
            audience=self.audience,
            origins=self.origins,
        )
        result.save(self.report_path)


def without_lines(piece: pa.Table) -> pa.Table:
    """A piece without the text of its lines, which is copied to the output."""
    names = piece.column_names
    return piece.select([place for place, name in enumerate(names) if name != LINE])


def is_page(path: str) -> bool:
    """Whether a report at this path has counts only."""
    return not path.lower().endswith(".xlsx")


def list_name(file: str) -> str:
    """What a report calls the list."""
    if file == STDIN:
        return "standard input"
    return Path(file).name


def announce_stop() -> None:
    """Explain what Ctrl-C does.

    It is not buffered, because a signal may interrupt Python in the middle of a print.
    """
    log = STATUS.get()
    line = log.line("stopping: unfinished rows will be pending; press Ctrl-C again to exit at once")
    if not log.is_json:
        line = f"\n{line}"
    os.write(sys.stderr.fileno(), f"{line}\n".encode())


def print_notices(run: FileRun) -> None:
    for notice in (*run.notices, *run.several_notices()):
        print_status(notice, "note")
    problem = run.problem()
    if problem:
        print_status(problem, "warning")


@app.command()
@with_rewrite_options
def clean(file: File, column: ColumnName = None, *, rewriting: RewriteOptions) -> None:
    """Clean a column of a table file.

    Unwrap, strip, lower-case domains, suggest. Uses no network.
    """
    rows = 0
    changed = 0
    with rewrite_table(file, column, rewriting) as table:
        for piece in table.pieces():
            cleaned = mv.clean(piece, table.column, prefix=rewriting.prefix)
            change = cleaned[label_of(table.column, rewriting.prefix, "change")]
            rows += len(piece)
            changed += pc.sum(pc.not_equal(change, "")).as_py() or 0
            table.write(cleaned)
        table.summary = f"rows: {rows:,}; cells cleaned: {changed:,}"


@app.command()
@with_read_options
def plan(
    file: File,
    *,
    column: ColumnName = None,
    validation_type: Kind = ValidationType.MX,
    backend: Service = None,
    sandbox: Sandbox = False,
    known: Known = None,
    mapped: Mapped = None,
    against_column: AgainstColumn = None,
    limit: Limit = None,
    journal: JournalAt = "auto",
    max_age: MaxAge = None,
    refresh: Refresh = "",
    offline: Offline = False,
    clean: Clean = True,
    reading: ReadOptions,
    as_json: Json = False,
) -> None:
    """Show what a verification would do and cost.

    The file is read in pieces; a hash of each address is kept in memory.
    """
    check_second_table(against_column, known)
    with (
        open_source(file, reading) as source,
        chosen_backend(backend, sandbox=sandbox) as asked,
    ):
        name = pick_column(source, column)
        options: VerifyOptions = {
            "validation_type": validation_type,
            "backend": asked,
            "known": read_known_file(known, mapped, validation_type, max_age, against_column),
            "limit": limit,
            "journal": parse_journal(journal),
            "max_age": max_age,
            "refresh": split_list(refresh),
            "offline": offline,
            "clean": clean,
        }
        tables = ([Table(piece, name)] for piece in addresses_of(source, name))
        with printed_warnings("warning"):
            planned = plan_pieces(tables, options)
    if as_json:
        print(json.dumps(asdict(planned), indent=2, default=str))
    else:
        print(planned)


@app.command()
@with_read_options
def estimate(
    file: File,
    *,
    column: ColumnName = None,
    validation_type: Kind = ValidationType.SMTP,
    sample: Annotated[
        int, typer.Option("--sample", min=1, help="How many addresses to draw.")
    ] = 400,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Another number draws other addresses.")
    ] = None,
    backend: Service = None,
    sandbox: Sandbox = False,
    resolver: ResolverAt = None,
    resolver_check: ResolverCheck = True,
    journal: JournalAt = "auto",
    max_age: MaxAge = None,
    refresh: Refresh = "",
    clean: Clean = True,
    known: Known = None,
    mapped: Mapped = None,
    against_column: AgainstColumn = None,
    reading: ReadOptions,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Estimate the result and the cost for a file by a sample.

    All domains are looked up here. The answers are kept in the journal, so that verify asks only
    about the rest. The column is held in memory.
    """
    screen = None
    if backend is not None and (resolver is not None or not resolver_check):
        screen = mv.LocalBackend(resolver=resolver, resolver_check=resolver_check)
    check_second_table(against_column, known)
    settled = read_known_file(known, mapped, validation_type, max_age, against_column)
    with (
        open_source(file, reading) as source,
        chosen_backend(
            backend, sandbox=sandbox, resolver=resolver, resolver_check=resolver_check
        ) as asked,
    ):
        name = pick_column(source, column)
        rows = pa.concat_tables(addresses_of(source, name))
        with printed_warnings("warning"):
            estimated = mv.estimate(
                rows,
                name,
                sample=sample,
                seed=seed,
                validation_type=validation_type,
                backend=asked,
                journal=parse_journal(journal),
                max_age=max_age,
                refresh=split_list(refresh),
                screen=screen,
                clean=clean,
                known=settled,
                progress=pick_progress(quiet=quiet),
            )
    print_remarks(source, quiet=quiet)
    if as_json:
        print(json.dumps(estimated.to_dict(), indent=2))
    else:
        print(estimated)


@app.command()
@with_read_options
def report(
    file: File,
    *,
    output: Annotated[str, typer.Option("--output", "-o", help="Report to write: .html or .xlsx.")],
    column: ColumnName = None,
    prefix: Prefix = None,
    policy: PolicyName = None,
    audience: Audience = "analyst",
    bounces: Annotated[
        str | None,
        typer.Option(
            "--bounces", help="Mailbox or export with what became of the mails, to compare with."
        ),
    ] = None,
    bounce_columns: BounceColumns = None,
    earlier: Earlier = None,
    by: Annotated[
        str | None,
        typer.Option("--by", help="Also show the groups of a column, or of: domain, operator."),
    ] = None,
    reading: ReadOptions,
    quiet: Quiet = False,
) -> None:
    """Report on a table file that was verified before.

    For a page the file is read in pieces. A workbook, --bounces and --earlier hold its result
    columns in memory.
    """
    check_not_read(output, "--output", file, bounces, earlier)
    check_path(output)
    check_audience(audience)
    reports = read_bounce_file(bounces, bounce_columns)
    chosen = find_policy(policy or "balanced")
    counts = Counts(chosen)
    origins = ListCounts(chosen, asked=as_list(by))
    is_kept = not is_page(output) or reports is not None or earlier is not None
    kept = []
    with open_source(file, reading) as source:
        name = pick_verified(source, column, prefix)
        for piece in verified_pieces(source, name, prefix, source.columns):
            rows_of_piece = read_decided(piece, name, prefix)
            counts.add(rows_of_piece)
            origins.add(rows_of_piece)
            if is_kept:
                kept.append(piece)
    rows = None
    if is_kept:
        rows = read_decided(pa.concat_tables(kept), name, prefix)
    before = None
    if earlier is not None:
        before = read_earlier(earlier, name, prefix)
    result = make_report(
        counts,
        name,
        rows,
        bounces=reports,
        earlier=before,
        name=list_name(file),
        again=reported_command(file, name, counts),
        audience=audience,
        origins=origins,
    )
    result.save(output)
    print_written(output, quiet=quiet)


def addresses_of(source: TableFile, column: str) -> Iterator[pa.Table]:
    """The column, and its repaired addresses if the file has them, as a text file has them."""
    names = [column]
    for repair in REPAIRS:
        label = str(label_of(column, None, repair))
        if label in source.columns:
            names.append(label)
    for piece in source.pieces(names):
        cells = [to_plain(piece.column(piece.column_names.index(name))) for name in names]
        yield pa.table(cells, names=names)


def reported_command(file: str, column: str, counts: Counts) -> str:
    """The command that verifies a file once more; empty where its check is not known."""
    if len(counts.validation_types) != 1 or file == STDIN:
        return ""
    options = ["--column", column, "--type", *counts.validation_types]
    if counts.by("source")[SOURCE_REMOTE]:
        options += ["--backend", "URL"]
    return verify_command(file, options)


def parse_columns(text: str, *, clean: bool) -> list[str]:
    """Names of columns and sets of columns; with `clean` those of repairs are added."""
    if text == "short":
        return [column.name for column in choose_columns(text, clean=clean)]
    names: list[str] = []
    for part in text.split(","):
        if part in SETS:
            names += [column.name for column in choose_columns(part)]
        elif part.strip():
            names.append(part.strip())
    if clean:
        names += REPAIRS
    return list(dict.fromkeys(names))
