"""What a person decided in an audit: it never changes, so that undo is the value before.

`Choices` is all of it. Decisions about single addresses are applied after the policy. Each belongs
to a person: to the mailbox of the row's address, or to the text of a cell without one. So it holds
for each row that repeats the address, and survives another check, splitting and merging. ``send``
and ``remove`` are kept by that key. ``suggestion`` accepts a pair of texts, as the step "Tidy"
does: the next check verifies the address that was meant.
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
        rest, new = self.without(keys), pa.repeat(pa.scalar(value, self.values.type), len(keys))
        return ByPerson(
            pa.concat_arrays([rest.keys, keys]),
            pa.concat_arrays([rest.values, new]),
            {**self.times, **(times or {})},
        )

    def of(self, people: pa.StringArray) -> pa.Array:
        """The value of each person; null without one."""
        return self.values.take(pc.index_in(people, value_set=self.keys))


# Nobody is sent or removed by hand.
NOTHING = ByPerson(pa.array([], pa.string()), pa.array([], pa.string()))
NO_WAVES = ByPerson(pa.array([], pa.string()), pa.array([], pa.int64()))  # nobody was mailed


def decide(
    listing: Listing,
    rows: Sequence[int] | npt.NDArray[Any],
    what: str,
    decided: ByPerson = NOTHING,
    accepted: frozenset[Pair] = frozenset(),
) -> tuple[ByPerson, frozenset[Pair]]:
    """The decisions after one about the people of some rows.

    `what` is one of `DECISIONS`, or ``none`` to take it back.

    A cell without an address cannot be sent, and a row without a suggestion has none to use: these
    stay as they are.
    """
    if what not in (*DECISIONS, UNDECIDED):
        raise SettingsError(
            f"{what!r} is not a decision; there are {', '.join((*DECISIONS, UNDECIDED))}"
        )
    is_whole = isinstance(rows, np.ndarray) or all(type(each) is int for each in rows)
    if not is_whole or (len(rows) and not 0 <= np.min(rows) <= np.max(rows) < len(listing.rows)):
        raise SettingsError("these rows are not in the result: give their positions")
    at = listing.of_same_people(np.asarray(rows, np.int64))
    if what == "send":
        at = at[listing.has_address[at]]
    if what == "suggestion":
        at = at[listing.pair[at] >= 0]
    keys, pairs = listing.keys_of(at), listing.pairs_of(at)
    words = decided.put(keys, what) if what in ("send", "remove") else decided.without(keys)
    if what == UNDECIDED:  # also suggestions that are in the cells already
        meant = listing.accepted_addresses(at)
        accepted = frozenset(each for each in accepted if each[1] not in meant)
    return words, accepted | pairs if what == "suggestion" else accepted - pairs


def rows_of_domain(listing: Listing, domain: str) -> npt.NDArray[Any]:
    """The rows whose address is at a domain."""
    if domain not in listing.domains:
        raise SettingsError(f"no address is at {domain!r:.80}")
    return np.flatnonzero(listing.domain == listing.domains.index(domain))


def read_decisions(frame: pd.DataFrame, at: int) -> tuple[ByPerson, frozenset[Pair]]:
    """The decisions in a file that was downloaded from the page, about the column at a position."""
    labels = [label_of(frame.columns[at], None, each.name) for each in DECISION_COLUMNS]
    names = list(frame.columns)
    if any(names.count(label) != 1 for label in labels):
        return NOTHING, frozenset()
    words, meant = (read_present(to_array(frame.iloc[:, names.index(label)])) for label in labels)
    rows = pc.indices_nonzero(pc.is_in(words, value_set=pa.array(DECISIONS)))
    words, meant = words.take(rows), meant.take(rows)
    written = repaired_texts(frame.iloc[rows.to_pylist(), at])
    is_word = pc.not_equal(words, "suggestion")
    keys = people_of(address_keys(pc.coalesce(meant, written)))
    decided = last_of(keys.filter(is_word), words.filter(is_word))
    pairs = zip(written.to_pylist(), meant.to_pylist(), strict=True)
    return decided, frozenset(pair for pair in pairs if pair[1] is not None and pair[0] != pair[1])


def last_of(keys: pa.StringArray, values: pa.Array) -> ByPerson:
    """The last value of each person; a cell without a key is nobody's."""
    named = pd.Series(keys.to_numpy(zero_copy_only=False))
    is_last = pa.array(named.notna() & ~named.duplicated(keep="last"))
    return ByPerson(keys.filter(is_last), values.filter(is_last))


def read_waves(frame: pd.DataFrame, at: int) -> ByPerson:
    """Who was mailed in which wave, by a file of the page or of `mailverdict.mailing`."""
    wave, clean = (label_of(frame.columns[at], None, name) for name in ("wave", "clean"))
    names = list(frame.columns)
    if names.count(wave) != 1:
        return NO_WAVES
    numbers = (
        pd.to_numeric(frame.iloc[:, names.index(wave)], errors="coerce").fillna(0).astype("int64")
    )
    rows = np.flatnonzero(numbers > 0)
    written = repaired_texts(frame.iloc[rows, at])
    if names.count(clean) == 1:  # `read_verdicts` does not write it
        written = pc.coalesce(read_present(to_array(frame.iloc[rows, names.index(clean)])), written)
    waves = last_of(people_of(address_keys(written)), pa.array(numbers.iloc[rows], pa.int64()))
    wave_at = label_of(frame.columns[at], None, "wave_at")
    if names.count(wave_at) != 1:
        return waves
    moments = pd.to_datetime(
        frame.iloc[rows, names.index(wave_at)], utc=True, format="ISO8601", errors="coerce"
    )
    earliest = moments.groupby(numbers.iloc[rows]).min().dropna()
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
    rows, names = np.flatnonzero(listing.typo >= 0), listing.typos
    group = listing.typo[rows].astype(np.int64)
    of_people = np.unique(group * (len(listing.people) + 1) + listing.person[rows]) // (
        len(listing.people) + 1
    )
    people = np.bincount(of_people, minlength=len(names)).tolist()
    words: dict[int, set[str]] = {}
    for each in np.unique(group * MAX_WORDS + listing.rows.decision[rows]).tolist():
        words.setdefault(each // MAX_WORDS, set()).add(listing.word_of(each % MAX_WORDS))
    found = [
        {
            "domain": typed,
            "suggested": right,
            "people": people[at],
            "decided": min(words[at]) if len(words[at]) == 1 else "",
        }
        for at, (typed, right) in enumerate(names)
    ]
    return sorted(found, key=lambda each: (-each["people"], each["domain"]))[:MAX_TYPOS]


def describe_to_check(listing: Listing, *, is_metered: bool, known: int = 0) -> str:
    """How many suggested addresses are chosen and not verified yet, and what that costs.

    Empty for none. Each different address counts once.

    `known` of them have an answer already, which costs nothing.
    """
    count = len(listing.addresses_to_check())
    units = max(count - known, 0) if is_metered else 0
    cost = f"costs {count_of(units, 'address')} of the quota" if units else "costs nothing"
    return f"{count_of(count, 'address')} to check: {cost}." if count else ""


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
        is_used = self.suppress and bool(self.suppression)
        return replace(
            self,
            policy="",
            decided=NOTHING,
            waved=NO_WAVES,
            suppress=is_used,
            suppression=self.suppression if is_used else "",
        )

    def to_json(self) -> dict[str, Any]:
        """Values that JSON can hold, but for those by person."""
        kept = {
            name: value for name, value in self.__dict__.items() if not isinstance(value, ByPerson)
        }
        return {
            **kept,
            "off": sorted(self.off),
            "refused": sorted(self.refused),
            "accepted": sorted(self.accepted),
        }

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Choices:
        """The choices that were kept; an error for anything else."""
        return cls(
            column=None if kept["column"] is None else int(kept["column"]),
            off=frozenset(map(str, kept["off"])),
            split=bool(kept["split"]),
            merge=bool(kept["merge"]),
            refused=frozenset(map(int, kept.get("refused", ()))),
            suppress=bool(kept["suppress"]),
            suppression=str(kept["suppression"]),
            accepted=frozenset((str(written), str(meant)) for written, meant in kept["accepted"]),
            depth=str(kept["depth"]),
            policy=str(kept["policy"]),
        )
