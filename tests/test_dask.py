"""`mailverdict.dask.verify`: the same answers as in memory, and each owner asked once however many partitions there are."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys

import dask
import dask.dataframe as dd
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import mailverdict as mv
import mailverdict.dask
from mailverdict.errors import BackendError, ColumnError, InputError, SettingsError
from mailverdict.sandbox import World
from tests.doubles.scripted_backend import ScriptedBackend
from tests.doubles.tables import crossed, each_row, first_ones

CELLS = [
    "ada@gmail.com",
    None,
    "Ada@GMAIL.com",
    "nobody",
    "ada@gmial.com",
    " ",
    "info@gone.example",
    "ada@gmail.com",
]


@pytest.fixture
def people():
    return pd.DataFrame(
        {"name": list("abcdefgh"), "email": CELLS}, index=[10, 10, 20, 30, 40, 50, 50, 60]
    )


@pytest.fixture
def ddf(people):
    return dd.from_pandas(people, npartitions=3, sort=False)


def test_what_another_verifier_settled_is_refused_and_how_to_go_on_is_said(ddf):
    with pytest.raises(SettingsError, match="known= is not read on a cluster: leave out the rows"):
        mailverdict.dask.verify(
            ddf, "email", validation_type="regex", known=pd.DataFrame({"email": []})
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "validation_type"),
    crossed(["core", "all", ["error_message", "verdict"]], ["regex", "mx", "smtp"]),
)
def test_rows_are_those_of_verify_in_memory(ddf, columns, validation_type):
    backend = mv.LocalBackend() if validation_type == "regex" else ScriptedBackend()
    options = {"validation_type": validation_type, "backend": backend, "columns": columns}
    out = mailverdict.dask.verify(ddf, "email", progress=False, **options).compute()
    there = mv.verify(ddf.compute(), "email", progress=False, **options)
    assert_frame_equal(
        out.drop(columns="email_checked_at", errors="ignore"),
        there[out.columns].drop(columns="email_checked_at", errors="ignore"),
    )


@pytest.mark.slow
@pytest.mark.parametrize("validation_type", ["regex", "mx"])
def test_what_is_promised_of_the_columns_is_kept(ddf, validation_type):
    out = mailverdict.dask.verify(
        ddf,
        "email",
        validation_type=validation_type,
        backend=ScriptedBackend(free=False),
        columns="all",
        progress=False,
    )
    assert out._meta.dtypes.to_dict() == out.compute().dtypes.to_dict()
    assert out.npartitions == ddf.npartitions
    assert out.divisions == ddf.divisions


def test_a_series_gives_the_result_columns_alone(ddf):
    out = mailverdict.dask.verify(ddf["email"], validation_type="regex", columns=["verdict"])
    assert list(out.columns) == ["verdict", "clean", "change"]
    assert out.compute().index.tolist() == [10, 10, 20, 30, 40, 50, 50, 60]


def test_each_distinct_address_is_asked_once_whatever_partitions_it_is_in(ddf):
    backend = ScriptedBackend()
    mailverdict.dask.verify(ddf, "email", backend=backend, progress=False)
    assert [sorted(batch) for batch in backend.asked] == [
        ["Ada@gmail.com", "ada@gmail.com", "ada@gmial.com", "info@gone.example"]
    ]


@pytest.mark.slow
def test_computing_again_uses_no_network(ddf):
    with mv.sandbox.World() as world:
        out = mailverdict.dask.verify(ddf, "email", backend=world.backend, progress=False)
        asked = world.dns.count()
    assert out["email_verdict"].compute().tolist() == out["email_verdict"].compute().tolist()
    assert out["email_verdict"].value_counts().compute().to_dict() == {
        "valid": 3,
        "invalid": 3,
        "risky": 0,
        "unknown": 0,
    }
    assert world.dns.count() == asked


@pytest.mark.slow  # a process that imports Dask; pickles of answers are small tests
def test_answers_travel_to_other_processes(ddf):
    with mv.sandbox.World() as world:
        out = mailverdict.dask.verify(ddf, "email", backend=world.backend, progress=False)
    with dask.config.set({"multiprocessing.context": "spawn"}):
        there = out.compute(scheduler="processes", num_workers=1)
    assert_frame_equal(there, out.compute(scheduler="sync"))


READ: list[
    int
] = []  # the partitions that were read; a global, since older releases of Dask copy functions


def read_partition(number):
    READ.append(number)
    return pd.DataFrame({"email": ["info@one.example"]})


def recorded():
    """A frame of two partitions that notes which of them are read."""
    READ.clear()
    return dd.from_map(
        read_partition, [1, 2], meta=pd.DataFrame({"email": pd.Series([], dtype="str")})
    )


@pytest.mark.slow
def test_one_partition_of_the_result_reads_one_partition_of_the_frame():
    with mv.sandbox.World() as world, dask.config.set(scheduler="sync"):
        out = mailverdict.dask.verify(recorded(), "email", backend=world.backend, progress=False)
    READ.clear()
    assert len(out.partitions[1].compute(scheduler="sync")) == 1
    assert READ == [2]  # so that no partition stays in memory until others have been read


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask, which reads the files by it
@pytest.mark.parametrize(
    "selected", [None, ["email", "c0"], "email"], ids=["whole", "two columns", "a series"]
)
def test_partitions_of_files_that_dask_would_join_have_their_answers(selected, tmp_path):
    """Of a wide file Dask joins the partitions of the few columns that it reads, when it computes them."""
    wide = pd.DataFrame(
        {"email": [f"user{row}@{('gmail', 'gmial')[row % 2]}.com" for row in range(60)]}
    )
    wide = wide.assign(**{f"c{number}": 0.5 for number in range(30)})
    for begin in range(0, 60, 10):
        wide[begin : begin + 10].to_parquet(tmp_path / f"rows{begin:02}.parquet", index=False)
    ddf = dd.read_parquet(tmp_path)
    with mv.sandbox.World() as world, dask.config.set(scheduler="sync"):
        options = {"backend": world.backend, "columns": ["verdict"], "progress": False}
        column, name = (None, "verdict") if selected == "email" else ("email", "email_verdict")
        out = mailverdict.dask.verify(
            ddf if selected is None else ddf[selected], column, **options
        )[name]
    assert out.npartitions == 6
    assert out.compute().tolist() == ["valid", "invalid"] * 30
    assert out.partitions[4].compute().tolist() == ["valid", "invalid"] * 5


@pytest.mark.slow
def test_a_deleted_folder_is_an_error_and_not_a_pending_row(ddf, tmp_path):
    with mv.sandbox.World() as world:
        out = mailverdict.dask.verify(
            ddf, "email", backend=world.backend, scratch=tmp_path, progress=False
        )
    shutil.rmtree(tmp_path)
    with pytest.raises(BackendError, match="was the scratch folder deleted"):
        out.compute()


@pytest.mark.slow
@each_row("kind", ["mx", "smtp"])
def test_the_call_reads_each_partition_once(kind):
    with mv.sandbox.World() as world, dask.config.set(scheduler="sync"):
        mailverdict.dask.verify(
            recorded(), "email", validation_type=kind, backend=world.backend, progress=False
        )
    assert sorted(READ) == [1, 2]


def test_the_folder_keeps_no_rows_of_the_call_but_the_answers(ddf, tmp_path):
    broken = ddf.map_partitions(no_more_rows, meta=ddf._meta)
    with mv.sandbox.World() as world, dask.config.set(scheduler="sync"):
        options = {
            "validation_type": "smtp",
            "backend": world.backend,
            "scratch": tmp_path,
            "progress": False,
        }
        mailverdict.dask.verify(ddf, "email", **options)
        with pytest.raises(RuntimeError, match="no more rows"):
            mailverdict.dask.verify(broken, "email", **options)
    assert {path.name for path in tmp_path.glob("*/call-*/*")} == {"answers"}


def no_more_rows(part):
    if part.index[0] > 10:
        raise RuntimeError("no more rows")
    return part


@pytest.mark.slow
def test_regex_reads_nothing_before_it_is_computed():
    ddf = recorded()
    own = mv.LocalBackend(lists=mv.Lists(role_allow=["info"]))
    out = mailverdict.dask.verify(ddf, "email", validation_type="regex", backend=own)
    assert READ == []
    assert out.compute(scheduler="sync")["email_role"].tolist() == [False, False]
    assert sorted(READ) == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("validation_type", ["regex", "mx"])
def test_limit_counts_addresses_of_the_whole_frame(ddf, validation_type):
    backend = mv.LocalBackend() if validation_type == "regex" else ScriptedBackend()
    out = mailverdict.dask.verify(
        ddf, "email", validation_type=validation_type, backend=backend, limit=1, progress=False
    ).compute()
    assert out["email_status"].tolist() == [
        "done",
        "missing",
        "pending",
        "done" if validation_type == "mx" else "pending",
        "pending",
        "missing",
        "pending",
        "done",
    ]


@pytest.mark.parametrize("scheduler", first_ones(["threads", "sync"], 1))
def test_each_domain_is_asked_once_whatever_partitions_it_is_in(ddf, scheduler):
    with mv.sandbox.World() as world, dask.config.set(scheduler=scheduler):
        out = mailverdict.dask.verify(ddf, "email", backend=world.backend, progress=False)
        assert [world.dns.count(name, "MX") for name in ("gmial.com", "gone.example")] == [1, 1]
        assert_frame_equal(
            out.compute(), mv.verify(ddf.compute(), "email", backend=world.backend, progress=False)
        )


@pytest.mark.slow
def test_a_second_call_on_the_folder_asks_nothing(ddf, tmp_path):
    with mv.sandbox.World() as world:
        first = mailverdict.dask.verify(
            ddf, "email", backend=world.make_backend(), scratch=tmp_path, progress=False
        )
        asked = world.dns.count("gone.example")
        seen = []
        again = mailverdict.dask.verify(
            ddf, "email", backend=world.make_backend(), scratch=tmp_path, progress=seen.append
        )
        assert world.dns.count("gone.example") == asked
        assert_frame_equal(again.compute(), first.compute())
    assert next(each.message for each in seen if "known before" in each.message).endswith(
        "3 known before"
    )


def test_mailboxes_are_asked_on_the_workers(ddf):
    with mv.sandbox.World() as world:
        options = {"validation_type": "smtp", "progress": False, "columns": "all"}
        out = mailverdict.dask.verify(
            ddf, "email", backend=world.make_backend(), **options
        ).compute()
        there = mv.verify(ddf.compute(), "email", backend=world.make_backend(), **options)
    assert_frame_equal(out.drop(columns="email_checked_at"), there.drop(columns="email_checked_at"))


@pytest.mark.slow
@pytest.mark.parametrize("backend", [None, ScriptedBackend()], ids=["workers", "one process"])
def test_several_columns_are_verified_together(people, backend):
    people["work"] = people["email"].tolist()[::-1]
    ddf = dd.from_pandas(people, npartitions=3, sort=False)
    with mv.sandbox.World() as world:
        options = {"backend": backend or world.backend, "clean": True, "progress": False}
        out = mailverdict.dask.verify(ddf, ["email", "work"], **options)
        there = mv.verify(ddf.compute(), ["email", "work"], **options)
        assert_frame_equal(out.compute(), there)
    assert out._meta.dtypes.to_dict() == there.dtypes.to_dict()


class TestPlan:
    @pytest.mark.slow
    def test_counts_are_those_of_plan_in_memory(self, ddf):
        with mv.sandbox.World() as world:
            found = mailverdict.dask.plan(ddf, "email", backend=world.backend)
            there = mv.plan(ddf.compute(), "email", backend=world.backend)
            assert world.dns.count("gone.example") == 0
        assert found == dataclasses.replace(there, domains=3)
        assert "distinct domains of those" in str(found)

    def test_each_partition_is_read_once(self):
        with mv.sandbox.World() as world, dask.config.set(scheduler="sync"):
            assert mailverdict.dask.plan(recorded(), "email", backend=world.backend).unique == 1
        assert sorted(READ) == [1, 2]

    @pytest.mark.slow
    def test_a_service_with_a_journal_is_planned_here(self, ddf, tmp_path):
        with mv.sandbox.World() as world:
            options = {
                "backend": world.url,
                "validation_type": "mx",
                "journal": tmp_path / "kept.db",
            }
            mailverdict.dask.verify(ddf, "email", limit=1, progress=False, **options)
            found = mailverdict.dask.plan(ddf, "email", **options)
        assert (found.unique, found.known, found.to_submit, found.remaining) == (4, 1, 3, 99)

    def test_another_frame_is_refused(self, people):
        with pytest.raises(InputError, match=r"use mailverdict\.plan"):
            mailverdict.dask.plan(people, "email")


def test_an_address_that_came_later_is_pending():
    rounds = iter(["ada@gmail.com", "late@gmail.com"])
    ddf = dd.from_map(lambda _: pd.DataFrame({"email": [next(rounds)]}), [0], meta={"email": "str"})
    out = mailverdict.dask.verify(ddf, "email", backend=ScriptedBackend(), progress=False)
    assert out.compute(scheduler="sync")["email_status"].tolist() == ["pending"]


def test_a_backend_that_fails_is_reported_at_the_call(ddf):
    with pytest.raises(BackendError, match="gone away") as caught:
        mailverdict.dask.verify(
            ddf, "email", backend=ScriptedBackend([BackendError("gone away")]), progress=False
        )
    assert caught.value.partial.num_rows == 5


@pytest.mark.parametrize(
    ("column", "options", "error", "told"),
    [
        ("mail", {}, ColumnError, "no column 'mail'"),
        ("email", {"validation_type": "mail"}, SettingsError, "regex, mx"),
        ("email", {"columns": ["nope"]}, SettingsError, "nope"),
        ("email", {"progress": "maybe"}, SettingsError, "progress"),
        ("email", {"speed": 9}, SettingsError, "speed"),
    ],
)
def test_what_cannot_work_is_said_before_anything_is_read(ddf, column, options, error, told):
    backend = ScriptedBackend()
    with pytest.raises(error, match=told):
        mailverdict.dask.verify(ddf, column, backend=backend, **options)
    assert backend.asked == []


@pytest.mark.parametrize("call", [mailverdict.dask.verify, mailverdict.dask.plan])
def test_a_column_of_the_caller_is_found_before_a_service_is_paid(people, call):
    """Only the content tells whose column it is, so that the names of the frame are not enough."""
    own = dd.from_pandas(people.assign(email_verdict="ask Ada"), npartitions=3)
    backend = ScriptedBackend()
    with pytest.raises(SettingsError, match=r"'email_verdict' that mailverdict did not write"):
        call(own, "email", backend=backend, progress=False)
    assert backend.asked == []


def test_a_column_of_the_caller_is_found_before_workers_ask(people):
    own = dd.from_pandas(people.assign(email_verdict="ask Ada"), npartitions=3)
    with World() as world:
        with pytest.raises(SettingsError, match="'email_verdict' that mailverdict did not write"):
            mailverdict.dask.verify(own, "email", backend=world.backend, progress=False)
        assert world.dns.count("gmail.com") == 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*verified as they stand:UserWarning")
@pytest.mark.parametrize("again", ["core", ["verdict", "status"]])
def test_columns_of_an_earlier_call_are_replaced(ddf, again):
    first = mailverdict.dask.verify(
        ddf, "email", backend=ScriptedBackend(), columns="all", progress=False
    )
    second = mailverdict.dask.verify(
        first, "email", backend=ScriptedBackend(), columns=again, progress=False
    )
    assert second.compute()["email_verdict"].equals(first.compute()["email_verdict"])


def test_frames_in_memory_are_sent_to_where_they_belong(people):
    with pytest.raises(InputError, match=r"mailverdict\.verify"):
        mailverdict.dask.verify(people, "email")


END = """
import pandas as pd, dask.dataframe as dd, sys
import mailverdict as mv, mailverdict.dask
if __name__ == "__main__":
    ddf = dd.from_pandas(pd.DataFrame({"email": ["ada@valid.example", "bob@nx.example"]}), npartitions=2)
    with mv.sandbox.World() as world:
        out = mailverdict.dask.verify(ddf, "email", backend=world.backend, scratch=sys.argv[1], progress=False)
        assert len(out.compute(scheduler="sync")) == 2
"""


@pytest.mark.slow
def test_what_only_one_call_reads_is_removed_when_its_process_ends(tmp_path):
    script = tmp_path / "call.py"
    script.write_text(END)
    folder = tmp_path / "scratch"
    subprocess.run([sys.executable, str(script), str(folder)], check=True)
    left = {path.name for path in folder.glob("*/*")}
    assert not any(name.startswith("call-") for name in left)
    assert "shards.json" in left, "the answers are there for a later call"
