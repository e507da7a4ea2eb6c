"""A backend that answers each address by its local part: without a network, with every failure on demand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import pyarrow as pa

from mailverdict.backend import Batch, Deferred, Event, Job, Settled
from mailverdict.model.table import SOURCE_LOCAL, complete_table
from mailverdict.model.verification import Fault, Verification
from tests.doubles.tables import rows_to_table

Answer = Callable[[str, str], Verification]
FLAGS = {"role": False, "disposable": False, "free": False}
CHECKS = {
    "regex": {"syntax": True},
    "mx": {"syntax": True, "dns": True},
    "mx_blacklist": {"syntax": True, "dns": True, "blacklist": True},
    "smtp": dict.fromkeys(
        ("syntax", "dns", "smtp_port", "smtp_connection", "smtp_rcptto", "smtp"), True
    ),
}


def valid(email: str, validation_type: str) -> Verification:
    """Everything is fine, whatever is asked."""
    server = {"catch_all": False, "protected": False} if validation_type == "smtp" else {}
    stamp = {"validated_at": "2026-01-02T03:04:05.000006+00:00"}
    return Verification(
        email,
        validation_type,
        "valid",
        checks=CHECKS[validation_type],
        metadata=stamp,
        **FLAGS,
        **server,
    )


def unknown(reason: str) -> Answer:
    """Nothing could be established."""

    def answer(email: str, validation_type: str) -> Verification:
        fault = (Fault("SMTP", "mx.example: nothing"),)
        return Verification(
            email,
            validation_type,
            "unknown",
            (reason,),
            {"syntax": True},
            reason="SMTP",
            errors=fault,
        )

    return answer


class AnsweringBackend:
    """A backend that answers by the local part if the script has it, otherwise `valid`.

    Parameters
    ----------
    script : mapping of str to (Verification factory, exception, or event factory), optional
        By local part.
    gate : asyncio.Event, optional
        Nothing is answered until it is set.
    """

    source = SOURCE_LOCAL

    def __init__(
        self, script: dict[str, object] | None = None, gate: asyncio.Event | None = None
    ) -> None:
        self.script = script or {}
        self.gate = gate
        self.batches: list[tuple[str, list[str]]] = []
        self.closed = False

    def is_free(self, validation_type: str) -> bool:
        return validation_type == "regex"

    def wants_journal(self, validation_type: str) -> bool:
        return False

    def journal_key(self, validation_type: str) -> str:
        return validation_type

    async def verify(self, batch: Batch, in_flight: Sequence[Job] = ()) -> AsyncIterator[Event]:
        emails = batch.addresses.to_pylist()
        self.batches.append((batch.validation_type, emails))
        if self.gate is not None:
            await self.gate.wait()
        acts = {email: self.script.get(email.partition("@")[0], valid) for email in emails}
        for act in acts.values():
            if isinstance(act, Exception):
                raise act
        plain = {email: act for email, act in acts.items() if act not in SPECIAL}
        if plain:
            rows = [act(email, batch.validation_type) for email, act in plain.items()]
            yield Settled(rows_to_table(rows, source=SOURCE_LOCAL))
        for email, act in acts.items():
            if act in SPECIAL:
                for event in act(email, batch.validation_type):
                    yield event

    async def aclose(self) -> None:
        self.closed = True


def deferred(email: str, _: str) -> list[Event]:
    """The backend defers the address."""
    return [Deferred((email,), "quota")]


def forgotten(email: str, _: str) -> list[Event]:
    """The backend gives no row for the address."""
    return []


def no_verdict(email: str, validation_type: str) -> list[Event]:
    """A row that says `done` without a verdict."""
    columns = {
        "email": pa.array([email]),
        "status": pa.array(["done"]),
        "validation_type": pa.array([validation_type]),
    }
    return [Settled(complete_table(columns, 1))]


def failed(email: str, validation_type: str) -> list[Event]:
    """A row that says `error`."""
    columns = {"email": pa.array([email]), "status": pa.array(["error"])}
    return [Settled(complete_table(columns, 1))]


SPECIAL = (deferred, forgotten, no_verdict, failed)
