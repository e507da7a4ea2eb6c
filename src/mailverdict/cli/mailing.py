"""Commands about mailings: `learn` counts what became of one, `mailing` chooses the rows of the next wave."""

from __future__ import annotations

from typing import Annotated

import pyarrow as pa
import typer

import mailverdict as mv

from ..files.readers import STDIN
from ..files.writers import FormulaColumns
from ..frames.results import with_core
from ..model.paths import user_path
from ..model.table import plain_schema
from .files import (
    TableOutput,
    check_not_read,
    check_output,
    open_source,
    pick_verified,
    print_remarks,
    print_written,
    read_bounce_file,
)
from .options import (
    BounceColumns,
    ColumnName,
    EscapeFormulas,
    File,
    InPlace,
    Output,
    Prefix,
    Quiet,
    TableOptions,
    with_groups,
)
from .rows import truth_of
from .status import printed_warnings
from .terminal import app


@app.command()
@with_groups
def learn(
    file: File,
    bounces: Annotated[
        str,
        typer.Argument(help="What became of the mails: mbox, Maildir, .eml, a folder, or a table."),
    ],
    *,
    experience: Annotated[
        str, typer.Option("--experience", help="JSON file that the counts are added to.")
    ],
    bounce_columns: BounceColumns = None,
    column: ColumnName = None,
    mailed: Annotated[
        str | None,
        typer.Option(
            "--mailed",
            help="Column with true for each row that was mailed; by default the column of waves.",
        ),
    ] = None,
    name: Annotated[
        str, typer.Option("--name", help="What to call the mailing, to tell it apart from others.")
    ] = "",
    complete: Annotated[
        bool,
        typer.Option(
            "--complete", help="All bounces have come: a wave without any is learnt, too."
        ),
    ] = False,
    prefix: Prefix = None,
    reading: TableOptions,
    quiet: Quiet = False,
) -> None:
    """Count what became of a mailing, for the next one.

    The counts are by verdict, reason, operator and domain; the file holds no address.
    """
    check_not_read(experience, "--experience", file, bounces)
    known = mv.Experience.load(experience) if user_path(experience).exists() else mv.Experience()
    reports = read_bounce_file(bounces, bounce_columns)
    with open_source(file, reading) as source:
        label = pick_verified(source, column, prefix)
        whole = pa.concat_tables(
            [piece.cast(plain_schema(piece.schema)) for piece in source.pieces()]
        )
    chosen = None if mailed is None else truth_of(whole, mailed)
    with printed_warnings("warning"):
        known += mv.learn(
            with_core(whole, label, prefix),
            label,
            reports,
            mailed=chosen,
            name=name,
            complete=complete,
            prefix=prefix,
        )
    known.save(experience)
    print_remarks(source, quiet=quiet)
    if not quiet:
        print(f"{known}\n{known.calibration}")
    print_written(experience, quiet=quiet)


@app.command()
@with_groups
def mailing(
    file: File,
    *,
    column: ColumnName = None,
    output: Output = None,
    following: Annotated[
        str | None,
        typer.Option(
            "--next", help="File for the rows to mail now; '-' is CSV on standard output."
        ),
    ] = None,
    experience: Annotated[
        str | None, typer.Option("--experience", help="File that `learn` wrote.")
    ] = None,
    max_bounce_rate: Annotated[
        float, typer.Option("--max-bounce-rate", help="Hard bounces by rows of a wave.")
    ] = 0.02,
    waves: Annotated[
        int, typer.Option("--waves", help="In how many parts the list is mailed.")
    ] = 6,
    prefix: Prefix = None,
    reading: TableOptions,
    in_place: InPlace = False,
    escape_formulas: EscapeFormulas = False,
    quiet: Quiet = False,
) -> None:
    """Choose the rows to mail now, within a bounce budget.

    --output gets the whole list with the wave of each row; give that file to `learn`, and here for the next wave.
    """
    output = check_output(file, output, in_place=in_place)
    following = check_output(file, following)
    check_not_read(output, "--output", experience)
    check_not_read(following, "--next", output, experience)
    if following is not None and output is None:
        raise mv.SettingsError(
            "--next needs --output: without the list of this wave the next one would mail it again"
        )
    with open_source(file, reading) as source:
        name = pick_verified(source, column, prefix)
        whole = pa.concat_tables(
            [piece.cast(plain_schema(piece.schema)) for piece in source.pieces()]
        )
        with printed_warnings("warning"):
            plan = mv.mailing(
                with_core(whole, name, prefix),
                name,
                max_bounce_rate=max_bounce_rate,
                waves=waves,
                experience=experience,
                prefix=prefix,
            )
        escaped = FormulaColumns(name, prefix, in_all=escape_formulas)
        outputs = [TableOutput(path, source, escaped) for path in (output, following)]
        with outputs[0].open() as write_list, outputs[1].open() as write_next:
            write_list(plan.frame)
            write_next(plan.next)
    print_remarks(source, quiet=quiet)
    if not quiet and STDIN not in (output, following):
        print(plan)
    for path in (output, following) if following else (output,):
        print_written(path, quiet=quiet)
