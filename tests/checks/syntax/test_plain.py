"""The fast path for plain addresses gives the same answers as the full check."""

import csv

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mailverdict.checks.syntax.address import observe_fully, observe_syntax
from tests import CASES

VECTORS = CASES / "syntax_vectors.csv"
LETTERS = st.text("abz09-._+A@", max_size=12)
NEARLY = st.builds(
    "{}@{}.{}".format, LETTERS, LETTERS, st.sampled_from(["org", "test", "arpa", "local", "c-m", "1", "xn--p1ai"])
)


@pytest.mark.parametrize(
    "text", ["ada@example.org", "ada.l+news@mail.example.co.uk", "a@b.cd", "0-0@x-y.org", "_@a.bc"]
)
def test_plain_address_has_the_answer_of_the_full_check(text: str) -> None:
    assert observe_syntax(text) == observe_fully(text)


NOT_PLAIN = [
    ("Ada@example.org", "capitals may have another normal form"),
    ("ada@example.test", "a reserved name"),
    ("ada@onion.onion", "another one"),
    ("ada@xn--bcher-kva.example", "IDNA has to look"),
    ("ada@a--b.org", "two hyphens"),
    ("ada@" + "a" * 64 + ".org", "a long label"),
    ("a" * 250 + "@b.org", "a long address"),
    ("ada@web", "no dot"),
    ("ada@example.org\n", "a line break"),
    ("", "nothing"),
]


@pytest.mark.parametrize(("text", "why"), NOT_PLAIN, ids=[why for _, why in NOT_PLAIN])
def test_address_that_looks_plain_has_the_answer_of_the_full_check(text: str, why: str) -> None:
    assert observe_syntax(text) == observe_fully(text), why


def test_both_agree_on_every_known_case() -> None:
    with VECTORS.open(encoding="utf-8", newline="") as file:
        texts = [value for row in csv.DictReader(file) for value in row.values() if value]
    assert len(texts) > 100
    for text in texts:
        assert observe_syntax(text) == observe_fully(text), text


@settings(max_examples=500, deadline=None)
@example("a" * 64 + "@" + "b" * 63 + ".org")
@given(st.one_of(NEARLY, st.text(max_size=40), st.emails()))
def test_both_agree_on_anything(text: str) -> None:
    assert observe_syntax(text) == observe_fully(text)
