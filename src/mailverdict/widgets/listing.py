"""The verified rows of an audit: actions, facets, search, sorting and pages.

All rows stay in Python.

Rows with the same facts are of one kind (`frames.alike.Alike`): what a policy does with them, and
most of what they are found by, is worked out for each kind. So a row is three numbers: its kind,
its domain and its person, which is the mailbox of its address::

    cell                    kind  domain  person
    ada@example.org            0       0       0    kinds.alike[0]: valid, send
    Ada <ada@example.org>      1       0       0    kinds.alike[1]: valid, repaired, drop: a repeat
    bo@gmial.com               2       1       1    kinds.alike[2]: valid, review: a likely typo
    (empty)                    3      -1      -1    kinds.alike[3]: missing, unchecked

`AuditedRows` has the rows as they were verified, `RowKinds` their kinds, and `Listing` what a
policy and a person do with them and how they are looked at. A frame is made only of the rows that
are shown or saved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..frames.alike import DROPS_DUPLICATES, Alike, group_alike
from ..frames.policy import (
    Policy,
    apply_policy,
    decide,
    describe_repeats,
    find_policy,
    read_decided,
)
from ..frames.reading import Reading
from ..frames.results import BUCKETS, WAITING, Results
from ..mailings.cells import times_of_waves
from ..model.address import address_keys, lower_domain
from ..model.arrow import one_array, texts_where, to_bools
from ..model.words import (
    ACTIONS,
    DECISIONS,
    REASON_MEANING,
    REPAIR_LABELS,
    SEVERAL_ADDRESSES,
    Reason,
    Status,
    Verdict,
    reason_label,
)
from ..repair.repair import ACCEPTED
from ..reports.counts import TOP_DECIDED, Counts, domains_of, facts_of, keys_of, people_of
from ..reports.facts import most_common, reason_of
from ..reports.groups import ColumnCounts, read_column, values_of_cells
from ..reports.wording import REASONLESS
from ..runs.retry import ASK_AGAIN, ERROR_MAX_AGE
from ..table.cells import as_text, cut_long, is_text, strip_texts, to_array
from ..table.columns import (
    COLUMNS,
    DECISION_COLUMNS,
    REPAIR_COLUMNS,
    WAVE_COLUMNS,
    Column,
    label_of,
)
from ..table.overwrite import name_columns
from ..table.table import Table
from .choices import ByPerson, Choices, Pair
from .source import printable_label, readable, short_text

PAGE_ROWS = 50
OTHER_COLUMNS = 8  # of the user's own columns that are shown and searched; a file may have hundreds
LONGEST_CELL = 160
MAX_DOMAINS = 200
Rows = npt.NDArray[np.signedinteger[Any]]
Codes = npt.NDArray[np.signedinteger[Any]]
Flags = npt.NDArray[np.bool_]
# Columns that the audit itself adds to a list.
NOTED = ("suppressed", "identity", "duplicate_of", "copies", "part", "wave", "wave_at")
NOTES = (*NOTED, *(column.name for column in DECISION_COLUMNS))
# The core, and what a policy looks at besides.
CORE = tuple(c for c in COLUMNS if c.in_core or c.name == "disposable_suspected")
# What decides about a row and is counted in a report.
COUNTED = (
    *(c for c in CORE if c.name not in ("details", "reasons", "error_message")),
    *(c for c in COLUMNS if c.name in ("validation_type", "checked_at", "source")),
)
UNCLEAR = (Verdict.UNKNOWN, Status.ERROR)  # buckets of rows that are asked about again
WORDS = (None, *DECISIONS, WAITING)  # what is decided about a row, by code


# --- kinds of rows --------------------------------------------------------------------------------


def lines_of(kind: Alike) -> Collection[str]:
    """The line of the summary that a kind of rows is counted in."""
    return (kind.line,)


def actions_of(kind: Alike) -> Collection[str]:
    """What is done with a kind of rows."""
    return (str(kind.action),)


def reasons_of(kind: Alike) -> Collection[str]:
    """The reason of a kind of rows, if it has one."""
    reason = reason_of(kind)
    if reason is None:
        return ()
    return (reason[1],)


def repairs_of(kind: Alike) -> Collection[str]:
    """The repairs of a kind of rows."""
    if not kind.change:
        return ()
    return kind.change.split(";")


def is_valid(kind: Alike) -> bool:
    return kind.bucket == Verdict.VALID


def is_invalid(kind: Alike) -> bool:
    return kind.bucket == Verdict.INVALID


def is_sent(kind: Alike) -> bool:
    return kind.action == "send"


def is_repeated(kind: Alike) -> bool:
    """Whether rows of this kind are removed since they repeat another one."""
    return kind.cause == "duplicate"


def is_unclear(kind: Alike) -> bool:
    """Whether rows of this kind are asked about again; not those with several addresses."""
    return kind.bucket in UNCLEAR and kind.why != SEVERAL_ADDRESSES


def is_left(kind: Alike) -> bool:
    """Whether rows of this kind are still to be checked.

    Not those that are removed whatever a check finds.
    """
    if kind.suppressed or kind.is_repeated or kind.decision == "remove":
        return False
    return kind.bucket == Status.PENDING


def has_correction(kind: Alike) -> bool:
    """Whether the verdict of rows of this kind is that of a suggestion."""
    return ACCEPTED in repairs_of(kind)


@dataclass(frozen=True, eq=False)
class RowKinds:
    """Rows by kind: what the rows of each kind have in common, and the kind of each row."""

    alike: list[Alike]
    codes: Codes

    def of(self, row: int) -> Alike:
        alike: Alike = self.alike[self.codes[row]]
        return alike

    def that(self, is_such: Callable[[Alike], Any]) -> Flags:
        """Which rows are of such a kind."""
        return np.array(list(map(is_such, self.alike)), np.bool_)[self.codes]

    def sizes(self, rows: Flags | slice = slice(None)) -> list[int]:
        """How many rows of each kind there are, in all or among some."""
        counts: list[int] = np.bincount(self.codes[rows], minlength=len(self.alike)).tolist()
        return counts

    def with_decisions(self, decision: Codes) -> RowKinds:
        """Rows by what they had in common and by what is decided about them."""
        width = len(WORDS)
        combined = self.codes.astype(np.int64) * width + decision
        size = len(self.alike) * width
        present = np.flatnonzero(np.bincount(combined, minlength=size))
        place = np.zeros(size, np.int32)
        place[present] = np.arange(len(present))
        alike = []
        for code in present.tolist():
            kind, word = divmod(code, width)
            alike.append(self.alike[kind]._replace(decision=WORDS[word]))
        return RowKinds(alike, place[combined])


class Facet(NamedTuple):
    """What rows are found by: the values of a kind of rows, and the order in which they are shown.

    Without an order the values of the most rows come first.
    """

    values_of: Callable[[Alike], Collection[str]]
    order: Sequence[str] = ()


FACET_VALUES: Mapping[str, Facet] = {  # but for domains
    "verdict": Facet(lines_of, (*BUCKETS, SEVERAL_ADDRESSES)),
    "action": Facet(actions_of, ACTIONS),
    "reason": Facet(reasons_of),
    "repaired": Facet(repairs_of, tuple(REPAIR_LABELS)),
}
FACETS = ("verdict", "action", "reason", "domain", "repaired")
FILTERS = (*FACETS, "group")  # the groups of a column of the user's, which are shown elsewhere


# --- rows -----------------------------------------------------------------------------------------


class AuditedRows:
    """The rows of a run: the user's frame, and what its result columns are made from."""

    def __init__(
        self, frame: pd.DataFrame, column: Hashable, table: pa.Table, note: dict[str, Any]
    ) -> None:
        self.frame = frame
        self.column = column
        self.note = note
        self.table = table  # a row per row of the frame
        self.decision: Codes = np.zeros(len(table), np.int8)  # of each row, of `WORDS`
        # Of a mailing in which each row was mailed; 0 for none.
        self.wave: Codes = np.zeros(len(table), np.int64)
        self.wave_times: Mapping[int, datetime] = {}
        # The verdict is that of a suggestion.
        self.is_corrected: Flags = np.zeros(len(table), np.bool_)

    @classmethod
    def of_run(cls, frame: Reading, unique: pa.Table, *, is_merged: bool = False) -> AuditedRows:
        """The rows of a run, from its table of distinct addresses.

        With `is_merged`, duplicates were looked for.
        """
        data = frame.tables[0]
        table = frame.join(unique)
        # Without it the columns about duplicates may be of an earlier file, which may have had
        # other rows.
        note = {**frame.note, DROPS_DUPLICATES: is_merged}
        return cls(data.frame, data.column, table.unify_dictionaries().combine_chunks(), note)

    def __len__(self) -> int:
        return len(self.table)

    def to_frame(
        self, rows: Rows | None = None, columns: Sequence[Column] = COLUMNS
    ) -> pd.DataFrame:
        """The user's frame with result columns: all rows, or some.

        With decisions and waves, if there are any.
        """
        frame = self.frame
        table = self.table
        decision = self.decision
        is_corrected = self.is_corrected
        wave = self.wave
        if rows is not None:
            frame = frame.take(rows)
            table = table.take(pa.array(rows))
            decision = decision[rows]
            is_corrected = is_corrected[rows]
            wave = wave[rows]
        wanted = [*columns, *REPAIR_COLUMNS]
        if self.has_decisions:
            table = with_decisions(table, decision, is_corrected)
            wanted += DECISION_COLUMNS
        if self.has_waves:
            table = table.append_column("wave", pa.array(wave, mask=wave == 0))
            table = table.append_column("wave_at", times_of_waves(wave, self.wave_times))
            wanted += WAVE_COLUMNS
        data = Table(frame, self.column)
        labels = name_columns(data, None, wanted)
        out: pd.DataFrame = data.attach(table, labels, wanted, self.note)
        return out

    @property
    def has_decisions(self) -> bool:
        """Whether anything is decided, also by columns of an earlier file, which are replaced."""
        if self.decision.any():
            return True
        return any(self.has_column(column.name) for column in DECISION_COLUMNS)

    @property
    def has_waves(self) -> bool:
        """Whether anybody was mailed, also by a column of an earlier file, which is replaced."""
        return bool(self.wave.any()) or self.has_column("wave")

    @property
    def clean(self) -> pa.ChunkedArray:
        """The address of each row, repaired."""
        return self.table["clean"]

    def cells(self, at: int) -> pd.Series[Any]:
        """A column of the user's frame, by its position."""
        cells: pd.Series[Any] = self.frame.iloc[:, at]
        return cells

    def label(self, name: str) -> Any:
        """The name of a result column."""
        return label_of(self.column, None, name)

    def has_column(self, name: str) -> bool:
        """Whether the user's frame has a result column, of an earlier file."""
        return self.label(name) in self.frame.columns

    def decided(self, rows: Rows | None = None, columns: Sequence[Column] = CORE) -> Results:
        """All rows, or some, with what a person decided, as a policy reads them."""
        return read_decided(self.to_frame(rows, columns), self.column, None)

    def results(self, more: Collection[str] = ()) -> Results:
        """What decides about the rows and is counted, and `more` columns by name.

        What a person decided is left out.
        """
        emails = to_array(Table(self.frame, self.column).values())
        cells = Table(pa.table({"email": emails}), "email")
        columns = [*COUNTED, *REPAIR_COLUMNS]
        columns += [column for column in COLUMNS if column.name in more]
        names = [f"email_{column.name}" for column in columns]
        table = cells.attach(self.table, names, columns, self.note)
        if self.has_column("suppressed"):
            suppressed = to_array(self.frame[self.label("suppressed")])
            table = table.append_column("email_suppressed", suppressed)
        if self.has_column("duplicate_of"):
            duplicate_of = self.frame[self.label("duplicate_of")]
            is_there = duplicate_of.notna().to_numpy(np.bool_)
            flags = pa.array(is_there, mask=~is_there)
            table = table.append_column("email_duplicate_of", flags)
        return Results(table, "email", None)


def with_decisions(table: pa.Table, decision: Codes, is_corrected: Flags) -> pa.Table:
    """With what is decided about each row, and the suggestion if that is what is decided."""
    is_waiting = pa.array(decision == WORDS.index(WAITING))
    suggestion = texts_where(is_waiting, table["suggestion"].cast(pa.string()))
    address = pc.if_else(pa.array(is_corrected), table["clean"], suggestion)
    words = pa.array([*WORDS[:-1], "suggestion"])
    table = table.append_column("decision", words.take(pa.array(decision)))
    return table.append_column("decided_address", address)


class Listing:
    """Verified rows with what a policy and a person do with each.

    They are in an order, and narrowed down by facets and words.
    """

    def __init__(self, rows: AuditedRows, policy: Policy | str, choices: Choices) -> None:
        self.rows = rows
        self.column = rows.column
        self.policy = find_policy(policy)
        results = rows.results()
        keys = keys_of(results)
        self.whole = Counts(self.policy)  # what neither policy nor decisions change
        self.whole.add_addresses(results, keys)
        codes, alike = group_alike(facts_of(results, self.policy))
        self.checked = RowKinds(alike, codes)  # before decisions
        self.domain, self.domains = codes_of(domains_of(keys))
        has_clean = to_bools(results["clean"].is_valid())
        self.has_address: Flags = has_clean | self.checked.that(is_valid)
        self.find_people(keys)
        self.find_pairs(results)
        self.chosen: dict[str, set[str]] = {name: set() for name in FILTERS}
        self.group_codes: dict[int, tuple[list[str], Codes]] = {}  # by position of a column
        self.words = ""
        self.is_found: Flags = np.ones(len(rows), np.bool_)  # rows that contain all words
        self.order: Rows | None = None
        self.facet_counts: dict[str, dict[str, int]] = {}  # kept until something else is chosen
        self.sorted_by: tuple[str, bool] = ("", False)
        self.set_waves(choices.waved)
        self.set_decided(choices)

    # --- what is known about each row -------------------------------------------------------------

    def find_people(self, keys: pa.StringArray) -> None:
        """The person of each row: the mailbox of its address, or its text; -1 for an empty cell."""
        coded = people_of(keys).dictionary_encode()
        self.people: pa.StringArray = coded.dictionary
        self.person: Codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)

    def find_pairs(self, results: Results) -> None:
        """The text of each row with a suggestion, and what was meant; -1 for none.

        These are the suggestions that the step "Tidy" accepts.
        """
        has_suggestion = results["suggestion"].is_valid()
        self.has_suggestion: Flags = to_bools(has_suggestion)
        texts = results.addresses.filter(has_suggestion).fill_null("")
        written = cut_long(strip_texts(texts))
        meant = results["suggestion"].filter(has_suggestion)
        joined = pc.binary_join_element_wise(written, meant, "\n")
        coded = joined.dictionary_encode()
        self.pair: Codes = np.full(len(self.rows), -1, np.int32)
        self.pair[self.has_suggestion] = coded.indices.to_numpy(zero_copy_only=False)
        self.pairs: list[Pair] = []
        self.typos: list[Pair] = []  # their domains, where these differ
        code_of: dict[Pair, int] = {}
        codes = []  # of the typo of each pair
        for text in coded.dictionary.to_pylist():
            typed, _, right = text.rpartition("\n")
            self.pairs.append((typed, right))
            typo = (domain_of(typed), domain_of(right))
            if typo[0] == typo[1]:
                codes.append(-1)
                continue
            if typo not in code_of:
                code_of[typo] = len(self.typos)
                self.typos.append(typo)
            codes.append(code_of[typo])
        self.typo = value_of_code(self.pair, codes, -1)

    # --- decisions and actions --------------------------------------------------------------------

    def set_decided(self, choices: Choices) -> None:
        """Use what a person decided: send or remove by key, and accepted suggestions."""
        rows = self.rows
        rows.is_corrected = self.checked.that(has_correction)
        decision = rows.is_corrected * np.int8(WORDS.index("suggestion"))
        is_accepted = [pair in choices.accepted for pair in self.pairs]
        decision[value_of_code(self.pair, is_accepted, False)] = WORDS.index(WAITING)
        if len(choices.decided):
            by_hand = choices.decided.of(self.people)
            words = pc.index_in(by_hand, value_set=pa.array(WORDS))
            of_people = np.append(words.to_numpy(), 0).astype(np.int8)  # the last one: nobody
            of_rows = of_people[self.person]
            decision = np.where(of_rows, of_rows, decision)
        rows.decision = decision
        self.decided = self.checked.with_decisions(decision)
        self.judged: dict[Policy, tuple[RowKinds, Counts]] = {}
        self.set_policy(self.policy)

    def set_policy(self, policy: Policy | str) -> None:
        """Decide about each kind of row."""
        self.facet_counts.clear()
        self.policy = find_policy(policy)
        self.kinds, self.counts = self.judge(self.policy)
        self.causes: list[str] = []
        actions = []  # the code of the action of each kind
        codes = []  # of the reason of each kind
        for kind in self.kinds.alike:
            actions.append(ACTIONS.index(str(kind.action)))
            reason = next(iter(reasons_of(kind)), "")
            if not reason:
                codes.append(-1)
                continue
            if reason not in self.causes:
                self.causes.append(reason)
            codes.append(self.causes.index(reason))
        self.action = np.array(actions, np.int8)[self.kinds.codes]
        self.cause = np.array(codes, np.int32)[self.kinds.codes]
        if self.words:  # they may be in other reasons now
            words = self.words
            self.words = ""
            self.is_found = np.ones(len(self.rows), np.bool_)
            self.search(words)

    def judge(self, policy: Policy) -> tuple[RowKinds, Counts]:
        """What a policy decides about each kind of rows, and the figures of page and report.

        Kept for each policy.
        """
        if policy in self.judged:
            return self.judged[policy]
        kinds = RowKinds(apply_policy(self.decided.alike, policy), self.decided.codes)
        counts = copy(self.whole)
        counts.policy = policy
        counts.alike = Counter(dict(zip(kinds.alike, kinds.sizes(), strict=True)))
        counts.people = int(np.count_nonzero(self.is_among(kinds.that(is_sent))))
        by_hand = np.flatnonzero(self.rows.decision)[:TOP_DECIDED]
        if len(by_hand):
            counts.decided = []
            frame = self.rows.to_frame(by_hand, CORE)
            counts.add_decided(Results(frame, self.column, None))
        self.judged[policy] = (kinds, counts)
        return kinds, counts

    def decide(self, rows: Rows | None = None, columns: Sequence[Column] = CORE) -> pd.DataFrame:
        """Rows with result columns and with the action of each.

        A repeated row names another row.
        """
        out = decide(self.rows.to_frame(rows, columns), self.column, policy=self.policy)
        if rows is None:
            rows = np.arange(len(self.rows))
        repeated = np.flatnonzero(self.kinds.that(is_repeated)[rows])
        if len(repeated):
            people = self.person[rows[repeated]]
            reasons = describe_repeats(self.kept_rows[people] + 1)
            place = list(out.columns).index(self.rows.label("action_why"))
            words = out.iloc[:, place].copy()
            words.iloc[repeated] = reasons.to_pylist()
            out.isetitem(place, words.array)
        return out

    def is_among(self, rows: Rows | Flags) -> Flags:
        """Of each person, whether one of some rows is about it.

        The last one is for empty cells, which are nobody's.
        """
        people = np.zeros(len(self.people) + 1, np.bool_)
        people[self.person[rows]] = True
        people[-1] = False
        return people

    def of_same_people(self, rows: Rows) -> Rows:
        """All rows of the people of some rows."""
        return np.flatnonzero(self.is_among(rows)[self.person])

    def keys_of(self, rows: Rows) -> pa.StringArray:
        """The different keys of the people of some rows."""
        return self.people.filter(pa.array(self.is_among(rows)[:-1]))

    def address_of(self, row: int) -> str:
        """The address of a row for people: repaired, or as it is written."""
        clean = self.rows.clean[row].as_py()
        written = self.rows.frame.iloc[row, self.address_at]
        return readable(clean or str(written))

    def pairs_of(self, rows: Rows) -> frozenset[Pair]:
        """The suggestions for some rows."""
        codes = np.unique(self.pair[rows])
        return frozenset(self.pairs[code] for code in codes[codes >= 0].tolist())

    def accepted_addresses(self, rows: Rows) -> set[str]:
        """The suggested addresses that are in the cells of some rows, or are to be checked."""
        corrected = rows[self.rows.is_corrected[rows]]
        addresses = set(self.rows.clean.take(pa.array(corrected)).to_pylist())
        for _, meant in self.pairs_of(rows):
            addresses.add(meant)
        return addresses

    def set_waves(self, waved: ByPerson) -> None:
        """Note in which wave of a mailing the people of some rows were mailed, by key.

        Somebody with a valid and an invalid spelling was mailed by the valid one.
        """
        waves = waved.of(self.people).fill_null(0).to_numpy()
        waves = np.append(waves, 0)  # the last one: nobody
        invalid = self.checked.that(is_invalid)
        has_other_spelling = self.is_among(~invalid)[self.person]
        self.rows.wave = np.where(invalid & has_other_spelling, 0, waves[self.person])
        self.rows.wave_times = waved.times

    def word_of(self, decision: int) -> str:
        """A decision as the page names it; empty for none."""
        word = WORDS[decision]
        if word == WAITING:
            return "suggestion"
        return word or ""

    def addresses_to_check(self) -> list[str]:
        """The different suggested addresses that were chosen and are not verified yet."""
        rows = np.flatnonzero(self.rows.decision == WORDS.index(WAITING))
        return sorted({meant for _, meant in self.pairs_of(rows)})

    # --- figures ----------------------------------------------------------------------------------

    def count_left(self) -> int:
        """Rows that are still to be checked."""
        return self.counts.number(is_left)

    def count_unclear(self) -> int:
        """Rows without a clear answer, and rows whose check failed."""
        return self.counts.number(is_unclear)

    def count_unclear_addresses(self) -> int:
        """The different addresses of rows without a clear answer, which are asked again."""
        rows = np.flatnonzero(self.checked.that(is_unclear))
        addresses = one_array(self.rows.clean.take(pa.array(rows)))
        count = pc.count_distinct(address_keys(addresses), mode="only_valid")
        return int(count.as_py())

    def count_valid(self, rows: Flags) -> int:
        """How many of some rows are valid."""
        return int(np.count_nonzero(self.checked.that(is_valid) & rows))

    def seconds_to_wait(self) -> float:
        """The seconds after which asking again makes sense; 0 if no answer is temporary."""
        longest = 0.0
        if self.counts.buckets[Status.ERROR] > 0:
            longest = ERROR_MAX_AGE
        for reason in self.counts.by("reason"):
            longest = max(longest, ASK_AGAIN.get(reason, 0.0))
        return longest

    # --- facets, words, order ---------------------------------------------------------------------

    def can_choose(self, facet: str, value: str) -> bool:
        """Whether a value is one of a facet, or was when it was chosen."""
        if value in self.chosen[facet]:
            return True
        if facet == "domain":
            return value in self.domains
        if facet == "group":
            return True  # a text that names none finds no row
        values_of, order = FACET_VALUES[facet]
        if order:
            return value in order
        return any(value in values_of(kind) for kind in self.kinds.alike)

    def toggle(self, facet: str, value: str) -> None:
        """Choose a value of a facet, or no longer.

        Rows must match one of the values chosen in each facet.
        """
        chosen = self.chosen[facet]
        if facet == "group":  # of one column at a time
            column = column_of_group(value)
            chosen = {group for group in chosen if column_of_group(group) == column}
        self.chosen[facet] = chosen ^ {value}
        self.facet_counts.clear()

    def clear(self) -> None:
        """Choose nothing, and search for nothing."""
        for values in self.chosen.values():
            values.clear()
        self.search("")

    def search(self, text: str) -> None:
        """Find the rows that contain all words, in any case, in what is shown."""
        self.facet_counts.clear()
        words = text.split()
        left = np.arange(len(self.rows))
        if is_narrower(words, self.words.split()):  # of rows that were found before
            left = np.flatnonzero(self.is_found)
        self.words = text
        for word in words:
            left = left[self.holding(word, left)]
        self.is_found = np.zeros(len(self.rows), np.bool_)
        self.is_found[left] = True

    def holding(self, word: str, rows: Rows) -> Flags:
        """Which of some rows contain a word."""
        is_whole = len(rows) == len(self.rows)
        is_in_cause = [word.casefold() in reason_label(name).casefold() for name in self.causes]
        is_held = value_of_code(self.cause[rows], is_in_cause, False)
        lower = word.lower()
        for texts in self.searched:
            part = texts
            if not is_whole:
                part = texts.take(pa.array(rows))
            # Faster than without regard to case, which is a search for a pattern.
            is_there = pc.match_substring(pc.utf8_lower(part), lower)
            is_held |= np.asarray(is_there.fill_null(False))
        return is_held

    @cached_property
    def searched(self) -> list[pa.Array | pa.ChunkedArray]:
        """The columns that are shown, as texts."""
        columns = [self.rows.clean, self.rows.table["suggestion"]]
        for at in (self.address_at, *self.shown_columns):
            columns.append(whole_texts(self.rows.cells(at)))
        return columns

    def mask(self, *, without: str = "") -> Flags:
        """Rows that match the words and the facets, but for one of these."""
        mask = self.is_found
        for facet in FILTERS:
            if facet != without and self.chosen[facet]:
                mask = mask & self.matches(facet, self.chosen[facet])
        return mask

    def matches(self, facet: str, values: set[str]) -> Flags:
        """Rows with one of the values of a facet."""
        if facet == "group":
            return self.in_groups(values)
        if facet == "domain":
            is_chosen = [name in values for name in self.domains]
            return value_of_code(self.domain, is_chosen, False)
        values_of = FACET_VALUES[facet].values_of
        return self.kinds.that(lambda kind: not values.isdisjoint(values_of(kind)))

    def in_groups(self, values: set[str]) -> Flags:
        """Rows in one of some groups, each of a column."""
        is_in = np.zeros(len(self.rows), np.bool_)
        for value in values:
            at = column_of_group(value)
            if at not in self.own_columns:
                continue
            labels, codes = self.groups_of(at)
            label = value.partition(" ")[2]
            if label in labels:
                is_in |= codes == labels.index(label)
        return is_in

    def groups_of(self, at: int) -> tuple[list[str], Codes]:
        """The groups of a column, and the one of each row."""
        if at not in self.group_codes:
            cells = self.rows.cells(at)
            none = np.zeros(len(self.rows), np.int64)
            column = ColumnCounts(is_asked=True)
            column.add(cells, none, none[:0])
            groups = column.cut()
            values = read_column(values_of_cells(cells), column.kind)
            codes = groups.find(values).astype(np.int32)
            self.group_codes[at] = (groups.labels, codes)
        return self.group_codes[at]

    def count(self, facet: str) -> dict[str, int]:
        """Rows by value of a facet, of those that match everything else.

        The values are those of all rows, so that they stay where they are while others are chosen;
        of domains the most frequent ones that match.
        """
        if facet not in self.facet_counts:
            mask = self.mask(without=facet)
            self.facet_counts[facet] = self.count_values(facet, mask)
        return self.facet_counts[facet]

    def count_domains(self, mask: Flags) -> dict[str, int]:
        """The most frequent domains of some rows."""
        codes = self.domain[mask]
        counts = np.bincount(codes[codes >= 0], minlength=len(self.domains))
        order = np.argsort(-counts, kind="stable")[:MAX_DOMAINS]
        by_domain = {}
        for code in order.tolist():
            count = int(counts[code])
            if count:
                by_domain[self.domains[code]] = count
        return by_domain

    def count_values(self, facet: str, mask: Flags) -> dict[str, int]:
        """Some rows by the values of a facet that any row has."""
        if facet == "domain":
            return self.count_domains(mask)
        values_of, order = FACET_VALUES[facet]
        whole = Counter[str]()
        matching = Counter[str]()
        for kind, number in zip(self.kinds.alike, self.kinds.sizes(mask), strict=True):
            for value in values_of(kind):
                whole[value] += self.counts.alike[kind]
                matching[value] += number
        shown = order or dict(most_common(whole))
        return {value: matching[value] for value in shown if whole[value]}

    def sort(self, key: str) -> None:
        """Sort by a column.

        The same column again reverses the order, and a third time restores that of the frame.
        """
        by, is_reversed = self.sorted_by
        if key == by and is_reversed:
            self.forget_order()
            return
        self.sorted_by = (key, key == by)
        if key == by and self.order is not None:
            self.order = self.order[::-1]
        else:
            self.order = self.sorted_rows(key)

    def forget_order(self) -> None:
        """Restore the order of the frame."""
        self.sorted_by = ("", False)
        self.order = None

    def sorted_rows(self, key: str) -> Rows:
        """All rows in the order of a column; rows without a value come last."""
        if key == "action":
            return np.argsort(self.action, kind="stable")
        if key == "verdict":
            places = [BUCKETS.index(kind.bucket) for kind in self.kinds.alike]
            by_row = np.array(places, np.int8)[self.kinds.codes]
            return np.argsort(by_row, kind="stable")
        if key == "reason":
            labels = [reason_label(name) for name in self.causes]
            places = np.argsort(np.argsort(labels)).tolist()
            by_row = value_of_code(self.cause, places, len(labels))
            return np.argsort(by_row, kind="stable")
        if key in ("clean", "suggestion"):
            order: Rows = pc.sort_indices(self.rows.table[key]).to_numpy()
            return order
        cells = self.rows.cells(int(key.removeprefix("column ")))
        values = to_array(cells)
        if pa.types.is_nested(values.type):
            values = as_text(cells)
        if is_text(values.type):
            values = pc.if_else(pc.equal(values, ""), None, values)
        order = pc.sort_indices(values).to_numpy()
        return order  # noqa: RET504 - mypy knows its type

    def found(self) -> Rows:
        """The rows that match everything, in their order."""
        mask = self.mask()
        if self.order is None:
            return np.flatnonzero(mask)
        return self.order[mask[self.order]]

    # --- what is shown ----------------------------------------------------------------------------

    @cached_property
    def address_at(self) -> int:
        """Position of the verified column."""
        names: list[Any] = list(self.rows.frame.columns)
        return names.index(self.column)

    @cached_property
    def own_columns(self) -> list[int]:
        """Positions of the user's own columns besides the verified one."""
        ours = set(map(self.rows.label, NOTES))
        positions = []
        for at, name in enumerate(self.rows.frame.columns):
            if at != self.address_at and name not in ours:
                positions.append(at)
        return positions

    def own_labels(self) -> list[Hashable]:
        """The names of the user's own columns, but for those that occur twice."""
        names = list(self.rows.frame.columns)
        own = [names[at] for at in self.own_columns]
        return [name for name in own if names.count(name) == 1]

    @property
    def shown_columns(self) -> list[int]:
        """Positions of those of the own columns that are shown."""
        return self.own_columns[:OTHER_COLUMNS]

    def columns_left_out(self) -> int:
        """How many of the user's columns are not shown."""
        return len(self.own_columns) - len(self.shown_columns)

    def heads(self) -> list[dict[str, str]]:
        """The columns of the table: address and result first, then some of the user's own."""
        names = self.rows.frame.columns
        labels = {f"column {self.address_at}": printable_label(names[self.address_at])}
        labels |= {"verdict": "Verdict", "reason": "Why", "action": "What to do"}
        if any(kind.change for kind in self.kinds.alike):
            labels["clean"] = "Repaired"
        if self.pairs:
            labels["suggestion"] = "Did you mean"
        for at in self.shown_columns:
            labels[f"column {at}"] = printable_label(names[at])
        return [{"key": key, "label": label} for key, label in labels.items()]

    def page(self, rows: Rows) -> list[dict[str, Any]]:
        """Some rows as texts of bounded length.

        They say what is known and decided, and have cells by the keys of `heads`.
        """
        out = self.decide(rows, COLUMNS)
        results = {}
        for name in ("clean", "suggestion", "action_why", "error_message"):
            texts = cell_texts(out[self.rows.label(name)], 2 * LONGEST_CELL)
            results[name] = texts.to_pylist()
        texts_of = {}
        for at in (self.address_at, *self.shown_columns):
            texts = cell_texts(self.rows.cells(at).take(rows), LONGEST_CELL)
            texts_of[f"column {at}"] = texts.to_pylist()
        repeats = self.repeats(rows)
        lines = []
        for place, row in enumerate(rows.tolist()):
            kind = self.kinds.of(row)
            suggestion = results["suggestion"][place] or ""
            clean = ""
            if kind.change:
                clean = results["clean"][place] or ""
            cells = {"clean": clean, "suggestion": suggestion}
            for key, texts in texts_of.items():
                cells[key] = texts[place] or ""
            why = repeats.get(row)
            if why is None:
                why = join_causes(results["action_why"][place], results["error_message"][place])
            line = {
                "at": row,
                "row": f"{row + 1:,}",
                "verdict": kind.bucket,
                "action": kind.action,
                "reason": self.reason_text(row),
                "why": why,
                "decided": self.word_of(self.rows.decision[row]),
                "can_send": bool(self.has_address[row]),
                "suggestion": suggestion,
                "cells": cells,
            }
            lines.append(line)
        return lines

    def reason_text(self, row: int) -> str:
        """Why a row has its verdict, in a few words."""
        cause = self.cause[row]
        if cause >= 0:
            return short_text(reason_label(self.causes[cause]), 80)
        if is_valid(self.kinds.of(row)):
            return REASONLESS
        return ""

    def repeats(self, rows: Rows) -> dict[int, str]:
        """By position, which row some rows repeat, if that is why they are removed."""
        named = {}
        for row in rows.tolist():
            if is_repeated(self.kinds.of(row)):
                first = int(self.kept_rows[self.person[row]])
                address = short_text(self.rows.clean[first].as_py() or "", LONGEST_CELL)
                named[row] = f"the same mailbox as row {first + 1:,}: {address}"
        return named

    @cached_property
    def kept_rows(self) -> Rows:
        """The row of each person that is not repeated; of several the first."""
        kept = np.zeros(len(self.people) + 1, np.int64)
        rows = np.arange(len(self.rows))[::-1]
        kept[self.person[rows]] = rows  # the last assignment stays
        repeats = self.checked.that(attrgetter("is_repeated"))
        others = rows[~repeats[rows]]
        kept[self.person[others]] = others
        return kept


def group_value(at: int, label: str) -> str:
    """How a filter names a group of the column at a position."""
    return f"{at} {label}"


def column_of_group(value: str) -> int:
    """The position of the column of a group; -1 for a text that names none."""
    at = value.partition(" ")[0]
    is_number = at.isascii() and at.isdigit() and len(at) < 6
    return int(at) if is_number else -1


def join_causes(why: str | None, message: str | None) -> str:
    """Why a row has its action and what the check reported, without saying the same twice.

    >>> join_causes("risky: shared mailbox such as info@", "shared mailbox such as info@")
    'risky: shared mailbox such as info@'
    >>> why = "invalid: the domain does not exist or accepts no mail"
    >>> join_causes(why, "the domain does not exist")
    'invalid: the domain does not exist'
    """
    if not why or not message:
        return why or message or ""
    if why.endswith(f": {REASON_MEANING[Reason.NO_MX_RECORD]}"):
        return f"{why.partition(': ')[0]}: {message}"
    if why.endswith(message):
        return why
    return f"{why}; {message}"


def is_narrower(words: Sequence[str], before: Sequence[str]) -> bool:
    """Whether only rows with the words before can hold these: letters or words were added.

    >>> is_narrower(["ada", "org"], ["ad"]), is_narrower(["ad"], ["ada"])
    (True, False)
    """
    return all(any(word in longer for longer in words) for word in before)


def codes_of(column: pa.DictionaryArray) -> tuple[Codes, list[str]]:
    """The codes of a column and what they stand for; -1 for null."""
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return codes, column.dictionary.to_pylist()


def value_of_code(codes: Codes, values: Sequence[Any], missing: Any) -> npt.NDArray[Any]:
    """For each row the value of its code; `missing` for -1."""
    return np.array([*values, missing])[codes]


def domain_of(address: str) -> str:
    """The domain of an address, in lower case."""
    return lower_domain(address.rpartition("@")[2])


def whole_texts(cells: pd.Series[Any]) -> pa.Array:
    """Cells of any dtype as texts."""
    if isinstance(cells.dtype, pd.StringDtype):
        return pa.array(cells, from_pandas=True)
    return as_text(cells)


def cell_texts(cells: pd.Series[Any], longest: int) -> pa.Array:
    """Cells of any dtype as texts of bounded length."""
    return cut_long(as_text(cells), longest)
