"""The texts that are verified for the cells of one or several columns: read, and repaired with ``clean=True``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.syntax.column import SyntaxColumn, observe_column
from .clean import repair_column
from .repair import MAX_CELL
from .text_column import LONGEST_TEXT, TextColumn, read_values, to_string_array

__all__ = ["AddressColumns", "read_addresses"]


@dataclass(frozen=True)
class AddressColumns:
    """One or several columns as they were read; the texts of all columns one after another."""

    cells: Sequence[TextColumn]  # one per column
    texts: pa.StringArray  # stripped and, where there is an address, repaired
    repaired: pa.Table | None  # clean, suggestion and change of each text; None: they stay as they are
    syntax: SyntaxColumn | None  # the check of `texts`, if it was made

    def slices(self) -> list[slice]:
        """Where the texts of each column are."""
        ends = np.cumsum([len(each.texts) for each in self.cells]).tolist()
        return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]

    def repaired_in(self, part: slice) -> pa.Table | None:
        """The repairs of some texts."""
        return None if self.repaired is None else self.repaired.slice(part.start, part.stop - part.start)


def read_addresses(columns: Sequence[Any], *, clean: bool, keep_syntax: bool = False) -> AddressColumns:
    """Read columns of cells; with `clean` the address that the safe repairs find in a cell takes its place.

    A cell without such an address stays as it is. With `keep_syntax` the syntax check that the repairs need is kept.

    >>> read_addresses([["Ada <ada@example.org>", None], ["nobody"]], clean=True).texts.to_pylist()
    ['ada@example.org', 'nobody']
    """
    if not clean:
        cells = [read_values(column) for column in columns]
        return AddressColumns(cells, join_texts(cells), None, None)
    cells = [read_values(column, keep_blanks=True, longest=MAX_CELL) for column in columns]
    written = join_texts(cells)
    stripped = pc.utf8_trim_whitespace(written)
    seen = observe_column(stripped)
    found = repair_column(written, stripped, seen)
    is_changed = pc.not_equal(found.address, stripped).fill_null(False)
    texts = pc.if_else(is_changed, found.address, stripped) if is_changed.true_count else stripped
    if (pc.max(pc.binary_length(texts)).as_py() or 0) > LONGEST_TEXT:
        texts = pc.utf8_slice_codeunits(texts, 0, LONGEST_TEXT)
    repaired = pa.table({"clean": found.address, "suggestion": found.suggestion, "change": found.change})
    if not keep_syntax:
        return AddressColumns(cells, texts, repaired, None)
    if is_changed.true_count:
        seen = seen.replace_rows(is_changed, observe_column(texts.filter(is_changed)))
    return AddressColumns(cells, texts, repaired, seen)


def join_texts(cells: Sequence[TextColumn]) -> pa.StringArray:
    """The texts of all columns one after another."""
    return cells[0].texts if len(cells) == 1 else to_string_array(pa.chunked_array([each.texts for each in cells]))
