"""The log of a store that cannot be used for a while: a line, a line at the end, a traceback for a bug."""

import asyncio
import logging

import pytest
from sqlalchemy.exc import DBAPIError, IntegrityError, InvalidRequestError, OperationalError, ProgrammingError

from mailverdict.service.outages import OutageLog, is_outage
from tests.doubles.clock import Clock
from tests.doubles.service import asynchronous, until


class DriverError(Exception):
    """An error of a driver."""

    def __init__(self, text: str, sqlstate: str | None = None) -> None:
        super().__init__(text)
        self.sqlstate = sqlstate


def wrapped(kind: type[DBAPIError], sqlstate: str | None, text: str = "an error") -> DBAPIError:
    return kind("SELECT 1", None, DriverError(text, sqlstate))


AWAY = wrapped(OperationalError, None, "connection failed\n\tIs the server running?\n")
BUG = wrapped(ProgrammingError, "42703", "no such column")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (AWAY, True),
        (wrapped(OperationalError, "57P01"), True),
        (wrapped(OperationalError, "53100"), True),
        (wrapped(DBAPIError, "25006"), True),
        (TimeoutError(), True),
        (BUG, False),
        (wrapped(OperationalError, "40P01"), False),  # a deadlock: the order of our locks is wrong
        (wrapped(IntegrityError, "23505"), False),
        (InvalidRequestError("a transaction has ended"), False),
    ],
)
def test_outage_is_told_from_a_bug(error: Exception, *, expected: bool) -> None:
    assert is_outage(error) is expected


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, bool]]:
    """Beginning of each line, and whether a traceback follows."""
    return [(record.getMessage().partition(":")[0], bool(record.exc_info)) for record in caplog.records]


LOST, BACK = ("the store cannot be used", False), ("the store can be used again, after 60 s", False)


@asynchronous
async def test_outage_has_a_line_at_its_beginning_and_one_at_its_end(caplog: pytest.LogCaptureFixture) -> None:
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
async def test_bug_has_a_traceback_once_until_the_store_answers(caplog: pytest.LogCaptureFixture) -> None:
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
