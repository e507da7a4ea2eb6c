"""JSON that is one value, read whole: an array of objects, or an object with such an array.

A temporary copy has a line of JSON for each row. Nested members are columns with a dot in their
name:

    {"results": [{"id": 1, "properties": {"email": "ada@firm.example"}}], "paging": {}}
    -> {"id": 1, "properties.email": "ada@firm.example"}

A list of objects within a row is columns with a number in their name if it has addresses:
``emails.1.value``.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..model.words import count_of, first_of
from .json_lines import DECODER, JsonLinesFile, Row, conversion_hint
from .plain import dump
from .table_file import (
    LONGEST_LINE,
    MAX_COLUMNS,
    TableFile,
    check_columns,
    open_temporary,
    temporary_copy,
)

MOST_OCTETS = 256 << 20  # of a file that is read whole; its objects take several times that
MOST_LEVELS = 10  # of nested members that are columns; what is below them is a cell with JSON
LONGEST_NAME = 1_000  # characters of the name of a column
MOST_NAMED, LONGEST_SHOWN = 5, 60  # members in a message, and characters of one
LINES_ENDINGS = (".jsonl", ".ndjson")
ADVICE = "give a list of objects, or an object in each line, as jq -c writes them"
SPLIT = "split it, or write JSON with an object in each line, as jq -c does"
START = re.compile(r"[^\s,:]")  # of a name or a value in an object
HAS_ADDRESS = re.compile(r"\w@[\w\-]+\.\w")


def open_json(path: Path, name: str) -> TableFile:
    """Open JSON lines, an array of objects, or one object."""
    with path.open("rb") as file:
        start = file.read(1 << 12).removeprefix(b"\xef\xbb\xbf")
    try:
        if start.lstrip().startswith(b"["):
            return open_array(path, name)
        return open_object(path, name)
    except RecursionError:
        raise InputError(f"{name}: its members are nested too deeply") from None


def open_array(path: Path, name: str) -> TableFile:
    try:
        rows = json.loads(read_whole(path, name))
    except (ValueError, RecursionError) as exc:
        raise InputError(f"{name}: not valid JSON: {str(exc)[:200]}") from None
    others = sum(not isinstance(row, dict) for row in rows)
    if 2 * others > len(rows):
        raise InputError(
            f"{name}: the array has items that are not objects; give addresses alone as text, one "
            "a line"
        )
    objects = [row if isinstance(row, dict) else {} for row in rows]
    remark = "an array of objects: what is written as JSON has a line for each"
    opened = open_rows(flat_rows(objects, name), name, remark)
    if others:
        items = count_of(others, "item of the array", "items of the array")
        opened.remarks.append(f"{items} without an object, read as a row without cells")
    return opened


def open_object(path: Path, name: str) -> TableFile:
    """Open JSON lines, or one object, on a line of its own or on several."""
    first, is_only = first_line_of(path)
    is_line = len(first) <= LONGEST_LINE and is_object(first)
    has_lines_name = any(ending in LINES_ENDINGS for ending in Path(name.lower()).suffixes)
    if is_line and (has_lines_name or not is_only):
        return JsonLinesFile(path, name)
    if not first.lstrip(b"\xef\xbb\xbf \t").startswith(b"{"):
        return JsonLinesFile(path, name)
    check_columns(name, members_at_start(path), ADVICE)
    try:
        document = json.loads(read_whole(path, name))
    except (ValueError, RecursionError) as exc:
        if not conversion_hint(first) or "Extra data" in str(exc):
            return JsonLinesFile(path, name)  # whose error names the line
        raise InputError(f"{name}: not valid JSON: {str(exc)[:200]}") from None
    return open_document(document, path, name, is_line=is_line)


def members_at_start(path: Path) -> int:
    """How many members an object has in the first octets of its file, counted up to the limit.

    An object of millions of members would take ten times the memory of its octets, to be refused.
    """
    with path.open("rb") as file:
        text = file.read(LONGEST_LINE).decode("utf-8-sig", "replace")
    texts = 0  # of JSON: the name and the value of each member
    place = text.index("{") + 1
    with suppress(ValueError, RecursionError):  # at the end, at a value that is cut, or no JSON
        while texts < 2 * (MAX_COLUMNS + 1):
            start = START.search(text, place)
            if start is None:
                break
            _, place = DECODER.raw_decode(text, start.start())
            texts += 1
    return texts // 2


def first_line_of(path: Path) -> tuple[bytes, bool]:
    """The first line that is not blank, and whether it is the only one."""
    first = b""
    with path.open("rb") as file:
        while line := file.readline(LONGEST_LINE + 1):
            if line.isspace():
                continue
            if first:
                return first, False
            first = line
    return first, True


def is_object(line: bytes) -> bool:
    try:
        return isinstance(DECODER.decode(line.decode("utf-8-sig")), dict)
    except (ValueError, RecursionError):
        return False


def open_document(document: Row, path: Path, name: str, *, is_line: bool) -> TableFile:
    """Open the list of objects that is the table; an object without one may be a row itself."""
    lists = dict(find_lists(document))
    likely = {where: rows for where, rows in lists.items() if any(map(has_address, rows))}
    if not likely and has_address(document):
        check_one_row(document, name)
        if is_line and not any(isinstance(member, dict) for member in document.values()):
            return JsonLinesFile(path, name)
        return open_rows(flat_rows([document], name), name, "one object: a table of one row")
    likely = likely or lists
    if len(likely) > 1:
        raise InputError(several_lists(name, likely))
    if not likely:
        if is_line:
            return JsonLinesFile(path, name)
        raise InputError(
            f"{name}: it is one object, without a list of objects and without an address; {ADVICE}"
        )
    ((where, rows),) = likely.items()
    others = [repr(other[:LONGEST_SHOWN]) for other in lists if other != where]
    beside = ""
    if others:
        beside = f", and not {first_of(others, MOST_NAMED)}"
    remark = (
        f"the table is the list {where[:LONGEST_SHOWN]!r} of the object{beside}: what is written "
        "as JSON has a line for each item"
    )
    return open_rows(flat_rows(rows, name), name, remark)


def check_one_row(document: Row, name: str) -> None:
    """Raise `InputError` for an object that may hold several people: they would be one row."""
    count = 0
    holders = []
    for key, member in document.items():
        if isinstance(member, dict | list):
            addresses = len(HAS_ADDRESS.findall(dump(member)))
            count += addresses
            if addresses:
                holders.append(repr(key[:LONGEST_SHOWN]))
    if count > 1:
        raise InputError(
            f"{name}: it is one object with {count:,} addresses nested in "
            f"{first_of(holders, MOST_NAMED)}, and without a list of objects; {ADVICE}"
        )


def several_lists(name: str, lists: dict[str, list[Row]]) -> str:
    described = []
    for where, rows in lists.items():
        objects = count_of(len(rows), "object")
        described.append(f"{where[:LONGEST_SHOWN]!r} ({objects})")
    first = next(iter(lists))
    return (
        f"{name}: its members are nested, and several are lists that could be the table: "
        f"{first_of(described, MOST_NAMED)}; give one of them alone, as with jq -c "
        f"'.{first[:LONGEST_SHOWN]}[]'"
    )


def find_lists(document: Row) -> Iterator[tuple[str, list[Row]]]:
    """The lists of objects among the members of an object, and of those; with the path of each."""
    pending: deque[tuple[tuple[str, ...], Row]] = deque([((), document)])
    while pending:
        path, members = pending.popleft()
        for key, member in members.items():
            place = (*path, key)
            if isinstance(member, dict) and len(path) < MOST_LEVELS:
                pending.append((place, member))
            elif is_list_of_objects(member):
                yield ".".join(place)[:LONGEST_NAME], member


def is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and value != [] and all(isinstance(item, dict) for item in value)


def has_address(value: Any) -> bool:
    return HAS_ADDRESS.search(dump(value)) is not None


def flat_rows(rows: Iterable[Row], name: str) -> Iterator[Row]:
    """Rows with a column for each nested member."""
    for row in rows:
        flat: Row = {}
        add_members(flat, row, (), name)
        yield flat


def add_members(flat: Row, members: Row, path: Sequence[str], name: str) -> None:
    for key, member in members.items():
        place = (*path, key)
        if isinstance(member, dict) and len(place) < MOST_LEVELS:
            add_members(flat, member, place, name)
            continue
        if is_list_of_objects(member) and len(place) < MOST_LEVELS and has_address(member):
            items = {str(number): item for number, item in enumerate(member, 1)}
            add_members(flat, items, place, name)
            continue
        column = ".".join(place)
        if column in flat:
            raise InputError(f"{name}: a nested member and another one are both named {column!r}")
        if len(column) > LONGEST_NAME:
            raise InputError(
                f"{name}: the name of a nested member, {column[:40]!r} ..., is longer than "
                f"{LONGEST_NAME:,} characters"
            )
        flat[column] = member


def read_whole(path: Path, name: str, advice: str = SPLIT) -> bytes:
    if path.stat().st_size > MOST_OCTETS:
        raise InputError(
            f"{name} has more than {MOST_OCTETS >> 20} MiB, which are read at once: {advice}"
        )
    return path.read_bytes()


def open_rows(rows: Iterable[Row], name: str, remark: str) -> TableFile:
    with temporary_copy() as copy:
        for row in rows:
            copy.write(dump(row).encode("utf-8", "replace") + b"\n")
    opened: TableFile = open_temporary(Path(copy.name), lambda path: JsonLinesFile(path, name))
    opened.remarks.append(remark)
    return opened
