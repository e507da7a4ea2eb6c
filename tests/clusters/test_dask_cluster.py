"""Dask's LocalCluster of two worker processes: equal answers, each owner asked once, kills survived."""

from __future__ import annotations

import os
import signal

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import mailverdict as mv
from mailverdict.errors import SettingsError
from tests.clusters.conftest import CONCURRENCY, DELAY, DOMAINS, check_counts, slow_world

distributed = pytest.importorskip("distributed", reason="needs dask[distributed]: see `make test-clusters`")
dd = pytest.importorskip("dask.dataframe")
mailverdict_dask = pytest.importorskip("mailverdict.dask")

PARTS = 5
UNWRITTEN = 2.0  # seconds of work that a lost task may repeat


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


def verified(frame, world, **options):
    ddf = dd.from_pandas(frame, npartitions=PARTS)
    return mailverdict_dask.verify(ddf, "email", backend=world.backend, **{"progress": False, **options})


def kill_one(client):
    """Kill a worker process, as a machine that is lost."""
    pids = client.run(os.getpid)
    os.kill(pids[min(pids)], signal.SIGKILL)


@pytest.mark.parametrize("kind", ["regex", "mx", "mx_blacklist"])
def test_verdicts_are_those_of_one_process(client, kind):
    with mv.sandbox.World() as world:
        frame = pd.DataFrame({"email": [*(each.address for each in world.addresses), None, "", "nobody"] * 4})
        frame["email"] = frame["email"].astype("string[pyarrow]")  # Dask's own dtype for text
        out = verified(frame, world, validation_type=kind, columns="all").compute()
        there = mv.verify(frame, "email", validation_type=kind, backend=world.backend, columns="all", progress=False)
    assert_frame_equal(out.drop(columns="email_checked_at"), there.drop(columns="email_checked_at"))


def test_each_owner_is_asked_by_one_task(client):
    with slow_world() as (world, frame):
        out = verified(frame, world, validation_type="smtp").compute()
        check_counts(world, [f"d{at}.example" for at in range(DOMAINS)])
        rcpts = [count for host in world.smtp.exchanges for count in world.smtp.stats(host).rcpts.values()]
    assert out["email_verdict"].value_counts()["valid"] == len(frame)
    assert out["row"].tolist() == frame["row"].tolist()
    assert max(rcpts) == 1


@pytest.mark.parametrize("stage", ["domains", "mailboxes"])
def test_a_killed_worker_repeats_only_what_was_not_written(client, stage):
    killed = []

    def kill(progress):
        if f"stage {stage}" == progress.message and progress.settled >= 40 and not killed:
            killed.append(progress.settled)
            kill_one(client)

    with slow_world() as (world, frame):
        out = verified(frame, world, validation_type="smtp", progress=kill).compute()
        per_second = CONCURRENCY / 2 / DELAY  # questions of one of two tasks
        check_counts(world, [f"d{at}.example" for at in range(DOMAINS)], repeated=int(UNWRITTEN * per_second))
        rcpts = [count for host in world.smtp.exchanges for count in world.smtp.stats(host).rcpts.values()]
    assert killed
    assert out["email_verdict"].value_counts()["valid"] == len(frame)
    assert sum(rcpts) - len(frame) <= UNWRITTEN * 2 * 50 / 0.05  # two sessions of 50 recipients each round trip


def test_a_worker_killed_while_rows_are_joined_asks_nothing(client):
    with slow_world() as (world, frame):
        out = verified(frame, world)
        asked = world.dns.count()
        future = client.compute(out)
        kill_one(client)
        assert future.result()["email_verdict"].value_counts()["valid"] == len(frame)
        assert world.dns.count() == asked


def test_a_remote_service_pays_once_for_each_address(client):
    with mv.sandbox.World() as world:
        frame = pd.DataFrame({"email": ["ada@gmail.com", "bo@gone.example", "nobody"] * 20})
        ddf = dd.from_pandas(frame, npartitions=PARTS)
        out = mailverdict_dask.verify(ddf, "email", backend=world.url, journal=None, progress=False).compute()
        assert mv.quota(world.url).used == 2
    assert out["email_verdict"].value_counts().to_dict() == {"valid": 20, "invalid": 40, "risky": 0, "unknown": 0}


def test_a_scratch_folder_is_required_on_other_machines(client, monkeypatch):
    there = {"tcp://192.0.2.7:1": {"host": "192.0.2.7"}}
    monkeypatch.setattr(client, "scheduler_info", lambda **_: {"address": "tcp://192.0.2.1:8786", "workers": there})
    with mv.sandbox.World() as world, pytest.raises(SettingsError, match="scratch=None"):
        verified(pd.DataFrame({"email": ["ada@gmail.com"]}), world)
