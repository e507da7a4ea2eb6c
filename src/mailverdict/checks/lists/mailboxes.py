"""Which addresses reach the same mailbox: rules of large providers, applied to a column.

`mailboxes.toml` holds the rules, each with its source and date. Without a rule only the case of the
local part is ignored: a plus sign is an ordinary character at many servers.
"""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import SettingsError
from ..syntax.column import observe_column

TABLE = "mailboxes.toml"


@dataclass(frozen=True, slots=True)
class MailboxRule:
    """What a provider does with the addresses at its own domains.

    The fields are those of the table.
    """

    name: str
    domains: tuple[str, ...]  # in lower case
    seen: datetime.date  # when the source was read
    source: str
    one_mailbox: bool = (
        False  # the domains are names of the same mailboxes; the first stands for all
    )
    separators: str = ""  # the local part ends before the first of these
    ignored: str = ""  # characters of the local part without a meaning
    same: str = ""  # characters that stand for one another; the first stands for all
    subdomains: bool = False  # anything@name.domain reaches name@domain

    def name_locals(self, texts: pa.StringArray) -> pa.StringArray:
        """The part of each lower-case local part that names the mailbox; never empty."""
        if self.separators:
            characters = re.escape(self.separators)
            texts = pc.replace_substring_regex(
                texts, rf"^([^{characters}]+)[{characters}].*$", r"\1"
            )
        if self.ignored:
            kept = pc.replace_substring_regex(texts, f"[{re.escape(self.ignored)}]", "")
            texts = pc.if_else(pc.equal(kept, ""), texts, kept)
        if self.same:
            texts = pc.replace_substring_regex(texts, f"[{re.escape(self.same[1:])}]", self.same[0])
        return texts


@cache
def load_mailbox_rules() -> Mapping[str, MailboxRule]:
    """The packaged rules, by domain.

    >>> load_mailbox_rules()["googlemail.com"].name
    'Gmail'
    """
    return parse_mailbox_rules(
        files("mailverdict.data").joinpath(TABLE).read_text(encoding="utf-8")
    )


def parse_mailbox_rules(text: str) -> dict[str, MailboxRule]:
    """Parse a table of rules: TOML with one ``[[provider]]`` per row; a domain has one rule."""
    try:
        rows = [
            MailboxRule(**{**row, "domains": tuple(row["domains"])})
            for row in tomllib.loads(text)["provider"]
        ]
    except (tomllib.TOMLDecodeError, TypeError, KeyError) as exc:
        raise SettingsError(f"{TABLE} cannot be read: {exc}") from exc
    rules: dict[str, MailboxRule] = {}
    for row in rows:
        for domain in row.domains:
            if domain in rules:
                raise SettingsError(f"{TABLE}: {domain} occurs twice")
            rules[domain] = row
    return rules


def mailbox_domain(domain: str) -> str:
    """The domain that stands for all domains of the same mailboxes.

    >>> mailbox_domain("googlemail.com"), mailbox_domain("example.org")
    ('gmail.com', 'example.org')
    """
    rule = load_mailbox_rules().get(domain)
    return rule.domains[0] if rule is not None and rule.one_mailbox else domain


@cache
def domains_of_odd_dots() -> frozenset[str]:
    """The domains of carriers where an odd dot of a local part counts (table `odd_dots`)."""
    text = files("mailverdict.data").joinpath(TABLE).read_text(encoding="utf-8")
    rows = tomllib.loads(text)["odd_dots"]
    return frozenset(domain for row in rows for domain in row["domains"])


def counts_odd_dots(domain: str) -> bool:
    """Whether `a..b` and `a.b` are two people at a lower-case domain, or at the one above it.

    >>> counts_odd_dots("docomo.ne.jp"), counts_odd_dots("d.vodafone.ne.jp")
    (True, True)
    >>> counts_odd_dots("gmail.com")
    False
    """
    domains = domains_of_odd_dots()
    return domain in domains or domain.partition(".")[2] in domains


def find_rule(domain: str) -> tuple[MailboxRule | None, str, str | None]:
    """The rule of a domain, the domain that stands for it, and the mailbox that it names.

    The mailbox is None unless the domain itself names one.

    >>> find_rule("ada.fastmail.com")[1:]
    ('fastmail.com', 'ada')
    """
    rules = load_mailbox_rules()
    label, _, parent = domain.partition(".")
    if domain not in rules and parent in rules and rules[parent].subdomains:
        return rules[parent], parent, label
    return rules.get(domain), mailbox_domain(domain), None


@dataclass(frozen=True)
class Mailboxes:
    """The mailbox of each row; null where there is no address."""

    names: pa.StringArray  # one text for all addresses that reach the same mailbox
    domains: pa.StringArray  # of the address as it is written, in lower case and A-labels

    def take(self, rows: pa.Int32Array) -> Mailboxes:
        return Mailboxes(self.names.take(rows), self.domains.take(rows))


def find_mailboxes(addresses: pa.StringArray) -> Mailboxes:
    """The mailbox of each text that is an address.

    >>> addresses = pa.array(["A.da+x@GoogleMail.com", "x@ada.fastmail.com", "ada"])
    >>> find_mailboxes(addresses).names.to_pylist()
    ['ada@gmail.com', 'ada@fastmail.com', None]
    """
    seen = observe_column(addresses.fill_null(""), lenient=True)
    code = seen["domain"].indices
    distinct = seen["domain"].dictionary
    found = [find_rule(domain) for domain in distinct.to_pylist()]
    local = pc.utf8_lower(seen["local"])
    rules = {rule.name: rule for rule, _, _ in found if rule is not None}
    for rule in rules.values():
        mask = rows_of_domains([each is rule for each, _, _ in found], code)
        local = pc.replace_with_mask(local, mask, rule.name_locals(local.filter(mask)))
    named = pa.array([name for _, _, name in found], pa.string())
    local = pc.coalesce(named.take(code), local)
    domains = pa.array([domain for _, domain, _ in found], pa.string())
    return Mailboxes(
        names=pc.binary_join_element_wise(local, domains.take(code), "@"),
        domains=distinct.take(code),
    )


def rows_of_domains(is_concerned: list[bool], code: pa.Int32Array) -> pa.BooleanArray:
    """The rows with one of the domains that are marked."""
    return pa.array(is_concerned, pa.bool_()).take(code).fill_null(False)
