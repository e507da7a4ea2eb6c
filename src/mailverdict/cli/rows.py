"""Commands that add to the rows of a table file without verifying it: explode, duplicates, suppress. No network."""

from __future__ import annotations

from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
import typer

import mailverdict as mv

from ..frames.columns import label_of
from ..frames.files.writers import FormulaColumns, to_plain
from .tables import (
    TableOutput,
    check_output,
    open_source,
    pick_column,
    print_remarks,
    print_written,
    read_suppression_list,
)
from .terminal import (
    ColumnName,
    Delimiter,
    Encoding,
    EscapeFormulas,
    File,
    HasHeader,
    InPlace,
    Output,
    Prefix,
    Quiet,
    Sheet,
    Strict,
    app,
    print_status,
)

__all__ = ["duplicates", "explode", "suppress"]


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
    """Give each address of a cell that holds several a row of its own; the other cells are repeated."""
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


def with_columns(piece: pa.Table, added: pa.Table) -> pa.Table:
    """The piece with columns added at its end; those of an earlier call are replaced."""
    out: Any = piece
    for field, values in zip(added.schema, added.columns, strict=True):
        at = out.schema.get_field_index(field.name)
        out = out.append_column(field, values) if at < 0 else out.set_column(at, field, values)
    return out
