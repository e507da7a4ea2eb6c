"""``POST /api/bulk-check-email`` and ``GET /api/verification-result/:job_id``: submit, then poll."""

import asyncio
from pathlib import Path
from typing import Literal

import pytest
from sqlalchemy.exc import OperationalError

from tests.doubles.answering_backend import (
    AnsweringBackend,
    deferred,
    failed,
    forgotten,
    no_verdict,
    unknown,
)
from tests.doubles.clock import Clock
from tests.doubles.service import CHANGED, asynchronous, serving, until


@pytest.fixture(autouse=True, params=["wait", pytest.param("settle", marks=pytest.mark.slow)])
def when_saturated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The contract is the same whether bulk jobs beyond the limits wait or end."""
    monkeypatch.setitem(CHANGED, "when_saturated", request.param)


@asynchronous
async def test_submission_is_accepted_with_an_entry_per_line(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with serving(tmp_path, AnsweringBackend(gate=gate)) as world:
        emails = ["ada@example.org", "broken", "ada@example.org", "bob@example.org"]
        reply = await world.submit(emails)
        assert reply.status_code == 202
        body = reply.json()
        assert set(body) == {"success", "data", "meta"}
        assert set(body["data"]) == {"results"}  # no identifier of the batch
        entries = body["data"]["results"]
        assert [entry["email"] for entry in entries] == emails
        assert [entry["status"] for entry in entries] == ["queued", "error", "queued", "queued"]
        assert [entry["message"] for entry in entries] == [
            "Queued for verification",
            "Invalid email format",
            "Queued for verification",
            "Queued for verification",
        ]
        assert all(set(entry) == {"email", "status", "message", "job_id"} for entry in entries)
        assert len({entry["job_id"] for entry in entries}) == 4
        gate.set()


@asynchronous
async def test_quota_is_taken_at_submission_by_the_well_formed_addresses(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with serving(tmp_path, AnsweringBackend(gate=gate)) as world:
        await world.submit(["ada@example.org", "broken", "bob@example.org", "@", "ada@example.org"])
        assert await world.used() == 3  # before anything was verified
        gate.set()


@asynchronous
async def test_malformed_address_is_never_a_job(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        [job_id] = await world.submitted("broken")
        for _ in range(3):
            reply = await world.get(f"/api/verification-result/{job_id}")
            assert (reply.status_code, reply.json()["error"]["code"]) == (404, "JOB_NOT_FOUND")
        assert await world.used() == 0
        assert world.backend.batches == []


@asynchronous
async def test_more_than_a_hundred_are_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, daily_limit=1000) as world:
        reply = await world.submit([f"a{i}@example.org" for i in range(101)])
        assert reply.status_code == 422
        assert reply.json()["error"]["code"] == "BULK_LIMIT_EXCEEDED"
        assert reply.json()["error"]["details"] == {"limit": 100, "received": 101}
        assert await world.used() == 0


@asynchronous
async def test_a_hundred_are_accepted(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        jobs = await world.submitted(*(f"a{i}@example.org" for i in range(100)))
        records = [await world.ended(job_id) for job_id in jobs]
        assert [record["email"] for record in records] == [f"a{i}@example.org" for i in range(100)]
        assert {record["verification"]["result"] for record in records} == {"valid"}


@asynchronous
async def test_submission_beyond_the_quota_is_refused_as_a_whole(tmp_path: Path) -> None:
    async with serving(tmp_path, daily_limit=5) as world:
        await world.submitted("a@example.org", "b@example.org")
        reply = await world.submit([f"c{i}@example.org" for i in range(4)])
        assert reply.status_code == 429
        assert reply.json()["error"]["code"] == "QUOTA_EXCEEDED"
        assert reply.json()["error"]["details"] == {"limit": 5, "remaining": 3, "requested": 4}
        assert await world.used() == 2
        reply = await world.submit([f"c{i}@example.org" for i in range(3)] + ["broken"])
        assert reply.status_code == 202
        assert await world.used() == 5


class Turnstile(asyncio.Event):
    """Each `set` lets one batch through."""

    async def wait(self) -> Literal[True]:
        await super().wait()
        self.clear()
        return True


@pytest.mark.embedded
@asynchronous
async def test_record_is_queued_then_processing_then_done(tmp_path: Path) -> None:
    gate = Turnstile()
    async with serving(tmp_path, AnsweringBackend(gate=gate), concurrency=1) as world:
        [first] = await world.submitted("bob@example.org")
        await until(lambda: world.backend.batches)
        # With no room in the engine the job stays where submission put it.
        [job_id] = await world.submitted("ada@example.org")
        assert await world.poll(job_id) == {
            "email": "ada@example.org",
            "status": "queued",
            "verification": None,
        }
        gate.set()
        await world.ended(first)
        await until(lambda: len(world.backend.batches) == 2)
        assert await world.poll(job_id) == {
            "email": "ada@example.org",
            "status": "processing",
            "verification": None,
        }
        gate.set()
        record = await world.ended(job_id)
        assert set(record) == {"email", "status", "verification"}
        assert record["status"] == "done"


@asynchronous
async def test_poll_has_the_envelope_and_the_job_id(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        [job_id] = await world.submitted("ada@example.org")
        body = (await world.get(f"/api/verification-result/{job_id}")).json()
        assert set(body) == {"success", "data", "meta"}
        assert set(body["data"]) == {"job_id", "result"}
        assert body["data"]["job_id"] == job_id
        assert body["meta"]["version"] == "v1"


@pytest.mark.parametrize("validation_type", ["smtp", "mx", "mx_blacklist", "regex"])
@asynchronous
async def test_done_job_has_the_payload_of_a_single_check_key_for_key(
    tmp_path: Path, validation_type: str
) -> None:
    async with serving(tmp_path) as world:
        single = (await world.check(validation_type=validation_type)).json()["data"]
        [job_id] = await world.submitted("ada@example.org", validation_type=validation_type)
        record = await world.ended(job_id)
        assert record["verification"] == single
        assert list(record["verification"]) == list(single)


@asynchronous
async def test_status_never_is_a_verdict(tmp_path: Path) -> None:
    async with serving(tmp_path, AnsweringBackend({"ada": unknown("timeout")})) as world:
        [job_id] = await world.submitted("ada@example.org", validation_type="smtp")
        record = await world.ended(job_id)
        assert (record["status"], record["verification"]["result"]) == ("done", "unknown")


@pytest.mark.parametrize(
    "act",
    [RuntimeError("boom"), failed, forgotten, no_verdict],
    ids=["boom", "failed", "forgotten", "no_verdict"],
)
@asynchronous
async def test_job_whose_check_failed_ends_in_error_without_a_verdict(
    tmp_path: Path, act: object
) -> None:
    async with serving(tmp_path, AnsweringBackend({"ada": act})) as world:
        [job_id] = await world.submitted("ada@example.org", validation_type="mx")
        assert await world.ended(job_id) == {
            "email": "ada@example.org",
            "status": "error",
            "verification": None,
        }


@asynchronous
async def test_one_failure_does_not_take_other_jobs_along(tmp_path: Path) -> None:
    async with serving(tmp_path, AnsweringBackend({"bad": failed, "odd": no_verdict})) as world:
        jobs = await world.submitted("bad@example.org", "ada@example.org", "odd@example.org")
        assert [(await world.ended(job_id))["status"] for job_id in jobs] == [
            "error",
            "done",
            "error",
        ]


@pytest.mark.parametrize(
    "job_id", ["nope", "0" * 32, "..%2f..", "%00", "a/b", "%0a", "a%0ab", "é", "x" * 5000]
)
@asynchronous
async def test_unknown_job_is_not_found(tmp_path: Path, job_id: str) -> None:
    async with serving(tmp_path) as world:
        reply = await world.get(f"/api/verification-result/{job_id}")
        assert reply.status_code == 404
        assert reply.json()["error"]["code"] == "JOB_NOT_FOUND"
        assert set(reply.json()) == {"success", "error", "meta"}


@pytest.mark.parametrize("path", ["/api/verification-result/", "/api/verification-result"])
@asynchronous
async def test_missing_job_id_is_refused_in_the_short_envelope(tmp_path: Path, path: str) -> None:
    async with serving(tmp_path) as world:
        reply = await world.get(path)
        assert reply.status_code == 400
        assert set(reply.json()) == {"error"}
        assert reply.json()["error"]["code"] == "E1006"


@pytest.mark.parametrize(
    "emails",
    [
        None,
        "ada@example.org",
        {},
        5,
        [],
        [None],
        ["ada@example.org", None],
        [["ada@example.org"]],
        [{"email": 1}],
        [1],
    ],
    ids=repr,
)
@asynchronous
async def test_emails_that_are_not_a_list_of_texts_are_refused_in_the_short_envelope(
    tmp_path: Path, emails: object
) -> None:
    async with serving(tmp_path) as world:
        reply = await world.submit(emails)
        assert reply.status_code == 400
        assert set(reply.json()) == {"error"}
        assert reply.json()["error"]["code"] == "E1002"
        assert await world.used() == 0


@asynchronous
async def test_type_of_a_submission_is_required_and_one_of_four(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        reply = await world.post("/api/bulk-check-email", {"emails": ["ada@example.org"]})
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, "E1003")
        reply = await world.submit(["ada@example.org"], "dns")
        assert (reply.status_code, reply.json()["error"]["code"]) == (
            400,
            "INVALID_VALIDATION_TYPE",
        )


@asynchronous
async def test_odd_texts_are_entries_and_come_back_as_they_were(tmp_path: Path) -> None:
    odd = [
        "a\x00b@example.org",
        "\ud800@example.org",
        "ada@example.org\r\nRCPT TO:<x@y.z>",
        "\u202e@x.org",
        "x" * 5000,
    ]
    async with serving(tmp_path) as world:
        reply = await world.submit(odd)
        assert reply.status_code == 202
        entries = reply.json()["data"]["results"]
        assert [entry["email"] for entry in entries] == odd
        assert {entry["status"] for entry in entries} == {"error"}


@asynchronous
async def test_duplicates_are_separate_jobs_and_verified_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        jobs = await world.submitted(*["ada@example.org"] * 5, validation_type="mx")
        assert {(await world.ended(job_id))["status"] for job_id in jobs} == {"done"}
        assert [emails for _, emails in world.backend.batches] == [["ada@example.org"]]
        assert await world.used() == 5


@asynchronous
async def test_job_ids_cannot_be_guessed(tmp_path: Path) -> None:
    async with serving(tmp_path, daily_limit=1000) as world:
        jobs = await world.submitted(*(f"a{i}@example.org" for i in range(100)))
        assert len(set(jobs)) == 100
        assert {len(job_id) for job_id in jobs} == {32}  # 128 bits
        assert all(
            sum(a == b for a, b in zip(jobs[0], other, strict=True)) < 16 for other in jobs[1:]
        )


@pytest.mark.embedded
@asynchronous
async def test_engine_that_puts_an_address_off_is_asked_again_and_then_the_job_is_throttled(
    tmp_path: Path,
) -> None:
    clock = Clock()
    async with serving(
        tmp_path, AnsweringBackend({"ada": deferred}), clock=clock, saturation_backoff=(10, 20)
    ) as world:
        [job_id] = await world.submitted("ada@example.org", validation_type="smtp")
        for asked, wait in enumerate((10, 20), 1):
            await until(lambda: len(world.backend.batches) == asked)  # noqa: B023
            await world.has_queue(postponed=1)
            assert (await world.poll(job_id))["status"] == "processing"  # a retry is pending
            clock.now += wait
        record = await world.ended(job_id)
        assert record["status"] == "done"
        assert record["verification"]["details"] == "throttled"
        assert len(world.backend.batches) == 3


@pytest.mark.slow
@pytest.mark.embedded
@asynchronous
async def test_jobs_of_one_type_share_a_batch_across_clients(tmp_path: Path) -> None:
    async with serving(tmp_path, gather=1) as world:
        jobs = []
        for n in range(4):
            address = f"192.0.2.{n}"
            jobs += await world.submitted(
                f"a{n}@example.org", f"b{n}@example.org", validation_type="smtp", address=address
            )
        jobs += await world.submitted("ada@example.org", validation_type="mx")
        assert {(await world.ended(job_id))["status"] for job_id in jobs} == {"done"}
        assert sorted((kind, len(emails)) for kind, emails in world.backend.batches) == [
            ("mx", 1),
            ("smtp", 8),
        ]


@pytest.mark.embedded
@asynchronous
async def test_unavailable_store_is_reported_and_nothing_is_accepted(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:

        def away(operations):
            raise OperationalError("insert", {}, Exception("disk is full"))

        world.state.writes.execute = away
        reply = await world.submit(["ada@example.org"])
        assert reply.status_code == 503
        assert set(reply.json()) == {"error"}
        assert reply.json()["error"]["code"] == "E1005"
        assert "disk" not in reply.text
        assert await world.used() == 0
