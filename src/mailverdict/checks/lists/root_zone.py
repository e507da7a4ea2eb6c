"""Which top-level domains there are."""

from __future__ import annotations

from functools import cache

from .files import find_list, read_entries


@cache
def top_levels() -> frozenset[str]:
    """The names of the root zone, in lower-case A-labels."""
    return frozenset(read_entries(find_list("root_zone")))


def is_top_level(name: str) -> bool:
    """Whether the root zone has a name, in any case; an A-label or ASCII.

    >>> is_top_level("Com"), is_top_level("come")
    (True, False)
    """
    return name.lower() in top_levels()
