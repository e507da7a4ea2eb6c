"""The service with the real engine behind it, in the sandbox's world."""

import asyncio
from pathlib import Path

import pytest

from mailverdict.checks.syntax.address import is_well_formed
from mailverdict.local.backend import LocalBackend
from mailverdict.sandbox import World as Sandbox
from mailverdict.sandbox.examples import ADDRESSES
from tests.doubles.service import asynchronous, serving

EXPECTED = [
    ("ada@gmail.com", "valid"),
    ("info@gmail.com", "valid"),
    ("ada@gone.example", "invalid"),
]


@asynchronous
async def test_single_checks_and_jobs_agree(tmp_path: Path) -> None:
    async with Sandbox() as sandbox, serving(tmp_path, sandbox.make_backend()) as world:
        jobs = await world.submitted(*(email for email, _ in EXPECTED), validation_type="mx")
        for job_id, (email, verdict) in zip(jobs, EXPECTED, strict=True):
            record = await world.ended(job_id)
            single = (await world.check(email, "mx")).json()["data"]
            assert record["verification"]["result"] == single["result"] == verdict
            for payload in (record["verification"], single):
                payload["metadata"].pop("validated_at")
            assert record["verification"] == single


@asynchronous
async def test_regex_is_settled_at_once_and_as_in_a_batch(tmp_path: Path) -> None:
    async with serving(tmp_path, LocalBackend()) as world:
        single = (await world.check("Info+x@Gmail.COM")).json()["data"]
        [job_id] = await world.submitted("Info+x@Gmail.COM")
        job = (await world.ended(job_id))["verification"]
        for payload in (job, single):
            payload["metadata"].pop("validated_at")
        assert job == single
        assert (single["role"], single["free"], single["result"]) == (True, True, "valid")
        assert await world.used() == 2


@pytest.mark.slow
@asynchronous
async def test_jobs_of_many_clients_for_one_domain_share_its_look_up(tmp_path: Path) -> None:
    async with Sandbox() as sandbox, serving(tmp_path, sandbox.make_backend(), gather=1) as world:
        jobs = []
        for n in range(5):
            jobs += await world.submitted(
                f"a{n}@gmail.com",
                f"b{n}@gmail.com",
                "c@outlook.com",
                validation_type="mx",
                address=f"192.0.2.{n}",
            )
        verdicts = [(await world.ended(job_id))["verification"]["result"] for job_id in jobs]
        assert verdicts == ["valid"] * 15
        assert sandbox.dns.count() <= 2 * 3  # two domains: at most MX, A and AAAA of each


@asynchronous
async def test_checks_at_one_moment_are_answered_each(tmp_path: Path) -> None:
    async with Sandbox() as sandbox, serving(tmp_path, sandbox.make_backend()) as world:
        emails = [email for email, _ in EXPECTED] * 5
        replies = await asyncio.gather(*(world.check(email, "mx") for email in emails))
        assert [reply.json()["data"]["result"] for reply in replies] == [
            verdict for _, verdict in EXPECTED
        ] * 5


@pytest.mark.slow  # tests/flows/test_own_service.py compares the service with the engine behind it, by sessions too
@asynchronous
async def test_mailboxes_come_out_as_the_world_says(tmp_path: Path) -> None:
    spoken = [each for each in ADDRESSES if each.address.isascii() and is_well_formed(each.address)]
    async with (
        Sandbox() as sandbox,
        serving(tmp_path, sandbox.make_backend(), daily_limit=10_000) as world,
    ):
        jobs = []
        for at in range(0, len(spoken), 100):
            emails = [each.address for each in spoken[at : at + 100]]
            jobs += await world.submitted(*emails, validation_type="smtp")
        for job_id, each in zip(jobs, spoken, strict=True):
            payload = (await world.ended(job_id))["verification"]
            assert (payload["result"], ";".join(payload["reasons"])) == (
                each.verdict,
                each.reasons,
            ), each.why
            assert {"catch_all", "protected"} <= set(payload)
            assert payload["details"] == (payload["reasons"] or [None])[0]
            if payload["protected"]:
                assert payload["result"] in ("unknown", "risky")


@asynchronous
async def test_metadata_names_the_exchanges_and_what_was_said(tmp_path: Path) -> None:
    async with Sandbox() as sandbox, serving(tmp_path, sandbox.make_backend()) as world:
        found = (await world.check("ada@plain.example", "smtp")).json()["data"]
        assert (found["result"], found["catch_all"], found["protected"]) == ("valid", False, False)
        assert set(found["checks"]) == {
            "syntax",
            "dns",
            "smtp_port",
            "smtp_connection",
            "smtp_rcptto",
            "smtp",
        }
        assert found["metadata"]["smtp_host"] == "mx.plain.example"
        assert found["metadata"]["mx_records"] == ["mx.plain.example"]
        refused = (await world.check("nobody@plain.example", "smtp")).json()["data"]
        assert (refused["result"], refused["details"]) == ("invalid", "mailbox_not_found")
        assert refused["metadata"]["smtp_error"].startswith("550 5.1.1 ")


@asynchronous
async def test_jobs_of_many_clients_for_one_exchange_share_its_sessions(tmp_path: Path) -> None:
    async with Sandbox() as sandbox, serving(tmp_path, sandbox.make_backend(), gather=1) as world:
        jobs = []
        for n in range(10):
            emails = [f"ada{n}x{m}@catch-all.example" for m in range(10)]
            jobs += await world.submitted(*emails, validation_type="smtp", address=f"192.0.2.{n}")
        for job_id in jobs:
            assert (await world.ended(job_id))["status"] == "done"
        stats = sandbox.smtp.stats("mx.catch-all.example")
        assert sum(stats.rcpts.values()) >= 100
        assert stats.sessions <= 2  # what politeness allows one exchange at once, and not a hundred
