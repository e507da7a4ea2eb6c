"""Names of functions among local parts: exact, without regard to case, tags cut."""

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mailverdict.checks.syntax.column import observe_column
from mailverdict.checks.syntax.kernels import match_locals

NAMES = ["info", "sales", "hr", "no-reply", "x", "büro", "élan", "k"]


def expected(local: list[str | None], names: list[str]) -> list[bool | None]:
    return [None if each is None else each.lower().partition("+")[0] in names for each in local]


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
        (None, None),
    ],
)
def test_match_locals_is_exact(local, found):
    assert match_locals(pa.array([local], pa.string()), NAMES).to_pylist() == [found]
    among = pa.array(["adam", local, "zed"], pa.string())
    assert match_locals(among, NAMES).to_pylist() == [False, found, False]


local_parts = st.none() | st.text("infoxhrINFO+k-.éÉ", max_size=6) | st.sampled_from(NAMES).map(str.upper)


@given(st.lists(local_parts, max_size=20), st.lists(st.sampled_from(NAMES), max_size=4))
@example([], NAMES)
@example([None], NAMES)
@example(["", ""], NAMES)
@example(["info"], [])
def test_match_locals_agrees_with_the_plain_rule(local, names):
    assert match_locals(pa.array(local, pa.string()), names).to_pylist() == expected(local, names)
    sliced = pa.array(["info", *local, None], pa.string()).slice(1, len(local))
    assert match_locals(sliced, iter(names)).to_pylist() == expected(local, names)


def test_match_locals_accepts_the_local_parts_of_a_column():
    seen = observe_column(pa.array(["Sales@web.de", "sales@web", "ada@web.de", "hr+x@web.de"]))
    assert match_locals(seen.local, NAMES).to_pylist() == [True, None, False, True]


def test_thousands_of_names_match():
    names = [f"team{number}" for number in range(20_000)]
    assert match_locals(pa.array(["TEAM19999", "team20000", "adam"]), names).to_pylist() == [True, False, False]


def test_a_column_matches_its_local_parts_without_joining_them():
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
    assert seen.match_locals(NAMES).equals(match_locals(seen.local, NAMES))
