"""The earlier revision of the contract, by a setting."""

import asyncio
from datetime import datetime
from pathlib import Path

import pytest

from mailverdict.contract.envelope import parse_job
from mailverdict.model.verification import Fault, Verification, parse_payload
from tests.doubles.answering_backend import AnsweringBackend, failed, unknown
from tests.doubles.service import RunningService, asynchronous, serving

KEYS = {"email", "validation_type", "valid", "checks", "reason", "errors"}
RECORD = {"email", "status", "message", "details", "created_at", "updated_at"}


def refused(email: str, validation_type: str) -> Verification:
    fault = (Fault("DNS", "the domain does not exist"),)
    return Verification(
        email,
        validation_type,
        "invalid",
        checks={"syntax": True, "dns": False},
        reason="DNS",
        errors=fault,
    )


def risky(email: str, validation_type: str) -> Verification:
    return Verification(email, validation_type, "risky", ("role",), {"syntax": True}, role=True)


SCRIPT = {"gone": refused, "info": risky, "late": unknown("timeout"), "bad": failed}


def earlier(folder: Path, **changed: object):
    return serving(folder, AnsweringBackend(SCRIPT), revision="earlier", **changed)


@asynchronous
async def test_type_of_a_single_check_defaults_to_smtp(tmp_path: Path) -> None:
    async with earlier(tmp_path) as world:
        reply = await world.post("/api/check-email", {"email": "ada@example.org"})
        assert reply.status_code == 200
        assert reply.json()["data"]["validation_type"] == "smtp"
        assert (await world.check(validation_type="dns")).json()["error"][
            "code"
        ] == "INVALID_VALIDATION_TYPE"


@asynchronous
async def test_single_check_has_the_earlier_fields(tmp_path: Path) -> None:
    async with earlier(tmp_path) as world:
        data = (await world.check(validation_type="mx")).json()["data"]
        assert data == {
            "email": "ada@example.org",
            "validation_type": "mx",
            "valid": True,
            "checks": {"syntax": True, "dns": True},
            "reason": None,
            "errors": [],
        }


@pytest.mark.parametrize(
    ("local", "valid", "reason"),
    [("ada", True, None), ("info", True, None), ("gone", False, "DNS"), ("late", False, "SMTP")],
)
@asynchronous
async def test_reason_is_null_when_valid_and_one_of_four_otherwise(
    tmp_path: Path, local: str, valid: bool, reason: str | None
) -> None:
    async with earlier(tmp_path) as world:
        data = (await world.check(f"{local}@example.org", "smtp")).json()["data"]
        assert set(data) == KEYS
        assert (data["valid"], data["reason"]) == (valid, reason)
        assert data["reason"] in (None, "REGEX", "DNS", "BLACKLIST", "SMTP")
        assert isinstance(data["errors"], list)


@asynchronous
async def test_a_single_check_without_an_answer_is_not_read_as_invalid(tmp_path: Path) -> None:
    async with earlier(tmp_path) as world:
        data = (await world.check("late@example.org", "smtp")).json()["data"]
        assert False not in data["checks"].values()
        assert parse_payload(data).result == "unknown"


async def record_of(world: RunningService, job_id: str) -> dict:
    """The record of a job that has ended."""
    record = await world.ended(job_id)
    assert set(record) == RECORD
    for key in ("created_at", "updated_at"):
        assert datetime.fromisoformat(record[key]).utcoffset() is not None
    assert isinstance(record["details"], dict)
    assert isinstance(record["message"], str)
    return record


@pytest.mark.parametrize(
    ("local", "status"),
    [("ada", "valid"), ("info", "valid"), ("gone", "invalid"), ("late", "error"), ("bad", "error")],
)
@asynchronous
async def test_poll_status_is_the_verdict(tmp_path: Path, local: str, status: str) -> None:
    async with earlier(tmp_path) as world:
        [job_id] = await world.submitted(f"{local}@example.org", validation_type="smtp")
        record = await record_of(world, job_id)
        assert record["status"] == status


@asynchronous
async def test_every_entry_is_queued_and_a_malformed_one_ends_in_error(tmp_path: Path) -> None:
    async with earlier(tmp_path) as world:
        reply = await world.submit(["ada@example.org", "broken", "a\x00\ud800"])
        entries = reply.json()["data"]["results"]
        assert {entry["status"] for entry in entries} == {"queued"}
        assert await world.used() == 3
        records = [await record_of(world, entry["job_id"]) for entry in entries]
        assert [record["status"] for record in records] == ["valid", "error", "error"]
        assert records[1]["message"] == "Invalid email format"
        assert records[2]["email"] == "a\x00\ud800"


@pytest.mark.embedded
@asynchronous
async def test_waiting_job_has_the_earlier_record_too(tmp_path: Path) -> None:
    async with serving(
        tmp_path, AnsweringBackend(gate=asyncio.Event()), revision="earlier", concurrency=1
    ) as world:
        await world.submitted("bob@example.org")
        await world.has_queue(verifying=1)
        [job_id] = await world.submitted("ada@example.org")
        record = await world.poll(job_id)
        assert set(record) == RECORD
        assert (record["status"], record["details"]) == ("queued", {})


@asynchronous
async def test_client_reads_what_the_service_speaks(tmp_path: Path) -> None:
    async with earlier(tmp_path) as world:
        single = (await world.check("gone@example.org", "mx")).json()["data"]
        assert parse_payload(single).result == "invalid"
        [job_id] = await world.submitted("gone@example.org", validation_type="mx")
        await world.ended(job_id)
        data = (await world.get(f"/api/verification-result/{job_id}")).json()["data"]
        assert parse_job(data, "mx").verification.result == "invalid"


@asynchronous
async def test_errors_have_the_same_codes_and_statuses(tmp_path: Path) -> None:
    async with earlier(tmp_path, daily_limit=1) as world:
        assert (await world.check("")).json()["error"]["code"] == "EMAIL_REQUIRED"
        assert (await world.submit(["a@example.org"] * 101)).status_code == 422
        assert (await world.submit(["a@example.org"] * 2)).json()["error"][
            "code"
        ] == "QUOTA_EXCEEDED"
        assert (await world.get("/api/verification-result/nope")).json()["error"][
            "code"
        ] == "JOB_NOT_FOUND"
        assert (await world.check("bad@example.org", "smtp")).json()["error"][
            "code"
        ] == "UPSTREAM_ERROR"


@asynchronous
async def test_quota_and_meta_are_the_same_in_both(tmp_path: Path) -> None:
    async with earlier(tmp_path) as world:
        assert (await world.get("/api/quota")).json() == {
            "daily_limit": 100,
            "used": 0,
            "remaining": 100,
        }
        assert (await world.check()).json()["meta"]["version"] == "v1"


@asynchronous
async def test_store_written_under_one_revision_is_read_under_the_other(tmp_path: Path) -> None:
    async with serving(tmp_path, AnsweringBackend(SCRIPT)) as world:
        [job_id] = await world.submitted("gone@example.org", validation_type="mx")
        await world.ended(job_id)
    async with earlier(tmp_path) as world:
        assert (await record_of(world, job_id))["status"] == "invalid"
