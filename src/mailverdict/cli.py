"""The command line: each command is a few lines over the library.

Exit status: 0 done, 2 usage, 3 stopped by quota (partial file written), 4 service error,
130 interrupted (partial file written).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import typer

import mailverdict as mv

from .backend import Backend
from .errors import BackendError, MailVerdictError, QuotaExceeded
from .frames.columns import choose_columns
from .frames.files import STDIN, open_table
from .frames.guess import guess_column
from .frames.kinds import label_of
from .frames.sinks import AtomicTable
from .frames.stream import PieceStream, Stopper
from .frames.table_file import TableFile
from .loop import run_sync
from .model.words import ValidationType
from .reports.tally import MEANING_OF_VALID, Tally, render_tally

__all__ = ["app", "main"]

DONE, USAGE, QUOTA, SERVICE, INTERRUPTED = 0, 2, 3, 4, 130
app = typer.Typer(
    name="mailverdict",
    help="Tell which e-mail addresses in your data are good.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

File = Annotated[str, typer.Argument(help="CSV, TSV, Parquet or XLSX file; '-' is CSV on standard input.")]
ColumnName = Annotated[str | None, typer.Option("--column", "-c", help="Column of addresses; guessed when not given.")]
Kind = Annotated[
    ValidationType, typer.Option("--type", "-t", help="How deep; see the documentation.", envvar="MAILVERDICT_TYPE")
]
Output = Annotated[
    str | None,
    typer.Option("--output", "-o", help="File to write, its ending says the kind; '-' is CSV on standard output."),
]
Service = Annotated[
    str | None, typer.Option("--backend", help="URL of a verification service.", envvar="MAILVERDICT_BACKEND")
]
Sandbox = Annotated[
    bool, typer.Option("--sandbox", help="Ask a made-up mail world on this machine instead of the real one.")
]
ResolverAt = Annotated[
    str | None, typer.Option("--resolver", help="DNS resolver, as 127.0.0.1:5353.", envvar="MAILVERDICT_RESOLVER")
]
Encoding = Annotated[str | None, typer.Option("--encoding", help="Of a CSV; UTF-8 and UTF-16 are found out.")]
Delimiter = Annotated[str | None, typer.Option("--delimiter", help="Of a CSV; found out from the header line.")]
Sheet = Annotated[str | None, typer.Option("--sheet", help="Of an XLSX; the first when not given.")]
Raw = Annotated[
    bool, typer.Option("--raw", help="Write CSV cells that spreadsheets would run as formulas as they are.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no summary.")]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line; every expected error is one line on stderr.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process, when not given.
    """
    try:
        app(arguments, standalone_mode=True)
    except KeyboardInterrupt:
        fail("interrupted", INTERRUPTED)
    except QuotaExceeded as exc:
        fail(exc, QUOTA)
    except BackendError as exc:
        fail(exc, SERVICE)
    except (MailVerdictError, OSError) as exc:
        fail(exc, USAGE)
    sys.exit(DONE)


def fail(what: object, status: int) -> NoReturn:
    """Say it on one line and leave."""
    print(f"mailverdict: {' '.join(str(what).split())}", file=sys.stderr)
    sys.exit(status)


def tell(text: str) -> None:
    """Write to stderr, where the bar is too: standard output is for data."""
    print(text, file=sys.stderr)


@contextmanager
def chosen_backend(url: str | None, *, sandbox: bool, resolver: str | None) -> Iterator[Backend | str | None]:
    """The backend that the options ask for."""
    if sandbox and (url or resolver):
        raise mv.SettingsError("--sandbox brings its own mail world: leave out --backend and --resolver")
    if sandbox:
        from .sandbox import World  # noqa: PLC0415 - servers that few calls need

        with World() as world:
            tell("The mail world of this run is a sandbox on this machine: made-up domains, no real server is asked.")
            yield world.backend
    elif url:
        yield url
    else:
        own = mv.LocalBackend(resolver=resolver)
        try:
            yield own
        finally:
            run_sync(own.aclose())


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
    prefix: Annotated[str | None, typer.Option(help="Before each new column's name; COLUMN_ when not given.")] = None,
    limit: Annotated[int | None, typer.Option(help="Verify at most that many addresses newly.")] = None,
    journal: Annotated[str, typer.Option(help="File that keeps answers; 'auto', or 'none'.")] = "auto",
    max_age: Annotated[str, typer.Option(help="How long a kept answer is good.")] = "30D",
    refresh: Annotated[str, typer.Option(help="Verdicts to ask again, separated by commas.")] = "",
    on_quota: Annotated[str, typer.Option(help="stop, raise or wait.")] = "stop",
    screen: Annotated[str | None, typer.Option(help="mx: settle domains without mail here first.")] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Never touch the network.")] = False,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    raw: Raw = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Verify a column of a table file: a verdict, its reasons and flags for every row."""
    if as_json and output == STDIN:
        raise mv.SettingsError("--json and -o - both want standard output: write the table to a file")
    asked_columns = wanted_columns(columns)
    options = {
        "validation_type": validation_type,
        "columns": [*asked_columns, *TALLIED],
        "prefix": prefix,
        "limit": limit,
        "journal": None if journal == "none" else journal,
        "max_age": max_age,
        "refresh": [each for each in refresh.split(",") if each],
        "on_quota": on_quota,
        "screen": screen,
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
        kept = {str(label_of(name, prefix, each)) for each in asked_columns}
        tally = write_verified(stream, source, output, kept, raw=raw)
    for notice in stream.notices:
        tell(f"note: {notice}")
    show_tally(tally, validation_type, as_json=as_json, quiet=quiet)
    tell_written(output, quiet=quiet)
    tell_end(stream, tally.buckets["pending"])


# What the summary counts, whatever is written.
TALLIED = ("verdict", "details", "status", "error")


def write_verified(stream: PieceStream, source: TableFile, output: str | None, kept: set[str], *, raw: bool) -> Tally:
    """Write the caller's columns and those that were asked for; count them all."""
    tally = Tally()
    with open_output(output, source, raw=raw) as write:
        for piece, _ in stream.verify(source.pieces()):
            tally.add(piece, str(label_of(stream.column, stream.options["prefix"], "")))
            shown = [i for i, n in enumerate(piece.column_names) if i < len(source.columns) or n in kept]
            write(piece.select(shown))
    return tally


def tell_stopping() -> None:
    """Say what Ctrl-C does; written past Python's buffers, since it may fall into the middle of a write."""
    os.write(sys.stderr.fileno(), b"\nstopping: what is not settled stays pending; Ctrl-C again leaves at once\n")


def tell_end(stream: PieceStream, pending: int) -> None:
    """Leave with the status of whatever ended the verifying early."""
    if stream.stopper.is_asked:
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
    prefix: Annotated[str | None, typer.Option(help="Before each new column's name; COLUMN_ when not given.")] = None,
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
def check(
    email: Annotated[str, typer.Argument(help="The address.")],
    validation_type: Kind = ValidationType.SMTP,
    backend: Service = None,
    sandbox: Sandbox = False,
    resolver: ResolverAt = None,
    as_json: Json = False,
) -> None:
    """Verify one address now."""
    with chosen_backend(backend, sandbox=sandbox, resolver=resolver) as asked:
        found = mv.check(email, validation_type=validation_type, backend=asked)
    print(json.dumps(found.to_dict(), ensure_ascii=False, indent=2) if as_json else render_verification(found))


@app.command()
def explain(
    email: Annotated[str, typer.Argument(help="The address.")],
    validation_type: Kind = ValidationType.SMTP,
    backend: Service = None,
    sandbox: Sandbox = False,
    resolver: ResolverAt = None,
) -> None:
    """Show the evidence behind a verdict, step by step."""
    with chosen_backend(backend, sandbox=sandbox, resolver=resolver) as asked:
        print(mv.explain(email, validation_type=validation_type, backend=asked))


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
    with AtomicTable(output, delimiter=source.delimiter, is_for_people=not raw, has_mark=source.has_mark) as table:
        yield table.write


def tell_written(output: str | None, *, quiet: bool) -> None:
    if output is not None and output != STDIN and not quiet:
        tell(f"written: {output}")


def show_tally(tally: Tally, validation_type: str, *, as_json: bool, quiet: bool) -> None:
    """The summary: JSON on standard output, or lines for a person on stderr."""
    if as_json:
        print(json.dumps(tally.to_dict(), ensure_ascii=False, indent=2))
    elif not quiet:
        tell(
            f"{tally.rows:,} rows verified by {validation_type}\n{render_tally(tally, ValidationType(validation_type))}"
        )


def render_verification(found: mv.Verification) -> str:
    """One address for a person."""
    lines = [f"{found.email}: {found.result}" + (f" ({', '.join(found.reasons)})" if found.reasons else "")]
    lines += [f"  {fault.code}: {fault.message}" for fault in found.errors or ()]
    flags = {
        name: getattr(found, name) for name in ("role", "spamtrap", "disposable", "free", "catch_all", "protected")
    }
    if known := [f"{name}={str(value).lower()}" for name, value in flags.items() if value is not None]:
        lines.append(f"  flags: {', '.join(known)}")
    return "\n".join([*lines, f"  ({MEANING_OF_VALID[ValidationType(found.validation_type)]})"])
