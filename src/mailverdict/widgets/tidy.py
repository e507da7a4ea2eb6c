"""The second step of the audit: what can be repaired, split, merged or suppressed in a column, and what was chosen.

`TidyColumn` holds what was found in each cell; `Choices` what the user wants done about it. `TidyColumn.addresses`
applies the choices, in the form that a run reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.lists.mailboxes import Mailboxes, find_mailboxes
from ..checks.syntax.column import observe_column
from ..checks.syntax.kernels import to_bools
from ..frames.clean import repair_column, show_blanks
from ..frames.verify import AddressColumns
from ..model.table import one_array, texts_where
from ..repair.repair import ACCEPTED, MAX_CELL, REPAIRS, repair_cell
from ..table.text_column import cut_long, is_filled, read_values, show_where
from .source import short_text

__all__ = ["SAFE", "Choices", "Suggestion", "TidyColumn", "duplicate_examples", "narrow"]

SAFE = tuple(repair.name for repair in REPAIRS if repair.is_safe)
EXAMPLES = 3
LONGEST_EXAMPLE = 120
WHOLE_EXAMPLE = 38  # characters that are shown without a cut beside the address that they become
Pair = tuple[str, str]
Flags = npt.NDArray[np.bool_]


@dataclass
class Choices:
    """What is done about what was found."""

    off: set[str] = field(default_factory=set)  # repairs that are not applied
    split: bool = False  # each of several addresses in a cell gets a row of its own
    merge: bool = False  # of the rows of one mailbox the first is kept
    suppress: bool = True  # rows on the suppression list are removed
    accepted: set[Pair] = field(default_factory=set)  # suggestions by (written, meant)
    history: list[frozenset[Pair]] = field(default_factory=list)  # what each acceptance added, for undo

    def accept(self, pairs: Iterable[Pair]) -> None:
        """Accept suggestions; undone together."""
        if added := frozenset(pairs) - self.accepted:
            self.accepted |= added
            self.history.append(added)

    def undo(self) -> None:
        """Undo the last acceptance."""
        if self.history:
            self.accepted -= self.history.pop()


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What was probably meant by some rows."""

    written: str
    meant: str
    rows: int


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts to verify, and beside them the repaired ones where these are others: two columns would be large."""

    chosen: pa.StringArray
    is_other: pa.BooleanArray
    others: pa.StringArray

    @classmethod
    def of(cls, chosen: pa.StringArray, repaired: pa.StringArray) -> Texts:
        """The chosen texts, and how they differ from the repaired ones."""
        is_other = pc.not_equal(chosen, repaired)
        return cls(chosen, is_other, repaired.filter(is_other))

    def repaired(self) -> pa.StringArray:
        """The texts after all repairs and without suggestions."""
        return pc.replace_with_mask(self.chosen, self.is_other, self.others) if len(self.others) else self.chosen


class TidyColumn:
    """What was found in the cells of a column."""

    def __init__(self, values: Any) -> None:
        self.values = values
        written = read_values(values, for_repair=True, longest=MAX_CELL)
        seen = observe_column(written.stripped)
        found = repair_column(written.texts, written.stripped, seen)
        texts = cut_long(pc.coalesce(found.address, written.stripped))
        # The texts as they are written would be a second copy of the column: they are read again where needed.
        self.texts = Texts.of(texts, texts)
        self.has_address: pa.BooleanArray = found.address.is_valid()
        self.suggestion = found.suggestion
        self.is_formed: pa.BooleanArray = seen.ok
        del seen
        changes = found.change.dictionary_encode()
        self.change_codes = narrow(changes.indices.to_numpy(zero_copy_only=False), len(changes.dictionary))
        self.change_sets: list[tuple[str, ...]] = [
            tuple(each.split(";")) if each else () for each in changes.dictionary.to_pylist()
        ]
        self.change_counts = np.bincount(self.change_codes, minlength=len(self.change_sets))
        several = found.count.to_numpy(zero_copy_only=False)
        self.several_rows = np.flatnonzero(several > 1)
        self.added_rows = int((several[self.several_rows] - 1).sum())
        self.nothing_rows = int(
            np.count_nonzero((several == 0) & to_bools(self.suggestion.is_null()) & to_bools(is_filled(texts)))
        )
        self.find_suggestions(texts)
        self.several_examples = [
            (self.shown(text), self.shown("\n".join(repair_cell(text).addresses)))
            for text in (written.texts[row].as_py() for row in self.several_rows[:EXAMPLES].tolist())
        ]
        self.examples = {name: self.find_examples(name, written.texts, texts) for name in SAFE}

    def __len__(self) -> int:
        return len(self.texts.chosen)

    def find_suggestions(self, texts: pa.StringArray) -> None:
        """Group the suggestions by what is written and what was meant."""
        mask = self.suggestion.is_valid()
        self.suggested_rows = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
        written = texts.filter(mask)
        joined = pc.binary_join_element_wise(written, self.suggestion.filter(mask), "\n").dictionary_encode()
        self.suggestion_codes = joined.indices.to_numpy(zero_copy_only=False)
        counts = np.bincount(self.suggestion_codes, minlength=len(joined.dictionary))
        pairs = [each.rpartition("\n") for each in joined.dictionary.to_pylist()]
        self.suggestions = [Suggestion(pair[0], pair[2], int(count)) for pair, count in zip(pairs, counts, strict=True)]
        self.by_frequency = np.argsort(-counts, kind="stable").tolist()

    def repaired_rows(self, name: str) -> int:
        """How many rows a repair changes."""
        return int(sum(n for names, n in zip(self.change_sets, self.change_counts, strict=True) if name in names))

    def find_examples(self, name: str, written: pa.StringArray, repaired: pa.StringArray) -> list[Pair]:
        """A few different cells that a repair changes, before and after; those that need no other repair first."""
        sets = [at for at, names in enumerate(self.change_sets) if name in names]
        pairs: dict[Pair, None] = {}
        for at in sorted(sets, key=lambda at: len(self.change_sets[at])):
            for row in np.flatnonzero(self.change_codes == at)[: 4 * EXAMPLES].tolist():
                before, after = written[row].as_py(), repaired[row].as_py()
                pairs[(self.shown(show_blanks(before)), self.shown(after))] = None
            if len(pairs) >= EXAMPLES:
                break
        return sorted(pairs, key=lambda pair: max(map(len, pair)) > WHOLE_EXAMPLE)[:EXAMPLES]

    @staticmethod
    def shown(text: str) -> str:
        return short_text(text, LONGEST_EXAMPLE)

    def is_accepted(self, choices: Choices) -> Flags:
        """Which of the distinct suggestions are accepted."""
        flags = [(each.written, each.meant) in choices.accepted for each in self.suggestions]
        return np.array(flags, np.bool_)

    def accepted_rows(self, choices: Choices) -> npt.NDArray[np.int64]:
        """Rows whose suggestion is accepted."""
        if not choices.accepted or not len(self.suggested_rows):
            return np.empty(0, np.int64)
        found: npt.NDArray[np.int64] = self.suggested_rows[self.is_accepted(choices)[self.suggestion_codes]]
        return found

    def applied(self, choices: Choices) -> Flags:
        """Rows of which all repairs that they need are on."""
        is_on = np.array([choices.off.isdisjoint(names) for names in self.change_sets], np.bool_)
        return is_on[self.change_codes] if len(is_on) else np.empty(0, np.bool_)

    def addresses(self, choices: Choices) -> AddressColumns:
        """The texts to verify, with what was changed beside them.

        A cell whose repair is off stays as it is, and an accepted suggestion takes the place of its cell.
        """
        repaired, suggestion = self.texts.repaired(), self.suggestion
        texts, clean = repaired, show_where(repaired, self.has_address)
        applied = pa.array(self.applied(choices))
        if applied.false_count:
            stripped = read_values(self.values, for_repair=True, longest=MAX_CELL).stripped
            texts = cut_long(pc.if_else(applied, texts, stripped))
            clean = show_where(texts, pc.if_else(applied, clean.is_valid(), self.is_formed))
        rows = self.accepted_rows(choices)
        if len(rows):
            mask = np.zeros(len(texts), np.bool_)
            mask[rows] = True
            is_accepted = pa.array(mask)
            texts = pc.replace_with_mask(texts, is_accepted, suggestion.take(pa.array(rows)))
            clean = show_where(texts, pc.or_(clean.is_valid(), is_accepted))
            suggestion = texts_where(pc.invert(is_accepted), suggestion)
        self.texts = Texts.of(texts, repaired)
        found = pa.table({"clean": clean, "suggestion": suggestion, "change": self.changes(applied, rows)})
        is_several = np.zeros(len(texts), np.bool_)
        is_several[np.setdiff1d(self.several_rows, rows)] = True
        several = pa.array(is_several) if is_several.any() else None
        return AddressColumns(texts, found, None, is_several=several)

    def changes(self, applied: pa.BooleanArray, accepted: npt.NDArray[np.int64]) -> pa.DictionaryArray:
        """The names of the repairs of each row, joined by ``;``."""
        names = ["", *(";".join(names) for names in self.change_sets)]
        codes = np.where(applied.to_numpy(zero_copy_only=False), self.change_codes.astype(np.int32) + 1, 0)
        if len(accepted):
            codes[accepted] += len(names)
            names += [";".join(filter(None, (each, ACCEPTED))) for each in names]
        distinct = pa.array(names).dictionary_encode()  # a repair that is off gives the same text as none
        codes = distinct.indices.to_numpy()[codes]
        is_missing = ~to_bools(is_filled(self.texts.chosen))
        codes = pa.array(narrow(codes, len(distinct.dictionary)), mask=is_missing)
        return pa.DictionaryArray.from_arrays(codes, distinct.dictionary)

    def mailboxes(self, read: AddressColumns) -> Mailboxes:
        """The mailbox of each row of the frame, after the repairs that were chosen."""
        assert read.repaired is not None
        distinct = one_array(read.repaired["clean"]).dictionary_encode()
        return find_mailboxes(distinct.dictionary).take(distinct.indices)


def narrow(codes: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """Codes below `count` in the smallest type that can hold them and -1."""
    return codes.astype(np.min_scalar_type(-max(count, 1)), copy=False)


def duplicate_examples(first: pa.Int64Array, cells: pd.Series[Any]) -> list[Pair]:
    """A few cells whose mailbox is in an earlier row, that of the earlier row first; `first` has its position."""
    rows = np.flatnonzero(first.is_valid().to_numpy(zero_copy_only=False))[:EXAMPLES].tolist()
    pairs = [(str(cells.iloc[first[row].as_py()]), str(cells.iloc[row])) for row in rows]
    return [(short_text(one, LONGEST_EXAMPLE), short_text(other, LONGEST_EXAMPLE)) for one, other in pairs]
