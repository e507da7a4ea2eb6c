"""Reading fields of decoded JSON. A `ContractError` names the path of the field that is wrong."""

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
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[: limit + 1])
    return text if len(text) <= limit else text[:limit] + "…"


def require_field(record: object, key: str, kind: type[T], path: str) -> T:
    """Return ``record[key]`` if it is a `kind`, else raise `ContractError` with its path."""
    where = f"{path}.{key}" if path else key
    if not isinstance(record, Mapping):
        raise ContractError(
            f"{path or 'the answer'} is {shorten(record)}, not an object", path=path
        )
    value: Any = record.get(key)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        seen = "absent" if key not in record else shorten(value)
        raise ContractError(
            f"{where} is {seen}, not {TYPE_NAMES.get(kind, kind.__name__)}", path=where
        )
    return value


def optional_field(record: Mapping[str, Any], key: str, kind: type[T], path: str) -> T | None:
    """The same; None for an absent key and for ``null``."""
    return None if record.get(key) is None else require_field(record, key, kind, path)
