"""Counts of verified rows: one class for `summary`, the command line and reports, over pieces that add up."""

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
NO_DOMAINS = pa.schema(
    [("domain", pa.string()), *((name, pa.int64()) for name in BUCKETS)]
).empty_table()
MAX_TABLES = 8  # tables of domains that are kept before they are added up


class Counts:
    """Counts of a verified column that add up piece by piece, for tables larger than memory.

    With a policy it counts what a report shows, too: actions, distinct addresses, domains, typos.
    """

    def __init__(self, policy: Policy | None = None) -> None:
        self.policy = policy
        self.alike = Counter[
            Alike
        ]()  # rows by what is said of them; all other counts of rows are sums of these
        self.addresses = 0  # distinct and well-formed, after cleaning
        self.people = 0  # different mailboxes that can be mailed under the policy
        self.seen, self.seen_people = SeenAddresses(), SeenAddresses()
        self.decided: list[
            tuple[str, str, str]
        ] = []  # the first rows: what was typed, decision, suggestion that was chosen
        self.domains = [NO_DOMAINS]  # rows by domain and bucket, of pieces
        self.typos = Counter[tuple[str, str]]()  # rows by what was typed and probably meant
        self.days: list[date] = []  # the first and the last day of the checks of each piece
        self.validation_types: dict[str, None] = {}
        self.answered_by: dict[str, None] = {}  # what backends call themselves

    def add(self, rows: Results) -> None:
        """Count a piece with the rows that follow those before; it has at least verdict, status and why."""
        groups, alike = group_alike(facts_of(rows, self.policy))
        if self.policy is not None:
            alike = apply_policy(alike, self.policy)
        self.alike.update(
            dict(zip(alike, np.bincount(groups, minlength=len(alike)).tolist(), strict=True))
        )
        if self.policy is not None:
            addresses = keys_of(rows)
            self.add_addresses(rows, addresses)
            is_sent = pa.array(
                np.array([each.action == "send" for each in alike], np.bool_)[groups]
            )
            people = people_of(addresses.filter(is_sent).unique())
            self.people += len(self.seen_people.keep_new(people.unique().drop_null()))
            self.add_decided(rows)

    def add_addresses(self, rows: Results, addresses: pa.StringArray) -> None:
        """Count what only reports show, and no policy changes; `addresses` are those of `keys_of`."""
        self.addresses += len(self.seen.keep_new(well_formed(rows, addresses)))
        self.domains.append(count_domains(addresses, rows.buckets))
        if len(self.domains) > MAX_TABLES:
            self.domains = [add_domains(self.domains)]
        self.typos.update(count_typos(rows, addresses))
        self.days += checked_days(rows) or ()
        self.validation_types |= dict.fromkeys(validation_types(rows))
        if label := rows.data.notes().get("answered_by"):
            self.answered_by[str(label)] = None

    def add_decided(self, rows: Results) -> None:
        """Keep the first rows about which a person decided, with what was typed there."""
        at = np.flatnonzero(to_bools(rows.decision.is_valid()))[: TOP_DECIDED - len(self.decided)]
        columns = (rows.texts, rows["decision"], rows["decided_address"])
        taken = (each.take(pa.array(at)).fill_null("").to_pylist() for each in columns)
        self.decided += zip(*taken, strict=True)

    def by(self, key: Callable[[Alike], Any]) -> Counter[Any]:
        """Rows by what `key` gives; those for which it is None are left out."""
        counts = Counter[Any]()
        for alike, count in self.alike.items():
            if (value := key(alike)) is not None:
                counts[value] += count
        return counts

    def number(self, is_counted: Callable[[Alike], Any]) -> int:
        """How many rows it is true of."""
        return sum(count for alike, count in self.alike.items() if is_counted(alike))

    @property
    def rows(self) -> int:
        """All rows."""
        return self.alike.total()

    @property
    def buckets(self) -> dict[str, int]:
        """Rows by verdict, or by status where there is no verdict; always all seven."""
        counts = self.by(attrgetter("bucket"))
        return {name: counts[name] for name in BUCKETS}

    @property
    def lines(self) -> dict[str, int]:
        """Rows by line of a summary: the seven buckets, and cells with several addresses if there are any."""
        counts = self.by(attrgetter("line"))
        return {
            name: counts[name]
            for name in (*BUCKETS, SEVERAL_ADDRESSES)
            if name in BUCKETS or counts[name]
        }

    @property
    def actions(self) -> dict[str, int]:
        """Rows by action; always all five."""
        counts = self.by(attrgetter("action"))
        return {name: counts[name] for name in ACTIONS}

    @property
    def causes(self) -> Counter[str]:
        """Rows by what decides about the action besides the verdict."""
        return self.by(attrgetter("cause"))

    @property
    def mailable(self) -> float:
        """Share of all rows that can be mailed under the policy."""
        return self.actions["send"] / max(self.rows, 1)

    @property
    def checked(self) -> tuple[date, date] | None:
        """The first and the last day of the checks, if the frame says so."""
        return (min(self.days), max(self.days)) if self.days else None

    @property
    def flags(self) -> dict[str, int]:
        """Rows by flag that is true."""
        return {flag: self.by(attrgetter(flag))[True] for flag in FLAGS}

    @property
    def suggestions(self) -> int:
        """Rows with a suggestion."""
        return self.number(lambda each: each.is_suggested)

    @property
    def cleaned(self) -> int:
        """Rows whose verdict is that of a repaired address."""
        return self.number(lambda each: each.change)

    @property
    def decisions(self) -> dict[str, int]:
        """Rows by what a person decided; a suggestion counts whether or not it is verified."""
        counts = self.by(lambda each: "suggestion" if each.decision == WAITING else each.decision)
        return {word: counts[word] for word in DECISIONS}

    @property
    def suppressed(self) -> int | None:
        """Rows on the suppression list; None without one."""
        marks = self.by(attrgetter("suppressed"))
        return marks[True] if marks else None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; every bucket is there; `suppressed` only with a suppression list, actions only with a policy."""
        return {
            "rows": self.rows,
            **self.buckets,
            "why": dict(self.by(attrgetter("reason")).most_common()),
            "flags": self.flags,
            "suggestions": self.suggestions,
            "cleaned": self.cleaned,
            **({} if self.suppressed is None else {"suppressed": self.suppressed}),
            **({} if self.policy is None else {"actions": self.actions, "people": self.people}),
        }


def facts_of(rows: Results, policy: Policy | None) -> dict[str, pa.Array]:
    """What rows that are counted alike have in common, by the fields of `Alike`; see `row_facts`."""
    facts = row_facts(rows) if policy is None else policy_facts(rows, policy)
    facts["source"] = rows["source"]
    if rows.is_cleaned:
        facts["change"] = rows.change
    if policy is not None:
        facts.update(repaired_rows(rows))
    return facts


# --- addresses --------------------------------------------------------------------------------------------------------


def keys_of(rows: Results) -> pa.StringArray:
    """For each row the key of its address; null where there is no text."""
    return address_keys(strip_texts(rows.addresses))


def people_of(addresses: pa.StringArray) -> pa.StringArray:
    """The person of each of `keys_of`: its mailbox; what is not an address to us, but may be to a service, as it is."""
    return pc.coalesce(find_mailboxes(addresses).names, addresses)


def first_rows(
    keys: pa.StringArray, is_counted: pa.BooleanArray, seen: SeenAddresses
) -> npt.NDArray[np.int64]:
    """The first row of each different key, of the rows that count; not for keys that earlier pieces had."""
    rows = np.flatnonzero(to_bools(pc.and_(is_counted, keys.is_valid())))
    coded = keys.take(pa.array(rows)).dictionary_encode()
    _, first = np.unique(coded.indices.to_numpy(), return_index=True)
    rows = rows[first]
    distinct = keys.take(pa.array(rows))
    new = seen.keep_new(distinct)
    if len(new) == len(distinct):
        return rows
    return rows[to_bools(pc.is_in(distinct, value_set=new))]


def well_formed(rows: Results, addresses: pa.StringArray) -> pa.StringArray:
    """The distinct well-formed ones; a cleaned address is."""
    is_clean = pa.array(rows.is_of_clean & rows.is_cleaned)
    others = addresses.filter(pc.invert(is_clean)).unique().drop_null()
    return pa.concat_arrays(
        [
            addresses.filter(is_clean),
            others.filter(observe_column(others, lenient=True)["well_formed"]),
        ]
    ).unique()


def domains_of(addresses: pa.StringArray) -> pa.DictionaryArray:
    """For each row of `keys_of` the domain; null where there is no @, or nothing behind it."""
    _, written = split_at_sign(addresses.fill_null(""))
    ends = written.dictionary_encode()
    names = [end.rpartition("@")[2] or None for end in ends.dictionary.to_pylist()]
    named = pa.array(names, pa.string()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(named.indices.take(ends.indices), named.dictionary)


def count_by_code(
    values: pa.DictionaryArray, codes: pa.Int32Array, width: int
) -> npt.NDArray[np.int64]:
    """Rows of each distinct value, one below the other, with each of `width` codes, side by side."""
    rows, at = (each.fill_null(-1).to_numpy().astype(np.int64) for each in (values.indices, codes))
    cells = (rows * width + at)[(rows >= 0) & (at >= 0)]
    return np.bincount(cells, minlength=len(values.dictionary) * width).reshape(-1, width)


def count_domains(addresses: pa.StringArray, bucket: pa.DictionaryArray) -> pa.Table:
    """Rows of each domain by bucket."""
    domains = domains_of(addresses)
    counts = count_by_code(domains, bucket.indices, len(BUCKETS))
    return pa.table([domains.dictionary, *map(pa.array, counts.T)], ["domain", *BUCKETS])


def add_domains(tables: Sequence[pa.Table]) -> pa.Table:
    """The sum over the pieces of a column; of a large file they are many."""
    if len(tables) == 1:
        return tables[0]
    summed = (
        pa.concat_tables(tables).group_by("domain").aggregate([(name, "sum") for name in BUCKETS])
    )
    return pa.table(
        [summed["domain"], *(summed[f"{name}_sum"] for name in BUCKETS)], ["domain", *BUCKETS]
    )


def top_domains(counts: pa.Table, top: int) -> pd.DataFrame:
    """The table of `by_domain`: most rows first, ties by name."""
    rows = sum(counts[name].to_numpy() for name in BUCKETS)
    by_rows = pa.table([counts["domain"], rows], ["domain", "rows"])
    first = pc.sort_indices(by_rows, [("rows", "descending"), ("domain", "ascending")])[:top]
    columns = {name: counts[name].take(first).to_numpy() for name in BUCKETS}
    names = pd.Index(counts["domain"].take(first).to_pylist(), dtype=object, name="domain")
    return pd.DataFrame({"rows": rows[first.to_numpy()], **columns}, names)


def count_typos(rows: Results, addresses: pa.StringArray) -> Counter[tuple[str, str]]:
    """Rows by mistyped domain and the domain probably meant; by address where the domain is right."""
    has = pc.and_(rows["suggestion"].is_valid(), addresses.is_valid())
    pairs = zip(
        *(each.filter(has).to_pylist() for each in (addresses, rows["suggestion"])), strict=True
    )
    return Counter(typo_of(typed, meant) for typed, meant in pairs)


def typo_of(typed: str, meant: str) -> tuple[str, str]:
    """What was typed and meant: the domains, if they differ.

    >>> typo_of("ada@gmial.com", "ada@gmail.com"), typo_of("ada@@a.org", "ada@a.org")
    (('gmial.com', 'gmail.com'), ('ada@@a.org', 'ada@a.org'))
    """
    wrong, right = (
        lower_domain(each.rpartition("@")[2]) if "@" in each else "" for each in (typed, meant)
    )
    return (wrong, right) if wrong != right else (typed[:LONGEST_TYPED], meant[:LONGEST_TYPED])


def repaired_rows(rows: Results) -> dict[str, pa.Array]:
    """The words about cells whose verdict is that of a repaired address, and whether they were malformed."""
    if not rows.is_cleaned:
        return {}
    changed = np.flatnonzero(to_bools(rows.change.is_valid()) & rows.is_of_clean)
    texts, addresses = (each.take(pa.array(changed)) for each in (rows.texts, rows["clean"]))
    is_other = to_bools(pc.not_equal(addresses, texts).fill_null(False))
    is_ok = to_bools(observe_column(strip_texts(texts.fill_null("")))["well_formed"])
    is_repaired, is_rescued = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
    is_repaired[changed], is_rescued[changed] = is_other, is_other & ~is_ok
    return {
        "change": texts_where(pa.array(is_repaired), rows.change),
        "is_rescued": pa.array(is_rescued),
    }


def checked_days(rows: Results) -> tuple[date, date] | None:
    """The first and the last day on which rows were checked, in UTC; a file may have made texts of the times."""
    try:
        first, last = (each.as_py() for each in pc.min_max(rows["checked_at"]).values())
    except InputError:  # a column of the user
        return None
    return None if first is None else (first.date(), last.date())


def validation_types(rows: Results) -> list[str]:
    """From the rows where the column is there, else from what `verify` noted on the frame."""
    if "validation_type" in rows:
        return list(map(str, rows["validation_type"].unique().drop_null().to_pylist()))
    note = rows.data.notes()
    return [str(note["validation_type"])] if "validation_type" in note else []
