"""What `verify` makes of messy cells unless told otherwise: repaired ones, corrected ones, several addresses."""

from __future__ import annotations

import io
import json
import warnings
from itertools import pairwise

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mailverdict as mv
import mailverdict.dask
from mailverdict.frames.planning import plan_pieces
from mailverdict.sandbox import World
from mailverdict.table.table import table_of
from tests.doubles.tables import each_row

SEVERAL = "the cell holds several addresses; none of them was verified"
# A cell, its repaired address and what was done, the verdict of it by default, and the one of the cell as it stands.
TABLE = [
    ("ada@one.example", "ada@one.example", "", "valid", "valid"),
    ("Ada@ONE.example", "Ada@one.example", "case", "valid", "valid"),
    ("Ada Lovelace <ada@one.example>", "ada@one.example", "unwrapped", "valid", "invalid"),
    ("mailto:bo@one.example", "bo@one.example", "link", "valid", "invalid"),
    ("bo@gmail,com", None, "", "invalid", "invalid"),
    ("ada@one.example; bo@one.example", None, "", "unknown", "invalid"),
    ("Ada <ada@one.example>, Bo <bo@one.example>", None, "", "unknown", "invalid"),
    ("nobody", None, "", "invalid", "invalid"),
    (None, None, None, None, None),
]
CELLS = [row[0] for row in TABLE]
CLEAN, CHANGE, VERDICTS, AS_THEY_STAND = ([row[at] for row in TABLE] for at in range(1, 5))


def frame(cells=CELLS):
    return pd.DataFrame({"email": pd.array(cells, dtype="string")})


MAKERS = {
    "pandas": lambda made: made,
    "polars": pl.from_pandas,
    "arrow": lambda made: pa.Table.from_pandas(made, preserve_index=False),
    "csv": lambda made: pd.read_csv(io.StringIO(made.to_csv(index=False))),
}


def values(out, name):
    cells = out[name].to_pylist() if isinstance(out, pa.Table) else out[name].to_list()
    return [None if pd.isna(cell) else cell for cell in cells]


def verify(data, **options):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        out = mv.verify(data, "email", **{"validation_type": "regex", **options})
    return out, [str(each.message) for each in told]


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
class TestEachKindOfFrame:
    def test_messy_cells_are_repaired_by_default(self, make):
        out, _ = verify(make(frame()))
        assert values(out, "email_verdict") == VERDICTS
        assert values(out, "email_clean") == CLEAN
        assert values(out, "email_change") == CHANGE

    def test_they_are_judged_as_they_stand_on_request(self, make):
        out, told = verify(make(frame()), clean=False)
        assert values(out, "email_verdict") == AS_THEY_STAND
        names = out.column_names if isinstance(out, pa.Table) else list(out.columns)
        assert not {"email_clean", "email_change"}.intersection(names)
        assert told == []

    def test_several_addresses_are_unknown_and_one_line_names_the_remedy(self, make):
        out, told = verify(make(frame()))
        rows = [at for at, verdict in enumerate(VERDICTS) if verdict == "unknown"]
        assert [values(out, "email_why")[at] for at in rows] == ["several_addresses"] * 2
        assert [values(out, "email_details")[at] for at in rows] == ["several_addresses"] * 2
        assert [values(out, "email_error_message")[at] for at in rows] == [SEVERAL] * 2
        assert [values(out, "email_status")[at] for at in rows] == ["done"] * 2
        assert told == [
            "2 rows hold several addresses, which are not verified: mailverdict.explode gives each a row of its own"
        ]

    def test_corrected_addresses_are_verified_and_stay(self, make):
        tidy = mv.clean(frame(), "email")
        tidy.loc[2, "email_clean"] = "lovelace@two.example"  # corrected
        tidy.loc[3, "email_clean"] = pd.NA  # taken away
        tidy.loc[7, "email_clean"] = "somebody@two.example"  # found elsewhere
        tidy.loc[8, "email_clean"] = "new@@two.example"  # mistyped
        out, told = verify(make(tidy))
        assert values(out, "email_clean") == values(tidy, "email_clean")
        assert [each or "" for each in values(out, "email_change")] == [*CHANGE[:8], ""]
        assert values(out, "email_verdict") == [
            "valid", "valid", "valid", "invalid", "invalid", "unknown", "unknown", "valid", "invalid",
        ]  # fmt: skip
        kept = "column 'email': the addresses in 'email_clean' were verified as they stand; drop 'email_clean' to have the cells repaired again"
        assert told.count(kept) == 1
        again, _ = verify(out)
        for name in (
            "email_clean",
            "email_change",
            "email_verdict",
            "email_suggestion",
            "email_details",
        ):
            assert values(again, name) == values(out, name), name

    def test_a_column_of_addresses_that_a_person_made_is_verified_and_stays(self, make):
        own = frame(["Ada Lovelace", "bo@two.example", None]).assign(
            email_clean=["ada@one.example", "bo@one.example", None]
        )
        out, told = verify(make(own))
        assert values(out, "email_clean") == ["ada@one.example", "bo@one.example", None]
        assert values(out, "email_verdict") == ["valid", "valid", None]
        assert ["verified as they stand" in each for each in told] == [True]
        assert mv.plan(make(own), "email", validation_type="regex").unique == 2

    def test_corrected_addresses_of_the_short_set_stay_too(self, make):
        first, _ = verify(frame(), columns="short")
        first.loc[2, "email_clean"] = "lovelace@two.example"
        out, _ = verify(make(first), columns="short")
        assert values(out, "email_clean") == [*CLEAN[:2], "lovelace@two.example", *CLEAN[3:]]
        assert values(out, "email_verdict") == VERDICTS

    def test_rows_that_were_added_since_are_repaired(self, make):
        first, _ = verify(frame(CELLS[:3]))
        out, _ = verify(make(pd.concat([first, frame(CELLS[3:])], ignore_index=True)))
        assert values(out, "email_clean") == CLEAN
        assert values(out, "email_change") == CHANGE
        assert values(out, "email_verdict") == VERDICTS

    def test_a_column_of_the_caller_with_the_name_of_a_repaired_one_is_an_error(self, make):
        own = frame().assign(email_clean="yes", email_change="")
        with pytest.raises(mv.SettingsError, match="'email_clean' that mailverdict did not write"):
            mv.verify(make(own), "email", validation_type="regex")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["regex", "mx", "smtp"])
def test_dask_gives_the_same(kind):
    import dask.dataframe as dd

    tidy = mv.clean(frame(), "email")
    tidy.loc[2, "email_clean"] = "lovelace@two.example"
    with World() as world:
        options = {"validation_type": kind, "backend": world.backend, "progress": False}
        for data in (frame(), tidy):
            with warnings.catch_warnings(action="ignore", category=UserWarning):
                expected = mv.verify(data, "email", **options)
                lazy = mailverdict.dask.verify(
                    dd.from_pandas(data, npartitions=3), "email", **options
                )
            found = lazy.compute()
            assert list(lazy._meta.columns) == list(expected.columns)
            pd.testing.assert_frame_equal(
                found.drop(columns="email").astype(expected.drop(columns="email").dtypes),
                expected.drop(columns="email"),
            )


@pytest.mark.slow
def test_dask_says_that_addresses_were_repaired_before_and_how_many_rows_hold_several():
    import dask.dataframe as dd

    data = dd.from_pandas(mv.clean(frame(), "email"), npartitions=2)
    with World() as world, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        mailverdict.dask.verify(data, "email", backend=world.backend, progress=False)
    messages = sorted(str(each.message).partition(",")[0].partition(";")[0] for each in told)
    assert messages == [
        "2 rows hold several addresses",
        "column 'email': the addresses in 'email_clean' were verified as they stand",
    ]


class TestSeveralAddresses:
    @each_row(
        "policy", ["strict", "balanced", "lenient", mv.Policy("mine", drop=["unknown"], retry=[])]
    )
    def test_they_are_reviewed_by_every_policy(self, policy):
        out, _ = verify(frame())
        decided = mv.decide(out, "email", policy=policy)
        assert decided["email_action"].tolist()[5:7] == ["review"] * 2
        assert (
            decided["email_action_why"].tolist()[5:7]
            == ["holds 2 addresses: give each a row of its own"] * 2
        )

    def test_they_are_reviewed_without_their_cells(self):
        out, _ = verify(frame())
        out["email"] = out["email"].mask(out["email_details"].notna(), "x")
        assert mv.decide(out, "email")["email_action"].tolist()[5:7] == ["review"] * 2

    def test_they_have_a_line_of_their_own_in_the_summary(self):
        out, _ = verify(frame())
        found = mv.summary(out, "email")
        assert found["rows"].sum() == len(CELLS)
        assert found.loc["several_addresses", ["rows", "addresses"]].tolist() == [2, 2]
        assert found.loc["unknown", "rows"] == 0
        assert "several_addresses" not in mv.summary(out.iloc[:5], "email").index

    def test_a_report_does_not_advise_to_verify_them_again(self):
        out, _ = verify(frame())
        facts = mv.report(out, "email")._facts
        assert (
            facts.counts.causes["explode"],
            facts.unanswered,
            facts.counts.buckets["unknown"],
        ) == (2, 0, 2)
        assert ("unknown", "several_addresses", SEVERAL, 2) in facts.reasons

    @pytest.mark.filterwarnings("ignore:.*hold several addresses:UserWarning")
    @each_row("kind", ["mx", "smtp"])
    def test_a_service_is_never_sent_them(self, kind):
        with World(daily_limit=50) as world:
            before = mv.quota(world.url).used
            cells = frame(CELLS[5:7])
            out = mv.verify(
                cells,
                "email",
                validation_type=kind,
                backend=world.url,
                journal=None,
                progress=False,
            )
            assert mv.quota(world.url).used == before
        assert out["email_verdict"].tolist() == ["unknown"] * 2
        assert out["email_reasons"].tolist() == ["several_addresses"] * 2

    def test_progress_counts_the_addresses_that_are_verified(self):
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            progress = mv.start(frame(), "email", validation_type="regex").wait().progress
        assert (progress.total, progress.settled) == (6, 6)
        assert progress.verdicts == {"valid": 4, "risky": 0, "invalid": 2, "unknown": 0}

    def test_a_limit_leaves_the_rest_pending(self):
        out, _ = verify(frame(), limit=1)
        assert values(out, "email_status") == [
            "done", "pending", "pending", "pending", "pending", "done", "done", "pending", "missing",
        ]  # fmt: skip

    def test_several_columns_are_counted_together(self):
        both = pd.DataFrame({"a": CELLS, "b": CELLS[::-1]})
        with pytest.warns(UserWarning, match="4 rows hold several addresses"):
            out = mv.verify(both, ["a", "b"], validation_type="regex")
        assert values(out, "a_verdict") == values(out, "b_verdict")[::-1] == VERDICTS

    def test_each_gets_a_verdict_after_explode(self):
        out, told = verify(mv.explode(frame(), "email"))
        assert values(out, "email_verdict")[5:9] == ["valid"] * 4
        assert told == []


class TestFiles:
    @pytest.fixture
    def path(self, tmp_path):
        frame().to_csv(tmp_path / "in.csv", index=False)
        return tmp_path / "in.csv"

    def verified(self, command, path, *options):
        from typer.testing import CliRunner

        from mailverdict.cli.terminal import app

        out = path.with_name("out.csv")
        arguments = [command, str(path), "-c", "email", "-t", "regex", "-o", str(out), *options]
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
        return pd.read_csv(out), done.output

    def test_a_file_gets_what_a_frame_gets(self, path):
        out, said = self.verified("verify", path)
        assert values(out, "email_verdict") == VERDICTS
        assert values(out, "email_clean") == CLEAN
        assert (
            "2 rows hold several addresses, which are not verified: --explode gives each a row of its own"
            in said
        )
        as_they_stand, said = self.verified("verify", path, "--no-clean")
        assert values(as_they_stand, "email_verdict") == AS_THEY_STAND
        assert "several" not in said
        exploded, said = self.verified("verify", path, "--explode")
        assert values(exploded, "email_verdict")[5:9] == ["valid"] * 4
        assert "several" not in said

    def test_a_file_that_was_cleaned_and_corrected_is_verified_by_that(self, path):
        tidy = mv.clean(frame(), "email")
        tidy.loc[2, "email_clean"] = "lovelace@two.example"
        tidy.loc[7, "email_clean"] = "somebody@two.example"
        tidy.to_csv(path, index=False)
        out, said = self.verified("verify", path)
        assert values(out, "email_clean") == values(tidy, "email_clean")
        assert values(out, "email_verdict")[7] == "valid"
        assert said.count("the addresses in 'email_clean' were verified as they stand") == 1

    def test_a_plan_of_it_has_these_addresses(self, path):
        from typer.testing import CliRunner

        from mailverdict.cli.terminal import app

        tidy = mv.clean(frame(), "email")
        tidy.loc[7, "email_clean"] = "somebody@two.example"
        tidy.to_csv(path, index=False)
        done = CliRunner().invoke(app, ["plan", str(path), "-c", "email", "-t", "regex", "--json"])
        assert json.loads(done.stdout)["unique"] == 4


class TestPlan:
    CELLS = (
        "Ada <ada@one.example>",
        "mailto:ada@one.example",
        "bo@one.example",
        "<bo@one.example>",
        "<cy@one.example>",
    )

    def test_it_shows_the_units_that_repaired_cells_cost(self):
        with World(daily_limit=50) as world:
            options = {"backend": world.url, "journal": None}
            found = mv.plan(self.CELLS, **options)
            assert (found.to_submit, found.repaired) == (3, 2)
            assert "of those, only in cells that were repaired" in str(found)
            as_they_stand = mv.plan(self.CELLS, clean=False, **options)
            assert found.to_submit - as_they_stand.to_submit == found.repaired
            assert "repaired" not in str(as_they_stand)

    @pytest.mark.slow
    @each_row("cuts", [(0, 2, 5), (0, 1, 2, 3, 4, 5), (0, 4, 5)])
    def test_it_is_the_same_however_the_rows_are_cut(self, cuts):
        data = frame([*reversed(self.CELLS)])
        pieces = [[table_of(data.iloc[start:end], "email")] for start, end in pairwise(cuts)]
        with World(daily_limit=50) as world:
            assert plan_pieces(pieces, {"backend": world.url, "journal": None}).repaired == 2

    @pytest.mark.slow
    def test_what_the_journal_knows_costs_nothing(self, tmp_path):
        with World(daily_limit=50) as world:
            options = {"backend": world.url, "journal": tmp_path / "journal.db"}
            mv.verify(self.CELLS[:1], progress=False, **options)
            assert mv.plan(self.CELLS, **options).repaired == 1

    def test_without_a_quota_there_is_no_such_line(self):
        with World() as world:
            found = mv.plan(self.CELLS, backend=world.backend)
        assert found.repaired is None
        assert "repaired" not in str(found)


def test_check_and_the_accessor_of_well_formed_cells_never_repair():
    assert mv.check("Ada <ada@one.example>", validation_type="regex").result == "invalid"
    assert frame()["email"].mailverdict.is_well_formed.tolist()[:4] == [True, True, False, False]


def test_accessors_and_start_repair_by_default():
    cells = frame(CELLS[:4])
    for out in (
        cells.mailverdict.verify("email", validation_type="regex"),
        cells.mailverdict.start("email", validation_type="regex").result(),
    ):
        assert values(out, "email_clean") == CLEAN[:4]
    assert values(cells["email"].mailverdict.verify(validation_type="regex"), "clean") == CLEAN[:4]
