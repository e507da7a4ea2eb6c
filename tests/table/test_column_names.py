"""What the names of columns say: an address, somebody else's address, or nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.table.column_names import (
    NameRank,
    fold_text,
    is_plain_email,
    rank_name,
    read_table,
    says_email,
)
from tests.doubles.tables import each_row


@each_row(
    "name",
    [
        "email",
        "E-Mail",
        "Email Address",
        "work_email",
        "Mail",
        "correo",
        "メール",
        "emails",
        "of\nwork\nE-Mail\n(or\nnone)",
        "EmailAddress",
        "eMail",
        "useremail",
        "Sähköposti",
        "SÄHKÖPOSTIOSOITE",
        "correo electrónico",
        "courriel",
        "Adresse e-mail",
        "E-Mail-Adresse",
        "e-posta",
        "E-posta adresi",
        "メールアドレス",
        "邮箱",
        "電子郵件",
        "이메일",
        "электронная почта",
        "E-mail cím",
        "E-postadress",
    ],
)
def test_names_of_columns_of_addresses(name):
    assert says_email(name)
    assert rank_name(name) is NameRank.EMAIL


@each_row("name", ["name", "mailing", "Gmail", "female", "username", "contact", "Kontakt"])
def test_names_that_say_nothing(name):
    assert not says_email(name)
    assert rank_name(name) is NameRank.OTHER


@each_row(
    "name",
    [
        "owner",
        "Contact owner",
        "ownerEmail",
        "owner_email",
        "added_by",
        "createdBy",
        "LastModifiedById",
        "Reservation Email",
        "buyer",
        "Sales Rep",
        "account manager email",
        "Billing Email",
        "Secondary Email",
        "Alternate email address",
        "E-mail 2 - Value",
        "email2",
        "Referrer",
        "Emergency contact email",
        "Invoice e-mail",
        "Email address of a parent or guardian",
        "Assistant's Email",
        "E-Mail des Betreuers",
        "Rechnungs-E-Mail",
        "angelegt von",
        "créé par",
        "correo del vendedor",
        "担当者メール",
        "邮箱（负责人）",
        "почта менеджера",
    ],
)
def test_names_of_somebody_else_or_of_a_second_address(name):
    assert rank_name(name) is NameRank.ROLE


@each_row(
    ("name", "is_plain"),
    [
        ("email", True),
        ("E-mail 1 - Value", True),
        ("Primary Email", True),
        ("Your e-mail address", True),
        ("Personal Email", False),
        ("email_verified", False),
        ("name", False),
    ],
)
def test_a_plain_name_says_email_and_nothing_else(name, is_plain):
    assert is_plain_email(name) is is_plain


@given(st.text(max_size=60) | st.integers() | st.tuples(st.text(max_size=5), st.integers()))
def test_any_name_has_a_rank_and_folding_twice_changes_nothing(name):
    assert rank_name(name) in NameRank
    folded = fold_text(name)
    assert fold_text(folded).split() == folded.split()


@pytest.mark.parametrize("kind", ["email", "role"])
def test_each_row_of_the_table_names_its_source_or_that_it_has_none(kind):
    for row in read_table("column_names.toml")[kind]:
        assert row["language"]
        assert row["source"]
        assert row["words"]
        is_by_hand = row["source"] == "written by hand for mailverdict"
        assert is_by_hand != ("seen" in row)
