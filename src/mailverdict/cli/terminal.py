"""What all commands share: the application, exit status and the choice of the backend."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from tempfile import gettempdir
from typing import Annotated, Any, NoReturn

import typer

import mailverdict as mv

from ..atomic_write import NO_ROOM
from ..backend import Backend
from ..errors import BackendError, MailVerdictError, QuotaExceeded, SettingsError
from ..local.backend import LocalBackend
from ..loop import run_sync
from .settings import NO_FILE, SETTINGS_FILE, GivenOptions, read_options
from .status import STATUS, LogFormat, StatusLog, print_error, print_status

DONE, USAGE, QUOTA, SERVICE, ABOVE_LIMIT, INTERRUPTED = 0, 2, 3, 4, 5, 130
SANDBOX_NOTE = "Using the sandbox: made-up domains on this machine; no real server is asked."
app = typer.Typer(
    name="mailverdict",
    help="Verify the e-mail addresses in your data.",
    no_args_is_help=True,
    add_completion=False,
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


@cache
def make_command() -> Any:
    """The application as a command of Click, made once: a process may run many command lines."""
    return typer.main.get_command(app)


def run_command(arguments: list[str]) -> NoReturn:
    invocation = Invocation()
    try:
        make_command()(arguments, standalone_mode=True, obj=invocation)
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
    check_sandbox(url, resolver, sandbox=sandbox)
    if sandbox:
        from ..sandbox import World  # noqa: PLC0415 - servers that few calls need

        with World() as world:
            print_status(SANDBOX_NOTE)
            yield world.url if as_service else world.make_backend(**settings) if settings else world.backend
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
