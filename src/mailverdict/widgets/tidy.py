"""The second step of the audit: what can be repaired, split, merged or suppressed in a column, and what was chosen.

`TidyColumn` holds what was found in each cell; `Choices` what the user wants done about it.
`TidyColumn.addresses` applies the choices, in the form that a run reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.lists.mailboxes import Mailboxes, find_mailboxes
from ..frames.clean import repair_column, show_blanks, without_repairs
from ..frames.reading import name_standing, with_column
from ..model.arrow import replace_where, texts_where, to_bools
from ..repair.repair import ACCEPTED, MAX_CELL, REPAIRS, repair_cell
from ..table.cells import cut_long, is_filled, read_cells, where_filled
from .choices import Choices
from .decisions import Pair
from .source import short_text

SAFE = tuple(repair.name for repair in REPAIRS if repair.is_safe)
EXAMPLES = 3
LONGEST_EXAMPLE = 120
WHOLE_EXAMPLE = 38  # characters that are shown without a cut beside the address that they become
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What was probably meant by some rows."""

    written: str
    meant: str
    rows: int


class TidyColumn:
    """What was found in the cells of a column."""

    def __init__(self, values: Any) -> None:
        cells = read_cells(values, longest=MAX_CELL)
        self.stripped = cells["stripped"]
        found = repair_column(cells["text"], self.stripped)
        self.found = with_column(found, "text", cut_long(found["text"]))
        changes = found["change"].dictionary_encode()
        self.change_codes = changes.indices.to_numpy(zero_copy_only=False)
        self.change_sets = [
            tuple(filter(None, each.split(";"))) for each in changes.dictionary.to_pylist()
        ]
        self.change_counts = np.bincount(self.change_codes, minlength=len(self.change_sets))
        several = found["count"].to_numpy()
        self.several_rows = np.flatnonzero(several > 1)
        self.added_rows = int((several[self.several_rows] - 1).sum())
        has_text = to_bools(is_filled(self.stripped)) & to_bools(found["suggestion"].is_null())
        self.nothing_rows = int(np.count_nonzero((several == 0) & has_text))
        self.find_suggestions()
        self.several_examples = [
            (self.shown(text), self.shown("\n".join(repair_cell(text).addresses)))
            for text in cells["text"].take(pa.array(self.several_rows[:EXAMPLES])).to_pylist()
        ]
        self.examples = {name: self.find_examples(name, cells["text"]) for name in SAFE}

    def __len__(self) -> int:
        return len(self.stripped)

    def find_suggestions(self) -> None:
        """Group the suggestions by what is written and what was meant."""
        mask = self.found["suggestion"].is_valid()
        written = self.found["text"].filter(mask)
        meant = self.found["suggestion"].filter(mask)
        pairs = pc.binary_join_element_wise(written, meant, "\n").value_counts()
        counts = pairs.field("counts").to_numpy()
        split = [each.rpartition("\n") for each in pairs.field("values").to_pylist()]
        self.suggestions = [
            Suggestion(pair[0], pair[2], int(count))
            for pair, count in zip(split, counts, strict=True)
        ]
        self.by_frequency = np.argsort(-counts, kind="stable").tolist()

    def repaired_rows(self, name: str) -> int:
        """How many rows a repair changes."""
        return int(
            sum(
                n
                for names, n in zip(self.change_sets, self.change_counts, strict=True)
                if name in names
            )
        )

    def find_examples(self, name: str, written: pa.StringArray) -> list[Pair]:
        """A few different cells that a repair changes, before and after; those that need no other repair first."""
        sets = [at for at, names in enumerate(self.change_sets) if name in names]
        pairs: dict[Pair, None] = {}
        for at in sorted(sets, key=lambda at: len(self.change_sets[at])):
            for row in np.flatnonzero(self.change_codes == at)[: 4 * EXAMPLES].tolist():
                before, after = written[row].as_py(), self.found["text"][row].as_py()
                pairs[(self.shown(show_blanks(before)), self.shown(after))] = None
            if len(pairs) >= EXAMPLES:
                break
        return sorted(pairs, key=lambda pair: max(map(len, pair)) > WHOLE_EXAMPLE)[:EXAMPLES]

    @staticmethod
    def shown(text: str) -> str:
        return short_text(text, LONGEST_EXAMPLE)

    def is_accepted(self, choices: Choices) -> Flags:
        """Which of the distinct suggestions are accepted."""
        return np.array(
            [(each.written, each.meant) in choices.accepted for each in self.suggestions], np.bool_
        )

    def accepted_rows(self, choices: Choices) -> npt.NDArray[np.int64]:
        """Rows whose suggestion is accepted, and that have the repairs which it needs."""
        return np.flatnonzero(
            to_bools(accepted_texts(self.found["text"], choices).is_valid()) & self.applied(choices)
        )

    def count_repaired(self, choices: Choices) -> int:
        """How many rows are repaired."""
        needs = np.array([bool(names) for names in self.change_sets], np.bool_)
        return (
            int(np.count_nonzero(self.applied(choices) & needs[self.change_codes]))
            if len(needs)
            else 0
        )

    def applied(self, choices: Choices) -> Flags:
        """Rows of which all repairs that they need are on."""
        is_on = np.array(
            [set(choices.off).isdisjoint(names) for names in self.change_sets], np.bool_
        )
        return is_on[self.change_codes] if len(is_on) else np.empty(0, np.bool_)

    def addresses(self, choices: Choices) -> pa.RecordBatch:
        """The texts to verify as `read_addresses` gives them, with what was changed beside them.

        A cell whose repair is off stays as it is, and what was meant by an accepted suggestion takes the place of a
        text, wherever it is.
        """
        found = without_repairs(self.found, choices.off, self.stripped)
        meant = accepted_texts(found["text"], choices)
        is_accepted = meant.is_valid()
        meant = meant.drop_null()
        done = pc.binary_join_element_wise(found["change"].filter(is_accepted), ACCEPTED, ";")
        change = replace_where(found["change"], is_accepted, pc.utf8_ltrim(done, ";"))
        text = replace_where(found["text"], is_accepted, meant)
        is_several = pc.and_not(pc.greater(found["count"], 1), is_accepted)
        return pa.record_batch(
            {
                "text": text,
                "clean": replace_where(found["clean"], is_accepted, meant),
                "suggestion": texts_where(pc.invert(is_accepted), found["suggestion"]),
                "change": where_filled(self.stripped, change),
                "standing": name_standing(text, is_several),
            }
        )

    def mailboxes(self, read: pa.RecordBatch) -> Mailboxes:
        """The mailbox of each row of the frame, after the repairs that were chosen."""
        distinct = read["clean"].dictionary_encode()
        return find_mailboxes(distinct.dictionary).take(distinct.indices)


def accepted_texts(texts: pa.StringArray, choices: Choices) -> pa.StringArray:
    """For each text what was meant by it, if that is accepted, else null."""
    if not choices.accepted:
        return pa.nulls(len(texts), pa.string())
    written, meant = (
        pa.array(each, pa.string()) for each in zip(*sorted(choices.accepted), strict=True)
    )
    return meant.take(pc.index_in(texts, value_set=written))


def duplicate_examples(first: pa.Int64Array, cells: pd.Series[Any]) -> list[Pair]:
    """A few cells whose mailbox is in an earlier row, that of the earlier row first; `first` has its position."""
    rows = np.flatnonzero(first.is_valid().to_numpy(zero_copy_only=False))[:EXAMPLES].tolist()
    pairs = [(str(cells.iloc[first[row].as_py()]), str(cells.iloc[row])) for row in rows]
    return [
        (short_text(one, LONGEST_EXAMPLE), short_text(other, LONGEST_EXAMPLE))
        for one, other in pairs
    ]
