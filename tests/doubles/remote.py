"""A remote backend, a scripted service and virtual time, together."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from mailverdict.backend import Batch, Deferred, Event, Job, Noticed, Settled, Submitted, Waiting
from mailverdict.remote.backend import RemoteBackend
from mailverdict.remote.events import PollSchedule
from tests.doubles.clock import VirtualLoop, run_virtual
from tests.doubles.scripted_service import ScriptedService, Wire

URL = "http://verify.test"


@dataclass
class Outcome:
    """What a call of `verify` told."""

    events: list[Event] = field(default_factory=list)
    error: BaseException | None = None
    seconds: float = 0.0

    def all(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def rows(self) -> dict[str, dict[str, Any]]:
        return {row["email"]: row for event in self.all(Settled) for row in event.rows.to_pylist()}

    @property
    def deferred(self) -> dict[str, str]:
        return {email: event.why for event in self.all(Deferred) for email in event.emails}

    @property
    def notices(self) -> list[str]:
        return [event.message for event in self.all(Noticed)]

    @property
    def jobs(self) -> list[Job]:
        return [job for event in self.all(Submitted) for job in event.jobs]

    @property
    def waits(self) -> list[float]:
        return [event.seconds for event in self.all(Waiting)]


def addresses(count: int) -> list[str]:
    return [f"user{i}@example{i % 7}.org" for i in range(count)]


def batch(emails: Sequence[str], validation_type: str = "smtp") -> Batch:
    return Batch(pa.array(list(emails), pa.string()), validation_type)


class RemoteWorld:
    """A remote backend, the scripted service it talks to, and their virtual time; made inside a virtual loop."""

    def __init__(
        self,
        loop: VirtualLoop,
        *,
        poll: PollSchedule | None = None,
        parallel: int = 8,
        pace: float | str | None = "auto",
        ask_again: bool = True,
        **service: Any,
    ) -> None:
        self.loop = loop
        self.service = ScriptedService(loop.wall_clock, **service)
        self.wire = Wire(self.service, asyncio.sleep)
        self.backend = RemoteBackend(
            URL,
            poll,
            parallel,
            transport=self.wire,
            clock=loop.wall_clock,
            jitter=lambda: 0.5,
            pace=pace,
            ask_again=ask_again,
        )

    async def verify(
        self, emails: Sequence[str], validation_type: str = "smtp", in_flight: Sequence[Job] = ()
    ) -> Outcome:
        """Verify to the end; an error is kept on the outcome."""
        outcome, begun = Outcome(), self.loop.time()
        try:
            async with aclosing(
                self.backend.verify(batch(emails, validation_type), in_flight)
            ) as events:
                async for event in events:
                    outcome.events.append(event)
        except Exception as exc:  # noqa: BLE001 - what was raised is what tests look at
            outcome.error = exc
        outcome.seconds = self.loop.time() - begun
        return outcome


def verify_scripted(
    emails: Sequence[str], prepare: Any = None, **options: Any
) -> tuple[Outcome, ScriptedService]:
    """One call against one service: what came of it, and what the service saw."""
    validation_type = options.pop("validation_type", "smtp")

    async def main(loop: VirtualLoop) -> tuple[Outcome, ScriptedService]:
        world = RemoteWorld(loop, **options)
        if prepare is not None:
            prepare(world.service)
        return await world.verify(emails, validation_type), world.service

    return run_virtual(main)
