"""The main jobs on Windows and macOS, both pretended, and on Linux where it is set as those are.

What is pretended is in `tests/doubles/other_system.py`. Every process has a home whose name has a blank and an umlaut,
works in a folder whose path has more than 260 characters, and writes to a console or file in Windows-1252.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import httpx
import pandas as pd
import pytest

import mailverdict as mv
from tests import ROOT
from tests.cli.test_audit import running_audit

pytestmark = pytest.mark.slow

SYSTEMS = ("win32", "darwin")
PRETENDED = "from tests.doubles.other_system import pretend; pretend({!r}); "
LINES = ("Name;E-Mail", "Jürgen;ada@plain.example", "Bö;grace@gmial.com", "Kai;x y@one.example")
CONTACTS = "".join(f"{line}\r\n" for line in LINES).encode("cp1252")


@pytest.fixture
def long_folder(tmp_path: Path) -> Path:
    """A folder that Windows opens only where long paths are enabled."""
    folder = tmp_path / "Jürgen Müller" / ("Kunden und Listen " * 8) / ("März " * 30)
    folder.mkdir(parents=True)
    assert len(str(folder)) > 260
    return folder


def environment(folder: Path) -> dict[str, str]:
    home = str(folder.parents[1])
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("XDG_")},
        "HOME": home,
        "PYTHONPATH": path,
        "PYTHONIOENCODING": "cp1252",
        "PYTHONWARNDEFAULTENCODING": "1",
    }


def run_code(code: str, folder: Path) -> str:
    """What a process prints; an error of the process is one of the test."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment(folder), capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode("cp1252")
    return done.stdout.decode("cp1252")


def run_commands(system: str, folder: Path, *commands: str) -> tuple[str, str]:
    """Run command lines in one process; what they wrote to standard output and standard error."""
    lines = [f"    {command.split()!r}," for command in commands]
    code = "\n".join(
        (
            f"{PRETENDED.format(system)}",
            "from mailverdict.cli import main",
            f"for line in [{''.join(lines)}]:",
            "    try: main(line)",
            "    except SystemExit as left: assert not left.code, (line, left.code)",
        )
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment(folder), capture_output=True
    )
    said = done.stderr.decode("cp1252")
    assert done.returncode == 0, said
    return done.stdout.decode("cp1252"), said


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_frame_is_cleaned_verified_and_kept_and_paid_for_once(system, long_folder):
    frame_job = (
        PRETENDED.format(system) + "from tests.flows.other_jobs import use_frames; use_frames()"
    )
    assert run_code(frame_job, long_folder).splitlines() == [
        "cleaned: ada@plain.example, bo@one.example, grace@gmial.com",
        "verdicts: valid, valid, invalid",
        "asked again: 0",
        "by the service: done, done, pending",
        "kept for the user alone: journal.db",
    ]


@pytest.mark.parametrize("system", SYSTEMS)
def test_files_of_every_kind_are_written_from_a_table_with_line_ends_of_windows(
    system, long_folder
):
    (long_folder / "Kunden.csv").write_bytes(CONTACTS)
    printed, said = run_commands(
        system,
        long_folder,
        "clean Kunden.csv -o Kunden.tidy.csv",
        "verify Kunden.csv -t smtp --sandbox --columns all --journal auto.db -o out.csv",
        "verify Kunden.csv -t mx --sandbox -o out.xlsx",
        "verify out.xlsx -t regex --prefix again -o out.parquet",
        "clean out.parquet -o out.feather",
        "clean out.feather --in-place",
        "clean out.xlsx --in-place",
        "clean out.parquet --in-place",
        "verify Kunden.csv -t regex --in-place",
        "keys add ada --file keys.json",
        "keys revoke ada --file keys.json",
        "check łukasz@one.example -t regex",  # the console has no such letter
    )
    rows = (long_folder / "out.csv").read_bytes().decode("cp1252").split("\r\n")
    assert [row.partition(";")[0] for row in rows] == ["Name", "Jürgen", "Bö", "Kai", ""]
    assert rows[1].split(";")[:3] == ["Jürgen", "ada@plain.example", "valid"]
    changed = (long_folder / "Kunden.csv").read_bytes()
    assert changed.startswith(b"Name;E-Mail;E-Mail_verdict")
    assert changed.count(b"\r\n") == changed.count(b"\n") == len(LINES)
    assert len(pd.read_parquet(long_folder / "out.parquet")) == len(LINES) - 1
    assert printed.startswith("mv_")
    assert r"\u0142ukasz@one.example" in printed
    assert "%  ########" in said  # bars
    assert sorted(each.suffix for each in long_folder.iterdir()) == sorted(
        [".csv", ".csv", ".csv", ".db", ".feather", ".json", ".parquet", ".xlsx"]
    )


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_audit_opens_its_page_and_ends_by_control_c(system, long_folder):
    (long_folder / "Kunden.csv").write_bytes(CONTACTS)
    code = PRETENDED.format(system) + "from mailverdict.cli import main; main()"
    with running_audit(long_folder, long_folder / "Kunden.csv", "--sandbox", code=code) as audit:
        assert 'id="mv-audit"' in httpx.get(audit.base).text
        assert audit.end(signal.SIGINT) == 0


def test_processes_that_are_spawned_verify_pieces_with_one_journal(tmp_path):
    frame = pd.DataFrame({"email": ["ada@gmail.com", "bo@gmial.com", "info@one.example", "kai@x"]})
    pieces = [frame.iloc[:2], frame.iloc[2:]]
    with mv.sandbox.World() as world:
        whole = mv.verify(frame, "email", validation_type="mx", backend=world.backend)
        verify = partial(
            mv.verify,
            column="email",
            validation_type="mx",
            backend=world.make_backend(),
            journal=tmp_path / "journal.db",
        )
        start = multiprocessing.get_context("spawn")  # as Windows and macOS start processes
        with ProcessPoolExecutor(2, mp_context=start) as pool:
            found = pd.concat(pool.map(verify, pieces))
    assert found["email_verdict"].tolist() == whole["email_verdict"].tolist()
