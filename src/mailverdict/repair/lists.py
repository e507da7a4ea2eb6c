"""Texts in which no address could be read, rewritten.

Either there are blanks inside an address, or a part of a list is not an address.

Each of `REWRITERS` returns the text itself if there is nothing to rewrite; what it returns is read
again. `ada @ firm .com` becomes `ada@firm.com`. Of `ada@firm.com; bob@firm` the second part is
removed, since it would make the whole cell unclear. `bad_parts` names such parts to `explode`.
"""

from __future__ import annotations

import re

from ..checks.lists.root_zone import is_top_level
from .addresses import find_addresses
from .guess import BLANK_AT_SIGN
from .words import is_label, word_set

# An address with blanks beside its at sign or beside the dots of its domain, at the end of a part
# of a text.
NAME = r"[^\W_][\w\-]{0,62}"
SPACED = re.compile(
    r"(?<![\w.+\-])(?P<local>[\w.+\-]{1,64})(?P<blanks>\s{0,3})@\s{0,3}"
    rf"(?P<domain>{NAME}(?:\s{{0,3}}\.\s{{0,3}}{NAME}){{0,5}}"
    rf"\s{{0,3}}\.\s{{0,3}}(?P<end>[A-Za-z]{{2,18}}))"
    r"(?=\s{0,5}(?:\Z|[;,>)\n]))"
)
BLANKS = re.compile(r"\s+")
NETWORKS = word_set(
    "twitter x insta instagram ig facebook fb tiktok telegram tg linkedin youtube yt threads "
    "bluesky"
)
# Two addresses, or a part of one, are only read apart where one of these signs is between their at
# signs.
SIGN_BETWEEN = re.compile(r"@[^@;,|\n\r<>+.]*[;,|\n\r<>+.][^@]*@")
# A whole part of a list, in angle brackets or between two separators.
PART = re.compile(r"(?:[^;,|\n\r<>]|,(?!\s)){1,320}")
# The same domain again, behind a word that touches the first: two addresses with a sign or nothing
# between them.
TOUCHING = re.compile(
    r"(@([^\W_][\w\-]{0,62}(?:\.[\w\-]{1,63}){1,5}))[+\-]?(?=[^\W_][\w.+\-]{0,63}@\2(?![\w.\-]))",
    re.IGNORECASE,
)
PLUS_BETWEEN = re.compile(
    r"(@[^\W_][\w.\-]{0,200}\.[A-Za-z]{2,18})\s?\+\s?(?=[^\W_][\w.+\-]{0,63}@)"
)


def join_blanks(text: str) -> str:
    """Remove the blanks beside the at sign and the dots of a domain.

    The domain ends in a top-level domain.
    """
    if len(text.split(None, 1)) == 1 or not BLANK_AT_SIGN.search(text):
        return text
    return SPACED.sub(join_spaced, text)


def join_spaced(found: re.Match[str]) -> str:
    domain = BLANKS.sub("", found["domain"])
    end = found["end"]
    if not is_top_level(end):
        return found[0]
    if end[0].isupper() and not domain.isupper():
        return found[0]  # it begins a sentence
    if len(end) > 2 and is_top_level(domain.split(".")[-2]):
        return found[0]  # firm.com .com
    if found["blanks"] and not may_be_alone(found):
        return found[0]
    return f"{found['local']}@{domain}"


def may_be_alone(found: re.Match[str]) -> bool:
    """Whether the word before a blank and an at sign is a local part.

    Otherwise it is the end of a name, or the name of a network.
    """
    if found["local"].lower() in NETWORKS:
        return False
    before = found.string[: found.start()].rstrip(" \t")
    words = before.split()
    return not words or before[-1] in ":;,<(\n" or is_label(words[-1])


def split_touching(text: str) -> str:
    """Write a separator between two addresses of the same domain.

    Between them is a plus sign or nothing.
    """
    text = PLUS_BETWEEN.sub(r"\1; ", text)
    return TOUCHING.sub(r"\1; ", text)


def drop_bad_parts(text: str) -> str:
    """Remove the parts of a list that hold an at sign and no address, if another part holds one."""
    if not SIGN_BETWEEN.search(text):
        return text
    text = split_touching(join_blanks(text))
    return PART.sub(lambda part: " " if is_bad_part(part[0]) else part[0], text)


def bad_parts(text: str) -> tuple[str, ...]:
    """The parts of a list that hold an at sign and no address.

    >>> bad_parts("ada@firm.com; bob@firm; cy@firm.com")
    ('bob@firm',)
    """
    parts = PART.findall(split_touching(join_blanks(text)))
    return tuple(part.strip() for part in parts if is_bad_part(part.strip()))


def is_bad_part(part: str) -> bool:
    if "@" not in part:
        return False
    places, is_complete = find_addresses(part)
    return not places and not is_complete


REWRITERS = (("joined", join_blanks), ("part", drop_bad_parts))
