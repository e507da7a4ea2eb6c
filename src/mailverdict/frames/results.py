"""The result columns of a verified frame or file, as Arrow arrays by their names without prefix.

A file may have made texts of all of them; `Results` gives each back with the type that `verify`
wrote:

    column in a CSV  cells               rows["role"], rows.why ...
    email            Ada@WEB.de, ...     addresses: Ada@web.de, or what was cleaned before
    email_verdict    "valid", ""         verdict: valid, null
    email_role       "True", "1", ""     role: true, true, null
    email_details    (no email_why)      why: the reason, as earlier releases wrote it

`why`, `change`, `decision` and `advice` are made of several columns, where no one of them says it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.syntax.column import observe_column
from ..errors import ColumnError, InputError
from ..model.arrow import (
    Bools,
    map_distinct_texts,
    one_array,
    replace_texts,
    texts_where,
    to_bools,
)
from ..model.words import SEVERAL_ADDRESSES, Reason, Status, Verdict
from ..repair.repair import MAX_CELL
from ..table.cells import is_text, read_cells, read_present, strip_texts, to_array, where_filled
from ..table.columns import (
    ARROW_TYPES,
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
BUCKETS = tuple(map(str, (*Verdict, Status.ERROR, Status.PENDING, Status.MISSING)))
# Flags as text, in lower case; the last ones are what becomes of a missing one.
TRUTH: dict[str, bool | None] = {
    **dict.fromkeys(("true", "1", "1.0"), True),
    **dict.fromkeys(("false", "0", "0.0"), False),
    **dict.fromkeys(("<na>", "nan", "none")),
}
COLUMN_KINDS = {column.name: column.kind for column in (*COLUMNS, *SUPPRESS_COLUMNS)}
COLUMN_KINDS["wave_at"] = "moment"
# Rows are not verified without them; of `why` and `details` one says what the other would.
VERIFIED = ("verdict", "why", "details", "status")
JUDGED = ("verdict", "status", "why")
WAITING = "waiting"  # the decision for a suggested address that is not verified yet
LONGEST_KEPT = 320  # characters of a cell


class Results:
    """A verified column: its cells and its result columns.

    They are typed as `verify` made them, also where a file made texts.

    Each column is read when it is asked for; one that the frame does not have is null in all rows.
    Raises a `ColumnError` if one of `names` is not there, and an `InputError` for a column with
    what `verify` never writes. For `why` the columns of earlier releases will do. Without a column
    it is the only one that was verified.
    """

    def __init__(
        self, out: Any, column: Hashable | None, prefix: str | None, names: Iterable[str] = JUDGED
    ) -> None:
        if column is None:
            out = frame_of(out)
            column, prefix = find_verified(out, prefix)
        self.data = table_of(out, column, is_verified=True)
        self.column = column
        self.prefix = prefix
        self.existing = frozenset(self.data.labels())
        self.read: dict[str, pa.Array] = {}  # by name
        needed = list(names)
        if "why" in needed and "details" in self:
            needed.remove("why")
        self.require(needed)
        ours = [name for name in RESULT_NAMES if name in self]
        self.is_short = is_short(ours)
        # Without `change`, `clean` is somebody else's column, but in the short set.
        self.is_cleaned = "clean" in self and ("change" in self or self.is_short)

    def require(self, names: Iterable[str]) -> None:
        """Raise a `ColumnError` if a result column is not there."""
        for name in names:
            if name in self:
                continue
            label = label_of(self.column, self.prefix, name)
            raise ColumnError(
                f"no column {label!r}: verify {self.column!r} first,"
                " or give the prefix that was used"
            )

    def __len__(self) -> int:
        return len(self.data.frame)

    def __contains__(self, name: str) -> bool:
        return label_of(self.column, self.prefix, name) in self.existing

    def __getitem__(self, name: str) -> pa.Array:
        if name in self.read:
            return self.read[name]
        label = label_of(self.column, self.prefix, name)
        values = pa.nulls(len(self))
        if name in self:
            check_column(label, self.data.labels())
            values = to_array(self.data.cells(label))
        read = READ[COLUMN_KINDS.get(name, "text")]
        try:
            self.read[name] = read(values)
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
        status = self["status"]
        if status.null_count:
            is_missing = self.texts.is_null()
            without = pc.if_else(is_missing, str(Status.MISSING), str(Status.PENDING))
            status = pc.coalesce(status, without)
        words = pa.array(BUCKETS)
        by_status = pc.index_in(status, words)  # null for "done", which is not one of them
        by_verdict = pc.index_in(self["verdict"], words)
        codes = pc.coalesce(by_status, by_verdict)
        return pa.DictionaryArray.from_arrays(codes, words)

    @cached_property
    def why(self) -> pa.StringArray:
        """Why each row has its verdict, in a word.

        Earlier releases wrote the reason and the error code only.
        """
        if "why" in self:
            # The reason counts, should somebody have changed it.
            return pc.coalesce(self["details"], self["why"])
        columns = []
        for name in ("details", "error", "verdict"):
            coded = self[name].dictionary_encode()
            columns.append(pa.chunked_array([coded]))
        return one_array(why(*columns))

    @cached_property
    def is_several(self) -> Bools:
        """Rows whose cell holds several addresses, which nobody could verify."""
        return to_bools(pc.equal(self.why, SEVERAL_ADDRESSES))

    @cached_property
    def texts(self) -> pa.StringArray:
        """The cells with the blanks around them; null where a cell is missing."""
        texts = read_cells(self.data.values(), longest=MAX_CELL)["text"]
        return where_filled(texts, texts)

    @cached_property
    def is_malformed(self) -> Bools:
        """Rows that are invalid since what was verified is not an address.

        Earlier releases do not say why.
        """
        is_invalid = pc.equal(self.buckets, str(Verdict.INVALID))
        may_be_syntax = pc.equal(self.why, str(Reason.SYNTAX_ERROR)).fill_null(True)
        return to_bools(pc.and_(is_invalid, may_be_syntax))

    @cached_property
    def is_of_clean(self) -> Bools:
        """Rows whose verdict is about the cleaned address.

        A frame may have been cleaned by `clean` and verified as it was; but a cleaned address is
        never malformed.
        """
        is_cleaned = to_bools(self["clean"].is_valid())
        has_reason = to_bools(self.why.is_valid())
        return is_cleaned & ~(self.is_malformed & has_reason)

    @cached_property
    def addresses(self) -> pa.StringArray:
        """The cells as text; a cell that was cleaned and verified has the cleaned address."""
        if not self.is_cleaned:
            return self.texts
        return pc.if_else(self.is_of_clean, self["clean"], self.texts)

    @cached_property
    def change(self) -> pa.StringArray:
        """What was repaired; found again in the cells where the short set does not say it."""
        if "change" in self or not self.is_cleaned:
            return self["change"]
        texts = self.texts.fill_null("")
        rows = np.flatnonzero(to_bools(pc.not_equal(self["clean"], texts)))
        repaired = repair_column(texts.take(rows), suggests_domains=False)
        return replace_texts(self["change"], rows, repaired["change"])

    @cached_property
    def decision(self) -> pa.StringArray:
        """What a person decided: one of `DECISIONS`, or `WAITING`.

        One column alone is the user's own: null.
        """
        if "decision" not in self or "decided_address" not in self:
            return pa.nulls(len(self), pa.string())
        word = self["decision"]
        is_suggested = pc.equal(word, "suggestion").fill_null(False)
        is_verified = pc.equal(self["decided_address"], self["clean"]).fill_null(False)
        return pc.if_else(pc.and_not(is_suggested, is_verified), WAITING, word)

    @cached_property
    def advice(self) -> pa.Table:
        """What to do with each malformed cell that holds or suggests an address.

        As `kind` and `text`, which are null in other rows.

        Not with a verdict on a cleaned address. What a cleaned cell without an address suggests is
        in its row.
        """
        is_unread = self.is_malformed | self.is_several
        rows = np.flatnonzero(is_unread & ~self.is_of_clean)
        cells = self.texts.take(rows)
        stripped = strip_texts(cells.fill_null(""))
        is_malformed = pc.invert(observe_column(stripped)["well_formed"])
        cells = cells.filter(is_malformed)
        rows = rows[to_bools(is_malformed)]

        meant = self["suggestion"].take(rows)
        is_known = pc.and_(meant.is_valid(), self.is_cleaned)
        if self.is_cleaned:
            clean = self["clean"].take(rows)
            is_known = pc.and_not(is_known, clean.is_valid())

        asked = texts_where(pc.invert(is_known), cells)
        advised = map_distinct_texts(advise_kept, asked, ADVICE)
        question = pc.binary_join_element_wise(DID_YOU_MEAN, meant, "?", "")
        kind = pc.if_else(is_known, "typo", pc.struct_field(advised, "kind"))
        text = pc.if_else(is_known, question, pc.struct_field(advised, "text"))
        nothing = pa.nulls(len(self), pa.string())
        columns = {
            "kind": replace_texts(nothing, rows, kind),
            "text": replace_texts(nothing, rows, text),
        }
        return pa.table(columns)


ADVICE = pa.struct({"kind": pa.string(), "text": pa.string()})


def advise_kept(text: str) -> tuple[str | None, str | None]:
    """As `advise`; kept for texts of usual length, which come again in other pieces of a file."""
    if len(text) > LONGEST_KEPT:
        return advise(text)
    return advise_short(text)


advise_short = lru_cache(1 << 15)(advise)


def with_core(table: pa.Table, column: Hashable, prefix: str | None) -> pa.Table:
    """The table of a verified file, with nulls for columns of the core that it lacks.

    Without rows: for all of them.
    """
    for core in COLUMNS:
        label = str(label_of(column, prefix, core.name))
        if not core.in_core or label in table.column_names:
            continue
        if len(table) and core.name in VERIFIED:
            continue
        table = table.append_column(label, pa.nulls(len(table), pa.string()))
    return table


class Foreign(Exception):
    """What `verify` never writes; the argument is the first such value."""


def as_words(values: pa.Array, words: Iterable[str]) -> pa.StringArray:
    """Some fixed words."""
    texts = read_present(values)
    distinct = texts.unique().drop_null().to_pylist()
    foreign = set(distinct).difference(words)
    if foreign:
        raise Foreign(min(foreign))
    return texts


def as_flags(values: pa.Array) -> pa.BooleanArray:
    """True and false, also as text in any case, or as 1 and 0 from a database."""
    if pa.types.is_boolean(values.type):
        return values
    return map_distinct_texts(flag_of, read_present(values), pa.bool_())


def flag_of(text: str) -> bool | None:
    word = text.lower()
    if word not in TRUTH:
        raise Foreign(word)
    return TRUTH[word]


def as_moments(values: pa.Array) -> pa.TimestampArray:
    """Times in UTC, also as text."""
    moment = ARROW_TYPES["moment"]
    if pa.types.is_timestamp(values.type) or pa.types.is_null(values.type):
        return values.cast(moment, safe=False)
    coded = values.dictionary_encode()
    distinct = coded.dictionary
    if not len(distinct):
        return pa.nulls(len(values), moment)
    first = distinct[0].as_py()
    if not is_text(values.type):
        raise Foreign(first)
    texts = read_present(distinct).to_pylist()
    try:
        moments = pd.to_datetime(texts, utc=True, format="mixed")
    except ValueError:
        raise Foreign(first) from None
    utc = pa.array(moments, from_pandas=True).cast(moment, safe=False)
    return utc.take(coded.indices)


READ: dict[str, Callable[[pa.Array], pa.Array]] = {
    "verdict": partial(as_words, words=Verdict),
    "status": partial(as_words, words=Status),
    "bool": as_flags,
    "text": read_present,
    "moment": as_moments,
}
