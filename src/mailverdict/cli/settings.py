"""Options that the environment and a settings file give; those of the command line have precedence.

In this order: the option, ``MAILVERDICT_COMMAND_OPTION``, ``MAILVERDICT_OPTION``, the command's table in the file, the
lines of the file before the first table, the default.
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


@dataclass
class GivenOptions:
    """Values of options, and where each comes from."""

    values: dict[str, Any] = field(default_factory=dict)  # by command and parameter, for the command line's parser
    sources: dict[tuple[str, ...], dict[str, str]] = field(default_factory=dict)  # by command and option
    log_format: str | None = None
    file: Path | None = None
    remarks: list[str] = field(default_factory=list)

    def put(self, path: tuple[str, ...], option: Option, value: Any, source: str) -> None:
        """Set an option of the command at `path`; a later source has precedence."""
        values = self.values
        for name in path:
            values = values.setdefault(name, {})
        values[option.parameter] = option.read(value, source)
        self.sources.setdefault(path, {})[option.name] = source

    def describe(self, path: tuple[str, ...]) -> str:
        """Which options of a command were set, for an error message; empty if none was."""
        return ", ".join(f"--{name} from {source}" for name, source in self.sources.get(path, {}).items())


@dataclass(frozen=True)
class Option:
    """An option of a command, as the parser knows it."""

    name: str  # without the dashes
    parameter: str
    is_flag: bool
    is_multiple: bool

    def read(self, value: Any, source: str) -> Any:
        """The value for the parser; a `SettingsError` for one of a wrong type."""
        is_text = isinstance(value, str)
        if self.is_multiple:
            values = re.split(r"[\s,]+", value.strip()) if is_text else value
            if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
                raise SettingsError(f"{source}: {self.name} is {value!r:.80}; give a text or a list of texts")
            return [each for each in values if each]
        if self.is_flag and not (isinstance(value, bool) or (is_text and value.strip().lower() in TRUTH)):
            raise SettingsError(f"{source}: {self.name} is {value!r:.80}; give true or false")
        if self.is_flag:
            return value if isinstance(value, bool) else TRUTH[value.strip().lower()]
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise SettingsError(f"{source}: {self.name} is {value!r:.80}; give a text or a number")
        return str(value)  # a number too: the parser refuses 2.5 where it needs an integer


TRUTH = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def read_options(group: Any, config: str | None, environ: Mapping[str, str]) -> GivenOptions:
    """Collect the options of all commands of the command line `group`.

    `config` names the settings file; `NO_FILE` is none, and by default it is `SETTINGS_FILE` if there is one.
    """
    commands = dict(walk((), group))
    found = GivenOptions()
    path = settings_path(config or environ.get(PREFIX + "CONFIG"))
    if path is not None:
        read_file(path, commands, found)
        if config is None and not environ.get(PREFIX + "CONFIG"):
            found.file = path
    read_variables(environ, commands, found)
    return found


def walk(path: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], dict[str, Option]]]:
    """The options of each command by their names."""
    if path:
        options: dict[str, Option] = {}
        for each in command.params:
            long = [name.removeprefix("--") for name in each.opts if name.startswith("--")]
            if each.param_type_name == "option" and long and long[0] != "help":
                is_flag = bool(getattr(each, "is_bool_flag", False))
                options[long[0]] = Option(long[0], each.name, is_flag, bool(each.multiple))
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
    if given:
        raise SettingsError(f"--config {given}: {'it is not a file' if path.exists() else 'no such file'}")
    return None


Commands = Mapping[tuple[str, ...], Mapping[str, Option]]


def read_file(path: Path, commands: Commands, found: GivenOptions) -> None:
    """Read a TOML file: options of every command that has them, then a table for each command."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as exc:
        raise SettingsError(f"{path} cannot be read as TOML: {exc}") from exc
    general = {option_name(name): value for name, value in data.items() if not isinstance(value, dict)}
    if BEFORE_COMMAND in general:
        found.log_format = str(general.pop(BEFORE_COMMAND))
    general_commands = {each: options for each, options in commands.items() if each[0] not in SERVICE_COMMANDS}
    known = {name for options in general_commands.values() for name in options}
    for name, value in general.items():
        check_known(name, known, f"{path}: {name!r} is not an option of any command")
        for command, options in general_commands.items():
            if name in options:
                found.put(command, options[name], value, str(path))
    for name, table in data.items():
        if isinstance(table, dict):
            read_table(path, (name,), table, commands, found)


def read_table(
    path: Path, command: tuple[str, ...], table: dict[str, Any], commands: Commands, found: GivenOptions
) -> None:
    """Read the options of one command, and of the commands below it."""
    title = " ".join(command)
    if command not in commands:
        known = {" ".join(each) for each in commands}
        check_known(title, known, f"{path}: [{'.'.join(command)}] is not a command")
    for name, value in table.items():
        if isinstance(value, dict):
            read_table(path, (*command, name), value, commands, found)
            continue
        option = option_name(name)
        check_known(option, set(commands[command]), f"{path}: {name!r} in [{'.'.join(command)}] is not an option of it")
        found.put(command, commands[command][option], value, str(path))


def option_name(key: str) -> str:
    return key.removeprefix("--").replace("_", "-")


def check_known(name: str, known: set[str], problem: str) -> None:
    """Raise `SettingsError` for an unknown name, with the known ones that are like it."""
    if name not in known:
        close = get_close_matches(name, sorted(known), 3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(sorted(known))}"
        raise SettingsError(f"{problem}; {hint}")


def read_variables(environ: Mapping[str, str], commands: Commands, found: GivenOptions) -> None:
    """Read the variables of all options; the one with a command's name has precedence. Empty ones are not set."""
    known = {PREFIX + "CONFIG", PREFIX + "KEY", variable(BEFORE_COMMAND)}  # KEY: of a service's client
    if text := environ.get(variable(BEFORE_COMMAND)):
        found.log_format = text
    for command, options in commands.items():
        for option in options.values():
            names = [variable(option.name), variable(*command, option.name)]
            for name in names[command[0] in SERVICE_COMMANDS :]:
                known.add(name)
                if environ.get(name):
                    found.put(command, option, environ[name], name)
    of_service = tuple(variable(command, "") for command in SERVICE_COMMANDS)
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known and environ[name]:
            # MAILVERDICT_DAILY_LIMIT is a setting of the service, not a misspelled MAILVERDICT_SERVE_DAILY_LIMIT.
            similar = known if name.startswith(of_service) else {n for n in known if not n.startswith(of_service)}
            short = {each.removeprefix(PREFIX): each for each in similar}
            close = get_close_matches(name.removeprefix(PREFIX), sorted(short), 1, cutoff=0.75)
            if close:
                found.remarks.append(f"{name} is not an option and is ignored; did you mean {short[close[0]]}?")


def variable(*names: str) -> str:
    """The environment variable of an option.

    >>> variable("verify", "on-quota")
    'MAILVERDICT_VERIFY_ON_QUOTA'
    """
    return PREFIX + "_".join(names).replace("-", "_").upper()


def service_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without the variables of the command line's own options, which are not the service's settings."""
    own = {variable("config"), variable(BEFORE_COMMAND)}
    of_commands = (variable("serve_"), variable("worker_"))
    return {name: text for name, text in environ.items() if not name.startswith(of_commands) and name not in own}
