"""A table in pieces: limits and notices over all of them, and every row back after a stop."""

from __future__ import annotations

import os
import signal
import tempfile
import threading

import pyarrow as pa
import pytest

from mailverdict.backend import Deferred, Delayed, Noticed, Settled
from mailverdict.errors import BackendError, JournalError, QuotaExceeded
from mailverdict.frames.files.streams import PieceStream, Stopper
from tests.doubles.scripted_backend import ScriptedBackend, rows_of

EMAILS = [[f"{letter}{n}@example.org" for n in range(3)] for letter in "abcd"]
PIECES = [pa.table({"email": emails}) for emails in EMAILS]


def run(backend, *, stopper=None, pieces=PIECES, **options):
    """Everything that came, status by piece, and the stream."""
    stream = PieceStream("email", stopper or Stopper(), backend=backend, journal=None, **options)
    return [piece["email_status"].to_pylist() for piece, _ in stream.verify(pieces)], stream


def statuses(*counts):
    return [["done"] * n + ["pending"] * (3 - n) for n in counts]


def test_all_pieces_are_verified_by_one_backend():
    backend = ScriptedBackend()
    seen, stream = run(backend)
    assert seen == statuses(3, 3, 3, 3)
    assert backend.asked == EMAILS
    assert (stream.failure, stream.notices, stream.is_short_of_quota) == (None, [], False)


@pytest.mark.parametrize("validation_type", ["regex", "mx"])
def test_a_limit_is_for_all_pieces_together(validation_type):
    backend = ScriptedBackend(free=validation_type == "regex")
    seen, _ = run(backend, limit=4, validation_type=validation_type)
    assert seen == statuses(3, 1, 0, 0)
    assert [email for batch in backend.asked for email in batch] == [*EMAILS[0], EMAILS[1][0]]


def test_what_is_malformed_is_told_beyond_the_limit():
    seen, _ = run(ScriptedBackend(), limit=1, pieces=[pa.table({"email": ["a@example.org", "b@example.org", "x"]})] * 2)
    assert seen == [["done", "pending", "done"]] * 2


def test_notices_are_told_once_over_all_pieces():
    script = [Noticed("slow"), Settled(rows_of(EMAILS[0]))]
    _, stream = run(ScriptedBackend(script, [Noticed("slow"), Settled(rows_of(EMAILS[1]))]), pieces=PIECES[:2])
    assert stream.notices == ["slow"]


def test_waits_for_a_service_are_added_up_over_all_pieces():
    scripts = [[Delayed(40.0, {"refused with status 429": 3}), Settled(rows_of(emails))] for emails in EMAILS]
    _, stream = run(ScriptedBackend(*scripts))
    assert stream.notices == []
    assert stream.delay_notices() == ["waited 160 s for the service: 12 requests refused with status 429"]


@pytest.mark.parametrize("journal", [None, "journal.db"])
@pytest.mark.parametrize("result", ["valid", "unknown"])
def test_an_address_of_an_earlier_piece_is_not_asked_again(journal, result, tmp_path):
    backend = ScriptedBackend(*([Settled(rows_of(emails, result))] for emails in EMAILS))
    stream = PieceStream(
        "email",
        Stopper(),
        backend=backend,
        journal=journal and tmp_path / journal,
        refresh={"unknown"},  # asks again about what earlier runs left unknown, not about what this one did
    )
    pieces = [PIECES[0], PIECES[0], pa.concat_tables([PIECES[1], PIECES[0]]), PIECES[1]]
    outs = [piece["email_verdict"].to_pylist() for piece, _ in stream.verify(pieces)]
    assert outs == [[result] * len(piece) for piece in pieces]
    assert [batch for batch in backend.asked if batch] == EMAILS[:2]


def test_no_temporary_journal_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    run(ScriptedBackend())
    with pytest.raises(BackendError):
        run(ScriptedBackend([BackendError("dead")]))
    assert list(tmp_path.iterdir()) == []


def test_a_quota_that_ends_leaves_the_rest_pending():
    _, stream = run(ScriptedBackend([Deferred(tuple(EMAILS[0]), "quota")]))
    assert stream.is_short_of_quota


@pytest.mark.parametrize("error", [BackendError("dead"), QuotaExceeded("used up"), JournalError("full")], ids=repr)
def test_after_a_failure_every_row_still_comes(error):
    seen, stream = run(ScriptedBackend([Settled(rows_of(EMAILS[0]))], [Settled(rows_of(EMAILS[1][:1])), error]))
    assert seen == statuses(3, 1, 0, 0)
    assert stream.failure is error


def test_a_failure_before_anything_is_settled_is_raised_at_once():
    backend = ScriptedBackend([BackendError("dead")])
    with pytest.raises(BackendError, match="dead"):
        run(backend)
    assert len(backend.asked) == 1


def interrupt_when(condition):
    """Send this process a real SIGINT as soon as something holds."""

    def watch():
        while not condition():
            pass
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()


class TestStopper:
    def test_one_interrupt_requests_a_stop_and_no_row_is_lost(self):
        gate, told = threading.Event(), []
        backend = ScriptedBackend([Settled(rows_of(EMAILS[0]))], [Settled(rows_of(EMAILS[1][:2])), Noticed("")])
        backend.gate = gate
        gate.set()
        with Stopper(lambda: told.append("stopping")) as stopper:
            stream = PieceStream("email", stopper, backend=backend, journal=None)
            seen = []
            for piece, _ in stream.verify(PIECES):
                seen.append(piece["email_status"].to_pylist())
                if len(seen) == 1:
                    gate.clear()  # the second piece never ends by itself
                    interrupt_when(lambda: len(backend.asked) == 2 and stopper.run.progress.settled == 2)
        assert seen == statuses(3, 2, 0, 0)
        assert told == ["stopping"]
        assert backend.closed.is_set()
        assert stream.failure is None

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
    def test_the_signals_of_schedulers_stop_as_an_interrupt_does(self, number):
        before = signal.getsignal(number)
        with Stopper(clock=iter([0.0, 10.0]).__next__) as stopper:
            signal.raise_signal(number)
            assert (stopper.is_requested, stopper.exit_status) == (True, 128 + number)
            with pytest.raises(SystemExit) as left:
                signal.raise_signal(number)
            assert left.value.code == 128 + number
        assert signal.getsignal(number) is before

    def test_an_ignored_signal_stays_ignored(self):
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            with Stopper() as stopper:
                signal.raise_signal(signal.SIGHUP)
            assert not stopper.is_requested
        finally:
            signal.signal(signal.SIGHUP, before)

    def test_a_signal_that_is_sent_twice_at_once_is_one(self):
        now = [100.0]
        with Stopper(clock=lambda: now[0]) as stopper:
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)
            assert (stopper.is_requested, stopper.exit_status) == (True, 143)
            now[0] += 3
            with pytest.raises(SystemExit):
                signal.raise_signal(signal.SIGTERM)

    def test_the_second_interrupt_is_raised(self):
        with Stopper() as stopper:
            signal.raise_signal(signal.SIGINT)
            assert stopper.is_requested
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)

    def test_afterwards_an_interrupt_is_as_before(self):
        before = signal.getsignal(signal.SIGINT)
        with Stopper():
            assert signal.getsignal(signal.SIGINT) != before
        assert signal.getsignal(signal.SIGINT) is before

    def test_a_run_started_after_the_request_ends_at_once(self):
        stopper = Stopper()
        stopper.stop()
        seen, _ = run(ScriptedBackend(), stopper=stopper)
        assert seen == statuses(0, 0, 0, 0)
