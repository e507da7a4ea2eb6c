"""The header fields by which services announce their limits, in every form that is in use."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.remote.rate_fields import Advertised, read_advertised


@pytest.mark.parametrize(
    ("headers", "remaining", "reset"),
    [
        ({"RateLimit": '"default";r=50;t=30', "RateLimit-Policy": '"default";q=100;w=60'}, 50, 30.0),
        ({"ratelimit": '"daily";r=4;t=50000, "burst";r=8;t=1'}, 8, 1.0),
        ({"RateLimit": '"a;b,c";r=1;t=2'}, 1, 2.0),
        ({"RateLimit": "limit=100, remaining=50, reset=30"}, 50, 30.0),
        ({"RateLimit-Limit": "100, 100;w=60", "RateLimit-Remaining": "5", "RateLimit-Reset": "9"}, 5, 9.0),
        ({"X-RateLimit-Remaining": "5", "X-RateLimit-Reset": "9"}, 5, 9.0),
    ],
)
def test_header_fields_are_read_in_every_form(headers: dict[str, str], remaining: int, reset: float) -> None:
    found = read_advertised(headers)
    assert found is not None
    assert (found.remaining, found.reset) == (remaining, reset)


def test_a_quota_is_not_waited_for_although_it_is_reset_soon() -> None:
    policies = '"daily";q=1000;w=86400, "burst";q=300;w=6'
    fields = {"RateLimit": '"daily";r=0;t=200, "burst";r=300;t=0', "RateLimit-Policy": policies}
    assert read_advertised(fields) == Advertised(300, 0.0, 300, None)
    assert read_advertised({"RateLimit": '"daily";r=0;t=200', "RateLimit-Policy": policies}) is None


def test_the_unit_is_that_of_the_policy() -> None:
    fields = {"RateLimit": '"burst";r=8;t=1', "RateLimit-Policy": '"burst";q=10;w=1;qu="addresses"'}
    assert read_advertised(fields) == Advertised(8, 1.0, 10, counts_addresses=True)


@pytest.mark.parametrize(
    "text",
    ["", ";;;", '"default"', '"default";r=1', '"d";r=-1;t=5', '"d";r=1.5;t=5', '"d";r=1;t=99999999999', '"', "="],
)
def test_header_fields_that_make_no_sense_are_ignored(text: str) -> None:
    assert read_advertised({"RateLimit": text, "RateLimit-Policy": text, "X-RateLimit-Remaining": text}) is None


@given(st.dictionaries(st.sampled_from(["RateLimit", "RateLimit-Policy", "X-RateLimit-Reset"]), st.text()))
def test_header_fields_never_raise(headers: dict[str, str]) -> None:
    read_advertised(headers)
