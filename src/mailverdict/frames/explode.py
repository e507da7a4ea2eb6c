"""Exploding a column: `explode` gives each address of a cell that holds several a row of its own."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.syntax.column import observe_column
from ..model.arrow import to_bools
from ..repair.lists import bad_parts
from ..repair.remarks import has_remark, text_beside
from ..repair.repair import MAX_CELL, repair_cell
from ..table.cells import SEQUENCES, describe_no_address, read_cells, texts_of
from ..table.columns import COLUMNS, DERIVED_COLUMNS, PART_COLUMNS, label_of
from ..table.notices import warn_user
from ..table.overwrite import name_columns, read_existing
from ..table.table import Frame, table_of, to_series


def explode(data: Frame, column: Hashable, *, prefix: str | None = None) -> Frame:
    """Give each address of a cell that holds several a row of its own.

    Addresses may be separated by blanks, line breaks, ``;``, ``,``, ``/``, ``|`` or words such as
    "and", and may have display names or labels. A cell with one address, with none, or in which none
    can be read with certainty stays as it is. Beside several addresses, a part that is not an address gets
    a row, too. Words that ask for no mail ("do not contact") stay beside each address of the cell. A
    cell that is a list of texts is replaced by its text, or by its addresses. Uses no network.

    Parameters
    ----------
    data : DataFrame
        A pandas, Polars or Arrow frame, or whatever has the Arrow PyCapsule interface; as in `verify`.
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
        If no cell of the column holds an ``@``, or if columns of an earlier verification are dropped.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> df = pd.DataFrame({"email": ["ada@firm.com; Bob <bob@firm.com>", "cy@firm.com"], "city": ["Rome", "Oslo"]})
    >>> mv.explode(df, "email")
             email  city  email_part
    0  ada@firm.com  Rome           1
    0  bob@firm.com  Rome           2
    1   cy@firm.com  Oslo           1
    """
    table = table_of(data, column)
    names = name_columns(table, prefix, PART_COLUMNS)
    texts = read_cells(table.values(), longest=MAX_CELL)["text"]
    warn_user(describe_no_address(texts, column))
    parts = find_lists(table.values(), texts) | find_several(texts)
    counts = np.ones(len(texts), np.int64)
    counts[list(parts)] = [len(found) for found in parts.values()]
    rows = np.repeat(np.arange(len(texts)), counts)
    numbers = np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows] + 1
    written = [text for row in sorted(parts) for text in parts[row]]
    exploded = table.repeat(rows, np.flatnonzero(np.isin(rows, list(parts))), written)
    about_cells = [each.name for each in (*COLUMNS, *DERIVED_COLUMNS)]
    dropped = [name for name in read_existing(table, prefix).earlier if name in about_cells]
    if dropped:
        exploded = exploded.drop([label_of(column, prefix, name) for name in dropped])
        warn_user(
            f"results of earlier calls beside column {column!r:.80} are dropped: they were about whole cells"
        )
    marked: Frame = exploded.attach(pa.table({"part": pa.array(numbers)}), names, PART_COLUMNS, {})
    return marked


def find_lists(values: Any, texts: pa.StringArray) -> dict[int, tuple[str, ...]]:
    """By row, the text of each cell that is a list: the only one of the list, or all as JSON."""
    rows = np.flatnonzero(to_bools(pc.starts_with(texts, "[")))
    cells = to_series(values).iloc[rows] if len(rows) else ()
    found: dict[int, tuple[str, ...]] = {}
    for row, cell, text in zip(rows.tolist(), cells, texts.take(rows).to_pylist(), strict=True):
        if isinstance(cell, SEQUENCES) and (items := texts_of(cell)):
            found[row] = (items[0] if len(items) == 1 else text,)
    return found


def find_several(texts: pa.StringArray) -> dict[int, tuple[str, ...]]:
    """The addresses of each text that holds several, by row."""
    stripped = pc.utf8_trim_whitespace(texts)
    may_hold = pc.and_(
        pc.invert(observe_column(stripped)["well_formed"]),
        pc.greater(pc.binary_length(stripped), len("a@b.co,b@c.co")),
    )
    found: dict[str, tuple[str, ...]] = {}
    several = {}
    for at, text in zip(np.flatnonzero(may_hold), texts.filter(may_hold).to_pylist(), strict=True):
        if text not in found:
            found[text] = repair_cell(text).addresses
            if len(found[text]) > 1:
                found[text] += bad_parts(text)
            # Perhaps about all of them.
            if len(found[text]) > 1 and has_remark(remark := text_beside(text)):
                found[text] = tuple(f"{address} ({remark})" for address in found[text])
        if len(found[text]) > 1:
            several[int(at)] = found[text]
    return several
