"""Which addresses reach the same mailbox: rules of large providers, applied to a column.

`mailboxes.toml` holds the rules, each with its source and date. Without a rule only the case of the
local part is ignored: a plus sign is an ordinary character at many servers. What `find_mailboxes`
makes of addresses:

    A.da+x@GoogleMail.com     ada@gmail.com
    x@ada.fastmail.com        ada@fastmail.com
    Ada+x@firm.com            ada+x@firm.com
    ada                       (null)
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
    # The domains are names of the same mailboxes; the first stands for all.
    one_mailbox: bool = False
    separators: str = ""  # the local part ends before the first of these
    ignored: str = ""  # characters of the local part without a meaning
    same: str = ""  # characters that stand for one another; the first stands for all
    subdomains: bool = False  # anything@name.domain reaches name@domain

    def name_locals(self, texts: pa.StringArray) -> pa.StringArray:
        """The part of each lower-case local part that names the mailbox; never empty."""
        if self.separators:
            separators = re.escape(self.separators)
            pattern = rf"^([^{separators}]+)[{separators}].*$"
            texts = pc.replace_substring_regex(texts, pattern, r"\1")
        if self.ignored:
            ignored = f"[{re.escape(self.ignored)}]"
            kept = pc.replace_substring_regex(texts, ignored, "")
            texts = pc.if_else(pc.equal(kept, ""), texts, kept)
        if self.same:
            others = f"[{re.escape(self.same[1:])}]"
            texts = pc.replace_substring_regex(texts, others, self.same[0])
        return texts


@cache
def load_mailbox_rules() -> Mapping[str, MailboxRule]:
    """The packaged rules, by domain.

    >>> load_mailbox_rules()["googlemail.com"].name
    'Gmail'
    """
    return parse_mailbox_rules(read_table())


def read_table() -> str:
    return files("mailverdict.data").joinpath(TABLE).read_text(encoding="utf-8")


def parse_mailbox_rules(text: str) -> dict[str, MailboxRule]:
    """Parse a table of rules: TOML with one ``[[provider]]`` per row; a domain has one rule."""
    try:
        providers = []
        for row in tomllib.loads(text)["provider"]:
            row["domains"] = tuple(row["domains"])
            providers.append(MailboxRule(**row))
    except (tomllib.TOMLDecodeError, TypeError, KeyError) as exc:
        raise SettingsError(f"{TABLE} cannot be read: {exc}") from exc
    rules: dict[str, MailboxRule] = {}
    for rule in providers:
        for domain in rule.domains:
            if domain in rules:
                raise SettingsError(f"{TABLE}: {domain} occurs twice")
            rules[domain] = rule
    return rules


def mailbox_domain(domain: str) -> str:
    """The domain that stands for all domains of the same mailboxes.

    >>> mailbox_domain("googlemail.com"), mailbox_domain("example.org")
    ('gmail.com', 'example.org')
    """
    rule = load_mailbox_rules().get(domain)
    if rule is None or not rule.one_mailbox:
        return domain
    return rule.domains[0]


@cache
def domains_of_odd_dots() -> frozenset[str]:
    """The domains of carriers where an odd dot of a local part counts (table `odd_dots`)."""
    rows = tomllib.loads(read_table())["odd_dots"]
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
    written = seen["domain"].dictionary
    rules: list[MailboxRule | None] = []
    domains: list[str] = []
    named: list[str | None] = []
    for text in written.to_pylist():
        rule, domain, name = find_rule(text)
        rules.append(rule)
        domains.append(domain)
        named.append(name)

    local = pc.utf8_lower(seen["local"])
    by_name = {rule.name: rule for rule in rules if rule is not None}
    for rule in by_name.values():
        has_rule = pa.array([other is rule for other in rules], pa.bool_())
        mask = has_rule.take(code).fill_null(False)
        names = rule.name_locals(local.filter(mask))
        local = pc.replace_with_mask(local, mask, names)
    local = pc.coalesce(pa.array(named, pa.string()).take(code), local)
    domain_of_row = pa.array(domains, pa.string()).take(code)
    return Mailboxes(
        names=pc.binary_join_element_wise(local, domain_of_row, "@"),
        domains=written.take(code),
    )
