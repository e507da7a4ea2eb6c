"""Find out from the first rows where a table begins, and whether that row is a header.

Contacts of 2026                a title
name    email                   the header: it names columns, and there are addresses below it
Ada     ada@example.org
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from ..repair.words import says_no_value
from ..table.choose_column import ADDRESS as ADDRESS_IN_TEXT
from ..table.column_names import says_email

HEAD_ROWS = 50  # rows looked at
TITLE_ROWS = 20  # rows before a header, at most
ADDRESS = re.compile(ADDRESS_IN_TEXT)
PLAIN_ADDRESS = re.compile(
    r'\s*[^\s@,;|"<>]+@[^\s@,;|"<>]+\.[^\s@,;|"<>]+\s*|[^<,;|\t]*<[^\s<>@]+@[^\s<>@]+>\s*'
)
NUMBER = re.compile(r"[+\-]?\d[\d .,:/\-]*")


def column_names(cells: Sequence[str], *, has_header: bool) -> list[str]:
    """The names in a header, without blanks around them.

    A column without a name is called by its position.

    >>> column_names(["name", "email ", ""], has_header=True)
    ['name', 'email', 'column_3']
    """
    names = []
    for position, cell in enumerate(cells):
        name = ""
        if has_header:
            name = cell.strip()
        names.append(name or numbered(position))
    return names


def numbered(at: int) -> str:
    """The name of a column by its position, which counts from 0 here, and from 1 in the name."""
    return f"column_{at + 1}"


def find_start(rows: Sequence[Sequence[str]]) -> tuple[int, bool]:
    """The position of the table's first row, and whether that is a header.

    Rows before it are a title.

    >>> find_start([["Contacts of 2026"], ["name", "email"], ["Ada", "ada@example.org"]])
    (1, True)
    >>> find_start([["Ada", "ada@example.org"], ["Bob", "bob@example.org"]])
    (0, False)
    """
    if not rows:
        return 0, True
    width = usual_width(rows)
    named = find_named_header(rows, width)
    if named is not None:
        return named, True
    first = rows[0]
    if is_data(first, rows[1:]):
        return 0, False
    if width < 2 or is_half_filled(first, width) or has_email_name(first):
        return 0, True
    for number, row in enumerate(rows[1 : TITLE_ROWS + 1], 1):
        if has_address(row):
            break
        is_named = is_half_filled(row, width) or has_email_name(row)
        is_above_addresses = any(map(has_address, rows[number + 1 :]))
        if len(row) == width and is_named and is_above_addresses:
            return number, True
    return 0, True


def usual_width(rows: Sequence[Sequence[str]]) -> int:
    """The number of cells that most rows have; of several such numbers the greatest."""
    counts = Counter(map(len, rows))
    most = max(counts.values())
    return max(width for width, count in counts.items() if count == most)


def find_named_header(rows: Sequence[Sequence[str]], width: int) -> int | None:
    """The header of a table whose title has an address, as "Contact: office@example.org".

    That is in a row of its own. The header names a column of addresses, and there are addresses
    below it.
    """
    for number, row in enumerate(rows[: TITLE_ROWS + 1]):
        columns = [column for column, cell in enumerate(row) if says_email(cell)]
        is_whole = len(row) == width > 2 and is_half_filled(row, width)
        if columns and is_whole and not has_address(row):
            is_title = any(map(has_address, rows[:number]))
            if is_title and has_address_below(rows[number + 1 :], columns):
                return number
            return None
        if count_filled(row) > 1 or any(map(is_plain_address, row)):
            return None
    return None


def has_address_below(rows: Sequence[Sequence[str]], columns: Sequence[int]) -> bool:
    """Whether one of some columns has an address."""
    for row in rows:
        for column in columns:
            if column < len(row) and ADDRESS.search(row[column]):
                return True
    return False


def is_data(row: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    """Whether the first row is not a header.

    It has an address, or a gap where the other rows have one.
    """
    if has_address(row):
        return True
    has_number = any(NUMBER.fullmatch(cell) for cell in row)
    gaps = []
    for column, cell in enumerate(row):
        if says_no_value(cell) and (has_number or cell.strip()):
            gaps.append(column)
    for other in others:
        for column in gaps:
            if column < len(other) and is_plain_address(other[column]):
                return True
    return False


def is_half_filled(row: Sequence[str], width: int) -> bool:
    return 2 * count_filled(row) > width


def count_filled(row: Sequence[str]) -> int:
    return sum(cell.strip() != "" for cell in row)


def has_email_name(row: Sequence[str]) -> bool:
    return any(map(says_email, row))


def has_address(row: Sequence[str]) -> bool:
    return any(map(ADDRESS.search, row))


def is_plain_address(cell: str) -> bool:
    """Whether a cell is one address, without a delimiter in it."""
    return PLAIN_ADDRESS.fullmatch(cell) is not None
