"""JSON lines: one JSON object in each line, with a member for each column.

    {"id": 1, "email": "ada@x.org"}                   ->  columns id (int64) and email (text)
    {"id": 2, "email": null, "tags": ["a", "b"]}      ->  and tags, as the text ["a", "b"]

`JsonLinesFile` reads such a file twice: first all columns and their types, then the rows in pieces.
`JsonLinesWriter` writes one. Lines of another file of JSON lines are copied, and only our members
are added to them.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, ClassVar

import pyarrow as pa

from ..errors import InputError
from ..model.words import count_of
from .plain import dump, json_value
from .table_file import (
    CELL_MARK,
    JSON_MARK,
    LINE,
    LONGEST_LINE,
    PIECE_ROWS,
    TableFile,
    check_added,
    check_columns,
)

Row = dict[str, Any]
ROWS = PIECE_ROWS // 5  # of a piece: Python objects need more memory than Arrow's arrays
PIECE_SIZE = LONGEST_LINE  # octets of the lines of a piece, and cells in it
INT64 = range(-(2**63), 2**63)
# The type of a column by those of its values that are not null; any other mixture is text.
COLUMN_TYPES: tuple[tuple[set[type], pa.DataType], ...] = (
    (set(), pa.string()),
    ({int}, pa.int64()),
    ({int, float}, pa.float64()),
    ({bool}, pa.bool_()),
)
# NaN, which programs write for a missing value, is null.
DECODER = json.JSONDecoder(parse_constant=lambda name: None)
# Half of a pair, as of a text that was cut within an emoji; UTF-8 does not have it.
SURROGATE = re.compile("[\ud800-\udfff]")
OBJECTS = re.compile(r'\s*(\[\s*)?\{\s*(\}|"(?:[^"\\]|\\.)*"\s*:)')  # how JSON of them begins
SHOWN = 3  # lines in a remark
MEMBER = re.compile(r'[\s,]*("(?:[^"\\]|\\.)*")\s*:\s*')  # up to its value


class JsonLinesFile(TableFile):
    """A file of JSON lines.

    A column of numbers, of booleans or of text has that type; one of objects and arrays has their
    JSON as text; any other mixture is text. A member that is absent is null. Without rows the
    columns are unknown, and any column exists. A line behind the first one that is not an object is
    a row without cells.
    """

    copied_to: ClassVar = "jsonl"

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name
        self.unread = 0  # lines that are not an object
        self.problems: list[str] = []  # of the first of them
        self.cut = 0  # lines in whose text half of a character was replaced
        super().__init__(path, name, self.find_schema())
        self.remarks += self.line_remarks()

    def find_schema(self) -> pa.Schema:
        """The columns of all lines; `InputError` for a file that is not of this kind."""
        kinds: dict[str, set[type]] = defaultdict(set)
        rows = 0
        cells = 0
        for number, row, _ in self.rows():
            rows += 1
            cells += len(row)
            for column, value in row.items():
                kind = type(value)
                if kind is int and value not in INT64:
                    kind = str
                kinds[column].add(kind)
            check_columns(f"{self.name}, line {number}", len(kinds))
        missing = rows * len(kinds) - cells
        check_added(self.name, missing, self.path.stat().st_size)
        if rows and not kinds:
            raise InputError(f"{self.name} has no columns: no line is an object with members")
        if 2 * self.unread > rows:
            raise InputError(f"{self.name}, {self.problems[0]}; most lines are not objects")
        return pa.schema([field_of(column, types) for column, types in kinds.items()])

    def line_remarks(self) -> Iterator[str]:
        """What a user should know about lines that cannot be read as they are."""
        if self.unread:
            shown = "; ".join(self.problems)
            if self.unread > len(self.problems):
                shown += "; ..."
            lines = count_of(self.unread, "line")
            yield f"{lines} without a JSON object, read as a row without cells: {shown}"
        if self.cut:
            yield (
                f"in {count_of(self.cut, 'line')} half of a character is left of one that was cut, "
                "which is read as \N{REPLACEMENT CHARACTER}"
            )

    def check_column(self, column: str) -> None:
        if not self.columns:
            self.schema = pa.schema([(column, pa.string())])
            self.columns = (column,)
        super().check_column(column)

    def rows(self) -> Iterator[tuple[int, Row, bytes]]:
        """The objects of the lines with their numbers and octets.

        `InputError` for a line that is too long, and for a first or a cut last one that is not an
        object: then the file is not of this kind, or truncated.
        """
        self.unread = 0
        self.cut = 0
        self.problems.clear()
        is_first = True
        with self.path.open("rb") as file:
            lines = iter(partial(file.readline, LONGEST_LINE + 1), b"")
            for number, line in enumerate(lines, 1):
                where = f"{self.name}, line {number}"
                if len(line) > LONGEST_LINE:
                    hint = conversion_hint(line) or "; leave out what is not needed, as with jq"
                    raise InputError(f"{where} is longer than {LONGEST_LINE:,} bytes{hint}")
                if line.isspace():
                    continue
                row, problem = read_row(line)
                if row is None:
                    if is_first or not line.endswith(b"\n"):
                        raise InputError(f"{where}: {problem}{conversion_hint(line)}")
                    self.unread += 1
                    if len(self.problems) < SHOWN:
                        self.problems.append(f"line {number}: {problem}")
                    row = {}
                    line = b"{}\n"  # noqa: PLW2901 - to which our members are added
                elif rb"\u" in line:
                    whole = without_surrogates(row)
                    self.cut += whole != row
                    row = whole
                is_first = False
                yield number, row, line

    def read(
        self, only: Collection[str] | None = None, *, with_lines: bool = False
    ) -> Iterator[pa.Table]:
        used = self.positions(only)
        for rows, lines in self.batches():
            cells = {}
            for position in used:
                cells[position] = column_of(self.schema.field(position), rows)
            octets = None
            if with_lines:
                octets = pa.array(lines, pa.large_binary())
            yield self.piece(cells, len(rows), octets)

    def batches(self) -> Iterator[tuple[list[Row], list[bytes]]]:
        """The objects and the lines, as many as a piece has; the last batch may be empty."""
        rows: list[Row] = []
        lines: list[bytes] = []
        size = 0
        for _, row, line in self.rows():
            rows.append(row)
            lines.append(line)
            size += len(line) + len(self.columns)
            if len(rows) == ROWS or size > PIECE_SIZE:
                yield rows, lines
                rows = []
                lines = []
                size = 0
        yield rows, lines


def read_row(line: bytes) -> tuple[Row | None, str]:
    """The object of a line, or None and why it has none."""
    try:
        row = DECODER.decode(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return None, "a byte is not UTF-8"
    except (ValueError, RecursionError) as exc:
        return None, f"not valid JSON: {str(exc)[:200]}"
    if not isinstance(row, dict):
        text = line.decode("utf-8-sig").strip()
        return None, f"not a JSON object, but {text:.40}"
    return row, ""


def without_surrogates(value: Any) -> Any:
    """A value whose texts can be written as UTF-8."""
    if isinstance(value, str):
        return SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {without_surrogates(name): without_surrogates(item) for name, item in value.items()}
    return value


def column_of(field: pa.Field, rows: Sequence[Row]) -> pa.Array:
    cells = [row.get(field.name) for row in rows]
    if pa.types.is_string(field.type):
        for row, cell in enumerate(cells):
            if cell is not None and not isinstance(cell, str):
                cells[row] = dump(cell)
    elif pa.types.is_floating(field.type):
        for row, cell in enumerate(cells):
            if cell is not None:  # Arrow refuses an integer that is not exact as a float
                cells[row] = float(cell)
    return pa.array(cells, field.type)


def conversion_hint(line: bytes) -> str:
    """How to make JSON lines of an object over several lines; empty for any other line."""
    if line.decode("utf-8-sig", "replace").strip() != "{":
        return ""
    return "; each line must be an object: convert the file, as with jq -c ."


def field_of(column: str, kinds: set[type]) -> pa.Field:
    """The field of a column by the types of its values."""
    filled = kinds - {type(None)}
    for types, arrow_type in COLUMN_TYPES:
        if filled <= types:
            return pa.field(column, arrow_type, metadata=CELL_MARK)
    mark = CELL_MARK
    if filled <= {dict, list}:
        mark = JSON_MARK
    return pa.field(column, pa.string(), metadata=mark)


def is_json(path: Path) -> bool:
    """Whether a file begins as objects of JSON do, in lines, in an array, or over several lines."""
    with path.open("rb") as file:
        start = file.read(1 << 12).decode("utf-8-sig", "replace")
    return OBJECTS.match(start) is not None


class JsonLinesWriter:
    """An object for each row, in UTF-8; times are text as ISO 8601, and what is missing is null."""

    remarks: Sequence[str] = ()

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file  # which the caller closes

    def write(self, piece: pa.Table) -> None:
        """Append rows.

        In the lines of another such file our members are added at the end, or take the place of
        earlier ones.
        """
        check_members(piece.column_names)
        line_at = piece.schema.get_field_index(LINE)
        lines = [b"{}\n"] * len(piece)
        if line_at >= 0:
            lines = piece.column(line_at).to_pylist()
        names = []
        columns = []
        may_replace = False
        for position, field in enumerate(piece.schema):
            if line_at >= 0 and field.metadata in (CELL_MARK, JSON_MARK):
                continue  # the line has it
            names.append(field.name)
            columns.append(cells_of(field, piece.column(position)))
            may_replace = may_replace or position < line_at
        labels = {name: f"{dump(name)}: " for name in names}
        for line, *cells in zip(lines, *columns, strict=True):
            members = dict(zip(names, cells, strict=True))
            if may_replace:
                line = replace_members(line, members)  # noqa: PLW2901
            end = line.rindex(b"}")
            start = line[:end]
            added = ", ".join([labels[name] + cell for name, cell in members.items()])
            if members and not start.rstrip().endswith(b"{"):
                added = ", " + added
            self.file.write(start + added.encode() + line[end:])


def replace_members(line: bytes, members: dict[str, str]) -> bytes:
    """The line of an object with other values of some members.

    Those that it does not have stay in `members`.
    """
    text = line.decode()
    parts = []
    done = 0
    place = text.index("{") + 1
    while name := MEMBER.match(text, place):
        _, place = DECODER.raw_decode(text, name.end())
        value = members.pop(json.loads(name[1]), None)
        if value is not None:
            parts.append(text[done : name.end()])
            parts.append(value)
            done = place
    parts.append(text[done:])
    return "".join(parts).encode()


def check_members(columns: Sequence[str]) -> None:
    """Raise `InputError` if a name occurs twice."""
    for name, count in Counter(columns).items():
        if count > 1:
            raise InputError(
                f"{count} columns are named {name!r}, which an object of JSON cannot have; "
                "rename them, or write CSV or Parquet"
            )


def cells_of(field: pa.Field, column: pa.ChunkedArray) -> Iterator[str]:
    """The cells of a column as JSON."""
    if field.metadata == JSON_MARK:
        return ("null" if cell is None else cell for cell in column.to_pylist())
    if pa.types.is_dictionary(field.type):
        column = column.cast(field.type.value_type)
    cells = column.to_pylist()
    if pa.types.is_string(column.type) or pa.types.is_boolean(column.type):
        texts = {cell: dump(cell) for cell in set(cells)}  # few in most of our columns
        return map(texts.__getitem__, cells)
    return map(dump, map(json_value, cells))
