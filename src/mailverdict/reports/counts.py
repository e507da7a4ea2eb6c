"""Counts of verified rows in pieces that add up, for `summary`, reports and commands.

Rows that are told alike are counted together: `Counts.alike` has how many rows there are of each
`Alike`, and all other counts of rows are sums of these::

    Alike(bucket="invalid", why="no_mx_record", action="drop", ...)     412
    Alike(bucket="valid", why=None, action="send", free=True, ...)    5,301

With a policy, which a report has, there are also distinct addresses, people, domains and typos, by
the columns of addresses themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.lists.mailboxes import find_mailboxes
from ..checks.syntax.column import observe_column, split_at_sign
from ..errors import InputError
from ..frames.alike import Alike, group_alike, row_facts
from ..frames.policy import Policy, apply_policy, policy_facts
from ..frames.results import BUCKETS, WAITING, Results
from ..frames.seen_addresses import SeenAddresses
from ..model.address import address_keys, lower_domain
from ..model.arrow import texts_where, to_bools
from ..model.words import ACTIONS, DECISIONS, FLAGS, SEVERAL_ADDRESSES
from ..table.cells import strip_texts

TOP_DECIDED = 20  # addresses that are shown
LONGEST_TYPED = 80  # characters of a mistyped address that are shown
DOMAIN_COLUMNS = dict.fromkeys(BUCKETS, pa.int64())
NO_DOMAINS = pa.schema({"domain": pa.string(), **DOMAIN_COLUMNS}).empty_table()
MAX_TABLES = 8  # tables of domains that are kept before they are added up


class Counts:
    """Counts of a verified column that add up piece by piece, for tables larger than memory.

    With a policy it counts what a report shows, too: actions, distinct addresses, domains, typos.
    """

    def __init__(self, policy: Policy | None = None) -> None:
        self.policy = policy
        self.alike = Counter[Alike]()  # rows by what is said of them
        self.addresses = 0  # distinct and well-formed, after cleaning
        self.people = 0  # different mailboxes that can be mailed under the policy
        self.seen = SeenAddresses()
        self.seen_people = SeenAddresses()
        # The first rows: what was typed, decision, suggestion that was chosen.
        self.decided: list[tuple[str, str, str]] = []
        self.domains = [NO_DOMAINS]  # rows by domain and bucket, of pieces
        self.typos = Counter[tuple[str, str]]()  # rows by what was typed and probably meant
        self.days: list[date] = []  # the first and the last day of the checks of each piece
        self.validation_types: dict[str, None] = {}
        self.answered_by: dict[str, None] = {}  # what backends call themselves

    def add(self, rows: Results) -> None:
        """Count the next piece; it has at least verdict, status and why."""
        groups, kinds = group_alike(facts_of(rows, self.policy))
        if self.policy is not None:
            kinds = apply_policy(kinds, self.policy)
        sizes = np.bincount(groups, minlength=len(kinds))
        for kind, size in zip(kinds, sizes.tolist(), strict=True):
            self.alike[kind] += size
        if self.policy is None:
            return
        addresses = keys_of(rows)
        self.add_addresses(rows, addresses)
        flags = [kind.action == "send" for kind in kinds]
        is_sent = pa.array(flags, pa.bool_()).take(pa.array(groups))
        sent = addresses.filter(is_sent).unique()
        people = people_of(sent).unique().drop_null()
        self.people += len(self.seen_people.keep_new(people))
        self.add_decided(rows)

    def add_addresses(self, rows: Results, addresses: pa.StringArray) -> None:
        """Count what only reports show; `addresses` are those of `keys_of`."""
        new_addresses = self.seen.keep_new(well_formed(rows, addresses))
        self.addresses += len(new_addresses)
        self.domains.append(count_domains(addresses, rows.buckets))
        if len(self.domains) > MAX_TABLES:
            self.domains = [add_domains(self.domains)]
        self.typos.update(count_typos(rows, addresses))
        days = checked_days(rows)
        if days is not None:
            self.days += days
        self.validation_types |= dict.fromkeys(validation_types(rows))
        label = rows.data.notes().get("answered_by")
        if label:
            self.answered_by[str(label)] = None

    def add_decided(self, rows: Results) -> None:
        """Keep the first rows about which a person decided, with what was typed there."""
        decided = np.flatnonzero(to_bools(rows.decision.is_valid()))
        first = pa.array(decided[: TOP_DECIDED - len(self.decided)])
        columns = []
        for column in (rows.texts, rows["decision"], rows["decided_address"]):
            columns.append(column.take(first).fill_null("").to_pylist())
        self.decided += zip(*columns, strict=True)

    def by(self, *fields: str) -> Counter[Any]:
        """Rows by what they have in common; those where that is None are left out."""
        return self.by_key(attrgetter(*fields))

    def by_key(self, key: Callable[[Alike], Any]) -> Counter[Any]:
        """Rows by what `key` gives; those for which it is None are left out."""
        counts = Counter[Any]()
        for alike, count in self.alike.items():
            value = key(alike)
            if value is not None:
                counts[value] += count
        return counts

    def number(self, is_counted: Callable[[Alike], Any]) -> int:
        """How many rows it is true of."""
        rows = 0
        for alike, count in self.alike.items():
            if is_counted(alike):
                rows += count
        return rows

    @property
    def rows(self) -> int:
        """All rows."""
        return self.alike.total()

    @property
    def buckets(self) -> dict[str, int]:
        """Rows by verdict, or by status where there is no verdict; always all seven."""
        counts = self.by("bucket")
        return {name: counts[name] for name in BUCKETS}

    @property
    def lines(self) -> dict[str, int]:
        """Rows by line of a summary: seven buckets, and cells with several addresses."""
        counts = self.by("line")
        lines = {name: counts[name] for name in BUCKETS}
        if counts[SEVERAL_ADDRESSES]:
            lines[SEVERAL_ADDRESSES] = counts[SEVERAL_ADDRESSES]
        return lines

    @property
    def actions(self) -> dict[str, int]:
        """Rows by action; always all five."""
        counts = self.by("action")
        return {name: counts[name] for name in ACTIONS}

    @property
    def causes(self) -> Counter[str]:
        """Rows by what decides about the action besides the verdict."""
        return self.by("cause")

    @property
    def mailable(self) -> float:
        """Share of all rows that can be mailed under the policy."""
        return self.actions["send"] / max(self.rows, 1)

    @property
    def checked(self) -> tuple[date, date] | None:
        """The first and the last day of the checks, if the frame says so."""
        if not self.days:
            return None
        return min(self.days), max(self.days)

    @property
    def flags(self) -> dict[str, int]:
        """Rows by flag that is true."""
        counts = {}
        for flag in FLAGS:
            counts[flag] = self.by(flag)[True]
        return counts

    @property
    def suggestions(self) -> int:
        """Rows with a suggestion."""
        return self.number(attrgetter("is_suggested"))

    @property
    def cleaned(self) -> int:
        """Rows whose verdict is that of a repaired address."""
        return self.number(attrgetter("change"))

    @property
    def decisions(self) -> dict[str, int]:
        """Rows by what a person decided; a suggestion counts whether or not it is verified."""
        counts = self.by("decision")
        counts["suggestion"] += counts[WAITING]
        return {word: counts[word] for word in DECISIONS}

    @property
    def suppressed(self) -> int | None:
        """Rows on the suppression list; None without one."""
        marks = self.by("suppressed")
        if not marks:
            return None
        return marks[True]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON, with every bucket; actions only with a policy."""
        record = {
            "rows": self.rows,
            **self.buckets,
            "why": dict(self.by("reason").most_common()),
            "flags": self.flags,
            "suggestions": self.suggestions,
            "cleaned": self.cleaned,
        }
        if self.suppressed is not None:
            record["suppressed"] = self.suppressed
        if self.policy is not None:
            record["actions"] = self.actions
            record["people"] = self.people
        return record


def facts_of(rows: Results, policy: Policy | None) -> dict[str, pa.Array]:
    """What rows have in common that are counted together, by the fields of `Alike`."""
    facts = row_facts(rows) if policy is None else policy_facts(rows, policy)
    facts["source"] = rows["source"]
    if rows.is_cleaned:
        facts["change"] = rows.change
    if policy is not None:
        facts |= repaired_rows(rows)
    return facts


# --- addresses ------------------------------------------------------------------------------------


def keys_of(rows: Results) -> pa.StringArray:
    """For each row the key of its address; null where there is no text."""
    return address_keys(strip_texts(rows.addresses))


def people_of(addresses: pa.StringArray) -> pa.StringArray:
    """The mailbox of each of `keys_of`; what is no address to us stays as it is."""
    return pc.coalesce(find_mailboxes(addresses).names, addresses)


def first_rows(
    keys: pa.StringArray, is_counted: pa.BooleanArray, seen: SeenAddresses
) -> npt.NDArray[np.int64]:
    """The first row of each key that no earlier piece had, of the rows that count."""
    has_key = pc.and_(is_counted, keys.is_valid())
    rows = np.flatnonzero(to_bools(has_key))
    coded = keys.take(pa.array(rows)).dictionary_encode()
    codes = coded.indices.to_numpy()
    _, first = np.unique(codes, return_index=True)
    rows = rows[first]
    distinct = keys.take(pa.array(rows))
    new = seen.keep_new(distinct)
    if len(new) == len(distinct):
        return rows
    is_new = to_bools(pc.is_in(distinct, value_set=new))
    return rows[is_new]


def well_formed(rows: Results, addresses: pa.StringArray) -> pa.StringArray:
    """The distinct well-formed ones; a cleaned address is."""
    is_clean = pa.array(rows.is_of_clean & rows.is_cleaned)
    cleaned = addresses.filter(is_clean)
    others = addresses.filter(pc.invert(is_clean)).unique().drop_null()
    syntax = observe_column(others, lenient=True)
    others = others.filter(syntax["well_formed"])
    return pa.concat_arrays([cleaned, others]).unique()


def domains_of(addresses: pa.StringArray) -> pa.DictionaryArray:
    """For each row of `keys_of` the domain; null where there is no @, or nothing behind it."""
    _, written = split_at_sign(addresses.fill_null(""))
    ends = written.dictionary_encode()
    names = []
    for end in ends.dictionary.to_pylist():
        _, _, name = end.rpartition("@")
        names.append(name or None)
    named = pa.array(names, pa.string()).dictionary_encode()
    codes = named.indices.take(ends.indices)
    return pa.DictionaryArray.from_arrays(codes, named.dictionary)


def count_by_code(
    values: pa.DictionaryArray, codes: pa.Int32Array, width: int
) -> npt.NDArray[np.int64]:
    """Rows of each distinct value (down) with each of `width` codes (across)."""
    down = values.indices.cast(pa.int64())
    cells = pc.add(pc.multiply(down, width), codes.cast(pa.int64()))  # null where one is
    size = len(values.dictionary) * width
    counts = np.bincount(cells.drop_null().to_numpy(), minlength=size)
    return counts.reshape(-1, width)


def count_domains(addresses: pa.StringArray, bucket: pa.DictionaryArray) -> pa.Table:
    """Rows of each domain by bucket."""
    domains = domains_of(addresses)
    counts = count_by_code(domains, bucket.indices, len(BUCKETS))
    columns = [pa.array(column) for column in counts.T]
    return pa.table([domains.dictionary, *columns], ["domain", *BUCKETS])


def add_domains(tables: Sequence[pa.Table]) -> pa.Table:
    """The sum over the pieces of a column; of a large file they are many."""
    if len(tables) == 1:
        return tables[0]
    by_domain = pa.concat_tables(tables).group_by("domain")
    sums = by_domain.aggregate([(name, "sum") for name in BUCKETS])
    columns = {"domain": sums["domain"]}
    for name in BUCKETS:
        columns[name] = sums[f"{name}_sum"]
    return pa.table(columns)


def top_domains(counts: pa.Table, top: int) -> pd.DataFrame:
    """The table of `by_domain`: most rows first, ties by name."""
    rows = sum(counts[name].to_numpy() for name in BUCKETS)
    by_rows = pa.table({"domain": counts["domain"], "rows": rows})
    most_first = [("rows", "descending"), ("domain", "ascending")]
    first = counts.take(pc.sort_indices(by_rows, most_first)[:top])
    names = first["domain"].to_pylist()
    table: pd.DataFrame = first.select(BUCKETS).to_pandas()
    table.insert(0, "rows", table.sum(axis=1))
    table.index = pd.Index(names, dtype=object, name="domain")
    return table


def count_typos(rows: Results, addresses: pa.StringArray) -> Counter[tuple[str, str]]:
    """Rows by mistyped domain and the one meant; by address where the domain is right."""
    suggestions = rows["suggestion"]
    is_typo = pc.and_(suggestions.is_valid(), addresses.is_valid())
    typed = addresses.filter(is_typo).to_pylist()
    meant = suggestions.filter(is_typo).to_pylist()
    return Counter(map(typo_of, typed, meant))


def typo_of(typed: str, meant: str) -> tuple[str, str]:
    """What was typed and meant: the domains, if they differ.

    >>> typo_of("ada@gmial.com", "ada@gmail.com"), typo_of("ada@@a.org", "ada@a.org")
    (('gmial.com', 'gmail.com'), ('ada@@a.org', 'ada@a.org'))
    """
    wrong = domain_of(typed)
    right = domain_of(meant)
    if wrong != right:
        return wrong, right
    return typed[:LONGEST_TYPED], meant[:LONGEST_TYPED]


def domain_of(address: str) -> str:
    """What is behind the last @; empty where there is none."""
    _, sign, domain = address.rpartition("@")
    if not sign:
        return ""
    return lower_domain(domain)


def repaired_rows(rows: Results) -> dict[str, pa.Array]:
    """The repairs of cells whose verdict is of the repaired text, and if they were malformed."""
    if not rows.is_cleaned:
        return {}
    is_changed = to_bools(rows.change.is_valid())
    changed = np.flatnonzero(is_changed & rows.is_of_clean)
    texts = rows.texts.take(pa.array(changed))
    addresses = rows["clean"].take(pa.array(changed))
    is_other = to_bools(pc.not_equal(addresses, texts).fill_null(False))
    syntax = observe_column(strip_texts(texts.fill_null("")))
    was_malformed = ~to_bools(syntax["well_formed"])
    is_repaired = np.zeros(len(rows), np.bool_)
    is_repaired[changed] = is_other
    is_rescued = np.zeros(len(rows), np.bool_)
    is_rescued[changed] = is_other & was_malformed
    return {
        "change": texts_where(pa.array(is_repaired), rows.change),
        "is_rescued": pa.array(is_rescued),
    }


def checked_days(rows: Results) -> tuple[date, date] | None:
    """The first and the last day of the checks, in UTC; a file may hold times as texts."""
    try:
        span = pc.min_max(rows["checked_at"]).as_py()
    except InputError:  # a column of the user
        return None
    if span["min"] is None:
        return None
    return span["min"].date(), span["max"].date()


def validation_types(rows: Results) -> list[str]:
    """From the rows where the column is there, else from what `verify` noted on the frame."""
    if "validation_type" in rows:
        words = rows["validation_type"].unique().drop_null()
        return [str(word) for word in words.to_pylist()]
    notes = rows.data.notes()
    if "validation_type" in notes:
        return [str(notes["validation_type"])]
    return []
