"""What a person decided in an audit. `Choices` is immutable; undo restores the one before.

`Choices` is all of it. Decisions about single addresses are applied after the policy. Each belongs
to a person: to the mailbox of the row's address, or to the text of a cell without one. So it holds
for each row that repeats the address, and survives another check, splitting and merging. ``send``
and ``remove`` are kept by that key. ``suggestion`` accepts a pair of texts, as the step "Tidy"
does: the next check verifies the address that was meant::

    decided    cy@mailinator.com   send
               nobody              remove
    accepted   ("bo@gmial.com", "bo@gmail.com")
    waved      ada@example.org     1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import SettingsError
from ..frames.clean import repair_column
from ..model.address import address_keys
from ..model.words import DECISIONS, count_of
from ..repair.repair import MAX_CELL
from ..reports.counts import people_of
from ..table.cells import cut_long, read_cells, read_present, to_array
from ..table.columns import DECISION_COLUMNS, label_of

if TYPE_CHECKING:
    from .listing import Listing

Pair = tuple[str, str]  # the text that is verified without it, and what was meant

UNDECIDED = "none"
MAX_TYPOS = 20
MAX_WORDS = 8  # more than there are codes of decisions


@dataclass(frozen=True)
class ByPerson:
    """A value for some people, by their different keys; columns, since there may be millions."""

    keys: pa.StringArray
    values: pa.Array
    times: Mapping[int, datetime] = field(default_factory=dict)  # of a wave, where it is known

    def __len__(self) -> int:
        return len(self.keys)

    def to_dict(self) -> dict[str, Any]:
        """The value by key."""
        return dict(zip(self.keys.to_pylist(), self.values.to_pylist(), strict=True))

    def without(self, keys: pa.StringArray) -> ByPerson:
        """Without the values of some people."""
        if not len(self):
            return self
        is_kept = pc.invert(pc.is_in(self.keys, value_set=keys))
        return ByPerson(self.keys.filter(is_kept), self.values.filter(is_kept), self.times)

    def put(
        self, keys: pa.StringArray, value: str | int, times: Mapping[int, datetime] | None = None
    ) -> ByPerson:
        """With one value for some people, in place of theirs, and times of more waves."""
        rest = self.without(keys)
        new = pa.repeat(pa.scalar(value, self.values.type), len(keys))
        return ByPerson(
            keys=pa.concat_arrays([rest.keys, keys]),
            values=pa.concat_arrays([rest.values, new]),
            times={**self.times, **(times or {})},
        )

    def of(self, people: pa.StringArray) -> pa.Array:
        """The value of each person; null without one."""
        return self.values.take(pc.index_in(people, value_set=self.keys))


# Nobody is sent or removed by hand.
NOTHING = ByPerson(pa.array([], pa.string()), pa.array([], pa.string()))
NO_WAVES = ByPerson(pa.array([], pa.string()), pa.array([], pa.int64()))  # nobody was mailed


def decide(
    listing: Listing, rows: Sequence[int] | npt.NDArray[Any], what: str, choices: Choices
) -> Choices:
    """The choices after a decision about the people of some rows.

    `what` is one of `DECISIONS`, or ``none`` to take it back.

    A cell without an address cannot be sent, and a row without a suggestion has none to use: these
    stay as they are.
    """
    words = (*DECISIONS, UNDECIDED)
    if what not in words:
        raise SettingsError(f"{what!r} is not a decision; there are {', '.join(words)}")
    if not are_positions(rows, len(listing.rows)):
        raise SettingsError("these rows are not in the result: give their positions")
    same = listing.of_same_people(np.asarray(rows, np.int64))
    if what == "send":
        same = same[listing.has_address[same]]
    if what == "suggestion":
        same = same[listing.pair[same] >= 0]
    keys = listing.keys_of(same)
    decided = choices.decided.without(keys)
    pairs = listing.pairs_of(same)
    accepted = choices.accepted - pairs
    if what == "suggestion":
        accepted |= pairs
    elif what == UNDECIDED:  # also suggestions that are in the cells already
        addresses = listing.accepted_addresses(same)
        accepted = frozenset(pair for pair in accepted if pair[1] not in addresses)
    else:
        decided = decided.put(keys, what)
    return replace(choices, decided=decided, accepted=accepted)


def are_positions(rows: Sequence[int] | npt.NDArray[Any], size: int) -> bool:
    """Whether these are positions of rows."""
    if not len(rows):
        return True
    is_whole = isinstance(rows, np.ndarray) or all(type(row) is int for row in rows)
    return is_whole and 0 <= np.min(rows) <= np.max(rows) < size


def rows_of_domain(listing: Listing, domain: str) -> npt.NDArray[Any]:
    """The rows whose address is at a domain."""
    if domain not in listing.domains:
        raise SettingsError(f"no address is at {domain!r:.80}")
    return np.flatnonzero(listing.domain == listing.domains.index(domain))


def read_decisions(frame: pd.DataFrame, at: int) -> tuple[ByPerson, frozenset[Pair]]:
    """The decisions in a file that was downloaded from the page, about the column at a position."""
    columns = []
    for column in DECISION_COLUMNS:
        cells = result_cells(frame, at, column.name)
        if cells is None:
            return NOTHING, frozenset()
        columns.append(read_present(to_array(cells)))
    words, meant = columns
    rows = pc.indices_nonzero(pc.is_in(words, value_set=pa.array(DECISIONS)))
    words = words.take(rows)
    meant = meant.take(rows)
    written = repaired_texts(frame.iloc[rows.to_pylist(), at])
    is_word = pc.not_equal(words, "suggestion")
    keys = people_of(address_keys(pc.coalesce(meant, written)))
    decided = last_of(keys.filter(is_word), words.filter(is_word))
    accepted = set()
    for typed, right in zip(written.to_pylist(), meant.to_pylist(), strict=True):
        if right is not None and typed != right:
            accepted.add((typed, right))
    return decided, frozenset(accepted)


def result_cells(frame: pd.DataFrame, at: int, name: str) -> pd.Series[Any] | None:
    """A result column about the column at a position; None unless the file has it once."""
    label = label_of(frame.columns[at], None, name)
    names = list(frame.columns)
    if names.count(label) != 1:
        return None
    cells: pd.Series[Any] = frame.iloc[:, names.index(label)]
    return cells


def last_of(keys: pa.StringArray, values: pa.Array) -> ByPerson:
    """The last value of each person; a cell without a key is nobody's."""
    named = pd.Series(keys.to_numpy(zero_copy_only=False))
    is_last = pa.array(named.notna() & ~named.duplicated(keep="last"))
    return ByPerson(keys.filter(is_last), values.filter(is_last))


def read_waves(frame: pd.DataFrame, at: int) -> ByPerson:
    """Who was mailed in which wave, by a file of the page or of `mailverdict.mailing`."""
    wave = result_cells(frame, at, "wave")
    if wave is None:
        return NO_WAVES
    numbers = pd.to_numeric(wave, errors="coerce").fillna(0).astype("int64")
    rows = np.flatnonzero(numbers > 0)
    numbers = numbers.iloc[rows]
    written = repaired_texts(frame.iloc[rows, at])
    clean = result_cells(frame, at, "clean")  # `read_verdicts` does not write it
    if clean is not None:
        repaired = read_present(to_array(clean.iloc[rows]))
        written = pc.coalesce(repaired, written)
    people = people_of(address_keys(written))
    waves = last_of(people, pa.array(numbers, pa.int64()))
    wave_at = result_cells(frame, at, "wave_at")
    if wave_at is None:
        return waves
    moments = pd.to_datetime(wave_at.iloc[rows], utc=True, format="ISO8601", errors="coerce")
    earliest = moments.groupby(numbers).min().dropna()
    times = dict(zip(earliest.index.tolist(), earliest.tolist(), strict=True))
    return replace(waves, times=times)


def repaired_texts(cells: pd.Series[Any]) -> pa.StringArray:
    """The texts of cells, repaired."""
    read = read_cells(cells, longest=MAX_CELL)
    return cut_long(repair_column(read["text"], read["stripped"])["text"])


def find_typos(listing: Listing) -> list[dict[str, Any]]:
    """Domains that are probably mistyped, and the people at them, most people first.

    `decided` is what holds for all of them: one of `DECISIONS`, or nothing.
    """
    rows = np.flatnonzero(listing.typo >= 0)
    typo = listing.typo[rows].astype(np.int64)
    width = len(listing.people) + 1
    people_at_typos = np.unique(typo * width + listing.person[rows])
    people = np.bincount(people_at_typos // width, minlength=len(listing.typos)).tolist()
    decisions_at_typos = np.unique(typo * MAX_WORDS + listing.rows.decision[rows])
    words: dict[int, set[str]] = {}
    for code in decisions_at_typos.tolist():
        number, decision = divmod(code, MAX_WORDS)
        words.setdefault(number, set()).add(listing.word_of(decision))
    typos = []
    for number, (typed, meant) in enumerate(listing.typos):
        decided = ""
        if len(words[number]) == 1:
            decided = min(words[number])
        entry = {
            "domain": typed,
            "suggested": meant,
            "people": people[number],
            "decided": decided,
        }
        typos.append(entry)
    typos.sort(key=lambda entry: (-entry["people"], entry["domain"]))
    return typos[:MAX_TYPOS]


def describe_to_check(listing: Listing, *, is_metered: bool, known: int = 0) -> str:
    """How many suggested addresses are chosen and not verified yet, and what that costs.

    Empty for none. Each different address counts once.

    `known` of them have an answer already, which costs nothing.
    """
    count = len(listing.addresses_to_check())
    if not count:
        return ""
    cost = "costs nothing"
    if is_metered and count > known:
        cost = f"costs {count_of(count - known, 'address')} of the quota"
    return f"{count_of(count, 'address')} to check: {cost}."


# --- all choices ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Choices:
    """All that a person decided about a list."""

    column: int | None = None  # position of the column that holds the addresses
    off: frozenset[str] = frozenset()  # repairs that are not applied
    split: bool = True  # each of several addresses in a cell gets a row of its own
    merge: bool = True  # of the rows of one mailbox the first that may be sent is kept
    refused: frozenset[int] = frozenset()  # columns that say no, whose rows are taken off
    suppress: bool = True  # rows on the suppression list are removed
    suppression: str = ""  # the id of the suppression list; empty: none
    accepted: frozenset[Pair] = frozenset()  # suggestions by (written, meant)
    depth: str = "mx"
    policy: str = "balanced"
    decided: ByPerson = NOTHING  # who is sent or removed by hand
    waved: ByPerson = NO_WAVES  # who was mailed, and in which wave

    def for_tidy(self) -> Choices:
        """What the list as it is verified depends on."""
        suppress = self.suppress and bool(self.suppression)
        return replace(
            self, depth="", policy="", decided=NOTHING, waved=NO_WAVES, suppress=suppress
        )

    def for_check(self) -> Choices:
        """What a result depends on: other choices do not make it an earlier one."""
        suppression = ""
        if self.suppress:
            suppression = self.suppression
        return replace(
            self,
            policy="",
            decided=NOTHING,
            waved=NO_WAVES,
            suppress=bool(suppression),
            suppression=suppression,
        )

    def to_json(self) -> dict[str, Any]:
        """Values that JSON can hold, but for those by person."""
        kept = {}
        for name, value in self.__dict__.items():
            if isinstance(value, frozenset):
                kept[name] = sorted(value)
            elif not isinstance(value, ByPerson):
                kept[name] = value
        return kept

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Choices:
        """The choices that were kept; an error for anything else."""
        column = kept["column"]
        if column is not None:
            column = int(column)
        accepted = {(str(written), str(meant)) for written, meant in kept["accepted"]}
        return cls(
            column=column,
            off=frozenset(map(str, kept["off"])),
            split=bool(kept["split"]),
            merge=bool(kept["merge"]),
            refused=frozenset(map(int, kept.get("refused", ()))),
            suppress=bool(kept["suppress"]),
            suppression=str(kept["suppression"]),
            accepted=frozenset(accepted),
            depth=str(kept["depth"]),
            policy=str(kept["policy"]),
        )
