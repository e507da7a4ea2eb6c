"""The verified rows of an audit: actions, facets, search, sorting and pages. All rows stay in Python.

Rows are held as the Arrow table that a run gave, most of whose columns are codes. A frame is made only of the rows that
are shown or saved.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.lists.mailboxes import find_mailboxes
from ..frames.policy import DROPS_DUPLICATES, REMARK, Policy, decide, decide_rows, find_policy, read_decided
from ..frames.results import BUCKETS, Results
from ..frames.verify import FrameReading
from ..model.table import one_array, texts_where
from ..model.words import ACTIONS, FLAGS, REASON_MEANING, SEVERAL_ADDRESSES, Reason, Status, Verdict, reason_label
from ..reports.wording import REASONLESS
from ..runs.retry import ASK_AGAIN, ERROR_MAX_AGE
from ..table.columns import BY_NAME, COLUMNS, REPAIR_COLUMNS, Column, label_of, to_arrow
from ..table.overwrite import name_columns
from ..table.table import Table
from ..table.text_column import read_values, where_filled
from .source import printable_label, short_text
from .tidy import narrow
from .wording import REPAIR_LABELS

__all__ = ["CORE", "FACETS", "NOTES", "PAGE_ROWS", "AuditedRows", "Listing", "cell_texts"]

PAGE_ROWS = 50
OTHER_COLUMNS = 8  # of the user's own columns that are shown and searched; a file may have hundreds
LONGEST_CELL = 160
MAX_DOMAINS = 200
MAX_MOMENTS = 128  # as codes, which are smaller than times; a run of `mx` has one for each domain
FACETS = ("verdict", "action", "reason", "domain", "repaired")
Rows = npt.NDArray[np.signedinteger[Any]]
Codes = npt.NDArray[np.signedinteger[Any]]  # of the smallest type that can hold them
Flags = npt.NDArray[np.bool_]
NOTES = ("suppressed", "identity", "duplicate_of", "copies", "part")  # columns that the audit itself adds to a list
CORE = tuple(column for column in COLUMNS if column.in_core)


@dataclass(frozen=True)
class AuditedRows:
    """The rows of a run: the user's frame, and the fields from which its result columns are made."""

    frame: pd.DataFrame
    column: Hashable
    table: pa.Table  # a row per row of the frame, as `compact` makes it
    note: dict[str, Any]

    @classmethod
    def of_run(cls, frame: FrameReading, unique: pa.Table, *, is_merged: bool = False) -> AuditedRows:
        """The rows of a run, from its table of distinct addresses; with `is_merged`, duplicates were looked for."""
        table, data, note = frame.rows(unique), frame.tables[0], {**frame.note}
        if is_merged:  # else a column of this name is of an earlier file, which may have had other rows
            note[DROPS_DUPLICATES] = True
        return cls(data.frame, data.column, compact(table.unify_dictionaries().combine_chunks()), note)

    def __len__(self) -> int:
        return len(self.table)

    def to_frame(self, rows: Rows | None = None, columns: Sequence[Column] = COLUMNS) -> pd.DataFrame:
        """The user's frame with result columns: all rows, or some."""
        frame = self.frame if rows is None else self.frame.take(rows)
        table = self.table if rows is None else self.table.take(pa.array(rows))
        data, wanted = Table(frame, self.column), (*columns, *REPAIR_COLUMNS)
        out: pd.DataFrame = data.attach(expand(table), name_columns(data, None, wanted), wanted, self.note)
        return out

    def texts(self, name: str) -> pa.ChunkedArray:
        """A result column of text."""
        return to_arrow(self.table, BY_NAME[name])


class Listing:
    """Verified rows with what a policy does with each, in an order and narrowed down by facets and words."""

    def __init__(self, rows: AuditedRows, policy: Policy | str) -> None:
        self.rows, self.column = rows, rows.column
        self.bucket = self.find_buckets()
        self.reason, self.reasons = self.find_reasons()
        self.domain, self.domains = self.find_domains()
        self.change, self.changes = self.find_changes()
        self.kind, self.examples = self.group_rows()
        self.chosen: dict[str, set[str]] = {name: set() for name in FACETS}
        self.words = ""
        self.is_found: Flags = np.ones(len(rows), np.bool_)  # rows that contain all words
        self.order: Rows | None = None
        self.counted: dict[str, dict[str, int]] = {}  # the rows by value, by facet; kept until something else is chosen
        self.sorted_by: tuple[str, bool] = ("", False)
        self.set_policy(policy)

    # --- what is known about each row --------------------------------------------------------------------------------

    def find_buckets(self) -> npt.NDArray[np.int8]:
        """For each row the position of its verdict in `BUCKETS`, or of its status where it has no verdict."""
        status, names = codes_of(self.rows.table["status"])
        verdict, words = codes_of(self.rows.table["result"])
        by_status = np.array([*(BUCKETS.index(n) if n in BUCKETS else -1 for n in names), -1], np.int8)
        by_verdict = np.array([*map(BUCKETS.index, words), -1], np.int8)
        is_done = np.array([*(name == Status.DONE for name in names), False], np.bool_)
        return np.where(is_done[status], by_verdict[verdict], by_status[status])

    def find_reasons(self) -> tuple[Codes, list[str]]:
        """The word of `why` of each row that is not valid; -1 for none."""
        codes, names = codes_of(self.rows.texts("why"))
        return narrow(np.where(self.bucket == BUCKETS.index(Verdict.VALID), -1, codes), len(names)), names

    def find_domains(self) -> tuple[Codes, list[str]]:
        """The domain of the address of each row; -1 for none."""
        return codes_of(pc.utf8_lower(pc.replace_substring_regex(self.rows.table["clean"], "^.*@", "")))

    def find_changes(self) -> tuple[Codes, list[str]]:
        """The repairs of each row, joined by ``;``; an empty cell has none."""
        codes, names = codes_of(self.rows.table["change"])
        none = names.index("") if "" in names else len(names)
        return narrow(np.where(codes < 0, none, codes), none + 1), names if none < len(names) else [*names, ""]

    def group_rows(self) -> tuple[Codes, Rows]:
        """For each row the number of its kind, of which all rows get the same action; and a row of each kind."""
        kind = self.bucket.astype(np.int64) * (len(self.reasons) + 1) + self.reason + 1
        for name in FLAGS:
            flags = one_array(self.rows.table[name]).fill_null(False)
            kind = kind * 2 + flags.to_numpy(zero_copy_only=False)
        for mask in (self.has_suggestion, self.has_remark(), self.find_advice(), self.is_suppressed, self.is_duplicate):
            kind = kind * 2 + mask
        _, examples, numbers = np.unique(kind, return_index=True, return_inverse=True)
        return narrow(numbers, len(examples)), examples

    @cached_property
    def has_suggestion(self) -> Flags:
        """Rows with a likely typo."""
        found: Flags = pc.is_valid(self.rows.table["suggestion"]).to_numpy()
        return found

    def has_remark(self) -> Flags:
        """Rows with words beside the address that ask for no mail, or say that it is out of use."""
        names = np.array([REMARK in change.split(";") for change in self.changes], np.bool_)
        return names[self.change]

    def find_advice(self) -> Flags:
        """Malformed cells in which an address can be read."""
        invalid = np.flatnonzero(self.bucket == BUCKETS.index(Verdict.INVALID))
        found = np.zeros(len(self.rows), np.bool_)
        if len(invalid):
            found[invalid] = Results(self.rows.to_frame(invalid, CORE), self.column, None).advice["kind"].is_valid()
        return found

    @cached_property
    def is_suppressed(self) -> Flags:
        """Rows on the suppression list."""
        label = label_of(self.column, None, "suppressed")
        if label not in self.rows.frame.columns:
            return np.zeros(len(self.rows), np.bool_)
        found: Flags = self.rows.frame[label].fillna(value=False).to_numpy(np.bool_)
        return found

    @cached_property
    def is_duplicate(self) -> Flags:
        """Rows whose mailbox is in an earlier row, if such rows are to be removed."""
        if not self.rows.note.get(DROPS_DUPLICATES):
            return np.zeros(len(self.rows), np.bool_)
        found: Flags = self.rows.frame[label_of(self.column, None, "duplicate_of")].notna().to_numpy(np.bool_)
        return found

    # --- actions -----------------------------------------------------------------------------------------------------

    def set_policy(self, policy: Policy | str) -> None:
        """Decide about each kind of row."""
        self.counted.clear()
        self.policy = policy
        decided = decide_rows(
            read_decided(self.rows.to_frame(self.examples, CORE), self.column, None), find_policy(policy)
        )
        by_kind = np.array([ACTIONS.index(word) for word in decided["action"].to_pylist()], np.int8)
        self.action = by_kind[self.kind] if len(by_kind) else np.empty(0, np.int8)
        self.find_causes(decided["cause"].to_pylist())
        if self.words:  # they may be in other reasons now
            words, self.words, self.is_found = self.words, "", np.ones(len(self.rows), np.bool_)
            self.search(words)

    def find_causes(self, decisive: Sequence[str | None]) -> None:
        """The cause of each row's action: its reason, or what decided instead."""
        names = []
        for row, cause in zip(self.examples.tolist(), decisive, strict=True):
            reason = self.reasons[self.reason[row]] if self.reason[row] >= 0 else ""
            is_cause = cause and (not reason or cause in ("suppressed", "duplicate"))
            names.append(cause if is_cause else reason)
        self.causes = list(dict.fromkeys(filter(None, names)))
        by_kind = np.array([self.causes.index(name) if name else -1 for name in names], np.int16)
        self.cause = by_kind[self.kind] if len(by_kind) else np.empty(0, np.int16)

    def decide(self, rows: Rows | None = None, columns: Sequence[Column] = CORE) -> pd.DataFrame:
        """Rows with result columns and with the action of each."""
        return decide(self.rows.to_frame(rows, columns), self.column, policy=self.policy)

    def count_actions(self) -> dict[str, int]:
        """Rows by action, always all five."""
        counts = np.bincount(self.action, minlength=len(ACTIONS)).tolist()
        return dict(zip(ACTIONS, counts, strict=True))

    def count_verdicts(self) -> dict[str, int]:
        """Rows by verdict, or by status where there is none; always all of `BUCKETS`."""
        counts = np.bincount(self.bucket, minlength=len(BUCKETS)).tolist()
        return dict(zip(BUCKETS, counts, strict=True))

    def count_left(self) -> int:
        """Rows that are still to be checked, without those that are removed whatever a check finds."""
        is_left = self.bucket == BUCKETS.index(Status.PENDING)
        return int(np.count_nonzero(is_left & ~self.is_suppressed & ~self.is_duplicate))

    def count_unclear(self) -> int:
        """Rows without a clear answer, and rows whose check failed; not those with several addresses."""
        counts = self.count_verdicts()
        several = self.reasons.index(SEVERAL_ADDRESSES) if SEVERAL_ADDRESSES in self.reasons else None
        return counts[Verdict.UNKNOWN] + counts[Status.ERROR] - int(np.count_nonzero(self.reason == several))

    def seconds_to_wait(self) -> float:
        """The seconds after which asking again about them makes sense; 0 if none of the answers is temporary."""
        names = {name for at, name in enumerate(self.reasons) if name in ASK_AGAIN and np.any(self.reason == at)}
        failed = self.count_verdicts()[Status.ERROR] > 0
        return max([*(ASK_AGAIN[name] for name in names), ERROR_MAX_AGE if failed else 0.0])

    # --- facets, words, order ----------------------------------------------------------------------------------------

    def toggle(self, facet: str, value: str) -> None:
        """Choose a value of a facet, or no longer; rows must match one of the values chosen in each facet."""
        self.chosen[facet] ^= {value}
        self.counted.clear()

    def clear(self) -> None:
        """Choose nothing, and search for nothing."""
        for values in self.chosen.values():
            values.clear()
        self.search("")

    def search(self, text: str) -> None:
        """Find the rows that contain all words, in any case, in what is shown."""
        self.counted.clear()
        # With further letters or words, only rows that were found before can be found.
        is_longer = all(any(word in each for each in text.split()) for word in self.words.split())
        left = np.flatnonzero(self.is_found) if is_longer else np.arange(len(self.rows))
        self.words = text
        for word in text.split():
            left = left[self.holding(word, left)]
        self.is_found = np.zeros(len(self.rows), np.bool_)
        self.is_found[left] = True

    def holding(self, word: str, rows: Rows) -> Flags:
        """Which of some rows contain a word."""
        whole = len(rows) == len(self.rows)
        found = np.zeros(len(rows), np.bool_)
        names = [at for at, name in enumerate(self.causes) if word.casefold() in reason_label(name).casefold()]
        if names:
            found |= np.isin(self.cause[rows], names)
        for texts in (self.rows.table["clean"], self.rows.table["suggestion"], *self.own_texts(rows, whole=whole)):
            part = texts if len(texts) == len(rows) else texts.take(pa.array(rows))
            matches = pc.match_substring(part, word, ignore_case=True).fill_null(False)
            found |= np.asarray(matches)
        return found

    def own_texts(self, rows: Rows, *, whole: bool) -> Iterable[pa.Array | pa.ChunkedArray]:
        """The user's columns that are shown, as text."""
        for at in (self.address_at, *self.shown_columns):
            cells = self.rows.frame.iloc[:, at]
            part = cells if whole else cells.take(rows)
            is_text = isinstance(part.dtype, pd.StringDtype)
            yield pa.array(part, from_pandas=True) if is_text else cell_texts(part, None)

    def mask(self, *, without: str = "") -> Flags:
        """Rows that match the words and the facets, but for one of these."""
        mask = self.is_found
        for facet in FACETS:
            if facet != without and self.chosen[facet]:
                mask = mask & self.matches(facet, self.chosen[facet])
        return mask

    def matches(self, facet: str, values: set[str]) -> Flags:
        """Rows with one of the values of a facet."""
        if facet == "repaired":
            return np.array([bool(values & set(names.split(";"))) for names in self.changes], np.bool_)[self.change]
        codes, names = self.coded(facet)
        return np.isin(codes, [at for at, name in enumerate(names) if name in values])

    def coded(self, facet: str) -> tuple[Any, Sequence[str]]:
        """The codes of the rows in a facet, and what they stand for."""
        return {
            "verdict": (self.bucket, BUCKETS),
            "action": (self.action, ACTIONS),
            "reason": (self.cause, self.causes),
            "domain": (self.domain, self.domains),
        }[facet]

    def count(self, facet: str) -> dict[str, int]:
        """Rows by value of a facet, of those that match everything else.

        The values are those of all rows, so that they stay where they are while others are chosen; of domains the most
        frequent ones that match.
        """
        if facet not in self.counted:
            self.counted[facet] = self.count_anew(facet)
        return self.counted[facet]

    def count_anew(self, facet: str) -> dict[str, int]:
        mask = self.mask(without=facet)
        if facet == "repaired":
            counts = np.bincount(self.change[mask], minlength=len(self.changes))
            names = [set(each.split(";")) for each in self.changes]
            return {
                name: sum(int(n) for n, each in zip(counts, names, strict=True) if name in each)
                for name in REPAIR_LABELS
                if any(name in each for each in names)
            }
        codes, values = self.coded(facet)
        part = codes[mask]
        counts = np.bincount(part[part >= 0], minlength=len(values))
        if facet == "domain":
            order = np.argsort(-counts, kind="stable")[:MAX_DOMAINS].tolist()
            return {values[at]: int(counts[at]) for at in order if counts[at]}
        whole = np.bincount(codes[codes >= 0], minlength=len(values))
        order = np.argsort(-whole, kind="stable").tolist() if facet == "reason" else list(range(len(values)))
        return {values[at]: int(counts[at]) for at in order if whole[at]}

    def sort(self, key: str) -> None:
        """Sort by a column; the same column again reverses the order, and a third time restores that of the frame."""
        by, is_reversed = self.sorted_by
        if key == by and is_reversed:
            self.sorted_by, self.order = ("", False), None
            return
        self.sorted_by = (key, key == by)
        if key == by and self.order is not None:
            self.order = self.order[::-1]
        else:
            self.order = narrow(self.sorted_rows(key), len(self.rows))

    def sorted_rows(self, key: str) -> Rows:
        """All rows in the order of a column; rows without a value come last."""
        codes = {"verdict": self.bucket, "action": self.action}.get(key)
        if key == "reason":
            labels = [reason_label(name) for name in self.causes]
            rank = np.array([*np.argsort(np.argsort(labels)), len(labels)])
            codes = rank[self.cause]
        if codes is not None:
            return np.argsort(codes, kind="stable")
        values = (
            self.rows.table[key] if key in ("clean", "suggestion") else self.sortable(int(key.removeprefix("column ")))
        )
        order: Rows = pc.sort_indices(values).to_numpy()
        return order

    def sortable(self, at: int) -> pa.Array:
        """A column of the user as an Arrow array that can be sorted."""
        cells = self.rows.frame.iloc[:, at]
        try:
            values = pa.array(cells, from_pandas=True)
            values = values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values
            pc.sort_indices(values[:1])
        except (pa.ArrowException, TypeError, ValueError, UnicodeError, OverflowError):
            return cell_texts(cells, None)
        return values

    def found(self) -> Rows:
        """The rows that match everything, in their order."""
        mask = self.mask()
        if self.order is None:
            return narrow(np.flatnonzero(mask), len(self.rows))
        return self.order[mask[self.order]]

    # --- what is shown -----------------------------------------------------------------------------------------------

    @cached_property
    def address_at(self) -> int:
        """Position of the verified column."""
        names: list[Any] = list(self.rows.frame.columns)
        return names.index(self.column)

    @cached_property
    def own_columns(self) -> list[int]:
        """Positions of the user's own columns besides the verified one."""
        ours = {label_of(self.column, None, name) for name in NOTES}
        names = list(self.rows.frame.columns)
        return [at for at, name in enumerate(names) if at != self.address_at and name not in ours]

    @property
    def shown_columns(self) -> list[int]:
        """Positions of those of the own columns that are shown."""
        return self.own_columns[:OTHER_COLUMNS]

    def columns_left_out(self) -> int:
        """How many of the user's columns are not shown."""
        return len(self.own_columns) - len(self.shown_columns)

    def heads(self) -> list[dict[str, str]]:
        """The columns of the table: the address and the result first, then some of the user's own."""
        names = self.rows.frame.columns
        heads = [{"key": f"column {self.address_at}", "label": printable_label(names[self.address_at])}]
        heads += [{"key": "verdict", "label": "Verdict"}, {"key": "reason", "label": "Why"}]
        heads += [{"key": "action", "label": "What to do"}]
        if any(name for name in self.changes):
            heads.append({"key": "clean", "label": "Repaired"})
        if self.has_suggestion.any():
            heads.append({"key": "suggestion", "label": "Did you mean"})
        return heads + [{"key": f"column {at}", "label": printable_label(names[at])} for at in self.shown_columns]

    def page(self, rows: Rows) -> list[dict[str, Any]]:
        """Some rows as texts of bounded length: position, verdict, action, and cells by the keys of `heads`."""
        out = self.decide(rows, COLUMNS)
        cells = {"clean": self.cleaned(rows, out), "suggestion": self.result_texts(out, "suggestion")}
        for at in (self.address_at, *self.shown_columns):
            cells[f"column {at}"] = cell_texts(self.rows.frame.iloc[:, at].take(rows), LONGEST_CELL).to_pylist()
        why, said = self.result_texts(out, "action_why"), self.result_texts(out, "error_message")
        repeats = self.repeats(rows)
        shown = []
        for at, row in enumerate(rows.tolist()):
            label = reason_label(self.causes[self.cause[row]]) if self.cause[row] >= 0 else ""
            texts = {key: values[at] or "" for key, values in cells.items()}
            shown.append(
                {
                    "row": f"{row + 1:,}",
                    "verdict": BUCKETS[self.bucket[row]],
                    "action": ACTIONS[self.action[row]],
                    "reason": short_text(label or REASONLESS if BUCKETS[self.bucket[row]] == "valid" else label, 80),
                    "why": repeats.get(row) or join_causes(why[at], said[at]),
                    "cells": texts,
                }
            )
        return shown

    def repeats(self, rows: Rows) -> dict[int, str]:
        """By position, which row some rows repeat, if that is why they are removed."""
        is_named = np.array([name == "duplicate" for name in self.causes] + [False], np.bool_)
        found = rows[is_named[self.cause[rows]]]
        if not len(found):
            return {}
        # An index may have a label several times: of the rows with these labels, those with the same mailbox are meant.
        labels = self.rows.frame[label_of(self.column, None, "duplicate_of")].take(found)
        firsts = np.flatnonzero(self.rows.frame.index.isin(labels) & ~self.is_duplicate)
        row_of = dict(zip(self.mailboxes(firsts)[::-1], firsts[::-1].tolist(), strict=True))
        named = {}
        for row, mailbox in zip(found.tolist(), self.mailboxes(found), strict=True):
            first = row_of.get(mailbox)
            if mailbox is not None and first is not None:
                address = short_text(self.rows.table["clean"][first].as_py(), LONGEST_CELL)
                named[row] = f"the same mailbox as row {first + 1:,}: {address}"
        return named

    def mailboxes(self, rows: Rows) -> list[str | None]:
        """The mailbox of some rows, the same text for all its addresses."""
        texts = one_array(self.rows.table["clean"].take(pa.array(rows)))
        mailboxes: list[str | None] = find_mailboxes(texts).names.to_pylist()
        return mailboxes

    def result_texts(self, out: pd.DataFrame, name: str) -> list[str | None]:
        """A result column of a few rows as texts of bounded length."""
        texts: list[str | None] = cell_texts(out[label_of(self.column, None, name)], 2 * LONGEST_CELL).to_pylist()
        return texts

    def cleaned(self, rows: Rows, out: pd.DataFrame) -> list[str | None]:
        """The repaired addresses of a few rows; None where nothing was repaired."""
        texts = self.result_texts(out, "clean")
        return [
            text if self.changes[self.change[row]] else None for row, text in zip(rows.tolist(), texts, strict=True)
        ]


def join_causes(why: str | None, said: str | None) -> str:
    """Why a row has its action and what the check reported, without saying twice that a domain receives no mail.

    >>> join_causes("invalid: the domain does not exist or accepts no mail", "the domain does not exist")
    'invalid: the domain does not exist'
    """
    if why and said and why.endswith(f": {REASON_MEANING[Reason.NO_MX_RECORD]}"):
        return f"{why.partition(': ')[0]}: {said}"
    return "; ".join(dict.fromkeys(filter(None, (why, said))))


def compact(table: pa.Table) -> pa.Table:
    """The table with the smallest codes, and in `normalized` only what differs from `clean`.

    A service may give an empty text there, so that a column of its own says where there is none.
    """
    table = table.append_column("has_normalized", table["normalized"].is_valid())
    for at, name in enumerate(table.column_names):
        column = one_array(table[name])
        if name == "normalized":
            column = difference(column, one_array(table["clean"])).dictionary_encode()
        elif name == "checked_at":
            moments = column.dictionary_encode()
            column = moments if len(moments.dictionary) < MAX_MOMENTS else column
        if pa.types.is_dictionary(column.type):
            kind = pa.from_numpy_dtype(np.min_scalar_type(-max(len(column.dictionary), 1)))
            column = pa.DictionaryArray.from_arrays(column.indices.cast(kind), column.dictionary)
        table = table.set_column(at, name, column)
    return table


def expand(table: pa.Table) -> pa.Table:
    """Rows of a compact table with the whole texts in `normalized`."""
    texts = pc.coalesce(table["normalized"].cast(pa.string()), table["clean"])
    at = table.schema.get_field_index("normalized")
    whole = table.set_column(at, "normalized", texts_where(table["has_normalized"], texts))
    return whole.drop_columns("has_normalized")


def difference(texts: pa.StringArray, others: pa.StringArray) -> pa.StringArray:
    """The texts that differ from those of the same row in another column, else null."""
    return texts_where(pc.not_equal(texts, others).fill_null(True), texts)


def codes_of(column: pa.ChunkedArray) -> tuple[Codes, list[str]]:
    """The codes of a column of text and what they stand for; -1 for null."""
    whole = one_array(column)
    coded = whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()
    codes = coded.indices.cast(pa.int32()).fill_null(-1).to_numpy(zero_copy_only=False)
    return narrow(codes, len(coded.dictionary)), coded.dictionary.to_pylist()


def cell_texts(cells: pd.Series[Any], longest: int | None) -> pa.Array:
    """Cells of any dtype as texts; a missing one is null."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(object)
    if isinstance(cells.dtype, pd.StringDtype) or cells.dtype == object:
        texts = read_values(cells, for_repair=True).texts
        texts = where_filled(texts, texts)
    else:
        try:
            values = pa.array(cells, from_pandas=True)
            texts = one_array(values).cast(pa.string())
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            texts = pa.array([cell_text(cell, longest or LONGEST_CELL) for cell in cells], pa.string())
    return texts if longest is None else pc.utf8_slice_codeunits(texts, 0, longest)


def cell_text(cell: Any, longest: int) -> str | None:
    """One cell as text of bounded length."""
    if pd.api.types.is_scalar(cell) and pd.isna(cell):
        return None
    return short_text(str(cell), longest)
