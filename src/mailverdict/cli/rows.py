"""Commands that work on the rows of a table file without verifying it. No network.

`explode`, `duplicates` and `suppress` prepare a list; `outcomes` compares a verified one with what became of the mails.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import typer

import mailverdict as mv

from ..frames.columns import did_you_mean, label_of, listed
from ..frames.files.readers import STDIN
from ..frames.files.restore import restore_frame
from ..frames.files.writers import FormulaColumns, to_plain
from .status import print_status, printed_warnings
from .tables import (
    TableOutput,
    check_not_read,
    check_output,
    open_source,
    pick_column,
    plain_schema,
    print_remarks,
    print_written,
    read_bounce_file,
    read_suppression_list,
)
from .terminal import (
    BounceColumns,
    Bounces,
    ColumnName,
    Delimiter,
    Encoding,
    EscapeFormulas,
    File,
    HasHeader,
    InPlace,
    Json,
    Output,
    PolicyName,
    Prefix,
    Quiet,
    Sheet,
    Strict,
    app,
)

__all__ = ["duplicates", "explode", "outcomes", "suppress"]


@app.command()
def explode(
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
    quiet: Quiet = False,
) -> None:
    """Give each address of a cell a row of its own.

    The other cells of the row are repeated.
    """
    output = check_output(file, output, in_place=in_place, escape_formulas=escape_formulas, raw=False)
    before = after = 0
    with open_source(
        file, encoding=encoding, delimiter=delimiter, sheet=sheet, has_header=header, is_strict=strict
    ) as source:
        name = pick_column(source, column)
        table_output = TableOutput(output, source, FormulaColumns(name, prefix, in_all=escape_formulas))
        with table_output.open() as write:
            for piece in source.pieces():
                exploded = mv.explode(piece, name, prefix=prefix)
                before, after = before + len(piece), after + len(exploded)
                write(exploded)
    print_remarks(source, quiet=quiet)
    if not quiet:
        print_status(f"rows: {before:,}; rows after: {after:,}")
    print_written(output, quiet=quiet)


@app.command()
def duplicates(
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
    quiet: Quiet = False,
) -> None:
    """Mark rows whose mail reaches the same mailbox. Removes no row.

    Reads the file twice. The addresses of the whole file are held in memory, and no other column:
    about 300 bytes for each row.
    """
    output = check_output(file, output, in_place=in_place, escape_formulas=escape_formulas, raw=False)
    with open_source(
        file, encoding=encoding, delimiter=delimiter, sheet=sheet, has_header=header, is_strict=strict
    ) as source:
        name = pick_column(source, column)
        at = source.columns.index(name)
        # A column with dictionaries has another one in each piece.
        cells = pa.chunked_array([chunk for p in source.pieces([name]) for chunk in to_plain(p.column(at)).chunks])
        found = mv.duplicates(pa.table({name: cells}), name, prefix=prefix).drop_columns([name])
        table_output = TableOutput(output, source, FormulaColumns(name, prefix, in_all=escape_formulas))
        done = 0
        with table_output.open() as write:
            for piece in table_output.pieces([name]):
                write(with_columns(piece, found.slice(done, len(piece))))
                done += len(piece)
    print_remarks(source, quiet=quiet)
    if not quiet:
        repeated = len(found) - found[str(label_of(name, prefix, "duplicate_of"))].null_count
        mailboxes = pc.count_distinct(found[str(label_of(name, prefix, "identity"))]).as_py()
        print_status(
            f"rows: {done:,}; distinct mailboxes: {mailboxes:,}; rows that repeat an earlier one: {repeated:,}"
        )
    print_written(output, quiet=quiet)


@app.command()
def suppress(
    file: File,
    against: Annotated[
        str, typer.Argument(help="List of addresses and domains: .txt, one a line, or CSV, TSV, Parquet, XLSX.")
    ],
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
    quiet: Quiet = False,
) -> None:
    """Mark rows that are on a list of people who must not be mailed. Removes no row."""
    output = check_output(file, output, in_place=in_place, escape_formulas=escape_formulas, raw=False)
    check_not_read(output, "--output", against)
    listed = read_suppression_list(against)
    rows = marked = 0
    with open_source(
        file, encoding=encoding, delimiter=delimiter, sheet=sheet, has_header=header, is_strict=strict
    ) as source:
        name = pick_column(source, column)
        table_output = TableOutput(output, source, FormulaColumns(name, prefix, in_all=escape_formulas))
        with table_output.open() as write:
            for piece in table_output.pieces([name]):
                out = mv.suppress(piece, name, listed, prefix=prefix)
                rows += len(piece)
                marked += pc.sum(out[str(label_of(name, prefix, "suppressed"))]).as_py() or 0
                write(out)
    print_remarks(source, quiet=quiet)
    if not quiet:
        print_status(f"rows: {rows:,}; rows on the list: {marked:,}")
    print_written(output, quiet=quiet)


@app.command()
def outcomes(
    file: File,
    bounces: Bounces,
    bounce_columns: BounceColumns = None,
    column: ColumnName = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="File for the rows whose verdict was wrong; '-' is CSV.")
    ] = None,
    mailed: Annotated[
        str | None, typer.Option("--mailed", help="Column with true for each row that was mailed.")
    ] = None,
    policy: PolicyName = None,
    prefix: Prefix = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    header: HasHeader = None,
    strict: Strict = False,
    escape_formulas: EscapeFormulas = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Count hard bounces by verdict, reason and action.

    The table file was verified before.
    """
    output = check_output(file, output, in_place=False, escape_formulas=escape_formulas, raw=False)
    if as_json and output == STDIN:
        raise mv.SettingsError("--json and -o - cannot both use standard output: write the table to a file")
    check_not_read(output, "--output", bounces)
    reports = read_bounce_file(bounces, bounce_columns)
    with open_source(
        file, encoding=encoding, delimiter=delimiter, sheet=sheet, has_header=header, is_strict=strict
    ) as source:
        name = pick_column(source, column)
        whole = pa.concat_tables([piece.cast(plain_schema(piece.schema)) for piece in source.pieces()])
        chosen = None if mailed is None else truth_of(whole, mailed)
        frame = restore_frame(whole, name, prefix)
        with printed_warnings():
            counts = mv.outcomes(frame, name, reports, mailed=chosen, policy=policy, prefix=prefix)
        wrong = mv.contradicted(whole, name, reports, mailed=chosen, prefix=prefix)
        table_output = TableOutput(output, source, FormulaColumns(name, prefix, in_all=escape_formulas))
        with table_output.open() as write:
            write(wrong)
    print_remarks(source, quiet=quiet)
    if as_json:
        records = json.loads(counts.reset_index().to_json(orient="records"))
        print(json.dumps({"counts": records, "contradicted": len(wrong), **counts.attrs["outcomes"]}, indent=2))
    elif output != STDIN:
        print(render_outcomes(counts))
    if not quiet:
        found = counts.attrs["outcomes"]
        print_status(
            f"addresses with a report: {found['matched']:,} mailed, {found['unmatched']:,} others; "
            f"rows whose verdict was wrong: {len(wrong):,}"
        )
    print_written(output, quiet=quiet)


def truth_of(table: pa.Table, column: str) -> list[bool]:
    """A column of true and false; other texts are an error."""
    if column not in table.column_names:
        names = table.column_names
        raise mv.ColumnError(f"--mailed: no column {column!r}{did_you_mean(column, names)}; there are {listed(names)}")
    texts = [str(cell if cell is not None else "").strip().lower() for cell in table[column].to_pylist()]
    if wrong := sorted(set(texts) - {"true", "false", "1", "0", "yes", "no", ""}):
        raise mv.SettingsError(f"--mailed: column {column!r} holds {wrong[0][:40]!r}; it needs true or false")
    return [text in ("true", "1", "yes") for text in texts]


def render_outcomes(counts: pd.DataFrame) -> str:
    """A table for a terminal; percentages are of the mailed addresses."""
    lines = [f"{'':<26} {'mailed':>9} {'hard':>7} {'of mailed':>9} {'95% interval':>16} {'blocked':>8} {'soft':>7}"]
    for row in counts.reset_index().to_dict("records"):
        if row["mailed"]:
            name = f"{row['by']} {str(row['value']).replace('_', ' ')}"
            interval = f"{row['low']:.1%} to {row['high']:.1%}"
            lines.append(
                f"{name:<26} {row['mailed']:>9,} {row['hard']:>7,} {row['rate']:>9.1%} {interval:>16} "
                f"{row['blocked']:>8,} {row['soft']:>7,}"
            )
    return "\n".join(lines)


def with_columns(piece: pa.Table, added: pa.Table) -> pa.Table:
    """The piece with columns added at its end; those of an earlier call are replaced."""
    out: Any = piece
    for field, values in zip(added.schema, added.columns, strict=True):
        at = out.schema.get_field_index(field.name)
        out = out.append_column(field, values) if at < 0 else out.set_column(at, field, values)
    return out
