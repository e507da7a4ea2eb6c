"""One pass over unique addresses, against backends whose events are written down."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.backend import (
    QUOTA_INTERVAL,
    Deferred,
    Job,
    Noticed,
    Quota,
    QuotaSeen,
    Settled,
    Submitted,
    Submitting,
    Waiting,
)
from mailverdict.errors import BackendError, JournalError, QuotaExceeded
from mailverdict.local.backend import LocalBackend
from mailverdict.local.screen import Screener
from mailverdict.model.table import complete_table
from mailverdict.model.words import ValidationType
from mailverdict.runs.execution import MIN_QUOTA_INTERVAL, Execution, RunSettings, unique_addresses
from mailverdict.runs.journal.journal import Unclaimed
from tests.doubles.scripted_backend import ScriptedBackend, rows_of
from tests.doubles.tables import each_row

EMAILS = [f"{letter}@example.org" for letter in "abcde"]


class Naps:
    """A sleep that takes no time and remembers how long it was asked for."""

    def __init__(self):
        self.taken = []

    async def __call__(self, seconds):
        self.taken.append(seconds)


class Notes:
    """A journal that is nothing but the list of what it was told."""

    def __init__(self, known=(), jobs=()):
        self.known, self.jobs = list(known), list(jobs)
        self.recorded, self.is_closed = [], False

    def settled(self, key, emails, *, newer_than, refresh, answered_since=None, costs_quota=True):
        return rows_of([e for e in emails.to_pylist() if e in self.known])

    def adopt(self, key, emails):
        return [job for job in self.jobs if job.email in emails.to_pylist()]

    def unclaimed(self, key, emails):
        return Unclaimed(emails[:0], None, emails[:0])

    def claim(self, key, batch):
        self.recorded.append(batch)
        return batch.emails

    def seconds_to_resolve(self, key):
        return None

    def lost_batches(self, key):
        return []

    def known_pace(self, service):
        return None

    def record(self, key, event):
        self.recorded.append(event)

    def close(self):
        self.is_closed = True


def execute(backend, emails=EMAILS, *, kind="mx", **options):
    """Run to the end; gives the execution, also where the run failed (then `error` is on it)."""
    parts = {
        name: options.pop(name)
        for name in ("journal", "screen", "owns_backend", "sleep", "clock")
        if name in options
    }
    request = RunSettings(ValidationType(kind), **options)
    execution = Execution(pa.array(emails, pa.string()), backend, request, **parts)
    execution.error = None
    try:
        asyncio.run(execution.run())
    except (BackendError, JournalError, asyncio.CancelledError) as exc:
        execution.error = exc
    return execution


class FullDisk(Notes):
    """A journal that cannot be written any more when the first rows come."""

    def record(self, key, event):
        if isinstance(event, Settled):
            raise JournalError("database or disk is full")
        super().record(key, event)


def statuses(execution):
    return execution.results.table("mx")["status"].to_pylist()


def verdicts(execution):
    return execution.results.table("mx")["result"].to_pylist()


class TestEvents:
    @pytest.mark.slow
    @given(st.permutations(range(5)), st.integers(1, 5), st.booleans(), st.booleans())
    def test_rows_may_come_in_any_order_and_number(
        self, order, at_once, with_positions, in_capitals
    ):
        script = []
        for start in range(0, 5, at_once):
            some = order[start : start + at_once]
            emails = [
                EMAILS[i].upper().replace("A@", "a@") if in_capitals and i == 0 else EMAILS[i]
                for i in some
            ]
            rows = pa.concat_tables(
                [
                    rows_of([e], ["valid", "invalid"][i % 2])
                    for e, i in zip(emails, some, strict=True)
                ]
            )
            script.append(Settled(rows, positions=np.array(some) if with_positions else None))
        done = execute(ScriptedBackend(script))
        assert verdicts(done) == ["valid", "invalid", "valid", "invalid", "valid"]
        assert done.progress.verdicts == {"valid": 3, "risky": 0, "invalid": 2, "unknown": 0}
        assert (done.progress.state, done.progress.settled) == ("done", 5)

    def test_every_event_reaches_the_snapshot(self):
        seen = []
        backend = ScriptedBackend(
            [
                QuotaSeen(Quota(100, 40, 60)),
                Submitted(tuple(Job(str(i), e, "mx", 0.0) for i, e in enumerate(EMAILS)), "t1"),
                Waiting(2.0, "polling 5 jobs"),
                Settled(rows_of(EMAILS[:4])),
                Settled(
                    complete_table(
                        {"email": pa.array(EMAILS[4:]), "status": pa.array(["error"])}, 1
                    ),
                ),
            ]
        )
        execution = Execution(pa.array(EMAILS), backend, RunSettings(ValidationType.MX))
        execution.subscribe(seen.append)
        asyncio.run(execution.run())
        assert [(p.settled, p.submitted, p.message) for p in seen] == [
            (0, 0, ""),
            (0, 0, ""),
            (0, 5, ""),
            (0, 5, "polling 5 jobs"),
            (4, 5, ""),
            (5, 5, ""),
            (5, 5, ""),
        ]
        assert seen[-1].quota == Quota(100, 40, 60)
        assert (seen[-1].errors, seen[-1].state) == (1, "done")

    def test_a_notice_is_kept_once(self):
        done = execute(ScriptedBackend([Noticed("slow"), Noticed("dead"), Noticed("slow")]))
        assert done.notices == ["slow", "dead"]

    def test_an_answer_that_the_journal_cannot_keep_is_in_the_partial_result(self):
        script = [Settled(rows_of(EMAILS[:2])), Settled(rows_of(EMAILS[2:]))]
        done = execute(ScriptedBackend(script), journal=FullDisk())
        assert isinstance(done.error, JournalError)
        assert statuses(done) == ["done"] * 2 + ["pending"] * 3

    def test_an_answer_about_another_address_is_an_error_of_the_backend(self):
        done = execute(
            ScriptedBackend([Settled(rows_of(EMAILS[:1])), Settled(rows_of(["eve@example.org"]))])
        )
        assert "'eve@example.org'" in str(done.error)
        assert statuses(done) == ["done"] + ["pending"] * 4

    def test_an_empty_column_makes_no_request(self):
        backend = ScriptedBackend()
        done = execute(backend, [])
        assert (backend.asked, done.progress.state, done.results.table("mx").num_rows) == (
            [],
            "done",
            0,
        )


class TestEnds:
    def test_a_backend_that_fails_leaves_what_was_settled(self):
        done = execute(
            ScriptedBackend([Settled(rows_of(EMAILS[:2])), BackendError("dead\n" + "x" * 999)])
        )
        assert statuses(done) == ["done"] * 2 + ["pending"] * 3
        assert done.progress.state == "failed"
        assert len(done.progress.message) == 300

    def test_any_other_error_is_reported_and_raised_unchanged(self):
        execution = Execution(
            pa.array(EMAILS),
            ScriptedBackend([ZeroDivisionError("a bug")]),
            RunSettings(ValidationType.MX),
        )
        with pytest.raises(ZeroDivisionError):
            asyncio.run(execution.run())
        assert (execution.progress.state, execution.progress.message) == ("failed", "a bug")

    @each_row("free", [False, True])
    def test_cancelling_closes_the_backends_session_and_keeps_rows(self, free):
        backend = ScriptedBackend(
            [Settled(rows_of(EMAILS[:1]), positions=np.array([0])), Noticed("")], free=free
        )
        journal = Notes()

        async def main():
            import threading

            backend.gate = threading.Event()  # never set: the second event never comes
            execution = Execution(
                pa.array(EMAILS), backend, RunSettings(ValidationType.MX), journal=journal
            )
            task = asyncio.ensure_future(execution.run())
            while not execution.progress.settled:
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return execution

        execution = asyncio.run(main())
        assert backend.closed.is_set()
        assert journal.is_closed
        assert (execution.progress.state, statuses(execution)) == (
            "cancelled",
            ["done"] + ["pending"] * 4,
        )

    @each_row("script", [[], [BackendError("dead")]], ids=["well", "badly"])
    @each_row("owned", [True, False])
    def test_sockets_of_a_backend_of_its_own_are_closed_on_any_way_out(self, script, owned):
        backend = ScriptedBackend(script)
        execute(backend, owns_backend=owned)
        assert backend.is_closed == owned

    def test_a_listener_that_fails_is_dropped_and_the_run_goes_on(self, caplog):
        seen = []

        def fails_later(progress):
            if progress.settled:
                raise RuntimeError("no paper")

        execution = Execution(pa.array(EMAILS), ScriptedBackend(), RunSettings(ValidationType.MX))
        for listener in (fails_later, seen.append):
            execution.subscribe(listener)
        asyncio.run(execution.run())
        assert execution.progress.state == "done"
        assert execution.listeners == [seen.append]
        assert seen[-1].state == "done"
        assert [r.message for r in caplog.records] == ["a progress listener failed and was dropped"]


class TestLimits:
    @each_row("limit", [0, 1, 4, 5, 99])
    @each_row("free", [False, True])
    def test_no_more_than_the_limit_are_asked_about(self, limit, free):
        backend = ScriptedBackend(free=free)
        done = execute(backend, limit=limit)
        assert [e for batch in backend.asked for e in batch] == EMAILS[:limit]
        assert done.newly_verified == min(limit, 5)
        assert done.progress.state == ("done" if limit >= 5 else "stopped")
        if limit < 5:
            unit, plural = ("row", "rows") if free else ("address", "addresses")
            ways = {
                True: "the next call begins again, since this type keeps no journal",
                False: "give journal=, since without a journal the next call begins again",
            }
            assert (
                done.progress.message
                == f"{5 - limit} {unit if limit == 4 else plural} left; {ways[free]}"
            )

    def test_with_a_journal_another_call_goes_on(self):
        done = execute(ScriptedBackend(), limit=2, journal=Notes())
        assert done.progress.message == "3 addresses left; call again to go on"

    def test_offline_without_a_journal_says_so(self):
        assert (
            execute(ScriptedBackend(), offline=True).progress.message
            == "5 addresses left: offline, and without a journal"
        )

    def test_what_the_journal_knows_does_not_count(self):
        backend = ScriptedBackend()
        done = execute(backend, limit=2, journal=Notes(known=EMAILS[:2]))
        assert backend.asked == [EMAILS[2:4]]
        assert (done.progress.from_journal, statuses(done)) == (2, ["done"] * 4 + ["pending"])

    def test_offline_makes_no_request(self):
        backend = ScriptedBackend()
        done = execute(backend, offline=True, journal=Notes(known=EMAILS[:2]))
        assert backend.asked == []
        assert done.progress.message == "3 addresses left: offline, and not in the journal"


class TestQuota:
    SHORT = Deferred(tuple(EMAILS[2:]), "quota", retry_after=60.0)

    def test_stop_leaves_the_rest_pending(self):
        done = execute(ScriptedBackend([Settled(rows_of(EMAILS[:2])), self.SHORT]))
        assert (done.error, done.progress.state) == (None, "stopped")
        assert done.progress.message == (
            "3 addresses left: today's quota is used up; "
            "give journal=, since without a journal the next call begins again"
        )

    def test_with_a_journal_a_later_call_goes_on(self):
        done = execute(ScriptedBackend([Settled(rows_of(EMAILS[:2])), self.SHORT]), journal=Notes())
        assert done.progress.message == (
            "3 addresses left: today's quota is used up; call again to go on, usually after 00:00 UTC"
        )

    def test_the_day_on_which_all_is_done_is_named(self):
        backend = ScriptedBackend(
            [QuotaSeen(Quota(2, 2, 0)), Settled(rows_of(EMAILS[:2])), self.SHORT]
        )
        # 2027-01-15 08:00 UTC.
        done = execute(backend, journal=Notes(), clock=lambda: 1_800_000_000.0)
        assert done.progress.message.endswith(
            "after 00:00 UTC; at this quota all is done on 2027-01-17"
        )

    def test_raise_reports_the_numbers(self):
        done = execute(
            ScriptedBackend(
                [QuotaSeen(Quota(100, 98, 2)), Settled(rows_of(EMAILS[:2])), self.SHORT]
            ),
            on_quota="raise",
        )
        assert isinstance(done.error, QuotaExceeded)
        assert (done.error.limit, done.error.remaining, done.error.requested) == (100, 2, 3)
        assert statuses(done) == ["done"] * 2 + ["pending"] * 3

    def test_wait_asks_again_for_what_was_deferred_and_no_more(self):
        naps = Naps()
        backend = ScriptedBackend(
            [Settled(rows_of(EMAILS[:2])), self.SHORT],
            [Deferred(tuple(EMAILS[2:4]), "quota"), Settled(rows_of(EMAILS[4:]))],
            [Deferred(tuple(EMAILS[2:4]), "quota", retry_after=0.0)],
        )
        done = execute(backend, on_quota="wait", sleep=naps)
        assert backend.asked == [EMAILS, EMAILS[2:], EMAILS[2:4], EMAILS[2:4]]
        assert naps.taken == [60.0, QUOTA_INTERVAL, MIN_QUOTA_INTERVAL]
        assert (done.progress.state, done.newly_verified) == ("done", 5)

    @each_row("why", ["gave_up", "uncertain", "rejected"])
    def test_other_delays_do_not_start_a_wait(self, why):
        naps = Naps()
        done = execute(ScriptedBackend([Deferred(tuple(EMAILS), why)]), on_quota="wait", sleep=naps)
        assert (naps.taken, done.progress.state) == ([], "stopped")


class TestJournal:
    def test_each_event_is_written_before_it_counts(self):
        journal = Notes()
        jobs = tuple(Job(email, email, "mx", 0.0) for email in EMAILS)
        backend = ScriptedBackend([Submitted(jobs, "t"), Settled(rows_of(EMAILS))])
        execution = Execution(
            pa.array(EMAILS), backend, RunSettings(ValidationType.MX), journal=journal
        )
        behind = []
        execution.subscribe(
            lambda progress: behind.append(
                (len(journal.recorded), progress.submitted, progress.settled)
            )
        )
        asyncio.run(execution.run())
        assert [type(e).__name__ for e in journal.recorded] == ["Submitted", "Settled"]
        assert behind == [(0, 0, 0), (1, 5, 0), (2, 5, 5), (2, 5, 5)]

    def test_the_backend_claims_batches_in_the_journal_under_the_key(self):
        journal, backend = Notes(), ScriptedBackend()
        execute(backend, journal=journal)
        assert backend.batches[0].claim(Submitting("t", ("a@example.org",), 7)) == (
            "a@example.org",
        )
        assert journal.recorded[-1] == Submitting("t", ("a@example.org",), 7)
        execute(backend)
        assert backend.batches[1].claim is None

    def test_what_another_run_has_is_given_to_the_backend_again_and_does_not_count_for_the_limit(
        self,
    ):
        naps = Naps()
        backend = ScriptedBackend(
            [Settled(rows_of(EMAILS[:1])), Deferred((EMAILS[1],), "elsewhere")],
            [Settled(rows_of(EMAILS[1:2]))],
        )
        done = execute(backend, limit=2, journal=Notes(), sleep=naps)
        assert backend.asked == [EMAILS[:2], EMAILS[1:2]]
        assert (done.newly_verified, len(naps.taken)) == (2, 1)

    def test_jobs_already_paid_for_are_polled_and_not_submitted(self):
        jobs = [Job("j1", EMAILS[1], "mx", 0.0), Job("j9", "gone@example.org", "mx", 0.0)]
        backend = ScriptedBackend([Settled(rows_of(EMAILS), job_ids=())])
        execute(backend, journal=Notes(jobs=jobs))
        assert backend.asked == [[EMAILS[0], *EMAILS[2:]]]
        assert backend.continued == [[jobs[0]]]

    def test_jobs_are_polled_although_nothing_may_be_submitted(self):
        jobs = [Job("j1", EMAILS[1], "mx", 0.0)]
        backend = ScriptedBackend([Settled(rows_of(EMAILS[1:2]))])
        execute(backend, limit=0, journal=Notes(jobs=jobs))
        assert (backend.asked, backend.continued) == ([[]], [jobs])


class TestScreen:
    def screener(self):
        moment = datetime(2026, 1, 2, tzinfo=UTC)
        return Screener(LocalBackend(), with_dns=False, clock=lambda: moment)

    def test_what_is_malformed_is_settled_here_and_journalled(self):
        backend, journal = ScriptedBackend(), Notes()
        done = execute(backend, ["nobody", *EMAILS, "x@"], screen=self.screener(), journal=journal)
        assert backend.asked == [EMAILS]
        assert verdicts(done) == ["invalid", *["valid"] * 5, "invalid"]
        assert len(journal.recorded) == 2

    def test_a_services_rows_get_suggestion_and_normal_form(self):
        done = execute(
            ScriptedBackend(), ["INFO@gmial.com", "Ada@example.org"], screen=self.screener()
        )
        table = done.results.table("mx")
        assert table["suggestion"].to_pylist() == ["info@gmail.com", None]
        assert table["normalized"].to_pylist() == ["info@gmial.com", "Ada@example.org"]


def test_unique_addresses_ignore_the_domains_case_alone():
    unique, codes = unique_addresses(
        pa.array(["a@X.org", "b@x.org", "a@x.ORG", "A@x.org", "nobody", "NOBODY"])
    )
    assert unique.to_pylist() == ["a@x.org", "b@x.org", "A@x.org", "nobody", "NOBODY"]
    assert codes.tolist() == [0, 1, 0, 2, 3, 4]
