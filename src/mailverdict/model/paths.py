"""Paths of files that users give."""

from __future__ import annotations

import os
from pathlib import Path


def user_path(path: str | os.PathLike[str]) -> Path:
    """The path, where ``~`` at its beginning is the home directory, as in pandas.

    >>> user_path("data/contacts.csv").as_posix(), user_path("~").is_absolute()
    ('data/contacts.csv', True)
    """
    # Path.expanduser raises an error for an unknown user.
    return Path(os.path.expanduser(path))  # noqa: PTH111
