"""The service's side of the backend: one answer for each address, whatever the backend does."""

import asyncio

import numpy as np
import pyarrow as pa
import pytest

from mailverdict.backend import Deferred, Noticed, Settled, Waiting
from mailverdict.errors import ContractError, QuotaExceeded, RateLimited, TransportError
from mailverdict.model.table import complete_table
from mailverdict.service.engine import CheckOutcome, EngineFailure, VerificationEngine
from tests.doubles.answering_backend import (
    AnsweringBackend,
    deferred,
    failed,
    forgotten,
    no_verdict,
    valid,
)
from tests.doubles.service import asynchronous
from tests.doubles.tables import rows_to_table


def engine_of(backend, timeout: float = 10.0) -> VerificationEngine:
    return VerificationEngine(backend, check_timeout=timeout)


async def failures_of(
    engine: VerificationEngine, *emails: str, validation_type: str = "mx"
) -> dict[str, EngineFailure | None]:
    """Every answer; an address that is answered twice or not at all fails here."""
    answers = [
        answer async for batch in engine.verify(list(emails), validation_type) for answer in batch
    ]
    assert sorted(answer.email for answer in answers) == sorted(emails)
    assert all((answer.verification is None) is (answer.failure is not None) for answer in answers)
    return {answer.email: answer.failure for answer in answers}


class Playing(AnsweringBackend):
    """A backend that plays events, then may raise."""

    def __init__(self, *events, error: Exception | None = None) -> None:
        super().__init__()
        self.events = events
        self.error = error

    async def verify(self, batch, in_flight=()):
        for event in self.events:
            yield event
        if self.error:
            raise self.error


def settled(*emails: str, positions=None) -> Settled:
    return Settled(
        rows_to_table([valid(e, "mx") for e in emails], source="local"), positions=positions
    )


@asynchronous
async def test_each_kind_of_act_is_an_answer() -> None:
    script = {"bad": failed, "odd": no_verdict, "lost": forgotten, "later": deferred}
    found = await failures_of(
        engine_of(AnsweringBackend(script)), *(f"{n}@x.org" for n in ("ada", *script))
    )
    assert found == {
        "ada@x.org": None,
        "bad@x.org": EngineFailure.ERROR,
        "odd@x.org": EngineFailure.MISMATCH,
        "lost@x.org": EngineFailure.MISMATCH,
        "later@x.org": EngineFailure.SATURATED,
    }


@asynchronous
async def test_large_event_is_answered_whole_and_others_have_turns_meanwhile() -> None:
    emails = [f"user{n}@x.org" for n in range(250)]
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.001)

    task = asyncio.create_task(others())
    found = await failures_of(engine_of(Playing(settled(*emails))), *emails)
    task.cancel()
    assert list(found.values()) == [None] * 250
    assert turns > 1


@asynchronous
async def test_notices_of_the_backend_are_logged_once(caplog) -> None:
    engine = engine_of(Playing(Noticed("the resolver lies"), settled("a@x.org")))
    for _ in range(3):
        await failures_of(engine, "a@x.org")
    assert [record.getMessage() for record in caplog.records] == ["the resolver lies"]


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (RateLimited("later"), EngineFailure.SATURATED),
        (ContractError("what?"), EngineFailure.MISMATCH),
        (TransportError("gone"), EngineFailure.ERROR),
        (QuotaExceeded("spent"), EngineFailure.ERROR),
        (KeyError("bug"), EngineFailure.ERROR),
    ],
    ids=lambda value: type(value).__name__,
)
@asynchronous
async def test_error_half_way_keeps_what_was_answered(
    error: Exception, failure: EngineFailure
) -> None:
    backend = Playing(settled("a@x.org"), error=error)
    assert await failures_of(engine_of(backend), "a@x.org", "b@x.org") == {
        "a@x.org": None,
        "b@x.org": failure,
    }


@asynchronous
async def test_events_without_rows_are_passed_over() -> None:
    backend = Playing(Noticed("hello"), Waiting(1.0, "soon"), settled("a@x.org"))
    assert await failures_of(engine_of(backend), "a@x.org") == {"a@x.org": None}


@asynchronous
async def test_positions_tell_which_address_a_row_answers() -> None:
    rows = settled("B@x.org", "A@x.org", positions=np.array([1, 0]))
    answers = [
        a
        async for batch in engine_of(Playing(rows)).verify(["a@x.org", "b@x.org"], "mx")
        for a in batch
    ]
    assert {a.email: a.verification.email for a in answers} == {
        "a@x.org": "A@x.org",
        "b@x.org": "B@x.org",
    }


@asynchronous
async def test_rows_that_were_not_asked_for_or_come_twice_are_dropped() -> None:
    backend = Playing(
        settled("a@x.org", "stranger@x.org"), settled("a@x.org"), Deferred(("a@x.org",), "quota")
    )
    assert await failures_of(engine_of(backend), "a@x.org") == {"a@x.org": None}


@asynchronous
async def test_table_of_no_rows_answers_nothing() -> None:
    backend = Playing(Settled(complete_table({"email": pa.array([], pa.string())}, 0)))
    assert await failures_of(engine_of(backend), "a@x.org") == {"a@x.org": EngineFailure.MISMATCH}


@asynchronous
async def test_check_that_takes_too_long_is_an_error_and_others_are_not() -> None:
    engine = engine_of(AnsweringBackend(gate=asyncio.Event()), timeout=0.01)
    assert await engine.check("ada@x.org", "mx") == CheckOutcome(
        "ada@x.org", failure=EngineFailure.ERROR
    )
    assert engine.checking == 0


@pytest.mark.parametrize(
    ("act", "fault"),
    [
        (failed, EngineFailure.ERROR),
        (no_verdict, EngineFailure.MISMATCH),
        (forgotten, EngineFailure.MISMATCH),
        (deferred, EngineFailure.SATURATED),
        (RateLimited("later"), EngineFailure.SATURATED),
        (ContractError("what?"), EngineFailure.MISMATCH),
        (TransportError("gone"), EngineFailure.ERROR),
        (KeyError("bug"), EngineFailure.ERROR),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
@asynchronous
async def test_a_single_check_without_a_verdict_names_the_failure(
    act, fault: EngineFailure
) -> None:
    engine = engine_of(AnsweringBackend({"ada": act}))
    assert await engine.check("ada@x.org", "mx") == CheckOutcome("ada@x.org", failure=fault)


@asynchronous
async def test_close_answers_those_who_wait() -> None:
    backend = AnsweringBackend(gate=asyncio.Event())
    engine = engine_of(backend)
    waiting = asyncio.create_task(engine.check("ada@x.org", "mx"))
    while not backend.batches:
        await asyncio.sleep(0)
    await engine.aclose()
    assert (await waiting).failure is EngineFailure.ERROR
    assert backend.closed
