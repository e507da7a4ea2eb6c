"""Rows that are on a list of people who must not be mailed: `suppress`.

`SuppressionList` reads the list, whatever it is in. Addresses are compared by mailbox, as in `duplicates`.
"""

from __future__ import annotations

import codecs
import itertools
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.lists.flags import below_any, normal_domain
from ..checks.lists.mailboxes import Mailboxes, mailbox_domain
from ..checks.lists.suffixes import is_public_suffix
from ..checks.syntax.address import is_well_formed
from ..errors import ColumnError, InputError, SettingsError
from ..files.readers import open_table
from ..files.table_file import without_options
from ..model.paths import user_path
from ..model.words import first_of, printable_text
from ..repair.repair import MAX_CELL, repair_cell
from ..table.cells import describe_no_address, is_filled, read_cells, to_array
from ..table.choose_column import ChosenColumn, choose_column
from ..table.columns import SUPPRESS_COLUMNS, check_column
from ..table.notices import warn_user
from ..table.overwrite import name_columns
from ..table.refusals import WhereRule, count_values, parse_where
from ..table.table import Frame, Table, labels_of, read_stream, table_of
from .duplicates import read_mailboxes
from .results import as_flags

# What is done instead of an option of the command line, which is about the table that is marked.
HOW_TO_READ = {
    "sheet": "to read another, save it as a file of its own",
    "encoding": "if that is wrong, save the file in UTF-8",
}
HOW_TO_NAME = "against_column= (--against-column on the command line)"
MOST_VALUES = 100  # of a column that are kept for an error
SHOWN = 3  # entries of a suppression list that a warning quotes
REFUSED_DOMAIN = re.compile(r"\.[0-9]+$|^co\.[a-z]{2}$")
SEPARATORS = re.compile(r"[\s;,|]+")


@overload
def suppress(
    data: Frame,
    column: Hashable,
    against: Any = None,
    *,
    against_column: Hashable | None = None,
    where: Mapping[Any, Any] | None = None,
    prefix: str | None = None,
) -> Frame: ...
@overload
def suppress(
    data: Iterable[object],
    column: None = None,
    against: Any = None,
    *,
    against_column: Hashable | None = None,
    prefix: str | None = None,
) -> pd.DataFrame: ...
def suppress(
    data: Any,
    column: Hashable | None = None,
    against: Any = None,
    *,
    against_column: Hashable | None = None,
    where: Mapping[Any, Any] | None = None,
    prefix: str | None = None,
) -> Any:
    """Mark the rows that are on a list of people who must not be mailed. Uses no network, and removes no row.

    Addresses are compared by their mailbox, as in `duplicates`, so ``ada@gmail.com`` on the list
    suppresses ``A.da+shop@googlemail.com``. A domain on the list suppresses every address at it,
    and at all domains below it. With `where` a column of `data` itself says who must not be mailed.
    `decide`, `split` and `report` then drop the marked rows.

    Parameters
    ----------
    data : DataFrame, Series or list-like
        A pandas, Polars or Arrow frame with `column`, or a Series, array or list of cells; as in `verify`.
    column : hashable, optional
        Which column of a frame.
    against : path, Series, list-like or DataFrame, optional
        Addresses and domains (``firm.example``, ``@firm.example`` or ``*@firm.example``) that
        unsubscribed, complained or bounced. A path names a text file (``.txt``) with one entry a
        line, where ``#`` at the beginning of a line makes it a comment, or a CSV, TSV, Parquet or
        XLSX file. Of what `read_bounces` returned, only the addresses whose outcome is hard or
        complaint are on the list: soft, blocked and delivered mails say nothing against an address.
    against_column : hashable, optional
        Which column of a table in `against`; by default its only one, or the one whose name and
        addresses leave no doubt: a column such as ``added_by`` is of your own people.
    where : mapping, optional
        Columns of `data`, each with the value or the list of values that says no, as
        ``{"Unsubscribed from all email": True, "Status": ["unsubscribed", "cleaned"]}``. Cells are
        compared without case, blanks and punctuation; true, yes and 1 are one value, and so are
        false, no and 0. An empty cell is no value. Who says no in one row is marked in all rows of
        the same mailbox.
    prefix : str, optional
        Before the new column's name; ``f"{column}_"`` by default, nothing for a Series or list.

    Returns
    -------
    DataFrame
        One row out per row in, the caller's columns untouched, and `suppressed` (``boolean``; NA
        where the cell has no address). Rows that an earlier call with another list marked stay
        marked; drop the column to begin anew.

    Raises
    ------
    ColumnError
        No such column, or the name occurs twice; or no column of `against` looks like addresses, or
        it is not clear which one holds those of the people: give `against_column`.
    InputError
        The file of `against` cannot be read, or `data` or `against` consists of rows or of frames.
    SettingsError
        Neither `against` nor `where` is given, `against` is not a list, no row has a value of
        `where`, or the new column would overwrite one that mailverdict did not write.

    Warns
    -----
    UserWarning
        If entries of the list are neither an address nor a domain, since they suppress nothing; if
        the list has several sheets or columns of addresses, of which one is read, or if something
        else about its file was guessed or odd; or if no cell of the column holds an ``@``.

    Examples
    --------
    >>> import mailverdict as mv
    >>> column = ["Ada@example.org", "bob@mail.firm.example", "cy@example.org", None]
    >>> mv.suppress(column, against=["ada@example.org", "firm.example"])
       suppressed
    0        True
    1        True
    2       False
    3        <NA>

    >>> import pandas as pd
    >>> people = {"email": ["ada@example.org", "bob@example.org"], "opt_out": ["yes", None]}
    >>> df = pd.DataFrame(people)
    >>> mv.suppress(df, "email", where={"opt_out": True})["email_suppressed"].tolist()
    [True, False]
    """
    if against is None and where is None:
        raise SettingsError(
            "against=None: give the suppression list as a path, a list, a Series or a frame, "
            "or the columns that say no as where="
        )
    table = table_of(data, column)
    names = name_columns(table, prefix, SUPPRESS_COLUMNS)
    listed = against
    if not isinstance(listed, SuppressionList):
        listed = SuppressionList.read(() if against is None else against, against_column)
    if where is not None:
        listed.add_where(parse_where(where), lambda: [table])
    if listed is not against:
        warn_user(*listed.notices())
    texts = read_cells(table.values(), longest=MAX_CELL)["text"]
    warn_user(describe_no_address(texts, column))
    flags = listed.find(read_mailboxes(texts))
    for rule in listed.rules:
        flags = pc.or_kleene(flags, rule.find(table.cells(rule.column)))
    if names[0] in table.labels():
        flags = pc.or_kleene(as_flags(to_array(table.cells(names[0]))).fill_null(False), flags)
    return table.attach(pa.table({"suppressed": flags}), names, SUPPRESS_COLUMNS, {})


class SuppressionList:
    """Addresses and domains that must not be mailed."""

    def __init__(self, column: Hashable | None = None) -> None:
        self.column = column  # of a table; None until it is found
        self.choice: ChosenColumn | None = None  # how it was found
        self.rules: tuple[WhereRule, ...] = ()  # about the rows of the table that is marked
        self.mailboxes: set[str] = set()
        self.domains: set[str] = set()
        self.refused: Counter[str] = Counter()  # entries that are neither
        self.size = 0
        self.remarks: list[str] = []  # what was guessed about the file, or found odd in it

    @classmethod
    def read(cls, against: Any, column: Hashable | None = None) -> SuppressionList:
        """Read the whole list."""
        listed = cls(column)
        if isinstance(against, str | Path):
            listed.read_file(user_path(against))
            return listed
        try:
            listed.add(list(against) if isinstance(against, set | frozenset) else against)
        except (InputError, SettingsError) as exc:
            raise type(exc)(f"against: {exc}") from None
        return listed

    def read_file(self, path: Path) -> None:
        """Add the lines of a text file, or the rows of a table."""
        if path.suffix.lower() == ".txt" and path.is_file():
            self.add(read_lines(path))
            return
        if not path.exists():
            raise InputError(
                f"against: {path}: no such file; give entries as a list, as [{str(path)!r}]"
            )
        with open_table(path) as table:
            self.remarks = [without_options(each, HOW_TO_READ) for each in table.remarks]
            # JSON lines without a line have no columns.
            pieces = table.pieces() if table.columns else ()
            try:
                for piece in pieces:
                    self.add(piece)
            except ColumnError as exc:  # perhaps the sheet is not the right one
                raise ColumnError("; ".join([*self.remarks, str(exc)])) from None
            self.remarks += [without_options(each) for each in table.final_remarks()]

    def add(self, data: Any) -> None:
        """Add the entries of a column alone or of a frame; of bounces those that are hard or complaints."""
        data = read_stream(data)
        data = data.read_all() if isinstance(data, pa.RecordBatchReader) else data
        names = labels_of(data) if hasattr(data, "columns") else []
        if {"address", "outcome", "diagnostic", "reason"} <= set(names):
            self.add_entries(bounced_addresses(data))
            return
        if self.column is None and names:
            arrays = (
                data.columns
                if isinstance(data, pa.Table)
                else (table_of(data, name).values() for name in names)
            )
            self.choose_column(dict(zip(names, arrays, strict=True)))
        self.add_entries(table_of(data, self.column).values())

    def choose_column(self, columns: Mapping[Any, Any]) -> None:
        """Read the only column, or the one that surely has the addresses of these people."""
        if len(columns) == 1:
            self.column = next(iter(columns))
            return
        self.choice = choose_column(columns)
        try:
            self.column = self.choice.require_sure()
        except ColumnError as exc:
            raise ColumnError(f"the suppression list: {exc}, as {HOW_TO_NAME}") from None

    def add_where(
        self, rules: Sequence[WhereRule], tables: Callable[[], Iterable[Table]]
    ) -> dict[Any, int]:
        """Add the people whose rows say no, by rules about a table, which comes in pieces.

        Returns how many rows say so, by column. An error if a column is not there, or if no row has
        a value.
        """
        absent: dict[Any, set[Any]] = {rule.column: set(rule.values) for rule in rules}
        values: dict[Any, Counter[str]] = {rule.column: Counter() for rule in rules}
        rows: Counter[Any] = Counter()
        for table in tables():
            for rule in rules:
                check_column(rule.column, table.labels())
                cells = table.cells(rule.column)
                counts = count_values(cells)
                absent[rule.column] &= rule.absent(counts)
                values[rule.column].update(counts)
                values[rule.column] = Counter(dict(values[rule.column].most_common(MOST_VALUES)))
                says_no = rule.find(cells)
                rows[rule.column] += says_no.true_count
                self.add_people(table.values(), says_no)
        for rule in rules:
            rule.refuse(absent[rule.column], values[rule.column])
        self.rules = (*self.rules, *rules)
        return dict(rows)

    def add_people(self, cells: Any, says_no: pa.BooleanArray) -> None:
        """Add the mailboxes of some rows, also of those with several addresses."""
        texts = read_cells(cells, longest=MAX_CELL)["text"].filter(says_no)
        mailboxes = read_mailboxes(texts).names
        self.mailboxes.update(mailboxes.drop_null().to_pylist())
        others = texts.filter(mailboxes.is_null()).unique().to_pylist()
        addresses = [address for text in others for address in repair_cell(text).addresses]
        several = read_mailboxes(pa.array(addresses, pa.string())).names
        self.mailboxes.update(several.drop_null().to_pylist())

    def add_entries(self, cells: Any) -> None:
        """Add entries; those that are neither addresses nor domains are counted."""
        texts = read_cells(cells, longest=MAX_CELL)["text"]
        entries = texts.filter(is_filled(texts))
        self.size += len(entries)
        addresses: list[str] = []
        for entry, count in zip(
            *(each.to_pylist() for each in entries.value_counts().flatten()), strict=True
        ):
            parts = [read_entry(part) for part in SEPARATORS.split(entry) if part]
            found = list(itertools.chain(*parts)) if all(parts) else repair_cell(entry).addresses
            self.domains.update(each for each in found if "@" not in each)
            addresses += (each for each in found if "@" in each)
            if not found:
                self.refused[entry] += count
        self.mailboxes.update(
            read_mailboxes(pa.array(addresses, pa.string())).names.drop_null().to_pylist()
        )

    def notices(self) -> list[str]:
        """What the user should know: what was read of several, and entries that suppress nothing."""
        notices = [f"the suppression list: {remark}" for remark in self.remarks]
        if self.choice is not None and self.choice.others:
            notices.append(
                f"the suppression list is read from {self.choice.describe()}; "
                f"another is given as {HOW_TO_NAME}"
            )
        if self.refused:
            shown = first_of([repr(printable_text(entry, 60)) for entry in self.refused], SHOWN)
            notices.append(
                f"{self.refused.total():,} of {self.size:,} entries of the suppression list are neither an address nor "
                f"a domain and suppress nothing: {shown}"
            )
        return notices

    def find(self, rows: Mailboxes) -> pa.BooleanArray:
        """Which rows are on the list; null for rows without an address."""
        domains = rows.domains.dictionary_encode()
        names = domains.dictionary.to_pylist()
        alike = frozenset(map(mailbox_domain, self.domains))
        listed = {
            *below_any(names, frozenset(self.domains)),
            *below_any(list(map(mailbox_domain, names)), alike),
        }
        by_domain = pa.array([at in listed for at in range(len(names))], pa.bool_()).take(
            domains.indices
        )
        by_address = pc.is_in(rows.names, value_set=pa.array(sorted(self.mailboxes), pa.string()))
        return pc.if_else(pc.is_valid(rows.names), pc.or_(by_domain, by_address), None)


def read_entry(text: str) -> tuple[str, ...]:
    """The domain or the addresses that a text without blanks names.

    >>> read_entry("*@Firm.example"), read_entry("mailto:ada@firm.example"), read_entry("Ada")
    (('firm.example',), ('ada@firm.example',), ())
    """
    if domain := listed_domain(text):
        return (domain,)
    return (text,) if is_well_formed(text) else repair_cell(text).addresses


def listed_domain(text: str) -> str | None:
    """The domain that an entry names; None for a number, and for all of a country's ``co.uk``.

    >>> listed_domain("*@Firm.example"), listed_domain("co.uk"), listed_domain("10.5.2026")
    ('firm.example', None, None)
    """
    domain = normal_domain(text.strip().removeprefix("*").lstrip("@."))
    is_wrong = domain is None or is_public_suffix(domain, ()) or REFUSED_DOMAIN.search(domain)
    return None if is_wrong else domain


def bounced_addresses(bounces: Any) -> pa.ChunkedArray:
    """The addresses with a hard bounce or a complaint in what `read_bounces` returned."""
    from ..bounces.read import to_bounce_table  # noqa: PLC0415 - loads the rules for replies

    table = to_bounce_table(bounces)
    chosen = pc.is_in(table["outcome"].cast(pa.string()), value_set=pa.array(["hard", "complaint"]))
    return table["address"].filter(chosen)


def read_lines(path: Path) -> list[str]:
    """The lines of a text file without comments; octets that are not text make an entry that is warned about."""
    data = path.read_bytes()
    encoding = (
        "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    )
    return [
        line
        for line in data.decode(encoding, errors="replace").splitlines()
        if not line.startswith("#")
    ]
