"""The languages in which mail servers reply, read from the table ``data/reply_languages.toml``.

`patterns` joins the columns of the table, so that a noun of one language goes with a predicate of another. The heading
of the table explains the form of a word.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ....errors import SettingsError

__all__ = ["ReplyLanguage", "load_languages", "parse_languages"]

TABLE = "reply_languages.toml"


@dataclass(frozen=True, slots=True)
class ReplyLanguage:
    """The words of one language; the three samples are what servers send, or the standard phrase of the language."""

    name: str
    nouns: str  # a mailbox, its address or its owner
    unknown: str  # said of the noun: it does not exist
    closed: str  # said of the noun: it existed and was closed
    full: str  # said of the noun: it accepts no more
    either: str  # "or", plain words
    samples: tuple[str, str, str]  # unknown, closed, full; each complete
    seen: str = "standard phrases"  # where such replies were seen
    absent: str = ""  # whole statements that the mailbox does not exist
    none: str = ""  # "there is no", before a noun
    articles: str = ""  # words between that and the noun
    before: str = ""  # said directly before the noun: no such, unknown
    exhausted: str = ""  # whole statements that the mailbox is full
    refused: str = ""  # not permitted: the mailbox may exist
    unable: str = ""  # cannot receive mail: closed, or only now
    others: str = ""  # other subjects of an unknown: the sender, a password, authentication
    domain: str = ""  # the domain or the server, as another subject
    not_served: str = ""  # the server does not serve the domain
    error: str = ""  # what "unknown" or "wrong" is said of instead: an error, a reason, a format
    message: str = ""  # the message: it is what was blocked, not the mailbox
    listed: str = ""  # a black list
    too_many: str = ""  # a count: too many unknown recipients
    reverse_dns: str = ""  # reverse DNS
    spaced: bool = True  # words are separated by blanks


FIELDS = tuple(field.name for field in dataclasses.fields(ReplyLanguage))
REQUIRED = {field.name for field in dataclasses.fields(ReplyLanguage) if field.default is dataclasses.MISSING}
EXPECTED = {"samples": "a list of three texts", "spaced": "true or false"}
WORD_SEPARATOR = re.compile(r"\s{2,}|\n")


@cache
def load_languages() -> tuple[ReplyLanguage, ...]:
    """Read the packaged table; English is the first row.

    >>> load_languages()[0].samples[0]
    'Mailbox not found'
    """
    return parse_languages(files("mailverdict.data").joinpath(TABLE).read_text(encoding="utf-8"))


def parse_languages(text: str) -> tuple[ReplyLanguage, ...]:
    """Parse a table of languages: TOML with one ``[[language]]`` per row."""
    try:
        rows = tomllib.loads(text)["language"]
    except (tomllib.TOMLDecodeError, KeyError) as exc:
        raise SettingsError(f"{TABLE} cannot be read: {exc}") from exc
    return tuple(parse_language(row) for row in rows)


def parse_language(row: Mapping[str, Any]) -> ReplyLanguage:
    """Parse one row; in its texts, exactly two blanks separate words."""
    place = f"{TABLE}, {row.get('name', 'a row without a name')}"
    if unknown := sorted(row.keys() - set(FIELDS)):
        raise SettingsError(f"{place}: unknown field {', '.join(unknown)}; the fields are {', '.join(FIELDS)}")
    if missing := [name for name in FIELDS if name in REQUIRED and name not in row]:
        raise SettingsError(f"{place}: missing field {', '.join(missing)}")
    for name, value in row.items():
        if not is_valid(name, value):
            raise SettingsError(f"{place}: {name} = {value!r}; {EXPECTED.get(name, 'a text')} is expected")
    words = {name: WORD_SEPARATOR.sub("  ", value.strip()) for name, value in row.items() if isinstance(value, str)}
    return ReplyLanguage(**{**row, **words, "samples": tuple(row["samples"])})


def is_valid(name: str, value: object) -> bool:
    """Whether a field may have this value."""
    if name == "samples":
        return isinstance(value, list) and len(value) == 3 and all(isinstance(each, str) for each in value)
    return isinstance(value, bool if name == "spaced" else str)
