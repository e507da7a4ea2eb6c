"""Syntax of the most common kind of address, decided in a microsecond; whatever else is left to `syntax.py`."""

from __future__ import annotations

import re

from email_validator import SPECIAL_USE_DOMAIN_NAMES

from ..model.evidence import SyntaxEvidence
from .faults import MAX_OCTETS
from .syntax import observe_syntax

__all__ = ["observe_address", "observe_plain"]

# Lower case, so that the normal form is the text itself; labels of RFC 1035 section 2.3.1 and at most 63 octets.
LOCAL = r"[a-z0-9_+\-]+(?:\.[a-z0-9_+\-]+)*"
LABEL = r"[a-z0-9](?:[a-z0-9\-]{0,61}[a-z0-9])?"
PLAIN = re.compile(rf"({LOCAL})@((?:{LABEL}\.)+[a-z]{{2,63}})")
RESERVED = tuple(f".{name}" for name in SPECIAL_USE_DOMAIN_NAMES)


def observe_plain(text: str) -> SyntaxEvidence | None:
    """Accept an address of the plainest form, or leave it undecided.

    Parameters
    ----------
    text : str
        The address, without surrounding blanks.

    Returns
    -------
    SyntaxEvidence or None
        What `observe_syntax` says too; None: ask that.

    Examples
    --------
    >>> observe_plain("ada@example.org").ascii_domain
    'example.org'
    >>> observe_plain("Ada@example.org"), observe_plain("ada@web")
    (None, None)
    """
    found = PLAIN.fullmatch(text) if len(text) <= MAX_OCTETS else None
    if found is None:
        return None
    local, domain = found.groups()
    if "--" in domain or f".{domain}".endswith(RESERVED):
        return None
    return SyntaxEvidence(ok=True, normalized=text, local=local, ascii_domain=domain)


def observe_address(text: str) -> SyntaxEvidence:
    """Do as `observe_syntax`, at once where that is possible.

    Parameters
    ----------
    text : str
        The address, without surrounding blanks.

    Returns
    -------
    SyntaxEvidence
        The parts and the normal form, or why the address is refused.

    Examples
    --------
    >>> observe_address("Ada@BÜCHER.example").normalized
    'Ada@bücher.example'
    """
    return observe_plain(text) or observe_syntax(text)
