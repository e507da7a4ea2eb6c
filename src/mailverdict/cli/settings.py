"""Options that the environment and a settings file give; those of the command line have precedence.

In this order: the option, ``MAILVERDICT_COMMAND_OPTION``, ``MAILVERDICT_OPTION``, the command's
table in the file, the lines of the file before the first table, the default. The command line's
parser converts and checks the values.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ..errors import SettingsError
from ..model.paths import user_path

PREFIX = "MAILVERDICT_"
SETTINGS_FILE = "mailverdict.toml"  # read from the working directory unless another one is given
NO_FILE = "none"
# What ``MAILVERDICT_OPTION`` sets for these is defined by the service's own settings.
SERVICE_COMMANDS = ("serve", "worker", "keys", "store", "sandbox")
BEFORE_COMMAND = "log-format"  # the only option of all commands that these sources set
CommandPath = tuple[str, ...]  # names of a command and of those above it
# Parameters of the parser by the names of options, without dashes.
Commands = Mapping[CommandPath, Mapping[str, Any]]


@dataclass
class GivenOptions:
    """Values of options as texts, and the file that gave some of them."""

    # By command and parameter: a `default_map` of the parser.
    values: dict[str, Any] = field(default_factory=dict)
    log_format: str | None = None
    file: Path | None = None  # if it was found and not named
    from_file: frozenset[str] = frozenset()  # commands with options in the file

    def put(self, command: CommandPath, parameter: Any, value: Any, source: str) -> None:
        """Set an option of a command; a later source has precedence."""
        values = self.values
        for name in command:
            values = values.setdefault(name, {})
        name = f"{source}: {command[-1]} --{parameter.name}"
        values[parameter.name] = as_text(value, name, many=parameter.multiple)


def as_text(value: Any, name: str, *, many: bool) -> str | list[str]:
    """A value as the command line would give it."""
    if isinstance(value, dict) or (isinstance(value, list) and not many):
        raise SettingsError(
            f"{name.replace('_', '-')} is {value!r:.80}; give one text, number, true or false"
        )
    if not many:
        return str(value)
    if isinstance(value, list):
        return list(map(str, value))
    return re.findall(r"[^\s,]+", str(value))


def read_options(group: Any, config: str | None, environ: Mapping[str, str]) -> GivenOptions:
    """Collect the options of all commands of the command line `group`.

    `config` names the settings file; `NO_FILE` is none, and by default it is `SETTINGS_FILE` if
    there is one.
    """
    commands = dict(walk((), group))
    given = GivenOptions()
    config = config or environ.get(variable("config"))
    path = settings_path(config)
    if path is not None:
        read_file(path, commands, given)
        given.from_file = frozenset(given.values)
        if not config:
            given.file = path
    for command, options in commands.items():
        for option, parameter in options.items():
            names = [variable(option), variable(*command, option)]
            for name in names[command[0] in SERVICE_COMMANDS :]:
                if environ.get(name):
                    given.put(command, parameter, environ[name], name)
    given.log_format = environ.get(variable(BEFORE_COMMAND)) or given.log_format
    return given


def walk(path: CommandPath, command: Any) -> Iterator[tuple[CommandPath, dict[str, Any]]]:
    """The options of each command by their names."""
    if path:
        options = {}
        for parameter in command.params:
            if parameter.param_type_name != "option" or parameter.name == "help":
                continue
            name = next(name for name in parameter.opts if name.startswith("--"))
            options[name.removeprefix("--")] = parameter
        yield path, options
    for name, child in getattr(command, "commands", {}).items():
        yield from walk((*path, name), child)


def settings_path(given: str | None) -> Path | None:
    """The file to read; an error if one is given that cannot be read."""
    if given == NO_FILE:
        return None
    path = user_path(given or SETTINGS_FILE)
    if path.is_file():
        return path
    if not given:
        return None
    if path.exists():
        raise SettingsError(f"--config {given}: it is not a file")
    raise SettingsError(f"--config {given}: no such file")


def read_file(path: Path, commands: Commands, given: GivenOptions) -> None:
    """Read a TOML file: options of every command that has them, then a table for each command."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as exc:
        raise SettingsError(f"{path} cannot be read as TOML: {exc}") from exc
    general = {}
    for name, value in data.items():
        if isinstance(value, dict):
            continue
        general[option_name(name)] = value
    if BEFORE_COMMAND in general:
        given.log_format = str(general.pop(BEFORE_COMMAND))
    having = {}
    known: set[str] = set()
    for command, options in commands.items():
        if command[0] not in SERVICE_COMMANDS:
            having[command] = options
            known.update(options)
    for name, value in general.items():
        check_known(name, known, f"{path}: {name!r} is not an option of any command")
        for command, options in having.items():
            if name in options:
                given.put(command, options[name], value, str(path))
    for name, table in data.items():
        if isinstance(table, dict):
            read_table(path, (name,), table, commands, given)


def read_table(
    path: Path, command: CommandPath, table: dict[str, Any], commands: Commands, given: GivenOptions
) -> None:
    """Read the options of one command, and of the commands below it."""
    where = f"[{'.'.join(command)}]"
    known = {" ".join(name) for name in commands}
    check_known(" ".join(command), known, f"{path}: {where} is not a command")
    for name, value in table.items():
        if isinstance(value, dict):
            read_table(path, (*command, name), value, commands, given)
            continue
        option = option_name(name)
        options = commands[command]
        check_known(option, set(options), f"{path}: {name!r} in {where} is not an option of it")
        given.put(command, options[option], value, str(path))


def option_name(key: str) -> str:
    return key.removeprefix("--").replace("_", "-")


def check_known(name: str, known: set[str], problem: str) -> None:
    """Raise `SettingsError` for an unknown name, with the known ones that are like it."""
    if name in known:
        return
    close = get_close_matches(name, sorted(known), 3)
    if close:
        raise SettingsError(f"{problem}; did you mean {' or '.join(close)}?")
    raise SettingsError(f"{problem}; there are {', '.join(sorted(known))}")


def variable(*names: str) -> str:
    """The environment variable of an option.

    >>> variable("verify", "on-quota")
    'MAILVERDICT_VERIFY_ON_QUOTA'
    """
    return PREFIX + "_".join(names).replace("-", "_").upper()


def service_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without the variables of options, which are not the service's."""
    general = (variable("config"), variable(BEFORE_COMMAND))
    of_commands = (variable("serve_"), variable("worker_"))
    names = [name for name in environ if not name.startswith(of_commands)]
    return {name: environ[name] for name in names if name not in general}
