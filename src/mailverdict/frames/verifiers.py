"""`read_verdicts`: what other verifiers said, as result columns of ours; and what they settled.

A source becomes an `Export`, a table with a place. What the caller says about it (`ExportOptions`)
or the names of its columns choose a layout of `verifiers.toml`. Each distinct combination of the
cells that the layout reads is judged once, and the rows take their answers by code. A frame that
`verify` wrote has its verdicts already.

    E-Mail         ZB Status  ZB Sub Status           email         verdict  why
    ada@firm.com   valid                              ada@firm.com  valid
    <bo@firm.com>  invalid    mailbox_quota_exceeded  bo@firm.com   unknown  mailbox_full

`KnownAnswers` is what remains of them for a run of `verify`: the addresses that are valid or
invalid, each once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple, overload

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..bounces.exports import parse_moment
from ..checks.syntax.column import observe_column
from ..errors import ColumnError, InputError, SettingsError
from ..files.table_file import UNSPECIFIED, ReadOptions
from ..model.address import address_keys
from ..model.arrow import map_distinct_texts, one_array, texts_where, to_bools
from ..model.paths import user_path
from ..model.table import SOURCE_JOURNAL, SOURCE_LOCAL, SOURCE_REMOTE, complete_table
from ..model.words import (
    Status,
    ValidationType,
    Verdict,
    count_of,
    first_of,
    printable_text,
)
from ..repair.repair import MAX_CELL
from ..table.cells import is_filled, read_cells, read_present, strip_texts, where_filled
from ..table.choose_column import choose_column
from ..table.columns import (
    BY_NAME,
    RESULT_NAMES,
    check_column,
    choose_columns,
    label_of,
    listed,
    plain_word,
    to_string,
)
from ..table.notices import warn_user
from ..table.table import (
    Frame,
    Table,
    frame_of,
    labels_of,
    library_of,
    polars_of,
    polars_to_arrow,
    put_column,
)
from ..table.verifiers import (
    ANOTHER,
    FIELDS,
    FLAGS,
    VerifierLayout,
    general_layout,
    status_columns,
    verifier_layouts,
    words_of_verifiers,
)
from .clean import repair_column
from .results import Results
from .verifier_files import read_file
from .verifier_words import (
    LONGEST_WORD,
    MEANINGS,
    SHOWN,
    Answer,
    check_words,
    judge_rows,
    word_of,
)

COLUMN = "email"  # of what `read_verdicts` returns
COLUMNS = (*choose_columns("core", clean=False), BY_NAME["source"], BY_NAME["checked_at"])
DOMAIN = re.compile(r"[a-z0-9.-]{1,250}\.[a-z]{2,63}", re.IGNORECASE)
STATUS_LIKE = re.compile("status|result|verdict|state")  # in the name of a column
NO_HEADER = ["column_1", "column_2"]  # the names of two columns of a file without a header
# What an answer says of a row, in the result schema.
WORD_COLUMNS = ("status", "result", "reasons", "source")
ANSWER_SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in WORD_COLUMNS),
        *(pa.field(name, pa.bool_()) for name in FLAGS),
    ]
)
# For each type those whose ``valid`` says as much; `smtp` does not ask blacklists.
DEEP_ENOUGH = {
    ValidationType.MX: (ValidationType.MX, ValidationType.MX_BLACKLIST, ValidationType.SMTP),
    ValidationType.MX_BLACKLIST: (ValidationType.MX_BLACKLIST,),
    ValidationType.SMTP: (ValidationType.SMTP,),
}
HOW_TO_NAME = "column= of read_verdicts (beside --known as --against-column)"
WHOSE = "give what read_verdicts returned, a verified frame, or the export of another verifier"
SETTLED = pa.array([str(Verdict.VALID), str(Verdict.INVALID)])
OUR_SOURCES = pa.array([SOURCE_LOCAL, SOURCE_REMOTE, None])
MOMENT = pa.timestamp("us", tz="UTC")


@overload
def read_verdicts(
    source: str | Path,
    *,
    column: Hashable | None = None,
    columns: Mapping[str, Hashable] | None = None,
    outcomes: Mapping[str, str] | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
) -> pd.DataFrame: ...
@overload
def read_verdicts(
    source: Frame,
    *,
    column: Hashable | None = None,
    columns: Mapping[str, Hashable] | None = None,
    outcomes: Mapping[str, str] | None = None,
) -> Frame: ...
def read_verdicts(
    source: Any,
    *,
    column: Hashable | None = None,
    columns: Mapping[str, Hashable] | None = None,
    outcomes: Mapping[str, str] | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
) -> Any:
    """Read what another verifier said about addresses, as the result columns of `verify`.

    Uses no network. The service is recognised by columns that only its files have. Its words become
    verdicts and reasons of mailverdict by a table: a full mailbox is ``unknown`` here, whatever the
    service calls it, and an address of a role ``risky``. A reason is given only if the service
    claims it: where its negative word may be any refusal, even of the service itself, the row is
    ``unknown``. Where no reason of mailverdict fits, the reason is the service's own word. What the
    file does not have is NA.

    Parameters
    ----------
    source : path or DataFrame
        An export (CSV, TSV, Parquet, XLSX, or a pandas, Polars or Arrow frame), or the answers of
        an API as JSON: one object, several, one a line, or a list inside an object. The files of
        ZeroBounce, NeverBounce, Kickbox, Bouncer, Hunter, Emailable, MillionVerifier, DeBounce,
        Mailgun, Clearout, Verifalia, QuickEmailVerification, MyEmailVerifier, Snov.io, XVerify,
        Experian, Loqate, Proofy, Bouncify, CaptainVerify, Email Hippo, MyCleanList, Reacher,
        AfterShip, mailsherpa, Reoon, EmailListVerify, Abstract, SendGrid, mailfloss, mailboxlayer,
        MailboxValidator, Truemail, Elastic Email, Emailit and the Email Verifier API are
        recognised; and what `verify` or this function returned, also as a file.
    column : hashable, optional
        The column of addresses; by default the one that looks like it by name and cells.
    columns : mapping of str to hashable, optional
        For any other verifier: the column of each field, as
        ``{"email": "Address", "status": "Result"}``; a member of an inner object of JSON as
        ``"data.result"``. Fields: `email` and `status`; also `reason`, `suggestion`, `at` (when it
        was checked), and the flags `role`, `spamtrap`, `disposable`, `free` and `catch_all`.
        Without it, such a file is read only if names and words can mean nothing else, and a warning
        says what was read.
    outcomes : mapping of str to str, optional
        What a word of the verifier means, if it is not a common or known one, as
        ``{"good": "valid"}``: a verdict, a reason of ours (``"mailbox_full"``), or ``"skip"`` where
        nothing was checked. A word of the reason counts before one of the status.
    encoding, delimiter, sheet : str, optional
        Of a table in a file; found out when not given.

    Returns
    -------
    DataFrame
        One row for each row of `source`: `email` (``string``, repaired as `verify` does), the
        columns `email_verdict` to `email_error_message` of ``columns="core"``, with the types of
        `verify`, `email_source` (``string``: the service, or ``another verifier``) and
        `email_checked_at` (UTC, to the microsecond; NaT where the file does not say it). Status:
        ``done``; ``missing`` without an address; ``pending`` where the service says that it checked
        nothing. The kind and, in pandas, the index are those of the frame given.

    Raises
    ------
    InputError
        The file cannot be read, or none of its results is a known word.
    ColumnError
        The columns are of no known service or of several and `columns` is not given, or it names a
        column that is not there; or there is no column of addresses, or there are two that are
        equally likely.
    SettingsError
        `columns` or `outcomes` has a wrong field or value.

    Warns
    -----
    UserWarning
        If words are not known, whose rows are ``unknown``: which, and in how many rows; if the
        columns of another verifier, or one of several with addresses, were guessed; if one of
        several sheets is read, or something else about the file was guessed or odd; or if objects
        of a JSON file have no known form.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> export = pd.DataFrame(
    ...     {
    ...         "E-Mail": ["ada@firm.example", "bo@firm.example", "info@firm.example"],
    ...         "ZB Status": ["valid", "invalid", "do_not_mail"],
    ...         "ZB Sub Status": ["", "mailbox_quota_exceeded", "role_based"],
    ...     }
    ... )
    >>> mv.read_verdicts(export)[["email_verdict", "email_why", "email_source"]]
      email_verdict     email_why email_source
    0         valid          <NA>   ZeroBounce
    1       unknown  mailbox_full   ZeroBounce
    2         risky          role   ZeroBounce

    Any other verifier:

    >>> export = pd.DataFrame(
    ...     {
    ...         "Address": ["ada@firm.example", "bo@firm.example"],
    ...         "Grade": ["A", "undeliverable"],
    ...     }
    ... )
    >>> columns = {"email": "Address", "status": "Grade"}
    >>> found = mv.read_verdicts(export, columns=columns, outcomes={"A": "valid"})
    >>> found[["email_verdict", "email_why", "email_source"]]
      email_verdict      email_why      email_source
    0         valid           <NA>  another verifier
    1       invalid  undeliverable  another verifier
    """
    options = ReadOptions(encoding, delimiter, sheet)
    given = ExportOptions.check(column, columns, outcomes, options)
    # A stream has its rows once.
    frame = None
    if not isinstance(source, str | Path):
        frame = frame_of(source, WHOSE)
        source = frame
    answers = read_answers(source, given)
    names = [label_of(COLUMN, None, result.name) for result in COLUMNS]
    library = library_of(frame)
    out: Any = answers.select(["email"]).rename_columns([COLUMN])
    if library == "pandas":
        index = None
        if frame is not None:
            index = frame.index
        out = pd.DataFrame({COLUMN: to_string(answers["email"])}, index=index)
    elif library == "polars":
        out = polars_of(out)
    return Table(out, COLUMN).attach(answers, names, COLUMNS, {})


@dataclass(frozen=True)
class ExportOptions:
    """What the caller says about an export."""

    column: Hashable | None = None  # of addresses
    columns: Mapping[str, Hashable] | None = None  # by our fields
    outcomes: Mapping[str, str] | None = None  # what a word means, in the form of `word_of`
    options: ReadOptions = UNSPECIFIED

    @classmethod
    def check(
        cls,
        column: Hashable | None,
        columns: Mapping[str, Hashable] | None,
        outcomes: Mapping[str, str] | None,
        options: ReadOptions = UNSPECIFIED,
    ) -> ExportOptions:
        """Check the arguments of `read_verdicts`; an error names the first that cannot work."""
        if columns is not None:
            if column is not None:
                raise SettingsError(
                    f"column={column!r}: with columns=, name the addresses there, as 'email'"
                )
            for name in columns:
                if name not in FIELDS:
                    raise SettingsError(f"columns: {name!r} is not one of {', '.join(FIELDS)}")
            for name in ("email", "status"):
                if name not in columns:
                    raise SettingsError(f"columns: give the column of {name!r}, too")
        meanings = {}
        for word, meaning in (outcomes or {}).items():
            if meaning not in MEANINGS:
                raise SettingsError(f"outcomes[{word!r}]={meaning!r}: one of {', '.join(MEANINGS)}")
            meanings[word_of(str(word))] = meaning
        return cls(column, columns, meanings, options)


@dataclass(frozen=True)
class KnownAnswers:
    """The addresses that another verifier settled, each once."""

    rows: pa.Table  # of the result schema; `email` is the key
    left_out: int = 0  # addresses that are settled by an older answer

    def settled_for(
        self, wanted: ValidationType, max_age: float | None = None, now: datetime | None = None
    ) -> KnownAnswers:
        """Without what does not count: valid by less than the wanted type, and older answers.

        `max_age` is in seconds; an answer without a date is not known to be older.
        """
        rows = self.rows
        if wanted is not ValidationType.REGEX:  # else asking again costs nothing
            kind = rows["validation_type"].cast(pa.string())
            source = rows["source"].cast(pa.string())
            verdict = rows["result"].cast(pa.string())
            enough = pa.array(map(str, DEEP_ENOUGH[wanted]))
            is_enough = pc.is_in(kind, value_set=enough)
            is_ours = pc.equal(source, SOURCE_JOURNAL)
            is_weak = pc.and_not(is_ours, is_enough)
            is_valid = pc.equal(verdict, str(Verdict.VALID))
            is_left_out = pc.and_(is_weak, is_valid)
            rows = rows.filter(pc.invert(is_left_out))
        if max_age is None:
            return replace(self, rows=rows)
        # A longer age than ten thousand years has no date.
        age = timedelta(seconds=min(max_age, 6e10))
        oldest = (now or datetime.now(UTC)) - age
        checked_at = rows["checked_at"]
        is_older = pc.less(checked_at, pa.scalar(oldest, checked_at.type))
        kept = rows.filter(pc.invert(is_older.fill_null(False)))
        left_out = len(rows) - len(kept)
        return KnownAnswers(kept, self.left_out + left_out)

    def find(self, texts: pa.StringArray) -> pa.Int32Array:
        """For each stripped text its row; null where there is none."""
        known = one_array(self.rows["email"])
        return pc.index_in(address_keys(texts), value_set=known)

    def describe(self) -> str:
        """How many addresses are settled, and how old the answers are."""
        settled = count_of(len(self.rows), "address is", "addresses are")
        parts = [f"{settled} settled and not asked"]
        if len(self.rows):
            parts.append(f"the answers are {self.age()}")
        if self.left_out:
            older = count_of(self.left_out, "older answer is", "older answers are")
            parts.append(f"{older} left out")
        return "; ".join(parts)

    def age(self) -> str:
        """From when the answers are."""
        moments = one_array(self.rows["checked_at"])
        dated = moments.drop_null()
        if not len(dated):
            return "without dates"
        first = pc.min(dated).as_py()
        last = pc.max(dated).as_py()
        text = f"from {first:%Y-%m-%d} to {last:%Y-%m-%d}"
        if moments.null_count:
            return f"{text}, {moments.null_count:,} without a date"
        return text


def read_known(known: Any, given: ExportOptions | None = None) -> KnownAnswers | None:
    """The well-formed addresses that `read_verdicts` calls valid or invalid; None for None.

    An address with both verdicts is open. What a run of ours settled is known from an earlier run.
    """
    if known is None or isinstance(known, KnownAnswers):
        return known
    answers = read_answers(known, given or ExportOptions())
    verdict = answers["result"].cast(pa.string())
    rows = answers.filter(pc.is_in(verdict, value_set=SETTLED))
    syntax = observe_column(one_array(rows["email"]))
    rows = rows.filter(syntax["well_formed"])

    keys = address_keys(one_array(rows["email"]))
    rows = put_column(rows, "email", keys)
    source = one_array(rows["source"].cast(pa.string()))
    is_ours = pc.is_in(source, value_set=OUR_SOURCES)
    source = pc.if_else(is_ours, SOURCE_JOURNAL, source)
    rows = put_column(rows, "source", source.dictionary_encode())

    answered = pd.DataFrame({"key": keys.to_pylist(), "result": rows["result"].to_pylist()})
    key = answered["key"]
    key_of_pair = answered.drop_duplicates()["key"]
    contradicted = key_of_pair[key_of_pair.duplicated()]
    is_open = key.isin(contradicted)
    is_repeated = key.duplicated()
    is_kept = pa.array(~(is_open | is_repeated), pa.bool_())
    return KnownAnswers(rows.filter(is_kept))


# --- where the rows are from ----------------------------------------------------------------------


class Export(NamedTuple):
    """A table of another verifier."""

    place: str  # for messages
    names: Sequence[str]  # of its columns
    columns: Sequence[Any]  # their cells


def read_answers(source: Any, given: ExportOptions) -> pa.Table:
    """A row of the result schema for each row of the source."""
    if isinstance(source, str | Path):
        path = user_path(source)
        frame = read_file(path, lambda names: kind_of(names, given), own_names, given.options)
        place = str(path)
    else:
        frame = frame_of(source, WHOSE)
        place = "the frame"
    names = [str(label) for label in labels_of(frame)]
    cells = cells_of(frame)
    if given.columns is not None:
        return export_answers(Export(place, names, cells), given)
    ours = own_names(names)  # also in the export of a list that was verified before
    other_names = []
    other_cells = []
    for name, column in zip(names, cells, strict=True):
        if name not in ours:
            other_names.append(name)
            other_cells.append(column)
    export = Export(place, other_names, other_cells)
    if not ours or fitting_layouts(tuple(export.names)):
        return export_answers(export, given)
    try:
        return own_answers(Results(frame, given.column, None))
    except (ColumnError, InputError) as exc:
        whole = Export(place, names, cells)
        raise type(exc)(f"{exc}; if another verifier wrote {place}, {how_to_name(whole)}") from None


def kind_of(names: tuple[str, ...], given: ExportOptions) -> str:
    """Whose result an object of a JSON file is, and in which form; empty if none."""
    if given.columns is not None:
        wanted = {str(label) for label in given.columns.values()}
        return ANOTHER if wanted <= set(names) else ""
    return known_kind(names)


@lru_cache(maxsize=1_000)
def known_kind(names: tuple[str, ...]) -> str:
    """The service, and the member that has its word."""
    layouts = fitting_layouts(names)
    if not layouts:
        return ""
    services = " or ".join(layout.service for layout in layouts)
    by_plain = {plain_word(name): name for name in names}
    for name in layouts[0].columns["status"]:
        if name in by_plain:
            return f"{services} ({by_plain[name]!r:.80})"
    return f"{services} ('')"


def own_names(names: Collection[str]) -> set[str]:
    """The result columns of a frame that was verified: those beside a verdict and a status."""
    ours: set[str] = set()
    for name in names:
        lead = name.removesuffix("verdict")
        if lead != name and f"{lead}status" in names:
            ours.update(lead + result for result in RESULT_NAMES)
    return ours


def cells_of(frame: Any) -> list[Any]:
    """The cells of each column, by position: a name may occur twice."""
    if isinstance(frame, pa.Table):
        return list(frame.columns)
    if isinstance(frame, pd.DataFrame):
        return [frame.iloc[:, position] for position in range(frame.shape[1])]
    return [polars_to_arrow(series) for series in frame.get_columns()]


def own_answers(rows: Results) -> pa.Table:
    """The rows of a verified frame."""
    texts = strip_texts(rows.addresses.fill_null(""))
    no_status = pc.if_else(is_filled(texts), str(Status.PENDING), str(Status.MISSING))
    verdict = rows["verdict"]
    reasons = pc.coalesce(rows["reasons"], rows.why).fill_null("")
    words = {
        "status": pc.coalesce(rows["status"], no_status),
        "result": verdict,
        "reasons": texts_where(verdict.is_valid(), reasons),
        "source": rows["source"],
    }
    columns = {"email": where_filled(texts, texts)}
    for name, values in words.items():
        columns[name] = values.dictionary_encode()
    for name in (*FLAGS, "protected", "suggestion", "checked_at"):
        columns[name] = rows[name]
    columns["validation_type"] = kinds_of(rows)
    return complete_table(columns, len(texts))


# --- exports --------------------------------------------------------------------------------------


@lru_cache(maxsize=1_000)
def fitting_layouts(names: tuple[str, ...]) -> list[VerifierLayout]:
    """The layouts that fit the names of columns and need the most of them.

    That is one, unless several fit alike.
    """
    plain = frozenset(map(plain_word, names))
    most = 0
    fitting: list[VerifierLayout] = []
    for layout in verifier_layouts():
        count = layout.fits(plain)
        if count > most:
            most = count
            fitting = []
        if count == most > 0:
            fitting.append(layout)
    return fitting


class Chosen(NamedTuple):
    """The layout of an export, and the position of the column of each field."""

    layout: VerifierLayout
    places: Mapping[str, int]


def choose_layout(export: Export, given: ExportOptions) -> Chosen:
    """By what the caller says, then the known layouts, then the general one."""
    if given.columns is not None:
        places = {}
        for ours, label in given.columns.items():
            check_column(str(label), export.names)
            places[ours] = export.names.index(str(label))
        return Chosen(general_layout(), places)
    layouts = fitting_layouts(tuple(export.names))
    if len(layouts) == 1:
        return Chosen(layouts[0], places_of(layouts[0], export.names))
    has = "it has no columns"
    if export.names:
        has = f"it has {count_of(len(export.names), 'column')}: {listed(export.names)}"
    if layouts:
        services = " and ".join(layout.service for layout in layouts)
        raise ColumnError(
            f"{export.place} may be of {services}: leave out the columns that are not the "
            f"service's, or {how_to_name(export)}; {has}"
        )
    guessed = guess_general(export)
    if guessed is not None:
        return guessed
    raise ColumnError(
        f"{export.place} is not an export of a verifier that is known: {how_to_name(export)}; {has}"
    )


def places_of(layout: VerifierLayout, names: Sequence[str]) -> dict[str, int]:
    """The position of the column of each field.

    A service adds its columns after those of the user, which may have the same name: the last one
    counts.
    """
    last = last_places(names)
    places = {}
    for ours, theirs in layout.columns.items():
        for name in theirs:
            if name in last:
                places[ours] = last[name]
                break
    return places


def last_places(names: Sequence[str]) -> dict[str, int]:
    """The position of the last column of each name, in the form of `plain_word`."""
    return {plain_word(name): position for position, name in enumerate(names)}


def guess_general(export: Export) -> Chosen | None:
    """The general layout, if a column can only be the result of a verification; it is named."""
    last = last_places(export.names)
    possible = []
    for name, is_short in status_columns(export.names):
        position = last[name]
        if is_verification(export.columns[position], only_theirs=is_short):
            possible.append(position)
    if list(export.names) == NO_HEADER:
        for position, cells in enumerate(export.columns):
            if is_verification(cells, only_theirs=True):
                possible.append(position)
    if not possible:
        return None
    chosen, *others = [f"{export.names[position]!r:.80}" for position in possible]
    beside = ""
    if others:
        beside = f"; {first_of(others, SHOWN)} is not read"
    warn_user(
        f"{export.place} is read as the export of another verifier, with its results in column "
        f"{chosen}{beside}; to say otherwise, {how_to_name(export)}"
    )
    layout = general_layout()
    return Chosen(layout, {**places_of(layout, export.names), "status": possible[0]})


def is_verification(cells: Any, *, only_theirs: bool) -> bool:
    """Whether most words of a column are those of a verification.

    With `only_theirs` all have to be, and some must be words that only verifiers write.
    """
    words = Counter(map(word_of, read_present(cells).drop_null().to_pylist()))
    del words[""]
    known = 0
    for word in general_layout().words["status"]:
        known += words[word]
    if only_theirs:
        return known == words.total() and not words_of_verifiers().isdisjoint(words)
    return 0 < words.total() <= 2 * known


def how_to_name(export: Export) -> str:
    """What the caller can write to name the columns, with those that may be meant."""
    choice = choose_column(dict(zip(export.names, export.columns, strict=True)))
    email = "..."
    if choice.chosen is not None and choice.is_sure:
        email = choice.chosen.name
    others = [name for name in export.names if name != email]
    likely = [name for name in others if STATUS_LIKE.search(plain_word(name))]
    status = "..."
    if likely:
        status = likely[0]
    elif len(others) == 1:
        status = others[0]
    email = printable_text(email, LONGEST_WORD)
    status = printable_text(status, LONGEST_WORD)
    option = quote(f"email={email},status={status}")
    columns = f"columns={{'email': {email!r}, 'status': {status!r}}}"
    return f"name its columns, as {columns} or --map {option}"


def export_answers(export: Export, given: ExportOptions) -> pa.Table:
    """The rows of an export."""
    layout, places = choose_layout(export, given)
    cells = {}
    for field, position in places.items():
        cells[field] = read_present(export.columns[position])
    texts = read_export_addresses(export, given.column, layout, places)
    nothing = pa.nulls(len(texts), pa.string())
    suggestions = cells.pop("suggestion", nothing)
    moments = cells.pop("at", nothing)
    cells.pop("email", None)
    answers, codes = judge_rows(layout, cells, given.outcomes or {}, len(texts))
    check_words(export.place, layout, answers, codes)
    is_missing = ~to_bools(is_filled(texts))
    codes[is_missing] = len(answers)
    answers.append(Answer(Status.MISSING))

    rows = answer_table(answers, layout.service).take(codes)
    columns = {}
    for name in WORD_COLUMNS:
        columns[name] = one_array(rows[name]).dictionary_encode()
    for name in FLAGS:
        columns[name] = one_array(rows[name])
    columns["suggestion"] = suggested_addresses(texts, suggestions)
    columns["email"] = where_filled(texts, texts)
    columns["checked_at"] = map_distinct_texts(parse_moment, moments, MOMENT)
    return complete_table(columns, len(texts))


def answer_table(answers: Sequence[Answer], service: str) -> pa.Table:
    """The words and flags of each answer, as the result schema names them."""
    rows = []
    for answer in answers:
        row: dict[str, Any] = {
            "status": str(answer.status),
            "result": answer.verdict,
            "reasons": answer.reasons,
            **answer.flags,
        }
        if answer.verdict is not None:
            row["source"] = service
        rows.append(row)
    return pa.Table.from_pylist(rows, ANSWER_SCHEMA)


def read_export_addresses(
    export: Export, column: Hashable | None, layout: VerifierLayout, places: Mapping[str, int]
) -> pa.StringArray:
    """The repaired addresses of the given column, the service's own, or one that looks like it.

    The answers of a service may have an address in different members: the first filled one counts.
    """
    if column is not None:
        check_column(column, export.names)
        chosen = [export.names.index(str(column))]
    elif "email" in places:
        chosen = [places["email"]]
        last = last_places(export.names)
        for name in layout.columns.get("email", ()):
            if name in last:
                chosen.append(last[name])
    else:
        chosen = [guess_place(export, without=places.values())]
    first, *others = dict.fromkeys(chosen)
    texts = read_cells(export.columns[first], longest=MAX_CELL)["text"]
    for position in others:
        more = read_cells(export.columns[position], longest=MAX_CELL)["text"]
        texts = pc.if_else(is_filled(texts), texts, more)
    repaired = repair_column(texts, suggests_domains=False)
    return strip_texts(repaired["text"])


def guess_place(export: Export, without: Collection[int]) -> int:
    """The position of the column of addresses; `ColumnError` where it could be somebody else's.

    It is none of those that were recognised. Of columns with the same name it is the last one.
    """
    columns = {}
    places = {}
    for position, name in enumerate(export.names):
        if position not in without:
            columns[name] = export.columns[position]
            places[name] = position
    choice = choose_column(columns)
    try:
        name = choice.require_sure()
    except ColumnError as exc:
        raise ColumnError(f"{export.place}: {exc}, as {HOW_TO_NAME}") from None
    if choice.others:
        warn_user(f"{export.place}: {choice.describe()}; another is given as {HOW_TO_NAME}")
    return places[name]


def suggested_addresses(texts: pa.StringArray, cells: pa.StringArray) -> pa.StringArray:
    """The first suggestion of each cell; a domain alone gets the local part of the address."""
    if cells.null_count == len(cells):
        return cells
    suggestions = []
    for text, cell in zip(texts.to_pylist(), cells.to_pylist(), strict=True):
        first = (cell or "").split(",")[0].strip()
        local, sign, _ = text.rpartition("@")
        if "@" in first:
            suggestions.append(first)
        elif sign and DOMAIN.fullmatch(first):
            suggestions.append(f"{local}@{first}")
        else:
            suggestions.append(None)
    return pa.array(suggestions, pa.string())


def kinds_of(rows: Results) -> pa.StringArray:
    """The validation type of each row; null where nothing shows it.

    Only a mail server shows what is catch-all.
    """
    noted = rows.data.notes().get("validation_type")
    smtp = pa.scalar(str(ValidationType.SMTP))
    is_smtp = rows["catch_all"].is_valid()
    kinds = pc.if_else(is_smtp, smtp, pa.scalar(noted, pa.string()))
    if "validation_type" not in rows:
        return kinds
    written = rows["validation_type"].cast(pa.string())
    return pc.coalesce(written, kinds)
