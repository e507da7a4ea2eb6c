"""Rows that are on a list of people who must not be mailed: `suppress`.

`SuppressionList` reads the list, whatever it is in. Addresses are compared by mailbox, as in `duplicates`.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.lists.flags import below_any, normal_domain
from ..checks.lists.mailboxes import Mailboxes, mailbox_domain
from ..checks.lists.update import is_public_suffix
from ..errors import ColumnError, InputError, SettingsError
from ..files.readers import guess_column, open_table
from ..model.paths import user_path
from ..model.table import one_array
from ..model.words import first_of, printable_text
from ..repair.repair import MAX_CELL, repair_cell
from ..table.columns import SUPPRESS_COLUMNS, label_of
from ..table.kinds import Frame, Table, kind_of_data, labels_of, read_stream
from ..table.notices import warn_user
from ..table.overwrite import name_columns
from ..table.text_column import describe_no_address, is_filled, read_values
from .duplicates import read_mailboxes

SHOWN = 3  # entries of a suppression list that a warning quotes
DOMAIN_MARK = r"^\s*\*?@"  # of an entry such as "@firm.example", which might be read as an address
REFUSED_DOMAIN = re.compile(r"\.[0-9]+$|^co\.[a-z]{2}$")
SEPARATORS = re.compile(r"[\s;,|]+")


@overload
def suppress(
    data: Frame, column: Hashable, against: Any, *, against_column: Hashable | None = None, prefix: str | None = None
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
    prefix: str | None = None,
) -> Any:
    """Mark the rows that are on a list of people who must not be mailed. Uses no network, and removes no row.

    Addresses are compared by their mailbox, as in `duplicates`, so ``ada@gmail.com`` on the list
    suppresses ``A.da+shop@googlemail.com``. A domain on the list suppresses every address at it,
    and at all domains below it. `decide`, `split` and `report` then drop the marked rows.

    Parameters
    ----------
    data : DataFrame, Series or list-like
        A pandas, Polars or Arrow frame with `column`, or a Series, array or list of cells; as in `verify`.
    column : hashable, optional
        Which column of a frame.
    against : path, Series, list-like or DataFrame
        Addresses and domains (``firm.example``, ``@firm.example`` or ``*@firm.example``) that
        unsubscribed, complained or bounced. A path names a text file (``.txt``) with one entry a
        line, where ``#`` at the beginning of a line makes it a comment, or a CSV, TSV, Parquet or
        XLSX file. Of what `read_bounces` returned, only the addresses whose outcome is hard or
        complaint are on the list: soft, blocked and delivered mails say nothing against an address.
    against_column : hashable, optional
        Which column of a table in `against`; by default its only one, or the one that looks like
        addresses.
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
        No such column, the name occurs twice, or no column of `against` looks like addresses.
    InputError
        The file of `against` cannot be read, or `data` or `against` consists of rows or of frames.
    SettingsError
        `against` is not a list, or the new column would overwrite one that mailverdict did not write.

    Warns
    -----
    UserWarning
        If entries of the list are neither an address nor a domain, since they suppress nothing; or if
        no cell of the column holds an ``@``.

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
    """
    kind = kind_of_data(data, column)
    label = label_of(column, prefix, "suppressed")
    earlier = earlier_flags(kind, label)
    names = name_columns(kind, prefix, SUPPRESS_COLUMNS) if earlier is None else [label]
    is_read = isinstance(against, SuppressionList)
    listed = against if is_read else SuppressionList.read(against, against_column)
    texts = read_values(kind.values(), for_repair=True, longest=MAX_CELL).texts
    warn_user(describe_no_address(texts, column))
    flags = listed.find(read_mailboxes(texts))
    if earlier is not None:
        flags = pc.or_kleene(earlier.fill_null(False), flags)
    return kind.attach(pa.table({"suppressed": flags}), names, SUPPRESS_COLUMNS, {})


def earlier_flags(kind: Table, label: Any) -> pa.BooleanArray | None:
    """What an earlier call marked: the column of that name, if it holds booleans."""
    if list(kind.labels()).count(label) != 1:
        return None
    values = kind.cells(label)
    flags = pa.array(values, from_pandas=True) if isinstance(values, pd.Series) else values
    flags = one_array(flags)
    return flags if isinstance(flags, pa.BooleanArray) else None


class SuppressionList:
    """Addresses and domains that must not be mailed."""

    def __init__(self) -> None:
        self.mailboxes: set[str] = set()
        self.domains: set[str] = set()
        self.refused: dict[str, int] = {}  # how often, by entry
        self.size = 0

    @classmethod
    def read(cls, against: Any, column: Hashable | None = None) -> SuppressionList:
        """Read the whole list, and warn about entries that suppress nothing."""
        listed = cls()
        for cells in read_against(against, column):
            listed.add(cells)
        listed.warn()
        return listed

    def add(self, cells: Any) -> None:
        """Add entries; those that are neither addresses nor domains are counted."""
        texts = read_values(cells, for_repair=True, longest=MAX_CELL).texts
        entries = texts.filter(is_filled(texts))
        self.size += len(entries)
        distinct = entries.dictionary_encode()
        counts = np.bincount(distinct.indices.to_numpy(), minlength=len(distinct.dictionary))
        is_domain = pc.match_substring_regex(distinct.dictionary, DOMAIN_MARK)
        mailboxes = read_mailboxes(pc.if_else(is_domain, "", distinct.dictionary)).names
        for text, mailbox, count in zip(distinct.dictionary.to_pylist(), mailboxes.to_pylist(), counts, strict=True):
            parts = SEPARATORS.split(text)
            if len(parts) > 1 and all("@" in part or listed_domain(part) for part in parts) and self.add_parts(parts):
                continue  # before the address alone: a domain beside it is an entry, too
            if mailbox is not None:
                self.mailboxes.add(mailbox)
            elif not self.add_parts([text]) and not self.add_parts(repair_cell(text).addresses):
                self.refuse(text, int(count))

    def add_parts(self, parts: Sequence[str]) -> bool:
        """Add a cell that consists of domains and addresses; False, and nothing is added, if it holds anything else."""
        parts = [part for part in parts if part]
        domains = [listed_domain(part) for part in parts]
        others = ["" if domain else part for part, domain in zip(parts, domains, strict=True)]
        mailboxes = read_mailboxes(pa.array(others, pa.string())).names.to_pylist()
        if not all(domain or mailbox for domain, mailbox in zip(domains, mailboxes, strict=True)):
            return False
        self.domains.update(domain for domain in domains if domain)
        self.mailboxes.update(mailbox for mailbox in mailboxes if mailbox)
        return bool(parts)

    def refuse(self, entry: str, count: int) -> None:
        self.refused[entry] = self.refused.get(entry, 0) + count

    def warn(self) -> None:
        """Warn about entries that suppress nothing."""
        if self.refused:
            shown = first_of([repr(printable_text(entry, 60)) for entry in self.refused], SHOWN)
            warn_user(
                f"{sum(self.refused.values()):,} of {self.size:,} entries of the suppression list are neither an "
                f"address nor a domain and suppress nothing: {shown}"
            )

    def find(self, rows: Mailboxes) -> pa.BooleanArray:
        """Which rows are on the list; null for rows without an address."""
        domains = rows.domains.dictionary_encode()
        names = domains.dictionary.to_pylist()
        alike = frozenset(map(mailbox_domain, self.domains))
        listed = {*below_any(names, frozenset(self.domains)), *below_any(list(map(mailbox_domain, names)), alike)}
        by_domain = pa.array([at in listed for at in range(len(names))], pa.bool_()).take(domains.indices)
        by_address = pc.is_in(rows.names, value_set=pa.array(sorted(self.mailboxes), pa.string()))
        return pc.if_else(pc.is_valid(rows.names), pc.or_(by_domain, by_address), None)


def listed_domain(text: str) -> str | None:
    """The domain that an entry names; None for a number, and for all of a country's ``co.uk``.

    >>> listed_domain("*@Firm.example"), listed_domain("co.uk"), listed_domain("10.5.2026")
    ('firm.example', None, None)
    """
    domain = normal_domain(text.strip().removeprefix("*").lstrip("@."))
    is_wrong = domain is None or is_public_suffix(domain, ()) or REFUSED_DOMAIN.search(domain)
    return None if is_wrong else domain


def read_against(against: Any, column: Hashable | None) -> Iterator[Any]:
    """The cells of a suppression list, in pieces."""
    if isinstance(against, str | Path):
        yield from read_list_file(user_path(against), column)
    elif against is None:
        raise SettingsError("against=None: give the suppression list as a path, a list, a Series or a frame")
    else:
        try:
            data = list(against) if isinstance(against, set | frozenset) else read_stream(against)
            data = data.read_all() if isinstance(data, pa.RecordBatchReader) else data
            if hasattr(data, "columns") and has_outcomes(labels_of(data)):
                yield bounced_addresses(data)
                return
            if hasattr(data, "columns") and column is None:
                column = choose_list_column({name: kind_of_data(data, name).values() for name in labels_of(data)})
            yield kind_of_data(data, column).values()
        except (InputError, SettingsError) as exc:
            raise type(exc)(f"against: {exc}") from None


def has_outcomes(names: Iterable[Any]) -> bool:
    """Whether a table with these columns has what `read_bounces` found: not every address in it is to be suppressed."""
    return {"address", "outcome", "diagnostic", "reason"} <= set(names)


def bounced_addresses(bounces: Any) -> pa.ChunkedArray:
    """The addresses with a hard bounce or a complaint in what `read_bounces` returned."""
    from ..bounces.read import to_bounce_table  # noqa: PLC0415 - loads the rules for replies

    table = to_bounce_table(bounces)
    chosen = pc.is_in(table["outcome"].cast(pa.string()), value_set=pa.array(["hard", "complaint"]))
    return table["address"].filter(chosen)


def choose_list_column(columns: Mapping[Any, Any]) -> Any:
    """The only column, or the one that looks like addresses."""
    try:
        return next(iter(columns)) if len(columns) == 1 else guess_column(columns)
    except ColumnError as exc:
        raise ColumnError(f"the suppression list: {exc}, as against_column=") from None


def read_list_file(path: Path, column: Hashable | None) -> Iterator[Any]:
    """The cells of a file: its lines, or a column of a table."""
    if path.suffix.lower() == ".txt" and path.is_file():
        yield read_lines(path)
        return
    if not path.exists():
        raise InputError(f"against: {path}: no such file; give entries as a list, as [{str(path)!r}]")
    with open_table(path) as table:
        for piece in table.pieces() if table.columns else ():  # without columns: JSON lines without a line
            if has_outcomes(table.columns):
                yield bounced_addresses(piece)
                continue
            if column is None:
                column = choose_list_column(dict(zip(table.columns, piece.columns, strict=True)))
            table.check_column(str(column))
            yield piece.column(table.columns.index(str(column)))


def read_lines(path: Path) -> list[str]:
    """The lines of a text file without comments; octets that are not text make an entry that is warned about."""
    data = path.read_bytes()
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    return [line for line in data.decode(encoding, errors="replace").splitlines() if not line.startswith("#")]
