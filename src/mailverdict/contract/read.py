"""Reading decoded JSON: what is wrong is said with its path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from ..errors import ContractError

__all__ = ["shorten", "take", "take_optional"]

T = TypeVar("T")
LONGEST = 160  # characters of foreign text in a message


def shorten(value: object, limit: int = LONGEST) -> str:
    """Show foreign text on one line of bounded length."""
    text = value if isinstance(value, str) else repr(value)
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[: limit + 1])
    return text if len(text) <= limit else text[:limit] + "…"


def take(record: object, key: str, kind: type[T], path: str) -> T:
    """Give ``record[key]`` if it is a `kind`, else raise `ContractError` with its path."""
    where = f"{path}.{key}" if path else key
    if not isinstance(record, Mapping):
        raise ContractError(f"{path or 'the answer'} is {shorten(record)}, not an object", path=path)
    value: Any = record.get(key)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        seen = "absent" if key not in record else shorten(value)
        raise ContractError(f"{where} is {seen}, not {NAMES.get(kind, kind.__name__)}", path=where)
    return value


def take_optional(record: Mapping[str, Any], key: str, kind: type[T], path: str) -> T | None:
    """The same, where an absent key and ``null`` are both None."""
    return None if record.get(key) is None else take(record, key, kind, path)


NAMES: dict[type, str] = {str: "text", int: "a whole number", bool: "true or false", list: "a list", dict: "an object"}
