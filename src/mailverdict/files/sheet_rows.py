"""The rows of a worksheet as XML, made from whole columns.

xlsxwriter makes each cell by itself, some eight microseconds each. A table of 100,000 rows has
three million of them. Here Arrow joins whole columns: the cells of a column of texts are

    <c r="B2" t="inlineStr"><is><t>ada</t></is></c>

and those of a row are joined to `<row r="2">...</row>`. `RowSheet` is the worksheet of xlsxwriter
with a method that appends such rows; what it does not know, such as times, is written cell by cell.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..model.arrow import one_array
from .joined import TEXTS, bytes_of, join

LONGEST_TEXT = 16_000  # characters; longer ones are cut by xlsxwriter, which counts in UTF-16
MOST_EXACT = 2**53  # of whole numbers in a double
# What a workbook writes as _xHHHH_, and texts that look like that (ECMA-376 part 1, 22.9.2.19).
LITERAL = re.compile(r"(_x[0-9a-fA-F]{4}_)")
CONTROL = re.compile("([\x00-\x08\x0b-\x1f\ufffe\uffff])")
TO_ESCAPE = r"_x[0-9a-fA-F]{4}_|[\x00-\x08\x0b-\x1f\x{fffe}\x{ffff}]"
AROUND_BLANKS = r"^\s|\s$|\n"  # texts whose blanks a reader would drop
ENTITIES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"))


@cache
def row_sheet_class() -> Any:
    """The class `RowSheet`; xlsxwriter is an extra, and is imported only here."""
    from xlsxwriter.worksheet import Worksheet  # noqa: PLC0415 - an extra

    class RowSheet(Worksheet):  # type: ignore[misc]
        """A worksheet of a workbook with `constant_memory`, whose rows are written as they come."""

        def append_rows(self, first: int, columns: Sequence[Any]) -> bool:
            """Append rows from a row on, by their columns; False: they have to go cell by cell."""
            if not columns or not len(columns[0]):
                return False
            row_cells = []
            for position, column in enumerate(columns):
                cells = ColumnCells(position, first).of(column)
                if cells is None:
                    return False
                row_cells.append(cells)
            count = len(columns[0])
            last = first + count - 1
            self._check_dimensions(first, 0)
            self._check_dimensions(last, len(columns) - 1)
            self._write_single_row(last + 1)  # what was written cell by cell before
            numbers = row_numbers(first, count)
            rows = join('<row r="', numbers, '">', *row_cells, "</row>")
            self.fh.write(str(bytes_of(rows), "utf-8"))
            return True

    return RowSheet


class ColumnCells(NamedTuple):
    """Makes the XML of the cells of a column from a row on."""

    position: int  # of the column
    first: int  # the row

    def of(self, column: Any) -> pa.Array | None:
        """The XML of each cell; None where it has to be written cell by cell."""
        values = one_array(column)
        kind = values.type
        if pa.types.is_null(kind):
            return pa.nulls(len(values), TEXTS)
        if pa.types.is_string(kind):
            return self.of_texts(values.cast(TEXTS))
        if pa.types.is_boolean(kind):
            digits = pc.if_else(values, "1", "0").cast(TEXTS)
            return self.tagged('" t="b"><v>', digits, "</v></c>")
        if are_exact(values):
            return self.tagged('"><v>', values.cast(TEXTS), "</v></c>")
        return None

    def of_texts(self, texts: pa.LargeStringArray) -> pa.Array | None:
        """The XML of cells of text; an empty one is none."""
        longest = pc.max(pc.utf8_length(texts)).as_py()
        if longest is not None and longest > LONGEST_TEXT:
            return None
        has_control = pc.match_substring_regex(texts, TO_ESCAPE).fill_null(False)
        if has_control.true_count:
            controlled = texts.filter(has_control).to_pylist()
            escaped = pa.array(map(escape_control, controlled), TEXTS)
            texts = pc.replace_with_mask(texts, has_control, escaped)
        space = ""
        has_blanks = pc.match_substring_regex(texts, AROUND_BLANKS)
        if has_blanks.true_count:
            space = ' xml:space="preserve"'
        for sign, entity in ENTITIES:
            texts = pc.replace_substring(texts, sign, entity)
        texts = pc.if_else(pc.equal(texts, ""), None, texts)
        return self.tagged(f'" t="inlineStr"><is><t{space}>', texts, "</t></is></c>")

    def tagged(self, before: str, values: pa.LargeStringArray, after: str) -> Any:
        """The cells with their references; a null is no cell."""
        from xlsxwriter.utility import xl_col_to_name  # noqa: PLC0415 - an extra

        letters = xl_col_to_name(self.position)
        numbers = row_numbers(self.first, len(values))
        cells = join(f'<c r="{letters}', numbers, before, values, after)
        return pc.if_else(values.is_valid(), cells, None)


def are_exact(values: pa.Array) -> bool:
    """Whether all values are numbers that doubles, as those of a workbook, have as they are."""
    if pa.types.is_integer(values.type):
        sizes = pc.abs(values.cast(pa.float64(), safe=False))
        largest = pc.max(sizes).as_py()
        return largest is None or bool(largest < MOST_EXACT)
    if pa.types.is_float64(values.type):
        return pc.all(pc.is_finite(values)).as_py() is not False
    return False


def escape_control(text: str) -> str:
    r"""A text as a workbook has it.

    >>> escape_control("a\x01_x0041_")
    'a_x0001__x005F_x0041_'
    """
    literal = LITERAL.sub(r"_x005F\1", text)
    return CONTROL.sub(lambda match: f"_x{ord(match[1]):04X}_", literal)


def row_numbers(first: int, count: int) -> pa.LargeStringArray:
    """The numbers of rows as a workbook counts them, from 1."""
    numbers = np.arange(first + 1, first + count + 1)
    return pa.array(numbers).cast(TEXTS)
