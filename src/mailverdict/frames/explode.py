"""Exploding a column: `explode` gives each address of a cell that holds several a row of its own.

`find_lists` and `find_several` give the parts by row; all other cells stay as they are:

    email                        parts                             rows  part
    a@b.de; c@d.de               a@b.de, c@d.de                    2     1, 2
    ada@firm.com                                                   1     1
    ["ada@firm.com"]             ada@firm.com                      1     1
    a@b.de, c@d.de (no mail)     a@b.de (no mail), c@d.de (no mail)  2     1, 2
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.syntax.column import observe_column
from ..model.arrow import to_bools
from ..repair.lists import bad_parts
from ..repair.remarks import has_remark, text_beside
from ..repair.repair import MAX_CELL, repair_cell
from ..table.cells import SEQUENCES, describe_no_address, read_cells, texts_of
from ..table.columns import COLUMNS, DERIVED_COLUMNS, PART_COLUMNS
from ..table.notices import warn_user
from ..table.overwrite import name_columns, read_existing
from ..table.table import Frame, Table, table_of, to_series

SEVERAL = 2  # addresses of a cell that is exploded


def explode(data: Frame, column: Hashable, *, prefix: str | None = None) -> Frame:
    """Give each address of a cell that holds several a row of its own.

    Addresses may be separated by blanks, line breaks, ``;``, ``,``, ``/``, ``|`` or words such as
    "and", and may have display names or labels. A cell with one address, with none, or in which
    none can be read with certainty stays as it is. Beside several addresses, a part that is not an
    address gets a row, too. Words that ask for no mail ("do not contact") stay beside each address
    of the cell. A cell that is a list of texts is replaced by its text, or by its addresses. Uses
    no network.

    Parameters
    ----------
    data : DataFrame
        A pandas, Polars or Arrow frame, or whatever has the Arrow PyCapsule interface; as in
        `verify`.
    column : hashable
        Which column of it.
    prefix : str, optional
        Before the new column's name; ``f"{column}_"`` by default.

    Returns
    -------
    DataFrame
        At least one row per row in, in the same order. The other cells and the index are repeated;
        the new column `part` (``Int64``) counts 1, 2, ... within each row of `data`. If `data` was
        verified or cleaned before, the columns of that are dropped: they were about whole cells.

    Raises
    ------
    ColumnError
        No such column, or the name occurs twice.
    SettingsError
        `data` is not a frame, or the new column would overwrite one that mailverdict did not write.

    Warns
    -----
    UserWarning
        If no cell of the column holds an ``@``, or if columns of an earlier verification are
        dropped.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> cells = ["ada@firm.com; Bob <bob@firm.com>", "cy@firm.com"]
    >>> df = pd.DataFrame({"email": cells, "city": ["Rome", "Oslo"]})
    >>> mv.explode(df, "email")
             email  city  email_part
    0  ada@firm.com  Rome           1
    0  bob@firm.com  Rome           2
    1   cy@firm.com  Oslo           1
    """
    exploded: Frame = explode_table(table_of(data, column), prefix)
    return exploded


def explode_table(
    table: Table, prefix: str | None = None, several: npt.NDArray[np.int64] | None = None
) -> Any:
    """Explode a table.

    `several` are the rows whose texts hold several addresses, where that is known.
    """
    column = table.column
    names = name_columns(table, prefix, PART_COLUMNS)
    texts = read_cells(table.values(), longest=MAX_CELL)["text"]
    warn_user(describe_no_address(texts, column))
    if several is None:
        several = rows_that_may_hold_several(texts)
    parts = find_lists(table.values(), texts) | find_several(texts, several)
    written: list[str] = []
    counts = np.ones(len(texts), np.int64)
    for row in sorted(parts):
        written += parts[row]
        counts[row] = len(parts[row])
    rows = np.repeat(np.arange(len(texts)), counts)
    is_replaced = np.isin(rows, list(parts))
    exploded = table.repeat(rows, np.flatnonzero(is_replaced), written)

    dropped = labels_about_cells(table, prefix)
    if dropped:
        exploded = exploded.drop(dropped)
        warn_user(
            f"results of earlier calls beside column {column!r:.80} are dropped: "
            "they were about whole cells"
        )
    first = np.cumsum(counts) - counts  # the new row with the first part of each row
    numbers = np.arange(len(rows)) - first[rows] + 1
    part = pa.table({"part": pa.array(numbers)})
    return exploded.attach(part, names, PART_COLUMNS, {})


def labels_about_cells(table: Table, prefix: str | None) -> list[Any]:
    """The results of earlier calls that were about whole cells."""
    about_cells = {result.name for result in (*COLUMNS, *DERIVED_COLUMNS)}
    existing = read_existing(table, prefix)
    labels = []
    for name in existing.earlier:
        if name in about_cells:
            labels.append(existing.columns[name].label)
    return labels


def find_lists(values: Any, texts: pa.StringArray) -> dict[int, tuple[str, ...]]:
    """By row, the text of each cell that is a list: the only one of the list, or all as JSON."""
    rows = np.flatnonzero(to_bools(pc.starts_with(texts, "[")))
    parts: dict[int, tuple[str, ...]] = {}
    if not len(rows):
        return parts
    cells = to_series(values).iloc[rows]
    written = texts.take(rows).to_pylist()
    for row, cell, text in zip(rows.tolist(), cells, written, strict=True):
        if not isinstance(cell, SEQUENCES):
            continue
        items = texts_of(cell)
        if not items:
            continue
        parts[row] = (text,)
        if len(items) == 1:
            parts[row] = tuple(items)
    return parts


def rows_that_may_hold_several(texts: pa.StringArray) -> npt.NDArray[np.int64]:
    """The rows whose text is long enough for several addresses, and not an address itself."""
    stripped = pc.utf8_trim_whitespace(texts)
    well_formed = observe_column(stripped)["well_formed"]
    is_long = pc.greater_equal(pc.binary_length(stripped), len("a@b.co,b@c.co"))
    return np.flatnonzero(pc.and_not(is_long, well_formed))


def find_several(texts: pa.StringArray, rows: npt.NDArray[np.int64]) -> dict[int, tuple[str, ...]]:
    """The addresses of each text that holds several, by row, of the rows that may."""
    split_once = cache(split_text)
    several = {}
    for row, text in zip(rows.tolist(), texts.take(rows).to_pylist(), strict=True):
        parts = split_once(text)
        if len(parts) > 1:
            several[row] = parts
    return several


def split_text(text: str) -> tuple[str, ...]:
    """The addresses of a text; beside several also what is not one, each with the text's remark.

    >>> split_text("a@b.de, c@d.de (do not contact)")
    ('a@b.de (do not contact)', 'c@d.de (do not contact)')
    """
    addresses = repair_cell(text).addresses
    if len(addresses) < SEVERAL:
        return addresses
    parts = (*addresses, *bad_parts(text))
    remark = text_beside(text)
    if has_remark(remark):  # perhaps about all of them
        return tuple(f"{part} ({remark})" for part in parts)
    return parts
