"""Which column holds the addresses."""

import pandas as pd
import pytest

from mailverdict.errors import ColumnError
from mailverdict.frames.files.guess import SAMPLE_ROWS, address_shares, guess_column

ADDRESSES = ["ada@example.org", "Bob <bob@example.org>", None, ""]


def test_the_column_with_the_largest_share_wins():
    columns = {
        "id": [1, 2, 3, 4],
        "notes": ["wrote to x@example.org", "called", "left", "ada@example.org"],
        "mail": ADDRESSES,
        "web": ["https://example.org/@ada", "http://x.org", None, None],
    }
    assert guess_column(columns) == "mail"
    assert address_shares(columns) == {"id": 0.0, "notes": 0.25, "mail": 1.0, "web": 0.0}


def test_the_first_of_equals_wins():
    assert guess_column({"work": ADDRESSES, "home": ADDRESSES}) == "work"


def test_only_the_first_rows_are_looked_at():
    late = [None] * SAMPLE_ROWS + ADDRESSES
    assert address_shares({"late": pd.Series(late)}) == {"late": 0.0}


@pytest.mark.parametrize("columns", [{}, {"a": []}, {"a": [None], "b": [1]}, {"a": ["x", "y", "ada@example.org", "z"]}])
def test_no_likely_column_is_told(columns):
    with pytest.raises(ColumnError, match="no column looks like e-mail addresses; name one of"):
        guess_column(columns)
