"""The remote backend and the package's own service, over real sockets: both ends of one contract."""

import math
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest

import mailverdict as mv
from mailverdict.sandbox import World
from mailverdict.service import ServiceSettings, create_app
from tests.doubles.serving import serve

QUICK = mv.PollSchedule(steps=((math.inf, 0.05),))
SAME = [
    "verdict",
    "reasons",
    "role",
    "spamtrap",
    "disposable",
    "free",
    "catch_all",
    "protected",
    "status",
    "suggestion",
]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with World(daily_limit=100) as opened:
        yield opened


def count_requests(world: World) -> Counter[str]:
    """How many requests the service answered, by route; its own counts are not among them."""
    text = httpx.get(f"{world.url}/metrics").text
    found = re.findall(
        r'^mailverdict_http_requests_total\{route="([^"]+)",.*\} (\S+)$', text, re.MULTILINE
    )
    counts: Counter[str] = Counter()
    for route, count in found:
        counts[route] += int(float(count))
    del counts["/metrics"]
    return counts


def verify(world: World, data: Any, **options: Any) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mv.verify(
            data, **{"backend": mv.RemoteBackend(world.url, QUICK), "journal": None, **options}
        )


@pytest.mark.parametrize(
    "kind",
    [*(pytest.param(kind, marks=pytest.mark.slow) for kind in ("regex", "mx")), "mx_blacklist"],
)
def test_the_service_gives_the_verdicts_of_the_engine_behind_it(world: World, kind: str) -> None:
    world.next_day()
    column = [example.address for example in world.addresses]
    here = mv.verify(column, validation_type=kind, backend=world.backend)
    there = verify(world, column, validation_type=kind)
    pd.testing.assert_frame_equal(here[SAME], there[SAME])


@pytest.mark.slow
def test_the_service_gives_the_verdicts_of_sessions_too() -> None:
    """Only exchanges that answer: the others are told from each other by short waits, which a busy machine misses."""
    with World(command_timeout=20, connect_timeout=20, deadline=60) as patient:
        column = [example.address for example in patient.addresses if example.verdict != "unknown"]
        here = mv.verify(column, validation_type="smtp", backend=patient.backend)
        there = verify(patient, column, validation_type="smtp")
    pd.testing.assert_frame_equal(here[SAME], there[SAME])
    assert set(here["verdict"]) == {"valid", "risky", "invalid"}


@pytest.mark.slow  # test_remote.py has three days with a service that watches
def test_250_addresses_take_three_days_and_250_units(world: World, tmp_path: Path) -> None:
    column = [f"user{n}@gmail.com" for n in range(250)]
    spent = []
    for _ in range(3):
        world.next_day()
        out = verify(world, column, validation_type="regex", journal=tmp_path / "j.db")
        spent.append(mv.quota(world.url).used)
    assert (out["status"] == "done").all()
    assert spent == [100, 100, 50]


@pytest.mark.slow
def test_a_plan_tells_what_happens(world: World, tmp_path: Path) -> None:
    world.next_day()
    column = [f"planned{n}@gmail.com" for n in range(30)]
    journal = tmp_path / "j.db"
    verify(world, column[:20], validation_type="regex", journal=journal)
    plan = mv.plan(column, validation_type="regex", backend=world.url, journal=journal)
    assert (plan.known, plan.to_submit, plan.batches, plan.remaining, plan.days) == (
        20,
        10,
        1,
        80,
        1,
    )


def test_a_single_check_and_a_job_give_the_same_payload(world: World) -> None:
    world.next_day()
    there = mv.check(
        "info@gmail.com", validation_type="mx", backend=mv.RemoteBackend(world.url, QUICK)
    ).to_dict()
    here = mv.check("info@gmail.com", validation_type="mx", backend=world.backend).to_dict()
    for payload in (there, here):
        payload.pop("metadata")
    assert there == here


def test_a_check_has_the_suggestion_of_the_row_wherever_it_was_made(world: World) -> None:
    world.next_day()
    by_column = mv.verify(["Grace@gmial.com", "ada@gmail.com"], backend=world.backend)["suggestion"]
    assert by_column.tolist() == ["Grace@gmail.com", pd.NA]
    for backend in (world.backend, mv.RemoteBackend(world.url, QUICK)):
        for email, meant in zip(
            ("Grace@gmial.com", "ada@gmail.com"), ("Grace@gmail.com", None), strict=True
        ):
            found = mv.check(email, validation_type="mx", backend=backend)
            assert found.suggestion == found.to_dict()["metadata"].get("suggestion") == meant
            shown = str(mv.explain(email, validation_type="mx", backend=backend))
            assert ("Grace@gmail.com" in shown) == (meant is not None)


def test_a_check_by_url_is_one_request_and_no_job(world: World) -> None:
    world.next_day()
    before = count_requests(world)
    found = mv.check("ada@gmail.com", validation_type="mx", backend=world.url)
    explained = mv.explain("ada@gmail.com", validation_type="mx", backend=world.url)
    assert count_requests(world) - before == Counter({"/api/check-email": 2})
    assert (found.result, explained.verification.result) == ("valid", "valid")
    assert mv.check("not an address", validation_type="mx", backend=world.url).reason == "REGEX"
    assert mv.quota(world.url).used == 2


@pytest.mark.slow
def test_a_check_beyond_the_quota_is_an_exception(world: World) -> None:
    world.next_day()
    verify(world, [f"ada{n}@gmail.com" for n in range(100)], validation_type="regex")
    with pytest.raises(mv.QuotaExceeded) as raised:
        mv.check("ada@gmail.com", validation_type="mx", backend=world.url)
    assert (raised.value.limit, raised.value.remaining, raised.value.requested) == (100, 0, 1)


@pytest.mark.slow
def test_a_service_of_the_earlier_revision_says_yes_and_no(world: World, tmp_path: Path) -> None:
    settings = ServiceSettings(
        store=f"sqlite:///{tmp_path / 'jobs.db'}", revision="earlier", access_log=False
    )
    column = ["ada@gmail.com", "ada@gone.example", "nobody"]
    with serve(create_app(settings, world.make_backend()), lifespan="on") as url:
        out = mv.verify(
            column,
            validation_type="mx",
            backend=mv.RemoteBackend(url, QUICK),
            journal=None,
            columns="all",
        )
        single = [mv.check(email, validation_type="mx", backend=url).result for email in column]
    assert out["verdict"].tolist() == single == ["valid", "invalid", "invalid"]
    assert out["source"].tolist() == ["remote", "remote", "local"]
    assert out["reasons"].tolist() == ["", "", ""]
    assert out["free"].isna().all(), "flags are not in that revision, and none are made up"


@pytest.mark.slow  # tests/service/test_pace.py has it with a clock that the test sets
def test_a_column_beyond_the_burst_is_verified_at_the_service_s_pace(
    world: World, tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path / 'jobs.db'}"
    settings = ServiceSettings(
        store=store, daily_limit=250, rate_limit=200, rate_burst=100, access_log=False
    )
    column = [f"a{n}@gmail.com" for n in range(200)]
    with serve(create_app(settings, world.make_backend()), lifespan="on") as url:
        out = mv.verify(
            column, validation_type="mx", backend=mv.RemoteBackend(url, QUICK), journal=None
        )
        left = mv.quota(url).remaining
    assert out["verdict"].tolist() == ["valid"] * 200
    assert left == 50
