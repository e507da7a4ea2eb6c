"""The key of a list: how much two lists share, without their addresses."""

from __future__ import annotations

import math

import pyarrow as pa

from mailverdict.mailings.list_key import key_of_list, shared_part
from tests.doubles.tables import each_row


def texts(first, last):
    return pa.array([f"u{number}@firm.example" for number in range(first, last)])


@each_row("size", [20, 300, 5000])
def test_the_key_of_a_list_tells_how_much_two_lists_share(size):
    key = key_of_list(texts(0, size))
    assert len(key) == 256
    assert shared_part(key, key) == 1
    assert shared_part(key, key_of_list(texts(size, 2 * size))) < 0.1
    assert shared_part(key, key_of_list(texts(size // 2, size + size // 2))) > 0.2


def test_the_key_of_a_list_does_not_depend_on_the_order_or_the_release():
    assert key_of_list(texts(0, 50)) == key_of_list(texts(0, 50)[::-1])
    assert key_of_list(texts(0, 50))[:16] == "b02979797a19a73a"


def test_a_very_short_list_has_no_key():
    assert key_of_list(texts(0, 9)) == ""
    assert math.isnan(shared_part("", key_of_list(texts(0, 50))))
