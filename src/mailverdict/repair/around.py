"""The text around addresses: whether it may be removed, and the name of the repair that removes it.

Blanks and commas may cut an address. So a single word beside one is removed only if it is known not
to belong to it: `Email: ada@firm.com` and `ada@firm.com, 030 1234` are certain, but in `ada
lovelace@firm.com` the first word may be the beginning of the local part, and in `ada@firm.co uk`
the last one the end of the domain. `is_separated` looks at the text before, between and behind the
addresses that were found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .addresses import OPEN_QUOTE, OTHER_SCRIPT, Place
from .remarks import has_remark
from .words import (
    BEGINNINGS,
    DOT_WORDS,
    KNOWN,
    NOT_A_NAME,
    SENTENCE,
    SHORT_MAIL_WORDS,
    WORD,
    is_label,
    is_role_word,
)

LINK = re.compile(r"://|mailto:", re.IGNORECASE)
WRAPPING = re.compile(r"[<>()\[\]{}\"“”„«»‹›【】「」《》'`]")
OPEN_BRACKET = re.compile(r"<([^<>]*)\Z")
NUMBER = re.compile(r"\d+(?:[.\-]\d+)*[.\-]*")  # or a date
SEGMENT_END = re.compile(r"[;|\n\r\t<(\[{]")
SIGN_TYPED = ",;:"  # on the keys beside the dot
PARTED = re.compile(r"[._]")
LONGEST_BEGINNING = 4  # letters of a word before an address that may be cut off from it
LONGEST_END = 4  # letters; shorter words behind an address may be the end of its domain
LONGEST_AROUND = 2_000  # characters of a text that are looked at


def is_separated(text: str, places: Sequence[Place]) -> bool:
    """Whether the text before, between and behind the addresses may be removed."""
    end = 0
    for place in places:
        gap = text[end : place.start]
        is_and = end and gap.strip().lower() == "a"  # in Czech, Slovak and other languages
        if not is_and:
            local = place.address.partition("@")[0]
            if gap and not may_drop_before(gap, local, is_first=not end):
                return False
            if end and not may_drop_after(gap):
                return False
        end = place.end
    if end == len(text):
        return True
    words_before = WORD.findall(text[: places[0].start], 0, LONGEST_AROUND)
    return len(words_before) > 1 or may_drop_after(text[end:])


def may_drop_before(text: str, local: str, *, is_first: bool) -> bool:
    """Whether the text in front of an address is not a part that a blank or a comma cut off."""
    text = text[-LONGEST_AROUND:]
    opened = OPEN_BRACKET.search(text)
    if opened:  # what is before the bracket is certainly not a part of the address
        text = opened[1]
    words = WORD.findall(text)
    if not words:
        return True
    stripped = text.rstrip()
    has_blank = stripped != text
    last = stripped[-1]
    word = words[-1]
    if NUMBER.fullmatch(word):
        return True
    if word.lower().rstrip(".") in KNOWN or is_label(word.rstrip(".")):
        return not (is_first and may_be_beginning(text))
    if not last.isalnum() and last not in "._-'":
        # ada,lovelace@firm.com: a sign typed for a dot
        return has_blank or last not in SIGN_TYPED or len(words) > 1 or not is_lower_ascii(word)
    if last == "-" and stripped[-2:-1].isspace():
        return True
    if last == "'" and (stripped.count("'") > 1 or OPEN_QUOTE.search(stripped)):
        return True
    if "\t" in text[len(stripped) :]:
        return True
    if len(words) > 1:
        if len(words) > 2 or not text.replace(" ", "").isalpha():
            return True
        is_name = all(map(is_lower_ascii, words))
        return not is_name or not SENTENCE.isdisjoint(words)
    if last in "._-'":
        return False
    if OTHER_SCRIPT.search(word):
        return local.isascii()
    return is_name_of(local, word, has_blank=has_blank)


def may_be_beginning(text: str) -> bool:
    """Whether a known word in front of the first address may also be what a blank cut off from it.

    As in `el ena.jones@firm.com`, `neu mann@firm.com` and `office manager@firm.com`. A label with a
    colon or a capital letter is certain.
    """
    word = text.strip()
    if text not in (f"{word} ", f" {word} ") or not word.isalpha() or not is_lower_ascii(word):
        return False
    is_short = len(word) <= LONGEST_BEGINNING and word not in SHORT_MAIL_WORDS
    return is_short or word in BEGINNINGS


def is_name_of(local: str, word: str, *, has_blank: bool) -> bool:
    """Whether the only word in front of an address names whose it is.

    Otherwise it may be the beginning of its local part.
    """
    if len(word) == 1:
        return False
    if word.lower() in re.split(r"[._+\-\d]", local.lower()):
        return True
    if word[0].isupper() and word.lower() in local.lower():
        return True
    if not has_blank or word.lower() in NOT_A_NAME:
        return False
    if word.istitle() and PARTED.search(local):
        return True  # ada.lovelace@: it has all its parts
    return is_role_word(word)


def is_lower_ascii(word: str) -> bool:
    return word.isascii() and word.islower()


def may_drop_after(text: str) -> bool:
    """Whether the text behind an address is not a part of it that a blank or a comma cut off."""
    head = text[:LONGEST_AROUND].lstrip()
    sign = head[:1]
    if not sign:
        return True
    if sign == ".":
        return re.match(r"\.\s*\w", head) is None
    if not sign.isalnum():
        if sign not in SIGN_TYPED or not head[1:2].isalnum():
            return True
        head = head[1:]
    segment = SEGMENT_END.split(head, 1)[0]
    words = WORD.findall(segment)
    if len(words) != 1:
        return not words or words[0].lower() not in DOT_WORDS
    word = words[0].rstrip(".")
    if word.lower() in KNOWN or word.lower().startswith(("www.", "http")):
        return True
    if word[0].isdigit() and "." not in word:
        return True
    is_end_of_domain = len(word) <= LONGEST_END or "." in word
    return not is_end_of_domain or not is_lower_ascii(word)


def changes_of(text: str, places: Sequence[Place]) -> Iterator[str]:
    """Name the repairs that removed the text around the addresses."""
    around = text[: places[0].start] + text[places[-1].end :]
    if around.strip():
        yield name_change(around)
    if len(places) > 1:
        yield "repeated"


def name_change(around: str) -> str:
    """Name the repair that removed this text around an address."""
    if has_remark(around):
        return "remark"
    is_formula = around.startswith("=")
    if is_formula or (":" in around and LINK.search(around)):
        return "link"
    if WRAPPING.search(around):
        return "unwrapped"
    words = WORD.findall(around)
    if words and all(is_label(word.strip(".-")) for word in words):
        return "label"
    if all(word.rstrip(".").isdigit() for word in words):
        return "punctuation"
    return "words"
