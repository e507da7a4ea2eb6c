"""The journal: durable, resumable, safe with two processes, and never harmful to a file."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.backend import (
    GRACE,
    Deferred,
    Job,
    KnownPace,
    Noticed,
    Paced,
    Quota,
    QuotaSeen,
    Settled,
    Submitted,
    Submitting,
    Waiting,
)
from mailverdict.errors import JournalError
from mailverdict.model.table import SCHEMA, table_to_rows
from mailverdict.model.verification import Fault, Verification
from mailverdict.runs.journal.journal import Journal
from mailverdict.runs.journal.recall import digest_of
from mailverdict.runs.retry import ERROR_MAX_AGE, HOLD, MAX_HOLD
from tests.doubles.clock import Clock
from tests.doubles.tables import rows_to_table

KEY = "smtp http://verify.test"
NOON = 1_700_000_000.0 // 86_400 * 86_400 + 43_200


@pytest.fixture
def clock() -> Clock:
    return Clock(NOON)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "er" / "journal.db"


@pytest.fixture
def journal(path: Path, clock: Clock) -> Iterator[Journal]:
    with Journal(path, clock=clock) as opened:
        yield opened


def column(*emails: str) -> pa.StringArray:
    return pa.array(emails, pa.string())


def answers(
    *emails: str, result: str = "valid", reasons: tuple[str, ...] = (), **more: Any
) -> pa.Table:
    rows = [Verification(email, "smtp", result, reasons=reasons, **more) for email in emails]
    return rows_to_table(rows, source="remote")


def trouble(*emails: str) -> pa.Table:
    rows = [
        {"email": email, "status": "error", "validation_type": "smtp", "source": "remote"}
        for email in emails
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def jobs(*emails: str) -> tuple[Job, ...]:
    return tuple(Job(f"job of {email}", email, "smtp", NOON) for email in emails)


def known(journal: Journal, *emails: str, **options: Any) -> dict[str, str]:
    rows = journal.settled(
        KEY, column(*emails), **{"newer_than": 0.0, "refresh": frozenset(), **options}
    )
    return dict(zip(rows["email"].to_pylist(), rows["result"].to_pylist(), strict=True))


def claim(
    journal: Journal, *emails: str, token: str = "t", used: int | None = 7, key: str = KEY
) -> list[str]:
    return list(journal.claim(key, Submitting(token, emails, used)))


def may_be_sent(path: Path, clock: Clock, *emails: str, token: str = "another") -> list[str]:
    """Which of these addresses a run that begins now may send; it sends nothing."""
    with Journal(path, clock=clock) as journal:
        claimed = claim(journal, *emails, token=token)
        journal.record(KEY, Deferred((), "rejected", token=token))
        return claimed


def uncertain(path: Path, clock: Clock, *emails: str) -> list[str]:
    """Which of these addresses may have been paid for."""
    with Journal(path, clock=clock) as journal:
        held: list[str] = journal.unclaimed(KEY, column(*emails)).held.to_pylist()
        return held


def test_what_is_settled_is_given_back_unchanged(journal: Journal) -> None:
    rich = Verification(
        "Ada@example.org",
        "smtp",
        "risky",
        reasons=("catch_all", "on_holiday"),
        checks={"syntax": True, "smtp": False},
        role=False,
        free=True,
        catch_all=True,
        protected=None,
        reason="SMTP",
        errors=(Fault("SMTP", 'said "no"\nand left \x00 ü \u2028'),),
        metadata={
            "mx_records": ["mx.example.org"],
            "validated_at": "2026-01-02T03:04:05.000006+00:00",
            "n": {"a": [1, None]},
        },
        extra={"score": 7},
    )
    bare = Verification("eve@example.org", "mx", "valid")
    journal.record(KEY, Settled(rows_to_table([rich, bare], source="remote")))
    rows = journal.settled(KEY, column("eve@example.org", "Ada@example.org"), newer_than=0.0)
    assert rows.schema == SCHEMA
    assert table_to_rows(rows) == [bare, rich]
    assert rows["source"].to_pylist() == ["journal", "journal"]


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
WORD = st.text(st.characters(exclude_characters=";", exclude_categories=["Cs"]), min_size=1)
VERIFICATIONS = st.builds(
    Verification,
    email=st.just("a@b.org"),
    validation_type=st.sampled_from(["smtp", "mx", "odd"]),
    result=st.sampled_from(["valid", "risky", "invalid", "unknown"]),
    reasons=st.lists(WORD, max_size=3).map(lambda words: ("first", *words)),
    checks=st.dictionaries(TEXT, st.booleans(), max_size=3),
    role=st.none() | st.booleans(),
    catch_all=st.none() | st.booleans(),
    reason=st.none() | TEXT,
    metadata=st.dictionaries(st.sampled_from(["x", "y"]), TEXT, max_size=2),
)


@given(verifications=st.lists(VERIFICATIONS, min_size=1, max_size=6))
def test_any_verification_survives_the_journal(
    tmp_path_factory: pytest.TempPathFactory, verifications: list[Verification]
) -> None:
    named = [
        Verification(**{**fields_of(v), "email": f"user{i}@b.org"})
        for i, v in enumerate(verifications)
    ]
    with Journal(tmp_path_factory.mktemp("j") / "j.db") as journal:
        journal.record(KEY, Settled(rows_to_table(named, source="remote")))
        rows = journal.settled(KEY, column(*(v.email for v in named)), newer_than=0.0)
    again = [v for v in named if not (v.result == "unknown" and v.reasons[0] in ("throttled",))]
    assert table_to_rows(rows) == again


def fields_of(v: Verification) -> dict[str, Any]:
    return {name: getattr(v, name) for name in Verification.__slots__}


def test_an_address_is_known_whatever_the_case_of_its_domain_but_not_of_its_local_part(
    journal: Journal,
) -> None:
    journal.record(KEY, Settled(answers("Ada@Example.ORG")))
    assert known(journal, "Ada@example.org", "Ada@EXAMPLE.org", "ada@example.org") == {
        "Ada@example.org": "valid",
        "Ada@EXAMPLE.org": "valid",
    }


def test_only_what_was_asked_for_is_given_and_only_under_its_key(journal: Journal) -> None:
    journal.record(KEY, Settled(answers("a@x.org", "b@x.org")))
    journal.record("mx local", Settled(answers("c@x.org", result="invalid")))
    assert known(journal, "b@x.org", "c@x.org", "d@x.org") == {"b@x.org": "valid"}


def test_nothing_is_known_at_first(journal: Journal) -> None:
    assert known(journal, "a@x.org") == {}
    assert known(journal) == {}
    assert journal.settled(KEY, column("a@x.org"), newer_than=0.0).schema == SCHEMA


def test_a_newer_answer_replaces_the_older(journal: Journal) -> None:
    journal.record(KEY, Settled(answers("a@x.org")))
    journal.record(KEY, Settled(answers("a@x.org", result="invalid")))
    assert known(journal, "a@x.org") == {"a@x.org": "invalid"}


def test_an_answer_older_than_asked_for_is_not_given(journal: Journal, clock: Clock) -> None:
    journal.record(KEY, Settled(answers("a@x.org")))
    assert known(journal, "a@x.org", newer_than=NOON) == {"a@x.org": "valid"}
    assert known(journal, "a@x.org", newer_than=NOON + 1) == {}


@pytest.mark.parametrize("reason", ["throttled", "rate_limited", "greylisted"])
def test_a_temporary_answer_is_never_reused(journal: Journal, reason: str) -> None:
    journal.record(KEY, Settled(answers("a@x.org", result="unknown", reasons=(reason, "role"))))
    assert known(journal, "a@x.org") == {}
    assert claim(journal, "a@x.org") == ["a@x.org"]


def test_other_unknowns_are_answers_until_refreshed(journal: Journal) -> None:
    journal.record(KEY, Settled(answers("a@x.org", result="unknown", reasons=("mailbox_full",))))
    assert known(journal, "a@x.org") == {"a@x.org": "unknown"}
    assert known(journal, "a@x.org", refresh=frozenset({"unknown"})) == {}


def test_a_technical_failure_is_kept_for_an_hour(journal: Journal, clock: Clock) -> None:
    journal.record(KEY, Settled(trouble("a@x.org")))
    assert known(journal, "a@x.org") == {"a@x.org": None}
    assert known(journal, "a@x.org", refresh=frozenset({"error"})) == {}
    clock.now += ERROR_MAX_AGE
    assert known(journal, "a@x.org") == {}


def test_everything_survives_closing(path: Path, clock: Clock) -> None:
    with Journal(path, clock=clock) as first:
        first.record(KEY, Settled(answers("a@x.org")))
        claim(first, "b@x.org")
        first.record(KEY, Submitted(jobs("b@x.org"), "t"))
        claim(first, "c@x.org", token="u")
    with Journal(path, clock=clock) as second:
        assert known(second, "a@x.org", "b@x.org") == {"a@x.org": "valid"}
        assert second.in_flight(KEY, column("b@x.org", "a@x.org")) == list(jobs("b@x.org"))
        assert second.unclaimed(KEY, column("a@x.org", "b@x.org", "c@x.org")).held.to_pylist() == [
            "c@x.org"
        ]


def test_jobs_in_flight_are_given_for_the_addresses_asked_until_they_are_settled(
    journal: Journal,
) -> None:
    journal.record(KEY, Submitted(jobs("a@X.org", "b@x.org")))
    assert [job.email for job in journal.in_flight(KEY, column("a@x.org"))] == ["a@X.org"]
    assert journal.in_flight("mx other", column("a@x.org")) == []
    journal.record(KEY, Settled(answers("a@X.org"), ("job of a@X.org",)))
    assert [job.email for job in journal.in_flight(KEY, column("a@x.org", "b@x.org"))] == [
        "b@x.org"
    ]


def test_a_job_that_is_given_up_stays_in_flight(journal: Journal) -> None:
    journal.record(KEY, Submitted(jobs("a@x.org")))
    journal.record(KEY, Deferred(("a@x.org",), "gave_up"))
    assert len(journal.in_flight(KEY, column("a@x.org"))) == 1
    assert claim(journal, "a@x.org") == []


def test_events_that_change_nothing_are_taken(journal: Journal) -> None:
    for event in (
        Waiting(1.0, "x"),
        Noticed("x"),
        QuotaSeen(Quota(1, 1, 0)),
        Settled(SCHEMA.empty_table()),
    ):
        journal.record(KEY, event)
    assert known(journal, "a@x.org") == {}


def test_an_address_is_sent_by_one_at_a_time(path: Path, clock: Clock) -> None:
    with Journal(path, clock=clock) as one, Journal(path, clock=clock) as two:
        assert claim(one, "a@x.org", "b@x.org") == ["a@x.org", "b@x.org"]
        assert claim(one, "a@x.org") == [], "nor by itself, before it has heard of it"
        assert claim(two, "b@X.org", "c@x.org") == ["c@x.org"]
        assert claim(one, "c@x.org", token="u") == ["c@x.org"], (
            "the other one has claimed a part, and so nothing"
        )
        assert claim(two, "a@x.org", key="mx other") == ["a@x.org"], (
            "another key is another question"
        )
        one.record(KEY, Deferred((), "rejected", token="t"))
        assert claim(two, "a@x.org", "b@x.org") == ["a@x.org", "b@x.org"]


def test_what_another_has_settled_since_we_began_is_not_claimed_and_is_known(
    path: Path, clock: Clock
) -> None:
    temporary = {"result": "unknown", "reasons": ("rate_limited",)}
    with Journal(path, clock=clock) as one, Journal(path, clock=clock) as two:
        claim(one, "a@x.org", "b@x.org")
        one.record(KEY, Submitted(jobs("a@x.org", "b@x.org"), "t"))
        one.record(KEY, Settled(answers("a@x.org")))
        one.record(KEY, Settled(answers("b@x.org", **temporary)))
        assert claim(two, "a@x.org", "b@x.org") == []
        assert known(two, "a@x.org", "b@x.org") == {"a@x.org": "valid", "b@x.org": "unknown"}
        assert claim(two, "a@x.org", "b@x.org") == []
    with Journal(path, clock=clock) as later:
        assert known(later, "a@x.org", "b@x.org") == {"a@x.org": "valid"}
        assert claim(later, "a@x.org", "b@x.org") == ["a@x.org", "b@x.org"], (
            "claiming what is known is a refresh"
        )


def test_an_address_that_is_asked_again_stays_with_its_run_until_that_ends(
    path: Path, clock: Clock
) -> None:
    refused = Settled(
        answers("a@x.org", result="unknown", reasons=("rate_limited",)), is_asked_again=True
    )
    with Journal(path, clock=clock) as one:
        one.record(KEY, refused)
        with Journal(path, clock=clock) as two:
            assert two.unclaimed(KEY, column("a@x.org")).elsewhere.to_pylist() == ["a@x.org"]
            assert claim(two, "a@x.org") == []
        assert claim(one, "a@x.org") == ["a@x.org"]
        one.record(KEY, Submitted(jobs("a@x.org"), "t"))
        one.record(KEY, refused)
        assert uncertain(path, clock, "a@x.org") == [], "it was not paid for again yet"
    assert may_be_sent(path, clock, "a@x.org") == ["a@x.org"]


def test_our_own_answers_never_block_asking_again(journal: Journal) -> None:
    known(journal, "a@x.org")
    journal.record(KEY, Settled(answers("a@x.org", result="unknown", reasons=("throttled",))))
    assert claim(journal, "a@x.org") == ["a@x.org"]


def test_an_announced_submission_is_uncertain_until_another_event(path: Path, clock: Clock) -> None:
    both = ("a@x.org", "b@x.org")
    leave_behind(path, clock, emails=both)
    with Journal(path, clock=clock) as journal:
        left = journal.unclaimed(KEY, column(*both))
        assert (left.held.to_pylist(), left.free_at) == (list(both), NOON + HOLD)
        assert claim(journal, "a@x.org") == []
        journal.record(KEY, Submitted(jobs("a@x.org"), "t"))
        assert uncertain(path, clock, *both) == ["b@x.org"], "what has no job is still uncertain"
        journal.record(KEY, Settled(answers("b@x.org", result="invalid")))
        assert uncertain(path, clock, *both) == []


def test_a_refused_submission_is_free_at_once(journal: Journal) -> None:
    claim(journal, "a@x.org")
    journal.record(KEY, Deferred((), "rejected", token="t"))
    assert claim(journal, "a@x.org") == ["a@x.org"]


def test_a_lost_submission_is_held_for_a_day_then_two_then_four(
    path: Path, journal: Journal, clock: Clock
) -> None:
    for days in (1, 2, 4):
        assert claim(journal, "a@x.org") == ["a@x.org"]
        journal.record(KEY, Deferred(("a@x.org",), "uncertain", token="t"))
        clock.now += days * HOLD - 1
        assert claim(journal, "a@x.org") == [], f"held for {days} days"
        assert uncertain(path, clock, "a@x.org") == ["a@x.org"]
        clock.now += 1
    assert claim(journal, "a@x.org") == ["a@x.org"]


def leave_behind(
    path: Path, clock: Clock, used_before: int | None = 7, emails: tuple[str, ...] = ("a@x.org",)
) -> Submitting:
    """A run that ends between announcing a submission and hearing of it."""
    lost = Submitting("t", emails, used_before)
    with Journal(path, clock=clock) as dead:
        assert dead.claim(KEY, lost) == emails
    return lost


@pytest.mark.parametrize(
    ("used_before", "used", "later", "is_free", "why"),
    [
        (7, 7, GRACE, True, "nothing was counted"),
        (7, 8, GRACE, False, "something was counted: it may have been ours"),
        (7, 7, GRACE - 1, False, "too early: the service may still be counting"),
        (7, 7, 50_000.0, False, "another day: the same number by chance"),
        (0, 0, 50_000.0, False, "another day, from zero to zero"),
        (None, 7, GRACE, False, "nothing to compare with"),
        (7, 3, GRACE, False, "a new day began"),
    ],
)
def test_a_quota_reading_resolves_what_an_ended_process_left(
    path: Path,
    clock: Clock,
    used_before: int | None,
    used: int,
    later: float,
    is_free: bool,
    why: str,
) -> None:
    leave_behind(path, clock, used_before)
    clock.now += later
    with Journal(path, clock=clock) as journal:
        journal.record(KEY, QuotaSeen(Quota(100, used, 100 - used)))
        assert (claim(journal, "a@x.org") == ["a@x.org"]) is is_free, why


def test_a_lost_submission_is_resolved_once_and_not_by_a_later_coincidence(
    path: Path, clock: Clock
) -> None:
    leave_behind(path, clock)
    clock.now += GRACE
    with Journal(path, clock=clock) as journal:
        journal.record(KEY, QuotaSeen(Quota(100, 8, 92)))
        journal.record(KEY, QuotaSeen(Quota(100, 7, 93)))
        assert claim(journal, "a@x.org") == []


def lost_batches(path: Path, clock: Clock) -> list[Submitting]:
    with Journal(path, clock=clock) as journal:
        return journal.lost_batches(KEY)


def test_a_submission_that_was_not_counted_is_kept_in_its_order_until_it_is_sent_again(
    path: Path, clock: Clock
) -> None:
    emails = ("b@x.org", "a@x.org")
    for _ in range(2):  # the second run ends, too, before it hears of its submission
        lost = leave_behind(path, clock, emails=emails)
        assert lost_batches(path, clock) == [], "not known yet"
        clock.now += GRACE
        with Journal(path, clock=clock) as journal:
            journal.record(KEY, QuotaSeen(Quota(100, 7, 93)))
        assert lost_batches(path, clock) == [lost]
    with Journal(path, clock=clock) as journal:
        journal.claim(KEY, lost)
        journal.record(KEY, Submitted(jobs(*emails), "t"))
    assert lost_batches(path, clock) == []


@pytest.mark.parametrize(
    ("other", "later", "why"),
    [
        (("c@x.org", "a@x.org"), 0.0, "one of its addresses is in another submission"),
        ((), MAX_HOLD + 1, "its token may be forgotten"),
    ],
)
def test_a_lost_submission_is_forgotten(
    path: Path, clock: Clock, other: tuple[str, ...], later: float, why: str
) -> None:
    leave_behind(path, clock, emails=("a@x.org", "b@x.org"))
    clock.now += GRACE
    with Journal(path, clock=clock) as journal:
        journal.record(KEY, QuotaSeen(Quota(100, 7, 93)))
        assert [each.token for each in journal.lost_batches(KEY)] == ["t"]
        clock.now += later
        claim(journal, *other, token="other")
        assert journal.lost_batches(KEY) == [], why


def test_a_lost_submission_of_which_a_part_was_answered_is_not_sent_again_as_it_was(
    path: Path, clock: Clock
) -> None:
    leave_behind(path, clock, emails=("a@x.org", "b@x.org"))
    with Journal(path, clock=clock) as journal:
        journal.record(KEY, Submitted(jobs("a@x.org"), "t"))
        journal.record(KEY, Deferred(("b@x.org",), "uncertain", token="t"))
        clock.now += HOLD
        assert journal.lost_batches(KEY) == []


@pytest.mark.parametrize(("used", "held_for"), [(7, 0.0), (8, HOLD)])
def test_a_lost_submission_is_sent_again_as_it_was_when_it_is_not_held(
    path: Path, clock: Clock, used: int, held_for: float
) -> None:
    leave_behind(path, clock)
    clock.now += GRACE
    with Journal(path, clock=clock) as journal:
        journal.record(KEY, QuotaSeen(Quota(100, used, 100 - used)))
        assert bool(journal.lost_batches(KEY)) is not held_for
        clock.now += held_for
        assert [each.token for each in journal.lost_batches(KEY)] == ["t"]
        assert claim(journal, "a@x.org") == ["a@x.org"]


@pytest.mark.parametrize(
    ("why", "held_for"), [("uncounted", 0.0), ("uncertain", HOLD), ("rejected", None)]
)
def test_a_submission_without_an_answer_is_sent_again_as_it_was_by_a_later_run(
    path: Path, clock: Clock, why: str, held_for: float | None
) -> None:
    with Journal(path, clock=clock) as journal:
        claim(journal, "a@x.org")
        journal.record(KEY, Deferred(("a@x.org",) if why == "uncertain" else (), why, token="t"))
        assert bool(journal.lost_batches(KEY)) is (held_for == 0.0)
        clock.now += held_for or 0.0
        assert bool(journal.lost_batches(KEY)) is (held_for is not None)
        assert claim(journal, "a@x.org") == ["a@x.org"]


def test_what_is_too_early_to_resolve_is_resolved_later(path: Path, clock: Clock) -> None:
    leave_behind(path, clock)
    with Journal(path, clock=clock) as journal:
        journal.record(KEY, QuotaSeen(Quota(100, 7, 93)))
        clock.now += GRACE
        journal.record(KEY, QuotaSeen(Quota(100, 7, 93)))
        assert claim(journal, "a@x.org") == ["a@x.org"]


def test_the_submission_of_a_running_process_is_not_resolved_by_others(
    path: Path, clock: Clock
) -> None:
    with Journal(path, clock=clock) as alive, Journal(path, clock=clock) as other:
        claim(alive, "a@x.org")
        clock.now += 2 * HOLD
        other.record(KEY, QuotaSeen(Quota(100, 7, 93)))
        assert claim(other, "a@x.org") == []
        assert other.unclaimed(KEY, column("a@x.org")).elsewhere.to_pylist() == ["a@x.org"]


CHILD = """
import os, sys, time
from mailverdict.backend import Submitting
from mailverdict.runs.journal.journal import Journal
journal = Journal(sys.argv[1])
print(len(journal.claim(sys.argv[2], Submitting("t", ("a@x.org", "b@x.org"), 7))), flush=True)
if len(sys.argv) > 3 and not os.fork():
    print(os.getpid(), flush=True)
    time.sleep(600)
sys.stdin.readline()
"""


def child(path: Path, *more: str, inside: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """Another process that sends a@x.org and b@x.org and waits."""
    process = subprocess.Popen(
        [*inside, sys.executable, "-c", CHILD, str(path), KEY, *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "2\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.communicate()


def kill(process: subprocess.Popen[str]) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def who_sends(journal: Journal) -> tuple[list[str], list[str]]:
    """Which of three addresses another run sends, and which may have been paid for."""
    left = journal.unclaimed(KEY, column("a@x.org", "b@x.org", "c@x.org"))
    return left.elsewhere.to_pylist(), left.held.to_pylist()


@pytest.mark.slow
def test_two_processes_never_hold_one_address_and_a_killed_one_holds_nothing(path: Path) -> None:
    process = child(path)
    try:
        with Journal(path) as journal:
            assert claim(journal, "a@x.org", "c@x.org") == ["c@x.org"]
            assert who_sends(journal) == (["a@x.org", "b@x.org"], [])
            kill(process)
            assert who_sends(journal) == ([], ["a@x.org", "b@x.org"])
            journal.record(KEY, QuotaSeen(Quota(100, 8, 92)))
            with Journal(path, clock=lambda: time.time() + HOLD) as later:
                assert claim(later, "a@x.org", "c@x.org") == ["a@x.org", "c@x.org"]
    finally:
        end(process)
    assert [each.name for each in path.parent.iterdir()] == [path.name], (
        "the lock of the killed one was deleted"
    )


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_that_outlives_its_parent_holds_nothing(path: Path) -> None:
    process = child(path, "forks")
    assert process.stdout is not None
    grandchild = int(process.stdout.readline())
    try:
        with Journal(path) as journal:
            assert who_sends(journal) == (["a@x.org", "b@x.org"], [])
            kill(process)
            os.kill(grandchild, 0)
            assert who_sends(journal) == ([], ["a@x.org", "b@x.org"])
    finally:
        os.kill(grandchild, signal.SIGKILL)
        end(process)


UNSHARE = ("unshare", "--pid", "--uts", "--mount-proc", "--fork", "--kill-child")


def can_unshare() -> bool:
    """Whether this system lets the tests run a process as in a container, where it does not see the others."""
    try:
        return subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.slow  # processes; the next tests have two processes without containers
@pytest.mark.skipif(not can_unshare(), reason="needs namespaces of its own")
def test_two_containers_never_hold_one_address_and_a_killed_one_holds_nothing(path: Path) -> None:
    process = child(path, inside=UNSHARE)
    try:
        code = """
import pyarrow
left = Journal(sys.argv[1]).unclaimed(sys.argv[2], pyarrow.array(["a@x.org", "c@x.org"]))
print(left.elsewhere.to_pylist(), left.held.to_pylist())
"""
        assert in_another_process(code, path, inside=UNSHARE) == "['a@x.org'] []\n"
        kill(process)
        assert in_another_process(code, path, inside=UNSHARE) == "[] ['a@x.org']\n"
    finally:
        end(process)


def test_two_runs_of_one_process_are_told_apart_and_a_closed_one_holds_nothing(
    path: Path, clock: Clock
) -> None:
    one, two = Journal(path, clock=clock), Journal(path, clock=clock)
    claim(one, "a@x.org")
    claim(two, "b@x.org", token="u")
    with Journal(path, clock=clock) as other:
        assert who_sends(other) == (["a@x.org", "b@x.org"], [])
        one.close()
        assert who_sends(other) == (["b@x.org"], ["a@x.org"])
    two.close()


def in_another_process(code: str, path: Path, inside: tuple[str, ...] = ()) -> str:
    code = f"import sys; from mailverdict.runs.journal.journal import Journal; {code.strip()}"
    command = [*inside, sys.executable, "-c", code, str(path), KEY]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
def test_opening_a_journal_twice_in_a_process_keeps_its_locks(path: Path) -> None:
    """Without them the other process deletes the write-ahead log, and the job is lost."""
    with Journal(path) as journal:
        Journal(path).close()
        in_another_process("Journal(sys.argv[1]).close()", path)
        journal.record(KEY, Submitted(jobs("a@x.org")))
        assert "in_flight=1" in in_another_process("print(Journal(sys.argv[1]).summary())", path)


@pytest.mark.slow
def test_threads_share_a_journal(journal: Journal) -> None:
    def work(number: int) -> None:
        for i in range(10):
            journal.record(KEY, Settled(answers(f"user{number}.{i}@x.org")))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(known(journal, *(f"user{n}.{i}@x.org" for n in range(4) for i in range(10)))) == 40


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 4])
def test_many_processes_may_create_one_file_at_once(path: Path, number: int) -> None:
    code = "import sys; from mailverdict.runs.journal.journal import Journal; Journal(sys.argv[1]).close()"
    processes = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(number)]
    assert [process.wait() for process in processes] == [0] * number


# Of one that ended well and one that was killed.
FORMAT_1 = Path(__file__).with_name("format_1.sql")
OLD_AND_GIVEN = (
    "settled@x.org",
    "limited@x.org",
    "job@X.org",
    "polled@x.org",
    "held@x.org",
    "unanswered2@x.org",
    "unanswered1@x.org",
    "uncounted2@x.org",
    "uncounted1@x.org",
    "leased@x.org",
)


@pytest.fixture
def old(path: Path, clock: Clock) -> Path:
    """A journal of the first form, a minute after its last event."""
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as writing:
        writing.executescript(FORMAT_1.read_text())
        writing.execute("PRAGMA journal_mode = WAL")
    clock.now = NOON + 120
    return path


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as reader:
        return list(reader.iterdump())


def test_a_journal_of_the_first_form_is_converted_and_nothing_is_paid_twice(
    old: Path, clock: Clock
) -> None:
    before = dump(old)
    unanswered = Submitting("unanswered", ("unanswered2@x.org", "unanswered1@x.org"), 8)
    uncounted = Submitting("uncounted", ("uncounted2@x.org", "uncounted1@x.org"), 7)
    polled = [
        Job(f"job of {email}", email, "smtp", at)
        for email, at in (("job@X.org", NOON), ("polled@x.org", NOON + 60))
    ]
    with Journal(old, clock=clock) as journal:
        assert known(journal, *OLD_AND_GIVEN) == {"settled@x.org": "valid"}
        rows = journal.settled("local:mx#0123", column("mx@x.org"), newer_than=0.0)
        assert rows["reasons"].to_pylist() == ["no_mx_record"]
        assert journal.adopt(KEY, column(*OLD_AND_GIVEN)) == polled
        left = journal.unclaimed(KEY, column(*OLD_AND_GIVEN))
        assert left.held.to_pylist() == ["held@x.org", "unanswered2@x.org", "unanswered1@x.org"]
        assert left.free_at == NOON + HOLD
        assert claim(journal, *OLD_AND_GIVEN) == [
            "settled@x.org",
            "limited@x.org",
            *uncounted.emails,
            "leased@x.org",
        ], "whether an answer is good enough is another question"
        assert journal.lost_batches(KEY) == [uncounted]
        assert journal.seconds_to_resolve(KEY) == 0.0
        journal.record(KEY, QuotaSeen(Quota(100, 8, 92)))
        assert journal.lost_batches(KEY) == [uncounted, unanswered]
        clock.now += HOLD
        assert [each.token for each in journal.lost_batches(KEY)] == [
            "maybe",
            "uncounted",
            "unanswered",
        ]
        assert journal.known_pace("http://verify.test") == KnownPace(20.0, 40.0, NOON)
        counts = [
            (each.key, each.settled, each.in_flight, each.uncertain) for each in journal.summary()
        ]
        assert counts == [("local:mx#0123", 1, 0, 0), (KEY, 2, 2, 1)]
        assert sorted(run.settled for run in journal.runs(9)) == [1, 2]
    (kept,) = old.parent.glob("*.format1")
    assert kept.stat().st_mode & 0o077 == 0
    assert dump(kept) == before


def test_a_submission_that_is_lost_again_after_the_conversion_is_held_for_longer(
    old: Path, clock: Clock
) -> None:
    clock.now = NOON + HOLD
    with Journal(old, clock=clock) as journal:
        assert claim(journal, "held@x.org") == ["held@x.org"]
        journal.record(KEY, Deferred(("held@x.org",), "uncertain", token="t"))
        assert journal.unclaimed(KEY, column("held@x.org")).free_at == clock.now + 2 * HOLD


def test_the_first_journals_had_neither_paces_nor_the_order_of_submissions(
    old: Path, clock: Clock
) -> None:
    with closing(sqlite3.connect(old)) as writing:
        writing.executescript("DROP TABLE paces; DROP TABLE batches;")
    with Journal(old, clock=clock) as journal:
        assert known(journal, *OLD_AND_GIVEN) == {"settled@x.org": "valid"}
        assert len(journal.in_flight(KEY, column(*OLD_AND_GIVEN))) == 2
        assert len(journal.unclaimed(KEY, column(*OLD_AND_GIVEN)).held) == 3
        journal.record(KEY, QuotaSeen(Quota(100, 8, 92)))
        assert claim(journal, "unanswered1@x.org") == ["unanswered1@x.org"]
        assert journal.lost_batches(KEY) == []
        assert journal.known_pace("http://verify.test") is None


@pytest.mark.slow  # four processes, as in the test of creating a file
def test_many_processes_may_convert_one_file_at_once(old: Path) -> None:
    code = "import sys; from mailverdict.runs.journal.journal import Journal; Journal(sys.argv[1]).close()"
    processes = [subprocess.Popen([sys.executable, "-c", code, str(old)]) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert sorted(each.name for each in old.parent.iterdir()) == [
        "journal.db",
        "journal.db.format1",
    ]


def test_a_conversion_that_fails_leaves_the_journal_as_it_was(old: Path) -> None:
    (old.parent / "journal.db.format1").mkdir()  # so the old file cannot be kept
    before = old.read_bytes()
    with pytest.raises(JournalError):
        Journal(old)
    assert old.read_bytes() == before


def damaged(path: Path, how: str) -> None:
    """Make a file that is not a journal, or no longer one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if how == "text":
        path.write_text("email\nada@example.org\n" * 50)
    elif how == "short":
        path.write_bytes(b"SQLite format 3\x00")
    elif how == "another SQLite file":
        with sqlite3.connect(path) as other:
            other.execute("CREATE TABLE settled (key, address)")
        other.close()
    else:
        with Journal(path) as journal:
            journal.record(KEY, Settled(answers(*(f"user{i}@x.org" for i in range(2000)))))
        DAMAGE[how](path)


def overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096 + 50)
        file.write(b"\xa5" * 9000)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def from_the_future(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(60)
        file.write((999).to_bytes(4, "big"))


DAMAGE = {"overwritten": overwrite, "truncated": truncate, "later version": from_the_future}


@pytest.mark.parametrize("how", ["text", "short", "another SQLite file", *DAMAGE])
def test_a_file_that_is_not_a_journal_is_an_error_and_left_byte_for_byte(
    path: Path, how: str
) -> None:
    damaged(path, how)
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(
            JournalError, match=rf"{re.escape(path.name)}.*give another path for the journal"
        ):
            Journal(path)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name], (
        "nothing was left beside it"
    )


def test_opening_does_not_read_the_whole_file_and_damage_inside_is_found_when_it_is_read(
    path: Path,
) -> None:
    emails = [f"user{i:05}@x.org" for i in range(5000)]
    with Journal(path) as journal:
        journal.record(KEY, Settled(answers(*emails)))
    with path.open("r+b") as file:
        file.seek(path.stat().st_size * 3 // 4 // 4096 * 4096)
        file.write(b"\xa5" * 8 * 4096)
    with Journal(path) as journal:
        assert known(journal, emails[0]) == {emails[0]: "valid"}
        with pytest.raises(JournalError, match="is damaged"):
            known(journal, *emails)


def change_row(path: Path, statement: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()


DAMAGED_ROWS = {  # what is done to a row, and what the error says about it
    "empty outcome": ("UPDATE outcomes SET body = '{}'", "outcomes with id = 1 does not fit"),
    "another verdict": (
        "UPDATE outcomes SET body = replace(body, 'valid', 'invalid')",
        "outcomes with id = 1 does not fit",
    ),
    "octets": ("UPDATE outcomes SET body = x'00ff'", "outcomes with id = 1 does not fit"),
    "other checksum": ("UPDATE outcomes SET digest = x'00'", "outcomes with id = 1 does not fit"),
    "no outcome": ("DELETE FROM outcomes", "outcomes with id = 1 is missing"),
    "text for a time": (
        "UPDATE addresses SET settled_at = 'soon'",
        "addresses with address = 'ada@x.org' holds",
    ),
    "text for a date": (
        "UPDATE addresses SET checked_at = 'soon'",
        "addresses with address = 'ada@x.org' holds",
    ),
}


@pytest.mark.parametrize("how", DAMAGED_ROWS)
def test_a_damaged_row_is_an_error_that_names_it_and_what_to_do(path: Path, how: str) -> None:
    statement, what = DAMAGED_ROWS[how]
    with Journal(path) as journal:
        journal.record(KEY, Settled(answers("ada@x.org")))
    change_row(path, statement)
    with Journal(path) as journal:
        with pytest.raises(JournalError, match=re.escape(what)) as raised:
            known(journal, "ada@x.org")
        with pytest.raises(JournalError, match=re.escape(what)):
            journal.export(path.with_name("export.parquet"))
    message = str(raised.value)
    assert str(path) in message
    assert "Restore the journal from a copy" in message
    assert "nothing is asked again" in message
    forget = message.partition("in SQLite: ")[2].partition(")")[0]
    change_row(path, forget)
    with Journal(path) as journal:
        assert known(journal, "ada@x.org") == {}, "the person has said yes"
        journal.record(KEY, Settled(answers("ada@x.org")))
        assert known(journal, "ada@x.org") == {"ada@x.org": "valid"}, "the row is written anew"


@pytest.mark.parametrize(
    ("body", "why"), [("{}", "has no answer"), ("[1]", "is not an answer"), ("{", "is not an")]
)
def test_an_outcome_without_an_answer_is_damaged_whatever_its_checksum(
    path: Path, body: str, why: str
) -> None:
    with Journal(path) as journal:
        journal.record(KEY, Settled(answers("ada@x.org")))
    digest = digest_of(body).hex()
    change_row(path, f"UPDATE outcomes SET body = '{body}', digest = x'{digest}'")
    with Journal(path) as journal, pytest.raises(JournalError, match=f"id = 1 {why}"):
        known(journal, "ada@x.org")


@pytest.mark.parametrize(
    "change", ["state = 'lost'", "state = 'held', free_at = NULL", "state = 7", "free_at = 'soon'"]
)
def test_a_state_that_nobody_wrote_is_an_error_and_nothing_is_sent(path: Path, change: str) -> None:
    with Journal(path) as journal:
        claimed = journal.claim(KEY, Submitting("token", ("ada@x.org",), 0))
        assert claimed == ("ada@x.org",)
    change_row(path, f"UPDATE addresses SET {change}")
    with (
        Journal(path) as journal,
        pytest.raises(JournalError, match=r"with address = 'ada@x\.org'"),
    ):
        journal.unclaimed(KEY, pa.array(["ada@x.org"]))


@pytest.mark.parametrize("change", ["job_id = NULL", "sent_at = 'soon'", "email = x'00'"])
def test_a_job_that_cannot_be_polled_is_an_error(path: Path, change: str) -> None:
    with Journal(path) as journal:
        journal.record(KEY, Submitted((Job("j1", "ada@x.org", "smtp", 1.0),)))
    change_row(path, f"UPDATE addresses SET {change}")
    with Journal(path) as journal, pytest.raises(JournalError, match="and not which"):
        journal.adopt(KEY, pa.array(["ada@x.org"]))


def test_a_pace_that_is_not_a_number_is_an_error(path: Path) -> None:
    with Journal(path) as journal:
        journal.record(KEY, Paced("http://s", None, None, KnownPace(1.0, 2.0, 3.0)))
    change_row(path, "UPDATE paces SET open_at_once = 'many'")
    with (
        Journal(path) as journal,
        pytest.raises(JournalError, match="paces with service = 'http://s'"),
    ):
        journal.known_pace("http://s")


def modes(path: Path) -> dict[str, int]:
    return {
        each.name.removeprefix(path.name): each.stat().st_mode & 0o777
        for each in path.parent.iterdir()
    }


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_only_its_user_can_read_a_journal(path: Path) -> None:
    with Journal(path) as journal:
        journal.record(KEY, Settled(answers("a@x.org")))
        assert modes(path) == {"": 0o600, "-wal": 0o600, "-shm": 0o600, "-run1.lock": 0o600}
    assert modes(path) == {"": 0o600}


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_a_journal_that_others_could_read_is_made_private_also_while_it_is_open(path: Path) -> None:
    with Journal(path):
        for each in path.parent.iterdir():
            each.chmod(0o644)
        Journal(path).close()
        assert modes(path) == {"": 0o600, "-wal": 0o600, "-shm": 0o600}


def test_a_folder_is_not_a_journal(tmp_path: Path) -> None:
    with pytest.raises(JournalError):
        Journal(tmp_path)


def test_a_place_that_cannot_be_written_is_an_error_of_ours(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    with pytest.raises(JournalError):
        Journal(blocker / "journal.db")


def test_an_empty_file_becomes_a_journal(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.touch()
    with Journal(path) as journal:
        journal.record(KEY, Settled(answers("a@x.org")))
        assert known(journal, "a@x.org") == {"a@x.org": "valid"}


def test_closing_twice_is_fine_and_a_closed_journal_is_an_error_of_ours(path: Path) -> None:
    journal = Journal(path)
    journal.close()
    journal.close()
    with pytest.raises(JournalError):
        journal.record(KEY, Settled(answers("a@x.org")))


def test_the_summary_counts_what_the_journal_contains(journal: Journal, clock: Clock) -> None:
    journal.record(KEY, Settled(answers("a@x.org", "b@x.org")))
    clock.now += 60
    journal.record(KEY, Settled(answers("c@x.org", result="unknown")))
    journal.record(KEY, Settled(trouble("d@x.org")))
    journal.record(KEY, Submitted(jobs("e@x.org")))
    claim(journal, "f@x.org", used=None, key="mx local")
    mx, smtp = journal.summary()
    assert (mx.key, mx.settled, mx.uncertain, mx.first) == ("mx local", 0, 1, None)
    assert (smtp.key, smtp.settled, smtp.in_flight, smtp.uncertain) == (KEY, 4, 1, 0)
    assert smtp.verdicts == {"valid": 2, "unknown": 1, "error": 1}
    assert (smtp.first, smtp.last) == (NOON, NOON + 60)


def test_export_writes_every_settled_row(journal: Journal, tmp_path: Path) -> None:
    journal.record(KEY, Settled(answers("b@x.org", "a@x.org", result="risky", reasons=("role",))))
    journal.record("mx local", Settled(trouble("c@x.org")))
    target = tmp_path / "out.parquet"
    journal.export(target)
    table = pq.read_table(target)
    assert table.column_names == ["key", *SCHEMA.names, "settled_at"]
    seen = table.select(["key", "email", "status", "result", "reasons"]).to_pylist()
    assert [tuple(row.values()) for row in seen] == [
        ("mx local", "c@x.org", "error", None, None),
        (KEY, "a@x.org", "done", "risky", "role"),
        (KEY, "b@x.org", "done", "risky", "role"),
    ]
    assert {moment.timestamp() for moment in table["settled_at"].to_pylist()} == {NOON}


def test_export_of_an_empty_journal_is_an_empty_file_of_the_same_columns(
    journal: Journal, tmp_path: Path
) -> None:
    journal.export(tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 0


def test_an_export_that_fails_leaves_the_target_alone(journal: Journal, tmp_path: Path) -> None:
    with pytest.raises(JournalError):
        journal.export(tmp_path / "no such folder" / "out.parquet")
    assert [each.name for each in tmp_path.iterdir()] == ["deep"]
