"""Rows of a column that reach the same mailbox: `duplicates`.

Cells are cleaned first. The rules of `checks.lists.mailboxes` then say which mailbox each address
reaches; all that follows compares mailboxes:

    row  email                      identity       duplicate_of  copies
    0    Ada <a.da@gmail.com>       ada@gmail.com                2
    1    ada+shop@googlemail.com    ada@gmail.com  0             2
    2    nobody

`SentMailboxes` does the same for a table that comes in pieces, by a hash of each mailbox.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..checks.lists.mailboxes import Mailboxes, find_mailboxes
from ..model.arrow import to_bools
from ..repair.repair import MAX_CELL
from ..table.cells import describe_no_address, read_cells
from ..table.columns import DUPLICATE_COLUMNS
from ..table.notices import warn_user
from ..table.overwrite import name_columns
from ..table.table import Frame, table_of
from .clean import repair_column
from .seen_addresses import Hashes, find_hashes, hash_texts


def read_mailboxes(texts: pa.StringArray) -> Mailboxes:
    """Clean the distinct texts of a column and find the mailbox of each.

    A cell with several addresses has none.
    """
    distinct = texts.dictionary_encode()
    repaired = repair_column(distinct.dictionary)
    return find_mailboxes(repaired["clean"]).take(distinct.indices)


@overload
def duplicates(data: Frame, column: Hashable, *, prefix: str | None = None) -> Frame: ...
@overload
def duplicates(
    data: Iterable[object], column: None = None, *, prefix: str | None = None
) -> pd.DataFrame: ...
def duplicates(data: Any, column: Hashable | None = None, *, prefix: str | None = None) -> Any:
    """Find the rows whose mail reaches the same mailbox. Uses no network, and removes no row.

    Each cell is cleaned first, as by `clean`. Then the case of the address is ignored, and for the
    providers in the table of mailbox rules also what they ignore: ``A.da+shop@googlemail.com`` is
    ``ada@gmail.com``. At any other domain a plus sign, a dot and a hyphen are ordinary characters,
    since many servers treat them so, and two people must never be taken for one.

    Parameters
    ----------
    data : DataFrame, Series or list-like
        A pandas, Polars or Arrow frame with `column`, or a Series, array or list of cells; as in
        `verify`.
    column : hashable, optional
        Which column of a frame.
    prefix : str, optional
        Before each new column's name; ``f"{column}_"`` by default, nothing for a Series or list.

    Returns
    -------
    DataFrame
        One row out per row in, the caller's columns untouched, and three new ones: `identity`
        (``string``: equal for all rows of a mailbox; to compare, not to send to), `duplicate_of`
        (the index label of the first row with the same identity; its position from 0 if that label
        is missing, and in Polars and Arrow data and lists; NA for that first row) and `copies`
        (``Int64``: how many rows have that identity). A cell without exactly one address has NA in
        all three, and is not a duplicate.

    Raises
    ------
    ColumnError
        No such column, or the name occurs twice.
    SettingsError
        A new column would overwrite one that mailverdict did not write.
    InputError
        `data` consists of rows or of frames, not of cells.

    Warns
    -----
    UserWarning
        If no cell of the column holds an ``@``.

    Examples
    --------
    >>> import mailverdict as mv
    >>> cells = ["Ada <a.da@gmail.com>", "ada+shop@googlemail.com", "ada+shop@example.org", None]
    >>> found = mv.duplicates(cells)
    >>> found
                   identity  duplicate_of  copies
    0         ada@gmail.com          <NA>       2
    1         ada@gmail.com             0       2
    2  ada+shop@example.org          <NA>       1
    3                  <NA>          <NA>    <NA>
    >>> found["duplicate_of"].isna().tolist()       # the rows that stay
    [True, False, True, True]
    """
    table = table_of(data, column)
    names = name_columns(table, prefix, DUPLICATE_COLUMNS)
    texts = read_cells(table.values(), longest=MAX_CELL)["text"]
    warn_user(describe_no_address(texts, column))
    compared = compare_mailboxes(read_mailboxes(texts).names)
    return table.attach(compared, names, DUPLICATE_COLUMNS, {})


def compare_mailboxes(
    mailboxes: pa.StringArray, passed_over: npt.NDArray[np.bool_] | None = None
) -> pa.Table:
    """The three columns of `duplicates`; a row is named by its position.

    Of several rows of a mailbox the first one stays that is not passed over; the first of all if
    all are.
    """
    coded = mailboxes.dictionary_encode()
    has_none = to_bools(coded.is_null())
    group = coded.indices.fill_null(0).to_numpy()
    rows = np.arange(len(group))
    first = np.zeros(len(coded.dictionary) + 1, np.int64)  # the first row of each mailbox
    filled = rows[~has_none][::-1]  # of rows with the same code the last assignment stays
    first[group[filled]] = filled
    if passed_over is not None:
        preferred = filled[~passed_over[filled]]
        first[group[preferred]] = preferred
    copies = np.bincount(group[filled], minlength=len(first))
    first_of_row = first[group]
    is_first = first_of_row == rows
    columns = {
        "identity": mailboxes,
        "duplicate_of": pa.array(first_of_row, mask=has_none | is_first),
        "copies": pa.array(copies[group], mask=has_none),
    }
    return pa.table(columns)


class SentMailboxes:
    """The mailboxes that get a mail, each with the first row that may be sent.

    The table comes in pieces. A mailbox is a hash of 64 bits: among five million, two have the same
    with a probability of one in a million.
    """

    def __init__(self) -> None:
        self.hashes = np.empty(0, np.uint64)  # in order
        self.rows = np.empty(0, np.int64)  # of the mailbox with each hash, from 1
        self.size = 0  # rows of the pieces so far

    def find_repeats(self, mailboxes: pa.StringArray) -> npt.NDArray[np.int64]:
        """For each row of the next piece the row that gets the mail of its mailbox; 0 for itself.

        The mailbox is null in rows that are not sent.
        """
        coded = mailboxes.dictionary_encode()
        codes = coded.indices.fill_null(-1).to_numpy()
        numbers = self.size + 1 + np.arange(len(codes))
        self.size += len(codes)
        hashes = hash_texts(coded.dictionary)
        first = np.empty(len(hashes) + 1, np.int64)  # the last one is of rows without a mailbox
        first[codes[::-1]] = numbers[::-1]  # of rows with the same code the last assignment stays
        first = first[:-1]
        places, is_known = find_hashes(self.hashes, hashes)
        first[is_known] = self.rows[places[is_known]]
        self.add(hashes[~is_known], first[~is_known])
        row_of_mail = np.append(first, 0)[codes]
        return np.where(row_of_mail == numbers, 0, row_of_mail)

    def has(self, mailboxes: pa.StringArray) -> npt.NDArray[np.bool_]:
        """Which mailboxes get a mail; null is none."""
        is_known = np.isin(hash_texts(mailboxes.fill_null("")), self.hashes)
        return is_known & to_bools(mailboxes.is_valid())

    def add(self, hashes: Hashes, rows: npt.NDArray[np.int64]) -> None:
        """Keep new mailboxes, in the order of their hashes."""
        order = np.argsort(hashes)
        ordered = hashes[order]
        places = np.searchsorted(self.hashes, ordered)
        self.hashes = np.insert(self.hashes, places, ordered)
        self.rows = np.insert(self.rows, places, rows[order])
