"""`read_bounces`: mailboxes of bounces and exports of sending services as one frame of outcomes.

    bounces.mbox  -> a mail  -> `checks.bounces.read_message` -> DeliveryReport by recipient
    export.csv    -> a row   -> layout by its columns -> Statement -> judged once -> DeliveryReport
    events.json   -> events  -> layout by their members -> as a row
    all reports   -> notices of delay that a final report replaces are left out -> the frame

What cannot be read is a problem with its place (`refuse`): counted, quoted in a warning, kept in
`attrs`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, overload

import pandas as pd
import pyarrow as pa

from ..checks.bounces.message import DeliveryReport, read_message
from ..checks.bounces.outcome import MAX_DIAGNOSTIC, Judgement, Outcome, clean_text
from ..errors import ColumnError, InputError, SettingsError
from ..files.readers import open_table
from ..files.table_file import ReadOptions
from ..model.address import folded_key
from ..model.paths import user_path
from ..model.words import Reason, count_of, printable_text
from ..table.cells import to_array
from ..table.columns import listed
from ..table.notices import Note, warn_user
from ..table.table import Frame, Table, frame_of, labels_of, library_of, polars_of
from .events import (
    Event,
    Unfit,
    events_in,
    find_general,
    first_document,
    mentions_failure,
    read_documents,
    texts_of,
)
from .exports import (
    UNCLEAR,
    Statement,
    choose_layout,
    conclude,
    known_exports,
    parse_moment,
    read_address,
    read_statement,
    statement_names,
    status_code,
    unknown_export,
)
from .general import general_description, general_layout
from .mailboxes import kind_of_file, list_files, read_mails
from .services import FIELDS, SKIP, ExportLayout
from .words import ExportRow


class JudgedStatement(NamedTuple):
    """The judgement of rows with the same statement; none if they are not about a delivery."""

    statement: Statement
    meaning: str | None  # None if the words are not known
    judgement: Judgement | None


MAX_CELL = 4_001  # characters of a cell by which rows are compared: more than are read
MOST_JUDGED = 100_000  # distinct words and replies that are remembered
NOTE = "bounces"  # key in `DataFrame.attrs` for what was read and what was not
OUTCOME_DTYPE = pd.CategoricalDtype(["delivered", "hard", "soft", "blocked", "complaint"])
SHOWN = 3  # problems that the warning quotes
KEPT = 1_000  # problems that are kept in `attrs`
SCHEMA = pa.schema(
    [
        ("address", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("outcome", pa.dictionary(pa.int8(), pa.string())),
        ("status", pa.string()),
        ("diagnostic", pa.string()),
        ("reason", pa.string()),
    ]
)


@overload
def read_bounces(
    source: str | Path | Sequence[str | Path],
    *,
    columns: Mapping[str, str] | None = None,
    outcomes: Mapping[str, str] | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
) -> pd.DataFrame: ...
@overload
def read_bounces(
    source: Frame,
    *,
    columns: Mapping[str, str] | None = None,
    outcomes: Mapping[str, str] | None = None,
) -> Frame: ...
def read_bounces(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    outcomes: Mapping[str, str] | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
) -> Any:
    """Read what became of mails: bounces and complaints in a mailbox, or a service's export.

    Uses no network and changes nothing in the mailbox. Mails are read by RFC 3464 and RFC 6533
    (delivery status notifications), RFC 5965 (complaints) and by the forms of known mail systems,
    in plain text or HTML; answers of people, receipts and out-of-office notes are not counted.
    Diagnostic texts are judged by the same rules as SMTP replies. Of each mail the first 512 KiB
    are read, which hold the report; one that is cut is among those that could not be read.

    Parameters
    ----------
    source : path, list of paths or DataFrame
        An mbox file, a Maildir, a mail (``.eml``), a folder of these, a table (CSV, TSV, Parquet,
        XLSX, or a pandas, Polars or Arrow frame) or events (JSON) of a sending service. Those of
        SendGrid, Mailgun, Postmark, Amazon SES, Salesforce Marketing Cloud, SparkPost, Mailjet,
        Brevo, PowerMTA, Mandrill, Mailchimp, Resend, Postal, HubSpot, Scaleway and listmonk are
        recognised by their names, and what this function returned. Any other table or event is read
        by the names of its columns or members, if they say where the address and a word, reply or
        status are; a warning says which were taken. Events may be one a line, in arrays, in the
        pages of an API, in the envelopes of Amazon SNS and in its mails.
    columns : mapping of str to str, optional
        For other tables: the column of each field, as ``{"address": "E-Mail", "outcome":
        "Result"}``. Fields: `address`, and at least one of `outcome`, `status` and `diagnostic`;
        also `at`.
    outcomes : mapping of str to str, optional
        What a word in the column of outcomes means, if it is not a common one, as ``{"Dead":
        "hard"}``; ``"skip"`` leaves out its rows, ``"judge"`` lets the reply decide.
    encoding, delimiter, sheet : str, optional
        Of a table; found out when not given.

    Returns
    -------
    DataFrame
        One row for each report about one recipient: `address` (``string``), `at` (UTC, to the
        microsecond; NaT if not known), `outcome` (category: delivered, hard, soft, blocked,
        complaint), `status` (``string``: enhanced status code, RFC 3463), `diagnostic` (``string``,
        at most 500 characters on one line) and `reason` (``string``: as in results of `verify`).
        The kind is that of the frame given, pandas for a path.

        *hard*: the mailbox or domain does not exist, or is disabled. *blocked*: the sender or the
        message was refused, by a block list, a policy, spam filter or authentication; this says
        nothing about the address. *soft*: full, greylisted, timed out, or refused without a cause.
        A notice of delay is *soft*, and left out if a final report on the same mail follows. A mail
        that bounced at a mailbox of another name, behind a forward or a list, is *soft*, too.

        For pandas, ``attrs["bounces"]`` counts what was read, what is not about a delivery, and
        lists what could not be read, and how exports were read that are not known.

    Raises
    ------
    InputError
        The path does not exist, or is not one of these.
    ColumnError
        Nothing in a table or in events was understood and `columns` is not given, or `columns`
        names a column that is not there.
    SettingsError
        `columns` or `outcomes` has a wrong field or value.

    Warns
    -----
    UserWarning
        If mails or rows could not be read: how many, and which were the first. If a table or
        events are of no known service: by which names they were read.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> export = pd.DataFrame(
    ...     {
    ...         "email": ["ada@firm.example", "bo@firm.example"],
    ...         "created": [1772529300, 1772529301],
    ...         "status": ["5.1.1", "5.7.1"],
    ...         "reason": ["550 5.1.1 User unknown", "554 5.7.1 blocked using zen.spamhaus.org"],
    ...     }
    ... )
    >>> mv.read_bounces(export)[["address", "outcome", "reason"]]
                address  outcome             reason
    0  ada@firm.example     hard  mailbox_not_found
    1   bo@firm.example  blocked          protected
    """
    if isinstance(source, str | list | tuple) and not len(source):
        raise SettingsError(
            f"source={source!r} is empty: give a path, a list of paths or a DataFrame"
        )
    options = ReadOptions(encoding, delimiter, sheet)
    reader = BounceReader(columns, check_outcomes(outcomes), options)
    frame = None
    if isinstance(source, str | Path):
        reader.read_path(user_path(source))
    elif isinstance(source, list | tuple) and all(isinstance(path, str | Path) for path in source):
        for path in source:
            reader.read_path(user_path(path))
    else:
        frame = frame_of(source, "give a path, a list of paths or a DataFrame")
        reader.read_frame(frame)
    reports, replaced = drop_replaced(reader.reports)
    reader.warn()
    table = make_table(reports)
    library = library_of(frame)
    if library == "arrow":
        return table
    if library == "polars":
        return polars_of(table)
    out = table.to_pandas(types_mapper={pa.string(): pd.StringDtype("pyarrow")}.get)
    out = out.astype({"outcome": OUTCOME_DTYPE})
    out.attrs[NOTE] = reader.note(replaced)
    return out


def check_outcomes(outcomes: Mapping[str, str] | None) -> dict[str, str]:
    given = dict(outcomes or {})
    allowed = (*map(str, Outcome), SKIP, "judge")
    for word, meaning in given.items():
        if meaning not in allowed:
            raise SettingsError(f"outcomes[{word!r}]={meaning!r}: one of {', '.join(allowed)}")
    return given


@dataclass
class BounceReader:
    """Reads mailboxes and tables; keeps what was read so far, and what could not be read."""

    columns: Mapping[str, str] | None  # of a table, by our names, as the caller gave them
    outcomes: Mapping[str, str]  # what words of a table mean, as the caller gave it
    options: ReadOptions
    reports: list[DeliveryReport] = field(default_factory=list)
    mails: int = 0
    rows: int = 0  # of tables
    other: int = 0  # mails and rows that are not about a delivery
    problem_count: int = 0
    problems: list[tuple[str, str]] = field(default_factory=list)  # place and problem
    guesses: list[str] = field(default_factory=list)  # how tables were read that are not known
    general: ExportLayout | None = None  # of the first event of a file that is not known

    def refuse(self, place: str, problem: str, count: int = 1) -> None:
        self.problem_count += count
        if len(self.problems) < KEPT:
            self.problems.append((printable_text(place, 200), printable_text(problem, 300)))

    def note(self, replaced: int) -> dict[str, Any]:
        """For `attrs`; JSON-ready."""
        return {
            "mails": self.mails,
            "rows": self.rows,
            "other": self.other,
            "replaced_delays": replaced,
            "unread": self.problem_count,
            "problems": [list(problem) for problem in self.problems],
            "guesses": list(self.guesses),
        }

    def warn(self) -> None:
        warn_user(*(Note(guess) for guess in self.guesses[:SHOWN]))
        if not self.problem_count:
            return
        shown = [f"{place}: {problem}" for place, problem in self.problems[:SHOWN]]
        if len(self.problems) > SHOWN:
            shown.append("...")
        total = self.mails + self.rows
        warn_user(
            f"{self.problem_count:,} of {total:,} mails and rows could not be read: "
            f"{'; '.join(shown)}"
        )

    def read_path(self, path: Path) -> None:
        """Read a file or folder; within a folder, a file of an unknown kind is a problem only."""
        if not path.exists():
            raise InputError(f"{path}: no such file or directory")
        kind = kind_of_file(path)
        if kind == "outlook":
            raise InputError(f"{path}: a mail in Outlook's own form; save it as .eml")
        if kind == "unknown":
            raise InputError(
                f"{path}: not a mailbox (mbox, Maildir), a mail (.eml) or a table; if it is "
                "packed, unpack it"
            )
        if kind == "folder":
            self.read_folder(path)
        elif kind == "events" and self.columns is None:
            self.read_events_file(path)
        elif kind in ("table", "events"):
            self.read_table_file(path)
        else:
            self.read_mailbox(path, kind)
        if self.general is not None:
            self.tell_general(self.general, path.name)
            self.general = None

    def read_folder(self, folder: Path) -> None:
        files = list_files(folder)
        if not files:
            raise InputError(f"{folder} has no files")
        for path in files:
            try:
                self.read_path(path)
            except (InputError, ColumnError, OSError) as exc:
                self.mails += 1
                problem = str(exc).removeprefix(f"{path}: ")
                self.refuse(str(path.relative_to(folder)), problem)

    def read_mailbox(self, path: Path, kind: str) -> None:
        for mail in read_mails(path, kind):
            self.mails += 1
            if mail.data is None:
                self.refuse(mail.place, mail.problem)
                continue
            reading = read_message(mail.data)
            if reading.events:
                self.read_events_of_mail(reading.events, mail.place)
                continue
            self.reports += reading.reports
            self.other += reading.is_other
            if reading.problems:
                self.refuse(mail.place, "; ".join(dict.fromkeys(reading.problems)))

    def read_events_of_mail(self, text: str, place: str) -> None:
        """Read the notification at the beginning of a mail; behind it stands a text for people."""
        try:
            document = first_document(text)
        except (ValueError, RecursionError):
            self.refuse(place, "it begins as a notification in JSON that is not valid")
            return
        rows_before = self.rows
        self.read_rows(self.rows_of_document(document, place), place, are_events=True)
        self.rows = rows_before  # the mail is counted

    def read_table_file(self, path: Path) -> None:
        with open_table(path, self.options) as table:
            try:
                layout = choose_layout(table.columns, self.columns)
                names = layout.names()
                for name in names:
                    table.check_column(name)
            except ColumnError as exc:
                raise ColumnError(f"{path}: {exc}") from None
            rows = rows_of_pieces(table, names, layout)
            self.read_table_rows(layout, rows, path.name, table.columns)

    def read_frame(self, frame: Any) -> None:
        labels = {str(label): label for label in labels_of(frame)}
        layout = choose_layout(list(labels), self.columns)
        cells = {}
        for name in layout.names():
            cells[name] = to_array(Table(frame, labels[name]).values())
        self.read_table_rows(layout, rows_of_table(cells, layout), "the frame", list(labels))

    def read_table_rows(
        self, layout: ExportLayout, rows: Iterable[ExportRow], place: str, names: Sequence[str]
    ) -> None:
        """Read a table.

        If it is not a known export, say how, or that nothing in it was understood.
        """
        rows_before = self.rows
        count_before = self.problem_count
        kept_before = len(self.problems)
        understood = self.read_rows(rows, place)
        if not layout.is_guess:
            return
        self.general = None
        if understood == 0 and self.rows > rows_before:
            self.forget_problems(count_before, kept_before)
            raise unknown_export(names)
        self.tell_general(layout, place)

    def forget_problems(self, count: int, kept: int) -> None:
        """Forget the problems of a file that is an error as a whole."""
        self.problem_count = count
        del self.problems[kept:]

    def tell_general(self, layout: ExportLayout, place: str) -> None:
        self.guesses.append(
            f"{place}: not an export that is known; {general_description(layout)}; if that is "
            "wrong, name the columns, as columns={'address': ..., 'outcome': ...} or "
            "--bounce-columns"
        )

    def read_events_file(self, path: Path) -> None:
        """Read the events of a file; an error if none is known."""
        other_before = self.other
        count_before = self.problem_count
        kept_before = len(self.problems)
        understood = self.read_rows(self.rows_of_events(path), path.name, are_events=True)
        if understood == 0:
            self.other = other_before
            self.forget_problems(count_before, kept_before)
            raise ColumnError(
                f"{path}: no events of a sending service that are known ({known_exports()}), and "
                "none with an address beside a word, reply or status that is understood"
            )

    def rows_of_events(self, path: Path) -> Iterator[ExportRow]:
        """The events of a file.

        A line that is not JSON is a problem, if it is not the first one.
        """
        for number, octets in texts_of(path):
            try:
                documents = read_documents(octets, f"{path}, line {number}")
            except InputError as exc:
                if number == 1:
                    raise
                self.rows += 1
                self.refuse(path.name, str(exc).removeprefix(f"{path}, "))
                continue
            for document in documents:
                yield from self.rows_of_document(document, path.name)

    def rows_of_document(self, document: Any, place: str) -> Iterator[ExportRow]:
        """The events of a document, by known layouts, then by the general reading.

        What is neither is counted.
        """
        unfit: Unfit = []
        events = events_in(document, {}, unfit)
        yield from events
        if not events:
            unfit = [(document, {})]
        for value, around in unfit:
            items = [value]
            if isinstance(value, list):
                items = value
            for item in items:
                yield from self.rows_of_foreign(item, around, place)

    def rows_of_foreign(self, value: Any, around: Event, place: str) -> Iterator[ExportRow]:
        """The events of an object that fits no layout."""
        is_read = False
        for event in find_general(value, around):
            layout = general_layout(tuple(event))
            if layout is not None:
                is_read = True
                yield ExportRow(layout, event)
        if is_read:
            return
        if mentions_failure(value):
            self.rows += 1
            names = []
            if isinstance(value, dict):
                names = list(value)
            self.refuse(place, f"an event that is not known, with {listed(names)}")
        else:
            self.other += 1

    def read_rows(self, rows: Iterable[ExportRow], place: str, *, are_events: bool = False) -> int:
        """Read rows, and count those that were understood; each distinct statement is judged once.

        An event of an unknown service with words that are not known is not about a delivery if
        nothing in it speaks of a failure.
        """
        unknown: dict[str, list[int]] = {}
        judged: dict[tuple[Any, ...], JudgedStatement] = {}
        understood = 0
        for row in rows:
            self.rows += 1
            row_place = f"{place}, row {self.rows}"
            try:
                judgement = self.judge_row(row, judged)
                self.add_report(row, judgement, row_place)
            except Exception as exc:  # noqa: BLE001 - one row is one row, whatever it holds
                self.refuse(row_place, f"cannot be read ({type(exc).__name__})")
                continue
            statement = judgement.statement
            is_foreign = are_events and row.layout.is_guess
            if judgement.meaning is None and is_foreign and not mentions_failure(row.cells):
                self.other += 1
                continue
            if judgement.meaning is None:
                words = ", ".join((*statement.words, *statement.doubtful))
                unknown.setdefault(words, []).append(self.rows)
                continue
            understood += any(statement) or not row.layout.is_general
        for words, numbers in unknown.items():
            first, separator, _ = words.partition(", ")
            hint = f"give outcomes={{{printable_text(first, 60)!r}: ...}}"
            problem = f"the outcome is not known ({count_of(len(numbers), 'row')}); {hint}"
            if separator:
                problem += f", of {printable_text(words, 100)!r}"
            self.refuse(f"{place}, row {numbers[0]}", problem, len(numbers))
        return understood

    def judge_row(
        self, row: ExportRow, judged: dict[tuple[Any, ...], JudgedStatement]
    ) -> JudgedStatement:
        """The judgement of a row; of one with the same cells, it is remembered."""
        names = statement_names(row.layout)
        texts = [str(row.cells.get(name))[:MAX_CELL] for name in names]
        key = (row.layout.name, names, *texts)
        if key in judged:
            return judged[key]
        statement = read_statement(row)
        meaning, judgement = conclude(row.layout, statement, self.outcomes)
        if len(judged) >= MOST_JUDGED:
            judged.clear()
        judged[key] = JudgedStatement(statement, meaning, judgement)
        return judged[key]

    def add_report(self, row: ExportRow, judged: JudgedStatement, place: str) -> None:
        """Add the report of a row, or count what it is instead.

        `read_rows` counts unknown words.
        """
        statement, meaning, judgement = judged
        if meaning is None:
            return
        if meaning == UNCLEAR:
            kind = printable_text(statement.feedback or "", 40)
            self.refuse(place, f"a feedback report of type {kind!r} is not counted as a complaint")
            return
        if judgement is None:
            self.other += 1
            return
        address, problem = read_address(row)
        if not address:
            self.refuse(place, problem)
            return
        outcome = judgement.outcome
        reason = judgement.reason
        if row.layout.is_guess:
            self.general = self.general or row.layout
        if row.layout.is_final:
            reason = None
            if meaning in tuple(Outcome):
                outcome = Outcome(meaning)
            if statement.reason in tuple(Reason):
                reason = Reason(statement.reason)
        status = status_code(statement.status) or statement.status
        diagnostic = clean_text(statement.diagnostic or "")[:MAX_DIAGNOSTIC] or None
        moment = moment_of(row)
        report = DeliveryReport(address, outcome, reason, status, diagnostic, moment)
        self.reports.append(report)


def moment_of(row: ExportRow) -> datetime | None:
    """The first time of a row that can be read."""
    for name, _ in row.filled("at"):
        moment = parse_moment(row.cells[name])
        if moment is not None:
            return moment
    return None


# --- tables ----------------------------------------------------------------------------------


def rows_of_pieces(table: Any, names: list[str], layout: ExportLayout) -> Iterator[ExportRow]:
    """The rows of a file, piece by piece."""
    positions = [table.columns.index(name) for name in names]
    for piece in table.pieces(names):
        read = piece.select(positions).rename_columns(names)
        yield from rows_of_table(read, layout)


def rows_of_table(
    table: pa.Table | Mapping[str, pa.Array], layout: ExportLayout
) -> Iterator[ExportRow]:
    """The rows of a table, as cells by name."""
    names = layout.names()
    columns = [table[name].to_pylist() for name in names]
    for row in zip(*columns, strict=True):
        cells = dict(zip(names, row, strict=True))
        yield ExportRow(layout, cells)


# --- the frame -------------------------------------------------------------------------------


def drop_replaced(reports: list[DeliveryReport]) -> tuple[list[DeliveryReport], int]:
    """Leave out notices of delay that a final report on the same mail replaces; and repeated ones.

    Where one of the two does not name its mail, they are taken to be about the same one.
    """
    final: dict[str, set[str | None]] = defaultdict(set)  # the mails of final reports, by address
    for report in reports:
        if not report.is_delay:
            address = folded_key(report.address)
            final[address].add(report.message_id)
    kept: list[DeliveryReport] = []
    delayed: set[tuple[str, str | None]] = set()
    for report in reports:
        if not report.is_delay:
            kept.append(report)
            continue
        address = folded_key(report.address)
        mail = report.message_id
        mails = final[address]
        is_unnamed = mail is None or None in mails
        is_replaced = mail in mails or (mails and is_unnamed)
        if is_replaced or (address, mail) in delayed:
            continue
        delayed.add((address, mail))
        kept.append(report)
    return kept, len(reports) - len(kept)


def make_table(reports: Sequence[DeliveryReport]) -> pa.Table:
    rows = []
    for report in reports:
        row = {
            "address": report.address,
            "at": report.at,
            "outcome": str(report.outcome),
            "status": report.status,
            "diagnostic": report.diagnostic,
        }
        if report.reason is not None:
            row["reason"] = str(report.reason)
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def to_bounce_table(bounces: Any) -> pa.Table:
    """What `read_bounces` returned as Arrow, or what it returns for a path or an export."""
    if not isinstance(bounces, str | Path | list | tuple):
        # A stream has its rows once.
        bounces = frame_of(bounces, "give what read_bounces returned, or what it reads")
        if set(FIELDS) <= set(labels_of(bounces)):
            columns = {name: to_array(Table(bounces, name).values()) for name in FIELDS}
            return pa.table(columns)
    return to_bounce_table(read_bounces(bounces))
