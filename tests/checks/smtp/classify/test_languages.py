"""The table of words: its tags, its patterns and its sources."""

from __future__ import annotations

import re
from importlib.resources import files

from mailverdict.checks.smtp.classify.languages import TABLE, Language, load_languages
from tests.doubles.tables import each_row

HEADING = files("mailverdict.data").joinpath(TABLE).read_text(encoding="utf-8").split("\n[")[0]
TAGS = set(re.findall(r"^# {3}(\w+) {2,}", HEADING, re.MULTILINE))
REQUIRED = {"seen", "samples", "nouns", "unknown", "closed", "full", "either"}
UNSEEN = 14  # languages; a new one needs a reply of a real server

ROWS = load_languages().items()
EACH = each_row(("name", "language"), ROWS, ids=[name for name, _ in ROWS])


def test_english_is_first() -> None:
    assert next(iter(load_languages())) == "English"


@EACH
def test_a_language_has_the_tags_that_the_heading_explains(name: str, language: Language) -> None:
    assert language.keys() <= TAGS
    assert language.keys() >= REQUIRED
    assert len(language["samples"]) == 3


@EACH
def test_every_word_is_a_pattern(name: str, language: Language) -> None:
    for tag in language.keys() - {"seen", "samples", "spaced"}:
        for word in language[tag]:
            assert re.compile(word).search("") is None, (tag, word)


def test_no_more_languages_are_unseen() -> None:
    assert len([name for name, language in ROWS if language["seen"] == ["nowhere"]]) <= UNSEEN
