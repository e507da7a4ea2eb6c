"""The code page of Latin text: that in which its words look most like those of a language.

A word is judged in each code page. Beside a letter stands a letter, and no capital follows a small
letter: "Päivi" of Windows-1252 is "P‰ivi" in Mac Roman, and "Łódź" of Windows-1250 is "£ódŸ" in
Windows-1252. Where all code pages have letters, their frequency in the languages of a code page
decides: "Győr" is "Gyõr" in Windows-1252, and no language of Western Europe has ö, ű and ő as often
as Hungarian. The scores are logarithms of probabilities.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache

# How many in a thousand letters beyond ASCII are this one. From the word frequencies of wordfreq
# 3.1.1 (data of 2022), with ş and ţ for the letters with a comma, which these code pages do not
# have. ß is counted as ss there, and Estonian is not in it: both are estimates.
WESTERN = {
    "Catalan": "é233 ó195 à144 í112 è111 ò89 ç45 ú42 ï13 ü10 á3",
    "Danish and Norwegian": "å530 ø268 æ195 é7 ö3 ä3 ü3",
    "Dutch": "é387 ë374 ï78 è39 ó33 ü18 ö14 á12 ç7 í7 à6 ê4",
    "Estonian": "ä400 õ250 ü230 ö110 š5 ž5",
    "Finnish": "ä912 ö87 å5",
    "French": "é602 à147 è99 ê55 ç39 ô15 â9 î9 ù9 û7 ë5 œ4 ï2 ü2",
    "German": "ü420 ä300 ö170 ß100 é3",
    "Icelandic": "ð280 í163 á155 þ107 ó61 æ60 ö56 ú53 é50 ý15",
    "Italian": "è384 à254 ù128 ò90 é69 ì67",
    "Portuguese": "ã251 é170 ç153 á124 í76 ê63 ó60 ú29 õ29 à23 â10 ô8",
    "Spanish": "é281 ó281 í241 á197 ñ84 ú57 ü5",
    "Swedish": "ä429 å333 ö235 é5 ü3",
}
CENTRAL = {
    "Croatian and Serbian": "š328 č252 ž193 ć160 đ65",
    "Czech": "í215 á166 ě127 ž88 ř81 é75 č68 š63 ý61 ů34 ú9 ň4 ď3 ť3 ó2",
    "German": WESTERN["German"],
    "Hungarian": "é320 á284 ö96 ó81 ő75 ü49 í49 ú30 ű16",
    "Polish": "ł213 ę189 ż143 ą129 ó112 ś105 ć75 ń23 ź10",
    "Romanian": "ă422 ş179 î173 ţ148 â78",
    "Slovak": "á183 ž103 č100 ý97 í97 š86 é75 ú73 ť68 ľ42 ô23 ď18 ň14 ó11 ä9 ŕ2 ĺ2",
    "Slovene": "č464 š329 ž206",
}
BALTIC = {
    "Estonian": WESTERN["Estonian"],
    "Latvian": "ā385 ī181 ē164 š93 ū56 ņ43 ļ34 ž17 ķ11 ģ9 č7",
    "Lithuanian": "ė210 ų176 š163 ž121 ą102 į85 ū71 č48 ę24",
}
TURKISH = {"German": WESTERN["German"], "Turkish": "ı404 ü173 ş145 ç114 ğ88 ö74 i̇40 â3 î2 û2"}
# The languages of each code page, and how likely it is before anything is read. Excel saves the
# first one in the West.
PAGES = {
    "cp1252": (WESTERN, 0.0),
    "cp1250": (CENTRAL, -2.0),
    "cp1254": (TURKISH, -4.0),
    "cp1257": (BALTIC, -4.0),
    "mac_roman": (WESTERN, -2.0),
    "iso8859_2": (CENTRAL, -3.0),
}
COUNTS = re.compile(r"(\D+)(\d+) ?")
RUNS = re.compile(rb"[A-Za-z\x80-\xff]+")
MOST_WORDS = 1_000  # different ones that are looked at
LONGEST_WORD = 60  # octets of it
OPENING = "„“‘‚«‹¿¡(–—"
CLOSING = "”“’»›…™®ªº°–—\u00a0"
WITHIN = "’‘·\u00ad\u00a0–—…"  # as in aujourd’hui, Köln–Bonn
# As in D’Arcy, Queen’s.
APOSTROPHE = re.compile(r"\W?\w{1,2}’\w|.*\w’(?:s|t|ll|re|ve)\W?", re.DOTALL)
ALONE = OPENING + CLOSING + "€£§•·½²©"
SIGN = -1.0  # the score of one of these in its place
RARE_SIGN = -4.0
SIGN_WITHIN = -5.0
NO_LETTER = -8.0  # within a word
CAPITAL_WITHIN = -7.0
FOREIGN_LETTER = 0.0005  # the probability of one that a language does not have
OTHER_LANGUAGE = math.log(0.1)  # for a word of another language than that of the list
DOUBTFUL = 5.0  # a code page whose score is that near could be the right one, too


@dataclass(frozen=True)
class Decoding:
    """The words of a file in a code page."""

    encoding: str
    words: tuple[str, ...]
    score: float


def rank_pages(sample: bytes, pages: list[str]) -> list[Decoding]:
    """The code pages of a text, the most probable first; of those that read alike only one."""
    runs = [run[:LONGEST_WORD] for run in RUNS.findall(sample) if not run.isascii()]
    distinct = dict.fromkeys(runs)
    # A file that was joined from two has words in UTF-8, which say nothing about the others.
    words = [word for word in distinct if not decodes(word, "utf-8")]
    readings: dict[tuple[str, ...], Decoding] = {}
    for page in pages:
        texts = tuple(word.decode(page, "replace") for word in words[:MOST_WORDS])
        reading = Decoding(page, texts, score_page(page, texts))
        known = readings.get(texts)
        if known is None or known.score < reading.score:
            readings[texts] = reading
    return sorted(readings.values(), key=lambda reading: -reading.score)


def score_page(page: str, words: tuple[str, ...]) -> float:
    """How likely some words are in a code page, in that of its languages that fits best."""
    languages, before = PAGES[page]
    shapes = 0.0
    spellings: list[list[str]] = []  # the letters beyond ASCII of each word
    for word in words:
        shape, letters = score_shape(word)
        shapes += shape
        spellings.append(letters)
    models = [frequencies(language) for language in languages.values()]
    totals: dict[str, float] = defaultdict(float)
    for model in models:
        for letter, probability in model.items():
            totals[letter] += probability
    any_language = {letter: total / len(models) for letter, total in totals.items()}
    foreign = []
    for letters in spellings:
        score = score_letters(letters, any_language)
        foreign.append(score + OTHER_LANGUAGE)
    best = -math.inf
    for model in models:
        score = 0.0
        for letters, other in zip(spellings, foreign, strict=True):
            score += max(score_letters(letters, model), other)
        best = max(best, score)
    return before + shapes + best


def score_letters(letters: list[str], model: dict[str, float]) -> float:
    return sum(math.log(model.get(letter, FOREIGN_LETTER)) for letter in letters)


@cache
def frequencies(counts: str) -> dict[str, float]:
    """The probability of each letter; names have rare ones more often than texts."""
    thousands = {}
    for letter, count in COUNTS.findall(counts):
        thousands[letter] = int(count)
    total = sum(thousands.values())
    rare = 0.1 / len(thousands)
    return {letter: 0.9 * count / total + rare for letter, count in thousands.items()}


def score_shape(word: str) -> tuple[float, list[str]]:
    """How likely the shape of a word is, and its letters beyond ASCII, small."""
    inner = word.strip(OPENING + CLOSING)
    if not any(map(is_letter, inner)):
        return score_signs(word, ALONE, RARE_SIGN), []
    start = word.index(inner)
    score = score_signs(word[:start], OPENING, NO_LETTER)
    score += score_signs(word[start + len(inner) :], CLOSING, NO_LETTER)
    if APOSTROPHE.match(inner):
        inner = inner.replace("’", "'", 1)
        score += SIGN
    letters = []
    previous = ""
    for character in inner:
        if character == "'":
            pass
        elif not is_letter(character):
            score += SIGN_WITHIN if character in WITHIN else NO_LETTER
        elif previous.islower() and character.isupper() and not (previous + character).isascii():
            score += CAPITAL_WITHIN
        elif not character.isascii():
            letters.append(character.lower())
        previous = character
    return score, letters


def score_signs(text: str, usual: str, otherwise: float) -> float:
    return sum(SIGN if sign in usual else otherwise for sign in text)


def decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def is_letter(character: str) -> bool:
    return character.isalpha() and character not in "ªº"
