"""Going on where an earlier run ended, in virtual time."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from mailverdict.backend import GRACE, Deferred, Job, Settled, Submitted, Submitting
from mailverdict.model.verification import Verification
from mailverdict.model.words import ValidationType
from mailverdict.remote.client import LAST_ANSWER
from mailverdict.runs.execution import Execution, RunSettings
from mailverdict.runs.journal.journal import Journal
from mailverdict.runs.retry import HOLD
from tests.doubles.clock import EPOCH, VirtualLoop, run_virtual
from tests.doubles.remote import URL, RemoteWorld, addresses
from tests.doubles.scripted_backend import ScriptedBackend
from tests.doubles.scripted_service import FAULTS, payload
from tests.doubles.tables import rows_to_table

KEY = f"smtp {URL}"


def execution(
    world: RemoteWorld, path: Path, emails: list[str], limit: int | None = None
) -> Execution:
    return Execution(
        pa.array(emails),
        world.backend,
        RunSettings(ValidationType.SMTP, limit=limit),
        journal=Journal(path, clock=world.loop.wall_clock),
        clock=world.loop.wall_clock,
    )


async def run(
    world: RemoteWorld, path: Path, emails: list[str], limit: int | None = None
) -> tuple[list[str], list[str]]:
    """Statuses and notices of one run."""
    one = execution(world, path, emails, limit)
    await one.run()
    return one.results.table("smtp")["status"].to_pylist(), one.notices


def leave_behind(world: RemoteWorld, path: Path, emails: list[str]) -> None:
    """A run that died after announcing a submission."""
    with Journal(path, clock=world.loop.wall_clock) as dead:
        dead.claim(KEY, Submitting("t", tuple(emails), world.service.used))


def test_a_submission_that_was_never_counted_is_made_by_the_next_run_at_once(
    tmp_path: Path,
) -> None:
    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop)
        leave_behind(world, tmp_path / "j.db", addresses(3))
        statuses, notices = await run(world, tmp_path / "j.db", addresses(5))
        assert statuses == ["done"] * 5
        assert notices == []
        assert loop.time() >= GRACE, "the service got its time to count"
        assert world.service.violations_and_double_payments == []

    run_virtual(main)


def test_a_submission_that_was_never_counted_is_made_again_as_it_was(tmp_path: Path) -> None:
    async def submissions(emails: list[str], limit: int | None = None) -> list[Submitting]:
        """What the next run submits after one that died before it heard of two addresses."""
        world = RemoteWorld(loop)
        path = tmp_path / f"{len(emails)} {limit}.db"
        leave_behind(world, path, ["b@x.org", "a@x.org"])
        one = execution(world, path, emails, limit)
        claimed = record_claims(one)
        await one.run()
        assert world.service.violations_and_double_payments == []
        return claimed

    async def main(running: VirtualLoop) -> None:
        nonlocal loop
        loop = running
        again, other = await submissions(["c@x.org", "a@x.org", "b@x.org"])
        assert (again.token, again.emails) == ("t", ("b@x.org", "a@x.org"))
        assert other.emails == ("c@x.org",)
        (part,) = await submissions(["a@x.org"])
        assert part.token != "t"
        (first,) = await submissions(["a@x.org", "b@x.org"], limit=1)
        assert (first.token != "t", first.emails) == (True, ("a@x.org",))

    loop: VirtualLoop
    run_virtual(main)


def record_claims(one: Execution) -> list[Submitting]:
    """The batches that a run claims from here on."""
    claimed: list[Submitting] = []
    journal = one.journal
    assert journal is not None
    claim = journal.claim

    def remember(key: str, batch: Submitting) -> tuple[str, ...]:
        claimed.append(batch)
        return claim(key, batch)

    journal.claim = remember
    return claimed


def test_a_submission_that_may_have_been_counted_is_held_for_a_day_with_a_notice(
    tmp_path: Path,
) -> None:
    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop)
        leave_behind(world, tmp_path / "j.db", addresses(3))
        world.service.used += 3
        statuses, notices = await run(world, tmp_path / "j.db", addresses(5))
        assert statuses == ["pending"] * 3 + ["done"] * 2
        assert notices == [
            "3 addresses stay pending: the submission was lost and may have been paid for; "
            "sent again from 2023-11-15 22:13 UTC"
        ]
        await asyncio.sleep(HOLD)
        one = execution(world, tmp_path / "j.db", addresses(5))
        claimed = record_claims(one)
        await one.run()
        assert one.results.table("smtp")["status"].to_pylist() == ["done"] * 5
        assert one.notices == []
        (again,) = claimed
        assert (again.token, again.emails) == ("t", tuple(addresses(3))), "as it was"

    run_virtual(main)


def test_what_is_held_does_not_stand_in_the_way_of_a_limit(tmp_path: Path) -> None:
    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop)
        leave_behind(world, tmp_path / "j.db", addresses(3))
        world.service.used += 3
        statuses, notices = await run(world, tmp_path / "j.db", addresses(9), limit=2)
        assert statuses == ["pending"] * 3 + ["done"] * 2 + ["pending"] * 4
        assert len(notices) == 1, "what is beyond the limit is nobody else's"
        statuses, _ = await run(world, tmp_path / "j.db", addresses(9), limit=2)
        assert statuses == ["pending"] * 3 + ["done"] * 4 + ["pending"] * 2

    run_virtual(main)


@pytest.mark.parametrize("fault", ["reset after", "500 after", "cut JSON", "half an answer"])
def test_a_lost_answer_is_held_by_the_next_run_too(tmp_path: Path, fault: str) -> None:
    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop)
        world.service.script("bulk", [FAULTS[fault]])
        statuses, notices = await run(world, tmp_path / "j.db", addresses(5))
        assert statuses == ["pending"] * 5
        assert "may have been paid for" in notices[0]
        statuses, _ = await run(world, tmp_path / "j.db", addresses(8))
        assert statuses == ["pending"] * 5 + ["done"] * 3
        assert world.service.violations_and_double_payments == []

    run_virtual(main)


def test_a_run_cancelled_while_its_submission_was_on_the_way_is_resumed(tmp_path: Path) -> None:
    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop)
        world.wire.latency = 1.0
        one = asyncio.create_task(execution(world, tmp_path / "j.db", addresses(105)).run())
        await asyncio.sleep(1.5)
        assert world.service.under_way == 1, "the submission is on its way"
        one.cancel()
        await asyncio.gather(one, return_exceptions=True)
        assert one.cancelled()
        assert len(world.service.batches) == 1, "nothing else is sent"
        world.wire.latency = 0.01
        statuses, _ = await run(world, tmp_path / "j.db", addresses(105))
        assert statuses == ["done"] * 105
        assert sorted(world.service.paid.values()) == [1] * 105, "its answer was waited for"
        assert world.service.violations_and_double_payments == []

    run_virtual(main)


def test_a_cancelled_run_waits_for_the_answer_to_its_submission_but_not_for_long(
    tmp_path: Path,
) -> None:
    async def main(loop: VirtualLoop) -> None:
        one, world = await submission_without_answer(loop, tmp_path)
        one.cancel()
        await asyncio.wait([one], timeout=LAST_ANSWER + 0.1)
        assert one.cancelled()
        assert world.service.under_way == 0

    run_virtual(main)


def test_a_run_that_is_cancelled_twice_waits_for_nothing(tmp_path: Path) -> None:
    async def main(loop: VirtualLoop) -> None:
        one, world = await submission_without_answer(loop, tmp_path)
        for _ in range(2):
            one.cancel()
            await asyncio.sleep(0.1)
        assert one.cancelled()
        assert world.service.under_way == 0

    run_virtual(main)


async def submission_without_answer(
    loop: VirtualLoop, folder: Path
) -> tuple[asyncio.Task[None], RemoteWorld]:
    """A run whose submission is on its way to a service that never answers."""
    world = RemoteWorld(loop)
    world.service.script("bulk", [FAULTS["never answers"]])
    one = asyncio.create_task(execution(world, folder / "j.db", addresses(5)).run())
    await asyncio.sleep(1.0)
    assert world.service.under_way == 1
    return one, world


def test_runs_at_once_on_overlapping_lists_share_the_work_and_all_are_complete(
    tmp_path: Path,
) -> None:
    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop)
        emails = addresses(60)
        lists = (emails[:40], emails[20:], emails[10:50][::-1])
        ended = await asyncio.gather(*(run(world, tmp_path / "j.db", each) for each in lists))
        assert ended == [(["done"] * 40, [])] * 3
        assert sorted(world.service.paid.values()) == [1] * 60
        assert world.service.violations_and_double_payments == []

    run_virtual(main)


def test_a_run_waits_while_another_waits_for_the_answer_to_its_submission(tmp_path: Path) -> None:
    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop)
        world.wire.latency = 1.0
        first = asyncio.create_task(run(world, tmp_path / "j.db", addresses(5)))
        await asyncio.sleep(1.5)
        assert world.service.under_way == 1, "the submission is on its way"
        assert await run(world, tmp_path / "j.db", addresses(5)) == (["done"] * 5, [])
        assert await first == (["done"] * 5, [])
        assert sorted(world.service.paid.values()) == [1] * 5

    run_virtual(main)


def test_a_waiting_run_uses_what_the_other_has_paid_for_also_if_the_answer_is_temporary(
    tmp_path: Path,
) -> None:
    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop)
        world.backend.ask_again = False
        world.service.verdict = lambda *job: payload(*job, "unknown", reasons=["rate_limited"])
        both = [execution(world, tmp_path / "j.db", addresses(5)) for _ in range(2)]
        await asyncio.gather(*(each.run() for each in both))
        found = [each.results.table("smtp")["reasons"].to_pylist() for each in both]
        assert found == [["rate_limited"] * 5] * 2
        assert sorted(world.service.paid.values()) == [1] * 5

    run_virtual(main)


def test_a_waiting_run_goes_on_where_the_other_was_cancelled(tmp_path: Path) -> None:
    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop)
        world.service.duration = lambda _: 100.0
        first = asyncio.create_task(execution(world, tmp_path / "j.db", addresses(5)).run())
        await asyncio.sleep(20)
        second = asyncio.create_task(run(world, tmp_path / "j.db", addresses(8)))
        await asyncio.sleep(20)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert await second == (["done"] * 8, [])
        assert sorted(world.service.paid.values()) == [1] * 8

    run_virtual(main)


def test_a_limit_counts_what_this_run_submits_and_not_what_it_waits_for(tmp_path: Path) -> None:
    async def main(loop: VirtualLoop) -> None:
        world = RemoteWorld(loop)
        both = await asyncio.gather(
            *(run(world, tmp_path / "j.db", addresses(12), limit=5) for _ in range(2))
        )
        assert sorted(statuses.count("done") for statuses, _ in both) == [5, 10]
        assert sorted(world.service.paid.values()) == [1] * 10

    run_virtual(main)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "j.db", clock=lambda: EPOCH) as opened:
        yield opened


@pytest.mark.parametrize("has_lost", [False, True])
def test_a_run_does_not_wait_without_a_lost_submission_or_without_a_quota(
    tmp_path: Path, has_lost: bool
) -> None:
    async def fail(_: float) -> None:
        raise AssertionError("waited for nothing")

    key = ScriptedBackend().journal_key("smtp")
    with Journal(tmp_path / "j.db", clock=lambda: EPOCH) as dead:
        if has_lost:
            dead.claim(key, Submitting("t", ("a@x.org",), None))
    journal = Journal(tmp_path / "j.db", clock=lambda: EPOCH)
    assert journal.seconds_to_resolve(key) == (GRACE if has_lost else None)
    execution = Execution(
        pa.array(["b@x.org"]),
        ScriptedBackend(),
        RunSettings(ValidationType.SMTP),
        journal=journal,
        sleep=fail,
    )
    asyncio.run(execution.run())
    assert execution.progress.state == "done"


def test_the_submission_of_a_running_process_is_not_resolved(journal: Journal) -> None:
    journal.claim(KEY, Submitting("t", ("a@x.org",), 0))
    assert journal.seconds_to_resolve(KEY) is None


def settle(journal: Journal, email: str) -> None:
    journal.record(
        KEY, Settled(rows_to_table([Verification(email, "smtp", "valid")], source="remote"))
    )


def test_the_reasons_why_addresses_were_not_claimed(journal: Journal, tmp_path: Path) -> None:
    with Journal(tmp_path / "j.db", clock=lambda: EPOCH) as other:
        other.claim(KEY, Submitting("t", ("held@x.org", "job@x.org"), 0))
        other.record(KEY, Submitted((Job("j", "job@x.org", "smtp", EPOCH),), "t"))
        other.record(KEY, Deferred(("held@x.org",), "uncertain", token="t"))
        other.claim(KEY, Submitting("u", ("sent@x.org",), 2))
        wanted = pa.array(["sent@x.org", "held@X.org", "job@x.org", "free@x.org"])
        assert journal.claim(KEY, Submitting("v", tuple(wanted.to_pylist()), 3)) == ("free@x.org",)
        assert journal.adopt(KEY, wanted) == [], "the other process polls its job"
        unclaimed = journal.unclaimed(KEY, wanted)
        assert (unclaimed.held.to_pylist(), unclaimed.free_at) == (["held@x.org"], EPOCH + HOLD)
        assert sorted(unclaimed.elsewhere.to_pylist()) == ["job@x.org", "sent@x.org"]
        assert unclaimed.notice().startswith("1 address stays pending: the submission was lost")
    assert [job.job_id for job in journal.adopt(KEY, wanted)] == ["j"], (
        "the other process has ended"
    )
    assert len(journal.unclaimed(KEY, wanted).elsewhere) == 0


def test_there_is_no_notice_if_all_is_settled_or_polled(journal: Journal) -> None:
    journal.record(KEY, Submitted((Job("j", "job@x.org", "smtp", EPOCH),)))
    settle(journal, "known@x.org")
    assert journal.unclaimed(KEY, pa.array(["job@x.org", "known@x.org"])).notice() == ""
