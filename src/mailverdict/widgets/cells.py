"""Cells of any kind as text."""

from __future__ import annotations

from typing import Any

import pandas as pd

__all__ = ["encodable", "is_missing"]


def is_missing(cell: Any) -> bool:
    """Whether a cell is empty; a list in a cell is not, whatever is in it."""
    return bool(pd.api.types.is_scalar(cell) and pd.isna(cell))


def encodable(text: str) -> str:
    """Text without halves of characters, which no file and no wire takes."""
    return text.encode("utf-8", "backslashreplace").decode()
