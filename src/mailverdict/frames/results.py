"""The result columns of a verified frame or file of any kind, as Arrow arrays by their names without prefix."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.syntax.column import observe_column
from ..errors import ColumnError, InputError
from ..model.arrow import Bools, one_array, replace_texts, texts_where, to_bools
from ..model.words import SEVERAL_ADDRESSES, Reason, Status, Verdict
from ..repair.repair import MAX_CELL
from ..table.cells import is_text, read_cells, read_present, strip_texts, to_array, where_filled
from ..table.columns import (
    COLUMNS,
    RESULT_NAMES,
    SUPPRESS_COLUMNS,
    check_column,
    is_short,
    label_of,
    why,
)
from ..table.overwrite import find_verified
from ..table.table import frame_of, table_of
from .clean import DID_YOU_MEAN, advise, repair_column

# The five buckets of the contract, then the rows that were not processed or have no address.
BUCKETS = (*map(str, Verdict), str(Status.ERROR), str(Status.PENDING), str(Status.MISSING))
# Flags as text, in lower case; the last ones are what becomes of a missing one.
TRUTH: dict[str, bool | None] = {
    **dict.fromkeys(("true", "1", "1.0"), True),
    **dict.fromkeys(("false", "0", "0.0"), False),
    **dict.fromkeys(("<na>", "nan", "none")),
}
COLUMN_KINDS = {each.name: each.kind for each in (*COLUMNS, *SUPPRESS_COLUMNS)}
COLUMN_KINDS["wave_at"] = "moment"
# Rows are not verified without them; of `why` and `details` one says what the other would.
VERIFIED = ("verdict", "why", "details", "status")
JUDGED = ("verdict", "status", "why")
WAITING = "waiting"  # the decision for a suggested address that is not verified yet
LONGEST_KEPT = 320  # characters of a cell


class Results:
    """A verified column: its cells and its result columns, typed as `verify` made them also where a file made texts.

    Each column is read when it is asked for; one that the frame does not have is null in all rows. Raises a
    `ColumnError` if one of `names` is not there, and an `InputError` for a column with what `verify` never writes. For
    `why` the columns of earlier releases will do. Without a column it is the only one that was verified.
    """

    def __init__(
        self, out: Any, column: Hashable | None, prefix: str | None, names: Iterable[str] = JUDGED
    ) -> None:
        if column is None:
            out = frame_of(out)
            column, prefix = find_verified(out, prefix)
        self.data = table_of(out, column, is_verified=True)
        self.column, self.prefix = column, prefix
        self.existing = frozenset(self.data.labels())
        self.read: dict[str, pa.Array] = {}  # by name
        self.require(name for name in names if not (name == "why" and "details" in self))
        self.is_short = is_short([name for name in RESULT_NAMES if name in self])
        # Else another one's `clean`.
        self.is_cleaned = "clean" in self and ("change" in self or self.is_short)

    def require(self, names: Iterable[str]) -> None:
        """Raise a `ColumnError` if a result column is not there."""
        if absent := [name for name in names if name not in self]:
            label = label_of(self.column, self.prefix, absent[0])
            raise ColumnError(
                f"no column {label!r}: verify {self.column!r} first, or give the prefix that was used"
            )

    def __len__(self) -> int:
        return len(self.data.frame)

    def __contains__(self, name: str) -> bool:
        return label_of(self.column, self.prefix, name) in self.existing

    def __getitem__(self, name: str) -> pa.Array:
        if name not in self.read:
            label, values = label_of(self.column, self.prefix, name), pa.nulls(len(self))
            if name in self:
                check_column(label, self.data.labels())
                values = to_array(self.data.cells(label))
            try:
                self.read[name] = READ[COLUMN_KINDS.get(name, "text")](values)
            except Foreign as exc:
                raise InputError(
                    f"column {label!r} holds {exc.args[0]!r}, which verify never writes"
                ) from exc
        return self.read[name]

    @cached_property
    def buckets(self) -> pa.DictionaryArray:
        """For each row the verdict if there is one, else the status; codes of `BUCKETS`.

        A row without a status, as a join leaves it, is pending, or missing if its cell is empty.
        """
        status, words = self["status"], pa.array(BUCKETS)
        if status.null_count:
            status = pc.coalesce(
                status, pc.if_else(self.texts.is_null(), str(Status.MISSING), str(Status.PENDING))
            )
        # "done" is not one of them.
        codes = pc.coalesce(pc.index_in(status, words), pc.index_in(self["verdict"], words))
        return pa.DictionaryArray.from_arrays(codes, words)

    @cached_property
    def why(self) -> pa.StringArray:
        """Why each row has its verdict, in a word; earlier releases wrote the reason and the error code only."""
        if "why" in self:
            # The reason counts, should somebody have changed it.
            return pc.coalesce(self["details"], self["why"])
        coded = (
            pa.chunked_array([self[name].dictionary_encode()])
            for name in ("details", "error", "verdict")
        )
        return one_array(why(*coded))

    @cached_property
    def is_several(self) -> Bools:
        """Rows whose cell holds several addresses, which nobody could verify."""
        return to_bools(pc.equal(self.why, SEVERAL_ADDRESSES).fill_null(False))

    @cached_property
    def texts(self) -> pa.StringArray:
        """The cells with the blanks around them; null where a cell is missing."""
        texts = read_cells(self.data.values(), longest=MAX_CELL)["text"]
        return where_filled(texts, texts)

    @cached_property
    def is_malformed(self) -> Bools:
        """Rows that are invalid since what was verified is not an address; earlier releases do not say why."""
        is_invalid = pc.equal(self.buckets, str(Verdict.INVALID)).fill_null(False)
        return to_bools(
            pc.and_(is_invalid, pc.equal(self.why, str(Reason.SYNTAX_ERROR)).fill_null(True))
        )

    @cached_property
    def is_of_clean(self) -> Bools:
        """Rows whose verdict is about the cleaned address.

        A frame may have been cleaned by `clean` and verified as it was; but a cleaned address is never malformed.
        """
        return to_bools(self["clean"].is_valid()) & ~(
            self.is_malformed & to_bools(self.why.is_valid())
        )

    @cached_property
    def addresses(self) -> pa.StringArray:
        """The cells as text, and the cleaned addresses in place of cells that were cleaned and then verified."""
        if not self.is_cleaned:
            return self.texts
        return pc.if_else(pa.array(self.is_of_clean), self["clean"], self.texts)

    @cached_property
    def change(self) -> pa.StringArray:
        """What was repaired; found again in the cells where the short set does not say it."""
        if "change" in self or not self.is_cleaned:
            return self["change"]
        at = np.flatnonzero(
            to_bools(pc.not_equal(self["clean"], self.texts.fill_null("")).fill_null(False))
        )
        found = repair_column(self.texts.take(pa.array(at)).fill_null(""), suggests_domains=False)
        return replace_texts(self["change"], at, found["change"])

    @cached_property
    def decision(self) -> pa.StringArray:
        """What a person decided: one of `DECISIONS`, or `WAITING`. One column alone is the user's own: null."""
        if "decision" not in self or "decided_address" not in self:
            return pa.nulls(len(self), pa.string())
        word = self["decision"]
        is_verified = pc.equal(self["decided_address"], self["clean"]).fill_null(False)
        return pc.if_else(
            pc.and_not(pc.equal(word, "suggestion").fill_null(False), is_verified), WAITING, word
        )

    @cached_property
    def advice(self) -> pa.Table:
        """What to do with each malformed cell that holds or suggests an address: `kind` and `text`, null in other rows.

        Not with a verdict on a cleaned address. What a cleaned cell without an address suggests is in its row.
        """
        at = np.flatnonzero((self.is_malformed | self.is_several) & ~self.is_of_clean)
        at = at[
            ~to_bools(
                observe_column(strip_texts(self.texts.take(pa.array(at)).fill_null("")))[
                    "well_formed"
                ]
            )
        ]
        cells, meant, clean = (
            each.take(pa.array(at)) for each in (self.texts, self["suggestion"], self["clean"])
        )
        is_known = pc.and_(meant.is_valid(), clean.is_null() if self.is_cleaned else False)
        asked = texts_where(pc.invert(is_known), cells).dictionary_encode()
        advised = [advise_kept(text) for text in asked.dictionary.to_pylist()]
        kind, said = (
            pa.array([each[i] for each in advised], pa.string()).take(asked.indices) for i in (0, 1)
        )
        known = pc.binary_join_element_wise(DID_YOU_MEAN, meant, "?", "")
        columns = {
            "kind": pc.if_else(is_known, "typo", kind),
            "text": pc.if_else(is_known, known, said),
        }
        nothing = pa.nulls(len(self), pa.string())
        return pa.table(
            {name: replace_texts(nothing, at, values) for name, values in columns.items()}
        )


def advise_kept(text: str) -> tuple[str | None, str | None]:
    """As `advise`; kept for texts of usual length, since the same cells come again in other pieces of a file."""
    return advise_short(text) if len(text) <= LONGEST_KEPT else advise(text)


advise_short = lru_cache(1 << 15)(advise)


def with_core(table: pa.Table, column: Hashable, prefix: str | None) -> pa.Table:
    """The table of a verified file with nulls for the columns of the core that it lacks; without rows for all."""
    for each in COLUMNS:
        label = str(label_of(column, prefix, each.name))
        if (
            each.in_core
            and label not in table.column_names
            and not (len(table) and each.name in VERIFIED)
        ):
            table = table.append_column(label, pa.nulls(len(table), pa.string()))
    return table


class Foreign(Exception):
    """What `verify` never writes; the argument is the first such value."""


def as_words(values: pa.Array, words: Iterable[str]) -> pa.StringArray:
    """Some fixed words."""
    texts = read_present(values)
    if unknown := sorted(set(texts.unique().drop_null().to_pylist()).difference(words)):
        raise Foreign(unknown[0])
    return texts


def as_flags(values: pa.Array) -> pa.BooleanArray:
    """True and false, also as text in upper or lower case; or as 1 and 0, since some databases have no truth values."""
    if pa.types.is_boolean(values.type):
        return values
    coded = read_present(values).dictionary_encode()
    texts = pc.utf8_lower(coded.dictionary).to_pylist()
    if unknown := [each for each in texts if each not in TRUTH]:
        raise Foreign(unknown[0])
    return pa.array(map(TRUTH.get, texts), pa.bool_()).take(coded.indices)


def as_moments(values: pa.Array) -> pa.TimestampArray:
    """Times in UTC, also as text."""
    kind = pa.timestamp("us", tz="UTC")
    if pa.types.is_timestamp(values.type) or pa.types.is_null(values.type):
        return values.cast(kind, safe=False)
    coded = values.dictionary_encode()
    try:
        if not is_text(values.type):
            raise ValueError
        moments = pd.to_datetime(
            read_present(coded.dictionary).to_pylist(), utc=True, format="mixed"
        )
    except ValueError:
        raise Foreign(coded.dictionary[0].as_py()) from None
    return pa.array(moments, from_pandas=True).cast(kind, safe=False).take(coded.indices)


READ: dict[str, Callable[[pa.Array], pa.Array]] = {
    "verdict": lambda values: as_words(values, Verdict),
    "status": lambda values: as_words(values, Status),
    "bool": as_flags,
    "text": read_present,
    "moment": as_moments,
}
