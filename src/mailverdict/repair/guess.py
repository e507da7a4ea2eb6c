"""Guesses of what was meant.

The text has no address that is certain, or an address that looks odd.

A guess is only ever a suggestion. `guess_address` reads a text without a certain address,
`guess_plain` an address that is well-formed but has signs that hardly belong to it.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from ..checks.lists.mailboxes import counts_odd_dots
from ..checks.lists.suggestions import suggest_domain
from ..checks.syntax.address import (
    DOT_ATOM,
    SHORTEST_LOCAL,
    canonical_form,
    is_well_formed,
)
from ..checks.syntax.faults import MAX_OCTETS
from ..checks.syntax.lenient import ODD_DOTS, has_odd_dots_in_quotes
from .words import AT_WORDS, DOT_WORDS, LABELS, is_label, word_set
from .wrapped import unwrap_address

LONGEST_GUESS = 320  # characters of a text for which an address is guessed
MAX_SIGNS = 3  # at signs; more are not one that was typed twice

# --- texts without a certain address --------------------------------------------------------------

AT, DOT = "|".join(sorted(AT_WORDS)), "|".join(sorted(DOT_WORDS))
# A word for a sign: in brackets, between two equal signs, or alone. A lone (a) is the sign in
# brackets only.
AT_GUESS = re.compile(
    rf"\s{{0,5}}[\[({{<]\s{{0,3}}(?:a|{AT})\s{{0,3}}[\])}}>]\s{{0,5}}|\s{{1,5}}(?:{AT})\s{{1,5}}"
    rf"|\s{{0,5}}([\-_*|/'\"#])\s?(?:{AT})\s?\1\s{{0,5}}|(?<=\w)[©®](?=\w)",
    re.IGNORECASE,
)
DOT_GUESS = re.compile(
    rf"\s{{1,5}}(?:{DOT})\s{{1,5}}|\s{{0,5}}([\-_*|/'\"#])\s?(?:{DOT})\s?\1\s{{0,5}}"
    rf"|\s{{0,5}}[\[({{<]\s{{0,3}}(?:{DOT}|\.)\s{{0,3}}[\])}}>]\s{{0,5}}",
    re.IGNORECASE,
)
ENDS = "com|net|org|de|fr|it|es|nl|pl|ch|at|uk|ru|cz"
BLANK_FOR_DOT = re.compile(rf"(@[\w.\-]{{1,200}})\s({ENDS})\Z", re.IGNORECASE)
SIGN_FOR_DOT = re.compile(rf"[;:/>_](?=(?:{ENDS})\Z)(?<=\w[;:/>_])", re.IGNORECASE)
AT_FOR_DOT = re.compile(rf"(@[\w\-]{{1,63}})@(?=(?:{ENDS})\Z)", re.IGNORECASE)
LEADING_LABEL = re.compile(
    r"(?:e-?mails?|mail|work|home|correo|courriel)\s?[:=\-]\s{0,5}", re.IGNORECASE
)
SIGN_OF_LABEL = re.compile(r"[:=\-]")
LEADING_LINK = re.compile(r"(?:https?://(?:www\.)?|mailto:)(?:mailto:)?", re.IGNORECASE)
LINK_IN_DOMAIN = re.compile(r"@\s?https?://(?:www\.)?", re.IGNORECASE)
IN_ANGLE_BRACKETS = re.compile(r"[^<>@]+<(?P<address>[^<>@][^<>]{2,253})>[^<>@]*\Z")
# RFC 5322 section 3.2.2.
COMMENT = re.compile(r"(?<=\w)\([^()@]{1,60}\)(?=@)|(?<=@)\([^()@]{1,60}\)(?=\w)")
SPACED_OUT = re.compile(r"\S(?: \S){4,}")
SAME_DOMAIN = re.compile(r"(@[\w.\-]{3,253})\1\Z", re.IGNORECASE)
BLANK = re.compile(r"\s")
SIGNS_TWICE = re.compile("@{2,}")
DOTS_TWICE = re.compile(r"\.{2,}")
SIGN_WITH_BLANKS = re.compile(r"\s{0,5}([@.])\s{0,5}")
BLANK_AT_SIGN = re.compile(r"[@.](?:\s|(?<=\s.))")
AROUND = " ,;:.<>()[]\"'"
AROUND_PART = AROUND + "/\\"
BUT_DOTS = AROUND_PART.replace(".", "")
QUOTED_END = re.compile(r'("[^"@]*")@')
PROVIDER_ENDS = {
    "gmail": "com", "googlemail": "com", "hotmail": "com", "yahoo": "com", "outlook": "com",
    "icloud": "com", "live": "com", "aol": "com", "msn": "com", "protonmail": "com",
    "gmx": "de", "web": "de", "t-online": "de", "freenet": "de",
    "orange": "fr", "wanadoo": "fr", "laposte": "net", "libero": "it", "tiscali": "it",
    "virgilio": "it", "interia": "pl", "mail": "ru", "yandex": "ru", "seznam": "cz", "qq": "com",
}  # fmt: skip
PROVIDERS = (
    *(f"{label}.{end}" for label, end in PROVIDER_ENDS.items()),
    "yahoo.co.uk",
    "wp.pl",
    "ukr.net",
    "abv.bg",
)
LETTERS = re.compile(r"[^\W_]+")
NO_LETTER = re.compile(r"[^a-z0-9]")
UNDOTTED = {NO_LETTER.sub("", domain): domain for domain in PROVIDERS}
# Names of providers that are found without a sign before them: longer than the end of another word,
# and no word.
GLUED = (
    "gmail", "googlemail", "hotmail", "yahoo", "outlook", "icloud", "protonmail", "t-online",
    "freenet", "yandex", "seznam", "wanadoo", "libero", "tiscali", "virgilio", "interia",
)  # fmt: skip
HOSTS = word_set(
    "www mail webmail login signin account accounts smtp imap pop3 mobile web community digilander"
)
# RFC 6761 section 6.4; Salesforce writes it behind the addresses of a sandbox.
UNUSABLE = ".invalid"
SIGNS_BEFORE_PROVIDER = " .!$&*%§\"'^~=+,;|-2"
# The keys of a Russian keyboard, and what they type on an American one.
LAYOUT = str.maketrans(
    "йцукенгшщзфывапролдячсмитью" + "йцукенгшщзфывапролдячсмитью".upper(),
    "qwertyuiopasdfghjklzxcvbnm." + "QWERTYUIOPASDFGHJKLZXCVBNM.",
)
CYRILLIC_KEYS = re.compile(r"[а-яА-Я0-9._\-]{2,64}[@\"][а-яА-Я0-9.\-]{5,64}")
# A sign @ with something before it, and the end of a domain name somewhere behind it; or an address
# literal.
MAY_HOLD = re.compile(
    r"@(?:(?<=\w@)|(?<=\w[^\w@]@)|(?<=\w[^\w@]{2}@)|(?<=\w[^\w@]{3}@))"
    r"(?:[^@]{0,150}?[\w)\]>\"'*]\s?\.\s?[^\W\d_]{2}|\[(?:IPv6:|\d))"
)
ASCII_AT_WORDS = sorted(word for word in AT_WORDS if word.isascii())
# Each ASCII text for which `guess_address` has an answer fits this, or has one of the signs that
# frames/clean.py looks for.
MAY_BE_GUESSED = (
    rf"(?:^|[\s_*|/'-])(?:{'|'.join(ASCII_AT_WORDS)})(?:[\s_*|/'-]|$)"
    rf"|(?:{'|'.join(re.escape(domain) for domain in PROVIDERS)})[ ,;:.)'>]*$"
)


def guess_address(text: str) -> str | None:
    """The address that was probably meant; None if that is not clear.

    >>> [guess_address(text) for text in ("ada@@gmail,com", "ada.gmail.com", "Ada <ada@gmail>")]
    ['ada@gmail.com', 'ada@gmail.com', 'ada@gmail.com']
    """
    if (
        len(text) > LONGEST_GUESS
        or text.count("@") > MAX_SIGNS
        or text.startswith("@")
        or text.endswith("@")
    ):
        return None
    quoted = QUOTED_END.search(text) if '"@' in text else None
    if quoted and has_odd_dots_in_quotes(quoted[1]):
        return None  # the address with fewer dots is another person's
    text = unquote(unquote(text)) if "%25" in text else text
    if "<" in text and (wrapped := IN_ANGLE_BRACKETS.match(text)):
        return guess_address(wrapped["address"])
    guess = (
        LEADING_LINK.sub("", text, count=1) if ":" in text and LEADING_LINK.match(text) else text
    )
    if "@" not in guess:
        guess = insert_at_sign(DOT_GUESS.sub(".", AT_GUESS.sub("@", guess)))
    guess = guess.rstrip(AROUND).lstrip(AROUND.replace(".", ""))
    if guess.count("@") > 1:
        guess = SIGNS_TWICE.sub("@", guess).rstrip(AROUND)
        guess = SAME_DOMAIN.sub(r"\1", AT_FOR_DOT.sub(r"\1.", guess))
    if guess.count("@") != 1:
        return guess_layout(text)
    if guess.split(None, 1) != [guess]:
        guess = remove_blanks(guess)
    if "/" in guess or "(" in guess:
        guess = COMMENT.sub("", LINK_IN_DOMAIN.sub("@", guess))
    local, _, domain = guess.partition("@")
    return guess_parts(local, domain) or guess_layout(text)


def remove_blanks(guess: str) -> str:
    if SPACED_OUT.fullmatch(guess):
        return BLANK.sub("", guess)
    if SIGN_OF_LABEL.search(guess):
        guess = LEADING_LABEL.sub("", guess)
    if not DOT_WORDS.isdisjoint(LETTERS.findall(guess.lower())):
        guess = DOT_GUESS.sub(".", guess)
    if BLANK_AT_SIGN.search(guess):
        guess = SIGN_WITH_BLANKS.sub(r"\1", guess)
    return BLANK_FOR_DOT.sub(r"\1.\2", guess)


def guess_parts(local: str, domain: str) -> str | None:
    """An address of two parts with typing errors; None if it is not well-formed."""
    if len(local) + len(domain) >= LONGEST_GUESS:
        return None
    meant = guess_domain(domain)
    if meant is None:
        return None
    guessed = guess_local(local)
    if guessed is None:
        return None
    if meant.counts_odd_dots and ODD_DOTS.search(local.strip(BUT_DOTS).replace(",", ".")):
        return None  # the address with fewer dots is another person's
    address = f"{guessed}@{meant.name}"
    if not meant.is_plain or not guessed.isascii():
        return canonical_form(address) if is_well_formed(address) else None
    if len(address) > MAX_OCTETS or not DOT_ATOM.fullmatch(guessed):
        return None
    return address


class GuessedDomain(NamedTuple):
    """A well-formed domain that was probably meant."""

    name: str  # in lower case
    is_plain: bool  # in ASCII, and no A-label
    counts_odd_dots: bool  # for it, two dots are not one that was typed twice


@lru_cache(maxsize=4096)  # a column has many cells with few domains
def guess_domain(written: str) -> GuessedDomain | None:
    """The domain that was probably meant; None if it is not well-formed."""
    domain = SIGN_FOR_DOT.sub(".", written.strip(AROUND_PART)).replace(",", ".")
    domain = DOTS_TWICE.sub(".", domain)
    domain = domain.strip(".").lower().removesuffix(UNUSABLE)
    if domain in PROVIDER_ENDS:
        domain = f"{domain}.{PROVIDER_ENDS[domain]}"
    domain = UNDOTTED.get(NO_LETTER.sub("", domain), domain)
    if not is_well_formed(f"{SHORTEST_LOCAL}@{domain}"):
        return None
    name = suggest_domain(domain) or domain
    is_plain = name.isascii() and "--" not in name
    return GuessedDomain(name, is_plain, counts_odd_dots(name))


def guess_local(written: str) -> str | None:
    """The local part that was probably meant; None if it cannot be told."""
    local = written.lstrip(AROUND)
    if "{" in local or "..." in local:  # ad...@firm.com: letters are hidden
        return None
    local = local.rstrip(AROUND_PART).replace(",", ".")
    if " " in local:
        return None
    if ".." in local:
        return DOTS_TWICE.sub(".", local)
    return local


def insert_at_sign(text: str) -> str:
    """Write an at sign for ``#``, or before a well-known provider, if there is none."""
    if "@" in text:
        return text
    if text.count("#") == 1 and not text.startswith("#"):
        return text.replace("#", "@")
    bare = text.rstrip(AROUND)
    if not bare.lower().endswith(PROVIDERS):
        return text
    for provider in PROVIDERS:
        if bare.lower().endswith(provider):
            rest = bare[: -len(provider)]
            local = rest.rstrip(SIGNS_BEFORE_PROVIDER)
            is_separate = local != rest or (
                provider.partition(".")[0] in GLUED and rest[-1:] not in ("q", "Q")
            )
            return f"{local}@{provider}" if is_separate and is_name(local) else text
    return text


def is_name(local: str) -> bool:
    """Whether a text before a provider's domain may be a local part.

    It is none if it is part of a host name or link.
    """
    return (
        len(local) > 2
        and local.lower() not in HOSTS
        and not re.search(r"[/:]", local)
        and local[-1].isalnum()
    )


def guess_layout(text: str) -> str | None:
    """The address that was typed on a keyboard with the Russian layout.

    Its domain must be a well-known provider's.

    >>> guess_layout("зуек@пьфшдюсщь")
    'petr@gmail.com'
    """
    if not CYRILLIC_KEYS.fullmatch(text):
        return None
    typed = text.translate(LAYOUT).replace('"', "@")
    return typed if typed.lower().endswith(tuple(f"@{domain}" for domain in PROVIDERS)) else None


def may_hold_address(text: str) -> bool:
    """Whether a person should look at a text in which no address can be read."""
    return "@" in text and MAY_HOLD.search(text[:100_000]) is not None


# --- addresses that look odd ----------------------------------------------------------------------

PLAIN_SIGNS = str.maketrans("‘’´‐‑–—−·•", "'''-----..")
PREFIX = re.compile(
    r"(?:['“”„‘’‚«»‹›]{1,3}=?|=|www\.|(?:%20|%09|%0[AaDd]){1,5}"
    r"|(?:e-?mail|mail|mailto|e-mail-adresse|correo|courriel|smtp)=|mailto%3A"
    r"|ï»¿|\w{0,20}：|【\w{1,20}】|(?:[\w.\-]{1,60}\|){1,5})(.{3,254})",
    re.IGNORECASE,
)
TOUCHING_LABEL = re.compile(r"([^\x00-\x7f]{1,12})([!-~]{3,254})")
# Letters of other scripts that look like Latin ones, and dotted and dotless i.
LOOK_ALIKES = str.maketrans(
    "аеіјорсухѕһԁԛԝАВЕЅІЈКМНОРСТУХԌαορνιАΑΒΕΖΗΙΚΜΝΟΡΤΥΧıİ",
    "aeijopcyxshdqwABESIJKMHOPCTYXGaopviAABEZHIKMNOPTYXiI",
)
DECODED_LETTER = re.compile("[ÃÂâÐÑ][\u0080-\u00ff\u0100-\u2122]")
PARTS = re.compile("[@.]")
# Decompositions of signs such as ™, which are not letters.
RAISED = (
    "<super>",
    "<sub>",
    "<fraction>",
    "<square>",
)


def guess_plain(address: str) -> str | None:
    """The address that was probably meant by a well-formed one with signs that hardly belong to it.

    >>> guess_plain("'ada@firm.com"), guess_plain("o’neil@firm.com"), guess_plain("o'neil@firm.com")
    ('ada@firm.com', "o'neil@firm.com", None)
    """
    inner = unwrap_address(address)
    if inner is not None:
        return inner
    match = PREFIX.match(address)
    if match and is_well_formed(match[1]):
        return canonical_form(match[1])
    if address.isascii():
        return None
    for write in PLAIN_FORMS:
        plain = write(address)
        if plain != address and is_well_formed(plain):
            meant = canonical_form(plain)
            return None if meant == canonical_form(address) else meant
    return None


def write_plain_signs(text: str) -> str:
    """Typographic apostrophes, dashes and dots as the keys that they were typed for."""
    return text.translate(PLAIN_SIGNS)


def decode_again(address: str) -> str:
    """The text whose UTF-8 was read as the code page of western Windows."""
    if not DECODED_LETTER.search(address):
        return address
    try:
        return write_plain_signs(address.encode("cp1252").decode())
    except UnicodeError:
        return address


def write_narrow(address: str) -> str:
    """Full-width, mathematical and circled letters and digits as ASCII characters."""
    if any(unicodedata.decomposition(sign).startswith(RAISED) for sign in address):
        return address
    plain = unicodedata.normalize("NFKC", address)
    return plain if plain.isascii() else address


def write_latin(address: str) -> str:
    """Letters that look like Latin ones as these, if they stand beside Latin ones in a name."""
    plain = address.translate(LOOK_ALIKES)
    is_mixed = any(
        re.search("[a-zA-Z]", part) for part in PARTS.split(address) if not part.isascii()
    )
    return plain if plain.isascii() and is_mixed else address


def cut_symbols(address: str) -> str:
    """The address behind a bullet, an arrow or a picture, and behind a label in front of that."""
    first = next((at for at, sign in enumerate(address) if is_picture(sign)), 0)
    rest = first + sum(1 for _ in itertools.takewhile(is_picture, address[first:]))
    return address[rest:] if not first or is_label(address[:first]) else address


def is_picture(sign: str) -> bool:
    return not sign.isascii() and unicodedata.category(sign) in (
        "So",
        "Sm",
        "Po",
        "Ps",
        "Pe",
        "Pi",
        "Pf",
        "Mn",
    )


def cut_label(address: str) -> str:
    """The address without a label in another script that touches it."""
    match = TOUCHING_LABEL.fullmatch(address)
    return match[2] if match and match[1].lower() in LABELS else address


PLAIN_FORMS: tuple[Callable[[str], str], ...] = (
    write_plain_signs, decode_again, write_narrow, write_latin, cut_symbols, cut_label,
)  # fmt: skip
# Of the addresses for which `guess_plain` has an answer, those without an unusual character
# begin so.
USUAL_BEGINS = r"^(?i:www\.|imcea|xn--)"
# Each other well-formed address for which `guess_plain` has an answer fits this.
MAY_LOOK_ODD = (
    r"^(?:['“”„‚«»‹›【=]|ï»¿)|#(?i:ext)#@|[=%|：‘’´‐‑–—]"
    r"|[A-Za-z][\p{Cyrillic}\p{Greek}]|[\p{Cyrillic}\p{Greek}][A-Za-z]|[ıİ·]|[ÃÂâÐÑ][^\x00-\x7f]"
    r"|\p{So}|[¬±×÷]|\p{Pi}|\p{Pf}|[\x{2000}-\x{2bff}]|[\x{3000}-\x{3020}]|[\x{ff00}-\x{ffef}]"
    r"|[\x{1d400}-\x{1d7ff}]"
    r"|^(?:メール|邮|電|电|信箱|이메|메일|البريد|почт|пошт)"
)
