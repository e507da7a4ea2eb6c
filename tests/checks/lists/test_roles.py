"""Roles of a column of local parts: exact, without regard to case, tags cut."""

from dataclasses import replace

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from mailverdict.checks.lists.flags import WORDS as SEPARATORS
from mailverdict.checks.lists.flags import LoadedLists, load_lists
from mailverdict.checks.syntax.column import observe_column
from mailverdict.model.settings import Lists
from tests.doubles.tables import each_row

NAMES = ["info", "sales", "hr", "no-reply", "x", "büro", "élan", "k"]
WORDS = ["info", "sales", "urp", "sekretariat"]


def lists_of(names: list[str], words: list[str] = []) -> LoadedLists:  # noqa: B006 - never changed
    return replace(
        load_lists(Lists()),
        role_names=frozenset(names),
        role_words=frozenset(words),
        no_roles=frozenset(),
    )


def matched(local: pa.StringArray, names: list[str]) -> list[bool]:
    return lists_of(names).match_roles(local).to_pylist()


@each_row(
    ("local", "found"),
    [
        ("info", True),
        ("INFO", True),
        ("iNfO+2024", True),
        ("info+", True),
        ("info+a+b", True),
        ("+info", False),
        ("info.eu", False),
        ("information", False),
        ("inf", False),
        ("i", False),
        ("hr", True),
        ("h", False),
        ("x", True),
        ("X+1", True),
        ("xy", False),
        ("no-reply", True),
        ("noreply", False),
        ("BÜRO", True),
        ("Élan+1", True),
        ("", False),
        (None, None),
    ],
)
def test_a_name_is_matched_whole(local, found):
    assert matched(pa.array([local], pa.string()), NAMES) == [found]
    among = pa.array(["adam", local, "zed"], pa.string())
    assert matched(among, NAMES) == [False, found, False]


local_parts = st.text("infoxhrINFO+k-.éÉ", max_size=6) | st.sampled_from(NAMES).map(str.upper)


@given(st.lists(local_parts, max_size=20), st.lists(st.sampled_from(NAMES), max_size=4))
@example([], NAMES)
@example(["", ""], NAMES)
@example(["info"], [])
def test_names_are_matched_as_by_the_plain_rule(local, names):
    expected = [text.lower().partition("+")[0] in names for text in local]
    assert matched(pa.array(local, pa.string()), names) == expected
    sliced = pa.array(["info", *local, ""], pa.string()).slice(1, len(local))
    assert matched(sliced, names) == expected


def has_word(local: str) -> bool:
    name, tag, _ = local.lower().partition("+")
    words = SEPARATORS.split(name)
    return name in WORDS or words[0] in WORDS or (not tag and words[-1] in WORDS)


parts = st.lists(st.sampled_from([*WORDS, "URP", "in", "fo", "x", "é", *"._-7+"]), max_size=6).map(
    "".join
)


@given(st.lists(parts, max_size=20))
@example(["inf", "o.x"])
@example(["a.ur", "p"])
@example(["info2.rome", "rome-info", "my.info.it", "rome.info+it"])
def test_words_are_found_as_by_the_plain_rule(local):
    texts = pa.array(["info", *local, ""], pa.string()).slice(1, len(local))
    found = lists_of(WORDS, WORDS).match_roles(texts).to_pylist()
    assert found == [has_word(text) for text in local]


def test_thousands_of_names_are_matched():
    names = [f"team{number}" for number in range(20_000)]
    assert matched(pa.array(["TEAM19999", "team20000", "adam"]), names) == [True, False, False]


def test_a_column_matches_the_normal_forms_of_its_local_parts():
    texts = [
        "Sales@web.de",
        "sales@web",
        "ada@web.de",
        "hr+x@web.de",
        "HR@Web.DE",
        "\u212a@web.de",
        "büro@müller.de",
        "x@a.b",
    ]
    seen = observe_column(pa.array(texts))
    assert matched(seen["local"], NAMES) == [True, None, False, True, True, True, True, True]
