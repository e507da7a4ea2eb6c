"""The service's settings out of ``MAILVERDICT_*`` variables: the only place here that reads the environment."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from ..errors import SettingsError
from ..model.settings import Blacklist, Lists, LocalSettings, Zone
from .settings import ServiceSettings

__all__ = ["PREFIX", "VARIABLES", "from_environment"]

PREFIX = "MAILVERDICT_"
LOG = logging.getLogger(__name__)
FLAGS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def read_flag(text: str) -> bool:
    return FLAGS[text.strip().lower()]


def read_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def read_zones(text: str) -> tuple[Zone, ...]:
    """``zone=code+code, zone=code``: which answers of which DNS list mean *listed*."""
    pairs = (part.partition("=") for part in read_list(text))
    return tuple(Zone(name.strip(), tuple(codes.split("+"))) for name, _, codes in pairs)  # type: ignore[arg-type]


Reader = Callable[[str], Any]
# What is not here stays text; a number with a point is a duration, which settings parse themselves.
BY_DEFAULT: tuple[tuple[type, Reader], ...] = ((bool, read_flag), (int, int), (tuple, read_list))
# Attributes whose default does not tell how their text is read.
BY_NAME: dict[str, Reader] = {
    "rate_limit": float,
    "saturation_backoff": str,
    "zones": read_zones,
    **{f.name: str for f in fields(Lists) if f.name != "extended_roles"},  # each is a path here
}
# Values that are made of several attributes; their variables carry the prefix given here.
PARTS: dict[str, tuple[type, str]] = {"blacklist": (Blacklist, "BLACKLIST_"), "lists": (Lists, "")}


def reader_of(name: str, default: object) -> Reader:
    """How the text of an attribute is read."""
    return BY_NAME.get(name) or next((reader for kind, reader in BY_DEFAULT if isinstance(default, kind)), str)


def attributes(owner: type, skipped: tuple[str, ...] = ()) -> Iterator[tuple[str, Reader]]:
    """The plain attributes of a settings value, each with its reader."""
    default = owner()
    for each in fields(owner):
        if each.init and each.name not in skipped:
            yield each.name, reader_of(each.name, getattr(default, each.name))


def variables() -> dict[str, tuple[str, str, Reader]]:
    """Every variable: where its value goes (owner, attribute) and its reader."""
    found = {name.upper(): ("service", name, read) for name, read in attributes(ServiceSettings, ("local",))}
    found |= {name.upper(): ("local", name, read) for name, read in attributes(LocalSettings, tuple(PARTS))}
    for owner, (kind, prefix) in PARTS.items():
        found |= {prefix + name.upper(): (owner, name, read) for name, read in attributes(kind)}
    return {PREFIX + name: target for name, target in found.items()}


VARIABLES = variables()


def from_environment(environ: Mapping[str, str] | None = None, **overrides: Any) -> ServiceSettings:
    """Build settings out of ``MAILVERDICT_*`` variables.

    Parameters
    ----------
    environ : mapping of str to str, optional
        The variables; the process's by default. A variable is named after the attribute of
        `ServiceSettings` or `LocalSettings` in upper case, as ``MAILVERDICT_DAILY_LIMIT``. An empty
        one counts as not set.
    **overrides
        Attributes of `ServiceSettings` or `LocalSettings` that win over the environment; None does not.

    Returns
    -------
    ServiceSettings
        Checked.

    Raises
    ------
    SettingsError
        If a variable cannot be read, or its value cannot work.

    Examples
    --------
    >>> from mailverdict.service import from_environment
    >>> from_environment({"MAILVERDICT_DAILY_LIMIT": "500", "MAILVERDICT_SMTP_PORT": "2525"}).daily_limit
    500
    """
    given: dict[str, dict[str, Any]] = {"service": {}, "local": {"retry_greylisted": 0}, "blacklist": {}, "lists": {}}
    for variable, text in (os.environ if environ is None else environ).items():
        if variable in VARIABLES and text:
            owner, name, read = VARIABLES[variable]
            given[owner][name] = read_or_refuse(variable, text, read)
        elif variable.startswith(PREFIX) and text:
            LOG.warning("%s is no setting of the service; it is ignored", variable)
    for name, value in overrides.items():
        if value is not None:
            given[owner_of(name)][name] = value
    return assemble(given)


def owner_of(name: str) -> str:
    """Whose attribute a keyword is; what is nobody's goes to `ServiceSettings`, which refuses it."""
    return "local" if name in LocalSettings.__dataclass_fields__ else "service"


def assemble(given: dict[str, dict[str, Any]]) -> ServiceSettings:
    """Put the parts together; only what was given, so that defaults stay in one place."""
    parts = {owner: kind(**given[owner]) for owner, (kind, _) in PARTS.items() if given[owner]}
    local = LocalSettings(**{**parts, **given["local"]})
    return ServiceSettings(**{"local": local, **given["service"]})


def read_or_refuse(variable: str, text: str, read: Reader) -> Any:
    """The value of a variable, or a `SettingsError` that names it."""
    try:
        return read(text)
    except SettingsError as exc:
        raise SettingsError(f"{variable}: {exc}") from exc
    except (KeyError, ValueError) as exc:
        raise SettingsError(f"{variable}={text!r} cannot be read") from exc
