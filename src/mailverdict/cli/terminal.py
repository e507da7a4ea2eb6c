"""What all commands share: the application, the options, exit status and the choice of the backend."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from tempfile import gettempdir
from typing import Annotated, Any, NoReturn

import typer

import mailverdict as mv

from ..atomic_write import NO_ROOM
from ..backend import Backend
from ..errors import BackendError, MailVerdictError, QuotaExceeded, SettingsError
from ..local.backend import LocalBackend
from ..loop import run_sync
from ..model.words import ValidationType
from .settings import NO_FILE, SETTINGS_FILE, GivenOptions, read_options
from .status import STATUS, LogFormat, StatusLog, print_error, print_status

__all__ = ["ABOVE_LIMIT", "DONE", "QUOTA", "SERVICE", "USAGE", "app", "chosen_backend", "chosen_service", "main"]

DONE, USAGE, QUOTA, SERVICE, ABOVE_LIMIT, INTERRUPTED = 0, 2, 3, 4, 5, 130
app = typer.Typer(
    name="mailverdict",
    help="Verify the e-mail addresses in your data.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def parse_kind(text: str) -> ValidationType:
    """The type of ``--type``, in any case."""
    try:
        return ValidationType(str(text).strip().lower())
    except ValueError:
        choices = ", ".join(f"'{kind}'" for kind in ValidationType)
        raise typer.BadParameter(f"{str(text)[:40]!r} is not one of {choices}") from None


File = Annotated[
    str, typer.Argument(help="CSV, TSV, Parquet, Arrow, JSON lines or XLSX file, a folder of Parquet files, or '-'.")
]
ColumnName = Annotated[str | None, typer.Option("--column", "-c", help="Column of addresses; guessed when not given.")]
Kind = Annotated[
    ValidationType,
    typer.Option(
        "--type",
        "-t",
        help="How deep each address is verified.",
        parser=parse_kind,
        metavar=f"[{'|'.join(ValidationType)}]",
    ),
]
Output = Annotated[
    str | None,
    typer.Option("--output", "-o", help="File to write; its ending decides the kind; '-' is CSV on standard output."),
]
Service = Annotated[str | None, typer.Option("--backend", help="URL of a verification service.")]
Sandbox = Annotated[bool, typer.Option("--sandbox", help="Ask made-up servers on this machine instead of real ones.")]
ResolverAt = Annotated[str | None, typer.Option("--resolver", help="DNS resolver, as 127.0.0.1:5353.")]
RESOLVER_CHECK = typer.Option(
    "--resolver-check/--no-resolver-check",
    help="Test the DNS resolver first; turn it off on a private network whose resolver knows only its own names.",
)
ResolverCheck = Annotated[bool, RESOLVER_CHECK]
ServiceResolverCheck = Annotated[bool | None, RESOLVER_CHECK]  # None: as the service's settings say
SmtpPort = Annotated[int | None, typer.Option(help="Port of the mail servers; 25 except in tests.")]
HeloName = Annotated[str | None, typer.Option(help="Name of this host in EHLO.")]
AllowNetwork = Annotated[list[str] | None, typer.Option(help="Private network that may be contacted.")]
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
FailAbove = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-above",
        metavar="NAME=LIMIT",
        help="Exit with status 5 if more rows than this have a verdict or status, as unknown=5% or invalid=100; "
        "may be given several times.",
    ),
]
Email = Annotated[str, typer.Argument(help="The address.")]
JournalAt = Annotated[str, typer.Option("--journal", help="File that keeps answers; 'auto', or 'none'.")]
Prefix = Annotated[
    str | None, typer.Option("--prefix", help="Prefix of each new column's name; COLUMN_ when not given.")
]
PolicyName = Annotated[str | None, typer.Option("--policy", help="strict, balanced or lenient.")]
Earlier = Annotated[
    str | None,
    typer.Option(
        "--earlier", help="An earlier verified file of the list: the report shows what changed; its rows are in memory."
    ),
]
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
    context: typer.Context,
    config: Annotated[
        str | None,
        typer.Option("--config", help=f"TOML file with options; {SETTINGS_FILE} if there is one, or '{NO_FILE}'."),
    ] = None,
    log_format: Annotated[
        LogFormat | None, typer.Option("--log-format", help="How messages are written to standard error.")
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=print_version, is_eager=True)
    ] = False,
) -> None:
    """Verify the e-mail addresses in your data.

    Every option can also be set by an environment variable, such as MAILVERDICT_TYPE, or in the file of --config.
    """
    given = read_options(context.command, config, os.environ)
    context.default_map = given.values
    if isinstance(context.obj, Invocation):
        context.obj.given, context.obj.command = given, (str(context.invoked_subcommand),)
        context.obj.names = option_names(context.command, str(context.invoked_subcommand))
    STATUS.set(StatusLog(log_format or parse_log_format(given.log_format)))
    if given.file is not None and given.sources.get((str(context.invoked_subcommand),)):
        print_status(f"options are read from {given.file}", "note")
    for remark in given.remarks:
        print_status(remark, "warning")


def parse_log_format(text: str | None) -> LogFormat:
    if text is not None and text not in tuple(LogFormat):
        raise SettingsError(f"log-format is {text!r:.40}: give one of {', '.join(LogFormat)}")
    return LogFormat(text or LogFormat.TEXT)


def option_names(group: Any, command: str) -> dict[str, str]:
    """The options of a command by their names in Python."""
    options = [each for each in group.commands[command].params if each.param_type_name == "option"]
    return {str(each.name): max(each.opts, key=len) for each in options}


class Invocation:
    """What is known about one call of the command line when it ends."""

    def __init__(self) -> None:
        self.given = GivenOptions()
        self.command: tuple[str, ...] = ()
        self.names: dict[str, str] = {}  # options by the argument of the library

    def in_options(self, message: object) -> str:
        """A message of the library that begins with an argument, as ``max_age='1'``, with the option instead."""
        name, equals, rest = str(message).partition("=")
        return f"{self.names[name]} {rest}" if equals and name in self.names else str(message)

    def print_sources(self) -> None:
        """After a usage error: which options come from the environment or a file."""
        if sources := self.given.describe(self.command):
            print_status(f"set outside the command line, where they are not given on it: {sources}", "note")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line with these arguments, or those of the process; expected errors are one line on stderr."""
    copy_context().run(run_command, general_first(sys.argv[1:] if arguments is None else arguments))


def run_command(arguments: list[str]) -> NoReturn:
    invocation = Invocation()
    try:
        app(arguments, standalone_mode=True, obj=invocation)
        status = DONE
    except KeyboardInterrupt:
        status = INTERRUPTED
        print_error("interrupted", status)
    except QuotaExceeded as exc:
        status = QUOTA
        print_error(exc, status)
    except BackendError as exc:
        status = SERVICE
        print_error(exc, status)
    except MailVerdictError as exc:
        status = USAGE
        print_error(invocation.in_options(exc), status)
    except OSError as exc:
        status = USAGE
        print_error(describe_os_error(exc), status)
    except SystemExit as exc:
        status = exc.code if isinstance(exc.code, int) else DONE
    if status == USAGE:
        invocation.print_sources()
    sys.exit(status)


def describe_os_error(exc: OSError) -> str:
    """The file, if it is known, and what is wrong.

    >>> describe_os_error(PermissionError(13, "Permission denied", "a.html"))
    'a.html: Permission denied'
    """
    what = exc.strerror or str(exc)
    if exc.errno in NO_ROOM:  # pyarrow says more, and less clearly
        what = f"{os.strerror(exc.errno)}; temporary files are in {gettempdir()}"
    return what if exc.filename is None else f"{os.fsdecode(exc.filename)}: {what}"


def general_first(arguments: Sequence[str]) -> list[str]:
    """The arguments with the options of all commands, which may be given anywhere, before the command.

    >>> general_first(["verify", "a.csv", "--config", "b.toml", "-t", "mx"])
    ['--config', 'b.toml', 'verify', 'a.csv', '-t', 'mx']
    """
    first: list[str] = []
    rest = list(arguments)
    at = 0
    while at < len(rest) and rest[at] != "--":
        name, equals, _ = rest[at].partition("=")
        if name in ("--config", "--log-format"):
            end = at + (1 if equals else 2)
            first += rest[at:end]
            del rest[at:end]
        else:
            at += 1
    return first + rest


@contextmanager
def chosen_backend(
    url: str | None,
    *,
    sandbox: bool,
    resolver: str | None = None,
    resolver_check: bool = True,
    as_service: bool = False,
    **settings: Any,
) -> Iterator[Backend | str | None]:
    """Yield the backend that the options ask for; `as_service`: the sandbox's service instead of its local backend.

    `settings` are more settings of the local backend.
    """
    if sandbox and (url or resolver):
        raise SettingsError("--sandbox has its own servers: leave out --backend and --resolver")
    if sandbox:
        from ..sandbox import World  # noqa: PLC0415 - servers that few calls need

        with World() as world:
            print_status("Using the sandbox: made-up domains on this machine; no real server is asked.")
            yield world.url if as_service else world.make_backend(**settings) if settings else world.backend
    elif url:
        yield chosen_service(url)
    else:
        backend = LocalBackend(resolver=resolver, resolver_check=resolver_check, **settings)
        try:
            yield backend
        finally:
            run_sync(backend.aclose())


def chosen_service(url: str) -> Backend | str:
    """The service at a URL; with the client key in MAILVERDICT_KEY, if it is set."""
    from ..remote.backend import RemoteBackend  # noqa: PLC0415 - imports httpx
    from ..remote.client import parse_base_url  # noqa: PLC0415 - as above

    parse_base_url(url, "--backend")
    key = os.environ.get("MAILVERDICT_KEY", "").strip()
    if not key:
        return url

    return RemoteBackend(url, headers={"Authorization": f"Bearer {key}"})


def parse_journal(journal: str) -> str | Path | None:
    return None if journal == "none" else journal


def split_list(text: str) -> list[str]:
    """The values of a list separated by commas."""
    return [each.strip() for each in text.split(",") if each.strip()]
