"""What the names of a user's columns say: an address, somebody else's address, or a no to mail.

A name is folded before it is compared: "ownerEmail2", "Owner-Email 2" and "OWNER_EMAIL_2" are
" owner email 2 ". The words that are looked for are in tables (`data/column_names.toml`,
`data/refusals.toml`), a language or service a row.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable
from enum import IntEnum, StrEnum
from functools import cache
from importlib.resources import files
from itertools import filterfalse
from typing import Any, NamedTuple

LONGEST_NAME = 200  # characters of a name that are compared
CAMEL = re.compile(r"(?<=[a-zà-öø-ÿ])(?=[A-ZÀ-ÖØ-Þ])")  # between "owner" and "Email"
DIGITS = re.compile(r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")  # between "email" and "2"
JOINED_EMAIL = re.compile(r"(?<=[a-z]{3})email\b")  # in "useremail"
SIGNS = re.compile(r"[\W_]+")
# Han, kana, Thai and Hangul, also taken apart into its letters, have no blanks between words.
WITHOUT_BLANKS = re.compile(r"[\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


class NameRank(IntEnum):
    """What the name of a column says about its addresses; the lower, the likelier."""

    EMAIL = 0  # it says e-mail
    OTHER = 1  # it says nothing about it
    ROLE = 2  # it says whose address it is: not that of the row's person, or not the first one


def fold_text(text: Any) -> str:
    """A name or cell in the form in which it is compared: words in small letters, between blanks.

    >>> fold_text("ownerEmail2"), fold_text("Sähköposti-osoite"), fold_text("E-Mail")
    (' owner email 2 ', ' sahkoposti osoite ', ' e mail ')
    """
    text = str(text)[:LONGEST_NAME]
    text = CAMEL.sub(" ", text)
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(filterfalse(unicodedata.combining, decomposed))
    text = DIGITS.sub(" ", text.casefold())
    text = JOINED_EMAIL.sub(" email", text)
    text = SIGNS.sub(" ", text)
    return f" {text.strip()} "


def between_blanks(words: Iterable[str]) -> str:
    """Words in the form of `fold_text`."""
    return f" {' '.join(words)} "


def pattern_of(phrases: Iterable[str]) -> re.Pattern[str]:
    """A pattern that finds any of some phrases in a folded text; one with "*" may go on.

    >>> pattern_of(["added by", "rechnungs*"]).search(fold_text("Rechnungsadresse")) is not None
    True
    """
    parts = []
    for phrase in phrases:
        folded = fold_text(phrase).strip()
        if WITHOUT_BLANKS.search(folded):
            parts.append(re.escape(folded))
        elif phrase.endswith("*"):
            parts.append(f"(?<= ){re.escape(folded)}")
        else:
            parts.append(f"(?<= ){re.escape(folded)}(?= )")
    longest_first = sorted(parts, key=len, reverse=True)
    return re.compile("|".join(longest_first))


def phrases_of(text: str) -> list[str]:
    """The phrases of a row of a table.

    >>> phrases_of("e mail | mail")
    ['e mail', 'mail']
    """
    return [phrase.strip() for phrase in text.split("|")]


@cache
def read_table(name: str) -> dict[str, Any]:
    """A table of the package."""
    text = files("mailverdict.data").joinpath(name).read_text(encoding="utf-8")
    return tomllib.loads(text)


class NamePatterns(NamedTuple):
    """The words in the names of columns that say something about addresses."""

    email: re.Pattern[str]
    roles: re.Pattern[str]
    plain: re.Pattern[str]  # words that say nothing beside one for e-mail


@cache
def name_patterns() -> NamePatterns:
    """The patterns of the packaged table."""
    table = read_table("column_names.toml")
    email: list[str] = []
    for row in table["email"]:
        email += phrases_of(row["words"])
    roles: list[str] = []
    for row in table["role"]:
        roles += phrases_of(row["words"])
    plain = phrases_of(table["plain"]["words"])
    return NamePatterns(pattern_of(email), pattern_of(roles), pattern_of(plain))


def says_email(name: Any) -> bool:
    """Whether a name has a word for e-mail in it.

    >>> says_email("Work E-Mail"), says_email("courriel"), says_email("female")
    (True, True, False)
    """
    email = name_patterns().email
    return email.search(fold_text(name)) is not None


def rank_name(name: Any) -> NameRank:
    """What a name says about the addresses of its column.

    >>> rank_name("Email Address"), rank_name("contact"), rank_name("ownerEmail")
    (<NameRank.EMAIL: 0>, <NameRank.OTHER: 1>, <NameRank.ROLE: 2>)
    """
    patterns = name_patterns()
    folded = fold_text(name)
    others = patterns.email.sub("", folded).split()
    if patterns.roles.search(between_blanks(others)):
        return NameRank.ROLE
    if patterns.email.search(folded):
        return NameRank.EMAIL
    return NameRank.OTHER


def is_plain_email(name: Any) -> bool:
    """Whether a name says e-mail and nothing else.

    >>> is_plain_email("E-mail 1 - Value"), is_plain_email("Personal Email")
    (True, False)
    """
    patterns = name_patterns()
    folded = fold_text(name)
    if not patterns.email.search(folded):
        return False
    others = patterns.email.sub("", folded).split()
    rest = patterns.plain.sub("", between_blanks(others))
    return not rest.strip()


class Identity(StrEnum):
    """What a column says about whom a row is of."""

    IDENTIFIER = "identifier"  # a number or text of its own
    NAME = "name"  # of the person or the company


@cache
def identity_words() -> tuple[dict[str, Identity], frozenset[str]]:
    """The names of columns that say whom a row is of, folded; and the words around them."""
    table = read_table("column_names.toml")
    names = {}
    for row in table["identity"]:
        for phrase in phrases_of(row["words"]):
            names[fold_text(phrase)] = Identity(row["kind"])
    return names, frozenset(phrases_of(table["beside"]["words"]))


def identity_of(name: Any) -> Identity | None:
    """What a name says about whom a row is of; None for nothing.

    >>> str(identity_of("Record ID")), str(identity_of("firstName")), identity_of("Owner ID")
    ('identifier', 'name', None)
    """
    names, beside = identity_words()
    folded = fold_text(name)
    if folded in names:
        return names[folded]
    kept = [word for word in folded.split() if word not in beside]
    return names.get(between_blanks(kept))
