"""JSON lines: one JSON object in each line, with a member for each column."""

from __future__ import annotations

import json
import re
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
# The type of a column by those of its values that are not null.
COLUMN_TYPES = (({int}, pa.int64()), ({int, float}, pa.float64()), ({bool}, pa.bool_()))
# NaN, which programs write for a missing value, is null.
DECODER = json.JSONDecoder(parse_constant=lambda name: None)
# Half of a pair, as of a text that was cut within an emoji; UTF-8 does not have it.
SURROGATE = re.compile("[\ud800-\udfff]")
SHOWN = 3  # lines in a remark
MEMBER = re.compile(r'[\s,]*("(?:[^"\\]|\\.)*")\s*:\s*')  # up to its value


class JsonLinesFile(TableFile):
    """A file of JSON lines. It is read once more at the beginning, to find all columns and their types.

    A column of numbers, of booleans or of text has that type; one of objects and arrays has their JSON as text; any
    other mixture is text. A member that is absent is null. Without rows the columns are unknown, and any column exists.
    A line behind the first one that is not an object is a row without cells.
    """

    copied_to: ClassVar = "jsonl"

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name
        self.unread = 0  # lines that are not an object
        self.problems: list[str] = []  # of the first of them
        self.cut = 0  # lines in whose text half of a character was replaced
        kinds: dict[str, set[type]] = {}
        rows = cells = 0
        for number, row, _ in self.rows():
            rows += 1
            cells += len(row)
            for key, value in row.items():
                kinds.setdefault(key, set()).add(
                    str if type(value) is int and value not in INT64 else type(value)
                )
            check_columns(f"{name}, line {number}", len(kinds))
        check_added(name, rows * len(kinds) - cells, path.stat().st_size)
        if rows and not kinds:
            raise InputError(f"{name} has no columns: no line is an object with members")
        if 2 * self.unread > rows:
            raise InputError(f"{name}, {self.problems[0]}; most lines are not objects")
        super().__init__(
            path,
            name,
            pa.schema([field_of(key, found - {type(None)}) for key, found in kinds.items()]),
        )
        self.remarks += self.line_remarks()

    def line_remarks(self) -> Iterator[str]:
        """What a user should know about lines that cannot be read as they are."""
        if self.unread:
            shown = "; ".join(self.problems) + ("; ..." if self.unread > len(self.problems) else "")
            lines = count_of(self.unread, "line")
            yield f"{lines} without a JSON object, read as a row without cells: {shown}"
        if self.cut:
            yield (
                f"in {count_of(self.cut, 'line')} half of a character is left of one that was cut, which "
                "is read as \N{REPLACEMENT CHARACTER}"
            )

    def check_column(self, column: str) -> None:
        if not self.columns:
            self.schema = pa.schema([(column, pa.string())])
            self.columns = (column,)
        super().check_column(column)

    def rows(self) -> Iterator[tuple[int, Row, bytes]]:
        """The objects of the lines with their numbers and octets.

        `InputError` for a line that is too long, and for a first or a cut last one that is not an object: then the file
        is not of this kind, or truncated.
        """
        self.unread = 0
        self.cut = 0
        self.problems.clear()
        is_first = True
        with self.path.open("rb") as file:
            for number, line in enumerate(iter(partial(file.readline, LONGEST_LINE + 1), b""), 1):
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
        rows: list[Row] = []
        lines: list[bytes] = []
        size = 0
        for _, row, line in self.rows():
            rows.append(row)
            lines.append(line)
            size += len(line) + len(self.columns)
            if len(rows) == ROWS or size > PIECE_SIZE:
                yield self.to_table(rows, used, lines if with_lines else None)
                rows, lines, size = [], [], 0
        yield self.to_table(rows, used, lines if with_lines else None)

    def to_table(
        self, rows: Sequence[Row], used: Sequence[int], lines: Sequence[bytes] | None
    ) -> pa.Table:
        cells = {at: column_of(self.schema.field(at), rows) for at in used}
        return self.piece(
            cells, len(rows), None if lines is None else pa.array(lines, pa.large_binary())
        )


def read_row(line: bytes) -> tuple[Row | None, str]:
    """The object of a line, or None and why it has none."""
    try:
        row = DECODER.decode(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return None, "a byte is not UTF-8"
    except (ValueError, RecursionError) as exc:
        return None, f"not valid JSON: {str(exc)[:200]}"
    if not isinstance(row, dict):
        found = line.decode("utf-8-sig").strip()
        return None, f"not a JSON object, but {found:.40}"
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
        cells = [cell if cell is None or isinstance(cell, str) else dump(cell) for cell in cells]
    elif pa.types.is_floating(field.type):  # Arrow refuses an integer that is not exact as a float
        cells = [cell if cell is None else float(cell) for cell in cells]
    return pa.array(cells, field.type)


def conversion_hint(line: bytes) -> str:
    """How to make JSON lines of an object over several lines; empty for any other line."""
    is_open = line.decode("utf-8-sig", "replace").strip() == "{"
    return "; each line must be an object: convert the file, as with jq -c ." if is_open else ""


def field_of(name: str, found: set[type]) -> pa.Field:
    """The field of a column by the types of its values."""
    kind = next((each for types, each in COLUMN_TYPES if found and found <= types), pa.string())
    return pa.field(
        name, kind, metadata=JSON_MARK if found and found <= {dict, list} else CELL_MARK
    )


def is_json(path: Path) -> bool:
    """Whether a file begins as JSON of objects does, in lines of their own, in an array, or over several lines."""
    with path.open("rb") as file:
        start = file.read(1 << 12).decode("utf-8-sig", "replace")
    return re.match(r'\s*(\[\s*)?\{\s*(\}|"(?:[^"\\]|\\.)*"\s*:)', start) is not None


class JsonLinesWriter:
    """An object for each row, in UTF-8; times are text as ISO 8601, and what is missing is null.

    Lines of another such file are copied: only our members are added at their end, or take the place of earlier ones.
    """

    remarks: Sequence[str] = ()

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file  # which the caller closes

    def write(self, piece: pa.Table) -> None:
        check_members(piece.column_names)
        own = piece.schema.get_field_index(LINE)
        lines = [b"{}\n"] * len(piece) if own < 0 else piece.column(own).to_pylist()
        made = [
            at
            for at, field in enumerate(piece.schema)
            if own < 0 or field.metadata not in (CELL_MARK, JSON_MARK)
        ]
        names = [piece.column_names[at] for at in made]
        labels = {name: f"{dump(name)}: " for name in names}
        for line, *cells in zip(
            lines, *(cells_of(piece.schema.field(at), piece.column(at)) for at in made), strict=True
        ):
            members = dict(zip(names, cells, strict=True))
            kept = replace_members(line, members) if made and made[0] < own else line
            end = kept.rindex(b"}")
            comma = ", " if members and not kept[:end].rstrip().endswith(b"{") else ""
            added = ", ".join([labels[name] + cell for name, cell in members.items()])
            self.file.write(b"".join([kept[:end], (comma + added).encode(), kept[end:]]))


def replace_members(line: bytes, members: dict[str, str]) -> bytes:
    """The line of an object with other values of some members; those that it does not have stay in `members`."""
    text = line.decode()
    parts, done, at = [], 0, text.index("{") + 1
    while name := MEMBER.match(text, at):
        at = DECODER.raw_decode(text, name.end())[1]
        value = members.pop(json.loads(name[1]), None)
        if value is not None:
            parts += [text[done : name.end()], value]
            done = at
    return "".join([*parts, text[done:]]).encode()


def check_members(columns: Sequence[str]) -> None:
    """Raise `InputError` if a name occurs twice."""
    if len(set(columns)) < len(columns):
        name = next(name for name in columns if columns.count(name) > 1)
        raise InputError(
            f"{columns.count(name)} columns are named {name!r}, which an object of JSON cannot have; "
            "rename them, or write CSV or Parquet"
        )


def cells_of(field: pa.Field, column: pa.ChunkedArray) -> Iterator[str]:
    """The cells of a column as JSON."""
    if field.metadata == JSON_MARK:
        return ("null" if cell is None else cell for cell in column.to_pylist())
    if pa.types.is_dictionary(field.type):
        column = column.cast(field.type.value_type)
    cells = column.to_pylist()
    # Few values in most of our columns.
    if pa.types.is_string(column.type) or pa.types.is_boolean(column.type):
        return map({cell: dump(cell) for cell in set(cells)}.__getitem__, cells)
    return (dump(json_value(cell)) for cell in cells)
