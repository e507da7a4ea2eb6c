"""The result columns: tables of their names, sets, dtypes and sources.

Each `Column` also says how it is made. In a table it goes through `to_arrow` (Polars and Arrow
frames) or `to_pandas`. `label_of` names it in the caller's frame; `check_column`, `did_you_mean`
and `listed` are for errors about names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.operators import (
    FOR_COMPANIES,
    Operator,
    find_operator,
    load_operators,
    name_operators,
)
from ..errors import ColumnError, SettingsError
from ..model.arrow import Codes, to_bools
from ..model.table import SOURCE_LOCAL
from ..model.words import ACTIONS, WHY_MEANING, Reason, Status, Verdict, first_of, why_of_error
from ..version import __version__

SHORTEST_PART = 3  # characters of a name that are looked for in others
MAX_LISTED = 20  # column names shown in an error
VERDICT_DTYPE = pd.CategoricalDtype(list(map(str, Verdict)), ordered=False)
STATUS_DTYPE = pd.CategoricalDtype(list(map(str, Status)), ordered=False)
ACTION_DTYPE = pd.CategoricalDtype(list(ACTIONS))
CATEGORIES = {"verdict": VERDICT_DTYPE, "status": STATUS_DTYPE, "action": ACTION_DTYPE}  # by kind
CODES = pa.dictionary(pa.int8(), pa.string())
ARROW_TYPES = {
    **dict.fromkeys(CATEGORIES, CODES),
    "bool": pa.bool_(),
    "text": pa.string(),
    "moment": pa.timestamp("us", tz="UTC"),
    "count": pa.int64(),
    "row": pa.int64(),
    "rate": pa.float64(),
}
FLAG_REASONS = frozenset(
    map(str, (Reason.SPAMTRAP, Reason.DISPOSABLE, Reason.CATCH_ALL, Reason.ROLE))
)


def unchanged(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return values


def map_distinct(
    function: Callable[[str], str | None],
) -> Callable[[pa.ChunkedArray], pa.ChunkedArray]:
    """Apply `function` to the distinct texts of a dictionary-encoded column only."""

    def convert(values: pa.ChunkedArray) -> pa.ChunkedArray:
        chunks = [map_chunk(function, chunk) for chunk in values.chunks]
        return pa.chunked_array(chunks, pa.string())

    return convert


def map_chunk(function: Callable[[str], str | None], chunk: pa.DictionaryArray) -> pa.StringArray:
    """Apply `function` to the distinct texts of one chunk."""
    texts = map_texts(function, chunk.dictionary)
    if texts.null_count == len(texts):
        return pa.nulls(len(chunk), pa.string())
    return pc.take(texts, chunk.indices, boundscheck=False)


def map_texts(function: Callable[[str], str | None], texts: pa.StringArray) -> pa.StringArray:
    """Apply `function` to each text; null stays null."""
    results = []
    for text in texts.to_pylist():
        result = None
        if text is not None:
            result = function(text)
        results.append(result)
    return pa.array(results, pa.string())


def by_piece(function: Callable[..., pa.StringArray]) -> Callable[..., pa.ChunkedArray]:
    """Apply `function` to pieces of several columns, which may each be cut in other places."""

    @wraps(function)
    def convert(*columns: pa.ChunkedArray) -> pa.ChunkedArray:
        names = [str(position) for position in range(len(columns))]
        pieces = pa.table(list(columns), names).to_batches()
        texts = [function(*piece.columns) for piece in pieces]
        return pa.chunked_array(texts, pa.string())

    return convert


def first_reason(reasons: str) -> str | None:
    first, _, _ = reasons.partition(";")
    return first or None


def messages(errors: str) -> str | None:
    texts = [error["message"] for error in json.loads(errors)]
    distinct = dict.fromkeys(texts)
    return "; ".join(distinct) or None


def meaning_of_reason(reasons: str) -> str | None:
    """The dominant reason in a sentence; one that only the service knows is quoted."""
    first = first_reason(reasons)
    if first is None:
        return None
    return WHY_MEANING.get(first) or f"the service gives the reason {first!r}"


def meaning_of_flag(reasons: str) -> str | None:
    """The dominant reason in a sentence, if a list or a flag is behind it.

    None if a check of the address is.
    """
    if first_reason(reasons) not in FLAG_REASONS:
        return None
    return meaning_of_reason(reasons)


@by_piece
def error_message(errors: pa.DictionaryArray, reasons: pa.DictionaryArray) -> pa.StringArray:
    """The messages of the errors, after the flag that decides if one does.

    Without errors, as in most rows, it is the dominant reason.
    """
    has_errors = errors.is_valid()
    if not has_errors.true_count:
        return map_chunk(meaning_of_reason, reasons)
    concerned = reasons.filter(has_errors)
    sentences = map_chunk(messages, errors.filter(has_errors))
    flag = map_chunk(meaning_of_flag, concerned)
    both = flag
    if flag.null_count < len(flag):
        both = pc.binary_join_element_wise(flag, sentences, "; ")
    meaning = map_chunk(meaning_of_reason, concerned)
    texts = pc.coalesce(both, sentences, meaning).dictionary_encode()
    # One look-up for all rows: the texts of rows with errors follow those of the reasons.
    meanings = map_texts(meaning_of_reason, reasons.dictionary)
    moved = pc.add(texts.indices, pa.scalar(len(meanings), pa.int32()))
    codes = pc.replace_with_mask(reasons.indices.cast(pa.int32()), has_errors, moved)
    words = pa.concat_arrays([meanings, texts.dictionary])
    return pc.take(words, codes, boundscheck=False)


@by_piece
def why(
    reasons: pa.DictionaryArray, error: pa.DictionaryArray, result: pa.DictionaryArray
) -> pa.StringArray:
    """The dominant reason, else the word for the error code and the verdict.

    The words are found for each distinct pair of code and verdict.
    """
    reason = map_chunk(first_reason, reasons)
    codes = [*error.dictionary.to_pylist(), None]
    verdicts = [*result.dictionary.to_pylist(), None]
    pairs = product(codes, verdicts)
    words = pa.array([why_of_error(code, verdict) for code, verdict in pairs], pa.string())
    if words.null_count == len(words):
        return reason
    pair = positions_of(error) * len(verdicts) + positions_of(result)
    word = pc.take(words, pa.array(pair), boundscheck=False)
    if reason.null_count == len(reason):
        return word
    return pc.coalesce(reason, word)


def positions_of(texts: pa.DictionaryArray) -> Codes:
    """The position of each text among the distinct ones; that behind the last one for null."""
    positions = texts.indices.cast(pa.int32()).fill_null(len(texts.dictionary))
    numbers: Codes = positions.to_numpy()
    return numbers


def check_results(checks: str) -> str:
    """``syntax=true;dns=false``: readable, and splits like `reasons`."""
    results = []
    for name, ok in json.loads(checks).items():
        word = str(ok).lower()
        results.append(f"{name}={word}")
    return ";".join(results)


def mx_hosts(metadata: str) -> str | None:
    hosts = json.loads(metadata).get("mx_records")
    if not isinstance(hosts, list):
        return None
    return ";".join(map(str, hosts)) or None


def best_host(metadata: str) -> str | None:
    """The mail server of the lowest preference; a service may write it in another form."""
    hosts = mx_hosts(metadata)
    if hosts is None:
        return None
    first, _, _ = hosts.partition(";")
    return first.lower().rstrip(".") or None


@by_piece
def operators(metadata: pa.DictionaryArray, normalized: pa.DictionaryArray) -> pa.StringArray:
    """Who runs the mail server, where it is known."""
    hosts = map_chunk(best_host, metadata)
    return name_operators(hosts, normalized)


def is_run(test: Callable[[Operator], bool]) -> Callable[[pa.ChunkedArray], pa.ChunkedArray]:
    """Whether the operator of the mail server passes a test; null where no mail server is known."""

    def passes(metadata: str) -> str | None:
        host = best_host(metadata)
        if host is None:
            return None
        operator = find_operator(host, load_operators())
        return str(operator is not None and test(operator))

    def convert(metadata: pa.ChunkedArray) -> pa.ChunkedArray:
        return map_distinct(passes)(metadata).cast(pa.bool_())

    return convert


def suspects_disposable(metadata: pa.ChunkedArray, disposable: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether the list of disposable domains and the mail server contradict each other."""
    at_disposable = is_run(lambda operator: operator.kind == "disposable")(metadata)
    for_companies = is_run(lambda operator: operator.operator in FOR_COMPANIES)(metadata)
    return pc.if_else(disposable.fill_null(False), for_companies, at_disposable)


def text_of(metadata: str, name: str) -> str | None:
    text = json.loads(metadata).get(name)
    return text if isinstance(text, str) else None


def versions(metadata: pa.ChunkedArray, source: pa.ChunkedArray) -> pa.ChunkedArray:
    """The release of this package where it judged the row in this run.

    With it are the lists where they are known.
    """
    package = map_distinct(package_version)(source)
    lists = map_distinct(partial(text_of, name="lists"))(metadata)
    both = pc.binary_join_element_wise(package, lists, ", ")
    return pc.coalesce(both, package, lists)


def package_version(source: str) -> str | None:
    return f"mailverdict {__version__}" if source == SOURCE_LOCAL else None


@dataclass(frozen=True)
class Column:
    """One output column."""

    name: str  # without the prefix
    kind: str  # verdict, status, action, text, bool, moment, count, row or rate: decides the dtype
    field: str  # of the table of results that it is made from
    in_core: bool  # whether it belongs to the set "core"
    meaning: str  # one line for the documentation
    convert: Callable[..., pa.ChunkedArray] = unchanged  # called with the fields
    more_fields: tuple[str, ...] = ()  # where it is made from several

    @property
    def fields(self) -> list[str]:
        """The fields of the table of results that it is made from."""
        return [self.field, *self.more_fields]

    def without_categories(self) -> Column:
        """The column as text, if its dtype has categories."""
        if self.kind in CATEGORIES:
            return replace(self, kind="text")
        return self


def own_field(name: str, kind: str, meaning: str) -> Column:
    """A column that is the field of its name, and is not in the set "core"."""
    return Column(name, kind, name, False, meaning)


COLUMNS: tuple[Column, ...] = (
    Column(
        "verdict",
        "verdict",
        "result",
        True,
        "valid, risky, invalid, unknown; NA unless status is done",
    ),
    Column(
        "why",
        "text",
        "reasons",
        True,
        "why the verdict is not valid, in a word, for every validation type; NA for valid rows, "
        "and without a verdict",
        why,
        ("error", "result"),
    ),
    Column(
        "details",
        "text",
        "reasons",
        True,
        "dominant reason; NA when none",
        map_distinct(first_reason),
    ),
    Column(
        "reasons",
        "text",
        "reasons",
        True,
        "all reasons in order, joined by ';'; NA without a verdict",
    ),
    Column("role", "bool", "role", True, "shared mailbox such as info@; NA: never determined"),
    Column(
        "spamtrap",
        "bool",
        "spamtrap",
        True,
        "the domain is on the given spamtrap list; NA: never determined",
    ),
    Column(
        "disposable",
        "bool",
        "disposable",
        True,
        "provider of disposable addresses; NA: never determined",
    ),
    Column("free", "bool", "free", True, "consumer mail provider; NA: never determined"),
    Column(
        "catch_all",
        "bool",
        "catch_all",
        True,
        "its server accepts any address; NA: inconclusive or not asked",
    ),
    Column(
        "protected",
        "bool",
        "protected",
        True,
        "its server refuses this client; NA: inconclusive or not asked",
    ),
    Column(
        "status", "status", "status", True, "done, pending, error, missing: where processing stands"
    ),
    Column("suggestion", "text", "suggestion", True, "did you mean; never applied by itself"),
    Column(
        "error_message",
        "text",
        "errors",
        True,
        "why the verdict is not valid, in a sentence; NA for valid rows, and without a verdict",
        error_message,
        ("reasons",),
    ),
    own_field("validation_type", "text", "the type actually used"),
    own_field("error", "text", "code of the first error, as REGEX, DNS, BLACKLIST, SMTP"),
    Column(
        "checks",
        "text",
        "checks",
        False,
        "sub-checks that applied, as 'syntax=true;dns=false'",
        map_distinct(check_results),
    ),
    Column(
        "mx_records",
        "text",
        "metadata",
        False,
        "mail servers by preference, joined by ';'",
        map_distinct(mx_hosts),
    ),
    Column(
        "operator",
        "text",
        "metadata",
        False,
        "who runs the preferred mail server; 'self': the domain itself; NA where no mail server "
        "is known",
        operators,
        ("normalized",),
    ),
    Column(
        "parked",
        "bool",
        "metadata",
        False,
        "its mail server is one for domains that are for sale or not in use; never changes the "
        "verdict",
        is_run(lambda operator: operator.kind == "parking"),
    ),
    Column(
        "disposable_suspected",
        "bool",
        "metadata",
        False,
        "the list of disposable providers may be wrong about it: it is there, but an operator for "
        "companies runs its mail server; or it is not, but its mail server serves mostly such "
        "providers; never changes the verdict",
        suspects_disposable,
        ("disposable",),
    ),
    Column(
        "smtp_host",
        "text",
        "metadata",
        False,
        "the mail server that answered",
        map_distinct(partial(text_of, name="smtp_host")),
    ),
    own_field("checked_at", "moment", "when, UTC"),
    own_field("source", "text", "local, remote or journal, or another verifier by its name"),
    own_field("normalized", "text", "normal form: NFC, domain in lower case; NA when malformed"),
    Column(
        "version",
        "text",
        "metadata",
        False,
        "release of mailverdict, unless a service or the journal answered; and of the lists, "
        "where known",
        versions,
        ("source",),
    ),
)
CLEAN_COLUMNS: tuple[Column, ...] = (
    own_field("clean", "text", "the cleaned address; NA where there is none"),
    own_field("suggestion", "text", "did you mean; never applied by itself"),
    own_field("change", "text", "what was done, joined by ';'"),
)
# Result columns that hold addresses.
ADDRESS_NAMES = (
    "clean",
    "suggestion",
    "normalized",
    "identity",
    "decided_address",
)
# Result columns that may quote somebody else: a mail server, a service, the DNS.
MESSAGE_NAMES = (
    *(c.name for c in COLUMNS if c.kind == "text" and c.name not in ADDRESS_NAMES),
    "change",
    "action_why",
    "held",
    "outcome_diagnostic",
)
CLEANED, _, CHANGE = CLEAN_COLUMNS
REPAIR_COLUMNS = (CLEANED, CHANGE)  # what verify(clean=True) adds
DUPLICATE_COLUMNS: tuple[Column, ...] = (
    own_field("identity", "text", "one text for all addresses of a mailbox; NA without an address"),
    own_field("duplicate_of", "row", "first row of the same identity; NA for that row itself"),
    own_field("copies", "count", "rows of the same identity; NA without an address"),
)
SUPPRESS_COLUMNS = (
    own_field("suppressed", "bool", "on the suppression list; NA without an address"),
)
# What a person decided on the audit page, which `decide` then follows.
DECISION_COLUMNS: tuple[Column, ...] = (
    own_field("decision", "text", "what a person decided: send, remove or suggestion; NA: nothing"),
    own_field("decided_address", "text", "the suggested address, if a person chose it"),
)
ACTION_COLUMNS: tuple[Column, ...] = (
    own_field("action", "action", "send, review, retry, drop, unchecked: what to do with the row"),
    own_field("action_why", "text", "why, in words"),
)
PART_COLUMNS: tuple[Column, ...] = (
    own_field("part", "count", "1, 2, ... within a row before explode"),
)
CONTRADICTION = own_field("contradiction", "text", "how the verdict was wrong, in words")
CONTRADICTION_COLUMNS: tuple[Column, ...] = (
    own_field("outcome", "text", "what became of the mail: hard, delivered or complaint"),
    own_field("outcome_at", "moment", "when, UTC"),
    own_field("outcome_diagnostic", "text", "what the mail server said"),
    CONTRADICTION,
)
WAVE_COLUMNS = (
    own_field("wave", "count", "1, 2, ...: the wave of a mailing in which the row is"),
    own_field("wave_at", "moment", "when the wave was planned, UTC"),
)
HELD_COLUMNS = (own_field("held", "text", "why the row is not mailed now, in words"),)
RISK_COLUMNS: tuple[Column, ...] = (
    own_field("bounce_risk", "rate", "probability of a hard bounce, from the mails before"),
    own_field("risk_low", "rate", "its 95 % interval: the lower end"),
    own_field("risk_high", "rate", "its 95 % interval: the upper end"),
)
# What describes an earlier verdict, or the address that it was about: emptied by a new
# verification.
DERIVED_COLUMNS = (*REPAIR_COLUMNS, *ACTION_COLUMNS, CONTRADICTION)
RESULT_COLUMNS = (
    *COLUMNS,
    *CLEAN_COLUMNS,
    *DUPLICATE_COLUMNS,
    *SUPPRESS_COLUMNS,
    *DECISION_COLUMNS,
    *ACTION_COLUMNS,
    *PART_COLUMNS,
    *CONTRADICTION_COLUMNS,
    *WAVE_COLUMNS,
    *HELD_COLUMNS,
    *RISK_COLUMNS,
)
RESULT_NAMES = tuple(column.name for column in RESULT_COLUMNS)
BY_NAME = {column.name: column for column in COLUMNS}
# What a reader needs, in the order in which it is read; of the columns of repairs only the address.
SHORT = (
    "clean",
    "verdict",
    "why",
    "error_message",
    "suggestion",
    "role",
    "disposable",
    "free",
    "status",
)
SETS = {
    "short": (CLEANED, *(BY_NAME[name] for name in SHORT[1:])),
    "core": (*(column for column in COLUMNS if column.in_core), *REPAIR_COLUMNS),
    "all": (*COLUMNS, *REPAIR_COLUMNS),
}


def is_short(names: Collection[str]) -> bool:
    """Whether columns are those of the short set.

    The short set has no `change`; its `clean` is ours all the same.
    """
    return "details" not in names and set(SHORT[1:]).issubset(names)


def choose_columns(
    wanted: str | Iterable[str], *, clean: bool = False, categories: bool = True
) -> tuple[Column, ...]:
    """The columns of a set's name, or of a list of names in the table's order.

    Without `categories` these are text.

    With `clean` those of the repairs are among them.
    """
    if not isinstance(categories, bool):
        raise SettingsError(f"categories={categories!r}: give True or False")
    if isinstance(wanted, str):
        if wanted not in SETS:
            raise SettingsError(
                f"columns={wanted!r}: give 'short', 'core', 'all' or a list of column names"
            )
        chosen = SETS[wanted]
    else:
        names = list(wanted)
        for name in names:
            if name not in BY_NAME:
                raise SettingsError(f"columns: {name!r} is not one of {', '.join(BY_NAME)}")
        named = [column for column in COLUMNS if column.name in names]
        chosen = (*named, *REPAIR_COLUMNS)
    if not clean:
        chosen = tuple(column for column in chosen if column not in REPAIR_COLUMNS)
    if not categories:
        chosen = tuple(map(Column.without_categories, chosen))
    return chosen


def to_arrow(table: pa.Table, column: Column) -> pa.ChunkedArray:
    """Values of one output column in the Arrow type of its kind, the same for every input."""
    fields = [table[field] for field in column.fields]
    values = column.convert(*fields)
    if column.kind in CATEGORIES:
        return to_codes(values, CATEGORIES[column.kind])
    wanted = ARROW_TYPES[column.kind]
    if values.type == wanted:
        return values
    return values.cast(wanted)


def to_pandas(table: pa.Table, column: Column, index: pd.Index[Any] | None = None) -> Any:
    """Values of one output column as a pandas array of its dtype.

    Rows are named by the labels of `index`.
    """
    values = to_arrow(table, column)
    if column.kind == "row" and index is not None:
        return labels_at(index, values.combine_chunks())
    return PANDAS_TYPES[column.kind](values)


def labels_at(index: pd.Index[Any], rows: pa.Int64Array) -> Any:
    """The labels of rows, in a dtype that also holds NA; NA where there is no row.

    A row whose label is missing is named by its position, since NA means that there is no row.
    """
    labels = index
    if index.nlevels > 1:
        labels = index.to_flat_index()
    positions = rows.fill_null(0).to_numpy()
    has_none = rows.is_null().to_numpy(zero_copy_only=False)
    taken = labels.take(positions)
    series = pd.Series(taken, index=range(len(rows)), dtype=labels.dtype)
    is_whole = pd.api.types.is_integer_dtype(labels.dtype)
    if is_whole or labels.inferred_type in ("boolean", "string"):
        series = series.convert_dtypes()
    is_unnamed = labels.isna()[positions] & ~has_none
    if is_unnamed.any():
        series = series.astype(object).mask(is_unnamed, positions)
    missing = None
    if series.dtype == object:
        missing = pd.NA
    return series.mask(has_none, missing).array


def to_codes(values: pa.ChunkedArray, dtype: pd.CategoricalDtype) -> pa.ChunkedArray:
    """The same dictionary of all categories in every table and piece.

    Pieces with others cannot be one stream.
    """
    words = pa.array(list(dtype.categories), pa.string())

    def encode(chunk: pa.DictionaryArray) -> pa.DictionaryArray:
        if chunk.type == CODES and chunk.dictionary.equals(words):
            return chunk
        numbers = pc.index_in(chunk.dictionary, value_set=words).cast(pa.int8())
        codes = pc.take(numbers, chunk.indices, boundscheck=False)
        return pa.DictionaryArray.from_arrays(codes, words)

    return pa.chunked_array(map(encode, values.chunks), CODES)


def to_categorical(values: pa.ChunkedArray, dtype: pd.CategoricalDtype) -> pd.Categorical:
    """Codes of the fixed categories, so that every frame has all of them in the same order."""
    codes = [np.empty(0, np.int8)]
    for chunk in to_codes(values, dtype).chunks:
        codes.append(chunk.indices.fill_null(-1).to_numpy())
    return pd.Categorical.from_codes(np.concatenate(codes), dtype=dtype, validate=False)


def to_boolean(values: pa.ChunkedArray) -> Any:
    size = len(values)
    # Fast path: catch_all and protected are null for most types.
    if values.null_count == size:
        return pd.arrays.BooleanArray(np.zeros(size, np.bool_), np.ones(size, np.bool_))
    flat = values.combine_chunks()
    bools = to_bools(flat.fill_null(False))
    return pd.arrays.BooleanArray(bools, to_bools(flat.is_null()))


def to_counts(values: pa.ChunkedArray) -> Any:
    numbers = values.fill_null(0).cast(pa.int64())
    mask = values.is_null().to_numpy()
    return pd.arrays.IntegerArray(numbers.to_numpy(), mask)


def to_rates(values: pa.ChunkedArray) -> Any:
    numbers = values.fill_null(0)
    mask = values.is_null().to_numpy()
    return pd.arrays.FloatingArray(numbers.to_numpy(), mask)


def to_string(values: pa.ChunkedArray) -> Any:
    return pd.array(values.cast(pa.large_string()), dtype=pd.StringDtype("pyarrow"))


def to_utc(values: pa.ChunkedArray) -> Any:
    not_a_time = np.iinfo(np.int64).min
    numbers = values.cast(pa.int64()).fill_null(not_a_time).to_numpy()
    naive = pd.DatetimeIndex(numbers.view("datetime64[us]"))
    return naive.tz_localize("UTC").array


PANDAS_TYPES: dict[str, Callable[[pa.ChunkedArray], Any]] = {
    **{kind: partial(to_categorical, dtype=dtype) for kind, dtype in CATEGORIES.items()},
    "bool": to_boolean,
    "text": to_string,
    "moment": to_utc,
    "count": to_counts,
    "row": to_counts,
    "rate": to_rates,
}


def label_of(column: Hashable, prefix: str | None, name: str) -> Any:
    """The label of a result column.

    Under a MultiIndex it has the same upper labels as the verified column.

    >>> label_of("email", None, "verdict"), label_of("email", "", "role")
    ('email_verdict', 'role')
    >>> label_of(("work", "email"), None, "verdict")
    ('work', 'email_verdict')
    """
    if prefix is not None and not isinstance(prefix, str):
        raise SettingsError(f"prefix={prefix!r}: give a text, as 'email_', or leave it out")
    upper: tuple[Any, ...] = ()
    last: Any = column
    if isinstance(column, tuple):
        *_, last = column
        upper = column[:-1]
    lead = prefix
    if lead is None:
        lead = f"{last}_" if last != "" else ""
    label = lead + name
    return (*upper, label) if upper else label


def check_column(column: Any, names: Sequence[Any]) -> None:
    """The column must be there exactly once."""
    numbers = [str(number) for number, name in enumerate(names, 1) if name == column]
    if not numbers:
        question = did_you_mean(column, names)
        raise ColumnError(f"no column {column!r}{question}; there are {listed(names)}")
    if len(numbers) > 1:
        *others, last = numbers
        raise ColumnError(
            f"the column name {column!r} occurs {len(numbers)} times (columns "
            f"{first_of(others, MAX_LISTED)} and {last} of {len(names)}); rename the "
            "columns so that it occurs once"
        )


def did_you_mean(column: Any, names: Sequence[Any]) -> str:
    """A question for a mistyped name, in brackets, or a hint for a position.

    Empty if no name is like it.

    >>> did_you_mean("Emial", ["name", "email"]), did_you_mean("age", ["name", "email"])
    (" (did you mean 'email'?)", '')
    >>> did_you_mean("2", ["name", "email"])
    ' (give its name, not its position)'
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only a wrong name needs it

    folded = {str(name).strip().casefold(): name for name in reversed(names)}
    wanted = str(column).strip().casefold()
    close = get_close_matches(wanted, folded, 1)
    if not close and len(wanted) >= SHORTEST_PART:
        close = [name for name in folded if wanted in name]  # as type in validation_type
    if len(close) == 1:
        name = folded[close[0]]
        return f" (did you mean {name!r:.80}?)"
    # Positions begin with 0 in pandas and with 1 in most programs for CSV.
    if str(column).removeprefix("-").isdecimal():
        return " (give its name, not its position)"
    return ""


def plain_word(text: str) -> str:
    """A name or word of another program in the form in which it is compared.

    That form has small letters and digits alone.

    >>> plain_word("ZB Sub-Status"), plain_word("zb_sub_status")
    ('zbsubstatus', 'zbsubstatus')
    """
    return re.sub(r"[\W_]+", "", text.lower())


def listed(names: Sequence[Any]) -> str:
    """The names of columns, for an error."""
    shown = [f"{name!r:.80}" for name in names]
    return first_of(shown, MAX_LISTED) or "no columns"
