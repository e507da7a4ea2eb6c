"""Blocks and complaints of a mailing: from which counts on the next wave has to wait."""

from __future__ import annotations

import pandas as pd

from mailverdict.mailings.experience import LearntMailing
from mailverdict.mailings.reputation import judge_reputation
from tests.doubles.tables import each_row


def mailing(*lines):
    """Operator, mails, blocked mails and complaints."""
    table = pd.DataFrame(lines, columns=["operator", "mailed", "blocked", "complaints"])
    words = {"verdict": "valid", "why": "none", "domain": "", "domains": 1, "hard": 0}
    return LearntMailing(1, table.assign(**words, unclear=table["blocked"]))


@each_row(
    ("complaints", "mailed", "is_withheld", "is_warned"),
    [
        (0, 1000, False, False),
        (1, 2000, False, False),
        (1, 1000, False, True),
        (1, 100, False, True),
        (3, 1000, True, False),
        (2, 400, True, False),
        (30, 10_000, True, False),
        (29, 10_000, False, True),
    ],
)
def test_complaints_warn_and_withhold_by_their_share(complaints, mailed, is_withheld, is_warned):
    found = judge_reputation(mailing(("google", mailed, 0, complaints)))
    assert bool(found.withheld) is is_withheld
    assert bool(found.complaints) is is_warned


@each_row(
    ("lines", "is_withheld", "operators"),
    [
        ([("google", 376, 374, 0)], True, ()),
        ([("google", 370, 368, 0), ("yahoo", 6, 0, 0)], True, ()),
        ([("google", 300, 200, 0), ("yahoo", 76, 0, 0)], False, ("google",)),
        ([("google", 300, 200, 0), ("yahoo", 300, 200, 0), ("qq", 900, 0, 0)], False, None),
        ([("google", 300, 200, 0), ("yahoo", 300, 200, 0), ("qq", 90, 0, 0)], True, ()),
        ([("", 400, 30, 0)], True, ()),
        ([("self", 400, 30, 0)], True, ()),
        ([("google", 400, 10, 0), ("yahoo", 400, 10, 0)], False, ()),
        ([("google", 10, 1, 0), ("yahoo", 400, 0, 0)], False, ()),
        ([], False, ()),
    ],
)
def test_blocks_withhold_the_operators_that_blocked(lines, is_withheld, operators):
    found = judge_reputation(mailing(*lines))
    assert bool(found.withheld) is is_withheld
    assert found.operators == (("google", "yahoo") if operators is None else operators)
    assert len(found.refusals) == len(found.operators)


def test_without_a_mailing_nothing_is_said():
    assert not judge_reputation(None).withheld
