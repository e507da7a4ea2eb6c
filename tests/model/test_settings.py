"""Settings: frozen, checked when built, each wrong value told by name."""

from __future__ import annotations

import dataclasses
import datetime
import inspect
import ipaddress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mailverdict as mv
from mailverdict.errors import SettingsError
from mailverdict.model.settings import (
    FUTURE_CONSTANTS,
    KNOWN_ZONES,
    LocalSettings,
    options_of,
    parse_networks,
    parse_resolver,
)
from tests.doubles.tables import each_row

WHOLE_NUMBERS = [
    (each.name, each.metadata["low"], each.metadata["high"])
    for each in dataclasses.fields(LocalSettings)
    if "low" in each.metadata
]
DURATIONS = [
    each.name for each in dataclasses.fields(LocalSettings) if "is_duration" in each.metadata
]


def test_the_defaults_are_good():
    assert LocalSettings() == LocalSettings(
        retry_greylisted="5min", blacklist=mv.Blacklist(), lists=mv.Lists()
    )


def test_settings_do_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        LocalSettings().smtp_port = 26


def test_every_number_and_duration_is_checked():
    checked = {name for name, *_ in WHOLE_NUMBERS} | set(DURATIONS)
    assert (len(WHOLE_NUMBERS), len(DURATIONS)) == (11, 8)
    numeric = {
        f.name
        for f in dataclasses.fields(LocalSettings)
        if isinstance(f.default, int | float | str)
    }
    assert numeric - checked == {"mail_from", "catch_all_probe", "resolver_check"}


@each_row(("name", "low", "high"), WHOLE_NUMBERS)
def test_whole_numbers_have_bounds(name, low, high):
    for good in (low, high):
        assert getattr(LocalSettings(**{name: good}), name) == good
    for wrong in (low - 1, high + 1, float(low), True, None, str(low)):
        with pytest.raises(
            SettingsError, match=f"{name}=.*: give a whole number from {low} to {high}"
        ):
            LocalSettings(**{name: wrong})


@each_row("name", DURATIONS)
def test_durations_are_seconds(name):
    assert getattr(LocalSettings(**{name: "2min"}), name) == 120.0
    with pytest.raises(SettingsError, match=f"{name}='soon' is not a duration"):
        LocalSettings(**{name: "soon"})


@each_row(
    "name", ["dns_timeout", "connect_timeout", "command_timeout", "deadline", "session_deadline"]
)
def test_a_wait_for_nothing_is_refused(name):
    with pytest.raises(SettingsError, match=f"{name}=0.0: give more than 0 seconds"):
        LocalSettings(**{name: 0})


@each_row(
    ("value", "parsed"),
    [
        ("127.0.0.1", ("127.0.0.1", 53)),
        (" 127.0.0.1:5353 ", ("127.0.0.1", 5353)),
        ("::1", ("::1", 53)),
        ("[::1]", ("::1", 53)),
        ("[::1]:5353", ("::1", 5353)),
    ],
)
def test_a_resolver_is_address_and_port(value, parsed):
    assert parse_resolver(value) == parsed
    assert LocalSettings(resolver=value).resolver == value


@each_row(
    "value",
    [
        "",
        "dns.example",
        "127.0.0.1:",
        "127.0.0.1:0",
        "127.0.0.1:99999",
        "1:2:3",
        "[::1",
        "9.9.9.9:53:5",
    ],
)
def test_another_resolver_is_refused(value):
    with pytest.raises(SettingsError, match="resolver"):
        LocalSettings(resolver=value)


@given(st.text())
def test_any_text_is_a_resolver_or_a_settings_error(text):
    try:
        address, port = parse_resolver(text)
    except SettingsError:
        return
    ipaddress.ip_address(address)
    assert 1 <= port <= 65_535


@each_row("value", ["client.example", "a", "[192.0.2.1]", "[IPv6:2001:db8::1]", None])
def test_a_helo_name_is_a_host_or_a_literal(value):
    assert LocalSettings(helo_name=value).helo_name == value


@each_row("value", ["", "a b", "-x.example", "a\r\nMAIL", "[192.0.2]", "a..b", "x" * 64])
def test_another_helo_name_is_refused(value):
    with pytest.raises(SettingsError, match="is neither a host name nor an address literal"):
        LocalSettings(helo_name=value)


@each_row(
    "value",
    [
        "a@b.org\r\nRCPT TO:<x@y.org>",
        "<a@b.org>",
        "a b@c.org",
        "ä@b.org",
        "x" * 255,
        "foo",
        "@b.org",
        None,
    ],
)
def test_a_sender_that_would_break_the_command_is_refused(value):
    with pytest.raises(SettingsError, match=r"mail_from=.*: give a plain address in ASCII, or ''"):
        LocalSettings(mail_from=value)


def test_networks_are_parsed_and_a_string_is_not_a_list():
    assert LocalSettings(allow_networks=["10.1.2.3/8"]).allow_networks == (
        ipaddress.ip_network("10.0.0.0/8"),
    )
    with pytest.raises(
        SettingsError,
        match=r"allow_networks='10.0.0.0/8': give a list of networks, as \['10.0.0.0/8'\]",
    ):
        LocalSettings(allow_networks="10.0.0.0/8")
    with pytest.raises(
        SettingsError, match="allow_networks: 'lan' is not an IP address or CIDR network"
    ):
        parse_networks(["lan"], name="allow_networks")


class TestBlacklist:
    def test_entries_are_parsed(self):
        found = mv.Blacklist(
            ips=["192.0.2.1", "2001:db8::/32"],
            hosts="MX.Bad.Example.",
            zones=[mv.Zone("Bl.Example.", ["127.0.0.2"])],
        )
        assert [str(n) for n in found.ips] == ["192.0.2.1/32", "2001:db8::/32"]
        assert found.hosts == ("mx.bad.example",)
        assert (found.zones[0].name, [str(c) for c in found.zones[0].codes]) == (
            "bl.example",
            ["127.0.0.2/32"],
        )
        assert (found.is_empty, mv.Blacklist().is_empty) == (False, True)

    @each_row("name", KNOWN_ZONES)
    def test_a_name_is_enough_for_a_known_zone(self, name):
        known = KNOWN_ZONES[name]
        (zone,) = mv.Blacklist(zones=(name.upper() + ".",)).zones
        assert zone == mv.Zone(name) == mv.Zone(name, codes=known.codes, ignored=known.ignored)
        assert [str(code).removesuffix("/32") for code in zone.codes] == list(known.codes)
        assert not set(zone.codes) & set(zone.ignored)
        assert known.meaning
        assert known.source.startswith("http")
        datetime.date.fromisoformat(known.date)

    def test_codes_that_are_given_replace_those_of_a_known_zone(self):
        zone = mv.Zone("zen.spamhaus.org", codes=["127.0.0.10/31"])
        assert ([str(code) for code in zone.codes], zone.ignored) == (["127.0.0.10/31"], ())

    @each_row(
        ("make", "told"),
        [
            (lambda: mv.Blacklist(ips=["x"]), r"Blacklist.ips: 'x' is not an IP address"),
            (lambda: mv.Blacklist(hosts=["a b"]), r"Blacklist.hosts: 'a b' is not a host name"),
            (lambda: mv.Blacklist(hosts=[7]), r"Blacklist.hosts: 7 is not a host name"),
            (
                lambda: mv.Blacklist(zones=[7]),
                r"Blacklist.zones: 7: give a name or Zone\(name, codes=",
            ),
            (lambda: mv.Blacklist(zones=["a b"]), "Zone name 'a b' is not a host name"),
            (
                lambda: mv.Blacklist(zones="bl.example"),
                "known for zen.spamhaus.org, .*, psbl.surriel.com",
            ),
            (
                lambda: mv.Zone("bl.example"),
                r"which codes mean 'listed', as mailverdict.Zone\('bl.example', codes=",
            ),
            (
                lambda: mv.Zone("bl.example", ["127.0.0.2"], ignored=["10.0.0.1"]),
                "code 10.0.0.1/32 is not within",
            ),
            (
                lambda: mv.Zone("bl.example", ["10.0.0.1"]),
                "code 10.0.0.1/32 is not within 127.0.0.0/8",
            ),
            (lambda: mv.Zone("bl.example", ["::1"]), "is not within 127.0.0.0/8"),
            (lambda: mv.Zone("a b", ["127.0.0.2"]), "Zone name 'a b' is not a host name"),
        ],
    )
    def test_a_wrong_entry_is_named(self, make, told):
        with pytest.raises(SettingsError, match=told):
            make()


def test_lists_are_paths_or_entries():
    lists = mv.Lists(
        disposable_deny=["x.example"], spamtrap="traps.txt", free_allow=(e for e in ["y.example"])
    )
    assert (lists.disposable_deny, lists.spamtrap, lists.free_allow) == (
        ("x.example",),
        Path("traps.txt"),
        ("y.example",),
    )
    with pytest.raises(SettingsError, match="role_deny: 7 is not text"):
        mv.Lists(role_deny=[7])


def test_a_backend_takes_the_settings_by_name_and_shows_what_was_changed():
    assert repr(mv.LocalBackend(deadline="2min", helo_name="client.example")) == (
        "LocalBackend(helo_name='client.example', deadline=120.0)"
    )
    with pytest.raises(SettingsError, match="LocalBackend has no setting 'dns_timout'"):
        mv.LocalBackend(dns_timout=2)


@each_row("name", FUTURE_CONSTANTS)
def test_a_setting_that_will_be_a_constant_works_and_warns(name):
    default = getattr(LocalSettings(), name)
    value = not default if isinstance(default, bool) else default + 1
    told = rf"LocalBackend\({name}=...\) is deprecated and will be removed: .* always be {default}$"
    with pytest.warns(FutureWarning, match=told) as caught:
        backend = mv.LocalBackend(**{name: value})
    assert getattr(backend.settings, name) == value
    assert caught[0].filename == __file__


def test_the_settings_that_stay_do_not_warn():
    stay = options_of(LocalSettings()).keys() - set(FUTURE_CONSTANTS)
    mv.LocalBackend(**{name: getattr(LocalSettings(), name) for name in stay})
    assert set(inspect.signature(mv.LocalBackend).parameters) == stay
