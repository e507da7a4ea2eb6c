"""Rows that are on a list of people who must not be mailed: `suppress`.

`SuppressionList` reads the list, whatever it is in: a file, a column, a frame, bounces, or columns
of the table itself that say no (`where`). Addresses are compared by mailbox, as in `duplicates`.

    the list                       becomes
    A.da+shop@googlemail.com       the mailbox ada@gmail.com
    *@firm.example                 the domain firm.example, and all below it
    10.5.2026                      an entry that is neither; it suppresses nothing, with a warning
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
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
BOUNCE_COLUMNS = frozenset({"address", "outcome", "diagnostic", "reason"})  # of `read_bounces`
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
    """Mark the rows that are on a list of people who must not be mailed.

    Uses no network, and removes no row.

    Addresses are compared by their mailbox, as in `duplicates`, so ``ada@gmail.com`` on the list
    suppresses ``A.da+shop@googlemail.com``. A domain on the list suppresses every address at it,
    and at all domains below it. With `where` a column of `data` itself says who must not be mailed.
    `decide`, `split` and `report` then drop the marked rows.

    Parameters
    ----------
    data : DataFrame, Series or list-like
        A pandas, Polars or Arrow frame with `column`, or a Series, array or list of cells; as in
        `verify`.
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
        false, no and 0. An empty cell is not a value. A person who says no in one row is marked in
        all rows of the same mailbox.
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
    if isinstance(against, SuppressionList):
        suppression = against
    else:
        entries = against
        if entries is None:
            entries = ()
        suppression = SuppressionList.read(entries, against_column)
    if where is not None:
        suppression.add_where(parse_where(where), lambda: [table])
    if suppression is not against:
        warn_user(*suppression.notices())
    texts = read_cells(table.values(), longest=MAX_CELL)["text"]
    warn_user(describe_no_address(texts, column))
    flags = suppression.find(read_mailboxes(texts))
    for rule in suppression.rules:
        says_no = rule.find(table.cells(rule.column))
        flags = pc.or_kleene(flags, says_no)
    (label,) = names
    if label in table.labels():
        earlier = as_flags(to_array(table.cells(label)))
        flags = pc.or_kleene(earlier.fill_null(False), flags)
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
        suppression = cls(column)
        if isinstance(against, str | Path):
            suppression.read_file(user_path(against))
            return suppression
        if isinstance(against, set | frozenset):
            against = list(against)
        try:
            suppression.add(against)
        except (InputError, SettingsError) as exc:
            raise type(exc)(f"against: {exc}") from None
        return suppression

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
            self.remarks = [without_options(remark, HOW_TO_READ) for remark in table.remarks]
            try:
                if table.columns:  # JSON lines without a line have none
                    for piece in table.pieces():
                        self.add(piece)
            except ColumnError as exc:  # perhaps the sheet is not the right one
                raise ColumnError("; ".join([*self.remarks, str(exc)])) from None
            self.remarks += map(without_options, table.final_remarks())

    def add(self, data: Any) -> None:
        """Add the entries of a column alone or of a frame.

        Of bounces, those that are hard or complaints.
        """
        data = read_stream(data)
        if isinstance(data, pa.RecordBatchReader):
            data = data.read_all()
        names = labels_of(data) if hasattr(data, "columns") else []
        if BOUNCE_COLUMNS.issubset(names):
            self.add_entries(bounced_addresses(data))
            return
        if self.column is None and names:
            if isinstance(data, pa.Table):
                arrays = data.columns
            else:
                arrays = [table_of(data, name).values() for name in names]
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
        applied = list(map(AppliedRule, rules))
        for table in tables():
            for rule in applied:
                says_no = rule.find(table)
                self.add_people(table.values(), says_no)
        for rule in applied:
            rule.check_values()
        self.rules = (*self.rules, *rules)
        return {rule.column: rule.rows for rule in applied}

    def add_people(self, cells: Any, says_no: pa.BooleanArray) -> None:
        """Add the mailboxes of some rows, also of those with several addresses."""
        texts = read_cells(cells, longest=MAX_CELL)["text"].filter(says_no)
        has_none = self.add_mailboxes(texts)
        addresses: list[str] = []
        for text in texts.filter(has_none).unique().to_pylist():
            addresses += repair_cell(text).addresses
        self.add_mailboxes(pa.array(addresses, pa.string()))

    def add_mailboxes(self, texts: pa.StringArray) -> pa.BooleanArray:
        """Add the mailbox of each text; returns which have none, or several."""
        mailboxes = read_mailboxes(texts).names
        self.mailboxes.update(mailboxes.drop_null().to_pylist())
        return mailboxes.is_null()

    def add_entries(self, cells: Any) -> None:
        """Add entries; those that are neither addresses nor domains are counted."""
        texts = read_cells(cells, longest=MAX_CELL)["text"]
        entries = texts.filter(is_filled(texts))
        self.size += len(entries)
        values, counts = entries.value_counts().flatten()
        addresses: list[str] = []
        for entry, count in zip(values.to_pylist(), counts.to_pylist(), strict=True):
            listed = read_entries(entry)
            if not listed:
                self.refused[entry] += count
            for name in listed:
                if "@" in name:
                    addresses.append(name)
                else:
                    self.domains.add(name)
        self.add_mailboxes(pa.array(addresses, pa.string()))

    def notices(self) -> list[str]:
        """What the user should know: what was read of several, and what suppresses nothing."""
        notices = [f"the suppression list: {remark}" for remark in self.remarks]
        if self.choice is not None and self.choice.others:
            notices.append(
                f"the suppression list is read from {self.choice.describe()}; "
                f"another is given as {HOW_TO_NAME}"
            )
        if self.refused:
            entries = [repr(printable_text(entry, 60)) for entry in self.refused]
            shown = first_of(entries, SHOWN)
            notices.append(
                f"{self.refused.total():,} of {self.size:,} entries of the suppression list "
                f"are neither an address nor a domain and suppress nothing: {shown}"
            )
        return notices

    def find(self, rows: Mailboxes) -> pa.BooleanArray:
        """Which rows are on the list; null for rows without an address."""
        domains = rows.domains.dictionary_encode()
        names = domains.dictionary.to_pylist()
        listed = set(below_any(names, frozenset(self.domains)))
        # Domains of the same mailboxes are one, as googlemail.com and gmail.com.
        alike = list(map(mailbox_domain, names))
        alike_on_list = frozenset(map(mailbox_domain, self.domains))
        listed.update(below_any(alike, alike_on_list))
        is_listed = np.zeros(len(names), np.bool_)
        is_listed[list(listed)] = True
        by_domain = pa.array(is_listed).take(domains.indices)
        mailboxes = pa.array(sorted(self.mailboxes), pa.string())
        by_address = pc.is_in(rows.names, value_set=mailboxes)
        has_address = rows.names.is_valid()
        return pc.if_else(has_address, pc.or_(by_domain, by_address), None)


class AppliedRule:
    """A rule, and what the pieces of a table have in its column."""

    def __init__(self, rule: WhereRule) -> None:
        self.rule = rule
        self.column = rule.column
        self.rows = 0  # that say no
        self.absent = set(rule.values)  # values that no piece has
        self.counts: Counter[str] = Counter()  # rows of the most frequent values

    def find(self, table: Table) -> pa.BooleanArray:
        """Which rows of the next piece say no."""
        check_column(self.column, table.labels())
        cells = table.cells(self.column)
        counts = count_values(cells)
        self.absent &= self.rule.absent(counts)
        self.counts.update(counts)
        frequent = self.counts.most_common(MOST_VALUES)
        self.counts = Counter(dict(frequent))
        says_no = self.rule.find(cells)
        self.rows += says_no.true_count
        return says_no

    def check_values(self) -> None:
        """Raise `SettingsError` for a value that no piece has."""
        self.rule.refuse(self.absent, self.counts)


def read_entries(text: str) -> Sequence[str]:
    """The domains and addresses between the blanks and signs of an entry, else those found in it.

    >>> read_entries("firm.example, ada@shop.example"), read_entries("call Ada")
    (['firm.example', 'ada@shop.example'], ())
    """
    names: list[str] = []
    for part in SEPARATORS.split(text):
        if not part:
            continue
        named = read_entry(part)
        if not named:
            return repair_cell(text).addresses
        names += named
    return names


def read_entry(text: str) -> tuple[str, ...]:
    """The domain or the addresses that a text without blanks names.

    >>> read_entry("*@Firm.example"), read_entry("mailto:ada@firm.example"), read_entry("Ada")
    (('firm.example',), ('ada@firm.example',), ())
    """
    domain = listed_domain(text)
    if domain is not None:
        return (domain,)
    if is_well_formed(text):
        return (text,)
    return repair_cell(text).addresses


def listed_domain(text: str) -> str | None:
    """The domain that an entry names; None for a number, and for all of a country's ``co.uk``.

    >>> listed_domain("*@Firm.example"), listed_domain("co.uk"), listed_domain("10.5.2026")
    ('firm.example', None, None)
    """
    domain = normal_domain(text.strip().removeprefix("*").lstrip("@."))
    if domain is None or is_public_suffix(domain, ()) or REFUSED_DOMAIN.search(domain):
        return None
    return domain


def bounced_addresses(bounces: Any) -> pa.ChunkedArray:
    """The addresses with a hard bounce or a complaint in what `read_bounces` returned."""
    from ..bounces.read import to_bounce_table  # noqa: PLC0415 - loads the rules for replies

    table = to_bounce_table(bounces)
    outcome = table["outcome"].cast(pa.string())
    is_chosen = pc.is_in(outcome, value_set=pa.array(["hard", "complaint"]))
    return table["address"].filter(is_chosen)


def read_lines(path: Path) -> list[str]:
    """The lines of a text file without comments.

    Octets that are not text make an entry that is warned about.
    """
    data = path.read_bytes()
    encoding = "utf-8-sig"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    lines = data.decode(encoding, errors="replace").splitlines()
    return [line for line in lines if not line.startswith("#")]
