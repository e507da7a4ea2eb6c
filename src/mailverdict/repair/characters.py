"""Characters of a cell in another form.

They are invisible ones, escapes, HTML, width, and words in brackets for signs.

`remove_invisible` is for every cell. `DECODERS` write what is surely another form of a character;
`decode_characters` applies them, and notes the name of each that changed something. `LATE_DECODERS`
are for texts in which no address was read, since what they decode may also be a part of an address:
`ada%40firm.com` is decoded, but `100%ada@firm.com` stays.

To a reader `ada&#64;firm.com`, `ada＠firm.com` and `ada [at] firm.com` are the same text.
"""

from __future__ import annotations

import html
import re
import unicodedata
from urllib.parse import unquote

from .words import DOT_WORDS

# An ASCII text without any of these, and without invisible characters, is the same decoded.
SIGN_OF_CODE = re.compile(r"[\\&<%=\[({]")
# C1 controls are not here: they are what is left of letters that were decoded wrongly.
INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202d\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
# Also the colours of a terminal.
CONTROL = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]|[\x00-\x08\x0e-\x1b\x7f]")
# UTF-16 that was read as one octet a character.
UTF_16 = re.compile(r"(?:ÿþ)?(?:[^\0]\0)+|(?:þÿ)?(?:\0[^\0])+")
# Line ends that a program wrote as text: as Excel does (_x000D_), or as \\n behind an address.
ESCAPED_LINE = re.compile(r"_x00(?:0[9AaDd])_|(?<=[A-Za-z>\")])(?:\\[rnt])+(?=\s|\Z)")
ESCAPED_BREAK = re.compile(r"(@[\w\-]{1,63}(?:\.[\w\-]{1,63}){0,5}\.[A-Za-z]{2,12})(?:\\[rnt])+")
ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
TAG = re.compile(
    r"</?(?:a|abbr|address|b|big|body|br|center|cite|code|div|em|font|h[1-6]|head|hr|html|i|img|li"
    r"|nobr|o:p|ol|p|pre|s|small|span|strong|sub|sup|table|tbody|td|th|tr|tt|u|ul)(?=[\s/>])"
    r"([^<>]{0,2000})>"
    r"|<wbr ?/?>|<!--[^<>]{0,500}-->",
    re.IGNORECASE,
)
CUT_TAG = re.compile(r"<a\s[^<>]{0,2000}$", re.IGNORECASE)
HREF = re.compile(r"mailto:(?://)?([^\"'>\s?]{1,400})", re.IGNORECASE)
# Browsers show nothing between the parts of an address that markup hides from programs.
MARKED_AT = re.compile(
    r"(?<=\w)(?:<!--[^<>]{0,500}-->|<(b|i|em|strong|span|u)>)@(?:<!--[^<>]{0,500}-->|</\1>)(?=\w)"
)
PERCENT_CODE = re.compile(r"%[0-9A-Fa-f]{2}")
HEX_ESCAPE = re.compile(r"\\(?:u00|x)([2-7][0-9A-Fa-f])")
WRONGLY_DECODED = re.compile(
    "\u00e2\u20ac[\u0080-\u00bf\u2039\u0153\u2122\u02dc\u201c\u201d\u00a6]?"
    "|\u00ef\u00bb\u00bf|\u00c2(?=\\W|\\Z)"
)
QUOTED_PRINTABLE = re.compile(r"=(?:\r?\n|([2-7][0-9A-F]))")
# Full stops that NFKC would not make into the one meant. Of symbols, as the raised digit of a
# footnote, it would make letters and digits that touch an address.
TRANSLATED = dict.fromkeys(map(ord, "。｡．﹒"), ".")
SYMBOLS = ("<super>", "<sub>", "<circle>", "<square>", "<fraction>")  # decompositions
OPEN, CLOSE = r"[\[({<«【]", r"[\])}>»】]"
AT_WORD = re.compile(
    rf"\s{{0,5}}{OPEN}\s{{0,3}}(?:at|@|ät|et|at-sign|at sign)\s{{0,3}}{CLOSE}\s{{0,5}}",
    re.IGNORECASE,
)
DOT_WORD = re.compile(
    rf"\s{{0,5}}{OPEN}\s{{0,3}}(?:{'|'.join(sorted(DOT_WORDS))}|\.)\s{{0,3}}{CLOSE}\s{{0,5}}",
    re.IGNORECASE,
)
LIST_OF_ONE = re.compile(
    r"[\[({]\s*[bu]?(?P<quote>[\"'])(?P<text>(?:(?!(?P=quote))[^\\])*)(?P=quote)\s*,?\s*[\])}]"
)
BRACKETED_SIGN = re.compile(
    rf"{OPEN}\s{{0,3}}(?:@|\.|at|ät|et|{'|'.join(sorted(DOT_WORDS))})", re.IGNORECASE
)
CONTROLS = "".join(map(chr, range(0x80, 0xA0))) + "\ufffd"
# A control character that touches a word may have been its first letter, and stays.
WRONG_START = re.compile(f"[{CONTROLS}]{{1,100}}(?!\\w)")


def remove_invisible(text: str) -> str:
    """Remove blanks around the text and characters that nobody sees."""
    if "\0" in text and UTF_16.fullmatch(text):
        text = text.replace("\0", "")
    if not text.isascii():
        text = INVISIBLE.sub("", text)
    if not text.isprintable():
        text = CONTROL.sub(" ", text)
    text = text.strip()
    if "\\" in text or "_x00" in text:
        text = ESCAPED_LINE.sub(" ", text)
        text = ESCAPED_BREAK.sub(r"\1 ", text).strip()
    if not text.isascii():
        text = text.rstrip(CONTROLS)
        text = WRONG_START.sub("", text).strip()
    return text


def decode_list(text: str) -> str:
    """The text of a list with one, as JSON and Python write it."""
    if not text.startswith(("[", "(", "{")):
        return text
    found = LIST_OF_ONE.fullmatch(text)
    return remove_invisible(found["text"]) if found else text


def decode_html(text: str) -> str:
    """Replace entities by their characters and tags by blanks.

    The address of a mailto link stays.
    """
    decoded = text
    if "&" in text and ";" in text:
        for _ in range(2):  # exports escape what was escaped before
            decoded = ENTITY.sub(lambda entity: html.unescape(entity[0]), decoded)
    if "<" in decoded:
        if ">@" in decoded:
            decoded = MARKED_AT.sub("@", decoded)
        decoded = TAG.sub(replace_tag, decoded)
        if decoded.rfind("<") > decoded.rfind(">"):
            decoded = CUT_TAG.sub(replace_tag, decoded)
    return text if decoded == text else remove_invisible(decoded)


def replace_tag(tag: re.Match[str]) -> str:
    if tag[0][:4].lower() == "<wbr":
        return ""
    link = HREF.search(tag[0])
    return f" {unquote(link[1])} " if link else " "


def unify_width(text: str) -> str:
    if text.isascii():
        return text
    translated = dict(TRANSLATED)
    for sign in set(text):
        if not sign.isascii() and is_symbol(sign):
            translated[ord(sign)] = " "
    return unicodedata.normalize("NFKC", text.translate(translated)).strip()


def is_symbol(sign: str) -> bool:
    if unicodedata.normalize("NFKC", sign) == sign:
        return False
    if unicodedata.category(sign) in ("So", "No"):
        return True
    return unicodedata.decomposition(sign).startswith(SYMBOLS)


def unify_at_sign(text: str) -> str:
    if not BRACKETED_SIGN.search(text):
        return text
    return DOT_WORD.sub(".", AT_WORD.sub("@", text))


def decode_percent(text: str) -> str:
    if not PERCENT_CODE.search(text):
        return text
    try:
        return remove_invisible(unquote(text, errors="strict"))
    except UnicodeDecodeError:
        return text


def decode_escapes(text: str) -> str:
    if not HEX_ESCAPE.search(text):
        return text
    return remove_invisible(HEX_ESCAPE.sub(replace_octet, text))


def decode_quoted_printable(text: str) -> str:
    if "=" not in text or "?" in text or "://" in text:  # the parameters of a link
        return text
    return remove_invisible(QUOTED_PRINTABLE.sub(replace_octet, text))


def replace_octet(escape: re.Match[str]) -> str:
    """The ASCII character of an escape with two hexadecimal digits; nothing for one without."""
    return chr(int(escape[1], 16)) if escape[1] else ""


def remove_wrongly_decoded(text: str) -> str:
    """Remove what is left of quotes, blanks and a byte order mark.

    They were UTF-8 and decoded as cp1252.
    """
    return text if text.isascii() else remove_invisible(WRONGLY_DECODED.sub(" ", text))


LATE_DECODERS = (
    ("punctuation", remove_wrongly_decoded),
    ("percent", decode_percent),
    ("escape", decode_quoted_printable),
)
DECODERS = (
    ("list", decode_list),
    ("escape", decode_escapes),
    ("html", decode_html),
    ("width", unify_width),
    ("at_sign", unify_at_sign),
)


def decode_characters(text: str, changes: dict[str, None]) -> str:
    """Apply the decoders; the names of those that changed something are added to `changes`."""
    for name, decode in DECODERS:
        decoded = decode(text)
        if decoded != text:
            text = decoded
            changes[name] = None
    return text
