"""Greylisted addresses between two tries."""

import pytest

from mailverdict.local.smtp.greylisting import RetrySchedule
from mailverdict.local.smtp.probes import Probe
from mailverdict.local.smtp.queues import ExchangeSet
from mailverdict.model.settings import LocalSettings
from mailverdict.model.words import Reason
from mailverdict.runs.retry import ASK_AGAIN

A, B = ExchangeSet([], 3), ExchangeSet([], 3)


def test_an_address_waits_for_the_hint_and_comes_back_once():
    retries = RetrySchedule(300.0)
    assert retries.add(A, 1, 60.0, now=0.0)
    assert len(retries) == 1
    assert list(retries.pop_due(60.0)) == []
    (ready,) = retries.pop_due(retries.next_time())
    assert (ready.exchanges, ready.positions, len(retries), retries.next_time()) == (A, [1], 0, None)
    assert not retries.add(A, 1, 60.0, now=100.0)


WAITS = [
    (300.0, None, 300.0, "our own wait where there is no hint"),
    (300.0, 30.0, 30.0, "the server's where there is"),
    (300.0, 900.0, 900.0, "up to a quarter of an hour"),
    (300.0, 901.0, None, "what takes longer is for another run"),
    (0.0, 30.0, None, "nobody waits where it is not wanted"),
    (3600.0, None, None, "our own wait may be too long, too"),
]


@pytest.mark.parametrize(("wait", "hint", "expected", "why"), WAITS)
def test_the_wait_is(wait, hint, expected, why):
    retries = RetrySchedule(wait)
    assert retries.add(A, 1, hint, now=1000.25) is (expected is not None), why
    moment = retries.next_time()
    if expected is not None:
        assert expected + 0.5 <= moment - 1000.25 <= expected + 1.5


def test_addresses_of_one_set_and_second_are_asked_in_one_go():
    retries = RetrySchedule(10.0)
    for position, exchanges, now in ((1, A, 0.1), (2, B, 0.2), (3, A, 0.3), (4, A, 5.0)):
        retries.add(exchanges, position, None, now)
    due = {id(ready.exchanges): ready.positions for ready in retries.pop_due(11.0)}
    assert due == {id(A): [1, 3], id(B): [2]}
    assert len(retries) == 1


def test_probes_wait_once_as_well_and_are_not_addresses():
    retries = RetrySchedule(10.0)
    probe = Probe("mx", 7)
    assert retries.add_probe(A, probe, None, 0.0)
    assert not retries.add_probe(A, probe, None, 0.0)
    assert len(retries) == 0
    (ready,) = retries.pop_due(99.0)
    assert (ready.positions, ready.probes) == ([], [probe])


def test_a_run_and_the_engine_wait_equally_long():
    assert LocalSettings().retry_greylisted == ASK_AGAIN[Reason.GREYLISTED]
