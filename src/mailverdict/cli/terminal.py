"""What all commands share: the application, exit status and the choice of the backend.

main(["verify", "a.csv", "--config", "b.toml"])
    general_first   options of all commands come first: --config b.toml verify a.csv
    mailverdict     reads the settings file and the environment (`settings`)
    verify          the command
    run_command     an error of the library is one line, and the status says of which kind
"""

from __future__ import annotations

import errno
import itertools
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from tempfile import gettempdir
from typing import Annotated, Any, NoReturn

import typer
import typer.core

import mailverdict as mv

from ..atomic_write import NO_ROOM
from ..backend import Backend
from ..errors import BackendError, MailVerdictError, QuotaExceeded, SettingsError
from ..local.backend import LocalBackend
from ..loop import run_sync
from .settings import NO_FILE, SETTINGS_FILE, read_options
from .status import (
    STATUS,
    LogFormat,
    StatusLog,
    accept_all_characters,
    print_error,
    print_status,
)

DONE, USAGE, QUOTA, SERVICE, ABOVE_LIMIT, INTERRUPTED = 0, 2, 3, 4, 5, 130
SANDBOX_NOTE = "Using the sandbox: made-up domains on this machine; no real server is asked."
# Typer has no name of its own for it.
UsageError: type[Any] = typer.BadParameter.__base__  # type: ignore[assignment]
# The commands by what people want to do, in the order of --help.
GROUPS = {
    "Verify": ("verify", "plan", "estimate", "audit", "check", "explain", "quota", "audit-host"),
    "Clean": ("clean", "explode", "duplicates", "suppress"),
    "Decide": ("report", "breakdown", "operators", "outcomes", "compare", "learn", "mailing"),
    "Serve": ("serve", "worker", "keys", "store", "sandbox"),
    "Maintain": ("runs", "lists"),
}


class GroupedCommands(typer.core.TyperGroup):
    """The commands under the headings of `GROUPS`; all help texts begin in one column."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, self.commands))
        limit = formatter.width - 6 - width
        for title, names in GROUPS.items():
            lines = []
            for name in names:
                lines.append((name.ljust(width), self.commands[name].get_short_help_str(limit)))
            with formatter.section(title):
                formatter.write_dl(lines)


# The options of a command with many, by what they are about, in the order of --help; by their names
# in Python.
OPTION_GROUPS = {
    "What is verified": ("column", "validation_type", "clean", "explode", "limit"),
    "Who answers": (
        *("backend", "sandbox", "resolver", "resolver_check", "screen", "offline"),
        *("on_quota", "known", "mapped"),
    ),
    "What is kept from earlier runs": ("journal", "max_age", "refresh"),
    "Who must not be mailed": ("suppress", "suppress_where", "against_column"),
    "What is written": (
        *("output", "in_place", "columns", "prefix", "escape_formulas"),
        *("policy", "keep_repeats", "for_service"),
    ),
    "The report": ("report", "audience", "earlier"),
    "How the file is read": ("encoding", "delimiter", "sheet", "header", "strict"),
    "What is printed": ("fail_above", "as_json", "quiet", "help"),
}


class GroupedOptions(typer.core.TyperCommand):
    """A command whose options are under the headings of `OPTION_GROUPS`."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        records: dict[str, tuple[str, str]] = {}
        arguments = []
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if parameter.param_type_name == "argument":
                arguments.append(record)
            else:
                records[str(parameter.name)] = record
        with formatter.section("Arguments"):
            formatter.write_dl(arguments)
        for title, names in OPTION_GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([records.pop(name) for name in names if name in records])
        if records:
            with formatter.section("Others"):
                formatter.write_dl(list(records.values()))


app = typer.Typer(
    name="mailverdict",
    cls=GroupedCommands,
    help="Verify the e-mail addresses in your data.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def print_version(is_given: bool) -> None:  # noqa: FBT001 - how typer calls it
    if is_given:
        print(f"mailverdict {mv.__version__}")
        raise typer.Exit


@app.callback()
def mailverdict(
    context: typer.Context,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            help=f"TOML file with options; {SETTINGS_FILE} if there is one, or '{NO_FILE}'.",
        ),
    ] = None,
    log_format: Annotated[
        LogFormat | None,
        typer.Option("--log-format", help="How messages are written to standard error."),
    ] = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Verify the e-mail addresses in your data.

    Every option can also be set by an environment variable, such as MAILVERDICT_TYPE, or in the
    file of --config.
    """
    given = read_options(context.command, config, os.environ)
    context.default_map = given.values
    command = str(context.invoked_subcommand)
    if isinstance(context.obj, dict):
        context.obj |= option_names(context.command, command)
    STATUS.set(StatusLog(log_format or parse_log_format(given.log_format)))
    if given.file is not None and command in given.from_file:
        print_status(f"options are read from {given.file}", "note")


def parse_log_format(text: str | None) -> LogFormat:
    if text is not None and text not in tuple(LogFormat):
        raise SettingsError(f"log-format is {text!r:.40}: give one of {', '.join(LogFormat)}")
    return LogFormat(text or LogFormat.TEXT)


def option_names(group: Any, command: str) -> dict[str, str]:
    """The options of a command by their names in Python."""
    names = {}
    for parameter in group.commands[command].params:
        if parameter.param_type_name == "option":
            names[str(parameter.name)] = max(parameter.opts, key=len)
    return names


def in_options(message: object, names: Mapping[str, str]) -> str:
    """A message that begins with an argument, as ``max_age='1'``, with the option instead."""
    name, equals, rest = str(message).partition("=")
    if equals and name in names:
        return f"{names[name]} {rest}"
    return str(message)


def describe_usage_error(text: str, exc: Any) -> str:
    """What is wrong with an option, where its value is from, and where help is."""
    context: Any = exc.ctx
    parameter: Any = getattr(exc, "param", None)
    if context is None:
        return text
    text = text.removesuffix(".")
    source = None
    if parameter is not None:
        source = context.get_parameter_source(parameter.name)
    if source is not None and source.name == "DEFAULT_MAP":
        value = context.lookup_default(parameter.name)
        text += f"; {value!r:.80} is from the environment or the settings file"
    return f"{text}; see {context.command_path} --help"


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line; expected errors are one line on stderr."""
    if arguments is None:
        arguments = sys.argv[1:]
    copy_context().run(run_command, general_first(arguments))


@cache
def make_command() -> Any:
    """The application as a command of Click, made once: a process may run many command lines."""
    return typer.main.get_command(app)


def run_command(arguments: list[str]) -> NoReturn:
    accept_all_characters()
    names: dict[str, str] = {}  # of the command's options by the argument of the library
    try:
        command = make_command()
        status = command(arguments, prog_name="mailverdict", standalone_mode=False, obj=names)
        status = status or DONE
    except (KeyboardInterrupt, typer.Abort):
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
        print_error(in_options(exc, names), status)
    except UsageError as exc:
        status = USAGE
        text = exc.format_message()
        if text.startswith("Usage: "):  # the help of a group that was called without a command
            print(text, file=sys.stderr)
        else:
            print_error(describe_usage_error(text, exc), status)
    except OSError as exc:
        status = USAGE
        print_error(describe_os_error(exc), status)
    except SystemExit as exc:
        status = DONE
        if isinstance(exc.code, int) and not is_closed_pipe(exc.__context__):
            status = exc.code
    sys.exit(status)


def is_closed_pipe(cause: BaseException | None) -> bool:
    """Whether nobody reads the output any more, as behind ``| head``: Click exits with 1."""
    return isinstance(cause, OSError) and cause.errno == errno.EPIPE


def describe_os_error(exc: OSError) -> str:
    """The file, if it is known, and what is wrong.

    >>> describe_os_error(PermissionError(13, "Permission denied", "a.html"))
    'a.html: Permission denied'
    """
    what = exc.strerror or str(exc)
    if exc.errno in NO_ROOM:  # pyarrow says more, and less clearly
        what = f"{os.strerror(exc.errno)}; temporary files are in {gettempdir()}"
    if exc.filename is None:
        return what
    return f"{os.fsdecode(exc.filename)}: {what}"


def general_first(arguments: Sequence[str]) -> list[str]:
    """The arguments, where options of all commands stand before the command.

    >>> general_first(["verify", "a.csv", "--config", "b.toml", "-t", "mx"])
    ['--config', 'b.toml', 'verify', 'a.csv', '-t', 'mx']
    """
    first: list[str] = []
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        name, equals, _ = word.partition("=")
        if name in ("--config", "--log-format"):
            first.append(word)
            if not equals:
                first += itertools.islice(words, 1)
            continue
        rest.append(word)
        if word == "--":
            rest += words
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
    """Yield the backend; `as_service`: the sandbox's service, not its local backend.

    `settings` are more settings of the local backend.
    """
    check_sandbox(url, resolver, sandbox=sandbox)
    if sandbox:
        from ..sandbox import World  # noqa: PLC0415 - servers that few calls need

        with World() as world:
            print_status(SANDBOX_NOTE)
            if as_service:
                yield world.url
            elif settings:
                yield world.make_backend(**settings)
            else:
                yield world.backend
    elif url:
        yield chosen_service(url)
    else:
        backend = LocalBackend(resolver=resolver, resolver_check=resolver_check, **settings)
        try:
            yield backend
        finally:
            run_sync(backend.aclose())


def check_sandbox(url: str | None, resolver: str | None, *, sandbox: bool) -> None:
    """Refuse options that name servers beside those of the sandbox."""
    if sandbox and (url or resolver):
        raise SettingsError("--sandbox has its own servers: leave out --backend and --resolver")


def chosen_service(url: str) -> Backend | str:
    """The service at a URL; with the client key in MAILVERDICT_KEY, if it is set."""
    from ..remote.backend import RemoteBackend  # noqa: PLC0415 - imports httpx
    from ..remote.client import parse_base_url  # noqa: PLC0415 - as above

    parse_base_url(url, "--backend")
    key = os.environ.get("MAILVERDICT_KEY", "").strip()
    if not key:
        return url
    return RemoteBackend(url, headers={"Authorization": f"Bearer {key}"})
