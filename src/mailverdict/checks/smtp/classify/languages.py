"""The words that mail servers use in replies, by language and tag.

They are read from the table ``data/reply_words.ini``.

The heading of the table explains the form of a word and says what each tag means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from configparser import ConfigParser
from functools import cache
from importlib.resources import files

TABLE = "reply_words.ini"
WORD_SEPARATOR = re.compile(r"\s{2,}|\n")

Language = Mapping[str, list[str]]  # the words of each tag


@cache
def load_languages() -> dict[str, Language]:
    """Read the packaged table; English is the first section.

    >>> load_languages()["English"]["samples"][0]
    'Mailbox not found'
    """
    table = ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    table.read_string(files("mailverdict.data").joinpath(TABLE).read_text(encoding="utf-8"))
    return {
        name: {tag: WORD_SEPARATOR.split(words.strip()) for tag, words in table[name].items()}
        for name in table.sections()
    }


def is_spaced(language: Language) -> bool:
    """Whether blanks separate words."""
    return "spaced" not in language


def find_words(*tags: str, spaced: bool, foreign: bool = False) -> list[str]:
    """Find words by their tags, in languages with or without blanks between words.

    `foreign`: not in English.
    """
    return [
        word
        for name, language in load_languages().items()
        if is_spaced(language) is spaced and not (foreign and name == "English")
        for tag in tags
        for word in language.get(tag, ())
    ]
