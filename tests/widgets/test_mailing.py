"""What a result means for a mailing: by operator, and bounces that a sender exports."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import pytest

import mailverdict as mv
from mailverdict.widgets import Audit
from tests.widgets.conftest import finished, message, ready, shown

MAILS = ["ada@gmail.com", "nobody@gmail.com", "ada@yahoo.com", "bob@gmail.com", "not an address", "ADA@gmail.com"]


@pytest.fixture
def audit() -> Iterator[Audit]:
    """A checked list."""
    with mv.sandbox.World() as world:
        frame = pd.DataFrame({"mail": MAILS})
        yield finished(ready(frame, world.backend, validation_type="smtp", column="mail", journal=None))


def export(path, *rows: str):
    path.write_text("\n".join(["email,created,status,reason", *rows]) + "\n")
    return path


def test_operators_are_counted_as_by_operator_does(audit):
    table = shown(audit, "decide")["operators"]
    expected = mv.by_operator(audit.result, "mail")
    assert [row[0] for row in table["rows"]] == expected.index.tolist()
    assert [row[1] for row in table["rows"]] == [str(count) for count in expected["addresses"]]
    assert [row[2].partition(" ")[0] for row in table["rows"]] == [str(count) for count in expected["clear"]]
    assert [row[3] or None for row in table["rows"]] == expected["note"].tolist()
    assert all(len(row) == len(table["heads"]) for row in table["rows"])


def test_nothing_is_known_about_operators_where_no_domain_was_looked_up():
    found = finished(ready(pd.DataFrame({"mail": MAILS}), validation_type="regex"))
    assert shown(found, "decide")["operators"] is None


def test_bounces_say_which_verdicts_were_right_and_who_comes_off_the_list(audit, tmp_path):
    state = audit._state
    before = state.result.listing.counts.actions["send"]
    path = export(
        tmp_path / "bounces.csv",
        "bob@gmail.com,1772529300,5.1.1,550 5.1.1 User unknown",
        "ada@yahoo.com,1772529301,5.7.1,554 5.7.1 blocked using zen.spamhaus.org",
        "zoe@elsewhere.example,1772529301,5.1.1,550 5.1.1 User unknown",
    )
    state.use_file(path, "bounces.csv", "bounces")
    audit.wait(30)
    found = shown(audit, "decide")["bounces"]
    assert found["text"] == "bounces.csv has 2 addresses of this list, and 1 other. 1 person does not exist any more."
    rows = {row[0]: dict(zip(found["heads"], row, strict=True)) for row in found["rows"]}
    expected = mv.outcomes(audit.result, "mail", bounces=path).loc["verdict"]
    assert sum(int(row["Does not exist"]) for row in rows.values()) == expected["hard"].sum() == 1
    assert sum(int(row["Refused the sender"]) for row in rows.values()) == 1
    assert found["can_remove"]
    state.act("remove_bounced")
    assert state.result.listing.counts.actions["send"] == before - 1
    assert not shown(audit, "decide")["bounces"]["can_remove"]
    assert audit.result["mail_decision"].dropna().tolist() == ["remove"]
    state.act("undo")
    assert state.result.listing.counts.actions["send"] == before


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (["zoe@elsewhere.example,1772529301,5.1.1,550 5.1.1 User unknown"], "none of its 1 address is in this list"),
        ([], "bounces.csv"),
    ],
)
def test_a_file_that_is_about_another_list_or_no_export_is_refused(audit, tmp_path, content, said):
    audit._state.use_file(export(tmp_path / "bounces.csv", *content), "bounces.csv", "bounces")
    audit.wait(30)
    assert said in message(audit, "decide")
    assert shown(audit, "decide")["bounces"] is None
