"""The table files of a command: the one that it reads, and the one that it writes.

A command opens its file, chooses the column, and passes pieces of it to a function of the library::

    with rewrite_table("contacts.csv", column, options) as table:    open_source, pick_column
        for piece in table.pieces():                                 an Arrow table of some rows
            table.write(mv.clean(piece, table.column))               TableOutput

From CSV to CSV, only the needed columns are read; the text of each line is copied beside them. What
else a command reads is here, too: bounces, exports of other verifiers, lists of people who must not
be mailed. What was guessed is printed.
"""

from __future__ import annotations

import itertools
import os
import shlex
import signal
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pyarrow as pa

import mailverdict as mv

from ..files.compression import COMPRESSIONS
from ..files.header import numbered
from ..files.readers import STDIN, open_table
from ..files.table_file import UNSPECIFIED, ReadOptions, TableFile
from ..files.workbook import ActionSheets, check_replaced, check_room
from ..files.writers import (
    READ_ONLY,
    FormulaColumns,
    check_target,
    create_table,
    writable_name,
    write_behind,
)
from ..frames.suppress import SuppressionList
from ..frames.verifier_words import MEANINGS
from ..frames.verifiers import ExportOptions, KnownAnswers, own_names, read_known
from ..model.paths import user_path
from ..model.settings import parse_duration
from ..model.words import ValidationType, count_of, first_of, printable_text
from ..table.choose_column import ChosenColumn, choose_column, look_at
from ..table.columns import RESULT_NAMES
from ..table.refusals import WhereRule, find_refusals, kind_of_name, parse_where
from ..table.table import Table
from ..table.verifiers import FIELDS
from .options import (
    EscapeFormulas,
    InPlace,
    Output,
    Prefix,
    Quiet,
    add_options,
    split_list,
    with_read_options,
)
from .status import STATUS, print_status, printed_warnings
from .stopper import exit_on_signal, handled_signals

MOST_NAMED = 5  # columns in a message
LONGEST_VALUE = 60  # characters of a value in a message
LONGEST_NAME = 500  # characters of a column's name in an option; a question is long


@contextmanager
def open_source(file: str, options: ReadOptions = UNSPECIFIED) -> Iterator[TableFile]:
    """Open a table file; SIGTERM and SIGHUP become exceptions, so temporary files go."""
    numbers = [number for number in handled_signals() if number != signal.SIGINT]
    previous_handlers = {number: signal.signal(number, exit_on_signal) for number in numbers}
    try:
        with open_table(file, options) as source:
            yield source
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


def pick_column(source: TableFile, column: str | None) -> str:
    """The given column, or the one that `choose_column` chooses.

    Of several columns of its name it is the only one with addresses.
    """
    name = column
    reasons = []
    if name is None:
        choice = choice_of(source)
        name = chosen_name(source, choice)
        reasons.append(choice.describe())
    same = [place for place, other in enumerate(source.columns) if other == name]
    filled = []
    if len(same) > 1:
        filled = with_addresses(source, same)
    if len(filled) == 1:
        only = f"of {len(same)} columns named {name!r} the only one with addresses"
        name = numbered(filled[0])
        reasons.insert(0, f"column {name!r} ({only})")
    try:
        source.check_column(name)
    except mv.ColumnError as exc:
        if not same:
            raise
        candidates = map(numbered, (filled or same)[:MOST_NAMED])
        raise mv.ColumnError(f"{exc}, or give {' or '.join(candidates)}") from None
    source.address_at = source.columns.index(name)
    if reasons:
        print_status(f"using {'; '.join(reasons)}; give another with --column")
    unnamed = with_addresses(source, beside_no_name(source, source.address_at))
    if unnamed:
        others = first_of([repr(source.columns[place]) for place in unnamed], MOST_NAMED)
        print_status(
            f"addresses are also in {others}: the header has one name for several columns; "
            "give each with --column in a run of its own",
            "note",
        )
    return name


def beside_no_name(source: TableFile, chosen: int) -> list[int]:
    """The other columns that share a name in the header, or have none."""
    if not source.has_header:
        return []
    is_unnamed = [name == numbered(place) for place, name in enumerate(source.columns)]
    places = []
    for place in range(len(is_unnamed)):
        if place != chosen and any(is_unnamed[place : place + 2]):
            places.append(place)
    return places


def with_addresses(source: TableFile, places: Sequence[int]) -> list[int]:
    """Those of some columns that have an address in the first piece of the file."""
    if not places:
        return []
    first = next(source.pieces({source.columns[place] for place in places}))
    filled = []
    for place in places:
        seen = look_at(source.columns[place], first.column(place))
        if seen is not None and seen.with_address:
            filled.append(place)
    return filled


def unique_names(source: TableFile) -> list[str]:
    """The names of the columns; those that occur twice are called by their position."""
    counts = Counter(source.columns)
    names = []
    for place, name in enumerate(source.columns):
        if counts[name] > 1:
            names.append(numbered(place))
        else:
            names.append(name)
    return names


def choice_of(source: TableFile) -> ChosenColumn:
    """Which column has the addresses, by the first piece of the file."""
    pieces = source.pieces()
    first = next(pieces)
    is_whole = next(pieces, None) is None
    columns = dict(zip(unique_names(source), first.columns, strict=True))
    return choose_column(columns, is_whole=is_whole)


def chosen_name(source: TableFile, choice: ChosenColumn) -> str:
    try:
        name = str(choice.name())
    except mv.ColumnError as exc:
        text = str(exc)
        if choice.is_ambiguous:
            text += " with --column"
        # Perhaps the sheet or the delimiter, which a remark names, is not the right one.
        raise mv.ColumnError("; ".join([text, *source.remarks])) from None
    place = unique_names(source).index(name)
    return str(source.columns[place])


def pick_verified(source: TableFile, column: str | None, prefix: str | None) -> str:
    """The given column, or the only one that was verified; else as `pick_column`."""
    names = set(source.columns)
    verified = []
    for name in source.columns:
        if f"{name}_verdict" in names and f"{name}_status" in names:
            verified.append(name)
    if column is None and prefix is None and len(verified) == 1:
        column = verified[0]
        print_status(f"using column {column!r}, which was verified; give another with --column")
    return pick_column(source, column)


def check_output(
    file: str, output: str | None, *, in_place: bool = False, as_json: bool = False
) -> str | None:
    """The path of the file to write; refuses to overwrite the input unless told to."""
    if as_json and output == STDIN:
        raise mv.SettingsError(
            "--json and -o - cannot both use standard output: write the table to a file"
        )
    if in_place and file == STDIN:
        raise mv.SettingsError("--in-place needs a file; standard input cannot be replaced")
    if in_place and output is None:
        path = user_path(file)
        if path.suffix.lower() in READ_ONLY:
            raise mv.SettingsError(
                f"--in-place: {path.suffix} files are read and not written: name another file with "
                f"--output, as {writable_name(path)}"
            )
        return str(path)
    is_same = False
    if output is not None and output != STDIN:
        output = str(user_path(output))
        is_same = file != STDIN and is_same_file(file, output)
    if in_place and not is_same:
        raise mv.SettingsError(
            f"--in-place replaces {file}, but --output is {output}: give one of them"
        )
    if is_same and not in_place:
        raise mv.SettingsError(
            f"{output} is the input: name another output, or add --in-place to replace it"
        )
    return output


def check_not_read(output: str | None, option: str, *others: str | None) -> None:
    """Refuse to write a file that the same command reads or writes."""
    if output is None:
        return
    for other in others:
        if other is not None and other != STDIN and is_same_file(output, other):
            raise mv.SettingsError(f"{option} {output} would replace {other}: give another name")


def is_same_file(one: str, other: str) -> bool:
    """Whether two names are the same file, which need not exist."""
    first = Path(os.path.realpath(user_path(one)))
    second = Path(os.path.realpath(user_path(other)))
    try:
        return first == second or first.samefile(second)
    except OSError:
        return False


class TableOutput:
    """The table that a command writes; `written` is where it was written, None for nowhere."""

    def __init__(
        self,
        path: str | None,
        source: TableFile,
        is_escaped: Callable[[str], bool],
        by_action: ActionSheets | None = None,
    ) -> None:
        self.path = path
        self.source = source
        self.is_escaped = is_escaped
        self.by_action = by_action
        self.written = path

    def pieces(self, needed: Sequence[str]) -> Iterator[pa.Table]:
        """The rows of the source.

        Its own text is copied to a file of its kind, and only the needed columns are read.

        Those are also columns with the name of a result column: their content decides whether they
        are replaced.
        """
        if self.path is not None and not self.is_copied(self.path):
            return self.source.pieces()
        named = [name for name in self.source.columns if name.endswith(RESULT_NAMES)]
        return self.source.pieces([*needed, *named], with_lines=self.path is not None)

    def is_copied(self, path: str) -> bool:
        """Whether the output is of the kind of the source: JSON lines, or CSV and its delimiter."""
        kind = "csv"
        if path != STDIN:
            kind = check_target(Path(path))
        if kind == "tsv" and self.source.format.delimiter == "\t":
            kind = "csv"
        return kind == self.source.copied_to

    def check_room(self, pieces: Callable[[], Iterator[pa.Table]]) -> None:
        """Raise `InputError` for more rows than a workbook has, before anything is spent."""
        if self.path is not None and self.path.lower().endswith(".xlsx"):
            check_room(len(self.source.format.title) + sum(map(len, pieces())))

    @contextmanager
    def open(
        self, has_failed: Callable[[], bool] = lambda: False
    ) -> Iterator[Callable[[pa.Table], None]]:
        """Yield the function that writes a piece; without an output it does nothing.

        If the run has failed at the end, an older output stays, and the table is written beside it.
        """
        if self.path is None:
            yield lambda piece: None
            return

        def choose() -> Path:
            if has_failed():
                self.written = str(partial_path(str(self.path)))
            return Path(str(self.written))

        if Path(self.path).suffix.lower() == ".xlsx":
            check_replaced(partial_path(self.path))
            if self.source.format.sheet is not None:
                self.source.remarks.append(
                    "the sheet is written anew with its values, without formulas and formats"
                )
        with create_table(
            self.path,
            columns=self.source.columns,
            is_escaped=self.is_escaped,
            choose=choose,
            like=self.source.format,
            by_action=self.by_action,
        ) as writer:
            self.check_formulas(self.path)
            with write_behind(writer.write) as write:
                yield write
            self.source.remarks += writer.remarks

    def check_formulas(self, path: str) -> None:
        """Refuse to replace a workbook whose formulas would be lost."""
        if not self.source.formulas or path == STDIN:
            return
        if is_same_file(path, str(self.source.path)):
            formulas = count_of(self.source.formulas, "formula")
            raise mv.InputError(
                f"{path} has {formulas} without a saved value in its sheets, and replacing it "
                "would empty their cells: open it in a spreadsheet program and save it first, "
                "or give another --output"
            )


def partial_path(path: str) -> Path:
    """``out.csv`` -> ``out.partial.csv``: where a failed run writes."""
    whole = Path(path)
    stem = stem_of(whole)
    return whole.with_name(f"{stem}.partial{whole.name.removeprefix(stem)}")


def stem_of(path: Path) -> str:
    """The name of a file without its endings: ``out`` of ``out.csv.gz``."""
    if path.suffix.lower() in COMPRESSIONS:
        return Path(path.stem).stem
    return path.stem


@dataclass(frozen=True)
class RewriteOptions:
    """How a command reads a table and writes it again."""

    output: str | None
    prefix: str | None
    reading: ReadOptions
    in_place: bool
    escape_formulas: bool
    quiet: bool


@with_read_options
def rewrite_options(
    *,
    output: Output = None,
    prefix: Prefix = None,
    reading: ReadOptions,
    in_place: InPlace = False,
    escape_formulas: EscapeFormulas = False,
    quiet: Quiet = False,
) -> RewriteOptions:
    """Options of the commands that read a table and write it again."""
    return RewriteOptions(output, prefix, reading, in_place, escape_formulas, quiet)


with_rewrite_options = add_options(rewrite_options, "rewriting")


@dataclass
class TableRewrite:
    """A table that is read and written again."""

    source: TableFile
    column: str
    output: TableOutput
    write: Callable[[pa.Table], None]
    summary: str = ""  # printed at the end
    also_needed: Sequence[str] = ()  # columns besides that of the addresses

    def pieces(self) -> Iterator[pa.Table]:
        """The rows of the source, of which the command needs some columns."""
        return self.output.pieces([self.column, *self.also_needed])


@contextmanager
def rewrite_table(
    file: str, column: str | None, options: RewriteOptions, *, also_read: str | None = None
) -> Iterator[TableRewrite]:
    """Open a table and its output, and print at the end what was done."""
    output = check_output(file, options.output, in_place=options.in_place)
    check_not_read(output, "--output", also_read)
    with open_source(file, options.reading) as source:
        name = pick_column(source, column)
        escaped = FormulaColumns(name, options.prefix, in_all=options.escape_formulas)
        table_output = TableOutput(output, source, escaped)
        with table_output.open() as write:
            rewrite = TableRewrite(source, name, table_output, write)
            yield rewrite
    print_remarks(source, quiet=options.quiet)
    if not options.quiet:
        print_status(rewrite.summary)
    print_written(output, quiet=options.quiet)


def print_remarks(source: TableFile, *, quiet: bool) -> None:
    """Print what was guessed about the file and what was odd in it."""
    if quiet:
        return
    for remark in (*source.remarks, *source.final_remarks()):
        print_status(remark, "note")


def print_written(output: str | None, *, quiet: bool) -> None:
    if quiet or output == STDIN:
        return
    if output is not None:
        print_status(f"written: {output}")
    elif not STATUS.get().is_json:
        print_status("no table was written: --output names a file for it")


def read_bounce_file(path: str | None, columns: str | None) -> pd.DataFrame | None:
    """Read what became of the mails, None for None; what cannot be read is printed."""
    if path is None:
        return None
    named = None
    if columns is not None:
        named = {}
        for pair in split_list(columns):
            name, _, value = pair.partition("=")
            if not value:
                raise mv.SettingsError(
                    f"--bounce-columns: {name!r} names no column; write address=Recipient"
                )
            named[name.strip()] = value.strip()
    with printed_warnings():
        reports: pd.DataFrame = mv.read_bounces(path, columns=named)
    return reports


def read_known_file(
    path: str | None,
    mapped: Sequence[str] | None,
    validation_type: ValidationType,
    max_age: str | None,
    column: str | None = None,
) -> KnownAnswers | None:
    """Read what another verifier settled, and print how much that is and how old; None for None."""
    given = parse_map(mapped)
    if path is None:
        if mapped:
            raise mv.SettingsError("--map is for the file of --known: give that, too")
        return None
    if given.columns is None:
        given = replace(given, column=column)
    elif column is not None:
        print_status(
            f"{path}: --map names its column of addresses, and not --against-column", "note"
        )
    seconds = None
    if max_age is not None:
        seconds = parse_duration(max_age, name="max_age")
    with printed_warnings():
        known = read_known(path, given)
    if known is not None:
        known = known.settled_for(validation_type, seconds)
        print_status(f"{path}: {known.describe()}")
    return known


def read_compared(path: str, given: ExportOptions) -> tuple[pd.DataFrame, bool]:
    """Read one of the verifications to compare, and say whether it has the columns of ``--map``.

    A file that we verified has verdicts of ours, also if the columns of the export are in it, too.
    """
    if given.columns is not None and not is_verified(path):
        try:
            return mv.read_verdicts(path, columns=given.columns, outcomes=given.outcomes), True
        except mv.ColumnError as exc:
            print_status(f"{path}: read without the columns of --map: {exc}")
    return mv.read_verdicts(path, outcomes=given.outcomes), given.columns is None


def is_verified(path: str) -> bool:
    try:
        with open_table(path) as table:
            return bool(own_names(table.columns))
    except mv.InputError:  # perhaps JSON that is not a table
        return False


def parse_map(mapped: Sequence[str] | None) -> ExportOptions:
    """What ``--map`` says: a column for each field of ours, and the meanings of words.

    >>> given = parse_map(["email=Address,status=Result", "good=valid", "disposable=risky"])
    >>> given.columns, given.outcomes
    ({'email': 'Address', 'status': 'Result'}, {'good': 'valid', 'disposable': 'risky'})
    """
    columns = {}
    outcomes = {}
    for pair in itertools.chain.from_iterable(map(split_list, mapped or ())):
        name, _, value = (part.strip() for part in pair.rpartition("="))
        if not (name and value):
            raise mv.SettingsError(
                f"--map {pair!r}: write email=COLUMN, status=COLUMN, or WORD=MEANING"
            )
        # A word may be called like a field, as `disposable`.
        is_meaning = value in MEANINGS and name not in ("email", "status")
        if name in FIELDS and not is_meaning:
            columns[name] = value
        else:
            outcomes[name] = value
    return ExportOptions.check(None, columns or None, outcomes)


def read_suppression_list(path: str | None, column: str | None) -> SuppressionList | None:
    """Read the list once, None for None; what is wrong with it is printed."""
    if path is None:
        return None
    if not user_path(path).exists():
        raise mv.InputError(f"{path}: no such file")
    listed = SuppressionList.read(path, column)
    for notice in listed.notices():
        print_status(notice, "note")
    return listed


def add_refusals(
    source: TableFile,
    column: str,
    listed: SuppressionList | None,
    given: Sequence[str],
    *,
    quiet: bool,
) -> SuppressionList | None:
    """The suppression list with the people of the rows that were asked for.

    The whole file is read for that, before anything is spent. Other columns that say no are
    offered.
    """
    rules: Sequence[WhereRule] = ()
    if given:
        rules = parse_where(wanted_values(source, given))
    by_column = {rule.column: rule for rule in rules}
    if not quiet:
        offer_refusals(source, by_column)
    if not rules:
        return listed
    if listed is None:
        listed = SuppressionList()
    needed = [column, *by_column]

    def tables() -> Iterator[Table]:
        for piece in source.pieces(needed):
            yield Table(piece, column)

    counts = listed.add_where(rules, tables)
    if quiet:
        return listed
    for name, count in counts.items():
        values = [printable_text(str(value), LONGEST_VALUE) for value in by_column[name].values]
        rows = count_of(count, "row says", "rows say")
        print_status(f"{name}: {rows} {' or '.join(values)}; their people are marked")
    return listed


def wanted_values(source: TableFile, given: Sequence[str]) -> dict[str, list[str]]:
    """The values by column of options such as ``Unsubscribed=true``.

    The name of a column may have "=" in it.
    """
    wanted: dict[str, list[str]] = {}
    for text in given:
        column, equals, value = text.partition("=")
        if not equals:
            raise mv.SettingsError(
                f"--suppress-where {text!r:.80}: give a column and a value of it, as 'opt_out=yes'"
            )
        for place, sign in enumerate(text):
            if sign == "=" and text[:place] in source.columns:
                column = text[:place]
                value = text[place + 1 :]
                break
        source.check_column(column)
        wanted.setdefault(column, []).append(value)
    return wanted


def offer_refusals(source: TableFile, taken: Collection[str]) -> None:
    """Print a line with the option for each column that says no in the first piece of the file."""
    counts = Counter(source.columns)
    names = []
    for name, count in counts.items():
        if count == 1 and name not in taken and kind_of_name(name) is not None:
            names.append(name)
    if not names:
        return
    pieces = source.pieces(names)
    first = next(pieces)
    is_whole = next(pieces, None) is None
    columns = {name: first.column(first.column_names.index(name)) for name in names}
    for refusal in find_refusals(columns, is_whole=is_whole):
        name = printable_text(str(refusal.name), LONGEST_NAME)
        options = []
        for value in refusal.values:
            asked = shlex.quote(f"{name}={printable_text(value, LONGEST_VALUE)}")
            options.append(f"--suppress-where {asked}")
        print_status(f"{refusal.describe()}; to take them off: {' '.join(options)}", "note")


def as_list(name: str | None) -> list[str]:
    """A column that may be named, as a list."""
    if name is None:
        return []
    return [name]
