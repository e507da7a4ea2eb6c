"""A column through a service and a journal: over several days, twice, interrupted, offline."""

import asyncio
import math
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import mailverdict as mv
from mailverdict.remote.backend import RemoteBackend
from mailverdict.remote.events import PollSchedule
from tests.doubles.remote import URL, addresses
from tests.doubles.scripted_service import FAULTS, ScriptedService, Wire, payload
from tests.doubles.waiting import wait_until

QUICK = PollSchedule(steps=((math.inf, 0.01),), give_up=60)


class Bench:
    """A service, a backend to it that polls quickly, and a journal."""

    def __init__(self, tmp_path: Path, **service: Any) -> None:
        self.service = ScriptedService(time.time, **{"duration": lambda _: 0.0, **service})
        self.backend = RemoteBackend(
            URL, QUICK, transport=Wire(self.service, asyncio.sleep, latency=0.0), jitter=lambda: 0.0
        )
        self.journal = tmp_path / "journal.db"

    def verify(self, data: Any, column: str | None = None, **options: Any) -> pd.DataFrame:
        arguments = {
            "validation_type": "smtp",
            "backend": self.backend,
            "journal": self.journal,
            **options,
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return mv.verify(data, column, **arguments)

    def requests(self) -> int:
        return sum(self.service.requests.values())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@contextmanager
def no_requests(bench: Bench) -> Iterator[None]:
    before = bench.requests()
    yield
    assert bench.requests() == before


def test_250_addresses_on_a_quota_of_100_a_day_finish_on_the_third_call(tmp_path: Path) -> None:
    bench = Bench(tmp_path, daily_limit=100)
    counts = []
    for _ in range(3):
        out = bench.verify(addresses(250))
        counts.append(out["status"].value_counts().to_dict())
        bench.service.used = 0  # the day turns over
    assert [count.get("done", 0) for count in counts] == [100, 200, 250]
    assert [count.get("pending", 0) for count in counts] == [150, 50, 0]
    assert sum(bench.service.paid.values()) == 250
    assert bench.service.violations_and_double_payments == []


@pytest.mark.slow
def test_a_column_seen_before_costs_nothing(bench: Bench) -> None:
    first = bench.verify(addresses(30))
    with no_requests(bench):
        second = bench.verify(addresses(30), columns="all")
    assert second["verdict"].tolist() == first["verdict"].tolist()
    assert set(second["source"]) == {"journal"}


def test_each_address_is_sent_once_however_it_is_written(bench: Bench) -> None:
    out = bench.verify(
        [
            "Ada@Example.org",
            " Ada@EXAMPLE.org ",
            "Ada@example.org",
            "ada@example.org",
            None,
            "no at",
            7,
        ]
    )
    assert sum(bench.service.paid.values()) == 2
    assert sorted(bench.service.paid) == ["Ada@example.org", "ada@example.org"]
    assert out["status"].tolist() == ["done"] * 4 + ["missing", "done", "done"]
    assert out["verdict"].tolist()[-2:] == ["invalid", "invalid"]


def test_a_frame_gets_the_service_s_verdicts_beside_its_own_columns(tmp_path: Path) -> None:
    verdicts = {
        "a@x.org": payload("a@x.org", "smtp"),
        "b@x.org": payload("b@x.org", "smtp", "risky", reasons=["on_holiday", "role"], role=True),
        "c@x.org": payload("c@x.org", "smtp", "unknown", reasons=["timeout"], catch_all=None),
        "d@x.org": None,
    }
    bench = Bench(tmp_path, verdict=lambda email, _: verdicts[email])
    frame = pd.DataFrame({"email": list(verdicts), "n": range(4)}, index=[9, 7, 5, 3])
    for _ in range(2):  # the second time from the journal
        out = bench.verify(frame, "email")
        assert out.index.tolist() == [9, 7, 5, 3]
        assert out["email_status"].tolist() == ["done", "done", "done", "error"]
        assert out["email_reasons"].tolist()[:3] == ["", "on_holiday;role", "timeout"]
        assert pd.isna(out["email_verdict"].iloc[3])
        assert pd.isna(out["email_catch_all"].iloc[2])
    assert sum(bench.service.paid.values()) == 4


def test_limit_bounds_what_is_spent(bench: Bench) -> None:
    out = bench.verify(addresses(50), limit=20)
    assert out["status"].value_counts().to_dict() == {
        "done": 20,
        "pending": 30,
        "error": 0,
        "missing": 0,
    }
    assert sum(bench.service.paid.values()) == 20


def test_on_quota_raise_carries_the_partial_result(tmp_path: Path) -> None:
    bench = Bench(tmp_path, daily_limit=10)
    with pytest.raises(mv.QuotaExceeded) as raised:
        bench.verify(addresses(25), on_quota="raise")
    assert raised.value.partial["status"].value_counts()["done"] == 10
    assert (raised.value.limit, raised.value.requested) == (10, 15)


@pytest.mark.slow
def test_refresh_asks_a_verdict_again_and_only_that(tmp_path: Path) -> None:
    kinds = {0: "valid", 1: "unknown"}
    bench = Bench(
        tmp_path,
        verdict=lambda e, k: payload(
            e, k, kinds[int(e[4]) % 2], reasons=["timeout"] * (int(e[4]) % 2)
        ),
    )
    bench.verify(addresses(8))
    bench.verify(addresses(8), refresh={"unknown"})
    assert sorted(bench.service.paid.values()) == [1] * 4 + [2] * 4


def test_a_technical_failure_is_handed_out_until_it_is_asked_again(tmp_path: Path) -> None:
    verdicts: dict[str, Any] = {}
    bench = Bench(tmp_path, verdict=lambda email, kind: verdicts.get(email))
    bench.verify(addresses(2))
    with no_requests(bench):
        assert bench.verify(addresses(2))["status"].tolist() == ["error"] * 2
    verdicts = {email: payload(email, "smtp") for email in addresses(2)}
    assert bench.verify(addresses(2), refresh={"error"})["status"].tolist() == ["done"] * 2


@pytest.mark.parametrize("reason", ["throttled", "rate_limited", "greylisted"])
def test_not_now_is_asked_again_by_the_next_call(tmp_path: Path, reason: str) -> None:
    rounds = {"n": 0}

    def verdict(email: str, kind: str) -> dict[str, Any]:
        return (
            payload(email, kind, "unknown", reasons=[reason])
            if rounds["n"] == 0
            else payload(email, kind)
        )

    bench = Bench(tmp_path, verdict=verdict)
    bench.backend.ask_again = False
    run = mv.start(
        addresses(3), validation_type="smtp", backend=bench.backend, journal=bench.journal
    )
    assert set(run.result()["verdict"]) == {"unknown"}
    assert f"3 {reason}" in run.progress.message
    rounds["n"] = 1
    assert set(bench.verify(addresses(3))["verdict"]) == {"valid"}


def test_max_age_asks_again_what_is_too_old(bench: Bench) -> None:
    bench.verify(addresses(3))
    bench.verify(addresses(3), max_age=0)
    assert sum(bench.service.paid.values()) == 6


def test_offline_never_touches_the_network(bench: Bench) -> None:
    bench.verify(addresses(3))
    with no_requests(bench):
        out = bench.verify(addresses(6), offline=True)
    assert out["status"].tolist() == ["done"] * 3 + ["pending"] * 3


def test_a_failure_keeps_what_is_settled_on_the_error_and_in_the_journal(bench: Bench) -> None:
    bench.verify(addresses(20))
    bench.service.always["quota"] = FAULTS["no connection"]
    with pytest.raises(mv.TransportError, match=URL) as raised:
        bench.verify(addresses(30))
    assert raised.value.partial["status"].value_counts().to_dict() == {
        "done": 20,
        "pending": 10,
        "error": 0,
        "missing": 0,
    }


def test_a_cancelled_run_is_resumed_and_nothing_is_paid_twice(tmp_path: Path) -> None:
    bench = Bench(tmp_path, duration=lambda _: 0.3)
    run = mv.start(
        addresses(150), validation_type="smtp", backend=bench.backend, journal=bench.journal
    )
    wait_until(lambda: bench.service.jobs)
    run.cancel()
    run.wait()
    bench.service.forget_told()
    out = bench.verify(addresses(150))
    assert bench.service.violations_and_double_payments == []
    assert set(out["status"]) == {"done"}
    assert max(bench.service.paid.values()) == 1


@pytest.mark.slow
def test_two_runs_on_one_journal_at_once_pay_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path, duration=lambda _: 0.05)
    options: dict[str, Any] = {
        "validation_type": "smtp",
        "backend": bench.backend,
        "journal": bench.journal,
    }
    first, second = (mv.start(addresses(120), **options) for _ in range(2))
    first.result(timeout=60)
    second.result(timeout=60)
    out = bench.verify(addresses(120))
    assert set(out["status"]) == {"done"}
    assert max(bench.service.paid.values()) == 1


def test_without_a_journal_every_call_pays(bench: Bench) -> None:
    for _ in range(2):
        bench.verify(addresses(2), journal=None)
    assert sum(bench.service.paid.values()) == 4
