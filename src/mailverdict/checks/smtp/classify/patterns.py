"""The form in which texts are searched.

Letters are folded, and words in many languages become one pattern.

A pattern may hold a mark in place of the words of many languages: `mark_words` and `join_column`
write marks, and `compile_pattern` replaces them.
"""

from __future__ import annotations

import re
import unicodedata
from contextlib import suppress
from functools import cache
from typing import Literal, NamedTuple

from .languages import find_words


class ReplyText(NamedTuple):
    """A reply's text in the two forms that rules search."""

    # Lower case, without accents, addresses masked; holds names of DNS lists and links.
    unmasked: str
    # The same with IP addresses, hosts and links masked, and misleading clauses replaced.
    masked: str


APOSTROPHES = str.maketrans("\u2018\u2019\u00b4`", "''''")
# One form for letters that Arabic and Persian keyboards write differently; characters without width
# are removed.
SAME_LETTERS = APOSTROPHES | str.maketrans(
    "یکى", "يكي", "\u200b\u200c\u200d\u200e\u200f\ufeff\u00ad"
)


def fold(text: str) -> str:
    """Lower case without accents, with one kind of apostrophe."""
    lower = text.casefold()
    if lower.isascii():  # the usual case; texts rarely repeat, so it pays
        return lower.translate(APOSTROPHES)
    decomposed = unicodedata.normalize("NFKD", undo_mojibake(text).casefold())
    decomposed = decomposed.casefold()  # again: mathematical letters have become plain ones
    letters = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    return letters.translate(SAME_LETTERS)


def undo_mojibake(text: str) -> str:
    """Undo the reading of UTF-8 as Latin-1 or Windows-1252, which some servers send."""
    for encoding in ("latin-1", "cp1252"):
        with suppress(UnicodeError):
            return text.encode(encoding).decode("utf-8")
    return text


def fold_letters(pattern: str) -> str:
    """Fold the letters of a pattern as `fold` folds those of a text.

    A Latin letter may also be a question mark.

    Servers that send ASCII only replace other letters by question marks: "Nieznany u?ytkownik".

    >>> fold_letters("u[żz]ytkownik, trouvé")
    'u[z?z]ytkownik, trouv[e?]'
    """
    if pattern.isascii():
        return pattern
    folded = ""
    in_class = False
    for character in pattern:
        if character.isascii():
            in_class = character == "[" or (in_class and character != "]")
            folded += character
            continue
        letter = fold(character)
        if len(letter) == 1 and unicodedata.name(character).startswith("LATIN"):
            letter = f"{letter}?" if in_class else f"[{letter}?]"
        folded += letter
    return folded


def phrases(text: str) -> str:
    """Join alternatives that are separated by two or more blanks.

    They are joined by initial, which is a third faster to search.

    >>> phrases("unknown  not known  not found")
    '(?:(?:u(?:nknown)|n(?:ot known|ot found)))'
    """
    by_initial: dict[tuple[str, str], list[str]] = {}
    for phrase in re.split(r"\s{2,}", text.strip()):
        found = INITIAL.fullmatch(phrase)
        assert found is not None
        boundary, initial, rest = found.groups(default="")
        by_initial.setdefault((boundary, initial), []).append(rest)
    by_boundary: dict[str, list[str]] = {}
    for (boundary, initial), rests in by_initial.items():
        group = f"{initial}(?:{'|'.join(rests)})"
        by_boundary.setdefault(boundary, []).append(group)
    alternatives = []
    for boundary, groups in by_boundary.items():
        alternatives.append(f"{boundary}(?:{'|'.join(groups)})")
    return f"(?:{'|'.join(alternatives)})"


INITIAL = re.compile(r"(\\b)?([^\W\d_](?![?*+{]))?(.*)", re.DOTALL)


# Most replies are in ASCII, and most words of other languages need other letters. So a pattern
# holds a mark in place of such words, and is compiled twice: for texts in ASCII without the words
# that need other letters, for others with all.
Letters = Literal["ascii", "any"]
MARK = re.compile("⟦([^⟦⟧]*)⟧")
NEVER = "(?!)"  # found in no text
LETTER_CLASS = re.compile(r"\[[^]]*[a-z][^]]*\]")  # one of its letters is in ASCII


def mark_words(words: str) -> str:
    """Mark alternatives that are separated by two or more blanks; `compile_pattern` joins them."""
    return "⟦" + "¦".join(re.split(r"\s{2,}", words.strip())) + "⟧"


@cache
def compile_pattern(pattern: str, letters: Letters) -> re.Pattern[str]:
    """Compile a pattern for texts of these letters; done when such a text is first searched."""
    while MARK.search(pattern):  # a mark may hold marks
        pattern = MARK.sub(lambda match: join_words(match[1], letters), pattern)
    return re.compile(pattern)


def find_letters(text: str) -> Letters:
    """Find which form of a pattern is searched in a text."""
    return "ascii" if text.isascii() else "any"


@cache
def join_words(words: str, letters: Letters) -> str:
    """Join the words of a mark."""
    kept = []
    for word in map(fold_letters, words.split("¦")):
        is_ascii = NEVER not in word and LETTER_CLASS.sub("", word).isascii()
        if is_ascii or letters == "any":
            kept.append(word)
    if not kept:
        return NEVER
    return phrases("  ".join(kept))


@cache
def join_column(tag: str, *, spaced: bool = True, foreign: bool = False) -> str:
    """Mark the words of one tag in all languages; `foreign`: not in English."""
    return mark_words("  ".join(find_words(tag, spaced=spaced, foreign=foreign)))
