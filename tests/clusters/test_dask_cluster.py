"""Dask's LocalCluster of two worker processes.

Equal answers, each owner asked once, kills survived.
"""

from __future__ import annotations

import os
import signal

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import mailverdict as mv
from mailverdict.errors import SettingsError
from tests.clusters.conftest import (
    DELAY,
    DOMAINS,
    REPEATED_DOMAINS,
    REPEATED_RCPTS,
    ROUND_TRIP,
    Killer,
    check_counts,
    rcpts_of,
    slow_world,
)

distributed = pytest.importorskip(
    "distributed", reason="needs dask[distributed]: see `make test-clusters`"
)
dd = pytest.importorskip("dask.dataframe")
mailverdict_dask = pytest.importorskip("mailverdict.dask")

PARTS = 5


@pytest.fixture(scope="module")
def client():
    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "processes": True,
        "dashboard_address": "127.0.0.1:0",
    }
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


def verified(frame, world, **options):
    ddf = dd.from_pandas(frame, npartitions=PARTS)
    return mailverdict_dask.verify(
        ddf, "email", backend=world.backend, **{"progress": False, **options}
    )


@pytest.mark.parametrize("kind", ["regex", "mx", "mx_blacklist"])
def test_verdicts_are_those_of_one_process(client, kind):
    with mv.sandbox.World() as world:
        frame = pd.DataFrame(
            {"email": [*(each.address for each in world.addresses), None, "", "nobody"] * 4}
        )
        frame["email"] = frame["email"].astype("string[pyarrow]")  # Dask's own dtype for text
        out = verified(frame, world, validation_type=kind, columns="all").compute()
        there = mv.verify(
            frame,
            "email",
            validation_type=kind,
            backend=world.backend,
            columns="all",
            progress=False,
        )
    assert_frame_equal(out.drop(columns="email_checked_at"), there.drop(columns="email_checked_at"))


def test_each_owner_is_asked_by_one_task(client):
    with slow_world() as (world, frame):
        out = verified(frame, world, validation_type="smtp").compute()
        check_counts(world, [f"d{at}.example" for at in range(DOMAINS)])
        assert max(rcpts_of(world)) == 1
    assert out["email_verdict"].value_counts()["valid"] == len(frame)
    assert out["row"].tolist() == frame["row"].tolist()


def test_a_worker_killed_while_it_asks_the_dns_repeats_only_what_was_not_written(client):
    with slow_world(dns_delay=DELAY) as (world, frame):
        killer = Killer("domains", world, lambda: list(client.run(os.getpid).values()))
        out = verified(frame, world, progress=killer).compute()
        check_counts(world, [f"d{at}.example" for at in range(DOMAINS)], repeated=REPEATED_DOMAINS)
    assert killer.killed
    assert out["email_verdict"].value_counts()["valid"] == len(frame)


def test_a_worker_killed_while_it_asks_mail_servers_repeats_only_what_was_not_written(client):
    with slow_world(round_trip=ROUND_TRIP) as (world, frame):
        killer = Killer("mailboxes", world, lambda: list(client.run(os.getpid).values()))
        out = verified(frame, world, validation_type="smtp", progress=killer).compute()
        check_counts(world, [f"d{at}.example" for at in range(DOMAINS)])
        assert sum(rcpts_of(world)) - len(frame) <= REPEATED_RCPTS
    assert killer.killed
    assert out["email_verdict"].value_counts()["valid"] == len(frame)


@pytest.mark.parametrize("reading", [1, 2], ids=["before domains", "to attach the answers"])
def test_a_worker_killed_while_it_reads_rows_asks_nothing_twice(client, tmp_path, reading):
    with slow_world() as (world, frame):
        size = len(frame) // PARTS

        def partition(number):
            if number == PARTS - 1:
                times = len(list(tmp_path.iterdir())) + 1
                (tmp_path / str(times)).touch()
                if times == reading:
                    os.kill(os.getpid(), signal.SIGKILL)
            return frame[number * size : (number + 1) * size]

        ddf = dd.from_map(partition, range(PARTS), meta=frame[:0])
        options = {"backend": world.backend, "validation_type": "smtp", "progress": False}
        out = mailverdict_dask.verify(ddf, "email", **options).compute()
        check_counts(world, [f"d{at}.example" for at in range(DOMAINS)])
        assert max(rcpts_of(world)) == 1
    assert len(list(tmp_path.iterdir())) > reading
    assert out["email_verdict"].value_counts()["valid"] == len(frame)


def test_a_remote_service_pays_once_for_each_address(client):
    with mv.sandbox.World() as world:
        frame = pd.DataFrame({"email": ["ada@gmail.com", "bo@gone.example", "nobody"] * 20})
        ddf = dd.from_pandas(frame, npartitions=PARTS)
        out = mailverdict_dask.verify(
            ddf, "email", backend=world.url, journal=None, progress=False
        ).compute()
        assert mv.quota(world.url).used == 2
    assert out["email_verdict"].value_counts().to_dict() == {
        "valid": 20,
        "invalid": 40,
        "risky": 0,
        "unknown": 0,
    }


def test_a_scratch_folder_is_required_on_other_machines(client, monkeypatch):
    there = {"tcp://192.0.2.7:1": {"host": "192.0.2.7"}}
    monkeypatch.setattr(
        client, "scheduler_info", lambda **_: {"address": "tcp://192.0.2.1:8786", "workers": there}
    )
    with mv.sandbox.World() as world, pytest.raises(SettingsError, match="scratch=None"):
        verified(pd.DataFrame({"email": ["ada@gmail.com"]}), world)
