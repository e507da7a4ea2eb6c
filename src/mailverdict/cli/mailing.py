"""Commands about mailings: `learn` counts what became of one, `mailing` chooses the next rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import pyarrow as pa
import typer

import mailverdict as mv

from ..files.readers import STDIN
from ..files.table_file import ReadOptions, TableFile
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
    with_read_options,
)
from .rows import truth_of
from .status import print_status
from .terminal import app

# What the library names in its remedies, and what it is here.
REMEDIES = {
    "Mailing.frame": "the file of --output",
    "Mailing.next": "the file of --next",
    "Mailing.held": "a part of the file of --output",
    "this frame": "this file",
    "again=True": "--again",
    "resume=True": "--resume",
    "pilot=200": "--pilot 200",
    "mailed=True": "--all-mailed",
    "mailed=": "--mailed",
    "columns='all'": "--columns all",
    "columns='core'": "--columns core",
    "max_bounce_rate=": "--max-bounce-rate ",
    "waves=": "--waves ",
}


def in_options(text: object) -> str:
    """A text of the library with the names that things have on the command line."""
    shown = str(text)
    for ours, here in REMEDIES.items():
        shown = shown.replace(ours, here)
    return shown


@contextmanager
def told_in_options() -> Iterator[None]:
    """Print warnings and raise errors with the names that things have on the command line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except mv.MailVerdictError as exc:
            raise type(exc)(in_options(exc)) from exc
    for warning in caught:
        print_status(in_options(warning.message), "warning")


def read_whole(source: TableFile) -> pa.Table:
    """All rows of a file, with the note that a Parquet file keeps."""
    pieces = list(source.pieces())
    plain = [piece.cast(plain_schema(piece.schema)) for piece in pieces]
    return pa.concat_tables(plain).replace_schema_metadata(pieces[0].schema.metadata)


@app.command()
@with_read_options
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
    all_mailed: Annotated[
        bool, typer.Option("--all-mailed", help="Every row of the file was mailed.")
    ] = False,
    name: Annotated[
        str, typer.Option("--name", help="Name of the mailing, to tell it apart from others.")
    ] = "",
    complete: Annotated[
        bool,
        typer.Option(
            "--complete", help="All bounces have come: a wave without bounces is learnt, too."
        ),
    ] = False,
    prefix: Prefix = None,
    reading: ReadOptions,
    quiet: Quiet = False,
) -> None:
    """Count what became of a mailing, for the next one.

    The counts are by verdict, reason, operator and domain; the file holds no address.
    """
    check_not_read(experience, "--experience", file, bounces)
    if all_mailed and mailed is not None:
        raise mv.SettingsError("--all-mailed and --mailed: give one of them")
    known = mv.Experience()
    if user_path(experience).exists():
        known = mv.Experience.load(experience)
    reports = read_bounce_file(bounces, bounce_columns)
    with open_source(file, reading) as source:
        label = pick_verified(source, column, prefix)
        whole = read_whole(source)
    chosen: Any = None
    if all_mailed:
        chosen = True
    elif mailed is not None:
        chosen = truth_of(whole, mailed)
    with told_in_options():
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
@with_read_options
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
        float | None,
        typer.Option(
            "--max-bounce-rate",
            help="Hard bounces by rows of a wave; by default as in the wave before, or 0.02.",
        ),
    ] = None,
    waves: Annotated[
        int | None,
        typer.Option(
            "--waves",
            help="Number of waves of the list; by default as in the wave before, or 6.",
        ),
    ] = None,
    pilot: Annotated[
        int | None,
        typer.Option(
            "--pilot",
            help="A pilot: at most so many rows whose bounces teach the most; "
            "may be above the budget.",
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Plan the last wave again: it was not mailed.")
    ] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Mail although the last wave was blocked or complained about."
        ),
    ] = False,
    prefix: Prefix = None,
    reading: ReadOptions,
    in_place: InPlace = False,
    escape_formulas: EscapeFormulas = False,
    quiet: Quiet = False,
) -> None:
    """Choose the rows to mail now, within a bounce budget.

    --output gets the whole list with the wave of each row; give that file to `learn`, and here for
    the next wave.
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
        whole = read_whole(source)
        with told_in_options():
            plan = mv.mailing(
                with_core(whole, name, prefix),
                name,
                max_bounce_rate=max_bounce_rate,
                waves=waves,
                experience=experience,
                pilot=pilot,
                again=again,
                resume=resume,
                prefix=prefix,
            )
        escaped = FormulaColumns(name, prefix, in_all=escape_formulas)
        outputs = [TableOutput(path, source, escaped) for path in (output, following)]
        with outputs[0].open() as write_list, outputs[1].open() as write_next:
            write_list(plan.frame)
            write_next(plan.next)
    print_remarks(source, quiet=quiet)
    if not quiet and STDIN not in (output, following):
        print(in_options(plan))
    print_written(output, quiet=quiet)
    if following:
        print_written(following, quiet=quiet)
