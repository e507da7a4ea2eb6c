"""What a user is told about the data beside a result: `warn_user`."""

from __future__ import annotations

import inspect
import warnings

from ..runs.progress import is_notebook

LIBRARIES = frozenset(("mailverdict", "pandas", "polars"))  # between the user's line and a warning


class Note(str):
    """A message about the data in which nothing is wrong with the results: a notebook prints it, not in red."""

    __slots__ = ()


def warn_user(*messages: str | None) -> None:
    """Emit warnings that name the line of the user's code, also if that called an accessor or ``pipe``."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in LIBRARIES:
        level, frame = level + 1, frame.f_back
    for message in filter(None, messages):
        if isinstance(message, Note) and is_notebook():
            print(message)
        else:
            warnings.warn(message, UserWarning, stacklevel=level)
