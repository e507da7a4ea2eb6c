"""A table file that can be read piece by piece, so that one larger than memory passes through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from ...errors import ColumnError, InputError
from ..columns import check_column

__all__ = ["PIECE_ROWS", "TableFile", "first_line"]

PIECE_ROWS = 250_000  # rows handed on at once: bounds memory


class TableFile:
    """A table file whose header has been read.

    Parameters
    ----------
    path : Path
        Where it lies; for standard input a temporary copy.
    columns : sequence of str
        As in the header, duplicates and all.
    shown_as : str
        How messages name it.

    Attributes
    ----------
    delimiter : str
        Of a CSV; a comma for other kinds.
    has_mark : bool
        Whether it began with a byte order mark, by which spreadsheets know Unicode.
    is_temporary : bool
        Whether the file goes when this is closed.
    """

    delimiter = ","
    has_mark = False

    def __init__(self, path: Path, columns: Sequence[str], shown_as: str) -> None:
        self.path, self.columns, self.shown_as = path, tuple(columns), shown_as
        self.is_temporary = False

    def __enter__(self) -> TableFile:
        """Nothing is held open between reads."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Remove what was made for this reading alone."""
        if self.is_temporary:
            self.path.unlink(missing_ok=True)

    def check_column(self, column: str) -> None:
        """Raise `ColumnError` unless the column is there exactly once."""
        try:
            check_column(column, self.columns)
        except ColumnError as exc:
            raise ColumnError(f"{self.shown_as}: {exc}") from None

    def pieces(self) -> Iterator[pa.Table]:
        """The rows, a piece at a time and at least one; an `InputError` where the file breaks off or is malformed."""
        any_rows = False
        try:
            for piece in self.read():
                if len(piece):
                    any_rows = True
                    yield piece
        except (pa.ArrowException, OSError, UnicodeError) as exc:
            raise InputError(f"{self.shown_as}{self.explain(exc)}") from exc
        if not any_rows:
            yield self.empty()

    def read(self) -> Iterator[pa.Table]:
        """The rows, a piece at a time."""
        yield self.empty()

    def empty(self) -> pa.Table:
        """No rows, so that a file with nothing but a header still has its columns."""
        return pa.table([pa.array([], pa.string()) for _ in self.columns], names=list(self.columns))

    def explain(self, exc: Exception) -> str:
        """What to say after the file's name of an error met while reading."""
        return f": {first_line(exc)}"


def first_line(exc: BaseException) -> str:
    return (str(exc).strip().splitlines() or [type(exc).__name__])[0][:300]
