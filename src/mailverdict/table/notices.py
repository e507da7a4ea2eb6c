"""What a user is told beside a result.

`warn_user` is about the data, `warn_deprecated` about names that will go.
"""

from __future__ import annotations

import inspect
import warnings

from ..runs.progress import is_notebook

LIBRARIES = frozenset(("mailverdict", "pandas", "polars"))  # between the user's line and a warning


class Note(str):
    """A message about the data in which nothing is wrong with the results.

    A notebook prints it, not in red.
    """

    __slots__ = ()


def warn_user(*messages: str | None) -> None:
    """Emit warnings that name the line of the user's code.

    So they do if the user called an accessor or ``pipe``.
    """
    level = user_level()
    for message in filter(None, messages):
        if isinstance(message, Note) and is_notebook():
            print(message)
        else:
            warnings.warn(message, UserWarning, stacklevel=level)


def warn_deprecated(name: str, instead: str) -> None:
    """Warn of a public name that will go.

    A `FutureWarning` is shown by Python to those who call it.
    """
    message = f"mailverdict.{name} is deprecated and will be removed: use {instead}"
    warnings.warn(message, FutureWarning, stacklevel=user_level())


def user_level() -> int:
    """The `stacklevel` with which the caller's warning names the line of the user's code."""
    level = 0
    frame = inspect.currentframe()
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.partition(".")[0] not in LIBRARIES:
            break
        level += 1
        frame = frame.f_back
    return level
