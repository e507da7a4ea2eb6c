"""The table of languages: what is read from a row, and what a damaged table says."""

from __future__ import annotations

import re

import pytest

from mailverdict.checks.smtp.classify.languages import FIELDS, ReplyLanguage, load_languages, parse_languages
from mailverdict.errors import SettingsError

REQUIRED = """
[[language]]
name = "X"
unknown = 'gone'
closed = 'closed'
full = 'full'
either = "or"
samples = ["gone", "closed", "full"]
"""
ROW = REQUIRED + "nouns = 'user'\n"


def test_the_end_of_a_line_separates_words() -> None:
    (language,) = parse_languages(REQUIRED + "nouns = '''\nuser   no one\nmail ?box\n    account\n'''")

    assert language.nouns == "user  no one  mail ?box  account"


def test_what_a_row_leaves_out_has_its_default() -> None:
    assert parse_languages(ROW) == (
        ReplyLanguage("X", "user", "gone", "closed", "full", "or", ("gone", "closed", "full")),
    )


DAMAGED = [
    ("[[language]", "reply_languages.toml cannot be read: .*", "not TOML"),
    ("", "reply_languages.toml cannot be read: 'language'", "no rows"),
    (ROW + "noun = 'x'", f"reply_languages.toml, X: unknown field noun; the fields are {', '.join(FIELDS)}", "unknown"),
    (REQUIRED, "reply_languages.toml, X: missing field nouns", "missing"),
    (
        "[[language]]\nfull = 'full'",
        ".*a row without a name: missing field name, nouns, unknown, closed, either, samples",
        "all",
    ),
    (ROW + "domain = 3", "reply_languages.toml, X: domain = 3; a text is expected", "a number"),
    (ROW + "spaced = 'no'", "reply_languages.toml, X: spaced = 'no'; true or false is expected", "a text"),
    (
        ROW.replace(', "full"]', "]"),
        r".*samples = \['gone', 'closed'\]; a list of three texts is expected",
        "two samples",
    ),
]


@pytest.mark.parametrize(("text", "message", "why"), DAMAGED, ids=[why for *_, why in DAMAGED])
def test_a_damaged_table_is_an_error(text: str, message: str, why: str) -> None:
    with pytest.raises(SettingsError) as raised:
        parse_languages(text)

    assert re.fullmatch(message, str(raised.value)), why


def test_names_of_languages_are_unique_and_english_is_first() -> None:
    names = [language.name for language in load_languages()]

    assert names[0] == "English"
    assert len(set(names)) == len(names)


def test_every_word_is_a_pattern() -> None:
    for language in load_languages():
        for field in set(FIELDS) - {"name", "samples", "seen", "spaced"}:
            for word in getattr(language, field).split("  "):
                assert is_pattern(word), (language.name, field, word)


def is_pattern(word: str) -> bool:
    try:
        return bool(re.compile(word))
    except re.error:
        return False
