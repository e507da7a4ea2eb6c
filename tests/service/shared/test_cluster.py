"""Two APIs, two workers, fifty clients: kills and a restart of the database in the middle."""

import asyncio
import threading
from collections import Counter
from pathlib import Path

import httpx
import pytest

from tests.doubles.waiting import wait_until
from tests.service.postgres import Cluster
from tests.service.shared.hosts import LINES, Hosts, check_until, client_address, hosts, make_world, submit_all

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

CLIENTS, BATCHES = 50, 4
JOBS = CLIENTS * BATCHES * LINES
EXCHANGES, DOMAINS = 20, 100
CHECKERS = 5  # clients with single checks
SESSIONS = 2  # the limit for one exchange


def wait_for(running: Hosts, condition: str, count: int, seconds: float = 240) -> None:
    is_reached = wait_until(lambda: running.count(condition) >= count, seconds)
    assert is_reached, running.rows("SELECT status, count(*), count(due) FROM job GROUP BY status")


def disturb(running: Hosts, cluster: Cluster) -> None:
    """Kill an API and a worker, restart the database, start both again; then restart the others in an orderly way."""
    api, other_api, worker, other_worker = running.started
    wait_for(running, "true", JOBS // 4)
    api.kill()
    wait_for(running, "status = 'done'", JOBS // 8)
    worker.kill()
    api.start()
    cluster.restart()
    worker.start()
    wait_for(running, "status = 'done'", JOBS // 4)
    for host in (worker, api):
        host.wait()
    for host in (other_worker, other_api):
        assert host.stop() in (0, -15)
        host.start()
        host.wait()


def test_nothing_is_lost_or_doubled_and_limits_hold(tmp_path: Path, cluster: Cluster) -> None:
    world = make_world(EXCHANGES, DOMAINS, delay=0.02)
    settings = {"daily_limit": 10_000, "concurrency": 2000, "max_sessions_per_exchange": SESSIONS}
    with hosts(cluster.empty_database(), world, tmp_path, **settings) as running:
        apis = [running.start("serve") for _ in range(2)]
        apis[0].wait()
        workers = [running.start("worker") for _ in range(2)]
        for host in (*apis, *workers):
            host.wait()
        failures: list[BaseException] = []

        def disturb_and_keep_failure() -> None:
            try:
                disturb(running, cluster)
            except BaseException as exc:  # noqa: BLE001 - raised below, in the test's own thread
                failures.append(exc)

        over = threading.Event()
        answers: Counter[str] = Counter()

        def check_meanwhile() -> None:
            """Single checks for as long as jobs are verified."""
            nonlocal answers
            try:
                answers, sent = asyncio.run(check_until(apis, CHECKERS, DOMAINS, over.is_set))
                used = running.rows("SELECT sum(used) FROM quota WHERE client LIKE '203.0.113.%'")[0][0]
                assert answers["valid"] <= used <= sent
            except BaseException as exc:  # noqa: BLE001 - raised below
                failures.append(exc)

        threads = [threading.Thread(target=each) for each in (disturb_and_keep_failure, check_meanwhile)]
        for thread in threads:
            thread.start()
        try:
            accepted, _ = asyncio.run(submit_all(apis, CLIENTS, BATCHES, DOMAINS))
            threads[0].join()
            assert not failures, failures
            stored = running.count("true")
            wait_for(running, "status IN ('done', 'error')", stored)
        finally:
            over.set()
            threads[1].join()
        assert not failures, failures
        assert answers["valid"] >= CHECKERS
        assert set(answers) <= {"valid", "throttled"}, answers
        audit(running, accepted)
        most = {host: world.smtp.stats(host).most_open for host in (f"mx.owner{n}.example" for n in range(EXCHANGES))}
        assert max(most.values()) <= SESSIONS, most
        asked = Counter()
        for host in most:
            asked.update(world.smtp.stats(host).rcpts)
        print(
            f"{answers} single checks, {stored:,} jobs, {sum(asked.values()) - len(asked):,} addresses asked twice, sessions {max(most.values())}"
        )
        for host in (apis[1], workers[1]):
            assert host.stop() in (0, -15)


def audit(running: Hosts, accepted: dict[str, list[str]]) -> None:
    """Every accepted job has its result, and the quota is exact."""
    jobs = [job_id for ids in accepted.values() for job_id in ids]
    assert len(jobs) == len(set(jobs)) == JOBS
    ended = dict(running.rows("SELECT job_id, status FROM job"))
    assert {ended[job_id] for job_id in jobs} == {"done"}
    quota = dict(running.rows("SELECT client, sum(used) FROM quota GROUP BY client"))
    for client, stored in running.rows("SELECT client, count(*) FROM job GROUP BY client"):
        assert quota[client] == stored
        assert stored == len(accepted[client]), "a submission whose answer was lost was written twice"
    assert running.rows("SELECT sum(count) FROM tally") == [(len(ended),)]
    assert running.rows("SELECT count(*) FROM assignment") == [(0,)]
    assert running.rows(
        "SELECT count(*) FROM single_check WHERE expires_at > extract(epoch FROM now()) AND NOT is_answered"
    ) == [(0,)]
    assert running.rows("SELECT DISTINCT verification::json ->> 'result' FROM job") == [("valid",)]
    for api in running.started[:2]:
        quota_of = httpx.get(f"{api.url}/api/quota", headers={"x-forwarded-for": client_address(0)}).json()
        assert quota_of["used"] == quota[client_address(0)]
