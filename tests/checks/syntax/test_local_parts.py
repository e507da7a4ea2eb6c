"""Names of functions among local parts: exact, without regard to case, tags cut."""

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mailverdict.checks.syntax.column import observe_column
from mailverdict.checks.syntax.kernels import match_names

NAMES = ["info", "sales", "hr", "no-reply", "x", "büro", "élan", "k"]


def expected(local: list[str], names: list[str]) -> list[bool]:
    return [each.lower().partition("+")[0] in names for each in local]


def matched(local: pa.StringArray, names: list[str]) -> list[bool]:
    return match_names(local, tuple(names)).tolist()


@pytest.mark.parametrize(
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
