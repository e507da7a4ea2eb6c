"""What is kept on the way is for the user alone; outputs have the modes that the umask allows, or those they had."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from mailverdict.distributed.call import open_call
from mailverdict.files.readers import open_table
from mailverdict.files.writers import create_table
from mailverdict.widgets.source import read_pasted
from tests.widgets.conftest import finished, ready

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows has no such modes")
TABLE = pa.table({"email": ["ada@example.org"]})
LINES = "email\tnote\nada@example.org\tJörg\n"
PRIVATE = {0o600}


@pytest.fixture(params=[0o022, 0o000], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def places(tmp_path, umask, monkeypatch):
    """The folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def modes_of_files(folder: Path) -> set[int]:
    """The modes of all files in a folder; the folders in it are for the user alone."""
    assert {mode(each) for each in folder.iterdir() if each.is_dir()} <= {0o700}
    return {mode(each) for each in folder.rglob("*") if each.is_file()}


@pytest.mark.parametrize("name", ["in.csv.gz", "in.csv", "-"])
def test_copies_of_inputs_are_private_and_removed(places, tmp_path, monkeypatch, name):
    path, octets = tmp_path / name, LINES.encode("utf-16")
    path.write_bytes(gzip.compress(octets) if name.endswith(".gz") else octets)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(octets)))
    with open_table(name if name == "-" else path) as table:
        assert next(table.pieces())["email"].to_pylist() == ["ada@example.org"]
        assert modes_of_files(places) == PRIVATE
    assert list(places.iterdir()) == []


def test_a_copy_of_what_was_pasted_is_private_and_removed(places, monkeypatch):
    seen: set[int] = set()

    def look_and_remove(path, *arguments, **options):
        seen.update(modes_of_files(places))
        remove(path, *arguments, **options)

    remove = shutil.rmtree
    monkeypatch.setattr(shutil, "rmtree", look_and_remove)
    assert read_pasted(LINES).frame["email"].tolist() == ["ada@example.org"]
    assert seen == PRIVATE


def test_a_table_on_its_way_to_standard_output(places):
    with create_table("-") as table:
        table.write(TABLE)
        assert modes_of_files(places) == PRIVATE


@pytest.mark.parametrize(
    "name", ["out.csv", "out.csv.gz", "out.jsonl.zst", "out.parquet", "out.xlsx"]
)
@pytest.mark.parametrize("earlier", [None, 0o640, 0o600])
def test_outputs_packed_ones_too(places, umask, tmp_path, name, earlier):
    path = tmp_path / "outputs" / name
    path.parent.mkdir()
    if earlier is not None:
        with create_table(path) as table:
            table.write(TABLE)
        path.chmod(earlier)
    with create_table(path) as table:
        table.write(TABLE)
        # Nothing beside the file in the making.
        assert len(list(path.parent.iterdir())) == 1 + (earlier is not None)
    assert mode(path) == (0o666 & ~umask if earlier is None else earlier)
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "kind"), [("everything", "csv"), ("everything", "xlsx"), ("report", "html")]
)
def test_files_of_the_page(places, which, kind):
    audit = finished(ready(pd.DataFrame({"email": ["ada@example.org"]}), validation_type="regex"))
    files: list[Path] = []
    audit.on_file = lambda name, path, by: files.append(path)
    audit.download(which, kind)
    audit.work.wait(30)
    assert len(files) == 1
    assert modes_of_files(places) == PRIVATE


@pytest.mark.parametrize("is_given", [False, True])
def test_scratch_on_this_machine_and_in_a_folder_of_the_callers(places, tmp_path, is_given):
    given = str(tmp_path / "shared") if is_given else None
    empty = pd.DataFrame({"email": pd.Series([], dtype="str")})
    job = open_call("verify", empty, "email", {}, scratch=given, is_local=True, slots=2).job
    rows = pa.table({"key": ["example.org"]})
    job.scratch.write("domains", 1, rows)
    job.scratch.note_keys("domains", 1, 1)
    assert job.scratch.read("domains", 1, rows.schema) == rows
    if not is_given:
        assert modes_of_files(places) == PRIVATE
        return
    assert {mode(each) for each in Path(given).rglob("*") if each.is_file()} == {0o600}
