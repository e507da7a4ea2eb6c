"""The encoding of a reply that is not UTF-8, found by the words of mail servers.

A reply is too short for statistics of letters: charset-normalizer is wrong for two in five. But it
says one of few things. So its octets are decoded with each code page in which servers reply, and
the code page is taken whose text has the most letters in known words. Only letters outside ASCII
count, since ASCII is the same in all of them.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from functools import cache, lru_cache

from .languages import find_words
from .patterns import phrases

MAX_OCTETS = 512  # that are searched for words; the reason of a refusal is in its first sentence
DEFAULT = "latin-1"
# Latin-1 stands first, and the first of equally good ones counts: nothing changes without evidence.
CODE_PAGES = (
    DEFAULT,
    "cp1251", "koi8_u", "iso8859_5", "cp866",  # Cyrillic
    "cp1250", "iso8859_2",  # Central Europe
    "cp932", "euc_jp", "gb18030",  # Japan; GB 18030 has its kana too, and is that of China
    "big5", "cp949",  # Taiwan, Korea
    "cp1253", "iso8859_7", "cp1254", "cp1255", "cp1256",  # Greek (two), Turkish, Hebrew, Arabic
    "cp1257", "cp874",  # Baltic, Thai
)  # fmt: skip
# Frequent beside the words of the table: "try again later", "please", "was", "is not".
OTHER_WORDS = """
    позже  позднее  повторите  пізніше  спробуйте  по-късно  později  prosím  není  później
    został[aoy]?  neskôr  vaše  skúste  lütfen  gerçekleştirilemedi  később  újra  försök
    稍后  稍後  重试  重試  しばらく  再送
    나중에  다시  αργότερα  δοκιμάστε  לאחר מכן  لاحقا
"""
NOT_TEXT = re.compile(r"[\x80-\x9f\ue000-\uf8ff]")  # control characters and private ones
ENDING = re.compile(r"\\w[*+](?=[|)])")  # "any letters" at the end of a word
FRACTION = re.compile("[ª²³¹º¼½¾]")  # in Latin-1, where other code pages have letters
TAGS = (
    "nouns", "unknown", "closed", "full", "before", "absent", "exhausted", "refused", "others",
    "domain", "error", "message", "listed", "too_many", "reverse_dns",
)  # fmt: skip


@lru_cache(maxsize=1024)
def find_encoding(octets: bytes) -> str:
    """Find the encoding of a text that is not valid UTF-8; Latin-1 if no other gives known words.

    >>> find_encoding("Пользователь не найден".encode("koi8-r"))
    'koi8_u'
    >>> find_encoding("Empfänger unbekannt".encode("latin-1"))
    'latin-1'
    """
    if b"\x1b$" in octets:
        return "iso2022_jp" if decode_start(octets, "iso2022_jp") else DEFAULT
    found: dict[
        str, str
    ] = {}  # the encoding of each text, since several code pages may give the same
    for encoding in CODE_PAGES:
        found.setdefault(decode_start(octets, encoding), encoding)
    known = {text: find_known_words(text) for text in found if text}
    scores = {text: sum(map(count_foreign, words)) for text, words in known.items()}
    most = max(scores.values(), default=0)
    best = [text for text in scores if most and scores[text] == most]
    is_clear = bool(best) and all(known[text] == known[best[0]] for text in best)
    return found[best[0]] if is_clear else DEFAULT


def decode_start(octets: bytes, encoding: str) -> str:
    """Decode the first octets; empty if they are not text in this encoding."""
    try:
        # May end within a letter.
        text = codecs.getincrementaldecoder(encoding)().decode(octets[:MAX_OCTETS])
    except UnicodeDecodeError:
        return ""
    return "" if encoding != DEFAULT and NOT_TEXT.search(text) else text


def find_known_words(text: str) -> list[str]:
    """Find the words of mail servers in a text, as they are written in the table of languages."""
    normal = unicodedata.normalize("NFC", text.casefold())
    words = (match[0] for match in known_words().finditer(normal))
    return [
        word for word in words if len(word) > 1 and not word.isascii() and not FRACTION.search(word)
    ]


def count_foreign(word: str) -> int:
    """Count the characters outside ASCII."""
    return sum(not character.isascii() for character in word)


@cache
def known_words() -> re.Pattern[str]:
    """The words of all languages but English with their accents.

    They are compiled when the first such reply arrives.

    Their endings are left out, since an ending of any letters fits every code page.
    """
    spaced = phrases("  ".join(find_words(*TAGS, spaced=True, foreign=True)))
    unspaced = phrases("  ".join(find_words(*TAGS, spaced=False, foreign=True)))
    return re.compile(rf"\b{ENDING.sub('', spaced)}|{unspaced}|{phrases(OTHER_WORDS)}")
