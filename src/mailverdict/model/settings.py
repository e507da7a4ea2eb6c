"""Settings of the local backend: frozen values, checked when built.

First the parsers (durations, networks, resolver), then `Zone`, `Blacklist`, `Lists` and
`LocalSettings`.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import Any, TypedDict

from ..errors import SettingsError
from .paths import user_path

Duration = int | float | str | timedelta

UNIT_SECONDS = {
    "": 1.0,
    "ms": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "hours": 3600.0,
    "d": 86400.0,
    "day": 86400.0,
    "days": 86400.0,
    "w": 604800.0,
}
TEXT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")


def parse_duration(value: Duration, *, name: str) -> float:
    """Convert `value` to seconds.

    Raise `SettingsError` with the setting `name` if it is not a duration.

    >>> parse_duration("5min", name="retry_greylisted")
    300.0
    >>> parse_duration("30D", name="max_age")
    2592000.0
    """
    seconds = seconds_of(value)
    if seconds is None or math.isnan(seconds) or seconds < 0:
        raise SettingsError(
            f"{name}={value!r} is not a duration; give seconds, or text such as '90s', '5min', "
            "'12h', '30D'"
        )
    return seconds


def seconds_of(value: object) -> float | None:
    """Seconds, or None if `value` is not a duration."""
    if isinstance(value, bool):
        return None
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, int | float):
        return float(value)
    if not isinstance(value, str):
        return None
    match = TEXT.fullmatch(value)
    if match is None:
        return None
    number, unit = match.groups()
    if unit.lower() not in UNIT_SECONDS:
        return None
    return float(number) * UNIT_SECONDS[unit.lower()]


Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Entries = str | Path | Iterable[str]
MAIL_FROM = re.compile(r"(?=.{3,254}$)[!-;=?-~]+@[!-;=?A-~]+")  # no octet that ends a command
HOST = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?")
ZONE_CODES = ipaddress.IPv4Network("127.0.0.0/8")


def parse_networks(values: Iterable[str | Network], *, name: str) -> tuple[Network, ...]:
    """Parse addresses and CIDR networks; raise `SettingsError` with the setting and the value.

    >>> parse_networks(["127.0.0.0/8"], name="allow_networks")
    (IPv4Network('127.0.0.0/8'),)
    """
    if isinstance(values, str):
        raise SettingsError(f"{name}={values!r}: give a list of networks, as [{values!r}]")
    parsed = []
    for value in values:
        try:
            parsed.append(ipaddress.ip_network(value, strict=False))
        except ValueError as exc:
            raise SettingsError(f"{name}: {value!r} is not an IP address or CIDR network") from exc
    return tuple(parsed)


def parse_resolver(value: str) -> tuple[str, int]:
    """Split ``"127.0.0.1:5353"``, ``"9.9.9.9"`` or ``"[::1]:53"`` into address and port.

    >>> parse_resolver("[::1]:5353")
    ('::1', 5353)
    """
    text = value.strip()
    match = re.fullmatch(r"\[([^\]]+)\](?::(\d+))?|([^:]+)(?::(\d+))?|([0-9A-Fa-f:.]+)", text)
    try:
        if match is None:
            raise ValueError(text)
        address = ipaddress.ip_address(match[1] or match[3] or match[5])
        port = check_range(int(match[2] or match[4] or 53), 1, 65535, "resolver port")
        return str(address), port
    except ValueError as exc:
        raise SettingsError(
            f"resolver={value!r}: give an IP address with an optional port, as '127.0.0.1:5353'"
        ) from exc


def check_range(value: int, low: int, high: int, name: str) -> int:
    """Return `value` if it is an integer within the bounds, else raise `SettingsError`."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise SettingsError(f"{name}={value!r}: give a whole number from {low} to {high}")
    return value


def freeze_entries(value: Entries, name: str) -> Path | tuple[str, ...]:
    """A path, or a tuple of texts."""
    if isinstance(value, str | Path):
        return user_path(value)
    entries = tuple(value)
    for entry in entries:
        if not isinstance(entry, str):
            raise SettingsError(f"{name}: {entry!r} is not text")
    return entries


@dataclass(frozen=True, slots=True)
class KnownZone:
    """A public DNS list of IP addresses whose answers are documented."""

    name: str
    codes: tuple[str, ...]  # mean listed
    ignored: tuple[str, ...]  # mean nothing for a mail server that receives
    meaning: str
    source: str
    date: str  # when the source was read


SPAMHAUS = (
    "https://docs.spamhaus.com/datasets/docs/source/10-data-type-documentation/"
    "datasets/040-zones.html"
)
READ = "2026-11-22"
SBL = ("127.0.0.2", "127.0.0.3", "127.0.0.9", "127.0.0.30")
XBL = ("127.0.0.4",)
# A PBL entry says that an address should not send mail by itself. A mail server that receives there
# does nothing wrong, so the combined list ignores it.
PBL = ("127.0.0.10", "127.0.0.11")
ZEN = "SBL and XBL; entries of the PBL are ignored"
SPAMCOP = "https://www.spamcop.net/bl.shtml; the code as in public Postfix configurations"
BARRACUDA = "http://www.barracudacentral.org/rbl/how-to-use"
PSBL = "http://psbl.surriel.com/howto/; the code from https://domaincare.io/blacklists/psbl"
KNOWN_ZONE_ROWS = (
    KnownZone("zen.spamhaus.org", (*SBL, *XBL), PBL, ZEN, SPAMHAUS, READ),
    KnownZone("sbl-xbl.spamhaus.org", (*SBL, *XBL), (), "SBL and XBL", SPAMHAUS, READ),
    KnownZone("sbl.spamhaus.org", SBL, (), "sources of spam, hijacked networks", SPAMHAUS, READ),
    KnownZone("xbl.spamhaus.org", XBL, (), "compromised hosts", SPAMHAUS, READ),
    KnownZone(
        "pbl.spamhaus.org", PBL, (), "addresses that should not send directly", SPAMHAUS, READ
    ),
    KnownZone(
        "bl.spamcop.net",
        ("127.0.0.2",),
        (),
        "senders that SpamCop's users reported",
        SPAMCOP,
        READ,
    ),
    KnownZone(
        "b.barracudacentral.org",
        ("127.0.0.2",),
        (),
        "senders with a poor reputation; needs registration",
        BARRACUDA,
        READ,
    ),
    KnownZone(
        "psbl.surriel.com", ("127.0.0.2",), (), "senders that wrote to spam traps", PSBL, READ
    ),
)
KNOWN_ZONES: dict[str, KnownZone] = {zone.name: zone for zone in KNOWN_ZONE_ROWS}


@dataclass(frozen=True, slots=True)
class Zone:
    """A DNS blacklist that is queried for the addresses of mail servers (RFC 5782).

    Parameters
    ----------
    name : str
        The zone, as ``zen.spamhaus.org``.
    codes : iterable of str, optional
        The answers that mean *listed*: addresses or networks within 127.0.0.0/8. May be left out
        for public lists whose answers are known; the how-to *Use your own blacklist* has their
        table.
    ignored : iterable of str, optional
        Answers that say nothing about a mail server that receives, and mean *not listed*. Any
        answer that is in neither leaves the check undetermined.

    Raises
    ------
    SettingsError
        If the name is not a host name, a code is not within 127.0.0.0/8, or the codes are left out
        for a list that is not known.

    Examples
    --------
    >>> from mailverdict import Zone
    >>> Zone("bl.example.org", codes=["127.0.0.2"]).name
    'bl.example.org'
    >>> [str(code) for code in Zone("psbl.surriel.com").codes]
    ['127.0.0.2/32']
    """

    name: str
    codes: tuple[Network, ...] = field(default=())
    ignored: tuple[Network, ...] = field(default=())

    def __post_init__(self) -> None:
        """Check the values and keep them in their parsed form.

        Fill in the codes of a known zone.
        """
        if not isinstance(self.name, str) or not HOST.fullmatch(self.name):
            raise SettingsError(f"Zone name {self.name!r} is not a host name")
        name = self.name.rstrip(".").lower()
        codes: Iterable[str | Network] = self.codes
        ignored: Iterable[str | Network] = self.ignored
        if not self.codes and name in KNOWN_ZONES:
            known = KNOWN_ZONES[name]
            codes = known.codes
            ignored = self.ignored or known.ignored
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "codes", parse_codes(codes, name, "codes"))
        object.__setattr__(self, "ignored", parse_codes(ignored, name, "ignored"))
        if not self.codes:
            raise SettingsError(
                f"Zone {name!r}: say which codes mean 'listed', "
                f"as mailverdict.Zone({name!r}, codes=['127.0.0.2']). "
                f"They are known for {', '.join(KNOWN_ZONES)}"
            )


def parse_codes(values: Iterable[str | Network], zone: str, key: str) -> tuple[Network, ...]:
    """The answers of a zone as networks within 127.0.0.0/8."""
    codes = parse_networks(values, name=f"{key} of {zone}")
    for code in codes:
        if not isinstance(code, ipaddress.IPv4Network) or not code.subnet_of(ZONE_CODES):
            raise SettingsError(f"Zone {zone!r}: code {code} is not within 127.0.0.0/8")
    return codes


@dataclass(frozen=True, slots=True)
class Blacklist:
    """Blacklists that `mx_blacklist` checks the mail servers of a domain against.

    Parameters
    ----------
    ips : iterable of str
        Addresses and CIDR networks of mail servers.
    hosts : iterable of str
        Host names of mail servers; a name includes all its subdomains.
    zones : iterable of Zone or str
        DNS blacklists to query; none by default, since public ones restrict their use. A name alone
        is enough for lists whose answers are known, as ``"zen.spamhaus.org"``.

    Raises
    ------
    SettingsError
        If an entry cannot be parsed; the message contains it.

    Examples
    --------
    >>> from mailverdict import Blacklist
    >>> Blacklist(ips=["192.0.2.0/24"], hosts=["mx.bad.example"]).hosts
    ('mx.bad.example',)
    >>> Blacklist(zones=("zen.spamhaus.org",)).zones[0].name
    'zen.spamhaus.org'
    """

    ips: tuple[Network, ...] = ()
    hosts: tuple[str, ...] = ()
    zones: tuple[Zone, ...] = ()

    def __post_init__(self) -> None:
        """Check the values and keep them in their parsed form."""
        object.__setattr__(self, "ips", parse_networks(self.ips, name="Blacklist.ips"))
        hosts = []
        given_hosts: Iterable[object] = self.hosts
        if isinstance(self.hosts, str):
            given_hosts = (self.hosts,)
        for host in given_hosts:
            if not isinstance(host, str) or not HOST.fullmatch(host):
                raise SettingsError(f"Blacklist.hosts: {host!r} is not a host name")
            hosts.append(host.rstrip(".").lower())
        object.__setattr__(self, "hosts", tuple(hosts))
        zones = []
        given_zones: Iterable[object] = self.zones
        if isinstance(self.zones, str | Zone):
            given_zones = (self.zones,)
        for zone in given_zones:
            if isinstance(zone, str):
                zones.append(Zone(zone))
            elif isinstance(zone, Zone):
                zones.append(zone)
            else:
                message = f"Blacklist.zones: {zone!r}: give a name or Zone(name, codes=...)"
                raise SettingsError(message)
        object.__setattr__(self, "zones", tuple(zones))

    @property
    def is_empty(self) -> bool:
        """Whether no blacklist is configured."""
        return not (self.ips or self.hosts or self.zones)


@dataclass(frozen=True, slots=True)
class Lists:
    """Your own entries for the flags; each is a path to a text file, or an iterable of texts.

    At the same depth *allow* overrides *deny*, and *deny* overrides the packaged list; a
    subdomain's entry overrides the entry of its parent domain.

    Parameters
    ----------
    disposable_allow, disposable_deny : path or iterable of str
        Domains never, or always, flagged `disposable`.
    free_allow, free_deny : path or iterable of str
        Domains never, or always, flagged `free`.
    role_allow, role_deny : path or iterable of str
        Local parts never, or always, flagged `role`; one that is never a role is none as a word
        either.
    spamtrap : path or iterable of str, optional
        Spamtrap domains; without it the flag is never determined.
    extended_roles : bool
        Also flag the wider tier of role names, as whole local parts.

    Examples
    --------
    >>> from mailverdict import Lists
    >>> Lists(disposable_deny=["throwaway.example"]).disposable_deny
    ('throwaway.example',)
    """

    disposable_allow: Path | tuple[str, ...] = ()
    disposable_deny: Path | tuple[str, ...] = ()
    free_allow: Path | tuple[str, ...] = ()
    free_deny: Path | tuple[str, ...] = ()
    role_allow: Path | tuple[str, ...] = ()
    role_deny: Path | tuple[str, ...] = ()
    spamtrap: Path | tuple[str, ...] = ()
    extended_roles: bool = False

    def __post_init__(self) -> None:
        """Keep each list as a path or a tuple."""
        for setting in fields(self):
            if setting.name != "extended_roles":
                entries = freeze_entries(getattr(self, setting.name), setting.name)
                object.__setattr__(self, setting.name, entries)


def whole_number(default: int, low: int, high: int) -> Any:
    """A setting that is a whole number from `low` to `high`."""
    return field(default=default, metadata={"low": low, "high": high})


def duration(default: Duration, *, may_be_zero: bool = False) -> Any:
    """A setting that is a duration."""
    return field(default=default, metadata={"is_duration": True, "may_be_zero": may_be_zero})


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """The settings of `LocalBackend`. Durations are seconds, or text such as ``"5min"``.

    The keyword arguments of `LocalBackend` are these attributes, with the same defaults. Those that
    are marked as deprecated will be constants; `LocalBackend` warns where one is given.

    Examples
    --------
    >>> from mailverdict import LocalBackend
    >>> LocalBackend(deadline="2min").settings.deadline
    120.0
    """

    resolver: str | None = None
    """``"127.0.0.1:5353"``-like text; None: the system's resolvers."""
    dns_concurrency: int = whole_number(1000, 1, 20_000)
    """DNS queries in flight at most, to each resolver.

    Fewer while a resolver loses or refuses some.
    """
    dns_timeout: float = duration(3.0)
    """Deprecated. Longest timeout of one DNS query.

    A resolver that answers faster has a shorter one by itself."""
    dns_attempts: int = whole_number(3, 1, 10)
    """Deprecated. Queries about one name, of which each goes to the next resolver.

    A column repeats the unanswered ones at its end, so that more would only take longer."""
    resolver_check: bool = True
    """Whether the resolver is tested before a run, and before a domain counts as without mail."""
    smtp_port: int = whole_number(25, 1, 65_535)
    """Port of the mail servers (RFC 5321 section 4.5.4.2); another one only for tests."""
    helo_name: str | None = None
    """Name in EHLO; None: this host's name.

    It should match the PTR record of this host's address.
    """
    mail_from: str = ""
    """Sender in MAIL FROM; empty: the null reverse-path (RFC 5321 section 4.5.5)."""
    max_sessions: int = whole_number(200, 1, 10_000)
    """Concurrent SMTP sessions over all mail servers.

    An eighth is kept for runs and clients with at most one."""
    max_sessions_per_exchange: int = whole_number(2, 1, 100)
    """Concurrent SMTP sessions with a mail server, and with an IP address.

    More can get this host blocked."""
    connect_timeout: float = duration(15.0)
    """Timeout of the TCP connection and of the greeting."""
    command_timeout: float = duration(30.0)
    """Timeout of one SMTP reply.

    RFC 5321 section 4.5.3.2 suggests minutes, which is too long for a column."""
    deadline: float = duration(180.0)
    """Limit for one address over all mail servers of its domain; then its reason is `timeout`."""
    session_deadline: float = duration(300.0)
    """Deprecated. Limit for one SMTP session from connection to QUIT.

    RFC 5321 section 4.5.3.2.7: a server waits five minutes for the next command."""
    rcpt_per_transaction: int = whole_number(50, 1, 1_000)
    """Deprecated. Recipients in one transaction.

    Lowered by itself when a mail server replies 452 (too many recipients)."""
    rcpt_per_session: int = whole_number(500, 1, 100_000)
    """Deprecated. Recipients in one session.

    Lowered by itself when a mail server replies 421 or cuts the connection."""
    refusal_budget: int = whole_number(9, 1, 1_000)
    """Deprecated. Refused recipients after which a session ends.

    A default Postfix slows down at 10 and disconnects at 20. Exceeded, by less than twice, only if
    a window has many more refusals than the mail server gave before."""
    protected_after: int = whole_number(3, 1, 1_000)
    """Deprecated. Consecutive refusals of this client after which a mail server is left alone.

    Two may be chance; more only make the block of this host longer."""
    max_exchange_attempts: int = whole_number(3, 1, 20)
    """Deprecated. Mail servers tried for one address, by preference.

    RFC 5321 section 5.1 asks for at least two; what three refuse, a fourth rarely accepts."""
    backoff_min: float = duration(1.0, may_be_zero=True)
    """Deprecated. First wait after 421 or a capacity reply; it doubles each time, with jitter."""
    backoff_max: float = duration(60.0, may_be_zero=True)
    """Deprecated. Longest wait after 421 or a capacity reply; `deadline` ends it before long."""
    capacity_attempts: int = whole_number(4, 0, 100)
    """Deprecated. Capacity replies (421, too many connections) before the reason is `inconclusive`.

    They are seconds apart at first and a minute at last: a server that is full for longer is left
    to a later run."""
    retry_greylisted: float = duration("5min", may_be_zero=True)
    """Wait before greylisted addresses are tried once more in the same run; 0: never."""
    catch_all_probe: bool = True
    """Deprecated. Whether a random local part is tried once per domain.

    Without it a domain that accepts every address cannot be told from one that knows its own."""
    allow_networks: tuple[Network, ...] = ()
    """Non-global networks that may be contacted nevertheless, and whose addresses the DNS may give
    for a domain without MX records: tests, intranets."""
    blacklist: Blacklist = field(default_factory=Blacklist)
    """Blacklists for `mx_blacklist`."""
    lists: Lists = field(default_factory=Lists)
    """Your own entries for the flags."""

    def __post_init__(self) -> None:
        """Check every value; the `SettingsError` names the wrong one."""
        if self.resolver is not None:
            parse_resolver(self.resolver)
        for setting in fields(self):
            value = getattr(self, setting.name)
            if "low" in setting.metadata:
                check_range(value, setting.metadata["low"], setting.metadata["high"], setting.name)
            elif "is_duration" in setting.metadata:
                seconds = parse_duration(value, name=setting.name)
                if seconds <= 0 and not setting.metadata["may_be_zero"]:
                    raise SettingsError(f"{setting.name}={seconds!r}: give more than 0 seconds")
                object.__setattr__(self, setting.name, seconds)
        if not isinstance(self.resolver_check, bool):
            raise SettingsError(f"resolver_check={self.resolver_check!r}: give True or False")
        if self.helo_name is not None and not is_helo_name(self.helo_name):
            raise SettingsError(
                f"helo_name={self.helo_name!r} is neither a host name nor an address literal "
                "like '[192.0.2.1]'"
            )
        if self.mail_from != "" and not MAIL_FROM.fullmatch(str(self.mail_from)):
            message = f"mail_from={self.mail_from!r}: give a plain address in ASCII, or ''"
            raise SettingsError(message)
        networks = parse_networks(self.allow_networks, name="allow_networks")
        object.__setattr__(self, "allow_networks", networks)


# Deprecated: nobody was seen to set them, and each has a value with a reason. They will be
# constants.
FUTURE_CONSTANTS = (
    "dns_timeout",
    "dns_attempts",
    "session_deadline",
    "rcpt_per_transaction",
    "rcpt_per_session",
    "refusal_budget",
    "protected_after",
    "max_exchange_attempts",
    "backoff_min",
    "backoff_max",
    "capacity_attempts",
    "catch_all_probe",
)


def constant_notice(given: str, name: str) -> str:
    """What to tell who has `given` a setting that will be a constant."""
    default = LocalSettings.__dataclass_fields__[name].default
    return f"{given} is deprecated and will be removed: leave it out; it will always be {default!r}"


class LocalOptions(TypedDict, total=False):
    """The keyword arguments of `LocalBackend`, in the forms that users may give."""

    resolver: str | None
    dns_concurrency: int
    resolver_check: bool
    smtp_port: int
    helo_name: str | None
    mail_from: str
    max_sessions: int
    max_sessions_per_exchange: int
    connect_timeout: Duration
    command_timeout: Duration
    deadline: Duration
    retry_greylisted: Duration
    allow_networks: Iterable[str | Network]
    blacklist: Blacklist
    lists: Lists
    # Deprecated, see `FUTURE_CONSTANTS`.
    dns_timeout: Duration
    dns_attempts: int
    session_deadline: Duration
    rcpt_per_transaction: int
    rcpt_per_session: int
    refusal_budget: int
    protected_after: int
    max_exchange_attempts: int
    backoff_min: Duration
    backoff_max: Duration
    capacity_attempts: int
    catch_all_probe: bool


def is_helo_name(text: str) -> bool:
    return HOST.fullmatch(text) is not None or is_address_literal(text)


def is_address_literal(text: str) -> bool:
    """Whether `text` is an IP address in brackets (RFC 5321 section 4.1.3)."""
    inner = re.fullmatch(r"\[(?:IPv6:)?([0-9A-Fa-f:.]+)\]", text)
    try:
        return inner is not None and bool(ipaddress.ip_address(inner[1]))
    except ValueError:
        return False


def options_of(settings: LocalSettings) -> dict[str, Any]:
    """The keyword arguments of `LocalBackend` that give these settings."""
    return {setting.name: getattr(settings, setting.name) for setting in fields(settings)}
