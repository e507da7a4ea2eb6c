"""Counts of verified rows: one class for `summary`, the command line and reports, over pieces that add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.syntax.column import observe_column
from ..checks.syntax.kernels import to_bools
from ..errors import InputError
from ..frames.clean import AFTER_CLEANING, USE_EXPLODE
from ..frames.planning import SeenAddresses
from ..frames.policy import Policy, cause_of, decide_rows
from ..frames.restore import restore
from ..frames.verified import VerifiedColumn
from ..model.address import identities, lower_domain
from ..model.table import one_array
from ..model.words import FLAGS, SEVERAL_ADDRESSES, Status, Verdict
from ..table.columns import BY_NAME
from ..table.text_column import strip_texts

# The five buckets of the contract, then the rows that were not processed or have no address.
BUCKETS = (*map(str, Verdict), str(Status.ERROR), str(Status.PENDING), str(Status.MISSING))
LONGEST_TYPED = 80  # characters of a mistyped address that are shown
NO_DOMAINS = pa.schema([("domain", pa.string()), *((name, pa.int64()) for name in BUCKETS)]).empty_table()
MAX_TABLES = 8  # tables of domains that are kept before they are added up
FIRST_YEAR = 2001  # a number that is an earlier time is a number of the user


class Alike(NamedTuple):
    """What rows that are counted together have in common; None where the frame does not say."""

    bucket: str  # verdict, or status where there is none
    why: str | None = None
    role: bool | None = None
    disposable: bool | None = None
    free: bool | None = None
    spamtrap: bool | None = None
    catch_all: bool | None = None
    protected: bool | None = None
    is_suggested: bool = False
    change: str | None = None  # names of the repairs, joined by ";", where the verdict is that of a repaired address
    suppressed: bool | None = None
    source: str | None = None
    # Only with a policy:
    action: str | None = None
    cause: str | None = None  # what decides besides the verdict, or the advice about a malformed cell
    is_rescued: bool = False  # the verdict is that of a repaired address, and the cell was malformed

    @property
    def line(self) -> str:
        """The line of a summary: the bucket, but for cells with several addresses, which nobody could verify."""
        return SEVERAL_ADDRESSES if self.why == SEVERAL_ADDRESSES else self.bucket

    @property
    def reason(self) -> str | None:
        """Why the verdict is not valid."""
        return self.why if self.bucket in (Verdict.RISKY, Verdict.INVALID, Verdict.UNKNOWN) else None


class Counts:
    """Counts of a verified column that add up piece by piece, for tables larger than memory.

    With a policy it counts what a report shows, too: actions, distinct addresses, domains, typos.
    """

    def __init__(self, policy: Policy | None = None) -> None:
        self.policy = policy
        self.alike = Counter[Alike]()  # rows by what is said of them; all other counts of rows are sums of these
        self.addresses = 0  # distinct and well-formed, after cleaning
        self.seen = SeenAddresses()
        self.domains = [NO_DOMAINS]  # rows by domain and bucket, of pieces
        self.typos = Counter[tuple[str, str]]()  # rows by what was typed and probably meant
        self.days: list[date] = []  # the first and the last day of the checks of each piece
        self.validation_types: dict[str, None] = {}
        self.answered_by: dict[str, None] = {}  # what backends call themselves

    def add(self, rows: VerifiedColumn) -> None:
        """Count a piece with the rows that follow those before; it has at least verdict, status and why."""
        bucket = buckets(rows)
        words = {"bucket": bucket, "why": encode(rows.why)}
        for name in ("source", "suppressed", *FLAGS):
            if (values := rows.get(name)) is not None:
                words[name] = encode(values)
        if (suggestion := rows.get("suggestion")) is not None:
            words["is_suggested"] = pa.array(suggestion.notna().to_numpy(bool))
        if rows.is_cleaned and (change := rows.change) is not None:
            words["change"] = encode(change)
        if self.policy is not None:
            words |= self.add_reported(rows, bucket, self.policy)
        for alike, count in count_alike(words):
            self.alike[Alike(**alike)] += count

    def add_reported(self, rows: VerifiedColumn, bucket: pa.DictionaryArray, policy: Policy) -> dict[str, pa.Array]:
        """Count what only reports show, and give the words for it."""
        addresses = addresses_of(rows)
        new = self.seen.keep_new(addresses.unique().drop_null())
        self.addresses += observe_column(new).ok.true_count
        self.domains.append(count_domains(addresses, bucket))
        if len(self.domains) > MAX_TABLES:
            self.domains = [add_domains(self.domains)]
        self.typos.update(count_typos(rows, addresses))
        self.days += checked_days(rows) or ()
        self.validation_types |= dict.fromkeys(validation_types(rows))
        if label := rows.data.notes().get("answered_by"):
            self.answered_by[str(label)] = None
        action, why = map(encode, decide_rows(rows, policy))
        causes = pa.array([cause_or_advice(each) for each in why.dictionary.to_pylist()], pa.string())
        words = {"action": action, "cause": causes.take(why.indices).dictionary_encode()}
        return words | repaired_rows(rows)

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
        return {name: counts[name] for name in (*BUCKETS, SEVERAL_ADDRESSES) if name in BUCKETS or counts[name]}

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
    def suppressed(self) -> int | None:
        """Rows on the suppression list; None without one."""
        marks = self.by(attrgetter("suppressed"))
        return marks[True] if marks else None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; every bucket is there; `suppressed` only with a suppression list."""
        return {
            "rows": self.rows,
            **self.buckets,
            "why": dict(self.by(attrgetter("reason")).most_common()),
            "flags": self.flags,
            "suggestions": self.suggestions,
            "cleaned": self.cleaned,
            **({} if self.suppressed is None else {"suppressed": self.suppressed}),
        }


# --- columns as codes -------------------------------------------------------------------------------------------------


def encode(values: pd.Series[Any]) -> pa.Array:
    """A column of few words as codes; flags stay true and false."""
    if values.dtype == object:
        values = values.astype("string")
    array = one_array(pa.array(values, from_pandas=True))
    return array if pa.types.is_dictionary(array.type) or pa.types.is_boolean(array.type) else array.dictionary_encode()


def buckets(rows: VerifiedColumn) -> pa.DictionaryArray:
    """For each row the verdict if there is one, else the status; codes of `BUCKETS`."""
    words = pa.array(BUCKETS)
    verdict, status = (pc.index_in(encode(each), words) for each in (rows["verdict"], rows.status))
    # "done" is not one of them.
    return pa.DictionaryArray.from_arrays(pc.coalesce(status, verdict), words)


def lines_of(rows: VerifiedColumn) -> pa.DictionaryArray:
    """For each row its line of a summary; codes of `BUCKETS` and of the line after them."""
    is_several = pa.array((rows.why == SEVERAL_ADDRESSES).fillna(value=False).to_numpy(bool))
    codes = pc.if_else(is_several, pa.scalar(len(BUCKETS), pa.int32()), buckets(rows).indices)
    return pa.DictionaryArray.from_arrays(codes, pa.array([*BUCKETS, SEVERAL_ADDRESSES]))


def count_alike(words: dict[str, pa.Array]) -> Iterable[tuple[dict[str, Any], int]]:
    """The distinct combinations of the words, each with its number of rows."""
    said = {name: values for name, values in words.items() if name == "bucket" or values.null_count < len(values)}
    found = pa.table(said).group_by(list(said)).aggregate([([], "count_all")])
    counts = found["count_all"].to_pylist()
    return zip(found.drop_columns(["count_all"]).to_pylist(), counts, strict=True)


def cause_or_advice(why: str) -> str | None:
    """What decided about an action besides the verdict, or the end of the advice about a malformed cell."""
    return next((end for end in (AFTER_CLEANING, USE_EXPLODE) if why.endswith(end)), None) or cause_of(why) or None


# --- addresses --------------------------------------------------------------------------------------------------------


def addresses_of(rows: VerifiedColumn) -> pa.StringArray:
    """For each row the text by which its address is known; null where there is no text."""
    texts = one_array(pa.array(rows.addresses)).cast(pa.string())
    return identities(strip_texts(texts))


def domains_of(addresses: pa.StringArray) -> pa.DictionaryArray:
    """For each row of `addresses_of` the domain; null where there is no @."""
    parts = pc.split_pattern(addresses, "@", max_splits=1, reverse=True)
    has_at = to_bools(pc.equal(pc.list_value_length(parts), 2).fill_null(False))
    ends = parts.offsets.to_numpy()[1:]
    return parts.values.take(pa.array(ends - 1, mask=~has_at)).dictionary_encode()


def count_by_bucket(values: pa.DictionaryArray, bucket: pa.DictionaryArray) -> npt.NDArray[np.int64]:
    """Rows of each distinct value, one below the other, in each bucket, side by side."""
    width = len(bucket.dictionary)
    codes, at = (each.indices.fill_null(-1).to_numpy().astype(np.int64) for each in (values, bucket))
    cells = (codes * width + at)[(codes >= 0) & (at >= 0)]
    return np.bincount(cells, minlength=len(values.dictionary) * width).reshape(-1, width)


def count_domains(addresses: pa.StringArray, bucket: pa.DictionaryArray) -> pa.Table:
    """Rows of each domain by bucket."""
    domains = domains_of(addresses)
    counts = count_by_bucket(domains, bucket)
    return pa.table([domains.dictionary, *map(pa.array, counts.T)], ["domain", *BUCKETS])


def add_domains(tables: Sequence[pa.Table]) -> pa.Table:
    """The sum over the pieces of a column; of a large file they are many."""
    if len(tables) == 1:
        return tables[0]
    summed = pa.concat_tables(tables).group_by("domain").aggregate([(name, "sum") for name in BUCKETS])
    return pa.table([summed["domain"], *(summed[f"{name}_sum"] for name in BUCKETS)], ["domain", *BUCKETS])


def top_domains(counts: pa.Table, top: int) -> pd.DataFrame:
    """The table of `by_domain`: most rows first, ties by name."""
    rows = sum(counts[name].to_numpy() for name in BUCKETS)
    by_rows = pa.table([counts["domain"], rows], ["domain", "rows"])
    first = pc.sort_indices(by_rows, [("rows", "descending"), ("domain", "ascending")])[:top]
    columns = {name: counts[name].take(first).to_numpy() for name in BUCKETS}
    names = pd.Index(counts["domain"].take(first).to_pylist(), dtype=object, name="domain")
    return pd.DataFrame({"rows": rows[first.to_numpy()], **columns}, names)


def count_typos(rows: VerifiedColumn, addresses: pa.StringArray) -> Counter[tuple[str, str]]:
    """Rows by mistyped domain and the domain probably meant; by address where the domain is right."""
    suggestion = rows["suggestion"]
    has = np.flatnonzero(suggestion.notna().to_numpy(bool))
    pairs = zip(addresses.take(pa.array(has)).to_pylist(), suggestion.iloc[has].astype(str), strict=True)
    return Counter(typo_of(typed, meant) for typed, meant in pairs if typed is not None)


def typo_of(typed: str, meant: str) -> tuple[str, str]:
    """What was typed and meant: the domains, if they differ.

    >>> typo_of("ada@gmial.com", "ada@gmail.com"), typo_of("ada@@a.org", "ada@a.org")
    (('gmial.com', 'gmail.com'), ('ada@@a.org', 'ada@a.org'))
    """
    wrong, right = (lower_domain(each.rpartition("@")[2]) if "@" in each else "" for each in (typed, meant))
    return (wrong, right) if wrong != right else (typed[:LONGEST_TYPED], meant[:LONGEST_TYPED])


def repaired_rows(rows: VerifiedColumn) -> dict[str, pa.Array]:
    """The words about cells whose verdict is that of a repaired address, and whether they were malformed."""
    if not rows.is_cleaned or rows.change is None:
        return {}
    change = encode(rows.change)
    changed = np.flatnonzero(to_bools(change.is_valid()))
    texts, addresses = (
        one_array(pa.array(each.iloc[changed])).cast(pa.string()) for each in (rows.texts, rows.addresses)
    )
    is_other = to_bools(pc.not_equal(addresses, texts).fill_null(False))
    is_ok = to_bools(observe_column(strip_texts(texts.fill_null(""))).ok)
    is_repaired, is_rescued = np.zeros(len(change), np.bool_), np.zeros(len(change), np.bool_)
    is_repaired[changed], is_rescued[changed] = is_other, is_other & ~is_ok
    return {"change": pc.if_else(pa.array(is_repaired), change, None), "is_rescued": pa.array(is_rescued)}


def checked_days(rows: VerifiedColumn) -> tuple[date, date] | None:
    """The first and the last day on which rows were checked, in UTC; a file may have made texts of the times."""
    moments, column = rows.get("checked_at"), BY_NAME["checked_at"]
    if moments is None or moments.isna().all():
        return None
    if not isinstance(moments.dtype, pd.DatetimeTZDtype):
        try:
            moments = restore(moments, column, column.name)
        except InputError:  # a column of the user
            return None
    first, last = moments.min().date(), moments.max().date()
    return None if first.year < FIRST_YEAR else (first, last)


def validation_types(rows: VerifiedColumn) -> list[str]:
    """From the rows where the column is there, else from what `verify` noted on the frame."""
    types = rows.get("validation_type")
    if types is not None:
        return [str(kind) for kind in types.dropna().unique()]
    note = rows.data.notes()
    return [str(note["validation_type"])] if "validation_type" in note else []
