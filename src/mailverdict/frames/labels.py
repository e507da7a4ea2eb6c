"""Where the result columns of a verified frame are."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import pandas as pd

from ..errors import ColumnError, SettingsError
from .kinds import check_column, label_of

__all__ = ["result_labels"]


def result_labels(
    out: pd.DataFrame, column: Hashable, prefix: str | None, names: Sequence[str], *, must_exist: bool = True
) -> dict[str, Any]:
    """Labels of result columns by name; a `ColumnError` says which one is not there."""
    if not isinstance(out, pd.DataFrame):
        raise SettingsError(f"data is of type {type(out).__name__}; give the pandas DataFrame that verify gave")
    check_column(column, list(out.columns))
    labels = {name: label_of(column, prefix, name) for name in names}
    absent = [label for label in labels.values() if label not in out.columns]
    if must_exist and absent:
        raise ColumnError(f"no column {absent[0]!r}: verify {column!r} first, or give the prefix= that was used")
    return labels
