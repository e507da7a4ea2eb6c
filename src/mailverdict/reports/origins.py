"""What the columns of a list say about its bad addresses: which differ, and where.

`ListCounts` counts the people of a list by all its columns, in pieces that add up; `rank` makes a
`ColumnFinding` of each column::

    column       says                     worst
    lead_source  differs                  lead source “Trade fair”: 31.0% invalid of 412, ...
    campaign     the same as lead source
    country      nothing
    contact_id   left out: nearly every row has a value of its own
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ColumnError
from ..frames.policy import Policy
from ..frames.results import Results
from ..frames.seen_addresses import SeenAddresses
from ..model.arrow import map_columns
from ..model.words import percent
from ..table.columns import check_column, did_you_mean, label_of, listed
from ..table.notices import Note, warn_user
from ..table.overwrite import read_existing
from ..table.table import Table
from .by_operator import OperatorCounts, operators_of
from .counts import domains_of, keys_of
from .differences import adjust, association, chance_of, shrink, surprise
from .groups import NOBODY, SAMPLE, WIDTH, ColumnCounts, Groups, mark_people

# What is bad, and how it is said of people.
WHAT = {
    "invalid": "invalid",
    "not_sendable": "not sendable",
    "disposable": "disposable",
    "bounced": "bounced",
}
MADE = ("domain", "operator")  # columns that are made of the addresses
# The false discovery rate of columns that are said to differ. Not 5 %: of simulated lists without
# any effect a little more than this name a column, since the chance of a column is an
# approximation.
LEVEL = 0.04
LEAST_DIFFERENCE = 0.01  # of two shares, below which a column says little, however sure it is
FEW_PEOPLE = 10  # a smaller group is not named in a sentence, if there are two others
SAME = 0.9  # of what a column says, the share that another one says, too
OWN_VALUES = 0.9  # of the rows have a value of their own: an id, or free text
LONGEST_NAME = 80  # characters of a column, or of a group, in a sentence
# What a column says.
DIFFERS = "differs"
LITTLE = "little"
NOTHING = "nothing"
SAME_AS = "the same as "
LEFT_OUT = "left out: "


# --- counts ---------------------------------------------------------------------------------------


class ListCounts:
    """The people of a list by the values of its columns, in pieces that add up.

    `asked` are columns to count by, whatever they hold. With `ranks` all columns of the user's are
    counted that may have few values. `bounced` are mailboxes that do not exist, by reports.
    """

    def __init__(
        self,
        policy: Policy,
        bounced: Sequence[str] | None = None,
        asked: Sequence[Hashable] = (),
        *,
        ranks: bool = True,
    ) -> None:
        self.policy = policy
        self.bounced = bounced
        self.asked = {name: ColumnCounts(is_asked=True) for name in asked}
        self.operators = OperatorCounts() if "operator" in asked else None
        self.ranks = ranks
        self.columns: dict[Hashable, ColumnCounts] = {}
        self.left_out: dict[Hashable, str] = {}  # columns that are not counted, and why
        self.seen = SeenAddresses()
        self.rows = 0
        self.unanswered = 0  # rows without a verdict
        self.people: npt.NDArray[np.int64] = np.zeros(WIDTH, np.int64)  # rows by mark
        self.counted = 0  # people
        self.step = 1  # each person whose number it divides is one by whom columns are compared
        self.sampled = 0  # how many these are

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
        self.people += np.bincount(marks, minlength=WIDTH)
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
            if name in labels and name in MADE:
                way = f"rename it to count by the {name} of the addresses"
                warn_user(Note(f"{name!r} is a column of yours, and is counted: {way}"))
                self.operators = None
            elif name not in MADE:
                check_asked(name, rows, table)
        self.columns.clear()
        if not self.ranks:
            return
        ours = our_columns(table, rows)
        for label in labels:
            if label in ours or label == rows.column:
                continue
            if labels.count(label) > 1:
                self.left_out[label] = "its name occurs twice"
            else:
                self.columns[label] = ColumnCounts()


def asked_cells(rows: Results, table: Table, name: Hashable) -> Any:
    """The cells of a column that was asked for; it may be made of the addresses."""
    if name in table.labels():
        return table.cells(name)
    if name == "domain":
        return domains_of(keys_of(rows))
    return operators_of(rows)


def check_asked(name: Hashable, rows: Results, table: Table) -> None:
    """Raise a `ColumnError` if there is no such column to count by, or it is the verified one."""
    labels = list(table.labels())
    if name == rows.column:
        raise ColumnError(
            f"by={name!r} is the verified column: give another one, 'domain' to count by its "
            f"domains, or only column={name!r} to rank the others"
        )
    if name in labels:
        check_column(name, labels)
        return
    if isinstance(name, tuple) and set(name) <= {*labels, *MADE}:
        raise ColumnError(f"by: no column {name!r}: give a list to cross two, by={[*name]!r}")
    ours = our_columns(table, rows)
    theirs = [label for label in labels if label not in ours and label != rows.column]
    raise ColumnError(
        f"by: no column {name!r}{did_you_mean(name, [*theirs, *MADE])}; there are "
        f"{listed([*theirs, *MADE])}, of which the last two are made of the addresses"
    )


def our_columns(table: Table, rows: Results) -> set[Hashable]:
    """The columns of the results, also of other columns that were verified."""
    labels = set(table.labels())
    ours: set[Hashable] = set()
    for label in table.labels():
        prefix = rows.prefix if label == rows.column else None
        verdict = label_of(label, prefix, "verdict")
        status = label_of(label, prefix, "status")
        if verdict in labels and status in labels:
            for name in read_existing(Table(table.frame, label), prefix).earlier:
                ours.add(label_of(label, prefix, name))
    return ours & labels


# --- what a column says ---------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnFinding:
    """What a column says about bad people."""

    name: Hashable
    says: str  # differs, little, nothing, the same as another column, or left out with the reason
    groups: Groups | None = None
    people: int = 0
    strength: float = float("nan")
    chance: float = float("nan")
    adjusted: float = float("nan")  # the chance, corrected for having looked at many columns
    worst: str | None = None
    best: str | None = None
    ends: tuple[int, int] = (-1, -1)  # the worst and the best group

    @property
    def is_found(self) -> bool:
        """Whether its groups differ, and no stronger column tells the same."""
        return self.says == DIFFERS

    @property
    def note(self) -> str:
        """How its values were read, where that was a guess."""
        if self.groups is None or not self.groups.note:
            return ""
        return f"{shown_name(self.name)}: {self.groups.note}"


def rank(counts: ListCounts, what: str) -> list[ColumnFinding]:
    """The findings: the strongest first, then what says nothing, then what was left out."""
    tested: list[ColumnFinding] = []
    reasons = dict(counts.left_out)
    for name, column in counts.columns.items():
        groups = column.cut()
        why = column.left_out or reason_to_leave_out(column, groups)
        if why:
            reasons[name] = why
            continue
        people = groups.people
        bad = groups.people_that(what)
        finding = ColumnFinding(
            name,
            NOTHING,
            groups,
            people=int(people.sum()),
            strength=association(people, bad),
            chance=chance_of(people, bad),
        )
        tested.append(finding)
    adjusted = adjust([finding.chance for finding in tested])
    judged = []
    for finding, chance in zip(tested, adjusted, strict=True):
        judged.append(judge(replace(finding, adjusted=chance), what))
    order = (DIFFERS, LITTLE, NOTHING)
    judged.sort(key=lambda finding: (order.index(finding.says), -finding.strength))
    left_out = [ColumnFinding(name, f"{LEFT_OUT}{why}") for name, why in reasons.items()]
    return [*merge_same(judged), *left_out]


def reason_to_leave_out(column: ColumnCounts, groups: Groups) -> str:
    """Why a column with few enough values is not looked at; empty if it is."""
    filled = int(column.counts.sum())
    if not filled and len(groups.labels) < 2:
        return "no values"
    if len(groups.labels) < 2:
        return "one value"
    is_id = column.kind == "words" or (column.kind == "numbers" and column.is_whole)
    if is_id and column.distinct >= OWN_VALUES * filled:
        return "nearly every row has a value of its own"
    if column.kind == "words" and column.distinct > filled / 2:
        return "fewer than two rows for each value"
    return ""


def judge(finding: ColumnFinding, what: str) -> ColumnFinding:
    """The finding with what it says, in a sentence each for its worst and its best group."""
    groups = finding.groups
    if groups is None or not finding.adjusted <= LEVEL:
        return finding
    people = groups.people
    bad = groups.people_that(what)
    is_named = people >= FEW_PEOPLE
    if np.count_nonzero(is_named) < 2:
        is_named = people > 0
    named = np.flatnonzero(is_named)
    extremes = surprise(people, bad)[named]
    worst = int(named[extremes.argmax()])
    best = int(named[extremes.argmin()])
    believed = np.nan_to_num(shrink(people, bad))
    if max(believed[worst], -believed[best]) < LEAST_DIFFERENCE:
        return replace(finding, says=LITTLE)
    return replace(
        finding,
        says=DIFFERS,
        worst=sentence(finding.name, groups, worst, what),
        best=sentence(finding.name, groups, best, what),
        ends=(worst, best),
    )


def sentence(name: Hashable, groups: Groups, group: int, what: str) -> str:
    """A group of a column in words."""
    people = groups.people.tolist()
    bad = groups.people_that(what).tolist()
    here = percent(bad[group], people[group])
    elsewhere = percent(sum(bad) - bad[group], sum(people) - people[group])
    label = groups.labels[group]
    if len(label) > LONGEST_NAME:
        label = f"{label[:LONGEST_NAME]}…"
    share = f"{here} {WHAT[what]} of {people[group]:,}, elsewhere {elsewhere}"
    return f"{shown_name(name)} “{label}”: {share}"


def shown_name(name: Hashable) -> str:
    """A column as a sentence names it.

    >>> shown_name("lead_source"), shown_name(("work", "owner"))
    ('lead source', 'work/owner')
    """
    text = label_text(name)
    words = text.replace("_", " ").strip() or text
    return words[:LONGEST_NAME]


def label_text(name: Hashable) -> str:
    if isinstance(name, tuple):
        return "/".join(map(str, name))
    return str(name)


def merge_same(findings: Sequence[ColumnFinding]) -> list[ColumnFinding]:
    """The findings, strongest first; one that repeats an earlier one says only that."""
    merged: list[ColumnFinding] = []
    for finding in findings:
        says = finding.says
        if finding.is_found:
            for other in merged:
                if other.is_found and tells_same(finding, other):
                    says = f"{SAME_AS}{shown_name(other.name)}"
                    break
        merged.append(replace(finding, says=says))
    return merged


def tells_same(finding: ColumnFinding, other: ColumnFinding) -> bool:
    """Whether one of two columns nearly decides the other (uncertainty coefficient, Theil 1970)."""
    assert finding.groups is not None
    assert other.groups is not None
    groups = finding.groups.sample
    groups_of_other = other.groups.sample
    if not len(groups):
        return False
    pairs = groups * (groups_of_other.max() + 1) + groups_of_other
    entropy, values = entropy_of(groups)
    entropy_of_other, values_of_other = entropy_of(groups_of_other)
    shared = entropy + entropy_of_other - entropy_of(pairs)[0]
    # What two columns seem to share by chance (Miller 1955).
    by_chance = (values - 1) * (values_of_other - 1) / (2 * len(groups))
    room = min(entropy, entropy_of_other) - by_chance
    return room > 0 and (shared - by_chance) / room >= SAME


def entropy_of(codes: npt.NDArray[np.int64]) -> tuple[float, int]:
    """The entropy of some codes, in nats, and how many different ones there are."""
    _, counts = np.unique(codes, return_counts=True)
    shares = counts / counts.sum()
    entropy = -(shares * np.log(shares)).sum()
    return float(entropy), len(counts)
