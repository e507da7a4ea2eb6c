"""The wording of a reply in a plain form that rules can match.

Servers quote addresses, hosts and links in their replies. What these hold must not sway anything
(``<no-such-user@example.org>`` says nothing), so they are masked.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

__all__ = ["Wording", "phrases", "read_wording"]

MAX_TEXT = 2048  # a reason is given in the first sentences; the rest is links and help


class Wording(NamedTuple):
    """A reply's text in the two forms that rules match.

    Attributes
    ----------
    raw : str
        Lower case, without accents, addresses masked; names of lists and links are found here.
    plain : str
        The same with IP addresses and links masked too and clauses of no account removed.
    """

    raw: str
    plain: str


def phrases(text: str) -> str:
    """Join alternatives that two or more blanks part.

    >>> phrases("unknown  not known")
    '(?:unknown|not known)'
    """
    return "(?:" + "|".join(re.split(r"\s{2,}", text.strip())) + ")"


LINK = r"(?:https?://|\bwww\.)\S+"
ADDRESS = r"<?(?:\"[^\"]{0,64}\"|[^\s<>\"@(),;:\[\]]{1,64})@[^\s<>(),;:\"]{1,255}>?"
LINK_OR_ADDRESS = re.compile(rf"({LINK})|{ADDRESS}")
MASKS = tuple(
    (re.compile(pattern), token)
    for pattern, token in (
        (LINK, "xurlx"),
        (r"<>", "xnullx"),
        (r"\[?\b\d{1,3}(?:\.\d{1,3}){3}\b\]?", " xipx "),  # also in "banned sender[192.0.2.7]"
        (r"(?<![\w:])\[?(?:ipv6:)?[0-9a-f]{1,4}(?::[0-9a-f]{0,4}){3,7}\]?", " xipx "),
        # Names of hosts; two labels may be a sentence that ends without a blank, and Exchange's words have dots too.
        (r"\b(?!resolver\.|storedrv\.)(?:[a-z0-9_-]+\.){2,}[a-z][a-z0-9-]*\b", "xhostx"),
        (r"[_\s]+", " "),  # AT&T writes DNSBL:ATTRBL_521<_192.0.2.7_>_is_blocked
    )
)

# "The recipient account is blocked", "cette boite est bloquee": it is blocked, not we (La Poste, Free).
NOT_OURS = r"(?<!your )(?<!sender )(?<!sending )(?<!sender's )"
SHUTTABLE = r"account|mail ?box|compte(?: du destinataire)?|boite\w*|cuenta|casella|buzon|conta|postfach|konto"
IS = r"(?:is|has been|was|est|a ete|esta|e|ist|wurde)"
LOCKED = r"(?:blocked|locked|bloquee?|bloquead[oa]|bloccat[oa]|gesperrt)"
# Clauses that hold a word about us and are not about us; each with what takes its place.
OF_NO_ACCOUNT = tuple(
    (re.compile(pattern), token)
    for pattern, token in (
        (r"relay[- ](?:recipient|domain)[- ](?:table|map)s?", "table"),  # Postfix: the recipient is not in it
        (r"relay= ?\S+", ""),  # AT&T names the client so
        (r"you do not have authori[sz]ation to see it", ""),  # Cyrus, of a mailbox that is not there
        (r"\(in reply to (?:rcpt to|(?:end of )?data)[^)]*\)?", ""),  # Postfix, quoting the server behind
        (r"\bhost xipx xipx said", "said"),  # Postfix, of a server behind it that has no name
        (r"message was not accepted -- ", ""),  # Mail.ru begins every refusal so
        (rf"{NOT_OURS}\b({SHUTTABLE}) {IS}(?: \w+)? {LOCKED}(?: due to inactivity)?", r"\1 is disabled"),
    )
)


def read_wording(text: str) -> Wording:
    """Fold case and accents, mask what is quoted.

    Parameters
    ----------
    text : str
        Of a reply, without its codes.

    Returns
    -------
    Wording
        Two plain forms.

    Examples
    --------
    >>> read_wording("<Ada@Example.org>: Boîte bloquée, see http://x.example/?u=NoSuchUser").plain
    'xaddrx: boite bloquee, see xurlx'
    """
    raw = LINK_OR_ADDRESS.sub(lambda match: match[1] or "xaddrx", fold(text[:MAX_TEXT]))
    plain = raw
    for pattern, token in (*MASKS, *OF_NO_ACCOUNT):
        plain = pattern.sub(token, plain)
    return Wording(raw, plain)


def fold(text: str) -> str:
    """Lower case without accents, with one kind of apostrophe."""
    lower = text.casefold()
    if lower.isascii():  # nearly always, and every refusal quotes another address
        return lower.translate(APOSTROPHES)
    spread = unicodedata.normalize("NFKD", lower)
    return "".join(c for c in spread if not unicodedata.combining(c)).translate(APOSTROPHES)


APOSTROPHES = str.maketrans("\u2018\u2019\u00b4`", "''''")
