"""Names of functions among local parts: exact, without regard to case, tags cut."""

import re

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from mailverdict.checks.syntax.column import observe_column
from mailverdict.checks.syntax.kernels import SEPARATORS, match_names
from tests.doubles.tables import each_row

NAMES = ["info", "sales", "hr", "no-reply", "x", "büro", "élan", "k"]


def expected(local: list[str], names: list[str]) -> list[bool]:
    return [each.lower().partition("+")[0] in names for each in local]


def matched(local: pa.StringArray, names: list[str]) -> list[bool]:
    return match_names(local, tuple(names)).tolist()


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
    ],
)
def test_match_names_is_exact(local, found):
    assert matched(pa.array([local], pa.string()), NAMES) == [found]
    among = pa.array(["adam", local, "zed"], pa.string())
    assert matched(among, NAMES) == [False, found, False]


local_parts = st.text("infoxhrINFO+k-.éÉ", max_size=6) | st.sampled_from(NAMES).map(str.upper)


@given(st.lists(local_parts, max_size=20), st.lists(st.sampled_from(NAMES), max_size=4))
@example([], NAMES)
@example(["", ""], NAMES)
@example(["info"], [])
def test_match_names_agrees_with_the_plain_rule(local, names):
    assert matched(pa.array(local, pa.string()), names) == expected(local, names)
    sliced = pa.array(["info", *local, ""], pa.string()).slice(1, len(local))
    assert matched(sliced, names) == expected(local, names)


WORDS = ("info", "sales", "urp", "sekretariat")


def has_word(local: str) -> bool:
    name, tag, _ = local.lower().partition("+")
    words = re.split(SEPARATORS, name)
    return name in WORDS or words[0] in WORDS or (not tag and words[-1] in WORDS)


parts = st.lists(st.sampled_from([*WORDS, "URP", "in", "fo", "x", "é", *"._-7+"]), max_size=6).map(
    "".join
)


@given(st.lists(parts, max_size=20))
@example(["inf", "o.x"])
@example(["a.ur", "p"])
def test_words_are_found_as_by_the_plain_rule(local):
    texts = pa.array(["info", *local, ""], pa.string()).slice(1, len(local))
    assert match_names(texts, WORDS, WORDS).tolist() == [has_word(each) for each in local]
    texts = pa.array([f"{each}@urp.info" for each in local], pa.string())
    assert match_names(texts, WORDS, WORDS).tolist() == [has_word(each) for each in local]


def test_thousands_of_names_match():
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
    assert seen.match_locals(NAMES).to_pylist() == [True, None, False, True, True, True, True, True]
