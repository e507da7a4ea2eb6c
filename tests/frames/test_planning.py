"""What a call would cost, against a real service on loopback; nothing is spent by asking."""

import pandas as pd
import pytest

import mailverdict as mv
from mailverdict.frames.planning import plan_pieces
from mailverdict.sandbox import World
from mailverdict.table.table import table_of
from tests.doubles.tables import each_row

CELLS = [
    "a@one.example",
    "A@one.example",
    "a@ONE.example",
    " b@one.example ",
    "bad",
    5,
    None,
    "",
    "c@gone.example",
]


@pytest.fixture(scope="module")
def world():
    with World(daily_limit=3) as opened:
        yield opened


def test_a_plan_counts_rows_and_spends_nothing(world, tmp_path):
    found = mv.plan(pd.Series(CELLS), backend=world.url, journal=tmp_path / "j.db")
    assert (found.rows, found.missing, found.malformed, found.unique) == (9, 2, 2, 4)
    assert (found.to_submit, found.batches, found.days, found.remaining) == (4, 2, 2, 3)
    assert mv.quota(world.url).used == 0
    assert not (tmp_path / "j.db").exists()


@each_row("clean", [True, False])
def test_cells_with_several_addresses_have_a_line_of_their_own_unless_cells_are_judged_as_they_stand(
    clean,
):
    found = mv.plan(
        ["a@one.example; b@one.example", "nobody", "c@one.example"],
        validation_type="regex",
        clean=clean,
    )
    assert (found.malformed, found.several, found.unique) == ((1, 1, 1) if clean else (2, 0, 1))
    assert ("rows with several addresses (never sent)" in str(found)) is clean


@pytest.mark.slow
def test_what_the_journal_knows_costs_nothing(world, tmp_path):
    journal = tmp_path / "j.db"
    mv.verify(["a@one.example", "bad"], backend=world.url, journal=journal)
    found = mv.plan(CELLS, backend=world.url, journal=journal)
    assert (found.known, found.to_submit) == (1, 3)
    refreshed = mv.plan(CELLS, backend=world.url, journal=journal, refresh=["valid"])
    assert (refreshed.known, refreshed.to_submit) == (0, 4)


def test_this_machine_has_no_quota(world):
    found = mv.plan(CELLS, backend=world.backend)
    assert (found.to_submit, found.daily_limit, found.days) == (4, None, None)
    with pytest.raises(mv.SettingsError, match="has no quota"):
        mv.quota(world.backend)


def test_offline_asks_nobody():
    found = mv.plan(CELLS, backend="http://127.0.0.1:9", offline=True, journal=None)
    assert (found.unique, found.to_submit) == (4, 0)


def test_limit_bounds_what_is_submitted(world):
    assert mv.plan(CELLS, backend=world.url, journal=None, limit=2).to_submit == 2


def test_a_service_that_is_not_there_is_one_clear_error():
    with pytest.raises(mv.TransportError, match=r"127\.0\.0\.1:9"):
        mv.plan(CELLS, backend="http://127.0.0.1:9", journal=None)


class TestPieces:
    CELLS = [
        "ada@x.example",
        "Bob <bob@x.example>",
        None,
        "nobody",
        "ADA@X.example",
        "ada@X.EXAMPLE",
        5,
        "cy@x.example",
    ] * 3

    @pytest.mark.parametrize("size", [1, 2, 5, 24])
    @pytest.mark.parametrize("clean", [False, True])
    def test_pieces_give_the_plan_of_the_whole(self, size, clean, tmp_path):
        pieces = [
            [table_of(self.CELLS[at : at + size], None)] for at in range(0, len(self.CELLS), size)
        ]
        options = {"validation_type": "regex", "clean": clean, "journal": None}
        assert plan_pieces(pieces, options) == mv.plan(self.CELLS, **options)

    @pytest.mark.slow
    def test_what_the_journal_knows_is_counted_once(self, tmp_path):
        with World() as world:
            options = {"backend": world.url, "journal": tmp_path / "j.db", "clean": True}
            mv.verify(["cy@x.example", "bob@x.example"], **options)
            found = plan_pieces(
                [[table_of(cells, None)] for cells in (self.CELLS[:12], self.CELLS[12:])], options
            )
            assert found == mv.plan(self.CELLS, **options)
        assert (found.unique, found.known, found.to_submit) == (4, 2, 2)
