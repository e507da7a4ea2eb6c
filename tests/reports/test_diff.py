"""Two audits of one list: what was added, removed or changed, address by address."""

import pandas as pd
import pytest

import mailverdict as mv
from mailverdict.sandbox import World


def audit(cells, backend=None, kind="regex"):
    return mv.verify(pd.DataFrame({"email": cells}), "email", validation_type=kind, backend=backend)


def test_nothing_differs_between_equal_audits_whatever_the_order():
    first = audit(["a@x.example", "B@X.example", None, "bad"])
    second = audit(["bad", "B@x.EXAMPLE ", "a@x.example"])
    assert mv.diff(first, second, "email").empty


def test_added_removed_and_changed_are_distinguished():
    with World() as world:
        before = audit(
            ["ada@one.example", "ada@gone.example", "old@one.example"], world.backend, "mx"
        )
        again = audit(["ada@one.example", "ada@gone.example", "new@one.example"])
    table = mv.diff(before, again, "email")
    assert table["change"].to_dict() == {
        "ada@gone.example": "changed",
        "new@one.example": "added",
        "old@one.example": "removed",
    }
    changed = table.loc["ada@gone.example"]
    assert (changed["before"], changed["after"]) == ("invalid", "valid")
    assert list(table["change"].cat.categories) == ["added", "removed", "changed"]


def test_a_duplicate_counts_once_and_empty_cells_not_at_all():
    table = mv.diff(audit([None, ""]), audit(["a@x.example", "a@X.example", None]), "email")
    assert list(table.index) == ["a@x.example"]


def test_both_frames_must_be_verified():
    with pytest.raises(mv.ColumnError):
        mv.diff(audit(["a@x.example"]), pd.DataFrame({"email": ["a@x.example"]}), "email")
