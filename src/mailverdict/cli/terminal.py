"""What all commands share: the application, its options, how it speaks and how it leaves."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from ..backend import Backend
from ..errors import BackendError, MailVerdictError, QuotaExceeded, SettingsError
from ..local.backend import LocalBackend
from ..loop import run_sync
from ..model.words import ValidationType

__all__ = ["INTERRUPTED", "QUOTA", "USAGE", "app", "chosen_backend", "fail", "main", "tell"]

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
Email = Annotated[str, typer.Argument(help="The address.")]
JournalAt = Annotated[str, typer.Option("--journal", help="File that keeps answers; 'auto', or 'none'.")]
Prefix = Annotated[str | None, typer.Option("--prefix", help="Before each new column's name; COLUMN_ when not given.")]
PolicyName = Annotated[str | None, typer.Option("--policy", help="strict, balanced or lenient.")]
Limit = Annotated[int | None, typer.Option("--limit", help="Verify at most that many addresses newly.")]
MaxAge = Annotated[str, typer.Option("--max-age", help="How long a kept answer is good.")]
Refresh = Annotated[str, typer.Option("--refresh", help="Verdicts to ask again, separated by commas.")]
Offline = Annotated[bool, typer.Option("--offline", help="Never touch the network.")]


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
        raise SettingsError("--sandbox brings its own mail world: leave out --backend and --resolver")
    if sandbox:
        from ..sandbox import World  # noqa: PLC0415 - servers that few calls need

        with World() as world:
            tell("The mail world of this run is a sandbox on this machine: made-up domains, no real server is asked.")
            yield world.backend
    elif url:
        yield url
    else:
        own = LocalBackend(resolver=resolver)
        try:
            yield own
        finally:
            run_sync(own.aclose())


def journal_option(journal: str) -> str | Path | None:
    """``auto``, a file, or nothing."""
    return None if journal == "none" else journal


def split_list(text: str) -> list[str]:
    """Values separated by commas."""
    return [each.strip() for each in text.split(",") if each.strip()]
