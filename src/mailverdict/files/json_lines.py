"""JSON lines: one JSON object in each line, with a member for each column."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..errors import InputError
from .plain import dump, json_value
from .table_file import LONGEST_LINE, PIECE_ROWS, FileFormat, TableFile, check_added, check_columns

ROWS = PIECE_ROWS // 5  # of a piece: Python objects need more memory than Arrow's arrays
PIECE_SIZE = LONGEST_LINE  # octets of the lines of a piece, and cells in it
JSON_MARK = {b"mailverdict": b"json"}  # metadata of a column whose text is JSON
INT64, EXACT = range(-(2**63), 2**63), range(-(2**53), 2**53)  # EXACT: integers that a float represents
# The type of a column by the kinds of its values that are not null.
COLUMN_TYPES = (
    ({"integer", "long"}, pa.int64()),
    ({"integer", "float"}, pa.float64()),
    ({"boolean"}, pa.bool_()),
)


class JsonLinesFile(TableFile):
    """A file of JSON lines. It is read once more at the beginning, to find all columns and their types.

    A column of numbers, of booleans or of text has that type; one of objects and arrays has their JSON as text; any
    other mixture is text. A member that is absent is null. Without rows the columns are unknown, and any column exists.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        kinds: dict[str, set[str]] = {}
        rows = cells = 0
        for number, row, _ in self.rows():
            rows, cells = rows + 1, cells + len(row)
            for key, value in row.items():
                kinds.setdefault(key, set()).add(kind_of(value))
            check_columns(f"{name}, line {number}", len(kinds))
        check_added(name, rows * len(kinds) - cells, path.stat().st_size)
        self.has_rows = rows > 0
        if self.has_rows and not kinds:
            raise InputError(f"{name} has no columns: no line is an object with members")
        self.schema = pa.schema([field_of(key, found - {"null"}) for key, found in kinds.items()])
        super().__init__(path, name, tuple(kinds), FileFormat())

    def check_column(self, column: str) -> None:
        if not self.has_rows:
            self.schema = pa.schema([(column, pa.string())])
            self.columns = (column,)
        super().check_column(column)

    def rows(self) -> Iterator[tuple[int, dict[str, Any], int]]:
        """The objects of the lines with their numbers and octets; `InputError` for a line that is not one."""
        with self.path.open("rb") as file:
            for number, line in enumerate(iter(partial(file.readline, LONGEST_LINE + 1), b""), 1):
                if len(line) > LONGEST_LINE:
                    hint = conversion_hint(line) or "; leave out what is not needed, as with jq"
                    raise InputError(f"{self.name}, line {number} is longer than {LONGEST_LINE:,} bytes{hint}")
                if line.isspace():
                    continue
                try:
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                    row = DECODER.decode(text)
                except (ValueError, RecursionError) as exc:
                    raise InputError(f"{self.name}, line {number}: {describe_fault(exc, line)}") from None
                if not isinstance(row, dict):
                    found = f"not a JSON object, but {text.strip():.40}"
                    raise InputError(f"{self.name}, line {number}: {found}{conversion_hint(line)}")
                yield number, row, len(line)

    def read(self, only: Collection[str] | None = None, *, with_lines: bool = False) -> Iterator[pa.Table]:
        used = [only is None or field.name in only for field in self.schema]
        most = max(1, min(ROWS, PIECE_SIZE // max(1, len(used))))
        rows: list[dict[str, Any]] = []
        size = 0
        for _, row, octets in self.rows():
            rows.append(row)
            size += octets
            if len(rows) == most or size > PIECE_SIZE:
                yield self.to_table(rows, used)
                rows, size = [], 0
        yield self.to_table(rows, used)

    def to_table(self, rows: Sequence[dict[str, Any]], used: Sequence[bool]) -> pa.Table:
        arrays, fields = [], []
        for field, is_used in zip(self.schema, used, strict=True):
            cells = [row.get(field.name) for row in rows] if is_used else [None] * len(rows)
            if pa.types.is_string(field.type):
                cells = [cell if cell is None or isinstance(cell, str) else dump(cell) for cell in cells]
            arrays.append(pa.array(cells, field.type if is_used else pa.null()))
            fields.append(field if is_used else field.with_type(pa.null()))
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))

    def empty_piece(self, only: Collection[str] | None = None, *, with_lines: bool = False) -> pa.Table:
        return self.schema.empty_table()


def unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; a name that occurs twice would lose a value in silence."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name {next(name for name in names if names.count(name) > 1)!r:.80} occurs twice")
    return found


def parse_float(text: str) -> float | str:
    """The number; one that is too large for a float stays text, as a large integer does."""
    number = float(text)
    return number if math.isfinite(number) else text


def parse_constant(name: str) -> str | None:
    """NaN, which programs write for a missing value, is null; Infinity stays text. JSON has neither."""
    return None if name == "NaN" else name


DECODER = json.JSONDecoder(object_pairs_hook=unique_members, parse_float=parse_float, parse_constant=parse_constant)


def describe_fault(exc: Exception, line: bytes) -> str:
    if isinstance(exc, UnicodeDecodeError):
        return "a byte is not UTF-8"
    return f"not valid JSON: {exc}{conversion_hint(line)}" if isinstance(exc, json.JSONDecodeError) else str(exc)[:200]


def conversion_hint(line: bytes) -> str:
    """How to make JSON lines of an array, or of an object over several lines; empty for any other line."""
    start = line.decode("utf-8-sig", "replace").strip()[:2]
    command = "jq -c '.[]'" if start.startswith("[") else "jq -c ." if start == "{" else None
    return "" if command is None else f"; each line must be an object: convert the file, as with {command}"


def kind_of(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return "integer" if value in EXACT else "long" if value in INT64 else "text"
    return {type(None): "null", bool: "boolean", float: "float", str: "text"}.get(type(value), "nested")


def field_of(name: str, kinds: set[str]) -> pa.Field:
    """The field of a column by the kinds of its values."""
    for found, kind in COLUMN_TYPES:
        if kinds and kinds <= found:
            return pa.field(name, kind)
    return pa.field(name, pa.string(), metadata=JSON_MARK if kinds == {"nested"} else None)


def is_json(path: Path) -> bool:
    """Whether a file begins as JSON of objects does, in lines of their own, in an array, or over several lines."""
    with path.open("rb") as file:
        start = file.read(1 << 12).decode("utf-8-sig", "replace")
    return re.match(r'\s*(\[\s*)?\{\s*(\}|"(?:[^"\\]|\\.)*"\s*:)', start) is not None


class JsonLinesWriter:
    """An object for each row, in UTF-8; times are text as ISO 8601, and what is missing is null."""

    remarks: Sequence[str] = ()

    def __init__(self, path: Path) -> None:
        self.file = path.open("w", encoding="utf-8", newline="\n")

    def write(self, piece: pa.Table) -> None:
        check_members(piece.column_names)
        names = [dump(name) for name in piece.column_names]
        columns = [cells_of(field, column) for field, column in zip(piece.schema, piece.columns, strict=True)]
        for row in zip(*columns, strict=True):
            cells = ", ".join(f"{name}: {cell}" for name, cell in zip(names, row, strict=True))
            self.file.write(f"{{{cells}}}\n")

    def close(self) -> None:
        self.file.close()


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
    if pa.types.is_string(column.type) or pa.types.is_boolean(column.type) or pa.types.is_integer(column.type):
        return map(dump, column.to_pylist())
    return (dump(json_value(cell)) for cell in column.to_pylist())
