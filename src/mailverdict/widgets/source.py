"""Loading a table: from a frame of any library, a file by its path, or text that was pasted."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd
import pyarrow as pa

from ..errors import InputError, SettingsError
from ..files.readers import open_table
from ..files.table_file import UNSPECIFIED, ReadOptions, TableFile, without_options
from ..table.choose_column import ChosenColumn, choose_column
from ..table.refusals import Refusal, find_refusals
from ..table.table import read_stream

LONGEST_LABEL = 60
LONGEST_PASTE = 50_000_000  # characters
FROM_MEMORY = "data frame"
FROM_PASTE = "pasted list"
NOT_IN_NAMES = re.compile(r"[^\w. -]")  # of files
# Nullable dtypes, so that integers and booleans with missing values are written back unchanged.
TYPES = {
    pa.int64(): pd.Int64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
    pa.string(): pd.StringDtype("pyarrow"),
    pa.large_string(): pd.StringDtype("pyarrow"),
}
# Of text files from elsewhere, the likeliest first. What a byte order mark says is found out.
ENCODINGS = (
    ("as found in the file", ""),
    ("Western European, Windows (cp1252)", "cp1252"),
    ("Western European, Unix (latin-9)", "iso8859-15"),
    ("Western European, old Mac (mac-roman)", "mac-roman"),
    ("Unicode, 16 bits (utf-16-le)", "utf-16-le"),
    ("Central European, Windows (cp1250)", "cp1250"),
    ("Central European, Unix (iso-8859-2)", "iso8859-2"),
    ("Turkish, Windows (cp1254)", "cp1254"),
    ("Baltic, Windows (cp1257)", "cp1257"),
    ("Cyrillic, Windows (cp1251)", "cp1251"),
    ("Japanese (cp932)", "cp932"),
    ("Chinese (gb18030)", "gb18030"),
    ("Chinese, traditional (big5)", "big5"),
    ("Korean (cp949)", "cp949"),
)


@dataclass(frozen=True, eq=False)
class Source:
    """A table that was loaded; `name` is its file name, or what else it is."""

    name: str
    frame: pd.DataFrame
    remarks: tuple[str, ...] = ()  # what was guessed or found odd when a file was read
    has_header: bool = True
    is_text: bool = False  # read from a text file, which has an encoding and may have no header
    sheet: str | None = None  # of a workbook
    sheets: tuple[str, ...] = ()  # all of the workbook

    @cached_property
    def labels(self) -> list[str]:
        """The columns' names for a list to choose from: printable and unique."""
        labels: list[str] = []
        for name in self.frame.columns:
            label = printable_label(name)
            earlier = labels.count(label)
            if earlier:
                label = f"{label} ({earlier + 1})"
            labels.append(label)
        return labels

    def columns(self) -> dict[str, pd.Series[Any]]:
        """The columns by their labels."""
        columns = {}
        for at, label in enumerate(self.labels):
            columns[label] = self.frame.iloc[:, at]
        return columns

    @cached_property
    def choice(self) -> ChosenColumn:
        """Which column has the addresses, by the labels of the columns."""
        return choose_column(self.columns())

    def position(self, label: str) -> int:
        """The position of a column."""
        return self.labels.index(label)

    @cached_property
    def refusals(self) -> dict[int, Refusal]:
        """The columns that say no in some rows, by their positions."""
        refusals = find_refusals(self.columns())
        return {self.position(refusal.name): refusal for refusal in refusals}

    def stem(self) -> str:
        """The name for a file made from this table, without suffix.

        It has only characters that all file systems allow.
        """
        if self.name in (FROM_MEMORY, FROM_PASTE):
            return "emails"
        stem = NOT_IN_NAMES.sub("_", PurePosixPath(self.name).stem)
        return stem.strip(" ._")[:LONGEST_LABEL] or "emails"


def printable_label(name: Any) -> str:
    """A column's name as one line of bounded length, with all levels of a multi-level label."""
    if isinstance(name, tuple):
        name = " / ".join(map(str, name))
    return readable(str(name)) or "(no name)"


def readable(text: str, longest: int = LONGEST_LABEL) -> str:
    """One line of bounded length."""
    return short_text(printable(text[: 4 * longest]).strip(), longest)


def printable(text: str) -> str:
    """Text with a blank for each character that cannot be seen."""
    return "".join(char if char.isprintable() else " " for char in text)


def short_text(text: str, longest: int) -> str:
    """A text that can be sent, cut where it is too long."""
    text = encodable(text)
    if len(text) <= longest:
        return text
    return text[: longest - 1] + "…"


def encodable(text: str) -> str:
    """Text with lone surrogates escaped: they cannot be encoded as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def read_frame(data: Any) -> Source:
    """A frame of any library, or a Series, as a source; rows of pandas are not copied."""
    data = read_stream(data)
    if isinstance(data, pa.RecordBatchReader):
        data = data.read_all()
    if isinstance(data, pa.Table):
        data = data.to_pandas(types_mapper=TYPES.get)
    elif isinstance(data, pd.Series):
        data = data.to_frame("email" if data.name is None else data.name)
    elif not isinstance(data, pd.DataFrame) and hasattr(data, "to_arrow"):
        is_series = type(data).__name__ == "Series"
        return read_frame(data.to_frame() if is_series else data.to_arrow())
    if not isinstance(data, pd.DataFrame):
        raise SettingsError(
            f"df={type(data).__name__}: give a DataFrame, a Series, or the path of a table file"
        )
    return Source(FROM_MEMORY, data)


def read_file(
    path: str | Path, name: str | None = None, options: ReadOptions = UNSPECIFIED
) -> Source:
    """Read a table file; messages use `name`, which may come from a browser and is not trusted."""
    given = name or str(path)
    _, _, last = given.replace("\\", "/").rpartition("/")
    shown = readable(last) or "the file"
    try:
        with open_table(path, options, name=name and shown) as table:
            return read_whole(shown, table)
    except InputError:
        raise
    except (OSError, ValueError, RuntimeError) as exc:
        raise InputError(f"{readable(given)}: {exc}") from exc


def read_pasted(text: str, *, has_header: bool | None = None) -> Source:
    """Cells copied from a spreadsheet as a table, or addresses by line.

    On a single line they are separated by comma or semicolon.
    """
    if len(text) > LONGEST_PASTE:
        raise InputError(
            f"more than {LONGEST_PASTE:,} characters were pasted;"
            " save them as a file and drop it here"
        )
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise InputError("nothing was pasted; paste addresses, one per line")
    if any("\t" in line for line in lines):
        with tempfile.TemporaryDirectory(prefix="mailverdict-") as folder:
            copy = Path(folder, "pasted.tsv")
            copy.touch(0o600)
            copy.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="backslashreplace")
            return read_file(copy, FROM_PASTE, ReadOptions("utf-8", has_header=has_header))
    if len(lines) == 1:
        parts = re.split(r"[;,]", lines[0])
        lines = [part.strip() for part in parts if part.strip()]
    cells = pd.Series(map(encodable, lines), dtype="string[pyarrow]")
    return Source(FROM_PASTE, pd.DataFrame({"email": cells}))


def read_whole(name: str, table: TableFile) -> Source:
    """Read all rows of an opened file; one without rows is an error."""
    rows = in_one_piece(pa.concat_tables(list(table.pieces())))
    if not len(rows):
        raise InputError(f"{name} has a header line but no rows")
    frame: pd.DataFrame = rows.to_pandas(
        types_mapper=TYPES.get, self_destruct=True, split_blocks=True
    )
    del rows
    remarks = [*table.remarks, *table.final_remarks()]
    return Source(
        name=name,
        frame=frame,
        remarks=tuple(map(without_options, remarks)),
        has_header=table.has_header,
        is_text=table.format.encoding is not None,
        sheet=table.format.sheet,
        sheets=tuple(table.sheets),
    )


def in_one_piece(table: pa.Table) -> pa.Table:
    """The table with each column in one piece.

    To take a few rows, Arrow would join all pieces each time.
    """
    for at, field in enumerate(table.schema):
        table = table.set_column(at, field, table.column(at).combine_chunks())
    return table
