"""`estimate`: what is free is done for all, a sample is asked, kept and never asked again."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.errors import SettingsError
from mailverdict.mailings.estimate import SampleAnswers, cost_of_rest
from mailverdict.sandbox.smtp_script import Exchange
from mailverdict.sandbox.zones import mx
from mailverdict.table.options import check_options
from tests.doubles.answering_backend import AnsweringBackend, deferred, failed
from tests.doubles.tables import each_row

ZONES = {
    "one.example": mx("10 mx.host.example"),
    "two.example": mx("10 mx.host.example"),
    "all.example": mx("10 mta5.am0.yahoodns.net"),
}
PEOPLE = [f"p{n}" for n in range(40)]
EXCHANGES = [
    Exchange("mx.host.example", "knows even numbers", mailboxes=frozenset(PEOPLE[::2])),
    Exchange("mta5.am0.yahoodns.net", "accepts all", mailboxes=None),
]
EMAILS = [
    *(f"{name}@one.example" for name in PEOPLE),
    *(f"{name}@two.example" for name in PEOPLE),
    *(f"{name}@all.example" for name in PEOPLE[:20]),
]
OTHERS = [
    "P0@one.example ",
    "p0@one.example",
    "x@gone.example",
    "y@gone.example",
    "nobody",
    "a@b.org; c@d.org",
    None,
    "",
]


def world(**settings):
    return mv.sandbox.World(ZONES, exchanges=EXCHANGES, **settings)


def estimate(there, emails=EMAILS, **options):
    return mv.estimate(
        pd.DataFrame({"email": emails}), "email", backend=there.backend, progress=False, **options
    )


def asked(there):
    return sum(there.smtp.stats(each.host).commands["RCPT"] for each in EXCHANGES)


def test_a_sample_tells_of_the_whole(tmp_path):
    with world() as there:
        est = estimate(there, sample=60, journal=tmp_path / "j.db")
    assert (est.population, est.sample, est.sampled) == (100, 60, 60)
    shares = est.shares
    assert shares["rows"].sum() == pytest.approx(100, abs=2)
    for line, true in {"valid": 0.4, "invalid": 0.4, "risky": 0.2, "unknown": 0.0}.items():
        assert shares.loc[line, "low"] <= true <= shares.loc[line, "high"], line
    assert shares.dtypes.astype(str).to_dict() == {
        **dict.fromkeys(("share", "low", "high"), "float64"),
        **dict.fromkeys(("rows", "addresses"), "Int64"),
    }
    assert (est.cost.addresses, est.cost.units, est.cost.days) == (40, None, None)
    assert est.cost.hours > 0


def test_what_is_free_is_done_for_all_rows():
    with world() as there:
        est = estimate(there, EMAILS + OTHERS, sample=1000, journal=None)
    # P0@one.example is another address than p0@one.example, and this one is repeated.
    assert est.population == 101
    rows = est.shares["rows"]
    assert rows[["several_addresses", "missing"]].tolist() == [1, 2]
    # 41 mailboxes, two rows of a domain without mail, and a malformed one.
    assert rows["invalid"] == 44
    assert est.shares.loc["invalid", "addresses"] == 44
    assert rows.sum() == len(EMAILS + OTHERS)
    assert (est.shares["low"] == est.shares["high"]).all()


def test_the_sample_is_kept_and_verify_asks_only_the_rest(tmp_path):
    options = {"journal": tmp_path / "j.db"}
    with world() as there:
        first = estimate(there, sample=50, **options)
        before = asked(there)
        again = estimate(there, sample=50, **options)
        assert asked(there) == before, "the same addresses are drawn again, and are known"
        out = mv.verify(
            EMAILS,
            validation_type="smtp",
            backend=there.backend,
            progress=False,
            columns="all",
            **options,
        )
    assert first.shares.equals(again.shares)
    assert again.cost.hours is None
    assert out["source"].value_counts().to_dict() == {"journal": 50, "local": 50}


@pytest.mark.slow
def test_another_order_draws_the_same_and_another_seed_others(tmp_path):
    with world() as there:
        one = estimate(there, sample=30, journal=tmp_path / "j.db")
        other = estimate(there, EMAILS[::-1], sample=30, journal=tmp_path / "j.db")
        seeded = estimate(there, sample=30, seed=1, journal=tmp_path / "k.db")
        left = estimate(there, sample=30, seed=2, journal=tmp_path / "k.db").cost.addresses
    assert one.shares.equals(other.shares)
    assert other.cost.addresses == one.cost.addresses == seeded.cost.addresses == 70
    assert 40 <= left < 70


def test_operators_are_sampled_in_proportion_and_explained():
    with world() as there:
        est = estimate(there, sample=50, journal=None)
    assert est.operators["addresses"].to_dict() == {"host.example": 80, "yahoo": 20}
    assert est.operators["sampled"].tolist() == [40, 10]
    assert est.operators["share"].tolist() == [1.0, 0.0]
    assert (
        0.9
        < est.operators.loc["host.example", "low"]
        < 1.0
        == est.operators.loc["host.example", "high"]
    )
    assert "known to accept every recipient at RCPT" in est.operators.loc["yahoo", "note"]


def test_an_unfinished_sample_gives_what_it_can(tmp_path):
    options = {"validation_type": "smtp", "journal": tmp_path / "j.db", "progress": False}
    with world(daily_limit=20) as there:
        est = mv.estimate(EMAILS, backend=there.url, screen=there.backend, sample=60, **options)
        wide = est.shares.loc["valid", "high"] - est.shares.loc["valid", "low"]
        assert (est.sampled, est.sample) == (20, 60)
        assert (est.cost.addresses, est.cost.units, est.cost.days) == (80, 80, 4)
        assert "from 20 of a sample of 60 of 100 addresses (no quota for more now)" in str(est)
    with world(daily_limit=100) as there:
        whole = mv.estimate(
            EMAILS,
            backend=there.url,
            screen=there.backend,
            sample=60,
            **options | {"journal": None},
        )
    assert whole.sampled == 60
    assert wide > whole.shares.loc["valid", "high"] - whole.shares.loc["valid", "low"]


def test_addresses_without_an_answer_are_a_share_of_their_own():
    backend = AnsweringBackend(dict.fromkeys(PEOPLE[:10], failed))
    with world() as there:
        est = mv.estimate(
            EMAILS, sample=1000, backend=backend, screen=there.backend, journal=None, progress=False
        )
    assert est.sampled == 100
    assert est.shares["rows"].to_dict() == {
        **dict.fromkeys(("risky", "invalid", "unknown", "several_addresses", "missing"), 0),
        "valid": 70,
        "unanswered": 30,
    }
    assert "No answer came  30.0%" in " ".join(str(est).split("\n"))
    assert est.operators["clear"].tolist() == [60, 10]


def test_what_a_quota_left_out_is_no_answer_and_ends_the_sample():
    backend = AnsweringBackend({PEOPLE[3]: deferred})
    with world() as there:
        est = mv.estimate(
            EMAILS, sample=100, backend=backend, screen=there.backend, journal=None, progress=False
        )
    assert 0 < est.sampled < est.sample == 100
    assert est.shares.loc["unanswered", "rows"] == 0


def test_without_any_quota_nothing_is_known_but_what_is_free():
    backend = AnsweringBackend(dict.fromkeys(PEOPLE, deferred))
    with world() as there:
        emails = [*EMAILS, "x@gone.example"]
        est = mv.estimate(
            emails, backend=backend, screen=there.backend, journal=None, progress=False
        )
    assert est.sampled == 0
    assert est.shares.loc["invalid", ["low", "high"]].tolist() == pytest.approx([1 / 101, 1.0])
    assert est.shares["rows"].isna().tolist() == [True] * 5 + [False] * 2
    assert "0.0% to 99.0%" in str(est)
    assert "0.0%" in est._repr_html_()


def test_the_columns_of_a_verified_frame_do_not_matter():
    with world() as there:
        frame = mv.verify(pd.DataFrame({"email": EMAILS}), "email", validation_type="regex")
        est = mv.estimate(
            frame, "email", sample=20, backend=there.backend, journal=None, progress=False
        )
    assert est.population == 100


def test_what_a_local_backend_does_without_mail_servers_is_done_whole():
    with world() as there:
        est = estimate(there, EMAILS + OTHERS, sample=10, validation_type="mx", journal=None)
    assert est.sampled == est.population == 103
    assert est.shares.loc["valid", "rows"] == 102
    assert est.shares.loc["invalid", "rows"] == 3
    assert (est.cost.addresses, est.cost.hours) == (0, None)


def test_what_another_verifier_settled_is_not_sampled():
    said = pd.DataFrame(
        {
            "email": EMAILS[:10],
            "email_verdict": ["valid", "invalid"] * 5,
            "email_status": "done",
            "email_source": "Hunter",
        }
    )
    with world() as there, pytest.warns(UserWarning, match="known=: 10 addresses are settled"):
        est = estimate(there, sample=1000, known=said.assign(email_why=None), journal=None)
    assert (est.population, est.cost.addresses) == (90, 90)
    assert est.shares["rows"].tolist() == [40, 20, 40, 0, 0, 0, 0]


def test_without_a_look_up_it_is_drawn_by_domain():
    with world() as there:
        est = estimate(there, [*EMAILS, "x@gone.example"], sample=50, mx=None, journal=None)
    assert est.population == 101
    assert len(est.operators) == 0


def test_it_prints_as_a_small_table_and_as_html():
    with world() as there:
        est = estimate(there, EMAILS + OTHERS, sample=50, journal=None)
    lines = str(est).splitlines()
    assert lines[0].split() == ["share", "95", "%", "interval", "rows", "addresses"]
    assert [line.split("  ")[0] for line in lines[1:-1]] == [
        "Valid", "Risky", "Invalid", "Unknown", "Several addresses in a cell", "Empty cell",
    ]  # fmt: skip
    assert lines[-1].startswith("from a sample of 50 of 101 addresses; ")
    assert "pace of the sample" in lines[-1]
    assert repr(est) == str(est)
    assert "from a sample of 50 of 101 addresses" in est._repr_html_()
    assert "<th>95" not in est._repr_html_()


@pytest.mark.slow
@each_row("data", [EMAILS, pd.Series(EMAILS), pl.DataFrame({"email": EMAILS})])
def test_every_kind_of_column_will_do(data):
    with world() as there:
        column = "email" if isinstance(data, pl.DataFrame) else None
        est = mv.estimate(
            data, column, sample=20, backend=there.backend, journal=None, progress=False
        )
    assert est.population == 100


def test_a_list_without_addresses_costs_nothing():
    with world() as there, pytest.warns(UserWarning, match="is it the right column"):
        est = estimate(there, ["x", None], journal=None)
    assert est.shares["rows"].tolist() == [0, 0, 1, 0, 0, 0, 1]
    assert est.cost.addresses == 0


@each_row(
    ("wrong", "message"),
    [
        ({"sample": 0}, "sample=0: give a number of addresses, from 1"),
        ({"sample": True}, "sample=True"),
        ({"sample": "400"}, "sample='400'"),
        ({"seed": -1}, "seed=-1: give a whole number"),
        ({"seed": 10**16}, "seed=10000000000000000"),
        ({"mx": "some"}, "mx='some': give 'all' or None"),
        ({"samples": 3}, "estimate has no argument 'samples'"),
    ],
)
def test_an_argument_that_cannot_work_is_refused(wrong, message):
    with pytest.raises(SettingsError, match=message):
        mv.estimate(EMAILS, **wrong)


@pytest.mark.parametrize(("screen", "units"), [(None, 102), ("mx", 100)])
def test_units_are_those_of_verify_which_submits_dead_domains_unless_they_are_screened(
    screen, units
):
    dead, answers = (
        pa.array(["x@gone.example", "y@gone.example"]),
        SampleAnswers(*[np.array([], np.int64)] * 2, 0, 1.0, 0),
    )
    with world(daily_limit=500) as there:
        given = {"validation_type": "smtp", "backend": there.url, "screen": screen, "journal": None}
        cost = cost_of_rest(pa.array(EMAILS), dead, check_options("estimate", given), answers)
    assert (cost.addresses, cost.units) == (units, units)
