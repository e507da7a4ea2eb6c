"""The table of providers, and who is in it."""

from __future__ import annotations

import datetime

import pytest

from mailverdict.checks.smtp.providers import Provider, find_provider, load_providers, parse_providers
from mailverdict.errors import SettingsError

HOSTS = [
    ("mta5.am0.yahoodns.net", "yahoodns.net", "Yahoo"),
    ("yahoodns.net", "yahoodns.net", "the suffix itself"),
    ("eur.olc.protection.outlook.com", "olc.protection.outlook.com", "Outlook.com"),
    ("contoso-com.mail.protection.outlook.com", "mail.protection.outlook.com", "a tenant of Exchange Online"),
    ("alt1.gmail-smtp-in.l.google.com", "gmail-smtp-in.l.google.com", "Gmail: the longest suffix"),
    ("aspmx.l.google.com", "google.com", "Google Workspace"),
    ("notyahoodns.net", None, "only whole labels count"),
    ("mx.example.org", None, "nobody"),
    ("", None, "no name"),
]


@pytest.mark.parametrize(("host", "suffix", "why"), HOSTS)
def test_find_provider_takes_the_longest_suffix(host: str, suffix: str | None, why: str) -> None:
    found = find_provider(host, load_providers())

    assert (found.suffix if found else None) == suffix, why


@pytest.mark.parametrize("provider", load_providers().values(), ids=lambda provider: provider.suffix)
def test_every_fact_has_a_date_and_a_source(provider: Provider) -> None:
    assert isinstance(provider.seen, datetime.date)
    assert provider.source.startswith("https://")
    assert provider.behaviour
    assert provider.suffix == provider.suffix.lower().strip(".")
    assert provider.catch_all is not None or provider.rcpt_per_transaction or provider.one_domain


@pytest.mark.parametrize("text", ["[[provider]]\nsuffix = 'x'", "[[provider]]\nodd = 1", "not toml ="])
def test_parse_providers_refuses_other_text(text: str) -> None:
    with pytest.raises(SettingsError, match=r"providers\.toml"):
        parse_providers(text)
