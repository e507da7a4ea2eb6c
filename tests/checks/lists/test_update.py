"""The update of the disposable list: what is refused, what is shown, and what is written."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.checks.lists.files import find_list, read_entries
from mailverdict.checks.lists.flags import load_lists
from mailverdict.checks.lists.update import (
    MAX_BYTES,
    ListUpdate,
    check_update,
    clean_domains,
    describe_lists,
    is_public_suffix,
    parse_source,
    protected_domains,
    update_disposable,
)
from mailverdict.errors import InputError, SettingsError
from mailverdict.model.settings import Lists
from tests.doubles.tables import each_row

PACKAGED = read_entries(find_list("disposable"))
OLD = frozenset(f"throwaway{n}.example" for n in range(1000))
NEW = ("brand-new-throwaway.example",)


def serving(*entries: str) -> Callable[[str], bytes]:
    """A source that always holds these entries."""
    return lambda source: "\n".join(entries).encode()


def update(folder: Path, *entries: str, **options: object) -> ListUpdate:
    return update_disposable(
        serving(*entries), folder=folder, today=lambda: date(2026, 11, 20), **options
    )


class TestGuards:
    @each_row(
        ("new", "guards", "why"),
        [
            (OLD, [], "the same"),
            (OLD | {f"new{n}.example" for n in range(249)}, [], "a quarter less one came"),
            (OLD | {f"new{n}.example" for n in range(250)}, ["gain"], "a quarter came"),
            (frozenset(sorted(OLD)[49:]), [], "less than one in twenty went"),
            (frozenset(sorted(OLD)[50:]), ["loss"], "one in twenty went"),
            (
                frozenset(sorted(OLD)[50:]) | {f"n{n}.example" for n in range(50)},
                ["loss"],
                "exchanged at equal size",
            ),
            (frozenset(), ["loss"], "an empty list"),
            (OLD | {"com.br"}, ["suffix"], "a generic name below a country"),
            (OLD | {"edu.pl"}, ["suffix"], "seen on circulating lists"),
            (OLD | {"my.id"}, ["suffix"], "seen on circulating lists"),
            (OLD | {"ddns.net"}, ["suffix"], "a dynamic-DNS zone"),
            (OLD | {"zip"}, ["suffix"], "a top-level domain"),
            (OLD | {"gmail.com"}, ["protected"], "a large provider"),
            (OLD | {"proton.me"}, ["protected"], "a free provider chosen by hand"),
            (OLD | {"duck.com"}, ["protected"], "a relay"),
            (OLD | {"anna.duck.com"}, ["protected"], "below a relay"),
            (
                frozenset({"gmail.com", "com.br"}),
                ["loss", "suffix", "protected"],
                "all that holds is said",
            ),
        ],
    )
    def test_a_guard_stops_an_update_by_what_is_different(
        self, new: frozenset[str], guards: list[str], why: str
    ) -> None:
        assert [each.guard for each in check_update(OLD, new, protected_domains())] == guards, why

    def test_first_edition_of_all_is_neither_loss_nor_gain(self) -> None:
        assert check_update((), OLD, ()) == ()

    def test_too_many_malformed_entries_stop_an_update(self) -> None:
        assert check_update(OLD, OLD, (), malformed=10) == ()
        assert [each.guard for each in check_update(OLD, OLD, (), malformed=11)] == ["malformed"]

    def test_suffixes_may_be_given(self) -> None:
        assert [
            each.guard
            for each in check_update(OLD, OLD | {"zone.example"}, (), suffixes={"zone.example"})
        ] == ["suffix"]

    @each_row(
        ("name", "expected"),
        [
            ("com.br", True),
            ("ac.uk", True),
            ("co.uk", True),
            ("com.example", False),
            ("aco.uk", False),
        ],
    )
    def test_public_suffix_by_form_or_list(self, name: str, expected: bool) -> None:
        assert is_public_suffix(name, {"co.uk"}) is expected

    def test_the_packaged_list_passes_its_own_guards(self) -> None:
        assert check_update(PACKAGED, PACKAGED, protected_domains()) == ()


class TestUpdate:
    def test_sound_edition_is_written_and_used(self, tmp_path: Path) -> None:
        outcome = update(tmp_path, *PACKAGED, *NEW, source="https://me:secret@lists.example/a.conf")
        assert (outcome.added, outcome.removed, outcome.refusals) == (NEW, (), ())
        assert outcome.written is not None
        lists = load_lists(Lists(), folder=tmp_path)
        assert lists.flags("a", NEW[0]).disposable is True
        assert lists.version.startswith("disposable 2026-11-20-")
        assert "me:secret" not in outcome.written.read_text(encoding="utf-8")

    @pytest.mark.parametrize(
        ("entries", "guard"),
        [
            ((*PACKAGED, "gmail.com"), "protected"),
            ((*PACKAGED, "edu.pl"), "suffix"),
            (PACKAGED[:5000], "loss"),
            ((*PACKAGED, *(f"n{n}.example" for n in range(5000))), "gain"),
            (("<!doctype html>", "<title>Busy</title>", *PACKAGED[:50]), "malformed"),
        ],
    )
    def test_poisoned_edition_changes_nothing(
        self, tmp_path: Path, entries: tuple[str, ...], guard: str
    ) -> None:
        outcome = update(tmp_path, *entries)
        assert guard in [each.guard for each in outcome.refusals]
        assert outcome.written is None
        assert list(tmp_path.iterdir()) == []
        assert outcome.to_text().endswith("The list in use stays in use.")

    def test_refused_edition_leaves_the_users_copy(self, tmp_path: Path) -> None:
        update(tmp_path, *PACKAGED, *NEW)
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        assert update(tmp_path, *PACKAGED, *NEW, "gmail.com").written is None
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before

    def test_size_guards_may_be_waived_by_name_the_others_not(self, tmp_path: Path) -> None:
        grown = (*PACKAGED, *(f"n{n}.example" for n in range(5000)))
        assert update(tmp_path, *grown, accept=["loss"]).written is None
        assert update(tmp_path, *grown, "gmail.com", accept=["gain", "protected"]).written is None
        assert update(tmp_path, *grown, accept=["gain"]).written is not None

    def test_dry_run_only_shows(self, tmp_path: Path) -> None:
        outcome = update(tmp_path, *PACKAGED[1:], *NEW, dry_run=True)
        assert (outcome.added, outcome.removed) == (NEW, PACKAGED[:1])
        assert list(tmp_path.iterdir()) == []
        assert outcome.to_text().splitlines() == [
            f"disposable: {len(PACKAGED):,} names in use, {len(PACKAGED):,} in {outcome.source}",
            f"  added: 1 ({NEW[0]})",
            f"  removed: 1 ({PACKAGED[0]})",
            "Nothing written.",
        ]

    def test_same_edition_is_not_written(self, tmp_path: Path) -> None:
        outcome = update(tmp_path, *PACKAGED)
        assert outcome.written is None
        assert outcome.to_text().endswith("The list in use is the same.")

    def test_typos_and_free_providers_are_left_out_and_shown(self, tmp_path: Path) -> None:
        outcome = update(tmp_path, *PACKAGED, *NEW, "gmial.com", "accountant.com")
        assert outcome.left_out == {
            "a typo of a provider": ("gmial.com",),
            "on the free list": ("accountant.com",),
        }
        assert "left out, on the free list: 1 (accountant.com)" in outcome.to_text()
        assert load_lists(Lists(), folder=tmp_path).flags("a", "gmial.com").disposable is False

    def test_what_is_listed_by_mistake_is_left_out_and_shown(self, tmp_path: Path) -> None:
        outcome = update(tmp_path, *PACKAGED, *NEW, "in-ulm.de")
        assert (outcome.left_out, outcome.refusals) == ({"listed by mistake": ("in-ulm.de",)}, ())

    def test_licence_of_the_default_source_is_known(self, tmp_path: Path) -> None:
        update(tmp_path, *PACKAGED, *NEW)
        assert find_list("disposable", tmp_path).licence == "CC0-1.0"

    @pytest.mark.parametrize("new", [NEW, ()])
    def test_damaged_copy_is_mended(self, tmp_path: Path, new: tuple[str, ...]) -> None:
        written = update(tmp_path, *PACKAGED, *NEW).written
        assert written is not None
        written.write_text("gmail.com\n", encoding="utf-8")
        with pytest.raises(SettingsError):
            load_lists(Lists(), folder=tmp_path)
        update(tmp_path, *PACKAGED, *new)
        assert load_lists(Lists(), folder=tmp_path).flags("a", NEW[0]).disposable is bool(new)

    def test_what_fetch_raises_is_passed_on(self, tmp_path: Path) -> None:
        def fetch(source: str) -> bytes:
            raise TimeoutError(source)

        with pytest.raises(TimeoutError, match="disposable_email_blocklist"):
            update_disposable(fetch, folder=tmp_path)

    def test_difference_shows_only_the_first_names(self, tmp_path: Path) -> None:
        text = update(
            tmp_path, *PACKAGED, *(f"n{n:03}.example" for n in range(100)), dry_run=True
        ).to_text()
        assert "added: 100 (n000.example, " in text
        assert "n020.example" not in text

    def test_nothing_untrusted_commands_the_terminal(self, tmp_path: Path) -> None:
        text = update(tmp_path, *PACKAGED, "\x1b]0;owned\x07", source="a\x1b[2Jb").to_text()
        assert "\x1b" not in text
        assert "left out, no domain: 1 (?]0;owned?)" in text


class TestSource:
    def test_plain_text_with_comments(self) -> None:
        assert parse_source(b"# list\na.example\n\nb.example # x\n", "here") == (
            "a.example",
            "b.example",
        )

    @each_row(
        ("data", "message"),
        [
            (b"\xff\xfe\x00", "this is not UTF-8 text"),
            (b"a" * (MAX_BYTES + 1), "bytes are too many for a list"),
            (b"PK\x03\x04 and then\xff", "this is not UTF-8 text"),
        ],
    )
    def test_anything_else_is_an_error_that_names_it(self, data: bytes, message: str) -> None:
        with pytest.raises(InputError, match=message) as caught:
            parse_source(data, "https://me:secret@lists.example/a.txt")
        assert "https://lists.example/a.txt" in str(caught.value)
        assert "secret" not in str(caught.value)

    @given(st.binary(max_size=200))
    def test_any_bytes_are_entries_or_an_input_error(self, data: bytes) -> None:
        with contextlib.suppress(InputError):
            assert all(parse_source(data, "here"))


@given(st.lists(st.text(max_size=20)))
def test_cleaning_never_raises_and_accounts_for_all(texts: list[str]) -> None:
    names, left_out = clean_domains(texts, {"unwanted": {"a.example"}})
    assert "a.example" not in names
    assert len(names) + sum(map(len, left_out.values())) <= len(set(texts))


class TestDescription:
    def test_rows_of_the_lists_in_use(self, tmp_path: Path) -> None:
        packaged = {row["list"]: row for row in describe_lists(tmp_path)}
        assert packaged["disposable"]["rows"] == len(PACKAGED)
        assert {row["origin"] for row in packaged.values()} == {"packaged"}
        update(tmp_path, *PACKAGED, *NEW, source="mirror.txt")
        own = {row["list"]: row for row in describe_lists(tmp_path)}
        assert own["disposable"] == {
            "list": "disposable",
            "rows": len(PACKAGED) + 1,
            "version": own["disposable"]["version"],
            "date": "2026-11-20",
            "licence": "that of its source",
            "source": "mirror.txt",
            "origin": "user",
        }
        assert list(own) == list(packaged)
