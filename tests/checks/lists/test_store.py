"""Writing lists: all or nothing, and the copy before can be had back."""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.checks.lists.files import MANIFEST, find_lists, read_entries
from mailverdict.checks.lists.store import manifest_table, printable_text, redact_source, restore_previous, write_list
from mailverdict.errors import SettingsError

DAY = date(2026, 11, 20)


def write(folder: Path, *entries: str) -> Path:
    return write_list(folder, "disposable", entries, source="here", licence="CC0-1.0", day=DAY)


def in_use(folder: Path) -> tuple[str, ...]:
    return read_entries(find_lists(["disposable"], folder)["disposable"])


def test_folder_is_made_and_the_list_read_back(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    path = write(folder, "a.example", "b.example")
    assert in_use(folder) == ("a.example", "b.example")
    listing = find_lists(["disposable"], folder)["disposable"]
    assert (listing.rows, listing.date, listing.file, listing.origin) == (2, "2026-11-20", path.name, "user")


def test_the_copy_before_is_kept_and_older_ones_go(tmp_path: Path) -> None:
    first, second, third = (write(tmp_path, f"{name}.example") for name in "abc")
    assert not first.exists()
    assert second.exists()
    assert third.exists()
    assert sorted(each.name for each in tmp_path.iterdir() if each.name.startswith(".")) == []


def test_updates_are_taken_back_one_by_one(tmp_path: Path) -> None:
    packaged = in_use(tmp_path)
    write(tmp_path, "a.example")
    write(tmp_path, "b.example")
    assert restore_previous(tmp_path) is True
    assert in_use(tmp_path) == ("a.example",)
    assert restore_previous(tmp_path) is True
    assert in_use(tmp_path) == packaged
    assert restore_previous(tmp_path) is False


def test_crash_before_the_manifest_leaves_the_list_in_use(tmp_path: Path) -> None:
    write(tmp_path, "a.example")
    tmp_path.joinpath("disposable-0123456789ab.txt").write_text("half.exam", encoding="utf-8")
    assert in_use(tmp_path) == ("a.example",)


def test_same_list_twice_stays_readable(tmp_path: Path) -> None:
    write(tmp_path, "a.example")
    write(tmp_path, "a.example")
    assert in_use(tmp_path) == ("a.example",)
    assert restore_previous(tmp_path) is True
    assert in_use(tmp_path) == ("a.example",)


def test_folder_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "lists"
    folder.write_text("", encoding="utf-8")
    with pytest.raises(SettingsError, match="could not be written"):
        write(folder, "a.example")


def test_update_that_cannot_be_taken_back_is_an_error(tmp_path: Path) -> None:
    tmp_path.joinpath(MANIFEST).mkdir()
    with pytest.raises(SettingsError, match="could not be taken back"):
        restore_previous(tmp_path)


@given(st.text(st.characters()))
def test_manifest_is_toml_whatever_the_source_is_called(source: str) -> None:
    text = manifest_table("x", source=source, rows=3).encode("utf-8").decode("utf-8")
    assert tomllib.loads(text) == {"x": {"source": printable_text(source), "rows": 3}}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("https://ada:secret@lists.example:8443/a.txt?b=c", "https://lists.example:8443/a.txt?b=c"),
        ("https://lists.example/a.txt", "https://lists.example/a.txt"),
        ("lists/a@b.txt", "lists/a@b.txt"),
        ("https://[broken/a", "https://[broken/a"),
        ("a\nb", "a?b"),
    ],
)
def test_source_is_shown_without_password(source: str, expected: str) -> None:
    assert redact_source(source) == expected


@given(st.text(st.characters()))
def test_redaction_never_raises_and_is_one_bounded_line(source: str) -> None:
    shown = redact_source(source)
    assert len(shown.splitlines()) <= 1
    assert len(shown) <= 501
