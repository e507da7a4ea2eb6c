"""Where the bad addresses come from: `breakdown` counts a verified list by a column, or ranks all columns.

`groups` counts people by the values of columns, `differences` has the statistics. What is made of both::

    ListCounts     the counts of all columns of a list, in pieces that add up
    ColumnFinding        what one column says: its groups, how strong the difference is, its worst and its best group
    GroupTable     the groups of a column, for `breakdown(out, "owner")`
    RankTable      a line for each column, for `breakdown(out)`

Both tables are frames, print as text for a terminal, and show as HTML in a notebook.
"""

from __future__ import annotations

import html
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..errors import ColumnError, SettingsError
from ..frames.planning import SeenAddresses
from ..frames.policy import POLICIES, Policy, read_decided
from ..frames.results import Results
from ..model.words import count_of, percent, printable_text, show_directions
from ..table.columns import check_column, did_you_mean, label_of, listed, map_columns
from ..table.notices import Note, warn_user
from ..table.overwrite import earlier_columns
from ..table.table import Frame, Table
from ..table.text_column import to_array
from ..theme import interval_bar, notebook
from .by_operator import OperatorCounts, operators_of
from .counts import domains_of, keys_of
from .differences import (
    adjust,
    association,
    chance_of,
    elsewhere,
    shrink,
    surprise,
    wilson_intervals,
)
from .groups import (
    NOBODY,
    SAMPLE,
    ColumnCounts,
    Groups,
    mark_people,
    people_in,
    people_that,
    read_column,
)
from .tables import CountTable

# What is bad, and how it is said of people.
WHAT = {
    "invalid": "invalid",
    "not_sendable": "not sendable",
    "disposable": "disposable",
    "bounced": "bounced",
}
SHARES = ("invalid", "unknown", "sendable")  # that every table has
LEVEL = 0.05  # of all columns that are named, at most this share by chance
LEAST_DIFFERENCE = 0.01  # of two shares, below which a column says little however sure it is
FEW_PEOPLE = 10  # a smaller group is not named in a sentence, if there is another one
SAME = 0.9  # share of what a column says that another one says, too
MOSTLY_DIFFERENT = (
    0.9  # share of rows with a value of their own, from which a column is an id or a text
)
OPERATOR_COLUMNS = ("clear", "catch_all", "deferred", "refused", "no_answer", "dead", "note")
SAME_AS, LEFT_OUT = "the same as ", "left out: "
MADE = ("domain", "operator")  # columns that are made of the addresses
SHOWN_GROUPS, SHOWN_COLUMNS = 30, 20
HEADS = ("95% interval", "elsewhere", "unknown", "sendable", "above average")  # after the share
LONGEST_LABEL = 40  # characters of a group in a terminal


def breakdown(
    out: Frame,
    by: Hashable | Sequence[Hashable] | None = None,
    *,
    column: Hashable | None = None,
    what: str = "invalid",
    top: int | None = None,
    bounces: Any = None,
    prefix: str | None = None,
) -> Frame:
    """Show where the bad addresses of a verified list come from. Uses no network.

    With `by` the list is counted by one of your columns. Without it all of them are looked at, and those come first
    that explain most. People are counted, not rows: rows that reach the same mailbox count once, with the first of them
    that has a verdict.

    Parameters
    ----------
    out : DataFrame
        What `verify` returned: a pandas, Polars or Arrow frame.
    by : hashable or list of hashable, optional
        A column of yours, ``"domain"`` or ``"operator"`` (who runs the mail server), or a list of two to cross them.
        Dates are counted by year, quarter or month, numbers with many values in five groups of equally many rows,
        and empty cells as ``(missing)``. By default all columns are ranked.
    column : hashable, optional
        The column that was verified; by default the only one.
    what : {"invalid", "not_sendable", "disposable", "bounced"}, default "invalid"
        What is bad. Not sendable is what the balanced policy does not send.
    top : int, optional
        How many lines; by default all.
    bounces : DataFrame or path, optional
        For ``what="bounced"``: what `read_bounces` returned, or what it reads. People bounced if a report says that
        their mailbox or domain does not exist. All people with an address count as mailed; give only the rows that
        were.
    prefix : str, optional
        The prefix it was verified with, if not the default.

    Returns
    -------
    DataFrame
        With `by` a line for each group, by its name in the index, first those with the most bad people above the
        average. `rows` (int64), `people` (int64, with a verdict), and for invalid, unknown, sendable, and `what`: the
        people (int64), and as float64 their share (`invalid_share`) with a 95 % interval (`invalid_low`,
        `invalid_high`; Wilson 1927). Then of `what`, float64: `elsewhere`, the share among all others;
        `difference` to them, where a small group counts less (empirical Bayes, Kleinman 1973); `above`, the bad people
        beyond what the average gives. For ``"operator"`` also the counts of addresses `clear`, `catch_all`,
        `deferred`, `refused`, `no_answer`, `dead` (Int64), and `note` (object): why few answers are clear.

        Without `by` a line for each column of yours: `says` (object: ``differs``, ``little``, ``nothing``,
        ``the same as ...`` or ``left out: ...``), `groups` and `people` (int64), `strength` (float64: Cramér's V, 0 to
        1), `chance` (float64: that a list without any difference shows this one), `adjusted` (float64: corrected for
        having looked at many columns, Benjamini and Hochberg 1995; up to 0.05 a column differs), `worst` and `best`
        (object: a sentence each, or None).

        Both print as text and show as a table in notebooks. For a Polars or Arrow frame they are of that kind, and the
        index is the first columns.

    Raises
    ------
    ColumnError
        If there is no such column, it has not been verified, or nothing shows the mail servers for ``"operator"``.
    SettingsError, InputError
        If an argument is none of the above, `bounces` cannot be read, or a result column holds what `verify` never
        writes.

    Warns
    -----
    UserWarning
        If a column of yours is called domain or operator: it is the one that is counted.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> right = [f"p{number}@firm.example" for number in range(80)]
    >>> wrong = [f"p{number}@firm" for number in range(10)]
    >>> sources = ["Website"] * 60 + ["Trade fair"] * 30
    >>> df = pd.DataFrame({"email": right + wrong, "source": sources})
    >>> out = mv.verify(df, "email", validation_type="regex")
    >>> mv.breakdown(out)
    90 people, 11.1% invalid
    source “Trade fair”: 33.3% invalid of 30, elsewhere 0%
    source “Website”: 0% invalid of 60, elsewhere 33.3%
    left out: the verified column and the result columns
    >>> mv.breakdown(out, "source")[["people", "invalid", "invalid_low", "invalid_high"]].round(2)
                people  invalid  invalid_low  invalid_high
    source
    Trade fair      30       10         0.19          0.51
    Website         60        0         0.00          0.06
    """
    check_arguments(what, top, bounces)
    rows = read_decided(out, column, prefix)
    bounced = None if what != "bounced" else bounced_mailboxes(bounces)
    if by is None:
        names: list[Hashable] = []
    else:
        names = [*by] if isinstance(by, list) else [by]
    counts = ListCounts(POLICIES["balanced"], bounced, names, ranks=by is None)
    counts.add(rows)
    table = table_of_counts(counts, what, rows)
    found: Frame = rows.data.convert(first_lines(table, top))
    return found


def check_arguments(what: str, top: int | None, bounces: Any) -> None:
    """Raise a `SettingsError` for what cannot be meant."""
    if what not in WHAT:
        raise SettingsError(f"what={what!r}: give one of {', '.join(WHAT)}")
    if top is not None and (isinstance(top, bool) or not isinstance(top, int) or top < 0):
        raise SettingsError(f"top={top!r}: give a number of lines")
    if what == "bounced" and bounces is None:
        raise SettingsError("what='bounced' needs bounces=, what read_bounces returned or its path")
    if what != "bounced" and bounces is not None:
        raise SettingsError(f"bounces= goes with what='bounced', and what is {what!r}")


def table_of_counts(counts: ListCounts, what: str, rows: Results | None = None) -> CountTable:
    """The table of what was counted; `rows` are needed where two columns are crossed."""
    if counts.asked:
        return group_table(counts, what, rows)
    return RankTable.of(rank(counts, what), counts, what)


def first_lines(table: CountTable, top: int | None) -> CountTable:
    """The first lines of a table, which says as much as before."""
    if top is None:
        return table
    first = type(table)(table.head(top))
    first.attrs = table.attrs
    return first


def bounced_mailboxes(bounces: Any) -> list[str]:
    """The mailboxes that do not exist, by reports."""
    from ..bounces.read import to_bounce_table  # noqa: PLC0415 - few need it
    from .outcomes import mailboxes_of  # noqa: PLC0415 - few need it

    reports = to_bounce_table(bounces).to_pylist()
    hard = [report["address"] for report in reports if report["outcome"] == "hard"]
    return sorted(set(mailboxes_of(pa.array(hard, pa.string()))) - {None})


# --- counts -----------------------------------------------------------------------------------------------------------


class ListCounts:
    """The people of a list by the values of its columns, in pieces that add up.

    `asked` are columns to count by, whatever they hold. With `ranks` all columns of the user's are counted that may
    have few values.
    """

    def __init__(
        self,
        policy: Policy,
        bounced: Sequence[str] | None = None,
        asked: Sequence[Hashable] = (),
        *,
        ranks: bool = True,
    ) -> None:
        if len(asked) > 2:
            raise SettingsError(f"by={asked!r}: give one column, or a list of two to cross them")
        self.policy = policy
        self.bounced = bounced
        self.asked = {name: ColumnCounts(is_asked=True) for name in asked}
        self.operators = OperatorCounts() if "operator" in asked else None
        self.ranks = ranks
        self.seen = SeenAddresses()
        self.columns: dict[Hashable, ColumnCounts] = {}
        self.left_out: dict[Hashable, str] = {}  # columns that are not looked at, and why
        self.rows = self.unanswered = 0
        self.people: npt.NDArray[np.int64] = np.zeros(NOBODY + 1, np.int64)  # by mark
        self.step = 1  # every so many people are those by whom columns are compared
        self.counted = self.sampled = 0

    def add(self, rows: Results, own: Table | None = None) -> None:
        """Count a piece; `own` has the user's columns where they are not beside the results."""
        table = rows.data if own is None else own
        if not self.rows:
            self.choose_columns(rows, table)
        marks = mark_people(rows, self.seen, self.policy, self.bounced)
        people = np.flatnonzero(marks != NOBODY)
        sampled = people[-self.counted % self.step :: self.step]

        def count(name: Hashable) -> None:
            self.columns[name].add(table.cells(name), marks, sampled)

        map_columns(count, self.columns, len(rows))
        for name, column in self.asked.items():
            column.add(asked_cells(rows, table, name), marks, people[:0])
        if self.operators is not None:
            self.operators.add(rows)
        self.rows += len(rows)
        self.unanswered += rows["verdict"].null_count
        self.people += np.bincount(marks, minlength=NOBODY + 1)
        self.counted += len(people)
        self.sampled += len(sampled)
        while self.sampled > SAMPLE:
            self.step *= 2
            self.sampled = -(-self.sampled // 2)
            for column in self.columns.values():
                column.thin()

    def choose_columns(self, rows: Results, table: Table) -> None:
        """Which columns are counted, by the first piece."""
        labels = list(table.labels())
        for name in self.asked:
            if name in labels or name not in MADE:
                ours = our_columns(table, rows) if name not in labels else set()
                check_own(name, rows.column, [label for label in labels if label not in ours])
            if name in labels and name in MADE:
                self.operators = None
                way = f"rename it to count by the {name} of the addresses"
                warn_user(Note(f"{name!r} is a column of yours, and is counted: {way}"))
        ours = our_columns(table, rows) if self.ranks else set()
        self.columns.clear()
        for label in labels:
            if not self.ranks or label in ours or label == rows.column:
                continue
            if labels.count(label) > 1:
                self.left_out[label] = "its name occurs twice"
            else:
                self.columns[label] = ColumnCounts()


def asked_cells(rows: Results, table: Table, name: Hashable) -> Any:
    """The cells of a column that was asked for; it may be made of the addresses."""
    if name in table.labels():
        return table.cells(name)
    return domains_of(keys_of(rows)) if name == "domain" else operators_of(rows)


def check_own(name: Hashable, verified: Hashable, labels: Sequence[Hashable]) -> None:
    """Raise a `ColumnError` if there is no such column to count by, or it is the verified one."""
    if name == verified:
        raise ColumnError(
            f"by={name!r} is the verified column: give another one, 'domain' to count by its domains, or only "
            f"column={name!r} to rank the others"
        )
    if name not in labels:
        raise ColumnError(
            f"by: no column {name!r}{did_you_mean(name, [*labels, *MADE])}; there are {listed(labels)}, and "
            "'domain' and 'operator', which are made of the addresses"
        )
    check_column(name, labels)


def our_columns(table: Table, rows: Results) -> set[Hashable]:
    """The columns of the results, also of other columns that were verified."""
    labels = set(table.labels())
    ours: set[Hashable] = set()
    for label in table.labels():
        prefix = rows.prefix if label == rows.column else None
        if {label_of(label, prefix, "verdict"), label_of(label, prefix, "status")} <= labels:
            names = earlier_columns(Table(table.frame, label), prefix)
            ours |= {label_of(label, prefix, name) for name in names} & labels
    return ours


# --- what a column says -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnFinding:
    """What a column says about `what`."""

    name: Hashable
    says: str
    groups: Groups | None = None
    people: int = 0
    strength: float = float("nan")
    chance: float = float("nan")
    adjusted: float = float("nan")
    worst: str | None = None
    best: str | None = None
    ends: tuple[int, int] = (-1, -1)  # the worst and the best group
    notes: list[str] = field(default_factory=list)

    @property
    def is_found(self) -> bool:
        """Whether its groups differ, and no column before it says the same."""
        return self.says == "differs"


def rank(counts: ListCounts, what: str) -> list[ColumnFinding]:
    """What each column says: first the strongest, then those that say nothing, then those left out."""
    tested: list[ColumnFinding] = []
    others = [ColumnFinding(name, f"{LEFT_OUT}{why}") for name, why in counts.left_out.items()]
    for name, column in counts.columns.items():
        groups = None if column.left_out else column.cut()
        why = column.left_out or reason_to_leave_out(column, groups)
        if groups is None or why:
            others.append(ColumnFinding(name, f"{LEFT_OUT}{why}"))
            continue
        people = people_in(groups.counts)
        bad = people_that(groups.counts, what)
        tested.append(
            ColumnFinding(
                name,
                "nothing",
                groups,
                people=int(people.sum()),
                strength=association(people, bad),
                chance=chance_of(people, bad),
                notes=[f"{shown_name(name)}: {groups.note}"] if groups.note else [],
            )
        )
    adjusted = adjust([finding.chance for finding in tested])
    tested = [
        judge(replace(finding, adjusted=value), what)
        for finding, value in zip(tested, adjusted, strict=True)
    ]
    order = {"differs": 0, "little": 1, "nothing": 2}
    tested.sort(key=lambda finding: (order[finding.says], -finding.strength))
    return [*merge_same(tested), *others]


def reason_to_leave_out(column: ColumnCounts, groups: Groups | None) -> str:
    """Why a column that was counted is not looked at; empty if it is."""
    assert groups is not None
    rows = int(column.counts.sum())
    if len(groups.labels) < 2:
        return "one value" if rows else "no values"
    is_id = column.kind == "numbers" and column.is_whole
    if (is_id or column.kind == "words") and column.distinct >= MOSTLY_DIFFERENT * rows:
        return "nearly every row has a value of its own"
    if column.kind == "words" and column.distinct > rows / 2:
        return "fewer than two rows for each value"
    return ""


def judge(finding: ColumnFinding, what: str) -> ColumnFinding:
    """With what it says, in a sentence for its worst and its best group."""
    assert finding.groups is not None
    if not finding.adjusted <= LEVEL:
        return finding
    people = people_in(finding.groups.counts)
    bad = people_that(finding.groups.counts, what)
    extremes = surprise(people, bad)
    is_named = people >= FEW_PEOPLE
    if np.count_nonzero(is_named) < 2:
        is_named = people > 0
    worst = int(np.where(is_named, extremes, -np.inf).argmax())
    best = int(np.where(is_named, extremes, np.inf).argmin())
    believed = np.nan_to_num(shrink(people, bad))
    if max(believed[worst], -believed[best]) < LEAST_DIFFERENCE:
        return replace(finding, says="little")
    said = [
        sentence(finding.name, finding.groups.labels[at], bad[at], people[at], bad, people, what)
        for at in (worst, best)
    ]
    return replace(finding, says="differs", worst=said[0], best=said[1], ends=(worst, best))


def sentence(
    name: Hashable, label: str, bad: int, people: int, all_bad: Any, all_people: Any, what: str
) -> str:
    """A group in words.

    >>> sentence("lead_source", "Fair", 31, 100, np.array([31, 6]), np.array([100, 100]), "invalid")
    'lead source “Fair”: 31.0% invalid of 100, elsewhere 6.0%'
    """
    others = percent(int(all_bad.sum() - bad), int(all_people.sum() - people))
    share = percent(int(bad), int(people))
    return f"{shown_name(name)} “{label}”: {share} {WHAT[what]} of {people:,}, elsewhere {others}"


def shown_name(name: Hashable) -> str:
    """A column as a sentence names it."""
    text = "/".join(map(str, name)) if isinstance(name, tuple) else str(name)
    return text.replace("_", " ").strip()[:80] or text[:80]


def merge_same(findings: Sequence[ColumnFinding]) -> list[ColumnFinding]:
    """The same, where of two columns that tell the same the weaker one says only that."""
    merged: list[ColumnFinding] = []
    for finding in findings:
        same = None
        if finding.is_found:
            told = (other for other in merged if other.is_found)
            same = next((other for other in told if tells_same(finding, other)), None)
        if same is not None:
            finding = replace(finding, says=f"{SAME_AS}{shown_name(same.name)}")  # noqa: PLW2901
        merged.append(finding)
    return merged


def tells_same(finding: ColumnFinding, other: ColumnFinding) -> bool:
    """Whether one of two columns nearly decides the other (Theil's uncertainty coefficient, 1970)."""
    assert finding.groups is not None
    assert other.groups is not None
    a, b = finding.groups.sample, other.groups.sample
    whole = len(a)
    if not whole:
        return False
    joint = entropy(np.unique(a * (b.max() + 1) + b, return_counts=True)[1])
    counts = [np.unique(codes, return_counts=True)[1] for codes in (a, b)]
    entropies = [entropy(each) for each in counts]
    shared = sum(entropies) - joint
    # What two columns seem to share by chance (Miller 1955).
    by_chance = (len(counts[0]) - 1) * (len(counts[1]) - 1) / (2 * whole)
    room = min(entropies) - by_chance
    return room > 0 and (shared - by_chance) / room >= SAME


def entropy(counts: npt.NDArray[np.int64]) -> float:
    """The entropy of a distribution, in nats."""
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())


# --- tables -----------------------------------------------------------------------------------------------------------


def group_table(counts: ListCounts, what: str, rows: Results | None = None) -> GroupTable:
    """The table of the column that was asked for; of two that are crossed, which needs the rows."""
    names = [*counts.asked]
    columns = [column.cut() for column in counts.asked.values()]
    groups = columns[0]
    if len(names) == 2:
        assert rows is not None
        groups = cross(rows, counts, columns)
    table = GroupTable.of(counts, groups, names, what)
    if len(names) == 1 and counts.operators is not None:
        table = with_operators(table, counts.operators)
    return table


def cross(rows: Results, counts: ListCounts, columns: Sequence[Groups]) -> Groups:
    """The groups of two columns, crossed; only those that have rows."""
    marks = mark_people(rows, SeenAddresses(), counts.policy, counts.bounced)
    codes = []
    for (name, column), groups in zip(counts.asked.items(), columns, strict=True):
        cells = to_array(asked_cells(rows, rows.data, name))
        codes.append(groups.find(read_column(cells, column.kind)))
    width = len(columns[1].labels)
    both, distinct = pd.factorize(codes[0] * width + codes[1])
    cells = np.bincount(both * (NOBODY + 1) + marks, minlength=len(distinct) * (NOBODY + 1))
    labels: list[Any] = [
        (columns[0].labels[code // width], columns[1].labels[code % width])
        for code in distinct.tolist()
    ]
    notes = [groups.note for groups in columns if groups.note]
    return replace(
        columns[0], labels=labels, counts=cells.reshape(-1, NOBODY + 1), note="; ".join(notes)
    )


def with_operators(table: GroupTable, operators: OperatorCounts) -> GroupTable:
    """With how many addresses of each operator got a clear answer, and why not more."""
    more = operators.table(len(operators.by_name))[list(OPERATOR_COLUMNS)].reindex(table.index)
    numbers = [name for name in OPERATOR_COLUMNS if name != "note"]
    more = more.astype(dict.fromkeys(numbers, "Int64"))
    more["note"] = more["note"].astype(object).where(more["note"].notna(), None)
    joined = GroupTable(pd.concat([table, more], axis=1))
    joined.attrs = table.attrs
    return joined


def group_order(groups: Groups, what: str) -> list[int]:
    """The groups, first those with the most bad people above the average; ties by size, then by name."""
    people = people_in(groups.counts)
    bad = people_that(groups.counts, what)
    above = bad - people * (bad.sum() / max(people.sum(), 1))
    return sorted(
        range(len(people)),
        key=lambda at: (-above[at], -people[at], str(groups.labels[at])),
    )


class GroupTable(CountTable):
    """The groups of a column, first those with the most bad people above the average."""

    @classmethod
    def of(
        cls, counts: ListCounts, groups: Groups, names: Sequence[Hashable], what: str
    ) -> GroupTable:
        """The table of some groups."""
        people = people_in(groups.counts)
        bad = people_that(groups.counts, what)
        columns: dict[str, Any] = {"rows": groups.counts.sum(axis=1), "people": people}
        for name in dict.fromkeys((*SHARES, what)):
            hits = people_that(groups.counts, name)
            low, high = wilson_intervals(hits, people)
            columns[name] = hits
            columns[f"{name}_share"] = hits / np.where(people > 0, people, np.nan)
            columns[f"{name}_low"] = low
            columns[f"{name}_high"] = high
        columns["elsewhere"] = elsewhere(people, bad)
        columns["difference"] = shrink(people, bad)
        columns["above"] = bad - people * (bad.sum() / max(people.sum(), 1))
        order = group_order(groups, what)
        titles = [str_of(name) for name in names]
        if len(names) == 2:
            index = pd.MultiIndex.from_tuples(groups.labels, names=titles)
        else:
            index = pd.Index(groups.labels, dtype=object, name=titles[0])
        table = cls(pd.DataFrame(columns, index=index).iloc[order])
        notes = [f"{shown_name(names[0])}: {groups.note}"] if groups.note else []
        table.attrs["breakdown"] = {"what": what, **figures_of(counts, what), "notes": notes}
        return table

    def __repr__(self) -> str:
        """The first groups, for a terminal."""
        return render_groups(self)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """The first groups as HTML; every text is escaped."""
        facts = self.attrs["breakdown"]
        what = facts["what"]
        largest = float(np.nanmax(self[f"{what}_high"].to_numpy(), initial=0.01))
        heads = [*map(str, self.index.names), "rows", "people", WHAT[what], "", *HEADS]
        lines = []
        for label, row in zip(self.index[:SHOWN_GROUPS], records_of(self), strict=False):
            labels = label if isinstance(label, tuple) else (label,)
            texts = [f"<td>{html.escape(show_directions(str(each))[:100])}</td>" for each in labels]
            picture = interval_bar(
                *(row[f"{what}_{end}"] for end in ("share", "low", "high")),
                row["elsewhere"],
                largest,
            )
            texts += [f'<td class="mv-number">{each}</td>' for each in figures_of_group(row, what)]
            texts.insert(len(labels) + 3, f"<td>{picture}</td>")
            lines.append(f"<tr>{''.join(texts)}</tr>")
        return notebook(
            f"<p>{html.escape(headline(facts))}</p>{html_table(heads, lines)}"
            f"{html_notes(self, SHOWN_GROUPS, 'group')}"
        )


class RankTable(CountTable):
    """A line for each column: whether its groups differ, and how much."""

    @classmethod
    def of(cls, findings: Sequence[ColumnFinding], counts: ListCounts, what: str) -> RankTable:
        """The table of what was found."""
        names = [str_of(finding.name) for finding in findings]
        columns = {
            "says": pd.Series([finding.says for finding in findings], dtype=object),
            "groups": pd.Series(
                [0 if each.groups is None else len(each.groups.labels) for each in findings],
                dtype="int64",
            ),
            "people": pd.Series([finding.people for finding in findings], dtype="int64"),
        }
        for name in ("strength", "chance", "adjusted"):
            columns[name] = pd.Series([getattr(each, name) for each in findings], dtype="float64")
        for name in ("worst", "best"):
            columns[name] = pd.Series([getattr(each, name) for each in findings], dtype=object)
        table = cls(pd.DataFrame(columns).set_index(pd.Index(names, dtype=object, name="column")))
        notes = [note for finding in findings for note in finding.notes]
        facts = {"what": what, **figures_of(counts, what), "notes": notes}
        table.attrs["breakdown"] = facts
        return table

    def __repr__(self) -> str:
        """What was found, in sentences for a terminal."""
        lines = [headline(self.attrs["breakdown"]), *found_sentences(self), *same_sentences(self)]
        lines += [*other_sentences(self), *notes_of_table(self)]
        return "\n".join(printable_text(line, 1_000) for line in lines)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """The same as HTML; every text is escaped."""
        facts = self.attrs["breakdown"]
        found = "".join(f"<li>{escaped(line)}</li>" for line in found_sentences(self))
        rest = "".join(
            f'<p class="mv-soft">{escaped(line)}</p>'
            for line in [*same_sentences(self), *other_sentences(self), *notes_of_table(self)]
        )
        listed_lines = f"<ul>{found}</ul>" if found else ""
        return notebook(f"<p>{escaped(headline(facts))}</p>{listed_lines}{rest}")


def figures_of(counts: ListCounts, what: str) -> dict[str, Any]:
    """The whole list in figures."""
    people = counts.people[None, :]
    return {
        "rows": counts.rows,
        "people": int(people_in(people)[0]),
        "bad": int(people_that(people, what)[0]),
        "unanswered": counts.unanswered,
    }


def str_of(name: Hashable) -> str:
    """The label of a column as text."""
    return "/".join(map(str, name)) if isinstance(name, tuple) else str(name)


# --- words ------------------------------------------------------------------------------------------------------------


def headline(facts: Mapping[str, Any]) -> str:
    """How many people there are, and how many of them are bad."""
    share = percent(facts["bad"], facts["people"])
    return f"{count_of(facts['people'], 'person', 'people')}, {share} {WHAT[facts['what']]}"


def found_sentences(table: pd.DataFrame) -> list[str]:
    """The columns that differ, each with its worst and its best group."""
    found = table[table["says"] == "differs"]
    return [line for lines in zip(found["worst"], found["best"], strict=True) for line in lines]


def same_sentences(table: pd.DataFrame) -> list[str]:
    """The columns that tell the same as another one."""
    is_same = table["says"].str.startswith(SAME_AS)
    return [
        f"{shown_name(name)} and {says.removeprefix(SAME_AS)} say the same"
        for name, says in table["says"][is_same].items()
    ]


def other_sentences(table: pd.DataFrame) -> list[str]:
    """The columns that say nothing, and those that were not looked at, with the reason."""
    by_says: dict[str, list[str]] = {}
    for name, says in table["says"].items():
        by_says.setdefault(says, []).append(str(name))
    lines = []
    if "differs" not in by_says:
        lines.append("no column says where they come from")
    if "little" in by_says:
        lines.append(f"differ by less than a percentage point: {names_of(by_says['little'])}")
    if "nothing" in by_says:
        lines.append(f"say nothing: {names_of(by_says['nothing'])}")
    left_out = [
        f"{names_of(names)} ({says.removeprefix(LEFT_OUT)})"
        for says, names in by_says.items()
        if says.startswith(LEFT_OUT)
    ]
    left_out.append("the verified column and the result columns")
    lines.append(f"left out: {'; '.join(left_out)}")
    return lines


def names_of(names: Sequence[str]) -> str:
    """Column names in a row."""
    shown = ", ".join(name[:80] for name in names[:SHOWN_COLUMNS])
    more = len(names) - SHOWN_COLUMNS
    return f"{shown} and {more:,} more" if more > 0 else shown


def notes_of_table(table: pd.DataFrame) -> list[str]:
    """What must be known about the figures."""
    facts = table.attrs["breakdown"]
    notes = list(facts["notes"])
    repeats = facts["rows"] - facts["people"] - facts["unanswered"]
    if facts["what"] == "bounced":
        notes.append("all people with an address count as mailed")
    else:
        if facts["unanswered"]:
            rows = count_of(facts["unanswered"], "row")
            notes.append(
                f"{rows} without a verdict: no address, or not checked; counted as rows only"
            )
        if repeats > 0:
            notes.append(f"{count_of(repeats, 'row')} of a person in an earlier row: counted once")
    return notes


def render_groups(table: pd.DataFrame) -> str:
    """The table of groups for a terminal."""
    facts = table.attrs["breakdown"]
    what = facts["what"]
    labels = [
        " / ".join(map(str, label)) if isinstance(label, tuple) else str(label)
        for label in table.index[:SHOWN_GROUPS]
    ]
    shown = [printable_text(label, LONGEST_LABEL) for label in labels]
    title = " / ".join(map(str, table.index.names))[:LONGEST_LABEL]
    width = max([len(title), *map(len, shown)])
    heads = ("rows", "people", WHAT[what], *HEADS)
    sizes = (9, 9, max(8, len(WHAT[what])), 16, 9, 8, 8, 13)
    cells = [" ".join(f"{head:>{size}}" for head, size in zip(heads, sizes, strict=True))]
    cells += [
        " ".join(
            f"{text:>{size}}" for text, size in zip(figures_of_group(row, what), sizes, strict=True)
        )
        for row in records_of(table)[:SHOWN_GROUPS]
    ]
    lines = [headline(facts)]
    lines += [
        f"{label:<{width}} {texts}" for label, texts in zip([title, *shown], cells, strict=True)
    ]
    if len(table) > SHOWN_GROUPS:
        lines.append(f"and {count_of(len(table) - SHOWN_GROUPS, 'more group')}")
    return "\n".join([*lines, *notes_of_table(table)])


def records_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The lines of a table by the names of its columns."""
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def figures_of_group(row: Mapping[str, Any], what: str) -> list[str]:
    """The figures of a group as texts: rows, people, share, and what `HEADS` names."""
    people = row["people"]
    if not people:
        return [f"{row['rows']:,}", "0", *[""] * (1 + len(HEADS))]
    interval = f"{100 * row[f'{what}_low']:.1f} to {row[f'{what}_high']:.1%}"
    others = "" if pd.isna(row["elsewhere"]) else f"{row['elsewhere']:.1%}"
    above = round(row["above"])
    return [
        f"{row['rows']:,}",
        f"{people:,}",
        percent(row[what], people),
        interval,
        others,
        percent(row["unknown"], people),
        percent(row["sendable"], people),
        f"{above:+,}" if above else "0",
    ]


def escaped(text: str) -> str:
    return html.escape(show_directions(text[:1_000]))


def html_table(heads: Iterable[str], lines: Iterable[str]) -> str:
    """A table whose lines are HTML."""
    head = "".join(f"<th>{html.escape(text[:100])}</th>" for text in heads)
    body = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    return f'<div style="overflow-x:auto;white-space:nowrap">{body}</div>'


def html_notes(table: pd.DataFrame, shown: int, noun: str) -> str:
    """What is not shown, and what must be known."""
    notes = notes_of_table(table)
    if len(table) > shown:
        notes.insert(0, f"and {count_of(len(table) - shown, f'more {noun}')}")
    return "".join(f'<p class="mv-soft">{escaped(note)}</p>' for note in notes)
