"""The log of a store that cannot be used for a while: a line, a line at the end, a traceback for a bug."""

import asyncio
import logging

import pytest
from sqlalchemy.exc import (
    DBAPIError,
    IntegrityError,
    InternalError,
    InvalidRequestError,
    OperationalError,
    ProgrammingError,
)

from mailverdict.service.outages import OutageLog
from tests.doubles.clock import Clock
from tests.doubles.service import asynchronous, until


def wrapped(kind: type[DBAPIError], text: str) -> DBAPIError:
    return kind("SELECT 1", None, Exception(text))


AWAY = wrapped(OperationalError, "connection failed\n\tIs the server running?\n")
BUG = wrapped(ProgrammingError, "no such column")


@pytest.mark.parametrize(
    ("error", "is_bug"),
    [
        (AWAY, False),
        (wrapped(OperationalError, "the administrator ended the connection"), False),
        (wrapped(InternalError, "the transaction is read-only"), False),
        (TimeoutError(), False),
        (BUG, True),
        (wrapped(IntegrityError, "duplicate key"), True),
        (InvalidRequestError("a transaction has ended"), True),
    ],
)
@asynchronous
async def test_outage_is_told_from_a_bug(
    caplog: pytest.LogCaptureFixture, error: Exception, is_bug: bool
) -> None:
    OutageLog().failed(error)
    assert [has_traceback for _, has_traceback in logged(caplog)] == [is_bug]


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, bool]]:
    """Beginning of each line, and whether a traceback follows."""
    return [
        (record.getMessage().partition(":")[0], bool(record.exc_info)) for record in caplog.records
    ]


LOST, BACK = ("the store cannot be used", False), ("the store can be used again, after 60 s", False)


@asynchronous
async def test_outage_has_a_line_at_its_beginning_and_one_at_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, answers = Clock(), iter([AWAY, AWAY, None])
    outages = OutageLog(pause=0, clock=clock)

    async def probe() -> None:
        clock.now += 20
        if answer := next(answers):
            raise answer

    watch = asyncio.create_task(outages.watch(probe))
    for _ in range(3):
        outages.failed(AWAY)
    await until(lambda: outages.began is None)
    watch.cancel()
    assert logged(caplog) == [LOST, BACK]
    assert "connection failed Is the server running?; this process tries again" in caplog.text


@asynchronous
async def test_outage_lasts_while_other_queries_fail(caplog: pytest.LogCaptureFixture) -> None:
    outages, probes = OutageLog(pause=0), 0

    async def probe() -> None:
        nonlocal probes
        probes += 1
        if probes < 4:
            outages.failed(AWAY)  # a write is refused, as on a full disk, while the probe reads

    watch = asyncio.create_task(outages.watch(probe))
    outages.failed(AWAY)
    await until(lambda: outages.began is None)
    watch.cancel()
    assert probes == 4
    assert len(logged(caplog)) == 2


@asynchronous
async def test_bug_has_a_traceback_once_until_the_store_answers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    outages = OutageLog(pause=0)

    async def probe() -> None:
        """The database answers."""

    for _ in range(2):
        watch = asyncio.create_task(outages.watch(probe))
        for _ in range(3):
            outages.failed(BUG)
        await until(lambda: not outages.has_failed.is_set())
        watch.cancel()
    assert [has_traceback for _, has_traceback in logged(caplog)] == [True, True]
    assert "no such column" in caplog.text
