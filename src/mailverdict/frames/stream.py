"""A table of any size, piece by piece; an interruption still gives every row back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import BackendError
from ..model.words import Status
from ..runs.progress import Progress
from .verify import start

__all__ = ["verify_pieces"]


def verify_pieces(
    pieces: Iterable[pa.Table], column: str, *, notices: list[str], **options: Any
) -> Iterator[tuple[pa.Table, Progress]]:
    """Verify piece after piece with the same backend and journal.

    After Ctrl-C or a failure of the backend the piece at hand comes with what was settled, the
    rest with what needs no network, and then the exception is raised: no row is lost.

    Parameters
    ----------
    pieces : iterable of pyarrow.Table
        All with the same columns.
    column : str
        Which one.
    notices : list of str
        Filled with what the user should be told, each once.
    **options
        As in `verify`.

    Yields
    ------
    tuple of pyarrow.Table and Progress
        The piece with result columns, and how its run ended.

    Raises
    ------
    BackendError, KeyboardInterrupt
        At the end, when some of the rows could be kept; at once, when none could.
    """
    stopped: BaseException | None = None
    for piece in pieces:
        if stopped is None:
            run = start(piece, column, **options)
            try:
                yield run.result(), run.progress
            except (KeyboardInterrupt, BackendError) as exc:
                run.cancel()
                run.wait()
                stopped = exc
                partial = run.partial()
                if not has_done(partial):
                    raise
                yield partial, run.progress
            notices += [notice for notice in run.notices if notice not in notices]
        else:
            offline = start(piece, column, **{**options, "offline": True, "journal": None, "progress": False})
            yield offline.result(), offline.progress
    if stopped is not None:
        raise stopped


def has_done(table: pa.Table) -> bool:
    """Whether any row was settled."""
    names = [name for name in table.column_names if name.endswith("status")]
    return any(pc.any(pc.equal(table[name].cast(pa.string()), str(Status.DONE))).as_py() for name in names[-1:])
