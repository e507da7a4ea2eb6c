"""``GET /api/quota``, and whom use is accounted to."""

import asyncio
from pathlib import Path

import pytest

from tests.doubles.answering_backend import AnsweringBackend
from tests.doubles.clock import NOON, Clock
from tests.doubles.service import asynchronous, serving

DAY = 86_400


@asynchronous
async def test_record_has_three_whole_numbers_and_no_envelope(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        await world.check()
        reply = await world.get("/api/quota")
        assert reply.status_code == 200
        assert reply.json() == {"daily_limit": 100, "used": 1, "remaining": 99}


@asynchronous
async def test_hundred_a_day_is_the_default(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        assert (await world.submit([f"a{i}@example.org" for i in range(100)])).status_code == 202
        assert (await world.check()).status_code == 429
        assert (await world.get("/api/quota")).json() == {
            "daily_limit": 100,
            "used": 100,
            "remaining": 0,
        }


@asynchronous
async def test_clients_have_quotas_of_their_own(tmp_path: Path) -> None:
    async with serving(tmp_path, daily_limit=1) as world:
        assert (await world.check(address="192.0.2.1")).status_code == 200
        assert (await world.check(address="192.0.2.1")).status_code == 429
        assert (await world.check(address="192.0.2.2")).status_code == 200


@asynchronous
async def test_addresses_of_one_ipv6_network_are_one_client(tmp_path: Path) -> None:
    async with serving(tmp_path, daily_limit=2) as world:
        assert (await world.check(address="2001:db8:0:1::1")).status_code == 200
        assert (await world.check(address="2001:db8:0:1:ffff::9")).status_code == 200
        assert (await world.check(address="2001:db8:0:1::3")).status_code == 429
        assert (await world.check(address="2001:db8:0:2::1")).status_code == 200


@asynchronous
async def test_forged_forwarding_header_changes_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path, daily_limit=1) as world:
        assert (await world.check()).status_code == 200
        for header in ("x-forwarded-for", "forwarded", "x-real-ip", "cf-connecting-ip"):
            assert (await world.check(**{header: "203.0.113.7"})).status_code == 429


@asynchronous
async def test_trusted_proxy_tells_whom_it_speaks_for(tmp_path: Path) -> None:
    proxies = ["10.0.0.0/8"]
    async with serving(tmp_path, daily_limit=1, trusted_proxies=proxies) as world:
        forwarded = {"x-forwarded-for": "198.51.100.1, 203.0.113.7, 10.0.0.2"}
        assert (await world.check(address="10.0.0.1", **forwarded)).status_code == 200
        assert await world.used("203.0.113.7") == 1
        assert await world.used("198.51.100.1") == 0  # whoever said so is not trusted
        assert await world.used("10.0.0.1") == 0


@asynchronous
async def test_quota_starts_anew_at_midnight_utc(tmp_path: Path) -> None:
    clock = Clock(NOON // DAY * DAY + DAY - 1)
    async with serving(tmp_path, clock=clock, daily_limit=1) as world:
        assert (await world.check()).status_code == 200
        assert (await world.check()).status_code == 429
        clock.now += 1
        assert await world.used() == 0
        assert (await world.check()).status_code == 200


class MidnightClock(Clock):
    """After `set`, shortly before midnight for the first reader, and after midnight for all others."""

    is_before = False

    def set(self) -> None:
        self.now, self.is_before = NOON // DAY * DAY + DAY + 0.1, True

    def __call__(self) -> float:
        before, self.is_before = self.is_before, False
        return self.now - 0.2 if before else self.now


@pytest.mark.embedded
@asynchronous
async def test_reply_that_leaves_after_midnight_announces_the_day_that_was_asked_about(
    tmp_path: Path,
) -> None:
    clock = MidnightClock()
    async with serving(tmp_path, clock=clock, daily_limit=2) as world:
        for job_id in await world.submitted("a@example.org", "b@example.org"):
            await world.ended(job_id)
        for ask in (
            lambda: world.submit(["c@example.org"]),
            world.check,
            lambda: world.get("/api/quota"),
        ):
            # The worker, which looks at the time now and then, may be the first reader.
            for _ in range(10):
                clock.set()
                reply = await ask()
                if reply.headers["ratelimit"].startswith('"daily";r=0;t=1'):
                    break
            assert reply.headers["ratelimit"].startswith('"daily";r=0;t=1'), reply.headers[
                "ratelimit"
            ]
            assert reply.headers.get("retry-after", "1") == "1", (
                "the next day begins in a second, not in 24 hours"
            )
        assert (await world.check()).status_code == 200


@asynchronous
async def test_day_turns_at_the_time_of_the_setting(tmp_path: Path) -> None:
    clock = Clock(NOON // DAY * DAY)
    async with serving(tmp_path, clock=clock, daily_limit=1, day_turns_at="06:30") as world:
        await world.check()
        clock.now += 6.5 * 3600 - 1
        assert await world.used() == 1
        clock.now += 1
        assert await world.used() == 0


@asynchronous
async def test_limit_lowered_below_what_was_used_leaves_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path, daily_limit=10) as world:
        await world.submitted(*(f"a{i}@example.org" for i in range(8)))
    async with serving(tmp_path, daily_limit=5) as world:
        assert (await world.get("/api/quota")).json() == {
            "daily_limit": 5,
            "used": 8,
            "remaining": 0,
        }
        assert (await world.check()).json()["error"]["details"] == {
            "limit": 5,
            "remaining": 0,
            "requested": 1,
        }


@asynchronous
async def test_quota_is_exact_when_many_ask_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path, AnsweringBackend(), daily_limit=25) as world:
        replies = await asyncio.gather(*(world.check(f"a{i}@example.org") for i in range(60)))
        assert sorted(reply.status_code for reply in replies) == [200] * 25 + [429] * 35
        assert await world.used() == 25


@asynchronous
async def test_no_key_is_asked_for(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        [job_id] = await world.submitted("ada@example.org")
        for path in (
            "/api/quota",
            f"/api/verification-result/{job_id}",
            "/healthz",
            "/openapi.json",
        ):
            reply = await world.get(path)
            assert reply.status_code == 200
            assert "www-authenticate" not in reply.headers
