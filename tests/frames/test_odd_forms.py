"""Two forms of an address that are accepted only where cells are repaired: quoted odd dots, and an underscore below the
registered domain. No service is asked about them."""

from __future__ import annotations

import pandas as pd
import pytest

import mailverdict as mv
from tests.doubles.tables import each_row

ODD = ['"hoge."@docomo.ne.jp', '"a..b"@firm.example', "ada@my_host.firm.com"]
REFUSED = ['"a b"@firm.example', '"a@b"@firm.example', "ada@my_firm.com", "ada@__.firm.com"]


@each_row("cell", ODD)
def test_it_is_valid_by_regex_where_cells_are_repaired(cell):
    out = mv.verify([cell], validation_type="regex")
    assert out["verdict"].tolist() == ["valid"]
    assert out["clean"].tolist() == [cell]


@each_row("cell", ODD)
def test_it_is_malformed_as_it_stands(cell):
    assert mv.verify([cell], validation_type="regex", clean=False)["verdict"][0] == "invalid"
    assert mv.check(cell, validation_type="regex").result == "invalid"


@each_row("cell", REFUSED)
def test_other_quotes_and_underscores_stay_malformed(cell):
    assert mv.verify([cell], validation_type="regex")["verdict"][0] == "invalid"


def test_a_mail_server_is_asked_about_the_mailbox():
    with mv.sandbox.World() as world:
        asked = mv.verify(['"hoge."@docomo.ne.jp'], validation_type="mx", backend=world.backend)
    assert "syntax_error" not in asked["why"].dropna().tolist()
    assert asked["verdict"].tolist() == ["valid"]


def test_a_service_is_not_asked_and_the_plan_does_not_count_it():
    with mv.sandbox.World() as world:
        cells = [*ODD, world.addresses[0]]
        plan = mv.plan(cells, validation_type="mx", backend=world.url)
        out = mv.verify(cells, validation_type="mx", backend=world.url, journal=None, columns="all")
    assert plan.to_submit == 1
    assert out["verdict"].tolist()[:3] == ["unknown"] * 3
    assert out["why"].tolist()[:3] == ["unusual_form"] * 3
    assert out["source"].tolist() == ["local", "local", "local", "remote"]


@pytest.mark.slow
def test_rows_of_one_mailbox_are_found():
    frame = pd.DataFrame({"email": [ODD[0], ODD[0].upper(), ODD[1]]})
    assert mv.duplicates(frame, "email")["email_copies"].tolist() == [2, 2, 1]
