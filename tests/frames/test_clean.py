"""Cleaning a column: what people and exports put around an address goes, the address stays."""

from __future__ import annotations

import unicodedata

import pandas as pd
import pyarrow as pa
import pytest
from email_validator import EmailNotValidError, validate_email
from hypothesis import example, given
from hypothesis import strategies as st

import mailverdict as mv
from mailverdict.checks.syntax.address import observe_syntax
from mailverdict.frames.clean import split_address
from tests.doubles.tables import each_row

# A cell, the clean address (None: there is none), what was done.
CASES = [
    ("ada@example.org", "ada@example.org", ""),
    ("Ada.L+x_1-2@example.org", "Ada.L+x_1-2@example.org", ""),
    ("  ada@example.org\t", "ada@example.org", "blanks"),
    ("\ufeffada@example.org\u200b", "ada@example.org", "blanks"),
    ("ada\u00ad@example.org", "ada@example.org", "blanks"),
    ("ada@example.org\r\n", "ada@example.org", "blanks"),
    ("ADA@Example.ORG", "ADA@example.org", "case"),
    ("ada@ΝΈΟΣ.gr", "ada@νέοσ.gr", "case"),
    ("ada\u0301@example.org", "ad\u00e1@example.org", "unicode"),
    ("Ada Lovelace <ada@example.org>", "ada@example.org", "unwrapped"),
    ('"Lovelace, Ada" <ada@example.org>;', "ada@example.org", "unwrapped"),
    ("Ada <mailto:ada@example.org>", "ada@example.org", "link"),
    ("mailto:ada@example.org?subject=Hi", "ada@example.org", "link"),
    ("MAILTO: ada%2Bx@example.org", "ada+x@example.org", "percent;link"),
    ("'ada@example.org'", "ada@example.org", "unwrapped"),
    ("“ada@example.org”", "ada@example.org", "unwrapped"),
    ("(ada@example.org)", "ada@example.org", "unwrapped"),
    ("<ada@example.org>.", "ada@example.org", "unwrapped"),
    ("ada@example.org;", "ada@example.org", "punctuation"),
    (" <Ada@Example.org> ", "Ada@example.org", "blanks;unwrapped;case"),
    ("ada%2Bx@example.org", "ada%2Bx@example.org", ""),  # only a link is percent-encoded
    ("mailto:%ff@example.org", None, ""),
    ("ada@example.org, bob@example.org", None, ""),
    ("Ada <ada@example.org> Bob <bob@example.org>", None, ""),
    ("ada(at)example.org", "ada@example.org", "at_sign"),
    ("nobody", None, ""),
    ("<>", None, None),
    ("mailto:", None, ""),
    ("''@''", None, ""),
    ("x" * 10_000_000 + " <ada@example.org>", None, ""),  # too long to be repaired
    (None, None, None),
    ("", None, None),
    (" \t", None, None),
    (b"ada@example.org", "ada@example.org", ""),
    ("\ud800@example.org", None, ""),
]


@each_row(("cell", "address", "change"), CASES, ids=lambda v: repr(v)[:30])
def test_a_cell_is_cleaned(cell, address, change):
    row = mv.clean([cell]).fillna("-").iloc[0]
    assert (row["clean"], row["change"]) == (address or "-", "-" if change is None else change)


def test_a_column_gives_each_cell_what_it_gets_alone():
    cells = [cell for cell, *_ in CASES] * 2
    out = mv.clean(pd.Series(cells, dtype=object))
    assert out["clean"].fillna("-").tolist() == [address or "-" for _, address, _ in CASES] * 2
    assert (
        out["change"].fillna("-").tolist()
        == ["-" if change is None else change for *_, change in CASES] * 2
    )


def test_a_domain_is_suggested_and_never_rewritten():
    out = mv.clean(["Bob <Bob@GMIAL.com>", "ada@example.org"])
    assert out["clean"].tolist() == ["Bob@gmial.com", "ada@example.org"]
    assert out["suggestion"].fillna("-").tolist() == ["Bob@gmail.com", "-"]


def test_new_columns_go_beside_and_the_column_stays():
    frame = pd.DataFrame({"email": ["<ada@example.org>", None]}, index=[4, 4])
    out = mv.clean(frame, "email", prefix="e_")
    assert out["email"].equals(frame["email"])
    assert out.index.tolist() == [4, 4]
    assert list(out.columns) == ["email", "e_clean", "e_suggestion", "e_change"]
    assert {str(out[name].dtype) for name in out.columns[1:]} == {"string"}


@each_row(
    "cells",
    [[], [None], pd.Series([], dtype="str"), pa.array([], pa.string())],
    ids=["empty list", "one missing cell", "empty Series", "empty Arrow array"],
)
def test_nothing_to_clean_gives_empty_columns(cells):
    out = mv.clean(cells)
    assert list(out.to_pydict() if isinstance(out, pa.Table) else out) == [
        "clean",
        "suggestion",
        "change",
    ]
    assert len(out) == len(cells)


WRAPPED = st.tuples(
    st.sampled_from(["", " ", "Ada <", "mailto:", "'", "<", "(", "\u200b"]),
    st.from_regex(r"[A-Za-z0-9._+%-]{1,8}@[A-Za-z0-9ÄÉΣ.-]{1,8}\.[A-Za-z]{2,3}", fullmatch=True),
    st.sampled_from(["", " ", ">", "'", ";", ")", ">;", "\r\n"]),
).map("".join)


@given(st.lists(WRAPPED | st.text(max_size=9), max_size=20))
@example(["mailto:%00@example.org", "mailto:%C3%BC@example.org"])
def test_cleaning_twice_changes_nothing_more(cells):
    once = mv.clean(cells)["clean"]
    again = mv.clean(once)
    assert again["clean"].equals(once)
    assert (again["change"].fillna("") == "").all()


# Addresses with every character that RFC 5322 and RFC 6532 allow in front of the at sign.
ODD = st.from_regex(
    r"[A-Za-z0-9!#$%&'*+/=?^`{|}~_éΣ王：-]{1,10}@(ada|Firm|sub.FIRM)\.(com|GR|co.uk)",
    fullmatch=True,
)


@pytest.mark.slow
@given(ODD | WRAPPED | st.emails() | st.text(max_size=12).map("{}@bücher.example".format))
@example("INFO@EXAMPLE.ORG")
@example("ada@\u212bb.example")
def test_an_accepted_address_changes_only_in_blanks_unicode_and_case_of_the_domain(cell):
    try:
        accepted = validate_email(cell.strip(), check_deliverability=False)
    except EmailNotValidError:
        return
    cleaned = mv.clean([cell])["clean"].iloc[0]
    if pd.isna(cleaned):
        assert not observe_syntax(cell.strip()).ok  # blanks that only Python knows
        return
    assert validate_email(cleaned, check_deliverability=False).normalized == accepted.normalized
    assert cleaned.rpartition("@")[0] == unicodedata.normalize(
        "NFC", cell.strip().rpartition("@")[0]
    )


def test_parts_of_an_address():
    parts = split_address(
        pd.Series(["Ada@Example.ORG", "a@b@C.org", "nobody", None, "@x.org"], index=list("abcde"))
    )
    assert parts["local"].fillna("-").tolist() == ["Ada", "a@b", "-", "-", ""]
    assert parts["domain"].fillna("-").tolist() == ["example.org", "c.org", "-", "-", "x.org"]
    assert parts.index.tolist() == list("abcde")
