"""Two APIs, two workers, fifty clients: kills and stops of the database in the middle, and clocks that differ."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.doubles.waiting import wait_until
from tests.service.postgres import Cluster
from tests.service.recount import assert_counted
from tests.service.shared.hosts import (
    LINES,
    Host,
    Hosts,
    check_until,
    client_address,
    hosts,
    make_world,
    submit_all,
)

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1200)]

CLIENTS, BATCHES = 50, 2
JOBS = CLIENTS * BATCHES * LINES
EXCHANGES, DOMAINS = 20, 100
CHECKERS = 5  # clients with single checks
SESSIONS = 2  # the limit for one exchange
WORKER_KILLS, API_KILLS, STOPS = 12, 9, 3
TEN_MINUTES = 600.0


def wait_for(running: Hosts, condition: str, count: int, seconds: float = 240) -> None:
    is_reached = wait_until(lambda: running.count(condition) >= count, seconds)
    assert is_reached, running.rows("SELECT status, count(*), count(due) FROM job GROUP BY status")


def disturb(running: Hosts, cluster: Cluster) -> None:
    """Kill workers and APIs and stop the database, in turns; recount the backlog after each.

    In the end the others are restarted in an orderly way.
    """
    apis, workers = running.started[:2], running.started[2:]
    wait_for(running, "true", JOBS // 4)
    steps: list[Callable[[], None]] = []
    for turn in range(WORKER_KILLS):
        steps.append(lambda host=workers[turn % 2]: restart(host))
        if turn < API_KILLS:
            steps.append(lambda host=apis[turn % 2]: restart(host))
        if turn % (WORKER_KILLS // STOPS) == 1:
            steps.append(lambda: restart_database(running, cluster))
    for number, step in enumerate(steps, 1):
        step()
        assert_counted(running.store)
        wait_for(running, "status = 'done'", JOBS * number // (2 * len(steps)))
        assert_counted(running.store)
    for host in (workers[1], apis[1]):
        assert host.stop() in (0, -15)
        host.start()
        host.wait()


def restart_database(running: Hosts, cluster: Cluster) -> None:
    """Stop and start it while all programs run; one that starts meanwhile ends with an error, as it should."""
    for host in running.started:
        host.wait()
    cluster.restart()


def restart(host: Host) -> None:
    """Kill it, and start it again; it need not listen yet when the next one is killed."""
    host.wait()
    host.kill()
    host.start()


def test_nothing_is_lost_or_doubled_and_limits_hold(tmp_path: Path, cluster: Cluster) -> None:
    world = make_world(EXCHANGES, DOMAINS, delay=0.02)
    settings = {"daily_limit": 10_000, "concurrency": 2000, "max_sessions_per_exchange": SESSIONS}
    with hosts(cluster.empty_database(), world, tmp_path, **settings) as running:
        apis = [running.start("serve", ahead=ahead) for ahead in (0, TEN_MINUTES)]
        apis[0].wait()
        workers = [running.start("worker", ahead=ahead) for ahead in (TEN_MINUTES, 0)]
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
                used = running.rows("SELECT sum(used) FROM quota WHERE client LIKE '203.0.113.%'")[
                    0
                ][0]
                assert answers["valid"] <= used <= sent
            except BaseException as exc:  # noqa: BLE001 - raised below
                failures.append(exc)

        threads = [
            threading.Thread(target=each) for each in (disturb_and_keep_failure, check_meanwhile)
        ]
        for thread in threads:
            thread.start()
        try:
            accepted, _ = asyncio.run(submit_all(apis, CLIENTS, BATCHES, DOMAINS))
            threads[0].join()
            assert not failures, failures
            wait_for(running, "status IN ('done', 'error') AND priority = 0", JOBS)
        finally:
            over.set()
            threads[1].join()
        assert not failures, failures
        assert answers["valid"] >= CHECKERS
        assert set(answers) <= {"valid", "throttled"}, answers
        audit(running, accepted)
        most = {
            host: world.smtp.stats(host).most_open
            for host in (f"mx.owner{n}.example" for n in range(EXCHANGES))
        }
        assert max(most.values()) <= SESSIONS, most
        asked = Counter()
        for host in most:
            asked.update(world.smtp.stats(host).rcpts)
        print(
            f"{answers} single checks, {JOBS:,} jobs, {sum(asked.values()) - len(asked):,} addresses asked twice, sessions {max(most.values())}"
        )
        for host in (apis[1], workers[1]):
            assert host.stop() in (0, -15)


def audit(running: Hosts, accepted: dict[str, list[str]]) -> None:
    """Every accepted job has its result, and the quota is exact."""
    jobs = [job_id for ids in accepted.values() for job_id in ids]
    assert len(jobs) == len(set(jobs)) == JOBS
    ended = dict(running.rows("SELECT job_id, status FROM job WHERE priority = 0"))
    assert {ended[job_id] for job_id in jobs} == {"done"}
    quota = dict(running.rows("SELECT client, sum(used) FROM quota GROUP BY client"))
    for client, stored in running.rows(
        "SELECT client, count(*) FROM job WHERE priority = 0 GROUP BY client"
    ):
        assert quota[client] == stored
        assert stored == len(accepted[client]), (
            "a submission whose answer was lost was written twice"
        )
    assert_counted(running.store)
    assert running.rows(
        "SELECT DISTINCT verification::json ->> 'result' FROM job WHERE priority = 0"
    ) == [("valid",)]
    clocks = "SELECT count(*) FROM job WHERE created_at > extract(epoch FROM now()) OR updated_at < created_at"
    assert running.rows(clocks) == [(0,)], "a host's clock was used"
    for api in running.started[:2]:
        quota_of = httpx.get(
            f"{api.url}/api/quota", headers={"x-forwarded-for": client_address(0)}
        ).json()
        assert quota_of["used"] == quota[client_address(0)]
