"""Columns on their way to a verdict, as one table; and the answers put beside the caller's rows.

`read_addresses` reads the cells of one or several columns, all rows of one and then those of the
next, and repairs them. Its table has a row for each cell; each further step adds columns:

    text           clean          change     standing  |  answer  standing  |  verdict ...
    ada@firm.com   ada@firm.com   unwrapped            |  0                 |  valid
    (empty)                                  missing   |          missing   |
    a@b.de; c@d.de                           several   |          several   |  unknown
    ada@firm.com   ada@firm.com                        |  0                 |  valid

- `text`: stripped and, where there is an address, repaired; empty where the cell is missing.
- `clean`, `suggestion`, `change`, `rescued`: what was repaired; only where cells are repaired.
  `rescued`: the text is an address only since then.
- `wanted`: false for a row that is not verified if the type uses a network. The column is missing
  if all rows are wanted.
- `standing`: why nothing is asked about the row: missing, several, pending, known; null where there
  is an answer.
- `well_formed`, `local` and the others of `SYNTAX`: the syntax check of `text`, where it was kept.
  In a rescued row only `well_formed` is set; `Reading.syntax` checks these rows again.
- `answer`: the row of its answer among those of the distinct addresses that are asked
  (`number_answers`).
- `known`: the row of what another verifier settled.

A `Reading` then joins the answers to the rows, and attaches them to the caller's frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.lists.mailboxes import find_mailboxes
from ..checks.syntax.column import (
    MAY_BE_ODD_FORM,
    accept_odd_forms,
    observe_column,
)
from ..model.address import address_keys
from ..model.arrow import one_array, one_batch, replace_where, take_rows, to_bools
from ..model.table import SCHEMA, SOURCE_LOCAL, TEXT_CODES, complete_table
from ..model.words import SEVERAL_ADDRESSES, Status, Verdict
from ..repair.repair import MAX_CELL
from ..runs.execution import unique_addresses
from ..table.cells import (
    cut_long,
    describe_no_address,
    is_filled,
    join_texts,
    read_cells,
    read_texts,
    where_filled,
)
from ..table.columns import CATEGORIES, REPAIR_COLUMNS
from ..table.options import ColumnChoice, each_column
from ..table.result_columns import ResultColumns
from ..table.table import Table
from .clean import repair_column

if TYPE_CHECKING:
    from .verifiers import KnownAnswers

MISSING, SEVERAL, PENDING, KNOWN = "missing", "several", "pending", "known"
STANDING_ROWS = [MISSING, PENDING, SEVERAL]  # those whose rows are the same for all
SYNTAX = ["well_formed", "local", "domain", "display", "as_written"]


# --- the cells ------------------------------------------------------------------------------------


def read_addresses(
    columns: Sequence[Any],
    *,
    clean: bool,
    keep_syntax: bool = False,
    kept: Sequence[pa.RecordBatch | None] | None = None,
) -> pa.RecordBatch:
    """Read columns of cells.

    With `clean` the address that the safe repairs find in a cell takes its place.

    A cell without such an address stays as it is. `kept` has for each column what was repaired
    before (see `ExistingResults`), or None. With `keep_syntax` the syntax is checked, and the check
    is kept.

    >>> rows = read_addresses([["Ada <ada@example.org>", None], ["nobody", ""]], clean=True)
    >>> rows["text"].to_pylist(), rows["standing"].to_pylist()
    (['ada@example.org', '', 'nobody', ''], [None, 'missing', None, 'missing'])
    """
    if clean:
        return read_repaired(columns, keep_syntax=keep_syntax, kept=kept or [None] * len(columns))
    text = join_texts([read_texts(column) for column in columns])
    rows = {"text": text, "standing": name_standing(text)}
    if keep_syntax:
        seen = observe_column(text)
        rows.update({name: seen[name] for name in SYNTAX})
    return pa.record_batch(rows)


def read_repaired(
    columns: Sequence[Any], *, keep_syntax: bool, kept: Sequence[pa.RecordBatch | None]
) -> pa.RecordBatch:
    cells = []
    for column, repairs in zip(columns, kept, strict=True):
        instead = None if repairs is None else repairs["clean"]
        cells.append(read_cells(column, longest=MAX_CELL, instead=instead))
    written = join_texts([part["text"] for part in cells])
    stripped = join_texts([part["stripped"] for part in cells])
    seen = observe_column(stripped)
    # `verify` suggests them.
    repaired = repair_column(written, stripped, seen, suggests_domains=False)
    text, clean, change = repaired["text"], repaired["clean"], repaired["change"]
    is_rescued = pc.and_not(clean.is_valid(), seen["well_formed"])
    if any(repairs is not None for repairs in kept):
        before = join_kept(columns, kept)
        was_repaired = pc.or_(before["clean"].is_valid(), before["change"].is_valid())
        text = pc.if_else(was_repaired, stripped, text)
        clean = pc.if_else(was_repaired, before["clean"], clean)
        change = pc.if_else(was_repaired, before["change"].fill_null(""), change)
        is_rescued = pc.and_not(is_rescued, was_repaired)
        seen = accept_odd_forms(seen)
    text = cut_long(text)
    rows = {
        "text": text,
        "clean": clean,
        "suggestion": repaired["suggestion"],
        "change": where_filled(text, change),
        "rescued": is_rescued,
        "standing": name_standing(text, pc.greater(repaired["count"], 1)),
    }
    if keep_syntax:
        # The canonical form of an accepted text has the same normal form.
        rows.update({name: seen[name] for name in SYNTAX})
        rows["well_formed"] = pc.or_(seen["well_formed"], is_rescued)
    return pa.record_batch(rows)


def join_kept(columns: Sequence[Any], kept: Sequence[pa.RecordBatch | None]) -> pa.RecordBatch:
    """What was repaired before, as `clean` and `change`; null in new rows, in which nothing was.

    Where the short set of columns does not say what was done, it is found again in the cells.
    """
    cleans, changes = [], []
    for column, repairs in zip(columns, kept, strict=True):
        if repairs is None:
            nothing = pa.nulls(len(column), pa.string())
            cleans.append(nothing)
            changes.append(nothing)
            continue
        cleans.append(repairs["clean"])
        if "change" in repairs.schema.names:
            changes.append(repairs["change"])
            continue
        cells = read_cells(column, longest=MAX_CELL)
        repaired = repair_column(cells["text"], cells["stripped"], suggests_domains=False)
        nothing = pa.nulls(len(column), pa.string())
        changes.append(pc.if_else(repairs["clean"].is_valid(), repaired["change"], nothing))
    return pa.record_batch({"clean": join_texts(cleans), "change": join_texts(changes)})


def name_standing(
    text: pa.StringArray, is_several: pa.BooleanArray | None = None
) -> pa.StringArray:
    """Why nothing is asked about each row, in a word; null where something may be."""
    standing = pa.nulls(len(text), pa.string())
    is_missing = pc.invert(is_filled(text))
    if is_missing.true_count:
        standing = pc.if_else(is_missing, MISSING, standing)
    if is_several is not None and is_several.true_count:
        standing = pc.if_else(is_several, SEVERAL, standing)
    return standing


def find_odd_forms(rows: pa.RecordBatch) -> pa.BooleanArray:
    """Rows whose text is an address in a form that no service is asked about.

    See `accept_leniently`.
    """
    text = rows["text"]
    may_be_odd = pc.match_substring_regex(text, MAY_BE_ODD_FORM)
    candidates = text.filter(may_be_odd)
    is_accepted = observe_column(candidates, lenient=True)["well_formed"]
    is_plain = observe_column(candidates)["well_formed"]
    return replace_where(may_be_odd, may_be_odd, pc.and_not(is_accepted, is_plain))


def count_standing(rows: pa.RecordBatch, word: str) -> int:
    """How many rows have a standing."""
    return int(pc.sum(pc.equal(rows["standing"], word)).as_py() or 0)


def describe_columns(rows: pa.RecordBatch, column: ColumnChoice | None) -> list[str]:
    """A warning for each column without an address."""
    labels = each_column(column)
    size = len(rows) // len(labels)
    notices = []
    for at, label in enumerate(labels):
        notice = describe_no_address(rows["text"].slice(at * size, size), label)
        if notice:
            notices.append(notice)
    return notices


# --- what is asked --------------------------------------------------------------------------------


def number_answers(
    rows: pa.RecordBatch, *, is_free: bool, known: KnownAnswers | None = None
) -> tuple[pa.StringArray, pa.RecordBatch]:
    """The texts to verify, and the rows with `answer`, `known` and the rest of `standing`.

    Without `answer` the answers are in the order of the rows. The texts of a free type are not made
    unique: hashing a million texts takes longer than checking them. A row that is not wanted gets
    the answer of another row with its address or mailbox, else it is pending.
    """
    text, standing = rows["text"], rows["standing"]
    columns = {name: rows[name] for name in rows.schema.names}
    is_open = standing.is_null()
    if known is not None:
        columns["known"] = known.find(text)
        is_known = pc.and_(is_open, columns["known"].is_valid())
        is_open = pc.and_not(is_open, is_known)
        standing = pc.if_else(is_known, KNOWN, standing)
    is_asked = is_open
    if "wanted" in columns and not is_free:
        is_asked = pc.and_(is_open, columns["wanted"])
    if is_free and not is_asked.false_count:
        return text, rows

    asked = text.filter(is_asked) if is_asked.false_count else text
    if is_free:
        numbers = np.arange(len(asked), dtype=np.int32)
    else:
        asked, numbers = unique_addresses(asked)
    answer = pa.nulls(len(rows), pa.int32())
    answer = pc.replace_with_mask(answer, is_asked, pa.array(numbers, pa.int32()))
    is_left = pc.and_not(is_open, is_asked)
    if is_left.true_count:
        answer = pc.replace_with_mask(answer, is_left, find_same(text.filter(is_left), asked))
        is_pending = pc.and_(is_left, answer.is_null())
        standing = pc.if_else(is_pending, PENDING, standing)
    columns.update(answer=answer, standing=standing)
    return asked, pa.record_batch(columns)


def find_same(texts: pa.StringArray, asked: pa.StringArray) -> pa.Int32Array:
    """The row among `asked` of the same address, else of the same mailbox, else null."""
    same = pc.index_in(address_keys(texts), value_set=asked)
    names = find_mailboxes(texts).names
    same_mailbox = pc.index_in(names, value_set=find_mailboxes(asked).names, skip_nulls=True)
    return pc.coalesce(same, same_mailbox)


# --- the answers ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    """Columns that were read and numbered.

    Called with an answer for each of `asked`, it attaches the results.
    """

    tables: Sequence[Table]  # the caller's data, with each of its columns to verify
    results: Sequence[ResultColumns]  # those of each of them
    rows: pa.RecordBatch  # see the top of this file
    asked: pa.StringArray  # the addresses to verify: distinct ones, unless the type is free
    note: dict[str, Any]  # what makes the answers
    # For the user: which repaired addresses are verified.
    notices: Sequence[str] = field(default=())
    known: KnownAnswers | None = None  # what another verifier settled

    def __call__(self, answers: pa.Table) -> Any:
        """The caller's kind of result."""
        rows = self.join(answers)
        size = len(rows) // len(self.tables)
        frame = None
        for position, table in enumerate(self.tables):
            part = rows.slice(position * size, size)
            result = self.results[position]
            for column in result.emptied.values():
                kind = TEXT_CODES if column.kind in CATEGORIES else pa.string()
                part = part.append_column(column.field, pa.nulls(size, kind))
            columns = {**result.columns, **result.emptied}
            # The first has the caller's data; each next one has the frame that the one before made.
            whole = table if frame is None else Table(frame, table.column)
            frame = whole.attach(part, list(columns), list(columns.values()), self.note)
        return frame

    def syntax(self) -> pa.RecordBatch | None:
        """The check of the texts that are asked, if it was kept and has their order."""
        if "well_formed" not in self.rows.schema.names:
            return None
        seen = self.rows.select(SYNTAX)
        checks = [seen]
        positions = np.arange(len(seen), dtype=np.int32)
        if "rescued" in self.rows.schema.names and self.rows["rescued"].true_count:
            rescued = self.rows["rescued"]
            again = observe_column(self.rows["text"].filter(rescued), lenient=True)
            checks.append(again.select(SYNTAX))
            positions[to_bools(rescued)] = np.arange(len(again)) + len(seen)
        if "answer" in self.rows.schema.names:
            is_asked = to_bools(self.rows["answer"].is_valid())
            positions = positions[is_asked]
        if len(positions) != len(self.asked):
            return None
        if len(checks) > 1 or len(positions) < len(seen):
            seen = one_batch(take_rows(pa.Table.from_batches(checks), positions))
        return seen.add_column(0, "text", self.asked)

    def renumbered(self, numbers: pa.Int32Array) -> Reading:
        """The same for other answers.

        `numbers` has the row among them for each of `asked`.
        """
        if "answer" in self.rows.schema.names:
            numbers = numbers.take(self.rows["answer"])
        return replace(self, rows=with_column(self.rows, "answer", numbers))

    def fields(self) -> list[str]:
        """Fields of the answers that the columns are made from."""
        fields = {"status": None, "spamtrap": None}
        for result in self.results:
            for column in result.columns.values():
                fields.update(dict.fromkeys(column.fields))
        return [name for name in fields if name in SCHEMA.names]

    def join(self, answers: pa.Table) -> pa.Table:
        """A row for each of `rows`, with its answer and what was repaired."""
        fields = self.fields()
        joined = answers.select(fields)
        if "answer" in self.rows.schema.names:
            joined = self.take_answers(joined, fields)
        if "clean" not in self.rows.schema.names:
            return joined
        suggestion = self.rows["suggestion"]
        if "suggestion" in fields and suggestion.null_count < len(suggestion):
            suggested = one_array(joined["suggestion"].cast(pa.string()))
            joined = put_field(joined, "suggestion", pc.coalesce(suggested, suggestion))
        if "normalized" in fields and "wanted" in self.rows.schema.names:
            # A row that is not wanted has the answer of another one, but an address of its own.
            normalized = one_array(joined["normalized"])
            own = pc.if_else(normalized.is_valid(), self.rows["clean"], normalized)
            joined = put_field(
                joined, "normalized", pc.if_else(self.rows["wanted"], normalized, own)
            )
        for column in REPAIR_COLUMNS:
            joined = joined.append_column(column.field, self.rows[column.field])
        return joined

    def take_answers(self, answers: pa.Table, fields: Sequence[str]) -> pa.Table:
        """The answer of each row, or the row for its standing, or what another verifier settled.

        The three tables are put one below the other, and each row of `rows` takes one row of the
        whole.
        """
        validation_type = self.note["validation_type"]
        standing = standing_rows(validation_type)
        words = pa.array(STANDING_ROWS)
        at = self.rows["answer"]
        of_standing = pc.index_in(self.rows["standing"], value_set=words, skip_nulls=True)
        at = pc.coalesce(at, pc.add(of_standing, len(answers)))
        parts = [answers, standing.select(fields)]
        if self.known is not None and "known" in self.rows.schema.names:
            of_known = pc.add(self.rows["known"].cast(pa.int32()), len(answers) + len(standing))
            at = pc.coalesce(at, of_known)
            parts.append(self.known.rows.select(fields))
        return take_rows(pa.concat_tables(parts), at.to_numpy())


def with_column(rows: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    """The rows with a column added, or in the place of the one with its name."""
    columns = {old: rows[old] for old in rows.schema.names}
    columns[name] = values
    return pa.record_batch(columns)


def put_field(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, values)


def standing_rows(validation_type: str) -> pa.Table:
    """The rows of a missing cell, of one that is pending, and of one with several addresses."""
    words = {  # in the order of `STANDING_ROWS`
        "status": (Status.MISSING, Status.PENDING, Status.DONE),
        "validation_type": (None, validation_type, validation_type),
        "result": (None, None, Verdict.UNKNOWN),
        "reasons": (None, None, SEVERAL_ADDRESSES),
        "source": (None, None, SOURCE_LOCAL),
    }
    columns = {}
    for name, values in words.items():
        columns[name] = pa.array(values, pa.string()).dictionary_encode()
    moments = [None, None, datetime.now(UTC)]
    columns["checked_at"] = pa.array(moments, SCHEMA.field("checked_at").type)
    return complete_table(columns, len(moments))
