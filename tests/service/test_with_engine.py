"""The service with the real engine behind it, in the sandbox's world."""

import asyncio
from pathlib import Path

from mailverdict.local.backend import LocalBackend
from mailverdict.sandbox import World as Sandbox

from .world import asynchronous, serving

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


@asynchronous
async def test_jobs_of_many_clients_for_one_domain_share_its_look_up(tmp_path: Path) -> None:
    async with Sandbox() as sandbox, serving(tmp_path, sandbox.make_backend()) as world:
        world.parts.worker.depth.verifying = world.parts.settings.concurrency  # they come together
        jobs = []
        for n in range(5):
            jobs += await world.submitted(
                f"a{n}@gmail.com", f"b{n}@gmail.com", "c@outlook.com", validation_type="mx", address=f"192.0.2.{n}"
            )
        world.parts.worker.depth.verifying = 0
        world.parts.worker.changed.set()
        verdicts = [(await world.ended(job_id))["verification"]["result"] for job_id in jobs]
        assert verdicts == ["valid"] * 15
        assert sandbox.dns.count() <= 2 * 3  # two domains: at most MX, A and AAAA of each


@asynchronous
async def test_checks_at_one_moment_are_answered_each(tmp_path: Path) -> None:
    async with Sandbox() as sandbox, serving(tmp_path, sandbox.make_backend()) as world:
        emails = [email for email, _ in EXPECTED] * 5
        replies = await asyncio.gather(*(world.check(email, "mx") for email in emails))
        assert [reply.json()["data"]["result"] for reply in replies] == [verdict for _, verdict in EXPECTED] * 5
