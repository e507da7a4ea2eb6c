"""A backend that plays a list of events for each batch."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence

import pyarrow as pa

from mailverdict.backend import Batch, Event, Job, Settled
from mailverdict.model.verification import Verification
from tests.doubles.tables import rows_to_table

__all__ = ["ScriptedBackend", "rows_of"]


def rows_of(emails: Sequence[str], result: str = "valid", kind: str = "mx") -> pa.Table:
    """Rows as a service would settle them."""
    return rows_to_table([Verification(email, kind, result) for email in emails], source="remote")


class ScriptedBackend:
    """Plays a script for each batch; without one, everything is valid.

    Parameters
    ----------
    *scripts : sequence of Event or Exception
        One for each call of `verify`, played in order; an exception is raised where it stands.
    gate : threading.Event, optional
        Waited for before the script of each batch goes on to its end.
    free : bool
        Whether the type counts as one that needs no network.

    Attributes
    ----------
    batches : list of Batch
        What it was given.
    asked : list of list of str
        The addresses of each.
    continued : list of list of Job
        The jobs handed over with each.
    closed : threading.Event
        Set when a script was left, by whatever way.
    is_closed : bool
        Whether the backend's sockets were let go.
    """

    source = "remote"

    def __init__(
        self,
        *scripts: Sequence[Event | Exception],
        gate: threading.Event | None = None,
        free: bool = False,
    ) -> None:
        self.scripts, self.gate, self.free = list(scripts), gate, free
        self.batches: list[Batch] = []
        self.asked: list[list[str]] = []
        self.continued: list[list[Job]] = []
        self.closed = threading.Event()
        self.is_closed = False

    def is_free(self, validation_type: str) -> bool:
        return self.free

    def wants_journal(self, validation_type: str) -> bool:
        return False

    def journal_key(self, validation_type: str) -> str:
        return f"scripted:{validation_type}"

    async def verify(self, batch: Batch, in_flight: Sequence[Job] = ()) -> AsyncIterator[Event]:
        self.batches.append(batch)
        self.asked.append(batch.addresses.to_pylist())
        self.continued.append(list(in_flight))
        script = (
            self.scripts.pop(0)
            if self.scripts
            else [Settled(rows_of(self.asked[-1], kind=batch.validation_type))]
        )
        try:
            for number, event in enumerate(script, 1):
                if self.gate is not None and number == len(script):
                    while not self.gate.is_set():
                        await asyncio.sleep(0.001)
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            self.closed.set()

    async def aclose(self) -> None:
        self.is_closed = True
