"""List files: the packaged ones are what their manifest says, and a user's copy comes first."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.checks.lists.files import MANIFEST, find_lists, packaged_folder, read_entries, split_entries
from mailverdict.checks.lists.flags import below_any, load_lists, normal_domain, normal_role
from mailverdict.checks.lists.update import is_public_suffix, typo_domains
from mailverdict.errors import SettingsError
from mailverdict.model.settings import Lists
from tests import ROOT

DATA = packaged_folder()
TABLES = tomllib.loads((DATA / MANIFEST).read_text(encoding="utf-8"))
NOTICE = ROOT / "NOTICE"
OF_DOMAINS = ("disposable", "relays", "free", "free_more", "suggestion_targets", "known_domains", "suffixes")


def entries(name: str) -> tuple[str, ...]:
    return read_entries(find_lists([name])[name])


class TestPackagedLists:
    @pytest.mark.parametrize("name", TABLES)
    def test_file_is_the_one_in_the_manifest(self, name: str) -> None:
        data = (DATA / TABLES[name]["file"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == TABLES[name]["sha256"]
        assert len(list(split_entries(data.decode("utf-8")))) == TABLES[name]["rows"]

    def test_every_file_is_in_the_manifest(self) -> None:
        files = {each.name for each in DATA.iterdir() if each.name.endswith(".txt")}
        assert files == {table["file"] for table in TABLES.values()}

    @pytest.mark.parametrize("name", TABLES)
    def test_licence_and_source_are_noted(self, name: str) -> None:
        table = TABLES[name]
        assert table["licence"] in {"CC0-1.0", "ISC", "MIT"}
        assert all(table[key] for key in ("source", "date", "version"))
        if table["licence"] != "MIT":  # somebody else's
            assert table["file"] in NOTICE.read_text(encoding="utf-8")
            assert table["version"] in NOTICE.read_text(encoding="utf-8")

    @pytest.mark.parametrize("name", OF_DOMAINS)
    def test_domains_are_in_normal_form_and_unique(self, name: str) -> None:
        assert [each for each in entries(name) if normal_domain(each) != each] == []
        assert len(set(entries(name))) == len(entries(name))

    @pytest.mark.parametrize("name", ["role_core", "role_extended"])
    def test_roles_are_in_normal_form_and_unique(self, name: str) -> None:
        assert [each for each in entries(name) if normal_role(each) != each] == []
        assert len(set(entries(name))) == len(entries(name))

    def test_role_tiers_do_not_overlap(self) -> None:
        assert set(entries("role_core")) & set(entries("role_extended")) == set()

    def test_the_names_of_rfc_2142_are_roles(self) -> None:
        rfc = "info marketing sales support abuse noc security postmaster hostmaster usenet news webmaster www uucp ftp"
        assert set(rfc.split()) <= set(entries("role_core"))

    @pytest.mark.parametrize("name", ["disposable", "free", "free_more"])
    def test_no_typo_and_no_public_suffix_is_listed(self, name: str) -> None:
        assert set(entries(name)) & typo_domains() == set()
        suffixes = frozenset(entries("suffixes"))
        assert [each for each in entries(name) if is_public_suffix(each, suffixes)] == []

    def test_disposable_holds_no_provider(self) -> None:
        lasting = frozenset(
            (*entries("relays"), *entries("free"), *entries("free_more"), *entries("suggestion_targets"))
        )
        assert [entries("disposable")[at] for at in below_any(entries("disposable"), lasting)] == []

    def test_every_suggestion_target_is_free(self) -> None:
        assert set(entries("suggestion_targets")) <= {*entries("free"), *entries("free_more")}


def install(folder: Path, name: str, text: str, **changes: object) -> None:
    """Put a user's copy of a list into `folder`, with a manifest that fits unless `changes` say otherwise."""
    folder.joinpath(f"{name}.txt").write_text(text, encoding="utf-8")
    table = {
        "file": f"{name}.txt",
        "source": "here",
        "licence": "CC0-1.0",
        "version": "7",
        "date": "2026-11-20",
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "rows": 1,
    } | changes
    lines = [f"{key} = {value!r}" for key, value in table.items() if value is not None]
    folder.joinpath(MANIFEST).write_text("\n".join([f"[{name}]", *lines]), encoding="utf-8")


class TestUsersCopy:
    def test_copy_is_preferred_and_named(self, tmp_path: Path) -> None:
        install(tmp_path, "disposable", "only.example\n")
        lists = load_lists(Lists(), folder=tmp_path)
        assert lists.flags("a", "only.example").disposable is True
        assert lists.flags("a", "yopmail.com").disposable is False
        assert lists.version.startswith("disposable 7, ")

    def test_copy_that_comes_later_is_seen(self, tmp_path: Path) -> None:
        assert load_lists(Lists(), folder=tmp_path).flags("a", "only.example").disposable is False
        install(tmp_path, "disposable", "only.example\n")
        assert load_lists(Lists(), folder=tmp_path).flags("a", "only.example").disposable is True

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"sha256": "0" * 64}, "sha256 is not the one in the manifest"),
            ({"file": "gone.txt"}, r"gone\.txt"),
            ({"file": "../outside.txt"}, "is no file name"),
            ({"rows": "many"}, MANIFEST),
            ({"licence": None}, MANIFEST),
        ],
    )
    def test_damaged_copy_is_an_error_that_helps(
        self, tmp_path: Path, changes: dict[str, object], message: str
    ) -> None:
        install(tmp_path, "disposable", "only.example\n", **changes)
        with pytest.raises(SettingsError, match=message) as caught:
            load_lists(Lists(), folder=tmp_path)
        assert "mailverdict lists update" in str(caught.value)

    @pytest.mark.parametrize("text", ["not toml", "disposable = 3", "\x00"])
    def test_damaged_manifest_is_an_error(self, tmp_path: Path, text: str) -> None:
        tmp_path.joinpath(MANIFEST).write_text(text, encoding="utf-8")
        with pytest.raises(SettingsError, match="MANIFEST"):
            load_lists(Lists(), folder=tmp_path)

    def test_name_on_the_list_below_a_relay_does_not_count(self, tmp_path: Path) -> None:
        install(tmp_path, "disposable", "x.duck.com\nother.example\n")
        lists = load_lists(Lists(), folder=tmp_path)
        assert lists.flags("a", "x.duck.com").disposable is False
        assert lists.flags("a", "other.example").disposable is True


@given(st.lists(st.text("ab#, .\n\r\u2028", max_size=30)))
def test_entries_have_neither_comment_nor_blank_ends(lines: list[str]) -> None:
    for number, entry in split_entries("\n".join(lines)):
        assert number >= 1
        assert entry
        assert entry == entry.partition("#")[0].strip()
