"""`verify` of several columns in one run, and of repaired cells."""

from __future__ import annotations

import asyncio

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mailverdict as mv
import mailverdict.dask
from tests.doubles.tables import each_row

DATA = {
    "email": ["ada@firm.example", "bob@firm.example", None, "nobody", "ada@firm.example"],
    "billing": ["bob@FIRM.example", None, "cy@firm.example", "ada@firm.example", 7],
}
FRAME = pd.DataFrame(DATA)
CORE = [
    name.removeprefix("email_")
    for name in mv.verify(FRAME, "email", validation_type="regex").columns[2:]
]


def to_pandas(frame):
    if isinstance(frame, pl.DataFrame):
        return frame.to_pandas()
    return frame.to_pandas() if isinstance(frame, pa.Table) else frame


class TestSeveralColumns:
    @each_row("kind", ["regex", "mx"])
    def test_each_column_gets_what_it_gets_alone(self, kind):
        with mv.sandbox.World() as world:
            options = {"validation_type": kind, "backend": world.backend, "progress": False}
            both = mv.verify(FRAME, ["email", "billing"], **options)
            alone = mv.verify(mv.verify(FRAME, "email", **options), "billing", **options)
        pd.testing.assert_frame_equal(both, alone)
        assert list(both.columns) == [
            *DATA,
            *(f"{column}_{name}" for column in DATA for name in CORE),
        ]

    @pytest.mark.parametrize(
        "make",
        [pl.DataFrame, pa.table, lambda data: pd.DataFrame(data, index=[1, 1, 0, "x", None])],
    )
    def test_all_kinds_of_frames(self, make):
        data = {
            **DATA,
            "billing": [cell if isinstance(cell, str) else None for cell in DATA["billing"]],
        }
        frame = make(data)
        out = mv.verify(frame, ["email", "billing"], validation_type="regex")
        assert type(out) is type(frame)
        assert [None if pd.isna(each) else each for each in to_pandas(out)["billing_verdict"]] == [
            "valid", None, "valid", "valid", None,
        ]  # fmt: skip
        assert [None if pd.isna(each) else each for each in to_pandas(out)["email_verdict"]] == [
            "valid", "valid", None, "invalid", "valid",
        ]  # fmt: skip

    @pytest.mark.slow
    def test_an_address_of_several_columns_is_submitted_once(self):
        with mv.sandbox.World(daily_limit=50) as world:
            names = [each.address for each in world.addresses]
            frame = pd.DataFrame({"a": names[:3], "b": names[1:4]})
            planned = mv.plan(
                frame, ["a", "b"], validation_type="mx", backend=world.url, journal=None
            )
            out = mv.verify(
                frame,
                ["a", "b"],
                validation_type="mx",
                backend=world.url,
                journal=None,
                progress=False,
            )
            assert mv.quota(world.url).used == 4
        assert (planned.rows, planned.unique, planned.to_submit) == (6, 4, 4)
        assert out["a_status"].tolist() == out["b_status"].tolist() == ["done"] * 3
        assert out["a_verdict"].tolist()[1:] == out["b_verdict"].tolist()[:2]

    @pytest.mark.slow
    def test_start_and_averify_and_the_accessor(self):
        expected = mv.verify(FRAME, ["email", "billing"], validation_type="regex")
        run = mv.start(FRAME, ["email", "billing"], validation_type="regex")
        pd.testing.assert_frame_equal(run.result(), expected)
        awaited = asyncio.run(mv.averify(FRAME, ["email", "billing"], validation_type="regex"))
        pd.testing.assert_frame_equal(awaited, expected)
        pd.testing.assert_frame_equal(
            FRAME.mailverdict.verify(["email", "billing"], validation_type="regex"), expected
        )

    def test_a_list_of_one_column_is_that_column(self):
        pd.testing.assert_frame_equal(
            mv.verify(FRAME, ["email"], validation_type="regex", prefix="x_"),
            mv.verify(FRAME, "email", validation_type="regex", prefix="x_"),
        )

    def test_columns_of_a_multi_index(self):
        frame = pd.DataFrame({("work", "mail"): ["ada@firm.example"], ("home", "mail"): ["a@@b"]})
        out = mv.verify(
            frame,
            [("work", "mail"), ("home", "mail")],
            validation_type="regex",
            columns=["verdict"],
        )
        assert out[("work", "mail_verdict")].tolist() == ["valid"]
        assert out[("home", "mail_verdict")].tolist() == ["invalid"]

    def test_again_replaces_the_results(self):
        once = mv.verify(FRAME, ["email", "billing"], validation_type="regex")
        with pytest.warns(
            UserWarning,
            match="column '(email|billing)': the addresses in '(email|billing)_clean' were verified as they stand",
        ):
            pd.testing.assert_frame_equal(
                mv.verify(once, ["email", "billing"], validation_type="regex"), once
            )

    @each_row("function", [mv.verify, mv.start, mv.plan])
    @each_row(
        ("column", "error", "message"),
        [
            (["email", "email"], mv.ColumnError, "column 'email' is given twice"),
            (
                ["email", "mail"],
                mv.ColumnError,
                "no column 'mail' \\(did you mean 'email'\\?\\); there are 'email', 'billing'",
            ),
            ([], mv.ColumnError, "give a column: one of 'email', 'billing'"),
        ],
    )
    def test_wrong_lists_are_named(self, function, column, error, message):
        with pytest.raises(error, match=message):
            function(FRAME, column)

    def test_labels_that_would_collide(self):
        with pytest.raises(mv.SettingsError, match="each of several columns has its own prefix"):
            mv.verify(FRAME, ["email", "billing"], prefix="x_")
        tidy = mv.clean(FRAME, "email")
        with pytest.raises(mv.SettingsError, match="two results would get the label 'email_clean'"):
            mv.verify(tidy, ["email", "email_clean"], validation_type="regex")
        with pytest.raises(mv.SettingsError, match="goes with a frame"):
            mv.verify(["ada@firm.example"], ["email"])


MESSY = [
    "Ada <ada@FIRM.example>",
    "mailto:bob@gmial.com",
    "bob@gmail,com",
    "ada@firm.example; cy@firm.example",
    None,
    "cy@firm.example",
    "nobody",
    7,
]


@pytest.mark.filterwarnings("ignore:.*several addresses:UserWarning")
class TestRepairedCells:
    def test_the_repaired_address_is_verified(self):
        out = mv.verify(MESSY, validation_type="regex")
        assert out["verdict"].astype(object).where(out["verdict"].notna(), None).tolist() == [
            "valid", "valid", "invalid", "unknown", None, "valid", "invalid", "invalid",
        ]  # fmt: skip
        tidy = mv.clean(MESSY)
        pd.testing.assert_frame_equal(out[["clean", "change"]], tidy[["clean", "change"]])
        assert out["suggestion"].tolist()[1:3] == ["bob@gmail.com", "bob@gmail.com"]
        assert list(out.columns) == CORE

    CELLS = st.lists(
        st.sampled_from(
            [
                *MESSY[:3],
                *MESSY[4:],
                "ADA@Firm.Example",
                "ada@fírm.example",
                "ada@fi\u0301rm.example",
                " ada@x.example ",
            ]
        ),
        max_size=30,
    )

    @pytest.mark.slow
    @given(CELLS)
    def test_a_repaired_cell_gets_what_its_address_gets(self, cells):
        """The syntax check that the repairs made is the one that the verdict is made of."""
        out = mv.verify(cells, validation_type="regex", columns="all")
        tidy = mv.clean(cells)["clean"]
        repaired = [
            cell if pd.isna(address) else address for cell, address in zip(cells, tidy, strict=True)
        ]
        expected = mv.verify(repaired, validation_type="regex", columns="all", clean=False)
        ignored = ["checked_at", "suggestion", "clean", "change"]
        pd.testing.assert_frame_equal(
            out.drop(columns=ignored),
            expected.drop(columns=[name for name in ignored if name in expected]),
        )

    @each_row("make", [pd.DataFrame, pl.DataFrame, pa.table])
    def test_all_kinds_of_frames(self, make):
        out = to_pandas(mv.verify(make({"email": MESSY[:6]}), "email", validation_type="regex"))
        assert out["email"].tolist()[:4] == MESSY[:4]
        assert out["email_clean"].tolist()[:2] == ["ada@firm.example", "bob@gmial.com"]

    @pytest.mark.slow
    def test_a_cell_without_an_at_sign_is_never_submitted(self):
        with mv.sandbox.World(daily_limit=50) as world:
            name = world.addresses[0].address
            cells = pd.Series(
                [
                    name,
                    7,
                    2.5,
                    True,
                    {"a": 1},
                    [1],
                    b"\xff",
                    pd.Timestamp("2026-01-02"),
                    "nobody",
                    None,
                    "N/A",
                ]
            )
            planned = mv.plan(cells, validation_type="mx", backend=world.url, journal=None)
            out = mv.verify(
                cells, validation_type="mx", backend=world.url, journal=None, progress=False
            )
            assert mv.quota(world.url).used == 1
        assert (planned.unique, planned.malformed, planned.missing, planned.to_submit) == (
            1,
            8,
            2,
            1,
        )
        assert out["status"].tolist() == ["done"] * 9 + ["missing"] * 2
        assert out["verdict"].tolist()[1:9] == ["invalid"] * 8

    def test_an_address_is_submitted_once_however_it_is_written(self):
        with mv.sandbox.World(daily_limit=50) as world:
            name = world.addresses[0].address
            cells = [name, f"Ada <{name}>", f"mailto:{name}", "nobody"]
            planned = mv.plan(cells, validation_type="mx", backend=world.url, journal=None)
            out = mv.verify(
                cells, validation_type="mx", backend=world.url, journal=None, progress=False
            )
            assert mv.quota(world.url).used == 1
        assert (planned.unique, planned.malformed, planned.to_submit) == (1, 1, 1)
        assert len(set(out["verdict"].tolist()[:3])) == 1
        assert out["clean"].tolist()[:3] == [name] * 3

    def test_with_a_limit_the_rest_is_pending_and_repaired(self):
        out = mv.verify(MESSY, validation_type="regex", limit=1)
        assert out["status"].tolist()[:2] == ["done", "pending"]
        assert out["clean"].tolist()[:2] == ["ada@firm.example", "bob@gmial.com"]

    def test_each_of_several_columns_gets_what_it_would_alone(self):
        frame = pd.DataFrame({"a": MESSY, "b": MESSY[::-1]})
        both = mv.verify(frame, ["a", "b"], validation_type="regex")
        alone = [mv.verify(frame[column], validation_type="regex") for column in frame]
        for column, expected in zip(frame, alone, strict=True):
            found = both[[f"{column}_{name}" for name in expected.columns]].set_axis(
                expected.columns, axis=1
            )
            pd.testing.assert_frame_equal(found, expected)

    def test_nothing_to_repair_and_nothing_at_all(self):
        for cells in ([], [None], ["nobody"], ["ada@firm.example"]):
            out = mv.verify(cells, validation_type="regex")
            plain = mv.verify(cells, validation_type="regex", clean=False)
            pd.testing.assert_frame_equal(out[plain.columns], plain)

    @each_row("clean", [None, 1, "yes"])
    def test_another_value_is_an_error(self, clean):
        for function in (mv.verify, mv.start, mv.plan):
            with pytest.raises(mv.SettingsError, match="give True or False"):
                function(MESSY, validation_type="regex", clean=clean)

    @pytest.mark.slow
    @each_row("kind", ["regex", "mx"])
    def test_a_frame_of_dask_gets_what_one_of_pandas_gets(self, kind):
        import dask.dataframe as dd

        texts = [cell for cell in MESSY if cell != 7]
        frame = pd.DataFrame({"email": pd.array(texts, dtype="string")})
        with mv.sandbox.World() as world:
            options = {"validation_type": kind, "backend": world.backend, "progress": False}
            out = mailverdict.dask.verify(dd.from_pandas(frame, npartitions=2), "email", **options)
            found, meta = out.compute(), out._meta
            expected = mv.verify(frame, "email", **options)
        text = {"email": "string"}  # before pandas 3, Dask converts the storage of text
        pd.testing.assert_frame_equal(found.astype(text), expected.astype(text))
        assert list(meta.columns) == list(expected.columns)
