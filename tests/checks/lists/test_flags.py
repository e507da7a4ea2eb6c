"""Flags from lists: the rules hold on label boundaries, and one address says what a column says."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mailverdict.checks.lists.files import find_lists, read_entries
from mailverdict.checks.lists.flags import LoadedLists, load_lists, normal_domain
from mailverdict.checks.syntax.column import observe_column
from mailverdict.errors import SettingsError
from mailverdict.model.evidence import Flags
from mailverdict.model.settings import Lists
from tests.doubles.tables import each_row

# No user's copies: the packaged lists, whoever runs the tests.
NOWHERE = Path("no-such-folder-of-lists")
RELAYS = read_entries(find_lists(["relays"])["relays"])


def loaded(**own: object) -> LoadedLists:
    return load_lists(Lists(**own), folder=NOWHERE)


class TestDomains:
    @each_row(
        ("domain", "disposable", "free", "why"),
        [
            ("yopmail.com", True, False, "listed"),
            ("a.b.yopmail.com", True, False, "a sub-domain of a listed domain is listed"),
            ("notyopmail.com", False, False, "the text before a listed name makes another name"),
            ("yopmail.com.example", False, False, "a listed name in front is another domain"),
            ("gmail.com", False, True, "the largest free provider"),
            ("googlemail.com", False, True, "ends in the text mail.com, and is itself listed"),
            ("evilgmail.com", False, False, "ends in the text gmail.com"),
            ("mail.yahoo.co.jp", False, True, "below a free provider"),
            ("agh.edu.pl", False, False, "a university below a suffix that circulating lists hold"),
            ("ui.ac.id", False, False, "a university below a country's academic suffix"),
            ("kedai.my.id", False, False, "my.id is a suffix that circulating lists hold"),
            ("hetzner.ddns.net", False, False, "a dynamic-DNS zone is many people's"),
            ("gmial.com", False, False, "a typo is neither thrown away nor free"),
            ("proton.me", False, True, "newer than freemail"),
            ("i.softbank.jp", False, True, "a carrier's mailbox"),
            ("example.org", False, False, "on no list"),
            ("com", False, False, "a top-level domain is never an entry"),
            ("", False, False, "nothing to look up"),
            ("[192.0.2.1]", False, False, "an address literal"),
        ],
    )
    def test_a_domain_has_the_flags_of_its_list(
        self, domain: str, disposable: bool, free: bool, why: str
    ) -> None:
        flags = loaded().flags("ada", domain)
        assert (flags.disposable, flags.free) == (disposable, free), why

    def test_relay_is_never_disposable(self) -> None:
        for relay in RELAYS:
            assert loaded().flags("x7", relay).disposable is False, relay
            assert loaded().flags("x7", f"anna.{relay}").disposable is False, relay

    @each_row(
        ("own", "domain", "expected", "why"),
        [
            (
                {"disposable_allow": ["yopmail.com"]},
                "yopmail.com",
                False,
                "allow beats the list at the same depth",
            ),
            (
                {"disposable_allow": ["yopmail.com"]},
                "a.yopmail.com",
                False,
                "and for everything below it",
            ),
            ({"disposable_deny": ["firm.example"]}, "mx.firm.example", True, "deny holds below"),
            (
                {"disposable_allow": ["firm.example"], "disposable_deny": ["firm.example"]},
                "firm.example",
                False,
                "allow beats deny at the same depth",
            ),
            (
                {"disposable_allow": ["firm.example"], "disposable_deny": ["tmp.firm.example"]},
                "a.tmp.firm.example",
                True,
                "the deeper label wins: deny",
            ),
            (
                {"disposable_deny": ["firm.example"], "disposable_allow": ["ok.firm.example"]},
                "a.ok.firm.example",
                False,
                "the deeper label wins: allow",
            ),
            (
                {"disposable_allow": ["ok.yopmail.com"]},
                "yopmail.com",
                True,
                "a deeper allow leaves the rest listed",
            ),
            (
                {"disposable_allow": ["ok.yopmail.com"]},
                "ok.yopmail.com",
                False,
                "a deeper allow beats the list",
            ),
            ({"disposable_deny": ["duck.com"]}, "duck.com", True, "the user's deny beats a relay"),
            (
                {"disposable_deny": ["mail.com"]},
                "googlemail.com",
                False,
                "a label is not a text's end",
            ),
            ({"disposable_deny": ["mail.com"]}, "mail.com", True, "the same, listed"),
            (
                {"disposable_deny": ["BÜCHER.example."]},
                "xn--bcher-kva.example",
                True,
                "IDN, case and final dot",
            ),
            ({"disposable_deny": [" Firm.Example "]}, "firm.example", True, "blanks"),
        ],
    )
    def test_lists_of_the_user_decide_what_is_disposable(
        self, own: dict[str, list[str]], domain: str, expected: bool, why: str
    ) -> None:
        assert loaded(**own).flags("ada", domain).disposable is expected, why

    def test_lists_of_the_user_decide_what_is_free(self) -> None:
        lists = loaded(free_allow=["gmail.com"], free_deny=["firm.example"])
        assert lists.flags("a", "gmail.com").free is False
        assert lists.flags("a", "x.firm.example").free is True

    def test_spamtrap_is_true_or_never_determined(self) -> None:
        assert loaded().flags("a", "trap.example").spamtrap is None
        lists = loaded(spamtrap=["trap.example"])
        assert lists.flags("a", "x.trap.example").spamtrap is True
        assert lists.flags("a", "nottrap.example").spamtrap is None

    def test_all_flags_of_one_address(self) -> None:
        lists = loaded(spamtrap=["gmail.com"])
        assert lists.flags("Sales", "gmail.com") == Flags(
            role=True, spamtrap=True, disposable=False, free=True
        )

    def test_many_domains_are_as_long_as_asked(self) -> None:
        flags = loaded(spamtrap=["trap.example"]).domain_flags(
            ["trap.example", "yopmail.com", "gmail.com", "a.example"]
        )
        assert flags["spamtrap"].to_pylist() == [True, None, None, None]
        assert flags["disposable"].to_pylist() == [False, True, False, False]
        assert flags["free"].to_pylist() == [False, False, True, False]
        assert loaded().domain_flags([])["free"].to_pylist() == []


LABELS = st.sampled_from(
    ["yopmail", "gmail", "duck", "mozmail", "x", "com", "co", "uk", "trap", "example", "", "-", "ü"]
)


@given(st.lists(st.lists(LABELS, max_size=6).map(".".join), max_size=20))
def test_many_domains_have_the_same_flags_as_one(domains: list[str]) -> None:
    lists = loaded(
        spamtrap=["trap.example"], disposable_deny=["x.com"], disposable_allow=["x.x.com"]
    )
    many = lists.domain_flags(domains)
    for at, domain in enumerate(domains):
        one = lists.flags("ada", domain)
        assert (
            many["spamtrap"][at].as_py(),
            many["disposable"][at].as_py(),
            many["free"][at].as_py(),
        ) == (
            one.spamtrap,
            one.disposable,
            one.free,
        )


@pytest.mark.slow
@given(st.text(), st.text())
def test_flags_never_raise(local: str, domain: str) -> None:
    assert loaded().flags(local, domain).spamtrap is None


class TestRoles:
    @each_row(
        ("local", "expected", "why"),
        [
            ("info", True, "RFC 2142"),
            ("INFO", True, "case does not matter"),
            ("Postmaster", True, "RFC 5321 section 4.5.1"),
            ("info+shop", True, "the tag is cut"),
            ("info+", True, "an empty tag as well"),
            ("no-reply", True, "a system's address"),
            ("infotech", False, "exact, no prefix"),
            ("my.info", True, "the last word"),
            ("info2", True, "a number is not a part of a word"),
            ("info.rome", True, "the first word"),
            ("my.info.rome", False, "neither the first nor the last word"),
            ("my.info+rome", False, "before a tag only the first word counts"),
            ("info.my+rome", True, "the first word"),
            ("ada+info", False, "the tag does not count"),
            ("maria.sales", False, "a family name counts only as the whole local part"),
            ("sales", True, "the whole local part"),
            ("no-reply", True, "a name with a separator"),
            ("ada.no-reply", False, "which is not a word"),
            ("b\u00fcro.info", True, "beside other letters"),
            ("salesforce.fan", False, "exact, no prefix"),
            ("ada", False, "a person"),
            ("paris", False, "a person's or a city's name, on circulating lists"),
            ("+info", False, "nothing is left before the tag"),
            ("", False, "empty"),
            ("kontakt", True, "in other languages"),
            ("shareholders", False, "only in the extended tier"),
        ],
    )
    def test_role_by_local_part(self, local: str, expected: bool, why: str) -> None:
        assert loaded().flags(local, "example.org").role is expected, why

    def test_extended_tier_adds_names(self) -> None:
        extended = loaded(extended_roles=True)
        assert extended.flags("shareholders", "example.org").role is True
        assert extended.flags("shareholders.rome", "example.org").role is False
        assert extended.flags("info", "example.org").role is True

    def test_lists_of_the_user_decide_what_is_a_role(self) -> None:
        lists = loaded(role_allow=["info", "Team"], role_deny=["Büro", "team"])
        assert lists.flags("info", "example.org").role is False
        assert lists.flags("BÜRO", "example.org").role is True
        assert lists.flags("team", "example.org").role is False  # allow beats deny

    def test_overrides_hold_for_words(self) -> None:
        lists = loaded(role_allow=["info", "library.rome"], role_deny=["chefin"])
        found = [
            lists.is_role(local)
            for local in ("info.rome", "library.rome", "library.bari", "chefin.rome")
        ]
        assert found == [False, False, True, False]

    def test_words_are_of_letters_that_a_column_can_find(self) -> None:
        words = loaded(extended_roles=True).role_words
        assert [
            word
            for word in words
            if not (word.isascii() and word.isalpha() and 3 <= len(word) <= 31)
        ] == []

    def test_names_are_the_effective_set(self) -> None:
        names = loaded(role_allow=["info"], role_deny=["chefin"]).role_names
        assert "info" not in names
        assert {"chefin", "sales"} <= set(names)


LOCAL_PARTS = st.lists(
    st.sampled_from(
        ["info", "KONTAKT", "urp", "ada", "sales", "x", "é", ".", "-", "_", "7", "+", "\u212a"]
    ),
    max_size=6,
).map("".join)


@pytest.mark.slow
@given(st.lists(LOCAL_PARTS, max_size=12))
@example(["inf", "o.x", "urp.", "urp", ".urp", "é.urp"])
def test_many_local_parts_have_the_same_role_as_one(local: list[str]) -> None:
    lists = loaded(role_allow=["urp", "ada-kontakt"])
    texts = [f"{each}@example.org" for each in local]
    seen = observe_column(pa.array([*texts, "ada@example.org"], pa.string()))
    many = lists.match_roles(seen["local"]).to_pylist()
    ok = seen["well_formed"].to_pylist()
    expected = [
        lists.is_role(each) if fine else None
        for each, fine in zip([*local, "ada"], ok, strict=True)
    ]
    assert many == expected


class TestOwnFiles:
    def test_file_with_comments_bom_and_crlf(self, tmp_path: Path) -> None:
        path = tmp_path / "deny.txt"
        path.write_bytes(
            "\ufeff# ours\r\nFirm.Example  # seen in May\r\n\r\nbücher.example\r\n".encode()
        )
        lists = loaded(disposable_deny=path)
        assert lists.flags("a", "firm.example").disposable is True
        assert lists.flags("a", "xn--bcher-kva.example").disposable is True

    def test_wrong_line_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "deny.txt"
        path.write_text("ok.example\n\nada@firm.example\n", encoding="utf-8")
        with pytest.raises(
            SettingsError,
            match=r"disposable_deny: .*deny\.txt, line 3: 'ada@firm\.example' is not a domain",
        ):
            loaded(disposable_deny=path)

    @each_row(
        ("own", "message"),
        [
            ({"free_deny": ["com"]}, "Lists.free_deny: 'com' is not a domain"),
            ({"spamtrap": [""]}, "Lists.spamtrap: '' is not a domain"),
            ({"spamtrap": ["a..b"]}, "'a..b' is not a domain"),
            ({"spamtrap": ["*.firm.example"]}, "is not a domain"),
            ({"spamtrap": ["x" * 5000 + ".example"]}, r"x{80}\.\.\.' is not a domain"),
            ({"spamtrap": ["\ud800.example"]}, "is not a domain"),
            ({"role_deny": ["info@firm.example"]}, "is not a local part"),
            ({"role_deny": ["info+tag"]}, "is not a local part"),
            ({"role_deny": [" "]}, "is not a local part"),
        ],
    )
    def test_wrong_entry_is_named(self, own: dict[str, list[str]], message: str) -> None:
        with pytest.raises(SettingsError, match=message):
            loaded(**own)

    @pytest.mark.parametrize("kind", ["missing", "directory", "latin-1", "nul"])
    def test_unreadable_file_is_named(self, tmp_path: Path, kind: str) -> None:
        path = {"directory": tmp_path, "nul": Path("deny\0.txt")}.get(kind, tmp_path / "deny.txt")
        if kind == "latin-1":
            path.write_bytes("b\xfccher.example".encode("latin-1"))
        with pytest.raises(SettingsError, match=r"Lists\.disposable_deny: cannot read"):
            loaded(disposable_deny=path)

    def test_changed_file_is_read_again(self, tmp_path: Path) -> None:
        path = tmp_path / "deny.txt"
        path.write_text("one.example\n", encoding="utf-8")
        assert loaded(disposable_deny=path).flags("a", "one.example").disposable is True
        path.write_text("another.example\n", encoding="utf-8")
        assert loaded(disposable_deny=path).flags("a", "one.example").disposable is False

    def test_equal_settings_share_one_value(self) -> None:
        assert loaded(free_deny=["firm.example"]) is loaded(free_deny=["firm.example"])


class TestVersion:
    def test_version_names_each_list(self) -> None:
        packaged = find_lists(["disposable", "free", "free_more", "role_core", "role_languages"])
        disposable, free, more, role, languages = (each.version for each in packaged.values())
        assert (
            loaded().version
            == f"disposable {disposable}, free {free}+{more}, role {role}+{languages}"
        )

    def test_version_depends_on_tiers_and_own_entries(self) -> None:
        versions = [
            loaded().version,
            loaded(extended_roles=True).version,
            loaded(free_deny=["a.example"]).version,
            loaded(free_deny=["b.example"]).version,
        ]
        assert len(set(versions)) == 4


class TestNormalDomain:
    @each_row(
        ("text", "expected", "why"),
        [
            ("Example.ORG", "example.org", "case"),
            ("example.org.", "example.org", "the root's dot"),
            ("bücher.example", "xn--bcher-kva.example", "IDNA"),
            ("faß.example", "xn--fa-hia.example", "IDNA 2008, not transitional"),
            ("日本。jp", "xn--wgv71a.jp", "an ideographic full stop is a dot"),
            ("a_b.example", "a_b.example", "underscores occur in host names"),
            ("org", None, "a single label"),
            (".example.org", None, "an empty label"),
            ("example..org", None, "an empty label"),
            ("-a.example", None, "a hyphen in front"),
            ("a b.example", None, "a blank"),
            ("a.example\nb.example", None, "two lines"),
            ("x" * 64 + ".example", None, "a label of 64"),
            (".".join(["abcdefgh"] * 29), None, "more than 253 characters"),
        ],
    )
    def test_a_domain_has_one_normal_form(self, text: str, expected: str | None, why: str) -> None:
        assert normal_domain(text) == expected, why

    @given(st.one_of(st.text(), st.text("abü.-_ⅷ。\u0130\u200d\ud800 ", max_size=40)))
    def test_never_raises_and_is_stable(self, text: str) -> None:
        name = normal_domain(text)
        if name is not None:
            assert normal_domain(name) == name
            assert name == name.encode("ascii", "ignore").decode().lower()
            assert "." in name
