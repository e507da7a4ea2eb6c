"""Commands that work on the rows of a table file without verifying it. No network.

`explode`, `duplicates` and `suppress` prepare a list; `outcomes` compares a verified one with what
became of the mails, `compare` with another verifier, `operators` counts it by who runs the mail
servers, `breakdown` by any column.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import typer

import mailverdict as mv

from ..files.plain import to_plain
from ..files.readers import STDIN
from ..files.table_file import ReadOptions
from ..files.writers import FormulaColumns, create_table
from ..frames.policy import POLICIES, read_decided
from ..frames.results import Results, with_core
from ..model.table import plain_schema
from ..model.words import printable_text
from ..reports.breakdown import (
    bounced_mailboxes,
    check_arguments,
    first_lines,
    table_of_counts,
)
from ..reports.by_operator import OperatorCounts
from ..reports.origins import MADE, ListCounts
from ..reports.report import verified_pieces
from ..table.columns import did_you_mean, label_of, listed
from ..table.table import put_column
from .files import (
    RewriteOptions,
    TableOutput,
    add_refusals,
    as_list,
    check_not_read,
    check_output,
    open_source,
    parse_map,
    pick_verified,
    print_remarks,
    print_written,
    read_bounce_file,
    read_compared,
    read_suppression_list,
    rewrite_table,
    with_rewrite_options,
)
from .options import (
    AgainstColumn,
    BounceColumns,
    Bounces,
    ColumnName,
    EscapeFormulas,
    File,
    Json,
    Mapped,
    PolicyName,
    Prefix,
    Quiet,
    SuppressWhere,
    with_read_options,
)
from .status import print_status, printed_warnings
from .terminal import app


@app.command()
@with_rewrite_options
def explode(file: File, column: ColumnName = None, *, rewriting: RewriteOptions) -> None:
    """Give each address of a cell a row of its own.

    The other cells of the row are repeated.
    """
    before = 0
    after = 0
    with rewrite_table(file, column, rewriting) as table:
        for piece in table.source.pieces():
            exploded = mv.explode(piece, table.column, prefix=rewriting.prefix)
            before += len(piece)
            after += len(exploded)
            table.write(exploded)
        table.summary = f"rows: {before:,}; rows after: {after:,}"


@app.command()
@with_rewrite_options
def duplicates(file: File, column: ColumnName = None, *, rewriting: RewriteOptions) -> None:
    """Mark rows whose mail reaches the same mailbox. Removes no row.

    Reads the file twice. The addresses of the whole file are held in memory, and no other column:
    about 300 bytes for each row.
    """
    with rewrite_table(file, column, rewriting) as table:
        name = table.column
        prefix = rewriting.prefix
        place = table.source.columns.index(name)
        chunks = []
        for piece in table.source.pieces([name]):
            # A column with dictionaries has another one in each piece.
            chunks += to_plain(piece.column(place)).chunks
        addresses = pa.table({name: pa.chunked_array(chunks)})
        marks = mv.duplicates(addresses, name, prefix=prefix).drop_columns([name])
        rows = 0
        for piece in table.pieces():
            table.write(with_columns(piece, marks.slice(rows, len(piece))))
            rows += len(piece)
        first = marks[str(label_of(name, prefix, "duplicate_of"))]
        identity = marks[str(label_of(name, prefix, "identity"))]
        mailboxes = pc.count_distinct(identity).as_py()
        repeated = len(first) - first.null_count
        table.summary = (
            f"rows: {rows:,}; distinct mailboxes: {mailboxes:,}; "
            f"rows that repeat an earlier one: {repeated:,}"
        )


@app.command()
@with_rewrite_options
def suppress(
    file: File,
    against: Annotated[
        str | None,
        typer.Argument(
            help="List of addresses and domains: .txt, one a line, or CSV, TSV, Parquet, XLSX."
        ),
    ] = None,
    column: ColumnName = None,
    *,
    against_column: AgainstColumn = None,
    suppress_where: SuppressWhere = None,
    rewriting: RewriteOptions,
) -> None:
    """Mark rows of people who must not be mailed. Removes no row.

    By a list, or by a column of the file itself that says no.
    """
    if against is None and not suppress_where:
        raise mv.SettingsError(
            "give a list of people who must not be mailed, or --suppress-where 'opt_out=yes'"
        )
    if against is None and against_column is not None:
        raise mv.SettingsError("--against-column is for a list of people who must not be mailed")
    listed = read_suppression_list(against, against_column)
    rows = 0
    marked = 0
    with rewrite_table(file, column, rewriting, also_read=against) as table:
        given = suppress_where or ()
        listed = add_refusals(table.source, table.column, listed, given, quiet=rewriting.quiet)
        assert listed is not None
        table.also_needed = [rule.column for rule in listed.rules]
        suppressed = str(label_of(table.column, rewriting.prefix, "suppressed"))
        for piece in table.pieces():
            out = mv.suppress(piece, table.column, listed, prefix=rewriting.prefix)
            rows += len(piece)
            marked += pc.sum(out[suppressed]).as_py() or 0
            table.write(out)
        table.summary = f"rows: {rows:,}; rows on the list: {marked:,}"


@app.command()
@with_read_options
def outcomes(
    file: File,
    *,
    bounces: Bounces,
    bounce_columns: BounceColumns = None,
    column: ColumnName = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", help="File for the rows whose verdict was wrong; '-' is CSV."
        ),
    ] = None,
    mailed: Annotated[
        str | None, typer.Option("--mailed", help="Column with true for each row that was mailed.")
    ] = None,
    policy: PolicyName = None,
    prefix: Prefix = None,
    reading: ReadOptions,
    escape_formulas: EscapeFormulas = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Count hard bounces by verdict, reason and action.

    The table file was verified before.
    """
    output = check_output(file, output, as_json=as_json)
    check_not_read(output, "--output", bounces)
    reports = read_bounce_file(bounces, bounce_columns)
    with open_source(file, reading) as source:
        name = pick_verified(source, column, prefix)
        pieces = [piece.cast(plain_schema(piece.schema)) for piece in source.pieces()]
        whole = pa.concat_tables(pieces)
        chosen = None
        if mailed is not None:
            chosen = truth_of(whole, mailed)
        frame = with_core(whole, name, prefix).to_pandas()
        with printed_warnings():
            counts = mv.outcomes(frame, name, reports, mailed=chosen, policy=policy, prefix=prefix)
        wrong = mv.contradicted(whole, name, reports, mailed=chosen, prefix=prefix)
        escaped = FormulaColumns(name, prefix, in_all=escape_formulas)
        with TableOutput(output, source, escaped).open() as write:
            write(wrong)
    print_remarks(source, quiet=quiet)
    addresses = counts.attrs["outcomes"]
    if as_json:
        record = {"counts": records_of(counts), "contradicted": len(wrong), **addresses}
        print(json.dumps(record, indent=2))
    elif output != STDIN:
        print(render_outcomes(counts))
    if not quiet:
        matched = f"{addresses['matched']:,} mailed, {addresses['unmatched']:,} others"
        print_status(
            f"addresses with a report: {matched}; rows whose verdict was wrong: {len(wrong):,}"
        )
    print_written(output, quiet=quiet)


@app.command()
@with_read_options
def operators(
    file: File,
    *,
    column: ColumnName = None,
    top: Annotated[
        int, typer.Option("--top", min=1, help="How many operators, by number of addresses.")
    ] = 20,
    prefix: Prefix = None,
    reading: ReadOptions,
    as_json: Json = False,
) -> None:
    """Count the addresses of a verified file by mail operator.

    An operator runs the mail servers of many domains. Shows how many addresses got a clear answer,
    and why not more. The file must have been written with --columns all. It is read in pieces; a
    hash of each address is kept in memory.
    """
    counts = OperatorCounts()
    with open_source(file, reading) as source:
        name = pick_verified(source, column, prefix)
        for piece in verified_pieces(source, name, prefix):
            counts.add(Results(piece, name, prefix))
    table = counts.table(top)
    if as_json:
        print(json.dumps(records_of(table), indent=2))
    else:
        print(render_operators(table))


@app.command()
@with_read_options
def breakdown(
    file: File,
    by: Annotated[
        str | None,
        typer.Argument(
            metavar="[COLUMN]",
            help="Column to count by, or domain, or operator; without it all columns are ranked.",
        ),
    ] = None,
    *,
    column: ColumnName = None,
    what: Annotated[
        str, typer.Option("--what", help="invalid, not_sendable, disposable, or bounced.")
    ] = "invalid",
    top: Annotated[int | None, typer.Option("--top", min=0, help="How many lines.")] = None,
    bounces: Annotated[
        str | None,
        typer.Option(
            "--bounces", help="For bounced: mailbox or export of what became of the mails."
        ),
    ] = None,
    bounce_columns: BounceColumns = None,
    prefix: Prefix = None,
    reading: ReadOptions,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show where the bad addresses of a verified file come from.

    Counts people by a column of the file, or ranks all columns by how much they explain. The file
    is read in pieces; a hash of each address is kept in memory.
    """
    if what == "bounced" and bounces is None:
        raise mv.SettingsError("--what bounced: give --bounces, what became of the mails")
    if what != "bounced" and bounces is not None:
        raise mv.SettingsError(f"--bounces goes with --what bounced, and what is {what!r}")
    check_arguments(what, top, bounces)
    bounced = None
    if bounces is not None:
        bounced = bounced_mailboxes(read_bounce_file(bounces, bounce_columns))
    counts = ListCounts(POLICIES["balanced"], bounced, as_list(by), ranks=by is None)
    with open_source(file, reading) as source:
        name = pick_verified(source, column, prefix)
        others = list(source.columns)  # all are named where there is no such column
        if by in others:
            others = [str(by)]
        elif by in MADE:
            others = []
        with printed_warnings():
            for piece in verified_pieces(source, name, prefix, others):
                counts.add(read_decided(piece, name, prefix))
    print_remarks(source, quiet=quiet)
    table = first_lines(table_of_counts(counts, what), top)
    if as_json:
        print(json.dumps(records_of(table), indent=2))
    else:
        print(table)


def records_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The lines of a table with its index, for JSON."""
    records: list[dict[str, Any]] = json.loads(table.reset_index().to_json(orient="records"))
    return records


def render_operators(counts: pd.DataFrame) -> str:
    """A table for a terminal, with a sentence below each operator that has one."""
    names = ("catch_all", "deferred", "refused", "no_answer", "dead")
    head = f"{'operator':<28} {'addresses':>11} {'clear':>11} {'of all':>7}"
    for name in names:
        head += f" {name.replace('_', ' '):>9}"
    lines = [head]
    for row in counts.reset_index().to_dict("records"):
        operator = printable_text(row["operator"], 28)
        clear = f"{row['clear']:>11,} {row['share']:>7.1%}"
        line = f"{operator:<28} {row['addresses']:>11,} {clear}"
        for name in names:
            line += f" {row[name]:>9,}"
        lines.append(line)
        if row["note"]:
            lines.append(f"  {row['note']}")
    return "\n".join(lines)


@app.command()
def compare(
    a: Annotated[
        str, typer.Argument(help="A verified table file, or the export of another verifier.")
    ],
    b: Annotated[str, typer.Argument(help="Another one about the same addresses.")],
    *,
    bounces: Annotated[
        str | None,
        typer.Option(
            "--bounces", help="Mailbox or export with what became of the mails: who was right?"
        ),
    ] = None,
    bounce_columns: BounceColumns = None,
    mapped: Mapped = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="File for the addresses that are valid in one and invalid in the other.",
        ),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare two verifications of the same addresses.

    Each is a file of ours or the export of another verifier. --map is for the file that has its
    columns, or for both.
    """
    output = check_output(STDIN, output, as_json=as_json)
    check_not_read(output, "--output", a, b, bounces)
    reports = read_bounce_file(bounces, bounce_columns)
    given = parse_map(mapped)
    with printed_warnings():
        rows_a, is_mapped_a = read_compared(a, given)
        rows_b, is_mapped_b = read_compared(b, given)
        if not (is_mapped_a or is_mapped_b):
            raise mv.ColumnError("neither file has the columns of --map")
        comparison = mv.compare(rows_a, rows_b, bounces=reports)
    if output is not None:
        contradictions = comparison.contradictions.reset_index()
        wrong = pa.Table.from_pandas(contradictions, preserve_index=False)
        names = wrong.column_names
        with create_table(output, columns=names, is_escaped=lambda name: True) as writer:
            writer.write(wrong)
    if as_json:
        print(json.dumps(comparison_record(comparison), indent=2))
    elif output != STDIN:
        print(comparison)
    if output is not None:
        print_written(output, quiet=quiet)


def comparison_record(comparison: mv.Comparison) -> dict[str, Any]:
    a, b = comparison.names
    right = None
    if comparison.right is not None:
        right = records_of(comparison.right)
    return {
        "a": a,
        "b": b,
        "both": comparison.both,
        "only_a": comparison.only_a,
        "only_b": comparison.only_b,
        "agreement": json.loads(comparison.agreement.to_json(orient="index")),
        "contradictions": len(comparison.contradictions),
        "right": right,
    }


def truth_of(table: pa.Table, column: str) -> list[bool]:
    """A column of true and false; other texts are an error."""
    if column not in table.column_names:
        names = table.column_names
        hint = did_you_mean(column, names)
        raise mv.ColumnError(f"--mailed: no column {column!r}{hint}; there are {listed(names)}")
    texts = []
    for cell in table[column].to_pylist():
        text = ""
        if cell is not None:
            text = str(cell).strip().lower()
        texts.append(text)
    wrong = sorted(set(texts) - {"true", "false", "1", "0", "yes", "no", ""})
    if wrong:
        raise mv.SettingsError(
            f"--mailed: column {column!r} holds {wrong[0][:40]!r}; it needs true or false"
        )
    return [text in ("true", "1", "yes") for text in texts]


def render_outcomes(counts: pd.DataFrame) -> str:
    """A table for a terminal; percentages are of the mailed addresses."""
    hard = f"{'hard':>7} {'of mailed':>9} {'95% interval':>16}"
    lines = [f"{'':<26} {'mailed':>9} {hard} {'blocked':>8} {'soft':>7}"]
    for row in counts.reset_index().to_dict("records"):
        if not row["mailed"]:
            continue
        name = f"{row['by']} {str(row['value']).replace('_', ' ')}"
        interval = f"{row['low']:.1%} to {row['high']:.1%}"
        hard = f"{row['hard']:>7,} {row['rate']:>9.1%} {interval:>16}"
        others = f"{row['blocked']:>8,} {row['soft']:>7,}"
        lines.append(f"{name:<26} {row['mailed']:>9,} {hard} {others}")
    return "\n".join(lines)


def with_columns(piece: pa.Table, added: pa.Table) -> pa.Table:
    """The piece with columns added at its end; those of an earlier call are replaced."""
    out: Any = piece
    for field, values in zip(added.schema, added.columns, strict=True):
        out = put_column(out, field, values)
    return out
