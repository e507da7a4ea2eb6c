"""Who runs a mail server, by its host name.

The names are in a packaged table of facts, each with a date and a source.

A verdict never follows from the table. For a few operators it also says how their servers behave at
SMTP, which spares sessions questions without an answer.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import SettingsError
from ..model.arrow import map_distinct_texts
from .lists.files import find_list, read_entries
from .lists.flags import below_any, normal_domain
from .lists.suffixes import registered_domain

TABLE = "operators"
KINDS = (
    *("mailbox", "hosting", "filter", "forwarder", "certified", "inbound-api"),
    *("parking", "disposable", "placeholder"),
)
# The operator of a domain whose mail servers have names of its own; never of a provider.
SELF = "self"
PROVIDERS = ("free", "free_more")  # lists of domains that give mailboxes to everybody
# Operators whose customers are mostly companies, which pay by the mailbox or for a filter. A domain
# of disposable addresses is rarely there, since it takes mail for every address at low cost.
FOR_COMPANIES = frozenset(
    {
        *("amazon-workmail", "apple", "fastmail", "google", "microsoft365", "microsoft365-gov"),
        *("proton", "rackspace", "zoho"),
        *("barracuda", "cisco", "forcepoint", "hornetsecurity", "mimecast", "proofpoint"),
        *("proofpoint-essentials", "sophos", "symantec", "trellix", "trendmicro"),
    }
)


@dataclass(frozen=True, slots=True)
class Operator:
    """A row of the table: whose mail servers have names with this end.

    It also says how they behave at SMTP.
    """

    suffix: str  # host name in lower case; it stands for itself and all names below it
    operator: str  # a word; the servers of one operator have the same
    name: str
    kind: str  # one of `KINDS`
    seen: date  # when it was last seen
    source: str  # by whom
    rcpt: tuple[str, ...] = ()  # hints what RCPT shows; no verdict follows from them
    # True: accepts every recipient at RCPT; False: refuses unknown ones; None: ask.
    catch_all: bool | None = None
    rcpt_per_transaction: int | None = None
    one_domain: bool = False  # one domain per transaction
    behaviour: str = ""  # what was seen; the engine follows only rows that have it
    behaviour_seen: date | None = None
    behaviour_source: str = ""


@cache
def load_operators() -> Mapping[str, Operator]:
    """The packaged table, by suffix.

    >>> load_operators()["yahoodns.net"].catch_all
    True
    """
    return parse_operators(read_entries(find_list(TABLE)))


def parse_operators(lines: Iterable[str]) -> dict[str, Operator]:
    """Parse a table of operators.

    It has comma-separated values in the order of the fields, without the last empty ones.
    """
    rows: dict[str, Operator] = {}
    for cells in csv.reader(lines, strict=True):
        try:
            row = parse_row(cells)
        except (TypeError, ValueError, KeyError) as exc:
            raise SettingsError(
                f"{TABLE}.csv cannot be read: {','.join(cells)!r:.80} ({exc})"
            ) from exc
        if row.suffix in rows:
            raise SettingsError(f"{TABLE}.csv: {row.suffix} occurs twice")
        rows[row.suffix] = row
    return rows


TRUTH = {"true": True, "false": False, "": None}


def parse_row(cells: Sequence[str]) -> Operator:
    """One row; every row has at least a suffix, operator, name, kind, date and source."""
    if not 6 <= len(cells) <= 13:
        raise ValueError(f"{len(cells)} values")
    missing = [""] * (13 - len(cells))
    suffix, operator, name, kind, day, source, *behaviour_cells = [*cells, *missing]
    rcpt, catch_all, most, one_domain, behaviour, seen, seen_by = behaviour_cells
    return Operator(
        suffix,
        operator,
        name,
        kind,
        date.fromisoformat(day),
        source,
        tuple(rcpt.split("+")) if rcpt else (),
        TRUTH[catch_all],
        int(most) if most else None,
        TRUTH[one_domain] or False,
        behaviour,
        date.fromisoformat(seen) if seen else None,
        seen_by,
    )


@cache
def load_behaviour() -> Mapping[str, Operator]:
    """The rows that say how a session is best held."""
    return {suffix: row for suffix, row in load_operators().items() if row.behaviour}


def find_operator(host: str, operators: Mapping[str, Operator]) -> Operator | None:
    """Find the row with the longest suffix of a host name.

    The name is in lower case without the final dot.

    >>> find_operator("mta5.am0.yahoodns.net", load_operators()).operator
    'yahoo'
    """
    labels = host.split(".")
    for start in range(len(labels)):
        suffix = ".".join(labels[start:])
        if suffix in operators:
            return operators[suffix]
    return None


@cache
def known_operators() -> Mapping[str, tuple[Operator, ...]]:
    """The rows of each operator, by its word."""
    rows: dict[str, list[Operator]] = {}
    for row in load_operators().values():
        rows.setdefault(row.operator, []).append(row)
    return {word: tuple(those) for word, those in rows.items()}


def name_operators(hosts: pa.StringArray, addresses: pa.StringArray) -> pa.StringArray:
    """For each row the operator of the preferred mail server of its domain.

    Null where none is known.

    It is the word of the table; else ``self`` if host and address are below one registered domain;
    else that of the host. A provider of mailboxes is never ``self``. `addresses` may be domains.

    >>> hosts = pa.array(["aspmx.l.google.com", "mx.firm.example", "mx1.hoster.example", None])
    >>> name_operators(hosts, pa.array(["ada@firm.example"] * 4)).to_pylist()
    ['google', 'self', 'hoster.example', None]
    >>> name_operators(pa.array(["mx1.seznam.cz"]), pa.array(["ada@seznam.cz"])).to_pylist()
    ['seznam.cz']
    """
    named = map_distinct_texts(word_of_operator, hosts)
    is_open = pc.and_(hosts.is_valid(), named.is_null())
    if not is_open.true_count:
        return named
    owners = map_distinct_texts(registered_domain, hosts.filter(is_open))
    domains = pc.replace_substring_regex(addresses.filter(is_open), "^.*@", "")
    own = map_distinct_texts(registered_domain_of_company, domains)
    is_own = pc.equal(owners, own).fill_null(False)
    return pc.replace_with_mask(named, is_open, pc.if_else(is_own, SELF, owners))


def word_of_operator(host: str) -> str | None:
    row = find_operator(host, load_operators())
    return None if row is None else row.operator


def registered_domain_of_company(domain: str) -> str | None:
    """The registered domain, unless everybody can have a mailbox of the domain."""
    name = normal_domain(domain) or domain
    is_provider = next(below_any([name], load_providers()), None) is not None
    return None if is_provider else registered_domain(name)


@cache
def load_providers() -> frozenset[str]:
    """The domains of the lists of providers."""
    entries: set[str] = set()
    for name in PROVIDERS:
        entries.update(read_entries(find_list(name)))
    return frozenset(entries)
