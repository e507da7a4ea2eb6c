"""Reading fields of decoded JSON. A `ContractError` names the path of the field that is wrong.

{"email": "ada@firm.example", "role": 1}, read as an item of a list
"email" as text               ada@firm.example
"free" as true or false       None, if it is optional
"role" as true or false       data[0].role is 1, not true or false
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from ..errors import ContractError

T = TypeVar("T")
LONGEST = 160  # characters of foreign text in a message
TYPE_NAMES: dict[type, str] = {
    str: "text",
    int: "a whole number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}


def shorten(value: object, limit: int = LONGEST) -> str:
    """Foreign text on one line of bounded length."""
    text = value if isinstance(value, str) else repr(value)
    characters = []
    for character in text[:limit]:
        characters.append(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}")
    if len(text) > limit:
        characters.append("…")
    return "".join(characters)


def require_field(record: object, key: str, kind: type[T], path: str) -> T:
    """Return ``record[key]`` if it is a `kind`, else raise `ContractError` with its path."""
    if not isinstance(record, Mapping):
        place = path or "the answer"
        raise ContractError(f"{place} is {shorten(record)}, not an object", path=path)
    value: Any = record.get(key)
    is_truth = kind is int and isinstance(value, bool)
    if isinstance(value, kind) and not is_truth:
        return value
    where = f"{path}.{key}" if path else key
    seen = shorten(value) if key in record else "absent"
    wanted = TYPE_NAMES.get(kind, kind.__name__)
    raise ContractError(f"{where} is {seen}, not {wanted}", path=where)


def optional_field(record: Mapping[str, Any], key: str, kind: type[T], path: str) -> T | None:
    """The same; None for an absent key and for ``null``."""
    if record.get(key) is None:
        return None
    return require_field(record, key, kind, path)
