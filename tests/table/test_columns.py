"""The promised columns: their dtypes, their missing values, and what pandas can do with them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.errors import SettingsError
from mailverdict.model.arrow import take_rows
from mailverdict.model.table import SCHEMA, complete_table
from mailverdict.model.words import REASON_MEANING, WHY_MEANING, Reason
from mailverdict.table.columns import (
    COLUMNS,
    choose_columns,
    error_message,
    to_arrow,
    to_pandas,
)
from tests.doubles.tables import each_row

PROMISED = {
    "verdict": pd.CategoricalDtype(["valid", "risky", "invalid", "unknown"]),
    "why": "string",
    "details": "string",
    "reasons": "string",
    "role": "boolean",
    "spamtrap": "boolean",
    "disposable": "boolean",
    "free": "boolean",
    "catch_all": "boolean",
    "protected": "boolean",
    "status": pd.CategoricalDtype(["done", "pending", "error", "missing"]),
    "suggestion": "string",
    "error_message": "string",
    "validation_type": "string",
    "error": "string",
    "checks": "string",
    "mx_records": "string",
    "operator": "string",
    "parked": "boolean",
    "disposable_suspected": "boolean",
    "smtp_host": "string",
    "checked_at": pd.DatetimeTZDtype("us", "UTC"),
    "source": "string",
    "normalized": "string",
    "version": "string",
}
CELLS = ["ada@example.org", "info@gmail.com", "x@mailinator.com", "nobody", None, 5]


@pytest.fixture
def out():
    return mv.verify(CELLS, validation_type="regex", columns="all")


def coded(values):
    return pa.array(values, pa.string()).dictionary_encode()


def table_of(**columns):
    return complete_table(columns, len(next(iter(columns.values()))))


def column_named(name):
    return next(c for c in COLUMNS if c.name == name)


def test_the_table_has_the_promised_columns_and_sets():
    assert [c.name for c in COLUMNS] == list(PROMISED)
    assert [c.name for c in choose_columns("core")] == list(PROMISED)[:13]
    assert [c.name for c in choose_columns("core", clean=True)] == [
        *list(PROMISED)[:13],
        "clean",
        "change",
    ]
    short = [
        "clean",
        "verdict",
        "why",
        "error_message",
        "suggestion",
        "role",
        "disposable",
        "free",
        "status",
    ]
    assert [c.name for c in choose_columns("short", clean=True)] == short
    assert [c.name for c in choose_columns("short")] == short[1:]


@each_row("cells", [CELLS, [], [None, float("nan")], CELLS[:1], CELLS[3:4]], ids=len)
def test_dtypes_are_the_same_whatever_the_rows(cells):
    out = mv.verify(cells, validation_type="regex", columns="all")
    assert list(out.columns) == [*PROMISED, "clean", "change"]
    for name, dtype in PROMISED.items():
        assert out[name].dtype == (pd.StringDtype("pyarrow") if dtype == "string" else dtype), name


def test_missing_is_never_false(out):
    assert out["role"].tolist() == [False, True, False, pd.NA, pd.NA, pd.NA]
    assert out["disposable"].tolist() == [False, False, True, pd.NA, pd.NA, pd.NA]
    assert out["free"].tolist() == [False, True, False, pd.NA, pd.NA, pd.NA]
    for never_determined in ("spamtrap", "catch_all", "protected"):
        assert out[never_determined].isna().all(), never_determined


def test_an_empty_cell_has_a_status_and_nothing_else(out):
    row = out.iloc[4]
    assert row["status"] == "missing"
    assert row.drop("status").isna().all()


def test_a_cell_that_is_not_text_is_invalid(out):
    row = out.iloc[5]
    assert (row["verdict"], row["status"], row["error"], row["reasons"]) == (
        "invalid",
        "done",
        "REGEX",
        "",
    )
    assert row["error_message"] == "There is no @."
    assert (row["checks"], row["source"], row["validation_type"]) == (
        "syntax=false",
        "local",
        "regex",
    )
    assert pd.notna(row["checked_at"])


def test_text_has_its_normal_form_only_where_it_is_an_address():
    out = mv.verify(
        ["Ada@BÜCHER.example.com", "x@"], validation_type="regex", columns=["normalized"]
    )
    assert out["normalized"].tolist() == ["Ada@bücher.example.com", pd.NA]


def test_reasons_split_into_indicator_columns():
    out = mv.verify(
        ["nobody", "ada@example.org", None], validation_type="smtp", offline=True, journal=None
    )
    dummies = out["reasons"].str.get_dummies(";")
    assert dummies.to_dict("list") == {"syntax_error": [1, 0, 0]}
    assert out["reasons"].tolist() == ["syntax_error", pd.NA, pd.NA]
    assert out["details"].tolist() == ["syntax_error", pd.NA, pd.NA]
    assert out["status"].tolist() == ["done", "pending", "missing"]


def test_two_results_on_top_of_each_other_keep_their_categories():
    parts = [mv.verify([cell], validation_type="regex") for cell in ("ada@example.org", "nobody")]
    both = pd.concat(parts)
    assert both["verdict"].dtype == PROMISED["verdict"]
    assert both["status"].dtype == PROMISED["status"]


def test_a_result_goes_through_parquet_unchanged(tmp_path):
    out = mv.verify(
        pd.DataFrame({"email": pd.Series(CELLS[:5], dtype="string")}),
        "email",
        validation_type="regex",
    )
    out.to_parquet(tmp_path / "out.parquet")
    back = pd.read_parquet(tmp_path / "out.parquet")
    pd.testing.assert_frame_equal(back, out, check_dtype=False, check_categorical=True)
    assert back.attrs == out.attrs
    assert mv.summary(back, "email").equals(mv.summary(out, "email"))


def test_columns_are_chosen_by_set_or_by_name_in_the_tables_order():
    assert [c.name for c in choose_columns(["status", "verdict"])] == ["verdict", "status"]
    assert choose_columns("all") == COLUMNS
    assert choose_columns([]) == ()


@each_row("wanted", ["cor", "", ["verdict", "verdicts"]])
def test_unknown_columns_are_refused_with_what_there_is(wanted):
    with pytest.raises(
        SettingsError, match=r"give 'short', 'core', 'all'|'verdicts' is not one of verdict, why"
    ):
        choose_columns(wanted)


# Field of the one table, its value, the column, what the user reads.
CONVERSIONS = [
    ("reasons", "timeout;role", "details", "timeout"),
    ("reasons", "timeout;role", "reasons", "timeout;role"),
    ("reasons", "", "details", None),
    ("reasons", "", "reasons", ""),
    ("errors", '[{"code":"SMTP","message":"a"},{"code":"X","message":"a"}]', "error_message", "a"),
    (
        "errors",
        '[{"code":"SMTP","message":"a"},{"code":"X","message":"b"}]',
        "error_message",
        "a; b",
    ),
    ("errors", "[]", "error_message", None),
    (
        "reasons",
        "role;timeout",
        "error_message",
        "shared mailbox such as info@, which several people may read",
    ),
    (
        "reasons",
        "greylisted",
        "error_message",
        "the mail server asks for a second attempt later (greylisting)",
    ),
    ("reasons", "moon_phase;role", "error_message", "the service gives the reason 'moon_phase'"),
    ("reasons", "", "error_message", None),
    ("checks", '{"dns":true,"syntax":false}', "checks", "dns=true;syntax=false"),
    ("checks", "{}", "checks", ""),
    ("metadata", '{"mx_records":["a.example","b.example"]}', "mx_records", "a.example;b.example"),
    ("metadata", '{"mx_records":[]}', "mx_records", None),
    ("metadata", '{"mx_records":"odd"}', "mx_records", None),
    ("metadata", '{"mx_records":["ASPMX.L.Google.com.","mx.other.example"]}', "operator", "google"),
    ("metadata", '{"mx_records":["mx1.hoster.example"]}', "operator", "hoster.example"),
    ("metadata", '{"mx_records":[]}', "operator", None),
    ("metadata", '{"mx_records":["."]}', "operator", None),
    ("metadata", '{"mx_records":["park-mx.above.com"]}', "parked", True),
    ("metadata", '{"mx_records":["mx.example.org"]}', "parked", False),
    ("metadata", "{}", "parked", None),
    ("metadata", '{"mx_records":["smtp.yopmail.com"]}', "disposable_suspected", True),
    ("metadata", '{"mx_records":["park-mx.above.com"]}', "disposable_suspected", False),
    ("metadata", '{"smtp_host":"a.example"}', "smtp_host", "a.example"),
    ("metadata", '{"smtp_host":7}', "smtp_host", None),
    ("metadata", "{}", "smtp_host", None),
]


@each_row(("field", "value", "name", "shown"), CONVERSIONS)
def test_fields_become_what_a_user_reads(field, value, name, shown):
    table = table_of(**{field: coded([value, None, value])})
    assert to_arrow(table, column_named(name)).to_pylist() == [shown, None, shown]


def test_the_message_begins_with_the_flag_that_decides_and_goes_on_with_the_errors():
    errors = coded(['[{"code":"SMTP","message":"no answer in 30 s"}]'] * 3 + [None])
    table = table_of(
        errors=errors, reasons=coded(["disposable;timeout", "timeout;role", None, "catch_all;role"])
    )
    assert to_arrow(table, column_named("error_message")).to_pylist() == [
        "the domain is a provider of disposable addresses; no answer in 30 s",
        "no answer in 30 s",
        "no answer in 30 s",
        "the mail server accepts every address of the domain (catch-all)",
    ]


@each_row("validation_type", ["regex", "mx", "mx_blacklist", "smtp"])
def test_every_row_that_is_not_valid_has_a_message_and_no_other_row(validation_type):
    with mv.sandbox.World(dns_timeout=0.2) as world:
        cells = [*(each.address for each in world.addresses), *CELLS]
        out = mv.verify(cells, validation_type=validation_type, backend=world.backend, journal=None)
    assert (
        out["error_message"].notna().tolist()
        == out["verdict"].isin(["risky", "invalid", "unknown"]).tolist()
    )
    assert (out["error_message"].dropna().str.strip() != "").all()


# What a row has: reasons, code of the first error, verdict; and why it has the verdict, in a word.
WORDS = [
    ("timeout;role", "SMTP", "unknown", "timeout"),
    ("disposable;timeout", "SMTP", "risky", "disposable"),
    ("inconclusive", "DNS", "unknown", "inconclusive"),
    ("moon_phase", None, "unknown", "moon_phase"),
    ("", "REGEX", "invalid", "syntax_error"),
    ("", "DNS", "invalid", "no_mx_record"),
    ("", "DNS", "unknown", "no_answer"),
    ("", "BLACKLIST", "invalid", "blacklisted"),
    ("", "BLACKLIST", "unknown", "no_answer"),
    ("", "SMTP", "invalid", "SMTP"),
    ("", "SMTP", "unknown", "no_answer"),
    ("", "POLICY", "invalid", "POLICY"),
    ("", None, "unknown", "no_answer"),
    ("", None, "invalid", None),
    ("", None, "valid", None),
    (None, None, None, None),
]


@each_row("chunks", [1, 3])
def test_every_row_says_why_in_a_word(chunks):
    size = -(-len(WORDS) // chunks)
    parts = []
    for start in range(0, len(WORDS), size):
        reasons, error, result, _ = map(coded, zip(*WORDS[start : start + size], strict=True))
        parts.append(table_of(reasons=reasons, error=error, result=result))
    assert to_arrow(pa.concat_tables(parts), column_named("why")).to_pylist() == [
        row[-1] for row in WORDS
    ]


@pytest.mark.slow
@each_row("validation_type", ["regex", "mx", "mx_blacklist", "smtp"])
def test_every_row_that_is_not_valid_says_why_whatever_was_asked(validation_type):
    with mv.sandbox.World(dns_timeout=0.2) as world:
        cells = [*(each.address for each in world.addresses), *CELLS]
        out = mv.verify(cells, validation_type=validation_type, backend=world.backend, journal=None)
    assert (
        out["why"].notna().tolist() == out["verdict"].isin(["risky", "invalid", "unknown"]).tolist()
    )
    assert set(out["why"].dropna()) <= {*WHY_MEANING}
    known = out["details"].notna()
    assert out["why"][known].equals(out["details"][known])


def test_verdicts_of_pieces_with_dictionaries_of_their_own_are_joined():
    parts = [
        table_of(result=coded(values))
        for values in (["invalid", None], ["valid", "invalid"], ["risky"])
    ]
    values = to_pandas(pa.concat_tables(parts), column_named("verdict"))
    assert values.dtype == PROMISED["verdict"]
    assert [None if pd.isna(v) else v for v in values] == [
        "invalid",
        None,
        "valid",
        "invalid",
        "risky",
    ]


def test_a_verdict_that_the_contract_does_not_name_is_missing_and_not_another():
    assert to_pandas(table_of(result=coded(["excellent"])), column_named("verdict")).isna().all()


def test_every_column_is_made_from_a_field_of_the_table():
    assert {field for c in COLUMNS for field in c.fields} <= set(SCHEMA.names)


@each_row("codes", [pa.int8(), pa.int32(), pa.uint16()])
def test_messages_are_made_from_codes_of_any_width(codes):
    errors = ['[{"code":"REGEX","message":"There is no @."}]', None, None]
    columns = {"errors": errors, "reasons": ["", "role", None]}
    kind = pa.dictionary(codes, pa.string())
    table = pa.table(
        {
            name: pa.array(values, pa.string()).dictionary_encode().cast(kind)
            for name, values in columns.items()
        }
    )
    made = error_message(table["errors"], table["reasons"]).to_pylist()
    assert made == ["There is no @.", REASON_MEANING[Reason.ROLE], None]


@each_row("chunks", [1, 2])
def test_rows_are_taken_of_every_type(chunks):
    words = pa.array(["done"] * 5, pa.string()).dictionary_encode()
    codes = pa.array(["a", None, "b", "a", None], pa.string()).dictionary_encode()
    flags, texts = pa.array([True, None, False, True, True]), pa.array(["x", None, "", "y", "z"])
    part = pa.table({"status": words, "reasons": codes, "role": flags, "text": texts})
    order = np.array([4, 0, 1, 2, 2])
    taken = take_rows(
        pa.concat_tables([part.slice(0, 2), part.slice(2)]) if chunks == 2 else part, order
    )
    assert taken.schema.names == part.schema.names
    for name, cells in part.to_pydict().items():
        assert taken[name].to_pylist() == [cells[row] for row in order.tolist()]
        taken[name].validate(full=True)


@each_row(
    ("host", "disposable", "shown"),
    [
        ("smtp.yopmail.com", True, False),
        ("smtp.yopmail.com", False, True),
        ("smtp.yopmail.com", None, True),
        ("aspmx.l.google.com", True, True),
        ("firm-com.mail.protection.outlook.com", True, True),
        ("mx.zoho.eu", True, True),
        ("aspmx.l.google.com", False, False),
        ("mx.throwaway.example", True, False),
    ],
)
def test_a_list_and_a_mail_server_that_contradict_each_other(host, disposable, shown):
    table = table_of(
        metadata=coded([json.dumps({"mx_records": [host]})]),
        disposable=pa.array([disposable], pa.bool_()),
    )
    assert to_arrow(table, column_named("disposable_suspected")).to_pylist() == [shown]
