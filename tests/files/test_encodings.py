"""The encoding of a text file, apart from the rows that are read with it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.files import encodings


@given(
    text=st.text(st.sampled_from("aé€😀")), damage=st.binary(max_size=2), block=st.integers(1, 9)
)
def test_utf8_is_recognized_across_blocks(tmp_path_factory, text, damage, block):
    path = tmp_path_factory.mktemp("scan") / "x.csv"
    data = text.encode() + damage + text.encode()
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encodings, "BLOCK", block)
        assert encodings.scan_bytes(path).is_utf8 == encodings.decodes(data, "utf-8")
