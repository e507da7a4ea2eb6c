"""JSON as octets: the same with orjson as by the standard library."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.service.http.json_octets import DECODER, ENCODER, decode_json, encode_json

# Lone surrogates are among them.
TEXTS = st.text(st.characters(exclude_characters="\x7f", exclude_categories=()))


def values(integers: st.SearchStrategy[int]) -> st.SearchStrategy[object]:
    return st.recursive(
        st.none() | st.booleans() | integers | TEXTS,
        lambda each: st.lists(each) | st.dictionaries(TEXTS, each) | st.tuples(each, each),
    )


@pytest.mark.slow
@given(values(st.integers()))
def test_octets_are_those_of_the_standard_library(value: object) -> None:
    assert encode_json(value) == ENCODER.encode(value).encode()


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_number_keeps_all_its_digits(number: float) -> None:
    assert json.loads(encode_json([number])) == [number]


@pytest.mark.slow
@given(values(st.integers(-(2**63), 2**64 - 1)))
def test_what_is_written_can_be_read(value: object) -> None:
    octets = encode_json({"value": value})
    assert decode_json(bytearray(octets)) == json.loads(octets)


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        (rb'"\ud800"', "a lone surrogate: it is returned as it came"),
        (rb'"\ud83d\ude00"', "a pair of surrogates is one character"),
        (b'{"email": 1, "email": 2}', "the last of two equal keys counts"),
        (b" [1.5, -0, 1e999, 1e-7] ", "numbers in any form"),
        (b"[" * 200 + b"]" * 200, "deep, but not too deep"),
        ("ada@bücher.example".join('""').encode(), "UTF-8"),
    ],
)
def test_octets_are_read_as_by_the_standard_library(octets: bytes, why: str) -> None:
    assert decode_json(octets) == DECODER.decode(octets.decode()), why


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        (b"", "no value"),
        (b"{", "no end"),
        (b"{}}", "more than one value"),
        (b"\xef\xbb\xbf{}", "a byte order mark (RFC 8259 section 8.1)"),
        (b'"\xff"', "not UTF-8"),
        (b'"\xed\xa0\x80"', "a surrogate in UTF-8"),
        (b'"\n"', "a control character in a text"),
        (b"[" * 100_000, "too deep"),
        (b"01", "not a number of JSON"),
    ],
)
def test_what_is_not_json_is_refused(octets: bytes, why: str) -> None:
    with pytest.raises((ValueError, RecursionError)):
        decode_json(octets)
