"""The one columnar table and the values behind its rows, back and forth without loss."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import get_args

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mailverdict.model.arrow import texts_where
from mailverdict.model.table import (
    SCHEMA,
    complete_table,
    dump_json,
    empty_table,
    parse_moment,
    table_to_rows,
)
from mailverdict.model.verification import Fault, Verification
from mailverdict.model.words import (
    REASON_MEANING,
    Reason,
    RefreshWord,
    Status,
    ValidationType,
    ValidationTypeWord,
    Verdict,
    VerdictWord,
)
from mailverdict.verdicts import PRECEDENCE
from tests.doubles.tables import each_row, rows_to_table

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
WORDS = st.text("abc_", min_size=1, max_size=9)
FLAG = st.none() | st.booleans()
JSON = st.recursive(
    FLAG | st.integers(-9, 9) | TEXT,
    lambda v: st.lists(v, max_size=3) | st.dictionaries(TEXT, v, max_size=3),
)
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "validated_at": st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat) | JSON,
        "normalized": TEXT | st.integers(),
        "mx_records": st.lists(TEXT, max_size=3),
        "anything": JSON,
    },
)
VERIFICATIONS = st.builds(
    Verification,
    email=TEXT,
    validation_type=st.sampled_from(list(map(str, ValidationType))) | WORDS,
    result=st.sampled_from(list(map(str, Verdict))) | WORDS,
    reasons=st.lists(WORDS, max_size=3).map(tuple),
    checks=st.dictionaries(WORDS, st.booleans(), max_size=3),
    role=FLAG,
    spamtrap=FLAG,
    disposable=FLAG,
    free=FLAG,
    catch_all=FLAG,
    protected=FLAG,
    reason=st.none() | WORDS,
    errors=st.none() | st.lists(st.builds(Fault, WORDS, TEXT), max_size=2).map(tuple),
    metadata=METADATA,
    extra=st.dictionaries(TEXT, JSON, max_size=2),
)
PLAIN = Verification("ada@example.org", "mx", "valid")


@pytest.mark.slow
@given(st.lists(VERIFICATIONS, max_size=4))
@example([Verification("a", "mx", "valid", metadata={"validated_at": "2026-01-02T03:04:05+01:00"})])
@example([Verification("a", "mx", "valid", metadata={"validated_at": "0001-01-01T00:00:00+01:00"})])
@example([Verification("a", "mx", "valid", metadata={"normalized": "a"})])
@example([Verification("a", "mx", "valid", metadata={"normalized": 7, "validated_at": None})])
def test_values_go_through_the_table_unchanged(verifications):
    table = rows_to_table(verifications, source="remote")
    assert table.schema.equals(SCHEMA)
    back = table_to_rows(table)
    assert [without_own_name(v) for v in back] == [without_own_name(v) for v in verifications]


def without_own_name(verification):
    """A normal form that is the address itself is known without being said."""
    metadata = dict(verification.metadata)
    if metadata.get("normalized") == verification.email:
        del metadata["normalized"]
    return {name: getattr(verification, name) for name in verification.__slots__} | {
        "metadata": metadata
    }


def test_only_rows_that_are_done_are_values():
    table = rows_to_table([PLAIN, PLAIN], source="local")
    table = table.set_column(1, SCHEMA.field(1), pa.array(["pending", "done"]).dictionary_encode())
    assert table_to_rows(table) == [PLAIN]


def test_a_table_is_completed_with_nulls_and_casts():
    table = complete_table({"status": pa.array(["done"]), "role": pa.array([True])}, 1)
    assert table.schema.equals(SCHEMA)
    assert {k: v for k, v in table.to_pylist()[0].items() if v is not None} == {
        "status": "done",
        "role": True,
    }
    assert empty_table().equals(complete_table({}, 0))


@each_row(
    ("value", "moment"),
    [
        ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05.000006+01:00", datetime(2026, 1, 2, 2, 4, 5, 6, tzinfo=UTC)),
        ("2026-01-02T03:04:05", None),
        ("0001-01-01T00:00:00+01:00", None),
        ("yesterday", None),
        ("", None),
        (None, None),
        (1_767_322_245, None),
    ],
)
def test_a_moment_has_an_offset_or_is_none(value, moment):
    assert parse_moment(value) == moment


@pytest.mark.slow
@given(st.dictionaries(TEXT, JSON))
def test_json_comes_back_with_its_keys_in_order(value):
    back = json.loads(dump_json(value))
    assert back == value
    assert list(back) == list(value)


class TestWords:
    def test_every_reason_has_a_meaning_and_a_place(self):
        assert list(REASON_MEANING) == list(PRECEDENCE) == list(Reason)
        assert all(
            meaning and meaning[0].islower() and meaning[-1] != "."
            for meaning in REASON_MEANING.values()
        )

    def test_words_are_those_of_the_contract(self):
        assert list(map(str, ValidationType)) == ["regex", "mx", "mx_blacklist", "smtp"]
        assert list(map(str, Verdict)) == ["valid", "risky", "invalid", "unknown"]
        assert list(map(str, Status)) == ["done", "pending", "error", "missing"]

    def test_argument_types_name_the_members_of_the_enumerations(self):
        assert get_args(ValidationTypeWord) == tuple(ValidationType)
        assert get_args(VerdictWord) == tuple(Verdict)
        assert get_args(RefreshWord) == (*Verdict, Status.ERROR)


class TestVerification:
    def test_the_dominant_reason_is_the_first(self):
        assert (
            PLAIN.details,
            Verification("a", "smtp", "unknown", ("timeout", "role")).details,
        ) == (None, "timeout")

    def test_only_smtp_asks_the_mailbox(self):
        assert [Verification("a", kind, "valid").asked_mailbox for kind in ValidationType] == [
            False
        ] * 3 + [True]

    @pytest.mark.slow
    @given(VERIFICATIONS.filter(lambda v: v.result in set(Verdict) and not v.extra))
    def test_the_payload_is_json(self, verification):
        assert json.loads(json.dumps(verification.to_dict()))["result"] == verification.result


def test_a_suggestion_has_a_column_of_its_own_if_it_is_text():
    rows = [
        replace(PLAIN, metadata={"suggestion": value}) for value in ("ada@gmail.com", {"odd": 1})
    ]
    table = rows_to_table(rows, source="remote")
    assert table["suggestion"].to_pylist() == ["ada@gmail.com", None]
    assert table_to_rows(table) == rows


def test_texts_whose_octets_do_not_begin_at_the_first_are_kept_where_a_mask_says_so():
    octets = pa.py_buffer(b"--adabob")
    texts = pa.StringArray.from_buffers(2, pa.py_buffer(np.array([2, 5, 8], np.int32)), octets)
    assert texts_where(pa.array([True, False]), texts).to_pylist() == ["ada", None]
    assert texts_where(pa.array([False, True]), texts).to_pylist() == [None, "bob"]
