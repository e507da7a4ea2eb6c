"""Settings of the service, and the environment variables that set them.

Only `from_environment` reads the environment; everything else gets a `ServiceSettings`.
"""

from __future__ import annotations

import logging
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from ..contract.envelope import BULK_LIMIT
from ..contract.revisions import Revision
from ..errors import SettingsError
from ..model.settings import (
    FUTURE_CONSTANTS,
    Blacklist,
    Duration,
    Lists,
    LocalSettings,
    Network,
    Zone,
    constant_notice,
    parse_duration,
    parse_networks,
)

Clock = Callable[[], float]  # seconds since the epoch

DAY = 86_400
ROUTE = re.compile(r"[a-z0-9.-]{1,253}=[a-z0-9_-]{1,50}")
TIME_OF_DAY = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
PASSWORD = re.compile("://.*@", re.DOTALL)  # it may have characters that should have been escaped
STORE_URL = re.compile(r"(sqlite|postgresql)(\+psycopg)?://.+")


class WhenSaturated(StrEnum):
    """What happens to bulk jobs beyond the rate limit or the queue limit."""

    WAIT = "wait"  # they wait; submissions are refused only if the queue has no room
    SETTLE = "settle"  # they end as `rate_limited` at once, or as `throttled` after the back-off


def parsed(parse: Callable[[Any, str], Any]) -> Mapping[str, Any]:
    """The metadata of a setting that a function of value and name parses."""
    return {"parse": parse}


def told(parse: Callable[[Any], Any], hint: str) -> Mapping[str, Any]:
    """The same for a function of the value; an error says what to give."""

    def parse_or_refuse(value: Any, name: str) -> Any:
        try:
            return parse(value)
        except (TypeError, ValueError) as exc:
            shown = PASSWORD.sub("://***@", repr(value))
            raise SettingsError(f"{name}={shown}: give {hint}") from exc

    return parsed(parse_or_refuse)


def whole_number(low: int) -> Mapping[str, Any]:
    """The same for a whole number from `low`."""

    def parse(value: Any, name: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            raise SettingsError(f"{name}={value!r}: give a whole number from {low}")
        return value

    return parsed(parse)


def parse_store(value: object) -> str:
    """A URL of SQLite or PostgreSQL; a store in memory is refused, since it would lose jobs."""
    text = str(value)
    if not STORE_URL.fullmatch(text) or ":memory:" in text or text.rstrip("/") == "sqlite:":
        raise ValueError(text)
    _ = urlsplit(text).port  # a password with "/" or "#" ends in a port that is not a number
    return text


def parse_time_of_day(value: object) -> str:
    """A time of day, ``HH:MM``."""
    if not isinstance(value, str) or not TIME_OF_DAY.fullmatch(value):
        raise ValueError(value)
    return value


def parse_flag(value: object) -> bool:
    """True or False; 0, 1 and text are refused."""
    if not isinstance(value, bool):
        raise TypeError(value)
    return value


def parse_rate(value: object) -> float:
    """A finite number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(value)
    return float(value)


def parse_text(value: object) -> str | None:
    """Text that is not empty, or None."""
    if value is not None and not (isinstance(value, str | os.PathLike) and os.fspath(value)):
        raise TypeError(value)
    return None if value is None else str(value)


def parse_routes(value: object) -> tuple[str, ...]:
    """Entries ``owner=egress``, in lower case, each owner once."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(value)
    routes = tuple(str(each).strip().lower() for each in value)
    if not all(map(ROUTE.fullmatch, routes)) or len(
        {each.partition("=")[0] for each in routes}
    ) < len(routes):
        raise ValueError(value)
    return routes


def parse_backoff(value: object) -> tuple[float, ...]:
    """Durations, as a list or as text separated by commas."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not parts:
        raise TypeError(value)
    return tuple(parse_duration(part, name="saturation_backoff") for part in parts)


DURATION = parsed(lambda value, name: parse_duration(value, name=name))
NETWORKS = parsed(lambda value, name: parse_networks(value, name=name))
STORE = told(
    parse_store,
    "a URL such as 'sqlite:///jobs.db' or 'postgresql://user@host/database'; "
    "escape a password, as in 'a%2Fb'",
)
REVISION = told(lambda value: Revision(str(value)), "'current' or 'earlier'")
WHEN_SATURATED = told(lambda value: WhenSaturated(str(value)), "'wait' or 'settle'")
TIME = told(parse_time_of_day, "a UTC time of day such as '00:00'")
FLAG = told(parse_flag, "True or False")
RATE = told(parse_rate, "a number from 0 (0: no limit)")
BACKOFF = told(parse_backoff, "durations such as ('15s', '1min')")
ROUTES = told(parse_routes, "entries such as ('google.com=berlin',)")
FILE = told(parse_text, "the path of a file")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """The settings of the service. Durations are seconds, or text such as ``"10s"``.

    Parameters
    ----------
    store : str
        Where jobs and quota are: ``sqlite:///file.db`` (a file, four slashes for an absolute path)
        or ``postgresql://user:password@host/database``. One process uses an SQLite file; any number
        of APIs and workers use a PostgreSQL database.
    revision : str
        ``current`` or ``earlier``: which revision of the contract the service implements.
    daily_limit : int
        Addresses a client may have verified per day.
    check_costs_quota : bool
        Whether a single check takes one unit of the quota.
    day_turns_at : str
        UTC time ``HH:MM`` at which the daily quota starts again.
    trusted_proxies : iterable of str
        Addresses and networks whose ``X-Forwarded-For`` is used; from other peers it is ignored.
    when_saturated : str
        What happens to a bulk submission that the quota covers, but not the rate limit or the queue
        limit. ``wait``: its jobs wait, and the service verifies them at the rate limit. ``settle``:
        its jobs end as ``rate_limited`` at once, or as ``throttled`` after the back-off, and have
        cost their quota.
    rate_limit : float
        Addresses per second that are verified for one client in the long run; 0: no limit. A single
        check beyond it is ``rate_limited``; with ``wait`` single checks and bulk jobs are counted
        separately.
    rate_burst : int
        Addresses that are verified at once for a client that sent none for a while; at least one
        bulk request.
    queue_limit : int
        Addresses that may wait or be verified; with more the queue is saturated. With ``wait``, a
        submission without room is refused (HTTP 429, ``QUEUE_FULL``) before it costs quota; one
        client alone can fill half of the queue.
    saturation_backoff : tuple of float
        Waits between the attempts of a job that found the queue or the engine saturated; after them
        it is ``throttled``.
    concurrency : int
        Addresses of bulk jobs that are verified at once, by each worker; a tenth is kept for
        clients that have none under way.
    gather : duration
        How long the worker waits for more jobs, so that they share SMTP sessions.
    check_timeout : duration
        Longest time for a single check; then ``UPSTREAM_ERROR``, or with PostgreSQL and ``smtp``
        ``throttled``.
    job_timeout : duration
        Longest time for a batch of jobs; jobs without a result then end in ``error``.
    result_retention : duration
        How long the result of a job is kept; then the job is removed.
    body_limit : int
        Largest request body in octets; a larger one is refused before it is read.
    header_limit : int
        Largest request head in octets; it has at most 100 fields.
    body_timeout : duration
        Longest time a request's body may take to arrive.
    header_timeout : duration
        The same for its head.
    access_log : bool
        Whether each request is logged, as a line of JSON without local parts of addresses.
    egress_routes : iterable of str
        Owners of mail servers that only workers with a certain ``--egress`` ask, as
        ``example.com=NAME``. An owner is the domain that the names of its mail servers share, such
        as ``google.com``. Only with PostgreSQL.
    key_file : str, optional
        File of client keys, made with ``mailverdict keys add``. With it, requests below ``/api/``
        need a key (``Authorization: Bearer ...``), and quota and results belong to the key; without
        it, to the IP address.
    ssl_certfile : str, optional
        File of the certificate chain for HTTPS, in PEM; without it the service is plain HTTP.
    ssl_keyfile : str, optional
        File of the certificate's private key, if it is not in `ssl_certfile`.
    ssl_keyfile_password : str, optional
        Password of the private key.
    local : LocalSettings
        Settings of the local backend, if no other backend is given, as
        ``LocalBackend(...).settings``. By default greylisted addresses are not retried, since the
        client of a single check waits for the response.

    Raises
    ------
    SettingsError
        If a value cannot work; the message names the setting, the value and what to give.

    Examples
    --------
    >>> from mailverdict.service import ServiceSettings
    >>> ServiceSettings(daily_limit=500, saturation_backoff="30s, 1min").saturation_backoff
    (30.0, 60.0)
    """

    # May contain a password.
    store: str = field(default="sqlite:///mailverdict-service.db", repr=False, metadata=STORE)
    revision: str = field(default=Revision.CURRENT, metadata=REVISION)
    daily_limit: int = field(default=100, metadata=whole_number(0))
    check_costs_quota: bool = field(default=True, metadata=FLAG)
    day_turns_at: str = field(default="00:00", metadata=TIME)
    trusted_proxies: tuple[Network, ...] = field(default=(), metadata=NETWORKS)
    when_saturated: str = field(default=WhenSaturated.WAIT, metadata=WHEN_SATURATED)
    rate_limit: float = field(default=100.0, metadata=RATE)
    rate_burst: int = field(default=1000, metadata=whole_number(BULK_LIMIT))
    # A job takes half a kilobyte of the store, and no memory.
    queue_limit: int = field(default=1_000_000, metadata=whole_number(1))
    # Twelve minutes in all, as the contract says.
    saturation_backoff: tuple[float, ...] = field(
        default=(15.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 180.0), metadata=BACKOFF
    )
    concurrency: int = field(default=1000, metadata=whole_number(1))
    gather: Duration = field(default=0.05, metadata=DURATION)
    check_timeout: Duration = field(default=200.0, metadata=DURATION)
    job_timeout: Duration = field(default="1h", metadata=DURATION)
    result_retention: Duration = field(default="7D", metadata=DURATION)
    # A hundred addresses of 254 octets, each octet escaped as \uXXXX, are 152,400.
    body_limit: int = field(default=262_144, metadata=whole_number(1024))
    header_limit: int = field(default=32_768, metadata=whole_number(1024))
    body_timeout: Duration = field(default=10.0, metadata=DURATION)
    header_timeout: Duration = field(default=10.0, metadata=DURATION)
    access_log: bool = field(default=True, metadata=FLAG)
    egress_routes: tuple[str, ...] = field(default=(), metadata=ROUTES)
    key_file: str | None = field(default=None, metadata=FILE)
    ssl_certfile: str | None = field(default=None, metadata=FILE)
    ssl_keyfile: str | None = field(default=None, metadata=FILE)
    ssl_keyfile_password: str | None = field(default=None, repr=False)
    local: LocalSettings = field(default_factory=lambda: LocalSettings(retry_greylisted=0))
    day_offset: int = field(init=False, repr=False, compare=False)  # `day_turns_at` in seconds

    def __post_init__(self) -> None:
        """Check and parse every value."""
        for setting in fields(self):
            if parse := setting.metadata.get("parse"):
                value = parse(getattr(self, setting.name), setting.name)
                object.__setattr__(self, setting.name, value)
        object.__setattr__(self, "day_offset", seconds_after_midnight(self.day_turns_at))
        if self.ssl_certfile is None and (self.ssl_keyfile or self.ssl_keyfile_password):
            raise SettingsError(
                "ssl_keyfile needs ssl_certfile: give the file of the certificate chain, too"
            )
        if not isinstance(self.local, LocalSettings):
            raise SettingsError(f"local={self.local!r}: give LocalBackend(...).settings")

    def seconds(self, name: str) -> float:
        """Return a duration in seconds.

        Parameters
        ----------
        name : str
            Name of the attribute.

        Returns
        -------
        float
            The value of the attribute.

        Examples
        --------
        >>> from mailverdict.service import ServiceSettings
        >>> ServiceSettings(result_retention="2D").seconds("result_retention")
        172800.0
        """
        return parse_duration(getattr(self, name), name=name)

    def day_of(self, now: float) -> str:
        """Return the day that a time belongs to for the quota.

        Parameters
        ----------
        now : float
            Seconds since the epoch.

        Returns
        -------
        str
            ISO date of the UTC day in which the quota's day began.

        Examples
        --------
        >>> from mailverdict.service import ServiceSettings
        >>> ServiceSettings(day_turns_at="06:00").day_of(86400 + 5 * 3600)
        '1970-01-01'
        """
        return iso_date(int(now - self.day_offset) // DAY)

    def seconds_of_day_left(self, now: float) -> float:
        """Return how long the quota's present day lasts.

        Parameters
        ----------
        now : float
            Seconds since the epoch.

        Returns
        -------
        float
            Seconds until the daily quota starts again.

        Examples
        --------
        >>> from mailverdict.service import ServiceSettings
        >>> ServiceSettings(day_turns_at="06:00").seconds_of_day_left(86400 + 5 * 3600)
        3600
        """
        return DAY - (now - self.day_offset) % DAY


@lru_cache(maxsize=8)
def iso_date(day: int) -> str:
    """The date of a day since the epoch; cached, since every request needs it."""
    return datetime.fromtimestamp(day * DAY, UTC).date().isoformat()


def seconds_after_midnight(time_of_day: str) -> int:
    hours, minutes = time_of_day.split(":")
    return int(hours) * 3600 + int(minutes) * 60


PREFIX = "MAILVERDICT_"
LOG = logging.getLogger(__name__)
FLAGS = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}


def read_flag(text: str) -> bool:
    return FLAGS[text.strip().lower()]


def read_number(text: str) -> float | str:
    """A number; other texts are durations, which the settings parse."""
    try:
        return float(text)
    except ValueError:
        return text


def read_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def read_zones(text: str) -> tuple[Zone, ...]:
    """``zone, zone=code+code``: DNS lists, and the answers that mean *listed*.

    Known lists need none.
    """
    zones = []
    for part in read_list(text):
        name, equals, listed = part.partition("=")
        codes = listed.split("+") if equals else []
        zones.append(Zone(name.strip(), tuple(codes)))  # type: ignore[arg-type]
    return tuple(zones)


# Read by the other commands: a client's service, key and type.
CLIENT_VARIABLES = {PREFIX + "BACKEND", PREFIX + "KEY", PREFIX + "TYPE"}
READERS: dict[str, Callable[[str], Any]] = {  # by the type of an attribute; others are text
    "int": int,
    "float": read_number,
    "bool": read_flag,
    "tuple[str, ...]": read_list,
    "tuple[Network, ...]": read_list,
    "tuple[Zone, ...]": read_zones,
}
# Settings classes by the attribute that has them, and the prefix of their variables.
PARTS: dict[str, tuple[type, str]] = {
    "service": (ServiceSettings, ""),
    "local": (LocalSettings, ""),
    "blacklist": (Blacklist, "BLACKLIST_"),
    "lists": (Lists, ""),
}
VARIABLES = {  # part, attribute and reader
    f"{PREFIX}{prefix}{each.name.upper()}": (part, each.name, READERS.get(str(each.type), str))
    for part, (kind, prefix) in PARTS.items()
    for each in fields(kind)
    if each.init and each.name not in PARTS
}


def from_environment(environ: Mapping[str, str] | None = None, **overrides: Any) -> ServiceSettings:
    """Build settings from ``MAILVERDICT_*`` variables.

    Parameters
    ----------
    environ : mapping of str to str, optional
        The variables; those of the process by default. The name of a variable is the attribute of
        `ServiceSettings` or `LocalSettings` in upper case, such as ``MAILVERDICT_DAILY_LIMIT``. An
        empty variable counts as not set.
    **overrides
        Attributes of `ServiceSettings` or `LocalSettings` that override the environment; None does
        not.

    Returns
    -------
    ServiceSettings
        The settings; unset variables keep their defaults.

    Raises
    ------
    SettingsError
        If a variable cannot be read, or its value cannot work.

    Examples
    --------
    >>> from mailverdict.service import from_environment
    >>> from_environment({"MAILVERDICT_DAILY_LIMIT": "500"}).daily_limit
    500
    """
    given: dict[str, dict[str, Any]] = {part: {} for part in PARTS}
    given["local"]["retry_greylisted"] = 0
    if environ is None:
        environ = os.environ
    for variable, text in environ.items():
        if variable in VARIABLES and text:
            part, name, read = VARIABLES[variable]
            try:
                given[part][name] = read(text)
            except SettingsError as exc:
                raise SettingsError(f"{variable}: {exc}") from exc
            except (KeyError, ValueError) as exc:
                raise SettingsError(f"{variable}={text!r} cannot be read") from exc
            if name in FUTURE_CONSTANTS:
                LOG.warning("%s", constant_notice(variable, name))
        elif variable.startswith(PREFIX) and text and variable not in CLIENT_VARIABLES:
            LOG.warning("%s is not a setting of the service; it is ignored", variable)
    for name, value in overrides.items():
        if value is not None:
            part = "local" if name in LocalSettings.__dataclass_fields__ else "service"
            given[part][name] = value
    local = {}
    for part in ("blacklist", "lists"):
        if given[part]:
            kind, _ = PARTS[part]
            local[part] = kind(**given[part])
    local |= given["local"]
    return ServiceSettings(**{"local": LocalSettings(**local), **given["service"]})
