"""Reading decoded JSON."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.errors import ContractError
from mailverdict.model.json_fields import optional_field, require_field, shorten
from tests.doubles.tables import each_row


def test_a_value_of_the_right_kind_is_given() -> None:
    assert require_field({"n": 5}, "n", int, "") == 5
    assert optional_field({"n": None}, "n", int, "") is None
    assert optional_field({}, "n", int, "") is None


@each_row(
    ("record", "kind", "path", "message"),
    [
        ({}, int, "", "n is absent, not a whole number"),
        ({"n": True}, int, "", "n is True, not a whole number"),
        ({"n": "x"}, bool, "data", "data.n is x, not true or false"),
        ({"n": {}}, list, "data", "data.n is {}, not a list"),
        ([], int, "data", "data is [], not an object"),
        (None, int, "", "the answer is None, not an object"),
    ],
)
def test_anything_else_is_an_error_that_says_where_and_what(
    record: Any, kind: type, path: str, message: str
) -> None:
    with pytest.raises(ContractError) as raised:
        require_field(record, "n", kind, path)
    assert str(raised.value) == message


@given(st.text(), st.integers(1, 50))
def test_shortened_text_is_one_bounded_line(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert len(short) <= limit + 1
    assert short.isprintable()
    if text.isprintable() and len(text) <= limit:
        assert short == text
