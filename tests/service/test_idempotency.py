"""A submission that is repeated because its answer was lost."""

import asyncio
from pathlib import Path

import pytest

from mailverdict.service.jobs.store import NewJob
from mailverdict.service.jobs.submission import former_job_ids, keyed_job_ids
from tests.doubles.service import CLIENT, asynchronous, serving

KEY = "0f1e2d3c-4b5a-4789-8abc-def012345678"
EMAILS = ["ada@example.org", "not an address", "bo@example.org", "ada@example.org"]


@asynchronous
async def test_repeated_submission_gives_the_same_jobs_and_costs_once(tmp_path: Path) -> None:
    async with serving(tmp_path, daily_limit=4) as world:
        first = await world.submit(EMAILS, **{"idempotency-key": KEY})
        second = await world.submit(EMAILS, **{"idempotency-key": KEY})
        assert first.status_code == second.status_code == 202
        assert second.json()["data"] == first.json()["data"]
        assert [entry["status"] for entry in first.json()["data"]["results"]] == [
            "queued",
            "error",
            "queued",
            "queued",
        ]
        assert await world.used() == 3
        for entry in first.json()["data"]["results"]:
            if entry["status"] == "queued":
                assert (await world.ended(entry["job_id"]))["email"] == entry["email"]
        assert (await world.submit(EMAILS, **{"idempotency-key": KEY})).json()[
            "data"
        ] == first.json()["data"]


@asynchronous
async def test_repetitions_at_the_same_time_are_one_submission(tmp_path: Path) -> None:
    async with serving(tmp_path, daily_limit=100) as world:
        other = world.submit(["eve@example.org"], address="192.0.2.9")
        replies = await asyncio.gather(
            *(world.submit(EMAILS, **{"idempotency-key": KEY}) for _ in range(8)), other
        )
        assert {reply.status_code for reply in replies} == {202}
        assert len({str(reply.json()["data"]) for reply in replies[:8]}) == 1
        assert (await world.used(), await world.used("192.0.2.9")) == (3, 1)


@asynchronous
async def test_repetition_is_not_refused_for_the_quota_that_the_first_one_took(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, daily_limit=3) as world:
        replies = await asyncio.gather(
            *(world.submit(EMAILS, **{"idempotency-key": KEY}) for _ in range(4))
        )
        assert {reply.status_code for reply in replies} == {202}
        assert len({str(reply.json()["data"]) for reply in replies}) == 1
        assert await world.used() == 3
        assert (await world.submit(EMAILS)).status_code == 429


@asynchronous
async def test_key_of_another_submission_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        await world.submit(EMAILS, **{"idempotency-key": KEY})
        for emails, kind in (
            (["eve@example.org", *EMAILS[1:]], "regex"),
            (EMAILS, "mx"),
            ([*EMAILS, "x@y.org"], "regex"),
        ):
            reply = await world.submit(emails, kind, **{"idempotency-key": KEY})
            assert (reply.status_code, reply.json()["error"]["code"]) == (
                422,
                "IDEMPOTENCY_KEY_REUSED",
            )
        assert await world.used() == 3


@asynchronous
async def test_same_key_of_another_client_is_another_submission(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        first = await world.submit(EMAILS, **{"idempotency-key": KEY})
        second = await world.submit(EMAILS, address="192.0.2.9", **{"idempotency-key": KEY})
        assert first.json()["data"] != second.json()["data"]
        assert (await world.used(), await world.used("192.0.2.9")) == (3, 3)


@asynchronous
async def test_identifiers_cannot_be_computed_from_what_the_client_sends(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        entries = (await world.submit(EMAILS, **{"idempotency-key": KEY})).json()["data"]["results"]
        computed = {
            *former_job_ids(CLIENT, KEY, len(EMAILS)),
            *keyed_job_ids("", CLIENT, KEY, len(EMAILS)),
        }
        assert not computed & {entry["job_id"] for entry in entries}


@asynchronous
async def test_identifiers_are_the_same_after_a_restart(tmp_path: Path) -> None:
    replies = []
    for _ in range(2):
        async with serving(tmp_path) as world:
            replies.append((await world.submit(EMAILS, **{"idempotency-key": KEY})).json()["data"])
            assert await world.used() == 3
    assert replies[0] == replies[1]


@asynchronous
async def test_submission_that_is_repeated_after_an_upgrade_is_not_paid_for_twice(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as world:
        job_ids = former_job_ids(CLIENT, KEY, len(EMAILS))
        jobs = tuple(
            NewJob(job_id, email, "regex")
            for job_id, email in zip(job_ids, EMAILS, strict=True)
            if "@" in email
        )
        await world.state.submit(CLIENT, jobs)
        reply = await world.submit(EMAILS, **{"idempotency-key": KEY})
        assert [entry["job_id"] for entry in reply.json()["data"]["results"]] == job_ids
        assert await world.used() == 3
        other = await world.submit(["eve@example.org", *EMAILS[1:]], **{"idempotency-key": KEY})
        assert (other.status_code, other.json()["error"]["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")
        elsewhere = await world.submit(EMAILS, address="192.0.2.9", **{"idempotency-key": KEY})
        assert elsewhere.status_code == 202
        assert (await world.used(), await world.used("192.0.2.9")) == (3, 3)


@pytest.mark.parametrize("key", ["", "short", "x" * 256, "with a blank in it, long"])
@asynchronous
async def test_key_that_is_too_weak_or_too_long_is_refused(tmp_path: Path, key: str) -> None:
    async with serving(tmp_path) as world:
        reply = await world.submit(EMAILS, **{"idempotency-key": key})
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, "BAD_IDEMPOTENCY_KEY")
        assert await world.used() == 0
