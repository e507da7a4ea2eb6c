"""A column of a table in pieces: what is asked, limits and notices over all of them, and every row back after a stop."""

from __future__ import annotations

import os
import signal
import threading

import pyarrow as pa
import pytest

from mailverdict.backend import Deferred, Noticed, Settled
from mailverdict.cli.stopper import Stopper
from mailverdict.errors import BackendError, JournalError, QuotaExceeded, SettingsError
from mailverdict.frames.file_run import FileRun
from tests.doubles.scripted_backend import ScriptedBackend, rows_of
from tests.doubles.tables import each_row

EMAILS = [[f"{letter}{n}@example.org" for n in range(3)] for letter in "abcd"]
ALL = [email for emails in EMAILS for email in emails]
PIECES = [pa.table({"email": emails}) for emails in EMAILS]


def run(backend, *, stopper=None, pieces=PIECES, source="remote", **options):
    """Status by piece of everything that came, and the run; answers of this machine cost neither quota nor sessions."""
    backend.source = source
    found = FileRun("email", stopper or Stopper(), backend=backend, journal=None, **options)
    return [
        piece["email_status"].to_pylist() for piece in found.verify(lambda: iter(pieces))
    ], found


def statuses(*counts):
    return [["done"] * n + ["pending"] * (3 - n) for n in counts]


def test_all_pieces_are_one_run_in_the_order_of_the_rows():
    backend = ScriptedBackend()
    seen, found = run(backend)
    assert seen == statuses(3, 3, 3, 3)
    assert backend.asked == [ALL]
    assert (found.failure, found.notices, found.is_short_of_quota) == (None, [], False)


def test_what_costs_nothing_is_asked_piece_by_piece():
    backend = ScriptedBackend()
    seen, _ = run(backend, source="local")
    assert seen == statuses(3, 3, 3, 3)
    assert backend.asked == EMAILS


def test_sessions_are_for_the_whole_table():
    backend = ScriptedBackend()
    run(backend, source="local", validation_type="smtp")
    assert backend.asked == [ALL]


@each_row("validation_type", ["regex", "mx"])
def test_a_limit_is_for_all_pieces_together(validation_type):
    backend = ScriptedBackend(free=validation_type == "regex")
    seen, _ = run(backend, limit=4, validation_type=validation_type)
    assert seen == statuses(3, 1, 0, 0)
    assert [email for batch in backend.asked for email in batch] == ALL[:4]


def test_what_is_malformed_is_told_beyond_the_limit():
    seen, _ = run(
        ScriptedBackend(),
        limit=1,
        pieces=[pa.table({"email": ["a@example.org", "b@example.org", "x"]})] * 2,
    )
    assert seen == [["done", "pending", "done"]] * 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:known=:UserWarning")
@each_row(("source", "validation_type"), [("local", "mx"), ("remote", "mx"), ("local", "regex")])
def test_what_another_verifier_settled_is_not_asked_in_any_piece(source, validation_type):
    backend = ScriptedBackend(free=validation_type == "regex")
    backend.source = source
    export = pa.table({"email": [*EMAILS[1], "d1@example.org"], "ZB Status": ["invalid"] * 4})
    given = {"validation_type": validation_type, "known": export, "columns": ["verdict"]}
    found = FileRun("email", Stopper(), backend=backend, journal=None, **given)
    out = pa.concat_tables(found.verify(lambda: iter(PIECES)))
    assert out["email"].to_pylist() == ALL
    asked = [email for batch in backend.asked for email in batch]
    assert asked == [email for email in ALL if email not in export["email"].to_pylist()]
    assert out["email_verdict"].to_pylist() == [
        "valid" if email in asked else "invalid" for email in ALL
    ]
    assert [each == "ZeroBounce" for each in out["email_source"].to_pylist()] == [
        email not in asked for email in ALL
    ]


@each_row("result", ["valid", "unknown"])
def test_an_address_is_asked_once_whatever_pieces_it_is_in(result):
    backend = ScriptedBackend([Settled(rows_of([*EMAILS[0], *EMAILS[1]], result))])
    pieces = [PIECES[0], PIECES[0], pa.concat_tables([PIECES[1], PIECES[0]]), PIECES[1]]
    found = FileRun("email", Stopper(), backend=backend, journal=None, refresh={"unknown"})
    outs = [piece["email_verdict"].to_pylist() for piece in found.verify(lambda: iter(pieces))]
    assert outs == [[result] * len(piece) for piece in pieces]
    assert backend.asked == [[*EMAILS[0], *EMAILS[1]]]


def test_missing_cells_and_repaired_ones_stay_in_their_rows():
    cells = [
        ["<ada@example.org>", None],
        [None, "", "ada@example.org"],
        ["no at sign", "bo@EXAMPLE.org"],
    ]
    pieces = [pa.table({"email": pa.array(texts, pa.string())}) for texts in cells]
    backend = ScriptedBackend()
    found = FileRun("email", Stopper(), backend=backend, journal=None, clean=True)
    out = pa.concat_tables(found.verify(lambda: iter(pieces)))
    assert out["email_status"].to_pylist() == [
        "done",
        "missing",
        "missing",
        "missing",
        "done",
        "done",
        "done",
    ]
    assert out["email_clean"].to_pylist() == [
        "ada@example.org",
        None,
        None,
        None,
        "ada@example.org",
        None,
        "bo@example.org",
    ]
    assert backend.asked == [["ada@example.org", "bo@example.org"]]


@each_row(("source", "validation_type"), [("local", "mx"), ("remote", "mx"), ("local", "regex")])
def test_cells_with_several_addresses_are_not_asked_about_and_counted_once(source, validation_type):
    cells = [
        ["ada@example.org; bo@example.org", "ada@example.org"],
        ["cy@example.org, di@example.org", "bo@example.org"],
    ]
    backend = ScriptedBackend(free=validation_type == "regex")
    backend.source = source
    found = FileRun(
        "email", Stopper(), backend=backend, journal=None, validation_type=validation_type
    )
    out = pa.concat_tables(found.verify(lambda: (pa.table({"email": each}) for each in cells)))
    assert out["email_verdict"].cast(pa.string()).to_pylist() == [
        "unknown",
        "valid",
        "unknown",
        "valid",
    ]
    assert [email for batch in backend.asked for email in batch] == [
        "ada@example.org",
        "bo@example.org",
    ]
    assert found.several_notices()[0].startswith("2 rows hold several addresses")
    assert found.notices == []


@each_row("source", ["local", "remote"])
def test_a_fault_of_the_last_piece_is_known_before_anything_is_asked(source):
    backend = ScriptedBackend()
    theirs = pa.table({"email": EMAILS[1], "email_verdict": ["mine"] * 3})
    with pytest.raises(SettingsError, match="email_verdict"):
        run(
            backend,
            source=source,
            pieces=[pa.table({"email": EMAILS[0], "email_verdict": [None] * 3}), theirs],
        )
    assert backend.asked == []


def test_a_column_without_text_is_one_notice():
    numbers = pa.table({"email": [1, 2, 3]})
    assert len(run(ScriptedBackend(), pieces=[numbers, numbers])[1].notices) == 1
    assert run(ScriptedBackend(), pieces=[numbers, PIECES[0]])[1].notices == []


def test_a_quota_that_ends_leaves_the_rest_pending():
    seen, found = run(
        ScriptedBackend([Settled(rows_of(ALL[:4])), Deferred(tuple(ALL[4:]), "quota")])
    )
    assert (seen, found.is_short_of_quota) == (statuses(3, 1, 0, 0), True)


@each_row("error", [BackendError("dead"), QuotaExceeded("used up"), JournalError("full")], ids=repr)
def test_after_a_failure_every_row_still_comes(error):
    seen, found = run(ScriptedBackend([Settled(rows_of(ALL[:4])), error]))
    assert seen == statuses(3, 1, 0, 0)
    assert found.failure is error


@each_row("error", [BackendError("dead"), JournalError("full")], ids=repr)
def test_after_a_failure_in_a_piece_every_row_still_comes(error):
    backend = ScriptedBackend(
        [Settled(rows_of(EMAILS[0]))], [Settled(rows_of(EMAILS[1][:1])), error]
    )
    seen, found = run(backend, source="local")
    assert seen == statuses(3, 1, 0, 0)
    assert found.failure is error
    assert len([batch for batch in backend.asked if batch]) == 2


def test_a_failure_before_anything_is_settled_is_raised_at_once():
    backend = ScriptedBackend([BackendError("dead")])
    with pytest.raises(BackendError, match="dead"):
        run(backend)
    assert len(backend.asked) == 1


def test_one_interrupt_requests_a_stop_and_no_row_is_lost():
    told, sent = [], []

    def interrupt(progress):
        """Send this process a real SIGINT as soon as five addresses are settled."""
        if progress.settled == 5 and not sent:
            sent.append(signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    # It never ends by itself.
    backend = ScriptedBackend([Settled(rows_of(ALL[:5])), Noticed("")], gate=threading.Event())
    with Stopper(lambda: told.append("stopping")) as stopper:
        seen, found = run(backend, stopper=stopper, listener=interrupt)
    assert seen == statuses(3, 2, 0, 0)
    assert told == ["stopping"]
    assert backend.closed.is_set()
    assert found.failure is None


@each_row(("validation_type", "source"), [("regex", "local"), ("mx", "local"), ("mx", "remote")])
def test_after_a_request_to_stop_nothing_is_asked(validation_type, source):
    backend, stopper = ScriptedBackend(free=validation_type == "regex"), Stopper()
    stopper.stop()
    seen, _ = run(backend, stopper=stopper, source=source, validation_type=validation_type)
    assert seen == statuses(0, 0, 0, 0)
    assert [batch for batch in backend.asked if batch] == []
