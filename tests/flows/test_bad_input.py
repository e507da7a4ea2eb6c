"""Everything people put into columns, through the whole house and every validation type."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest

import mailverdict as mv
from mailverdict.model.address import address_key
from mailverdict.sandbox import World
from tests.doubles.tables import first_ones

CELLS = [
    "ada@gmail.com",
    "ADA@GMAIL.COM ",
    "ada@gmail.com",
    "nobody",
    "@",
    "a@b@c.org",
    "ada\x00@gmail.com",
    "ada\r\n@gmail.com",
    "ada@gmail.com\r\nRCPT TO:<eve@example.org>",
    "ada@gmail.com\n",
    "\u202eada@gmail.com",
    "ada@gm\u200bail.com",
    "a@" + "a." * 1_000 + "org",
    "a@" + ".".join(["a" * 62] * 4),
    "x" * 64 + "@gmail.com",
    "x" * 10_000_000 + "@gmail.com",
    "\ud800@gmail.com",
    "مثال@example.org",
    "ada@例え.jp",
    "ada@xn--a.example.org",
    "ada@127.0.0.1",
    "ada@[127.0.0.1]",
    "ada@localhost",
    "",
    " \t\u3000",
    None,
    float("nan"),
    pd.NA,
    pd.NaT,
    7,
    2.5,
    True,
    b"ada@gmail.com",
    ["ada@gmail.com"],
    {"email": "ada@gmail.com"},
    ("ada@gmail.com",),
    np.array(["ada@gmail.com"]),
    pd.Timestamp("2026-01-02"),
    object,
]
MISSING = [i for i, cell in enumerate(CELLS) if i in range(23, 29)]


@pytest.fixture(scope="module")
def world():
    with World(dns_timeout=0.3) as opened:
        yield opened


@pytest.fixture(scope="module")
def frame():
    made = pd.DataFrame({"id": range(len(CELLS)), "email": pd.Series(CELLS, dtype=object)})
    return made.set_index(pd.Index([n % 7 for n in range(len(CELLS))][::-1]))


@pytest.mark.filterwarnings("ignore:.*several addresses:UserWarning")
@pytest.mark.parametrize("kind", first_ones(["regex", "smtp", "mx", "mx_blacklist"], 2))
def test_every_row_comes_back_with_a_status_and_the_frame_is_unchanged(world, frame, kind):
    before = copy.deepcopy(frame)
    out = mv.verify(
        frame, "email", validation_type=kind, backend=world.backend, journal=None, columns="all"
    )
    pd.testing.assert_frame_equal(frame, before)
    assert out.index.tolist() == frame.index.tolist()
    assert out["id"].tolist() == list(range(len(CELLS)))
    status = out["email_status"].tolist()
    assert [i for i, s in enumerate(status) if s == "missing"] == MISSING
    assert set(status) == {"done", "missing"}
    assert out["email_verdict"].isna().tolist() == [s == "missing" for s in status]


def test_what_is_malformed_is_invalid_whatever_is_asked(world, frame):
    options = {"backend": world.backend, "columns": "all", "clean": False}
    regex = mv.verify(frame, "email", validation_type="regex", **options)
    malformed = (regex["email_verdict"] == "invalid").to_numpy()
    assert 20 < malformed.sum() < len(CELLS) - len(MISSING)
    for kind in ("mx", "mx_blacklist", "smtp"):
        out = mv.verify(frame, "email", validation_type=kind, journal=None, **options)
        assert (out["email_verdict"].to_numpy()[malformed] == "invalid").all()
        assert (out["email_error"].to_numpy()[malformed] == "REGEX").all()
        assert out["email_error_message"].to_numpy()[malformed].tolist() == (
            regex["email_error_message"].to_numpy()[malformed].tolist()
        )
        reasons = "syntax_error" if kind == "smtp" else ""
        assert set(out["email_reasons"].to_numpy()[malformed]) == {reasons}


def test_a_service_is_never_sent_what_is_malformed_or_no_text(world, frame):
    before = mv.quota(world.url).used
    plan = mv.plan(frame, "email", backend=world.url, journal=None, clean=False)
    out = mv.verify(
        frame, "email", validation_type="mx", backend=world.url, journal=None, clean=False
    )
    assert mv.quota(world.url).used - before == plan.to_submit
    here = mv.verify(frame, "email", validation_type="regex", clean=False)
    well_formed = frame["email"][(here["email_verdict"] == "valid").to_numpy()]
    texts = (cell.decode() if isinstance(cell, bytes) else cell for cell in well_formed)
    assert plan.to_submit == len(set(map(address_key, texts)))
    assert (out["email_status"] == here["email_status"]).all()
