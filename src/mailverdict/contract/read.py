"""Reading decoded JSON: what is wrong is said with its path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from ..errors import ContractError
from ..model.verification import Fault

__all__ = ["parse_checks", "parse_errors", "shorten", "take", "take_optional"]

T = TypeVar("T")
LONGEST = 160  # characters of foreign text in a message
LONGEST_WORD = 80  # characters of a reason, a code or the name of a check
LONGEST_SENTENCE = 1_000  # characters of a message that is data


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


def parse_checks(checks: object) -> dict[str, bool]:
    """Booleans by name; anything else is left out, since an absent check was not made."""
    if not isinstance(checks, Mapping):
        return {}
    return {shorten(str(key), LONGEST_WORD): value for key, value in checks.items() if isinstance(value, bool)}


def parse_errors(errors: object) -> tuple[Fault, ...] | None:
    """The list of `{code, message}`; texts are kept even where an entry has another shape."""
    if not isinstance(errors, list):
        return None
    return tuple(parse_fault(each) for each in errors)


def parse_fault(entry: object) -> Fault:
    """One entry of `errors`; only its text where it is no object."""
    code, message = (entry.get("code"), entry.get("message")) if isinstance(entry, Mapping) else (None, entry)
    return Fault(shorten(str(code or ""), LONGEST_WORD), shorten(str(message or ""), LONGEST_SENTENCE))
