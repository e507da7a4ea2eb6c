"""What all commands share: the application, the options, messages, exit status and the choice of the backend."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import typer

import mailverdict as mv

from ..backend import Backend
from ..errors import BackendError, MailVerdictError, QuotaExceeded, SettingsError
from ..local.backend import LocalBackend
from ..loop import run_sync
from ..model.words import ValidationType

__all__ = [
    "INTERRUPTED",
    "QUOTA",
    "USAGE",
    "app",
    "chosen_backend",
    "chosen_service",
    "exit_with_error",
    "main",
    "print_status",
]

DONE, USAGE, QUOTA, SERVICE, INTERRUPTED = 0, 2, 3, 4, 130
app = typer.Typer(
    name="mailverdict",
    help="Verify the e-mail addresses in your data.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

File = Annotated[str, typer.Argument(help="CSV, TSV, Parquet or XLSX file; '-' is CSV on standard input.")]
ColumnName = Annotated[str | None, typer.Option("--column", "-c", help="Column of addresses; guessed when not given.")]
Kind = Annotated[
    ValidationType, typer.Option("--type", "-t", help="How deep each address is verified.", envvar="MAILVERDICT_TYPE")
]
Output = Annotated[
    str | None,
    typer.Option("--output", "-o", help="File to write; its ending decides the kind; '-' is CSV on standard output."),
]
Service = Annotated[
    str | None, typer.Option("--backend", help="URL of a verification service.", envvar="MAILVERDICT_BACKEND")
]
Sandbox = Annotated[bool, typer.Option("--sandbox", help="Ask made-up servers on this machine instead of real ones.")]
ResolverAt = Annotated[
    str | None, typer.Option("--resolver", help="DNS resolver, as 127.0.0.1:5353.", envvar="MAILVERDICT_RESOLVER")
]
ResolverCheck = Annotated[
    bool,
    typer.Option(
        "--resolver-check/--no-resolver-check",
        help="Test the DNS resolver first; turn it off on a private network whose resolver knows only its own names.",
        envvar="MAILVERDICT_RESOLVER_CHECK",
    ),
]
Encoding = Annotated[str | None, typer.Option("--encoding", help="Encoding of a CSV; guessed when not given.")]
Delimiter = Annotated[str | None, typer.Option("--delimiter", help="Delimiter of a CSV; detected when not given.")]
Sheet = Annotated[
    str | None, typer.Option("--sheet", help="Sheet of an XLSX; by default the first that is neither empty nor hidden.")
]
EscapeFormulas = Annotated[
    bool,
    typer.Option(
        "--escape-formulas",
        help="Put an apostrophe before text of your own columns that a spreadsheet would run as a formula; in a CSV.",
    ),
]
HasHeader = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether the first line has the column names; found out by default."),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Refuse a CSV with rows of a wrong length or bytes not in its encoding.")
]
Raw = Annotated[bool, typer.Option("--raw", hidden=True, help="The default now: your cells are written as they are.")]
InPlace = Annotated[bool, typer.Option("--in-place", help="Let the output replace the input file.")]
Clean = Annotated[
    bool,
    typer.Option("--clean/--no-clean", help="Repair each cell first, and verify the repaired address (on by default)."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no summary.")]
Email = Annotated[str, typer.Argument(help="The address.")]
JournalAt = Annotated[str, typer.Option("--journal", help="File that keeps answers; 'auto', or 'none'.")]
Prefix = Annotated[
    str | None, typer.Option("--prefix", help="Prefix of each new column's name; COLUMN_ when not given.")
]
PolicyName = Annotated[str | None, typer.Option("--policy", help="strict, balanced or lenient.")]
Limit = Annotated[int | None, typer.Option("--limit", help="Verify at most this many new addresses.")]
MaxAge = Annotated[str, typer.Option("--max-age", help="How long a kept answer is used.")]
Refresh = Annotated[str, typer.Option("--refresh", help="Verdicts to verify again, separated by commas.")]
Offline = Annotated[bool, typer.Option("--offline", help="Do not use the network.")]


Bounces = Annotated[
    str,
    typer.Option("--bounces", help="What became of the mails: mbox, Maildir, .eml, a folder of these, or a table."),
]
BounceColumns = Annotated[
    str | None,
    typer.Option(
        "--bounce-columns",
        help="Columns of a table of bounces that is not known, as address=Recipient,outcome=Result,diagnostic=Reply.",
    ),
]


def print_version(is_given: bool) -> None:  # noqa: FBT001 - how typer calls it
    if is_given:
        print(f"mailverdict {mv.__version__}")
        raise typer.Exit


@app.callback()
def mailverdict(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=print_version, is_eager=True)
    ] = False,
) -> None:
    """Verify the e-mail addresses in your data."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line with these arguments, or those of the process; expected errors are one line on stderr."""
    try:
        app(arguments, standalone_mode=True)
    except KeyboardInterrupt:
        exit_with_error("interrupted", INTERRUPTED)
    except QuotaExceeded as exc:
        exit_with_error(exc, QUOTA)
    except BackendError as exc:
        exit_with_error(exc, SERVICE)
    except (MailVerdictError, OSError) as exc:
        exit_with_error(exc, USAGE)
    sys.exit(DONE)


def exit_with_error(message: object, status: int) -> NoReturn:
    print(f"mailverdict: {' '.join(str(message).split())}", file=sys.stderr)
    sys.exit(status)


def print_status(text: str) -> None:
    """Print to stderr, as the progress bar does: standard output is for data."""
    print(text, file=sys.stderr)


@contextmanager
def printed_warnings(label: str = "note") -> Iterator[None]:
    """Print what the library warns about, without the lines of Python that `warnings` shows."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for each in caught:
        print_status(f"{label}: {each.message}")


@contextmanager
def chosen_backend(
    url: str | None, *, sandbox: bool, resolver: str | None, resolver_check: bool = True
) -> Iterator[Backend | str | None]:
    """Yield the backend that the options ask for."""
    if sandbox and (url or resolver):
        raise SettingsError("--sandbox has its own servers: leave out --backend and --resolver")
    if sandbox:
        from ..sandbox import World  # noqa: PLC0415 - servers that few calls need

        with World() as world:
            print_status("Using the sandbox: made-up domains on this machine; no real server is asked.")
            yield world.backend
    elif url:
        yield chosen_service(url)
    else:
        backend = LocalBackend(resolver=resolver, resolver_check=resolver_check)
        try:
            yield backend
        finally:
            run_sync(backend.aclose())


def chosen_service(url: str) -> Backend | str:
    """The service at a URL; with the client key in MAILVERDICT_KEY, if it is set."""
    key = os.environ.get("MAILVERDICT_KEY", "").strip()
    if not key:
        return url
    from ..remote.backend import RemoteBackend  # noqa: PLC0415 - imports httpx

    return RemoteBackend(url, headers={"Authorization": f"Bearer {key}"})


def parse_journal(journal: str) -> str | Path | None:
    return None if journal == "none" else journal


def split_list(text: str) -> list[str]:
    """The values of a list separated by commas."""
    return [each.strip() for each in text.split(",") if each.strip()]
