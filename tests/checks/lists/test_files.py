"""List files: packaged ones match their manifest, a user's copy comes first, and writing is all or nothing."""

from __future__ import annotations

import hashlib
import tomllib
from datetime import date
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.checks.lists.files import (
    MANIFEST,
    find_list,
    read_entries,
    redact_source,
    split_entries,
    write_list,
)
from mailverdict.checks.lists.flags import WHOLE, below_any, load_lists, normal_domain, normal_role
from mailverdict.checks.lists.suffixes import is_public_suffix
from mailverdict.checks.lists.update import typo_domains
from mailverdict.errors import SettingsError
from mailverdict.model.settings import Lists
from tests import ROOT
from tests.doubles.tables import each_row

DATA = files("mailverdict") / "data"
TABLES = tomllib.loads((DATA / MANIFEST).read_text(encoding="utf-8"))
NOTICE = ROOT / "NOTICE"
ROLES = ("role_core", "role_languages", "role_extended")
OF_DOMAINS = (
    "disposable",
    "not_disposable",
    "relays",
    "free",
    "free_more",
    "suggestion_targets",
    "known_domains",
    "suffixes",
)


def entries(name: str) -> tuple[str, ...]:
    return read_entries(find_list(name))


def roles(name: str) -> list[str]:
    return [entry.removeprefix(WHOLE) for entry in entries(name)]


class TestPackagedLists:
    @each_row("name", TABLES)
    def test_file_is_the_one_in_the_manifest(self, name: str) -> None:
        data = (DATA / TABLES[name]["file"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == TABLES[name]["sha256"]
        assert len(list(split_entries(data.decode("utf-8")))) == TABLES[name]["rows"]

    def test_every_file_is_in_the_manifest(self) -> None:
        files = {each.name for each in DATA.iterdir() if each.name.endswith((".txt", ".csv"))}
        assert files == {table["file"] for table in TABLES.values()}

    @each_row("name", TABLES)
    def test_licence_and_source_are_noted(self, name: str) -> None:
        table = TABLES[name]
        assert table["licence"] in {"CC0-1.0", "ISC", "MIT", "MPL-2.0"}
        assert all(table[key] for key in ("source", "date", "version"))
        if table["licence"] != "MIT":  # somebody else's
            assert table["file"] in NOTICE.read_text(encoding="utf-8")
            assert table["version"] in NOTICE.read_text(encoding="utf-8")

    @each_row("name", OF_DOMAINS)
    def test_domains_are_in_normal_form_and_unique(self, name: str) -> None:
        assert [each for each in entries(name) if normal_domain(each) != each] == []
        assert len(set(entries(name))) == len(entries(name))

    @each_row("name", ROLES)
    def test_roles_are_in_normal_form(self, name: str) -> None:
        assert [each for each in roles(name) if normal_role(each) != each] == []

    def test_no_role_is_listed_twice(self) -> None:
        names = [each for name in ROLES for each in roles(name)]
        assert sorted(names) == sorted(set(names))

    def test_a_role_that_is_not_a_word_has_a_reason(self) -> None:
        for name in ROLES:
            lines = (DATA / TABLES[name]["file"]).read_text(encoding="utf-8").splitlines()
            assert [line for line in lines if line.startswith(WHOLE) and "  # " not in line] == []

    def test_the_names_of_rfc_2142_are_roles(self) -> None:
        rfc = "info marketing sales support abuse noc security postmaster hostmaster usenet news webmaster www uucp ftp"
        assert set(rfc.split()) <= set(roles("role_core"))

    @each_row("name", ["disposable", "free", "free_more"])
    def test_no_typo_and_no_public_suffix_is_listed(self, name: str) -> None:
        assert set(entries(name)) & typo_domains() == set()
        suffixes = frozenset(entries("suffixes"))
        assert [each for each in entries(name) if is_public_suffix(each, suffixes)] == []

    def test_disposable_contains_no_provider(self) -> None:
        lasting = frozenset(
            (
                *entries("relays"),
                *entries("free"),
                *entries("free_more"),
                *entries("suggestion_targets"),
            )
        )
        assert [entries("disposable")[at] for at in below_any(entries("disposable"), lasting)] == []

    def test_every_suggestion_target_is_free(self) -> None:
        assert set(entries("suggestion_targets")) <= {*entries("free"), *entries("free_more")}


FACTS = {"source": "here", "licence": "CC0-1.0", "version": "7", "date": "2026-11-20", "rows": "1"}


def install(folder: Path, name: str, text: str, **changes: str | None) -> None:
    """Put a user's copy of a list into `folder`, with facts that fit unless `changes` say otherwise."""
    facts = FACTS | {"rows": str(text.count("\n"))} | changes
    head = "".join(f"# {fact}: {value}\n" for fact, value in facts.items() if value is not None)
    folder.joinpath(f"{name}.txt").write_text(head + text, encoding="utf-8")


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
            ({"rows": "2"}, "it has 1 entries and says 2"),
            ({"rows": "many"}, "do not say what it is"),
            ({"licence": None}, "do not say what it is"),
        ],
    )
    def test_damaged_copy_is_an_error_that_helps(
        self, tmp_path: Path, changes: dict[str, str | None], message: str
    ) -> None:
        install(tmp_path, "disposable", "only.example\n", **changes)
        with pytest.raises(SettingsError, match=message) as caught:
            load_lists(Lists(), folder=tmp_path)
        assert "mailverdict lists update" in str(caught.value)

    @pytest.mark.parametrize("data", [b"", b"only.example\n", b"\xff\xfe\x00", b"# source\n" * 5])
    def test_a_file_that_is_not_a_copy_is_an_error(self, tmp_path: Path, data: bytes) -> None:
        tmp_path.joinpath("disposable.txt").write_bytes(data)
        with pytest.raises(SettingsError, match=r"disposable\.txt"):
            load_lists(Lists(), folder=tmp_path)

    def test_a_copy_of_an_earlier_release_is_an_error_until_it_is_replaced(
        self, tmp_path: Path
    ) -> None:
        tmp_path.joinpath(MANIFEST).write_text("[disposable]\n", encoding="utf-8")
        with pytest.raises(
            SettingsError, match=r"of an earlier release\. Replace .* 'mailverdict lists update'"
        ):
            load_lists(Lists(), folder=tmp_path)
        write(tmp_path, "a.example")
        assert load_lists(Lists(), folder=tmp_path).flags("a", "a.example").disposable is True

    def test_name_that_a_copy_lists_by_mistake_does_not_count(self, tmp_path: Path) -> None:
        install(tmp_path, "disposable", "in-ulm.de\n")
        assert load_lists(Lists(), folder=tmp_path).flags("a", "cae.in-ulm.de").disposable is False

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


# --- writing ----------------------------------------------------------------------------------------

DAY = date(2026, 11, 20)


def write(folder: Path, *entries: str) -> Path:
    return write_list(folder, "disposable", entries, source="here", licence="CC0-1.0", day=DAY)


def in_use(folder: Path) -> tuple[str, ...]:
    return read_entries(find_list("disposable", folder))


def test_folder_is_made_and_the_list_read_back(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    path = write(folder, "a.example", "b.example")
    assert in_use(folder) == ("a.example", "b.example")
    listing = find_list("disposable", folder)
    assert (listing.rows, listing.date, listing.path, listing.origin) == (
        2,
        "2026-11-20",
        path,
        "user",
    )


def test_same_list_twice_stays_readable(tmp_path: Path) -> None:
    write(tmp_path, "a.example")
    write(tmp_path, "a.example")
    assert in_use(tmp_path) == ("a.example",)


def test_folder_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "lists"
    folder.write_text("", encoding="utf-8")
    with pytest.raises(SettingsError, match="could not be written"):
        write(folder, "a.example")


@given(st.text(st.characters()))
def test_a_copy_is_read_whatever_its_source_is_called(source: str) -> None:
    with TemporaryDirectory() as folder:
        write_list(
            Path(folder), "disposable", ["a.example"], source=source, licence="CC0-1.0", day=DAY
        )
        assert in_use(Path(folder)) == ("a.example",)


@each_row(
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
