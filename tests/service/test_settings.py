"""Settings, and the environment they may come from."""

import dataclasses
import inspect
import logging
import re
from pathlib import Path

import pytest

from mailverdict.errors import SettingsError
from mailverdict.model.settings import FUTURE_CONSTANTS, LocalSettings
from mailverdict.service import ServiceSettings, from_environment
from mailverdict.service.settings import PREFIX, VARIABLES
from tests import ROOT


def test_defaults_are_those_of_the_contract() -> None:
    settings = ServiceSettings()
    assert settings.daily_limit == 100
    assert sum(settings.saturation_backoff) == 12 * 60
    assert settings.day_of(0.0) == "1970-01-01"
    assert settings.local.retry_greylisted == 0


WRONG = [
    ("store", "", "no URL"),
    ("store", "sqlite://", "a store in memory would lose jobs"),
    ("store", "sqlite:///:memory:", "the same"),
    ("store", "mysql://host/db", "another database"),
    ("store", 5, "no text"),
    ("revision", "newest", "neither of the two"),
    ("daily_limit", -1, "negative"),
    ("daily_limit", "100", "text"),
    ("daily_limit", True, "a boolean is not a number"),
    ("check_costs_quota", 1, "a number is not a boolean"),
    ("day_turns_at", "24:00", "no time of day"),
    ("day_turns_at", "6", "no time of day"),
    ("day_turns_at", None, "nothing"),
    ("trusted_proxies", "10.0.0.0/8", "a text is not a list"),
    ("trusted_proxies", ["proxy.example"], "no address"),
    ("rate_limit", -1, "negative"),
    ("rate_limit", float("nan"), "no number"),
    ("rate_limit", float("inf"), "no finite number"),
    ("rate_burst", 99, "a bulk request would never be granted"),
    ("queue_limit", 0, "no queue"),
    ("when_saturated", "refuse", "neither of the two"),
    ("saturation_backoff", (), "no attempt"),
    ("saturation_backoff", ("soon",), "no duration"),
    ("saturation_backoff", 5, "no list"),
    ("concurrency", 0, "nothing would be done"),
    ("check_timeout", "long", "no duration"),
    ("result_retention", -1, "negative"),
    ("body_limit", 10, "too small for any request"),
    ("header_limit", 10, "too small for any request"),
    ("access_log", "yes", "a text is not a boolean"),
    ("local", {}, "no settings of a backend"),
]


@pytest.mark.parametrize(
    ("name", "value", "why"), WRONG, ids=[f"{name}={value!r}" for name, value, _ in WRONG]
)
def test_value_that_cannot_work_is_refused_by_its_name(name: str, value: object, why: str) -> None:
    with pytest.raises(SettingsError, match=name):
        ServiceSettings(**{name: value})


def test_password_of_the_store_is_never_shown() -> None:
    assert "secret" not in repr(ServiceSettings(store="postgresql://me:secret@db/jobs"))
    with pytest.raises(SettingsError) as caught:
        ServiceSettings(store="mysql://me:secret@db/jobs")
    assert "secret" not in str(caught.value)


def test_settings_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        ServiceSettings().daily_limit = 5


@pytest.mark.parametrize(
    ("turn", "now", "day"),
    [
        ("00:00", 86_399, "1970-01-01"),
        ("00:00", 86_400, "1970-01-02"),
        ("06:00", 86_400 + 6 * 3600 - 1, "1970-01-01"),
        ("06:00", 86_400 + 6 * 3600, "1970-01-02"),
        ("23:59", 86_400 + 100, "1970-01-01"),
    ],
)
def test_day_of_a_moment(turn: str, now: float, day: str) -> None:
    assert ServiceSettings(day_turns_at=turn).day_of(now) == day


ENVIRONMENT = {
    "MAILVERDICT_STORE": "postgresql://me@db/jobs",
    "MAILVERDICT_REVISION": "earlier",
    "MAILVERDICT_DAILY_LIMIT": "500",
    "MAILVERDICT_CHECK_COSTS_QUOTA": "no",
    "MAILVERDICT_TRUSTED_PROXIES": "10.0.0.0/8, fd00::/8",
    "MAILVERDICT_WHEN_SATURATED": "settle",
    "MAILVERDICT_RATE_LIMIT": "2.5",
    "MAILVERDICT_SATURATION_BACKOFF": "30s, 1min",
    "MAILVERDICT_RESULT_RETENTION": "2D",
    "MAILVERDICT_RESOLVER": "127.0.0.1:5353",
    "MAILVERDICT_SMTP_PORT": "2525",
    "MAILVERDICT_DNS_TIMEOUT": "1.5",
    "MAILVERDICT_ALLOW_NETWORKS": "127.0.0.0/8",
    "MAILVERDICT_CATCH_ALL_PROBE": "off",
    "MAILVERDICT_BLACKLIST_IPS": "192.0.2.0/24",
    "MAILVERDICT_BLACKLIST_ZONES": "bl.example=127.0.0.2+127.0.0.4, psbl.surriel.com",
    "MAILVERDICT_DISPOSABLE_DENY": "/etc/mailverdict/deny.txt",
    "MAILVERDICT_EXTENDED_ROLES": "true",
    "MAILVERDICT_HELO_NAME": "",
    "PATH": "/usr/bin",
}


def test_environment_reaches_every_kind_of_setting() -> None:
    settings = from_environment(ENVIRONMENT)
    assert settings.store == "postgresql://me@db/jobs"
    assert (settings.revision, settings.when_saturated) == ("earlier", "settle")
    assert (settings.daily_limit, settings.check_costs_quota, settings.rate_limit) == (
        500,
        False,
        2.5,
    )
    assert [str(network) for network in settings.trusted_proxies] == ["10.0.0.0/8", "fd00::/8"]
    assert settings.saturation_backoff == (30.0, 60.0)
    assert settings.seconds("result_retention") == 2 * 86_400
    local = settings.local
    assert (local.resolver, local.smtp_port, local.dns_timeout) == ("127.0.0.1:5353", 2525, 1.5)
    assert [str(network) for network in local.allow_networks] == ["127.0.0.0/8"]
    assert local.catch_all_probe is False
    assert local.retry_greylisted == 0
    assert [str(network) for network in local.blacklist.ips] == ["192.0.2.0/24"]
    assert [str(code) for code in local.blacklist.zones[0].codes] == [
        "127.0.0.2/32",
        "127.0.0.4/32",
    ]
    assert local.blacklist.zones[1].name == "psbl.surriel.com"
    assert local.lists.disposable_deny == Path("/etc/mailverdict/deny.txt")
    assert local.lists.extended_roles is True
    assert local.helo_name is None


def test_overrides_win_and_none_does_not() -> None:
    settings = from_environment(
        ENVIRONMENT, daily_limit=7, revision=None, smtp_port=26, allow_networks=None
    )
    assert (settings.daily_limit, settings.revision, settings.local.smtp_port) == (7, "earlier", 26)
    assert settings.local.allow_networks


def test_empty_environment_gives_the_defaults() -> None:
    assert from_environment({}) == ServiceSettings()


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("MAILVERDICT_DAILY_LIMIT", "many"),
        ("MAILVERDICT_CHECK_COSTS_QUOTA", "perhaps"),
        ("MAILVERDICT_BLACKLIST_ZONES", "bl.example"),
        ("MAILVERDICT_SMTP_PORT", "99999"),
        ("MAILVERDICT_TRUSTED_PROXIES", "proxy.example"),
    ],
)
def test_variable_that_cannot_be_read_is_named(variable: str, text: str) -> None:
    name = variable.removeprefix(PREFIX).lower()
    with pytest.raises(SettingsError, match=f"(?i){variable}|{name}"):
        from_environment({variable: text})


def test_unknown_variable_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        from_environment({"MAILVERDICT_DAYLY_LIMIT": "5"})
    assert "MAILVERDICT_DAYLY_LIMIT" in caplog.text


def test_a_variable_of_a_setting_that_will_be_a_constant_works_and_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        settings = from_environment({"MAILVERDICT_DNS_ATTEMPTS": "5", "MAILVERDICT_DEADLINE": "60"})
    assert (settings.local.dns_attempts, settings.local.deadline) == (5, 60.0)
    [told] = caplog.messages
    assert told.startswith("MAILVERDICT_DNS_ATTEMPTS is deprecated and will be removed")
    assert told.endswith("it will always be 3")


def test_every_setting_has_a_variable() -> None:
    own = {field.name for field in dataclasses.fields(ServiceSettings) if field.init} - {"local"}
    engine = {field.name for field in dataclasses.fields(LocalSettings)} - {"blacklist", "lists"}
    assert {PREFIX + name.upper() for name in own | engine} <= set(VARIABLES)


def test_every_variable_is_documented_with_its_default() -> None:
    rows = (ROOT / "deploy" / "README.md").read_text(encoding="utf-8")
    missing = [variable for variable in VARIABLES if f"| `{variable}` |" not in rows]
    assert not missing
    deprecated = re.findall(r"^\| `MAILVERDICT_(\w+)` \| \S+ \| Deprecated\. ", rows, re.MULTILINE)
    assert {name.lower() for name in deprecated} == set(FUTURE_CONSTANTS)


def test_documentation_names_no_variable_that_does_not_exist() -> None:
    rows = (ROOT / "deploy" / "README.md").read_text(encoding="utf-8").splitlines()
    named = {row.split("`")[1] for row in rows if row.startswith(f"| `{PREFIX}")}
    assert named == set(VARIABLES)


def test_every_setting_is_documented_where_it_is_defined() -> None:
    for field in dataclasses.fields(ServiceSettings):
        if field.init:
            assert f"\n{field.name} : " in inspect.getdoc(ServiceSettings), field.name


@pytest.mark.parametrize("secret", ["se/cret", "se#cret", "se?cret/x"])
def test_store_whose_password_is_not_escaped_is_refused_without_showing_it(secret: str) -> None:
    with pytest.raises(SettingsError, match="escape a password") as refused:
        ServiceSettings(store=f"postgresql://user:{secret}@host/database")
    assert "cret" not in str(refused.value)
