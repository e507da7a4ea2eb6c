"""Signals: the first one requests a stop, a second one ends the process."""

from __future__ import annotations

import signal

import pytest

from mailverdict.cli.stopper import Stopper
from tests.doubles.tables import each_row


@each_row("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_signals_of_schedulers_stop_as_an_interrupt_does(number):
    before = signal.getsignal(number)
    with Stopper(clock=iter([0.0, 10.0]).__next__) as stopper:
        signal.raise_signal(number)
        assert (stopper.is_requested, stopper.exit_status) == (True, 128 + number)
        with pytest.raises(SystemExit) as left:
            signal.raise_signal(number)
        assert left.value.code == 128 + number
    assert signal.getsignal(number) is before


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Stopper() as stopper:
            signal.raise_signal(signal.SIGHUP)
        assert not stopper.is_requested
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_that_is_sent_twice_at_once_is_one():
    now = [100.0]
    with Stopper(clock=lambda: now[0]) as stopper:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert (stopper.is_requested, stopper.exit_status) == (True, 143)
        now[0] += 3
        with pytest.raises(SystemExit):
            signal.raise_signal(signal.SIGTERM)


def test_the_second_interrupt_is_raised():
    with Stopper() as stopper:
        signal.raise_signal(signal.SIGINT)
        assert stopper.is_requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_afterwards_an_interrupt_is_as_before():
    before = signal.getsignal(signal.SIGINT)
    with Stopper():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) is before
