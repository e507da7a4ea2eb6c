"""Rows of the same mailbox, and rows on a suppression list."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mailverdict as mv

# --- duplicates -----------------------------------------------------------------------------------------------------

LOCALS = ["ada", "A.da", "ada+x", "a-da", "a_da", "ADA+y.z", "bob", "b.ob"]
DOMAINS = ["gmail.com", "googlemail.com", "Firm.example", "firm.example", "pm.me", "proton.me", "ya.ru", "yandex.com"]
ADDRESSES = st.builds("{}@{}".format, st.sampled_from(LOCALS), st.sampled_from(DOMAINS))
WRAPPINGS = st.sampled_from(["{}", " {} ", "<{}>", "Ada <{}>", "mailto:{}", "{};"])
CELLS = st.one_of(
    st.builds(lambda form, address: form.format(address), WRAPPINGS, ADDRESSES),
    st.sampled_from([None, "", "  ", "nobody", 7, "ada@", float("nan")]),
)


def mailbox_of(cell):
    """The mailbox of a cell, defined one cell and one provider at a time."""
    text = str(cell).strip(" <>;").removeprefix("Ada <").removeprefix("mailto:")
    local, at, domain = text.lower().rpartition("@")
    if not at or not domain:
        return None
    if domain in ("gmail.com", "googlemail.com"):
        return local.split("+")[0].replace(".", "") + "@gmail.com"
    if domain in ("pm.me", "proton.me"):
        return "".join(c for c in local.split("+")[0] if c not in "._-") + "@proton.me"
    if domain in ("ya.ru", "yandex.com"):
        return local.split("+")[0].replace("-", ".") + "@yandex.ru"
    return f"{local}@{domain}"


@pytest.mark.filterwarnings("ignore:.*has no text:UserWarning")
@given(st.lists(CELLS, max_size=30))
def test_it_agrees_with_a_comparison_of_all_pairs(cells):
    found = mv.duplicates(cells)
    mailboxes = [mailbox_of(cell) for cell in cells]
    first = [mailboxes.index(each) for each in mailboxes]
    expected = pd.DataFrame(
        {
            "identity": pd.array(mailboxes, dtype="string[pyarrow]"),
            "duplicate_of": pd.array(
                [
                    None if box is None or at == row else at
                    for row, (box, at) in enumerate(zip(mailboxes, first, strict=True))
                ],
                dtype="Int64",
            ),
            "copies": pd.array([None if box is None else mailboxes.count(box) for box in mailboxes], dtype="Int64"),
        }
    )
    pd.testing.assert_frame_equal(found, expected)


TWINS = ["ada@gmail.com", "bob@firm.example", "a.da@googlemail.com", None]


@pytest.mark.parametrize(
    ("index", "dtype"),
    [
        (pd.RangeIndex(4), "Int64"),
        (pd.Index([30, 10, 20, 40]), "Int64"),
        (pd.Index([3, 1, 2, 4], dtype="uint8"), "UInt8"),
        (pd.Index(["a", "b", "c", "d"]), "string"),
        (pd.Index(["a", "a", "a", "a"]), "string"),
        (pd.Index([0.0, 1.0, 2.0, 3.0]), "float64"),
        (pd.date_range("2026-01-01", periods=4), "datetime64"),
        (pd.date_range("2026-01-01", periods=4, tz="UTC"), "datetime64"),
        (pd.CategoricalIndex(["a", "b", "c", "d"]), "category"),
        (pd.MultiIndex.from_product([["a", "b"], [1, 2]]), "object"),
        (pd.Index([1, "a", None, 2.5]), "object"),
    ],
)
def test_a_duplicate_names_the_label_of_the_first_row(index, dtype):
    frame = pd.DataFrame({"email": TWINS, "n": range(4)}, index=index)
    out = mv.duplicates(frame, "email")
    assert out.index.equals(index)
    assert str(out["email_duplicate_of"].dtype).startswith(dtype)
    assert out["email_duplicate_of"].isna().tolist() == [True, True, False, True]
    assert out["email_duplicate_of"].iloc[2] == index[0]
    assert out["email_copies"].tolist() == [2, 1, 2, pd.NA]
    assert list(frame.columns) == ["email", "n"]


@pytest.mark.parametrize(
    "labels", [[None, "b", "c", "d"], [float("nan"), 1.0, 2.0, 3.0], [pd.NaT, *pd.date_range("2026", periods=3)]]
)
def test_a_first_row_without_a_label_is_named_by_its_position(labels):
    found = mv.duplicates(pd.DataFrame({"email": ["bob@firm.example", *TWINS]}, index=["z", *labels]), "email")
    assert found["email_duplicate_of"].isna().tolist() == [True, True, False, False, True]
    assert found["email_duplicate_of"].tolist()[2:4] == ["z", 1]


def test_polars_and_arrow_frames_name_the_position_of_the_first_row():
    polars = mv.duplicates(pl.DataFrame({"email": TWINS}), "email")
    assert polars["email_duplicate_of"].to_list() == [None, None, 0, None]
    assert polars["email_copies"].to_list() == [2, 1, 2, None]
    arrow = mv.duplicates(pa.table({"email": TWINS}), "email")
    assert arrow["email_identity"].to_pylist() == ["ada@gmail.com", "bob@firm.example", "ada@gmail.com", None]
    assert arrow["email_duplicate_of"].to_pylist() == [None, None, 0, None]


@pytest.mark.filterwarnings("ignore:.*has no text:UserWarning")
@pytest.mark.parametrize("cells", [[], [None, None], pd.Series([], dtype="string"), pd.Series([1.5, 2.5])])
def test_a_column_without_addresses_has_no_duplicates(cells):
    out = mv.duplicates(cells)
    assert out.dtypes.astype(str).to_dict() == {"identity": "string", "duplicate_of": "Int64", "copies": "Int64"}
    assert out.isna().all(axis=None)
    assert len(out) == len(cells)


def test_its_own_columns_are_replaced_and_nobody_else_s():
    frame = pd.DataFrame({"email": TWINS})
    again = mv.duplicates(mv.duplicates(frame, "email"), "email")
    pd.testing.assert_frame_equal(again, mv.duplicates(frame, "email"))
    table = mv.duplicates(pa.table({"email": TWINS}), "email")
    assert mv.duplicates(table, "email").equals(table)
    with pytest.raises(mv.SettingsError, match="email_copies"):
        mv.duplicates(frame.assign(email_copies=1), "email")


# --- suppress -------------------------------------------------------------------------------------------------------

PEOPLE = ["Ada@firm.example", "<a.da+x@googlemail.com>", "bob@mail.shop.example", "cy@other.example", None, "nobody"]


def suppressed(against, column=PEOPLE, **options):
    return mv.suppress(column, against=against, **options)["suppressed"].tolist()


@pytest.mark.parametrize(
    ("entry", "rows"),
    [
        ("ada@firm.example", [0]),
        ("mailto:ADA@Firm.example", [0]),
        ("adA+tag@gmail.com", [1]),
        ("firm.example", [0]),
        ("@firm.example", [0]),
        ("*@firm.example", [0]),
        ("*.Firm.Example.", [0]),
        ("shop.example", [2]),  # with all domains below it
        ("ail.shop.example", []),
        ("gmail.com", [1]),  # googlemail.com has the same mailboxes
        ("googlemail.com", [1]),
        ("mail.shop.example; cy@other.example", [2, 3]),
        ("Cy <cy@other.example>, Ada L. <ada@firm.example>", [0, 3]),
        ("", []),
        (None, []),
    ],
)
def test_an_entry_marks_these_rows(entry, rows):
    expected = [row in rows for row in range(4)]
    assert suppressed([entry]) == [*expected, pd.NA, pd.NA]


def test_a_name_below_a_provider_s_domain_is_not_the_provider():
    assert suppressed(["ada.fastmail.com"], ["x@ada.fastmail.com", "bob@fastmail.com"]) == [True, False]
    assert suppressed(["ada@fastmail.com"], ["x@ada.fastmail.com", "bob@fastmail.com"]) == [True, False]


@pytest.mark.parametrize("entry", ["Ada Lovelace", "com", "co.uk", "10.5.2026", 7, "see firm.example", "ada@", "@"])
def test_an_entry_that_is_neither_is_counted_and_named(entry):
    with pytest.warns(UserWarning, match=r"2 of 3 entries of the suppression list are neither an address nor a domain"):
        assert suppressed([entry, "ada@firm.example", entry])[:4] == [True, False, False, False]


def test_a_warning_is_short_and_printable():
    with pytest.warns(UserWarning, match="entries") as caught:
        suppressed(["\x1b[2J" + "x" * 10_000, "b b", "c c", "d d"])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    message = str(caught[0].message)
    assert len(message) < 400
    assert "\x1b" not in message
    assert message.endswith(", ...")


def test_a_list_may_be_of_any_kind(tmp_path):
    entries = ["ada@firm.example", "shop.example"]
    frame = pd.DataFrame({"name": ["A", "B"], "mail": entries, "n": [1, 2]})
    lists = [
        entries, set(entries), tuple(entries), pd.Series(entries), np.array(entries), pl.Series(entries),
        pa.array(entries), (each for each in entries), frame[["mail"]], frame, pl.from_pandas(frame),
        pa.Table.from_pandas(frame),
    ]  # fmt: skip
    for file, text in {
        "list.txt": "# unsubscribed\n\nada@firm.example\r\n*@shop.example\n",
        "list.csv": "name,mail\nA,ada@firm.example\nB,shop.example\n",
        "one.csv": "entry\nshop.example\nada@firm.example\n",
        "list.tsv": "name\tmail\nA\tada@firm.example\nB\tshop.example\n",
    }.items():
        tmp_path.joinpath(file).write_text(text, encoding="utf-8")
        lists += [tmp_path / file, str(tmp_path / file)]
    tmp_path.joinpath("wide.txt").write_text("\n".join(entries), encoding="utf-16")
    frame.to_parquet(tmp_path / "list.parquet")
    frame.to_excel(tmp_path / "list.xlsx", engine="xlsxwriter", index=False)
    for against in (*lists, tmp_path / "wide.txt", tmp_path / "list.parquet", tmp_path / "list.xlsx"):
        assert suppressed(against) == [True, False, True, False, pd.NA, pd.NA]


def test_a_column_of_the_list_can_be_named(tmp_path):
    frame = pd.DataFrame({"from": ["cy@other.example"] * 2, "to": ["ada@firm.example"] * 2})
    frame.to_csv(tmp_path / "list.csv", index=False)
    for against in (frame, tmp_path / "list.csv"):
        assert suppressed(against, against_column="to")[:4] == [True, False, False, False]
        with pytest.raises(mv.ColumnError, match="no column 'at'"):
            suppressed(against, against_column="at")


def test_bad_lists_are_errors_that_say_what_to_give(tmp_path):
    with pytest.raises(mv.SettingsError, match="against=None: give the suppression list"):
        mv.suppress(PEOPLE)
    with pytest.raises(mv.SettingsError, match="against: data is of type int"):
        suppressed(7)
    with pytest.raises(mv.InputError, match=r"no such file; give entries as a list, as \['ada@firm.example'\]"):
        suppressed("ada@firm.example")
    with pytest.raises(mv.InputError, match="is a directory"):
        suppressed(tmp_path)
    with pytest.raises(mv.ColumnError, match=r"the suppression list: no column looks like .*, as against_column="):
        suppressed(pd.DataFrame({"a": ["x"], "b": ["y"]}))
    with pytest.raises(mv.ColumnError, match="no column 'mail'"):
        mv.suppress(pd.DataFrame({"email": PEOPLE}), "mail", [])
    with pytest.raises(mv.SettingsError, match="already has a column 'email_suppressed'"):
        mv.suppress(pd.DataFrame({"email": PEOPLE, "email_suppressed": "x"}), "email", [])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_second_list_keeps_what_the_first_marked(make):
    once = mv.suppress(make({"email": PEOPLE}), "email", ["firm.example"])
    twice = mv.suppress(once, "email", ["other.example"])
    marked = twice["email_suppressed"]
    values = marked.to_pylist() if isinstance(twice, pa.Table) else list(marked)
    assert [None if pd.isna(each) else each for each in values] == [True, False, False, True, None, None]


def test_an_empty_list_suppresses_nobody(tmp_path):
    tmp_path.joinpath("none.txt").touch()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert suppressed([]) == suppressed(tmp_path / "none.txt") == [False] * 4 + [pd.NA] * 2


@pytest.mark.parametrize("policy", ["strict", "balanced", "lenient"])
@pytest.mark.parametrize("order", ["before", "after"])
def test_suppressed_rows_are_dropped_whatever_their_verdict(policy, order):
    frame = pd.DataFrame({"email": ["ada@firm.example", "bob@gmial.com", "cy@other.example", None]})
    listed = ["firm.example", "gmial.com"]
    steps = [
        lambda df: mv.suppress(df, "email", listed),
        lambda df: mv.verify(df, "email", validation_type="regex"),
    ]
    for step in steps if order == "before" else reversed(steps):
        frame = step(frame)
    out = mv.decide(frame, "email", policy=policy)
    assert out["email_action"].tolist() == ["drop", "drop", "send", "unchecked"]
    assert out["email_action_why"].tolist()[:2] == ["on your suppression list"] * 2
    parts = mv.split(frame, "email", policy=policy)
    assert (len(parts.drop), len(parts.send), len(parts.unchecked)) == (2, 1, 1)
    assert mv.report(frame, "email", policy=policy)._facts.actions["drop"] == 2
    as_text = frame.assign(email_suppressed=frame["email_suppressed"].astype(object).map(str))  # read from a CSV
    assert mv.decide(as_text, "email", policy=policy)["email_action"].tolist() == out["email_action"].tolist()
