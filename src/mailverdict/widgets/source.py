"""Where the rows come from: a frame, an uploaded file, or a file by its path."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd
import pyarrow as pa

from ..errors import ColumnError, InputError, SettingsError
from ..frames.files.readers import KINDS, ReadOptions, guess_column, open_kind, open_table
from ..frames.text_column import read_values

__all__ = ["Source", "read_frame", "read_path", "read_upload"]

SAMPLE_ROWS = 2_000
EXAMPLES = 3  # cells shown beside a column
LONGEST_LABEL = 60
FROM_MEMORY = "data frame"
# Whole numbers and truth values with gaps stay what they are, so that a file goes out as it came in.
TYPES = {
    pa.int64(): pd.Int64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
    pa.string(): pd.StringDtype("pyarrow"),
    pa.large_string(): pd.StringDtype("pyarrow"),
}


@dataclass(frozen=True)
class Source:
    """A table that was taken in.

    Attributes
    ----------
    name : str
        How it is called: a file's name, or what it is.
    frame : DataFrame
        Its rows.
    """

    name: str
    frame: pd.DataFrame

    @cached_property
    def labels(self) -> list[str]:
        """What the columns are called in a list to choose from: readable, each once."""
        labels: list[str] = []
        for name in map(label_of, self.frame.columns):
            earlier = labels.count(name)
            labels.append(name if not earlier else f"{name} ({earlier + 1})")
        return labels

    def guess(self) -> int | None:
        """Position of the column that looks like e-mail addresses; None where none does."""
        try:
            found: int = guess_column({at: self.head(at) for at in range(len(self.labels))})
        except ColumnError:
            return None
        return found

    def head(self, at: int) -> pd.Series[Any]:
        """The first cells of a column, by its position."""
        return self.frame.iloc[:SAMPLE_ROWS, at].reset_index(drop=True)

    def examples(self, at: int) -> list[str]:
        """A few cells of a column."""
        return list(read_values(self.head(at)).texts[:EXAMPLES].to_pylist())

    def stem(self) -> str:
        """What a file made from this is called, without its ending: letters a file system takes."""
        stem = PurePosixPath(self.name).stem if self.name != FROM_MEMORY else ""
        kept = "".join(c if c.isalnum() or c in "-_. " else "_" for c in stem)
        return kept.strip(" ._")[:LONGEST_LABEL] or "emails"


def label_of(name: Any) -> str:
    """A column's name as text of one bounded line; of labels on several levels all of them."""
    whole = " / ".join(map(str, name)) if isinstance(name, tuple) else str(name)
    return readable(whole) or "(no name)"


def readable(text: str) -> str:
    """One line of bounded length."""
    plain = "".join(c if c.isprintable() else " " for c in text).strip()
    return plain if len(plain) <= LONGEST_LABEL else plain[: LONGEST_LABEL - 1] + "…"


def read_frame(data: Any) -> Source:
    """Take in a frame, whoever's it is, or a Series.

    Raises
    ------
    SettingsError
        If it is neither.
    """
    if isinstance(data, pd.Series):
        data = data.to_frame("email" if data.name is None else data.name)
    elif not isinstance(data, pd.DataFrame) and hasattr(data, "to_pandas"):
        data = data.to_pandas()
    if not isinstance(data, pd.DataFrame):
        raise SettingsError(f"df={type(data).__name__}: give a DataFrame, a Series, or the path of a table file")
    return Source(FROM_MEMORY, data)


def read_path(path: str | Path, encoding: str | None = None) -> Source:
    """Read a table file.

    Raises
    ------
    InputError
        If it is not there, no table, or empty.
    """
    try:
        with open_table(Path(path).expanduser(), encoding=encoding) as table:
            return from_pieces(readable(Path(path).name), list(table.pieces()))
    except (OSError, ValueError, RuntimeError) as exc:
        if isinstance(exc, InputError):
            raise
        raise InputError(f"{readable(str(path))}: {exc}") from exc


def read_upload(upload: Mapping[str, Any], encoding: str | None = None) -> Source:
    """Read what a browser sent; its name is not trusted.

    Raises
    ------
    InputError
        If it is no table, or empty.
    """
    name = readable(str(upload["name"]).replace("\\", "/").rpartition("/")[2]) or "the file"
    suffix = PurePosixPath(name).suffix.lower()
    if suffix not in KINDS:
        raise InputError(f"{name}: cannot tell what kind of table this is; known endings: {', '.join(KINDS)}")
    with tempfile.TemporaryDirectory(prefix="mailverdict-") as folder:
        copy = Path(folder) / f"upload{suffix}"
        copy.write_bytes(upload["content"])
        with open_kind(copy, KINDS[suffix], ReadOptions(encoding=encoding), name) as table:
            return from_pieces(name, list(table.pieces()))


def from_pieces(name: str, pieces: Sequence[pa.Table]) -> Source:
    """Put the pieces of a file together; one without rows is as good as empty."""
    whole = pa.concat_tables(pieces)
    if not len(whole):
        raise InputError(f"{name} has a header line but no rows")
    frame: pd.DataFrame = whole.to_pandas(types_mapper=TYPES.get)
    return Source(name, frame)
