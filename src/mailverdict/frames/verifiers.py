"""`read_verdicts`: what other verifiers said, as result columns of ours; and which addresses they settled."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..bounces.events import read_events
from ..bounces.mailboxes import kind_of_file
from ..checks.syntax.column import observe_column
from ..checks.syntax.kernels import to_bools
from ..errors import ColumnError, InputError
from ..files.readers import open_table
from ..model.address import address_keys
from ..model.paths import user_path
from ..model.table import (
    SOURCE_JOURNAL,
    SOURCE_LOCAL,
    SOURCE_REMOTE,
    complete_table,
    one_array,
    texts_where,
)
from ..model.words import (
    Reason,
    Status,
    ValidationType,
    Verdict,
    count_of,
    first_of,
    printable_text,
)
from ..repair.repair import MAX_CELL
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
from ..table.text_column import is_filled, read_present, read_values, strip_texts, where_filled
from ..table.verifiers import FLAGS, SKIP, WORDS, VerifierLayout, verifier_layouts
from ..verdicts import order_reasons, verdict_of
from .clean import repair_column
from .results import Results

COLUMN = "email"  # of what `read_verdicts` returns
COLUMNS = (*choose_columns("core", clean=False), BY_NAME["source"])
SHOWN = 5  # words and columns that a message quotes
LONGEST_WORD = 60  # characters of a word that becomes a reason
TRUTH = {
    **dict.fromkeys(("true", "yes", "y", "1", "10"), True),
    **dict.fromkeys(("false", "no", "n", "0", "00"), False),
}
# For each type those whose ``valid`` says as much; `smtp` does not ask blacklists.
DEEP_ENOUGH = {
    ValidationType.MX: (ValidationType.MX, ValidationType.MX_BLACKLIST, ValidationType.SMTP),
    ValidationType.MX_BLACKLIST: (ValidationType.MX_BLACKLIST,),
    ValidationType.SMTP: (ValidationType.SMTP,),
}
HOW_TO_NAME = "column= of read_verdicts (beside --known as --against-column)"
WHOSE = "give what read_verdicts returned, a verified frame, or the export of another verifier"


@overload
def read_verdicts(source: str | Path, *, column: Hashable | None = None) -> pd.DataFrame: ...
@overload
def read_verdicts(source: Frame, *, column: Hashable | None = None) -> Frame: ...
def read_verdicts(source: Any, *, column: Hashable | None = None) -> Any:
    """Read what another verifier said about addresses, as the result columns of `verify`. Uses no network.

    The service is found out by the columns of its file. Its words become our verdicts and reasons by a
    table: a full mailbox is ``unknown`` here, whatever the service calls it, and an address of a role
    ``risky``. Where no reason of ours fits, the reason is the service's own word. What the file does not
    say is NA.

    Parameters
    ----------
    source : path or DataFrame
        An export (CSV, TSV, Parquet, XLSX, or a pandas, Polars or Arrow frame) or the JSON of ZeroBounce,
        NeverBounce, Kickbox, Bouncer, Hunter, Emailable, MillionVerifier, DeBounce, Mailgun, Clearout,
        Verifalia, QuickEmailVerification, MyEmailVerifier, Snov.io, XVerify, Experian, Loqate, Proofy,
        Bouncify, CaptainVerify, Email Hippo, MyCleanList, Reacher, AfterShip or mailsherpa; or what
        `verify` returned, also as a file.
    column : hashable, optional
        The column of addresses; by default the one that looks like it by name and cells.

    Returns
    -------
    DataFrame
        One row for each row of `source`: `email` (``string``, repaired as `verify` does), the columns
        `email_verdict` to `email_error_message` of ``columns="core"``, with the types of `verify`, and
        `email_source` (``string``: the service). Status: ``done``; ``missing`` without an address;
        ``pending`` where the service says that it checked nothing. The kind and, in pandas, the index
        are those of the frame given.

    Raises
    ------
    InputError
        The file cannot be read, or none of its results is a word of its service.
    ColumnError
        The columns are of no known service or of several; or there is no column of addresses, or
        there are two that are equally likely.

    Warns
    -----
    UserWarning
        If words of the service are not known, whose rows are ``unknown``; if several columns hold
        addresses, of which one is read; or if objects of a JSON file have no known form.

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
    """
    given = (
        None if isinstance(source, str | Path) else frame_of(source, WHOSE)
    )  # a stream has its rows once
    answers = read_answers(source if given is None else given, column)
    names = [label_of(COLUMN, None, each.name) for each in COLUMNS]
    library = library_of(given)
    out: Any = answers.select(["email"]).rename_columns([COLUMN])
    if library == "pandas":
        index = given.index if given is not None else None
        out = pd.DataFrame({COLUMN: to_string(answers["email"])}, index=index)
    elif library == "polars":
        out = polars_of(out)
    return Table(out, COLUMN).attach(answers, names, COLUMNS, {})


@dataclass(frozen=True)
class KnownAnswers:
    """The addresses that another verifier settled, each once."""

    rows: pa.Table  # of the result schema; `email` is the key

    def settled_for(self, wanted: ValidationType) -> KnownAnswers:
        """Without what `verify` found valid by a type that asks less than the wanted one, or that is not known."""
        if wanted is ValidationType.REGEX:
            return self  # asking again costs nothing
        kind, source, verdict = (
            self.rows[name].cast(pa.string()) for name in ("validation_type", "source", "result")
        )
        is_enough = pc.is_in(kind, value_set=pa.array(map(str, DEEP_ENOUGH[wanted])))
        is_weak = pc.and_not(pc.equal(source, SOURCE_JOURNAL), is_enough)
        return KnownAnswers(
            self.rows.filter(pc.invert(pc.and_(is_weak, pc.equal(verdict, str(Verdict.VALID)))))
        )

    def find(self, texts: pa.StringArray) -> pa.Int32Array:
        """For each stripped text its row; null where there is none."""
        return pc.index_in(address_keys(texts), value_set=one_array(self.rows["email"]))


def read_known(known: Any, column: Hashable | None = None) -> KnownAnswers | None:
    """The well-formed addresses that are valid or invalid by what `read_verdicts` reads; None for None.

    An address with both verdicts is open. What a run of ours settled is known from an earlier run.
    """
    if known is None or isinstance(known, KnownAnswers):
        return known
    answers = read_answers(known, column)
    settled = pa.array([str(Verdict.VALID), str(Verdict.INVALID)])
    rows = answers.filter(pc.is_in(answers["result"].cast(pa.string()), value_set=settled))
    rows = rows.filter(observe_column(one_array(rows["email"])).ok)
    keys, source = address_keys(one_array(rows["email"])), rows["source"].cast(pa.string())
    is_ours = pc.is_in(source, value_set=pa.array([SOURCE_LOCAL, SOURCE_REMOTE, None]))
    source = pc.if_else(is_ours, SOURCE_JOURNAL, source)
    rows = put_column(
        put_column(rows, "email", keys), "source", one_array(source).dictionary_encode()
    )
    said = pd.DataFrame({"key": keys.to_pylist(), "result": rows["result"].to_pylist()})
    pairs = said.drop_duplicates()
    contradicted = pairs["key"][pairs["key"].duplicated()]
    is_first = ~(said["key"].duplicated() | said["key"].isin(contradicted))
    return KnownAnswers(rows.filter(pa.array(is_first, pa.bool_())))


# --- where the rows are from --------------------------------------------------------------------------------------


class Export(NamedTuple):
    """A table of another verifier."""

    place: str  # for messages
    names: Sequence[str]  # of its columns
    columns: Sequence[Any]  # their cells


def read_answers(source: Any, column: Hashable | None) -> pa.Table:
    """A row of the result schema for each row of the source."""
    if isinstance(source, str | Path):
        path = user_path(source)
        frame, place = read_file(path), str(path)
    else:
        frame, place = frame_of(source, WHOSE), "the frame"
    names = [str(label) for label in labels_of(frame)]
    ours = own_names(names)  # also in the export of a list that was verified before
    columns = {at: cells for at, cells in enumerate(cells_of(frame)) if names[at] not in ours}
    export = Export(place, [names[at] for at in columns], list(columns.values()))
    if ours and not fitting_layouts(export.names):
        return own_answers(Results(frame, column, None))
    return export_answers(export, column)


def read_file(path: Path) -> pa.Table:
    """The rows of a table; of a JSON file with results the objects, with the members of all of them."""
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if kind_of_file(path) == "events":
        events = list(read_events(path, fitting_layouts))
        if known := [event for event in events if event]:
            if left := len(events) - len(known):
                warn_user(
                    f"{path}: {count_of(left, 'object')} of {len(events):,} without results of a known form"
                )
            names = dict.fromkeys(name for event in known for name in event)
            cells = {
                name: [None if event.get(name) is None else str(event[name]) for event in known]
                for name in names
            }
            return pa.table({name: pa.array(values, pa.string()) for name, values in cells.items()})
    with open_table(path) as table:
        return pa.concat_tables(table.pieces())


def own_names(names: Collection[str]) -> set[str]:
    """The result columns of a frame that was verified: those beside a verdict and a status."""
    leads = [name.removesuffix("verdict") for name in names if name.endswith("verdict")]
    return {f"{lead}{each}" for lead in leads if f"{lead}status" in names for each in RESULT_NAMES}


def cells_of(frame: Any) -> list[Any]:
    """The cells of each column, by position: a name may occur twice."""
    if isinstance(frame, pa.Table):
        return list(frame.columns)
    if isinstance(frame, pd.DataFrame):
        return [frame.iloc[:, at] for at in range(frame.shape[1])]
    return [polars_to_arrow(series) for series in frame.get_columns()]


def own_answers(rows: Results) -> pa.Table:
    """The rows of a verified frame."""
    texts = strip_texts(rows.addresses.fill_null(""))
    no_status = pc.if_else(is_filled(texts), str(Status.PENDING), str(Status.MISSING))
    reasons = pc.coalesce(rows["reasons"], rows.why).fill_null("")
    words = {
        "status": pc.coalesce(rows["status"], no_status),
        "result": rows["verdict"],
        "reasons": texts_where(rows["verdict"].is_valid(), reasons),
        "source": rows["source"],
    }
    columns = {name: values.dictionary_encode() for name, values in words.items()}
    columns |= {name: rows[name] for name in (*FLAGS, "protected", "suggestion")}
    columns["validation_type"] = kinds_of(rows)
    return complete_table({"email": where_filled(texts, texts), **columns}, len(texts))


# --- exports ------------------------------------------------------------------------------------------------------


def fitting_layouts(names: Sequence[str]) -> list[VerifierLayout]:
    """The layouts that fit the names of columns and need the most of them: one, unless several fit alike."""
    plain = frozenset(map(plain_word, names))
    needed = [layout.fits(plain) for layout in verifier_layouts()]
    return [
        each
        for each, count in zip(verifier_layouts(), needed, strict=True)
        if count and count == max(needed)
    ]


def choose_layout(export: Export) -> VerifierLayout:
    found = fitting_layouts(export.names)
    if len(found) == 1:
        return found[0]
    has = f"it has the columns {listed(export.names)}"
    if found:
        services = " and ".join(each.service for each in found)
        raise ColumnError(
            f"{export.place} may be of {services}: leave out the columns that are not the service's; {has}"
        )
    services = ", ".join(each.service for each in verifier_layouts())
    raise ColumnError(
        f"{export.place} is not an export of a verifier that is known ({services}); {has}"
    )


def export_answers(export: Export, column: Hashable | None) -> pa.Table:
    """The rows of an export."""
    layout = choose_layout(export)
    # A service adds its columns after those of the user, which may have the same name: the last one counts.
    at = {plain_word(name): position for position, name in enumerate(export.names)}
    places = {
        ours: next((at[each] for each in theirs if each in at), None)
        for ours, theirs in layout.columns.items()
    }
    cells = {
        ours: read_present(export.columns[place])
        for ours, place in places.items()
        if place is not None
    }
    texts = read_addresses(export, column, set(places.values()))
    suggestion = cells.pop("suggestion", pa.nulls(len(texts), pa.string()))
    answers, codes = judge_rows(layout, cells, len(texts))
    check_words(export.place, layout, answers, codes)
    codes[~to_bools(is_filled(texts))] = len(answers)
    answers.append(Answer(Status.MISSING))

    def by_row(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
        return pa.array(values, kind).take(pa.array(codes))

    words: dict[str, Sequence[Any]] = {
        "status": [str(each.status) for each in answers],
        "result": [each.verdict for each in answers],
        "reasons": [each.reasons for each in answers],
        "source": [layout.service if each.verdict else None for each in answers],
    }
    columns = {
        name: by_row(values, pa.string()).dictionary_encode() for name, values in words.items()
    }
    columns |= {
        name: by_row([each.flags.get(name) for each in answers], pa.bool_()) for name in FLAGS
    }
    columns["suggestion"] = texts_where(
        pc.match_substring(suggestion, "@").fill_null(False), suggestion
    )
    return complete_table({"email": where_filled(texts, texts), **columns}, len(texts))


def read_addresses(
    export: Export, column: Hashable | None, used: Collection[int | None]
) -> pa.StringArray:
    """The repaired addresses of the given column, or of the one that looks like it and that is not the service's."""
    if column is not None:
        check_column(column, export.names)
        at = export.names.index(str(column))
    else:
        others = {at: cells for at, cells in enumerate(export.columns) if at not in used}
        at = guess_place(export, others)
    texts = read_values(export.columns[at], for_repair=True, longest=MAX_CELL).texts
    return strip_texts(repair_column(texts, suggests_domains=False).texts)


def guess_place(export: Export, columns: Mapping[int, Any]) -> int:
    """The position of the column of addresses; `ColumnError` where it could be somebody else's."""
    choice = choose_column({export.names[at]: cells for at, cells in columns.items()})
    try:
        name = choice.require_sure()
    except ColumnError as exc:
        raise ColumnError(f"{export.place}: {exc}, as {HOW_TO_NAME}") from None
    if choice.others:
        warn_user(f"{export.place}: {choice.describe()}; another is given as {HOW_TO_NAME}")
    return max(at for at in columns if export.names[at] == name)


# --- rows ---------------------------------------------------------------------------------------------------------


class Answer(NamedTuple):
    """What the cells of a row say."""

    status: Status
    verdict: str | None = None
    reasons: str | None = None  # joined by ";"
    flags: Mapping[str, bool | None] = {}
    unknown: str = ""  # a word of the service that is not known


def judge_rows(
    layout: VerifierLayout, columns: Mapping[str, pa.StringArray], size: int
) -> tuple[list[Answer], npt.NDArray[Any]]:
    """The answers of distinct cells, and for each row which it has."""
    cells = pd.DataFrame(
        {name: values.to_pylist() for name, values in columns.items()}, range(size), dtype=object
    )
    codes: npt.NDArray[Any] = (
        cells.groupby(list(cells), dropna=False, sort=False).ngroup().to_numpy(copy=True)
    )
    rows = cells.drop_duplicates().to_dict("records")
    return [
        judge_row(layout, {str(n): cell for n, cell in row.items() if cell is not None})
        for row in rows
    ], codes


def judge_row(layout: VerifierLayout, cells: Mapping[str, str]) -> Answer:
    """The answer of the filled cells of a row.

    >>> (bouncer,) = [each for each in verifier_layouts() if each.service == "Bouncer"]
    >>> judge_row(bouncer, {"status": "undeliverable", "reason": "rejected_email"}).reasons
    'mailbox_not_found'
    """
    split = {
        name: frozenset(map(plain_word, re.split("[,;]", cell))) - {""}
        for name, cell in cells.items()
    }
    words = {
        name: found for name, found in split.items() if found
    }  # others are signs alone, as `-`
    if "status" not in words:
        return Answer(Status.PENDING)
    unknown = next(
        (cells[name] for name in WORDS if not words.get(name, frozenset()) <= layout.words[name]),
        "",
    )
    found = next((found for fields, found in layout.rows if fits(fields, words)), None)
    if found == SKIP and not unknown:
        return Answer(Status.PENDING)
    is_reason = found is not None and not unknown and found not in tuple(Verdict)
    named = [Reason(each) for each in found.split()] if found and is_reason else []
    flags = {name: True if name in named else truth_of(words.get(name)) for name in FLAGS}
    reasons = order_reasons(
        [*named, *(Reason(name) for name in FLAGS if flags[name] and name != "free")]
    )
    own = own_word(unknown or cells["reason" if "reason" in words else "status"])
    if unknown or found is None:
        return Answer(Status.DONE, Verdict.UNKNOWN, ";".join([own, *reasons]), flags, unknown)
    if found == Verdict.INVALID:
        return Answer(Status.DONE, Verdict.INVALID, ";".join([own, *reasons]), flags)
    if found == Verdict.RISKY:
        return Answer(Status.DONE, Verdict.RISKY, ";".join(reasons or [own]), flags)
    return Answer(Status.DONE, verdict_of(reasons), ";".join(reasons), flags)


def fits(fields: Mapping[str, frozenset[str] | bool], words: Mapping[str, frozenset[str]]) -> bool:
    """Whether the words of a row's cells are those of a row of the table."""
    return all(
        truth_of(words.get(name)) is wanted
        if isinstance(wanted, bool)
        else not wanted.isdisjoint(words.get(name, ()))
        for name, wanted in fields.items()
    )


def truth_of(words: Collection[str] | None) -> bool | None:
    """A flag; None if the cell is empty or says something else, as ``unknown``."""
    return TRUTH.get(next(iter(words))) if words else None


def own_word(text: str) -> str:
    """A word of the service as a reason.

    >>> own_word("Global Suppression")
    'global_suppression'
    """
    return re.sub(r"\W+", "_", text.lower()).strip("_")[:LONGEST_WORD]


def check_words(
    place: str, layout: VerifierLayout, answers: Sequence[Answer], codes: npt.NDArray[Any]
) -> None:
    """Warn of words that are not known; an error if no other row has an answer."""
    counts: Counter[str] = Counter()
    for answer, count in zip(
        answers, np.bincount(codes, minlength=len(answers)).tolist(), strict=True
    ):
        counts.update({answer.unknown: count} if answer.unknown else {})
    if not counts:
        return
    shown = first_of(
        [repr(printable_text(word, LONGEST_WORD)) for word, _ in counts.most_common()], SHOWN
    )
    if not any(each.verdict and not each.unknown for each in answers):
        raise InputError(
            f"{place} has the columns of {layout.service}, but none of its words: it has {shown}"
        )
    rows = count_of(counts.total(), "row has", "rows have")
    warn_user(
        f"{place}: {rows} words of {layout.service} that are not known, and stay unknown: {shown}"
    )


def kinds_of(rows: Results) -> pa.StringArray:
    """The validation type of each row; null where nothing shows it. Only a mail server shows what is catch-all."""
    noted = pa.scalar(rows.data.notes().get("validation_type"), pa.string())
    shown = pc.if_else(rows["catch_all"].is_valid(), pa.scalar(str(ValidationType.SMTP)), noted)
    return (
        pc.coalesce(rows["validation_type"].cast(pa.string()), shown)
        if "validation_type" in rows
        else shown
    )
