"""The scratch folder: complete files only, each key once, and counts without reading."""

from __future__ import annotations

import asyncio
import os
import threading
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.distributed.scratch import PieceWriter, Scratch
from mailverdict.errors import BackendError, SettingsError
from tests.doubles.tables import each_row

SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("kind", pa.dictionary(pa.int32(), pa.string())),
        ("checked_at", pa.timestamp("us", "UTC")),
    ]
)


def rows(*keys, kind="mx", minute=0):
    at = datetime(2026, 11, 22, 8, minute, tzinfo=UTC)
    return pa.table(
        {"key": list(keys), "kind": [kind] * len(keys), "checked_at": [at] * len(keys)}
    ).cast(SCHEMA)


@pytest.fixture
def scratch(tmp_path):
    return Scratch.open(tmp_path / "new" / "folder")


@pytest.mark.parametrize("given", ["", " "])
def test_an_empty_path_is_not_the_current_folder(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match="give the path or URL of a folder"):
        Scratch.open(given)
    assert list(tmp_path.iterdir()) == []


def test_a_tilde_is_the_home_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Scratch.open("~/scratch").url == str(tmp_path / "scratch")


def test_a_shard_without_files_is_empty(scratch):
    assert scratch.read("domains", 3, SCHEMA) == SCHEMA.empty_table()
    assert scratch.counts("domains") == (0, 0)


def test_files_of_a_shard_are_one_table_in_which_the_latest_row_counts(scratch):
    scratch.write("domains", 1, rows("a", "b", minute=5))
    scratch.write("domains", 1, rows("b", "c", kind="nxdomain", minute=3))
    scratch.write("domains", 2, rows("d"))
    found = {row["key"]: row["kind"] for row in scratch.read("domains", 1, SCHEMA).to_pylist()}
    assert found == {"a": "mx", "b": "mx", "c": "nxdomain"}


def test_a_file_that_was_not_finished_is_not_read(scratch, tmp_path):
    scratch.write("domains", 1, rows("a"))
    (tmp_path / "new" / "folder" / "domains" / "1" / "rows-9-ff.parquet.ab12.part").write_bytes(
        b"PAR1"
    )
    assert scratch.read("domains", 1, SCHEMA)["key"].to_pylist() == ["a"]
    assert scratch.counts("domains") == (0, 1)


def test_a_finished_shard_is_one_file(scratch):
    for key in "abc":
        scratch.write("domains", 1, rows(key))
    scratch.compact("domains", 1, scratch.read("domains", 1, SCHEMA))
    [name] = scratch.names("domains", 1)
    assert name.startswith("rows-3-")
    scratch.compact("domains", 1, scratch.read("domains", 1, SCHEMA))
    assert scratch.names("domains", 1) == [name]


def test_progress_is_read_from_the_names_of_files(scratch):
    scratch.note_keys("domains", 1, 5)
    scratch.note_keys("domains", 2, 2)
    scratch.write("domains", 1, rows("a", "b", "c"))
    scratch.write("domains", 2, rows("d", "e"))
    scratch.write("domains", 2, rows("e"))  # asked again
    assert scratch.counts("domains") == (7, 5)


def test_small_values_survive(scratch):
    assert scratch.read_json("routing.json") is None
    scratch.write_json("routing.json", {"first": 2})
    assert scratch.below("").read_json("routing.json") == {"first": 2}


class TestExchange:
    @pytest.mark.slow
    @given(st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)))))
    def test_each_reader_gets_its_rows_in_order(self, tmp_path_factory, pieces):
        scratch = Scratch.open(tmp_path_factory.mktemp("exchange"))
        tables = [
            (rows(*(key for key, _ in piece)), np.array([to for _, to in piece], np.int64))
            for piece in pieces
        ]
        scratch.write_groups("0.parquet", SCHEMA, tables)
        scratch.write_groups("1.parquet", SCHEMA, [])
        for reader in range(4):
            found = scratch.read_groups(["0.parquet", "1.parquet"], reader, SCHEMA)
            assert found == rows(*(key for piece in pieces for key, to in piece if to == reader))

    def test_a_task_that_runs_again_replaces_its_file(self, scratch):
        for key in "ab":
            scratch.write_groups("answers/0.parquet", SCHEMA, [(rows(key), np.zeros(1, np.int64))])
        assert scratch.read_groups(["answers/0.parquet"], 0, SCHEMA)["key"].to_pylist() == ["b"]

    def test_a_file_that_was_deleted_is_an_error(self, scratch):
        scratch.write_groups("answers/0.parquet", SCHEMA, [])
        scratch.delete("answers")
        scratch.delete("answers")
        with pytest.raises(
            BackendError, match=r"answers/0\.parquet is missing: was the scratch folder deleted"
        ):
            scratch.read_groups(["answers/0.parquet"], 0, SCHEMA)


@each_row("place", ["nowhere://bucket/folder", "/dev/null/folder"])
def test_a_place_that_cannot_be_written_is_named(place):
    with pytest.raises(SettingsError, match=place):
        Scratch.open(place)


def test_a_url_is_a_place(tmp_path):
    scratch = Scratch.open(f"file://{tmp_path}/there")
    scratch.write("domains", 0, rows("a"))
    assert Scratch.open(tmp_path / "there").read("domains", 0, SCHEMA)["key"].to_pylist() == ["a"]


class TestWriter:
    def test_rows_are_written_while_others_settle(self, scratch):
        async def work():
            async with PieceWriter(scratch, "domains", 1, seconds=0.01) as writer:
                await writer.add(rows("a"))
                while not scratch.names("domains", 1):
                    await asyncio.sleep(0.01)
                await writer.add(rows("b"))

        asyncio.run(work())
        assert sorted(scratch.read("domains", 1, SCHEMA)["key"].to_pylist()) == ["a", "b"]

    def test_rows_are_written_when_the_task_fails(self, scratch):
        async def work():
            async with PieceWriter(scratch, "domains", 1, seconds=60) as writer:
                await writer.add(rows("a"))
                raise RuntimeError("the network is gone")

        with pytest.raises(RuntimeError):
            asyncio.run(work())
        assert scratch.read("domains", 1, SCHEMA)["key"].to_pylist() == ["a"]

    def test_many_rows_are_written_at_once(self, scratch):
        async def work():
            async with PieceWriter(scratch, "domains", 1, seconds=60, most_rows=3) as writer:
                await writer.add(rows("a", "b"))
                assert scratch.names("domains", 1) == []
                await writer.add(rows("c"))
                assert len(scratch.names("domains", 1)) == 1

        asyncio.run(work())

    def test_a_file_that_is_being_written_at_the_end_is_waited_for(self, scratch):
        begun, may_end = threading.Event(), threading.Event()

        class SlowScratch(Scratch):
            def write(self, *given):
                begun.set()
                may_end.wait(30)
                return super().write(*given)

        async def work():
            async with PieceWriter(SlowScratch(scratch.url), "domains", 1, seconds=0.01) as writer:
                await writer.add(rows("a"))
                await asyncio.to_thread(begun.wait, 30)
                asyncio.get_running_loop().call_later(0.05, may_end.set)
            return scratch.names("domains", 1)

        assert len(asyncio.run(work())) == 1

    def test_rows_that_could_not_be_written_are_tried_again(self, scratch):
        asyncio.run(self.write_with(scratch, failures=1))
        assert scratch.read("domains", 1, SCHEMA)["key"].to_pylist() == ["a"]

    def test_rows_that_can_never_be_written_raise(self, scratch):
        with pytest.raises(OSError, match="no space left"):
            asyncio.run(self.write_with(scratch, failures=10**9))

    async def write_with(self, scratch, failures):
        left = [failures]

        class FailingScratch(Scratch):
            def write(self, *given):
                left[0] -= 1
                if left[0] >= 0:
                    raise OSError("no space left")
                return super().write(*given)

        async with PieceWriter(FailingScratch(scratch.url), "domains", 1, seconds=0.01) as writer:
            await writer.add(rows("a"))
            while left[0] == failures:
                await asyncio.sleep(0.01)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_files_of_a_folder_that_was_given_are_of_their_user_alone(tmp_path):
    scratch = Scratch.open(tmp_path / "given")
    assert not list((tmp_path / "given").iterdir()), "the test of the folder leaves nothing"
    scratch.write_json("shards.json", 3)
    scratch.write("domains", 0, rows("a.org"))
    scratch.write_groups("observed/0.parquet", SCHEMA, [(rows("a.org"), np.array([0]))])
    files = [path for path in (tmp_path / "given").rglob("*") if path.is_file()]
    assert len(files) == 3
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
